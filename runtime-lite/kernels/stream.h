/* stream.h -- convolutions one after the other, some rows at a time.
 *
 * Only those rows of the image between two convolutions are kept that the next one still reads.
 * They are in lines [channels][room][width], which hold rows from .. to - 1 of the image.  Each
 * output is the same sum as without lines.  Stages have one image and are not transposed, and
 * none of their sizes exceeds int32. */
#ifndef ETC_STREAM_H
#define ETC_STREAM_H

#include "runtime-lite/kernels/conv.h"

#define ETC_MAX_STAGES 4

typedef struct EtcStage {
    const float *w, *bias;
    EtcConv g;
    int64_t room; /* the rows of the lines that it fills; not read for the last stage */
} EtcStage;

typedef struct EtcLines {
    float *p;
    int64_t from, to;
} EtcLines;

/* Computes rows from .. to - 1 of the stage's output.  x holds the rows of its input from x_from
 * on, and y those of its output from y_from on. */
ETC_INLINE void etc_stage_rows(const EtcStage *s, const float *x, int64_t x_from, int64_t x_plane,
                               float *y, int64_t y_from, int64_t y_plane, int64_t from, int64_t to,
                               void *work)
{
    EtcConv g = s->g;
    g.x_plane = x_plane;
    g.y_plane = y_plane;
    const int64_t first = etc_conv_cut(&g, from, to - from);
    etc_conv_f32(x + ((first - x_from) * g.iw), s->w, s->bias, y + ((from - y_from) * g.ow), &g,
                 work);
}

/* Drops the rows before `from` from the lines. */
ETC_INLINE void etc_lines_slide(const EtcStage *s, EtcLines *l, int64_t from)
{
    const int64_t gone = (from - l->from) * s->g.ow, kept = (l->to - from) * s->g.ow;
    const int64_t planes = s->g.groups * s->g.oc, plane = s->room * s->g.ow;
    if (gone <= 0) {
        return;
    }
    for (int64_t c = 0; c < planes; c++) {
        float *to = l->p + (c * plane);
        for (int64_t i = 0; i < kept; i += ETC_LANES) { /* The rows move to lower addresses. */
            etc_store(to + i, kept - i, etc_load(to + gone + i, kept - i));
        }
    }
    l->from = from;
    l->to = etc_max_i64(l->to, from);
}

/* Computes which rows of the stages before it the last stage needs for its rows from[n - 1] ..
 * to[n - 1] - 1: stage i has to compute rows from[i] .. to[i] - 1. */
ETC_INLINE void etc_stream_needs(const EtcStage *stage, int32_t n, int64_t *from, int64_t *to)
{
    for (int32_t i = n - 1; i > 0; i--) {
        const EtcConv *g = &stage[i].g;
        const int64_t end = (((to[i] - 1) * g->sh) - g->ph) + ((g->kh - 1) * g->dh) + 1;
        to[i - 1] = etc_max_i64(etc_min_i64(end, g->ih), 0);
        from[i - 1] = etc_min_i64(etc_max_i64((from[i] * g->sh) - g->ph, 0), to[i - 1]);
    }
}

/* Runs n stages on x and computes `count` rows of the last one's output from row `first` on, with
 * which y starts, or as many as there are; `rows` at a time.  `lines` has the lines of all stages
 * but the last, one after the other. */
ETC_OUTLINE void etc_stream_f32(const float *x, float *y, const EtcStage *stage, int32_t n,
                                int64_t first, int64_t count, int64_t rows, float *lines, void *work)
{
    const int64_t end = etc_min_i64(first + count, stage[n - 1].g.oh);
    EtcLines l[ETC_MAX_STAGES];
    int64_t from[ETC_MAX_STAGES], to[ETC_MAX_STAGES];
    for (int32_t i = 0; i < n; i++) {
        l[i].p = (i < (n - 1)) ? lines : y;
        l[i].from = 0;
        l[i].to = 0;
        lines += stage[i].g.groups * stage[i].g.oc * stage[i].room * stage[i].g.ow;
    }
    for (int64_t row = first; row < end; row += rows) {
        from[n - 1] = row;
        to[n - 1] = etc_min_i64(row + rows, end);
        etc_stream_needs(stage, n, from, to);
        for (int32_t i = 0; i < n; i++) {
            const EtcConv *g = &stage[i].g;
            const int is_last = i == (n - 1);
            const float *source = (i == 0) ? x : l[i - 1].p;
            const int64_t source_from = (i == 0) ? 0 : l[i - 1].from;
            const int64_t source_rows = (i == 0) ? g->ih : stage[i - 1].room;
            if (!is_last) {
                etc_lines_slide(&stage[i], &l[i], from[i]);
            }
            const int64_t next = etc_max_i64(l[i].to, from[i]);
            if (next < to[i]) {
                etc_stage_rows(&stage[i], source, source_from, source_rows * g->iw, l[i].p,
                               is_last ? first : l[i].from,
                               (is_last ? g->oh : stage[i].room) * g->ow, next, to[i], work);
                l[i].to = to[i];
            }
        }
    }
}

#endif
