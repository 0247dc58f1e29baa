/* refit_record.c -- writes the record of a .pte that is compiled with --refittable.
 *
 *     etc.refit 1 SOURCES\n
 *     KIND N\n            N bytes, \n            for each section
 *
 * KIND is a flag, such as "--dim"; "preset", the name of a recipe; "recipe", "statistics" or
 * "ops", a file; "graph", the text of the graph; or "fixed:I", the bytes of state I of that
 * text.  The file is not trusted: only the flags of a list are accepted, and they are parsed
 * like those of the command line. */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include "compiler/run.h"
#include "compiler/etc_sources.h"

/* The flags that a record may hold.  Their values are texts; a flag without a value has none. */
static const struct {
    const char *name;
    size_t at; /* the offset in Options of a text, of Strings or of a bool */
    enum { ONE_TEXT, LIST_OF_TEXTS, NO_VALUE } value;
} kept_flag[] = {
    {"--dim", offsetof(Options, dims), LIST_OF_TEXTS},
    {"--backend", offsetof(Options, backend), ONE_TEXT},
    {"--delegate", offsetof(Options, delegate), ONE_TEXT},
    {"--objective", offsetof(Options, objective), ONE_TEXT},
    {"--io", offsetof(Options, io), ONE_TEXT},
    {"--target-runtime", offsetof(Options, target_runtime), ONE_TEXT},
    {"--borrow-inputs", offsetof(Options, borrow_inputs), NO_VALUE},
};
enum { N_KEPT = sizeof kept_flag / sizeof *kept_flag };

/* -- the graph --------------------------------------------------------------------------------- */

static void drop_sources(const Graph *g)
{
    for (Node *n = g->first; n; n = n->next) {
        n->loc.module = n->loc.source = NULL;
        for (const Graph *inner = NULL; (inner = region_next(n, inner));)
            drop_sources(inner);
    }
}

const char *refit_graph(const Options *o, const Program *p, Arena *a, Diag *d)
{
    Text t;
    Source src = {.file = o->model, .line = 1};
    if (!custom_read(o, a, &src.custom, d))
        return NULL;
    if (text_open(&t))
        program_print(p, t.f);
    src.text = (char *)(uintptr_t)text_close(&t, a);
    Program *copy = src.text ? program_parse(a, &src, d) : NULL;
    if (!copy)
        return NULL;
    copy->name = "model";
    for (int i = 0; i < copy->n_states; i++)
        copy->state[i]->file = arena_printf(a, "%d", p->state[i]->storage);
    for (int i = 0; i < copy->n_methods; i++)
        drop_sources(copy->method[i]);
    if (text_open(&t))
        program_print(copy, t.f);
    return text_close(&t, a);
}

int64_t refit_extent(Type t)
{
    int64_t last = 1, step;
    bool ok = true;
    for (int i = 0; t.stride && ok && i < t.rank; i++) {
        if (!t.dim[i].value)
            return 0;
        ok = t.stride[i].value >= 0 && mul_ok(t.dim[i].value - 1, t.stride[i].value, &step) &&
             add_ok(last, step, &last);
    }
    ok = ok && mul_ok(last, dtype_bytes(t.dtype), &last);
    return !ok ? -1 : t.stride ? last : type_bytes(t);
}

static void put_section(FILE *f, const char *kind, const void *data, size_t n)
{
    fprintf(f, "%s %zu\n", kind, n);
    fwrite(data, 1, n, f);
    fputc('\n', f);
}

static void put_text(FILE *f, const char *kind, const char *text)
{
    put_section(f, kind, text, strlen(text));
}

/* Closes the text, which may hold arbitrary bytes, and makes it the session's record. */
static bool take_record(Session *s, Text *t, Arena *a, Diag *d)
{
    s->record = text_close(t, a);
    s->n_record = (int64_t)t->n;
    return s->record || diag_io(d, (Loc){0}, "no memory for a record of the graph");
}

bool refit_keep_graph(const Options *o, const Program *p, Arena *a, Diag *d)
{
    Text t;
    const char *graph = refit_graph(o, p, a, d);
    if (!graph)
        return false;
    if (text_open(&t))
        put_text(t.f, "graph", graph);
    for (int i = 0; i < p->n_states && t.f; i++) {
        const State *s = p->state[i];
        if (s->is_fixed || !strcmp(s->file, "-"))
            put_section(t.f, arena_printf(a, "fixed:%d", i), s->data, (size_t)refit_extent(s->type));
    }
    return take_record(p->session, &t, a, d);
}

/* -- the record -------------------------------------------------------------------------------- */

static void put_flags(FILE *f, const Options *o)
{
    for (int i = 0; i < N_KEPT; i++) {
        const void *at = (const char *)o + kept_flag[i].at;
        const Strings one = {(const char **)(uintptr_t)at, 1};
        const Strings *all = kept_flag[i].value == LIST_OF_TEXTS ? at : &one;
        if (kept_flag[i].value == NO_VALUE && *(const bool *)at)
            put_text(f, kept_flag[i].name, "");
        for (int k = 0; k < all->n && kept_flag[i].value != NO_VALUE; k++)
            if (all->item[k])
                put_text(f, kept_flag[i].name, all->item[k]);
    }
}

static bool put_file(FILE *f, const char *kind, const Options *o, const char *path, Diag *d)
{
    const uint8_t *data;
    size_t n;
    bool ok = file_map(o->files, path, &data, &n, d) != NULL;
    if (ok)
        put_section(f, kind, n ? data : (const uint8_t *)"", n);
    return ok;
}

/* Writes the recipe and the statistics.  The statistics replace the samples, as in a build with
 * --statistics. */
static bool put_quantization(FILE *f, const Options *o, const Program *p, Arena *a, Diag *d)
{
    Text t;
    const QuantJob *job = p->session->quant;
    const Statistics *s = !job ? NULL : job->samples ? job->seen : job->statistics;
    if (o->recipe && recipe_is_preset(o->recipe))
        put_text(f, "preset", o->recipe);
    else if (o->recipe && !put_file(f, "recipe", o, o->recipe, d))
        return false;
    if (!s)
        return true;
    if (text_open(&t))
        statistics_write(s, t.f);
    const char *text = text_close(&t, a);
    if (text)
        put_text(f, "statistics", text);
    return text || diag_io(d, (Loc){0}, "no memory for statistics");
}

bool refit_keep(const Options *o, const Program *p, Arena *a, Diag *d)
{
    Text t;
    Session *s = p->session;
    bool ok = true;
    if (!text_open(&t))
        return diag_io(d, (Loc){0}, "no memory for a record of the graph");
    fputs(REFIT_MAGIC ETC_SOURCES "\n", t.f);
    put_flags(t.f, o);
    ok = put_quantization(t.f, o, p, a, d);
    for (int i = 0; i < o->ops.n && ok; i++)
        ok = put_file(t.f, "ops", o, o->ops.item[i], d);
    fwrite(s->record, 1, (size_t)s->n_record, t.f);
    return take_record(s, &t, a, d) && ok;
}

bool refit_keeps_flag(const char *name)
{
    int i = 0;
    while (i < N_KEPT && strcmp(kept_flag[i].name, name) != 0)
        i++;
    return i < N_KEPT;
}
