/* c_group.c -- prints the nodes of a planned graph.  Each group and each copy becomes a static
 * function and a call in NAME_run.  Views that cost nothing are not printed.  cond becomes if and
 * else. */
#include "emit/c_emit.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

bool emit_none(Function *f, const Node *n, Clamp clamp)
{
    (void)clamp;
    return function_refuse(f, n, "has no template for this operator");
}

bool emit_group(Function *f, const Node *n, Clamp clamp)
{
    (void)clamp;
    return function_refuse(f, n, "takes no group inside a group");
}

bool emit_pointwise(Function *f, const Node *n, Clamp clamp)
{
    (void)clamp;
    return function_refuse(f, n, "takes a pointwise node in a group only");
}

/* Returns the emitter of an operator.  A table of functions would be relocated at each start; the
 * jump table of a switch is not. */
static EmitFn *emit_of(OpId op)
{
    switch ((int)op) {
#define OP(id, target, out, schema, flags, access, functional, inplace, infer, decomp, kernel, expr, \
           c, cost, scratch, quant)                                                                  \
    case OP_##id:                                                                                    \
        return emit_##c;
#include "ir/ops.def"
    }
    UNREACHABLE();
}

/* -- bodies ---------------------------------------------------------------------------------- */

static const Node *find_anchor(const Graph *body)
{
    for (const Node *n = body->first; n; n = n->next)
        if (!node_is_pointwise(n))
            return n;
    return NULL;
}

/* Prints the anchor of a group.  Marks in `skip` the results that need no loop of their own: those
 * of the anchor, and that of a clamp that its core can compute. */
static bool emit_anchor(Function *f, const Graph *body, const Node *anchor, bool *skip)
{
    const char *c = op_c(anchor->op);
    Weighted w;
    bool can_clamp = (!strcmp(c, "conv") || !strcmp(c, "fc")) && !node_is_wide(anchor) &&
                     weighted_read(anchor, &w) && !w.is_scaled;
    const Value *v = anchor->out[0];
    for (int i = 0; i < anchor->n_out; i++)
        skip[anchor->out[i]->index] = true;
    return emit_of(anchor->op)(f, anchor, can_clamp ? join_clamp(f, body, &v, skip) : NO_CLAMP);
}

/* -- functions ------------------------------------------------------------------------------- */

static Ports ports_new(Emit *e, int n_in, int n_out)
{
    size_t size = sizeof(const Value *);
    return (Ports){.in = arena_alloc(e->a, (size_t)n_in + 1, size),
                   .out = arena_alloc(e->a, (size_t)n_out + 1, size),
                   .outer_in = arena_alloc(e->a, (size_t)n_in + 1, size),
                   .outer_out = arena_alloc(e->a, (size_t)n_out + 1, size)};
}

static void add_out(Ports *p, const Value *inside, const Value *outer)
{
    if (outer->type.is_none)
        return;
    p->out[p->n_out] = inside;
    p->outer_out[p->n_out++] = outer;
}

static Ports group_ports(Emit *e, const Node *n, const Graph *body)
{
    Ports p = ports_new(e, body->n_in, body->n_out);
    for (int i = 0; i < body->n_in; i++) {
        p.in[i] = body->in[i];
        p.outer_in[p.n_in++] = arg_list_value(n, "args", i);
    }
    for (int i = 0; i < body->n_out; i++)
        add_out(&p, body->out[i], n->out[i]);
    return p;
}

static Ports node_ports(Emit *e, const Node *n)
{
    Ports p = ports_new(e, n->n_in, n->n_out);
    ConcatMoves c = {0};
    if (n->op == OP_CAT)
        c = concat_moves(e, n);
    for (int i = 0; i < n->n_in; i++) {
        bool *is_port = &e->is_port[n->in[i]->index];
        if (value_is_fixed(n->in[i]) || *is_port || (c.moves && !c.moves[i]))
            continue;
        *is_port = true;
        p.in[p.n_in] = n->in[i];
        p.outer_in[p.n_in++] = n->in[i];
    }
    for (int i = 0; i < p.n_in; i++)
        e->is_port[p.in[i]->index] = false;
    for (int i = 0; i < n->n_out; i++)
        add_out(&p, n->out[i], n->out[i]);
    return p;
}

static Function function_new(Emit *e, const Graph *g, const Ports *p)
{
    Function f = {.e = e, .names = c_scope(e), .g = g, .body = {.a = e->a}};
    bool is_bare = g == e->graph;
    f.name_of = is_bare ? e->bare_name : NEW(e->a, const char *, g->n_values + 1);
    f.uses_symbol = NEW(e->a, bool, e->p->n_syms + 1);
    f.is_read = is_bare ? e->bare_read : NEW(e->a, bool, g->n_values + 1);
    for (int i = 0; c_own_names[i]; i++)
        names_take(f.names, c_own_names[i]);
    take_part_names(e, f.names);
    for (int i = 0; i < e->p->n_syms; i++)
        names_take(f.names, e->symbol[i]);
    for (int i = 0; i < p->n_in; i++)
        f.name_of[p->in[i]->index] = names_make(f.names, "", p->in[i]->name);
    for (int i = 0; i < p->n_out; i++)
        f.name_of[p->out[i]->index] = names_make(f.names, "", p->out[i]->name);
    return f;
}

static const Node *last_anchor(const Graph *body)
{
    const Node *n = body->last;
    while (n && node_is_pointwise(n))
        n = n->prev;
    return n;
}

/* Prints the function that makes the bytes `root` of a row of n floats, results of the anchor.  The
 * core of the anchor calls it, so that the floats need no memory of their own. */
static bool emit_then(Function *f, const Graph *body, const Node *anchor, const bool *skip)
{
    Emit *e = f->e;
    Value *v = anchor->out[0], *root = body->out[0];
    Ports p = ports_new(e, 1, 1);
    p.in[p.n_in++] = v;
    p.out[p.n_out++] = root;
    Function row = function_new(e, body, &p);
    const char *x = row.name_of[v->index], *y = row.name_of[root->index];
    const char *count = names_make(row.names, "", "n");
    const Type floats = v->type, bytes = root->type;
    Dim n = dim_symbol(e->method->program, e->rows);
    v->type = (Type){.dtype = floats.dtype, .rank = 1, .dim = &n};
    root->type = (Type){.dtype = bytes.dtype, .rank = 1, .dim = &n};
    e->rows_name = count;
    bool ok = put_pointwise(&row, body, skip, root);
    e->rows_name = "rows";
    v->type = floats;
    root->type = bytes;
    f->then = names_make(e->names, "then_", root->name);
    put(&e->functions, "static void %s(const float *%s, uint8_t *%s, int64_t %s)\n{\n", f->then, x, y,
        count);
    put_n(&e->functions, row.body.s, row.body.n);
    put(&e->functions, "}\n\n");
    e->uses_then = true;
    return ok;
}

static bool emit_body(Function *f, const Node *group, const Graph *body)
{
    bool *skip = NEW(f->e->a, bool, body->n_values + 1);
    const Node *anchor = last_anchor(body);
    bool is_stream = anchor != find_anchor(body);
    const Value *root = body->out[0];
    bool done;
    assert(body->n_out > 0);
    if (!anchor && root->def && (!emit_mcu_group(f, body, &done) || done))
        return done;
    if (anchor && !root->def)
        return function_refuse(f, anchor, "takes no group that returns its input");
    if (anchor && anchor->n_out == 1) /* the anchor writes its sums into the bytes of the result */
        f->name_of[anchor->out[0]->index] = f->name_of[root->index];
    const bool has_then = anchor && anchor->out[0]->type.dtype != root->type.dtype;
    if (has_then) {
        skip[anchor->out[0]->index] = true;
        return emit_then(f, body, anchor, skip) && emit_anchor(f, body, anchor, skip);
    }
    if (anchor && !(is_stream ? emit_stages(f, group, body, skip)
                              : emit_anchor(f, body, anchor, skip)))
        return false;
    return skip[root->index] || put_pointwise(f, body, skip, root);
}

static void put_title(Text *t, const Node *n, const Graph *body, Arena *a)
{
    const char *from = loc_text(n->loc, a);
    put(t, "/* ");
    if (!body)
        put_comment(t, node_target(n));
    for (const Node *m = body ? body->first : NULL; m; m = m->next) {
        put(t, m->prev ? " + " : "");
        put_comment(t, op_target(m->op));
    }
    if (*from) {
        put(t, ", from ");
        put_comment(t, from);
    }
}

static void put_types(Text *t, const Ports *p)
{
    put(t, "\n * ");
    for (int i = 0; i < p->n_in; i++) {
        put(t, i ? ", " : "");
        put_type_comment(t, p->in[i]->type);
    }
    put(t, p->n_in ? "  ->  " : "->  ");
    for (int i = 0; i < p->n_out; i++) {
        put(t, i ? ", " : "");
        put_type_comment(t, p->out[i]->type);
    }
    put(t, " */\n");
}

static const char *comma(int *n)
{
    return (*n)++ ? ", " : "";
}

static void put_signature(Text *t, const Function *f, const Ports *p, const char *name)
{
    int n = 0;
    put(t, "static void %s(", name);
    for (int i = 0; i < p->n_in; i++)
        put(t, "%sconst %s *%s", comma(&n), c_type(p->in[i]->type.dtype),
            f->name_of[p->in[i]->index]);
    for (int i = 0; i < p->n_out; i++)
        put(t, "%s%s *%s", comma(&n), c_type(p->out[i]->type.dtype),
            f->name_of[p->out[i]->index]);
    for (int i = 0; i < f->e->p->n_syms; i++)
        if (f->uses_symbol[i])
            put(t, "%sint64_t %s", comma(&n), f->e->symbol[i]);
    put(t, "%s)\n{\n", f->uses_work ? ", void *work" : "");
}

static void put_call(Emit *e, const Function *f, const Ports *p, const char *name, int indent)
{
    int n = 0;
    put(&e->run, "%*s%s(", indent, "", name);
    for (int i = 0; i < p->n_in; i++) {
        put(&e->run, "%s", comma(&n));
        put_pointer(e, &e->run, p->outer_in[i]);
    }
    for (int i = 0; i < p->n_out; i++) {
        put(&e->run, "%s", comma(&n));
        put_pointer(e, &e->run, p->outer_out[i]);
    }
    for (int i = 0; i < e->p->n_syms; i++)
        if (f->uses_symbol[i])
            put(&e->run, "%s%s", comma(&n), e->symbol[i]);
    if (f->gap_bytes)
        put(&e->run, ", %s);\n", emit_gap(e, f->gap_bytes));
    else
        put(&e->run, "%s);\n", f->uses_work ? ", work" : "");
}

/* Marks parameters as unused if only their sizes are used, as by full_like. */
static void put_unread(Text *t, const Function *f, const Ports *p)
{
    for (int i = 0; i < p->n_in; i++)
        if (!f->is_read[p->in[i]->index])
            put(t, "    (void)%s;\n", f->name_of[p->in[i]->index]);
}

static void put_function(Emit *e, Function *f, const Node *n, const Graph *body,
                         const Ports *p, int indent)
{
    assert(n->n_out > 0);
    const char *name = names_make(e->names, "node_", n->out[0]->name);
    const bool uses_work = f->uses_work && !f->gap_bytes;
    e->uses_work = e->uses_work || uses_work;
    int64_t work = !uses_work       ? 0
                   : f->work_bytes ? f->work_bytes
                                   : e->target->work_bytes;
    e->work_bytes = work > e->work_bytes ? work : e->work_bytes;
    put_title(&e->functions, n, body, e->a);
    put_types(&e->functions, p);
    if (f->parts)
        put_part_signature(f, p, name);
    else
        put_signature(&e->functions, f, p, name);
    put_unread(&e->functions, f, p);
    put_n(&e->functions, f->body.s, f->body.n);
    put(&e->functions, "}\n\n");
    if (f->parts)
        put_part_call(e, f, p, name, indent);
    else
        put_call(e, f, p, name, indent);
    note_layer(e, f, n, name, body);
}

/* Prints a group.  The names of its parameters are saved before the body is printed, because that
 * may rename values. */
static bool emit_group_node(Emit *e, const Node *n, const Graph *body, const Ports *p, int indent)
{
    Function f = function_new(e, body, p);
    const char **named = NEW(e->a, const char *, body->n_values + 1);
    memcpy(named, f.name_of, (size_t)body->n_values * sizeof *named);
    f.parts = parts_open(e, n, body);
    bool ok = emit_body(&f, n, body);
    parts_close(f.parts);
    if (!ok)
        return false;
    f.name_of = named;
    put_function(e, &f, n, body, p, indent);
    return true;
}

static void forget_names(Function *f, const Value *const *v, int n)
{
    for (int i = 0; i < n; i++) {
        f->name_of[v[i]->index] = NULL;
        f->is_read[v[i]->index] = false;
    }
}

static bool emit_bare(Emit *e, const Node *n, const Ports *p, int indent)
{
    Function f = function_new(e, n->graph, p);
    f.parts = parts_open(e, n, NULL);
    bool ok = emit_of(n->op)(&f, n, NO_CLAMP);
    parts_close(f.parts);
    if (ok)
        put_function(e, &f, n, NULL, p, indent);
    forget_names(&f, p->in, p->n_in);
    forget_names(&f, p->out, p->n_out);
    return ok;
}

static bool emit_call(Emit *e, const Node *n, int indent);

/* -- calls ----------------------------------------------------------------------------------- */

bool emit_graph(Emit *e, const Graph *g, int indent)
{
    const Emit outer = *e;
    bool ok = true;
    e->graph = g;
    e->bare_name = NEW(e->a, const char *, g->n_values + 1);
    e->bare_read = NEW(e->a, bool, g->n_values + 1);
    e->is_port = NEW(e->a, bool, g->n_values + 1);
    e->made_along = NEW(e->a, int, g->n_values + 1);
    for (const Node *n = g->first; n; n = n->next) {
        ok = emit_call(e, n, indent) && ok;
        e->now += g == e->method;
    }
    e->graph = outer.graph;
    e->bare_name = outer.bare_name;
    e->bare_read = outer.bare_read;
    e->is_port = outer.is_port;
    e->made_along = outer.made_along;
    return ok;
}

static void put_element(Emit *e, const Value *v)
{
    bool is_name = value_is_fixed(v) || v->place.pool <= POOL_NONE || is_of_method(e, v);
    put(&e->run, is_name ? "" : "(");
    put_pointer(e, &e->run, v);
    put(&e->run, is_name ? "[i]" : ")[i]");
}

void put_move(Emit *e, const Value *from, const Value *to, int indent)
{
    if (place_is_alias(from, to, 0) || to->type.is_none)
        return;
    put(&e->run, "%*sfor (int64_t i = 0; i < ", indent, "");
    put_dim(e, &e->run, c_dims_product(e, to->type.dim, to->type.rank));
    put(&e->run, "; i++) {\n%*s", indent + 4, "");
    put_element(e, to);
    put(&e->run, " = ");
    put_element(e, from);
    put(&e->run, ";\n%*s}\n", indent, "");
}

static void put_moves(Emit *e, const Node *n, const Graph *g, int first, int indent)
{
    for (int i = first; i < g->n_in; i++)
        put_move(e, region_operand(n, i), g->in[i], indent);
}

static bool emit_branch(Emit *e, const Node *n, const Graph *branch, int indent)
{
    put_moves(e, n, branch, 0, indent);
    bool ok = emit_graph(e, branch, indent);
    for (int i = 0; i < branch->n_out; i++)
        put_move(e, branch->out[i], n->out[i], indent);
    return ok;
}

/* Prints a loop.  Carried values lie where the loop's results do. */
static bool emit_loop(Emit *e, const Node *n, int indent)
{
    const Graph *cond = arg_get(n, "cond_graph").graph, *body = arg_get(n, "body_graph").graph;
    for (int i = 0; i < n->n_out; i++)
        put_move(e, region_operand(n, i), n->out[i], indent);
    put(&e->run, "%*swhile (1) {\n", indent, "");
    put_moves(e, n, cond, n->n_out, indent + 4);
    bool ok = emit_graph(e, cond, indent + 4);
    put(&e->run, "%*sif (*(", indent + 4, "");
    put_pointer(e, &e->run, cond->out[0]);
    put(&e->run, ") == 0) {\n%*sbreak;\n%*s}\n", indent + 8, "", indent + 4, "");
    put_moves(e, n, body, n->n_out, indent + 4);
    ok = emit_graph(e, body, indent + 4) && ok;
    for (int i = 0; i < n->n_out; i++)
        put_move(e, body->out[i], n->out[i], indent + 4);
    put(&e->run, "%*s}\n", indent, "");
    return ok;
}

static bool emit_cond(Emit *e, const Node *n, int indent)
{
    const Value *condition = arg_value(n, "pred");
    if (!condition)
        return diag_unsupported(e->d, n->loc, "emit-c expects a tensor as condition");
    put(&e->run, "%*sif (*(", indent, "");
    put_pointer(e, &e->run, condition);
    put(&e->run, ") != 0) {\n");
    bool ok = emit_branch(e, n, arg_get(n, "true_graph").graph, indent + 4);
    put(&e->run, "%*s} else {\n", indent, "");
    ok = emit_branch(e, n, arg_get(n, "false_graph").graph, indent + 4) && ok;
    put(&e->run, "%*s}\n", indent, "");
    return ok;
}

/* Returns the most bytes from the first to the last element of v, including gaps; INT64_MAX if this
 * overflows. */
static int64_t span(Emit *e, const Value *v)
{
    Dim stride[MAX_RANK];
    int64_t n = 1, step, size = (int64_t)etc_dtype_size((int)v->type.dtype);
    assert(v->type.rank <= MAX_RANK);
    type_strides(e, v->type, stride);
    for (int i = 0; i < v->type.rank; i++)
        if (!mul_ok(dim_upper(v->type.dim[i]) - 1, dim_upper(stride[i]), &step) ||
            !add_ok(n, step, &n))
            return INT64_MAX;
    return mul_ok(n, size, &n) ? n : INT64_MAX;
}

/* Returns whether a node is a view whose result lies in the bytes of its input.  This is so only if
 * the plan made it a view, because other live values do not overlap. */
static bool costs_nothing(Emit *e, const Node *n)
{
    const Value *in = first_operand(n), *out = n->out[0];
    if (!(op_info[n->op].flags & VIEW) || !in || in->place.pool != out->place.pool)
        return false;
    if (out->place.pool == POOL_IN || out->place.pool == POOL_OUT)
        return out->place.offset == in->place.offset && out->place.pool != POOL_NONE;
    int64_t at = out->place.offset - in->place.offset;
    return out->place.pool != POOL_NONE && at >= 0 && at < span(e, in);
}

/* Returns whether a node gives a tensor; sizes are printed where they are used. */
static bool has_result(const Node *n)
{
    bool any = false;
    for (int i = 0; i < n->n_out && !(op_info[n->op].flags & CHECK); i++)
        any = any || n->out[i]->type.rank != SCALAR;
    return any;
}

/* Prints code that reads an element that is a size, and the checks that depend on this size. */
static bool emit_item(Emit *e, const Node *n)
{
    const Value *v = n->out[0];
    const Symbol *s;
    int64_t scale, offset;
    if (!v->type.dim || !dim_is_linear(*v->type.dim, &s, &scale, &offset) || scale != 1 || offset ||
        e->item_of[s->index] != arg_value(n, "self"))
        return true;
    if (e->graph != e->method)
        return diag_unsupported(e->d, n->loc, "emit-c reads no size inside a branch");
    put(&e->run, "    const int64_t %s = ", e->symbol[s->index]);
    bool ok = put_scalar_of(e, &e->run, v);
    put(&e->run, ";\n");
    put_symbol_check(e, &e->run, s->index);
    if (e->size_out[s->index])
        put(&e->run, "    *%s = %s;\n", e->size_out[s->index], e->symbol[s->index]);
    e->is_read[s->index] = true;
    put_guard_checks(e, &e->run, s);
    return ok;
}

static bool emit_call(Emit *e, const Node *n, int indent)
{
    if (n->op == OP_LOCAL_SCALAR_DENSE)
        return emit_item(e, n);
    if (!has_result(n))
        return true;
    if (n->out[0]->type.rank == SCALAR)
        return diag_unsupported(e->d, n->loc, "emit-c expects the first result, which is left out");
    if (n->op == OP_COND)
        return emit_cond(e, n, indent);
    if (n->op == OP_WHILE_LOOP)
        return emit_loop(e, n, indent);
    if (costs_nothing(e, n) || (n->op == OP_CAT && !concat_moves(e, n).any_moves)) {
        parts_pass(e, n);
        return true;
    }
    const Graph *body = n->op == OP_GROUP ? arg_get(n, "body").graph : NULL;
    Ports p = body ? group_ports(e, n, body) : node_ports(e, n);
    e->macs = node_cost(n);
    return body ? emit_group_node(e, n, body, &p, indent) : emit_bare(e, n, &p, indent);
}
