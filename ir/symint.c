/* symint.c -- symbolic sizes: sums of products over symbols, kept canonical and interned.
 *
 * An expression is constant + sum of coefficient * product of atoms.  An atom is a symbol or a
 * floordiv, mod, max or min of two sizes that could not be simplified.  Atoms of a product and
 * terms of a sum are sorted by their structure, so equal sizes have equal text and, being
 * interned, equal pointers.  All arithmetic is exact in int64_t; overflow and division by zero
 * give DIM_BAD. */
#include "ir/table.h"
#include <inttypes.h>
#include <math.h>

/* The weight of an expression counts the atoms in its text.  Sizes share parts, so without a limit
 * a few nodes could make one that takes forever to walk. */
enum { MAX_TERMS = 32, MAX_FACTORS = 8, MAX_WEIGHT = 1000 };

typedef struct Atom {
    FactorKind kind;
    int weight;
    const Symbol *sym; /* F_SYMBOL */
    Dim a, b;          /* the others */
} Atom;

typedef struct Term {
    int64_t coef;
    int n;
    const Atom *factor[MAX_FACTORS]; /* ascending; repeated for powers */
} Term;

struct Expr {
    int n, weight;
    int64_t constant;
    Term term[]; /* ascending by factors, no two with the same */
};

typedef struct Sum { /* an expression that is being built */
    int64_t constant;
    int n;
    bool bad;
    Term term[MAX_TERMS];
} Sum;

/* DIM_BAD is an empty sum.  No other size is, because an integer has no expression. */
static const Expr bad = {.constant = INT64_MIN};
const Dim DIM_BAD = {&bad, 0};

bool dim_is_bad(Dim d)
{
    return d.expr == &bad;
}

bool dim_equal(Dim a, Dim b)
{
    return a.expr == b.expr && (a.expr || a.value == b.value);
}

bool dims_equal(const Dim *a, const Dim *b, int n)
{
    for (int i = 0; i < n; i++)
        if (!dim_equal(a[i], b[i]))
            return false;
    return true;
}

/* -- order ------------------------------------------------------------------------------- */

static int compare_dims(Dim a, Dim b);

static int compare_atoms(const Atom *a, const Atom *b)
{
    if (a == b)
        return 0;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == F_SYMBOL)
        return (a->sym->index > b->sym->index) - (a->sym->index < b->sym->index);
    int c = compare_dims(a->a, b->a);
    return c ? c : compare_dims(a->b, b->b);
}

static int compare_terms(const Term *a, const Term *b)
{
    for (int i = 0; i < a->n && i < b->n; i++) {
        int c = compare_atoms(a->factor[i], b->factor[i]);
        if (c)
            return c;
    }
    return (a->n > b->n) - (a->n < b->n);
}

static int compare_dims(Dim a, Dim b)
{
    if (a.expr == b.expr)
        return a.expr ? 0 : (a.value > b.value) - (a.value < b.value);
    if (!a.expr || !b.expr)
        return a.expr ? 1 : -1;
    for (int i = 0; i < a.expr->n && i < b.expr->n; i++) {
        const Term *s = &a.expr->term[i], *t = &b.expr->term[i];
        int c = compare_terms(s, t);
        if (c)
            return c;
        if (s->coef != t->coef)
            return s->coef < t->coef ? -1 : 1;
    }
    if (a.expr->n != b.expr->n)
        return a.expr->n < b.expr->n ? -1 : 1;
    return (a.expr->constant > b.expr->constant) - (a.expr->constant < b.expr->constant);
}

/* -- interning --------------------------------------------------------------------------- */

/* The key of a sum in the table, as words.  Expressions inside the sum are given by their
 * addresses, since they are interned too. */
typedef struct Key {
    size_t n;
    uint64_t word[1 + MAX_TERMS * (2 + MAX_FACTORS * 5)];
} Key;

static void put_dim(Key *k, Dim d)
{
    k->word[k->n++] = (uintptr_t)d.expr;
    k->word[k->n++] = (uint64_t)d.value;
}

static void put_atom(Key *k, const Atom *a)
{
    k->word[k->n++] = (uint64_t)a->kind << 32 | (a->sym ? (uint32_t)a->sym->index : 0);
    if (a->kind != F_SYMBOL) {
        put_dim(k, a->a);
        put_dim(k, a->b);
    }
}

static void put_sum(Key *k, const Sum *s)
{
    k->word[k->n++] = (uint64_t)s->constant;
    for (int i = 0; i < s->n; i++) {
        const Term *t = &s->term[i];
        k->word[k->n++] = (uint64_t)t->coef;
        k->word[k->n++] = (uint64_t)t->n;
        for (int j = 0; j < t->n; j++)
            put_atom(k, t->factor[j]);
    }
}

static int sum_weight(const Sum *s)
{
    int weight = 0; /* at most 32 * 8 * (2 * MAX_WEIGHT + 1) */
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->term[i].n; k++)
            weight += s->term[i].factor[k]->weight;
    return weight;
}

static Dim intern(Program *p, const Sum *s)
{
    int weight = sum_weight(s);
    if (s->bad || weight > MAX_WEIGHT)
        return DIM_BAD;
    if (!s->n)
        return DIM(s->constant);
    Key k;
    k.n = 0;
    put_sum(&k, s);
    TableItem *known = table_at_copy(p->exprs, k.word, k.n * sizeof *k.word);
    if (known->ptr)
        return (Dim){known->ptr, 0};
    Expr *e = known->ptr = arena_alloc(p->arena, 1, sizeof *e + (size_t)s->n * sizeof *e->term);
    e->n = s->n;
    e->constant = s->constant;
    e->weight = weight;
    memcpy(e->term, s->term, (size_t)s->n * sizeof *e->term);
    return (Dim){e, 0};
}

/* -- sums -------------------------------------------------------------------------------- */

static void sum_constant(Sum *s, int64_t c)
{
    s->bad = !add_ok(s->constant, c, &s->constant) || s->bad;
}

/* Adds t in its place among the ordered terms. */
static void sum_term(Sum *s, Term t)
{
    int i = 0, c = 1;
    while (i < s->n && (c = compare_terms(&s->term[i], &t)) < 0)
        i++;
    if (i < s->n && !c) {
        s->bad = !add_ok(s->term[i].coef, t.coef, &s->term[i].coef) || s->bad;
        if (!s->term[i].coef)
            memmove(&s->term[i], &s->term[i + 1], (size_t)(--s->n - i) * sizeof t);
        return;
    }
    if (!t.coef)
        return;
    if (s->n == MAX_TERMS) {
        s->bad = true;
        return;
    }
    memmove(&s->term[i + 1], &s->term[i], (size_t)(s->n++ - i) * sizeof t);
    s->term[i] = t;
}

/* Adds factor * d to *s. */
static void sum_dim(Sum *s, Dim d, int64_t factor)
{
    int64_t c;
    if (dim_is_bad(d) || !mul_ok(d.expr ? d.expr->constant : d.value, factor, &c)) {
        s->bad = true;
        return;
    }
    sum_constant(s, c);
    for (int i = 0; d.expr && i < d.expr->n; i++) {
        Term t = d.expr->term[i];
        s->bad = !mul_ok(t.coef, factor, &t.coef) || s->bad;
        sum_term(s, t);
    }
}

static bool term_mul(const Term *a, const Term *b, Term *out)
{
    *out = *a;
    if (!mul_ok(a->coef, b->coef, &out->coef) || a->n + b->n > MAX_FACTORS)
        return false;
    for (int i = 0; i < b->n; i++) {
        int k = out->n++;
        for (; k > 0 && compare_atoms(out->factor[k - 1], b->factor[i]) > 0; k--)
            out->factor[k] = out->factor[k - 1];
        out->factor[k] = b->factor[i];
    }
    return true;
}

static Dim atom(Program *p, Atom a)
{
    a.weight = 1 + (a.a.expr ? a.a.expr->weight : 0) + (a.b.expr ? a.b.expr->weight : 0);
    Atom *copy = NEW(p->arena, Atom, 1);
    *copy = a;
    Sum s = {.n = 1};
    s.term[0] = (Term){.coef = 1, .n = 1, .factor = {copy}};
    return intern(p, &s);
}

Dim dim_symbol(Program *p, const Symbol *s)
{
    assert(p->sym[s->index] == s);
    if (!s->size)
        p->sym[s->index]->size = atom(p, (Atom){.kind = F_SYMBOL, .sym = s}).expr;
    return (Dim){s->size, 0};
}

static bool are_plain(Dim a, Dim b)
{
    return !a.expr && !b.expr;
}

Dim dim_add(Program *p, Dim a, Dim b)
{
    int64_t v;
    if (are_plain(a, b))
        return add_ok(a.value, b.value, &v) ? DIM(v) : DIM_BAD;
    Sum s = {0};
    sum_dim(&s, a, 1);
    sum_dim(&s, b, 1);
    return intern(p, &s);
}

Dim dim_sub(Program *p, Dim a, Dim b)
{
    int64_t v;
    if (are_plain(a, b))
        return __builtin_sub_overflow(a.value, b.value, &v) ? DIM_BAD : DIM(v);
    Sum s = {0};
    sum_dim(&s, a, 1);
    sum_dim(&s, b, -1);
    return intern(p, &s);
}

Dim dim_mul(Program *p, Dim a, Dim b)
{
    int64_t v;
    if (dim_is_bad(a) || dim_is_bad(b))
        return DIM_BAD;
    if (are_plain(a, b))
        return mul_ok(a.value, b.value, &v) ? DIM(v) : DIM_BAD;
    Sum s = {0};
    if (!a.expr || !b.expr) {
        sum_dim(&s, a.expr ? a : b, a.expr ? b.value : a.value);
        return intern(p, &s);
    }
    sum_dim(&s, b, a.expr->constant);
    for (int i = 0; i < a.expr->n; i++) {
        Term lone = a.expr->term[i], t;
        s.bad = !mul_ok(lone.coef, b.expr->constant, &lone.coef) || s.bad;
        sum_term(&s, lone);
        for (int k = 0; k < b.expr->n; k++) {
            s.bad = !term_mul(&a.expr->term[i], &b.expr->term[k], &t) || s.bad;
            if (!s.bad)
                sum_term(&s, t);
        }
    }
    return intern(p, &s);
}

/* -- division ---------------------------------------------------------------------------- */

static int64_t floor_div(int64_t a, int64_t b)
{
    assert(b != 0);
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

/* Sets *out to t / d.  Returns false unless d's factors are among t's and its coefficient divides
 * t's. */
static bool term_div(const Term *t, const Term *d, Term *out)
{
    if ((t->coef == INT64_MIN && d->coef == -1) || t->coef % d->coef)
        return false;
    *out = (Term){.coef = t->coef / d->coef};
    int k = 0;
    for (int i = 0; i < t->n; i++) {
        if (k < d->n && !compare_atoms(t->factor[i], d->factor[k]))
            k++;
        else
            out->factor[out->n++] = t->factor[i];
    }
    return k == d->n;
}

/* Splits a into q * b + r: every term that b divides goes into q.  The division is exact if r is 0.
 */
static void split(Dim a, Dim b, Sum *q, Sum *r)
{
    assert(b.expr ? b.expr->n == 1 : b.value != 0);
    Term lone = {.coef = b.expr ? 0 : b.value}, t;
    const Term *d = b.expr ? &b.expr->term[0] : &lone;
    int64_t constant = a.expr ? a.expr->constant : a.value;
    for (int i = 0; a.expr && i < a.expr->n; i++) {
        if (term_div(&a.expr->term[i], d, &t) && (t.n || b.expr))
            t.n ? sum_term(q, t) : sum_constant(q, t.coef);
        else
            sum_term(r, a.expr->term[i]);
    }
    if (b.expr) {
        sum_constant(r, constant);
        return;
    }
    sum_constant(q, floor_div(constant, b.value));
    sum_constant(r, constant - floor_div(constant, b.value) * b.value);
}

static bool is_monomial(Dim b)
{
    return !b.expr || (b.expr->n == 1 && !b.expr->constant);
}

static bool can_divide(Dim a, Dim b)
{
    return !dim_is_bad(a) && !dim_is_bad(b) && !dim_equal(b, DIM(0));
}

static bool may_be_zero(Dim b)
{
    int64_t lo, hi;
    dim_range(b, &lo, &hi);
    return lo <= 0 && hi >= 0;
}

/* Returns whether 0 <= rest < b holds for all values of the symbols. */
static bool is_remainder(Dim rest, Dim b)
{
    int64_t lo, hi, b_lo, b_hi;
    dim_range(rest, &lo, &hi);
    dim_range(b, &b_lo, &b_hi);
    return lo >= 0 && hi < b_lo;
}

/* Computes floor((floor(x / c) + k) / b) as floor((x + k c) / (c b)), which sympy writes too.
 * Returns false if a is not such a quotient. */
static bool divide_twice(Program *p, Dim a, Dim b, Dim *out)
{
    const Term *t = a.expr && a.expr->n == 1 ? &a.expr->term[0] : NULL;
    const Atom *q = t && t->coef == 1 && t->n == 1 ? t->factor[0] : NULL;
    if (!q || q->kind != F_FLOORDIV || q->b.expr || q->b.value < 1 || b.expr || b.value < 1)
        return false;
    Dim x = dim_add(p, q->a, dim_mul(p, DIM(a.expr->constant), q->b));
    *out = dim_floordiv(p, x, dim_mul(p, q->b, b));
    return !dim_is_bad(*out);
}

/* Returns whether floor(x / n) is one number, *q, for all values of the symbols. */
static bool lies_between_multiples(Dim x, Dim n, int64_t *q)
{
    int64_t lo, hi;
    dim_range(x, &lo, &hi);
    if (n.expr || n.value < 1 || lo == INT64_MIN || hi == INT64_MAX)
        return false;
    *q = floor_div(lo, n.value);
    return *q == floor_div(hi, n.value);
}

/* Returns the quotient of what `split` left over.  It is a number if x lies between two multiples
 * of a constant n.  For a negative x, floor(-x / n) is written as -floor((x + n - 1) / n). */
static Dim quotient(Program *p, Dim x, Dim n)
{
    int64_t q;
    if (lies_between_multiples(x, n, &q))
        return DIM(q);
    if (!n.expr && n.value > 0 && x.expr->term[0].coef < 0) {
        Dim up = dim_add(p, dim_sub(p, DIM(0), x), DIM(n.value - 1));
        return dim_sub(p, DIM(0), dim_floordiv(p, up, n));
    }
    return atom(p, (Atom){.kind = F_FLOORDIV, .a = x, .b = n});
}

/* Returns the term t without its k-th factor. */
static Dim other_factors(Program *p, const Term *t, int k)
{
    Sum s = {.n = 1, .term[0] = {.coef = t->coef}};
    for (int i = 0; i < t->n; i++)
        if (i != k)
            s.term[0].factor[s.term[0].n++] = t->factor[i];
    return s.term[0].n ? intern(p, &s) : DIM(t->coef);
}

/* Returns whether a has the term -t for each term t of d, and d has at least one. */
static bool cancels(Dim a, Dim d)
{
    for (int i = 0; d.expr && i < d.expr->n; i++) {
        const Term *t = &d.expr->term[i];
        int k = 0;
        while (k < a.expr->n && compare_terms(&a.expr->term[k], t))
            k++;
        if (k == a.expr->n || t->coef == INT64_MIN || a.expr->term[k].coef != -t->coef)
            return false;
    }
    return d.expr != NULL;
}

static Dim without_term(Program *p, Dim a, int i)
{
    Sum lone = {.n = 1, .term[0] = a.expr->term[i]};
    return dim_sub(p, a, intern(p, &lone));
}

/* Rewrites s + f mod(x, n) ==> (s + f x) - f n floor(x / n) if the symbols of f x cancel in s.
 * Returns false if no term is such a mod. */
static bool expand_mod(Program *p, Dim a, Dim *out)
{
    for (int i = 0; a.expr && i < a.expr->n; i++)
        for (int k = 0; k < a.expr->term[i].n; k++) {
            const Atom *mod = a.expr->term[i].factor[k];
            if (mod->kind != F_MOD || mod->b.expr)
                continue;
            Dim f = other_factors(p, &a.expr->term[i], k), fx = dim_mul(p, f, mod->a);
            if (!cancels(a, fx))
                continue;
            Dim multiple = dim_mul(p, dim_mul(p, f, mod->b), dim_floordiv(p, mod->a, mod->b));
            *out = dim_sub(p, dim_add(p, without_term(p, a, i), fx), multiple);
            return !dim_is_bad(*out);
        }
    return false;
}

Dim dim_expand(Program *p, Dim d)
{
    Dim simpler;
    while (expand_mod(p, d, &simpler))
        d = simpler;
    return d;
}

/* With f = num / den * (1 + e) and |e| <= 2^-54, f times a multiple of den rounds to the exact integer,
 * as half an ulp of an integer k is at least k * 2^-54.  Other products are farther from integers
 * than they are rounded. */
bool dim_fraction(double f, int64_t *num, int64_t *den)
{
    enum { MOST = 4096, MOST_SHIFT = 30 };
    for (*den = 1; *den <= (int64_t)1 << MOST_SHIFT; *den += *den < MOST ? 1 : *den) {
        double near = floor(f * (double)*den + 0.5);
        if (!(fabs(near) < 0x1p53))
            return false;
        *num = (int64_t)near;
        if (fabs(fma(f, (double)*den, -near)) <= fabs(near) * 0x1p-54)
            return true;
    }
    return false;
}

/* A symbolic divisor that may be 0 is assumed to be nonzero if the division comes out even, as in
 * (%n*4) // %n.  Otherwise the division is refused. */
Dim dim_floordiv(Program *p, Dim a, Dim b)
{
    if (!can_divide(a, b))
        return DIM_BAD;
    if (dim_equal(b, DIM(-1)))
        return dim_sub(p, DIM(0), a);
    if (are_plain(a, b))
        return DIM(floor_div(a.value, b.value));
    a = dim_expand(p, a);
    if (dim_equal(a, b))
        return DIM(1);
    if (!is_monomial(b))
        return may_be_zero(b) ? DIM_BAD : atom(p, (Atom){.kind = F_FLOORDIV, .a = a, .b = b});
    Sum q = {0}, r = {0};
    split(a, b, &q, &r);
    Dim rest = intern(p, &r), whole = intern(p, &q), part;
    if (dim_is_bad(rest) || dim_is_bad(whole) || dim_equal(rest, DIM(0)))
        return dim_is_bad(rest) ? DIM_BAD : whole;
    if (may_be_zero(b))
        return DIM_BAD;
    if (is_remainder(rest, b))
        return whole;
    if (divide_twice(p, rest, b, &part))
        return dim_add(p, whole, part);
    return dim_add(p, whole, quotient(p, rest, b));
}

/* Rewrites mod(s + f mod(x, m), n) ==> mod(s + f x, n) if n divides m.  Returns false if there is
 * no such term. */
static bool mod_twice(Program *p, Dim a, Dim b, Dim *out)
{
    for (int i = 0; !b.expr && i < a.expr->n; i++)
        for (int k = 0; k < a.expr->term[i].n; k++) {
            const Term *t = &a.expr->term[i];
            const Atom *inner = t->factor[k];
            if (inner->kind != F_MOD || inner->b.expr || inner->b.value % b.value)
                continue;
            Dim rest = without_term(p, a, i), f = other_factors(p, t, k);
            *out = dim_mod(p, dim_add(p, rest, dim_mul(p, f, inner->a)), b);
            return !dim_is_bad(*out);
        }
    return false;
}

Dim dim_mod(Program *p, Dim a, Dim b)
{
    if (!can_divide(a, b))
        return DIM_BAD;
    if (dim_equal(b, DIM(-1)) || dim_equal(a, b))
        return DIM(0);
    if (are_plain(a, b))
        return DIM(a.value - floor_div(a.value, b.value) * b.value);
    a = dim_expand(p, a);
    if (!is_monomial(b))
        return may_be_zero(b) ? DIM_BAD : atom(p, (Atom){.kind = F_MOD, .a = a, .b = b});
    Sum q = {0}, r = {0};
    split(a, b, &q, &r);
    Dim rest = intern(p, &r), simpler;
    if (dim_is_bad(rest) || dim_equal(rest, DIM(0)))
        return rest;
    if (may_be_zero(b))
        return DIM_BAD;
    if (rest.expr && mod_twice(p, rest, b, &simpler))
        return simpler;
    int64_t between;
    if (lies_between_multiples(rest, b, &between))
        return dim_sub(p, rest, dim_mul(p, DIM(between), b));
    return is_remainder(rest, b) ? rest : atom(p, (Atom){.kind = F_MOD, .a = rest, .b = b});
}

static Dim extreme(Program *p, FactorKind kind, Dim a, Dim b)
{
    int64_t least, most;
    Dim over = dim_sub(p, a, b);
    assert(kind == F_MAX || kind == F_MIN);
    if (dim_is_bad(a) || dim_is_bad(b))
        return DIM_BAD;
    dim_range(over, &least, &most);
    if (!dim_is_bad(over) && (least >= 0 || most <= 0))
        return (least >= 0) == (kind == F_MAX) ? a : b;
    bool swap = compare_dims(a, b) > 0;
    return atom(p, (Atom){.kind = kind, .a = swap ? b : a, .b = swap ? a : b});
}

Dim dim_max(Program *p, Dim a, Dim b)
{
    return extreme(p, F_MAX, a, b);
}

Dim dim_min(Program *p, Dim a, Dim b)
{
    return extreme(p, F_MIN, a, b);
}

/* -- ranges ------------------------------------------------------------------------------ */

typedef struct Range {
    int64_t lo, hi; /* the ends of int64_t mean that there is no bound */
} Range;

static int64_t clamped_add(int64_t a, int64_t b)
{
    int64_t c;
    if (a == INT64_MIN || b == INT64_MIN)
        return INT64_MIN;
    if (a == INT64_MAX || b == INT64_MAX)
        return INT64_MAX;
    return add_ok(a, b, &c) ? c : a < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t clamped_mul(int64_t a, int64_t b)
{
    int64_t c;
    bool far = a == INT64_MIN || a == INT64_MAX || b == INT64_MIN || b == INT64_MAX;
    if (!a || !b)
        return 0;
    if (!far && mul_ok(a, b, &c))
        return c;
    return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

static Range range_mul(Range a, Range b)
{
    int64_t v[4] = {clamped_mul(a.lo, b.lo), clamped_mul(a.lo, b.hi), clamped_mul(a.hi, b.lo),
                    clamped_mul(a.hi, b.hi)};
    Range r = {v[0], v[0]};
    for (int i = 1; i < 4; i++) {
        r.lo = v[i] < r.lo ? v[i] : r.lo;
        r.hi = v[i] > r.hi ? v[i] : r.hi;
    }
    return r;
}

static int64_t clamped_div(int64_t a, int64_t b)
{
    if (a == INT64_MIN || a == INT64_MAX)
        return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return floor_div(a, b);
}

/* The range of a divisor does not contain 0, as can_divide has checked. */
static Range range_div(Range a, Range b)
{
    assert(b.lo > 0 || b.hi < 0);
    int64_t v[4] = {clamped_div(a.lo, b.lo), clamped_div(a.lo, b.hi), clamped_div(a.hi, b.lo),
                    clamped_div(a.hi, b.hi)};
    Range r = {v[0], v[0]};
    for (int i = 1; i < 4; i++) {
        r.lo = v[i] < r.lo ? v[i] : r.lo;
        r.hi = v[i] > r.hi ? v[i] : r.hi;
    }
    return r;
}

static Range range_of(Dim d)
{
    Range r;
    dim_range(d, &r.lo, &r.hi);
    return r;
}

static Range atom_range(const Atom *a)
{
    if (a->kind == F_SYMBOL)
        return (Range){a->sym->lo, a->sym->hi};
    Range x = range_of(a->a), y = range_of(a->b);
    switch (a->kind) {
    case F_FLOORDIV:
        return range_div(x, y);
    case F_MOD:
        return y.lo > 0 ? (Range){0, y.hi == INT64_MAX ? y.hi : y.hi - 1}
                        : (Range){y.lo == INT64_MIN ? y.lo : y.lo + 1, 0};
    case F_MAX:
        return (Range){x.lo > y.lo ? x.lo : y.lo, x.hi > y.hi ? x.hi : y.hi};
    case F_MIN:
        return (Range){x.lo < y.lo ? x.lo : y.lo, x.hi < y.hi ? x.hi : y.hi};
    case F_SYMBOL:
        break;
    }
    UNREACHABLE();
}

void dim_range(Dim d, int64_t *lo, int64_t *hi)
{
    *lo = *hi = d.expr ? d.expr->constant : d.value;
    for (int i = 0; d.expr && i < d.expr->n; i++) {
        const Term *t = &d.expr->term[i];
        int k = t->coef == 1 && t->n;
        Range r = k ? atom_range(t->factor[0]) : (Range){t->coef, t->coef};
        for (; k < t->n; k++)
            r = range_mul(r, atom_range(t->factor[k]));
        *lo = clamped_add(*lo, r.lo);
        *hi = clamped_add(*hi, r.hi);
    }
}

int64_t dim_upper(Dim d)
{
    int64_t lo, hi;
    if (!d.expr)
        return d.value;
    dim_range(d, &lo, &hi);
    return hi;
}

/* -- evaluation, walking, text ----------------------------------------------------------- */

static bool atom_eval(const Atom *a, const int64_t *symbol, int64_t *v)
{
    int64_t x, y;
    if (a->kind == F_SYMBOL) {
        *v = symbol[a->sym->index];
        return true;
    }
    if (!dim_eval(a->a, symbol, &x) || !dim_eval(a->b, symbol, &y))
        return false;
    if ((a->kind == F_FLOORDIV || a->kind == F_MOD) && (y == 0 || (y == -1 && x == INT64_MIN)))
        return false;
    switch (a->kind) {
    case F_FLOORDIV:
        *v = floor_div(x, y);
        return true;
    case F_MOD:
        *v = x - floor_div(x, y) * y;
        return true;
    case F_MAX:
        *v = x > y ? x : y;
        return true;
    case F_MIN:
        *v = x < y ? x : y;
        return true;
    case F_SYMBOL:
        break;
    }
    UNREACHABLE();
}

bool dim_eval(Dim d, const int64_t *symbol, int64_t *v)
{
    *v = d.expr ? d.expr->constant : d.value;
    for (int i = 0; d.expr && i < d.expr->n; i++) {
        const Term *t = &d.expr->term[i];
        int64_t product = t->coef, x;
        for (int k = 0; k < t->n; k++)
            if (!atom_eval(t->factor[k], symbol, &x) || !mul_ok(product, x, &product))
                return false;
        if (!add_ok(*v, product, v))
            return false;
    }
    return !dim_is_bad(d);
}

void dim_symbols(Dim d, void (*visit)(const Symbol *s, void *ctx), void *ctx)
{
    for (int i = 0; d.expr && i < d.expr->n; i++)
        for (int k = 0; k < d.expr->term[i].n; k++) {
            const Atom *a = d.expr->term[i].factor[k];
            if (a->kind == F_SYMBOL) {
                visit(a->sym, ctx);
            } else {
                dim_symbols(a->a, visit, ctx);
                dim_symbols(a->b, visit, ctx);
            }
        }
}

/* -- parts ------------------------------------------------------------------------------------- */

int dim_terms(Dim d, int64_t *constant)
{
    *constant = d.expr ? d.expr->constant : d.value;
    return d.expr ? d.expr->n : 0;
}

int dim_term(Dim d, int i, int64_t *coefficient)
{
    assert(d.expr && i < d.expr->n);
    *coefficient = d.expr->term[i].coef;
    return d.expr->term[i].n;
}

Factor dim_factor(Dim d, int i, int k)
{
    assert(d.expr && i < d.expr->n && k < d.expr->term[i].n);
    const Atom *a = d.expr->term[i].factor[k];
    return (Factor){a->kind, a->sym, a->a, a->b};
}

bool dim_is_linear(Dim d, const Symbol **symbol, int64_t *scale, int64_t *offset)
{
    const Term *t = d.expr && d.expr->n == 1 ? &d.expr->term[0] : NULL;
    if (!t || t->n != 1 || t->factor[0]->kind != F_SYMBOL || t->coef < 1)
        return false;
    *symbol = t->factor[0]->sym;
    *scale = t->coef;
    *offset = d.expr->constant;
    return true;
}

/* -- text -------------------------------------------------------------------------------------- */

static void print_atom(const Atom *a, FILE *out)
{
    static const char *const name[] = {"", "floordiv", "mod", "max", "min"};
    if (a->kind == F_SYMBOL) {
        fprintf(out, "%%%s", a->sym->name);
        return;
    }
    fprintf(out, "%s(", name[a->kind]);
    dim_print(a->a, out);
    fputc(',', out);
    dim_print(a->b, out);
    fputc(')', out);
}

static void print_term(const Term *t, bool first, FILE *out)
{
    if (t->coef < 0)
        fputc('-', out);
    else if (!first)
        fputc('+', out);
    uint64_t size = t->coef < 0 ? -(uint64_t)t->coef : (uint64_t)t->coef;
    if (size != 1)
        fprintf(out, "%" PRIu64 "*", size);
    for (int k = 0; k < t->n; k++) {
        fputs(k ? "*" : "", out);
        print_atom(t->factor[k], out);
    }
}

void dim_print(Dim d, FILE *out)
{
    for (int i = 0; d.expr && i < d.expr->n; i++)
        print_term(&d.expr->term[i], !i, out);
    if (!d.expr)
        fprintf(out, "%" PRId64, d.value);
    else if (d.expr->constant)
        fprintf(out, "%+" PRId64, d.expr->constant);
}
