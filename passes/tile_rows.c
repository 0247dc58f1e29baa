/* tile_rows.c -- computes runs of row-wise nodes for one block of rows after the other, for a .pte,
 * so that wide tensors between them never exist as a whole, such as the hidden layer of an MLP.
 *
 * Stage core, pte tail, after decompose.  Rows are the equal runs of bytes that leading axes divide
 * a tensor into: rows of a matrix, images, channels of one image, heads, windows.  A node is
 * row-wise if a row of its results depends on the same row of some operands, and on the whole of
 * others.  Nodes that follow each other in the order and are row-wise over the same number of rows
 * are a run; runs over other numbers of rows may overlap it.  A part of a run can be computed block
 * by block: slices in, one concat per result out, and neither needs a copy.  Tensors that are read
 * there for the last time die block by block while the result grows, so that only the tensors at
 * both ends of the part exist as a whole.  The sums of a row do not depend on other rows, so no bit
 * changes.
 *
 * The goal is the lowest peak that cutting can reach: the largest need of any step, if each is
 * cut as finely as allowed between the ends that hold the least, or is whole if that needs
 * less.  Only steps that need more are cut, between the nearest ends with which the goal is
 * reached, into as few blocks as possible.  Each additional call costs CALL, in the body of a loop
 * ITERATIONS times that, and each byte of the peak that is saved is worth RAM.  Linear, except for
 * the live ranges. */
#include "passes/internal.h"
#include "ir/session.h"

enum {
    MOST_BLOCKS = 16,
    MOST_OPEN = 6,   /* runs at a time */
    LEAST_ROWS = 16,     /* the fewest rows of a product in a block; kernels are slow with less */
    LEAST_CHANNELS = 8,  /* the fewest channels of a convolution in a block */
    LEAST_WINDOWED = 16, /* the same if our kernel gathers the windows again for each block */
    CALL = 2048,
    RAM = 16,
    ITERATIONS = 32 /* the calls of a loop's body count as often */
};

/* Nodes that are run by rows.  They are counted from 1, as times are. */
typedef struct Run {
    int first, last;
    int64_t rows, blocks; /* how many, and into how many blocks they go at most */
    int64_t *base;        /* by node: the fewest bytes that the ends around it can hold */
    int64_t *whole, stays; /* before node `first` + i, and of all: see find_wholes */
} Run;

typedef struct Segment { /* part of a run that is cut */
    int first, last;
    int64_t rows, blocks;
} Segment;

typedef struct Rows {
    Graph *g;
    Rewrite r;
    Arena *tmp;
    Node **node;
    int n;
    int64_t *live, *kept; /* bytes while node t runs, and between t and t + 1 */
    const Run **best;     /* the run to cut t in, or NULL */
    int *number;          /* by value: the number of the node that computes it; 0: none */
    Run *run;
    int n_runs;
    Segment *segment;
    int n_segments;
    int64_t peak, goal, calls;
    int64_t iterations;   /* how often the graph is taken to run */
    int *last_read;       /* by value: the last node that reads it */
    int *stamp;           /* by value: the block that `piece` belongs to */
    Value **piece;
    int *flat_of;         /* by value: the segment that `flat` is for */
    Value **flat;
    int n_blocks, n_segment;
    Node *head;           /* the first node of the segment's blocks.  Slices come before it, else
                             they would keep tensors alive until the last block */
} Rows;

/* -- rows ------------------------------------------------------------------------------------ */

/* Returns the axis of a block that an axis behind the first ones becomes. */
static int64_t axis_in_block(RowSplit u, int64_t axis)
{
    return axis - (u.axes - 1 - u.lead);
}

static Type block_type(Program *p, Type t, RowSplit u, int64_t count)
{
    Dim dim[MAX_RANK];
    int rank = 0;
    assert(u.axes <= t.rank && u.lead < u.axes);
    while (rank < u.lead)
        dim[rank++] = DIM(1);
    dim[rank++] = DIM(u.each * count);
    for (int i = u.axes; i < t.rank; i++)
        dim[rank++] = t.dim[i];
    return type_tensor(p, t.dtype, rank, dim);
}

/* -- what can be cut ------------------------------------------------------------------------- */

static int64_t least_channels(const Weighted *conv)
{
    const Type w = conv->w->type;
    int64_t taps = 1;
    for (int i = 2; i < w.rank; i++)
        taps *= w.dim[i].value;
    return taps > 1 && conv->groups == 1 ? LEAST_WINDOWED : LEAST_CHANNELS;
}

/* Returns whether nobody reads result i of n, such as the working memory of a transform. */
static bool is_unread(const Rows *s, const Node *n, int i)
{
    return i && !s->last_read[n->out[i]->index];
}

/* Returns the most blocks that leave the kernel of a node enough to do.  One that works along an axis
 * in working memory takes several rows at once. */
static int64_t blocks_of_node(const Rows *s, const Node *n, int64_t rows, RowSplit u)
{
    Weighted w;
    Type t = n->out[0]->type;
    int64_t most = rows < MOST_BLOCKS ? rows : MOST_BLOCKS, own = most;
    if (!weighted_read(n, &w))
        own = node_access(n) == ACCESS_ALONG && is_unread(s, n, n->n_out - 1) ? rows / LEAST_ROWS : most;
    else if (!w.is_conv)
        own = type_numel(t) / t.dim[t.rank - 1].value / LEAST_ROWS;
    else if (u.axes == 2)
        own = t.dim[1].value / least_channels(&w);
    return own < most ? own : most;
}

/* Returns whether each result of n has rows as the first one, or is unread. */
static bool results_have_rows(const Rows *s, const Node *n, int64_t rows, RowSplit u)
{
    RowSplit own;
    for (int i = 1; i < n->n_out; i++) {
        Type t = n->out[i]->type;
        if (!is_unread(s, n, i) &&
            (!rows_split(t, rows, &own) || !dims_equal(t.dim, n->out[0]->type.dim, u.axes)))
            return false;
    }
    return true;
}

/* Returns into how many blocks of rows n can be cut; below 2: it cannot. */
static int64_t can_cut(const Rows *s, const Node *n, int64_t rows)
{
    RowSplit u, other;
    bool has_cut = false;
    if (!n->n_out || !n->n_in || !node_is_pure(n) || node_reads_symbols(n) ||
        !rows_split(n->out[0]->type, rows, &u) || !results_have_rows(s, n, rows, u))
        return 0;
    for (int i = 0; i < n->n_in; i++) {
        RowAccess role = access_rows(n, i, u);
        if (role == ROWS_NONE || (role == ROWS_CUT && !rows_split(n->in[i]->type, rows, &other)))
            return 0;
        has_cut = has_cut || role == ROWS_CUT;
    }
    return has_cut ? blocks_of_node(s, n, rows, u) : 0;
}

static bool is_cut(const Node *n, int i, int64_t rows)
{
    RowSplit u;
    return rows_split(n->out[0]->type, rows, &u) && access_rows(n, i, u) == ROWS_CUT;
}

/* -- runs ------------------------------------------------------------------------------------ */

/* Returns whether all that n reads as a whole is there before node `first`. */
static bool reads_before(const Rows *s, const Node *n, int64_t rows, int first)
{
    for (int i = 0; i < n->n_in; i++)
        if (!is_cut(n, i, rows) && s->number[n->in[i]->index] >= first)
            return false;
    return true;
}

/* Runs that end at t, and those that start there: of the rows it asks for itself. */
typedef struct Open {
    int run[MOST_OPEN], n;
} Open;

static void extend_runs(Rows *s, int t, const Open *before, Open *now)
{
    now->n = 0;
    for (int i = 0; i < before->n; i++) {
        Run *run = &s->run[before->run[i]];
        int64_t blocks = can_cut(s, s->node[t], run->rows);
        if (blocks < 2 || !reads_before(s, s->node[t], run->rows, run->first))
            continue;
        run->last = t;
        run->blocks = blocks < run->blocks ? blocks : run->blocks;
        now->run[now->n++] = before->run[i];
    }
}

static void start_run(Rows *s, int t, int64_t rows, Open *now)
{
    for (int i = 0; i < now->n; i++)
        if (s->run[now->run[i]].rows == rows)
            return;
    Run one = {t, t, rows, rows > 1 ? can_cut(s, s->node[t], rows) : 0, NULL, NULL, 0};
    if (one.blocks < 2 || now->n == MOST_OPEN)
        return;
    now->run[now->n++] = s->n_runs;
    PUSH(s->tmp, s->run, s->n_runs, one);
}

/* Finds runs of nodes that can be computed in blocks of rows.  For each node two numbers of rows
 * are tried: the product of all sizes of its result but the last, and the first size that is not
 * 1. */
static void find_runs(Rows *s)
{
    Open open[2] = {{.n = 0}, {.n = 0}};
    for (int t = 1; t <= s->n; t++) {
        const Node *n = s->node[t];
        Open *now = &open[t & 1];
        int64_t all = 1, first = 1;
        extend_runs(s, t, &open[!(t & 1)], now);
        if (!n->n_out || !type_is_static(n->out[0]->type))
            continue;
        for (int i = 0; i < n->out[0]->type.rank; i++) {
            int64_t size = n->out[0]->type.dim[i].value;
            first = first == 1 ? size : first;
            if (i + 1 < n->out[0]->type.rank && !mul_ok(all, size, &all))
                all = 1;
        }
        start_run(s, t, all, now);
        start_run(s, t, first, now);
    }
}

/* -- bytes ----------------------------------------------------------------------------------- */

static void find_lives(Rows *s)
{
    Blocks b = blocks_of(s->g, alias_sets(s->g, s->tmp), s->tmp);
    for (int i = 0; i < b.n; i++)
        for (int k = 0; k < b.item[i].n_parts; k++) {
            const Part *p = &b.item[i].part[k];
            s->live[p->start] += p->hi - p->lo;
            s->live[p->end + 1] -= p->hi - p->lo;
            s->kept[p->start] += p->hi - p->lo;
            s->kept[p->end] -= p->hi - p->lo;
        }
    for (int t = 1; t <= s->n + 1; t++) {
        s->live[t] += s->live[t - 1];
        s->kept[t] += s->kept[t - 1];
    }
    for (int t = 0; t <= s->n + 1; t++)
        s->peak = s->live[t] > s->peak ? s->live[t] : s->peak;
}

/* Sums up, by node, the bytes of tensors that the run reads as a whole and for the last time.
 * Other tensors that die in the run are cut; all others stay. */
static void find_wholes(Rows *s, Run *run)
{
    assert(run->first >= 1 && run->first <= run->last && run->last <= s->n);
    int n = run->last - run->first + 1;
    run->whole = NEW(s->tmp, int64_t, n + 1);
    run->stays = s->kept[run->first - 1];
    for (int k = 0; k < n; k++) {
        const Node *node = s->node[run->first + k];
        run->whole[k + 1] = run->whole[k];
        for (int i = 0; i < node->n_in; i++) {
            const Value *v = node->in[i];
            if (v->state || s->last_read[v->index] != run->first + k ||
                s->number[v->index] >= run->first)
                continue;
            run->stays -= type_bytes(v->type);
            if (!is_cut(node, i, run->rows))
                run->whole[k + 1] += type_bytes(v->type);
        }
    }
    run->stays = run->stays > 0 ? run->stays : 0;
}

/* Returns the part of node t's bytes that one block has. */
static int64_t block_bytes(const Rows *s, const Run *run, int t, int64_t blocks)
{
    assert(run->whole && blocks > 0);
    int64_t whole = run->whole[run->last - run->first + 1] - run->whole[t - run->first];
    int64_t bytes = s->live[t] - run->stays - whole;
    return bytes > 0 ? bytes / blocks : 0;
}

/* Returns the bytes that are live after node t if a part starts at `first`.  Tensors that are
 * read as a whole do not die before the last block. */
static int64_t end_of(const Rows *s, const Run *run, int first, int t)
{
    assert(run->first <= first && first <= t && t <= run->last);
    return s->kept[t] + run->whole[t - run->first + 1] - run->whole[first - run->first];
}

static void find_bases(Rows *s, Run *run)
{
    int64_t low = INT64_MAX, *end = NEW(s->tmp, int64_t, run->last - run->first + 2);
    run->base = NEW(s->tmp, int64_t, run->last - run->first + 1);
    find_wholes(s, run);
    for (int t = run->last; t >= run->first; t--) {
        int64_t own = end_of(s, run, run->first, t);
        low = own < low ? own : low;
        end[t - run->first] = low;
    }
    low = INT64_MAX;
    for (int t = run->first, best = t; t <= run->last; t++) {
        best = s->kept[t - 1] < low ? t : best;
        low = s->kept[best - 1];
        int64_t behind = end[t - run->first] - run->whole[best - run->first];
        run->base[t - run->first] = low > behind ? low : behind;
    }
}

/* Finds the least memory that each step needs, and the run in which it needs that. */
static void find_goal(Rows *s)
{
    int64_t *least = NEW(s->tmp, int64_t, s->n + 2);
    for (int t = 0; t <= s->n + 1; t++)
        least[t] = s->live[t];
    for (int i = 0; i < s->n_runs; i++) {
        Run *run = &s->run[i];
        find_bases(s, run);
        for (int t = run->first; t <= run->last; t++) {
            int64_t cut = run->base[t - run->first] + block_bytes(s, run, t, run->blocks);
            if (cut < least[t]) {
                least[t] = cut;
                s->best[t] = run;
            }
        }
    }
    for (int t = 0; t <= s->n + 1; t++)
        s->goal = least[t] > s->goal ? least[t] : s->goal;
}

/* -- segments -------------------------------------------------------------------------------- */

/* Returns the part of a run around t, behind `from`, whose ends let the goal be met. */
static Segment segment_at(const Rows *s, const Run *run, int t, int from)
{
    int64_t room = s->goal - block_bytes(s, run, t, run->blocks);
    Segment m = {t, t, run->rows, 2};
    assert(from <= t);
    from = from > run->first ? from : run->first;
    while (m.first > from && s->kept[m.first - 1] > room)
        m.first--;
    while (m.last < run->last && end_of(s, run, m.first, m.last) > room)
        m.last++;
    return m;
}

/* Starts each block where vectors and plans like it, if there are rows enough. */
static int64_t block_rows(const Segment *m)
{
    assert(m->blocks >= 2 && m->rows >= m->blocks);
    int64_t rows = (m->rows + m->blocks - 1) / m->blocks;
    return rows < 8 ? rows : round_up(rows, m->rows % 8 ? 4 : 8);
}

static void choose_blocks(Rows *s, const Run *run, Segment *m)
{
    int64_t most = 0, ends = s->kept[m->first - 1], behind = end_of(s, run, m->first, m->last);
    ends = behind > ends ? behind : ends;
    for (int t = m->first; t <= m->last; t++) {
        int64_t bytes = block_bytes(s, run, t, 1);
        most = bytes > most ? bytes : most;
    }
    while (m->blocks < run->blocks && ends + most / m->blocks > s->goal)
        m->blocks++;
    for (int t = m->first; t <= m->last; t++)
        s->calls += node_is_view(s->node[t]) ? 0 : (m->blocks - 1) * s->iterations;
}

static void find_segments(Rows *s)
{
    for (int t = 1, from = 1; t <= s->n; t++) {
        if (s->live[t] <= s->goal || !s->best[t])
            continue;
        Segment m = segment_at(s, s->best[t], t, from);
        choose_blocks(s, s->best[t], &m);
        PUSH(s->tmp, s->segment, s->n_segments, m);
        t = m.last;
        from = m.last + 1;
    }
}

static void tell(const Rows *s)
{
    session_note(s->g->program->session,
                 "%d parts by rows: %lld -> %lld bytes at once for %lld more calls, worth %lld",
                 s->n_segments, (long long)s->peak, (long long)s->goal, (long long)s->calls,
                 (long long)((s->peak - s->goal) * RAM / CALL));
}

/* -- blocks ---------------------------------------------------------------------------------- */

/* Rows [from, to) of the tensors that a segment reads and computes. */
typedef struct Piece {
    Rows *s;
    const Segment *m;
    Node *at;
    int64_t from, to;
} Piece;

static Type piece_type(const Piece *b, const Value *v, RowSplit *u)
{
    rows_split(v->type, b->m->rows, u);
    return block_type(b->s->g->program, v->type, *u, b->to - b->from);
}

/* Returns a run of a constant's bytes, over the same bytes. */
static Value *const_piece(const Piece *b, Value *v, Type t)
{
    assert(type_bytes(v->type) % b->m->rows == 0);
    return graph_const_part(b->s->g, v, t, type_bytes(v->type) / b->m->rows * b->from);
}

/* Returns v viewed with the sizes that blocks are slices of. */
static Value *flat(const Piece *b, Value *v, RowSplit u)
{
    Rows *s = b->s;
    if (s->flat_of[v->index] != s->n_segment) {
        Type t = block_type(s->g->program, v->type, u, b->m->rows);
        Value *now = rewrite_current(&s->r, v);
        s->flat[v->index] = build_view(&s->r, s->head ? s->head : b->at, now, t.dim, t.rank);
        s->flat_of[v->index] = s->n_segment;
    }
    return s->flat[v->index];
}

static Value *slice_of(const Piece *b, Value *v)
{
    assert(0 <= b->from && b->from < b->to && b->to <= b->m->rows);
    Rows *s = b->s;
    RowSplit u;
    Type t = piece_type(b, v, &u);
    if (value_is_fixed(v))
        return const_piece(b, v, t);
    Value *x = flat(b, v, u);
    return x ? slice_build(s->g, s->head ? s->head : b->at, b->at->loc, x, u.lead,
                           DIM(u.each * b->from), DIM(u.each * b->to), s->r.d)
             : NULL;
}

/* Returns the piece of v; of a value from outside it is a slice that the block shares. */
static Value *piece_of(const Piece *b, Value *v)
{
    Rows *s = b->s;
    if (s->stamp[v->index] != s->n_blocks) {
        s->piece[v->index] = slice_of(b, v);
        s->stamp[v->index] = s->n_blocks;
    }
    return s->piece[v->index];
}

/* Returns a value that is read as a whole.  If blocks have fewer axes than before, its leading
 * axes of size 1 are removed. */
static Value *whole(const Piece *b, const Node *n, Value *x, RowSplit u)
{
    int missing = n->out[0]->type.rank - x->type.rank, first = u.axes - missing;
    bool has_rows = node_access(n) == ACCESS_POINTWISE && u.axes > u.lead + 1 && first > 0;
    x = rewrite_current(&b->s->r, x);
    return has_rows ? build_view(&b->s->r, b->at, x, x->type.dim + first, x->type.rank - first) : x;
}

/* Sets the axes of a copy as they are counted in a block.  The axes in front are gone, and a
 * permute leaves them out. */
static void set_axes(Node *copy, const Node *n, RowSplit u)
{
    int at = access_axes(n), rank = first_operand(n)->type.rank, count = 0;
    int64_t axis[MAX_RANK], to[MAX_RANK];
    if (at < 0)
        return;
    bool is_list = n->arg[at].kind == ARG_LIST;
    if (!(is_list ? arg_ints(n, at, axis, MAX_RANK) : arg_int(n, at, axis)))
        return;
    for (int i = 0; i < (is_list ? arg_count(n, at) : 1); i++) {
        int64_t own = axis_in_block(u, axis[i] + (axis[i] < 0 ? rank : 0));
        if (own >= 0)
            to[count++] = own;
    }
    assert(count > 0);
    node_set_arg(copy, at, is_list ? arg_int_list(copy->graph->program, to, count)
                                   : (Arg){.kind = ARG_INT, .dim = DIM(to[0])});
}

static void set_groups(Node *copy, const Node *n)
{
    Weighted w;
    if (!weighted_read(n, &w) || !w.is_conv)
        return;
    Dim channels = copy->in[w.x_slot]->type.dim[1];
    if (channels.value != w.x->type.dim[1].value)
        node_set_arg(copy, arg_of(copy, "groups"), (Arg){.kind = ARG_INT, .dim = channels});
}

static bool copy_view(const Piece *b, const Node *n)
{
    RowSplit u;
    Type t = piece_type(b, n->out[0], &u);
    Value *x = piece_of(b, arg_value(n, "self"));
    Value *y = x ? build_view(&b->s->r, b->at, x, t.dim, t.rank) : NULL;
    if (y && y != x && !b->s->head)
        b->s->head = y->def;
    b->s->stamp[n->out[0]->index] = b->s->n_blocks;
    b->s->piece[n->out[0]->index] = y;
    return y;
}

/* Gives results that nobody reads the types for fewer rows. */
static bool infer_unread(Rows *s, const Node *n, Node *copy)
{
    Type *t = NEW(s->tmp, Type, n->n_out);
    for (int i = 1; i < n->n_out; i++) {
        if (!is_unread(s, n, i))
            continue;
        if (!node_infer(copy, t, s->r.d))
            return false;
        copy->out[i]->type = t[i];
    }
    return true;
}

static bool copy_node(const Piece *b, const Node *n)
{
    Rows *s = b->s;
    RowSplit u;
    if (node_is_view(n))
        return copy_view(b, n);
    Node *copy = node_like(s->g, n);
    rows_split(n->out[0]->type, b->m->rows, &u);
    for (int i = 0; i < n->n_args; i++)
        node_push(copy, arg_moved(copy, n, n->arg[i]));
    for (int i = 0; i < n->n_in; i++) {
        Value *v = access_rows(n, i, u) == ROWS_CUT ? piece_of(b, n->in[i]) : whole(b, n, n->in[i], u);
        if (!v)
            return false;
        node_set_in(copy, i, v);
    }
    set_axes(copy, n, u);
    set_groups(copy, n);
    for (int i = 0; i < n->n_out; i++) {
        const char *name =
            arena_numbered(s->g->program->arena, n->out[i]->name, ".", graph_number(s->g) + 1);
        RowSplit own;
        s->stamp[n->out[i]->index] = s->n_blocks;
        s->piece[n->out[i]->index] = node_add_out(
            copy, name, is_unread(s, n, i) ? n->out[i]->type : piece_type(b, n->out[i], &own));
    }
    if (!infer_unread(s, n, copy))
        return false;
    graph_insert(s->g, b->at, copy);
    s->head = s->head ? s->head : copy;
    return true;
}

/* A result of the segment that is read behind it, with its pieces. */
typedef struct Result {
    Node *node;
    int out;
    Value **part;
} Result;

typedef struct Results {
    Result *item;
    int n;
} Results;

static Results results_of(Rows *s, const Segment *m)
{
    Results all = {0};
    for (int t = m->first; t <= m->last; t++)
        for (int i = 0; i < s->node[t]->n_out; i++) {
            if (s->last_read[s->node[t]->out[i]->index] <= m->last)
                continue;
            Result one = {s->node[t], i, NEW(s->tmp, Value *, m->blocks)};
            PUSH(s->tmp, all.item, all.n, one);
        }
    return all;
}

/* Builds the blocks of a segment.  Every other segment runs from the last block to the first: then
 * what is written can take the place of what has died, upwards in one segment and downwards in the
 * next. */
static bool make_blocks(Rows *s, const Segment *m, Results *all)
{
    int64_t rows = block_rows(m), n = (m->rows + rows - 1) / rows;
    for (int64_t i = 0; i < n; i++) {
        int64_t block = (m - s->segment) % 2 ? n - 1 - i : i, from = block * rows;
        Piece b = {s, m, s->node[m->first], from, from + rows < m->rows ? from + rows : m->rows};
        s->n_blocks++;
        for (int t = m->first; t <= m->last; t++)
            if (!copy_node(&b, s->node[t]))
                return false;
        for (int k = 0; k < all->n; k++)
            all->item[k].part[block] = piece_of(&b, all->item[k].node->out[all->item[k].out]);
    }
    return true;
}

static bool join_pieces(Rows *s, const Segment *m, Results *all)
{
    Node *at = s->node[m->first];
    int64_t rows = block_rows(m);
    for (int i = 0; i < all->n; i++) {
        Result *to = &all->item[i];
        Type t = to->node->out[to->out]->type;
        RowSplit u;
        rows_split(t, m->rows, &u);
        Value *y = concat_build(s->g, at, to->node->loc, (int)((m->rows + rows - 1) / rows), to->part,
                                u.lead, s->r.d);
        y = y ? build_view(&s->r, at, y, t.dim, t.rank) : NULL;
        if (!y)
            return false;
        rewrite_result(&s->r, to->node, to->out, y);
    }
    return true;
}

static bool cut_segment(Rows *s, const Segment *m)
{
    Results all = results_of(s, m);
    s->head = NULL;
    s->n_segment++;
    if (!make_blocks(s, m, &all) || !join_pieces(s, m, &all))
        return false;
    for (int t = m->first; t <= m->last; t++)
        graph_remove(s->g, s->node[t]);
    return true;
}

static bool cut_segments(Rows *s)
{
    const Segment *m = s->segment, *end = m + s->n_segments;
    for (int t = 1; t <= s->n; t++) {
        if (m == end || t < m->first) {
            rewrite_inputs(&s->r, s->node[t]);
            continue;
        }
        if (!cut_segment(s, m))
            return false;
        t = m++->last;
    }
    rewrite_finish(&s->r);
    return true;
}

/* -- the pass -------------------------------------------------------------------------------- */

static void number_nodes(Rows *s)
{
    Graph *g = s->g;
    for (Node *n = g->first; n; n = n->next)
        s->n++;
    s->node = NEW(s->tmp, Node *, s->n + 1);
    int t = 0;
    for (Node *n = g->first; n; n = n->next) {
        s->node[++t] = n;
        for (int i = 0; i < n->n_in; i++)
            s->last_read[n->in[i]->index] = t;
        for (int i = 0; i < n->n_out; i++)
            s->number[n->out[i]->index] = t;
    }
    for (int i = 0; i < g->n_out; i++)
        s->last_read[g->out[i]->index] = s->n + 1;
    for (int i = 0; i < g->n_updates; i++)
        s->last_read[g->update[i].value->index] = s->n + 1;
}

bool pass_tile_rows(Graph *g, Arena *tmp, Diag *d)
{
    size_t n = (size_t)g->n_values + 1;
    Rows s = {.g = g, .tmp = tmp, .number = NEW(tmp, int, n), .last_read = NEW(tmp, int, n),
              .stamp = NEW(tmp, int, n), .piece = NEW(tmp, Value *, n),
              .flat_of = NEW(tmp, int, n), .flat = NEW(tmp, Value *, n)};
    s.iterations = g->owner && region_kind(g->owner) == REGION_LOOP ? ITERATIONS : 1;
    if ((!g->name && !region_has_places(g->owner)) || !graph_has_bounds(g))
        return true;
    number_nodes(&s);
    s.live = NEW(tmp, int64_t, s.n + 3);
    s.kept = NEW(tmp, int64_t, s.n + 3);
    s.best = NEW(tmp, const Run *, s.n + 2);
    find_lives(&s);
    find_runs(&s);
    find_goal(&s);
    find_segments(&s);
    if (!s.n_segments)
        return true;
    tell(&s);
    if ((s.peak - s.goal) * RAM < s.calls * CALL)
        return true;
    s.r = rewrite_start(g, tmp, d);
    return cut_segments(&s);
}
