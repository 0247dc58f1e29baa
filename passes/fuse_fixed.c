/* fuse_fixed.c -- computes products of two activations and norms between dequantize and quantize
 * in fixed point, for C of targets that compute so.
 *
 * Stage core, after fuse_integers.  There is one walk, which looks at each node once.  Each value
 * between the dequantize and the quantize has one reader:
 *
 *   quantize(bmm(dequantize(a), dequantize(b)))    ==>  etc.integer_matmul(a, b)
 *   quantize(bmm(...) * number)                    ==>  the same
 *   quantize(norm(dequantize(x), weight, bias))    ==>  etc.integer_norm(x), layer and group norm
 *   float(bytes)                                   ==>  dequantize(bytes), of scale 1
 *
 * Scales are per tensor, weights and biases of a norm are constants.  If b is the result of a
 * permute that swaps its last two axes, the product reads what was swapped.  A node whose numbers
 * do not fit into the fixed point stays as it is.
 */
#include "passes/internal.h"
#include "ir/session.h"
#include <string.h>

typedef struct Fixed {
    Rewrite r;
    Uses u;
} Fixed;

/* Returns the integer nearest to v, ties to even, without libm.  |v| is at most 2^51. */
static double nearest(double v)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: sums have no bits below 1 */
    return v + shift - shift;
}

/* -- products ---------------------------------------------------------------------------------- */

/* Returns x if n multiplies or divides x by a positive number, and sets *by to the factor; else
 * NULL. */
static const Value *read_scaling(const Node *n, double *by)
{
    const char *expr = op_expr(n->op);
    const bool is_by = !strcmp(expr, "div_scalar");
    if ((!is_by && strcmp(expr, "mul_scalar") != 0) || !arg_number(n, arg_find(n, "other"), by))
        return NULL;
    *by = is_by ? 1 / *by : *by;
    return *by > 0 ? arg_value(n, "self") : NULL;
}

static bool fuse_matmul(Fixed *f, Node *n, const Node *product, double by, const QParams *to)
{
    QParams a, b;
    Permute turn;
    Value *x = read_dequantize(arg_value(product, "self"), &a);
    Value *w = read_dequantize(arg_value(product, "mat2"), &b);
    const double factor = x && w ? a.scale * b.scale * by / to->scale * 2147483648.0 : 0;
    if (!(factor > 0 && factor < 0x3fffffff) || !type_is_static(x->type) ||
        x->type.dim[2].value < 1 || x->type.dim[2].value > 32768)
        return true;
    const bool is_turned = w->def && permute_read(w->def, &turn) && permute_swaps_last(&turn);
    Node *y = build(f->r.g, n, product->loc, OP_INTEGER_MATMUL, f->r.d, "vvbiiiiiit", x,
                    is_turned ? turn.x : w, is_turned, a.zero, b.zero, (int64_t)nearest(factor),
                    to->zero, to->lo, to->hi, to->dtype);
    return y && rewrite_node(&f->r, n, y->out[0]);
}

/* -- norms ------------------------------------------------------------------------------------- */

typedef struct NormShape {
    int64_t channels, row, each;
} NormShape;

static bool shape_of(const Norm *m, NormShape *s)
{
    const Type t = m->x->type;
    *s = (NormShape){1, 1, 1};
    if (!type_is_static(t) || type_numel(t) < 1)
        return false;
    if (m->kind == NORM_GROUP) {
        s->channels = t.rank > 1 ? t.dim[1].value : 0;
        for (int i = 2; i < t.rank; i++)
            s->each *= t.dim[i].value;
        s->row = s->channels / m->groups * s->each;
    } else {
        for (int i = t.rank - m->axes; i < t.rank; i++)
            s->row *= t.dim[i].value;
        s->channels = s->row;
    }
    return m->kind != NORM_BATCH && s->row > 0 && s->row <= 32768;
}

static double magnitude(double v)
{
    return v < 0 ? -v : v;
}

/* Reads the n floats of the constant v, one per channel, into *to.  If v is NULL, all of them are
 * `otherwise`.  Returns false if the floats are not known. */
static bool read_channels(Fixed *f, const Value *v, int64_t n, double otherwise, double **to)
{
    *to = NEW(f->r.tmp, double, n);
    for (int64_t i = 0; i < n; i++)
        (*to)[i] = otherwise;
    const float *from = value_floats(v, n);
    bool ok = !v || from;
    for (int64_t i = 0; v && ok && i < n; i++) {
        (*to)[i] = from[i];
        ok = magnitude((*to)[i]) < 1e30; /* this is false for NaN too */
    }
    return ok;
}

static Value *constant(Fixed *f, const Node *n, const char *what, int64_t count, int32_t *data)
{
    Program *p = f->r.g->program;
    const char *name = arena_printf(p->arena, "%s_%s", n->out[0]->name, what);
    const Dim dim = DIM(count);
    return graph_state(f->r.g, program_const(p, name, "", type_tensor(p, ETC_I32, 1, &dim), data));
}

/* Returns the most fraction bits with which the factors stay below 2^15 and the offsets within
 * 2^30, in steps of y; 0: there are none. */
static int fraction_of(const double *factor, const double *offset, int64_t n)
{
    double most = 0, far = 0;
    for (int64_t i = 0; i < n; i++) {
        most = magnitude(factor[i]) > most ? magnitude(factor[i]) : most;
        far = magnitude(offset[i]) > far ? magnitude(offset[i]) : far;
    }
    for (int shift = 30; shift > 0; shift--)
        if (most * (double)(1 << shift) < 32767 && far * (double)(1 << shift) < 1073741823)
            return shift;
    return 0;
}

static bool fuse_norm(Fixed *f, Node *n, const Node *norm, const QParams *to)
{
    QParams from;
    Norm m;
    NormShape s;
    double *factor, *offset, eps;
    Value *x = norm_read(norm, &m) ? read_dequantize(m.x, &from) : NULL;
    if (!x || !shape_of(&m, &s) || !read_channels(f, m.weight, s.channels, 1, &factor) ||
        !read_channels(f, m.bias, s.channels, 0, &offset))
        return true;
    int wide = 0;
    while (1 << wide < s.row)
        wide++;
    const int64_t bits = 14 - (wide + 1) / 2; /* kernels/fixed_norm.h */
    eps = m.eps * (double)s.row * (double)s.row / (from.scale * from.scale);
    for (int64_t i = 0; i < s.channels; i++) {
        factor[i] = factor[i] / to->scale / (double)(1 << bits);
        offset[i] = offset[i] / to->scale + (double)to->zero + 0.5;
    }
    const int64_t shift = fraction_of(factor, offset, s.channels);
    if (!shift || !(eps >= 0 && eps < 1e15))
        return true;
    int32_t *by = NEW(f->r.g->program->arena, int32_t, s.channels);
    int32_t *add = NEW(f->r.g->program->arena, int32_t, s.channels);
    for (int64_t i = 0; i < s.channels; i++) {
        by[i] = (int32_t)nearest(factor[i] * (double)(1 << shift));
        add[i] = (int32_t)nearest(offset[i] * (double)(1 << shift));
    }
    Value *factors = constant(f, norm, "factors", s.channels, by);
    Value *offsets = constant(f, norm, "offsets", s.channels, add);
    Node *y = build(f->r.g, n, norm->loc, OP_INTEGER_NORM, f->r.d, "vvviibiiiiiit", x, factors,
                    offsets, s.row, s.each, m.kind != NORM_RMS, from.zero, (int64_t)nearest(eps),
                    bits, shift, to->lo, to->hi, to->dtype);
    return y && rewrite_node(&f->r, n, y->out[0]);
}

/* -- casts ------------------------------------------------------------------------------------- */

/* Returns whether n casts bytes to floats.  This is a dequantize with scale 1. */
static bool is_cast(const Node *n)
{
    const Value *x = n->n_in == 1 ? first_operand(n) : NULL;
    return x && !strcmp(op_c(n->op), "cast") && n->out[0]->type.dtype == ETC_F32 &&
           (x->type.dtype == ETC_U8 || x->type.dtype == ETC_I8);
}

static bool scale_cast(Fixed *f, Node *n)
{
    Value *x = first_operand(n);
    const int64_t least = x->type.dtype == ETC_U8 ? 0 : -128;
    const QParams q = {.undoes = true, .scale = 1, .lo = least, .hi = least + 255,
                       .dtype = x->type.dtype};
    Value *y = qparams_build(f->r.g, n, n->loc, x, &q, f->r.d);
    return y && rewrite_node(&f->r, n, y);
}

/* -- the walk ---------------------------------------------------------------------------------- */

static bool look(Fixed *f, Node *n)
{
    QParams to;
    double by = 1;
    rewrite_inputs(&f->r, n);
    if (is_cast(n))
        return scale_cast(f, n);
    if (!read_byte_points(n, false, &to) || !to.x->def || !value_is_read_once(&f->u, to.x))
        return true;
    const Node *at = to.x->def;
    const Value *scaled = read_scaling(at, &by);
    if (scaled && scaled->def && value_is_read_once(&f->u, scaled))
        at = scaled->def;
    if (!strcmp(op_c(at->op), "matmul") && at->out[0]->type.rank == 3)
        return fuse_matmul(f, n, at, by, &to);
    return at != to.x->def || fuse_norm(f, n, at, &to);
}

bool pass_fuse_fixed(Graph *g, Arena *tmp, Diag *d)
{
    if (!g->program->session->is_fixed_point)
        return true;
    Fixed f = {rewrite_start(g, tmp, d), graph_uses(g, tmp)};
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        ok = look(&f, n) && ok;
    }
    rewrite_finish(&f.r);
    return ok;
}
