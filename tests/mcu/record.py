#!/usr/bin/env python3
"""record.py [NAME ...]: writes NAME/model.pt2, input_0.npy and output_0.npy of small random networks for mcu.py.

They have operators that the MLPerf networks lack, each between convolutions or linear layers, so that a recipe
computes all of the network in integers.  output_0.npy is torch's result for the first input, in floats.  float64_0.npy
is that of torch in float64, rounded.
"""
import os
import sys

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # its operators
from torch import nn
from torch.nn import functional as F


class Sums(nn.Module):
    """Differences, products with channels, constants of an axis, slopes, maxima, means of axes, borders, nearest pixels."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.squeeze, self.excite, self.slope = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1), nn.PReLU(8)
        self.scale, self.shift = nn.Parameter(torch.rand(8, 1, 1) + 0.5), nn.Parameter(torch.randn(1, 8, 1, 9))
        self.last = nn.Conv2d(8, 5, 1)

    def forward(self, x):
        x = F.hardswish(self.a(x))
        x = x - self.b(x)
        x = x * torch.sigmoid(self.excite(F.relu(self.squeeze(x.mean((2, 3), keepdim=True)))))
        x = self.slope(self.c(F.relu(x) * self.scale + self.shift))
        x = torch.maximum(x, self.b(x)) + x.mean(1, keepdim=True)
        x = self.c(F.interpolate(F.pad(x, (1, 2, 0, 1), mode="reflect"), scale_factor=2.0))
        return self.last(F.gelu(F.pad(x, (0, 1, 1, 0), value=0.3))).mean(2)


class Taps(nn.Module):
    """Transposed convolutions, groups, more results than groups, taps that lie apart, 5 x 5 taps, pictures of other sizes, one axis."""

    def __init__(self):
        super().__init__()
        t, c = nn.ConvTranspose2d, nn.Conv2d
        self.image = nn.Sequential(t(4, 6, 3, 2, 1, output_padding=1), nn.ReLU(), c(6, 6, 5, padding=2, groups=6), nn.ReLU(),
                                   c(6, 12, 3, padding=2, dilation=2, groups=3), nn.ReLU6(), c(12, 24, (2, 3), groups=12), nn.ELU(),
                                   t(24, 8, (4, 2), (2, 1), (1, 0), groups=4), nn.LeakyReLU(), c(8, 3, (9, 3), stride=(9, 1)))
        self.line = nn.Sequential(nn.Conv1d(3, 8, 3), nn.Tanh(), nn.Conv1d(8, 8, 3, dilation=2, groups=8), nn.SiLU(), nn.Conv1d(8, 4, 1))

    def forward(self, x):
        x = F.interpolate(self.image(x), size=(5, 13), mode="bilinear")
        return self.line(F.adaptive_avg_pool2d(x, (3, 8)).flatten(2))


class Cuts(nn.Module):
    """Means of windows that padding or the end of an image cuts off, and of fewer elements then."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 7, 1), nn.Conv2d(7, 6, (1, 2)), nn.Conv2d(6, 4, 1)

    def forward(self, x):
        x = F.avg_pool2d(F.relu(self.a(x)), 3, 2, 1)
        x = F.avg_pool2d(self.b(x), (2, 3), (2, 1), (1, 0), count_include_pad=False)
        x = F.avg_pool2d(self.c(x), (3, 2), 2, (0, 1), ceil_mode=True)
        return self.d(x)


class Ends(nn.Module):
    """Floats are normalized first, and a layer norm, a sum and a product are results."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Conv2d(3, 8, 3, 2), nn.Linear(8, 8), nn.LayerNorm(8)
        self.mean, self.std = nn.Parameter(torch.rand(3, 1, 1)), nn.Parameter(torch.rand(3, 1, 1) + 0.3)

    def forward(self, x):
        x = F.relu(self.a((x - self.mean) / self.std)).flatten(2).transpose(1, 2)
        y = torch.tanh(self.b(x))
        return torch.cat([self.norm(x + y), x * torch.sigmoid(y)], 1)


class Curves(nn.Module):
    """Functions of one value that several nodes compute, quotients, deviations, sums and logarithms of shares."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = nn.Conv2d(3, 8, 3, 2), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 6, 3), nn.Linear(12, 7)

    def forward(self, x):
        x = F.mish(self.a(x))
        y = F.softplus(self.b(x), beta=2)
        x = self.c(y / (1.5 + torch.sigmoid(y)) + x)
        x = F.normalize(0.5 * x * (1 + torch.tanh(0.8 * (x + 0.05 * x ** 3))), dim=1)
        return F.log_softmax(self.d(torch.cat([x.std((2, 3)), x.sum((2, 3))], 1)), 1)


class Steps(nn.Module):
    """A GRU and an LSTM of few steps."""

    def __init__(self):
        super().__init__()
        self.gru, self.lstm, self.last = nn.GRU(10, 8, batch_first=True), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 4)

    def forward(self, x):
        return self.last(self.lstm(self.gru(x)[0])[0][:, -1])


class Planes(nn.Module):
    """First layers of one channel, depthwise convolutions of 5 x 5 taps, of two results per channel, of one axis; maxima."""

    def __init__(self):
        super().__init__()
        c, relu = nn.Conv2d, nn.ReLU()
        self.image = nn.Sequential(c(1, 6, 5, padding=2), relu, nn.MaxPool2d(2), c(6, 12, 3, padding=1, groups=6), relu, c(12, 10, 1), relu,
                                   c(10, 10, 5, padding=2, groups=10), relu, nn.MaxPool2d(3, 2, 1), c(10, 20, 5, 2, 2, groups=10), relu, c(20, 9, 1))
        self.line = nn.Sequential(nn.Conv1d(9, 9, 7, padding=3, groups=9), nn.Conv1d(9, 18, 3, 2, groups=9), nn.ReLU(), nn.Conv1d(18, 4, 1))

    def forward(self, x):
        return self.line(self.image(x).flatten(2)).mean(2)


class Camera(nn.Module):
    """Bytes of a camera, normalized by channel before a convolution with a border; a division by channel and one by a number."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 5, 1)
        for name, v in (("mean", [0.485, 0.456, 0.406]), ("std", [0.229, 0.224, 0.225])):
            self.register_buffer(name, torch.tensor(v).view(3, 1, 1))
        self.spread = nn.Parameter(torch.rand(8, 1, 1) + 0.5)

    def forward(self, x):
        x = F.relu(self.a((x.float() / 255 - self.mean) / self.std))
        return self.c(self.b(x) / self.spread / 3.0).mean((2, 3))


class Encoder(nn.Module):
    """A block of a transformer: attention over 12 steps, layer norms, gelu; then a group norm."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 2, 64, activation="gelu", batch_first=True, norm_first=True)
        self.first, self.place = nn.Linear(10, 32), nn.Parameter(torch.randn(1, 12, 32) * 0.3)
        self.block, self.norm, self.last = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.GroupNorm(4, 32), nn.Linear(32, 5)
        for m in self.modules():
            if isinstance(m, (nn.LayerNorm, nn.GroupNorm)):
                nn.init.uniform_(m.weight, 0.5, 1.5)
                nn.init.normal_(m.bias, 0, 0.3)

    def forward(self, x):
        x = self.block(self.first(x) + self.place)
        return self.last(self.norm(x.transpose(1, 2)).mean(2))


class Words(nn.Module):
    """A keyword spotter whose channels fill no block, on tall and narrow pictures."""

    def __init__(self, n):
        super().__init__()
        layers = [nn.Conv2d(1, n, (10, 4), 2, (5, 1)), nn.ReLU()]
        for _ in range(2):
            layers += [nn.Conv2d(n, n, 3, padding=1, groups=n), nn.ReLU(), nn.Conv2d(n, n, 1), nn.ReLU()]
        self.body, self.last = nn.Sequential(*layers), nn.Linear(n, 12)

    def forward(self, x):
        return self.last(self.body(x).mean((2, 3)))


class Narrow(nn.Module):
    """Few channels: a first layer of colours, a block of two 3 x 3 convolutions, inverted bottlenecks that end at 3 x 3 pixels."""

    def __init__(self):
        super().__init__()
        c, relu = nn.Conv2d, nn.ReLU()
        self.first = nn.Sequential(c(3, 4, 3, 2, 1), relu, c(4, 4, 3, padding=1, groups=4), relu, c(4, 10, 1), relu)
        self.block = nn.Sequential(c(10, 10, 3, padding=1), relu, c(10, 10, 3, padding=1))
        self.wide = nn.Sequential(c(10, 24, 1), nn.ReLU6(), c(24, 24, 3, 2, 1, groups=24), nn.ReLU6(), c(24, 10, 1))
        self.wider = nn.Sequential(c(10, 30, 1), nn.ReLU6(), c(30, 30, 3, 2, 1, groups=30), nn.ReLU6(), c(30, 50, 1), relu)
        self.skip, self.last = c(10, 10, 1, 2), nn.Linear(50, 5)

    def forward(self, x):
        x = self.first(x)
        x = F.relu(self.block(x) + x)
        return self.last(self.wider(self.wide(x) + self.skip(x)).mean((2, 3)))


class Excited(nn.Module):
    """Inverted bottlenecks with squeeze and excitation, as in a MobileNetV3: about 60 nodes, so that NAME_run is long."""

    def __init__(self):
        super().__init__()
        c, n = nn.Conv2d, 8
        self.first, self.blocks = c(3, n, 3, 2, 1), nn.ModuleList()
        for o, taps, stride in ((8, 3, 1), (12, 5, 2), (12, 5, 1), (16, 3, 2), (16, 3, 1), (16, 5, 1)):
            wide = 2 * n + 4
            self.blocks.append(nn.ModuleList([c(n, wide, 1), c(wide, wide, taps, stride, taps // 2, groups=wide), c(wide, 8, 1), c(8, wide, 1), c(wide, o, 1)]))
            n = o
        self.last = nn.Linear(n, 5)

    def forward(self, x):
        x = F.hardswish(self.first(x))
        for expand, each, squeeze, excite, project in self.blocks:
            y = F.hardswish(each(F.hardswish(expand(x))))
            y = project(y * F.hardsigmoid(excite(F.relu(squeeze(y.mean((2, 3), keepdim=True))))))
            x = x + y if x.shape == y.shape else y
        return self.last(x.mean((2, 3)))


class Few(nn.Module):
    """A network of so few multiply-adds that little code is worth more than little time."""

    def __init__(self):
        super().__init__()
        self.conv, self.last = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 4)

    def forward(self, x):
        return self.last(F.relu(self.conv(x)).mean((2, 3)))


class Pools(nn.Module):
    """Pools of floats: with a border, cut off at the end, with gaps, of windows that differ in size; transposed convolutions."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.ConvTranspose2d(3, 6, 3, 2, 1, output_padding=1), nn.ConvTranspose2d(6, 8, (3, 4), (1, 3), (2, 0), dilation=(2, 1), groups=2)

    def forward(self, x):
        x = F.max_pool2d(torch.tanh(self.b(self.a(x))), 3, 2, 1, dilation=2)
        x = F.avg_pool2d(F.avg_pool2d(x, 3, (1, 2), 1, count_include_pad=False), (3, 2), 2, (1, 0), ceil_mode=True)
        return F.adaptive_avg_pool2d(F.max_pool2d(x, 2, ceil_mode=True), (2, 3)), F.adaptive_max_pool2d(x, (3, 4))


class Rows(nn.Module):
    """An autoencoder of few numbers, as finds anomalies: linear layers whose rows and columns fill no blocks."""

    def __init__(self):
        super().__init__()
        sizes = (100, 25, 16, 4, 16, 25, 100)
        layers = [m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.ReLU())]
        self.body = nn.Sequential(*layers[:-1])

    def forward(self, x):
        return self.body(x)


class Edges(nn.Module):
    """Functions of floats, at their borders. For float64 without those whose definition loses digits of floats, and a quantization."""
    OF_ONE = [torch.abs, torch.neg, torch.ceil, torch.floor, torch.round, torch.trunc, torch.frac, torch.sign, torch.cos, torch.sin, torch.tan, torch.acos,
              torch.asin, torch.atan, torch.acosh, torch.asinh, torch.atanh, torch.cosh, torch.sinh, torch.tanh, torch.exp, torch.exp2, torch.expm1,
              torch.log, torch.log2, torch.log10, torch.log1p, torch.erf, torch.sqrt, torch.rsqrt, torch.reciprocal, torch.square, F.elu,
              F.hardsigmoid, F.hardswish, F.relu, F.relu6, F.leaky_relu, F.softplus, F.logsigmoid, F.softsign, F.hardshrink,
              lambda x: x ** 3, lambda x: x ** 0.5, lambda x: x ** 1.7, lambda x: torch.pow(2.5, x),
              lambda x: torch.clamp(x, -1, 2), lambda x: torch.where(torch.isnan(x), 0.5, x), lambda x: x * 1.5, lambda x: 1 - x, lambda x: x / 3]
    LOSSY = [torch.sigmoid, F.silu, F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.mish, torch.erfc, lambda x: torch.fmod(x, 1.7)]
    OF_TWO = [torch.add, torch.sub, torch.mul, torch.div, torch.fmod, torch.remainder, torch.maximum, torch.minimum, torch.pow, torch.atan2, torch.logaddexp,
              torch.copysign, torch.xlogy, lambda a, b: torch.where(a >= b, a, b), lambda a, b: torch.div(a, b, rounding_mode="floor")]

    def forward(self, x):
        y = [f(x) for f in self.OF_ONE] + [f(x, torch.roll(x, n, 1)) for f in self.OF_TWO for n in (7, 23)]
        if x.dtype == torch.float32:
            q = torch.ops.quantized_decomposed
            q8 = q.quantize_per_tensor(x, 0.05, 3, -128, 127, torch.int8)
            y += [f(x) for f in self.LOSSY] + [q.dequantize_per_tensor(q8, 0.05, 3, -128, 127, torch.int8)]
        return torch.cat(y)


def edges():
    """Zeros, infinities, NaN, subnormals, the largest numbers, and those around which functions change their way."""
    numbers = [0, np.inf, 1, 0.5, 1.5, 2.5, 2.0 ** -149, 2.0 ** -126 - 2.0 ** -149, 2.0 ** -126, 3.4028234e38, 1e-40, 1e-30, 1e30, 88.7, 89, 104, 87.4, 103.9,
               127, 150, 8388607.5, 8388609, 16777217, 2147483648, 1e10, 65504, 65520, 6e-8, 3e-8, 255.6, 1e-7, 3.7, 0.9999999]
    x = np.array(numbers, np.float32)
    return torch.from_numpy(np.concatenate([x, -x, np.array([np.nan], np.float32)])[None])


NETS = {"sums": (Sums, (3, 8, 9)), "taps": (Taps, (4, 7, 6)), "cuts": (Cuts, (3, 17, 22)), "ends": (Ends, (3, 9, 11)), "curves": (Curves, (3, 13, 10)), "steps": (Steps, (5, 10)), "encoder": (Encoder, (12, 10)), "planes": (Planes, (1, 25, 23)), "camera": (Camera, (3, 18, 17)), "words": (lambda: Words(30), (1, 49, 10)), "few_words": (lambda: Words(20), (1, 49, 10)), "narrow": (Narrow, (3, 20, 20)),
        "excited": (Excited, (3, 24, 24)), "rows": (Rows, (100,)), "few": (Few, (3, 8, 8)), "pools": (Pools, (3, 15, 13)),
        "edges": (Edges, (1,))}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    for name in sys.argv[1:] or NETS:
        make, shape = NETS[name]
        torch.manual_seed(3)
        net, x = make().eval(), torch.randn(8, *shape)
        if name == "camera":
            x = torch.randint(0, 256, x.shape, dtype=torch.uint8)
        if name == "edges":
            x = edges()
        to = os.path.join(here, name)
        os.makedirs(to, exist_ok=True)
        torch.export.save(torch.export.export(net, (x[:1],)), os.path.join(to, "model.pt2"))
        np.save(os.path.join(to, "input_0.npy"), x.numpy())
        with torch.no_grad():
            if name == "edges":
                np.save(os.path.join(to, "float64_0.npy"), net(x.double()).float().numpy())
                continue
            y = net(x[:1])
            np.save(os.path.join(to, "output_0.npy"), (y[0] if isinstance(y, tuple) else y).numpy())


main()
