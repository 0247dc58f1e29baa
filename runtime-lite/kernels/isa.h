/* isa.h -- the choice of the instruction set that a file is compiled for.
 *
 * Each isa_*.h defines the same constants and functions; the kernels are written once with them:
 *
 *   ETC_VEC, ETC_REP, ETC_IOTA    the bytes of a vector; the initializers x, x, .. and 0, 1, ..
 *   ETC_REGISTERS                 the number of vector registers; 8: those of a Cortex-M's FPU, which
 *                                 computes one float at a time
 *   ETC_FMA_BY_DOUBLE             1: etc_fma is emulated in double
 *   ETC_PIXELS                    the most pixels of a tile in across.h, which has two vectors of
 *                                 channels per pixel; 1: such tiles are not used
 *   ETC_PUT_VECTORS               the most vectors whose bytes etc_put_bytes stores
 *   ETC_PACKS_BYTES               1: etc_every_second is faster than a loop over bytes
 *   ETC_TERMS                     the products that etc_dot adds to a lane: 4 of bytes, or 2 of
 *                                 16-bit integers
 *   ETC_DOT_LANES                 1: there is a step that multiplies by the bytes in one lane of w
 *   ETC_SIGNED_TERMS              1: etc_dot reads the bytes of x as signed; 0: as unsigned; the
 *                                 bytes of w are always signed
 *
 *   etc_load_part, etc_store_part        load or store the first n floats; n is less than the lanes
 *                                        and may be negative; load sets the other lanes to zero
 *   etc_at_least, etc_at_most            replace lanes with lo if a < lo, with hi if a > hi; keep
 *                                        NaN
 *   etc_within                           does both for numbers; zeros may change their sign
 *   etc_vgather                          loads the floats whose indices the lanes contain
 *   etc_vgather_pairs                    also loads the floats behind them
 *   etc_of_8                             loads each lane from 8 floats, by the low bits of its index
 *   etc_even, etc_odd                    return the even or odd lanes of a, then those of b
 *   etc_zip_low, etc_zip_high            return the lanes of a and b in turn, in two vectors
 *   etc_fma, etc_vsqrt                   return a * b + c and the square root, rounded once
 *   etc_fused, etc_root_f32, _f64        do so for one number
 *   etc_add_terms, etc_add_taps          add the terms of a tile, the taps of four rows; return 0 if
 *                                        not done
 *   etc_transpose4                       transposes four rows of four floats
 *
 *   etc_widen, etc_low_bytes             convert unsigned bytes to lanes, lanes to their low bytes
 *   etc_store_low_part                   stores the first n low bytes, 0 <= n < lanes
 *   etc_put_bytes                        stores n vectors' low bytes (n: 1, 2 or all), plus `add`
 *   etc_widen_i8, etc_widen_half         convert int8 or binary16 to a vector of lanes
 *   etc_widen_eight                      converts eight unsigned bytes to 16-bit integers
 *   etc_every_second                     copies bytes 0, 2, ... 14
 *   etc_max_bytes                        returns the larger of each pair of 16 bytes
 *   etc_weave                            interleaves 16 bytes of four lines; returns 0 if not done
 *
 *   etc_dot, etc_dot_pairs               add to each lane ETC_TERMS products, or two products of
 *                                        16-bit integers from etc_mix and a lane of w
 *   etc_slide                            loads 4 bytes for each lane, `step` (1 or 2) from lane to
 *                                        lane; it may read 4 bytes for each lane
 *   etc_x_terms, etc_w_terms             convert bytes of x or w to the operands of etc_dot
 *   etc_term_part                        loads n bytes of terms, fewer than a vector, then zeros
 *   etc_lane_sums                        returns in lane i the sum of v[i]'s lanes
 *   etc_mix, etc_unmix                   interleaves 16-bit integers; stores their sums in order
 *
 * Each header defines the constants, then includes lanes.h, whose types depend on them,
 * isa_exact.h, and isa_x86.h or isa_gnu.h, which have what several sets share.  emit-c copies from
 * the header of its target, or from all headers, each under its condition below. */
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
