/* isa_amx.h -- the tile registers of AMX, for products of bytes and of bfloat16 on Linux.
 *
 * A tile has up to 16 rows of 64 bytes.  The compiler need not know the instructions, and the CPU is
 * asked for them at run time, so code for AVX-512 with VNNI has them too.  Their sums of bytes are
 * those of etc_dot.  -DETC_NO_AMX leaves them out. */
#ifndef ETC_ISA_AMX_H
#define ETC_ISA_AMX_H

#include "runtime-lite/kernels/core.h"

#if defined(__AVX512VNNI__) && defined(__x86_64__) && defined(__linux__) && !defined(ETC_FREESTANDING) && !defined(ETC_NO_AMX)
#define ETC_TILES 1

/* The operand of LDTILECFG. */
typedef struct EtcTileShapes {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} EtcTileShapes;

/* Returns whether the CPU has tiles and Linux lets this process use them.  Linux saves them only for
 * processes that have asked (ARCH_REQ_XCOMP_PERM of arch_prctl, for the state of number 18). */
ETC_OUTLINE int etc_has_tiles(void)
{
    static int known; /* 0: nobody has asked; 1: no; 2: yes */
    int is = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (is == 0) {
        uint32_t a = 7, b, c = 0, d;
        long status = 158;
        __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
        if (((d >> 22) & 13u) == 13u) { /* AMX-BF16, AMX-TILE, AMX-INT8 */
            __asm__ volatile("syscall"
                             : "+a"(status)
                             : "D"(0x1023L), "S"(18L)
                             : "rcx", "r11", "memory");
        }
        is = (status == 0) ? 2 : 1;
        __atomic_store_n(&known, is, __ATOMIC_RELAXED);
    }
    return is == 2;
}

/* Makes tiles 0 to 3 those of sums, 4 and 5 those of weights, and 6 and 7 those of pixels: 16 rows of
 * n words, by n rows of 16 words.  Each thread has tiles of its own. */
ETC_INLINE void etc_tiles_start(int64_t n)
{
    EtcTileShapes s = {1, 0, {0}, {0}, {0}};
    for (int i = 0; i < 8; i++) {
        s.row_bytes[i] = (uint16_t)(((i == 4) || (i == 5)) ? (4 * n) : 64);
        s.rows[i] = (uint8_t)((i >= 6) ? n : 16);
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(s) : "memory");
}

ETC_INLINE void etc_tiles_end(void)
{
    __asm__ volatile("tilerelease" : : : "memory");
}

ETC_INLINE void etc_tiles_zero(void)
{
    __asm__ volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" : : : "memory");
}

/* Adds the products of a tile of weights at w, and of another at `below` if there are two, with one or
 * two tiles of pixels at x.  w_row and x_row are the bytes from row to row. */
ETC_INLINE void etc_tiles_add(const int8_t *w, const int8_t *below, int64_t w_row, int n_w,
                              const uint32_t *x, int64_t x_row, int n_x)
{
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm4\n\ttileloadd (%2,%3,1), %%tmm6\n\t"
                     "tdpbsud %%tmm6, %%tmm4, %%tmm0"
                     : : "r"(w), "r"(w_row), "r"(x), "r"(x_row) : "memory");
    if (n_x > 1) {
        __asm__ volatile("tileloadd 64(%0,%1,1), %%tmm7\n\ttdpbsud %%tmm7, %%tmm4, %%tmm1"
                         : : "r"(x), "r"(x_row) : "memory");
    }
    if (n_w > 1) {
        __asm__ volatile("tileloadd (%0,%1,1), %%tmm5\n\ttdpbsud %%tmm6, %%tmm5, %%tmm2"
                         : : "r"(below), "r"(w_row) : "memory");
    }
    if ((n_w > 1) && (n_x > 1)) {
        __asm__ volatile("tdpbsud %%tmm7, %%tmm5, %%tmm3" : : : "memory");
    }
}

/* Adds the products of a tile of bfloat16 at a, and of another at `below` if n_a is 2, with that at b and
 * that at `right` if n_b is 2.  a_row and b_row are the bytes from row to row. */
ETC_INLINE void etc_tiles_add_bfloats(const uint8_t *a, const uint8_t *below, int64_t a_row, int n_a,
                                      const uint8_t *b, const uint8_t *right, int64_t b_row, int n_b)
{
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm4\n\ttileloadd (%2,%3,1), %%tmm6\n\t"
                     "tdpbf16ps %%tmm6, %%tmm4, %%tmm0"
                     : : "r"(a), "r"(a_row), "r"(b), "r"(b_row) : "memory");
    if (n_b > 1) {
        __asm__ volatile("tileloadd (%0,%1,1), %%tmm7\n\ttdpbf16ps %%tmm7, %%tmm4, %%tmm1"
                         : : "r"(right), "r"(b_row) : "memory");
    }
    if (n_a > 1) {
        __asm__ volatile("tileloadd (%0,%1,1), %%tmm5\n\ttdpbf16ps %%tmm6, %%tmm5, %%tmm2"
                         : : "r"(below), "r"(a_row) : "memory");
    }
    if ((n_a > 1) && (n_b > 1)) {
        __asm__ volatile("tdpbf16ps %%tmm7, %%tmm5, %%tmm3" : : : "memory");
    }
}

/* Makes each of 16 rows of tiles 0 and 2 the 16 words at `row`, and those of 1 and 3 the words behind. */
ETC_INLINE void etc_tiles_rows_of(const void *row)
{
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm0\n\ttileloadd (%0,%1,1), %%tmm2\n\t"
                     "tileloadd 64(%0,%1,1), %%tmm1\n\ttileloadd 64(%0,%1,1), %%tmm3"
                     : : "r"(row), "r"(INT64_C(0)) : "memory");
}

/* Stores tile 0, tile 1 right of it if `across` is 2, and tiles 2 and 3 below them if `down` is 2.  `row`
 * is the bytes from row to row. */
ETC_INLINE void etc_tiles_store(void *to, int64_t row, int down, int across)
{
    uint8_t *below = (uint8_t *)to + (16 * row);
    __asm__ volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(to), "r"(row) : "memory");
    if (across > 1) {
        __asm__ volatile("tilestored %%tmm1, 64(%0,%1,1)" : : "r"(to), "r"(row) : "memory");
    }
    if (down > 1) {
        __asm__ volatile("tilestored %%tmm2, (%0,%1,1)" : : "r"(below), "r"(row) : "memory");
    }
    if ((down > 1) && (across > 1)) {
        __asm__ volatile("tilestored %%tmm3, 64(%0,%1,1)" : : "r"(below), "r"(row) : "memory");
    }
}
#endif

#endif
