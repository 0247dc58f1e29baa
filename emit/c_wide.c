/* c_wide.c -- prints products, windows and softmax in types that the cores do not take, because
 * they take only float: double, and integers in 64 bits that wrap.  The loops are printed in the
 * function of the node, and compute one element at a time. */
#include "emit/c_emit.h"
#include <inttypes.h>

bool node_is_wide(const Node *n)
{
    EtcDtype t = n->out[0]->type.dtype;
    return t != ETC_F32 && t != ETC_BOOL && dtype_has_c(t);
}

/* Checks that all operands have the dtype of the result. */
static bool check_dtypes(Function *f, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->type.dtype != n->out[0]->type.dtype)
            return function_refuse(f, n, "has no C for operands of different dtypes");
    return true;
}

static const char *work_type(const Node *n)
{
    return dtype_is_float(n->out[0]->type.dtype) ? "double" : "uint64_t";
}

static void put_number(Function *f, const Node *n, double v)
{
    if (dtype_is_float(n->out[0]->type.dtype))
        put_double(&f->body, v);
    else
        put_int(&f->body, (int64_t)v);
}

/* Prints the head of a loop over `size` at `indent`.  Returns the name of its index. */
static const char *open_loop(Function *f, int indent, const char *wish, Dim size)
{
    const char *i = names_make(f->names, "", wish);
    put(&f->body, "%*sfor (int64_t %s = 0; %s < ", indent, "", i, i);
    function_dim(f, size);
    put(&f->body, "; %s++) {\n", i);
    return i;
}

static void close_loops(Function *f, int n, int indent)
{
    while (n-- > 0) {
        indent -= 4;
        put(&f->body, "%*s}\n", indent, "");
    }
}

/* Prints " + (i * step)". */
static void put_step(Function *f, const char *i, Dim step)
{
    put(&f->body, " + (%s * ", i);
    function_dim(f, step);
    put(&f->body, ")");
}

/* -- products ---------------------------------------------------------------------------------- */

enum { Y, X, W, BIAS, N_TERMS };

/* Returns loops over the elements of y, with the addresses of a row of x and a column of w for
 * each.  Sets step[] to the strides from term to term. */
static Nest product_nest(Function *f, const Node *n, const Product *p, Dim step[N_TERMS])
{
    Type y = n->out[0]->type;
    int last = y.rank - 1, w_rank = p->w->type.rank;
    Dim x[MAX_RANK], w[MAX_RANK];
    Nest nest = nest_new(f->e, y, N_TERMS);
    nest_operand(f->e, &nest, Y, y);
    type_strides(f->e, value_type(p->x), x);
    type_strides(f->e, value_type(p->w), w);
    for (int i = 0; i <= last; i++) {
        nest.stride[X][i] = i < last ? x[i] : DIM(0);
        nest.stride[W][i] = p->is_batch && i < last - 1 ? w[i] : DIM(0);
        nest.stride[BIAS][i] = DIM(0);
    }
    nest.stride[W][last] = w[p->is_rows ? w_rank - 2 : w_rank - 1];
    step[W] = w[p->is_rows ? w_rank - 1 : w_rank - 2];
    step[X] = x[last];
    if (p->bias)
        nest_operand(f->e, &nest, BIAS, value_type(p->bias));
    nest_collapse(f->e, &nest);
    return nest;
}

bool emit_wide_product(Function *f, const Node *n, const Product *p)
{
    const char *index[MAX_LOOPS], *work = work_type(n);
    const Value *y = n->out[0];
    Dim step[N_TERMS];
    Text *t = &f->body;
    if (!check_dtypes(f, n))
        return false;
    Nest nest = product_nest(f, n, p, step);
    int in = nest_open(f, &nest, nest.rank, index);
    put(t, "%*s%s sum = 0;\n", in, "", work);
    const char *k = open_loop(f, in, "k", size_of(p->x, -1));
    put(t, "%*ssum += (%s)*(", in + 4, "", work);
    nest_address(f, &nest, X, function_pointer(f, p->x), nest.rank, index);
    put_step(f, k, step[X]);
    put(t, ") * (%s)*(", work);
    nest_address(f, &nest, W, function_pointer(f, p->w), nest.rank, index);
    put_step(f, k, step[W]);
    put(t, ");\n%*s}\n%*s*(", in, "", in, "");
    nest_address(f, &nest, Y, f->name_of[y->index], nest.rank, index);
    put(t, ") = (%s)(((%s)", c_type(y->type.dtype), work);
    put_number(f, n, p->alpha);
    put(t, " * sum)");
    if (p->bias) {
        put(t, " + ((%s)", work);
        put_number(f, n, p->beta);
        put(t, " * (%s)*(", work);
        nest_address(f, &nest, BIAS, function_pointer(f, p->bias), nest.rank, index);
        put(t, "))");
    }
    put(t, ");\n");
    nest_close(f, nest.rank);
    return true;
}

void put_scaled(Function *f, const Node *n, const Product *p)
{
    const char *index[MAX_LOOPS], *name = f->name_of[n->out[0]->index];
    const Type y = n->out[0]->type;
    Text *t = &f->body;
    Nest nest = nest_new(f->e, y, 2);
    nest_operand(f->e, &nest, 0, y);
    nest_operand(f->e, &nest, 1, value_type(p->bias));
    nest_collapse(f->e, &nest);
    int in = nest_open(f, &nest, nest.rank, index);
    put(t, "%*s*(", in, "");
    nest_address(f, &nest, 0, name, nest.rank, index);
    put(t, ") = (");
    put_float(t, (float)p->alpha);
    put(t, " * *(");
    nest_address(f, &nest, 0, name, nest.rank, index);
    put(t, ")) + (");
    put_float(t, (float)p->beta);
    put(t, " * *(");
    nest_address(f, &nest, 1, function_pointer(f, p->bias), nest.rank, index);
    put(t, "));\n");
    nest_close(f, nest.rank);
}

/* -- windows ----------------------------------------------------------------------------------- */

/* Prints `at`, the index in x that tap k of an axis reads for index p of y.  If x has no such
 * element, the code skips the tap. */
static void put_place_of_tap(Function *f, const Conv *c, int axis, const char *p, const char *k,
                             const char *at, int indent)
{
    Dim size = size_of(c->x, axis - c->axes);
    int64_t stride = c->stride[axis], pad = c->pad[axis], dilation = c->dilation[axis];
    Text *t = &f->body;
    if (!c->is_transposed) {
        put(t, "%*sconst int64_t %s = (%s * %" PRId64 ") - %" PRId64 " + (%s * %" PRId64 ");\n",
            indent, "", at, p, stride, pad, k, dilation);
        put(t, "%*sif (%s < 0 || %s >= ", indent, "", at, at);
        function_dim(f, size);
    } else {
        const char *whole = names_make(f->names, "", "q");
        put(t, "%*sconst int64_t %s = %s + %" PRId64 " - (%s * %" PRId64 ");\n", indent, "", whole,
            p, pad, k, dilation);
        put(t, "%*sconst int64_t %s = %s / %" PRId64 ";\n", indent, "", at, whole, stride);
        put(t, "%*sif (%s < 0 || %s %% %" PRId64 " != 0 || %s >= ", indent, "", whole, whole, stride,
            at);
        function_dim(f, size);
    }
    put(t, ") {\n%*scontinue;\n%*s}\n", indent + 4, "", indent, "");
}

/* The names of indices: the image, the channel of y, the channel of x within its group (`term`),
 * the places in y (`p`) and in x (`at`), the taps (`k`). */
typedef struct Taps {
    const char *image, *channel, *term, *p[VIEW_AXES], *at[VIEW_AXES], *k[VIEW_AXES];
} Taps;

/* Prints the sum of x[..] * w[..] of one tap.  A channel of y belongs to the group channel /
 * outs. */
static void put_tap(Function *f, const Node *n, const Conv *c, const Taps *i)
{
    Dim x[MAX_RANK], w[MAX_RANK];
    Program *p = f->e->method->program;
    Dim outs = dim_floordiv(p, size_of(n->out[0], 1), DIM(c->groups));
    Dim ins = dim_floordiv(p, size_of(c->x, 1), DIM(c->groups));
    const char *work = work_type(n);
    Text *t = &f->body;
    type_strides(f->e, value_type(c->x), x);
    type_strides(f->e, value_type(c->w), w);
    const char *from = names_make(f->names, "", "from");
    int in = 8 + 4 * (2 + 2 * c->axes);
    put(t, "%*sconst int64_t %s = ((%s / ", in, "", from, i->channel);
    function_dim(f, outs);
    put(t, ") * ");
    function_dim(f, ins);
    put(t, ") + %s;\n%*ssum += (%s)*(%s", i->term, in, "", work, function_pointer(f, c->x));
    put_step(f, i->image, x[0]);
    put_step(f, from, x[1]);
    for (int a = 0; a < c->axes; a++)
        put_step(f, i->at[a], x[2 + a]);
    put(t, ") * (%s)*(%s", work, function_pointer(f, c->w));
    put_step(f, c->is_transposed ? from : i->channel, w[0]);
    if (c->is_transposed) {
        put(t, " + ((%s %% ", i->channel);
        function_dim(f, outs);
        put(t, ") * ");
        function_dim(f, w[1]);
        put(t, ")");
    } else {
        put_step(f, i->term, w[1]);
    }
    for (int a = 0; a < c->axes; a++)
        put_step(f, i->k[a], w[2 + a]);
    put(t, ");\n");
}

bool emit_wide_conv(Function *f, const Node *n)
{
    Conv c;
    Taps i;
    const Value *y = n->out[0];
    Dim stride[MAX_RANK];
    Text *t = &f->body;
    if (!conv_read(n, &c) || c.x->type.rank != c.axes + 2)
        return function_refuse(f, n, "expects constant geometry and a batch");
    if (!check_dtypes(f, n))
        return false;
    Dim ins = dim_floordiv(f->e->method->program, size_of(c.x, 1), DIM(c.groups));
    type_strides(f->e, y->type, stride);
    i.image = open_loop(f, 4, "b", size_of(y, 0));
    i.channel = open_loop(f, 8, "c", size_of(y, 1));
    int in = 12;
    for (int a = 0; a < c.axes; a++, in += 4)
        i.p[a] = open_loop(f, in, "p", size_of(y, 2 + a));
    put(t, "%*s%s sum = ", in, "", work_type(n));
    put(t, c.bias ? "(%s)%s[%s];\n" : "0;\n", work_type(n),
        c.bias ? function_pointer(f, c.bias) : "", i.channel);
    i.term = open_loop(f, in, "i", ins);
    in += 4;
    for (int a = 0; a < c.axes; a++, in += 4) {
        i.k[a] = open_loop(f, in, "k", size_of(c.w, 2 + a));
        i.at[a] = names_make(f->names, "", "at");
        put_place_of_tap(f, &c, a, i.p[a], i.k[a], i.at[a], in + 4);
    }
    put_tap(f, n, &c, &i);
    close_loops(f, 1 + c.axes, in);
    in -= 4 * (1 + c.axes);
    put(t, "%*s*(%s", in, "", f->name_of[y->index]);
    put_step(f, i.image, stride[0]);
    put_step(f, i.channel, stride[1]);
    for (int a = 0; a < c.axes; a++)
        put_step(f, i.p[a], stride[2 + a]);
    put(t, ") = (%s)sum;\n", c_type(y->type.dtype));
    close_loops(f, 2 + c.axes, in);
    return true;
}

/* -- pools ------------------------------------------------------------------------------------- */

/* The loops over y, and the names of their indices. */
typedef struct Places {
    const char *image, *channel, *p[2];
    Dim x[4], y[4]; /* strides of image, channel and both axes */
    int n, indent;  /* the number of loops, and the indent of their body */
} Places;

static Places open_places(Function *f, const Value *x, const Value *y)
{
    Places i = {.image = "0", .indent = 4};
    bool is_batch = y->type.rank == 4;
    type_strides(f->e, value_type(x), i.x + !is_batch);
    type_strides(f->e, y->type, i.y + !is_batch);
    i.x[0] = is_batch ? i.x[0] : DIM(0);
    i.y[0] = is_batch ? i.y[0] : DIM(0);
    if (is_batch) {
        i.image = open_loop(f, i.indent, "b", size_of(y, 0));
        i.indent += 4;
    }
    i.channel = open_loop(f, i.indent, "c", size_of(y, -3));
    i.p[0] = open_loop(f, i.indent + 4, "p", size_of(y, -2));
    i.p[1] = open_loop(f, i.indent + 8, "p", size_of(y, -1));
    i.indent += 12;
    i.n = 3 + is_batch;
    return i;
}

static void put_element(Function *f, const Places *i, const char *pointer, const Dim stride[4],
                        const char *const p[2])
{
    put(&f->body, "*(%s", pointer);
    put_step(f, i->image, stride[0]);
    put_step(f, i->channel, stride[1]);
    put_step(f, p[0], stride[2]);
    put_step(f, p[1], stride[3]);
    put(&f->body, ")");
}

/* Prints the heads of both loops over a window.  Sets at[] to the names of the taps' places in
 * x. */
static void open_window(Function *f, const Value *x, const Pool *w, const Places *i,
                        const char *at[2])
{
    Conv c = {.x = (Value *)x, .axes = 2};
    for (int a = 0; a < 2; a++) {
        c.stride[a] = w->stride[a];
        c.pad[a] = w->pad[a];
        c.dilation[a] = w->dilation[a];
        at[a] = names_make(f->names, "", "at");
        const char *k = open_loop(f, i->indent + 4 * a, "k", DIM(w->kernel[a]));
        put_place_of_tap(f, &c, a, i->p[a], k, at[a], i->indent + 4 * a + 4);
    }
}

static void put_max_window(Function *f, const Node *n, const Pool *w, const Places *i)
{
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    const Value *where = n->n_out > 1 && !n->out[1]->type.is_none ? n->out[1] : NULL;
    const char *type = c_type(y->type.dtype), *at[2];
    int in = i->indent;
    Text *t = &f->body;
    const char *best = names_make(f->names, "", "best"), *v = names_make(f->names, "", "v");
    put(t, "%*s%s max = 0;\n%*sint64_t %s = -1;\n", in, "", type, in, "", best);
    open_window(f, x, w, i, at);
    put(t, "%*sconst %s %s = ", in + 8, "", type, v);
    put_element(f, i, function_pointer(f, x), i->x, at);
    put(t, ";\n%*sif (%s < 0 || %s > max", in + 8, "", best, v);
    if (dtype_is_float(y->type.dtype))
        put(t, " || %s != %s", v, v);
    put(t, ") {\n%*smax = %s;\n%*s%s = (%s * ", in + 12, "", v, in + 12, "", best, at[0]);
    function_dim(f, size_of(x, -1));
    put(t, ") + %s;\n%*s}\n", at[1], in + 8, "");
    close_loops(f, 2, in + 8);
    put(t, "%*s", in, "");
    put_element(f, i, f->name_of[y->index], i->y, i->p);
    put(t, " = max;\n%*s", in, "");
    if (where)
        put_element(f, i, f->name_of[where->index], i->y, i->p);
    put(t, where ? " = %s;\n" : "(void)%s;\n", best);
}

/* Prints "const int64_t wide": how much of the window at place p of an axis lies in x and its
 * padding.  Returns the name. */
static const char *put_extent(Function *f, const Value *x, const Pool *w, int a, const char *p,
                              int indent)
{
    const char *wide = names_make(f->names, "", "wide"), *left = names_make(f->names, "", "left");
    Text *t = &f->body;
    put(t, "%*sconst int64_t %s = ", indent, "", left);
    function_dim(f, size_of(x, a - 2));
    put(t, " + %" PRId64 " - (%s * %" PRId64 ");\n", 2 * w->pad[a], p, w->stride[a]);
    put(t, "%*sconst int64_t %s = (%s < %" PRId64 ") ? %s : %" PRId64 ";\n", indent, "", wide, left,
        w->kernel[a], left, w->kernel[a]);
    return wide;
}

/* Prints the mean of a window.  Integers are rounded toward 0. */
static void put_mean_window(Function *f, const Node *n, const Pool *w, const Places *i)
{
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    const char *type = c_type(y->type.dtype), *work = work_type(n), *at[2], *wide[2] = {0};
    bool is_float = dtype_is_float(y->type.dtype);
    int in = i->indent;
    Text *t = &f->body;
    const char *inside = names_make(f->names, "", "inside");
    put(t, "%*s%s sum = 0;\n%*sint64_t %s = 0;\n", in, "", work, in, "", inside);
    open_window(f, x, w, i, at);
    put(t, "%*ssum += (%s)", in + 8, "", work);
    put_element(f, i, function_pointer(f, x), i->x, at);
    put(t, ";\n%*s%s++;\n", in + 8, "", inside);
    close_loops(f, 2, in + 8);
    for (int a = 0; a < 2 && !w->divisor && w->counts_pad; a++)
        wide[a] = put_extent(f, x, w, a, i->p[a], in);
    put(t, "%*s", in, "");
    put_element(f, i, f->name_of[y->index], i->y, i->p);
    put(t, " = (%s > 0) ? (%s)(%ssum / ", inside, type, is_float ? "" : "(int64_t)");
    if (is_float)
        put(t, "(%s)", work);
    if (w->divisor)
        put_int(t, w->divisor);
    else if (w->counts_pad)
        put(t, "(%s * %s)", wide[0], wide[1]);
    else
        put(t, "%s", inside);
    put(t, ") : 0;\n");
}

bool emit_wide_pool(Function *f, const Node *n)
{
    Pool w;
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    if (!pool_read(n, &w) || x->type.rank < 3 || x->type.rank > 4)
        return function_refuse(f, n, "expects windows of constant geometry over images");
    Places i = open_places(f, x, y);
    if (w.is_max)
        put_max_window(f, n, &w, &i);
    else
        put_mean_window(f, n, &w, &i);
    close_loops(f, i.n, i.indent);
    return true;
}

/* -- softmax ----------------------------------------------------------------------------------- */

/* The loops over rows of x and y, and the strides along a row. */
typedef struct Row {
    const char *x, *y; /* pointers to the first elements of the row */
    Dim x_step, y_step, count;
    int indent, n_loops;
} Row;

static const char *put_row_pointer(Function *f, const Nest *nest, int which, const char *type,
                               const char *array, const char *const *index, int indent)
{
    const char *name = names_make(f->names, "", which ? "to" : "from");
    put(&f->body, "%*s%s *%s = ", indent, "", type, name);
    nest_address(f, nest, which, array, nest->rank, index);
    put(&f->body, ";\n");
    return name;
}

static Row open_rows(Function *f, const Value *x, const Value *y, int64_t axis)
{
    const char *index[MAX_LOOPS];
    Row r = {.x_step = DIM(1), .y_step = DIM(1), .count = DIM(1)};
    Nest nest = nest_new(f->e, y->type, 2);
    nest_operand(f->e, &nest, 0, value_type(x));
    nest_operand(f->e, &nest, 1, y->type);
    if (y->type.rank) {
        r.count = nest.size[axis];
        nest.size[axis] = DIM(1);
        r.x_step = nest.stride[0][axis];
        r.y_step = nest.stride[1][axis];
    }
    nest_collapse(f->e, &nest);
    r.n_loops = nest.rank;
    r.indent = nest_open(f, &nest, nest.rank, index);
    r.x = put_row_pointer(f, &nest, 0, "const double", function_pointer(f, x), index, r.indent);
    r.y = put_row_pointer(f, &nest, 1, "double", f->name_of[y->index], index, r.indent);
    return r;
}

/* Prints "*(x + (i * step))". */
static void put_item(Function *f, const char *x, const char *i, Dim step)
{
    put(&f->body, "*(%s", x);
    put_step(f, i, step);
    put(&f->body, ")");
}

static const char *open_row(Function *f, const Row *r)
{
    const char *i = open_loop(f, r->indent, "r", r->count);
    put(&f->body, "%*s", r->indent + 4, "");
    return i;
}

/* Prints a softmax.  The greatest element is subtracted, so that no exponential overflows. */
bool emit_wide_softmax(Function *f, const Node *n)
{
    int64_t axis = -1;
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    const bool is_log = n->op == OP__LOG_SOFTMAX;
    Text *t = &f->body;
    if (!arg_int(n, "dim", &axis) || y->type.dtype != ETC_F64 || !check_dtypes(f, n))
        return function_refuse(f, n, "has no C for this dtype");
    Row r = open_rows(f, x, y, axis < 0 ? axis + y->type.rank : axis);
    put(t, "%*sdouble max = -__builtin_inf(), sum = 0;\n", r.indent, "");
    const char *i = open_row(f, &r), *v = names_make(f->names, "", "v");
    put(t, "const double %s = ", v);
    put_item(f, r.x, i, r.x_step);
    put(t, ";\n%*smax = (%s > max) ? %s : max;\n%*s}\n", r.indent + 4, "", v, v, r.indent, "");
    i = open_row(f, &r);
    put(t, "sum += etc_exp_f64(");
    put_item(f, r.x, i, r.x_step);
    put(t, " - max);\n%*s}\n", r.indent, "");
    i = open_row(f, &r);
    put_item(f, r.y, i, r.y_step);
    put(t, is_log ? " = " : " = etc_exp_f64(");
    put_item(f, r.x, i, r.x_step);
    put(t, is_log ? " - max - etc_log_f64(sum);\n%*s}\n" : " - max) / sum;\n%*s}\n", r.indent, "");
    nest_close(f, r.n_loops);
    return true;
}
