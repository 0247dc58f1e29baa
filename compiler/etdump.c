/* etdump.c -- profiles in ExecuTorch's format: `etc inspect --etdump` reads them, whoever wrote
 * them, and names the node and the source line of each event; `etc run --etdump` writes them.
 *
 * An ETDump is a FlatBuffer with the identifier "ED00".  4 bytes with its size may come before it.
 * It holds runs, and a run holds events.  An event has a name, the instruction that it belongs to,
 * a delegate's own number or name, and two times in ticks, which are nanoseconds if a POSIX clock
 * counts them.  The file is not trusted.
 * Source: ExecuTorch 1.4's devtools/etdump/etdump_schema_flatcc.fbs. */
#include "compiler/compiler.h"
#include "compiler/run.h"
#include "ir/flat.h"
#include "runtime-lite/flat_read.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ETDUMP_ID "ED00"

enum { DUMP_VERSION, DUMP_RUNS, DUMP_SLOTS };
enum { RUN_NAME, RUN_INPUT, RUN_ALLOCATORS, RUN_EVENTS, RUN_SLOTS };
enum { EVENT_PROFILE, EVENT_SLOTS };
enum { P_NAME, P_CHAIN, P_INSTRUCTION, P_DELEGATE_INT, P_DELEGATE_STR, P_METADATA, P_START, P_END,
       P_SLOTS };
enum { T_DUMP, T_RUN, T_EVENT, T_PROFILE, T_ALLOCATOR };

static const EtcFlatSlot dump_slot[] = {ETC_SLOT_SCALAR(4), ETC_SLOT_TABLES(T_RUN)};
static const EtcFlatSlot run_slot[] = {ETC_SLOT_STRING, ETC_SLOT_SCALAR(4),
                                       ETC_SLOT_TABLES(T_ALLOCATOR), ETC_SLOT_TABLES(T_EVENT)};
static const EtcFlatSlot event_slot[] = {ETC_SLOT_TABLE(T_PROFILE)};
static const EtcFlatSlot profile_slot[] = {
    ETC_SLOT_STRING, ETC_SLOT_SCALAR(4),  ETC_SLOT_SCALAR(4), ETC_SLOT_SCALAR(4),
    ETC_SLOT_STRING, ETC_SLOT_SCALARS(1), ETC_SLOT_SCALAR(8), ETC_SLOT_SCALAR(8)};
static const EtcFlatSlot allocator_slot[] = {ETC_SLOT_STRING};
static const EtcFlatTable schema[] = {[T_DUMP] = {dump_slot, DUMP_SLOTS},
                                      [T_RUN] = {run_slot, RUN_SLOTS},
                                      [T_EVENT] = {event_slot, EVENT_SLOTS},
                                      [T_PROFILE] = {profile_slot, P_SLOTS},
                                      [T_ALLOCATOR] = {allocator_slot, 1}};

/* -- reading ----------------------------------------------------------------------------------- */

typedef struct Seen { /* the events of one name at one instruction */
    const char *name, *delegate; /* delegate: the delegate's own name for what ran, or NULL */
    int32_t instruction, number; /* -1: none; number: the delegate's own number */
    int order;
    int64_t calls;
    uint64_t ticks, least, most;
} Seen;

typedef struct Dump {
    Arena *a;
    EtcFlat f;
    uint32_t root;
    Table by_key;
    Seen *seen;
    int n, n_runs;
} Dump;

static int32_t number_at(const EtcFlat *f, uint32_t at, int slot)
{
    return etc_flat_has(f, at, slot) ? etc_flat_i32(f, at, slot) : -1;
}

static const char *text_at(const Dump *x, uint32_t at, int slot)
{
    uint32_t n;
    const char *s = etc_flat_string(&x->f, at, slot, &n);
    return s && n ? arena_str(x->a, s, n) : NULL;
}

static void add_event(Dump *x, uint32_t at)
{
    Seen s = {.name = text_at(x, at, P_NAME), .delegate = text_at(x, at, P_DELEGATE_STR),
              .instruction = number_at(&x->f, at, P_INSTRUCTION),
              .number = number_at(&x->f, at, P_DELEGATE_INT), .order = x->n};
    uint64_t from = etc_flat_u64(&x->f, at, P_START), to = etc_flat_u64(&x->f, at, P_END);
    uint64_t took = to > from ? to - from : 0;
    s.name = s.name ? s.name : "";
    const char *key = arena_printf(x->a, "%d %d %zu %s %s", s.instruction, s.number, strlen(s.name),
                                   s.name, s.delegate ? s.delegate : "");
    TableItem *row = table_at_text(&x->by_key, key);
    if (!row->number) {
        s.least = UINT64_MAX;
        PUSH(x->a, x->seen, x->n, s);
        row->number = x->n;
    }
    Seen *is = &x->seen[row->number - 1];
    is->calls++;
    is->ticks = is->ticks > UINT64_MAX - took ? UINT64_MAX : is->ticks + took;
    is->least = took < is->least ? took : is->least;
    is->most = took > is->most ? took : is->most;
}

static void add_runs(Dump *x)
{
    EtcFlatVec runs = etc_flat_vec(&x->f, x->root, DUMP_RUNS);
    for (uint32_t i = 0; i < runs.n; i++) {
        uint32_t run = etc_flat_item_table(&x->f, runs, i);
        EtcFlatVec events = etc_flat_vec(&x->f, run, RUN_EVENTS);
        for (uint32_t k = 0; k < events.n; k++) {
            uint32_t event = etc_flat_item_table(&x->f, events, k);
            uint32_t profile = etc_flat_table(&x->f, event, EVENT_PROFILE);
            if (profile)
                add_event(x, profile);
        }
        x->n_runs += events.n > 0;
    }
}

static int by_instruction(const void *a, const void *b)
{
    const Seen *l = a, *r = b;
    return l->instruction != r->instruction ? (l->instruction < r->instruction ? -1 : 1)
                                            : l->order - r->order;
}

/* Verifies the buffer.  Returns what is wrong; NULL: nothing.  If the buffer begins with its size,
 * the position of the root is relative to the byte after the size. */
static const char *open_dump(Dump *x, const uint8_t *data, size_t n)
{
    bool has_size = n >= 12 && !memcmp(data + 8, ETDUMP_ID, 4);
    uint32_t size = 0, root;
    if (n > INT32_MAX)
        return "it is larger than 2 GiB";
    if (!has_size && (n < 8 || memcmp(data + 4, ETDUMP_ID, 4) != 0))
        return "it is not an ETDump: \"" ETDUMP_ID "\" is not in its first bytes";
    if (has_size)
        memcpy(&size, data, 4);
    if (has_size && size != n - 4)
        return "it is cut off, or longer than it says";
    x->f = (EtcFlat){data, (uint32_t)n};
    memcpy(&root, data + (has_size ? 4 : 0), 4);
    if (root > n)
        return "its root is outside";
    x->root = root + (has_size ? 4 : 0);
    return etc_flat_verify(&x->f, schema, x->root);
}

const char *etdump_read(const uint8_t *data, size_t n, Arena *a, EtDump *out)
{
    Dump x = {.a = a, .by_key.arena = a};
    const char *wrong = open_dump(&x, data, n);
    if (wrong)
        return wrong;
    add_runs(&x);
    if (x.n)
        qsort(x.seen, (size_t)x.n, sizeof *x.seen, by_instruction);
    *out = (EtDump){.n_runs = x.n_runs, .n = x.n, .event = NEW(a, EtEvent, x.n + 1)};
    for (int i = 0; i < x.n; i++) {
        const Seen *s = &x.seen[i];
        out->event[i] = (EtEvent){s->name,  s->delegate, s->instruction, s->number,
                                  s->calls, s->ticks,    s->least,       s->most};
    }
    return NULL;
}

/* -- printing ---------------------------------------------------------------------------------- */

static const DebugNode *node_of(const DebugMap *m, const EtEvent *e)
{
    if (e->instruction < 0 || e->instruction >= m->n)
        return NULL;
    const DebugInstruction *x = &m->item[e->instruction];
    return e->number >= 0 && e->number < x->n_parts ? &x->part[e->number] : &x->node;
}

/* Returns whether an event covers a whole instruction.  The times of such events add up to the
 * total. */
static bool is_whole(const EtEvent *e)
{
    size_t n = strlen(e->name);
    return e->instruction >= 0 && n > 5 && !strcmp(e->name + n - 5, "_CALL");
}

static void text_event(const EtEvent *e, const DebugMap *m, double all)
{
    const DebugNode *n = node_of(m, e);
    printf(e->instruction < 0 ? "      -" : "  %5d", e->instruction);
    printf(" %12.6f ms %6" PRId64 "x ", (double)e->ticks / (double)e->calls * 1e-6, e->calls);
    if (is_whole(e) && all > 0)
        printf("%5.1f %% ", 100 * (double)e->ticks / all);
    else
        printf("        ");
    say(stdout, "%s", e->name);
    if (e->delegate)
        say(stdout, " [%s]", e->delegate);
    if (n && n->node)
        say(stdout, "  %s (%s)%s%s%s%s", n->node, n->op ? n->op : "?", n->module ? " " : "",
            n->module ? n->module : "", n->source ? ", " : "", n->source ? n->source : "");
    putchar('\n');
}

static void put_or_null(const char *key, const char *text, Arena *a)
{
    printf(", \"%s\": %s", key, text ? json_text(a, text) : "null");
}

static void put_number(const char *key, int32_t v, Arena *a)
{
    printf(", \"%s\": %s", key, v < 0 ? "null" : arena_printf(a, "%d", (int)v));
}

static void json_event(int i, const EtEvent *e, const DebugMap *m, Arena *a)
{
    static const DebugNode none;
    const DebugNode *n = node_of(m, e);
    n = n ? n : &none;
    printf("%s{\"name\": %s", comma(i), json_text(a, e->name));
    put_number("instruction", e->instruction, a);
    put_number("delegate_number", e->number, a);
    put_or_null("delegate_name", e->delegate, a);
    printf(", \"calls\": %" PRId64 ", \"ticks\": %" PRIu64 ", \"min_ticks\": %" PRIu64
           ", \"max_ticks\": %" PRIu64, e->calls, e->ticks, e->least, e->most);
    put_or_null("node", n->node, a);
    put_or_null("op", n->op, a);
    put_or_null("module", n->module, a);
    put_or_null("source", n->source, a);
    putchar('}');
}

static void print_events(const Options *o, const EtDump *x, const DebugMap *m, Arena *a)
{
    double all = 0;
    for (int i = 0; i < x->n; i++)
        all += is_whole(&x->event[i]) ? (double)x->event[i].ticks : 0;
    if (o->json)
        printf("{\"schema\": 1, \"kind\": \"etdump\", \"file\": %s, \"runs\": %d, \"events\": [",
               json_text(a, o->etdump), x->n_runs);
    else
        say(stdout, "%s: %d run%s; mean times, if a tick is a nanosecond\n", o->etdump, x->n_runs,
            x->n_runs == 1 ? "" : "s");
    for (int i = 0; i < x->n; i++)
        if (o->json)
            json_event(i, &x->event[i], m, a);
        else
            text_event(&x->event[i], m, all);
    if (o->json)
        puts("]}");
}

/* Checks that the map has the instructions of all events.  Reports the first one that it lacks. */
static bool map_fits(const Options *o, const EtDump *x, const DebugMap *m, Diag *d)
{
    for (int i = 0; i < x->n; i++)
        if (x->event[i].instruction >= m->n)
            return diag_error(d, (Loc){.file = o->map},
                              "ends before instruction %d of '%s': it is the map of another file "
                              "or method", (int)x->event[i].instruction, o->etdump);
    return true;
}

bool etdump_inspect(const Options *o, Arena *a, Diag *d)
{
    const uint8_t *data;
    size_t n;
    EtDump x;
    DebugMap m = {0};
    if (!file_map(o->files, o->etdump, &data, &n, d))
        return false;
    const char *wrong = etdump_read(data, n, a, &x);
    if (wrong)
        return diag_error(d, (Loc){.file = o->etdump}, "%s", wrong);
    if (o->map && (!debug_map_read(o, &m, a, d) || !map_fits(o, &x, &m, d)))
        return false;
    print_events(o, &x, &m, a);
    return true;
}

/* -- writing ----------------------------------------------------------------------------------- */

typedef struct Took {
    const char *name;
    int32_t instruction, number;
    double from, to;
} Took;

struct EtRecord {
    Runner *r;
    Arena *a;
    Flat *f;
    FlatRef *run;
    Took *took; /* the events of the current call */
    int n_runs, n;
    double start, since;
};

static void add(EtRecord *x, const char *name, int32_t instruction, int32_t number, double from,
                double to)
{
    Took t = {name, instruction, number, from, to};
    assert(to >= from);
    PUSH(x->a, x->took, x->n, t);
}

/* Adds the operations of a delegate.  The delegate reports durations without start times, so
 * each operation starts where the one before it ends, within the delegate's own time. */
static void add_parts(EtRecord *x, const EtcExecuted *e, double now)
{
    int32_t n = etc_method_parts(x->r->method, e->delegate, NULL, 0);
    EtcPart *part = NEW(x->a, EtcPart, n + 1);
    double at = x->since;
    if (n > 0)
        etc_method_parts(x->r->method, e->delegate, part, n);
    for (int32_t i = 0; i < n; i++) {
        double to = at + (double)part[i].nanoseconds * 1e-9;
        int32_t number = part[i].handle >= 0 && part[i].handle <= INT32_MAX ? (int32_t)part[i].handle
                                                                           : -1;
        add(x, part[i].name, (int32_t)e->index, number, at, to < now ? to : now);
        at = to < now ? to : now;
    }
}

static void on_executed(void *host, const EtcExecuted *e)
{
    EtRecord *x = host;
    double now = seconds_now();
    const char *kind = e->delegate >= 0 ? "DELEGATE_CALL" : e->name ? "OPERATOR_CALL" : "MOVE_CALL";
    add(x, kind, (int32_t)e->index, -1, x->since, now);
    if (e->delegate >= 0)
        add_parts(x, e, now);
    else if (e->name)
        add(x, arena_printf(x->a, "%s%s%s", e->name, e->overload && *e->overload ? "." : "",
                            e->overload && *e->overload ? e->overload : ""),
            (int32_t)e->index, -1, x->since, now);
    x->since = seconds_now();
}

EtRecord *etdump_start(Runner *r)
{
    EtRecord *x = NEW(r->arena, EtRecord, 1);
    *x = (EtRecord){.r = r, .a = r->arena, .f = flat_new(r->arena)};
    etc_method_observe(r->method, on_executed, x);
    return x;
}

void etdump_begin(EtRecord *x)
{
    x->n = 0;
    x->start = x->since = seconds_now();
}

static uint64_t ticks(double seconds)
{
    return (uint64_t)(seconds * 1e9);
}

static FlatRef event_ref(EtRecord *x, const Took *t)
{
    FlatRef name = flat_string(x->f, t->name);
    flat_begin(x->f, P_SLOTS);
    flat_ref(x->f, P_NAME, name);
    flat_i32(x->f, P_CHAIN, t->instruction < 0 ? -1 : 0, 0);
    flat_i32(x->f, P_INSTRUCTION, t->instruction, -1);
    flat_i32(x->f, P_DELEGATE_INT, t->number, -1);
    flat_u64(x->f, P_START, ticks(t->from));
    flat_u64(x->f, P_END, ticks(t->to));
    FlatRef profile = flat_end(x->f);
    flat_begin(x->f, EVENT_SLOTS);
    flat_ref(x->f, EVENT_PROFILE, profile);
    return flat_end(x->f);
}

void etdump_end_call(EtRecord *x)
{
    add(x, "Method::execute", -1, -1, x->start, seconds_now());
    FlatRef *event = NEW(x->a, FlatRef, x->n);
    for (int i = 0; i < x->n; i++)
        event[i] = event_ref(x, &x->took[i]);
    FlatRef events = flat_refs(x->f, event, (size_t)x->n), name = flat_string(x->f, "Execute");
    flat_begin(x->f, RUN_SLOTS);
    flat_ref(x->f, RUN_NAME, name);
    flat_ref(x->f, RUN_EVENTS, events);
    FlatRef run = flat_end(x->f);
    PUSH(x->a, x->run, x->n_runs, run);
}

/* Returns the buffer with its size in front of it.  4 more bytes after the identifier keep the rest
 * aligned. */
static const uint8_t *with_size(const uint8_t *data, size_t n, Arena *a)
{
    uint8_t *to = NEW(a, uint8_t, n + 8);
    uint32_t root, size = (uint32_t)n + 4;
    assert(n >= 8 && n % 8 == 0);
    memcpy(&root, data, 4);
    root += 4;
    memcpy(to, &size, 4);
    memcpy(to + 4, &root, 4);
    memcpy(to + 8, data + 4, 4);
    memcpy(to + 16, data + 8, n - 8);
    return to;
}

bool etdump_add(EtRecord *x, OutBatch *out, Diag *d)
{
    size_t n;
    const Options *o = x->r->o;
    FlatRef runs = flat_refs(x->f, x->run, (size_t)x->n_runs);
    flat_begin(x->f, DUMP_SLOTS);
    flat_u32(x->f, DUMP_VERSION, 0);
    flat_ref(x->f, DUMP_RUNS, runs);
    const uint8_t *data = flat_finish(x->f, flat_end(x->f), ETDUMP_ID, &n);
    if (!data)
        return diag_error(d, (Loc){.file = o->etdump}, "would be larger than 2 GiB");
    return output_bytes(o, out, with_size(data, n, x->a), (int64_t)n + 8, o->etdump, d);
}
