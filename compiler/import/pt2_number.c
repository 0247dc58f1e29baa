/* pt2_number.c -- numbers that are inputs or outputs of a model, or are computed in it at run time.
 *
 * A symbolic int or float input is a tensor of rank 0; the symbol is the element of the int.
 * Inputs whose value the export fixed stay inputs that nobody reads.  A symbolic int is an
 * expression; a symbolic float is computed by nodes on tensors of rank 0 and dtype f64. */
#include "compiler/import/internal.h"
#include <string.h>

static Value *named_input(Scope *s, const char *text, Type type)
{
    Value *v = graph_value(s->graph, pt2_value_name(s, text), type);
    graph_add_input(s->graph, v);
    return v;
}

/* -- inputs ---------------------------------------------------------------------------------- */

static bool symbolic_input(Scope *s, const Json *argument, EtcDtype dtype)
{
    Pt2 *p = s->in;
    const char *text = json_string(json_get(argument, "as_name"));
    Name *n = text ? pt2_name(s, p->loc, text) : NULL;
    Dim d;
    if (!n)
        return text ? false : pt2_malformed(p, argument, "as_name", "a string");
    if (n->value || n->meta)
        return diag_error(p->diag, p->loc, "the input '%s' is defined twice", text);
    Value *v = named_input(s, text, type_tensor(p->program, dtype, 0, NULL));
    if (dtype == ETC_F64) {
        n->value = v;
        return true;
    }
    Loc loc = {.file = p->loc.file, .node = v->name};
    Node *item = build(s->graph, NULL, loc, OP_LOCAL_SCALAR_DENSE, p->diag, "v", v);
    if (!item || !n->sym_int || !pt2_dim(p, p->loc, n->sym_int, &d))
        return false;
    item->out[0]->type = type_size(p->program, d);
    n->value = item->out[0];
    return true;
}

/* Reads a literal of a union: as_int, as_float, as_bool and so on. */
static bool literal(Pt2 *p, const char *tag, const Json *content, Arg *out)
{
    *out = (Arg){.kind = ARG_NONE};
    if (!strcmp(tag, "as_none"))
        return true;
    out->kind = ARG_INT;
    if (!strcmp(tag, "as_int"))
        return json_int(content, &out->dim.value);
    out->kind = ARG_BOOL;
    if (!strcmp(tag, "as_bool"))
        return json_bool(content, &out->b);
    out->kind = ARG_FLOAT;
    if (!strcmp(tag, "as_float"))
        return json_float(content, &out->f);
    const char *text = !strcmp(tag, "as_string") ? json_string(content) : NULL;
    out->kind = ARG_STRING;
    out->str = text ? arena_str(p->program->arena, text, strlen(text)) : NULL;
    return text != NULL;
}

static Type literal_type(Pt2 *p, const Arg *a)
{
    if (a->kind == ARG_INT)
        return type_size(p->program, a->dim);
    if (a->kind == ARG_NONE || a->kind == ARG_STRING)
        return TYPE_NONE;
    return (Type){.dtype = a->kind == ARG_BOOL ? ETC_BOOL : ETC_F64, .rank = SCALAR};
}

bool pt2_constant_input(Scope *s, const char *text, const char *tag, const Json *content)
{
    Pt2 *p = s->in;
    Arg a;
    if (!literal(p, tag, content, &a))
        return diag_unsupported(p->diag, p->loc,
                                "the input '%.60s' is neither a tensor nor a plain value", text);
    if (!pt2_is_name(text))
        return diag_error(p->diag, p->loc, "'%.40s' is not a name for a value", text);
    Value *v = named_input(s, text, literal_type(p, &a));
    Arg *copy = NEW(p->program->arena, Arg, 1);
    *copy = a;
    v->literal = copy;
    return true;
}

bool pt2_number_input(Scope *s, const char *tag, const Json *content, int number)
{
    if (!strcmp(tag, "as_sym_int"))
        return symbolic_input(s, content, ETC_I64);
    if (!strcmp(tag, "as_sym_float"))
        return symbolic_input(s, content, ETC_F64);
    return pt2_constant_input(s, arena_printf(s->in->tmp, "input_%d", number), tag, content);
}

/* -- floats ------------------------------------------------------------------------------------ */

/* Returns a symbolic float as a tensor of rank 0. */
static Value *float_value(Scope *s, Loc loc, const Json *argument)
{
    const char *text = json_string(json_get(argument, "as_name"));
    Name *n = text ? pt2_name(s, loc, text) : NULL;
    if (!text)
        pt2_malformed(s->in, argument, "as_name", "a string");
    if (!n || n->is_broken)
        return NULL;
    if (!n->value)
        diag_error(s->in->diag, loc, "the value '%s' is used before it is defined", text);
    return n->value;
}

Value *pt2_float_tensor(Scope *s, Loc loc, const Json *argument, Type other)
{
    Value *v = float_value(s, loc, argument);
    EtcDtype want = dtype_is_float(other.dtype) ? other.dtype : ETC_F32;
    if (want != ETC_F64 && want != ETC_F32 && other.rank > 0)
        want = ETC_F32; /* with rank 0 it does not change the dtype of the result */
    if (!v || v->type.dtype == want)
        return v;
    Node *n = build(s->graph, NULL, loc, OP__TO_COPY, s->in->diag, "vt", v, want);
    return n ? n->out[0] : NULL;
}

Value *pt2_float_number(Scope *s, Loc loc, const Json *argument)
{
    Value *v = float_value(s, loc, argument);
    Node *n = v ? build(s->graph, NULL, loc, OP_LOCAL_SCALAR_DENSE, s->in->diag, "v", v) : NULL;
    return n ? n->out[0] : NULL;
}

/* Returns the value of item(), the one element of a tensor. */
static Value *element(Scope *s, Loc loc, const Json *tensor)
{
    Diag *d = s->in->diag;
    Value *v = pt2_use(s, loc, tensor);
    Node *n = v ? build(s->graph, NULL, loc, OP__TO_COPY, d, "vt", v, ETC_F64) : NULL;
    n = n ? build(s->graph, NULL, loc, OP_VIEW, d, "vD", n->out[0], 0, NULL) : NULL;
    return n ? n->out[0] : NULL;
}

static Value *float_operand(Scope *s, Loc loc, const Json *arg)
{
    const Json *content = NULL;
    const char *tag = json_tag(arg, &content);
    Arg number, none = {.kind = ARG_LIST};
    if (tag && !strcmp(tag, "as_sym_float") && json_get(content, "as_name"))
        return float_value(s, loc, content);
    if (tag && !strcmp(tag, "as_tensor"))
        return element(s, loc, content);
    if (!tag || !pt2_number_literal(s, loc, tag, content, &number)) {
        diag_unsupported(s->in->diag, loc, "its operand is not a number");
        return NULL;
    }
    Node *n = build(s->graph, NULL, loc, OP_FULL, s->in->diag, "aat", none, number, ETC_F64);
    return n ? n->out[0] : NULL;
}

static const struct {
    const char *target;
    OpId op; /* OP_NONE: the operand itself */
    int n_args;
} float_row[] = {
    {"aten.item.default", OP_NONE, 1},       {"aten._local_scalar_dense.default", OP_NONE, 1},
    {"torch.sym_float", OP_NONE, 1},         {"_operator.add", OP_ADD_TENSOR, 2},
    {"_operator.sub", OP_SUB_TENSOR, 2},     {"_operator.mul", OP_MUL_TENSOR, 2},
    {"_operator.truediv", OP_DIV_TENSOR, 2}, {"_operator.neg", OP_NEG, 1},
    {"_operator.pow", OP_POW_TENSOR_SCALAR, 2}, {"math.sqrt", OP_SQRT, 1},
    {"torch.sym_sqrt", OP_SQRT, 1},          {"torch._sym_sqrt", OP_SQRT, 1},
};

static Value *power(Scope *s, Loc loc, Value *base, const Json *exponent)
{
    const Json *content = NULL;
    const char *tag = json_tag(exponent, &content);
    Arg a;
    if (!tag || !pt2_number_literal(s, loc, tag, content, &a) ||
        (a.kind == ARG_INT && a.dim.expr)) {
        diag_unsupported(s->in->diag, loc, "its exponent is not a plain number");
        return NULL;
    }
    Node *n = build(s->graph, NULL, loc, OP_POW_TENSOR_SCALAR, s->in->diag, "va", base, a);
    return n ? n->out[0] : NULL;
}

static Value *apply(Scope *s, Loc loc, int row, const Json *const arg[2])
{
    OpId op = float_row[row].op;
    Value *a = float_operand(s, loc, arg[0]), *b = NULL;
    if (!a || op == OP_NONE)
        return a;
    if (op == OP_POW_TENSOR_SCALAR)
        return power(s, loc, a, arg[1]);
    if (float_row[row].n_args == 2 && !(b = float_operand(s, loc, arg[1])))
        return NULL;
    Node *n = b ? build(s->graph, NULL, loc, op, s->in->diag, "vv", a, b)
                : build(s->graph, NULL, loc, op, s->in->diag, "v", a);
    return n ? n->out[0] : NULL;
}

bool pt2_float_node(Scope *s, Loc loc, const char *target, const Json *inputs, Name *result)
{
    const Json *arg[2] = {NULL};
    int row = 0, n = 0, n_rows = sizeof float_row / sizeof *float_row;
    while (row < n_rows && strcmp(float_row[row].target, target) != 0)
        row++;
    for (JsonIter it = json_iter(inputs); json_next(&it) && n < 2;)
        arg[n++] = json_get(it.value, "arg");
    result->is_broken = true;
    if (row == n_rows || n != float_row[row].n_args || json_count(inputs) != n)
        return diag_unsupported(s->in->diag, loc,
                                "computes a float that is known only at run time");
    if (result->value)
        return diag_error(s->in->diag, loc, "the value '%s' is defined twice", result->text);
    result->value = apply(s, loc, row, arg);
    result->is_broken = !result->value;
    return result->value != NULL;
}

/* -- outputs ----------------------------------------------------------------------------------- */

/* Reads a plain number or a symbolic int as an argument. */
bool pt2_number_literal(Scope *s, Loc loc, const char *tag, const Json *content, Arg *out)
{
    Pt2 *p = s->in;
    const Json *inner = NULL;
    if (strcmp(tag, "as_sym_int") != 0 && strcmp(tag, "as_sym_float") != 0 &&
        strcmp(tag, "as_sym_bool") != 0)
        return literal(p, tag, content, out) && out->kind != ARG_STRING;
    const char *kind = json_tag(content, &inner), *text = json_string(inner);
    if (kind && strcmp(kind, "as_name") != 0)
        return literal(p, kind, inner, out) && out->kind != ARG_STRING;
    Name *n = text ? pt2_name(s, loc, text) : NULL;
    *out = (Arg){.kind = ARG_INT};
    return n && n->sym_int && pt2_dim(p, loc, n->sym_int, &out->dim);
}

bool pt2_number_output(Scope *s, const char *tag, const Json *content, int number)
{
    Pt2 *p = s->in;
    Arg a;
    Node *n = NULL;
    Loc loc = {.file = p->loc.file, .node = arena_printf(p->program->arena, "output_%d.", number)};
    int errors = diag_errors(p->diag);
    if (!strcmp(tag, "as_sym_float") && json_get(content, "as_name")) {
        Value *v = pt2_float_number(s, p->loc, content);
        n = v ? v->def : NULL;
    } else if (pt2_number_literal(s, p->loc, tag, content, &a)) {
        n = build(s->graph, NULL, loc, OP_CONSTANT, p->diag, "a", a);
    }
    if (!n)
        return diag_errors(p->diag) != errors
                   ? false
                   : diag_unsupported(p->diag, p->loc,
                                      "output %d of the model is not a tensor but %s", number, tag);
    graph_add_output(s->graph, n->out[0]);
    return true;
}

/* -- as operands of operators that take numbers ----------------------------------------------- */

/* Returns the argument that is a symbolic float, or NULL. */
const Json *pt2_symbolic_float(const Json *inputs)
{
    for (JsonIter it = json_iter(inputs); json_next(&it);) {
        const Json *content = NULL;
        const char *tag = json_tag(json_get(it.value, "arg"), &content);
        if (tag && !strcmp(tag, "as_sym_float") && json_get(content, "as_name"))
            return content;
    }
    return NULL;
}

/* Returns the overload that takes tensors in the place of numbers, because a symbolic float is a
 * tensor. */
OpId pt2_with_tensors(Arena *tmp, OpId op)
{
    static const OpId odd[][2] = {{OP_CLAMP, OP_CLAMP_TENSOR},
                                  {OP_CLAMP_MIN, OP_CLAMP_MIN_TENSOR},
                                  {OP_CLAMP_MAX, OP_CLAMP_MAX_TENSOR},
                                  {OP_POW_SCALAR, OP_POW_TENSOR_TENSOR},
                                  {OP_POW_TENSOR_SCALAR, OP_POW_TENSOR_TENSOR},
                                  {OP_WHERE_SCALAROTHER, OP_WHERE_SELF},
                                  {OP_WHERE_SCALARSELF, OP_WHERE_SELF}};
    static const char scalar[] = "Scalar";
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (op == odd[i][0])
            return odd[i][1];
    const char *target = op_target(op);
    size_t n = strlen(target) - strlen(scalar);
    OpId twin = strlen(target) > strlen(scalar) && !strcmp(target + n, scalar)
                    ? op_find(arena_printf(tmp, "%.*sTensor", (int)n, target))
                    : OP_NONE;
    return twin == OP_NONE ? op : twin;
}

/* Sets the end of an arange of integers whose start, end or step has a fraction, such that it has
 * as many elements as in torch.  Torch counts them before it drops the fractions of start and step.
 */
static void whole_end(Node *n)
{
    int64_t start = 0, step = 1, count = n->out[0]->type.dim[0].value;
    int at = arg_find(n, "end"), from = arg_find(n, "start"), by = arg_find(n, "step");
    if (at >= 0 && (from < 0 || arg_int(n, from, &start)) && (by < 0 || arg_int(n, by, &step)))
        node_set_arg(n, at, (Arg){.kind = ARG_INT,
                                  .dim = DIM((int64_t)((uint64_t)start + (uint64_t)count * (uint64_t)step))});
}

/* Rounds the numbers beside a tensor of halves to halves, where torch does so before it computes. */
static void half_numbers(Node *n)
{
    static const char *const rounded[] = {"remainder", "fmod", "pow", "add", "sub", "rsub",
                                          "eq",        "ne",   "lt",  "le",  "gt",  "ge"};
    EtcDtype t = n->n_in ? n->in[0]->type.dtype : ETC_F32;
    if (!dtype_is_half(t) || !pt2_has_stem(n->loc.op, rounded, sizeof rounded / sizeof *rounded))
        return;
    for (int i = 0; i < n->n_args; i++)
        if (n->arg[i].kind == ARG_FLOAT) {
            float v = (float)n->arg[i].f;
            v = (float)(t == ETC_F16 ? half_value(half_of(v)) : bfloat_value(bfloat_of(v)));
            node_set_arg(n, i, (Arg){.kind = ARG_FLOAT, .f = (double)v});
        }
}

void pt2_torch_numbers(Node *n)
{
    const Schema *schema = node_schema(n);
    EtcDtype t = n->n_out ? n->out[0]->type.dtype : ETC_F32;
    bool is_bytes = n->n_in && n->in[0]->type.dtype == ETC_U8 && t == ETC_U8, was_cut = false;
    bool is_made = !n->n_in && dtype_is_int(t) &&
                   (t == ETC_I64 || (n->out[0]->type.rank == 1 && !n->out[0]->type.dim[0].expr));
    double most = t == ETC_I64 ? 9e18 : 4e9;
    for (int i = 0; i < schema->n_args; i++) {
        const Arg *a = &n->arg[i];
        int64_t v;
        bool is_cut = is_made && a->kind == ARG_FLOAT && a->f > -most && a->f < most;
        bool is_negative = is_bytes && arg_int(n, i, &v) && v < 0;
        if (schema->arg[i].type != SCH_SCALAR || !(is_cut || is_negative))
            continue;
        node_set_arg(n, i, (Arg){.kind = ARG_INT, .dim = DIM(is_cut ? (int64_t)a->f : v & 255)});
        was_cut = was_cut || is_cut;
    }
    if (was_cut && t != ETC_I64)
        whole_end(n);
    half_numbers(n);
}

void pt2_torch_sizes(Program *p, Node *n)
{
    int64_t dim;
    int rank = n->n_in ? n->in[0]->type.rank : 0;
    if (n->op != OP_UNIQUE_CONSECUTIVE || n->n_out != 3 || rank < 1 ||
        !arg_int(n, arg_of(n, "dim"), &dim) || dim != -1 || n->out[0]->type.rank != 2 * rank)
        return;
    const Dim *recorded = n->out[0]->type.dim;
    n->out[0]->type = type_tensor(p, n->out[0]->type.dtype, rank, recorded);
    n->out[2]->type = type_tensor(p, ETC_I64, 1, &recorded[rank - 1]);
}

bool pt2_fills(OpId op)
{
    return op == OP_FULL || op == OP_FULL_LIKE || op == OP_NEW_FULL || op == OP_SCALAR_TENSOR;
}

/* Makes a tensor of the recorded type whose elements are a symbolic float. */
bool pt2_filled(Scope *s, Loc loc, const Json *number, const Json *outputs)
{
    Pt2 *p = s->in;
    Type t;
    const char *text = pt2_first_result(s, loc, outputs, &t);
    Value *v = text ? pt2_float_tensor(s, loc, number, t) : NULL;
    Node *n = v ? build(s->graph, NULL, loc, OP__TO_COPY, p->diag, "vt", v, t.dtype) : NULL;
    n = n ? build(s->graph, NULL, loc, OP_EXPAND, p->diag, "vD", n->out[0], t.rank, t.dim) : NULL;
    return n && pt2_define(s, loc, text, n->out[0]);
}
