/* order_window.c -- lowers the peak of an order by reordering windows of it.
 *
 * The bytes that are live before and after a window do not depend on the order inside, so each
 * window is a problem of its own: find an order of its steps that stays below the peak.  A state
 * is the set of steps that are done.  The bytes that are live after a set do not depend on the
 * order either, so of all ways to a set only the one with the lowest peak is kept.  Sets are
 * visited by size, and those that reach the peak are dropped.  If more than MAX_STATES sets of
 * one size are left, those with the fewest live bytes are kept.  So the search is exact for
 * small and narrow windows, and a beam search otherwise.  The peak falls only if every window
 * that contains it gets lower; the first window that does not ends the search. */
#include "passes/order.h"
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 60, MAX_STATES = 2000, HASH = 8192 };

typedef struct Reach {
    uint64_t done, ready; /* ready: the steps that may come next */
    int64_t live, peak;
    int from, last; /* state of the size before, step done last */
} Reach;

typedef struct Local { /* a chunk that steps of the window read or make */
    uint64_t readers;
    int64_t bytes;
    bool stays;     /* read behind the window */
} Local;

typedef struct Slot { /* a slot of the hash table of states */
    int level, state; /* the slot counts as empty on all other levels */
} Slot;

typedef struct Window {
    const Model *m;
    Node *const *node;
    int *order, from, n;
    uint64_t before[WINDOW]; /* steps of the window whose results a step reads */
    uint64_t after[WINDOW];  /* and those that read its own */
    int *slot_of;            /* by step: its position in the window, or -1 */
    Local *local;            /* by chunk; valid if `mark` equals the window's stamp */
    int *mark, stamp;
    int *left;               /* by chunk: how many readers are in the window or after it */
    Slot *hash;
    int n_levels;            /* so far */
    int64_t limit, *work;
    Arena *tmp;
} Window;

/* -- a window ---------------------------------------------------------------------------------- */

static Local *local_of(Window *w, int chunk)
{
    if (w->mark[chunk] != w->stamp) {
        w->mark[chunk] = w->stamp;
        w->local[chunk] = (Local){0, w->m->chunk[chunk].bytes, w->m->chunk[chunk].kept};
    }
    return &w->local[chunk];
}

static void open_window(Window *w)
{
    assert(w->n <= WINDOW);
    w->stamp++;
    memset(w->after, 0, sizeof w->after);
    for (int i = 0; i < w->n; i++)
        w->slot_of[w->order[w->from + i]] = i;
    for (int i = 0; i < w->n; i++) {
        int k = w->order[w->from + i];
        const Step *s = &w->m->step[k];
        const Node *n = w->node[k];
        w->before[i] = 0;
        for (int j = 0; j < n->n_in; j++) {
            int def = w->m->number[n->in[j]->index];
            if (def < 0 || w->slot_of[def] < 0)
                continue;
            w->before[i] |= (uint64_t)1 << w->slot_of[def];
            w->after[w->slot_of[def]] |= (uint64_t)1 << i;
        }
        for (int j = s->first_read; j < s->first_read + s->n_reads; j++)
            local_of(w, w->m->read[j])->readers |= (uint64_t)1 << i;
        for (int j = s->first_made; j < s->first_made + s->n_made; j++)
            local_of(w, j);
    }
    for (int i = 0; i < w->n; i++) {
        const Step *s = &w->m->step[w->order[w->from + i]];
        for (int j = 0; j < s->n_reads + s->n_made; j++) {
            int c = j < s->n_reads ? w->m->read[s->first_read + j]
                                   : s->first_made + j - s->n_reads;
            Local *l = local_of(w, c);
            l->stays = l->stays || w->left[c] > __builtin_popcountll(l->readers);
        }
    }
}

static void close_window(Window *w)
{
    for (int i = 0; i < w->n; i++)
        w->slot_of[w->order[w->from + i]] = -1;
}

static bool dies(const Window *w, int chunk, uint64_t done)
{
    const Local *l = &w->local[chunk];
    return !l->stays && !(l->readers & ~done);
}

/* Returns the steps that may come once step i is done, too. */
static uint64_t ready_after(const Window *w, uint64_t ready, uint64_t done, int i)
{
    ready &= ~((uint64_t)1 << i);
    for (uint64_t left = w->after[i]; left; left &= left - 1) {
        int k = __builtin_ctzll(left);
        if (!(w->before[k] & ~done))
            ready |= (uint64_t)1 << k;
    }
    return ready;
}

/* Returns the state after step i, which follows state s. */
static Reach advance(Window *w, const Reach *s, int i)
{
    const Step *step = &w->m->step[w->order[w->from + i]];
    uint64_t done = s->done | (uint64_t)1 << i;
    int64_t made = 0, freed = 0;
    bool over = step->n_over > 0;
    for (int k = step->first_over; k < step->first_over + step->n_over; k++)
        over = over && dies(w, w->m->read[k], done);
    for (int k = step->first_made; k < step->first_made + step->n_made; k++) {
        made += w->local[k].bytes;
        freed += dies(w, k, done) ? w->local[k].bytes : 0;
    }
    for (int k = step->first_read; k < step->first_read + step->n_reads; k++)
        freed += dies(w, w->m->read[k], done) ? w->local[w->m->read[k]].bytes : 0;
    *w->work -= 1 + step->n_reads + step->n_made;
    int64_t peak = s->live + (over ? 0 : made);
    return (Reach){done, ready_after(w, s->ready, done, i), s->live + made - freed,
                   peak > s->peak ? peak : s->peak, 0, i};
}

/* -- states of one size ------------------------------------------------------------------------ */

typedef struct Level {
    Reach *state;
    int n;
} Level;

static void add_state(Window *w, Level *l, Reach s)
{
    uint32_t h = (uint32_t)((s.done * 0x9e3779b97f4a7c15u) >> 40) % HASH;
    while (w->hash[h].level == w->n_levels && l->state[w->hash[h].state].done != s.done)
        h = (h + 1) % HASH;
    if (w->hash[h].level == w->n_levels) {
        Reach *known = &l->state[w->hash[h].state];
        *known = s.peak < known->peak ? s : *known;
        return;
    }
    if (l->n >= HASH / 2)
        return; /* too wide: the beam is full */
    w->hash[h] = (Slot){w->n_levels, l->n};
    PUSH(w->tmp, l->state, l->n, s);
}

static int by_live(const void *a, const void *b)
{
    const Reach *x = *(const Reach *const *)a, *y = *(const Reach *const *)b;
    if (x->live != y->live)
        return x->live < y->live ? -1 : 1;
    if (x->peak != y->peak)
        return x->peak < y->peak ? -1 : 1;
    return x->done < y->done ? -1 : x->done > y->done;
}

/* Keeps the states with the least live bytes; pointers are sorted, as they move faster. */
static void keep_best(Window *w, Level *l)
{
    assert(l->n >= MAX_STATES);
    const Reach **by = NEW(w->tmp, const Reach *, l->n);
    Reach *best = NEW(w->tmp, Reach, MAX_STATES);
    for (int k = 0; k < l->n; k++)
        by[k] = &l->state[k];
    qsort(by, (size_t)l->n, sizeof *by, by_live);
    for (int k = 0; k < MAX_STATES; k++)
        best[k] = *by[k];
    *l = (Level){best, MAX_STATES};
}

/* Computes the level after `l`: the sets with one more step that stay below the limit. */
static Level next_level(Window *w, const Level *l)
{
    Level next = {0};
    w->n_levels++;
    for (int k = 0; k < l->n && *w->work > 0; k++)
        for (uint64_t left = l->state[k].ready; left; left &= left - 1) {
            Reach s = advance(w, &l->state[k], __builtin_ctzll(left));
            s.from = k;
            if (s.peak < w->limit)
                add_state(w, &next, s);
        }
    if (next.n > MAX_STATES)
        keep_best(w, &next);
    return next;
}

/* Reorders the window so that it stays below the limit; false: no way was found. */
static bool search(Window *w, int64_t live)
{
    Level *level = NEW(w->tmp, Level, w->n + 1);
    int taken[WINDOW], best = 0;
    Reach start = {0, 0, live, 0, 0, 0};
    for (int i = 0; i < w->n; i++)
        start.ready |= (uint64_t)!w->before[i] << i;
    PUSH(w->tmp, level[0].state, level[0].n, start);
    for (int k = 0; k < w->n; k++)
        level[k + 1] = next_level(w, &level[k]);
    if (!level[w->n].n || *w->work <= 0)
        return false;
    for (int k = w->n; k > 0; k--) {
        const Reach *s = &level[k].state[best];
        taken[k - 1] = w->order[w->from + s->last];
        best = s->from;
    }
    memcpy(w->order + w->from, taken, (size_t)w->n * sizeof *taken);
    return true;
}

/* -- the peaks --------------------------------------------------------------------------------- */

/* Counts the readers of chunks at or behind position `from`.  Returns the bytes that live before
 * it. */
static int64_t rewind_to(Window *w, int from)
{
    int64_t live = 0;
    const Model *m = w->m;
    for (int c = 0; c < m->n_chunks; c++) {
        w->left[c] = m->chunk[c].readers;
        live += m->chunk[c].def < 0 ? m->chunk[c].bytes : 0;
    }
    for (int i = 0; i < from; i++) {
        const Step *s = &m->step[w->order[i]];
        for (int k = s->first_made; k < s->first_made + s->n_made; k++)
            live += w->left[k] || m->chunk[k].kept ? m->chunk[k].bytes : 0;
        for (int k = s->first_read; k < s->first_read + s->n_reads; k++) {
            int c = m->read[k];
            live -= --w->left[c] || m->chunk[c].kept ? 0 : m->chunk[c].bytes;
        }
    }
    *w->work -= from;
    return live;
}

/* Tries windows with position `at` in the middle, near the end and near the start. */
static bool lower_at(Window *w, int at, int n_steps)
{
    static const int lead[] = {WINDOW / 2, WINDOW - 8, 8};
    int most = n_steps > WINDOW ? n_steps - WINDOW : 0, tried = -1;
    for (int i = 0; i < 3 && *w->work > 0; i++) {
        w->from = at > lead[i] ? at - lead[i] : 0;
        w->from = w->from < most ? w->from : most;
        w->n = n_steps - w->from < WINDOW ? n_steps - w->from : WINDOW;
        if (w->from == tried)
            continue;
        tried = w->from;
        int64_t live = rewind_to(w, w->from);
        open_window(w);
        bool ok = search(w, live);
        close_window(w);
        if (ok)
            return true;
    }
    return false;
}

void order_windows(const Model *m, Node *const *node, int *order, int64_t *work, Arena *tmp)
{
    Arena *scratch = arena_new();
    Window w = {.m = m, .node = node, .order = order, .work = work, .tmp = scratch,
                .slot_of = NEW(tmp, int, m->n_steps + 1), .local = NEW(tmp, Local, m->n_chunks + 1),
                .mark = NEW(tmp, int, m->n_chunks + 1), .left = NEW(tmp, int, m->n_chunks + 1),
                .hash = NEW(tmp, Slot, HASH)};
    int64_t *at = NEW(tmp, int64_t, m->n_steps + 1), floor = model_floor(m);
    for (int i = 0; i < m->n_steps; i++)
        w.slot_of[i] = -1;
    for (bool lower = true; lower && *work > 0;) {
        w.limit = model_play(m, order, at, scratch);
        lower = w.limit > floor;
        *work -= m->n_steps;
        for (int i = 0; lower && i < m->n_steps && *work > 0; i++) {
            if (at[i] < w.limit)
                continue;
            lower = lower_at(&w, i, m->n_steps);
            if (lower) /* all of the window is below the limit now */
                i = w.from + w.n - 1;
        }
        arena_reset(scratch);
    }
    arena_free(scratch);
}
