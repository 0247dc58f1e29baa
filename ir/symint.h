/* symint.h -- sizes of tensors: integers, or expressions over the symbols of a program. */
#ifndef ETC_IR_SYMINT_H
#define ETC_IR_SYMINT_H

#include "ir/arena.h"
#include <stdio.h>

/* A sum of products over symbols in canonical form.  A program has each expression once, so equal
 * expressions are equal pointers.  See ir/symint.c. */
typedef struct Expr Expr;

/* The verifier gives each name a number, so that it need not compare or check the text again.  The
 * number is valid only while `text` is the text that the name has. */
typedef struct NameId {
    const char *text;
    int number;
} NameId;

typedef struct Symbol {
    const char *name;
    NameId name_id;
    int index;        /* in program->sym */
    const Expr *size; /* the symbol as an expression, or NULL until somebody asks for it */
    int64_t lo, hi;   /* its range; hi is INT64_MAX if it has no upper bound */
} Symbol;

typedef struct Dim {
    const Expr *expr; /* NULL: the integer `value` */
    int64_t value;
} Dim;

/* A condition that must hold at every call: lo <= size <= hi.  INT64_MIN and INT64_MAX mean that
 * there is no bound. */
typedef struct Guard {
    Dim size;
    int64_t lo, hi;
    const char *text; /* the condition in the names that the user knows */
} Guard;

typedef struct Program Program;

#define DIM(n) ((Dim){NULL, (n)})
extern const Dim DIM_BAD; /* the result of overflow and division by 0; any sum with it is it */
bool dim_is_bad(Dim d);
Dim dim_symbol(Program *p, const Symbol *s);
Dim dim_add(Program *p, Dim a, Dim b);
Dim dim_sub(Program *p, Dim a, Dim b);
Dim dim_mul(Program *p, Dim a, Dim b);
Dim dim_floordiv(Program *p, Dim a, Dim b); /* rounds towards minus infinity, as Python's // */
Dim dim_mod(Program *p, Dim a, Dim b);      /* has the sign of b, as Python's % */
/* Sets *num / *den to a fraction such that doubles give the fraction's floor and ceiling for f times
 * any size below 2^40.  Returns false if there is none with a small denominator. */
bool dim_fraction(double f, int64_t *num, int64_t *den);
/* Returns d with each size that is padded to a multiple, such as n + mod(-n, 64), written as that
 * multiple.  dim_add does not do so itself: subtracting n from the multiple would not give
 * mod(-n, 64) back. */
Dim dim_expand(Program *p, Dim d);
Dim dim_max(Program *p, Dim a, Dim b);
Dim dim_min(Program *p, Dim a, Dim b);
bool dim_equal(Dim a, Dim b); /* they are equal for all values of the symbols */
static inline bool dim_is_one(Dim d)
{
    return !d.expr && d.value == 1;
}
bool dims_equal(const Dim *a, const Dim *b, int n);
void dim_range(Dim d, int64_t *lo, int64_t *hi); /* INT64_MIN, INT64_MAX: there is no bound */
int64_t dim_upper(Dim d);                        /* INT64_MAX: there is no bound */
/* Evaluates d for the values of the symbols, by their index.  Returns false on overflow. */
bool dim_eval(Dim d, const int64_t *symbol, int64_t *v);
/* Calls visit(symbol, ctx) for every symbol in d. */
void dim_symbols(Dim d, void (*visit)(const Symbol *s, void *ctx), void *ctx);
void dim_print(Dim d, FILE *out);
const char *dim_text(Program *p, Dim d);  /* for messages; it lies in the program's arena */
const char *size_text(Program *p, Dim d); /* the same as the export writes it, without '%' */
/* Returns whether d = scale * symbol + offset with scale > 0, and these three. */
bool dim_is_linear(Dim d, const Symbol **symbol, int64_t *scale, int64_t *offset);

/* The parts of an expression, for code that computes it.  An expression is a constant plus terms; a
 * term is a coefficient times factors. */
typedef enum FactorKind { F_SYMBOL, F_FLOORDIV, F_MOD, F_MAX, F_MIN } FactorKind;

typedef struct Factor {
    FactorKind kind;
    const Symbol *symbol; /* of F_SYMBOL */
    Dim a, b;             /* the operands of the other kinds */
} Factor;

int dim_terms(Dim d, int64_t *constant);          /* returns the number of terms */
int dim_term(Dim d, int i, int64_t *coefficient); /* returns the number of factors of term i */
Factor dim_factor(Dim d, int i, int k);           /* returns factor k of term i */

#endif
