/* eval.h -- evaluates nodes and graphs with the kernels of runtime-lite, for folding, calibration,
 * --verify and `etc diff`. */
#ifndef ETC_IR_EVAL_H
#define ETC_IR_EVAL_H

#include "ir/ir.h"

/* Evaluates one node.  in[] are its operands in the order of node->in; symbol[] the values of the
 * symbols by index.  The results are allocated in `a` with their actual sizes.  Returns false if
 * there is no kernel or the kernel refuses, which is reported. */
MUST_USE bool eval_node(const Node *n, EtcTensor *const *in, const int64_t *symbol, Arena *a,
                        EtcTensor **out, Diag *d);
bool eval_can(const Node *n); /* its row has a kernel, or all its nested graphs can be evaluated */

/* Evaluates a graph.  in[] are its inputs; out[] and update[] receive tensors in `a`.  States are
 * read from their data.  With `arena_check`, which needs a planned program, tensors lie at their
 * planned places, and bytes without an owner are signalling NaNs. */
MUST_USE bool eval_graph(const Graph *g, EtcTensor *const *in, const int64_t *symbol,
                         bool arena_check, Arena *a, EtcTensor **out, EtcTensor **update, Diag *d);

/* The same, but calls `visit` with each result of the graph's own nodes as soon as it is computed.
 * After the visit its bytes may belong to another value.  `visit` may change them if the program is
 * not planned. */
typedef struct Blas Blas;
typedef void EvalVisit(const Value *v, EtcTensor *t, void *ctx);
typedef struct EvalHow {
    bool arena_check;
    EvalVisit *visit; /* may be NULL */
    void *ctx;
    const Blas *blas; /* multiplies faster, but with other bits on other machines; may be NULL */
    Arena *tmp;       /* for temporary memory, rewound at the end; NULL: the call makes one */
} EvalHow;

MUST_USE bool eval_watched(const Graph *g, EtcTensor *const *in, const int64_t *symbol, EvalHow how,
                           Arena *a, EtcTensor **out, EtcTensor **update, Diag *d);

/* These have the same bits on every machine, as kernels compute them. */
double exact_exp(double x);
double exact_log10(double x);
double exact_sin(double x);
double exact_cos(double x);
double exact_pow(double x, double y);

/* Returns how many bytes the widest vectors have for which there are kernels and this CPU runs. */
int cpu_vector_bytes(void);

/* Loads OpenBLAS; see blas.c.  Returns NULL if that fails, which is reported. */
const Blas *blas_open(Arena *a, Diag *d);
const char *blas_name(const Blas *b); /* with its version and the CPU that it has detected */

EtcTensor *tensor_new(Arena *a, EtcDtype dtype, int rank, const int64_t *dim); /* zeroed */
EtcTensor *tensor_copy(const EtcTensor *t, Arena *a);
double tensor_number(const EtcTensor *t, int64_t i); /* element i; NaN if its dtype is no number */
/* The same of a value for which value_is_known holds, and its elements as a tensor in `a`, without a
 * copy. */
double value_number(const Value *v, int64_t i);
EtcTensor *eval_constant(const Value *v, Arena *a);

#endif
