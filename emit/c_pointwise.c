/* c_pointwise.c -- prints the pointwise members of a group as one loop.  It computes the
 * expressions of pointwise.def on vectors of float, or element by element on doubles and
 * integers. */
#include "emit/c_emit.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

/* A loop computes whole vectors; or one lane of each vector, if an operand has another dtype; or
 * doubles; or integers of 64 bits that wrap. */
typedef enum Kind { VECTORS, LANES, DOUBLES, INTEGERS } Kind;

typedef struct Loop {
    Function *f;
    const Graph *body;
    Kind kind;
    const Value **operand; /* the values that are read from memory */
    bool *is_scaled;       /* dequantize reads its bytes, and the load makes them floats */
    int n;
    Nest nest; /* the operands, then the result */
    const char *index[MAX_LOOPS];
    int indent;
} Loop;

/* -- rows and their arguments ---------------------------------------------------------------- */

/* A square has the same bits as the power.  The power is computed in doubles, which is slow without
 * an FPU for them. */
static const CRow square_row = {"square", "UNARY", "a * a"};

static bool is_square(const Node *n)
{
    double exponent = 0;
    return n->op == OP_POW_TENSOR_SCALAR && arg_number(n, arg_find(n, "exponent"), &exponent) &&
           exponent == 2;
}

static const CRow *find_row(const Node *n, const Target *target)
{
    const char *name = op_expr(n->op);
    if (target->mcu && is_square(n) && n->out[0]->type.dtype == ETC_F32)
        return &square_row;
    if (n->op == OP_GELU && n->n_args > 1 && arg_get(n, "approximate").kind == ARG_STRING &&
        !strcmp(arg_get(n, "approximate").str, "tanh"))
        name = "gelu_tanh";
    for (int i = 0; i < c_n_rows; i++)
        if (!strcmp(c_row[i].name, name))
            return &c_row[i];
    return NULL;
}

/* Returns the position of the k-th argument that is a tensor; if `tensor` is false, that is a
 * number.  -1: there is none. */
static int find_arg(const Node *n, bool tensor, int k)
{
    const Schema *s = op_schema(n->graph->program, n->op);
    for (int i = 0; i < s->n_args; i++) {
        bool is_number = s->arg[i].type == SCH_SCALAR || s->arg[i].type == SCH_FLOAT;
        if ((tensor ? s->arg[i].type == SCH_TENSOR : is_number) && k-- == 0)
            return i;
    }
    return -1;
}

/* Returns argument i as a number.  An absent bound of a clamp is infinite. */
static double number_arg(const Node *n, int i)
{
    double v = 0;
    if (i >= 0 && !arg_number(n, i, &v)) {
        const Schema *s = op_schema(n->graph->program, n->op);
        v = !strcmp(s->arg[i].name, "max") ? (double)INFINITY : -(double)INFINITY;
    }
    return v;
}

/* -- expressions ----------------------------------------------------------------------------- */

static void put_literal(const Loop *l, double v, int64_t i, bool is_int)
{
    Text *t = &l->f->body;
    if (l->kind == DOUBLES) {
        put_double(t, v);
    } else if (l->kind == INTEGERS) { /* kernels convert a float so */
        int64_t cut = v >= 9223372036854775808.0 ? INT64_MAX
                      : v >= -9223372036854775808.0 ? (int64_t)v : INT64_MIN;
        put(t, "(uint64_t)");
        put_int(t, is_int ? i : cut);
    } else {
        put(t, "etc_splat(");
        put_float(t, (float)v);
        put(t, ")");
    }
}

/* Prints a size, converted as kernels convert it. */
static void put_size(const Loop *l, Dim d)
{
    Text *t = &l->f->body;
    put(t, l->kind == DOUBLES    ? "(double)"
           : l->kind == INTEGERS ? "(uint64_t)"
                                 : "etc_splat((float)");
    function_dim(l->f, d);
    put(t, l->kind == DOUBLES || l->kind == INTEGERS ? "" : ")");
}

static bool put_scalar(const Loop *l, const Node *n, int i)
{
    int64_t k = 0;
    Dim size;
    if (n->arg[i].kind == ARG_VALUE)
        return function_refuse(l->f, n, "expects numbers that are known when it is written");
    if (arg_dim(n, i, &size) && size.expr) {
        put_size(l, size);
        return true;
    }
    bool is_int = arg_int(n, i, &k);
    put_literal(l, number_arg(n, i), k, is_int);
    return true;
}

/* Prints the part of a number that is lost when it is rounded to a float, which is q of a power.
 * Returns false if the node has no number. */
static bool put_rest(const Loop *l, const Node *n)
{
    int i = find_arg(n, false, 0);
    double v = i < 0 ? 0 : number_arg(n, i), lost = v - (double)(float)v;
    bool is_float = l->kind == VECTORS || l->kind == LANES;
    put_literal(l, is_float && isfinite(lost) ? lost : 0, 0, true);
    return i >= 0;
}

/* Prints the argument that a letter of a row stands for: a and b are tensors, p, q and r numbers.
 * Returns false if the node has no such argument, or an error was reported. */
static bool put_letter(const Loop *l, const Node *n, char letter)
{
    if (letter >= 'p') {
        int i = find_arg(n, false, letter - 'p');
        if (i < 0 && letter == 'q')
            return put_rest(l, n);
        return i >= 0 && put_scalar(l, n, i);
    }
    int i = find_arg(n, true, letter - 'a');
    const Value *v = i < 0 ? NULL : arg_value(n, i);
    if (!v)
        return i >= 0 && put_scalar(l, n, i);
    put(&l->f->body, "%s", l->f->name_of[v->index]);
    return true;
}

static bool has_name(const char *s)
{
    for (int i = 0; i < c_n_names; i++)
        if (!strcmp(c_names + c_name[i].name, s))
            return true;
    return false;
}

/* Prints the name of a row's function in the form for the kind: etc_vexp, etc_vexp_f64 or, if only
 * math64.h has it, etc_sinh_f64; etc_max_wrap.  Returns false if there is no such function. */
static bool put_callee(const Loop *l, const char *s, size_t len)
{
    const char *suffix = l->kind == DOUBLES ? "_f64" : l->kind == INTEGERS ? "_wrap" : "";
    const bool is_double = len > 4 && !memcmp(s + len - 4, "_f64", 4);
    const char *name = arena_printf(l->f->e->a, "%.*s%s", (int)len, s, is_double ? "" : suffix);
    if (l->kind == DOUBLES && !has_name(name) && len > 5)
        name = arena_printf(l->f->e->a, "etc_%.*s_f64", (int)len - 5, s + 5);
    put(&l->f->body, "%s", name);
    return has_name(name) && (!is_double || l->kind != INTEGERS);
}

static bool is_one(const Node *n, char letter)
{
    int i = letter >= 'p' ? find_arg(n, false, letter - 'p') : -1;
    return i >= 0 && number_arg(n, i) == 1;
}

/* If the row goes on with " (p * b)" and p is 1, as most alphas are, prints b.  Returns how many
 * characters of the row that is, or 0. */
static size_t put_factor(const Loop *l, const Node *n, const char *s, bool *ok)
{
    bool is_product = !strncmp(s, " (", 2) && s[2] && !strncmp(s + 3, " * ", 3) && s[6] &&
                      s[7] == ')';
    if (!is_product || (!is_one(n, s[2]) && !is_one(n, s[6])))
        return 0;
    put(&l->f->body, " ");
    *ok = put_letter(l, n, is_one(n, s[2]) ? s[6] : s[2]);
    return 8;
}

static bool put_expr(const Loop *l, const Node *n, const char *s)
{
    bool ok = true;
    while (*s && ok) {
        size_t len = 0, done = put_factor(l, n, s, &ok);
        s += done;
        if (done)
            continue;
        while (isalnum((unsigned char)s[len]) || s[len] == '_' ||
               (s[len] == '.' && len && isdigit((unsigned char)s[0])))
            len++;
        bool is_letter = len == 1 && strchr("abpqr", *s) != NULL;
        if (is_letter)
            ok = put_letter(l, n, *s);
        else if (len && !isdigit((unsigned char)*s))
            ok = put_callee(l, s, len);
        else
            put_n(&l->f->body, s, len ? len : 1);
        s += len ? len : 1;
    }
    return ok;
}

/* -- loads and stores ------------------------------------------------------------------------ */

static const char *element_type(const Loop *l)
{
    return l->kind == DOUBLES ? "double" : l->kind == INTEGERS ? "uint64_t" : "EtcF";
}

static void put_left(const Loop *l)
{
    int inner = l->nest.rank - 1;
    put(&l->f->body, ", ");
    function_dim(l->f, l->nest.size[inner]);
    put(&l->f->body, " - %s", l->index[inner]);
}

static void put_address(const Loop *l, int k, const char *pointer)
{
    nest_address(l->f, &l->nest, k, pointer, l->nest.rank, l->index);
}

static bool inner_is(const Loop *l, int k, int64_t stride)
{
    Dim d = l->nest.stride[k][l->nest.rank - 1];
    return !d.expr && d.value == stride;
}

static void put_element(const Loop *l, int k, const char *pointer, const char *cast)
{
    bool is_bool = l->operand[k]->type.dtype == ETC_BOOL;
    put(&l->f->body, is_bool ? "(%s)(*(" : "(%s)*(", cast);
    put_address(l, k, pointer);
    put(&l->f->body, is_bool ? ") != 0)" : ")");
}

/* Returns the suffix of functions such as etc_load_i8, which makes floats of bytes: "_i8" or "_u8";
 * for floats, "". */
static const char *byte_suffix(const Value *v)
{
    return v->type.dtype == ETC_I8 ? "_i8" : v->type.dtype == ETC_U8 ? "_u8" : "";
}

static void put_load(const Loop *l, int k, const char *pointer)
{
    Text *t = &l->f->body;
    const char *suffix = byte_suffix(l->operand[k]);
    if (l->kind == INTEGERS) {
        put_element(l, k, pointer, "uint64_t");
    } else if (l->kind == DOUBLES) {
        put_element(l, k, pointer, "double");
    } else if (l->kind == LANES) {
        put(t, "etc_splat(");
        put_element(l, k, pointer, "float");
        put(t, ")");
    } else if (inner_is(l, k, 0)) {
        put(t, "etc_splat(%s*(", *suffix ? "(float)" : "");
        put_address(l, k, pointer);
        put(t, "))");
    } else {
        bool is_apart = !inner_is(l, k, 1);
        put(t, "etc_load%s%s(", suffix, is_apart ? "_apart" : "");
        put_address(l, k, pointer);
        if (is_apart) {
            put(t, ", ");
            function_dim(l->f, l->nest.stride[k][l->nest.rank - 1]);
        }
        put_left(l);
        put(t, ")");
    }
}

static void put_store(const Loop *l, const Value *root, const char *y, const char *v)
{
    Text *t = &l->f->body;
    int k = l->n;
    put(t, "%*s", l->indent, "");
    if (l->kind == VECTORS) {
        bool is_apart = !inner_is(l, k, 1);
        const char *bytes = *byte_suffix(root) ? "_bytes" : "";
        put(t, "etc_store%s%s(", bytes, is_apart ? "_apart" : "");
        put_address(l, k, y);
        if (is_apart) {
            put(t, ", ");
            function_dim(l->f, l->nest.stride[k][l->nest.rank - 1]);
        }
        put_left(l);
        put(t, ", %s);\n", v);
        return;
    }
    put(t, "*(");
    put_address(l, k, y);
    if (root->type.dtype == ETC_BOOL)
        put(t, ") = (uint8_t)(%s != 0);\n", v);
    else
        put(t, ") = (%s)%s%s;\n", c_type(root->type.dtype), v, l->kind == LANES ? "[0]" : "");
}

/* -- the loop -------------------------------------------------------------------------------- */

static bool is_member(const Node *n, const bool *skip)
{
    return n->n_out == 1 && !skip[n->out[0]->index];
}

static void add_operand(Loop *l, bool *seen, const bool *skip, const Node *reader, const Value *v)
{
    if (seen[v->index] || (v->def && !skip[v->index]))
        return;
    seen[v->index] = true;
    l->is_scaled[l->n] = reader->op == OP_DEQUANTIZE_PER_TENSOR;
    l->operand[l->n++] = v;
}

static void find_operands(Loop *l, const bool *skip)
{
    int n = 0;
    bool *seen = NEW(l->f->e->a, bool, l->body->n_values + 1);
    for (const Node *m = l->body->first; m; m = m->next)
        n += m->n_in;
    l->operand = NEW(l->f->e->a, const Value *, n + 1);
    l->is_scaled = NEW(l->f->e->a, bool, n + 1);
    for (const Node *m = l->body->first; m; m = m->next)
        for (int i = 0; is_member(m, skip) && i < m->n_in; i++)
            add_operand(l, seen, skip, m, m->in[i]);
}

/* Returns whether the loop only copies elements of type f16 or bf16.  They are integers here. */
static bool only_moves_halves(const Loop *l, const bool *skip, const Value *root)
{
    EtcDtype t = root->type.dtype;
    bool ok = dtype_is_half(t);
    for (const Node *m = l->body->first; ok && m; m = m->next)
        ok = !is_member(m, skip) || (m->op == OP_CLONE && arg_value(m, "self")->type.dtype == t);
    return ok;
}

static bool choose_kind(Loop *l, const bool *skip, const Value *root)
{
    bool quantizes = root->def && root->def->op == OP_QUANTIZE_PER_TENSOR;
    EtcDtype to = quantizes ? ETC_F32 : root->type.dtype;
    bool all_f32 = to == ETC_F32, ok = dtype_has_c(to);
    for (int i = 0; i < l->n; i++) {
        all_f32 = all_f32 && (l->operand[i]->type.dtype == ETC_F32 || l->is_scaled[i]);
        ok = ok && dtype_has_c(l->operand[i]->type.dtype);
    }
    l->kind = all_f32 ? VECTORS : to == ETC_F32 ? LANES : to == ETC_F64 ? DOUBLES : INTEGERS;
    return ok || only_moves_halves(l, skip, root);
}

static void open_loops(Loop *l)
{
    Function *f = l->f;
    int last = l->nest.rank - 1;
    l->indent = nest_open(f, &l->nest, l->kind == VECTORS ? last : l->nest.rank, l->index);
    if (l->kind != VECTORS)
        return;
    const char *i = l->index[last] = names_make(f->names, "", last ? "c" : "i");
    put(&f->body, "%*sfor (int64_t %s = 0; %s < ", l->indent, "", i, i);
    function_dim(f, l->nest.size[last]);
    put(&f->body, "; %s += ETC_LANES) {\n", i);
    l->indent += 4;
}

static void put_declaration(const Loop *l, const Value *v)
{
    const char *name = names_make(l->f->names, "v_", v->name);
    l->f->name_of[v->index] = name;
    put(&l->f->body, "%*sconst %s %s = ", l->indent, "", element_type(l), name);
}

/* Returns whether the first number of n may be 0 as an integer, without its fraction. */
static bool may_be_zero(const Node *n)
{
    int i = find_arg(n, false, 0);
    int64_t lo, hi;
    Dim size;
    double p = number_arg(n, i);
    if (!arg_dim(n, i, &size))
        return p > -1 && p < 1;
    dim_range(size, &lo, &hi);
    return lo <= 0 && hi >= 0;
}

/* Returns what is wrong with a node that kernels refuse or handle in a special way which its row
 * does not show; NULL: nothing is wrong. */
static const char *fault_of(const Loop *l, const Node *n)
{
    double p = number_arg(n, find_arg(n, false, 0)), q = number_arg(n, find_arg(n, false, 1));
    const char *expr = op_expr(n->op);
    if (!strcmp(expr, "clamp") && (isnan(p) || isnan(q)))
        return "takes no NaN as a bound";
    if (!strcmp(expr, "pow_scalar") && l->kind == INTEGERS && p < 0)
        return "takes no integer to a negative power";
    bool divides = !strcmp(expr, "remainder_scalar") || !strcmp(expr, "fmod_scalar");
    if (divides && l->kind == INTEGERS && may_be_zero(n))
        return "takes no integer modulo what may be 0";
    return NULL;
}

/* Returns the start of a cast that leaves an integer result the bits of its dtype, as in memory;
 * NULL: no cast is necessary. */
static const char *narrowing(const Loop *l, const Value *v, const Value *root)
{
    EtcDtype t = v->type.dtype;
    if (l->kind != INTEGERS || v == root || etc_dtype_size((int)t) == 8)
        return NULL;
    bool is_signed = t == ETC_I8 || t == ETC_I16 || t == ETC_I32;
    return t == ETC_BOOL ? "(uint64_t)(0u != "
                         : arena_printf(l->f->e->a, "(uint64_t)%s(%s)",
                                        is_signed ? "(int64_t)" : "", c_type(t));
}

/* Prints a quantize or dequantize per tensor.  What dequantize reads are floats without a fraction
 * here; quantize makes vectors of integers, and is the last of its group. */
static void put_scaling(const Loop *l, const Node *n)
{
    double scale = 1, zero = 0, lo = 0, hi = 0;
    Text *t = &l->f->body;
    const char *x = l->f->name_of[arg_value(n, "input")->index];
    arg_number(n, "scale", &scale);
    arg_number(n, "zero_point", &zero);
    arg_number(n, "quant_min", &lo);
    arg_number(n, "quant_max", &hi);
    if (n->op == OP_DEQUANTIZE_PER_TENSOR) {
        put(t, "etc_dequantize_lanes(%s, etc_splat(", x);
        put_float(t, (float)zero);
        put(t, "), etc_splat(");
        put_float(t, (float)scale);
        put(t, "))");
        return;
    }
    put(t, "etc_quantize_lanes(%s, etc_splat(", x);
    put_float(t, (float)(1 / scale));
    put(t, "), %d, ", (int)zero);
    put_float(t, (float)lo);
    put(t, ", ");
    put_float(t, (float)hi);
    put(t, ")");
}

/* Prints a or b of a row as a double: lane `lane` of a tensor, or lane 0 of a number. */
static bool put_lane(const Loop *l, const Node *n, char letter, const char *lane)
{
    int i = find_arg(n, true, letter - 'a');
    put(&l->f->body, "(double)");
    bool ok = put_letter(l, n, letter);
    put(&l->f->body, i >= 0 && arg_value(n, i) ? "[%s]" : "[0]", lane);
    return ok;
}

/* Prints a row that is computed in double from lanes of float: in a loop over the lanes, or only
 * for lane 0 if the others are not used. */
static bool put_lanes(const Loop *l, const Node *n, const char *name, const char *s)
{
    Text *t = &l->f->body;
    const char *lane = l->kind == VECTORS ? names_make(l->f->names, "", "lane") : "0";
    bool ok = true;
    put(t, "etc_k(0.0);\n%*s", l->indent, "");
    if (l->kind == VECTORS)
        put(t, "for (int %s = 0; %s < ETC_LANES; %s++) {\n%*s", lane, lane, lane, l->indent + 4, "");
    put(t, "%s[%s] = (float)", name, lane);
    for (size_t len; *s && ok; s += len) {
        len = strspn(s, "abcdefghijklmnopqrstuvwxyz_0123456789");
        bool is_letter = len == 1 && (*s == 'a' || *s == 'b');
        if (is_letter)
            ok = put_lane(l, n, *s, lane);
        else
            put_n(t, s, len ? len : 1);
        len += !len;
    }
    put(t, l->kind == VECTORS ? ";\n%*s}\n" : ";\n", l->indent, "");
    return ok;
}

static bool put_member(const Loop *l, const Node *n, const Value *root)
{
    const CRow *row = find_row(n, l->f->e->target);
    Text *t = &l->f->body;
    const char *name = names_make(l->f->names, "v_", n->out[0]->name), *fault = fault_of(l, n);
    const char *cast = narrowing(l, n->out[0], root);
    if (fault)
        return function_refuse(l->f, n, fault);
    bool is_float = l->kind == VECTORS || l->kind == LANES;
    bool has_lanes = row && is_float && !strncmp(row->kind, "DOUBLE", 6);
    const char *type = n->op == OP_QUANTIZE_PER_TENSOR ? "EtcI" : element_type(l);
    put(t, "%*s%s%s %s = %s%s", l->indent, "", has_lanes ? "" : "const ", type, name,
        cast ? cast : "", cast ? "(" : "");
    bool ok = true;
    if (has_lanes) {
        l->f->name_of[n->out[0]->index] = name;
        return put_lanes(l, n, name, row->expr);
    }
    if (node_scales_bytes(n))
        put_scaling(l, n);
    else
        ok = row && put_expr(l, n, row->expr);
    put(t, "%s;\n", !cast ? "" : n->out[0]->type.dtype == ETC_BOOL ? "))" : ")");
    l->f->name_of[n->out[0]->index] = name;
    return ok || function_refuse(l->f, n, "has no C for these dtypes");
}

bool put_pointwise(Function *f, const Graph *body, const bool *skip, const Value *root)
{
    Loop l = {.f = f, .body = body};
    const char *y = f->name_of[root->index];
    bool ok = true;
    find_operands(&l, skip);
    if (!choose_kind(&l, skip, root))
        return function_refuse(f, root->def, "has no C for these dtypes");
    l.nest = nest_new(f->e, root->type, l.n + 1);
    const char **pointer = NEW(f->e->a, const char *, l.n + 1);
    for (int k = 0; k < l.n; k++) {
        Type t = value_type(l.operand[k]);
        pointer[k] = part_rows_of(f, l.operand[k], &t);
        nest_operand(f->e, &l.nest, k, t);
    }
    nest_operand(f->e, &l.nest, l.n, root->type);
    nest_collapse(f->e, &l.nest);
    open_loops(&l);
    for (int k = 0; k < l.n; k++) {
        put_declaration(&l, l.operand[k]);
        put_load(&l, k, pointer[k]);
        put(&f->body, ";\n");
    }
    for (const Node *n = body->first; n; n = n->next)
        if (is_member(n, skip))
            ok = put_member(&l, n, root) && ok;
    put_store(&l, root, y, f->name_of[root->index]);
    nest_close(f, l.nest.rank);
    return ok;
}
