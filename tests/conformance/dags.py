#!/usr/bin/env python3
"""Exports random models, in the zoo's format, for zoo_check.py.

    dags.py OUTDIR SEED ...

Each is a graph of some 5 to 25 operators whose results are read several times, returned beside what is made of them,
returned twice, or changed in place, with patterns that passes rewrite but for one thing. Ten runs whose operators err in
the last bits tell how exact an output can be: it may be off by ten times as much, or by the zoo's tolerance. An output
that such errors change altogether is left out.
"""
import json
import math
import os
import random
import sys
import warnings

import torch
import torch.nn.functional as F
from torch.utils import _pytree as pytree
from torch.utils import _python_dispatch as dispatch

import variants

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
MOST = 4000  # elements of a value
RUNS = 10
MOVES = ("cat", "stack", "clone", "where", "slice", "select", "index", "neg", "abs", "relu", "amax", "pad", "flip", "repeat",
         "max_pool", "clamp", "hardtanh", "roll", "maximum", "minimum", "copy_", "zero", "full", "ones")


class NoModel(Exception):
    """The operators and operands that were drawn do not fit together."""


class Shaken(dispatch.TorchDispatchMode):
    """Results of operators that compute are off by up to a last bit or two."""

    def __init__(self, seed):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func._schema.name.split("::")[1]
        if name.startswith(MOVES) or any(r.alias_info for r in func._schema.returns):
            return out
        return pytree.tree_map_only(torch.Tensor, self.shake, out)

    def shake(self, t):
        if not t.is_floating_point():
            return t
        with dispatch._disable_current_modes():
            by = (torch.rand(t.shape, generator=self.generator) * 2 - 1) * 2 * torch.finfo(t.dtype).eps
            return (t.double() * (1 + by.double())).to(t.dtype)


class Model(torch.nn.Module):
    """Runs the steps: a function each, the values that it reads, and those that it makes."""

    def __init__(self, n, constants, steps, outs):
        super().__init__()
        self.n, self.steps, self.outs = n, steps, outs
        for i, c in enumerate(constants):
            self.register_buffer(f"c{i}", c.clone())

    def forward(self, *x):
        value = {f"x{i}": t for i, t in enumerate(x)} | dict(self.named_buffers())
        for function, reads, makes in self.steps:
            value.update(zip(makes, variants.leaves(function(*[value[k] for k in reads]))))
        return tuple(value[k] for k in self.outs)


class Draw:
    """A model in the making; `value` has what each value is for the example."""

    def __init__(self, seed):
        self.random, self.generator = random.Random(seed), torch.Generator().manual_seed(seed)
        self.inputs, self.constants, self.steps, self.value, self.changes = [], [], [], {}, False
        for i in range(self.random.randint(1, 3)):
            a, b = self.one(1, 2, 3, 4, 6, 8), self.one(2, 4, 5, 8)
            shape = self.one((self.one(1, 2), a, self.random.randint(3, 9), b), (self.one(1, 2), a, b), (a, b))
            self.inputs.append(self.normal(*shape))
            self.value[f"x{i}"] = self.inputs[-1].clone()

    def one(self, *of):
        return self.random.choice(of)

    def normal(self, *shape, by=1.0):
        return torch.randn(shape, generator=self.generator) * by

    def constant(self, *shape, by=1.0):
        self.constants.append(self.normal(*shape, by=by))
        name = f"c{len(self.constants) - 1}"
        self.value[name] = self.constants[-1].clone()
        return name

    def pick(self, fits=lambda t: True):
        known = [k for k, t in self.value.items() if fits(t) and 0 < t.numel() <= MOST]
        if not known:
            raise NoModel
        return self.random.choice(known[-5:] if self.random.random() < 0.6 else known)

    def floats(self, *ranks):
        return self.pick(lambda t: t.is_floating_point() and (not ranks or t.dim() in ranks))

    def do(self, function, *reads):
        try:
            made = variants.leaves(function(*[self.value[k] for k in reads]))
        except (RuntimeError, IndexError, TypeError, ValueError) as e:
            raise NoModel from e
        if any(t.numel() > MOST or t.dim() > 5 for t in made):
            raise NoModel
        names = [f"v{len(self.steps)}_{i}" for i in range(len(made))]
        self.value.update(zip(names, made))
        self.steps.append((function, reads, names))
        return names[0]

    def beside(self, name):
        """A value, or a new constant, that spreads over this one or the other way round."""
        shape = self.value[name].shape
        near = [k for k, t in self.value.items() if t.shape == shape]
        if self.random.random() < 0.4:
            return self.random.choice(near)
        shape = self.one(shape, shape[self.random.randint(0, len(shape)):], ())
        return self.constant(*[s if self.random.random() < 0.7 else 1 for s in shape])


PAIRS = (torch.add, torch.mul, torch.sub, torch.div, torch.maximum, lambda a, b: torch.add(a, b, alpha=2),
         lambda a, b: torch.rsub(a, b, alpha=3), torch.lt, torch.eq)
ALONE = (torch.relu, F.gelu, F.silu, F.hardswish, torch.sigmoid, torch.tanh, torch.exp, torch.neg, torch.abs, torch.square, torch.rsqrt,
         torch.erf, torch.floor, F.relu6, F.softplus, lambda x: x.clamp(-1, 2), lambda x: x * 0.5, lambda x: 2 - x, lambda x: x / 3,
         lambda x: x.to(torch.float16), lambda x: x.clamp(-100, 100).to(torch.int32), lambda x: x.float(), lambda x: x > 0, lambda x: x.isnan())


def alone(d):
    d.do(d.one(*ALONE), d.pick())


def pair(d):
    a = d.pick()
    b = d.beside(a)
    d.do(d.one(*PAIRS), *d.one((a, b), (b, a), (a, a)))


def moved(d):
    a = d.pick(lambda t: t.dim() > 0)
    rank, r = d.value[a].dim(), d.random
    axis, other, order = r.randrange(rank), r.randrange(rank), r.sample(range(rank), rank)
    n = d.value[a].shape[axis]
    at, step, cut = r.randrange(n), r.randint(1, 2), [r.randint(-1, 2) for _ in range(2)]
    d.do(d.one(lambda x: x.permute(order), lambda x: x.transpose(axis, other), lambda x: x.narrow(axis, at, n - at),
               lambda x: x.flatten(), lambda x: x.unsqueeze(axis), lambda x: x.select(axis, at), lambda x: x.flip(axis),
               lambda x: x.chunk(2, axis), lambda x: torch.cat([x, x], axis), lambda x: x.unfold(axis, 1 + at, step),
               lambda x: F.pad(x, cut), lambda x: x.reshape(n, -1), lambda x: x.movedim(axis, -1).contiguous().movedim(-1, axis),
               lambda x: x.roll(at, axis), lambda x: torch.stack([x, x * 1], axis)), a)


def reduced(d):
    a = d.floats()
    t, keep = d.value[a], d.one(True, False)
    if not t.dim():
        raise NoModel
    axes = d.random.sample(range(t.dim()), d.random.randint(1, t.dim()))
    d.do(d.one(lambda x: x.mean(axes, keepdim=keep), lambda x: x.sum(axes, keepdim=keep), lambda x: x.amax(axes, keepdim=keep),
               lambda x: x.var(axes, keepdim=keep), lambda x: torch.softmax(x, axes[0]), lambda x: torch.log_softmax(x, axes[0]),
               lambda x: x.cumsum(axes[0]), lambda x: x.max(axes[0], keepdim=keep)), a)


def tail(d, x, channels, shapes):
    """Factors, terms, norms and functions behind a product; what stands before one may be read again."""
    for _ in range(d.random.randint(1, 4)):
        s = d.constant(*d.one(*shapes))
        f = d.one(torch.add, torch.mul, torch.sub, torch.div)
        y = d.do(f, *d.one((x, s), (s, x))) if d.random.random() < 0.6 else d.do(d.one(*ALONE[:10]), x)
        if channels and d.random.random() < 0.4:
            mean, var = d.constant(channels), d.do(lambda v: v.abs() + 0.5, d.constant(channels))
            y = d.do(lambda x, m, v: F.batch_norm(x, m, v, eps=1e-3), y, mean, var)
        if d.random.random() < 0.3:
            d.do(torch.add, x, y)
        x = d.one(x, y, y, y)


def convolved(d):
    x = d.floats(4)
    n, c, h, w = d.value[x].shape
    groups, k, stride, pad = d.one(1, c), d.one(1, 3), d.one(1, 2), d.one(0, 1)
    out = groups * d.random.randint(1, 3)
    weight, bias = d.constant(out, c // groups, k, k, by=(c // groups * k * k) ** -0.5), d.constant(out)
    y = d.do(lambda x, w, b: F.conv2d(x, w, b, stride, pad, 1, groups), x, weight, bias)
    n, c, h, w = d.value[y].shape
    tail(d, y, c, [(1, c, 1, 1), (c, 1, 1), (), (1, 1, h, w), (n, 1, 1, 1), (w,), (1, c, h, 1)])


def multiplied(d):
    x = d.floats(2, 3)
    k, n = d.value[x].shape[-1], d.random.randint(1, 9)
    w, b = d.constant(n, k, by=k ** -0.5), d.constant(n)
    y = d.do(d.one(F.linear, lambda x, w, b: x @ w.t() + b, lambda x, w, b: F.linear(x, w), lambda x, w, b: b + 2 * (x @ w.t())), x, w, b)
    if d.random.random() < 0.3:
        d.do(torch.mul, d.one(w, b), d.constant())
    tail(d, y, 0, [(n,), (), (1, n), (d.value[y].shape[0],) + (1,) * (d.value[y].dim() - 1)])


def normed(d):
    x = d.floats(2, 3, 4)
    n, eps, axes = d.value[x].shape[-1], d.one(1e-5, 1e-3), d.one([-1], [-1], [-1], [-2], [-1, -2])
    c = d.do(lambda x: x - x.mean(axes, keepdim=True), x) if d.random.random() < 0.6 else x
    v = d.do(lambda c: squared(c).mean(axes, keepdim=True), c)
    y = d.do(d.one(lambda c, v: c * torch.rsqrt(v + eps), lambda c, v: c / torch.sqrt(v + eps), lambda c, v: c / (v.sqrt() + eps)), d.one(c, c, x), v)
    for _ in range(d.random.randint(0, 2)):
        y = d.do(d.one(torch.mul, torch.add), y, d.constant(*d.one((n,), (), (1, n))))


def squared(c):
    return c.pow(2)


def activated(d):
    x, half, root = d.floats(), d.one(0.5, 0.5, 0.49), d.one(math.sqrt(2), math.sqrt(2), 1.4)
    y = d.one(x, x, d.beside(x))
    d.do(d.one(lambda x, y: x * half * (1 + torch.erf(y / root)), lambda x, y: x * torch.sigmoid(y),
               lambda x, y: x * F.relu6(y + 6 * half) / 6, lambda x, y: x * (y + 3).clamp(0, 12 * half) * (1 / 6),
               lambda x, y: half * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y ** 3)))), x, y)


def attended(d):
    x = d.floats(3)
    b, n, width = d.value[x].shape
    heads, size = d.one(1, 2, 4), d.one(2, 4)
    kv = d.one(heads, heads, 1)

    def part(h):
        y = d.do(F.linear, x, d.constant(h * size, width, by=width ** -0.5))
        y = d.do(lambda y: y.view(b, n, h, size).transpose(1, 2), y)
        return d.do(lambda y: y.repeat_interleave(heads // h, 1), y) if h < heads else y

    q, k, v, scale = part(heads), part(kv), part(kv), d.one(size ** -0.5, 0.3)
    mask = torch.ones(n, n).tril().bool() if d.one(True, False) else torch.rand(n, n, generator=d.generator) < 0.6
    fill, axis = d.one(-math.inf, -1e4, 0.0), d.one(-1, -1, -1, -2)
    s = d.do(lambda q, k: q @ k.transpose(-1, -2) * scale, q, k)
    s = d.one(s, d.do(lambda s: s.masked_fill(~mask, fill), s))
    y = d.do(torch.matmul, d.do(lambda s: torch.softmax(s, axis), s), v)
    d.do(lambda y: y.transpose(1, 2).reshape(b, n, -1), y)


def pooled(d):
    x, k, pad = d.floats(4), d.random.randint(1, 3), d.one(0, 1)
    size = d.random.randint(1, 6), d.random.randint(1, 6)
    d.do(d.one(lambda x: F.max_pool2d(x, k, 1, min(pad, k // 2)), lambda x: F.avg_pool2d(x, k, 2, min(pad, k // 2)),
               lambda x: F.adaptive_avg_pool2d(x, size), lambda x: F.interpolate(x, size, mode="bilinear"),
               lambda x: F.interpolate(x, scale_factor=2.0)), x)


def written(d):
    """A clone, or a state, that is written through a view."""
    x = d.floats(1, 2, 3, 4)
    t, s = d.value[x], d.one(2.0, -0.5)
    axis, at = d.random.randrange(t.dim()), d.random.randrange(t.shape[0])

    def through_views(x):
        y = x.clone()
        z = y.transpose(0, axis)
        z.narrow(0, 0, 1).mul_(s)
        y.select(0, at).add_(1)
        return y, z, y + z.transpose(0, axis)

    def state(b, x):
        before = b * s
        b.mul_(0.5).add_(x)
        return before, b.clone()

    if d.one(True, False):
        d.do(through_views, x)
    else:
        d.do(state, d.constant(*t.shape), x)
        d.changes = True


PARTS = [alone] * 4 + [pair] * 5 + [moved] * 5 + [reduced] * 3 + [convolved] * 4 + [multiplied] * 3 + [normed] * 2 + [activated] * 2 + [
    attended, pooled, pooled, written]


def draw(seed):
    """The model with the outputs that no last bit decides, its calls, and the tolerances; None if there are none."""
    d = Draw(seed)
    most = d.one(5, 8, 12, 25)
    for _ in range(4 * most):
        if len(d.steps) < most:
            try:
                d.one(*PARTS)(d)
            except NoModel:
                pass
    made = [k for k in d.value if k[0] == "v"]
    read = {k for _, reads, _ in d.steps for k in reads}
    outs = [k for k in made if k not in read][-6:] + d.random.choices(made, k=d.random.randint(1, 5)) if made else []
    calls = [d.inputs, [d.normal(*t.shape) for t in d.inputs]]
    build = lambda: Model(len(d.inputs), d.constants, d.steps, outs).eval()
    want = run(build(), calls)
    spread = [[0.0] * len(outs) for _ in calls]
    for k in range(RUNS):
        with Shaken(k):
            other = run(build(), calls)
        spread = [[max(s, off(a, b)) for s, a, b in zip(*row)] for row in zip(spread, want, other)]
    kept = [i for i in range(len(outs)) if all(row[i] <= 1e-3 * top(t[i]) for row, t in zip(spread, want))]
    outs = [outs[i] for i in kept]
    return (build, calls, [[row[i] for i in kept] for row in spread], d.changes) if outs else None


def run(model, calls):
    with torch.no_grad():
        return [[t.clone() for t in model(*[t.clone() for t in x])] for x in calls]


def top(t):
    t = t[t.isfinite()].abs() if t.is_floating_point() else t.new_zeros(0)
    return max(float(t.max()), 1e-3) if t.numel() else 1e-3


def off(a, b):
    """By how much two results differ; infinity for what is no float, and where one alone is finite."""
    if torch.equal(a, b):
        return 0.0
    if not a.is_floating_point() or not torch.equal(a.isfinite(), b.isfinite()) or not torch.equal(a.isnan(), b.isnan()):
        return math.inf
    finite = (a - b)[a.isfinite()].abs()
    return float(finite.max()) if finite.numel() else 0.0


def export(seed, out):
    drawn = draw(seed)
    if not drawn:
        return
    build, calls, spread, changes = drawn
    name = f"dag_{seed}"
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    with torch.no_grad():
        torch.export.save(torch.export.export(build(), tuple(t.clone() for t in calls[0]), strict=False), os.path.join(folder, "model.pt2"))
    cases = []
    for i, (x, y) in enumerate(zip(calls, run(build(), calls))):
        rel = f"case{i}"
        os.makedirs(os.path.join(folder, rel), exist_ok=True)
        rows = variants.save(y, os.path.join(folder, rel), "output", rel)
        for row, s, t in zip(rows, spread[i], y):
            if "atol" in row:
                row["atol"] = max(row["atol"], 10 * s, (2.0 ** -10 if t.dtype == torch.float16 else 0) * top(t))
        cases.append({"inputs": variants.save(x, os.path.join(folder, rel), "input", rel), "outputs": rows})
    manifest = {"name": name, "rtol": 1e-4, "atol": 0.0, "dynamic": {}, "stateful": changes, "cases": cases}
    with open(os.path.join(folder, "manifest.json"), "w", encoding="utf-8") as f:
        json.dump(manifest, f, indent=1)


if __name__ == "__main__":
    for s in sys.argv[2:]:
        export(int(s), sys.argv[1])
