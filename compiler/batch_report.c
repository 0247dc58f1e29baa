/* batch_report.c -- what `etc batch` prints and writes: a line of JSON for each model and one for
 * all, the causes of failures with the models that each of them stops, JUnit XML, and a table for
 * GitHub. */
#define _GNU_SOURCE
#include "compiler/batch.h"
#include "compiler/compiler.h"
#include "compiler/run.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const batch_status_name[] = {"waiting", "written", "unchanged", "failed", "crashed"};

/* -- a model ----------------------------------------------------------------------------------- */

static void put_messages(const BatchEntry *e, Arena *a, FILE *out)
{
    Text t;
    for (int i = 0; i < e->n_messages; i++) {
        if (text_open(&t))
            message_put_json(t.f, &e->message[i]);
        const char *line = text_close(&t, a);
        if (line)
            fprintf(out, "%s%.*s", comma(i), (int)strcspn(line, "\n"), line);
    }
}

void batch_put_line(const BatchEntry *e, Arena *a, FILE *out)
{
    const BatchRecord *r = e->known;
    assert(e->status > BATCH_WAITING && e->status <= BATCH_CRASHED);
    fprintf(out,
            "{\"schema\": 1, \"name\": %s, \"status\": \"%s\", \"exit\": %d, "
            "\"command\": \"%s\", \"output\": %s, ",
            json_text(a, e->name), batch_status_name[e->status], e->code, e->words.item[1],
            json_text(a, e->output));
    if (r)
        fprintf(out, "\"key\": \"%s\", \"bytes\": %lld, \"arena\": %lld, ", r->key.hex,
                (long long)r->bytes, (long long)r->arena);
    if (r)
        fprintf(out, "\"delegated_percent\": %s, \"predicted_seconds\": %s, \"cosine\": %s, ",
                json_finite(r->delegated, a), json_finite(r->predicted, a),
                json_finite(r->cosine, a));
    fprintf(out, "\"seconds\": %.6f, \"diagnostics\": [", e->seconds);
    put_messages(e, a, out);
    fputs("]}\n", out);
}

/* -- causes ------------------------------------------------------------------------------------ */

/* Returns the text of a cause: the operator's name if an operator is not supported, else the
 * text of the message. */
static const char *cause_of(const Message *m)
{
    return m->fault == FAULT_UNSUPPORTED && m->loc.op ? m->loc.op : m->text;
}

static void add_cause(Causes *c, const Message *m, const char *model)
{
    TableItem *at = table_at_text(&c->by_text, cause_of(m));
    Cause *is = at->ptr;
    if (!is) {
        at->ptr = is = NEW(c->arena, Cause, 1);
        is->text = cause_of(m);
        is->fault = m->fault;
        PUSH(c->arena, c->item, c->n, is);
    }
    if (!is->models.n || strcmp(is->models.item[is->models.n - 1], model) != 0)
        PUSH(c->arena, is->models.item, is->models.n, model);
}

/* Orders causes by the number of models, largest first, then by text. */
static int by_models(const void *a, const void *b)
{
    const Cause *l = *(Cause *const *)a, *r = *(Cause *const *)b;
    return l->models.n != r->models.n ? r->models.n - l->models.n : strcmp(l->text, r->text);
}

static Causes find_causes(const Batch *b, Arena *a)
{
    Causes c = {.arena = a, .by_text.arena = a};
    for (int i = 0; i < b->n; i++)
        for (int k = 0; b->entry[i].code && k < b->entry[i].n_messages; k++)
            if (b->entry[i].message[k].fault < N_FAULTS)
                add_cause(&c, &b->entry[i].message[k], b->entry[i].name);
    if (c.n)
        qsort(c.item, (size_t)c.n, sizeof *c.item, by_models);
    return c;
}

/* -- all --------------------------------------------------------------------------------------- */

static int count(const Batch *b, BatchStatus s)
{
    int n = 0;
    for (int i = 0; i < b->n; i++)
        n += b->entry[i].status == s;
    return n;
}

static void put_summary(const Batch *b, const Causes *c, Arena *a, FILE *out)
{
    fprintf(out, "{\"schema\": 1, \"summary\": {\"models\": %d", b->n);
    for (int s = BATCH_WRITTEN; s <= BATCH_CRASHED; s++)
        fprintf(out, ", \"%s\": %d", batch_status_name[s], count(b, (BatchStatus)s));
    fprintf(out, ", \"seconds\": %.6f, \"causes\": [", b->seconds);
    for (int i = 0; i < c->n; i++) {
        const Cause *is = c->item[i];
        fprintf(out, "%s{\"cause\": %s, \"fault\": \"%s\", \"models\": %d, \"names\": [", comma(i),
                json_text(a, is->text), fault_name[is->fault], is->models.n);
        for (int k = 0; k < is->models.n; k++)
            fprintf(out, "%s%s", comma(k), json_text(a, is->models.item[k]));
        fputs("]}", out);
    }
    fputs("]}}\n", out);
}

static const char *totals(const Batch *b, Arena *a)
{
    return arena_printf(a, "%d %s: %d written, %d unchanged, %d failed, %.2f s", b->n,
                        b->n == 1 ? "model" : "models",
                        count(b, BATCH_WRITTEN), count(b, BATCH_UNCHANGED),
                        count(b, BATCH_FAILED) + count(b, BATCH_CRASHED), b->seconds);
}

static void tell_causes(const Causes *c)
{
    enum { FEW = 3 };
    for (int i = 0; i < c->n; i++) {
        const Cause *is = c->item[i];
        say(stderr, "  %d model%s: %s%s (", is->models.n, is->models.n == 1 ? "" : "s",
            is->fault == FAULT_UNSUPPORTED ? "not supported: " : "", is->text);
        for (int k = 0; k < is->models.n && k < FEW; k++)
            say(stderr, "%s%s", comma(k), is->models.item[k]);
        say(stderr, "%s)\n", is->models.n > FEW ? ", ..." : "");
    }
}

/* -- JUnit ------------------------------------------------------------------------------------- */

static void put_attribute(FILE *f, const char *name, const char *value)
{
    fprintf(f, " %s=\"", name);
    html_put(f, value);
    putc('"', f);
}

static const char *said(const BatchEntry *e, Arena *a)
{
    Text t;
    if (text_open(&t))
        for (int i = 0; i < e->n_messages; i++)
            message_put(t.f, &e->message[i]);
    const char *text = text_close(&t, a);
    return text ? text : "";
}

/* Writes text with HTML's escapes, line by line, so that the line breaks are not escaped. */
static void put_lines(FILE *f, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        escape_put(f, ESCAPE_HTML, text, n);
        putc('\n', f);
        text += n + (text[n] == '\n');
    }
}

static void put_case(FILE *f, const BatchEntry *e, Arena *a)
{
    const char *kind = e->status == BATCH_CRASHED ? "error" : "failure";
    fputs("    <testcase", f);
    put_attribute(f, "name", e->name);
    put_attribute(f, "classname", arena_printf(a, "etc.%s", e->words.item[1]));
    fprintf(f, " time=\"%.6f\"", e->seconds);
    if (!e->code) {
        fputs("/>\n", f);
        return;
    }
    fprintf(f, ">\n      <%s", kind);
    put_attribute(f, "message", e->n_messages ? e->message[0].text : "");
    fprintf(f, " type=\"exit %d\">", e->code);
    put_lines(f, said(e, a));
    fprintf(f, "</%s>\n    </testcase>\n", kind);
}

static bool write_junit(const Batch *b, const char *path, Arena *a, Diag *d)
{
    Text t;
    if (text_open(&t)) {
        fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite", t.f);
        put_attribute(t.f, "name", b->list);
        fprintf(t.f, " tests=\"%d\" failures=\"%d\" errors=\"%d\" time=\"%.6f\">\n", b->n,
                count(b, BATCH_FAILED), count(b, BATCH_CRASHED), b->seconds);
        for (int i = 0; i < b->n; i++)
            put_case(t.f, &b->entry[i], a);
        fputs("  </testsuite>\n</testsuites>\n", t.f);
    }
    return text_write(&t, path, a, d);
}

/* -- GitHub's summary -------------------------------------------------------------------------- */

/* Writes a cell of a Markdown table. */
static void put_cell(FILE *f, const char *s)
{
    fputs("| ", f);
    for (; *s; s += *s == '|') {
        size_t n = strcspn(s, "|");
        escape_put(f, ESCAPE_HTML, s, n);
        s += n;
        if (*s)
            fputs("&#124;", f);
    }
    putc(' ', f);
}

static void put_row(FILE *f, const BatchEntry *e, Arena *a)
{
    const BatchRecord *r = e->known;
    put_cell(f, e->name);
    put_cell(f, batch_status_name[e->status]);
    put_cell(f, r ? with_commas(a, r->bytes) : "");
    put_cell(f, r ? with_commas(a, r->arena) : "");
    put_cell(f, arena_printf(a, "%.2f", e->seconds));
    put_cell(f, e->code && e->n_messages ? e->message[0].text : "");
    fputs("|\n", f);
}

static bool append(const char *path, const char *text, size_t n, Diag *d)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    bool ok = fd >= 0 && write(fd, text, n) == (ssize_t)n;
    if (fd >= 0)
        close(fd);
    return ok || diag_io(d, (Loc){.file = path}, "cannot write: %s", strerror(errno));
}

static bool add_table(const Batch *b, const char *path, Arena *a, Diag *d)
{
    Text t;
    if (text_open(&t)) {
        fprintf(t.f, "### etc batch: %s\n\n", totals(b, a));
        fputs("| model | status | bytes | arena | seconds | first message |\n"
              "|---|---|--:|--:|--:|---|\n", t.f);
        for (int i = 0; i < b->n; i++)
            put_row(t.f, &b->entry[i], a);
        fputs("\n", t.f);
    }
    const char *text = text_close(&t, a);
    return text ? append(path, text, t.n, d)
                : diag_io(d, (Loc){.file = path}, "no memory to write it");
}

bool batch_report(const Batch *b, const char *junit, const char *page, bool prints_summary,
                  Arena *a, Diag *d)
{
    Causes c = find_causes(b, a);
    const char *table = getenv("GITHUB_STEP_SUMMARY");
    put_summary(b, &c, a, stdout);
    if (prints_summary) {
        say(stderr, "%s: %s\n", b->list, totals(b, a));
        tell_causes(&c);
    }
    bool ok = !junit || write_junit(b, junit, a, d);
    ok = (!page || batch_page(b, &c, totals(b, a), page, a, d)) && ok;
    return (!table || !*table || add_table(b, table, a, d)) && ok;
}
