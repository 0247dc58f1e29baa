/* cores_hash.c -- runs the dense cores on odd shapes and prints a hash of each one's bits.
 * march.sh compiles it for several instruction sets, optimisation levels, compilers and as C++:
 * every build must print the same. */
#define ETC_HAS_THEN 1
#define ETC_HAS_QUADS 1
#include "runtime-lite/kernels/attention.h"
#include "runtime-lite/kernels/conv.h"
#include "runtime-lite/kernels/copy.h"
#include "runtime-lite/kernels/fft.h"
#include "runtime-lite/kernels/grid.h"
#include "runtime-lite/kernels/group_norm.h"
#include "runtime-lite/kernels/integer_conv.h"
#include "runtime-lite/kernels/integer_linear.h"
#include "runtime-lite/kernels/integer_pool.h"
#include "runtime-lite/kernels/matmul.h"
#include "runtime-lite/kernels/norm.h"
#include "runtime-lite/kernels/packed.h"
#include "runtime-lite/kernels/pointwise.h"
#include "runtime-lite/kernels/pool.h"
#include "runtime-lite/kernels/reduce.h"
#include "runtime-lite/kernels/softmax.h"
#include "runtime-lite/kernels/stream.h"
#include "runtime-lite/kernels/upsample.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 40000 };

static float in_a[N], in_b[N], in_w[N], out[N];
static int64_t where[N];
static union {
    unsigned char bytes[ETC_WORK_BYTES];
    EtcF align;
} work;

static uint32_t next_random(uint32_t *state)
{
    *state = (*state * 1664525u) + 1013904223u;
    return *state >> 8;
}

/* Returns a number from 0 to n - 1. */
static int64_t below(int64_t n, uint32_t *state)
{
    return (int64_t)next_random(state) % n;
}

/* Numbers of many magnitudes, so that sums round; a few are subnormal or exact. */
static void fill_numbers(float *x, uint32_t seed, int spread)
{
    for (int i = 0; i < N; i++) {
        const uint32_t r = next_random(&seed), e = next_random(&seed);
        const uint32_t bits = ((r & 1u) << 31) | ((127u - (e % (uint32_t)spread)) << 23) | (r >> 1);
        memcpy(&x[i], &bits, sizeof bits);
    }
}

static void hash(const char *name, const void *p, size_t bytes)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < bytes; i++) {
        h = (h ^ ((const unsigned char *)p)[i]) * UINT64_C(1099511628211);
    }
    printf("%-24s %08x%08x\n", name, (unsigned)(h >> 32), (unsigned)(h & 0xffffffffu));
}

/* NaN has no defined bits. */
static void hash_floats(const char *name, int n)
{
    for (int i = 0; i < n; i++) {
        out[i] = (out[i] == out[i]) ? out[i] : 12345.0f;
    }
    hash(name, out, (size_t)n * sizeof out[0]);
}

#define UNARY(name, expr)                                     \
    static void hash_##name(void)                             \
    {                                                         \
        etc_##name##_f32(in_a, 1.5f, 0.25f, 0.5f, out, 4099); \
        hash_floats(#name, 4099);                             \
    }
#define BINARY(name, expr)                                          \
    static void hash_##name(void)                                   \
    {                                                               \
        etc_##name##_f32(in_a, in_b, 1.5f, 0.25f, 0.5f, out, 4099); \
        hash_floats(#name, 4099);                                   \
    }
#include "runtime-lite/kernels/pointwise.def"

static void hash_pointwise(void)
{
#define UNARY(name, expr) hash_##name();
#define BINARY UNARY
#include "runtime-lite/kernels/pointwise.def"
}

static void hash_conv(const char *name, EtcConv g)
{
    const int64_t ih = (g.ih + (2 * g.ph)) - (g.dh * (g.kh - 1)),
                  iw = (g.iw + (2 * g.pw)) - (g.dw * (g.kw - 1));
    g.oh = ((ih - 1) / g.sh) + 1;
    g.ow = ((iw - 1) / g.sw) + 1;
    if (g.form == ETC_TRANSPOSED) {
        g.oh = ((g.ih - 1) * g.sh) - (2 * g.ph) + (g.dh * (g.kh - 1)) + 1;
        g.ow = ((g.iw - 1) * g.sw) - (2 * g.pw) + (g.dw * (g.kw - 1)) + 1;
    }
    etc_conv_f32(in_a, in_w, in_b, out, &g, work.bytes);
    hash_floats(name, (int)(g.n * g.groups * g.oc * g.oh * g.ow));
}

static void hash_convs(void)
{
    const float inf = __builtin_inff();
    const EtcConv plain = {1, 1, 5, 13, 11, 19,   0,   0,           3, 3, 1,
                           1, 1, 1, 1,  1,  -inf, inf, ETC_FORWARD, 0, 0};
    const EtcConv deep = {1, 1, 40, 7, 7, 13,   0,    0,           3, 3, 1,
                          1, 1, 1,  1, 1, 0.0f, 6.0f, ETC_FORWARD, 0, 0};
    const EtcConv point = {2, 1, 37, 7, 7, 23,   0,   0,           1, 1, 1,
                           1, 0, 0,  1, 1, -inf, inf, ETC_FORWARD, 0, 0};
    const EtcConv strided = {1, 2, 3, 17, 19, 7,    0,   0,           5, 3, 2,
                             3, 2, 1, 1,  2,  -inf, inf, ETC_FORWARD, 0, 0};
    const EtcConv depthwise = {1, 9, 1, 21, 37, 1,    0,   0,           3, 3, 2,
                               2, 1, 1, 1,  1,  0.0f, inf, ETC_FORWARD, 0, 0};
    const EtcConv spread = {1, 5, 1, 23, 29, 1,    0,   0,           5, 3, 2,
                            2, 2, 1, 3,  3,  -inf, inf, ETC_FORWARD, 0, 0};
    const EtcConv back = {1, 1, 6, 5, 7, 5, 0, 0, 4, 3, 2, 2, 1, 1, 1, 1, -inf, inf, ETC_TRANSPOSED,
                          0, 0};
    hash_conv("conv", plain);
    hash_conv("conv deep", deep);
    hash_conv("conv 1x1", point);
    hash_conv("conv strided groups", strided);
    hash_conv("conv depthwise", depthwise);
    hash_conv("conv depthwise dilated", spread);
    hash_conv("conv transposed", back);
}

/* [count][rows][terms] as blocks of rows, each [terms][rows]. */
static void to_blocks(const float *from, int count, int rows, int terms, int is_filled, float *to)
{
    for (int i = 0; i < count; i++, from += rows * terms) {
        for (int first = 0; first < rows; first += ETC_TOGETHER) {
            const int n = ((rows - first) < ETC_TOGETHER) ? (rows - first) : ETC_TOGETHER;
            for (int k = 0; k < terms; k++, to += is_filled ? ETC_TOGETHER : n) {
                for (int r = 0; r < n; r++) {
                    to[r] = from[((first + r) * terms) + k];
                }
            }
        }
    }
}

static void expect_same(const char *name, const float *want, int n)
{
    if (memcmp(out, want, (size_t)n * sizeof out[0]) != 0) {
        printf("%s: other bits\n", name);
        exit(1);
    }
}

static float blocks[N], want[N];

static void same_conv(EtcConv g)
{
    g.oh = (((g.ih + (2 * g.ph)) - (g.dh * (g.kh - 1)) - 1) / g.sh) + 1;
    g.ow = (((g.iw + (2 * g.pw)) - (g.dw * (g.kw - 1)) - 1) / g.sw) + 1;
    g.form = ETC_FORWARD;
    etc_conv_f32(in_a, in_w, in_b, want, &g, work.bytes);
    to_blocks(in_w, (int)g.groups, (int)g.oc, (int)(g.ic * g.kh * g.kw), 0, blocks);
    g.form = ETC_IN_BLOCKS;
    etc_conv_f32(in_a, blocks, in_b, out, &g, work.bytes);
    expect_same("conv with weights in blocks", want, (int)(g.n * g.groups * g.oc * g.oh * g.ow));
}

/* Few and many terms; rows of all widths, narrow ones by two; strides, taps far apart, padding
 * beyond the kernel; bands of rows, lots of channels, and both with a last one that is smaller. */
static void same_convs(void)
{
    const float inf = __builtin_inff();
    const EtcConv g[] = {
        {1, 1, 15, 13, 11, 37, 0, 0, 3, 3, 1, 1, 1, 1, 1, 1, -inf, inf, ETC_IN_BLOCKS, 0, 0},
        {2, 2, 15, 13, 11, 16, 0, 0, 3, 3, 1, 1, 1, 1, 1, 1, -inf, 0.5f, ETC_IN_BLOCKS, 0, 0},
        {1, 1, 3, 41, 47, 48, 0, 0, 7, 7, 2, 2, 3, 3, 1, 1, -inf, inf, ETC_IN_BLOCKS, 0, 0},
        {1, 1, 29, 7, 7, 64, 0, 0, 3, 3, 1, 1, 1, 1, 1, 1, 0.0f, inf, ETC_IN_BLOCKS, 0, 0},
        {1, 1, 29, 5, 3, 33, 0, 0, 3, 1, 1, 1, 4, 2, 1, 1, -inf, inf, ETC_IN_BLOCKS, 0, 0},
        {1, 1, 12, 23, 29, 32, 0, 0, 3, 5, 3, 2, 2, 1, 2, 3, -inf, inf, ETC_IN_BLOCKS, 0, 0},
        {1, 1, 101, 9, 15, 16, 0, 0, 1, 1, 2, 3, 0, 0, 1, 1, -inf, inf, ETC_IN_BLOCKS, 0, 0},
        {1, 1, 100, 17, 19, 16, 0, 0, 3, 3, 1, 1, 1, 1, 1, 1, -inf, inf, ETC_IN_BLOCKS, 0, 0},
        {1, 1, 50, 4, 122, 32, 0, 0, 3, 3, 1, 1, 1, 1, 1, 1, -1.0f, 1.0f, ETC_IN_BLOCKS, 0, 0},
        {1, 1, 47, 3, 125, 19, 0, 0, 3, 3, 1, 1, 1, 1, 1, 1, -inf, inf, ETC_IN_BLOCKS, 0, 0},
        {3, 1, 150, 7, 7, 55, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, -inf, inf, ETC_IN_BLOCKS, 0, 0},
        {1, 2, 64, 1, 1, 80, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, -inf, inf, ETC_IN_BLOCKS, 0, 0},
        {2, 1, 3, 41, 91, 20, 0, 0, 3, 3, 2, 2, 1, 1, 1, 1, -1.0f, 1.0f, ETC_IN_BLOCKS, 0, 0},
        {1, 2, 4, 33, 64, 21, 0, 0, 4, 4, 4, 4, 0, 0, 1, 1, -inf, inf, ETC_IN_BLOCKS, 0, 0},
        {1, 1, 9, 20, 57, 16, 0, 0, 3, 5, 1, 1, 2, 4, 2, 2, -inf, 0.5f, ETC_IN_BLOCKS, 0, 0},
        {1, 1, 30, 1, 1300, 19, 0, 0, 1, 9, 1, 1, 0, 4, 1, 1, -inf, inf, ETC_IN_BLOCKS, 0, 0},
        {1, 1, 16, 1, 2400, 21, 0, 0, 1, 13, 1, 2, 0, 7, 1, 2, -inf, inf, ETC_IN_BLOCKS, 0, 0},
    };
    for (size_t i = 0; i < (sizeof g / sizeof g[0]); i++) {
        same_conv(g[i]);
    }
}

/* Kernels and strides with tiles of their own, rows narrower than a vector and wider than two, few
 * rows, padding up to the kernel and past it, several output channels of one input channel. */
static void hash_depthwise(void)
{
    static const int64_t width[] = {1, 7, 8, 14, 21, 33, 300}, height[] = {1, 2, 3, 7, 30};
    char name[32];
    for (int64_t k = 3; k <= 7; k += 2) {
        for (int64_t s = 1; s <= 2; s++) {
            uint32_t state = (uint32_t)(k + s);
            for (int i = 0; i < 35; i++) {
                EtcConv g = {1, 2, 1, height[i % 5], width[i / 5], 0, 0, 0,           k, k, s,
                             s, 0, 0, 1,             1,            -1.0f, 1.0f, ETC_FORWARD, 0, 0};
                g.oc = below(3, &state) + 1;
                g.ph = (k / 2) + below(4, &state);
                g.pw = (k / 2) + below(4, &state);
                g.oh = ((g.ih + (2 * g.ph) - k) / s) + 1;
                g.ow = ((g.iw + (2 * g.pw) - k) / s) + 1;
                if ((g.groups * g.oc * g.oh * g.ow) > N) {
                    continue;
                }
                etc_conv_f32(in_a, in_w, in_b, out, &g, work.bytes);
                snprintf(name, sizeof name, "depthwise %d %d %d", (int)k, (int)s, i);
                hash_floats(name, (int)(g.groups * g.oc * g.oh * g.ow));
            }
        }
    }
}

/* Strides, dilations and windows of all kinds, and planes whose maxima must lie over their rows.
 * One window at a time gives the same. */
static void same_pools(void)
{
    static const int64_t width[] = {1, 5, 8, 13, 28, 61, 900}, height[] = {1, 4, 9, 22};
    uint32_t state = 7;
    for (int i = 0; i < 140; i++) {
        EtcPool g = {2, height[i % 4], width[i / 4 % 7], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
        g.kh = below(6, &state) + 1;
        g.kw = below(6, &state) + 1;
        g.sh = below(4, &state) + 1;
        g.sw = below(4, &state) + 1;
        g.dh = below(2, &state) + 1;
        g.dw = below(3, &state) + 1;
        g.ph = below((g.kh / 2) + 1, &state);
        g.pw = below((g.kw / 2) + 1, &state);
        const int64_t ih = g.ih + (2 * g.ph) - (g.dh * (g.kh - 1));
        const int64_t iw = g.iw + (2 * g.pw) - (g.dw * (g.kw - 1));
        if ((ih < 1) || (iw < 1) || ((g.planes * (ih + g.kh) * (iw + g.kw)) > N)) {
            continue;
        }
        g.oh = ((ih - 1) / g.sh) + 1;
        g.ow = ((iw - 1) / g.sw) + 1;
        etc_max_pool_f32(in_a, out, NULL, &g, work.bytes);
        for (int64_t p = 0; p < g.planes; p++) {
            etc_max_windows(in_a + (p * g.ih * g.iw), want + (p * g.oh * g.ow), NULL, &g);
        }
        expect_same("max pool, one window at a time", want, (int)(g.planes * g.oh * g.ow));
    }
}

static void same_linear(int64_t m, int64_t n)
{
    const float inf = __builtin_inff();
    EtcMatmul g = {m, n, 131, 131, 131, -inf, inf, ETC_BY_COLUMNS, 0};
    etc_matmul_f32(in_a, in_w, in_b, want, &g, work.bytes);
    memset(blocks, 0, sizeof blocks);
    to_blocks(in_w, 1, (int)n, 131, 1, blocks);
    g.b_form = ETC_BY_BLOCKS;
    etc_matmul_f32(in_a, blocks, in_b, out, &g, work.bytes);
    expect_same("linear with weights in blocks", want, (int)(m * n));
}

/* Weights in blocks give the bits of others. */
static void same_in_blocks(void)
{
    same_convs();
    same_linear(1, 100);
    same_linear(13, 83);
    same_linear(5, 16);
    same_linear(3, 24);
}

/* A point, a depthwise and a point convolution, one after the other and by rows: no difference. */
static void hash_stream(const char *name, int64_t stride, int64_t dilation, int64_t pad)
{
    static float a[N], b[N], y[N], lines[N];
    const float inf = __builtin_inff();
    const int64_t size = ((17 + (2 * pad)) - (2 * dilation) - 1) / stride + 1;
    const EtcStage stage[3] = {
        {in_w,
         in_b,
         {1, 1, 5, 17, 17, 21, 17, 17, 1, 1, 1, 1, 0, 0, 1, 1, 0.0f, 6.0f, ETC_FORWARD, 0, 0},
         17},
        {in_w + 200,
         in_b + 100,
         {1,      21,  1,   17,       17,       1,    size, size,        3, 3, stride,
          stride, pad, pad, dilation, dilation, 0.0f, inf,  ETC_FORWARD, 0, 0},
         17},
        {in_w + 500,
         NULL,
         {1, 1, 21, size, size, 7,    size, size,        1, 1, 1,
          1, 0, 0,  1,    1,    -inf, inf,  ETC_FORWARD, 0, 0},
         17}};
    etc_conv_f32(in_a, stage[0].w, stage[0].bias, a, &stage[0].g, work.bytes);
    etc_conv_f32(a, stage[1].w, stage[1].bias, b, &stage[1].g, work.bytes);
    etc_conv_f32(b, stage[2].w, stage[2].bias, y, &stage[2].g, work.bytes);
    for (int64_t rows = 1; rows < 6; rows++) {
        EtcStage s[3] = {stage[0], stage[1], stage[2]};
        s[1].room = etc_min_i64(rows, size);
        s[0].room = etc_min_i64(((s[1].room - 1) * stride) + (2 * dilation) + 1, 17);
        memset(lines, 255, sizeof lines);
        memset(out, 255, sizeof out);
        etc_stream_f32(in_a, out, s, 3, 0, size / 2, rows, lines, work.bytes);
        etc_stream_f32(in_a, out + ((size / 2) * size), s, 3, size / 2, size, rows, lines, work.bytes);
        if (memcmp(out, y, (size_t)(7 * size * size) * sizeof out[0]) != 0) {
            printf("%s: other bits in lines of %d rows\n", name, (int)rows);
            exit(1);
        }
    }
    hash_floats(name, (int)(7 * size * size));
}

static void hash_streams(void)
{
    hash_stream("stream", 1, 1, 1);
    hash_stream("stream strided", 2, 1, 1);
    hash_stream("stream dilated", 1, 2, 3);
    hash_stream("stream without padding", 3, 1, 0);
}

static void hash_matmuls(void)
{
    same_in_blocks();
    const float inf = __builtin_inff();
    const EtcMatmul mm = {13, 37, 300, 300, 37, -inf, inf, ETC_BY_ROWS, 0};
    const EtcMatmul linear = {3, 61, 259, 259, 259, 0.0f, inf, ETC_BY_COLUMNS, 0};
    etc_matmul_f32(in_a, in_w, NULL, out, &mm, work.bytes);
    hash_floats("matmul", 13 * 37);
    etc_matmul_f32(in_a, in_w, in_b, out, &linear, work.bytes);
    hash_floats("linear", 3 * 61);
    const EtcMatmul narrow = {37, 2, 4, 4, 2, -inf, inf, ETC_BY_ROWS, 0};
    etc_matmul_f32(in_a, in_w, NULL, out, &narrow, work.bytes);
    hash_floats("narrow", 37 * 2);
}

static void hash_packed_rows(const char *name, int64_t m, int64_t k, int64_t group, int bits)
{
    static uint16_t halves[N];
    static int8_t bytes[N];
    const EtcPacked g = {m, 61, k, group, -1e3f, 2e3f};
    const EtcPackedWeight weight = {(bits == 16) ? (const void *)halves : bytes, in_b,
                                    (bits == 4) ? NULL : bytes + 77};
    uint32_t seed = 7u;
    for (int i = 0; i < N; i++) {
        const uint32_t r = next_random(&seed);
        bytes[i] = (int8_t)(r & 127u);
        halves[i] = (uint16_t)(((r % 50u) == 0u) ? (r & 0x83ffu) : (r & 0xf7ffu));
    }
    if (bits == 4) {
        etc_packed_i4(in_a, &weight, NULL, out, &g, work.bytes);
    } else if (bits == 8) {
        etc_packed_i8(in_a, &weight, in_w, out, &g, work.bytes);
    } else {
        etc_packed_f16(in_a, &weight, in_w, out, &g, work.bytes);
    }
    hash_floats(name, (int)(m * g.n));
}

static void hash_packed(void)
{
    hash_packed_rows("packed i4, one row", 1, 259, 259, 4);
    hash_packed_rows("packed i4 in groups", 7, 280, 20, 4);
    hash_packed_rows("packed i8, one row", 1, 280, 35, 8);
    hash_packed_rows("packed i8", 5, 259, 259, 8);
    hash_packed_rows("packed halves, one row", 1, 259, 259, 16);
    hash_packed_rows("packed halves", 3, 259, 259, 16);
}

static void hash_attention(const char *name, EtcAttention g, int has_mask)
{
    const EtcMask mask = {(has_mask != 0) ? in_b : NULL, NULL, (g.cap != 0.0f) ? in_a : NULL};
    etc_attention_f32(in_a, in_b, in_w, &mask, out, &g, work.bytes);
    hash_floats(name, (int)(g.n_q * g.d_v));
}

static void hash_attentions(void)
{
    const int64_t room = ETC_ATTENTION_ROOM, least = ETC_ATTENTION_LEAST;
    const EtcAttention plain = {37, 61, 40, 29, 40, 40, 29, 29, 0, 0, room, 0.3f, 0, 0, 0, 0, 0, 0};
    const EtcAttention causal = {61, 61, 16, 16, 16, 16, 16, 16, 0, 0, room,
                                 0.3f, 1, 0, 0, 0, 0, 0};
    const EtcAttention masked = {21, 33, 7, 5, 7, 7, 5, 5, 33, 1, room, 0.3f, 0, 0, 0, 0, 0, 0};
    const EtcAttention capped = {21, 33, 7, 5, 7, 7, 5, 5, 33, 1, room, 0.3f, 0, 0, 1, 2.0f, 0, 1};
    EtcAttention long_rows = {3, 1200, 5, 3, 5, 5, 3, 3, 0, 1, room, 0.3f, 0, 0, 0, 0, 0, 0};
    hash_attention("attention", plain, 0);
    hash_attention("attention causal", causal, 0);
    hash_attention("attention masked", masked, 1);
    hash_attention("attention capped", capped, 1);
    hash_attention("attention in one block", long_rows, 1);
    long_rows.room = least;
    hash_attention("attention in blocks", long_rows, 1);
}

static void hash_images(void)
{
    const EtcGroupNorm groups = {2, 3, 5, 57, 1e-5f};
    const EtcUpsample more = {3, 11, 17, 29, 43, 0.3793103f, 0.3953488f, 0};
    const EtcUpsample less = {2, 31, 37, 9, 11, 3.75f, 3.6f, 1};
    etc_group_norm_f32(in_a, in_b, in_w, out, out + 2000, out + 2006, &groups);
    hash_floats("group_norm", 2012);
    etc_upsample_nearest_f32(in_a, out, &more, work.bytes);
    hash_floats("upsample nearest", 3 * 29 * 43);
    etc_upsample_linear_f32(in_a, out, &more, work.bytes);
    hash_floats("upsample linear", 3 * 29 * 43);
    etc_upsample_linear_f32(in_a, out, &less, work.bytes);
    hash_floats("upsample linear, aligned", 2 * 9 * 11);
}

static void hash_running_sums(void)
{
    etc_cumsum_f32(in_a, out, 7, 57, 1);
    hash_floats("cumsum", 7 * 57);
    etc_cumsum_f32(in_a, out, 2, 19, 300);
    hash_floats("cumsum of columns", 2 * 19 * 300);
}

/* Every way of sampling, at places near and far. */
static void hash_grids(void)
{
    for (int32_t i = 0; i < 18; i++) {
        const EtcGrid g = {2, 3, 101, {13, 11, 1}, 2, 1 << (i / 6), (i / 2) % 3, i % 2};
        etc_grid_sample_f32(in_a, in_b, out, &g);
        hash_floats("grid", 2 * 3 * 101);
    }
}

/* Steps of every kind, a chirp, columns and rows of one row; each form. */
static void hash_transforms(void)
{
    static float memory[120000];
    static const int64_t length[] = {420, 37, 341, 1000};
    for (int i = 0; i < 4; i++) {
        for (int32_t form = 0; form < 4; form++) {
            const EtcFft g = {length[i], (i < 3) ? 9 : 1, (i == 1) ? 5 : 1, form,
                              (form < 3) ? (i % 2) : 0};
            etc_fft_f32(in_a, out, memory, &g);
            hash_floats("transform", (int)(g.n * g.outer * g.inner) * ((form < 3) ? 1 : 4));
        }
    }
}

/* Any bytes, both as they are and with a sign; sums of their own weights. */
enum { BYTES, UNSIGNED_BYTES, FLOATS, BYTES_OF_SQUARES };

static void bytes_of_squares(const float *v, uint8_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += ETC_LANES) {
        const EtcF x = etc_load(v + i, n - i);
        etc_store_bytes(y + i, n - i, etc_quantize_lanes(x * x, etc_splat(0.7f), -90, -100.0f, 127.0f));
    }
}

static size_t bytes_of(const EtcConv *g, int form)
{
    return (size_t)(g->n * g->groups * g->oc * g->oh * g->ow) * ((form == FLOATS) ? 4u : 1u);
}

static EtcInteger integer_of(const int32_t *sums, int is_signed, int form)
{
    const int low = (form == UNSIGNED_BYTES) ? 0 : -128;
    const EtcInteger q = {sums, in_b, in_a, NULL, NULL, 0, 0, 0, is_signed,
                          (is_signed != 0) ? -9 : 77, -3.0f, 1e30f, form >= FLOATS, 0.03f, low + 133,
                          low, low + 255, (form == BYTES_OF_SQUARES) ? bytes_of_squares : NULL};
    return q;
}

static void convolve_bytes(EtcConv g, const int8_t *w, int is_signed, int form)
{
    static int32_t sums[64];
    const int64_t ic = (g.form == ETC_IN_QUADS) ? ((g.ic + 3) / 4 * 4) : g.ic;
    const int64_t k = ic * g.kh * g.kw;
    const EtcInteger q = integer_of(sums, is_signed, form);
    for (int64_t c = 0; c < (g.groups * g.oc); c++) {
        sums[c] = 0;
        for (int64_t i = 0; i < k; i++) {
            sums[c] += w[(c * k) + i];
        }
    }
    etc_conv_i8(in_a, w, out, &g, &q, work.bytes);
}

static void hash_integer(const char *name, EtcConv g, const int8_t *w, int is_signed, int form)
{
    convolve_bytes(g, w, is_signed, form);
    hash(name, out, bytes_of(&g, form));
}

/* Convolves with weights in quads, which must give what weights in the model's layout give. */
static void hash_quads(const char *name, EtcConv g, const int8_t *w, int is_signed, int form)
{
    static int8_t quads[1 << 16];
    const int64_t taps = g.kh * g.kw, four = (g.ic + 3) / 4 * 4, n = g.groups * g.oc;
    const int64_t side = 4 * etc_quads_together(four / 4);
    const size_t size = bytes_of(&g, form);
    convolve_bytes(g, w, is_signed, form);
    memcpy(want, out, size);
    memset(quads, 0, sizeof quads);
    for (int64_t i = 0; i < (n * g.ic * taps); i++) {
        const int64_t row = i / (g.ic * taps), c = i / taps % g.ic, tap = i % taps;
        quads[(row * four * taps) + (c / side * side * taps) + (tap * side) + (c % side)] = w[i];
    }
    g.form = ETC_IN_QUADS;
    convolve_bytes(g, quads, is_signed, form);
    hash(name, out, size);
    if (memcmp(want, out, size) != 0) {
        printf("%s: weights in quads give other outputs\n", name);
        exit(1);
    }
}

static void hash_integer_convs(void)
{
    const EtcConv dense = {2, 1, 21, 13, 17, 19, 13, 17,          3, 3, 1,
                           1, 1, 1,  1,  1,  0,  0,  ETC_FORWARD, 0, 0};
    const EtcConv strided = {1, 2, 3, 21, 23, 5, 9, 10,          5, 4, 2,
                             2, 0, 0, 1,  1,  0, 0, ETC_FORWARD, 0, 0};
    const EtcConv point = {1, 1, 30, 9, 7, 40, 9, 7,           1, 1, 1,
                           1, 0, 0,  1, 1, 0,  0, ETC_FORWARD, 0, 0};
    const EtcConv depth = {2, 9, 1, 19, 31, 1, 19, 31,          3, 3, 1,
                           1, 1, 1, 1,  1,  0, 0,  ETC_FORWARD, 0, 0};
    const EtcConv steps = {1, 7, 1, 20, 33, 2, 10, 17,          7, 5, 2,
                           2, 3, 2, 1,  1,  0, 0,  ETC_FORWARD, 0, 0};
    const EtcConv five = {1, 6, 1, 12, 37, 1, 12, 37,          5, 5, 1,
                          1, 2, 2, 1,  1,  0, 0,  ETC_FORWARD, 0, 0};
    const EtcConv halves = {1, 5, 1, 13, 37, 2, 7, 19,          5, 5, 2,
                            2, 2, 2, 1,  1,  0, 0, ETC_FORWARD, 0, 0};
    const EtcConv thirds = {2, 5, 1, 14, 9, 1, 7, 5,           3, 3, 2,
                            2, 1, 1, 1,  1, 0, 0, ETC_FORWARD, 0, 0};
    const EtcConv deep = {1, 1, 500, 3, 5, 9, 3, 5,           3, 3, 1,
                          1, 1, 1,   1, 1, 0, 0, ETC_FORWARD, 0, 0};
    const EtcConv few = {1, 1, 3, 41, 77, 11, 21, 39,          3, 3, 2,
                         2, 1, 1, 1,  1,  0,  0,  ETC_FORWARD, 0, 0};
    const EtcConv wide = {1, 1, 6, 9, 300, 3, 9, 100,          3, 5, 1,
                          3, 1, 2, 1, 1,   0, 0, ETC_FORWARD, 0, 0};
    const EtcConv tall = {1, 1, 2, 300, 2, 6, 300, 2,           1, 1, 1,
                          1, 0, 0, 1,   1, 0, 0,   ETC_FORWARD, 0, 0};
    const EtcConv far = {1, 1, 5, 6, 30, 3, 6, 30,          1, 41, 1,
                         1, 0, 20, 1, 1, 0,  0, ETC_FORWARD, 0, 0};
    const EtcConv dilated = {1, 1, 8, 40, 26, 3, 40, 26,         3,  3, 1,
                             1, 18, 18, 18, 18, 0, 0, ETC_FORWARD, 0, 0};
    const int8_t *any = (const int8_t *)in_w;
    for (int i = 0; i < 8; i++) {
        hash_integer("integer few terms", few, any, i & 1, i >> 1);
        hash_integer("integer many rows", tall, any, i & 1, i >> 1);
        hash_integer("integer dense", dense, any, i & 1, i >> 1);
        hash_integer("integer strided", strided, any, i & 1, i >> 1);
        hash_integer("integer point", point, any, i & 1, i >> 1);
        hash_integer("integer depthwise", depth, any, i & 1, i >> 1);
        hash_integer("integer depthwise strided", steps, any, i & 1, i >> 1);
        hash_integer("integer depthwise of 5x5", five, any, i & 1, i >> 1);
        hash_integer("integer depthwise of 5x5, strided", halves, any, i & 1, i >> 1);
        hash_integer("integer depthwise of 3x3, strided", thirds, any, i & 1, i >> 1);
        hash_integer("integer deep", deep, any, i & 1, i >> 1);
        hash_quads("integer few terms in quads", few, any, i & 1, i >> 1);
        hash_quads("integer dense in quads", dense, any, i & 1, i >> 1);
        hash_quads("integer strided in quads", strided, any, i & 1, i >> 1);
        hash_quads("integer deep in quads", deep, any, i & 1, i >> 1);
        hash_quads("integer wide in quads", wide, any, i & 1, i >> 1);
        hash_quads("integer far in quads", far, any, i & 1, i >> 1);
        hash_quads("integer dilated in quads", dilated, any, i & 1, i >> 1);
    }
}

/* Convolves with weights of which few are far from 0, as in trained layers. */
static void hash_trained_convs(void)
{
    const EtcConv even = {1, 2, 24, 13, 17, 12, 13, 17,          3, 3, 1,
                          1, 1, 1,  1,  1,  0,  0,  ETC_FORWARD, 0, 0};
    const EtcConv halved = {2, 1, 63, 23, 21, 8, 12, 11,          3, 3, 2,
                            2, 1, 1,  1,  1,  0, 0,  ETC_FORWARD, 0, 0};
    const EtcConv pixels = {1, 1, 150, 9, 13, 20, 9, 13,          1, 1, 1,
                            1, 0, 0,   1, 1,  0,  0, ETC_FORWARD, 0, 0};
    const EtcConv longer = {1, 1, 57, 10, 12, 4, 10, 12,          3, 3, 1,
                            1, 1, 1,  1,  1,  0, 0,  ETC_FORWARD, 0, 0};
    const EtcConv deeper = {1, 1, 330, 8, 13, 4, 8, 13,          5, 5, 1,
                            1, 2, 2,   1, 1,  0, 0, ETC_FORWARD, 0, 0};
    const int8_t *any = (const int8_t *)in_w;
    static int8_t most[1 << 16];
    for (int i = 0; i < (1 << 16); i++) {
        most[i] = (int8_t)(any[i] * any[i + 1] / 129);
    }
    for (int i = 0; i < 8; i++) {
        hash_integer("integer even of few large", even, most, i & 1, i >> 1);
        hash_integer("integer halved of few large", halved, most, i & 1, i >> 1);
        hash_integer("integer pixels of few large", pixels, most, i & 1, i >> 1);
        hash_integer("integer longer of few large", longer, most, i & 1, i >> 1);
        hash_integer("integer deeper of few large", deeper, most, i & 1, i >> 1);
        hash_quads("integer even of few large in quads", even, most, i & 1, i >> 1);
        hash_quads("integer halved of few large in quads", halved, most, i & 1, i >> 1);
        hash_quads("integer longer of few large in quads", longer, most, i & 1, i >> 1);
        hash_quads("integer deeper of few large in quads", deeper, most, i & 1, i >> 1);
    }
}

static void hash_integers(void)
{
    static int32_t sums[37];
    const EtcIntegerLinear linear = {5, 37, 259};
    const double scale[5] = {0.1, 0.3, 1e-3, 7.0, 0.03};
    const int64_t zero[5] = {-128, 127, 0, 5, -77};
    const EtcInteger rows = {sums, in_b, NULL, scale, zero, ETC_Q_F64, ETC_Q_I64, 1, 1,
                             0, -1e30f, 1e30f, 1, 0.0f, 0, 0, 0, NULL};
    EtcInteger then = rows;
    const EtcPool max = {3, 15, 23, 8, 12, 3, 3, 2, 2, 1, 1, 1, 1, 0, 0, 0};
    const EtcPool mean = {3, 15, 23, 8, 12, 5, 3, 2, 2, 1, 1, 1, 1, 0, 1, 0};
    const EtcPool all = {30, 1, 77, 1, 1, 1, 77, 1, 77, 0, 0, 1, 1, 0, 1, 0};
    const EtcPool broad = {2, 9, 1400, 4, 150, 3, 301, 2, 5, 1, 150, 2, 2, 0, 0, 0};
    const EtcMean points = {1, -9, 1.7f, 3, -120, 127};
    memset(sums, 0, sizeof sums);
    for (int64_t i = 0; i < (37 * 259); i++) {
        sums[i / 259] += ((const int8_t *)in_w)[i];
    }
    etc_linear_i8(in_a, (const int8_t *)in_w, out, &linear, &rows);
    hash_floats("integer linear", 5 * 37);
    then.then = bytes_of_squares;
    for (int64_t m = 5; m < 30; m += 12) { /* without and with tiles */
        const EtcIntegerLinear g = {m, 37, 259};
        then.has_rows = 0;
        etc_linear_i8(in_a, (const int8_t *)in_w, out, &g, &then);
        hash("integer linear, then bytes", out, (size_t)(m * 37));
    }
    etc_max_pool_i8(in_a, out, 1, &max);
    hash("max_pool of bytes", out, 3 * 8 * 12);
    etc_max_pool_i8(in_a, out, 0, &broad);
    hash("max_pool of bytes, broad", out, 2 * 4 * 150);
    etc_avg_pool_i8(in_a, out, &mean, &points);
    etc_avg_pool_i8(in_a, (uint8_t *)out + (3 * 8 * 12), &all, &points);
    hash("avg_pool of bytes", out, (3 * 8 * 12) + 30);
}

static void hash_rest(void)
{
    const EtcPool max = {3, 15, 23, 8, 12, 3, 3, 2, 2, 1, 1, 1, 1, 0, 0, 0};
    const EtcPool mean = {3, 15, 23, 8, 12, 3, 3, 2, 2, 1, 1, 1, 1, 0, 1, 0};
    const EtcCopy turn = {2, 4, {57, 91}, {91, 1}, {1, 57}};
    EtcSum s;
    etc_max_pool_f32(in_a, out, where, &max, work.bytes);
    hash_floats("max_pool", 3 * 8 * 12);
    hash("max_pool where", where, sizeof where[0] * 3 * 8 * 12);
    etc_avg_pool_f32(in_a, out, &mean);
    hash_floats("avg_pool", 3 * 8 * 12);
    etc_softmax_f32(in_a, out, 1777, 1, 0);
    etc_softmax_f32(in_a, out + 2000, 333, 3, 1);
    etc_softmax_f32(in_a, out + 3000, 600, 37, 0);
    hash_floats("softmax", 25200);
    etc_sum_start(&s);
    etc_sum_f32(in_a, 12345, &s);
    out[0] = etc_sum_end(&s);
    out[1] = etc_amax_f32(in_a, 12345, -1e30f);
    etc_scale_shift_f32(in_a, 0.3f, 0.7f, out + 2, 999);
    hash_floats("sum, amax, scale_shift", 1001);
    etc_copy_nd(in_a, out, &turn);
    hash_floats("copy", 57 * 91);
}

int main(void)
{
    fill_numbers(in_a, 1u, 9);
    fill_numbers(in_b, 2u, 5);
    fill_numbers(in_w, 3u, 14);
    hash_pointwise();
    hash_convs();
    hash_depthwise();
    same_pools();
    hash_matmuls();
    hash_integer_convs();
    hash_trained_convs();
    hash_integers();
    hash_packed();
    hash_streams();
    hash_attentions();
    hash_rest();
    hash_images();
    hash_transforms();
    hash_grids();
    hash_running_sums();
    fill_numbers(in_a, 4u, 126); /* products and sums reach the subnormal numbers */
    fill_numbers(in_w, 5u, 60);
    hash_pointwise();
    hash_convs();
    hash_matmuls();
    hash_integer_convs();
    hash_trained_convs();
    hash_integers();
    hash_packed();
    hash_streams();
    hash_attentions();
    hash_rest();
    hash_images();
    return 0;
}
