/* tools.c -- `etc inspect`, `etc opt` and `etc ops`. */
#include "compiler/compiler.h"
#include "compiler/import/import.h"
#include <string.h>

/* A JSON string with its quotes. */
const char *json_text(Arena *a, const char *s)
{
    char *text = NEW(a, char, 6 * strlen(s) + 3), *to = text;
    *to++ = '"';
    for (; *s; s++) {
        if ((unsigned char)*s < ' ')
            to += sprintf(to, "\\u%04x", (unsigned)(unsigned char)*s);
        else if (*s == '"' || *s == '\\')
            to += sprintf(to, "\\%c", *s);
        else
            *to++ = *s;
    }
    *to++ = '"';
    return text;
}

/* -- inspect: programs ------------------------------------------------------------------------- */

typedef struct Counts {
    int op[N_OPS];
    int nodes;
} Counts;

static void count(const Graph *g, Counts *c)
{
    for (const Node *n = g->first; n; n = n->next) {
        c->op[n->op]++;
        c->nodes++;
        for (int i = 0; i < n->n_args; i++)
            if (n->arg[i].kind == ARG_GRAPH)
                count(n->arg[i].graph, c);
    }
}

static void print_signature(const Graph *g)
{
    for (int i = 0; i < g->n_in; i++) {
        printf("  input %d: %s ", i, g->in[i]->name);
        type_print(g->in[i]->type, stdout);
        putchar('\n');
    }
    for (int i = 0; i < g->n_out; i++) {
        printf("  output %d: ", i);
        type_print(g->out[i]->type, stdout);
        putchar('\n');
    }
}

static void inspect_program(const Options *o, const Program *p, Arena *a)
{
    int64_t bytes = 0;
    const char *comma = "";
    for (int i = 0; i < p->n_states; i++)
        bytes += type_bytes(p->state[i]->type);
    if (o->json)
        printf("{\"schema\": 1, \"file\": %s, \"stage\": \"%s\", \"state_bytes\": %lld, "
               "\"methods\": [", json_text(a, p->name), stage_name[p->stage], (long long)bytes);
    else
        printf("%s: stage %s, %d parameters and buffers of %lld bytes, %d symbolic sizes\n",
               p->name, stage_name[p->stage], p->n_states, (long long)bytes, p->n_syms);
    for (int i = 0; i < p->n_methods; i++) {
        Counts *c = NEW(a, Counts, 1);
        count(p->method[i], c);
        if (o->json)
            printf("%s{\"name\": %s, \"nodes\": %d, \"inputs\": %d, \"outputs\": %d}", comma,
                   json_text(a, p->method[i]->name), c->nodes, p->method[i]->n_in,
                   p->method[i]->n_out);
        else
            printf("method %s: %d nodes\n", p->method[i]->name, c->nodes);
        comma = ", ";
        if (o->json)
            continue;
        print_signature(p->method[i]);
        for (int op = 0; op < N_OPS; op++)
            if (c->op[op])
                printf("  %5d %s\n", c->op[op], op_info[op].target);
    }
    if (o->json)
        puts("]}");
}

/* -- inspect: .pte ------------------------------------------------------------------------------ */

static void print_value(const char *what, int i, const EtcValue *v)
{
    static const char *const tag[] = {"none", "tensor", "string", "float", "int", "bool"};
    printf("  %s %d: ", what, i);
    if (v->tag != ETC_TENSOR) {
        puts(v->tag < 6 ? tag[v->tag] : "list");
        return;
    }
    printf("%s[", dtype_name(v->as.tensor->dtype));
    for (int k = 0; k < v->as.tensor->rank; k++)
        printf("%s%d", k ? "," : "", (int)v->as.tensor->dim[k]);
    printf("]%s\n", v->as.tensor->is_static ? "" : " at most");
}

static bool inspect_method(const Options *o, const EtcProgram *p, int32_t i, Arena *a, Diag *d)
{
    EtcError e = {.index = -1};
    EtcMemory need;
    EtcMethod *m;
    const char *name, *overload;
    if (etc_program_memory(p, i, &need, &e))
        return runtime_failed(o->model, &e, d);
    size_t pools = 0;
    void *pool[sizeof need.pool_bytes / sizeof *need.pool_bytes] = {0};
    for (int32_t k = 0; k < need.n_pools; k++) {
        pools += need.pool_bytes[k];
        pool[k] = arena_alloc(a, need.pool_bytes[k] + 256, 1);
    }
    printf("method %s: arena %zu bytes, tables %zu, scratch %zu\n",
           etc_program_method_name(p, i), pools, need.table_bytes, need.scratch_bytes);
    for (int32_t k = 0; etc_method_missing(p, i, k, &name, &overload); k++)
        printf("  this build lacks %s%s%s\n", name, *overload ? "." : "", overload);
    if (etc_method_missing(p, i, 0, &name, &overload))
        return true;
    if (etc_method_init(p, i, arena_alloc(a, need.table_bytes + 256, 1), pool,
                        arena_alloc(a, need.scratch_bytes + 256, 1), &m, &e))
        return runtime_failed(o->model, &e, d);
    for (int k = 0; k < etc_method_n_inputs(m); k++)
        print_value("input", k, etc_method_input(m, k));
    for (int k = 0; k < etc_method_n_outputs(m); k++)
        print_value("output", k, etc_method_output(m, k));
    return true;
}

static void inspect_pte(const Options *o, Arena *a, Diag *d)
{
    const uint8_t *data;
    size_t n;
    EtcProgram p;
    EtcError e = {.index = -1};
    if (!map_file(o->model, &data, &n, d))
        return;
    if (etc_program_open(&p, data, n, &e)) {
        runtime_failed(o->model, &e, d);
        return;
    }
    if (o->json) {
        printf("{\"schema\": 1, \"file\": %s, \"bytes\": %zu, \"methods\": [",
               json_text(a, o->model), n);
        for (int32_t i = 0; i < etc_program_n_methods(&p); i++)
            printf("%s%s", i ? ", " : "", json_text(a, etc_program_method_name(&p, i)));
        puts("]}");
        return;
    }
    printf("%s: %zu bytes, %d methods\n", o->model, n, (int)etc_program_n_methods(&p));
    for (int32_t i = 0; i < etc_program_n_methods(&p); i++)
        if (!inspect_method(o, &p, i, a, d))
            return;
}

void command_inspect(const Options *o, Arena *a, Diag *d)
{
    if (import_kind(o->model, d) == IMPORT_PTE) {
        inspect_pte(o, a, d);
        return;
    }
    Program *p = diag_errors(d) ? NULL : model_load(o, a, d);
    if (p)
        inspect_program(o, p, a);
}

/* -- opt ------------------------------------------------------------------------------------------ */

static void list_passes(const Options *o, Arena *a)
{
    for (int i = 0; i < n_passes; i++) {
        char kind[32] = "exact";
        if (pass_info[i].k > 0)
            snprintf(kind, sizeof kind, "bounded(%g)", pass_info[i].k);
        if (o->json)
            printf("{\"schema\": 1, \"pass\": \"%s\", \"exactness\": \"%s\", \"help\": %s}\n",
                   pass_info[i].name, kind, json_text(a, pass_info[i].help));
        else
            printf("%-18s %-12s %s\n", pass_info[i].name, kind, pass_info[i].help);
    }
}

void command_opt(const Options *o, Arena *a, Diag *d)
{
    const char **pass = NULL;
    int n = 0;
    if (o->list) {
        list_passes(o, a);
        return;
    }
    for (const char *s = o->passes; *s; s += strcspn(s, ",")) {
        s += *s == ',';
        const char *name = arena_str(a, s, strcspn(s, ","));
        if (*name)
            PUSH(a, pass, n, name);
    }
    Program *p = model_load(o, a, d);
    if (!p)
        return;
    p->tail = o->tail && !strcmp(o->tail, "c") ? TAIL_C : TAIL_PTE;
    if (!model_run_passes(o, p, pass, n, a, d))
        return;
    FILE *out = o->output && strcmp(o->output, "-") ? fopen(o->output, "w") : stdout;
    if (!out) {
        diag_io(d, (Loc){.file = o->output}, "cannot be written");
        return;
    }
    program_print(p, out);
    bool failed = ferror(out) || (out != stdout && fclose(out));
    if (failed) {
        remove(o->output);
        diag_io(d, (Loc){.file = o->output}, "cannot be written");
    }
}

/* -- ops ------------------------------------------------------------------------------------------ */

/* Which tails take an operator, itself or after rewriting. */
static void print_op(const Options *o, const OpInfo *op)
{
    bool rewritten = op->has_decomp || op->functional != OP_NONE || op->flags & CHECK;
    bool is_pointwise = strcmp(op->expr, "none") != 0;
    const char *pte = op->out ? "yes" : rewritten ? "rewritten" : "no";
    const char *c = is_pointwise || strcmp(op->c, "none") ? "yes" : rewritten ? "rewritten" : "no";
    const char *lite = op->has_kernel ? "yes" : rewritten ? "rewritten" : "no";
    if (o->json)
        printf("{\"schema\": 1, \"op\": \"%s\", \"pte\": \"%s\", \"runtime_lite\": \"%s\", "
               "\"c\": \"%s\"}\n", op->target, pte, lite, c);
    else
        printf("%-52s %-10s %-12s %s\n", op->target, pte, lite, c);
}

void command_ops(const Options *o, Arena *a, Diag *d)
{
    (void)a;
    (void)d;
    if (!o->json)
        printf("%-52s %-10s %-12s %s\n", "operator", ".pte", "runtime-lite", "C");
    for (int i = 0; i < N_OPS; i++)
        if (!o->model || strstr(op_info[i].target, o->model))
            print_op(o, &op_info[i]);
}
