/* internal.h -- what the files of passes/ share: replacing values while a graph is walked, and
 * questions several passes ask. */
#ifndef ETC_PASSES_INTERNAL_H
#define ETC_PASSES_INTERNAL_H

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
} Rewrite;

Rewrite rewrite_start(Graph *g, Arena *tmp, Diag *d);
void rewrite_inputs(Rewrite *r, Node *n);
void rewrite_value(Rewrite *r, Value *old, Value *v);
Value *rewrite_current(const Rewrite *r, Value *v);

/* v stands for n's first result from here on; n goes away.  A new v gets the result's name and its
 * recorded sizes.  Returns true, so that a rule may end with it. */
bool rewrite_node(Rewrite *r, Node *n, Value *v);
void rewrite_finish(Rewrite *r); /* outputs and updates */

/* Calls pass on every graph of the program, nested ones first; stops at a failure. */
bool each_graph(Program *p, GraphPass *pass, Arena *tmp, Diag *d);

/* -- questions ------------------------------------------------------------------------------ */

bool *states_read(const Program *p, Arena *tmp); /* by index: some graph reads or updates it */
bool value_is_const(const Value *v); /* a state that no call writes, with its bytes at hand */
bool type_same(Type a, Type b);      /* type_equal, and laid out alike */
bool type_is_dense(Program *p, Type t); /* no strides but those of a contiguous tensor */
Type type_plain(Type t);             /* without strides */
bool dims_equal(const Dim *a, const Dim *b, int n);
Dim dims_numel(Program *p, Type t);  /* product of the sizes */
Arg arg_dim_list(Program *p, const Dim *d, int n);
Arg arg_int_list(Program *p, const int64_t *v, int n);

/* The sizes of t in a list argument, and x viewed under them. */
Value *build_view(Rewrite *r, Node *at, Value *x, const Dim *dim, int rank);
Value *build_permute(Rewrite *r, Node *at, Value *x, const int64_t *axis);

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

/* -- memory: lifetime.c, pack.c ------------------------------------------------------------- */

/* Bytes of one alias set and when they are in use.  Time 0 is before the first node, node k of n
 * stands at k = 1 .. n, outputs are read at n + 1; both ends count. */
typedef struct Block {
    int root; /* index of the value whose bytes they are */
    int start, end;
    int64_t bytes; /* at the sizes' upper bounds, rounded up to 16 */
    int64_t offset;
} Block;

typedef struct Blocks {
    Block *item;
    int n;
} Blocks;

enum { PLAN_ALIGN = 16 };

const Value **graph_values(const Graph *g, Arena *tmp); /* by index; NULL: of a removed node */
bool *pinned_values(const Graph *g, Arena *tmp); /* by index: inputs and states a call changes */
Blocks blocks_of(const Graph *g, AliasSets sets, Arena *tmp); /* of the sets that want a pool */
int64_t blocks_bound(Blocks b, Arena *tmp); /* largest sum of bytes in use at once */

/* Sets offsets so that no two blocks in use at once overlap; returns the end of the last. */
int64_t pack(Blocks b, int64_t bound, Arena *tmp);

#endif
