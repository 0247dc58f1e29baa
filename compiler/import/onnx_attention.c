/* onnx_attention.c -- ONNX's attention operators, with caches, rotary embeddings and
 * recurrences. */
#include "compiler/import/onnx.h"
#include <math.h>
#include <string.h>

static const int64_t swap_heads[4] = {0, 2, 1, 3}, swap_last[4] = {0, 1, 3, 2};

/* Splits [batch, steps, heads * size] into heads: [batch, heads, steps, size]. */
static Value *split_heads(OnnxNode *n, Value *x, int64_t heads)
{
    if (!x)
        return NULL;
    Dim all = x->type.rank == 3 ? x->type.dim[2] : DIM_BAD;
    if (x->type.rank != 3 || all.expr || heads < 1 || all.value % heads) {
        onnx_wrong(n,
                   "expects [batch, steps, heads * size], with as many heads as an attribute says");
        return NULL;
    }
    Dim dim[4] = {x->type.dim[0], x->type.dim[1], DIM(heads), DIM(all.value / heads)};
    return on_permute(n, on_view(n, x, 4, dim), swap_heads);
}

/* Joins the heads of [batch, heads, steps, size] to [batch, steps, heads * size]. */
static Value *join_heads(OnnxNode *n, Value *x)
{
    Program *p = n->in->program;
    x = on_permute(n, x, swap_heads);
    if (!x)
        return NULL;
    Dim dim[3] = {x->type.dim[0], x->type.dim[1], dim_mul(p, x->type.dim[2], x->type.dim[3])};
    return on_view(n, x, 3, dim);
}

/* Repeats each head of x, [batch, heads of x, steps, size], so often that there are `heads` of
 * them.  The copies of a head follow each other. */
static Value *repeated(OnnxNode *n, Value *x, int64_t heads)
{
    if (!x || dim_equal(x->type.dim[1], DIM(heads)))
        return x;
    const Dim *d = x->type.dim;
    if (d[1].expr || d[1].value < 1 || heads % d[1].value) {
        onnx_wrong(n, "has %lld heads that queries cannot share", (long long)heads);
        return NULL;
    }
    Dim more[5] = {d[0], d[1], DIM(heads / d[1].value), d[2], d[3]};
    Dim whole[4] = {d[0], DIM(heads), d[2], d[3]};
    x = on_insert(n, x, 2);
    x = x ? ON_BUILD(n, OP_EXPAND, "vD", x, 5, more) : NULL;
    return on_view(n, x, 4, whole);
}

/* -- attention --------------------------------------------------------------------------------- */

typedef struct Attention {
    Value *q, *k, *v; /* [batch, heads, steps, size] */
    Value *keep;      /* bools: keys that take part; NULL: all */
    Value *bias;      /* floats that are added; NULL: none */
    Value *past;      /* the keys before, which k begins with; NULL: none */
    Value *lengths;   /* [batch]: how many keys count; NULL: all */
    double scale, cap;
    bool is_flat, is_causal; /* is_causal: query i sees keys 0 .. i */
} Attention;

static bool read_heads(OnnxNode *n, Attention *a)
{
    Value **of[3] = {&a->q, &a->k, &a->v};
    for (int i = 0; i < 3; i++) {
        Value *x = on_value(n, i);
        if (!x)
            return false;
        a->is_flat = x->type.rank == 3;
        *of[i] = a->is_flat ? split_heads(n, x, on_int(n, i ? "kv_num_heads" : "q_num_heads", 0))
                            : x;
        if (!*of[i])
            return false;
        if ((*of[i])->type.rank != 4)
            return onnx_wrong(n, "has an operand of rank %d, expected 3 or 4", x->type.rank);
        if ((*of[i])->type.dim[1].expr || (*of[i])->type.dim[3].expr)
            return onnx_unsupported(n, "has heads whose number or size is known only at run time");
    }
    return true;
}

/* Puts keys and values of earlier calls before those of this call. */
static bool with_past(OnnxNode *n, Attention *a, Value *k, Value *v)
{
    if (!k || !v || k->type.rank != 4 || v->type.rank != 4)
        return onnx_wrong(n, "has a cache whose rank is not 4, or a cache of keys only");
    a->past = k;
    a->k = on_cat(n, k, a->k, 2);
    a->v = on_cat(n, v, a->v, 2);
    return a->k && a->v;
}

static Value *both(OnnxNode *n, Value *a, Value *b)
{
    return a && b ? on_binary(n, OP_LOGICAL_AND, a, b) : a ? a : b;
}

/* Returns the positions of queries among the keys: [steps, 1], or with lengths [batch, 1, steps,
 * 1]. */
static Value *places(OnnxNode *n, const Attention *a, Value *lengths)
{
    Dim steps = a->q->type.dim[2], first = a->past ? a->past->type.dim[2] : DIM(0);
    Dim column[2] = {steps, DIM(1)};
    Arg less = {.kind = ARG_INT, .dim = steps};
    Value *at = on_view(n, on_arange(n, first, dim_add(n->in->program, first, steps)), 2, column);
    if (!lengths || a->past)
        return at;
    return on_binary(n, OP_ADD_TENSOR, ON_BUILD(n, OP_SUB_SCALAR, "va", lengths, less), at);
}

/* Excludes keys by the order of steps, by a window and by lengths: sets a->keep, or only
 * a->is_causal if there are no lengths, no window and no earlier keys. */
static bool bound_keys(OnnxNode *n, Attention *a, bool is_causal, int64_t left, int64_t right)
{
    bool has_window = left >= 0 || right >= 0;
    Dim dim[4] = {DIM(1), DIM(1), DIM(1), DIM(1)}, row[2] = {DIM(1), a->k->type.dim[2]};
    Value *lengths = on_cast(n, a->lengths, ETC_I64);
    if (lengths && lengths->type.rank != 1)
        return onnx_wrong(n, "has lengths whose rank is not 1");
    if (!lengths && !has_window && (!a->past || !is_causal)) {
        a->is_causal = is_causal;
        return !n->failed;
    }
    if (lengths) {
        dim[0] = lengths->type.dim[0];
        lengths = on_view(n, lengths, 4, dim);
    }
    Value *key = on_view(n, on_arange(n, DIM(0), row[1]), 2, row), *at = places(n, a, lengths);
    if (!key || !at)
        return false;
    if (is_causal)
        a->keep = on_binary(n, OP_LE_TENSOR, key, at);
    if (left >= 0)
        a->keep = both(n, a->keep, on_binary(n, OP_GE_TENSOR, key,
                                             on_scalar(n, OP_SUB_SCALAR, at, (double)left)));
    if (right >= 0)
        a->keep = both(n, a->keep, on_binary(n, OP_LE_TENSOR, key,
                                             on_scalar(n, OP_ADD_SCALAR, at, (double)right)));
    if (lengths)
        a->keep = both(n, a->keep, on_binary(n, OP_LT_TENSOR, key, lengths));
    return a->keep != NULL;
}

/* Extends a mask that has fewer columns than there are keys, so that the keys after its end take no
 * part. */
static Value *lengthened(OnnxNode *n, Value *mask, Dim keys)
{
    int rank = mask->type.rank;
    Dim has = rank ? mask->type.dim[rank - 1] : DIM(1);
    if (!rank || has.expr || keys.expr || has.value >= keys.value)
        return mask;
    int64_t pad[2] = {0, keys.value - has.value};
    if (mask->type.dtype == ETC_BOOL)
        return ON_BUILD(n, OP_CONSTANT_PAD_ND, "vIi", mask, 2, pad, (int64_t)0);
    return ON_BUILD(n, OP_CONSTANT_PAD_ND, "vIf", mask, 2, pad, -(double)INFINITY);
}

static bool read_mask(OnnxNode *n, Attention *a, Value *mask)
{
    mask = mask ? lengthened(n, mask, a->k->type.dim[2]) : NULL;
    if (mask && mask->type.rank == 1)
        mask = on_insert(n, mask, 0);
    if (!mask)
        return false;
    if (mask->type.dtype == ETC_BOOL)
        a->keep = both(n, a->keep, mask);
    else
        a->bias = mask;
    return a->keep || a->bias;
}

/* Joins the causal order and masks of bools and floats into one mask.  If there is only the
 * causal order, it stays a flag, unless a mask is `wanted`. */
static bool join_masks(OnnxNode *n, Attention *a, bool wanted)
{
    Dim column[2] = {a->q->type.dim[2], DIM(1)}, row[2] = {DIM(1), a->k->type.dim[2]};
    if (a->is_causal && (a->keep || a->bias || wanted)) {
        Value *at = on_view(n, on_arange(n, DIM(0), column[0]), 2, column);
        Value *key = on_view(n, on_arange(n, DIM(0), row[1]), 2, row);
        a->keep = both(n, a->keep, on_binary(n, OP_LE_TENSOR, key, at));
        a->is_causal = false;
    }
    if (a->keep && a->bias) {
        a->bias = on_where(n, a->keep, a->bias, on_number(n, -(double)INFINITY, a->bias->type.dtype));
        a->keep = NULL;
    }
    return !n->failed;
}

static Value *fused(OnnxNode *n, const Attention *a)
{
    bool is_grouped = !dim_equal(a->q->type.dim[1], a->k->type.dim[1]);
    return ON_BUILD(n, OP_SDPA, "vvvvfbfb", a->q, a->k, a->v, a->keep ? a->keep : a->bias, 0.0,
                    (int)a->is_causal, a->scale, (int)is_grouped);
}

/* Returns bools that say whether a query has any key; NULL: each query has. */
static Value *sees_any(OnnxNode *n, const Attention *a)
{
    Value *m = a->keep ? a->keep : a->bias;
    if (!m || a->keep)
        return m ? on_any(n, m, m->type.rank - 1) : NULL;
    Value *most = on_sum(n, OP_AMAX, m, m->type.rank - 1, true);
    return on_scalar(n, OP_NE_SCALAR, most, -(double)INFINITY);
}

/* Builds attention from single operators.  *shown is output 3: the scores, before or after the cap
 * and the mask, or the weights. */
static Value *expanded(OnnxNode *n, Attention *a, EtcDtype precision, int64_t mode, Value **shown)
{
    EtcDtype t = a->q->type.dtype;
    double half = sqrt(a->scale);
    int64_t heads = a->q->type.dim[1].value;
    Value *k = repeated(n, a->k, heads), *v = repeated(n, a->v, heads), *seen[4];
    k = on_permute(n, on_scalar(n, OP_MUL_SCALAR, k, half), swap_last);
    seen[0] = on_binary(n, OP_MATMUL, on_scalar(n, OP_MUL_SCALAR, a->q, half), k);
    seen[1] = seen[0];
    if (a->cap != 0) {
        Value *x = on_unary(n, OP_TANH, on_scalar(n, OP_DIV_SCALAR, seen[0], a->cap));
        seen[1] = on_scalar(n, OP_MUL_SCALAR, x, a->cap);
    }
    seen[2] = seen[1];
    if (a->keep)
        seen[2] = on_where(n, a->keep, seen[1], on_number(n, -(double)INFINITY, t));
    else if (a->bias)
        seen[2] = on_binary(n, OP_ADD_TENSOR, seen[1], on_cast(n, a->bias, t));
    Value *x = on_cast(n, seen[2], precision);
    x = x ? ON_BUILD(n, OP__SOFTMAX, "vib", x, (int64_t)3, false) : NULL;
    Value *any = sees_any(n, a);
    if (any)
        x = on_where(n, any, x, on_number(n, 0, precision));
    seen[3] = on_cast(n, x, t);
    *shown = seen[mode];
    return on_binary(n, OP_MATMUL, seen[3], v);
}

static bool define_attention(OnnxNode *n, Attention *a)
{
    int64_t mode = on_int(n, "qk_matmul_output_mode", 0), code = on_int(n, "softmax_precision", 1);
    EtcDtype precision;
    Value *shown = NULL, *y;
    if (mode < 0 || mode > 3 || !onnx_dtype((int32_t)code, &precision) || !dtype_is_float(precision))
        return onnx_wrong(n, "has no known qk_matmul_output_mode or softmax_precision");
    bool is_wide = precision == ETC_F64 && a->q->type.dtype != ETC_F64;
    if (on_wants(n, 3) || a->cap != 0 || is_wide) {
        if (!join_masks(n, a, true))
            return false;
        precision = a->q->type.dtype == ETC_F64 ? ETC_F64 : precision;
        y = expanded(n, a, precision, mode, &shown);
    } else {
        y = fused(n, a);
    }
    y = a->is_flat ? join_heads(n, y) : y;
    return on_define(n, 0, y) && (!on_wants(n, 3) || on_define(n, 3, shown));
}

static bool read_scale(OnnxNode *n, Attention *a)
{
    double size = (double)a->q->type.dim[3].value;
    a->scale = on_float(n, "scale", 0);
    if (a->scale == 0)
        a->scale = size > 0 ? 1 / sqrt(size) : 1;
    return a->scale > 0 || onnx_unsupported(n, "has a scale below 0");
}

bool onnx_attention(OnnxNode *n)
{
    Attention a = {.cap = on_float(n, "softcap", 0)};
    if (!read_heads(n, &a) ||
        (on_has(n, 4) && !with_past(n, &a, on_value(n, 4), on_has(n, 5) ? on_value(n, 5) : NULL)) ||
        !on_define(n, 1, a.k) || !on_define(n, 2, a.v))
        return false;
    a.lengths = on_has(n, 6) ? on_value(n, 6) : NULL;
    return read_scale(n, &a) &&
           bound_keys(n, &a, on_int(n, "is_causal", 0), on_int(n, "left_window_size", -1),
                      on_int(n, "right_window_size", -1)) &&
           (!on_has(n, 3) || read_mask(n, &a, on_value(n, 3))) && join_masks(n, &a, false) &&
           define_attention(n, &a);
}

/* -- rotations --------------------------------------------------------------------------------- */

typedef struct Rotation {
    Value *cosine, *sine; /* [batch or 1, 1, steps, half] */
    int64_t half;
    bool is_interleaved;
} Rotation;

/* Returns the rows of a table for positions [batch, steps], as [batch, 1, steps, half].  Without
 * positions the table has a row for each step already, [batch, steps, half]. */
static Value *rows_at(OnnxNode *n, Value *table, Value *at)
{
    Value *index[1] = {on_cast(n, at, ETC_I64)};
    if (!table)
        return NULL;
    if (at)
        table = table->type.rank == 2 && index[0] ? ON_BUILD(n, OP_INDEX_TENSOR, "vV", table, 1, index)
                                                  : NULL;
    if (!table || table->type.rank != 3 || table->type.dim[2].expr) {
        onnx_wrong(n, "expects tables of [positions, half], with positions of [batch, steps]");
        return NULL;
    }
    return on_insert(n, table, 1);
}

/* Rotates pairs of elements by angles.  The elements of a pair lie in both halves of a row, or are
 * neighbours (is_interleaved). */
static Value *rotated(OnnxNode *n, Value *x, const Rotation *r)
{
    if (!x || !r->cosine || !r->sine)
        return NULL;
    Dim size = x->type.dim[3], end = DIM(2 * r->half), half = DIM(r->half);
    if (size.expr || size.value < end.value) {
        onnx_wrong(n, "rotates more elements than a head has");
        return NULL;
    }
    bool is = r->is_interleaved;
    Value *a = on_part(n, x, 3, DIM(0), is ? end : half, is ? 2 : 1);
    Value *b = on_part(n, x, 3, is ? DIM(1) : half, end, is ? 2 : 1);
    Value *re = on_binary(n, OP_SUB_TENSOR, on_binary(n, OP_MUL_TENSOR, r->cosine, a),
                          on_binary(n, OP_MUL_TENSOR, r->sine, b));
    Value *im = on_binary(n, OP_ADD_TENSOR, on_binary(n, OP_MUL_TENSOR, r->sine, a),
                          on_binary(n, OP_MUL_TENSOR, r->cosine, b));
    Value *y;
    if (is) {
        Dim dim[4] = {x->type.dim[0], x->type.dim[1], x->type.dim[2], end};
        y = on_view(n, on_cat(n, on_insert(n, re, 4), on_insert(n, im, 4), 4), 4, dim);
    } else {
        y = on_cat(n, re, im, 3);
    }
    return size.value == end.value ? y : on_cat(n, y, on_part(n, x, 3, end, size, 1), 3);
}

static bool read_rotation(OnnxNode *n, Rotation *r, Value *cosine, Value *sine, Value *at)
{
    r->cosine = rows_at(n, cosine, at);
    r->sine = r->cosine ? rows_at(n, sine, at) : NULL;
    if (!r->sine)
        return false;
    r->half = r->cosine->type.dim[3].value;
    r->is_interleaved = on_int(n, "interleaved", 0);
    int64_t all = on_int(n, "rotary_embedding_dim", 0);
    return !all || all == 2 * r->half || onnx_wrong(n, "has tables of another size than it rotates");
}

static bool rotary(OnnxNode *n, const Rotation *r)
{
    Value *x = on_value(n, 0);
    bool is_flat = x && x->type.rank == 3;
    int64_t heads = on_int(n, "num_heads", 0);
    if (is_flat && !heads && !x->type.dim[2].expr) /* the width of a head is the rotated width */
        heads = x->type.dim[2].value / (2 * r->half > 0 ? 2 * r->half : 1);
    x = is_flat ? split_heads(n, x, heads) : x;
    if (!x || x->type.rank != 4)
        return x ? onnx_wrong(n, "has an operand of rank %d, expected 3 or 4", x->type.rank) : false;
    Value *y = rotated(n, x, r);
    return on_define(n, 0, is_flat ? join_heads(n, y) : y);
}

bool onnx_rotary(OnnxNode *n)
{
    Rotation r;
    Value *at = on_has(n, 3) ? on_value(n, 3) : NULL;
    return !n->failed && read_rotation(n, &r, on_value(n, 1), on_value(n, 2), at) && rotary(n, &r);
}

/* -- recurrences ------------------------------------------------------------------------------- */

enum { MOST_STEPS = 512 };

typedef struct Recurrence {
    Value *q, *k, *v, *decay, *beta; /* [batch, heads, steps, ...]; decay and beta may be NULL */
    double scale;
} Recurrence;

/* Returns input i as [batch, heads, steps, size].  In the file it is [batch, steps, heads * size],
 * or [batch, steps, 1] for all heads at once.  NULL: it is absent, or an error was reported. */
static Value *gates(OnnxNode *n, int i, int64_t heads)
{
    Value *x = on_has(n, i) ? on_cast(n, on_value(n, i), ETC_F32) : NULL;
    if (!x)
        return NULL;
    bool is_one = x->type.rank == 3 && dim_equal(x->type.dim[2], DIM(1));
    return split_heads(n, x, is_one ? 1 : heads);
}

static Value *step_of(OnnxNode *n, Value *x, int64_t t)
{
    return x ? ON_BUILD(n, OP_SELECT_INT, "vii", x, (int64_t)2, t) : NULL;
}

/* Builds step t: the state, [batch, heads, keys, values], decays, learns v at k, and q reads it. */
static Value *recur(OnnxNode *n, const Recurrence *r, int64_t t, Value **state)
{
    Value *q = step_of(n, r->q, t), *k = step_of(n, r->k, t), *v = step_of(n, r->v, t), *s = *state;
    if (!q || !k || !v)
        return NULL;
    if (r->decay)
        s = on_binary(n, OP_MUL_TENSOR, s, on_insert(n, on_unary(n, OP_EXP, step_of(n, r->decay, t)), 3));
    if (r->beta) {
        Value *known = on_binary(n, OP_MATMUL, on_insert(n, k, 2), s);
        known = known ? on_view(n, known, 3, v->type.dim) : NULL;
        v = on_binary(n, OP_MUL_TENSOR, step_of(n, r->beta, t), on_binary(n, OP_SUB_TENSOR, v, known));
    }
    Value *more = on_binary(n, OP_MUL_TENSOR, on_insert(n, k, 3), v ? on_insert(n, v, 2) : NULL);
    *state = s = on_binary(n, OP_ADD_TENSOR, s, more);
    Value *y = on_binary(n, OP_MATMUL, on_insert(n, q, 2), repeated(n, s, q->type.dim[1].value));
    return on_scalar(n, OP_MUL_SCALAR, y, r->scale);
}

static bool read_recurrence(OnnxNode *n, Recurrence *r, Value **state)
{
    const char *rule = on_text(n, "update_rule", "gated_delta");
    bool decays = strstr(rule, "gated") != NULL, learns = strstr(rule, "delta") != NULL;
    int64_t heads = on_int(n, "kv_num_heads", 0);
    if (strcmp(rule, "linear") && strcmp(rule, "gated") && strcmp(rule, "delta") &&
        strcmp(rule, "gated_delta"))
        return onnx_wrong(n, "has the update_rule '%s'", rule);
    if (decays != on_has(n, 4) || learns != on_has(n, 5))
        return onnx_wrong(n, "expects decay where its rule is gated and beta where it is delta");
    r->q = split_heads(n, on_cast(n, on_value(n, 0), ETC_F32), on_int(n, "q_num_heads", 0));
    r->k = r->q ? split_heads(n, on_cast(n, on_value(n, 1), ETC_F32), heads) : NULL;
    r->v = r->k ? split_heads(n, on_cast(n, on_value(n, 2), ETC_F32), heads) : NULL;
    r->decay = r->v ? gates(n, 4, heads) : NULL;
    r->beta = r->v ? gates(n, 5, heads) : NULL;
    if (!r->v || n->failed)
        return false;
    Dim size = r->q->type.dim[3];
    Dim dim[4] = {r->q->type.dim[0], DIM(heads), size, r->v->type.dim[3]};
    r->scale = on_float(n, "scale", 0);
    if (r->scale == 0)
        r->scale = size.value > 0 ? 1 / sqrt((double)size.value) : 1;
    *state = on_has(n, 3) ? on_cast(n, on_value(n, 3), ETC_F32) : on_full(n, 4, dim, 0, ETC_F32);
    return *state && ((*state)->type.rank == 4 || onnx_wrong(n, "has a state whose rank is not 4"));
}

bool onnx_linear_attention(OnnxNode *n)
{
    Recurrence r = {.k = NULL};
    Value *state, *x = on_value(n, 0), *part[MOST_STEPS];
    if (!x || !read_recurrence(n, &r, &state))
        return false;
    Dim steps = r.q->type.dim[2];
    if (steps.expr || steps.value < 1 || steps.value > MOST_STEPS)
        return onnx_unsupported(
            n, "has more than 512 steps, or a number of steps that is known only at run time");
    for (int64_t t = 0; t < steps.value; t++)
        if (!(part[t] = recur(n, &r, t, &state)))
            return false;
    Value *y = ON_BUILD(n, OP_CAT, "Vi", (int)steps.value, part, (int64_t)2);
    y = on_cast(n, join_heads(n, y), x->type.dtype);
    EtcDtype t = on_has(n, 3) ? on_value(n, 3)->type.dtype : x->type.dtype;
    return on_define(n, 0, y) && on_define(n, 1, on_cast(n, state, t));
}

/* -- com.microsoft ----------------------------------------------------------------------------- */

static Value *input_or_none(OnnxNode *n, int i)
{
    return on_has(n, i) ? on_value(n, i) : NULL;
}

/* Reads input i, a mask of integers, if there is one.  It says of each key, for each query or for
 * all of them, whether it takes part (0: it does not), or it says how many keys take part. */
static bool integer_mask(OnnxNode *n, Attention *a, int i)
{
    Value *m = input_or_none(n, i);
    if (!m)
        return !n->failed;
    Dim row[2] = {DIM(1), a->k->type.dim[2]}, dim[4] = {m->type.dim[0], DIM(1), DIM(1), DIM(1)};
    Value *is = NULL;
    if (m->type.rank == 1 && dim_equal(dim[0], a->q->type.dim[0])) {
        is = on_binary(n, OP_LT_TENSOR, on_cast(n, on_view(n, on_arange(n, DIM(0), row[1]), 2, row),
                                                m->type.dtype),
                       on_view(n, m, 4, dim));
    } else if (m->type.rank == 2) {
        dim[3] = m->type.dim[1];
        is = on_scalar(n, OP_NE_SCALAR, on_view(n, m, 4, dim), 0);
    } else if (m->type.rank == 3) {
        is = on_scalar(n, OP_NE_SCALAR, on_insert(n, m, 1), 0);
    } else {
        return onnx_unsupported(n, "has a mask of rank %d that is neither lengths nor of keys",
                                m->type.rank);
    }
    EtcDtype t = a->q->type.dtype;
    a->bias = on_where(n, is, on_number(n, 0, t),
                       on_number(n, on_float(n, "mask_filter_value", -10000), t));
    return a->bias != NULL;
}

static bool added_bias(OnnxNode *n, Attention *a, int i)
{
    Value *v = input_or_none(n, i);
    if (v)
        a->bias = a->bias ? on_binary(n, OP_ADD_TENSOR, a->bias, v) : v;
    return !n->failed && (!v || a->bias);
}

static bool finish(OnnxNode *n, Attention *a)
{
    Value *shown;
    if (!join_masks(n, a, a->cap != 0))
        return false;
    Value *y = a->cap != 0 ? expanded(n, a, ETC_F32, 0, &shown) : fused(n, a);
    return on_define(n, 0, join_heads(n, y));
}

/* Returns elements first .. end - 1 of the last axis of x, a product or its bias. */
static Value *span(OnnxNode *n, Value *x, int64_t first, int64_t end)
{
    return on_part(n, x, x ? x->type.rank - 1 : 0, DIM(first), DIM(end), 1);
}

static Value *with_bias(OnnxNode *n, Value *x, Value *bias, int64_t first, int64_t end)
{
    return bias && x ? on_binary(n, OP_ADD_TENSOR, x, span(n, bias, first, end)) : x;
}

bool onnx_multi_head_attention(OnnxNode *n)
{
    Attention a = {.is_flat = true};
    int64_t heads = on_int(n, "num_heads", 0);
    Value *q = on_value(n, 0), *k = input_or_none(n, 1), *v = input_or_none(n, 2);
    Value *bias = input_or_none(n, 3);
    if (n->failed || !q)
        return false;
    if (!k || !v || q->type.rank != 3 || k->type.rank != v->type.rank ||
        (k->type.rank != 3 && k->type.rank != 4) || on_has(n, 8) || on_has(n, 9))
        return onnx_unsupported(n, "has packed keys, or a cache that is shared");
    int64_t size = q->type.dim[2].value, values = v->type.rank == 3 ? v->type.dim[2].value : 0;
    a.q = split_heads(n, with_bias(n, q, bias, 0, size), heads);
    a.k = k->type.rank == 4 ? k : split_heads(n, with_bias(n, k, bias, size, 2 * size), heads);
    a.v = v->type.rank == 4
              ? v
              : split_heads(n, with_bias(n, v, bias, 2 * size, 2 * size + values), heads);
    if (!a.q || !a.k || !a.v ||
        (on_has(n, 6) && !with_past(n, &a, on_value(n, 6), input_or_none(n, 7))))
        return false;
    return on_define(n, 1, a.k) && on_define(n, 2, a.v) && read_scale(n, &a) &&
           bound_keys(n, &a, on_int(n, "unidirectional", 0), -1, -1) && integer_mask(n, &a, 4) &&
           added_bias(n, &a, 5) && finish(n, &a);
}

/* Builds attention whose queries, keys and values come from one product of x and w.  Input `mask`
 * is the mask, and input `keys` has the keys and values of earlier calls. */
static bool packed_attention(OnnxNode *n, Value *x, Value *w, int mask, int keys)
{
    Attention a = {.is_flat = true};
    int64_t heads = on_int(n, "num_heads", 0), size[3];
    Value *bias = input_or_none(n, 2);
    Value *past = input_or_none(n, keys), *half[2] = {NULL, NULL};
    if (!x || !w || n->failed)
        return false;
    if (w->type.rank != 2 || w->type.dim[1].expr || on_int(n, "do_rotary", 0))
        return onnx_unsupported(
            n, "has weights of symbolic sizes or rotary embeddings, which is not supported");
    size[0] = size[1] = size[2] = w->type.dim[1].value / 3;
    on_ints(n, "qkv_hidden_sizes", size, 3);
    if (size[0] < 1 || size[1] != size[0] || size[2] < 1 || 2 * size[0] > INT32_MAX ||
        2 * size[0] + size[2] != w->type.dim[1].value)
        return onnx_wrong(n, "has sizes of queries, keys and values that do not match its weights");
    x = on_matmul(n, x, w);
    x = bias ? on_binary(n, OP_ADD_TENSOR, x, bias) : x;
    a.q = split_heads(n, span(n, x, 0, size[0]), heads);
    a.k = a.q ? split_heads(n, span(n, x, size[0], 2 * size[0]), heads) : NULL;
    a.v = a.k ? split_heads(n, span(n, x, 2 * size[0], 2 * size[0] + size[2]), heads) : NULL;
    for (int i = 0; past && i < 2; i++)
        half[i] = ON_BUILD(n, OP_SELECT_INT, "vii", past, (int64_t)0, (int64_t)i);
    if (!a.v || (past && !with_past(n, &a, half[0], half[1])) || !read_scale(n, &a) ||
        (on_wants(n, 1) && !on_define(n, 1, on_cat(n, on_insert(n, a.k, 0), on_insert(n, a.v, 0), 0))))
        return false;
    return bound_keys(n, &a, on_int(n, "unidirectional", 0), -1, -1) && integer_mask(n, &a, mask) &&
           (mask != 3 || added_bias(n, &a, 5)) && finish(n, &a);
}

bool onnx_packed_attention(OnnxNode *n)
{
    if (on_has(n, 6))
        return onnx_unsupported(n, "has a cache that is shared");
    return packed_attention(n, on_value(n, 0), on_value(n, 1), 3, 4);
}

/* Dequantizes the operands, which are bytes, and goes on as for floats. */
bool onnx_qattention(OnnxNode *n)
{
    Value *x = on_dequantized(n, 0, 3, 6);
    return packed_attention(n, x, x ? on_dequantized(n, 1, 4, 7) : NULL, 5, 8);
}

bool onnx_rotary_contrib(OnnxNode *n)
{
    Rotation r;
    Value *x = on_value(n, 0), *at = on_value(n, 1);
    if (!x || !at || x->type.rank < 3)
        return x && at && onnx_wrong(n, "has an operand of rank %d, expected 3 or 4", x->type.rank);
    if (on_float(n, "scale", 1) != 1 || on_int(n, "is_packed_batching", 0))
        return onnx_unsupported(n, "scales its result, or has packed batches");
    if (at->type.rank == 1) { /* the position of the first step */
        Value *step = on_arange(n, DIM(0), x->type.dim[x->type.rank - 2]);
        at = on_insert(n, on_binary(n, OP_ADD_TENSOR, on_cast(n, at, ETC_I64), step), 0);
    }
    return at && read_rotation(n, &r, on_value(n, 2), on_value(n, 3), at) && rotary(n, &r);
}

/* Rotates queries and keys by their positions: those of input 9, or else the positions after the
 * keys of earlier calls. */
static bool rotate_both(OnnxNode *n, Attention *a, Value *past)
{
    Rotation r;
    Dim steps = a->q->type.dim[2], first = past ? past->type.dim[2] : DIM(0);
    Value *at = input_or_none(n, 9);
    if (!at)
        at = on_insert(n, on_arange(n, first, dim_add(n->in->program, first, steps)), 0);
    if (n->failed || !at || !read_rotation(n, &r, input_or_none(n, 7), input_or_none(n, 8), at))
        return !n->failed && onnx_wrong(n, "has no tables for its rotary embeddings");
    r.is_interleaved = on_int(n, "rotary_interleaved", 0);
    a->q = rotated(n, a->q, &r);
    a->k = a->q ? rotated(n, a->k, &r) : NULL;
    return a->k != NULL;
}

/* The cache grows with each call, and all of it counts.  A batch of several sequences could be
 * padded, so it is refused with a cache. */
bool onnx_group_query_attention(OnnxNode *n)
{
    Attention a = {.is_flat = true, .cap = on_float(n, "softcap", 0)};
    int64_t heads = on_int(n, "num_heads", 0), groups = on_int(n, "kv_num_heads", 0);
    int64_t window = on_int(n, "local_window_size", -1);
    Value *q = on_value(n, 0), *k = input_or_none(n, 1), *v = input_or_none(n, 2);
    Value *past[2] = {input_or_none(n, 3), input_or_none(n, 4)};
    if (!q || n->failed || q->type.rank != 3 || q->type.dim[2].expr || heads < 1 || groups < 1)
        return q && !n->failed &&
               onnx_wrong(n, "expects [batch, steps, heads * size] and its heads");
    for (int i = 11; i < 17; i++)
        if (on_has(n, i))
            return onnx_unsupported(
                n,
                "has input %d (attention sinks, scales of the cache or norms), which is not "
                "supported",
                i);
    if (on_int(n, "smooth_softmax", 0) > 0 || on_wants(n, 3))
        return onnx_unsupported(n, "has smooth_softmax or output 3, which is not supported");
    if (!k) { /* one tensor has queries, keys and values */
        int64_t all = heads + 2 * groups, each = q->type.dim[2].value / all;
        k = span(n, q, heads * each, (heads + groups) * each);
        v = span(n, q, (heads + groups) * each, all * each);
        q = span(n, q, 0, heads * each);
    }
    a.q = split_heads(n, q, heads);
    a.k = a.q ? split_heads(n, k, groups) : NULL;
    a.v = a.k ? split_heads(n, v, groups) : NULL;
    if (!a.v)
        return false;
    bool has_past = past[0] && !dim_equal(past[0]->type.dim[2], DIM(0));
    if (has_past && !dim_equal(q->type.dim[0], DIM(1)))
        return onnx_unsupported(n, "has a cache and a batch above 1: fix the batch to 1");
    if ((on_int(n, "do_rotary", 0) && !rotate_both(n, &a, past[0])) ||
        (past[0] && !with_past(n, &a, past[0], past[1])) || !on_define(n, 1, a.k) ||
        !on_define(n, 2, a.v))
        return false;
    return read_scale(n, &a) && bound_keys(n, &a, true, window > 0 ? window - 1 : -1, -1) &&
           added_bias(n, &a, 10) && finish(n, &a);
}
