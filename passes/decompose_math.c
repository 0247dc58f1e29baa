/* decompose_math.c -- composite arithmetic: choices by a mask, differences, norms, products. */
#include "passes/decompose.h"
#include <float.h>
#include <math.h>
#include <string.h>

static Value *first(const Node *n)
{
    return n ? n->out[0] : NULL;
}

/* -- choices ------------------------------------------------------------------------------- */

/* where(p, a, b), where a and b may be numbers */
bool decomp_where(Rewrite *r, Node *n)
{
    const Arg *a = &n->arg[1], *b = &n->arg[2];
    Value *p = n->in[0];
    Node *made;
    if (a->kind == ARG_VALUE)
        made = build(r->g, n, n->loc, OP_WHERE_SELF, r->d, "vva", p, n->in[a->slot], *b);
    else if (b->kind == ARG_VALUE)
        made = build(r->g, n, n->loc, OP_WHERE_SELF, r->d, "vav", p, *a, n->in[b->slot]);
    else
        made = build(r->g, n, n->loc, OP_WHERE_SELF, r->d, "vaa", p, *a, *b);
    return done(r, n, made);
}

/* where(mask, value, x) in x's dtype */
bool decomp_masked_fill(Rewrite *r, Node *n)
{
    EtcDtype t = n->in[0]->type.dtype;
    Arg number = n->arg[2];
    if (number.kind == ARG_VALUE) {
        Value *v = build_cast(r, n, n->in[number.slot], t);
        return v && done(r, n, build(r->g, n, n->loc, OP_WHERE_SELF, r->d, "vvv", n->in[1], v,
                                     n->in[0]));
    }
    Node *v = build(r->g, n, n->loc, OP_FULL, r->d, "Dat", 0, NULL, number, t);
    return v && done(r, n, build(r->g, n, n->loc, OP_WHERE_SELF, r->d, "vvv", n->in[1], v->out[0],
                                 n->in[0]));
}

static Value *positions(Rewrite *r, Node *n, Dim count)
{
    return first(build(r->g, n, n->loc, OP_ARANGE_START_STEP, r->d, "idit", (int64_t)0, count,
                       (int64_t)1, ETC_I64));
}

/* tril keeps j <= i + diagonal, triu j >= i + diagonal; the rest is 0 */
bool decomp_triangle(Rewrite *r, Node *n)
{
    Value *x = n->in[0];
    Type t = x->type;
    int64_t diagonal;
    if (t.rank < 2 || !arg_int(n, 1, &diagonal))
        return diag_unsupported(r->d, n->loc, "wants a matrix and a plain integer as diagonal");
    Dim column[2] = {t.dim[t.rank - 2], DIM(1)};
    Value *i = positions(r, n, column[0]), *j = positions(r, n, t.dim[t.rank - 1]);
    i = i && j ? build_view(r, n, i, column, 2) : NULL;
    i = i ? first(build(r->g, n, n->loc, OP_ADD_SCALAR, r->d, "vi", i, diagonal)) : NULL;
    Value *keep = build2(r, n, n->op == OP_TRIL ? OP_LE_TENSOR : OP_GE_TENSOR, j, i);
    Arg zero = {.kind = ARG_INT, .dim = DIM(0)};
    Node *off = keep ? build(r->g, n, n->loc, OP_FULL, r->d, "Dat", 0, NULL, zero, t.dtype) : NULL;
    return off && done(r, n, build(r->g, n, n->loc, OP_WHERE_SELF, r->d, "vvv", keep, x,
                                   off->out[0]));
}

bool decomp_min_other(Rewrite *r, Node *n)
{
    OpId op = n->op == OP_MIN_OTHER ? OP_MINIMUM : OP_MAXIMUM;
    return as_value(r, n, build2(r, n, op, n->in[0], n->in[1]));
}

/* -- differences --------------------------------------------------------------------------- */

/* x with what is to stand before and behind it. */
static Value *with_ends(Rewrite *r, Node *n, int64_t axis)
{
    Value *part[3], *front = arg_value(n, 3), *back = arg_value(n, 4);
    int count = 0;
    if (front)
        part[count++] = front;
    part[count++] = n->in[0];
    if (back)
        part[count++] = back;
    return count == 1 ? n->in[0]
                      : first(build(r->g, n, n->loc, OP_CAT, r->d, "Vi", count, part, axis));
}

static Value *difference(Rewrite *r, Node *n, Value *x, int64_t axis)
{
    Program *p = r->g->program;
    Dim size = x->type.dim[axis], last = dim_max(p, dim_sub(p, size, DIM(1)), DIM(0));
    Value *b = first(build(r->g, n, n->loc, OP_SLICE, r->d, "viddi", x, axis, DIM(1), size,
                           (int64_t)1));
    Value *a = first(build(r->g, n, n->loc, OP_SLICE, r->d, "viddi", x, axis, DIM(0), last,
                           (int64_t)1));
    return build2(r, n, x->type.dtype == ETC_BOOL ? OP_LOGICAL_XOR : OP_SUB_TENSOR, b, a);
}

bool decomp_diff(Rewrite *r, Node *n)
{
    int64_t rounds, axis;
    if (!arg_int(n, 1, &rounds) || !arg_int(n, 2, &axis))
        return diag_error(r->d, n->loc, "its axis is not a plain integer");
    axis += axis < 0 ? n->in[0]->type.rank : 0;
    Value *x = with_ends(r, n, axis);
    while (x && rounds-- > 0)
        x = difference(r, n, x, axis);
    return as_value(r, n, x);
}

/* -- norms --------------------------------------------------------------------------------- */

/* ord 2: sqrt(sum(x * x));  1: sum(|x|);  inf: amax(|x|) */
bool decomp_vector_norm(Rewrite *r, Node *n)
{
    double ord = 0;
    Value *x = build_cast(r, n, n->in[0], n->out[0]->type.dtype);
    Arg none = {.kind = ARG_LIST}, axes = n->arg[2].kind == ARG_NONE ? none : n->arg[2];
    if (!arg_number(n, 1, &ord) || (ord != 1 && ord != 2 && ord != (double)INFINITY))
        return diag_unsupported(r->d, n->loc, "is a norm of another order than 1, 2 or inf");
    x = !x ? NULL : ord == 2 ? build2(r, n, OP_MUL_TENSOR, x, x)
                             : first(build(r->g, n, n->loc, OP_ABS, r->d, "v", x));
    x = x ? first(build(r->g, n, n->loc, isinf(ord) ? OP_AMAX : OP_SUM_DIM, r->d, "vaa", x, axes,
                        n->arg[3]))
          : NULL;
    if (x && ord == 2)
        x = first(build(r->g, n, n->loc, OP_SQRT, r->d, "v", x));
    return as_value(r, n, x);
}

/* x / sqrt(mean(x * x) + eps) * weight */
bool decomp_rms_norm(Rewrite *r, Node *n)
{
    int64_t axis[MAX_RANK];
    Value *x = n->in[0], *w = arg_value(n, 2);
    double eps = x->type.dtype == ETC_F64 ? DBL_EPSILON : FLT_EPSILON; /* torch's default */
    int count = arg_count(n, 1);
    arg_number(n, 3, &eps);
    for (int i = 0; i < count; i++)
        axis[i] = i - count;
    Value *m = build2(r, n, OP_MUL_TENSOR, x, x);
    m = m ? first(build(r->g, n, n->loc, OP_MEAN_DIM, r->d, "vIb", m, count, axis, true)) : NULL;
    m = m ? first(build(r->g, n, n->loc, OP_ADD_SCALAR, r->d, "vf", m, eps)) : NULL;
    m = m ? first(build(r->g, n, n->loc, OP_RSQRT, r->d, "v", m)) : NULL;
    Value *y = build2(r, n, OP_MUL_TENSOR, x, m);
    return as_value(r, n, y && w ? build2(r, n, OP_MUL_TENSOR, y, w) : y);
}

bool decomp_layer_norm(Rewrite *r, Node *n)
{
    return done(r, n, build(r->g, n, n->loc, OP_NATIVE_LAYER_NORM, r->d, "vavva", n->in[0],
                            n->arg[1], arg_value(n, 2), arg_value(n, 3), n->arg[4]));
}

/* -- products ------------------------------------------------------------------------------ */

/* Of integers, torch cuts the factor off to an integer first. */
static Value *scaled(Rewrite *r, Node *n, Value *x, const Arg *by)
{
    Arg number = *by;
    if (x && number.kind == ARG_FLOAT && dtype_is_int(x->type.dtype))
        number = (Arg){.kind = ARG_INT, .dim = DIM((int64_t)number.f)};
    if (number.kind == ARG_INT && !number.dim.expr && number.dim.value == 1)
        return x;
    if (number.kind == ARG_FLOAT && number.f == 1)
        return x;
    number.key = NULL;
    return x ? first(build(r->g, n, n->loc, OP_MUL_SCALAR, r->d, "va", x, number)) : NULL;
}

/* beta self + alpha (a @ b) */
bool decomp_baddbmm(Rewrite *r, Node *n)
{
    double beta = 1;
    Value *y = scaled(r, n, build2(r, n, OP_BMM, n->in[1], n->in[2]), &n->arg[4]);
    if (arg_number(n, 3, &beta) && beta == 0)
        return as_value(r, n, y);
    Value *self = y ? scaled(r, n, n->in[0], &n->arg[3]) : NULL;
    return as_value(r, n, build2(r, n, OP_ADD_TENSOR, self, y));
}
