/* xnnpack.c -- runs XNNPACK blobs through libXNNPACK (Debian 13's, of 2024-11-08).
 *
 * xnn_read.c has checked the graph before the library gets any of it.  Nodes with the same named
 * data share packed weights.  The library finds these by their address and a weak checksum of
 * the node's parameters.  If two nodes pack the same data differently, one of them would get
 * memory of another size.  Therefore a delegate with such a node, or with constants in the blob,
 * shares nothing. */
#include "runtime-lite/delegates/xnn_host.h"

#include <stdlib.h>
#include <string.h>

typedef struct Profile { /* the profile of a runtime, made when it is first needed */
    char *names;
    EtcPart *part;
    uint64_t *microseconds;
    uint32_t n;
} Profile;

typedef struct State {
    EtcXnnpack *host;
    XnnGraph graph;
    xnn_runtime_t runtime;
    uint32_t *id;    /* by place: the library's id of a value */
    XnnShape *shape; /* the sizes in the last call */
    XnnShape *old;   /* the sizes of arguments in the call before it */
    struct xnn_external_value *external;
    Profile profile;
    uint64_t packed_bytes; /* of weights that no earlier delegate has packed */
    uint8_t is_sharing;    /* it shares packed weights */
    uint8_t is_shaped, was_shaped;
} State;

static EtcStatus fail(EtcError *e, EtcStatus status, const char *what, uint32_t index)
{
    return etc_xnn_fail(e, status, what, index);
}

/* -- the library's memory ------------------------------------------------------------------ */

static void *allocate_some(void *context, size_t n)
{
    (void)context;
    return etc_xnn_allocate(sizeof(void *), n);
}

static void *reallocate_some(void *context, void *p, size_t n)
{
    (void)context;
    return (p == NULL) ? etc_xnn_allocate(sizeof(void *), n) : realloc(p, n);
}

static void free_some(void *context, void *p)
{
    (void)context;
    free(p);
}

static void *allocate_aligned(void *context, size_t align, size_t n)
{
    (void)context;
    return etc_xnn_allocate(align, n);
}

static const struct xnn_allocator allocator = {NULL,      allocate_some,    reallocate_some,
                                               free_some, allocate_aligned, free_some};

/* -- host --------------------------------------------------------------------------------- */

EtcXnnpack *etc_xnnpack_new(int n_threads)
{
    EtcXnnpack *x = calloc(1, sizeof *x);
    if (x == NULL) {
        return NULL;
    }
    if (!etc_xnn_cache_start(&x->cache)) {
        free(x);
        return NULL;
    }
    etc_xnn_choose_cpu();
    if ((xnn_initialize(&allocator) != xnn_status_success) ||
        (xnn_create_workspace(&x->workspace) != xnn_status_success)) {
        etc_xnnpack_free(x);
        return NULL;
    }
    x->pool = (n_threads > 1) ? pthreadpool_create((size_t)n_threads) : NULL;
    x->n_threads = (x->pool != NULL) ? (uint32_t)pthreadpool_get_threads_count(x->pool) : 1;
    return x;
}

void etc_xnnpack_profile(EtcXnnpack *x)
{
    x->is_profiling = 1;
}

void etc_xnnpack_free(EtcXnnpack *x)
{
    if (x == NULL) {
        return;
    }
    if (x->workspace != NULL) {
        xnn_release_workspace(x->workspace);
    }
    etc_xnn_cache_free(&x->cache);
    if (x->pool != NULL) {
        pthreadpool_destroy(x->pool);
    }
    while (x->copies != NULL) {
        XnnCopy *c = x->copies;
        x->copies = c->next;
        free(c->data);
        free(c);
    }
    free(x->names.row);
    free(x->first);
    free(x->use);
    free(x);
}

typedef struct Place {
    uintptr_t at;
    uint32_t row;
} Place;

static int by_place(const void *a, const void *b)
{
    const Place *x = a, *y = b;
    int order = (x->at > y->at) - (x->at < y->at);
    return (order != 0) ? order : (x->row > y->row) - (x->row < y->row);
}

/* Finds the first key with the same address for each key, since the library compares addresses. */
static int find_first(EtcXnnpack *x)
{
    const uint32_t n = x->names.n;
    Place *place = calloc((size_t)n + 1, sizeof *place);
    x->first = calloc((size_t)n + 1, sizeof *x->first);
    x->use = calloc((size_t)n + 1, sizeof *x->use);
    const int ok = (place != NULL) && (x->first != NULL) && (x->use != NULL);
    for (uint32_t i = 0; ok && (i < n); i++) {
        place[i].at = (uintptr_t)x->names.row[i].data;
        place[i].row = i;
    }
    if (ok) {
        qsort(place, n, sizeof *place, by_place);
    }
    for (uint32_t i = 0; ok && (i < n); i++) {
        const int same = (i > 0) && (place[i].at == place[i - 1].at);
        x->first[place[i].row] = same ? x->first[place[i - 1].row] : place[i].row;
    }
    free(place);
    return ok;
}

static EtcStatus serve(EtcXnnpack *x, const EtcProgram *p, EtcError *e)
{
    if (x->file != NULL) {
        return (x->file == p->file) ? ETC_OK
                                    : fail(e, ETC_BAD_ARG, "serves another program", XNN_NO_ID);
    }
    EtcStatus status = etc_xnn_names(p, &x->names, e);
    if ((status == ETC_OK) && !find_first(x)) {
        status = fail(e, ETC_NO_MEMORY, "no memory for the names of data", XNN_NO_ID);
    }
    if (status != ETC_OK) {
        free(x->names.row);
        free(x->first);
        free(x->use);
        memset(&x->names, 0, sizeof x->names);
        x->first = NULL;
        x->use = NULL;
        return status;
    }
    x->file = p->file;
    x->file_bytes = p->n_bytes;
    return ETC_OK;
}

/* -- init --------------------------------------------------------------------------------- */

static void stop(void *state)
{
    State *s = state;
    if (s->runtime != NULL) {
        xnn_delete_runtime(s->runtime);
    }
    etc_xnn_free(&s->graph);
    free(s->id);
    free(s->shape);
    free(s->old);
    free(s->external);
    free(s->profile.names);
    free(s->profile.part);
    free(s->profile.microseconds);
    free(s);
}

static EtcStatus refused(EtcError *e, enum xnn_status status, const char *what, uint32_t index)
{
    return fail(e, (status == xnn_status_out_of_memory) ? ETC_NO_MEMORY : ETC_UNSUPPORTED, what,
                index);
}

static EtcStatus define(const XnnDraft *d, const XnnShape *shape, EtcError *e)
{
    const XnnGraph *g = d->graph;
    for (uint32_t i = 0; i < g->n_values; i++) {
        XnnValue v = g->value[i];
        v.shape = shape[i];
        const enum xnn_status x = etc_xnn_define_value(d, i, &v);
        if (x != xnn_status_success) {
            return refused(e, x, "libXNNPACK refuses a value", i);
        }
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const enum xnn_status x = etc_xnn_define_node(d, i);
        if (x != xnn_status_success) {
            return refused(e, x, "libXNNPACK refuses a node", i);
        }
    }
    return ETC_OK;
}

/* Makes a runtime for values with the sizes in s->shape. */
static EtcStatus build(State *s, xnn_runtime_t *runtime, EtcError *e)
{
    EtcXnnpack *host = s->host;
    XnnDraft d = {s->host, &s->graph, NULL, s->id};
    enum xnn_status x = xnn_create_subgraph(s->graph.n_externals, 0, &d.subgraph);
    if (x != xnn_status_success) {
        return refused(e, x, "libXNNPACK refuses the graph", XNN_NO_ID);
    }
    EtcStatus status = define(&d, s->shape, e);
    if (status == ETC_OK) {
        host->cache.is_packing = 1;
        host->cache.is_sharing = s->is_sharing;
        x = xnn_create_runtime_v4(d.subgraph, &host->cache.provider, host->workspace, host->pool,
                                  host->is_profiling ? XNN_FLAG_BASIC_PROFILING : 0, runtime);
        host->cache.is_packing = 0;
        status = (x == xnn_status_success)
                     ? ETC_OK
                     : refused(e, x, "libXNNPACK refuses the graph", XNN_NO_ID);
    }
    xnn_delete_subgraph(d.subgraph);
    return status;
}

static EtcStatus allocate(State *s, EtcError *e)
{
    const XnnGraph *g = &s->graph;
    s->id = calloc((size_t)g->n_values + 1, sizeof *s->id);
    s->shape = calloc((size_t)g->n_values + 1, sizeof *s->shape);
    s->old = calloc((size_t)g->n_externals + 1, sizeof *s->old);
    s->external = calloc((size_t)g->n_externals + 1, sizeof *s->external);
    if (!s->id || !s->shape || !s->old || !s->external) {
        return fail(e, ETC_NO_MEMORY, "no memory for the graph", XNN_NO_ID);
    }
    for (uint32_t i = 0; i < g->n_values; i++) {
        s->shape[i] = g->value[i].shape;
    }
    return ETC_OK;
}

static EtcStatus start(void *host, const EtcBlob *blob, void **state, EtcError *e)
{
    State *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return fail(e, ETC_NO_MEMORY, "no memory for the graph", XNN_NO_ID);
    }
    s->host = host;
    EtcStatus status = serve(s->host, blob->program, e);
    if (status == ETC_OK) {
        status = etc_xnn_read(blob->data, blob->n_bytes, &s->host->names, &s->graph, e);
    }
    status = (status == ETC_OK) ? allocate(s, e) : status;
    if (status == ETC_OK) {
        const uint64_t before = s->host->cache.n_bytes;
        s->is_sharing = (uint8_t)etc_xnn_pack(s->host, &s->graph);
        status = build(s, &s->runtime, e);
        s->packed_bytes = s->host->cache.n_bytes - before;
    }
    if (status != ETC_OK) {
        stop(s);
        return status;
    }
    *state = s;
    return ETC_OK;
}

/* -- run ---------------------------------------------------------------------------------- */

static int is_type(const XnnValue *v, EtcDtype t)
{
    return (v->type == XNN_F32)      ? t == ETC_F32
           : (v->type == XNN_F16)    ? t == ETC_F16
           : (v->type == XNN_QINT8)  ? t == ETC_I8
           : (v->type == XNN_QUINT8) ? t == ETC_U8
                                     : (t == ETC_I32) || (v->is_output && (t == ETC_I64));
}

/* Returns the sizes of a tensor in the order of its memory.  Rank 0 becomes one axis of size 1. */
static XnnShape shape_of(const EtcTensor *t)
{
    XnnShape s = {1, {1}};
    if (t->rank > 0) {
        s.rank = (uint32_t)t->rank;
    }
    for (int32_t k = 0; k < t->rank; k++) {
        s.dim[k] = (size_t)t->dim[t->order ? t->order[k] : k];
    }
    return s;
}

static EtcTensor *tensor_at(const State *s, EtcValue *const *arg, uint32_t k)
{
    const XnnValue *v = &s->graph.value[s->graph.external[k]];
    EtcTensor *t = (arg[k]->tag == ETC_TENSOR) ? arg[k]->as.tensor : NULL;
    return ((t != NULL) && (t->rank <= XNN_RANK) && is_type(v, t->dtype)) ? t : NULL;
}

/* Returns whether a tensor has the bytes that its sizes ask for. */
static int is_backed(const EtcTensor *t, const XnnShape *s)
{
    return etc_xnn_count(s) * (int64_t)etc_dtype_size((int)t->dtype) <= t->capacity;
}

static EtcStatus take_inputs(State *s, EtcValue *const *arg, int32_t n_args, EtcError *e)
{
    const XnnGraph *g = &s->graph;
    if ((uint32_t)n_args < g->n_externals) {
        return fail(e, ETC_BAD_FILE, "call with too few arguments", (uint32_t)n_args);
    }
    for (uint32_t k = 0; k < g->n_externals; k++) {
        uint32_t place = g->external[k];
        if (place == XNN_NO_ID) {
            continue;
        }
        const EtcTensor *t = tensor_at(s, arg, k);
        if (t == NULL) {
            return fail(e, ETC_BAD_FILE, "argument of another kind, dtype or rank", k);
        }
        if (!g->value[place].is_input) {
            continue;
        }
        XnnShape now = shape_of(t);
        if ((now.rank != g->value[place].shape.rank) || (etc_xnn_count(&now) < 0) ||
            !is_backed(t, &now)) {
            return fail(e, ETC_BAD_FILE, "argument of another rank, or without memory", k);
        }
        if (!etc_xnn_same(&now, &s->old[k])) {
            s->is_shaped = 0;
        }
        s->old[k] = s->shape[place] = now;
    }
    return ETC_OK;
}

/* Returns whether the library skips an operator without elements. */
static int takes_empty(XnnKind k)
{
    switch ((int)k) {
    case XNN_SOFTMAX:
    case XNN_CONV:
    case XNN_RESIZE:
    case XNN_PAD:
    case XNN_AVG_POOL:
    case XNN_DEPTHWISE:
    case XNN_MAX_POOL:
    case XNN_GLOBAL_POOL:
    case XNN_ARGMAX_POOL:
    case XNN_PRELU:
    case XNN_SDPA:
    case XNN_BATCH_MATMUL:
    case XNN_CONV_TRANSPOSE:
        return 0;
    default:
        return 1;
    }
}

static int reads_empty(const State *s, const XnnNode *n)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        if ((n->in[i] != XNN_NO_ID) && (etc_xnn_count(&s->shape[n->in[i]]) == 0)) {
            return 1;
        }
    }
    return 0;
}

static int has_empty(const State *s)
{
    for (uint32_t i = 0; i < s->graph.n_nodes; i++) {
        const XnnNode *n = &s->graph.node[i];
        if (!takes_empty(n->kind) && reads_empty(s, n)) {
            return 1;
        }
    }
    return 0;
}

static int gives_elements(const State *s)
{
    for (uint32_t i = 0; i < s->graph.n_values; i++) {
        if (s->graph.value[i].is_output && (etc_xnn_count(&s->shape[i]) > 0)) {
            return 1;
        }
    }
    return 0;
}

/* Returns whether there are no values between the arguments.  The library would plan no memory
 * then, and pass NULL to its operators. */
static int needs_no_memory(const State *s)
{
    for (uint32_t i = 0; i < s->graph.n_values; i++) {
        const XnnValue *v = &s->graph.value[i];
        if (!v->is_input && !v->is_output && (v->data == NULL) &&
            (etc_xnn_count(&s->shape[i]) > 0)) {
            return 0;
        }
    }
    return 1;
}

/* The library plans memory for the largest sizes that a value ever had.  For the blob these are
 * upper bounds.  If the sizes of the first call are smaller, a second runtime is made that starts
 * with them.  It lies where the first one did, because new pages would cost more than making it. */
static EtcStatus fit(State *s, EtcError *e)
{
    uint32_t i = 0;
    while ((i < s->graph.n_values) && etc_xnn_same(&s->shape[i], &s->graph.value[i].shape)) {
        i++;
    }
    const int fits = s->was_shaped || !s->is_sharing || (i == s->graph.n_values) ||
                     needs_no_memory(s);
    if (fits && (s->runtime != NULL)) {
        return ETC_OK;
    }
    if (s->runtime != NULL) {
        xnn_delete_runtime(s->runtime);
        s->runtime = NULL;
    }
    return build(s, &s->runtime, e);
}

/* Passes the sizes of a call to the library, which must compute the same sizes as this delegate. */
static EtcStatus reshape(State *s, EtcError *e)
{
    const XnnGraph *g = &s->graph;
    enum xnn_status x = xnn_status_success;
    for (uint32_t k = 0; (x == xnn_status_success) && (k < g->n_externals); k++) {
        uint32_t place = g->external[k];
        if ((place != XNN_NO_ID) && g->value[place].is_input) {
            x = xnn_reshape_external_value(s->runtime, k, s->shape[place].rank,
                                           s->shape[place].dim);
        }
    }
    x = (x == xnn_status_success) ? xnn_reshape_runtime(s->runtime) : x;
    if (x != xnn_status_success) {
        return refused(e, x, "libXNNPACK refuses the sizes of a call", XNN_NO_ID);
    }
    for (uint32_t k = 0; k < g->n_externals; k++) {
        uint32_t place = g->external[k];
        size_t rank = 0;
        XnnShape out;
        if ((place == XNN_NO_ID) || !g->value[place].is_output) {
            continue;
        }
        x = xnn_get_external_value_shape(s->runtime, k, &rank, out.dim);
        out.rank = (uint32_t)rank;
        if ((x != xnn_status_success) || !etc_xnn_same(&out, &s->shape[place])) {
            return fail(e, ETC_UNSUPPORTED, "libXNNPACK makes other sizes", k);
        }
    }
    s->is_shaped = s->was_shaped = 1;
    return ETC_OK;
}

static EtcStatus size_outputs(const State *s, EtcValue *const *arg, EtcError *e)
{
    const XnnGraph *g = &s->graph;
    for (uint32_t k = 0; k < g->n_externals; k++) {
        uint32_t place = g->external[k];
        if ((place == XNN_NO_ID) || !g->value[place].is_output) {
            continue;
        }
        EtcTensor *t = arg[k]->as.tensor;
        const XnnShape *shape = &s->shape[place];
        int32_t dim[XNN_RANK];
        if ((shape->rank != (uint32_t)t->rank) && ((t->rank != 0) || (etc_xnn_count(shape) != 1))) {
            return fail(e, ETC_BAD_FILE, "output of another rank", k);
        }
        for (int32_t i = 0; i < t->rank; i++) {
            if (shape->dim[i] > INT32_MAX) {
                return fail(e, ETC_BAD_FILE, "size of an output is too large", k);
            }
            dim[t->order ? t->order[i] : i] = (int32_t)shape->dim[i];
        }
        EtcStatus status = etc_resize(t, dim, t->rank);
        if (status != ETC_OK) {
            return fail(e, status, "output does not take its sizes", k);
        }
    }
    return ETC_OK;
}

/* Returns whether too few bytes of the file follow a tensor that lies in it. */
static int ends_file(const State *s, const EtcTensor *t)
{
    uintptr_t from = (uintptr_t)s->host->file, at = (uintptr_t)t->data;
    return (at >= from) && (at <= from + s->host->file_bytes) &&
           ((uint64_t)t->capacity + XNN_READS_PAST > from + s->host->file_bytes - at);
}

/* Sets up the runtime for the sizes of a call.  A tensor may be several arguments, so all sizes
 * are final only here. */
static EtcStatus set_up(State *s, EtcValue *const *arg, EtcError *e)
{
    const XnnGraph *g = &s->graph;
    size_t n = 0;
    for (uint32_t k = 0; k < g->n_externals; k++) {
        if (g->external[k] == XNN_NO_ID) {
            continue;
        }
        const EtcTensor *t = arg[k]->as.tensor;
        XnnShape now = shape_of(t);
        if ((etc_xnn_count(&now) != etc_xnn_count(&s->shape[g->external[k]])) ||
            !is_backed(t, &now)) {
            return fail(e, ETC_BAD_FILE, "tensor is two arguments of different sizes", k);
        }
        if (ends_file(s, t)) {
            return fail(e, ETC_UNSUPPORTED, "argument at the very end of the file", k);
        }
        s->external[n].id = k;
        s->external[n].data = t->data;
        n++;
    }
    enum xnn_status x = xnn_setup_runtime_v2(s->runtime, n, s->external);
    x = (x == xnn_status_success) ? xnn_invoke_runtime(s->runtime) : x;
    return (x == xnn_status_success) ? ETC_OK : refused(e, x, "libXNNPACK fails to run", XNN_NO_ID);
}

/* The library's indices have 32 bits.  If the program has 64, they are widened from the last to the
 * first. */
static void widen_indices(const State *s, EtcValue *const *arg)
{
    for (uint32_t k = 0; k < s->graph.n_externals; k++) {
        uint32_t place = s->graph.external[k];
        if ((place == XNN_NO_ID) || (arg[k]->as.tensor->dtype != ETC_I64)) {
            continue;
        }
        uint8_t *data = arg[k]->as.tensor->data;
        for (int64_t i = etc_xnn_count(&s->shape[place]); i-- > 0;) {
            int32_t narrow;
            memcpy(&narrow, data + 4 * i, sizeof narrow);
            int64_t wide = narrow;
            memcpy(data + 8 * i, &wide, sizeof wide);
        }
    }
}

static EtcStatus run(void *state, EtcValue *const *arg, int32_t n_args, EtcError *e)
{
    State *s = state;
    EtcStatus status = take_inputs(s, arg, n_args, e);
    if ((status == ETC_OK) && !s->is_shaped) {
        status = etc_xnn_infer(&s->graph, s->shape, e);
        if ((status == ETC_OK) && !gives_elements(s)) {
            return size_outputs(s, arg, e);
        }
        if ((status == ETC_OK) && has_empty(s)) {
            status = fail(e, ETC_UNSUPPORTED, "empty tensor", XNN_NO_ID);
        }
        status = (status == ETC_OK) ? fit(s, e) : status;
        status = (status == ETC_OK) ? reshape(s, e) : status;
    }
    status = (status == ETC_OK) ? size_outputs(s, arg, e) : status;
    if (status != ETC_OK) {
        return status;
    }
    status = set_up(s, arg, e);
    if (status == ETC_OK) {
        widen_indices(s, arg);
    }
    return status;
}

/* -- profile ------------------------------------------------------------------------------ */

/* Returns one kind of profile data of the library, *size bytes; NULL: there is none. */
static void *profile_data(xnn_runtime_t runtime, enum xnn_profile_info what, size_t *size)
{
    size_t all = 0;
    *size = 0;
    if (xnn_get_runtime_profiling_info(runtime, what, 0, NULL, &all) != xnn_status_out_of_memory) {
        return NULL;
    }
    void *to = malloc(all + 1);
    if ((to != NULL) &&
        (xnn_get_runtime_profiling_info(runtime, what, all, to, size) != xnn_status_success)) {
        free(to);
        return NULL;
    }
    *size = all;
    return to;
}

static int name_parts(State *s, uint32_t n, size_t n_names)
{
    Profile *p = &s->profile;
    const char **name = calloc(n, sizeof *name);
    uint32_t *node = calloc(n, sizeof *node), found = 0;
    if ((name != NULL) && (node != NULL)) {
        for (size_t at = 0; (at < n_names) && (found < n); at += strlen(p->names + at) + 1) {
            name[found++] = p->names + at;
        }
        etc_xnn_match(&s->graph, name, found, node);
        for (uint32_t i = 0; i < found; i++) {
            p->part[i].name = name[i];
            p->part[i].handle = (node[i] == XNN_NO_ID) ? -1
                                                       : (int64_t)s->graph.node[node[i]].handle;
        }
    }
    free(name);
    free(node);
    return found == n;
}

/* Reads the times of the last run and, the first time, the names of the operations. */
static int read_profile(State *s)
{
    Profile *p = &s->profile;
    size_t size, n_names = 0;
    free(p->microseconds);
    p->microseconds = profile_data(s->runtime, xnn_profile_info_operator_timing, &size);
    if (p->microseconds == NULL) {
        return 0;
    }
    const uint32_t n = (uint32_t)(size / sizeof *p->microseconds);
    if (p->part == NULL) {
        p->names = profile_data(s->runtime, xnn_profile_info_operator_name, &n_names);
        p->part = calloc((size_t)n + 1, sizeof *p->part);
        p->n = ((p->names != NULL) && (p->part != NULL) && (n > 0) && name_parts(s, n, n_names))
                   ? n
                   : 0;
    }
    for (uint32_t i = 0; (i < n) && (i < p->n); i++) {
        p->part[i].nanoseconds = (int64_t)p->microseconds[i] * 1000;
    }
    return 1;
}

static int32_t parts(void *state, EtcPart *to, int32_t room)
{
    State *s = state;
    if (!s->host->is_profiling || (s->runtime == NULL) || !read_profile(s)) {
        return 0;
    }
    const uint32_t n = s->profile.n;
    if (room > 0) {
        memcpy(to, s->profile.part, (((uint32_t)room < n) ? (uint32_t)room : n) * sizeof *to);
    }
    return (int32_t)n;
}

static int64_t held_bytes(const void *state)
{
    return (int64_t)((const State *)state)->packed_bytes;
}

EtcDelegate etc_xnnpack_delegate(EtcXnnpack *x)
{
    EtcDelegate d = {"XnnpackBackend", x, start, run, stop, parts, held_bytes};
    return d;
}
