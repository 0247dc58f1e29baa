/* composite.h -- rules of composites.txt: their text, their form once parsed, and their play.
 *
 * Forms lie in the program's arena and are made once per program, where a model first uses a rule.
 */
#ifndef ETC_PASSES_COMPOSITE_H
#define ETC_PASSES_COMPOSITE_H

#include "passes/decompose.h"

/* -- text -------------------------------------------------------------------------------------- */

/* The operators or the function that a rule is of, and what stands behind: "(a, b)" of a function,
 * then "= e" or ": statements".  composites.c is generated; rows are in the order of their names. */
typedef struct Composite {
    const char *name, *text;
} Composite;

extern const Composite composites[], spelled[];
extern const int n_composites, n_spelled;

/* -- forms: composite_parse.c ------------------------------------------------------------------ */

typedef enum FormKind {
    FORM_LITERAL,
    FORM_NAME,   /* local `index` */
    FORM_LIST,
    FORM_EACH,   /* [for local in a..b: e] */
    FORM_INDEX,  /* x[i] */
    FORM_PART,   /* x[a..b]; b may be missing */
    FORM_NEGATE,
    FORM_NOT,
    FORM_AND,
    FORM_OR,
    FORM_CHOOSE, /* c ? a : b */
    FORM_SIGN,   /* a sign b; `index` is the sign's */
    FORM_CALL,   /* of a rule's function, a function of data, or an operator, whichever there is */
    FORM_ASSIGN, /* e, to the locals `local`[0..n_locals) */
    FORM_IF,     /* c, block, block or NULL */
    FORM_FOR,    /* a, b, block; local `index` */
    FORM_LOOP,   /* condition, block; carries the locals `local` */
    FORM_RETURN,
    FORM_REFUSE,
    FORM_STAY,   /* the node is left as it is */
    FORM_BLOCK,
} FormKind;

typedef struct Form {
    FormKind kind;
    int n, index, n_locals, depth;
    struct Form **part;
    const int *local;
    const char **key; /* of a call's arguments, by part; NULL: given by position */
    Arg literal;
    int rule, function; /* of a call: of composites, and of functions of data; -1: none */
    OpId op;
    const CustomOp *custom; /* of a user's own, or NULL */
    const char *name;   /* of a call, for messages */
} Form;

typedef struct RuleBody {
    Form *form;
    const char **local; /* names; the first n_given are those of "(a, b)" */
    int n_locals, n_given;
    bool is_expression; /* what it comes to is returned */
} RuleBody;

int rule_find(const char *name); /* in composites; -1: none */
const RuleBody *rule_body(Program *p, int rule, Diag *d); /* NULL: reported */

/* The same of a text that a user wrote, whose names are the arguments of s: an expression, or
 * statements.  NULL: fault says what is wrong, and before what. */
typedef struct RuleFault {
    const char *what, *at;
} RuleFault;

const RuleBody *rule_read(Arena *a, const char *text, const Schema *s, const CustomOps *custom,
                          bool is_expression, RuleFault *fault);

/* A rule of spelled.txt. */
typedef struct Spelled {
    const char *name;
    const Form *from, *condition; /* condition NULL: there is none */
    RuleBody to; /* all names are given */
} Spelled;

OpId spelled_key(int rule); /* an operator that its form has */
const Spelled *spelled_rule(Program *p, int rule, Diag *d); /* NULL: reported */

/* -- play -------------------------------------------------------------------------------------- */

/* Rounds of loops and items of lists, for all nodes of a graph: so many, and more for each value
 * that the graph has.  A node that is built counts as some of them. */
enum { MOST_WORK = 1 << 18, WORK_OF_VALUE = 1 << 12, WORK_OF_NODE = 1 << 6 };

/* Returns whether rules have done less than half the work that they may do. */
bool play_has_room(const Rewrite *r);
enum { MOST_ARGS = 16, MOST_RESULTS = 8, MOST_DEPTH = 24, MOST_LOCALS = 40 };
enum { MOST_NESTED = 100, MOST_LISTS = 4 }; /* of forms in forms, and lists in lists */

typedef struct Play {
    Rewrite *r;
    Node *n;          /* what is rewritten */
    const char *rule; /* its name, for messages */
    bool failed, returned, stays;
    bool is_type;     /* a result's sizes or dtype are asked: no nodes are built */
    int depth;        /* of calls of functions */
    Value **value;    /* tensors that arguments stand for, by slot */
    int n_values;
    Arg result[MOST_RESULTS]; /* of the last call or return */
    int n_results;
} Play;

/* The arguments of a call.  One whose key is NULL is given by position. */
typedef struct Given {
    Arg v[MOST_ARGS];
    const char *key[MOST_ARGS];
    int n;
} Given;

/* Values that a rule computes are arguments; the slot of an ARG_VALUE is one of p->value. */
Arg of_value(Play *p, Value *v);     /* NULL: it could not be built, as was reported */
Value *tensor(const Play *p, Arg a); /* NULL: it is none */
Arg of_float(double f);
Arg of_dim(Dim d);
Arg of_bool(bool b);
Arg list_new(Play *p, int n, Arg **item); /* empty once the play failed */

Arg play_wrong(Play *p, const char *what);  /* a fault of the rule */
Arg play_misfit(Play *p, const char *what); /* of the rule, or of operands that none checked */
Arg play_refuse(Play *p, const char *why);  /* of what the model asks */
bool play_work(Play *p, int64_t units);     /* false: refused, as too much */
Arg play_node(Play *p, OpId op, const Given *g); /* its first result; all are in p->result */
Arg play_no_node(Play *p); /* refuses one, where a type is asked */
Arg play_body(Play *p, const RuleBody *body); /* the same of a user's rule of the node */
Arg play_given(Play *p, const RuleBody *body, const Given *g); /* of one whose names are given */

/* composite_loop.c: nodes of a loop behind `before`, what they name the carried tensors by, and what
 * they leave. */
typedef struct LoopPart {
    Node *before; /* NULL: none is before */
    Value *in[MOST_RESULTS], *out[MOST_RESULTS];
    int n_out;
} LoopPart;

Value *play_carried(Play *p, const Value *like); /* stands for one while nodes are built */
/* Makes the nodes of both parts a loop, and p->result what it carries at last. */
void play_loop(Play *p, const LoopPart *test, const LoopPart *body, Value *const *start);

/* Puts what the body returns in the place of the node; false: reported. */
bool rewrite_by_body(Rewrite *r, Node *n, const RuleBody *body, const char *name);

Arg play_argument(Play *p, Arg a); /* of the node; its values become slots here */
Arg play_own(Play *p);             /* what the operator's own rule makes of the node */
Arg play_half(Play *p, int64_t which, Arg a); /* of a complex tensor; 0: real, 1: imaginary */
Arg play_halved(Play *p, int64_t which);      /* the node, of that part of each complex operand */

Dim dim_of(Play *p, Arg a);
int64_t int_of(Play *p, Arg a); /* refuses what is open */

/* composite_data.c: arithmetic, of tensors too, and functions of what is known. */
int sign_at(const char *s);     /* the sign at a text's start; -1: there is none */
int sign_level(int i);          /* how close it binds: 0 compares, 1 sums, 2 products */
const char *sign_text(int i);
bool sign_is(int i, OpId op); /* what the sign means of tensors, or of a tensor and a number */
bool sign_commutes(int i);
Arg play_sign(Play *p, int i, Arg a, Arg b);
Arg play_negate(Play *p, Arg a);
Arg play_index(Play *p, Arg list, Arg at);
Arg play_part(Play *p, Arg list, Arg from, Arg to); /* none: to the end */
int function_find(const char *name);  /* -1: none */
bool function_is_public(int fn);      /* rules of a user may call it */
bool function_is_operator(int fn); /* the name is an operator's too */
bool function_takes(int fn, Arg first); /* else it is the operator */
Arg play_function(Play *p, int fn, const Given *g);

#endif
