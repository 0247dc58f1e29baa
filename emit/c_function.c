/* c_function.c -- what the printers of operators share: the names in the scope of a function, its
 * parameters, the fields of geometry structs, and which elements a part of a split node reads. */
#include "emit/c_emit.h"
#include <string.h>

/* -- names ------------------------------------------------------------------------------------- */

void take_thread_names(const Emit *e, NameSet *names)
{
    static const char *const ours[] = {"threads", "threads_start", "threads_stop"};
    for (size_t i = 0; e->o->parallel && i < sizeof ours / sizeof *ours; i++)
        names_take(names, arena_printf(e->a, "%s_%s", e->file, ours[i]));
}

bool has_variants(const Emit *e)
{
    return e->target->has_variants && !e->o->freestanding;
}

bool is_variant(const Emit *e, const Target *t)
{
    return has_variants(e) && t->test && (!t->only_for_bytes || e->multiplies_bytes);
}

void take_names(const Emit *e, NameSet *names)
{
    static const char *const suffix[] = {"run", "init_state", "weights"};
    for (int i = 0; i < n_targets; i++)
        if (target_row[i].test && (!target_row[i].only_for_bytes || is_variant(e, &target_row[i])))
            names_take(names, arena_printf(e->a, "%s_run_%s", e->name, target_row[i].cores));
    for (size_t i = 0; i < sizeof suffix / sizeof *suffix; i++)
        names_take(names, arena_printf(e->a, "%s_%s", e->name, suffix[i]));
    take_thread_names(e, names);
    for (int i = 0; e->p->custom && i < e->p->custom->n; i++)
        if (e->p->custom->item[i]->function)
            names_take(names, e->p->custom->item[i]->function);
}

NameSet *c_scope(const Emit *e)
{
    NameSet *names = names_new(e->a);
    take_names(e, names);
    return names;
}

/* -- parts ------------------------------------------------------------------------------------- */

const CutValue *part_find(const Parts *p, const Value *v)
{
    for (int i = 0; p && i < p->n; i++)
        if (p->item[i].v == v)
            return &p->item[i];
    return NULL;
}

int part_axis(const Function *f, const Value *v)
{
    const CutValue *c = part_find(f->parts, v);
    return c ? c->axis : AXIS_WHOLE;
}

const Type *part_whole(const Function *f, const Value *v)
{
    const CutValue *c = part_find(f->parts, v);
    return c ? &c->whole : &v->type;
}

bool part_is_columns(const Function *f, const Value *y, Dim *row)
{
    const Type *t = part_whole(f, y);
    *row = t->rank > 0 ? t->dim[t->rank - 1] : DIM(1);
    return f->parts && part_axis(f, y) == t->rank - 1 && !f->parts->merged;
}

void put_first(Emit *e, Text *t, Dim stride)
{
    put(t, dim_is_one(stride) ? "first" : "(first * ");
    if (dim_is_one(stride))
        return;
    put_dim(e, t, stride);
    put(t, ")");
}

const char *moved_to_first(Function *f, const char *array, Dim stride)
{
    Text t = {.a = f->e->a};
    put(&t, "(%s + ", array);
    put_first(f->e, &t, stride);
    put(&t, ")");
    function_note(f, stride);
    return t.s;
}

const char *part_of_array(Function *f, const Value *v, const char *array, Dim stride)
{
    return part_axis(f, v) < 0 ? array : moved_to_first(f, array, stride);
}

const char *part_of_constant(Function *f, const Value *v, const char *array)
{
    const CutValue *c = part_find(f->parts, v);
    return c ? part_of_array(f, v, array, c->stride) : array;
}

/* -- parameters -------------------------------------------------------------------------------- */

static void note_symbol(const Symbol *s, void *ctx)
{
    ((bool *)ctx)[s->index] = true;
}

void function_note(Function *f, Dim d)
{
    dim_symbols(d, note_symbol, f->uses_symbol);
}

void function_dim(Function *f, Dim d)
{
    put_dim(f->e, &f->body, d);
    function_note(f, d);
}

const char *part_of_rows(Function *f, const Value *y, const char *all)
{
    if (part_axis(f, y) != 2)
        return all;
    function_note(f, y->type.dim[2]);
    return "first, rows";
}

const char *function_pointer(Function *f, const Value *v)
{
    if (value_is_fixed(v))
        return part_of_constant(f, v, constant_name(f->e, v->state));
    f->is_read[v->index] = true;
    return f->name_of[v->index];
}

bool function_refuse(Function *f, const Node *n, const char *what)
{
    return diag_unsupported(f->e->d, n->loc, "emit-c %s", what);
}

const char *offset_by(Function *f, const char *pointer, Dim d)
{
    Text t = {.a = f->e->a};
    if (!d.expr && !d.value)
        return pointer;
    put(&t, "%s + ", pointer);
    put_dim(f->e, &t, d);
    function_note(f, d);
    return t.s;
}

const Node *sole_reader(const Graph *g, const Value *v)
{
    const Node *reader = NULL;
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] == v) {
                if (reader)
                    return NULL;
                reader = n;
            }
    return reader;
}

Clamp join_clamp(Function *f, const Graph *body, const Value **v, bool *skip)
{
    Clamp c;
    const Node *next = sole_reader(body, *v);
    if (!next || !clamp_read(next, &c) || c.x != *v)
        return NO_CLAMP;
    skip[next->out[0]->index] = true;
    f->name_of[next->out[0]->index] = f->name_of[(*v)->index];
    *v = next->out[0];
    return c;
}

/* -- operands and geometry --------------------------------------------------------------------- */

Dim size_of(const Value *v, int i)
{
    const int axis = i < 0 ? v->type.rank + i : i;
    assert(axis >= 0 && axis < v->type.rank);
    return v->type.dim[axis];
}

bool check_tensors(Function *f, const Node *n, int from)
{
    for (int i = 0; i < n->n_in + 1; i++) {
        const Value *v = i < n->n_in ? n->in[i] : n->out[0];
        Type t = value_type(v), rest = t;
        if (v->type.dtype != ETC_F32)
            return function_refuse(f, n, "has C for float32 only");
        if (t.stride && t.rank >= from) {
            rest.rank -= from;
            rest.dim += from;
            rest.stride += from;
        }
        if (!c_type_is_dense(f->e, rest))
            return function_refuse(f, n, "expects a dense tensor here");
    }
    return true;
}

void put_field(Function *f, Dim d, bool is_last)
{
    function_dim(f, d);
    put(&f->body, is_last ? "" : ", ");
}

void put_fields(Function *f, const Dim *d, int n)
{
    for (int i = 0; i < n; i++)
        put_field(f, d[i], false);
}

void put_first_field(Function *f, Dim rows)
{
    enum { FEW_ROWS = 2 }; /* copies of kernels for more rows are larger than what they drop */
    const char *machine = f->e->target->machine;
    const bool is_small = f->e->target->mcu || (machine && !strcmp(machine, "aarch64"));
    const bool is_stored = is_small && !rows.expr && rows.value <= FEW_ROWS;
    put(&f->body, is_stored ? "etc_stored(" : "");
    function_dim(f, rows);
    put(&f->body, is_stored ? "), " : ", ");
}

const char *array_or_null(Function *f, const Value *v)
{
    return v ? function_pointer(f, v) : "NULL";
}

void put_clamp(Function *f, Clamp clamp)
{
    put_float(&f->body, (float)clamp.lo);
    put(&f->body, ", ");
    put_float(&f->body, (float)clamp.hi);
}

int small_int(const Node *n, const char *name)
{
    int64_t v = 0;
    arg_int(n, name, &v);
    return (int)v;
}
