/* resolve_views.c -- turns operators that alias only sometimes into a view, a copy or their input.
 *
 * Stage aten, first pass.  Eager torch decides by strides whether `reshape`, `flatten`,
 * `contiguous` and `to` share bytes with their input.  The export recorded these strides, so this
 * pass decides in the same way.  After it, a row with the flag VIEW always shares bytes and `clone`
 * never does, as functionalize needs it. */
#include "passes/decompose.h"
#include <string.h>

typedef enum Answer { NO, YES, OPEN } Answer;

typedef struct Resolve {
    Rewrite r;
    Node **open; /* copies that may be views */
    int n_open;
    bool has_writes;
} Resolve;

/* -- sizes ------------------------------------------------------------------------------- */

/* Sets *size to the size that a sym_size node reads; false: v is no result of one. */
static bool size_of(const Value *v, Dim *size)
{
    int64_t axis;
    const Node *def = v->def;
    if (!def || def->op != OP_SYM_SIZE || !arg_int(def, "dim", &axis))
        return false;
    Type t = first_operand(def)->type;
    axis += axis < 0 ? t.rank : 0;
    if (axis < 0 || axis >= t.rank)
        return false;
    *size = t.dim[axis];
    return true;
}

static bool reads_size(const Node *n)
{
    Dim d;
    for (int i = 0; i < n->n_in; i++)
        if (size_of(n->in[i], &d))
            return true;
    return false;
}

static Arg with_sizes(Node *to, const Node *from, Arg a)
{
    Dim d;
    if (a.kind == ARG_VALUE && size_of(from->in[a.slot], &d))
        return (Arg){.kind = ARG_INT, .key = a.key, .dim = d};
    if (a.kind == ARG_VALUE) {
        Arg use = node_use(to, from->in[a.slot]);
        use.key = a.key;
        return use;
    }
    if (a.kind != ARG_LIST)
        return a;
    Arg *item = NEW(to->graph->program->arena, Arg, a.list.n ? a.list.n : 1);
    for (int i = 0; i < a.list.n; i++)
        item[i] = with_sizes(to, from, a.list.item[i]);
    a.list.item = item;
    return a;
}

/* Returns the node with literal sizes where it read the results of sym_size; the node itself where
 * it read none. */
static Node *literal_sizes(Rewrite *r, Node *n)
{
    if (!reads_size(n))
        return n;
    Node *copy = node_like(r->g, n);
    for (int i = 0; i < n->n_args; i++)
        node_push(copy, with_sizes(copy, n, n->arg[i]));
    for (int i = 0; i < n->n_out; i++)
        rewrite_value(r, n->out[i], node_add_out(copy, n->out[i]->name, n->out[i]->type));
    graph_insert(r->g, n, copy);
    graph_remove(r->g, n);
    return copy;
}

/* -- reshape ----------------------------------------------------------------------------- */

/* Takes output sizes from the right until they fill a run of `chunk` elements. */
static Answer take(Program *p, Dim chunk, const Dim *to, int *at)
{
    Dim filled = DIM(1);
    while (*at >= 0 && (!dim_equal(filled, chunk) || dim_is_one(to[*at])))
        filled = dim_mul(p, filled, to[(*at)--]);
    if (dim_equal(filled, chunk))
        return YES;
    return filled.expr || chunk.expr ? OPEN : NO;
}

/* Answers whether a strided tensor can be seen under other sizes without moving an element: each
 * run of input axes that is contiguous in itself must be filled by a run of output axes. */
static Answer can_view(Program *p, Type from, const Dim *to, int rank)
{
    int at = rank - 1;
    Dim chunk = DIM(1);
    Answer all = YES;
    if (type_is_dense(p, from))
        return YES;
    Dim base = from.stride[from.rank - 1];
    for (int i = from.rank - 1; i >= 0 && all == YES; i--) {
        chunk = dim_mul(p, chunk, from.dim[i]);
        Dim next = dim_mul(p, chunk, base);
        if (i && (dim_is_one(from.dim[i - 1]) || dim_equal(from.stride[i - 1], next)))
            continue;
        if (i && (next.expr || from.stride[i - 1].expr))
            all = OPEN;
        else
            all = take(p, chunk, to, &at);
        chunk = DIM(1);
        base = i ? from.stride[i - 1] : base;
    }
    return all;
}

static bool copy_of(Resolve *s, Node *n, Value *x)
{
    Value *c = clone_build(s->r.g, n, n->loc, x, s->r.d);
    return c && rewrite_node(&s->r, n, c);
}

static bool reshape(Resolve *s, Node *n)
{
    Value *x = first_operand(n);
    Type to = n->out[0]->type;
    Answer can = can_view(s->r.g->program, x->type, to.dim, to.rank);
    if (can != YES) {
        x = clone_build(s->r.g, n, n->loc, x, s->r.d);
        if (!x)
            return false;
        if (can == OPEN)
            PUSH(s->r.tmp, s->open, s->n_open, x->def);
    }
    Value *v = build_view(&s->r, n, x, to.dim, to.rank);
    return v && rewrite_node(&s->r, n, v);
}

/* -- the other rows ---------------------------------------------------------------------- */

static const Arg *named(const Node *n, const char *name)
{
    int i = arg_find(n, name);
    return i < 0 ? NULL : &n->arg[i];
}

static bool is_text(const Arg *a, const char *text)
{
    return a && a->kind == ARG_STRING && !strcmp(a->str, text);
}

/* Returns whether x already has the memory format. */
static bool has_format(Program *p, Type x, const Arg *format)
{
    if (!format || format->kind != ARG_STRING || is_text(format, "preserve_format"))
        return true;
    return is_text(format, "contiguous_format") && type_is_dense(p, x);
}

static bool contiguous(Resolve *s, Node *n)
{
    if (has_format(s->r.g->program, first_operand(n)->type, named(n, "memory_format")))
        return rewrite_node(&s->r, n, first_operand(n));
    return copy_of(s, n, first_operand(n));
}

static bool to(Resolve *s, Node *n)
{
    Value *x = first_operand(n);
    const Arg *copy = named(n, "copy");
    EtcDtype want = n->out[0]->type.dtype;
    if (want != x->type.dtype) {
        x = build_cast(&s->r, n, x, want);
        return x && rewrite_node(&s->r, n, x);
    }
    if ((copy && copy->kind == ARG_BOOL && copy->b) ||
        !has_format(s->r.g->program, x->type, named(n, "memory_format")))
        return copy_of(s, n, x);
    return rewrite_node(&s->r, n, x);
}

static bool dropout(Resolve *s, Node *n)
{
    double p = 1;
    if (arg_bool(n, "train") && !(arg_number(n, "p", &p) && p == 0))
        return diag_unsupported(s->r.d, n->loc,
                                "drops elements at random: export the model in eval mode");
    return rewrite_node(&s->r, n, arg_value(n, "input"));
}

/* Replaces a resize to as many elements by a view.  The elements must lie one behind the other. */
static bool resize(Resolve *s, Node *n)
{
    Program *p = s->r.g->program;
    Value *x = first_operand(n);
    Type to = n->out[0]->type;
    if (!type_is_dense(p, x->type) || !dim_equal(dims_numel(p, x->type), dims_numel(p, to)))
        return diag_unsupported(s->r.d, n->loc, "changes how many elements its input has, or their "
                                                "order: use a slice or torch.cat");
    Value *v = build_view(&s->r, n, x, to.dim, to.rank);
    return v && rewrite_node(&s->r, n, v);
}

static Value *viewed(const Value *v)
{
    return v->def && op_info[v->def->op].flags & VIEW ? first_operand(v->def) : NULL;
}

/* Rewrites as_strided.  Its strides are those of the bytes, of which the input may be a view that
 * orders them in another way, so they are applied to the tensor that holds the bytes, or to a view
 * of all of them with the input's dtype. */
static bool as_strided(Resolve *s, Node *n)
{
    Value *x = first_operand(n), *base = x, *all;
    while (viewed(base) && viewed(base)->type.dtype == x->type.dtype)
        base = viewed(base);
    for (all = base; viewed(all); all = viewed(all))
        ;
    const Arg *offset = named(n, "storage_offset");
    bool is_told = offset && offset->kind != ARG_NONE;
    if (!type_is_dense(s->r.g->program, base->type) || (all->state && all->state->offset) ||
        (is_told && type_bytes(all->type) != type_bytes(base->type)) ||
        (base != x && !is_told && !type_is_dense(s->r.g->program, x->type)))
        return diag_unsupported(s->r.d, n->loc, "reads by strides what is not dense in memory: "
                                                "call contiguous() before, or use slices");
    if (base != x && is_told)
        node_set_in(n, n->arg[arg_of(n, "self")].slot, base);
    return true;
}

/* Returns whether n is squeeze_, unsqueeze_, t_ or similar, which write no element: it becomes a
 * view that replaces x from there on. */
static bool writes_sizes(const Node *n)
{
    OpId twin = op_info[n->op].functional;
    return op_mutates(n->op) && twin != OP_NONE && op_info[twin].flags & VIEW;
}

/* Checks what inference leaves open where types come from the file: self is a tensor, not a number,
 * and has the dtype of the result. */
static bool takes_tensor(Resolve *s, const Node *n)
{
    const Value *x = arg_value(n, "self");
    if (!x)
        return diag_error(s->r.d, n->loc, "self is a number, expected a tensor");
    return x->type.dtype == n->out[0]->type.dtype ||
           diag_error(s->r.d, n->loc, "its result is recorded with another dtype than self has");
}

static bool resolve(Resolve *s, Node *n)
{
    switch (n->op) {
    case OP_ALIAS:
    case OP_DETACH:
        return rewrite_node(&s->r, n, first_operand(n));
    case OP_DROPOUT:
    case OP_FEATURE_DROPOUT:
        return dropout(s, n);
    case OP_CONTIGUOUS:
        return contiguous(s, n);
    case OP_TO_DTYPE:
    case OP_TO_DTYPE_LAYOUT:
    case OP_TO_DEVICE:
    case OP_TO_OTHER:
    case OP_TYPE_AS:
        return to(s, n);
    case OP_LIFT_FRESH_COPY:
        return copy_of(s, n, first_operand(n));
    case OP_RESHAPE:
    case OP_RESHAPE_AS:
    case OP_RAVEL:
    case OP_FLATTEN:
        return takes_tensor(s, n) && reshape(s, n);
    case OP_AS_STRIDED:
        return takes_tensor(s, n) && as_strided(s, n);
    case OP_RESIZE_:
    case OP_RESIZE_AS_:
        return takes_tensor(s, n) && resize(s, n);
    default:
        if (writes_sizes(n)) {
            node_set_op(n, op_info[n->op].functional);
            return resolve(s, n);
        }
        if (op_splits(n->op))
            return rewrite_pieces(&s->r, n);
        return !s->has_writes || !(op_info[n->op].flags & CHAIN) || node_is_complex(n) ||
               decomp_text(&s->r, n);
    }
}

/* -- copies that a write could tell from views ------------------------------------------- */

/* Returns a number for the bytes that a value shares: of the first value in its chain of views, or
 * of a storage. */
static int family(const Graph *g, const int *of, const Value *v)
{
    return v->state ? g->n_values + v->state->storage : of[v->index];
}

/* Reports the copies whose input or result shares bytes with something written later. */
static bool no_write_differs(const Resolve *s)
{
    Graph *g = s->r.g;
    int *of = NEW(s->r.tmp, int, g->n_values), at = s->n_open - 1;
    const Node **writer = NEW(s->r.tmp, const Node *, g->n_values + g->program->n_storages);
    bool ok = true;
    for (int i = 0; i < g->n_values; i++)
        of[i] = i;
    for (const Node *n = g->first; n; n = n->next)
        if (n->n_out && n->n_in && (op_info[n->op].flags & VIEW || op_mutates(n->op)))
            of[n->out[0]->index] = family(g, of, first_operand(n));
    for (const Node *n = g->last; n && at >= 0; n = n->prev) {
        if (op_mutates(n->op))
            writer[family(g, of, first_operand(n))] = n;
        if (n != s->open[at])
            continue;
        const Node *w = writer[family(g, of, first_operand(n))];
        w = w ? w : writer[family(g, of, n->out[0])];
        at--;
        if (w)
            ok = diag_unsupported(s->r.d, n->loc,
                                  "symbolic strides leave open whether it is a view or a copy, "
                                  "and node '%s' writes to its bytes later", w->loc.node);
    }
    return ok;
}

static bool has_writes(const Graph *g)
{
    const Node *n = g->first;
    while (n && !op_mutates(n->op))
        n = n->next;
    return n != NULL;
}

bool pass_resolve_views(Graph *g, Arena *tmp, Diag *d)
{
    Resolve s = {.r = rewrite_start(g, tmp, d), .has_writes = has_writes(g)};
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&s.r, n);
        ok = resolve(&s, literal_sizes(&s.r, n)) && ok;
    }
    rewrite_finish(&s.r);
    return (!s.n_open || no_write_differs(&s)) && ok;
}
