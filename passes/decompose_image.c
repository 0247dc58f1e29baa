/* decompose_image.c -- ops on images and sequences as simpler ones: elements that trade places,
 * borders, pools of one axis, resampling, gates and grids. */
#include "passes/decompose.h"
#include <string.h>

/* -- elements that trade places: a view that splits axes, a permutation, a view ---------------- */

static bool trade(Rewrite *r, Node *n, const Dim *split, const int64_t *order, int rank)
{
    Value *v = build_view(r, n, n->in[0], split, rank);
    v = v ? build_permute(r, n, v, order) : NULL;
    return as_recorded(r, n, v);
}

/* Axes before the last three stay; `tail` are the five after them, `order` their places. */
static bool trade_pixels(Rewrite *r, Node *n, const Dim tail[5], const int order[5])
{
    Type t = n->in[0]->type;
    Dim split[MAX_RANK + 2];
    int64_t at[MAX_RANK + 2];
    int lead = t.rank - 3;
    if (lead + 5 > MAX_RANK)
        return diag_unsupported(r->d, n->loc, "an input of rank %d", t.rank);
    for (int i = 0; i < lead; i++) {
        split[i] = t.dim[i];
        at[i] = i;
    }
    for (int i = 0; i < 5; i++) {
        split[lead + i] = tail[i];
        at[lead + i] = lead + order[i];
    }
    return trade(r, n, split, at, lead + 5);
}

/* [c k k, h, w] ==> [c, k, k, h, w] ==> [c, h, k, w, k] */
bool decomp_pixel_shuffle(Rewrite *r, Node *n)
{
    static const int order[5] = {0, 3, 1, 4, 2};
    Type x = n->in[0]->type, y = n->out[0]->type;
    int64_t k = 1;
    arg_int(n, 1, &k);
    Dim tail[5] = {y.dim[y.rank - 3], DIM(k), DIM(k), x.dim[x.rank - 2], x.dim[x.rank - 1]};
    return trade_pixels(r, n, tail, order);
}

/* [c, h k, w k] ==> [c, h, k, w, k] ==> [c, k, k, h, w] */
bool decomp_pixel_unshuffle(Rewrite *r, Node *n)
{
    static const int order[5] = {0, 2, 4, 1, 3};
    Type x = n->in[0]->type, y = n->out[0]->type;
    int64_t k = 1;
    arg_int(n, 1, &k);
    Dim tail[5] = {x.dim[x.rank - 3], y.dim[y.rank - 2], DIM(k), y.dim[y.rank - 1], DIM(k)};
    return trade_pixels(r, n, tail, order);
}

/* [n, g c, ...] ==> [n, g, c, ...] ==> [n, c, g, ...] */
bool decomp_channel_shuffle(Rewrite *r, Node *n)
{
    Type t = n->in[0]->type;
    Dim split[MAX_RANK + 1];
    int64_t at[MAX_RANK + 1], groups = 1;
    arg_int(n, 1, &groups);
    if (t.rank == MAX_RANK)
        return diag_unsupported(r->d, n->loc, "an input of rank %d", t.rank);
    split[0] = t.dim[0];
    split[1] = DIM(groups);
    split[2] = dim_floordiv(r->g->program, t.dim[1], DIM(groups));
    for (int i = 0; i <= t.rank; i++) {
        split[i] = i < 3 ? split[i] : t.dim[i - 1];
        at[i] = i == 1 ? 2 : i == 2 ? 1 : i;
    }
    return trade(r, n, split, at, t.rank + 1);
}

/* -- borders ----------------------------------------------------------------------------------- */

static bool pad_constant(Rewrite *r, Node *n)
{
    Arg value = n->arg[3];
    if (value.kind == ARG_VALUE)
        return diag_unsupported(r->d, n->loc, "pads with a value that is not a constant");
    if (value.kind == ARG_NONE)
        value = (Arg){.kind = ARG_FLOAT, .f = 0};
    return done(r, n, build(r->g, n, n->loc, OP_CONSTANT_PAD_ND, r->d, "vaa", n->in[0], n->arg[1],
                            value));
}

bool decomp_pad(Rewrite *r, Node *n)
{
    static const OpId reflect[] = {OP_REFLECTION_PAD1D, OP_REFLECTION_PAD2D, OP_REFLECTION_PAD3D};
    static const OpId repeat[] = {OP_REPLICATION_PAD1D, OP_REPLICATION_PAD2D,
                                  OP_REPLICATION_PAD3D};
    const char *mode = n->arg[2].kind == ARG_STRING ? n->arg[2].str : "?";
    int axes = arg_count(n, 1) / 2;
    OpId op = OP_NONE;
    if (!strcmp(mode, "constant"))
        return pad_constant(r, n);
    if (axes >= 1 && axes <= 3)
        op = !strcmp(mode, "reflect")     ? reflect[axes - 1]
             : !strcmp(mode, "replicate") ? repeat[axes - 1]
             : !strcmp(mode, "circular")  ? OP__PAD_CIRCULAR
                                          : OP_NONE;
    if (op == OP_NONE)
        return diag_unsupported(r->d, n->loc, "pads %d axes by mode '%s'", axes, mode);
    return done(r, n, build(r->g, n, n->loc, op, r->d, "va", n->in[0], n->arg[1]));
}

/* Axis `axis` of x, first cut by negative borders, with its own ends joined to its other ends. */
static Value *wrap_axis_around(Rewrite *r, Node *n, Value *x, int axis, int64_t lo, int64_t hi)
{
    Program *p = r->g->program;
    Value *part[3];
    int count = 0;
    if (!(x = build_cropped(r, n, x, axis, lo, hi)))
        return NULL;
    Dim size = x->type.dim[axis];
    if (lo > 0)
        part[count++] = build_slice(r, n, x, axis, dim_sub(p, size, DIM(lo)), size);
    part[count++] = x;
    if (hi > 0)
        part[count++] = build_slice(r, n, x, axis, DIM(0), DIM(hi));
    for (int i = 0; i < count; i++)
        if (!part[i])
            return NULL;
    if (count == 1)
        return part[0];
    Node *m = build(r->g, n, n->loc, OP_CAT, r->d, "Vi", count, part, (int64_t)axis);
    return m ? m->out[0] : NULL;
}

bool decomp_pad_circular(Rewrite *r, Node *n)
{
    Value *x = n->in[0];
    int64_t pad[6];
    int rank = x->type.rank;
    if (arg_count(n, 1) > 6 || !arg_ints(n, 1, pad, 6))
        return diag_unsupported(r->d, n->loc, "pads by sizes that are not constants");
    for (int i = 0; x && i < arg_count(n, 1) / 2; i++)
        x = wrap_axis_around(r, n, x, rank - 1 - i, pad[2 * i], pad[2 * i + 1]);
    return as_value(r, n, x);
}

/* -- pools of one axis: those of two over a first axis of 1 ------------------------------------ */

/* x[.., c, n] as [.., c, 1, n] */
static Value *with_rows(Rewrite *r, Node *n, Value *x)
{
    Dim dim[MAX_RANK + 1];
    int rank = x->type.rank;
    memcpy(dim, x->type.dim, (size_t)rank * sizeof *dim);
    dim[rank] = dim[rank - 1];
    dim[rank - 1] = DIM(1);
    return build_view(r, n, x, dim, rank + 1);
}

/* A list of one number v, or none, as [before, v]. */
static Arg after(Program *p, const Node *n, int i, int64_t before)
{
    int64_t v[2] = {before, 0};
    if (!arg_count(n, i) || !arg_ints(n, i, v + 1, 1))
        return n->arg[i];
    return arg_int_list(p, v, 2);
}

bool decomp_pool1d(Rewrite *r, Node *n)
{
    Program *p = r->g->program;
    Value *x = with_rows(r, n, n->in[0]);
    Arg kernel = after(p, n, 1, 1), stride = after(p, n, 2, 1), pad = after(p, n, 3, 0);
    Node *m = NULL;
    if (!x)
        return false;
    if (n->op == OP_AVG_POOL1D)
        m = build(r->g, n, n->loc, OP_AVG_POOL2D, r->d, "vaaaaa", x, kernel, stride, pad, n->arg[4],
                  n->arg[5]);
    else
        m = build(r->g, n, n->loc, OP_MAX_POOL2D, r->d, "vaaaaa", x, kernel, stride, pad,
                  after(p, n, 4, 1), n->arg[5]);
    return m && as_recorded(r, n, m->out[0]);
}

bool decomp_adaptive_pool1d(Rewrite *r, Node *n)
{
    Value *x = with_rows(r, n, n->in[0]);
    Dim size[2] = {DIM(1), n->out[0]->type.dim[n->out[0]->type.rank - 1]};
    Node *m = x ? build(r->g, n, n->loc, OP_ADAPTIVE_AVG_POOL2D, r->d, "vD", x, 2, size) : NULL;
    return m && as_recorded(r, n, m->out[0]);
}

/* -- resampling -------------------------------------------------------------------------------- */

/* The forms of one axis: those of two, whose first axis of 1 stays. */
static Arg list_after(Program *p, Arg a, Arg before)
{
    Arg *item = NEW(p->arena, Arg, 2);
    if (a.kind != ARG_LIST || a.list.n != 1)
        return a;
    item[0] = before;
    item[1] = a.list.item[0];
    return (Arg){.kind = ARG_LIST, .key = a.key, .list = {item, 2}};
}

bool decomp_upsample1d(Rewrite *r, Node *n)
{
    static const Arg one = {.kind = ARG_INT, .dim = {NULL, 1}}, same = {.kind = ARG_FLOAT, .f = 1};
    Program *p = r->g->program;
    bool is_linear = n->op == OP_UPSAMPLE_LINEAR1D_VEC;
    Value *x = with_rows(r, n, n->in[0]);
    Arg size = list_after(p, n->arg[1], one);
    Arg scale = list_after(p, n->arg[is_linear ? 3 : 2], same);
    if (!x)
        return false;
    Node *m = is_linear ? build(r->g, n, n->loc, OP_UPSAMPLE_BILINEAR2D_VEC, r->d, "vaaa", x, size,
                                n->arg[2], scale)
                        : build(r->g, n, n->loc, OP_UPSAMPLE_NEAREST2D_VEC, r->d, "vaa", x, size,
                                scale);
    return m && as_recorded(r, n, m->out[0]);
}

/* The form with sizes and scales: where both are given, the scales must give the sizes. */
bool decomp_upsample(Rewrite *r, Node *n)
{
    Program *p = r->g->program;
    static const Arg none = {.kind = ARG_NONE};
    bool is_linear = n->op == OP_UPSAMPLE_BILINEAR2D || n->op == OP_UPSAMPLE_LINEAR1D;
    int at = is_linear ? 3 : 2, count = arg_count(n, 1);
    bool has_scales = n->arg[at].kind != ARG_NONE;
    OpId op = n->op == OP_UPSAMPLE_BILINEAR2D   ? OP_UPSAMPLE_BILINEAR2D_VEC
              : n->op == OP_UPSAMPLE_LINEAR1D   ? OP_UPSAMPLE_LINEAR1D_VEC
              : n->op == OP_UPSAMPLE_NEAREST1D  ? OP_UPSAMPLE_NEAREST1D_VEC
                                                : OP_UPSAMPLE_NEAREST2D_VEC;
    Arg *item = NEW(p->arena, Arg, 2), size = n->arg[1], scale = none;
    for (int i = 0; i < count && has_scales; i++) {
        item[i] = n->arg[at + i];
        has_scales = item[i].kind == ARG_FLOAT || item[i].kind == ARG_INT;
    }
    if (has_scales) {
        scale = (Arg){.kind = ARG_LIST, .list = {item, count}};
        size = none;
    }
    Node *m = is_linear ? build(r->g, n, n->loc, op, r->d, "vaaa", n->in[0], size, n->arg[2], scale)
                        : build(r->g, n, n->loc, op, r->d, "vaa", n->in[0], size, scale);
    if (m && !type_equal(m->out[0]->type, n->out[0]->type))
        return diag_unsupported(r->d, n->loc, "its scales do not give its output_size");
    return done(r, n, m);
}

/* -- gates, grids, sizes of another tensor ----------------------------------------------------- */

/* a * sigmoid(b) of the halves a, b */
bool decomp_glu(Rewrite *r, Node *n)
{
    Value *x = n->in[0];
    int64_t axis = -1;
    arg_int(n, 1, &axis);
    axis += axis < 0 ? x->type.rank : 0;
    Dim half = n->out[0]->type.dim[axis];
    Value *a = build_slice(r, n, x, axis, DIM(0), half);
    Value *b = build_slice(r, n, x, axis, half, x->type.dim[axis]);
    return as_value(r, n, build2(r, n, OP_MUL_TENSOR, a, build1(r, n, OP_SIGMOID, b)));
}

/* Each vector lies along an axis of its own and repeats along the others. */
bool decomp_meshgrid(Rewrite *r, Node *n)
{
    int count = n->n_out, by = n->n_args - 1;
    bool is_xy = n->arg[by].kind == ARG_STRING && !strcmp(n->arg[by].str, "xy");
    for (int i = 0; i < count; i++) {
        Value *v = arg_list_value(n, 0, i);
        Type t = n->out[i]->type;
        Dim dim[MAX_RANK];
        int at = is_xy && i < 2 && count > 1 ? 1 - i : i;
        for (int k = 0; k < count; k++)
            dim[k] = k == at ? t.dim[k] : DIM(1);
        v = build_view(r, n, v, dim, count);
        Node *e = v ? build(r->g, n, n->loc, OP_EXPAND, r->d, "vD", v, count, t.dim) : NULL;
        if (!e)
            return false;
        rewrite_value(r, n->out[i], e->out[0]);
    }
    graph_remove(r->g, n);
    return true;
}

bool decomp_view_as(Rewrite *r, Node *n)
{
    return as_recorded(r, n, n->in[0]);
}

bool decomp_expand_as(Rewrite *r, Node *n)
{
    Type t = n->out[0]->type;
    return done(r, n, build(r->g, n, n->loc, OP_EXPAND, r->d, "vD", n->in[0], t.rank, t.dim));
}
