/* c_linalg.c -- prints calls of the cores for factors of matrices, triangular systems, eigenvalues
 * and singular values. */
#include "emit/c_emit.h"

static bool check_operands(Function *f, const Node *n)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const Value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        if (!c_type_is_dense(f->e, value_type(v)))
            return function_refuse(f, n, "expects a dense tensor here");
    }
    return true;
}

/* Returns the operand whose last two sizes are the core's m and n. */
static const Value *subject(const Node *n)
{
    return arg_value(n, n->op == OP_TRIANGULAR ? 1 : n->op == OP_ORMQR_WHOLE ? 2 : 0);
}

static const char *core_of(OpId op)
{
    switch ((int)op) {
    case OP_LU_FACTOR:
        return "etc_lu_factor";
    case OP_LU_PARTS:
        return "etc_lu_unpack";
    case OP_CHOLESKY_FACTOR:
        return "etc_cholesky";
    case OP_TRIANGULAR:
        return "etc_solve_triangular";
    case OP_QR_FACTOR:
        return "etc_geqrf";
    case OP_ORMQR_WHOLE:
        return "etc_ormqr";
    case OP_EIGH_WHOLE:
        return "etc_eigh";
    default:
        return "etc_svd";
    }
}

/* Returns field `flag` of an EtcFactor: ETC_TRIANGLE_* or ETC_REFLECT_* if the core has more than
 * one flag. */
static int flag_of(const Node *n)
{
    const Arg *triangle;
    switch ((int)n->op) {
    case OP_CHOLESKY_FACTOR:
        return arg_bool(n, "upper");
    case OP_TRIANGULAR:
        return arg_bool(n, "upper") + 2 * !arg_bool(n, "left") + 4 * arg_bool(n, "unitriangular");
    case OP_ORMQR_WHOLE:
        return !arg_bool(n, "left") + 2 * arg_bool(n, "transpose");
    case OP_EIGH_WHOLE:
        triangle = &n->arg[arg_find(n, "UPLO")];
        return triangle->kind == ARG_STRING && (*triangle->str == 'U' || *triangle->str == 'u');
    case OP_SVD_WHOLE:
        return arg_bool(n, "full_matrices");
    default:
        return 0;
    }
}

/* Prints the geometry and the call of the core.  The checks that a core makes on demand are left to
 * `etc run`, because the printed C cannot report them. */
bool emit_linalg(Function *f, const Node *n, Clamp clamp)
{
    const Value *x = subject(n);
    Type t = value_type(x);
    Dim m = size_of(x, -2), k = size_of(x, -1);
    (void)clamp;
    if (!check_operands(f, n))
        return false;
    put(&f->body, "    /* is_double, flag; batches, m, n, k */\n    const EtcFactor g = {%d, %d, ",
        t.dtype == ETC_F64, flag_of(n));
    put_field(f, c_dims_product(f->e, t.dim, t.rank - 2), false);
    put_field(f, m, false);
    put_field(f, k, false);
    put_field(f, n->op == OP_ORMQR_WHOLE ? size_of(arg_value(n, "self"), -1)
                                         : dim_min(f->e->method->program, m, k), true);
    put(&f->body, "};\n    %s(", core_of(n->op));
    for (int i = 0; i < n->n_in; i++)
        put(&f->body, "%s, ", function_pointer(f, n->in[i]));
    for (int i = 0; i < n->n_out; i++)
        put(&f->body, "%s, ", type_numel(n->out[i]->type) ? f->name_of[n->out[i]->index] : "NULL");
    put(&f->body, "&g);\n");
    for (int i = 0; i < n->n_out; i++)
        if (!type_numel(n->out[i]->type))
            put(&f->body, "    (void)%s;\n", f->name_of[n->out[i]->index]);
    return true;
}
