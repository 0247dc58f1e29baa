/* onnx_bags.c -- concatenates tensors along an axis.  Exporters write an embedding bag as a loop
 * that sums the rows of one bag in each iteration.  A concatenation of its unrolled iterations
 * becomes one sum. */
#include "compiler/import/onnx.h"
#include "ir/views.h"

/* The rows from..to of a tensor, or of a table at the indices from..to, reduced to one row. */
typedef struct Bag {
    OpId op; /* what reduces them */
    Value *rows, *table; /* table is NULL if `rows` has the elements */
    int64_t from, to;
} Bag;

static const Node *made_by(const Node *reader, const char *operand)
{
    return arg_value(reader, operand)->def;
}

/* Returns the node that reduces axis 0 of a tensor to the one row v: to sums, means, maxima or minima.
 * NULL: v is computed otherwise. */
static const Node *reduction(const Value *v)
{
    int64_t axis;
    const Node *n = v->def && node_is_view(v->def) ? made_by(v->def, "self") : v->def;
    if (!n || (n->op != OP_SUM_DIM && n->op != OP_MEAN_DIM && n->op != OP_AMAX && n->op != OP_AMIN) ||
        arg_count(n, "dim") != 1 || !arg_ints(n, "dim", &axis, 1) || axis)
        return NULL;
    const Type t = arg_value(n, "self")->type;
    return v->type.dtype == t.dtype && v->type.rank == t.rank && dim_equal(v->type.dim[0], DIM(1)) &&
                   dims_equal(v->type.dim + 1, t.dim + 1, t.rank - 1)
               ? n
               : NULL;
}

/* If n looks rows up, sets the bag's table and its rows, which then are indices. */
static bool look_up(Bag *b, const Node *n)
{
    if (!n || n->op != OP_EMBEDDING || arg_value(n, "indices")->type.rank != 1)
        return false;
    b->table = arg_value(n, "weight");
    b->rows = arg_value(n, "indices");
    return true;
}

/* Reads v as one bag.  Returns false if it is none. */
static bool read_bag(const Value *v, Bag *b)
{
    Slice s;
    const Node *sum = reduction(v), *n = sum ? made_by(sum, "self") : NULL;
    *b = (Bag){.op = sum ? sum->op : OP_NONE};
    if (look_up(b, n))
        n = b->rows->def;
    if (!n || !slice_read(n, &s) || s.axis || s.step != 1 || s.start.expr || s.end.expr)
        return false;
    b->rows = s.x;
    if (!b->table)
        look_up(b, s.x->def);
    b->from = s.start.value;
    b->to = s.end.value;
    return b->to > b->from;
}

/* Returns whether the parts are bags of one size, one after the other. */
static bool read_bags(int n, Value *const *part, Bag *all)
{
    Bag b;
    if (n < 2 || !read_bag(part[0], all))
        return false;
    const int64_t size = all->to - all->from;
    for (int i = 1; i < n; i++, all->to = b.to)
        if (!read_bag(part[i], &b) || b.op != all->op || b.rows != all->rows || b.table != all->table ||
            b.from != all->to || b.to != b.from + size)
            return false;
    return true;
}

Value *on_join(OnnxNode *n, int count, Value *const *part, int axis)
{
    Bag b;
    if (axis || !read_bags(count, part, &b) || b.rows->type.rank == MAX_RANK)
        return ON_BUILD(n, OP_CAT, "Vi", count, part, (int64_t)axis);
    Dim dim[MAX_RANK] = {DIM(count), DIM((b.to - b.from) / count)};
    assert(dim[1].value > 0);
    for (int i = 1; i < b.rows->type.rank; i++)
        dim[i + 1] = b.rows->type.dim[i];
    Value *x = on_part(n, b.rows, 0, DIM(b.from), DIM(b.to), 1);
    x = on_view(n, x, b.rows->type.rank + 1, dim);
    if (x && b.table)
        x = ON_BUILD(n, OP_EMBEDDING, "vv", b.table, x);
    return on_sum(n, b.op, x, 1, false);
}
