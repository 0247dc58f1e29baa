/* inspect.c -- `etc inspect`: prints the contents of a .pte, a model or a text. */
#include "compiler/compiler.h"
#include "compiler/run.h"
#include "runtime-lite/delegates/xnn_schema.h"
#include <stdlib.h>

/* -- programs ---------------------------------------------------------------------------------- */

typedef struct Counts {
    int op[N_OPS];
    int nodes;
} Counts;

static void count(const Graph *g, Counts *c)
{
    for (const Node *n = NULL; (n = walk_next(g, n));) {
        c->op[n->op]++;
        c->nodes++;
    }
}

/* Returns how many nodes call a custom operator.  It walks the whole graph for each operator, since
 * a file describes only a few. */
static int count_custom(const Graph *g, const CustomOp *op)
{
    int nodes = 0;
    for (const Node *n = NULL; (n = walk_next(g, n));)
        nodes += n->custom == op;
    return nodes;
}

/* Returns the target of the next operator that the graph has, and moves *i past it.  Sets *nodes to
 * the number of its nodes.  NULL: there are no more operators. */
static const char *next_op(const Graph *g, const Counts *c, int *i, int *nodes)
{
    const CustomOps *own = g->program->custom;
    for (; *i < N_OPS + (own ? own->n : 0); (*i)++) {
        *nodes = *i >= N_OPS ? count_custom(g, own->item[*i - N_OPS]) : c->op[*i];
        *nodes = *i == OP_CUSTOM ? 0 : *nodes;
        if (*nodes) {
            (*i)++;
            return *i <= N_OPS ? op_target((OpId)(*i - 1)) : own->item[*i - 1 - N_OPS]->target;
        }
    }
    return NULL;
}

static void text_ends(const char *what, Value *const *v, int n)
{
    for (int i = 0; i < n; i++) {
        say(stdout, "  %s %d: %s ", what, i, v[i]->name);
        type_print(v[i]->type, stdout);
        putchar('\n');
    }
}

static void text_graph(const Graph *g, const Counts *c)
{
    say(stdout, "method %s: %d nodes\n", g->name, c->nodes);
    text_ends("input", g->in, g->n_in);
    text_ends("output", g->out, g->n_out);
    for (int i = 0; i < g->n_pools; i++)
        printf("  pool %d: %lld bytes\n", i + 1, (long long)g->pool[i]);
    const char *target;
    for (int i = 0, nodes; (target = next_op(g, c, &i, &nodes));)
        printf("  %5d %s\n", nodes, target);
}

/* Prints a number, or a string with an expression over the names of symbols. */
static void json_dim(Dim dim)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = dim.expr ? open_memstream(&text, &n) : NULL;
    if (!f) {
        dim_print(dim, stdout);
        return;
    }
    dim_print(dim, f);
    fclose(f);
    putchar('"');
    for (size_t i = 0; i < n; i++)
        if (text[i] != '%')
            putchar(text[i]);
    putchar('"');
    free(text);
}

/* Prints the dtype and the shape of a type.  The shape of a Python scalar is null. */
static void json_type(Type t)
{
    printf("\"dtype\": \"%s\", \"shape\": ", dtype_name(t.dtype));
    if (t.rank == SCALAR) {
        printf("null");
        return;
    }
    putchar('[');
    for (int i = 0; i < t.rank; i++) {
        fputs(comma(i), stdout);
        json_dim(t.dim[i]);
    }
    putchar(']');
}

static void json_ends(const char *what, Value *const *v, int n, Arena *a)
{
    printf("\"%s\": [", what);
    for (int i = 0; i < n; i++) {
        printf("%s{\"name\": %s, ", comma(i), json_text(a, v[i]->name));
        json_type(v[i]->type);
        putchar('}');
    }
    printf("], ");
}

static void json_graph(const Graph *g, const Counts *c, Arena *a)
{
    int n = 0;
    printf("{\"name\": %s, \"nodes\": %d, ", json_text(a, g->name), c->nodes);
    json_ends("inputs", g->in, g->n_in, a);
    json_ends("outputs", g->out, g->n_out, a);
    printf("\"pools\": [");
    for (int i = 0; i < g->n_pools; i++)
        printf("%s%lld", comma(i), (long long)g->pool[i]);
    printf("], \"operators\": [");
    const char *target;
    for (int i = 0, nodes; (target = next_op(g, c, &i, &nodes));)
        printf("%s{\"name\": %s, \"nodes\": %d}", comma(n++), json_text(a, target), nodes);
    printf("]}");
}

static void json_symbols(const Program *p, Arena *a)
{
    printf("\"symbols\": [");
    for (int i = 0; i < p->n_syms; i++) {
        const Symbol *s = p->sym[i];
        printf("%s{\"name\": %s, \"lo\": %lld, \"hi\": ", comma(i), json_text(a, s->name),
               (long long)s->lo);
        if (s->hi == INT64_MAX)
            printf("null}");
        else
            printf("%lld}", (long long)s->hi);
    }
    printf("], ");
}

static void text_symbols(const Program *p)
{
    for (int i = 0; i < p->n_syms; i++) {
        const Symbol *s = p->sym[i];
        say(stdout, "size %s: %lld or more", s->name, (long long)s->lo);
        if (s->hi != INT64_MAX)
            printf(", at most %lld", (long long)s->hi);
        putchar('\n');
    }
}

static void inspect_program(const Options *o, const Program *p, Arena *a)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->n_states; i++)
        bytes += type_bytes(p->state[i]->type);
    if (o->json) {
        printf("{\"schema\": 1, \"kind\": \"program\", \"file\": %s, \"stage\": \"%s\", "
               "\"states\": %d, \"state_bytes\": %lld, ",
               json_text(a, o->model), stage_name[p->stage], p->n_states, (long long)bytes);
        json_symbols(p, a);
        printf("\"methods\": [");
    } else {
        say(stdout, "%s: stage %s, %d parameters and buffers of %lld bytes\n", o->model,
               stage_name[p->stage], p->n_states, (long long)bytes);
        text_symbols(p);
    }
    for (int i = 0; i < p->n_methods; i++) {
        Counts *c = NEW(a, Counts, 1);
        count(p->method[i], c);
        if (o->json) {
            fputs(comma(i), stdout);
            json_graph(p->method[i], c, a);
        } else {
            text_graph(p->method[i], c);
        }
    }
    if (o->json)
        puts("]}");
}

/* -- .pte -------------------------------------------------------------------------------------- */

static void text_pte_ends(const char *what, const PteEnd *e, int n)
{
    for (int i = 0; i < n; i++) {
        printf("  %s %d: ", what, i);
        if (!e[i].dtype) {
            puts(e[i].kind);
            continue;
        }
        printf("%s[", e[i].dtype);
        for (int k = 0; k < e[i].rank; k++)
            printf("%s%d", k ? "," : "", (int)e[i].dim[k]);
        puts(e[i].is_dynamic ? "] at most" : "]");
    }
}

static void text_blob(int i, const PteBlob *b)
{
    say(stdout, "  delegate %d: %s, %llu bytes", i, b->id, (unsigned long long)b->n_bytes);
    if (b->wrong)
        printf(", not readable: %s", b->wrong);
    puts(b->is_read ? ":" : "");
    for (int k = 1; b->is_read && k < XNN_KINDS; k++)
        if (b->n_nodes[k])
            printf("  %5d %s\n", b->n_nodes[k], xnn_node_name[k]);
}

static void json_blob(int i, const PteBlob *b, Arena *a)
{
    int n = 0;
    printf("%s{\"backend\": %s, \"bytes\": %llu, \"wrong\": %s", comma(i), json_text(a, b->id),
           (unsigned long long)b->n_bytes, b->wrong ? json_text(a, b->wrong) : "null");
    if (b->is_read) {
        printf(", \"values\": %d, \"constants\": %d, \"nodes\": {", b->n_values, b->n_constants);
        for (int k = 1; k < XNN_KINDS; k++)
            if (b->n_nodes[k])
                printf("%s\"%s\": %d", comma(n++), xnn_node_name[k], b->n_nodes[k]);
        putchar('}');
    }
    putchar('}');
}

static void text_method(const PteMethod *m, const EtcMemory *need)
{
    int64_t arena = 0;
    for (int i = 0; i < m->n_pools; i++)
        arena += m->pool[i];
    say(stdout, "method %s: arena %lld bytes", m->name, (long long)arena);
    if (need)
        printf("; runtime-lite adds tables %zu, scratch %zu", need->table_bytes,
               need->scratch_bytes);
    putchar('\n');
    text_pte_ends("input", m->in, m->n_in);
    text_pte_ends("output", m->out, m->n_out);
    for (int i = 0; i < m->n_delegates; i++)
        text_blob(i, &m->delegate[i]);
    for (int i = 0; i < m->n_ops; i++)
        say(stdout, "  %5d %s%s\n", m->op[i].calls, m->op[i].name,
               m->op[i].is_built_in ? "" : " (this build lacks it)");
}

static void json_pte_ends(const char *what, const PteEnd *e, int n)
{
    printf("\"%s\": [", what);
    for (int i = 0; i < n; i++) {
        printf("%s{\"kind\": \"%s\"", comma(i), e[i].kind);
        if (e[i].dtype) {
            printf(", \"dtype\": \"%s\", \"shape\": [", e[i].dtype);
            for (int k = 0; k < e[i].rank; k++)
                printf("%s%d", comma(k), (int)e[i].dim[k]);
            printf("], \"dynamic\": %s", e[i].is_dynamic ? "true" : "false");
        }
        putchar('}');
    }
    printf("], ");
}

static void json_method(const PteMethod *m, const EtcMemory *need, Arena *a)
{
    printf("{\"name\": %s, \"pools\": [", json_text(a, m->name));
    for (int i = 0; i < m->n_pools; i++)
        printf("%s%lld", comma(i), (long long)m->pool[i]);
    printf("], ");
    if (need)
        printf("\"table_bytes\": %zu, \"scratch_bytes\": %zu, ", need->table_bytes,
               need->scratch_bytes);
    else
        printf("\"table_bytes\": null, \"scratch_bytes\": null, ");
    json_pte_ends("inputs", m->in, m->n_in);
    json_pte_ends("outputs", m->out, m->n_out);
    printf("\"delegates\": [");
    for (int i = 0; i < m->n_delegates; i++)
        printf("%s%s", comma(i), json_text(a, m->delegate[i].id));
    printf("], \"blobs\": [");
    for (int i = 0; i < m->n_delegates; i++)
        json_blob(i, &m->delegate[i], a);
    printf("], \"operators\": [");
    for (int i = 0; i < m->n_ops; i++)
        printf("%s{\"name\": %s, \"calls\": %d, \"runtime_lite\": %s}", comma(i),
               json_text(a, m->op[i].name), m->op[i].calls,
               m->op[i].is_built_in ? "true" : "false");
    printf("]}");
}

static bool inspect_pte(const Options *o, Arena *a, Diag *d)
{
    EtcProgram p;
    EtcError e = {.index = -1};
    if (!pte_open(o->files, o->model, &p, d))
        return false;
    int n_methods = etc_program_n_methods(&p);
    if (o->json)
        printf("{\"schema\": 1, \"kind\": \"pte\", \"file\": %s, \"bytes\": %zu, \"methods\": [",
               json_text(a, o->model), p.n_bytes);
    else
        say(stdout, "%s: %zu bytes, %d method%s\n", o->model, p.n_bytes, n_methods,
               n_methods == 1 ? "" : "s");
    for (int i = 0; i < n_methods; i++) {
        PteMethod m = pte_method(&p, i, a);
        EtcMemory need;
        bool is_known = etc_program_memory(&p, i, &need, &e) == ETC_OK;
        if (o->json)
            fputs(comma(i), stdout);
        if (o->json)
            json_method(&m, is_known ? &need : NULL, a);
        else
            text_method(&m, is_known ? &need : NULL);
    }
    if (o->json)
        puts("]}");
    return true;
}

/* -- .onnx ------------------------------------------------------------------------------------- */

static void text_onnx_ends(const char *what, const OnnxEnd *e, int n)
{
    for (int i = 0; i < n; i++) {
        say(stdout, "  %s %d: %s %s", what, i, e[i].name, e[i].dtype ? e[i].dtype : "unsupported type");
        fputs(e[i].rank < 0 ? " of no rank" : "[", stdout);
        for (int k = 0; k < e[i].rank; k++) {
            const OnnxSize *s = &e[i].size[k];
            if (s->value >= 0)
                printf("%s%lld", k ? "," : "", (long long)s->value);
            else
                say(stdout, "%s%s", k ? "," : "", s->name && *s->name ? s->name : "?");
        }
        puts(e[i].rank < 0 ? "" : "]");
    }
}

static void text_onnx(const Options *o, const OnnxAbout *m)
{
    say(stdout, "%s: ONNX of IR version %lld, by %s%s%s\n", o->model, (long long)m->ir_version,
        *m->producer ? m->producer : "an unknown producer", *m->producer_version ? " " : "",
        m->producer_version);
    for (int i = 0; i < m->n_opsets; i++)
        say(stdout, "  opset %lld of %s\n", (long long)m->opset[i].number, m->opset[i].key);
    text_onnx_ends("input", m->in, m->n_in);
    text_onnx_ends("output", m->out, m->n_out);
    for (int i = 0; i < m->n_ops; i++)
        say(stdout, "  %5d %s%s\n", m->op[i].nodes, m->op[i].name,
            m->op[i].is_supported ? "" : " (not supported)");
    for (int i = 0; i < m->n_files; i++)
        say(stdout, "  external data in %s\n", m->file[i]);
    for (int i = 0; i < m->n_metadata; i++)
        say(stdout, "  %s: %s\n", m->metadata[i].key, m->metadata[i].value);
}

static void json_onnx_ends(const char *what, const OnnxEnd *e, int n, Arena *a)
{
    printf("\"%s\": [", what);
    for (int i = 0; i < n; i++) {
        printf("%s{\"name\": %s, \"dtype\": ", comma(i), json_text(a, e[i].name));
        printf(e[i].dtype ? "\"%s\"" : "null", e[i].dtype);
        printf(", \"shape\": %s", e[i].rank < 0 ? "null" : "[");
        for (int k = 0; k < e[i].rank; k++) {
            const OnnxSize *s = &e[i].size[k];
            if (s->value >= 0)
                printf("%s%lld", comma(k), (long long)s->value);
            else
                printf("%s%s", comma(k), s->name ? json_text(a, s->name) : "null");
        }
        printf(e[i].rank < 0 ? "}" : "]}");
    }
    printf("], ");
}

static void json_onnx(const Options *o, const OnnxAbout *m, Arena *a)
{
    printf("{\"schema\": 1, \"kind\": \"onnx\", \"file\": %s, \"ir_version\": %lld, \"producer\": %s, "
           "\"producer_version\": %s, \"opsets\": [",
           json_text(a, o->model), (long long)m->ir_version, json_text(a, m->producer),
           json_text(a, m->producer_version));
    for (int i = 0; i < m->n_opsets; i++)
        printf("%s{\"domain\": %s, \"version\": %lld}", comma(i), json_text(a, m->opset[i].key),
               (long long)m->opset[i].number);
    printf("], ");
    json_onnx_ends("inputs", m->in, m->n_in, a);
    json_onnx_ends("outputs", m->out, m->n_out, a);
    printf("\"operators\": [");
    for (int i = 0; i < m->n_ops; i++)
        printf("%s{\"name\": %s, \"nodes\": %d, \"supported\": %s}", comma(i),
               json_text(a, m->op[i].name), m->op[i].nodes, m->op[i].is_supported ? "true" : "false");
    printf("], \"external_files\": [");
    for (int i = 0; i < m->n_files; i++)
        printf("%s%s", comma(i), json_text(a, m->file[i]));
    printf("], \"metadata\": [");
    for (int i = 0; i < m->n_metadata; i++)
        printf("%s{\"key\": %s, \"value\": %s}", comma(i), json_text(a, m->metadata[i].key),
               json_text(a, m->metadata[i].value));
    puts("]}");
}

static bool inspect_onnx(const Options *o, Arena *a, Diag *d)
{
    OnnxAbout about;
    if (!onnx_about(a, o->files, o->model, &about, d))
        return false;
    if (o->json)
        json_onnx(o, &about, a);
    else
        text_onnx(o, &about);
    return true;
}

bool command_inspect(const Options *o, Arena *a, Diag *d)
{
    if (o->etdump)
        return etdump_inspect(o, a, d);
    ImportKind kind = model_kind(o, d);
    if (kind == IMPORT_PTE)
        return inspect_pte(o, a, d);
    if (kind == IMPORT_ONNX)
        return inspect_onnx(o, a, d);
    const Program *p = kind == IMPORT_UNKNOWN ? NULL : model_load(o, a, d);
    if (p)
        inspect_program(o, p, a);
    return p != NULL;
}
