/* tools.c -- `etc opt` and `etc ops`. */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include <string.h>

/* -- opt --------------------------------------------------------------------------------------- */

static void list_passes(const Options *o, Arena *a)
{
    if (o->json)
        printf("{\"schema\": 1, \"passes\": [");
    for (int i = 0; i < n_passes; i++) {
        char kind[32] = "exact";
        if (pass_info[i].k < 0)
            snprintf(kind, sizeof kind, "changes");
        else if (pass_info[i].k > 0)
            snprintf(kind, sizeof kind, "bounded(%g)", pass_info[i].k);
        if (o->json)
            printf("%s{\"name\": \"%s\", \"exactness\": \"%s\", \"help\": %s}", comma(i),
                   pass_info[i].name, kind, json_text(a, pass_info[i].help));
        else
            printf("%-16s %-12s %s\n", pass_info[i].name, kind, pass_info[i].help);
    }
    if (o->json)
        puts("]}");
}

static const char **split_passes(const char *list, Arena *a, int *n)
{
    const char **pass = NULL;
    for (const char *s = list; *s; s += *s == ',') {
        size_t len = strcspn(s, ",");
        const char *name = arena_str(a, s, len);
        PUSH(a, pass, *n, name);
        s += len;
    }
    return pass;
}

/* Writes the program to FILE or standard output.  With --json it is a string of the result. */
static bool stage_text(const Options *o, const Program *p, Arena *a, OutBatch *out, Diag *d)
{
    Text t;
    bool to_file = o->output && strcmp(o->output, "-") != 0;
    if (text_open(&t))
        program_print(p, t.f);
    const char *text = text_close(&t, a);
    if (!text)
        return diag_io(d, (Loc){.file = o->model}, "no memory to print it");
    if ((to_file && !output_bytes(o, out, text, (int64_t)t.n, o->output, d)) || !out_stage(out, d))
        return false;
    if (o->json)
        printf("{\"schema\": 1, \"stage\": \"%s\", \"output\": %s, \"text\": %s}\n",
               stage_name[p->stage], to_file ? json_text(a, o->output) : "null",
               to_file ? "null" : json_text(a, text));
    else if (!to_file)
        fputs(text, stdout);
    return true;
}

bool command_opt(const Options *o, Arena *a, Diag *d)
{
    int n = 0;
    OutBatch out = {.arena = a};
    if (o->list) {
        list_passes(o, a);
        return true;
    }
    const char **pass = split_passes(o->passes, a, &n);
    Program *p = model_load(o, a, d);
    if (!p || !passes_follow(p, pass, n, d))
        return false;
    p->session->tail = tail_find(o->tail);
    bool ok = model_run_passes(o, p, pass, n, a, &out, d) && stage_text(o, p, a, &out, d) &&
              finish_files(o, &out, d);
    out_discard(&out);
    return ok;
}

/* -- ops --------------------------------------------------------------------------------------- */

/* Prints which tails support an operator, directly or after rewriting. */
static void print_op(const Options *o, const char *target, const OpInfo *op, int i)
{
    bool rewritten = op->has_decomp || op->functional != OP_NONE || op->flags & CHECK;
    bool is_pointwise = op->expr != 0;
    const char *other = rewritten ? "rewritten" : "no";
    const char *pte = op->has_out && !(op->flags & LITE) ? "yes" : other, *lite = op->has_kernel ? "yes" : other;
    const char *c = is_pointwise || op->has_template ? "yes" : other;
    if (o->json)
        printf("%s{\"name\": \"%s\", \"pte\": \"%s\", \"runtime_lite\": \"%s\", \"c\": \"%s\"}",
               comma(i), target, pte, lite, c);
    else
        printf("%-52s %-10s %-12s %s\n", target, pte, lite, c);
}

static void print_head(const Options *o, int n)
{
    if (n == 0 && !o->json)
        printf("%-52s %-10s %-12s %s\n", "operator", ".pte", "runtime-lite", "C");
    if (n == 0 && o->json)
        printf("{\"schema\": 1, \"operators\": [");
}

bool command_ops(const Options *o, Arena *a, Diag *d)
{
    int n = 0;
    const char *text = o->model ? o->model : "";
    const CustomOps *custom = NULL;
    if (!custom_read(o, a, &custom, d))
        return false;
    for (OpId i = 0; i < N_OPS; i++) {
        if (!strstr(op_target(i), text) || i == OP_CUSTOM)
            continue;
        print_head(o, n);
        print_op(o, op_target(i), &op_info[i], n++);
    }
    for (int i = 0; custom && i < custom->n; i++) {
        const CustomOp *op = custom->item[i];
        if (strstr(op->target, text)) {
            print_head(o, n);
            print_op(o, op->target, &op->row, n++);
        }
    }
    if (o->json && n)
        puts("]}");
    Near near = near_operator(a, text);
    return n || diag_error(d, (Loc){0}, "no operator's name contains '%s'%s", text,
                           near_text(a, &near));
}
