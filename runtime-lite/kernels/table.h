/* table.h -- rows of a table of integers, read as floats: (q - zero) * scale.
 *
 * A row has n numbers.  Each `group` of them share a scale and a zero point, which are stored as
 * [rows][n / group].  Two numbers of 4 bits share a byte: its high half is number 2i plus 8, and
 * its low half is number 2i + 1 plus 8. */
#ifndef ETC_TABLE_H
#define ETC_TABLE_H

#include "runtime-lite/kernels/core.h"

typedef struct EtcTable {
    /* indices; rows of the table, at least 1; numbers of a row; numbers that share a scale */
    int64_t count, rows, n, group;
    int32_t bits, is_u8; /* 4 or 8; is_u8 1: numbers of 8 bits are 0 to 255, 0: they are signed */
} EtcTable;

/* Converts the n numbers of a row to floats.  zero: NULL if all zero points are 0. */
ETC_INLINE void etc_table_row(const uint8_t *q, const float *scale, const float *zero, float *y,
                              const EtcTable *g)
{
    for (int64_t i = 0; i < g->n; i++) {
        const int32_t byte = q[(g->bits == 4) ? (i / 2) : i];
        const int32_t half = (((i % 2) != 0) ? (byte & 15) : (byte >> 4)) - 8;
        const int32_t whole = ((g->is_u8 != 0) || (byte < 128)) ? byte : (byte - 256);
        const float v = (float)((g->bits == 4) ? half : whole);
        const int64_t group = etc_over(i, g->group);
        y[i] = (v - ((zero != NULL) ? zero[group] : 0.0f)) * scale[group];
    }
}

/* Writes the rows that the indices name to y, as floats.  zero: NULL if all zero points are 0.  An
 * index out of range counts as the nearest one in range.  Returns 1, or 0 if an index is out of
 * range. */
ETC_INLINE int etc_table_f32(const void *q, const float *scale, const float *zero,
                             const int64_t *index, float *y, const EtcTable *g)
{
    const int64_t row = (g->bits == 4) ? (g->n / 2) : g->n, groups = etc_over(g->n, g->group);
    int ok = 1;
    for (int64_t i = 0; i < g->count; i++) {
        const int64_t at = etc_max_i64(0, etc_min_i64(index[i], g->rows - 1));
        ok = (at == index[i]) ? ok : 0;
        etc_table_row((const uint8_t *)q + (at * row), scale + (at * groups),
                      (zero != NULL) ? (zero + (at * groups)) : NULL, y + (i * g->n), g);
    }
    return ok;
}

#endif
