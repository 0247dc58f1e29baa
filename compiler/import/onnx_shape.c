/* onnx_shape.c -- reads ONNX operators that move elements or return sizes. */
#include "compiler/import/onnx.h"
#include <string.h>

/* -- constants and sizes ----------------------------------------------------------------------- */

bool onnx_dropout(OnnxNode *n)
{
    const OnnxList *trains = on_has(n, 2) ? on_list(n, 2) : NULL;
    const OnnxList *ratio = on_has(n, 1) ? on_list(n, 1) : NULL;
    bool keeps_all = ratio && ratio->number && ratio->n == 1 && ratio->number[0] == 0;
    if (on_has(n, 2) && !keeps_all && (!trains || !trains->dim || trains->n != 1 ||
                                        trains->dim[0].expr || trains->dim[0].value))
        return onnx_unsupported(n, "drops elements at random: export the model in eval mode");
    Value *x = on_value(n, 0);
    if (!x || !on_wants(n, 1))
        return on_define(n, 0, x);
    Value *mask = ON_BUILD(n, OP_FULL, "Dbt", x->type.rank, x->type.dim, true, ETC_BOOL);
    return mask && on_define(n, 0, x) && on_define(n, 1, mask);
}

bool onnx_identity(OnnxNode *n)
{
    OnnxValue *v = on_input(n, 0);
    if (on_wants(n, 1))
        return onnx_unsupported(n, "gives the mask of what it keeps");
    return v && on_give(n, 0, v);
}

static bool constant_list(OnnxNode *n, const Onnx__Attribute *a, int rank)
{
    bool is_float = a->n_floats || a->has_f;
    int count = rank ? (int)(a->n_floats ? a->n_floats : a->n_ints) : 1;
    OnnxList *l = on_new_list(n, is_float ? ETC_F32 : ETC_I64, rank, count);
    for (int i = 0; i < count; i++) {
        if (is_float)
            l->number[i] = (double)(rank ? a->floats[i] : a->f);
        else
            l->dim[i] = DIM(rank ? a->ints[i] : a->i);
    }
    return on_define_list(n, 0, l);
}

bool onnx_constant(OnnxNode *n)
{
    const Onnx__Attribute *a = on_attribute(n, "value");
    const char *name = onnx_text(n->in, n->node->output[0]);
    if (!a || !a->t) {
        const Onnx__Attribute *f = on_attribute(n, "value_float"), *i = on_attribute(n, "value_int");
        const Onnx__Attribute *fs = on_attribute(n, "value_floats");
        const Onnx__Attribute *is = on_attribute(n, "value_ints");
        if (f || i)
            return constant_list(n, f ? f : i, 0);
        if (fs || is)
            return constant_list(n, fs ? fs : is, 1);
        return onnx_unsupported(n, "is a constant that is not a tensor of numbers");
    }
    OnnxValue *v = NEW(n->in->tmp, OnnxValue, 1);
    v->constant = onnx_const(n->in, n->loc, a->t);
    if (!name || !v->constant)
        return false;
    TableItem *at = table_at_text(&n->scope->values, name);
    if (at->ptr)
        return onnx_wrong(n, "defines '%s' a second time", name);
    at->ptr = v;
    return true;
}

bool onnx_constant_of_shape(OnnxNode *n)
{
    Dim dim[MAX_RANK];
    int rank;
    const Onnx__Attribute *a = on_attribute(n, "value");
    const OnnxConst *c = a && a->t ? onnx_const(n->in, n->loc, a->t) : NULL;
    const OnnxList *l = c ? onnx_const_list(n->in, c) : NULL;
    if (!on_dims(n, 0, dim, &rank))
        return false;
    if (a && a->t && (!l || l->n != 1))
        return onnx_unsupported(n, "fills with other than one number of 32 or 64 bits");
    if (!l)
        return on_define(n, 0, ON_BUILD(n, OP_FULL, "Dft", rank, dim, 0.0, ETC_F32));
    return on_define(n, 0, l->number ? ON_BUILD(n, OP_FULL, "Dft", rank, dim, l->number[0], l->dtype)
                           : l->dtype == ETC_BOOL
                               ? ON_BUILD(n, OP_FULL, "Dbt", rank, dim, l->dim[0].value != 0, l->dtype)
                               : ON_BUILD(n, OP_FULL, "Ddt", rank, dim, l->dim[0], l->dtype));
}

bool onnx_shape(OnnxNode *n)
{
    return onnx_unsupported(n, "takes the sizes of a value that is not a tensor");
}

bool onnx_range(OnnxNode *n)
{
    const OnnxList *l[3] = {on_list(n, 0), on_list(n, 1), on_list(n, 2)};
    if (!l[0] || !l[1] || !l[2] || l[0]->n != 1 || l[1]->n != 1 || l[2]->n != 1)
        return onnx_unsupported(n, "has ends that are computed from elements");
    EtcDtype t = l[0]->dtype;
    if (l[0]->number)
        return on_define(n, 0, ON_BUILD(n, OP_ARANGE_START_STEP, "ffft", l[0]->number[0],
                                        l[1]->number[0], l[2]->number[0], t));
    return on_define(n, 0, ON_BUILD(n, OP_ARANGE_START_STEP, "dddt", l[0]->dim[0], l[1]->dim[0],
                                    l[2]->dim[0], t));
}

/* -- views ------------------------------------------------------------------------------------- */

Dim on_numel(OnnxNode *n, const Value *x)
{
    Dim d = DIM(1);
    for (int i = 0; i < x->type.rank; i++)
        d = dim_mul(n->in->program, d, x->type.dim[i]);
    return d;
}

/* Returns the size for -1, at position `left`: the product of the sizes that only the operand has,
 * divided by the product of those that only the result has. */
static Dim left_over(Program *p, const Value *x, const Dim *dim, int rank, int left)
{
    Dim all = DIM(1), rest = DIM(1);
    bool is_met[MAX_RANK] = {0};
    for (int i = 0; i < rank; i++) {
        int k = 0;
        while (k < x->type.rank && (is_met[k] || !dim_equal(x->type.dim[k], dim[i])))
            k++;
        if (i != left && k < x->type.rank)
            is_met[k] = true;
        else if (i != left)
            rest = dim_mul(p, rest, dim[i]);
    }
    for (int k = 0; k < x->type.rank; k++)
        if (!is_met[k])
            all = dim_mul(p, all, x->type.dim[k]);
    return dim_floordiv(p, all, rest);
}

/* Reads a reshape.  A size of 0 means that of the operand, and -1 the size that is left. */
bool onnx_reshape(OnnxNode *n)
{
    Dim dim[MAX_RANK];
    int rank, left = -1;
    bool keeps_zero = on_int(n, "allowzero", 0), has_zero = false;
    Value *x = on_value(n, 0);
    if (!x || !on_dims(n, 1, dim, &rank))
        return false;
    for (int i = 0; i < rank; i++) {
        bool is_zero = !dim[i].expr && dim[i].value == 0 && !keeps_zero;
        if (is_zero && i >= x->type.rank)
            return onnx_wrong(n, "keeps the size of axis %d, which the operand does not have", i);
        dim[i] = is_zero ? x->type.dim[i] : dim[i];
        if (!dim[i].expr && dim[i].value == -1) {
            if (left >= 0)
                return onnx_wrong(n, "has two sizes of -1");
            left = i;
        }
        has_zero = has_zero || (!dim[i].expr && dim[i].value == 0);
    }
    if (left >= 0 && has_zero)
        return onnx_wrong(n, "has a size of -1 together with a size of 0");
    if (left >= 0)
        dim[left] = left_over(n->in->program, x, dim, rank, left);
    if (left >= 0 && dim_is_bad(dim[left]))
        return onnx_unsupported(
            n,
            "cannot tell the size of axis %d, as one of the sizes beside it may be 0: raise "
            "the least sizes of the inputs with --dim",
            left);
    return on_define(n, 0, on_view(n, x, rank, dim));
}

bool onnx_flatten(OnnxNode *n)
{
    Dim flat[2] = {DIM(1), DIM(1)};
    Value *x = on_value(n, 0);
    if (!x)
        return false;
    int64_t axis = on_int(n, "axis", 1);
    axis += axis < 0 ? x->type.rank : 0;
    if (axis < 0 || axis > x->type.rank)
        return onnx_wrong(n, "axis %lld is out of range for rank %d", (long long)axis, x->type.rank);
    for (int i = 0; i < x->type.rank; i++)
        flat[i >= axis] = dim_mul(n->in->program, flat[i >= axis], x->type.dim[i]);
    return on_define(n, 0, on_view(n, x, 2, flat));
}

/* Reads axes from an attribute, or from opset 13 on from an input.  Returns their number; -1: there
 * are none, so the operator chooses, or an error was reported. */
static int axes_of_views(OnnxNode *n, int rank, bool goes[MAX_RANK])
{
    int64_t at[MAX_RANK];
    int axis, count = on_ints(n, "axes", at, MAX_RANK);
    if (on_has(n, 1) && !on_numbers(n, 1, at, &count))
        return -1;
    memset(goes, 0, MAX_RANK * sizeof *goes);
    for (int i = 0; i < count; i++) {
        if (!on_axis(n, at[i], rank, &axis))
            return -1;
        if (goes[axis]) {
            onnx_wrong(n, "has axis %d twice", axis);
            return -1;
        }
        goes[axis] = true;
    }
    return count;
}

/* Keeps an axis of symbolic size.  Calls in which it has size 1 are refused, because ONNX would
 * drop the axis. */
static void keep_axis(OnnxNode *n, Dim size, int axis)
{
    Program *p = n->in->program;
    int64_t lo, hi;
    dim_range(size, &lo, &hi);
    const char *text = arena_printf(p->arena, "more than 1 element along axis %d of the operand of '%s'",
                                    axis, n->loc.node);
    Guard g = {size, 2, hi, text};
    if (lo < 2 && hi > 1)
        PUSH(p->arena, p->guard, p->n_guards, g);
}

bool onnx_squeeze(OnnxNode *n)
{
    Dim dim[MAX_RANK];
    bool goes[MAX_RANK];
    Value *x = on_value(n, 0);
    if (!x)
        return false;
    int rank = 0, count = axes_of_views(n, x->type.rank, goes);
    for (int i = 0; i < x->type.rank && !n->failed; i++) {
        bool is_one = !x->type.dim[i].expr && x->type.dim[i].value == 1;
        if (count < 0 ? is_one : goes[i])
            continue;
        if (count < 0 && x->type.dim[i].expr)
            keep_axis(n, x->type.dim[i], i);
        dim[rank++] = x->type.dim[i];
    }
    return !n->failed && on_define(n, 0, on_view(n, x, rank, dim));
}

bool onnx_unsqueeze(OnnxNode *n)
{
    Dim dim[MAX_RANK];
    bool goes[MAX_RANK];
    int64_t at[MAX_RANK];
    Value *x = on_value(n, 0);
    const OnnxList *l = on_has(n, 1) ? on_list(n, 1) : NULL;
    int count = l ? l->n : on_ints(n, "axes", at, MAX_RANK);
    if (!x || count < 0 || x->type.rank + count > MAX_RANK)
        return onnx_unsupported(n, "has no axes that are known, or more than 16 in all");
    int rank = x->type.rank + count;
    if (axes_of_views(n, rank, goes) < 0)
        return false;
    for (int i = 0, k = 0; i < rank; i++)
        dim[i] = goes[i] ? DIM(1) : x->type.dim[k++];
    return on_define(n, 0, on_view(n, x, rank, dim));
}

bool onnx_transpose(OnnxNode *n)
{
    int64_t perm[MAX_RANK];
    Value *x = on_value(n, 0);
    int count = on_ints(n, "perm", perm, MAX_RANK);
    if (!x || n->failed)
        return false;
    for (int i = 0; count < 0 && i < x->type.rank; i++)
        perm[i] = x->type.rank - 1 - i;
    return on_define(n, 0, ON_BUILD(n, OP_PERMUTE, "vI", x, count < 0 ? x->type.rank : count, perm));
}

bool onnx_expand(OnnxNode *n)
{
    Dim to[MAX_RANK], dim[MAX_RANK];
    int count;
    Value *x = on_value(n, 0);
    if (!x || !on_dims(n, 1, to, &count))
        return false;
    int rank = on_broadcast(n, x->type, (Type){.rank = count, .dim = to}, dim);
    return rank >= 0 && on_define(n, 0, ON_BUILD(n, OP_EXPAND, "vD", x, rank, dim));
}

bool onnx_tile(OnnxNode *n)
{
    Dim times[MAX_RANK];
    int count;
    Value *x = on_value(n, 0);
    return x && on_dims(n, 1, times, &count) &&
           on_define(n, 0, ON_BUILD(n, OP_REPEAT, "vD", x, count, times));
}

/* -- parts ------------------------------------------------------------------------------------- */

bool onnx_concat(OnnxNode *n)
{
    Value **part = NEW(n->in->tmp, Value *, n->node->n_input + 1);
    int axis, count = (int)n->node->n_input;
    for (int i = 0; i < count; i++)
        if (!(part[i] = on_value(n, i)))
            return false;
    if (!count)
        return onnx_wrong(n, "joins nothing");
    return on_axis(n, on_int(n, "axis", 1), part[0]->type.rank, &axis) &&
           on_define(n, 0, count == 1 ? part[0] : on_join(n, count, part, axis));
}

/* Splits a list into lists. */
static bool split_list(OnnxNode *n, const OnnxList *x, const Dim *size, int count)
{
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        if (size[i].expr || size[i].value < 0 || size[i].value > x->n - at)
            return onnx_wrong(n, "has parts that do not match its operand");
        OnnxList *l = on_new_list(n, x->dtype, 1, (int)size[i].value);
        for (int k = 0; k < l->n; k++, at++) {
            if (x->dim)
                l->dim[k] = x->dim[at];
            else
                l->number[k] = x->number[at];
        }
        if (on_wants(n, i) && !on_define_list(n, i, l))
            return false;
    }
    return true;
}

/* Splits an axis.  The sizes are an attribute or an input.  Without them all parts are equal, but
 * the last one may be smaller. */
bool onnx_split(OnnxNode *n)
{
    enum { MOST = 256 };
    int64_t listed[MOST];
    Dim size[MOST];
    int axis, count = (int)n->node->n_output, given = on_ints(n, "split", listed, MOST);
    Program *p = n->in->program;
    const OnnxList *list = on_list(n, 0), *l = on_has(n, 1) ? on_list(n, 1) : NULL;
    Value *x = list && list->rank == 1 ? NULL : on_value(n, 0);
    Dim all = x && x->type.rank ? x->type.dim[0] : DIM(list ? list->n : 0), at = DIM(0);
    if (n->failed || (!x && !list) || !on_axis(n, on_int(n, "axis", 0), x ? x->type.rank : 1, &axis))
        return false;
    all = x ? x->type.dim[axis] : all;
    if (count > MOST || (on_has(n, 1) && (!l || !l->dim || l->n != count)) ||
        (given >= 0 && given != count))
        return onnx_wrong(n, "gives %d parts, but not as many sizes that are known, or more than 256", count);
    Dim each = dim_floordiv(p, dim_add(p, all, DIM(count - 1)), DIM(count));
    for (int i = 0; i < count; i++) {
        size[i] = l ? l->dim[i] : given >= 0 ? DIM(listed[i]) : i < count - 1 ? each : dim_sub(p, all, at);
        at = dim_add(p, at, size[i]);
    }
    if (!x)
        return split_list(n, list, size, count);
    at = DIM(0);
    for (int i = 0; i < count; i++) {
        Dim end = dim_add(p, at, size[i]);
        if (on_wants(n, i) && !on_define(n, i, on_part(n, x, axis, at, end, 1)))
            return false;
        at = end;
    }
    return true;
}

/* Returns a slice of one axis.  With a negative step the axis is reversed first. */
static Value *sliced(OnnxNode *n, Value *x, int axis, Dim from, Dim to, int64_t step)
{
    Dim size = x->type.dim[axis];
    int64_t dim = axis;
    if (step == 0) {
        onnx_wrong(n, "has a step of 0");
        return NULL;
    }
    if (step < 0) {
        int64_t lo = INT32_MIN;
        bool is_whole = !from.expr && (from.value == -1 || from.value >= INT32_MAX) && !to.expr &&
                        to.value <= lo;
        if (size.expr && is_whole) {
            x = ON_BUILD(n, OP_FLIP, "vI", x, 1, &dim);
            return x && step < -1
                       ? on_part(n, x, axis, DIM(0), size, step == INT64_MIN ? INT64_MAX : -step)
                       : x;
        }
        if (from.expr || to.expr || size.expr) {
            onnx_unsupported(n,
                             "goes backwards along an axis whose size is known only at run time");
            return NULL;
        }
        int64_t s = size.value, a = from.value, b = to.value;
        a = a < -s ? -1 : a < 0 ? a + s : a > s - 1 ? s - 1 : a;
        b = b <= lo || b < -s ? -1 : b < 0 ? b + s : b > s - 1 ? s - 1 : b;
        x = ON_BUILD(n, OP_FLIP, "vI", x, 1, &dim);
        from = DIM(s - 1 - a);
        to = DIM(s - 1 - b < s - 1 - a ? s - 1 - a : s - 1 - b);
        step = step == INT64_MIN ? INT64_MAX : -step;
    }
    if (!to.expr && to.value >= INT32_MAX)
        to = size;
    return x ? ON_BUILD(n, OP_SLICE, "viddi", x, dim, from, to, step) : NULL;
}

bool onnx_slice_old(OnnxNode *n)
{
    int64_t from[MAX_RANK], to[MAX_RANK], at[MAX_RANK];
    Value *x = on_value(n, 0);
    int count = on_ints(n, "starts", from, MAX_RANK), axis, axes = on_ints(n, "axes", at, MAX_RANK);
    if (!x || count < 0 || on_ints(n, "ends", to, MAX_RANK) != count || (axes >= 0 && axes != count))
        return onnx_wrong(n, "has not as many starts as ends and axes");
    for (int i = 0; x && i < count; i++) {
        if (!on_axis(n, axes < 0 ? i : at[i], x->type.rank, &axis))
            return false;
        x = sliced(n, x, axis, DIM(from[i]), DIM(to[i]), 1);
    }
    return on_define(n, 0, x);
}

bool onnx_slice(OnnxNode *n)
{
    Dim from[MAX_RANK], to[MAX_RANK], at[MAX_RANK], step[MAX_RANK];
    int count, ends, axes = -1, steps = -1, axis;
    Value *x = on_value(n, 0);
    if (!x || !on_dims(n, 1, from, &count) || !on_dims(n, 2, to, &ends) ||
        (on_has(n, 3) && !on_dims(n, 3, at, &axes)) || (on_has(n, 4) && !on_dims(n, 4, step, &steps)))
        return false;
    if (ends != count || (axes >= 0 && axes != count) || (steps >= 0 && steps != count))
        return onnx_wrong(n, "has not as many starts as ends, axes and steps");
    for (int i = 0; x && i < count; i++) {
        if (!on_axis(n, axes < 0 ? i : at[i].value, x->type.rank, &axis))
            return false;
        x = sliced(n, x, axis, from[i], to[i], steps < 0 ? 1 : step[i].value);
    }
    return on_define(n, 0, x);
}

/* Returns a border of x along an axis, with `count` elements: those from `from` on, reflected or
 * wrapped, or copies of the one element there. */
static Value *border(OnnxNode *n, Value *x, int axis, const char *mode, Dim from, int64_t count)
{
    int64_t dim = axis;
    Dim size[MAX_RANK];
    bool is_edge = !strcmp(mode, "edge");
    Dim to = dim_add(n->in->program, from, DIM(is_edge ? 1 : count));
    Value *v = on_part(n, x, axis, from, to, 1);
    for (int i = 0; v && i < x->type.rank; i++)
        size[i] = i == axis ? DIM(count) : x->type.dim[i];
    if (v && is_edge)
        return ON_BUILD(n, OP_EXPAND, "vD", v, x->type.rank, size);
    return v && !strcmp(mode, "reflect") ? ON_BUILD(n, OP_FLIP, "vI", v, 1, &dim) : v;
}

static Value *mirrored(OnnxNode *n, Value *x, int axis, const char *mode, int64_t before,
                       int64_t after)
{
    Program *p = n->in->program;
    Dim size = x->type.dim[axis];
    bool reflects = !strcmp(mode, "reflect"), is_edge = !strcmp(mode, "edge");
    int64_t most = reflects ? 1 : 0, count = 0;
    Value *part[3];
    if (!reflects && !is_edge && strcmp(mode, "wrap") != 0) {
        onnx_unsupported(n, "pads in mode '%s'", mode);
        return NULL;
    }
    if ((before < 0 || after < 0) && before >= INT32_MIN && after >= INT32_MIN) { /* crops first */
        Dim end = after < 0 ? dim_add(p, size, DIM(after)) : size;
        if (!(x = on_part(n, x, axis, DIM(before < 0 ? -before : 0), end, 1)))
            return NULL;
        size = x->type.dim[axis];
        before = before < 0 ? 0 : before;
        after = after < 0 ? 0 : after;
    }
    if (before < 0 || after < 0 ||
        (!is_edge && !size.expr && (before > size.value - most || after > size.value - most))) {
        onnx_unsupported(n, "pads by less than nothing, or by more than there is");
        return NULL;
    }
    if (before)
        part[count++] = border(n, x, axis, mode, reflects ? DIM(1) : is_edge ? DIM(0)
                                                 : dim_sub(p, size, DIM(before)), before);
    part[count++] = x;
    if (after)
        part[count++] = border(n, x, axis, mode,
                               is_edge    ? dim_sub(p, size, DIM(1))
                               : reflects ? dim_sub(p, size, DIM(after + 1))
                                          : DIM(0),
                               after);
    for (int i = 0; i < count; i++)
        if (!part[i])
            return NULL;
    return count == 1 ? x : ON_BUILD(n, OP_CAT, "Vi", (int)count, part, (int64_t)axis);
}

/* Returns torch's operator that pads the last axes of x as `mode` says, and leaves alone channels and
 * perhaps a batch; OP_NONE: there is none.  *first is the first axis that it pads. */
static OpId pad_of(const Value *x, const Dim *pads, const char *mode, int *first)
{
    static const OpId row[2][3] = {{OP_REFLECTION_PAD1D, OP_REFLECTION_PAD2D, OP_REFLECTION_PAD3D},
                                   {OP_REPLICATION_PAD1D, OP_REPLICATION_PAD2D, OP_REPLICATION_PAD3D}};
    int rank = x->type.rank, kept = 0;
    bool is_edge = !strcmp(mode, "edge");
    for (int i = 0; i < 2 * rank; i++)
        if (pads[i].value < 0)
            return OP_NONE;
    while (kept < 2 && kept < rank - 1 && !pads[kept].value && !pads[kept + rank].value)
        kept++;
    *first = kept;
    bool has = kept && rank - kept <= 3 && dtype_is_float(x->type.dtype);
    return has && (is_edge || !strcmp(mode, "reflect")) ? row[is_edge][rank - kept - 1] : OP_NONE;
}

/* Pads x. torch takes the last axis first, with its begin and end beside each other. */
static bool padded(OnnxNode *n, const Dim *pads, int count, const char *mode, double with)
{
    Dim pair[2 * MAX_RANK];
    Value *x = on_value(n, 0);
    int rank = x ? x->type.rank : 0, first;
    if (!x || count != 2 * rank)
        return x ? onnx_wrong(n, "has %d paddings for rank %d", count, rank) : false;
    for (int i = 0; i < rank; i++) {
        pair[2 * i] = pads[rank - 1 - i];
        pair[2 * i + 1] = pads[2 * rank - 1 - i];
    }
    if (strcmp(mode, "constant") == 0) {
        Value *y = dtype_is_float(x->type.dtype)
                       ? ON_BUILD(n, OP_CONSTANT_PAD_ND, "vDf", x, count, pair, with)
                       : ON_BUILD(n, OP_CONSTANT_PAD_ND, "vDi", x, count, pair, (int64_t)with);
        return on_define(n, 0, y);
    }
    for (int i = 0; i < count; i++)
        if (pads[i].expr)
            return onnx_unsupported(n, "has paddings of mode '%s' that calls decide", mode);
    OpId op = pad_of(x, pads, mode, &first);
    if (op != OP_NONE)
        return on_define(n, 0, ON_BUILD(n, op, "vD", x, 2 * (rank - first), pair));
    for (int axis = 0; x && axis < count / 2; axis++)
        x = mirrored(n, x, axis, mode, pads[axis].value, pads[axis + count / 2].value);
    return on_define(n, 0, x);
}

bool onnx_pad_old(OnnxNode *n)
{
    int64_t pads[2 * MAX_RANK];
    int count = on_ints(n, n->in->opset < 2 ? "paddings" : "pads", pads, 2 * MAX_RANK);
    const char *mode = on_text(n, "mode", "constant");
    Dim dim[2 * MAX_RANK];
    for (int i = 0; i < count; i++)
        dim[i] = DIM(pads[i]);
    return count >= 0 && !n->failed && padded(n, dim, count, mode, on_float(n, "value", 0));
}

bool onnx_pad(OnnxNode *n)
{
    int64_t at[MAX_RANK];
    Dim pads[2 * MAX_RANK];
    int axes = -1, axis;
    Value *x = on_value(n, 0);
    const OnnxList *l = on_list(n, 1), *with = on_has(n, 2) ? on_list(n, 2) : NULL;
    if (!x)
        return false;
    int rank = x->type.rank;
    if (!l || !l->dim || (on_has(n, 2) && (!with || with->n != 1 || (with->dim && with->dim[0].expr))))
        return onnx_unsupported(n, "has paddings or a filling that are computed from elements");
    if (on_has(n, 3) && !on_numbers(n, 3, at, &axes))
        return false;
    if (l->n != 2 * (axes < 0 ? rank : axes))
        return onnx_wrong(n, "has %d paddings for %d axes", l->n, axes < 0 ? rank : axes);
    for (int i = 0; i < 2 * rank; i++)
        pads[i] = DIM(0);
    for (int i = 0; i < l->n / 2; i++) {
        if (!on_axis(n, axes < 0 ? i : at[i], rank, &axis))
            return false;
        pads[axis] = l->dim[i];
        pads[axis + rank] = l->dim[i + l->n / 2];
    }
    double v = !with ? 0 : with->number ? with->number[0] : (double)with->dim[0].value;
    return padded(n, pads, 2 * rank, on_text(n, "mode", "constant"), v);
}

bool onnx_trilu(OnnxNode *n)
{
    Dim k[MAX_RANK] = {DIM(0)};
    int count = 1;
    Value *x = on_value(n, 0);
    if (!x || (on_has(n, 1) && !on_dims(n, 1, k, &count)) || count != 1)
        return false;
    OpId op = on_int(n, "upper", 1) ? OP_TRIU : OP_TRIL;
    return on_define(n, 0, ON_BUILD(n, op, "vd", x, k[0]));
}

/* -- blocks of pixels -------------------------------------------------------------------------- */

/* Moves channels into blocks of pixels.  The mode CRD is pixel_shuffle. */
bool onnx_depth_to_space(OnnxNode *n)
{
    static const int64_t dcr[6] = {0, 3, 4, 1, 5, 2};
    Program *p = n->in->program;
    Value *x = on_value(n, 0);
    int64_t b = on_int(n, "blocksize", 0);
    if (!x || x->type.rank != 4 || b < 1 || b > 1 << 20 || x->type.dim[1].expr ||
        x->type.dim[1].value % (b * b))
        return onnx_wrong(n, "expects [n, c, h, w] with c a multiple of the block's elements");
    if (!strcmp(on_text(n, "mode", "DCR"), "CRD"))
        return on_define(n, 0, ON_BUILD(n, OP_PIXEL_SHUFFLE, "vi", x, b));
    const Dim *d = x->type.dim;
    Dim c = DIM(d[1].value / (b * b)), k = DIM(b);
    Dim apart[6] = {d[0], k, k, c, d[2], d[3]};
    Dim whole[4] = {d[0], c, dim_mul(p, d[2], k), dim_mul(p, d[3], k)};
    Value *y = on_view(n, x, 6, apart);
    y = y ? ON_BUILD(n, OP_PERMUTE, "vI", y, 6, dcr) : NULL;
    return on_define(n, 0, on_view(n, y, 4, whole));
}

bool onnx_space_to_depth(OnnxNode *n)
{
    static const int64_t dcr[6] = {0, 3, 5, 1, 2, 4}, crd[6] = {0, 1, 3, 5, 2, 4};
    const int64_t *order = strcmp(on_text(n, "mode", "DCR"), "CRD") ? dcr : crd;
    Program *p = n->in->program;
    Value *x = on_value(n, 0);
    int64_t b = on_int(n, "blocksize", 0);
    if (!x || x->type.rank != 4 || b < 1 || b > 1 << 20)
        return onnx_wrong(n, "expects [n, c, h, w] and a block's size");
    const Dim *d = x->type.dim;
    Dim k = DIM(b), h = dim_floordiv(p, d[2], k), w = dim_floordiv(p, d[3], k);
    Dim apart[6] = {d[0], d[1], h, k, w, k}, whole[4] = {d[0], dim_mul(p, d[1], DIM(b * b)), h, w};
    Value *y = on_view(n, x, 6, apart);
    y = y ? ON_BUILD(n, OP_PERMUTE, "vI", y, 6, order) : NULL;
    return on_define(n, 0, on_view(n, y, 4, whole));
}

/* -- middles and diagonals --------------------------------------------------------------------- */

/* Defines 1 where the column minus the row is k, else 0. */
bool onnx_eye_like(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    int64_t code = on_int(n, "dtype", 0);
    EtcDtype t;
    if (!x || x->type.rank != 2)
        return x && onnx_wrong(n, "expects a matrix");
    t = x->type.dtype;
    if (code && (code < 0 || code > INT32_MAX || !onnx_dtype((int32_t)code, &t)))
        return onnx_unsupported(n, "gives ONNX's element type %lld", (long long)code);
    Value *row = on_insert(n, on_arange(n, DIM(0), x->type.dim[0]), 1);
    Value *column = on_arange(n, DIM(0), x->type.dim[1]);
    row = on_scalar(n, OP_ADD_SCALAR, row, (double)on_int(n, "k", 0));
    return on_define(n, 0, on_cast(n, on_binary(n, OP_EQ_TENSOR, column, row), t));
}

/* Returns the middle of x, or x in the middle of zeros, along each axis for which a size is
 * given. */
bool onnx_center_crop_pad(OnnxNode *n)
{
    Dim want[MAX_RANK];
    int64_t at[MAX_RANK];
    int count, axis, given = on_ints(n, "axes", at, MAX_RANK);
    Value *x = on_value(n, 0);
    if (!x || n->failed || !on_dims(n, 1, want, &count))
        return false;
    if (count != (given < 0 ? x->type.rank : given))
        return onnx_wrong(n, "has %d sizes for %d axes", count, given < 0 ? x->type.rank : given);
    for (int i = 0; x && i < count; i++) {
        if (!on_axis(n, given < 0 ? i : at[i], x->type.rank, &axis))
            return false;
        Dim has = x->type.dim[axis];
        if (has.expr || want[i].expr || want[i].value < 0 || want[i].value > INT32_MAX)
            return onnx_unsupported(n, "crops or pads to a size known only at run time");
        int64_t more = want[i].value - has.value, cut = -more / 2;
        int64_t pair[2 * MAX_RANK] = {0};
        int k = x->type.rank - 1 - axis;
        if (more <= 0) {
            x = on_part(n, x, axis, DIM(cut), DIM(cut + want[i].value), 1);
            continue;
        }
        pair[2 * k] = more / 2;
        pair[2 * k + 1] = more - more / 2;
        x = dtype_is_float(x->type.dtype)
                ? ON_BUILD(n, OP_CONSTANT_PAD_ND, "vIf", x, 2 * k + 2, pair, 0.0)
                : ON_BUILD(n, OP_CONSTANT_PAD_ND, "vIi", x, 2 * k + 2, pair, (int64_t)0);
    }
    return on_define(n, 0, x);
}
