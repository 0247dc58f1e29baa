/* onnx_input.c -- inputs and constants of an ONNX file: their types, and sizes that the file leaves open,
 * which --dim and --bind may give. */
#include "compiler/import/onnx.h"
#include <string.h>

/* Adds a name to the scope. */
static OnnxValue *define(Onnx *o, OnnxScope *s, Loc loc, const char *name)
{
    TableItem *at = table_at_text(&s->values, name);
    if (at->ptr) {
        diag_error(o->diag, loc, "'%s' is defined twice", name);
        return NULL;
    }
    return at->ptr = NEW(o->tmp, OnnxValue, 1);
}

/* Returns the --dim of a size, or NULL. */
static ImportDim *given_size(const Onnx *o, const char *name)
{
    for (int i = 0; o->options && i < o->options->n_dims; i++)
        if (!strcmp(o->options->dim[i].name, name))
            return &o->options->dim[i];
    return NULL;
}

/* The same; the name may also be spelled as messages spell it. */
static ImportDim *named_range(const Onnx *o, const char *name)
{
    ImportDim *given = given_size(o, name);
    return given ? given : given_size(o, onnx_name(o->tmp, name));
}

Dim onnx_symbol(Onnx *o, const char *name, int64_t lo, int64_t hi)
{
    Symbol *s = program_symbol(o->program, NULL, lo, hi);
    s->name = onnx_unique(o, name);
    return dim_symbol(o->program, s);
}

/* Returns the size of an axis whose size the file does not fix: the number of --dim, or a symbol.
 * Sizes of one name are one symbol.  A size without a name, or with the name "?" that Paddle's
 * exporter gives to all sizes that it does not know, has a name made of the input and the axis. */
static Dim open_size(Onnx *o, const char *input, int axis, const char *param)
{
    bool is_named = param && *param && strcmp(param, "?") != 0;
    const char *key = is_named ? param : arena_numbered(o->tmp, input, ".", axis);
    ImportDim *given = given_size(o, arena_numbered(o->tmp, input, ".", axis));
    given = given ? given : named_range(o, key);
    if (given)
        given->is_taken = true;
    if (given && given->lo == given->hi)
        return DIM(given->lo);
    TableItem *known = table_at_text(&o->sizes, key);
    if (!known->ptr) {
        Dim *d = known->ptr = NEW(o->tmp, Dim, 1);
        *d = onnx_symbol(o, key, given ? given->lo : 1, given ? given->hi : INT64_MAX);
    }
    return *(const Dim *)known->ptr;
}

static bool is_integer(Type t)
{
    return dtype_is_int(t.dtype) && (!t.rank || (t.rank == 1 && !t.dim[0].expr && t.dim[0].value == 1));
}

bool onnx_element(Onnx *o, Loc loc, const char *name, OnnxValue *v)
{
    const Type t = v->value->type;
    ImportDim *given = is_integer(t) ? named_range(o, name) : NULL;
    if (!given)
        return true;
    given->is_taken = true;
    Node *item = build(o->graph, NULL, loc, OP_LOCAL_SCALAR_DENSE, o->diag, "v", v->value);
    if (!item)
        return false;
    Dim *d = NEW(o->tmp, Dim, 1);
    *d = onnx_symbol(o, name, given->lo, given->hi);
    item->out[0]->type = type_size(o->program, *d);
    OnnxList *l = NEW(o->tmp, OnnxList, 1);
    *l = (OnnxList){.dtype = t.dtype, .rank = t.rank, .n = 1, .dim = d};
    v->list = l;
    return true;
}

static bool input_type(Onnx *o, Loc loc, const Onnx__ValueInfo *in, const char *name, Type *out)
{
    const Onnx__TensorType *t = in->type ? in->type->tensor_type : NULL;
    Dim dim[MAX_RANK];
    EtcDtype dtype;
    enum { STRINGS = 8 };
    if (!t)
        return diag_unsupported(o->diag, loc,
                                "is not a tensor: sequences, optionals and maps are not read, "
                                "export the model with tensors as inputs");
    if (t->elem_type == STRINGS)
        return diag_unsupported(o->diag, loc, "has strings, which are prepared before the model: cut "
                                              "this part off");
    if (!onnx_dtype(t->elem_type, &dtype))
        return diag_unsupported(o->diag, loc, "has ONNX's element type %d", t->elem_type);
    if (!t->shape || t->shape->n_dim > MAX_RANK)
        return diag_unsupported(o->diag, loc, t->shape ? "has more than 16 axes"
                                               : "has no rank: export the model with shapes of inputs");
    for (int i = 0; i < (int)t->shape->n_dim; i++) {
        const Onnx__Dimension *d = t->shape->dim[i];
        const char *param = d->has_param ? onnx_text(o, d->param) : "";
        if (!param)
            return false;
        bool is_known = d->has_value && d->value >= 0 &&
                        !given_size(o, arena_numbered(o->tmp, name, ".", i));
        dim[i] = is_known ? DIM(d->value) : open_size(o, name, i, param);
    }
    *out = type_tensor(o->program, dtype, (int)t->shape->n_dim, dim);
    return (type_is_static(*out) ? type_bytes(*out) < INT64_MAX : true) ||
           diag_error(o->diag, loc, "its sizes overflow");
}

/* Makes the constant of an input that --bind sets.  NULL: an error was reported. */
static OnnxConst *bound(Onnx *o, Loc loc, ImportBind *b, Type type)
{
    OnnxConst *c = NEW(o->tmp, OnnxConst, 1);
    EtcDtype t = type.dtype;
    Dim dim[MAX_RANK];
    b->is_taken = true;
    if (b->tensor && (b->tensor->dtype != t || b->tensor->rank > MAX_RANK)) {
        diag_error(o->diag, loc, "is bound to %s, expected %s", dtype_name((EtcDtype)b->tensor->dtype),
                   dtype_name(t));
        return NULL;
    }
    for (int i = 0; i < (b->tensor ? b->tensor->rank : type.rank); i++)
        dim[i] = DIM(b->tensor ? b->tensor->dim[i] : 1);
    c->type = type_tensor(o->program, t, b->tensor ? b->tensor->rank : type.rank, dim);
    c->n_bytes = type_bytes(c->type);
    if (b->tensor) {
        c->data = b->tensor->data;
        return c;
    }
    uint8_t *data = arena_bytes(o->program->arena, sizeof(double));
    int64_t whole = (int64_t)b->number;
    float narrow = (float)b->number;
    memcpy(data, t == ETC_F32 ? (const void *)&narrow : t == ETC_F64 ? (const void *)&b->number
                                                                     : (const void *)&whole,
           etc_dtype_size((int)t));
    c->data = data;
    if (dtype_is_float(t) && t != ETC_F32 && t != ETC_F64) {
        diag_unsupported(o->diag, loc, "is bound to a number of %s: give a file", dtype_name(t));
        return NULL;
    }
    return c;
}

bool onnx_input(Onnx *o, OnnxScope *s, const Onnx__ValueInfo *in)
{
    const char *name = onnx_text(o, in->name);
    Type type;
    if (!name)
        return false;
    Loc loc = {.file = o->loc.file, .node = onnx_name(o->program->arena, name)};
    if (onnx_find(s, name)) /* it is an initializer, a default that nothing overrides */
        return true;
    if (!input_type(o, loc, in, name, &type))
        return false;
    OnnxValue *v = define(o, s, loc, name);
    if (!v)
        return false;
    for (int i = 0; o->options && i < o->options->n_binds; i++)
        if (!strcmp(o->options->bind[i].name, name))
            return (v->constant = bound(o, loc, &o->options->bind[i], type)) != NULL;
    v->bits = onnx_bits(in->type->tensor_type->elem_type);
    v->value = graph_value(o->graph, onnx_unique(o, name), type);
    graph_add_input(o->graph, v->value);
    return onnx_element(o, loc, name, v);
}

bool onnx_initializer(Onnx *o, OnnxScope *s, const Onnx__Tensor *t)
{
    const char *name = onnx_text(o, t->name);
    if (!name)
        return false;
    Loc loc = {.file = o->loc.file, .node = onnx_name(o->program->arena, name)};
    OnnxValue *v = define(o, s, loc, name);
    return v && (v->constant = onnx_const(o, loc, t)) != NULL;
}

void onnx_advise_sizes(const Onnx *o)
{
    const char *flags = "", *ranges = "";
    const Program *p = o->program;
    const Graph *g = p->method[0];
    for (int i = 0; i < g->n_in; i++)
        if (is_integer(g->in[i]->type))
            ranges = arena_printf(o->tmp, "%s --dim %s=LO..HI", ranges, g->in[i]->name);
    if (*ranges)
        diag_note(o->diag, "if the values of inputs decide sizes, give their ranges:%s", ranges);
    for (int i = 0; i < p->n_syms; i++)
        if (*program_axis(p, p->sym[i])) /* it is the size of an input */
            flags = arena_printf(o->tmp, "%s --dim %s=N", flags, p->sym[i]->name);
    if (*flags)
        diag_note(o->diag, "sizes are dynamic; fixing them may help:%s", flags);
}
