/* composite_data.c -- arithmetic of numbers, sizes and tensors for the rules of composites.txt, and
 * functions of data that is known before the model runs. */
#include "ir/session.h"
#include "passes/composite.h"
#include <math.h>
#include <string.h>

static const Arg none = {.kind = ARG_NONE};

static bool get_dim(const Arg *a, Dim *d)
{
    *d = a->kind == ARG_BOOL ? DIM(a->b) : a->dim;
    return a->kind == ARG_INT || a->kind == ARG_BOOL;
}

static double float_of(Play *p, Arg a)
{
    return a.kind == ARG_FLOAT ? a.f : (double)int_of(p, a);
}

static Arg two(Play *p, OpId op, Arg a, Arg b)
{
    return play_node(p, op, &(Given){.v = {a, b}, .n = 2});
}

/* Returns whether a < b holds for all values of the symbols.  Refuses the node where it does for
 * some of them only. */
static bool is_less(Play *p, Dim a, Dim b)
{
    int64_t lo, hi;
    if (!a.expr && !b.expr) /* their difference may have more than 64 bits */
        return a.value < b.value;
    dim_range(dim_sub(p->r->g->program, a, b), &lo, &hi);
    if (lo < 0 && hi >= 0)
        play_refuse(p, "a symbolic size decides how it is computed: export with this size fixed");
    return hi < 0;
}

/* -- arithmetic -------------------------------------------------------------------------------- */

/* A sign, and the operators that it means: for two tensors, for a tensor and a number, and, if
 * it does not commute, for a number and a tensor. */
typedef struct Sign {
    const char *text;
    OpId tensors, number, reversed;
} Sign;

static const Sign signs[] = {
    {"==", OP_EQ_TENSOR, OP_EQ_SCALAR, OP_NONE},
    {"!=", OP_NE_TENSOR, OP_NE_SCALAR, OP_NONE},
    {"<=", OP_LE_TENSOR, OP_LE_SCALAR, OP_GE_SCALAR},
    {">=", OP_GE_TENSOR, OP_GE_SCALAR, OP_LE_SCALAR},
    {"<", OP_LT_TENSOR, OP_LT_SCALAR, OP_GT_SCALAR},
    {">", OP_GT_TENSOR, OP_GT_SCALAR, OP_LT_SCALAR},
    {"+", OP_ADD_TENSOR, OP_ADD_SCALAR, OP_NONE},
    {"-", OP_SUB_TENSOR, OP_SUB_SCALAR, OP_RSUB_SCALAR},
    {"*", OP_MUL_TENSOR, OP_MUL_SCALAR, OP_NONE},
    {"//", OP_NONE, OP_NONE, OP_NONE},
    {"/", OP_DIV_TENSOR, OP_DIV_SCALAR, OP_NONE},
    {"%", OP_NONE, OP_REMAINDER_SCALAR, OP_NONE},
};
enum { FIRST_SUM = 6, FIRST_PRODUCT = 8, N_SIGNS = sizeof signs / sizeof *signs };

int sign_at(const char *s)
{
    if (!strchr("=!<>+-*/%", *s) || !*s)
        return -1;
    for (int i = 0; i < N_SIGNS; i++)
        if (*s == *signs[i].text && (!signs[i].text[1] || s[1] == signs[i].text[1]))
            return i;
    return -1;
}

int sign_level(int i)
{
    return (i >= FIRST_PRODUCT) + (i >= FIRST_SUM);
}

static OpId reversed(const Sign *s)
{
    bool commutes = s->tensors != OP_NONE && op_info[s->tensors].flags & COMMUTES;
    return commutes ? s->number : s->reversed;
}

OpId number_row(OpId op, bool is_left)
{
    for (int i = FIRST_SUM; i < N_SIGNS; i++)
        if (signs[i].tensors == op && op != OP_NONE)
            return is_left ? reversed(&signs[i]) : signs[i].number;
    return OP_NONE;
}

const char *sign_text(int i)
{
    return signs[i].text;
}

bool sign_is(int i, OpId op)
{
    return op < N_OPS && (op == signs[i].tensors || op == signs[i].number);
}

bool sign_commutes(int i)
{
    return signs[i].tensors < N_OPS && op_info[signs[i].tensors].flags & COMMUTES;
}

/* Returns the tensor from which a float is read that the model computes; any other argument as it
 * is. */
static Arg read_number(Play *p, Arg a)
{
    const Value *v = tensor(p, a);
    bool is_float = v && v->type.rank == SCALAR && v->type.dtype == ETC_F64;
    return is_float && v->def && v->def->n_in == 1 ? of_value(p, first_operand(v->def)) : a;
}

static Arg of_tensors(Play *p, const Sign *s, Arg a, Arg b)
{
    a = read_number(p, a);
    b = read_number(p, b);
    bool is_two = a.kind == b.kind;
    OpId op = is_two ? s->tensors : a.kind == ARG_VALUE ? s->number : reversed(s);
    if (op == OP_NONE)
        return play_misfit(p, arena_printf(p->r->tmp, "has no '%s' of such operands", s->text));
    return !is_two && b.kind == ARG_VALUE ? two(p, op, b, a) : two(p, op, a, b);
}

static Arg of_floats(Play *p, const char *sign, double a, double b)
{
    switch (*sign) {
    case '+':
        return of_float(a + b);
    case '-':
        return of_float(a - b);
    case '*':
        return of_float(a * b);
    case '/':
        return of_float(sign[1] ? floor(a / b) : a / b);
    case '=':
        return of_bool(a == b);
    case '!':
        return of_bool(a != b);
    case '<':
        return of_bool(sign[1] ? a <= b : a < b);
    case '>':
        return of_bool(sign[1] ? a >= b : a > b);
    default:
        return play_misfit(p, "has no such operation of floats");
    }
}

static Arg of_dims(Play *p, const char *sign, Dim a, Dim b)
{
    Program *q = p->r->g->program;
    switch (*sign) {
    case '+':
        return of_dim(dim_add(q, a, b));
    case '-':
        return of_dim(dim_sub(q, a, b));
    case '*':
        return of_dim(dim_mul(q, a, b));
    case '/':
        return of_dim(dim_floordiv(q, a, b));
    case '%':
        return of_dim(dim_mod(q, a, b));
    case '=':
        return of_bool(dim_equal(a, b));
    case '!':
        return of_bool(!dim_equal(a, b));
    case '<':
        return of_bool(sign[1] ? !is_less(p, b, a) : is_less(p, a, b));
    default:
        return of_bool(sign[1] ? !is_less(p, a, b) : is_less(p, b, a));
    }
}

static Arg joined(Play *p, Arg a, Arg b)
{
    Arg *item, list = list_new(p, a.list.n + b.list.n, &item);
    for (int i = 0; i < list.list.n; i++)
        item[i] = i < a.list.n ? a.list.item[i] : b.list.item[i - a.list.n];
    list.depth = a.depth > b.depth ? a.depth : b.depth;
    return list;
}

static bool same(Play *p, const Arg *a, const Arg *b)
{
    Dim x, y;
    if (get_dim(a, &x) && get_dim(b, &y))
        return dim_equal(x, y);
    if (a->kind != b->kind)
        return false;
    if (a->kind == ARG_LIST) {
        bool ok = a->list.n == b->list.n;
        for (int i = 0; ok && i < a->list.n; i++)
            ok = play_work(p, 1) && same(p, &a->list.item[i], &b->list.item[i]);
        return ok;
    }
    return a->kind == ARG_NONE || (a->kind == ARG_DTYPE && a->dtype == b->dtype) ||
           (a->kind == ARG_STRING && !strcmp(a->str, b->str));
}

static bool is_number(Arg a)
{
    return a.kind == ARG_INT || a.kind == ARG_FLOAT || a.kind == ARG_BOOL;
}

Arg play_sign(Play *p, int i, Arg a, Arg b)
{
    const Sign *s = &signs[i];
    Dim x, y;
    if ((a.kind == ARG_VALUE || b.kind == ARG_VALUE) &&
        (a.kind == b.kind || is_number(a) || is_number(b)))
        return of_tensors(p, s, a, b);
    if (a.kind == ARG_LIST && b.kind == ARG_LIST && *s->text == '+')
        return joined(p, a, b);
    bool is_division = !strcmp(s->text, "/");
    if (!is_division && get_dim(&a, &x) && get_dim(&b, &y))
        return of_dims(p, s->text, x, y);
    if (is_number(a) && is_number(b))
        return of_floats(p, s->text, float_of(p, a), float_of(p, b));
    if (*s->text == '=' || *s->text == '!')
        return of_bool(same(p, &a, &b) == (*s->text == '='));
    return play_misfit(p, arena_printf(p->r->tmp, "has no '%s' of such operands", s->text));
}

/* -- functions of what is known ---------------------------------------------------------------- */

static Arg sizes_of(Play *p, const Value *v)
{
    Arg *item, list = list_new(p, v->type.rank < 0 ? 0 : v->type.rank, &item);
    for (int i = 0; i < list.list.n; i++)
        item[i] = of_dim(v->type.dim[i]);
    return list;
}

/* Returns an index below n that may count from the end.  If it is out of range, the node is
 * refused. */
static int wrapped(Play *p, Arg a, int n)
{
    int64_t i = int_of(p, a);
    i += i < 0 ? n : 0;
    if (i >= 0 && i < n)
        return (int)i;
    play_refuse(p, "an axis or index is out of range");
    return 0;
}

static Arg size_at(Play *p, const Value *v, Arg axis)
{
    int rank = v->type.rank;
    int i = rank > 0 ? wrapped(p, axis, rank) : 0;
    return of_dim(rank > 0 && !p->failed ? v->type.dim[i] : DIM(1));
}

/* Returns the step of numbers from 0 that a node counts, or 0. */
static Arg spacing_of(const Value *v)
{
    double start;
    const Node *n = v ? v->def : NULL;
    if (!n || n->op != OP_ARANGE_START_STEP || !arg_number(n, "start", &start) || start != 0 ||
        arg_get(n, "step").kind != ARG_INT)
        return of_dim(DIM(0));
    return of_dim(arg_get(n, "step").dim);
}

typedef enum Fn {
    FN_SIZE, FN_SIZES, FN_RANK, FN_NUMEL, FN_DTYPE, FN_IS_NONE, FN_IS_TENSOR, FN_IS_FLOAT,
    FN_IS_INT, FN_IS_NUMBER, FN_LEN, FN_WRAP, FN_KNOWN, FN_EPS, FN_LOWEST, FN_HIGHEST, FN_VIEW,
    FN_PERMUTE, FN_MIN, FN_MAX, FN_SQRT, FN_FLOOR, FN_CEIL, FN_ABS,
    FN_INT, FN_FLOAT, FN_TENSOR, FN_PRODUCT, FN_LETTERS, FN_TOLD, FN_IS_COMPLEX, FN_RE, FN_IM,
    FN_HALVED, FN_OWN, FN_IS_WHOLE, FN_SPACING, N_FNS
} Fn;

/* The functions by name.  of_data: it is the name of an operator too, which is meant if the first
 * argument is a tensor. */
static const struct {
    const char *name;
    int least, most;
    bool of_data;
} fns[N_FNS] = {
    [FN_SIZE] = {"size", 2, 2, false},       [FN_SIZES] = {"sizes", 1, 1, false},
    [FN_RANK] = {"rank", 1, 1, false},       [FN_NUMEL] = {"numel", 1, 1, false},
    [FN_DTYPE] = {"dtype", 1, 1, false},     [FN_IS_NONE] = {"is_none", 1, 1, false},
    [FN_IS_TENSOR] = {"is_tensor", 1, 1, false}, [FN_IS_FLOAT] = {"is_float", 1, 1, false},
    [FN_IS_INT] = {"is_int", 1, 1, false},   [FN_IS_NUMBER] = {"is_number", 1, 1, false},
    [FN_LEN] = {"len", 1, 1, false},         [FN_WRAP] = {"wrap", 2, 2, false},
    [FN_KNOWN] = {"known", 1, 1, false},     [FN_EPS] = {"eps", 1, 1, true},
    [FN_LOWEST] = {"lowest", 1, 1, true},    [FN_HIGHEST] = {"highest", 1, 1, true},
    [FN_VIEW] = {"view", 2, 2, false},       [FN_PERMUTE] = {"permute", 2, 2, false},
    [FN_MIN] = {"min", 2, 2, true},          [FN_MAX] = {"max", 2, 2, true},
    [FN_SQRT] = {"sqrt", 1, 1, true},        [FN_FLOOR] = {"floor", 1, 1, true},
    [FN_CEIL] = {"ceil", 1, 1, true},        [FN_ABS] = {"abs", 1, 1, true},
    [FN_INT] = {"int", 1, 1, false},
    [FN_FLOAT] = {"float", 1, 1, false},     [FN_TENSOR] = {"tensor", 2, 2, false},
    [FN_PRODUCT] = {"product", 1, 1, false}, [FN_LETTERS] = {"letters", 1, 1, false},
    [FN_IS_COMPLEX] = {"is_complex", 1, 1, false}, [FN_RE] = {"re", 1, 1, false},
    [FN_IM] = {"im", 1, 1, false},           [FN_HALVED] = {"halved", 1, 1, false},
    [FN_OWN] = {"own", 0, 0, false},         [FN_IS_WHOLE] = {"is_whole", 1, 1, false},
    [FN_TOLD] = {"told", 3, 4, false},       [FN_SPACING] = {"spacing", 1, 1, false},
};

static EtcDtype dtype_of(Play *p, Arg a)
{
    if (a.kind != ARG_DTYPE)
        play_misfit(p, "uses a value as a dtype that is not one");
    return a.kind == ARG_DTYPE ? a.dtype : ETC_F32;
}

static double eps_of(EtcDtype t)
{
    return t == ETC_F64 ? 0x1p-52 : t == ETC_F16 ? 0x1p-10 : t == ETC_BF16 ? 0x1p-7 : 0x1p-23;
}

/* Returns the largest or the lowest finite number of a float dtype, or the bounds of an integer
 * one. */
static Arg end_of(EtcDtype t, bool is_high)
{
    int bits = 8 * (int)etc_dtype_size((int)t);
    bool is_signed = t != ETC_U8 && t != ETC_U16 && t != ETC_U32 && t != ETC_U64;
    double most = t == ETC_F64    ? 0x1.fffffffffffffp1023
                  : t == ETC_F16  ? 65504
                  : t == ETC_BF16 ? 0x1.fep127
                                  : 0x1.fffffep127;
    if (dtype_is_float(t))
        return of_float(is_high ? most : -most);
    if (t == ETC_BOOL)
        return of_bool(is_high);
    int64_t top = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - is_signed)) - 1;
    return of_dim(DIM(is_high ? top : is_signed ? -top - 1 : 0));
}

static Arg numel_of(Play *p, const Value *v)
{
    return of_dim(dims_numel(p->r->g->program, v->type));
}

static Arg product_of(Play *p, Arg list)
{
    Dim all = DIM(1);
    for (int i = 0; list.kind == ARG_LIST && i < list.list.n; i++)
        all = dim_mul(p->r->g->program, all, dim_of(p, list.list.item[i]));
    return of_dim(all);
}

/* Returns a list of the codes of a text's characters without blanks. */
static Arg letters_of(Play *p, Arg text)
{
    if (text.kind != ARG_STRING)
        return play_misfit(p, "uses a value as a text that is not one");
    Arg *item, list = list_new(p, (int)strlen(text.str), &item);
    int n = 0;
    for (const char *c = text.str; *c; c++)
        if (*c != ' ')
            item[n++] = of_dim(DIM((unsigned char)*c));
    list.list.n = n;
    return list;
}

static Value *wanted(Play *p, Arg a)
{
    Value *v = tensor(p, a);
    if (!v)
        play_misfit(p, "uses a value as a tensor that is not one");
    return v;
}

static int dims_of(Play *p, Arg list, Dim *to)
{
    if (list.kind != ARG_LIST || list.list.n > MAX_RANK) {
        play_refuse(p, "has more axes than a tensor may have");
        return 0;
    }
    for (int i = 0; i < list.list.n; i++)
        to[i] = dim_of(p, list.list.item[i]);
    return p->failed ? 0 : list.list.n;
}

static Arg viewed(Play *p, Arg x, Arg sizes)
{
    Dim dim[MAX_RANK];
    Value *v = wanted(p, x);
    int rank = dims_of(p, sizes, dim);
    return p->failed ? none : of_value(p, build_view(p->r, p->n, v, dim, rank));
}

/* Permutes a tensor; the axes may be counted from the end.  If the order does not change, the
 * result is the tensor itself. */
static Arg permuted(Play *p, Arg x, Arg axes)
{
    int64_t axis[MAX_RANK];
    Value *v = wanted(p, x);
    bool stays = true;
    if (p->failed || axes.kind != ARG_LIST || axes.list.n != v->type.rank)
        return play_misfit(p, "permutes other axes than there are");
    for (int i = 0; i < axes.list.n; i++) {
        axis[i] = wrapped(p, axes.list.item[i], v->type.rank);
        stays = stays && axis[i] == i;
    }
    if (p->failed)
        return none;
    return stays ? x : of_value(p, build_permute(p->r, p->n, v, axis));
}

/* Returns a list as a constant with one axis. */
static Arg tensor_of(Play *p, Arg list, Arg dtype)
{
    Program *q = p->r->g->program;
    EtcDtype t = dtype_of(p, dtype);
    if (p->failed || list.kind != ARG_LIST || (t != ETC_F32 && t != ETC_F64 && t != ETC_I64))
        return play_misfit(p, "makes no such constant");
    Dim n = DIM(list.list.n);
    Type type = type_tensor(q, t, 1, &n);
    uint8_t *data = arena_bytes(q->arena, (size_t)type_bytes(type) + 1);
    for (int i = 0; i < list.list.n; i++) {
        const double f = t == ETC_I64 ? 0 : float_of(p, list.list.item[i]);
        const int64_t k = t == ETC_I64 ? int_of(p, list.list.item[i]) : 0;
        const float s = (float)f;
        if (t == ETC_F32)
            memcpy(data + 4 * i, &s, 4);
        else
            memcpy(data + 8 * i, t == ETC_F64 ? (const void *)&f : (const void *)&k, 8);
    }
    const char *name = p->n->loc.node ? p->n->loc.node : "t";
    return of_value(p, graph_state(p->r->g, program_const(q, name, name, type, data)));
}

/* Sets the upper bound of a size that is a symbol of its own to `most`, unless its bound is less
 * already and is not `was`, the bound that exports record wrongly. */
static void limit(Play *p, Dim d, Arg most, Arg was)
{
    Program *q = p->r->g->program;
    const Symbol *s;
    int64_t scale, offset, hi = most.kind == ARG_NONE ? INT64_MAX : dim_upper(dim_of(p, most));
    int64_t wrong = was.kind == ARG_NONE ? INT64_MAX : dim_upper(dim_of(p, was));
    if (p->failed || !dim_is_linear(d, &s, &scale, &offset) || scale != 1 || offset ||
        (hi >= s->hi && s->hi != wrong))
        return;
    q->sym[s->index]->hi = hi < s->lo ? s->lo : hi;
    q->edits++;
}

/* Evaluates told(x, n, most, was): n is a new size of at most `most`, and element x is its
 * value. */
static Arg told_by(Play *p, const Given *g)
{
    Dim d = dim_of(p, g->v[1]);
    Arg item = p->failed ? none : play_node(p, OP_LOCAL_SCALAR_DENSE, &(Given){.v = {g->v[0]}, .n = 1});
    if (p->failed)
        return none;
    value_set_type(tensor(p, item), type_size(p->r->g->program, d));
    limit(p, d, g->v[2], g->n > 3 ? g->v[3] : none);
    return g->v[1];
}

static Arg of_tensor(Play *p, Fn fn, const Value *v, const Given *g)
{
    switch ((int)fn) {
    case FN_SIZE:
        return size_at(p, v, g->v[1]);
    case FN_SIZES:
        return sizes_of(p, v);
    case FN_RANK:
        return of_dim(DIM(v->type.rank < 0 ? 0 : v->type.rank));
    case FN_NUMEL:
        return numel_of(p, v);
    default:
        return (Arg){.kind = ARG_DTYPE, .dtype = v->type.dtype};
    }
}

static Arg of_dtype(Fn fn, EtcDtype t)
{
    switch ((int)fn) {
    case FN_IS_FLOAT:
        return of_bool(dtype_is_float(t));
    case FN_IS_INT:
        return of_bool(dtype_is_int(t));
    case FN_IS_COMPLEX:
        return of_bool(dtype_is_complex(t));
    case FN_EPS:
        return of_float(eps_of(t));
    default:
        return end_of(t, fn == FN_HIGHEST);
    }
}

static Arg of_number(Play *p, Fn fn, Arg a)
{
    if (a.kind == ARG_INT && (fn == FN_INT || fn == FN_FLOOR || fn == FN_CEIL))
        return a; /* a double does not hold every integer */
    double x = float_of(p, a);
    switch ((int)fn) {
    case FN_SQRT:
        return of_float(sqrt(x));
    case FN_ABS:
        return of_float(fabs(x));
    case FN_FLOAT:
        return of_float(x);
    default:
        x = fn == FN_CEIL ? ceil(x) : floor(x);
        return x >= -0x1p63 && x < 0x1p63 ? of_dim(DIM((int64_t)x))
                                          : play_refuse(p, "one of its numbers is beyond any i64");
    }
}

static Arg extreme(Play *p, bool is_max, Arg a, Arg b)
{
    Program *q = p->r->g->program;
    Dim x, y;
    if (get_dim(&a, &x) && get_dim(&b, &y))
        return of_dim(is_max ? dim_max(q, x, y) : dim_min(q, x, y));
    double v = float_of(p, a), w = float_of(p, b);
    return of_float((v < w) == is_max ? w : v);
}

/* Returns whether the tail takes the operator of that name as it is. */
static bool is_whole(Play *p, Arg name)
{
    OpId op = name.kind == ARG_STRING ? op_find(name.str) : N_OPS;
    if (op == N_OPS)
        play_misfit(p, "uses a value as an operator that is not one");
    return op != N_OPS && session_takes(p->r->g->program->session, op);
}

static Arg of_any(Play *p, Fn fn, const Given *g)
{
    Arg a = g->v[0];
    Dim d;
    switch ((int)fn) {
    case FN_IS_NONE:
        return of_bool(a.kind == ARG_NONE);
    case FN_IS_TENSOR:
        return of_bool(a.kind == ARG_VALUE);
    case FN_IS_NUMBER:
        return of_bool(is_number(a));
    case FN_LEN:
        return a.kind == ARG_LIST ? of_dim(DIM(a.list.n)) : play_misfit(p, "has no such length");
    case FN_WRAP:
        d = dim_of(p, g->v[1]);
        return of_dim(DIM(wrapped(p, a, d.value > 0 ? (int)d.value : 1)));
    case FN_KNOWN:
        return of_bool(a.kind == ARG_FLOAT || (get_dim(&a, &d) && !d.expr));
    case FN_VIEW:
        return viewed(p, a, g->v[1]);
    case FN_PERMUTE:
        return permuted(p, a, g->v[1]);
    case FN_PRODUCT:
        return product_of(p, a);
    case FN_LETTERS:
        return letters_of(p, a);
    case FN_TENSOR:
        return tensor_of(p, a, g->v[1]);
    case FN_RE:
    case FN_IM:
        return play_half(p, fn == FN_IM, a);
    case FN_HALVED:
        return play_halved(p, int_of(p, a) == 1);
    case FN_OWN:
        return play_own(p);
    case FN_IS_WHOLE:
        return of_bool(is_whole(p, a));
    case FN_TOLD:
        return told_by(p, g);
    case FN_SPACING:
        return spacing_of(tensor(p, a));
    default:
        return extreme(p, fn == FN_MAX, a, g->v[1]);
    }
}

int function_find(const char *name)
{
    for (int i = 0; i < N_FNS; i++)
        if (name[0] == fns[i].name[0] && !strcmp(name, fns[i].name))
            return i;
    return -1;
}

/* Returns whether rules of users may call a function.  The others are for complex numbers, or do
 * not check their arguments. */
bool function_is_public(int fn)
{
    return fn < FN_TOLD || fn == FN_IS_COMPLEX;
}

bool function_is_operator(int fn)
{
    return fns[fn].of_data || fn == FN_VIEW || fn == FN_PERMUTE;
}

bool function_takes(int fn, Arg first)
{
    return !fns[fn].of_data || first.kind != ARG_VALUE;
}

Arg play_function(Play *p, int fn, const Given *g)
{
    if (g->n < fns[fn].least || g->n > fns[fn].most)
        return play_wrong(p, "calls a function with other arguments than it has");
    if (p->is_type && (fn == FN_VIEW || fn == FN_PERMUTE || fn == FN_TENSOR))
        return play_no_node(p);
    if (fn <= FN_DTYPE) {
        const Value *t = wanted(p, g->v[0]);
        return t ? of_tensor(p, (Fn)fn, t, g) : none;
    }
    if (fn == FN_HIGHEST && g->v[0].kind == ARG_INT)
        return of_dim(DIM(dim_upper(g->v[0].dim)));
    if (fn == FN_IS_FLOAT || fn == FN_IS_INT || fn == FN_IS_COMPLEX || (fn >= FN_EPS && fn <= FN_HIGHEST)) {
        EtcDtype t = dtype_of(p, g->v[0]);
        return p->failed ? none : of_dtype((Fn)fn, t);
    }
    if ((fn >= FN_SQRT && fn <= FN_ABS) || fn == FN_INT || fn == FN_FLOAT)
        return of_number(p, (Fn)fn, g->v[0]);
    return of_any(p, (Fn)fn, g);
}

/* -- lists and signs of one operand ------------------------------------------------------------ */

Arg play_negate(Play *p, Arg a)
{
    Dim d;
    if (a.kind == ARG_VALUE)
        return play_node(p, OP_NEG, &(Given){.v = {a}, .n = 1});
    if (get_dim(&a, &d))
        return of_dim(dim_sub(p->r->g->program, DIM(0), d));
    return of_float(-float_of(p, a));
}

Arg play_index(Play *p, Arg list, Arg at)
{
    if (list.kind != ARG_LIST)
        return play_misfit(p, "uses a value as a list that is not one");
    int i = wrapped(p, at, list.list.n);
    return p->failed ? none : list.list.item[i];
}

static int64_t bound_of(Play *p, Arg a, int n)
{
    int64_t i = int_of(p, a);
    i += i < 0 ? n : 0;
    return i < 0 ? 0 : i > n ? n : i;
}

Arg play_part(Play *p, Arg list, Arg from, Arg to)
{
    if (list.kind != ARG_LIST)
        return play_misfit(p, "uses a value as a list that is not one");
    int64_t lo = bound_of(p, from, list.list.n);
    int64_t hi = to.kind == ARG_NONE ? list.list.n : bound_of(p, to, list.list.n);
    list.list.n = hi > lo ? (int)(hi - lo) : 0;
    if (list.list.n) /* a list of nothing has no items to count from */
        list.list.item += lo;
    return list;
}
