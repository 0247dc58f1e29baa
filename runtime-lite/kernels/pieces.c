/* pieces.c -- wrappers of roll, flip, padding by reflection and replication, and pixel shuffle.
 *
 * The results of roll, flip and padding consist of pieces of the input: each axis has up to three
 * pieces, which run forwards, run backwards or repeat one element.  Pixel shuffle turns channels
 * into blocks of pixels, and pixel unshuffle turns them back. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/copy.h"
#include "runtime-lite/kernels/kernels.h"
#include <string.h>

/* Elements to .. to + n - 1 of an axis are the input's elements from, from + step, ... */
typedef struct Piece {
    int64_t to, from, n, step;
} Piece;

typedef struct Pieces {
    int32_t count[ETC_MAX_RANK];
    Piece piece[ETC_MAX_RANK][3];
    int64_t size[ETC_MAX_RANK]; /* the sizes of the result */
} Pieces;

/* Sets one piece per axis, which is the whole axis of x. */
static void pieces_of(const EtcTensor *x, Pieces *p)
{
    memset(p, 0, sizeof *p);
    for (int32_t d = 0; d < x->rank; d++) {
        p->count[d] = 1;
        p->piece[d][0] = (Piece){0, 0, x->dim[d], 1};
        p->size[d] = x->dim[d];
    }
}

/* Copies the block of piece which[d] of each axis d. */
static void copy_block(const EtcTensor *x, const EtcTensor *y, const Pieces *p,
                       const int32_t *which)
{
    const int64_t size = (int64_t)etc_dtype_size((int)x->dtype);
    int64_t from = 0, to = 0, x_step = 1, y_step = 1;
    EtcWalk w;
    EtcCopy g;
    memset(&w, 0, sizeof w);
    memset(&g, 0, sizeof g);
    w.rank = x->rank;
    w.n = 2;
    for (int32_t d = x->rank - 1; d >= 0; d--) {
        const Piece *at = &p->piece[d][which[d]];
        if (at->n == 0) {
            return;
        }
        w.dim[d] = at->n;
        w.stride[0][d] = y_step;
        w.stride[1][d] = x_step * at->step;
        to += at->to * y_step;
        from += at->from * x_step;
        y_step *= y->dim[d];
        x_step *= x->dim[d];
    }
    etc_walk_collapse(&w);
    g.rank = w.rank;
    g.size = (int32_t)size;
    for (int32_t d = 0; d < w.rank; d++) {
        g.dim[d] = w.dim[d];
        g.y[d] = w.stride[0][d];
        g.x[d] = w.stride[1][d];
    }
    etc_copy_nd((const unsigned char *)x->data + (from * size),
                (unsigned char *)y->data + (to * size), &g);
}

static EtcStatus copy_pieces(const EtcTensor *x, EtcTensor *y, const Pieces *p)
{
    int32_t which[ETC_MAX_RANK] = {0}, d = 0;
    EtcStatus st = etc_resize64(y, p->size, x->rank);
    if (st != ETC_OK) {
        return st;
    }
    if (x->dtype != y->dtype) {
        return ETC_BAD_ARG;
    }
    if (!etc_is_plain(x) || !etc_is_plain(y) || (etc_dtype_size((int)x->dtype) == 0)) {
        return ETC_UNSUPPORTED;
    }
    if ((etc_numel(y) == 0) || (etc_numel(x) == 0)) {
        return (etc_numel(y) == 0) ? ETC_OK : ETC_BAD_ARG;
    }
    while (d >= 0) {
        copy_block(x, y, p, which);
        for (d = x->rank - 1; d >= 0; d--) {
            which[d]++;
            if (which[d] < p->count[d]) {
                break;
            }
            which[d] = 0;
        }
    }
    return ETC_OK;
}

/* Moves the last elements of an axis to its front.  If an axis is named twice, its shifts add
 * up. */
static EtcStatus roll(const EtcTensor *x, const EtcInts *shifts, const EtcInts *dims, EtcTensor *y)
{
    Pieces p;
    pieces_of(x, &p);
    for (int32_t i = 0; i < dims->n; i++) {
        const int32_t d = etc_dim(dims->v[i], x->rank);
        if ((d < 0) || (x->rank == 0)) {
            return ETC_BAD_ARG;
        }
        const int64_t n = (x->dim[d] > 0) ? x->dim[d] : 1, before = p.piece[d][0].n % n;
        const int64_t moved = (p.count[d] == 2) ? before : 0;
        const int64_t shift = ((((shifts->v[i] % n) + n) % n) + moved) % n;
        p.count[d] = 2;
        p.piece[d][0] = (Piece){0, x->dim[d] - shift, shift, 1};
        p.piece[d][1] = (Piece){shift, 0, x->dim[d] - shift, 1};
    }
    return copy_pieces(x, y, &p);
}

/* Arguments: x, shifts, dims, out.  Without dims, all elements are one row. */
EtcStatus etc_roll(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts shifts, dims;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &shifts) || !etc_arg_ints(c, 2, &dims) ||
        !etc_arg_tensor(c, 3, &y) || (shifts.n < 1) || (dims.n < 0)) {
        return ETC_BAD_ARG;
    }
    if ((shifts.n == 1) && (dims.n == 0)) {
        const EtcStatus st = etc_resize(y, x->dim, x->rank);
        EtcTensor from = *x, to = *y;
        int32_t n = (int32_t)etc_min_i64(etc_numel(x), INT32_MAX);
        if ((st != ETC_OK) || !etc_is_plain(x) || !etc_is_plain(y) || (n != etc_numel(x))) {
            return (st != ETC_OK) ? st : ETC_UNSUPPORTED;
        }
        from.rank = to.rank = dims.n = 1;
        from.dim = to.dim = &n;
        dims.v[0] = 0;
        return roll(&from, &shifts, &dims, &to);
    }
    return (shifts.n == dims.n) ? roll(x, &shifts, &dims, y) : ETC_BAD_ARG;
}

/* Arguments: x, dims, out. */
EtcStatus etc_flip(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts dims;
    Pieces p;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &dims) || !etc_arg_tensor(c, 2, &y)) {
        return ETC_BAD_ARG;
    }
    pieces_of(x, &p);
    for (int32_t i = 0; i < dims.n; i++) {
        const int32_t d = etc_dim(dims.v[i], x->rank);
        if ((d < 0) || (p.piece[d][0].step < 0)) {
            return ETC_BAD_ARG;
        }
        if (x->rank > 0) {
            p.piece[d][0] = (Piece){0, x->dim[d] - 1, x->dim[d], -1};
        }
    }
    return copy_pieces(x, y, &p);
}

/* Sets the pieces of elements from .. to - 1 of an axis of n elements that is continued on both
 * sides: the elements before its first, its own, and those after its last.  If one border cuts more
 * elements than the axis has, only the piece on the other side is left. */
static void pad_axis(int64_t n, int64_t from, int64_t to, int is_reflection, Piece piece[3])
{
    const int64_t step = is_reflection ? -1 : 0, behind = etc_max_i64(n, from);
    const int64_t before = etc_max_i64(etc_min_i64(to, 0) - from, 0);
    const int64_t after = etc_max_i64(to - behind, 0), kept = to - from - before - after;
    piece[0] = (Piece){0, is_reflection ? -from : 0, before, step};
    piece[1] = (Piece){before, etc_max_i64(from, 0), kept, 1};
    piece[2] = (Piece){before + kept, is_reflection ? ((2 * (n - 1)) - behind) : (n - 1), after,
                       step};
}

/* Arguments: x, padding (last dimension first: before, after), out.  A negative padding cuts. */
static EtcStatus pad(const EtcCall *c, int is_reflection)
{
    EtcTensor *x, *y;
    EtcInts pads;
    Pieces p;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &pads) || !etc_arg_tensor(c, 2, &y) ||
        (pads.n < 2) || ((pads.n % 2) != 0) || ((pads.n / 2) >= x->rank)) {
        return ETC_BAD_ARG;
    }
    pieces_of(x, &p);
    for (int32_t i = 0; i < (pads.n / 2); i++) {
        const int32_t d = x->rank - 1 - i;
        const int64_t n = x->dim[d], lo = pads.v[2 * i], hi = pads.v[(2 * i) + 1];
        const int64_t most = is_reflection ? (n - 1) : INT32_MAX;
        if ((lo > most) || (hi > most) || (lo < -INT32_MAX) || (hi < -INT32_MAX) ||
            (n < 1) || ((n + lo + hi) < 1)) {
            return ETC_BAD_ARG;
        }
        pad_axis(n, -lo, n + hi, is_reflection, p.piece[d]);
        p.count[d] = 3;
        p.size[d] = n + lo + hi;
    }
    return copy_pieces(x, y, &p);
}

EtcStatus etc_reflection_pad(const EtcCall *c)
{
    return pad(c, 1);
}

EtcStatus etc_replication_pad(const EtcCall *c)
{
    return pad(c, 0);
}

/* -- pixels and channels -------------------------------------------------------------------- */

/* Copies x to y.  If to_pixels is set, x is [lead, channels, k, k, h, w] and y is
 * [lead, channels, h, k, w, k]; else x is the latter and y the former. */
static EtcStatus move_pixels(const EtcTensor *x, EtcTensor *y, const int64_t *out, int64_t k,
                             int to_pixels)
{
    const EtcTensor *image = to_pixels ? y : x;
    const int32_t r = x->rank;
    EtcStatus st = etc_resize64(y, out, r);
    if (st != ETC_OK) {
        return st;
    }
    if (x->dtype != y->dtype) {
        return ETC_BAD_ARG;
    }
    if (!etc_is_plain(x) || !etc_is_plain(y) || (etc_dtype_size((int)x->dtype) == 0)) {
        return ETC_UNSUPPORTED;
    }
    if (etc_numel(y) == 0) {
        return ETC_OK;
    }
    const int64_t h = image->dim[r - 2] / k, w = image->dim[r - 1] / k;
    const int64_t planes = etc_numel(image) / (h * w * k * k);
    const int64_t size[5] = {planes, k, k, h, w};
    const int64_t deep[5] = {k * k * h * w, k * h * w, h * w, w, 1};
    const int64_t flat[5] = {k * k * h * w, k * w, 1, k * k * w, k};
    EtcCopy g;
    memset(&g, 0, sizeof g);
    g.rank = 5;
    g.size = (int32_t)etc_dtype_size((int)x->dtype);
    for (int d = 0; d < 5; d++) {
        g.dim[d] = size[d];
        g.x[d] = to_pixels ? deep[d] : flat[d];
        g.y[d] = to_pixels ? flat[d] : deep[d];
    }
    etc_copy_nd(x->data, y->data, &g);
    return ETC_OK;
}

/* Arguments: x, factor, out. */
static EtcStatus pixels(const EtcCall *c, int to_pixels)
{
    EtcTensor *x, *y;
    int64_t k, out[ETC_MAX_RANK];
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &k) || !etc_arg_tensor(c, 2, &y) ||
        (x->rank < 3) || (k < 1) || (k > 32767)) {
        return ETC_BAD_ARG;
    }
    for (int32_t d = 0; d < x->rank; d++) {
        out[d] = x->dim[d];
    }
    int64_t *channels = &out[x->rank - 3], *h = channels + 1, *w = channels + 2;
    if (to_pixels ? ((*channels % (k * k)) != 0) : (((*h % k) != 0) || ((*w % k) != 0))) {
        return ETC_BAD_ARG;
    }
    *channels = to_pixels ? (*channels / (k * k)) : (*channels * k * k);
    *h = to_pixels ? (*h * k) : (*h / k);
    *w = to_pixels ? (*w * k) : (*w / k);
    return move_pixels(x, y, out, k, to_pixels);
}

EtcStatus etc_pixel_shuffle(const EtcCall *c)
{
    return pixels(c, 1);
}

EtcStatus etc_pixel_unshuffle(const EtcCall *c)
{
    return pixels(c, 0);
}
