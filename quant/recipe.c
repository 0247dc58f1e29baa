/* recipe.c -- which nodes the rules of a recipe apply to. */
#include "quant/internal.h"
#include <string.h>

const char *const metric_name[] = {"top1", "cosine", "sqnr", "max_abs_error", NULL};

/* -- globs ------------------------------------------------------------------------------------ */

/* Returns whether the glob matches s, or the part of s before an `end` that is not 0.  Only the
 * last '*' is ever taken up again, so that time is at most the product of the lengths. */
static bool glob_matches(const char *glob, const char *s, char end)
{
    const char *star = NULL, *retry = NULL;
    for (;;) {
        if (*glob == '*') {
            star = ++glob;
            retry = s;
        } else if (!*glob && (!*s || (end && *s == end))) {
            return true;
        } else if (*s && *glob && (*glob == *s || *glob == '?')) {
            glob++;
            s++;
        } else if (star && *retry) {
            glob = star;
            s = ++retry;
        } else {
            return false;
        }
    }
}

/* Copies the part "conv2d" of "aten.conv2d.default". */
static void op_stem(const char *target, char stem[64])
{
    const char *from = strchr(target, '.');
    from = from ? from + 1 : target;
    size_t n = strcspn(from, ".");
    n = n < 63 ? n : 63;
    memcpy(stem, from, n);
    stem[n] = '\0';
}

static bool op_matches(const char *glob, const char *target)
{
    char stem[64];
    op_stem(target, stem);
    return glob_matches(glob, target, 0) || glob_matches(glob, stem, 0);
}

static const char *name_of(const Node *n)
{
    return n->loc.node ? n->loc.node : n->n_out ? n->out[0]->name : "";
}

static const char *module_of(const Node *n)
{
    return n->loc.module ? n->loc.module : "";
}

static const char *backend_name(const Backend *b)
{
    return b ? b->name : "portable";
}

static bool rule_matches(const QuantRule *r, const Node *n, const Backend *b)
{
    return (!r->name || glob_matches(r->name, name_of(n), 0)) &&
           (!r->op || op_matches(r->op, node_target(n))) &&
           (!r->module || glob_matches(r->module, module_of(n), '.')) &&
           (!r->backend || glob_matches(r->backend, backend_name(b), 0));
}

QuantChoice recipe_choice(const Recipe *r, const Node *n, const Backend *backend)
{
    const QuantFormat as_it_is = {.dtype = ETC_F32};
    QuantChoice c = {.activation = as_it_is, .weight = as_it_is};
    for (int i = 0; i < r->n_rules; i++) {
        const QuantRule *rule = &r->rule[i];
        if (!rule_matches(rule, n, backend))
            continue;
        c.activation = rule->has_activation ? rule->activation : c.activation;
        c.weight = rule->has_weight ? rule->weight : c.weight;
        c.algorithms = rule->has_algorithms ? rule->algorithms : c.algorithms;
        c.with_samples = rule->has_with_samples ? rule->with_samples : c.with_samples;
    }
    return c;
}

/* -- scopes that match nothing ---------------------------------------------------------------- */

/* A field of a scope, and the most similar name in the model. */
typedef struct Nearest {
    const char *glob;
    char end;
    Near near;
    bool is_met;
} Nearest;

typedef enum Field { F_NAME, F_OP, F_MODULE, F_BACKEND, N_FIELDS } Field;

typedef struct Check {
    const Recipe *recipe;
    const Program *program;
    Arena *tmp;
    bool *met; /* by rule: a node matches its scope */
    int rule;  /* the rule whose scope has these fields */
    Nearest field[N_FIELDS];
} Check;

typedef void Visit(Check *c, const Node *n, const Backend *b);

static void visit_graph(Check *c, const Graph *g, Visit *visit)
{
    Uses u = graph_uses(g, c->tmp);
    for (const Node *n = g->first; n; n = n->next) {
        visit(c, n, taker_of(n, &u));
        for (const Graph *inner = NULL; (inner = region_next(n, inner));)
            visit_graph(c, inner, visit);
    }
}

static void visit_program(Check *c, Visit *visit)
{
    for (int i = 0; i < c->program->n_methods; i++)
        visit_graph(c, c->program->method[i], visit);
}

static void mark_rules(Check *c, const Node *n, const Backend *b)
{
    for (int i = 0; i < c->recipe->n_rules; i++)
        c->met[i] = c->met[i] || rule_matches(&c->recipe->rule[i], n, b);
}

enum { MOST_DETAILED = 20 };

/* Compares a name of the model with a field.  The name is copied, because it may lie in memory that
 * the next node's name overwrites. */
static void offer(Arena *tmp, Nearest *f, const char *text)
{
    if (!f->glob || f->is_met || !*text)
        return;
    f->is_met = glob_matches(f->glob, text, f->end);
    if (near_consider(&f->near, text))
        f->near.best = arena_str(tmp, text, strlen(text));
}

static void offer_node(Check *c, const Node *n, const Backend *b)
{
    char stem[64];
    op_stem(node_target(n), stem);
    offer(c->tmp, &c->field[F_NAME], name_of(n));
    offer(c->tmp, &c->field[F_OP], node_target(n));
    offer(c->tmp, &c->field[F_OP], stem);
    offer(c->tmp, &c->field[F_MODULE], module_of(n));
    offer(c->tmp, &c->field[F_BACKEND], backend_name(b));
}

/* Reports each field that matches nothing in the model, with the most similar name. */
static void report_rule(Check *c, Diag *d)
{
    static const char *const what[N_FIELDS] = {"node", "operator", "module", "node of backend"};
    const QuantRule *r = &c->recipe->rule[c->rule];
    const char *glob[N_FIELDS] = {r->name, r->op, r->module, r->backend};
    int n_reported = 0;
    for (int f = 0; f < N_FIELDS; f++)
        c->field[f] = (Nearest){glob[f], f == F_MODULE ? '.' : '\0', near_word(glob[f]), false};
    visit_program(c, offer_node);
    Loc loc = {.file = c->recipe->file, .line = r->line, .column = r->column};
    for (int f = 0; f < N_FIELDS; f++) {
        const Nearest *at = &c->field[f];
        if (!at->glob || at->is_met)
            continue;
        diag_error(d, loc, "scope matches nothing: the model has no %s '%s'%s", what[f], at->glob,
                   near_text(c->tmp, &at->near));
        n_reported++;
    }
    if (!n_reported)
        diag_error(d, loc, "scope matches nothing: no node of the model matches all of its fields");
}

bool recipe_check_scopes(const Recipe *r, const Program *p, Diag *d)
{
    int n_reported = 0;
    Check c = {.recipe = r, .program = p, .tmp = arena_new()};
    c.met = NEW(c.tmp, bool, r->n_rules + 1);
    visit_program(&c, mark_rules);
    for (c.rule = 0; c.rule < r->n_rules; c.rule++) {
        const QuantRule *rule = &r->rule[c.rule];
        bool has_scope = rule->name || rule->op || rule->module || rule->backend;
        if (c.met[c.rule] || !rule->line || !has_scope)
            continue;
        if (n_reported++ < MOST_DETAILED) /* each of these reports walks the whole model */
            report_rule(&c, d);
        else
            diag_error(d, (Loc){.file = r->file, .line = rule->line, .column = rule->column},
                       "scope matches nothing");
    }
    arena_free(c.tmp);
    return !n_reported;
}
