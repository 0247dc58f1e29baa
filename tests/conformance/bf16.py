#!/usr/bin/env python3
"""C of --math bf16 beside torch: the error of its outputs against that of torch's autocast to bfloat16.

    bf16.py --etc build/etc [--counts FILE] [MODEL.pt2 INPUT.npy[,...] ...]

Each net runs in float64, in torch.autocast and as emitted C, with AMX if this CPU has it, and without. A net of one
product must give what torch gives for operands that were rounded before, up to the order of the sums. Any other net must be about as close to float64 as
autocast is, which rounds results too. Further models are only measured.
"""
import copy
import os
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import emitted_nets


WAYS = {"for this CPU": "-O3", "without AMX": "-O3 -DETC_NO_AMX"}  # the compiler's flags


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6())
        self.body = nn.Sequential(nn.Conv2d(32, 64, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.SiLU(),
                                  nn.Conv2d(64, 32, 1))
        self.groups = nn.Conv2d(32, 40, 5, padding=2, groups=2)
        self.head = nn.Linear(40, 10)

    def forward(self, x):
        x = self.stem(x)
        x = self.groups(x + self.body(x))
        return self.head(x.mean((2, 3)))


class Product(nn.Module):
    def __init__(self, op, *shape):
        super().__init__()
        self.op, self.w = op, nn.Parameter(torch.randn(shape) / 8)

    def forward(self, x):
        return self.op(x, self.w)


def nets():
    """name: (module, input, whether it is one product)"""
    conv = lambda x, w: F.conv2d(x, w, None, 2, 1)
    return {
        "linear": (Product(F.linear, 70, 300), torch.randn(9, 300), True),
        "row": (Product(F.linear, 33, 1000), torch.randn(1, 1000), True),
        "matmul": (Product(torch.matmul, 3, 40, 24), torch.randn(3, 20, 40), True),
        "conv": (Product(conv, 50, 24, 3, 3), torch.randn(2, 24, 17, 15), True),
        "conv1d": (Product(F.conv1d, 20, 48, 9), torch.randn(1, 48, 50), True),
        "mlp": (nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 8)),
                torch.randn(5, 64), False),
        "residual": (Residual(), torch.randn(2, 3, 32, 32), False),
        "transformer": (nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True), torch.randn(2, 17, 64), False),
    }


def error(got, wanted):
    """The root of the mean square, relative to that of the wanted numbers."""
    got, wanted = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
    return float(np.sqrt(((got - wanted) ** 2).mean() / (wanted**2).mean()))


def references(module, x):
    """Outputs in float64 and in autocast."""
    with torch.no_grad():
        exact = copy.deepcopy(module).double()(*[v.double() if v.is_floating_point() else v for v in x])
        with torch.autocast("cpu", torch.bfloat16):
            cast = module(*x)
    first = lambda r: (r[0] if isinstance(r, (tuple, list)) else next(iter(r.values())) if isinstance(r, dict) else r)
    return first(exact).numpy(), first(cast).float().numpy()


def judge(name, net, etc, folder):
    module, x, is_product = net
    path, given = emitted_nets.export(name, module, x, folder)
    exact, cast = references(module, (x,))
    theirs, good = error(cast, exact), True
    for way, cflags in WAYS.items():
        got = emitted_nets.answer(etc, "bf16", path, [given], os.path.join(folder, name), cflags)
        ours = error(got, exact)
        ok = 1e-5 < ours <= 1.1 * theirs
        if is_product:
            rounded = module.op(x.bfloat16().double(), module.w.detach().bfloat16().double())
            ok = ok and error(got, rounded.numpy()) < 1e-6
        print(f"{'ok' if ok else 'FAIL'}   {name}, {way}: error {ours:.2e}, autocast {theirs:.2e}", flush=True)
        good = good and ok
    return good


def measure(path, inputs, etc, folder):
    x = [torch.from_numpy(np.load(p)) for p in inputs]
    exact, cast = references(torch.export.load(path).module(), x)
    got = emitted_nets.answer(etc, "bf16", path, inputs, os.path.join(folder, "measured"))
    print(f"{path}: error {error(got, exact):.2e}, autocast {error(cast, exact):.2e}", flush=True)


if __name__ == "__main__":
    sys.exit(emitted_nets.main(__doc__, "bf16", judge, nets, measure))
