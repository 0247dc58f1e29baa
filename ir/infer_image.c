/* infer_image.c -- types of operators on images and sound: resampling, reflected and replicated
 * padding, pixel shuffles, grids, gates, group normalization. */
#include "ir/internal.h"
#include <inttypes.h>
#include <string.h>

static Program *program_of(const Node *n)
{
    return n->graph->program;
}

/* -- shuffles ------------------------------------------------------------------------- */

/* Exchanges channels and pixels: [.., c k k, h, w] and [.., c, h k, w k]. */
static bool pixel_blocks(const Node *n, bool to_pixels, Type *out, Diag *d)
{
    Program *p = program_of(n);
    Type x;
    Dim dim[MAX_RANK];
    int64_t k, square;
    if (!get_rank(n, "self", 3, MAX_RANK, &x, d) || !get_int(n, 1, &k, d))
        return false;
    if (k < 1 || !mul_ok(k, k, &square))
        return diag_error(d, n->loc, "%s is %" PRId64 ", expected at least 1", arg_name(n, 1), k);
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    Dim *c = dim + x.rank - 3, *h = c + 1, *w = c + 2, factor = DIM(k), area = DIM(square);
    bool fits = to_pixels ? dim_divides(n, square, *c)
                          : dim_divides(n, k, *h) && dim_divides(n, k, *w);
    if (!fits)
        return diag_error(d, n->loc, "%s is %" PRId64 ", which does not divide %s",
                          arg_name(n, 1), k, type_text(p, x));
    *c = to_pixels ? dim_floordiv(p, *c, area) : dim_mul(p, *c, area);
    *h = to_pixels ? dim_mul(p, *h, factor) : dim_floordiv(p, *h, factor);
    *w = to_pixels ? dim_mul(p, *w, factor) : dim_floordiv(p, *w, factor);
    return set_tensor(n, out, x.dtype, x.rank, dim, d);
}

bool infer_pixel_shuffle(const Node *n, Type *out, Diag *d)
{
    return pixel_blocks(n, true, out, d);
}

bool infer_pixel_unshuffle(const Node *n, Type *out, Diag *d)
{
    return pixel_blocks(n, false, out, d);
}

bool infer_channel_shuffle(const Node *n, Type *out, Diag *d)
{
    Type x;
    int64_t groups;
    if (!get_rank(n, "self", 3, MAX_RANK, &x, d) || !get_int(n, "groups", &groups, d))
        return false;
    if (!dim_divides(n, groups, x.dim[1]))
        return diag_error(d, n->loc, "groups %" PRId64 " do not divide %s channels", groups,
                          dim_text(program_of(n), x.dim[1]));
    return infer_same(n, out, d);
}

/* Infers roll(self, shifts, dims).  Without dims it rolls all elements as one row. */
bool infer_roll(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim shift[MAX_RANK];
    int64_t axis[MAX_RANK];
    int count = arg_count(n, "shifts"), at;
    if (!get_tensor(n, "self", &x, d))
        return false;
    if (!count || !arg_dims(n, "shifts", shift, MAX_RANK) || !arg_ints(n, "dims", axis, MAX_RANK) ||
        (arg_count(n, "dims") ? arg_count(n, "dims") : 1) != count)
        return diag_error(d, n->loc, "shifts and dims are not lists of equally many integers");
    for (int i = 0; i < arg_count(n, "dims"); i++)
        if (!wrap_axis(n, axis[i], x.rank, &at, d))
            return false;
    return infer_same(n, out, d);
}

bool infer_flip(const Node *n, Type *out, Diag *d)
{
    Type x;
    int64_t axis[MAX_RANK];
    unsigned seen = 0;
    int at;
    if (!get_tensor(n, "self", &x, d))
        return false;
    if (!arg_ints(n, "dims", axis, MAX_RANK))
        return diag_error(d, n->loc, "dims is not a list of integers");
    for (int i = 0; i < arg_count(n, "dims"); i++) {
        if (!wrap_axis(n, axis[i], x.rank, &at, d))
            return false;
        if (seen >> at & 1)
            return diag_error(d, n->loc, "axis %d appears twice in dims", at);
        seen |= 1u << at;
    }
    return infer_same(n, out, d);
}

/* -- borders -------------------------------------------------------------------------- */

/* Pads come in pairs, from the last axis on.  A border may be as wide as the axis minus `less`, or
 * of any width if `less` is INT64_MAX. */
static bool bordered(const Node *n, int axes, int64_t less, Type *out, Diag *d)
{
    Program *p = program_of(n);
    Type x;
    Dim dim[MAX_RANK], pad[6];
    if (axes < 1 || axes > 3 || arg_count(n, 1) != 2 * axes || !arg_dims(n, 1, pad, 6))
        return diag_error(d, n->loc, "%s is not a list of pairs of integers", arg_name(n, 1));
    if (!get_rank(n, "self", axes + 1, axes + 2, &x, d))
        return false;
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    for (int i = 0; i < axes; i++) {
        Dim *to = &dim[x.rank - 1 - i], most = dim_max(p, pad[2 * i], pad[2 * i + 1]);
        if (!dim_at_least(n, *to, DIM(1)))
            return diag_error(d, n->loc, "axis %d is empty", x.rank - 1 - i);
        if (less != INT64_MAX && !dim_at_least(n, dim_sub(p, *to, DIM(less)), most))
            return diag_error(d, n->loc, "padding %s reaches past the input of size %s",
                              dim_text(p, most), dim_text(p, *to));
        *to = dim_add(p, dim_add(p, *to, pad[2 * i]), pad[2 * i + 1]);
        if (!dim_at_least(n, *to, DIM(1)))
            return diag_error(d, n->loc, "padding leaves nothing of axis %d", x.rank - 1 - i);
    }
    return set_tensor(n, out, x.dtype, x.rank, dim, d);
}

bool infer_reflection_pad(const Node *n, Type *out, Diag *d)
{
    return bordered(n, arg_count(n, "padding") / 2, 1, out, d);
}

bool infer_replication_pad(const Node *n, Type *out, Diag *d)
{
    return bordered(n, arg_count(n, "padding") / 2, INT64_MAX, out, d);
}

bool infer_pad_circular(const Node *n, Type *out, Diag *d)
{
    return bordered(n, arg_count(n, "pad") / 2, 0, out, d);
}

/* -- resampling ----------------------------------------------------------------------- */

/* Computes floor(size * scale).  If the size is symbolic, scale must be a fraction (dim_fraction). */
static bool scaled(const Node *n, Dim size, double scale, Dim *out, Diag *d)
{
    Program *p = program_of(n);
    double whole = (double)size.value * scale;
    int64_t num, den;
    if (!(scale > 0 && scale < 65536))
        return diag_error(d, n->loc, "scale factor %g is not within 0 to 65536", scale);
    if (!size.expr) {
        *out = whole < 9e18 ? DIM((int64_t)whole) : DIM_BAD;
        return true;
    }
    if (!dim_fraction(scale, &num, &den))
        return diag_unsupported(d, n->loc, "scale factor %g of a symbolic size", scale);
    *out = dim_floordiv(p, dim_mul(p, size, DIM(num)), DIM(den));
    return true;
}

/* Reads item k of list argument i as a number. */
static bool list_number(const Node *n, int i, int k, double *v)
{
    const Arg *a = &n->arg[i].list.item[k];
    *v = a->kind == ARG_FLOAT                 ? a->f
         : a->kind == ARG_INT && !a->dim.expr ? (double)a->dim.value
                                              : 0;
    return a->kind == ARG_FLOAT || (a->kind == ARG_INT && !a->dim.expr);
}

/* Checks that neither the image nor the result is empty. */
static bool is_resized(const Node *n, Type x, const Dim *dim, Diag *d)
{
    for (int i = 2; i < x.rank; i++)
        if (!dim_at_least(n, x.dim[i], DIM(1)) ||
            (!dim_is_bad(dim[i]) && !dim_at_least(n, dim[i], DIM(1))))
            return diag_error(d, n->loc, "axis %d of the input or of the result is empty", i);
    return true;
}

/* Infers upsample_*.vec(input, output_size or none, [align_corners,] scale_factors or none). */
bool infer_upsample_vec(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim size[MAX_RANK], dim[MAX_RANK];
    int scales = arg_find(n, "scale_factors"), count = 0;
    bool has_size = arg_get(n, "output_size").kind == ARG_LIST,
         has_scale = n->arg[scales].kind == ARG_LIST;
    int axes = has_size ? arg_count(n, "output_size") : arg_count(n, scales);
    if (has_size == has_scale)
        return diag_error(d, n->loc, "expects either output_size or scale_factors");
    if (!get_rank(n, "input", 3, 4, &x, d) ||
        (has_size && !get_sizes(n, "output_size", size, &count, d)))
        return false;
    if (axes != x.rank - 2)
        return diag_error(d, n->loc, "gives %d sizes, expected %d", axes, x.rank - 2);
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    for (int i = 0; i < axes; i++) {
        double scale;
        if (has_scale && !list_number(n, scales, i, &scale))
            return diag_error(d, n->loc, "scale factor %d is not a number", i);
        if (has_scale && !scaled(n, x.dim[2 + i], scale, &size[i], d))
            return false;
        dim[2 + i] = size[i];
    }
    return is_resized(n, x, dim, d) && set_tensor(n, out, x.dtype, x.rank, dim, d);
}

/* Infers upsample_*.default(self, output_size, ...). */
bool infer_upsample(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim size[MAX_RANK], dim[MAX_RANK];
    int count;
    if (!get_rank(n, "self", 3, 4, &x, d) || !get_sizes(n, "output_size", size, &count, d))
        return false;
    if (count != x.rank - 2)
        return diag_error(d, n->loc, "output_size has %d items, expected %d", count, x.rank - 2);
    memcpy(dim, x.dim, 2 * sizeof *dim);
    memcpy(dim + 2, size, (size_t)count * sizeof *dim);
    return is_resized(n, x, dim, d) && set_tensor(n, out, x.dtype, x.rank, dim, d);
}

/* Samples [n, channels, sizes] at the places [n, sizes, axes]. */
bool infer_grid_sampler(const Node *n, Type *out, Diag *d)
{
    Type x, grid;
    Dim dim[MAX_RANK];
    int rank = n->op == OP_GRID_SAMPLER_3D ? 5 : 4;
    if (!get_rank(n, "input", rank, rank, &x, d) || !get_rank(n, "grid", rank, rank, &grid, d))
        return false;
    if (x.dtype != grid.dtype || !dims_match(n, x.dim[0], grid.dim[0]) ||
        !dims_match(n, grid.dim[rank - 1], DIM(rank - 2)))
        return diag_error(d, n->loc, "grid is %s, expected dtype and batch of %s, and %d places",
                          type_text(program_of(n), grid), type_text(program_of(n), x), rank - 2);
    for (int i = 0; i < rank; i++) {
        dim[i] = i < 2 ? x.dim[i] : grid.dim[i - 1];
        if (i > 1 && !dim_at_least(n, x.dim[i], DIM(1)))
            return diag_error(d, n->loc, "axis %d is empty: it has no places", i);
    }
    return set_tensor(n, out, x.dtype, rank, dim, d);
}

/* -- grids, gates --------------------------------------------------------------------- */

bool infer_meshgrid(const Node *n, Type *out, Diag *d)
{
    Dim dim[MAX_RANK];
    int count = arg_count(n, "tensors"), by = arg_find(n, "indexing");
    bool is_xy = by >= 0 && n->arg[by].kind == ARG_STRING && !strcmp(n->arg[by].str, "xy");
    if (by >= 0 && !is_xy && (n->arg[by].kind != ARG_STRING || strcmp(n->arg[by].str, "ij") != 0))
        return diag_error(d, n->loc, "indexing is neither \"ij\" nor \"xy\"");
    if (count < 1 || count > MAX_RANK || n->n_out != count)
        return diag_error(d, n->loc, "takes %d tensors and gives %d", count, n->n_out);
    for (int i = 0; i < count; i++) {
        const Value *v = arg_list_value(n, "tensors", i);
        if (!v || v->type.is_none || v->type.rank < 0 || v->type.rank > 1)
            return diag_error(d, n->loc, "tensor %d is not a vector", i);
        int at = is_xy && i < 2 && count > 1 ? 1 - i : i;
        dim[at] = v->type.rank ? v->type.dim[0] : DIM(1);
    }
    for (int i = 0; i < count; i++)
        if (!set_tensor(n, &out[i], arg_list_value(n, "tensors", i)->type.dtype, count, dim, d))
            return false;
    return true;
}

bool infer_glu(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    int axis;
    if (!get_rank(n, "self", 1, MAX_RANK, &x, d) || !get_axis(n, "dim", x.rank, &axis, d))
        return false;
    if (!dim_divides(n, 2, x.dim[axis]))
        return diag_error(d, n->loc, "axis %d has size %s, expected an even one", axis,
                          dim_text(program_of(n), x.dim[axis]));
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    dim[axis] = dim_floordiv(program_of(n), dim[axis], DIM(2));
    return set_tensor(n, out, x.dtype, x.rank, dim, d);
}

/* Infers view_as and expand_as: the elements of the first argument under the sizes of the second.
 */
bool infer_like_second(const Node *n, Type *out, Diag *d)
{
    Type x, y;
    if (!get_tensor(n, "self", &x, d) || !get_tensor(n, "other", &y, d))
        return false;
    if (n->op == OP_EXPAND_AS && !expands_to(n, x, y, d))
        return false;
    if (n->op != OP_EXPAND_AS &&
        !dims_match(n, dims_product(program_of(n), x.dim, x.rank),
                    dims_product(program_of(n), y.dim, y.rank)))
        return diag_error(d, n->loc, "cannot view %s as %s", type_text(program_of(n), x),
                          type_text(program_of(n), y));
    return set_tensor(n, out, x.dtype, y.rank, y.dim, d);
}

/* -- statistics ----------------------------------------------------------------------- */

bool infer_var_mean(const Node *n, Type *out, Diag *d)
{
    if (!infer_reduce_float(n, out, d))
        return false;
    out[1] = out[0];
    return true;
}

static bool channel_vector(const Node *n, const char *name, Type x, Diag *d)
{
    Type t;
    if (!get_optional(n, name, &t, d))
        return false;
    return t.is_none || (t.dtype == x.dtype && t.rank == 1 && dims_agree(n, t.dim[0], x.dim[1])) ||
           diag_error(d, n->loc, "%s is %s, expected one per channel of %s", name,
                      type_text(program_of(n), t), type_text(program_of(n), x));
}

static bool grouped(const Node *n, int64_t groups, Type x, Diag *d)
{
    return dim_divides(n, groups, x.dim[1]) ||
           diag_error(d, n->loc, "%" PRId64 " groups do not divide %s channels", groups,
                      dim_text(program_of(n), x.dim[1]));
}

/* Infers group_norm(input, num_groups, weight, bias, eps, cudnn_enabled). */
bool infer_group_norm(const Node *n, Type *out, Diag *d)
{
    Type x;
    int64_t groups;
    return get_rank(n, "input", 2, MAX_RANK, &x, d) && get_int(n, "num_groups", &groups, d) &&
           grouped(n, groups, x, d) && channel_vector(n, "weight", x, d) &&
           channel_vector(n, "bias", x, d) && infer_same(n, out, d);
}

/* Infers native_group_norm(input, weight, bias, N, C, HxW, group, eps), which gives the output,
 * then the mean and the reciprocal deviation of each group. */
bool infer_native_group_norm(const Node *n, Type *out, Diag *d)
{
    Program *p = program_of(n);
    Type x;
    Dim size[3];
    int64_t groups;
    if (!get_rank(n, "input", 2, MAX_RANK, &x, d) || !get_int(n, "group", &groups, d) ||
        !grouped(n, groups, x, d) || !channel_vector(n, "weight", x, d) ||
        !channel_vector(n, "bias", x, d))
        return false;
    static const char *const name[3] = {"N", "C", "HxW"};
    Dim want[3] = {x.dim[0], x.dim[1], dims_product(p, x.dim + 2, x.rank - 2)};
    for (int i = 0; i < 3; i++)
        if (!get_size(n, name[i], &size[i], d))
            return false;
        else if (!dims_match(n, size[i], want[i]))
            return diag_error(d, n->loc, "%s is %s, expected %s", name[i],
                              dim_text(p, size[i]), dim_text(p, want[i]));
    Dim stat[2] = {x.dim[0], DIM(groups)};
    return infer_same(n, &out[0], d) && set_tensor(n, &out[1], x.dtype, 2, stat, d) &&
           set_tensor(n, &out[2], x.dtype, 2, stat, d);
}

bool infer_prelu(const Node *n, Type *out, Diag *d)
{
    Type x, w;
    if (!get_tensor(n, "self", &x, d) || !get_rank(n, "weight", 0, 1, &w, d))
        return false;
    bool is_one = w.rank == 0 || dim_equal(w.dim[0], DIM(1));
    if (w.dtype != x.dtype || (!is_one && (x.rank < 2 || !dims_agree(n, w.dim[0], x.dim[1]))))
        return diag_error(d, n->loc, "weight is %s, expected one number or one per channel of %s",
                          type_text(program_of(n), w), type_text(program_of(n), x));
    return infer_same(n, out, d);
}
