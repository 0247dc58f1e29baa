/* xnn_pack.c -- decides which nodes share packed weights, and packs with all threads.
 *
 * While it creates a runtime, the library packs node by node in one thread.  It does not pack
 * weights that are in its cache.  So any free thread first creates a graph of one node and
 * throws it away; the packed weights stay in the cache, where the whole graph finds them.  A
 * node that cannot be created alone is packed with its graph. */
#include "runtime-lite/delegates/xnn_host.h"

#include <stdlib.h>
#include <string.h>

enum { WORTH = 64 << 10 }; /* bytes of filters */

typedef struct Packing {
    EtcXnnpack *host;
    const XnnGraph *graph;
    uint32_t *node, n_nodes; /* the nodes that pack: the first node with each filter */
    uint32_t *id;            /* the library's ids of values, by thread */
} Packing;

static int packs(const XnnGraph *g, const XnnNode *n)
{
    const int may = (n->kind == XNN_FULLY_CONNECTED) || (n->kind == XNN_CONV) ||
                    (n->kind == XNN_DEPTHWISE) || (n->kind == XNN_CONV_TRANSPOSE) ||
                    (n->kind == XNN_BATCH_MATMUL);
    return may && (g->value[n->in[1]].data != NULL);
}

static XnnUse use_of(const EtcXnnpack *x, const XnnGraph *g, const XnnNode *n)
{
    const uint32_t value[] = {n->in[0], n->in[1], n->out[0],
                              (n->n_in > 2) ? n->in[2] : XNN_NO_ID};
    const XnnValue *filter = &g->value[n->in[1]];
    XnnUse u;
    memset(&u, 0, sizeof u);
    u.is_set = 1;
    u.kind = n->kind;
    u.flags = n->flags;
    memcpy(u.field, n->field, sizeof u.field);
    for (int k = 0; k < 4; k++) {
        if (value[k] != XNN_NO_ID) {
            u.type[k] = g->value[value[k]].type;
        }
        if (k < 3) {
            u.scale[k] = g->value[value[k]].scale;
            u.zero[k] = g->value[value[k]].zero;
        }
    }
    const uint32_t bias = (value[3] == XNN_NO_ID) ? XNN_NO_ID : g->value[value[3]].key;
    u.bias = (bias == XNN_NO_ID) ? XNN_NO_ID : x->first[bias];
    u.group = filter->group;
    u.rank = filter->shape.rank;
    memcpy(u.dim, filter->shape.dim, sizeof u.dim);
    u.scales = filter->scales;
    return u;
}

static uint64_t bytes_of(const XnnGraph *g, const XnnNode *n)
{
    const int has_bias = (n->n_in > 2) && (n->in[2] != XNN_NO_ID);
    return g->value[n->in[1]].n_bytes + (has_bias ? g->value[n->in[2]].n_bytes : 0);
}

/* Returns whether filters with the same bytes are all packed in the same way.  Lists the nodes
 * with a filter that no node before them has, and counts the bytes to be packed. */
static int may_share(Packing *p, uint64_t *n_bytes)
{
    const XnnGraph *g = p->graph;
    EtcXnnpack *x = p->host;
    int may = !g->has_inline;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        if (!packs(g, &g->node[i])) {
            continue;
        }
        XnnUse u, *seen = NULL;
        if (may) {
            u = use_of(x, g, &g->node[i]);
            seen = &x->use[x->first[g->value[g->node[i].in[1]].key]];
            may = !seen->is_set || (memcmp(&u, seen, sizeof u) == 0);
        }
        if (!may || !seen->is_set) {
            *n_bytes += bytes_of(g, &g->node[i]);
            p->node[p->n_nodes++] = i;
        }
        if (may) {
            *seen = u;
        }
    }
    return may;
}

/* -- a node alone ------------------------------------------------------------------------------ */

static enum xnn_status define_alone(const XnnDraft *d, uint32_t i)
{
    const XnnNode *n = &d->graph->node[i];
    enum xnn_status x = xnn_status_success;
    for (uint32_t k = 0; (x == xnn_status_success) && (k < n->n_in + 1); k++) {
        const uint32_t place = (k < n->n_in) ? n->in[k] : n->out[0];
        if (place == XNN_NO_ID) {
            continue;
        }
        XnnValue v = d->graph->value[place];
        v.is_input = (k < n->n_in) && (v.data == NULL);
        v.is_output = k == n->n_in;
        v.external = v.is_input ? 0 : v.is_output ? 1 : XNN_NO_ID;
        x = etc_xnn_define_value(d, place, &v);
    }
    return (x == xnn_status_success) ? etc_xnn_define_node(d, i) : x;
}

static void pack_node(void *context, size_t thread, size_t k)
{
    const Packing *p = context;
    if (etc_xnn_dense_pack(p->host, p->graph, &p->graph->node[p->node[k]])) {
        return;
    }
    XnnDraft d = {p->host, p->graph, NULL, p->id + thread * p->graph->n_values};
    xnn_workspace_t workspace = NULL;
    xnn_runtime_t runtime = NULL;
    enum xnn_status x = xnn_create_workspace(&workspace);
    x = (x == xnn_status_success) ? xnn_create_subgraph(2, 0, &d.subgraph) : x;
    x = (x == xnn_status_success) ? define_alone(&d, p->node[k]) : x;
    if (x == xnn_status_success) {
        x = xnn_create_runtime_v4(d.subgraph, &p->host->cache.provider, workspace, NULL, 0,
                                  &runtime);
    }
    if (runtime != NULL) {
        xnn_delete_runtime(runtime);
    }
    if (d.subgraph != NULL) {
        xnn_delete_subgraph(d.subgraph);
    }
    if (workspace != NULL) {
        xnn_release_workspace(workspace);
    }
}

/* Copies are made here: threads only find them. */
static int copy_constants(EtcXnnpack *x, const XnnGraph *g)
{
    for (uint32_t i = 0; i < g->n_values; i++) {
        if ((g->value[i].data != NULL) && (etc_xnn_readable(x, &g->value[i]) == NULL)) {
            return 0;
        }
    }
    return 1;
}

static void read_ahead(const XnnGraph *g)
{
    const uint8_t *from = NULL, *to = NULL;
    for (uint32_t i = 0; i < g->n_values; i++) {
        const XnnValue *v = &g->value[i];
        if (v->data != NULL) {
            from = ((from == NULL) || (v->data < from)) ? v->data : from;
            to = ((to == NULL) || (v->data + v->n_bytes > to)) ? v->data + v->n_bytes : to;
        }
    }
    if (from != NULL) {
        etc_xnn_will_read(from, (size_t)(to - from));
    }
}

static void pack_all(Packing *p)
{
    EtcXnnpack *x = p->host;
    for (uint32_t k = 0; (x->pool == NULL) && (k < p->n_nodes); k++) {
        (void)etc_xnn_dense_pack(x, p->graph, &p->graph->node[p->node[k]]);
    }
    if (x->pool == NULL) {
        return;
    }
    p->id = calloc((size_t)x->n_threads * p->graph->n_values, sizeof *p->id);
    if ((p->id != NULL) && copy_constants(x, p->graph)) {
        x->cache.is_packing = x->cache.is_sharing = 1;
        pthreadpool_parallelize_1d_with_thread(x->pool, pack_node, p, p->n_nodes, 0);
        x->cache.is_packing = 0;
    }
    free(p->id);
}

int etc_xnn_pack(EtcXnnpack *x, const XnnGraph *g)
{
    Packing p = {x, g, NULL, 0, NULL};
    uint64_t n_bytes = 0;
    p.node = malloc(((size_t)g->n_nodes + 1) * sizeof *p.node);
    if (p.node == NULL) {
        return 0;
    }
    const int shares = may_share(&p, &n_bytes);
    read_ahead(g);
    etc_xnn_cache_expect(&x->cache, n_bytes);
    if (shares && (n_bytes >= WORTH)) {
        etc_xnn_dense_learn(x, g, p.node, p.n_nodes);
        pack_all(&p);
    }
    free(p.node);
    return shares;
}
