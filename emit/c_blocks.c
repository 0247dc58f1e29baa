/* c_blocks.c -- writes weights in the blocks that kernels/tile.h describes.  A core reads the
 * elements of a block one after the other, so it packs nothing when the model runs.
 *
 * The bytes are made from those of the model's file while the output file is written, so no weight
 * is copied in memory. */
#include "emit/c_emit.h"
#include "ir/session.h"
#include <string.h>

static int64_t rows_kept(const RowBlocks *b)
{
    return b->is_filled || b->words ? (b->rows + TOGETHER - 1) / TOGETHER * TOGETHER : b->rows;
}

int64_t step_words(int64_t terms)
{
    const int64_t words = (terms + 1) / 2, steps = (words + 15) / 16;
    return (words + steps - 1) / steps;
}

int64_t all_words(int64_t terms)
{
    const int64_t n = step_words(terms);
    return ((terms + 1) / 2 + n - 1) / n * n;
}

/* Returns the words of a row for each tap. */
static int64_t words_kept(const RowBlocks *b)
{
    return all_words(b->terms / b->taps);
}

int64_t blocks_numel(const RowBlocks *b)
{
    if (b->words)
        return b->count * rows_kept(b) * b->taps * words_kept(b) * 2;
    if (b->is_quads)
        return b->rows * ((b->terms + 3) / 4 * 4) * b->term;
    return b->count * rows_kept(b) * b->terms;
}

/* A place in the blocks: row `first + r`, term `k` of matrix `i`.  Its block has `width` rows. */
typedef struct BlockPlace {
    int64_t i, first, width, k, r;
} BlockPlace;

static int64_t width_at(const RowBlocks *b, int64_t first)
{
    const int64_t left = rows_kept(b) - first;
    return left < TOGETHER ? left : TOGETHER;
}

static BlockPlace place_of(const RowBlocks *b, int64_t element)
{
    const int64_t matrix = rows_kept(b) * b->terms, block = TOGETHER * b->terms;
    const int64_t within = element % matrix;
    BlockPlace p = {.i = element / matrix, .first = within / block * TOGETHER};
    p.width = width_at(b, p.first);
    p.k = within % block / p.width;
    p.r = within % block % p.width;
    return p;
}

/* Moves `count` rows on, at most to the end of the block's term. */
static void move_on(const RowBlocks *b, BlockPlace *p, int64_t count)
{
    p->r += count;
    if (p->r < p->width)
        return;
    p->r = 0;
    if (++p->k < b->terms)
        return;
    p->k = 0;
    p->first += p->width;
    if (p->first >= rows_kept(b)) {
        p->first = 0;
        p->i++;
    }
    p->width = width_at(b, p->first);
}

/* Copies `n` floats that lie `step` bytes apart.  A call with a constant becomes moves without a
 * loop. */
static inline void gather(const uint8_t *from, int64_t step, int64_t n, uint8_t *to)
{
    for (; n > 0; n--, from += step, to += 4)
        memcpy(to, from, 4);
}

/* Writes term k of `count` rows. */
static void put_rows(const RowBlocks *b, BlockPlace p, int64_t count, uint8_t *to)
{
    const int64_t row = p.first + p.r, left = b->rows > row ? b->rows - row : 0;
    const int64_t kept = count < left ? count : left;
    const int64_t element = p.i * b->rows * b->terms + row * b->row + p.k * b->term;
    const uint8_t *from = b->from + (kept ? 4 * element : 0);
    if (kept == TOGETHER)
        gather(from, 4 * b->row, TOGETHER, to);
    else
        gather(from, 4 * b->row, kept, to);
    if (kept < count)
        memset(to + 4 * kept, 0, (size_t)(4 * (count - kept)));
}

/* Writes what becomes of term k of `count` rows. */
static void put_transformed(const RowBlocks *b, BlockPlace p, int64_t count, uint8_t *to)
{
    const uint8_t *from = b->from + 4 * ((p.first + p.r) * b->row + p.k * b->term);
    for (int64_t i = 0; i < count; i++)
        winograd_weight(from + 4 * b->row * i, p.i, to + 4 * i);
}

/* Returns the quads of a tap that are side by side, as etc_quads_together of kernels/conv_geometry.h. */
static int64_t quads_together(int64_t quads)
{
    int64_t n = 16;
    while (quads % n)
        n--;
    return n;
}

/* Writes n bytes of quads, from byte `from` on. */
static void make_quads(const RowBlocks *b, int64_t from, int64_t n, uint8_t *to)
{
    const int64_t quads = (b->terms + 3) / 4, row = quads * 4 * b->term, side = 4 * quads_together(quads);
    for (int64_t i = from; i < from + n; i++) {
        const int64_t at = i % row, tap = at / side % b->term;
        const int64_t channel = at / (side * b->term) * side + at % side;
        const uint8_t *w = b->from + (i / row * b->terms + channel) * b->term + tap;
        *to++ = channel < b->terms ? *w : 0;
    }
}

/* The words of a row for one step and tap. */
typedef struct WordPlace {
    int64_t i, row, step, tap;
} WordPlace;

static WordPlace word_place(const RowBlocks *b, int64_t run)
{
    const int64_t steps = words_kept(b) / b->words, block = TOGETHER * b->taps * steps;
    const int64_t blocks = rows_kept(b) / TOGETHER;
    return (WordPlace){.i = run / block / blocks, .step = run / TOGETHER / b->taps % steps,
                       .row = run / block % blocks * TOGETHER + run % TOGETHER,
                       .tap = run / TOGETHER % b->taps};
}

static void next_row(const RowBlocks *b, WordPlace *p)
{
    if (++p->row % TOGETHER)
        return;
    p->row -= TOGETHER;
    if (++p->tap < b->taps)
        return;
    p->tap = 0;
    if (++p->step < words_kept(b) / b->words)
        return;
    p->step = 0;
    p->row += TOGETHER;
    p->i += p->row == rows_kept(b);
    p->row %= rows_kept(b);
}

/* Writes n elements of bfloat16, from element `from` on. */
static void make_bfloats(const RowBlocks *b, int64_t from, int64_t n, uint8_t *to)
{
    const int64_t side = 2 * b->words, channels = b->terms / b->taps;
    WordPlace p = word_place(b, from / side);
    for (int64_t k = from % side; n; k = 0, next_row(b, &p)) {
        const int64_t first = p.step * side, left = p.row < b->rows ? channels - first : 0;
        const uint8_t *w = b->from + 4 * (p.i * b->rows * b->terms) + 2;
        for (; k < side && n; k++, n--, to += 2) {
            const uint8_t zero[2] = {0}, *of = zero;
            if (k < left)
                of = w + 4 * (p.row * b->row + ((first + k) * b->taps + p.tap) * b->term);
            memcpy(to, of, 2);
        }
    }
}

void blocks_make(const void *blocks, int64_t from, int64_t n, uint8_t *to)
{
    const RowBlocks *b = blocks;
    if (b->is_quads) {
        make_quads(b, from, n, to);
        return;
    }
    if (b->words) {
        make_bfloats(b, from / 2, n / 2, to);
        return;
    }
    assert(from % 4 == 0 && n % 4 == 0);
    BlockPlace p = place_of(b, from / 4);
    for (int64_t left = n / 4, count; left; left -= count, to += 4 * count) {
        count = p.width - p.r < left ? p.width - p.r : left;
        if (b->is_transformed)
            put_transformed(b, p, count, to);
        else
            put_rows(b, p, count, to);
        move_on(b, &p, count);
    }
}

bool weight_is_blocked(Emit *e, const Value *w, int64_t rows)
{
    return rows >= TOGETHER && !e->target->mcu && type_is_static(w->type) && type_numel(w->type) &&
           constant_bytes_of(e, w, ETC_F32) && e->n_readers[w->state->storage] == 1;
}

bool weight_is_bfloat(Emit *e, const Value *w)
{
    const uint8_t *at = e->p->session->rounds_products ? constant_bytes_of(e, w, ETC_F32) : NULL;
    const int64_t n = at ? type_numel(w->type) : 0;
    int64_t i = 0;
    while (i < n && !at[4 * i] && !at[4 * i + 1])
        i++;
    return at && i == n;
}

const char *blocked_weight(Emit *e, const Value *w, RowBlocks of)
{
    RowBlocks *b = NEW(e->a, RowBlocks, 1);
    *b = of;
    b->from = constant_bytes_of(e, w, of.is_quads ? ETC_I8 : ETC_F32);
    return made_blocks(e, wish_of(w), b);
}
