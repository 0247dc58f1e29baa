/* pte_internal.h -- what the files of the .pte emitter share.
 *
 * A PteFile is the whole file, a Plan is one method, and a Scope is one of its graphs: that of
 * the method, or of a branch, whose values have indices of their own.  An error is reported
 * where it is found, and PteFile.failed is set.  The walk continues with value 0, so that all
 * errors are listed. */
#ifndef ETC_EMIT_PTE_INTERNAL_H
#define ETC_EMIT_PTE_INTERNAL_H

#include "emit/emit.h"
#include "ir/flat.h"
#include "ir/table.h"
#include "runtime-lite/pte_schema.h"

/* -- segments: pte_data.c ------------------------------------------------------------------ */

typedef struct PteFile {
    const Program *program;
    Arena *arena;
    Flat *flat;
    Diag *diag;
    bool failed;
    int n_tables;
    Table shared[9]; /* vectors of the FlatBuffer by the size of an item; [0]: strings */
    ByteStore constants, mutables, blobs, named; /* named: the bytes that delegates refer to by name */
    PteStats *stats;
} PteFile;

/* Checks that the first n bytes of a state are there, and reports an error if they are not. */
bool pte_has_bytes(PteFile *e, const State *s, int64_t n);

/* Writes the program table, the header and the segments. */
bool pte_finish(PteFile *e, const FlatRef *plan, int n_plans, OutFile *out);

/* -- values: pte_value.c ------------------------------------------------------------------- */

typedef struct Instr {
    Instruction type;
    int a, b; /* an operator or delegate; or source, target; or condition, destination */
    const int *arg;
    int n_args;
    const Node *node; /* the node that it was made for, or NULL */
} Instr;

typedef struct Plan {
    PteFile *file;
    const Graph *graph;
    const Node *at; /* the current node */
    Table literals; /* from a literal to its value + 1 */
    FlatRef *value;
    int n_values;
    Instr *instr;
    int n_instrs;
    const char **op; /* "aten::add.out" */
    int n_ops;
    int op_index[N_OPS]; /* by operator: its index in `op` + 1 */
    FlatRef *delegate;
    int n_delegates;
    int *state_value;       /* by state id: its value + 1 */
    uint32_t *state_buffer; /* by state id: the constant with its bytes; 0: there is none */
    int verdict, unread;    /* the values + 1 that all checks write */
} Plan;

typedef struct Scope {
    Plan *plan;
    const Graph *graph;
    int *value;         /* by value index: its EValue + 1 */
    uint32_t *buffer;   /* by value index: the constant whose bytes it shares; 0: there is none */
    const Value **root; /* by value index: the value whose bytes it has; often itself */
} Scope;

Scope scope_new(Plan *p, const Graph *g);

FlatRef pte_end(PteFile *e); /* calls flat_end and counts the table */
FlatRef shared_vector(PteFile *e, const void *items, size_t n, size_t item_size);
FlatRef shared_string(PteFile *e, const char *s);

int literal_null(Plan *p);
int literal_bool(Plan *p, bool v);
int literal_text(Plan *p, const char *s);
int literal_value(Plan *p, const Arg *a); /* a is a number, a string or none */
int number_scratch(Plan *p, EtcDtype t);  /* a value of this type for a prim op to write */

/* Makes a value of kind Tensor.  buffer: its constant or initial value; 0: it has none. */
int tensor_value(Plan *p, Type t, Place at, uint32_t buffer, Loc loc);
int tensor_list(Plan *p, const int *item, int n);

/* Returns the EValue of v.  For a state, an output or an input it is made on first use. */
int value_of(Scope *s, const Value *v);
int value_define(Scope *s, const Value *v);

/* Returns the EValue for argument i of a node. */
int argument_value(Scope *s, const Node *n, int i);

#endif
