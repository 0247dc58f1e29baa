/* sizes.c -- calls a model with symbolic sizes with every combination of sizes in and near their
 * ranges.  Each call must give what the evaluator gives, or be refused.
 *
 *     sizes pte MODEL.etir MODEL.pte    in runtime-lite: inputs as the symbols say, then with each
 *                                       dimension off for itself, then, if these are not too many,
 *                                       all combinations of dimensions
 *     sizes c MODEL.etir CALLS          writes CALLS for the program that `driver` makes
 *     sizes driver MODEL.etir           prints that program, which calls model_run
 *     sizes random SEED                 prints a model whose nodes take sizes for equal that need
 *                                       not be
 *
 * `pte` and the driver print "accepted N of M, W wrong" and exit with 1 if W is not 0.  N counts
 * the calls whose inputs have the sizes that the symbols give. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/compiler.h"
#include "tests/pte_load.h"

enum { MAX_FILE = 1 << 20, MAX_CALLS = 5000, MAX_DIGITS = 64 };

typedef struct Model {
    Arena *a; /* of the program */
    Program *p;
    Graph *g;
    Diag quiet;
} Model;

static uint8_t *slurp(Arena *a, const char *path, size_t *n)
{
    uint8_t *s = arena_alloc(a, MAX_FILE, 1);
    FILE *f = fopen(path, "rb");
    *n = f ? fread(s, 1, MAX_FILE - 1, f) : 0;
    if (!f || !*n || fclose(f))
        exit(2);
    return s;
}

static Model load(Arena *a, const char *path)
{
    size_t n;
    Diag d = {.out = stderr};
    Source src = {.file = path, .text = (const char *)slurp(a, path, &n), .line = 1};
    Program *p = program_parse(a, &src, &d);
    if (!p || !program_verify(p, &d))
        exit(2);
    return (Model){a, p, p->method[0], {.out = fopen("/dev/null", "w")}};
}

/* -- one call ---------------------------------------------------------------------------------- */

/* The symbol that an input of one integer tells; NULL: none. */
static const Symbol *item_of(const Graph *g, const Value *input)
{
    const Symbol *s;
    int64_t scale, offset;
    for (const Node *n = g->first; n; n = n->next)
        if (n->op == OP_LOCAL_SCALAR_DENSE && n->in[0] == input && n->out[0]->type.dim &&
            dim_is_linear(*n->out[0]->type.dim, &s, &scale, &offset))
            return s;
    return NULL;
}

/* Returns whether some size of an input tells the symbol. */
static bool is_size(const Model *m, const Symbol *s)
{
    const Symbol *of;
    int64_t scale, offset;
    for (int i = 0; i < m->g->n_in; i++)
        for (int k = 0; k < m->g->in[i]->type.rank; k++)
            if (dim_is_linear(m->g->in[i]->type.dim[k], &of, &scale, &offset) && of == s)
                return true;
    return false;
}

/* NULL where the evaluator refuses. */
static EtcTensor **evaluate(Model *m, EtcTensor *const *in, const int64_t *symbol, Arena *a)
{
    EtcTensor **out = NEW(a, EtcTensor *, m->g->n_out + 1), *update[16];
    return eval_graph(m->g, in, symbol, false, a, out, update, &m->quiet) ? out : NULL;
}

static EtcTensor *input(Type t, const int64_t *dim, uint64_t *seed, Arena *a)
{
    EtcTensor *v = tensor_new(a, t.dtype, t.rank, dim);
    inputs_fill(v, seed);
    for (int64_t i = 0; t.dtype == ETC_I64 && i < etc_numel(v); i++)
        ((int64_t *)v->data)[i] = 0; /* an index into whatever is there */
    return v;
}

static bool is_near(const EtcTensor *got, const EtcTensor *want)
{
    int64_t n = etc_numel(want), size = (int64_t)etc_dtype_size((int)want->dtype);
    if (got->dtype != want->dtype || got->rank != want->rank)
        return false;
    for (int i = 0; i < want->rank; i++)
        if (got->dim[i] != want->dim[i])
            return false;
    for (int64_t i = 0; i < n && want->dtype == ETC_F32; i++) {
        double x = tensor_number(got, i), y = tensor_number(want, i);
        if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= 1e-5 * (1 + fabs(y))))
            return false;
    }
    return want->dtype == ETC_F32 || !n || !memcmp(got->data, want->data, (size_t)(n * size));
}

/* -- all numbers of some digits ---------------------------------------------------------------- */

typedef struct Digit {
    int64_t lo, hi, at;
} Digit;

static bool next(Digit *d, int n)
{
    for (int i = 0; i < n; i++) {
        if (++d[i].at <= d[i].hi)
            return true;
        d[i].at = d[i].lo;
    }
    return false;
}

static Digit around(int64_t lo, int64_t hi, int64_t least)
{
    lo = lo - 1 < least ? least : lo - 1;
    return (Digit){lo, hi + 1, lo};
}

static int64_t count(const Digit *d, int n)
{
    int64_t all = 1;
    for (int i = 0; i < n && all <= MAX_CALLS; i++)
        all *= d[i].hi - d[i].lo + 1;
    return all;
}

/* Sets the digits from which a model's sizes follow: its symbols, and elements that are to be sizes
 * which are told already.  Returns their number. */
static int digits_of_symbols(const Model *m, Digit *d)
{
    int n = 0;
    for (; n < m->p->n_syms; n++)
        d[n] = around(m->p->sym[n]->lo, m->p->sym[n]->hi, INT64_MIN);
    for (int i = 0; i < m->g->n_in; i++) {
        const Symbol *s = item_of(m->g, m->g->in[i]);
        if (s && is_size(m, s))
            d[n++] = around(s->lo, s->hi, INT64_MIN);
    }
    return n;
}

/* The element of input v; `item` moves on where it is a digit of its own. */
static int64_t element_of(const Model *m, const Value *v, const Digit *symbol, const Digit **item)
{
    const Symbol *s = item_of(m->g, v);
    return is_size(m, s) ? (*item)++->at : symbol[s->index].at;
}

/* -- .pte -------------------------------------------------------------------------------------- */

typedef struct Tally {
    int calls, accepted, wrong;
} Tally;

/* Every dimension of every input, and every element that is a size. */
static int digits_of_inputs(const Model *m, Digit *d)
{
    int n = 0;
    for (int i = 0; i < m->g->n_in; i++) {
        const Value *v = m->g->in[i];
        const Symbol *s = item_of(m->g, v);
        for (int k = 0; k < v->type.rank; k++) {
            int64_t lo, hi;
            dim_range(v->type.dim[k], &lo, &hi);
            d[n++] = around(lo, hi, 0);
        }
        if (s)
            d[n++] = around(s->lo, s->hi, INT64_MIN);
        if (n > MAX_DIGITS - MAX_RANK)
            exit(2);
    }
    return n;
}

/* Sets them to what the symbols say; false where one would be negative. */
static bool follow_symbols(const Model *m, const Digit *symbol, Digit *d)
{
    const Digit *item = symbol + m->p->n_syms;
    int64_t at[MAX_DIGITS];
    for (int i = 0; i < m->p->n_syms; i++)
        at[i] = symbol[i].at;
    for (int i = 0; i < m->g->n_in; i++) {
        const Value *v = m->g->in[i];
        for (int k = 0; k < v->type.rank; k++, d++)
            if (!dim_eval(v->type.dim[k], at, &d->at) || d->at < 0)
                return false;
        if (item_of(m->g, v))
            d++->at = element_of(m, v, symbol, &item);
    }
    return true;
}

static EtcStatus call_lite(const Model *m, Loaded *l, EtcTensor *const *in, Arena *a)
{
    EtcStatus s = ETC_OK;
    for (int i = 0; i < m->g->n_in && !s; i++) {
        EtcTensor copy = *tensor_copy(in[i], a);
        size_t n = (size_t)etc_numel(&copy) * etc_dtype_size((int)copy.dtype);
        free(l->input[i]);
        l->input[i] = malloc(n ? n : 1);
        memcpy(l->input[i], copy.data, n);
        copy.data = l->input[i];
        copy.capacity = (int64_t)n;
        EtcValue v = {.tag = ETC_TENSOR, .as.tensor = &copy};
        s = etc_method_set_input(l->method, i, &v, &l->e);
    }
    return s ? s : etc_method_run(l->method, &l->e);
}

static void show_sizes(const Model *m, EtcTensor *const *in)
{
    for (int i = 0; i < m->g->n_in; i++) {
        fprintf(stderr, "%s%s[", i ? ", " : "", m->g->in[i]->name);
        for (int k = 0; k < in[i]->rank; k++)
            fprintf(stderr, "%s%d", k ? "," : "", (int)in[i]->dim[k]);
        fputs("]", stderr);
    }
    fputs(": wrong\n", stderr);
}

static bool is_right(Model *m, const Loaded *l, EtcTensor *const *in, Arena *a)
{
    int64_t *symbol = NEW(a, int64_t, m->p->n_syms + 1);
    inputs_read_symbols(m->g, in, symbol);
    EtcTensor **want = evaluate(m, in, symbol, a);
    bool ok = want != NULL;
    for (int i = 0; i < m->g->n_out && ok; i++)
        ok = is_near(etc_method_output(l->method, i)->as.tensor, want[i]);
    if (!ok)
        show_sizes(m, in);
    return ok;
}

/* Returns whether the call was taken.  A method whose call was refused may be called again. */
static bool try_pte(Model *m, Loaded *l, const Digit *d, uint64_t *seed, Tally *t)
{
    Arena *a = arena_new();
    EtcTensor **in = NEW(a, EtcTensor *, m->g->n_in + 1);
    int64_t dim[MAX_RANK];
    for (int i = 0; i < m->g->n_in; i++) {
        const Value *v = m->g->in[i];
        for (int k = 0; k < v->type.rank; k++)
            dim[k] = (d++)->at;
        in[i] = input(v->type, dim, seed, a);
        if (item_of(m->g, v))
            *(int64_t *)in[i]->data = (d++)->at;
    }
    bool taken = call_lite(m, l, in, a) == ETC_OK;
    t->calls++;
    t->wrong += taken && !is_right(m, l, in, a);
    arena_free(a);
    return taken;
}

/* Each number off for itself. */
static void try_near(Model *m, Loaded *l, Digit *d, int n, uint64_t *seed, Tally *t)
{
    for (int i = 0; i < n; i++) {
        Digit right = d[i];
        for (d[i].at = right.lo; d[i].at <= right.hi; d[i].at++)
            if (d[i].at != right.at)
                try_pte(m, l, d, seed, t);
        d[i] = right;
    }
}

static void try_all(Model *m, Loaded *l, uint64_t *seed, Tally *t)
{
    Digit symbol[MAX_DIGITS], d[MAX_DIGITS];
    int n = digits_of_inputs(m, d), n_symbols = digits_of_symbols(m, symbol);
    do {
        if (!follow_symbols(m, symbol, d))
            continue;
        t->accepted += try_pte(m, l, d, seed, t);
        try_near(m, l, d, n, seed, t);
    } while (next(symbol, n_symbols));
    digits_of_inputs(m, d);
    if (count(d, n) <= MAX_CALLS)
        do
            try_pte(m, l, d, seed, t);
        while (next(d, n));
}

static int run_pte(Model *m, const char *path)
{
    Loaded l;
    Tally t = {0};
    size_t n;
    uint64_t seed = 1;
    const uint8_t *bytes = slurp(m->a, path, &n);
    uint8_t *file = loaded_memory(64, n);
    memcpy(file, bytes, n);
    if (loaded_start(&l, file, n, 0))
        exit(2);
    try_all(m, &l, &seed, &t);
    loaded_stop(&l);
    printf("accepted %d of %d, %d wrong\n", t.accepted, t.calls, t.wrong);
    return t.wrong != 0;
}

/* -- C ----------------------------------------------------------------------------------------- */

/* 0 where a size is negative. */
static int64_t bytes_of(Type t, const int64_t *symbol, int64_t *dim)
{
    int64_t n = (int64_t)etc_dtype_size((int)t.dtype);
    for (int k = 0; k < t.rank; k++) {
        if (!dim_eval(t.dim[k], symbol, &dim[k]) || dim[k] < 0)
            return 0;
        n *= dim[k];
    }
    return n;
}

static void write_words(FILE *f, const int64_t *v, int n)
{
    fwrite(v, sizeof *v, (size_t)n, f);
}

static void write_call(Model *m, const Digit *d, uint64_t *seed, FILE *f)
{
    Arena *a = arena_new();
    EtcTensor **in = NEW(a, EtcTensor *, m->g->n_in + 1), **want = NULL;
    int64_t *symbol = NEW(a, int64_t, m->p->n_syms + 1), dim[MAX_RANK], bytes, ok;
    const Digit *item = d + m->p->n_syms;
    bool is_real = true;
    for (int i = 0; i < m->p->n_syms; i++)
        symbol[i] = d[i].at;
    write_words(f, symbol, m->p->n_syms);
    for (int i = 0; i < m->g->n_in; i++) {
        memset(dim, 0, sizeof dim);
        bytes = bytes_of(m->g->in[i]->type, symbol, dim);
        for (int k = 0; k < m->g->in[i]->type.rank; k++)
            is_real = is_real && dim[k] >= 0;
        in[i] = bytes ? input(m->g->in[i]->type, dim, seed, a) : NULL;
        if (!bytes)
            in[i] = tensor_new(a, m->g->in[i]->type.dtype, m->g->in[i]->type.rank,
                               is_real ? dim : (int64_t[MAX_RANK]){0});
        if (item_of(m->g, m->g->in[i]))
            *(int64_t *)in[i]->data = element_of(m, m->g->in[i], d, &item);
        write_words(f, &bytes, 1);
        fwrite(in[i]->data, 1, (size_t)bytes, f);
    }
    want = is_real ? evaluate(m, in, symbol, a) : NULL;
    ok = want != NULL;
    write_words(f, &ok, 1);
    for (int i = 0; i < m->g->n_out; i++) {
        bytes = bytes_of(m->g->out[i]->type, symbol, dim);
        write_words(f, &bytes, 1);
        if (want)
            fwrite(want[i]->data, 1, (size_t)bytes, f);
    }
    arena_free(a);
}

static int write_calls(Model *m, const char *path)
{
    Digit d[MAX_DIGITS];
    uint64_t seed = 1;
    FILE *f = fopen(path, "wb");
    int n = digits_of_symbols(m, d);
    if (!f || count(d, n) > MAX_CALLS)
        return 2;
    do
        write_call(m, d, &seed, f);
    while (next(d, n));
    return fclose(f) != 0;
}

/* -- the program that makes the calls ---------------------------------------------------------- */

static const char driver_head[] =
    "#define _POSIX_C_SOURCE 200809L\n#include \"model.h\"\n#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    "#include <string.h>\n\n"
    "static FILE *f;\n\n"
    "static int word(int64_t *v)\n{\n    return fread(v, sizeof *v, 1, f) == 1;\n}\n\n"
    "/* Of the exact size, so that a sanitizer sees the byte behind it. */\n"
    "static void *block(int64_t *bytes, int with_data)\n{\n"
    "    if (!word(bytes)) {\n        exit(2);\n    }\n"
    "    void *p = malloc((size_t)*bytes);\n"
    "    if (with_data && fread(p, 1, (size_t)*bytes, f) != (size_t)*bytes) {\n        exit(2);\n"
    "    }\n    return p;\n}\n\n"
    "static int is_near(const void *got, const void *want, int64_t bytes, int is_float)\n{\n"
    "    const float *x = (const float *)got, *y = (const float *)want;\n"
    "    for (int64_t i = 0; is_float && (i < (bytes / 4)); i++) {\n"
    "        if (!(x[i] == y[i]) && !(isnan(x[i]) && isnan(y[i])) &&\n"
    "            !(fabsf(x[i] - y[i]) <= (1e-5f * (1 + fabsf(y[i]))))) {\n"
    "            return 0;\n        }\n    }\n"
    "    return is_float || (memcmp(got, want, (size_t)bytes) == 0);\n}\n\n"
    "int main(int argc, char **argv)\n{\n"
    "    int calls = 0, accepted = 0, wrong = 0;\n"
    "    f = fopen(argv[argc - 1], \"rb\");\n"
    "    void *arena = NULL;\n"
    "    if ((f == NULL) || (posix_memalign(&arena, 64, MODEL_ARENA_BYTES + 1) != 0)) {\n"
    "        return 2;\n    }\n";

/* A symbol that neither the caller nor an input's size tells. */
static bool is_item(const Model *m, const Symbol *s)
{
    if (is_size(m, s))
        return false;
    for (const Node *n = m->g->first; n; n = n->next)
        if (n->op == OP_LOCAL_SCALAR_DENSE && n->out[0]->type.dim &&
            dim_equal(*n->out[0]->type.dim, dim_symbol(m->p, s)))
            return true;
    return false;
}

static void print_reads(const Model *m)
{
    const Graph *g = m->g;
    printf("    int64_t sym[%d], ok, n[%d];\n    while (word(&sym[0])) {\n", m->p->n_syms,
           g->n_in + g->n_out);
    for (int i = 1; i < m->p->n_syms; i++)
        printf("        word(&sym[%d]);\n", i);
    for (int i = 0; i < g->n_in; i++)
        printf("        void *in%d = block(&n[%d], 1);\n", i, i);
    printf("        word(&ok);\n");
    for (int i = 0; i < g->n_out; i++) {
        int k = g->n_in + i;
        printf("        void *want%d = block(&n[%d], ok != 0), *out%d = malloc((size_t)n[%d]);\n",
               i, k, i, k);
    }
}

static void print_call(const Model *m)
{
    const Graph *g = m->g;
    printf("        int is_done = model_run(");
    for (int i = 0; i < g->n_in; i++)
        printf("in%d, ", i);
    for (int i = 0; i < g->n_out; i++)
        printf("out%d, ", i);
    for (int i = 0; i < m->p->n_syms; i++)
        if (!is_item(m, m->p->sym[i]))
            printf("sym[%d], ", i);
    printf("arena) == 0;\n        int is_right = !is_done || (ok != 0);\n");
    for (int i = 0; i < g->n_out; i++)
        printf("        is_right = is_right && (!is_done || is_near(out%d, want%d, n[%d], %d));\n",
               i, i, g->n_in + i, g->out[i]->type.dtype == ETC_F32);
    printf("        calls++;\n        accepted += is_done;\n        wrong += !is_right;\n"
           "        if (!is_right) {\n            printf(\"wrong:\");\n");
    for (int i = 0; i < m->p->n_syms; i++)
        printf("            printf(\" %s = %%lld\", (long long)sym[%d]);\n", m->p->sym[i]->name, i);
    printf("            puts(\"\");\n        }\n");
    for (int i = 0; i < g->n_in; i++)
        printf("        free(in%d);\n", i);
    for (int i = 0; i < g->n_out; i++)
        printf("        free(out%d);\n        free(want%d);\n", i, i);
}

static int print_driver(const Model *m)
{
    fputs(driver_head, stdout);
    print_reads(m);
    print_call(m);
    puts("    }\n    printf(\"accepted %d of %d, %d wrong\\n\", accepted, calls, wrong);\n"
         "    return wrong != 0;\n}");
    return 0;
}

/* -- models at random -------------------------------------------------------------------------- */

enum { N_SYMS = 3, MAX_VALUES = 40 };

typedef struct Gen {
    Program *p;
    Graph *g;
    Diag quiet;
    uint64_t seed;
    Value *value[MAX_VALUES], *index; /* of floats; a vector of zeros */
    int n;
} Gen;

static int below(Gen *r, int n)
{
    return (int)(inputs_draw(&r->seed) % (uint64_t)n);
}

static Dim any_symbol(Gen *r)
{
    return dim_symbol(r->p, r->p->sym[below(r, N_SYMS)]);
}

static Dim any_size(Gen *r)
{
    switch (below(r, 8)) {
    case 0:
        return dim_add(r->p, any_symbol(r), DIM(1));
    case 1:
        return dim_mul(r->p, any_symbol(r), DIM(2));
    case 2:
        return DIM(1 + below(r, 3));
    default:
        return any_symbol(r);
    }
}

static Value *any_value(Gen *r, int rank)
{
    for (int tries = 0; tries < 30; tries++) {
        Value *v = r->value[below(r, r->n)];
        if (rank < 0 || v->type.rank == rank)
            return v;
    }
    return NULL;
}

static Loc loc_of(const Gen *r)
{
    return (Loc){.file = "m", .node = arena_printf(r->p->arena, "v%d", r->n)};
}

static Node *gen_pair(Gen *r)
{
    static const OpId op[] = {OP_ADD_TENSOR, OP_MUL_TENSOR, OP_SUB_TENSOR, OP_MAXIMUM};
    return build(r->g, NULL, loc_of(r), op[below(r, 4)], &r->quiet, "vv", any_value(r, -1),
                 any_value(r, -1));
}

static Node *gen_where(Gen *r)
{
    Node *n = build(r->g, NULL, loc_of(r), OP_GT_SCALAR, &r->quiet, "vi", any_value(r, -1),
                    (int64_t)0);
    return n ? build(r->g, NULL, loc_of(r), OP_WHERE_SELF, &r->quiet, "vvv", n->out[0],
                     any_value(r, -1), any_value(r, -1))
             : NULL;
}

static Node *gen_cat(Gen *r)
{
    Value *x[2];
    x[0] = any_value(r, 1 + below(r, 3));
    x[1] = x[0] ? any_value(r, x[0]->type.rank) : NULL;
    return x[1] ? build(r->g, NULL, loc_of(r), OP_CAT, &r->quiet, "Vi", 2, x,
                        (int64_t)below(r, x[0]->type.rank))
                : NULL;
}

static Node *gen_product(Gen *r)
{
    static const OpId op[] = {OP_MM, OP_BMM, OP_LINEAR};
    int k = below(r, 3), rank = k == 1 ? 3 : 2;
    Value *x = any_value(r, rank), *y = any_value(r, rank);
    return x && y ? build(r->g, NULL, loc_of(r), op[k], &r->quiet, "vv", x, y) : NULL;
}

static Node *gen_view(Gen *r)
{
    Dim size[3];
    int rank = 1 + below(r, 3), hole = below(r, 2 * rank);
    for (int i = 0; i < rank; i++)
        size[i] = i == hole ? DIM(-1) : any_size(r);
    return build(r->g, NULL, loc_of(r), OP_VIEW, &r->quiet, "vD", any_value(r, -1), rank, size);
}

static Node *gen_expand(Gen *r)
{
    Dim size[3];
    int rank = 1 + below(r, 3);
    for (int i = 0; i < rank; i++)
        size[i] = any_size(r);
    return build(r->g, NULL, loc_of(r), OP_EXPAND, &r->quiet, "vD", any_value(r, -1), rank, size);
}

static Node *gen_permute(Gen *r)
{
    static const int64_t order[] = {1, 0};
    Value *x = any_value(r, 2);
    return x ? build(r->g, NULL, loc_of(r), OP_PERMUTE, &r->quiet, "vI", x, 2, order) : NULL;
}

static Node *gen_piece(Gen *r)
{
    Value *x = any_value(r, 1 + below(r, 3));
    int64_t axis = x ? below(r, x->type.rank) : 0;
    Dim from = below(r, 2) ? DIM(0) : any_symbol(r), to = dim_add(r->p, from, any_size(r));
    if (!x)
        return NULL;
    return below(r, 3) ? build(r->g, NULL, loc_of(r), OP_SLICE, &r->quiet, "viddi", x, axis, from,
                               to, (int64_t)1 + below(r, 2))
                       : build(r->g, NULL, loc_of(r), OP_SELECT_INT, &r->quiet, "vid", x, axis,
                               any_symbol(r));
}

static Node *gen_reduce(Gen *r)
{
    static const OpId op[] = {OP_AMAX, OP_SUM_DIM, OP_MEAN_DIM};
    Value *x = any_value(r, 1 + below(r, 3));
    int64_t axis = x ? below(r, x->type.rank) : 0;
    if (!x)
        return NULL;
    return below(r, 3) ? build(r->g, NULL, loc_of(r), op[below(r, 3)], &r->quiet, "vIb", x, 1,
                               &axis, below(r, 2))
                       : build(r->g, NULL, loc_of(r), OP__SOFTMAX, &r->quiet, "vib", x, axis, 0);
}

static Node *gen_pad(Gen *r)
{
    const int64_t pad[] = {below(r, 5) - 2, below(r, 5) - 2};
    return build(r->g, NULL, loc_of(r), OP_CONSTANT_PAD_ND, &r->quiet, "vIf",
                 any_value(r, 1 + below(r, 3)), 2, pad, 0.5);
}

static Node *gen_index(Gen *r)
{
    Value *x = any_value(r, 1 + below(r, 3)), *at[] = {r->index};
    return x ? build(r->g, NULL, loc_of(r), OP_INDEX_TENSOR, &r->quiet, "vV", x, 1, at) : NULL;
}

static Node *with_batch(Gen *r, Value *x)
{
    Dim dim[4] = {DIM(1)};
    for (int i = 0; x && i < 3; i++) {
        int64_t lo, hi;
        dim_range(x->type.dim[i], &lo, &hi);
        x = lo < 1 ? NULL : x; /* the kernel has no windows over nothing */
    }
    if (!x)
        return NULL;
    memcpy(dim + 1, x->type.dim, 3 * sizeof *dim);
    return build(r->g, NULL, loc_of(r), OP_VIEW, &r->quiet, "vD", x, 4, dim);
}

static Node *gen_window(Gen *r)
{
    const int64_t one[] = {1, 1}, none[] = {0, 0}, pad[] = {below(r, 2), 1};
    Node *a = with_batch(r, any_value(r, 3)), *b = with_batch(r, any_value(r, 3));
    return a && b ? build(r->g, NULL, loc_of(r), OP_CONVOLUTION, &r->quiet, "vvnIIIbIi",
                          a->out[0], b->out[0], 2, one, 2, pad, 2, one, 0, 2, none, (int64_t)1)
                  : NULL;
}

/* Another size that a result may have as far as ranges tell. */
static void record_otherwise(Gen *r, Value *v)
{
    Dim dim[MAX_RANK];
    int64_t lo, hi;
    if (!v->type.rank || below(r, 4))
        return;
    int k = below(r, v->type.rank);
    memcpy(dim, v->type.dim, (size_t)v->type.rank * sizeof *dim);
    dim[k] = any_size(r);
    dim_range(dim_sub(r->p, dim[k], v->type.dim[k]), &lo, &hi);
    if (lo <= 0 && hi >= 0)
        value_set_type(v, type_tensor(r->p, v->type.dtype, v->type.rank, dim));
}

static void add_node(Gen *r)
{
    static Node *(*const gen[])(Gen *) = {gen_pair,    gen_pair,  gen_pair,   gen_where,
                                          gen_cat,     gen_view,  gen_product, gen_expand,
                                          gen_permute, gen_piece, gen_reduce,  gen_pad,
                                          gen_index,   gen_window};
    Node *n = gen[below(r, sizeof gen / sizeof *gen)](r);
    if (!n || type_numel(n->out[0]->type) > 4096)
        return;
    record_otherwise(r, n->out[0]);
    r->value[r->n++] = n->out[0];
}

static void add_input(Gen *r, const char *name, EtcDtype t, int rank, const Dim *dim)
{
    Value *v = graph_value(r->g, name, type_tensor(r->p, t, rank, dim));
    graph_add_input(r->g, v);
    if (t == ETC_F32)
        r->value[r->n++] = v;
    else
        r->index = v;
}

static int print_random(Arena *a, uint64_t seed)
{
    Gen r = {.p = program_new(a, "m"), .quiet = {.out = fopen("/dev/null", "w")},
             .seed = seed * 2654435761u + 1};
    r.p->stage = STAGE_CORE;
    r.g = graph_new(r.p, "forward");
    PUSH(a, r.p->method, r.p->n_methods, r.g);
    inputs_draw(&r.seed);
    for (int i = 0; i < N_SYMS; i++) {
        int lo = below(&r, 3);
        program_symbol(r.p, (const char *[]){"s", "t", "u"}[i], lo, lo + 1 + below(&r, 3));
    }
    for (int i = 0; i < N_SYMS; i++) {
        Dim dim[3] = {dim_symbol(r.p, r.p->sym[i]), any_size(&r), any_size(&r)};
        add_input(&r, (const char *[]){"x", "y", "z"}[i], ETC_F32, 1 + below(&r, 3), dim);
    }
    add_input(&r, "i", ETC_I64, 1, &(Dim){any_symbol(&r).expr, 0});
    for (int i = 0; i < 60 && r.n < N_SYMS + 5; i++)
        add_node(&r);
    Uses uses = graph_uses(r.g, a);
    for (int i = N_SYMS; i < r.n; i++) {
        int at = r.value[i]->index;
        if (uses.first[at] == uses.first[at + 1])
            graph_add_output(r.g, r.value[i]);
    }
    program_print(r.p, stdout);
    fclose(r.quiet.out);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    Arena *a = arena_new();
    if (!strcmp(argv[1], "random")) {
        int done = print_random(a, strtoull(argv[2], NULL, 10));
        arena_free(a);
        return done;
    }
    Model m = load(a, argv[2]);
    int status = 2;
    if (!strcmp(argv[1], "driver"))
        status = print_driver(&m);
    else if (argc == 4 && !strcmp(argv[1], "pte"))
        status = run_pte(&m, argv[3]);
    else if (argc == 4 && !strcmp(argv[1], "c"))
        status = write_calls(&m, argv[3]);
    fclose(m.quiet.out);
    arena_free(a);
    return status;
}
