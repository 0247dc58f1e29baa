/* center_norms.c -- layer norms of rows that have no mean divide by the root of the mean square
 * alone, for backends.
 *
 * Stage core, where backends are asked: a backend takes two passes over the data to find a mean
 * and to take it away.  What transformers carry from block to block is a sum of products' results,
 * of which layer norms alone read; they take any mean away, so each summand may come without: of
 * the weights and bias of a product and of a constant the mean is taken away here, of anything else
 * at run time.  Values that sums and moves connect are one stream.  It is left as it is where
 * something else reads of it, or where as many means would have to be taken at run time as norms
 * are spared.  Computed in float64 and rounded once.  Each value joins one stream at most, so this
 * is linear.
 */
#include "passes/internal.h"

/* What a value is of a stream: rows without a mean lie along this axis. */
typedef struct Rows {
    int stream, axis; /* stream: from 1; 0: of none */
} Rows;

typedef struct Stream {
    int id;
    Value **value; /* all of them; those that no sum or move makes: */
    Value **entry;
    Node **norm;
    int n_values, n_entries, n_norms;
    int64_t width;  /* of the rows */
    bool is_closed; /* nothing else reads of it */
} Stream;

typedef struct Center {
    Program *p;
    Rewrite r;
    Uses uses;
    int *reads; /* by storage */
    Rows *rows; /* by value index */
    int n_streams;
    bool *is_entry, *is_norm; /* of streams to center: by index of the value, of a norm's result */
    Value **late; /* to be centered at run time */
    int n_late;
} Center;

/* -- streams ----------------------------------------------------------------------------------- */

static bool is_norm(const Node *n)
{
    return n->op == OP_LAYER_NORM || n->op == OP_NATIVE_LAYER_NORM;
}

static bool may_join(const Center *c, const Stream *s, const Value *v, int axis)
{
    const Rows rows = c->rows[v->index];
    const Type t = v->type;
    if (rows.stream)
        return rows.stream == s->id && rows.axis == axis;
    return axis >= 0 && axis < t.rank && dim_equal(t.dim[axis], DIM(s->width)) &&
           t.dtype == ETC_F32 && !c->uses.escapes[v->index];
}

static void join(Center *c, Stream *s, Value *v, int axis)
{
    Rows *rows = &c->rows[v->index];
    if (!may_join(c, s, v, axis)) {
        s->is_closed = false;
    } else if (!rows->stream) {
        *rows = (Rows){s->id, axis};
        PUSH(c->r.tmp, s->value, s->n_values, v);
    }
}

static bool is_sum(const Node *n)
{
    double alpha;
    return n->op == OP_ADD_TENSOR && arg_number(n, "alpha", &alpha) && alpha == 1;
}

/* The axis of a sum is counted from the last; parts that a concat joins along it are no rows. */
static int axis_across(const Node *n, Type from, int axis, Type to)
{
    int64_t along;
    if (is_sum(n))
        return axis + to.rank - from.rank;
    if (n->op != OP_CAT || !arg_int(n, "dim", &along))
        return -1;
    return along + (along < 0 ? to.rank : 0) == axis ? -1 : axis;
}

static int axis_of_result(const Node *n, const Value *in, int axis)
{
    int at = n->n_out ? axis_across(n, in->type, axis, n->out[0]->type) : -1;
    return at < 0 ? axis_behind(n, axis) : at;
}

static int axis_of_operand(const Node *n, const Value *in, int axis)
{
    int at = axis_across(n, n->out[0]->type, axis, in->type);
    return at < 0 ? axis_before(n, axis) : at;
}

/* Means and sums along rows of a backend want all sizes but the first known. */
static bool has_known_sizes(Type t)
{
    for (int i = 1; i < t.rank; i++)
        if (t.dim[i].expr)
            return false;
    return true;
}

static bool is_norm_of(const Center *c, const Node *n, const Value *v, int axis)
{
    return is_norm(n) && arg_value(n, "input") == v && arg_count(n, "normalized_shape") == 1 &&
           axis == v->type.rank - 1 && has_known_sizes(v->type) && !others_are_read(&c->uses, n);
}

static void join_readers(Center *c, Stream *s, const Value *v)
{
    const int axis = c->rows[v->index].axis;
    for (int i = c->uses.first[v->index]; i < c->uses.first[v->index + 1]; i++) {
        Node *n = c->uses.user[i];
        if (is_norm_of(c, n, v, axis))
            PUSH(c->r.tmp, s->norm, s->n_norms, n);
        else if (n->n_out == 1)
            join(c, s, n->out[0], axis_of_result(n, v, axis));
        else
            s->is_closed = false;
    }
}

/* Or v itself, where one of them has no such rows. */
static void join_operands(Center *c, Stream *s, Value *v)
{
    const Node *n = v->def;
    const int axis = c->rows[v->index].axis;
    bool may = n && n->n_in;
    for (int i = 0; may && i < n->n_in; i++)
        may = may_join(c, s, n->in[i], axis_of_operand(n, n->in[i], axis));
    for (int i = 0; may && i < n->n_in; i++)
        join(c, s, n->in[i], axis_of_operand(n, n->in[i], axis));
    if (!may)
        PUSH(c->r.tmp, s->entry, s->n_entries, v);
}

/* All that sums and moves connect with what the norm reads. */
static Stream stream_of(Center *c, const Node *norm)
{
    Stream s = {.id = ++c->n_streams, .is_closed = true};
    Value *x = arg_value(norm, "input");
    s.width = x->type.dim[x->type.rank - 1].value;
    join(c, &s, x, x->type.rank - 1);
    for (int i = 0; i < s.n_values; i++) {
        join_readers(c, &s, s.value[i]);
        join_operands(c, &s, s.value[i]);
    }
    return s;
}

/* -- where the mean is taken away -------------------------------------------------------------- */

/* A product whose weights, read by it alone, make the rows. */
static bool is_product(const Center *c, const Value *v)
{
    int64_t groups = 1;
    const Node *n = v->def;
    bool is_conv = n && n->op == OP_CONVOLUTION && !arg_bool(n, "transposed") &&
                   arg_int(n, "groups", &groups);
    if (!n || (!is_conv && n->op != OP_LINEAR) || groups != 1 ||
        c->rows[v->index].axis != (is_conv ? 1 : v->type.rank - 1))
        return false;
    const Value *w = arg_value(n, "weight"), *b = arg_value(n, "bias");
    return value_floats(w, -1) && type_numel(w->type) > 0 && c->reads[w->state->storage] == 1 &&
           (!b || value_floats(b, w->type.dim[0].value));
}

static bool is_constant(const Value *v)
{
    return value_floats(v, -1) && type_numel(v->type) > 0;
}

/* The entry, or what its one reader and so on move it to: there its rows are whole last axes, so
 * that their means can be taken at run time; NULL: nowhere. */
static Value *entry_at_run_time(const Center *c, Value *v)
{
    for (;;) {
        const int first = c->uses.first[v->index], axis = c->rows[v->index].axis;
        if (v->state)
            return NULL;
        if (axis == v->type.rank - 1 && has_known_sizes(v->type))
            return v;
        const Node *n = c->uses.first[v->index + 1] == first + 1 ? c->uses.user[first] : NULL;
        if (!n || n->n_in != 1 || axis_behind(n, axis) < 0)
            return NULL;
        v = n->out[0];
    }
}

static void choose(Center *c, Stream *s)
{
    int at_run_time = 0;
    for (int i = 0; i < s->n_entries; i++) {
        if (is_product(c, s->entry[i]) || is_constant(s->entry[i]))
            continue;
        if (!(s->entry[i] = entry_at_run_time(c, s->entry[i])))
            return;
        at_run_time++;
    }
    if (!s->is_closed || s->n_norms <= at_run_time)
        return;
    for (int i = 0; i < s->n_entries; i++)
        c->is_entry[s->entry[i]->index] = true;
    for (int i = 0; i < s->n_norms; i++)
        c->is_norm[s->norm[i]->out[0]->index] = true;
}

/* -- what is made of it ------------------------------------------------------------------------ */

static Value *result(const Node *n)
{
    return n ? n->out[0] : NULL;
}

/* A constant of `rows` times `inner` numbers, several times: without the mean of these rows. */
static Value *centered(Center *c, const Value *v, int64_t rows, int64_t inner)
{
    const float *from = value_floats(v, -1);
    int64_t all = type_numel(v->type);
    float *to = arena_alloc(c->p->arena, (size_t)all + 1, sizeof *to);
    double *mean = NEW(c->r.tmp, double, inner);
    for (int64_t at = 0; at < all; at += rows * inner) {
        for (int64_t i = 0; i < inner; i++)
            mean[i] = 0;
        for (int64_t k = 0; k < rows; k++)
            for (int64_t i = 0; i < inner; i++)
                mean[i] += (double)from[at + k * inner + i] / (double)rows;
        for (int64_t k = 0; k < rows; k++)
            for (int64_t i = 0; i < inner; i++)
                to[at + k * inner + i] = (float)((double)from[at + k * inner + i] - mean[i]);
    }
    State *s = program_const(c->p, v->state->name, v->state->fqn, type_plain(v->type), to);
    return graph_state(c->r.g, s);
}

static bool center_product(Center *c, Node *n)
{
    Value *w = arg_value(n, "weight"), *b = arg_value(n, "bias");
    int64_t rows = w->type.dim[0].value;
    w = centered(c, w, rows, type_numel(w->type) / rows);
    b = b ? centered(c, b, rows, 1) : NULL;
    return rewrite_product(&c->r, n, w, b);
}

static void center_constant(Center *c, Value *v)
{
    const int axis = c->rows[v->index].axis;
    int64_t inner = 1;
    for (int i = axis + 1; i < v->type.rank; i++)
        inner *= v->type.dim[i].value;
    rewrite_value(&c->r, v, centered(c, v, v->type.dim[axis].value, inner));
}

/* x / sqrt(mean(x x) + eps) * weight + bias */
static bool spell_norm(Center *c, Node *n)
{
    static const int64_t last = -1;
    double eps = 1e-5;
    Graph *g = c->r.g;
    Diag *d = c->r.d;
    Value *x = arg_value(n, "input"), *w = arg_value(n, "weight"), *b = arg_value(n, "bias");
    arg_number(n, "eps", &eps);
    Value *m = result(build(g, n, n->loc, OP_MUL_TENSOR, d, "vv", x, x));
    m = m ? result(build(g, n, n->loc, OP_MEAN_DIM, d, "vIb", m, 1, &last, true)) : NULL;
    m = m ? result(build(g, n, n->loc, OP_ADD_SCALAR, d, "vf", m, eps)) : NULL;
    m = m ? result(build(g, n, n->loc, OP_RSQRT, d, "v", m)) : NULL;
    Value *y = m ? result(build(g, n, n->loc, OP_MUL_TENSOR, d, "vv", x, m)) : NULL;
    if (y && w)
        y = result(build(g, n, n->loc, OP_MUL_TENSOR, d, "vv", y, w));
    if (y && b)
        y = result(build(g, n, n->loc, OP_ADD_TENSOR, d, "vv", y, b));
    return y && rewrite_node(&c->r, n, y);
}

static bool rewrite(Center *c, Node *n)
{
    Value *v = n->n_out ? n->out[0] : NULL;
    if (!v || v->index >= c->r.first_new)
        return true;
    const bool is_entry = c->is_entry[v->index];
    if (is_entry && is_product(c, v))
        return center_product(c, n);
    if (c->is_norm[v->index] && !spell_norm(c, n))
        return false;
    if (is_entry)
        PUSH(c->r.tmp, c->late, c->n_late, rewrite_current(&c->r, v));
    return true;
}

/* What no node makes. */
static void center_given(Center *c, int n_states)
{
    Graph *g = c->r.g;
    for (int i = 0; i < g->n_in; i++)
        if (c->is_entry[g->in[i]->index])
            PUSH(c->r.tmp, c->late, c->n_late, g->in[i]);
    for (int i = 0; i < n_states; i++)
        if (c->is_entry[g->state[i]->index])
            center_constant(c, g->state[i]);
}

/* v - mean(v) */
static Value *centered_late(Center *c, const Node *norm, Value *v)
{
    static const int64_t last = -1;
    Graph *g = c->r.g;
    Node *at = v->def ? v->def->next : g->first;
    const Loc loc = v->def ? v->def->loc : norm->loc;
    Value *mean = result(build(g, at, loc, OP_MEAN_DIM, c->r.d, "vIb", v, 1, &last, true));
    return mean ? result(build(g, at, loc, OP_SUB_TENSOR, c->r.d, "vv", v, mean)) : NULL;
}

/* At run time, before all that reads it. */
static bool center_late(Center *c)
{
    Graph *g = c->r.g;
    Value **with = NEW(c->r.tmp, Value *, g->n_values + 2 * c->n_late + 1);
    for (int i = 0; i < c->n_late; i++)
        if (!(with[c->late[i]->index] = centered_late(c, g->first, c->late[i])))
            return false;
    for (Node *n = g->first; c->n_late && n; n = n->next)
        for (int i = 0; i < n->n_in; i++) {
            Value *to = with[n->in[i]->index];
            if (to && n != to->def && n != arg_value(to->def, "other")->def)
                node_set_in(n, i, to);
        }
    return true;
}

static bool center_graph(Center *c, Graph *g, Arena *tmp, Diag *d)
{
    c->r = rewrite_start(g, tmp, d);
    c->uses = graph_uses(g, tmp);
    c->rows = NEW(tmp, Rows, g->n_values + 1);
    c->is_entry = NEW(tmp, bool, g->n_values + 1);
    c->is_norm = NEW(tmp, bool, g->n_values + 1);
    c->n_streams = c->n_late = 0;
    c->late = NULL;
    for (const Node *n = g->first; n; n = n->next) {
        if (!is_norm(n) || c->rows[arg_value(n, "input")->index].stream ||
            arg_value(n, "input")->type.rank < 1)
            continue;
        Stream s = stream_of(c, n);
        choose(c, &s);
    }
    bool ok = true;
    center_given(c, g->n_states);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&c->r, n);
        ok = rewrite(c, n) && ok;
    }
    rewrite_finish(&c->r);
    return ok && center_late(c);
}

bool pass_center_norms(Program *p, Arena *tmp, Diag *d)
{
    Center c = {.p = p};
    bool ok = true;
    if (!p->n_backends)
        return true;
    c.reads = storage_reads(p, tmp);
    for (Graph *g = NULL; (g = program_next_own(p, g));)
        ok = center_graph(&c, g, tmp, d) && ok;
    return ok;
}
