/* pt2_vmap.c -- functions under torch.vmap, which exports contain unless they were decomposed.
 *
 * In the file, a value inside such a function has the sizes of one element of the batch.  Here
 * the value has all elements: first the batch axes of its levels, in the order of the levels,
 * then the axes of the file.  Pointwise operators take it as it is, once all operands have the
 * axes of all levels; so does an index into a tensor from outside.  Any other operator is called
 * for each element alone, and the results are stacked, if the elements are few.  pt2_use refuses
 * what writes or holds graphs.  The idea is that of the batching rules of functorch. */
#include "compiler/import/internal.h"
#include <string.h>

typedef struct Batch {
    int n;
    int64_t level[MAX_RANK]; /* ascending */
    Dim size[MAX_RANK];
} Batch;

static Batch *batch_of(Pt2 *p, const Value *v)
{
    return p->has_batches && v ? table_at_copy(&p->batches, &v, sizeof v)->ptr : NULL;
}

bool pt2_is_batched(Pt2 *p, const Value *v)
{
    return batch_of(p, v) != NULL;
}

static void set_batch(Pt2 *p, Value *v, const Batch *b)
{
    Batch *copy = NEW(p->tmp, Batch, 1);
    *copy = *b;
    p->has_batches = true;
    table_at_copy(&p->batches, &v, sizeof v)->ptr = copy;
}

/* Returns the place of a level, or the place where it would be.  *is_there says whether it is
 * there. */
static int place_of(const Batch *b, int64_t level, bool *is_there)
{
    int i = 0;
    while (i < b->n && b->level[i] < level)
        i++;
    *is_there = i < b->n && b->level[i] == level;
    return i;
}

static bool add_level(Batch *b, int64_t level, Dim size)
{
    bool is_there;
    int at = place_of(b, level, &is_there);
    if (is_there || b->n == MAX_RANK)
        return is_there;
    memmove(b->level + at + 1, b->level + at, (size_t)(b->n - at) * sizeof *b->level);
    memmove(b->size + at + 1, b->size + at, (size_t)(b->n++ - at) * sizeof *b->size);
    b->level[at] = level;
    b->size[at] = size;
    return true;
}

static void drop_level(Batch *b, int at)
{
    b->n--;
    memmove(b->level + at, b->level + at + 1, (size_t)(b->n - at) * sizeof *b->level);
    memmove(b->size + at, b->size + at + 1, (size_t)(b->n - at) * sizeof *b->size);
}

/* -- operators --------------------------------------------------------------------------------- */

/* Operators that read only the dtype and sizes of a batch: their result is the same for all
 * elements. */
static bool is_new(OpId op)
{
    return op == OP_NEW_FULL || op == OP_NEW_ONES || op == OP_NEW_ZEROS;
}

bool pt2_may_batch(OpId op)
{
    return op != OP_NONE && !op_has_regions(op) && op_info[op].functional == OP_NONE;
}

static bool takes_batches(OpId op)
{
    static const OpId more[] = {
        OP___AND__SCALAR,  OP___AND__TENSOR,   OP___OR__SCALAR,
        OP___OR__TENSOR,   OP___XOR__SCALAR,   OP___XOR__TENSOR,
        OP_DIV_SCALAR_MODE, OP_DIV_TENSOR_MODE, OP_EXPAND,
        OP_FULL_LIKE,      OP_INDEX_TENSOR,    OP_MASKED_FILL_SCALAR,
        OP_ONES_LIKE,      OP_TO_DTYPE,        OP_TO_DTYPE_LAYOUT,
        OP_ZEROS_LIKE,     OP__ASSERT_TENSOR_METADATA};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (op == more[i])
            return true;
    return is_new(op) ||
           (op_info[op].access == ACCESS_POINTWISE && op_info[op].functional == OP_NONE);
}

/* Returns v with all axes of `all`, followed by those of an element of `rank` axes. */
static Value *aligned(Scope *s, const Node *n, Value *v, const Batch *all, int rank)
{
    const Batch *b = batch_of(s->in, v);
    int missing = b ? rank - (v->type.rank - b->n) : 0;
    for (int i = 0; b && v && i < all->n + missing; i++) {
        bool is_there = false;
        if (i < all->n)
            place_of(b, all->level[i], &is_there);
        if (is_there)
            continue;
        Node *made = build(s->graph, NULL, n->loc, OP_UNSQUEEZE, s->in->diag, "vi", v, (int64_t)i);
        v = made ? made->out[0] : NULL;
    }
    return v;
}

/* An index can take batches if it chooses from the first axes, without a gap between them.  Then
 * the axes of the indices come first in the result. */
static bool is_index_of_first_axes(Pt2 *p, const Node *n)
{
    const Arg *list = &n->arg[arg_find(n, "indices")];
    if (batch_of(p, arg_value(n, "self")) || list->kind != ARG_LIST)
        return false;
    for (int i = 0; i < list->list.n; i++) {
        const Arg *item = &list->list.item[i];
        if (item->kind != ARG_VALUE || n->in[item->slot]->type.dtype == ETC_BOOL)
            return false;
    }
    return true;
}

/* Adds the axes of the levels to the sizes of an expand; -1 leaves them as they are. */
static void expand_levels(Node *n, int n_levels)
{
    Arg *list = &n->arg[arg_find(n, "size")];
    Arg *item = NEW(n->graph->program->arena, Arg, n_levels + list->list.n);
    for (int i = 0; i < n_levels; i++)
        item[i] = (Arg){.kind = ARG_INT, .dim = DIM(-1)};
    if (list->list.n)
        memcpy(item + n_levels, list->list.item, (size_t)list->list.n * sizeof *item);
    list->list.item = item;
    list->list.n += n_levels;
}

/* Makes all operands of n have the same batch axes.  *all gets the levels of its results. */
static bool align(Scope *s, Node *n, Batch *all)
{
    Pt2 *p = s->in;
    const Value *table = n->op == OP_INDEX_TENSOR ? arg_value(n, "self") : NULL;
    int rank = n->op == OP_EXPAND ? arg_count(n, "size") : 0;
    for (int i = 0; i < n->n_in; i++) {
        const Batch *b = batch_of(p, n->in[i]);
        int own = n->in[i]->type.rank - (b ? b->n : 0);
        rank = own > rank && n->in[i] != table ? own : rank;
        for (int k = 0; b && k < b->n; k++)
            if (!add_level(all, b->level[k], b->size[k]))
                return false;
    }
    if (all->n && table && !is_index_of_first_axes(p, n))
        return pt2_refuse_batch(p, n->loc);
    for (int i = 0; i < n->n_in; i++)
        if (!(n->in[i] = aligned(s, n, n->in[i], all, rank)))
            return false;
    if (all->n && n->op == OP_EXPAND)
        expand_levels(n, all->n);
    return true;
}

/* Puts the axes of the levels before those that the file gives v. */
static bool widen(Scope *s, Value *v, const Batch *all)
{
    Dim dim[MAX_RANK];
    if (v->type.rank < 0 || v->type.rank + all->n > MAX_RANK)
        return pt2_refuse_batch(s->in, v->def->loc);
    memcpy(dim, all->size, (size_t)all->n * sizeof *dim);
    memcpy(dim + all->n, v->type.dim, (size_t)v->type.rank * sizeof *dim);
    value_set_type(v, type_tensor(s->in->program, v->type.dtype, v->type.rank + all->n, dim));
    set_batch(s->in, v, all);
    return true;
}

bool pt2_batch(Scope *s, Node *n)
{
    Batch all = {.n = 0};
    if (!takes_batches(n->op))
        return true;
    if (!s->in->has_batches || is_new(n->op))
        return true;
    if (!align(s, n, &all))
        return false;
    for (int i = 0; all.n && i < n->n_out; i++)
        if (!widen(s, n->out[i], &all))
            return false;
    return true;
}

bool pt2_refuse_batch(Pt2 *p, Loc loc)
{
    if (!p->told_batch)
        diag_unsupported(p->diag, loc,
                         "is in a function under torch.vmap, which is not batched yet: torch does "
                         "that in exported.run_decompositions({}); save its result");
    p->told_batch = true;
    return false;
}

/* -- calls for single elements ----------------------------------------------------------------- */

/* Returns the element of v at a place among all levels. */
static Value *element_of(Scope *s, Loc loc, Value *v, const Batch *all, const int64_t *at)
{
    const Batch *b = batch_of(s->in, v);
    for (int k = 0; b && v && k < b->n; k++) {
        bool is_there;
        int i = place_of(all, b->level[k], &is_there);
        Node *n = build(s->graph, NULL, loc, OP_SELECT_INT, s->in->diag, "vii", v, (int64_t)0,
                        at[i]);
        v = n ? n->out[0] : NULL;
    }
    return v;
}

static Arg argument_for(Node *n, const Arg *a, Value **in)
{
    Arg copy = *a;
    if (a->kind == ARG_VALUE)
        return node_use(n, in[a->slot]);
    if (a->kind != ARG_LIST)
        return copy;
    Arg *item = NEW(n->graph->program->arena, Arg, a->list.n + 1);
    for (int i = 0; i < a->list.n; i++)
        item[i] = argument_for(n, &a->list.item[i], in);
    copy.list.item = item;
    return copy;
}

/* Adds the call of n for one element; NULL: it is refused. */
static Node *call_for(Scope *s, const Node *n, const Batch *all, const int64_t *at, int64_t number)
{
    Node *m = n->custom ? node_new_custom(s->graph, n->custom, n->loc)
                        : node_new(s->graph, n->op, n->loc);
    Value **in = NEW(s->in->tmp, Value *, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++)
        if (!(in[i] = element_of(s, n->loc, n->in[i], all, at)))
            return NULL;
    for (int i = 0; i < n->n_args; i++)
        node_push(m, argument_for(m, &n->arg[i], in));
    for (int i = 0; i < n->n_out; i++)
        node_add_out(m, arena_printf(s->graph->program->arena, "%s.e%lld", n->out[i]->name,
                                     (long long)number),
                     n->out[i]->type);
    if (!schema_check(m, s->in->diag))
        return NULL;
    graph_append(s->graph, m);
    return m;
}

/* Returns the results of all elements, in their order, as one value. */
static Value *stacked(Scope *s, Loc loc, Value **v, int n, const Batch *all)
{
    Dim dim[MAX_RANK];
    Type t = v[0]->type;
    Node *made = NULL;
    if (t.rank >= 0 && t.rank + all->n <= MAX_RANK)
        made = build(s->graph, NULL, loc, OP_STACK, s->in->diag, "Vi", n, v, (int64_t)0);
    else
        pt2_refuse_batch(s->in, loc);
    if (!made)
        return NULL;
    memcpy(dim, all->size, (size_t)all->n * sizeof *dim);
    memcpy(dim + all->n, t.dim, (size_t)t.rank * sizeof *dim);
    made = build(s->graph, NULL, loc, OP_VIEW, s->in->diag, "vD", made->out[0], t.rank + all->n,
                 dim);
    if (made)
        set_batch(s->in, made->out[0], all);
    return made ? made->out[0] : NULL;
}

static bool call_each(Scope *s, const Node *n, Value **result)
{
    enum { MOST_ELEMENTS = 256 };
    Batch all = {.n = 0};
    int64_t count = 1, at[MAX_RANK];
    for (int i = 0; i < n->n_in; i++) {
        const Batch *b = batch_of(s->in, n->in[i]);
        for (int k = 0; b && k < b->n; k++)
            if (!add_level(&all, b->level[k], b->size[k]))
                return pt2_refuse_batch(s->in, n->loc);
    }
    for (int i = 0; i < all.n; i++) {
        if (all.size[i].expr || all.size[i].value < 1 || all.size[i].value > MOST_ELEMENTS / count)
            return pt2_refuse_batch(s->in, n->loc);
        count *= all.size[i].value;
    }
    Value **of = NEW(s->in->tmp, Value *, count * (n->n_out + 1));
    for (int64_t e = 0; e < count; e++) {
        int64_t rest = e;
        for (int i = all.n; i--; rest /= all.size[i].value)
            at[i] = rest % all.size[i].value;
        const Node *m = call_for(s, n, &all, at, e);
        if (!m)
            return false;
        for (int i = 0; i < n->n_out; i++)
            of[i * count + e] = m->out[i];
    }
    for (int i = 0; i < n->n_out; i++)
        if (!(result[i] = stacked(s, n->loc, of + i * count, (int)count, &all)))
            return false;
    return true;
}

/* Calls n for each element of a batch; its results are already defined under their names. */
bool pt2_each_element(Scope *s, const Node *n)
{
    Value **result = NEW(s->in->tmp, Value *, n->n_out + 1);
    bool ok = call_each(s, n, result);
    for (int i = 0; i < n->n_out; i++) {
        const char *text = n->out[i]->name + strlen(s->prefix); /* with '.' if a size has the name */
        Name *name = table_find_text(&s->names, arena_str(s->in->tmp, text, strcspn(text, ".")));
        if (name && name->value == n->out[i]) {
            name->value = ok ? result[i] : NULL;
            name->is_broken = !ok;
        }
    }
    return ok;
}

bool pt2_needs_elements(Pt2 *p, const Node *n)
{
    for (int i = 0; i < n->n_in && p->has_batches; i++)
        if (pt2_is_batched(p, n->in[i]))
            return !takes_batches(n->op);
    return false;
}

/* -- marks ------------------------------------------------------------------------------------- */

typedef struct Mark {
    Value *x;
    Batch batch; /* of x */
    int64_t number[3]; /* those after x that are integers */
    Type type;   /* of the result, as the file has it */
    const char *result;
} Mark;

static bool read_mark(Scope *s, Loc loc, const Json *node, Mark *m)
{
    Pt2 *p = s->in;
    int i = 0;
    for (JsonIter it = json_iter(json_get(node, "inputs")); json_next(&it) && i < 4; i++) {
        const Json *content = NULL;
        const char *tag = json_tag(json_get(it.value, "arg"), &content);
        if (!i && (!tag || strcmp(tag, "as_tensor") != 0 || !(m->x = pt2_use(s, loc, content))))
            return false;
        if (i && tag && !strcmp(tag, "as_int") && !json_int(content, &m->number[i - 1]))
            return false;
    }
    const Json *content = NULL;
    JsonIter out = json_iter(json_get(node, "outputs"));
    const char *tag = json_next(&out) ? json_tag(out.value, &content) : NULL;
    m->result = tag && !strcmp(tag, "as_tensor") ? json_string(json_get(content, "name")) : NULL;
    const Name *name = m->result ? pt2_name(s, loc, m->result) : NULL;
    if (!m->x || m->x->type.rank < 0 || !name || !name->meta ||
        !pt2_type(p, loc, m->result, name->meta, &m->type))
        return false;
    if (batch_of(p, m->x))
        m->batch = *batch_of(p, m->x);
    return true;
}

/* Defines the result as v with its axis `from` moved to place `to`. */
static bool define_moved(Scope *s, Loc loc, Mark *m, Value *v, int from, int to)
{
    int64_t axis[MAX_RANK];
    int n = 0;
    for (int i = 0; i < v->type.rank; i++)
        if (i != from)
            axis[n++] = i;
    memmove(axis + to + 1, axis + to, (size_t)(n - to) * sizeof *axis);
    axis[to] = from;
    Node *made = build(s->graph, NULL, loc, OP_PERMUTE, s->in->diag, "vI", v, v->type.rank, axis);
    if (!made)
        return false;
    const Type *t = &made->out[0]->type;
    int inner = t->rank - m->batch.n;
    if (inner != m->type.rank || t->dtype != m->type.dtype ||
        !dims_equal(t->dim + m->batch.n, m->type.dim, inner))
        return diag_error(s->in->diag, loc,
                          "the result '%s' has other sizes than torch.vmap gives it", m->result);
    if (m->batch.n)
        set_batch(s->in, made->out[0], &m->batch);
    return pt2_define(s, loc, m->result, made->out[0]);
}

/* Reads _add_batch_dim(x, axis, level): the axis becomes that of a level. */
static bool open_level(Scope *s, Loc loc, Mark *m)
{
    int64_t axis = m->number[0], level = m->number[1];
    int inner = m->x->type.rank - m->batch.n, from = m->batch.n + (int)axis;
    bool is_there;
    int to = place_of(&m->batch, level, &is_there);
    if (axis < 0 || axis >= inner || is_there)
        return diag_error(s->in->diag, loc, "has no axis %lld for a level of its own",
                          (long long)axis);
    return add_level(&m->batch, level, m->x->type.dim[from]) &&
           define_moved(s, loc, m, m->x, from, to);
}

/* Returns a value that does not depend on the level, repeated along a new axis. */
static Value *repeated(Scope *s, Loc loc, const Mark *m, int axis)
{
    Dim dim[MAX_RANK];
    Diag *d = s->in->diag;
    Node *made = build(s->graph, NULL, loc, OP_UNSQUEEZE, d, "vi", m->x, (int64_t)m->batch.n);
    if (!made)
        return NULL;
    int rank = made->out[0]->type.rank;
    memcpy(dim, made->out[0]->type.dim, (size_t)rank * sizeof *dim);
    dim[m->batch.n] = m->type.dim[axis];
    made = build(s->graph, NULL, loc, OP_EXPAND, d, "vD", made->out[0], rank, dim);
    return made ? made->out[0] : NULL;
}

/* Reads _remove_batch_dim(x, level, size, axis): the level becomes an axis of all elements again.
 */
static bool close_level(Scope *s, Loc loc, Mark *m)
{
    int64_t level = m->number[0], axis = m->number[2];
    bool is_there;
    int from = place_of(&m->batch, level, &is_there);
    if (axis < 0 || axis >= m->type.rank || m->type.rank != m->x->type.rank - m->batch.n + 1)
        return diag_error(s->in->diag, loc, "the result '%s' has no axis %lld", m->result,
                          (long long)axis);
    if (is_there)
        drop_level(&m->batch, from);
    else
        from = m->batch.n;
    Value *v = is_there ? m->x : repeated(s, loc, m, (int)axis);
    return v && define_moved(s, loc, m, v, from, m->batch.n + (int)axis);
}

bool pt2_vmap_mark(Scope *s, Loc loc, const char *target, const Json *node)
{
    Mark m = {.x = NULL};
    int errors = diag_errors(s->in->diag);
    s->in->may_batch = true;
    bool ok = read_mark(s, loc, node, &m);
    s->in->may_batch = false;
    if (!ok)
        return diag_errors(s->in->diag) == errors &&
               diag_error(s->in->diag, loc, "this mark of torch.vmap cannot be read");
    return strstr(target, "_add_batch_dim") ? open_level(s, loc, &m) : close_level(s, loc, &m);
}
