/* axis.c -- where moves put an axis. */
#include "passes/internal.h"

/* The axis of `to` that has the elements of `axis`, both types being of the same bytes, or -1. */
static int axis_of_view(Program *p, Type from, int axis, Type to)
{
    Dim inner = DIM(1), seen = DIM(1);
    for (int i = axis + 1; i < from.rank; i++)
        inner = dim_mul(p, inner, from.dim[i]);
    for (int i = to.rank - 1; i >= 0; i--) {
        if (dim_equal(seen, inner) && dim_equal(to.dim[i], from.dim[axis]))
            return i;
        seen = dim_mul(p, seen, to.dim[i]);
    }
    return -1;
}

static int axis_of_permute(const Permute *p, int axis)
{
    for (int i = 0; i < p->rank; i++)
        if (p->axis[i] == axis)
            return i;
    return -1;
}

static int axis_of_roll(const Node *n, int axis)
{
    int64_t along[MAX_RANK];
    int count = arg_count(n, "dims"), rank = n->out[0]->type.rank;
    if (!count || !arg_ints(n, "dims", along, MAX_RANK))
        return -1;
    for (int i = 0; i < count; i++)
        if ((along[i] < 0 ? along[i] + rank : along[i]) == axis)
            return -1;
    return axis;
}

static int axis_of_part(const Node *n, int axis)
{
    int64_t along, rank = arg_value(n, "self")->type.rank;
    if (!arg_int(n, "dim", &along))
        return -1;
    along += along < 0 ? rank : 0;
    if (along == axis)
        return -1;
    return n->out[0]->type.rank < rank ? axis - (along < axis) : axis;
}

int axis_behind(const Node *n, int axis)
{
    Permute p;
    if (node_is_view(n))
        return axis_of_view(n->graph->program, first_operand(n)->type, axis, n->out[0]->type);
    if (permute_read(n, &p))
        return axis_of_permute(&p, axis);
    if (n->op == OP_ROLL)
        return axis_of_roll(n, axis);
    if (op_info[n->op].flags & VIEW && op_info[n->op].flags & ALONG)
        return axis_of_part(n, axis);
    return node_is_copy(n) ? axis : -1;
}
