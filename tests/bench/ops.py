#!/usr/bin/env python3
"""Times operators with loops of their own at about 10^6 elements and compares them with torch: one thread each,
one run.

    ops.py --etc build/etc [--lite build/tests/bench/bench_lite] [--rounds N] [--seconds S] [--work DIR] [OP ...]

A round times torch, then a .pte for runtime-lite, which reads inputs where they are as torch does, then emitted C
as `cc -O3` builds it for this CPU. A time is the median of the calls of some seconds, and the table has the median
of the rounds. Outputs are checked against torch's in the same run. Operators that etc refuses are named and left
out of the means. A ratio is torch's time divided by ours: above 1 ours is faster.
"""
import argparse
import ctypes
import math
import os
import re
import statistics
import subprocess
import sys
import time

import numpy as np
import torch

CC = ["cc", "-O3", "-march=native", "-shared", "-fPIC", "-w"]


def rnd(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def numbers(n, *shape):
    return torch.randint(0, n, shape, generator=torch.Generator().manual_seed(1))


class Recurrent(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(0)
        self.layer = kind(100, 100)

    def forward(self, x):
        return self.layer(x)[0]


class Calls(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *x):
        return self.function(*x)


def conv3d():
    torch.manual_seed(0)
    return torch.nn.Conv3d(4, 8, 3, padding=1)


SQUARE = (rnd(1000, 1000),)
OPS = {  # name: module, inputs
    "sort": (Calls(lambda x: tuple(torch.sort(x, stable=True))), SQUARE),
    "sort of columns": (Calls(lambda x: tuple(torch.sort(x, dim=0, stable=True))), SQUARE),
    "topk": (Calls(lambda x: tuple(torch.topk(x, 10))), SQUARE),
    "cumsum": (Calls(lambda x: torch.cumsum(x, 1)), SQUARE),
    "cumsum of columns": (Calls(lambda x: torch.cumsum(x, 0)), SQUARE),
    "scatter_add": (Calls(lambda x, i, y: torch.scatter_add(x, 1, i, y)),
                    (*SQUARE, numbers(1000, 1000, 1000), rnd(1000, 1000, seed=2))),
    "rfft 1000x1024": (Calls(lambda x: torch.view_as_real(torch.fft.rfft(x))), (rnd(1000, 1024),)),
    "rfft 2^20": (Calls(lambda x: torch.view_as_real(torch.fft.rfft(x))), (rnd(1 << 20),)),
    "fft 1000x1000": (Calls(lambda x: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x)))),
                      (rnd(1000, 1000, 2),)),
    "grid_sampler": (Calls(lambda x, g: torch.nn.functional.grid_sample(x, g, align_corners=False)),
                     (rnd(1, 4, 512, 512), rnd(1, 500, 500, 2, seed=3) * 0.5)),
    "lstm": (Recurrent(torch.nn.LSTM), (rnd(100, 100, 100),)),
    "gru": (Recurrent(torch.nn.GRU), (rnd(100, 100, 100),)),
    "conv3d": (conv3d(), (rnd(1, 4, 64, 64, 64),)),
}


def seconds_of(call, seconds):
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def flat(result):
    return [t.numpy() for t in (result if isinstance(result, tuple) else (result,))]


def etc(args, *words):
    r = subprocess.run([args.etc, *words, "-q"], capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError((r.stderr.strip().splitlines() or ["no message"])[0])


def check(got, want, what):
    for g, w in zip(got, want):
        # A sum of 10^6 terms in another order: the error counts against the largest element.
        if not np.allclose(g, w, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(w).max()))):
            raise RuntimeError(f"{what} computes other numbers than torch")


# -- contenders: each gives a function of seconds that returns the median of a call ---------------


def lite(args, stem, inputs, want):
    etc(args, "compile", stem + ".pt2", "-o", stem + ".pte", "--borrow-inputs", "--target-runtime", "lite")
    files = [f"{stem}.in{i}" for i in range(len(inputs))]
    for f, x in zip(files, inputs):
        x.tofile(f)
    outs = [f"{stem}.out{i}" for i in range(len(want))]

    def run(seconds):
        words = [args.lite, stem + ".pte", str(seconds), *files, "--", *outs]
        line = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
        return float(line[1])

    run(0.01)
    check([np.fromfile(f, w.dtype).reshape(w.shape) for f, w in zip(outs, want)], want, "runtime-lite")
    return run


def emitted(args, stem, inputs, want):
    etc(args, "emit-c", stem + ".pt2", "-o", stem + ".c", "--weights-as", "array")
    subprocess.run([*CC, stem + ".c", "-o", stem + ".so", "-lm"], check=True)
    with open(stem + ".h", encoding="utf-8") as f:
        header = f.read()
    arena = int(re.search(r"_ARENA_BYTES\s+(\d+)", header).group(1))
    function = getattr(ctypes.CDLL(stem + ".so"), re.search(r"int (\w+_run)\(", header).group(1))
    outs = [np.zeros(w.shape, w.dtype) for w in want]
    memory = np.zeros(arena + 64, np.uint8)
    memory = memory[-memory.ctypes.data % 64:]
    arrays = [*inputs, *outs, memory]  # which live as long as `call`

    def call():
        return function(*(ctypes.c_void_p(a.ctypes.data) for a in arrays))

    if call():
        raise RuntimeError("emitted C refused its arguments")
    check(outs, want, "emitted C")
    return lambda seconds: seconds_of(call, seconds)


def measure(args, name):
    module, inputs = OPS[name]
    module = module.eval()
    stem = os.path.join(args.work, re.sub(r"\W", "_", name))
    with torch.inference_mode():
        want = flat(module(*inputs))
    torch.export.save(torch.export.export(module, inputs, strict=False), stem + ".pt2")
    raw = [np.ascontiguousarray(x.numpy()) for x in inputs]
    ways = {"torch": lambda seconds: seconds_of(lambda: module(*inputs), seconds)}
    for way, make in (("lite", lite), ("c", emitted)):
        try:
            ways[way] = make(args, stem, raw, want)
        except RuntimeError as e:
            print(f"{name}: {way}: {e}", file=sys.stderr)
    times = {way: [] for way in ways}
    with torch.inference_mode():
        for _ in range(args.rounds):
            for way, run in ways.items():
                times[way].append(run(args.seconds))
    return {way: statistics.median(t) for way, t in times.items()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--etc", required=True)
    p.add_argument("--lite")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--work", default="build/ops")
    p.add_argument("op", nargs="*")
    args = p.parse_args()
    args.lite = args.lite or os.path.join(os.path.dirname(args.etc), "tests/bench/bench_lite")
    os.makedirs(args.work, exist_ok=True)
    args.work = os.path.abspath(args.work)
    torch.set_num_threads(1)
    unknown = [o for o in args.op if o not in OPS]
    if unknown:
        p.error(f"no operator {unknown[0]!r}; there are {', '.join(OPS)}")
    ratios = {"lite": [], "c": []}
    print(f"{'':18} {'torch':>10} {'runtime-lite':>22} {'emitted C':>22}")
    for name in args.op or OPS:
        t = measure(args, name)
        cells = []
        for way, list_ in ratios.items():
            if way in t:
                list_.append(t["torch"] / t[way])
            cells.append(f"{t[way] * 1e3:9.2f} ms {list_[-1]:7.2f} x" if way in t else "-".rjust(22))
        print(f"{name:18} {t['torch'] * 1e3:7.2f} ms {cells[0]:>22} {cells[1]:>22}", flush=True)
    for way, list_ in ratios.items():
        if list_:
            mean = math.exp(sum(map(math.log, list_)) / len(list_))
            print(f"{way}: geometric mean {mean:.2f} x, least {min(list_):.2f} x of {len(list_)}")


if __name__ == "__main__":
    main()
