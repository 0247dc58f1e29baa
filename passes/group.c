/* group.c -- makes groups, the unit of the c tail: every node that computes becomes part of an
 * etc.group node, which is an anchor and the pointwise nodes after it, or pointwise nodes alone.
 * Core -> grouped.
 *
 * One backward walk.  A node joins the group of its users if all of them are pointwise members
 * of one group, its result has the shape and dtype of that group, and nobody else reads it.  At
 * most one node of a group is not pointwise: its anchor.  Two kinds of nodes change the dtype
 * within a group: a dequantize per tensor, and a quantize as the last node of a group.  The core of
 * an anchor writes its result where that of the group lies, in which floats have no room if bytes
 * lie there: then only a product of 8-bit integers can be the anchor, and only if the group reads
 * nothing else, because its core hands rows of floats to a function.  A dequantize of a constant also joins if its result broadcasts, so that no tensor of
 * floats is made of the constant.  Any other node starts a group, of which it is the last node.
 * So only one result of a group is read outside, and at the position of its last node it comes
 * after everything it reads.  Views, concats and control flow are in no group.  Linear. */
#include "passes/group.h"
#include "ir/session.h"
#include <string.h>

typedef struct Grouping {
    Graph *g;
    Arena *tmp;
    Uses uses;
    int n;
    Cluster *cluster;
    int *of; /* cluster of the node that defines a value, by value index */
} Grouping;

/* Returns whether a node stays outside of groups.  Views and concats may cost nothing, and control
 * flow holds groups of its own. */
static bool is_bare(const Node *n)
{
    const OpInfo *row = &op_info[n->op];
    return row->flags & (VIEW | CHECK) || !row->has_template || n->custom ||
           !strcmp(op_c(n->op), "cat") ||
           group_body(n) || !n->n_out;
}

static bool is_uniform(const Node *n)
{
    if (n->n_out != 1 || n->out[0]->type.rank == SCALAR)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->type.rank == SCALAR || n->in[i]->type.dtype != n->out[0]->type.dtype)
            return false;
    return true;
}

/* Returns the one cluster that all users of the node are pointwise members of, or NO_GROUP. */
static int cluster_of_users(const Grouping *s, const Node *n)
{
    const Value *v = n->out[0];
    int all = NO_GROUP;
    if (n->n_out != 1 || s->uses.escapes[v->index])
        return NO_GROUP;
    for (int i = s->uses.first[v->index]; i < s->uses.first[v->index + 1]; i++) {
        const Node *user = s->uses.user[i];
        int c = user->n_out && node_is_pointwise(user) ? s->of[user->out[0]->index] : NO_GROUP;
        if (c == NO_GROUP || (all != NO_GROUP && c != all))
            return NO_GROUP;
        all = c;
    }
    return all;
}

/* Returns whether n makes floats of a constant of bytes that broadcasts over the group.  Each place
 * makes them anew. */
static bool is_spread_constant(const Cluster *c, const Node *n)
{
    Type t = n->out[0]->type;
    const State *s = node_scales_bytes(n) && n->n_in == 1 ? first_operand(n)->state : NULL;
    if (!s || s->kind == ST_MUTABLE || !dtype_is_float(t.dtype) || t.dtype != c->type.dtype ||
        t.rank > c->type.rank)
        return false;
    for (int i = 0; i < t.rank; i++) {
        Dim d = t.dim[t.rank - 1 - i];
        if (!dim_equal(d, DIM(1)) && !dim_equal(d, c->type.dim[c->type.rank - 1 - i]))
            return false;
    }
    return true;
}

/* Returns whether n dequantizes bytes that a loop in fixed point reads again for each element along
 * an axis. */
static bool is_repeated(const Cluster *c, const Node *n)
{
    return n->graph->program->session->is_fixed_point && c->is_narrow && !c->mixed &&
           node_scales_bytes(n) && n->out[0]->type.dtype == ETC_F32 &&
           n->out[0]->type.rank <= c->type.rank;
}

static int reads_of(const Grouping *s, const Value *v)
{
    return s->uses.first[v->index + 1] - s->uses.first[v->index];
}

/* Returns whether n can be the anchor of a group that ends in bytes. */
static bool hands_rows_over(const Grouping *s, const Cluster *c, const Node *n)
{
    const char *core = op_c(n->op);
    bool is_product = !strcmp(core, "integer_conv") || !strcmp(core, "integer_fc");
    return is_product && !n->graph->program->session->is_fixed_point &&
           c->reads == reads_of(s, n->out[0]);
}

static bool may_join(const Grouping *s, const Cluster *c, const Node *n)
{
    if (c->mixed)
        return false;
    if (is_spread_constant(c, n) || is_repeated(c, n))
        return true;
    if (!type_equal(c->type, n->out[0]->type))
        return false;
    if (!node_is_pointwise(n))
        return !c->anchor && (!c->is_narrow || hands_rows_over(s, c, n));
    return is_uniform(n) || node_scales_bytes(n);
}

static void join(Grouping *s, int c, Node *n)
{
    Cluster *to = &s->cluster[c];
    assert(node_is_pointwise(n) || !to->anchor);
    if (!node_is_pointwise(n))
        to->anchor = n;
    to->reads += n->n_in + node_reads_symbols(n) - (to->n ? reads_of(s, n->out[0]) : 0);
    for (int i = 0; i < n->n_out; i++)
        s->of[n->out[i]->index] = c;
    to->n++;
}

static void assign(Grouping *s, Node *n)
{
    int c = cluster_of_users(s, n);
    if (c == NO_GROUP || !may_join(s, &s->cluster[c], n)) {
        Cluster fresh = {.last = n, .type = n->out[0]->type, .mixed = !is_uniform(n)};
        if (node_scales_bytes(n) && n->op == OP_QUANTIZE_PER_TENSOR) {
            fresh.type = arg_value(n, "input")->type;
            fresh.mixed = false;
            fresh.is_narrow = true;
        }
        c = s->n;
        PUSH(s->tmp, s->cluster, s->n, fresh);
    }
    join(s, c, n);
}

static void collect_members(Grouping *s)
{
    for (int c = 0; c < s->n; c++) {
        s->cluster[c].member = NEW(s->tmp, Node *, s->cluster[c].n);
        s->cluster[c].n = 0;
    }
    for (Node *n = s->g->first; n; n = n->next)
        if (n->n_out && s->of[n->out[0]->index] != NO_GROUP) {
            Cluster *c = &s->cluster[s->of[n->out[0]->index]];
            c->member[c->n++] = n;
        }
}

/* -- bodies ------------------------------------------------------------------------------ */

static Arg named(const char *key, Arg a)
{
    a.key = key;
    return a;
}

static const char *anchor_name(const Cluster *c)
{
    return c->n_stages ? "stream" : c->anchor ? op_c(c->anchor->op) : "none";
}

static void push_arguments(Node *group, const Outline *o, const Cluster *c)
{
    assert(c->n_stages <= MAX_STAGES);
    const char *anchor = anchor_name(c);
    Arg tile = arg_int_list(o->body->program, c->rows, c->n_stages);
    node_push(group, outline_operands(o));
    node_push(group, named("anchor", (Arg){.kind = ARG_STRING, .str = anchor}));
    node_push(group, named("tile", tile));
    node_push(group, named("body", (Arg){.kind = ARG_GRAPH, .graph = o->body}));
}

/* Builds the group before its last node and records it as the replacement of that node's results.
 * `inner` is shared by all clusters; it is all NULL before and after. */
static void build_group(Grouping *s, const Cluster *c, Value **inner, Value **with)
{
    assert(c->n > 0 && c->n <= s->g->n_values);
    Node *lead = c->anchor ? c->anchor : c->last;
    Node *group = node_new(s->g, OP_GROUP, lead->loc);
    Outline o = outline_start(group, c->member, c->n, inner);
    for (int i = 0; i < c->last->n_out; i++)
        outline_result(&o, c->last->out[i], with);
    push_arguments(group, &o, c);
    graph_insert(s->g, c->last, group);
    outline_end(&o, c->member, c->n);
}

/* Reports all operators that emit-c has no code for. */
static bool check_templates(const Graph *g, Diag *d)
{
    bool ok = true;
    for (const Node *n = g->first; n; n = n->next) {
        bool is_free = op_info[n->op].flags & CHECK || region_has_places(n) ||
                       group_body(n) || !n->n_out || n->out[0]->type.rank == SCALAR;
        if (!is_free && n->custom && !n->custom->function)
            ok = custom_is_not_taken(n, "c", d);
        else if (!is_free && !strcmp(op_c(n->op), "none"))
            ok = diag_unsupported(d, n->loc, "emit-c has no template for this operator");
        else if (!is_free && !is_bare(n) && node_takes_number(n))
            ok = diag_unsupported(d, n->loc, "emit-c expects numbers that are known before the call");
    }
    return ok;
}

bool pass_group(Graph *g, Arena *tmp, Diag *d)
{
    if (!check_templates(g, d))
        return false;
    g->program->stage = STAGE_GROUPED;
    Grouping s = {.g = g, .tmp = tmp, .uses = graph_uses(g, tmp), .of = NEW(tmp, int, g->n_values)};
    int n_old = g->n_values;
    for (int i = 0; i < n_old; i++)
        s.of[i] = NO_GROUP;
    for (Node *n = g->last; n; n = n->prev)
        if (!is_bare(n))
            assign(&s, n);
    collect_members(&s);
    stream_clusters(g, &s.uses, s.cluster, s.n, s.of, tmp);
    Value **inner = NEW(tmp, Value *, n_old + s.n), **with = NEW(tmp, Value *, 2 * n_old + 1);
    for (int c = s.n - 1; c >= 0; c--)
        if (s.cluster[c].n)
            build_group(&s, &s.cluster[c], inner, with);
    for (int c = 0; c < s.n; c++)
        for (int i = 0; i < s.cluster[c].n; i++)
            graph_remove(g, s.cluster[c].member[i]);
    graph_replace(g, with);
    return true;
}
