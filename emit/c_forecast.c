/* c_forecast.c -- forecasts how many instructions and cycles the functions of a model take on a
 * microcontroller.
 *
 * A kernel takes a sum of five products: a number for the call, one for each multiply-add (with
 * those that fill up its blocks), one for each element that is gathered for them or read, one for
 * each element of the result, and one for each row of the result.  tests/mcu/fit_forecast.py fits
 * these numbers to counts of QEMU, of small random networks compiled by gcc 12 at -O2, and prints
 * c_forecast.def.  docs/cli.md says how far the forecast is off.  QEMU counts no cycles: those of
 * an instruction are rough guesses for the inner loops, with memory that keeps up. */
#include "emit/c_emit.h"
#include <string.h>

enum { N_CORES = 4 };

typedef struct Fit {
    float call, step, term, output, row;
} Fit;

static const struct {
    const char *target;
    int core;
    double cycles; /* for an instruction */
} core_row[] = {
    {"cortex-m0plus", 0, 1.4}, {"cortex-m3", 1, 1.3},  {"cortex-m4", 2, 1.2},
    {"cortex-m7", 2, 0.7},     {"cortex-m33", 2, 1.1}, {"cortex-m55", 3, 1.6},
};

/* "etc_mcu_any" stands for etc_mcu_depthwise with windows that have no core of their own,
 * "etc_store" for loops over floats, and "loop" for loops over integers.  Their steps are the
 * elements of the result times the nodes. */
static const struct {
    const char *kernel;
    Fit fit[N_CORES]; /* Cortex-M0+, M3, M4 (also M7 and M33), M55 */
} kernel_row[] = {
#include "emit/c_forecast.def"
};

enum {
    N_ROWS = sizeof core_row / sizeof *core_row,
    N_KERNELS = sizeof kernel_row / sizeof *kernel_row
};

/* Returns the row of the first kernel that a text calls, or that of loops; -1: there is none. */
static int find_kernel(const char *text)
{
    const char *first = NULL;
    int found = -1;
    for (int i = 0; i < N_KERNELS; i++) {
        const size_t n = strlen(kernel_row[i].kernel);
        for (const char *at = text; (at = strstr(at, kernel_row[i].kernel)); at += n)
            if (at[n] == '(' && (!first || at < first)) {
                first = at;
                found = i;
                break;
            }
    }
    for (int i = 0; found < 0 && strstr(text, "for (") && i < N_KERNELS; i++)
        found = strcmp(kernel_row[i].kernel, "loop") ? -1 : i;
    return found;
}

static void forecast(CLayer *to, int kernel, int row)
{
    const Fit *fit = &kernel_row[kernel].fit[core_row[row].core];
    to->kernel = kernel_row[kernel].kernel;
    const double sum = fit->call + fit->step * to->steps + fit->term * to->terms +
                       fit->output * to->outputs + fit->row * to->rows;
    if (sum > 0) { /* 0: no network of the fit has the kernel on this core */
        to->instructions = sum;
        to->cycles = sum * core_row[row].cycles;
    }
}

/* Returns the elements of a value with all sizes at their upper bounds; 0: there is no bound. */
static double elements(const Value *v)
{
    const int64_t n = v->type.is_none ? 0 : type_numel(v->type);
    return n == INT64_MAX ? 0 : (double)n;
}

static void count_elements(const Node *n, const Graph *body, CLayer *to)
{
    int nodes = 0;
    for (const Node *k = body ? body->first : NULL; k; k = k->next)
        nodes++;
    for (int i = 0; i < n->n_out; i++) {
        const Type t = n->out[i]->type;
        const double all = elements(n->out[i]);
        to->outputs += all;
        to->rows += t.rank > 0 && all > 0 ? all / (double)dim_upper(t.dim[t.rank - 1]) : 1;
    }
    for (int i = 0; i < n->n_in && to->terms <= 0; i++)
        to->terms += n->in[i]->state ? 0 : elements(n->in[i]);
    to->steps = to->steps > 0 ? to->steps : to->outputs * (nodes ? nodes : 1);
}

void note_layer(Emit *e, const Function *f, const Node *n, const char *name, const Graph *body)
{
    if (!e->o->forecasts)
        return;
    CLayer to = {.function = name, .kernel = "", .loc = n->loc, .op = node_target(n),
                 .macs = (double)e->macs, .steps = f->steps, .terms = f->terms,
                 .flash = e->flash - e->told_flash, .ram = live_bytes(e) + f->gap_bytes,
                 .stack = stack_below(e, f->body.s), .instructions = -1, .cycles = -1};
    count_elements(n, body, &to);
    e->told_flash = e->flash;
    int kernel = f->body.n ? find_kernel(f->kernel ? f->kernel : f->body.s) : -1;
    for (int i = 0; kernel >= 0 && i < N_ROWS; i++)
        if (!strcmp(core_row[i].target, e->target->name))
            forecast(&to, kernel, i);
    PUSH(e->a, e->layer, e->n_layers, to);
}
