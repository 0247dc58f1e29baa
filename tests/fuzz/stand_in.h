/* stand_in.h -- a delegate that takes the place of XNNPACK.  It checks a blob, and the sizes of
 * each call, as runtime-lite does before it calls the library.  Its results are constant bytes. */
#ifndef TESTS_FUZZ_STAND_IN_H
#define TESTS_FUZZ_STAND_IN_H

#include "runtime-lite/delegates/xnn_graph.h"
#include <stdlib.h>
#include <string.h>

typedef struct StandIn {
    XnnNames names;
    XnnGraph graph;
    XnnShape *shape;
} StandIn;

static void stand_in_free(void *state)
{
    StandIn *s = state;
    etc_xnn_free(&s->graph);
    free(s->names.row);
    free(s->shape);
    free(s);
}

static EtcStatus stand_in_init(void *host, const EtcBlob *blob, void **state, EtcError *e)
{
    (void)host;
    StandIn *s = calloc(1, sizeof *s);
    EtcStatus status = etc_xnn_names(blob->program, &s->names, e);
    if (!status)
        status = etc_xnn_read(blob->data, blob->n_bytes, &s->names, &s->graph, e);
    s->shape = calloc((size_t)s->graph.n_values + 1, sizeof *s->shape);
    if (status) {
        stand_in_free(s);
        return status;
    }
    *state = s;
    return ETC_OK;
}

static void stand_in_shape(const EtcTensor *t, XnnShape *s)
{
    *s = (XnnShape){1, {1}};
    s->rank = t->rank ? (uint32_t)t->rank : 1;
    for (int k = 0; k < t->rank; k++)
        s->dim[k] = (size_t)t->dim[t->order ? t->order[k] : k];
}

static EtcStatus stand_in_give(EtcTensor *t, const XnnShape *s, EtcError *e)
{
    int32_t dim[XNN_RANK] = {0};
    for (int k = 0; k < t->rank; k++)
        dim[t->order ? t->order[k] : k] = (int32_t)s->dim[k];
    if (t->rank && (uint32_t)t->rank != s->rank)
        return etc_xnn_fail(e, ETC_BAD_FILE, "output of another rank", XNN_NO_ID);
    if (etc_resize(t, dim, t->rank))
        return etc_xnn_fail(e, ETC_BAD_FILE, "output does not take its sizes", XNN_NO_ID);
    memset(t->data, 1, (size_t)etc_numel(t) * etc_dtype_size((int)t->dtype));
    return ETC_OK;
}

static EtcStatus stand_in_run(void *state, EtcValue *const *arg, int32_t n_args, EtcError *e)
{
    StandIn *s = state;
    const XnnGraph *g = &s->graph;
    EtcStatus status = ETC_OK;
    if ((uint32_t)n_args < g->n_externals)
        return etc_xnn_fail(e, ETC_BAD_FILE, "call with too few arguments", XNN_NO_ID);
    for (uint32_t i = 0; i < g->n_values; i++)
        s->shape[i] = g->value[i].shape;
    for (uint32_t k = 0; k < g->n_externals; k++) {
        uint32_t at = g->external[k];
        if (at == XNN_NO_ID)
            continue;
        if (arg[k]->tag != ETC_TENSOR || arg[k]->as.tensor->rank > XNN_RANK)
            return etc_xnn_fail(e, ETC_BAD_FILE, "argument of another kind or rank", k);
        if (g->value[at].is_input)
            stand_in_shape(arg[k]->as.tensor, &s->shape[at]);
    }
    status = etc_xnn_infer(g, s->shape, e);
    for (uint32_t k = 0; k < g->n_externals && !status; k++)
        if (g->external[k] != XNN_NO_ID && g->value[g->external[k]].is_output)
            status = stand_in_give(arg[k]->as.tensor, &s->shape[g->external[k]], e);
    return status;
}

static const EtcDelegate stand_in = {
    .id = "XnnpackBackend", .init = stand_in_init, .run = stand_in_run, .free = stand_in_free};

#endif
