/* canonicalize.c -- writes each thing in one way and removes nodes that do nothing.
 *
 * Stage core or later, before planning.  A Python number becomes an argument of the operator's
 * Scalar overload if there is one, else a constant.  Axes count from 0.  Defaults of arguments
 * are written out.  Identities are removed if they keep every bit, and a view of a view becomes
 * one view.  It is one walk in order: a rule sees operands that are canonical already, and every
 * rule removes a node or leaves a simpler one, so it ends. */
#include "passes/internal.h"
#include <math.h>
#include <string.h>

/* -- numbers ------------------------------------------------------------------------------- */

static bool is_literal(const Arg *a)
{
    return a->kind == ARG_FLOAT || a->kind == ARG_BOOL || (a->kind == ARG_INT && !a->dim.expr);
}

static bool is_unscaled(const Node *n)
{
    double alpha = 1;
    return n->n_args < 3 || (arg_number(n, "alpha", &alpha) && alpha == 1);
}

static bool is_full(const Node *n)
{
    return n->op == OP_FULL;
}

/* Returns the node that fills v, a tensor of rank 0, with a number; NULL: none does. */
static const Node *filling(const Value *v)
{
    const Node *n = v->type.rank ? NULL : v->def;
    return n && is_full(n) && arg_get(n, "fill_value").kind != ARG_VALUE ? n : NULL;
}

/* Returns the number with which v is filled, if x computes with it to the same bits; NULL: it is
 * none. */
static const Arg *filled_number(const Value *v, const Value *x)
{
    const Node *def = filling(v);
    const bool is_float = dtype_is_float(x->type.dtype) && !dtype_is_half(x->type.dtype);
    const Arg *number = def ? &def->arg[arg_of(def, "fill_value")] : NULL;
    if (number && v->type.dtype == ETC_I64)
        return number->kind == ARG_INT && (is_float || x->type.dtype == ETC_I64) ? number : NULL;
    return is_float && v->type.dtype == x->type.dtype ? number : NULL;
}

/* Returns the number that an operand is beside the tensor x; NULL: it is none. */
static const Arg *number_beside(const Node *n, const char *operand, const Value *x)
{
    const Arg *a = &n->arg[arg_of(n, operand)];
    if (!x || x->type.rank == SCALAR)
        return NULL;
    if (a->kind == ARG_VALUE)
        return filled_number(arg_value(n, operand), x);
    return is_literal(a) || a->kind == ARG_INT ? a : NULL;
}

/* x op 2.0 ==> op.Scalar(x, 2.0);  2.0 + x and 2.0 * x likewise;  2.0 - x ==> rsub(x, 2.0).  A tensor
 * of rank 0 that is filled with a number is that number. */
static Node *to_scalar_row(Rewrite *r, Node *n)
{
    if (number_row(n->op, false) == OP_NONE)
        return n;
    Value *x = arg_value(n, "self");
    const Arg *number = number_beside(n, "other", x);
    const bool is_left = !number;
    if (is_left)
        number = number_beside(n, "self", x = arg_value(n, "other"));
    OpId row = number_row(n->op, is_left);
    if (!number || row == OP_NONE || (n->n_args > 2 && !is_literal(&n->arg[arg_of(n, "alpha")])))
        return n;
    if (is_left && op_info[n->op].flags & COMMUTES && !is_unscaled(n))
        return n;
    Node *s = n->n_args > 2
                  ? build(r->g, n, n->loc, row, r->d, "vaa", x, *number, arg_get(n, "alpha"))
                  : build(r->g, n, n->loc, row, r->d, "va", x, *number);
    if (!s)
        return NULL;
    if (s->out[0]->type.dtype != n->out[0]->type.dtype) {
        graph_remove(r->g, s);
        return n;
    }
    rewrite_node(r, n, s->out[0]);
    return s;
}

/* -- arguments ------------------------------------------------------------------------------ */

static void set_int(Node *n, int i, int64_t v)
{
    int64_t old;
    if (!arg_int(n, i, &old) || old != v)
        node_set_arg(n, i, (Arg){.kind = ARG_INT, .dim = DIM(v)});
}

static void wrap_axis(Node *n, int i, int rank)
{
    int64_t axis;
    if (arg_int(n, i, &axis) && axis < 0 && rank > 0)
        set_int(n, i, axis + rank);
}

/* Counts a list of axes from 0.  If `empty_is_all` is set, no list and an empty list become the
 * list of all axes. */
static void wrap_axes(Node *n, int i, int rank, bool empty_is_all)
{
    int64_t axis[MAX_RANK];
    int count = arg_count(n, i);
    bool changed = !count && empty_is_all && rank;
    if (!arg_ints(n, i, axis, MAX_RANK))
        return;
    for (int k = 0; k < count; k++)
        if (axis[k] < 0 && rank) {
            axis[k] += rank;
            changed = true;
        }
    for (int k = 0; !count && changed && k < rank; k++)
        axis[k] = k;
    if (!rank && empty_is_all) { /* torch lets a number have axis 0, the official kernels do not */
        changed = count > 0;
        count = 0;
    }
    if (changed)
        node_set_arg(n, i, arg_int_list(n->graph->program, axis, count ? count : rank));
}

/* Counts the axes that `dim` names from 0.  Empty parts of a concat may have a lower rank than its
 * result. */
static void wrap_along(Node *n)
{
    int i = arg_of(n, "dim"), in = first_operand(n)->type.rank, out = n->out[0]->type.rank;
    if (n->arg[i].kind == ARG_INT)
        wrap_axis(n, i, in > out ? in : out);
    else
        wrap_axes(n, i, in, true);
}

/* Repeats the number of a list with one item, such that it has `count` items. */
static void widen(Node *n, const char *name, int count)
{
    int64_t v[MAX_RANK];
    int i = arg_find(n, name);
    if (arg_count(n, i) != 1 || count == 1 || !arg_ints(n, i, v, 1))
        return;
    for (int k = 1; k < count; k++)
        v[k] = v[0];
    node_set_arg(n, i, arg_int_list(n->graph->program, v, count));
}

static void widen_window(Node *n, int count)
{
    static const char *const list[] = {"kernel_size", "stride", "padding", "dilation",
                                       "output_padding"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        widen(n, list[i], count);
}

/* Counts the start of a slice, or its end, from 0, and clamps it to the size.  An open end under a
 * symbolic size stays INT64_MAX, which costs no arithmetic at run time. */
static void spell_bound(Node *n, const char *name, Dim size, int64_t otherwise)
{
    int i = arg_of(n, name);
    int64_t v = otherwise;
    if (n->arg[i].kind != ARG_NONE && !arg_int(n, i, &v))
        return;
    if (!size.expr) {
        v = v < 0 ? v + size.value : v;
        v = v < 0 ? 0 : v > size.value ? size.value : v;
    }
    set_int(n, i, v);
}

static void spell_slice(Node *n)
{
    int64_t axis;
    Type t = arg_value(n, "self")->type;
    if (!arg_int(n, "dim", &axis) || axis >= t.rank)
        return;
    spell_bound(n, "start", t.dim[axis], 0);
    spell_bound(n, "end", t.dim[axis], INT64_MAX);
}

static void spell_select(Node *n)
{
    int64_t axis, at;
    Type t = arg_value(n, "self")->type;
    if (arg_int(n, "dim", &axis) && arg_int(n, "index", &at) && at < 0 && !t.dim[axis].expr)
        set_int(n, arg_of(n, "index"), at + t.dim[axis].value);
}

/* At this stage all tensors are contiguous, and nothing is copied between devices. */
static void spell_copy(Node *n)
{
    static const char *const name[] = {"memory_format", "non_blocking"};
    const Schema *s = node_schema(n);
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        int at = arg_find(n, name[i]);
        const Arg *a = at < 0 ? NULL : &n->arg[at];
        if (a && (a->kind == ARG_STRING || (a->kind == ARG_BOOL && a->b)))
            node_set_arg(n, at, s->arg[at].fallback);
    }
}

static void spell_arguments(Node *n)
{
    Pool pool;
    spell_copy(n);
    if (access_names_axes(n) && n->n_in)
        wrap_along(n);
    if (n->op == OP_PERMUTE)
        wrap_axes(n, arg_of(n, "dims"), first_operand(n)->type.rank, false);
    else if (n->op == OP_SLICE)
        spell_slice(n);
    else if (n->op == OP_SELECT_INT)
        spell_select(n);
    else if (n->op == OP_CONVOLUTION)
        widen_window(n, arg_value(n, "weight")->type.rank - 2);
    else if (pool_read(n, &pool)) {
        if (!arg_count(n, "stride"))
            node_set_arg(n, arg_of(n, "stride"), arg_get(n, "kernel_size"));
        widen_window(n, 2);
    }
}

/* -- identities: each returns what stands for the node, or NULL ----------------------------- */

static Value *same_type(const Node *n)
{
    Value *x = first_operand(n);
    return type_equal(x->type, n->out[0]->type) ? x : NULL;
}

/* x * 1, x / 1, x ** 1 ==> x */
static Value *times_one(const Node *n)
{
    double v;
    bool has_number = arg_number(n, "other", &v) || arg_number(n, "exponent", &v);
    return has_number && v == 1 ? same_type(n) : NULL;
}

/* i + 0 ==> i;  f + -0.0 ==> f, but f + 0.0 turns -0.0 into 0.0;  f - 0.0 ==> f */
static Value *plus_zero(const Node *n, bool minus)
{
    double v, alpha;
    if (!arg_number(n, "other", &v) || v != 0 || !arg_number(n, "alpha", &alpha) ||
        !isfinite(alpha))
        return NULL;
    bool adds_negative_zero = !signbit(v * alpha) == minus;
    return adds_negative_zero || !dtype_is_float(arg_value(n, "self")->type.dtype) ? same_type(n)
                                                                                   : NULL;
}

/* x[i : i + 1] without its axis ==> x[i] */
static Value *select_of(Rewrite *r, Node *n, const Node *def)
{
    Slice s;
    Type x = n->out[0]->type;
    if (!def || !slice_read(def, &s) || s.start.expr || s.x->type.rank != x.rank + 1 ||
        !dim_is_one(def->out[0]->type.dim[s.axis]) || !dims_equal(s.x->type.dim, x.dim, s.axis) ||
        (s.axis < x.rank &&
         !dims_equal(s.x->type.dim + s.axis + 1, x.dim + s.axis, x.rank - s.axis)))
        return NULL;
    return select_build(r->g, n, n->loc, s.x, s.axis, s.start, r->d);
}

/* view(view(x)) ==> view(x);  view(x, its sizes) ==> x */
static Value *plain_view(Rewrite *r, Node *n)
{
    Node *def = arg_value(n, "self")->def;
    if (def && node_is_view(def))
        node_set_in(n, 0, arg_value(def, "self"));
    Value *x = same_type(n);
    return x ? x : select_of(r, n, arg_value(n, "self")->def);
}

/* permute(permute(x, a), b) ==> permute(x, a[b]) */
static void merge_permutes(Node *n, Permute *b)
{
    Permute a;
    int64_t axis[MAX_RANK];
    if (!b->x->def || !permute_read(b->x->def, &a))
        return;
    for (int i = 0; i < b->rank; i++)
        axis[i] = b->axis[i] = a.axis[b->axis[i]];
    b->x = a.x;
    node_set_in(n, 0, a.x);
    node_set_arg(n, arg_of(n, "dims"), arg_int_list(n->graph->program, axis, b->rank));
}

static const char *next_name(Graph *g, const Value *like)
{
    return arena_numbered(g->program->arena, like->name, ".", graph_number(g) + 1);
}

/* permute(dequantize(constant)) ==> dequantize(permute(constant)): weights fold as integers */
static Value *permuted_integers(Rewrite *r, Node *n, const Permute *p)
{
    QParams q;
    const Node *from = p->x->def;
    if (!from || !qparams_read(from, &q) || !q.undoes || q.kind == Q_TOKEN || !value_is_known(q.x))
        return NULL;
    int64_t axis[MAX_RANK];
    for (int i = 0; i < p->rank; i++)
        axis[i] = p->axis[i];
    Value *integers = build_permute(r, n, q.x, axis);
    Node *y = integers ? node_like(r->g, from) : NULL;
    for (int i = 0; y && i < from->n_args; i++)
        node_push(y, arg_moved(y, from, from->arg[i]));
    if (!y)
        return NULL;
    node_set_in(y, 0, integers);
    for (int i = 0; q.kind == Q_CHANNEL && i < p->rank; i++)
        if (p->axis[i] == q.axis)
            node_set_arg(y, arg_of(y, "axis"), (Arg){.kind = ARG_INT, .dim = DIM(i)});
    node_add_out(y, next_name(r->g, n->out[0]), n->out[0]->type);
    graph_insert(r->g, n, y);
    return y->out[0];
}

/* dequantize(quantize(x)) in u8 ==> the same in i8 with a zero point less by 128 */
static Value *signed_integers(Rewrite *r, Node *n)
{
    enum { HALF = 128 };
    QParams q, p;
    const Node *from = first_operand(n)->def;
    if (!from || !qparams_read(n, &q) || !qparams_read(from, &p) || !q.undoes || p.undoes ||
        p.kind != Q_TENSOR || p.scales || q.scales || q.dtype != ETC_U8 || !qparams_equal(&p, &q) ||
        p.lo < 0 || p.hi > 2 * HALF - 1 || n->out[0]->type.dtype != ETC_F32)
        return NULL;
    const Node *integers = build(r->g, n, from->loc, from->op, r->d, "vfiiit", p.x, p.scale,
                                 p.zero - HALF, p.lo - HALF, p.hi - HALF, ETC_I8);
    return integers ? node_result(build(r->g, n, n->loc, n->op, r->d, "vfiiitn", integers->out[0],
                                        q.scale, q.zero - HALF, q.lo - HALF, q.hi - HALF, ETC_I8))
                    : NULL;
}

/* A cast of a tensor of rank 0 that is filled with an integer ==> one of the other dtype */
static Value *filled_cast(Rewrite *r, Node *n)
{
    const Value *x = first_operand(n);
    const Node *def = filling(x);
    EtcDtype t = n->out[0]->type.dtype;
    if (!def || x->type.dtype != ETC_I64 || !dtype_is_float(t) || dtype_is_half(t) ||
        arg_get(def, "fill_value").kind != ARG_INT)
        return NULL;
    return node_result(build(r->g, n, n->loc, def->op, r->d, "aat", arg_get(def, "size"),
                             arg_get(def, "fill_value"), t));
}

/* Turns a permutation that moves only axes of size 1 into a view, and removes one that moves
 * none. */
static Value *plain_permute(Rewrite *r, Node *n)
{
    Permute p;
    Type y = n->out[0]->type;
    if (!permute_read(n, &p))
        return NULL;
    merge_permutes(n, &p);
    for (int i = 0, last = -1; i < p.rank; i++) {
        if (dim_is_one(p.x->type.dim[p.axis[i]]))
            continue;
        if (p.axis[i] < last)
            return permuted_integers(r, n, &p);
        last = p.axis[i];
    }
    return build_view(r, n, p.x, y.dim, y.rank);
}

/* x[i] of an axis of size 1 ==> view */
static Value *select_only(Rewrite *r, Node *n)
{
    int64_t axis;
    Type x = arg_value(n, "self")->type, y = n->out[0]->type;
    if (!arg_int(n, "dim", &axis) || !dim_is_one(x.dim[axis]))
        return NULL;
    return build_view(r, n, arg_value(n, "self"), y.dim, y.rank);
}

/* copy(x, y) ==> y in x's dtype and sizes */
static Value *copied(Rewrite *r, Node *n)
{
    Type want = n->out[0]->type;
    Value *src = build_cast(r, n, arg_value(n, "src"), want.dtype);
    if (src && (src->type.rank != want.rank || !dims_equal(src->type.dim, want.dim, want.rank))) {
        Node *made = build(r->g, n, n->loc, OP_EXPAND, r->d, "vD", src, want.rank, want.dim);
        src = made ? made->out[0] : NULL;
    }
    return src;
}

/* roll(roll(x, s, a), t, b) ==> roll(x, s + t, a + b) along other axes */
static void merge_rolls(Node *n)
{
    int64_t shift[2 * MAX_RANK], axis[2 * MAX_RANK];
    const Node *def = arg_value(n, "self")->def;
    int k = def && def->op == OP_ROLL ? arg_count(def, "dims") : 0, all = k + arg_count(n, "dims");
    if (!k || all > MAX_RANK || !arg_ints(def, "shifts", shift, k) || !arg_ints(def, "dims", axis, k) ||
        !arg_ints(n, "shifts", shift + k, MAX_RANK) || !arg_ints(n, "dims", axis + k, MAX_RANK))
        return;
    for (int i = 0; i < k * (all - k); i++)
        if (axis[i % k] == axis[k + i / k])
            return;
    node_set_in(n, 0, arg_value(def, "self"));
    node_set_arg(n, arg_of(n, "shifts"), arg_int_list(n->graph->program, shift, all));
    node_set_arg(n, arg_of(n, "dims"), arg_int_list(n->graph->program, axis, all));
}

/* roll without dims ==> all elements as one row, rolled */
static Value *roll_row(Rewrite *r, Node *n)
{
    static const int64_t first = 0;
    Value *x = arg_value(n, "self");
    Type t = n->out[0]->type;
    Dim all = dims_numel(r->g->program, x->type);
    if (arg_count(n, "dims")) {
        merge_rolls(n);
        return NULL;
    }
    x = build_view(r, n, x, &all, 1);
    Node *m = x ? build(r->g, n, n->loc, OP_ROLL, r->d, "vaI", x, arg_get(n, "shifts"), 1,
                        &first)
                : NULL;
    return m ? build_view(r, n, m->out[0], t.dim, t.rank) : NULL;
}

/* Returns whether a constant condition is the same everywhere, and sets *truth to it. */
static bool is_uniform(const Value *v, bool *truth)
{
    int64_t count = type_is_static(v->type) ? type_numel(v->type) : 0;
    if (!count || !value_is_known(v) || v->type.dtype != ETC_BOOL)
        return false;
    *truth = v->state->data[0] != 0;
    for (int64_t i = 1; i < count; i++)
        if ((v->state->data[i] != 0) != *truth)
            return false;
    return true;
}

/* where(true everywhere, a, b) ==> a;  where(false everywhere, a, b) ==> b */
static Value *chosen(const Node *n)
{
    bool truth;
    if (!arg_value(n, "condition") || !is_uniform(arg_value(n, "condition"), &truth))
        return NULL;
    Value *v = arg_value(n, truth ? 1 : 2);
    return v && type_equal(v->type, n->out[0]->type) ? v : NULL;
}

static bool pads_nothing(const Node *n)
{
    int64_t pad[2 * MAX_RANK];
    if (!arg_ints(n, "pad", pad, 2 * MAX_RANK))
        return false;
    for (int i = 0; i < arg_count(n, "pad"); i++)
        if (pad[i])
            return false;
    return true;
}

/* cumsum of one element ==> that element; of floats in integers ==> of the integers that they
 * become: so torch defines it, and no kernel does both. */
static Value *running_sum(Rewrite *r, Node *n)
{
    Value *x = arg_value(n, "self");
    EtcDtype t = n->out[0]->type.dtype;
    if (!x->type.rank)
        return build_cast(r, n, x, t);
    Value *whole = dtype_is_float(x->type.dtype) && !dtype_is_float(t) ? build_cast(r, n, x, t) : NULL;
    if (whole)
        node_set_in(n, arg_get(n, "self").slot, whole);
    return NULL;
}

/* Returns the tensor of which v is element i along an axis that v keeps with size 1; or NULL. */
static Value *taken_from(const Value *v, int64_t axis, int64_t i)
{
    Narrow one;
    const Node *def = v->def && node_is_view(v->def) ? arg_value(v->def, "self")->def : NULL;
    if (!def || !narrow_read(def, &one) || !one.drops || one.axis != axis ||
        !dim_equal(one.start, DIM(i)))
        return NULL;
    return one.x;
}

/* cat of x[0], x[1], ..., all there are, along their axis ==> x */
static Value *rejoined(const Node *n)
{
    Concat c;
    Value *x = NULL;
    if (!concat_read(n, &c))
        return NULL;
    for (int i = 0; i < c.count; i++) {
        Value *of = taken_from(c.part[i], c.axis, i);
        if (!of || (x && of != x))
            return NULL;
        x = of;
    }
    return x && type_equal(x->type, n->out[0]->type) ? x : NULL;
}

/* cat(x[k:], x[:k]) ==> roll(x, -k), or by as much the other way where that is less */
static Value *rolled(Rewrite *r, Node *n, int64_t axis)
{
    Slice a, b;
    Concat c;
    if (!concat_read(n, &c))
        return NULL;
    const Node *first = c.part[0]->def, *last = c.part[1]->def;
    if (!first || !last || !slice_read(first, &a) || !slice_read(last, &b) || a.x != b.x ||
        a.axis != axis || b.axis != axis || a.step != 1 || b.step != 1 || a.start.expr ||
        a.start.value <= 0 || !dim_equal(a.start, b.end) || !dim_equal(b.start, DIM(0)) ||
        !dim_equal(a.end, a.x->type.dim[axis]))
        return NULL;
    Dim size = a.x->type.dim[axis];
    int64_t k = a.start.value, shift = !size.expr && size.value - k < k ? size.value - k : -k;
    Node *m = build(r->g, n, n->loc, OP_ROLL, r->d, "vII", a.x, 1, &shift, 1, &axis);
    if (m)
        merge_rolls(m);
    return node_result(m);
}

/* cat ==> of parts of its own dtype and rank: torch lets others be cast, and be lists of
 * nothing. */
static Value *joined(Rewrite *r, Node *n)
{
    Type y = n->out[0]->type;
    int64_t axis;
    int kept = 0;
    bool is_plain = true;
    Value **part = NEW(r->tmp, Value *, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++) {
        Value *v = n->in[i];
        is_plain = is_plain && v->type.rank == y.rank && v->type.dtype == y.dtype;
        if (v->type.rank == y.rank && !(part[kept++] = build_cast(r, n, v, y.dtype)))
            return NULL;
    }
    if (n->n_in == 1)
        return same_type(n);
    Value *whole = rejoined(n);
    if (whole)
        return whole;
    if (!kept || !arg_int(n, "dim", &axis))
        return NULL;
    if (is_plain)
        return n->n_in == 2 ? rolled(r, n, axis) : NULL;
    return kept == 1 ? part[0]
                     : node_result(build(r->g, n, n->loc, n->op, r->d, "Vi", kept, part, axis));
}

/* An index of one axis that has all its elements in their order ==> x with the sizes of the
 * index */
static Value *all_in_order(Rewrite *r, Node *n)
{
    Type x = arg_value(n, "self")->type, y = n->out[0]->type;
    const Value *at = arg_count(n, "indices") == 1 ? arg_list_value(n, "indices", 0) : NULL;
    if (!value_is_known(at) || x.rank != 1 || at->type.dtype != ETC_I64 ||
        !dim_equal(x.dim[0], DIM(type_numel(at->type))))
        return NULL;
    const int64_t *index = state_elements(at->state);
    for (int64_t i = 0; i < x.dim[0].value; i++)
        if (index[i] != i)
            return NULL;
    return build_view(r, n, arg_value(n, "self"), y.dim, y.rank);
}

static Value *stand_in(Rewrite *r, Node *n)
{
    switch (n->op) {
    case OP__TO_COPY: {
        Value *x = same_type(n);
        return x ? x : filled_cast(r, n);
    }
    case OP_CLONE:
    case OP_EXPAND:
    case OP_ALIAS:
        return same_type(n);
    case OP_VIEW:
        return plain_view(r, n);
    case OP_PERMUTE:
        return plain_permute(r, n);
    case OP_DEQUANTIZE_PER_TENSOR:
        return signed_integers(r, n);
    case OP_SELECT_INT:
        return select_only(r, n);
    case OP_SLICE: {
        int64_t step;
        return arg_int(n, "step", &step) && step == 1 ? same_type(n) : NULL;
    }
    case OP_WHERE_SELF:
        return chosen(n);
    case OP_CAT:
        return joined(r, n);
    case OP_CONSTANT_PAD_ND:
        return pads_nothing(n) ? same_type(n) : NULL;
    case OP_COPY:
        return copied(r, n);
    case OP_INDEX_TENSOR:
        return all_in_order(r, n);
    case OP_ROLL:
        return roll_row(r, n);
    case OP_CUMSUM:
        return running_sum(r, n);
    case OP_MUL_SCALAR:
    case OP_DIV_SCALAR:
    case OP_POW_TENSOR_SCALAR:
        return times_one(n);
    case OP_ADD_SCALAR:
        return plus_zero(n, false);
    case OP_SUB_SCALAR:
        return plus_zero(n, true);
    default:
        return NULL;
    }
}

/* -- what has no elements, or sums none -------------------------------------------------------- */

static bool is_empty(Type t)
{
    for (int i = 0; i < t.rank; i++)
        if (dim_equal(t.dim[i], DIM(0)))
            return true;
    return false;
}

static bool gives_nothing(const Node *n)
{
    if (!n->n_out || is_full(n) || !node_is_pure(n))
        return false;
    for (int i = 0; i < n->n_out; i++)
        if (!is_empty(n->out[i]->type))
            return false;
    return true;
}

/* Returns whether n is a product over no terms, whose result some kernels leave unwritten. */
static bool sums_nothing(const Node *n)
{
    Product p;
    return product_read(n, &p) && !p.bias && is_empty(p.x->type);
}

/* Results without elements, or of no terms ==> full of their sizes.  Kernels differ in which
 * operands without elements they take. */
static bool spell_nothing(Rewrite *r, Node *n)
{
    static const Arg zero = {.kind = ARG_INT};
    if (!gives_nothing(n) && !sums_nothing(n))
        return false;
    for (int i = 0; i < n->n_out; i++) {
        Type t = n->out[i]->type;
        Node *f = build(r->g, n, n->loc, OP_FULL, r->d, "Dat", t.rank, t.dim, zero, t.dtype);
        if (!f)
            return false;
        rewrite_result(r, n, i, f->out[0]);
    }
    graph_remove(r->g, n);
    return true;
}

bool pass_canonicalize(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    int errors = diag_errors(d);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        if (spell_nothing(&r, n) || !(n = to_scalar_row(&r, n)))
            continue;
        n = numbers_to_tensors(&r, n);
        spell_arguments(n);
        Value *v = stand_in(&r, n);
        if (v)
            rewrite_node(&r, n, v);
    }
    rewrite_finish(&r);
    return diag_errors(d) == errors;
}
