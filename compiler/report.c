/* report.c -- draws the memory plan that --report writes as SVG, alone or in a page
 * (report_page.c).
 *
 * There is one chart for each method.  The x axis has the nodes in their order, between the inputs
 * (0) and the outputs.  The y axis has the bytes of the pools.  A rectangle is the place of a value
 * during its live range, which includes the reads of its views; values that share bytes have one
 * colour.  Lines show the arena, the bound for this order, and the bound for any order.  A tooltip
 * shows the name, the node, the source line and the bytes.
 */
#include "compiler/compiler.h"
#include <inttypes.h>
#include <string.h>

enum { WIDTH = 1200, HEIGHT = 620, LEFT = 96, RIGHT = 196, TOP = 64, BOTTOM = 48, N_TICKS = 6 };

typedef struct Chart {
    FILE *f;
    Arena *a;
    const Graph *g;
    PlanReport plan;
    int width, n_times, top; /* top: the y coordinate of the chart's upper edge */
} Chart;

/* Returns the width of a chart, with at least two pixels for each node, up to a limit. */
static int width_for(const Graph *g)
{
    enum { MOST = 16000 };
    int n = 0;
    for (const Node *x = g->first; x; x = x->next)
        n++;
    return n > (WIDTH - LEFT - RIGHT) / 2 ? (n < MOST / 2 ? 2 * n : MOST) + LEFT + RIGHT : WIDTH;
}

/* -- scales ------------------------------------------------------------------------------------ */

static double x_of(const Chart *c, int time)
{
    return (double)LEFT + (double)(c->width - LEFT - RIGHT) * time / (c->n_times > 0 ? c->n_times : 1);
}

static double y_of(const Chart *c, int64_t byte)
{
    double all = c->plan.arena > 0 ? (double)c->plan.arena : 1;
    return c->top + HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * ((double)byte / (all * 1.04));
}

static void put_axes(const Chart *c)
{
    int64_t step = c->plan.arena / (N_TICKS - 1) ? c->plan.arena / (N_TICKS - 1) : 1;
    for (int i = 0; i < N_TICKS; i++) {
        double y = y_of(c, step * i);
        fprintf(c->f, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>"
                      "<text x=\"%d\" y=\"%.1f\" class=\"tick\" text-anchor=\"end\">%s</text>\n",
                LEFT, c->width - RIGHT, y, y, LEFT - 8, y + 4, in_units(c->a, (double)step * i));
    }
    int every = c->n_times / 8 ? c->n_times / 8 : 1;
    for (int t = 0; t < c->n_times; t += every)
        fprintf(c->f, "<text x=\"%.1f\" y=\"%d\" class=\"tick\" text-anchor=\"middle\">%d</text>\n",
                (x_of(c, t) + x_of(c, t + 1)) / 2, c->top + HEIGHT - BOTTOM + 18, t);
    fprintf(c->f, "<text x=\"%d\" y=\"%d\" class=\"tick\" text-anchor=\"middle\">node</text>\n",
            (LEFT + c->width - RIGHT) / 2, c->top + HEIGHT - BOTTOM + 36);
}

/* Draws a horizontal line at this number of bytes.  Its label is number `slot` from the top, so
 * that no labels overlap. */
static void put_line(const Chart *c, int64_t bytes, const char *class, const char *what, int slot)
{
    double y = y_of(c, bytes);
    int label = c->top + TOP + 12 + 40 * slot;
    fprintf(c->f, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", LEFT,
            c->width - RIGHT, y, y, class);
    fprintf(c->f, "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" class=\"%s\"/>"
                  "<text x=\"%d\" y=\"%d\" class=\"label\">%s</text>"
                  "<text x=\"%d\" y=\"%d\" class=\"tick\">%s</text>\n",
            c->width - RIGHT + 12, c->width - RIGHT + 32, label, label, class, c->width - RIGHT + 38,
            label + 4, what, c->width - RIGHT + 38, label + 20, with_commas(c->a, bytes));
}

/* -- values ------------------------------------------------------------------------------------ */

static bool is_drawn(const Value *v)
{
    return value_place(v).pool > 0 && v->type.rank != SCALAR && !v->type.is_none;
}

static bool is_view(const Node *n)
{
    const Value *x = first_operand(n), *y = n->n_out == 1 ? n->out[0] : NULL;
    return x && y && op_info[n->op].flags & VIEW && is_drawn(x) && is_drawn(y) &&
           value_lies_within(y, x);
}

static void put_value(const Chart *c, const Value *v, int colour, int from, int to)
{
    static const char *const fill[] = {"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2",
                                       "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#86bcb6",
                                       "#d37295", "#8cd17d"};
    int64_t lo = value_place(v).offset, bytes = type_bytes(v->type);
    if (!is_drawn(v) || !bytes)
        return;
    for (int i = 0; i < value_place(v).pool - 1; i++) /* banks are drawn one above the other */
        lo += c->g->pool[i];
    double x = x_of(c, from), y = y_of(c, lo + bytes);
    fprintf(c->f,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>", x, y,
            x_of(c, to + 1) - x, y_of(c, lo) - y, fill[colour % 12]);
    html_put(c->f, v->name);
    fprintf(c->f, " %s\n%s bytes at %s, nodes %d to %d", type_shown(c->a, v->type),
            with_commas(c->a, bytes), with_commas(c->a, lo), from, to);
    if (v->def) {
        fputc('\n', c->f);
        html_put(c->f, v->def->loc.node);
        fprintf(c->f, " (%s)", node_target(v->def));
    }
    if (v->def && v->def->loc.source) {
        fprintf(c->f, "\n");
        html_put(c->f, v->def->loc.module);
        fprintf(c->f, " ");
        html_put(c->f, v->def->loc.source);
    } else if (!v->def) {
        fputs(v->state ? "\nstate" : "\ninput", c->f);
    }
    fputs("</title></rect>\n", c->f);
}

/* Returns, by index of value, the last time at which the value or a view of it is read.  It is
 * n_times - 1 for outputs and for values that update a state. */
static int *last_reads(const Graph *g, int n_times, Arena *a)
{
    int *last = NEW(a, int, g->n_values + 1), time = 0;
    for (int i = 0; i < g->n_out; i++)
        last[g->out[i]->index] = n_times - 1;
    for (int i = 0; i < g->n_updates; i++)
        last[g->update[i].value->index] = n_times - 1;
    for (const Node *n = g->first; n; n = n->next)
        time++;
    for (const Node *n = g->last; n; n = n->prev, time--) {
        int until = is_view(n) && last[n->out[0]->index] > time ? last[n->out[0]->index] : time;
        for (int i = 0; i < n->n_in; i++) {
            int *l = &last[n->in[i]->index];
            int to = i ? time : until;
            *l = to > *l ? to : *l;
        }
    }
    return last;
}

static void put_graph(const Chart *c, const Graph *g, int at);

static void put_branches(const Chart *c, const Node *n, int time)
{
    for (const Graph *g = NULL; (g = region_planned(n, g));)
        put_graph(c, g, time);
}

/* Draws the values of a graph and of its branches.  If at >= 0, the graph is a branch, and all its
 * nodes are drawn at that time. */
static void put_graph(const Chart *c, const Graph *g, int at)
{
    AliasSets sets = alias_sets(g, c->a);
    int time = 0, *last = last_reads(g, c->n_times, c->a);
    for (int i = 0; i < g->n_in && at < 0; i++)
        put_value(c, g->in[i], sets.root[g->in[i]->index], 0, last[g->in[i]->index]);
    for (int i = 0; i < g->n_states && at < 0; i++)
        put_value(c, g->state[i], g->state[i]->index, 0, c->n_times - 1);
    for (const Node *n = g->first; n; n = n->next) {
        time++;
        for (int i = 0; i < n->n_out && !is_view(n); i++) {
            int until = last[n->out[i]->index] > time ? last[n->out[i]->index] : time;
            put_value(c, n->out[i], sets.root[n->out[i]->index], at < 0 ? time : at,
                      at < 0 ? until : at);
        }
        put_branches(c, n, at < 0 ? time : at);
    }
}

/* -- the picture ------------------------------------------------------------------------------- */

/* Draws a line at the start of each bank except the first, and the names and sizes of all banks. */
static void put_banks(const Chart *c)
{
    const MemoryBanks *ram = &c->g->program->session->ram;
    int64_t from = 0;
    for (int i = 0; i < ram->n && i < c->g->n_pools; from += c->g->pool[i++]) {
        double y = y_of(c, from);
        if (i)
            fprintf(c->f, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" "
                          "class=\"arena\"/>\n", LEFT, c->width - RIGHT, y, y);
        fprintf(c->f, "<text x=\"%d\" y=\"%.1f\" class=\"label\">bank %s: %s of %s bytes</text>\n",
                LEFT + 6, y - 4, ram->item[i].name, with_commas(c->a, c->g->pool[i]),
                with_commas(c->a, ram->item[i].bytes));
    }
}

static void put_chart(Chart *c)
{
    for (const Node *n = c->g->first; n; n = n->next)
        c->n_times++;
    c->n_times += 2;
    fprintf(c->f, "<text x=\"%d\" y=\"%d\" class=\"title\">", LEFT, c->top + 28);
    html_put(c->f, c->g->program->name);
    fputs(", ", c->f);
    html_put(c->f, c->g->name);
    fprintf(c->f, "</text>\n<text x=\"%d\" y=\"%d\" class=\"label\">memory of %d nodes: "
                  "arena %s bytes%s; scratch %s bytes</text>\n",
            LEFT, c->top + 48, c->n_times - 2, with_commas(c->a, c->plan.arena),
            c->plan.is_least ? ", proven least for this order" : "",
            with_commas(c->a, c->plan.scratch));
    put_axes(c);
    put_graph(c, c->g, -1);
    put_banks(c);
    put_line(c, c->plan.arena, "arena", "arena", 0);
    put_line(c, c->plan.bound, "bound", "bound, this order", 1);
    put_line(c, c->plan.order_free, "free", "bound, any order", 2);
}

void report_svg(FILE *f, const Program *p, Arena *a)
{
    int height = HEIGHT * (p->n_methods ? p->n_methods : 1), width = WIDTH;
    for (int i = 0; i < p->n_methods; i++)
        width = width_for(p->method[i]) > width ? width_for(p->method[i]) : width;
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
               "height=\"%d\" font-family=\"sans-serif\">\n", width, height, width, height);
    fputs(
        "<style>rect{stroke:#fff;stroke-width:.4}rect:hover{stroke:#000;stroke-width:1.5}"
        ".back{fill:#fff;stroke:none}.grid{stroke:#e4e4e4}.tick{font-size:11px;fill:#666}"
        ".label{font-size:13px;fill:#333}.title{font-size:18px;fill:#111}"
        ".arena{stroke:#111;stroke-width:2}.bound{stroke:#d62728;stroke-width:2;"
        "stroke-dasharray:7 4}.free{stroke:#1f4fd6;stroke-width:2;stroke-dasharray:2 4}</style>\n",
        f);
    fprintf(f, "<rect class=\"back\" width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height);
    for (int i = 0; i < p->n_methods; i++) {
        Chart c = {.f = f, .a = a, .g = p->method[i], .plan = plan_report(p->method[i], a),
                   .top = HEIGHT * i, .width = width_for(p->method[i])};
        put_chart(&c);
    }
    fputs("</svg>\n", f);
}

bool report_add(const Options *o, const Program *p, const QuantReport *q, OutBatch *out, Arena *a,
                Diag *d)
{
    Text t;
    FILE *f = text_open(&t);
    if (f && ends_in(o->report, ".svg"))
        report_svg(f, p, a);
    else if (f)
        page_put(f, p, q, a);
    return output_text(o, out, &t, o->report, d);
}
