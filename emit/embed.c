/* embed.c -- build tool: turns kernel headers into the tables of emit/c_chunks.h.
 *
 *     embed OUT.c pointwise.def core.h vec.h ...
 *
 * A header's text is cut at blank lines outside braces, comments and #if into chunks.  A chunk that
 * defines functions, tables, types or macros is wanted by those who use their names; the others
 * (what the header says of itself, includes, pragmas) go wherever their header goes.  Include guards
 * and includes of our own files are dropped, and so is the file's name where it introduces itself.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHUNKS = 2000, MAX_NAMES = 32, MAX_HEADERS = 64 };

typedef struct Chunk {
    int header, n_names;
    bool is_optional; /* it defines names, so nobody misses it unused */
    char *text, *name[MAX_NAMES];
} Chunk;

static Chunk chunk[MAX_CHUNKS];
static const char *header[MAX_HEADERS];
static int n_chunks, n_headers;

static void die(const char *what, const char *which)
{
    fprintf(stderr, "embed: %s: %s\n", which, what);
    exit(1);
}

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        die("cannot be read", path);
    size_t n = (size_t)ftell(f);
    char *s = calloc(n + 1, 1);
    rewind(f);
    if (!s || fread(s, 1, n, f) != n)
        die("cannot be read", path);
    fclose(f);
    return s;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_ident(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool starts(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

/* -- names a chunk defines ----------------------------------------------------------------- */

static void add_name(Chunk *c, const char *s, size_t len)
{
    for (int i = 0; i < c->n_names; i++)
        if (strlen(c->name[i]) == len && !memcmp(c->name[i], s, len))
            return;
    char *name = calloc(len + 1, 1);
    if (c->n_names == MAX_NAMES || !name)
        die("too many definitions without a blank line", header[c->header]);
    memcpy(name, s, len);
    c->name[c->n_names++] = name;
}

/* The identifier that ends before `end`, blanks apart. */
static void add_name_before(Chunk *c, const char *start, const char *end)
{
    while (end > start && !is_ident(end[-1]))
        end--;
    const char *s = end;
    while (s > start && is_ident(s[-1]))
        s--;
    add_name(c, s, (size_t)(end - s));
}

/* "typedef float EtcF __attribute__..." and the last line of "typedef struct EtcSum { ... } EtcSum;" */
static void add_type(Chunk *c, const char *s)
{
    const char *end = s + strcspn(s, "\n"), *mark = strstr(s, " __attribute__");
    add_name_before(c, s, mark && mark < end ? mark : end);
}

static void find_names(Chunk *c)
{
    bool in_type = false;
    for (const char *s = c->text; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL) {
        if (starts(s, "ETC_INLINE") || starts(s, "static inline") || starts(s, "ETC_OUTLINE ")) {
            const char *open = strchr(s, '(');
            add_name_before(c, s, open ? open : s + strlen(s));
        } else if (starts(s, "static const")) {
            add_name_before(c, s, s + strcspn(s, "[="));
        } else if (starts(s, "#define ")) {
            add_name_before(c, s, s + 8 + strcspn(s + 8, " (\n"));
        } else if (starts(s, "typedef ") && strcspn(s, "{") < strcspn(s, "\n") &&
                   strcspn(s, "}") > strcspn(s, "\n")) {
            in_type = true;
        } else if (starts(s, "typedef ")) {
            add_type(c, s);
        } else if (in_type && s[0] == '}') {
            add_type(c, s);
            in_type = false;
        }
    }
    c->is_optional = c->n_names > 0;
}

/* -- cutting ------------------------------------------------------------------------------- */

typedef struct Cutter {
    int braces, ifs;
    bool in_comment;
} Cutter;

static void follow(Cutter *c, const char *line, size_t len)
{
    if (!c->in_comment && line[0] == '#') {
        c->ifs += starts(line, "#if");
        c->ifs -= starts(line, "#endif");
    }
    for (size_t i = 0; i < len; i++) {
        if (c->in_comment) {
            c->in_comment = !(line[i] == '*' && line[i + 1] == '/');
            i += !c->in_comment;
        } else if (line[i] == '/' && line[i + 1] == '*') {
            c->in_comment = true;
            i++;
        } else {
            c->braces += line[i] == '{';
            c->braces -= line[i] == '}';
        }
    }
}

/* "vec.h -- vectors of ..." becomes "Vectors of ...": in a model's file there is no vec.h. */
static void drop_title(char *s)
{
    char *dash = starts(s, "/* ") ? strstr(s, ".h -- ") : NULL;
    if (!dash || strcspn(s, "\n") < (size_t)(dash - s))
        return;
    memmove(s + 3, dash + 6, strlen(dash + 6) + 1);
    s[3] = (char)toupper((unsigned char)s[3]);
}

static bool is_dropped(const char *line)
{
    return starts(line, "#include \"runtime-lite/");
}

static void end_chunk(char *text, size_t len)
{
    if (!len)
        return;
    if (n_chunks == MAX_CHUNKS)
        die("too many chunks", "embed.c");
    Chunk *c = &chunk[n_chunks++];
    c->header = n_headers - 1;
    c->text = calloc(len + 1, 1);
    if (!c->text)
        die("no memory", "embed.c");
    memcpy(c->text, text, len);
    drop_title(c->text);
    find_names(c);
}

/* Drops "#ifndef ETC_X_H", "#define ETC_X_H" and the last "#endif". */
static void drop_guard(char *s)
{
    char *open = strstr(s, "#ifndef ETC_"), *end = NULL;
    for (char *e = strstr(s, "#endif"); e; e = strstr(e + 1, "#endif"))
        end = e;
    char *define = open ? strstr(open, "#define ETC_") : NULL;
    if (!define || !end || strchr(open, '\n') + 1 != define)
        return;
    memset(open, ' ', (size_t)(strchr(define, '\n') - open));
    memset(end, ' ', strlen(end) - 1);
}

static bool is_blank(const char *line, size_t len)
{
    return strspn(line, " \t\r") >= len;
}

static void cut(char *s)
{
    Cutter c = {0};
    char *buffer = calloc(strlen(s) + 1, 1);
    size_t n = 0;
    drop_guard(s);
    for (char *line = s, *next; *line; line = next) {
        size_t len = strcspn(line, "\n");
        next = line + len + (line[len] == '\n');
        if (is_blank(line, len) && !c.braces && !c.ifs && !c.in_comment) {
            end_chunk(buffer, n);
            n = 0;
            continue;
        }
        follow(&c, line, len);
        if (is_dropped(line))
            continue;
        memcpy(buffer + n, line, len);
        n += len;
        buffer[n++] = '\n';
    }
    end_chunk(buffer, n);
    free(buffer);
}

/* -- writing ------------------------------------------------------------------------------- */

static void put_string(FILE *out, const char *s)
{
    fputc('"', out);
    for (; *s; s++) {
        if (*s == '\n')
            fputs(s[1] ? "\\n\"\n    \"" : "\\n", out);
        else
            fprintf(out, "%s%c", *s == '"' || *s == '\\' ? "\\" : "", *s);
    }
    fputc('"', out);
}

static void put_chunks(FILE *out)
{
    fputs("const CChunk c_chunk[] = {\n", out);
    for (int i = 0; i < n_chunks; i++) {
        fprintf(out, "    {%d, %d,\n    ", chunk[i].header, chunk[i].is_optional);
        put_string(out, chunk[i].text);
        fputs("},\n", out);
    }
    fprintf(out, "};\nconst int c_n_chunks = %d;\n\n", n_chunks);
}

typedef struct Name {
    const char *name;
    int chunk;
} Name;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const Name *)a)->name, ((const Name *)b)->name);
}

static void put_names(FILE *out)
{
    static Name name[MAX_CHUNKS * MAX_NAMES];
    int n = 0;
    for (int i = 0; i < n_chunks; i++)
        for (int k = 0; k < chunk[i].n_names; k++)
            name[n++] = (Name){chunk[i].name[k], i};
    qsort(name, (size_t)n, sizeof *name, by_name);
    fputs("const CName c_name[] = {\n", out);
    for (int i = 0; i < n; i++)
        fprintf(out, "    {\"%s\", %d},\n", name[i].name, name[i].chunk);
    fprintf(out, "    {\"\", 0},\n};\nconst int c_n_names = %d;\n\n", n);
}

/* One blank for any white space, so that an expression is one line. */
static void put_expr(FILE *out, const char *s, size_t len)
{
    bool blank = false;
    fputc('"', out);
    for (size_t i = 0; i < len; i++) {
        if (isspace((unsigned char)s[i])) {
            blank = true;
            continue;
        }
        fprintf(out, "%s%c", blank ? " " : "", s[i]);
        blank = false;
    }
    fputc('"', out);
}

/* Rows KIND(name, expression) of pointwise.def, where KIND stands at the start of a line. */
static void put_rows(FILE *out, const char *s)
{
    int n = 0;
    fputs("const CRow c_row[] = {\n", out);
    for (; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL) {
        size_t kind = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        if (!kind || s[kind] != '(')
            continue;
        const char *name = s + kind + 1, *comma = strchr(name, ','), *end = comma;
        for (int depth = 1; end && *end; end++) {
            depth += (*end == '(') - (*end == ')');
            if (!depth)
                break;
        }
        if (!comma || !*end)
            die("unbalanced row", "pointwise.def");
        fprintf(out, "    {\"%.*s\", \"%.*s\", ", (int)(comma - name), name, (int)kind, s);
        put_expr(out, comma + 1 + strspn(comma + 1, " \n"),
                 (size_t)(end - comma - 1) - strspn(comma + 1, " \n"));
        fputs("},\n", out);
        s = end;
        n++;
    }
    fprintf(out, "};\nconst int c_n_rows = %d;\n", n);
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > MAX_HEADERS)
        die("usage: embed OUT.c pointwise.def HEADER...", "embed");
    FILE *out = fopen(argv[1], "wb");
    if (!out)
        die("cannot be written", argv[1]);
    for (int i = 3; i < argc; i++) {
        header[n_headers++] = base_name(argv[i]);
        cut(slurp(argv[i]));
    }
    fputs("/* made by emit/embed.c from runtime-lite/kernels */\n#include \"emit/c_chunks.h\"\n"
          "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\n", out);
    fputs("const char *const c_header[] = {\n", out);
    for (int i = 0; i < n_headers; i++)
        fprintf(out, "    \"%s\",\n", header[i]);
    fprintf(out, "};\nconst int c_n_headers = %d;\n\n", n_headers);
    put_chunks(out);
    put_names(out);
    put_rows(out, slurp(argv[2]));
    if (ferror(out) | fclose(out))
        die("cannot be written", argv[1]);
    return 0;
}
