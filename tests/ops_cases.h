/* ops_cases.h -- calls of kernels as recorded from PyTorch (tests/ops; the format is in record.py);
 * shared by tests/unit/test_kernels.c and tests/fuzz/fuzz_kernel.c.  A file that is not as it was
 * recorded ends the program. */
#ifndef TESTS_OPS_CASES_H
#define TESTS_OPS_CASES_H

#include "runtime-lite/kernels/kernels.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS = 20, MAX_OUTS = 4 };

typedef struct Out {
    EtcTensor expected;
    const double *exact; /* float64 answer; NULL unless float32 */
} Out;

typedef struct Case {
    char key[80];
    int n_args, n_outs, has_sums; /* doubles may be off by units of the largest too */
    EtcValue value[MAX_ARGS];
    Out out[MAX_OUTS];
} Case;

typedef struct Reader {
    const unsigned char *at, *end;
    unsigned char *arena; /* of one case */
    size_t used, room;
    int n; /* cases read */
} Reader;

static inline void must_hold(int holds, const char *otherwise)
{
    if (!holds) {
        fprintf(stderr, "tests/ops: %s\n", otherwise);
        abort();
    }
}

static inline void *take(Reader *r, size_t bytes)
{
    void *p = r->arena + r->used;
    r->used += (bytes + 63u) & ~(size_t)63u;
    must_hold(r->used <= r->room, "a recorded case is too large");
    return p;
}

static inline void get(Reader *r, void *to, size_t bytes)
{
    must_hold(bytes <= (size_t)(r->end - r->at), "a recorded file ends early");
    memcpy(to, r->at, bytes);
    r->at += bytes;
}

static inline uint8_t get_u8(Reader *r)
{
    uint8_t v;
    get(r, &v, 1);
    return v;
}

static inline int32_t get_u32(Reader *r)
{
    uint32_t v;
    get(r, &v, 4);
    must_hold(v < (1u << 24), "a recorded file has a wrong count");
    return (int32_t)v;
}

static inline void get_tensor(Reader *r, EtcTensor *t)
{
    memset(t, 0, sizeof *t);
    t->dtype = (EtcDtype)get_u8(r);
    t->rank = get_u8(r);
    int has_order = get_u8(r);
    t->dim = take(r, 4 * ETC_MAX_RANK);
    get(r, t->dim, 4 * (size_t)t->rank);
    if (has_order) {
        uint8_t *order = take(r, ETC_MAX_RANK);
        get(r, order, (size_t)t->rank);
        t->order = order;
    }
    t->capacity = etc_numel(t) * (int64_t)etc_dtype_size((int)t->dtype);
    t->data = malloc((size_t)t->capacity + 1); /* of its own, so that ASan sees its ends */
    get(r, t->data, (size_t)t->capacity);
}

static inline void get_tensors(Reader *r, EtcValue *v)
{
    int32_t n = get_u32(r);
    EtcValue **item = take(r, sizeof *item * (size_t)(n + 1));
    for (int32_t i = 0; i < n; i++) {
        item[i] = take(r, sizeof **item);
        item[i]->tag = ETC_TENSOR;
        item[i]->as.tensor = take(r, sizeof(EtcTensor));
        get_tensor(r, item[i]->as.tensor);
    }
    v->as.list.item = item;
    v->as.list.n = n;
}

static inline void get_ints(Reader *r, EtcValue *v)
{
    int32_t n = get_u32(r);
    EtcValue **item = take(r, sizeof *item * (size_t)(n + 1));
    for (int32_t i = 0; i < n; i++) {
        item[i] = take(r, sizeof **item);
        item[i]->tag = ETC_INT;
        get(r, &item[i]->as.i, 8);
    }
    v->as.list.item = item;
    v->as.list.n = n;
}

/* Each item an argument of its own: a tensor or none. */
static inline void get_picks(Reader *r, EtcValue *v)
{
    int32_t n = get_u32(r);
    EtcValue **item = take(r, sizeof *item * (size_t)(n + 1));
    for (int32_t i = 0; i < n; i++) {
        item[i] = take(r, sizeof **item);
        memset(item[i], 0, sizeof **item);
        item[i]->tag = (EtcTag)get_u8(r);
        if (item[i]->tag == ETC_TENSOR) {
            item[i]->as.tensor = take(r, sizeof(EtcTensor));
            get_tensor(r, item[i]->as.tensor);
        }
    }
    v->as.list.item = item;
    v->as.list.n = n;
}

static inline void get_doubles(Reader *r, EtcValue *v)
{
    int32_t n = get_u32(r);
    double *item = take(r, 8 * (size_t)(n + 1));
    get(r, item, 8 * (size_t)n);
    v->as.doubles.item = item;
    v->as.doubles.n = n;
}

static inline void get_argument(Reader *r, EtcValue *v)
{
    memset(v, 0, sizeof *v);
    v->tag = (EtcTag)get_u8(r);
    switch (v->tag) {
    case ETC_NONE:
        break;
    case ETC_TENSOR:
        v->as.tensor = take(r, sizeof(EtcTensor));
        get_tensor(r, v->as.tensor);
        break;
    case ETC_STRING: {
        int32_t n = get_u32(r);
        char *text = take(r, (size_t)n + 1);
        get(r, text, (size_t)n);
        text[n] = '\0';
        v->as.str.text = text;
        v->as.str.n = n;
        break;
    }
    case ETC_DOUBLE:
        get(r, &v->as.d, 8);
        break;
    case ETC_INT:
        get(r, &v->as.i, 8);
        break;
    case ETC_IS_BOOL:
        v->as.b = get_u8(r);
        break;
    case ETC_LIST_INT:
        get_ints(r, v);
        break;
    case ETC_LIST_DOUBLE:
        get_doubles(r, v);
        break;
    case ETC_LIST_TENSOR:
        get_tensors(r, v);
        break;
    case ETC_LIST_OPT_TENSOR:
        get_picks(r, v);
        break;
    default:
        must_hold(0, "a recorded file has an unknown tag");
    }
}

/* Kernels that had no row when their cases were recorded, and the rows that they have now. */
static inline void name_row(char key[80])
{
    static const char *const row[][2] = {{"attention", "etc::attention.out"},
                                         {"softmax_attention", "etc::softmax_attention.out"},
                                         {"grid_sampler_3d", "aten::grid_sampler_3d.out"},
                                         {"group_norm", "etc::group_norm.out"},
                                         {"layer_norm", "etc::layer_norm.out"},
                                         {"max_pool2d", "etc::max_pool2d.out"},
                                         {"silu", "aten::silu.out"},
                                         {"hardswish", "aten::hardswish.out"},
                                         {"hardsigmoid", "aten::hardsigmoid.out"}};
    for (size_t i = 0; i < (sizeof row / sizeof row[0]); i++) {
        if (strcmp(key, row[i][0]) == 0) {
            snprintf(key, 80, "%s", row[i][1]);
            return;
        }
    }
}

static inline void get_case(Reader *r, Case *c)
{
    r->used = 0;
    int32_t n = get_u32(r);
    must_hold(n < (int32_t)sizeof c->key, "a recorded key is too long");
    get(r, c->key, (size_t)n);
    c->key[n] = '\0';
    name_row(c->key);
    c->n_args = get_u32(r);
    must_hold(c->n_args <= MAX_ARGS, "a recorded case has too many arguments");
    for (int i = 0; i < c->n_args; i++) {
        get_argument(r, &c->value[i]);
    }
    c->n_outs = get_u32(r);
    must_hold(c->n_outs <= MAX_OUTS, "a recorded case has too many outs");
    for (int i = 0; i < c->n_outs; i++) {
        Out *o = &c->out[i];
        get_tensor(r, &o->expected);
        o->exact = NULL;
        if (o->expected.dtype == ETC_F32) {
            size_t bytes = (size_t)etc_numel(&o->expected) * 8;
            double *exact = take(r, bytes);
            get(r, exact, bytes);
            o->exact = exact;
        }
    }
    r->n++;
}

static inline void free_value(EtcValue *v)
{
    if (v->tag == ETC_TENSOR) {
        free(v->as.tensor->data);
    }
    const int is_list = (v->tag == ETC_LIST_TENSOR) || (v->tag == ETC_LIST_OPT_TENSOR);
    for (int32_t i = 0; is_list && (i < v->as.list.n); i++) {
        if (v->as.list.item[i]->tag == ETC_TENSOR) {
            free(v->as.list.item[i]->as.tensor->data);
        }
    }
}

static inline void free_case(Case *c)
{
    for (int i = 0; i < c->n_args; i++) {
        free_value(&c->value[i]);
    }
    for (int i = 0; i < c->n_outs; i++) {
        free(c->out[i].expected.data);
    }
}

/* Several outs are one argument, a list, where the row says so. */
static inline int outs_are_list(const Case *c)
{
    for (int32_t i = 0; (c->n_outs > 1) && (etc_kernel_at(i) != NULL); i++) {
        if (strcmp(etc_kernel_at(i)->name, c->key) == 0) {
            return etc_kernel_at(i)->n_args == (c->n_args + 1);
        }
    }
    return 0;
}

/* Rows of the table, and those that only ir/ops.def has.  NULL: there is none. */
static inline EtcKernel *find_kernel(const char *key)
{
    static const struct {
        const char *name;
        EtcKernel *run;
    } rowless[] = {{"packed_linear", etc_packed_linear},
                   {"round_bfloat", etc_round_bfloat},
                   {"integer_convolution", etc_integer_convolution},
                   {"integer_linear", etc_integer_linear},
                   {"integer_avg_pool2d", etc_integer_avg_pool2d},
                   {"integer_matmul", etc_integer_matmul},
                   {"integer_norm", etc_integer_norm},
                   {"integer_softmax", etc_integer_softmax},
                   {"lookup", etc_lookup}};
    char name[80];
    for (size_t i = 0; i < (sizeof rowless / sizeof rowless[0]); i++) {
        if (strcmp(key, rowless[i].name) == 0) {
            return rowless[i].run;
        }
    }
    snprintf(name, sizeof name, "%s", key);
    char *dot = strrchr(name, '.');
    if (dot != NULL) {
        *dot = '\0';
    }
    const EtcKernelRow *row = etc_kernel_find(name, (dot != NULL) ? (dot + 1) : "");
    return (row != NULL) ? row->run : NULL;
}

#endif
