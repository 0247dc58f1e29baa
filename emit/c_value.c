/* c_value.c -- prints sizes and addresses of values as C. */
#include "emit/c_emit.h"
#include "ir/session.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

Type value_type(const Value *v)
{
    Type t = v->type;
    if (value_is_fixed(v))
        t.stride = NULL;
    return t;
}

/* -- sizes --------------------------------------------------------------------------------- */

/* Prints the IR's text of an expression as C: symbols get their C names, and functions a prefix. */
static void put_expression(Emit *e, Text *t, const char *s)
{
    static const char least[] = "-9223372036854775808"; /* C has no such literal */
    const char *start = s;
    while (*s) {
        size_t word = strcspn(s, "%fm");
        const char *at = strstr(s, least);
        if (at && at < s + word) {
            put_n(t, s, (size_t)(at - s));
            put(t, at == start || strchr("(,", at[-1]) ? "" : "+");
            put_int(t, INT64_MIN);
            s = at + strlen(least);
            continue;
        }
        put_n(t, s, word);
        s += word;
        if (*s == '%') {
            size_t len = strcspn(++s, "+-*,()");
            for (int i = 0; i < e->p->n_syms; i++)
                if (strlen(e->p->sym[i]->name) == len && !memcmp(e->p->sym[i]->name, s, len))
                    put(t, "%s", e->symbol[i]);
            if (e->rows && strlen(e->rows->name) == len && !memcmp(e->rows->name, s, len))
                put(t, "%s", e->rows_name);
            s += len;
        } else if (*s) {
            size_t len = strcspn(s, "(");
            bool is_bound = len == 3 && s[1] != 'o'; /* max and min of core.h */
            put(t, "etc_%.*s%s", (int)len, s, is_bound ? "_i64" : "");
            s += len;
        }
    }
}

void put_dim(Emit *e, Text *t, Dim d)
{
    char *s = NULL;
    size_t n = 0;
    if (!d.expr) {
        put_int(t, d.value);
        return;
    }
    FILE *f = open_memstream(&s, &n);
    dim_print(d, f);
    fclose(f);
    bool is_name = n && s[0] == '%' && !strpbrk(s, "+-*(");
    put(t, is_name ? "" : "(");
    put_expression(e, t, s);
    put(t, is_name ? "" : ")");
    free(s);
}

Dim c_dims_product(Emit *e, const Dim *d, int n)
{
    Dim all = DIM(1);
    for (int i = 0; i < n; i++)
        all = dim_mul(e->method->program, all, d[i]);
    return all;
}

void type_strides(Emit *e, Type t, Dim *stride)
{
    Dim next = DIM(1);
    assert(t.rank <= MAX_RANK);
    for (int i = t.rank - 1; i >= 0; i--) {
        stride[i] = t.stride ? t.stride[i] : next;
        next = dim_mul(e->method->program, next, t.dim[i]);
    }
}

bool c_type_is_dense(Emit *e, Type t)
{
    Dim next = DIM(1);
    for (int i = t.rank - 1; t.stride && i >= 0; i--) {
        if (!dim_is_one(t.dim[i]) && !dim_equal(t.stride[i], next))
            return false;
        next = dim_mul(e->method->program, next, t.dim[i]);
    }
    return true;
}

bool dtype_has_c(EtcDtype t)
{
    return t == ETC_F32 || t == ETC_F64 || t == ETC_BOOL || (dtype_is_int(t) && t != ETC_U64);
}

/* -- addresses ----------------------------------------------------------------------------- */

bool place_is_alias(const Value *v, const Value *of, int64_t offset)
{
    if (v->place.pool == POOL_NONE || v->place.pool != of->place.pool)
        return false;
    if (value_is_fixed(v)) /* its bytes are in an array, even if it has the place of a result */
        return false;
    if (v->place.pool == POOL_IN || v->place.pool == POOL_OUT)
        return !offset && v->place.offset == of->place.offset;
    return v->place.offset == of->place.offset + offset;
}

Memory *memory_of(const Emit *e, Place at)
{
    assert(at.pool > POOL_NONE && at.pool <= e->method->n_pools);
    return &e->memory[e->p->session->ram.n > 0 ? at.pool - 1 : 0];
}

int64_t memory_offset(const Emit *e, Place at)
{
    assert(at.pool > POOL_NONE && at.pool <= e->method->n_pools);
    return e->pool_base[at.pool] + at.offset;
}

/* Returns whether two states are one array, as tied weights are: they have the same bytes, dtype
 * and number of elements, and no strides. */
static bool same_array(const State *a, const State *b)
{
    return a->data && a->data == b->data && a->type.dtype == b->type.dtype &&
           type_numel(a->type) == type_numel(b->type) && !a->type.stride && !b->type.stride;
}

const char *constant_name(Emit *e, const State *s)
{
    assert(s->storage < e->p->n_storages && s->index < e->p->n_states);
    const char *wish = s->fqn && *s->fqn ? s->fqn : s->name;
    const State **first = &e->of_storage[s->storage];
    int64_t *reads = &e->reads[*first ? (*first)->index : s->index];
    *reads = e->macs > *reads ? e->macs : *reads;
    if (e->constant[s->index])
        return e->constant[s->index];
    if (*first && same_array(*first, s))
        return e->constant[s->index] = e->constant[(*first)->index];
    *first = *first ? *first : s;
    e->flash += type_bytes(s->type);
    return e->constant[s->index] = names_make(e->names, "w_", wish);
}

bool state_is_array(const Emit *e, const State *s)
{
    const State *first = e->of_storage[s->storage];
    return e->constant[s->index] && (first == s || !first || !same_array(first, s));
}

bool is_of_method(const Emit *e, const Value *v)
{
    const Value *same = v->index < e->method->n_values ? e->value[v->index] : NULL;
    return same && same->name == v->name; /* a copy of v may have another place */
}

/* Returns the variable of NAME_run for a value in the arena or among the states.  The first call
 * declares it. */
static const char *local_name(Emit *e, const Value *v, const char *address)
{
    const char *type = c_type(v->type.dtype);
    if (!e->local[v->index]) {
        e->local[v->index] = names_make(e->run_names, "", v->name);
        put(&e->locals, "    %s *const %s = (%s *)(void *)%s;\n", type, e->local[v->index], type,
            address);
    }
    return e->local[v->index];
}

static void put_planned(Emit *e, Text *t, const Value *v)
{
    Memory *m = v->place.pool == POOL_STATE ? NULL : memory_of(e, v->place);
    const char *base = m ? m->base : "kept", *address = base;
    int64_t at = m ? memory_offset(e, v->place) : v->place.offset;
    e->uses_kept = e->uses_kept || !m;
    if (m)
        m->is_used = true;
    if (at)
        address = arena_printf(e->a, "(%s + %" PRId64 ")", base, at);
    if (is_of_method(e, v))
        put(t, "%s", local_name(e, v, address));
    else
        put(t, "(%s *)(void *)%s", c_type(v->type.dtype), address);
}

/* Prints the place of a result.  An intermediate value of another dtype may lie there before it. */
static void put_result(Emit *e, Text *t, const Value *v)
{
    const int at = (int)v->place.offset;
    if (v->type.dtype != e->method->out[at]->type.dtype)
        put(t, "(%s *)(void *)", c_type(v->type.dtype));
    put(t, "%s", e->out_name[at]);
}

void put_pointer(Emit *e, Text *t, const Value *v)
{
    int pool = v->place.pool;
    if (value_is_fixed(v))
        put(t, "%s", constant_name(e, v->state));
    else if (pool == POOL_IN)
        put(t, "%s", e->in_name[v->place.offset]);
    else if (pool == POOL_OUT)
        put_result(e, t, v);
    else
        put_planned(e, t, v);
}

/* -- numbers ----------------------------------------------------------------------------------- */

static bool put_constant(Emit *e, Text *t, const Arg *a)
{
    if (a->kind == ARG_INT)
        put_dim(e, t, a->dim);
    else if (a->kind == ARG_FLOAT)
        put_double(t, a->f);
    else
        put(t, "%d", a->kind == ARG_BOOL && a->b);
    return true;
}

bool put_scalar_of(Emit *e, Text *t, const Value *v)
{
    const Node *n = v->def;
    if (n && n->op == OP_CONSTANT && arg_get(n, "value").kind != ARG_VALUE)
        return put_constant(e, t, &n->arg[arg_of(n, "value")]);
    bool is_item = n && n->op == OP_LOCAL_SCALAR_DENSE &&
                   dtype_has_c(arg_value(n, "self")->type.dtype);
    if (!is_item)
        return diag_unsupported(e->d, n ? n->loc : (Loc){.file = e->p->name},
                                "emit-c has no C for this number");
    put(t, "(%s)*(", c_type(v->type.dtype));
    put_pointer(e, t, arg_value(n, "self"));
    put(t, ")");
    return true;
}
