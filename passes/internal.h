/* internal.h -- shared by the files of passes/: rewriting a graph in one walk, properties of
 * nodes and values that several passes need, sizes at run time, and the data of the memory
 * planner. */
#ifndef ETC_PASSES_INTERNAL_H
#define ETC_PASSES_INTERNAL_H

#include "ir/session.h"
#include "ir/views.h"
#include "passes/passes.h"

/* -- rewriting: rewrite.c ------------------------------------------------------------------- */

/* One walk over a graph that replaces values.  A pass visits the nodes in order and calls
 * rewrite_inputs for each node first, so that it sees operands that are already replaced. */
typedef struct Rewrite {
    Graph *g;
    Arena *tmp;
    Diag *d;
    Value **with;  /* by value index: its replacement, or NULL */
    int room;      /* the length of `with` */
    int first_new; /* values from this index on were made in this walk */
    bool used;
    int64_t work; /* composite.c: the work that rules have done */
} Rewrite;

/* Reports that a user's operator lacks the `key` that this tail would need; see custom.c. */
bool custom_is_not_taken(const Node *n, const char *key, Diag *d);
bool node_takes_number(const Node *n); /* composite.c: a number that the model computes */

Rewrite rewrite_start(Graph *g, Arena *tmp, Diag *d);
void rewrite_inputs(Rewrite *r, Node *n);
void rewrite_value(Rewrite *r, Value *old, Value *v);
Value *rewrite_current(const Rewrite *r, Value *v); /* its replacement, or v itself */

/* Replaces result i of n by v.  If v is new, it gets the result's name and recorded sizes. */
void rewrite_result(Rewrite *r, Node *n, int i, Value *v);

/* Replaces the first result of n by v and removes n.  Returns true, for rules that end with it. */
bool rewrite_node(Rewrite *r, Node *n, Value *v);
/* Replaces a linear or convolution by one with these weights.  The bias b may be NULL.  Returns
 * false if that fails, which is reported. */
bool rewrite_product(Rewrite *r, Node *n, Value *w, Value *b);
/* Replaces a node of halves by one in f32 whose results are rounded; see widen_halves.c.  `wide`
 * has, by value index, casts of halves to f32 that were made already; it may be NULL. */
bool rewrite_widened(Rewrite *r, Node *n, Value **wide);
bool node_has_halves(const Node *n); /* an operand or a result is f16 or bf16 */
/* Returns whether weights and bias are floats that no other node reads (`reads` is of
 * storage_reads), with one bias per output channel. */
bool owns_weights(const Weighted *v, const int *reads);
bool others_are_read(const Uses *u, const Node *n); /* a result other than the first is read */
bool rewrite_pieces(Rewrite *r, Node *n); /* makes selects and slices of an unbind or split */
void rewrite_finish(Rewrite *r);          /* replaces outputs and updates */
/* Removes constants from the operands of a node with graphs: the graphs then read them themselves.
 * Returns the node that replaces n. */
Node *sink_operands(Rewrite *r, Node *n);

/* Calls a pass on every graph of the program that no delegate runs, nested ones first. */
bool each_graph(Program *p, GraphPass *pass, Arena *tmp, Diag *d);

/* -- properties ----------------------------------------------------------------------------- */

bool *states_read(const Program *p, Arena *tmp); /* by index: some graph reads or updates it */
/* Returns whether each result is one of the operand's floats or a constant: moves, max pools and
 * pads.  (The class `same_scale` also has operators that compute.) */
bool node_keeps_floats(const Node *n);
/* Returns the n floats of a constant, or NULL if v is none or has another number; n -1: any
 * number. */
const float *value_floats(const Value *v, int64_t n);
int *storage_reads(const Program *p, Arena *tmp); /* by storage: how often it is read or updated */
bool type_same(Type a, Type b);                   /* type_equal, and the layouts are the same */
bool type_is_dense(Program *p, Type t); /* it has no strides but those of a dense tensor */
/* Returns a constant of type t whose bytes start `byte` bytes behind those of the constant v. */
Value *graph_const_part(Graph *g, const Value *v, Type t, int64_t byte);
Type type_plain(Type t);            /* t without strides */
Dim dims_numel(Program *p, Type t); /* the product of the sizes */
Arg arg_dim_list(Program *p, const Dim *d, int n);
Arg arg_int_list(Program *p, const int64_t *v, int n);

/* Returns the first result, or NULL if n is NULL. */
static inline Value *node_result(const Node *n)
{
    return n ? n->out[0] : NULL;
}

/* These build a node before `at` and return its result.  They return NULL if an operand is NULL,
 * or if building fails, which is reported. */
Value *build_pair(Rewrite *r, Node *at, OpId op, Value *a, Value *b);
Value *build_view(Rewrite *r, Node *at, Value *x, const Dim *dim, int rank);
Value *build_permute(Rewrite *r, Node *at, Value *x, const int64_t *axis);
Value *build_cast(Rewrite *r, Node *at, Value *x, EtcDtype t); /* x itself if it has the dtype */
/* Builds a linear or convolution like n with these weights.  The bias b may be NULL. */
Value *build_weighted(Rewrite *r, Node *n, Value *w, Value *b);

/* fuse_integers.c: reads a quantize, or a dequantize if `undoes`, of bytes per tensor by numbers.  Its
 * scale is far from the ends of float, so that scaling there and back is exact, and its zero point is
 * within the dtype.  n may be NULL. */
bool read_byte_points(const Node *n, bool undoes, QParams *p);
Value *read_dequantize(const Value *v, QParams *p); /* x if v is dequantize(x) in f32; else NULL */

/* composite_data.c: returns the operator that does with a tensor and a number what `op` does
 * with two tensors; the number is the left or the right operand.  OP_NONE: there is none. */
OpId number_row(OpId op, bool is_left);
bool op_splits(OpId op); /* decompose.c: its results are parts of its operand along an axis */

Arg arg_moved(Node *to, const Node *from, Arg a); /* the same argument for node `to` */

/* Returns a node like n in which Python numbers that stand for tensors are constants of rank 0;
 * their dtype follows torch's promotion.  Returns n itself if it has no such number. */
Node *numbers_to_tensors(Rewrite *r, Node *n);

/* -- sizes at run time: sizes.c ---------------------------------------------------------------- */

typedef struct Sizes Sizes; /* the symbolic sizes that nodes of one graph compute */

Sizes *sizes_new(Graph *g, Arena *tmp, Diag *d);
void sizes_learn(Sizes *s, Value *v); /* the int v may define a symbol */
/* Returns an int that holds d, a symbolic size that `use` needs; nodes that compute it come before
 * `use`.  Returns NULL if that fails, which is reported. */
Value *sizes_value(Sizes *s, Node *use, Dim d);
Value *sizes_read(Sizes *s, int input, int axis); /* the size that the input has in this call */
/* Returns d computed from symbols even if an input has this size; NULL: no input has the
 * symbols. */
Value *sizes_computed(Sizes *s, Dim d);
/* Finds the input and axis that a symbol is computed from: that with the smallest scale.  Returns
 * false if there is none. */
bool sizes_source(const Sizes *s, const Symbol *symbol, int *input, int *axis);

/* -- results before and after a pass: compare.c ------------------------------------------------ */

typedef struct Compare Compare;

Compare *compare_new(Program *p, PassOptions opt);
void compare_free(Compare *c);
/* Evaluates the program before and after a pass with this k (PassInfo) and compares the results. */
bool compare_before(Compare *c, const Program *p, double k);
bool compare_after(Compare *c, const Program *p, const char *pass, double k, Diag *d);

/* -- memory: lifetime.c, pack.c, pack_exact.c, plan_banks.c ----------------------------------- */

/* The live range of bytes [lo, hi) of a block, both ends included.  Time 0 is before the first
 * node, time k = 1 .. n is that of node k, and outputs are read at n + 1. */
typedef struct Part {
    int start, end;
    int64_t lo, hi;
} Part;

/* The bytes of one alias set, at the upper bounds of sizes.  They need not be live together: the
 * operands of a concat are computed one after the other, and bytes that a slice does not keep
 * can be dead before it. */
typedef struct Block {
    int root; /* the index of the value whose bytes they are; -1: of the branches of `node` */
    const Node *node;
    int start, end; /* the live range of all parts */
    int64_t bytes;  /* a multiple of PLAN_ALIGN; so are lo and hi of all parts */
    int64_t offset;
    int pool;       /* 1, or with banks that of its bank; set when it is packed */
    double touches; /* how often each byte is read and written: of plan_banks alone */
    const Part *part;
    int n_parts;
} Block;

typedef struct Blocks {
    Block *item;
    int n;
} Blocks;

enum { PLAN_ALIGN = 16 };

/* Returns whether inputs and outputs lie in the pools.  Otherwise they lie in memory of the
 * caller or of the graph around a branch. */
bool graph_owns_io(const Graph *g);
bool view_keeps_bounds(const Node *n); /* its result never takes more bytes than its operand */
/* Returns whether, by row and types, result 0 may be written over the operand in[slot]. */
bool node_may_overlay(const Node *n, int slot);
/* Returns, by index, which inputs of a .pte's method stay in the caller's memory.  Those that a call
 * writes, or branches, loops and views of other dtypes read, have a place in the plan all the same. */
bool *borrowed_inputs(const Graph *g, Arena *tmp);
bool *pinned_values(const Graph *g, Arena *tmp); /* by index: inputs and states that calls write */
Blocks blocks_of(const Graph *g, AliasSets sets, Arena *tmp); /* those that get a place in a pool */
Block block_make(int root, int start, int end, int64_t bytes, Arena *tmp); /* one part */
int64_t blocks_bound(Blocks b, Arena *tmp); /* the most bytes that are live at once */

int64_t graph_whole_bound(const Graph *g, Arena *tmp); /* the most bytes that one node touches */
bool graph_has_bounds(const Graph *g); /* order.c: sums of all bytes do not overflow */

/* Chooses offsets such that blocks which are live at the same time do not overlap.  Returns the
 * end of the last block.  *is_least: it is proven that no offsets give a smaller end. */
int64_t pack(Blocks b, int64_t bound, bool *is_least, Arena *tmp);

/* Takes blocks in their order if they fit below `size`.  Sets `fits` and their offsets, and returns
 * the end of the last one. */
int64_t pack_below(Blocks b, int64_t size, bool *fits, Arena *tmp);

/* Sets pools and offsets of blocks that share the session's banks, and where each bank ends.  The
 * last may end behind its size.  Returns whether no offsets give a lower end: plan_banks.c. */
bool plan_banks(Blocks b, const Session *s, int64_t *end, Arena *tmp);
/* Reports each symbolic size of an input that has no upper bound: plan_memory.c. */
bool plan_takes_inputs(const Program *p, Arena *tmp, Diag *d);

/* Searches all packings of blocks with one part each for one that ends below `best`.  Sets at[]
 * and returns its end, or returns `best` if there is none.  *work limits the steps; if it is 0
 * at the end, the search was not complete. */
int64_t pack_exact(Blocks b, int64_t bound, int64_t best, int64_t *at, int64_t *work, Arena *tmp);

#endif
