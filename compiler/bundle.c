/* bundle.c -- --bundle INPUTS[,OUTPUTS]: sample inputs and the outputs that are expected for
 * each, for a file that the official runtime's verifier reads.  The expected outputs are read
 * from the files of OUTPUTS, laid out as `etc run` writes them.  Without OUTPUTS, the evaluator
 * computes them from the exported model. */
#include "compiler/compiler.h"
#include "compiler/run.h"
#include <string.h>

typedef struct Maker {
    const Options *o;
    const Graph *graph; /* the model in floats */
    const char *inputs, *outputs; /* outputs NULL: the evaluator computes them */
    int n_syms;
    Bundle bundle;
    Arena *arena;
    Diag *diag;
} Maker;

const char *bundle_inputs(const Options *o, Arena *a)
{
    return arena_str(a, o->bundle, strcspn(o->bundle, ","));
}

const char *bundle_outputs(const Options *o)
{
    const char *comma = strchr(o->bundle, ',');
    return comma ? comma + 1 : NULL;
}

/* -- which values fit into a bundle ------------------------------------------------------------ */

static bool has_values(const Maker *m)
{
    const Graph *g = m->graph;
    bool ok = true;
    for (int i = 0; i < g->n_in; i++) {
        const Arg *fixed = g->in[i]->literal;
        if (fixed && fixed->kind != ARG_INT && fixed->kind != ARG_FLOAT && fixed->kind != ARG_BOOL)
            ok = diag_unsupported(m->diag, (Loc){.file = m->o->model, .node = g->in[i]->name},
                                  "--bundle: this input is neither a tensor nor a number");
    }
    for (int i = 0; i < g->n_out; i++)
        if (g->out[i]->type.is_none || g->out[i]->type.rank == SCALAR)
            ok = diag_unsupported(m->diag, (Loc){.file = m->o->model, .node = g->out[i]->name},
                                  "--bundle: the verifier compares tensors alone, and output %d is "
                                  "none", i);
    return ok;
}

static EtcValue tensor_value(EtcTensor *t)
{
    return (EtcValue){.tag = ETC_TENSOR, .as.tensor = t};
}

static EtcValue input_value(const Value *v, EtcTensor *t)
{
    if (!v->literal)
        return tensor_value(t);
    if (v->literal->kind == ARG_INT)
        return (EtcValue){.tag = ETC_INT, .as.i = v->literal->dim.value};
    if (v->literal->kind == ARG_FLOAT)
        return (EtcValue){.tag = ETC_DOUBLE, .as.d = v->literal->f};
    return (EtcValue){.tag = ETC_IS_BOOL, .as.b = v->literal->b};
}

/* -- one sample -------------------------------------------------------------------------------- */

static bool read_output(const Maker *m, int sample, int i, EtcTensor **out)
{
    Type want = m->graph->out[i]->type;
    const char *folder = m->outputs;
    if (m->bundle.n > 1)
        folder = arena_printf(m->arena, "%s/%d", folder, sample);
    const char *path = arena_printf(m->arena, "%s/output_%d.npy", folder, i);
    *out = npy_read(m->o->files, m->arena, path, (int)want.dtype, m->diag);
    if (!*out)
        return false;
    return tensor_is_of_type(*out, want) ||
           diag_error(m->diag, (Loc){.file = path}, "is %s, but output %d of the model is %s",
                      tensor_shown(m->arena, *out), i, type_shown(m->arena, want));
}

static bool find_outputs(const Maker *m, int sample, EtcTensor **in, const int64_t *symbol,
                         EtcTensor **out)
{
    const Graph *g = m->graph;
    EtcTensor **update = NEW(m->arena, EtcTensor *, g->n_updates + 1);
    bool ok = true;
    if (!m->outputs) {
        ok = eval_watched(g, in, symbol, (EvalHow){0}, m->arena, out, update, m->diag);
        if (ok)
            states_carry(g, update, m->arena);
        return ok;
    }
    for (int i = 0; i < g->n_out; i++)
        ok = read_output(m, sample, i, &out[i]) && ok;
    return ok;
}

static bool add_sample(const Maker *m, const Samples *s, int k)
{
    const Graph *g = m->graph;
    EtcTensor **in = NEW(m->arena, EtcTensor *, g->n_in + 1);
    EtcTensor **out = NEW(m->arena, EtcTensor *, g->n_out + 1);
    int64_t *symbol = NEW(m->arena, int64_t, m->n_syms + 1);
    const char *name = "";
    BundleCase *to = &m->bundle.item[k];
    if (!s->read(s->ctx, k, m->arena, in, symbol, &name, m->diag) ||
        !find_outputs(m, k, in, symbol, out))
        return false;
    *to = (BundleCase){NEW(m->arena, EtcValue, g->n_in + 1), NEW(m->arena, EtcValue, g->n_out + 1)};
    for (int i = 0; i < g->n_in; i++)
        to->in[i] = input_value(g->in[i], in[i]);
    for (int i = 0; i < g->n_out; i++)
        to->out[i] = tensor_value(out[i]);
    return true;
}

/* -- all samples ------------------------------------------------------------------------------- */

static bool add_samples(Maker *m)
{
    Data *data = data_open(m->o->files, m->inputs, m->graph, m->arena, m->diag);
    if (!data)
        return false;
    Samples s = data_samples(data);
    bool ok = true;
    m->bundle = (Bundle){m->graph->name, m->graph->n_in, m->graph->n_out, s.n, NULL};
    m->bundle.item = NEW(m->arena, BundleCase, s.n);
    for (int i = 0; i < s.n && ok; i++)
        ok = add_sample(m, &s, i);
    data_close(data);
    return ok;
}

bool bundle_make(const Options *o, Arena *a, Bundle *out, Diag *d)
{
    Options plain = *o;
    plain.command = CMD_VERIFY; /* the evaluator runs the composites of the user's operators */
    Program *p = model_evaluable(&plain, a, d);
    if (!p)
        return false;
    Maker m = {.o = o, .graph = p->method[0], .n_syms = p->n_syms, .arena = a, .diag = d,
               .inputs = bundle_inputs(o, a), .outputs = bundle_outputs(o)};
    bool ok = has_values(&m) && add_samples(&m);
    *out = m.bundle;
    return ok;
}
