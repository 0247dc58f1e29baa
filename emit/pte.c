/* pte.c -- writes a planned program of the pte tail as an ExecuTorch file.
 *
 * There is one plan per method and one walk per graph.  A node becomes a call of the `out`
 * kernel of its row, with its results as out tensors.  A view whose bytes lie in those of its
 * input needs no call.  The branches of a cond are laid out one after the other, with jumps.  A
 * branch computes what it returns in the value of the cond's result, if this is possible. */
#include "emit/pte_internal.h"
#include "ir/session.h"
#include "ir/views.h"
#include <string.h>

static bool fault(PteFile *e, Loc loc, const char *what)
{
    e->failed = true;
    return diag_fault(e->diag, FAULT_BUG, loc, "%s", what);
}

/* -- instructions ------------------------------------------------------------------------ */

static int op_index(Plan *p, const char *name)
{
    int i = 0;
    while (i < p->n_ops && strcmp(p->op[i], name) != 0)
        i++;
    if (i == p->n_ops)
        PUSH(p->file->arena, p->op, p->n_ops, name);
    return i;
}

static int push_instr(Plan *p, Instr i)
{
    assert(i.n_args == 0 || i.arg);
    i.node = p->at;
    PUSH(p->file->arena, p->instr, p->n_instrs, i);
    return p->n_instrs - 1;
}

/* Adds a call of a kernel without a node: a copy for an update or a branch. */
static void call4(Plan *p, const char *op, int a, int b, int c, int d)
{
    int *arg = NEW(p->file->arena, int, 4);
    memcpy(arg, (int[]){a, b, c, d}, 4 * sizeof *arg);
    push_instr(p, (Instr){.type = KERNEL_CALL, .a = op_index(p, op), .arg = arg, .n_args = 4});
}

/* -- nodes without a call ------------------------------------------------------------------ */

static bool same_place(Place a, Place b)
{
    return a.pool == b.pool && a.offset == b.offset;
}

static bool is_planned(const Value *v)
{
    return v->place.pool > 0 && !v->type.is_none && v->type.rank != SCALAR;
}

static bool is_same_view(const Value *in, const Value *out)
{
    return type_equal(in->type, out->type) && same_place(value_place(in), value_place(out)) &&
           is_planned(out);
}

static bool is_constant(const Scope *s, const Value *v)
{
    return s->buffer[v->index] || value_is_fixed(v);
}

/* Returns whether a node is a view that needs no call, because its bytes lie in those of its input.
 */
static bool is_free_view(const Scope *s, const Node *n)
{
    const Value *in = arg_value(n, 0), *out = n->n_out == 1 ? n->out[0] : NULL;
    if (!(op_info[n->op].flags & VIEW) || !in || !out || out->type.is_none || in->type.is_none)
        return false;
    if (is_same_view(in, out))
        return true;
    if (!type_is_static(in->type) || !type_is_static(out->type))
        return false;
    if (is_constant(s, in) && out->place.pool <= 0)
        return type_bytes(in->type) == type_bytes(out->type);
    return value_lies_within(out, in);
}

static void show_view(Scope *s, const Node *n)
{
    assert(n->n_out == 1);
    const Value *in = arg_value(n, "self"), *out = n->out[0];
    int value = value_of(s, in);
    s->root[out->index] = s->root[in->index];
    if (out->place.pool <= 0)
        s->buffer[out->index] = s->buffer[in->index];
    if (is_same_view(in, out) && !s->value[out->index])
        s->value[out->index] = value + 1;
    value_define(s, out);
}

/* -- calls ------------------------------------------------------------------------------- */

/* Returns whether a node is a prim op.  A call of a prim op has the results once; in a call of a
 * kernel a return slot follows them. */
static bool is_prim(const Node *n)
{
    return !strncmp(node_out(n), "executorch_prim::", 17) ||
           (n->n_out == 1 && n->out[0]->type.rank == SCALAR);
}

/* Sets value[] to the values of a node's results.  Kernels need memory for each result; et_view has
 * its own.  Returns false if a result has none, which is reported. */
static bool define_outs(Scope *s, const Node *n, int *value)
{
    bool needs_memory = op_has_regions(n->op) || !is_prim(n), ok = true;
    for (int i = 0; i < n->n_out; i++) {
        value[i] = value_define(s, n->out[i]);
        if (needs_memory && n->out[i]->type.rank != SCALAR && !is_planned(n->out[i]) &&
            n->out[i]->place.pool != POOL_OUT)
            ok = fault(s->plan->file, n->loc, "a result has no place in memory");
    }
    return ok;
}

/* Adds the results of a real transform to a call.  Its kernel writes complex numbers, whose bytes
 * are those of pairs of floats: a second tensor at the place of these.  runtime-lite finds working
 * memory in the return slot; the official runtime sets this value, and nothing reads it. */
static int transform_outs(Scope *s, const Node *n, const int *out, int *arg)
{
    Type t = n->out[0]->type;
    t.rank--;
    t.dtype = ETC_C64;
    arg[0] = tensor_value(s->plan, t, n->out[0]->place, 0, n->loc);
    arg[1] = out[1];
    return 2;
}

static void kernel_call(Scope *s, const Node *n)
{
    Plan *p = s->plan;
    const Schema *schema = node_schema(n);
    int *arg = NEW(p->file->arena, int, schema->n_args + n->n_out + 2), k = 0;
    int *out = NEW(p->file->arena, int, n->n_out + 1);
    define_outs(s, n, out);
    for (int i = 0; i < schema->n_args; i++)
        if (schema_is_passed(schema, i))
            arg[k++] = argument_value(s, n, i);
    if (schema->n_outs < 0) {
        arg[k++] = tensor_list(p, out, n->n_out);
        arg[k++] = tensor_list(p, out, n->n_out);
    } else if (n->op == OP_FFT_R2C) {
        k += transform_outs(s, n, out, arg + k);
    } else {
        memcpy(arg + k, out, (size_t)n->n_out * sizeof *out);
        k += n->n_out;
        if (!is_prim(n))
            arg[k++] = n->n_out == 1 ? out[0] : tensor_list(p, out, n->n_out);
    }
    assert(k <= schema->n_args + n->n_out + 2);
    if (!p->op_index[n->op] || n->custom)
        p->op_index[n->op] = op_index(p, node_out(n)) + 1;
    push_instr(p,
               (Instr){.type = KERNEL_CALL, .a = p->op_index[n->op] - 1, .arg = arg, .n_args = k});
}

static FlatRef delegate_table(PteFile *e, const State *blob)
{
    assert(blob->kind == ST_BLOB && blob->data);
    int segment = 1 + store_add(&e->blobs, e->arena, blob->data, type_bytes(blob->type));
    flat_begin(e->flat, N_DELEGATE_DATA_SLOTS);
    flat_u8(e->flat, DELEGATE_DATA_LOCATION, 1); /* the data is in a segment */
    flat_u32(e->flat, DELEGATE_DATA_INDEX, (uint32_t)segment);
    FlatRef processed = pte_end(e), specs = flat_refs(e->flat, NULL, 0);
    FlatRef id = shared_string(e, blob->fqn);
    flat_begin(e->flat, N_DELEGATE_SLOTS);
    flat_ref(e->flat, DELEGATE_ID, id);
    flat_ref(e->flat, DELEGATE_PROCESSED, processed);
    flat_ref(e->flat, DELEGATE_SPECS, specs);
    return pte_end(e);
}

static void delegate_call(Scope *s, const Node *n)
{
    Plan *p = s->plan;
    PteFile *e = p->file;
    const Value *blob = arg_value(n, "blob");
    int n_in = arg_count(n, "args"), *arg = NEW(e->arena, int, n_in + n->n_out + 1);
    if (!blob->state || blob->state->kind != ST_BLOB) {
        fault(e, n->loc, "its first argument is not a blob");
        return;
    }
    if (!pte_has_bytes(e, blob->state, type_bytes(blob->state->type)))
        return;
    for (int i = 0; i < n_in; i++)
        arg[i] = value_of(s, arg_list_value(n, "args", i));
    define_outs(s, n, arg + n_in);
    FlatRef table = delegate_table(e, blob->state);
    PUSH(e->arena, p->delegate, p->n_delegates, table);
    push_instr(p, (Instr){.type = DELEGATE_CALL, .a = p->n_delegates - 1, .arg = arg,
                          .n_args = n_in + n->n_out});
}

/* -- concats ----------------------------------------------------------------------------- */

/* Returns whether each operand of a concat is one run of bytes in its result. */
static bool is_run_of_operands(const Node *n)
{
    Concat c;
    bool ok = n->n_out && concat_read(n, &c) && type_is_static(n->out[0]->type);
    for (int i = 0; ok && i < c.axis; i++)
        ok = n->out[0]->type.dim[i].value == 1;
    for (int i = 0; ok && i < c.count; i++)
        ok = type_is_static(c.part[i]->type) && c.part[i]->type.dtype == n->out[0]->type.dtype;
    return ok && is_planned(n->out[0]);
}

static bool is_part(const Node *n, int k, int64_t at)
{
    Place x = value_place(n->in[k]), y = n->out[0]->place;
    return is_planned(n->in[k]) && x.pool == y.pool && x.offset == y.offset + at;
}

static bool has_parts(const Node *n)
{
    int64_t at = 0;
    for (int k = 0; is_run_of_operands(n) && k < n->n_in; at += type_bytes(n->in[k++]->type))
        if (is_part(n, k, at))
            return true;
    return false;
}

/* Adds copies of the operands that do not lie in the result yet. */
static void join_parts(Scope *s, const Node *n)
{
    Plan *p = s->plan;
    Place to = n->out[0]->place;
    Loc loc = {.file = p->file->program->name, .node = n->out[0]->name};
    assert(n->op == OP_CAT);
    for (int k = 0; k < n->n_in; to.offset += type_bytes(n->in[k++]->type)) {
        Type t = n->in[k]->type;
        if (is_part(n, k, to.offset - n->out[0]->place.offset) || !type_bytes(t))
            continue;
        t.stride = NULL;
        int part = tensor_value(p, t, to, 0, loc);
        call4(p, "aten::clone.out", value_of(s, n->in[k]), literal_null(p), part, part);
    }
    value_define(s, n->out[0]);
}

/* -- branches ---------------------------------------------------------------------------- */

static void graph_body(Scope *s);
static void graph_updates(Scope *s);

/* Returns whether v may be computed in the value of `result` itself. */
static bool may_bind(const Scope *s, const Value *v, const Value *result)
{
    return v->def && !is_free_view(s, v->def) && !s->value[v->index] &&
           type_equal(v->type, result->type) && same_place(v->place, result->place);
}

/* Adds the copy of v to the result after a branch, unless v is there already. */
static void settle(Scope *s, const Value *v, const Value *result, int to)
{
    Plan *p = s->plan;
    int from = value_of(s, v);
    bool is_tensor = !v->type.is_none && v->type.rank != SCALAR;
    bool is_there = is_tensor && same_place(value_place(v), result->place) && is_planned(result);
    if (from == to ||
        (is_there && type_is_static(result->type) && type_equal(v->type, result->type)))
        return;
    if (is_tensor && !is_there)
        call4(p, "aten::clone.out", from, literal_null(p), to, to);
    else
        push_instr(p, (Instr){.type = MOVE_CALL, .a = from, .b = to});
}

/* Returns the scope of a nested graph, whose inputs are values of the graph around it. */
static Scope enter(Scope *outer, const Node *n, const Graph *g)
{
    assert(region_kind(n) != REGION_ONCE);
    Scope s = scope_new(outer->plan, g);
    if (g->n_in != region_n_operands(n) || g->n_out != region_n_results(n, g))
        fault(s.plan->file, n->loc, "a branch takes or returns another number of values");
    for (int i = 0; i < g->n_in; i++) {
        const Value *from = region_input(n, i), *to = g->in[i];
        s.value[to->index] = from ? value_of(outer, from) + 1 : literal_null(s.plan) + 1;
        s.buffer[to->index] = from ? outer->buffer[from->index] : 0;
        s.root[to->index] = to;
    }
    return s;
}

static void branch(Scope *outer, const Node *n, const Graph *g, const int *result)
{
    Scope s = enter(outer, n, g);
    for (int i = 0; i < g->n_out && i < n->n_out; i++)
        if (may_bind(&s, g->out[i], n->out[i])) {
            s.value[g->out[i]->index] = result[i] + 1;
            s.root[g->out[i]->index] = g->out[i];
        }
    graph_body(&s);
    for (int i = 0; i < g->n_out && i < n->n_out; i++)
        settle(&s, g->out[i], n->out[i], result[i]);
    graph_updates(&s);
}

static int jump(Plan *p, int destination)
{
    return push_instr(p, (Instr){.type = JUMP_FALSE_CALL, .a = literal_bool(p, false),
                                 .b = destination});
}

static void cond(Scope *s, const Node *n)
{
    Plan *p = s->plan;
    const Value *pred = arg_value(n, "pred");
    int *result = NEW(p->file->arena, int, n->n_out + 1);
    if (!pred || pred->type.is_none || pred->type.dtype != ETC_BOOL) {
        fault(p->file, n->loc, "its condition is not a bool");
        return;
    }
    define_outs(s, n, result);
    int to_else = push_instr(p, (Instr){.type = JUMP_FALSE_CALL, .a = value_of(s, pred)});
    branch(s, n, arg_get(n, "true_graph").graph, result);
    int to_end = jump(p, 0);
    p->instr[to_else].b = p->n_instrs;
    branch(s, n, arg_get(n, "false_graph").graph, result);
    p->instr[to_end].b = p->n_instrs;
}

/* Adds the copy of v to result i of a loop.  No copy is necessary if v has the bytes of the result;
 * then it has the sizes of the result too. */
static void carry(Scope *s, const Node *n, int i, const Value *v, int to)
{
    Plan *p = s->plan;
    int from = value_of(s, v);
    bool is_there = is_planned(n->out[i]) && same_place(value_place(v), n->out[i]->place);
    if (from != to && !is_there)
        call4(p, "aten::clone.out", from, literal_null(p), to, to);
}

static void while_loop(Scope *s, const Node *n)
{
    Plan *p = s->plan;
    const Graph *cond = arg_get(n, "cond_graph").graph, *body = arg_get(n, "body_graph").graph;
    int *result = NEW(p->file->arena, int, n->n_out + 1);
    define_outs(s, n, result);
    for (int i = 0; i < n->n_out; i++)
        carry(s, n, i, region_operand(n, i), result[i]);
    int first = p->n_instrs;
    Scope test = enter(s, n, cond);
    graph_body(&test);
    int to_end = push_instr(p, (Instr){.type = JUMP_FALSE_CALL, .a = value_of(&test, cond->out[0])});
    Scope inner = enter(s, n, body);
    graph_body(&inner);
    for (int i = 0; i < n->n_out; i++)
        carry(&inner, n, i, body->out[i], result[i]);
    jump(p, first);
    p->instr[to_end].b = p->n_instrs;
}

/* Gives the result of a refused node a value, so that its readers do not report it again. */
static void put_placeholder(Scope *s, const Value *v)
{
    if (!s->value[v->index])
        s->value[v->index] = 1;
    if (!s->root[v->index])
        s->root[v->index] = v;
}

/* Defines the result of a constant node: an EValue that nothing writes. */
static void constant(Scope *s, const Node *n)
{
    const Value *out = n->out[0], *same = arg_value(n, "value");
    int value = same ? value_of(s, same) : literal_value(s->plan, &n->arg[arg_of(n, "value")]);
    if (arg_get(n, "value").kind == ARG_INT && arg_get(n, "value").dim.expr)
        fault(s->plan->file, n->loc, "is a size that no prim op computes");
    s->value[out->index] = value + 1;
    s->root[out->index] = out;
}

/* -- checks ------------------------------------------------------------------------------ */

static void call3(Plan *p, const char *op, int a, int b, int c)
{
    int *arg = NEW(p->file->arena, int, 3);
    memcpy(arg, (int[]){a, b, c}, 3 * sizeof *arg);
    push_instr(p, (Instr){.type = KERNEL_CALL, .a = op_index(p, op), .arg = arg, .n_args = 3});
}

static int scratch_once(Plan *p, EtcDtype t, int *known)
{
    if (!*known)
        *known = number_scratch(p, t) + 1;
    return *known - 1;
}

/* Adds a comparison, and the jump that is taken if it fails.  Returns the number of the jump, whose
 * destination the caller sets. */
static int compare(Scope *s, const Node *n, const char *op, int bound)
{
    Plan *p = s->plan;
    int holds = scratch_once(p, ETC_BOOL, &p->verdict);
    int to = argument_value(s, n, bound);
    call3(p, op, argument_value(s, n, 0), to, holds);
    return push_instr(p, (Instr){.type = JUMP_FALSE_CALL, .a = holds});
}

/* Returns whether both bounds are the same value or the same plain integer. */
static bool is_one_number(const Node *n)
{
    const Arg *lo = &n->arg[arg_of(n, "lo")], *hi = &n->arg[arg_of(n, "hi")];
    if (lo->kind == ARG_VALUE && hi->kind == ARG_VALUE)
        return n->in[lo->slot] == n->in[hi->slot];
    return lo->kind == ARG_INT && hi->kind == ARG_INT && dim_equal(lo->dim, hi->dim);
}

/* Adds calls that end the run unless lo <= value <= hi.  No kernel does that, but sym_max takes
 * only ints: a call with the message as its second operand fails in every runtime, and
 * runtime-lite reports the message. */
static void check_range(Scope *s, const Node *n)
{
    Plan *p = s->plan;
    bool is_one = is_one_number(n);
    bool has_lo = arg_get(n, "lo").kind != ARG_NONE,
         has_hi = arg_get(n, "hi").kind != ARG_NONE && !is_one;
    const char *first = is_one ? "executorch_prim::eq.Scalar" : "executorch_prim::ge.Scalar";
    int low = has_lo ? compare(s, n, first, 1) : -1;
    int high = has_hi ? compare(s, n, "executorch_prim::le.Scalar", 2) : -1;
    int past = jump(p, 0);
    if (low >= 0)
        p->instr[low].b = p->n_instrs;
    if (high >= 0)
        p->instr[high].b = p->n_instrs;
    int unread = scratch_once(p, ETC_I64, &p->unread);
    int text = literal_text(p, arg_get(n, "what").str);
    call3(p, "executorch_prim::sym_max.Scalar", argument_value(s, n, 0), text, unread);
    p->instr[past].b = p->n_instrs;
}

static void visit(Scope *s, const Node *n)
{
    PteFile *e = s->plan->file;
    const Node *around = s->plan->at;
    s->plan->at = n;
    if (!schema_check(n, e->diag)) {
        e->failed = true;
    } else if (is_free_view(s, n)) {
        show_view(s, n);
    } else if (n->op == OP_CONSTANT) {
        constant(s, n);
    } else if (n->op == OP_CHECK_RANGE) {
        check_range(s, n);
    } else if (has_parts(n)) {
        join_parts(s, n);
    } else if (n->op == OP_COND) {
        cond(s, n);
    } else if (n->op == OP_WHILE_LOOP) {
        while_loop(s, n);
    } else if (n->op == OP_DELEGATE) {
        delegate_call(s, n);
    } else if (!session_calls(n->graph->program->session, node_row(n)) || !n->n_out) {
        e->failed = true;
        diag_unsupported(e->diag, n->loc, "the .pte runtime has no kernel for it");
    } else {
        kernel_call(s, n);
    }
    for (int i = 0; e->failed && i < n->n_out; i++)
        put_placeholder(s, n->out[i]);
    s->plan->at = around;
}

static void graph_body(Scope *s)
{
    for (const Node *n = s->graph->first; n; n = n->next)
        visit(s, n);
}

/* -- updates ----------------------------------------------------------------------------- */

static bool needs_copy(Scope *s, const Update *u)
{
    Place from = value_place(u->value), to = value_place(u->target);
    return value_of(s, u->value) != value_of(s, u->target) &&
           !(to.pool > 0 && same_place(from, to) && type_equal(u->value->type, u->target->type));
}

typedef struct Copies {
    const Update **pending; /* by value index of the target; NULL: none */
    int *readers;           /* by value index: the pending copies that read its old bytes */
} Copies;

static void copy_back(Scope *s, const Update *u)
{
    int to = value_of(s, u->target);
    call4(s->plan, "aten::copy_", to, value_of(s, u->value), literal_bool(s->plan, false), to);
}

/* Adds the copy of u if its target may be overwritten, then the copy that waited until u had read
 * its target, and so on.  Returns the number of copies. */
static int copy_chain(Scope *s, Copies *c, const Update *u)
{
    int n = 0;
    while (u && !c->readers[u->target->index]) {
        int source = s->root[u->value->index]->index;
        copy_back(s, u);
        c->pending[u->target->index] = NULL;
        n++;
        assert(c->readers[source] > 0);
        c->readers[source]--;
        u = c->pending[source];
    }
    return n;
}

/* Adds the copies of updates.  All updates read the values from before the updates, so a state is
 * overwritten only after it is read. */
static void graph_updates(Scope *s)
{
    const Graph *g = s->graph;
    PteFile *e = s->plan->file;
    Copies c = {0};
    int left = 0;
    for (int i = 0; i < g->n_updates; i++)
        if (needs_copy(s, &g->update[i]))
            left++;
    if (!left)
        return;
    c.pending = NEW(e->arena, const Update *, g->n_values + 1);
    c.readers = NEW(e->arena, int, g->n_values + 1);
    bool *written = NEW(e->arena, bool, g->n_values + 1);
    for (int i = 0; i < g->n_updates; i++)
        if (needs_copy(s, &g->update[i])) {
            c.pending[g->update[i].target->index] = &g->update[i];
            c.readers[s->root[g->update[i].value->index]->index]++;
            written[g->update[i].target->index] = true;
        }
    for (int i = 0; i < g->n_updates; i++)
        if (c.pending[g->update[i].target->index] == &g->update[i])
            left -= copy_chain(s, &c, &g->update[i]);
    Loc loc = {.file = e->program->name, .node = g->name};
    if (left)
        fault(e, loc, "updates exchange the values of states");
    for (int i = 0; i < g->n_out && s->graph == s->plan->graph; i++)
        if (written[s->root[g->out[i]->index]->index])
            fault(e, loc, "an output returns the old value of a state, which an update overwrites");
}

/* -- methods ----------------------------------------------------------------------------- */

static FlatRef instruction(PteFile *e, const Instr *i)
{
    Flat *f = e->flat;
    bool is_call = i->type == KERNEL_CALL || i->type == DELEGATE_CALL;
    FlatRef args = is_call ? flat_vector(f, i->arg, (size_t)i->n_args, 4) : 0;
    flat_begin(f, N_KERNEL_CALL_SLOTS); /* calls of delegates have the same slots */
    if (is_call) {
        flat_u32(f, KERNEL_OPERATOR, (uint32_t)i->a);
        flat_ref(f, KERNEL_ARGS, args);
    } else if (i->type == MOVE_CALL) {
        flat_u32(f, MOVE_FROM, (uint32_t)i->a);
        flat_u32(f, MOVE_TO, (uint32_t)i->b);
    } else {
        flat_u32(f, JUMP_CONDITION, (uint32_t)i->a);
        flat_u32(f, JUMP_DESTINATION, (uint32_t)i->b);
    }
    FlatRef table = pte_end(e);
    flat_begin(f, N_INSTRUCTION_SLOTS);
    flat_u8(f, INSTRUCTION_TYPE, (uint8_t)i->type);
    flat_ref(f, INSTRUCTION_VALUE, table);
    return pte_end(e);
}

static FlatRef chains(Plan *p)
{
    PteFile *e = p->file;
    FlatRef *item = NEW(e->arena, FlatRef, p->n_instrs + 1);
    for (int i = 0; i < p->n_instrs; i++) {
        assert(p->instr[i].type != JUMP_FALSE_CALL || p->instr[i].b <= p->n_instrs);
        item[i] = instruction(e, &p->instr[i]);
    }
    FlatRef instructions = flat_refs(e->flat, item, (size_t)p->n_instrs);
    flat_begin(e->flat, N_CHAIN_SLOTS);
    flat_ref(e->flat, CHAIN_INSTRUCTIONS, instructions);
    FlatRef chain = pte_end(e);
    return flat_refs(e->flat, &chain, 1);
}

/* Returns the table of an operator.  "aten::add.out" is the operator "aten::add" with the overload
 * "out". */
static FlatRef operator_table(PteFile *e, const char *op)
{
    size_t n = strcspn(op, ".");
    FlatRef name = shared_string(e, arena_str(e->arena, op, n));
    FlatRef overload = shared_string(e, op[n] ? op + n + 1 : "");
    flat_begin(e->flat, N_OPERATOR_SLOTS);
    flat_ref(e->flat, OPERATOR_NAME, name);
    flat_ref(e->flat, OPERATOR_OVERLOAD, overload);
    return pte_end(e);
}

static FlatRef operators(Plan *p)
{
    FlatRef *item = NEW(p->file->arena, FlatRef, p->n_ops + 1);
    for (int i = 0; i < p->n_ops; i++)
        item[i] = operator_table(p->file, p->op[i]);
    return flat_refs(p->file->flat, item, (size_t)p->n_ops);
}

/* Returns the table that says how Python nests inputs and outputs.  The runtime requires it, but
 * its texts may be empty. */
static FlatRef container(PteFile *e)
{
    FlatRef empty = shared_string(e, "");
    flat_begin(e->flat, N_CONTAINER_SLOTS);
    flat_ref(e->flat, CONTAINER_INPUTS, empty);
    flat_ref(e->flat, CONTAINER_OUTPUTS, empty);
    return pte_end(e);
}

enum { DELEGATE_SLACK = 64 }; /* XNNPACK may read past the end of its inputs */

static FlatRef pool_sizes(const Plan *p)
{
    int n = p->graph->n_pools;
    int64_t *bytes = NEW(p->file->arena, int64_t, n + 2); /* entry 0 is reserved */
    for (int i = 0; i < n; i++)
        bytes[i + 1] = p->graph->pool[i];
    if (n && p->n_delegates)
        bytes[n] += DELEGATE_SLACK;
    return shared_vector(p->file, bytes, (size_t)(n ? n + 1 : 2), 8);
}

static FlatRef inputs(Scope *s)
{
    PteFile *e = s->plan->file;
    const Graph *g = s->graph;
    int *in = NEW(e->arena, int, g->n_in + 1);
    for (int i = 0; i < g->n_in; i++) {
        in[i] = value_define(s, g->in[i]);
        if (g->in[i]->type.rank == SCALAR && !g->in[i]->type.is_none && !g->in[i]->literal) {
            e->failed = true;
            diag_unsupported(e->diag, (Loc){.file = e->program->name, .node = g->in[i]->name},
                             "a .pte takes tensors only, and this input is a number");
        }
    }
    return shared_vector(e, in, (size_t)g->n_in, 4);
}

static FlatRef outputs(Scope *s)
{
    PteFile *e = s->plan->file;
    int *out = NEW(e->arena, int, s->graph->n_out + 1);
    for (int i = 0; i < s->graph->n_out; i++)
        out[i] = value_of(s, s->graph->out[i]);
    return shared_vector(e, out, (size_t)s->graph->n_out, 4);
}

static Plan plan_new(PteFile *e, const Graph *g)
{
    size_t n = (size_t)e->program->n_ids + 1;
    return (Plan){.file = e, .graph = g, .state_value = NEW(e->arena, int, n),
                  .state_buffer = NEW(e->arena, uint32_t, n)};
}

static void keep_source(const Plan *p)
{
    PteFile *e = p->file;
    PteSource s = {p->graph->name, NEW(e->arena, const Node *, p->n_instrs + 1), p->n_instrs};
    for (int i = 0; i < p->n_instrs; i++)
        s.node[i] = p->instr[i].node;
    PUSH(e->arena, e->stats->source, e->stats->n_sources, s);
}

static FlatRef method(PteFile *e, const Graph *g)
{
    Flat *f = e->flat;
    Plan p = plan_new(e, g);
    Scope s = scope_new(&p, g);
    FlatRef in = inputs(&s);
    graph_body(&s);
    FlatRef out = outputs(&s);
    graph_updates(&s);
    FlatRef name = shared_string(e, g->name), meta = container(e), chain = chains(&p);
    FlatRef values = flat_refs(f, p.value, (size_t)p.n_values), ops = operators(&p);
    FlatRef delegates = flat_refs(f, p.delegate, (size_t)p.n_delegates), pools = pool_sizes(&p);
    flat_begin(f, N_PLAN_SLOTS);
    flat_ref(f, PLAN_NAME, name);
    flat_ref(f, PLAN_CONTAINER, meta);
    flat_ref(f, PLAN_VALUES, values);
    flat_ref(f, PLAN_INPUTS, in);
    flat_ref(f, PLAN_OUTPUTS, out);
    flat_ref(f, PLAN_CHAINS, chain);
    flat_ref(f, PLAN_OPERATORS, ops);
    flat_ref(f, PLAN_DELEGATES, delegates);
    flat_ref(f, PLAN_POOLS, pools);
    e->stats->n_values += p.n_values;
    e->stats->n_instructions += p.n_instrs;
    e->stats->n_operators += p.n_ops;
    keep_source(&p);
    return pte_end(e);
}

/* -- the file ---------------------------------------------------------------------------- */

/* Returns the methods sorted by name, as in the official files. */
static const Graph **sorted_methods(const Program *p, Arena *a)
{
    const Graph **g = NEW(a, const Graph *, p->n_methods + 1);
    for (int i = 0; i < p->n_methods; i++) {
        int at = i;
        for (; at && strcmp(g[at - 1]->name, p->method[i]->name) > 0; at--)
            g[at] = g[at - 1];
        g[at] = p->method[i];
    }
    return g;
}

bool emit_pte(const Program *p, Arena *a, OutFile *out, PteStats *stats, Diag *d)
{
    PteFile e = {.program = p, .arena = a, .flat = flat_new(a), .diag = d, .stats = stats,
                 .constants.align = 16, .mutables.align = 1, .blobs.align = 1, .named.align = 1};
    const Graph **method_of = sorted_methods(p, a);
    FlatRef *plan = NEW(a, FlatRef, p->n_methods + 1);
    *stats = (PteStats){0};
    *out = (OutFile){0};
    if (p->stage != STAGE_PLANNED)
        return diag_error(d, (Loc){.file = p->name}, "a .pte is made of a program in stage "
                          "'planned', not '%s'", stage_name[p->stage]);
    for (int i = 0; i < p->n_methods; i++)
        plan[i] = method(&e, method_of[i]);
    return !e.failed && pte_finish(&e, plan, p->n_methods, out);
}
