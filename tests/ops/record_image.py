#!/usr/bin/env python3
"""Records image.bin as record.py records the other families: record_image.py FOLDER

Resampling, borders, elements that trade places, normalization in groups, variance, and transposed
convolutions of more kinds.
"""
import sys

import torch
import torch.nn.functional as F

import record as base
from record import DTYPES, INF, NAN, Writer, rand, record

aten = torch.ops.aten


def upsample(w):
    images = [rand(1, 2, 3, 4), rand(2, 1, 7, 5), rand(1, 1, 1, 1), rand(1, 3, 8, 19),
              rand(0, 2, 3, 3)]
    sizes = [[6, 8], [3, 4], [1, 1], [2, 9], [13, 33], [7, 5]]
    scales = [[2.0, 2.0], [1.0, 3.0], [1.5, 2.5], [4.0, 1.0], [1.3, 1.7]]
    wide = rand(1, 1, 2, 1100)
    cases = [(x, s, None) for x in images for s in sizes] + \
            [(x, None, s) for x in images for s in scales] + \
            [(wide, [3, 2100], None), (wide, None, [2.0, 2.0]), (rand(1, 1, 1, 40), [1, 17000], None),
             (wide, [1, 30], None)]
    for x, size, scale in cases:
        record(w, "aten::upsample_nearest2d.vec_out", aten.upsample_nearest2d.vec, x, size, scale)
        for align in (False, True):
            if x.shape[-1] == 40:
                continue
            record(w, "aten::upsample_bilinear2d.vec_out", aten.upsample_bilinear2d.vec, x, size,
                   align, scale)
    odd = rand(1, 1, 4, 4)
    odd[0, 0, 1, 1], odd[0, 0, 2, 3] = NAN, INF
    record(w, "aten::upsample_bilinear2d.vec_out", aten.upsample_bilinear2d.vec, odd, [7, 9], False,
           None)
    record(w, "aten::upsample_nearest2d.vec_out", aten.upsample_nearest2d.vec, odd, [7, 9], None)


def moved(w):
    for dtype in DTYPES:
        x = rand(2, 3, 4, 5, dtype=dtype)
        record(w, "aten::roll.out", aten.roll, x, [1, -2], [2, 3])
        record(w, "aten::flip.out", aten.flip, x, [0, -1])
        if dtype != torch.bool:
            record(w, "aten::reflection_pad2d.out", aten.reflection_pad2d, x, [2, 1, 0, 3])
            record(w, "aten::replication_pad2d.out", aten.replication_pad2d, x, [2, 1, 0, 3])
        record(w, "aten::pixel_unshuffle.out", aten.pixel_unshuffle, x[..., :4].contiguous(), 2)
    x = rand(2, 3, 4, 5)
    for shifts, dims in (([0], [0]), ([7], [-1]), ([-9, 1, 2], [3, 0, 1]), ([1, 2], [1, 1]),
                         ([2, -2], [2, 2]), ([3, 3, 3, 3], [0, 1, 2, 3])):
        record(w, "aten::roll.out", aten.roll, x, shifts, dims)
    record(w, "aten::roll.out", aten.roll, x, [17], [])
    record(w, "aten::roll.out", aten.roll, rand(1, 14, 14, 9), [-3, -3], [1, 2])
    record(w, "aten::roll.out", aten.roll, rand(3, 0), [1, 1], [0, 1])
    for dims in ([], [1], [0, 1, 2, 3], [-2]):
        record(w, "aten::flip.out", aten.flip, x, dims)
    record(w, "aten::flip.out", aten.flip, rand(()), [])
    record(w, "aten::flip.out", aten.flip, rand(0, 4), [1])
    for pads, shape in (([1, 2], (2, 5)), ([1, 2], (2, 3, 5)), ([0, 0], (1, 1)), ([4, 4], (1, 1, 5)),
                        ([-1, 2], (2, 3, 5)), ([-1, -2], (2, 5))):
        record(w, "aten::reflection_pad1d.out", aten.reflection_pad1d, rand(*shape), pads)
        record(w, "aten::replication_pad1d.out", aten.replication_pad1d, rand(*shape), pads)
    record(w, "aten::replication_pad1d.out", aten.replication_pad1d, rand(1, 1, 2), [9, 7])
    for pads, shape in (([1, 1, 1, 1], (3, 4, 5)), ([3, 0, 2, 1], (1, 3, 4, 5)),
                        ([-1, 1, 2, -1], (1, 3, 4, 5)), ([0, 0, 0, 0], (1, 1, 2, 2))):
        record(w, "aten::reflection_pad2d.out", aten.reflection_pad2d, rand(*shape), pads)
        record(w, "aten::replication_pad2d.out", aten.replication_pad2d, rand(*shape), pads)
    for pads, shape in (([1, 2, 0, 1, 2, 0], (2, 3, 4, 5)), ([1, 1, 1, 1, 1, 1], (1, 2, 3, 4, 5))):
        record(w, "aten::reflection_pad3d.out", aten.reflection_pad3d, rand(*shape), pads)
        record(w, "aten::replication_pad3d.out", aten.replication_pad3d, rand(*shape), pads)
    for shape, k in (((1, 9, 4, 5), 3), ((4, 2, 3), 2), ((2, 2, 8, 1, 1), 2), ((1, 3, 2, 2), 1),
                     ((0, 4, 2, 2), 2)):
        record(w, "aten::pixel_shuffle.out", aten.pixel_shuffle, rand(*shape), k)
    for shape, k in (((1, 2, 6, 9), 3), ((2, 4, 2), 2), ((1, 3, 2, 2), 1)):
        record(w, "aten::pixel_unshuffle.out", aten.pixel_unshuffle, rand(*shape), k)


def statistics(w):
    def native(x, weight, bias, n, c, hw, groups, eps):
        return aten.native_group_norm(x, weight, bias, n, c, hw, groups, eps)

    def whole(x, groups, weight, bias, eps, cudnn):
        return F.group_norm(x, groups, weight, bias, eps)
    for shape, groups in (((2, 8, 5, 7), 4), ((1, 6, 3), 1), ((3, 4), 2), ((1, 2, 30, 33), 2),
                          ((1, 4, 1, 1), 2), ((1, 16, 14, 14), 1)):
        c = shape[1]
        for affine in (True, False):
            x, weight, bias = rand(*shape) * 3 + 1, rand(c) if affine else None, rand(c) if affine else None
            inner = x.numel() // shape[0] // c
            record(w, "aten::native_group_norm.out", native, x, weight, bias, shape[0], c, inner,
                   groups, 1e-5)
            record(w, "group_norm", whole, x, groups, weight, bias, 1e-6, False)
    record(w, "group_norm", whole, rand(1, 2, 3, 3), 2, rand(2), None, 1e-5, False)

    def var(x, dims, correction, keep):
        return torch.var(x, dims, correction=1 if correction is None else correction, keepdim=keep)
    for shape, dims in (((4, 30), [1]), ((4, 30), [0]), ((2, 3, 5), None), ((2, 3, 5), [0, 2]),
                        ((3, 1200), [-1]), ((1, 7), [0])):
        for correction in (None, 0, 1, 2):
            keep = shape == (4, 30)
            record(w, "aten::var.correction_out", var, rand(*shape) + 2, dims, correction, keep)
            record(w, "aten::var.correction_out", var, rand(3, 4, dtype=torch.int32).double(),
                   [len(shape) % 2], correction, keep)


def transposed(w):
    def run(n, ic, oc, size, kernel, stride, pad=0, dilation=1, groups=1, bias=True, out_pad=0):
        nd = len(size)

        def full(v):
            return [v] * nd if isinstance(v, int) else list(v)
        record(w, "aten::convolution.out", aten.convolution.default, rand(n, ic, *size),
               rand(ic, oc // groups, *kernel), rand(oc) if bias else None, full(stride), full(pad),
               full(dilation), True, full(out_pad), groups)

    run(1, 8, 5, (6, 9), (4, 4), 2, pad=1)
    run(2, 3, 4, (5, 4), (3, 3), 1, pad=1)
    run(1, 3, 130, (4, 5), (2, 2), 2)
    run(1, 140, 3, (3, 4), (3, 3), 2, pad=1, out_pad=1)
    run(1, 4, 6, (7, 5), (3, 3), 3, groups=2, out_pad=2)
    run(1, 6, 6, (5, 5), (4, 4), 2, pad=1, groups=6, bias=False)
    run(1, 4, 3, (5, 6), (3, 3), 2, pad=2, dilation=2)
    run(1, 4, 3, (5, 6), (3, 2), (4, 6), dilation=(2, 3))
    run(1, 4, 3, (4, 4), (2, 3), (3, 5), pad=(0, 1), out_pad=(1, 2))
    run(1, 2, 3, (1, 1), (5, 5), 7)
    run(1, 5, 4, (33,), (16,), 8, pad=4)
    run(2, 5, 4, (40,), (3,), 1, dilation=4)
    run(1, 2, 2, (9, 70), (2, 2), 2)
    run(1, 2, 3, (3, 3), (1, 1), 1)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: record_image.py FOLDER")
    torch.set_num_threads(1)
    base.rng = base.np.random.default_rng(2)
    w = Writer(sys.argv[1] + "/image.bin")
    for part in (upsample, moved, statistics, transposed):
        part(w)


main()
