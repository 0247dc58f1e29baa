/* infer.c -- computes the types of results: helpers of the rules, dtype promotion, broadcasting,
 * the pointwise rules, and the check of recorded types against the rules.
 *
 * The rules follow PyTorch.  Their results are contiguous; only recorded types have strides. */
#include "ir/internal.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static Program *program_of(const Node *n)
{
    return n->graph->program;
}

/* -- text for messages ---------------------------------------------------------------- */

static const char *text_of(Program *p, const Dim *d, const Type *t)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (!f)
        return "?";
    if (d)
        dim_print(*d, f);
    else
        type_print(*t, f);
    fclose(f);
    const char *copy = arena_str(p->arena, text, len);
    free(text);
    return copy;
}

const char *dim_text(Program *p, Dim d)
{
    return text_of(p, &d, NULL);
}

const char *size_text(Program *p, Dim d)
{
    const char *from = dim_text(p, d);
    char *text = NEW(p->arena, char, strlen(from) + 1), *to = text;
    for (; *from; from++)
        if (*from != '%')
            *to++ = *from;
    return text;
}

const char *type_text(Program *p, Type t)
{
    return text_of(p, NULL, &t);
}

/* -- arguments of a rule -------------------------------------------------------------- */

const char *arg_name(const Node *n, int i)
{
    assert(i >= 0 && i < node_schema(n)->n_args);
    return node_schema(n)->arg[i].name;
}

bool get_optional_at(const Node *n, int i, Type *t, Diag *d)
{
    assert(i >= 0 && i < n->n_args);
    const Value *v = arg_value(n, i);
    *t = v ? v->type : TYPE_NONE;
    if (v ? v->type.is_none || v->type.rank == SCALAR : n->arg[i].kind != ARG_NONE)
        return diag_error(d, n->loc, "%s is not a tensor", arg_name(n, i));
    return true;
}

bool get_tensor_at(const Node *n, int i, Type *t, Diag *d)
{
    if (!get_optional(n, i, t, d))
        return false;
    return !t->is_none || diag_error(d, n->loc, "%s is none, expected a tensor", arg_name(n, i));
}

bool get_rank_at(const Node *n, int i, int lo, int hi, Type *t, Diag *d)
{
    assert(0 <= lo && lo <= hi && hi <= MAX_RANK);
    if (!get_tensor(n, i, t, d))
        return false;
    if (t->rank >= lo && t->rank <= hi)
        return true;
    if (lo == hi)
        return diag_error(d, n->loc, "%s has rank %d, expected %d", arg_name(n, i), t->rank, lo);
    return diag_error(d, n->loc, "%s has rank %d, expected %d to %d", arg_name(n, i), t->rank, lo,
                      hi);
}

bool get_int_at(const Node *n, int i, int64_t *v, Diag *d)
{
    return arg_int(n, i, v) ||
           diag_unsupported(d, n->loc, "%s is not a plain integer", arg_name(n, i));
}

bool get_ints_at(const Node *n, int i, int count, int64_t least, int64_t *v, Diag *d)
{
    int given = arg_count(n, i);
    bool has_count = given == count || given == 1;
    if (!has_count || !arg_ints(n, i, v, count))
        return diag_fault(d, has_count ? FAULT_UNSUPPORTED : FAULT_MODEL, n->loc,
                          "%s is not a list of %d plain integers", arg_name(n, i), count);
    for (int k = given; k < count; k++)
        v[k] = v[0];
    for (int k = 0; k < count; k++)
        if (v[k] < least)
            return diag_error(d, n->loc, "%s is %" PRId64 ", expected at least %" PRId64,
                              arg_name(n, i), v[k], least);
    return true;
}

/* Sets *out to the known value of an int that is a size: the size in its type, or the one that
 * sym_size reads.  Returns false if it is not known. */
static bool value_size(const Value *v, Dim *out)
{
    const Node *def = v->def;
    int64_t axis;
    if (v->type.rank == SCALAR && v->type.dim) {
        *out = *v->type.dim;
        return true;
    }
    if (!def || def->op != OP_SYM_SIZE || !arg_value(def, "self") || !arg_int(def, "dim", &axis))
        return false;
    Type t = arg_value(def, "self")->type;
    axis += axis < 0 ? t.rank : 0;
    if (axis < 0 || axis >= t.rank)
        return false;
    *out = t.dim[axis];
    return true;
}

/* Sets *v to a size, which is an integer, an expression, or a value that is known to be one. */
static bool item_size(const Node *n, const Arg *a, Dim *v)
{
    if (a->kind == ARG_INT || a->kind == ARG_BOOL) {
        *v = a->kind == ARG_INT ? a->dim : DIM(a->b);
        return true;
    }
    const Value *size = a->kind == ARG_VALUE ? n->in[a->slot] : NULL;
    return size && value_size(size, v);
}

bool is_size_at(const Node *n, int i, Dim *v)
{
    assert(i >= 0 && i < n->n_args);
    return item_size(n, &n->arg[i], v);
}

bool get_size_at(const Node *n, int i, Dim *v, Diag *d)
{
    return is_size(n, i, v) ||
           diag_unsupported(d, n->loc, "%s is not an integer known before the call",
                            arg_name(n, i));
}

bool get_sizes_at(const Node *n, int i, Dim v[MAX_RANK], int *count, Diag *d)
{
    *count = arg_count(n, i);
    if (*count > MAX_RANK)
        return diag_error(d, n->loc, "%s has %d items, expected at most %d", arg_name(n, i), *count,
                          MAX_RANK);
    for (int k = 0; k < *count; k++)
        if (!item_size(n, &n->arg[i].list.item[k], &v[k]))
            return diag_unsupported(d, n->loc,
                                    "item %d of %s is not an integer known before the call", k,
                                    arg_name(n, i));
    return true;
}

/* A tensor of rank 0 has axis 0, as in torch. */
bool wrap_axis(const Node *n, int64_t axis, int rank, int *out, Diag *d)
{
    int64_t r = rank > 0 ? rank : 1;
    if (axis < -r || axis >= r)
        return diag_error(d, n->loc,
                          "axis %" PRId64 " is out of range, expected %" PRId64 " to %" PRId64,
                          axis, -r, r - 1);
    *out = (int)(axis < 0 ? axis + r : axis);
    return true;
}

bool get_axis_at(const Node *n, int i, int rank, int *axis, Diag *d)
{
    int64_t v;
    return get_int(n, i, &v, d) && wrap_axis(n, v, rank, axis, d);
}

EtcDtype dtype_or(const Node *n, EtcDtype otherwise)
{
    int i = arg_find(n, "dtype");
    return i >= 0 && n->arg[i].kind == ARG_DTYPE ? n->arg[i].dtype : otherwise;
}

/* -- sizes ---------------------------------------------------------------------------- */

/* Returns whether a = b, or a >= b, holds for all values of the symbols or may be assumed. */
static bool holds(Program *p, const Node *n, Dim a, bool is_equal, Dim b)
{
    int64_t least, most;
    Dim over = dim_sub(p, a, b);
    dim_range(over, &least, &most);
    if (dim_is_bad(over) || most < 0 || (is_equal && least > 0))
        return false;
    if (least < 0 || (is_equal && most > 0))
        program_assume(p, n, a, is_equal, b);
    return true;
}

static bool sizes_match(Program *p, const Node *n, Dim a, Dim b)
{
    return !dim_is_bad(a) && (dim_equal(a, b) || ((a.expr || b.expr) && holds(p, n, a, true, b)));
}

bool dims_match(const Node *n, Dim a, Dim b)
{
    return sizes_match(program_of(n), n, a, b);
}

bool dims_agree(const Node *n, Dim a, Dim b)
{
    return dim_equal(a, b) || (a.expr && b.expr && dims_match(n, a, b));
}

bool dim_at_least(const Node *n, Dim a, Dim b)
{
    int64_t least, most, of_b;
    dim_range(a, &least, &most);
    dim_range(b, &most, &of_b);
    if (!dim_is_bad(b) && least >= of_b)
        return true;
    return (a.expr || b.expr) && holds(program_of(n), n, a, false, b);
}

bool dim_divides(const Node *n, int64_t k, Dim d)
{
    return k > 0 && dims_match(n, dim_mod(program_of(n), d, DIM(k)), DIM(0));
}

Dim dims_product(Program *p, const Dim *d, int n)
{
    Dim v = DIM(1);
    for (int i = 0; i < n; i++)
        v = dim_mul(p, v, d[i]);
    return v;
}

bool set_tensor(const Node *n, Type *out, EtcDtype dtype, int rank, const Dim *dim, Diag *d)
{
    if (rank > MAX_RANK)
        return diag_error(d, n->loc, "result has rank %d, expected at most %d", rank, MAX_RANK);
    for (int i = 0; i < rank; i++) {
        if (dim_is_bad(dim[i]))
            return diag_error(d, n->loc, "size %d of the result does not fit in 64 bits", i);
        if (!dim_at_least(n, dim[i], DIM(0)))
            return diag_error(d, n->loc, "size %d of the result is %s", i,
                              dim_text(program_of(n), dim[i]));
    }
    *out = type_tensor(program_of(n), dtype, rank, dim);
    if (type_is_static(*out) && type_bytes(*out) == INT64_MAX)
        return diag_error(d, n->loc, "the bytes of the result %s do not fit in 64 bits",
                          type_text(program_of(n), *out));
    return true;
}

bool broadcast(const Node *n, Type a, Type b, Type *out, Diag *d)
{
    Dim dim[MAX_RANK];
    int rank = a.rank > b.rank ? a.rank : b.rank;
    assert(rank <= MAX_RANK);
    for (int i = 0; i < rank; i++) {
        int ia = i - (rank - a.rank), ib = i - (rank - b.rank);
        Dim da = ia < 0 ? DIM(1) : a.dim[ia], db = ib < 0 ? DIM(1) : b.dim[ib];
        if (!dim_is_one(da) && !dim_is_one(db) && !dims_match(n, da, db))
            return diag_error(d, n->loc, "cannot broadcast %s with %s", type_text(program_of(n), a),
                              type_text(program_of(n), b));
        dim[i] = dim_is_one(da) || (!dim_is_one(db) && !db.expr) ? db : da;
    }
    return set_tensor(n, out, a.dtype, rank, dim, d);
}

bool expands_to(const Node *n, Type from, Type to, Diag *d)
{
    bool ok = from.rank <= to.rank;
    for (int i = 0; ok && i < from.rank; i++) {
        Dim want = to.dim[to.rank - from.rank + i];
        ok = dim_is_one(from.dim[i]) || dims_match(n, from.dim[i], want);
    }
    return ok || diag_error(d, n->loc, "cannot broadcast %s to %s", type_text(program_of(n), from),
                            type_text(program_of(n), to));
}

/* -- dtypes --------------------------------------------------------------------------- */

static bool is_f8(int t)
{
    return t >= ETC_F8E5M2 && t <= ETC_F8E4M3FNUZ;
}

static bool is_wide_unsigned(int t)
{
    return t == ETC_U16 || t == ETC_U32 || t == ETC_U64;
}

static bool is_float(int t)
{
    return t >= 0 && dtype_is_float((EtcDtype)t);
}

static bool is_complex(int t)
{
    return t >= 0 && dtype_is_complex((EtcDtype)t);
}

static int promote_complex(int a, int b)
{
    bool is_wide = a == ETC_F64 || b == ETC_F64 || a == (int)ETC_C128 || b == (int)ETC_C128;
    return is_wide ? ETC_C128 : ETC_C64;
}

static int promote_floats(int a, int b)
{
    if (a == ETC_F64 || b == ETC_F64)
        return ETC_F64;
    return ETC_F32; /* f16 with bf16 as well */
}

static int promote_ints(int a, int b)
{
    if (a == ETC_U8 || b == ETC_U8) {
        int other = a == ETC_U8 ? b : a;
        return other == ETC_I8 ? ETC_I16 : other;
    }
    return a > b ? a : b; /* the codes of i8 .. i64 grow with their width */
}

int promote(int a, int b)
{
    if (a == b || b == DTYPE_NONE || a == DTYPE_MIXED)
        return a;
    if (a == DTYPE_NONE || b == DTYPE_MIXED)
        return b;
    if (is_f8(a) || is_f8(b))
        return DTYPE_MIXED;
    if (is_complex(a) || is_complex(b))
        return promote_complex(a, b);
    if (is_float(a) && is_float(b))
        return promote_floats(a, b);
    if (is_float(a) || is_float(b))
        return is_float(a) ? a : b;
    if (is_wide_unsigned(a) || is_wide_unsigned(b))
        return DTYPE_MIXED;
    if (a == ETC_BOOL || b == ETC_BOOL)
        return a == ETC_BOOL ? b : a;
    return promote_ints(a, b);
}

/* Combines the dtypes of two classes of operands; the classes are tensors, tensors of rank 0,
 * Python numbers.  The dtype of the lower class counts only if its kind of number (bool, int,
 * float) is above that of the higher class. */
static int combine(int higher, int lower)
{
    if (is_complex(higher) || higher == DTYPE_MIXED)
        return higher;
    if (is_float(higher))
        return is_complex(lower) ? promote_complex(higher, DTYPE_NONE) : higher;
    if (is_complex(lower))
        return lower;
    if (higher == ETC_BOOL || higher == DTYPE_NONE || is_float(lower))
        return promote(higher, lower);
    return higher;
}

int promote_args(const Node *n, const int *arg, int n_args)
{
    int full = DTYPE_NONE, zero = DTYPE_NONE, number = DTYPE_NONE;
    for (int k = 0; k < n_args; k++) {
        const Arg *a = &n->arg[arg[k]];
        const Value *v = arg_value(n, arg[k]);
        if (v && v->type.rank > 0)
            full = promote(full, (int)v->type.dtype);
        else if (v && v->type.rank == 0)
            zero = promote(zero, (int)v->type.dtype);
        else if (a->kind == ARG_FLOAT || (v && v->type.dtype == ETC_F64))
            number = promote(number, ETC_F32); /* a Python float is of torch's default dtype */
        else if (a->kind == ARG_INT || (v && v->type.dtype == ETC_I64))
            number = promote(number, ETC_I64);
        else if (a->kind == ARG_BOOL || v)
            number = promote(number, ETC_BOOL);
    }
    return combine(full, combine(zero, number));
}

/* Returns a negative number if there is none, which is reported. */
static int common_dtype(const Node *n, const int *arg, int n_args, bool want_float, Diag *d)
{
    int t = promote_args(n, arg, n_args);
    if (t < 0)
        diag_error(d, n->loc, "its operands have no common dtype");
    return t < 0 || is_float(t) || !want_float ? t : ETC_F32;
}

/* -- pointwise rules ------------------------------------------------------------------ */

bool infer_same(const Node *n, Type *out, Diag *d)
{
    Type x;
    return get_tensor(n, 0, &x, d) && set_tensor(n, out, x.dtype, x.rank, x.dim, d);
}

/* Infers operators that torch does not define for integers. */
bool infer_floats(const Node *n, Type *out, Diag *d)
{
    if (!infer_same(n, out, d))
        return false;
    return dtype_is_float(out->dtype) ||
           diag_error(d, n->loc, "its input is %s, expected floats", dtype_name(out->dtype));
}

bool infer_same_float(const Node *n, Type *out, Diag *d)
{
    Type x;
    if (!get_tensor(n, "self", &x, d))
        return false;
    return set_tensor(n, out, dtype_is_float(x.dtype) ? x.dtype : ETC_F32, x.rank, x.dim, d);
}

/* Infers an operator on a tensor and Python numbers, which are the arguments of type Scalar.
 * `alpha` does not count, because it only scales. */
static bool with_scalars(const Node *n, bool want_float, Type *out, Diag *d)
{
    const Schema *s = node_schema(n);
    int arg[8] = {0}, n_args = 1;
    Type x;
    for (int i = 1; i < s->n_args; i++)
        if (s->arg[i].type == SCH_SCALAR && strcmp(s->arg[i].name, "alpha") != 0)
            arg[n_args++] = i;
    if (!get_tensor(n, "self", &x, d))
        return false;
    int dtype = common_dtype(n, arg, n_args, want_float, d);
    return dtype >= 0 && set_tensor(n, out, (EtcDtype)dtype, x.rank, x.dim, d);
}

/* Infers a complex number of two floats. */
bool infer_complex(const Node *n, Type *out, Diag *d)
{
    if (!infer_broadcast(n, out, d))
        return false;
    if (out->dtype != ETC_F32 && out->dtype != ETC_F64)
        return diag_error(d, n->loc, "its parts are %s, expected f32 or f64", dtype_name(out->dtype));
    out->dtype = out->dtype == ETC_F64 ? ETC_C128 : ETC_C64;
    return true;
}

bool infer_scalar(const Node *n, Type *out, Diag *d)
{
    return with_scalars(n, false, out, d);
}

/* Torch computes powers of bools as integers. */
bool infer_power(const Node *n, Type *out, Diag *d)
{
    if (n->n_args > 1 ? !infer_scalar(n, out, d) : !infer_same(n, out, d))
        return false;
    out->dtype = out->dtype == ETC_BOOL ? ETC_I64 : out->dtype;
    return true;
}

bool infer_scalar_float(const Node *n, Type *out, Diag *d)
{
    return with_scalars(n, true, out, d);
}

/* Returns the type of an operand.  A Python number in the place of a tensor has rank 0. */
static Type operand(const Node *n, int i)
{
    const Value *v = arg_value(n, i);
    return v && v->type.rank > 0 ? v->type : (Type){.dtype = v ? v->type.dtype : ETC_F32};
}

static bool pairwise(const Node *n, bool want_float, Type *out, Diag *d)
{
    static const int both[] = {0, 1};
    for (int i = 0; i < 2; i++)
        if (n->arg[i].kind == ARG_NONE || (arg_value(n, i) && arg_value(n, i)->type.is_none))
            return diag_error(d, n->loc, "%s is none, expected a tensor", arg_name(n, i));
    int dtype = common_dtype(n, both, 2, want_float, d);
    if (dtype < 0 || !broadcast(n, operand(n, 0), operand(n, 1), out, d))
        return false;
    out->dtype = (EtcDtype)dtype;
    return true;
}

bool infer_broadcast(const Node *n, Type *out, Diag *d)
{
    return pairwise(n, false, out, d);
}

bool infer_broadcast_float(const Node *n, Type *out, Diag *d)
{
    return pairwise(n, true, out, d);
}

/* Infers an operator whose result has a bool for each element. */
bool infer_compare(const Node *n, Type *out, Diag *d)
{
    bool is_pair = n->n_args > 1 && op_schema(program_of(n), n->op)->arg[1].type == SCH_TENSOR;
    if (is_pair ? !infer_broadcast(n, out, d) : !infer_same(n, out, d))
        return false;
    out->dtype = ETC_BOOL;
    return true;
}

bool infer_bitwise(const Node *n, Type *out, Diag *d)
{
    if (n->n_args > 1 ? !infer_broadcast(n, out, d) : !infer_same(n, out, d))
        return false;
    return !dtype_is_float(out->dtype) ||
           diag_error(d, n->loc, "has dtype %s, expected integers or bool",
                      dtype_name(out->dtype));
}

/* where(condition, self, other) */
bool infer_where(const Node *n, Type *out, Diag *d)
{
    static const int both[] = {1, 2};
    Type condition;
    if (!get_tensor(n, "condition", &condition, d))
        return false;
    if (condition.dtype != ETC_BOOL && condition.dtype != ETC_U8)
        return diag_error(d, n->loc, "condition has dtype %s, expected bool",
                          dtype_name(condition.dtype));
    int dtype = common_dtype(n, both, 2, false, d);
    if (dtype < 0 || !broadcast(n, operand(n, 1), operand(n, 2), out, d) ||
        !broadcast(n, condition, *out, out, d))
        return false;
    out->dtype = (EtcDtype)dtype;
    return true;
}

/* The result has the type of the first argument.  Other operands must broadcast to it. */
bool infer_first(const Node *n, Type *out, Diag *d)
{
    Type x;
    if (!get_tensor(n, 0, &x, d))
        return false;
    if ((op_mutates(n->op) || n->op == OP_COPY) && n->n_args > 1 && arg_value(n, 1) &&
        !expands_to(n, operand(n, 1), x, d))
        return false;
    return set_tensor(n, out, x.dtype, x.rank, x.dim, d);
}

/* The rule of a row that has none.  No row should get here. */
bool infer_none(const Node *n, Type *out, Diag *d)
{
    (void)out;
    return diag_fault(d, FAULT_BUG, n->loc, "the operator has no infer rule");
}

bool infer_nothing(const Node *n, Type *out, Diag *d)
{
    (void)n;
    (void)out;
    (void)d;
    return true;
}

/* -- recorded types ------------------------------------------------------------------- */

/* Returns whether dtypes and ranks are equal and all sizes are equal or may be assumed to be. Two
 * ints that are known to be sizes must be the same size. */
static bool types_match(Program *p, const Node *n, Type a, Type b)
{
    if (a.is_none || b.is_none || a.dtype != b.dtype || a.rank != b.rank)
        return a.is_none && b.is_none;
    int count = a.rank != SCALAR ? a.rank : a.dim && b.dim;
    for (int i = 0; i < count; i++)
        if (!sizes_match(p, n, a.dim[i], b.dim[i]))
            return false;
    return true;
}

static bool fits(const Node *n, const char *what, int i, Type a, Type b, Diag *d)
{
    Program *p = program_of(n);
    return types_match(p, n, a, b) ||
           diag_error(d, n->loc, "%s %d of the nested graph is %s, expected %s", what, i,
                      type_text(p, a), type_text(p, b));
}

/* Inputs and outputs of a nested graph lie where the node's operands and results lie.  So their
 * upper bounds must be equal too, which a guard on the sizes does not ensure. */
static bool bounds_fit(const Node *n, const char *what, int i, Type inside, Type outside, Diag *d)
{
    return type_bytes(inside) == type_bytes(outside) ||
           diag_unsupported(d, n->loc, "%s %d of a nested graph has other bounds than outside",
                            what, i);
}

static bool inputs_fit(const Node *n, const Graph *g, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < g->n_in; i++) {
        const Value *v = region_operand(n, i);
        ok = (!v || (fits(n, "input", i, g->in[i]->type, v->type, d) &&
                     bounds_fit(n, "input", i, g->in[i]->type, v->type, d))) &&
             ok;
    }
    return ok;
}

static bool signature_fits(const Node *n, const Graph *g, Diag *d)
{
    int n_in = region_n_operands(n), n_out = region_n_results(n, g);
    if (g->n_in != n_in || g->n_out != n_out)
        return diag_error(d, n->loc,
                          "nested graph has %d inputs and %d outputs, expected %d and %d", g->n_in,
                          g->n_out, n_in, n_out);
    bool ok = inputs_fit(n, g, d);
    for (int i = 0; i < g->n_out && !region_decides(n, g); i++)
        ok = fits(n, "output", i, g->out[i]->type, n->out[i]->type, d) &&
             bounds_fit(n, "output", i, g->out[i]->type, n->out[i]->type, d) && ok;
    return ok;
}

static bool has_one_element(const Node *n, Type t)
{
    for (int i = 0; i < t.rank; i++)
        if (!dims_match(n, t.dim[i], DIM(1)))
            return false;
    return true;
}

static bool is_decided(const Node *n, const char *what, const Value *v, Diag *d)
{
    return !v || has_one_element(n, v->type) ||
           diag_error(d, n->loc, "%s has more than one element", what);
}

/* Checks that each value that a loop carries has one type in all iterations, and that its condition
 * is one element. */
static bool carries_fit(const Node *n, Diag *d)
{
    const Graph *cond = arg_get(n, "cond_graph").graph;
    bool ok = true;
    if (arg_count(n, "carried_inputs") != n->n_out)
        return diag_error(d, n->loc, "%d results, but %d carried_inputs", n->n_out,
                          arg_count(n, "carried_inputs"));
    for (int i = 0; i < n->n_out; i++) {
        const Value *v = region_operand(n, i);
        if (!v || !types_match(program_of(n), n, v->type, n->out[i]->type))
            ok = diag_error(d, n->loc, "result %d is %s, but its carried input is %s", i,
                            type_text(program_of(n), n->out[i]->type),
                            type_text(program_of(n), v ? v->type : TYPE_NONE));
    }
    return (cond->n_out != 1 || is_decided(n, "what cond_graph returns", cond->out[0], d)) && ok;
}

bool op_is_given(OpId op)
{
    return op_infer(op) == infer_given;
}

/* Returns whether the first argument, and each that the schema marks as written, is the Tensor that
 * it is called.  Numbers may stand for others: torch writes sizes there, for example in clamp. */
static bool takes_tensors(const Node *n, Diag *d)
{
    const Schema *s = node_schema(n);
    bool ok = true;
    for (int i = 0; i < s->n_args; i++) {
        const SchemaArg *a = &s->arg[i];
        const bool is_first = i == 0 && a->type == SCH_TENSOR && !a->is_optional;
        Type t;
        ok = (a->is_list || !(a->mutates || is_first) || get_tensor_at(n, i, &t, d)) && ok;
    }
    return ok;
}

/* The types are those of the file.  Inputs and results of the node's graphs must agree with
 * them. */
bool infer_given(const Node *n, Type *out, Diag *d)
{
    bool ok = n->custom || takes_tensors(n, d);
    if (n->op == OP_COND && !is_decided(n, "pred", arg_value(n, "pred"), d))
        return false;
    for (const Graph *g = NULL; (g = region_next(n, g));)
        ok = signature_fits(n, g, d) && ok;
    if (region_kind(n) == REGION_LOOP)
        ok = carries_fit(n, d) && ok;
    for (int i = 0; i < n->n_out; i++) {
        out[i] = n->out[i]->type;
        if (out[i].rank == SCALAR && !out[i].is_none && !region_next(n, NULL) &&
            n->op != OP_DELEGATE)
            ok = diag_error(d, n->loc, "its result %d is recorded as a number, expected a tensor", i);
    }
    return ok;
}

/* Returns whether the recorded type has a size that does not follow from the node's operands.
 * If the result is an element of a tensor, the node defines that size. */
static bool has_new_size(const Node *n, Type recorded, Type inferred)
{
    return recorded.rank == SCALAR && recorded.dim && !inferred.dim &&
           n->op != OP_LOCAL_SCALAR_DENSE;
}

bool node_is_complex(const Node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (dtype_is_complex(n->out[i]->type.dtype))
            return true;
    for (int i = 0; i < n->n_in; i++)
        if (dtype_is_complex(n->in[i]->type.dtype))
            return true;
    return false;
}

bool node_infer(const Node *n, Type *out, Diag *d)
{
    int errors = diag_errors(d);
    return (n->custom ? n->custom->infer : op_infer(n->op))(n, out, d) ||
           diag_missing(d, errors, n->loc, "the infer rule of", node_target(n));
}

/* Most rules are for real numbers.  Nodes with complex ones are checked when they are lowered. */
static bool has_recorded_types(const Node *n, Arena *tmp, Diag *d)
{
    Type *out = NEW(tmp, Type, n->n_out + 1);
    Program *p = program_of(n);
    bool is_given = node_is_complex(n) && n->op != OP_SYM_SIZE;
    bool ok = is_given ? infer_given(n, out, d) : node_infer(n, out, d);
    for (int i = 0; ok && i < n->n_out; i++)
        if (has_new_size(n, n->out[i]->type, out[i]))
            return diag_error(d, n->loc, "output %%%s is recorded as %s, which nothing determines",
                              n->out[i]->name, type_text(p, n->out[i]->type));
    for (int i = 0; ok && i < n->n_out; i++)
        if (!n->out[i]->type.is_none && !types_match(p, n, n->out[i]->type, out[i]))
            return diag_error(d, n->loc, "output %%%s is recorded as %s, but is %s",
                              n->out[i]->name, type_text(p, n->out[i]->type), type_text(p, out[i]));
    return ok;
}

/* Checks that an update's value has the type of its target, where it will lie after the call. */
static bool update_fits(const Graph *g, Update u, Diag *d)
{
    Program *p = g->program;
    const Node *n = u.value->def;
    return types_match(p, n, u.target->type, u.value->type) ||
           diag_error(d, n ? n->loc : (Loc){.file = p->name}, "update of %%%s, %s, with %%%s, %s",
                      u.target->name, type_text(p, u.target->type), u.value->name,
                      type_text(p, u.value->type));
}

static bool infer_graph(Graph *g, Arena *tmp, Diag *d)
{
    bool ok = true;
    for (const Node *n = g->first; n; n = n->next) {
        for (Graph *inner = NULL; (inner = region_next(n, inner));)
            ok = infer_graph(inner, tmp, d) && ok;
        ok = has_recorded_types(n, tmp, d) && ok;
    }
    for (int i = 0; i < g->n_updates; i++)
        ok = update_fits(g, g->update[i], d) && ok;
    return ok;
}

bool graph_infer(Graph *g, Diag *d)
{
    Arena *tmp = arena_within(g->program->arena);
    bool ok = infer_graph(g, tmp, d);
    arena_free(tmp);
    return ok;
}
