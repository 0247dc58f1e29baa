#!/usr/bin/env python3
"""Compares what our partitioner and the official one give to XNNPACK, model by model.

    xnn_blobs.py --etc build/etc --zoo ZOO --official FOLDER [MODEL ...]

FOLDER contains NAME.pte of the official flow with XNNPACK; our files are compiled in this run. For
both it counts the calls of delegates, the transposes, as nodes of XNNPACK and as calls of kernels, and
the share of the model's multiply-adds that delegates compute, from the shapes in the blobs. (Sums
along rows, which we write as products with a row of equal numbers, do not count.) Exits with 1 if our
file has more calls or transposes, or a smaller share.
"""
import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

FULLY_CONNECTED, TRANSPOSE, CONV, DEPTHWISE, BMM, DECONV = 2, 5, 7, 13, 37, 39
NODE_IDS = {FULLY_CONNECTED: (0, 1, 3), CONV: (15, 16, 18), DEPTHWISE: (15, 16, 18), DECONV: (15, 16, 18), BMM: (0, 1, 2)}
MOVES = ("permute_copy", "transpose_copy", "t_copy")


class Flat:
    """Fields of FlatBuffers tables by slot."""

    def __init__(self, data):
        self.b = data

    def u32(self, p):
        return struct.unpack_from("<I", self.b, p)[0]

    def at(self, table, slot):
        v = table - struct.unpack_from("<i", self.b, table)[0]
        size = struct.unpack_from("<H", self.b, v)[0]
        o = struct.unpack_from("<H", self.b, v + 4 + 2 * slot)[0] if 4 + 2 * slot < size else 0
        return table + o if o else None

    def number(self, table, slot, form="<I"):
        p = self.at(table, slot)
        return struct.unpack_from(form, self.b, p)[0] if p else 0

    def ref(self, table, slot):
        p = self.at(table, slot)
        return p + self.u32(p) if p else None

    def numbers(self, table, slot):
        p = self.ref(table, slot)
        return list(struct.unpack_from(f"<{self.u32(p)}I", self.b, p + 4)) if p else []

    def tables(self, table, slot):
        p = self.ref(table, slot)
        return [p + 4 + 4 * i + self.u32(p + 4 + 4 * i) for i in range(self.u32(p))] if p else []


def graphs(path):
    """The FlatBuffers of all XNNPACK blobs in a file, found by their header."""
    b, p = open(path, "rb").read(), 0
    while (p := b.find(b"XH00", p)) >= 0:
        at, size = struct.unpack_from("<II", b, p + 6)
        start = p - 4 + at
        if b[start + 4:start + 8] == b"XN01":
            yield Flat(b[start:start + size])
        p += 4


def is_equal_row(pte, f, value):
    """Returns whether the constant is a single row of equal numbers, which its name says."""
    tensor = f.ref(value, 1)
    rows = f.tables(f.u32(0), 8)
    key = f.ref(rows[f.number(tensor, 3)], 2)
    return key is not None and f.b[key + 4:key + 4 + f.u32(key)].startswith(b"filled")


def macs_of(f, kind, node, value, pte):
    """Multiply-adds of a node: elements of the result times what is summed for each."""
    sizes = []
    for slot in NODE_IDS[kind]:
        v = value[f.number(node, slot)]
        t = f.ref(v, 1)
        sizes.append(f.numbers(t if f.b[f.at(v, 0)] == 1 else f.ref(t, 0), 2))
    a, k, out = sizes
    if kind == FULLY_CONNECTED:
        return 0 if is_equal_row(pte, f, value[f.number(node, 1)]) else math.prod(a) * math.prod(k) // a[-1]
    if kind == BMM:
        return math.prod(out) * a[-1]
    if kind == DECONV:
        return math.prod(a) * math.prod(k) // k[3] // f.number(node, 12)
    return math.prod(out) * (k[1] * k[2] if kind == DEPTHWISE else math.prod(k[1:]))


def counted(path, etc):
    p = subprocess.run([etc, "inspect", path, "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    methods = json.loads(p.stdout)["methods"]
    moves = sum(o["calls"] for m in methods for o in m["operators"] if o["name"].split("::")[1].split(".")[0] in MOVES)
    macs = 0
    for f in graphs(path):
        root = f.u32(0)
        value = {}
        for v in f.tables(root, 2):
            t = f.ref(v, 1)
            value[f.number(t if f.b[f.at(v, 0)] == 1 else f.ref(t, 0), 6)] = v
        for n in f.tables(root, 1):
            kind, node = f.b[f.at(n, 0)], f.ref(n, 1)
            moves += kind == TRANSPOSE
            macs += macs_of(f, kind, node, value, path) if kind in NODE_IDS else 0
    return {"calls": sum(len(m["delegates"]) for m in methods), "transposes": moves, "macs": macs}


def all_macs(etc, source):
    p = subprocess.run([etc, "partition", source, "--backend", "xnnpack", "--json"], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, check=True)
    return json.loads(p.stdout)["macs"]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--etc", required=True)
    a.add_argument("--zoo", required=True)
    a.add_argument("--official", required=True)
    a.add_argument("models", nargs="*")
    args = a.parse_args()
    names = args.models or sorted(n[:-4] for n in os.listdir(args.official) if n.endswith(".pte"))
    failed = []
    print(f"{'':20} {'calls':>12} {'transposes':>12} {'% of multiply-adds':>20}     ours, official")
    for name in names:
        source = os.path.join(args.zoo, name, "model.pt2")
        with tempfile.TemporaryDirectory() as work:
            pte = os.path.join(work, name + ".pte")
            subprocess.run([args.etc, "compile", source, "-o", pte, "--backend", "xnnpack", "-q"], check=True)
            ours = counted(pte, args.etc)
        theirs, whole = counted(os.path.join(args.official, name + ".pte"), args.etc), all_macs(args.etc, source)
        share = [100 * min(x["macs"], whole) / whole for x in (ours, theirs)]
        why = [w for w in ("calls", "transposes") if ours[w] > theirs[w]] + ["multiply-adds"] * (share[0] < share[1] - 0.01)
        failed += [name] * bool(why)
        print(f"{name:20} {ours['calls']:5} {theirs['calls']:6} {ours['transposes']:5} {theirs['transposes']:6} "
              f"{share[0]:12.2f} {share[1]:7.2f}  {' FAIL: ' + ', '.join(why) if why else ''}", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
