/* fit_kernels.c -- what the official kernels refuse, or compute otherwise than torch, in forms that
 * they take, on the way to a .pte.
 *
 * Stage core, pte tail, behind what makes nodes.  No rule here makes a node that a rule rewrites.
 */
#include "passes/decompose.h"
#include <string.h>

static bool is_one(Dim d)
{
    return dim_equal(d, DIM(1));
}

/* -- operands of unlike rank ----------------------------------------------------------------- */

/* Returns whether the official kernels give the result the rank of the operand that does not
 * broadcast, where the other broadcasts along one axis: they do for operands of one dtype that are
 * no halves.  A result of a higher rank cannot take that. */
static bool is_planned(const Node *n)
{
    switch (n->op) {
    case OP_ADD_TENSOR:
    case OP_SUB_TENSOR:
    case OP_MUL_TENSOR:
    case OP_DIV_TENSOR: {
        EtcDtype t = n->out[0]->type.dtype;
        return n->n_in == 2 && arg_value(n, "self")->type.dtype == t &&
               arg_value(n, "other")->type.dtype == t && t != ETC_F16 && t != ETC_BF16;
    }
    default:
        return false;
    }
}

static int leading_ones(Type t)
{
    int n = 0;
    while (n < t.rank && is_one(t.dim[n]))
        n++;
    return n;
}

/* Returns whether those kernels would give the result the rank of `whole`, though its own is that
 * of `part`; where sizes are open, whether they may. */
static bool loses_rank(Type whole, Type part)
{
    int more = part.rank - whole.rank, spread = 0, ones = 0;
    if (leading_ones(part) < more)
        return false;
    int whole_rank = whole.rank - leading_ones(whole), part_rank = part.rank - leading_ones(part);
    for (int i = 0; i < whole.rank; i++) {
        bool is_part = is_one(part.dim[more + i]), is_whole = is_one(whole.dim[i]);
        if (is_whole && !is_part)
            return false;
        spread += is_part && !is_whole;
        ones += is_part && i > whole.rank - whole_rank;
    }
    if (!type_is_static(whole))
        return spread > 0;
    return spread == 1 && ((whole_rank == part_rank && ones == 1) ||
                           (whole_rank == 2 && part_rank == 1));
}

static void level_ranks(Rewrite *r, Node *n)
{
    Type a = arg_value(n, "self")->type, b = arg_value(n, "other")->type, t = n->out[0]->type;
    int low = a.rank > b.rank;
    if (a.rank == b.rank || !loses_rank(low ? b : a, low ? a : b))
        return;
    Value *v = build_view(r, n, n->in[low], t.dim, t.rank);
    if (v)
        node_set_in(n, low, v);
}

/* -- arguments that are refused ---------------------------------------------------------------- */

/* An index of i32 ==> of i64 */
static void widen_index(Rewrite *r, Node *n)
{
    int slot = arg_get(n, "index").slot;
    Value *v = build_cast(r, n, n->in[slot], ETC_I64);
    if (v)
        node_set_in(n, slot, v);
}

/* linear of a vector ==> of one row */
static Value *linear_of_row(Rewrite *r, Node *n)
{
    Type t = arg_value(n, "input")->type, y = n->out[0]->type;
    if (t.rank != 1)
        return NULL;
    Value *x = build_view(r, n, arg_value(n, "input"), (Dim[]){DIM(1), t.dim[0]}, 2);
    Node *m = x ? build(r->g, n, n->loc, OP_LINEAR, r->d, "vvv", x, arg_value(n, "weight"),
                        arg_value(n, "bias"))
                : NULL;
    return m ? build_view(r, n, m->out[0], y.dim, y.rank) : NULL;
}

/* A number added to a tensor that it makes another dtype of ==> to one of that dtype */
static void cast_operand(Rewrite *r, Node *n)
{
    Value *v = build_cast(r, n, arg_value(n, "self"), n->out[0]->type.dtype);
    if (v)
        node_set_in(n, 0, v);
}

/* Borders below 0 ==> what they leave of the input, and the other borders around it */
static Value *crop_and_pad(Rewrite *r, Node *n)
{
    Value *x = arg_value(n, "self");
    int64_t pad[2 * MAX_RANK];
    int count = arg_count(n, "pad"), axis = x->type.rank;
    bool crops = false, pads = false;
    if (!arg_ints(n, "pad", pad, 2 * MAX_RANK))
        return NULL;
    for (int i = 0; i < count; i++)
        crops = crops || pad[i] < 0;
    for (int i = 0; x && crops && i + 1 < count; i += 2)
        x = build_cropped(r, n, x, --axis, pad[i], pad[i + 1]);
    for (int i = 0; i < count; i++) {
        pad[i] = pad[i] < 0 ? 0 : pad[i];
        pads = pads || pad[i];
    }
    if (!crops || !x || !pads)
        return crops ? x : NULL;
    return node_result(build(r->g, n, n->loc, OP_CONSTANT_PAD_ND, r->d, "vIa", x, count, pad,
                             arg_get(n, "value")));
}

/* -- numbers that are wrong -------------------------------------------------------------------- */

/* sum(x) along one axis, of sizes y, as one along two, the second of size 1. */
static Value *sum_of_two(Rewrite *r, Node *n, Value *x, int64_t axis, Type y)
{
    Type t = x->type;
    Dim dim[MAX_RANK + 1];
    int64_t both[2] = {axis, axis + 1};
    for (int i = 0; i <= t.rank; i++)
        dim[i] = i == axis + 1 ? DIM(1) : t.dim[i - (i > axis)];
    x = build_view(r, n, x, dim, t.rank + 1);
    bool is_told = dtype_is_int(y.dtype) && y.dtype != ETC_I64; /* sums of integers are i64 else */
    Arg none = {.kind = ARG_NONE}, dtype = is_told ? arg_get(n, "dtype") : none;
    Node *m = x ? build(r->g, n, n->loc, OP_SUM_DIM, r->d, "vIba", x, 2, both, false, dtype) : NULL;
    return m ? build_view(r, n, m->out[0], y.dim, y.rank) : NULL;
}

/* The kernel that sums one axis does so in f32, whatever the dtype; another one sums several. */
static Value *sum_exactly(Rewrite *r, Node *n)
{
    Type t = arg_value(n, "self")->type, y = n->out[0]->type;
    int64_t axis;
    if (t.dtype == ETC_F32 || t.dtype != y.dtype || !t.rank || t.rank == MAX_RANK ||
        arg_count(n, "dim") != 1 || !arg_ints(n, "dim", &axis, 1))
        return NULL;
    return sum_of_two(r, n, arg_value(n, "self"), axis < 0 ? axis + t.rank : axis, y);
}

/* The kernel goes through f64, which does not hold every i64 ==> products */
static Value *whole_power(Rewrite *r, Node *n)
{
    Value *x = arg_value(n, "self"), *y = NULL;
    int64_t by;
    if (!dtype_is_int(n->out[0]->type.dtype) || !arg_int(n, "exponent", &by) || by < 2)
        return NULL;
    for (; x && by; by /= 2) {
        if (by % 2)
            y = y ? build_pair(r, n, OP_MUL_TENSOR, x, y) : x;
        if (by > 1)
            x = build_pair(r, n, OP_MUL_TENSOR, x, x);
    }
    return y;
}

/* p <= q of truth values, of which the kernel compares other bits ==> !p | q */
static Value *implied(Rewrite *r, Node *n)
{
    if (n->n_in != 2 || arg_value(n, "self")->type.dtype != ETC_BOOL ||
        arg_value(n, "other")->type.dtype != ETC_BOOL)
        return NULL;
    Value *no =
        node_result(build(r->g, n, n->loc, OP_LOGICAL_NOT, r->d, "v", arg_value(n, "self")));
    return build_pair(r, n, OP_LOGICAL_OR, no, arg_value(n, "other"));
}

/* The kernel takes the sign of what is divided, and f32 for f64 ==> fmod, with the divisor added
 * where the signs differ */
static Value *remainder_spelled(Rewrite *r, Node *n)
{
    Type t = n->out[0]->type;
    Arg by = n->arg[arg_of(n, "other")];
    double v;
    if (t.dtype == ETC_F32 || !arg_number(n, "other", &v) || v == 0)
        return NULL;
    Value *x = build_cast(r, n, arg_value(n, "self"), t.dtype);
    Value *m = x ? node_result(build(r->g, n, n->loc, OP_FMOD_SCALAR, r->d, "va", x, by)) : NULL;
    Value *plus = m ? node_result(build(r->g, n, n->loc, OP_ADD_SCALAR, r->d, "va", m, by)) : NULL;
    OpId differs = v > 0 ? OP_LT_SCALAR : OP_GT_SCALAR;
    Value *is = plus ? node_result(build(r->g, n, n->loc, differs, r->d, "vi", m, (int64_t)0))
                     : NULL;
    return is ? node_result(build(r->g, n, n->loc, OP_WHERE_SELF, r->d, "vvv", is, plus, m))
              : NULL;
}

/* log_softmax in f64 ==> y - log(sum(exp(y))) with y = x - amax(x) */
static Value *log_softmax_spelled(Rewrite *r, Node *n)
{
    Value *x = arg_value(n, "self");
    int64_t axis;
    int rank = x->type.rank;
    if (n->out[0]->type.dtype != ETC_F64 || rank == MAX_RANK || !arg_int(n, "dim", &axis))
        return NULL;
    axis += axis < 0 ? rank : 0;
    Value *top = node_result(build(r->g, n, n->loc, OP_AMAX, r->d, "vIb", x, 1, &axis, true));
    Value *y = build_pair(r, n, OP_SUB_TENSOR, x, top);
    Value *e = y ? node_result(build(r->g, n, n->loc, OP_EXP, r->d, "v", y)) : NULL;
    Value *sum = e && rank ? sum_of_two(r, n, e, axis, top->type) : e;
    Value *log = sum ? node_result(build(r->g, n, n->loc, OP_LOG, r->d, "v", sum)) : NULL;
    return build_pair(r, n, OP_SUB_TENSOR, y, log);
}

/* -- rules that are text ------------------------------------------------------------------------ */

/* The rule of composites.txt that stands for the node, or NULL.  One under "kernel." may make such a
 * node again: what is new is not looked at. */
static const char *rule_for(const Node *n, Arena *tmp)
{
    const char *target = op_info[n->op].target;
    EtcDtype t = n->n_out ? n->out[0]->type.dtype : ETC_F32;
    switch (n->op) {
    case OP__ADAPTIVE_AVG_POOL2D: /* summed in f32 */
    case OP_GRID_SAMPLER_2D:
    case OP_NATIVE_GROUP_NORM:
        return t == ETC_F64 ? target : NULL;
    case OP_UPSAMPLE_BILINEAR2D_VEC: /* cut off where torch rounds */
        return t == ETC_U8 ? target : NULL;
    case OP_REMAINDER_TENSOR:
    case OP_FLOOR_DIVIDE:
    case OP_SIGN:
        return arena_join(tmp, "kernel.", target);
    default:
        return NULL;
    }
}

/* -- the walk ---------------------------------------------------------------------------------- */

/* Returns the value that takes the node's place; NULL: the node stays, maybe with other
 * operands. */
static Value *fitted(Rewrite *r, Node *n)
{
    switch (n->op) {
    case OP_GATHER:
        widen_index(r, n);
        return NULL;
    case OP_ADD_SCALAR:
        cast_operand(r, n);
        return NULL;
    case OP_SUM_DIM:
        return sum_exactly(r, n);
    case OP_POW_TENSOR_SCALAR:
        cast_operand(r, n);
        return whole_power(r, n);
    case OP_LE_TENSOR:
        return implied(r, n);
    case OP_REMAINDER_SCALAR:
        return remainder_spelled(r, n);
    case OP_LINEAR:
        return linear_of_row(r, n);
    case OP_CONSTANT_PAD_ND:
        return crop_and_pad(r, n);
    case OP__LOG_SOFTMAX:
        return log_softmax_spelled(r, n);
    default:
        if (is_planned(n))
            level_ranks(r, n);
        return NULL;
    }
}

bool pass_fit_kernels(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    int errors = diag_errors(d);
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        const char *rule = rule_for(n, tmp);
        Value *v = rule ? NULL : fitted(&r, n);
        if (rule)
            ok = rewrite_by_rule(&r, n, rule) && ok;
        else if (v)
            rewrite_node(&r, n, v);
    }
    rewrite_finish(&r);
    return ok && diag_errors(d) == errors;
}
