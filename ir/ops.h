/* ops.h -- operators: the rows of ops.def, operators of --ops, and their names. */
#ifndef ETC_IR_OPS_H
#define ETC_IR_OPS_H

#include "ir/arena.h"
#include "ir/diag.h"

typedef enum OpId {
#define OP(id, ...) OP_##id,
#include "ir/ops.def"
    N_OPS,
    OP_NONE = N_OPS
} OpId;

/* Flags of a row; the head of ops.def explains each. */
enum {
    COMMUTES = 1 << 0,
    KEEP = 1 << 1,
    VIEW = 1 << 2,
    CHECK = 1 << 3,
    CUT = 1 << 4,
    WIDENS = 1 << 5,
    DATA_SIZES = 1 << 6,
    FLOATS = 1 << 7,
    FITS = 1 << 8,
    UNROLLS = 1 << 9,
    UNROLLS_TINY = 1 << 10,
    CHAIN = 1 << 11,
    LITE = 1 << 12
};

/* The column `access`: which elements of the operands an element of a result depends on. */
typedef enum Access {
    ACCESS_OPAQUE,    /* nothing is known */
    ACCESS_POINTWISE, /* those at the same index; operands are broadcast */
    ACCESS_VIEW,      /* the operand's elements in the same order under other sizes */
    ACCESS_BITS,      /* the operand's bytes as elements of another dtype */
    ACCESS_PERMUTE,   /* the operand's axes in another order */
    ACCESS_PART,      /* some indices along axis `dim` */
    ACCESS_JOIN,      /* the operands are concatenated along axis `dim` */
    ACCESS_MOVE,      /* the operand's elements at other indices */
    ACCESS_ALONG,     /* all elements along the axes `dim`, at one index of the other axes */
    ACCESS_PRODUCT,   /* a row of the first matrix and a column of the second */
    ACCESS_WINDOW,    /* a window over the axes after those of images and channels */
    ACCESS_NORM,      /* one sample or row, which is scaled by a statistic of all its elements */
    ACCESS_GATHER     /* one element at a computed index, or a constant */
} Access;

typedef struct Node Node;
typedef struct Type Type;

/* Computes the types of the results, out[0..n_out), from the node's arguments.  Returns false if
 * there are none, and reports why. */
typedef bool InferFn(const Node *n, Type *out, Diag *d);
/* Returns the number of multiply-adds at the upper bounds of the sizes; INT64_MAX if it
 * overflows. */
typedef int64_t CostFn(const Node *n);
/* Returns the bytes that the kernel needs in addition to its arguments. */
typedef int64_t ScratchFn(const Node *n);

/* Texts as ir/pack_texts.c packs them. */
typedef struct PackedTexts {
    const uint8_t *byte; /* a zero ends each text */
    const uint8_t *text; /* byte c stands for text[place[c]] .. text[place[c + 1] - 1] */
    const uint16_t *place;
} PackedTexts;

/* Unpacks the text that begins at `at`.  The texts are trusted. */
char *text_unpack(Arena *a, const PackedTexts *t, size_t at);

/* A row of ops.def, as ir/rows.c writes it.  It has no pointers: texts and functions are numbers,
 * and the functions below return what they stand for. */
typedef struct OpInfo {
    uint16_t target, out, schema, flags;
    uint16_t kernel, expr, c, quant;
    uint16_t functional; /* the twin of an operator that writes its input, else OP_NONE */
    uint16_t inplace;    /* bit i: output 0 may overlay the value of argument i */
    uint8_t access;      /* Access */
    uint8_t infer, cost, scratch;
    bool has_decomp, has_kernel, has_out;
    bool has_template; /* its column `c` is not "none" */
    bool mutates;      /* its schema marks an argument as written */
} OpInfo;

extern const OpInfo op_info[N_OPS];
const char *op_target(OpId op);
const char *op_out(OpId op); /* NULL: it has none */
const char *op_schema_text(Arena *a, OpId op);
/* The columns as text, which may be "none". */
const char *op_kernel(OpId op), *op_expr(OpId op), *op_c(OpId op), *op_quant(OpId op);
InferFn *op_infer(OpId op);
int64_t node_cost(const Node *n);
int64_t node_scratch(const Node *n);

/* Classes of nodes in the cost model: the time of a class grows by one rule. */
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
double node_units(const Node *n);   /* multiply-adds or bytes: its time is proportional to them */
double node_seconds(const Node *n); /* the estimated time in the portable kernel */

/* An operator that a file of --ops describes: a row like those of ops.def, made at run time.  Its
 * nodes have the operator OP_CUSTOM and point to this. */
typedef struct CustomOp {
    OpInfo row;               /* without texts and functions */
    const char *target, *out; /* out is NULL if it has no kernel */
    InferFn *infer;
    const struct Schema *schema;
    const char *name;                /* "mylib::swish", as in the file */
    Loc at;                          /* where the file describes it */
    const char *function;            /* the name of its C function, or NULL */
    const struct CustomRules *rules; /* passes/custom.c: result types, and the composite */
} CustomOp;

typedef struct CustomOps {
    Arena *arena;
    CustomOp **item;
    int n;
    struct Table *by_target;
} CustomOps;

CustomOps *custom_ops_new(Arena *a);
/* Adds an operator.  Returns false, and changes nothing, if there is one with this target. */
bool custom_ops_add(CustomOps *c, CustomOp *op);
const CustomOp *custom_ops_find(const CustomOps *c, const char *target); /* c may be NULL */
/* Returns whether a namespace belongs to torch, to the kernels of a runtime, or to etc. */
bool namespace_is_taken(const char *name);

const OpInfo *node_row(const Node *n); /* the node's row of ops.def, or that of its CustomOp */
const char *node_target(const Node *n), *node_out(const Node *n);

OpId op_find(const char *target);            /* OP_NONE: there is no such row */
bool text_is_name(const char *s, char also); /* ASCII letters, digits, '_' and `also`; not empty */

/* A search for the name that is most similar to a word which the user wrote. */
typedef struct Near {
    const char *word, *best; /* best is NULL if no name is similar enough */
    int edits;               /* the edit distance between them */
} Near;

Near near_word(const char *word);               /* starts a search */
bool near_consider(Near *n, const char *name);  /* returns whether `name` is the best so far */
const char *near_text(Arena *a, const Near *n); /* "; did you mean 'NAME'?", or "" */
Near near_operator(Arena *a, const char *word); /* searches targets, with or without overload */

#endif
