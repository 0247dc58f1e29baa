/* composite_parse.c -- parses a rule of composites.txt.  The head of that file defines the
 * language. */
#include "passes/composite.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    Arena *a;
    const char *at, *wrong; /* the next character; the mistake that was found there, or NULL */
    const char *local[MOST_LOCALS];
    bool is_set[MOST_LOCALS]; /* the rule sets it somewhere */
    int n_locals;
    int depth;   /* how deep the current form is nested */
    bool is_own; /* it is a rule of composites.txt, not one of a user */
    bool is_spelled; /* it is what a rule of spelled.txt looks for */
    const CustomOps *custom; /* operators that it may call, or NULL */
} Reader;

static Form *expression(Reader *r);
static Form *assignment(Reader *r);
static Form *block(Reader *r);

/* -- letters ----------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline __attribute__((always_inline)) bool is_letter(char c)
{
    return (unsigned)((c | 32) - 'a') < 26 || (unsigned)(c - '0') < 10 || c == '_';
}

static void skip_blanks(Reader *r)
{
    while (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '#')
        r->at += *r->at == '#' ? strcspn(r->at, "\n") : 1;
}

static inline __attribute__((always_inline)) void skip_blank(Reader *r)
{
    if (*r->at <= '#') /* blanks, and what begins a comment */
        skip_blanks(r);
}

/* Returns the length of a name, which may have dots inside; 0: there is none. */
static size_t name_length(const char *s)
{
    size_t n = 0;
    if (is_digit(*s))
        return 0;
    while (is_letter(s[n]) || (n && s[n] == '.' && is_letter(s[n + 1]) && !is_digit(s[n + 1])))
        n++;
    return n;
}

static bool is_word(const char *s, size_t n, const char *word)
{
    return *word == *s && !strncmp(word, s, n) && !word[n];
}

static Form *fail(Reader *r, const char *what)
{
    r->wrong = r->wrong ? r->wrong : what;
    return NULL;
}

/* Limits the depth, since nested forms are parsed and interpreted by recursion. */
static bool enter(Reader *r)
{
    if (++r->depth > MOST_NESTED)
        fail(r, "is nested too deep");
    return !r->wrong;
}

static bool take_word(Reader *r, const char *what)
{
    size_t n = strlen(what);
    if (strncmp(r->at, what, n) != 0 || r->wrong)
        return false;
    if (is_letter(*what) ? is_letter(r->at[n]) || r->at[n] == '.' : *what == '=' && r->at[1] == '=')
        return false;
    r->at += n;
    return true;
}

/* Moves behind a sign or word, if it comes next. */
static inline __attribute__((always_inline)) bool take(Reader *r, const char *what)
{
    skip_blank(r);
    return *r->at == *what && take_word(r, what);
}

static void expect(Reader *r, const char *what)
{
    if (!take(r, what))
        fail(r, arena_printf(r->a, "expects '%s'", what));
}

/* Moves behind a name and returns its length. */
static size_t take_name(Reader *r)
{
    skip_blank(r);
    size_t n = name_length(r->at);
    if (!n)
        fail(r, "expects a name");
    r->at += n;
    return n;
}

static int find_local(const Reader *r, const char *s, size_t n)
{
    for (int i = 0; i < r->n_locals; i++)
        if (is_word(s, n, r->local[i]))
            return i;
    return -1;
}

static int add_local(Reader *r, const char *s, size_t n)
{
    if (r->n_locals == MOST_LOCALS)
        fail(r, "has too many names");
    else
        r->local[r->n_locals++] = arena_str(r->a, s, n);
    return r->n_locals - 1;
}

/* Returns the number of the local whose name comes next, and adds it if it is new. */
static int local(Reader *r)
{
    size_t n = take_name(r);
    int known = find_local(r, r->at - n, n);
    return known >= 0 ? known : add_local(r, r->at - n, n);
}

/* -- forms ------------------------------------------------------------------------------------- */

static Form *form(Reader *r, FormKind kind, int index)
{
    Form *f = NEW(r->a, Form, 1);
    f->kind = kind;
    f->index = index;
    f->rule = f->function = -1;
    f->op = OP_NONE;
    return f;
}

static Form *with(Reader *r, Form *f, Form *part)
{
    enum { FIRST = sizeof f->first / sizeof *f->first };
    f->part = f->n < FIRST ? f->first : arena_grow(r->a, f->part, f->n, sizeof *f->part);
    f->part[f->n++] = part;
    if (part && part->depth >= f->depth)
        f->depth = part->depth + 1;
    if (f->depth > MOST_NESTED)
        fail(r, "is nested too deep");
    return f;
}

static Form *literal(Reader *r, Arg a)
{
    Form *f = form(r, FORM_LITERAL, 0);
    f->literal = a;
    return f;
}

static Form *number(Reader *r)
{
    char *end;
    size_t digits = strspn(r->at, "0123456789");
    bool is_float = (r->at[digits] == '.' && r->at[digits + 1] != '.') || r->at[digits] == 'e';
    errno = 0;
    Arg v = is_float ? of_float(strtod(r->at, &end)) : of_dim(DIM(strtoll(r->at, &end, 10)));
    if (errno == ERANGE && !is_float)
        return fail(r, "has a number beyond 64 bits");
    r->at = end;
    return literal(r, v);
}

static Form *string(Reader *r)
{
    size_t n = strcspn(++r->at, "\"");
    Arg v = {.kind = ARG_STRING, .str = arena_str(r->a, r->at, n)};
    if (!r->at[n])
        return fail(r, "has a text without its end");
    r->at += n + 1;
    return literal(r, v);
}

/* Parses "i in a..b". */
static Form *loop(Reader *r, FormKind kind)
{
    Form *f = form(r, kind, local(r));
    r->is_set[f->index] = true;
    expect(r, "in");
    with(r, f, expression(r));
    expect(r, "..");
    return with(r, f, expression(r));
}

static Form *list(Reader *r)
{
    if (take(r, "for")) {
        Form *f = loop(r, FORM_EACH);
        expect(r, ":");
        with(r, f, expression(r));
        expect(r, "]");
        return f;
    }
    Form *f = form(r, FORM_LIST, 0);
    while (!r->wrong && !take(r, "]")) {
        with(r, f, expression(r));
        take(r, ",");
    }
    return f;
}

/* -- names and calls --------------------------------------------------------------------------- */

static bool dtype_named(const char *s, size_t n, EtcDtype *t)
{
    static const EtcDtype all[] = {
#define X(id, code, size, name) (EtcDtype)(code),
        IR_DTYPES(X)
#undef X
    };
    bool may_be = n > 1 && (is_digit(s[1]) || *s == 'b');
    for (size_t i = 0; may_be && i < sizeof all / sizeof *all; i++)
        if (is_word(s, n, dtype_name(all[i]))) {
            *t = all[i];
            return true;
        }
    return false;
}

static Form *named(Reader *r, const char *s, size_t n)
{
    EtcDtype t;
    int known = find_local(r, s, n);
    if (known >= 0)
        return form(r, FORM_NAME, known);
    if (is_word(s, n, "true") || is_word(s, n, "false"))
        return literal(r, of_bool(*s == 't'));
    if (is_word(s, n, "none"))
        return literal(r, (Arg){.kind = ARG_NONE});
    if (is_word(s, n, "inf"))
        return literal(r, of_float((double)INFINITY));
    if (dtype_named(s, n, &t))
        return literal(r, (Arg){.kind = ARG_DTYPE, .dtype = t});
    return form(r, FORM_NAME, add_local(r, s, n));
}

/* Finds an operator: "sum.dim_IntList" is one of aten, and without an overload the default one is
 * meant. */
static OpId op_named(const char *s)
{
    size_t n = strcspn(s, ".");
    if (is_word(s, n, "etc") || is_word(s, n, "quantized_decomposed"))
        return op_find(s);
    char target[96];
    const char *overload = s[n] ? "" : ".default";
    if (strlen(s) + sizeof "aten..default" > sizeof target)
        return OP_NONE;
    strcpy(target, "aten.");
    strcat(target, s);
    return op_find(strcat(target, overload));
}

static void argument(Reader *r, Form *f)
{
    skip_blank(r);
    size_t n = name_length(r->at);
    if (n && r->at[n] == '=' && r->at[n + 1] != '=') {
        f->key = f->key ? f->key : NEW(r->a, const char *, MOST_ARGS);
        f->key[f->n < MOST_ARGS ? f->n : 0] = arena_str(r->a, r->at, n);
        r->at += n + 1;
    }
    with(r, f, expression(r));
}

/* Finds an operator of --ops: "mylib.swish" is mylib.swish.default. */
static const CustomOp *custom_named(const Reader *r, const char *s)
{
    const CustomOp *op = custom_ops_find(r->custom, s);
    return op || !r->custom ? op
                            : custom_ops_find(r->custom, arena_printf(r->a, "%s.default", s));
}

/* Finds what a call calls.  A user's rule may call operators of torch that write nothing, operators
 * of --ops, and documented functions of known data. */
static void find_called(const Reader *r, Form *f, const char *s)
{
    bool is_ours = !strncmp(s, "etc.", 4); /* of that name there is a rule too */
    f->rule = r->is_own && !is_ours ? rule_find(s) : -1;
    f->function = f->rule < 0 ? function_find(s) : -1;
    if (!r->is_own && f->function >= 0 && !function_is_public(f->function))
        f->function = -1;
    bool is_function = f->function >= 0 && !function_is_operator(f->function);
    OpId op = r->is_own && (f->rule >= 0 || is_function) ? OP_NONE : op_named(s);
    bool is_known = op != OP_NONE;
    bool is_free = is_known && (r->is_own || !(is_ours || op_mutates(op) || op_has_regions(op)));
    if (is_free && f->rule < 0)
        f->op = op;
    if (!is_known && f->rule < 0 && f->function < 0)
        f->custom = custom_named(r, s);
}

static Form *call(Reader *r, const char *s)
{
    Form *f = form(r, FORM_CALL, 0);
    f->name = s;
    find_called(r, f, s);
    if (f->rule < 0 && f->function < 0 && f->op == OP_NONE && !f->custom)
        fail(r, arena_printf(r->a, "calls %s, which there is not", s));
    while (!r->wrong && !take(r, ")")) {
        argument(r, f);
        take(r, ",");
    }
    return f->n <= MOST_ARGS ? f : fail(r, "calls with too many arguments");
}

/* -- expressions ------------------------------------------------------------------------------- */

/* Returns whether "name = e" comes next, within parentheses: e is looked for, and gets that
 * name. */
static bool gives_name(Reader *r)
{
    skip_blank(r);
    const char *end = r->at + name_length(r->at);
    return r->is_spelled && end > r->at && !strncmp(end, " = ", 3);
}

static Form *primary(Reader *r)
{
    skip_blank(r);
    if (is_digit(*r->at))
        return number(r);
    if (*r->at == '"')
        return string(r);
    if (take(r, "["))
        return list(r);
    if (take(r, "(")) {
        Form *f = gives_name(r) ? assignment(r) : expression(r);
        expect(r, ")");
        return f;
    }
    size_t n = take_name(r);
    const char *s = r->at - n;
    if (r->wrong || *r->at != '(')
        return r->wrong ? NULL : named(r, s, n);
    r->at++;
    return call(r, arena_str(r->a, s, n));
}

/* Parses x[i], x[i..], x[..j] and x[i..j]. */
static Form *postfix(Reader *r)
{
    Form *f = primary(r);
    while (!r->wrong && *r->at == '[') {
        r->at++;
        bool is_part = take(r, "..");
        Form *from = is_part ? literal(r, of_dim(DIM(0))) : expression(r);
        is_part = is_part || take(r, "..");
        f = with(r, with(r, form(r, is_part ? FORM_PART : FORM_INDEX, 0), f), from);
        skip_blank(r);
        if (is_part && *r->at != ']')
            with(r, f, expression(r));
        expect(r, "]");
    }
    return f;
}

static Form *unary(Reader *r)
{
    if (!take(r, "-"))
        return postfix(r);
    if (!enter(r))
        return NULL;
    Form *f = unary(r);
    ArgKind kind = f && f->kind == FORM_LITERAL ? f->literal.kind : ARG_NONE;
    if (kind == ARG_INT)
        f->literal.dim.value = -f->literal.dim.value;
    else if (kind == ARG_FLOAT)
        f->literal.f = -f->literal.f;
    else
        f = with(r, form(r, FORM_NEGATE, 0), f);
    r->depth--;
    return f;
}

/* These levels say how close words and signs bind: the last one binds closest. */
enum { LEVEL_OR, LEVEL_AND, LEVEL_NOT, LEVEL_SIGN };

/* Moves behind the word or sign that joins operands, if one comes next that binds at least as close
 * as `least`. */
static Form *take_joint(Reader *r, int least)
{
    skip_blank(r);
    int i = sign_at(r->at);
    if (i >= 0) {
        if (LEVEL_SIGN + sign_level(i) < least)
            return NULL;
        r->at += strlen(sign_text(i));
        return form(r, FORM_SIGN, i);
    }
    if (least <= LEVEL_AND && take(r, "and"))
        return form(r, FORM_AND, 0);
    return least <= LEVEL_OR && take(r, "or") ? form(r, FORM_OR, 0) : NULL;
}

static int level_of(const Form *joint)
{
    return joint->kind == FORM_OR    ? LEVEL_OR
           : joint->kind == FORM_AND ? LEVEL_AND
                                     : LEVEL_SIGN + sign_level(joint->index);
}

static Form *joined(Reader *r, int least);

static Form *negation(Reader *r)
{
    Form *f = enter(r) ? with(r, form(r, FORM_NOT, 0), joined(r, LEVEL_NOT)) : NULL;
    r->depth--;
    return f;
}

/* Parses operands from left to right, joined by signs that bind at least as close as `least`. */
static Form *joined(Reader *r, int least)
{
    Form *f = least <= LEVEL_NOT && take(r, "not") ? negation(r) : unary(r), *joint;
    while (!r->wrong && (joint = take_joint(r, least)))
        f = with(r, with(r, joint, f), joined(r, level_of(joint) + 1));
    return f;
}

static Form *expression(Reader *r)
{
    Form *f = enter(r) ? joined(r, LEVEL_OR) : NULL;
    if (take(r, "?")) {
        f = with(r, with(r, form(r, FORM_CHOOSE, 0), f), expression(r));
        expect(r, ":");
        with(r, f, expression(r));
    }
    r->depth--;
    return f;
}

/* -- statements -------------------------------------------------------------------------------- */

static Form *braces(Reader *r)
{
    expect(r, "{");
    Form *f = block(r);
    expect(r, "}");
    return f;
}

static Form *conditional(Reader *r)
{
    Form *f = with(r, form(r, FORM_IF, 0), expression(r));
    with(r, f, braces(r));
    if (!take(r, "else"))
        return f;
    if (!take(r, "if"))
        return with(r, f, braces(r));
    if (enter(r))
        with(r, f, conditional(r));
    r->depth--;
    return f;
}

static Form *results(Reader *r)
{
    Form *f = form(r, FORM_RETURN, 0);
    do {
        with(r, f, expression(r));
    } while (take(r, ","));
    return f->n <= MOST_RESULTS ? f : fail(r, "returns too much");
}

/* Parses a = e, or a, b = f(x) for the results of a call. */
static Form *assignment(Reader *r)
{
    Form *f = form(r, FORM_ASSIGN, 0);
    int *to = NULL;
    do {
        PUSH(r->a, to, f->n_locals, local(r));
    } while (take(r, ","));
    f->local = to;
    expect(r, "=");
    with(r, f, expression(r));
    if (f->n_locals > 1 && !r->wrong && !r->is_own && f->part[0]->kind != FORM_CALL)
        fail(r, "gives several names to what is not a call");
    for (int i = 0; i < f->n_locals && !r->wrong; i++)
        r->is_set[to[i]] = true;
    return f;
}

/* Parses loop a, b while e { ... }. */
static Form *loop_while(Reader *r)
{
    Form *f = form(r, FORM_LOOP, 0);
    int *carried = NULL;
    do {
        PUSH(r->a, carried, f->n_locals, local(r));
    } while (take(r, ","));
    f->local = carried;
    expect(r, "while");
    with(r, f, expression(r));
    with(r, f, braces(r));
    return f->n_locals <= MOST_RESULTS ? f : fail(r, "carries too much");
}

static Form *statement(Reader *r)
{
    if (take(r, "if"))
        return conditional(r);
    if (take(r, "for")) {
        Form *f = loop(r, FORM_FOR);
        return with(r, f, braces(r));
    }
    if (take(r, "loop"))
        return loop_while(r);
    if (take(r, "return"))
        return results(r);
    if (take(r, "refuse"))
        return with(r, form(r, FORM_REFUSE, 0), expression(r));
    if (r->is_own && take(r, "stay"))
        return form(r, FORM_STAY, 0);
    return assignment(r);
}

/* Parses statements up to the end of the text, or to a '}'. */
static Form *block(Reader *r)
{
    Form *f = form(r, FORM_BLOCK, 0);
    enter(r);
    for (skip_blank(r); !r->wrong && *r->at && *r->at != '}'; skip_blank(r))
        with(r, f, statement(r));
    r->depth--;
    return f;
}

/* -- rules ------------------------------------------------------------------------------------- */

char *composite_text(Arena *a, const Composites *of, int i)
{
    return text_unpack(a, &of->text, of->row[i].at);
}

const char *composite_name(const Composites *of, int i)
{
    const Composite *row = &of->row[i];
    return row->name ? of->names + row->name : op_target((OpId)(row->of % N_OPS));
}

static int find_row(int of, const char *name)
{
    int lo = 0, hi = composites.n;
    while (lo < hi) {
        int at = (lo + hi) / 2, order = of - composites.row[at].of;
        order = order ? order : strcmp(name, composites.names + composites.row[at].name);
        if (!order)
            return at;
        if (order > 0)
            lo = at + 1;
        else
            hi = at;
    }
    return -1;
}

int rule_of(RuleKind kind, OpId op)
{
    assert(op < N_OPS && kind < RULE_FUNCTION);
    return find_row(N_OPS * (int)kind + (int)op, "");
}

int rule_find(const char *function)
{
    return find_row((int)N_OPS * RULE_FUNCTION, function);
}

static RuleBody *end_body(Reader *r, RuleBody *body)
{
    const char **names = NEW(r->a, const char *, r->n_locals + 1);
    memcpy(names, r->local, sizeof *names * (size_t)r->n_locals);
    body->local = names;
    body->n_locals = r->n_locals;
    return body;
}

static RuleBody *parsed(Reader *r)
{
    RuleBody *body = NEW(r->a, RuleBody, 1);
    if (take(r, "("))
        while (!r->wrong && !take(r, ")")) {
            local(r);
            take(r, ",");
        }
    body->n_given = r->n_locals;
    body->is_expression = take(r, "=");
    if (!body->is_expression)
        expect(r, ":");
    body->form = body->is_expression ? expression(r) : block(r);
    skip_blank(r);
    if (*r->at)
        fail(r, "does not end there");
    return end_body(r, body);
}

const RuleBody *rule_body(Program *p, int rule, Diag *d)
{
    if (!p->rules)
        p->rules = NEW(p->arena, const RuleBody *, composites.n + 1);
    if (p->rules[rule])
        return p->rules[rule];
    Reader r = {.a = p->arena, .at = composite_text(p->arena, &composites, rule), .is_own = true};
    RuleBody *body = parsed(&r);
    if (r.wrong) {
        diag_fault(d, FAULT_BUG, (Loc){.file = p->name}, "rule %s %s, before: %.40s",
                   composite_name(&composites, rule), r.wrong, r.at);
        return NULL;
    }
    return p->rules[rule] = body;
}

/* Parses "from where condition becomes to". */
static bool read_spelled(Reader *r, Spelled *to)
{
    expect(r, ":");
    r->is_spelled = true;
    to->from = expression(r);
    r->is_spelled = false;
    to->condition = take(r, "where") ? expression(r) : NULL;
    expect(r, "becomes");
    to->to.form = expression(r);
    to->to.is_expression = true;
    skip_blank(r);
    if (*r->at)
        fail(r, "does not end there");
    end_body(r, &to->to);
    to->to.n_given = to->to.n_locals;
    return !r->wrong;
}

const Spelled *spelled_rule(Program *p, int rule, Diag *d)
{
    if (!p->spelled)
        p->spelled = NEW(p->arena, const Spelled *, spelled.n + 1);
    if (p->spelled[rule])
        return p->spelled[rule];
    Reader r = {.a = p->arena, .at = composite_text(p->arena, &spelled, rule), .is_own = true};
    Spelled *made = NEW(p->arena, Spelled, 1);
    made->name = composite_name(&spelled, rule);
    if (!read_spelled(&r, made)) {
        diag_fault(d, FAULT_BUG, (Loc){.file = p->name}, "rule %s %s, before: %.40s", made->name, r.wrong,
                   r.at);
        return NULL;
    }
    return p->spelled[rule] = made;
}

/* Checks that each name is set by a statement or is an argument. */
static void check_names(Reader *r, const Schema *s)
{
    for (int i = 0; i < r->n_locals && !r->wrong; i++) {
        const char *name = r->local[i];
        if (!r->is_set[i] && schema_find(s, name, strlen(name)) < 0)
            fail(r, arena_printf(r->a, "names %s, which is neither set nor an argument", name));
    }
}

const RuleBody *rule_read(Arena *a, const char *text, const Schema *s, const CustomOps *custom,
                          bool is_expression, RuleFault *fault)
{
    Reader r = {.a = a, .at = text, .custom = custom};
    RuleBody *body = NEW(a, RuleBody, 1);
    for (int i = 0; i < s->n_args; i++)
        add_local(&r, s->arg[i].name, strlen(s->arg[i].name));
    body->is_expression = is_expression;
    body->form = is_expression ? expression(&r) : block(&r);
    skip_blank(&r);
    if (*r.at)
        fail(&r, "does not end there");
    check_names(&r, s);
    *fault = (RuleFault){r.wrong, r.at};
    return r.wrong ? NULL : end_body(&r, body);
}
