#!/usr/bin/env python3
"""Records PyTorch's answers: record.py FOLDER writes one FAMILY.bin for each family of kernels.

A case has a kernel's key, its arguments in the order of the `out` schema, and its outputs. A
float32 output is stored with the float64 answer beside it, so that a test can compare an error
with that of torch. tests/unit/test_kernels.c reads the files; the format is in `Writer`.
"""
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F

INF, NAN = float("inf"), float("nan")
CODES = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5,
    torch.float32: 6, torch.float64: 7, torch.bool: 11, torch.bfloat16: 15, torch.float8_e5m2: 23,
    torch.float8_e4m3fn: 24, torch.float8_e5m2fnuz: 25, torch.float8_e4m3fnuz: 26,
    torch.uint64: 29,
}
BITS = {torch.bfloat16: torch.int16, **{t: torch.uint8 for t, code in CODES.items() if 23 <= code <= 26}}  # of what numpy lacks

CODE_OF = {code: dtype for dtype, code in CODES.items()}


class Picks(list):
    """Indices by axis: tensors and None."""


class Writer:
    """A file is "ETCOPS1\\n" and cases up to its end; integers are little-endian.

    case     text key; u32 n, argument[n]; u32 n, output[n]
    text     u32 bytes, the bytes
    argument u8 tag as EtcTag, then: tensor | nothing for none | i64 | f64 | u8 bool | text
             | u32 n, i64[n] | u32 n, f64[n] | u32 n, tensor[n] | u32 n, (u8 1, tensor | u8 0)[n]
    tensor   u8 dtype, u8 rank, u8 order given, i32 dim[rank], u8 order[rank] if given, data in
             memory order
    output   tensor; if float32, f64 data too
    """

    def __init__(self, path):
        self.file = open(path, "wb")
        self.file.write(b"ETCOPS1\n")

    def u32(self, n):
        self.file.write(struct.pack("<I", n))

    def text(self, s):
        data = s.encode()
        self.u32(len(data))
        self.file.write(data)

    def tensor(self, t):
        order = sorted(range(t.dim()), key=lambda d: -t.stride(d))
        is_plain = t.is_contiguous()
        self.file.write(struct.pack("<BBB", CODES[t.dtype], t.dim(), not is_plain))
        self.file.write(struct.pack("<%di" % t.dim(), *t.shape))
        if not is_plain:
            self.file.write(bytes(order))
            t = t.permute(order)
        t = t.contiguous()
        self.file.write(t.view(BITS.get(t.dtype, t.dtype)).numpy().tobytes())

    def argument(self, a):
        if a is None:
            self.file.write(b"\0")
        elif isinstance(a, torch.Tensor):
            self.file.write(b"\1")
            self.tensor(a)
        elif isinstance(a, str):
            self.file.write(b"\2")
            self.text(a)
        elif isinstance(a, bool):
            self.file.write(struct.pack("<BB", 5, a))
        elif isinstance(a, float):
            self.file.write(struct.pack("<Bd", 3, a))
        elif isinstance(a, int):
            self.file.write(struct.pack("<Bq", 4, a))
        elif isinstance(a, Picks):
            self.file.write(b"\x0b")
            self.u32(len(a))
            for t in a:
                self.argument(t)
        elif isinstance(a, (list, tuple)) and a and isinstance(a[0], torch.Tensor):
            self.file.write(b"\x09")
            self.u32(len(a))
            for t in a:
                self.tensor(t)
        elif isinstance(a, (list, tuple)) and a and isinstance(a[0], float):
            self.file.write(b"\x07")
            self.u32(len(a))
            self.file.write(struct.pack("<%dd" % len(a), *a))
        else:
            self.file.write(b"\x08")
            self.u32(len(a))
            self.file.write(struct.pack("<%dq" % len(a), *a))

    def case(self, key, args, outs, exact):
        self.text(key)
        self.u32(len(args))
        for a in args:
            self.argument(a)
        self.u32(len(outs))
        for t, e in zip(outs, exact):
            self.tensor(t)
            if t.dtype == torch.float32:
                self.file.write(e.double().contiguous().numpy().tobytes())


def widen(a):
    if isinstance(a, torch.Tensor) and a.dtype == torch.float32:
        return a.double()
    if isinstance(a, (list, tuple)) and a and isinstance(a[0], torch.Tensor):
        return [widen(t) for t in a]
    return a


def outputs(r):
    return list(r) if isinstance(r, (list, tuple)) else [r]


def record(w, key, fn, *args):
    """fn takes the arguments as the kernel does."""
    outs = outputs(fn(*args))
    exact = outputs(fn(*[widen(a) for a in args]))
    w.case(key, args, outs, exact)


rng = np.random.default_rng(1)


def rand(*shape, dtype=torch.float32, scale=1.0):
    shape = () if shape == ((),) else shape
    if dtype == torch.bool:
        return torch.from_numpy(rng.integers(0, 2, shape).astype(np.bool_))
    if not dtype.is_floating_point:
        lo = 0 if dtype == torch.uint8 else -9
        return torch.from_numpy(np.asarray(rng.integers(lo, 10, shape))).to(dtype)
    return torch.from_numpy(np.asarray(rng.standard_normal(shape) * scale)).to(dtype)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 6.5, 1e-40, -1e-40, 1e30, -1e30, 88.0,
           89.5, -88.0, -104.5, 2.0 ** -126, INF, -INF, NAN, 1e-3, -1e-3, 20.0, -20.0]
DTYPES = [torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8,
          torch.uint8, torch.bool]
FLOATS = [torch.float32, torch.float64]


def special(dtype=torch.float32):
    return torch.tensor(SPECIAL, dtype=dtype)


def pointwise(w):
    unary = {
        "aten::cos.out": torch.cos, "aten::erf.out": torch.erf, "aten::exp.out": torch.exp,
        "aten::log.out": torch.log, "aten::reciprocal.out": torch.reciprocal,
        "aten::rsqrt.out": torch.rsqrt, "aten::sigmoid.out": torch.sigmoid,
        "aten::sin.out": torch.sin, "aten::sqrt.out": torch.sqrt, "aten::tanh.out": torch.tanh,
        "aten::abs.out": torch.abs, "aten::neg.out": torch.neg, "aten::relu.out": torch.relu,
        "silu": F.silu, "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid,
    }
    for key, fn in unary.items():
        for x in (special(), rand(3, 5, 7), rand(()), rand(0, 3), rand(1), rand(37, scale=4.0)):
            record(w, key, fn, x)
        if "::" in key:
            record(w, key, fn, rand(11, dtype=torch.int32).abs())
        record(w, key, fn, rand(13, dtype=torch.float64).abs())
    for key, fn in (("aten::abs.out", torch.abs), ("aten::neg.out", torch.neg),
                    ("aten::relu.out", torch.relu)):
        for dtype in DTYPES[2:6]:
            record(w, key, fn, rand(9, dtype=dtype))
    record(w, "aten::abs.out", torch.abs, torch.tensor([-128, 127, 0], dtype=torch.int8))
    record(w, "aten::neg.out", torch.neg, torch.tensor([0, 1, 255], dtype=torch.uint8))
    # Not at infinity: there torch's vectors of gelu give NaN for "none", its scalars infinity.
    finite = torch.tensor([v for v in SPECIAL if abs(v) != INF])
    for x in (finite, rand(40, scale=3.0), rand(())):
        for how in ("none", "tanh"):
            record(w, "aten::gelu.out", lambda a, h: F.gelu(a, approximate=h), x, how)
    binary(w)
    scalars(w)


def binary(w):
    pairs = {
        "aten::add.out": lambda a, b, alpha: torch.add(a, b, alpha=alpha),
        "aten::sub.out": lambda a, b, alpha: torch.sub(a, b, alpha=alpha),
        "aten::mul.out": torch.mul, "aten::div.out": torch.div,
        "aten::maximum.out": torch.maximum, "aten::minimum.out": torch.minimum,
    }
    shapes = [((4, 5), (4, 5)), ((), ()), ((3, 1, 5), (4, 1)), ((2, 3, 4, 5), (3, 1, 1)),
              ((5,), (0, 5)), ((1,), (2, 1, 33)), ((), (2, 3)), ((7, 40), (1, 40)),
              ((2, 1, 3, 1), (1, 4, 1, 35))]
    for key, fn in pairs.items():
        has_alpha = key in ("aten::add.out", "aten::sub.out")
        for sa, sb in shapes:
            args = [rand(*sa), rand(*sb)] + ([1] if has_alpha else [])
            record(w, key, fn, *args)
        grid = special()[:, None].expand(len(SPECIAL), len(SPECIAL)).contiguous()
        record(w, key, fn, grid, special(), *([1] if has_alpha else []))
        nhwc = rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
        record(w, key, fn, nhwc, rand(2, 3, 4, 5), *([1] if has_alpha else []))
        record(w, key, fn, nhwc, nhwc, *([1] if has_alpha else []))
        for da in DTYPES:
            for db in DTYPES:
                if torch.bool in (da, db) and key == "aten::sub.out":
                    continue
                a, b = rand(2, 9, dtype=da), rand(9, dtype=db)
                if key == "aten::div.out":
                    b = torch.where(b == 0, torch.ones_like(b), b)
                record(w, key, fn, a, b, *([1] if has_alpha else []))
                record(w, key, fn, a, b.sum().to(db) if db != torch.bool else b[0],
                       *([1] if has_alpha else [])) if key == "aten::add.out" else None
        if has_alpha:
            record(w, key, fn, rand(19), rand(19), 2.5)
            record(w, key, fn, rand(19, dtype=torch.int32), rand(19, dtype=torch.int32), 3)


def scalars(w):
    numbers = {
        "aten::add.Scalar_out": (torch.add, [(2.5, 1), (3, 2), (1, 1)]),
        "aten::sub.Scalar_out": (torch.sub, [(2.5, 1), (3, 2)]),
        "aten::rsub.Scalar_out": (torch.rsub, [(2.5, 1), (3, 2)]),
    }
    for key, (fn, values) in numbers.items():
        for v in values:
            for dtype in DTYPES[:7]:
                x = rand(3, 11, dtype=dtype)
                record(w, key, lambda a, o, alpha: fn(a, o, alpha=alpha), x, *v)
    for dtype in DTYPES[:7]:
        for v in (3, 0.75):
            record(w, "aten::mul.Scalar_out", torch.mul, rand(21, dtype=dtype), v)
            record(w, "aten::div.Scalar_out", torch.div, rand(21, dtype=dtype), v)
        for v in (2, 3):
            record(w, "aten::pow.Tensor_Scalar_out", torch.pow, rand(21, dtype=dtype), v)
    for v in (0.5, -0.5, 2.0, 3.0, -1.0, -2.0, 1.7, 0.0, 100.0, -3.3):
        record(w, "aten::pow.Tensor_Scalar_out", torch.pow, special(), v)
        record(w, "aten::pow.Tensor_Scalar_out", torch.pow, rand(30).abs(), v)
    for lo, hi in ((-1.0, 1.0), (0, 6), (2.0, -2.0), (None, 0.5), (0.25, None), (NAN, 1.0)):
        record(w, "aten::clamp.out", torch.clamp, special(), lo, hi)
        record(w, "aten::clamp.out", torch.clamp, rand(9, dtype=torch.float64), lo, hi)
    for dtype in DTYPES[2:6]:
        record(w, "aten::clamp.out", torch.clamp, rand(9, dtype=dtype), -3, 4)
        record(w, "aten::clamp.out", torch.clamp, rand(9, dtype=dtype), -2.5, None)
        record(w, "aten::hardtanh.out", F.hardtanh, rand(9, dtype=dtype), -3, 4)
    for lo, hi in ((-1.0, 1.0), (0, 6)):
        record(w, "aten::hardtanh.out", F.hardtanh, special(), lo, hi)
        record(w, "aten::hardtanh.out", F.hardtanh, rand(2, 3, 20), lo, hi)
    for slope in (0.01, 0.3, 2):
        record(w, "aten::leaky_relu.out", F.leaky_relu, special(), slope)
    for abc in ((1, 1, 1), (0.5, 2.0, 1.5)):
        record(w, "aten::elu.out", torch.ops.aten.elu, special(), *abc)
        record(w, "aten::elu.out", torch.ops.aten.elu, rand(50), *abc)


def matmul(w):
    for shape, n in (((4,), 3), ((1, 7), 5), ((2, 3, 64), 33), ((3, 1), 1), ((0, 4), 6),
                     ((9, 70), 21)):
        x, weight = rand(*shape), rand(n, shape[-1])
        record(w, "aten::linear.out", F.linear, x, weight, rand(n))
        record(w, "aten::linear.out", F.linear, x, weight, None)
    record(w, "aten::linear.out", F.linear, rand(7, 300), rand(19, 300), rand(19))
    record(w, "aten::linear.out", F.linear, rand(1, 140), rand(65, 140), rand(65))
    record(w, "aten::mm.out", torch.mm, rand(17, 129), rand(129, 49))
    record(w, "aten::mm.out", torch.mm, rand(6, 300), rand(300, 20))
    record(w, "aten::bmm.out", torch.bmm, rand(3, 25, 16), rand(3, 16, 37))
    for m, k, n in ((1, 1, 1), (3, 4, 5), (2, 0, 3), (0, 2, 3), (17, 7, 33)):
        a, b = rand(m, k), rand(k, n)
        record(w, "aten::mm.out", torch.mm, a, b)
        record(w, "aten::bmm.out", torch.bmm, rand(2, m, k), rand(2, k, n))
        for shape in ((n,), (1, n), (m, n), (m, 1), ()):
            record(w, "aten::addmm.out",
                   lambda s, p, q, beta, alpha: torch.addmm(s, p, q, beta=beta, alpha=alpha),
                   rand(*shape), a, b, 1, 1)
        record(w, "aten::addmm.out",
               lambda s, p, q, beta, alpha: torch.addmm(s, p, q, beta=beta, alpha=alpha),
               rand(n), a, b, 0.5, 2.0)
        record(w, "aten::addmm.out",
               lambda s, p, q, beta, alpha: torch.addmm(s, p, q, beta=beta, alpha=alpha),
               torch.full((n,), NAN), a, b, 0, 1)
    a = rand(4, 6)
    a[1, 2], a[2, 3], a[3, 0] = NAN, INF, -INF
    record(w, "aten::mm.out", torch.mm, a, rand(6, 19))


def conv(w):
    key = "aten::convolution.out"

    def run(n, ic, oc, size, kernel, stride=1, pad=0, dilation=1, groups=1, bias=True,
            transposed=False, output_pad=0):
        nd = len(size)

        def full(v):
            return [v] * nd if isinstance(v, int) else list(v)
        shape = (ic, oc // groups) if transposed else (oc, ic // groups)
        x, weight = rand(n, ic, *size), rand(*shape, *kernel)
        record(w, key, torch.ops.aten.convolution.default, x, weight, rand(oc) if bias else None,
               full(stride), full(pad), full(dilation), transposed, full(output_pad), groups)

    run(1, 3, 8, (9, 9), (3, 3), pad=1)
    run(2, 5, 7, (11, 13), (3, 3), stride=2, pad=1)
    run(1, 3, 5, (14, 14), (7, 7), stride=2, pad=3)
    run(1, 4, 6, (8, 10), (3, 5), stride=(2, 1), pad=(0, 2), dilation=(1, 2))
    run(1, 4, 6, (1, 1), (1, 1))
    run(1, 33, 13, (7, 7), (1, 1), bias=False)
    run(2, 6, 5, (14, 14), (1, 1))
    run(1, 18, 14, (9, 9), (1, 1), stride=2)
    run(1, 20, 13, (7, 7), (3, 3), pad=1)
    run(1, 8, 8, (6, 6), (3, 3), pad=2, dilation=2, groups=2)
    run(1, 12, 18, (10, 6), (3, 3), pad=1, groups=3, bias=False)
    for size in ((7, 7), (14, 14), (5, 33), (1, 1), (9, 40)):
        for stride in (1, 2):
            run(1, 3, 3, size, (3, 3), stride=stride, pad=1, groups=3)
    run(2, 4, 4, (9, 9), (5, 5), stride=1, pad=2, groups=4, bias=False)
    run(1, 4, 4, (12, 12), (3, 3), pad=2, dilation=2, groups=4)
    run(1, 4, 8, (9, 9), (3, 3), pad=1, groups=4)
    run(1, 3, 3, (40, 9), (10, 4), stride=(2, 2), pad=(4, 1), groups=3)
    run(1, 3, 3, (7, 7), (2, 2), stride=3, groups=3)
    run(1, 3, 3, (7, 7), (2, 2), stride=9000, groups=3)
    run(1, 1, 9, (49, 10), (10, 4), stride=(2, 2), pad=(5, 1))
    run(2, 6, 10, (30,), (5,), stride=2, pad=2)
    run(1, 6, 6, (30,), (3,), pad=1, groups=6)
    run(1, 4, 4, (17,), (3,), pad=2, dilation=2, bias=False)
    run(1, 5, 7, (6, 5), (3, 3), stride=2, pad=1, transposed=True, output_pad=1)
    run(2, 4, 6, (5, 5), (2, 2), stride=2, transposed=True, bias=False)
    run(1, 4, 6, (5, 7), (3, 2), stride=(1, 2), dilation=(2, 1), groups=2, transposed=True)
    run(1, 3, 5, (9,), (4,), stride=3, pad=1, transposed=True)
    run(1, 2, 3, (5, 5), (5, 5))
    run(0, 2, 3, (5, 5), (3, 3))


def pool(w):
    def strided(k, s):
        return k if len(s) == 0 else s
    images = [rand(2, 1, 6, 7), rand(2, 5, 5), rand(1, 2, 1, 1), rand(1, 1, 8, 39)]
    bad = rand(1, 2, 6, 6)
    bad[0, 0, 1, 1], bad[0, 1, 3, 3], bad[0, 1, 0, 0] = NAN, -INF, INF
    options = [([2, 2], [], [0, 0], [1, 1], False), ([3, 3], [2, 2], [1, 1], [1, 1], False),
               ([3, 3], [2, 2], [1, 1], [1, 1], True), ([3, 2], [1, 2], [1, 0], [1, 1], False),
               ([2, 2], [1, 1], [1, 1], [2, 2], False), ([3, 3], [3, 3], [0, 0], [1, 1], True),
               ([3], [2], [1], [1], True), ([1, 1], [1, 1], [0, 0], [1, 1], False),
               ([2, 2], [3000, 3000], [0, 0], [1, 1], False)]
    for x in images + [bad]:
        for k, s, p, d, ceil in options:
            try:
                torch.ops.aten.max_pool2d_with_indices(x, k, s, p, d, ceil)
            except RuntimeError:
                continue
            record(w, "aten::max_pool2d_with_indices.out",
                   torch.ops.aten.max_pool2d_with_indices, x, k, s, p, d, ceil)
            record(w, "max_pool2d", lambda a, k, s, p, d, c: torch.max_pool2d(
                a, k, strided(k, s), p, d, c), x, k, s, p, d, ceil)
        for k, s, p, d, ceil in options:
            for count, divisor in ((True, None), (False, None), (True, 3), (False, -2)):
                if d[0] == 1 and x.shape[-1] >= 3:
                    record(w, "aten::avg_pool2d.out", torch.ops.aten.avg_pool2d, x, k, s, p, ceil,
                           count, divisor)
        for size in ([1, 1], [3, 2], [1, 4], [7, 7]):
            record(w, "aten::_adaptive_avg_pool2d.out", torch.ops.aten._adaptive_avg_pool2d, x,
                   size)


def softmax(w):
    rows = [rand(3, 10), rand(2, 3, 4), rand(()), rand(7), rand(1, 1000), rand(0, 4), rand(3, 1),
            rand(600, 2), rand(2, 50, scale=50.0)]
    odd = rand(6, 5)
    odd[0, 1], odd[1, 2], odd[2, 0], odd[3] = NAN, INF, -INF, -INF
    for x in rows + [odd]:
        dims = {-1, 0, max(x.dim() - 2, 0)} if x.numel() < 100 else {0 if x.shape[0] > 9 else -1}
        for dim in sorted(dims):
            record(w, "aten::_softmax.out", torch.ops.aten._softmax, x, dim, False)
            record(w, "aten::_log_softmax.out", torch.ops.aten._log_softmax, x, dim, False)


def reduce(w):
    inputs = [rand(2, 3, 5, 4), rand(()), rand(5), rand(4, 0), rand(1, 1, 1), rand(20, 17)]
    odd = rand(3, 40)
    odd[0, 3], odd[1, 5], odd[2, 7] = NAN, INF, -INF
    for x in inputs + [odd]:
        r = x.dim()
        for dims in [None, [], [-1], [0]] + ([[0, 1], [1, 0]] if r > 1 else []) + \
                ([[-1, -2], [0, 2]] if r > 2 else []):
            for keep in (False, True):
                record(w, "aten::mean.out", lambda a, d, k, t: torch.mean(a, d, keepdim=k),
                       x, dims, keep, None)
                record(w, "aten::sum.IntList_out",
                       lambda a, d, k, t: torch.sum(a, d, keepdim=k), x, dims, keep, None)
                if dims is not None and x.numel() > 0:
                    record(w, "aten::amax.out", torch.amax, x, dims, keep)
    for x, dims in ((rand(2, 1100), [1]), (rand(1, 600, 2), [1]), (rand(2, 3, 7, 7), [2, 3]),
                    (rand(40, 3, 15), [0, 2])):
        record(w, "aten::mean.out", lambda a, d, k, t: torch.mean(a, d, k), x, dims, True, None)
        record(w, "aten::amax.out", torch.amax, x, dims, False)
    for dtype in DTYPES[1:]:
        x = rand(4, 30, dtype=dtype)
        record(w, "aten::sum.IntList_out", lambda a, d, k, t: torch.sum(a, d, keepdim=k),
               x, [1], False, None)
        record(w, "aten::amax.out", torch.amax, x, [0], True)
    record(w, "aten::sum.IntList_out", lambda a, d, k, t: torch.sum(a, d, k, dtype=torch.float32),
           rand(4, 30, dtype=torch.int32), [1], False, 6)
    record(w, "aten::mean.out", lambda a, d, k, t: torch.mean(a, d, k), rand(
        9, 40, dtype=torch.float64), [1], False, None)


def norm(w):
    for shape in ((2, 3, 4, 5), (1, 8, 7, 7), (4, 6), (2, 3, 40), (0, 3, 2, 2), (1, 1, 1, 1)):
        c = shape[1]
        for affine in (True, False):
            record(w, "aten::_native_batch_norm_legit_no_training.out",
                   torch.ops.aten._native_batch_norm_legit_no_training, rand(*shape),
                   rand(c) if affine else None, rand(c) if affine else None, rand(c),
                   rand(c).abs() + 0.01, 0.1, 1e-5)


def copy(w):
    aten = torch.ops.aten
    for dtype in DTYPES:
        x = rand(3, 4, 5, dtype=dtype)
        record(w, "aten::view_copy.out", aten.view_copy, x, [5, -1])
        record(w, "aten::clone.out", lambda a, f: aten.clone(a), x, None)
        record(w, "aten::permute_copy.out", aten.permute_copy, x, [2, 0, -2])
        record(w, "aten::slice_copy.Tensor_out", aten.slice_copy.Tensor, x, 1, 1, 4, 2)
        record(w, "aten::cat.out", aten.cat, [x, x[:1], x[:0]], 0)
        record(w, "aten::constant_pad_nd.out", aten.constant_pad_nd, x, [1, 2, -1, 0],
               1 if dtype != torch.bool else True)
        for to in DTYPES:
            y = rand(2, 9, dtype=dtype, scale=20.0)
            if to == torch.uint8:
                y = y.abs() if dtype != torch.bool else y
            record(w, "aten::_to_copy.out", lambda a, n, f: a.to(to), y, False, None)
            record(w, "dim_order_ops::_to_dim_order_copy.out", lambda a, n, f: a.to(to), y,
                   False, [0, 1])
            record(w, "aten::copy.out", lambda a, b, n: aten.copy(a, b), rand(2, 9, dtype=to), y,
                   False)
    x = rand(2, 3, 4)
    for size in ([24], [2, 3, 4], [-1, 2], [4, 1, 6]):
        record(w, "aten::view_copy.out", aten.view_copy, x, size)
    record(w, "aten::view_copy.out", aten.view_copy, rand(()), [1, 1])
    record(w, "aten::view_copy.out", aten.view_copy, rand(1), [])
    record(w, "aten::view_copy.out", aten.view_copy, rand(0, 3), [3, 0])
    for dims in ([0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]):
        record(w, "aten::permute_copy.out", aten.permute_copy, x, dims)
    record(w, "aten::permute_copy.out", aten.permute_copy, rand(()), [])
    record(w, "aten::permute_copy.out", aten.permute_copy, rand(70, 33), [1, 0])
    for src, size in ((rand(3, 1), [3, 4]), (rand(3, 1), [2, -1, 5]), (rand(()), [2, 2]),
                      (rand(1), [0]), (rand(1, 4), [-1, 4])):
        record(w, "aten::expand_copy.out", lambda a, s, i: aten.expand_copy(a, s), src, size,
               False)
    for dim, a, b, step in ((0, None, None, 1), (1, -2, None, 1), (2, 1, 100, 3), (-1, 3, 1, 1),
                            (1, -100, -1, 1), (0, 5, 9, 1)):
        record(w, "aten::slice_copy.Tensor_out", aten.slice_copy.Tensor, x, dim, a, b, step)
    for dim, i in ((0, 1), (1, -1), (-1, 2), (2, -4)):
        record(w, "aten::select_copy.int_out", aten.select_copy.int, x, dim, i)
    record(w, "aten::cat.out", aten.cat, [rand(2, 3), rand(2, 1), rand(2, 5)], 1)
    record(w, "aten::cat.out", aten.cat, [rand(0), rand(2, 3, 4), rand(2, 2, 4)], -2)
    record(w, "aten::cat.out", aten.cat, [rand(3)], 0)
    record(w, "aten::cat.out", aten.cat, [rand(0), rand(0)], 0)
    record(w, "aten::cat.out", aten.cat, [rand(2, dtype=torch.int32), rand(2)], 0)
    for pad, v in (([1, 1], 0), ([0, 0, 2, 1], 1.5), ([-1, -1, 1, 0, 0, 3], -2.0), ([], 0),
                   ([-3, 4], 7), ([1, 0, 1, 0], NAN)):
        record(w, "aten::constant_pad_nd.out", aten.constant_pad_nd, x, pad, v)
    for dtype, v in ((torch.float32, 2.5), (torch.int64, 7), (torch.bool, True), (torch.int8, -3)):
        record(w, "aten::full.out", lambda s, f: torch.full(s, f, dtype=dtype), [3, 4], v)
        record(w, "aten::full_like.out", lambda a, f, m: torch.full_like(a, f, dtype=dtype), x, v,
               None)
    record(w, "aten::full.out", lambda s, f: torch.full(s, f), [], 3.0)
    record(w, "aten::full.out", lambda s, f: torch.full(s, f), [0, 2], 3.0)
    record(w, "aten::copy.out", lambda a, b, n: aten.copy(a, b), x, rand(3, 1), False)
    for t in (rand(()), rand(5), rand(4, 7)):
        record(w, "aten::t_copy.out", aten.t_copy, t)
    for dims in ((0, 1), (-1, 0), (1, 1)):
        record(w, "aten::transpose_copy.int_out", aten.transpose_copy.int, x, *dims)
    for dim in (0, 3, -1, -4):
        record(w, "aten::unsqueeze_copy.out", aten.unsqueeze_copy, x, dim)
    for dims in ([0], [0, 2], [-1], [1], []):
        record(w, "aten::squeeze_copy.dims_out", aten.squeeze_copy.dims, rand(1, 3, 1), dims)
    nhwc = rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    record(w, "dim_order_ops::_to_dim_order_copy.out", lambda a, n, o: a.contiguous(), nhwc, False,
           [0, 1, 2, 3])
    record(w, "dim_order_ops::_to_dim_order_copy.out",
           lambda a, n, o: a.contiguous(memory_format=torch.channels_last), rand(2, 3, 4, 5),
           False, [0, 2, 3, 1])
    record(w, "dim_order_ops::_clone_dim_order.out", lambda a, n, o: a.clone(), nhwc, False,
           [0, 2, 3, 1])
    record(w, "aten::permute_copy.out", lambda a, d: aten.permute_copy(a, d).contiguous(), nhwc,
           [0, 2, 3, 1])
    k = torch.arange(-32, 32).reshape(4, 16) * 4099
    for x in (k, k.to(torch.int32), k.to(torch.int16), k.to(torch.uint8), k.float(), k.half(), k.bfloat16(), k.double(), k > 0):
        for to in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8):
            record(w, "aten::view_copy.dtype_out", lambda a, t: a.view(to), x, CODES[to])
    record(w, "aten::view_copy.dtype_out", lambda a, t: a.view(torch.int16), torch.tensor(1.5).half(), CODES[torch.int16])
    record(w, "aten::view_copy.dtype_out", lambda a, t: a.view(torch.int16), torch.zeros(0, 3), CODES[torch.int16])


def logic(w):
    shapes = [((4, 5), (4, 5)), ((), ()), ((3, 1, 5), (4, 1)), ((2, 3, 4, 5), (3, 1, 1)),
              ((5,), (0, 5)), ((), (2, 3)), ((2, 1100), (1100,))]
    grid = special()[:, None].expand(len(SPECIAL), len(SPECIAL)).contiguous()
    rows = {"eq": "Tensor_out", "ne": "Tensor_out", "lt": "Tensor_out", "le": "Tensor_out",
            "gt": "Tensor_out", "ge": "Tensor_out", "logical_and": "out", "logical_or": "out",
            "logical_xor": "out", "bitwise_and": "Tensor_out", "bitwise_or": "Tensor_out",
            "bitwise_xor": "Tensor_out"}
    for name, overload in rows.items():
        key, fn, is_bits = "aten::%s.%s" % (name, overload), getattr(torch, name), "bit" in name
        kind = torch.int64 if is_bits else torch.float32
        for sa, sb in shapes:
            record(w, key, fn, rand(*sa, dtype=kind), rand(*sb, dtype=kind))
        if not is_bits:
            record(w, key, fn, grid, special())
        for da in DTYPES:
            for db in DTYPES:
                if not (is_bits and (da.is_floating_point or db.is_floating_point)):
                    record(w, key, fn, rand(2, 9, dtype=da), rand(9, dtype=db))
        if not is_bits and "logical" not in name:
            for dtype in DTYPES:
                for v in (2, 0.5, -1, True):
                    record(w, "aten::%s.Scalar_out" % name, fn, rand(3, 7, dtype=dtype), v)
            record(w, "aten::%s.Scalar_out" % name, fn, special(), -INF)
    for dtype in DTYPES:
        record(w, "aten::logical_not.out", torch.logical_not, rand(5, 6, dtype=dtype))
        if not dtype.is_floating_point:
            record(w, "aten::bitwise_not.out", torch.bitwise_not, rand(5, 6, dtype=dtype))
        for dims, keep in ((None, False), ([1], True), ([0, -1], False), ([2], False)):
            x = rand(2, 3, 4, dtype=dtype) * (rand(2, 3, 4) > 1)
            record(w, "aten::any.dims_out", torch.ops.aten.any.dims, x, dims, keep)
        record(w, "aten::where.self_out", torch.where, rand(3, 1, dtype=torch.bool),
               rand(2, 1, 5, dtype=dtype), rand(5, dtype=dtype))
        record(w, "aten::where.self_out", torch.where, rand(1300, dtype=torch.bool),
               rand(1300, dtype=dtype), rand((), dtype=dtype))
    record(w, "aten::logical_not.out", torch.logical_not, special())
    record(w, "aten::any.dims_out", torch.ops.aten.any.dims, rand(0, 3), [0], False)
    record(w, "aten::any.dims_out", torch.ops.aten.any.dims, special(), None, True)
    record(w, "aten::where.self_out", torch.where, rand(4, dtype=torch.bool),
           rand(4, dtype=torch.int32), rand(4))
    record(w, "aten::where.self_out", torch.where, rand(4, dtype=torch.bool),
           rand(4, dtype=torch.int64), rand(()))


def index(w):
    for dtype, args in ((torch.int64, (0, 7, 1)), (torch.int64, (9, -3, -4)), (torch.int32, (2, 9, 2)),
                        (torch.int64, (3, 3, 1)), (torch.float32, (0, 1.5, 0.1)),
                        (torch.float32, (0, 5, 1)), (torch.float64, (-1.5, 2, 0.5))):
        record(w, "aten::arange.start_out", lambda a, b, s: torch.arange(a, b, s, dtype=dtype),
               *args)
    aten = torch.ops.aten

    def at(hi, *shape, lo=0, dtype=torch.int64):
        return torch.from_numpy(np.asarray(rng.integers(lo, hi, shape))).to(dtype)

    def pick(x, dim, indices, sparse_grad):
        return torch.gather(x, dim, indices)

    for shape in ((5,), (2, 3), (), (0,), (1, 1, 4)):
        for dtype in (torch.int64, torch.int32):
            record(w, "aten::embedding.out", aten.embedding, rand(7, 9),
                   at(7, *shape, dtype=dtype), -1, False, False)
    for dtype in DTYPES:
        x = rand(4, 5, 3, dtype=dtype)
        record(w, "aten::embedding.out", aten.embedding, x[0], at(5, 6), 2, False, False)
        for dim in (0, 1, -1):
            shape = [3, 4, 2]
            shape[dim] = 6
            record(w, "aten::gather.out", pick, x, dim, at(x.shape[dim], *shape), False)
        for picks in map(Picks, ([at(4, 6)], [None, at(5, 2, 3, lo=-5)], [at(4, 2, 1), at(5, 3)],
                      [at(4, 3), None, at(3, 2, 1)], [None, at(5, 4), at(3, 4)],
                      [at(4, 2), at(5, 2), at(3, 2)], [None, None, at(3)])):
            record(w, "aten::index.Tensor_out", aten.index.Tensor, x, picks)
            like = aten.index.Tensor(x, picks)
            places = torch.arange(60).reshape(4, 5, 3)[tuple(slice(None) if p is None else p
                                                            for p in picks)]
            if places.unique().numel() == places.numel():
                record(w, "aten::index_put.out", aten.index_put, x, picks,
                       rand(*like.shape, dtype=dtype), False)
        record(w, "aten::index_put.out", aten.index_put, x, Picks([None, torch.tensor([3, 0, -1])]),
               rand(3, dtype=dtype), False)
        record(w, "aten::index_put.out", aten.index_put, x, Picks([torch.tensor([2]), torch.tensor(1)]),
               rand((), dtype=dtype), False)
        for dim in (0, 1, -1):
            record(w, "aten::cumsum.out", lambda a, d, t: torch.cumsum(a, d), x, dim, None)
    record(w, "aten::gather.out", pick, rand(()), 0, torch.tensor(0), False)
    record(w, "aten::gather.out", pick, rand(3), 0, at(3, 0), False)
    record(w, "aten::cumsum.out", lambda a, d, t: torch.cumsum(a, d), rand(2, 1500), 1, None)
    record(w, "aten::cumsum.out", lambda a, d, t: torch.cumsum(a, d), rand(()), 0, None)
    record(w, "aten::cumsum.out", lambda a, d, t: torch.cumsum(a, d), rand(0, 2), 0, None)
    record(w, "aten::cumsum.out", lambda a, d, t: torch.cumsum(a, d, dtype=torch.float32),
           rand(7, dtype=torch.int32), 0, 6)


def layer_norm(w):
    aten = torch.ops.aten
    for shape, axes in (((3, 10), 1), ((2, 5, 64), 1), ((4, 1), 1), ((2, 3, 4, 5), 2), ((0, 8), 1),
                        ((7,), 1), ((2, 1100), 1), ((3, 37), 2)):
        row = shape[-axes:]
        for weight, bias in ((rand(*row), rand(*row)), (rand(*row), None), (None, None)):
            x = rand(*shape) * 3 + 2
            record(w, "aten::native_layer_norm.out", aten.native_layer_norm, x, list(row), weight,
                   bias, 1e-5)
            record(w, "layer_norm", lambda a, r, p, q, e, c: F.layer_norm(a, r, p, q, e), x,
                   list(row), weight, bias, 1e-5, False)
    x = rand(4, 20)
    x[0], x[1, 3] = 1.5, NAN
    record(w, "aten::native_layer_norm.out", aten.native_layer_norm, x, [20], None, None, 1e-5)


def attention(w):
    def sdpa(q, k, v, mask, dropout, causal, scale, gqa):
        if mask is not None and mask.dtype != torch.bool:
            mask = mask.to(q.dtype)
        return F.scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale=scale,
                                              enable_gqa=gqa)

    def run(q, k, v, mask=None, causal=False, scale=None, gqa=False):
        record(w, "attention", sdpa, rand(*q), rand(*k), rand(*v), mask, 0.0, causal, scale, gqa)

    run((2, 3, 7, 16), (2, 3, 9, 16), (2, 3, 9, 16))
    run((1, 2, 50, 64), (1, 2, 70, 64), (1, 2, 70, 64), scale=1.0)
    run((1, 1, 14, 130), (1, 1, 150, 130), (1, 1, 150, 24))
    run((5, 4), (6, 4), (6, 3), scale=0.3)
    run((3, 5, 4), (3, 6, 4), (3, 6, 17))
    run((2, 2, 2, 5, 4), (2, 2, 2, 6, 4), (2, 2, 2, 6, 5))
    run((1, 1, 1, 3), (1, 1, 1, 3), (1, 1, 1, 3))
    run((1, 2, 33, 8), (1, 2, 33, 8), (1, 2, 33, 8), causal=True)
    run((1, 2, 5, 8), (1, 2, 9, 8), (1, 2, 9, 8), causal=True)
    run((1, 2, 300, 4), (1, 2, 250, 4), (1, 2, 250, 4), causal=True)
    run((2, 6, 4, 8), (2, 2, 7, 8), (2, 2, 7, 8), gqa=True)
    run((1, 4, 6, 8), (1, 1, 6, 8), (1, 1, 6, 8), causal=True, gqa=True)
    for shape in ((2, 3, 5, 6), (2, 1, 5, 6), (1, 3, 5, 6), (5, 6), (1, 6), (2, 1, 1, 6)):
        run((2, 3, 5, 8), (2, 3, 6, 8), (2, 3, 6, 8), mask=rand(*shape))
        keep = rand(*shape, dtype=torch.bool)
        keep[..., 2] = True
        run((2, 3, 5, 8), (2, 3, 6, 8), (2, 3, 6, 8), mask=keep)
    run((2, 3, 5, 8), (2, 3, 6, 8), (2, 3, 6, 8), mask=rand(5, 1))
    none = rand(5, 6, dtype=torch.bool)
    none[1], none[3], none[0, 0] = False, False, True
    run((1, 2, 5, 8), (1, 2, 6, 8), (1, 2, 6, 8), mask=none)
    none = rand(5, 6)
    none[2], none[0, 3:] = -INF, -INF
    run((1, 2, 5, 8), (1, 2, 6, 8), (1, 2, 6, 8), mask=none)
    run((2, 6, 4, 8), (2, 3, 7, 8), (2, 3, 7, 8), mask=rand(2, 1, 4, 7), gqa=True)
    # More keys than a row of a tile holds: blocks of keys.
    run((1, 1, 20, 2), (1, 1, 9000, 2), (1, 1, 9000, 2), scale=2.0)
    run((1, 1, 20, 8), (1, 1, 1500, 8), (1, 1, 1500, 8), mask=rand(1, 1500))
    run((1, 2, 0, 4), (1, 2, 3, 4), (1, 2, 3, 4))


def remainder(w):
    key, fn = "aten::remainder.Scalar_out", torch.remainder
    for v in (3, -3, 4, 1, -1, 7):
        for dtype in DTYPES[:7]:
            if not (v < 0 and dtype == torch.uint8):
                record(w, key, fn, rand(3, 11, dtype=dtype), v)
    for v in (0.75, -0.3, 3e38, INF, -INF, NAN, 0.0):  # not 1e-30: torch gives NaN where the quotient is huge
        record(w, key, fn, special(), v)
        record(w, key, fn, rand(21, scale=100.0), v)
        record(w, key, fn, rand(21, dtype=torch.float64), v)


def lists(w):
    for dtype in DTYPES:
        for value in (3, -1.75, True):
            if not (value == -1.75 and dtype == torch.uint8):
                record(w, "aten::scalar_tensor.out", lambda v: torch.scalar_tensor(v, dtype=dtype), value)
        x = rand(4, 7, 3, dtype=dtype)
        for dim, parts in ((1, [2, 4, 1]), (0, [1, 3]), (-1, [1, 0, 2])):
            record(w, "aten::split_with_sizes_copy.out", torch.ops.aten.split_with_sizes_copy, x, parts, dim)


def softmax_attention(w):
    """Attention as models spell it out."""
    def spelled(q, k, v, mask, dropout, causal, scale, gqa, bias, cap, fill):
        if gqa:
            k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
        s = q @ k.transpose(-2, -1) * scale
        s = cap * torch.tanh(s) if cap else s
        s = s if bias is None else s + bias.to(q.dtype)
        if mask is not None:
            s = torch.where(mask, s, fill) if mask.dtype == torch.bool else s + mask.to(q.dtype)
        return torch.softmax(s, -1) @ v

    def run(q, k, v, mask=None, scale=0.4, gqa=False, bias=None, cap=0.0, fill=-INF):
        record(w, "softmax_attention", spelled, rand(*q), rand(*k), rand(*v), mask, 0.0, False, scale,
               gqa, bias, cap, fill)

    windows = (4, 3, 5, 8), (4, 3, 7, 8), (4, 3, 7, 6)
    keep = rand(4, 1, 5, 7, dtype=torch.bool)
    keep[..., 2], keep[0, 0, 1], keep[3, 0, 4] = True, False, False
    none = torch.where(keep, 0.0, -INF)
    run(*windows)
    run(*windows, bias=rand(1, 3, 5, 7))
    run(*windows, bias=rand(3, 1, 7), cap=0.5)
    run(*windows, bias=rand(5, 1), mask=rand(4, 1, 5, 7), cap=2.0)
    run(*windows, bias=rand(3, 5, 7), mask=rand(1, 7))
    run(*windows, bias=rand(3, 5, 7), mask=none)
    run(*windows, mask=none, cap=3.0)
    for fill in (-INF, -1e9, -3e38, -2.0, 0.0, 1.0):
        run(*windows, mask=keep, bias=rand(1, 3, 5, 7), fill=fill)
    run(*windows, mask=rand(5, 7, dtype=torch.bool), fill=-1e4)
    run((2, 6, 4, 8), (2, 2, 7, 8), (2, 2, 7, 8), bias=rand(6, 4, 7), mask=rand(2, 1, 1, 7), gqa=True)
    run((1, 1, 20, 8), (1, 1, 1500, 8), (1, 1, 1500, 8), mask=rand(1, 1500), bias=rand(20, 1), cap=1.5)
    run((1, 2, 40, 64), (1, 2, 70, 64), (1, 2, 70, 64), bias=rand(2, 40, 70))
    run((2, 5, 4), (2, 0, 4), (2, 0, 3))


def packed(t):
    """[columns, rows] in blocks of 16 columns: [blocks, rows, 16]."""
    t = F.pad(t, (0, 0, 0, -t.shape[0] % 16))
    return t.view(-1, 16, t.shape[1]).transpose(1, 2).contiguous()


def packed_linear(w):
    """Products with weights kept as halves, as integers, and as integers of 4 bits, two to a byte. Scales are powers
    of two and all else small integers: sums are exact in whatever order."""
    def whole(*shape, most=8, dtype=torch.float32):
        return torch.from_numpy(rng.integers(-most, most, shape)).to(dtype)

    def run(rows, k, n, bits, groups=1, zeros=False, bias=True):
        x, b = whole(*rows, k), whole(n, most=4) if bias else None
        if bits == 16:
            half = whole(n, k, most=60).half()
            half[::3] *= 2.0 ** -20  # some are subnormal
            parts, weight = [packed(half), None, None], half.float()
        else:
            q = whole(n, k, most=2 ** (bits - 1), dtype=torch.int8)
            scale = 2.0 ** whole(n, groups, most=3)
            zero = whole(n, groups, most=6, dtype=torch.int8) * int(zeros)
            each = k // groups
            weight = (q.float() - zero.repeat_interleave(each, 1)) * scale.repeat_interleave(each, 1)
            pair = F.pad(q, (0, k % 2))
            nibbles = ((pair[:, ::2] & 15) | (pair[:, 1::2] << 4)).to(torch.int8).view(torch.uint8)
            parts = [packed(nibbles if bits == 4 else q), packed(scale), packed(zero) if zeros else None]
        record(w, "packed_linear", lambda x, w0, s, z, b, c: F.linear(x, weight.to(x.dtype), b), x, *parts, b, n)

    for bits in (4, 8, 16):
        for rows, k, n in (((1,), 64, 48), ((3,), 70, 33), ((2, 5), 9, 16), ((), 31, 5), ((1, 1), 140, 65), ((0,), 8, 3)):
            run(rows, k, n, bits)
            run(rows, k, n, bits, bias=False, zeros=bits < 16)
    for rows in (1, 9):
        for bits in (4, 8):
            run((rows,), 96, 40, bits, groups=3)
            run((rows,), 96, 19, bits, groups=48, zeros=True)
        run((rows,), 45, 18, 8, groups=9, zeros=True)


def exported(w):
    """Kernels that the official exporter calls and etc does not."""
    for dtype in DTYPES:
        for dim, keep in ((1, True), (-1, False)):
            x = rand(2, 3, 4, dtype=dtype) * (rand(2, 3, 4) > 1)
            record(w, "aten::any.out", torch.ops.aten.any.dim, x, dim, keep)
            record(w, "aten::alias_copy.out", torch.ops.aten.alias_copy, x)
    record(w, "aten::any.out", torch.ops.aten.any.dim, rand(0, 3), 0, False)
    record(w, "aten::any.out", torch.ops.aten.any.dim, special(), 0, True)


def shorts(w):
    """Casts from and to the short floats: halves, ties, what is too large or too small."""
    halves = torch.arange(-32768, 32768, 11, dtype=torch.int32).to(torch.int16)
    cast = lambda to: lambda a, n, f: a.to(to)
    for short in (torch.float16, torch.bfloat16):
        x = halves.view(short)
        x = torch.where(x.isnan(), torch.zeros((), dtype=short), x)  # NaNs' bits are anybody's
        record(w, "aten::_to_copy.out", cast(torch.float32), x, False, None)
        record(w, "aten::_to_copy.out", cast(torch.float64), x[::97].clone(), False, None)
        for dtype in DTYPES:
            record(w, "aten::_to_copy.out", cast(short), rand(40, dtype=dtype, scale=20.0), False, None)
        near = torch.cat([x.float(), torch.nextafter(x.float(), torch.tensor(INF)),
                          torch.nextafter(x.float(), torch.tensor(-INF)), (x.float() + x.roll(1).float()) / 2])
        near = near[~near.isnan()]
        for scale in (1.0, 2.0 ** -14, 2.0 ** 3):
            record(w, "aten::_to_copy.out", cast(short), near[::7] * scale, False, None)
        record(w, "aten::_to_copy.out", cast(torch.int32), rand(50).to(short) * 9, False, None)
        record(w, "aten::clone.out", lambda a, f: a.clone(), x[:300].view(3, 100), None)
    for tiny in (t for t, code in CODES.items() if 23 <= code <= 26):
        x = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(tiny)
        x = x[~x.float().isnan()]
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32):
            record(w, "aten::_to_copy.out", cast(dtype), x[x.float().isfinite()], False, None)
        exact = x.float().sort()[0]
        between = (exact[1:] + exact[:-1]) / 2  # ties
        near = torch.cat([exact, between, torch.nextafter(between, torch.tensor(INF)), torch.nextafter(between, torch.tensor(-INF)),
                          torch.tensor([0.0, -0.0, INF, -INF, 1e-30, -1e-30, 465.0, -480.0, 256.0, 248.0, -247.9, 61440.0, -61439.0, 7e4, 1e38])])
        record(w, "aten::_to_copy.out", cast(tiny), near, False, None)
        for dtype in (torch.float64, torch.float16, torch.bfloat16):
            record(w, "aten::_to_copy.out", cast(tiny), exact.to(dtype), False, None)
        for dtype in (torch.int64, torch.uint8, torch.bool):
            record(w, "aten::_to_copy.out", cast(tiny), torch.arange(0, 17).to(dtype), False, None)


def unsigned(w):
    """Casts of u64."""
    top = 2 ** 63
    x = torch.tensor([0, 1, 255, 2 ** 24 + 1, 2 ** 40 + 2 ** 16 + 1, top - 1, top, top + 1025, 2 * top - 1], dtype=torch.uint64)
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.float32, torch.float64, torch.bool):
        record(w, "aten::_to_copy.out", lambda a, n, f, dtype=dtype: a.to(dtype), x, False, None)
    for y in (x.view(torch.int64), torch.arange(-3, 4, dtype=torch.int32), torch.tensor([0.0, 2.5, 1e10, 1e19, 1.8e19, 2.0 ** 63]),
              torch.tensor([True, False])):
        record(w, "aten::_to_copy.out", lambda a, n, f: a.to(torch.uint64), y, False, None)


def official(w):
    """More that the official exporter calls and etc does not; and what is left of a division."""
    aten = torch.ops.aten
    for v in (3, -3, 4, 1, -1, 7):
        for dtype in DTYPES[:7]:
            if not (v < 0 and dtype == torch.uint8):
                record(w, "aten::fmod.Scalar_out", torch.fmod, rand(3, 11, dtype=dtype), v)
    for v in (0.75, -0.3, 3e38, INF, -INF, NAN, 0.0):  # not 1e-30, as above
        record(w, "aten::fmod.Scalar_out", torch.fmod, special(), v)
        record(w, "aten::fmod.Scalar_out", torch.fmod, rand(21, scale=100.0), v)
        record(w, "aten::fmod.Scalar_out", torch.fmod, rand(21, dtype=torch.float64), v)
    for dtype in DTYPES:
        x = rand(3, 4, 5, dtype=dtype)
        for dim, at in ((0, [2, 0]), (1, [3, 3, 0, 1, 2, 2]), (-1, [4])):
            for t in (torch.int64, torch.int32):
                record(w, "aten::index_select.out", torch.index_select, x, dim, torch.tensor(at, dtype=t))
        for times in ([1, 1, 1], [2, 1, 3], [3, 2, 1, 1], [1, 2, 2, 3, 2], [2, 0, 1]):
            record(w, "aten::repeat.out", aten.repeat, x, times)
        for size, stride, offset in (([3, 4, 5], [20, 5, 1], None), ([2, 2], [1, 3], 7), ([6, 6], [10, 0], 9),
                                     ([], [], 59), ([2, 0], [99, 99], 59), ([60], [1], 0), ([3, 1, 2], [1, 1000, 5], 50)):
            record(w, "aten::as_strided_copy.out", aten.as_strided_copy, x, size, stride, offset)
    record(w, "aten::index_select.out", torch.index_select, rand(()), 0, torch.tensor([0]))
    record(w, "aten::index_select.out", torch.index_select, rand(3, 2), 0, torch.tensor(1))
    record(w, "aten::index_select.out", torch.index_select, rand(3, 2), 1, torch.tensor([], dtype=torch.int64))
    record(w, "aten::repeat.out", aten.repeat, rand(()), [2, 3])
    record(w, "aten::repeat.out", aten.repeat, rand(()), [])
    for dtype in (torch.float32, torch.float64, torch.int64, torch.int32):  # no two alike: which comes first is nobody's
        x = torch.from_numpy(rng.permutation(84)).to(dtype).reshape(4, 7, 3) - 40
        for k, dim, largest in ((3, 1, True), (7, 1, False), (1, 0, True), (2, -1, False), (0, 1, True)):
            record(w, "aten::topk.values", torch.topk, x, k, dim, largest, True)
    x = torch.tensor([1.0, NAN, -INF, 3.0, INF, -2.0])
    for largest in (True, False):
        record(w, "aten::topk.values", torch.topk, x, 6, 0, largest, True)
        record(w, "aten::topk.values", torch.topk, rand(()), 1, 0, largest, True)
        record(w, "aten::topk.values", torch.topk, rand(2, 3000), 40, -1, largest, True)


def order(w):
    """Rows put in order, elements scattered.  Of rows that are sorted, no two elements are alike."""
    def at(hi, *shape, dtype=torch.int64):
        return torch.from_numpy(np.asarray(rng.integers(0, hi, shape))).to(dtype)

    def prod(x, dim, keep, t):
        return torch.prod(x, dim, keep, dtype=CODE_OF.get(t))

    for dtype in DTYPES:
        x = rand(4, 5, 3, dtype=dtype)
        for dim, keep in ((0, False), (1, True), (-1, False)):
            for name, fn in (("max.dim_max", torch.max), ("min.dim_min", torch.min)):
                record(w, "aten::" + name, lambda a, d, k: tuple(fn(a, d, k)), x, dim, keep)
            record(w, "aten::prod.int_out", prod, x, dim, keep, None)
            for dims in ([dim], [0, -1], []):
                record(w, "aten::amin.out", torch.amin, x, dims, keep)
        for dim, keep in ((None, False), (None, True), (1, False), (-1, True)):
            for fn in (torch.argmax, torch.argmin):
                if dtype != torch.bool:
                    record(w, "aten::%s.out" % fn.__name__, fn, x, dim, keep)
        record(w, "aten::max.unary_out", torch.max, x)
        record(w, "aten::min.unary_out", torch.min, x)
        record(w, "aten::prod.out", lambda a, t: torch.prod(a), x[0], None)
        for dim in (0, 1, -1):
            i = at(x.shape[dim], 3, 4, 2, dtype=torch.int64)
            src = rand(4, 5, 3, dtype=dtype)
            record(w, "aten::scatter_add.out", torch.scatter_add, x, dim, i, src)
            record(w, "aten::scatter.value_out", torch.scatter, x, dim, i, 3)
            once = torch.stack([torch.from_numpy(rng.permutation(x.shape[dim]))[:2] for _ in range(6)])
            once = once.reshape(3, 2, 2).movedim(-1, dim)
            record(w, "aten::scatter.src_out", torch.scatter, x, dim, once, src)
    for dtype in FLOATS:
        for x in (special(dtype), torch.tensor([1.0, NAN, -INF, NAN, 2.0], dtype=dtype)):
            for name, fn in (("max.dim_max", torch.max), ("min.dim_min", torch.min)):
                record(w, "aten::" + name, lambda a, d, k: tuple(fn(a, d, k)), x, 0, False)
            record(w, "aten::argmax.out", torch.argmax, x, 0, False)
            record(w, "aten::argmin.out", torch.argmin, x, None, False)
            record(w, "aten::amin.out", torch.amin, x, [0], True)
    for x in (rand(()), rand(1), rand(0, 3), rand(3, 0)):
        record(w, "aten::prod.int_out", prod, x, -1, False, None)
        record(w, "aten::prod.out", lambda a, t: torch.prod(a), x, None)
    record(w, "aten::prod.int_out", prod, rand(3, 4, dtype=torch.int32), 0, True, 6)
    record(w, "aten::argmax.out", torch.argmax, rand(()), 0, True)
    record(w, "aten::argmin.out", torch.argmin, rand(3, 0), 0, False)
    record(w, "aten::max.dim_max", lambda a, d, k: tuple(torch.max(a, d, k)), rand(()), -1, False)
    record(w, "aten::scatter.value_out", torch.scatter, rand(()), 0, torch.tensor(0), 2.5)
    record(w, "aten::scatter_add.out", torch.scatter_add, rand(3), 0, at(3, 0), rand(3))
    record(w, "aten::scatter_add.out", torch.scatter_add, rand(3), -1, at(3, 40), rand(41))
    for dtype, n in ((torch.float32, 500), (torch.float64, 300), (torch.int64, 300), (torch.int32, 300),
                     (torch.int16, 300), (torch.uint8, 256)):
        x = torch.from_numpy(rng.permutation(n)).to(dtype).reshape(1, n)
        x = x if dtype == torch.uint8 else x - n // 2
        for k, largest in ((n, True), (n, False), (n - 1, True), (n // 3, False), (1, True)):
            record(w, "aten::topk.values", torch.topk, x, k, -1, largest, True)
        record(w, "aten::topk.values", torch.topk, x.t().contiguous(), n, 0, False, True)


def places(x):
    return torch.nonzero(x).contiguous()  # torch keeps columns together


def counted(w):
    """Rows that elements decide on."""
    for dtype in DTYPES:
        for x in (rand(3, 5, dtype=dtype) * (rand(3, 5) > 0), rand(2, 3, 4, dtype=dtype), rand((), dtype=dtype), rand(0, 3, dtype=dtype),
                  rand(1500, dtype=dtype) * (rand(1500) > 1), torch.zeros(7, dtype=dtype)):
            record(w, "aten::nonzero.out", places, x)
        for of, by in (((3, 5), (3, 5)), ((3, 5), (5,)), ((5,), (3, 1)), ((2, 1, 4), (3, 1)), ((), (4,)), ((4,), ()), ((0, 3), (3,)), ((1200,), (1200,))):
            record(w, "aten::masked_select.out", torch.masked_select, rand(*of or [()], dtype=dtype), rand(*by or [()], dtype=torch.bool))
    record(w, "aten::nonzero.out", places, special())


def sampled(w):
    """Images at the places of a grid, some of them far off or no numbers."""
    def run(key, fn, x, grid):
        for kind in range(3 if x.dim() == 4 else 2):
            for border in range(3):
                for aligned in (False, True):
                    record(w, key, fn, x, grid, kind, border, aligned)

    g = rand(2, 4, 7, 2, scale=1.3)
    g[0, 0, 0], g[0, 0, 1], g[0, 1, 0] = torch.tensor([-1.0, 1.0]), torch.tensor([NAN, 0.1]), torch.tensor([37.3, -25.7])
    run("aten::grid_sampler_2d.out", torch.grid_sampler_2d, rand(2, 3, 5, 9), g)
    run("aten::grid_sampler_2d.out", torch.grid_sampler_2d, rand(1, 1, 1, 2), rand(1, 5, 4, 2))
    run("grid_sampler_3d", torch.grid_sampler_3d, rand(2, 2, 3, 4, 5), rand(2, 2, 3, 4, 3, scale=1.3))


def rounded(w):
    """Products whose operands are rounded as --math bf16 rounds them."""
    halfway = torch.arange(0x3f7f7ffe, 0x3f828003, dtype=torch.int32)[::0x3fff].view(torch.float32)
    largest = torch.tensor([0x7f7f7fff, 0x7f7f8000, 0x7f7fffff, 0x00007fff, 0x00008000, 0x00018000], dtype=torch.int32)
    for x in (special(), rand(3, 5, 7), rand(()), rand(0, 3), halfway, largest.view(torch.float32), rand(9, dtype=torch.float64)):
        record(w, "round_bfloat", lambda v: v.bfloat16().to(v.dtype), x)


def narrow(w):
    """More rows than a vector has lanes, and few terms and columns."""
    for k, n in ((2, 2), (2, 4), (4, 2), (4, 4)):
        x = rand(37, k)
        record(w, "aten::mm.out", torch.mm, x, rand(k, n))
        record(w, "aten::linear.out", F.linear, x, rand(n, k), rand(n))
        x[5, 1] = INF
        record(w, "aten::mm.out", torch.mm, x, rand(k, n))


def alike(w):
    """The places of equal elements that topk finds, in rows of every kind that its algorithm tells apart."""
    for n, k in ((1, 1), (2, 1), (4, 2), (5, 3), (7, 7), (16, 9), (17, 17), (33, 20), (100, 60), (128, 2), (300, 299), (700, 9)):
        for most in (1, 3, 40):
            x = torch.from_numpy(rng.integers(0, most, (2, n)))
            for v in (x.to(torch.uint8), x.float()):
                if v.is_floating_point() and most == 40:
                    v[0, n // 2:] = NAN
                for largest, is_sorted in ((True, True), (False, False)):
                    record(w, "aten::topk.values", torch.topk, v, k, 1, largest, is_sorted)
        falls = torch.arange(n, 0, -1).reshape(n, 1) // 2
        record(w, "aten::topk.values", torch.topk, falls, k, 0, True, False)


def whole(w):
    """Operators that a .pte for runtime-lite alone calls whole."""
    for x in (rand(3, 70), rand(40, 5), rand(7, dtype=torch.int32), rand(3, 9, dtype=torch.bool), rand(), rand(0, 3), rand(2, 0),
              rand(90, dtype=torch.float16), rand(5, 66, dtype=torch.float64), torch.tensor([1.0, NAN, -INF, 0.0, -0.0, NAN])):
        for axis in range(-1, x.dim() - 1):
            for falls in (False, True):
                record(w, "aten::sort.values_stable", lambda v, s, d, f: torch.sort(v, stable=s, dim=d, descending=f), x, True, axis, falls)
    hows = ("sum", "prod", "amax", "amin")
    for dtype in (torch.float32, torch.float64, torch.int64, torch.uint8):
        for how in range(4):
            x, y, index = rand(4, 6, dtype=dtype), rand(3, 6, dtype=dtype), rand(3, 6, dtype=torch.int64).abs() % 4
            record(w, "etc::scatter_join.out", lambda v, d, i, s, h: torch.scatter_reduce(v, d, i, s, hows[h]), x, 0, index, y, how)
    # The result and the working memory are arguments, as nothing can compare the latter; unit tests compare the former.
    for shape, axis, n, form, back in (((3, 20, 2), 1, 20, 0, False), ((2, 6, 4, 2), 1, 6, 0, True), ((17,), 0, 17, 1, False), ((5, 2), 0, 8, 2, True)):
        pairs = torch.zeros({0: shape, 1: (n // 2 + 1, 2), 2: (n,)}[form])
        w.case("etc::fft.out", (rand(*shape), axis, n, form, back, pairs, torch.zeros(1600)), (), ())


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: record.py FOLDER")
    torch.set_num_threads(1)
    for family in (pointwise, matmul, conv, pool, softmax, reduce, norm, copy, logic,
                  index, attention, layer_norm, remainder, lists, softmax_attention, exported, shorts,
                  packed_linear, official, order, counted, sampled, unsigned, rounded, narrow, alike,
                  whole):
        family(Writer("%s/%s.bin" % (sys.argv[1], family.__name__)))


if __name__ == "__main__":
    main()
