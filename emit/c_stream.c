/* c_stream.c -- convolutions one after the other that run by rows: passes/stream.c chose them. */
#include "emit/c_emit.h"
#include <math.h>
#include <string.h>

enum { MAX_STAGES = 4 };

typedef struct Stages {
    const Node *conv[MAX_STAGES];
    Clamp clamp[MAX_STAGES];
    int64_t rows[MAX_STAGES]; /* that a stage keeps in lines; of the last, rows made at a time */
    int n;
} Stages;

static bool is_stage(const Node *n, const Value *x)
{
    int64_t v[2];
    const Value *w = arg_value(n, "weight");
    if (n->op != OP_CONVOLUTION || arg_bool(n, "transposed") || arg_value(n, "input") != x ||
        !w || w->type.rank != 4 || n->out[0]->type.rank != 4 || arg_count(n, "stride") < 1 ||
        arg_count(n, "dilation") < 1 || !arg_ints(n, "stride", v, 2) ||
        !arg_ints(n, "dilation", v, 2))
        return false;
    return type_is_static(w->type) && !n->out[0]->type.dim[1].expr &&
           type_bytes(n->out[0]->type) != INT64_MAX;
}

/* Each convolution reads the one before, through a clamp that its core does. */
static bool find_stages(Function *f, const Graph *body, bool *skip, Stages *s)
{
    const Value *x = NULL;
    for (const Node *n = body->first; n; n = n->next) {
        if (!strcmp(op_info[n->op].c, "pointwise"))
            continue;
        if (s->n == MAX_STAGES || !is_stage(n, x ? x : arg_value(n, "input")))
            return false;
        x = n->out[0];
        skip[x->index] = true;
        s->clamp[s->n] = (Clamp){-INFINITY, INFINITY};
        const Node *next = sole_reader(body, x);
        if (next && first_operand(next) == x && node_clamp(next, &s->clamp[s->n])) {
            skip[next->out[0]->index] = true;
            f->name_of[next->out[0]->index] = f->name_of[x->index];
            x = next->out[0];
        }
        s->conv[s->n++] = n;
    }
    return true;
}

/* The lines of each stage hold what the next one reads at a time. */
static bool check_rows(const Stages *s)
{
    for (int i = 0; i < s->n; i++) {
        int64_t stride[2], dilation[2], need = 1;
        int64_t height = dim_upper(s->conv[i]->out[0]->type.dim[2]);
        if (i + 1 < s->n) {
            const Node *next = s->conv[i + 1];
            arg_ints(next, "stride", stride, 2);
            arg_ints(next, "dilation", dilation, 2);
            need = (s->rows[i + 1] - 1) * stride[0] +
                   (arg_value(next, "weight")->type.dim[2].value - 1) * dilation[0] + 1;
        }
        need = need < height ? need : height;
        if (s->rows[i] < need || s->rows[i] > height)
            return false;
    }
    return true;
}

static int64_t lines_of(const Stages *s)
{
    int64_t bytes = 0;
    for (int i = 0; i + 1 < s->n; i++) {
        const Dim *y = s->conv[i]->out[0]->type.dim;
        bytes += 4 * s->rows[i] * y[1].value * dim_upper(y[3]);
    }
    return bytes;
}

bool emit_stages(Function *f, const Node *group, const Graph *body, bool *skip)
{
    Stages s = {.n = 0};
    if (!find_stages(f, body, skip, &s) || arg_count(group, "tile") != s.n ||
        !arg_ints(group, "tile", s.rows, MAX_STAGES) || !check_rows(&s))
        return function_refuse(f, group, "runs plain convolutions one after the other by rows, "
                                         "with lines as `tile` says");
    put(&f->body, "    const EtcStage stage[%d] = {\n", s.n);
    for (int i = 0; i < s.n; i++)
        if (!emit_stage(f, s.conv[i], s.clamp[i], (int)s.rows[i]))
            return false;
    put(&f->body, "    };\n");
    emit_stream(f, arg_value(s.conv[0], "input"), s.conv[s.n - 1]->out[0], s.n,
                (int)s.rows[s.n - 1]);
    int64_t lines = lines_of(&s);
    f->e->lines_bytes = lines > f->e->lines_bytes ? lines : f->e->lines_bytes;
    return true;
}
