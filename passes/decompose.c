/* decompose.c -- rewrites composite operators into the closed set of core.
 *
 * Stage aten, after functionalize; leaves core.  A row with a `decomp` is rewritten by the
 * function of that name.  A row with the flag KEEP is rewritten only if the tail does not take
 * it whole: a .pte takes rows whose `out` kernel its runtime has, emitted C takes rows with a
 * `c` template.  Nodes that a rule builds are visited too; rules only lead from an operator to
 * simpler ones, so this ends.  After this pass there are no strides: a value at core is
 * contiguous. */
#include "passes/decompose.h"
#include "passes/composite.h"
#include "ir/session.h"
#include <string.h>

bool done(Rewrite *r, Node *n, const Node *made)
{
    return made && rewrite_node(r, n, made->out[0]);
}

bool decomp_none(Rewrite *r, Node *n)
{
    return diag_fault(r->d, FAULT_BUG, n->loc, "has no decomposition");
}

bool as_recorded(Rewrite *r, Node *n, Value *x)
{
    Type t = n->out[0]->type;
    Value *v = x ? build_view(r, n, x, t.dim, t.rank) : NULL;
    return v && rewrite_node(r, n, v);
}

bool decomp_split(Rewrite *r, Node *n)
{
    return rewrite_pieces(r, n);
}

/* -- checks -------------------------------------------------------------------------------- */

/* Returns whether the recorded type proves what aten._assert_tensor_metadata asserts. */
static bool is_proven(const Node *n)
{
    Dim size[MAX_RANK];
    Type t = arg_value(n, "a")->type;
    if (arg_get(n, "dtype").kind == ARG_DTYPE && arg_get(n, "dtype").dtype != t.dtype)
        return false;
    if (arg_get(n, "size").kind != ARG_LIST)
        return true;
    return arg_dims(n, "size", size, MAX_RANK) && arg_count(n, "size") == t.rank &&
           dims_equal(size, t.dim, t.rank);
}

static bool drop_check(Rewrite *r, Node *n)
{
    if (n->op == OP__ASSERT_TENSOR_METADATA && !is_proven(n))
        return diag_error(r->d, n->loc, "asserts a dtype or size that its input does not have");
    graph_remove(r->g, n);
    return true;
}

/* -- the walk ------------------------------------------------------------------------------ */

/* Returns the rule of an operator.  A table of functions would be relocated at each start; the jump
 * table of a switch is not. */
static DecompFn *decomposition(OpId op)
{
    switch ((int)op) {
#define OP(id, target, out, schema, flags, access, functional, inplace, infer, decomp, kernel, expr, \
           c, cost, scratch, quant)                                                                  \
    case OP_##id:                                                                                    \
        return decomp_##decomp;
#include "ir/ops.def"
    }
    UNREACHABLE();
}

bool op_splits(OpId op)
{
    return decomposition(op) == decomp_split;
}

/* Returns whether an index is a mask, which no kernel takes. */
static bool has_mask(const Node *n)
{
    return (n->op == OP_INDEX_PUT || n->op == OP_INDEX_TENSOR) && indices_have_mask(n);
}

/* Returns whether windows of a convolution or pool have three axes, for which no kernel exists. */
static bool has_depth(const Node *n)
{
    return op_info[n->op].access == ACCESS_WINDOW && first_operand(n)->type.rank == 5;
}

static bool is_narrow(EtcDtype t)
{
    return t == ETC_F32 || dtype_is_half(t);
}

/* Returns whether the node needs C for another dtype than float, which its template does not
 * have.  For reductions that is so only if the dtype of the result differs. */
static bool lacks_core(const Node *n)
{
    EtcDtype x = first_operand(n)->type.dtype, y = n->out[0]->type.dtype;
    if (access_names_axes(n))
        return x != y && !(is_narrow(x) && is_narrow(y)) && (dtype_is_float(x) || dtype_is_float(y));
    return !is_narrow(y);
}

/* Returns whether a number is computed by the model or is a size that is open.  The scale of an
 * attention is one, which its schema leaves out. */
static bool has_open_number(const Node *n)
{
    const Schema *s = node_schema(n);
    Attention a;
    if (!strcmp(op_c(n->op), "attention") && !attention_read(n, &a))
        return true;
    for (int i = 0; i < s->n_args; i++)
        if (s->arg[i].type == SCH_SCALAR &&
            (n->arg[i].kind == ARG_VALUE || (n->arg[i].kind == ARG_INT && n->arg[i].dim.expr)))
            return true;
    return false;
}

/* A .pte computes a factorization by nodes if the matrix has at most so many rows, or so many columns.
 * Each of them costs about ten nodes (SMALL_STEPS) or three hundred (TINY_STEPS). */
enum { SMALL_STEPS = 16, TINY_STEPS = 4 };

static bool is_spelled_out(const Program *p, const Node *n)
{
    unsigned flags = op_info[n->op].flags;
    if (!(flags & (UNROLLS | UNROLLS_TINY)) || p->session->tail->has_groups)
        return false;
    Type t = first_operand(n)->type;
    Dim a = t.dim[t.rank - 2], b = t.dim[t.rank - 1];
    int64_t most = flags & UNROLLS_TINY ? TINY_STEPS : SMALL_STEPS;
    return !a.expr && !b.expr && (a.value <= most || b.value <= most);
}

static bool is_taken(const Program *p, const Node *n, Stage stage)
{
    const OpInfo *row = node_row(n);
    const Session *s = p->session;
    bool has_core = s->tail->has_groups || (row->flags & LITE && session_calls(s, row));
    if (has_mask(n) || has_depth(n) || (has_core && row->flags & FLOATS && lacks_core(n)) ||
        (has_core && has_open_number(n)))
        return false;
    if (n->custom)
        return s->tail->takes(s, row) && !s->composes;
    bool waits = (s->tail->is_tiled && row->flags & CUT) || s->n_backends;
    return session_takes(s, n->op) || (stage == STAGE_ATEN && waits);
}

/* Returns whether n has to be rewritten at this stage.  has_room: rules may still build large
 * expansions. */
static bool is_composite(const Program *p, const Node *n, Stage stage, bool has_room)
{
    const OpInfo *row = node_row(n);
    bool is_whole = is_taken(p, n, stage) && !(has_room && is_spelled_out(p, n));
    return row->has_decomp && !(row->flags & KEEP && is_whole);
}

bool node_stays_whole(const Node *n)
{
    return !is_composite(n->graph->program, n, STAGE_ATEN, true);
}

static void drop_strides(Graph *g)
{
    for (int i = 0; i < g->n_in; i++)
        value_set_type(g->in[i], type_plain(g->in[i]->type));
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            value_set_type(n->out[i], type_plain(n->out[i]->type));
}

/* Rewrites a node by its rule.  One whose results are parts of a tensor is split into slices first,
 * also if it is complex. */
static bool rewrite(Rewrite *r, Node *n, bool is_complex)
{
    DecompFn *fn = decomposition(n->op);
    if (is_complex && fn != decomp_split)
        return rewrite_complex(r, n);
    if (op_info[n->op].flags & WIDENS && node_has_halves(n))
        return rewrite_widened(r, n, NULL);
    return fn(r, n);
}

static bool decompose_graph(Graph *g, Arena *tmp, Diag *d);

/* Decomposes the graphs of a loop that a rule built.  All other graphs are walked before those
 * around them. */
static bool decompose_built(const Rewrite *r, const Node *n)
{
    bool ok = true;
    if (op_has_regions(n->op) && n->out[0]->index >= r->first_new)
        for (Graph *g = NULL; (g = region_next(n, g));)
            ok = decompose_graph(g, r->tmp, r->d) && ok;
    return ok;
}

static bool decompose_graph(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    bool ok = true, any = false;
    for (Node *n = g->first, *next; n; n = next) {
        Node *before = n->prev;
        next = n->next;
        rewrite_inputs(&r, n);
        bool is_complex = node_is_complex(n);
        if (op_info[n->op].flags & CHECK) {
            ok = drop_check(&r, n) && ok;
        } else if (is_complex && complex_is_pair(n)) {
            any = true;
        } else if (is_complex ||
                   is_composite(g->program, n, g->program->stage, play_has_room(&r))) {
            bool made = rewrite(&r, n, is_complex);
            ok = made && ok;
            if (made) /* the walk goes on with what was built in its place */
                next = before ? before->next : g->first;
        } else {
            ok = decompose_built(&r, n) && node_is_core(n, d) && ok;
        }
    }
    rewrite_finish(&r);
    drop_strides(g);
    ok = complex_stays_within(g, d) && ok;
    if (ok && any)
        complex_remove(g);
    return ok;
}

bool pass_decompose(Program *p, Arena *tmp, Diag *d)
{
    if (!each_graph(p, decompose_graph, tmp, d))
        return false;
    p->stage = STAGE_CORE;
    p->edits++;
    return true;
}
