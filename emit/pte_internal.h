/* pte_internal.h -- what the files of the .pte emitter share.
 *
 * A PteFile is the whole file, a Plan one method, a Scope one graph of it: the method's own or a
 * branch, whose values have indices of their own.  A fault is reported where it is found and noted
 * in PteFile.failed; the walk goes on with value 0 in its stead, so that all faults are listed.
 */
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
    Table shared[9]; /* vectors of the FlatBuffer, by an item's size; [0]: strings */
    Bank constants, mutables, blobs, named; /* named: bytes that delegates ask for */
    PteStats *stats;
} PteFile;

/* Returns whether the first n bytes of a state are at hand; reports it where they are not. */
bool pte_has_bytes(PteFile *e, const State *s, int64_t n);

/* The program table, the header, the segments. */
bool pte_finish(PteFile *e, const FlatRef *plan, int n_plans, OutFile *out);

/* -- values: pte_value.c ------------------------------------------------------------------- */

typedef struct Instr {
    Instruction type;
    int a, b; /* operator or delegate; from, to; condition, destination */
    const int *arg;
    int n_args;
    const Node *node; /* that it was made for, or NULL */
} Instr;

typedef struct Plan {
    PteFile *file;
    const Graph *graph;
    const Node *at; /* the node at hand */
    Table literals; /* -> value + 1 */
    FlatRef *value;
    int n_values;
    Instr *instr;
    int n_instrs;
    const char **op; /* "aten::add.out" */
    int n_ops;
    int op_index[N_OPS]; /* + 1 */
    FlatRef *delegate;
    int n_delegates;
    int *state_value;       /* by state id, + 1 */
    uint32_t *state_buffer; /* the constant it is, by state id; 0 none */
    int verdict, unread;    /* values that checks write, all the same ones; + 1 */
} Plan;

typedef struct Scope {
    Plan *plan;
    const Graph *graph;
    int *value;         /* by value index, + 1 */
    uint32_t *buffer;   /* the constant it shares, else 0 */
    const Value **root; /* whose bytes it shows: itself but for a view without a call */
} Scope;

Scope scope_new(Plan *p, const Graph *g);

FlatRef pte_end(PteFile *e); /* flat_end, counted */
FlatRef shared_vector(PteFile *e, const void *items, size_t n, size_t item_size);
FlatRef shared_string(PteFile *e, const char *s);

int literal_null(Plan *p);
int literal_bool(Plan *p, bool v);
int literal_text(Plan *p, const char *s);
int literal_value(Plan *p, const Arg *a); /* of a number, string or none */
int number_scratch(Plan *p, EtcDtype t);  /* what a prim op writes; the type alone matters */

/* A Tensor value.  buffer: its constant or initial value, 0 none. */
int tensor_value(Plan *p, Type t, Place at, uint32_t buffer, Loc loc);
int tensor_list(Plan *p, const int *item, int n);

/* The EValue of v, made on first use for a state, an output or an input. */
int value_of(Scope *s, const Value *v);
int value_define(Scope *s, const Value *v);

/* The EValue that argument i of a node becomes. */
int argument_value(Scope *s, const Node *n, int i);

#endif
