/* composite.c -- interprets the rules of composites.txt: operators that are formulas over others.
 *
 * Data that a rule knows at compile time are arguments of the IR: numbers, sizes, lists, dtypes.
 * Tensors are values of the graph; arithmetic with them is built as nodes before the node that is
 * rewritten.  Loops run over known numbers, so every rule ends.  The condition of a branch must be
 * known too, else the node is refused with this reason.  A mistake in a rule is a bug of etc.
 */
#include "passes/composite.h"
#include <string.h>

static const Arg none = {.kind = ARG_NONE};

/* The names of one rule.  In the rule of an operator, names that are not set are arguments of
 * the node.  If another rule calls the operator, they are the arguments of the call. */
typedef struct Scope {
    const RuleBody *rule;
    Arg *v;
    bool *is_set;
    const Schema *schema; /* of a called operator, or NULL */
    const Given *given;
} Scope;

static Arg value_of(Play *p, Scope *s, const Form *f);
static void run(Play *p, Scope *s, const Form *f);

Arg play_wrong(Play *p, const char *what)
{
    if (!p->failed && p->n->custom)
        diag_error(p->r->d, p->n->custom->at, "%s %s", p->rule, what);
    else if (!p->failed)
        diag_fault(p->r->d, FAULT_BUG, p->n->loc, "the rule of %s %s", p->rule, what);
    p->failed = true;
    return none;
}

bool node_takes_number(const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->type.rank == SCALAR)
            return true;
    return false;
}

/* Returns whether a number stands where the schema has a tensor. */
static bool has_number_for_tensor(const Node *n)
{
    const Schema *s = op_schema(n->graph->program, n->op);
    for (int i = 0; i < n->n_args; i++)
        if (s->arg[i].type == SCH_TENSOR && 1u << n->arg[i].kind & (1u << ARG_INT | 1u << ARG_FLOAT | 1u << ARG_BOOL))
            return true;
    return node_takes_number(n);
}

/* Reports that a rule does not fit its operands.  If an operator's types come from the file, or a
 * number replaced a tensor, nothing has checked its operands before, so that is the file's fault;
 * else it is the rule's. */
Arg play_misfit(Play *p, const char *what)
{
    if (p->n->custom || (!op_is_given(p->n->op) && !node_is_complex(p->n) && !has_number_for_tensor(p->n)))
        return play_wrong(p, what);
    if (!p->failed)
        diag_error(p->r->d, p->n->loc, "its operands do not fit: its rule %s", what);
    p->failed = true;
    return none;
}

Arg play_refuse(Play *p, const char *why)
{
    if (!p->failed)
        diag_unsupported(p->r->d, p->n->loc, "%s", why);
    p->failed = true;
    return none;
}

static int64_t most_work(const Rewrite *r)
{
    return MOST_WORK + WORK_OF_VALUE * (int64_t)r->first_new;
}

bool play_has_room(const Rewrite *r)
{
    return r->work < most_work(r) / 2;
}

/* Counts work of a rule and refuses the node if there is too much, because numbers of a hostile
 * file may decide how long lists are and how often loops run. */
bool play_work(Play *p, int64_t units)
{
    p->r->work += units;
    if (p->r->work > most_work(p->r))
        play_refuse(p, "its sizes are too large for the rule that lowers it");
    return !p->failed;
}

/* -- what is computed -------------------------------------------------------------------------- */

Arg of_value(Play *p, Value *v)
{
    if (!v) {
        p->failed = true;
        return none;
    }
    PUSH(p->r->tmp, p->value, p->n_values, v);
    return (Arg){.kind = ARG_VALUE, .slot = p->n_values - 1};
}

Value *tensor(const Play *p, Arg a)
{
    assert(a.kind != ARG_VALUE || a.slot < p->n_values);
    return a.kind == ARG_VALUE ? p->value[a.slot] : NULL;
}

Arg of_float(double f)
{
    return (Arg){.kind = ARG_FLOAT, .f = f};
}

Arg of_dim(Dim d)
{
    return (Arg){.kind = ARG_INT, .dim = d};
}

Arg of_bool(bool b)
{
    return (Arg){.kind = ARG_BOOL, .b = b};
}

Arg list_new(Play *p, int n, Arg **item)
{
    n = play_work(p, n) ? n : 0;
    *item = NEW(p->r->tmp, Arg, n + 1);
    return (Arg){.kind = ARG_LIST, .list = {*item, n}};
}

Dim dim_of(Play *p, Arg a)
{
    if (a.kind == ARG_INT)
        return a.dim;
    if (a.kind == ARG_BOOL)
        return DIM(a.b);
    if (a.kind == ARG_VALUE)
        play_refuse(p, "one of its integers is computed when the model runs");
    else
        play_misfit(p, "uses a value as an integer that is not one");
    return DIM(0);
}

int64_t int_of(Play *p, Arg a)
{
    Dim d = dim_of(p, a);
    if (d.expr)
        play_refuse(p, "a symbolic size decides how it is computed: export with this size fixed");
    return d.expr ? 0 : d.value;
}

static bool truth_of(Play *p, Arg a)
{
    if (a.kind == ARG_BOOL)
        return a.b;
    if (a.kind == ARG_VALUE)
        play_refuse(p, "one of its flags is computed when the model runs");
    else
        play_misfit(p, "uses a value as a condition that is not one");
    return false;
}

/* -- names ------------------------------------------------------------------------------------- */

Arg play_argument(Play *p, Arg a)
{
    a.key = NULL;
    if (a.kind == ARG_VALUE)
        return of_value(p, p->n->in[a.slot]);
    if (a.kind == ARG_LIST) {
        Arg *item, list = list_new(p, a.list.n, &item);
        for (int i = 0; i < list.list.n; i++)
            item[i] = play_argument(p, a.list.item[i]);
        return list;
    }
    return a;
}

/* Returns the list of the node's results as they are recorded. */
static Arg recorded_results(Play *p)
{
    Arg *item, list = list_new(p, p->n->n_out, &item);
    for (int i = 0; i < list.list.n; i++)
        item[i] = of_value(p, p->n->out[i]);
    return list;
}

static int given_for(const Given *g, int i, const char *name)
{
    if (i < g->n && !g->key[i])
        return i;
    for (int k = 0; k < g->n; k++)
        if (g->key[k] && !strcmp(g->key[k], name))
            return k;
    return -1;
}

static Arg given(Play *p, const Scope *s, const char *name)
{
    int i = schema_find(s->schema, name, strlen(name));
    int at = i < 0 ? -1 : given_for(s->given, i, name);
    if (i >= 0)
        return at < 0 ? s->schema->arg[i].fallback : s->given->v[at];
    return play_wrong(p, "calls an operator whose result follows from what an export records");
}

static Arg unset(Play *p, const Scope *s, const char *name)
{
    if (s->schema)
        return given(p, s, name);
    int i = p->depth ? -1 : arg_find(p->n, name);
    if (i >= 0)
        return play_argument(p, p->n->arg[i]);
    if (!p->depth && !strcmp(name, "out") && p->n->n_out)
        return of_value(p, p->n->out[0]);
    if (!p->depth && !strcmp(name, "outs"))
        return recorded_results(p);
    return play_wrong(p, arena_printf(p->r->tmp, "names %s, which it does not have", name));
}

static void bind(Scope *s, int i, Arg v)
{
    assert(i >= 0 && i < s->rule->n_locals);
    s->v[i] = v;
    s->is_set[i] = true;
}

static Arg named(Play *p, Scope *s, int i)
{
    if (!s->is_set[i])
        bind(s, i, unset(p, s, s->rule->local[i]));
    return s->v[i];
}

/* -- nodes ------------------------------------------------------------------------------------- */

static Arg to_node(Play *p, Node *to, Arg a)
{
    if (a.kind == ARG_VALUE)
        return node_use(to, p->value[a.slot]);
    if (a.kind == ARG_LIST) {
        a.list.n = play_work(p, a.list.n) ? a.list.n : 0;
        Arg *item = NEW(p->r->g->program->arena, Arg, a.list.n + 1);
        for (int i = 0; i < a.list.n; i++)
            item[i] = to_node(p, to, a.list.item[i]);
        a.list.item = item;
    }
    return a;
}

/* Pushes arguments by position, then by key; the others get the schema's defaults. */
static void push_given(Play *p, Node *m, const Given *g)
{
    const Schema *s = node_schema(m);
    int used = 0;
    for (int i = 0; i < s->n_args; i++) {
        int at = given_for(g, i, s->arg[i].name);
        node_push(m, at < 0 ? s->arg[i].fallback : to_node(p, m, g->v[at]));
        used += at >= 0;
    }
    if (used != g->n)
        play_wrong(p, arena_printf(p->r->tmp, "calls %s with arguments it has not",
                                   node_target(m)));
}

static Arg place_node(Play *p, Node *m, const Given *g)
{
    push_given(p, m, g);
    bool is_half = op_is_given(m->op) && !m->custom && node_is_complex(p->n);
    bool is_placed = !p->failed && play_work(p, WORK_OF_NODE);
    if (is_placed)
        is_placed = is_half ? node_place_half(m, p->n, p->r->d) : node_place(m, p->n, p->r->d);
    if (!is_placed) {
        p->failed = true;
        return none;
    }
    p->n_results = m->n_out < MOST_RESULTS ? m->n_out : MOST_RESULTS;
    for (int i = 0; i < p->n_results; i++)
        p->result[i] = of_value(p, m->out[i]);
    return p->result[0];
}

Arg play_no_node(Play *p)
{
    return play_wrong(p, "computes with tensors; sizes and dtypes follow from sizes and dtypes");
}

Arg play_node(Play *p, OpId op, const Given *g)
{
    assert(op < N_OPS);
    if (p->is_type)
        return play_no_node(p);
    return place_node(p, node_new(p->r->g, op, p->n->loc), g);
}

static Arg play_custom(Play *p, const CustomOp *op, const Given *g)
{
    if (p->is_type)
        return play_no_node(p);
    return place_node(p, node_new_custom(p->r->g, op, p->n->loc), g);
}

/* -- calls ------------------------------------------------------------------------------------- */

/* Interprets a rule; what it returns is in p->result then.  `of` is the schema of an operator that
 * is called, or NULL. */
static void play_text(Play *p, const RuleBody *body, const char *name, const Schema *of,
                      const Given *g)
{
    static const Given nothing = {.n = 0};
    Scope scope = {body, NEW(p->r->tmp, Arg, body->n_locals + 1),
                   NEW(p->r->tmp, bool, body->n_locals + 1), of, g};
    Scope *s = &scope;
    g = of ? &nothing : g;
    if (g->n != s->rule->n_given)
        play_wrong(p, arena_printf(p->r->tmp, "calls %s with other arguments than it has", name));
    for (int i = 0; i < g->n && !p->failed; i++)
        bind(s, i, g->v[i]);
    if (p->failed)
        return;
    if (s->rule->is_expression) {
        p->result[0] = value_of(p, s, s->rule->form);
        p->n_results = 1;
        return;
    }
    run(p, s, s->rule->form);
    if (!p->returned)
        play_wrong(p, arena_printf(p->r->tmp, "has a part that returns nothing: %s", name));
    p->returned = false;
}

static void play_rule(Play *p, int rule, const Schema *of, const Given *g)
{
    const RuleBody *body = rule_body(p->r->g->program, rule, p->r->d);
    if (body)
        play_text(p, body, composite_name(&composites, rule), of, g);
    else
        p->failed = true;
}

Arg play_given(Play *p, const RuleBody *body, const Given *g)
{
    p->n_results = 1;
    play_text(p, body, p->rule, NULL, g);
    return p->result[0];
}

Arg play_body(Play *p, const RuleBody *body)
{
    return play_given(p, body, &(Given){.n = 0});
}

Arg play_own(Play *p)
{
    int rule = rule_of(RULE_OF_NODE, p->n->op);
    p->n_results = 1;
    if (rule < 0 || p->depth)
        return play_wrong(p, "expects a rule of the operator that there is not");
    play_rule(p, rule, NULL, &(Given){.n = 0});
    return p->result[0];
}

static Arg call_rule(Play *p, int rule, const Schema *of, const Given *g)
{
    if (p->depth == MOST_DEPTH)
        return play_wrong(p, "calls too deep");
    p->depth++;
    play_rule(p, rule, of, g);
    p->depth--;
    return p->result[0];
}

/* Calls an operator whose result types come from the file.  If a user's rule calls it there are
 * none, so its own rule runs at once. */
static Arg call_given(Play *p, OpId op, const Given *g)
{
    const Schema *s = op_schema(p->r->g->program, op);
    const char *target = op_target(op);
    int rule = rule_of(RULE_OF_NODE, op), used = 0;
    for (int i = 0; i < s->n_args; i++)
        used += given_for(g, i, s->arg[i].name) >= 0;
    if (used != g->n)
        return play_wrong(p, arena_printf(p->r->tmp, "calls %s with arguments it has not", target));
    if (rule < 0 || p->is_type)
        return play_wrong(
            p, arena_printf(p->r->tmp, "calls %s, whose result only an export records", target));
    return call_rule(p, rule, s, g);
}

static Arg call(Play *p, Scope *s, const Form *f)
{
    Given g; /* too large to be cleared for each call */
    g.n = f->n;
    g.v[0] = none;
    assert(f->n <= MOST_ARGS);
    for (int i = 0; i < f->n && !p->failed; i++) {
        g.v[i] = value_of(p, s, f->part[i]);
        g.key[i] = f->key ? f->key[i] : NULL;
    }
    if (p->failed)
        return none;
    p->n_results = 1;
    if (f->rule >= 0)
        return call_rule(p, f->rule, NULL, &g);
    if (f->function >= 0 && (f->op == OP_NONE || function_takes(f->function, g.v[0])))
        return play_function(p, f->function, &g);
    if (p->n->custom && !f->custom && op_is_given(f->op))
        return call_given(p, f->op, &g);
    return f->custom ? play_custom(p, f->custom, &g) : play_node(p, f->op, &g);
}

/* -- expressions ------------------------------------------------------------------------------- */

/* Notes how deep lists are nested, and refuses too much of it: lists are walked by recursion, and
 * loops of a user's rule could nest them without end. */
static Arg nested(Play *p, Arg list)
{
    int depth = 0;
    for (int i = 0; i < list.list.n; i++)
        if (list.list.item[i].kind == ARG_LIST && list.list.item[i].depth >= depth)
            depth = list.list.item[i].depth + 1;
    list.depth = depth;
    return depth < MOST_LISTS ? list : play_wrong(p, "has lists in lists that are nested too deep");
}

static Arg list_of(Play *p, Scope *s, const Form *f)
{
    Arg *item, list = list_new(p, f->n, &item);
    for (int i = 0; i < f->n && !p->failed; i++)
        item[i] = value_of(p, s, f->part[i]);
    return nested(p, list);
}

static int64_t bound(Play *p, Scope *s, const Form *f)
{
    Arg a = value_of(p, s, f);
    return p->failed ? 0 : int_of(p, a);
}

static Arg list_of_each(Play *p, Scope *s, const Form *f)
{
    int64_t from = bound(p, s, f->part[0]), to = bound(p, s, f->part[1]);
    Arg *item = NULL, list = {.kind = ARG_LIST};
    for (int64_t i = from; i < to && play_work(p, 1); i++) {
        bind(s, f->index, of_dim(DIM(i)));
        PUSH(p->r->tmp, item, list.list.n, value_of(p, s, f->part[2]));
    }
    list.list.item = item;
    return nested(p, list);
}

static bool holds(Play *p, Scope *s, const Form *f)
{
    Arg a = value_of(p, s, f);
    return !p->failed && truth_of(p, a);
}

/* Evaluates a form after all its parts. */
static Arg of_parts(Play *p, Scope *s, const Form *f)
{
    Arg v[3] = {none, none, none};
    assert(f->n <= 3);
    for (int i = 0; i < f->n && !p->failed; i++)
        v[i] = value_of(p, s, f->part[i]);
    if (p->failed)
        return none;
    if (f->kind == FORM_SIGN)
        return play_sign(p, f->index, v[0], v[1]);
    if (f->kind == FORM_NEGATE)
        return play_negate(p, v[0]);
    return f->kind == FORM_INDEX ? play_index(p, v[0], v[1]) : play_part(p, v[0], v[1], v[2]);
}

static Arg value_of(Play *p, Scope *s, const Form *f)
{
    switch (f->kind) {
    case FORM_LITERAL:
        return f->literal;
    case FORM_NAME:
        return named(p, s, f->index);
    case FORM_LIST:
        return list_of(p, s, f);
    case FORM_EACH:
        return list_of_each(p, s, f);
    case FORM_CALL:
        return call(p, s, f);
    case FORM_NOT:
        return of_bool(!holds(p, s, f->part[0]));
    case FORM_AND:
        return of_bool(holds(p, s, f->part[0]) && holds(p, s, f->part[1]));
    case FORM_OR:
        return of_bool(holds(p, s, f->part[0]) || holds(p, s, f->part[1]));
    case FORM_CHOOSE:
        return value_of(p, s, f->part[holds(p, s, f->part[0]) ? 1 : 2]);
    default:
        return of_parts(p, s, f);
    }
}

/* -- statements -------------------------------------------------------------------------------- */

static void assign(Play *p, Scope *s, const Form *f)
{
    Arg v = value_of(p, s, f->part[0]);
    if (f->n_locals > 1 && f->n_locals > p->n_results)
        play_wrong(p, "expects more results than there are");
    for (int i = 0; i < f->n_locals && !p->failed; i++)
        bind(s, f->local[i], f->n_locals > 1 ? p->result[i] : v);
}

static void repeat(Play *p, Scope *s, const Form *f)
{
    int64_t from = bound(p, s, f->part[0]), to = bound(p, s, f->part[1]);
    for (int64_t i = from; i < to && !p->returned && play_work(p, 1); i++) {
        bind(s, f->index, of_dim(DIM(i)));
        run(p, s, f->part[2]);
    }
}

static Scope copied(Play *p, const Scope *s)
{
    Scope copy = *s;
    size_t n = (size_t)s->rule->n_locals;
    copy.v = NEW(p->r->tmp, Arg, n + 1);
    copy.is_set = NEW(p->r->tmp, bool, n + 1);
    memcpy(copy.v, s->v, n * sizeof *s->v);
    memcpy(copy.is_set, s->is_set, n * sizeof *s->is_set);
    return copy;
}

static Value *carried_value(Play *p, Arg a)
{
    Value *v = p->failed ? NULL : tensor(p, a);
    if (!v)
        play_wrong(p, "has a loop that carries or asks what is no tensor");
    return v;
}

/* Builds the condition of a loop, or its statements.  Names that the loop does not carry are
 * valid only inside. */
static LoopPart part_of_loop(Play *p, const Scope *outer, const Form *f, Value *const *start,
                             bool is_test)
{
    Scope s = copied(p, outer);
    LoopPart part = {.before = p->n->prev, .n_out = is_test ? 1 : f->n_locals};
    for (int i = 0; i < f->n_locals; i++) {
        part.in[i] = play_carried(p, start[i]);
        bind(&s, f->local[i], of_value(p, part.in[i]));
    }
    if (is_test)
        part.out[0] = carried_value(p, value_of(p, &s, f->part[0]));
    else
        run(p, &s, f->part[1]);
    if (p->returned)
        play_wrong(p, "returns out of a loop that runs with the model");
    for (int i = 0; i < f->n_locals && !is_test && !p->failed; i++)
        part.out[i] = carried_value(p, named(p, &s, f->local[i]));
    return part;
}

static void build_loop(Play *p, Scope *s, const Form *f)
{
    Value *start[MOST_RESULTS];
    LoopPart part[2];
    if (p->is_type)
        play_no_node(p);
    for (int i = 0; i < f->n_locals && !p->failed; i++)
        start[i] = carried_value(p, named(p, s, f->local[i]));
    for (int i = 0; i < 2 && !p->failed; i++)
        part[i] = part_of_loop(p, s, f, start, i == 0);
    if (!p->failed)
        play_loop(p, &part[0], &part[1], start);
    for (int i = 0; i < f->n_locals && !p->failed; i++)
        bind(s, f->local[i], p->result[i]);
}

static void give(Play *p, Scope *s, const Form *f)
{
    Arg v[MOST_RESULTS];
    assert(f->n <= MOST_RESULTS);
    for (int i = 0; i < f->n && !p->failed; i++)
        v[i] = value_of(p, s, f->part[i]);
    if (p->failed)
        return;
    memcpy(p->result, v, sizeof *v * (size_t)f->n);
    p->n_results = f->n;
    p->returned = true;
}

static void run(Play *p, Scope *s, const Form *f)
{
    Arg why;
    switch ((int)f->kind) {
    case FORM_ASSIGN:
        assign(p, s, f);
        break;
    case FORM_IF:
        if (holds(p, s, f->part[0]))
            run(p, s, f->part[1]);
        else if (!p->failed && f->n > 2)
            run(p, s, f->part[2]);
        break;
    case FORM_FOR:
        repeat(p, s, f);
        break;
    case FORM_LOOP:
        build_loop(p, s, f);
        break;
    case FORM_RETURN:
        give(p, s, f);
        break;
    case FORM_STAY:
        p->stays = p->returned = true;
        break;
    case FORM_REFUSE:
        why = value_of(p, s, f->part[0]);
        play_refuse(p, why.kind == ARG_STRING ? why.str : "is not supported");
        break;
    default:
        for (int i = 0; i < f->n && !p->failed && !p->returned; i++)
            run(p, s, f->part[i]);
    }
}

/* -- the rule of a node ------------------------------------------------------------------------ */

static bool differs(Dim a, Dim b)
{
    return (!a.expr || !b.expr) && !dim_equal(a, b);
}

static const char *type_shown(Play *p, Type t)
{
    const char *s = dtype_name(t.dtype);
    for (int i = 0; i < t.rank; i++)
        s = arena_printf(p->r->tmp, "%s%s%s", s, i ? "," : "[",
                         dim_text(p->r->g->program, t.dim[i]));
    return arena_join(p->r->tmp, s, t.rank > 0 ? "]" : t.rank ? "" : "[]");
}

/* Returns result i of a rule under the sizes that the export recorded for it; open sizes are taken
 * to be these. */
static Value *recorded(Play *p, const Arg *result, int i)
{
    Type t = p->n->out[i]->type;
    Value *v = tensor(p, *result);
    if (!v) {
        play_misfit(p, "does not give a tensor");
        return NULL;
    }
    if (t.is_none || (t.rank == SCALAR && v->type.rank != SCALAR)) {
        diag_error(p->r->d, p->n->loc, "its result %d is recorded as %s, expected a tensor", i,
                   t.is_none ? "none" : "a number");
        return NULL;
    }
    if (v->type.dtype != t.dtype) {
        const char *is = dtype_name(v->type.dtype), *was = dtype_name(t.dtype);
        if (p->n->custom)
            play_wrong(p, arena_printf(p->r->tmp, "gives %s as result %d, which is declared as %s",
                                       is, i, was));
        else if (op_is_given(p->n->op) && !node_is_complex(p->n))
            diag_error(p->r->d, p->n->loc, "result %d is recorded as %s, but computed as %s", i, was,
                       is);
        else
            diag_unsupported(p->r->d, p->n->loc, "its operands give %s by its rule, not %s", is, was);
        return NULL;
    }
    bool stays = v->type.rank == t.rank;
    for (int k = 0; stays && k < t.rank; k++)
        stays = !differs(v->type.dim[k], t.dim[k]);
    if (!stays && p->n->custom) {
        play_wrong(p, arena_printf(p->r->tmp, "gives %s as result %d, which is declared as %s",
                                   type_shown(p, v->type), i, type_shown(p, t)));
        return NULL;
    }
    return stays ? v : build_view(p->r, p->n, v, t.dim, t.rank);
}

/* Replaces the node's results by what the rule has returned. */
static bool take_results(Play *p)
{
    Node *n = p->n;
    bool is_list = p->n_results == 1 && p->result[0].kind == ARG_LIST;
    const Arg *result = is_list ? p->result[0].list.item : p->result;
    if (!p->failed && is_list && p->result[0].list.n != n->n_out)
        play_misfit(p, "gives another number of results");
    else if (!p->failed && !is_list && p->n_results < n->n_out)
        play_wrong(p, "gives too few results");
    for (int i = 0; !p->failed && i < n->n_out; i++) {
        Value *v = recorded(p, &result[i], i);
        if (!v)
            return false;
        rewrite_result(p->r, n, i, v);
    }
    if (!p->failed)
        graph_remove(p->r->g, n);
    return !p->failed;
}

bool rewrite_by_rule(Rewrite *r, Node *n, RuleKind kind)
{
    Play p = {.r = r, .n = n, .rule = op_target(n->op)};
    int rule = rule_of(kind, n->op);
    if (rule < 0)
        play_wrong(&p, "does not exist");
    else
        play_rule(&p, rule, NULL, &(Given){.n = 0});
    return p.stays || take_results(&p);
}

bool rewrite_by_body(Rewrite *r, Node *n, const RuleBody *body, const char *name)
{
    Play p = {.r = r, .n = n, .rule = name};
    play_body(&p, body);
    return take_results(&p);
}

bool decomp_text(Rewrite *r, Node *n)
{
    return rewrite_by_rule(r, n, RULE_OF_NODE);
}
