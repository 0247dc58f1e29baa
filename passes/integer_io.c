/* integer_io.c -- makes inputs and outputs of methods integers, for --io.
 *
 * Stage core, after quantize.  Linear in nodes and uses.
 *
 *   input x, quantize(x)               ==>  an input of integers; others read dequantize(x)
 *   output dequantize(q)               ==>  q
 *   output softmax(...), sigmoid(...)  ==>  quantize(...) by 1/256
 *
 * If --io asks for int8 and the model has uint8, or the other way, a dequantize and a quantize
 * convert between them.  Inputs and outputs that are not f32 stay as they are.  An f32 one
 * without a known range stays too, with a warning; it is an error if none can be changed. */
#include "passes/internal.h"
#include "ir/session.h"

typedef struct Ports {
    Graph *g;
    Uses uses;
    EtcDtype to; /* i8 or u8 */
    Diag *diag;
} Ports;

static bool is_per_tensor(const Node *n, bool undoes, QParams *q)
{
    return n && qparams_read(n, q) && q->undoes == undoes && q->kind == Q_TENSOR && !q->scales &&
           (q->dtype == ETC_I8 || q->dtype == ETC_U8) && q->scale > 0;
}

/* Returns qparams of the same real numbers for integers with the other sign. */
static QParams turned(QParams q, EtcDtype to)
{
    int64_t by = q.dtype == to ? 0 : to == ETC_U8 ? 128 : -128;
    q.zero += by;
    q.lo += by;
    q.hi += by;
    q.dtype = to;
    return q;
}

/* Builds a quantize or dequantize of v before `at`, or at the end of the graph if `at` is NULL. */
static Value *scaled(const Ports *p, Node *at, bool undoes, Value *v, QParams q)
{
    q.undoes = undoes;
    return qparams_build(p->g, at, at ? at->loc : v->def ? v->def->loc : (Loc){0}, v, &q, p->diag);
}

static void tell(const Ports *p, bool is_output, int i, QParams q)
{
    Session *s = p->g->program->session;
    q = turned(q, p->to);
    PortScale port = {p->g, i, is_output, q.scale, q.zero};
    PUSH(s->arena, s->port, s->n_ports, port);
}

/* -- inputs ------------------------------------------------------------------------------------ */

/* Finds the qparams of the first quantize that reads v or a value with moved elements of v.
 * Returns false if there is none. */
static bool find_range(const Ports *p, const Value *v, QParams *q)
{
    for (int i = p->uses.first[v->index]; i < p->uses.first[v->index + 1]; i++) {
        const Node *n = p->uses.user[i];
        if (is_per_tensor(n, false, q) ||
            (node_keeps_floats(n) && find_range(p, n->out[0], q)))
            return true;
    }
    return false;
}

/* Makes readers of the floats read the dequantized integers.  A quantize with the same qparams is
 * replaced by the integers themselves. */
static bool replace_reads(const Ports *p, Value *v, const QParams *q)
{
    const QParams own = turned(*q, p->to);
    QParams other;
    Type t = v->type;
    t.dtype = p->to;
    value_set_type(v, t);
    Value *floats = scaled(p, p->g->first, true, v, own);
    Value *bytes = own.dtype == q->dtype || !floats
                       ? v
                       : scaled(p, floats->def->next, false, floats, *q);
    Value **with = NEW(p->g->program->arena, Value *, p->g->n_values + 1);
    for (int i = p->uses.first[v->index]; floats && bytes && i < p->uses.first[v->index + 1]; i++) {
        Node *n = p->uses.user[i];
        if (is_per_tensor(n, false, &other) && qparams_equal(&other, q))
            with[n->out[0]->index] = bytes;
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k] == v)
                node_set_in(n, k, floats);
    }
    graph_replace(p->g, with);
    return floats && bytes;
}

static bool take_input(const Ports *p, int i)
{
    Value *v = p->g->in[i];
    QParams q;
    if (v->type.dtype != ETC_F32 || v->type.rank == SCALAR)
        return true;
    if (p->uses.escapes[v->index] || !find_range(p, v, &q)) {
        diag_warn(p->diag, (Loc){.file = p->g->program->name},
                  "--io: input '%s' stays float: no node quantizes it", v->name);
        return true;
    }
    tell(p, false, i, q);
    return replace_reads(p, v, &q);
}

/* -- outputs ----------------------------------------------------------------------------------- */

static bool is_share(const Node *n)
{
    return n && (n->op == OP__SOFTMAX || n->op == OP_SIGMOID);
}

static bool give_output(const Ports *p, int i)
{
    Value *v = p->g->out[i];
    const Node *n = v->def;
    QParams q;
    if (v->type.dtype != ETC_F32 || v->type.rank == SCALAR)
        return true;
    Value *now = NULL;
    if (is_per_tensor(n, true, &q) && q.dtype == p->to) {
        now = q.x;
    } else if (is_share(n) || is_per_tensor(n, true, &q)) {
        if (is_share(n))
            q = (QParams){.scale = 1.0 / 256, .zero = 0, .lo = 0, .hi = 255, .dtype = ETC_U8};
        now = scaled(p, NULL, false, v, turned(q, p->to));
    } else {
        diag_warn(p->diag, n ? n->loc : (Loc){.file = p->g->program->name},
                  "--io: output %d stays float: its range is not known", i);
        return true;
    }
    if (!now)
        return false;
    if (now->def) {
        const char *name = v->name; /* callers know it by this name */
        v->name = now->name;
        now->name = name;
    }
    tell(p, true, i, q);
    graph_set_output(p->g, i, now);
    return true;
}

bool pass_integer_io(Program *program, Arena *tmp, Diag *d)
{
    const Session *s = program->session;
    bool ok = true;
    for (int m = 0; s->has_io && m < program->n_methods; m++) {
        Graph *g = program->method[m];
        const Ports p = {g, graph_uses(g, tmp), s->io, d};
        for (int i = 0; i < g->n_in; i++)
            ok = take_input(&p, i) && ok;
        for (int i = 0; i < g->n_out; i++)
            ok = give_output(&p, i) && ok;
    }
    if (ok && s->has_io && !s->n_ports)
        return diag_error(d, (Loc){.file = program->name},
                          "--io: no input and no output is quantized: give a --recipe");
    return ok;
}
