#!/usr/bin/env python3
"""C of --math fast beside torch: the error of its outputs against that of C that computes convolutions exactly.

    fast.py --etc build/etc [--counts FILE] [MODEL.pt2 INPUT.npy[,...] ...]

Each net runs in float64 in torch, and as emitted C in both ways. Convolutions by Winograd's transforms may have at most
4 times the error of exact ones, in the mean square and at the worst output. Further models are only measured.
"""
import os
import sys

import numpy as np
import torch
import torch.nn as nn

import emitted_nets

MOST = 4


class Block(nn.Module):
    def __init__(self, n_in, n, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(n_in, n, 3, stride, 1, bias=False), nn.BatchNorm2d(n), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(n, n, 3, 1, 1, bias=False), nn.BatchNorm2d(n))
        self.down = nn.Conv2d(n_in, n, 1, stride)

    def forward(self, x):
        return torch.relu(self.second(self.first(x)) + self.down(x))


def residual():
    net = nn.Sequential(nn.Conv2d(3, 64, 3, 2, 1), Block(64, 64, 1), Block(64, 64, 1), Block(64, 128, 2),
                        Block(128, 128, 1), Block(128, 256, 2), Block(256, 256, 1))
    net(torch.randn(4, 3, 64, 64))
    return net


def nets():
    """name: (module, input)"""
    conv = lambda n_in, n, pad, bias=True: nn.Conv2d(n_in, n, 3, 1, pad, bias=bias)
    return {
        "odd": (conv(64, 64, 1), torch.randn(2, 64, 27, 31)),
        "valid": (conv(48, 96, 0, False), torch.randn(1, 48, 24, 20)),
        "padded": (conv(96, 48, (2, 0)), torch.randn(3, 96, 15, 22)),
        "wide": (conv(32, 32, 1), torch.randn(1, 32, 9, 150)),
        "deep": (conv(512, 256, 1), torch.randn(1, 512, 14, 14)),
        "positive": (conv(256, 256, 1), torch.rand(1, 256, 14, 14)),
        "residual": (residual(), torch.randn(1, 3, 112, 96)),
    }


def errors(got, wanted):
    """The root of the mean square and the largest, relative to those of the wanted numbers."""
    off = np.abs(np.asarray(got, np.float64) - wanted)
    return np.array([np.sqrt((off**2).mean() / (wanted**2).mean()), off.max() / np.abs(wanted).max()])


def compare(name, module, path, inputs, etc, folder):
    x = [torch.from_numpy(np.load(p)).double() for p in inputs]
    with torch.no_grad():
        wanted = module.double()(*x)
    wanted = (wanted[0] if isinstance(wanted, (tuple, list)) else wanted).numpy()
    exact, fast = [emitted_nets.answer(etc, math, path, inputs, os.path.join(folder, math)) for math in ("exact", "fast")]
    ours, theirs = errors(fast, wanted), errors(exact, wanted)
    ok = not np.array_equal(exact, fast) and bool((ours <= MOST * theirs).all())
    print(f"{'ok' if ok else 'FAIL'}   {name}: error {ours[0]:.2e}, exact {theirs[0]:.2e}; at worst {ours[1]:.2e}, {theirs[1]:.2e}",
          flush=True)
    return ok


def judge(name, net, etc, folder):
    module, x = net
    path, given = emitted_nets.export(name, module, x, folder)
    return compare(name, module, path, [given], etc, folder)


def measure(path, inputs, etc, folder):
    compare(path, torch.export.load(path).module(), path, inputs, etc, folder)


if __name__ == "__main__":
    sys.exit(emitted_nets.main(__doc__, "fast", judge, nets, measure))
