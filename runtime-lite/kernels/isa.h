/* isa.h -- the instruction set that a file is compiled for: the one place that chooses it.
 *
 * Each isa_*.h has the same set of constants and steps, and kernels are written once over these:
 *
 *   ETC_VEC, ETC_REP, ETC_IOTA    bytes of a vector; its initializers x, x .. and 0, 1 ..
 *   ETC_REGISTERS                 vectors that registers hold
 *   ETC_FMA_BY_DOUBLE             1: etc_fma is emulated, and a tile's terms are better added by
 *                                 etc_terms_by_double
 *   ETC_PIXELS                    pixels of a tile whose vectors hold channels, two each; 1: such
 *                                 tiles are of no use
 *   ETC_PUT_VECTORS               vectors whose bytes etc_put_bytes puts together
 *   ETC_PACKS_BYTES               1: etc_every_second is better than bytes one by one
 *   ETC_TERMS                     products that etc_dot adds to a lane: of 4 bytes, or of 2 numbers
 *                                 of 16 bits
 *   ETC_SIGNED_TERMS              1: the 4 bytes of x have a sign; else those of w alone
 *
 *   etc_load_part, etc_store_part        the first n floats, fewer than lanes and maybe negative;
 *                                        the rest is zero, or stays as it is
 *   etc_at_least, etc_at_most            lo where a < lo, hi where a > hi; a NaN stays
 *   etc_within                           the same of numbers, whose zeros may change their sign
 *   etc_vgather                          the floats that lanes name
 *   etc_even, etc_odd                    the even lanes of a, or the odd ones, then those of b
 *   etc_fma, etc_vsqrt                   rounded once
 *   etc_terms_by_double                  a tile's terms; 0: not done
 *   etc_transpose4                       four rows of four into four columns
 *
 *   etc_widen, etc_low_bytes             bytes without a sign as lanes; the low bytes of lanes
 *   etc_store_low_part                   the first n of these, 0 <= n < lanes
 *   etc_put_bytes                        those of n vectors (1, 2 or all), each with `add`
 *   etc_widen_i8, etc_widen_half         a vector of such numbers as lanes
 *   etc_widen_eight                      eight bytes as numbers of 16 bits
 *   etc_every_second                     16 bytes of 32: the first of each pair, or the second
 *   etc_weave                            16 bytes of four lines side by side; 0: not done
 *
 *   etc_dot, etc_dot_pairs               sums of ETC_TERMS products; of two numbers of 16 bits that
 *                                        etc_mix laid together, by a pair in each lane of w
 *   etc_x_terms, etc_w_terms             bytes as etc_dot takes them, where x and w differ in sign
 *   etc_term_part                        n bytes of terms, fewer than a vector, then zeros
 *   etc_lane_sums                        lane i: the sum of v[i]'s lanes
 *   etc_mix, etc_unmix                   numbers of 16 bits in turn; their sums in order again
 *
 * Each defines the constants, then includes lanes.h, whose types follow from them, and isa_x86.h or
 * isa_gnu.h, which hold what several sets share.  emit-c copies from the header of its target, or
 * from all, each under its condition here.
 */
#ifndef ETC_ISA_H
#define ETC_ISA_H

#if defined(__AVX512F__)
#include "runtime-lite/kernels/isa_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "runtime-lite/kernels/isa_avx2.h"
#elif defined(__SSE2__)
#include "runtime-lite/kernels/isa_sse2.h"
#elif defined(__aarch64__)
#include "runtime-lite/kernels/isa_neon.h"
#else
#include "runtime-lite/kernels/isa_plain.h"
#endif

#endif
