/* onnx_fold.c -- computes nodes that compute sizes, axes and factors at import.
 *
 * Exporters compute sizes with tensors of integers: Shape, Gather, Concat, Reshape.  If all
 * inputs of such a node are known lists, its result is one too; its integers may be symbolic
 * sizes.  Any other node, or one whose result does not follow from the lists, is imported as
 * usual. */
#include "compiler/import/onnx.h"
#include "ir/eval.h"
#include <assert.h>
#include <math.h>
#include <string.h>

typedef const OnnxList *FoldFn(OnnxNode *n);

/* -- elementwise ------------------------------------------------------------------------------- */

/* Two operands; one of them may have a single element. */
typedef struct Pair {
    const OnnxList *a, *b;
    int n, rank;
} Pair;

static bool read_pair(OnnxNode *n, int first, Pair *p)
{
    p->a = on_list(n, first);
    p->b = on_list(n, first + 1);
    if (!p->a || !p->b || p->a->dtype != p->b->dtype)
        return false;
    p->rank = p->a->rank > p->b->rank ? p->a->rank : p->b->rank;
    p->n = p->a->n == 1 ? p->b->n : p->a->n;
    return (p->a->n == p->n || p->a->n == 1) && (p->b->n == p->n || p->b->n == 1);
}

static int at_of(const OnnxList *l, int i)
{
    assert(l->n == 1 || i < l->n);
    return l->n == 1 ? 0 : i;
}

static double rounded(EtcDtype t, double v)
{
    if (t == ETC_F16)
        return half_value(half_of((float)v));
    if (t == ETC_BF16)
        return bfloat_value(bfloat_of((float)v));
    return t == ETC_F32 ? (double)(float)v : v;
}

static bool number_of(char op, double a, double b, double *out)
{
    *out = op == '+'   ? a + b
           : op == '-' ? a - b
           : op == '*' ? a * b
           : op == '/' ? a / b
           : op == '<' ? fmin(a, b)
           : op == '>' ? fmax(a, b)
                       : exact_pow(a, b);
    return op != '%';
}

static bool is_least(Dim d, int64_t least)
{
    int64_t lo, hi;
    dim_range(d, &lo, &hi);
    return lo >= least;
}

/* Computes a op b of sizes.  ONNX cuts quotients toward 0, while sizes are rounded down; both are
 * the same where nothing is negative. */
static bool size_of(Program *p, char op, Dim a, Dim b, Dim *out)
{
    bool is_closed = !a.expr && !b.expr;
    if ((op == '/' || op == '%') && is_closed && b.value != 0 && b.value != -1) {
        int64_t mod = a.value % b.value;
        mod += mod && (mod < 0) != (b.value < 0) ? b.value : 0;
        *out = DIM(op == '/' ? a.value / b.value : mod);
        return true;
    }
    if (op == '%' && !a.expr && a.value < 0 && a.value > INT32_MIN && is_least(b, -a.value)) {
        *out = dim_add(p, a, b); /* a position relative to the end */
        return true;
    }
    if (op == '%' && !a.expr && a.value >= 0 && a.value < INT32_MAX && is_least(b, a.value + 1)) {
        *out = a;
        return true;
    }
    if ((op == '/' || op == '%') && (!is_least(a, 0) || b.expr || b.value < 1))
        return false;
    *out = op == '+'   ? dim_add(p, a, b)
           : op == '-' ? dim_sub(p, a, b)
           : op == '*' ? dim_mul(p, a, b)
           : op == '/' ? dim_floordiv(p, a, b)
           : op == '%' ? dim_mod(p, a, b)
           : op == '<' ? dim_min(p, a, b)
                       : dim_max(p, a, b);
    return op != '^' && !dim_is_bad(*out);
}

static const OnnxList *arithmetic(OnnxNode *n, char op)
{
    Pair p;
    if (n->node->n_input != 2 || !read_pair(n, 0, &p))
        return NULL;
    OnnxList *l = on_new_list(n, p.a->dtype, p.rank, p.n);
    for (int i = 0; i < p.n; i++) {
        int a = at_of(p.a, i), b = at_of(p.b, i);
        if (l->number && !number_of(op, p.a->number[a], p.b->number[b], &l->number[i]))
            return NULL;
        if (l->number)
            l->number[i] = rounded(l->dtype, l->number[i]);
        else if (!size_of(n->in->program, op, p.a->dim[a], p.b->dim[b], &l->dim[i]))
            return NULL;
    }
    return l;
}

static const OnnxList *fold_add(OnnxNode *n)
{
    return arithmetic(n, '+');
}

static const OnnxList *fold_sub(OnnxNode *n)
{
    return arithmetic(n, '-');
}

static const OnnxList *fold_mul(OnnxNode *n)
{
    return arithmetic(n, '*');
}

static const OnnxList *fold_div(OnnxNode *n)
{
    return arithmetic(n, '/');
}

static const OnnxList *fold_mod(OnnxNode *n)
{
    return on_int(n, "fmod", 0) ? NULL : arithmetic(n, '%');
}

static const OnnxList *fold_min(OnnxNode *n)
{
    return arithmetic(n, '<');
}

static const OnnxList *fold_max(OnnxNode *n)
{
    return arithmetic(n, '>');
}

static const OnnxList *fold_pow(OnnxNode *n)
{
    return arithmetic(n, '^');
}

static const OnnxList *fold_neg(OnnxNode *n)
{
    const OnnxList *x = on_list(n, 0);
    if (!x)
        return NULL;
    OnnxList *l = on_new_list(n, x->dtype, x->rank, x->n);
    for (int i = 0; i < x->n; i++) {
        if (l->number)
            l->number[i] = -x->number[i];
        else
            l->dim[i] = dim_sub(n->in->program, DIM(0), x->dim[i]);
    }
    return l;
}

/* Combines two lists of bools element by element: by `or` if `any` is set, else by `and`. */
static const OnnxList *joined(OnnxNode *n, bool any)
{
    Pair p;
    if (!read_pair(n, 0, &p) || !p.a->dim)
        return NULL;
    OnnxList *l = on_new_list(n, ETC_BOOL, p.rank, p.n);
    for (int i = 0; i < p.n; i++) {
        Dim a = p.a->dim[at_of(p.a, i)], b = p.b->dim[at_of(p.b, i)];
        if (a.expr || b.expr)
            return NULL;
        l->dim[i] = DIM(any ? a.value || b.value : a.value && b.value);
    }
    return l;
}

static const OnnxList *fold_and(OnnxNode *n)
{
    return joined(n, false);
}

static const OnnxList *fold_or(OnnxNode *n)
{
    return joined(n, true);
}

/* Sets the sign of a - b if it is the same for all values of the symbols, else returns false. */
static bool sign_of(Program *p, const Pair *q, int i, int *sign)
{
    int a = at_of(q->a, i), b = at_of(q->b, i);
    int64_t lo, hi;
    if (q->a->number) {
        double x = q->a->number[a], y = q->b->number[b];
        *sign = x > y ? 1 : x < y ? -1 : 0;
        return x == x && y == y;
    }
    dim_range(dim_sub(p, q->a->dim[a], q->b->dim[b]), &lo, &hi);
    *sign = lo > 0 ? 1 : hi < 0 ? -1 : 0;
    return lo > 0 || hi < 0 || (lo == 0 && hi == 0);
}

static const OnnxList *compared(OnnxNode *n, bool less, bool equal, bool greater)
{
    Pair p;
    int sign;
    if (!read_pair(n, 0, &p))
        return NULL;
    OnnxList *l = on_new_list(n, ETC_BOOL, p.rank, p.n);
    for (int i = 0; i < p.n; i++) {
        if (!sign_of(n->in->program, &p, i, &sign))
            return NULL;
        l->dim[i] = DIM(sign < 0 ? less : sign > 0 ? greater : equal);
    }
    return l;
}

static const OnnxList *fold_equal(OnnxNode *n)
{
    return compared(n, false, true, false);
}

static const OnnxList *fold_less(OnnxNode *n)
{
    return compared(n, true, false, false);
}

static const OnnxList *fold_greater(OnnxNode *n)
{
    return compared(n, false, false, true);
}

static const OnnxList *fold_less_or_equal(OnnxNode *n)
{
    return compared(n, true, true, false);
}

static const OnnxList *fold_greater_or_equal(OnnxNode *n)
{
    return compared(n, false, true, true);
}

static const OnnxList *fold_where(OnnxNode *n)
{
    const OnnxList *c = on_list(n, 0);
    Pair p;
    if (!c || !c->dim || !read_pair(n, 1, &p) || (c->n != 1 && p.n != 1 && c->n != p.n))
        return NULL;
    int count = c->n > p.n ? c->n : p.n;
    OnnxList *l = on_new_list(n, p.a->dtype, c->rank > p.rank ? c->rank : p.rank, count);
    for (int i = 0; i < count; i++) {
        const OnnxList *from = c->dim[at_of(c, i)].value ? p.a : p.b;
        if (c->dim[at_of(c, i)].expr)
            return NULL;
        if (l->dim)
            l->dim[i] = from->dim[at_of(from, i)];
        else
            l->number[i] = from->number[at_of(from, i)];
    }
    return l;
}

static const OnnxList *each(OnnxNode *n, double (*fn)(double))
{
    const OnnxList *x = on_list(n, 0);
    if (!x || !x->number)
        return NULL;
    OnnxList *l = on_new_list(n, x->dtype, x->rank, x->n);
    for (int i = 0; i < x->n; i++)
        l->number[i] = rounded(x->dtype, fn(x->number[i]));
    return l;
}

static const OnnxList *fold_floor(OnnxNode *n)
{
    return each(n, floor);
}

static const OnnxList *fold_ceil(OnnxNode *n)
{
    return each(n, ceil);
}

static const OnnxList *fold_sqrt(OnnxNode *n)
{
    return each(n, sqrt);
}

static double positive(double v)
{
    return v > 0 || v != v ? v : 0;
}

static const OnnxList *fold_relu(OnnxNode *n)
{
    return each(n, positive);
}

static const OnnxList *fold_not(OnnxNode *n)
{
    const OnnxList *x = on_list(n, 0);
    if (!x || !x->dim)
        return NULL;
    OnnxList *l = on_new_list(n, ETC_BOOL, x->rank, x->n);
    for (int i = 0; i < x->n; i++) {
        if (x->dim[i].expr)
            return NULL;
        l->dim[i] = DIM(!x->dim[i].value);
    }
    return l;
}

/* Casts a list.  Symbolic sizes can become other integers, but no floats. */
static const OnnxList *cast_list(OnnxNode *n, EtcDtype t)
{
    const OnnxList *x = on_table(n, 0);
    bool is_kept = t == ETC_I64 || t == ETC_I32 || t == ETC_BOOL || t == ETC_F16 ||
                   t == ETC_BF16;
    if (!x || (!is_kept && t != ETC_F32 && t != ETC_F64))
        return NULL;
    OnnxList *l = on_new_list(n, t, x->rank, x->n);
    l->columns = x->columns;
    for (int i = 0; i < x->n; i++) {
        double v = x->number ? x->number[i] : (double)x->dim[i].value;
        bool is_open = x->dim && x->dim[i].expr;
        if (is_open && (t == ETC_I64 || t == ETC_I32))
            l->dim[i] = x->dim[i];
        else if (is_open || (l->dim && !(fabs(v) < 0x1p62)))
            return NULL;
        else if (l->number)
            l->number[i] = rounded(t, v);
        else
            l->dim[i] = DIM(t == ETC_BOOL ? v != 0 : x->dim ? x->dim[i].value : (int64_t)v);
    }
    return l;
}

static const OnnxList *fold_cast(OnnxNode *n)
{
    EtcDtype t;
    return onnx_dtype((int32_t)on_int(n, "to", 0), &t) ? cast_list(n, t) : NULL;
}

static const OnnxList *fold_cast_like(OnnxNode *n)
{
    const OnnxConst *c = on_const(n, 1);
    const OnnxList *l = c ? NULL : on_list(n, 1);
    Value *v = c || l ? NULL : on_value(n, 1);
    return c || l || v ? cast_list(n, c ? c->type.dtype : l ? l->dtype : v->type.dtype) : NULL;
}

/* -- moves ------------------------------------------------------------------------------------- */

static void copy_item(OnnxList *to, int i, const OnnxList *from, int k)
{
    assert(i >= 0 && i < to->n && k >= 0 && k < from->n);
    if (to->dim)
        to->dim[i] = from->dim[k];
    else
        to->number[i] = from->number[k];
}

static const OnnxList *copied(OnnxNode *n, const OnnxList *x, int rank)
{
    OnnxList *l = on_new_list(n, x->dtype, rank, x->n);
    for (int i = 0; i < x->n; i++)
        copy_item(l, i, x, i);
    return l;
}

static const OnnxList *fold_identity(OnnxNode *n)
{
    return on_table(n, 0);
}

/* Returns as many rows as table x has: its rows from, from + step, and so on. */
static const OnnxList *rows_of(OnnxNode *n, const OnnxList *x, int64_t from, int64_t step)
{
    int64_t rows = x->columns ? x->n / x->columns : 0;
    OnnxList *l = on_new_list(n, x->dtype, 2, x->n);
    l->columns = x->columns;
    for (int64_t r = 0; r < rows; r++)
        for (int c = 0; c < x->columns; c++)
            copy_item(l, (int)(r * x->columns + c), x, (int)((from + r * step) * x->columns + c));
    return l;
}

static const OnnxList *fold_transpose(OnnxNode *n)
{
    const OnnxList *x = on_table(n, 0);
    int64_t perm[2] = {1, 0};
    if (!x || x->rank != 2 || !x->columns || (on_ints(n, "perm", perm, 2) >= 0 && perm[0] != 1))
        return NULL;
    int rows = x->n / x->columns;
    OnnxList *l = on_new_list(n, x->dtype, 2, x->n);
    l->columns = rows;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < x->columns; c++)
            copy_item(l, c * rows + r, x, r * x->columns + c);
    return l;
}

static const OnnxList *fold_unsqueeze(OnnxNode *n)
{
    const OnnxList *x = on_list(n, 0);
    return x && x->rank == 0 ? copied(n, x, 1) : NULL;
}

static const OnnxList *fold_squeeze(OnnxNode *n)
{
    const OnnxList *x = on_list(n, 0);
    return x && x->n == 1 ? copied(n, x, 0) : NULL;
}

static const OnnxList *fold_reshape(OnnxNode *n)
{
    const OnnxList *x = on_table(n, 0), *to = on_list(n, 1);
    if (!x || !to || !to->dim)
        return NULL;
    if (to->n == 2 && !to->dim[1].expr && to->dim[1].value > 0 && x->n % to->dim[1].value == 0) {
        OnnxList *l = on_new_list(n, x->dtype, 2, x->n);
        l->columns = (int)to->dim[1].value;
        for (int i = 0; i < x->n; i++)
            copy_item(l, i, x, i);
        return l;
    }
    if (to->n > 1 || (to->n == 0 && x->n != 1))
        return NULL;
    return !to->n || (!to->dim[0].expr && (to->dim[0].value == -1 || to->dim[0].value == x->n))
               ? copied(n, x, to->n)
               : NULL;
}

static const OnnxList *fold_concat(OnnxNode *n)
{
    int count = 0;
    const OnnxList *first = on_list(n, 0);
    for (int i = 0; i < (int)n->node->n_input; i++) {
        const OnnxList *x = on_list(n, i);
        if (!x || !first || x->rank != 1 || x->dtype != first->dtype || count > MAX_LIST - x->n)
            return NULL;
        count += x->n;
    }
    if (!first)
        return NULL;
    OnnxList *l = on_new_list(n, first->dtype, 1, count);
    for (int i = 0, at = 0; i < (int)n->node->n_input; i++) {
        const OnnxList *x = on_list(n, i);
        for (int k = 0; k < x->n; k++)
            copy_item(l, at++, x, k);
    }
    return l;
}

/* Returns the number of the item of x that an index names, which may count from the end; -1: there
 * is no such item, or the index is not known. */
static int item_of(const OnnxList *x, Dim index)
{
    int64_t k = index.value + (index.value < 0 ? x->n : 0);
    return index.expr || k < 0 || k >= x->n ? -1 : (int)k;
}

static const OnnxList *fold_gather(OnnxNode *n)
{
    const OnnxList *x = on_list(n, 0), *at = on_list(n, 1);
    if (!x || !at || x->rank != 1 || !at->dim)
        return NULL;
    OnnxList *l = on_new_list(n, x->dtype, at->rank, at->n);
    for (int i = 0; i < at->n; i++) {
        int k = item_of(x, at->dim[i]);
        if (k < 0)
            return NULL;
        copy_item(l, i, x, k);
    }
    return l;
}

static const OnnxList *fold_scatter(OnnxNode *n)
{
    const OnnxList *x = on_list(n, 0), *at = on_list(n, 1), *with = on_list(n, 2);
    if (!x || !at || !with || x->rank != 1 || at->rank != 1 || with->n != at->n || !at->dim ||
        with->dtype != x->dtype || strcmp(on_text(n, "reduction", "none"), "none") != 0)
        return NULL;
    OnnxList *l = on_new_list(n, x->dtype, 1, x->n);
    for (int i = 0; i < x->n; i++)
        copy_item(l, i, x, i);
    for (int i = 0; i < at->n; i++) {
        int k = item_of(x, at->dim[i]);
        if (k < 0)
            return NULL;
        copy_item(l, k, with, i);
    }
    return l;
}

static bool closed_number(const OnnxList *l, int64_t otherwise, int64_t *out)
{
    *out = l && l->n == 1 && l->dim ? l->dim[0].value : otherwise;
    return !l || (l->dim && l->n == 1 && !l->dim[0].expr);
}

static int64_t clamped(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static const OnnxList *fold_slice(OnnxNode *n)
{
    const OnnxList *x = on_table(n, 0), *axis = n->in->opset < 10 ? NULL : on_list(n, 3);
    int64_t from = 0, to = 0, step = 1;
    if (!x || x->rank < 1)
        return NULL;
    if (x->rank == 2) { /* exporters reverse rows to convert torch's paddings to ONNX's */
        bool is_back = axis && axis->n == 1 && axis->dim && !axis->dim[0].expr &&
                       axis->dim[0].value == 0 &&
                       closed_number(on_list(n, 4), 1, &step) && step == -1 &&
                       closed_number(on_list(n, 1), 0, &from) && from == -1;
        return is_back && x->columns ? rows_of(n, x, x->n / x->columns - 1, -1) : NULL;
    }
    if (n->in->opset < 10) {
        if (on_ints(n, "starts", &from, 1) != 1 || on_ints(n, "ends", &to, 1) != 1)
            return NULL;
    } else if ((on_has(n, 4) && !on_list(n, 4)) || !on_list(n, 1) || !on_list(n, 2) ||
               !closed_number(on_list(n, 1), 0, &from) || !closed_number(on_list(n, 2), 0, &to) ||
               !closed_number(on_list(n, 4), 1, &step)) {
        return NULL;
    }
    if (step == 0)
        return NULL;
    step = clamped(step, -MAX_LIST - 1, MAX_LIST + 1); /* no list is longer */
    from = clamped(from < 0 ? from + x->n : from, step < 0 ? -1 : 0, step < 0 ? x->n - 1 : x->n);
    to = clamped(to < 0 ? (to < -x->n ? -1 : to + x->n) : to, step < 0 ? -1 : 0, x->n);
    int count = 0;
    OnnxList *l = on_new_list(n, x->dtype, 1, x->n);
    for (int64_t i = from; step < 0 ? i > to : i < to; i += step)
        copy_item(l, count++, x, (int)i);
    l->n = count;
    return l;
}

/* -- sizes ------------------------------------------------------------------------------------- */

static bool type_of_input(OnnxNode *n, Type *t)
{
    const OnnxConst *c = on_const(n, 0);
    const OnnxList *l = c ? NULL : on_list(n, 0);
    Dim size = DIM(l ? l->n : 0);
    if (c)
        *t = c->type;
    else if (l)
        *t = type_tensor(n->in->program, l->dtype, l->rank, &size);
    else if (on_value(n, 0))
        *t = on_value(n, 0)->type;
    else
        return false;
    return true;
}

static const OnnxList *fold_shape(OnnxNode *n)
{
    Type t;
    if (!type_of_input(n, &t))
        return NULL;
    int64_t from = on_int(n, "start", 0), to = on_int(n, "end", t.rank);
    from = clamped(from < 0 ? from + t.rank : from, 0, t.rank);
    to = clamped(to < 0 ? to + t.rank : to, from, t.rank);
    OnnxList *l = on_new_list(n, ETC_I64, 1, (int)(to - from));
    for (int i = 0; i < l->n; i++)
        l->dim[i] = t.dim[from + i];
    return l;
}

static const OnnxList *fold_size(OnnxNode *n)
{
    Type t;
    if (!type_of_input(n, &t))
        return NULL;
    OnnxList *l = on_new_list(n, ETC_I64, 0, 1);
    l->dim[0] = DIM(1);
    for (int i = 0; i < t.rank; i++)
        l->dim[0] = dim_mul(n->in->program, l->dim[0], t.dim[i]);
    return l;
}

/* Reduces a list of sizes to one size.  Sums and products start from `first`. */
static const OnnxList *reduced(OnnxNode *n, char op, int64_t first)
{
    const OnnxList *x = on_list(n, 0);
    if (!x || !x->dim || x->rank != 1 || !x->n)
        return NULL;
    OnnxList *l = on_new_list(n, x->dtype, on_int(n, "keepdims", 1) ? 1 : 0, 1);
    Dim all = op == '<' || op == '>' ? x->dim[0] : DIM(first);
    for (int i = 0; i < x->n; i++)
        if (!size_of(n->in->program, op, all, x->dim[i], &all))
            return NULL;
    l->dim[0] = all;
    return l;
}

static const OnnxList *fold_product(OnnxNode *n)
{
    return reduced(n, '*', 1);
}

static const OnnxList *fold_sum(OnnxNode *n)
{
    return reduced(n, '+', 0);
}

static const OnnxList *fold_least(OnnxNode *n)
{
    return reduced(n, '<', 0);
}

static const OnnxList *fold_most(OnnxNode *n)
{
    return reduced(n, '>', 0);
}

static const OnnxList *fold_range(OnnxNode *n)
{
    int64_t from, to, step;
    const OnnxList *l[3] = {on_list(n, 0), on_list(n, 1), on_list(n, 2)};
    if (!l[0] || !l[1] || !l[2] || !closed_number(l[0], 0, &from) || !closed_number(l[1], 0, &to) ||
        !closed_number(l[2], 1, &step) || !step || l[0]->number || from < -MAX_LIST ||
        from > MAX_LIST || to < -MAX_LIST || to > MAX_LIST || step < -MAX_LIST || step > MAX_LIST)
        return NULL;
    int64_t count = (to - from + step - (step > 0 ? 1 : -1)) / step;
    OnnxList *made = on_new_list(n, l[0]->dtype, 1, count > 0 && count <= MAX_LIST ? (int)count : 0);
    for (int i = 0; i < made->n; i++)
        made->dim[i] = DIM(from + i * step);
    return count <= MAX_LIST ? made : NULL;
}

/* Returns a list of equal numbers, whose length is known. */
static const OnnxList *fold_filled(OnnxNode *n)
{
    const OnnxList *size = on_list(n, 0);
    const Onnx__Attribute *a = on_attribute(n, "value");
    const OnnxConst *c = a && a->t ? onnx_const(n->in, n->loc, a->t) : NULL;
    const OnnxList *value = c ? onnx_const_list(n->in, c) : NULL;
    if (!size || !size->dim || size->n != 1 || size->dim[0].expr || size->dim[0].value < 0 ||
        size->dim[0].value > MAX_LIST || !value || value->n != 1)
        return NULL;
    OnnxList *l = on_new_list(n, value->dtype, 1, (int)size->dim[0].value);
    for (int i = 0; i < l->n; i++)
        copy_item(l, i, value, 0);
    return l;
}

/* -- the table --------------------------------------------------------------------------------- */

bool onnx_fold(OnnxNode *n)
{
    static const struct {
        const char *op;
        FoldFn *fold;
    } row[] = {
        {"Add", fold_add},         {"And", fold_and},           {"Cast", fold_cast}, {"CastLike", fold_cast_like},
        {"Ceil", fold_ceil},       {"GreaterOrEqual", fold_greater_or_equal},
        {"LessOrEqual", fold_less_or_equal}, {"Neg", fold_neg}, {"Or", fold_or},
        {"Concat", fold_concat},   {"ConstantOfShape", fold_filled}, {"Div", fold_div},
        {"Equal", fold_equal},     {"Floor", fold_floor},       {"Gather", fold_gather},
        {"Greater", fold_greater}, {"Identity", fold_identity}, {"Less", fold_less},
        {"Max", fold_max},         {"Min", fold_min},           {"Mod", fold_mod},
        {"Mul", fold_mul},         {"Not", fold_not},           {"Pow", fold_pow},
        {"Range", fold_range},     {"ReduceMax", fold_most},    {"ReduceMin", fold_least},
        {"ReduceProd", fold_product}, {"ReduceSum", fold_sum}, {"Relu", fold_relu}, {"Reshape", fold_reshape},
        {"ScatterElements", fold_scatter}, {"Shape", fold_shape}, {"Size", fold_size},         {"Slice", fold_slice},
        {"Sqrt", fold_sqrt}, {"Transpose", fold_transpose},      {"Squeeze", fold_squeeze},   {"Sub", fold_sub},
        {"Unsqueeze", fold_unsqueeze}, {"Where", fold_where},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        if (strcmp(row[i].op, n->row->name) != 0)
            continue;
        const OnnxList *l = row[i].fold(n);
        return l && !n->failed && on_define_list(n, 0, l);
    }
    return false;
}
