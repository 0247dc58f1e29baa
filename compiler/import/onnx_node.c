/* onnx_node.c -- helpers for the handlers of ONNX operators: inputs, attributes, results. */
#include "compiler/import/onnx.h"
#include <assert.h>
#include <stdarg.h>
#include <string.h>

bool onnx_wrong(OnnxNode *n, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_print(n->in->tmp, fmt, ap);
    va_end(ap);
    n->failed = true;
    return diag_error(n->in->diag, n->loc, "%s", text);
}

bool onnx_unsupported(OnnxNode *n, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_print(n->in->tmp, fmt, ap);
    va_end(ap);
    n->failed = true;
    return diag_unsupported(n->in->diag, n->loc, "%s", text);
}

bool onnx_spend(Onnx *o, size_t n)
{
    enum { MOST = 200000 };
    o->spent = n < MOST - o->spent ? o->spent + n : MOST;
    return o->spent < MOST ||
           diag_unsupported(o->diag, o->loc, "is too large: with functions, branches and loops spelled "
                                             "out, its nodes have 200,000 operands and more");
}

/* -- inputs ------------------------------------------------------------------------------------ */

static const OnnxScope *caller_of(const OnnxScope *s)
{
    while (s && !s->call)
        s = s->outer;
    return s;
}

/* Returns whether the call of a function left input i of its node out. */
static bool is_absent(const OnnxNode *n, int i)
{
    const OnnxScope *s = caller_of(n->scope);
    const char *name = s && s->lacks ? onnx_text(n->in, n->node->input[i]) : NULL;
    const OnnxValue *v = name ? onnx_find(n->scope, name) : NULL;
    return v && v->is_absent;
}

bool on_has(const OnnxNode *n, int i)
{
    assert(i >= 0);
    return i < (int)n->node->n_input && n->node->input[i].len > 0 && !is_absent(n, i);
}

/* Returns input i and its name; NULL: it is absent, or an error was reported. */
static OnnxValue *input(OnnxNode *n, int i, const char **name)
{
    if (!on_has(n, i) || !(*name = onnx_text(n->in, n->node->input[i])))
        return NULL;
    OnnxValue *v = onnx_find(n->scope, *name);
    if (!v && !n->failed)
        onnx_wrong(n, "reads '%s', which no node before it defines", *name);
    return v;
}

OnnxValue *on_input(OnnxNode *n, int i)
{
    const char *name;
    return input(n, i, &name);
}

static bool is_closed(const OnnxList *l)
{
    for (int i = 0; l->dim && i < l->n; i++)
        if (l->dim[i].expr)
            return false;
    return true;
}

static Value *closed_value(OnnxNode *n, const OnnxList *l)
{
    Onnx *o = n->in;
    bool is_table = l->rank == 2;
    Dim size[2] = {DIM(is_table ? l->n / (l->columns ? l->columns : 1) : l->n), DIM(l->columns)};
    OnnxConst c = {.type = type_tensor(o->program, l->dtype, l->rank, size)};
    size_t bytes = etc_dtype_size((int)l->dtype);
    uint8_t *data = arena_bytes(o->program->arena, (size_t)l->n * bytes + 1);
    c.n_bytes = type_bytes(c.type);
    for (int i = 0; i < l->n; i++) {
        float narrow = l->number ? (float)l->number[i] : 0;
        uint16_t half = l->dtype == ETC_F16 ? half_of(narrow) : bfloat_of(narrow);
        const void *from = !l->number ? (const void *)&l->dim[i].value
                           : l->dtype == ETC_F64 ? (const void *)&l->number[i]
                           : bytes == sizeof half ? (const void *)&half
                                                 : (const void *)&narrow;
        memcpy(data + (size_t)i * bytes, from, bytes);
    }
    c.data = data;
    return onnx_const_value(o, "sizes", &c);
}

/* Returns a list as a tensor.  If it has symbolic sizes, `full` makes a tensor of each number, and
 * these are concatenated. */
Value *on_list_value(OnnxNode *n, const OnnxList *l)
{
    if (is_closed(l))
        return closed_value(n, l);
    if (l->rank > 1) {
        onnx_unsupported(n, "reads a table of symbolic sizes as a tensor");
        return NULL;
    }
    Value **part = NEW(n->in->tmp, Value *, l->n);
    Dim one = DIM(1);
    for (int i = 0; i < l->n; i++) {
        part[i] = ON_BUILD(n, OP_FULL, "Ddt", l->rank, &one, l->dim[i], l->dtype);
        if (!part[i])
            return NULL;
    }
    return l->n == 1 ? part[0] : ON_BUILD(n, OP_CAT, "Vi", l->n, part, (int64_t)0);
}

Value *on_tensor(OnnxNode *n, const char *name, OnnxValue *v)
{
    if (v->sequence || v->is_none)
        onnx_unsupported(
            n,
            "takes '%s' as a tensor, which is %s: those are read where their items are known "
            "on import",
            name, v->sequence ? "a sequence" : "an empty optional");
    else if (!v->value && v->constant)
        v->value = onnx_const_value(n->in, name, v->constant);
    else if (!v->value && v->list)
        v->value = on_list_value(n, v->list);
    n->failed = n->failed || !v->value;
    return v->value;
}

Value *on_value(OnnxNode *n, int i)
{
    const char *name;
    OnnxValue *v = input(n, i, &name);
    return v ? on_tensor(n, name, v) : NULL;
}

OnnxConst *on_const(OnnxNode *n, int i)
{
    const char *name;
    OnnxValue *v = input(n, i, &name);
    return v ? v->constant : NULL;
}

int on_bits(OnnxNode *n, int i)
{
    const char *name;
    OnnxValue *v = input(n, i, &name);
    return !v ? 0 : v->constant ? v->constant->bits : v->bits;
}

const OnnxList *on_table(OnnxNode *n, int i)
{
    const char *name;
    OnnxValue *v = input(n, i, &name);
    if (v && !v->list && v->constant)
        v->list = onnx_const_list(n->in, v->constant);
    return v ? v->list : NULL;
}

const OnnxList *on_list(OnnxNode *n, int i)
{
    const OnnxList *l = on_table(n, i);
    return l && l->rank < 2 ? l : NULL;
}

bool on_dims(OnnxNode *n, int i, Dim *out, int *count)
{
    const OnnxList *l = on_list(n, i);
    if (n->failed)
        return false;
    if (!l || !l->dim || l->n > MAX_RANK)
        return onnx_unsupported(n, "takes input %d from elements of tensors, expected a list of at most "
                                   "16 sizes that are known",
                                i);
    *count = l->n;
    for (int k = 0; k < l->n; k++)
        out[k] = l->dim[k];
    return true;
}

bool on_numbers(OnnxNode *n, int i, int64_t *out, int *count)
{
    Dim dim[MAX_RANK];
    if (!on_dims(n, i, dim, count))
        return false;
    for (int k = 0; k < *count; k++) {
        if (dim[k].expr)
            return onnx_unsupported(
                n, "takes number %d of input %d from sizes known only at run time", k, i);
        out[k] = dim[k].value;
    }
    return true;
}

bool on_wants(const OnnxNode *n, int i)
{
    assert(i >= 0);
    return i < (int)n->node->n_output && n->node->output[i].len > 0;
}

/* -- attributes -------------------------------------------------------------------------------- */

/* Returns the attribute of the call that an attribute of a function's node refers to.  NULL: it is
 * absent, or an error was reported. */
static const Onnx__Attribute *referred(OnnxNode *n, const Onnx__Attribute *a)
{
    const OnnxScope *s = caller_of(n->scope);
    const char *name = onnx_text(n->in, a->ref_attr_name);
    if (!s || !name) {
        onnx_wrong(n, "refers to an attribute of a function, but is not in a function");
        return NULL;
    }
    const Onnx__Attribute *given = on_attribute(s->call, name);
    for (size_t i = 0; !given && i < s->function->n_attribute_proto; i++) {
        const Onnx__Attribute *d = s->function->attribute_proto[i];
        if (d->name.len == a->ref_attr_name.len && !memcmp(d->name.data, a->ref_attr_name.data, d->name.len))
            given = d;
    }
    return given;
}

const Onnx__Attribute *on_attribute(OnnxNode *n, const char *name)
{
    for (size_t i = 0; i < n->node->n_attribute; i++) {
        const Onnx__Attribute *a = n->node->attribute[i];
        if (a->name.len == strlen(name) && !memcmp(a->name.data, name, a->name.len))
            return a->ref_attr_name.len ? referred(n, a) : a;
    }
    return NULL;
}

int64_t on_int(OnnxNode *n, const char *name, int64_t otherwise)
{
    const Onnx__Attribute *a = on_attribute(n, name);
    return a && a->has_i ? a->i : otherwise;
}

double on_float(OnnxNode *n, const char *name, double otherwise)
{
    const Onnx__Attribute *a = on_attribute(n, name);
    return a && a->has_f ? (double)a->f : otherwise;
}

const char *on_text(OnnxNode *n, const char *name, const char *otherwise)
{
    const Onnx__Attribute *a = on_attribute(n, name);
    const char *text = a && a->has_s ? onnx_text(n->in, a->s) : otherwise;
    n->failed = n->failed || !text;
    return text ? text : "";
}

int on_ints(OnnxNode *n, const char *name, int64_t *out, int most)
{
    const Onnx__Attribute *a = on_attribute(n, name);
    if (!a)
        return -1;
    if (a->n_ints > (size_t)most) {
        onnx_wrong(n, "has %zu numbers as '%s', expected at most %d", a->n_ints, name, most);
        return -1;
    }
    for (size_t i = 0; i < a->n_ints; i++)
        out[i] = a->ints[i];
    return (int)a->n_ints;
}

bool on_axis(OnnxNode *n, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return onnx_wrong(n, "axis %lld is out of range for rank %d", (long long)axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

/* -- results ----------------------------------------------------------------------------------- */

bool on_give(OnnxNode *n, int i, OnnxValue *v)
{
    if (!v || !on_wants(n, i))
        return v != NULL;
    const char *name = onnx_text(n->in, n->node->output[i]);
    if (!name)
        return false;
    TableItem *at = table_at_text(&n->scope->values, name);
    if (at->ptr)
        return onnx_wrong(n, "defines '%s' a second time", name);
    if (v->scope != n->scope)
        v->by = NULL; /* a node of a scope that ends */
    at->ptr = v;
    return true;
}

/* Returns a new value for output i, which the caller fills in. */
static OnnxValue *result(OnnxNode *n, int i)
{
    OnnxValue *v = NEW(n->in->tmp, OnnxValue, 1);
    return on_give(n, i, v) ? v : NULL;
}

bool on_define_bits(OnnxNode *n, int i, Value *v, int bits)
{
    if (!v || n->failed)
        return false;
    if (!on_wants(n, i))
        return true;
    OnnxValue *to = result(n, i);
    if (!to)
        return false;
    *to = (OnnxValue){.value = v, .bits = bits, .by = n->node, .scope = n->scope};
    return onnx_element(n->in, n->loc, onnx_text(n->in, n->node->output[i]), to);
}

bool on_define(OnnxNode *n, int i, Value *v)
{
    return on_define_bits(n, i, v, 0);
}

bool on_define_list(OnnxNode *n, int i, const OnnxList *l)
{
    for (int k = 0; l->dim && k < l->n; k++)
        if (dim_is_bad(l->dim[k]))
            return onnx_wrong(n, "computes a size that overflows or divides by zero");
    OnnxValue *to = on_wants(n, i) ? result(n, i) : NULL;
    if (to)
        to->list = l;
    return to != NULL;
}

OnnxList *on_new_list(OnnxNode *n, EtcDtype t, int rank, int count)
{
    assert(rank >= 0 && rank <= 2 && count >= 0);
    OnnxList *l = NEW(n->in->tmp, OnnxList, 1);
    *l = (OnnxList){.dtype = t, .rank = rank, .n = count};
    if (dtype_is_float(t))
        l->number = NEW(n->in->tmp, double, count + 1);
    else
        l->dim = NEW(n->in->tmp, Dim, count + 1);
    return l;
}

/* -- nodes ------------------------------------------------------------------------------------- */

Value *on_result(OnnxNode *n, const Node *made)
{
    n->failed |= !made;
    return made ? made->out[0] : NULL;
}

Value *on_cast(OnnxNode *n, Value *v, EtcDtype t)
{
    return !v || v->type.dtype == t ? v : ON_BUILD(n, OP__TO_COPY, "vt", v, t);
}

Value *on_view(OnnxNode *n, Value *v, int rank, const Dim *dim)
{
    return v ? ON_BUILD(n, OP_VIEW, "vD", v, rank, dim) : NULL;
}

Value *on_given(OnnxNode *n, OpId op, Type t, Value *x)
{
    return on_result(n, build_given(n->in->graph, NULL, n->loc, op, &t, n->in->diag, "v", x));
}

int on_broadcast(OnnxNode *n, Type a, Type b, Dim *out)
{
    int rank = a.rank > b.rank ? a.rank : b.rank;
    for (int i = 0; i < rank; i++) {
        int at = a.rank - 1 - i, bt = b.rank - 1 - i;
        Dim x = at < 0 ? DIM(1) : a.dim[at], y = bt < 0 ? DIM(1) : b.dim[bt];
        bool is_one = !x.expr && x.value == 1;
        if (!is_one && !(!y.expr && y.value == 1) && !x.expr && !y.expr && x.value != y.value) {
            onnx_wrong(n, "sizes %lld and %lld do not broadcast", (long long)x.value,
                       (long long)y.value);
            return -1;
        }
        out[rank - 1 - i] = is_one ? y : x;
    }
    return rank;
}

/* -- common forms ------------------------------------------------------------------------------ */

Value *on_unary(OnnxNode *n, OpId op, Value *x)
{
    return x ? ON_BUILD(n, op, "v", x) : NULL;
}

Value *on_binary(OnnxNode *n, OpId op, Value *a, Value *b)
{
    return a && b ? ON_BUILD(n, op, "vv", a, b) : NULL;
}

Value *on_scalar(OnnxNode *n, OpId op, Value *x, double by)
{
    if (x && !dtype_is_float(x->type.dtype))
        return ON_BUILD(n, op, "vi", x, (int64_t)by);
    return x ? ON_BUILD(n, op, "vf", x, by) : NULL;
}

Value *on_where(OnnxNode *n, Value *c, Value *a, Value *b)
{
    return c && a && b ? ON_BUILD(n, OP_WHERE_SELF, "vvv", c, a, b) : NULL;
}

Value *on_full(OnnxNode *n, int rank, const Dim *dim, double v, EtcDtype t)
{
    if (t == ETC_BOOL)
        return ON_BUILD(n, OP_FULL, "Dbt", rank, dim, v != 0, t);
    return dtype_is_float(t) ? ON_BUILD(n, OP_FULL, "Dft", rank, dim, v, t)
                             : ON_BUILD(n, OP_FULL, "Dit", rank, dim, (int64_t)v, t);
}

Value *on_number(OnnxNode *n, double v, EtcDtype t)
{
    return on_full(n, 0, NULL, v, t);
}

Value *on_arange(OnnxNode *n, Dim from, Dim to)
{
    return ON_BUILD(n, OP_ARANGE_START_STEP, "ddit", from, to, (int64_t)1, ETC_I64);
}

Value *on_part(OnnxNode *n, Value *x, int axis, Dim from, Dim to, int64_t step)
{
    assert(axis >= 0 && step != 0);
    return x ? ON_BUILD(n, OP_SLICE, "viddi", x, (int64_t)axis, from, to, step) : NULL;
}

Value *on_permute(OnnxNode *n, Value *x, const int64_t *order)
{
    return x ? ON_BUILD(n, OP_PERMUTE, "vI", x, x->type.rank, order) : NULL;
}

Value *on_cat(OnnxNode *n, Value *a, Value *b, int axis)
{
    Value *part[2] = {a, b};
    assert(axis >= 0);
    return a && b ? ON_BUILD(n, OP_CAT, "Vi", 2, part, (int64_t)axis) : NULL;
}

Value *on_sum(OnnxNode *n, OpId op, Value *x, int axis, bool keeps)
{
    int64_t dim = axis;
    if (!x)
        return NULL;
    if (op == OP_AMAX || op == OP_AMIN)
        return ON_BUILD(n, op, "vIb", x, 1, &dim, (int)keeps);
    return ON_BUILD(n, op, "vIbt", x, 1, &dim, (int)keeps, x->type.dtype);
}

Value *on_any(OnnxNode *n, Value *x, int axis)
{
    Value *most = on_sum(n, OP_AMAX, on_cast(n, x, ETC_I32), axis, true);
    return on_scalar(n, OP_NE_SCALAR, most, 0);
}

Value *on_insert(OnnxNode *n, Value *x, int axis)
{
    Dim dim[MAX_RANK + 1];
    if (!x)
        return NULL;
    assert(axis >= 0 && axis <= x->type.rank);
    if (x->type.rank == MAX_RANK) {
        onnx_unsupported(n, "has a tensor of more than 16 axes");
        return NULL;
    }
    for (int i = 0; i <= x->type.rank; i++)
        dim[i] = i == axis ? DIM(1) : x->type.dim[i - (i > axis)];
    return on_view(n, x, x->type.rank + 1, dim);
}

Value *on_floats(OnnxNode *n, int rank, const Dim *dim, const float *v)
{
    OnnxConst *c = NEW(n->in->tmp, OnnxConst, 1);
    c->type = type_tensor(n->in->program, ETC_F32, rank, dim);
    c->n_bytes = type_bytes(c->type);
    c->data = (const uint8_t *)v;
    return onnx_const_value(n->in, "table", c);
}

float *on_table_of(OnnxNode *n, int64_t height, int64_t width)
{
    enum { MOST = 1 << 24 };
    if (height < 0 || width < 0 || (height && width > MOST / height)) {
        onnx_unsupported(n, "takes a table of more than 16,777,216 numbers");
        return NULL;
    }
    size_t bytes = (size_t)(height * width) * sizeof(float);
    float *m = arena_bytes(n->in->program->arena, bytes + 1);
    memset(m, 0, bytes);
    return m;
}

/* Multiplies along an axis, which becomes the last axis for the product. */
Value *on_matrix(OnnxNode *n, Value *x, int axis, int64_t height, const float *m)
{
    int64_t swap[MAX_RANK];
    if (!x || !m)
        return NULL;
    assert(axis >= 0 && axis < x->type.rank);
    int last = x->type.rank - 1;
    Dim dim[2] = {DIM(height), x->type.dim[axis]};
    for (int i = 0; i <= last; i++)
        swap[i] = i == axis ? last : i == last ? axis : i;
    Value *w = on_cast(n, on_floats(n, 2, dim, m), x->type.dtype);
    Value *y = axis == last ? x : on_permute(n, x, swap);
    y = on_binary(n, OP_LINEAR, y, w);
    return axis == last ? y : on_permute(n, y, swap);
}
