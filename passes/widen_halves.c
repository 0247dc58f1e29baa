/* widen_halves.c -- computes with f16 and bf16 as torch's CPU kernels do: in f32, with the result
 * rounded.  Nodes that only move elements keep halves.
 *
 * Stage core, after partition, because backends may compute with halves.  A half that several
 * nodes read is converted to f32 once.  Composite operators with the flag WIDENS are widened by
 * pass decompose, so that the nodes they consist of do not round in between. */
#include "passes/internal.h"

static bool keeps_halves(const Node *n)
{
    if (node_moves(n) || node_keeps_bytes(n) || op_has_regions(n->op) || n->custom)
        return true;
    switch ((int)n->op) {
    case OP__TO_COPY:
    case OP_EMBEDDING:
    case OP_FULL:
    case OP_INDEX_SELECT:
    case OP_PACKED_LINEAR: /* takes weights of halves */
        return true;
    default:
        return false;
    }
}

static Value *widened(Rewrite *r, Node *n, Value *v, Value **wide)
{
    if (!dtype_is_half(v->type.dtype) || v->type.rank == SCALAR)
        return v;
    if (!wide)
        return build_cast(r, n, v, ETC_F32);
    if (!wide[v->index])
        wide[v->index] = build_cast(r, n, v, ETC_F32);
    return wide[v->index];
}

/* Adds a result in f32 to `made`.  Rounded, it takes the place of n's result i. */
static bool round_result(Rewrite *r, Node *n, int i, Node *made)
{
    Type t = n->out[i]->type;
    const EtcDtype dtype = t.dtype;
    t.dtype = dtype_is_half(dtype) ? ETC_F32 : dtype;
    Value *v = node_add_out(made, n->out[i]->name, t);
    if (t.dtype != dtype) {
        v->name = arena_numbered(r->g->program->arena, v->name, ".", graph_number(r->g));
        v = build_cast(r, n, v, dtype);
        if (!v)
            return false;
    }
    rewrite_result(r, n, i, v);
    return true;
}

static Arg widened_arg(Node *made, const Node *n, Arg a)
{
    if (a.kind == ARG_DTYPE && dtype_is_half(a.dtype))
        a.dtype = ETC_F32;
    return arg_moved(made, n, a);
}

bool node_has_halves(const Node *n)
{
    for (int i = 0; i < n->n_in + n->n_out; i++)
        if (dtype_is_half((i < n->n_in ? n->in[i] : n->out[i - n->n_in])->type.dtype))
            return true;
    return false;
}

bool rewrite_widened(Rewrite *r, Node *n, Value **wide)
{
    Node *made = node_like(r->g, n);
    bool ok = true;
    for (int i = 0; i < n->n_args; i++)
        node_push(made, widened_arg(made, n, n->arg[i]));
    for (int i = 0; ok && i < made->n_in; i++) {
        Value *v = widened(r, n, made->in[i], wide);
        if ((ok = v != NULL))
            node_set_in(made, i, v);
    }
    graph_insert(r->g, n, made);
    for (int i = 0; ok && i < n->n_out; i++)
        ok = round_result(r, n, i, made);
    graph_remove(r->g, n);
    return ok;
}

bool pass_widen_halves(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    bool ok = true;
    int room = g->n_values;
    for (const Node *n = g->first; n; n = n->next)
        room += n->n_in + (2 * n->n_out);
    Value **wide = NEW(tmp, Value *, room); /* by index */
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        ok = (keeps_halves(n) || !node_has_halves(n) || rewrite_widened(&r, n, wide)) && ok;
    }
    rewrite_finish(&r);
    return ok;
}
