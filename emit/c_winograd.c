/* c_winograd.c -- chooses the convolutions that --math fast computes by Winograd's F(2x2, 3x3), and
 * makes their weights; see kernels/winograd.h.
 *
 * A cost is the number of multiply-adds of one image, plus for all other work the number of
 * multiply-adds that take as long.  The constants are fitted to times on a core with AVX-512 and
 * with AVX2.  The choice does not depend on the target, so the results do not either. */
#include "emit/c_emit.h"
#include <inttypes.h>
#include <string.h>

enum {
    KEPT = 64,       /* ETC_WINOGRAD_CHANNELS */
    MOST_LANES = 16, /* of a vector */
    LINES = 4,       /* those that the core keeps in `work` */
    NEAR = 1 << 20,  /* the most bytes that stay in the cache */
    MOST = 4 << 20   /* the most bytes of a row of transformed tiles */
};

static const double input_cost = 180, output_cost = 150; /* to transform a tile of a channel */
static const double weight_cost = 8; /* the cost of each byte that transformed weights have more */
static const double again_cost = 4;  /* the cost of each byte of weights that is read again */

/* Returns whether a convolution has the form that the core takes. */
static bool fits(Emit *e, const Conv *c, const Value *y)
{
    const Type w = c->w->type;
    if (c->is_transposed || c->groups != 1 || w.rank != 4 || w.dim[0].expr ||
        !weight_is_blocked(e, c->w, w.dim[0].value))
        return false;
    bool ok = w.dim[0].value % TOGETHER == 0;
    for (int i = 0; i < 2; i++)
        ok = ok && w.dim[2 + i].value == 3 && c->stride[i] == 1 && c->dilation[i] == 1 &&
             !c->x->type.dim[2 + i].expr && !y->type.dim[2 + i].expr;
    return ok;
}

static int64_t divide_up(int64_t a, int64_t by)
{
    return (a + by - 1) / by;
}

int64_t winograd_rows(Emit *e, const Conv *c, const Value *y)
{
    if (!e->o->is_fast || !fits(e, c, y))
        return 0;
    const int64_t oc = c->w->type.dim[0].value, ic = c->w->type.dim[1].value;
    const int64_t oh = y->type.dim[2].value, ow = y->type.dim[3].value;
    const int64_t tiles = divide_up(ow, 2), all = divide_up(oh, 2);
    const bool is_far = 64 * oc * ic > NEAR; /* each pass over the image reads the weights again */
    const int64_t row = 64 * tiles * ic, most = (is_far ? NEAR : NEAR / 4) / row;
    const int64_t passes = divide_up(all, most < 1 ? 1 : most);
    const double pairs = (double)oc * (double)ic, n = (double)all * (double)tiles;
    const double again = is_far ? 64 * (double)(passes - 1) * pairs : 0;
    const double tiles_cost = (input_cost * (double)ic + output_cost * (double)oc) * n;
    const double fast =
        16 * pairs * n + tiles_cost + weight_cost * (64 - 36) * pairs + again_cost * again;
    const double exact = 9 * pairs * (double)oh * (double)ow;
    const bool has_room = row <= MOST && LINES * 4 * (2 * tiles + 2 + 2 * MOST_LANES) <=
                                             e->target->work_bytes;
    return has_room && fast < exact * 7 / 8 ? divide_up(all, passes) : 0;
}

void winograd_weight(const uint8_t *from, int64_t i, uint8_t *to)
{
    static const double g[4][3] = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
    double sum = 0;
    float w;
    for (int k = 0; k < 9; k++) {
        memcpy(&w, from + 4 * k, sizeof w);
        sum += g[i / 4][k / 3] * g[i % 4][k % 3] * (double)w;
    }
    w = (float)sum;
    memcpy(to, &w, sizeof w);
}

void put_winograd(Function *f, const Conv *c, const Value *y, int64_t rows, const char *from,
                  const char *to, int indent)
{
    Emit *e = f->e;
    const int64_t oc = c->w->type.dim[0].value, ic = c->w->type.dim[1].value;
    const int64_t n = rows * divide_up(y->type.dim[3].value, 2);
    const int64_t bytes = 64 * (n * ic + TOGETHER + n * KEPT);
    const RowBlocks b = {.count = 16, .rows = oc, .terms = ic, .row = 9 * ic, .term = 9,
                         .is_transformed = true};
    const char *u = part_of_array(f, c->w, blocked_weight(e, c->w, b), DIM(ic));
    const char *bias = array_or_null(f, c->bias);
    e->lines_bytes = bytes > e->lines_bytes ? bytes : e->lines_bytes;
    e->n_fast++;
    put(&f->body, "%*setc_winograd_f32(%s, %s, %s, %s, &g, %" PRId64 ", %" PRId64 ", work);\n",
        indent, "", from, u, bias, to, rows, oc * ic);
    f->uses_work = true;
}
