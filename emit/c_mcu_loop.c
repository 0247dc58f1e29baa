/* c_mcu_loop.c -- prints groups of several operations on bytes as one loop in 32 bits, for targets
 * that compute in fixed point.
 *
 * Each value of the loop is an integer times a scale.  The scale and the integer's bounds are
 * known here, because those of the bytes are.  Factors have at most 15 bits and sums at most 29,
 * so nothing overflows 32 bits.  An integer with more bits is rounded: it loses its lowest
 * bits.  A function of one byte becomes a table of 256 entries.  A function of another value
 * becomes a table of 257 entries, and is linear between two of them.  All operations are exact
 * or round half up, so every machine computes the same bits. */
#include "emit/c_emit.h"
#include "ir/eval.h"
#include <math.h>
#include <string.h>

enum { FACTOR_BITS = 15, SUM_BITS = 29, ENTRIES = 257 };

typedef struct Fixed {
    const char *name; /* an expression of type int32_t; NULL: it could not be made */
    double scale, lo, hi; /* lo and hi are the bounds of the integer */
    const Value *byte;    /* the value that it is dequantized from, or NULL */
    int64_t least, zero;  /* the least integer and the zero point of `byte` */
    bool is_inverse; /* it stands for 1 / the value */
} Fixed;

typedef struct McuLoop {
    Function *f;
    Nest nest;
    const char *index[MAX_LOOPS];
    const Value **operand;
    int n, indent;
    Fixed *of;      /* by value index */
    const char *wish; /* the wanted name for results of the current node */
    bool is_faulty;   /* an error was reported */
} McuLoop;

static double most_of(const Fixed *x)
{
    return fmax(fabs(x->lo), fabs(x->hi));
}

/* Returns the number of bits of the integer without its sign. */
static int bits_of(const Fixed *x)
{
    int bits = 1;
    while (ldexp(1, bits) < most_of(x) + 1)
        bits++;
    return bits;
}

static const char *declare(McuLoop *l, const char *expr)
{
    const char *name = names_make(l->f->names, "v_", l->wish);
    put(&l->f->body, "%*sconst int32_t %s = %s;\n", l->indent, "", name, expr);
    return name;
}

static const char *number(const McuLoop *l, double v)
{
    assert(fabs(v) < 2147483647.0);
    return arena_printf(l->f->e->a, v < 0 ? "(%d)" : "%d", (int)v);
}

/* Returns x with at most `bits` bits; lower bits are rounded off. */
static Fixed reduce(McuLoop *l, Fixed x, int bits)
{
    const int by = bits_of(&x) - bits;
    if (by <= 0)
        return x;
    const char *expr = arena_printf(l->f->e->a, "(%s + %d) >> %d", x.name, 1 << (by - 1), by);
    return (Fixed){.name = declare(l, expr), .scale = ldexp(x.scale, by),
                   .lo = floor(ldexp(x.lo, -by) + 0.5), .hi = floor(ldexp(x.hi, -by) + 0.5)};
}

/* Returns x with another scale.  The caller chooses a scale at which both operands of a node
 * fit. */
static Fixed rescale(McuLoop *l, Fixed x, double scale)
{
    x = reduce(l, x, FACTOR_BITS);
    const double by = nearbyint(x.scale / scale);
    return (Fixed){.name = arena_printf(l->f->e->a, "(%s * %s)", x.name, number(l, by)),
                   .scale = scale, .lo = x.lo * by, .hi = x.hi * by};
}

static double reach(const Fixed *x)
{
    return most_of(x) * x->scale;
}

/* -- operations ------------------------------------------------------------------------------- */

static Fixed sum(McuLoop *l, Fixed a, Fixed b, double sign)
{
    const double scale = ldexp(reach(&a) + reach(&b), -SUM_BITS);
    if (b.scale == 0 || (a.scale == 0 && sign > 0)) /* the scale of zeros is 0 */
        return b.scale != 0 ? b : a;
    a = rescale(l, a, scale);
    b = rescale(l, b, scale);
    return (Fixed){.name = declare(l, arena_printf(l->f->e->a, "%s %s %s", a.name,
                                                   sign < 0 ? "-" : "+", b.name)),
                   .scale = scale, .lo = a.lo + (sign < 0 ? -b.hi : b.lo),
                   .hi = a.hi + (sign < 0 ? -b.lo : b.hi)};
}

static Fixed product(McuLoop *l, Fixed a, Fixed b)
{
    a = reduce(l, a, FACTOR_BITS);
    b = reduce(l, b, FACTOR_BITS);
    const double p[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
    return (Fixed){.name = declare(l, arena_printf(l->f->e->a, "%s * %s", a.name, b.name)),
                   .scale = a.scale * b.scale, .lo = fmin(fmin(p[0], p[1]), fmin(p[2], p[3])),
                   .hi = fmax(fmax(p[0], p[1]), fmax(p[2], p[3]))};
}

/* Returns the larger of two values, or the smaller. */
static Fixed choice(McuLoop *l, Fixed a, Fixed b, bool larger)
{
    const double scale = ldexp(fmax(reach(&a), reach(&b)), -SUM_BITS);
    if (!(scale > 0))
        return (Fixed){0};
    a = rescale(l, a, scale);
    b = rescale(l, b, scale);
    const char *const expr = arena_printf(l->f->e->a, "etc_%s_i32(%s, %s)", larger ? "max" : "min",
                                          a.name, b.name);
    return (Fixed){.name = declare(l, expr), .scale = scale,
                   .lo = larger ? fmax(a.lo, b.lo) : fmin(a.lo, b.lo),
                   .hi = larger ? fmax(a.hi, b.hi) : fmin(a.hi, b.hi)};
}

/* -- functions of one value ------------------------------------------------------------------- */

/* Sets y to the inverses of x, which are equally far apart; this distance stands for 0.  Returns false if
 * one is not finite. */
static bool invert(const double *x, int count, double *y)
{
    const double step = fabs(x[1] - x[0]);
    bool ok = step > 0;
    for (int i = 0; ok && i < count; i++) {
        y[i] = 1 / (fabs(x[i]) < step / 2 ? step : x[i]);
        ok = isfinite(y[i]);
    }
    return ok;
}

/* Evaluates n for x[0 .. count), or where n divides, the inverse of its divisor.  Returns false if a result
 * is not finite, or an error was reported. */
static bool sample(McuLoop *l, const Node *n, const double *x, int count, double *y)
{
    if (!strcmp(op_expr(n->op), "div"))
        return invert(x, count, y);
    const Type t = first_operand(n)->type;
    int64_t dim[MAX_RANK], each = type_numel(t);
    bool ok = each > 0;
    for (int i = 0; i < t.rank; i++)
        dim[i] = t.dim[i].value;
    for (int64_t from = 0; ok && from < count; from += each) {
        Arena *tmp = arena_new();
        EtcTensor *in = tensor_new(tmp, ETC_F32, t.rank, dim), *out = NULL;
        for (int64_t i = 0; i < each; i++)
            ((float *)in->data)[i] = (float)x[from + i < count ? from + i : count - 1];
        ok = eval_node(n, &in, NULL, tmp, &out, l->f->e->d);
        l->is_faulty = !ok;
        for (int64_t i = 0; ok && i < each && from + i < count; i++)
            ok = isfinite(y[from + i] = ((float *)out->data)[i]);
        arena_free(tmp);
    }
    return ok;
}

/* Makes an array of the samples as integers of 16 bits, and sets the scale and bounds of *to.
 * Returns the name of the array. */
static const char *put_table(McuLoop *l, const Node *n, const double *y, int count, Fixed *to)
{
    Emit *e = l->f->e;
    int16_t *table = NEW(e->a, int16_t, count + 1);
    double most = 0;
    for (int i = 0; i < count; i++)
        most = fmax(most, fabs(y[i]));
    to->scale = most > 0 ? most / 32767 : 1;
    for (int i = 0; i < count; i++) {
        table[i] = (int16_t)nearbyint(y[i] / to->scale);
        to->lo = i ? fmin(to->lo, table[i]) : table[i];
        to->hi = i ? fmax(to->hi, table[i]) : table[i];
    }
    table[count] = table[count - 1];
    return made_array(e, n->out[0]->name, "table", ETC_I16, count + 1, table);
}

static Fixed of_byte(McuLoop *l, const Node *n, Fixed x)
{
    double at[256], y[256];
    Fixed to = {0};
    for (int i = 0; i < 256; i++)
        at[i] = (double)(i + x.least - x.zero) * x.scale;
    if (!sample(l, n, at, 256, y))
        return to;
    const char *table = put_table(l, n, y, 256, &to);
    to.name = declare(l, arena_printf(l->f->e->a, "%s[%s + %d]", table, x.name,
                                      (int)(x.zero - x.least)));
    return to;
}

/* Finds the range [at[0], at[1]] outside of which the function is almost constant. */
static void narrow(const double *x, const double *y, double at[2])
{
    int from = 0, to = ENTRIES - 1;
    double most = 0;
    for (int i = 0; i < ENTRIES; i++)
        most = fmax(most, fabs(y[i]));
    while (from + 1 < to && fabs(y[from + 1] - y[0]) < ldexp(most, -13))
        from++;
    while (to - 1 > from && fabs(y[to - 1] - y[ENTRIES - 1]) < ldexp(most, -13))
        to--;
    at[0] = x[from];
    at[1] = x[to];
}

static Fixed of_any(McuLoop *l, const Node *n, Fixed x)
{
    double at[ENTRIES], y[ENTRIES], end[2];
    Fixed to = {0};
    x = reduce(l, x, FACTOR_BITS);
    end[0] = x.lo;
    end[1] = x.hi;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < ENTRIES; i++)
            at[i] = (end[0] + (end[1] - end[0]) * i / (ENTRIES - 1)) * x.scale;
        if (!(end[1] > end[0]) || !sample(l, n, at, ENTRIES, y))
            return to;
        if (round < 2) {
            narrow(at, y, end);
            end[0] = floor(end[0] / x.scale);
            end[1] = ceil(end[1] / x.scale);
        }
    }
    const char *table = put_table(l, n, y, ENTRIES, &to);
    const double by = floor(1073741824.0 / (end[1] - end[0]));
    to.name = declare(l, arena_printf(
        l->f->e->a, "etc_mcu_curve(%s, ((etc_min_i32(etc_max_i32(%s, %s), %s) - %s) * %s) >> 15)",
        table, x.name, number(l, end[0]), number(l, end[1]), number(l, end[0]), number(l, by)));
    return to;
}

/* Returns 1 / x, the divisor of n.  Lines between 257 points are only close to it if 0 is far from x. */
static Fixed inverse(McuLoop *l, const Node *n, Fixed x)
{
    enum { MOST = 32 };
    const bool is_far = x.lo > 0 ? x.hi <= MOST * x.lo : x.hi < 0 && x.lo >= MOST * x.hi;
    return x.byte ? of_byte(l, n, x) : is_far ? of_any(l, n, x) : (Fixed){0};
}

static Fixed clamped(McuLoop *l, Fixed x, const Clamp *c)
{
    if (!(x.scale > 0))
        return (Fixed){0};
    const double lo = fmin(fmax(nearbyint(c->lo / x.scale), x.lo), x.hi);
    const double hi = fmax(fmin(nearbyint(c->hi / x.scale), x.hi), lo);
    const char *expr = x.name;
    if (lo > x.lo)
        expr = arena_printf(l->f->e->a, "etc_max_i32(%s, %s)", expr, number(l, lo));
    if (hi < x.hi)
        expr = arena_printf(l->f->e->a, "etc_min_i32(%s, %s)", expr, number(l, hi));
    return (Fixed){.name = declare(l, expr), .scale = x.scale, .lo = lo, .hi = hi};
}

static Fixed unary(McuLoop *l, const Node *n, Fixed x)
{
    const char *expr = op_expr(n->op);
    Clamp c;
    double by = 0;
    if (x.byte)
        return of_byte(l, n, x);
    if (clamp_read(n, &c))
        return clamped(l, x, &c);
    if (!strcmp(expr, "neg"))
        return (Fixed){.name = declare(l, arena_printf(l->f->e->a, "-%s", x.name)),
                       .scale = x.scale, .lo = -x.hi, .hi = -x.lo};
    if (!strcmp(expr, "mul_scalar") && arg_number(n, arg_find(n, "other"), &by) && by > 0) {
        x.scale *= by;
        return x;
    }
    return of_any(l, n, x);
}

static Fixed binary(McuLoop *l, const Node *n, Fixed a, Fixed b)
{
    const char *expr = op_expr(n->op);
    double alpha = 1;
    const bool is_plain = arg_find(n, "alpha") < 0 ||
                          (arg_number(n, arg_find(n, "alpha"), &alpha) && alpha == 1);
    if (!strcmp(expr, "add") && is_plain)
        return sum(l, a, b, 1);
    if (!strcmp(expr, "sub") && is_plain)
        return sum(l, a, b, -1);
    if (!strcmp(expr, "mul") || (!strcmp(expr, "div") && b.is_inverse))
        return product(l, a, b);
    if (!strcmp(expr, "div") && (b = inverse(l, n, b)).name)
        return product(l, a, b);
    if (!strcmp(expr, "maximum") || !strcmp(expr, "minimum"))
        return choice(l, a, b, !strcmp(expr, "maximum"));
    return (Fixed){0};
}

/* -- operands --------------------------------------------------------------------------------- */

/* Returns whether all nodes that read v divide by it. */
static bool is_divisor(const Graph *body, const Value *v)
{
    bool ok = true;
    for (const Node *n = body->first; ok && n; n = n->next)
        for (int i = 0; ok && i < n->n_in; i++)
            ok = n->in[i] != v || (i == 1 && !strcmp(op_expr(n->op), "div"));
    return ok;
}

/* Makes an array of known floats as integers of 16 bits, and sets the scale and bounds of *to.
 * Divisors are stored as their inverses.  Returns the name of the array; NULL: all are zeros, whose
 * scale is 0. */
static const char *put_floats(McuLoop *l, const Value *v, Fixed *to)
{
    const int64_t n = type_numel(v->type);
    const float *from = state_elements(v->state);
    int16_t *data = NEW(l->f->e->a, int16_t, n);
    double *real = NEW(l->f->e->a, double, n), most = 0;
    for (int64_t i = 0; i < n; i++) {
        real[i] = to->is_inverse ? 1 / (double)from[i] : (double)from[i];
        most = fmax(most, fabs(real[i]));
    }
    to->scale = most / 32767;
    for (int64_t i = 0; i < n && most > 0; i++) {
        data[i] = (int16_t)nearbyint(real[i] / to->scale);
        to->lo = fmin(to->lo, data[i]);
        to->hi = fmax(to->hi, data[i]);
    }
    return most > 0 ? made_array(l->f->e, v->name, "fixed", ETC_I16, n, data) : NULL;
}

static bool is_byte(const Value *v)
{
    return v->type.dtype == ETC_I8 || v->type.dtype == ETC_U8;
}

/* Returns whether v is a constant whose floats 16 bits and a scale can represent.  If the reader
 * divides by v, this must also be true of their inverses. */
static bool is_known(Emit *e, const Value *v, bool divides)
{
    const bool is_floats = value_is_fixed(v) && v->type.dtype == ETC_F32 &&
                           c_type_is_dense(e, v->type);
    const float *at = is_floats ? state_elements(v->state) : NULL;
    bool ok = at != NULL;
    for (int64_t i = 0; ok && i < type_numel(v->type); i++)
        ok = fabs((double)at[i]) < 1e30 && (!divides || fabs((double)at[i]) > 1e-30);
    return ok;
}

static bool read_points(const Node *n, bool undoes, QParams *q)
{
    return qparams_read(n, q) && q->undoes == undoes && q->kind == Q_TENSOR && !q->scales &&
           q->scale > 0 && (q->dtype == ETC_I8 || q->dtype == ETC_U8);
}

/* Checks that all nodes are functions of one value, or operations on two values that the loop has.
 * Bytes must be read by a dequantize, and the result must be made by a quantize. */
static bool is_fit(Emit *e, const Graph *body)
{
    QParams q;
    const Node *last = body->out[0]->def;
    bool ok = body->n_out == 1 && last && read_points(last, false, &q) && is_byte(body->out[0]) &&
              type_is_static(last->out[0]->type) && type_bytes(last->out[0]->type) < 1 << 28;
    for (const Node *n = body->first; ok && n; n = n->next) {
        const bool scales = read_points(n, n != last, &q);
        ok = n->n_out == 1 && type_is_static(n->out[0]->type) && type_numel(n->out[0]->type) > 0 &&
             (scales || (n != last && n->out[0]->type.dtype == ETC_F32 && n->n_in >= 1 &&
                         n->n_in <= 2 && eval_can(n) && !node_reads_symbols(n)));
        for (int i = 0; ok && i < n->n_in; i++)
            ok = n->in[i]->def || (scales && n != last && is_byte(n->in[i])) ||
                 (!scales && is_known(e, n->in[i], !strcmp(op_expr(n->op), "div")));
    }
    return ok;
}

static void find_operands(McuLoop *l, const Graph *body)
{
    bool *seen = NEW(l->f->e->a, bool, body->n_values + 1);
    int n = 0;
    for (const Node *m = body->first; m; m = m->next)
        n += m->n_in;
    l->operand = NEW(l->f->e->a, const Value *, n + 1);
    for (const Node *m = body->first; m; m = m->next)
        for (int i = 0; i < m->n_in; i++)
            if (!m->in[i]->def && !seen[m->in[i]->index]) {
                seen[m->in[i]->index] = true;
                l->operand[l->n++] = m->in[i];
            }
}

/* Prints the heads of the loops over y, and the loads of the operands. */
static void open_loop(McuLoop *l, const Graph *body, const Value *y)
{
    Function *f = l->f;
    const char **pointer = NEW(f->e->a, const char *, l->n + 1);
    l->nest = nest_new(f->e, y->type, l->n + 1);
    for (int k = 0; k < l->n; k++) {
        const Value *v = l->operand[k];
        nest_operand(f->e, &l->nest, k, value_type(v));
        l->of[v->index].is_inverse = !is_byte(v) && is_divisor(body, v);
        pointer[k] = is_byte(v) ? function_pointer(f, v) : put_floats(l, v, &l->of[v->index]);
    }
    nest_operand(f->e, &l->nest, l->n, y->type);
    nest_collapse(f->e, &l->nest);
    l->indent = nest_open(f, &l->nest, l->nest.rank, l->index);
    for (int k = 0; k < l->n; k++) {
        const char *name = pointer[k] ? names_make(f->names, "v_", l->operand[k]->name) : "0";
        l->of[l->operand[k]->index].name = name;
        if (!pointer[k])
            continue;
        put(&f->body, "%*sconst int32_t %s = *(", l->indent, "", name);
        nest_address(f, &l->nest, k, pointer[k], l->nest.rank, l->index);
        put(&f->body, ");\n");
    }
}

static Fixed dequantized(McuLoop *l, const QParams *q)
{
    const int64_t least = q->dtype == ETC_U8 ? 0 : -128;
    const char *expr = arena_printf(l->f->e->a, "%s - %s", l->of[q->x->index].name,
                                    number(l, (double)q->zero));
    return (Fixed){.name = declare(l, expr), .scale = q->scale, .lo = (double)(least - q->zero),
                   .hi = (double)(least + 255 - q->zero), .byte = q->x, .least = least,
                   .zero = q->zero};
}

static bool put_quantized(McuLoop *l, const QParams *q, Fixed x, const char *y)
{
    enum { BITS = 16 };
    x = reduce(l, x, BITS);
    const double ratio = x.scale / q->scale;
    int bits = 22; /* the bits of the fraction */
    while (bits > 0 && ldexp(most_of(&x) * ratio + fabs((double)q->zero) + 1, bits) > 2147400000.0)
        bits--;
    if (bits < 1)
        return false;
    const char *v = declare(l, arena_printf(
        l->f->e->a, "((%s * %s) + %s) >> %d", x.name, number(l, nearbyint(ldexp(ratio, bits))),
        number(l, nearbyint(ldexp((double)q->zero + 0.5, bits))), bits));
    put(&l->f->body, "%*s*(", l->indent, "");
    nest_address(l->f, &l->nest, l->n, y, l->nest.rank, l->index);
    put(&l->f->body, ") = (%s)etc_min_i32(etc_max_i32(%s, %s), %s);\n", c_type(q->dtype), v,
        number(l, (double)q->lo), number(l, (double)q->hi));
    return true;
}

static bool put_node(McuLoop *l, const Node *n, const char *y)
{
    QParams q;
    Fixed *to = &l->of[n->out[0]->index];
    l->wish = n->out[0]->name;
    if (qparams_read(n, &q)) {
        if (!q.undoes)
            return put_quantized(l, &q, l->of[q.x->index], y);
        *to = dequantized(l, &q);
        return true;
    }
    const Fixed a = l->of[first_operand(n)->index], b = l->of[n->in[n->n_in - 1]->index];
    *to = n->n_in == 1 ? unary(l, n, a) : binary(l, n, a, b);
    return to->name != NULL;
}

bool emit_mcu_loop(Function *f, const Graph *body, bool *done)
{
    McuLoop l = {.f = f, .of = NEW(f->e->a, Fixed, body->n_values + 1)};
    const char *y = f->name_of[body->out[0]->index];
    const Text had = f->body;
    const int n_made = f->e->n_made;
    const int64_t flash = f->e->flash;
    *done = is_fit(f->e, body);
    if (!*done)
        return true;
    find_operands(&l, body);
    open_loop(&l, body, body->out[0]);
    for (const Node *n = body->first; n && *done; n = n->next)
        *done = put_node(&l, n, y);
    if (*done) {
        nest_close(f, l.nest.rank);
        return true;
    }
    f->body = had; /* drops what was printed */
    if (had.s)
        had.s[had.n] = '\0';
    f->e->n_made = n_made;
    f->e->flash = flash;
    return !l.is_faulty;
}
