/* functionalize.c -- replaces operators that write their input by their functional twins.
 *
 * Stage aten, after resolve_views; no node writes after it.  Every value is a base (an input, a
 * state or a new result) or a chain of views of a base.  A write makes a new value of the base:
 * the twin's result is put back through the chain of views, and the base gets the next version.
 * A later read of an alias with an older version builds its chain of views again from the base.
 * The last values of inputs and states become their `update`.  The time is linear in nodes and
 * views that are built again. */
#include "ir/views.h"
#include "passes/internal.h"

typedef struct Alias {
    Value *same;    /* another name of this very tensor, which holds all below; else NULL */
    Value *base;    /* itself where the value is no view */
    Value *parent;  /* the value that the view is of; NULL: it is a base */
    Node *view;     /* the node that computes the view */
    Value *current; /* its value at `version` of the base */
    int version;
} Alias;

typedef struct Pass {
    Graph *g;
    Arena *tmp;
    Diag *d;
    Alias *alias; /* by value index */
    int room;
    Value **written; /* bases with a version above 0, in order of their first write */
    int n_written;
} Pass;

/* -- aliases ----------------------------------------------------------------------------- */

static Alias *alias_of(Pass *s, Value *v)
{
    if (v->index >= s->room) {
        Alias *old = s->alias;
        int n = s->room;
        s->room = 2 * s->g->n_values;
        s->alias = NEW(s->tmp, Alias, s->room);
        for (int i = 0; i < n; i++)
            s->alias[i] = old[i];
    }
    Alias *a = &s->alias[v->index];
    if (a->same)
        a = &s->alias[a->same->index];
    if (!a->base) {
        a->base = v;
        a->current = v;
    }
    return a;
}

static void make_alias(Pass *s, Value *v, Value *parent, Node *view)
{
    Alias p = *alias_of(s, parent);
    *alias_of(s, v) = (Alias){.base = p.base, .parent = parent, .view = view, .current = v,
                              .version = s->alias[p.base->index].version};
}

/* Notes that v is another name of the tensor `of`, or of the tensor that `of` is a name of.  So
 * names make no chains. */
static void make_same(Pass *s, Value *v, Value *of)
{
    alias_of(s, of);
    Value *first = s->alias[of->index].same;
    alias_of(s, v);
    s->alias[v->index].same = first ? first : of;
}

/* Builds the same view of another tensor before `at`.  The other operands of the view only give
 * sizes, which no write changes. */
static Value *view_again(Pass *s, Node *at, const Node *view, Value *x)
{
    Node *n = node_new(s->g, view->op, view->loc);
    for (int i = 0; i < view->n_args; i++) {
        Arg a = view->arg[i];
        if (a.kind == ARG_VALUE)
            a = node_use(n, i ? view->in[a.slot] : x);
        node_push(n, a);
    }
    const char *name = arena_numbered(s->g->program->arena, view->out[0]->name, ".",
                                      graph_number(s->g));
    Value *v = node_add_out(n, name, view->out[0]->type);
    graph_insert(s->g, at, n);
    return v;
}

/* Returns the value that v holds before node `at`. */
static Value *read(Pass *s, Node *at, Value *v)
{
    Value **chain = NULL; /* from v up to the first that is current */
    int n = 0;
    Alias *a = alias_of(s, v);
    int version = alias_of(s, a->base)->version;
    for (; a->parent && a->version != version; a = alias_of(s, v)) {
        PUSH(s->tmp, chain, n, v);
        v = a->parent;
    }
    Value *x = a->current;
    while (n--) {
        a = alias_of(s, chain[n]);
        x = view_again(s, at, a->view, x);
        a = alias_of(s, chain[n]);
        a->current = x;
        a->version = version;
    }
    return x;
}

/* -- writing through a view ---------------------------------------------------------------- */

static bool through_permute(Pass *s, Node *at, const Node *view, Value *x, Value **out)
{
    Permute p;
    int64_t back[MAX_RANK];
    if (!permute_read(view, &p))
        return false;
    for (int i = 0; i < p.rank; i++)
        back[p.axis[i]] = i;
    *out = permute_build(s->g, at, at->loc, x, back, s->d);
    return *out != NULL;
}

/* Builds the parent with [start, end) of an axis replaced by x: a concat of the part before, x,
 * and the part after. */
static bool through_range(Pass *s, Node *at, Value *parent, int64_t axis, Dim start, Dim end,
                          Value *x, Value **out)
{
    Value *part[3];
    int n = 0;
    Dim size = parent->type.dim[axis];
    if (!dim_equal(start, DIM(0)) &&
        !(part[n++] = slice_build(s->g, at, at->loc, parent, axis, DIM(0), start, s->d)))
        return false;
    part[n++] = x;
    if (!dim_equal(end, size) &&
        !(part[n++] = slice_build(s->g, at, at->loc, parent, axis, end, size, s->d)))
        return false;
    if (n == 1) {
        *out = x;
        return true;
    }
    *out = concat_build(s->g, at, at->loc, n, part, axis, s->d);
    return *out != NULL;
}

/* Gives n, of an operator whose types are given, a result like the parent, and places it. */
static bool place_parent(Pass *s, Node *at, Node *n, const Value *parent, Value **out)
{
    Type t = parent->type;
    t.stride = NULL;
    *out = node_add_out(n, arena_numbered(s->g->program->arena, parent->name, ".",
                                          graph_number(s->g)), t);
    graph_insert(s->g, at, n);
    return schema_check(n, s->d);
}

/* Builds the parent with x in the place of its view, by an operator that takes these two and then
 * the arguments of the view. */
static bool through_scatter(Pass *s, Node *at, OpId op, const Node *view, Value *parent, Value *x,
                            Value **out)
{
    Node *n = node_new(s->g, op, at->loc);
    node_push(n, node_use(n, parent));
    node_push(n, node_use(n, x));
    for (int i = 1; i < view->n_args; i++)
        node_push(n, arg_moved(n, view, view->arg[i]));
    return place_parent(s, at, n, parent, out);
}

/* Builds the same by the operator that undoes the view. */
static bool through_inverse(Pass *s, Node *at, OpId op, const Value *parent, Value *x, Value **out)
{
    Node *n = node_new(s->g, op, at->loc);
    node_push(n, node_use(n, x));
    return place_parent(s, at, n, parent, out);
}

static void push_dims(Node *n, int rank, const Dim *dim)
{
    Arg *item = NEW(n->graph->program->arena, Arg, rank ? rank : 1);
    for (int i = 0; i < rank; i++)
        item[i] = (Arg){.kind = ARG_INT, .dim = dim[i]};
    node_push(n, (Arg){.kind = ARG_LIST, .list = {item, rank}});
}

/* Builds the same for windows along an axis.  They lie in a dense parent in strides of their
 * own. */
static bool through_windows(Pass *s, Node *at, const Node *view, Value *parent, Value *x,
                            Value **out)
{
    Type t = parent->type;
    Dim stride[MAX_RANK + 1], run = DIM(1);
    int64_t axis = 0, step = 0;
    bool is_known = arg_int(view, "dimension", &axis) && arg_int(view, "step", &step);
    axis += axis < 0 ? t.rank : 0;
    if (!is_known || axis < 0 || axis >= t.rank || x->type.rank != t.rank + 1)
        return diag_error(s->d, view->loc, "does not cut an axis of its input into windows");
    for (int i = t.rank - 1; i >= 0; i--) {
        stride[i] = run;
        run = dim_mul(s->g->program, run, t.dim[i]);
    }
    stride[t.rank] = stride[axis];
    stride[axis] = dim_mul(s->g->program, stride[axis], DIM(step));
    Node *n = node_new(s->g, OP_AS_STRIDED_SCATTER, at->loc);
    node_push(n, node_use(n, parent));
    node_push(n, node_use(n, x));
    push_dims(n, x->type.rank, x->type.dim);
    push_dims(n, x->type.rank, stride);
    node_push(n, (Arg){.kind = ARG_NONE});
    return place_parent(s, at, n, parent, out);
}

static bool through_slice(Pass *s, Node *at, const Node *view, Value *parent, Value *x,
                          Value **out)
{
    Slice part;
    int64_t step;
    if (!arg_int(view, "step", &step) || step != 1)
        return through_scatter(s, at, OP_SLICE_SCATTER, view, parent, x, out);
    if (!slice_read(view, &part))
        return diag_unsupported(s->d, at->loc, "writes through slice '%s', whose bounds may be of "
                                               "either sign", view->loc.node);
    return through_range(s, at, parent, part.axis, part.start, part.end, x, out);
}

static bool through_select(Pass *s, Node *at, const Node *view, Value *parent, Value *x,
                           Value **out)
{
    Select part;
    if (!select_read(view, &part))
        return diag_unsupported(s->d, at->loc, "writes through select '%s', whose index may be of "
                                               "either sign", view->loc.node);
    Node *u = build(s->g, at, at->loc, OP_UNSQUEEZE, s->d, "vi", x, (int64_t)part.axis);
    Dim end = dim_add(s->g->program, part.index, DIM(1));
    return u && through_range(s, at, parent, part.axis, part.index, end, u->out[0], out);
}

/* Builds what the parent is after its view became x. */
static bool put_back(Pass *s, Node *at, const Node *view, Value *parent, Value *x, Value **out)
{
    if (node_access(view) == ACCESS_PERMUTE)
        return through_permute(s, at, view, x, out);
    if (node_is_view(view)) {
        Node *n = build(s->g, at, at->loc, OP_VIEW, s->d, "vD", x, parent->type.rank,
                        parent->type.dim);
        *out = n ? n->out[0] : NULL;
        return n != NULL;
    }
    if (node_access(view) == ACCESS_MOVE && parent->type.rank == x->type.rank &&
        dims_equal(parent->type.dim, x->type.dim, x->type.rank)) { /* an expand to its own sizes */
        *out = x;
        return true;
    }
    OpId scatter = view_scatter(view->op), inverse = view_inverse(view->op);
    if (scatter < N_OPS)
        return through_scatter(s, at, scatter, view, parent, x, out);
    if (inverse < N_OPS)
        return through_inverse(s, at, inverse, parent, x, out);
    switch (view->op) {
    case OP_SLICE:
        return through_slice(s, at, view, parent, x, out);
    case OP_SELECT_INT:
        return through_select(s, at, view, parent, x, out);
    case OP_UNFOLD:
        return through_windows(s, at, view, parent, x, out);
    default:
        return diag_unsupported(s->d, at->loc, "writes through '%s' (%s), which has no inverse",
                                view->loc.node, op_target(view->op));
    }
}

/* -- writes -------------------------------------------------------------------------------- */

/* Reports a write in a nested graph to a base outside of it. */
static bool may_write(Pass *s, const Node *n, const Value *base)
{
    if (base->def || s->g->name)
        return true;
    return diag_unsupported(s->d, n->loc, "writes %%%s from inside a nested graph", base->name);
}

static bool write(Pass *s, Node *n, Value *target, Value *x)
{
    Value *base = alias_of(s, target)->base, *v = target;
    if (!may_write(s, n, base))
        return false;
    for (Alias *a; (a = alias_of(s, v))->parent; v = a->parent) {
        Node *view = a->view;
        Value *parent = a->parent;
        a->current = x; /* it has the version that is set below */
        a->version = alias_of(s, base)->version + 1;
        if (!put_back(s, n, view, read(s, n, parent), x, &x))
            return false;
    }
    Alias *b = alias_of(s, base);
    if (!b->version++)
        PUSH(s->tmp, s->written, s->n_written, base);
    b->current = x;
    return true;
}

/* Builds the twin of fill_ or zero_, which have other arguments than their twin. */
static Node *build_fill(Pass *s, Node *n)
{
    Arg value = {.kind = ARG_INT, .dim = DIM(0)};
    if (n->op == OP_FILL__SCALAR)
        value = n->arg[arg_of(n, "value")];
    if (value.kind == ARG_VALUE) {
        diag_unsupported(s->d, n->loc, "fills with a value that is not a constant");
        return NULL;
    }
    return build(s->g, n, n->loc, OP_FULL_LIKE, s->d, "va", first_operand(n), value);
}

static Node *build_twin(Pass *s, Node *n)
{
    OpId twin = op_info[n->op].functional;
    if (twin == OP_FULL_LIKE)
        return build_fill(s, n);
    Node *f = node_new(s->g, twin, n->loc);
    Type t = {0};
    for (int i = 0; i < n->n_args; i++)
        node_push(f, arg_moved(f, n, n->arg[i]));
    if (op_is_given(twin)) { /* the target keeps its type */
        t = n->out[0]->type;
        t.stride = NULL;
    }
    Value *v = node_add_out(f, arena_numbered(s->g->program->arena, n->out[0]->name, ".",
                                              graph_number(s->g)), t);
    if (!schema_check(f, s->d) || !node_infer(f, &t, s->d))
        return NULL;
    value_set_type(v, t);
    graph_insert(s->g, n, f);
    return f;
}

/* Builds the twin and casts its result to the dtype of the target. */
static Value *twin_of(Pass *s, Node *n, Type want)
{
    if (op_info[n->op].functional == OP_DROPOUT) {
        if (arg_bool(n, "train")) {
            diag_unsupported(s->d, n->loc,
                             "drops elements at random: export the model in eval mode");
            return NULL;
        }
        return first_operand(n);
    }
    Node *f = build_twin(s, n);
    if (f && (f->out[0]->type.rank != want.rank ||
              !dims_equal(f->out[0]->type.dim, want.dim, want.rank))) {
        diag_error(s->d, n->loc, "its result does not have the shape of what it writes");
        return NULL;
    }
    if (!f || f->out[0]->type.dtype == want.dtype)
        return f ? f->out[0] : NULL;
    f = build(s->g, n, n->loc, OP__TO_COPY, s->d, "vt", f->out[0], want.dtype);
    return f ? f->out[0] : NULL;
}

static bool rewrite_write(Pass *s, Node *n)
{
    Value *target = first_operand(n);
    if (op_info[n->op].functional == OP_NONE)
        return diag_unsupported(s->d, n->loc, "writes its input, which is not supported");
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i]->type.dtype != target->type.dtype || n->out[i]->type.rank != target->type.rank)
            return diag_error(s->d, n->loc, "its result does not have the type of what it writes");
    for (int i = 0; i < n->n_in; i++)
        node_set_in(n, i, read(s, n, n->in[i]));
    Value *x = twin_of(s, n, target->type);
    if (!x || !write(s, n, target, x))
        return false;
    if (n->n_out && x != first_operand(n))
        x->name = n->out[0]->name;
    for (int i = 0; i < n->n_out; i++)
        make_same(s, n->out[i], target);
    graph_remove(s->g, n);
    return true;
}

/* -- batch norm in training ---------------------------------------------------------------- */

/* Returns whether n is an instance norm in training, which moves its buffers. */
static bool has_instance_statistics(const Node *n)
{
    const Value *mean = n->op == OP_INSTANCE_NORM ? arg_value(n, "running_mean") : NULL;
    return mean && mean->state && arg_bool(n, "use_input_stats");
}

/* Returns whether n updates running statistics. */
static bool has_statistics(const Node *n)
{
    if (n->op == OP__BATCH_NORM_WITH_UPDATE || n->op == OP__NATIVE_BATCH_NORM_LEGIT)
        return true;
    return (n->op == OP_BATCH_NORM || n->op == OP_NATIVE_BATCH_NORM) && arg_bool(n, "training") &&
           (arg_value(n, "running_mean") || arg_value(n, "running_var"));
}

/* Builds the twin of a batch norm, whose further results are the statistics of the batch and the
 * new running statistics. */
static Node *build_batch_norm_twin(Pass *s, Node *n, const Value *mean, const Value *var)
{
    Node *f = node_new(s->g, OP__NATIVE_BATCH_NORM_LEGIT_FUNCTIONAL, n->loc);
    int n_args = op_schema(s->g->program, f->op)->n_args;
    for (int i = 0; f->n_args < n_args; i++) {
        if (f->n_args == arg_of(f, "training") && n->op == OP__BATCH_NORM_WITH_UPDATE)
            node_push(f, (Arg){.kind = ARG_BOOL, .b = true});
        node_push(f, arg_moved(f, n, n->arg[i]));
    }
    for (int i = 0; i < 5; i++) {
        Type t = i < 3 && i < n->n_out ? n->out[i]->type : i == 4 ? var->type : mean->type;
        t.stride = NULL;
        node_add_out(f, arena_numbered(s->g->program->arena, n->out[0]->name, ".",
                                       graph_number(s->g)), t);
    }
    if (!schema_check(f, s->d))
        return NULL;
    graph_insert(s->g, n, f);
    return f;
}

static bool rewrite_batch_norm(Pass *s, Node *n)
{
    Value *mean = arg_value(n, "running_mean"), *var = arg_value(n, "running_var");
    if (!mean || !var)
        return diag_unsupported(s->d, n->loc, "has one running statistic without the other");
    for (int i = 0; i < n->n_in; i++)
        node_set_in(n, i, read(s, n, n->in[i]));
    Node *f = build_batch_norm_twin(s, n, mean, var);
    if (!f || !write(s, n, mean, f->out[3]) || !write(s, n, var, f->out[4]))
        return false;
    for (int i = 0; i < n->n_out && i < 3; i++)
        make_same(s, n->out[i], f->out[i]);
    if (n->n_out > 3) { /* results for a backward pass */
        Node *none = build(s->g, n, n->loc, OP_FULL, s->d, "Dit", n->out[3]->type.rank,
                           n->out[3]->type.dim, (int64_t)0, n->out[3]->type.dtype);
        if (!none)
            return false;
        make_same(s, n->out[3], none->out[0]);
    }
    graph_remove(s->g, n);
    return true;
}

/* -- the walk ------------------------------------------------------------------------------ */

static bool visit(Pass *s, Node *n)
{
    if (has_statistics(n))
        return rewrite_batch_norm(s, n);
    if (has_instance_statistics(n))
        return diag_unsupported(
            s->d, n->loc, "would update its running statistics: export the model in eval mode");
    if (op_mutates(n->op))
        return rewrite_write(s, n);
    Value *parent = op_info[n->op].flags & VIEW && n->n_in ? first_operand(n) : NULL;
    for (int i = 0; i < n->n_in; i++) {
        Value *v = read(s, n, n->in[i]);
        if (v != n->in[i])
            node_set_in(n, i, v);
    }
    for (int i = 0; parent && i < n->n_out; i++)
        make_alias(s, n->out[i], parent, n);
    return true;
}

static bool has_update(const Graph *g, const Value *target)
{
    int i = 0;
    while (i < g->n_updates && g->update[i].target != target)
        i++;
    return i < g->n_updates;
}

/* Gives outputs and updates the last values.  A tensor that is both written in place and updated is
 * refused: which of the two values it keeps is not stated. */
static bool finish(Pass *s)
{
    Graph *g = s->g;
    bool ok = true;
    for (int i = 0; i < g->n_out; i++) {
        Value *v = read(s, NULL, g->out[i]);
        if (v != g->out[i])
            graph_set_output(g, i, v);
    }
    for (int i = 0; i < g->n_updates; i++)
        g->update[i].value = read(s, NULL, g->update[i].value);
    for (int i = 0; i < s->n_written; i++) {
        Value *base = s->written[i];
        if (base->def)
            continue;
        if (has_update(g, base))
            ok = diag_error(s->d, (Loc){.file = g->program->name},
                            "%%%s is written in place and has an update", base->name);
        if (base->state)
            base->state->kind = ST_MUTABLE;
        graph_add_update(g, base, alias_of(s, base)->current);
    }
    return ok;
}

/* Makes two states one that name the same bytes in the same way.  A write to bytes that another
 * state sees in another way is refused. */
static bool unify_storages(Pass *s, const bool *written)
{
    Graph *g = s->g;
    Value **first = NEW(s->tmp, Value *, g->program->n_storages + 1);
    bool ok = true;
    for (int i = 0; i < g->n_states; i++) {
        Value *v = g->state[i], *one = first[v->state->storage];
        if (!one) {
            first[v->state->storage] = v;
        } else if (v->state->offset == one->state->offset && type_same(v->type, one->type)) {
            make_same(s, v, one);
        } else if (written[v->state->storage]) {
            ok = diag_unsupported(s->d, (Loc){.file = g->program->name},
                                  "the model writes '%s', which shares bytes with '%s' in another "
                                  "shape", one->state->fqn, v->state->fqn);
        }
    }
    return ok;
}

/* Returns, by storage, whether some node of this graph writes it, through any chain of views. */
static bool *find_writes(Pass *s, bool *any)
{
    Graph *g = s->g;
    bool *written = NEW(s->tmp, bool, g->program->n_storages + 1);
    State **of = NEW(s->tmp, State *, g->n_values + 1);
    for (const Node *n = g->first; n; n = n->next) {
        bool writes = op_mutates(n->op);
        *any = *any || writes || has_statistics(n) || has_instance_statistics(n);
        if (!n->n_in || !n->n_out || (!writes && !(op_info[n->op].flags & VIEW)))
            continue;
        State *state = first_operand(n)->state ? first_operand(n)->state
                                                   : of[first_operand(n)->index];
        of[n->out[0]->index] = state;
        if (writes && state)
            written[state->storage] = true;
    }
    return written;
}

bool pass_functionalize(Graph *g, Arena *tmp, Diag *d)
{
    Pass s = {.g = g, .tmp = tmp, .d = d};
    bool any = false, *written = find_writes(&s, &any), ok;
    if (!any)
        return true;
    ok = unify_storages(&s, written);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        ok = visit(&s, n) && ok;
    }
    return ok && finish(&s);
}
