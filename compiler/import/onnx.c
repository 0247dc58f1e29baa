/* onnx.c -- reads an ONNX file as a Program: its inputs, its nodes in their order, its outputs.
 *
 * The importer uses the types that the file declares for inputs only; all others come from the
 * infer rules of the operators.  A constant becomes a state when a node reads it as a tensor; where
 * it is an argument (a size, an axis, a factor) it stays a list, see onnx_fold.c. */
#include "compiler/import/onnx.h"
#include <inttypes.h>
#include <string.h>

enum { OLDEST_OPSET = 6, NEWEST_OPSET = 28, NEWEST_IR = 14 };

/* -- outputs ----------------------------------------------------------------------------------- */

/* Warns if the file declares another shape for an output than its nodes give.  --dim may override
 * sizes of inputs, so nothing is expected of the outputs then. */
static void compare_shape(const Onnx *o, Loc loc, const Onnx__ValueInfo *out, Type is)
{
    const Onnx__Shape *declared = out->type && out->type->tensor_type ? out->type->tensor_type->shape : NULL;
    const char *sizes = "";
    if (!declared || (o->options && o->options->n_dims))
        return;
    bool differs = declared->n_dim != (size_t)is.rank;
    for (int i = 0; i < is.rank; i++) {
        const Onnx__Dimension *d = differs ? NULL : declared->dim[i];
        differs = differs || (d->has_value && d->value >= 0 && !is.dim[i].expr && d->value != is.dim[i].value);
        sizes = arena_printf(o->tmp, "%s%s%s", sizes, i ? "," : "", dim_text(o->program, is.dim[i]));
    }
    if (differs)
        diag_warn(o->diag, loc, "this output has the shape [%s], and the file declares another one", sizes);
}

static bool read_output(Onnx *o, OnnxScope *s, const Onnx__ValueInfo *out)
{
    const char *name = onnx_text(o, out->name);
    if (!name)
        return false;
    OnnxValue *v = onnx_find(s, name);
    Loc loc = {.file = o->loc.file, .node = onnx_name(o->program->arena, name)};
    if (!v)
        return diag_error(o->diag, loc, "the output '%s' is defined by no node", name);
    OnnxNode n = {.in = o, .scope = s, .loc = loc};
    if (v->sequence || v->is_none)
        return diag_unsupported(o->diag, loc,
                                "the output '%s' is %s: export the model with tensors as outputs",
                                name, v->sequence ? "a sequence" : "an empty optional");
    if (!on_tensor(&n, name, v))
        return false;
    compare_shape(o, loc, out, v->value->type);
    graph_add_output(o->graph, v->value);
    return true;
}

/* -- nodes ------------------------------------------------------------------------------------- */

static const OnnxRow rows[] = {
#define ONNX(name, since, read, op) {name, since, onnx_##read, OP_##op},
#include "compiler/import/onnx_ops.def"
#undef ONNX
};

const OnnxRow *onnx_row(const char *op, int64_t opset)
{
    const OnnxRow *found = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, op) && rows[i].since <= opset &&
            (!found || found->since < rows[i].since))
            found = &rows[i];
    return found;
}

/* Returns the name of a node's operator, which begins with its domain unless that is the default
 * one.  NULL: an error was reported. */
static const char *operator_name(Onnx *o, const Onnx__Node *node)
{
    const char *op = onnx_text(o, node->op_type), *domain = onnx_text(o, node->domain);
    if (!op || !domain || !*op || onnx_is_default(node->domain))
        return domain ? op : NULL;
    return arena_printf(o->program->arena, "%s::%s", domain, op);
}

/* Returns "model.py:12" if the exporter noted where a node comes from, else NULL. */
static const char *source_of(Onnx *o, const Onnx__Node *node)
{
    enum { LAST = 1024 }; /* bytes of a trace, at whose end the innermost frame is */
    const uint64_t n = node->has_mapped_size ? node->mapped_size : 0, kept = n < LAST ? n : LAST;
    const char *text = kept ? (const char *)o->data + node->mapped_at + (n - kept) : NULL;
    return text ? import_source(o->program->arena, arena_str(o->tmp, text, (size_t)kept)) : NULL;
}

static bool read_node(Onnx *o, OnnxScope *s, const Onnx__Node *node)
{
    const char *op = operator_name(o, node), *out = "node";
    for (size_t i = node->n_output; i-- > 0;)
        if (node->output[i].len && !(out = onnx_text(o, node->output[i])))
            return false;
    if (!op)
        return false;
    Loc loc = {.file = o->loc.file, .node = onnx_unique(o, out), .op = op, .source = source_of(o, node)};
    OnnxNode n = {.in = o, .scope = s, .node = node, .row = onnx_row(op, o->opset), .loc = loc};
    const Onnx__Function *f = onnx_function(o, node);
    if (!f && !n.row)
        return false; /* reported before */
    int before = diag_errors(o->diag);
    if (!node->n_output)
        return diag_error(o->diag, loc, "has no output");
    if (f ? onnx_call(&n, f) : onnx_fold(&n) || n.row->read(&n))
        return !n.failed;
    return diag_errors(o->diag) > before ? false
                                         : diag_error(o->diag, loc, "lacks an input that it needs");
}

/* Returns advice about an operator that is not supported, to be appended to a message. */
static const char *advice(const char *op)
{
    static const struct {
        const char *begins, *says;
    } row[] = {
        {"com.microsoft.nchwc::", ": its layout is that of one CPU; save the model with "
                                  "ORT_ENABLE_EXTENDED or less"},
        {"Random", ": give random numbers as an input"},
        {"Bernoulli", ": give random numbers as an input"},
        {"Multinomial", ": give random numbers as an input"},
        {"String", ": strings are prepared before the model; cut this part off"},
        {"RegexFullMatch", ": strings are prepared before the model; cut this part off"},
        {"TfIdfVectorizer", ": texts are prepared before the model; cut this part off"},
        {"ImageDecoder", ": files are decoded before the model; cut this part off"},
        {"ai.onnx.ml::ZipMap", ": it makes maps; export the model with the option zipmap=False"},
        {"ai.onnx.ml::", ": it stands outside of networks; cut this part off"},
        {"ai.onnx.preview.training::", ": training is not compiled; export the model for inference"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (!strncmp(op, row[i].begins, strlen(row[i].begins)))
            return row[i].says;
    return "";
}

/* The operators without a row, with their opset or "another domain", and their numbers of nodes. */
typedef struct Unknown {
    Table count;
    const char **op;
    int n;
    const Onnx__Function **function; /* functions that nodes call and that are not checked yet */
    int n_functions;
} Unknown;

static bool find_unknown(Onnx *o, Unknown *u, Onnx__Node *const *node, size_t n, int64_t opset)
{
    for (size_t i = 0; i < n; i++) {
        const Onnx__Function *f = onnx_function(o, node[i]);
        const char *op = operator_name(o, node[i]);
        if (!op || !*op)
            return op && diag_error(o->diag, (Loc){.file = o->loc.file}, "a node names no operator");
        TableItem *seen = f ? table_at_copy(&o->looked_at, &f, sizeof f) : NULL;
        if (seen && !seen->number++)
            PUSH(o->tmp, u->function, u->n_functions, f);
        if (f || onnx_row(op, opset))
            continue;
        op = onnx_is_default(node[i]->domain)
                 ? arena_printf(o->tmp, "%s of opset %" PRId64, op, opset)
                 : arena_printf(o->tmp, "%s of another domain", op);
        if (!table_at_text(&u->count, op)->number++)
            PUSH(o->tmp, u->op, u->n, op);
    }
    return true;
}

/* Returns the length of NAME in "NAME of opset N" or "NAME of another domain"; NAME comes from the
 * file and may be anything. */
static size_t name_length(const char *op)
{
    size_t n = strlen(op);
    for (int blanks = 0; blanks < 3;)
        blanks += op[--n] == ' ';
    return n;
}

/* Reports each operator without a row once, with its number of nodes. */
static bool all_are_known(Onnx *o, Onnx__Node *const *node, size_t n)
{
    Unknown u = {.count = {.arena = o->tmp}};
    bool ok = find_unknown(o, &u, node, n, o->opset);
    for (int i = 0; ok && i < u.n_functions; i++)
        ok = find_unknown(o, &u, u.function[i]->node, u.function[i]->n_node,
                          onnx_opset_of(o, u.function[i]));
    for (int i = 0; i < u.n; i++) {
        int64_t times = table_at_text(&u.count, u.op[i])->number;
        size_t len = name_length(u.op[i]);
        Loc loc = {.file = o->loc.file, .op = arena_str(o->tmp, u.op[i], len)};
        ok = diag_unsupported(o->diag, loc,
                              "the operator%s is not supported, in %" PRId64 " node%s%s",
                              u.op[i] + len, times, times == 1 ? "" : "s", advice(u.op[i]));
    }
    return ok;
}

/* -- the order of nodes ------------------------------------------------------------------------ */

/* The nodes of a graph during a topological sort.  The standard requires sorted nodes, but some
 * tools of ONNX Runtime write unsorted ones. */
typedef struct Order {
    Onnx *in;
    Table producer; /* name -> the number of the node that defines it */
    int *number;  /* 0, 1, 2 .., which the table points to */
    int *need;    /* the nodes whose results a node reads; those of node i start at begin[i] */
    int *begin, n_need;
    bool *is_visited;        /* it has a place in the order, or waits for the nodes that it reads */
    int *to, n;              /* the order */
} Order;

/* Adds the nodes that define what a node, and graphs within it, read. */
static void find_needs(Order *r, const Onnx__Node *node)
{
    for (size_t i = 0; i < node->n_input; i++) {
        ProtobufCBinaryData text = node->input[i];
        const int *at = text.len ? table_find(&r->producer, text.data, text.len) : NULL;
        if (at)
            PUSH(r->in->tmp, r->need, r->n_need, *at);
    }
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__Graph *g = node->attribute[i]->g;
        for (size_t k = 0; g && k < g->n_node; k++)
            find_needs(r, g->node[k]);
    }
}

/* Puts a node into the order, after all nodes whose results it reads.  Nodes that form a cycle keep
 * their order, and are reported when they are read. */
static void place(Order *r, int first, const int *end, int *stack)
{
    int depth = 0;
    if (!r->is_visited[first])
        stack[depth++] = first;
    while (depth) {
        int i = stack[depth - 1];
        r->is_visited[i] = true;
        while (r->begin[i] < end[i] && r->is_visited[r->need[r->begin[i]]])
            r->begin[i]++;
        if (r->begin[i] < end[i]) {
            stack[depth++] = r->need[r->begin[i]];
        } else {
            r->to[r->n++] = i;
            depth--;
        }
    }
}

static const int *order_of(Onnx *o, Onnx__Node *const *node, int n)
{
    Arena *a = o->tmp;
    int *end = NEW(a, int, n + 1), *stack = NEW(a, int, n + 1);
    Order r = {.in = o,
               .producer = {.arena = a},
               .number = NEW(a, int, n + 1),
               .begin = NEW(a, int, n + 1),
               .is_visited = NEW(a, bool, n + 1),
               .to = NEW(a, int, n + 1)};
    for (int i = 0; i < n; i++) {
        r.number[i] = i;
        for (size_t k = 0; k < node[i]->n_output; k++) {
            ProtobufCBinaryData text = node[i]->output[k];
            TableItem *at = text.len ? table_at(&r.producer, text.data, text.len) : NULL;
            if (at && !at->ptr)
                at->ptr = &r.number[i];
        }
    }
    for (int i = 0; i < n; i++) {
        r.begin[i] = r.n_need;
        find_needs(&r, node[i]);
        end[i] = r.n_need;
    }
    for (int i = 0; i < n; i++)
        place(&r, i, end, stack);
    return r.to;
}

bool onnx_nodes(Onnx *o, OnnxScope *s, Onnx__Node *const *node, size_t n)
{
    if (!all_are_known(o, node, n))
        return false;
    const int *order = order_of(o, node, (int)n);
    for (size_t i = 0; i < n; i++) {
        const Onnx__Node *next = node[order[i]];
        size_t operands = next->n_input + next->n_output + next->n_attribute;
        o->is_refused = !onnx_spend(o, 1 + operands) || !read_node(o, s, next);
        if (o->is_refused)
            return false;
    }
    return true;
}

/* -- the model --------------------------------------------------------------------------------- */

bool onnx_opset_is_read(const Onnx *o)
{
    if (o->opset < OLDEST_OPSET || o->opset > NEWEST_OPSET)
        return diag_unsupported(o->diag, o->loc,
                                "ONNX's opset %" PRId64 " is not read, only %d to %d: convert the "
                                "model with onnx.version_converter",
                                o->opset, OLDEST_OPSET, NEWEST_OPSET);
    return true;
}

static bool has_graph(const Onnx *o)
{
    return o->model->graph || diag_error(o->diag, o->loc, "is not an ONNX model: it has no graph");
}

static bool find_opset(Onnx *o)
{
    const Onnx__Model *m = o->model;
    if (m->ir_version > NEWEST_IR)
        diag_warn(o->diag, o->loc, "has the IR version %" PRId64 ", expected up to %d: what is new in it is not read",
                  m->ir_version, NEWEST_IR);
    o->opset = m->n_opset_import ? NEWEST_OPSET : 0; /* there are only other domains */
    for (size_t i = 0; i < m->n_opset_import; i++)
        if (onnx_is_default(m->opset_import[i]->domain))
            o->opset = m->opset_import[i]->version;
    return onnx_opset_is_read(o);
}

static bool read_graph(Onnx *o)
{
    const Onnx__Graph *g = o->model->graph;
    OnnxScope s = {.in = o, .values = {.arena = o->tmp}};
    bool ok = true;
    if (g->n_sparse_initializer)
        return diag_unsupported(o->diag, o->loc, "has sparse constants");
    for (size_t i = 0; i < g->n_initializer; i++)
        ok = onnx_initializer(o, &s, g->initializer[i]) && ok;
    for (size_t i = 0; ok && i < g->n_input; i++)
        ok = onnx_input(o, &s, g->input[i]) && ok;
    ok = ok && onnx_nodes(o, &s, g->node, g->n_node);
    for (size_t i = 0; ok && i < g->n_output; i++)
        ok = read_output(o, &s, g->output[i]);
    return ok;
}

static const char *folder_of(Arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? arena_str(a, path, (size_t)(slash + 1 - path)) : "./";
}

Program *import_onnx_bytes(Arena *a, const char *path, const uint8_t *data, size_t n,
                           const ImportOptions *options, Diag *d)
{
    const char *slash = strrchr(path, '/'), *beside = options ? options->weights_dir : NULL;
    Onnx o = {.program = program_new(a, arena_str(a, slash ? slash + 1 : path,
                                                  strlen(slash ? slash + 1 : path))),
              .tmp = arena_within(a),
              .diag = d,
              .loc = {.file = arena_str(a, path, strlen(path))},
              .options = options,
              .files = options && options->files ? options->files : files_new(a),
              .folder = folder_at(a, beside ? beside : folder_of(a, path)),
              .data = data,
              .n = n};
    o.taken = o.sizes = o.externals = o.functions = o.looked_at = (Table){.arena = o.tmp};
    o.program->stage = STAGE_ATEN;
    o.graph = graph_new(o.program, "forward");
    PUSH(a, o.program->method, o.program->n_methods, o.graph);
    o.model = onnx_unpack(o.tmp, o.loc, data, n, d);
    int before = diag_errors(d);
    bool ok = o.model && has_graph(&o) && find_opset(&o) && onnx_functions(&o) && read_graph(&o) &&
              diag_errors(d) == before;
    if (!ok && o.is_refused)
        onnx_advise_sizes(&o);
    folder_close(&o.folder);
    arena_free(o.tmp);
    return ok ? o.program : NULL;
}

Program *import_onnx(Arena *a, const char *path, const ImportOptions *options, Diag *d)
{
    Files *files = options && options->files ? options->files : files_new(a);
    uint8_t *data;
    size_t n;
    return file_load(files, a, path, &data, &n, d)
               ? import_onnx_bytes(a, path, data, n, options, d)
               : NULL;
}
