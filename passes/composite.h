/* composite.h -- the rules of composites.txt and spelled.txt: text, parsed form, and
 * interpretation.
 *
 * A rule is parsed when a model first uses it.  Its form lies in the program's arena. */
#ifndef ETC_PASSES_COMPOSITE_H
#define ETC_PASSES_COMPOSITE_H

#include "passes/decompose.h"

/* -- text -------------------------------------------------------------------------------------- */

/* A kind says which nodes a rule replaces.  An operator may have one rule of each kind but the
 * last. */
typedef enum RuleKind {
    RULE_OF_NODE,    /* "aten.silu.default"; of spelled.txt: an operator that the form contains */
    RULE_OF_KERNEL,  /* "kernel.aten.linear.default": what pass fit_kernels does */
    RULE_OF_COMPLEX, /* "complex.aten.mul.Tensor" */
    RULE_FUNCTION    /* "def cast(x, t)" */
} RuleKind;

/* A rule.  Its text is what follows its name: "(a, b)" if it is a function, then "= e" or
 * ": statements".  A row has no pointers, so nothing in it is relocated when the program starts. */
typedef struct Composite {
    uint32_t at;   /* where its packed text begins */
    uint16_t of;   /* N_OPS * RuleKind + OpId; of a function, N_OPS * RULE_FUNCTION */
    uint16_t name; /* where its name begins in `names`; 0: it is that of the operator */
} Composite;

/* A file of rules as passes/texts.c packs it.  Rows are sorted by `of`, then by name. */
typedef struct Composites {
    const Composite *row;
    int n;
    const char *names; /* after an empty one */
    PackedTexts text;
} Composites;

extern const Composites composites, spelled;

const char *composite_name(const Composites *of, int i); /* for messages */
/* Unpacks the text of a rule. */
char *composite_text(Arena *a, const Composites *of, int i);

/* -- forms: composite_parse.c ------------------------------------------------------------------ */

typedef enum FormKind {
    FORM_LITERAL,
    FORM_NAME, /* the local variable with number `index` */
    FORM_LIST,
    FORM_EACH,  /* [for local in a..b: e] */
    FORM_INDEX, /* x[i] */
    FORM_PART,  /* x[a..b]; b may be missing */
    FORM_NEGATE,
    FORM_NOT,
    FORM_AND,
    FORM_OR,
    FORM_CHOOSE, /* c ? a : b */
    FORM_SIGN,   /* a sign b, such as a + b; `index` is the number of the sign */
    FORM_CALL,   /* calls a function of a rule, a built-in function or an operator */
    FORM_ASSIGN, /* assigns e to the locals `local`[0..n_locals) */
    FORM_IF,     /* its parts are c, a block, and another block or NULL */
    FORM_FOR,    /* its parts are a, b and a block; the local `index` counts */
    FORM_LOOP,   /* its parts are a condition and a block; the locals `local` are carried */
    FORM_RETURN,
    FORM_REFUSE,
    FORM_STAY, /* leaves the node as it is */
    FORM_BLOCK,
} FormKind;

typedef struct Form {
    FormKind kind;
    int n, index, n_locals, depth;
    struct Form **part; /* n of them */
    struct Form *first[4]; /* what `part` is if they are no more */
    const int *local;
    const char **key; /* the names of a call's arguments, by part; NULL, also of all: by position */
    Arg literal;
    int rule, function; /* of a call: the number of the rule or of the built-in function; or -1 */
    OpId op;
    const CustomOp *custom; /* the operator of --ops that is called, or NULL */
    const char *name;       /* what is called, for messages */
} Form;

typedef struct RuleBody {
    const Form *form;
    const char **local; /* the names of locals; the first n_given are the parameters "(a, b)" */
    int n_locals, n_given;
    bool is_expression; /* the rule returns the value of an expression */
} RuleBody;

/* The number of a composite, of an operator or of a function; -1: there is none. */
int rule_of(RuleKind kind, OpId op);
int rule_find(const char *function);
const RuleBody *rule_body(Program *p, int rule, Diag *d); /* NULL: it has an error, reported */

/* Says what is wrong with a rule that a user wrote, and the text where this was noticed. */
typedef struct RuleFault {
    const char *what, *at;
} RuleFault;

/* Parses a user's rule for an operator with schema s: an expression, or statements.  Its names are
 * the arguments of s.  Returns NULL if it is wrong, and sets *fault. */

const RuleBody *rule_read(Arena *a, const char *text, const Schema *s, const CustomOps *custom,
                          bool is_expression, RuleFault *fault);

/* A rule of spelled.txt. */
typedef struct Spelled {
    const char *name;
    const Form *from, *condition; /* condition may be NULL */
    RuleBody to;                  /* its names are those that `from` binds */
} Spelled;

const Spelled *spelled_rule(Program *p, int rule, Diag *d); /* NULL: it has an error, reported */

/* -- interpretation: a Play runs a rule for one node and builds the nodes that replace it ------ */

/* The units of work that the rules may do for all nodes of a graph: MOST_WORK, and WORK_OF_VALUE
 * more for each value of the graph.  An iteration of a loop or item of a list is one unit, a node
 * that is built WORK_OF_NODE. */
enum { MOST_WORK = 1 << 18, WORK_OF_VALUE = 1 << 12, WORK_OF_NODE = 1 << 6 };

/* Returns whether rules have done less than half of that. */
bool play_has_room(const Rewrite *r);
enum { MOST_ARGS = 16, MOST_RESULTS = 8, MOST_DEPTH = 24, MOST_LOCALS = 40 };
enum { MOST_NESTED = 100, MOST_LISTS = 4 }; /* how deep forms and lists may be nested */

typedef struct Play {
    Rewrite *r;
    Node *n;          /* the node that is rewritten */
    const char *rule; /* the name of the rule, for messages */
    bool failed, returned, stays;
    bool is_type;  /* the rule computes the sizes or dtype of a result and builds no nodes */
    int depth;     /* how deep calls of functions are nested */
    Value **value; /* the tensors that arguments refer to by slot */
    int n_values;
    Arg result[MOST_RESULTS]; /* the results of the last call or return */
    int n_results;
} Play;

/* The arguments of a call.  An argument whose key is NULL is given by its position. */
typedef struct Given {
    Arg v[MOST_ARGS];
    const char *key[MOST_ARGS];
    int n;
} Given;

/* Data of a rule have the type Arg.  A tensor is an ARG_VALUE whose slot is an index in
 * p->value. */
Arg of_value(Play *p, Value *v);     /* v NULL: building it failed; so does the play */
Value *tensor(const Play *p, Arg a); /* NULL: it is no tensor */
Arg of_float(double f);
Arg of_dim(Dim d);
Arg of_bool(bool b);
Arg list_new(Play *p, int n, Arg **item); /* an empty list if the play has failed */

/* These end the play with an error. */
Arg play_wrong(Play *p, const char *what);  /* the rule has a fault */
Arg play_misfit(Play *p, const char *what); /* the rule has a fault, or operands are wrong */
Arg play_refuse(Play *p, const char *why);  /* the model asks for something that is not supported */
bool play_work(Play *p, int64_t units);     /* counts work; refuses if it is too much */

Arg play_node(Play *p, OpId op, const Given *g); /* returns its first result; p->result has all */
Arg play_no_node(Play *p); /* ends a play with is_type, which may not build nodes */
Arg play_body(Play *p, const RuleBody *body); /* runs a rule; its names are the node's arguments */
Arg play_given(Play *p, const RuleBody *body, const Given *g); /* runs it on these */

/* A part of a loop, for composite_loop.c: its nodes, which come after `before`, the values that stand
 * for the carried tensors in them, and their results. */
typedef struct LoopPart {
    Node *before; /* NULL: the part begins with the first node of the graph */
    Value *in[MOST_RESULTS], *out[MOST_RESULTS];
    int n_out;
} LoopPart;

Value *play_carried(Play *p, const Value *like); /* stands for a carried tensor */
/* Makes a loop of the nodes of both parts.  p->result is then what it carries after the last
 * iteration. */
void play_loop(Play *p, const LoopPart *test, const LoopPart *body, Value *const *start);

/* Replaces the node by what its operator's rule of this kind makes of it, or lets it stay where the
 * rule says so. */
bool rewrite_by_rule(Rewrite *r, Node *n, RuleKind kind);

/* Replaces the node by what the body returns.  Returns false if that fails, which is reported. */
bool rewrite_by_body(Rewrite *r, Node *n, const RuleBody *body, const char *name);

Arg play_argument(Play *p, Arg a);            /* an argument of the node as data of the rule */
Arg play_own(Play *p);                        /* runs the operator's own rule for the node */
Arg play_half(Play *p, int64_t which, Arg a); /* the real (0) or imaginary (1) part */
Arg play_halved(Play *p, int64_t which); /* the node with each complex operand replaced by a part */

Dim dim_of(Play *p, Arg a);
int64_t int_of(Play *p, Arg a); /* refuses a symbolic size */

/* composite_data.c: arithmetic, also of tensors, and built-in functions of known data. */
int sign_at(const char *s); /* the number of the sign that the text begins with, or -1 */
int sign_level(int i);      /* its precedence: 0 comparisons, 1 sums, 2 products */
const char *sign_text(int i);
bool sign_is(int i, OpId op); /* op is what the sign means for tensors, or a tensor and a number */
bool sign_commutes(int i);
Arg play_sign(Play *p, int i, Arg a, Arg b);
Arg play_negate(Play *p, Arg a);
Arg play_index(Play *p, Arg list, Arg at);
Arg play_part(Play *p, Arg list, Arg from, Arg to); /* `to` is none: to the end */
int function_find(const char *name);                /* the number of a built-in function, or -1 */
bool function_is_public(int fn);                    /* a user's rules may call it */
bool function_is_operator(int fn);                  /* an operator has the same name */
bool function_takes(int fn, Arg first);             /* not the operator of its name */
Arg play_function(Play *p, int fn, const Given *g);

#endif
