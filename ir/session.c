/* session.c -- the rows of the tails, and new sessions. */
#include "ir/session.h"
#include <string.h>

bool session_calls(const Session *s, const OpInfo *op)
{
    return op->has_out && (!(op->flags & LITE) || s->runtime == RUNTIME_LITE);
}

static bool has_template(const Session *s, const OpInfo *op)
{
    (void)s;
    return op->has_template;
}

const Tail tail_pte = {
    .name = "pte",
    .what = "a .pte",
    .id = 0,
    .takes = session_calls,
    .has_backends = true,
    .is_tiled = true,
    .views_when_run = true,
    .checks_when_run = true,
    .plans_ports = true,
    .plans_states = true,
};

const Tail tail_c = {
    .name = "c",
    .what = "C",
    .id = 1,
    .takes = has_template,
    .has_groups = true,
};

const Tail *tail_find(const char *name)
{
    return name && !strcmp(name, tail_c.name) ? &tail_c : &tail_pte;
}

Session *session_new(Arena *a)
{
    Session *s = NEW(a, Session, 1);
    s->arena = a;
    s->tail = &tail_pte;
    return s;
}

bool session_takes(const Session *s, OpId op)
{
    assert(op < N_OPS);
    if (s->is_fixed_point && !strcmp(op_c(op), "attention"))
        return false; /* decompose expands it; there are kernels for its products and softmax */
    return s->tail->takes(s, &op_info[op]) && !(s->lacks && s->lacks[op]);
}

void session_note(Session *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_print(s->arena, fmt, ap);
    va_end(ap);
    PUSH(s->arena, s->note, s->n_notes, text);
}
