/* onnx_signal.c -- reads ONNX operators of signals as products with tables that are made here. */
#include "compiler/import/onnx.h"
#include "ir/eval.h"
#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* -- windows ----------------------------------------------------------------------------------- */

/* Defines the window c[0] - c[1] cos(2 pi i / n) + c[2] cos(4 pi i / n). */
static bool window_of(OnnxNode *n, const double c[3])
{
    Dim size[MAX_RANK];
    int count;
    EtcDtype t;
    if (!on_dims(n, 0, size, &count))
        return false;
    if (count != 1 || size[0].expr || size[0].value < 1)
        return onnx_unsupported(n, "has a size that is not known");
    if (!onnx_dtype((int32_t)on_int(n, "output_datatype", 1), &t))
        return onnx_unsupported(n, "gives no known type of elements");
    int64_t of = size[0].value, period = on_int(n, "periodic", 1) ? of : of > 1 ? of - 1 : 1;
    float *v = on_table_of(n, 1, of);
    for (int64_t i = 0; v && i < of; i++) {
        double at = 2 * pi * (double)i / (double)period;
        v[i] = (float)(c[0] - c[1] * exact_cos(at) + c[2] * exact_cos(2 * at));
    }
    return v && on_define(n, 0, on_cast(n, on_floats(n, 1, size, v), t));
}

bool onnx_hann(OnnxNode *n)
{
    static const double c[3] = {0.5, 0.5, 0};
    return window_of(n, c);
}

bool onnx_hamming(OnnxNode *n)
{
    static const double c[3] = {25.0 / 46, 21.0 / 46, 0};
    return window_of(n, c);
}

bool onnx_blackman(OnnxNode *n)
{
    static const double c[3] = {0.42, 0.5, 0.08};
    return window_of(n, c);
}

/* Reads input i, which must be a known number of less than 1e9. */
static bool number_at(OnnxNode *n, int i, double *v)
{
    const OnnxList *l = on_list(n, i);
    if (!l || l->n != 1 || (l->dim && l->dim[0].expr))
        return onnx_unsupported(n, "has a parameter that is not known");
    *v = l->dim ? (double)l->dim[0].value : l->number[0];
    return fabs(*v) < 1e9 ? true : onnx_wrong(n, "has a parameter out of range");
}

/* Defines triangles over the bins of a spectrum, whose corners have equal steps on the mel
 * scale. */
bool onnx_mel_weights(OnnxNode *n)
{
    double v[5]; /* bands, length, rate, lowest, highest */
    EtcDtype t;
    for (int i = 0; i < 5; i++)
        if (!number_at(n, i, &v[i]))
            return false;
    if (!onnx_dtype((int32_t)on_int(n, "output_datatype", 1), &t))
        return onnx_unsupported(n, "gives no known type of elements");
    int64_t bands = (int64_t)v[0], bins = (int64_t)v[1] / 2 + 1;
    if (bands < 1 || v[1] < 1 || v[2] < 1 || v[3] < 0 || v[4] < v[3])
        return onnx_wrong(n, "has a parameter out of range");
    float *m = on_table_of(n, bins, bands);
    double low = 2595 * exact_log10(1 + v[3] / 700), high = 2595 * exact_log10(1 + v[4] / 700);
    for (int64_t i = 0; m && i < bands; i++) {
        int64_t at[3];
        for (int k = 0; k < 3; k++) {
            double mel = low + (double)(i + k) * (high - low) / (double)(bands + 2);
            at[k] = (int64_t)floor((v[1] + 1) * (700 * (exact_pow(10, mel / 2595) - 1)) / v[2]);
            if (at[k] >= bins)
                return onnx_wrong(n, "has a frequency beyond half the rate");
        }
        for (int64_t j = at[0]; j <= at[1]; j++)
            m[j * bands + i] = at[1] == at[0] ? 1 : (float)(j - at[0]) / (float)(at[1] - at[0]);
        for (int64_t j = at[1]; j < at[2]; j++)
            m[j * bands + i] = (float)(at[2] - j) / (float)(at[2] - at[1]);
    }
    Dim dim[2] = {DIM(bins), DIM(bands)};
    return m && on_define(n, 0, on_cast(n, on_floats(n, 2, dim, m), t));
}

/* -- transforms -------------------------------------------------------------------------------- */

typedef struct Transform {
    int64_t length, bins;
    bool is_inverse, is_half; /* is_half: of one side of a spectrum, to real parts */
} Transform;

/* Returns a table of cos or sin for all bins at the first `in` samples. */
static float *waves(OnnxNode *n, const Transform *f, int64_t in, double (*fn)(double), double sign)
{
    float *m = on_table_of(n, f->bins, in);
    double scale = sign * (f->is_inverse ? 1 / (double)f->length : 1);
    for (int64_t k = 0; m && k < f->bins; k++)
        for (int64_t i = 0; i < in && i < f->length; i++)
            m[k * in + i] = (float)(scale * (f->is_half && i && 2 * i != f->length ? 2 : 1) *
                                    fn(2 * pi * (double)(k * i % f->length) / (double)f->length));
    return m;
}

static Value *part_at(OnnxNode *n, Value *x, int i)
{
    return on_part(n, x, x->type.rank - 1, DIM(i), DIM(i + 1), 1);
}

/* Returns the transform of x along an axis.  The last axis of x has real parts, or real and
 * imaginary ones. */
static Value *transformed(OnnxNode *n, Value *x, int axis, const Transform *f)
{
    int last = x->type.rank - 1;
    int64_t in = x->type.dim[axis].value, parts = x->type.dim[last].value;
    double sign = f->is_inverse ? -1 : 1;
    Value *re = part_at(n, x, 0), *im = parts == 2 ? part_at(n, x, 1) : NULL;
    Value *a = on_matrix(n, re, axis, f->bins, waves(n, f, in, exact_cos, 1));
    Value *b = on_matrix(n, re, axis, f->bins, waves(n, f, in, exact_sin, -sign));
    if (im) {
        a = on_binary(n, OP_ADD_TENSOR, a, on_matrix(n, im, axis, f->bins, waves(n, f, in, exact_sin, sign)));
        b = on_binary(n, OP_ADD_TENSOR, b, on_matrix(n, im, axis, f->bins, waves(n, f, in, exact_cos, 1)));
    }
    return f->is_half ? a : on_cat(n, a, b, last);
}

static bool is_signal(OnnxNode *n, const Value *x, int axis)
{
    Dim last = x->type.dim[x->type.rank - 1], size = x->type.dim[axis];
    if (axis == x->type.rank - 1 || last.expr || last.value < 1 || last.value > 2)
        return onnx_wrong(n, "expects real parts, or real and imaginary ones, along the last axis");
    if (size.expr || size.value < 1 || size.value > 1 << 20)
        return onnx_unsupported(n, "transforms an axis whose size is known only at run time");
    return true;
}

bool onnx_dft(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    Transform f = {.is_inverse = on_int(n, "inverse", 0)};
    double v = n->in->opset < 20 ? (double)on_int(n, "axis", 1) : -2;
    int axis;
    if (!x || x->type.rank < 2 || (n->in->opset >= 20 && on_has(n, 2) && !number_at(n, 2, &v)))
        return x && onnx_wrong(n, "expects a tensor of rank 2 and more and an axis that is known");
    if (!on_axis(n, (int64_t)v, x->type.rank, &axis) || !is_signal(n, x, axis))
        return false;
    bool is_onesided = on_int(n, "onesided", 0);
    f.is_half = f.is_inverse && is_onesided;
    v = (double)x->type.dim[axis].value;
    v = f.is_half ? 2 * (v - 1) : v;
    if (on_has(n, 1) && !number_at(n, 1, &v))
        return false;
    f.length = (int64_t)v;
    if (f.length < 1 || f.length > 1 << 20)
        return onnx_wrong(n, "has a length out of range");
    f.bins = is_onesided && !f.is_inverse ? f.length / 2 + 1 : f.length;
    return on_define(n, 0, transformed(n, x, axis, &f));
}

/* Defines the windowed and transformed frames of a signal: [batch, frames, bins, 2]. */
bool onnx_stft(OnnxNode *n)
{
    Value *x = on_value(n, 0), *window = on_has(n, 2) ? on_value(n, 2) : NULL;
    double step, length = 0;
    if (!x || n->failed || x->type.rank != 3 || !is_signal(n, x, 1) || !number_at(n, 1, &step))
        return x && !n->failed && onnx_wrong(n, "expects a signal of [batch, length, parts]");
    if (on_has(n, 3) && !number_at(n, 3, &length))
        return false;
    if (!on_has(n, 3) && window && window->type.rank == 1 && !window->type.dim[0].expr)
        length = (double)window->type.dim[0].value;
    Transform f = {.length = (int64_t)length};
    int64_t size = x->type.dim[1].value, hop = (int64_t)step;
    if (f.length < 1 || hop < 1 || f.length > size)
        return onnx_wrong(n, "has a step or a length of frames out of range");
    int64_t frames = (size - f.length) / hop + 1;
    if (frames > (1 << 22) / f.length)
        return onnx_unsupported(n, "has more than 4,194,304 elements of frames");
    f.bins = on_int(n, "onesided", 1) ? f.length / 2 + 1 : f.length;
    Value *start = on_scalar(n, OP_MUL_SCALAR, on_arange(n, DIM(0), DIM(frames)), (double)hop);
    Value *at = on_binary(n, OP_ADD_TENSOR, on_insert(n, start, 1), on_arange(n, DIM(0), DIM(f.length)));
    Dim all = DIM(frames * f.length);
    Dim dim[4] = {x->type.dim[0], DIM(frames), DIM(f.length), x->type.dim[2]};
    at = on_view(n, at, 1, &all);
    Value *y = at ? ON_BUILD(n, OP_INDEX_SELECT, "viv", x, (int64_t)1, at) : NULL;
    y = on_view(n, y, 4, dim);
    if (window)
        y = on_binary(n, OP_MUL_TENSOR, y, on_insert(n, window, 1));
    return y && on_define(n, 0, transformed(n, y, 2, &f));
}

/* -- columns to images ------------------------------------------------------------------------- */

/* Makes the matrix that adds overlapping blocks: each position of an axis sums the elements of
 * blocks there. */
static float *placed(OnnxNode *n, int64_t out, int64_t block, int64_t count, const int64_t by[3])
{
    float *m = on_table_of(n, out, block * count);
    for (int64_t k = 0; m && k < block; k++)
        for (int64_t i = 0; i < count; i++) {
            int64_t at = i * by[0] + k * by[1] - by[2];
            if (at >= 0 && at < out)
                m[at * block * count + k * count + i] = 1;
        }
    return m;
}

typedef struct Image {
    int axes;
    Dim size[MAX_RANK], block[MAX_RANK];
    int64_t stride[MAX_RANK], dilation[MAX_RANK], pad[2 * MAX_RANK], count[MAX_RANK];
} Image;

static bool read_image(OnnxNode *n, Image *m)
{
    int blocks;
    if (!on_dims(n, 1, m->size, &m->axes) || !on_dims(n, 2, m->block, &blocks))
        return false;
    if (m->axes != blocks || m->axes < 1 || m->axes > 6)
        return onnx_unsupported(n, "has images of more than 6 axes, or blocks of others");
    for (int i = 0; i < m->axes; i++) {
        m->stride[i] = m->dilation[i] = 1;
        m->pad[i] = m->pad[m->axes + i] = 0;
    }
    on_ints(n, "strides", m->stride, m->axes);
    on_ints(n, "dilations", m->dilation, m->axes);
    on_ints(n, "pads", m->pad, 2 * m->axes);
    for (int i = 0; i < m->axes && !n->failed; i++) {
        int64_t size = m->size[i].value, block = m->block[i].value;
        int64_t before = m->pad[i], after = m->pad[m->axes + i];
        if (m->size[i].expr || m->block[i].expr || size < 1 || size > 1 << 20 || block < 1 ||
            block > 1 << 20 || m->stride[i] < 1 || m->dilation[i] < 1 || m->dilation[i] > 1 << 20 ||
            before < 0 || before > 1 << 20 || after < 0 || after > 1 << 20 ||
            size + before + after < (block - 1) * m->dilation[i] + 1)
            return onnx_wrong(n, "has a size, block, stride, dilation or padding out of range");
        m->count[i] = (size + before + after - (block - 1) * m->dilation[i] - 1) / m->stride[i] + 1;
    }
    return !n->failed;
}

bool onnx_col2im(OnnxNode *n)
{
    Image m;
    Dim dim[MAX_RANK];
    int64_t order[MAX_RANK] = {0, 1}, blocks = 1, counts = 1;
    Value *x = on_value(n, 0);
    if (!x || !read_image(n, &m))
        return false;
    for (int i = 0; i < m.axes; i++) {
        if (m.block[i].value > (1 << 24) / blocks || m.count[i] > (1 << 24) / counts)
            return onnx_wrong(n, "has a block or a number of blocks out of range");
        blocks *= m.block[i].value;
        counts *= m.count[i];
        dim[2 + i] = m.block[i];
        dim[2 + m.axes + i] = DIM(m.count[i]);
        order[2 + 2 * i] = 2 + i;
        order[3 + 2 * i] = 2 + m.axes + i;
    }
    if (x->type.rank != 3 || x->type.dim[1].expr || x->type.dim[1].value % blocks ||
        !dim_equal(x->type.dim[2], DIM(counts)))
        return onnx_wrong(n, "expects [n, c * block, blocks], of %lld blocks", (long long)counts);
    dim[0] = x->type.dim[0];
    dim[1] = DIM(x->type.dim[1].value / blocks);
    x = on_permute(n, on_view(n, x, 2 + 2 * m.axes, dim), order);
    for (int i = 0; i < m.axes; i++)
        dim[2 + i] = DIM(m.block[i].value * m.count[i]);
    x = on_view(n, x, 2 + m.axes, dim);
    for (int i = 0; x && i < m.axes; i++) {
        int64_t by[3] = {m.stride[i], m.dilation[i], m.pad[i]}, out = m.size[i].value;
        x = on_matrix(n, x, 2 + i, out, placed(n, out, m.block[i].value, m.count[i], by));
    }
    return on_define(n, 0, x);
}
