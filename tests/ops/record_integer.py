#!/usr/bin/env python3
"""Records integer.bin as record.py records the other families: record_integer.py FOLDER

Products of 8-bit integers: what torch makes of the operands once they are dequantized, floats and
quantized again.  Where the result is integers, scales are powers of two and biases multiples of
their product, so that torch's floats are exact and no result hangs on how it rounds.
"""
import sys

import torch
import torch.ao.quantization.fx._decomposed  # registers the operators
import torch.nn.functional as F

import record as base
from record import Writer, rand

q = torch.ops.quantized_decomposed
INF = float("inf")


def integers(lo, hi, dtype, *shape):
    return torch.from_numpy(base.rng.integers(lo, hi + 1, shape)).to(dtype)


class Points:
    """Scale, zero point and range of a result, its clamp."""

    def __init__(self, dtype=torch.float32, scale=None, zero=0, lo=0, hi=0, clamp=(-INF, INF)):
        self.dtype, self.scale, self.zero, self.lo, self.hi, self.clamp = dtype, scale, zero, lo, hi, clamp

    def of(self, v):
        v = v.clamp(*self.clamp)
        if self.scale is None:
            return v
        return q.quantize_per_tensor(v.float(), self.scale, self.zero, self.lo, self.hi, self.dtype)

    def arguments(self):
        return list(self.clamp) + [self.scale, self.zero, self.lo, self.hi, base.CODES[self.dtype]]


FLOATS = Points()
RELU = Points(clamp=(0.0, INF))
BYTES = Points(torch.int8, 0.5, -3, -128, 127)
SIX = Points(torch.uint8, 0.25, 9, 3, 250, (0.0, 6.0))


def product(w, key, run, x, zero, weight, y, geometry=(), bias=True, points=None):
    """points: scales and zero points of x, one or one per row; else x's scale is in the channels'."""
    n = weight.shape[0]
    exact = y.scale is not None
    scales = (2.0 ** integers(-9, -6, torch.int64, n).float()) if exact else rand(n).abs() * 0.01 + 1e-4
    b = None
    if bias:
        b = torch.round(rand(n) * 64) * scales if exact else rand(n)
    sums = weight.flatten(1).to(torch.int32).sum(1, dtype=torch.int32)

    def real(kind):
        by, at = (torch.ones((), dtype=kind), zero) if points is None else points
        by = by.to(kind)
        shape = (n,) + (1,) * (weight.dim() - 1)
        return run((x.to(kind) - (at if points is None else at.to(kind))) * by,
                   weight.to(kind) * scales.to(kind).view(shape), None if b is None else b.to(kind))

    args = [x, weight, b] + list(geometry) + [sums, scales]
    args += [None, None] if points is None else list(points)
    args += [zero] + y.arguments()
    out = y.of(real(torch.float32))
    w.case(key, args, [out], [y.of(real(torch.float64)) if y.scale is None else out])


def linears(w):
    for shape, n in (((1, 64), 10), ((7, 37), 5), ((2, 3, 130), 33), ((5, 1), 17), ((16,), 3), ((0, 8), 4)):
        for dtype, lo in ((torch.int8, -128), (torch.uint8, 0)):
            for y in (FLOATS, RELU, BYTES, SIX):
                x = integers(lo, lo + 255, dtype, *shape)
                weight = integers(-128, 127, torch.int8, n, shape[-1])
                product(w, "integer_linear", F.linear, x, lo + 101, weight, y, bias=y is not RELU)
    for y in (FLOATS, RELU):
        for rows, kind in ((6, torch.float64), (1, torch.float32)):
            x, weight = integers(-128, 127, torch.int8, 6, 70), integers(-127, 127, torch.int8, 21, 70)
            points = rand(rows, 1).abs().to(kind) + 0.01, integers(-128, 127, torch.int64, rows, 1)
            product(w, "integer_linear", F.linear, x, 0, weight, y, points=points)


def convs(w):
    # x, weight, stride, padding, dilation, groups
    cases = [((2, 3, 9, 11), (8, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1), ((1, 5, 8, 9), (7, 5, 1, 1), (1, 1), (0, 0), (1, 1), 1),
             ((1, 4, 13, 12), (6, 2, 3, 2), (2, 1), (0, 2), (1, 2), 2), ((1, 3, 20, 23), (5, 3, 5, 7), (2, 3), (2, 3), (1, 1), 1),
             ((2, 6, 10, 14), (6, 1, 3, 3), (1, 1), (1, 1), (1, 1), 6), ((1, 5, 15, 17), (10, 1, 3, 3), (2, 2), (1, 1), (1, 1), 5),
             ((1, 3, 17, 16), (3, 1, 7, 6), (1, 2), (3, 0), (2, 1), 3), ((1, 2, 12, 40), (8, 1, 2, 3), (1, 1), (0, 1), (1, 3), 2),
             ((1, 64, 5, 5), (9, 64, 3, 3), (1, 1), (1, 1), (1, 1), 1), ((1, 300, 4, 6), (3, 300, 3, 3), (1, 1), (1, 1), (1, 1), 1),
             ((1, 3, 41, 77), (2, 3, 3, 3), (2, 2), (1, 1), (1, 1), 1), ((1, 5, 17, 31), (3, 5, 1, 1), (1, 1), (0, 0), (1, 1), 1),
             ((1, 2, 150, 2), (2, 2, 3, 1), (1, 1), (1, 0), (1, 1), 1), ((2, 4, 30), (6, 4, 3), (1,), (1,), (1,), 1), ((1, 6, 41), (6, 1, 5), (2,), (4,), (2,), 6)]
    for shape, kernel, stride, padding, dilation, groups in cases:
        run = lambda x, k, b: (F.conv1d if x.dim() == 3 else F.conv2d)(x, k, b, stride, padding, dilation, groups)
        geometry = list(stride), list(padding), list(dilation), groups
        for dtype, lo in ((torch.int8, -128), (torch.uint8, 0)):
            for y in (FLOATS, BYTES, SIX):
                x, weight = integers(lo, lo + 255, dtype, *shape), integers(-128, 127, torch.int8, *kernel)
                product(w, "integer_convolution", run, x, lo + 7, weight, y, geometry, bias=y is not SIX)
        x, weight = integers(-128, 127, torch.int8, *shape), integers(-127, 127, torch.int8, *kernel)
        points = torch.tensor([0.037], dtype=torch.float64), torch.tensor([-11])
        product(w, "integer_convolution", run, x, 0, weight, FLOATS, geometry, points=points)


def pools(w):
    for dtype, lo in ((torch.int8, -128), (torch.uint8, 0)):
        for shape, k, s, p, d, ceil in (((2, 3, 9, 11), [3, 3], [2, 2], [1, 1], [1, 1], False),
                                        ((4, 8, 7), [2, 3], [1, 3], [1, 1], [2, 1], True),
                                        ((1, 1, 5, 40), [5, 2], [], [0, 0], [1, 1], False)):
            x = integers(lo, lo + 255, dtype, *shape)
            y = F.max_pool2d(x.double(), k, s or None, p, d, ceil).to(dtype)
            w.case("max_pool2d", [x, k, s, p, d, ceil], [y], [y])


def means(w):
    # x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override: counts that floats divide by exactly,
    # but for one with the scale of x, where only ties may hang on rounding and an odd count has none
    cases = [((2, 5, 8, 8), [8, 8], [8, 8], [0, 0], False, True, None, 2.0), ((1, 7, 7, 7), [7, 7], [7, 7], [0, 0], False, True, None, 1.0),
             ((3, 9, 10), [2, 4], [2, 3], [1, 2], False, True, None, 0.5), ((2, 3, 11, 40), [4, 4], [], [1, 2], True, False, 32, 1.0),
             ((1, 2, 5, 64), [1, 32], [1, 16], [0, 0], False, False, None, 4.0), ((1, 2, 4, 9), [3, 3], [1, 1], [1, 1], False, True, None, 1.0)]
    for dtype, lo in ((torch.int8, -128), (torch.uint8, 0)):
        for shape, k, s, p, ceil, counts, divisor, by in cases:
            for to, zero, least, most in ((torch.int8, 5, -128, 127), (torch.uint8, 130, 120, 200)):
                x, at = integers(lo, lo + 255, dtype, *shape), lo + 77
                y = F.avg_pool2d((x.double() - at) * by, k, s or None, p, ceil, counts, divisor)
                out = q.quantize_per_tensor(y.float(), 1.0, zero, least, most, to)
                w.case("integer_avg_pool2d", [x, k, s, p, ceil, counts, divisor, at, by, zero, least, most,
                                              base.CODES[to]], [out], [out])


def powers(scale, n):
    """Of e^-scale, as integers of which n have a sum below 2^32."""
    bits = 30 if n < 4 else 32 - n.bit_length()
    return torch.round(torch.exp(-scale * torch.arange(256).double()) * 2.0 ** bits).to(torch.int32)


def softmaxes(w):
    # x, axis, scale of x, and of y how it is kept; no result near the middle of two integers, which fixed point may miss
    cases = [((12,), 0, 0.05, 256, torch.int8, -128, -128, 127), ((2, 5), 1, 0.3, 256, torch.uint8, 0, 0, 255), ((1,), 0, 0.1, 256, torch.int8, -128, -128, 127),
             ((3, 4, 2), 1, 0.02, 100, torch.uint8, 7, 0, 255), ((2, 3, 1, 4), -4, 0.0029, 256, torch.int8, -128, -128, 127), ((1, 30), 1, 0.7, 127, torch.int8, 0, 0, 127)]
    for dtype, lo in ((torch.int8, -128), (torch.uint8, 0)):
        for shape, axis, scale, steps, to, zero, least, most in cases:
            share = torch.tensor(0.5)
            while bool(((share - share.floor() - 0.5).abs() < 0.02).any()):
                x = integers(lo, lo + 255, dtype, *shape)
                share = torch.softmax(x.double() * scale, axis) * steps
            y = torch.clamp(torch.round(share) + zero, least, most).to(to)
            shift = max(s for s in range(31) if steps * 2 ** s <= 2 ** 31)
            w.case("integer_softmax", [x, powers(scale, shape[axis]), axis, steps * 2 ** shift // 65536, shift, zero, least, most, 0,
                                       base.CODES[to]], [y], [y])


def log_softmaxes(w):
    # x, axis, scale of x, and of y how it is kept
    cases = [((12,), 0, 0.05, 0.03, torch.int8, 127, -128, 127), ((2, 5), 1, 0.3, 0.2, torch.uint8, 255, 0, 255), ((1,), 0, 0.1, 0.02, torch.int8, 100, -128, 127),
             ((3, 4, 2), 1, 0.02, 0.05, torch.uint8, 200, 30, 255), ((2, 3, 1, 4), -4, 0.0029, 0.01, torch.int8, 127, -128, 127), ((1, 20), 1, 0.07, 0.1, torch.int8, 127, -128, 120)]
    for dtype, lo in ((torch.int8, -128), (torch.uint8, 0)):
        for shape, axis, scale, step, to, zero, least, most in cases:
            v = torch.tensor(0.5)
            while not is_clear(v):
                x = integers(lo, lo + 255, dtype, *shape)
                v = torch.log_softmax(x.double() * scale, axis) / step
            y = torch.clamp(torch.round(v) + zero, least, most).to(to)
            logs, shift = float(torch.tensor(2.0).double().log()) / step, 15
            while max(scale / step, logs / 32) * 2 ** shift > 32767:
                shift -= 1
            w.case("integer_softmax", [x, powers(scale, shape[axis]), axis, round(scale / step * 2 ** shift), shift, zero, least, most, round(logs * 2 ** shift),
                                       base.CODES[to]], [y], [y])


def float_softmaxes(w):
    for dtype, lo in ((torch.int8, -128), (torch.uint8, 0)):
        for shape, axis, scale in (((12,), 0, 0.05), ((2, 5), 1, 0.3), ((1,), 0, 0.1), ((3, 4, 2), 1, 0.02), ((2, 3, 1, 4), -4, 0.003)):
            x = integers(lo, lo + 255, dtype, *shape)
            y = torch.softmax(x.double() * scale, axis)
            w.case("integer_softmax", [x, powers(scale, shape[axis]), axis, 0, 1, 0, 0, 0, 0, base.CODES[torch.float32]], [y.float()], [y])


def lookups(w):
    for dtype, lo in ((torch.int8, -128), (torch.uint8, 0)):
        for to, least in ((torch.int8, -128), (torch.uint8, 0)):
            x, table = integers(lo, lo + 255, dtype, 3, 50), integers(0, 255, torch.uint8, 256)
            y = table[x.view(torch.uint8).long()].view(to)
            w.case("lookup", [x, table, base.CODES[to]], [y], [y])


def is_clear(v):
    """No element is near the middle of two integers, which fixed point may miss."""
    return bool(((v - v.floor() - 0.5).abs() > 0.02).all())


def matmuls(w):
    # batches, m, k, n; whether the second is transposed; zero points; what a sum is multiplied with; y's zero point and range
    cases = [((1, 3, 5, 4), False, 0, 0, 0.003, 5, -128, 127), ((2, 4, 16, 7), True, 3, -9, 0.0007, 0, 0, 127), ((3, 1, 33, 2), False, -17, 40, 2.0 ** -11, -3, -128, 127),
             ((1, 2, 1, 9), True, 100, -100, 0.004, 0, -128, 127)]
    for x_type, w_type, y_type in ((torch.int8, torch.int8, torch.int8), (torch.uint8, torch.int8, torch.uint8), (torch.int8, torch.uint8, torch.int8)):
        up = [128 if t == torch.uint8 else 0 for t in (x_type, w_type, y_type)]
        for (b, m, k, n), turned, x_zero, w_zero, by, zero, lo, hi in cases:
            v = None
            while v is None or not is_clear(v):
                x, second = integers(-128 + up[0], 127 + up[0], x_type, b, m, k), integers(-128 + up[1], 127 + up[1], w_type, b, k, n)
                v = torch.bmm(x.double() - (x_zero + up[0]), second.double() - (w_zero + up[1])) * by
            y = torch.clamp(torch.round(v) + zero + up[2], lo + up[2], hi + up[2]).to(y_type)
            second = second.transpose(1, 2).contiguous() if turned else second
            w.case("integer_matmul", [x, second, turned, x_zero + up[0], w_zero + up[1], round(by * 2 ** 31), zero + up[2], lo + up[2], hi + up[2],
                                      base.CODES[y_type]], [y], [y])


def norm(w, x, zero, scale, row, each, centred, of, weight, bias, eps, y_scale, y_zero, y_type, lo, hi):
    """`of`: what torch makes of the floats of x."""
    wide = (row - 1).bit_length()
    bits = 14 - (wide + 1) // 2
    factor, offset = weight.double() / y_scale / 2 ** bits, bias.double() / y_scale + y_zero + 0.5
    shift = max(s for s in range(31) if factor.abs().max() * 2 ** s < 32767 and offset.abs().max() * 2 ** s < 2 ** 30 - 1)
    y = torch.clamp(torch.round(of / y_scale) + y_zero, lo, hi).to(y_type)
    numbers = [torch.round(v * 2 ** shift).to(torch.int32) for v in (factor, offset)]
    w.case("integer_norm", [x, *numbers, row, each, centred, zero, round(eps * row * row / scale ** 2), bits, shift, lo, hi, base.CODES[y_type]], [y], [y])


def norms(w):
    # shape, groups of channels or 0 for a layer norm, scale and zero point of x, of y; fixed point misses the middle of two integers by up to a fiftieth
    cases = [((3, 32), 0, 0.05, 3, 0.03, -4, torch.int8), ((2, 5, 7), 0, 0.002, -90, 0.02, 0, torch.int8), ((2, 6, 3, 4), 3, 0.1, 7, 0.04, 130, torch.uint8),
             ((1, 4, 5, 5), 4, 0.01, 0, 0.05, 1, torch.int8), ((1, 150), 0, 0.3, 11, 0.25, 0, torch.int8), ((2, 1), 0, 0.1, 0, 0.1, 3, torch.int8)]
    for dtype, lo in ((torch.int8, -128), (torch.uint8, 0)):
        for shape, groups, scale, zero, y_scale, y_zero, y_type in cases:
            zero, channels, row = zero + 128 + lo, shape[1] if groups else shape[-1], shape[-1]
            weight, bias = rand(channels) + 1.5, rand(channels) * 0.5
            each = row = shape[-1]
            if groups:
                each = shape[2] * shape[3]
                row = channels // groups * each
            least = 0 if y_type == torch.uint8 else -128
            of = None
            while of is None or not is_clear(of / y_scale):
                x = integers(max(lo, zero - 40), min(lo + 255, zero + 60), dtype, *shape)
                v = (x.double() - zero) * scale
                of = F.group_norm(v, groups, weight.double(), bias.double()) if groups else F.layer_norm(v, shape[-1:], weight.double(), bias.double())
            norm(w, x, zero, scale, row, each if groups else 1, True, of, weight, bias, 1e-5, y_scale, y_zero, y_type, least, least + 255)
        weight, of = rand(24) + 1.5, None
        while of is None or not is_clear(of / 0.03):
            x = integers(lo, lo + 255, dtype, 2, 24)
            of = F.rms_norm((x.double() - lo - 100) * 0.02, [24], weight.double(), 1e-6)
        norm(w, x, lo + 100, 0.02, 24, 1, False, of, weight, torch.zeros(24), 1e-6, 0.03, -5, torch.int8, -128, 127)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: record_integer.py FOLDER")
    torch.set_num_threads(1)
    base.rng = base.np.random.default_rng(4)
    w = Writer(sys.argv[1] + "/integer.bin")
    for part in (linears, convs, pools, means, softmaxes, log_softmaxes, float_softmaxes, lookups, matmuls, norms):
        part(w)


main()
