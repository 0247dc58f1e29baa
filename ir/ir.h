/* ir.h -- programs, graphs, nodes, values: how to build, walk, print, check and evaluate them.
 *
 * A Program owns methods, states and symbols; all it points at lives in program->arena and dies
 * with it, but the bytes of weights, which are mapped from the model's file.  A graph sees its own
 * values and the program's states and symbols, nothing of other graphs.  Names, types and literal
 * arguments are immutable once made; nodes and their operands change through the mutators below.
 */
#ifndef ETC_IR_H
#define ETC_IR_H

#include "runtime-lite/etc_rt.h"
#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* The function reports an error before it returns false or NULL, so its caller must not go on as if
 * there were a result. */
#define MUST_USE __attribute__((warn_unused_result))

/* -- arena ------------------------------------------------------------------------------- */

typedef struct Arena Arena;

Arena *arena_new(void);
Arena *arena_within(Arena *host); /* dies first; lies in what the host's newest block has left */
void *arena_alloc(Arena *a, size_t n, size_t size); /* n*size zeroed bytes; never NULL */
void *arena_pages(Arena *a, size_t n); /* zeroed; backed by memory where first touched */
void *arena_bytes(Arena *a, size_t n); /* not zeroed: to be written at once; 64-byte aligned */
void *arena_grow(Arena *a, void *array, int n, size_t size); /* with room for element n */
char *arena_str(Arena *a, const char *s, size_t len);
char *arena_join(Arena *a, const char *s, const char *t);
char *arena_printf(Arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), nonnull(2)));
char *arena_print(Arena *a, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
void arena_reset(Arena *a);
/* Empties the arena for who fills it again with much the same: keeps what was in use since the last
 * time. */
void arena_rewind(Arena *a);
void arena_free(Arena *a);
const uint64_t *arena_secret(Arena *a); /* 2 random words: the same of all within one host */
void memory_will_change(void *data, size_t n); /* a hint: all of it is about to be written */
#define NEW(arena, T, n) ((T *)arena_alloc((arena), (size_t)(n), sizeof(T)))
#define PUSH(arena, array, n, item) \
    ((array) = arena_grow((arena), (array), (n), sizeof *(array)), (array)[(n)++] = (item))

/* -- checked arithmetic: false on overflow ------------------------------------------------- */

static inline bool add_ok(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool mul_ok(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

int64_t round_up(int64_t n, int64_t align); /* n <= INT64_MAX - align */

/* -- bytes: bank.c ------------------------------------------------------------------------ */

typedef struct BankItem {
    const uint8_t *data;
    int64_t n, offset;
} BankItem;

/* Bytes, one behind the other; equal ones are there once. */
typedef struct Bank {
    int64_t align, size;
    BankItem *item;
    int n;
    struct Table *known[2]; /* -> item + 1: by some of their bytes, by all */
} Bank;

/* Index of these bytes in the bank; `data` is not copied. */
int bank_add(Bank *b, Arena *a, const uint8_t *data, int64_t n);

/* -- numbers of 8 and 16 bits: half.c ---------------------------------------------------- */

uint16_t half_of(float v); /* f16 */
double half_value(uint16_t h);
uint16_t bfloat_of(float v);
double bfloat_value(uint16_t h);
double f8_value(EtcDtype t, uint8_t bits);

/* -- diagnostics ------------------------------------------------------------------------- */

/* Where in the user's model something stands; unknown parts are NULL or 0. */
typedef struct Loc {
    const char *file;   /* "mnv3.pt2" or "dce.etir" */
    int line, column;   /* of a text input, from 1 on; else 0 */
    const char *node;   /* "conv2d_3" */
    const char *op;     /* "aten.conv2d.default" */
    const char *module; /* "blocks.0.conv" */
    const char *source; /* "model.py:12": from the export */
} Loc;

/* The fault decides the exit code: FAULT_MODEL 1, FAULT_IO 3, FAULT_UNSUPPORTED 4,
 * FAULT_GATE 5, FAULT_BUG 70, FAULT_USAGE 2. */
typedef enum Fault {
    FAULT_MODEL,
    FAULT_IO,
    FAULT_UNSUPPORTED,
    FAULT_GATE,
    FAULT_BUG,
    FAULT_USAGE,
    N_FAULTS
} Fault;

extern const char *const fault_name[N_FAULTS]; /* "model", "io", ... */

typedef struct Diag {
    FILE *out;    /* NULL: nobody reads, errors are counted */
    bool is_json; /* a line of JSON for each message, else a text for people */
    int n[N_FAULTS];
} Diag;

/* Each reports one error and returns false, so a caller may write `return diag_error(...)`. */
bool diag_error(Diag *d, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool diag_unsupported(Diag *d, Loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool diag_io(Diag *d, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool diag_fault(Diag *d, Fault f, Loc loc, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void diag_note(Diag *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void diag_warn(Diag *d, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* For who calls what reports before it returns false: where there are still `before` errors, it did
 * not, which is reported as a fault of etc, under its name.  Returns false too. */
bool diag_untold(Diag *d, int before, Loc loc, const char *kind, const char *name);
int diag_errors(const Diag *d);    /* of all faults */
int diag_exit_code(const Diag *d); /* 70, 2, 3, 1, 4, 5 in this precedence; 0 without errors */

#define MESSAGE_ERROR "error"
#define MESSAGE_BUG "internal error"
#define MESSAGE_WARNING "warning"
#define MESSAGE_NOTE "note" /* belongs to the message before it */

typedef struct Message {
    const char *kind;
    Fault fault; /* N_FAULTS: none */
    Loc loc;
    const char *text;
} Message;

void message_put(FILE *out, const Message *m);      /* for people */
void message_put_json(FILE *out, const Message *m); /* one line; docs/cli.md has its fields */

/* No program and no file can bring this about.  It ends the process and prints the source line. */
#ifdef NDEBUG
#define UNREACHABLE() __builtin_unreachable()
#else
#define UNREACHABLE() reached(__FILE__, __LINE__)
#endif
_Noreturn void reached(const char *file, int line);

/* -- operators --------------------------------------------------------------------------- */

typedef enum OpId {
#define OP(id, ...) OP_##id,
#include "ir/ops.def"
    N_OPS,
    OP_NONE = N_OPS
} OpId;

enum {
    COMMUTES = 1 << 0,
    KEEP = 1 << 1,
    VIEW = 1 << 2,
    CHECK = 1 << 3,
    CUT = 1 << 4,
    WIDENS = 1 << 5,
    TELLS = 1 << 6, /* sizes of its results depend on elements */
    FLOATS = 1 << 7,
    FITS = 1 << 8,
    UNROLLS = 1 << 9,
    UNROLLS_TINY = 1 << 10,
    CHAIN = 1 << 11
};

/* Which elements of its operands an element of a result depends on: column `access`. */
typedef enum Access {
    ACCESS_OPAQUE,    /* nothing is known */
    ACCESS_POINTWISE, /* those in its place; operands are broadcast */
    ACCESS_VIEW,      /* its operand's elements in their order under other sizes */
    ACCESS_PERMUTE,   /* its operand's axes in another order */
    ACCESS_PART,      /* some indices of axis `dim` */
    ACCESS_JOIN,      /* its operands one behind the other along axis `dim` */
    ACCESS_MOVE,      /* its operand's elements in other places */
    ACCESS_ALONG,     /* those along the axes `dim`, at one index of the others */
    ACCESS_PRODUCT,   /* a row of the first matrix and a column of the second */
    ACCESS_WINDOW,    /* a window over the axes behind images and channels */
    ACCESS_NORM,      /* those of one sample or row, scaled by a statistic of all of them */
    ACCESS_GATHER     /* one at a computed place, or a constant */
} Access;

typedef struct Node Node;
typedef struct Type Type;

/* Sets out[0..n_out) from the node's arguments, or reports why there is no such type. */
typedef bool InferFn(const Node *n, Type *out, Diag *d);
typedef int64_t CostFn(const Node *n);    /* multiply-adds at the upper bounds; saturates */
typedef int64_t ScratchFn(const Node *n); /* bytes the kernel wants beside its arguments */

typedef struct OpInfo {
    const char *target, *out, *schema;
    unsigned flags;
    Access access;
    OpId functional;  /* twin of an op that writes its input, else OP_NONE */
    unsigned inplace; /* bit i: output 0 may overlay the value of argument i */
    InferFn *infer;
    CostFn *cost;
    ScratchFn *scratch;
    bool has_decomp, has_kernel;
    const char *decomp, *kernel, *expr, *c, *quant; /* the columns as text; "none" */
} OpInfo;

extern const OpInfo op_info[N_OPS];
/* Kinds of nodes whose times follow the same rule. */
typedef enum Work {
    WORK_ARITHMETIC,
    WORK_ATTENTION,
    WORK_CONV,
    WORK_DEPTHWISE,
    WORK_FUNCTION,
    WORK_MOVE,
    WORK_NORM,
    WORK_PERMUTE,
    WORK_POOL,
    WORK_PRODUCT,
    WORK_REDUCE,
    WORK_SOFTMAX,
    WORK_VIEW_OR_COPY,
    N_WORKS
} Work;

Work node_work(const Node *n);
const char *work_name(Work w);
double node_units(const Node *n);   /* what its time grows with: multiply-adds, or bytes */
double node_seconds(const Node *n); /* in the kernel that computes it where no backend does */

/* An operator of a file that --ops names: a row like those of ops.def, made at run time, and where
 * it stands.  Its nodes are of OP_CUSTOM and have the row. */
typedef struct CustomOp {
    OpInfo row; /* `c`: "custom" where there is a function of C, else "none" */
    const struct Schema *schema;
    const char *name;     /* "mylib::swish", as the file has it */
    Loc at;
    const char *function; /* of C, or NULL */
    const struct CustomRules *rules; /* passes/custom.c: result types, and the composite */
} CustomOp;

typedef struct CustomOps {
    Arena *arena;
    CustomOp **item;
    int n;
    struct Table *by_target;
} CustomOps;

CustomOps *custom_ops_new(Arena *a);
/* False: there is an operator of this target already, which stays. */
bool custom_ops_add(CustomOps *c, CustomOp *op);
const CustomOp *custom_ops_find(const CustomOps *c, const char *target); /* c may be NULL */
/* Whether a namespace is torch's, that of a runtime's kernels, or ours. */
bool namespace_is_taken(const char *name);

const OpInfo *node_row(const Node *n); /* the node's row of ops.def, or of its own operator */

OpId op_find(const char *target);           /* OP_NONE when unknown */
bool text_is_name(const char *s, char also); /* ASCII letters, digits, '_' and `also`; not empty */

/* Which of the names offered a word was meant to be. */
typedef struct Near {
    const char *word, *best; /* NULL: none is near */
    int edits;               /* between them */
} Near;

Near near_word(const char *word);
bool near_consider(Near *n, const char *name);  /* whether it is the nearest by now */
const char *near_text(Arena *a, const Near *n); /* "; did you mean 'NAME'?", or "" */
Near near_operator(Arena *a, const char *word); /* of all targets, or of their middles */

/* -- sizes ------------------------------------------------------------------------------- */

/* A sum of products over symbols, in canonical form and interned in its program: equal sizes are
 * equal pointers.  ir/symint.c. */
typedef struct Expr Expr;

/* The number that a program's verifier gave this text, once found sound: what names are told apart
 * by.  Of another text than the name has now, it says nothing. */
typedef struct NameId {
    const char *text;
    int number;
} NameId;

typedef struct Symbol {
    const char *name;
    NameId name_id;
    int index;      /* in program->sym */
    const Expr *size; /* the symbol itself, once it was asked for */
    int64_t lo, hi; /* hi is INT64_MAX where unbounded */
} Symbol;

typedef struct Dim {
    const Expr *expr; /* NULL: the integer `value` */
    int64_t value;
} Dim;

/* A condition on the symbols that must hold at every call.  INT64_MIN and INT64_MAX stand for no
 * bound. */
typedef struct Guard {
    Dim size;
    int64_t lo, hi;
    const char *text; /* as the user knows it */
} Guard;

typedef struct Program Program;

#define DIM(n) ((Dim){NULL, (n)})
extern const Dim DIM_BAD;    /* what overflow and division by zero give; absorbs all else */
bool dim_is_bad(Dim d);
Dim dim_symbol(Program *p, const Symbol *s);
Dim dim_add(Program *p, Dim a, Dim b);
Dim dim_sub(Program *p, Dim a, Dim b);
Dim dim_mul(Program *p, Dim a, Dim b);
Dim dim_floordiv(Program *p, Dim a, Dim b); /* towards minus infinity, as Python's // */
Dim dim_mod(Program *p, Dim a, Dim b);      /* sign of b, as Python's % */
/* d where sizes padded to a multiple, n + mod(-n, 64), are written as that multiple.  Sums do not do
 * this themselves: taking n from such a sum would not give mod(-n, 64) back. */
Dim dim_expand(Program *p, Dim d);
Dim dim_max(Program *p, Dim a, Dim b);
Dim dim_min(Program *p, Dim a, Dim b);
bool dim_equal(Dim a, Dim b);                            /* the same for all values */
bool dims_equal(const Dim *a, const Dim *b, int n);
void dim_range(Dim d, int64_t *lo, int64_t *hi);         /* INT64_MIN, INT64_MAX: unbounded */
int64_t dim_upper(Dim d);                                /* INT64_MAX: unbounded */
bool dim_eval(Dim d, const int64_t *symbol, int64_t *v); /* false on overflow */
/* Calls visit(symbol, ctx) for every symbol in d. */
void dim_symbols(Dim d, void (*visit)(const Symbol *s, void *ctx), void *ctx);
void dim_print(Dim d, FILE *out);
const char *dim_text(Program *p, Dim d); /* for messages; in the program's arena */
const char *size_text(Program *p, Dim d); /* the same as the export wrote it, without the '%' */
/* d = scale * symbol + offset with scale > 0. */
bool dim_is_linear(Dim d, const Symbol **symbol, int64_t *scale, int64_t *offset);

/* The parts of a sum, for those who compute it: its constant and number of terms; of a term its
 * coefficient and number of factors; a factor. */
typedef enum FactorKind { F_SYMBOL, F_FLOORDIV, F_MOD, F_MAX, F_MIN } FactorKind;

typedef struct Factor {
    FactorKind kind;
    const Symbol *symbol; /* F_SYMBOL */
    Dim a, b;             /* operands of the others */
} Factor;

int dim_terms(Dim d, int64_t *constant);
int dim_term(Dim d, int i, int64_t *coefficient);
Factor dim_factor(Dim d, int i, int k);

/* -- types and arguments ----------------------------------------------------------------- */

/* Dtypes of a program: those of the runtime, and complex ones, which pass decompose ends. */
#define IR_DTYPES(X) ETC_DTYPES(X) X(C64, 9, 8, c64) X(C128, 10, 16, c128)
#define ETC_C64 ((EtcDtype)9)
#define ETC_C128 ((EtcDtype)10)

enum { SCALAR = -1, MAX_RANK = 16 }; /* rank SCALAR: a Python int (I64), float (F64) or bool */

struct Type {
    EtcDtype dtype;
    int rank;
    bool is_none;      /* a result torch left out */
    const Dim *dim;    /* of a SCALAR int: the size it is known to be, or NULL */
    const Dim *stride; /* in elements; NULL: contiguous */
};

#define TYPE_NONE ((Type){.is_none = true, .rank = SCALAR})
bool type_is_static(Type t);
bool type_equal(Type a, Type b);        /* dtype, rank, sizes; not strides */
int64_t type_numel(Type t);             /* at the upper bounds; INT64_MAX: unbounded, overflow */
int64_t type_bytes(Type t);             /* the same */
Type type_tensor(Program *p, EtcDtype dtype, int rank, const Dim *dim); /* copies dim */
Type type_size(Program *p, Dim d); /* a SCALAR int that is d */
void type_print(Type t, FILE *out);
const char *dtype_name(EtcDtype t);
bool dtype_is_float(EtcDtype t);
bool dtype_is_int(EtcDtype t); /* bool is not */
bool dtype_is_complex(EtcDtype t);
EtcDtype dtype_of_part(EtcDtype t); /* of the real part of a complex number; else t */
int64_t dtype_bytes(EtcDtype t);    /* of one element */

/* Where bytes lie at run time: a planned pool 1, 2, ... or memory of the caller. */
typedef enum PoolId { POOL_NONE = 0, POOL_IN = -1, POOL_OUT = -2, POOL_STATE = -3 } PoolId;
extern const char *const pool_name[4]; /* by -PoolId */

typedef struct Place {
    int pool;
    int64_t offset; /* bytes; of POOL_IN and POOL_OUT, the number of the argument */
} Place;

typedef struct Graph Graph;

typedef enum ArgKind {
    ARG_NONE,
    ARG_VALUE,
    ARG_INT,
    ARG_FLOAT,
    ARG_BOOL,
    ARG_DTYPE,
    ARG_STRING,
    ARG_LIST,
    ARG_GRAPH
} ArgKind;

typedef struct Arg {
    ArgKind kind;
    int depth;       /* of a list, while passes/composite.c makes it: lists in lists */
    const char *key; /* of `key=value`, else NULL: the schema's order names it */
    union {
        int slot; /* ARG_VALUE: node->in[slot] */
        Dim dim;  /* ARG_INT, symbolic or not */
        double f;
        bool b;
        EtcDtype dtype;
        const char *str;
        Graph *graph;
        struct {
            const struct Arg *item;
            int n;
        } list;
    };
} Arg;

/* -- graphs ------------------------------------------------------------------------------ */

/* Parameter, buffer the model only reads, buffer it writes, constant, delegate's bytes, bytes that
 * a delegate asks for by their fqn. */
typedef enum StateKind {
    ST_PARAM,
    ST_BUFFER,
    ST_MUTABLE,
    ST_CONST,
    ST_BLOB,
    ST_NAMED,
    N_STATE_KINDS
} StateKind;

typedef struct State {
    StateKind kind;
    int index;        /* in program->state */
    int id;           /* of its making: stays when others are dropped */
    const char *name; /* without the '%' */
    NameId name_id;
    const char *fqn;  /* "blocks.0.conv.weight"; of a blob, the backend's id */
    const char *file; /* archive member that holds the bytes; "-": the compiler's side file */
    int64_t offset;   /* first byte in it */
    Type type;
    Place place;      /* of a mutable one */
    /* The first element's byte, in the private mapping of the model's file or in the arena; NULL
     * where a text names bytes that are not at hand.  `n_bytes` may be read from there.  Files put
     * weights anywhere: who reads more than bytes asks state_elements(). */
    uint8_t *data;
    Arena *arena; /* the program's */
    int64_t n_bytes;
    int storage; /* states with equal numbers share bytes; numbers < program->n_storages */
    bool is_fixed; /* no state_dict has it: a constant, or a buffer that is not persistent */
} State;

typedef struct Value {
    const char *name;
    NameId name_id;
    int index; /* dense in its graph: passes keep arrays of graph->n_values */
    Type type;
    Place place;
    Node *def;    /* NULL for a graph input or a state */
    State *state; /* NULL unless this is the graph's use of a state */
    const Arg *literal; /* of an input that is always this number, string or none; else NULL */
} Value;

struct Node {
    Node *prev, *next;
    Graph *graph;
    OpId op;
    const CustomOp *custom; /* of OP_CUSTOM, else NULL */
    int n_in, n_out, n_args;
    Value **in; /* every value read, in text order, those inside lists too */
    Value **out;
    Arg *arg;   /* all arguments of the schema; values by slot */
    Loc loc;
};

typedef struct Update {
    Value *target, *value;
} Update;

struct Graph {
    Program *program;
    const char *name; /* NULL for a nested graph */
    Node *owner;      /* whose argument a nested graph is; NULL of a method */
    Node *first, *last;
    int n_in, n_out, n_updates, n_pools, n_values, n_states;
    int n_named; /* of a text: by how much numbers in its names run ahead of n_values */
    Value **in, **out;
    Value **state;  /* this graph's values of states, each state once */
    Value **slot;   /* the same, hashed by state id; graph_state() keeps both */
    int n_slots;    /* 0 or a power of two, at least twice n_states */
    Update *update; /* what a call leaves in mutable states and inputs */
    int64_t *pool;  /* planned bytes of pool 1, 2, ... */
    int64_t scratch; /* bytes beside the pools that kernels want; set by plan_memory */
    int64_t whole;   /* most bytes that one operator read and wrote before any was cut; 0: not told */
    bool plan_is_least; /* plan_memory has proven that no offsets make the pools smaller */
};

typedef enum Stage {
    STAGE_ATEN,
    STAGE_CORE,
    STAGE_EDGE,
    STAGE_GROUPED,
    STAGE_PLANNED,
    N_STAGES
} Stage;
extern const char *const stage_name[N_STAGES];
extern const char *const state_kind_name[N_STATE_KINDS];

typedef struct Session Session; /* ir/session.h */

struct Program {
    Arena *arena;
    const char *name; /* the model's file */
    Stage stage;
    Session *session; /* what is to become of it, for passes that ask */
    const CustomOps *custom; /* operators of the user's own, or NULL */
    int n_syms, n_guards, n_states, n_methods, n_storages, n_ids;
    Symbol **sym;
    Guard *guard;
    State **state;
    Graph **method;
    int64_t side_bytes; /* of the side file "-": what the compiler made */
    Bank named;         /* bytes of the states of kind ST_NAMED */
    State **named_state; /* by row of it */
    unsigned edits;     /* bumped by every mutation below; passes never set it by hand */
    struct Table *exprs;           /* symint.c: all sizes that are expressions */
    struct Table *names;           /* verify.c: numbers of the names it has seen */
    struct Assumptions *assumed;   /* guards.c: while program_guard asks; else NULL */
    const struct Schema **schemas; /* schema.c, by OpId, parsed on first use */
    const struct RuleBody **rules; /* passes/composite.h, by rule, parsed on first use */
    const struct Spelled **spelled; /* the same of spelled.txt */
};

Program *program_new(Arena *a, const char *name);
Graph *graph_new(Program *p, const char *name);
Symbol *program_symbol(Program *p, const char *name, int64_t lo, int64_t hi);

/* A new state with a storage of its own; data may be NULL. */
State *program_state(Program *p, StateKind kind, const char *name, const char *fqn, Type type,
                     const char *file, int64_t offset, uint8_t *data, int64_t n_bytes);

/* The bytes of a state, which are at hand, at a multiple of its elements' size: `data`, which moves
 * to an aligned copy the first time that it has to.  Threads ask for those of a program that
 * program_align() was called on. */
void *state_elements(State *s);
void program_align(Program *p);

/* A constant the compiler made, in the side file; `data` (type_bytes(type) bytes) is not copied.
 * The name is made unique from `stem`. */
State *program_const(Program *p, const char *stem, const char *fqn, Type type, void *data);

/* A weight in a backend's layout, in the side file; its fqn, made unique, is its key.  Equal bytes
 * of one type have one key, whoever asks for them. */
State *program_named(Program *p, const char *stem, const char *fqn, Type type, const void *data);
void program_keep_states(Program *p, const bool *keep); /* by index; drops the others */

Value *graph_value(Graph *g, const char *name, Type type);
int graph_number(const Graph *g); /* behind a dot it makes the next value's name one of its own */
/* Returns a name for a state to be made: this one, or one that begins so and that the program does
 * not have. */
const char *program_name(const Program *p, const char *name);
Value *graph_state(Graph *g, State *s); /* the graph's value of s, made on first use */
Value *graph_find_state(const Graph *g, const State *s); /* the same, or NULL: not used yet */
const Value **graph_values(const Graph *g, Arena *tmp); /* by index; NULL: of a removed node */
void graph_add_input(Graph *g, Value *v);
void graph_keep_inputs(Graph *g, const bool *keep); /* by position; the others are unread */
void graph_add_output(Graph *g, Value *v);
void graph_set_output(Graph *g, int i, Value *v);
void graph_add_update(Graph *g, Value *target, Value *value);

/* Makes a node that is in no list yet.  Arguments and outputs are pushed, then it is placed. */
Node *node_new(Graph *g, OpId op, Loc loc);
Node *node_new_custom(Graph *g, const CustomOp *op, Loc loc);
Node *node_like(Graph *g, const Node *n); /* of n's operator and place in the model */
void node_push(Node *n, Arg a);           /* next argument; values through node_arg_value */
Arg node_use(Node *n, Value *v);          /* an argument that reads v (NULL: none) */
void node_push_list(Node *n, Value *const *v, int count); /* next argument: a list of values */
Value *node_add_out(Node *n, const char *name, Type type);

void graph_append(Graph *g, Node *n);
void graph_insert(Graph *g, Node *before, Node *n); /* before NULL: at the end */
void graph_remove(Graph *g, Node *n);
void graph_reorder(Graph *g, Node *const *order, int n); /* all n nodes, uses after definitions */
void node_set_in(Node *n, int slot, Value *v);
void node_set_op(Node *n, OpId op); /* the arguments must fit the new row as they are */
void node_set_arg(Node *n, int i, Arg a); /* a literal in the place of a literal */
void value_set_type(Value *v, Type t);
void value_set_place(Value *v, Place at);

/* Replaces values in all operands, updates and outputs: with[index] or NULL to leave; chains are
 * followed.  One linear sweep; a pass collects and calls it once. */
void graph_replace(Graph *g, Value **with);

/* Gives a new node, in no list yet, the defaults of the arguments that were not pushed and its
 * results, typed by its infer rule, and places it before `before` (NULL: at the end).  False:
 * reported. */
MUST_USE bool node_place(Node *n, Node *before, Diag *d);
/* Places a node as node_place does, of an operator whose types are given: they are those of `of`,
 * before which the node comes, or of complex numbers those of their parts. */
MUST_USE bool node_place_half(Node *n, Node *of, Diag *d);

/* A node of `op` before `before` (NULL: at the end), typed by its infer rule.  One letter per
 * schema argument; what the format leaves out is filled with schema defaults:
 *   v Value* (NULL: none)   i int64_t   d Dim   f double   b int   s const char*   t EtcDtype
 *   n none   a Arg (already of this node's making: literals only)
 *   I int n, const int64_t*   D int n, const Dim*   V int n, Value**
 * Outputs are named after loc.node.  NULL: reported. */
Node *build(Graph *g, Node *before, Loc loc, OpId op, Diag *d, const char *fmt, ...);
/* The same of an operator whose result types are given, one for each result of its schema. */
Node *build_given(Graph *g, Node *before, Loc loc, OpId op, const Type *type, Diag *d,
                  const char *fmt, ...);

/* Nodes copied into the body of `call`, a node in no list yet: outline.c.  What they read from
 * outside but constants becomes the body's inputs, and operands that `call` reads already.
 * `inner`, by index of the values outside: their twins; outlines of one graph may share it, as
 * it is all NULL before the start and after the end. */
typedef struct Outline {
    Graph *body;
    Node *call;
    Value **inner;
    Arg *operand;
    int n;
} Outline;
Outline outline_start(Node *call, Node *const *member, int n, Value **inner);
void outline_result(Outline *o, const Value *v,
                    Value **with); /* with: by index, for graph_replace */
Arg outline_operands(const Outline *o);
void outline_end(Outline *o, Node *const *member, int n);

/* Writes, checks and tells a symbol nothing, nor does any graph nested in it. */
bool node_is_pure(const Node *n);
bool node_reads_symbols(const Node *n); /* in an argument, not in the types of its operands */
/* Element by element: what a fused loop computes.  The `c` column says so of most; quantize and
 * dequantize per tensor are where they deal in floats and 8 bits. */
bool node_is_pointwise(const Node *n);
bool node_scales_bytes(const Node *n); /* one of the latter */
bool node_is_expression(const Node *n); /* its row has one: what all fused loops share */
Access node_access(const Node *n);
bool node_moves(const Node *n); /* nothing is computed: each element is one of an operand */
bool node_is_view(const Node *n); /* other sizes over its operand's elements, in their order */
bool node_is_copy(const Node *n); /* its operand again: a clone or alias */
bool op_mutates(OpId op);         /* its schema marks an argument "(a!)" */
bool op_has_regions(OpId op); /* its schema has graphs */
bool op_is_instruction(OpId op); /* a .pte has instructions for it, and calls no kernel */
bool op_is_given(OpId op);        /* its types are the file's word: none are inferred */
bool node_is_complex(const Node *n); /* an operand or a result is */
bool indices_have_mask(const Node *n); /* of index and index_put */

/* Arguments, by their names in the schema: arg_int(n, "dim", &axis).  An argument that the row of n
 * does not have reads as one that was left out; tests/counts.py checks that some row has each name.
 * Code that walks all arguments of any row gives their positions instead.  The accessors assume
 * that schema_check passed. */
Value *first_operand(const Node *n);           /* of any row; NULL: it has none */
int arg_find(const Node *n, const char *name); /* position, or -1: the row has none */
int arg_of(const Node *n, const char *name);   /* position of one that the row has */
Value *arg_value_at(const Node *n, int i);                /* NULL: not a value */
bool arg_int_at(const Node *n, int i, int64_t *v);        /* a plain integer (or bool) */
bool arg_dim_at(const Node *n, int i, Dim *v);            /* an integer, symbolic or not */
bool arg_number_at(const Node *n, int i, double *v);      /* int, float or bool */
bool arg_bool_at(const Node *n, int i);                   /* false where none */
int arg_count_at(const Node *n, int i);                   /* items of a list; 0 where none */
bool arg_ints_at(const Node *n, int i, int64_t *v, int max); /* a list of plain integers */
bool arg_dims_at(const Node *n, int i, Dim *v, int max);  /* a list, symbolic or not */
Value *arg_list_value_at(const Node *n, int i, int k);    /* k-th of a list of values; or NULL */
Arg arg_get_at(const Node *n, int i);                     /* as it stands */

#define ARG_BY_NAME(type, what, params, args)                                        \
    static inline type arg_##what##_of params { return arg_##what##_at args; }
ARG_BY_NAME(Value *, value, (const Node *n, const char *s), (n, arg_find(n, s)))
ARG_BY_NAME(bool, int, (const Node *n, const char *s, int64_t *v), (n, arg_find(n, s), v))
ARG_BY_NAME(bool, dim, (const Node *n, const char *s, Dim *v), (n, arg_find(n, s), v))
ARG_BY_NAME(bool, number, (const Node *n, const char *s, double *v), (n, arg_find(n, s), v))
ARG_BY_NAME(bool, bool, (const Node *n, const char *s), (n, arg_find(n, s)))
ARG_BY_NAME(int, count, (const Node *n, const char *s), (n, arg_find(n, s)))
ARG_BY_NAME(bool, ints, (const Node *n, const char *s, int64_t *v, int max),
            (n, arg_find(n, s), v, max))
ARG_BY_NAME(bool, dims, (const Node *n, const char *s, Dim *v, int max),
            (n, arg_find(n, s), v, max))
ARG_BY_NAME(Value *, list_value, (const Node *n, const char *s, int k), (n, arg_find(n, s), k))
ARG_BY_NAME(Arg, get, (const Node *n, const char *s), (n, arg_find(n, s)))

#define ARG_BY(what, i)                                                              \
    _Generic((i), char *: arg_##what##_of, const char *: arg_##what##_of, default: arg_##what##_at)
#define arg_value(n, i) ARG_BY(value, i)((n), (i))
#define arg_int(n, i, v) ARG_BY(int, i)((n), (i), (v))
#define arg_dim(n, i, v) ARG_BY(dim, i)((n), (i), (v))
#define arg_number(n, i, v) ARG_BY(number, i)((n), (i), (v))
#define arg_bool(n, i) ARG_BY(bool, i)((n), (i))
#define arg_count(n, i) ARG_BY(count, i)((n), (i))
#define arg_ints(n, i, v, max) ARG_BY(ints, i)((n), (i), (v), (max))
#define arg_dims(n, i, v, max) ARG_BY(dims, i)((n), (i), (v), (max))
#define arg_list_value(n, i, k) ARG_BY(list_value, i)((n), (i), (k))
#define arg_get(n, i) ARG_BY(get, i)((n), (i))

/* -- nested graphs: region.c --------------------------------------------------------------- */

/* How a node runs its nested graphs: each of them once, one of them, or again and again in a loop,
 * whose trip count is known when it ends. */
typedef enum RegionKind { REGION_ONCE, REGION_ONE_OF, REGION_LOOP } RegionKind;

RegionKind region_kind(const Node *n);
Graph *group_body(const Node *n); /* NULL: it is no group */
bool region_has_places(const Node *n); /* planned, its graphs' values lie in memory; else in none */
/* A loop of two graphs over the values that it carries and those that it only reads, in no list yet;
 * its results are to be added. */
Node *loop_new(Graph *g, Loc loc, Graph *test, Graph *body, Value *const *carried, int n_carried,
               Value *const *given, int n_given);
Graph *region_next(const Node *n, const Graph *g); /* the graph behind g; of NULL the first */
Graph *region_planned(const Node *n, const Graph *g); /* the same of a node whose graphs have places */

/* All graphs of a node take the same operands. */
int region_n_operands(const Node *n);
Value *region_operand(const Node *n, int i); /* NULL: not a value */
int region_slot(const Node *n, int i);       /* of it in n->in; -1: not a value */
/* Returns whether a loop carries input i of its graphs: it is the operand in the first turn, then
 * what the body returned, and result i of the node in the end. */
bool region_is_carried(const Node *n, int i);
Value *region_input(const Node *n, int i); /* the result that is carried, else the operand */
const Node *region_loop(const Graph *g); /* whose body g is; NULL: of none */
bool region_decides(const Node *n, const Graph *g); /* g returns whether a loop goes on */
int region_n_results(const Node *n, const Graph *g); /* that g is to return */

const Graph *graph_method(const Graph *g); /* that it is, or is part of */

/* Each node of a graph and of those nested in it, a node before what is nested in it:
 * for (Node *n = NULL; (n = walk_next(g, n));) */
Node *walk_next(const Graph *top, const Node *n);
/* Each graph of a program, nested ones before the graph around them.  Whoever looks at a graph may
 * change that one. */
Graph *program_next(const Program *p, const Graph *g);
Graph *program_next_own(const Program *p, const Graph *g); /* but those that delegates run */

/* Users of each value, by value index: users[first[v] .. first[v+1]). */
typedef struct Uses {
    int *first;
    Node **user; /* once per operand */
    bool *escapes; /* an output or an update reads it */
} Uses;
Uses graph_uses(const Graph *g, Arena *tmp);

/* -- schemas ----------------------------------------------------------------------------- */

typedef enum SchemaType {
    SCH_TENSOR, SCH_SCALAR, SCH_INT, SCH_FLOAT, SCH_BOOL, SCH_STR, SCH_DTYPE, SCH_LAYOUT,
    SCH_DEVICE, SCH_MEMORY_FORMAT, SCH_GENERATOR, SCH_GRAPH, SCH_OTHER
} SchemaType;

typedef struct SchemaArg {
    const char *name;
    const char *text; /* "SymInt[2]? stride=[1, 1]" for messages */
    SchemaType type;
    bool is_list, is_optional, is_sym; /* is_optional: of the argument; items: is_item_optional */
    bool is_item_optional, is_keyword, has_default;
    bool mutates; /* (a!) */
    char alias;   /* 'a', or 0 */
    int list_size; /* int[2]: 2; else 0 */
    Arg fallback; /* the default, lists of list_size repeated */
} SchemaArg;

typedef struct Schema {
    int n_args, n_outs; /* n_outs -1: a list */
    const SchemaArg *arg;
    bool has_options; /* dtype, layout, device, pin_memory: not passed to a kernel */
} Schema;

const Schema *op_schema(Program *p, OpId op);
const Schema *node_schema(const Node *n);
/* Reads "(Tensor x, float scale=1.0) -> Tensor" of a user.  NULL: *wrong says why. */
const Schema *schema_read(Arena *a, const char *text, const char **wrong);
MUST_USE bool schema_check(const Node *n, Diag *d); /* arguments and outputs are as its row says */
/* Position of argument `name`, or -1. */
int schema_find(const Schema *s, const char *name, size_t len);
/* Returns whether a kernel is given argument i. */
bool schema_is_passed(const Schema *s, int i);

/* -- text, checks, evaluation ------------------------------------------------------------ */

typedef struct Source { /* text that holds programs one after another */
    const char *file, *text;
    int line;
    const CustomOps *custom; /* that it may name beside those of ops.def; or NULL */
} Source;

/* Reads the next program and moves `src` behind it.  NULL: reported. */
MUST_USE Program *program_parse(Arena *a, Source *src, Diag *d);
void program_print(const Program *p, FILE *out); /* parsing this text gives it back */
void program_write_data(const Program *p, FILE *out); /* the side file "-" */
MUST_USE bool program_read_data(Program *p, const uint8_t *data, int64_t n, Diag *d);
MUST_USE bool program_verify(const Program *p, Diag *d); /* lists every fault, not only the first */
/* No tensor stands where the row wants a number, nor a computed number where it wants a tensor. */
MUST_USE bool node_is_core(const Node *n, Diag *d);
MUST_USE bool graph_infer(Graph *g, Diag *d); /* each recorded type against its infer rule */
MUST_USE bool node_infer(const Node *n, Type *out, Diag *d); /* that rule; schema_check passed */
/* Checks the types of all methods as graph_infer does; what rules assume of symbolic sizes becomes
 * guards. guards.c */
MUST_USE bool program_guard(Program *p, Diag *d);

/* -- evaluator: eval.c --------------------------------------------------------------------- */

/* Evaluates one node whose operands are given; outs are allocated in `a`, sized at the actual
 * sizes.  in[slot] as node->in.  False: no kernel for it, or the kernel refused (reported). */
MUST_USE bool eval_node(const Node *n, EtcTensor *const *in, const int64_t *symbol, Arena *a,
                        EtcTensor **out, Diag *d);
bool eval_can(const Node *n); /* its row has a kernel, or nested graphs that can */

/* Evaluates a graph.  in[i]: the graph's inputs; out[i] and update[i] receive tensors in `a`.
 * States are read from their data.  Where the program is planned and `arena_check`, tensors lie
 * at their places and dead bytes are signalling NaNs. */
MUST_USE bool eval_graph(const Graph *g, EtcTensor *const *in, const int64_t *symbol,
                         bool arena_check, Arena *a, EtcTensor **out, EtcTensor **update, Diag *d);

/* The same, and tells each result of the graph's own nodes as soon as it is there.  Its bytes may
 * be another value's afterwards.  Where the program is not planned, `visit` may change them. */
typedef struct Blas Blas;
typedef void EvalVisit(const Value *v, EtcTensor *t, void *ctx);
typedef struct EvalHow {
    bool arena_check;
    EvalVisit *visit; /* NULL: nobody is told */
    void *ctx;
    const Blas *blas; /* which multiplies, to other bits on other machines; or NULL */
    Arena *tmp;       /* for what does not outlive the call, rewound behind it; NULL: one of its own */
} EvalHow;

MUST_USE bool eval_watched(const Graph *g, EtcTensor *const *in, const int64_t *symbol, EvalHow how,
                           Arena *a, EtcTensor **out, EtcTensor **update, Diag *d);

double exact_exp(double x); /* as kernels compute it: the same on every machine */

/* OpenBLAS, loaded now.  NULL: reported.  blas.c */
const Blas *blas_open(Arena *a, Diag *d);
const char *blas_name(const Blas *b); /* with its version and what CPU it takes this one for */

EtcTensor *tensor_new(Arena *a, EtcDtype dtype, int rank, const int64_t *dim); /* zeroed */
EtcTensor *tensor_copy(const EtcTensor *t, Arena *a);
double tensor_number(const EtcTensor *t, int64_t i); /* element i; NaN where no number is kept so */

/* -- FlatBuffers writer: flat.c ------------------------------------------------------------ */

/* Builds a FlatBuffer back to front, as the format's own builders do.  All offsets are positions
 * from the end.  Vtables are shared where equal.  Source: FlatBuffers internals document. */
typedef struct Flat Flat;
typedef uint32_t FlatRef; /* 0: absent */

Flat *flat_new(Arena *a);
FlatRef flat_string(Flat *f, const char *s);
FlatRef flat_bytes(Flat *f, const void *data, size_t n, size_t align);
FlatRef flat_vector(Flat *f, const void *items, size_t n, size_t item_size);
FlatRef flat_refs(Flat *f, const FlatRef *items, size_t n);
void flat_begin(Flat *f, int n_slots);
void flat_u8(Flat *f, int slot, uint8_t v);
void flat_u16(Flat *f, int slot, uint16_t v);
void flat_i32(Flat *f, int slot, int32_t v, int32_t absent); /* absent: the schema's default */
void flat_u32(Flat *f, int slot, uint32_t v);
void flat_u64(Flat *f, int slot, uint64_t v);
void flat_f32(Flat *f, int slot, float v);
void flat_f64(Flat *f, int slot, double v);
void flat_ref(Flat *f, int slot, FlatRef v); /* 0: left out */
FlatRef flat_end(Flat *f);
/* The finished bytes, in the arena; ident has 4 characters. */
const uint8_t *flat_finish(Flat *f, FlatRef root, const char *ident, size_t *n);

#endif
