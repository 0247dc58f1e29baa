/* batch_page.c -- the page of `etc batch --report`: the causes of failures with the models that
 * each of them stops, and a row for each model, with a link to the model's own page if its flags
 * ask for one.  The page is one file without scripts. */
#include "compiler/batch.h"
#include "compiler/compiler.h"
#include <math.h>
#include <string.h>

/* Returns the path of `file` relative to the page at `page`.  Both paths are absolute. */
static const char *link_from(const char *page, const char *file, Arena *a)
{
    size_t common = 0;
    const char *up = "";
    for (size_t i = 0; page[i] && page[i] == file[i]; i++)
        common = page[i] == '/' ? i + 1 : common;
    for (const char *s = page + common; (s = strchr(s, '/')); s++)
        up = arena_join(a, up, "../");
    return arena_join(a, up, file + common);
}

/* Writes a path as part of an address: special characters are percent-encoded. */
static void put_link(FILE *f, const char *path)
{
    for (; *path; path++)
        if (strchr("%#?\"<>& ", *path) || (unsigned char)*path < ' ')
            fprintf(f, "%%%02X", (unsigned)(unsigned char)*path);
        else
            putc(*path, f);
}

static void put_name(FILE *f, const BatchEntry *e, const char *page, Arena *a)
{
    const char *own = e->options.report;
    bool is_there = own && *own == '/' && !e->code;
    fputs("<td><b>", f);
    if (is_there) {
        fputs("<a href=\"", f);
        put_link(f, link_from(page, own, a));
        fputs("\">", f);
    }
    html_put(f, e->name);
    fprintf(f, "%s</b><br><span>", is_there ? "</a>" : "");
    html_put(f, e->output);
    fputs("</span></td>", f);
}

static void put_cell(FILE *f, bool is_known, const char *text)
{
    fprintf(f, "<td class=\"n\">%s</td>", is_known ? text : "");
}

static void put_entry(FILE *f, const BatchEntry *e, const char *page, Arena *a)
{
    const BatchRecord *r = e->known, none = {.delegated = NAN, .predicted = NAN, .cosine = NAN};
    bool is_known = r != NULL;
    r = is_known ? r : &none;
    fprintf(f, "<tr%s>", e->code ? " class=\"failed\"" : "");
    put_name(f, e, page, a);
    fprintf(f, "<td>%s</td><td>%s</td>", e->words.item[1], batch_status_name[e->status]);
    put_cell(f, is_known, with_commas(a, r->bytes));
    put_cell(f, is_known, with_commas(a, r->arena));
    put_cell(f, isfinite(r->delegated), arena_printf(a, "%.4g %%", r->delegated));
    put_cell(f, isfinite(r->cosine), arena_printf(a, "%.6f", r->cosine));
    put_cell(f, isfinite(r->predicted), arena_printf(a, "%.4g ms", r->predicted * 1e3));
    put_cell(f, true, arena_printf(a, "%.2f s", e->seconds));
    fputs("<td>", f);
    for (int i = 0; i < e->n_messages && i < 3; i++) {
        html_put(f, e->message[i].text);
        fputs("<br>", f);
    }
    fputs(e->n_messages > 3 ? "...</td></tr>\n" : "</td></tr>\n", f);
}

static void put_cause(FILE *f, const Cause *c)
{
    fprintf(f, "<tr><td class=\"n\">%d</td><td>%s</td><td>", c->models.n,
            c->fault == FAULT_UNSUPPORTED ? "not supported" : fault_name[c->fault]);
    html_put(f, c->text);
    fputs("</td><td>", f);
    for (int i = 0; i < c->models.n; i++) {
        fputs(i ? ", " : "", f);
        html_put(f, c->models.item[i]);
    }
    fputs("</td></tr>\n", f);
}

bool batch_page(const Batch *b, const Causes *c, const char *totals, const char *path, Arena *a,
                Diag *d)
{
    Text t;
    assert(*path == '/');
    if (text_open(&t)) {
        page_head(t.f, b->list, "batch");
        fprintf(t.f, "<p>%s.</p>\n", totals);
        if (c->n)
            fputs("<h2>Causes of failure</h2>\n<table><tr><th>models</th><th></th><th>cause"
                  "</th><th>which</th></tr>\n", t.f);
        for (int i = 0; i < c->n; i++)
            put_cause(t.f, c->item[i]);
        fprintf(t.f, "%s<h2>Models</h2>\n<table><tr><th>model</th><th>command</th><th>status</th>"
                     "<th>bytes</th><th>arena</th><th>delegated</th><th>cosine</th>"
                     "<th>predicted</th><th>compile</th><th>messages</th></tr>\n",
                c->n ? "</table>\n" : "");
        for (int i = 0; i < b->n; i++)
            put_entry(t.f, &b->entry[i], path, a);
        fputs("</table>\n</body></html>\n", t.f);
    }
    return text_write(&t, path, a, d);
}
