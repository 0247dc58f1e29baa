/* table.h -- rows of a table kept as integers, as floats: (q - zero) * scale.
 *
 * Rows are of n numbers, each `group` of which share a scale and a zero point, [rows][n / group].
 * Of 4 bits two share a byte: number 2i, plus 8, is its high half, number 2i + 1 the low one.
 */
#ifndef ETC_TABLE_H
#define ETC_TABLE_H

#include "runtime-lite/kernels/core.h"

typedef struct EtcTable {
    int64_t count, rows, n, group; /* indices; the table's rows, none 0; a row's numbers */
    int32_t bits, is_u8;           /* 4 or 8; of 8: 0 to 255 */
} EtcTable;

ETC_INLINE void etc_table_row(const uint8_t *q, const float *scale, const float *zero, float *y,
                              const EtcTable *g)
{
    for (int64_t i = 0; i < g->n; i++) {
        const int32_t byte = q[(g->bits == 4) ? (i / 2) : i];
        const int32_t half = (((i % 2) != 0) ? (byte & 15) : (byte >> 4)) - 8;
        const int32_t whole = ((g->is_u8 != 0) || (byte < 128)) ? byte : (byte - 256);
        const float v = (float)((g->bits == 4) ? half : whole);
        y[i] = (v - ((zero != NULL) ? zero[i / g->group] : 0.0f)) * scale[i / g->group];
    }
}

/* zero: NULL where all are 0.  An index out of range counts as the nearest one in range, and makes
 * the result 0. */
ETC_INLINE int etc_table_f32(const void *q, const float *scale, const float *zero,
                             const int64_t *index, float *y, const EtcTable *g)
{
    const int64_t row = (g->bits == 4) ? (g->n / 2) : g->n, groups = g->n / g->group;
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
