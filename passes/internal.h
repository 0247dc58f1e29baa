/* internal.h -- what the files of passes/ share: replacing values while a graph is walked, and
 * questions several passes ask. */
#ifndef ETC_PASSES_INTERNAL_H
#define ETC_PASSES_INTERNAL_H

#include "ir/views.h"
#include "passes/passes.h"

/* -- rewriting: rewrite.c ------------------------------------------------------------------- */

/* One walk over a graph that replaces values.  Nodes are visited in order; each calls
 * rewrite_inputs first and so sees only what is final. */
typedef struct Rewrite {
    Graph *g;
    Arena *tmp;
    Diag *d;
    Value **with; /* by value index: what stands in its place, or NULL */
    int room;     /* of `with` */
    int first_new; /* values from here on were made in this walk */
    bool used;
    int64_t work; /* composite.c: what was spent on rules */
} Rewrite;

/* Reports that a user's operator has no `key` that this tail could call; custom.c. */
bool custom_is_not_taken(const Node *n, const char *key, Diag *d);

Rewrite rewrite_start(Graph *g, Arena *tmp, Diag *d);
void rewrite_inputs(Rewrite *r, Node *n);
void rewrite_value(Rewrite *r, Value *old, Value *v);
Value *rewrite_current(const Rewrite *r, Value *v);

/* v stands for n's result i from here on.  A new v gets the result's name and recorded sizes. */
void rewrite_result(Rewrite *r, Node *n, int i, Value *v);

/* Puts v in the place of n's first result, and n goes away.  Returns true, so that a rule may end
 * with it. */
bool rewrite_node(Rewrite *r, Node *n, Value *v);
/* Rewrites a linear or convolution to one with these weights; b NULL: no bias.  False: reported. */
bool rewrite_product(Rewrite *r, Node *n, Value *w, Value *b);
/* Rewrites a node of halves to one in f32 whose results are rounded: widen_halves.c.  `wide`, by
 * index: halves that are floats already, to be added to; NULL: none are known. */
bool rewrite_widened(Rewrite *r, Node *n, Value **wide);
bool node_has_halves(const Node *n); /* an operand or a result is f16 or bf16 */
/* Floats that no other node reads, `reads` by storage, with a bias of one per result. */
bool owns_weights(const Weighted *v, const int *reads);
bool others_are_read(const Uses *u, const Node *n); /* than its first result */
bool rewrite_pieces(Rewrite *r, Node *n); /* unbind and split as selects and slices */
void rewrite_finish(Rewrite *r); /* outputs and updates */
/* Gives a node with graphs no constants: the graphs read them themselves.  Returns what stands in its place. */
Node *sink_operands(Rewrite *r, Node *n);

/* Calls pass on every graph of the program that is not delegated, nested ones first. */
bool each_graph(Program *p, GraphPass *pass, Arena *tmp, Diag *d);

/* -- questions ------------------------------------------------------------------------------ */

bool *states_read(const Program *p, Arena *tmp); /* by index: some graph reads or updates it */
/* Moves floats, or takes the largest of some, perhaps with a border; `same_scale` names others too,
 * which compute. */
bool node_keeps_floats(const Node *n);
bool value_is_fixed(const Value *v); /* a state that calls do not write */
bool value_is_const(const Value *v); /* the same, with its bytes at hand */
const float *value_floats(const Value *v, int64_t n); /* of n, or any number (-1); or NULL */
int *storage_reads(const Program *p, Arena *tmp); /* by storage: by nodes, outputs, updates */
bool type_same(Type a, Type b);      /* type_equal, and laid out alike */
bool type_is_dense(Program *p, Type t); /* no strides but those of a contiguous tensor */
Value *graph_const_part(Graph *g, const Value *v, Type t, int64_t byte); /* where it lies in v */
Type type_plain(Type t);             /* without strides */
Dim dims_numel(Program *p, Type t);  /* product of the sizes */
Arg arg_dim_list(Program *p, const Dim *d, int n);
Arg arg_int_list(Program *p, const int64_t *v, int n);

/* Its first result; NULL: there is no node. */
static inline Value *node_result(const Node *n)
{
    return n ? n->out[0] : NULL;
}

/* A node of two tensors, of which either may not have been made: NULL, as where it is reported. */
Value *build_pair(Rewrite *r, Node *at, OpId op, Value *a, Value *b);

/* The sizes of t in a list argument, and x viewed under them. */
Value *build_view(Rewrite *r, Node *at, Value *x, const Dim *dim, int rank);
Value *build_permute(Rewrite *r, Node *at, Value *x, const int64_t *axis);
/* x in a dtype: x itself where it has that one; NULL where x is. */
Value *build_cast(Rewrite *r, Node *at, Value *x, EtcDtype t);
/* x at the indices along one axis, or with `values` there. */
Node *build_index(Rewrite *r, Node *at, Value *x, int64_t axis, Value *index, Value *values);

/* composite_data.c: the row of a sum or product that takes a number, on the left or right, where `op`
 * takes two tensors; OP_NONE: there is none. */
OpId number_row(OpId op, bool is_left);
bool op_splits(OpId op); /* decompose.c: its results are parts of its operand along an axis */

Arg arg_moved(Node *to, const Node *from, Arg a); /* a of `from`, its values read by `to` */

/* n with constants of rank 0 where Python numbers stand for tensors; n itself where there are
 * none.  Their dtype is what promotion with the other operands calls for. */
Node *numbers_to_tensors(Rewrite *r, Node *n);

/* -- sizes at run time: sizes.c ---------------------------------------------------------------- */

typedef struct Sizes Sizes; /* of one graph */

Sizes *sizes_new(Graph *g, Arena *tmp, Diag *d);
void sizes_learn(Sizes *s, Value *v); /* v, an int, may be what tells a symbol */
/* The int that is d, a symbolic size that `use` asks for; NULL: reported. */
Value *sizes_value(Sizes *s, Node *use, Dim d);
Value *sizes_read(Sizes *s, int input, int axis); /* the size that an input has */
/* d computed from the symbols, though some input may have it; NULL: no input tells them. */
Value *sizes_computed(Sizes *s, Dim d);
/* Where a symbol is read: the input and axis with the smallest scale; false: nowhere. */
bool sizes_source(const Sizes *s, const Symbol *symbol, int *input, int *axis);

/* -- results before and after a pass: compare.c ------------------------------------------------ */

typedef struct Compare Compare;

Compare *compare_new(Program *p, PassOptions opt);
void compare_free(Compare *c);
bool compare_before(Compare *c, const Program *p, double k); /* what a pass of this k may change */
bool compare_after(Compare *c, const Program *p, const char *pass, double k, Diag *d);

/* -- memory: lifetime.c, pack.c, pack_exact.c ------------------------------------------------- */

/* Bytes [lo, hi) of a block and when they are in use.  Time 0 is before the first node, node k of n
 * stands at k = 1 .. n, outputs are read at n + 1; both ends count. */
typedef struct Part {
    int start, end;
    int64_t lo, hi;
} Part;

/* Bytes of one alias set, at the sizes' upper bounds.  They need not be in use together: the parts
 * of a concat come one by one, and what a slice leaves out may go before it. */
typedef struct Block {
    int root;       /* index of the value whose bytes they are; -1: branches of `node` */
    const Node *node;
    int start, end; /* of all parts */
    int64_t bytes;  /* a multiple of PLAN_ALIGN, as all ends of parts are */
    int64_t offset;
    const Part *part;
    int n_parts;
} Block;

typedef struct Blocks {
    Block *item;
    int n;
} Blocks;

enum { PLAN_ALIGN = 16 };

/* Returns whether inputs and outputs lie in the pools; else they lie in memory of the caller, or of
 * the graph around a branch. */
bool graph_owns_io(const Graph *g);
bool view_keeps_bounds(const Node *n); /* its result takes as many bytes as its operand, at most */
bool node_may_overlay(const Node *n, int slot); /* by row and types: result 0 over in[slot] */
bool *pinned_values(const Graph *g, Arena *tmp); /* by index: inputs and states a call changes */
Blocks blocks_of(const Graph *g, AliasSets sets, Arena *tmp); /* of the sets that want a pool */
Block block_make(int root, int start, int end, int64_t bytes, Arena *tmp); /* of one part */
int64_t blocks_bound(Blocks b, Arena *tmp); /* largest sum of bytes in use at once */

int64_t graph_whole_bound(const Graph *g, Arena *tmp); /* most bytes that one node touches */
bool graph_has_bounds(const Graph *g); /* of all values, with room for sums: order.c */

/* Sets offsets so that no two blocks in use at once overlap; returns the end of the last.
 * `*is_least`: no offsets give a lower end. */
int64_t pack(Blocks b, int64_t bound, bool *is_least, Arena *tmp);

/* Searches all packings of blocks of one part for the lowest end
 * below `best`; sets at[] and returns it, or `best` where there
 * is none. `*work` is what it may do; 0 on return: it gave up. */
int64_t pack_exact(Blocks b, int64_t bound, int64_t best, int64_t *at, int64_t *work, Arena *tmp);

#endif
