/* c_emit.h -- shared by the files that print C.
 *
 * Everything is printed into Texts, which lie in the arena of the call.  A planned graph becomes
 * one static function per group or copy, and a list of calls. */
#ifndef ETC_EMIT_C_EMIT_H
#define ETC_EMIT_C_EMIT_H

#include "emit/c_chunks.h"
#include "emit/emit.h"
#include "ir/views.h"
#include <math.h>

/* -- text: c_text.c ------------------------------------------------------------------------ */

typedef struct Text {
    Arena *a;
    char *s; /* NUL-terminated after the first put */
    size_t n, cap;
} Text;

void put(Text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void put_n(Text *t, const char *s, size_t n);
void put_wrapped(Text *t, const char *s); /* lines of code, broken at 100 columns */
void put_comment(Text *t, const char *s); /* escaped for a comment; at most 100 characters */
void put_float(Text *t, float f);         /* a literal that reads back as f; a NaN as some NaN */
void put_weight(Text *t, float f);        /* the same ten times faster, but perhaps longer */
void put_double(Text *t, double f);
void put_int(Text *t, int64_t v);        /* an expression of type int64_t */
const char *c_type(EtcDtype t);          /* "float"; bf16 and f16 are uint16_t */
const char *loc_text(Loc loc, Arena *a); /* "fc1 (model.py:12)" or "" */
void put_type_comment(Text *t, Type type);
void put_string(Text *t, const char *s); /* a C string */

/* -- names: c_names.c ---------------------------------------------------------------------- */

typedef struct NameSet NameSet;
NameSet *names_new(Arena *a);
/* Returns a new C identifier made of prefix and `wish`; it is no keyword and no macro of a
 * compiler. */
const char *names_make(NameSet *s, const char *prefix, const char *wish);
void names_take(NameSet *s, const char *name);  /* adds a name, which may be in the set already */
char *c_identifier(Arena *a, const char *wish); /* it is neither unique nor checked for keywords */
char *c_upper(Arena *a, const char *s);
/* Returns NAME of NAME_run for an output file: the last part of `stem` as an identifier. */
const char *c_model_name(Arena *a, const char *stem);

/* -- the state of one emission ------------------------------------------------------------- */

typedef struct CustomCall CustomCall; /* c_custom.c */

/* The rows of a block of weights: ETC_TOGETHER of kernels/tile.h. */
enum { TOGETHER = 16 };

/* `count` f32 matrices that are rearranged into blocks of rows, [term][row of the block]; see
 * c_blocks.c.  In `from`, term k of row r of a matrix is element r * row + k * term of that
 * matrix. */
typedef struct RowBlocks {
    const uint8_t *from; /* may be unaligned */
    int64_t count, rows, terms, row, term;
    bool is_filled; /* zeros fill the last block of a matrix */
    /* If `words` is not 0, only the upper halves are stored, as kernels/bfloat.h says: a step has so many
     * words, and a channel `taps` of the terms. */
    int64_t words, taps;
    bool is_transformed; /* a term is 3x3 weights of the one matrix in `from`, of which matrix i has
                          * number i of the 16 that they become */
    bool is_quads; /* bytes: the `terms` input channels of a row, with `term` weights each, in quads as
                    * ETC_IN_QUADS of kernels/conv_geometry.h has them */
} RowBlocks;

/* An array that is no state of the program.  Its bytes are those of `state`, or the blocks. */
typedef struct MadeArray {
    const State *state;
    const RowBlocks *blocks;
    int64_t reads;
} MadeArray;

/* A memory that NAME_run gets for values and scratch: the arena, or a bank. */
typedef struct Memory {
    const char *name, *upper; /* its name as a parameter and in macros: "arena", "ARENA" */
    const char *base;         /* the variable in NAME_run that points to its bytes: "pool" */
    int64_t size;             /* INT64_MAX: it is as large as necessary */
    int64_t values, bytes;    /* the bytes of its pool; the same with scratch */
    int64_t work;             /* the part of `bytes` that is scratch beside the values */
    bool is_used;
} Memory;

typedef struct Emit {
    const Program *p;
    const COptions *o;
    const Target *target;
    Arena *a;
    Diag *d;
    const char *name, *upper; /* "keyword", "KEYWORD" */
    const char *file;         /* "lib" of lib.c and lib.h, as an identifier */
    const char *part;         /* "_keyword" in the names of this model's files if lib.c has several
                               * models; else "" */
    const char *inner;        /* the function that NAME_run calls */
    int64_t bound;            /* the most bytes that are live at once */
    Graph *method;
    NameSet *names;           /* the names in the scope of the file */
    const char **constant;    /* by state index: the name of its array; NULL: it is not read */
    int64_t *reads;           /* by state index: how often a node reads an element, at most */
    const State **of_storage; /* by storage: the state whose array all with equal bytes share */
    const char **symbol;      /* by symbol index: its name in C */
    const Value **item_of;    /* by symbol index: the tensor whose element it is, or NULL */
    bool *is_read;            /* by symbol index: the code so far has read it */
    const char **size_out;    /* by symbol index: the parameter of NAME_run that returns a size
                               * which it computes, or NULL */
    const char **in_name, **out_name; /* the parameters of NAME_run */
    Memory *memory;                   /* the arena, or a bank for each pool */
    int n_memories;
    int64_t *pool_base; /* by pool: its first byte in its memory */
    int64_t state_bytes, scratch_bytes;
    bool multiplies_bytes; /* some model of the file calls a core for products of 8-bit integers or of
                            * bfloat16 */
    int *rom_of;               /* by array: its bank of constants */
    CBank *rom;                /* the banks of constants */
    int64_t macs;              /* the multiply-adds of the current node; 0: it has none */
    const char *work;          /* the address of the scratch that all share; NULL: there is none */
    int64_t work_bytes;        /* the scratch of kernels: ETC_WORK_BYTES of this file */
    int64_t lines_bytes;       /* the bytes after it: rows between convolutions, widened weights,
                                * tiles */
    int n_fast;                /* the convolutions that use Winograd's transforms */
    bool uses_work, uses_kept; /* NAME_run uses the shared scratch, and the state */
    Symbol *rows;              /* the size of a cut axis in a part, or of a row that a core hands over */
    const char *rows_name;     /* its name in C */
    bool uses_parts;           /* a node is split into parts */
    bool uses_then;            /* a core of 8-bit integers calls a function of the file */
    bool has_quads;            /* weights of a convolution are in quads */
    bool is_few;                   /* the program is so small that its code is optimized for size */
    bool is_compact, uses_compact; /* products of floats may be computed by kernels/compact.h; some are */
    bool has_bytes, has_wide_bytes; /* there are weights for etc_dot; some are not in -64 .. 64 */
    const Graph *graph;        /* the graph that is printed: the method, or a branch of a cond */
    NameSet *run_names;        /* the names in the scope of NAME_run */
    const Value **value;       /* the values of the method, by index */
    const char **local;        /* by value index: the pointer to it in NAME_run */
    const char **bare_name;    /* by value index of `graph`, for the function of one bare node: */
    bool *bare_read, *is_port; /* as in Function; it is a parameter.  Cleared after each function */
    int *made_along;           /* by value index of `graph`: 1 + the axis along which parts made it; 0:
                                * the calling thread did */
    int *born, *dies;          /* by value index: its live range, in nodes of the method */
    int now;                   /* the number of the current node */
    MadeArray *made;           /* arrays that are no states of the program */
    int *n_readers;            /* by storage: how many operands are constants with its bytes */
    int n_made;
    int64_t flash;       /* the bytes of all arrays that have names so far */
    int64_t told_flash;  /* those of them that a layer before has */
    CLayer *layer;       /* the functions so far */
    int n_layers;
    CustomCall **custom; /* the functions for operators of --ops that are called */
    int n_custom;
    Text functions, locals, run;
} Emit;

bool port_is_tensor(const Value *v); /* a tensor or a number; no input whose value is fixed */
bool port_is_shared(const Emit *e, const Value *v); /* a tensor that lies in the arena or a bank */
bool port_is_parameter(const Emit *e, const Value *v); /* NAME_run has a parameter for it */
/* The memory of a place in a pool, and the bytes from the start of the memory: c_value.c. */
Memory *memory_of(const Emit *e, Place at);
int64_t memory_offset(const Emit *e, Place at);
/* "(uint8_t *)arena + 64" */
const char *memory_address(const Emit *e, const Memory *m, int64_t at);
/* The status of NAME_run if a size is out of its range, and if a guard does not hold. */
int status_of_symbol(const Emit *e, int i);
int status_of_guard(const Emit *e, int i);

/* -- what printers of operators share: c_function.c ------------------------------------------ */

/* Return whether files for CPUs with wider vectors are written, and the one for t.  The function that
 * chooses one of them is in the compiler's library, which a freestanding file may have to do without. */
bool has_variants(const Emit *e);
bool is_variant(const Emit *e, const Target *t);
void take_names(const Emit *e, NameSet *names); /* those of a model's functions and of --ops */
NameSet *c_scope(const Emit *e);                /* makes a set that contains these */
extern const char *const c_own_names[]; /* variables that functions declare; ends with NULL */

bool state_is_array(const Emit *e, const State *s); /* it has an array of its own */

/* -- sizes and pointers: c_value.c --------------------------------------------------------- */

Type value_type(const Value *v); /* its type in C, where arrays of constants are dense */
void put_dim(Emit *e, Text *t, Dim d);
Dim c_dims_product(Emit *e, const Dim *d, int n);
void type_strides(Emit *e, Type t, Dim *stride); /* in elements, as recorded or dense */
bool c_type_is_dense(Emit *e, Type t);           /* sizes of 1 may have any stride */
bool place_is_alias(const Value *v, const Value *of, int64_t offset);

/* Returns the name of a state's array.  The first call for a state makes the name, which depends
 * on earlier calls.  So never write two calls as arguments of one call: compilers evaluate
 * arguments in different orders. */
const char *constant_name(Emit *e, const State *s);
void put_pointer(Emit *e, Text *t, const Value *v);   /* to its first element, in NAME_run */
bool is_of_method(const Emit *e, const Value *v);     /* it has a variable in NAME_run */
bool put_scalar_of(Emit *e, Text *t, const Value *v); /* a value of rank SCALAR */

/* Print the check of one size, and of the guards that can be checked after symbol `last` was
 * read from a tensor; `last` NULL: of those without such symbols. */
void put_symbol_check(Emit *e, Text *t, int i);
void put_guard_checks(Emit *e, Text *t, const Symbol *last);

/* -- functions: c_group.c ------------------------------------------------------------------ */

enum { MAX_LOOPS = MAX_RANK };

/* A part needs of a value only the part's indices along `axis`; AXIS_WHOLE: it needs all of it. */
typedef struct CutValue {
    Value *v;
    int axis;
    Dim stride; /* elements from one index of the axis to the next */
    Type whole; /* its type outside of the part */
    bool keeps; /* it has this type in the part too */
} CutValue;

enum { MAX_CUT = 32 };

/* Describes how a node is split into parts; see c_part.c. */
typedef struct Parts {
    Dim rows;   /* the indices that parts share */
    int merged; /* how many axes before the cut one are counted with it, as if all were one axis */
    int grain;  /* each part begins at a multiple of it */
    double cost;    /* the time of the largest part in that of the whole */
    bool is_stream; /* convolutions run one after the other by rows */
    int n;
    CutValue item[MAX_CUT];
} Parts;

/* The parameters of a function, in order: the values inside the function, and the values of the
 * graph around it that are passed for them. */
typedef struct Ports {
    int n_in, n_out;
    const Value **in, **out;             /* the values inside */
    const Value **outer_in, **outer_out; /* the values passed; for a bare node, the same */
} Ports;

/* A static function that is being printed.  Its parameters are the operands and results of a
 * node of the method, then the symbols that its sizes need, then scratch.  A function that is
 * split gets them in an EtcCall. */
typedef struct Function {
    Emit *e;
    NameSet *names;
    const Graph *g;       /* the body, or the graph of a bare node */
    const char **name_of; /* by value index in g: its pointer or vector variable */
    bool *uses_symbol;    /* by symbol index */
    bool *is_read;        /* by value index: it is a parameter that is read */
    bool uses_work;
    int64_t work_bytes; /* the scratch that is enough for it; 0: that of the target */
    const Parts *parts; /* NULL: it is not split */
    const char *then;   /* the function that makes bytes of the anchor's floats, or NULL */
    int64_t gap_bytes;  /* scratch of its own, at a place without live values; 0: none */
    const char *kernel;   /* the call of the kernel that a forecast is of; NULL: the first in body */
    double steps, terms;  /* as in CLayer, if the emitter of a node knows them; else 0 */
    Text body;
} Function;

#define NO_CLAMP ((Clamp){.lo = -INFINITY, .hi = INFINITY})

/* Prints the code of one node into f->body: column `c` of ir/ops.def.  Returns false if that
 * fails, which is reported.  A core that can end in a clamp gets one. */
typedef bool EmitFn(Function *f, const Node *n, Clamp clamp);

void function_note(Function *f, Dim d);                    /* makes the symbols of d parameters */
void function_dim(Function *f, Dim d);                     /* prints d and calls function_note */
const char *function_pointer(Function *f, const Value *v); /* a parameter, or a constant's array */
bool function_refuse(Function *f, const Node *n, const char *what);
/* Prints groups and bare nodes as functions, and their calls at `indent` in e->run. */
bool emit_graph(Emit *e, const Graph *g, int indent);
const Node *sole_reader(const Graph *g, const Value *v); /* or NULL */
/* If the only reader of *v is a clamp, marks it in `skip`, sets *v to its result and returns it,
 * for the core that computes *v; else returns NO_CLAMP. */
Clamp join_clamp(Function *f, const Graph *body, const Value **v, bool *skip);
/* c_stream.c: prints a group of several convolutions, and marks in `skip` what it computes. */
bool emit_stages(Function *f, const Node *group, const Graph *body, bool *skip);
/* Prints one convolution of a stream as an item of EtcStage stage[]; it keeps `room` rows. */
bool emit_stage(Function *f, const Node *n, Clamp clamp, int room);
/* Prints the call that runs stage[0 .. n) from x to y, `rows` rows at a time. */
void emit_stream(Function *f, const Value *x, const Value *y, int n, int rows);
/* Prints a copy to = from, unless they are the same bytes. */
void put_move(Emit *e, const Value *from, const Value *to, int indent);

#define OP(id, target, out, schema, flags, access, functional, inplace, infer, decomp, kernel, expr, \
           c, cost, scratch, quant)                                                                  \
    EmitFn emit_##c;
#include "ir/ops.def"

/* c_move.c: for each operand of a concat, its first element in the result, and whether it must
 * be copied there. */
typedef struct ConcatMoves {
    Dim *at;
    bool *moves, any_moves;
    Dim stride[MAX_RANK]; /* of the result */
} ConcatMoves;

ConcatMoves concat_moves(Emit *e, const Node *n);
/* c_function.c: checks the operands of a core, which takes dense float tensors; along the first
 * `from` axes they may have gaps.  Reports what is wrong. */
bool check_tensors(Function *f, const Node *n, int from);
Dim size_of(const Value *v, int i); /* of axis i; a negative i counts from the end */
const char *array_or_null(Function *f, const Value *v);
int small_int(const Node *n, const char *name);   /* an argument as int; 0: it is no known number */
void put_field(Function *f, Dim d, bool is_last); /* prints a field of a geometry struct */
void put_fields(Function *f, const Dim *d, int n);
void put_first_field(Function *f, Dim rows); /* the first field of a product: see etc_stored */
void put_clamp(Function *f, Clamp clamp);                       /* "lo, hi" */
/* Prints EtcConv g, without a clamp.  *weights becomes the expression of the weights of integers. */
bool put_conv_geometry(Function *f, const Node *n, Conv *c, const char **weights);
const char *offset_by(Function *f, const char *pointer, Dim d); /* "pointer + d" */

/* -- doubles and integers, for which there are no cores: c_wide.c ---------------------------- */

bool node_is_wide(const Node *n); /* its result is no f32, and C can compute in its dtype */
bool emit_wide_product(Function *f, const Node *n, const Product *p);
bool emit_wide_conv(Function *f, const Node *n);
bool emit_wide_pool(Function *f, const Node *n);
bool emit_wide_softmax(Function *f, const Node *n); /* of doubles */
/* Prints y = alpha y + beta bias after a product of floats. */
void put_scaled(Function *f, const Node *n, const Product *p);

/* -- fixed point on microcontrollers: c_mcu.c ------------------------------------------------ */

/* A set of steps, kernels/mcu_NAME.h. */
typedef struct McuSet McuSet;
const McuSet *mcu_set_find(const char *name); /* NULL: there is none of this name */
/* These print a node if the target has a set that takes it; *done says whether they did. */
bool emit_mcu_conv(Function *f, const Node *n, bool *done);
bool emit_mcu_linear(Function *f, const Node *n, bool *done);
/* A group without an anchor: a quantize, a sum or product of two images, a function of a byte. */
bool emit_mcu_group(Function *f, const Graph *body, bool *done);
/* c_forecast.c: adds a function that was printed to e->layer.  body: NULL if it is one node. */
void note_layer(Emit *e, const Function *f, const Node *n, const char *name, const Graph *body);
int64_t live_bytes(const Emit *e); /* c_memory.c: of values, at the current node */
/* c_mcu_loop.c: any other group whose operands are bytes and numbers. */
bool emit_mcu_loop(Function *f, const Graph *body, bool *done);
bool emit_mcu_max(Function *f, const Node *n, const Pool *w, bool *done);
bool emit_mcu_matmul(Function *f, const Node *n, bool *done);
bool emit_mcu_mean(Function *f, const Node *n, const Pool *w, double ratio, bool *done);

enum { WORK_ALIGN = 64 };

/* -- memory: c_memory.c -------------------------------------------------------------------- */

/* Finds bytes without a live value at the current node, in the fastest memory that has enough, and
 * reserves them.  Returns their address. */
const char *emit_gap(Emit *e, int64_t bytes);
void emit_lifetimes(Emit *e);
void memory_lay_out(Emit *e); /* chooses the places of pools and states */
/* Places the scratch that all share after everything else; returns its address. */
const char *memory_take_work(Emit *e);
void memory_tell(Emit *e, CFiles *out); /* sets the banks of *out */
void put_memory_macros(Emit *e, Text *t);
void put_memory_needs(Emit *e, Text *t);                   /* the table in the first comment */
void put_memory_comment(Emit *e, Text *t, const Value *v); /* the place of a shared port */

/* Estimate the stack and the code of the file of a quantized model if gcc compiles it: c_sizes.c.
 * stack_below returns the bytes that functions take below NAME_run, or -1; stack_of_run those of
 * NAME_run itself, once all functions are printed, or 0; stack_bytes the sum; code_bytes those of
 * the code of n models in one file, without the C library's.  -1 and 0 mean that they are unknown. */
int stack_below(const Emit *e, const char *functions);
int stack_of_run(const Emit *e);
int stack_bytes(const Emit *e);
int code_bytes(const Emit *e, int n);

/* -- parts that run at once: c_part.c ------------------------------------------------------- */

/* With --parallel: takes the names of the variables of split functions and of their calls. */
void take_part_names(const Emit *e, NameSet *names);
void take_thread_names(const Emit *e, NameSet *names); /* those of OUT_threads.c */
void parts_start(Emit *e); /* adds the symbol e->rows */

/* Splits a node, or a group with this body, if that is possible and worth it.  Until parts_close
 * the types of its values are those of a part. */
const Parts *parts_open(Emit *e, const Node *n, const Graph *body);
void parts_close(const Parts *p);
void parts_pass(Emit *e, const Node *n); /* notes that a node leaves all bytes where they are */
/* The functions from here to part_is_columns are in c_function.c. */
const CutValue *part_find(const Parts *p, const Value *v); /* NULL: p is NULL or does not cut v */
int part_axis(const Function *f, const Value *v);   /* the axis that is cut, or AXIS_WHOLE */
const Type *part_whole(const Function *f, const Value *v); /* its type outside of the part */
void put_first(Emit *e, Text *t, Dim stride); /* prints the offset of the part in elements */
const char *moved_to_first(Function *f, const char *array, Dim stride); /* "(array + first * stride)" */
/* Returns a pointer to the indices of the part in the array of a constant; `stride` elements lie
 * between two indices. */
const char *part_of_array(Function *f, const Value *v, const char *array, Dim stride);
const char *part_of_constant(Function *f, const Value *v, const char *array); /* a dense one */
/* Returns the first row and the rows of the part, if it is rows of the images of a convolution; else
 * `all`. */
const char *part_of_rows(Function *f, const Value *y, const char *all);
/* Returns whether the part has some columns of a product's result, whose rows lie further apart. */
bool part_is_columns(const Function *f, const Value *y, Dim *row);
/* Returns a pointer to an operand of a loop over elements, and sets its type there: if the part also
 * reads rows around those of the part, the function's parameter points to all of it. */
const char *part_rows_of(Function *f, const Value *v, Type *t);
void put_part_signature(Function *f, const Ports *p, const char *name);
void put_part_call(Emit *e, const Function *f, const Ports *p, const char *name, int indent);
void put_threads_type(const Emit *e, Text *t);
void put_workers(const Emit *e, Text *t); /* the variable of NAME_run that split calls use */
void emit_threads(const Emit *e, CFiles *out); /* OUT_threads.c */

/* -- loops: c_loops.c ---------------------------------------------------------------------- */

/* Nested loops over the elements of a shape.  Each operand has strides of its own. */
typedef struct Nest {
    int rank, n; /* the numbers of loops and operands */
    Dim size[MAX_LOOPS];
    Dim (*stride)[MAX_LOOPS]; /* by operand */
} Nest;

Nest nest_new(Emit *e, Type shape, int n_operands);
/* Sets the strides of operand k, whose type t is broadcast to the shape. */
void nest_operand(Emit *e, Nest *nest, int k, Type t);
/* Joins loops that are one run for all operands, and removes loops of one turn; one loop stays. */
void nest_collapse(Emit *e, Nest *nest);
/* Prints the heads of loops [0, n) and returns the indent of their body. */
int nest_open(Function *f, const Nest *nest, int n, const char **index);
void nest_close(Function *f, int n);
/* Prints the address of operand k in loops [0, n): "p + (i * 8) + j". */
void nest_address(Function *f, const Nest *nest, int k, const char *pointer, int n,
                  const char *const *index);

/* Prints the loops of a copy y = x with these strides. */
void put_copy(Function *f, Type shape, const char *x, const Dim *x_stride, const char *y,
              const Dim *y_stride);

/* -- pointwise members of a group: c_pointwise.c ------------------------------------------- */

/* Prints one loop that computes the pointwise nodes of the body, except those in `skip` (by the
 * value index of their result), and stores `root`. */
bool put_pointwise(Function *f, const Graph *body, const bool *skip, const Value *root);
bool dtype_has_c(EtcDtype t); /* C can compute with its elements: c_value.c */

/* c_custom.c: declares the functions for operators of --ops. */
void put_custom(Emit *e, Text *t);

/* -- constants and the other files --------------------------------------------------------- */

bool emit_constants(Emit *e, Text *t, CFiles *out); /* c_weights.c: arrays, or .S and .bin */
int64_t constant_bytes(const Emit *e);
/* Returns the elements of v as they lie in the model's file, perhaps unaligned; NULL: it is no
 * dense constant of dtype t. */
const uint8_t *constant_bytes_of(Emit *e, const Value *v, EtcDtype t);
/* The same, aligned. */
const void *constant_data(Emit *e, const Value *v, EtcDtype t);
const char *wish_of(const Value *w); /* the name that arrays made from this constant should have */
/* Adds an array of n elements that is no state of the program; returns its name. */
const char *made_array(Emit *e, const char *wish, const char *what, EtcDtype t, int64_t n,
                       void *data);
/* The same for weights in blocks. */
const char *made_blocks(Emit *e, const char *wish, const RowBlocks *b);

/* -- weights in blocks: c_blocks.c ----------------------------------------------------------- */

int64_t blocks_numel(const RowBlocks *b);
void blocks_make(const void *blocks, int64_t from, int64_t n, uint8_t *to); /* `make` of OutPiece */
/* Returns whether a constant matrix with so many rows (or columns) is stored in blocks.  It is
 * not if anything else reads it too, because then it would be stored twice. */
bool weight_is_blocked(Emit *e, const Value *w, int64_t rows);
/* Returns whether --math bf16 rounded the elements of a constant, so that they are stored as
 * bfloat16. */
bool weight_is_bfloat(Emit *e, const Value *w);
/* Returns how many words of so many terms, at least 1, kernels/bfloat_tiles.h multiplies in a step, and
 * in all. */
int64_t step_words(int64_t terms);
int64_t all_words(int64_t terms);
/* Adds the array of a weight in blocks.  `of` has everything but the bytes. */
const char *blocked_weight(Emit *e, const Value *w, RowBlocks of);

/* -- Winograd's transforms: c_winograd.c ----------------------------------------------------- */

/* Returns how many rows of tiles --math fast computes at a time; 0: the convolution is computed
 * exactly. */
int64_t winograd_rows(Emit *e, const Conv *c, const Value *y);
/* Writes number i of the 16 that 3x3 weights become. */
void winograd_weight(const uint8_t *from, int64_t i, uint8_t *to);
/* Prints the call of the core, whose geometry is g, with pointers to x and to y. */
void put_winograd(Function *f, const Conv *c, const Value *y, int64_t rows, const char *from,
                  const char *to, int indent);

/* Returns whether C for the program multiplies 8-bit integers or bfloat16: c_integer.c. */
bool program_multiplies_bytes(const Program *p);

/* -- what NAME_run takes and returns: c_header.c ---------------------------------------------- */

#define C_FIRST_LINES "/* SPDX-License-Identifier: 0BSD */\n/* "

void put_parameters(Emit *e, Text *t); /* of the declaration of NAME_run */
void put_arguments(Emit *e, Text *t);  /* of a call with the parameters of NAME_run */
const char *c_base_name(const char *path);
/* Prints the text that the first comments of NAME.h and NAME.c share, after the name of the file.
 * e has the n models of the file. */
void put_about(Emit *e, int n, Text *t);
/* Writes NAME.h.  The value of the macro that guards it is a digest of its code, by which the
 * other files recognize the header of another run. */
void emit_header(Emit *e, int n, const char *about, CFiles *out);
/* Prints the #include of NAME.h, and a check that it is the one that was written in this run. */
void put_include(const Emit *e, const CFiles *out, Text *t);

/* -- files: c_text.c ------------------------------------------------------------------------- */

bool c_file_is(const CFile *f, const char *end); /* its suffix ends with `end` */
void c_file(Arena *a, CFiles *out, const char *suffix, const Text *text);
void c_file_piece(Arena *a, CFiles *out, int file, OutPiece piece);
/* c_kernels.c: prints the text of the kernels that `code` calls, for a target and this much
 * scratch. */
void put_chunks(Text *t, const Text *code, const Target *target, int64_t work_bytes);
/* Prints a header that is the fixed part of a program. */
void put_program(Text *t, const char *header);
bool emit_main(Emit *e, CFiles *out); /* c_main.c: OUT_main.c */
/* c_build.c: adds the build files for all files so far.  e has the n models of the file. */
void emit_build_files(const Emit *e, int n, CFiles *out);

#endif
