/* fuse_weights.c -- a product with a weight that is stored as integers or halves becomes one node,
 * which converts a few columns at a time to floats.
 *
 * Stage core, on the way to C, with the recipe applied:
 *
 *   linear(x, dequantize(q), bias)  ==>  etc.packed_linear(x, packed q, scales, zero points, bias)
 *
 * The same holds for mm and addmm.  q is a constant of halves, or of integers with one scale, a
 * scale per column or a scale per group of terms; a view and a transpose may follow it.  It is
 * done only if all readers of the floats are such products; else the floats exist anyway.
 * Integers that fit into 4 bits are stored in 4 bits.  Padding to whole blocks of columns must
 * not make the weight larger than its floats.  Sums have the same terms in the same order, so no
 * bit changes.  Each node is looked at twice. */
#include "passes/internal.h"
#include <math.h>
#include <string.h>

/* A float weight as it is kept: element e has scale and zero point e / inner % n_points. */
typedef struct Kept {
    const Value *q, *scale, *zero; /* scale NULL: `by` and `at` */
    double by;
    int64_t at, inner, n_points;
} Kept;

/* The weight of a product, as its k terms in n columns. */
typedef struct Matrix {
    const Value *source; /* the floats, before views and transposes */
    Kept kept;
    int64_t n, k, groups;
    bool is_by_column;   /* a column's terms are neighbours in memory */
    int64_t shift;       /* q - shift is stored */
    EtcDtype stored;     /* i8, u8: two of 4 bits, f16 */
} Matrix;

typedef struct Packed {
    int64_t n;
    bool is_by_column;
    Value *weight, *scale, *zero;
} Packed;

typedef struct Fuse {
    Rewrite r;
    bool *is_read;  /* by value index: floats with a reader that takes no packed weight */
    Packed *packed; /* by value index: the packed weight that was made for these floats */
} Fuse;

/* -- how weights are kept --------------------------------------------------------------------- */

static bool is_kept(const Value *v, EtcDtype t)
{
    return value_is_known(v) && v->type.dtype == t;
}

static bool is_whole(EtcDtype t)
{
    return t == ETC_U8 || t == ETC_I8 || t == ETC_I16 || t == ETC_I32 || t == ETC_I64;
}

static int64_t whole(const Value *v, int64_t i)
{
    const void *p = state_elements(v->state);
    switch (v->type.dtype) {
    case ETC_U8: return ((const uint8_t *)p)[i];
    case ETC_I8: return ((const int8_t *)p)[i];
    case ETC_I16: return ((const int16_t *)p)[i];
    case ETC_I32: return ((const int32_t *)p)[i];
    default: return ((const int64_t *)p)[i];
    }
}

static bool read_channels(const QParams *p, Kept *k)
{
    const Type t = p->x->type;
    k->scale = p->scales;
    k->zero = p->zeros;
    if (!is_kept(k->scale, ETC_F32) ||
        (k->zero && (!is_whole(k->zero->type.dtype) || !is_kept(k->zero, k->zero->type.dtype))))
        return false;
    k->n_points = type_numel(k->scale->type);
    k->inner = 1;
    for (int i = p->axis + 1; i < t.rank; i++)
        k->inner *= t.dim[i].value;
    return k->n_points > 0 && k->inner > 0;
}

/* Reads the constant that a node widens to floats; false: a packed product may not read it. */
static bool read_kept(const Node *n, Kept *k)
{
    QParams p;
    *k = (Kept){.inner = 1, .n_points = 1};
    if (!n || !n->n_in || n->out[0]->type.dtype != ETC_F32)
        return false;
    k->q = first_operand(n);
    if (n->op == OP__TO_COPY)
        return is_kept(k->q, ETC_F16);
    if ((!is_kept(k->q, ETC_I8) && !is_kept(k->q, ETC_U8)) || !qparams_read(n, &p) || !p.undoes)
        return false;
    k->by = p.scale;
    k->at = p.zero;
    return p.kind == Q_CHANNEL ? read_channels(&p, k) : p.kind == Q_TENSOR && !p.scales;
}

static bool is_transpose(const Node *n)
{
    Permute p;
    return n && permute_read(n, &p) && p.rank == 2 && permute_swaps_last(&p);
}

/* The floats that v is a view or transpose of; v itself where it is none. */
static const Value *source_of(const Value *v, bool *is_swapped)
{
    *is_swapped = is_transpose(v->def);
    v = *is_swapped ? arg_value(v->def, "self") : v;
    return v->def && node_is_view(v->def) ? arg_value(v->def, "self") : v;
}

/* -- products --------------------------------------------------------------------------------- */

/* Finds the groups of terms that share a scale in every column. */
static bool read_groups(Matrix *m)
{
    const Kept *p = &m->kept;
    int64_t run = m->is_by_column ? m->k : m->n; /* elements of a row in memory */
    if (p->n_points == 1 || (m->is_by_column ? p->inner % run == 0
                                             : p->inner == 1 && p->n_points == m->n))
        m->groups = 1;
    else if (m->is_by_column ? run % p->inner == 0 : p->inner % run == 0)
        m->groups = m->is_by_column ? run / p->inner : m->k / (p->inner / run);
    return m->groups > 0 && m->k % m->groups == 0;
}

/* Sets how the integers are stored; returns whether all q - shift and zero points - shift fit. */
static bool read_range(Matrix *m)
{
    const Kept *p = &m->kept;
    int64_t lo = INT64_MAX, hi = INT64_MIN, each = m->k / m->groups;
    for (int64_t i = 0; i < m->n * m->k; i++) {
        int64_t q = whole(p->q, i);
        lo = q < lo ? q : lo;
        hi = q > hi ? q : hi;
    }
    bool is_short = hi - lo < 16 && (m->groups == 1 || each % 2 == 0);
    m->stored = is_short ? ETC_U8 : ETC_I8;
    if (is_short)
        m->shift = lo < -8 || hi > 7 ? lo + 8 : 0;
    else
        m->shift = hi > 127 ? 128 : 0;
    for (int64_t i = 0; i < p->n_points; i++) {
        int64_t zero = p->zero ? whole(p->zero, i) : p->at;
        if (zero < -128 + m->shift || zero > 127 + m->shift)
            return false;
    }
    return true;
}

static int64_t blocks_of_columns(const Matrix *m)
{
    return (m->n + ETC_PACKED_COLUMNS - 1) / ETC_PACKED_COLUMNS;
}

static int64_t rows_of(const Matrix *m)
{
    return m->stored == ETC_U8 ? (m->k + 1) / 2 : m->k;
}

static bool is_worth_it(const Matrix *m)
{
    int64_t row = blocks_of_columns(m) * ETC_PACKED_COLUMNS, scales = m->stored != ETC_F16;
    int64_t bytes = row * (rows_of(m) * (int64_t)etc_dtype_size((int)m->stored) +
                           scales * m->groups * (int64_t)sizeof(float));
    return bytes < m->n * m->k * (int64_t)sizeof(float);
}

static bool read_matrix(const Node *n, Weighted *v, Matrix *m)
{
    bool is_swapped;
    *m = (Matrix){0};
    if (!weighted_read(n, v) || v->is_conv || v->is_scaled || !type_is_static(v->w->type) ||
        v->x->type.dtype != ETC_F32)
        return false;
    m->source = source_of(v->w, &is_swapped);
    m->is_by_column = v->w_axis == is_swapped;
    m->n = v->w->type.dim[v->w_axis].value;
    m->k = v->w->type.dim[!v->w_axis].value;
    bool adds_columns = !v->bias || (v->bias->type.rank == 1 &&
                                     dim_equal(v->bias->type.dim[0], DIM(m->n)));
    if (m->n < 1 || m->k < 1 || !adds_columns || !read_kept(m->source->def, &m->kept) ||
        !read_groups(m))
        return false;
    m->stored = ETC_F16;
    return (m->kept.q->type.dtype == ETC_F16 || read_range(m)) && is_worth_it(m);
}

/* -- packing ---------------------------------------------------------------------------------- */

static int64_t element(const Matrix *m, int64_t column, int64_t term)
{
    return m->is_by_column ? column * m->k + term : term * m->n + column;
}

/* Returns where a row of a column lies in blocks. */
static int64_t place(int64_t rows, int64_t column, int64_t row)
{
    const int64_t each = ETC_PACKED_COLUMNS;
    return (column / each * rows + row) * each + column % each;
}

static Value *constant(Fuse *f, const Matrix *m, const char *part, EtcDtype t, int64_t rows,
                       void *data)
{
    const Dim dim[3] = {DIM(blocks_of_columns(m)), DIM(rows), DIM(ETC_PACKED_COLUMNS)};
    const Type type = type_tensor(f->r.g->program, t, 3, dim);
    return graph_const_like(f->r.g, m->kept.q->state, part, type, data);
}

static int64_t room(const Matrix *m, int64_t rows)
{
    return blocks_of_columns(m) * rows * ETC_PACKED_COLUMNS;
}

static Value *pack_weight(Fuse *f, const Matrix *m)
{
    const int64_t rows = rows_of(m), size = (int64_t)etc_dtype_size((int)m->stored);
    const uint8_t *halves = m->kept.q->state->data;
    uint8_t *data = NEW(f->r.g->program->arena, uint8_t, room(m, rows) * size);
    for (int64_t c = 0; c < m->n; c++)
        for (int64_t i = 0; i < m->k; i++) {
            int64_t e = element(m, c, i), row = m->stored == ETC_U8 ? i / 2 : i;
            uint8_t *to = data + place(rows, c, row) * size;
            if (m->stored == ETC_F16)
                memcpy(to, halves + 2 * e, 2);
            else if (m->stored == ETC_I8)
                *to = (uint8_t)(whole(m->kept.q, e) - m->shift);
            else
                *to = (uint8_t)(*to | ((whole(m->kept.q, e) - m->shift) & 15) << i % 2 * 4);
        }
    return constant(f, m, "_packed", m->stored, rows, data);
}

/* Stores the scales and, if any is not 0, the zero points. */
static void pack_points(Fuse *f, const Matrix *m, Packed *to)
{
    const Kept *p = &m->kept;
    Arena *a = f->r.g->program->arena;
    float *scale = NEW(a, float, room(m, m->groups));
    int8_t *zero = NEW(a, int8_t, room(m, m->groups));
    bool any = false;
    for (int64_t c = 0; c < m->n; c++)
        for (int64_t i = 0; i < m->groups; i++) {
            int64_t e = element(m, c, i * (m->k / m->groups)) / p->inner % p->n_points;
            int64_t at = place(m->groups, c, i);
            scale[at] = p->scale ? ((const float *)state_elements(p->scale->state))[e]
                                 : (float)p->by;
            zero[at] = (int8_t)((p->zero ? whole(p->zero, e) : p->at) - m->shift);
            any = any || zero[at];
        }
    to->scale = constant(f, m, "_scales", ETC_F32, m->groups, scale);
    to->zero = any ? constant(f, m, "_zeros", ETC_I8, m->groups, zero) : NULL;
}

static const Packed *packed_of(Fuse *f, const Matrix *m)
{
    Packed *p = &f->packed[m->source->index];
    if (p->weight && p->n == m->n && p->is_by_column == m->is_by_column)
        return p;
    *p = (Packed){.n = m->n, .is_by_column = m->is_by_column, .weight = pack_weight(f, m)};
    if (m->stored != ETC_F16)
        pack_points(f, m, p);
    return p;
}

static bool fuse(Fuse *f, Node *n, const Weighted *v, const Matrix *m)
{
    const Packed *p = packed_of(f, m);
    Node *made = build(f->r.g, n, n->loc, OP_PACKED_LINEAR, f->r.d, "vvvvvi", v->x, p->weight,
                       p->scale, p->zero, v->bias, m->n);
    return made && rewrite_node(&f->r, n, made->out[0]);
}

/* -- the graph -------------------------------------------------------------------------------- */

/* Returns whether n is a view or transpose whose readers are looked at in its place. */
static bool passes_on(const Node *n)
{
    bool is_swapped;
    return (node_is_view(n) || is_transpose(n)) &&
           source_of(n->out[0], &is_swapped) == source_of(arg_value(n, "self"), &is_swapped);
}

static void note_reads(Fuse *f, const Node *n)
{
    Weighted v;
    Matrix m;
    bool is_swapped, takes = read_matrix(n, &v, &m);
    for (int i = 0; i < n->n_in; i++) {
        const Value *source = source_of(n->in[i], &is_swapped);
        bool is_weight = takes && source == m.source && i == v.w_slot;
        if (!is_weight && !passes_on(n))
            f->is_read[source->index] = true;
    }
}

static void note_escape(Fuse *f, const Value *v)
{
    bool is_swapped;
    f->is_read[source_of(v, &is_swapped)->index] = true;
}

bool pass_fuse_weights(Graph *g, Arena *tmp, Diag *d)
{
    Fuse f = {rewrite_start(g, tmp, d), NEW(tmp, bool, g->n_values + 1),
              NEW(tmp, Packed, g->n_values + 1)};
    Weighted v;
    Matrix m;
    bool ok = true;
    for (const Node *n = g->first; n; n = n->next)
        note_reads(&f, n);
    for (int i = 0; i < g->n_out; i++)
        note_escape(&f, g->out[i]);
    for (int i = 0; i < g->n_updates; i++)
        note_escape(&f, g->update[i].value);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&f.r, n);
        if (read_matrix(n, &v, &m) && !f.is_read[m.source->index])
            ok = fuse(&f, n, &v, &m) && ok;
    }
    rewrite_finish(&f.r);
    return ok;
}
