#!/usr/bin/env python3
"""Records one family as record.py records the others: record_arithmetic.py FOLDER

arithmetic  roundings, angles, hyperbolic functions and logarithms; powers, quotients and what they leave
"""
import sys

import torch

from record import DTYPES, INF, NAN, SPECIAL, Writer, rand, record, special

FLOATS, INTS = [torch.float32, torch.float64], DTYPES[2:7]


def unary(w):
    rounding = {"ceil": torch.ceil, "floor": torch.floor, "round": torch.round, "sign": torch.sign, "trunc": torch.trunc}
    angles = {name: getattr(torch, name) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "expm1", "log10", "log1p", "log2", "sinh", "tan")}
    halves = torch.arange(-40, 41) / 4
    for name, fn in {**rounding, **angles}.items():
        key = "aten::%s.out" % name
        for dtype in FLOATS:
            for x in (special(dtype), halves.to(dtype), rand(3, 5, 7, dtype=dtype), rand((), dtype=dtype),
                      rand(0, 3, dtype=dtype), rand(37, dtype=dtype).abs() * 4 + 1, rand(37, dtype=dtype) / 3e3):
                record(w, key, fn, x)
        for dtype in INTS:
            record(w, key, fn, rand(11, dtype=dtype))
    for name in ("cosh", "log1p", "atan"):
        record(w, "aten::%s.out" % name, getattr(torch, name), rand(9, dtype=torch.bool))


def spread(dtype):
    numbers = [v for v in SPECIAL if abs(v) not in (1e-40, 2.0 ** -126)]  # quotients as large as these torch gets wrong
    return torch.tensor(numbers, dtype=dtype)[:, None].expand(len(numbers), len(numbers)).contiguous()


def binary(w):
    def mode(a, b, how):
        return torch.div(a, b, rounding_mode=how)

    pairs = {"aten::fmod.Tensor_out": torch.fmod, "aten::remainder.Tensor_out": torch.remainder,
             "aten::floor_divide.out": torch.floor_divide, "aten::atan2.out": torch.atan2,
             "aten::pow.Tensor_Tensor_out": torch.pow}
    for key, fn in pairs.items():
        for sa, sb in (((4, 5), (4, 5)), ((), ()), ((3, 1, 5), (4, 1)), ((5,), (0, 5)), ((), (2, 3))):
            record(w, key, fn, rand(*sa, scale=9.0), rand(*sb))
        for dtype in FLOATS if "pow" not in key else []:
            record(w, key, fn, spread(dtype), spread(dtype).t().contiguous())
        for da in DTYPES[:7]:
            for db in DTYPES[:7]:
                a, b = rand(2, 9, dtype=da), rand(9, dtype=db)
                b = torch.where(b == 0, torch.full_like(b, 3), b)
                record(w, key, fn, a, b.abs() if "pow" in key else b)
    signed = torch.tensor([0, 1, -1, 2, -7]), torch.tensor([-1, -2, -3, -1, -2])
    record(w, "aten::pow.Tensor_Tensor_out", torch.pow, *signed)
    odd = [0.0, 1.0, -1.0, 0.25, -2.0, 3.0, INF, -INF, NAN]
    for dtype in FLOATS:
        grid = torch.tensor(odd, dtype=dtype)[:, None].expand(9, 9).contiguous()
        record(w, "aten::pow.Tensor_Tensor_out", torch.pow, grid, grid.t().contiguous())
        for base in (2, 0.1, -1.5, 0, 1):
            record(w, "aten::pow.Scalar_out", torch.pow, base, torch.tensor(odd, dtype=dtype))
    for dtype in INTS:
        for base in (2, -3, 0.5):
            if base > 0 or dtype != torch.uint8:
                record(w, "aten::pow.Scalar_out", torch.pow, base, rand(9, dtype=dtype).abs())
        a, b = rand(40, dtype=dtype), rand(40, dtype=dtype)
        for how in ("floor", "trunc", None):
            record(w, "aten::div.out_mode", mode, a, torch.where(b == 0, torch.full_like(b, 2), b), how)
    for dtype in FLOATS:
        for how in ("floor", "trunc", None):
            record(w, "aten::div.out_mode", mode, rand(40, dtype=dtype), rand(40, dtype=dtype), how)
            record(w, "aten::div.out_mode", mode, spread(dtype), spread(dtype).t().contiguous(), how)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: record_arithmetic.py FOLDER")
    torch.set_num_threads(1)
    w = Writer("%s/arithmetic.bin" % sys.argv[1])
    unary(w)
    binary(w)


if __name__ == "__main__":
    main()
