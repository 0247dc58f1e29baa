/* partition.c -- `etc partition`: shows which backend computes which nodes, why the others stay
 * outside, and how much time that saves.  It also prints the summary line of `etc compile`, and
 * estimates the time of a program. */
#include "compiler/compiler.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

double partition_percent(const PartitionReport *r)
{
    return r && r->macs ? 100.0 * (double)r->macs_taken / (double)r->macs : 0;
}

const RegionReport *partition_region(const Program *p, const Node *n)
{
    const PartitionReport *all = p ? p->session->partition : NULL;
    const Graph *body = n && n->op == OP_DELEGATE ? region_next(n, NULL) : NULL;
    for (int i = 0; all && body && i < all->n_regions; i++)
        if (all->region[i].body == body)
            return &all->region[i];
    return NULL;
}

/* Returns the estimated seconds of a graph.  Bodies of branches and loops count once. */
static double graph_seconds(const Graph *g)
{
    double sum = 0;
    for (const Node *n = g->first; n; n = n->next) {
        const RegionReport *region = partition_region(g->program, n);
        sum += region ? region->seconds : node_seconds(n);
        for (const Graph *in = NULL; !region && (in = region_next(n, in));)
            sum += graph_seconds(in);
    }
    return sum;
}

double predicted_seconds(const Program *p)
{
    double sum = 0;
    for (int i = 0; i < p->n_methods; i++)
        sum += graph_seconds(p->method[i]);
    return sum;
}

static const char *rejected_op(const Rejected *r)
{
    return r->op == OP_CUSTOM ? r->loc.op : op_target(r->op);
}

/* Says which of the nodes that are not delegated has the most work. */
static void note_largest(const PartitionReport *r, Diag *d)
{
    const Rejected *most = NULL;
    for (int i = 0; r && i < r->n_rejected; i++)
        if (r->rejected[i].macs > (most ? most->macs : 0))
            most = &r->rejected[i];
    if (most)
        diag_note(d, "the largest node outside is '%s' (%s): %s; etc partition lists all",
                  most->loc.node ? most->loc.node : "?", rejected_op(most), most->refusal.why);
}

bool partition_gate(const Options *o, const Program *p, Diag *d)
{
    double percent = o->require_delegated ? strtod(o->require_delegated, NULL) : 0;
    double is = partition_percent(p->session->partition);
    if (percent <= 0 || is >= percent)
        return true;
    diag_fault(d, FAULT_GATE, (Loc){.file = o->model},
               "%.4g %% of the work is delegated, %g %% required", is, percent);
    note_largest(p->session->partition, d);
    return false;
}

/* -- operators ------------------------------------------------------------------------------- */

typedef struct Tally {
    OpId op;
    int n;
    double seconds;
} Tally;

static int by_op(const void *a, const void *b)
{
    return (int)((const Tally *)a)->op - (int)((const Tally *)b)->op;
}

/* Sorts the tallies by operator and joins those of the same operator.  Returns t, which then has
 * *n_out items. */
static Tally *merged(Tally *t, int n, int *n_out)
{
    qsort(t, (size_t)n, sizeof *t, by_op);
    *n_out = 0;
    for (int i = 0; i < n; i++) {
        if (*n_out && t[*n_out - 1].op == t[i].op) {
            t[*n_out - 1].n++;
            t[*n_out - 1].seconds += t[i].seconds;
        } else {
            t[(*n_out)++] = t[i];
        }
    }
    return t;
}

static Tally *ops_of_region(const RegionReport *r, Arena *a, int *n)
{
    Tally *t = NEW(a, Tally, r->n_nodes + 1);
    for (int i = 0; i < r->n_nodes; i++)
        t[i] = (Tally){r->node[i]->op, 1, 0};
    return merged(t, r->n_nodes, n);
}

static Tally slowest_rejected(const PartitionReport *r, Arena *a)
{
    int n = 0;
    Tally *t = NEW(a, Tally, r->n_rejected + 1), most = {OP_NONE, 0, 0};
    for (int i = 0; i < r->n_rejected; i++)
        t[i] = (Tally){r->rejected[i].op, 1, r->rejected[i].seconds};
    merged(t, r->n_rejected, &n);
    for (int i = 0; i < n; i++)
        most = t[i].seconds > most.seconds ? t[i] : most;
    return most;
}

void partition_line(const Program *p, const char *file, Arena *a)
{
    const PartitionReport *r = p->session->partition;
    if (!r)
        return;
    Tally slow = slowest_rejected(r, a);
    say(stderr, "%s: %d region%s, %d of %d nodes, %.4g %% of multiply-adds", file, r->n_regions,
            r->n_regions == 1 ? "" : "s", r->n_taken, r->n_nodes, partition_percent(r));
    if (slow.op != OP_NONE)
        fprintf(stderr, "; slowest outside: %s, %d node%s, about %.3g ms", op_target(slow.op),
                slow.n, slow.n == 1 ? "" : "s", slow.seconds * 1e3);
    fputc('\n', stderr);
}

/* -- text ------------------------------------------------------------------------------------ */

static void put_values(const char *what, const Value **v, int n, Arena *a)
{
    for (int i = 0; i < n; i++)
        say(stdout, "  %-8s %%%s: %s, %" PRId64 " bytes\n", i ? "" : what, v[i]->name,
               type_shown(a, v[i]->type), type_bytes(v[i]->type));
}

static void put_region(const RegionReport *r, int i, Arena *a)
{
    int n = 0;
    Tally *t = ops_of_region(r, a, &n);
    say(stdout, "region %d: %s in @%s, %d nodes, %" PRId64 " multiply-adds\n", i, r->backend->name,
           r->method, r->n_nodes, r->macs);
    for (int k = 0; k < n; k++)
        printf("  %-8s %d x %s\n", k ? "" : "nodes", t[k].n, op_target(t[k].op));
    put_values("inputs", r->in, r->n_in, a);
    put_values("outputs", r->out, r->n_out, a);
    printf("  border   %" PRId64 " bytes, switching %.3g us\n", r->border_bytes,
           r->switching * 1e6);
    printf("  time     about %.3g us, outside %.3g us\n", r->seconds * 1e6,
           r->seconds_outside * 1e6);
}

static void put_rejected(const Rejected *r)
{
    say(stdout, "outside: %s (%s) in @%s", r->loc.node ? r->loc.node : "?", rejected_op(r),
           r->method);
    if (r->loc.module && *r->loc.module)
        say(stdout, ", %s", r->loc.module);
    if (r->loc.source && *r->loc.source)
        say(stdout, ", %s", r->loc.source);
    putchar('\n');
    say(stdout, "  because  %s\n", r->refusal.why);
    if (r->refusal.fix)
        say(stdout, "  to fit   %s\n", r->refusal.fix);
    printf("  time     about %.3g us\n", r->seconds * 1e6);
}

static void put_report(const PartitionReport *r, Arena *a)
{
    for (int i = 0; i < r->n_regions; i++)
        put_region(&r->region[i], i, a);
    for (int i = 0; i < r->n_rejected; i++)
        put_rejected(&r->rejected[i]);
    printf("in all: %d of %d nodes, %.4g %% of multiply-adds, about %.3g ms; without backends "
           "%.3g ms\n",
           r->n_taken, r->n_nodes, partition_percent(r), r->seconds * 1e3,
           r->seconds_outside * 1e3);
}

/* -- JSON -------------------------------------------------------------------------------------- */

static const char *text_or_null(const char *s, Arena *a)
{
    return s && *s ? json_text(a, s) : "null";
}

static void json_values(const char *what, const Value **v, int n, Arena *a)
{
    printf("\"%s\": [", what);
    for (int i = 0; i < n; i++)
        printf("%s{\"name\": %s, \"type\": %s, \"bytes\": %" PRId64 "}", comma(i),
               json_text(a, v[i]->name), json_text(a, type_shown(a, v[i]->type)),
               type_bytes(v[i]->type));
    printf("], ");
}

static void json_region(const RegionReport *r, Arena *a)
{
    int n = 0;
    Tally *t = ops_of_region(r, a, &n);
    printf("{\"backend\": \"%s\", \"method\": %s, \"nodes\": %d, \"operators\": [",
           r->backend->name, json_text(a, r->method), r->n_nodes);
    for (int i = 0; i < n; i++)
        printf("%s{\"name\": \"%s\", \"nodes\": %d}", comma(i), op_target(t[i].op), t[i].n);
    printf("], ");
    json_values("inputs", r->in, r->n_in, a);
    json_values("outputs", r->out, r->n_out, a);
    printf("\"border_bytes\": %" PRId64 ", \"macs\": %" PRId64 ", \"switch_seconds\": %.9g, "
           "\"seconds\": %.9g, \"seconds_outside\": %.9g}",
           r->border_bytes, r->macs, r->switching, r->seconds, r->seconds_outside);
}

static void json_rejected(const Rejected *r, Arena *a)
{
    printf("{\"node\": %s, \"op\": \"%s\", ", text_or_null(r->loc.node, a), rejected_op(r));
    printf("\"method\": %s, ", json_text(a, r->method));
    printf("\"module\": %s, ", text_or_null(r->loc.module, a));
    printf("\"source\": %s, ", text_or_null(r->loc.source, a));
    printf("\"why\": %s, ", json_text(a, r->refusal.why));
    printf("\"fix\": %s, ", text_or_null(r->refusal.fix, a));
    printf("\"macs\": %" PRId64 ", \"seconds\": %.9g}", r->macs, r->seconds);
}

static void json_sums(const PartitionReport *r)
{
    printf("\"nodes\": %d, \"delegated_nodes\": %d, \"macs\": %" PRId64
           ", \"delegated_macs\": %" PRId64
           ", \"delegated_percent\": %.6g, \"seconds\": %.9g, \"seconds_outside\": %.9g",
           r->n_nodes, r->n_taken, r->macs, r->macs_taken, partition_percent(r), r->seconds,
           r->seconds_outside);
}

static void json_report(const PartitionReport *r, Arena *a)
{
    json_sums(r);
    printf(", \"regions\": [");
    for (int i = 0; i < r->n_regions; i++) {
        fputs(comma(i), stdout);
        json_region(&r->region[i], a);
    }
    printf("], \"rejected\": [");
    for (int i = 0; i < r->n_rejected; i++) {
        fputs(comma(i), stdout);
        json_rejected(&r->rejected[i], a);
    }
    putchar(']');
}

/* -- chains ------------------------------------------------------------------------------------ */

typedef struct Chain {
    const char *names; /* the value of --backend for the chain; "none": it has no backends */
    const PartitionReport *report;
} Chain;

static const PartitionReport *partition_with(const Options *o, const char *backend, Arena *a,
                                             Diag *d)
{
    Options with = *o;
    with.backend = backend;
    Program *p = model_partition(&with, a, d);
    return p ? p->session->partition : NULL;
}

/* Returns the report of the model without backends, which follows from the report of any chain. */
static PartitionReport *without(const PartitionReport *any, Arena *a)
{
    PartitionReport *r = NEW(a, PartitionReport, 1);
    *r = (PartitionReport){.n_nodes = any->n_nodes, .macs = any->macs,
                           .seconds = any->seconds_outside,
                           .seconds_outside = any->seconds_outside};
    return r;
}

/* Returns the chains to compare: no backend, each backend alone, and all of --backend if these are
 * several.  NULL: an error was reported. */
static Chain *chains_of(const Options *o, Arena *a, int *n, Diag *d)
{
    Chain *all = NULL, next = {"none", NULL};
    PUSH(a, all, *n, next);
    for (const char *at = o->backend; *at; at += *at == ',') {
        size_t len = strcspn(at, ",");
        next.names = arena_str(a, at, len);
        at += len;
        if (strcmp(next.names, "portable") != 0) {
            next.report = partition_with(o, next.names, a, d);
            PUSH(a, all, *n, next);
        }
    }
    next = (Chain){o->backend, *n > 2 ? partition_with(o, o->backend, a, d) : NULL};
    if (next.report)
        PUSH(a, all, *n, next);
    if (diag_errors(d))
        return NULL;
    all[0].report = without(all[1].report, a);
    return all;
}

static void put_chains(const Chain *c, int n)
{
    printf("%-24s %8s %8s %8s %12s %12s\n", "chain", "regions", "nodes", "of", "% of macs", "ms");
    for (int i = 0; i < n; i++)
        printf("%-24s %8d %8d %8d %12.4g %12.4g\n", c[i].names, c[i].report->n_regions,
               c[i].report->n_taken, c[i].report->n_nodes, partition_percent(c[i].report),
               c[i].report->seconds * 1e3);
}

static void json_chains(const Chain *c, int n, Arena *a)
{
    printf("\"chains\": [");
    for (int i = 0; i < n; i++) {
        printf("%s{\"backends\": %s, \"regions\": %d, ", comma(i), json_text(a, c[i].names),
               c[i].report->n_regions);
        json_sums(c[i].report);
        putchar('}');
    }
    putchar(']');
}

static bool simulate(const Options *o, Arena *a, Diag *d)
{
    int n = 0;
    Chain *c = chains_of(o, a, &n, d);
    if (c && !o->json)
        put_chains(c, n);
    if (!c || !o->json)
        return c;
    printf("{\"schema\": 1, \"model\": %s, ", json_text(a, o->model));
    json_chains(c, n, a);
    puts("}");
    return true;
}

/* -- the command ------------------------------------------------------------------------------- */

bool command_partition(const Options *o, Arena *a, Diag *d)
{
    if (o->simulate)
        return simulate(o, a, d);
    Program *p = model_partition(o, a, d);
    if (!p || !partition_gate(o, p, d))
        return false;
    if (o->json) {
        printf("{\"schema\": 1, \"model\": %s, \"backends\": %s, ", json_text(a, o->model),
               json_text(a, o->backend));
        json_report(p->session->partition, a);
        puts("}");
    } else {
        put_report(p->session->partition, a);
    }
    return true;
}
