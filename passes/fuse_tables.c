/* fuse_tables.c -- one node of the official runtime looks up rows of a table of integers and
 * converts them to floats.
 *
 * Stage core, with the recipe applied.  Two forms are recognized, with a scale per row or per
 * group:
 *
 *   embedding(dequantize_per_channel(q), i)  ==>  embedding_byte(q, scales, zero points, i)
 *   float(embedding(q, i)) * embedding(scales, i)  ==>  the same
 *
 * There may be views between these nodes.  The first form converts the whole table at every call,
 * the second, which pass quantize writes, only the rows.  Integers that fit into 4 bits are stored
 * two to a byte, for embedding_4bit.  (q - zero) * scale is computed as before, so no bit changes.
 * Each node is looked at once.
 *
 * Other look-ups in a constant that is dequantized look its integers up, and dequantize what they find.
 */
#include "passes/internal.h"
#include "ir/eval.h"

typedef struct Table {
    const Value *q, *zero; /* zero may be NULL */
    Value *scale, *index;  /* scale: [rows] or [rows, groups], maybe under other sizes */
    int64_t rows, n, groups;
} Table;

static bool is_constant(const Value *v, EtcDtype t)
{
    return value_is_known(v) && v->type.dtype == t;
}

static const Value *without_views(const Value *v)
{
    while (v->def && node_is_view(v->def))
        v = arg_value(v->def, "self");
    return v;
}

/* Reads the sizes of a table in either form; `sized`: the embedding whose table has the rows and
 * columns.  False: it is not one of integers with float scales. */
static bool check(Table *t, const Node *sized)
{
    const Type w = arg_value(sized, "weight")->type;
    if (!is_constant(t->q, ETC_I8) || !is_constant(t->scale, ETC_F32) || w.rank != 2 ||
        !type_is_static(w) || t->index->type.dtype != ETC_I64)
        return false;
    t->rows = w.dim[0].value;
    t->n = w.dim[1].value;
    if (t->rows < 1 || t->n < 1 || type_numel(t->scale->type) % t->rows)
        return false;
    t->groups = type_numel(t->scale->type) / t->rows;
    return t->groups > 0 && t->n % t->groups == 0;
}

/* Reads embedding(dequantize_per_channel(q, scales, zero points, 0), i), with groups as rows of
 * q. */
static bool read_dequantized(const Node *n, Table *t)
{
    QParams p;
    const Node *of = without_views(arg_value(n, "weight"))->def;
    if (!of || !qparams_read(of, &p) || !p.undoes || p.kind != Q_CHANNEL || p.axis != 0 ||
        of->out[0]->type.dtype != ETC_F32 || p.x->type.rank != 2)
        return false;
    *t = (Table){.q = p.x, .scale = p.scales, .zero = p.zeros, .index = arg_value(n, "indices")};
    return check(t, n) &&
           (!t->zero || is_constant(t->zero, ETC_I64) || is_constant(t->zero, ETC_I32) ||
            is_constant(t->zero, ETC_I8));
}

static const Node *lookup_of(const Value *v)
{
    const Value *x = without_views(v);
    return x->def && x->def->op == OP_EMBEDDING ? x->def : NULL;
}

/* Reads float(embedding(q, i)) * embedding(scales, i). */
static bool read_product(const Node *n, Table *t)
{
    const Node *cast = n->n_in == 2 ? without_views(arg_value(n, "self"))->def : NULL;
    const Node *q = cast && cast->op == OP__TO_COPY ? lookup_of(arg_value(cast, "self")) : NULL;
    const Node *scale = n->n_in == 2 ? lookup_of(arg_value(n, "other")) : NULL;
    if (!q || !scale || arg_value(q, "indices") != arg_value(scale, "indices") ||
        cast->out[0]->type.dtype != ETC_F32)
        return false;
    *t = (Table){.q = arg_value(q, "weight"),
                 .scale = arg_value(scale, "weight"),
                 .index = arg_value(q, "indices")};
    if (!check(t, q) || !dim_equal(t->scale->type.dim[0], DIM(t->rows)))
        return false;
    /* scales are per last axis, so no view in between may have changed that axis */
    const Type y = n->out[0]->type, s = arg_value(n, "other")->type;
    return type_equal(arg_value(n, "self")->type, y) && y.rank == s.rank && y.rank > 1 &&
           dim_equal(s.dim[s.rank - 1], DIM(1)) &&
           dim_equal(y.dim[y.rank - 1], DIM(t->n / t->groups)) &&
           dims_equal(y.dim, s.dim, y.rank - 1);
}

/* -- the node --------------------------------------------------------------------------------- */

static Value *constant(Rewrite *r, const Table *t, const char *part, EtcDtype dtype,
                       int64_t columns, void *data)
{
    const Dim dim[2] = {DIM(t->rows), DIM(columns)};
    return graph_const_like(r->g, t->q->state, part, type_tensor(r->g->program, dtype, 2, dim), data);
}

static bool fits_4_bits(const Table *t)
{
    const int8_t *q = (const int8_t *)(const void *)t->q->state->data;
    for (int64_t i = 0; i < t->rows * t->n; i++)
        if (q[i] < -8 || q[i] > 7)
            return false;
    return t->n % 2 == 0;
}

static Value *short_table(Rewrite *r, const Table *t)
{
    const uint8_t *q = t->q->state->data;
    uint8_t *to = NEW(r->g->program->arena, uint8_t, t->rows * t->n / 2);
    for (int64_t i = 0; i < t->rows * t->n / 2; i++)
        to[i] = (uint8_t)((q[2 * i] + 8) << 4 | ((q[2 * i + 1] + 8) & 15));
    return constant(r, t, "_table", ETC_U8, t->n / 2, to);
}

/* Returns the table with its sizes.  If it has them already there is no second copy. */
static Value *whole_table(Rewrite *r, const Table *t)
{
    const Type w = t->q->type;
    if (w.rank == 2 && dim_equal(w.dim[0], DIM(t->rows)))
        return graph_state(r->g, t->q->state);
    return constant(r, t, "_table", ETC_I8, t->n, t->q->state->data);
}

/* Returns the zero points as floats, which the official kernels want.  NULL: all are 0, or they do
 * not fit. */
static Value *zero_points(Rewrite *r, const Table *t, bool *fits)
{
    const int64_t n = t->rows * t->groups;
    float *to = NEW(r->g->program->arena, float, n);
    bool any = false;
    *fits = !t->zero || type_numel(t->zero->type) == n;
    for (int64_t i = 0; t->zero && *fits && i < n; i++) {
        double v = value_number(t->zero, i);
        *fits = v >= -1024 && v <= 1024; /* q - zero is exact */
        to[i] = (float)v;
        any = any || v != 0;
    }
    return any && *fits ? constant(r, t, "_zeros", ETC_F32, t->groups, to) : NULL;
}

static Value *scales(Rewrite *r, const Table *t)
{
    const Type s = t->scale->type;
    if (s.rank == 2 && dim_equal(s.dim[0], DIM(t->rows)))
        return t->scale;
    return constant(r, t, "_scales", ETC_F32, t->groups, t->scale->state->data);
}

static bool fuse(Rewrite *r, Node *n, const Table *t)
{
    bool fits;
    Value *zero = zero_points(r, t, &fits);
    if (!fits)
        return true;
    bool is_short = fits_4_bits(t);
    Value *table = is_short ? short_table(r, t) : whole_table(r, t);
    Node *made = build(r->g, n, n->loc, is_short ? OP_EMBEDDING_4BIT : OP_EMBEDDING_BYTE, r->d,
                       "vvviiv", table, scales(r, t), zero,
                       (int64_t)(is_short ? -8 : -128), (int64_t)(is_short ? 7 : 127), t->index);
    const Type y = n->out[0]->type;
    Value *v = made ? made->out[0] : NULL;
    if (v && (v->type.rank != y.rank || !dims_equal(v->type.dim, y.dim, y.rank)))
        v = build_view(r, n, v, y.dim, y.rank);
    return v && rewrite_node(r, n, v);
}

/* -- other tables ------------------------------------------------------------------------------ */

static bool looks_up(const Node *n)
{
    return op_info[n->op].access == ACCESS_GATHER && (arg_find(n, "indices") >= 0 || arg_find(n, "index") >= 0);
}

/* Builds n, which looks up elements, for another table.  The result has the first `rank` sizes of n's. */
static Value *looked_up(Rewrite *r, Node *n, Value *table, int rank)
{
    Node *y = node_like(r->g, n);
    Type t = n->out[0]->type;
    assert(rank >= 0 && rank <= t.rank);
    for (int i = 0; i < n->n_args; i++)
        node_push(y, arg_moved(y, n, n->arg[i]));
    node_set_in(y, 0, table);
    t.rank = rank;
    t.dtype = table->type.dtype;
    node_add_out(y, arena_numbered(r->g->program->arena, n->out[0]->name, ".", graph_number(r->g) + 1), t);
    graph_insert(r->g, n, y);
    return y->out[0];
}

/* Looks up rows, their scales and their zero points. */
static Value *rows_and_points(Rewrite *r, Node *n, QParams *q)
{
    const Type y = n->out[0]->type;
    const int lead = y.rank - (q->x->type.rank - 1);
    Dim dim[2] = {DIM(1), DIM(1)};
    for (int i = 0; i < y.rank; i++)
        dim[i >= lead] = dim_mul(r->g->program, dim[i >= lead], y.dim[i]);
    q->x = build_view(r, n, looked_up(r, n, q->x, y.rank), dim, 2);
    q->scales = build_view(r, n, looked_up(r, n, q->scales, lead), dim, 1);
    q->zeros = q->zeros ? build_view(r, n, looked_up(r, n, q->zeros, lead), dim, 1) : NULL;
    Value *v = q->x && q->scales ? qparams_build(r->g, n, n->loc, q->x, q, r->d) : NULL;
    return v ? build_view(r, n, v, y.dim, y.rank) : NULL;
}

/* index(dequantize(q), [i]) ==> dequantize(index(q, [i])), with the scales of these rows.  Returns false
 * if an error was reported. */
static bool dequantize_rows(Rewrite *r, Node *n)
{
    QParams q;
    const Node *of = first_operand(n)->def;
    if (!of || !qparams_read(of, &q) || !q.undoes || !value_is_known(q.x) || of->out[0]->type.dtype != ETC_F32 ||
        q.kind == Q_TOKEN || (q.kind == Q_TENSOR && q.scales))
        return true;
    const bool by_rows = q.kind == Q_CHANNEL;
    const Arg at = arg_get(n, "indices");
    if (by_rows && (q.axis || at.kind != ARG_LIST || at.list.n != 1 ||
                    at.list.item[0].kind != ARG_VALUE ||
                    !dtype_is_int(n->in[at.list.item[0].slot]->type.dtype)))
        return true;
    Value *v = by_rows ? rows_and_points(r, n, &q)
                       : qparams_build(r->g, n, n->loc, looked_up(r, n, q.x, n->out[0]->type.rank), &q, r->d);
    return v && rewrite_node(r, n, v);
}

bool pass_fuse_tables(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    Table t;
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        if ((n->op == OP_EMBEDDING && read_dequantized(n, &t)) ||
            (n->op == OP_MUL_TENSOR && read_product(n, &t)))
            ok = fuse(&r, n, &t) && ok;
        else if (looks_up(n))
            ok = dequantize_rows(&r, n) && ok;
    }
    rewrite_finish(&r);
    return ok;
}
