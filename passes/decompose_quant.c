/* decompose_quant.c -- forms of quantization that no kernel takes as they are: groups along rows,
 * and torchao's blocks, become quantization per token and per channel. */
#include "passes/decompose.h"
#include <string.h>

static Value *flat(Rewrite *r, Node *n, Value *v)
{
    Dim all = dims_numel(r->g->program, v->type);
    return v->type.rank == 1 ? v : build_view(r, n, v, &all, 1);
}

/* Returns whether v has constant zero points that are all 0, so that they can be left out. */
static bool is_all_zero(const Value *v)
{
    if (!value_is_known(v))
        return false;
    for (int64_t i = 0; i < type_bytes(v->type); i++)
        if (v->state->data[i])
            return false;
    return true;
}

/* Dequantizes elements of which every `size` neighbours share a scale, as the channels of a matrix
 * with rows of this size.  Halves are rounded once: a byte minus its zero point is exact in
 * them. */
static bool dequantize_rows(Rewrite *r, Node *n, Value *scale, Value *zero, int64_t size,
                            int64_t lo, int64_t hi)
{
    Value *x = arg_value(n, "input");
    Dim rows[2] = {DIM(-1), DIM(size)};
    if (!type_is_static(x->type) || size < 1)
        return diag_unsupported(r->d, n->loc, "its sizes are not known");
    rows[0] = DIM(type_numel(x->type) / size);
    bool is_matrix = x->type.rank == 2 && dim_equal(x->type.dim[1], rows[1]);
    x = is_matrix ? x : build_view(r, n, x, rows, 2);
    scale = scale ? flat(r, n, scale) : NULL;
    if (scale && dtype_is_half(scale->type.dtype))
        scale = build_cast(r, n, scale, ETC_F32);
    if (zero && is_all_zero(zero))
        zero = NULL;
    else if (zero)
        zero = build_cast(r, n, flat(r, n, zero), ETC_I64);
    const QParams q = {.kind = Q_CHANNEL, .undoes = true, .scales = scale, .zeros = zero, .lo = lo, .hi = hi,
                       .dtype = arg_value(n, "input")->type.dtype};
    Value *made = x && scale ? qparams_build(r->g, n, n->loc, x, &q, r->d) : NULL;
    return made && as_recorded(r, n, build_cast(r, n, made, n->out[0]->type.dtype));
}

/* Checks that the result is f32, or with `or_half` a half. */
static bool is_float(Rewrite *r, const Node *n, bool or_half)
{
    EtcDtype t = n->out[0]->type.dtype;
    return t == ETC_F32 || (or_half && dtype_is_half(t)) ||
           diag_unsupported(r->d, n->loc, "dequantizes to %s; only f32 is supported",
                            dtype_name(t));
}

bool decomp_dequantize_group(Rewrite *r, Node *n)
{
    int64_t size = 0, lo = 0, hi = 0;
    arg_int(n, "quant_min", &lo);
    arg_int(n, "quant_max", &hi);
    arg_int(n, "group_size", &size);
    return is_float(r, n, true) &&
           dequantize_rows(r, n, arg_value(n, "scales"), arg_value(n, "zero_points"), size, lo, hi);
}

/* -- torchao's blocks ------------------------------------------------------------------------ */

/* Returns the size of the blocks if each is one row or a part of it, else 0. */
static int64_t row_block(const Node *n, const Value *x)
{
    Dim block[MAX_RANK];
    int rank = x->type.rank;
    if (rank < 1 || arg_count(n, "block_size") != rank ||
        !arg_dims(n, "block_size", block, MAX_RANK) ||
        block[rank - 1].expr)
        return 0;
    for (int i = 0; i < rank - 1; i++)
        if (!dim_equal(block[i], DIM(1)))
            return 0;
    return block[rank - 1].value;
}

static bool is_row(const Value *x, int64_t size)
{
    return size && dim_equal(x->type.dim[x->type.rank - 1], DIM(size));
}

static bool range(const Node *n, int64_t least, int64_t most, int64_t *lo, int64_t *hi)
{
    *lo = least;
    *hi = most;
    return (arg_get(n, "quant_min").kind == ARG_NONE || arg_int(n, "quant_min", lo)) &&
           (arg_get(n, "quant_max").kind == ARG_NONE || arg_int(n, "quant_max", hi));
}

/* Computes scale and zero point of rows in the form that torchao's readers want; the results of the
 * kernel stay in the graph.  Other forms are computed as torchao spells them. */
bool decomp_choose_affine(Rewrite *r, Node *n)
{
    int64_t lo, hi;
    Value *x = arg_value(n, "input");
    bool is_known = !strcmp(arg_get(n, "mapping_type").str, "ASYMMETRIC") &&
                    arg_get(n, "target_dtype").dtype == ETC_I8 &&
                    range(n, -128, 127, &lo, &hi) && lo == -128 && hi == 127 &&
                    x->type.dtype == ETC_F32 && is_row(x, row_block(n, x));
    if (!is_known)
        return decomp_text(r, n);
    Node *made = build(r->g, n, n->loc, OP_CHOOSE_QPARAMS_PER_TOKEN, r->d, "vt", x, ETC_I8);
    for (int i = 0; made && i < 2; i++) {
        Type t = n->out[i]->type;
        Value *v = build_cast(r, n, made->out[i], t.dtype);
        v = v ? build_view(r, n, v, t.dim, t.rank) : NULL;
        if (!v)
            return false;
        rewrite_result(r, n, i, v);
    }
    if (made)
        graph_remove(r->g, n);
    return made != NULL;
}

/* Returns the scale or zero point per token that v is, as the choice gave it: views and casts
 * behind that change no number.  NULL: v comes of no such choice. */
static Value *chosen(Value *v)
{
    while (v->def && (node_is_view(v->def) || v->def->op == OP__TO_COPY))
        v = arg_value(v->def, "self");
    return v->def && v->def->op == OP_CHOOSE_QPARAMS_PER_TOKEN ? v : NULL;
}

/* Returns scales or zero points, one for each row, in the dtype that kernels want.  They have the
 * sizes of x but for the last. */
static Value *points_of_rows(Rewrite *r, Node *n, Value *v, EtcDtype t)
{
    Dim dim[MAX_RANK];
    Type x = arg_value(n, "input")->type;
    Value *own = chosen(v);
    if (own)
        return own;
    for (int i = 0; i < x.rank; i++)
        dim[i] = i < x.rank - 1 ? x.dim[i] : DIM(1);
    v = build_cast(r, n, v, t);
    return v ? build_view(r, n, v, dim, x.rank) : NULL;
}

static bool per_token(Rewrite *r, Node *n, OpId op, int64_t lo, int64_t hi)
{
    Value *zero = arg_value(n, "zero_point");
    if (!zero)
        return diag_unsupported(r->d, n->loc, "has no zero points");
    Value *scale = points_of_rows(r, n, arg_value(n, "scale"), ETC_F64);
    zero = points_of_rows(r, n, zero, ETC_I64);
    bool undoes = op != OP_QUANTIZE_PER_TOKEN;
    EtcDtype q = undoes ? arg_value(n, "input")->type.dtype : n->out[0]->type.dtype;
    if (!scale || !zero)
        return false;
    if (!undoes)
        return done(r, n,
                    build(r->g, n, n->loc, op, r->d, "vvviit", arg_value(n, "input"), scale, zero,
                          lo, hi, q));
    return done(r, n,
                build(r->g, n, n->loc, op, r->d, "vvviitt", arg_value(n, "input"), scale, zero, lo,
                      hi, q, ETC_F32));
}

bool decomp_quantize_affine(Rewrite *r, Node *n)
{
    int64_t lo, hi;
    if (!is_row(arg_value(n, "input"), row_block(n, arg_value(n, "input"))) ||
        n->out[0]->type.dtype != ETC_I8 || !range(n, -128, 127, &lo, &hi) ||
        !chosen(arg_value(n, "scale")))
        return decomp_text(r, n);
    return per_token(r, n, OP_QUANTIZE_PER_TOKEN, lo, hi);
}

bool decomp_dequantize_affine(Rewrite *r, Node *n)
{
    int64_t lo, hi, size = row_block(n, arg_value(n, "input"));
    if (!size || arg_value(n, "input")->type.dtype != ETC_I8 || !range(n, -128, 127, &lo, &hi))
        return decomp_text(r, n);
    bool is_chosen = is_row(arg_value(n, "input"), size) && chosen(arg_value(n, "scale"));
    if (!is_float(r, n, !is_chosen))
        return false;
    if (is_chosen)
        return per_token(r, n, OP_DEQUANTIZE_PER_TOKEN, lo, hi);
    return dequantize_rows(r, n, arg_value(n, "scale"), arg_value(n, "zero_point"), size, lo, hi);
}

/* -- what training with quantization leaves ---------------------------------------------------- */

static EtcDtype dtype_of_range(int64_t lo, int64_t hi)
{
    return lo >= 0 && hi <= UINT8_MAX           ? ETC_U8
           : lo >= INT8_MIN && hi <= INT8_MAX   ? ETC_I8
           : lo >= INT16_MIN && hi <= INT16_MAX ? ETC_I16
                                                : ETC_I32;
}

/* Builds `op`, a quantize or a dequantize, of x.  scale and zero are NULL if they are numbers of n
 * itself. */
static Node *affine_step(Rewrite *r, Node *n, OpId op, Value *x, Value *scale, Value *zero)
{
    int64_t lo = 0, hi = 0, axis = 0;
    bool has_axis = arg_find(n, "axis") >= 0;
    if (!arg_int(n, "quant_min", &lo) || !arg_int(n, "quant_max", &hi) || (has_axis && !arg_int(n, "axis", &axis))) {
        diag_unsupported(r->d, n->loc, "expects limits and an axis that are known");
        return NULL;
    }
    EtcDtype t = dtype_of_range(lo, hi);
    if (!scale)
        return build(r->g, n, n->loc, op, r->d, "vaaiit", x, arg_get(n, "scale"),
                     arg_get(n, "zero_point"), lo, hi, t);
    if (!has_axis)
        return build(r->g, n, n->loc, op, r->d, "vvviit", x, scale, zero, lo, hi, t);
    return build(r->g, n, n->loc, op, r->d, "vvviiit", x, scale, zero, axis, lo, hi, t);
}

/* Rewrites a fake quantize: it rounds to an integer type, and back. */
bool decomp_fake_quantize(Rewrite *r, Node *n)
{
    static const OpId op[3][2] = {{OP_QUANTIZE_PER_TENSOR, OP_DEQUANTIZE_PER_TENSOR},
                                  {OP_QUANTIZE_PER_TENSOR_TENSOR, OP_DEQUANTIZE_PER_TENSOR_TENSOR},
                                  {OP_QUANTIZE_PER_CHANNEL, OP_DEQUANTIZE_PER_CHANNEL}};
    Value *scale = arg_value(n, "scale"), *zero = arg_value(n, "zero_point");
    int form = !scale ? 0 : arg_find(n, "axis") < 0 ? 1 : 2;
    double number;
    if (!is_float(r, n, false))
        return false;
    bool are_numbers = arg_number(n, "scale", &number) && arg_number(n, "zero_point", &number);
    if (!are_numbers && (!scale || !zero))
        return diag_unsupported(r->d, n->loc, "expects tensors as scale and zero point");
    if (scale) {
        scale = build_cast(r, n, scale, ETC_F64);
        zero = build_cast(r, n, zero, ETC_I64);
        if (!scale || !zero)
            return false;
    }
    Node *in = affine_step(r, n, op[form][0], arg_value(n, "self"), scale, zero);
    Node *back = in ? affine_step(r, n, op[form][1], in->out[0], scale, zero) : NULL;
    return back && as_recorded(r, n, back->out[0]);
}
