/* c_emit.h -- what the files that print C share.
 *
 * Everything is printed into Texts, which live in the arena of the call.  A planned graph becomes
 * one static function per group or copy, and a list of calls.
 */
#ifndef ETC_EMIT_C_EMIT_H
#define ETC_EMIT_C_EMIT_H

#include "emit/c_chunks.h"
#include "emit/emit.h"
#include "ir/views.h"
#include <math.h>

/* -- text: c_text.c ------------------------------------------------------------------------ */

typedef struct Text {
    Arena *a;
    char *s; /* NUL-terminated once something was put */
    size_t n, cap;
} Text;

void put(Text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void put_n(Text *t, const char *s, size_t n);
void put_wrapped(Text *t, const char *s); /* lines of code, broken at 100 columns */
void put_comment(Text *t, const char *s); /* what may stand inside a comment; at most 100 chars */
void put_float(Text *t, float f);         /* a literal that reads back as f, NaN's payload apart */
void put_weight(Text *t, float f);        /* the same at a tenth of the time, maybe longer */
void put_double(Text *t, double f);
void put_int(Text *t, int64_t v);         /* an int64_t expression */
const char *c_type(EtcDtype t);           /* "float"; bf16 and f16 are uint16_t */
const char *loc_text(Loc loc, Arena *a);  /* "fc1 (model.py:12)" or "" */
void put_type_comment(Text *t, Type type);
void put_string(Text *t, const char *s); /* a C string */

/* -- names: c_names.c ---------------------------------------------------------------------- */

typedef struct NameSet NameSet;
NameSet *names_new(Arena *a);
/* A C identifier of prefix and `wish`, not given before; no keyword, no macro of a compiler. */
const char *names_make(NameSet *s, const char *prefix, const char *wish);
void names_take(NameSet *s, const char *name); /* as it is; may be given already */
char *c_identifier(Arena *a, const char *wish); /* neither unique nor checked for keywords */
char *c_upper(Arena *a, const char *s);
/* NAME of NAME_run for an output file: the last part of `stem`, fit to open an identifier. */
const char *c_model_name(Arena *a, const char *stem);

/* -- the state of one emission ------------------------------------------------------------- */

typedef struct CustomCall CustomCall; /* c_custom.c */

/* Rows of a weight that stand together in a block: ETC_TOGETHER of kernels/tile.h. */
enum { TOGETHER = 16 };

/* f32 matrices, one behind the other, as blocks of rows, each [term][row of the block]; row r and term k
 * of a matrix lie at r * row + k * term of it.  c_blocks.c */
typedef struct RowBlocks {
    const uint8_t *from; /* aligned or not */
    int64_t count, rows, terms, row, term;
    bool is_filled; /* the last block of a matrix has all rows, the missing ones of zeros */
} RowBlocks;

/* An array that no state of the program is; its bytes are the state's, or the blocks. */
typedef struct MadeArray {
    const State *state;
    const RowBlocks *blocks;
    int64_t reads;
} MadeArray;

/* Memory that NAME_run is given for values and scratch: the arena, or a bank. */
typedef struct Memory {
    const char *name, *upper; /* of the parameter and of macros: "arena", "ARENA" */
    const char *base;         /* its bytes, as NAME_run calls them: "pool" */
    int64_t size;             /* what there is; INT64_MAX: as much as wanted */
    int64_t values, bytes;    /* taken by pools; by these and scratch */
    int64_t work;             /* scratch that lies where no values do, within `bytes` */
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
    const char *part;         /* "_keyword" in the names of files of this model alone, where lib.c has
                               * several; else "" */
    const char *inner;        /* the function behind NAME_run */
    int64_t bound;            /* bytes live at once, which no plan goes below */
    Graph *method;
    NameSet *names;           /* of the file's scope */
    const char **constant;    /* C name of each state's array, by state index; NULL: not read */
    int64_t *reads;           /* of its elements by one node, at most; by state index */
    const State **of_storage; /* the state whose array others with equal bytes share */
    const char **symbol;      /* C name, by symbol index */
    const Value **item_of;    /* the tensor whose element a symbol is, by symbol index, or NULL */
    bool *is_read;            /* it is, where the code has come to so far */
    const char **told;        /* by symbol index: where NAME_run writes a size of results that only
                               * it finds, or NULL */
    const char **in_name, **out_name; /* parameters of NAME_run */
    Memory *memory;           /* the arena, or a bank for each pool */
    int n_memories;
    int64_t *pool_base;       /* first byte of pool 1, 2, ... in its memory; by pool */
    int64_t state_bytes, scratch_bytes;
    int *rom_of;              /* by array: the bank of constants where it lies */
    CBank *rom;               /* banks of constants */
    int64_t macs;             /* of the node that is printed; 0: it has none */
    const char *work;         /* the address of scratch that all share; NULL: there is none */
    int64_t work_bytes;  /* working memory of kernels: ETC_WORK_BYTES of this file */
    int64_t lines_bytes; /* behind it: rows between convolutions */
    bool uses_work, uses_kept; /* by NAME_run: scratch that all share, and the state */
    const Graph *graph;       /* whose nodes are printed: the method, or a branch of a cond */
    NameSet *run_names;       /* of NAME_run's scope */
    const Value **value;      /* of the method, by index */
    const char **local;       /* its pointer to each of them */
    const char **bare_name;   /* of the function of one bare node, by value index of `graph`: */
    bool *bare_read, *is_port; /* what Function has; taken as a parameter.  Cleared behind it */
    int *born, *dies;         /* by value index: the nodes of the method between which it is in use */
    int now;                  /* the node that is printed */
    MadeArray *made;          /* arrays that no state of the program is */
    int *n_readers;           /* by storage: operands of nodes that are constants with its bytes */
    int n_made;
    CustomCall **custom;      /* the functions of the user's own that are called */
    int n_custom;
    Text functions, locals, run;
} Emit;

bool port_is_tensor(const Value *v); /* or a number; not what an input always is */
bool port_is_shared(const Emit *e, const Value *v); /* a tensor that lies in arena or bank */
/* The memory of a place in a pool, and bytes from the start of that. */
Memory *memory_of(const Emit *e, Place at);
int64_t memory_offset(const Emit *e, Place at);
/* "(uint8_t *)arena + 64" */
const char *memory_address(const Emit *e, const Memory *m, int64_t at);
/* The status of NAME_run for a size out of its range, and for a guard that does not hold. */
int status_of_symbol(const Emit *e, int i);
int status_of_guard(const Emit *e, int i);

/* A set in which the names of the file's own functions are taken. */
NameSet *c_scope(const Emit *e);
extern const char *const c_own_names[]; /* variables that functions declare; ends with NULL */

bool value_is_constant(const Value *v); /* a state that calls do not write */
bool state_is_array(const Emit *e, const State *s); /* has an array of its own */

/* -- sizes and pointers: c_value.c --------------------------------------------------------- */

Type value_type(const Value *v); /* arrays of constants are dense whatever the file had */
void put_dim(Emit *e, Text *t, Dim d);
Dim c_dims_product(Emit *e, const Dim *d, int n);
void type_strides(Emit *e, Type t, Dim *stride); /* in elements, as recorded or dense */
bool c_type_is_dense(Emit *e, Type t); /* sizes of 1 may have any stride */
bool place_is_alias(const Value *v, const Value *of, int64_t offset);

/* Names of constant arrays; the pointer to a value's first element, as NAME_run writes it. */
/* The first call for a state makes the name, which depends on those before: never make two of these
 * calls among the arguments of one call, whose order a compiler may choose. */
const char *constant_name(Emit *e, const State *s);
void put_pointer(Emit *e, Text *t, const Value *v);
bool is_of_method(const Emit *e, const Value *v); /* else its address is an expression */
bool put_scalar_of(Emit *e, Text *t, const Value *v); /* a value of rank SCALAR */

/* Checks of one size, and of the guards that can be checked once `last` is read from a tensor;
 * where it is NULL, of those that speak of no such size. */
void put_symbol_check(Emit *e, Text *t, int i);
void put_guard_checks(Emit *e, Text *t, const Symbol *last);

/* -- functions: c_group.c ------------------------------------------------------------------ */

enum { MAX_LOOPS = MAX_RANK };

/* One static function in the making.  Its parameters are the operands and results of a node of
 * the method, then the symbols its sizes need, then scratch. */
typedef struct Function {
    Emit *e;
    NameSet *names;
    const Graph *g;       /* whose values `name_of` names: the body, or the graph of a bare node */
    const char **name_of; /* pointer or vector variable of a value, by index */
    bool *uses_symbol;    /* by symbol index */
    bool *is_read;        /* by value index, of parameters */
    bool uses_work;
    int64_t work_bytes; /* that it makes do with; 0: the target's */
    int64_t gap_bytes;  /* of its own, which lie where no value does; 0: none */
    Text body;
} Function;

#define NO_CLAMP ((Clamp){.lo = -INFINITY, .hi = INFINITY})

/* Prints the code of one node into f->body; false: reported.  Column `c` of ir/ops.def.  A core
 * that can end in a clamp is told one. */
typedef bool EmitFn(Function *f, const Node *n, Clamp clamp);

void function_note(Function *f, Dim d); /* its symbols become parameters */
void function_dim(Function *f, Dim d);  /* prints d and notes it */
const char *function_pointer(Function *f, const Value *v); /* parameter, or a constant's array */
bool function_refuse(Function *f, const Node *n, const char *what);
/* Groups and bare nodes become functions, and calls at `indent` in e->run. */
bool emit_graph(Emit *e, const Graph *g, int indent);
const Node *sole_reader(const Graph *g, const Value *v); /* or NULL */
/* The clamp that alone reads *v, for the core that makes that: marked in `skip`, its result is *v
 * from here on.  NO_CLAMP: there is none. */
Clamp join_clamp(Function *f, const Graph *body, const Value **v, bool *skip);
/* A group of several convolutions: c_stream.c.  Marks in `skip` what it computes. */
bool emit_stages(Function *f, const Node *group, const Graph *body, bool *skip);
/* One convolution of a stream, as an entry of EtcStage stage[]; it keeps `room` rows. */
bool emit_stage(Function *f, const Node *n, Clamp clamp, int room);
/* The call that runs stage[0 .. n) from x to y, `rows` rows at a time. */
void emit_stream(Function *f, const Value *x, const Value *y, int n, int rows);
/* to = from, unless they are the same bytes. */
void put_move(Emit *e, const Value *from, const Value *to, int indent);

#define OP(id, target, out, schema, flags, access, functional, inplace, infer, decomp, kernel, expr, \
           c, cost, scratch, quant)                                                                  \
    EmitFn emit_##c;
#include "ir/ops.def"

/* A concat, by operand: its first element in the result, and whether it has to be copied there:
 * c_move.c. */
typedef struct ConcatMoves {
    Dim *at;
    bool *moves, any_moves;
    Dim stride[MAX_RANK]; /* of the result */
} ConcatMoves;

ConcatMoves concat_moves(Emit *e, const Node *n);
/* Checks the operands of a core: c_anchor.c.  Cores take float tensors without gaps, except along
 * the first `from` axes.  False: reported. */
bool check_tensors(Function *f, const Node *n, int from);
Dim size_of(const Value *v, int i); /* of axis i; from the end where negative */
const char *array_or_null(Function *f, const Value *v);
int small_int(const Node *n, const char *name); /* an argument that fits; 0: it is no number */
void put_field(Function *f, Dim d, bool is_last); /* of a geometry struct */
void put_fields(Function *f, const Dim *d, int n);
void put_clamp(Function *f, Clamp clamp); /* "lo, hi" */
bool put_conv_geometry(Function *f, const Node *n, Conv *c); /* EtcConv g, without a clamp */
const char *offset_by(Function *f, const char *pointer, Dim d); /* "pointer + d": c_move.c */

/* -- doubles and integers where cores know float alone: c_wide.c ---------------------------- */

bool node_is_wide(const Node *n); /* its result is no float, and of a dtype that C computes in */
bool emit_wide_product(Function *f, const Node *n, const Product *p);
bool emit_wide_conv(Function *f, const Node *n);
bool emit_wide_pool(Function *f, const Node *n);
bool emit_wide_softmax(Function *f, const Node *n); /* of doubles */
/* y = alpha y + beta bias, of floats, behind the product. */
void put_scaled(Function *f, const Node *n, const Product *p);

/* -- fixed point on microcontrollers: c_mcu.c ------------------------------------------------ */

/* A set of steps, kernels/mcu_NAME.h; NULL: there is none of that name. */
typedef struct McuSet McuSet;
const McuSet *mcu_set_find(const char *name);
/* Where the target has a set that takes the node, print its code; *done: they did. */
bool emit_mcu_conv(Function *f, const Node *n, bool *done);
bool emit_mcu_linear(Function *f, const Node *n, bool *done);
/* A group without an anchor: a quantize, a sum or product of two images, a function of a byte. */
bool emit_mcu_group(Function *f, const Graph *body, bool *done);
/* Any other whose operands are bytes and numbers: c_mcu_loop.c. */
bool emit_mcu_loop(Function *f, const Graph *body, bool *done);
bool emit_mcu_max(Function *f, const Node *n, const Pool *w, bool *done);
bool emit_mcu_matmul(Function *f, const Node *n, bool *done);
bool emit_mcu_mean(Function *f, const Node *n, const Pool *w, double ratio, bool *done);

enum { WORK_ALIGN = 64 };

/* -- memory: c_memory.c -------------------------------------------------------------------- */

/* The address of as many bytes that hold no value in use at the node in hand, in the fastest memory
 * that has them; they are taken. */
const char *emit_gap(Emit *e, int64_t bytes);
void emit_lifetimes(Emit *e);
void memory_lay_out(Emit *e); /* where pools and states lie */
/* Gives the scratch that all share a place behind everything else; returns its address. */
const char *memory_take_work(Emit *e);
void memory_tell(Emit *e, CFiles *out); /* what the driver is told of banks */
void put_memory_macros(Emit *e, Text *t);
void put_memory_needs(Emit *e, Text *t); /* the table of the first comment */
void put_memory_comment(Emit *e, Text *t, const Value *v); /* where a shared port lies */

/* The most stack that NAME_run takes, as gcc compiles it; 0: not known: c_stack.c. */
int stack_bytes(const Emit *e);

/* -- loops: c_loops.c ---------------------------------------------------------------------- */

/* Nested loops over the elements of a shape; every operand walks with strides of its own. */
typedef struct Nest {
    int rank, n; /* loops, operands */
    Dim size[MAX_LOOPS];
    Dim (*stride)[MAX_LOOPS]; /* by operand */
} Nest;

Nest nest_new(Emit *e, Type shape, int n_operands);
/* Strides of operand k of type t, broadcast to the nest's shape. */
void nest_operand(Emit *e, Nest *nest, int k, Type t);
/* Joins loops that all operands walk as one, drops loops of one round; leaves at least one. */
void nest_collapse(Emit *e, Nest *nest);
/* Opens loops [0, n) and says at which indent their body stands. */
int nest_open(Function *f, const Nest *nest, int n, const char **index);
void nest_close(Function *f, int n);
/* "p + (i * 8) + j": operand k's address, loops [0, n). */
void nest_address(Function *f, const Nest *nest, int k, const char *pointer, int n,
                  const char *const *index);

/* y = x, both walked as `strides` say; prints the loops of the copy. */
void put_copy(Function *f, Type shape, const char *x, const Dim *x_stride, const char *y,
              const Dim *y_stride);

/* -- pointwise members of a group: c_pointwise.c ------------------------------------------- */

/* Prints one loop that runs the body's pointwise nodes but those in `skip` (by value index of
 * their result) and stores `root` at y. */
bool put_pointwise(Function *f, const Graph *body, const bool *skip, const Value *root);
bool dtype_has_c(EtcDtype t); /* its elements can be computed with */

/* Declares the functions that a user's own operators are computed by: c_custom.c. */
void put_custom(Emit *e, Text *t);

/* -- constants and the other files --------------------------------------------------------- */

bool emit_constants(Emit *e, Text *t, CFiles *out); /* arrays, or .S and .bin: c_weights.c */
int64_t constant_bytes(const Emit *e);
/* The elements of v, as the model's file has them, aligned or not; NULL: it is no dense constant of t. */
const uint8_t *constant_bytes_of(Emit *e, const Value *v, EtcDtype t);
/* The same, aligned. */
const void *constant_data(Emit *e, const Value *v, EtcDtype t);
const char *wish_of(const Value *w); /* what arrays made of this constant are named after */
/* An array of n elements that no state of the program is; returns its name. */
const char *made_array(Emit *e, const char *wish, const char *what, EtcDtype t, int64_t n,
                       void *data);
/* The same of weights in blocks. */
const char *made_blocks(Emit *e, const char *wish, const RowBlocks *b);

/* -- weights in blocks: c_blocks.c ----------------------------------------------------------- */

int64_t blocks_numel(const RowBlocks *b);
void blocks_make(const void *blocks, int64_t from, int64_t n, uint8_t *to); /* of OutPiece */
/* Returns whether a constant matrix of so many rows (or columns) is kept in blocks.  One that anything
 * else reads is not: it would be kept twice. */
bool weight_is_blocked(Emit *e, const Value *w, int64_t rows);
/* The array of a weight in blocks, of which `of` tells all but the bytes. */
const char *blocked_weight(Emit *e, const Value *w, RowBlocks of);

bool c_file_is(const CFile *f, const char *end); /* its suffix ends so */
void c_file(Arena *a, CFiles *out, const char *suffix, const Text *text);
void c_file_piece(Arena *a, CFiles *out, int file, OutPiece piece);
/* Returns a chunk's text.  text: of each header in c_header, what was unpacked before, or NULL. */
const char *unpack_chunk(Arena *a, const char **text, int chunk);
/* The kernel text that `code` needs on a target, with this much working memory: c_kernels.c. */
void put_chunks(Text *t, const Text *code, const Target *target, int64_t work_bytes);
bool emit_main(Emit *e, CFiles *out);       /* OUT_main.c: c_main.c */
/* What compiles all files so far: c_build.c.  e: the n models of the file. */
void emit_build_files(const Emit *e, int n, CFiles *out);

#endif
