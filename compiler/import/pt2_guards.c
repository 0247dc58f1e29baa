/* pt2_guards.c -- makes guards of what an export assumes about sizes.
 *
 * guards_code has Python comparisons between sizes of the inputs, L['x'].size()[1].  Keys of
 * range_constraints are sizes that sympy printed, 2*s52.  One reader takes both.  A guard that
 * holds for all values of the symbols is dropped.  A warning shows the text of a guard that
 * cannot be read: the model runs, but nothing checks this assumption. */
#include "compiler/import/internal.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NESTING = 64, MAX_FACTORS = 2000, MAX_PATH = 256 };

typedef struct Python {
    Pt2 *in;
    Scope *scope; /* NULL: the text may not name inputs */
    const char *text, *s;
    int depth, factors;
    Guard *guard; /* the guards that were read so far */
    int n;
} Python;

static bool sum(Python *y, Dim *out);
static bool conditions(Python *y);

/* -- text -------------------------------------------------------------------------------------- */

static bool accept(Python *y, const char *token)
{
    size_t n = strlen(token);
    y->s += strspn(y->s, " ");
    if (strncmp(y->s, token, n) != 0)
        return false;
    if (isalpha((unsigned char)*token) && (isalnum((unsigned char)y->s[n]) || y->s[n] == '_'))
        return false;
    y->s += n;
    return true;
}

static bool integer(Python *y, int64_t *out)
{
    char *end;
    y->s += strspn(y->s, " ");
    errno = 0;
    *out = strtoll(y->s, &end, 10);
    bool ok = end != y->s && !errno && *end != '.';
    y->s = end;
    return ok;
}

/* -- sizes of inputs --------------------------------------------------------------------------- */

/* Reads ['x'][0]['w'] as torch names its placeholder: x_0_w. */
static bool path(Python *y, char out[MAX_PATH])
{
    size_t n = 0;
    while (accept(y, "[")) {
        bool quoted = accept(y, "'");
        size_t len = strcspn(y->s, quoted ? "'" : "]");
        if (!len || n + len + 2 > MAX_PATH)
            return false;
        if (n)
            out[n++] = '_';
        for (size_t i = 0; i < len; i++, n++)
            out[n] = isalnum((unsigned char)y->s[i]) ? y->s[i] : '_';
        y->s += len;
        if ((quoted && !accept(y, "'")) || !accept(y, "]"))
            return false;
    }
    out[n] = '\0';
    return n > 0;
}

static const Name *find_input(const Python *y, char *name)
{
    const Name *n = y->scope ? table_find_text(&y->scope->names, name) : NULL;
    for (char *c = name; *c && !n; c++)
        *c = (char)tolower((unsigned char)*c);
    return n || !y->scope ? n : table_find_text(&y->scope->names, name);
}

/* Reads an input that is an int, or .size()[1] of one that is a tensor. */
static bool size_of_input(Python *y, Dim *out)
{
    char name[MAX_PATH];
    int64_t axis;
    const Name *n = path(y, name) ? find_input(y, name) : NULL;
    if (n && n->sym_int)
        return pt2_dim(y->in, y->in->loc, n->sym_int, out);
    if (!n || !n->meta || !n->value || n->value->type.rank < 0 || !accept(y, ".size()[") ||
        !integer(y, &axis) || !accept(y, "]") || axis < 0 || axis >= n->value->type.rank)
        return false;
    *out = n->value->type.dim[axis];
    return true;
}

/* -- arithmetic -------------------------------------------------------------------------------- */

typedef Dim Binary(Program *p, Dim a, Dim b);

static bool call(Python *y, Binary *fn, Dim *out)
{
    Dim next;
    if (!accept(y, "(") || !sum(y, out))
        return false;
    while (accept(y, ",")) {
        if (!sum(y, &next))
            return false;
        *out = fn(y->in->program, *out, next);
    }
    return accept(y, ")");
}

static bool symbol(Python *y, Dim *out)
{
    char name[MAX_PATH];
    size_t n = 0;
    while (isalnum((unsigned char)y->s[n]) || y->s[n] == '_')
        n++;
    if (!n || n >= MAX_PATH)
        return false;
    memcpy(name, y->s, n);
    name[n] = '\0';
    y->s += n;
    return pt2_symbol(y->in, name, out);
}

static bool atom(Python *y, Dim *out)
{
    static const struct {
        const char *name;
        Binary *fn;
    } row[] = {{"max", dim_max},           {"Max", dim_max}, {"min", dim_min},
               {"Min", dim_min},           {"Mod", dim_mod}, {"PythonMod", dim_mod},
               {"FloorDiv", dim_floordiv}, {"CleanDiv", dim_floordiv}};
    if (accept(y, "("))
        return sum(y, out) && accept(y, ")");
    if (isdigit((unsigned char)*y->s)) {
        *out = DIM(0);
        return integer(y, &out->value);
    }
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (accept(y, row[i].name))
            return call(y, row[i].fn, out);
    return accept(y, "L") ? size_of_input(y, out) : symbol(y, out);
}

static bool power(Python *y, Dim *out)
{
    enum { MAX_POWER = 8 };
    int64_t n;
    if (++y->depth > MAX_NESTING || ++y->factors > MAX_FACTORS)
        return false;
    bool minus = accept(y, "-"), ok = minus ? power(y, out) : atom(y, out);
    y->depth--;
    if (ok && minus)
        *out = dim_sub(y->in->program, DIM(0), *out);
    if (!ok || minus || !accept(y, "**"))
        return ok;
    Dim base = *out;
    if (!integer(y, &n) || n < 1 || n > MAX_POWER)
        return false;
    while (--n)
        *out = dim_mul(y->in->program, *out, base);
    return true;
}

static bool product(Python *y, Dim *out)
{
    Program *p = y->in->program;
    Dim next;
    if (!power(y, out))
        return false;
    for (;;) {
        Binary *fn = accept(y, "//") ? dim_floordiv : accept(y, "*") ? dim_mul
                     : accept(y, "%") ? dim_mod                      : NULL;
        if (!fn)
            return true;
        if (!power(y, &next))
            return false;
        *out = fn(p, *out, next);
    }
}

static bool sum(Python *y, Dim *out)
{
    Dim next;
    if (!product(y, out))
        return false;
    for (;;) {
        y->s += strspn(y->s, " ");
        Binary *fn = *y->s == '+' ? dim_add : *y->s == '-' ? dim_sub : NULL;
        if (!fn)
            return !dim_is_bad(*out);
        y->s++;
        if (!product(y, &next))
            return false;
        *out = fn(y->in->program, *out, next);
    }
}

/* -- comparisons ------------------------------------------------------------------------------- */

static bool is_implied(Dim size, int64_t lo, int64_t hi)
{
    int64_t least, most;
    dim_range(size, &least, &most);
    return lo <= least && most <= hi;
}

static bool add_guard(Python *y, Dim size, int64_t lo, int64_t hi)
{
    Guard g = {size, lo, hi, NULL};
    if (dim_is_bad(size))
        return false;
    if (!is_implied(size, lo, hi))
        PUSH(y->in->tmp, y->guard, y->n, g);
    return true;
}

/* Adds a != b as the guard |a - b| >= 1. */
static bool add_unequal(Python *y, Dim difference)
{
    Program *p = y->in->program;
    Dim other = dim_sub(p, DIM(0), difference);
    int64_t lo, hi;
    if (dim_is_bad(difference) || dim_is_bad(other))
        return false;
    dim_range(difference, &lo, &hi);
    return lo > 0 || hi < 0 || add_guard(y, dim_max(p, difference, other), 1, INT64_MAX);
}

static bool compare(Python *y, Dim a, const char *op, Dim b)
{
    Dim difference = dim_expand(y->in->program, dim_sub(y->in->program, a, b));
    if (!strcmp(op, "!="))
        return add_unequal(y, difference);
    return add_guard(y, difference,
                     *op == '<' ? INT64_MIN : !strcmp(op, ">") ? 1 : 0,
                     *op == '>' ? INT64_MAX : !strcmp(op, "<") ? -1 : 0);
}

/* Reads a chain of comparisons: a <= b < c. */
static bool comparison(Python *y)
{
    static const char *const op[] = {"==", "!=", "<=", ">=", "<", ">"};
    Dim a, b;
    int n = 0;
    if (!sum(y, &a))
        return false;
    for (;; a = b, n++) {
        size_t i = 0;
        while (i < sizeof op / sizeof *op && !accept(y, op[i]))
            i++;
        if (i == sizeof op / sizeof *op)
            return n > 0;
        if (!sum(y, &b) || !compare(y, a, op[i], b))
            return false;
    }
}

/* Reads a condition.  Brackets can contain a sum or conditions: if the text is no comparison, it
 * is read again as conditions. */
static bool condition(Python *y)
{
    const char *start = y->s;
    int n = y->n;
    if (comparison(y))
        return true;
    y->s = start;
    y->n = n;
    if (++y->depth > MAX_NESTING || !accept(y, "("))
        return false;
    bool ok = conditions(y) && accept(y, ")");
    y->depth--;
    return ok;
}

static bool conditions(Python *y)
{
    do
        if (!condition(y))
            return false;
    while (accept(y, "and"));
    return true;
}

/* -- interface --------------------------------------------------------------------------------- */

static void take(Python *y, const char *text)
{
    Program *p = y->in->program;
    for (int i = 0; i < y->n; i++) {
        y->guard[i].text = text;
        PUSH(p->arena, p->guard, p->n_guards, y->guard[i]);
    }
}

void pt2_guards(Scope *s, const Json *list)
{
    Pt2 *p = s->in;
    for (JsonIter it = json_iter(list); json_next(&it);) {
        const char *text = json_string(it.value);
        Python y = {.in = p, .scope = s, .text = text, .s = text};
        int errors = diag_errors(p->diag);
        bool ok = text && conditions(&y) && !*(y.s + strspn(y.s, " "));
        if (ok)
            take(&y, arena_str(p->program->arena, text, strlen(text)));
        else if (diag_errors(p->diag) == errors)
            diag_warn(p->diag, p->loc,
                      "the export assumed '%.200s', which is not checked at run time",
                      text ? text : "");
    }
}

bool pt2_printed_size(Pt2 *p, const char *size, Dim *out)
{
    Python y = {.in = p, .text = size, .s = size};
    return sum(&y, out) && !*(y.s + strspn(y.s, " ")) && !dim_is_bad(*out);
}

void pt2_range_guard(Pt2 *p, const char *size, int64_t lo, int64_t hi)
{
    Python y = {.in = p, .text = size, .s = size};
    Dim d;
    if (pt2_printed_size(p, size, &d) && add_guard(&y, d, lo, hi))
        take(&y, arena_printf(p->program->arena, "%s in %lld..%lld", size, (long long)lo,
                              (long long)hi));
    else
        diag_warn(p->diag, p->loc, "the range of '%.200s' is not checked at run time", size);
}
