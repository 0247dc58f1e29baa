/* internal.h -- what the files of ir/ share: the functions that columns of ops.def name, and what
 * infer rules are made of. */
#ifndef ETC_IR_INTERNAL_H
#define ETC_IR_INTERNAL_H

#include "ir/ir.h"

#define OP(id, target, out, schema, flags, access, functional, inplace, infer, decomp, kernel, expr, \
           c, cost, scratch, quant)                                                                  \
    InferFn infer_##infer;                                                                      \
    CostFn cost_##cost;                                                                         \
    ScratchFn scratch_##scratch;
#include "ir/ops.def"
InferFn infer_none;

/* -- arguments of a rule: each reports and returns false where the node has no such argument  */

const char *arg_name(const Node *n, int i);
bool get_tensor_at(const Node *n, int i, Type *t, Diag *d);
bool get_optional_at(const Node *n, int i, Type *t, Diag *d); /* t->is_none where left out */
bool get_rank_at(const Node *n, int i, int lo, int hi, Type *t,
              Diag *d); /* a tensor, lo <= rank <= hi */
bool get_int_at(const Node *n, int i, int64_t *v, Diag *d);
/* A list of `count` plain integers >= least; a list of one stands for `count` equal ones. */
bool get_ints_at(const Node *n, int i, int count, int64_t least, int64_t *v, Diag *d);
bool is_size_at(const Node *n, int i, Dim *v); /* an integer known before the call; says nothing */
bool get_size_at(const Node *n, int i, Dim *v, Diag *d);
bool get_sizes_at(const Node *n, int i, Dim v[MAX_RANK], int *count, Diag *d);
bool get_axis_at(const Node *n, int i, int rank, int *axis, Diag *d); /* an int counted from 0 */
bool wrap_axis(const Node *n, int64_t axis, int rank, int *out, Diag *d);
EtcDtype dtype_or(const Node *n, EtcDtype otherwise); /* the argument `dtype` where given */

/* Each takes a name, or the position where a rule walks several arguments. */
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

enum { DTYPE_NONE = -1, DTYPE_MIXED = -2 }; /* beside EtcDtype: none yet, no common one */

int promote(int a, int b);                                   /* torch.promote_types */
int promote_args(const Node *n, const int *arg, int n_args); /* torch.result_type */

/* These say whether sizes fit a rule.  They return false where no values of the symbols do.  Where
 * some do, and not all, the rule assumes it, and program_guard makes that a guard. */
bool dims_agree(const Node *n, Dim a, Dim b); /* a = b: they are, or both are symbolic and may be */
bool dims_match(const Node *n, Dim a, Dim b); /* a = b, of which one may be fixed */
bool dim_at_least(const Node *n, Dim a, Dim b); /* a >= b */
bool dim_divides(const Node *n, int64_t k, Dim d); /* d is a multiple of k > 0 */

typedef struct Assumptions Assumptions;

/* guards.c: notes that a = b, or a >= b, for program_guard where that asks; n may be NULL. */
void program_assume(Program *p, const Node *n, Dim a, bool is_equal, Dim b);

Dim dims_product(Program *p, const Dim *d, int n);
bool broadcast(const Node *n, Type a, Type b, Type *out, Diag *d); /* sizes alone */
bool expands_to(const Node *n, Type from, Type to, Diag *d);

/* Arguments i and i + 1: scales are finite and above 0, zero points integers of dtype t, where their
 * values are known. */
bool check_qparams(const Node *n, int i, EtcDtype t, Diag *d);

/* Arguments of the products of integers beside geometry: `channels` of sums, scales and bias; k
 * terms of a sum.  *dtype: the result's. */
bool check_integers(const Node *n, Dim channels, Dim k, EtcDtype *dtype, Diag *d);

/* The result of a rule; refuses sizes that are bad or negative and ranks past MAX_RANK. */
bool set_tensor(const Node *n, Type *out, EtcDtype dtype, int rank, const Dim *dim, Diag *d);

const char *type_text(Program *p, Type t);

/* -- evaluation ----------------------------------------------------------------------- */

/* Calls of kernels share this state.  Nothing in it outlives `tmp`. */
typedef struct EvalContext {
    const int64_t *symbol;
    int64_t *told; /* the same, to be written where a node tells a symbol; NULL: fixed */
    Arena *tmp;
    void *scratch; /* ETC_SCRATCH_BYTES */
    const struct EtcCores *cores;
    Diag *d;
    EvalVisit *visit; /* NULL, or who is told the results of `watched` */
    void *visit_ctx;
    const Graph *watched;
    int64_t *turns; /* that loops may still take, in all */
    void **spare; /* by class of sizes: bytes that nobody reads any more, each begins with the next */
} EvalContext;

int64_t tensor_bytes(const EtcTensor *t);
EvalContext eval_context(const int64_t *symbol, Arena *tmp, Diag *d);
EvalContext eval_within(const EvalContext *c, Arena *tmp); /* the same, in memory that goes before */

/* Cores that multiply by the library, and the scratch that they want. */
const struct EtcCores *blas_cores(const Blas *b, Arena *a, void **scratch);

/* A tensor of n's output i at the actual sizes, without data; a number is of rank 0. */
EtcTensor *eval_output(const Node *n, int i, const EvalContext *c);
EtcTensor *eval_tensor(const Node *n, Type t, const EvalContext *c); /* NULL: reported */
void eval_allocate(EtcTensor *t, Arena *a);

/* Give a tensor bytes that may be given back before `tmp` is, and take them back.  The bytes hold
 * whatever they had. */
void eval_borrow(EtcTensor *t, const EvalContext *c);
void eval_give_back(const EtcTensor *t, const EvalContext *c);

/* The operands that the node hands to its graphs. */
EtcTensor **eval_operands(const Node *n, EtcTensor *const *in, const EvalContext *c);

/* The graph that a node which is no loop runs with these operands. */
const Graph *eval_nested(const Node *n, EtcTensor *const *in);

/* Runs a loop on its operands, whose plan has no place for anything; `out` in a. */
bool eval_loop(const Node *n, EtcTensor **operand, EvalContext *c, Arena *a, EtcTensor **out);

/* Runs the node's kernel into `out`, whose data is in place. */
/* Floats of working memory of etc.fft; rows -1: any number.  0: it takes no such length. */
int64_t eval_fft_work(int64_t n, int64_t rows, int64_t form);
bool eval_call(const Node *n, EtcTensor *const *in, EtcTensor *const *out, const EvalContext *c);

#endif
