/* pt2_cast.c -- nodes whose operands torch casts when a model runs, so that the graph has no casts:
 * under autocast, and norms of halves with weights of floats. */
#include "compiler/import/internal.h"
#include <string.h>

/* Returns the name of a node's first result and sets its type; NULL: the node is refused. */
const char *pt2_first_result(Scope *s, Loc loc, const Json *outputs, Type *t)
{
    Pt2 *p = s->in;
    const Json *content = NULL;
    JsonIter it = json_iter(outputs);
    const char *tag = json_next(&it) ? json_tag(it.value, &content) : NULL;
    const char *text = tag && !strcmp(tag, "as_tensor") ? json_string(json_get(content, "name"))
                                                        : NULL;
    Name *name = text ? pt2_name(s, loc, text) : NULL;
    if (!name || !name->meta) {
        diag_unsupported(p->diag, loc, "a result that is not a tensor");
        return NULL;
    }
    return pt2_type(p, loc, text, name->meta, t) ? text : NULL;
}

/* -- autocast -------------------------------------------------------------------------------- */

/* Returns whether one of the stems is the operator's name without overload and the '_' of those
 * that write. */
bool pt2_has_stem(const char *op, const char *const *stem, size_t n_stems)
{
    size_t n = strncmp(op, "aten.", 5) ? 0 : strcspn(op + 5, ".");
    n -= n && op[5 + n - 1] == '_';
    for (size_t i = 0; n && i < n_stems; i++)
        if (strlen(stem[i]) == n && !strncmp(op + 5, stem[i], n))
            return true;
    return false;
}

/* Returns whether torch's autocast casts the float operands of a node, and sets *to.  Products are
 * computed in halves; some other operators compute halves in f32.  This follows from the dtype of
 * the recorded result, except for view.dtype and for complex results. */
bool pt2_autocasts(Scope *s, Loc loc, const Json *outputs, EtcDtype *to)
{
    static const char *const product[] = {
        "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
        "convolution", "_convolution", "conv_tbc", "linear", "matmul", "mm", "bmm", "addmm",
        "addbmm", "baddbmm", "mv", "addmv", "einsum", "tensordot", "inner", "chain_matmul",
        "linalg_matmul", "linalg_multi_dot", "linalg_vecdot", "scaled_dot_product_attention",
        "lstm", "gru", "rnn_tanh", "rnn_relu"};
    const Json *content = NULL;
    JsonIter it = json_iter(outputs);
    const char *tag = json_next(&it) ? json_tag(it.value, &content) : NULL;
    const char *text = tag && !strcmp(tag, "as_tensor") ? json_string(json_get(content, "name"))
                                                        : NULL;
    const Name *name = text ? table_find_text(&s->names, text) : NULL;
    if (!name || !name->meta || !strcmp(loc.op, "aten.view.dtype") ||
        !pt2_dtype(s->in, loc, text, json_get(name->meta, "dtype"), to))
        return false;
    if (*to == ETC_C64)
        *to = ETC_F32;
    return *to == ETC_F32 ||
           (dtype_is_half(*to) && pt2_has_stem(loc.op, product, sizeof product / sizeof *product));
}

/* Casts an operand as autocast does: f32 to a half, or halves to f32. */
Value *pt2_cast_operand(Scope *s, Loc loc, Value *v)
{
    EtcDtype from = v->type.dtype, to = s->operands;
    if (from == to || !(dtype_is_half(from) || (from == ETC_F32 && to != ETC_F32)))
        return v;
    Node *n = build(s->graph, NULL, loc, OP__TO_COPY, s->in->diag, "vt", v, to);
    return n ? n->out[0] : NULL;
}

/* -- norms of halves, with weights of floats ------------------------------------------------- */

bool pt2_is_mixed_norm(const Node *n)
{
    bool has_half = false, has_float = false;
    for (int i = 0; i < n->n_in; i++) {
        has_half = has_half || dtype_is_half(n->in[i]->type.dtype);
        has_float = has_float || n->in[i]->type.dtype == ETC_F32;
    }
    return has_half && has_float &&
           (n->op == OP_LAYER_NORM || n->op == OP_GROUP_NORM || n->op == OP_BATCH_NORM);
}

/* Computes a norm of halves in f32 and rounds the result, as torch does. */
bool pt2_mixed_norm(Scope *s, Node *n, const Json *outputs)
{
    Pt2 *p = s->in;
    Type t;
    const char *text = pt2_first_result(s, n->loc, outputs, &t);
    for (int i = 0; text && i < n->n_in; i++) {
        if (!dtype_is_half(n->in[i]->type.dtype))
            continue;
        Node *cast = build(s->graph, NULL, n->loc, OP__TO_COPY, p->diag, "vt", n->in[i], ETC_F32);
        if (!cast)
            return false;
        n->in[i] = cast->out[0];
    }
    if (!text)
        return false;
    const char *wide = arena_printf(p->program->arena, "%s.wide", pt2_value_name(s, text));
    node_add_out(n, wide, type_tensor(p->program, ETC_F32, t.rank, t.dim));
    if (!schema_check(n, p->diag))
        return false;
    graph_append(s->graph, n);
    n = build(s->graph, NULL, n->loc, OP__TO_COPY, p->diag, "vt", n->out[0], t.dtype);
    return n && pt2_define(s, n->loc, text, n->out[0]);
}
