#!/usr/bin/env python3
"""Exports small models that differ in one thing each, in the zoo's format, for zoo_check.py.

    variants.py OUTDIR [--part K N] [NAME ...]    (--part: every Nth, from number K on)

They cover what the ten models of the zoo do not touch: other sizes, options, dtypes, in-place and
aliasing code, and forms of a graph a user may well write.  Expected outputs are eager PyTorch's.
"""
import copy
import itertools
import json
import math
import os
import sys
import warnings

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.ao.quantization.fx._decomposed  # registers the operators
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.map import map as map_of
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
MODELS = {}


def rnd(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def model(*inputs, dynamic=None, more=(), stateful=False, core=False):
    """Registers a forward function, or a class of module; `more` are further cases; `core` ones are decomposed to
    core ATen."""
    def deco(fn):
        MODELS[fn.__name__] = (fn, inputs, dynamic, more, stateful, core)
        return fn
    return deco


class Fn(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *a):
        return self.fn(*a)


def settle(m, *x):
    """Batch norms get statistics and affine terms that are not the identity."""
    g = torch.Generator().manual_seed(1)
    for b in m.modules():
        if isinstance(b, nn.modules.batchnorm._BatchNorm):
            b.running_mean.copy_(torch.randn(b.running_mean.shape, generator=g) * 0.2)
            b.running_var.copy_(torch.rand(b.running_var.shape, generator=g) + 0.5)
            if b.affine:
                b.weight.data.copy_(torch.rand(b.weight.shape, generator=g) + 0.5)
                b.bias.data.copy_(torch.randn(b.bias.shape, generator=g) * 0.1)
    return m


# -- integers ----------------------------------------------------------------------------------
# Scales are powers of two, biases multiples of their products: sums are exact in floats and integers
# alike, so that no result hangs on a rounding.


def whole(*shape, seed=0, most=127):
    g = torch.Generator().manual_seed(seed)
    return torch.randint(-most, most + 1, shape, generator=g).to(torch.int8)


def powers(n, seed=0, most=-4):
    g = torch.Generator().manual_seed(seed)
    return 2.0 ** torch.randint(most - 2, most, (n,), generator=g).float()


def fake(x, scale, zero):
    q = torch.ops.quantized_decomposed
    x = q.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8)
    return q.dequantize_per_tensor(x, scale, zero, -128, 127, torch.int8)


class QLayer(nn.Module):
    """Int8 weights per channel, and a bias that integers hold."""

    def __init__(self, *shape, scale, seed=0):
        super().__init__()
        q, scales = whole(*shape, seed=seed, most=40), powers(shape[0], seed)
        self.register_buffer("w", q)
        self.register_buffer("s", scales)
        self.register_buffer("z", torch.zeros(shape[0], dtype=torch.int64))
        self.register_buffer("b", torch.round(rnd(shape[0], seed=seed) / (scale * scales)) * scale * scales)

    def weight(self):
        return torch.ops.quantized_decomposed.dequantize_per_channel(self.w, self.s, self.z, 0, -127, 127, torch.int8)


@model(rnd(2, 3, 8, 8))
class quant_static(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = QLayer(8, 3, 3, 3, scale=2.0 ** -5)
        self.deep = QLayer(8, 1, 3, 3, scale=0.25, seed=1)
        self.last = QLayer(8, 8, 1, 1, scale=0.5, seed=2)
        self.fc = QLayer(5, 32, scale=0.301, seed=3)

    def forward(self, x):
        x = fake(x, 2.0 ** -5, 3)
        x = a = fake(F.relu(F.conv2d(x, self.conv.weight(), self.conv.b, padding=1)), 0.25, -128)
        x = fake(F.hardtanh(F.conv2d(x, self.deep.weight(), self.deep.b, stride=1, padding=1, groups=8), 0., 48.), 0.5, -128)
        x = fake(F.conv2d(x, self.last.weight(), self.last.b), 0.5, 7)
        x = fake(x + a, 0.25, -5)  # no ties: XNNPACK rounds them up
        x = fake(F.max_pool2d(x, 2), 0.25, -5)
        x = fake(torch.cat([x, x], 2), 0.25, -5)
        x = fake(x.mean((2, 3), keepdim=True), 0.301, -5)  # nor does it round means to even
        x = fake(torch.cat([x.flatten(1)] * 4, 1), 0.301, -5)
        return fake(F.linear(x, self.fc.weight(), self.fc.b), 0.5, 1)


@model(rnd(1, 6, 11, 13))
class quant_convolutions(nn.Module):
    """Depthwise with strides, dilation and two outputs per channel, groups, and integers that are moved, padded and
    clamped between."""

    def __init__(self):
        super().__init__()
        self.deep = QLayer(12, 1, 3, 5, scale=2.0 ** -5)
        self.groups = QLayer(8, 6, 3, 1, scale=0.25, seed=1)
        self.wide = QLayer(8, 1, 3, 3, scale=0.25, seed=2)

    def forward(self, x):
        x = fake(x, 2.0 ** -5, -7)
        x = fake(F.conv2d(x, self.deep.weight(), self.deep.b, (2, 1), (1, 4), (1, 2), 6), 0.25, 9)
        x = fake(F.hardtanh(x, 0.0, 6.0), 0.25, 9)
        x = fake(F.pad(x, (1, 0, 2, 1)), 0.25, 9)
        x = fake(x.permute(0, 1, 3, 2), 0.25, 9)
        x = a = fake(F.conv2d(x, self.groups.weight(), self.groups.b, groups=2), 0.25, -128)
        x = fake(F.relu(F.conv2d(x, self.wide.weight(), self.wide.b, padding=2, dilation=2, groups=8)), 0.25, -128)
        x = fake(torch.cat([x, a[:, 2:5]], 1), 0.25, -128)
        return fake(F.max_pool2d(x, (2, 3), (1, 2), (1, 1)), 0.25, -128), a


@model(rnd(2, 5, 40))
class quant_lines(nn.Module):
    """Convolutions of one dimension, dense and depthwise."""

    def __init__(self):
        super().__init__()
        self.dense = QLayer(7, 5, 4, scale=2.0 ** -5)
        self.deep = QLayer(7, 1, 3, scale=0.25, seed=1)

    def forward(self, x):
        x = fake(x, 2.0 ** -5, 3)
        x = fake(F.relu(F.conv1d(x, self.dense.weight(), self.dense.b, stride=2, padding=3)), 0.25, -100)
        return F.conv1d(x, self.deep.weight(), self.deep.b, padding=2, dilation=2, groups=7)


@model(rnd(3, 16), rnd(1, 3, 6, 6, seed=1), more=[(rnd(3, 16, seed=5) * 30, rnd(1, 3, 6, 6, seed=6) * 0.1)])
class quant_matrices(nn.Module):
    """Products that are spelled mm and addmm, with weights of one scale and of one per column; scales of a whole
    tensor that the run tells, of a matrix and of an image."""

    def __init__(self):
        super().__init__()
        self.register_buffer("v", whole(16, 9, seed=1, most=40))
        self.register_buffer("w", whole(9, 4, seed=2, most=40))
        self.register_buffer("s", powers(4))
        self.register_buffer("z", torch.zeros(4, dtype=torch.int64))
        self.b = nn.Parameter(rnd(4))
        self.conv = QLayer(4, 3, 3, 3, scale=2.0 ** -5)

    def chosen(self, x):
        q = torch.ops.quantized_decomposed
        s, z = q.choose_qparams.tensor(x, -128, 127, 1.1920928955078125e-07, torch.int8)
        x = q.quantize_per_tensor.tensor(x, s, z, -128, 127, torch.int8)
        return q.dequantize_per_tensor.tensor(x, s, z, -128, 127, torch.int8)

    def forward(self, x, y):
        q = torch.ops.quantized_decomposed
        x = self.chosen(x) @ q.dequantize_per_tensor(self.v, 0.125, 0, -127, 127, torch.int8)
        w = q.dequantize_per_channel(self.w, self.s, self.z, 1, -127, 127, torch.int8)
        return torch.addmm(self.b, fake(x, 0.25, 1), w), F.conv2d(self.chosen(y), self.conv.weight(), self.conv.b, padding=1)


@model(rnd(2, 3, 8, 8))
class quant_borders(nn.Module):
    """Integers that leave, are read twice, and change their scale; weights that floats read."""

    def __init__(self):
        super().__init__()
        self.conv = QLayer(4, 3, 3, 3, scale=2.0 ** -5)

    def forward(self, x):
        q = torch.ops.quantized_decomposed
        i = q.quantize_per_tensor(x, 2.0 ** -5, 3, -128, 127, torch.int8)
        y = q.dequantize_per_tensor(i, 2.0 ** -5, 3, -128, 127, torch.int8)
        z = F.conv2d(y, self.conv.weight(), self.conv.b)
        return i, z.sigmoid(), fake(y, 2.0 ** -4, 0), F.conv2d(x, self.conv.weight())


@model(torch.tensor([[3, 0, 9], [1, 9, 4]]), rnd(2, 3, 24), rnd(1, 24), more=[(torch.tensor([[0, 1, 2], [9, 8, 7]]), rnd(2, 3, 24, seed=1), rnd(1, 24, seed=2))])
class quant_weights(nn.Module):
    """Tables and weights kept as integers of 8 bits and 4, with zero points or groups, and as halves, read by floats;
    among them one that is also read as it is."""

    def __init__(self):
        super().__init__()
        for name, shape, most in (("table", (10, 24), 127), ("small", (10, 24), 7), ("w8", (35, 24), 127), ("w4", (20, 24), 7),
                                  ("both", (16, 24), 127), ("by_term", (24, 18), 127)):
            self.register_buffer(name, whole(*shape, seed=len(name), most=most))
            self.register_buffer(name + "_s", powers(shape[0]))
            self.register_buffer(name + "_z", whole(shape[0], seed=3, most=5).long())
        self.register_buffer("group_s", powers(40, seed=4).view(20, 2))
        self.register_buffer("group_z", torch.zeros(20, 2, dtype=torch.int8))
        self.register_buffer("halves", rnd(17, 24, seed=6).half())
        self.register_buffer("columns_s", powers(18, seed=5))
        self.register_buffer("columns_z", torch.zeros(18, dtype=torch.int64))

    def channels(self, name):
        w, s, z = (getattr(self, name + end) for end in ("", "_s", "_z"))
        return torch.ops.quantized_decomposed.dequantize_per_channel(w, s, z, 0, -128, 127, torch.int8)

    def forward(self, i, x, v):
        q = torch.ops.quantized_decomposed
        groups = q.dequantize_per_channel_group(self.w4, self.group_s, self.group_z, -8, 7, torch.int8, 12, torch.float32)
        columns = q.dequantize_per_channel(self.by_term, self.columns_s, self.columns_z, 1, -128, 127, torch.int8)
        both = self.channels("both")
        y = F.embedding(i, self.channels("table")) + F.embedding(i, self.channels("small")) + x
        return (y, F.relu(F.linear(y, self.channels("w8"))), F.linear(v, groups, v[0, :20]), F.linear(x, self.halves.float()),
                torch.mm(y.view(6, 24), columns), torch.addmm(v[0, :18], y.view(6, 24), columns), F.linear(v, both), both * 2)


@model(rnd(4, 64), more=[(rnd(4, 64, seed=5) * 30,)])
class quant_tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = QLayer(32, 64, scale=1.0), QLayer(6, 32, scale=1.0, seed=1)

    def forward(self, x):
        q = torch.ops.quantized_decomposed
        for k in (self.a, self.b):
            s, z = q.choose_qparams_per_token_asymmetric(x, torch.int8)
            x = q.quantize_per_token(x, s, z, -128, 127, torch.int8)
            x = F.linear(q.dequantize_per_token(x, s, z, -128, 127, torch.int8, torch.float32), k.weight(), k.b)
        return x


@model(rnd(4, 64))
class quant_groups(nn.Module):
    """Four bits with a scale per group of a row, read as floats; eight bits with one scale."""

    def __init__(self):
        super().__init__()
        self.register_buffer("w", whole(16, 64, most=7))
        self.register_buffer("s", powers(32).view(16, 2))
        self.register_buffer("v", whole(5, 16, seed=1))

    def forward(self, x):
        q = torch.ops.quantized_decomposed
        w = q.dequantize_per_channel_group(self.w, self.s, torch.zeros(16, 2, dtype=torch.int64), -8, 7, torch.int8, 32, torch.float32)
        v = q.dequantize_per_tensor(self.v, 0.125, 0, -127, 127, torch.int8)
        return F.linear(F.linear(x, w), v)


@model(rnd(4, 64), more=[(rnd(4, 64, seed=5) * 30,)])
class quant_tokens_four_bits(nn.Module):
    """Four bits with a scale per row, of rows that groups of 32 divide and of others, as torchao's blocks and per
    channel; read by integers, and by floats."""

    def __init__(self):
        super().__init__()
        for name, shape in (("a", (48, 64)), ("b", (21, 48)), ("c", (6, 21)), ("d", (9, 6))):
            self.register_buffer(name, whole(*shape, seed=ord(name), most=7))
            self.register_buffer(name + "s", powers(shape[0], ord(name)))
        self.b0, self.b1, self.b2 = rnd(48), rnd(21, seed=1), rnd(9, seed=2)

    def weight(self, name):
        w, s = getattr(self, name), getattr(self, name + "s")
        q, zero = torch.ops.quantized_decomposed, torch.zeros(w.shape[0], dtype=torch.int64)
        if name == "a":
            return q.dequantize_per_channel_group(w, s[:, None], zero[:, None], -8, 7, torch.int8, w.shape[1], torch.float32)
        return q.dequantize_per_channel(w, s, zero, 0, -8, 7, torch.int8)

    def forward(self, x):
        q = torch.ops.quantized_decomposed
        for name, bias in (("a", self.b0), ("b", self.b1), ("c", None)):
            s, z = q.choose_qparams_per_token_asymmetric(x, torch.int8)
            x = q.quantize_per_token(x, s, z, -128, 127, torch.int8)
            x = F.linear(q.dequantize_per_token(x, s, z, -128, 127, torch.int8, torch.float32), self.weight(name), bias)
        return x, F.linear(x, self.weight("d"), self.b2), F.linear(x, self.weight("d"))


# -- f16 -----------------------------------------------------------------------------------------
# Tolerances come from what torch's own f16 differs from f32 of the same numbers by, and from the last
# place of the largest number: see save().


def half(*shape, seed=0):
    return rnd(*shape, seed=seed).half()


class Half(nn.Module):
    """Parameters in f16; bare tensors too."""

    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.half()


MASK = rnd(2, 1, 5, 7, seed=3) > 0
MASK[1, 0, 2] = False  # a query without a key


@model(half(4, 32), more=[(half(4, 32, seed=5) * 4,)])
class half_products(Half):
    def __init__(self):
        super().__init__(a=nn.Linear(32, 48), b=nn.Linear(48, 17, bias=False), w=nn.Parameter(rnd(17, 24, seed=3)), v=nn.Parameter(rnd(24, seed=4)))

    def forward(self, x):
        y = F.relu(self.a(x))
        return torch.addmm(self.v, self.b(y), self.w).softmax(-1), torch.bmm(y[None], y[None].transpose(1, 2)), F.hardtanh(self.b(y), -0.5, 0.75)


@model(half(2, 3, 17, 16))
class half_images(Half):
    def __init__(self):
        super().__init__(a=nn.Conv2d(3, 16, 3, 2, 1), b=nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False), c=nn.Conv2d(16, 8, 1), d=nn.Conv2d(8, 12, (3, 1), groups=2),
                         e=nn.ConvTranspose2d(8, 4, 3, 2, 1, 1), n=nn.BatchNorm2d(16), o=nn.BatchNorm1d(8, affine=False), f=nn.Conv2d(16, 16, 7, padding=3, groups=16), g=nn.Conv1d(8, 8, 3, padding=1))

    def forward(self, x):
        x = F.relu(self.n(self.a(x)))
        y = self.c(F.relu6(self.b(x)))
        return (F.max_pool2d(y, 3, 2, 1), F.avg_pool2d(y, 2), self.d(y).mean((2, 3)), self.e(y), self.f(x) + x, F.interpolate(y, scale_factor=2, mode="bilinear"),
                self.o(self.g(y.flatten(2))), F.avg_pool2d(F.pad(y, (1, 2, 0, 1), value=0.5), 1, 2))


@model(half(4, 8), half(4, 8, seed=1), half(8, seed=2))
def half_functions(x, y, z):
    a = x * y + z
    return (a / (y * y + 1), torch.maximum(x, z) - torch.minimum(y, a), a.sigmoid(), torch.tanh(x), F.silu(x), F.hardswish(x), F.leaky_relu(y, 0.1), F.elu(x), F.hardsigmoid(y), a.abs().sqrt(),
            (a.abs() + 0.5).rsqrt(), x * 0.3 - 2, 1 - y, 2 / (z.abs() + 1), x ** 2, y ** 3, -x, torch.cat([x, y], 1), (x + 1).permute(1, 0), a[:, 2:5], a.reshape(2, 16), (a * 2).expand(3, 4, 8), x.clamp(-0.5, 0.25))


@model(torch.tensor([-1.0, -0.0, 0.0, 2.0, -1e-3, 6e4, math.inf, -math.inf, math.nan, 1e-6]).half())
def half_roots(x):
    roots = torch.sqrt(x * 1.5), torch.rsqrt(x * 1.5), (x[:7] * 1.5) ** 0.5
    return tuple(r.isnan() for r in roots) + tuple(torch.nan_to_num(r, 0.0, 7.0, -7.0) for r in roots)


@model(half(2, 3, 5, 8), half(2, 3, 7, 8, seed=1), half(2, 3, 7, 6, seed=2), half(5, 7, seed=3))
def half_attention(q, k, v, m):
    s = torch.softmax(q[0] @ k[0].transpose(1, 2) * 0.3 + m, -1)
    return F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True), s @ v[0]


@model(half(2, 3, 5, 8), half(2, 3, 7, 8, seed=1), half(2, 3, 7, 6, seed=2), MASK, half(5, 7, seed=3))
def half_masks(q, k, v, m, f):
    return F.scaled_dot_product_attention(q, k, v, m), F.scaled_dot_product_attention(q, k, v, f), torch.where(m, q @ k.transpose(2, 3), 0.3)


@model(half(2, 5, 16), half(2, 4, 6, 6, seed=1))
class half_beside(Half):
    """Nodes that stay with the kernels: norms, functions, numbers that do not fit into f16, casts."""

    def __init__(self):
        super().__init__(n=nn.LayerNorm(16), a=nn.Linear(16, 24), b=nn.BatchNorm1d(5), c=nn.Conv2d(4, 4, 3))

    def forward(self, x, y):
        x = self.a(self.n(x))
        y, x = self.c(F.relu(self.c(y))), self.b(x)
        return F.gelu(x), F.gelu(x, approximate="tanh"), x.exp(), (x.float() * 1e6).sum(1), x * 1e-6 * 1e6, x.clamp(1.0, 1.0001), x.mean(1), x.sum(-1), y


@model(rnd(3, 16), rnd(2, 4, 6, 6, seed=1))
class brain_floats(nn.Module):
    """bfloat16 inside, f32 outside."""

    def __init__(self):
        super().__init__()
        self.a, self.n, self.c = nn.Linear(16, 24), nn.LayerNorm(24), nn.Conv2d(4, 8, 3, padding=1)
        self.bfloat16()

    def forward(self, x, y):
        x, y = self.n(self.a(x.bfloat16())), F.silu(self.c(y.bfloat16()))
        return x.softmax(-1).float(), (y * 0.3 + 1).mean((2, 3)).float(), torch.cat([x, F.gelu(x)])[:, 2:9].float()


@model(rnd(3, 16), rnd(2, 4, 8, 8, seed=1))
class products_shared(nn.Module):
    """The same weights twice in a region."""

    def __init__(self):
        super().__init__()
        self.a, self.c = nn.Linear(16, 16), nn.Conv2d(4, 4, 3)

    def forward(self, x, y):
        return self.a(F.relu(self.a(x))), self.c(F.relu(self.c(y)))


# -- attention ---------------------------------------------------------------------------------


@model(rnd(2, 3, 5, 8), rnd(2, 3, 7, 8, seed=1), rnd(2, 3, 7, 6, seed=2))
def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True), F.scaled_dot_product_attention(q[0], k[0], v[0], scale=0.3)


@model(rnd(2, 6, 5, 8), rnd(2, 2, 7, 8, seed=1), rnd(2, 2, 7, 8, seed=2), rnd(5, 7, seed=3))
def attention_groups(q, k, v, m):
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True), F.scaled_dot_product_attention(q, k, v, m, enable_gqa=True), F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


@model(rnd(2, 3, 5, 8), rnd(2, 3, 7, 8, seed=1), rnd(2, 3, 7, 8, seed=2), MASK, torch.where(MASK, rnd(2, 1, 5, 7, seed=4), -float("inf")))
def attention_masked(q, k, v, m, f):
    return F.scaled_dot_product_attention(q, k, v, m), F.scaled_dot_product_attention(q, k, v, f), F.scaled_dot_product_attention(q, k, v, f[:1])


LENGTH = Dim("length", min=1, max=90)


@model(rnd(2, 3, 37, 8), rnd(2, 3, 37, 8, seed=1), rnd(2, 3, 37, 8, seed=2), rnd(1, 37, seed=3), dynamic=({2: LENGTH}, {2: LENGTH}, {2: LENGTH}, {1: LENGTH}),
       more=[tuple(rnd(2, 3, n, 8, seed=s) for s in (3, 4, 5)) + (rnd(1, n, seed=6),) for n in (2, 90)])
def attention_lengths(q, k, v, m):
    return F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, m), F.scaled_dot_product_attention(q, k, v, is_causal=True)


@model(rnd(2, 4, 6, 5), dynamic=({2: Dim.AUTO(min=3, max=9), 3: Dim.AUTO(min=3, max=9)},), more=[(rnd(2, 4, 5, 6, seed=1),)])
class sizes_that_a_bias_fixes(nn.Module):
    """Attention over h/2 * w/2 places, which the table of biases makes 9."""
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(rnd(9, 9, seed=2))

    def forward(self, x):
        y = F.max_pool2d(x, 2, ceil_mode=True).flatten(2)
        z = y @ (y.transpose(1, 2) @ y + self.bias).softmax(-1).transpose(1, 2)
        return z, torch.cat((y, self.bias.expand(2, -1, -1)), 1)


@model(rnd(3, 4, 5), torch.tensor([0, 1, 0, 1, 1, 0]), rnd(3, 2, 4, seed=1), dynamic=({0: Dim("n", min=2, max=6)}, None, {0: Dim("n", min=2, max=6)}),
       more=[(rnd(2, 4, 5), torch.tensor([0] * 6), rnd(2, 2, 4)), (rnd(4, 4, 5), torch.tensor([1] * 6), rnd(4, 2, 4))])
def product_of_none_or_some(x, kind, y):
    """A batched product with as many columns as a mask chooses, which may be none."""
    chosen = kind.nonzero()[:, 0]
    return torch.matmul(y.unsqueeze(2), x[:, :, chosen % 5].unsqueeze(1))


def each_pair(fn, n, m):
    """fn(i, j) for all i and j, as masks of attention are made."""
    return torch.vmap(torch.vmap(fn, in_dims=(None, 0)), in_dims=(0, None))(torch.arange(n), torch.arange(m))


@model(torch.tensor([[0, 1, 1, 0, 2, 2, 2], [1, 1, 0, 0, 0, 3, 3]]), rnd(2, 7, 3), dynamic=({1: Dim("n", min=3, max=20)}, {1: Dim("n", min=3, max=20)}), more=[(torch.arange(10).view(2, 5) // 3, rnd(2, 5, 3, seed=1))])
def mapped_masks(kind, x):
    chosen, n, row = torch.ops.aten.index.Tensor, kind.shape[1], x[0, 0]
    rows = torch.vmap(lambda b: each_pair(lambda i, j: (chosen(kind, [b, i]) == chosen(kind, [b, j])) & ((i - j).abs() <= 2) | i.new_zeros((), dtype=torch.bool), n, n))
    early = each_pair(lambda i, j: torch.where(j < 3, i // 2, j.to(torch.int32) - 1).masked_fill(i == 1, 9), n, n)
    columns = torch.vmap(lambda v: v.relu() * row, in_dims=1)(x)
    outer = torch.vmap(lambda v: torch.vmap(lambda w: v)(x[:, 0]))(x[:, 1])
    return rows(torch.arange(2)), early, columns, outer


@model(rnd(2, 3, 5), rnd(5, seed=1), torch.tensor(0.75))
def linear_of_a_vector(x, w, b):
    return F.linear(x, w), F.linear(x, w, b), F.linear(x[0, 0], w), F.linear(x[1], w.unsqueeze(0))


@model(rnd(2, 37, 6), dynamic=({1: Dim.AUTO(min=17, max=90)},), more=[(rnd(2, n, 6, seed=n),) for n in (17, 41, 90)])
def blocks_of_padded_length(x):
    """Attention in blocks of 16 steps: a length padded to a multiple, divided by the number of blocks."""
    n = x.shape[1]
    y = F.pad(x, (0, 0, 0, (16 - n % 16) % 16))
    y = y.reshape(2, -1, 16, 6)
    y = y + (y @ y.transpose(2, 3)).tril(-1).softmax(-1) @ y
    return y.reshape(2, -1, 6)[:, :n], y.sum((1, 2))


@model(rnd(3, 6, 37, 8), rnd(3, 2, 37, 8, seed=1), rnd(3, 2, 37, 8, seed=2), rnd(6, 37, 37, seed=3) > -1, dynamic=({0: Dim("images", min=1, max=8), 2: LENGTH}, {0: Dim("images", min=1, max=8), 2: LENGTH}, {0: Dim("images", min=1, max=8), 2: LENGTH}, {1: LENGTH, 2: LENGTH}),
       more=[tuple(rnd(b, h, n, 8, seed=s) for h, s in ((6, 3), (2, 4), (2, 5))) + (rnd(6, n, n, seed=6) > -1,) for b, n in ((1, 1), (8, 90), (2, 50))])
def attention_open_groups(q, k, v, m):
    return F.scaled_dot_product_attention(q, k, v, m, enable_gqa=True), F.scaled_dot_product_attention(q + 1, k, v, is_causal=True, enable_gqa=True)


@model(rnd(1, 2, 300, 16), rnd(1, 2, 320, 16, seed=1), rnd(1, 2, 320, 24, seed=2), rnd(2, 300, 320, seed=3) > 0)
def attention_tiles(q, k, v, m):
    return F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, m[0]), F.scaled_dot_product_attention(q, k, v, m), F.scaled_dot_product_attention(q, k, v, is_causal=True)


@model(rnd(1, 4, 260, 8), rnd(1, 2, 260, 8, seed=1), rnd(1, 2, 260, 8, seed=2), rnd(4, 1, 260, seed=3))
def attention_tiled_groups(q, k, v, m):
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True), F.scaled_dot_product_attention(q + 1, k, v, m, enable_gqa=True)


@model(rnd(2, 3, 12, 8), rnd(2, 3, 20, 8, seed=1), rnd(2, 3, 20, 6, seed=2), rnd(1, 3, 12, 20, seed=3), rnd(2, 1, 1, 20, seed=4) > -0.5)
def attention_spelled(q, k, v, bias, keep):
    def s(i):
        return (q + i) @ k.transpose(-2, -1)

    flat = torch.bmm((q * 0.3).reshape(6, 12, 8), k.reshape(6, 20, 8).transpose(1, 2)) + bias.expand(2, 3, 12, 20).reshape(6, 12, 20)
    late = torch.bmm(v.reshape(6, 20, 6).transpose(1, 2), torch.softmax(s(0).reshape(6, 12, 20) * 0.5, -1).transpose(1, 2))
    return (torch.softmax(s(1) / 8**0.5, -1) @ v,
            F.dropout(torch.softmax((bias + s(2)) / 3, -1), 0.1, training=False) @ v,
            torch.softmax((0.4 * s(3) + bias).masked_fill(~keep, -1e9), -1) @ v,
            torch.softmax(torch.where(keep, torch.tanh(s(4) / 30) * 30, torch.tensor(-1e4)) * 0.5, -1) @ v,
            torch.softmax((5 * torch.tanh(s(5) / 5) + bias) + torch.where(keep, 0.0, -3e38), -1) @ v,
            torch.bmm(torch.softmax(flat, 2), v.reshape(6, 20, 6)), late)


@model(rnd(2, 3, 12, 8), rnd(2, 3, 20, 8, seed=1), rnd(2, 3, 20, 8, seed=2))
def attention_spelled_and_read(q, k, v):
    s = q @ k.transpose(-2, -1)
    w = torch.softmax(s * 0.3, -1)
    return w @ v, w, torch.softmax(s * 0.2 + s, -1) @ v, torch.softmax(q @ k.transpose(-2, -1) + 1, 1) @ v, torch.softmax(q + 1, -1) @ k.transpose(-2, -1) @ v


class SpelledWindows(nn.Module):
    """Attention within windows, as Swin writes it: a bias by head, a mask by window; then of shared heads."""

    def __init__(self):
        super().__init__()
        self.qkv, self.kv = nn.Linear(12, 36), nn.Linear(12, 8)
        self.table, self.index = nn.Parameter(rnd(5, 3)), torch.arange(100).view(10, 10) % 5
        self.mask = torch.where(rnd(4, 10, 10, seed=1) > 1, -100.0, 0.0)

    def forward(self, x):
        b = x.shape[0]
        q, k, v = self.qkv(x).reshape(b, 10, 3, 3, 4).permute(2, 0, 3, 1, 4).unbind(0)
        s = (q * 0.5) @ k.transpose(-2, -1) + self.table[self.index].permute(2, 0, 1).unsqueeze(0)
        s = s.view(b // 4, 4, 3, 10, 10) + self.mask.unsqueeze(1).unsqueeze(0)
        x = (torch.softmax(s.view(b, 3, 10, 10), -1) @ v).transpose(1, 2).reshape(b, 10, 12)
        k, v = self.kv(x).reshape(b, 10, 1, 2, 4).permute(3, 0, 2, 1, 4)[:, :, :, None].expand(2, b, 1, 3, 10, 4).reshape(2, b, 3, 10, 4).unbind(0)
        return torch.softmax(q @ k.transpose(2, 3) / 2, -1) @ v


@model(rnd(4, 10, 12))
class attention_spelled_windows(SpelledWindows):
    pass


@model(rnd(8, 10, 12))
class attention_spelled_images(SpelledWindows):
    pass


BATCH = Dim("batch", min=1, max=5)


@model(rnd(2, 3, 37, 8), rnd(2, 1, 3, 37, 8, seed=1), rnd(2, 3, 37, 8, seed=2), rnd(2, 1, 1, 37, seed=3) > -1, dynamic=({0: BATCH, 2: LENGTH}, {0: BATCH, 3: LENGTH}, {0: BATCH, 2: LENGTH}, {0: BATCH, 3: LENGTH}),
       more=[(rnd(b, 3, n, 8), rnd(b, 1, 3, n, 8, seed=1), rnd(b, 3, n, 8, seed=2), rnd(b, 1, 1, n, seed=3) > -1) for b, n in ((1, 1), (5, 90), (1, 64))])
def attention_spelled_open(q, k, v, keep):
    s = q @ k.squeeze(1).transpose(2, 3) * 0.35
    flat = torch.bmm(q.flatten(0, 1), k.flatten(0, 2).transpose(1, 2)) + torch.where(keep, 0.0, -1e30).expand(-1, 3, -1, -1).flatten(0, 1)
    return torch.softmax(s.masked_fill(~keep, -3e38), -1) @ v, torch.bmm(torch.softmax(flat, -1), v.flatten(0, 1)).view(q.shape)


@model(rnd(2, 3, 5, 6), rnd(2, 3, 9, 6, seed=1), rnd(2, 3, 9, 4, seed=2), MASK.repeat(1, 1, 1, 2)[..., :9])
def spelled_attention_without_keys(q, k, v, m):
    s, t = q @ k.transpose(-2, -1), (q + 1) @ k.transpose(-2, -1)
    no = torch.where(m, 0.0, -float("inf"))
    return torch.softmax(s + no, -1) @ v, torch.softmax(t.masked_fill(~m, -float("inf")), -1) @ v


@model(rnd(2, 3, 5, 8), rnd(1, 3, 7, 8, seed=1), rnd(3, 7, 8, seed=2), rnd(2, 1, 1, 7, seed=3))
def attention_broadcast(q, k, v, m):
    return F.scaled_dot_product_attention(q, k, v, m), F.scaled_dot_product_attention(q[0, 0], k[0, 0], v[0])


@model(rnd(5, 7), torch.arange(-17, 18).reshape(5, 7))
def left_over(x, i):
    return (torch.fmod(x, 0.25), torch.fmod(x * 3, -0.5) + 1, torch.fmod(i, 4), torch.fmod(-i, -3) * 2,
            torch.fmod(i.to(torch.int32), 5), torch.fmod(i, 1.5))


@model(rnd(4, 6), rnd(4, 6, seed=1), torch.arange(24).reshape(4, 6) % 5, torch.arange(6) % 3)
def logic(x, y, i, j):
    p, q = x > y, x <= 0.25
    return (p, q, x < y, x >= y, i == j, i != 2, i > j, j < 2, x == i, i >= 1.5, p & q, p | ~q, torch.logical_xor(p, q), torch.logical_and(x, i), torch.logical_not(i), i & j, i | 5, i ^ j, ~i,
            torch.where(p, x, y), torch.where(q, x, 0.0), torch.where(p, i, j), torch.where(p, i, 0.5), p.any(), p.any(1), q.any(0, keepdim=True), i.all(), p.all(1))


@model(rnd(3, 4))
def ranges(x):
    return x + torch.arange(4), x * torch.arange(1, 5), x + torch.arange(7, -1, -2), x * torch.arange(0, 1, 0.25), torch.arange(3.0) + x[:, 0]


# -- blocks of rows, channels and windows ----------------------------------------------------------


@model(rnd(2, 75, 24))
class wide_mlp(nn.Module):
    """Its hidden layer is wider than all else; norms, gates and a softmax are row-wise, too."""

    def __init__(self):
        super().__init__()
        self.norm, self.gate_up, self.down = nn.LayerNorm(24), nn.Linear(24, 256), nn.Linear(128, 24)
        self.up, self.back = nn.Linear(24, 192), nn.Linear(192, 24)

    def forward(self, x):
        gate, up = self.gate_up(self.norm(x)).chunk(2, -1)
        x = x + self.down(F.silu(gate) * up)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        h = self.up(x)
        return x - self.back(torch.cat([F.gelu(h[..., 96:]), h[..., :96].softmax(-1)], -1))


@model(rnd(1, 3, 50, 46))
class channels(nn.Module):
    """Channels of the widest tensors go apart: depthwise convolutions, pools, images of a batch."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 36, 5, 2, 2), nn.SiLU(), nn.MaxPool2d(3, 2, 1))
        self.expand = nn.Sequential(nn.Conv2d(36, 144, 1), nn.Hardswish(), nn.Conv2d(144, 144, 3, 2, 1, groups=144), nn.ReLU6())
        self.project = nn.Conv2d(144, 20, 1)

    def forward(self, x):
        return self.project(self.expand(self.stem(x)) * 0.5)


@model(rnd(5, 3, 50, 46))
class channels_of_a_batch(channels):
    pass


@model(rnd(6, 33, 12))
class windows(nn.Module):
    """Attention spelled out, with the query, key and value of one linear, and a mask per window."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)
        self.register_buffer("mask", rnd(6, 1, 33, 33))
        self.bias = nn.Parameter(rnd(2, 33, 33, seed=1))

    def forward(self, x):
        q, k, v = self.qkv(x).reshape(6, 33, 3, 2, 6).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q * 0.5 @ k.transpose(-2, -1) + self.bias + self.mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(6, 33, 12))


# -- convolutions by rows --------------------------------------------------------------------------


class Residual(nn.Module):
    """Expand, depthwise, project; with the input added where sizes allow."""

    def __init__(self, c, wide, to, kernel=3, stride=1, dilation=1, act=nn.ReLU6):
        super().__init__()
        pad = dilation * (kernel // 2)
        self.body = nn.Sequential(
            nn.Conv2d(c, wide, 1, bias=False), nn.BatchNorm2d(wide), act(),
            nn.Conv2d(wide, wide, kernel, stride, pad, dilation, groups=wide), act(), nn.Conv2d(wide, to, 1))
        self.adds = stride == 1 and c == to

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


@model(rnd(2, 8, 40, 37))
class inverted_residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Residual(8, 48, 8)

    def forward(self, x):
        return self.a(x)


@model(rnd(3, 6, 33, 20), dynamic=({0: Dim("n", min=1, max=5)},), more=[(rnd(1, 6, 33, 20, seed=1),), (rnd(5, 6, 33, 20, seed=2),)])
class inverted_residuals(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(Residual(6, 30, 9, stride=2), Residual(9, 40, 9, kernel=5, act=nn.ReLU), Residual(9, 90, 5, dilation=2))

    def forward(self, x):
        return torch.relu(self.a(x))


@model(rnd(2, 6, 21, 18), dynamic=({2: Dim("h", min=1, max=40), 3: Dim("w", min=1, max=40)},), more=[(rnd(2, 6, 1, 40, seed=1),), (rnd(2, 6, 40, 1, seed=2),), (rnd(2, 6, 9, 40, seed=3),)])
class inverted_open(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Residual(6, 44, 6)

    def forward(self, x):
        return self.a(x)


@model(rnd(2, 4, 31, 29))
class inverted_concat(nn.Module):
    """Streams of other kernels, and one that ends in a part of a concat."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(4, 24, 5, 2, 2), nn.ReLU(), nn.Conv2d(24, 36, (3, 1), padding=(2, 0), groups=12), nn.ReLU6(), nn.Conv2d(36, 40, 3), nn.Hardtanh(-0.5, 0.5), nn.Conv2d(40, 6, 1))
        self.b = nn.Sequential(nn.Conv2d(6, 50, 3, padding=1), nn.ReLU(), nn.Conv2d(50, 3, 3, padding=1))

    def forward(self, x):
        x = self.a(x)
        return torch.cat([self.b(x), x], 1)


# -- indices, pieces, fills ---------------------------------------------------------------------


IDX = torch.tensor([[0, 2], [3, 1]])


@model(rnd(4, 5, 6), IDX, torch.tensor([4, 0]))
def indexing(x, i, j):
    return (x[i], x[:, j], x[i, j], x[:, i, j], x[j[1:], :, i], x[..., i], x[j[1:], 2], F.embedding(i, x[0]), x.gather(1, i[:, :, None]), torch.index_select(x, 2, j), x[i.int() - 1])


@model(rnd(4, 6), torch.tensor([3, 0]), rnd(2, 6, seed=1), rnd(4, 2, seed=2))
def index_writes(x, i, rows, columns):
    y = x.clone()
    y[i] = rows
    z = x.index_copy(1, i, columns)
    w = torch.index_put(x, (i, i + 1), torch.tensor(7.0))
    return y, z, w, torch.slice_scatter(x, rows, 0, 1, 3), torch.select_scatter(x, rows[0], 0, -1), torch.slice_scatter(x.int(), rows, 0, 1, 3), x.masked_fill(x > 0, -1.0), x.masked_fill(x > 0, rows[0, 0])


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(1, 2, 8, 3))

    def forward(self, x, at):
        self.k.index_copy_(2, at, x)
        return self.k.sum(-1)


@model(rnd(1, 2, 1, 3), torch.tensor([2]), stateful=True, more=[(rnd(1, 2, 1, 3, seed=1), torch.tensor([3]))])
class cache(Cache):
    pass


@model(rnd(6, 8))
def pieces(x):
    a, b = x.split(4)
    c, d, e = x.chunk(3, 1)
    f, g = torch.split(x, [3, 5], dim=1)
    return a.sum(1), b * 2, c, d + 1, e, f, g, torch.stack([a[0], b[0]]), torch.stack(x.unbind(1), 1), torch.stack([x, -x], -1), a.new_zeros(2).add_(1)


@model(rnd(3, 4))
def fills(x):
    y = x.clone()
    u, v = y.unbind()[:2]
    u.mul_(2)
    return y, v, torch.zeros(3, 4) + x, x + torch.ones_like(x), x.new_ones(4) * x, x.new_full((4,), 2.5) + x, torch.zeros_like(x, dtype=torch.int64), torch.full((2,), 3), x.tril(), x.triu(1), torch.tril(torch.ones(5, 5)), torch.scalar_tensor(2.0) * x


@model(rnd(2, 3))
def repeats(x):
    return x.repeat(2, 1), x.repeat(3, 2, 2), x.repeat_interleave(2, 1), x.repeat_interleave(3), x[:, :1].expand_as(x), x.diff(), torch.diff(x, n=2, dim=1), torch.diff(x, prepend=x[:, :1]), torch.diff(x, n=0, prepend=x[:, :1])


@model(rnd(3, 40), torch.randint(0, 9, (3, 5), generator=torch.Generator().manual_seed(0)))
def running(x, i):
    return x.cumsum(1), x.sum(), torch.concat([x, x.clamp_max(0.1)]), x.cumsum(0), i.cumsum(-1), (i > 3).cumsum(1), i.int().cumsum(0, dtype=torch.float32), i.sum(1), (i > 3).sum(0, keepdim=True), i.int().amax(1), i.amax((0, 1)), (i - 9).to(torch.int8).amax(0), i.sum()


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.LayerNorm(20), nn.LayerNorm((4, 20), elementwise_affine=False), nn.RMSNorm(20)
        for p in [self.a.weight, self.a.bias, self.c.weight]:
            nn.init.normal_(p)

    def forward(self, x):
        return self.a(x) + x, F.relu(self.a(x)), self.b(x), self.c(x), F.normalize(x, dim=-1), x.norm(p=1, dim=-1), torch.linalg.vector_norm(x, float("inf"), (0, 2))


@model(rnd(3, 4, 20))
class norms(Norms):
    pass


@model(rnd(2, 3, 4), rnd(2, 4, 5, seed=1), rnd(2, 1, 5, seed=2))
def products(a, b, c):
    return torch.baddbmm(c, a, b), torch.baddbmm(c, a, b, beta=0.5, alpha=2.0), torch.min(a, -a), torch.max(a, a * 2), a.type_as(c.long()), torch.where(a > 0, 1.0, 0.0)


# -- pointwise and scalars ---------------------------------------------------------------------


@model(rnd(3, 5), rnd(3, 5, seed=1))
def arithmetic(x, y):
    return x - y, x * y + 2, 3 - x, x / (y.abs() + 1), torch.sub(x, y, alpha=2), torch.add(x, y, alpha=0.5), -x, x * 0.5, x / 4


@model(rnd(4, 6))
def activations(x):
    return (F.relu(x), F.relu6(x * 4), F.hardtanh(x, -0.5, 0.25), F.silu(x), F.hardswish(x * 3), F.hardsigmoid(x * 3), F.gelu(x),
            F.gelu(x, approximate="tanh"), F.leaky_relu(x, 0.2), F.elu(x), torch.sigmoid(x), torch.tanh(x), torch.clamp(x, -0.3, 0.4), x.clamp(min=0.1), x.clamp_min(-0.2))


@model(rnd(2, 3, 4).abs() + 0.1)
def elementary(x):
    return torch.exp(x), torch.log(x), torch.sqrt(x), torch.rsqrt(x), torch.sin(x), torch.cos(x), torch.erf(x), x.reciprocal(), x.abs(), x**2, x**3, x**0.5, x.square()


@model(torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-42, 3e38, -3e38]))
def specials(x):
    return F.relu(x), torch.maximum(x, -x), torch.exp(x), torch.sigmoid(x), F.hardtanh(x), x + x, torch.tanh(x)


@model(rnd(2, 1, 4), rnd(3, 1), torch.tensor(2.5))
def broadcasts(x, y, z):
    return x + y, x * z, z - y, torch.maximum(x, y), torch.minimum(y, z)


@model(rnd(3, 4), torch.arange(12).reshape(3, 4), torch.arange(12, dtype=torch.int32).reshape(3, 4))
def mixed_dtypes(x, i, j):
    return i + 1, i * j, x + i, x * 2, j - i


# -- reductions, softmax ----------------------------------------------------------------------


@model(rnd(2, 3, 4, 5))
def reductions(x):
    return x.mean(1), x.mean((2, 3), keepdim=True), x.mean(), x.sum(-1), x.sum((0, 2)), x.amax((1, 3)), x.amax(0, keepdim=True), x.mean((0, 1, 2, 3))


@model(rnd(3, 4, 5) * 5)
def softmaxes(x):
    return x.softmax(0), x.softmax(1), x.softmax(-1), F.log_softmax(x, 0), F.log_softmax(x, -1)


# -- linear algebra -----------------------------------------------------------------------------


@model(rnd(3, 7))
class linear_no_bias(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(7, 5, bias=False)

    def forward(self, x):
        return self.l(x)


@model(rnd(2, 3, 4, 17))
class linear_rank4(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(17, 33)

    def forward(self, x):
        return F.relu(self.l(x))


@model(rnd(3, 4), rnd(4, 5, seed=1), rnd(2, 3, 4, seed=2), rnd(2, 4, 5, seed=3), rnd(5, seed=4))
def products(a, b, c, d, e):
    return torch.mm(a, b), torch.bmm(c, d), a @ b, torch.addmm(e, a, b), c @ d, c @ b


@model(rnd(5, 8))
class tied_weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = nn.Linear(8, 8)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x).relu())


@model(rnd(4, 6))
class transposed_weight(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(rnd(6, 9, seed=5).t())

    def forward(self, x):
        return F.linear(x, self.w), x @ self.w.t()


# -- convolutions and pools -----------------------------------------------------------------------


def conv(name, x, **kw):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.Conv2d(**kw)

        def forward(self, x):
            return self.c(x)
    M.__name__ = name
    model(x)(M)


conv("conv_stride", rnd(2, 5, 11, 13), in_channels=5, out_channels=7, kernel_size=3, stride=2, padding=1)
conv("conv_dilated", rnd(1, 4, 15, 9), in_channels=4, out_channels=6, kernel_size=3, dilation=2, padding=2)
conv("conv_groups", rnd(1, 8, 10, 10), in_channels=8, out_channels=12, kernel_size=3, groups=4, padding=1)
conv("conv_multiplier", rnd(1, 4, 9, 9), in_channels=4, out_channels=8, kernel_size=5, groups=4, stride=2, padding=2)
conv("conv_asymmetric", rnd(1, 3, 17, 9), in_channels=3, out_channels=5, kernel_size=(5, 2), stride=(2, 3), padding=(2, 1))
conv("conv_1x1_stride", rnd(3, 16, 7, 7), in_channels=16, out_channels=31, kernel_size=1, stride=2, bias=False)
conv("conv_same", rnd(1, 3, 8, 8), in_channels=3, out_channels=4, kernel_size=4, padding="same")
conv("conv_wide", rnd(1, 65, 5, 5), in_channels=65, out_channels=129, kernel_size=3, padding=1)


@model(rnd(2, 3, 20))
class conv1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv1d(3, 8, 5, stride=2, padding=1), nn.BatchNorm1d(8)

    def forward(self, x):
        return F.relu(self.b(self.a(x)))


@model(rnd(1, 4, 5, 6))
class conv_transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), nn.BatchNorm2d(6)

    def forward(self, x):
        return self.b(self.a(x))


@model(rnd(2, 3, 12, 14))
def pools(x):
    return (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 3, 2, ceil_mode=True), F.max_pool2d(x, (2, 3), (1, 2)), F.max_pool2d(x, 3, 1, 1, dilation=2),
            F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.avg_pool2d(x, 3, 2, ceil_mode=True), F.avg_pool2d(x, 2, divisor_override=3),
            F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (4, 7)), F.adaptive_avg_pool2d(x, (5, 3)), F.adaptive_avg_pool2d(x, (12, 14)))


@model(rnd(1, 6, 9, 9))
def pool_indices(x):
    return F.max_pool2d(x, 3, 2, 1, return_indices=True)


@model(rnd(2, 6, 7, 9))
def resampled(x):
    """Both kinds, by factor and by size, larger and smaller, with corners aligned and not."""
    return (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 20)), F.interpolate(x, scale_factor=(1.5, 3), mode="nearest"),
            F.interpolate(x, scale_factor=2, mode="bilinear"), F.interpolate(x, size=(15, 4), mode="bilinear"), F.interpolate(x, size=(14, 27), mode="bilinear", align_corners=True),
            F.interpolate(x, scale_factor=(1.5, 2), mode="bilinear", align_corners=True), F.interpolate(x[:, :, 0], scale_factor=3), F.interpolate(x[:, :, 0], size=16, mode="linear"))


@model(rnd(2, 4, 5, 6), dynamic=({0: Dim("n", max=4), 2: Dim("h", min=4, max=9)},), more=[(rnd(3, 4, 9, 6, seed=1),), (rnd(1, 4, 4, 6, seed=2),)])
def resampled_dynamic(x):
    return F.interpolate(x, scale_factor=2), F.interpolate(x, scale_factor=2, mode="bilinear"), F.pixel_shuffle(x, 2), F.pad(x, (1, 2, 3, 0), mode="reflect"), x.roll((1, -2), (2, 3)), x.flip(2)


IMAGE = {2: Dim("height", min=4, max=30), 3: Dim("width", min=4, max=30)}


@model(rnd(1, 2, 6, 8), dynamic=(IMAGE,), more=[[rnd(1, 2, 9, 7, seed=1)], [rnd(1, 2, 30, 4, seed=2)]])
def resized_open_sizes(x):
    def by(mode, **kw):
        return F.interpolate(x, scale_factor=2, mode=mode, **kw)

    def to(mode, size=(10, 5), **kw):
        return F.interpolate(x, size, mode=mode, **kw)

    cubic = by("bicubic"), to("bicubic"), by("bicubic", align_corners=True), to("bicubic", (1, 3), align_corners=True)
    return *cubic, by("nearest-exact"), to("nearest-exact"), by("bilinear", antialias=True), by("bicubic", antialias=True)


@model(rnd(1, 2, 6, 8).double(), dynamic=(IMAGE,), more=[[rnd(1, 2, 9, 7, seed=1).double()]])
def resized_open_doubles(x):
    one = [F.interpolate(x[0], scale_factor=3, mode=m) for m in ("linear", "nearest", "nearest-exact")]
    two = [F.interpolate(x, scale_factor=2, mode=m) for m in ("bilinear", "bicubic", "nearest")]
    return *one, *two, F.interpolate(x, (10, 5), mode="bilinear"), F.interpolate(x, (10, 5), mode="bilinear", align_corners=True)


@model(rnd(1, 2, 6, 8), dynamic=(IMAGE,), more=[[rnd(1, 2, 9, 7, seed=1)], [rnd(1, 2, 30, 4, seed=2)]])
def smooth_open_sizes(x):
    """Resized to sizes whose ratio is open, and means of windows in three dimensions."""
    h, w = x.shape[-2:]
    y = F.interpolate(x, size=(2 * h, w // 2), mode="bilinear", antialias=True)
    y = F.interpolate(y, size=(h, w + 3), mode="bicubic", antialias=True)
    z = F.interpolate(x.double(), size=(h - 1, 7), mode="bilinear", antialias=True)
    return y, z, F.adaptive_avg_pool3d(x, (1, 3, 5)), F.adaptive_avg_pool3d(x[None], (2, 4, None))


@model(rnd(3, 10, 14), dynamic=({1: 2 * Dim("h", min=4, max=15), 2: 2 * Dim("w", min=4, max=15)},), more=[[rnd(3, 14, 26, seed=1)], [rnd(3, 18, 22, seed=2)]])
def borders_of_open_width(x):
    """Images filled up to multiples of 4, and rolled by halves of their sizes and by more than they have."""
    h, w = x.shape[-2:]
    p, q = (4 - w % 4) % 4, (4 - h % 4) % 4
    filled = [F.pad(x, (0, p, 0, q), mode=m) for m in ("replicate", "constant", "reflect", "circular")]
    filled += [F.pad(x, (q, p), mode="reflect"), F.pad(x, (w // 3, -3, 1, h // 5 - 2), "replicate")]
    rolled = torch.fft.fftshift(x, (1, 2)), torch.roll(x, (w, 1, -h), (1, 2, 2)), torch.roll(x, h // 2), torch.roll(x, -29, 1)
    return *filled, *rolled


@model(rnd(5, 6), torch.tensor(2), dynamic=({0: Dim("n", min=3, max=9)}, None), more=[(rnd(3, 6, seed=1), torch.tensor(-3)), (rnd(9, 6, seed=2), torch.tensor(0))])
def chosen_at_run_time(x, i):
    """The sign of an index is known only at run time."""
    k = i.item()
    best = x.sum(1).argmax()
    return x[k], x[:, k] * 2, x[best] - x[-1]


@model(rnd(6), dynamic=({0: Dim("n", min=3, max=9)},), more=[(rnd(9),), (rnd(3),)])
def whole_parts(x):
    """Ranges and fills of integers take the whole parts of numbers."""
    n = x.shape[0]
    ranges = torch.arange(0, 3.5, dtype=torch.int64), torch.arange(0.9, 5.5, 1.7, dtype=torch.int64), torch.arange(0.1, -7.9, -4.0, dtype=torch.int64)
    return *ranges, torch.arange(n, -n, -1.0, dtype=torch.int64), torch.full((2,), -2.7, dtype=torch.int64), x[torch.arange(0, n, 2.0, dtype=torch.int64)]


@model(torch.tensor(3, dtype=torch.int32))
def whole_parts_of_short_ranges(x):
    """Ranges of integers of less than 64 bits have as many elements as their numbers with fractions say."""
    kinds = torch.int32, torch.int16, torch.int8, torch.uint8
    ranges = (0.5, 7.2, 1.7), (-3.9, 7, 1.5), (0.9, 9.5, 2.9), (-0.5, 6, 1.5), (0.1, -7.9, -4.0)
    return [torch.arange(*r, dtype=t) + x.to(t) for r in ranges for t in kinds] + [torch.arange(-0.5, 5.2, dtype=torch.int32) + x, torch.arange(4.4, dtype=torch.int16) + x]


@model(torch.cat([half(60) * 8, torch.tensor([0.69921875, 0.703125, 5.6, -0.7]).half()]))
def numbers_beside_halves(x):
    """Numbers that no half represents are rounded first by some operators; a quotient is cut before it is rounded."""
    made = []
    for v in (x, x.bfloat16()):
        made += [f(v, k).float() for f in (torch.remainder, torch.fmod, torch.add, torch.sub, torch.rsub) for k in (0.7, -0.3)]
        made += [torch.pow(0.7, v).float(), torch.pow(v.abs(), 0.7).float(), (v + 0.7 * v).float()]
        made += [torch.div(v, k, rounding_mode="trunc").float() for k in (0.7, -0.3, v.flip(0))]
        made += [f(v, 0.7) for f in (torch.lt, torch.le, torch.gt, torch.ge, torch.eq, torch.ne)]
    return made


@model(rnd(4, 5, 3), rnd(4, 5, seed=1), rnd(30, 2, seed=2))
def histograms_of_rows(x, w, y):
    edges = [torch.tensor([-1.0, 0, 0.5, 2]), torch.tensor([-2.0, -0.25, 0, 1, 1.5])]
    made = [torch.histogramdd(x, [2, 3, 2]), torch.histogramdd(x, 3, weight=w.abs()), torch.histogramdd(y, [4, 3], range=[-1.0, 1, -2, 2], density=True)]
    made += [torch.histogramdd(y, edges), torch.histogramdd(y.view(6, 5, 2), edges, weight=w.flatten()[:1].expand(6, 5), density=True), torch.histogramdd(y * 0, [2, 3])]
    return [v for hist, bins in made for v in (hist, *bins)]


@model(rnd(9, 2), torch.tensor([[1, 1, 2, 2, 1], [0, 0, 3, 3, 0]]), more=[(rnd(9, 2, seed=1), torch.tensor([[1, 1, 1, 1, 1], [0, 0, 0, 3, 0]]))])
def runs_along_the_last_axis(x, i):
    """The export records twice as many axes."""
    y, inverse, counts = torch.unique_consecutive(i, return_inverse=True, return_counts=True, dim=-1)
    return x, y, inverse, counts, *torch.unique_consecutive(i[0], return_inverse=True, dim=-1)


def pairs(f):
    """A function of complex numbers as one of their parts."""
    def of_parts(*x):
        return [torch.view_as_real(y.resolve_conj()) if y.is_complex() else y for y in f(*map(torch.view_as_complex, x))]
    of_parts.__name__ = f.__name__
    return of_parts


@model(rnd(3, 3, 2), rnd(3, 3, 2, seed=1))
@pairs
def complex_places(a, b):
    parts = a.tril(), a.triu(1), a.diff(append=b), a.diag(), torch.diag_embed(a), a.fliplr(), a.flipud(), a.rot90(), torch.block_diag(a, b)
    parts += torch.broadcast_to(a, (2, 3, 3)), a.sum_to_size(1, 3), F.pad(a, (1, 2), value=1.5), a.as_strided((2, 2), (1, 2)), a.diagonal_scatter(b[0])
    i = torch.tensor([0, 2])
    parts += a.index_add(0, i, b[:2]), a.index_copy(0, i, b[:2]), a.masked_scatter(a.real > 0, b), a.logical_not()
    return *parts, *torch.meshgrid(a[0], b[0], indexing="ij"), *torch.broadcast_tensors(a, b[:1])


@model(rnd(3, 3, 2), rnd(3, 3, 2, seed=1))
@pairs
def complex_formulas(a, b):
    sums = torch.addcmul(a, a, b, value=0.5), torch.addcdiv(a, a, b), torch.addmm(a, a, b, beta=2.5), torch.addmv(a[0], a, b[0]), torch.addr(a, a[0], b[0])
    sums += torch.addbmm(a, a[None], b[None]), torch.baddbmm(a[None], a[None], b[None], alpha=2.5), torch.ldexp(a, torch.tensor([1, 2, 0])), torch.cross(a, b, dim=1)
    one = a.log2(), a.log10(), a.sinh(), a.cosh(), a.tanh(), a.tan(), a.sigmoid(), (a * 30).tanh(), (a * 0.01).tan()
    products = a.prod(), a.prod(1), b.prod(0, keepdim=True), torch.cat([a, b, a]).prod(0), a.cumprod(0), torch.cat([a, b, a]).cumprod(0), torch.linalg.matrix_power(a, 3)
    spread = a.var(), a.var(1), a.std(0, unbiased=False), torch.std(a), a.var((0, 1), keepdim=True)
    solved = torch.linalg.solve(a, b, left=False), torch.linalg.solve(a, b[0])
    slid = F.conv1d(a[None], b[:, :, None], b[0]), F.conv1d(a[None], b[:1, :, None].expand(1, 3, 2)), F.conv2d(a[None, None], b[None, None, :2, :2], a[0, :1], padding=1)
    return *sums, *one, *products, *spread, *solved, *slid


@model(rnd(2, 4, 4, 2), rnd(7, 7, 2, seed=1))
@pairs
def complex_elimination(a, b):
    """Determinants, factors and triangular systems."""
    eye = torch.eye(4)
    made = torch.linalg.det(a), torch.det(b), *torch.linalg.slogdet(a), *torch.slogdet(b), torch.linalg.det(a * 0), torch.linalg.det(b[:1, :1]), torch.linalg.det(b[:0, :0]), *torch.linalg.slogdet(b[:0, :0])
    made += torch.linalg.cholesky(a @ a.mH + 4 * eye), torch.linalg.cholesky(a @ a.mH + 4 * eye, upper=True)
    for upper in (True, False):
        made += torch.linalg.solve_triangular(a + 2 * eye, a, upper=upper), torch.linalg.solve_triangular(a, a, upper=upper, unitriangular=True)
        made += torch.linalg.solve_triangular(a[0] + 2 * eye, a, upper=upper, left=False),
    return made


@model(rnd(1, 3, 4, 4, 5, 2), rnd(3, 2, 2, 2, 2, 2, seed=1), rnd(2, 2, seed=2))
@pairs
def complex_volumes(x, w, b):
    turned = F.conv_transpose1d(x[..., 0, 0], w[..., 0, 0], b, stride=2), F.conv_transpose2d(x[..., 0], w[..., 0], padding=1), F.conv_transpose3d(x, w, b)
    return F.conv3d(x, w.transpose(0, 1)), F.conv3d(x, w.transpose(0, 1), b, padding=1), *turned


@model(rnd(2, 3, 4, 5), rnd(2, 3, 4, 5, seed=1))
def copies_of_core_aten(x, y):
    """Formats, and copies that need not wait, as core ATen spells them."""
    whole = torch.ops.aten._to_copy(x * 9, dtype=torch.int64, memory_format=torch.channels_last)
    same = torch.ops.aten._to_copy(x, non_blocking=True, memory_format=torch.preserve_format)
    made = torch.ops.aten.clone(y + 1, memory_format=torch.channels_last)
    into = torch.ops.aten.copy(y.to(torch.int32), x * 9, True)
    (x + 1).copy_(y, non_blocking=True)
    return whole + 1, same * 2, made.permute(0, 2, 3, 1).reshape(8, 15), into


@model(rnd(5, 3), rnd(4, 3, seed=1), rnd(2, 3, 5, 6, 7, seed=2))
def rows_of_core_aten(x, y, v):
    """What torch writes only where it decomposes a program."""
    aten = torch.ops.aten
    aten._assert_async(x[0, 0] < 1e9)
    aten._assert_async.msg(x[0, 0] < 1e9, "too large")
    near = aten._cdist_forward(x, y, 2.0, None), aten._cdist_forward(x, y, 1.0, 2), aten._pdist_forward(x, 2.0)
    pools = aten._adaptive_avg_pool3d(v, [2, 3, 1]), aten.resize(x, [3, 5])
    empty = aten.empty_permuted([4, 3], [1, 0]).fill_(3) + y, aten.empty_strided([5, 3], [1, 5]).zero_() - x
    return *near, *pools, *empty, torch.ops.prims.convert_element_type(x * 9, torch.int32)


@model(rnd(2, 4, 4) + 4 * torch.eye(4), rnd(2, 4, 3, seed=1), core=True)
def core_solves(a, b):
    """Checks for singular matrices are ordered by tokens."""
    return torch.linalg.inv(a), torch.linalg.solve(a, b), torch.linalg.cholesky(a @ a.mT)


@model(rnd(3, 4, 6, 6), rnd(3, 5, seed=1), core=True)
class CoreLayers(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.image = nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.BatchNorm2d(6), nn.GELU(), nn.Dropout(0.5), nn.AdaptiveAvgPool2d((2, 3)))
        self.volume = nn.Sequential(nn.Conv3d(1, 2, 2), nn.AdaptiveAvgPool3d((2, 1, 2)), nn.ConvTranspose3d(2, 1, 2))
        self.sequence, self.pair, self.norm = nn.GRU(5, 4, bidirectional=True), nn.Bilinear(5, 5, 3), nn.InstanceNorm2d(4, affine=True)

    def forward(self, x, y):
        seen = F.one_hot((y * 3).abs().long() % 4, 4), F.hinge_embedding_loss(y, y.sign()), F.pdist(y), torch.cdist(y, y)
        return self.image(x), self.volume(x[:, None]), self.sequence(y)[0], self.pair(y, y + 1), self.norm(x), *seen


@model(rnd(2, 7, 12), torch.arange(2)[:, None] * 7 > torch.arange(7), rnd(7, 5, seed=2),
       more=[(rnd(2, 7, 12, seed=1), torch.zeros(2, 7, dtype=torch.bool), rnd(7, 5, seed=3))], core=True)
class CoreAttention(nn.Module):
    """All keys of one batch are masked."""
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.out, self.gate, self.norm = nn.Linear(12, 36), nn.Linear(12, 5), nn.Linear(12, 12), nn.LayerNorm(12)
        self.table = nn.Parameter(torch.randn(9, 5) * 0.3)

    def forward(self, x, hidden, table):
        q, k, v = self.qkv(self.norm(x)).view(2, 7, 3, 3, 4).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=~hidden[:, None, None, :])
        y = y.transpose(1, 2).reshape(2, 7, 12)
        y = F.hardswish(self.gate(y)) + F.hardsigmoid(x) + F.relu6(x * 4)
        z = self.out(y)
        return z, z @ self.table.T, F.embedding(torch.tensor([1, 3]), self.table), torch.matmul(z.transpose(1, 2), table)


@model(rnd(4, 6), rnd(5, 6, seed=1), rnd(2, 4, 6, seed=2), rnd(5, seed=3))
def transposed_products(a, w, b, c):
    """Layers as core ATen spells them, of floats and of dtypes that have no linear layer."""
    made = []
    for t in (torch.int64, torch.int32, torch.float64, torch.float32, torch.float16):
        x, m, y, z = ((v * (1 if t.is_floating_point else 9)).to(t) for v in (a, w, b, c))
        made += torch.mm(x, m.T), torch.addmm(z, x, m.T), torch.bmm(y, m.T.expand(2, 6, 5)), torch.mm(y.reshape(8, 6), m.T).view(2, 4, 5)
    return tuple(made)


@model(rnd(4, 3), rnd(4, 5, seed=1), rnd(2, 3, 5, seed=2))
def products_of_three(a, b, w):
    f = torch.ops.aten._trilinear
    return f(a, w, b, [1, 3], [0], [1, 2], [2, 3]), f(a, w, b, [1, 3], [0], [1, 2], [3]), f(a, a, a, [], [], [], [0]), f(a, b, b, [2], [1], [1], [1, 2])


@model(torch.rand(20, 2, generator=torch.Generator().manual_seed(3)), rnd(20, seed=1))
def counts_of_rows(x, w):
    aten = torch.ops.aten
    edges = aten._histogramdd_bin_edges(x, [3, 4]), aten._histogramdd_bin_edges(x, [3, 4], range=[0.0, 1.0, 0.2, 0.8])
    counts = aten._histogramdd_from_bin_cts(x, [3, 4]), aten._histogramdd_from_bin_cts(x, [3, 4], range=[0.0, 1.0, 0.2, 0.8], weight=w, density=True)
    given = aten._histogramdd_from_bin_tensors(x, [torch.tensor([0.0, 0.3, 1.0]), torch.tensor([0.1, 0.5, 0.6, 0.9])], weight=w)
    return *edges[0], *edges[1], *counts, given


@model(rnd(2, 4, 5, 6, 7), rnd(4, 2, 4, 3, 2, seed=1), rnd(4, seed=2))
def convolution_of_volumes(x, w, b):
    """As core ATen spells them, and halves, of which torch rounds only the sum."""
    plain = torch.convolution(x, w, b, [1, 2, 1], [1, 0, 1], [1, 1, 2], False, [0, 0, 0], 2)
    turned = torch.convolution(x, w, b[:2], [2, 1, 2], [0, 1, 0], [1, 1, 1], True, [1, 0, 0], 1)
    return plain, turned, F.conv3d(x.half(), w.half(), b.half(), groups=2), torch.convolution(x.bfloat16(), w.bfloat16(), None, [1, 1, 1], [0, 0, 0], [1, 1, 1], False, [0, 0, 0], 2).float()


@model(rnd(5, 2), torch.tensor([True, False, True, True, False]), more=[(rnd(5, 2, seed=1), torch.tensor([False, False, False, True, False]))])
def complex_chosen(x, m):
    z = torch.view_as_complex(x)
    return torch.view_as_real(torch.masked_select(z, m)), torch.nonzero(torch.where(m, z, 0))


@model(rnd(10, 2))
@pairs
def complex_strides(a):
    """Strides count complex numbers, though the bytes are floats."""
    return a.as_strided((2, 2), (1, 2), 0), a.as_strided((3,), (2,), 1), torch.view_as_real(a).as_strided((4,), (3,), 2)


@model(rnd(4, 4, 2), rnd(4, 4, 2, seed=1))
@pairs
def complex_shapes(a, b):
    a = torch.cat([a[:3], a[:1] * 0])
    made = *torch.atleast_3d(a, b[0]), torch.atleast_2d(a[0]), F.channel_shuffle(a[None, :, :, None], 2), torch.column_stack([a, b]), torch.dstack([a, b]), torch.hstack([a, b]), torch.vstack([a, b])
    made += *torch.hsplit(a, 2), *torch.vsplit(a, [1]), *torch.dsplit(a[None], 2), *torch.tensor_split(a, 3), *torch.tensor_split(a, (1, 2), 1), F.pixel_shuffle(a[None, :, :, None], 2)
    i = torch.tensor([[0, 3], [1, 1]])
    made += torch.tensordot(a, b), torch.take(a, i), torch.take_along_dim(a, i.view(4, 1), 1), torch.inner(a, b), torch.kron(a, b), torch.trapezoid(a, dx=0.5), F.pixel_unshuffle(a[None], 2)
    made += torch.diagflat(a), torch.squeeze_copy(a[:1]), torch.t_copy(a), torch.unsqueeze_copy(a, 1), *torch.unbind_copy(a), torch.unfold_copy(a, 1, 2, 1), a.put(i, b[:2, :2]), torch.lerp(a, b, 0.3)
    made += torch.divide(a, b), torch.subtract(a, b), torch.multiply(a, 2), a.index_fill(1, i[0], 3.0), a.scatter_add(1, i, b), torch.eye(3, 2, dtype=a.dtype) * a[:3, :2]
    made += a.any(), a.any(1), torch.any(a, (0, 1)), a.all(), a.all(1), torch.all(a, (0, 1)), torch.count_nonzero(a), torch.count_nonzero(a, 1), torch.isreal(a), torch.block_diag(a.real, b), torch.as_strided_copy(b, (3, 2), (2, 4), 0), a.new_ones(3, dtype=torch.float64), torch.zeros_like(a, dtype=torch.float32)
    return made


@model(half(4, 9), torch.tensor([-8.9, 12.0, 300.0, 60000.0, -0.004, 0.0]).half())
def halves_rounded_once(x, y):
    return [f(v).float() for v in (x, y, x.bfloat16() * 9) for f in (F.mish, torch.sinc, lambda v: torch.exp2(v.clamp(max=15)))]


BIG = torch.tensor([5 << 60, 3 << 53, 12345678901234567, 9007199254740993, 77, 0, -1, -9007199254740993, -987654321987654321])


@model(BIG, BIG.flip(0) // 1003 * 2 + 1, rnd(5), dynamic=(None, None, {0: Dim("n", min=2, max=9)}), more=[(BIG + 12, BIG // 77 * 2 + 1, rnd(7))])
def integers_past_doubles(x, y, z):
    """Integers of 64 bits are divided exactly, by numbers of either sign and by sizes that are open."""
    n = z.shape[0]
    parts = [f(x, by) for f in (torch.remainder, torch.fmod, torch.floor_divide) for by in (64, -1000003, y, n, -n)]
    parts += [torch.div(x, by, rounding_mode="trunc") for by in (64, -1000003, y, n)]
    return *parts, torch.gcd(x, y), x.int() % 7, x.int() % -7, (x.int() % 100).to(torch.uint8) % 7


@model(rnd(2, 12), rnd(12, 2, seed=1), dynamic=({1: Dim("n", min=4, max=40)}, {0: Dim("m", min=8, max=40)}),
       more=[[rnd(2, 15, seed=2), rnd(9, 2, seed=3)], [rnd(2, 4, seed=4), rnd(40, 2, seed=5)]])
def fourier_open_sizes(x, y):
    """Of one axis, of two, and of numbers with a half that the other gives; lengths are no powers of two."""
    f, pairs = torch.fft, torch.view_as_real
    z = torch.view_as_complex(y)
    one = pairs(f.fft(x)), pairs(f.ifft(z)), pairs(f.fft(x, norm="ortho")), pairs(f.rfft(x, norm="forward"))
    return *one, f.irfft(z), f.hfft(z), f.fftn(x).real, pairs(f.fftn(x.double(), dim=(0, 1))), f.fftshift(x), f.ifftshift(x)


@model(rnd(3, 12), dynamic=({1: Dim("n", min=2, max=40)},), more=[[rnd(3, 15, seed=1)], [rnd(3, 2, seed=2)]])
def variance_open_sizes(x):
    return x.var(1), x.std(1, keepdim=True), x.std(), *torch.var_mean(x, 1), x.var(1, correction=0), x.double().std()


@model(rnd(3, 4), torch.arange(-6, 6).view(2, 6), rnd(2, 3).half(), more=[(rnd(3, 4, seed=1), torch.arange(12).view(2, 6) << 40, rnd(2, 3, seed=2).half())])
def bits_of_other_dtypes(x, k, h):
    """Bytes as elements of another dtype: of as many bytes, of fewer and of more; of inputs, constants and results, as results and between."""
    y = x * 2
    i = y.view(torch.int32)
    mantissa = (i & 0x7FFFFF) | 0x3F800000
    table = torch.tensor([1.5, -2.0]).view(torch.int32)
    return (x.view(torch.int32), i, mantissa.view(torch.float32), y.view(torch.uint8), (k + 1).view(torch.int32), k.view(torch.float32).view(torch.int64),
            (i + 1).view(torch.int64), h.view(torch.int16) + 1, y.view(torch.int16).view(6, 4).view(torch.float32), y.t().view(torch.int32) + 1,
            table + 1, y.view(4, 3).view(torch.int32).view(torch.float32) + y.view(4, 3), y.bool().view(torch.uint8), y[1].view(torch.float64))


@model(rnd(3, 4, 5), torch.arange(-7, 8), rnd(9).half(), more=[(rnd(3, 4, 5, seed=1).log(), torch.arange(15) << 40, rnd(9, seed=2).half())])
def hashes(x, k, h):
    f = torch.hash_tensor
    return f(x), f(x, 1), f(x, (0, -1), keepdim=True), f(x.double(), 2), f(k), f(k.to(torch.int8)), f(k > 2), f(h), f(h.bfloat16()), f(k[3])


@model(rnd(4, 6), dynamic=({0: Dim("rows", min=2, max=8)},), more=[[rnd(8, 6, seed=1)], [rnd(2, 6, seed=2)]])
def bits_of_open_sizes(x):
    return (x * 2).view(torch.int32) ^ 1, x.view(torch.int16)


ROWS = {0: Dim("rows", min=2, max=8), 1: Dim("columns", min=3, max=11)}


@model(rnd(4, 6), dynamic=(ROWS,), more=[[rnd(2, 3, seed=1)], [rnd(8, 11, seed=2)], [torch.full((3, 9), float("nan"))]])
def running_open_sizes(x):
    k = (x * 4).nan_to_num().to(torch.int32)
    return torch.cumprod(x, 1), torch.cumprod(k, 0), torch.logcumsumexp(x, 0), *torch.cummax(x, 1), *torch.cummin(k, 1)


@model(rnd(4, 6), dynamic=(ROWS,), more=[[rnd(3, 4, seed=1)], [rnd(8, 11, seed=2)], [rnd(8, 4, seed=3)]])
def diagonals_open_sizes(x):
    return x.diagonal(), x[:, None].diagonal(-1, 0, 2), torch.diagonal(x, 1)


@model(rnd(4, 6), torch.tensor([0.0, 0.3, 1.0]), dynamic=(ROWS, None),
       more=[[rnd(2, 3, seed=1), torch.tensor([0.5, 0.1, 0.9])], [rnd(8, 11, seed=2).log(), torch.tensor([0.5, 0.1, 0.9])]])
def quantiles_open_sizes(x, q):
    return x.quantile(0.3, 1), x.nanquantile(q, 0, keepdim=True), x.double().quantile(0.75), x.quantile(q, 1, interpolation="higher")


@model(torch.tensor([[3, -7, 2], [-1, 0, 11]]), torch.tensor([[41, 64, 70], [-3, 2, 18]]), torch.tensor([31, 0, 200], dtype=torch.uint8),
       more=[(torch.tensor([[-1, 1, -2], [0, 5, 1 << 40]]), torch.tensor([[-2, -9, 63], [0, 1 << 40, 3]]), torch.tensor([1, 255, 7], dtype=torch.uint8))])
def powers_that_wrap(x, n, k):
    y = x.to(torch.int8), n.clamp(-100, 100).to(torch.int8), x.to(torch.int32)
    return x ** n, y[0] ** y[1], y[2] ** n.to(torch.int32), 7 ** n, (-2) ** n, k ** k, 3 ** k, x ** n[0]


@model(rnd(10), rnd(10, 1, 10, seed=1), rnd(10, 10, seed=2) > -0.5)
def masks_wider_than_what_they_choose_from(x, y, m):
    return torch.masked_select(x, m) * 2, torch.masked_select(y, m)


@model(torch.tensor([[3, 0], [2, 1]], dtype=torch.uint8), rnd(2, 2))
def whether_all(x, y):
    return x.all(), x.all(0), torch.all(x, (0, 1)), x.any(0), y.all(), torch.all(y, (1,), True)


@model(rnd(2, 3, 4).double(), rnd(3, seed=1).double(), rnd(3, seed=2).double().abs())
def batch_norm_doubles(x, mean, var):
    norm = torch.ops.aten.native_batch_norm
    return norm(x, mean, var, mean, var, False, 0.5, 1e-5)[0], F.batch_norm(x[:, :, 0], mean, var), F.batch_norm(x, mean, var, None, mean)


@model(rnd(0), rnd(0))
def batch_norm_of_nothing(x, y):
    """In training the statistics move, but there are none."""
    return F.batch_norm(x, y.clone(), y.abs(), training=True, momentum=0.5)


@model(half(5, 5, 5), half(5, seed=1))
def distance_of_halves(x, y):
    """The fourth powers are more than a half can be."""
    return torch.dist(x * 8, y, 4), F.pairwise_distance(x * 8, y, 5.0)


@model(rnd(2, 4, 6, 8), torch.arange(24).reshape(2, 3, 4))
def moved(x, i):
    return (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), torch.channel_shuffle(x, 2), x.roll(3, -1), x.roll((-1, 2), (2, 3)), i.roll(5), i.roll((1, 1), (0, 0)), x.flip(1), i.flip((0, 2)))


@model(rnd(2, 4, 6, 8))
def borders(x):
    return (F.pad(x, (1, 2, 3, 0), mode="reflect"), F.pad(x, (0, 5, 7, 1), mode="replicate"), F.pad(x, (1, 0, 2, 3), mode="circular"), F.pad(x, (-1, 2, 1, -2), mode="replicate"),
            F.pad(x[0], (3, 1), mode="reflect"), F.pad(x[0], (2, 2), mode="circular"), F.pad(x[0], (-1, 3), mode="circular"), F.pad(x, (1, 1, 1, 1, 1, 1), mode="constant", value=2.0),
            F.pad(x, (1, 1, 0, 2, 1, 1, 0, 1)), F.pad(x[None], (1, 1, 1, 1, 1, 1), mode="replicate"), F.pad(x[None], (1, 1, 1, 1, 1, 1), mode="reflect"))


@model(rnd(2, 6, 11))
def pools_1d(x):
    return F.max_pool1d(x, 3), F.max_pool1d(x, 3, 2, 1), F.max_pool1d(x, 2, 2, dilation=2, ceil_mode=True), F.avg_pool1d(x, 3, 2, 1), F.avg_pool1d(x, 3, 2, 1, count_include_pad=False), F.adaptive_avg_pool1d(x, 1), F.adaptive_avg_pool1d(x, 4), F.avg_pool1d(x[0], 2)


@model(rnd(2, 6, 5, 7) * 2 + 1)
class group_norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.GroupNorm(3, 6), nn.GroupNorm(1, 6, affine=False), nn.GroupNorm(6, 6, eps=1e-3)
        self.a.weight.data.copy_(rnd(6, seed=3))
        self.a.bias.data.copy_(rnd(6, seed=4))

    def forward(self, x):
        return F.silu(self.a(x)), self.b(x), self.c(x) + x, self.a(x[:, :, 0, 0])


@model(rnd(3, 5, 8))
def statistics(x):
    return x.std(1), x.std(-1, unbiased=False, keepdim=True), x.var((0, 2)), x.var(), torch.var(x, 1, correction=2), *torch.var_mean(x, 2), torch.std(x), F.normalize(x, dim=-1), F.normalize(x, p=1, dim=0)


@model(rnd(2, 6, 5) * 3)
class more_activations(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.each = nn.PReLU(), nn.PReLU(6)
        self.each.weight.data.copy_(rnd(6, seed=5))

    def forward(self, x):
        y = x.clone()
        F.leaky_relu_(y, 0.3)
        F.elu_(y)
        return self.one(x), self.each(x), F.selu(x), F.celu(x, 0.7), F.softshrink(x, 0.6), F.glu(x, 1), x.clamp_max(0.4), F.hardsigmoid(x, inplace=False), y.clamp_max_(2)


@model(rnd(4), rnd(3, seed=1))
def grids(x, y):
    return *torch.meshgrid(x, y, indexing="ij"), *torch.meshgrid(x, y, indexing="xy"), x.view(4, 1).expand_as(x.view(4, 1) * y), (x * 2).view_as(x)


def transposed(name, x, cls=nn.ConvTranspose2d, **kw):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = cls(**kw)

        def forward(self, x):
            return F.relu(self.c(x))
    M.__name__ = name
    model(x)(M)


transposed("transposed_doubles", rnd(2, 8, 5, 6), in_channels=8, out_channels=5, kernel_size=4, stride=2, padding=1)
transposed("transposed_groups", rnd(1, 8, 5, 5), in_channels=8, out_channels=12, kernel_size=3, stride=3, groups=4, output_padding=2, bias=False)
transposed("transposed_dilated", rnd(1, 3, 6, 5), in_channels=3, out_channels=4, kernel_size=3, stride=2, dilation=2, padding=2)
transposed("transposed_1d", rnd(2, 6, 9), nn.ConvTranspose1d, in_channels=6, out_channels=3, kernel_size=7, stride=3, padding=2)
transposed("transposed_wide", rnd(1, 150, 3, 4), in_channels=150, out_channels=140, kernel_size=2, stride=2)


# -- batch norm -------------------------------------------------------------------------------------


@model(rnd(2, 6, 5, 5))
class norm_alone(nn.Module):
    def __init__(self):
        super().__init__()
        self.b, self.c = nn.BatchNorm2d(6), nn.BatchNorm2d(6, affine=False)

    def forward(self, x):
        return self.b(x), self.c(x + 1)


@model(rnd(2, 6, 5, 5))
class norm_shared(nn.Module):
    """The convolution's result is read twice, and another node has its weight too, so nothing is folded."""

    def __init__(self):
        super().__init__()
        self.c, self.d, self.b = nn.Conv2d(6, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.d.weight = self.c.weight

    def forward(self, x):
        y = self.c(x)
        return self.b(y) + y, self.b(self.d(x))


@model(rnd(7, 6))
class norm_linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.b = nn.Linear(6, 9, bias=False), nn.BatchNorm1d(9)

    def forward(self, x):
        return F.relu(self.b(self.l(x)))


@model(rnd(2, 3, 16, 16))
class block(nn.Module):
    """Depthwise and pointwise convolutions, a residual, in-place activations and additions."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 12, 3, 2, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU6(inplace=True))
        self.d = nn.Sequential(nn.Conv2d(12, 12, 3, 1, 1, groups=12, bias=False), nn.BatchNorm2d(12), nn.Hardswish(inplace=True))
        self.p = nn.Sequential(nn.Conv2d(12, 12, 1, bias=False), nn.BatchNorm2d(12))
        self.l = nn.Linear(12, 5)

    def forward(self, x):
        x = self.a(x)
        y = self.p(self.d(x))
        y += x
        return self.l(F.dropout(y.relu_().mean((2, 3)), training=False))


# -- shapes -----------------------------------------------------------------------------------------


@model(rnd(2, 6, 8))
def shapes(x):
    return (x.reshape(4, -1), x.permute(2, 0, 1).contiguous(), x.transpose(1, 2).flatten(1), torch.cat([x, x[:, :2]], 1), x[:, 1:5:2], x[:, -1], x[:, None].squeeze(1),
            x[:, :1].expand(2, 5, 8), F.pad(x, (1, 2)), F.pad(x, (1, 1, 2, 0), value=-3.0), x.view(2, 3, 2, 8), x.unflatten(2, (2, 4)), x.clone(), x.mT.reshape(2, -1))


@model(rnd(3, 4))
def repeated_outputs(x):
    y = x + 1
    return y, y, x, y.view(4, 3), y.reshape(12)


@model(rnd(3, 4), rnd(3, 4, seed=1))
def unused_input(x, y):
    return x * 2


@model(rnd(2, 3))
class constant_output(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("c", rnd(4, seed=3))

    def forward(self, x):
        return x + 1, self.c


# -- writes and aliases ------------------------------------------------------------------------------


@model(rnd(3, 4))
def write_to_copy(x):
    y = x.clone()
    y.add_(1)
    z = y.view(4, 3)
    z.mul_(2)
    return y, z + 1


@model(rnd(3, 4))
def chain_in_place(x):
    y = x * 2
    y.add_(x).mul_(0.5).relu_()
    return y


@model(rnd(3, 4), more=[(rnd(3, 4, seed=2),), (rnd(3, 4, seed=3),)], stateful=True)
class counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.ones(3, 4))
        self.register_buffer("calls", torch.tensor(3))

    def forward(self, x):
        self.sum.add_(x)
        self.calls += 1
        return self.sum * 2, self.calls + 0


# -- dynamic sizes ------------------------------------------------------------------------------------


@model(rnd(3, 4, 5), dynamic=({0: Dim("n", min=1, max=16)},), more=[(rnd(1, 4, 5, seed=1),), (rnd(16, 4, 5, seed=2),)])
class dynamic_flatten(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(20, 6)

    def forward(self, x):
        return self.l(x.flatten(1)).softmax(-1)


@model(rnd(2, 3, 16, 16), dynamic=({0: Dim("n", min=1, max=4)},), more=[(rnd(1, 3, 16, 16, seed=1),), (rnd(4, 3, 16, 16, seed=2),)])
class dynamic_cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.b, self.l = nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.Linear(8 * 16, 4)

    def forward(self, x):
        y = F.max_pool2d(F.relu(self.b(self.c(x))), 2)
        return self.l(torch.flatten(y, 1))


@model(rnd(3, 6), dynamic=({0: Dim("rows", min=2, max=8)},), more=[(rnd(2, 6, seed=1),), (rnd(8, 6, seed=2),)])
def dynamic_rows(x):
    return x.view(x.shape[0] * 2, 3), x.sum(0), x.reshape(-1)


# -- writing them ---------------------------------------------------------------------------------------


KERNEL = rnd(4, 3, 3, 3, seed=9) * 0.1
N, B = Dim("n", min=2, max=20), Dim("b", min=1, max=5)


@model(rnd(2, 6, 3), rnd(2, 5, 3, seed=1), dynamic=({0: B, 1: 2 * N}, {0: B, 1: N + 2}),
       more=[(rnd(1, 4, 3), rnd(1, 4, 3)), (rnd(5, 40, 3), rnd(5, 22, 3))])
def sizes_as_numbers(x, y):
    """Expressions over sizes as sizes, operands, fills and results."""
    b, t, _ = x.shape
    u = y.shape[1]
    k = torch.sym_max(t, u)
    return (x.reshape(b * t, 3) * (t % 3), x[:, : t // 2] + u, torch.cat([x, y], 1) - b * u,
            torch.full((k, b), t * u), F.pad(x, (0, 0, 0, t % 4)), x.mean() * t / (b + 1),
            b * t, t + u - 1, t // 3, torch.sym_min(t, u))


@model(rnd(6, 4), rnd(4, 4, seed=1), dynamic=({0: 2 * N}, {0: N + 1}), more=[(rnd(4, 4), rnd(3, 4)), (rnd(40, 4), rnd(21, 4))])
def floats_of_sizes(a, b):
    n = a.shape[0]
    return a.mean() * n**0.5, b * (n / 3), a + (n * 0.25 + 1) * 2, n * 0.5


@model(rnd(6, 8), dynamic=({0: Dim.AUTO, 1: 4 * N},), more=[(rnd(8, 16),), (rnd(64, 80),)])
def divisible(x):
    torch._check(x.shape[0] % 2 == 0)
    return x.view(-1, 4).sum(1), x.reshape(2, x.shape[0] // 2, x.shape[1]).mean(2)


@model(rnd(2, 3, 9, 12), dynamic=({0: B, 2: Dim("h", min=6, max=20), 3: Dim("w", min=6, max=24)},), more=[(rnd(1, 3, 6, 6),), (rnd(5, 3, 20, 24),)])
def open_images(x):
    y = F.avg_pool2d(F.conv2d(F.pad(x, (1, 2, 0, 1)), KERNEL, stride=2, padding=1), 2)
    return y, F.max_pool2d(x, 3, 2, 1), x.flatten(2).mean(2), y.shape[2] * y.shape[3]


@model(rnd(2, 4, 9, 12), rnd(3, 4, 30, seed=1),
       dynamic=({0: B, 2: Dim("h", min=6, max=20), 3: Dim("w", min=6, max=24)}, {2: Dim("length", min=8, max=64)}),
       more=[(rnd(1, 4, 6, 6), rnd(3, 4, 8)), (rnd(5, 4, 20, 24), rnd(3, 4, 64)), (rnd(2, 4, 7, 23, seed=2), rnd(3, 4, 33, seed=2))])
class windows_of_open_images(nn.Module):
    """Convolutions, pools, means, joins, paddings and slices, whose images are as large as a call says."""
    def __init__(self):
        super().__init__()
        self.conv = settle(nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6()))
        self.deep = nn.Conv2d(8, 8, 3, stride=2, padding=2, dilation=2, groups=8)
        self.wide = nn.Conv2d(8, 8, 7, padding=3, groups=8)
        self.pairs = nn.Conv2d(8, 6, (1, 3), groups=2)
        self.back = nn.ConvTranspose2d(8, 5, 3, stride=2, padding=1, output_padding=1)
        self.line = nn.Conv1d(4, 6, 5, stride=2, padding=2)
        self.last = nn.Linear(8, 3)

    def forward(self, x, s):
        y = self.conv(x)
        joined = torch.cat([y, self.wide(y), y[:, 2:5]], 1)
        pools = F.max_pool2d(y, 3, 2, 1), F.avg_pool2d(y, 2), F.avg_pool2d(y, 3, 2, 1), F.avg_pool2d(y, 3, 1, 1, count_include_pad=False)
        down = self.deep(y)
        line = F.relu(self.line(s))
        return (joined, *pools, self.back(down), self.pairs(F.pad(y, (1, 0, 2, 1), value=0.5)), line.flatten(1),
                self.last(y.mean((2, 3))), F.adaptive_avg_pool2d(down, 1))


@model(rnd(6, 3), dynamic=({0: 2 * N},), more=[(rnd(4, 3),), (rnd(40, 3),)])
def open_views(x):
    n = x.shape[0]
    a = x.view(n * 3)
    b = torch.cat([x, x[1:]], 0)
    return a, b, x.unsqueeze(1).expand(n, 2, 3), x[-1], x[: n // 2], x.t().reshape(-1)


@model(rnd(3, 4))
def numbers_out(x):
    return x + 1, 3, 2.5, True, None, x.shape[1]


@model(rnd(3, 4), more=[(rnd(3, 4, seed=2),), (rnd(3, 4, seed=3),)], stateful=True)
class states(nn.Module):
    """A buffer with initial values, one that is read and written, a constant that is written, and a
    view of a buffer as output."""
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.arange(12.0).view(3, 4))
        self.register_buffer("last", torch.zeros(4), persistent=False)
        self.cache = [torch.ones(3)]

    def forward(self, x):
        self.total.add_(x)
        old = self.last.clone()
        self.last.copy_(x[0] + self.total[1])
        self.cache[0].mul_(2)
        return self.total[:, 1:3] * self.cache[0].unsqueeze(1), old, self.total.sum(0)


@model(rnd(2, 6, 6), more=[(rnd(2, 6, 6, seed=2),)])
class writes_through_views(nn.Module):
    """Every kind of view that is written through."""
    def forward(self, x):
        y, z = x.clone(), x * 2
        y[..., 1::2] = x[..., ::2]
        y[1, :5:3].add_(1.5)
        y.diagonal(1, -2, -1).mul_(3.0)
        y.narrow(1, 2, 3).neg_()
        z.movedim(0, -1)[1].add_(4.0)
        z.swapaxes(1, 2)[:, :2].zero_()
        z.tensor_split(4, 1)[1].copy_(z.tensor_split(4, 1)[0])
        z.T.ravel().add_(100.0)
        return y, z.relu_(), z.reshape_as(x.view(4, 18)).mul_(0.5)


@model(rnd(4, 6), torch.tensor([0, 2]), more=[(rnd(4, 6, seed=2), torch.tensor([3, 1]))])
class writes_in_place(nn.Module):
    """Operators that write, or change the shape of, their input."""
    def forward(self, x, i):
        a, b, c = x.clone(), x.clone(), x.clone()
        a.index_add_(0, i, torch.ones(2, 6)).index_fill_(1, i, 3.0)
        a.addmm_(x[:, :4], x).addr_(x[:, 0], x[0]).renorm_(2, 0, 1.5)
        b.t_().unsqueeze_(1).add_(1.0).squeeze_(1)
        b.transpose_(0, 1)[0].zero_()
        b.greater_(0.25).add_(x).not_equal_(x)
        torch.broadcast_tensors(c, c[0])[0].add_(1.0)
        torch.atleast_3d(c, c[0])[1].mul_(2.0)
        torch.atleast_2d(c[1]).neg_()
        return a, b, c.adjoint().mul_(0.5), c


@model(rnd(4, 6), more=[(rnd(4, 6, seed=2),)])
class writes_to_out(nn.Module):
    """out overloads: of one result and of two, to parts, to an operand, to another dtype."""
    def forward(self, x):
        a, b, c, i = torch.zeros(8, 6), x.clone(), torch.empty(4), torch.empty(4, dtype=torch.int64)
        torch.mul(x, x, out=a[2:6])
        torch.max(x, 1, out=(c, i))
        torch.sin(b, out=b)
        d = torch.sum(x, 1, out=torch.empty(4, dtype=torch.float64))
        e = torch.div(x, 0.3, rounding_mode="floor", out=torch.empty(4, 6))
        torch.sort(x, out=(torch.empty(4, 6), torch.empty(4, 6, dtype=torch.int64)))
        return a, b, c, i, d, e, torch.arange(5, out=torch.empty(5)), torch.cat([x, e], 1, out=torch.empty(4, 12))


@model(rnd(3, 4), more=[(rnd(3, 4, seed=2),), (rnd(3, 4, seed=3),)], stateful=True)
class states_on_one_storage(nn.Module):
    def __init__(self):
        super().__init__()
        t = torch.arange(12.0).view(3, 4)
        self.register_buffer("a", t)
        self.register_buffer("b", t)

    def forward(self, x):
        self.a.add_(x)
        y = self.b * 2
        self.b.mul_(0.5)
        return y, self.a + 1


# -- what backends take ------------------------------------------------------------------------


class PackedAttention(nn.Module):
    """Heads split, attended and merged, of one product for q, k and v or of three; with norms around."""

    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(24), nn.Linear(24, 72), nn.Linear(24, 24)
        self.q, self.k, self.v = nn.Linear(24, 24), nn.Linear(24, 12), nn.Linear(24, 12)

    def merge(self, y):
        return y.transpose(1, 2).reshape(y.shape[0], y.shape[2], 24)

    def forward(self, x, mask):
        b, s, _ = x.shape
        h = self.norm(x)
        q, k, v = self.qkv(h).reshape(b, s, 3, 4, 6).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(self.merge(F.scaled_dot_product_attention(q, k, v)))
        q = self.q(x).view(b, s, 4, 6).transpose(1, 2)
        k, v = (f(x).view(b, s, 2, 6).transpose(1, 2) for f in (self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return x + F.gelu(self.merge(y), approximate="tanh")


NO_KEY = torch.arange(35).view(5, 7)[:, :5] % 3 > 0  # of a 5 by 5 mask; made to leave a row none below
NO_KEY = NO_KEY & (torch.arange(5) != 2)[:, None]


@model(rnd(2, 5, 24), NO_KEY)
class packed_attention(PackedAttention):
    pass


@model(rnd(2, 5, 24), NO_KEY, dynamic=({0: Dim("batch", min=1, max=4)}, None), more=[(rnd(1, 5, 24, seed=1), NO_KEY), (rnd(4, 5, 24, seed=2), NO_KEY)])
class packed_attention_open(PackedAttention):
    pass


@model(rnd(2, 6), rnd(2, 5), rnd(2, 5, seed=1), dynamic=({0: B}, {0: B}, {0: B}), more=[(rnd(1, 6, seed=2), rnd(1, 5), rnd(1, 5, seed=3))])
class lstm_cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LSTMCell(6, 5), nn.LSTMCell(5, 4, bias=False)

    def forward(self, x, h, c):
        h, c = self.first(x, (h, c))
        return (h, c, *self.second(h, None))


@model(rnd(2, 6, 5, 8))
def axes(x):
    return (x.mean(1), x.mean((0, 2)), x.mean((1, 3), keepdim=True), x.sum(0), x.sum((1, 2)), x.mean((0, 1, 2, 3), keepdim=True),
            x.mean((2, 3)), x.amax((2, 3)), x.amax((-1, -2), keepdim=True))


@model(rnd(1, 3, 5, 8))
def resized(x):
    return (F.interpolate(x, scale_factor=2, mode="bilinear"), F.interpolate(x, size=(7, 4), mode="bilinear"),
            F.interpolate(x, size=(10, 11), mode="bilinear", align_corners=True), F.elu(x), F.elu(x, 0.5))


@model(rnd(2, 6, 8, 12) * 3)
class packed_norms(nn.Module):
    """Norms whose weight and bias can be folded into the products after them, across moves."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(n) for n in (12, 12, 48, 12))
        for i, n in enumerate(self.norms):
            n.weight.data.copy_(rnd(*n.weight.shape, seed=10 + i))
            n.bias.data.copy_(rnd(*n.bias.shape, seed=20 + i))
        self.q, self.k, self.merge, self.tied = nn.Linear(12, 7), nn.Linear(12, 12, bias=False), nn.Linear(48, 24, bias=False), nn.Linear(12, 12)
        self.point, self.down = nn.Conv2d(12, 5, 1), nn.Conv2d(12, 9, 2, stride=2, bias=False)

    def forward(self, x):
        a, b = self.norms[0](x), self.norms[1](x).permute(0, 3, 1, 2)
        c = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        d = self.norms[3](x)
        return (self.q(a.roll((2, -1), (1, 2))), self.k(a.reshape(2, 3, 2, 4, 2, 12).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, 12)),
                self.point(b), self.down(b), self.merge(self.norms[2](c)), self.tied(d) + d, self.tied(x))


@model(rnd(2, 3, 4, 5), rnd(2, 1, 4, 1), rnd(5))
class windows_repeated(nn.Module):
    """Repetitions by products with ones, before convolutions and alone; pools of one element; softmax along any axis."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)

    def forward(self, x, y, z):
        a = self.conv(x)
        return (y.expand(2, 3, 4, 5) * x, (y * 2).expand(3, 2, 7, 4, 6), (z + 1).expand(2, 5) - 1, a[:, :, :1].expand(-1, -1, 3, -1).relu(), (x[:, :2] * 2).repeat_interleave(2, 1),
                F.interpolate(a, scale_factor=2), F.interpolate(x * 2, size=(12, 5)), F.interpolate(a[:, :1], scale_factor=(1, 7)), F.avg_pool2d(a, 1, 2), F.avg_pool2d(a[:, :1], 1, (1, 3)),
                a.softmax(1), x.neg().softmax(2), a.softmax(3), x.neg().softmax(0), (z * 2).softmax(0), x[0].neg().softmax(1))


@model(rnd(2, 3, 4), dynamic=({0: Dim("batch", min=1, max=5)},), more=[(rnd(5, 3, 4, seed=1),), (rnd(1, 3, 4, seed=2),)])
def windows_repeated_open(x):
    y = (x * 2)[:, :, None].expand(-1, -1, 3, -1).reshape(-1, 9, 4)
    return y.softmax(1), F.interpolate(x.neg()[:, None], scale_factor=3), (x + 1).sum(2, keepdim=True).expand_as(x) / 2


@model(rnd(2, 40, 13, 11))
class windows_packed(nn.Module):
    """Filters that XNNPACK packs in tiles of outputs: with a last tile left open, for two nodes, without biases, of fewer outputs than a tile."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(40, 71, 3, padding=1), nn.Conv2d(71, 71, (3, 1), padding=(1, 0), bias=False)
        self.c, self.d = nn.Conv2d(71, 96, 3, 2, 2, dilation=2), nn.Conv2d(96, 9, 3)

    def forward(self, x):
        x = F.relu(self.b(F.relu(self.b(F.relu(self.a(x))))))
        return self.d(F.relu6(self.c(x)))


@model(rnd(2, 6, 15, 16), rnd(2, 4, 40))
class windows(nn.Module):
    """Depthwise, larger than XNNPACK has kernels for; what rolls."""

    def __init__(self):
        super().__init__()
        self.same, self.inner = nn.Conv2d(6, 6, 7, padding=3, groups=6), nn.Conv2d(6, 6, 7, groups=6, bias=False)
        self.wide, self.steps = nn.Conv2d(6, 12, (6, 9), dilation=(2, 1), padding=(2, 4), groups=6), nn.Conv2d(6, 6, 9, stride=(2, 3), padding=1, groups=6)
        self.line, self.row, self.large = nn.Conv1d(4, 4, 31, padding=15, groups=4), nn.Conv1d(4, 8, 27, groups=4), nn.Conv2d(6, 6, (3, 26), padding=(1, 13), groups=6)

    def forward(self, x, s):
        y = F.relu(self.same(x)) + x.roll((3, -2), (2, 3))
        return y, self.inner(x), self.wide(x), self.steps(x), self.line(s).roll(-7, 2), self.row(s), self.large(x)


@model(rnd(2, 6, 8, 4))
class transposes_around_views(nn.Module):
    """Images as rows of heads and back, between convolutions; one is read in between, one splits no axis evenly."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(6, 12, 1), nn.Conv2d(12, 6, 3, padding=1), nn.Linear(6, 5)
        self.scale = nn.Parameter(torch.linspace(0.5, 2, 12).view(12, 1, 1))

    def forward(self, x):
        y = self.a(x) * self.scale
        heads = y.flatten(2).reshape(2, 3, 4, 32).transpose(2, 3)
        back = (heads * 2).transpose(2, 3).reshape(2, 12, 8, 4)
        patches = y.reshape(2 * 12 * 4, 2, 2, 2).transpose(1, 2).reshape(2, 12, 8, 4).transpose(1, 3).reshape(8, 8, 12)
        odd = y.permute(0, 2, 3, 1).reshape(2, 24, 16).transpose(1, 2)
        turned = y.transpose(2, 3)
        return self.b(back), heads.softmax(-1), patches.relu(), odd.neg(), turned, turned.transpose(2, 3).transpose(1, 3).sigmoid(), self.c(x.transpose(1, 3)).transpose(1, 3)


@model(rnd(2, 3, 8), dynamic=({0: Dim("batch", min=1, max=5)},), more=[(rnd(5, 3, 8, seed=1),), (rnd(1, 3, 8, seed=2),)])
def region_outputs(x):
    y = F.relu(x)
    return y, y, x, y.select(1, 0), y.sum(), torch.ones(2, 3), y.view(-1, 24)


@model(torch.tensor(0.5), rnd(2, 3))
def region_outputs_of_numbers(n, x):
    y = n.view(1)
    return y, y.exp(), n.view(1, 1) * x, n * x


@model(rnd(3, 70))
def short_floats(x):
    return (x * 100).half().float(), x.bfloat16().float(), (x * 1e-6).half().double(), (x * 9).half().to(torch.int32)


@model(rnd(2, 12, 6, 5))
class pixels_channels_last(nn.Module):
    """ConvNeXt's block, and a convolution of pixels whose permuted input others read."""

    def __init__(self):
        super().__init__()
        self.depth = nn.Conv2d(12, 12, 3, padding=1, groups=12)
        self.norm = nn.LayerNorm(12)
        self.up, self.down = nn.Conv2d(12, 48, 1), nn.Conv2d(48, 12, 1, bias=False)
        self.other = nn.Conv2d(12, 7, 1)

    def forward(self, x):
        y = self.norm(self.depth(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        z = x + self.down(F.gelu(self.up(y)))
        p = self.norm(z.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return z, F.relu(self.other(p)), p


# -- corners of operators ------------------------------------------------------------------------
# Much of it the official kernels refuse, or compute otherwise than torch, as it is written here.


@model(rnd(1, 1, 4), rnd(1, 1, 4, seed=1), rnd(2, 4, 9, 5), rnd(6, 4, 2, 3))
def padded_to_same(x, v, y, w):
    """Kernels that reach over more than the image without its padding."""
    return F.conv1d(x, v, padding="same", dilation=2), F.conv2d(y, w, padding="same", dilation=3)


@model(rnd(3, 8).half() * 300, rnd(8).half())
def half_norms(x, w):
    """Squares that f16 does not hold."""
    return F.rms_norm(x, (8,), w, 1e-6), F.rms_norm(x, (8,)), torch.linalg.vector_norm(x, dim=-1), x.std(-1), F.normalize(x, dim=0)


@model(rnd(3, 8).half() * 3, rnd(2, 3, 4).half(), rnd(2, 4, 5).half(), rnd(2, 3, 5).half())
def half_gates(x, a, b, c):
    return F.silu(x), F.hardswish(x), F.hardsigmoid(x), F.glu(x), F.softshrink(x), torch.baddbmm(c, a, b, beta=0.3, alpha=0.7)


@model(torch.arange(-6, 6).view(2, 6), torch.tensor([True, False]))
def formulas_of_integers(x, y):
    """Torch has these formulas of integers, but not the operators that they are of floats."""
    cubic = (x + x**3 * 0.044715) * 0.7978845608028654
    return (x * torch.sigmoid(x), y * torch.sigmoid(y), x * (torch.erf(x / 1.4142135623730951) + 1) * 0.5, x * 0.5 * (torch.tanh(cubic) + 1), torch.clamp(x + 3, 0, 6) / 6,
            x * (torch.clamp(x + 3.0, 0, 6) / 6), 1 / torch.sqrt(x.abs()))


@model(torch.tensor(3.0), torch.tensor([0]), torch.tensor([True, False]))
def single_elements(x, i, p):
    return torch.cumsum(x, 0), torch.index_select(x, 0, i), torch.square(p), p ** True


@model(torch.zeros(0, 1, 0), torch.zeros(0, 3, 3), rnd(3), torch.zeros(2, 0, dtype=torch.uint8), torch.zeros(0), torch.ones(0))
def without_elements(x, y, z, i, m, v):
    return torch.stack([x, x], 1), F.pad(y, (1, 2), mode="circular"), torch.gather(z, 0, i), y.sum(0), F.batch_norm(torch.relu(m), m, v)


@model(rnd(3), torch.tensor([0, 2], dtype=torch.int32), torch.tensor([3, -2 ** 40]))
class vectors(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x, i, k):
        return self.fc(x), torch.gather(x, 0, i), k + 2.5, (k > 0) + 1.5, torch.add(x, i[1], alpha=3)


@model(rnd(1, 2, 6, 6))
def crops(x):
    return F.pad(x, (-1, 1, -2, -1), value=2.5), F.pad(x, (-1, -2)), F.pad(x, (2, -3), value=1), F.pad(x, (-6, 7), value=1)


@model(rnd(1, 4, 32, 1), rnd(4, 32, 16), rnd(1, 1, 16), rnd(8, 16), rnd(1, 1, 1, 16, seed=1), dynamic=(None, None, None, {0: Dim("rows", min=1, max=9)}, None),
       more=[(rnd(1, 4, 32, 1), rnd(4, 32, 16), rnd(1, 1, 16), rnd(1, 16), rnd(1, 1, 1, 16, seed=1))])
def broadcasts_of_less_rank(x, y, row, rows, deep):
    return x * y, y / x, rows - row, row + rows, torch.add(y, x, alpha=2), torch.sub(x, y, alpha=3), y * deep, rows * deep, (x > 0) <= (y > 0)


@model(rnd(3, 5).double(), torch.arange(15).view(3, 5) * (2 ** 33 + 1) - 2 ** 34, torch.arange(6, dtype=torch.uint8).view(2, 3),
       torch.arange(-7, 8) * (2 ** 17 + 1))
def exact_numbers(x, k, b, p):
    """Numbers that f32 cannot hold, and bytes beside numbers below 0."""
    sums = x.sum(0), x.sum(1, keepdim=True), k.sum(0), k.sum(-1), k.sum(), k[0].sum()
    powers = p ** 2, p ** 3
    rests = k % 7, k % -7, x % 0.3, k.to(torch.int8) % -3, b % 4
    return *sums, *powers, *rests, F.log_softmax(x, 1), F.log_softmax(x, 0), torch.sub(b, b + 1, alpha=-3), b.clamp(1, -2), b - 3


@model(*(whole(*shape).to(torch.int64) for shape in ((2, 3, 5), (2, 3, 4), (2, 4, 5))))
def scaled_products(c, a, b):
    return torch.baddbmm(c, a, b, beta=0.2, alpha=1.6), torch.addmm(c[0], a[0], b[0], beta=-1.6, alpha=0.2), torch.baddbmm(c, a, b, beta=2, alpha=3)


@model(whole(2, 4, 7, 8).to(torch.int64), whole(6, 2, 3, 2).to(torch.int64), whole(6).to(torch.int64), whole(4, 3, 2, 3).to(torch.int64),
       whole(4, 5).to(torch.int32), whole(5, 3).to(torch.int32), rnd(3, 4), rnd(4, 5), rnd(3, 5, seed=1), rnd(2, 3, 6).double(), rnd(3, 0), rnd(0, 4))
def products_beyond_float(x, w, v, t, a, b, p, q, c, d, e, g):
    """Windows and products of integers and doubles, products that are scaled, and sums of nothing."""
    windows = F.conv2d(x, w, v, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2), F.conv_transpose2d(x, t, stride=2, padding=1, output_padding=1, groups=2)
    signals = F.conv1d(x[:, :, 0], w[:, :, 0], v, padding=1, groups=2), F.conv_transpose1d(x[0, :, 0], t[:, :, 0], stride=3, dilation=2, groups=2)
    pools = F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(d, 2, 1, 1, count_include_pad=False), F.avg_pool2d(d, 2, divisor_override=3)
    most = F.max_pool2d(x, (3, 2), (2, 3), (1, 1), (2, 1), return_indices=True), F.max_pool2d(d, 2)
    products = a @ b, F.linear(a.double(), b.t().double(), v[:3].double()), x[0] @ x[1].transpose(1, 2), e @ g, torch.addmm(p[:, :1], e, g)
    scaled = torch.addmm(c, p, q, beta=0.5, alpha=-2), torch.addmm(c[0], p, q, beta=0, alpha=3).clamp(min=0), F.relu(torch.addmm(c, p, q, alpha=0.25))
    rows = F.softmax(d, 1), F.log_softmax(d, -1), d.mean(1), d.mean((0, 2), keepdim=True), d.sum(), d.std(2)
    return *windows, *signals, *pools, *most[0], most[1], *products, *scaled, *rows


@model(torch.randint(0, 256, (2, 3, 9, 7), generator=torch.Generator().manual_seed(0), dtype=torch.uint8))
def bytes_resized(x):
    def to(*size, mode="bilinear", **how):
        return F.interpolate(x, *size, mode=mode, **how)
    two = to((13, 16)), to((4, 5)), to((9, 3)), to((1, 7)), to((14, 3), align_corners=True), to(None, (1.7, 0.6)), to(None, (1.05, 2.2))
    four = to((13, 16), mode="bicubic"), to((4, 3), mode="bicubic"), to(None, (1.7, 0.6), mode="bicubic"), to((5, 12), mode="bicubic", align_corners=True)
    smooth = to((4, 16), antialias=True), to((5, 3), mode="bicubic", antialias=True), to((4, 12), mode="nearest"), to(None, (0.5, 1.3), mode="nearest")
    return *two, *four, *smooth


@model(rnd(2, 4, 5, 6).double(), rnd(4, seed=1).double(), rnd(2, 2, 6, 8, seed=2).double(), torch.arange(24).view(2, 3, 4))
def doubles(x, w, q, k):
    """Sums, averages, resizes and norms in doubles, for which the other kernels take floats; and sums of another dtype."""
    sizes = F.interpolate(x, (7, 4), mode="bilinear"), F.interpolate(x, (3, 9)), F.adaptive_avg_pool2d(x, (3, 4)), F.interpolate(x, (8, 7), mode="bilinear", antialias=True)
    norms = F.group_norm(x, 2, w, w), F.layer_norm(x, (5, 6)), F.instance_norm(x), F.layer_norm(x[..., :4], (4,), w, w)
    sums = x.sum(1, dtype=torch.float32), x.float().mean((0, 3), dtype=torch.float64), k.sum(1, dtype=torch.float64), k.mean(2, dtype=torch.float32)
    return *sizes, *norms, *sums, F.scaled_dot_product_attention(q, q * 0.5, q), k.float().sum((0, 1), True, dtype=torch.float64)


@model(rnd(1, 6, 2, 2), rnd(1, 6, 3, 1), rnd(2, 4, 5))
class windows_wider_than_images(nn.Module):
    """Depthwise windows of which some rows meet padding alone."""

    def __init__(self):
        super().__init__()
        self.seven, self.nine = nn.Conv2d(6, 6, 7, padding=3, groups=6), nn.Conv2d(6, 12, 9, padding=4, groups=6)
        self.steps, self.line = nn.Conv2d(6, 6, (15, 3), stride=2, padding=(8, 1), groups=6, bias=False), nn.Conv1d(4, 4, 51, padding=25, groups=4)

    def forward(self, x, y, s):
        return self.seven(x), self.nine(x), self.steps(x), self.seven(y), self.line(s)


@model(torch.tensor(2.5), torch.tensor(-1.0))
def numbers_reduced(x, sign):
    """Axis 0 of a number, which torch lets it have."""
    y = x.sum(dim=0), x.mean(dim=0), x.amax(dim=0, keepdim=True), x.softmax(dim=0), x.logsumexp(dim=0)
    return *y, F.hinge_embedding_loss(x, x), F.hinge_embedding_loss(x, sign), F.cosine_similarity(x, sign, dim=0)


@model(rnd(4, 5), torch.tensor([[-1, 0, -5, 4, 2]]), rnd(1, 1, 3), rnd(4, 2, 3), rnd(4, 1, 5))
def operands_that_spread(x, i, a, b, y):
    return (torch.take_along_dim(x, i, 1), torch.take_along_dim(x, i.abs()), torch.tensordot(a, b, ([0, 1], [0, 1])),
            F.cosine_similarity(x, y, dim=-1), F.cosine_similarity(x, y, dim=1))

# -- loops -----------------------------------------------------------------------------------------

@model(rnd(2, 4), torch.tensor([2, 3]), more=[(rnd(2, 4, seed=1), torch.tensor([0, 0])), (rnd(2, 4, seed=2), torch.tensor([-1, 2]))])
class loop_of_layers(nn.Module):
    """As often as the data says, which may be not at all."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, n):
        return while_loop(lambda i, x: i < n.sum(), lambda i, x: (i + 1, torch.tanh(self.fc(x))),
                          (torch.zeros((), dtype=torch.int64), x))


@model(rnd(3), rnd(3, seed=1), torch.tensor([5]))
def loop_of_dtypes(x, y, n):
    """Carried values of several dtypes are exchanged, kept, negated or doubled."""
    def body(i, a, b, same, flag, small):
        return i + 1, b.clone(), a + i, same.clone(), ~flag, small * 2
    carried = (torch.zeros(1, dtype=torch.int64), x, y, x * y, x > 0, torch.ones(2, dtype=torch.int32))
    return while_loop(lambda i, a, b, same, flag, small: (i < n).all(), body, carried)


@model(rnd(1, 3, 8, 8), more=[(rnd(1, 3, 8, 8, seed=1) * 100,)])
class loop_of_convolutions(nn.Module):
    """Until what is computed is small enough."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x):
        def body(x, n):
            return F.relu(self.norm(self.conv(x))) * 0.5, n + 1
        y, n = while_loop(lambda x, n: (x.abs().mean() > 0.1) & (n < 20), body, (x, torch.zeros((), dtype=torch.int32)))
        return y + 1, n


@model(rnd(3), torch.tensor(True), more=[(rnd(3), torch.tensor(False))])
def branches_that_fold(x, p):
    """The result of a branch becomes a constant when it is folded, and lies among the weights."""
    return torch.cond(p, lambda x: torch.ones(3) * 2.5, lambda x: torch.arange(3.0), (x,)) + x


@model(rnd(3), torch.tensor(True), more=[(rnd(3), torch.tensor(False))])
def loop_in_a_branch(x, p):
    def loop(x):
        return while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x * 0.5 + 1), (torch.zeros((), dtype=torch.int64), x))[1]
    return torch.cond(p, lambda x: loop(x) + x, lambda x: x - loop(x * 2), (x,))


@model(rnd(2, 3), torch.tensor(3), torch.tensor(2), more=[(rnd(2, 3, seed=1), torch.tensor(0), torch.tensor(5))])
def loop_in_a_loop(x, n, m):
    """The inner loop runs more often from turn to turn, and contains a branch."""
    def outer(i, x):
        def inner(k, y):
            return k + 1, torch.cond(y.sum() > 0, lambda y: y * 0.9, lambda y: 0.5 - y, (y,))
        return i + 1, while_loop(lambda k, y: k < m + i, inner, (torch.zeros_like(i), x))[1] + x
    return while_loop(lambda i, x: i < n, outer, (torch.zeros((), dtype=torch.int64), x))


@model(rnd(2, 5), dynamic=({0: Dim("rows", max=8)},), more=[(rnd(6, 5, seed=1),)])
def loop_of_open_sizes(x):
    def body(i, x, y):
        return i + 1, x * 0.5 + x.sum(0), y + x.sum(0)
    return while_loop(lambda i, x, y: i < 3, body, (torch.zeros((), dtype=torch.int64), x + 1, x[0] * 2))


@model(rnd(4, 3), torch.tensor(2))
class loop_that_fills_a_table(nn.Module):
    """One row after the other is written; the rest stays."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", rnd(4, 3, seed=5))

    def forward(self, x, n):
        def body(i, t):
            row = torch.index_select(x, 0, i) * 2
            return i + 1, torch.index_copy(t, 0, i, row)
        return while_loop(lambda i, t: (i <= n).all(), body, (torch.zeros(1, dtype=torch.int64), self.table + 0))[1]


@model(rnd(6, 3), rnd(6, 3, seed=1), rnd(3, seed=2))
class scan_of_a_cell(nn.Module):
    """Carried values, a result per step, and a layer inside."""

    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(6, 3)

    def forward(self, x, y, h):
        def step(state, part):
            h, n = state
            h = torch.tanh(self.cell(torch.cat([h, part[0] * part[1]])))
            return (h, n + (h > 0)), (h * 2, h > 0, n + 1)
        return scan(step, (h, torch.zeros(3, dtype=torch.int64)), (x, y), dim=0)


@model(rnd(2, 5, 3), dynamic=({1: Dim("steps", min=2, max=16)},), more=[(rnd(2, 9, 3, seed=1),)])
def scan_of_an_open_length(x):
    """Backwards along the second axis."""
    def step(sum, x):
        sum = sum * 0.5 + x
        return sum, sum.amax(-1)
    return scan(step, torch.zeros(2, 3), x, dim=1, reverse=True)


@model(rnd(5, 2, 3), rnd(3, 4, seed=1), torch.arange(5))
def map_of_products(x, w, n):
    return map_of(lambda part, w: (torch.relu(part[0] @ w), part[1] * 2), (x, n), w)


@model(rnd(4, 3), rnd(3, seed=1))
def map_of_loops(x, y):
    """Each row until its sum is large; a scan in it."""
    def row(x, y):
        def step(i, x):
            return i + 1, x * 1.5 + scan(lambda c, v: (c + v, c * v), torch.zeros(()), y, dim=0)[1].abs()
        return while_loop(lambda i, x: (x.sum() < 8) & (i < 9), step, (torch.zeros((), dtype=torch.int64), x.abs()))[1]
    return map_of(row, x, y)


@model(rnd(2, 4).half(), torch.tensor(3))
class half_loop(nn.Module):
    """Each turn rounds what it computes."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4).half()

    def forward(self, x, n):
        return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, F.gelu(self.fc(x)) + x),
                          (torch.zeros((), dtype=torch.int64), x))


@model(rnd(1, 6, 4), torch.tensor(2))
class loop_of_attention(nn.Module):
    """A layer of a transformer, again and again; a buffer is read within."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, norm_first=True)
        self.register_buffer("mask", torch.ones(6, 6).tril() > 0)

    def forward(self, x, n):
        def body(i, x):
            y = self.layer.norm1(x)
            q, k, v = F.linear(y, self.layer.self_attn.in_proj_weight, self.layer.self_attn.in_proj_bias).chunk(3, -1)
            q, k, v = (t.reshape(1, 6, 2, 2).transpose(1, 2) for t in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, self.mask).transpose(1, 2).reshape(1, 6, 4)
            x = x + self.layer.self_attn.out_proj(y)
            return i + 1, x + self.layer.linear2(F.relu(self.layer.linear1(self.layer.norm2(x))))
        return while_loop(lambda i, x: i < n, body, (torch.zeros((), dtype=torch.int64), x))[1]


@model(rnd(3, 3), rnd(3, 3, seed=1))
def graphs_with_hints(x, y):
    with torch.no_grad():
        z = x - y
    return hints_wrapper(lambda a, b: (torch.relu(a @ b) + 1,), (z, y), {}, hints={"kept": "no"})



@model(rnd(3, 37) * 4, torch.tensor([0.5, -0.5, 1.5, 2.5, -3.5, 1e9, float("inf"), float("nan"), 0.0]), torch.arange(-4, 5))
def roundings(x, v, k):
    def all_of(t):
        return torch.floor(t), torch.ceil(t), torch.trunc(t), torch.round(t), torch.sign(t)
    return *all_of(x), *all_of(v), *all_of(k), *all_of(v.double()), torch.floor(x.half()), x.clone().floor_() + x.clone().round_()


@model(rnd(3, 37), torch.tensor([0.0, 1.0, -1.0, float("inf"), float("nan"), 1e-7]), torch.arange(0, 5))
def angles(x, v, k):
    def all_of(t):
        return (torch.asin(t), torch.acos(t), torch.atan(t), torch.sinh(t), torch.cosh(t), torch.tan(t), torch.asinh(t), torch.acosh(t), torch.atanh(t),
                torch.expm1(t), torch.log1p(t), torch.log2(t), torch.log10(t))
    a = torch.atan2(x, x.flip(1)), torch.atan2(x, x[:, :1]), torch.atan2(k, k.flip(0)), torch.atan2(x.double(), x[0].double())
    return *all_of(x / 4), *all_of(v), torch.atan(k), torch.log2(k + 1), torch.cosh(k), torch.log1p(x.double().abs()), torch.tan(x.half()), *a, *(f(x.double()) for f in (torch.sin, torch.cos, torch.tanh, torch.erf, torch.expm1))


@model(rnd(4, 9) * 7, rnd(9, seed=1) * 2, torch.arange(-18, 18).view(4, 9), torch.tensor([-3, -1, 1, 2, 3, 4, 5, 7, -7]), rnd(4, 9).abs())
def quotients(x, y, k, m, p):
    def all_of(a, b):
        return a % b, a // b, torch.fmod(a, b), torch.div(a, b, rounding_mode="trunc"), torch.div(a, b, rounding_mode="floor"), torch.div(a, b, rounding_mode=None)
    z = x.clone()
    z.remainder_(y).div_(0.3, rounding_mode="floor")
    return (*all_of(x, y), *all_of(k, m), *all_of(x.double(), y.double()), *all_of(k.int(), m), *all_of(k, y), *all_of(x, 0.7), *all_of(k, 3), 5 % m, 7 // y, z,
            p ** y, p.double() ** y, 2 ** x, 0.3 ** k, 2.5 ** p, k ** m.abs(), m ** 2)


@model(rnd(3, 40) * 5, torch.rand(40, generator=torch.Generator().manual_seed(1)), torch.tensor([0.0, 1.0, -0.5, 9.5, 30.0, 1e-6, 100.0, 0.25]))
def special_functions(x, p, v):
    s = torch.special
    y = torch.lgamma(x), torch.digamma(x), torch.polygamma(1, x.abs() + 0.3), torch.polygamma(4, x.abs() + 0.3), torch.polygamma(2, -p - 0.2), torch.mvlgamma(x.abs() + 2, 3), torch.lgamma(v), s.zeta(v + 1.5, x.abs()[0, :8])
    z = s.erfcx(x), s.ndtr(x), s.log_ndtr(x), s.ndtri(p), torch.erfinv(2 * p - 1), s.xlog1py(x, p), torch.xlogy(2, p), torch.logit(p), torch.logit(p, 0.3)
    return *y, *z, torch.lgamma(x.double()), torch.polygamma(2, torch.arange(1, 5))


@model(rnd(3, 40) * 9, torch.tensor([0.5, 1.0, 2.0, 8.0, 8.5, 50.0, 1e-6]))
def bessel_functions(x, v):
    s = torch.special
    y = torch.i0(x), s.i0e(x), s.i1(x), s.i1e(x), s.bessel_j0(x), s.bessel_j1(x), s.bessel_y0(v), s.bessel_y1(v), s.spherical_bessel_j0(x), torch.i0(v.half())
    return *y, s.modified_bessel_i0(v), s.modified_bessel_i1(v), s.modified_bessel_k0(v), s.modified_bessel_k1(v), s.scaled_modified_bessel_k0(v), s.scaled_modified_bessel_k1(v)


@model(rnd(2, 30), torch.arange(30) % 12)
def named_polynomials(x, n):
    s = torch.special
    y = [getattr(s, f"{kind}chebyshev_polynomial_{letter}")(x, n) for kind in ("", "shifted_") for letter in "tuvw"]
    return *y, *(f(x, 5) for f in (s.chebyshev_polynomial_t, s.hermite_polynomial_h, s.hermite_polynomial_he, s.laguerre_polynomial_l, s.legendre_polynomial_p))


@model(torch.arange(-30, 30) * 7, torch.arange(60) % 9 + 1, rnd(60) * 9)
def bits_and_parts(k, n, x):
    y = k << n, k >> n, k << 3, k >> 2, 5 << n, (k.to(torch.int8) << n.to(torch.int8)), k.int() >> 40, k & 12, k | 3, k ^ 5
    m, e = torch.frexp(x)
    z = torch.gcd(k, n), torch.lcm(k, n), torch.gcd(k.int(), torch.tensor(12, dtype=torch.int32)), torch.nextafter(x, x.flip(0)), torch.frac(x), torch.sgn(x)
    w = torch.round(x, decimals=1), torch.round(x * 90, decimals=-2), torch.float_power(x, 2), torch.float_power(n, k / 99), torch.ldexp(x, n), torch.angle(x)
    c = x.clone()
    c.sinh_().clamp_(torch.tensor(-3.0)).addcmul_(x, x, value=0.5).lerp_(x, 0.25).nan_to_num_()
    return *y, m, e, *z, *w, c, torch.logspace(-2, 3, 7), torch.logspace(0, 4, 5, base=2, dtype=torch.int64), torch.fill(x, n[0])


@model(torch.tensor([[3.0, float("nan"), 1.0, 3.0, -2.0, 1.0, 0.0], [5.0, 4.0, 4.0, -1.0, 7.0, 7.0, 2.5]]), torch.tensor([[4, -4, 4, 0], [1, 1, 9, 9], [2, -7, 2, 2]]))
def in_order(x, k):
    """Equals stay in order, and what is not a number is the largest."""
    y = x[1:]
    first = *x.sort(dim=1), *k.sort(dim=0, descending=True, stable=True), x.argsort(-1, descending=True), k.argsort(1), x.msort(), *y[:, 2:5].topk(2, 1), *k.sum(0).topk(3)
    most = *x.max(1), *x.min(0), *k.max(0, keepdim=True), *k.min(-1), x.argmax(), x.argmin(1, keepdim=True), k.argmax(0), x.max(), k.min(), y.amin(1), k.amin((0, 1))
    middle = *x.nanmedian(1), x.median(), y.median(), k.median(), *y.kthvalue(3), *k.mode(), *torch.aminmax(y, dim=1), *torch.aminmax(k)
    between = y.quantile(torch.tensor([0.1, 0.5, 0.77]), dim=1), x.nanquantile(0.3, dim=1, keepdim=True), y.quantile(0.4, interpolation="nearest")
    return *first, *most, *middle, *between, y.prod(1), k.prod(0), k.prod(), y.prod(), (k > 0).all((0, 1))


@model(torch.tensor([[float("nan")] * 4, [float("nan"), 5.0, 5.0, 2.0], [1.0, 2.0, 3.0, float("nan")]]))
def modes_beside_nan(x):
    """A row may have nothing but NaN, of which each is a value of its own."""
    return *x.mode(1), *x[:1].mode(0, keepdim=True)


@model(rnd(1, 2, 5, 4, 3), torch.arange(32, dtype=torch.int32).reshape(1, 2, 4, 4))
def pools_to_no_element(x, k):
    return F.adaptive_avg_pool3d(x, (0, 2, 3)), F.adaptive_avg_pool3d(x, (3, 0, 2)), F.adaptive_avg_pool2d(x[0], (2, 0)), F.adaptive_avg_pool2d(k, (0, 1))


@model(rnd(2, 3, 6, 6))
class scaled_products_that_are_read_twice(nn.Module):
    """A further factor or term, and other nodes, read the result of a norm or a factor."""
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 4, 1, bias=False), nn.Conv2d(3, 4, 3), nn.Linear(6, 5)
        self.norm = nn.BatchNorm2d(4)
        self.scale, self.shift = nn.Parameter(rnd(4, 1, 1, seed=1)), nn.Parameter(rnd(4, 1, 1, seed=2))
        self.row = nn.Parameter(rnd(5, seed=3))

    def forward(self, x):
        a = self.a(x) * self.scale
        b = self.norm(self.b(x))
        c = self.c(x) + self.row
        return a + self.shift, a, b * self.scale + b, c * self.row, c


def often(*shape, seed=0):
    """Numbers of which many are equal, and some no numbers."""
    x = (rnd(*shape, seed=seed) * 4).round() / 2
    return torch.where(x == 1.5, float("nan"), torch.where(x == -1.5, float("-inf"), x))


@model(often(3, 70), often(300, 2, seed=1), rnd(2, 40, seed=2), rnd(3, 500, seed=3), (rnd(2, 300, seed=4) * 1e9).to(torch.int32), (rnd(2, 300, seed=5) * 3).to(torch.int8))
def in_long_rows(x, y, z, u, k, b):
    """Rows that are short, long, along columns, in order already; the first of rows, without equals."""
    made = [t for v in (x, y, z, k, b, k.long(), b.abs().to(torch.uint8), b > 0, torch.arange(100.0)) for down in (False, True) for t in v.sort(dim=0 if v.shape[0] > 50 else -1, stable=True, descending=down)]
    w = torch.cat([u, torch.full((3, 1), float("nan"))], 1)
    made += [t for v in (u, w) for largest in (True, False) for t in (*v.topk(9, 1, largest), *v.t().topk(70, 0, largest))]
    return (*made, y.double().sort(dim=0, stable=True)[1])


@model(rnd(7, 57), rnd(2, 19, 300, seed=1), torch.randint(0, 40, (50, 300), generator=torch.Generator().manual_seed(2)), rnd(50, 300, seed=3), rnd(50, 40, seed=4))
def running_sums(x, y, at, src, into):
    """Several rows at once, columns, and places that are named often."""
    return x.cumsum(1), x.cumsum(0), y.cumsum(1), y.cumsum(-1), y.cumsum(0), into.scatter_add(1, at, src), into.scatter_add(1, at[:, :7], src), into.t().contiguous().scatter_add(0, at.t().contiguous(), src.t())


@model(torch.arange(12.0).view(3, 4) - 5, torch.tensor([[2, 0, 2], [0, 1, 2]]), rnd(2, 4), torch.tensor([0, 2, 0, 1]), rnd(3, 4, seed=1),
       torch.tensor([[True, False, True, False]]))
def scattered(x, i, src, at, rows, mask):
    """Places that are named twice, in each way to join."""
    kinds = ["sum", "prod", "mean", "amax", "amin"]
    y = [x.scatter_reduce(0, i, src, k, include_self=s) for k in kinds for s in (True, False)]
    y += [x.index_reduce(1, at, rows, k, include_self=s) for k in kinds[1:] for s in (True, False)]
    whole = x.to(torch.int64)
    y += [whole.scatter_reduce(0, i, whole, k, include_self=s) for k in kinds for s in (True, False)]
    once = torch.tensor([[0, 1, 2], [2, 0, 1]])
    y += [x.scatter(0, once, src), x.scatter(1, i, 2.5), x.scatter_add(0, i, src), x.scatter(0, i, src, reduce="multiply"), x.scatter(0, i, 3.0, reduce="add")]
    z = x.clone()
    z.scatter_(1, once, 7.0).scatter_add_(0, i, src).scatter_reduce_(0, i, src, "amax").index_reduce_(1, at, rows, "prod")
    z.masked_scatter_(mask, rows).cumprod_(1).scatter_(0, i, src, reduce="add")
    return *y, z, x.masked_scatter(mask, rows), x.index_add(0, torch.tensor([0, 0]), src), x.index_put((torch.tensor([1, 1]),), src, accumulate=True)


@model(rnd(2, 3, 4), rnd(2, 4, 5), rnd(3, 3, seed=1), rnd(2, 5), torch.arange(12).view(3, 4))
def summed_by_letters(x, y, s, v, k):
    e = torch.einsum
    return (e("bij,bjk->bik", x, y), e("bij,bjk", x, y), e("bij->b", x), e("ii->i", s), e("ii", s), e("...ij,...jk->...ik", x, y), e("bij,bjk,bk->bi", x, y, v),
            e("i,j->ji", v[0], v[1]), e("b...,b->...", x, v[:, 0]), e("ij,kj->ik", k, k), e(" b i j -> j b i ", x), e("bij,bij->", x, x), e("...,...", x, x))


@model(rnd(2, 3, 4, 5), rnd(2, 6, 7, 2), rnd(1, 2, 3, 4, 5), rnd(1, 2, 3, 2, 3, seed=1), rnd(2, 2, 3), rnd(1, 3, 4))
def sampled_by_grids(x, g, v, h, theta, theta3):
    y = [F.grid_sample(x, 1.3 * g, m, p, a) for m in ("bilinear", "nearest", "bicubic") for p in ("zeros", "border", "reflection") for a in (True, False)]
    y += [F.grid_sample(v, 1.3 * h, m, p, a) for m in ("bilinear", "nearest") for p in ("zeros", "border", "reflection") for a in (True, False)]
    return *y, F.affine_grid(theta, (2, 1, 3, 4), align_corners=False), F.affine_grid(theta3, (1, 1, 2, 3, 4), align_corners=True)


@model(rnd(2, 3, 7, 5), rnd(2, 3, 9), rnd(1, 2, 5, 6, 7))
def largest_of_windows(x, s, v):
    def both(fn, *args, **how):
        return fn(*args, return_indices=True, **how)
    y = both(F.adaptive_max_pool2d, x, (3, 4)) + both(F.adaptive_max_pool1d, s, 4) + both(F.adaptive_max_pool1d, s, 3) + both(F.adaptive_max_pool3d, v, (2, 3, 7))
    y += both(F.max_pool1d, s, 3, 2, 1) + both(F.max_pool3d, v, 3, 2, 1) + both(F.max_pool3d, v, (1, 2, 3), (2, 1, 2), dilation=(1, 2, 1), ceil_mode=True)
    p, i = F.max_pool2d(x, 2, return_indices=True)
    q, k = F.max_pool3d(v, 2, return_indices=True)
    return *y, F.max_unpool2d(p, i, 2, output_size=(7, 5)), F.max_unpool3d(q, k, 2, output_size=(5, 6, 7))


@model(rnd(2, 3, 7, 5), dynamic=({0: Dim("n", max=5), 2: Dim("h", min=4, max=40), 3: Dim("w", min=4, max=40)},), more=[(rnd(1, 3, 4, 11, seed=1),), (rnd(5, 3, 17, 8, seed=2),)])
def windows_of_open_images(x):
    return *F.adaptive_max_pool2d(x, (3, 2), return_indices=True), *F.adaptive_max_pool2d(x, 1, return_indices=True), *F.adaptive_max_pool1d(x[:, 0], 4, return_indices=True)


@model(rnd(1, 2, 10, 10), dynamic=({2: Dim("h", min=8, max=60), 3: Dim("w", min=8, max=60)},), more=[(rnd(1, 2, 35, 12, seed=1),), (rnd(1, 2, 8, 60, seed=2),)])
def images_of_decimal_scales(x):
    """0.6 and 1/3 lie beside the doubles that are meant."""
    y = [F.interpolate(x, scale_factor=0.6, mode=m) for m in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")]
    return *y, F.interpolate(x, scale_factor=0.3, mode="bilinear", align_corners=True), F.interpolate(x, scale_factor=1 / 3), F.interpolate(x, scale_factor=(1.2, 0.8), mode="bilinear", antialias=True)


@model(rnd(5, 3), rnd(4, 4, seed=1), rnd(4, 4, seed=2), torch.tensor([1, 3]), dynamic=({0: Dim("n", min=2, max=20)}, None, None, None), more=[(rnd(9, 3, seed=3), rnd(4, 4, seed=4), rnd(4, 4, seed=5), torch.tensor([0, 2]))])
def operands_that_a_call_tells(x, a, b, i):
    """Numbers that a size gives, and that an element is."""
    n, h, s = x.shape[0], x.shape[0] * 0.3, x.sum().item()
    y = torch.zeros(8).scatter(0, i, n), torch.zeros(8).scatter(0, i, h), torch.zeros(8).scatter(0, i, s)
    y += torch.addmm(x[:2, :1], a[:2], b[:, :3], beta=n, alpha=n + 1), torch.addmm(a, a, b, alpha=n)
    y += F.elu(a, h), F.leaky_relu(a, h), F.softplus(a, h), F.threshold(a, h / 20, n), torch.renorm(a, 2, 0, h / 4)
    return *y, a * s + s, torch.where(a > s, a, s), a.clamp(max=s), torch.full((2,), s)


@model(rnd(1, 2, 4, 6), rnd(1, 2, 4, 6, seed=1), rnd(1, 2, 4, 6, seed=2), dynamic=({3: Dim("e", min=2, max=16)},) * 3, more=[(rnd(1, 2, 4, 9, seed=3), rnd(1, 2, 4, 9, seed=4), rnd(1, 2, 4, 9, seed=5))])
def attention_of_open_width(q, k, v):
    return F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True), F.scaled_dot_product_attention(q, k, v, scale=0.5)


@model(rnd(4, 5), rnd(3), rnd(2, 2), torch.tensor([2, 0, 3]), rnd(3, 2))
def parts_written(x, d, block, n, rows):
    y = x.diagonal_scatter(d, -1), x.diagonal_scatter(d[:2], 3), x.as_strided_scatter(block, (2, 2), (7, 2), 1), x.as_strided((3, 2), (4, 1), 2).contiguous()
    return *y, torch.slice_scatter(x, x[:2], 0, 1, 4, 2), rows.repeat_interleave(n, 0, output_size=5)


@model(rnd(30), rnd(6, 4), torch.tensor([5, 1, 1, 0, 3, 2, 2]), torch.tensor([0, 2, 2, 5]), rnd(5, 6), torch.tensor([0.0, 1, 3, 4, 7, 9]), rnd(2, 3, 3))
def counts_and_slopes(x, table, i, offsets, y, places, m):
    bags = [F.embedding_bag(i, table, offsets, mode=k) for k in ("sum", "mean", "max")]
    bags += [F.embedding_bag(i, table, offsets, mode="sum", per_sample_weights=x[:7]), F.embedding_bag(i, table, offsets, mode="mean", padding_idx=1), F.embedding_bag(i, table, offsets, mode="sum", padding_idx=-1)]
    bags += [F.embedding_bag(i, table.to(t), offsets, mode=k, include_last_offset=True) for k in ("sum", "mean", "max") for t in (torch.float32, torch.float64)]
    slopes = *torch.gradient(y, edge_order=2), *torch.gradient(y, dim=1, spacing=(places,)), *torch.gradient(y, spacing=0.5, dim=0)
    powers = torch.linalg.matrix_power(m, 5), torch.linalg.matrix_power(m, 0), torch.matrix_exp(m)
    return x.histc(7, -1, 2), x.histc(5), *bags, *slopes, *powers, torch.nonzero_static(y > 0, size=40, fill_value=-2)


@model(rnd(4, 6), rnd(1, 5, 6, seed=1), rnd(3, 6, 2, seed=2), torch.tensor([0.5, 1.0, 0.25, 2.0]))
def other_names(x, t, w, scale):
    """Operators that are others under another name, or that few models use."""
    torch._check((x < 1e9).all().item())
    zero = torch.zeros(4, dtype=torch.int32)
    fake = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127), torch.fake_quantize_per_tensor_affine(x, scale[1] / 8, zero[0] + 7, 0, 255)
    fake += (torch.fake_quantize_per_channel_affine(x, scale / 16, zero, 0, -127, 127),)
    windows = torch.kaiser_window(6) * x, torch.kaiser_window(7, False, beta=8.0)[:6] * x, x + torch.range(0, 5), x - torch.range(1, 2.3, 0.25)
    rows = torch.special.softmax(x, 1), torch.special.log_softmax(x, 0), torch.bucketize(0.3, x[0].sort()[0]), torch.vander(x[0]), torch.vander(x[1], 3, True)
    dropped = F.rrelu(x, 0.1, 0.4), F.alpha_dropout(x, 0.5, False), F.feature_alpha_dropout(x, 0.5, False)
    products = torch.chain_matmul(x, x.t(), x), torch.linalg.matmul(x, x.t()), torch.conv_tbc(t.transpose(0, 1), w, scale[:2], 1)
    return *fake, *windows, *rows, *dropped, *products, torch.concatenate([x, x], 1), torch.native_channel_shuffle(x[None, :, :, None], 2)


@model(rnd(10, 4), torch.tensor([2, 0, 1, 2, 2, 1, 0, 2, 2, 2]), rnd(3, 4, 4, seed=1), rnd(10, 1, seed=2), more=[(rnd(10, 4, seed=3), torch.tensor([1] * 10), rnd(3, 4, 4), rnd(10, 1))])
def experts_by_lists(x, expert, w, gate):
    """Each row goes to its expert: the lengths of the pieces are known when it runs, their sum is that of the rows."""
    order = expert.argsort(stable=True)
    sizes = torch.stack([(expert == i).sum() for i in range(3)]).tolist()
    pieces = x[order].split(sizes)
    y = torch.cat([F.linear(p, w[i]) for i, p in enumerate(pieces)]) * gate[order]
    return torch.zeros(10, 4).index_add(0, order, y)


@model(rnd(3, 4))
def loop_over_a_folded_table(x):
    """A value that a loop only reads is a constant after it was folded."""
    by = torch.arange(4) * 0.5 + 1
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x.cumsum(0) + (x.cumsum(1) == by) - i), (torch.zeros((), dtype=torch.int64), x))[1]


# torchvision's operators as its documentation tells them: the package's own come with another torch.
BOXES = torch.library.Library("torchvision", "FRAGMENT")
BOXES.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
BOXES.define("roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor")
BOXES.define("deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, "
             "SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor")


def nms(boxes, scores, most):
    left, kept = scores.argsort(descending=True, stable=True).tolist(), []
    while left:
        first, *left = left
        kept.append(first)
        low, high = torch.maximum(boxes[first, :2], boxes[left, :2]), torch.minimum(boxes[first, 2:], boxes[left, 2:])
        both = (high - low).clamp(min=0).prod(1)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        left = [b for b, share in zip(left, (both / (area[first] + area[left] - both)).tolist()) if share <= most]
    return torch.tensor(kept, dtype=torch.int64)


def pixel(x, y, z):
    """Between the four pixels about a place, as far as there are any."""
    i, j, total = math.floor(y), math.floor(z), torch.zeros(x.shape[0])
    for a in (i, i + 1):
        for b in (j, j + 1):
            if 0 <= a < x.shape[1] and 0 <= b < x.shape[2]:
                total = total + x[:, a, b] * (1 - abs(y - a)) * (1 - abs(z - b))
    return total


def roi_align(x, rois, scale, rows, columns, ratio, aligned):
    h, w = x.shape[2:]
    out = torch.zeros(len(rois), x.shape[1], rows, columns)
    for k, (n, *box) in enumerate(rois.tolist()):
        z0, y0, z1, y1 = (v * scale - 0.5 * aligned for v in box)
        high, wide = (y1 - y0, z1 - z0) if aligned else (max(y1 - y0, 1.0), max(z1 - z0, 1.0))
        m, l = (ratio, ratio) if ratio > 0 else (math.ceil(high / rows), math.ceil(wide / columns))
        for i, j, a, b in itertools.product(range(rows), range(columns), range(m), range(l)):
            y, z = y0 + (i + (a + 0.5) / m) * high / rows, z0 + (j + (b + 0.5) / l) * wide / columns
            if -1 <= y <= h and -1 <= z <= w:
                out[k, :, i, j] += pixel(x[int(n)], min(max(y, 0), h - 1), min(max(z, 0), w - 1)) / (m * l)
    return out


def deform_conv2d(x, weight, offset, mask, bias, sh, sw, ph, pw, dh, dw, groups, shifts, use_mask):
    n, c, k, l = len(x), x.shape[1], *weight.shape[2:]
    rows, columns = offset.shape[2:]
    shift = offset.view(n, shifts, k * l, 2, rows, columns)
    read = torch.zeros(n, c, k * l, rows, columns)
    for b, g, t, i, j in itertools.product(*map(range, (n, shifts, k * l, rows, columns))):
        y, z = shift[b, g, t, :, i, j].tolist()
        part = slice(g * c // shifts, (g + 1) * c // shifts)
        read[b, part, t, i, j] = pixel(x[b, part], i * sh - ph + t // l * dh + y, j * sw - pw + t % l * dw + z)
        if use_mask:
            read[b, part, t, i, j] *= mask.view(n, shifts, k * l, rows, columns)[b, g, t, i, j]
    y = weight.view(groups, -1, c // groups * k * l) @ read.view(n, groups, c // groups * k * l, rows * columns)
    return y.view(n, -1, rows, columns) + bias[:, None, None]


for fn in (nms, roi_align, deform_conv2d):
    BOXES.impl(fn.__name__, fn, "CPU")
torch.library.register_fake("torchvision::nms", lambda boxes, scores, most: boxes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64), lib=BOXES)
torch.library.register_fake("torchvision::roi_align", lambda x, rois, scale, h, w, ratio, aligned: x.new_empty(rois.shape[0], x.shape[1], h, w), lib=BOXES)
torch.library.register_fake("torchvision::deform_conv2d", lambda x, w, offset, *_: x.new_empty(x.shape[0], w.shape[0], *offset.shape[2:]), lib=BOXES)


def random_boxes(n, seed):
    low = torch.rand(n, 2, generator=torch.Generator().manual_seed(seed)) * 12
    return torch.cat((low, low + torch.rand(n, 2, generator=torch.Generator().manual_seed(seed + 1)) * 9), 1)


@model(rnd(1, 4, 12, 16), random_boxes(20, 0), rnd(20, seed=1), more=[(rnd(1, 4, 12, 16, seed=3), random_boxes(20, 4) - 3, rnd(20, seed=5))])
def detected_boxes(x, boxes, scores):
    kept = torch.ops.torchvision.nms(boxes, scores, 0.3)
    rois = torch.cat((torch.zeros(kept.shape[0], 1), boxes[kept]), 1)
    return (kept, scores[kept], torch.ops.torchvision.roi_align(x, rois, 0.9, 3, 2, 0, True), torch.ops.torchvision.roi_align(x, rois, 0.5, 2, 2, 2, False),
            torch.ops.torchvision.nms(boxes - 5, scores, 0.0))


@model(rnd(2, 4, 6, 7), rnd(2, 36, 6, 7, seed=1) * 2, rnd(2, 18, 6, 7, seed=2), rnd(2, 18, 3, 3, seed=3))
class deformed(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(rnd(6, 2, 3, 3)), nn.Parameter(rnd(6))

    def forward(self, x, offset, mask, other):
        return (torch.ops.torchvision.deform_conv2d(x, self.w, offset, mask, self.b, 1, 1, 1, 1, 1, 1, 2, 2, True)[..., :4],
                torch.ops.torchvision.deform_conv2d(x, torch.cat((self.w, self.w), 1), other, other, self.b, 2, 2, 1, 0, 1, 1, 1, 1, False))


@model(rnd(6, 3), torch.tensor([1, 0, 2, 0, 1, 0]), rnd(6, 3, seed=1), more=[(rnd(6, 3), torch.tensor([2] * 6), rnd(6, 3)), (rnd(6, 3), torch.tensor([0] * 6), rnd(6, 3))])
def none_or_all_chosen(x, kind, y):
    """The written value has as many rows as the mask chooses: none, some or all."""
    chosen = (kind == 0).nonzero()[:, 0]
    rows = y[chosen] * 2
    z = x.clone()
    z[kind == 0] = rows
    return z, x.masked_scatter((kind == 0)[:, None], rows), x.index_put((kind == 0,), rows, accumulate=True)


@model(rnd(4, 5), torch.tensor([[0, 1, 0, 1, 1], [0, 0, 0, 0, 1], [1, 1, 1, 0, 0], [0, 0, 1, 0, 0]]).bool(), rnd(1, 5, seed=1), rnd(8, seed=2), rnd(4, 2, seed=3))
def written_by_masks(x, m, row, each, pair):
    """And elements by their places in memory, and rows of a table cut to a length."""
    a, b, c, d = x.clone(), x.clone(), x.clone(), x.clone()
    a[m], b[m[:, 1]], c[:, m[1] | m[3]], d[m] = 0.5, row, pair, each
    flat = x.clone().put_(torch.arange(8) * 2, each)
    looked_up = F.embedding(torch.arange(3), x.clone(), max_norm=0.7)
    return a, b, c, d, x.index_put((m,), row[0, :1], accumulate=True), x.masked_scatter(m, each), flat, looked_up, torch.einsum("ij->j", m.int())


@model(rnd(4, 3, 5, 5), more=[(rnd(4, 3, 5, 5, seed=1),)], stateful=True)
class norm_in_training(nn.Module):
    """Batch norms whose running statistics move with each call."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.BatchNorm2d(3), nn.BatchNorm1d(3, momentum=0.3, affine=False)
        for name in "mnrs":
            self.register_buffer(name, torch.rand(3))

    def forward(self, x):
        self.train()
        y = self.a(x)
        own = torch.ops.aten._native_batch_norm_legit(x, None, None, self.m, self.n, True, 0.2, 1e-5)
        other = torch.ops.aten._batch_norm_with_update(x, self.a.weight, self.a.bias, self.r, self.s, 0.5, 1e-5)
        plain = torch.ops.aten._native_batch_norm_legit(x, None, self.a.bias, self.m, self.n, False, 0.2, 1e-5)
        moved = self.a.running_mean * 1, self.b.running_var + 0, self.m + 1, self.s * 2
        return self.b(y.flatten(2) * 2 + 1), *own, *other[:3], plain[0], *moved


@model(rnd(8, 3, 3, 3), rnd(8), rnd(1, 3, 9, 9))
def norm_of_a_batch_alone(w, g, x):
    """Weights standardized by a batch norm that keeps no statistics."""
    even = F.batch_norm(w.reshape(1, 8, -1), None, None, weight=g, training=True, momentum=0.0, eps=1e-6).reshape_as(w)
    return F.conv2d(x, even), F.batch_norm(x, None, None, training=True)


@model(rnd(2, 3), rnd(0), whole(2, 3).to(torch.int64), torch.rand(2, 3) > 2)
def unlike_parts(x, none, k, p):
    """Concats of lists of nothing, which torch takes of any rank, and of other dtypes."""
    return torch.cat([none, x], -2), torch.cat([x, k, none]), torch.cat([p, k], 1), torch.stack([x, x * 2], 1)


@model(rnd(1, 3, 8, 6))
def sizes_given_out(x):
    """Numbers that are equal, as sizes beside what has them."""
    y = F.avg_pool2d(x, 2, 1, 1)[:, :, :8, :6]
    return y, y.shape[2], y.shape[3], x.shape[2], x.relu()


@model(rnd(256))
class weights_of_8_bits(nn.Module):
    """Every float of 8 bits, which no kernel reads."""

    def __init__(self):
        super().__init__()
        for i, t in enumerate((torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)):
            self.register_buffer(f"w{i}", torch.arange(256, dtype=torch.uint8).view(t))

    def forward(self, x):
        return [x * 0 + torch.nan_to_num(w.float(), 7.0, 1e6, -1e6) for w in (self.w0, self.w1, self.w2, self.w3)]


# -- complex numbers: pairs of floats within a model ----------------------------------------------------------------------------


@model(rnd(2, 5, 2, 8), rnd(2, 5, 2, 8, seed=1))
class rope_complex(nn.Module):
    """Rotary embeddings as Llama's first code writes them, with a complex buffer."""

    def __init__(self):
        super().__init__()
        angle = torch.outer(torch.arange(5.0), 1.0 / 10.0 ** torch.arange(4.0))
        self.register_buffer("freqs", torch.polar(torch.ones_like(angle), angle))

    def forward(self, q, k):
        def turned(x):
            z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
            return torch.view_as_real(z * self.freqs[None, :, None]).flatten(3)

        return turned(q), turned(k).type_as(k)


@model(rnd(3, 4), rnd(3, 4, seed=1))
def complex_arithmetic(x, y):
    z, w = torch.complex(x, y), torch.polar(y.abs() + 0.5, x)
    sums = z + w, z - w, z + 1.5, 2 - w, z + x, torch.add(z, w, alpha=3)
    products = z * w, z * 2, z * y, z / w, z / 3, 1 / w, torch.reciprocal(w), z / y.exp(), x / w
    powers = z ** 2, w ** 0.5, torch.sqrt(z), torch.sqrt(-z), torch.exp(z), torch.log(w), torch.sin(z), torch.cos(w), torch.sgn(z), z.square()
    return [torch.view_as_real(v) for v in (*sums, *products, *powers)]


@model(rnd(3, 4), torch.tensor([[1e30, 0.0, -1e-30, 3.0], [float("inf"), -2.0, 0.0, 1e20], [4.0, -9.0, 1e-6, -1e-25]]))
def complex_numbers(x, y):
    """Numbers beside tensors, and parts that are large, small or 0."""
    z, w = torch.complex(x, x.flip(0)), torch.complex(y[[0, 2]], y[[2, 0]])
    made = z * 2j, z + 1j, 1 - z, (3 + 1j) / z, x * 1j, z - (0.5 - 2j), torch.sqrt(torch.complex(y[2], x[0] * 1e-3))
    return [torch.view_as_real(v) for v in made] + [w.abs(), torch.complex(y[1], x[0]).abs(), torch.linalg.vector_norm(z, dim=1), torch.isfinite(torch.complex(y, x))]


@model(rnd(3, 4), rnd(3, 4, seed=1))
def complex_parts(x, y):
    z = torch.complex(x, y)
    c = z.conj()
    return z.real + 1, z.imag, z.abs(), z.angle(), c.imag + 0, (z * c).real, z == c, z != c, torch.isnan(z), -z.imag, c.resolve_conj().imag * 2


@model(rnd(3, 4), rnd(3, 4, seed=1))
def complex_moves(x, y):
    z = torch.complex(x, y)
    w = z.clone()
    w[:, 1:3] = 2 * z[:, :2]
    w[0] = 0
    moved = (z[:, 0], z[1:, ::2], z.t(), z.reshape(2, 6), z.unsqueeze(1).expand(3, 2, 4), torch.cat([z, w], 1), torch.stack([z, w]), z.flip(0),
             torch.roll(z, 1, 1), z[torch.tensor([2, 0])], torch.where(x > 0, z, w), z.masked_fill(y > 0, 1.0), torch.zeros_like(z) + z, w,
             z.to(torch.complex128), z.sum(), z.sum(1), z.mean(0), z.cumsum(1), z.mH, *z.split([1, 3], 1), *z.unbind(0), z.repeat(2, 1),
             F.pad(z, (1, 2)), z.gather(1, torch.tensor([[0, 3], [1, 1], [2, 0]])), x.to(torch.complex64))
    return [torch.view_as_real(v.contiguous()) for v in moved]


@model(rnd(2, 3, 4), rnd(2, 4, 3, seed=1))
def complex_matrices(x, y):
    a, b = torch.complex(x, x.flip(1)), torch.complex(y, y.roll(1, 2))
    made = a[0] @ b[0], a @ b, torch.bmm(a, b), torch.einsum("bij,bjk->ik", a, b), torch.mv(a[0], b[0, :, 0]), torch.dot(a[0, 0], b[0, :, 0]), torch.vdot(a[0, 0], b[0, :, 0])
    return [torch.view_as_real(v) for v in made]


# -- Fourier transforms -------------------------------------------------------------------------------------------------------------


@model(rnd(3, 16), rnd(2, 400, seed=1), rnd(2, 15, seed=2))
def rfft_magnitude(x, y, z):
    return [torch.fft.rfft(v).abs() for v in (x, y, z)] + [torch.fft.rfft(x, n=11, dim=0, norm="ortho").real, torch.fft.rfft(x, n=24).imag + 0]


@model(rnd(2, 12), rnd(2, 12, seed=1))
def ifft_roundtrip(x, y):
    z = torch.complex(x, y)
    back = torch.fft.ifft(torch.fft.fft(z)), torch.fft.ifft(z, n=9, norm="ortho"), torch.fft.fft(z, dim=0, norm="forward"), torch.fft.ifft(x, norm="forward")
    return [torch.view_as_real(v.resolve_conj()) for v in back] + [torch.fft.irfft(torch.fft.rfft(x), n=12), torch.fft.irfft(z), torch.fft.irfft(z, n=21), torch.fft.irfft(x, n=1)]


@model(*[rnd(2, n, seed=n) for n in (1, 2, 3, 97, 127, 131, 210, 1009, 2 * 149, 1024)])
def fft_lengths(*xs):
    """Short, odd, prime and large lengths; primes above 128 are convolutions."""
    made = [torch.view_as_real(torch.fft.fft(torch.complex(x, x.flip(1)))) for x in xs]
    return made + [torch.fft.irfft(torch.fft.rfft(x), n=x.shape[1]) for x in xs]


@model(*[rnd(*d, seed=7) for d in ((9, 45), (9, 360), (19, 74), (9, 1009), (3, 518), (1, 9000), (2, 4099), (37, 10), (360, 3))])
def fft_rows(*xs):
    """Rows side by side, and one of its own as columns and rows; a length that is a prime above 4096."""
    made = []
    for x in xs:
        axis = 0 if x.shape[1] <= 10 else 1
        n = x.shape[axis]
        y = torch.fft.rfft(x, dim=axis)
        z = torch.complex(x, x.flip(axis))
        made += [torch.view_as_real(y), torch.fft.irfft(y, n=n, dim=axis), torch.view_as_real(torch.fft.fft(z, dim=axis)), torch.view_as_real(torch.fft.ifft(z, dim=axis))]
        made += [torch.fft.hfft(y, n=n, dim=axis), torch.view_as_real(torch.fft.ihfft(x, dim=axis).resolve_conj())]
    return made


@model(rnd(40), rnd(2, 3, 24, seed=1), torch.tensor(True), more=[(rnd(40, seed=2), rnd(2, 3, 24, seed=3), torch.tensor(False))])
def fft_within(x, y, up):
    """Results that lie inside a tensor, that a branch makes, along a middle axis, and that are returned as they are."""
    pairs = torch.view_as_real(torch.fft.rfft(x))
    z = torch.complex(y[0], y[1])
    a = torch.cond(up, lambda y: torch.fft.rfft(y, dim=2).real + 0, lambda y: torch.fft.irfft(torch.complex(y, y)[..., :13], dim=2)[..., :13] + 0, (y,))
    b = torch.view_as_real(torch.fft.fft(z.T, dim=0)), torch.view_as_real(torch.fft.ifft(z[..., 1:18])), torch.fft.fft(z).abs() + torch.fft.rfft(y, dim=1).real.sum()
    return torch.cat([x[:3], pairs.flatten()]), torch.cat([x[:1], pairs[3:].reshape(-1), x]), pairs, a, *b, torch.fft.irfft(z, n=31)


@model(rnd(3, 40), more=[(rnd(11, 40),)], dynamic=({0: Dim("n", min=1, max=64)},))
def fft_open(x):
    y = torch.fft.rfft(x)
    return y.abs(), torch.fft.irfft(y * y), torch.fft.fft(x).real + 0


@model(rnd(2, 6, 5), rnd(2, 6, 5, seed=1))
def fft_axes(x, y):
    z = torch.complex(x, y)
    f = torch.fft
    real = f.irfft2(z), f.irfftn(z, s=(4, 7)), f.irfftn(f.rfftn(x), s=x.shape), f.hfft(z), f.hfft2(z, norm="ortho"), f.hfftn(z, s=(3, 8), dim=(1, 0))
    whole = (f.fft2(z), f.ifft2(x, s=(3, 8)), f.fftn(z, dim=(0, 2)), f.ifftn(z, norm="ortho"), f.rfft2(x), f.rfftn(x, dim=(0, 1)), f.ihfft(x), f.ihfft2(x, norm="forward"),
             f.ihfftn(x), f.fftshift(z), f.ifftshift(z, dim=1))
    return [*real, *[torch.view_as_real(v.resolve_conj()) for v in whole]]


@model(rnd(4, 8))
def fft_numbers(x):
    return x + torch.fft.fftfreq(8, 0.5), x[:, :5] * torch.fft.rfftfreq(8), x[:, :7] + torch.fft.fftfreq(7), torch.fft.fft(x.double()).abs(), torch.fft.rfft(torch.arange(6)).real + 0


@model(rnd(2, 320), rnd(200, seed=1))
class stft_spectrogram(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))

    def forward(self, x, y):
        z = torch.stft(x, 64, 16, window=self.window, return_complex=True)
        plain = torch.stft(y, 30, return_complex=True, center=False)
        padded = torch.stft(y, 64, 20, win_length=33, window=self.window[:33], normalized=True, onesided=False, pad_mode="constant", return_complex=True)
        return z.abs(), z.abs() ** 2, torch.view_as_real(plain), torch.view_as_real(padded)


@model(rnd(2, 320), rnd(200, seed=1))
class istft_roundtrip(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64) + 0.1)

    def forward(self, x, y):
        z = torch.stft(x, 64, 16, window=self.window, return_complex=True)
        w = torch.stft(y, 50, 20, normalized=True, onesided=False, center=False, return_complex=True)
        mask = torch.sigmoid(z.abs())
        return (torch.istft(z, 64, 16, window=self.window), torch.istft(z * mask, 64, 16, window=self.window, length=300),
                torch.istft(z, 64, 16, window=self.window, length=350), torch.istft(w, 50, 20, normalized=True, onesided=False, center=False))


@model(rnd(3, 9))
def signal_windows(x):
    """Computed within the model: constants once it is compiled."""
    made = (torch.hann_window(9), torch.hann_window(9, periodic=False), torch.hamming_window(9), torch.hamming_window(9, False), torch.hamming_window(9, True, 0.6),
            torch.hamming_window(9, True, 0.6, 0.3), torch.blackman_window(9), torch.blackman_window(9, False), torch.bartlett_window(9), torch.bartlett_window(9, False),
            torch.hann_window(1))
    return [x + w for w in made]


@model(rnd(2, 200), dynamic=({1: Dim.AUTO(min=64, max=600)},), more=[(rnd(2, 64, seed=2),), (rnd(2, 599, seed=3),)])
def stft_open(x):
    z = torch.stft(x, 32, 12, window=torch.hann_window(32) + 0.2, center=False, return_complex=True)
    w = torch.stft(x, 40, 10, return_complex=True)
    return z.abs(), torch.view_as_real(w)


@model(rnd(2, 3, 64), rnd(3, 4, 5, 2, seed=1) * 0.3)
class spectral_conv(nn.Module):
    """A layer of a Fourier neural operator: some frequencies times complex weights."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, 9, dtype=torch.cfloat, generator=torch.Generator().manual_seed(3)))

    def forward(self, x, y):
        z = torch.fft.rfft(x)
        out = torch.zeros(2, 4, 33, dtype=torch.cfloat)
        out[:, :, :9] = torch.einsum("bix,iox->box", z[:, :, :9], self.weight)
        return torch.fft.irfft(out, n=64), torch.view_as_real(torch.einsum("bix,iox->box", z[:, :, :5], torch.view_as_complex(y)))
@model(torch.tensor([[1.0, -2, 0, 3, -1], [0, 0, 4, -5, 0.5]]), torch.tensor([[1, 0, 1, 1, 0]]).bool(), torch.tensor([2, 0, 3, 1]),
       more=[(torch.zeros(2, 5), torch.zeros(1, 5).bool(), torch.zeros(4, dtype=torch.int64)), (torch.ones(2, 5), torch.ones(1, 5).bool(), torch.full((4,), 3))])
def sizes_of_elements(x, m, n):
    """The number of elements is known only when the model runs, and is bounded by the most there can be."""
    at = torch.nonzero(x > 0)
    torch._check(at.shape[0] <= 10)
    some = x.masked_select(m)
    torch._check(some.shape[0] <= 10)
    rows = x.t()[m[0]]
    each = x[x < 0]
    again = torch.repeat_interleave(n)
    torch._check(again.shape[0] <= 12)
    more = x[:, :4].repeat_interleave(n, 1)
    torch._check(more.shape[1] <= 12)
    return at, x.argwhere(), some * 2, rows.sum(0), rows + 1, each.sum(), each.abs(), again, more, x[:, m[0]]


@model(rnd(5, 4), torch.tensor([1, -2, 4]), torch.tensor([[1, 0, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0], [1, 0, 0, 0]]),
       more=[(rnd(5, 4, seed=1), torch.tensor([0, 0, 9]), torch.ones(4, 4, dtype=torch.int64)), (rnd(5, 4, seed=2), torch.tensor([3, 1, 5]), torch.arange(16).view(4, 4))])
def rows_once(x, at, k):
    """Rows and columns that differ, and pieces between places that the model computes."""
    a, inverse, counts = torch.unique(k, dim=0, return_inverse=True, return_counts=True)
    b, run, n = torch.unique_consecutive(k, dim=1, return_inverse=True, return_counts=True)
    i, j = torch.nonzero(k, as_tuple=True)
    return a, inverse, counts, b, run, n, torch.unique(k > 0, dim=1), i, j, *torch.tensor_split(x, at), torch.unique_consecutive(k, dim=0)


@model(rnd(2, 3, 129), rnd(2, 4, 2), rnd(10, 3), torch.tensor([1, 2, 0, 6, 0]), torch.tensor([[0, 3, 3, 5], [0, 1, 2, 10]]), rnd(2, 10, seed=1))
def rows_in_chunks(x, y, z, lengths, offsets, w):
    """Chunks, segments, sizes that a tensor is given anew, and how many elements lie in which bin."""
    kinds = ["sum", "mean", "max", "min", "prod"]
    parts = [torch.segment_reduce(z, k, lengths=lengths, unsafe=True, initial=i) for k in kinds for i in (2, None)]
    parts += [torch.segment_reduce(w, k, offsets=offsets, axis=1, unsafe=True, initial=1) for k in kinds]
    bins = *torch.histogram(z, 6), *torch.histogram(z, 4, range=(-0.5, 1.5), weight=z.abs(), density=True), *torch.histogram(z, torch.tensor([-1.0, 0, 0.25, 2]))
    again = z.clone().resize_(5, 6), (z * 2).resize_as_(w[:, :3].repeat(5, 1))
    return *parts, *bins, *again, torch._chunk_cat([x, y], 0, 3), torch._chunk_cat([x, y[:, :3]], 2, 2), torch._chunk_cat([x, y], 1, 2)


@model(rnd(3, 5), torch.tensor([[3, 0, -1, 1, 1], [-1, 2, 2, 2, 2], [4, 1, 3, 0, 2]]), torch.tensor([2, -1, 4]), rnd(6, 5, seed=1), rnd(6, seed=2))
def losses_of_labels(x, labels, target, w, b):
    y = [F.multilabel_margin_loss(x, labels, reduction=r) for r in ("none", "mean", "sum")] + [F.multilabel_margin_loss(x[0], labels[0])]
    kept, options = target.clamp(0), nn.LinearCrossEntropyOptions(chunking_method="aspect_ratio", batch_chunk_size=2)
    return *y, *(F.linear_cross_entropy(x, w, t, linear_bias=b, reduction=r, ignore_index=-1, options=options)
                 for r, t in (("none", target), ("mean", kept), ("sum", target)))


@model(torch.tensor([3e38, -2e-30, float("inf"), 0.0, 3.0]), torch.tensor([2e38, 1e-30, float("nan"), -0.0, -4.0]), torch.arange(-90, 90).view(1, 3, 5, 4, 3),
       torch.tensor([[0.5, -2.25, 7.0, 1.0]]), torch.tensor([[0.0, 1.0, -3.0, 9.7], [5.0, 40.0, 2.0, 3.0]]))
def at_the_edges(a, b, k, x, n):
    """Squares that overflow, neighbours among the floats, integers that are averaged, orders of polynomials in tensors."""
    s = torch.special
    kinds = s.hermite_polynomial_h, s.hermite_polynomial_he, s.laguerre_polynomial_l, s.legendre_polynomial_p
    p = a > b
    near = [torch.nextafter(a.to(t), b.to(t)).double() for t in (torch.float16, torch.bfloat16, torch.float64)]
    means = F.avg_pool3d(k, 2, 1, 1), F.avg_pool3d(k, (3, 2, 2), 2, ceil_mode=True, count_include_pad=False, padding=(1, 1, 0)), F.avg_pool3d(k, 2, divisor_override=3)
    bits = torch.addr(p[None].expand(5, 5), p, ~p, beta=2), torch.addr(p[:1], p, p, beta=0, alpha=3), torch.logspace(2, 1.2, 2, dtype=torch.int64)
    return torch.hypot(a, b), *near, *means, *bits, *(f(x, n) for f in kinds), *(f(0.5, n) for f in kinds), torch.linalg.vander(k[0, 0, 0].to(torch.int32), N=4)


@model(torch.tensor([[3, 1, 1, 7], [7, 7, 0, 3]]), torch.tensor([2.0, 2.0, -1.0, 2.0, 2.0, 2.0]), torch.tensor([0.5, 1, 2, 3, 4, 5, 6, 7]),
       more=[(torch.zeros(2, 4, dtype=torch.int64), torch.zeros(6), torch.ones(8)), (torch.arange(8).view(2, 4), torch.arange(6.0), torch.zeros(8))])
def elements_once(k, x, w):
    """Values that differ, in order or in runs, how often each stands there, and where."""
    a, inverse, counts = torch.unique(k, return_inverse=True, return_counts=True)
    b, run = torch.unique_consecutive(x, return_inverse=True)
    c, n = k.flatten().unique_consecutive(return_counts=True)
    number, weight = k.flatten().bincount(minlength=3), k.flatten().bincount(w)
    torch._check(number.shape[0] <= 8)
    torch._check(weight.shape[0] <= 8)
    return a, inverse, counts, b, run, c, n, x.unique() * 2, number, weight


@model(rnd(()), rnd(2, 3, seed=1), torch.tensor([[[0.5]]]).half(), rnd(2, 3, seed=2).half(), torch.tensor([7], dtype=torch.int32),
       torch.tensor([200, 3, 90], dtype=torch.uint8), torch.tensor([True, False, True]))
def operands_of_one_element(x, y, one, h, k, i, m):
    """The operand that alpha or value multiplies is the second one, in the dtype of the result."""
    sums = torch.add(x, y, alpha=2), torch.add(one, h, alpha=0.5), torch.add(k, i, alpha=3), torch.add(y, x, alpha=2), torch.sub(x, y, alpha=2)
    parts = torch.addcmul(one, i, i, value=-0.5), torch.addcdiv(x, i, x, value=-3), torch.addcmul(k[0], i, i[0], value=2)
    products = torch.cumprod(torch.cat([h.flatten() * 300, h.new_zeros(2)]), 0), torch.cumprod(i, 0, dtype=torch.float16)
    return *sums, *parts, *products, m.index_add(0, k - 7, m[1:2], alpha=2), m.index_add(0, k - 6, m[:1], alpha=2)


@model(rnd(3, 4), rnd(4, seed=1))
class products_of_weights_read_elsewhere(nn.Module):
    """Products pack constants that other nodes read as well."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(rnd(4, 4, seed=2))
        self.b = nn.Parameter(rnd(4, seed=3))

    def forward(self, x, y):
        return F.linear(x, self.w, self.b), y + self.b, y * self.w, x @ self.w, F.linear(x * 2, self.w)


def leaves(x):
    return torch.utils._pytree.tree_flatten(x)[0]  # None is a leaf


# -- matrices taken apart ---------------------------------------------------------------------------


def definite(x):
    return x @ x.mT + torch.eye(x.shape[-1])


@model(rnd(2, 4, 4), rnd(2, 4, 3, seed=1), rnd(5, 3, seed=2), rnd(2, 4, seed=3))
def matrix_factors(a, b, r, v):
    """Signs, pivots and orders are LAPACK's."""
    f, s = torch.linalg, definite(a)
    low, info = f.cholesky_ex(s)
    bad, stopped = f.cholesky_ex(s - 9 * torch.eye(4))
    lu, pivots = f.lu_factor(a)
    q = f.qr(r), f.qr(r.mT), f.qr(r, mode="complete"), torch.qr(r, some=False)
    h, tau = torch.geqrf(r)
    y = f.cholesky(s, upper=True), torch.cholesky(s), low, info, stopped, torch.cholesky_solve(b, low), torch.cholesky_inverse(low), lu, pivots
    y += *f.lu(a), *f.lu(r), *torch.lu_unpack(lu, pivots), f.lu_solve(lu, pivots, b), f.lu_solve(lu, pivots, b.mT, left=False), f.lu_solve(lu, pivots, b, adjoint=True)
    y += f.lu_solve(lu, pivots, b.mT, left=False, adjoint=True), f.lu_factor_ex(b)[2], f.solve_triangular(lu, b, upper=True), f.solve_triangular(low, b.mT, upper=False, left=False)
    y += f.solve_triangular(lu[0], b, upper=False, unitriangular=True), *torch.triangular_solve(b, a, transpose=True)
    y += h, tau, f.householder_product(h, tau), torch.ormqr(h, tau, r.mT @ r.new_ones(5, 5), left=False), torch.ormqr(h, tau, r, transpose=True)
    return *y, *(m for pair in q for m in pair)


@model(rnd(2, 4, 4), rnd(2, 4, 3, seed=1), torch.ones(3, 3), rnd(4, seed=3), rnd(2, 3, 6, seed=4), rnd(2, 3, seed=5))
def matrix_inverses(a, b, one, v, t, w):
    """`one` is singular: what checks it is not asked."""
    f = torch.linalg
    y = f.inv(a), *f.inv_ex(one[:1, :1]), f.inv_ex(one)[1], f.solve(a, b), f.solve(a[0], v), f.solve(a, b.mT, left=False), *f.solve_ex(a, b), f.solve_ex(one, one)[1]
    y += f.det(a), f.det(one), *f.slogdet(a), *f.slogdet(one), torch.logdet(a), f.tensorsolve(t, w), f.tensorinv(t, ind=2)
    return *y, f.matrix_power(a, -3), f.cond(a, 1), f.cond(one, "fro")


@model(rnd(2, 4, 4), rnd(5, 3, seed=1), torch.ones(4, 3), torch.diag(torch.tensor([1.0, -2.0, 0.0, 2.0])), rnd(2, 3, seed=2).double(), torch.zeros(2, 0, 3))
def matrix_values(a, r, one, d, wide, none):
    """Vectors have the signs of their algorithm, so they are multiplied out."""
    f, s = torch.linalg, a + a.mT
    y = [f.eigvalsh(s), f.eigvalsh(a, UPLO="U"), f.eigvalsh(d), f.svdvals(r), f.svdvals(one), f.svdvals(a), f.matrix_rank(a), f.matrix_rank(one), f.matrix_rank(d, hermitian=True)]
    y += [f.matrix_rank(a, atol=1.0, rtol=0.1), f.cond(a), f.cond(a, -2), f.cond(a, "nuc"), f.matrix_norm(a, 2), f.matrix_norm(a, -2, keepdim=True), f.matrix_norm(a, "nuc"), torch.norm(r, "nuc")]
    for x in (s, d, a @ a.mT):
        l, v = f.eigh(x)
        y += [v @ torch.diag_embed(l) @ v.mT, v.mT @ v, l]
    for x, full in ((r, True), (r.mT, True), (r, False), (one, True), (one.mT, False), (a, True)):
        u, e, v = f.svd(x, full_matrices=full)
        k = e.shape[-1]
        y += [u[..., :k] @ torch.diag_embed(e) @ v[..., :k, :], u.mT @ u, v @ v.mT, e]
    y += [f.pinv(r), f.pinv(r.mT), f.pinv(one), f.pinv(definite(a), hermitian=True), f.pinv(a, rtol=0.5), torch.pinverse(r), f.pinv(wide), f.svdvals(wide), f.eigvalsh(wide @ wide.mT)]
    y += [*f.svd(none), f.svdvals(none), f.eigvalsh(none[:0, :, :0]), f.matrix_rank(none)]
    u, e, v = torch.svd(a)
    return *y, u @ torch.diag_embed(e) @ v.mT


@model(rnd(2, 3, 3), rnd(4, 2, seed=1).double(), torch.ones(3, 3))
def matrix_rotations(a, b, one):
    """Few enough for a .pte to spell them out."""
    l, v = torch.linalg.eigh(a + a.mT)
    y = [l, v @ torch.diag_embed(l) @ v.mT]
    for x in (a, b, one):
        u, e, w = torch.linalg.svd(x)
        y += [u[..., :e.shape[-1]] @ torch.diag_embed(e) @ w, u.mT @ u, w @ w.mT, e]
    return *y, torch.linalg.eigvalsh(one, UPLO="U")


@model(rnd(3, 4, 4), rnd(3, 4, 2, seed=1), dynamic=({0: Dim("b", min=1, max=6)}, {0: Dim("b", min=1, max=6)}), more=[(rnd(5, 4, 4, seed=2), rnd(5, 4, 2, seed=3))])
def matrix_batches(a, b):
    return torch.linalg.solve(a, b), torch.linalg.det(a), torch.linalg.cholesky(definite(a)), *torch.linalg.qr(b)


@model(rnd(1).double(), rnd(2, 4, 3, seed=1).double(), torch.zeros(0, 4).double(), rnd(4, seed=2).double())
def norms_of_doubles(one, x, none, w):
    return F.layer_norm(one, (1,), None, one), F.layer_norm(x, (4, 3)), F.group_norm(x, 2, w, w), F.group_norm(none, 2, w, w), F.layer_norm(none, (4,), w)


@model(rnd(3, 3, 2), rnd(3, 4, 2, seed=1), rnd(2, 3, 3, 2, seed=2), rnd(2, 3, 2, seed=3))
def complex_systems(a, b, c, d):
    a, b, c, d = (torch.view_as_complex(x) for x in (a, b, c, d))
    y = torch.linalg.solve(a, b), torch.linalg.solve(c, d), torch.linalg.solve(c, b), torch.linalg.inv(c)
    return [torch.view_as_real(x) for x in y]


@model(rnd(20, 20), rnd(20, 3, seed=1), rnd(3, 4, 4, seed=2), dynamic=(None, None, {0: Dim("b", min=1, max=6)}), more=[(rnd(20, 20, seed=3), rnd(20, 3, seed=4), rnd(5, 4, 4, seed=5))])
def matrix_kernels(a, b, c):
    """Operators that no .pte spells out, because runtime-lite has its own kernels."""
    f = torch.linalg
    y = f.inv(a), f.det(a), f.cholesky(definite(a)), f.solve_triangular(a + 9 * torch.eye(20), b, upper=True), *f.qr(a), f.householder_product(*torch.geqrf(a)), *f.lu(a)
    return *y, f.eigvalsh(c + c.mT), f.svdvals(c), f.pinv(c), f.eigvalsh(a + a.mT), f.svdvals(a)


@model(rnd(3, 3).double(), rnd(3, 2, seed=1).double(), torch.zeros(0, 3, 3), torch.zeros(2, 0, 3), torch.zeros(0, 0))
def matrix_doubles(a, b, none, flat, point):
    f = torch.linalg
    y = f.inv(a), f.solve(a, b), f.det(a), *f.qr(b), f.cholesky(a @ a.mT)
    return *y, f.inv(none), f.det(none), f.det(point), *f.slogdet(point), *f.qr(flat), f.solve(point, point)


# -- functions of statistics, windows that are drawn, lists of sequences, writes through odd views -----


@model(rnd(4, 30).abs() * 4, rnd(4, 30, seed=1).abs() * 4, torch.tensor([0.0, 1.0, 30.0, 800.0, float("inf"), -1.0, float("nan"), 1e-6, 0.0]), torch.tensor([0.0, 0.0, 31.0, 790.0, 1.0, 1.0, 2.0, 0.5, 3.0]), rnd(40, seed=2) * 6)
def incomplete_gammas(a, x, b, y, v):
    s = torch.special
    u = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0, 110.0, -60.0], dtype=torch.float64)
    z = a.clone()
    z.igamma_(x).igammac_(x)
    return torch.igamma(a, x), torch.igammac(a, x), s.gammainc(b, y), s.gammaincc(b, y), torch.igamma(a.double(), x[0].double()), z, s.airy_ai(v), s.airy_ai(u), s.airy_ai(v.double() * 2)


@model(rnd(2, 3, 9, 8), rnd(2, 3, 7, 6, 9, seed=1), torch.rand(2, 3, 2, generator=torch.Generator().manual_seed(2)), torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(3)))
def drawn_pools(x, v, d, e):
    y = F.fractional_max_pool2d(x, 2, output_size=(4, 5), return_indices=True, _random_samples=d)
    y += F.fractional_max_pool2d(x, (3, 2), output_size=(1, 7), return_indices=True, _random_samples=d)
    return *y, *F.fractional_max_pool3d(v, (2, 3, 2), output_size=(3, 2, 5), return_indices=True, _random_samples=e)


@model(rnd(3, 5), rnd(6, 5, seed=1), rnd(1, 5, seed=2), dynamic=({0: Dim("a", min=1, max=8)}, None, None), more=[(rnd(8, 5), rnd(6, 5, seed=1), rnd(1, 5, seed=2))])
def padded_sequences(a, b, c):
    f = nn.utils.rnn.pad_sequence
    return f([a, b, c]), f([b, a], batch_first=True, padding_value=2.5), f([c, b], padding_side="left"), f([b[:, 0].long(), c[:, 1].long()], padding_value=7)


@model(rnd(4, 5), torch.tensor([1, 0, 4, 2]), torch.rand(5, generator=torch.Generator().manual_seed(1)), rnd(2, 5, 3, 2, seed=2), torch.randint(0, 5, (2, 3, 2), generator=torch.Generator().manual_seed(3)), rnd(5, seed=4))
def losses_forward(x, t, w, y, u, v):
    f, g = torch.ops.aten.nll_loss_forward, torch.ops.aten.nll_loss2d_forward
    r = [*f(x, t, None, 1, -100), *f(x, t, w, 1, 0), *f(x, t, w, 2, -100), *f(x, t, w, 0, 4), *f(v, t[0], w, 1, -100)]
    return *r, *g(y, u, None, 1, -100), *g(y, u, w, 0, 2), *g(y, u, w, 2, 3)


@model(rnd(1, 7, 6), dynamic=({1: Dim("n", min=5, max=12)},), more=[(rnd(1, 5, 6),), (rnd(1, 12, 6),)])
def windows_of_an_open_axis(x):
    return x.unfold(1, 4, 1).sum(-1), F.pad(x, (0, 0, 3, 0)).unfold(1, 4, 1) * 2, x.unfold(2, 3, 2), x.unfold(1, 2, 2)


@model(rnd(6, 4), rnd(3, 4, 2, seed=1))
def writes_through_odd_views(x, z):
    a, b, c, d, e, f = (x.clone() for _ in range(6))
    a.unfold(0, 2, 2).mul_(2)
    a.unfold(1, 2, 3).add_(1)
    b.as_strided((2, 3), (1, 5), 2).fill_(7)
    c.t().as_strided((2, 2), (3, 1), 1).mul_(x.t()[:2, :2])
    d[1:].as_strided((2, 2), (4, 1), 5).zero_()
    torch.view_as_complex(e.view(6, 2, 2)).mul_(2j)
    f[2:].unfold(0, 2, 2)[0].neg_()
    u, v = z.clone(), torch.view_as_complex(z) * 1
    torch.view_as_complex(u)[:, 1:3].mul_(1 + 1j)
    torch.view_as_real(v).add_(1)
    return a, b, c, d, e, f, u, torch.view_as_real(v), x.t().as_strided((3, 2), (2, 1), 1), x[2:].as_strided((2, 2), (4, 1), 0)


@model(rnd(3, 5), rnd(3, 2, seed=1), torch.tensor([[4, 0], [1, 1], [2, 3]], dtype=torch.int32))
def scatters_by_narrow_indices(x, y, i):
    return x.scatter_add(1, i, y), x.scatter(1, i, y * 0 + 1), x.scatter(1, i, 3.5), x.gather(1, i)


@model(rnd(3, 32), rnd(2, 3, 8, seed=1), torch.arange(-40, 40, dtype=torch.int8).view(5, 16), torch.tensor([[0.3], [0.25], [1.7], [2.0], [0.11]]))
class blocks_of_integers(nn.Module):
    """torchao's numbers, whose blocks are rows, parts of rows, matrices or all."""

    def __init__(self):
        super().__init__()
        import torchao.quantization.quant_primitives  # noqa: F401  (registers the operators)

    def forward(self, x, y, k, scales):
        q, i8, u8 = torch.ops.torchao, torch.int8, torch.uint8
        r = [torch._int_mm(k[:, :8], k[:, 8:].mT.contiguous()), q.dequantize_affine(k, [1, 16], scales.bfloat16(), None, i8, -128, 127, output_dtype=torch.bfloat16).float()]
        for v, block, t, lo, hi, kind in ((x, [1, 32], i8, -128, 127, "SYMMETRIC"), (x, [1, 8], i8, -8, 7, "SYMMETRIC_NO_CLIPPING_ERR"), (x, [3, 32], u8, 0, 255, "ASYMMETRIC"),
                                          (y, [1, 3, 4], i8, -127, 127, "SYMMETRIC"), (y, [1, 1, 8], i8, -128, 127, "ASYMMETRIC")):
            scale, zero = q.choose_qparams_affine(v, kind, block, t, lo, hi, 1e-5, torch.float32, torch.int32)
            k = q.quantize_affine(v, block, scale, zero, t, lo, hi)
            r += [scale, zero, k, q.dequantize_affine(k, block, scale, zero, t, lo, hi)]
        return tuple(r)


@model(rnd(4, 6), rnd(5, 6, seed=1), dynamic=({0: Dim("a", min=1, max=9)}, {0: Dim("b", min=1, max=9)}), more=[(rnd(9, 6), rnd(2, 6, seed=1)), (rnd(2, 6), rnd(9, 6, seed=1)), (rnd(5, 6), rnd(5, 6, seed=1))])
def branches_by_sizes(x, y):
    """Conditions that hang on sizes alone."""
    a, b = x.shape[0], y.shape[0]
    conditions = a > 4, a >= b, 2 * a + 1 < b, a <= 5, (a > 3) & (b < 6), (a < 3) | (b > 8), torch.sym_not(a > b), a // 2 == 2, a != 4
    return tuple(torch.cond(c, lambda x: x.sin().sum(0), lambda x: x.mean(0), (x,)) for c in conditions)


@model(rnd(3, 2, 8), rnd(8, 8, seed=1), rnd(3, 2, 8, seed=2))
class autocast_regions(nn.Module):
    """Products of halves, what autocast computes in f32, and what takes its operands as they are."""

    def __init__(self):
        super().__init__()
        self.fc, self.conv, self.norm = nn.Linear(8, 8), nn.Conv1d(2, 4, 3), nn.LayerNorm(8)

    def forward(self, x, w, t):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            a = self.fc(x)
            b = torch.einsum("bij,jk->bik", a, w) + x
            c = torch.bmm(a, a.mT).softmax(-1)
            d = self.conv(x), self.norm(x), F.mse_loss(a, t), torch.cat([a, x]), a.prod(-1), F.scaled_dot_product_attention(x, x, x), torch.addmm(x[0, 0], x[0], w)
        with torch.autocast("cpu", enabled=False):
            e = x @ w
        return tuple(y.float() for y in (a, b, c, *d, e))


@model(torch.tensor([[1, 2, 3, 3], [5, 0, 9, 1]]), dynamic=({0: Dim("n", min=1, max=6)},), more=[(torch.arange(12).view(3, 4) % 10,)])
class bags_of_an_open_length(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(10, 3)

    def forward(self, i):
        return self.bag(i)


@model(rnd(2, 3, 10), (rnd(3, 10) * 4).long(), dynamic=({0: Dim("b", min=1, max=4), 2: Dim("n", min=6, max=24)}, {1: Dim("m", min=8, max=24)}),
       more=[(rnd(1, 3, 23, seed=1), (rnd(3, 8) * 4).long()), (rnd(4, 3, 6, seed=1), (rnd(3, 24) * 4).long())])
def places_of_largest(x, i):
    """In windows of an open axis."""
    y = F.max_pool1d(x, 3, 2, 1, return_indices=True), F.max_pool1d(x, 2, dilation=3, return_indices=True), F.max_pool1d(i, 4, return_indices=True)
    return tuple(v for pair in y for v in pair)


@model((rnd(3, 6) * 2).round(), more=[(torch.ones(3, 6),), (-rnd(3, 6).abs(),)])
def sorts_of_what_a_mask_keeps(x):
    """Of some, of all and of none."""
    s = x[x > 0]
    return s.sort()[0], s.argsort(descending=True, stable=True), *torch.sort((s * 3).long(), stable=True)


@model(rnd(3, 4), rnd(3, 4, seed=1).abs(), torch.tensor([1, 0, 1]), dynamic=({0: Dim("n", min=2, max=6), 1: Dim("c", min=3, max=9)},) * 2 + ({0: Dim("n", min=2, max=6)},),
       more=[(rnd(5, 7), rnd(5, 7, seed=1).abs(), torch.tensor([1, 0, 2, 6, 3]))])
def losses_of_open_classes(x, p, i):
    return (F.cross_entropy(x, p), F.cross_entropy(x, p, label_smoothing=0.1, reduction="none"), F.cross_entropy(x, i, label_smoothing=0.2), F.cross_entropy(x, i, label_smoothing=0.2, reduction="none"),
            F.multi_margin_loss(x, i), F.multi_margin_loss(x, i, p=2, reduction="none"))


@model(torch.arange(8).view(2, 4), rnd(10, 3), dynamic=({0: Dim.AUTO(min=2, max=6), 1: Dim.AUTO(min=2, max=6)}, None), more=[(torch.arange(12).view(6, 2) % 10, rnd(10, 3)), (torch.arange(10).view(2, 5), rnd(10, 3))])
def steps_of_sizes(i, w):
    n, m = i.shape
    return F.embedding_bag(i, w), F.embedding_bag(i, w, mode="max"), torch.arange(0, n * m, m), torch.arange(1, n * m + 1, m)


@model(rnd(3, 4), dynamic=({0: Dim("a", min=2, max=9), 1: Dim("b", min=2, max=9)},), more=[(rnd(9, 2),), (rnd(2, 9),)])
def tensors_of_sizes(x):
    a, b = x.shape
    grid = torch.tensor([[a, b], [a * b, 3]])
    return torch.tensor(x.shape), grid, torch.tensor([a / 2, 1.5, b * 0.25]), x / torch.tensor([b, a])[0], torch.tensor(b, dtype=torch.float32), torch.tensor([a, 3.0])


@model(rnd(3, 4), dynamic=({0: Dim("a", min=2, max=9), 1: Dim("b", min=2, max=9)},), more=[(rnd(9, 2),), (rnd(2, 9),)])
def arguments_of_sizes(x):
    """Floats that are computed from sizes, as arguments that are numbers."""
    a, b = x.shape[0] / 4, x.shape[1] ** 0.5
    m, k = x > b / 2, (x * 8).long()
    y = torch.full((3,), a), torch.full_like(x, b), x.new_full((2,), a, dtype=torch.float64), torch.full((2, 2), a, dtype=torch.int64), torch.scalar_tensor(b)
    y += x.clamp(max=a / 3), x.clamp(-a, 0.25), x.clamp_min(-a / 2), x.masked_fill(m, b), torch.where(m, x, a), x.abs() ** a, a ** x, x.clone().fill_(b)
    y += m, x <= -a, k < a, k * a, k / b, x.index_fill(1, torch.tensor([1]), a), x.lerp(x * 2, a), torch.rsub(x, b), x.remainder(a), x.fmod(b), x.half().mul(b).float()
    return y


@model(rnd(4, 3, 5), rnd(4, 5, seed=1), rnd(6, 3, seed=2), rnd(2, 3, 4, seed=3))
class mapped_layers(nn.Module):
    """Operators under vmap that know no batches: each element has its own call."""

    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(5, 2), nn.LayerNorm(5)

    def forward(self, w, b, x, y):
        nets = torch.vmap(lambda w, b, x: self.fc(self.norm((x @ w + b).tanh())).softmax(-1), in_dims=(0, 0, None))(w, b, x)
        sums = torch.vmap(lambda r: (r * r).sum() + r.max())(x)
        pairs = torch.vmap(lambda r: torch.vmap(lambda q: torch.dot(r, q))(y[0]))(y[1])
        parts = torch.vmap(lambda r: torch.stack(r.chunk(2)[::-1]).mT.reshape(-1).cumsum(0), in_dims=2)(y.view(2, 1, 12).expand(2, 2, 12)[:, :, ::3])
        return nets, sums, pairs, parts


@model(rnd(2, 4, 6))
class norms_of_halves(nn.Module):
    """Their weights are floats, as autocast has it."""

    def __init__(self):
        super().__init__()
        self.layer, self.group, self.batch = nn.LayerNorm(6), nn.GroupNorm(2, 4), nn.BatchNorm1d(4)

    def forward(self, x):
        a, b = x.half(), x.bfloat16()
        return tuple(y.float() for y in (self.layer(a), self.layer(b), self.group(b), self.batch(b), self.batch(a)))


def save(values, folder, stem, rel, exact=None):
    """`exact`: of a model in f16, what f32 gives."""
    rows = []
    for i, v in enumerate(values):
        if v is None:
            rows.append({"value": None})
            continue
        if not isinstance(v, torch.Tensor):  # a number: zoo_check.py compares files only
            v = torch.tensor(v, dtype={int: torch.int64, float: torch.float64, bool: torch.bool}[type(v)])
        name = f"{stem}_{i}.npy"
        np.save(os.path.join(folder, name), v.detach().contiguous().numpy())
        rows.append({"file": os.path.join(rel, name), "dtype": str(v.dtype).split(".")[-1], "shape": list(v.shape)})
        if v.is_floating_point():
            finite = v[torch.isfinite(v)].abs()
            finite = finite[finite < 1e30]
            most = float(finite.max() if finite.numel() else 0)
            rows[-1]["atol"] = max(1e-7, 2e-5 * most)
            if exact:
                rows[-1]["atol"] = 2 * max(float((v.float() - exact[i]).abs().max()), most * 2.0 ** -11)
    return rows


def in_f32(m, inputs):
    """The outputs of a model in f16, computed in f32; None of other models."""
    if not any(getattr(t, "dtype", None) == torch.float16 for t in inputs):
        return None
    return leaves(copy.deepcopy(m).float()(*[t.float() if t.dtype == torch.float16 else t for t in inputs]))


def export(name, out):
    fn, inputs, dynamic, more, stateful, core = MODELS[name]
    torch.manual_seed(0)
    m = fn() if isinstance(fn, type) else Fn(fn)
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    with torch.no_grad():
        settle(m.eval())
        dyn = None if dynamic is None else (dynamic if isinstance(fn, type) else (dynamic,))
        torch._dynamo.reset()  # what it traced of bodies of other models
        ep = torch.export.export(m, tuple(t.clone() for t in inputs), dynamic_shapes=dyn, strict=False)
        ep = ep.run_decompositions() if core else ep
        torch.export.save(ep, os.path.join(folder, "model.pt2"))
        cases = []
        for i, args in enumerate([inputs, *more]):
            rel = f"case{i}" if i else ""
            os.makedirs(os.path.join(folder, rel), exist_ok=True)
            rows = save(args, os.path.join(folder, rel), "input", rel)
            cases.append({"inputs": rows, "outputs": save(leaves(m(*[t.clone() for t in args])), os.path.join(folder, rel), "output", rel, in_f32(m, args))})
    # zoo_check.py bounds what the export left open; unbacked symbols without a bound are offsets of views, which no model has
    ranges = {str(k): [int(r.lower), None if "oo" in str(r.upper) else int(r.upper)] for k, r in ep.range_constraints.items()
              if not (str(k).startswith(("u", "zuf")) and "oo" in str(r.upper))}
    manifest = {"name": name, "rtol": 1e-4, "atol": 0.0, "dynamic": ranges, "stateful": stateful, "cases": cases}
    json.dump(manifest, open(os.path.join(folder, "manifest.json"), "w"), indent=1)


if __name__ == "__main__":
    chosen = sys.argv[2:] or list(MODELS)
    if chosen[0] == "--part":
        chosen = list(MODELS)[int(chosen[1])::int(chosen[2])]
    for n in chosen:
        export(n, sys.argv[1])
    print(f"{len(chosen)} models exported to {sys.argv[1]}")
