/* messages.c -- messages on standard error for machines: JSON, GitHub's workflow commands, SARIF.
 *
 * A run writes its messages as lines of JSON (ir/diag.c).  If --error-format asks for GitHub's
 * format or SARIF, these lines are kept until the end, and the messages are printed from them.
 * `etc batch` does the same with the messages of its runs. */
#include "compiler/compiler.h"
#include "compiler/import/internal.h"
#include <stdlib.h>
#include <string.h>

/* -- reading ------------------------------------------------------------------------------- */

static const char *text_of(const Json *v, const char *key)
{
    return json_string(json_get(v, key));
}

static int number_of(const Json *v, const char *key)
{
    int64_t n = 0;
    return json_int(json_get(v, key), &n) && n > 0 && n < INT32_MAX ? (int)n : 0;
}

static const char *kind_of(const Json *v)
{
    static const char *const kind[] = {MESSAGE_ERROR, MESSAGE_BUG, MESSAGE_WARNING, MESSAGE_NOTE};
    const char *is = text_of(v, "kind");
    for (size_t i = 0; is && i < sizeof kind / sizeof *kind; i++)
        if (!strcmp(is, kind[i]))
            return kind[i];
    return NULL;
}

static Fault fault_of(const Json *v)
{
    const char *is = text_of(v, "fault");
    int f = 0;
    while (f < N_FAULTS && (!is || strcmp(is, fault_name[f]) != 0))
        f++;
    return (Fault)f;
}

static bool read_message(const Json *v, Message *m)
{
    *m = (Message){kind_of(v), fault_of(v),
                   {.file = text_of(v, "file"), .line = number_of(v, "line"),
                    .column = number_of(v, "column"), .node = text_of(v, "node"),
                    .op = text_of(v, "op"), .module = text_of(v, "module"),
                    .source = text_of(v, "source")},
                   text_of(v, "message")};
    return m->kind && m->text;
}

/* Makes a message of a line that is not JSON.  A process that is out of memory prints such a
 * line. */
static Message plain_message(const char *line, size_t n, Arena *a)
{
    static const char begin[] = "etc: error: ";
    const size_t known = sizeof begin - 1;
    bool is_ours = n > known && !strncmp(line, begin, known);
    return (Message){MESSAGE_ERROR, is_ours ? FAULT_MODEL : FAULT_BUG, {0},
                     is_ours ? arena_str(a, line + known, n - known) : arena_str(a, line, n)};
}

Message *messages_read(const char *lines, size_t n, Arena *a, int *count)
{
    Message *all = NULL, m;
    JsonDoc doc;
    *count = 0;
    for (const char *end = lines + n; lines < end;) {
        const char *stop = memchr(lines, '\n', (size_t)(end - lines));
        size_t len = (size_t)((stop ? stop : end) - lines);
        if (!json_parse(a, "", (const uint8_t *)lines, len, &(Diag){0}, &doc) ||
            !read_message(doc.root, &m))
            m = plain_message(lines, len, a);
        if (len)
            PUSH(a, all, *count, m);
        lines += len + 1;
    }
    return all;
}

/* -- a message with its notes -------------------------------------------------------------- */

static bool is_note(const Message *m)
{
    return !strcmp(m->kind, MESSAGE_NOTE);
}

static const char *level_of(const Message *m)
{
    return !strcmp(m->kind, MESSAGE_BUG) ? MESSAGE_ERROR : m->kind;
}

/* Returns the place to show to the user: a line of a text, or else a line of the model's source,
 * such as "model.py:12". */
static Loc place_of(const Message *m, Arena *a)
{
    Loc loc = m->loc;
    const char *colon = loc.source ? strrchr(loc.source, ':') : NULL;
    int line = colon ? atoi(colon + 1) : 0;
    if (loc.line || line <= 0)
        return loc;
    return (Loc){.file = arena_str(a, loc.source, (size_t)(colon - loc.source)), .line = line};
}

static const char *shown(const char *s, Arena *a)
{
    return escape(a, ESCAPE_TERMINAL, s);
}

/* Returns the text of m[0] with its place in the model, followed by the notes that belong to it,
 * one per line. */
static const char *whole_text(const Message *m, int n, Arena *a)
{
    assert(n > 0);
    const Loc *loc = &m->loc;
    const char *file = place_of(m, a).file, *s = shown(m->text, a);
    if (loc->node && loc->op)
        s = arena_printf(a, "node '%s' (%s): %s", shown(loc->node, a), shown(loc->op, a), s);
    else if (loc->node || loc->op)
        s = arena_printf(a, "%s: %s", shown(loc->node ? loc->node : loc->op, a), s);
    if (loc->file && strcmp(loc->file, file) != 0)
        s = arena_printf(a, "%s: %s", shown(loc->file, a), s);
    if (loc->module && *loc->module)
        s = arena_printf(a, "%s\nmodule %s", s, shown(loc->module, a));
    for (int i = 1; i < n && is_note(&m[i]); i++)
        s = arena_printf(a, "%s\n%s", s, shown(m[i].text, a));
    return s;
}

/* -- GitHub -------------------------------------------------------------------------------- */

/* Writes s with escapes.  A workflow command ends at the end of the line, and a property of it ends
 * at ':' or ','. */
static void put_command(FILE *out, const char *s, bool is_property)
{
    for (; *s; s++) {
        bool is_plain = *s != '%' && (unsigned char)*s >= ' ' &&
                        !(is_property && (*s == ':' || *s == ','));
        if (is_plain)
            putc(*s, out);
        else
            fprintf(out, "%%%02X", (unsigned char)*s);
    }
}

static void put_github(const Message *m, int n, Arena *a, FILE *out)
{
    Loc loc = place_of(m, a);
    const char *level = level_of(m);
    fprintf(out, "::%s title=etc", is_note(m) ? "notice" : level);
    if (loc.file) {
        fputs(",file=", out);
        put_command(out, shown(loc.file, a), true);
    }
    if (loc.line)
        fprintf(out, ",line=%d", loc.line);
    if (loc.column)
        fprintf(out, ",col=%d", loc.column);
    fputs("::", out);
    put_command(out, whole_text(m, n, a), false);
    putc('\n', out);
}

/* -- SARIF --------------------------------------------------------------------------------- */

static void put_string(FILE *out, const char *s)
{
    putc('"', out);
    for (size_t n; *s; s += n) { /* each line end becomes \n */
        n = strcspn(s, "\n");
        escape_put(out, ESCAPE_JSON, s, n);
        if (s[n] == '\n') {
            fputs("\\n", out);
            n++;
        }
    }
    putc('"', out);
}

static void put_uri(FILE *out, const char *s)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789-._~/";
    putc('"', out);
    for (; *s; s++)
        fprintf(out, strchr(plain, *s) ? "%c" : "%%%02X", (unsigned char)*s);
    putc('"', out);
}

static void put_location(const Message *m, Arena *a, FILE *out)
{
    Loc loc = place_of(m, a);
    fputs("{", out);
    if (loc.file) {
        fputs("\"physicalLocation\": {\"artifactLocation\": {\"uri\": ", out);
        put_uri(out, loc.file);
        putc('}', out);
        if (loc.line)
            fprintf(out, ", \"region\": {\"startLine\": %d%s}", loc.line,
                    loc.column ? arena_printf(a, ", \"startColumn\": %d", loc.column) : "");
        putc('}', out);
    }
    if (m->loc.node) {
        fprintf(out, "%s\"logicalLocations\": [{\"kind\": \"member\", \"name\": ",
                loc.file ? ", " : "");
        put_string(out, m->loc.node);
        fputs("}]", out);
    }
    fputs("}", out);
}

static void put_sarif(const Message *m, int n, int number, Arena *a, FILE *out)
{
    fprintf(out, "%s\n{\"ruleId\": \"%s\", \"level\": \"%s\", \"message\": {\"text\": ",
            number ? "," : "", m->fault < N_FAULTS ? fault_name[m->fault] : level_of(m),
            level_of(m));
    put_string(out, whole_text(m, n, a));
    fputs("}, \"locations\": [", out);
    if (m->loc.file || m->loc.node)
        put_location(m, a, out);
    fputs("]}", out);
}

/* -- printing ------------------------------------------------------------------------------ */

static void messages_print(const char *format, const Message *m, int n, Arena *a, FILE *out)
{
    bool is_sarif = !strcmp(format, "sarif"), is_github = !strcmp(format, "github");
    void (*put)(FILE *, const Message *) = strcmp(format, "json") ? message_put : message_put_json;
    if (is_sarif)
        fputs("{\"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\", "
              "\"version\": \"2.1.0\", \"runs\": [{\"tool\": {\"driver\": {\"name\": \"etc\", \"version\": \"" ETC_VERSION
              "\"}}, \"results\": [", out);
    for (int i = 0, number = 0; i < n; i++) {
        bool is_printed = i && is_note(&m[i]); /* it was printed with the message before it */
        if (is_sarif && !is_printed)
            put_sarif(&m[i], n - i, number++, a, out);
        else if (is_github && !is_printed)
            put_github(&m[i], n - i, a, out);
        else if (!is_sarif && !is_github)
            put(out, &m[i]);
    }
    if (is_sarif)
        fputs("]}]}\n", out);
}

/* -- a run --------------------------------------------------------------------------------- */

/* Returns the value of --error-format.  It is read before the other words, because mistakes in
 * these are messages too.  An unknown value gives "human". */
static const char *format_asked(int argc, char **argv)
{
    static const char flag[] = "--error-format";
    static const char *const known[] = {"json", "github", "sarif"};
    const char *asked = "human";
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool is_it = !strncmp(argv[i], flag, sizeof flag - 1);
        const char *value = is_it ? argv[i] + sizeof flag - 1 : "";
        if (is_it && !*value && i + 1 < argc)
            asked = argv[i + 1];
        else if (*value == '=')
            asked = value + 1;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(asked, known[i]))
            return known[i];
    return "human";
}

void messages_start(Messages *m, int argc, char **argv)
{
    *m = (Messages){.format = format_asked(argc, argv)};
    bool is_human = !strcmp(m->format, "human"), is_kept = !is_human && strcmp(m->format, "json");
    m->diag.is_json = !is_human;
    m->diag.out = is_kept ? text_open(&m->text) : stderr;
    if (!m->diag.out)
        m->diag.out = stderr;
}

void messages_end(Messages *m)
{
    Arena *a = arena_new();
    const char *lines = m->text.f ? text_close(&m->text, a) : NULL;
    int n;
    if (lines) {
        const Message *all = messages_read(lines, strlen(lines), a, &n);
        messages_print(m->format, all, n, a, stderr);
    }
    arena_free(a);
}
