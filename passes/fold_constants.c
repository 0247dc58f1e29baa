/* fold_constants.c -- evaluates nodes that depend on constants alone.
 *
 * Stage core.  First every strided state becomes contiguous, because kernels need contiguous
 * weights. Then one walk per graph evaluates nodes whose operands are all constants.  A view of a
 * constant is a second constant over the same bytes.  All folds together may not make the file
 * larger by more than PTE_LIMIT or C_LIMIT: the bytes of new constants minus those of operands that
 * only folded nodes read.  A node that dequantizes a matrix of integers is not folded. */
#include "passes/internal.h"
#include "ir/eval.h"
#include "ir/session.h"
#include <math.h>
#include <string.h>

enum { PTE_LIMIT = 1 << 16, C_LIMIT = 1 << 20 };

typedef struct Fold {
    Rewrite r;
    const Uses *uses;
    int64_t *left;  /* file growth that is still allowed */
    int64_t *spare; /* by value index: its bytes that the file loses, less those that took their
                     * place, plus 1; 0: not known yet */
    Diag quiet;     /* a kernel that refuses only means that the node stays */
} Fold;

/* -- strided states -------------------------------------------------------------------------- */

static bool plain_sizes(Type t, int64_t *dim, int64_t *stride)
{
    for (int i = 0; i < t.rank; i++) {
        if (t.dim[i].expr || t.stride[i].expr)
            return false;
        dim[i] = t.dim[i].value;
        stride[i] = t.stride[i].value;
    }
    return true;
}

/* Copies the elements under `dim` and `stride`, in row-major order; the last axis innermost. */
static void gather(uint8_t *to, const uint8_t *from, const int64_t *dim, const int64_t *stride,
                   int rank, size_t size)
{
    int64_t index[MAX_RANK] = {0}, at = 0;
    int64_t inner = rank ? dim[rank - 1] : 1, step = rank ? stride[rank - 1] : 0;
    for (;;) {
        for (int64_t i = 0; i < inner; i++, to += size)
            memcpy(to, from + (size_t)(at + i * step) * size, size);
        int k = rank - 2;
        for (; k >= 0; k--) {
            at += stride[k];
            if (++index[k] < dim[k])
                break;
            at -= stride[k] * dim[k];
            index[k] = 0;
        }
        if (k < 0)
            return;
    }
}

/* Returns a contiguous state with the same elements, or NULL if the bytes are not available. */
static State *contiguous(Program *p, State *s)
{
    int64_t dim[MAX_RANK], stride[MAX_RANK];
    size_t size = etc_dtype_size((int)s->type.dtype);
    int64_t bytes = type_bytes(s->type);
    if (!s->data || !plain_sizes(s->type, dim, stride))
        return NULL;
    uint8_t *data = arena_alloc(p->arena, (size_t)bytes + 1, 1);
    if (bytes)
        gather(data, s->data, dim, stride, s->type.rank, size);
    State *copy = program_const(p, s->name, s->fqn, type_plain(s->type), data);
    if (s->kind == ST_MUTABLE)
        copy->kind = ST_MUTABLE;
    return copy;
}

/* Replaces each state for which `with` has another, by index, in operands, results, updates and
 * their targets. */
static void replace_states(Graph *g, State *const *with, Arena *tmp)
{
    int n_states = g->n_states;
    Value **by_value;
    bool any = false;
    for (int i = 0; i < n_states; i++)
        if (with[g->state[i]->state->index])
            any = graph_state(g, with[g->state[i]->state->index]) != NULL;
    if (!any)
        return;
    by_value = NEW(tmp, Value *, g->n_values + 1);
    for (int i = 0; i < n_states; i++)
        if (with[g->state[i]->state->index])
            by_value[g->state[i]->index] = graph_state(g, with[g->state[i]->state->index]);
    for (int i = 0; i < g->n_updates; i++)
        if (by_value[g->update[i].target->index])
            g->update[i].target = by_value[g->update[i].target->index];
    graph_replace(g, by_value);
}

/* Gives the values of states the types of these, and replaces states. */
static void replace_in(Graph *g, State *const *with, Arena *tmp)
{
    for (int i = 0; i < g->n_states; i++)
        if (g->state[i]->type.stride)
            value_set_type(g->state[i], g->state[i]->state->type);
    replace_states(g, with, tmp);
}

static void make_contiguous(Program *p, Arena *tmp)
{
    int n = p->n_states;
    bool any = false, *read = states_read(p, tmp);
    State **with = NEW(tmp, State *, n + 1);
    for (int i = 0; i < n; i++) {
        State *s = p->state[i];
        if (!read[i] || !s->type.stride)
            continue;
        any = true;
        if (type_is_dense(p, s->type))
            s->type.stride = NULL;
        else
            with[i] = contiguous(p, s);
    }
    for (Graph *g = NULL; any && (g = program_next(p, g));)
        replace_in(g, with, tmp);
    p->edits += any;
}

/* -- folding ----------------------------------------------------------------------------------- */

static bool is_short(EtcDtype t)
{
    return dtype_is_int(t) || dtype_is_half(t);
}

/* Returns whether folding would turn weights of integers or halves into floats.  They stay
 * small: nodes that read them take them so or convert them at run time. */
static bool widens(const Node *n)
{
    const Type from = n->n_in ? first_operand(n)->type : TYPE_NONE, to = n->out[0]->type;
    QParams q;
    return (n->op == OP__TO_COPY || (qparams_read(n, &q) && q.undoes && q.kind != Q_TOKEN)) && is_short(from.dtype) &&
           dtype_is_float(to.dtype) &&
           etc_dtype_size((int)from.dtype) < etc_dtype_size((int)to.dtype) && from.rank > 1;
}

static bool is_foldable(const Node *n)
{
    if (!node_is_pure(n) || !n->n_out ||
        (op_has_regions(n->op) && !region_has_places(n)) ||
        node_reads_symbols(n) || widens(n))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (!value_is_known(n->in[i]))
            return false;
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i]->type.rank == SCALAR || n->out[i]->type.is_none ||
            !type_is_static(n->out[i]->type))
            return false;
    return true;
}

/* Returns whether a constant leaves the file, because all nodes that read it are folded. */
static bool is_dropped(const Fold *f, int v)
{
    bool ok = !f->uses->escapes[v];
    for (int i = f->uses->first[v]; ok && i < f->uses->first[v + 1]; i++) {
        const Node *n = f->uses->user[i];
        ok = !node_is_view(n) && is_foldable(n) && eval_can(n);
    }
    return ok;
}

/* Returns the bytes that this fold adds to the file. */
static int64_t growth(const Fold *f, const Node *n)
{
    int64_t bytes = 0;
    for (int i = 0; i < n->n_out; i++)
        bytes += type_bytes(n->out[i]->type);
    for (int i = 0; i < n->n_in; i++) {
        int v = n->in[i]->index;
        int64_t of = type_bytes(n->in[i]->type), *spare = &f->spare[v];
        if (v < f->r.first_new) {
            if (!*spare)
                *spare = 1 + (is_dropped(f, v) ? of : 0);
            of = bytes < *spare ? bytes : *spare - 1;
            of = of > 0 ? of : 0;
            *spare -= of;
        }
        bytes -= of;
    }
    return bytes;
}

static void replace_by_state(Fold *f, Node *n, int i, State *s)
{
    rewrite_value(&f->r, n->out[i], graph_state(f->r.g, s));
}

/* Folds a view: the same bytes get other sizes. */
static void fold_view(Fold *f, Node *n)
{
    State *of = arg_value(n, "self")->state;
    Type t = type_plain(n->out[0]->type);
    Program *p = f->r.g->program;
    const char *name = program_name(p, arena_numbered(p->arena, of->name, "_c", p->n_ids));
    State *s = program_state(p, of->kind, name, of->fqn, t, of->file, of->offset, of->data,
                             of->n_bytes);
    s->storage = of->storage;
    replace_by_state(f, n, 0, s);
    graph_remove(f->r.g, n);
}

/* Folds floats of 8 bits, however large they are, to floats of 32 bits.  Kernels of the official
 * runtime do not read the former. */
static bool fold_f8(Fold *f, Node *n)
{
    Program *p = f->r.g->program;
    const State *s = first_operand(n)->state;
    const EtcDtype from = s->type.dtype, to = n->out[0]->type.dtype;
    if (n->op != OP__TO_COPY || !dtype_is_float(from) || etc_dtype_size((int)from) != 1)
        return false;
    Type t = type_tensor(p, ETC_F32, s->type.rank, s->type.dim);
    const int64_t count = type_numel(t);
    float *data = arena_bytes(p->arena, (size_t)type_bytes(t) + 1);
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)f8_value(from, s->data[i]);
    Value *v = graph_const_like(f->r.g, s, "", t, data);
    v = build_cast(&f->r, n, v, to);
    return v && rewrite_node(&f->r, n, v);
}

static void fold(Fold *f, Node *n)
{
    Program *p = f->r.g->program;
    EtcTensor **in = NEW(f->r.tmp, EtcTensor *, n->n_in + 1);
    EtcTensor **out = NEW(f->r.tmp, EtcTensor *, n->n_out + 1);
    int64_t *symbol = NEW(f->r.tmp, int64_t, p->n_syms + 1);
    int64_t more = eval_can(n) ? growth(f, n) : INT64_MAX;
    if (more > *f->left)
        return;
    for (int i = 0; i < n->n_in; i++)
        in[i] = eval_constant(n->in[i], f->r.tmp);
    if (!eval_node(n, in, symbol, p->arena, out, &f->quiet))
        return;
    *f->left -= more > 0 ? more : 0;
    for (int i = 0; i < n->n_out; i++) {
        const char *stem = n->n_in ? first_operand(n)->state->name : n->out[0]->name;
        const char *fqn = n->n_in ? first_operand(n)->state->fqn : "";
        replace_by_state(f, n, i, program_const(p, stem, fqn, type_plain(n->out[i]->type),
                                                out[i]->data));
    }
    graph_remove(f->r.g, n);
}

static void fold_graph(Graph *g, int64_t *left, Arena *tmp, Diag *d)
{
    Fold f = {.r = rewrite_start(g, tmp, d), .left = left};
    Uses uses = graph_uses(g, tmp);
    f.uses = &uses;
    f.spare = NEW(tmp, int64_t, g->n_values);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&f.r, n);
        if (region_has_places(n)) /* operands that are constants now become constants inside */
            n = sink_operands(&f.r, n);
        for (Graph *inner = NULL; (inner = region_next(n, inner));)
            fold_graph(inner, left, tmp, d);
        if (!is_foldable(n))
            continue;
        if (node_is_view(n) && n->n_in == 1)
            fold_view(&f, n);
        else if (n->n_in != 1 || !fold_f8(&f, n))
            fold(&f, n);
    }
    rewrite_finish(&f.r);
}

bool pass_fold_constants(Program *p, Arena *tmp, Diag *d)
{
    int64_t left = p->session->tail->has_groups ? C_LIMIT : PTE_LIMIT;
    make_contiguous(p, tmp);
    for (int i = 0; i < p->n_methods; i++)
        fold_graph(p->method[i], &left, tmp, d);
    return true;
}
