/* composite.h -- what the files that play rules of composites.txt share. */
#ifndef ETC_PASSES_COMPOSITE_H
#define ETC_PASSES_COMPOSITE_H

#include "passes/decompose.h"

/* A rule of composites.txt: the operators or the function that it is of, and what is behind "=" or
 * ":".  composites.c is generated; rows are in the order of their names. */
typedef struct Composite {
    const char *name, *text;
} Composite;

extern const Composite composites[];
extern const int n_composites;

enum { MOST_ARGS = 16, MOST_RESULTS = 8, MOST_DEPTH = 8 };

typedef struct Binding {
    const char *name;
    size_t len;
    Arg v;
} Binding;

typedef struct Play {
    Rewrite *r;
    Node *n;          /* what is rewritten */
    const char *rule; /* its name, for messages */
    const char *at;   /* the next character */
    bool skips;       /* what is read is not computed */
    bool failed, returned;
    int depth, scope; /* of calls of rules; names of this one begin at `scope` */
    Binding *name;
    int n_names;
    Value **value;    /* tensors that arguments stand for, by slot */
    int n_values;
    Arg result[MOST_RESULTS]; /* of the last call or return */
    int n_results;
} Play;

/* What an operator or rule is called with; key NULL: by position. */
typedef struct Given {
    Arg v[MOST_ARGS];
    const char *key[MOST_ARGS];
    size_t key_length[MOST_ARGS];
    int n;
} Given;

/* What is computed while the node is rewritten are arguments; an ARG_VALUE's slot is one of `value`. */
Arg of_value(Play *p, Value *v); /* NULL: none */
Value *tensor(const Play *p, Arg a); /* NULL: it is none */
Arg of_float(double f);
Arg of_dim(Dim d);
Arg of_bool(bool b);

bool play_runs(const Play *p); /* whether what is read is computed */
Arg play_wrong(Play *p, const char *what);  /* a fault of the rule */
Arg play_refuse(Play *p, const char *why); /* of what the model asks */
Arg play_node(Play *p, OpId op, const Given *g); /* its first result; all are in p->result */

Dim dim_of(Play *p, Arg a);
int64_t int_of(Play *p, Arg a); /* refuses what is open */
bool truth_of(Play *p, Arg a);
Arg list_new(const Play *p, int n);

/* composite_data.c: arithmetic, of tensors too, and functions of what is known. */
bool sign_is(int i, int level); /* of the signs of one level of precedence: 0 compares, 1 sums, 2 */
const char *sign_text(int i);   /* NULL: the last was before */
Arg play_sign(Play *p, int i, Arg a, Arg b);
Arg play_negate(Play *p, Arg a);
Arg play_index(Play *p, Arg list, Arg at);
Arg play_part(Play *p, Arg list, Arg from, Arg to); /* none: to the end */
bool play_function(Play *p, const char *name, size_t len, const Given *g, Arg *v); /* false: none */

#endif
