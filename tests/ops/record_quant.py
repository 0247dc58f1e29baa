#!/usr/bin/env python3
"""Records quant.bin as record.py records the other families: record_quant.py FOLDER

Quantizes and dequantizes per tensor, channel and token, with ties, values at the ends of ranges, and
scales that are computed from the values.
"""
import sys

import torch
import torch.ao.quantization.fx._decomposed  # registers the operators

import record as base
from record import Writer, rand

q = torch.ops.quantized_decomposed
RANGES = [(torch.int8, -128, 127), (torch.int8, -127, 127), (torch.uint8, 0, 255),
          (torch.int8, -8, 7), (torch.int16, -32768, 32767), (torch.int32, -2147483648, 2147483647)]


def case(w, key, fn, *args, **named):
    """Operators that take float32 alone: their answer is the exact one too."""
    outs = base.outputs(fn(*args, **{k: v for k, v in named.items() if k != "tail"}))
    passed = [base.CODES[a] if isinstance(a, torch.dtype) else a for a in args]
    w.case(key, passed + list(named.get("tail", ())), outs, outs)


def integers(dtype, lo, hi, *shape):
    return torch.from_numpy(base.rng.integers(lo, hi + 1, shape)).to(dtype)


def ties(scale, *shape):
    """Halves of the scale, and numbers past both ends of any range of 8 bits."""
    return (torch.from_numpy(base.rng.integers(-600, 600, shape)).float() * 0.5) * scale


def per_tensor(w):
    name = "quantized_decomposed::%squantize_per_tensor.%sout"
    for dtype, lo, hi in RANGES:
        for scale, zero in ((0.05, 3), (0.25, 0), (1.0, -1), (3e-5, 7), (1 / 3, 100)):
            zero = min(max(zero, lo), hi)
            points = torch.tensor([scale], dtype=torch.float64), torch.tensor([zero])
            for x in (rand(3, 17, scale=10 * scale), ties(scale, 2, 3, 40), rand(0, 3), rand(())):
                case(w, name % ("", ""), q.quantize_per_tensor, x, scale, zero, lo, hi, dtype)
                case(w, name % ("", "Tensor_"), q.quantize_per_tensor.tensor, x, *points, lo, hi,
                     dtype)
            x = integers(dtype, max(lo, -2 ** 22), min(hi, 2 ** 22), 4, 33)
            case(w, name % ("de", ""), q.dequantize_per_tensor, x, scale, zero, lo, hi, dtype,
                 tail=[None])
            case(w, name % ("de", "Tensor_"), q.dequantize_per_tensor.tensor, x, *points, lo, hi,
                 dtype, tail=[None])
    nhwc = rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    case(w, name % ("", ""), q.quantize_per_tensor, nhwc, 0.1, 2, -128, 127, torch.int8)


def per_channel(w):
    name = "quantized_decomposed::%squantize_per_channel.out"
    for dtype, lo, hi in RANGES[:5]:
        for axis, shape in ((0, (5, 7)), (1, (2, 3, 4, 5)), (-1, (4, 9)), (3, (1, 3, 3, 6)),
                            (0, (3,)), (0, (4, 0))):
            n = shape[axis]
            for kind in (torch.float32, torch.float64):
                scales = rand(n).abs().to(kind) * 0.1 + 0.01
                zeros = integers(torch.int64, max(lo, -9), min(hi, 9), n)
                case(w, name % "", q.quantize_per_channel, rand(*shape), scales, zeros, axis, lo, hi,
                     dtype)
                case(w, name % "de", q.dequantize_per_channel, integers(dtype, lo, hi, *shape),
                     scales, zeros, axis, lo, hi, dtype, tail=[None])
        scales = torch.tensor([0.5, 0.25, 1.0])
        case(w, name % "", q.quantize_per_channel, ties(0.5, 3, 50), scales,
             torch.zeros(3, dtype=torch.int64), 0, lo, hi, dtype)
    x, scales = integers(torch.int8, -128, 127, 6, 8), rand(6).abs()
    case(w, name % "de", q.dequantize_per_channel, x, scales, None, 0, -128, 127, torch.int8,
         tail=[None])


def per_token(w):
    name = "quantized_decomposed::%squantize_per_token.out"
    for x in (rand(5, 32), rand(2, 3, 17, scale=40.0), rand(7), rand(1, 64).abs(), rand(0, 4),
              -rand(3, 4).abs(), torch.zeros(2, 3), ties(0.25, 4, 30), rand(2, 5, scale=1e-9),
              rand(300, 9)):
        scale, zero = q.choose_qparams_per_token_asymmetric(x, torch.int8)
        case(w, "quantized_decomposed::choose_qparams_per_token_asymmetric.out",
             q.choose_qparams_per_token_asymmetric, x, torch.int8)
        whole = q.quantize_per_token(x, scale, zero, -128, 127, torch.int8)
        case(w, name % "", q.quantize_per_token, x, scale, zero, -128, 127, torch.int8)
        case(w, name % "de", lambda *a: q.dequantize_per_token(*a), whole, scale, zero, -128, 127,
             torch.int8, torch.float32)
    for x in (rand(5, 32), rand(3, 7, scale=300.0), rand(1), rand(4, 4).abs(), -rand(9).abs(),
              torch.zeros(3), rand(2, 2, 2, scale=1e-7)):
        for dtype, lo, hi in RANGES[:3]:
            for eps in (2.0 ** -12, 1e-5):
                case(w, "quantized_decomposed::choose_qparams.Tensor_out", q.choose_qparams.tensor, x,
                     lo, hi, eps, dtype)


def tables(w):
    """Rows of tables, of integers of 8 bits and of 4, two to a byte: the first of a pair is the high half."""
    def run(key, table, kept, index, groups, zeros):
        rows, n = table.shape
        scale = rand(rows, groups).abs() + 0.01
        zero = integers(torch.int8, -9, 9, rows, groups).float() if zeros else None
        each = lambda t: t.repeat_interleave(n // groups, 1)[index]
        answer = (table.float()[index] - (0 if zero is None else each(zero))) * each(scale)
        if groups == 1 and zeros:
            scale, zero = scale[:, 0], zero[:, 0]
        case(w, "quantized_decomposed::embedding_%s.out" % key, lambda *a: answer, kept, scale, zero, -128, 127, index)

    for shape in ((5,), (2, 3), (), (0,)):
        index = torch.from_numpy(base.np.asarray(base.rng.integers(0, 7, shape)))
        for groups, zeros in ((1, False), (1, True), (4, False), (2, True)):
            for dtype, lo, hi in RANGES[0], RANGES[2]:
                table = integers(dtype, lo, hi, 7, 24)
                run("byte", table, table, index, groups, zeros)
            table = integers(torch.int8, -8, 7, 7, 24)
            pair = (table + 8).to(torch.uint8)
            run("4bit", table, (pair[:, ::2] << 4) | pair[:, 1::2], index, groups, zeros)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: record_quant.py FOLDER")
    torch.set_num_threads(1)
    base.rng = base.np.random.default_rng(3)
    w = Writer(sys.argv[1] + "/quant.bin")
    for part in (per_tensor, per_channel, per_token, tables):
        part(w)


main()
