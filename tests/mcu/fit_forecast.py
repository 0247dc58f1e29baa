#!/usr/bin/env python3
"""fit_forecast.py ROOT BUILD [--check]: fits the table of `etc bench --target`, emit/c_forecast.def, and prints it.

Small random networks are compiled for four cores as mcu.py does, but with a separate function for each node,
whose instructions QEMU counts.  The numbers of a kernel are the non-negative ones with the least sum of squared
relative errors. --check instead prints, for each kernel and core, how much the table in the file differs from
the counts.  Needs torch and scipy.
"""
import json
import os
import sys

import numpy as np
import torch
from scipy.optimize import nnls
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mcu

CORES = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55")
KERNELS = ["etc_mcu_" + k for k in ("pointwise", "windows", "depthwise", "any", "linear", "matmul", "sum", "sum_4", "product",
                                    "lookup", "means", "max", "quantize", "dequantize")] + ["etc_softmax_i8", "etc_softmax_i8_f32", "etc_log_softmax_i8", "etc_norm_i8", "etc_sum_f32", "etc_store", "loop"]
READS = {"etc_mcu_means", "etc_mcu_max", "etc_mcu_product", "etc_sum_f32", "etc_store"}
MULTIPLIES = {"etc_mcu_" + k for k in ("pointwise", "windows", "depthwise", "any", "linear")}


class Mobile(nn.Module):
    """Depthwise and pointwise convolutions with residual sums."""

    def __init__(self, first, channels, taps):
        super().__init__()
        layers, n = [nn.Conv2d(first, channels[0], 3, 2, 1), nn.ReLU()], channels[0]
        for i, m in enumerate(channels[1:]):
            layers += [nn.Conv2d(n, n, taps if i % 3 == 2 else 3, 1 + i % 2, 1, groups=n), nn.ReLU6(), nn.Conv2d(n, m, 1), nn.ReLU()]
            n = m
        self.body, self.twice, self.last = nn.Sequential(*layers), nn.Conv2d(n, n, 1), nn.Linear(n, 10)

    def forward(self, x):
        x = self.body(x)
        return self.last((x + self.twice(x)).mean((2, 3)))


class Residual(nn.Module):
    def __init__(self, a, b, c):
        super().__init__()
        self.first, self.one, self.two = nn.Conv2d(3, a, 3, padding=1), nn.Conv2d(a, a, 3, padding=1), nn.Conv2d(a, b, 3, 2, 1)
        self.skip, self.three, self.four, self.last = nn.Conv2d(a, b, 1, 2), nn.Conv2d(b, b, 3, padding=1), nn.Conv2d(b, c, 3, padding=1), nn.Linear(c, 10)

    def forward(self, x):
        x = F.relu(self.first(x))
        x = F.max_pool2d(F.relu(self.one(x) + x), 2)
        x = F.relu(self.two(x)) + self.skip(x)
        x = F.hardswish(self.four(torch.tanh(self.three(x))))
        return self.last(F.max_pool2d(x, 3, 2, 1).mean((2, 3)))


class Words(nn.Module):
    """A keyword spotter of one channel with squeeze and excitation."""

    def __init__(self, n):
        super().__init__()
        self.first, self.each, self.mix = nn.Conv2d(1, n, (7, 3), (2, 1)), nn.Conv2d(n, n, 3, padding=1, groups=n), nn.Conv2d(n, n, 1)
        self.squeeze, self.excite, self.wide, self.last = nn.Conv2d(n, 8, 1), nn.Conv2d(8, n, 1), nn.Conv2d(n, 2 * n, (5, 1), padding=(2, 0)), nn.Linear(2 * n, 12)

    def forward(self, x):
        x = F.relu(self.mix(F.relu(self.each(F.relu(self.first(x))))))
        x = x * torch.sigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(x, 1)))))
        x = F.silu(self.wide(F.avg_pool2d(x, 2)))
        return self.last(x.mean((2, 3))).softmax(1)


class Squeezed(nn.Module):
    """Expansion, a depthwise convolution, squeeze and excitation, projection: (channels, taps, stride) of each block."""

    def __init__(self, first, *blocks):
        super().__init__()
        self.first, self.blocks, n = nn.Conv2d(3, first, 3, 2, 1), nn.ModuleList(), first
        for m, taps, stride in blocks:
            w = 3 * n
            self.blocks.append(nn.ModuleList([nn.Conv2d(n, w, 1), nn.Conv2d(w, w, taps, stride, taps // 2, groups=w), nn.Conv2d(w, n, 1), nn.Conv2d(n, w, 1), nn.Conv2d(w, m, 1)]))
            n = m
        self.last = nn.Linear(n, 9)

    def forward(self, x):
        x = self.first(x)
        for a, b, c, d, e in self.blocks:
            x = F.relu(b(F.hardswish(a(x))))
            x = e(x * F.hardsigmoid(d(F.relu(c(F.adaptive_avg_pool2d(x, 1))))))
        return self.last(x.mean((2, 3)))


class Attention(nn.Module):
    """Attention of a few steps between layer norms."""

    def __init__(self, n, heads):
        super().__init__()
        self.first, self.heads, self.all, self.out = nn.Linear(9, n), heads, nn.Linear(n, 3 * n), nn.Linear(n, n)
        self.one, self.two, self.last = nn.LayerNorm(n), nn.LayerNorm(n), nn.Linear(n, 5)

    def forward(self, x):
        x = self.first(x)
        q, k, v = self.all(self.one(x)).unflatten(2, (3 * self.heads, -1)).transpose(1, 2).chunk(3, 1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return self.last(self.two(F.gelu(x)))


class Score(nn.Module):
    """How far a network is from its input, in floats."""

    def __init__(self, n):
        super().__init__()
        self.inner, self.last = nn.Linear(n, 20), nn.Linear(20, n)

    def forward(self, x):
        y = self.last(F.relu(self.inner(x)))
        return y, ((x - y) ** 2).mean(1), ((x - y) * 0.3 + 1).sum(1)


class Rows(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        pairs = zip(sizes, sizes[1:])
        self.body = nn.Sequential(*(m for a, b in pairs for m in (nn.Linear(a, b), nn.ReLU())))

    def forward(self, x):
        return self.body(x)


NETS = {
    "fit_mobile": (Mobile, (3, [8, 16, 24, 36, 36, 44], 5), (3, 48, 40)),
    "fit_mobile_odd": (Mobile, (3, [5, 13, 22, 30, 51], 5), (3, 31, 37)),
    "fit_mobile_wide": (Mobile, (1, [16, 32, 64, 96], 3), (1, 26, 22)),
    "fit_residual": (Residual, (8, 16, 28), (3, 18, 20)),
    "fit_residual_odd": (Residual, (11, 18, 23), (3, 13, 15)),
    "fit_words": (Words, (20,), (1, 33, 12)),
    "fit_words_wide": (Words, (44,), (1, 21, 14)),
    "fit_squeezed": (Squeezed, (6, (8, 5, 1), (10, 3, 2), (10, 5, 2), (12, 5, 1)), (3, 34, 38)),
    "fit_squeezed_odd": (Squeezed, (7, (9, 5, 2), (14, 7, 1), (11, 5, 2), (15, 5, 1), (15, 3, 1)), (3, 27, 31)),
    "fit_mobile_narrow": (Mobile, (1, [12, 20, 28, 28, 40], 3), (1, 50, 9)),
    "fit_attention": (Attention, (32, 4), (10, 9)),
    "fit_attention_odd": (Attention, (21, 3), (13, 9)),
    "fit_score": (Score, (120,), (120,)),
    "fit_score_odd": (Score, (45,), (45,)),
    "fit_rows": (Rows, (200, 96, 64, 30, 7, 96, 130), (200,)),
    "fit_rows_odd": (Rows, (71, 33, 18, 250, 9), (71,)),
}


def record(name, to):
    make, sizes, shape = NETS[name]
    torch.manual_seed(5)
    net, x = make(*sizes).eval(), torch.randn(4, *shape)
    os.makedirs(to, exist_ok=True)
    torch.export.save(torch.export.export(net, (x[:1],)), os.path.join(to, "model.pt2"))
    np.save(os.path.join(to, "input_0.npy"), x.numpy())


def layers_of(rig, name, core, folder):
    """Returns the forecast of `etc bench` for each layer, and the instructions that QEMU counted for it."""
    to = rig.emit(name, core)
    source = os.path.join(to, "model.c")
    text = open(source).read()
    with open(source, "w") as f:
        f.write(text.replace("\nstatic void node_", "\n__attribute__((noinline, noclone)) static void node_"))
    told = json.loads(mcu.call(rig.etc, "bench", os.path.join(folder, "model.pt2"), "--recipe", "int8", "--calibrate",
                               os.path.join(to, "calibrate"), "--target", core, "--json"))
    header = open(os.path.join(to, "model.h")).read().split()
    arena = int(header[header.index("MODEL_ARENA_BYTES") + 1])
    sizes = [int(n) for w, n in zip(header, header[1:]) if w.startswith("MODEL_OUTPUT_") and w.endswith("_BYTES")]
    marks = [layer["function"] for layer in told["layers"]]
    rig.device(to, name, core, sum(sizes), arena, marks)
    total, *calls = open(os.path.join(to, "count.txt")).read().splitlines()
    at = [int(c.split()[1]) for c in calls] + [int(total)]
    assert len(at) == len(marks) + 1, (len(at), len(marks))
    return [(layer, b - a) for layer, a, b in zip(told["layers"], at, at[1:])]


def features(layer):
    kernel = layer["kernel"]
    multiplies, loops = kernel in MULTIPLIES, kernel in ("loop", "etc_store")
    return [1.0, layer["steps"] * (multiplies or loops), layer["terms"] * (multiplies or kernel in READS), layer["outputs"], layer["rows"]]


def fit(rows):
    a = np.array([features(layer) for layer, _ in rows])
    y = np.array([n for _, n in rows], float)
    x, _ = nnls(a / y[:, None], np.ones(len(y)))
    return x, a @ x / y - 1


def c_float(v):
    text = f"{v:.4g}"
    return text if text.isdigit() else text + "f"


def main():
    check = "--check" in sys.argv
    rig = mcu.Rig(*[a for a in sys.argv[1:] if a != "--check"][:2])
    seen = {}
    for name, (make, _, shape) in NETS.items():
        folder = os.path.join(rig.dir, "fit", name)
        record(name, folder)
        mcu.MODELS[name] = (1, [], mcu.CALL.replace("OUTPUT", f"OUTPUT,OUTPUT+{shape[0]},OUTPUT+{shape[0] + 1}") if make is Score else mcu.CALL, folder)
        for core in CORES:
            for layer, n in layers_of(rig, name, core, folder):
                seen.setdefault(layer["kernel"], {}).setdefault(core, []).append((layer, n))
            print(f"# {name} {core}", file=sys.stderr, flush=True)
    for kernel in KERNELS:
        numbers = []
        for core in CORES:
            rows = seen.get(kernel, {}).get(core, [])
            x, off = fit(rows) if rows else (np.zeros(5), np.zeros(0))
            numbers.append("{" + ", ".join(c_float(v) for v in x) + "}")
            if check and rows:
                off = np.array([layer["instructions"] / n - 1 for layer, n in rows])
            if rows:
                print(f"# {kernel} {core}: {len(rows)} layers, off by {abs(off).mean():.1%} in the mean, {abs(off).max():.1%} at most", file=sys.stderr)
        print(f'    {{"{kernel}",\n     {{' + ",\n      ".join(numbers) + "}},")


if __name__ == "__main__":
    main()
