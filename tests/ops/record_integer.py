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
            w.case("integer_softmax", [x, powers(scale, shape[axis]), axis, steps * 2 ** shift // 65536, shift, zero, least, most,
                                       base.CODES[to]], [y], [y])


def float_softmaxes(w):
    for dtype, lo in ((torch.int8, -128), (torch.uint8, 0)):
        for shape, axis, scale in (((12,), 0, 0.05), ((2, 5), 1, 0.3), ((1,), 0, 0.1), ((3, 4, 2), 1, 0.02), ((2, 3, 1, 4), -4, 0.003)):
            x = integers(lo, lo + 255, dtype, *shape)
            y = torch.softmax(x.double() * scale, axis)
            w.case("integer_softmax", [x, powers(scale, shape[axis]), axis, 0, 1, 0, 0, 0, base.CODES[torch.float32]], [y.float()], [y])


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: record_integer.py FOLDER")
    torch.set_num_threads(1)
    base.rng = base.np.random.default_rng(4)
    w = Writer(sys.argv[1] + "/integer.bin")
    for part in (linears, convs, pools, means, softmaxes, float_softmaxes):
        part(w)


main()
