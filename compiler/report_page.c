/* report_page.c -- writes the page of --report FILE.html, which describes a compiled model in one
 * file without scripts that loads no other file.
 *
 * The page has the numbers of each method, the memory plan, the regions of backends and the reasons
 * why other nodes stay outside, the layers by estimated time and by bytes, and the cost of
 * quantization.  In a long table of layers only the first rows are shown and the others are folded,
 * so that models with thousands of nodes stay readable. */
#include "compiler/compiler.h"
#include "compiler/quantize.h"
#include "compiler/run.h"
#include <stdlib.h>
#include <string.h>

enum { ROWS_SHOWN = 40 };

typedef struct Layer {
    Loc loc;
    const char *op, *where; /* where: "kernel", or the name of the backend */
    double seconds;
    int64_t weights, results; /* bytes */
    int at;                   /* the position in the order of the program */
} Layer;

typedef struct Layers {
    Arena *a;
    Layer *item;
    int n;
    double seconds;
    int64_t weights;
} Layers;

/* -- layers ------------------------------------------------------------------------------------ */

static void add_layer(Layers *l, const Node *n, const char *where, double seconds)
{
    Layer x = {.loc = n->loc, .op = node_target(n), .where = where, .seconds = seconds,
               .at = l->n};
    for (int i = 0; i < n->n_in; i++)
        if (value_is_fixed(n->in[i]))
            x.weights += type_bytes(n->in[i]->type);
    for (int i = 0; i < n->n_out; i++)
        x.results += n->out[i]->type.is_none ? 0 : type_bytes(n->out[i]->type);
    l->seconds += x.seconds;
    l->weights += x.weights;
    if (x.seconds > 0 || x.weights)
        PUSH(l->a, l->item, l->n, x);
}

static void add_graph(Layers *l, const Graph *g)
{
    for (const Node *n = g->first; n; n = n->next) {
        if (n->op == OP_DELEGATE)
            continue;
        add_layer(l, n, "kernel", node_seconds(n));
        for (const Graph *in = NULL; (in = region_next(n, in));)
            add_graph(l, in);
    }
}

static Layers find_layers(const Program *p, Arena *a)
{
    Layers l = {.a = a};
    const PartitionReport *r = p->session->partition;
    for (int i = 0; i < p->n_methods; i++)
        add_graph(&l, p->method[i]);
    for (int i = 0; r && i < r->n_regions; i++)
        for (int k = 0; k < r->region[i].n_nodes; k++) {
            const RegionReport *in = &r->region[i];
            add_layer(&l, in->node[k], in->backend->name, in->backend->cost(in->node[k]));
        }
    return l;
}

static int by_time(const void *a, const void *b)
{
    const Layer *l = a, *r = b;
    int c = (l->seconds < r->seconds) - (l->seconds > r->seconds);
    return c ? c : l->at - r->at;
}

static int by_bytes(const void *a, const void *b)
{
    const Layer *l = a, *r = b;
    int c = (l->weights < r->weights) - (l->weights > r->weights);
    return c ? c : l->at - r->at;
}

static void put_node(FILE *f, const Loc *loc, const char *op)
{
    fputs("<td><b>", f);
    html_put(f, loc->node);
    fputs("</b><br><span>", f);
    html_put(f, op);
    fputs("</span></td><td><span>", f);
    html_put(f, loc->module);
    fputs(loc->module && loc->source ? "<br>" : "", f);
    html_put(f, loc->source);
    fputs("</span></td>", f);
}

static void put_layer(FILE *f, const Layers *all, const Layer *x)
{
    double part = all->seconds > 0 ? x->seconds / all->seconds : 0;
    fputs("<tr>", f);
    put_node(f, &x->loc, x->op);
    fprintf(f, "<td>%s</td><td><div class=\"time\" style=\"width:%.0fpx\"></div></td>"
               "<td class=\"n\">%.4g ms</td><td class=\"n\">%.1f %%</td>",
            x->where, 120 * part, x->seconds * 1e3, 100 * part);
    fprintf(f, "<td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n",
            in_units(all->a, (double)x->weights), in_units(all->a, (double)x->results));
}

static void put_layer_head(FILE *f)
{
    fputs("<table><tr><th>layer</th><th>from</th><th>runs in</th><th></th><th>time</th><th></th>"
          "<th>weights</th><th>result</th></tr>\n", f);
}

/* Writes the table of layers.  The rows after the first ROWS_SHOWN are folded. */
static void put_layers(FILE *f, const Layers *l)
{
    put_layer_head(f);
    for (int i = 0; i < l->n; i++) {
        if (i == ROWS_SHOWN) {
            fprintf(f, "</table>\n<details><summary>%d more</summary>\n", l->n - ROWS_SHOWN);
            put_layer_head(f);
        }
        put_layer(f, l, &l->item[i]);
    }
    fprintf(f, "</table>\n%s", l->n > ROWS_SHOWN ? "</details>\n" : "");
}

static void put_all_layers(FILE *f, const Program *p, Arena *a)
{
    Layers l = find_layers(p, a);
    if (!l.n)
        return;
    qsort(l.item, (size_t)l.n, sizeof *l.item, by_time);
    fprintf(f, "<h2>Layers by time</h2>\n<p>%d layers, together %.4g ms by the cost models, "
               "without the calls of delegates.</p>\n", l.n, l.seconds * 1e3);
    put_layers(f, &l);
    qsort(l.item, (size_t)l.n, sizeof *l.item, by_bytes);
    while (l.n && !l.item[l.n - 1].weights)
        l.n--;
    if (l.n)
        fputs("<h2>Layers by size</h2>\n", f);
    if (l.n)
        put_layers(f, &l);
}

/* -- backends ---------------------------------------------------------------------------------- */

typedef struct Reason {
    const char *why, *fix;
    double seconds;
    int n;
    const Rejected *first;
} Reason;

static int by_loss(const void *a, const void *b)
{
    const Reason *l = a, *r = b;
    int c = (l->seconds < r->seconds) - (l->seconds > r->seconds);
    return c ? c : strcmp(l->why, r->why);
}

static Reason *find_reasons(const PartitionReport *r, int *n, Arena *a)
{
    Table by_why = {.arena = a};
    Reason *all = NEW(a, Reason, r->n_rejected + 1);
    *n = 0;
    for (int i = 0; i < r->n_rejected; i++) {
        const Rejected *x = &r->rejected[i];
        TableItem *at = table_at_text(&by_why, x->refusal.why);
        if (!at->number) {
            at->number = ++*n;
            all[*n - 1] = (Reason){x->refusal.why, x->refusal.fix, 0, 0, x};
        }
        all[at->number - 1].seconds += x->seconds;
        all[at->number - 1].n++;
    }
    qsort(all, (size_t)*n, sizeof *all, by_loss);
    return all;
}

static void put_partition(FILE *f, const PartitionReport *r, Arena *a)
{
    int n;
    const Reason *why = find_reasons(r, &n, a);
    fprintf(f, "<h2>Backends</h2>\n<p>%d regions hold %d of %d nodes and %.4g %% of the "
               "multiply-adds.</p>\n<table><tr><th>region</th><th>backend</th><th>nodes</th>"
               "<th>border</th><th>time</th><th>in kernels</th></tr>\n",
            r->n_regions, r->n_taken, r->n_nodes, partition_percent(r));
    for (int i = 0; i < r->n_regions; i++) {
        const RegionReport *x = &r->region[i];
        fprintf(f, "<tr><td>%d</td><td>%s</td><td class=\"n\">%d</td><td class=\"n\">%s</td>"
                   "<td class=\"n\">%.4g ms</td><td class=\"n\">%.4g ms</td></tr>\n",
                i, x->backend->name, x->n_nodes, in_units(a, (double)x->border_bytes),
                x->seconds * 1e3, x->seconds_outside * 1e3);
    }
    fputs("</table>\n", f);
    if (n)
        fputs("<table><tr><th>stays outside, since</th><th>nodes</th><th>time</th><th>the first"
              "</th><th>from</th><th>what to do</th></tr>\n", f);
    for (int i = 0; i < n; i++) {
        fputs("<tr><td>", f);
        html_put(f, why[i].why);
        fprintf(f, "</td><td class=\"n\">%d</td><td class=\"n\">%.4g ms</td>", why[i].n,
                why[i].seconds * 1e3);
        put_node(f, &why[i].first->loc, op_target(why[i].first->op));
        fputs("<td>", f);
        html_put(f, why[i].fix);
        fputs("</td></tr>\n", f);
    }
    fputs(n ? "</table>\n" : "", f);
}

/* ---------------------------------------------------------------------------------------------- */

static void put_methods(FILE *f, const Program *p, Arena *a)
{
    fputs("<table><tr><th>method</th><th>arena</th><th>least for this order</th><th>scratch</th>"
          "<th>values</th></tr>\n", f);
    for (int i = 0; i < p->n_methods; i++) {
        PlanReport r = plan_report(p->method[i], a);
        fputs("<tr><td>", f);
        html_put(f, p->method[i]->name);
        fprintf(f, "</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td>"
                   "<td class=\"n\">%d</td></tr>\n",
                with_commas(a, r.arena), with_commas(a, r.bound), with_commas(a, r.scratch),
                r.n_values);
    }
    fputs("</table>\n", f);
}

void page_put(FILE *f, const Program *p, const QuantReport *q, Arena *a)
{
    const PartitionReport *r = p->session->partition;
    assert(p->stage == STAGE_PLANNED);
    page_head(f, p->name, "compiled");
    put_methods(f, p, a);
    fprintf(f, "<p>%.4g ms by the cost models.</p>\n", predicted_seconds(p) * 1e3);
    fputs("<h2>Memory</h2>\n<div class=\"scroll\">", f);
    report_svg(f, p, a);
    fputs("</div>\n", f);
    if (r && p->session->n_backends)
        put_partition(f, r, a);
    put_all_layers(f, p, a);
    if (q) {
        fputs("<h2>Quantization</h2>\n", f);
        quant_report_body(q, a, f);
    }
    fputs("</body></html>\n", f);
}
