/* custom.c -- the operators of --ops: their result types and composites, which are rules in the
 * language of composites.txt.
 *
 * The rules come from a user's file and are parsed when it is read.  The results of a composite
 * are compared with the declared types.  A composite that calls itself, directly or through
 * others, would never end, so it is refused beforehand. */
#include "passes/composite.h"
#include <string.h>

typedef struct CustomRules {
    const RuleBody *dtype[MOST_RESULTS], *sizes[MOST_RESULTS];
    const RuleBody *composite; /* or NULL */
    int state;                 /* used by the search for cycles */
} CustomRules;

/* -- types ------------------------------------------------------------------------------------- */

static bool result_type(Play *p, const CustomRules *rules, int i, Type *out)
{
    Dim dim[MAX_RANK];
    Arg dtype = play_body(p, rules->dtype[i]);
    Arg sizes = p->failed ? dtype : play_body(p, rules->sizes[i]);
    if (!p->failed && dtype.kind != ARG_DTYPE)
        play_wrong(p, "gives no dtype");
    else if (!p->failed && dtype_is_complex(dtype.dtype))
        play_refuse(p, "is declared as complex, which results of your own operators cannot be");
    else if (!p->failed && (sizes.kind != ARG_LIST || sizes.list.n > MAX_RANK))
        play_wrong(p, "does not give a list of at most 16 sizes");
    for (int k = 0; !p->failed && k < sizes.list.n; k++) {
        dim[k] = dim_of(p, sizes.list.item[k]);
        if (!p->failed && (dim_is_bad(dim[k]) || dim_upper(dim[k]) < 0))
            play_wrong(p, arena_printf(p->r->tmp, "gives result %d a size below 0 or past 64 bits",
                                       i));
    }
    if (!p->failed)
        *out = type_tensor(p->r->g->program, dtype.dtype, sizes.list.n, dim);
    return !p->failed;
}

/* Evaluates the rules for result types; this is the InferFn of these operators. */
static bool infer_custom(const Node *n, Type *out, Diag *d)
{
    Arena *tmp = arena_within(n->graph->program->arena);
    Rewrite r = {.g = n->graph, .tmp = tmp, .d = d};
    Play p = {.r = &r, .n = (Node *)(uintptr_t)n, .is_type = true};
    bool ok = true;
    p.rule = arena_printf(tmp, "the rule for results of %s", n->custom->name);
    for (int i = 0; ok && i < n->n_out; i++)
        ok = !n->out[i]->type.is_none || diag_error(d, n->loc, "result %d is recorded as none", i);
    for (int i = 0; ok && i < n->n_out; i++)
        ok = result_type(&p, n->custom->rules, i, &out[i]);
    if (!ok)
        diag_note(d, "asked for node '%s'", n->loc.node ? n->loc.node : "?");
    arena_free(tmp);
    return ok;
}

/* -- composites -------------------------------------------------------------------------------- */

bool decomp_custom(Rewrite *r, Node *n)
{
    const char *name = arena_printf(r->tmp, "the composite of %s", n->custom->name);
    if (rewrite_by_body(r, n, n->custom->rules->composite, name))
        return true;
    diag_note(r->d, "in %s, %s:%d, for node '%s'", name, n->custom->at.file, n->custom->at.line,
              n->loc.node ? n->loc.node : "?");
    return false;
}

static bool leads_back(const Form *f);

/* Returns whether a composite calls itself, directly or through others.  Each is searched once. */
static bool is_endless(CustomRules *rules)
{
    enum { NEW_ONE, OPEN, DONE };
    if (rules->state != NEW_ONE)
        return rules->state == OPEN;
    rules->state = OPEN;
    bool is = rules->composite && leads_back(rules->composite->form);
    rules->state = DONE;
    return is;
}

static bool leads_back(const Form *f)
{
    if (f->custom && is_endless((CustomRules *)(uintptr_t)f->custom->rules))
        return true;
    for (int i = 0; i < f->n; i++)
        if (leads_back(f->part[i]))
            return true;
    return false;
}

bool custom_is_not_taken(const Node *n, const char *key, Diag *d)
{
    const Loc *at = &n->custom->at;
    return diag_unsupported(d, n->loc, "%s:%d: %s has no '%s' and no composite, one of which "
                            "has to compute it here", at->file, at->line, n->custom->name, key);
}

/* -- reading ----------------------------------------------------------------------------------- */

/* Returns how many lines of a text end before `at`. */
static int line_of(const char *text, const char *at)
{
    int n = 0;
    for (; text < at; text++)
        n += *text == '\n';
    return n;
}

static const RuleBody *read_rule(Arena *a, const CustomText *t, const CustomOp *op,
                                 const CustomOps *all, bool is_expression, Diag *d)
{
    RuleFault fault;
    if (!t->text) /* it was refused */
        return NULL;
    const RuleBody *body = rule_read(a, t->text, op->schema, all, is_expression, &fault);
    Loc at = t->at;
    if (body)
        return body;
    if (t->has_lines)
        at.line += 1 + line_of(t->text, fault.at);
    at.column = 0;
    int n = (int)strcspn(fault.at, "\n");
    diag_error(d, at, "'%s' of %s %s%s%.*s", t->key, op->name, fault.what, n ? ", before: " : "",
               n < 40 ? n : 40, fault.at);
    return NULL;
}

bool custom_rules_read(CustomOps *all, CustomOp *op, const CustomTexts *t, Diag *d)
{
    CustomRules *rules = NEW(all->arena, CustomRules, 1);
    bool ok = true;
    for (int i = 0; i < t->n_results; i++) {
        rules->dtype[i] = read_rule(all->arena, &t->dtype[i], op, NULL, true, d);
        rules->sizes[i] = read_rule(all->arena, &t->sizes[i], op, NULL, true, d);
        ok = rules->dtype[i] && rules->sizes[i] && ok;
    }
    if (t->composite.text)
        rules->composite = read_rule(all->arena, &t->composite, op, all, false, d);
    op->rules = rules;
    op->infer = infer_custom;
    op->row.has_decomp = rules->composite != NULL;
    return ok && (!t->composite.text || rules->composite);
}

bool custom_rules_end(const CustomOps *all, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < all->n; i++) {
        CustomRules *rules = (CustomRules *)(uintptr_t)all->item[i]->rules;
        if (rules && is_endless(rules))
            ok = diag_error(d, all->item[i]->at, "the composite of %s comes back to itself",
                            all->item[i]->name);
    }
    return ok;
}
