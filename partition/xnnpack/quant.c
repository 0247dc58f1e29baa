/* quant.c -- computes nodes between dequantize and quantize in integers.
 *
 * The result of a quantize is a value of XNNPACK with a scale and a zero point.  Its dequantize
 * makes no node unless somebody reads floats.  If all operands of a node come from dequantize,
 * and its result goes only to one quantize, perhaps through a clamp, the node is lowered as any
 * other, and its result is then declared to be integers.  Dynamic scales are per row, computed
 * by a Convert node. */
#include "ir/eval.h"
#include "partition/internal.h"
#include "partition/xnnpack/rows.h"
#include <math.h>
#include <string.h>

/* -- reading qparams -------------------------------------------------------------------------- */

/* Returns whether n makes i8 of floats, or floats of i8, with one known scale. */
static bool is_static(const Node *n, QParams *p)
{
    if (!n || !qparams_read(n, p) || p->kind != Q_TENSOR || p->scales)
        return false;
    const Value *real = p->undoes ? n->out[0] : p->x;
    return p->dtype == ETC_I8 && real->type.dtype == ETC_F32 && p->lo == -128 && p->hi == 127 &&
           p->zero >= p->lo && p->zero <= p->hi && isnormal((float)p->scale) && p->scale > 0;
}

static bool is_static_dequantize(const Value *v, QParams *p)
{
    return is_static(v->def, p) && p->undoes && !value_is_from_constants(v);
}

static bool is_static_quantize(const Node *n, QParams *p)
{
    return is_static(n, p) && !p->undoes;
}

bool xnn_is_weight(const Value *v)
{
    return value_is_known(v) || value_is_from_constants(v);
}

/* Weights as integers with scales.  They come from a dequantize, perhaps with a view after it, or
 * from a cast. */
typedef struct Ints {
    QParams of;    /* of.axis -1: there is one scale */
    int64_t group; /* the elements of a group; 0: no groups */
} Ints;

static bool all_zero(const Value *v)
{
    if (!value_is_known(v))
        return false;
    const int64_t n = type_bytes(v->type);
    for (int64_t i = 0; i < n; i++)
        if (v->state->data[i])
            return false;
    return true;
}

static float scale_at(const Ints *k, int64_t i)
{
    return (float)(k->of.scales ? value_number(k->of.scales, i) : k->of.scale);
}

/* Returns whether the runtime accepts the scales: they are positive and normal, those of groups in
 * bf16. */
static bool has_sound_scales(const Ints *k)
{
    const int64_t n = k->of.scales ? type_numel(k->of.scales->type) : 1;
    for (int64_t i = 0; i < n; i++) {
        const float v = scale_at(k, i);
        if (!isnormal(v) || v < 0 || (k->group && (bfloat_of(v) & 0x7f80) == 0x7f80))
            return false;
    }
    return true;
}

/* Reads the qparams of a dequantize by known numbers, or of a cast, which has scale 1.  Returns
 * false if n is neither, or has a zero point. */
static bool read_ints(const Node *n, QParams *q)
{
    if (n->op != OP__TO_COPY && (!qparams_read(n, q) || !q->undoes))
        return false;
    if (n->op != OP__TO_COPY && q->kind == Q_CHANNEL)
        return value_is_known(q->scales) && (!q->zeros || all_zero(q->zeros));
    if (n->op == OP__TO_COPY)
        *q = (QParams){.x = arg_value(n, "self"), .scale = 1};
    q->axis = -1;
    q->lo = -128;
    q->hi = 127;
    return q->kind == Q_TENSOR && !q->scales && !q->zero;
}

static bool ints_of(const Value *v, Ints *out)
{
    const Node *n = v->def, *view = n && n->op == OP_VIEW ? n : NULL;
    const QParams *q = &out->of;
    *out = (Ints){.group = 0};
    n = view ? arg_value(view, "self")->def : n;
    if (!n || n->out[0]->type.dtype != ETC_F32 || !read_ints(n, &out->of) ||
        !value_is_known(q->x) || q->x->type.dtype != ETC_I8)
        return false;
    const Type from = n->out[0]->type;
    const bool is_whole = !view || type_equal(from, v->type);
    if (!is_whole)
        out->group = from.rank == 2 ? from.dim[1].value : 0;
    return has_sound_scales(out) &&
           (is_whole || (v->type.rank == 2 && out->group && !q->axis &&
                         v->type.dim[1].value % out->group == 0));
}

/* Returns whether all integers fit into 4 bits.  The bounds of a dequantize do not say so, because
 * it does not clamp. */
static bool is_int4(const Ints *k)
{
    const int8_t *q = (const int8_t *)k->of.x->state->data;
    const int64_t n = type_bytes(k->of.x->type);
    const uint64_t low = 0x7f7f7f7f7f7f7f7f, eight = 0x0808080808080808;
    uint64_t beyond = 0, v;
    int64_t i = 0;
    if (k->group % 32 || k->of.lo < -8 || k->of.hi > 7)
        return false;
    for (; i + 8 <= n; i += 8) { /* adds 8 to each byte: -8 to 7 become 0 to 15 */
        memcpy(&v, q + i, sizeof v);
        beyond |= (((v & low) + eight) ^ (v & ~low)) & 0xf0f0f0f0f0f0f0f0;
    }
    for (; i < n; i++)
        beyond |= (unsigned)(q[i] + 8) & ~15u;
    return !beyond;
}

/* -- which nodes XNNPACK takes ---------------------------------------------------------------- */

static bool is_choose_qparams(OpId op)
{
    return op == OP_CHOOSE_QPARAMS || op == OP_CHOOSE_QPARAMS_PER_TOKEN;
}

/* Returns whether n is a quantize (or dequantize) with dynamic scales. */
static bool is_dynamic(const Node *n, bool undoes, QParams *q)
{
    return n && qparams_read(n, q) && q->scales && q->kind != Q_CHANNEL && q->undoes == undoes;
}

bool xnn_is_quant(const Node *n)
{
    QParams q;
    return is_choose_qparams(n->op) || (qparams_read(n, &q) && q.kind != Q_CHANNEL);
}

/* Returns the choose_qparams node whose scale and zero point n reads. */
static const Node *choose_qparams_of(const Node *n)
{
    QParams q;
    if (is_choose_qparams(n->op))
        return n;
    const Node *c = qparams_read(n, &q) && q.scales ? q.scales->def : NULL;
    if (!c || !is_choose_qparams(c->op))
        return NULL;
    return c->out[0] == q.scales && c->out[1] == q.zeros ? c : NULL;
}

/* Returns the value that was quantized at run time, and dequantized, to become v; NULL: there is
 * none. */
static const Value *dynamic_source(const Value *v)
{
    QParams from, to;
    if (!is_dynamic(v->def, true, &from) || !is_dynamic(from.x->def, false, &to))
        return NULL;
    const Node *c = choose_qparams_of(v->def);
    return c && c == choose_qparams_of(from.x->def) && c->in[0] == to.x ? to.x : NULL;
}

static bool has_dynamic_weight(const Node *n, const Value *v)
{
    Ints k;
    return n->op == OP_LINEAR && arg_value(n, "input") == v && arg_value(n, "weight") != v &&
           value_is_from_constants(arg_value(n, "weight")) && ints_of(arg_value(n, "weight"), &k) &&
           k.of.axis <= 0 && (!k.group || is_int4(&k)) &&
           (!arg_value(n, "bias") || xnn_is_weight(arg_value(n, "bias")));
}

static bool only_linears_read(const Value *v, const Uses *u)
{
    bool ok = !u->escapes[v->index];
    for (int i = u->first[v->index]; ok && i < u->first[v->index + 1]; i++)
        ok = has_dynamic_weight(u->user[i], v);
    return ok;
}

/* Returns whether all readers of a choose_qparams quantize its operand, and only linear layers
 * read the result. */
static bool is_closed(const Node *c, const Uses *u)
{
    QParams q;
    for (int k = 0; k < 2; k++) {
        int at = c->out[k]->index;
        if (u->escapes[at])
            return false;
        for (int i = u->first[at]; i < u->first[at + 1]; i++) {
            const Node *n = u->user[i];
            const Value *v = n->n_out ? n->out[0] : NULL;
            bool quantizes = v && is_dynamic(n, false, &q) && q.x == arg_value(c, "input") &&
                             v->type.dtype == ETC_I8 && !u->escapes[v->index];
            for (int j = quantizes ? u->first[v->index] : 0;
                 quantizes && j < u->first[v->index + 1]; j++)
                quantizes = dynamic_source(u->user[j]->out[0]) == arg_value(c, "input");
            if (choose_qparams_of(n) != c ||
                !(quantizes || (v && dynamic_source(v) && only_linears_read(v, u))))
                return false;
        }
    }
    const Type t = arg_value(c, "input")->type;
    return t.rank >= 2 && t.rank <= XNN_MAX_RANK && !t.dim[t.rank - 1].expr &&
           t.dtype == ETC_F32;
}

/* Returns whether all readers of v agree on its scale: v comes from outside and has none itself. */
static bool readers_agree(const Value *v, const QParams *p, const Uses *u)
{
    QParams other;
    for (int i = u->first[v->index]; i < u->first[v->index + 1]; i++)
        if (!is_static(u->user[i], &other) || u->user[i]->in[0] != v || !qparams_equal(p, &other))
            return false;
    return true;
}

bool xnn_takes_quant(const Node *n, const Uses *u, Refusal *r)
{
    QParams p, q;
    const bool is_told = is_static(n, &p);
    const Value *x = !is_told ? first_operand(n) : p.undoes ? p.x : n->out[0];
    if (x->type.rank > XNN_MAX_RANK || type_numel(x->type) > UINT32_MAX ||
        type_numel(x->type) == 0)
        return xnn_no(r, "its tensor is empty, too large or of more than 6 axes", NULL);
    if (!is_told) {
        const Node *c = choose_qparams_of(n);
        return (c && is_closed(c, u)) ||
               xnn_no(r,
                      "it is not i8 of one known scale, nor rows for linears with i8 or i4 weights",
                      "quantize symmetrically, activations from -128 to 127");
    }
    if (!p.undoes)
        return true;
    if (x->state)
        return xnn_no(r, "it reads a state", NULL);
    return (is_static(x->def, &q) ? qparams_equal(&p, &q) : readers_agree(x, &p, u)) ||
           xnn_no(r, "others read its integers with another scale", NULL);
}

/* -- the spec of a node ----------------------------------------------------------------------- */

/* Returns whether the node only moves the integers of its one operand. */
static bool keeps_integers(const Node *n)
{
    Clamp c;
    Pool p;
    return (node_moves(n) && n->op != OP_EXPAND) || clamp_read(n, &c) ||
           (pool_read(n, &p) && p.is_max);
}

/* Returns the bits of Spec for the nodes that fits() takes once they have scales. */
unsigned xnn_spec(const Node *n)
{
    switch ((int)n->op) {
    case OP_CONVOLUTION:
        return arg_bool(n, "transposed") ? 0 : SPEC_STATIC | SPEC_CLAMP_JOINS;
    case OP_LINEAR:
        return SPEC_STATIC | SPEC_CLAMP_JOINS | SPEC_WEIGHT |
               (arg_value(n, "input")->type.rank < 2 ? 0 : SPEC_DYNAMIC | SPEC_DYNAMIC_GROUPS);
    case OP_ADDMM:
    case OP_MM:
        return SPEC_WEIGHT;
    case OP_ADD_TENSOR:
    case OP_SUB_TENSOR:
    case OP_MUL_TENSOR:
        return xnn_is_weight(arg_value(n, "self")) || xnn_is_weight(arg_value(n, "other")) ? 0
                                                                  : SPEC_STATIC | SPEC_CLAMP_JOINS;
    case OP_MEAN_DIM:
        return xnn_is_mean_of_space(n) ? SPEC_STATIC : 0;
    case OP_CAT:
        return SPEC_STATIC | SPEC_SHARED;
    case OP_HARDSWISH:
        return SPEC_STATIC;
    default:
        return keeps_integers(n) ? SPEC_STATIC | SPEC_SHARED : 0;
    }
}

/* -- values ---------------------------------------------------------------------------------- */

static void declare(Lower *w, uint32_t id, const QParams *p)
{
    XValue *v = &w->x.value[id];
    v->dtype = XNN_QINT8;
    v->quant = XNN_PER_TENSOR;
    v->scale = p->scale;
    v->zero = (int)p->zero;
}

/* Returns the integers that v was dequantized from, if the current node computes with integers or v
 * has no XNNPACK value yet; else v. */
const Value *x_before_dequantize(const Lower *w, const Value *v)
{
    QParams p;
    bool made = w->id[0][v->index] != XNN_NONE || w->id[1][v->index] != XNN_NONE;
    return (w->integers || !made) && is_static_dequantize(v, &p) ? arg_value(v->def, "input") : v;
}

/* Evaluates a chain of nodes over constants.  Returns its last result; NULL: a node cannot be
 * evaluated. */
static EtcTensor *evaluated(Lower *w, const Value *v, Diag *d)
{
    if (v->state)
        return eval_constant(v, w->tmp);
    const Node *n = v->def;
    EtcTensor **in = NEW(w->tmp, EtcTensor *, n->n_in + 1);
    EtcTensor **out = NEW(w->tmp, EtcTensor *, n->n_out + 1);
    int64_t *symbol = NEW(w->tmp, int64_t, w->body->program->n_syms + 1);
    for (int i = 0; i < n->n_in; i++)
        if (!(in[i] = evaluated(w, n->in[i], d)))
            return NULL;
    return eval_node(n, in, symbol, w->body->program->arena, out, d) ? out[0] : NULL;
}

static const State *root_of(const Value *v)
{
    while (!v->state)
        v = first_operand(v->def);
    return v->state;
}

static const float *widened(Lower *w, const Value *v)
{
    int64_t n = type_numel(v->type);
    float *to = NEW(w->body->program->arena, float, n + 1);
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, v->state->data + 2 * i, sizeof h);
        to[i] = (float)half_value(h);
    }
    return to;
}

/* Returns the floats of a weight, which may be dequantized. */
const float *x_floats(Lower *w, const Value *v)
{
    if (v->state && v->type.dtype == ETC_F16)
        return widened(w, v);
    if (v->state)
        return state_elements(v->state);
    EtcTensor *t = evaluated(w, v, w->d);
    if (!t)
        w->failed = true;
    return t ? t->data : NEW(w->body->program->arena, float, type_numel(v->type) + 1);
}

static void make_dynamic(Lower *w, const Value *v, const Value *from)
{
    uint32_t in = x_use(w, from, AS_IS), out = x_result(w, v, AS_IS);
    w->x.value[out].dtype = XNN_QDINT8;
    w->x.value[out].quant = XNN_PER_TOKEN;
    x_unary(w, XNN_CONVERT, in, out);
}

/* Makes v in this layout if v is not the result of a node that was lowered. */
void x_make(Lower *w, const Value *v, Layout l)
{
    QParams p;
    const Value *from = dynamic_source(v);
    if (from) {
        make_dynamic(w, v, from);
    } else if (is_static_dequantize(v, &p)) {
        uint32_t in = x_use(w, arg_value(v->def, "input"), l);
        x_unary(w, XNN_CONVERT, in, x_result(w, v, l));
    } else if (value_is_from_constants(v)) {
        XValue like = x_sizes(v->type, AS_IS);
        const State *s = root_of(v);
        x_define(w, v, AS_IS,
                 x_constant(w, s->name, s->fqn, x_floats(w, v), XNN_F32, like.rank, like.dim));
    }
}

/* Declares an i8 input of the region with the scale and zero point with which its readers read it.
 */
void x_declare_input(Lower *w, const Value *v, uint32_t id)
{
    QParams p;
    if (v->type.dtype == ETC_I8 && w->uses.first[v->index] < w->uses.first[v->index + 1] &&
        is_static(w->uses.user[w->uses.first[v->index]], &p))
        declare(w, id, &p);
}

/* -- weights --------------------------------------------------------------------------------- */

static int add_scales(Lower *w, const State *s, EtcDtype t, const void *data, int64_t n)
{
    Dim dim = DIM(n);
    Program *p = w->body->program;
    State *named = program_named(p, arena_printf(p->arena, "%s_scale", s->name),
                                 arena_printf(p->arena, "%s.scale", s->fqn),
                                 type_tensor(p, t, 1, &dim), data);
    PUSH(w->x.arena, w->x.constant, w->x.n_constants, named);
    return w->x.n_constants;
}

/* Returns whether weights stay integers when they multiply the values at `in`.  If these are
 * floats, only linear layers keep integers, with a scale per result. */
static bool keeps(const Lower *w, uint32_t in, bool is_linear, int out_axis, const Value *v,
                  Ints *k)
{
    XnnType t = w->x.value[in].dtype;
    return value_is_from_constants(v) && ints_of(v, k) &&
           (k->of.axis < 0 || k->of.axis == out_axis) &&
           (k->group ? t == XNN_QDINT8 && is_int4(k) : t != XNN_F32 || is_linear);
}

XWeight x_weight(Lower *w, const Value *v, uint32_t in, bool is_linear, int out_axis)
{
    Ints k;
    const State *s = root_of(v);
    if (is_linear && x_real(v->type) == XNN_F16)
        return (XWeight){s, s->data, x_real_size(XNN_F16), XNN_F16, v};
    if (!keeps(w, in, is_linear, out_axis, v, &k))
        return (XWeight){s, x_floats(w, v), sizeof(float), XNN_F32, v};
    bool is_half = is_linear && w->x.value[in].dtype != XNN_QINT8 && /* 8 bits */
                   v->type.dim[!out_axis].value % 2 == 0 && is_int4(&k);
    return (XWeight){s, s->data, 1, k.group ? XNN_QBINT4 : is_half ? XNN_QCINT4 : XNN_QCINT8, v};
}

/* Stores two numbers, plus 8, in a byte; the even column is in the low half.  The number of columns
 * is even, because some of XNNPACK's packing functions require that. */
static void pack_halves(const void *data, int64_t from, int64_t n, uint8_t *to)
{
    const int8_t *q = (const int8_t *)data + 2 * from;
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint8_t)((q[2 * i] + 8) | (q[2 * i + 1] + 8) << 4);
}

static uint32_t halves(Lower *w, const XWeight *from, const uint32_t *dim)
{
    Program *p = w->body->program;
    const Dim bytes[2] = {DIM(dim[0]), DIM(dim[1] / 2)};
    State *s = program_named_made(p, from->state->name, from->state->fqn,
                                  type_tensor(p, ETC_U8, 2, bytes), from->data,
                                  (int64_t)dim[0] * dim[1], pack_halves);
    return x_named(w, s, 2, dim);
}

static uint32_t groups(Lower *w, const XWeight *from, const Ints *k, const uint32_t *dim)
{
    int64_t n = (int64_t)dim[0] * dim[1] / k->group;
    uint16_t *scale = NEW(w->body->program->arena, uint16_t, n + 1);
    for (int64_t i = 0; i < n; i++)
        scale[i] = bfloat_of(scale_at(k, i));
    uint32_t id = halves(w, from, dim);
    int row = add_scales(w, from->state, ETC_BF16, scale, n);
    XValue *v = &w->x.value[id];
    v->dtype = XNN_QBINT4;
    v->quant = XNN_PER_GROUP;
    v->scales = row;
    v->n_scales = (int)n;
    v->group = (int)k->group;
    return id;
}

static uint32_t bytes(Lower *w, const XWeight *from, int rank, const uint32_t *dim)
{
    Dim size[XNN_MAX_RANK];
    for (int i = 0; i < rank; i++)
        size[i] = DIM(dim[i]);
    return x_bytes(w, from->state->name, from->state->fqn, from->data, ETC_I8, rank, size, rank,
                   dim);
}

static uint32_t channels(Lower *w, const XWeight *from, const Ints *k, int rank,
                         const uint32_t *dim, int axis)
{
    float *scale = NEW(w->body->program->arena, float, dim[axis] + 1);
    for (uint32_t i = 0; i < dim[axis]; i++)
        scale[i] = scale_at(k, k->of.axis < 0 ? 0 : i);
    uint32_t id = from->dtype == XNN_QCINT4 ? halves(w, from, dim) : bytes(w, from, rank, dim);
    int row = add_scales(w, from->state, ETC_F32, scale, dim[axis]);
    XValue *v = &w->x.value[id];
    v->dtype = from->dtype;
    v->quant = XNN_PER_CHANNEL;
    v->scales = row;
    v->n_scales = (int)dim[axis];
    v->channel_axis = axis;
    return id;
}

uint32_t x_weight_value(Lower *w, const XWeight *from, int rank, const uint32_t *dim, int axis)
{
    Ints k;
    if (x_is_real(from->dtype))
        return x_constant(w, from->state->name, from->state->fqn, from->data, from->dtype, rank,
                          dim);
    ints_of(from->of, &k);
    return k.group ? groups(w, from, &k, dim) : channels(w, from, &k, rank, dim, axis);
}

static int32_t rounded(double v)
{
    v = (v + 6755399441055744.0) - 6755399441055744.0; /* ties to even */
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

/* Makes the value of a bias.  With integers its unit is the scale of the operand times that of the
 * weight.  XNNPACK's convolutions in f16 have filter and bias in f32; `filter` is XNN_NONE for
 * these biases and for filters in f32. */
uint32_t x_bias(Lower *w, const Value *v, uint32_t in, uint32_t filter)
{
    if (!v)
        return XNN_NONE;
    if (v->type.dtype == ETC_F16 && (filter == XNN_NONE || w->x.value[filter].dtype == XNN_F32))
        return x_constant(w, v->state->name, v->state->fqn, x_floats(w, v), XNN_F32, 1,
                          (const uint32_t[]){(uint32_t)xnn_size(v, 0)});
    if (w->x.value[in].dtype != XNN_QINT8)
        return x_packed(w, v);
    uint32_t n = (uint32_t)w->x.value[filter].n_scales;
    State *s = w->x.constant[w->x.value[filter].scales - 1];
    const float *by = state_elements(s), *bias = x_floats(w, v);
    float *scale = NEW(w->body->program->arena, float, n + 1);
    int32_t *data = NEW(w->body->program->arena, int32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        scale[i] = (float)(w->x.value[in].scale * (double)by[i]);
        data[i] = scale[i] > 0 ? rounded((double)bias[i] / (double)scale[i]) : 0;
    }
    const State *root = root_of(v);
    uint32_t id = x_bytes(w, root->name, root->fqn, data, ETC_I32, 1, &DIM(n), 1, &n);
    int row = add_scales(w, root, ETC_F32, scale, n);
    XValue *to = &w->x.value[id];
    to->dtype = XNN_QCINT32;
    to->quant = XNN_PER_CHANNEL;
    to->scales = row;
    to->n_scales = (int)n;
    return id;
}

/* -- nodes in integers ----------------------------------------------------------------------- */

static bool between(double v, double lo, double hi)
{
    return v >= lo && v < hi;
}

/* Returns whether the factors of all channels are in the range of XNNPACK's multipliers. */
static bool products_fit(const Node *n, const QParams *in, const QParams *to)
{
    Ints k;
    const Value *v = arg_value(n, "weight"), *bias = arg_value(n, "bias");
    if (!value_is_from_constants(v) || !ints_of(v, &k) || k.of.axis > 0 || k.group ||
        (bias && !value_is_known(bias)) || (n->op == OP_CONVOLUTION && arg_bool(n, "transposed")))
        return false;
    int64_t count = k.of.axis < 0 ? 1 : v->type.dim[0].value;
    for (int64_t i = 0; i < count; i++)
        if (!between((double)scale_at(&k, i) * in->scale / to->scale, ldexp(1, -32), 256))
            return false;
    return true;
}

/* Returns the number of operands that are not constants.  Sets *same to whether all have the scale
 * of the result. */
static int points_of(const Node *n, const QParams *to, QParams *at, bool *same)
{
    int count = 0;
    *same = true;
    for (int i = 0; i < n->n_in; i++) {
        QParams p;
        if (xnn_is_weight(n->in[i]))
            continue;
        if (!is_static_dequantize(n->in[i], &p))
            return 0;
        *same = *same && qparams_equal(&p, to);
        if (count < 2)
            at[count] = p;
        count++;
    }
    return count;
}

static bool fits(const Node *n, const QParams *to)
{
    QParams in[2];
    bool same;
    int count = points_of(n, to, in, &same);
    if (!count)
        return false;
    switch ((int)n->op) {
    case OP_CONVOLUTION:
    case OP_LINEAR:
        return count == 1 && products_fit(n, &in[0], to);
    case OP_ADD_TENSOR:
    case OP_SUB_TENSOR:
        return count == 2 && between(in[0].scale / to->scale, ldexp(1, -10), 256) &&
               between(in[1].scale / to->scale, ldexp(1, -10), 256);
    case OP_MUL_TENSOR:
        return count == 2 && between(in[0].scale * in[1].scale / to->scale, ldexp(1, -16), 256);
    case OP_MEAN_DIM:
        return xnn_is_mean_of_space(n) && between(in[0].scale / to->scale, ldexp(1, -8), 256);
    case OP_CAT:
        return same && count == n->n_in;
    case OP_HARDSWISH: /* scales are limited by the bits of the multiplier */
        return count == 1 && between(in[0].scale / to->scale, ldexp(1, -8), 128);
    default:
        return same && keeps_integers(n);
    }
}

static bool may_clamp(OpId op)
{
    return op == OP_CONVOLUTION || op == OP_LINEAR || op == OP_ADD_TENSOR || op == OP_SUB_TENSOR ||
           op == OP_MUL_TENSOR;
}

bool xnn_in_integers(const Lower *w, const Node *n, XIntegers *out)
{
    Clamp clamp;
    QParams to;
    const Node *next = value_reader(&w->uses, n->out[0]);
    *out = (XIntegers){0};
    if (next && may_clamp(n->op) && clamp_read(next, &clamp)) {
        out->clamp = next;
        next = value_reader(&w->uses, next->out[0]);
    }
    out->quantize = next;
    return is_static_quantize(next, &to) && fits(n, &to);
}

static bool is_move(XnnKind kind)
{
    return kind == XNN_RESHAPE || kind == XNN_TRANSPOSE;
}

/* Declares the result of n to be the integers that `to` quantizes it to; a clamp between them
 * becomes the node's range. */
void xnn_declare_integers(Lower *w, const Node *n, const XIntegers *to)
{
    QParams p;
    Clamp clamp;
    is_static(to->quantize, &p);
    for (int l = 0; l < 2; l++) {
        uint32_t id = w->id[l][n->out[0]->index];
        if (id == XNN_NONE)
            continue;
        w->id[l][n->out[0]->index] = XNN_NONE;
        w->id[l][to->quantize->out[0]->index] = id;
        while (w->x.value[id].dtype == XNN_F32 ||
               (float)w->x.value[id].scale != (float)p.scale || w->x.value[id].zero != p.zero) {
            declare(w, id, &p);
            if (!x_producer(w, id) || !is_move(x_producer(w, id)->kind))
                break;
            id = x_producer(w, id)->field[2].u;
        }
        if (to->clamp && x_producer(w, id) && clamp_read(to->clamp, &clamp))
            x_range(x_producer(w, id), clamp.lo, clamp.hi);
    }
    w->done[to->quantize->out[0]->index] = true;
    if (to->clamp)
        w->done[to->clamp->out[0]->index] = true;
}

/* Lowers a quantize that was not lowered as a part of the node before it. */
void xnn_lower_quant(Lower *w, const Node *n)
{
    QParams p;
    if (!is_static_quantize(n, &p))
        return;
    const Value *x = p.x;
    Layout l = x_has(w, x, CHANNELS_LAST) ? CHANNELS_LAST : AS_IS;
    uint32_t in = x_use(w, x, l), out = x_result(w, n->out[0], l);
    declare(w, out, &p);
    x_unary(w, XNN_CONVERT, in, out);
}
