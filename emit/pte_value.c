/* pte_value.c -- makes EValues: literals, tensors, lists, and the arguments of nodes.
 *
 * Equal literals share one EValue, because nothing writes them.  The EValues that prim ops write
 * are made separately, by value_define.  A list comes after its elements, which the runtime
 * requires for lists of tensors. */
#include "emit/pte_internal.h"

FlatRef pte_end(PteFile *e)
{
    e->n_tables++;
    return flat_end(e->flat);
}

/* Returns the entry of a vector with these bytes and this item size, or of a string, whose item
 * size is 0.  Its number is the place in the file; 0: it is not there yet. */
static TableItem *shared(PteFile *e, size_t item_size, const void *bytes, size_t n)
{
    assert(item_size < sizeof e->shared / sizeof *e->shared);
    Table *known = &e->shared[item_size];
    known->arena = e->arena;
    return table_at_copy(known, bytes, n);
}

FlatRef shared_vector(PteFile *e, const void *items, size_t n, size_t item_size)
{
    TableItem *ref = shared(e, item_size, n ? items : "", n * item_size);
    if (!ref->number)
        ref->number = flat_vector(e->flat, items, n, item_size);
    return (FlatRef)ref->number;
}

FlatRef shared_string(PteFile *e, const char *s)
{
    TableItem *ref = shared(e, 0, s, strlen(s));
    if (!ref->number)
        ref->number = flat_string(e->flat, s);
    return (FlatRef)ref->number;
}

/* -- literals ---------------------------------------------------------------------------- */

static int push_value(Plan *p, ValueType type, FlatRef table)
{
    flat_begin(p->file->flat, N_EVALUE_SLOTS);
    flat_u8(p->file->flat, EVALUE_TYPE, (uint8_t)type);
    flat_ref(p->file->flat, EVALUE_VALUE, table);
    FlatRef value = pte_end(p->file);
    PUSH(p->file->arena, p->value, p->n_values, value);
    return p->n_values - 1;
}

/* Makes a number, string or list: a value whose table has one field, which is `bits` or `ref`. */
static int scalar_value(Plan *p, ValueType type, uint64_t bits, FlatRef ref)
{
    Flat *f = p->file->flat;
    flat_begin(f, N_INT_SLOTS);
    if (type == VALUE_BOOL)
        flat_u8(f, BOOL_VALUE, (uint8_t)bits);
    else if (ref)
        flat_ref(f, INT_LIST_ITEMS, ref);
    else
        flat_u64(f, INT_VALUE, bits);
    return push_value(p, type, pte_end(p->file));
}

/* Returns the entry of a literal.  Its number is its EValue + 1; 0: there is none yet. */
static TableItem *known_literal(Plan *p, ValueType type, uint64_t bits)
{
    uint64_t key[2] = {type, bits};
    p->literals.arena = p->file->arena;
    return table_at_copy(&p->literals, key, sizeof key);
}

static int literal(Plan *p, ValueType type, uint64_t bits)
{
    TableItem *known = known_literal(p, type, bits);
    if (!known->number)
        known->number = scalar_value(p, type, bits, 0) + 1;
    return (int)known->number - 1;
}

int literal_null(Plan *p)
{
    return literal(p, VALUE_NULL, 0);
}

int literal_bool(Plan *p, bool v)
{
    return literal(p, VALUE_BOOL, v);
}

static int literal_int(Plan *p, int64_t v)
{
    return literal(p, VALUE_INT, (uint64_t)v);
}

static int literal_double(Plan *p, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return literal(p, VALUE_DOUBLE, bits);
}

/* Returns the literal whose field is a vector or string.  The file stores equal ones once, so its
 * place identifies it. */
static int literal_ref(Plan *p, ValueType type, FlatRef ref)
{
    TableItem *known = known_literal(p, type, ref);
    if (!known->number)
        known->number = scalar_value(p, type, 0, ref) + 1;
    return (int)known->number - 1;
}

int literal_text(Plan *p, const char *s)
{
    return literal_ref(p, VALUE_STRING, shared_string(p->file, s));
}

int literal_value(Plan *p, const Arg *a)
{
    switch (a->kind) {
    case ARG_INT:
        return literal_int(p, a->dim.value);
    case ARG_BOOL:
        return literal_bool(p, a->b);
    case ARG_FLOAT:
        return literal_double(p, a->f);
    case ARG_STRING:
        return literal_text(p, a->str);
    default:
        return literal_null(p);
    }
}

int number_scratch(Plan *p, EtcDtype t)
{
    return scalar_value(p, t == ETC_F64 ? VALUE_DOUBLE : t == ETC_BOOL ? VALUE_BOOL : VALUE_INT, 0, 0);
}

int tensor_list(Plan *p, const int *item, int n)
{
    FlatRef items = shared_vector(p->file, item, (size_t)n, 4);
    return scalar_value(p, VALUE_TENSOR_LIST, 0, items);
}

/* -- tensors ----------------------------------------------------------------------------- */

static int fault(PteFile *e, Loc loc, const char *what, const char *name)
{
    e->failed = true;
    diag_fault(e->diag, FAULT_BUG, loc, "%%%s %s", name, what);
    return 0;
}

static bool is_contiguous(Type t)
{
    int64_t want = 1;
    for (int i = t.rank; t.stride && i-- > 0;) {
        if (t.dim[i].expr || t.stride[i].expr)
            return false;
        if (t.dim[i].value != 1 && t.stride[i].value != want)
            return false;
        if (!mul_ok(want, t.dim[i].value, &want))
            return false;
    }
    return true;
}

/* Computes the upper bounds of sizes, which a .pte stores.  Returns false if there are none, or the
 * tensor has strides, which is reported. */
static bool upper_sizes(PteFile *e, Type t, int32_t size[MAX_RANK], Loc loc)
{
    assert(t.rank >= 0 && t.rank <= MAX_RANK);
    for (int i = 0; i < t.rank; i++) {
        int64_t upper = dim_upper(t.dim[i]);
        if (upper == INT64_MAX)
            return diag_unsupported(e->diag, loc, "dimension %d of %%%s has no upper bound", i,
                                    loc.node);
        if (upper < 0 || upper > INT32_MAX)
            return diag_unsupported(e->diag, loc, "dimension %d of %%%s does not fit 31 bits", i,
                                    loc.node);
        size[i] = (int32_t)upper;
    }
    return is_contiguous(t) ||
           diag_unsupported(e->diag, loc, "%%%s has strides, which no kernel of a .pte takes",
                            loc.node);
}

static bool place_is_sound(const Plan *p, Type t, Place at, Loc loc)
{
    int64_t end;
    if (at.pool <= 0)
        return true;
    if (at.pool > p->graph->n_pools || at.offset < 0 || !add_ok(at.offset, type_bytes(t), &end) ||
        end > p->graph->pool[at.pool - 1])
        return diag_error(p->file->diag, loc, "%%%s lies outside the planned pools", loc.node);
    return true;
}

static FlatRef allocation(PteFile *e, Place at)
{
    if (at.pool <= 0)
        return 0;
    flat_begin(e->flat, N_ALLOCATION_SLOTS);
    flat_u32(e->flat, ALLOCATION_POOL, (uint32_t)at.pool);
    flat_u32(e->flat, ALLOCATION_OFFSET_LOW, (uint32_t)at.offset);
    flat_u32(e->flat, ALLOCATION_OFFSET_HIGH, (uint32_t)(at.offset >> 32));
    return pte_end(e);
}

int tensor_value(Plan *p, Type t, Place at, uint32_t buffer, Loc loc)
{
    static const uint8_t identity[MAX_RANK] = {0, 1, 2,  3,  4,  5,  6,  7,
                                               8, 9, 10, 11, 12, 13, 14, 15};
    PteFile *e = p->file;
    int32_t size[MAX_RANK];
    if (!upper_sizes(e, t, size, loc) || !place_is_sound(p, t, at, loc)) {
        e->failed = true;
        return 0;
    }
    FlatRef sizes = shared_vector(e, size, (size_t)t.rank, 4);
    FlatRef order = shared_vector(e, identity, (size_t)t.rank, 1), memory = allocation(e, at);
    flat_begin(e->flat, N_TENSOR_SLOTS);
    flat_u8(e->flat, TENSOR_DTYPE, (uint8_t)t.dtype);
    flat_ref(e->flat, TENSOR_SIZES, sizes);
    flat_ref(e->flat, TENSOR_ORDER, order);
    flat_u32(e->flat, TENSOR_DATA, buffer);
    flat_ref(e->flat, TENSOR_ALLOCATION, memory);
    flat_u8(e->flat, TENSOR_DYNAMISM, !type_is_static(t)); /* STATIC or DYNAMIC_BOUND */
    return push_value(p, VALUE_TENSOR, pte_end(e));
}

/* -- values of a graph ------------------------------------------------------------------- */

Scope scope_new(Plan *p, const Graph *g)
{
    Arena *a = p->file->arena;
    size_t n = (size_t)g->n_values + 1;
    Scope s = {.plan = p, .graph = g, .value = NEW(a, int, n), .buffer = NEW(a, uint32_t, n)};
    s.root = NEW(a, const Value *, n);
    return s;
}

static bool is_zero(const uint8_t *data, int64_t n)
{
    assert(n > 0);
    return !data[0] && !memcmp(data, data + 1, (size_t)n - 1);
}

static bool state_is_sound(PteFile *e, const State *st, int64_t n)
{
    Loc loc = {.file = e->program->name, .node = st->name};
    if (st->kind == ST_BLOB)
        return fault(e, loc, "is a delegate's blob where a kernel expects a tensor", st->name);
    if (st->kind == ST_MUTABLE && st->place.pool <= 0)
        return fault(e, loc, "is mutable and has no place", st->name);
    return n == 0 || pte_has_bytes(e, st, n);
}

/* Makes the tensor of a state: a constant, or memory of the plan, which has an initial value unless
 * that is zero. */
static int state_value(Plan *p, const State *st)
{
    PteFile *e = p->file;
    bool is_mutable = st->kind == ST_MUTABLE;
    int64_t n = type_bytes(st->type);
    uint32_t buffer = 0;
    assert(st->id < e->program->n_ids);
    if (!state_is_sound(e, st, n))
        return 0;
    if (n && !(is_mutable && is_zero(st->data, n)))
        buffer = 1 + (uint32_t)store_add(is_mutable ? &e->mutables : &e->constants, e->arena,
                                        st->data, n);
    if (!is_mutable)
        p->state_buffer[st->id] = buffer;
    Loc loc = {.file = e->program->name, .node = st->name};
    return tensor_value(p, st->type, is_mutable ? st->place : (Place){0}, buffer, loc);
}

int value_define(Scope *s, const Value *v)
{
    assert(v->index < s->graph->n_values);
    int *known = &s->value[v->index];
    if (*known)
        return *known - 1;
    Loc loc = {.file = s->plan->file->program->name, .node = v->name};
    int value;
    if (v->literal)
        value = literal_value(s->plan, v->literal);
    else if (v->type.is_none)
        value = literal_null(s->plan);
    else if (v->type.rank == SCALAR)
        value = number_scratch(s->plan, v->type.dtype);
    else
        value = tensor_value(s->plan, v->type, v->place, s->buffer[v->index], loc);
    *known = value + 1;
    if (!s->root[v->index])
        s->root[v->index] = v;
    return value;
}

int value_of(Scope *s, const Value *v)
{
    assert(v->index < s->graph->n_values);
    PteFile *e = s->plan->file;
    if (s->value[v->index])
        return s->value[v->index] - 1;
    if (!v->state)
        return fault(e, (Loc){.file = e->program->name}, "is read before it is written", v->name);
    int *known = &s->plan->state_value[v->state->id];
    if (!*known)
        *known = state_value(s->plan, v->state) + 1;
    s->root[v->index] = v;
    s->buffer[v->index] = s->plan->state_buffer[v->state->id];
    s->value[v->index] = *known;
    return *known - 1;
}

/* -- arguments --------------------------------------------------------------------------- */

static int bad_argument(Scope *s, const Node *n, const SchemaArg *want, const char *what)
{
    s->plan->file->failed = true;
    diag_fault(s->plan->file->diag, FAULT_BUG, n->loc, "argument '%s': %s", want->text, what);
    return 0;
}

/* Returns the value for an argument that must be a number.  The value must be a number that a
 * prim op wrote, of exactly this type. */
static int number_operand(Scope *s, const Node *n, const SchemaArg *want, const Value *v)
{
    EtcDtype t = want->type == SCH_FLOAT ? ETC_F64 : want->type == SCH_BOOL ? ETC_BOOL : ETC_I64;
    if (v->type.is_none || v->type.rank != SCALAR ||
        (v->type.dtype != t && want->type != SCH_SCALAR))
        return bad_argument(s, n, want, "the value is not a number of this type");
    return value_of(s, v);
}

static int number(Scope *s, const Node *n, const SchemaArg *want, const Arg *a)
{
    Plan *p = s->plan;
    if (a->kind == ARG_VALUE)
        return number_operand(s, n, want, n->in[a->slot]);
    if (a->kind == ARG_INT && a->dim.expr)
        return bad_argument(s, n, want, "a size that no prim op computes");
    double f = a->kind == ARG_FLOAT ? a->f : a->kind == ARG_INT ? (double)a->dim.value : a->b;
    if (want->type == SCH_FLOAT || a->kind == ARG_FLOAT)
        return literal_double(p, f);
    if (want->type == SCH_BOOL || (want->type == SCH_SCALAR && a->kind == ARG_BOOL))
        return literal_bool(p, a->b);
    return literal_int(p, a->kind == ARG_BOOL ? a->b : a->dim.value);
}

static int tensor(Scope *s, const Node *n, const SchemaArg *want, const Arg *a)
{
    if (a->kind != ARG_VALUE)
        return bad_argument(s, n, want, "a number where the kernel takes a tensor only");
    const Value *v = n->in[a->slot];
    if (v->type.is_none)
        return want->is_optional ? value_of(s, v)
                                 : bad_argument(s, n, want, "nothing where a tensor must be");
    if (v->type.rank == SCALAR)
        return bad_argument(s, n, want, "a number where the kernel takes a tensor only");
    return value_of(s, v);
}

static int tensors(Scope *s, const Node *n, const SchemaArg *want, const Arg *list)
{
    Plan *p = s->plan;
    int count = list->list.n;
    int32_t *item = NEW(p->file->arena, int32_t, count + 1);
    for (int i = 0; i < count; i++)
        item[i] = list->list.item[i].kind == ARG_NONE ? -1
                                                      : tensor(s, n, want, &list->list.item[i]);
    if (!want->is_item_optional)
        return tensor_list(p, item, count);
    return literal_ref(p, VALUE_OPT_TENSOR_LIST, shared_vector(p->file, item, (size_t)count, 4));
}

/* Makes an int list.  Its elements are EValues, so that prim ops may write them. */
static int ints(Scope *s, const Node *n, const SchemaArg *want, const Arg *list)
{
    PteFile *e = s->plan->file;
    int64_t *item = NEW(e->arena, int64_t, list->list.n + 1);
    for (int i = 0; i < list->list.n; i++)
        item[i] = number(s, n, want, &list->list.item[i]);
    return literal_ref(s->plan, VALUE_INT_LIST, shared_vector(e, item, (size_t)list->list.n, 8));
}

static int doubles(Scope *s, const Node *n, const SchemaArg *want, const Arg *list)
{
    PteFile *e = s->plan->file;
    uint64_t *item = NEW(e->arena, uint64_t, list->list.n + 1);
    for (int i = 0; i < list->list.n; i++) {
        const Arg *a = &list->list.item[i];
        if (a->kind != ARG_FLOAT && (a->kind != ARG_INT || a->dim.expr))
            return bad_argument(s, n, want, "an item is not a plain number");
        double f = a->kind == ARG_FLOAT ? a->f : (double)a->dim.value;
        memcpy(&item[i], &f, sizeof f);
    }
    return literal_ref(s->plan, VALUE_DOUBLE_LIST, shared_vector(e, item, (size_t)list->list.n, 8));
}

static int bools(Scope *s, const Node *n, const SchemaArg *want, const Arg *list)
{
    PteFile *e = s->plan->file;
    uint8_t *item = NEW(e->arena, uint8_t, list->list.n + 1);
    for (int i = 0; i < list->list.n; i++) {
        if (list->list.item[i].kind != ARG_BOOL)
            return bad_argument(s, n, want, "an item is not a plain bool");
        item[i] = list->list.item[i].b;
    }
    return literal_ref(s->plan, VALUE_BOOL_LIST, shared_vector(e, item, (size_t)list->list.n, 1));
}

static int list_value(Scope *s, const Node *n, const SchemaArg *want, const Arg *a)
{
    switch (want->type) {
    case SCH_TENSOR:
        return tensors(s, n, want, a);
    case SCH_INT:
        return ints(s, n, want, a);
    case SCH_FLOAT:
        return doubles(s, n, want, a);
    case SCH_BOOL:
        return bools(s, n, want, a);
    default:
        return bad_argument(s, n, want, "a list of this kind has no form in a .pte");
    }
}

/* Returns a layout or memory format, which is stored as a number.  Kernels know only the plain
 * ones. */
static int format(Scope *s, const Node *n, const SchemaArg *want, const Arg *a)
{
    static const struct {
        const char *name;
        int number;
    } row[] = {{"strided", 0}, {"contiguous_format", 0}, {"preserve_format", 1}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (a->kind == ARG_STRING && !strcmp(a->str, row[i].name))
            return literal_int(s->plan, row[i].number);
    s->plan->file->failed = true;
    diag_unsupported(s->plan->file->diag, n->loc, "no kernel of a .pte takes %s '%s'", want->name,
                     a->kind == ARG_STRING ? a->str : "");
    return 0;
}

int argument_value(Scope *s, const Node *n, int i)
{
    assert(i >= 0 && i < n->n_args);
    const SchemaArg *want = &node_schema(n)->arg[i];
    const Arg *a = &n->arg[i];
    if (a->kind == ARG_NONE)
        return literal_null(s->plan);
    if (a->kind == ARG_LIST)
        return list_value(s, n, want, a);
    switch (want->type) {
    case SCH_TENSOR:
        return tensor(s, n, want, a);
    case SCH_SCALAR:
    case SCH_INT:
    case SCH_FLOAT:
    case SCH_BOOL:
        return number(s, n, want, a);
    case SCH_DTYPE:
        return literal_int(s->plan, (int64_t)a->dtype);
    case SCH_STR:
        return literal_text(s->plan, a->str);
    default:
        return format(s, n, want, a);
    }
}
