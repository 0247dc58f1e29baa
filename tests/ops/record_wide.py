#!/usr/bin/env python3
"""Records one family as record.py records the others: record_wide.py FOLDER

borders   that cut away more than there is
"""
import sys

import torch

import record as base
from record import Writer, rand, record

aten = torch.ops.aten


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


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: record_wide.py FOLDER")
    torch.set_num_threads(1)
    families = {"borders": [borders]}
    for name, parts in families.items():
        base.rng = base.np.random.default_rng(5)
        w = Writer(f"{sys.argv[1]}/{name}.bin")
        for part in parts:
            part(w)


main()
