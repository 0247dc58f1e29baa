/* c_memory.c -- lays out the memory that NAME_run is given: the arena, or banks.
 *
 * Without banks there is one memory, the arena, which holds the pools one after the other.  With
 * banks each bank holds its pool.  Scratch goes into the first memory that has room.  The
 * scratch of one node takes a place without live values; other scratch follows everything else. */
#include "emit/c_emit.h"
#include "ir/session.h"
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { POOL_ALIGN = 64 };

static bool has_banks(const Emit *e)
{
    return e->p->session->ram.n > 0;
}

const char *memory_address(const Emit *e, const Memory *m, int64_t at)
{
    return arena_printf(e->a, "(uint8_t *)%s + %" PRId64, m->name, at);
}

/* -- layout ------------------------------------------------------------------------------------ */

static void lay_out_arena(Emit *e)
{
    const Graph *g = e->method;
    Memory *m = e->memory;
    *m = (Memory){.name = "arena", .upper = "ARENA", .base = "pool", .size = INT64_MAX};
    for (int i = 0; i < g->n_pools; i++) {
        e->pool_base[i + 1] = m->bytes;
        m->bytes = round_up(m->bytes + g->pool[i], POOL_ALIGN);
    }
    m->values = m->bytes;
}

static void lay_out_bank(Emit *e, int i)
{
    const MemoryBank *b = &e->p->session->ram.item[i];
    const int64_t bytes = i < e->method->n_pools ? e->method->pool[i] : 0;
    e->memory[i] = (Memory){.name = b->name, .upper = c_upper(e->a, b->name), .size = b->bytes,
                            .base = arena_printf(e->a, "pool_%s", b->name), .values = bytes,
                            .bytes = bytes};
}

/* Returns whether all bytes of a state's initial value are 0.  Bytes between elements count too: if
 * only they are not 0, an array is written that is not necessary. */
static bool is_zero(const State *s)
{
    for (int64_t i = 0; s->data && i < s->n_bytes; i++)
        if (s->data[i])
            return false;
    return true;
}

/* Sums up the bytes of mutable states.  The initial value of a mutable state is a constant too,
 * unless it is 0. */
static void lay_out_states(Emit *e)
{
    for (int i = 0; i < e->p->n_states; i++) {
        const State *s = e->p->state[i];
        int64_t end = s->place.offset + type_bytes(s->type);
        if (s->kind != ST_MUTABLE || s->place.pool != POOL_STATE)
            continue;
        e->state_bytes = end > e->state_bytes ? round_up(end, POOL_ALIGN) : e->state_bytes;
        if (!is_zero(s))
            constant_name(e, s);
    }
}

void memory_lay_out(Emit *e)
{
    assert(!e->memory && !e->state_bytes);
    e->n_memories = has_banks(e) ? e->p->session->ram.n : 1;
    e->memory = NEW(e->a, Memory, e->n_memories);
    e->pool_base = NEW(e->a, int64_t, e->method->n_pools + 1);
    if (!has_banks(e))
        lay_out_arena(e);
    for (int i = 0; has_banks(e) && i < e->n_memories; i++)
        lay_out_bank(e, i);
    lay_out_states(e);
}

/* -- scratch ----------------------------------------------------------------------------------- */

/* Computes the live range of each value: the nodes of the method between which the plan keeps
 * it. */
void emit_lifetimes(Emit *e)
{
    const Graph *g = e->method;
    e->born = NEW(e->a, int, g->n_values + 1);
    e->dies = NEW(e->a, int, g->n_values + 1);
    int now = 0;
    for (int i = 0; i < g->n_values; i++)
        e->dies[i] = -1;
    for (const Node *n = g->first; n; n = n->next, now++) {
        for (int i = 0; i < n->n_in; i++)
            e->dies[n->in[i]->index] = now;
        for (int i = 0; i < n->n_out; i++) {
            e->born[n->out[i]->index] = now;
            e->dies[n->out[i]->index] = now;
        }
    }
    for (int i = 0; i < g->n_out; i++)
        e->dies[g->out[i]->index] = now;
    for (int i = 0; i < g->n_updates; i++)
        e->dies[g->update[i].value->index] = now;
}

static bool lies_in(const Emit *e, const Value *v, const Memory *m)
{
    return v && v->place.pool > POOL_NONE && v->place.pool <= e->method->n_pools &&
           memory_of(e, v->place) == m;
}

/* Returns the first aligned byte after a value that is live at the current node and overlaps
 * [at, at + bytes); `at` if there is none. */
static int64_t after_live(const Emit *e, const Memory *m, int64_t at, int64_t bytes)
{
    for (int i = 0; i < e->method->n_values; i++) {
        const Value *v = e->value[i];
        if (!lies_in(e, v, m) || e->born[i] > e->now || e->dies[i] < e->now)
            continue;
        int64_t from = memory_offset(e, v->place), end = from + type_bytes(v->type);
        if (from < at + bytes && end > at)
            return round_up(end, WORK_ALIGN);
    }
    return at;
}

/* Returns whether v has bytes of another one of n values: a result may lie where its operand lies. */
static bool lies_in_other(const Value *v, const Value *const *other, int n)
{
    const Place at = v->place;
    for (int i = 0; i < n; i++) {
        const Place of = other[i]->place;
        if (of.pool == at.pool && of.offset <= at.offset &&
            at.offset + type_bytes(v->type) <= of.offset + type_bytes(other[i]->type))
            return true;
    }
    return false;
}

int64_t live_bytes(const Emit *e)
{
    enum { MOST = 64 };
    const Value *live[MOST];
    int64_t sum = 0;
    int n = 0;
    for (int i = 0; i < e->method->n_values; i++) {
        const Value *v = e->value[i];
        bool is_root = v && v->place.pool > POOL_NONE && v->place.pool <= e->method->n_pools;
        if (!is_root || e->born[i] > e->now || e->dies[i] < e->now || lies_in_other(v, live, n))
            continue;
        sum += type_bytes(v->type);
        live[n] = v;
        n += n + 1 < MOST;
    }
    return sum;
}

static bool has_room(const Emit *e, const Memory *m, int64_t end)
{
    return end <= m->size || m == &e->memory[e->n_memories - 1]; /* the last may be too small */
}

const char *emit_gap(Emit *e, int64_t bytes)
{
    assert(bytes > 0 && bytes % WORK_ALIGN == 0);
    bool is_method = e->graph == e->method; /* else other values are live too */
    Memory *m = e->memory;
    int64_t at, next;
    for (;; m++) {
        at = is_method ? 0 : round_up(m->bytes, WORK_ALIGN);
        while (is_method && (next = after_live(e, m, at, bytes)) != at)
            at = next;
        if (has_room(e, m, at + bytes))
            break;
    }
    m->bytes = at + bytes > m->bytes ? at + bytes : m->bytes;
    return memory_address(e, m, at);
}

const char *memory_take_work(Emit *e)
{
    Memory *m = e->memory;
    if (!e->scratch_bytes)
        return NULL;
    while (!has_room(e, m, round_up(m->bytes, POOL_ALIGN) + e->scratch_bytes))
        m++;
    int64_t at = round_up(m->bytes, POOL_ALIGN);
    m->work = e->scratch_bytes;
    m->bytes = at + e->scratch_bytes;
    return memory_address(e, m, at);
}

/* -- numbers for the driver -------------------------------------------------------------------- */

static void add_missed(Emit *e, const Memory *m, CBank *b)
{
    for (int i = 0; i < e->method->n_values; i++) {
        const Value *v = e->value[i];
        if (!lies_in(e, v, m) || memory_offset(e, v->place) + type_bytes(v->type) <= m->size)
            continue;
        const char *from = v->def ? loc_text(v->def->loc, e->a) : "";
        const char *text = arena_printf(e->a, "%%%s, %" PRId64 " bytes%s%s", v->name,
                                        type_bytes(v->type), *from ? ", from " : "", from);
        PUSH(e->a, b->missed, b->n_missed, text);
    }
    if (m->bytes > m->values && m->bytes > m->size) {
        const char *text = arena_printf(e->a, "working memory of kernels, %" PRId64
                                        " bytes after the values", m->bytes - m->values);
        PUSH(e->a, b->missed, b->n_missed, text);
    }
}

void memory_tell(Emit *e, CFiles *out)
{
    int64_t scratch = 0;
    out->constants += constant_bytes(e);
    out->n_fast += e->n_fast;
    for (int i = 0; i < e->n_memories; i++) {
        const Memory *m = &e->memory[i];
        scratch += m->bytes - m->values;
        if (!has_banks(e))
            break;
        CBank b = {.name = m->name, .size = m->size, .bytes = m->bytes, .values = m->values};
        add_missed(e, m, &b);
        PUSH(e->a, out->bank, out->n_banks, b);
    }
    out->scratch[out->n_models++] = scratch;
    out->all_scratch += scratch;
    for (int i = 0; i < e->p->session->rom.n; i++)
        PUSH(e->a, out->bank, out->n_banks, e->rom[i]);
}

/* -- macros of the header ---------------------------------------------------------------------- */

void put_memory_macros(Emit *e, Text *t)
{
    for (int i = 0; i < e->n_memories; i++) {
        const Memory *m = &e->memory[i];
        put(t, "#define %s_%s%s_BYTES %" PRId64 "\n", e->upper, has_banks(e) ? "BANK_" : "",
            m->upper, m->bytes);
        if (has_banks(e))
            put(t, "#define %s_BANK_%s_ALIGN %d\n", e->upper, m->upper, POOL_ALIGN);
    }
    if (stack_bytes(e))
        put(t, "#define %s_STACK_BYTES %d\n", e->upper, stack_bytes(e));
}

void put_memory_comment(Emit *e, Text *t, const Value *v)
{
    put(t, ", at %s + %" PRId64, memory_of(e, v->place)->name, memory_offset(e, v->place));
}

static void put_work_needs(Text *t, const Memory *m)
{
    if (m->bytes > m->values + m->work)
        put(t, " *              %" PRId64 " are working memory of kernels that does not fit beside "
            "live values\n", m->bytes - m->values - m->work);
    if (m->work)
        put(t, " *              %" PRId64 " are working memory of kernels\n", m->work);
}

static void put_needs(const Emit *e, Text *t, const Memory *m)
{
    const char *of = has_banks(e) ? arena_printf(e->a, " of %" PRId64 " bytes", m->size) : "";
    if (!m->bytes)
        put(t, " *   %-9s  none%s; NULL will do\n", m->name, of);
    else
        put(t, " *   %-9s  %" PRId64 "%s, %d-byte aligned\n", m->name, m->bytes,
            *of ? of : " bytes", POOL_ALIGN);
    if (m->values)
        put(t, " *              %" PRId64 " hold values", m->values);
    if (m->values && !has_banks(e))
        put(t, ", of which at most %" PRId64 " are live at once", e->bound);
    put(t, m->values ? "\n" : "");
    put_work_needs(t, m);
}

void put_memory_needs(Emit *e, Text *t)
{
    put(t, " *\n");
    for (int i = 0; i < e->n_memories; i++)
        put_needs(e, t, &e->memory[i]);
    if (has_banks(e))
        put(t, " *   all banks  at most %" PRId64 " bytes of values are live at once\n", e->bound);
    if (e->state_bytes)
        put(t, " *   state      %" PRId64 " bytes, 64-byte aligned, kept between calls;\n"
            " *              %s_init_state writes its initial values\n", e->state_bytes, e->name);
    if (constant_bytes(e))
        put(t, " *   constants  %" PRId64 " bytes\n", constant_bytes(e));
    if (e->o->is_fast)
        put(t, " *   fast       %d convolution%s by Winograd's transforms\n", e->n_fast,
            e->n_fast == 1 ? "" : "s");
    for (int i = 0; i < e->p->session->rom.n; i++)
        put(t, " *   %-9s  %" PRId64 " of %" PRId64 " bytes, constants in section %s\n",
            e->rom[i].name, e->rom[i].bytes, e->rom[i].size,
            e->rom[i].section ? e->rom[i].section : ".rodata");
    if (stack_bytes(e))
        put(t, " *   stack      at most %d bytes if gcc 12 compiles this file at -O2\n", stack_bytes(e));
}
