#!/usr/bin/env python3
"""fit_sizes.py ROOT BUILD: fits the table of stated stacks and code, emit/c_sizes.def, and prints it.

Networks of one operator, random ones and those of fit_forecast.py are quantized and compiled for five cores.  The
bytes of code of a kernel are those with which the sums over the kernels of files are nearest to AIM times the
compiler's: the sum of relative errors is least, and one counts BELOW times if less is stated.
The bytes of stack come from the compiler's frames and call graph, and are enough for each network.  The frames of
functions of the compiler's and the C library are not in it: guesses stand for these.
Models of floats have no rows.  Their sums are often wrong by half, because gcc copies steps such as etc_vexp into each loop.
Needs torch and scipy, the compilers of mcu.py, and half an hour.
"""
import collections
import os
import random
import re
import sys

import numpy as np
import torch
from scipy.optimize import linprog
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fit_forecast
import mcu

CORES = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55", "rv32imc")
SOFT = re.compile(r"__aeabi_|__\w+[sd]f\d?$|__(add|sub|mul|div|fix|float)")
SOFT_BYTES, LIBRARY_BYTES = 72, 16  # of stack of a function for floats without an FPU, and of others such as memcpy
AIM, BELOW = 1.12, 2
START, LEAST_SIZES, CODE, STACK = 96, 32, 4, 16  # as in emit/c_sizes.c
IMAGE, ROWS = (8, 9, 8), (9, 12)
OPS = {  # what is computed, modules, the shapes of the inputs
    "pointwise": (lambda m, x: m(x), [nn.Conv2d(8, 12, 1)], [(8, 9, 7)]),
    "windows": (lambda m, x: m(x).relu(), [nn.Conv2d(8, 12, 3, padding=1)], [(8, 9, 7)]),
    "strided": (lambda m, x: m(x).relu(), [nn.Conv2d(3, 10, 3, 2)], [(3, 19, 17)]),
    "clamped": (lambda m, x: F.relu6(m(x)), [nn.Conv2d(5, 7, 5, padding=2)], [(5, 9, 12)]),
    "depthwise": (lambda m, x: m(x).relu(), [nn.Conv2d(16, 16, 3, padding=1, groups=16)], [(16, 9, 7)]),
    "depthwise_5": (lambda m, x: m(x).relu(), [nn.Conv2d(9, 9, 5, 2, padding=2, groups=9)], [(9, 19, 17)]),
    "grouped": (lambda m, x: m(x), [nn.Conv2d(8, 12, 3, groups=4)], [(8, 9, 7)]),
    "conv1d": (lambda m, x: m(x), [nn.Conv1d(8, 12, 3, padding=1)], [(8, 19)]),
    "dilated": (lambda m, x: m(x), [nn.Conv1d(8, 12, 3, dilation=2)], [(8, 19)]),
    "transposed": (lambda m, x: m(x), [nn.ConvTranspose2d(8, 6, 3, 2)], [(8, 9, 7)]),
    "linear": (lambda m, x: m(x), [nn.Linear(30, 12)], [(30,)]),
    "linear_rows": (lambda m, x: m(x).relu(), [nn.Linear(30, 12)], [(7, 30)]),
    "matmul": (lambda x, y: x @ y, [], [(7, 30), (30, 9)]),
    "max_pool": (lambda x: F.max_pool2d(x, 2), [], [IMAGE]),
    "max_pool_3": (lambda x: F.max_pool2d(x, 3, 2, 1), [], [IMAGE]),
    "avg_pool": (lambda x: F.avg_pool2d(x, 2), [], [IMAGE]),
    "avg_pool_3": (lambda x: F.avg_pool2d(x, 3, 1, 1), [], [IMAGE]),
    "pool_to_1": (lambda x: F.adaptive_avg_pool2d(x, 1), [], [IMAGE]),
    "pool_to_3": (lambda x: F.adaptive_avg_pool2d(x, 3), [], [IMAGE]),
    "mean": (lambda x: x.mean((2, 3)), [], [IMAGE]),
    "sum": (lambda x: x.sum(1), [], [IMAGE]),
    "amax": (lambda x: x.amax(-1), [], [IMAGE]),
    "argmax": (lambda x: x.argmax(-1), [], [ROWS]),
    "softmax": (lambda x: x.softmax(-1), [], [ROWS]),
    "log_softmax": (lambda x: x.log_softmax(-1), [], [ROWS]),
    "layer_norm": (lambda m, x: m(x), [nn.LayerNorm(12)], [ROWS]),
    "group_norm": (lambda m, x: m(x), [nn.GroupNorm(2, 8)], [IMAGE]),
    "batch_norm": (lambda m, x: m(x), [nn.BatchNorm2d(8)], [IMAGE]),
    "sigmoid": (torch.sigmoid, [], [ROWS]),
    "tanh": (torch.tanh, [], [ROWS]),
    "hardswish": (F.hardswish, [], [ROWS]),
    "gelu": (F.gelu, [], [ROWS]),
    "silu": (F.silu, [], [ROWS]),
    "relu": (F.relu, [], [ROWS]),
    "exp": (lambda x: torch.exp(x) + 1, [], [ROWS]),
    "add": (torch.add, [], [IMAGE, IMAGE]),
    "mul": (torch.mul, [], [IMAGE, IMAGE]),
    "add_broadcast": (torch.add, [], [IMAGE, (8, 1, 1)]),
    "cat": (lambda x, y: torch.cat([x, y], 1), [], [IMAGE, (4, 9, 8)]),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), [], [(4, 5, 6)]),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [], [(4, 5, 6)]),
    "pad": (lambda x: F.pad(x, (1, 2, 1, 0)), [], [(4, 5, 6)]),
    "reflect": (lambda x: F.pad(x, (1, 2, 1, 0), mode="reflect"), [], [(4, 5, 6)]),
    "pool_to_4": (lambda x: F.adaptive_avg_pool2d(x, 4), [], [IMAGE]),
    "log": (lambda x: torch.log(x * x + 1), [], [IMAGE]),
    "neg": (lambda x: 1 - x, [], [ROWS]),
    "leaky": (lambda x: F.leaky_relu(x), [], [ROWS]),
    "divide": (lambda x: x / 3 - x.mean(-1, keepdim=True), [], [ROWS]),
    "transpose": (lambda x: x.transpose(1, 2).contiguous(), [], [ROWS]),
    "slice": (lambda x: x[:, 2:6] * 2, [], [ROWS]),
    "lstm": (lambda m, x: m(x)[0], [nn.LSTM(6, 9, batch_first=True)], [(5, 6)]),
    "gru": (lambda m, x: m(x)[0], [nn.GRU(6, 9, batch_first=True)], [(5, 6)]),
    "lstm_cell": (lambda m, x, h, c: m(x, (h, c)), [nn.LSTMCell(6, 9)], [(6,), (9,), (9,)]),
    "gru_cell": (lambda m, x, h: m(x, h), [nn.GRUCell(6, 9)], [(6,), (9,)]),
    "attention": (F.scaled_dot_product_attention, [], [(2, 7, 8)] * 3),
}


class One(nn.Module):
    def __init__(self, function, modules):
        super().__init__()
        self.function, self.modules_ = function, nn.ModuleList(modules)

    def forward(self, *x):
        return self.function(*self.modules_, *x)


class Between(nn.Module):
    """An operator between two layers with weights, so that it is quantized."""

    def __init__(self, function, shape):
        super().__init__()

        def layer(x, n):
            return nn.Conv2d(x.shape[1], n, 1) if x.dim() == 4 else nn.Linear(x.shape[-1], n)
        x = torch.zeros(1, *shape)
        self.function, self.first, self.last = function, layer(x, shape[0 if len(shape) == 3 else -1]), layer(function(x), 6)

    def forward(self, x):
        return self.last(self.function(self.first(x)))


class Images(nn.Module):
    """A chain of 1 to 14 random operators on images."""

    def __init__(self, seed):
        super().__init__()
        r = random.Random(seed)
        self.steps, self.mods, n = [], nn.ModuleList(), r.choice([1, 3, 4, 8])
        self.shape = (n, r.randint(12, 30), r.randint(12, 30))
        for _ in range(r.randint(2, 14)):
            step, m = r.choice("pointwise pointwise windows windows taps depthwise depthwise_5 max avg hardswish tanh relu6 add excite cat up".split()), r.choice([6, 8, 12, 16, 20, 27])
            taps = r.choice([1, 3, 7])
            made = {"pointwise": lambda: nn.Conv2d(n, m, 1), "windows": lambda: nn.Conv2d(n, m, 3, r.choice([1, 1, 2]), 1),
                    "taps": lambda: nn.Conv2d(n, m, (taps, 3), 1, (taps // 2, 1)), "cat": lambda: nn.Conv2d(n, 4, 1),
                    "depthwise": lambda: nn.Conv2d(n, n, 3, r.choice([1, 1, 2]), 1, groups=n),
                    "depthwise_5": lambda: nn.Conv2d(n, n, 5, 1, 2, groups=n), "add": lambda: nn.Conv2d(n, n, 1),
                    "excite": lambda: nn.Conv2d(n, n, 1)}.get(step, nn.Identity)()
            self.steps.append(step)
            self.mods.append(made)
            n = n + 4 if step == "cat" else getattr(made, "out_channels", n)
        self.last, self.ends = nn.Linear(n, r.choice([2, 10, 12])), r.choice([nn.Identity(), nn.Softmax(-1)])

    def forward(self, x):
        for step, m in zip(self.steps, self.mods):
            x = {"max": lambda: F.max_pool2d(x, 2) if min(x.shape[2:]) > 3 else x, "avg": lambda: F.avg_pool2d(x, 3, 1, 1),
                 "hardswish": lambda: F.hardswish(x), "tanh": lambda: torch.tanh(x), "relu6": lambda: F.relu6(x), "add": lambda: x + m(x),
                 "excite": lambda: x * torch.sigmoid(m(x.mean((2, 3), keepdim=True))), "cat": lambda: torch.cat([x, m(x)], 1),
                 "up": lambda: F.interpolate(x, scale_factor=2) if x.shape[2] < 20 else x}.get(step, lambda: F.relu(m(x)))()
        return self.ends(self.last(x.mean((2, 3))))


class Sequences(nn.Module):
    """A chain of 1 to 7 random operators on rows."""

    def __init__(self, seed):
        super().__init__()
        r = random.Random(seed)
        self.steps, self.mods, n = [], nn.ModuleList(), r.choice([8, 13, 16, 24])
        self.shape = (6, n)
        for _ in range(r.randint(1, 7)):
            step, m = r.choice("linear linear gelu norm attention tanh softmax relu gru add".split()), r.choice([8, 12, 17, 30])
            made = {"linear": lambda: nn.Linear(n, m), "norm": lambda: nn.LayerNorm(n), "attention": lambda: nn.Linear(n, 3 * n),
                    "gru": lambda: nn.GRU(n, n, batch_first=True), "add": lambda: nn.Linear(n, n)}.get(step, nn.Identity)()
            self.steps.append(step)
            self.mods.append(made)
            n = m if step == "linear" else n
        self.last = nn.Linear(n, 5)

    def forward(self, x):
        for step, m in zip(self.steps, self.mods):
            x = {"gelu": lambda: F.gelu(x), "tanh": lambda: torch.tanh(x), "relu": lambda: F.relu(x), "softmax": lambda: x.softmax(-1),
                 "gru": lambda: m(x)[0], "add": lambda: x + m(x),
                 "attention": lambda: F.scaled_dot_product_attention(*m(x).chunk(3, -1))}.get(step, lambda: m(x))()
        return self.last(x)


def networks():
    """Yields the name of each network, the network and the shapes of its inputs."""
    for name, (function, modules, shapes) in OPS.items():
        yield name, One(function, modules), shapes
        if not modules and len(shapes) == 1 and name != "argmax":
            yield name + "_between", Between(function, shapes[0]), shapes
    for name, (make, sizes, shape) in fit_forecast.NETS.items():
        yield name, make(*sizes), [shape]
    for make, n in ((Images, 50), (Sequences, 30)):
        for seed in range(n):
            net = make(seed)
            yield f"{make.__name__}_{seed}", net, [net.shape]


def record(net, shapes, to):
    os.makedirs(os.path.join(to, "calibrate"), exist_ok=True)
    exported = torch.export.export(net.eval(), tuple(torch.randn(1, *s) for s in shapes))
    torch.export.save(exported, os.path.join(to, "model.pt2"))
    for i in range(3):
        np.savez(os.path.join(to, "calibrate", f"{i}.npz"),
                 **{name: torch.randn(1, *s).numpy() for name, s in zip(exported.graph_signature.user_inputs, shapes)})


class Built:
    """What gcc makes of a network for a core."""

    def __init__(self, rig, folder, core, options):
        prefix, flags = mcu.CORES[core][:2]
        to = os.path.join(folder, "built")
        os.makedirs(to, exist_ok=True)
        source = os.path.join(to, "model.c")
        mcu.call(rig.etc, "emit-c", os.path.join(folder, "model.pt2"), *options, "--target", core, "-q", "-o", source)
        mcu.call(prefix + "gcc", "-O2", *flags.split(), "-ffunction-sections", "-fdata-sections", "-fcallgraph-info=su",
                 "-c", source, "-o", os.path.join(to, "model.o"))
        self.code = rig.code_with_tables(prefix, os.path.join(to, "model.o"))
        text = open(source).read()
        self.text = text[max(text.find("\nstatic void node_"), 0) or text.find("model_run("):]
        self.read_graph(os.path.join(to, "model.ci"))
        self.kernels = called(self.text)
        self.counts = {"file": 1, "sizes": self.text.count("const EtcMcu"), "loop": self.text.count("for ("),
                       **{k: 1 for k in self.kernels}}

    def is_quantized(self):
        return "etc_mcu_" in self.text

    def read_graph(self, path):
        self.frame, self.calls = {}, collections.defaultdict(set)
        for line in open(path):
            words = [w.split(":")[-1] for w in re.findall(r'"((?:[^"\\]|\\.)*)"', line)]
            bytes_ = re.search(r"(\d+) bytes \(", line)
            if line.startswith("node:") and bytes_:
                self.frame[words[0]] = int(bytes_[1])
            elif line.startswith("edge:"):
                self.calls[words[0]].add(words[1])

    def deepest(self, function):
        if function not in self.frame:
            return SOFT_BYTES if SOFT.match(function) else LIBRARY_BYTES
        return self.frame[function] + max(map(self.deepest, self.calls[function]), default=0)


def called(text):
    return set(re.findall(r"\b(etc_[a-z0-9_]*)\(", text))


def plain(function):
    """A name without what gcc puts behind those of copies."""
    return function.split(".")[0]


def fit_code(built):
    names, n = sorted({k for b in built for k in b.counts}), len(built)
    a = np.array([[b.counts.get(k, 0) / b.code for k in names] for b in built])
    cost = np.concatenate([np.zeros(len(names)), np.ones(n), np.full(n, BELOW)])  # of a unit of each, what is above and below
    x = linprog(cost, A_eq=np.hstack([a, -np.eye(n), np.eye(n)]), b_eq=np.full(n, AIM), bounds=(0, None)).x
    return dict(zip(names, x))


def run_bytes(counts):
    return START + max(LEAST_SIZES, counts["sizes"] * 4 // 3) + counts["loop"] * 3 // 2


def fit_stack(built):
    """Returns what kernels add to the frames of model_run and of nodes, and what they take below."""
    frame, below, users = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    for b in built:
        for f in b.frame:
            if plain(f) in b.kernels:
                below[plain(f)] = max(below[plain(f)], b.deepest(f))
    for b in built:
        b.need = b.deepest("model_run")
        b.excess = max(0, b.need - run_bytes(b.counts) - max((below[k] for k in b.kernels), default=0))
        for k in b.kernels:
            users[k].append(b)

    def largest(b):
        return max((frame[k] for k in b.kernels), default=0)

    for b in sorted(built, key=lambda b: -b.excess):
        def waste(k):
            """How much too much the other networks with the kernel are given: squares, so that none is given far too much."""
            return sum((max(0, b.excess - max(u.excess, largest(u))) / u.need) ** 2 for u in users[k])
        if b.kernels and largest(b) < b.excess:
            frame[min(sorted(b.kernels), key=waste)] = b.excess
    return frame, below


def units(v, unit):
    """Units of bytes that are not below v."""
    return int(-(-v // unit))


def measure(rig):
    """Returns what is built by core."""
    built = collections.defaultdict(list)
    torch.manual_seed(7)
    for name, net, shapes in networks():
        folder = os.path.join(rig.dir, "sizes", name)
        record(net, shapes, folder)
        quantized = ["--recipe", "int8", "--calibrate", os.path.join(folder, "calibrate")]
        for core in CORES:
            for options in (quantized, quantized + ["--io", "int8"]):
                try:
                    b = Built(rig, folder, core, options)
                    built[core] += [b] if b.is_quantized() else []
                except RuntimeError as e:
                    print(f"# {name} {core}: {e}"[:200].replace("\n", " "), file=sys.stderr)
        print(f"# {name}", file=sys.stderr, flush=True)
    return built


def main():
    built = measure(mcu.Rig(*sys.argv[1:3]))
    rows = collections.defaultdict(dict)
    for core in CORES:
        code = fit_code(built[core])
        frame, below = fit_stack(built[core])
        for k in code:
            rows[k][core] = f"{{{max(units(code[k], CODE), 1)}, {units(frame[k], STACK)}, {units(below[k], STACK)}}}"
        off = [sum(code[k] * n for k, n in b.counts.items()) / b.code for b in built[core]]
        most = np.percentile(off, (0, 5, 50, 95, 100))
        print(f"# {core}: {len(off)} files, stated code / the compiler's (quantiles): {np.round(most, 2)}", file=sys.stderr)
    for k in sorted(rows):
        print(f'    {{"{k.removeprefix("etc_")}",\n     {{' + ", ".join(rows[k].get(core, "{0, 0, 0}") for core in CORES) + "}},")


if __name__ == "__main__":
    main()
