/* tabulate.c -- replaces functions of one tensor of bytes by look-ups in a table, for C of targets that
 * compute in fixed point.
 *
 * Stage core, after fuse_fixed:
 *
 *   quantize(f(dequantize(x)))  ==>  etc.lookup(x, table)
 *
 * f is any number of nodes that compute element by element, from x and single numbers alone.  The table has
 * what these nodes make of each byte.  For each quantize at most MOST nodes are looked at; those that nobody
 * reads any more are removed by dce. */
#include "passes/internal.h"
#include "ir/eval.h"
#include "ir/session.h"
#include <string.h>

enum { MOST = 48, BYTES = 256 };

typedef struct Tabulate {
    Rewrite r;
    State **table; /* those made so far */
    int n_tables;
} Tabulate;

typedef struct Cluster {
    Value *x;               /* the bytes, or NULL */
    const Node *node[MOST]; /* in an order of evaluation */
    int n, depth;
} Cluster;

static bool is_byte(EtcDtype t)
{
    return t == ETC_I8 || t == ETC_U8;
}

static bool add_node(Cluster *c, const Node *n, Type y);

/* Adds the node of an operand, or takes the operand as the bytes. */
static bool add_operand(Cluster *c, const Node *reader, Value *v, Type y)
{
    if (value_is_fixed(v))
        return value_is_known(v) && type_is_static(v->type) && type_numel(v->type) == 1;
    if (v->type.rank != y.rank || !dims_equal(v->type.dim, y.dim, y.rank))
        return false;
    if (!is_byte(v->type.dtype) || !node_scales_bytes(reader))
        return v->def && add_node(c, v->def, y);
    const bool ok = !c->x || c->x == v;
    c->x = v;
    return ok;
}

static bool add_node(Cluster *c, const Node *n, Type y)
{
    for (int i = 0; i < c->n; i++)
        if (c->node[i] == n)
            return true;
    bool ok = node_access(n) == ACCESS_POINTWISE && n->n_out == 1 && n->n_in > 0 && node_is_pure(n) &&
              !node_reads_symbols(n) && eval_can(n);
    ok = ok && c->depth++ < MOST;
    for (int i = 0; ok && i < n->n_in; i++)
        ok = add_operand(c, n, n->in[i], y);
    if (!ok || c->n == MOST)
        return false;
    c->depth--;
    c->node[c->n++] = n;
    return true;
}

/* Evaluates the cluster for as many bytes as x has elements, from `from` on. */
static bool evaluate(const Cluster *c, int from, uint8_t table[BYTES], Arena *tmp, Diag *d)
{
    const Type t = c->x->type;
    const int64_t each = type_numel(t);
    int64_t dim[MAX_RANK];
    assert(c->n > 0 && each > 0 && t.rank <= MAX_RANK);
    for (int i = 0; i < t.rank; i++)
        dim[i] = t.dim[i].value;
    EtcTensor *x = tensor_new(tmp, t.dtype, t.rank, dim), *out[MOST] = {NULL};
    for (int64_t i = 0; i < each; i++)
        ((uint8_t *)x->data)[i] = (uint8_t)(from + i);
    for (int k = 0; k < c->n; k++) {
        const Node *n = c->node[k];
        EtcTensor **in = NEW(tmp, EtcTensor *, n->n_in);
        for (int i = 0; i < n->n_in; i++) {
            in[i] = n->in[i] == c->x ? x : value_is_fixed(n->in[i]) ? eval_constant(n->in[i], tmp) : NULL;
            for (int m = 0; !in[i] && m < k; m++)
                in[i] = c->node[m] == n->in[i]->def ? out[m] : NULL;
        }
        if (!eval_node(n, in, NULL, tmp, &out[k], d))
            return false;
    }
    for (int64_t i = 0; i < each && from + i < BYTES; i++)
        table[from + i] = ((uint8_t *)out[c->n - 1]->data)[i];
    return true;
}

/* Returns a constant with these bytes, the same one for equal bytes. */
static State *table_of(Tabulate *t, const Node *n, uint8_t bytes[BYTES])
{
    Program *p = t->r.g->program;
    const char *name = arena_printf(p->arena, "%s_table", n->out[0]->name);
    const Dim dim = DIM(BYTES);
    for (int i = 0; i < t->n_tables; i++)
        if (!memcmp(t->table[i]->data, bytes, BYTES))
            return t->table[i];
    PUSH(t->r.tmp, t->table, t->n_tables,
         program_const(p, name, "", type_tensor(p, ETC_U8, 1, &dim), bytes));
    return t->table[t->n_tables - 1];
}

static bool put_lookup(Tabulate *t, Node *n, const Cluster *c)
{
    Rewrite *r = &t->r;
    Program *p = r->g->program;
    const int64_t all = type_numel(c->x->type), each = all < BYTES ? all : BYTES;
    uint8_t *table = arena_bytes(p->arena, BYTES);
    for (int from = 0; from < BYTES; from += (int)each) {
        Arena *tmp = arena_new();
        const bool ok = evaluate(c, from, table, tmp, r->d);
        arena_free(tmp);
        if (!ok)
            return false;
    }
    Value *v = graph_state(r->g, table_of(t, n, table));
    Node *y = build(r->g, n, n->loc, OP_LOOKUP, r->d, "vvt", c->x, v, n->out[0]->type.dtype);
    return y && rewrite_node(r, n, y->out[0]);
}

static bool look(Tabulate *t, Node *n)
{
    Rewrite *r = &t->r;
    Cluster c = {0};
    rewrite_inputs(r, n);
    const Type y = n->out[0]->type;
    if (!node_scales_bytes(n) || !is_byte(y.dtype) || !type_is_static(y) || type_numel(y) < 1 ||
        type_numel(y) > INT32_MAX || !add_node(&c, n, y) || !c.x ||
        !type_is_dense(r->g->program, c.x->type) || !type_is_dense(r->g->program, y))
        return true;
    return put_lookup(t, n, &c);
}

bool pass_tabulate(Graph *g, Arena *tmp, Diag *d)
{
    if (!g->program->session->is_fixed_point)
        return true;
    Tabulate t = {.r = rewrite_start(g, tmp, d)};
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        ok = (!n->n_out || look(&t, n)) && ok;
    }
    rewrite_finish(&t.r);
    return ok;
}
