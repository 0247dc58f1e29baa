/* eval_graph.c -- evaluates a graph node by node; a planned graph in the memory of its plan.
 *
 * If the graph is not planned, every value has bytes of its own.  If it is planned, tensors lie at
 * their places in pools.  Pools are filled with NaNs at the start, and bytes become NaNs again when
 * their value dies.  So a kernel that reads too early, too late, or bytes that another value has
 * overwritten cannot give the right result.  Memory of the caller (in, out, state) is separate.
 *
 * Bodies of groups and delegates are not planned: they run without places, and their results are
 * copied to the places of the node's outputs.  Branches share the memory of the graph around
 * them. */
#include "ir/internal.h"
#include <string.h>

/* These bytes belong to a live value, so they are not filled with NaNs. */
typedef struct Span {
    uint8_t *start, *end;
    const Value *owner;
} Span;

typedef struct Memory {
    Arena *arena;
    int n_pools, n_in, n_out;
    EtcTensor **pool; /* as bytes */
    EtcTensor **in, **out, *state;
    Span *live;
    int n_live;
} Memory;

typedef struct Slot {      /* a value of a graph at run time */
    EtcTensor *dense;      /* the tensor for kernels; a strided place is copied to and from it */
    uint8_t *place;        /* NULL: a buffer of its own */
    const int64_t *stride; /* in elements, of a place that is not dense; else NULL */
    int last;              /* the number of the last node that reads it, or FOREVER */
    const void *borrowed;  /* in an unplanned graph: the buffer to give back after that node */
} Slot;

typedef struct Run {
    const Graph *graph;
    EvalContext *c;
    Memory *m;    /* NULL: unplanned */
    bool in_body; /* it is the body of a group or delegate, where only states have places */
    Slot *slot;
} Run;

enum { FOREVER = INT32_MAX };

static Loc graph_loc(const Graph *g)
{
    return (Loc){.file = g->program->name};
}

/* -- NaNs ----------------------------------------------------------------------------- */

/* The pattern is a NaN as f16, bf16, f32 and f64, and as an integer it is far from any size.  It
 * depends on the address, so that it is aligned to words. */
static void poison_bytes(uint8_t *from, uint8_t *to)
{
    static const uint8_t nan[8] = {0xa0, 0x7f, 0xa0, 0x7f, 0xf4, 0x7f, 0xf4, 0x7f};
    for (; from < to; from++)
        *from = nan[(uintptr_t)from % 8];
}

/* Fills bytes with NaNs unless a live span with an index of at least `first` covers them. */
static void poison(const Memory *m, int first, uint8_t *from, uint8_t *to)
{
    for (int i = first; i < m->n_live; i++) {
        const Span *s = &m->live[i];
        if (s->start >= to || s->end <= from)
            continue;
        if (s->start > from)
            poison(m, i + 1, from, s->start);
        if (s->end >= to)
            return;
        from = s->end;
    }
    poison_bytes(from, to);
}

static void live_add(Memory *m, uint8_t *start, int64_t bytes, const Value *v)
{
    Span span = {start, start + bytes, v};
    PUSH(m->arena, m->live, m->n_live, span);
}

/* Ends the live ranges of all values in the list from index `keep` on. */
static void live_cut(Memory *m, int keep)
{
    int n = m->n_live;
    assert(keep <= n);
    m->n_live = keep;
    for (int i = keep; i < n; i++)
        if (m->live[i].owner && m->live[i].owner->place.pool > POOL_NONE)
            poison(m, 0, m->live[i].start, m->live[i].end);
}

/* A strided value lies within the bytes of another value, so its bytes are filled with NaNs when
 * that value dies. */
static void live_remove(Run *r, const Value *v, const Slot *s)
{
    Memory *m = r->m;
    for (int i = 0; i < m->n_live; i++)
        if (m->live[i].owner == v) {
            Span dead = m->live[i];
            m->live[i] = m->live[--m->n_live];
            if (!s->stride && v->place.pool > POOL_NONE)
                poison(m, 0, dead.start, dead.end);
            return;
        }
}

/* -- memory of a plan ----------------------------------------------------------------- */

static EtcTensor *block(Arena *a, int64_t bytes)
{
    EtcTensor *t = tensor_new(a, ETC_U8, 0, NULL);
    t->capacity = bytes;
    t->data = arena_alloc(a, (size_t)bytes + 1, 1);
    return t;
}

static int64_t state_bytes(const Program *p)
{
    int64_t most = 0, end;
    for (int i = 0; i < p->n_states; i++)
        if (p->state[i]->place.pool == POOL_STATE &&
            add_ok(p->state[i]->place.offset, type_bytes(p->state[i]->type), &end) && end > most)
            most = end;
    return most;
}

/* Returns the block that a place lies in, and sets *byte to its offset there. */
static EtcTensor *find_block(const Memory *m, Place at, int64_t *byte)
{
    *byte = at.pool == POOL_IN || at.pool == POOL_OUT ? 0 : at.offset;
    if (at.pool > 0)
        return at.pool <= m->n_pools ? m->pool[at.pool - 1] : NULL;
    if (at.pool == POOL_IN)
        return at.offset >= 0 && at.offset < m->n_in ? m->in[at.offset] : NULL;
    if (at.pool == POOL_OUT)
        return at.offset >= 0 && at.offset < m->n_out ? m->out[at.offset] : NULL;
    assert(at.pool == POOL_STATE);
    return m->state;
}

static uint8_t *locate(const Memory *m, Place at, int64_t bytes)
{
    int64_t byte;
    EtcTensor *b = find_block(m, at, &byte);
    if (!b || byte < 0 || byte > b->capacity || bytes > b->capacity - byte)
        return NULL;
    return (uint8_t *)b->data + byte;
}

/* States that have places are copied there, and live as long as the program. */
static bool load_states(Memory *m, const Program *p, const EvalContext *c)
{
    for (int i = 0; i < p->n_states; i++) {
        const State *s = p->state[i];
        int64_t bytes = type_bytes(s->type);
        uint8_t *place = s->place.pool != POOL_NONE ? locate(m, s->place, bytes) : NULL;
        if (!place)
            continue;
        if (!s->data || s->n_bytes < bytes)
            return diag_error(c->d, (Loc){.file = p->name}, "the bytes of %%%s are not available",
                              s->name);
        memcpy(place, s->data, (size_t)bytes);
        live_add(m, place, bytes, NULL);
    }
    return true;
}

/* Returns the symbol that a node defines as the element of a tensor, or NULL. */
static const Symbol *defined_symbol(const Node *n)
{
    const Symbol *s;
    int64_t scale, offset;
    const Dim *d = n->op == OP_LOCAL_SCALAR_DENSE ? n->out[0]->type.dim : NULL;
    return d && dim_is_linear(*d, &s, &scale, &offset) && scale == 1 && !offset ? s : NULL;
}

/* Returns the context in which sizes are the most that they become: symbols that nodes are still to
 * define have their upper bounds. */
static EvalContext context_of_most(const Graph *g, const EvalContext *c)
{
    EvalContext most = *c;
    if (!c->defined)
        return most;
    int64_t *symbol = NEW(c->tmp, int64_t, g->program->n_syms + 1);
    memcpy(symbol, c->symbol, (size_t)g->program->n_syms * sizeof *symbol);
    for (const Node *n = g->first; n; n = n->next) {
        const Symbol *s = defined_symbol(n);
        assert(!s || s->index < g->program->n_syms);
        if (s && s->hi < INT32_MAX)
            symbol[s->index] = s->hi;
    }
    most.symbol = symbol;
    return most;
}

static bool memory_init(Memory *m, const Graph *g, const EvalContext *c)
{
    const EvalContext most = context_of_most(g, c);
    *m = (Memory){.arena = c->tmp, .n_pools = g->n_pools, .n_in = g->n_in, .n_out = g->n_out};
    m->pool = NEW(c->tmp, EtcTensor *, g->n_pools + 1);
    m->in = NEW(c->tmp, EtcTensor *, g->n_in + 1);
    m->out = NEW(c->tmp, EtcTensor *, g->n_out + 1);
    m->state = block(c->tmp, state_bytes(g->program));
    for (int i = 0; i < g->n_pools; i++) {
        if (g->pool[i] < 0 || g->pool[i] > INT64_MAX / 2)
            return diag_error(c->d, graph_loc(g), "pool %d has no size", i + 1);
        m->pool[i] = block(c->tmp, g->pool[i]);
        poison_bytes(m->pool[i]->data, (uint8_t *)m->pool[i]->data + g->pool[i]);
    }
    for (int i = 0; i < g->n_in + g->n_out; i++) {
        const Value *v = i < g->n_in ? g->in[i] : g->out[i - g->n_in];
        EtcTensor *t = eval_tensor(NULL, v->type, &most);
        if (!t)
            return false;
        *(i < g->n_in ? &m->in[i] : &m->out[i - g->n_in]) = block(c->tmp, tensor_bytes(t));
    }
    for (int i = 0; i < g->n_out; i++)
        poison_bytes(m->out[i]->data, (uint8_t *)m->out[i]->data + m->out[i]->capacity);
    return load_states(m, g->program, c);
}

/* -- values --------------------------------------------------------------------------- */

static const int64_t *strides_of(const EvalContext *c, Type t)
{
    if (!t.stride || t.rank < 1)
        return NULL;
    int64_t *v = NEW(c->tmp, int64_t, t.rank);
    for (int i = 0; i < t.rank; i++)
        if (!dim_eval(t.stride[i], c->symbol, &v[i]) || v[i] < 0 || v[i] > INT32_MAX)
            v[i] = 0;
    return v;
}

/* Copies all elements between a dense tensor and strided bytes. */
static void copy_strided(const EtcTensor *t, const int64_t *stride, uint8_t *bytes, bool store)
{
    int64_t index[MAX_RANK] = {0}, n = etc_numel(t);
    size_t size = etc_dtype_size((int)t->dtype);
    uint8_t *dense = t->data;
    assert(t->rank <= MAX_RANK);
    for (int64_t i = 0; i < n; i++, dense += size) {
        int64_t at = 0;
        for (int k = 0; k < t->rank; k++)
            at += index[k] * stride[k];
        uint8_t *other = bytes + at * (int64_t)size;
        memcpy(store ? other : dense, store ? dense : other, size);
        for (int k = t->rank - 1; k >= 0 && ++index[k] == t->dim[k]; k--)
            index[k] = 0;
    }
}

static int64_t extent(const EtcTensor *t, const int64_t *stride)
{
    int64_t size = (int64_t)etc_dtype_size((int)t->dtype), last = 0, step;
    if (!stride || !etc_numel(t))
        return tensor_bytes(t);
    for (int i = 0; i < t->rank; i++)
        if (!mul_ok(t->dim[i] - 1, stride[i], &step) || !add_ok(last, step, &last))
            return INT64_MAX;
    return mul_ok(last + 1, size, &last) ? last : INT64_MAX;
}

static bool has_place(const Run *r, const Value *v)
{
    return r->m && !r->in_body && v->place.pool != POOL_NONE && v->type.rank != SCALAR;
}

/* Gives v a tensor, either at its place or with bytes of its own. */
static bool bind(Run *r, const Value *v, EtcTensor *t)
{
    Slot *s = &r->slot[v->index];
    s->dense = t;
    if (!r->m) {
        eval_borrow(t, r->c);
        s->borrowed = t->data;
        return true;
    }
    if (!has_place(r, v)) {
        eval_allocate(t, r->c->tmp);
        return true;
    }
    s->stride = strides_of(r->c, v->type);
    s->place = locate(r->m, v->place, extent(t, s->stride));
    if (!s->place)
        return diag_error(r->c->d, graph_loc(r->graph), "%%%s lies outside its pool", v->name);
    live_add(r->m, s->place, extent(t, s->stride), v);
    if (s->stride) {
        eval_allocate(t, r->c->tmp);
    } else {
        t->data = s->place;
        t->capacity = tensor_bytes(t);
    }
    return true;
}

/* Copies the dense bytes of a value to its place, after a kernel has written them. */
static void store(const Slot *s)
{
    assert(s->dense);
    if (s->stride)
        copy_strided(s->dense, s->stride, s->place, true);
    else if (s->place && s->dense->data != s->place) /* et_view points elsewhere */
        memmove(s->place, s->dense->data, (size_t)tensor_bytes(s->dense));
    if (s->place && !s->stride)
        s->dense->data = s->place;
}

static EtcTensor *load(const Slot *s)
{
    if (s->stride)
        copy_strided(s->dense, s->stride, s->place, false);
    return s->dense;
}

static bool fill(Run *r, const Value *v, const void *data)
{
    EtcTensor *t = eval_tensor(NULL, v->type, r->c);
    if (!t || !bind(r, v, t))
        return false;
    Slot *s = &r->slot[v->index];
    if (data != t->data && tensor_bytes(t))
        memmove(t->data, data, (size_t)tensor_bytes(t));
    store(s);
    return true;
}

/* -- states and inputs ---------------------------------------------------------------- */

/* Weights are read in place, unless they have strides. */
static bool bind_state(Run *r, const Value *v)
{
    const State *s = v->state;
    Slot *slot = &r->slot[v->index];
    EtcTensor *t = eval_tensor(NULL, s->type, r->c);
    if (!t)
        return false;
    const int64_t *stride = strides_of(r->c, s->type);
    if (!s->data || extent(t, stride) > s->n_bytes)
        return diag_error(r->c->d, graph_loc(r->graph), "the bytes of %%%s are not available",
                          s->name);
    slot->dense = t;
    t->data = state_elements(v->state);
    t->capacity = tensor_bytes(t);
    if (stride) {
        eval_allocate(t, r->c->tmp);
        copy_strided(t, stride, s->data, false);
    }
    if (!r->m || s->place.pool == POOL_NONE)
        return true;
    slot->place = locate(r->m, s->place, tensor_bytes(t));
    if (!slot->place)
        return diag_error(r->c->d, graph_loc(r->graph), "%%%s lies outside its pool", s->name);
    t->data = slot->place;
    return true;
}

static bool bind_input(Run *r, const Value *v, EtcTensor *given)
{
    EtcTensor *t = eval_tensor(NULL, v->type, r->c);
    bool fits = t && given && given->dtype == t->dtype && given->rank == t->rank;
    for (int i = 0; fits && i < t->rank; i++)
        fits = given->dim[i] == t->dim[i];
    if (!fits)
        return t && diag_error(r->c->d, graph_loc(r->graph),
                               "input %%%s has not the dtype and sizes of its type", v->name);
    return fill(r, v, given->data);
}

static bool bind_all(Run *r, EtcTensor *const *in)
{
    const Graph *g = r->graph;
    bool ok = true;
    for (int i = 0; i < g->n_states; i++)
        ok = bind_state(r, g->state[i]) && ok;
    for (int i = 0; i < g->n_in && ok; i++)
        ok = bind_input(r, g->in[i], in[i]);
    return ok;
}

/* Finds the last reader of each value.  Results, and values that updates read, never die. */
static void find_last(Run *r)
{
    const Graph *g = r->graph;
    int at = 0;
    for (const Node *n = g->first; n; n = n->next, at++) {
        for (int i = 0; i < n->n_in; i++)
            r->slot[n->in[i]->index].last = at;
        for (int i = 0; i < n->n_out; i++)
            r->slot[n->out[i]->index].last = at;
    }
    for (int i = 0; i < g->n_states; i++)
        r->slot[g->state[i]->index].last = FOREVER;
    for (int i = 0; i < g->n_updates; i++) {
        r->slot[g->update[i].value->index].last = FOREVER;
        r->slot[g->update[i].target->index].last = FOREVER;
    }
    for (int i = 0; i < g->n_out; i++)
        r->slot[g->out[i]->index].last = FOREVER;
}

/* -- nodes ---------------------------------------------------------------------------- */

static bool eval_body(const Graph *g, EtcTensor *const *in, EvalContext *c, Memory *m, bool in_body,
                      EtcTensor **out, EtcTensor **update);

static bool lies_in(const Slot *inner, const Slot *outer)
{
    int64_t inner_bytes = extent(inner->dense, inner->stride);
    int64_t outer_bytes = extent(outer->dense, outer->stride);
    return inner->place && outer->place && inner->place >= outer->place &&
           inner->place + inner_bytes <= outer->place + outer_bytes;
}

/* Returns whether n is a view whose bytes lie in those of its operand.  It then costs nothing. */
static bool is_free_view(const Run *r, const Node *n)
{
    const Value *of = first_operand(n);
    return op_info[n->op].flags & VIEW && of && n->n_out &&
           lies_in(&r->slot[n->out[0]->index], &r->slot[of->index]);
}

/* Copies operand t to its part of the dense result, which begins at index `from` along `axis`. */
static void place_part(EtcTensor *all, const EtcTensor *t, int axis, int64_t from)
{
    size_t size = etc_dtype_size((int)t->dtype);
    int64_t outer = 1, inner = (int64_t)size;
    assert(axis >= 0 && axis < t->rank && t->rank == all->rank && t->dtype == all->dtype);
    for (int i = 0; i < axis; i++)
        outer *= t->dim[i];
    for (int i = axis + 1; i < t->rank; i++)
        inner *= t->dim[i];
    for (int64_t i = 0; i < outer; i++)
        memmove((uint8_t *)all->data + (i * all->dim[axis] + from) * inner,
                (const uint8_t *)t->data + i * t->dim[axis] * inner,
                (size_t)(t->dim[axis] * inner));
}

static int64_t axis_of(const Node *n, int rank)
{
    int64_t axis = 0;
    arg_int(n, "dim", &axis);
    return axis + (axis < 0 ? rank : 0);
}

/* Returns whether x lies in the bytes of that part of the result `all` which begins at index `from`
 * along `axis`. */
static bool is_part(const Slot *x, const Slot *all, int64_t axis, int64_t from)
{
    int64_t step = all->stride ? all->stride[axis] : 1;
    for (int i = (int)axis + 1; !all->stride && i < all->dense->rank; i++)
        step *= all->dense->dim[i];
    int64_t at = from * step * (int64_t)etc_dtype_size((int)all->dense->dtype);
    return lies_in(x, all) && x->place == all->place + at;
}

static bool has_operand_inside(const Run *r, const Node *n)
{
    if (n->op != OP_CAT)
        return false;
    int64_t from = 0;
    const Slot *all = &r->slot[n->out[0]->index];
    for (int i = 0; i < n->n_in; i++) {
        const Slot *x = &r->slot[n->in[i]->index];
        if (x->dense->rank != all->dense->rank)
            continue;
        int64_t axis = axis_of(n, all->dense->rank);
        if (is_part(x, all, axis, from))
            return true;
        from += x->dense->dim[axis];
    }
    return false;
}

/* Computes a concat of which some operands were written into the result already: only the others
 * are copied. */
static bool join_in_place(Run *r, const Node *n, EtcTensor *const *in)
{
    Slot *s = &r->slot[n->out[0]->index];
    int64_t axis = axis_of(n, s->dense->rank), from = 0;
    load(s);
    for (int i = 0; i < n->n_in; i++) {
        if (in[i]->rank != s->dense->rank) /* the empty one that cat leaves out */
            continue;
        if (in[i]->dtype != s->dense->dtype)
            return diag_error(r->c->d, n->loc,
                              "operand %d shares bytes with the result but has another dtype", i);
        if (!is_part(&r->slot[n->in[i]->index], s, axis, from))
            place_part(s->dense, in[i], (int)axis, from);
        from += in[i]->dim[axis];
    }
    store(s);
    return true;
}

static void move(const EtcTensor *to, const EtcTensor *from)
{
    if (to->data != from->data && tensor_bytes(to))
        memmove(to->data, from->data, (size_t)tensor_bytes(to));
}

/* Runs a nested graph and stores its results in to[0], to[1] and so on. */
static bool run_region(const Node *n, const Graph *g, EtcTensor *const *operand, EvalContext *c,
                       Memory *m, bool in_body, EtcTensor *const *to)
{
    EtcTensor **out = NEW(c->tmp, EtcTensor *, g->n_out + 1);
    EtcTensor **update = NEW(c->tmp, EtcTensor *, g->n_updates + 1);
    int n_live = m ? m->n_live : 0, n_out = region_n_results(n, g);
    if (g->n_updates)
        return diag_unsupported(c->d, n->loc, "cannot be evaluated: its graph writes states");
    if (g->n_out != n_out)
        return diag_error(c->d, n->loc, "%d outputs, but its graph has %d", n_out, g->n_out);
    if (!eval_body(g, operand, c, m, in_body, out, update))
        return false;
    for (int i = 0; i < n_out; i++)
        move(to[i], out[i]);
    if (m)
        live_cut(m, n_live);
    return true;
}

/* Runs one iteration of a loop.  *more says whether there may be another. */
static bool run_iteration(const Node *n, EtcTensor *const *operand, EvalContext *c, Memory *m,
                     bool in_body, bool *more)
{
    EtcTensor *holds = tensor_new(c->tmp, ETC_BOOL, 0, NULL);
    if (!run_region(n, arg_get(n, "cond_graph").graph, operand, c, m, in_body, &holds))
        return false;
    *more = *(const uint8_t *)holds->data != 0;
    if (!*more)
        return true;
    if (!(*c->iterations)--)
        return diag_error(c->d, n->loc, "cannot be evaluated: its loop does not end in time");
    return run_region(n, arg_get(n, "body_graph").graph, operand, c, m, in_body, operand);
}

/* Afterwards operand[i], if it is carried, holds result i. */
static bool run_loop(const Node *n, EtcTensor *const *operand, EvalContext *c, Memory *m,
                     bool in_body)
{
    Arena *tmp = arena_new();
    bool ok = true, more = true;
    while (ok && more) {
        EvalContext inner = eval_within(c, tmp);
        ok = run_iteration(n, operand, &inner, m, in_body, &more);
        arena_rewind(tmp);
    }
    arena_free(tmp);
    return ok;
}

bool eval_loop(const Node *n, EtcTensor **operand, EvalContext *c, Arena *a, EtcTensor **out)
{
    for (int i = 0; i < n->n_out; i++)
        operand[i] = out[i] = tensor_copy(operand[i], a);
    return run_loop(n, operand, c, NULL, true);
}

static bool run_nested(Run *r, const Node *n, EtcTensor *const *in, EtcTensor *const *out)
{
    EtcTensor **operand = eval_operands(n, in, r->c);
    bool in_body = r->in_body || !region_has_places(n), ok = true;
    if (region_kind(n) != REGION_LOOP)
        ok = run_region(n, eval_nested(n, in), operand, r->c, r->m, in_body, out);
    for (int i = 0; region_is_carried(n, i); i++) {
        move(out[i], operand[i]);
        operand[i] = out[i];
    }
    if (region_kind(n) == REGION_LOOP)
        ok = run_loop(n, operand, r->c, r->m, in_body);
    for (int i = 0; i < n->n_out; i++)
        store(&r->slot[n->out[i]->index]);
    return ok;
}

/* Sets a symbol if the node defines it as the element of a tensor. */
static void set_symbol(const Run *r, const Node *n, const EtcTensor *item)
{
    const Symbol *s = defined_symbol(n);
    if (s && r->c->defined)
        r->c->defined[s->index] = *(const int64_t *)item->data;
}

/* If a result points into an operand (et_view), the operand's bytes must not be given back. */
static void keep_viewed(Run *r, const Node *n, Slot *result)
{
    if (!result->borrowed || result->dense->data == result->borrowed)
        return;
    result->borrowed = NULL;
    for (int i = 0; i < n->n_in; i++)
        r->slot[n->in[i]->index].borrowed = NULL;
}

static bool run_node(Run *r, const Node *n)
{
    EtcTensor **in = NEW(r->c->tmp, EtcTensor *, n->n_in + 1);
    EtcTensor **out = NEW(r->c->tmp, EtcTensor *, n->n_out + 1);
    for (int i = 0; i < n->n_in; i++)
        in[i] = load(&r->slot[n->in[i]->index]);
    for (int i = 0; i < n->n_out; i++) {
        out[i] = eval_output(n, i, r->c);
        if (!out[i] || !bind(r, n->out[i], out[i]))
            return false;
    }
    if (is_free_view(r, n))
        return true;
    if (has_operand_inside(r, n))
        return join_in_place(r, n, in);
    if (region_next(n, NULL))
        return run_nested(r, n, in, out);
    if (!eval_call(n, in, out, r->c))
        return false;
    set_symbol(r, n, out[0]);
    for (int i = 0; i < n->n_out; i++) {
        keep_viewed(r, n, &r->slot[n->out[i]->index]);
        store(&r->slot[n->out[i]->index]);
    }
    return true;
}

/* Ends the live ranges of the operands and results that no node after node `at` uses. */
static void end_lives(Run *r, const Node *n, int at)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const Value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        Slot *s = &r->slot[v->index];
        if (s->last != at)
            continue;
        if (s->borrowed)
            eval_give_back(s->dense, r->c);
        if (s->place)
            live_remove(r, v, s);
        s->borrowed = NULL;
        s->last = -1;
    }
}

/* -- graphs --------------------------------------------------------------------------- */

static void visit_results(const Run *r, const Node *n)
{
    for (int i = 0; i < n->n_out && r->c->watched == r->graph; i++)
        r->c->visit(n->out[i], load(&r->slot[n->out[i]->index]), r->c->visit_ctx);
}

/* Writes each update to the place of its target, in order, as the last instructions of a call do.
 * Then sets update[] to the tensors in these places.  An unplanned graph has no places, so update[]
 * gets the values themselves. */
static void give_updates(Run *r, EtcTensor **update)
{
    const Graph *g = r->graph;
    for (int i = 0; i < g->n_updates; i++) {
        const Slot *to = &r->slot[g->update[i].target->index];
        EtcTensor *v = load(&r->slot[g->update[i].value->index]);
        if (r->m && to->place && to->place != v->data)
            memmove(to->place, v->data, (size_t)tensor_bytes(v));
    }
    for (int i = 0; i < g->n_updates; i++) {
        const Slot *to = &r->slot[g->update[i].target->index];
        update[i] = r->m && to->place ? to->dense : load(&r->slot[g->update[i].value->index]);
    }
}

static bool eval_body(const Graph *g, EtcTensor *const *in, EvalContext *c, Memory *m, bool in_body,
                      EtcTensor **out, EtcTensor **update)
{
    Run r = {g, c, m, in_body, NEW(c->tmp, Slot, g->n_values + 1)};
    int at = 0;
    for (int i = 0; i < g->n_values; i++)
        r.slot[i].last = -1;
    find_last(&r);
    if (!bind_all(&r, in))
        return false;
    for (const Node *n = g->first; n; n = n->next, at++) {
        if (!run_node(&r, n))
            return false;
        visit_results(&r, n);
        end_lives(&r, n, at);
    }
    give_updates(&r, update);
    for (int i = 0; i < g->n_out; i++)
        out[i] = load(&r.slot[g->out[i]->index]);
    return true;
}

bool eval_watched(const Graph *g, EtcTensor *const *in, const int64_t *symbol, EvalHow how,
                  Arena *a, EtcTensor **out, EtcTensor **update, Diag *d)
{
    Arena *tmp = how.tmp ? how.tmp : arena_new();
    EvalContext c = eval_context(symbol, tmp, d);
    if (symbol && g->program->n_syms) {
        c.defined = NEW(tmp, int64_t, g->program->n_syms);
        memcpy(c.defined, symbol, (size_t)g->program->n_syms * sizeof *symbol);
        c.symbol = c.defined;
    }
    if (how.blas)
        c.cores = blas_cores(how.blas, tmp, &c.scratch);
    Memory m, *planned = how.arena_check && g->program->stage == STAGE_PLANNED ? &m : NULL;
    c.visit = how.visit;
    c.visit_ctx = how.ctx;
    c.watched = how.visit ? g : NULL;
    bool ok = (!planned || memory_init(&m, g, &c)) &&
              eval_body(g, in, &c, planned, false, out, update);
    for (int i = 0; ok && i < g->n_out; i++)
        out[i] = tensor_copy(out[i], a);
    for (int i = 0; ok && i < g->n_updates; i++)
        update[i] = tensor_copy(update[i], a);
    if (how.tmp)
        arena_rewind(tmp);
    else
        arena_free(tmp);
    return ok;
}

bool eval_graph(const Graph *g, EtcTensor *const *in, const int64_t *symbol, bool arena_check,
                Arena *a, EtcTensor **out, EtcTensor **update, Diag *d)
{
    return eval_watched(g, in, symbol, (EvalHow){.arena_check = arena_check}, a, out, update, d);
}
