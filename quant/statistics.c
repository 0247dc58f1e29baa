/* statistics.c -- statistics of values as a file: lines of text, sorted by their keys.
 *
 *     etc statistics 1
 *     model 0123456789abcdef
 *     KEY N V1 ... VN NAME        N numbers about the value NAME
 *     budget 1 MOST METRIC        these are the result of a search within this budget
 *     float32 0 NAME              this node stays float for the budget
 *     dynamic 0 NAME              this node gets its scales at run time: static ones are too coarse
 *     fast 0 NAME                 the library NAME multiplied
 *     part.KEY N V1 ... VN NAME   the state of an observer in a run that is not finished
 *     end N                       the number of lines
 *
 * Numbers have nine digits, with which floats are exact; those of parts are doubles with 17
 * digits.  The reader trusts nothing. */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "quant/internal.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums of products are too large for a file.  Only the run that evaluated the samples uses them. */
typedef struct Gram {
    const char *name;
    int nth;
    int64_t n;
    double *gram;
} Gram;

typedef struct Record {
    const char *key, *name;
    int n;
    float *v;
    double *exact; /* instead of v, where the key is of a part */
} Record;

struct Statistics {
    Arena *arena;
    const char *file;
    uint64_t model;
    Record *record;
    int n;
    Gram *gram;
    int n_grams;
};

/* -- the identity of a model ------------------------------------------------------------------- */

uint64_t statistics_hash(uint64_t h, const void *data, size_t n)
{
    const uint8_t *at = data;
    uint64_t word;
    for (; n >= sizeof word; n -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    for (; n; n--, at++)
        h = (h ^ *at) * UINT64_C(0x100000001b3);
    return h;
}

/* Hashes the text of the graphs, with sizes and weights, but without its first line, which has the
 * file's name. */
uint64_t statistics_model(const Program *p)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    if (f) {
        program_print(p, f);
        fclose(f);
        const char *rest = strchr(text, '\n');
        h = rest ? statistics_hash(h, rest, n - (size_t)(rest - text)) : h;
    }
    free(text);
    for (int i = 0; i < p->n_states; i++)
        if (p->state[i]->data && !p->state[i]->type.stride)
            h = statistics_hash(h, p->state[i]->data, (size_t)type_bytes(p->state[i]->type));
    return h;
}

/* -- records ----------------------------------------------------------------------------------- */

Statistics *statistics_new(Arena *a, uint64_t model)
{
    Statistics *s = NEW(a, Statistics, 1);
    *s = (Statistics){.arena = a, .model = model};
    return s;
}

const char *statistics_file(const Statistics *s)
{
    return s->file ? s->file : "statistics";
}

bool statistics_is_file(const Statistics *s)
{
    return s->file != NULL;
}

int statistics_count(const Statistics *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        n += !strncmp(s->record[i].key, "range.", 6) ||
             !strncmp(s->record[i].key, "magnitude.", 10);
    return n;
}

static bool is_exact(const char *key)
{
    return !strncmp(key, "part.", 5);
}

void statistics_add(Statistics *s, const char *key, const char *name, int n, const float *v)
{
    assert(n >= 0 && !is_exact(key));
    Record r = {arena_str(s->arena, key, strlen(key)), arena_str(s->arena, name, strlen(name)), n,
                NEW(s->arena, float, n + 1), NULL};
    memcpy(r.v, v, (size_t)n * sizeof *v);
    PUSH(s->arena, s->record, s->n, r);
}

double *statistics_add_exact(Statistics *s, const char *key, const char *name, int n)
{
    assert(n >= 0 && is_exact(key));
    Record r = {arena_str(s->arena, key, strlen(key)), arena_str(s->arena, name, strlen(name)), n,
                NULL, NEW(s->arena, double, n + 1)};
    PUSH(s->arena, s->record, s->n, r);
    return r.exact;
}

void statistics_copy(Statistics *to, const Statistics *from)
{
    for (int i = 0; i < from->n; i++)
        PUSH(to->arena, to->record, to->n, from->record[i]);
}

uint64_t statistics_of(const Statistics *s)
{
    return s->model;
}

void statistics_keep_products(Statistics *s, const char *name, int nth, const Products *p)
{
    Gram g = {arena_str(s->arena, name, strlen(name)), nth, products_count(p), p->gram};
    PUSH(s->arena, s->gram, s->n_grams, g);
}

static int by_name(const void *a, const void *b)
{
    const Gram *x = a, *y = b;
    const int c = strcmp(x->name, y->name);
    return c ? c : x->nth - y->nth;
}

double *statistics_products(const Statistics *s, const char *name, int nth, const Products *p)
{
    const Gram want = {.name = name, .nth = nth};
    const Gram *g = s->n_grams ? bsearch(&want, s->gram, (size_t)s->n_grams, sizeof want, by_name)
                               : NULL;
    return g && g->n == products_count(p) ? g->gram : NULL;
}

bool statistics_has_products(const Statistics *s)
{
    return s->n_grams > 0;
}

static int by_key(const void *a, const void *b)
{
    const Record *x = a, *y = b;
    const int c = strcmp(x->key, y->key);
    return c ? c : strcmp(x->name, y->name);
}

void statistics_sort(Statistics *s)
{
    if (s->n)
        qsort(s->record, (size_t)s->n, sizeof *s->record, by_key);
    if (s->n_grams)
        qsort(s->gram, (size_t)s->n_grams, sizeof *s->gram, by_name);
}

static const Record *record_find(const Statistics *s, const char *key, const char *name)
{
    const Record want = {.key = key, .name = name};
    return s->n ? bsearch(&want, s->record, (size_t)s->n, sizeof want, by_key) : NULL;
}

const float *statistics_get(const Statistics *s, const char *key, const char *name, int n)
{
    const Record *r = record_find(s, key, name);
    return r && r->n == n ? r->v : NULL;
}

const double *statistics_get_exact(const Statistics *s, const char *key, const char *name, int n)
{
    const Record *r = record_find(s, key, name);
    return r && r->n == n ? r->exact : NULL;
}

/* -- the results of a search ------------------------------------------------------------------ */

void statistics_keep(Statistics *s, const char *name)
{
    const float none = 0;
    statistics_add(s, "float32", name, 0, &none);
}

bool statistics_keeps(const Statistics *s, const char *name)
{
    return statistics_get(s, "float32", name, 0) != NULL;
}

void statistics_add_dynamic(Statistics *s, const char *name)
{
    const float none = 0;
    statistics_add(s, "dynamic", name, 0, &none);
}

bool statistics_is_dynamic(const Statistics *s, const char *name)
{
    return statistics_get(s, "dynamic", name, 0) != NULL;
}

Statistics *statistics_keeping(Arena *a, const char *const *name, int n)
{
    Statistics *s = statistics_new(a, 0);
    for (int i = 0; i < n; i++)
        statistics_keep(s, name[i]);
    statistics_sort(s);
    return s;
}

void statistics_set_library(Statistics *s, const char *name)
{
    const float none = 0;
    statistics_add(s, "fast", name, 0, &none);
}

const char *statistics_library(const Statistics *s)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->record[i].key, "fast"))
            return s->record[i].name;
    return NULL;
}

void statistics_set_budget(Statistics *s, const Recipe *r)
{
    assert(r->metric != METRIC_NONE);
    const float most = (float)r->max_drop;
    statistics_add(s, "budget", metric_name[r->metric - 1], 1, &most);
}

bool statistics_has_budget(const Statistics *s)
{
    bool has = false;
    for (int i = 0; metric_name[i]; i++)
        has = has || statistics_get(s, "budget", metric_name[i], 1);
    return has;
}

/* -- the file ---------------------------------------------------------------------------------- */

void statistics_write(const Statistics *s, FILE *out)
{
    fprintf(out, "etc statistics 1\nmodel %016" PRIx64 "\n", s->model);
    for (int i = 0; i < s->n; i++) {
        const Record *r = &s->record[i];
        fprintf(out, "%s %d", r->key, r->n);
        for (int k = 0; k < r->n; k++)
            fprintf(out, r->exact ? " %.17g" : " %.9g", r->exact ? r->exact[k] : (double)r->v[k]);
        fprintf(out, " %s\n", r->name);
    }
    fprintf(out, "end %d\n", s->n);
}

typedef struct Reader {
    Statistics *s;
    const char *at; /* the next character of a NUL-terminated text */
    int line;
    Diag *d;
} Reader;

static bool wrong(const Reader *r, const char *what)
{
    return diag_error(r->d, (Loc){.file = r->s->file, .line = r->line}, "%s", what);
}

static bool skip(Reader *r, const char *text)
{
    const size_t n = strlen(text);
    const bool is = !strncmp(r->at, text, n);
    r->at += is ? n : 0;
    return is;
}

/* Reads a word, which is not empty, up to the next `end`, and moves past that. */
static const char *word(Reader *r, char end)
{
    const char *to = r->at;
    while (*to && *to != '\n' && *to != end)
        to++;
    if (*to != end || to == r->at)
        return NULL;
    const char *s = arena_str(r->s->arena, r->at, (size_t)(to - r->at));
    r->at = to + 1;
    return s;
}

static bool whole_number(const char *s, int64_t most, int *v)
{
    char *end;
    const long long n = s && *s >= '0' && *s <= '9' ? strtoll(s, &end, 10) : -1;
    if (n < 0 || *end || n > most)
        return false;
    *v = (int)n;
    return true;
}

/* Reads a number as a double or as a float; the other pointer is NULL. */
static bool read_number(Reader *r, double *exact, float *rounded)
{
    char *end = NULL;
    if (*r->at == ' ' || *r->at == '\n') /* strtod would skip it */
        return false;
    const double v = exact ? strtod(r->at, &end) : (double)strtof(r->at, &end);
    if (end == r->at || *end != ' ' || !isfinite(v))
        return false;
    r->at = end + 1;
    if (exact)
        *exact = v;
    else
        *rounded = (float)v;
    return true;
}

static bool read_record(Reader *r, int64_t left)
{
    Record to = {.key = word(r, ' ')};
    if (!to.key || !whole_number(word(r, ' '), left / 2, &to.n))
        return wrong(r, "is not a line KEY N V1 ... VN NAME");
    to.exact = is_exact(to.key) ? NEW(r->s->arena, double, to.n + 1) : NULL;
    to.v = to.exact ? NULL : NEW(r->s->arena, float, to.n + 1);
    for (int i = 0; i < to.n; i++)
        if (!read_number(r, to.exact ? to.exact + i : NULL, to.v ? to.v + i : NULL))
            return wrong(r, "has fewer numbers than it says, or some that are none");
    to.name = word(r, '\n');
    if (!to.name)
        return wrong(r, "names no value");
    if (r->s->n && by_key(&r->s->record[r->s->n - 1], &to) >= 0)
        return wrong(r, "appears twice, or out of order");
    PUSH(r->s->arena, r->s->record, r->s->n, to);
    return true;
}

static bool read_head(Reader *r)
{
    if (!skip(r, "etc statistics 1\n"))
        return wrong(r, "is not a file of statistics that `etc quantize` wrote");
    r->line++;
    const char *hex = skip(r, "model ") ? word(r, '\n') : NULL;
    if (!hex || strlen(hex) != 16 || strspn(hex, "0123456789abcdef") != 16)
        return wrong(r, "does not say which model it is of");
    r->s->model = strtoull(hex, NULL, 16);
    r->line++;
    return true;
}

Statistics *statistics_read(Arena *a, const char *file, const char *text, size_t n, Diag *d)
{
    const char *copy = arena_str(a, n ? text : "", n);
    Reader r = {.s = statistics_new(a, 0), .at = copy, .line = 1, .d = d};
    int count = 0;
    r.s->file = file;
    if (!read_head(&r))
        return NULL;
    for (; *r.at && strncmp(r.at, "end ", 4) != 0; r.line++)
        if (!read_record(&r, (int64_t)(n - (size_t)(r.at - copy))))
            return NULL;
    bool is_whole = skip(&r, "end ") && whole_number(word(&r, '\n'), INT32_MAX, &count) &&
                    count == r.s->n && r.at == copy + n;
    return is_whole || wrong(&r, "is cut off") ? r.s : NULL;
}

bool statistics_fit(const Statistics *s, const Program *p, Diag *d)
{
    return s->model == statistics_model(p) ||
           diag_error(d, (Loc){.file = s->file},
                      "was made of another model than '%s', or for another backend: "
                      "make a new one with `etc quantize`",
                      p->name);
}
