/* c_value.c -- sizes and addresses of values, as C. */
#include "emit/c_emit.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool value_is_constant(const Value *v)
{
    return v->state && v->state->kind != ST_MUTABLE;
}

Type value_type(const Value *v)
{
    Type t = v->type;
    if (value_is_constant(v))
        t.stride = NULL;
    return t;
}

/* -- sizes --------------------------------------------------------------------------------- */

/* The IR's text of an expression is C once symbols have their C names and functions a prefix. */
static void put_expression(Emit *e, Text *t, const char *s)
{
    while (*s) {
        size_t word = strcspn(s, "%fm");
        put_n(t, s, word);
        s += word;
        if (*s == '%') {
            size_t len = strcspn(++s, "+-*,()");
            for (int i = 0; i < e->p->n_syms; i++)
                if (strlen(e->p->sym[i]->name) == len && !memcmp(e->p->sym[i]->name, s, len))
                    put(t, "%s", e->symbol[i]);
            s += len;
        } else if (*s) {
            size_t len = strcspn(s, "(");
            bool is_bound = len == 3 && s[1] != 'o'; /* max, min of core.h */
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
    for (int i = t.rank - 1; i >= 0; i--) {
        stride[i] = t.stride ? t.stride[i] : next;
        next = dim_mul(e->method->program, next, t.dim[i]);
    }
}

static bool is_one(Dim d)
{
    return !d.expr && d.value == 1;
}

bool c_type_is_dense(Emit *e, Type t)
{
    Dim next = DIM(1);
    for (int i = t.rank - 1; t.stride && i >= 0; i--) {
        if (!is_one(t.dim[i]) && !dim_equal(t.stride[i], next))
            return false;
        next = dim_mul(e->method->program, next, t.dim[i]);
    }
    return true;
}

/* -- addresses ----------------------------------------------------------------------------- */

bool place_is_alias(Emit *e, const Value *v, const Value *of, int64_t offset)
{
    (void)e;
    if (v->place.pool == POOL_NONE || v->place.pool != of->place.pool)
        return false;
    if (v->place.pool == POOL_IN || v->place.pool == POOL_OUT)
        return !offset && v->place.offset == of->place.offset;
    return v->place.offset == of->place.offset + offset;
}

const char *constant_name(Emit *e, const Value *v)
{
    const State *s = v->state;
    const char *wish = s->fqn && *s->fqn ? s->fqn : s->name;
    if (!e->constant[s->index])
        e->constant[s->index] = names_make(e->names, "w_", wish);
    return e->constant[s->index];
}

void put_pointer(Emit *e, Text *t, const Value *v)
{
    int pool = v->place.pool;
    if (value_is_constant(v))
        put(t, "%s", constant_name(e, v));
    else if (pool == POOL_IN)
        put(t, "%s", e->in_name[v->place.offset]);
    else if (pool == POOL_OUT)
        put(t, "%s", e->out_name[v->place.offset]);
    else if (pool == POOL_STATE)
        put(t, "(%s *)(s + %" PRId64 ")", c_type(v->type.dtype), v->place.offset);
    else
        put(t, "(%s *)(a + %" PRId64 ")", c_type(v->type.dtype),
            e->pool_base[pool] + v->place.offset);
}
