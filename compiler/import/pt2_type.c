/* pt2_type.c -- sizes, dtypes and tensor types of a model.json.
 *
 * A symbolic size is a text that sympy's srepr printed: Add(Symbol('s52', positive=True,
 * integer=True), Integer(1)).  It is read as a fraction of two sizes, because sympy writes n //
 * 2 as n * 1/2 if it knows that n is even.  The whole is an integer for every value that torch
 * allows, so the division at the end is exact. */
#include "compiler/import/internal.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_TERMS = 2000, MAX_WORD = 64 };

typedef struct Frac {
    Dim num, den;
} Frac;

typedef struct Sympy {
    Pt2 *in;
    Loc loc;
    const char *text, *s;
    int depth, terms;
} Sympy;

/* -- text -------------------------------------------------------------------------------- */

static bool malformed(Sympy *y)
{
    return diag_error(y->in->diag, y->loc, "the size '%.80s' cannot be read at character %d",
                      y->text, (int)(y->s - y->text) + 1);
}

static bool accept(Sympy *y, char c)
{
    y->s += strspn(y->s, " ");
    if (*y->s != c)
        return false;
    y->s++;
    return true;
}

static bool expect(Sympy *y, char c)
{
    return accept(y, c) || malformed(y);
}

static bool word(Sympy *y, char out[MAX_WORD])
{
    y->s += strspn(y->s, " ");
    size_t n = 0;
    while (isalnum((unsigned char)y->s[n]) || y->s[n] == '_')
        n++;
    if (!n || n >= MAX_WORD)
        return malformed(y);
    memcpy(out, y->s, n);
    out[n] = '\0';
    y->s += n;
    return true;
}

static bool integer(Sympy *y, int64_t *out)
{
    char *end;
    y->s += strspn(y->s, " ");
    errno = 0;
    *out = strtoll(y->s, &end, 10);
    if (end == y->s || errno)
        return malformed(y);
    y->s = end;
    return true;
}

/* -- leaves ------------------------------------------------------------------------------ */

static Frac whole(Dim d)
{
    return (Frac){d, DIM(1)};
}

/* Reads a symbol: ('s52', positive=True, integer=True). */
static bool symbol(Sympy *y, Frac *out)
{
    char name[MAX_WORD];
    if (!expect(y, '\'') || !word(y, name) || !expect(y, '\''))
        return false;
    y->s += strcspn(y->s, "()");
    Dim size;
    if (!pt2_symbol(y->in, name, &size))
        return diag_error(y->in->diag, y->loc,
                          "the symbol '%s' has no range in "
                          "range_constraints",
                          name);
    *out = whole(size);
    return true;
}

static bool rational(Sympy *y, Frac *out)
{
    int64_t num, den;
    if (!integer(y, &num) || !expect(y, ',') || !integer(y, &den))
        return false;
    *out = (Frac){DIM(num), DIM(den)};
    return true;
}

/* Reads ('0.5', precision=53), which must be a fraction. */
static bool floating(Sympy *y, Frac *out)
{
    char *end;
    if (!expect(y, '\''))
        return false;
    double f = strtod(y->s, &end);
    if (end == y->s || *end != '\'')
        return malformed(y);
    y->s = end + strcspn(end, "()");
    *out = (Frac){DIM(0), DIM(1)};
    return dim_fraction(f, &out->num.value, &out->den.value) ||
           diag_unsupported(y->in->diag, y->loc, "a size computed with the number %g", f);
}

/* -- functions --------------------------------------------------------------------------- */

typedef enum Fn {
    ADD,
    MUL,
    POW,
    MAX,
    MIN,
    MOD,
    FLOORDIV,
    CEILDIV,
    DIVIDE,
    MODULAR,
    FLOOR,
    CEIL,
    TRUNC,
    SAME
} Fn;

static const struct {
    const char *name;
    Fn fn;
    int n_args; /* 0: one or more */
} function[] = {
    {"Add", ADD, 0},
    {"Mul", MUL, 0},
    {"Pow", POW, 2},
    {"PowByNatural", POW, 2},
    {"Max", MAX, 0},
    {"Min", MIN, 0},
    {"Mod", MOD, 2},
    {"PythonMod", MOD, 2},
    {"FloorDiv", FLOORDIV, 2},
    {"CleanDiv", FLOORDIV, 2},
    {"CeilDiv", CEILDIV, 2},
    {"IntTrueDiv", DIVIDE, 2},
    {"FloatTrueDiv", DIVIDE, 2},
    {"ModularIndexing", MODULAR, 3},
    {"FloorToInt", FLOOR, 1},
    {"CeilToInt", CEIL, 1},
    {"TruncToInt", TRUNC, 1},
    {"floor", FLOOR, 1},
    {"ceiling", CEIL, 1},
    {"ToFloat", SAME, 1},
    {"Identity", SAME, 1},
};

static Frac multiply(Program *p, Frac a, Frac b)
{
    return (Frac){dim_mul(p, a.num, b.num), dim_mul(p, a.den, b.den)};
}

static Frac inverse(Frac a)
{
    return (Frac){a.den, a.num};
}

static Frac add(Program *p, Frac a, Frac b)
{
    if (dim_equal(a.den, b.den))
        return (Frac){dim_add(p, a.num, b.num), a.den};
    return (Frac){dim_add(p, dim_mul(p, a.num, b.den), dim_mul(p, b.num, a.den)),
                  dim_mul(p, a.den, b.den)};
}

static Dim floored(Program *p, Frac a)
{
    return dim_equal(a.den, DIM(1)) ? a.num : dim_floordiv(p, a.num, a.den);
}

static Dim ceiled(Program *p, Frac a)
{
    a.num = dim_sub(p, DIM(0), a.num);
    return dim_sub(p, DIM(0), floored(p, a));
}

static bool power(Sympy *y, Frac *base, Frac exponent)
{
    enum { MAX_POWER = 8 };
    Program *p = y->in->program;
    int64_t n = exponent.num.value;
    if (exponent.num.expr || !dim_equal(exponent.den, DIM(1)) || n < -MAX_POWER || n > MAX_POWER)
        return diag_unsupported(y->in->diag, y->loc, "a power in the size '%.80s'", y->text);
    Frac factor = n < 0 ? inverse(*base) : *base;
    *base = whole(DIM(1));
    for (n = n < 0 ? -n : n; n; n--)
        *base = multiply(p, *base, factor);
    return true;
}

/* Max, min and mod are defined for integers only. */
static bool of_integers(Sympy *y, Fn fn, Frac *a, Frac b)
{
    Program *p = y->in->program;
    if (!dim_equal(a->den, DIM(1)) || !dim_equal(b.den, DIM(1)))
        return diag_unsupported(y->in->diag, y->loc,
                                "max, min or mod of fractions in the size "
                                "'%.80s'",
                                y->text);
    a->num = fn == MAX   ? dim_max(p, a->num, b.num)
             : fn == MIN ? dim_min(p, a->num, b.num)
                         : dim_mod(p, a->num, b.num);
    return true;
}

/* Combines argument i, counted from 1, with the result of the arguments before it. */
static bool take(Sympy *y, Fn fn, int i, Frac *a, Frac b)
{
    Program *p = y->in->program;
    switch (fn) {
    case ADD:
        *a = add(p, *a, b);
        return true;
    case MUL:
        *a = multiply(p, *a, b);
        return true;
    case POW:
        return power(y, a, b);
    case DIVIDE:
        *a = multiply(p, *a, inverse(b));
        return true;
    case FLOORDIV:
        *a = whole(floored(p, multiply(p, *a, inverse(b))));
        return true;
    case CEILDIV:
        *a = whole(ceiled(p, multiply(p, *a, inverse(b))));
        return true;
    case MODULAR: /* a // b % c */
        return i == 1 ? take(y, FLOORDIV, i, a, b) : of_integers(y, MOD, a, b);
    default:
        return of_integers(y, fn, a, b);
    }
}

/* Computes a function of one argument. */
static bool finish(Sympy *y, Fn fn, Frac *a)
{
    Program *p = y->in->program;
    if (fn == TRUNC && !dim_equal(a->den, DIM(1))) {
        int64_t lo, hi, den_lo;
        dim_range(a->num, &lo, &hi);
        dim_range(a->den, &den_lo, &hi);
        if (lo < 0 || den_lo <= 0)
            return diag_unsupported(y->in->diag, y->loc,
                                    "truncation of what may be negative in "
                                    "the size '%.80s'",
                                    y->text);
    }
    if (fn == FLOOR || fn == TRUNC)
        *a = whole(floored(p, *a));
    else if (fn == CEIL)
        *a = whole(ceiled(p, *a));
    return true;
}

static bool expression(Sympy *y, Frac *out);

static bool arguments(Sympy *y, const char *name, Frac *out)
{
    size_t f = 0, n_functions = sizeof function / sizeof *function;
    while (f < n_functions && strcmp(function[f].name, name) != 0)
        f++;
    if (f == n_functions)
        return diag_unsupported(y->in->diag, y->loc, "the function '%s' in the size '%.80s'", name,
                                y->text);
    if (!expression(y, out))
        return false;
    int n = 1;
    for (Frac next; accept(y, ','); n++) {
        if (function[f].n_args && n >= function[f].n_args)
            return malformed(y);
        if (!expression(y, &next) || !take(y, function[f].fn, n, out, next))
            return false;
    }
    if (function[f].n_args && n != function[f].n_args)
        return malformed(y);
    return finish(y, function[f].fn, out);
}

static bool expression(Sympy *y, Frac *out)
{
    char name[MAX_WORD];
    if (y->depth >= MAX_DEPTH || y->terms >= MAX_TERMS)
        return diag_error(y->in->diag, y->loc, "the size '%.80s ...' is too large", y->text);
    y->depth++;
    y->terms++;
    if (!word(y, name) || !expect(y, '('))
        return false;
    int64_t n = 0;
    bool ok;
    if (!strcmp(name, "Symbol"))
        ok = symbol(y, out);
    else if (!strcmp(name, "Integer")) {
        ok = integer(y, &n);
        *out = whole(DIM(n));
    } else if (!strcmp(name, "Rational"))
        ok = rational(y, out);
    else if (!strcmp(name, "Float"))
        ok = floating(y, out);
    else
        ok = arguments(y, name, out);
    y->depth--;
    return ok && expect(y, ')');
}

/* -- interface --------------------------------------------------------------------------- */

static bool symbolic(Pt2 *p, Loc loc, const char *text, Dim *out)
{
    Sympy y = {.in = p, .loc = loc, .text = text, .s = text};
    Frac f;
    if (p->schema < 8 && pt2_printed_size(p, text, out)) /* older files have no constructors */
        return true;
    if (!expression(&y, &f))
        return false;
    if (*y.s)
        return malformed(&y);
    *out = floored(p->program, f);
    return (!dim_is_bad(*out) && !dim_is_bad(f.den)) ||
           diag_error(p->diag, loc, "the size '%.80s' overflows or divides by zero", text);
}

bool pt2_dim(Pt2 *p, Loc loc, const Json *v, Dim *out)
{
    const Json *content = NULL;
    const char *tag = json_tag(v, &content);
    *out = DIM(0);
    if (tag && !strcmp(tag, "as_int") && json_int(content, &out->value))
        return true;
    const char *text = json_string(json_get(content, "expr_str"));
    if (tag && !strcmp(tag, "as_expr") && text)
        return symbolic(p, loc, text, out);
    return diag_error(p->diag, loc, "%s is not a size", json_path(&p->doc, v, p->tmp));
}

/* -- comparisons -------------------------------------------------------------------------- */

static Value *built(Node *n)
{
    return n ? n->out[0] : NULL;
}

/* Reads (a, b) after the name of a comparison, and compares a - b with 0. */
static Value *comparison(Sympy *y, Scope *s, OpId op)
{
    Program *p = y->in->program;
    Frac a, b;
    if (!expression(y, &a) || !expect(y, ',') || !expression(y, &b))
        return NULL;
    Dim difference = dim_sub(p, dim_mul(p, a.num, b.den), dim_mul(p, b.num, a.den));
    if (dim_is_bad(difference)) {
        diag_error(y->in->diag, y->loc, "the comparison '%.80s' overflows", y->text);
        return NULL;
    }
    Arg none = {.kind = ARG_LIST}, number = {.kind = ARG_INT, .dim = difference};
    Value *v = built(build(s->graph, NULL, y->loc, OP_FULL, y->in->diag, "aat", none, number,
                           ETC_I64));
    return v ? built(build(s->graph, NULL, y->loc, op, y->in->diag, "vi", v, (int64_t)0)) : NULL;
}

static Value *truth(Sympy *y, Scope *s);

/* Reads (a, b, ...) after And or Or. */
static Value *joined(Sympy *y, Scope *s, OpId op)
{
    Value *v = truth(y, s), *next;
    while (v && accept(y, ',')) {
        next = truth(y, s);
        v = next ? built(build(s->graph, NULL, y->loc, op, y->in->diag, "vv", v, next)) : NULL;
    }
    return v;
}

static Value *truth(Sympy *y, Scope *s)
{
    static const struct {
        const char *name;
        OpId op;
    } row[] = {
        {"Equality", OP_EQ_SCALAR},         {"Unequality", OP_NE_SCALAR},
        {"GreaterThan", OP_GE_SCALAR},      {"LessThan", OP_LE_SCALAR},
        {"StrictGreaterThan", OP_GT_SCALAR}, {"StrictLessThan", OP_LT_SCALAR},
        {"And", OP_LOGICAL_AND},            {"Or", OP_LOGICAL_OR},
        {"Not", OP_LOGICAL_NOT},
    };
    char name[MAX_WORD];
    size_t i = 0, n = sizeof row / sizeof *row;
    if (y->depth >= MAX_DEPTH) {
        diag_error(y->in->diag, y->loc, "the condition '%.80s ...' is too deep", y->text);
        return NULL;
    }
    if (!word(y, name) || !expect(y, '('))
        return NULL;
    while (i < n && strcmp(row[i].name, name) != 0)
        i++;
    if (i == n) {
        diag_unsupported(y->in->diag, y->loc, "the function '%s' in the condition '%.80s'", name,
                         y->text);
        return NULL;
    }
    y->depth++;
    OpId op = row[i].op;
    Value *v = op == OP_LOGICAL_AND || op == OP_LOGICAL_OR ? joined(y, s, op)
               : op != OP_LOGICAL_NOT                      ? comparison(y, s, op)
                                                           : truth(y, s);
    if (v && op == OP_LOGICAL_NOT)
        v = built(build(s->graph, NULL, y->loc, op, y->in->diag, "v", v));
    y->depth--;
    return v && expect(y, ')') ? v : NULL;
}

Value *pt2_truth(Scope *s, Loc loc, const Json *sym_bool)
{
    const Json *content = NULL;
    const char *tag = json_tag(sym_bool, &content);
    const char *text = json_string(json_get(content, "expr_str"));
    Sympy y = {.in = s->in, .loc = loc, .text = text, .s = text};
    if (!tag || strcmp(tag, "as_expr") != 0 || !text) {
        diag_error(s->in->diag, loc, "%s is not a condition",
                   json_path(&s->in->doc, sym_bool, s->in->tmp));
        return NULL;
    }
    Value *v = truth(&y, s);
    return v && *y.s && !malformed(&y) ? NULL : v;
}

/* -- interface of types -------------------------------------------------------------------- */

bool pt2_dtype(Pt2 *p, Loc loc, const char *what, const Json *v, EtcDtype *out)
{
    static const struct {
        int code;
        const char *name; /* set if there is no EtcDtype for it */
        EtcDtype dtype;
    } row[] = {
        {7, NULL, ETC_F32},        {5, NULL, ETC_I64},         {4, NULL, ETC_I32},
        {2, NULL, ETC_I8},         {1, NULL, ETC_U8},          {3, NULL, ETC_I16},
        {6, NULL, ETC_F16},        {8, NULL, ETC_F64},         {12, NULL, ETC_BOOL},
        {13, NULL, ETC_BF16},      {28, NULL, ETC_U16},        {29, NULL, ETC_F8E4M3FN},
        {30, NULL, ETC_F8E5M2},    {31, NULL, ETC_F8E4M3FNUZ}, {32, NULL, ETC_F8E5M2FNUZ},
        {34, NULL, ETC_U32},       {35, NULL, ETC_U64},        {9, "complex32", ETC_U8},
        {10, NULL, ETC_C64},        {11, NULL, ETC_C128}, {33, "float8_e8m0fnu", ETC_U8},
    };
    int64_t code;
    if (!json_int(v, &code))
        return diag_error(p->diag, loc, "%s is not a dtype", json_path(&p->doc, v, p->tmp));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (row[i].code == code) {
            *out = row[i].dtype;
            return !row[i].name ||
                   diag_unsupported(p->diag, loc, "'%s' has dtype %s", what, row[i].name);
        }
    return diag_error(p->diag, loc, "'%s' has dtype code %lld, which is none of torch's", what,
                      (long long)code);
}

static bool read_dims(Pt2 *p, Loc loc, const char *value, const Json *list, const char *what,
                      Dim *out, int *n)
{
    *n = 0;
    if (json_count(list) > MAX_RANK)
        return diag_unsupported(p->diag, loc, "'%s' has %d dimensions, at most %d are possible",
                                value, json_count(list), MAX_RANK);
    for (JsonIter it = json_iter(list); json_next(&it); (*n)++) {
        if (!pt2_dim(p, loc, it.value, &out[*n]))
            return false;
        if (!out[*n].expr && out[*n].value < 0)
            return diag_error(p->diag, loc, "'%s' has a negative %s, %lld", value, what,
                              (long long)out[*n].value);
    }
    return true;
}

/* Returns whether the stride of each axis is the product of the sizes after it. */
static bool is_dense(Program *p, int rank, const Dim *dim, const Dim *stride)
{
    Dim product = DIM(1);
    for (int i = rank - 1; i >= 0; i--) {
        if (!dim_equal(stride[i], product) && !dim_equal(dim[i], DIM(1)))
            return false;
        product = i ? dim_mul(p, product, dim[i]) : product;
    }
    return true;
}

/* Returns whether the strides are those of a dense tensor; torch may count an empty dimension as
 * one. */
static bool is_contiguous(Program *p, int rank, const Dim *dim, const Dim *stride)
{
    Dim plain = DIM(1), least_one = DIM(1);
    if (is_dense(p, rank, dim, stride))
        return true;
    for (int i = 0; i < rank; i++)
        if (dim_equal(dim[i], DIM(0)))
            return true;
    for (int i = rank - 1; i >= 0; i--) {
        if (dim_equal(dim[i], DIM(1)))
            continue;
        if (!dim_equal(stride[i], plain) && !dim_equal(stride[i], least_one))
            return false;
        plain = dim_mul(p, plain, dim[i]);
        least_one = dim[i].expr ? dim_mul(p, least_one, dim_max(p, DIM(1), dim[i]))
                                : dim_mul(p, least_one, dim[i]);
    }
    return true;
}

bool pt2_strided(Pt2 *p, Loc loc, const char *value, EtcDtype dtype, int rank, const Dim *dim,
                 const Dim *stride, Type *out)
{
    *out = type_tensor(p->program, dtype, rank, dim);
    if (type_is_static(*out) && type_bytes(*out) == INT64_MAX)
        return diag_error(p->diag, loc, "the sizes of '%s' overflow", value);
    if (!is_contiguous(p->program, rank, dim, stride))
        out->stride = type_tensor(p->program, dtype, rank, stride).dim;
    return true;
}

bool pt2_type(Pt2 *p, Loc loc, const char *value, const Json *meta, Type *out)
{
    enum { STRIDED = 7 };
    EtcDtype dtype;
    Dim dim[MAX_RANK], stride[MAX_RANK];
    int rank, n;
    int64_t layout = STRIDED;
    const Json *sizes = json_get(meta, "sizes"), *strides = json_get(meta, "strides");
    if (!json_is_array(sizes))
        return pt2_malformed(p, meta, "sizes", "a list");
    if (json_count(strides) != json_count(sizes))
        return diag_error(p->diag, loc, "'%s' has %d sizes and %d strides", value,
                          json_count(sizes), json_count(strides));
    json_int(json_get(meta, "layout"), &layout);
    if (layout != STRIDED)
        return diag_unsupported(p->diag, loc, "'%s' is a sparse tensor", value);
    if (!json_get(meta, "dtype"))
        return pt2_malformed(p, meta, "dtype", "a number");
    return pt2_dtype(p, loc, value, json_get(meta, "dtype"), &dtype) &&
           read_dims(p, loc, value, sizes, "size", dim, &rank) &&
           read_dims(p, loc, value, strides, "stride", stride, &n) &&
           pt2_strided(p, loc, value, dtype, rank, dim, stride, out);
}
