/* tile_rows.c -- computes runs of row-wise nodes for some rows after the others, on the way to a
 * .pte, so that what is wide between them is never there as a whole: the hidden layer of an MLP.
 *
 * Stage core, pte tail, when all is expanded.  A row is what lies along the last axis; a node is
 * row-wise where a row of its results depends on the same row of some operands and on others as a
 * whole (weights).  Neighbours in the order that are row-wise over the same number of rows are a
 * run.  Part of a run can be made for a block of rows after the other: slices in, one concat per
 * result out, and neither needs a copy, for a block of rows is a run of bytes.  What is read there
 * for the last time goes block by block as the result comes, so that only what lives at the ends of
 * the part is there as a whole.  A row's sums see nothing of other rows, so the bits stay.
 *
 * The goal is the least peak that cutting can reach: the largest of what each step needs where it
 * is cut as finely as may be between the ends that hold least, or whole if that is less.  Only steps
 * that need more are cut, from the nearest end to the nearest end that let the goal be met, into as
 * few blocks as do.  It costs CALL for each call more and pays if RAM for each byte of the peak saved
 * is worth it.  Linear but for the lifetimes.
 */
#include "passes/internal.h"

enum {
    MOST_BLOCKS = 16,
    LEAST_ROWS = 16, /* of a block: kernels want some */
    CALL = 2048,
    RAM = 16
};

/* Nodes are counted from 1, as times are. */
typedef struct Run {
    int first, last;
    int64_t rows;
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
    int64_t *base;        /* the least that the ends around t can hold; without a run, INT64_MAX */
    int *number;          /* by value: the node that makes it; 0: none */
    Run *run;
    int n_runs;
    Segment *segment;
    int n_segments;
    int64_t peak, goal, calls;
    int *last_read;       /* by value: the last node that reads it */
    int *stamp, *result;  /* by value: the block that has a piece of it, the segment that joins it */
    int n_blocks, n_segment;
    Value **piece;
} Rows;

/* -- rows ------------------------------------------------------------------------------------ */

/* Sizes but the last, multiplied; 0 where that means nothing. */
static int64_t rows_of(const Value *v)
{
    Type t = v->type;
    int64_t rows = 1;
    if (t.rank < 0 || t.is_none || t.stride || !type_is_static(t) || !type_numel(t))
        return 0;
    for (int i = 0; i + 1 < t.rank; i++)
        rows *= t.dim[i].value;
    return rows;
}

static int64_t columns_of(const Value *v)
{
    return v->type.rank > 0 ? v->type.dim[v->type.rank - 1].value : 1;
}

/* The argument that says along which axis, where it must be the last; -1: none. */
static int axis_argument(OpId op)
{
    switch (op) {
    case OP__SOFTMAX:
    case OP__LOG_SOFTMAX:
    case OP_SLICE:
    case OP_MEAN_DIM:
    case OP_SUM_DIM:
    case OP_AMAX:
    case OP_CAT:
        return 1;
    default:
        return -1;
    }
}

static bool is_last_axis(const Node *n, int arg)
{
    int64_t axis, rank = n->in[0]->type.rank;
    bool is_plain = n->arg[arg].kind == ARG_LIST ? arg_count(n, arg) == 1 && arg_ints(n, arg, &axis, 1)
                                                 : arg_int(n, arg, &axis);
    return is_plain && (axis == -1 || axis == rank - 1);
}

/* Whether a row of each result depends on no other row of in[0 .. *n_rows), those of as many rows. */
static bool is_row_wise(const Node *n, int *n_rows)
{
    *n_rows = 1;
    switch (n->op) {
    case OP_VIEW:
        return columns_of(n->in[0]) == columns_of(n->out[0]);
    case OP_LINEAR:
    case OP_MM:
        return true;
    case OP_ADDMM:
        *n_rows = 2;
        return true;
    case OP_NATIVE_LAYER_NORM:
        return arg_count(n, 1) == 1;
    case OP__SOFTMAX:
    case OP__LOG_SOFTMAX:
    case OP_SLICE:
        return is_last_axis(n, 1);
    case OP_MEAN_DIM:
    case OP_SUM_DIM:
    case OP_AMAX:
        return is_last_axis(n, 1) && arg_bool(n, 2);
    case OP_CAT:
        *n_rows = n->n_in;
        return is_last_axis(n, 1);
    default:
        *n_rows = n->n_in;
        return op_info[n->op].flags & POINTWISE;
    }
}

/* Operand i is cut with the result. */
static bool is_cut(const Node *n, int i, int64_t rows)
{
    int n_rows;
    return is_row_wise(n, &n_rows) && i < n_rows && rows_of(n->in[i]) == rows;
}

/* Rows that n can be cut along, or 0. */
static int64_t rows_of_node(const Node *n)
{
    int n_rows, n_cut = 0;
    int64_t rows = n->n_out && n->n_in ? rows_of(n->out[0]) : 0;
    if (rows < 2 * LEAST_ROWS || !node_is_pure(n) || node_reads_symbols(n) ||
        !is_row_wise(n, &n_rows))
        return 0;
    for (int i = 1; i < n->n_out; i++)
        if (rows_of(n->out[i]) != rows)
            return 0;
    for (int i = 0; i < n_rows && i < n->n_in; i++) {
        int64_t own = rows_of(n->in[i]);
        bool may_be_whole = own == 1 && (op_info[n->op].flags & POINTWISE || n->op == OP_ADDMM);
        if (own != rows && !may_be_whole)
            return 0;
        n_cut += own == rows;
    }
    return n_cut ? rows : 0;
}

/* What it reads as a whole is there before node `first`. */
static bool reads_before(const Rows *s, const Node *n, int64_t rows, int first)
{
    for (int i = 0; i < n->n_in; i++)
        if (!is_cut(n, i, rows) && s->number[n->in[i]->index] >= first)
            return false;
    return true;
}

static void find_runs(Rows *s)
{
    for (int t = 1; t <= s->n; t++) {
        int64_t rows = rows_of_node(s->node[t]);
        Run *last = s->n_runs ? &s->run[s->n_runs - 1] : NULL;
        if (!rows)
            continue;
        if (last && last->last == t - 1 && last->rows == rows &&
            reads_before(s, s->node[t], rows, last->first)) {
            last->last = t;
        } else {
            Run one = {t, t, rows};
            PUSH(s->tmp, s->run, s->n_runs, one);
        }
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

static int64_t most_blocks(int64_t rows)
{
    return rows / LEAST_ROWS < MOST_BLOCKS ? rows / LEAST_ROWS : MOST_BLOCKS;
}

static void find_bases(Rows *s, const Run *run)
{
    int64_t low = INT64_MAX;
    for (int t = run->first; t <= run->last; t++) {
        low = s->kept[t - 1] < low ? s->kept[t - 1] : low;
        s->base[t] = low;
    }
    low = INT64_MAX;
    for (int t = run->last; t >= run->first; t--) {
        low = s->kept[t] < low ? s->kept[t] : low;
        s->base[t] = low > s->base[t] ? low : s->base[t];
    }
}

static void find_goal(Rows *s)
{
    int64_t *least = NEW(s->tmp, int64_t, s->n + 2);
    for (int t = 0; t <= s->n + 1; t++)
        least[t] = s->live[t];
    for (int i = 0; i < s->n_runs; i++) {
        const Run *run = &s->run[i];
        find_bases(s, run);
        for (int t = run->first; t <= run->last; t++) {
            int64_t cut = s->base[t] + s->live[t] / most_blocks(run->rows);
            least[t] = cut < least[t] ? cut : least[t];
        }
    }
    for (int t = 0; t <= s->n + 1; t++)
        s->goal = least[t] > s->goal ? least[t] : s->goal;
}

/* -- segments -------------------------------------------------------------------------------- */

/* The part of the run around t, behind `from`, whose ends let the goal be met. */
static Segment segment_at(const Rows *s, const Run *run, int t, int from)
{
    int64_t room = s->goal - s->live[t] / most_blocks(run->rows);
    Segment m = {t, t, run->rows, 2};
    while (m.first > from && s->kept[m.first - 1] > room)
        m.first--;
    while (m.last < run->last && s->kept[m.last] > room)
        m.last++;
    return m;
}

/* A multiple of 4 starts each block where vectors and plans like it. */
static int64_t block_rows(const Segment *m)
{
    return round_up((m->rows + m->blocks - 1) / m->blocks, 4);
}

static void choose_blocks(Rows *s, Segment *m)
{
    int64_t most = 0, ends = s->kept[m->first - 1];
    ends = s->kept[m->last] > ends ? s->kept[m->last] : ends;
    for (int t = m->first; t <= m->last; t++)
        most = s->live[t] > most ? s->live[t] : most;
    while (m->blocks < most_blocks(m->rows) && ends + most / m->blocks > s->goal)
        m->blocks++;
    for (int t = m->first; t <= m->last; t++)
        s->calls += s->node[t]->op == OP_VIEW ? 0 : m->blocks - 1;
}

static void find_segments(Rows *s, const Run *run)
{
    int from = run->first;
    for (int t = run->first; t <= run->last; t++) {
        if (s->live[t] <= s->goal)
            continue;
        Segment m = segment_at(s, run, t, from);
        choose_blocks(s, &m);
        PUSH(s->tmp, s->segment, s->n_segments, m);
        t = m.last;
        from = m.last + 1;
    }
}

static void tell(const Rows *s)
{
    program_note(s->g->program,
                 "%d parts by rows: %lld -> %lld bytes at once for %lld more calls, worth %lld",
                 s->n_segments, (long long)s->peak, (long long)s->goal, (long long)s->calls,
                 (long long)((s->peak - s->goal) * RAM / CALL));
}

/* -- blocks ---------------------------------------------------------------------------------- */

/* Rows [from, to) of what a segment reads and makes. */
typedef struct Piece {
    Rows *s;
    const Segment *m;
    Node *at;
    int64_t from, to;
} Piece;

static bool is_inside(const Rows *s, const Segment *m, const Value *v)
{
    return s->number[v->index] >= m->first && s->number[v->index] <= m->last;
}

/* The value whose rows v has, past the segment's own views. */
static Value *source_of(const Rows *s, const Segment *m, Value *v)
{
    while (is_inside(s, m, v) && v->def->op == OP_VIEW)
        v = v->def->in[0];
    return v;
}

/* As a matrix of rows. */
static Value *flat(Rows *s, Node *at, Value *x, int64_t rows)
{
    Dim dim[2] = {DIM(rows), DIM(columns_of(x))};
    return build_view(&s->r, at, x, dim, 2);
}

/* The piece of x; of a value from outside, a slice that the block shares. */
static Value *piece_of(const Piece *b, Value *x)
{
    Rows *s = b->s;
    Value *v = source_of(s, b->m, x);
    if (s->stamp[v->index] == s->n_blocks)
        return s->piece[v->index];
    Value *all = flat(s, b->at, rewrite_current(&s->r, v), b->m->rows);
    Node *n = all ? build(s->g, b->at, b->at->loc, OP_SLICE, s->r.d, "viiii", all, (int64_t)0,
                          b->from, b->to, (int64_t)1)
                  : NULL;
    s->stamp[v->index] = s->n_blocks;
    s->piece[v->index] = n ? n->out[0] : NULL;
    return s->piece[v->index];
}

/* An operand that is read as a whole may have axes of 1 that a matrix has not. */
static Value *whole(const Piece *b, const Node *n, Value *x)
{
    Dim dim = DIM(columns_of(x));
    x = rewrite_current(&b->s->r, x);
    return op_info[n->op].flags & POINTWISE && x->type.rank > 2 ? build_view(&b->s->r, b->at, x, &dim, 1)
                                                                : x;
}

/* Columns are axis 1 of a matrix. */
static void set_axis(Node *copy)
{
    Arg axis = {.kind = ARG_INT, .dim = DIM(1)};
    int64_t one = 1;
    int at = axis_argument(copy->op);
    if (at >= 0)
        node_set_arg(copy, at, copy->arg[at].kind == ARG_LIST
                                   ? arg_int_list(copy->graph->program, &one, 1)
                                   : axis);
}

static bool copy_node(const Piece *b, const Node *n)
{
    Rows *s = b->s;
    Program *p = s->g->program;
    Node *copy = node_new(s->g, n->op, n->loc);
    for (int i = 0; i < n->n_args; i++)
        node_push(copy, arg_moved(copy, n, n->arg[i]));
    for (int i = 0; i < n->n_in; i++) {
        Value *v = is_cut(n, i, b->m->rows) ? piece_of(b, n->in[i]) : whole(b, n, n->in[i]);
        if (!v)
            return false;
        node_set_in(copy, i, v);
    }
    set_axis(copy);
    for (int i = 0; i < n->n_out; i++) {
        Dim dim[2] = {DIM(b->to - b->from), DIM(columns_of(n->out[i]))};
        const char *name = arena_printf(p->arena, "%s.%d", n->out[i]->name, s->g->n_values + 1);
        s->stamp[n->out[i]->index] = s->n_blocks;
        s->piece[n->out[i]->index] =
            node_add_out(copy, name, type_tensor(p, n->out[i]->type.dtype, 2, dim));
    }
    graph_insert(s->g, b->at, copy);
    return true;
}

/* A result of the segment that is read behind it, with its pieces. */
typedef struct Result {
    Value *value, **part, *all;
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
            Value *v = s->node[t]->out[i], *own = source_of(s, m, v);
            if (s->last_read[v->index] <= m->last || s->result[own->index] == s->n_segment)
                continue;
            s->result[own->index] = s->n_segment;
            Result one = {own, NEW(s->tmp, Value *, m->blocks), NULL};
            PUSH(s->tmp, all.item, all.n, one);
        }
    return all;
}

static bool make_blocks(Rows *s, const Segment *m, Results *all)
{
    int64_t rows = block_rows(m), count = 0;
    for (int64_t from = 0; from < m->rows; from += rows, count++) {
        Piece b = {s, m, s->node[m->first], from, from + rows < m->rows ? from + rows : m->rows};
        s->n_blocks++;
        for (int t = m->first; t <= m->last; t++)
            if (s->node[t]->op != OP_VIEW && !copy_node(&b, s->node[t]))
                return false;
        for (int i = 0; i < all->n; i++)
            if (is_inside(s, m, all->item[i].value))
                all->item[i].part[count] = piece_of(&b, all->item[i].value);
    }
    return true;
}

/* Pieces joined; what only views look at from behind is as it was. */
static bool join_pieces(Rows *s, const Segment *m, Results *all)
{
    Node *at = s->node[m->first];
    int64_t rows = block_rows(m);
    for (int i = 0; i < all->n; i++) {
        Result *to = &all->item[i];
        Node *n = is_inside(s, m, to->value)
                      ? build(s->g, at, to->value->def->loc, OP_CAT, s->r.d, "Vi",
                              (int)((m->rows + rows - 1) / rows), to->part, (int64_t)0)
                      : NULL;
        if (!n && is_inside(s, m, to->value))
            return false;
        s->piece[to->value->index] = n ? n->out[0] : rewrite_current(&s->r, to->value);
    }
    return true;
}

static bool replace_results(Rows *s, const Segment *m)
{
    for (int t = m->first; t <= m->last; t++)
        for (int i = 0; i < s->node[t]->n_out; i++) {
            Value *v = s->node[t]->out[i];
            if (s->last_read[v->index] <= m->last)
                continue;
            Value *all = s->piece[source_of(s, m, v)->index];
            Value *y = build_view(&s->r, s->node[m->first], all, v->type.dim, v->type.rank);
            if (!y)
                return false;
            rewrite_result(&s->r, s->node[t], i, y);
        }
    return true;
}

static bool cut_segment(Rows *s, const Segment *m)
{
    s->n_segment++;
    Results all = results_of(s, m);
    if (!make_blocks(s, m, &all) || !join_pieces(s, m, &all) || !replace_results(s, m))
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
              .stamp = NEW(tmp, int, n), .result = NEW(tmp, int, n),
              .piece = NEW(tmp, Value *, n)};
    if (!g->name || !graph_has_bounds(g))
        return true;
    number_nodes(&s);
    s.live = NEW(tmp, int64_t, s.n + 3);
    s.kept = NEW(tmp, int64_t, s.n + 3);
    s.base = NEW(tmp, int64_t, s.n + 3);
    find_lives(&s);
    find_runs(&s);
    find_goal(&s);
    for (int i = 0; i < s.n_runs; i++)
        find_segments(&s, &s.run[i]);
    if (!s.n_segments)
        return true;
    tell(&s);
    if ((s.peak - s.goal) * RAM < s.calls * CALL)
        return true;
    s.r = rewrite_start(g, tmp, d);
    return cut_segments(&s);
}
