/* embed.c -- a build tool that turns kernel headers into the tables of emit/c_chunks.h.
 *
 *     embed OUT.c pointwise.def isa.h core.h isa_avx2.h ... lanes.h ... vec.h ...
 *
 * The text of a header is cut into chunks at blank lines outside braces, comments and #if.  A chunk
 * that defines functions, tables, types or macros is used if code uses one of their names.  The
 * other chunks (the first comment, includes, pragmas) are used if any chunk of the header is.
 * Include guards, includes of our own files, and the file's name in its first comment are dropped.
 *
 * isa.h becomes the table of instruction sets.  The header of a set is cut into two parts.  Its
 * constants come before lanes.h, which it includes.  Its steps come after lanes.h and after the
 * headers that several sets share. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MAX_CHUNKS = 2000, MAX_NAMES = 32, MAX_HEADERS = 72, MAX_ISAS = 8 };

typedef struct Chunk {
    int header, n_names;
    bool is_optional; /* it defines names, and is left out if none is used */
    char *text, *name[MAX_NAMES];
    size_t at; /* its offset in the text of its header */
} Chunk;

/* A header, and the first and the last instruction set that it belongs to. */
typedef struct Header {
    const char *name;
    int first, last;
    size_t n, n_packed; /* the bytes of its text, and of the packed text */
} Header;

typedef struct Isa {
    char *condition; /* NULL: the set is used if no other condition holds */
    char *file, *text, *steps;
    int header;
} Isa;

static Chunk chunk[MAX_CHUNKS];
static Header header[MAX_HEADERS + 1]; /* the last is the dictionary */
static Isa isa[MAX_ISAS];
static int n_chunks, n_headers, n_isas, at_header;
static bool has_steps; /* the steps of the sets are cut */

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
        die("too many definitions without a blank line", header[c->header].name);
    memcpy(name, s, len);
    c->name[c->n_names++] = name;
}

/* Adds the last identifier before `end`. */
static void add_name_before(Chunk *c, const char *start, const char *end)
{
    while (end > start && !is_ident(end[-1]))
        end--;
    const char *s = end;
    while (s > start && is_ident(s[-1]))
        s--;
    add_name(c, s, (size_t)(end - s));
}

/* Adds the name of a type from "typedef float EtcF __attribute__...", from "typedef void (*EtcRun)(...)", or
 * from the last line of "typedef struct EtcSum { ... } EtcSum;". */
static void add_type(Chunk *c, const char *s)
{
    const char *end = s + strcspn(s, "\n"), *mark = strstr(s, " __attribute__"), *star = strstr(s, "(*");
    if (star && star < end)
        mark = star + strcspn(star, ")");
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

/* Turns "vec.h -- vectors of ..." into "Vectors of ...", because a model's file has no vec.h. */
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
    c->header = at_header;
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

/* -- instruction sets ---------------------------------------------------------------------- */

static char *copy(const char *s, size_t len)
{
    char *to = calloc(len + 1, 1);
    if (!to)
        die("no memory", "embed.c");
    return memcpy(to, s, len);
}

static const char *after(const char *line, const char *start)
{
    return starts(line, start) ? line + strlen(start) : NULL;
}

/* Reads the sets from isa.h: lines "#elif CONDITION", each followed by "#include FILE". */
static void read_isas(const char *s)
{
    const char *condition = NULL, *file;
    for (; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL) {
        if (after(s, "#if "))
            condition = after(s, "#if ");
        else if (after(s, "#elif "))
            condition = after(s, "#elif ");
        else if (starts(s, "#else"))
            condition = NULL;
        file = after(s, "#include \"runtime-lite/kernels/");
        if (!file)
            continue;
        if (n_isas == MAX_ISAS)
            die("too many instruction sets", "isa.h");
        isa[n_isas].condition = condition ? copy(condition, strcspn(condition, "\n")) : NULL;
        isa[n_isas++].file = copy(file, strcspn(file, "\""));
    }
}

static int find_isa(const char *name)
{
    int i = 0;
    while (i < n_isas && strcmp(isa[i].file, name))
        i++;
    return i;
}

/* Cuts the constants of a set.  cut_steps cuts its steps later. */
static void cut_constants(Isa *of, char *s)
{
    static const char include[] = "#include \"runtime-lite/kernels/lanes.h\"\n";
    char *end = strstr(s, include);
    if (!end)
        die("includes no lanes.h", of->file);
    of->header = at_header;
    of->text = copy(s, strlen(s));
    of->steps = end + sizeof include - 1;
    *end = '\0';
    cut(s);
}

static void cut_steps(void)
{
    for (int i = 0; i < n_isas; i++) {
        if (!isa[i].steps)
            die("is not among the headers", isa[i].file);
        at_header = isa[i].header;
        cut(isa[i].steps);
    }
}

/* Finds the sets of a header that is not the header of one set: those that include it, or all. */
static void find_sets(Header *h)
{
    h->first = 0;
    h->last = n_isas - 1;
    if (!starts(h->name, "isa_"))
        return;
    while (h->first < n_isas && !strstr(isa[h->first].text, h->name))
        h->first++;
    while (h->last > h->first && !strstr(isa[h->last].text, h->name))
        h->last--;
    for (int i = h->first; i <= h->last; i++)
        if (!strstr(isa[i].text, h->name))
            die("the sets that include it are not neighbours in isa.h", h->name);
}

/* Cuts a header.  Headers must come in this order: isa.h, core.h, those of the sets, lanes.h, those
 * that some sets share, the others. */
static void cut_header(const char *path)
{
    char *s = slurp(path);
    const char *name = base_name(path);
    bool is_after = isa[0].text && !starts(name, "isa_") && strcmp(name, "lanes.h");
    drop_guard(s);
    if (!strcmp(name, "isa.h")) {
        read_isas(s);
        return;
    }
    int i = find_isa(name);
    if (is_after && !has_steps) {
        cut_steps();
        has_steps = true;
    }
    at_header = n_headers++;
    header[at_header].name = name;
    if (i < n_isas) {
        header[at_header].first = header[at_header].last = i;
        cut_constants(&isa[i], s);
    } else {
        find_sets(&header[at_header]);
        cut(s);
    }
}

/* -- writing ------------------------------------------------------------------------------- */

static void put_bytes(FILE *out, const unsigned char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%d,", i % 24 ? "" : "\n    ", s[i]);
}

/* Prints a text packed by zlib, without its header and checksum, with the dictionary unless that is NULL. */
static void put_packed(FILE *out, int of, const char *text, const char *dictionary)
{
    z_stream s = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)header[of].n};
    size_t most = compressBound(header[of].n);
    unsigned char *to = malloc(most);
    s.next_out = to;
    s.avail_out = (uInt)most;
    if (!to ||
        deflateInit2(&s, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK ||
        (dictionary && deflateSetDictionary(&s, (const Bytef *)dictionary,
                                            (uInt)strlen(dictionary)) != Z_OK) ||
        deflate(&s, Z_FINISH) != Z_STREAM_END)
        die("cannot be packed", header[of].name);
    header[of].n_packed = s.total_out;
    deflateEnd(&s);
    fprintf(out, "static const unsigned char text_%d[] = {", of);
    put_bytes(out, to, header[of].n_packed);
    fputs("\n};\n", out);
    free(to);
}

/* Returns the chunks of a header, each with its '\0', and sets the offset of each chunk. */
static const char *join(int of)
{
    size_t n = 0;
    for (int i = 0; i < n_chunks; i++)
        if (chunk[i].header == of) {
            chunk[i].at = n;
            n += strlen(chunk[i].text) + 1;
        }
    char *text = calloc(n + 1, 1);
    if (!text)
        die("no memory", header[of].name);
    for (int i = 0; i < n_chunks; i++)
        if (chunk[i].header == of)
            memcpy(text + chunk[i].at, chunk[i].text, strlen(chunk[i].text));
    header[of].n = n;
    return text;
}

/* Returns the texts that have most in common with the others: one header of steps, one that is
 * written over steps. */
static const char *make_dictionary(void)
{
    static const char *const names[] = {"isa_sse2.h", "conv.h"};
    enum { MOST = 1 << 15 }; /* the window of zlib */
    static char text[MOST];
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (int i = 0; i < n_chunks; i++) {
            if (strcmp(header[chunk[i].header].name, names[k]))
                continue;
            if (strlen(text) + strlen(chunk[i].text) >= MOST)
                die("the dictionary is too long", names[k]);
            strcat(text, chunk[i].text);
        }
    return text;
}

static void put_texts(FILE *out)
{
    const char *dictionary = make_dictionary();
    for (int i = 0; i < n_headers; i++)
        put_packed(out, i, join(i), dictionary);
    header[n_headers].name = "";
    header[n_headers].n = strlen(dictionary);
    put_packed(out, n_headers, dictionary, NULL);
}

/* Prints the tables of sets and headers.  The targets use the name "avx2" for "isa_avx2.h". */
static void put_isas(FILE *out)
{
    fputs("const CIsa c_isa[] = {\n", out);
    for (int i = 0; i < n_isas; i++) {
        const char *name = isa[i].file + 4, *condition = isa[i].condition;
        fprintf(out, "    {\"%.*s\", \"%s\"},\n", (int)strcspn(name, "."), name,
                condition ? condition : "");
    }
    fprintf(out, "};\nconst int c_n_isas = %d;\n\nconst CHeader c_header[] = {\n", n_isas);
    for (int i = 0; i <= n_headers; i++)
        fprintf(out, "    {\"%s\", %d, %d, text_%d, %zu, %zu},\n", header[i].name, header[i].first,
                header[i].last, i, header[i].n_packed, header[i].n);
    fprintf(out, "};\nconst int c_n_headers = %d;\n\n", n_headers);
}

static void put_chunks(FILE *out)
{
    fputs("const CChunk c_chunk[] = {\n", out);
    for (int i = 0; i < n_chunks; i++)
        fprintf(out, "    {%d, %d, %zu},\n", chunk[i].header, chunk[i].is_optional, chunk[i].at);
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
    for (int i = 0, at = 0; i < n; at += (int)strlen(name[i++].name) + 1)
        fprintf(out, "    {%d, %d},\n", at, name[i].chunk);
    fprintf(out, "};\nconst int c_n_names = %d;\n\nconst char c_names[] = {", n);
    for (int i = 0; i < n; i++)
        put_bytes(out, (const unsigned char *)name[i].name, strlen(name[i].name) + 1);
    fputs("\n};\n\n", out);
}

/* Prints an expression on one line: each run of white space becomes one blank. */
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

/* Prints the rows KIND(name, expression) of pointwise.def.  KIND must be at the start of a line. */
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
    for (int i = 3; i < argc; i++)
        cut_header(argv[i]);
    fputs("/* made by emit/embed.c from runtime-lite/kernels */\n#include \"emit/c_chunks.h\"\n\n",
          out);
    put_texts(out);
    put_isas(out);
    put_chunks(out);
    put_names(out);
    put_rows(out, slurp(argv[2]));
    if (ferror(out) | fclose(out))
        die("cannot be written", argv[1]);
    return 0;
}
