/* reference.c -- implements reference.h: each function computes the textbook's formula in loops. */
#include "tests/reference/reference.h"
#include <math.h>
#include <stddef.h>

int64_t ref_numel(const RefTensor *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->rank; d++)
        n *= t->dim[d];
    return n;
}

/* The index of element i of a shape. */
static void unravel(const RefTensor *t, int64_t i, int64_t *index)
{
    for (int d = t->rank - 1; d >= 0; d--) {
        index[d] = i % t->dim[d];
        i /= t->dim[d];
    }
}

static int64_t ravel(const RefTensor *t, const int64_t *index)
{
    int64_t i = 0;
    for (int d = 0; d < t->rank; d++)
        i = i * t->dim[d] + index[d];
    return i;
}

/* -- pointwise ------------------------------------------------------------------------------ */

void ref_unary(RefUnary *f, const RefTensor *x, const double *number, double *y)
{
    for (int64_t i = 0; i < ref_numel(x); i++)
        y[i] = f((double)x->data[i], number);
}

/* The element of t under an index of a broadcast shape of larger rank. */
static double spread_at(const RefTensor *t, const RefTensor *shape, const int64_t *index)
{
    int64_t own[REF_MAX_RANK];
    for (int d = 0; d < t->rank; d++)
        own[d] = t->dim[d] == 1 ? 0 : index[shape->rank - t->rank + d];
    return (double)t->data[ravel(t, own)];
}

void ref_binary(RefBinary *f, const RefTensor *a, const RefTensor *b, RefTensor *shape, double *y)
{
    int64_t index[REF_MAX_RANK];
    shape->rank = a->rank > b->rank ? a->rank : b->rank;
    shape->data = NULL;
    for (int d = 0; d < shape->rank; d++) {
        int ia = d - shape->rank + a->rank, ib = d - shape->rank + b->rank;
        int64_t na = ia < 0 ? 1 : a->dim[ia], nb = ib < 0 ? 1 : b->dim[ib];
        shape->dim[d] = na == 1 ? nb : na;
    }
    for (int64_t i = 0; i < ref_numel(shape); i++) {
        unravel(shape, i, index);
        y[i] = f(spread_at(a, shape, index), spread_at(b, shape, index));
    }
}

/* -- products ------------------------------------------------------------------------------- */

void ref_linear(const RefTensor *x, const RefTensor *weight, const float *bias, double *y)
{
    int64_t k = x->dim[x->rank - 1], n = weight->dim[0], m = k ? ref_numel(x) / k : 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = bias ? (double)bias[j] : 0.0;
            for (int64_t l = 0; l < k; l++)
                sum += (double)x->data[i * k + l] * (double)weight->data[j * k + l];
            y[i * n + j] = sum;
        }
}

void ref_mm(const RefTensor *a, const RefTensor *b, double *y)
{
    for (int64_t i = 0; i < a->dim[0]; i++)
        for (int64_t j = 0; j < b->dim[1]; j++) {
            double sum = 0.0;
            for (int64_t l = 0; l < a->dim[1]; l++)
                sum += (double)a->data[i * a->dim[1] + l] * (double)b->data[l * b->dim[1] + j];
            y[i * b->dim[1] + j] = sum;
        }
}

static double pixel(const RefTensor *x, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return (double)x->data[((n * x->dim[1] + c) * x->dim[2] + h) * x->dim[3] + w];
}

/* Forward: gather under each output.  Transposed: scatter each input, as its name says. */
void ref_conv(const RefTensor *x, const RefTensor *weight, const float *bias, const RefConv *g,
              RefTensor *shape, double *y)
{
    int64_t oc = g->is_transposed ? weight->dim[1] * g->groups : weight->dim[0];
    int64_t ic_group = x->dim[1] / g->groups, oc_group = oc / g->groups;
    shape->rank = 4;
    shape->data = NULL;
    shape->dim[0] = x->dim[0];
    shape->dim[1] = oc;
    for (int a = 0; a < 2; a++) {
        int64_t reach = g->dilation[a] * (weight->dim[2 + a] - 1) + 1;
        shape->dim[2 + a] = g->is_transposed
                                ? (x->dim[2 + a] - 1) * g->stride[a] - 2 * g->pad[a] + reach +
                                      g->output_pad[a]
                                : (x->dim[2 + a] + 2 * g->pad[a] - reach) / g->stride[a] + 1;
    }
    int64_t oh = shape->dim[2], ow = shape->dim[3];
    for (int64_t i = 0; i < ref_numel(shape); i++)
        y[i] = bias ? (double)bias[i / (oh * ow) % oc] : 0.0;
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t o = 0; o < oc; o++)
            for (int64_t c = 0; c < ic_group; c++)
                for (int64_t kh = 0; kh < weight->dim[2]; kh++)
                    for (int64_t kw = 0; kw < weight->dim[3]; kw++) {
                        int64_t group = o / oc_group, from = group * ic_group + c;
                        int64_t wi[4] = {o, c, kh, kw}, wt[4] = {from, o % oc_group, kh, kw};
                        double w = (double)weight->data[ravel(weight, g->is_transposed ? wt : wi)];
                        int64_t rows = g->is_transposed ? x->dim[2] : oh;
                        int64_t columns = g->is_transposed ? x->dim[3] : ow;
                        for (int64_t r = 0; r < rows; r++)
                            for (int64_t s = 0; s < columns; s++) {
                                int64_t h = r * g->stride[0] - g->pad[0] + kh * g->dilation[0];
                                int64_t v = s * g->stride[1] - g->pad[1] + kw * g->dilation[1];
                                if (g->is_transposed) {
                                    if (h >= 0 && h < oh && v >= 0 && v < ow)
                                        y[((n * oc + o) * oh + h) * ow + v] += w * pixel(x, n, from,
                                                                                         r, s);
                                } else if (h >= 0 && h < x->dim[2] && v >= 0 && v < x->dim[3]) {
                                    y[((n * oc + o) * oh + r) * ow + s] += w *
                                                                           pixel(x, n, from, h, v);
                                }
                            }
                    }
}

/* -- pools ---------------------------------------------------------------------------------- */

static void pool_shape(const RefTensor *x, const RefPool *g, RefTensor *shape)
{
    *shape = *x;
    shape->data = NULL;
    for (int a = 0; a < 2; a++) {
        double room = (double)(x->dim[2 + a] + 2 * g->pad[a] - g->dilation[a] * (g->kernel[a] - 1) -
                               1);
        double steps = room / (double)g->stride[a];
        int64_t n = (int64_t)(g->ceil_mode ? ceil(steps) : floor(steps)) + 1;
        if (g->ceil_mode && (n - 1) * g->stride[a] >= x->dim[2 + a] + g->pad[a])
            n--;
        shape->dim[2 + a] = n;
    }
}

void ref_max_pool(const RefTensor *x, const RefPool *g, RefTensor *shape, double *y, int64_t *where)
{
    int64_t o[4];
    pool_shape(x, g, shape);
    for (int64_t i = 0; i < ref_numel(shape); i++) {
        unravel(shape, i, o);
        double best = -INFINITY;
        int64_t at = -1;
        for (int64_t kh = 0; kh < g->kernel[0]; kh++)
            for (int64_t kw = 0; kw < g->kernel[1]; kw++) {
                int64_t h = o[2] * g->stride[0] - g->pad[0] + kh * g->dilation[0];
                int64_t w = o[3] * g->stride[1] - g->pad[1] + kw * g->dilation[1];
                if (h < 0 || h >= x->dim[2] || w < 0 || w >= x->dim[3])
                    continue;
                double v = pixel(x, o[0], o[1], h, w);
                if (at < 0 || v > best || isnan(v)) {
                    best = v;
                    at = h * x->dim[3] + w;
                }
            }
        y[i] = best;
        if (where)
            where[i] = at;
    }
}

void ref_avg_pool(const RefTensor *x, const RefPool *g, RefTensor *shape, double *y)
{
    int64_t o[4];
    pool_shape(x, g, shape);
    for (int64_t i = 0; i < ref_numel(shape); i++) {
        unravel(shape, i, o);
        double sum = 0.0;
        int64_t inside = 0, padded = 0;
        for (int64_t kh = 0; kh < g->kernel[0]; kh++)
            for (int64_t kw = 0; kw < g->kernel[1]; kw++) {
                int64_t h = o[2] * g->stride[0] - g->pad[0] + kh;
                int64_t w = o[3] * g->stride[1] - g->pad[1] + kw;
                padded += h < x->dim[2] + g->pad[0] && w < x->dim[3] + g->pad[1];
                if (h < 0 || h >= x->dim[2] || w < 0 || w >= x->dim[3])
                    continue;
                inside++;
                sum += pixel(x, o[0], o[1], h, w);
            }
        int64_t by = g->divisor ? g->divisor : g->count_pad ? padded : inside;
        y[i] = inside ? sum / (double)by : 0.0;
    }
}

void ref_adaptive_avg_pool(const RefTensor *x, int64_t oh, int64_t ow, double *y)
{
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t c = 0; c < x->dim[1]; c++)
            for (int64_t r = 0; r < oh; r++)
                for (int64_t s = 0; s < ow; s++) {
                    int64_t h0 = r * x->dim[2] / oh, h1 = ((r + 1) * x->dim[2] + oh - 1) / oh;
                    int64_t w0 = s * x->dim[3] / ow, w1 = ((s + 1) * x->dim[3] + ow - 1) / ow;
                    double sum = 0.0;
                    for (int64_t h = h0; h < h1; h++)
                        for (int64_t w = w0; w < w1; w++)
                            sum += pixel(x, n, c, h, w);
                    *y++ = sum / (double)((h1 - h0) * (w1 - w0));
                }
}

/* -- along dimensions ----------------------------------------------------------------------- */

void ref_softmax(const RefTensor *x, int dim, int is_log, double *y)
{
    int64_t inner = 1, n = x->rank ? x->dim[dim] : 1;
    for (int d = dim + 1; d < x->rank; d++)
        inner *= x->dim[d];
    for (int64_t i = 0; i < ref_numel(x); i++) {
        int64_t first = i - i / inner % n * inner;
        double top = -INFINITY, sum = 0.0;
        for (int64_t k = 0; k < n; k++)
            top = fmax(top, (double)x->data[first + k * inner]);
        for (int64_t k = 0; k < n; k++)
            sum += exp((double)x->data[first + k * inner] - top);
        double v = (double)x->data[i] - top;
        y[i] = is_log ? v - log(sum) : exp(v) / sum;
    }
}

void ref_reduce(RefReduce op, const RefTensor *x, unsigned dims, double *y)
{
    RefTensor out = *x;
    int64_t index[REF_MAX_RANK], count = 1;
    for (int d = 0; d < x->rank; d++)
        if (dims >> d & 1u) {
            count *= x->dim[d];
            out.dim[d] = 1;
        }
    for (int64_t i = 0; i < ref_numel(&out); i++)
        y[i] = op == REF_AMAX ? -INFINITY : 0.0;
    for (int64_t i = 0; i < ref_numel(x); i++) {
        unravel(x, i, index);
        for (int d = 0; d < x->rank; d++)
            index[d] = dims >> d & 1u ? 0 : index[d];
        double *to = &y[ravel(&out, index)], v = (double)x->data[i];
        *to = op == REF_AMAX ? (v > *to || isnan(v) ? v : *to) : *to + v;
    }
    for (int64_t i = 0; op == REF_MEAN && i < ref_numel(&out); i++)
        y[i] /= (double)count;
}

void ref_batch_norm(const RefTensor *x, const float *weight, const float *bias, const float *mean,
                    const float *var, double eps, double *y)
{
    int64_t plane = 1;
    for (int d = 2; d < x->rank; d++)
        plane *= x->dim[d];
    for (int64_t i = 0; i < ref_numel(x); i++) {
        int64_t c = i / plane % x->dim[1];
        double v = ((double)x->data[i] - (double)mean[c]) / sqrt((double)var[c] + eps);
        y[i] = v * (weight ? (double)weight[c] : 1.0) + (bias ? (double)bias[c] : 0.0);
    }
}
