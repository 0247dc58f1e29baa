/* bench.c -- `etc bench`: measures how long loading, the first run and further runs take, what
 * memory they need, and where the time goes.
 *
 * The times come from a method without an observer.  For the profile, the method is made again with
 * an observer and with delegates that report their operations.  The node of an instruction is known
 * if the model is compiled here; a .pte names only operators.  XNNPACK reports whole microseconds
 * per operation and no start times, so in the trace each operation starts where the one before it
 * ends. */
#include "compiler/compiler.h"
#include "compiler/run.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 20, WARMUP = 3, ROWS_SHOWN = 20 };

typedef struct Spread {
    double median, min, max, low, high; /* low, high: quartiles */
} Spread;

typedef struct Event { /* an instruction that was executed */
    int run, delegate;  /* delegate -1: none */
    uint32_t index;
    const char *name, *overload;
    double begin, end;
    int first_part, n_parts;
} Event;

/* An instruction, a node within a delegate, or an operation of a delegate. */
typedef struct Row {
    const char *name;
    int index, part, delegate; /* part -1: the whole instruction; delegate -1: none */
    const Node *node;          /* NULL: not known */
    bool is_predicted;
    double *took;              /* the seconds of each run */
    double seconds, predicted; /* the median and the estimate for one run */
    double calls;              /* the mean number of calls in one run */
    int n_nodes, n_operations; /* the lengths of item and operation; 0 without a delegate */
    struct Row *item, *operation;
} Row;

typedef struct Bench {
    Runner r;
    Arena *arena;
    int runs, warmup, threads;
    EtcValue *in;
    double load, first;
    Spread spread;
    int64_t peak, before; /* resident bytes; -1: not known */
    int64_t *held;        /* the bytes that each delegate holds */
    int n_delegates;
    /* the profile */
    int run, n_events, n_parts, n_rows;
    double since;
    Event *event;
    EtcPart *part;
    double *took; /* the seconds of each profiled run */
    Row *row;
} Bench;

/* -- inputs ------------------------------------------------------------------------------------ */

/* Returns random inputs with every dynamic size at its upper bound.  Returns NULL if the graph
 * is not known or they cannot be made. */
static EtcTensor **random_tensors(Bench *b, uint64_t *seed)
{
    const Graph *g = b->r.graph;
    EtcTensor **in = NEW(b->arena, EtcTensor *, b->r.says.n_in + 1);
    int64_t *symbol = NEW(b->arena, int64_t, g ? g->program->n_syms + 1 : 1);
    for (int i = 0; g && i < g->program->n_syms; i++)
        symbol[i] = g->program->sym[i]->hi;
    return g && g->n_in == b->r.says.n_in && inputs_random(g, symbol, seed, b->arena, in) ? in
                                                                                          : NULL;
}

static EtcTensor *random_like(Bench *b, int i, uint64_t *seed)
{
    const PteEnd *end = &b->r.says.in[i];
    int64_t dim[ETC_MAX_RANK];
    for (int k = 0; k < end->rank; k++)
        dim[k] = end->dim[k];
    EtcDtype dtype = etc_method_input(b->r.method, i)->as.tensor->dtype;
    EtcTensor *t = tensor_new(b->arena, dtype, end->rank, dim);
    inputs_fill(t, seed);
    return t;
}

/* Says which sizes the inputs have that a model leaves open: the largest ones may take long. */
static void say_sizes(const Bench *b, EtcTensor *const *in)
{
    int n = 0;
    assert(b->r.graph); /* the inputs are made from it */
    for (int i = 0; i < b->r.says.n_in && !b->r.o->quiet; i++) {
        const Value *v = b->r.graph->in[i];
        if (!in[i] || type_is_static(v->type))
            continue;
        if (!n++)
            say(stderr, "%s: runs with the largest sizes:", b->r.o->model);
        say(stderr, "%s %s [", n > 1 ? "," : "", v->name);
        for (int k = 0; k < in[i]->rank; k++)
            say(stderr, "%s%d", k ? "," : "", (int)in[i]->dim[k]);
        say(stderr, "]");
    }
    if (n)
        say(stderr, "; --dim and --input set others\n");
}

/* Sets the inputs: random tensors, and for the others the values that the export fixed. */
static void make_inputs(Bench *b)
{
    uint64_t seed = 1;
    EtcTensor **random = random_tensors(b, &seed);
    if (random)
        say_sizes(b, random);
    for (int i = 0; i < b->r.says.n_in; i++) {
        b->in[i] = *etc_method_input(b->r.method, i);
        if (b->in[i].tag == ETC_TENSOR)
            b->in[i].as.tensor = random ? random[i] : random_like(b, i, &seed);
    }
}

static bool read_inputs(Bench *b)
{
    const Options *o = b->r.o;
    bool ok = true;
    b->in = NEW(b->arena, EtcValue, b->r.says.n_in + 1);
    if (!o->inputs.n)
        make_inputs(b);
    else if (!runner_set_inputs(&b->r, &o->inputs)) /* it reports what does not fit */
        return false;
    for (int i = 0; i < o->inputs.n; i++) {
        const EtcValue *like = etc_method_input(b->r.method, i);
        ok = input_read(o->files, b->arena, o->inputs.item[i], like, &b->in[i], b->r.diag) && ok;
    }
    return ok;
}

/* -- runs -------------------------------------------------------------------------------------- */

/* Runs the method once and measures the seconds.  Inputs share memory with the values of the
 * run, so they are set before each run. */
static bool run_once(Bench *b, double *took)
{
    double start = seconds_now();
    for (int i = 0; i < b->r.says.n_in; i++)
        if (!runner_set_input(&b->r, i, &b->in[i]))
            return false;
    b->since = seconds_now();
    bool ok = runner_call(&b->r);
    *took = seconds_now() - start;
    return ok;
}

static bool run_often(Bench *b, int n, double *took)
{
    for (int i = 0; i < n; i++) {
        b->run = i;
        if (!run_once(b, &took[i]))
            return false;
    }
    return true;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the value below which a part of the sorted values lies.  It is interpolated between the
 * two nearest values. */
static double quantile(const double *sorted, int n, double part)
{
    double at = part * (n - 1);
    int k = (int)at;
    return k + 1 < n ? sorted[k] + (at - k) * (sorted[k + 1] - sorted[k]) : sorted[n - 1];
}

static Spread spread_of(double *took, int n)
{
    qsort(took, (size_t)n, sizeof *took, by_size);
    return (Spread){quantile(took, n, 0.5), took[0], took[n - 1], quantile(took, n, 0.25),
                    quantile(took, n, 0.75)};
}

/* Returns the number in a line of /proc/self/status, in bytes; -1: there is no such line. */
static int64_t status_of(const char *key)
{
    char line[256];
    long long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)))
            sscanf(line + strlen(key), ": %lld", &kib);
    if (f)
        fclose(f);
    return kib < 0 ? -1 : kib * 1024;
}

/* Resets the peak of resident memory, because a model that was compiled in this process may have
 * taken more. */
static void forget_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f) {
        fputs("5", f);
        fclose(f);
    }
}

static bool measure(Bench *b)
{
    double *took = NEW(b->arena, double, b->runs + b->warmup + 1);
    double start = seconds_now();
    if (!b->r.source && !runner_load(&b->r))
        return false;
    if (!runner_init(&b->r))
        return false;
    b->load = seconds_now() - start;
    if (!read_inputs(b) || !run_once(b, &b->first) || !run_often(b, b->warmup, took) ||
        !run_often(b, b->runs, took))
        return false;
    b->spread = spread_of(took, b->runs);
    b->peak = status_of("VmHWM");
    b->n_delegates = etc_method_n_delegates(b->r.method);
    b->held = NEW(b->arena, int64_t, b->n_delegates + 1);
    for (int i = 0; i < b->n_delegates; i++)
        b->held[i] = etc_method_held_bytes(b->r.method, i);
    return true;
}

/* -- profile ----------------------------------------------------------------------------------- */

static void on_executed(void *host, const EtcExecuted *x)
{
    Bench *b = host;
    Event e = {.run = b->run, .delegate = x->delegate, .index = x->index, .name = x->name,
               .overload = x->overload, .begin = b->since, .end = seconds_now(),
               .first_part = b->n_parts};
    if (x->delegate >= 0)
        e.n_parts = etc_method_parts(b->r.method, x->delegate, NULL, 0);
    EtcPart *part = NEW(b->arena, EtcPart, e.n_parts + 1);
    if (e.n_parts > 0)
        etc_method_parts(b->r.method, x->delegate, part, e.n_parts);
    for (int i = 0; i < e.n_parts; i++)
        PUSH(b->arena, b->part, b->n_parts, part[i]);
    PUSH(b->arena, b->event, b->n_events, e);
    b->since = seconds_now(); /* no instruction is charged for the time of this function */
}

static bool watch(Bench *b)
{
    double first;
    b->took = NEW(b->arena, double, b->runs + b->warmup + 1);
    runner_end(&b->r);
    b->r.profiles = true;
    if (!runner_init(&b->r) || !run_once(b, &first) || !run_often(b, b->warmup, b->took))
        return false;
    etc_method_observe(b->r.method, on_executed, b);
    return run_often(b, b->runs, b->took);
}

static const Node *node_at(const Bench *b, uint32_t index)
{
    for (int i = 0; i < b->r.stats.n_sources; i++) {
        const PteSource *s = &b->r.stats.source[i];
        if (!strcmp(s->method, b->r.says.name))
            return index < (uint32_t)s->n ? s->node[index] : NULL;
    }
    return NULL;
}

static const Graph *body_of(const Node *n)
{
    return n && n->op == OP_DELEGATE ? region_next(n, NULL) : NULL;
}

/* Sets the estimate of a row, which the partitioner uses too: the region's own for a region, and
 * the kernel's for other nodes. */
static void predict(const Bench *b, Row *row)
{
    const Program *p = b->r.source;
    const RegionReport *region = partition_region(b->r.source, row->node);
    row->is_predicted = region || (p && p->session->n_backends && row->node && !body_of(row->node));
    if (row->is_predicted)
        row->predicted = region ? region->seconds : node_seconds(row->node);
}

static Row row_new(const Bench *b, const char *name, int index, int part, const Node *n)
{
    return (Row){.name = name, .index = index, .part = part, .delegate = -1, .node = n,
                 .took = NEW(b->arena, double, b->runs)};
}

static void list_nodes(const Bench *b, Row *row)
{
    const Graph *body = body_of(row->node);
    const RegionReport *region = partition_region(b->r.source, row->node);
    for (const Node *n = body ? body->first : NULL; n; n = n->next) {
        Row item = row_new(b, node_target(n), row->index, row->n_nodes, n);
        item.delegate = row->delegate;
        item.is_predicted = region != NULL;
        item.predicted = region ? region->backend->cost(n) : 0;
        PUSH(b->arena, row->item, row->n_nodes, item);
    }
}

static void add_parts(const Bench *b, Row *row, const Event *e)
{
    for (int i = 0; i < e->n_parts; i++) {
        const EtcPart *part = &b->part[e->first_part + i];
        double seconds = (double)part->nanoseconds * 1e-9;
        bool known = part->handle >= 0 && part->handle < row->n_nodes;
        Row new = row_new(b, part->name, row->index, i,
                          known ? row->item[part->handle].node : NULL);
        new.delegate = row->delegate;
        if (i == row->n_operations)
            PUSH(b->arena, row->operation, row->n_operations, new);
        row->operation[i].took[e->run] += seconds;
        if (known)
            row->item[part->handle].took[e->run] += seconds;
    }
}

static const char *name_of(const Bench *b, const Event *e)
{
    if (!e->name)
        return "(jump or move)";
    bool has_overload = e->overload && *e->overload;
    return has_overload ? arena_printf(b->arena, "%s.%s", e->name, e->overload) : e->name;
}

static void set_medians(const Bench *b, Row *row, int n)
{
    for (int i = 0; i < n; i++) {
        row[i].seconds = spread_of(row[i].took, b->runs).median;
        set_medians(b, row[i].item, row[i].n_nodes);
        set_medians(b, row[i].operation, row[i].n_operations);
    }
}

static void add_event(const Bench *b, Row *row, const Event *e)
{
    if (!row->name) {
        row->name = name_of(b, e);
        row->delegate = e->delegate;
        predict(b, row);
        list_nodes(b, row);
    }
    row->took[e->run] += e->end - e->begin;
    row->calls += 1.0 / b->runs;
    add_parts(b, row, e);
}

/* Makes one row for each instruction that was executed, in the order of their numbers. */
static void list_rows(Bench *b)
{
    uint32_t most = 0;
    for (int i = 0; i < b->n_events; i++)
        most = b->event[i].index > most ? b->event[i].index : most;
    int *row_of = NEW(b->arena, int, (size_t)most + 2);
    for (int i = 0; i < b->n_events; i++)
        row_of[b->event[i].index] = 1;
    for (uint32_t i = 0; i <= most && b->n_events; i++) {
        if (row_of[i]) {
            Row row = row_new(b, NULL, (int)i, -1, node_at(b, i));
            PUSH(b->arena, b->row, b->n_rows, row);
            row_of[i] = b->n_rows - 1;
        }
    }
    for (int i = 0; i < b->n_events; i++)
        add_event(b, &b->row[row_of[b->event[i].index]], &b->event[i]);
    set_medians(b, b->row, b->n_rows);
}

static double profiled_seconds(const Bench *b)
{
    double sum = 0;
    for (int i = 0; i < b->n_rows; i++)
        sum += b->row[i].seconds;
    return sum;
}

/* -- text -------------------------------------------------------------------------------------- */

static int by_seconds(const void *a, const void *b)
{
    const Row *x = *(const Row *const *)a, *y = *(const Row *const *)b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? 1 : -1;
    return x->index != y->index ? x->index - y->index : x->part - y->part;
}

/* Lists the rows of the instructions.  A delegate that reports its operations is replaced by its
 * nodes or, if they are not known, by these operations. */
static const Row **flat_rows(const Bench *b, int *n)
{
    const Row **flat = NULL;
    for (int i = 0; i < b->n_rows; i++) {
        const Row *row = &b->row[i], *item = row->n_nodes ? row->item : row->operation;
        int n_items = row->n_operations ? row->n_nodes ? row->n_nodes : row->n_operations : 0;
        if (!n_items) {
            PUSH(b->arena, flat, *n, row);
        }
        for (int k = 0; k < n_items; k++)
            PUSH(b->arena, flat, *n, &item[k]);
    }
    return flat;
}

/* Prints where a row without a node is found: the instruction, and the operation within it. */
static void put_place(const Row *row)
{
    printf("  #%d", row->index);
    if (row->part >= 0)
        printf(".%d", row->part);
}

static void put_row(const Row *row, double all)
{
    const Loc *loc = row->node ? &row->node->loc : NULL;
    printf("%10.4f %5.1f%% ", row->seconds * 1e3, all > 0 ? 100 * row->seconds / all : 0.0);
    if (row->is_predicted)
        printf("%10.4f  ", row->predicted * 1e3);
    else
        printf("%10s  ", "-");
    if (row->delegate >= 0)
        printf("[%d] ", row->delegate);
    say(stdout, "%s", row->name);
    if (loc && loc->node)
        say(stdout, "  %s", loc->node);
    else
        put_place(row);
    if (loc && loc->module && *loc->module)
        say(stdout, ", %s", loc->module);
    if (loc && loc->source && *loc->source)
        say(stdout, ", %s", loc->source);
    putchar('\n');
}

static void put_profile(const Bench *b)
{
    int n = 0;
    const Row **flat = flat_rows(b, &n);
    double all = profiled_seconds(b);
    bool cuts = !b->r.o->all && n > ROWS_SHOWN;
    if (!b->r.o->all)
        qsort(flat, (size_t)n, sizeof *flat, by_seconds);
    printf("%10s %6s %10s  %s\n", "ms", "", "predicted", "what");
    for (int i = 0; i < (cuts ? ROWS_SHOWN : n); i++)
        put_row(flat[i], all);
    if (cuts)
        printf("%d more: --all\n", n - ROWS_SHOWN);
}

static void put_delegates(const Bench *b)
{
    for (int i = 0; i < b->n_rows; i++) {
        const Row *row = &b->row[i];
        if (row->delegate < 0)
            continue;
        say(stdout, "delegate %d: %s, %d operations, %" PRId64 " bytes packed, %.4f ms", row->delegate,
               row->name, row->n_operations, b->held[row->delegate], row->seconds * 1e3);
        if (row->is_predicted)
            printf(", predicted %.4f", row->predicted * 1e3);
        putchar('\n');
    }
}

static int64_t planned_bytes(const Bench *b)
{
    int64_t sum = 0;
    for (int i = 0; i < b->r.says.n_pools; i++)
        sum += b->r.says.pool[i];
    return sum;
}

static void put_report(const Bench *b)
{
    const Spread *s = &b->spread;
    say(stdout, "method %s, %d thread%s\n", b->r.says.name, b->threads, b->threads == 1 ? "" : "s");
    printf("load      %10.4f ms\nfirst run %10.4f ms\n", b->load * 1e3, b->first * 1e3);
    printf("run       %10.4f ms, the median of %d (%.4f .. %.4f, quartiles %.4f, %.4f)\n",
           s->median * 1e3, b->runs, s->min * 1e3, s->max * 1e3, s->low * 1e3, s->high * 1e3);
    printf("memory    arena %" PRId64 ", scratch %zu, tables %zu bytes", planned_bytes(b),
           b->r.need.scratch_bytes, b->r.need.table_bytes);
    if (b->peak >= 0)
        printf("; peak %" PRId64 ", %" PRId64 " before", b->peak, b->before);
    putchar('\n');
    put_delegates(b);
    put_profile(b);
}

/* -- JSON -------------------------------------------------------------------------------------- */

static const char *text_or_null(const Bench *b, const char *s)
{
    return s && *s ? json_text(b->arena, s) : "null";
}

static int64_t bytes_of(const Node *n)
{
    int64_t sum = 0;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const Value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        if (!v->type.is_none && !add_ok(sum, type_bytes(v->type), &sum))
            sum = INT64_MAX;
    }
    return sum;
}

static void json_node(const Bench *b, const Node *n)
{
    if (!n) {
        printf("\"node\": null, \"op\": null, \"module\": null, \"source\": null, ");
        return;
    }
    printf("\"node\": %s, \"op\": \"%s\", ", text_or_null(b, n->loc.node), node_target(n));
    printf("\"module\": %s, ", text_or_null(b, n->loc.module));
    printf("\"source\": %s, ", text_or_null(b, n->loc.source));
}

/* Prints the work of a node, or of a region as one, as far as it is known, and the time that is
 * estimated. */
static void json_work(const Row *row)
{
    const Node *n = row->node;
    if (n)
        printf("\"macs\": %" PRId64 ", \"bytes\": %" PRId64 ", ", node_cost(n),
               bytes_of(n));
    else
        printf("\"macs\": null, \"bytes\": null, ");
    if (row->is_predicted && !body_of(n))
        printf("\"work\": \"%s\", \"seconds_outside\": %.9g, ",
               work_name(node_work(n)), node_seconds(n));
    else
        printf("\"work\": null, \"seconds_outside\": null, ");
    if (row->is_predicted)
        printf("\"predicted_seconds\": %.9g, ", row->predicted);
    else
        printf("\"predicted_seconds\": null, ");
}

/* Prints the fields that rows of all kinds have. */
static void json_row(const Bench *b, const Row *row, bool has_work)
{
    printf("{\"name\": %s, ", json_text(b->arena, row->name));
    json_node(b, row->node);
    if (has_work)
        json_work(row);
    printf("\"seconds\": %.9g", row->seconds);
}

static void json_rows(const Bench *b, const char *key, const Row *row, int n, bool has_work)
{
    printf(", \"%s\": [", key);
    for (int i = 0; i < n; i++) {
        fputs(comma(i), stdout);
        json_row(b, &row[i], has_work);
        putchar('}');
    }
    putchar(']');
}

static void json_instruction(const Bench *b, const Row *row)
{
    const RegionReport *region = partition_region(b->r.source, row->node);
    json_row(b, row, true);
    printf(", \"index\": %d, \"calls\": %.9g, \"delegate\": ", row->index, row->calls);
    if (row->delegate < 0) {
        printf("null}");
        return;
    }
    printf("{\"number\": %d, \"packed_bytes\": %" PRId64 ", \"border_bytes\": ", row->delegate,
           b->held[row->delegate]);
    if (region)
        printf("%" PRId64, region->border_bytes);
    else
        printf("null");
    json_rows(b, "nodes", row->item, row->n_nodes, true);
    json_rows(b, "operations", row->operation, row->n_operations, false);
    printf("}}");
}

static void json_memory(const Bench *b)
{
    printf("\"memory\": {\"arena\": %" PRId64 ", \"scratch\": %zu, \"tables\": %zu, ",
           planned_bytes(b), b->r.need.scratch_bytes, b->r.need.table_bytes);
    if (b->peak >= 0)
        printf("\"peak\": %" PRId64 ", \"before\": %" PRId64 "}, ", b->peak, b->before);
    else
        printf("\"peak\": null, \"before\": null}, ");
}

static void json_report(const Bench *b)
{
    const Spread *s = &b->spread;
    printf("{\"schema\": 1, \"model\": %s, ", json_text(b->arena, b->r.o->model));
    printf("\"method\": %s, \"backends\": ", json_text(b->arena, b->r.says.name));
    printf("%s, \"threads\": %d, \"runs\": %d, \"warmup\": %d, ", text_or_null(b, b->r.o->backend),
           b->threads, b->runs, b->warmup);
    printf("\"load_seconds\": %.9g, \"first_run_seconds\": %.9g, ", b->load, b->first);
    printf("\"run_seconds\": {\"median\": %.9g, \"min\": %.9g, \"max\": %.9g, "
           "\"quartiles\": [%.9g, %.9g]}, ",
           s->median, s->min, s->max, s->low, s->high);
    json_memory(b);
    printf("\"profile_seconds\": %.9g, \"instructions\": [", profiled_seconds(b));
    for (int i = 0; i < b->n_rows; i++) {
        fputs(comma(i), stdout);
        json_instruction(b, &b->row[i]);
    }
    puts("]}");
}

/* -- trace: complete events of the Trace Event Format, in microseconds ------------------------- */

static void trace_event(const Bench *b, FILE *f, const char *name, const char *kind,
                        const Node *n, double begin, double seconds)
{
    const Loc none = {0}, *loc = n ? &n->loc : &none;
    fprintf(f, ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"cat\": \"%s\", \"ts\": %.3f, ", kind,
            begin * 1e6);
    fprintf(f, "\"dur\": %.3f, \"name\": %s, ", seconds * 1e6, json_text(b->arena, name));
    fprintf(f, "\"args\": {\"node\": %s, ", text_or_null(b, loc->node));
    fprintf(f, "\"module\": %s, ", text_or_null(b, loc->module));
    fprintf(f, "\"source\": %s}}", text_or_null(b, loc->source));
}

/* Writes the operations of an instruction.  An operation is cut off at the end of its
 * instruction. */
static void trace_parts(const Bench *b, FILE *f, const Event *e, double zero)
{
    const Row *row = b->row;
    double at = e->begin;
    while (row->index != (int)e->index)
        row++;
    for (int i = 0; i < e->n_parts; i++) {
        const EtcPart *part = &b->part[e->first_part + i];
        double seconds = (double)part->nanoseconds * 1e-9;
        seconds = at + seconds > e->end ? e->end - at : seconds;
        trace_event(b, f, part->name, "operation", row->operation[i].node, at - zero, seconds);
        at += seconds;
    }
}

/* Returns the profiled run with the median time. */
static int typical_run(const Bench *b)
{
    double *sorted = NEW(b->arena, double, b->runs);
    memcpy(sorted, b->took, (size_t)b->runs * sizeof *sorted);
    qsort(sorted, (size_t)b->runs, sizeof *sorted, by_size);
    int run = 0;
    while (b->took[run] < sorted[b->runs / 2] || b->took[run] > sorted[b->runs / 2])
        run++;
    return run;
}

static void write_trace(const Bench *b, FILE *f)
{
    int run = typical_run(b), first = 0;
    fprintf(f, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n{\"ph\": \"M\", \"pid\": 1, "
               "\"name\": \"process_name\", \"args\": {\"name\": %s}}",
            json_text(b->arena, b->r.o->model));
    while (first < b->n_events && b->event[first].run != run)
        first++;
    for (int i = first; i < b->n_events && b->event[i].run == run; i++) {
        const Event *e = &b->event[i];
        double zero = b->event[first].begin;
        trace_event(b, f, name_of(b, e), e->delegate < 0 ? "kernel" : "delegate",
                    node_at(b, e->index), e->begin - zero, e->end - e->begin);
        trace_parts(b, f, e, zero);
    }
    fputs("\n]}\n", f);
}

static bool stage_trace(const Bench *b, OutBatch *out)
{
    Text t;
    const char *path = b->r.o->trace;
    if (path && text_open(&t))
        write_trace(b, t.f);
    return !path || (output_text(b->r.o, out, &t, path, b->r.diag) && out_stage(out, b->r.diag));
}

/* -- the command ------------------------------------------------------------------------------- */

static int number_or(const char *text, int otherwise)
{
    return text ? atoi(text) : otherwise;
}

static bool give_report(Bench *b)
{
    OutBatch out = {.arena = b->arena};
    list_rows(b);
    bool ok = stage_trace(b, &out);
    if (ok && b->r.o->json)
        json_report(b);
    else if (ok)
        put_report(b);
    ok = ok && finish_files(b->r.o, &out, b->r.diag);
    out_discard(&out);
    return ok;
}

bool bench_median(const Options *o, Arena *a, Diag *d, double *seconds)
{
    Bench b = {.r = {.o = o, .arena = a, .diag = d}, .arena = a, .runs = number_or(o->runs, RUNS),
               .warmup = WARMUP};
    bool ok = measure(&b);
    runner_end(&b.r);
    *seconds = b.spread.median;
    return ok;
}

bool command_bench(const Options *o, Arena *a, Diag *d)
{
    Bench b = {.r = {.o = o, .arena = a, .diag = d}, .arena = a,
               .runs = number_or(o->runs, RUNS), .warmup = number_or(o->warmup, WARMUP),
               .threads = number_or(o->threads, 1)};
    if (o->target)
        return command_forecast(o, a, d);
    ImportKind kind = model_kind(o, d);
    if (kind == IMPORT_UNKNOWN || (kind != IMPORT_PTE && !runner_load(&b.r)))
        return false;
    b.before = status_of("VmRSS");
    forget_peak();
    bool ok = measure(&b) && watch(&b) && give_report(&b);
    runner_end(&b.r);
    return ok;
}
