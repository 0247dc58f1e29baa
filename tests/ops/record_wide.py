#!/usr/bin/env python3
"""Records three families as record.py records the others: record_wide.py FOLDER

borders   that cut away more than there is
fills     numbers of short floats that are filled in and chosen
added     values added to places that indices name, some of them twice
"""
import sys

import torch

import record as base
from record import INF, Picks, Writer, rand, record

aten = torch.ops.aten
DOUBLE, SHORT = torch.float64, [torch.float16, torch.bfloat16]
INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


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
    families = {"borders": [borders], "fills": [fills], "added": [added]}
    for name, parts in families.items():
        base.rng = base.np.random.default_rng(5)
        w = Writer(f"{sys.argv[1]}/{name}.bin")
        for part in parts:
            part(w)


main()
