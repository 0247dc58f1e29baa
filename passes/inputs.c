/* inputs.c -- makes inputs for evaluating a program: seeded random ones with sizes in the ranges of
 * the symbols, and the values of symbols for given inputs. */
#include "passes/internal.h"
#include "ir/eval.h"
#include <string.h>

uint64_t inputs_draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static double draw_unit(uint64_t *seed)
{
    return (double)inputs_draw(seed) / 1073741824.0 - 1.0; /* [-1, 1) */
}

void inputs_fill(EtcTensor *t, uint64_t *seed)
{
    int64_t n = etc_numel(t);
    for (int64_t i = 0; i < n; i++)
        switch (t->dtype) {
        case ETC_F32:
            ((float *)t->data)[i] = (float)(2 * draw_unit(seed));
            break;
        case ETC_F64:
            ((double *)t->data)[i] = 2 * draw_unit(seed);
            break;
        case ETC_F16: /* 0.5 .. 1, both signs */
        case ETC_BF16:
            ((uint16_t *)t->data)[i] = (uint16_t)((t->dtype == ETC_F16 ? 0x3800 : 0x3f00) |
                                                  (inputs_draw(seed) & 0x807f));
            break;
        case ETC_I64:
        case ETC_U64:
            ((int64_t *)t->data)[i] = (int64_t)inputs_draw(seed) % 4;
            break;
        case ETC_I32:
        case ETC_U32:
            ((int32_t *)t->data)[i] = (int32_t)(inputs_draw(seed) % 4);
            break;
        default:
            memset((uint8_t *)t->data + (size_t)i * etc_dtype_size((int)t->dtype),
                   (int)(inputs_draw(seed) % 2), etc_dtype_size((int)t->dtype));
        }
}

/* Returns the lower bound, or a value slightly above it, so that the evaluation stays cheap. */
static int64_t symbol_value(const Symbol *s, int which)
{
    enum { NEAR = 5 };
    int64_t lo = s->lo < 1 && s->hi >= 1 ? 1 : s->lo, room;
    if (!which)
        return s->lo;
    if (__builtin_sub_overflow(s->hi, lo, &room) || room / 2 > NEAR)
        return lo + NEAR;
    return lo + room / 2;
}

static bool guards_hold(const Program *p, const int64_t *symbol)
{
    int64_t v;
    for (int i = 0; i < p->n_guards; i++)
        if (!dim_eval(p->guard[i].size, symbol, &v) || v < p->guard[i].lo || v > p->guard[i].hi)
            return false;
    return true;
}

/* Draws a value near the lower bound. */
static int64_t drawn_value(const Symbol *s, uint64_t *seed)
{
    int64_t end, most = add_ok(s->lo, 12, &end) && end < s->hi ? 12 : s->hi - s->lo;
    return s->lo + (int64_t)(inputs_draw(seed) % (uint64_t)(most + 1));
}

/* Chooses values of the symbols for which all guards hold.  The usual values may break some, so
 * others near the lower bounds are tried too. */
void inputs_symbols(const Program *p, int which, int64_t *symbol)
{
    enum { TRIES = 1000 };
    uint64_t seed = (uint64_t)which + 1;
    for (int k = 0; k <= TRIES; k++) {
        for (int i = 0; i < p->n_syms; i++)
            symbol[i] = k % TRIES ? drawn_value(p->sym[i], &seed) : symbol_value(p->sym[i], which);
        if (guards_hold(p, symbol))
            return;
    }
}

static bool input_sizes(const Value *v, const int64_t *symbol, int64_t *dim)
{
    int64_t n = 1;
    for (int i = 0; i < v->type.rank; i++)
        if (!dim_eval(v->type.dim[i], symbol, &dim[i]) || dim[i] < 0 ||
            !mul_ok(n, dim[i] + 1, &n) || n > 1 << 28)
            return false;
    return true;
}

/* Returns the value of the method that v of graph g is, where branches around g only hand it on;
 * or NULL. */
static const Value *value_outside(const Graph *g, const Value *v)
{
    for (; g->owner && v; g = g->owner->graph) {
        int i = 0;
        while (i < g->n_in && g->in[i] != v)
            i++;
        bool is_handed = i < g->n_in && !region_is_carried(g->owner, i);
        v = is_handed ? region_operand(g->owner, i) : NULL;
    }
    return v;
}

/* Makes inputs whose element is the value of a symbol agree with the symbols, or the symbols with
 * them. */
static void agree_on_items(const Graph *g, EtcTensor *const *in, int64_t *to, const int64_t *from)
{
    const Symbol *s;
    int64_t scale, offset;
    for (const Node *n = walk_next(g, NULL); n; n = walk_next(g, n)) {
        if (n->op != OP_LOCAL_SCALAR_DENSE)
            continue;
        const Dim *d = n->out[0]->type.dim;
        const Value *item = value_outside(n->graph, arg_value(n, "self"));
        for (int i = 0; i < g->n_in; i++) {
            if (item != g->in[i] || in[i]->dtype != ETC_I64 || !d ||
                !dim_is_linear(*d, &s, &scale, &offset) || scale != 1 || offset)
                continue;
            if (to)
                to[s->index] = *(const int64_t *)in[i]->data;
            else
                *(int64_t *)in[i]->data = from[s->index];
        }
    }
}

bool inputs_random(const Graph *g, const int64_t *symbol, uint64_t *seed, Arena *a, EtcTensor **in)
{
    int64_t dim[MAX_RANK];
    for (int i = 0; i < g->n_in; i++) {
        const Type t = g->in[i]->type;
        if (!input_sizes(g->in[i], symbol, dim))
            return false;
        in[i] = tensor_new(a, t.dtype, t.rank < 0 ? 0 : t.rank, dim);
        inputs_fill(in[i], seed);
    }
    agree_on_items(g, in, NULL, symbol);
    return true;
}

void inputs_read_symbols(const Graph *g, EtcTensor *const *in, int64_t *symbol)
{
    const Program *p = g->program;
    const Symbol *s;
    int64_t scale, offset;
    for (int i = 0; i < p->n_syms; i++)
        symbol[i] = p->sym[i]->lo;
    for (int i = 0; i < g->n_in; i++)
        for (int j = 0; j < g->in[i]->type.rank && j < in[i]->rank; j++)
            if (dim_is_linear(g->in[i]->type.dim[j], &s, &scale, &offset))
                symbol[s->index] = (in[i]->dim[j] - offset) / scale;
    agree_on_items(g, in, symbol, NULL);
}
