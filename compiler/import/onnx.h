/* onnx.h -- shared by the files of the ONNX importer: messages, values, and helpers for the
 * handlers of operators.
 *
 * A function that returns false or NULL has reported why, unless its comment says otherwise. */
#ifndef ETC_IMPORT_ONNX_H
#define ETC_IMPORT_ONNX_H

#include "compiler/import/internal.h"
#include "compiler/import/onnx.pb-c.h"

/* -- bytes: onnx_wire.c ------------------------------------------------------------------------ */

/* Unpacks the messages of a file into `a`.  Large raw data are not copied: they stay in `data`. */
Onnx__Model *onnx_unpack(Arena *a, Loc loc, const uint8_t *data, size_t n, Diag *d);

/* -- values ------------------------------------------------------------------------------------ */

enum { MAX_LIST = 4096 }; /* the most items of a list */

/* A tensor of rank 0, 1 or 2 whose elements are known at import.  Integers and bools are sizes,
 * which may be symbolic; floats are numbers. */
typedef struct OnnxList {
    EtcDtype dtype;
    int rank, n;
    int columns;    /* of a tensor of rank 2, which only on_table() returns; else 0 */
    Dim *dim;       /* the elements if they are integers or bools, else NULL */
    double *number; /* the elements if they are floats, else NULL */
} OnnxList;

/* A constant. */
typedef struct OnnxConst {
    Type type;
    const uint8_t *data; /* may be unaligned */
    int64_t n_bytes;
    int bits;     /* below 8 if the file packs these integers; here each has a byte.  Else 0 */
    State *state; /* NULL until a node reads it as a tensor */
} OnnxConst;

/* A sequence.  Its items are no sequences. */
typedef struct OnnxSequence {
    int n;
    struct OnnxValue **item;
} OnnxSequence;

/* The thing that a name of a graph stands for.  A tensor has at least one of the first three; the
 * others are made from it when they are needed. */
typedef struct OnnxValue {
    Value *value;
    OnnxConst *constant;
    const OnnxList *list;
    int bits;                     /* as in OnnxConst */
    const OnnxSequence *sequence; /* not NULL: it is a sequence, and nothing else is set */
    bool is_none;                 /* it is an empty optional, and nothing else is set */
    bool is_absent; /* it is an input that the call of a function left out; nothing else is set */
    const Onnx__Node *by; /* the node of a graph that defines it, or NULL */
    const struct OnnxScope *scope; /* where that node is */
} OnnxValue;

/* The names of a graph or a function.  Inner graphs also see the names of outer ones. */
typedef struct OnnxScope {
    struct OnnxScope *outer;
    Table values; /* name -> OnnxValue */
    struct Onnx *in;
    Graph *graph; /* the graph of the IR if it is a nested one, else NULL */
    /* Values of outer graphs that a nested graph reads become its inputs: the outer values, and
     * these inputs. */
    Value **captured, **within;
    int n_captured, n_within;
    struct OnnxNode *call; /* the node that calls this function, else NULL */
    const Onnx__Function *function;
    bool lacks; /* the call leaves inputs out */
} OnnxScope;

typedef struct Onnx {
    Program *program;
    Graph *graph;
    Arena *tmp;
    Diag *diag;
    Loc loc;
    const ImportOptions *options;
    Files *files;
    Folder folder;       /* of external data */
    const uint8_t *data; /* the bytes of the file, n of them */
    size_t n;
    const Onnx__Model *model;
    int64_t opset;
    Table taken;     /* the names of values, states and symbols in the IR */
    Table sizes;     /* dim_param -> Dim */
    Table externals; /* location -> OnnxExternal */
    Table functions; /* domain, name and overload -> Onnx__Function */
    int n_calls;     /* how deep calls of functions are nested */
    Table looked_at; /* functions whose operators have been checked */
    size_t spent;    /* how many operands nodes have had so far; a limit for the work of a file */
    bool is_refused; /* the last node was not read */
} Onnx;

typedef struct OnnxRow OnnxRow;

/* A node that is being read. */
typedef struct OnnxNode OnnxNode;
struct OnnxNode {
    Onnx *in;
    OnnxScope *scope;
    const Onnx__Node *node;
    const OnnxRow *row;
    Loc loc;
    bool failed; /* an error was reported */
};

typedef bool OnnxFn(OnnxNode *n);

/* A row of onnx_ops.def. */
struct OnnxRow {
    const char *name;
    int since; /* the first opset in which the operator means this */
    OnnxFn *read;
    OpId op; /* the operator that a handler of several rows builds */
};

/* -- constants: onnx_const.c ------------------------------------------------------------------- */

OnnxConst *onnx_const(Onnx *o, Loc loc, const Onnx__Tensor *t);
bool onnx_dtype(int32_t code, EtcDtype *out); /* false: the IR has no such dtype; no report */
int onnx_bits(int32_t code); /* the bits of integers that are smaller than a byte; else 0 */
Value *onnx_const_value(Onnx *o, const char *name, OnnxConst *c); /* in the graph that is read */
/* Returns NULL without a report if the rank is above 1 or there are too many elements. */
const OnnxList *onnx_const_list(Onnx *o, const OnnxConst *c);

/* -- names and scopes: onnx_scope.c ------------------------------------------------------------ */

const char *onnx_text(Onnx *o, ProtobufCBinaryData text); /* NULL: it contains a NUL */
/* Returns the first 60 characters of a text as a name of the IR: other characters become '_', and
 * 'v' is put in front if the first one is not a letter. */
const char *onnx_name(Arena *a, const char *text);
const char *onnx_unique(Onnx *o, const char *name); /* a new name that resembles this one */
bool onnx_is_default(ProtobufCBinaryData domain);
OnnxValue *onnx_find(OnnxScope *s, const char *name); /* NULL: there is no such name; no report */

/* A graph of the IR that is being made from one of the file. */
typedef struct OnnxNested {
    OnnxScope scope;
    Graph *graph, *outer;
} OnnxNested;

/* Returns a scope in the one of n.  `graph` is the nested graph that it is of, or NULL. */
OnnxScope onnx_scope_within(OnnxNode *n, Graph *graph);
void onnx_enter(OnnxNode *n, OnnxNested *b); /* from here on, nodes are added to a new graph */
void onnx_leave(OnnxNode *n, const OnnxNested *b);

/* -- inputs and constants: onnx_input.c -------------------------------------------------------- */

/* These add the input or constant to the scope. */
bool onnx_input(Onnx *o, OnnxScope *s, const Onnx__ValueInfo *in);
bool onnx_initializer(Onnx *o, OnnxScope *s, const Onnx__Tensor *t);
Dim onnx_symbol(Onnx *o, const char *name, int64_t lo, int64_t hi); /* a new one, named like this */
/* If --dim gives the range of the one element of an integer tensor, the tensor is a list too, of a symbol. */
bool onnx_element(Onnx *o, Loc loc, const char *name, OnnxValue *v);
/* Says which sizes to fix, or which inputs to give ranges, so that a node that was refused may be read. */
void onnx_advise_sizes(const Onnx *o);

/* -- graphs: onnx.c ---------------------------------------------------------------------------- */

bool onnx_opset_is_read(const Onnx *o);
bool onnx_nodes(Onnx *o, OnnxScope *s, Onnx__Node *const *node, size_t n);
const OnnxRow *onnx_row(const char *op, int64_t opset); /* NULL: there is no such row; no report */

/* -- graphs within graphs: onnx_flow.c --------------------------------------------------------- */

bool onnx_functions(Onnx *o);                         /* fills o->functions */
const Onnx__Function *onnx_function(Onnx *o, const Onnx__Node *node); /* NULL: it calls none */
int64_t onnx_opset_of(const Onnx *o, const Onnx__Function *f);
bool onnx_call(OnnxNode *n, const Onnx__Function *f);

/* -- loops that collect rows: onnx_row_loop.c -------------------------------------------------- */

/* A loop of a known number of iterations, each of which adds a row to some tensors. */
typedef struct OnnxRowLoop OnnxRowLoop;
struct OnnxRowLoop {
    Dim iterations;
    int n_carried, n_whole, n_rows;
    /* The loop begins with `carried`, and each iteration reads `whole`.  In iteration() both are
     * values of the body. */
    Value **carried, **whole;
    Value **row; /* n_rows, which iteration() fills */
    /* Builds the nodes of iteration number `at`, [1], and leaves in `carried` what the next
     * iteration gets. */
    bool (*iteration)(OnnxNode *n, OnnxRowLoop *t, OnnxScope *scope, Value *at);
    void *of; /* for iteration() */
};

/* Afterwards `carried` is what the last iteration left, and `row` the rows of all iterations along
 * a first axis. */
bool on_row_loop(OnnxNode *n, OnnxRowLoop *t);
Value *on_from_end(OnnxNode *n, const OnnxRowLoop *t, Value *at); /* `at`, counted from the end */

/* -- for handlers: onnx_node.c ----------------------------------------------------------------- */

bool onnx_wrong(OnnxNode *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool onnx_unsupported(OnnxNode *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool onnx_spend(Onnx *o, size_t n); /* counts n operands; false: the file has too many */

/* Input i of a node.  These return NULL also if it is absent. */
bool on_has(const OnnxNode *n, int i); /* it is not absent */
Value *on_value(OnnxNode *n, int i);
const OnnxList *on_list(OnnxNode *n, int i);  /* NULL without a report: it is not known */
const OnnxList *on_table(OnnxNode *n, int i); /* the same, also of rank 2 */
OnnxConst *on_const(OnnxNode *n, int i);      /* NULL without a report: it is not constant */
int on_bits(OnnxNode *n, int i);              /* as in OnnxConst */
bool on_dims(OnnxNode *n, int i, Dim *out, int *count); /* it must be known, but may be symbolic */
bool on_numbers(OnnxNode *n, int i, int64_t *out, int *count); /* it must be known as numbers */
OnnxValue *on_input(OnnxNode *n, int i); /* a tensor, a sequence or an empty optional */
bool on_wants(const OnnxNode *n, int i); /* output i has a name, so it may be read */
Value *on_tensor(OnnxNode *n, const char *name, OnnxValue *v); /* v, which must be a tensor */
Value *on_list_value(OnnxNode *n, const OnnxList *l);          /* a list as a tensor */

const Onnx__Attribute *on_attribute(OnnxNode *n, const char *name); /* NULL: it is absent */
int64_t on_int(OnnxNode *n, const char *name, int64_t otherwise);
double on_float(OnnxNode *n, const char *name, double otherwise);
const char *on_text(OnnxNode *n, const char *name, const char *otherwise);
int on_ints(OnnxNode *n, const char *name, int64_t *out, int most); /* or -1: it is absent */
/* Checks an axis of a tensor of this rank, and makes it count from 0. */
bool on_axis(OnnxNode *n, int64_t axis, int rank, int *out);

/* Defines output i.  v may be NULL if making it has failed; this returns false then. */
bool on_define(OnnxNode *n, int i, Value *v);
/* The same for a sequence, an empty optional or a tensor. */
bool on_give(OnnxNode *n, int i, OnnxValue *v);
bool on_define_bits(OnnxNode *n, int i, Value *v, int bits);
bool on_define_list(OnnxNode *n, int i, const OnnxList *l);
OnnxList *on_new_list(OnnxNode *n, EtcDtype t, int rank, int count);

/* The first result of a node that build() makes. */
#define ON_BUILD(n, op, ...) \
    on_result(n, build((n)->in->graph, NULL, (n)->loc, op, (n)->in->diag, __VA_ARGS__))
/* The same of an operator whose type is given. */
#define ON_GIVEN(n, op, type, ...)                                                                \
    on_result(n, build_given((n)->in->graph, NULL, (n)->loc, op, &(type), (n)->in->diag,          \
                             __VA_ARGS__))
Value *on_result(OnnxNode *n, const Node *made); /* NULL if `made` is; then n has failed */
Value *on_cast(OnnxNode *n, Value *v, EtcDtype t);
bool onnx_is_f8(EtcDtype t);
/* Casts x to floats of 8 bits; the node's attribute `saturate` says whether larger numbers
 * become the largest. */
Value *on_f8(OnnxNode *n, Value *x, EtcDtype t);
Value *on_conv(OnnxNode *n, Value *x, Value *filter, Value *bias); /* has the node's attributes */
Value *on_average_pool(OnnxNode *n, Value *x);                     /* the same */
Value *on_channels_first(OnnxNode *n, Value *x);
Value *on_channels_last(OnnxNode *n, Value *x);
Value *on_matmul(OnnxNode *n, Value *a, Value *b);
/* Quantizes x to bytes, with a scale and zero point computed from its elements, and dequantizes
 * it again. */
Value *on_rounded(OnnxNode *n, Value *x);
/* Bytes of input i as floats, by the scales of input `at` and the zero points of input `zero`,
 * which are one or those of columns. */
Value *on_dequantized(OnnxNode *n, int i, int at, int zero);
Value *on_gemm(OnnxNode *n); /* computes Gemm of inputs 0 to 2 with the node's attributes */
Value *on_view(OnnxNode *n, Value *v, int rank, const Dim *dim);
Dim on_numel(OnnxNode *n, const Value *x);
Value *on_given(OnnxNode *n, OpId op, Type t, Value *x); /* op of x with a result of type t */
Dim on_new_size(OnnxNode *n, Dim most, int64_t least);   /* a new size, known only at run time */
int on_broadcast(OnnxNode *n, Type a, Type b, Dim *out); /* the rank, or -1 */

/* A function that a recurrent layer has, or an optimizer put behind a product, with its
 * parameters. */
typedef struct Activation {
    const char *name; /* "": none */
    double a, b;
} Activation;
Value *on_activated(OnnxNode *n, Value *x, const Activation *f);
/* Reads the parameters from lists, from places that are counted up; the lists may be one. */
void on_take_parameters(OnnxNode *n, Activation *f, const char *alphas, size_t *alpha, const char *betas,
                        size_t *beta);

/* Build common nodes.  They return NULL if an operand is NULL. */
Value *on_unary(OnnxNode *n, OpId op, Value *x);
Value *on_binary(OnnxNode *n, OpId op, Value *a, Value *b);
Value *on_scalar(OnnxNode *n, OpId op, Value *x, double by);
Value *on_where(OnnxNode *n, Value *c, Value *a, Value *b);
Value *on_full(OnnxNode *n, int rank, const Dim *dim, double v, EtcDtype t);
Value *on_number(OnnxNode *n, double v, EtcDtype t); /* of rank 0 */
Value *on_arange(OnnxNode *n, Dim from, Dim to);     /* from .. to - 1 as i64 */
Value *on_part(OnnxNode *n, Value *x, int axis, Dim from, Dim to, int64_t step);
Value *on_permute(OnnxNode *n, Value *x, const int64_t *order);
Value *on_cat(OnnxNode *n, Value *a, Value *b, int axis);
Value *on_join(OnnxNode *n, int count, Value *const *part, int axis); /* onnx_bags.c */
Value *on_sum(OnnxNode *n, OpId op, Value *x, int axis, bool keeps); /* op: sum, amax, amin, mean */
Value *on_any(OnnxNode *n, Value *x, int axis);    /* keeps the axis, with size 1 */
Value *on_insert(OnnxNode *n, Value *x, int axis); /* inserts an axis of size 1 */
Value *on_floats(OnnxNode *n, int rank, const Dim *dim, const float *v); /* makes a constant */
float *on_table_of(OnnxNode *n, int64_t height, int64_t width); /* zeros; NULL: they are too many */
/* Multiplies the matrix `m`, [height, size of the axis], by x along an axis. */
Value *on_matrix(OnnxNode *n, Value *x, int axis, int64_t height, const float *m);

#define ONNX(name, since, read, op) OnnxFn onnx_##read;
#include "compiler/import/onnx_ops.def"
#undef ONNX

bool onnx_fold(OnnxNode *n); /* computes a node of known lists; false, not reported: it is none */

#endif
