/* onnx.h -- what the parts of the ONNX importer share: messages, values, and what handlers of operators
 * call. */
#ifndef ETC_IMPORT_ONNX_H
#define ETC_IMPORT_ONNX_H

#include "compiler/import/internal.h"
#include "compiler/import/onnx.pb-c.h"

/* -- bytes: onnx_wire.c ------------------------------------------------------------------------ */

/* The messages of a file, in `a`.  Large raw data stay in `data`.  NULL: reported. */
Onnx__Model *onnx_unpack(Arena *a, Loc loc, const uint8_t *data, size_t n, Diag *d);

/* -- values ------------------------------------------------------------------------------------ */

enum { MAX_LIST = 4096 }; /* items of a list: sizes and numbers that arguments are made of */

/* A tensor of rank 0, 1 or 2 whose elements are known: integers and bools as sizes, which may be open,
 * floats as numbers. */
typedef struct OnnxList {
    EtcDtype dtype;
    int rank, n;
    int columns;    /* of a table of rank 2, which on_table() alone gives; else 0 */
    Dim *dim;       /* of integers and bools; else NULL */
    double *number; /* of floats; else NULL */
} OnnxList;

/* The elements of a constant. */
typedef struct OnnxConst {
    Type type;
    const uint8_t *data; /* may be unaligned */
    int64_t n_bytes;
    int bits;     /* of integers that the file packs, which have a byte each here; else 0 */
    State *state; /* once a node has read it as a tensor */
} OnnxConst;

/* The items of a sequence, none of which is a sequence. */
typedef struct OnnxSequence {
    int n;
    struct OnnxValue **item;
} OnnxSequence;

/* A name of a graph.  At least one of the first three tells what a tensor is; others follow from it. */
typedef struct OnnxValue {
    Value *value;
    OnnxConst *constant;
    const OnnxList *list;
    int bits;       /* as a constant's */
    const OnnxSequence *sequence; /* it is one; then nothing else is set */
    bool is_none;   /* an optional that is empty; then nothing else is set */
    bool is_absent; /* an input that the call of a function left out; then nothing else is set */
} OnnxValue;

/* The names of a graph or a function; inner graphs see those of the outer ones. */
typedef struct OnnxScope {
    struct OnnxScope *outer;
    Table values; /* name -> OnnxValue */
    struct Onnx *in;
    Graph *graph; /* of a nested graph of the IR, what it reads of outer graphs are its inputs; else NULL */
    Value **captured, **within; /* these, as the outer graph has them and as this one has */
    int n_captured, n_within;
    struct OnnxNode *call; /* of a function: the node that calls it; else NULL */
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
    Folder folder; /* of external data */
    const uint8_t *data; /* the file */
    size_t n;
    const Onnx__Model *model;
    int64_t opset;
    Table taken;   /* names of values, states and symbols in the IR */
    Table sizes;   /* dim_param -> Symbol */
    Table externals; /* location -> OnnxExternal */
    Table functions; /* domain, name and overload -> Onnx__Function */
    int n_calls;     /* of functions, one in the other */
    Table looked_at; /* functions whose operators are known */
    size_t spent;    /* operands of nodes so far, those of functions and loops as often as they are */
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
    bool failed; /* reported */
};

typedef bool OnnxFn(OnnxNode *n);

/* A row of onnx_ops.def. */
struct OnnxRow {
    const char *name;
    int since; /* the first opset that this row is of */
    OnnxFn *read;
    OpId op; /* what a handler of several operators makes */
};

/* -- constants: onnx_const.c ------------------------------------------------------------------- */

/* NULL: reported. */
OnnxConst *onnx_const(Onnx *o, Loc loc, const Onnx__Tensor *t);
bool onnx_dtype(int32_t code, EtcDtype *out); /* false: no tensor of a program has it */
int onnx_bits(int32_t code); /* of integers of less than a byte; else 0 */
Value *onnx_const_value(Onnx *o, const char *name, OnnxConst *c); /* in the graph that is read */
const OnnxList *onnx_const_list(Onnx *o, const OnnxConst *c); /* NULL: of another rank, or large */
Value *onnx_list_value(OnnxNode *n, const OnnxList *l); /* NULL: reported */

/* -- graphs: onnx.c ---------------------------------------------------------------------------- */

const char *onnx_text(Onnx *o, ProtobufCBinaryData text); /* NULL: it has a NUL; reported */
const char *onnx_unique(Onnx *o, const char *name); /* as an IR name that no other has */
bool onnx_is_default(ProtobufCBinaryData domain);
bool onnx_opset_is_read(const Onnx *o); /* false: reported */
bool onnx_spend(Onnx *o, size_t n);     /* work in operands; false: too much in all, reported */
bool onnx_nodes(Onnx *o, OnnxScope *s, Onnx__Node *const *node, size_t n);

/* -- graphs within graphs: onnx_flow.c --------------------------------------------------------- */

OnnxValue *onnx_find(OnnxScope *s, const char *name); /* NULL: nothing has the name */
bool onnx_functions(Onnx *o); /* makes the table */
const Onnx__Function *onnx_function(Onnx *o, const Onnx__Node *node); /* that it calls; NULL: none */
int64_t onnx_opset_of(const Onnx *o, const Onnx__Function *f);
bool onnx_call(OnnxNode *n, const Onnx__Function *f);
bool onnx_is_absent(const OnnxNode *n, int i); /* the call of a function left input i out */
/* What an attribute of a function's node stands for.  NULL: absent, or reported. */
const Onnx__Attribute *onnx_referred(OnnxNode *n, const Onnx__Attribute *a);

/* -- for handlers: onnx_node.c ----------------------------------------------------------------- */

const OnnxRow *onnx_row(const char *op, int64_t opset); /* NULL: there is none */
bool onnx_wrong(OnnxNode *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool onnx_unsupported(OnnxNode *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

bool on_has(const OnnxNode *n, int i);          /* input i is there */
Value *on_value(OnnxNode *n, int i);            /* NULL: reported, or it is not there */
const OnnxList *on_list(OnnxNode *n, int i);    /* NULL: not known, or not there */
const OnnxList *on_table(OnnxNode *n, int i);   /* the same, of rank 2 too */
OnnxConst *on_const(OnnxNode *n, int i);  /* the same */
int on_bits(OnnxNode *n, int i);                /* of integers of less than a byte; else 0 */
bool on_dims(OnnxNode *n, int i, Dim *out, int *count); /* an input that must be known; reported */
bool on_numbers(OnnxNode *n, int i, int64_t *out, int *count); /* the same, the same in all calls */
bool on_wants(const OnnxNode *n, int i);        /* somebody may read output i */
OnnxValue *on_input(OnnxNode *n, int i); /* as it is: a sequence, too; NULL: absent, or reported */
Value *on_tensor(OnnxNode *n, const char *name, OnnxValue *v); /* NULL: reported */

const Onnx__Attribute *on_attribute(OnnxNode *n, const char *name); /* NULL: absent */
int64_t on_int(OnnxNode *n, const char *name, int64_t otherwise);
double on_float(OnnxNode *n, const char *name, double otherwise);
const char *on_text(OnnxNode *n, const char *name, const char *otherwise);
int on_ints(OnnxNode *n, const char *name, int64_t *out, int most); /* how many; -1: absent */
/* An axis of rank `rank`; false: reported. */
bool on_axis(OnnxNode *n, int64_t axis, int rank, int *out);

bool on_define(OnnxNode *n, int i, Value *v); /* false: v is NULL, which was reported */
/* Makes v the value of output i.  False: v is NULL, or the error was reported. */
bool on_give(OnnxNode *n, int i, OnnxValue *v);
bool on_define_bits(OnnxNode *n, int i, Value *v, int bits);
bool on_define_list(OnnxNode *n, int i, const OnnxList *l);
OnnxList *on_new_list(OnnxNode *n, EtcDtype t, int rank, int count);

/* The first result of a node that build() makes. */
#define ON_BUILD(n, op, ...) \
    on_result(n, build((n)->in->graph, NULL, (n)->loc, op, (n)->in->diag, __VA_ARGS__))
/* The same of an operator whose type is given. */
#define ON_GIVEN(n, op, type, ...)                                                                \
    on_result(n, build_given((n)->in->graph, NULL, (n)->loc, op, &(type), (n)->in->diag, __VA_ARGS__))
Value *on_result(OnnxNode *n, const Node *made); /* NULL of NULL, which fails n */
Value *on_cast(OnnxNode *n, Value *v, EtcDtype t);
bool onnx_is_f8(EtcDtype t);
/* Casts x to floats of 8 bits; the node's attribute `saturate` says whether larger numbers become the largest. */
Value *on_f8(OnnxNode *n, Value *x, EtcDtype t);
Value *on_conv(OnnxNode *n, Value *x, Value *filter, Value *bias); /* by the node's attributes */
Value *on_matmul(OnnxNode *n, Value *a, Value *b);
/* Quantizes x to bytes, with a scale and zero point computed from its elements, and dequantizes it again. */
Value *on_rounded(OnnxNode *n, Value *x);
Value *on_gemm(OnnxNode *n); /* inputs 0 to 2 by the node's attributes */
Value *on_view(OnnxNode *n, Value *v, int rank, const Dim *dim);
Dim on_numel(OnnxNode *n, const Value *x);
Value *on_given(OnnxNode *n, OpId op, Type t, Value *x); /* an operator of x whose type is given */
Dim on_told(OnnxNode *n, Dim most, int64_t least); /* a size between both, which elements tell */
int on_broadcast(OnnxNode *n, Type a, Type b, Dim *out); /* the rank; -1: reported */

/* Nodes of common forms; NULL where an operand is NULL, which was reported. */
Value *on_unary(OnnxNode *n, OpId op, Value *x);
Value *on_binary(OnnxNode *n, OpId op, Value *a, Value *b);
Value *on_scalar(OnnxNode *n, OpId op, Value *x, double by);
Value *on_where(OnnxNode *n, Value *c, Value *a, Value *b);
Value *on_full(OnnxNode *n, int rank, const Dim *dim, double v, EtcDtype t);
Value *on_number(OnnxNode *n, double v, EtcDtype t); /* of rank 0 */
Value *on_arange(OnnxNode *n, Dim from, Dim to); /* from .. to - 1 of i64 */
Value *on_part(OnnxNode *n, Value *x, int axis, Dim from, Dim to, int64_t step);
Value *on_permute(OnnxNode *n, Value *x, const int64_t *order);
Value *on_cat(OnnxNode *n, Value *a, Value *b, int axis);
Value *on_sum(OnnxNode *n, OpId op, Value *x, int axis, bool keeps); /* or amax, amin, mean */
Value *on_any(OnnxNode *n, Value *x, int axis); /* the axis stays, of one element */
Value *on_insert(OnnxNode *n, Value *x, int axis); /* an axis of one element */
Value *on_floats(OnnxNode *n, int rank, const Dim *dim, const float *v); /* a constant */
float *on_table_of(OnnxNode *n, int64_t height, int64_t width); /* zeros; NULL: too many, reported */
/* The product of the [height, size of the axis] matrix `m` and x along an axis. */
Value *on_matrix(OnnxNode *n, Value *x, int axis, int64_t height, const float *m);

#define ONNX(name, since, read, op) OnnxFn onnx_##read;
#include "compiler/import/onnx_ops.def"
#undef ONNX

bool onnx_fold(OnnxNode *n); /* computes a node of lists; false: it is none, not reported */

#endif
