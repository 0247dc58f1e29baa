/* onnx_about.c -- reads the description of an ONNX file, whether or not it can be imported. */
#include "compiler/import/onnx.h"
#include <string.h>

typedef struct About {
    Onnx o;
    OnnxAbout *to;
    Table seen; /* operators by name, constants, files */
} About;

static bool take_text(About *b, ProtobufCBinaryData text, const char **out)
{
    return (*out = onnx_text(&b->o, text)) != NULL;
}

/* -- nodes ------------------------------------------------------------------------------------- */

static bool take_graph(About *b, const Onnx__Graph *g);

/* Counts a node of an operator.  A function of the file counts as supported; the operators in it
 * are counted too. */
static OnnxOperator *operator_of(About *b, const char *name, bool is_function)
{
    OnnxAbout *to = b->to;
    TableItem *at = table_at_text(&b->seen, name);
    if (!at->number) {
        OnnxOperator op = {.name = name, 
                           .is_supported = is_function || onnx_row(name, b->o.opset)};
        PUSH(b->o.program->arena, to->op, to->n_ops, op);
        at->number = to->n_ops;
    }
    return &to->op[at->number - 1];
}

static bool take_file(About *b, const Onnx__Tensor *t)
{
    Arena *a = b->o.program->arena;
    for (size_t i = 0; i < t->n_external_data; i++) {
        const char *key, *name;
        const Onnx__Entry *e = t->external_data[i];
        if (!take_text(b, e->key, &key) || !take_text(b, e->value, &name))
            return false;
        TableItem *at = table_at_text(&b->seen, arena_printf(a, "/%s", name)); /* no operator has
                                                                                * such a name */
        if (!strcmp(key, "location") && !at->number++)
            PUSH(a, b->to->file, b->to->n_files, name);
    }
    return true;
}

static bool take_node(About *b, const Onnx__Node *n)
{
    const char *op, *domain;
    if (!take_text(b, n->op_type, &op) || !take_text(b, n->domain, &domain))
        return false;
    bool is_plain = !*domain || !strcmp(domain, "ai.onnx");
    op = is_plain ? op : arena_printf(b->o.program->arena, "%s::%s", domain, op);
    operator_of(b, op, onnx_function(&b->o, n))->nodes++;
    for (size_t i = 0; i < n->n_attribute; i++) {
        const Onnx__Attribute *at = n->attribute[i];
        if ((at->g && !take_graph(b, at->g)) || (at->t && !take_file(b, at->t)))
            return false;
    }
    return true;
}

static bool take_graph(About *b, const Onnx__Graph *g)
{
    bool ok = true;
    for (size_t i = 0; ok && i < g->n_initializer; i++)
        ok = take_file(b, g->initializer[i]);
    for (size_t i = 0; ok && i < g->n_node; i++)
        ok = take_node(b, g->node[i]);
    return ok;
}

/* -- inputs and outputs ------------------------------------------------------------------------ */

static bool take_dim(About *b, const Onnx__Dimension *d, OnnxSize *out)
{
    *out = (OnnxSize){.value = d->has_value && d->value >= 0 ? d->value : -1};
    return !d->has_param || take_text(b, d->param, &out->name);
}

static bool take_end(About *b, const Onnx__ValueInfo *v, OnnxEnd *out)
{
    const Onnx__TensorType *t = v->type ? v->type->tensor_type : NULL;
    EtcDtype dtype;
    *out = (OnnxEnd){.rank = t && t->shape ? (int)t->shape->n_dim : -1};
    if (t && onnx_dtype(t->elem_type, &dtype))
        out->dtype = dtype_name(dtype);
    out->size = NEW(b->o.program->arena, OnnxSize, out->rank + 1);
    for (int i = 0; i < out->rank; i++)
        if (!take_dim(b, t->shape->dim[i], &out->size[i]))
            return false;
    return take_text(b, v->name, &out->name);
}

static bool take_ends(About *b, Onnx__ValueInfo *const *v, size_t n, OnnxEnd **end, int *n_ends)
{
    for (size_t i = 0; i < n; i++) {
        OnnxEnd e;
        if (!take_end(b, v[i], &e))
            return false;
        if (!table_find_text(&b->o.taken, e.name)) /* an initializer is no input */
            PUSH(b->o.program->arena, *end, *n_ends, e);
    }
    return true;
}

static bool take_names(About *b, const Onnx__Graph *g)
{
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name;
        if (!take_text(b, g->initializer[i]->name, &name))
            return false;
        table_at_text(&b->o.taken, name)->ptr = b;
    }
    return true;
}

/* -- the model --------------------------------------------------------------------------------- */

static bool take_opsets(About *b, const Onnx__Model *m)
{
    for (size_t i = 0; i < m->n_opset_import; i++) {
        OnnxPair s = {.number = m->opset_import[i]->version};
        if (!take_text(b, m->opset_import[i]->domain, &s.key))
            return false;
        s.key = *s.key ? s.key : "ai.onnx";
        if (!strcmp(s.key, "ai.onnx"))
            b->o.opset = s.number;
        PUSH(b->o.program->arena, b->to->opset, b->to->n_opsets, s);
    }
    return true;
}

static bool take_metadata(About *b, const Onnx__Model *m)
{
    for (size_t i = 0; i < m->n_metadata_props; i++) {
        OnnxPair s = {0};
        if (!take_text(b, m->metadata_props[i]->key, &s.key) ||
            !take_text(b, m->metadata_props[i]->value, &s.value))
            return false;
        PUSH(b->o.program->arena, b->to->metadata, b->to->n_metadata, s);
    }
    return true;
}

static bool take_function(About *b, const Onnx__Function *f)
{
    int64_t outer = b->o.opset;
    bool ok = true;
    b->o.opset = onnx_opset_of(&b->o, f);
    for (size_t i = 0; ok && i < f->n_node; i++)
        ok = take_node(b, f->node[i]);
    b->o.opset = outer;
    return ok;
}

static bool take_model(About *b, const Onnx__Model *m)
{
    OnnxAbout *to = b->to;
    const Onnx__Graph *g = m->graph;
    bool ok = g || diag_error(b->o.diag, b->o.loc, "has no graph");
    to->ir_version = m->ir_version;
    ok = ok && take_text(b, m->producer_name, &to->producer) &&
         take_text(b, m->producer_version, &to->producer_version) &&
         take_metadata(b, m) && take_graph(b, g) &&
         take_ends(b, g->output, g->n_output, &to->out, &to->n_out) && take_names(b, g) &&
         take_ends(b, g->input, g->n_input, &to->in, &to->n_in);
    for (size_t i = 0; ok && i < m->n_functions; i++)
        ok = take_function(b, m->functions[i]);
    return ok;
}

bool onnx_about(Arena *a, Files *files, const char *path, OnnxAbout *out, Diag *d)
{
    Loc loc = {.file = path};
    uint8_t *data;
    size_t n;
    *out = (OnnxAbout){0};
    if (!file_load(files, a, path, &data, &n, d))
        return false;
    About b = {.o = {.program = program_new(a, "about"), .tmp = a, .diag = d, .loc = loc}, .to = out};
    b.seen = b.o.taken = b.o.functions = (Table){.arena = a};
    b.o.model = onnx_unpack(a, loc, data, n, d);
    return b.o.model && take_opsets(&b, b.o.model) && onnx_functions(&b.o) && take_model(&b, b.o.model);
}
