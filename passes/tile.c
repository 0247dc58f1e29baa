/* tile.c -- cuts attention into pieces whose scores stay in cache, on the way to a .pte.
 *
 * Stage core, pte tail, before attention is expanded.  Runs of heads, or rows of one head, become
 * attentions of their own.  Their operands are slices along the first axis of [heads, rows,
 * columns], and one concat joins their results, so neither needs a copy, and the scores of all
 * pieces can use the same bytes one after the other.  The softmax and the sums of a row do not
 * depend on other rows, so no bit changes.  If sizes are symbolic, the offsets of slices are not
 * known here; then runs of heads are copied, if the size of the head axis is known.  (Emitted C
 * and runtime-lite call a core that never holds more than a tile.)  Each node is looked at once.
 *
 * The cost of a way to cut, in bytes moved through the cache:
 *   traffic   each score is written and read N_PASSES times, at MISS times the cost beyond the cache
 *   calls     CALL for each kernel that a piece calls
 *   memory    RAM for each byte of a tile
 *   copies    if sizes are symbolic: a read and a write of query, key, value and result
 * Symbolic sizes count with their upper bounds.
 */
#include "passes/internal.h"
#include "ir/session.h"
#include <math.h>

enum {
    CACHE = 1 << 20, /* bytes of a core's second-level cache */
    WINDOW = 1 << 16, /* attention with fewer bytes of scores is left to tile_rows */
    N_PASSES = 6,    /* product, mask, softmax (three), product */
    MISS = 4,
    CALL = 2048,
    CALLS = 8, /* slices, scale, transpose, product, mask, softmax, product */
    RAM = 2,
    MAX_PIECES = 64
};

typedef struct Cut {
    int64_t heads, rows, pieces; /* heads and rows of a piece, and the number of pieces */
    int64_t tile;                /* the bytes of the scores of a piece */
    double cost;
} Cut;

typedef struct Heads {
    Attention of;
    int64_t heads, rows, keys, width, value_width; /* heads: product of the batch axes */
    int64_t bytes;  /* of all scores */
    int64_t last;   /* heads along the last batch axis */
    int64_t groups; /* heads of q that share one of k and v */
    bool is_open;
} Heads;

/* -- what can be cut ------------------------------------------------------------------------- */

static Dim dim_of(const Value *v, int from_last)
{
    return from_last < v->type.rank ? v->type.dim[v->type.rank - 1 - from_last] : DIM(1);
}

static int64_t size_of(const Value *v, int from_last)
{
    return dim_upper(dim_of(v, from_last));
}

static bool fits_rank(const Heads *a, const Value *mask)
{
    return !mask || mask->type.rank <= a->of.q->type.rank;
}

/* Returns whether all batch axes of k and v except that of heads are those of q; masks
 * broadcast. */
static bool axes_match(const Heads *a)
{
    for (int i = 2; i < a->of.q->type.rank; i++) {
        Dim q = dim_of(a->of.q, i), k = dim_of(a->of.k, i);
        bool fits = i == 2 ? !q.expr && !k.expr && k.value * a->groups == q.value : dim_equal(k, q);
        if (!fits || !dim_equal(dim_of(a->of.v, i), k))
            return false;
    }
    return a->of.k->type.rank == a->of.q->type.rank && a->of.v->type.rank == a->of.q->type.rank &&
           fits_rank(a, a->of.mask) && fits_rank(a, a->of.bias);
}

/* Reads attention.  Returns false if it has to stay whole; attention that is wrong is reported
 * where it is expanded. */
static bool read_heads(const Node *n, Heads *a)
{
    *a = (Heads){.heads = 1};
    if (!attention_read(n, &a->of) || a->of.q->type.rank < 3 || a->of.dropout != 0)
        return false;
    for (int i = 0; i < n->n_in; i++) {
        int64_t count = type_numel(n->in[i]->type);
        if (!count || count == INT64_MAX)
            return false;
        a->is_open = a->is_open || !type_is_static(n->in[i]->type);
    }
    for (int i = 2; i < a->of.q->type.rank; i++)
        a->heads *= size_of(a->of.q, i);
    a->rows = size_of(a->of.q, 1);
    a->width = size_of(a->of.q, 0);
    a->keys = size_of(a->of.k, 1);
    a->value_width = size_of(a->of.v, 0);
    a->last = size_of(a->of.q, 2);
    a->groups = a->of.is_shared ? a->last / size_of(a->of.k, 2) : 1;
    return a->groups > 0 && axes_match(a) && mul_ok(a->heads * a->rows, 4 * a->keys, &a->bytes);
}

static bool is_for_all(const Value *mask)
{
    for (int i = 2; mask && i < mask->type.rank; i++)
        if (size_of(mask, i) != 1)
            return false;
    return true;
}

/* Runs of so many heads: they share heads of k and v evenly, and one mask or one run of masks. */
static bool divides(const Heads *a, int64_t heads)
{
    assert(heads > 0);
    int64_t within = is_for_all(a->of.mask) && is_for_all(a->of.bias) ? a->heads : a->last;
    return within % heads == 0 && (heads % a->groups == 0 || a->groups % heads == 0);
}

/* -- the choice ------------------------------------------------------------------------------ */

static Cut cut_of(const Heads *a, int64_t heads, int64_t rows)
{
    Cut c = {heads, rows, (a->heads / heads) * ((a->rows + rows - 1) / rows),
             heads * rows * a->keys * 4, 0};
    c.cost = (double)N_PASSES * (double)a->bytes * (c.tile > CACHE ? MISS : 1) +
             (double)c.pieces * (double)(CALLS * CALL) + (double)RAM * (double)c.tile;
    return c;
}

static void consider(Cut c, Cut *best)
{
    if (c.pieces <= MAX_PIECES && c.cost < best->cost)
        *best = c;
}

/* Runs of heads, copied. */
static Cut choose_open(const Heads *a)
{
    Cut best = cut_of(a, a->heads, a->rows);
    int64_t each = a->heads / a->last; /* heads per index of the head axis */
    double moved = 8.0 * (double)a->heads * (double)(a->rows + a->keys) *
                   (double)(a->width + a->value_width);
    for (int64_t run = a->last - 1; run > 0; run--) {
        Cut c = cut_of(a, each * run, a->rows);
        c.cost += moved;
        if (a->last % run == 0 && (run % a->groups == 0 || a->groups % run == 0))
            consider(c, &best);
    }
    return best;
}

/* Returns whether it is attention in windows or images of few scores each.  If memory asks for it,
 * tile_rows computes some after the others with all that is around them; pieces of attention alone
 * would prevent that. */
static bool is_row_wise(const Heads *a)
{
    int64_t batch = a->of.q->type.rank > 3 ? size_of(a->of.q, a->of.q->type.rank - 1) : 1;
    return batch > 1 && a->bytes / batch < WINDOW;
}

static Cut choose(const Heads *a)
{
    Cut best = cut_of(a, a->heads, a->rows);
    if (a->is_open)
        return choose_open(a);
    if (is_row_wise(a))
        return best;
    for (int64_t pieces = 2; pieces <= MAX_PIECES && pieces <= a->heads; pieces++)
        if (a->heads % pieces == 0 && divides(a, a->heads / pieces))
            consider(cut_of(a, a->heads / pieces, a->rows), &best);
    int64_t most = a->of.is_causal ? 0 : a->rows < MAX_PIECES ? a->rows : MAX_PIECES;
    for (int64_t blocks = 2; blocks <= most; blocks++)
        consider(cut_of(a, 1, (a->rows + blocks - 1) / blocks), &best);
    return best;
}

static void tell(const Heads *a, const Cut *c, const Node *n)
{
    session_note(n->graph->program->session,
                 "%s: %lld heads of %lld x %lld: %lld pieces of %lld heads, %lld rows; scores %lld "
                 "-> %lld bytes, cache %d, cost %.0f -> %.0f",
                 n->loc.node ? n->loc.node : "attention", (long long)a->heads, (long long)a->rows,
                 (long long)a->keys, (long long)c->pieces, (long long)c->heads, (long long)c->rows,
                 (long long)a->bytes, (long long)c->tile, CACHE,
                 cut_of(a, a->heads, a->rows).cost, c->cost);
}

/* -- pieces ---------------------------------------------------------------------------------- */

/* Returns x under three axes: [heads, rows, columns]. */
static Value *flat(Rewrite *r, Node *n, Value *x)
{
    Dim dim[3] = {DIM(1), DIM(size_of(x, 1)), DIM(size_of(x, 0))};
    for (int i = 2; i < x->type.rank; i++)
        dim[0].value *= size_of(x, i);
    return build_view(r, n, x, dim, 3);
}

static Value *part(Rewrite *r, Node *n, Value *x, int64_t axis, int64_t from, int64_t count)
{
    if (!x || (from == 0 && count == x->type.dim[axis].value))
        return x;
    return slice_build(r->g, n, n->loc, x, axis, DIM(from), DIM(from + count), r->d);
}

/* Returns the index of the mask for head `head`, among those of the flat mask. */
static int64_t mask_index(const Heads *a, const Value *mask, int64_t head)
{
    int64_t at = 0, stride = 1;
    for (int i = 2; i < mask->type.rank; i++) {
        int64_t index = head % size_of(a->of.q, i), size = size_of(mask, i);
        head /= size_of(a->of.q, i);
        at += size == 1 ? 0 : index * stride;
        stride *= size;
    }
    return at;
}

/* Returns the part of a mask that so many heads from `head` on and rows from `row` on see; `flat`
 * is the mask under three axes.  NULL: there is no mask, or it was reported. */
static Value *mask_part(Rewrite *r, Node *n, const Heads *a, const Value *mask, Value *flat,
                        int64_t heads, int64_t head, int64_t row, int64_t rows)
{
    if (!mask)
        return NULL;
    int64_t count = size_of(mask, 2) == 1 ? 1 : heads;
    Value *m = part(r, n, flat, 0, mask_index(a, mask, head), count);
    return size_of(mask, 1) == 1 ? m : part(r, n, m, 1, row, rows);
}

/* Builds attention on operands of its own; NULL: one of these could not be made. */
static Value *attend(Rewrite *r, Node *n, const Heads *a, const Attention *own)
{
    const Attention *of = &a->of;
    if (!own->q || !own->k || !own->v || (of->mask && !own->mask) || (of->bias && !own->bias))
        return NULL;
    Node *y = attention_build(r->g, n, n->loc, own, r->d);
    return y ? y->out[0] : NULL;
}

/* Builds rows row .. of heads head .., as one matrix of the result's rows. */
static Value *piece(Rewrite *r, Node *n, const Heads *a, const Attention *f, const Cut *c,
                    int64_t head, int64_t row)
{
    assert(head + c->heads <= a->heads && row < a->rows);
    int64_t rows = row + c->rows > a->rows ? a->rows - row : c->rows;
    int64_t shared = c->heads > a->groups ? c->heads / a->groups : 1;
    Dim dim[2] = {DIM(c->heads * rows), DIM(a->value_width)};
    Attention own = *f;
    own.q = part(r, n, part(r, n, f->q, 0, head, c->heads), 1, row, rows);
    own.k = part(r, n, f->k, 0, head / a->groups, shared);
    own.v = part(r, n, f->v, 0, head / a->groups, shared);
    own.mask = mask_part(r, n, a, a->of.mask, f->mask, c->heads, head, row, rows);
    own.bias = mask_part(r, n, a, a->of.bias, f->bias, c->heads, head, row, rows);
    own.is_shared = c->heads != shared;
    Value *y = attend(r, n, a, &own);
    return y ? build_view(r, n, y, dim, 2) : NULL;
}

static Value *open_mask(Rewrite *r, Node *n, Value *mask, int64_t head, int64_t run)
{
    bool has_heads = mask && mask->type.rank > 2 && !dim_equal(dim_of(mask, 2), DIM(1));
    return has_heads ? part(r, n, mask, mask->type.rank - 3, head, run) : mask;
}

/* Builds heads head .. head + run - 1 along the axis of heads. */
static Value *open_piece(Rewrite *r, Node *n, const Heads *a, int64_t head, int64_t run)
{
    int64_t axis = a->of.q->type.rank - 3, shared = run > a->groups ? run / a->groups : 1;
    Attention own = a->of;
    own.q = part(r, n, own.q, axis, head, run);
    own.k = part(r, n, own.k, axis, head / a->groups, shared);
    own.v = part(r, n, own.v, axis, head / a->groups, shared);
    own.mask = open_mask(r, n, own.mask, head, run);
    own.bias = open_mask(r, n, own.bias, head, run);
    own.is_shared = run != shared;
    return attend(r, n, a, &own);
}

static bool cut_open(Rewrite *r, Node *n, const Heads *a, const Cut *c)
{
    Value **all = NEW(r->tmp, Value *, c->pieces);
    int64_t run = a->last / c->pieces;
    int count = 0;
    for (int64_t head = 0; head < a->last; head += run)
        if (!(all[count++] = open_piece(r, n, a, head, run)))
            return false;
    assert(count == c->pieces);
    Value *y = concat_build(r->g, n, n->loc, count, all, a->of.q->type.rank - 3, r->d);
    return y && rewrite_node(r, n, y);
}

static bool cut(Rewrite *r, Node *n, const Heads *a, const Cut *c)
{
    Attention f = a->of;
    Value **operand[] = {&f.q, &f.k, &f.v, &f.mask, &f.bias};
    for (int i = 0; i < 5; i++)
        if (*operand[i] && !(*operand[i] = flat(r, n, *operand[i])))
            return false;
    Value **all = NEW(r->tmp, Value *, c->pieces);
    int count = 0;
    for (int64_t head = 0; head < a->heads; head += c->heads)
        for (int64_t row = 0; row < a->rows; row += c->rows)
            if (!(all[count++] = piece(r, n, a, &f, c, head, row)))
                return false;
    assert(count == c->pieces);
    Value *y = concat_build(r->g, n, n->loc, count, all, 0, r->d);
    Type t = n->out[0]->type;
    y = y ? build_view(r, n, y, t.dim, t.rank) : NULL;
    return y && rewrite_node(r, n, y);
}

bool pass_tile(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        Heads a;
        next = n->next;
        rewrite_inputs(&r, n);
        if (session_takes(g->program->session, n->op) || !read_heads(n, &a))
            continue;
        Cut best = choose(&a);
        tell(&a, &best, n);
        if (best.pieces > 1)
            ok = (a.is_open ? cut_open : cut)(&r, n, &a, &best) && ok;
    }
    rewrite_finish(&r);
    return ok;
}
