#!/usr/bin/env python3
"""Records four families as record.py records the others: record_wide.py FOLDER

wide      what the cores do not compute, since they take only float: products, convolutions, pools, norms, softmax and
          resampling in double, and the first three in integers
borders   padding that cuts away more than there is
fills     numbers of short floats that are filled in and chosen
added     values that are added at places which indices name, some of them twice
"""
import sys

import torch
import torch.nn.functional as F

import record as base
from record import INF, NAN, Picks, Writer, rand, record

aten = torch.ops.aten
DOUBLE, SHORT = torch.float64, [torch.float16, torch.bfloat16]
INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def products(w):
    def addmm(s, p, q, beta, alpha):
        return torch.addmm(s, p, q, beta=beta, alpha=alpha)

    for dtype in [DOUBLE] + INTS:
        def some(*shape):
            return rand(*shape, dtype=dtype)
        record(w, "aten::mm.out", torch.mm, some(7, 9), some(9, 5))
        if dtype in (DOUBLE, torch.int32):
            record(w, "aten::mm.out", torch.mm, some(2, 4100), some(4100, 2))  # in several pieces
        record(w, "aten::bmm.out", torch.bmm, some(3, 4, 6), some(3, 6, 5))
        record(w, "aten::linear.out", F.linear, some(2, 3, 6), some(4, 6), some(4))
        record(w, "aten::linear.out", F.linear, some(3, 6), some(4, 6), None)
        for m, k, n in ((1, 1, 1), (2, 0, 3), (0, 2, 3)):
            record(w, "aten::mm.out", torch.mm, some(m, k), some(k, n))
            record(w, "aten::bmm.out", torch.bmm, some(2, m, k), some(2, k, n))
        for shape in ((5,), (1, 5), (4, 5), (4, 1), ()):
            record(w, "aten::addmm.out", addmm, some(*shape), some(4, 6), some(6, 5), 1, 1)
        record(w, "aten::addmm.out", addmm, some(5), some(4, 6), some(6, 5), 2, -3)
        record(w, "aten::addmm.out", addmm, some(5), some(4, 6), some(6, 5), 0, 2)
    record(w, "aten::addmm.out", addmm, rand(5, dtype=DOUBLE), rand(4, 6, dtype=DOUBLE), rand(6, 5, dtype=DOUBLE), 0.5, 2.5)
    record(w, "aten::addmm.out", addmm, torch.full((3,), NAN, dtype=DOUBLE), rand(2, 2, dtype=DOUBLE),
           rand(2, 3, dtype=DOUBLE), 0, 1)
    odd = rand(4, 6, dtype=DOUBLE)
    odd[1, 2], odd[2, 3], odd[3, 0] = NAN, INF, -INF
    record(w, "aten::mm.out", torch.mm, odd, rand(6, 3, dtype=DOUBLE))


def convolutions(w):
    def run(dtype, n, ic, oc, size, kernel, stride=1, pad=0, dilation=1, groups=1, bias=True, back=False, out_pad=0):
        def full(v):
            return [v] * len(size) if isinstance(v, int) else list(v)
        shape = (ic, oc // groups) if back else (oc, ic // groups)
        try:
            record(w, "aten::convolution.out", aten.convolution.default, rand(n, ic, *size, dtype=dtype),
                   rand(*shape, *kernel, dtype=dtype), rand(oc, dtype=dtype) if bias else None, full(stride), full(pad),
                   full(dilation), back, full(out_pad), groups)
        except RuntimeError:  # not every kind of convolution takes every integer
            assert dtype in INTS

    for dtype in [DOUBLE] + INTS:
        run(dtype, 2, 3, 4, (6, 7), (3, 3), pad=1)
        run(dtype, 1, 4, 6, (8, 9), (3, 2), stride=(2, 3), pad=(2, 1), groups=2)
        run(dtype, 1, 4, 4, (5, 6), (3, 3), pad=2, dilation=2, groups=4, bias=False)
        run(dtype, 1, 3, 2, (1, 1), (1, 1))
        run(dtype, 2, 3, 4, (11,), (4,), stride=2, pad=3, dilation=2)
        run(dtype, 1, 3, 4, (4, 5), (3, 3), stride=2, pad=1, back=True, out_pad=1)
        run(dtype, 2, 4, 6, (5, 3), (3, 2), stride=(1, 2), dilation=(2, 1), groups=2, bias=False, back=True)
        run(dtype, 1, 3, 5, (6,), (4,), stride=3, pad=1, back=True)
        run(dtype, 0, 2, 3, (5, 5), (3, 3))


def pools(w):
    options = [([2, 2], [], [0, 0], [1, 1], False), ([3, 3], [2, 2], [1, 1], [1, 1], True),
               ([3, 2], [1, 2], [1, 0], [1, 1], False), ([2, 2], [1, 1], [1, 1], [2, 2], False),
               ([2, 2], [3000, 3000], [0, 0], [1, 1], False)]
    for dtype in [DOUBLE] + INTS:
        images = [rand(2, 1, 6, 7, dtype=dtype), rand(2, 5, 5, dtype=dtype)]
        if dtype == DOUBLE:
            odd = rand(1, 2, 6, 6, dtype=dtype)
            odd[0, 0, 1, 1], odd[0, 1, 3, 3], odd[0, 1, 0, 0] = NAN, -INF, INF
            images.append(odd)
        else:
            images.append(torch.full((1, 1, 4, 4), torch.iinfo(dtype).min, dtype=dtype))
        for x in images:
            for k, s, p, d, ceil in options:
                record(w, "aten::max_pool2d_with_indices.out", aten.max_pool2d_with_indices, x, k, s, p, d, ceil)
            for k, s, p, d, ceil in options if dtype in (DOUBLE, torch.int64) else ():
                for count, divisor in ((True, None), (False, None), (True, 3), (False, -2)):
                    if d[0] == 1:
                        record(w, "aten::avg_pool2d.out", aten.avg_pool2d, x, k, s, p, ceil, count, divisor)
            for size in ([1, 1], [3, 2], [7, 9]) if dtype == DOUBLE else ():
                record(w, "aten::_adaptive_avg_pool2d.out", aten._adaptive_avg_pool2d, x, size)
    record(w, "aten::max_pool2d_with_indices.out", aten.max_pool2d_with_indices, rand(1, 1, 1, 1, dtype=torch.int32),
           [2, 2], [1, 1], [1, 1], [2, 2], False)  # a window without an element


def norms(w):
    def some(*shape):
        return rand(*shape, dtype=DOUBLE)

    for x in (some(3, 10), some(2, 3, 4), some(()), some(0, 4), some(3, 1), some(2, 500), some(2, 50) * 50):
        for dim in {-1, 0, max(x.dim() - 2, 0)}:
            record(w, "aten::_softmax.out", aten._softmax, x, dim, False)
            record(w, "aten::_log_softmax.out", aten._log_softmax, x, dim, False)
    odd = some(4, 5)
    odd[0, 1], odd[1, 2], odd[2, 0], odd[3] = NAN, INF, -INF, -INF
    record(w, "aten::_softmax.out", aten._softmax, odd, 1, False)
    record(w, "aten::_log_softmax.out", aten._log_softmax, odd, 1, False)
    for shape in ((2, 3, 4, 5), (4, 6), (2, 3, 40), (0, 3, 2, 2)):
        c = shape[1]
        for affine in (True, False):
            record(w, "aten::_native_batch_norm_legit_no_training.out", aten._native_batch_norm_legit_no_training,
                   some(*shape), some(c) if affine else None, some(c) if affine else None, some(c), some(c).abs() + 0.01,
                   0.1, 1e-5)
    for shape, axes in (((3, 10), 1), ((2, 3, 4, 5), 2), ((0, 8), 1), ((2, 700), 1)):
        row = shape[-axes:]
        for weight, bias in ((some(*row), some(*row)), (some(*row), None), (None, None)):
            x = some(*shape) * 3 + 2
            record(w, "aten::native_layer_norm.out", aten.native_layer_norm, x, list(row), weight, bias, 1e-5)
            record(w, "layer_norm", lambda a, r, p, q, e, c: F.layer_norm(a, r, p, q, e), x, list(row), weight, bias,
                   1e-5, False)
    for shape, groups in (((2, 8, 5, 7), 4), ((1, 6, 3), 1), ((3, 4), 2)):
        for affine in (True, False):
            c = shape[1]
            x, weight, bias = some(*shape) * 3 + 1, some(c) if affine else None, some(c) if affine else None
            record(w, "aten::native_group_norm.out", aten.native_group_norm, x, weight, bias, shape[0], c,
                   x.numel() // shape[0] // c, groups, 1e-5)
            record(w, "group_norm", lambda a, g, p, q, e, n: F.group_norm(a, g, p, q, e), x, groups, weight, bias, 1e-6,
                   False)


def images(w):
    sizes, scales = [[6, 8], [3, 4], [1, 1], [13, 33]], [[2.0, 2.0], [1.5, 2.5], [1.3, 1.7]]
    for shape in ((1, 2, 3, 4), (2, 1, 7, 5), (1, 1, 1, 1), (0, 2, 3, 3)):
        for size, scale in [(s, None) for s in sizes] + [(None, s) for s in scales]:
            for dtype in (DOUBLE, torch.uint8):
                record(w, "aten::upsample_nearest2d.vec_out", aten.upsample_nearest2d.vec, rand(*shape, dtype=dtype),
                       size, scale)
            for align in (False, True):
                record(w, "aten::upsample_bilinear2d.vec_out", aten.upsample_bilinear2d.vec, rand(*shape, dtype=DOUBLE),
                       size, align, scale)


def borders(w):
    for pads in ([-4, 5], [5, -4], [-5, 6], [-3, 1], [0, -3], [-1, -2]):
        record(w, "aten::replication_pad1d.out", aten.replication_pad1d, rand(2, 4), pads)
    for pads in ([-3, 3], [3, -3], [-4, 3], [3, -6], [-2, 2], [-1, -2]):
        record(w, "aten::reflection_pad1d.out", aten.reflection_pad1d, rand(2, 4), pads)
    for pads in ([-4, 5, 0, 0], [-1, 5, 2, -1], [0, -3, -2, 7]):
        record(w, "aten::replication_pad2d.out", aten.replication_pad2d, rand(1, 2, 4, 4), pads)
    for pads in ([-3, 3, 1, -2], [2, -4, -1, 0]):
        record(w, "aten::reflection_pad2d.out", aten.reflection_pad2d, rand(1, 2, 4, 4), pads)
    record(w, "aten::replication_pad3d.out", aten.replication_pad3d, rand(1, 2, 3, 4), [-4, 5, 1, -2, 0, 3])
    record(w, "aten::reflection_pad3d.out", aten.reflection_pad3d, rand(1, 2, 3, 4), [-3, 3, 1, -2, 0, 1])


def fills(w):
    for dtype in SHORT:
        for value in (0, 1, -2.75, 65504.0, INF, 3, True, 1e-7, 0.1):
            record(w, "aten::full.out", lambda s, v: torch.full(s, v, dtype=dtype), [2, 3], value)
            record(w, "aten::full_like.out", lambda x, v, f: torch.full_like(x, v), rand(3, dtype=dtype), value, None)
            record(w, "aten::scalar_tensor.out", lambda v: torch.scalar_tensor(v, dtype=dtype), value)
        a, b, p = rand(3, 4, dtype=dtype), rand(4, dtype=dtype), rand(3, 1, dtype=torch.bool)
        record(w, "aten::where.self_out", torch.where, p, a, b)
        record(w, "aten::where.self_out", torch.where, rand(3, 4, dtype=torch.bool), a, torch.tensor(0.1, dtype=dtype))
        record(w, "aten::where.self_out", torch.where, p, a, torch.tensor(0.1))
        record(w, "aten::where.self_out", torch.where, p, a, torch.tensor(0.1, dtype=DOUBLE))
        record(w, "aten::where.self_out", torch.where, p, rand(3, 4, dtype=DOUBLE), torch.tensor(0.1, dtype=dtype))
        record(w, "aten::where.self_out", torch.where, p, a, torch.tensor(3))


def added(w):
    at = torch.tensor
    for dtype in [torch.float32, DOUBLE, torch.bool] + SHORT + INTS:
        def some(*shape):
            return rand(*shape, dtype=dtype)
        x = some(4, 5, 3)
        for picks in ([at([0, 0, -1, 0])], [None, at([[1, 1], [4, -5]])], [at([2, 2]), at([3, 3])],
                      [at([0, 0]), None, at([1, 1])], [None, None, at(2)], [at([1, 1], dtype=torch.int32)]):
            like = aten.index.Tensor(x, picks)
            record(w, "aten::index_put.out", aten.index_put, x, Picks(picks), some(*like.shape), True)
            record(w, "aten::index_put.out", aten.index_put, x, Picks(picks), some(()), True)
        record(w, "aten::index_put.out", aten.index_put, some(3), Picks([at([1] * 40)]), some(40), True)
        record(w, "aten::index_put.out", aten.index_put, some(3), Picks([at([], dtype=torch.int64)]), some(0), True)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: record_wide.py FOLDER")
    torch.set_num_threads(1)
    families = {"wide": [products, convolutions, pools, norms, images], "borders": [borders], "fills": [fills],
                "added": [added]}
    for name, parts in families.items():
        base.rng = base.np.random.default_rng(5)
        w = Writer(f"{sys.argv[1]}/{name}.bin")
        for part in parts:
            part(w)


main()
