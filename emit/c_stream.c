/* c_stream.c -- prints groups of convolutions that run one after the other by rows.
 * passes/stream.c chooses them. */
#include "emit/c_emit.h"
#include <string.h>

enum { MAX_STAGES = 4 };

typedef struct Stages {
    const Node *node[MAX_STAGES];
    Conv conv[MAX_STAGES];
    Clamp clamp[MAX_STAGES];
    int64_t rows[MAX_STAGES]; /* the rows that a stage keeps; for the last, the rows per turn */
    int n;
} Stages;

static bool is_stage(const Node *n, Conv *c)
{
    const Type y = n->out[0]->type;
    return conv_read(n, c) && !c->is_transposed && c->axes == 2 && y.rank == 4 &&
           type_is_static(c->w->type) && !y.dim[1].expr && type_bytes(y) != INT64_MAX;
}

/* Finds the convolutions of the body, and marks in `skip` what they compute.  Returns false if one
 * cannot be a stage or does not read the one before it.  A clamp between two of them is computed by
 * the core of the first. */
static bool find_stages(Function *f, const Graph *body, bool *skip, Stages *s)
{
    const Value *x = NULL;
    for (const Node *n = body->first; n; n = n->next) {
        if (!strcmp(op_c(n->op), "pointwise"))
            continue;
        if (s->n == MAX_STAGES || !is_stage(n, &s->conv[s->n]) || (x && s->conv[s->n].x != x))
            return false;
        x = n->out[0];
        skip[x->index] = true;
        s->clamp[s->n] = join_clamp(f, body, &x, skip);
        s->node[s->n++] = n;
    }
    return true;
}

/* Checks that the lines of each stage hold the rows that the next stage reads at a time, and
 * have no more rows than the image. */
static bool check_rows(const Stages *s)
{
    for (int i = 0; i < s->n; i++) {
        int64_t need = 1, height = dim_upper(s->node[i]->out[0]->type.dim[2]);
        if (i + 1 < s->n) {
            const Conv *next = &s->conv[i + 1];
            need = access_window(s->rows[i + 1], next->kernel[0], next->stride[0], next->dilation[0]);
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
    assert(s->n > 0);
    for (int i = 0; i + 1 < s->n; i++) {
        const Dim *y = s->node[i]->out[0]->type.dim;
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
        if (!emit_stage(f, s.node[i], s.clamp[i], (int)s.rows[i]))
            return false;
    put(&f->body, "    };\n");
    emit_stream(f, s.conv[0].x, s.node[s.n - 1]->out[0], s.n, (int)s.rows[s.n - 1]);
    int64_t lines = lines_of(&s);
    f->e->lines_bytes = lines > f->e->lines_bytes ? lines : f->e->lines_bytes;
    return true;
}
