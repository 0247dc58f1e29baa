/* onnx_sequence.c -- reads sequences and optionals of ONNX as lists of names.
 *
 * The IR has no sequences.  The number of items must be known at import, and also which items each
 * node takes.  Then a sequence is a list of its items, and nodes on sequences leave no nodes in the
 * graph.  An optional is its item, or OnnxValue.is_none. */
#include "compiler/import/onnx.h"
#include <assert.h>
#include <string.h>

enum { MOST_ITEMS = 4096 };

static bool give_items(OnnxNode *n, OnnxValue *const *item, int count)
{
    Arena *a = n->in->tmp;
    OnnxSequence *s = NEW(a, OnnxSequence, 1);
    OnnxValue *v = NEW(a, OnnxValue, 1);
    if (count > MOST_ITEMS)
        return onnx_unsupported(n, "makes a sequence of more than 4,096 items");
    *s = (OnnxSequence){.n = count, .item = NEW(a, OnnxValue *, count + 1)};
    if (count)
        memcpy(s->item, item, (size_t)count * sizeof *item);
    v->sequence = s;
    return on_give(n, 0, v);
}

/* Returns input i, which must be a sequence. */
static const OnnxSequence *sequence_at(OnnxNode *n, int i)
{
    OnnxValue *v = on_input(n, i);
    if (v && !v->sequence)
        onnx_wrong(
            n, "takes a tensor, or an optional that is empty, as input %d, expected a sequence", i);
    return v ? v->sequence : NULL;
}

/* Reads the position that input i gives; it is at most `last`. */
static bool read_place(OnnxNode *n, int i, int count, int last, int *out)
{
    const OnnxList *l = on_list(n, i);
    if (n->failed)
        return false;
    if (!l || !l->dim || l->n != 1 || l->dim[0].expr)
        return onnx_unsupported(
            n, "takes an item of a sequence at a position that is known only at run time");
    int64_t at = l->dim[0].value;
    if (at < -count || at > last)
        return onnx_wrong(n, "place %lld is out of range for a sequence of %d items", (long long)at,
                          count);
    *out = (int)(at < 0 ? at + count : at);
    return true;
}

bool onnx_sequence_empty(OnnxNode *n)
{
    return give_items(n, NULL, 0);
}

bool onnx_sequence_construct(OnnxNode *n)
{
    int count = (int)n->node->n_input;
    OnnxValue **item = NEW(n->in->tmp, OnnxValue *, count + 1);
    for (int i = 0; i < count; i++) {
        if (!(item[i] = on_input(n, i)))
            return false;
        if (item[i]->sequence || item[i]->is_none)
            return onnx_unsupported(n, "has a sequence or an optional within a sequence");
    }
    return give_items(n, item, count);
}

bool onnx_sequence_at(OnnxNode *n)
{
    const OnnxSequence *s = sequence_at(n, 0);
    int at;
    return s && read_place(n, 1, s->n, s->n - 1, &at) && on_give(n, 0, s->item[at]);
}

bool onnx_sequence_insert(OnnxNode *n)
{
    const OnnxSequence *s = sequence_at(n, 0);
    OnnxValue *new = s ? on_input(n, 1) : NULL;
    int at = s ? s->n : 0;
    if (!new || (on_has(n, 2) && !read_place(n, 2, s->n, s->n, &at)) ||
        !onnx_spend(n->in, (size_t)s->n))
        return false;
    assert(at >= 0 && at <= s->n);
    OnnxValue **item = NEW(n->in->tmp, OnnxValue *, s->n + 1);
    for (int i = 0; i <= s->n; i++)
        item[i] = i == at ? new : s->item[i - (i > at)];
    return give_items(n, item, s->n + 1);
}

bool onnx_sequence_erase(OnnxNode *n)
{
    const OnnxSequence *s = sequence_at(n, 0);
    int at = s ? s->n - 1 : 0;
    if (!s || (on_has(n, 1) && !read_place(n, 1, s->n, s->n - 1, &at)) ||
        !onnx_spend(n->in, (size_t)s->n))
        return false;
    if (!s->n)
        return onnx_wrong(n, "takes an item out of a sequence without items");
    OnnxValue **item = NEW(n->in->tmp, OnnxValue *, s->n);
    for (int i = 0; i < s->n - 1; i++)
        item[i] = s->item[i + (i >= at)];
    return give_items(n, item, s->n - 1);
}

bool onnx_sequence_length(OnnxNode *n)
{
    const OnnxSequence *s = sequence_at(n, 0);
    OnnxList *l = s ? on_new_list(n, ETC_I64, 0, 1) : NULL;
    if (l)
        l->dim[0] = DIM(s->n);
    return l && on_define_list(n, 0, l);
}

/* -- tensors and sequences --------------------------------------------------------------------- */

/* Reads the sizes of the parts of an axis of `all` elements: a list, or one size for all parts.
 * Returns the number of parts, or -1. */
static int part_sizes(OnnxNode *n, Dim all, Dim *size)
{
    const OnnxList *l = on_has(n, 1) ? on_list(n, 1) : NULL;
    if (n->failed || (on_has(n, 1) && (!l || !l->dim)) || (l && l->n > MOST_ITEMS)) {
        if (!n->failed)
            onnx_unsupported(
                n,
                "splits a tensor into parts whose sizes are known only at run time, or into more "
                "than 4,096");
        return -1;
    }
    for (int i = 0; l && l->rank && i < l->n; i++)
        size[i] = l->dim[i];
    if (l && l->rank)
        return l->n;
    Dim each = l ? l->dim[0] : DIM(1);
    if (all.expr || each.expr || each.value < 1 || (all.value - 1) / each.value >= MOST_ITEMS) {
        onnx_unsupported(
            n, "splits an axis into a number of parts that is known only at run time, or above "
               "4,096: fix the sizes of the inputs with --dim");
        return -1;
    }
    int count = all.value ? (int)((all.value - 1) / each.value) + 1 : 0;
    for (int i = 0; i < count; i++)
        size[i] = i < count - 1 ? each : DIM(all.value - i * each.value);
    return count;
}

bool onnx_split_to_sequence(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    int axis;
    Dim at = DIM(0);
    if (!x || !on_axis(n, on_int(n, "axis", 0), x->type.rank, &axis))
        return false;
    Dim *size = NEW(n->in->tmp, Dim, MOST_ITEMS);
    OnnxValue *part = NEW(n->in->tmp, OnnxValue, MOST_ITEMS);
    OnnxValue **item = NEW(n->in->tmp, OnnxValue *, MOST_ITEMS);
    int count = part_sizes(n, x->type.dim[axis], size);
    bool keeps = on_has(n, 1) || on_int(n, "keepdims", 1);
    if (count < 0 || !onnx_spend(n->in, (size_t)count))
        return false;
    for (int i = 0; i < count; i++) {
        Dim end = dim_add(n->in->program, at, size[i]);
        part[i].value = keeps ? on_part(n, x, axis, at, end, 1)
                              : ON_BUILD(n, OP_SELECT_INT, "vii", x, (int64_t)axis, (int64_t)i);
        part[i].bits = on_bits(n, 0);
        item[i] = &part[i];
        at = end;
        if (!part[i].value)
            return false;
    }
    return give_items(n, item, count);
}

bool onnx_concat_from_sequence(OnnxNode *n)
{
    const OnnxSequence *s = sequence_at(n, 0);
    bool is_new = on_int(n, "new_axis", 0);
    int axis = 0;
    if (!s || !onnx_spend(n->in, (size_t)s->n))
        return false;
    if (!s->n)
        return onnx_unsupported(n, "joins a sequence without items, whose type is unknown");
    Value **part = NEW(n->in->tmp, Value *, s->n);
    for (int i = 0; i < s->n; i++) {
        part[i] = on_tensor(n, "item", s->item[i]);
        if (!part[i] ||
            !on_axis(n, on_int(n, "axis", 0), part[i]->type.rank + is_new, &axis))
            return false;
        part[i] = is_new ? on_insert(n, part[i], axis) : part[i];
    }
    return !n->failed && on_define(n, 0, on_join(n, s->n, part, axis));
}

/* -- optionals --------------------------------------------------------------------------------- */

bool onnx_optional(OnnxNode *n)
{
    OnnxValue *v = on_has(n, 0) ? on_input(n, 0) : NEW(n->in->tmp, OnnxValue, 1);
    if (v && !on_has(n, 0))
        v->is_none = true;
    return v && on_give(n, 0, v);
}

bool onnx_optional_has_element(OnnxNode *n)
{
    OnnxValue *v = on_has(n, 0) ? on_input(n, 0) : NULL;
    OnnxList *l = on_new_list(n, ETC_BOOL, 0, 1);
    l->dim[0] = DIM(v && !v->is_none);
    return !n->failed && on_define_list(n, 0, l);
}

bool onnx_optional_get_element(OnnxNode *n)
{
    OnnxValue *v = on_input(n, 0);
    if (v && v->is_none)
        return onnx_wrong(n, "takes what an empty optional holds");
    return v && on_give(n, 0, v);
}
