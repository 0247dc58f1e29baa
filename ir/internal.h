/* internal.h -- shared by the files of ir/: the functions that columns of ops.def name, helpers of
 * infer rules, and the evaluator. */
#ifndef ETC_IR_INTERNAL_H
#define ETC_IR_INTERNAL_H

#include "ir/eval.h"

#define OP(id, target, out, schema, flags, access, functional, inplace, infer, decomp, kernel, expr, \
           c, cost, scratch, quant)                                                                  \
    InferFn infer_##infer;                                                                      \
    CostFn cost_##cost;                                                                         \
    ScratchFn scratch_##scratch;
#include "ir/ops.def"
InferFn infer_none;

/* The numbers in a row of op_info are places in these tables, which ir/rows.c writes. */
extern const char row_text[];
extern const PackedTexts row_schemas;
extern InferFn *const row_infer[];
extern CostFn *const row_cost[];
extern ScratchFn *const row_scratch[];

/* -- arguments of a rule: each reports and returns false if the node has no such argument
 * -------- */

const char *arg_name(const Node *n, int i);
bool get_tensor_at(const Node *n, int i, Type *t, Diag *d);
bool get_optional_at(const Node *n, int i, Type *t, Diag *d); /* t->is_none: it is left out */
/* Wants a tensor with lo <= rank <= hi. */
bool get_rank_at(const Node *n, int i, int lo, int hi, Type *t, Diag *d);
bool get_int_at(const Node *n, int i, int64_t *v, Diag *d);
/* Wants a list of `count` known integers >= least.  A list of one integer stands for `count` of
 * it. */
bool get_ints_at(const Node *n, int i, int count, int64_t least, int64_t *v, Diag *d);
bool is_size_at(const Node *n, int i, Dim *v); /* an int that is known before the call; no report */
bool get_size_at(const Node *n, int i, Dim *v, Diag *d);
bool get_sizes_at(const Node *n, int i, Dim v[MAX_RANK], int *count, Diag *d);
bool get_axis_at(const Node *n, int i, int rank, int *axis, Diag *d); /* *axis counts from 0 */
bool wrap_axis(const Node *n, int64_t axis, int rank, int *out, Diag *d);
EtcDtype dtype_or(const Node *n, EtcDtype otherwise); /* the argument `dtype` if it is given */

/* Each takes the argument's name, or its position in rules that loop over several arguments. */
#define ARG_AT(n, i) _Generic((i), char *: arg_of, const char *: arg_of, default: arg_at)((n), (i))
static inline int arg_at(const Node *n, int i)
{
    (void)n;
    return i;
}
#define get_tensor(n, i, t, d) get_tensor_at((n), ARG_AT(n, i), (t), (d))
#define get_optional(n, i, t, d) get_optional_at((n), ARG_AT(n, i), (t), (d))
#define get_rank(n, i, lo, hi, t, d) get_rank_at((n), ARG_AT(n, i), (lo), (hi), (t), (d))
#define get_int(n, i, v, d) get_int_at((n), ARG_AT(n, i), (v), (d))
#define get_ints(n, i, count, least, v, d) \
    get_ints_at((n), ARG_AT(n, i), (count), (least), (v), (d))
#define is_size(n, i, v) is_size_at((n), ARG_AT(n, i), (v))
#define get_size(n, i, v, d) get_size_at((n), ARG_AT(n, i), (v), (d))
#define get_sizes(n, i, v, count, d) get_sizes_at((n), ARG_AT(n, i), (v), (count), (d))
#define get_axis(n, i, rank, axis, d) get_axis_at((n), ARG_AT(n, i), (rank), (axis), (d))

/* -- sizes and dtypes ----------------------------------------------------------------- */

enum { DTYPE_NONE = -1, DTYPE_MIXED = -2 }; /* no dtype yet; dtypes without a common one */

int promote(int a, int b);                                   /* torch.promote_types */
int promote_args(const Node *n, const int *arg, int n_args); /* torch.result_type */

/* These check a condition on sizes.  They return false if it holds for no values of the
 * symbols.  If it holds for some of them, they return true and the rule assumes it;
 * program_guard makes a guard of the assumption. */
bool dims_agree(const Node *n, Dim a, Dim b);      /* a = b; assumed only if both are symbolic */
bool dims_match(const Node *n, Dim a, Dim b);      /* a = b; assumed if at least one is symbolic */
bool dim_at_least(const Node *n, Dim a, Dim b);    /* a >= b */
bool dim_divides(const Node *n, int64_t k, Dim d); /* d is a multiple of k > 0 */

typedef struct Assumptions Assumptions;

/* guards.c: records that a rule assumes a = b (is_equal) or a >= b, if program_guard runs.  n
 * may be NULL. */
void program_assume(Program *p, const Node *n, Dim a, bool is_equal, Dim b);

Dim dims_product(Program *p, const Dim *d, int n);
bool broadcast(const Node *n, Type a, Type b, Type *out, Diag *d); /* sets only the sizes */
bool expands_to(const Node *n, Type from, Type to, Diag *d);

/* Checks the scales (argument i) and the zero points (i + 1) of a node, if their values are known:
 * scales must be finite and positive, zero points must be in the range of dtype t. */
bool check_qparams(const Node *n, int i, EtcDtype t, Diag *d);

/* Checks the arguments of a product of integers that are not its geometry.  `channels` is the
 * length of sums, scales and bias, k the number of terms of a sum.  Sets the dtype of the
 * result. */
bool check_integers(const Node *n, Dim channels, Dim k, EtcDtype *dtype, Diag *d);

/* Sets the result of a rule.  Refuses sizes that are bad or negative, and ranks above MAX_RANK. */
bool set_tensor(const Node *n, Type *out, EtcDtype dtype, int rank, const Dim *dim, Diag *d);

const char *type_text(Program *p, Type t);

/* -- evaluation ----------------------------------------------------------------------- */

/* The state that calls of kernels share.  Nothing in it outlives `tmp`. */
typedef struct EvalContext {
    const int64_t *symbol; /* the values of the symbols, by index */
    int64_t *defined;      /* the same array if nodes may define symbols, else NULL */
    Arena *tmp;
    void *scratch; /* ETC_SCRATCH_BYTES */
    const struct EtcCores *cores;
    Diag *d;
    EvalVisit *visit; /* is called with the results of the nodes of `watched`; may be NULL */
    void *visit_ctx;
    const Graph *watched;
    int64_t *iterations; /* how many iterations all loops together may still take */
    void **spare;   /* by size class: a linked list of free memory */
} EvalContext;

int64_t tensor_bytes(const EtcTensor *t);
EvalContext eval_context(const int64_t *symbol, Arena *tmp, Diag *d);
EvalContext eval_within(const EvalContext *c, Arena *tmp); /* the same with other memory */

/* Returns cores that multiply with the library, and the scratch memory that they need. */
const struct EtcCores *blas_cores(const Blas *b, Arena *a, void **scratch);

/* Returns a tensor for output i of n, with its actual sizes and without data; a number has rank 0.
 * Both return NULL if a size cannot be computed, which is reported. */
EtcTensor *eval_output(const Node *n, int i, const EvalContext *c);
EtcTensor *eval_tensor(const Node *n, Type t, const EvalContext *c);
void eval_allocate(EtcTensor *t, Arena *a);

/* Gives a tensor memory, which is not zeroed, and takes it back for another tensor. */
void eval_borrow(EtcTensor *t, const EvalContext *c);
void eval_give_back(const EtcTensor *t, const EvalContext *c);

/* Returns the operands that a node passes to its graphs. */
EtcTensor **eval_operands(const Node *n, EtcTensor *const *in, const EvalContext *c);

/* Returns the graph that a node runs for these operands.  The node is no loop. */
const Graph *eval_nested(const Node *n, EtcTensor *const *in);

/* Runs a loop that is not planned on its operands; `out` is allocated in a. */
bool eval_loop(const Node *n, EtcTensor **operand, EvalContext *c, Arena *a, EtcTensor **out);

/* Returns the floats of working memory that etc.fft needs for rows of length n; rows -1: for any
 * number of rows.  Returns 0 if it cannot transform this length. */
int64_t eval_fft_work(int64_t n, int64_t rows, int64_t form);
/* Runs the node's kernel.  The tensors of `out` have their memory. */
bool eval_call(const Node *n, EtcTensor *const *in, EtcTensor *const *out, const EvalContext *c);

#endif
