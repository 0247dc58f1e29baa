/* ir.h -- programs, graphs, nodes, values: how to build, walk, print, check and evaluate them.
 *
 * A Program owns methods, states and symbols.  Everything it points to lives in program->arena and
 * is freed with it.  The bytes of weights are the exception: they are mapped from the model's file.
 * A graph sees its own values and the program's states and symbols, but nothing of other graphs.
 * Names, types and literal arguments never change once they are made.  Nodes and their operands
 * change only through the mutators below.
 */
#ifndef ETC_IR_H
#define ETC_IR_H

#include "ir/arena.h"
#include "ir/diag.h"
#include "ir/ops.h"
#include "ir/symint.h"

/* -- types and arguments ----------------------------------------------------------------- */

/* The dtypes of a program: those of the runtime, and complex ones, which pass decompose removes. */
#define IR_DTYPES(X) ETC_DTYPES(X) X(C128, 10, 16, c128)
#define ETC_C128 ((EtcDtype)10)

/* The rank SCALAR stands for a Python number: int (dtype I64), float (F64) or bool. */
enum { SCALAR = -1, MAX_RANK = 16 };

struct Type {
    EtcDtype dtype;
    int rank;
    bool is_none;      /* a result that torch left out */
    const Dim *dim;    /* the sizes; of a SCALAR int: its value if that is a known size, or NULL */
    const Dim *stride; /* in elements; NULL: the tensor is contiguous */
};

#define TYPE_NONE ((Type){.is_none = true, .rank = SCALAR})
bool type_is_static(Type t);
bool type_equal(Type a, Type b); /* compares dtype, rank and sizes, but not strides */
/* The number of elements and of bytes at the upper bounds of the sizes.  INT64_MAX: a size has no
 * bound, or the number overflows. */
int64_t type_numel(Type t);
int64_t type_bytes(Type t);
/* Returns the bytes from the first element to the end of the last one, at the upper bounds of sizes
 * and strides; INT64_MAX: there is no bound, a stride is negative, or it leaves 64 bits. */
int64_t type_extent(Type t);
Type type_tensor(Program *p, EtcDtype dtype, int rank, const Dim *dim); /* copies dim */
Type type_size(Program *p, Dim d); /* the type of a SCALAR int whose value is d */
void type_print(Type t, FILE *out);
const char *dtype_name(EtcDtype t);
bool dtype_is_float(EtcDtype t);
bool dtype_is_half(EtcDtype t); /* f16 or bf16 */
bool dtype_is_int(EtcDtype t); /* bool is no int */
bool dtype_is_complex(EtcDtype t);
EtcDtype dtype_of_part(EtcDtype t); /* the dtype of a complex number's real part; else t itself */
int64_t dtype_bytes(EtcDtype t);    /* the bytes of one element */

/* The memory that holds a value at run time: a planned pool 1, 2, ..., or memory of the caller. */
typedef enum PoolId { POOL_NONE = 0, POOL_IN = -1, POOL_OUT = -2, POOL_STATE = -3 } PoolId;
extern const char *const pool_name[4]; /* indexed by -PoolId */

typedef struct Place {
    int pool;
    int64_t offset; /* in bytes; in POOL_IN and POOL_OUT the number of the argument */
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

/* An argument of a node. */
typedef struct Arg {
    ArgKind kind;
    int depth;       /* of a list: how deep it is nested, while passes/composite.c makes it */
    const char *key; /* the name in `key=value`; NULL: the argument is given by its position */
    union {
        int slot; /* ARG_VALUE: the value is node->in[slot] */
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

/* The dtype of a number as a tensor, beside a tensor of dtype `beside`. */
EtcDtype dtype_of_number(ArgKind kind, EtcDtype beside);

/* -- graphs ------------------------------------------------------------------------------ */

typedef enum StateKind {
    ST_PARAM,   /* a parameter */
    ST_BUFFER,  /* a buffer that the model only reads */
    ST_MUTABLE, /* a buffer that the model writes */
    ST_CONST,   /* a constant */
    ST_BLOB,    /* the bytes that a delegate is initialized with */
    ST_NAMED,   /* bytes that a delegate asks for by their fqn */
    N_STATE_KINDS
} StateKind;

typedef struct State {
    StateKind kind;
    int index;        /* its position in program->state */
    int id;           /* a number that stays the same when other states are dropped */
    const char *name; /* without the '%' */
    NameId name_id;
    const char *fqn;  /* "blocks.0.conv.weight"; of a blob, the backend's id */
    const char *file; /* the archive member that holds the bytes; "-": the compiler's side file */
    int64_t offset;   /* the position of the first byte in it */
    Type type;
    Place place; /* of a mutable state, once it is planned */
    /* The bytes from the first element on, in the private mapping of the model's file or in the
     * arena; NULL if a textual program names bytes that are not available.  `n_bytes` of them may
     * be read.  They may be unaligned: code that reads whole elements calls state_elements(). */
    uint8_t *data;
    Arena *arena; /* that of the program */
    int64_t n_bytes;
    MakeBytes *make; /* of kind ST_NAMED: not NULL if the bytes are made from `source`, and no `data` */
    const void *source;
    int storage;   /* states with the same number share bytes; it is below program->n_storages */
    bool is_fixed; /* it is in no state_dict: a constant, or a buffer that is not persistent */
} State;

typedef struct Value {
    const char *name;
    NameId name_id;
    int index; /* below graph->n_values, so that passes can keep arrays by value */
    Type type;
    Place place;
    Node *def;    /* the node that computes it; NULL: it is an input of the graph or a state */
    State *state; /* the state that it stands for in this graph, or NULL */
    const Arg *literal; /* of an input: the number, string or none that it always is, or NULL */
} Value;

struct Node {
    Node *prev, *next;
    Graph *graph;
    OpId op;
    const CustomOp *custom; /* the operator, if `op` is OP_CUSTOM; else NULL */
    int n_in, n_out, n_args;
    Value **in; /* every value that it reads, also those in lists, in the order of the text */
    Value **out;
    Arg *arg; /* all arguments of the schema; a value is given by its slot in `in` */
    Loc loc;
};

/* At the end of a call, `target` (a mutable state or input) gets the value of `value`. */
typedef struct Update {
    Value *target, *value;
} Update;

struct Graph {
    Program *program;
    const char *name; /* NULL: it is a nested graph */
    Node *owner;      /* the node that has this nested graph as an argument; NULL: it is a method */
    Node *first, *last;
    int n_in, n_out, n_updates, n_pools, n_values, n_states;
    int n_named; /* of a parsed graph: how far the numbers in its names are ahead of n_values */
    Value **in, **out;
    Value **state; /* the values that stand for states here; one for each state that it reads */
    Value **slot;  /* a hash table of the same by state id; graph_state() keeps both */
    int n_slots;   /* 0 or a power of two that is at least twice n_states */
    Update *update;
    int64_t *pool;      /* the planned bytes of pool 1, 2, ... */
    int64_t scratch;    /* the bytes that kernels need beside the pools; set by plan_memory */
    int64_t whole;      /* the most bytes that an operator read and wrote before pass tile; or 0 */
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
    Session *session;        /* what the compilation shall produce */
    const CustomOps *custom; /* the operators of --ops, or NULL */
    int n_syms, n_guards, n_states, n_methods, n_storages, n_ids;
    Symbol **sym;
    Guard *guard;
    State **state;
    Graph **method;
    int64_t side_bytes;  /* the size of the side file "-", which holds constants that passes made */
    ByteStore named;     /* the bytes of the states of kind ST_NAMED */
    State **named_state; /* the state of each item of `named` */
    unsigned edits;      /* every mutator below increments it; passes never set it */
    struct Table *exprs; /* symint.c: all sizes that are expressions */
    struct Table *names; /* verify.c: the numbers of names that it has checked */
    struct Assumptions *assumed;    /* guards.c: not NULL while program_guard runs */
    const struct Schema **schemas;  /* schema.c, by OpId; each is parsed on first use */
    const struct RuleBody **rules;  /* passes/composite.h, by rule; each is parsed on first use */
    const struct Spelled **spelled; /* the same for the rules of spelled.txt */
};

Program *program_new(Arena *a, const char *name);
Graph *graph_new(Program *p, const char *name);
Symbol *program_symbol(Program *p, const char *name, int64_t lo, int64_t hi);
/* Returns the first input axis whose size is the symbol, as " (input.axis)"; "": there is none. */
const char *program_axis(const Program *p, const Symbol *s);

/* Makes a state with a storage of its own.  `data` is not copied and may be NULL. */
State *program_state(Program *p, StateKind kind, const char *name, const char *fqn, Type type,
                     const char *file, int64_t offset, uint8_t *data, int64_t n_bytes);

/* Returns the bytes of a state, aligned to the size of an element; `data` must not be NULL.  If
 * they are not aligned, the first call copies them and changes `data`.  So threads may call this
 * only after program_align(), which does so for all states. */
void *state_elements(State *s);
void program_align(Program *p);
/* Return whether v is a state that no call writes, and whether its elements can be read, too: it is
 * no blob, it has no strides, and all its bytes are at hand.  v may be NULL. */
bool value_is_fixed(const Value *v);
bool value_is_known(const Value *v);
Place value_place(const Value *v); /* that of its state, if it stands for one */
bool value_lies_within(const Value *inner, const Value *outer); /* its bytes are some of the other's */

/* Makes a constant in the side file.  `data` has type_bytes(type) bytes and is not copied.  Its
 * name begins with `stem` and is unique. */
State *program_const(Program *p, const char *stem, const char *fqn, Type type, void *data);

/* Makes a weight in a backend's layout, in the side file.  Its key is `fqn`, made unique.  A second
 * call with the same type and bytes returns the same state. */
State *program_named(Program *p, const char *stem, const char *fqn, Type type, const void *data);
/* The same for bytes that `make` makes from the n_source bytes at `source` when they are written.
 * A second call with the same type, source and `make` returns the same state. */
State *program_named_made(Program *p, const char *stem, const char *fqn, Type type,
                          const void *source, int64_t n_source, MakeBytes *make);
/* Returns the type_bytes(s->type) bytes of a state, or NULL if they are not at hand.  Bytes that
 * are to be made are made in the arena. */
const uint8_t *state_contents(const State *s, Arena *a);
void program_keep_states(Program *p, const bool *keep); /* drops those with keep[index] false */

Value *graph_value(Graph *g, const char *name, Type type);
/* Returns a number that no value's name has after its last dot.  NAME.NUMBER is thus a new name. */
int graph_number(const Graph *g);
/* Returns a name for a new state: `name` itself, or a longer one that no state has. */
const char *program_name(const Program *p, const char *name);
Value *graph_state(Graph *g, State *s); /* the value that stands for s here; made on first use */
Value *graph_find_state(const Graph *g, const State *s); /* the same; NULL: there is none yet */
/* Makes a constant as program_const does, with the fqn of `like` and its name, which `part` follows.
 * Returns the value that stands for it in g. */
Value *graph_const_like(Graph *g, const State *like, const char *part, Type type, void *data);
/* Returns all values by index, in `tmp`; NULL stands for those of removed nodes. */
const Value **graph_values(const Graph *g, Arena *tmp);
void graph_add_input(Graph *g, Value *v);
void graph_keep_inputs(Graph *g, const bool *keep); /* drops the others, which nobody may read */
void graph_add_output(Graph *g, Value *v);
void graph_set_output(Graph *g, int i, Value *v);
void graph_add_update(Graph *g, Value *target, Value *value);

/* Makes a node that is in no graph's list yet: push its arguments, add its outputs, then place
 * it. */
Node *node_new(Graph *g, OpId op, Loc loc);
Node *node_new_custom(Graph *g, const CustomOp *op, Loc loc);
Node *node_like(Graph *g, const Node *n); /* with the operator and the location of n */
void node_push(Node *n, Arg a);           /* adds an argument; node_use makes one of a value */
Arg node_use(Node *n, Value *v);          /* makes an argument that reads v; none if v is NULL */
void node_push_list(Node *n, Value *const *v, int count); /* adds a list of values */
Value *node_add_out(Node *n, const char *name, Type type);

void graph_append(Graph *g, Node *n);
void graph_insert(Graph *g, Node *before, Node *n); /* before NULL: at the end */
void graph_remove(Graph *g, Node *n);
/* Puts the nodes into another order.  `order` holds all n nodes, each after those that it reads. */
void graph_reorder(Graph *g, Node *const *order, int n);
void node_set_in(Node *n, int slot, Value *v);
void node_set_op(Node *n, OpId op);       /* the arguments must fit the new row as they are */
void node_set_arg(Node *n, int i, Arg a); /* replaces a literal by a literal */
void value_set_type(Value *v, Type t);
void value_set_place(Value *v, Place at);

/* Replaces each value v in all operands, updates and outputs by with[v->index], unless that is
 * NULL.  The replacement is looked up again, so chains work.  One call is a sweep over the whole
 * graph: passes collect their replacements and call it once. */
void graph_replace(Graph *g, Value **with);

/* Completes a new node and places it before `before` (NULL: at the end): arguments that were not
 * pushed get the schema's defaults, and the results get the types of the infer rule.  Returns false
 * if that fails, which is reported. */
MUST_USE bool node_place(Node *n, Node *before, Diag *d);
/* The same for an operator whose result types the file gives.  They are taken from `of`, and the
 * node is placed before it.  A complex type is replaced by that of its real part. */
MUST_USE bool node_place_half(Node *n, Node *of, Diag *d);

/* Makes a node of `op` before `before` (NULL: at the end), typed by its infer rule.  `fmt` has one
 * letter per argument of the schema; those that it leaves out get the schema's defaults:
 *   v Value* (NULL: none)   i int64_t   d Dim   f double   b int   s const char*   t EtcDtype
 *   n none   a Arg (a literal)
 *   I int n, const int64_t*   D int n, const Dim*   V int n, Value**
 * The outputs are named after loc.node.  Returns NULL if it fails, which is reported. */
Node *build(Graph *g, Node *before, Loc loc, OpId op, Diag *d, const char *fmt, ...);
/* The same with given result types, one for each result of the schema. */
Node *build_given(Graph *g, Node *before, Loc loc, OpId op, const Type *type, Diag *d,
                  const char *fmt, ...);

/* Copies nodes into the body of `call`, a new node; see outline.c.  Values that they read from
 * outside become inputs of the body and operands of `call`; constants are read in the body itself.
 * `inner` maps the index of a value outside to its copy inside.  It is all NULL before
 * outline_start and after outline_end, so all outlines of one graph can use the same array. */
typedef struct Outline {
    Graph *body;
    Node *call;
    Value **inner;
    Arg *operand;
    int n;
} Outline;
Outline outline_start(Node *call, Node *const *member, int n, Value **inner);
/* Adds v to the results.  The value that replaces it outside goes to with[v->index], for
 * graph_replace. */
void outline_result(Outline *o, const Value *v, Value **with);
Arg outline_operands(const Outline *o);
void outline_end(Outline *o, Node *const *member, int n);

/* Returns whether a node, with all graphs nested in it, only computes its results: it writes no
 * argument, checks nothing and defines no symbol. */
bool node_is_pure(const Node *n);
bool node_reads_symbols(const Node *n); /* an argument has a symbol, whatever its operands have */
/* Returns whether a fused loop can compute the node element by element.  The column `c` says so for
 * most; quantize and dequantize per tensor are pointwise between floats and 8-bit integers. */
bool node_is_pointwise(const Node *n);
bool node_scales_bytes(const Node *n);  /* it is such a quantize or dequantize */
bool node_is_expression(const Node *n); /* its row has an expression, which all fused loops share */
Access node_access(const Node *n);
bool node_moves(const Node *n);      /* it computes nothing: each element is one of an operand */
bool node_is_view(const Node *n);    /* it has its operand's elements in the same order */
bool node_keeps_bytes(const Node *n); /* or its bytes, as elements of another dtype */
bool node_is_copy(const Node *n);    /* its result equals its operand: a clone or alias */
bool op_mutates(OpId op);            /* its schema marks an argument with "(a!)" */
bool op_has_regions(OpId op);        /* its schema has graphs as arguments */
bool op_is_instruction(OpId op);     /* a .pte has instructions for it and calls no kernel */
bool op_is_given(OpId op);           /* its result types are those of the file; none are inferred */
bool node_is_complex(const Node *n); /* an operand or a result is complex */
bool indices_have_mask(const Node *n); /* an index of index or index_put is a mask of bools */

/* Arguments are read by their names in the schema: arg_int(n, "dim", &axis).  If the row of n
 * has no argument of this name, it counts as left out.  tests/counts.py checks that each name
 * occurs in some row.  Code that walks all arguments of any row gives positions instead.  All of
 * these assume that schema_check passed. */
Value *first_operand(const Node *n);           /* NULL: the node has no operand */
int arg_find(const Node *n, const char *name); /* the position; -1: the row has no such argument */
int arg_of(const Node *n, const char *name);   /* the position; the row must have the argument */
Value *arg_value_at(const Node *n, int i);     /* NULL: it is no value */
bool arg_int_at(const Node *n, int i, int64_t *v);           /* a known integer, or a bool */
bool arg_dim_at(const Node *n, int i, Dim *v);               /* an integer, symbolic or not */
bool arg_number_at(const Node *n, int i, double *v);         /* an int, float or bool */
bool arg_bool_at(const Node *n, int i);                      /* false also if it is left out */
int arg_count_at(const Node *n, int i);                      /* the length of a list; else 0 */
bool arg_ints_at(const Node *n, int i, int64_t *v, int max); /* a list of known integers */
bool arg_dims_at(const Node *n, int i, Dim *v, int max); /* a list of integers, symbolic or not */
Value *arg_list_value_at(const Node *n, int i, int k);   /* item k of a list of values, or NULL */
Arg arg_get_at(const Node *n, int i);                    /* the argument as it is stored */

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

/* A node runs each of its nested graphs once, only one of them, or runs them again and again
 * in a loop, whose trip count may be unknown until it ends. */
typedef enum RegionKind { REGION_ONCE, REGION_ONE_OF, REGION_LOOP } RegionKind;

RegionKind region_kind(const Node *n);
Graph *group_body(const Node *n); /* NULL: it is no group */
/* Counts the elements of each operand that a run of the node reads, with the upper bounds of
 * sizes: cost.c. */
void node_reads(const Node *n, int64_t *reads, Arena *tmp);
bool region_has_places(const Node *n); /* the planner gives memory to the values of its graphs */
/* Makes a loop with two graphs, `test` and `body`: a new node, to which the caller adds the
 * results.  `carried` are the values that the loop changes from iteration to iteration, `given`
 * those that it reads. */
Node *loop_new(Graph *g, Loc loc, Graph *test, Graph *body, Value *const *carried, int n_carried,
               Value *const *given, int n_given);
Graph *region_next(const Node *n, const Graph *g); /* the graph after g; the first one after NULL */
Graph *region_planned(const Node *n, const Graph *g); /* the same; NULL unless region_has_places */

/* All graphs of a node take the same operands. */
int region_n_operands(const Node *n);
Value *region_operand(const Node *n, int i); /* NULL: it is no value */
int region_slot(const Node *n, int i);       /* its index in n->in; -1: it is no value */
/* Returns whether a loop carries input i of its graphs.  In the first iteration the input is
 * operand i, later what the body returned in the iteration before; at the end it is result i of the
 * node. */
bool region_is_carried(const Node *n, int i);
Value *region_input(const Node *n, int i);           /* result i if it is carried, else operand i */
const Node *region_loop(const Graph *g);             /* the loop that g is the body of, or NULL */
bool region_decides(const Node *n, const Graph *g);  /* g is the test of a loop */
int region_n_results(const Node *n, const Graph *g); /* the number of results that g must have */

const Graph *graph_method(const Graph *g); /* the method that g is, or is nested in */

/* Iterates over the nodes of a graph and of the graphs nested in it, outer nodes before inner ones:
 * for (Node *n = NULL; (n = walk_next(g, n));) */
Node *walk_next(const Graph *top, const Node *n);
/* Iterates over the graphs of a program, nested ones before the graph around them.  The loop may
 * change the graph that it is at. */
Graph *program_next(const Program *p, const Graph *g);
Graph *program_next_own(const Program *p, const Graph *g); /* leaves out those that delegates run */

/* The users of the value with index v are user[first[v] .. first[v + 1]). */
typedef struct Uses {
    int *first;
    Node **user;   /* a node stands here once per operand */
    bool *escapes; /* by value index: an output or an update reads it */
    int n_values;  /* values from this index on were made later */
} Uses;
Uses graph_uses(const Graph *g, Arena *tmp);
/* Returns the node that reads v, if one operand of one node reads it, and no output or update; else
 * NULL.  A value that was made after graph_uses() does not count as read. */
Node *value_reader(const Uses *u, const Value *v);
bool value_is_read_once(const Uses *u, const Value *v); /* it has such a reader */

/* -- schemas ----------------------------------------------------------------------------- */

typedef enum SchemaType {
    SCH_TENSOR, SCH_SCALAR, SCH_INT, SCH_FLOAT, SCH_BOOL, SCH_STR, SCH_DTYPE, SCH_LAYOUT,
    SCH_DEVICE, SCH_MEMORY_FORMAT, SCH_GENERATOR, SCH_GRAPH, SCH_OTHER
} SchemaType;

typedef struct SchemaArg {
    const char *name;
    const char *text; /* "SymInt[2]? stride=[1, 1]" for messages */
    SchemaType type;
    unsigned kinds; /* bit k: a literal or value of this type may be of ArgKind k */
    bool is_list, is_optional, is_sym; /* the list itself may be none; see is_item_optional */
    bool is_item_optional, is_keyword, has_default;
    bool mutates;  /* it is marked "(a!)" */
    char alias;    /* 'a', or 0 */
    int list_size; /* 2 of int[2]; else 0 */
    Arg fallback;  /* the default; one number for a list of list_size is repeated */
} SchemaArg;

typedef struct Schema {
    int n_args, n_outs; /* n_outs is -1 if the result is a list */
    const SchemaArg *arg;
    bool has_options; /* it has dtype, layout, device and pin_memory, which kernels do not get */
} Schema;

const Schema *op_schema(Program *p, OpId op);
const Schema *node_schema(const Node *n);
/* Parses a user's schema, "(Tensor x, float scale=1.0) -> Tensor".  Returns NULL if it is wrong;
 * *wrong says why. */
const Schema *schema_read(Arena *a, const char *text, const char **wrong);
/* Checks that arguments and outputs are as the row says; reports what is wrong. */
MUST_USE bool schema_check(const Node *n, Diag *d);
/* Returns the position of argument `name`, or -1. */
int schema_find(const Schema *s, const char *name, size_t len);
/* Returns whether a kernel gets argument i. */
bool schema_is_passed(const Schema *s, int i);

/* -- text and checks -------------------------------------------------------------------- */

/* A text that holds one program after another. */
typedef struct Source {
    const char *file, *text;
    int line;
    const CustomOps *custom; /* operators that it may name beside those of ops.def, or NULL */
} Source;

/* Parses the next program and moves `src` to its end.  Returns NULL if it is wrong, which is
 * reported. */
MUST_USE Program *program_parse(Arena *a, Source *src, Diag *d);
void program_print(const Program *p, FILE *out);      /* parsing this text gives the program back */
void program_write_data(const Program *p, FILE *out); /* writes the side file "-" */
MUST_USE bool program_read_data(Program *p, const uint8_t *data, int64_t n, Diag *d);
MUST_USE bool program_verify(const Program *p, Diag *d); /* reports all faults */
/* Checks that no tensor is given where the row wants a number, and no computed number where it
 * wants a tensor. */
MUST_USE bool node_is_core(const Node *n, Diag *d);
MUST_USE bool graph_infer(Graph *g, Diag *d); /* compares recorded types with the infer rules */
MUST_USE bool node_infer(const Node *n, Type *out, Diag *d); /* assumes that schema_check passed */
/* Checks the types of all methods as graph_infer does.  What the rules assume about symbolic sizes
 * becomes guards of the program; see guards.c. */
MUST_USE bool program_guard(Program *p, Diag *d);

#endif
