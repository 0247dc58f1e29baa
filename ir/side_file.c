/* side_file.c -- the bytes that the compiler made, which lie in no file of the model.  A textual
 * program calls the file that holds them "-". */
#include "ir/ir.h"
#include <stdlib.h>
#include <string.h>

static bool is_made(const State *s)
{
    return !strcmp(s->file, "-");
}

static int by_offset(const void *a, const void *b)
{
    const State *x = *(State *const *)a, *y = *(State *const *)b;
    return x->offset != y->offset ? (x->offset > y->offset) - (x->offset < y->offset)
                                  : x->index - y->index;
}

void program_write_data(const Program *p, FILE *out)
{
    Arena *tmp = arena_new();
    State **made = NULL;
    int n = 0;
    int64_t at = 0;
    for (int i = 0; i < p->n_states; i++)
        if (is_made(p->state[i]) && (p->state[i]->data || p->state[i]->make))
            PUSH(tmp, made, n, p->state[i]);
    qsort(made, (size_t)n, n ? sizeof *made : 1, by_offset);
    for (int i = 0; i < n; i++) {
        int64_t bytes = type_bytes(made[i]->type);
        for (; at < made[i]->offset; at++)
            fputc(0, out);
        if (at > made[i]->offset) /* two states share these bytes */
            continue;
        fwrite(state_contents(made[i], tmp), 1, (size_t)bytes, out);
        at += bytes;
    }
    arena_free(tmp);
}

bool program_read_data(Program *p, const uint8_t *data, int64_t n, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < p->n_states; i++) {
        State *s = p->state[i];
        int64_t bytes = type_bytes(s->type);
        if (!is_made(s))
            continue;
        if (s->offset > n || bytes > n - s->offset) {
            ok = diag_error(d, (Loc){.file = p->name},
                            "state %%%s lies past the end of the side file", s->name);
            continue;
        }
        s->data = NEW(p->arena, uint8_t, bytes + 1);
        s->n_bytes = bytes;
        if (bytes) /* a side file of no bytes has no address */
            memcpy(s->data, data + s->offset, (size_t)bytes);
    }
    return ok;
}
