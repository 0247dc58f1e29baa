/* c_part.c -- splits a node into parts that NAME_run may run at once (--parallel).
 *
 * A part computes some neighbouring indices of result 0 along one axis.  access_range says which
 * indices of the operands it needs.  While a node is printed, the size of the cut axes is a symbol,
 * the number of indices of the part.  So the emitter of each operator prints a function for any part,
 * and no emitter knows of parts, except where it reads arrays of constants in an order of its own.
 * The bits do not depend on the parts, because kernels compute each element in one order. */
#include "emit/c_emit.h"
#include <inttypes.h>
#include <string.h>

/* Costs are counted in elements that are read or written. */
static const double LEAST_WORK = 1 << 14; /* a node with less work is not split */
static const double MOVE = 4;             /* the cost to move an element without vectors */
static const double MACS_OF_ELEMENT = 4;  /* how many multiply-adds take as long as one element */
static const double FAR = 5;              /* the cost to read what another thread has computed */
static const double STORED = 2;           /* the cost to read an element of a constant */
static const double EDGE = 1500;          /* the cost of a cache line that two threads write */
static const double NO_COST = 1 << 30;    /* it is higher than any cost */

enum { LINE = 16 }; /* the number of floats in a cache line */

void take_part_names(const Emit *e, NameSet *names)
{
    static const char *const ours[] = {"call", "first", "rows",    "in",
                                       "out",  "size",  "workers", "threads"};
    for (size_t i = 0; e->o->parallel && i < sizeof ours / sizeof *ours; i++)
        names_take(names, ours[i]);
}

/* Makes the symbol for the rows of a part.  The program does not count it, so it is no parameter of
 * NAME_run. */
void parts_start(Emit *e)
{
    Program *p = e->method->program;
    e->rows_name = "rows";
    e->rows = program_symbol(p, "rows of a part", 1, INT32_MAX);
    p->n_syms--;
}

/* -- the indices that a part needs ------------------------------------------------------------- */

/* Returns whether a node that reads a constant takes the sizes from its result, and the order of the
 * elements from the constant's whole type. */
static bool keeps_type(const Node *n, const Value *v)
{
    Access a = node_access(n);
    return value_is_fixed(v) &&
           (a == ACCESS_POINTWISE || a == ACCESS_PRODUCT || a == ACCESS_WINDOW);
}

/* Notes what is needed of a value.  Returns false if two nodes need different things, unless one
 * needs rows of images and the other the rows around them. */
static bool need(Emit *e, Parts *p, Value *v, int axis, bool keeps)
{
    Dim stride[MAX_RANK];
    const CutValue *known = part_find(p, v);
    CutValue *to = &p->item[known ? known - p->item : p->n];
    keeps |= axis < 0;
    if (known && to->axis == 2 && axis == AXIS_AROUND) {
        to->axis = axis;
        to->keeps = true;
    }
    if (known || p->n == MAX_CUT)
        return known && to->axis == axis && to->keeps == keeps;
    p->n++;
    *to = (CutValue){.v = v, .axis = axis, .whole = v->type, .keeps = keeps};
    if (axis >= 0) {
        type_strides(e, value_type(v), stride);
        to->stride = stride[axis];
    }
    return true;
}

/* Returns the type of the indices of a part.  It has the strides of the whole tensor. */
static Type type_of_part(Emit *e, const Parts *p, Type t, int axis)
{
    Dim *dim = arena_alloc(e->a, 2 * (size_t)t.rank, sizeof *dim), *stride = dim + t.rank;
    assert(axis >= 0 && axis < t.rank);
    type_strides(e, t, stride);
    memcpy(dim, t.dim, (size_t)t.rank * sizeof *dim);
    dim[axis] = dim_symbol(e->method->program, e->rows);
    for (int i = 1; i <= p->merged; i++)
        dim[axis - i] = DIM(1);
    t.dim = dim;
    t.stride = stride;
    return t;
}

/* Returns whether the kernel of a node takes tensors without gaps only. */
static bool is_dense_only(const Node *n)
{
    Access a = node_access(n);
    return a == ACCESS_VIEW || a == ACCESS_ALONG || a == ACCESS_PRODUCT || a == ACCESS_WINDOW ||
           a == ACCESS_NORM;
}

/* Returns whether the part is some columns of a product with a weight in blocks. */
static bool has_blocks(Emit *e, const Node *n, int axis)
{
    Product p;
    const Value *y = n->out[0];
    return axis == y->type.rank - 1 && y->type.dtype == ETC_F32 && product_read(n, &p) &&
           !p.is_batch && p.alpha == 1 && p.beta == 1 && type_is_static(p.w->type) &&
           value_is_fixed(p.w) &&
           weight_is_blocked(e, p.w, p.w->type.dim[p.is_rows ? 0 : 1].value);
}

/* Returns whether the part is some rows of the images of a convolution, whose core takes these. */
static bool has_rows(Emit *e, const Node *n, int axis)
{
    Conv c;
    return axis == 2 && n->op == OP_CONVOLUTION && conv_read(n, &c) &&
           c_type_is_dense(e, c.x->type) && !winograd_rows(e, &c, n->out[0]) &&
           !weight_is_bfloat(e, c.w);
}

static bool is_first(const Value *v, int axis)
{
    bool yes = true;
    for (int i = 0; i < axis; i++)
        yes = yes && dim_is_one(v->type.dim[i]);
    return yes;
}

/* Returns whether the code of a node can take the indices of a part of v.  The strides of a
 * constant follow from its sizes.  They stay right if the first axis with several indices is cut,
 * and no other. */
static bool fits(Emit *e, const Parts *p, const Node *n, const Value *v, int axis)
{
    if (axis < 0 || keeps_type(n, v))
        return true;
    if (value_is_fixed(v))
        return is_first(v, axis) && !is_dense_only(n) && !p->merged;
    const bool is_dense = c_type_is_dense(e, v->type);
    if (p->merged > axis || (p->merged && !is_dense))
        return false;
    return !is_dense_only(n) ||
           (is_dense && v == n->out[0] && (has_blocks(e, n, axis) || has_rows(e, n, axis))) ||
           c_type_is_dense(e, type_of_part(e, p, v->type, axis));
}

/* Returns whether a kernel computes the dtype of a node.  For other dtypes a plain loop is printed.
 */
static bool has_kernel(const Node *n)
{
    EtcDtype t = n->out[0]->type.dtype;
    Access a = node_access(n);
    bool is_byte = (t == ETC_I8 || t == ETC_U8) && a != ACCESS_ALONG;
    return node_moves(n) || node_is_pointwise(n) || t == ETC_F32 || is_byte;
}

/* Returns the number of which the indices of a part should be a multiple: the size of a block for
 * output channels and columns of products, that of a vector for other neighbouring elements, else
 * 1.  Sums have no vectors across indices. */
static int grain_of(const Node *n, const CutValue *y)
{
    Conv c;
    const Access a = node_access(n);
    if (y->axis == 1 && conv_read(n, &c) && c.groups == 1)
        return TOGETHER;
    if (!dim_is_one(y->stride) || a == ACCESS_ALONG)
        return 1;
    return a == ACCESS_PRODUCT ? TOGETHER : TOGETHER / 2;
}

/* Returns access_range(n, i, axis) if the merged axes are axes of the operand in the same order,
 * else AXIS_NONE. */
static int range_of(const Parts *p, const Node *n, int i, int axis)
{
    const int k = access_range(n, i, axis);
    for (int j = 1; j <= p->merged; j++)
        if (access_range(n, i, axis - j) != (k < 0 ? k : k - j))
            return AXIS_NONE;
    return k;
}

/* Notes what a node needs for the indices of its result that were noted before.  A stream computes
 * those rows of a tensor between two convolutions that the part reads, so it may read any rows. */
static bool need_operands(Emit *e, Parts *p, const Node *n)
{
    const CutValue *y = part_find(p, n->out[0]);
    if (!y || (y->axis < 0 && !p->is_stream) || !has_kernel(n) || !fits(e, p, n, y->v, y->axis))
        return false;
    const int axis = y->axis, grain = grain_of(n, y);
    for (int i = 1; i < n->n_out; i++)
        if (!n->out[i]->type.is_none)
            return false;
    for (int i = 0; i < n->n_in; i++) {
        Value *v = n->in[i];
        const int inner = value_is_fixed(v) ? AXIS_WHOLE : AXIS_AROUND;
        const int k = axis >= 0 ? range_of(p, n, i, axis) : inner;
        if (k == AXIS_NONE || !fits(e, p, n, v, k) || !need(e, p, v, k, keeps_type(n, v)))
            return false;
    }
    p->grain = grain > p->grain ? grain : p->grain;
    return true;
}

/* Returns whether a body is a stream: several of its nodes are not pointwise. */
static bool is_stream(const Emit *e, const Node *last)
{
    int anchors = 0;
    for (const Node *n = last; n && n->graph != e->graph; n = n->prev)
        anchors += !node_is_pointwise(n);
    return anchors > 1;
}

/* Notes what a part along this axis of the result needs, with `merged` axes before it.  Returns
 * false if that is unknown. */
static bool cut_along(Emit *e, Parts *p, const Node *last, Value *y, int axis, int merged)
{
    *p = (Parts){.rows = c_dims_product(e, y->type.dim + axis - merged, merged + 1),
                 .merged = merged, .grain = 1, .is_stream = is_stream(e, last)};
    bool ok = axis == 2 || !p->is_stream;
    e->rows->hi = dim_upper(p->rows);
    need(e, p, y, axis, false);
    for (const Node *n = last; n && ok; n = n->graph == e->graph ? NULL : n->prev)
        ok = need_operands(e, p, n);
    return ok;
}

/* -- choosing the axis ------------------------------------------------------------------------- */

/* Returns the time that a node takes, in elements that are read or written. */
static double work_of(const Emit *e, const Node *n, const Graph *body)
{
    double all = (double)e->macs / MACS_OF_ELEMENT;
    for (int i = 0; i < n->n_in + n->n_out; i++)
        all += (double)type_numel((i < n->n_in ? n->in[i] : n->out[i - n->n_in])->type);
    for (const Node *m = body ? body->first : n; m; m = body ? m->next : NULL) {
        for (int i = 0; body && i < m->n_in; i++)
            all += value_is_fixed(m->in[i]) ? (double)type_numel(m->in[i]->type) : 0;
        if (node_moves(m) && !node_is_pointwise(m))
            all *= MOVE;
    }
    return all;
}

/* Returns the share of the largest part in the work, with this many rows. */
static double largest_share(const Emit *e, const Parts *p, int64_t rows)
{
    const int64_t n = e->o->parallel, pieces = rows / p->grain + (rows % p->grain != 0);
    const int64_t most = (pieces / n + (pieces % n != 0)) * p->grain;
    return most < rows ? (double)most / (double)rows : 1;
}

/* Returns the axis of a value that the parts cut.  If axes were merged, this is the first of them
 * with a size above 1. */
static int axis_cut(const Parts *p, const CutValue *c)
{
    int axis = c->axis - p->merged;
    if (c->axis < 0)
        return c->axis == AXIS_AROUND ? 2 : c->axis;
    while (axis < c->axis && dim_is_one(c->whole.dim[axis]))
        axis++;
    return axis;
}

/* Returns the operand of a group that is the input v of its body; NULL: the group computes v. */
static const Value *outer_of(const Node *n, const Graph *body, const Value *v)
{
    for (int i = 0; body && i < body->n_in; i++)
        if (body->in[i] == v)
            return arg_list_value(n, "args", i);
    return v->def && (body || v->def == n) ? NULL : v;
}

/* Returns the time that a thread takes to read constants, inputs, and values that another thread
 * has in its cache. */
static double read_time(const Emit *e, const Parts *p, const Node *n, const Graph *body,
                        const CutValue *c)
{
    const Value *outer = outer_of(n, body, c->v);
    const int axis = axis_cut(p, c);
    const double reads = (double)type_numel(c->whole) / (axis < 0 ? 1 : e->o->parallel);
    if (!outer)
        return 0;
    if (!outer->def)
        return STORED * reads;
    return e->made_along[outer->index] == axis + 1 ? 0 : FAR * reads;
}

/* Returns how many runs of `floats` floats fill whole cache lines: a power of two, at most LINE. */
static int times_of_lines(Dim floats)
{
    int times = 1;
    while (times < LINE && (floats.expr || floats.value * times % LINE))
        times *= 2;
    return times;
}

/* Returns the time that threads lose by false sharing, because parts of a result meet within a
 * cache line: once for each index of the axes before the cut one. */
static double edge_time(Emit *e, const Parts *p)
{
    const CutValue *y = &p->item[0];
    const Dim plane = dim_mul(e->method->program, p->rows, y->stride);
    const double edges = (double)type_numel(y->whole) / (double)dim_upper(plane);
    const bool meets = times_of_lines(plane) > 1 || p->grain < times_of_lines(y->stride);
    return meets ? EDGE * edges : 0;
}

/* Returns the time of the largest part as a share of the time of the whole, for the least number of
 * rows; NO_COST if even the largest number of rows is one part. */
static double cost_of(Emit *e, const Parts *p, const Node *n, const Graph *body, double work)
{
    int64_t least, most;
    double more = edge_time(e, p);
    dim_range(p->rows, &least, &most);
    for (int i = 0; i < p->n; i++)
        more += read_time(e, p, n, body, &p->item[i]);
    return largest_share(e, p, most) < 1 ? largest_share(e, p, least) + more / work : NO_COST;
}

/* Chooses the axis along which the parts take the least time.  If the columns of a product take as
 * long as another axis, it chooses the columns. */
static bool choose(Emit *e, Parts *best, const Node *n, const Graph *body, double work)
{
    Value *y = body ? body->out[0] : n->out[0];
    best->cost = NO_COST;
    for (int axis = y->type.rank - 1; axis >= 0; axis--)
        for (int merged = 0; merged <= axis; merged += axis ? axis : 1) {
            Parts p;
            bool ok = cut_along(e, &p, body ? body->last : n, y, axis, merged);
            for (int i = 0, grain; ok && i < 2; i++) {
                p.cost = cost_of(e, &p, n, body, work);
                if (p.cost < best->cost)
                    *best = p;
                grain = times_of_lines(p.item[0].stride);
                p.grain = grain > p.grain ? grain : p.grain;
            }
        }
    return best->cost < NO_COST;
}

void parts_pass(Emit *e, const Node *n)
{
    const int axis = e->made_along[first_operand(n)->index] - 1;
    const bool is_same = axis < 0 || n->op == OP_CAT;
    e->made_along[n->out[0]->index] = 1 + (is_same ? axis : access_axis(n, axis));
}

const Parts *parts_open(Emit *e, const Node *n, const Graph *body)
{
    double work;
    if (!e->o->parallel || (body && body->n_out != 1) || n->out[0]->type.rank < 1 ||
        (work = work_of(e, n, body)) < LEAST_WORK)
        return NULL;
    Parts *p = NEW(e->a, Parts, 1);
    if (!choose(e, p, n, body, work))
        return NULL;
    e->made_along[n->out[0]->index] = 1 + axis_cut(p, &p->item[0]);
    e->rows->hi = dim_upper(p->rows);
    for (int i = 0; i < p->n; i++)
        if (!p->item[i].keeps)
            p->item[i].v->type = type_of_part(e, p, p->item[i].whole, p->item[i].axis);
    return p;
}

void parts_close(const Parts *p)
{
    for (int i = 0; p && i < p->n; i++)
        p->item[i].v->type = p->item[i].whole;
}

/* -- printing ----------------------------------------------------------------------------------- */

const char *part_rows_of(Function *f, const Value *v, Type *t)
{
    const char *all = function_pointer(f, v);
    if (part_axis(f, v) != AXIS_AROUND)
        return all;
    *t = type_of_part(f->e, f->parts, *t, 2);
    return moved_to_first(f, all, t->stride[2]);
}

static void put_port(Function *f, Text *t, const Value *v, bool is_out, int i)
{
    const CutValue *c = part_find(f->parts, v);
    const char *type = c_type(v->type.dtype), *is_const = is_out ? "" : "const ";
    put(t, "    %s%s *%s = (%s%s *)call->%s[%d]", is_const, type, f->name_of[v->index], is_const, type,
        is_out ? "out" : "in", i);
    if (c && c->axis >= 0) {
        put(t, " + ");
        put_first(f->e, t, c->stride);
    }
    put(t, ";\n");
}

static void note_strides(Function *f)
{
    for (int i = 0; i < f->parts->n; i++)
        if (f->parts->item[i].axis >= 0)
            function_note(f, f->parts->item[i].stride);
}

void put_part_signature(Function *f, const Ports *p, const char *name)
{
    Text *t = &f->e->functions;
    int n = 0;
    note_strides(f);
    put(t, "static void %s(const EtcCall *call, int64_t first, int64_t rows, void *work)\n{\n", name);
    for (int i = 0; i < f->e->p->n_syms; i++)
        if (f->uses_symbol[i])
            put(t, "    const int64_t %s = call->size[%d];\n", f->e->symbol[i], n++);
    for (int i = 0; i < p->n_in; i++)
        put_port(f, t, p->in[i], false, i);
    for (int i = 0; i < p->n_out; i++)
        put_port(f, t, p->out[i], true, i);
    if (!f->uses_work)
        put(t, "    (void)work;\n");
    if (!f->uses_symbol[f->e->rows->index])
        put(t, "    (void)rows;\n");
}

static void put_pointers(Emit *e, const char *type, const char *name, const Value *const *v, int n,
                         int indent)
{
    if (n)
        put(&e->run, "%*s%s%s[] = {", indent, "", type, name);
    for (int i = 0; i < n; i++) {
        put(&e->run, i ? ", " : "");
        put_pointer(e, &e->run, v[i]);
    }
    put(&e->run, n ? "};\n" : "");
}

static int put_sizes(Emit *e, const Function *f, int indent)
{
    int n = 0;
    for (int i = 0; i < e->p->n_syms; i++) {
        if (!f->uses_symbol[i])
            continue;
        if (!n)
            put(&e->run, "%*sconst int64_t size[] = {", indent, "");
        put(&e->run, "%s%s", n++ ? ", " : "", e->symbol[i]);
    }
    put(&e->run, n ? "};\n" : "");
    return n;
}

void put_part_call(Emit *e, const Function *f, const Ports *p, const char *name, int indent)
{
    e->uses_parts = true;
    put(&e->run, "%*s{\n", indent, "");
    put_pointers(e, "const void *const ", "in", p->outer_in, p->n_in, indent + 4);
    put_pointers(e, "void *const ", "out", p->outer_out, p->n_out, indent + 4);
    int n = put_sizes(e, f, indent + 4);
    put(&e->run, "%*sconst EtcCall call = {%s, %s, %s, %s, ", indent + 4, "", name,
        p->n_in ? "in" : "NULL", p->n_out ? "out" : "NULL", n ? "size" : "NULL");
    put_dim(e, &e->run, f->parts->rows);
    put(&e->run, ", %d};\n%*setc_split(&workers, &call);\n%*s}\n", f->parts->grain, indent + 4, "",
        indent, "");
}

/* -- the interface of NAME_run ----------------------------------------------------------------- */

void put_threads_type(const Emit *e, Text *t)
{
    put(t,
        "/* Runs parts of the work at once.  parallel_for calls part(argument, i) for each i from 0 to\n"
        " * n - 1, in any order and on any thread, and returns when all of these calls have. */\n"
        "typedef struct %s_threads {\n"
        "    int32_t n;  /* the parts of a piece of work: 1 to %d */\n"
        "    void *pool; /* for parallel_for */\n"
        "    void (*parallel_for)(void *pool, void (*part)(void *argument, int32_t i), void *argument,"
        "\n                         int32_t n);\n} %s_threads;\n\n", e->file, e->o->parallel, e->file);
    put(t,
        "/* A pool of POSIX threads.  The first function starts n - 1 threads, which wait for work, and\n"
        " * sets *threads.  It returns 0, or -1 and starts none.  The pool runs one call at a time.\n"
        " * Both functions are in %s_threads.c. */\n"
        "int %s_threads_start(%s_threads *threads, int32_t n);\n"
        "void %s_threads_stop(%s_threads *threads);\n\n", e->file, e->file, e->file, e->file, e->file);
}

void put_workers(const Emit *e, Text *t)
{
    if (!e->uses_parts) {
        put(t, "    (void)threads;\n");
        return;
    }
    put(t, "    EtcWorkers workers = {NULL, NULL, 1, %s, %" PRId64 "};\n"
        "    if ((threads != NULL) && (threads->parallel_for != NULL)) {\n"
        "        workers.run = threads->parallel_for;\n"
        "        workers.pool = threads->pool;\n"
        "        workers.n = etc_min_i32(etc_max_i32(threads->n, 1), %d);\n    }\n",
        e->work ? "(uint8_t *)work" : "NULL",
        e->work ? round_up(e->work_bytes + e->lines_bytes, WORK_ALIGN) : 0,
        e->o->parallel);
}

void emit_threads(const Emit *e, CFiles *out)
{
    Text t = {.a = e->a}, wrapped = {.a = e->a};
    const char *file = e->file;
    put(&t, "/* SPDX-License-Identifier: 0BSD */\n"
        "/* %s_threads.c -- a pool of POSIX threads for %s.h.  Optional. */\n", file, file);
    put_include(e, out, &t);
    put_program(&t, "threads_program.h");
    put(&t, "int %s_threads_start(%s_threads *threads, int32_t n)\n{\n"
        "    threads->n = n;\n    threads->parallel_for = pool_run;\n    threads->pool = pool_start(n);\n"
        "    return (threads->pool != NULL) ? 0 : -1;\n}\n\n"
        "void %s_threads_stop(%s_threads *threads)\n{\n    if (threads->pool != NULL) {\n"
        "        pool_stop((Pool *)threads->pool);\n    }\n    threads->n = 1;\n"
        "    threads->pool = NULL;\n    threads->parallel_for = NULL;\n}\n",
        file, file, file, file);
    put_wrapped(&wrapped, t.s);
    c_file(e->a, out, "_threads.c", &wrapped);
}
