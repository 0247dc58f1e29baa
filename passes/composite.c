/* composite.c -- operators that are formulas over others: the rules of composites.txt, played.
 *
 * A rule is read and computed in one go, from its text: there is no tree between.  What it computes
 * with before the program runs are arguments of the IR (numbers, sizes, lists, dtypes); tensors are
 * values of the graph, and what a rule does with tensors is built as nodes before the node that it
 * rewrites.  A branch not taken is read with `skips` set: nothing is looked up or built.  Loops run
 * over known numbers, so every rule ends; what decides a branch must be known too, or the node is
 * refused with that reason.  The rules are ours: what is wrong with one is a fault of ours.
 */
#include "passes/composite.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const Arg none = {.kind = ARG_NONE};

static Arg expression(Play *p);
static void block(Play *p);

/* -- what is wrong --------------------------------------------------------------------------- */

Arg play_wrong(Play *p, const char *what)
{
    if (!p->failed)
        diag_fault(p->r->d, FAULT_BUG, p->n->loc, "the rule %s %s, before: %.30s", p->rule, what,
                   p->at);
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

/* Whether what is read is computed. */
bool play_runs(const Play *p)
{
    return !p->skips && !p->failed;
}

/* -- letters ----------------------------------------------------------------------------------- */

static void skip_blank(Play *p)
{
    for (;; p->at += strcspn(p->at, "\n")) {
        p->at += strspn(p->at, " \t\n");
        if (*p->at != '#')
            return;
    }
}

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* A name, which may have dots inside; 0: there is none. */
static size_t name_length(const char *s)
{
    size_t n = 0;
    if (isdigit((unsigned char)*s))
        return 0;
    while (is_letter(s[n]) || (n && s[n] == '.' && is_letter(s[n + 1]) &&
                               !isdigit((unsigned char)s[n + 1])))
        n++;
    return n;
}

/* Moves behind a sign or word, if it comes next. */
static bool take(Play *p, const char *what)
{
    size_t n = strlen(what);
    skip_blank(p);
    if (strncmp(p->at, what, n) != 0)
        return false;
    if (is_letter(*what) ? is_letter(p->at[n]) || p->at[n] == '.'
                         : n == 1 && strchr("=<>!/", *what) && p->at[1] == '=')
        return false;
    if (!strcmp(what, "/") && p->at[1] == '/')
        return false;
    p->at += n;
    return true;
}

static void expect(Play *p, const char *what)
{
    if (!p->failed && !take(p, what))
        play_wrong(p, arena_printf(p->r->tmp, "wants '%s'", what));
}

static bool is_word(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && !memcmp(s, word, n);
}

/* -- names ------------------------------------------------------------------------------------- */

Arg of_value(Play *p, Value *v)
{
    if (!v)
        return none;
    PUSH(p->r->tmp, p->value, p->n_values, v);
    return (Arg){.kind = ARG_VALUE, .slot = p->n_values - 1};
}

Value *tensor(const Play *p, Arg a)
{
    return a.kind == ARG_VALUE ? p->value[a.slot] : NULL;
}

/* An argument of the node; its values become slots here. */
static Arg of_node(Play *p, Arg a)
{
    a.key = NULL;
    if (a.kind == ARG_VALUE)
        return of_value(p, p->n->in[a.slot]);
    if (a.kind == ARG_LIST) {
        Arg *item = NEW(p->r->tmp, Arg, a.list.n + 1);
        for (int i = 0; i < a.list.n; i++)
            item[i] = of_node(p, a.list.item[i]);
        a.list.item = item;
    }
    return a;
}

static void bind(Play *p, const char *name, size_t len, Arg v)
{
    for (int i = p->scope; i < p->n_names; i++)
        if (p->name[i].len == len && !memcmp(p->name[i].name, name, len)) {
            p->name[i].v = v;
            return;
        }
    PUSH(p->r->tmp, p->name, p->n_names, ((Binding){name, len, v}));
}

static bool dtype_named(const char *s, size_t n, Arg *v)
{
    static const EtcDtype all[] = {
#define X(id, code, size, name) ETC_##id,
        ETC_DTYPES(X)
#undef X
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (is_word(s, n, dtype_name(all[i]))) {
            *v = (Arg){.kind = ARG_DTYPE, .dtype = all[i]};
            return true;
        }
    return false;
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

/* Names that mean the same everywhere. */
static bool constant_named(const char *s, size_t n, Arg *v)
{
    *v = is_word(s, n, "true") || is_word(s, n, "false") ? of_bool(*s == 't')
         : is_word(s, n, "inf")                          ? of_float((double)INFINITY)
         : is_word(s, n, "nan")                          ? of_float((double)NAN)
         : is_word(s, n, "pi")                           ? of_float(3.14159265358979323846)
                                                         : none;
    return v->kind != ARG_NONE || is_word(s, n, "none") || dtype_named(s, n, v);
}

/* Results of the node as they are recorded: outs, and the first of them, out. */
static bool result_named(Play *p, const char *s, size_t n, Arg *v)
{
    if (is_word(s, n, "out") && p->n->n_out) {
        *v = of_value(p, p->n->out[0]);
        return true;
    }
    if (!is_word(s, n, "outs"))
        return false;
    Arg *item = NEW(p->r->tmp, Arg, p->n->n_out + 1);
    for (int i = 0; i < p->n->n_out; i++)
        item[i] = of_value(p, p->n->out[i]);
    *v = (Arg){.kind = ARG_LIST, .list = {item, p->n->n_out}};
    return true;
}

static Arg named(Play *p, const char *s, size_t n)
{
    Arg v;
    for (int i = p->n_names - 1; i >= p->scope; i--)
        if (p->name[i].len == n && !memcmp(p->name[i].name, s, n))
            return p->name[i].v;
    int i = p->depth ? -1 : schema_find(op_schema(p->r->g->program, p->n->op), s, n);
    if (i >= 0)
        return of_node(p, p->n->arg[i]);
    if (constant_named(s, n, &v) || result_named(p, s, n, &v))
        return v;
    return play_wrong(p, arena_printf(p->r->tmp, "names %.*s, which it does not have", (int)n, s));
}

/* -- numbers ----------------------------------------------------------------------------------- */

static bool get_dim(const Arg *a, Dim *d)
{
    *d = a->kind == ARG_BOOL ? DIM(a->b) : a->dim;
    return a->kind == ARG_INT || a->kind == ARG_BOOL;
}

Dim dim_of(Play *p, Arg a)
{
    Dim d;
    if (get_dim(&a, &d))
        return d;
    if (a.kind == ARG_VALUE)
        play_refuse(p, "one of its integers is computed when the model runs");
    else
        play_wrong(p, "takes for an integer what is none");
    return DIM(0);
}

int64_t int_of(Play *p, Arg a)
{
    Dim d = dim_of(p, a);
    if (d.expr)
        play_refuse(p, "a size that is open decides how it is computed: export with this size fixed");
    return d.expr ? 0 : d.value;
}

bool truth_of(Play *p, Arg a)
{
    if (a.kind == ARG_BOOL)
        return a.b;
    if (a.kind == ARG_VALUE)
        play_refuse(p, "one of its flags is computed when the model runs");
    else if (play_runs(p))
        play_wrong(p, "takes for a condition what is none");
    return false;
}

/* -- nodes ------------------------------------------------------------------------------------- */

static Arg to_node(const Play *p, Node *to, Arg a)
{
    if (a.kind == ARG_VALUE)
        return node_use(to, p->value[a.slot]);
    if (a.kind == ARG_LIST) {
        Arg *item = NEW(p->r->g->program->arena, Arg, a.list.n + 1);
        for (int i = 0; i < a.list.n; i++)
            item[i] = to_node(p, to, a.list.item[i]);
        a.list.item = item;
    }
    return a;
}

static bool key_is(const Given *g, int i, const char *name)
{
    return g->key[i] && is_word(g->key[i], g->key_length[i], name);
}

/* Positions first, then keys; what is not given has the schema's default. */
static void push_given(Play *p, Node *m, const Given *g)
{
    const Schema *s = op_schema(p->r->g->program, m->op);
    int used = 0;
    for (int i = 0; i < s->n_args; i++) {
        Arg a = s->arg[i].fallback;
        int at = -1;
        if (i < g->n && !g->key[i])
            at = i;
        for (int k = 0; at < 0 && k < g->n; k++)
            at = key_is(g, k, s->arg[i].name) ? k : -1;
        node_push(m, at < 0 ? a : to_node(p, m, g->v[at]));
        used += at >= 0;
    }
    if (used != g->n)
        play_wrong(p, arena_printf(p->r->tmp, "calls %s with arguments it has not",
                              op_info[m->op].target));
}

Arg play_node(Play *p, OpId op, const Given *g)
{
    Node *m = node_new(p->r->g, op, p->n->loc);
    push_given(p, m, g);
    if (p->failed || !node_place(m, p->n, p->r->d)) {
        p->failed = true;
        return none;
    }
    p->n_results = m->n_out < MOST_RESULTS ? m->n_out : MOST_RESULTS;
    for (int i = 0; i < p->n_results; i++)
        p->result[i] = of_value(p, m->out[i]);
    return p->result[0];
}

/* "sum.dim_IntList" is aten's; without an overload it is the default one. */
static OpId op_named(Play *p, const char *s, size_t n)
{
    const char *dot = memchr(s, '.', n), *name = arena_str(p->r->tmp, s, n);
    bool is_whole = dot && (is_word(s, (size_t)(dot - s), "etc") ||
                            is_word(s, (size_t)(dot - s), "quantized_decomposed"));
    return op_find(is_whole ? name
                            : arena_printf(p->r->tmp, dot ? "aten.%s" : "aten.%s.default", name));
}


Arg list_new(const Play *p, int n)
{
    return (Arg){.kind = ARG_LIST, .list = {NEW(p->r->tmp, Arg, n + 1), n}};
}

/* -- rules ------------------------------------------------------------------------------------- */

static const char *text_of(const char *name, size_t len)
{
    int lo = 0, hi = n_composites;
    while (lo < hi) {
        int at = (lo + hi) / 2, order = strncmp(name, composites[at].name, len);
        if (!order && !composites[at].name[len])
            return composites[at].text;
        if (order > 0)
            lo = at + 1;
        else
            hi = at;
    }
    return NULL;
}

static void play_text(Play *p, const char *text)
{
    p->at = text + 1;
    if (*text != '=') {
        block(p);
        return;
    }
    p->result[0] = expression(p);
    p->n_results = 1;
    p->returned = true;
}

/* Binds "(a, b)" to what is given, by position. */
static const char *bind_given(Play *p, const char *text, const Given *g)
{
    p->at = text + 1;
    for (int i = 0; !p->failed && !take(p, ")"); i++) {
        skip_blank(p);
        size_t len = name_length(p->at);
        if (!len || i >= g->n || g->key[i])
            play_wrong(p, "calls a function with other arguments than it has");
        else
            bind(p, p->at, len, g->v[i]);
        p->at += len;
        take(p, ",");
    }
    skip_blank(p);
    return p->at;
}

/* A function of composites.txt: it sees its own names alone. */
static Arg call_rule(Play *p, const char *text, const Given *g)
{
    Play outer = *p;
    if (p->depth == MOST_DEPTH)
        return play_wrong(p, "calls too deep");
    p->depth++;
    p->scope = p->n_names;
    play_text(p, bind_given(p, text, g));
    if (!p->failed && !p->returned)
        play_wrong(p, "has a function that returns nothing");
    p->at = outer.at;
    p->depth = outer.depth;
    p->n_names = p->scope;
    p->scope = outer.scope;
    p->returned = false;
    return p->result[0];
}

/* -- calls ------------------------------------------------------------------------------------- */

static void given(Play *p, Given *g)
{
    g->n = 0;
    while (!p->failed && !take(p, ")")) {
        skip_blank(p);
        size_t len = name_length(p->at);
        const char *key = p->at, *behind = key + len + strspn(key + len, " ");
        bool is_key = len && *behind == '=' && behind[1] != '=';
        if (is_key)
            p->at = behind + 1;
        if (g->n == MOST_ARGS)
            play_wrong(p, "calls with too many arguments");
        else {
            g->key[g->n] = is_key ? key : NULL;
            g->key_length[g->n] = len;
            g->v[g->n] = expression(p);
            g->n += 1;
        }
        take(p, ",");
    }
}

static Arg call(Play *p, const char *name, size_t len)
{
    Given g;
    Arg v = none;
    given(p, &g);
    if (!play_runs(p))
        return none;
    p->n_results = 1;
    const char *text = text_of(name, len);
    if (text && *text == '(')
        return call_rule(p, text, &g);
    if (play_function(p, name, len, &g, &v))
        return v;
    OpId op = op_named(p, name, len);
    return op != OP_NONE
               ? play_node(p, op, &g)
               : play_wrong(p, arena_printf(p->r->tmp, "calls %.*s, which is none", (int)len, name));
}

/* -- expressions ------------------------------------------------------------------------------- */

static Arg number(Play *p)
{
    char *end;
    size_t digits = strspn(p->at, "0123456789");
    bool is_float = (p->at[digits] == '.' && p->at[digits + 1] != '.') || p->at[digits] == 'e';
    Arg v = is_float ? of_float(strtod(p->at, &end)) : of_dim(DIM(strtoll(p->at, &end, 10)));
    p->at = end;
    return v;
}

static Arg string(Play *p)
{
    size_t n = strcspn(++p->at, "\"");
    Arg v = {.kind = ARG_STRING, .str = arena_str(p->r->tmp, p->at, n)};
    p->at += n + 1;
    return v;
}

/* The name of a loop and its bounds. */
typedef struct Loop {
    const char *name;
    size_t len;
    int64_t from, to;
} Loop;

static Loop loop(Play *p)
{
    Loop l = {.name = (skip_blank(p), p->at), .len = name_length(p->at)};
    p->at += l.len;
    expect(p, "in");
    Arg from = expression(p);
    expect(p, "..");
    Arg to = expression(p);
    if (play_runs(p)) {
        l.from = int_of(p, from);
        l.to = int_of(p, to);
    }
    return l;
}

/* [for i in a..b: e] */
static Arg list_of_loop(Play *p)
{
    Loop l = loop(p);
    expect(p, ":");
    const char *start = p->at;
    bool skips = p->skips;
    Arg list = {.kind = ARG_LIST}, *item = NULL;
    for (int64_t i = l.from; play_runs(p) && i < l.to; i++) {
        p->at = start;
        bind(p, l.name, l.len, of_dim(DIM(i)));
        PUSH(p->r->tmp, item, list.list.n, expression(p));
    }
    if (p->at == start) {
        p->skips = true;
        expression(p);
        p->skips = skips;
    }
    expect(p, "]");
    list.list.item = item;
    return list;
}

static Arg list(Play *p)
{
    Arg v = {.kind = ARG_LIST}, *item = NULL;
    if (take(p, "for"))
        return list_of_loop(p);
    while (!p->failed && !take(p, "]")) {
        PUSH(p->r->tmp, item, v.list.n, expression(p));
        take(p, ",");
    }
    v.list.item = item;
    return v;
}

static Arg name_or_call(Play *p)
{
    const char *name = p->at;
    size_t len = name_length(name);
    if (!len)
        return play_wrong(p, "wants an expression");
    p->at += len;
    if (*p->at == '(') {
        p->at++;
        return call(p, name, len);
    }
    return play_runs(p) ? named(p, name, len) : none;
}

static Arg primary(Play *p)
{
    skip_blank(p);
    if (isdigit((unsigned char)*p->at))
        return number(p);
    if (*p->at == '"')
        return string(p);
    if (take(p, "["))
        return list(p);
    if (!take(p, "("))
        return name_or_call(p);
    Arg v = expression(p);
    expect(p, ")");
    return v;
}

/* x[i], x[i..], x[..j], x[i..j] */
static Arg postfix(Play *p)
{
    Arg v = primary(p);
    while (!p->failed && *p->at == '[') {
        p->at++;
        bool is_part = take(p, "..");
        Arg from = is_part ? of_dim(DIM(0)) : expression(p), to = none;
        is_part = is_part || take(p, "..");
        skip_blank(p);
        if (is_part && *p->at != ']')
            to = expression(p);
        expect(p, "]");
        if (play_runs(p))
            v = is_part ? play_part(p, v, from, to) : play_index(p, v, from);
    }
    return v;
}

static Arg unary(Play *p)
{
    skip_blank(p);
    if (!take(p, "-"))
        return postfix(p);
    Arg v = unary(p);
    return play_runs(p) ? play_negate(p, v) : none;
}

/* Signs of one level from left to right: products, then sums, then one that compares. */
static Arg level(Play *p, int which)
{
    Arg v = which == 2 ? unary(p) : level(p, which + 1);
    for (int i = 0; !p->failed && sign_text(i);) {
        if (!sign_is(i, which) || !take(p, sign_text(i))) {
            i++;
            continue;
        }
        v = play_sign(p, i, v, which == 2 ? unary(p) : level(p, which + 1));
        i = 0;
    }
    return v;
}

/* e, computed where `yes` */
static Arg part_if(Play *p, bool yes, Arg (*e)(Play *))
{
    bool skips = p->skips;
    p->skips = skips || !yes;
    Arg v = e(p);
    p->skips = skips;
    return v;
}

static Arg negation(Play *p)
{
    if (!take(p, "not"))
        return level(p, 0);
    Arg v = negation(p);
    return play_runs(p) ? of_bool(!truth_of(p, v)) : none;
}

static Arg conjunction(Play *p)
{
    Arg v = negation(p);
    while (!p->failed && take(p, "and")) {
        bool is_open = play_runs(p) && truth_of(p, v);
        Arg w = part_if(p, is_open, negation);
        v = is_open ? w : v;
    }
    return v;
}

static Arg disjunction(Play *p)
{
    Arg v = conjunction(p);
    while (!p->failed && take(p, "or")) {
        bool is_open = play_runs(p) && !truth_of(p, v);
        Arg w = part_if(p, is_open, conjunction);
        v = is_open ? w : v;
    }
    return v;
}

/* condition ? a : b */
static Arg expression(Play *p)
{
    Arg v = disjunction(p);
    if (p->failed || !take(p, "?"))
        return v;
    bool yes = play_runs(p) && truth_of(p, v);
    Arg a = part_if(p, yes, expression);
    expect(p, ":");
    Arg b = part_if(p, !yes, expression);
    return yes ? a : b;
}

/* -- statements -------------------------------------------------------------------------------- */

static void block_if(Play *p, bool yes)
{
    bool skips = p->skips;
    p->skips = skips || !yes;
    expect(p, "{");
    block(p);
    if (!p->returned)
        expect(p, "}");
    p->skips = skips;
}

static void conditional(Play *p)
{
    Arg v = expression(p);
    bool yes = play_runs(p) && truth_of(p, v);
    block_if(p, yes);
    if (p->returned || p->failed || !take(p, "else"))
        return;
    if (!take(p, "if")) {
        block_if(p, !yes);
        return;
    }
    bool skips = p->skips;
    p->skips = skips || yes;
    conditional(p);
    p->skips = skips;
}

static void repeated(Play *p)
{
    Loop l = loop(p);
    const char *start = p->at;
    for (int64_t i = l.from; play_runs(p) && i < l.to && !p->returned; i++) {
        p->at = start;
        bind(p, l.name, l.len, of_dim(DIM(i)));
        block_if(p, true);
    }
    if (p->at == start)
        block_if(p, false);
}

static void results(Play *p)
{
    Arg v[MOST_RESULTS];
    int n = 0;
    do {
        v[n++] = expression(p);
    } while (!p->failed && n < MOST_RESULTS && take(p, ","));
    if (!play_runs(p))
        return;
    memcpy(p->result, v, sizeof v);
    p->n_results = n;
    p->returned = true;
}

/* a = e, or the results of a call: a, b = f(x) */
static void assignment(Play *p)
{
    const char *name[MOST_RESULTS];
    size_t len[MOST_RESULTS];
    int n = 0;
    do {
        skip_blank(p);
        name[n] = p->at;
        len[n] = name_length(p->at);
        p->at += len[n++];
    } while (n < MOST_RESULTS && take(p, ","));
    if (!len[n - 1])
        play_wrong(p, "wants a statement");
    expect(p, "=");
    Arg v = expression(p);
    if (!play_runs(p))
        return;
    if (n > 1 && n > p->n_results)
        play_wrong(p, "wants more results than there are");
    for (int i = 0; i < n; i++)
        bind(p, name[i], len[i], n > 1 ? p->result[i] : v);
}

static void refusal(Play *p)
{
    Arg why = expression(p);
    if (play_runs(p))
        play_refuse(p, why.kind == ARG_STRING ? why.str : "");
}

/* Statements to the end of the text, or to a '}'. */
static void block(Play *p)
{
    for (skip_blank(p); !p->failed && !p->returned && *p->at && *p->at != '}'; skip_blank(p)) {
        if (take(p, "if"))
            conditional(p);
        else if (take(p, "for"))
            repeated(p);
        else if (take(p, "return"))
            results(p);
        else if (take(p, "refuse"))
            refusal(p);
        else
            assignment(p);
    }
}

/* -- the rule of a node ------------------------------------------------------------------------ */

static bool differs(Dim a, Dim b)
{
    return (!a.expr || !b.expr) && !dim_equal(a, b);
}

/* v under the sizes that the export recorded; open ones are taken to be those. */
static Value *recorded(Play *p, const Arg *result, int i)
{
    Type t = p->n->out[i]->type;
    Value *v = tensor(p, *result);
    if (!v || v->type.dtype != t.dtype) {
        play_wrong(p, "gives no tensor of the recorded dtype");
        return NULL;
    }
    bool stays = v->type.rank == t.rank;
    for (int k = 0; stays && k < t.rank; k++)
        stays = !differs(v->type.dim[k], t.dim[k]);
    return stays ? v : build_view(p->r, p->n, v, t.dim, t.rank);
}

bool decomp_text(Rewrite *r, Node *n)
{
    const char *name = op_info[n->op].target, *text = text_of(name, strlen(name));
    Play p = {.r = r, .n = n, .rule = name, .at = ""};
    if (text)
        play_text(&p, text);
    else
        play_wrong(&p, "does not exist");
    bool is_list = p.n_results == 1 && p.result[0].kind == ARG_LIST;
    const Arg *result = is_list ? p.result[0].list.item : p.result;
    if (!p.failed && (is_list ? p.result[0].list.n : p.n_results) < n->n_out)
        play_wrong(&p, "gives too few results");
    for (int i = 0; !p.failed && i < n->n_out; i++) {
        Value *v = recorded(&p, &result[i], i);
        if (!v)
            return false;
        rewrite_result(r, n, i, v);
    }
    if (!p.failed)
        graph_remove(r->g, n);
    return !p.failed;
}
