#!/usr/bin/env python3
"""Fits the constants of partition/xnnpack/cost.c and ir/cost.c to measurements.

    fit_costs.py inside ETC_XNN MODEL.pt2 ...    nodes in delegates, and calls, by `etc-xnn bench`
    fit_costs.py outside ETC_XNN FOLDER          kernels of the official runtime (torch, executorch):
                                                 programs of one operator, made in FOLDER

For each kind of work it prints the seconds per node, and per multiply-add or per byte, none of them below zero,
and how much the fitted estimates and those in the code differ from the measurements: the median of |ln(estimate
/ measured)|.
"""
import itertools
import json
import logging
import os
import subprocess
import sys
import time

import numpy as np

LEAST = 3e-6  # XNNPACK counts whole microseconds
BY_MACS = {"attention", "conv", "depthwise", "pool", "product"}  # the others by bytes


def distance(estimate, measured):
    return float(np.median(np.abs(np.log(np.maximum(estimate, 1e-9) / measured))))


def fit(units, measured):
    """Seconds per node and per unit, neither below zero, that come nearest in ratio."""
    x, y = np.stack([np.ones(len(units)), units], 1), np.asarray(measured, float)
    tries = []
    for columns in ([0, 1], [0], [1]):
        part, weight = x[:, columns] / y[:, None], np.ones(len(y))
        for _ in range(50):  # absolute deviations by weights
            root = np.sqrt(weight)
            found = np.linalg.lstsq(part * root[:, None], root, rcond=None)[0]
            weight = 1 / np.maximum(np.abs(part @ found - 1), 0.02)
        c = np.zeros(2)
        c[columns] = found
        if (c >= 0).all():
            tries.append((np.abs(np.log(x @ c / y)).mean(), tuple(c)))
    return np.array(min(tries)[1])


def report(rows):
    """rows: work, multiply-adds, bytes, measured, estimate of the code."""
    print(f"{'work':12} {'n':>5} {'s/node':>10} {'per':>6} {'s':>10} {'error':>7} {'in code':>7}")
    for work in sorted({r[0] for r in rows}):
        mine = [r for r in rows if r[0] == work]
        units = np.array([r[1] if work in BY_MACS else r[2] for r in mine], float)
        y = np.array([r[3] for r in mine])
        c = fit(units, y)
        print(f"{work:12} {len(mine):5} {c[0]:10.3g} {'mac' if work in BY_MACS else 'byte':>6} {c[1]:10.3g} "
              f"{distance(c[0] + c[1] * units, y):7.2f} {distance(np.array([r[4] for r in mine]), y):7.2f}")
    y = np.array([r[3] for r in rows])
    print(f"all: error of the estimates in the code {distance(np.array([r[4] for r in rows]), y):.2f}")


def bench(etc_xnn, model, *flags):
    p = subprocess.run([etc_xnn, "bench", model, "--json", *flags], capture_output=True, text=True, check=False)
    if p.returncode:
        print(f"{model}: {p.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(p.stdout)


def inside(etc_xnn, *models):
    rows, calls = [], []
    for model in models:
        measured = bench(etc_xnn, model, "--backend", "xnnpack", "--runs", "10")
        for i in measured["instructions"] if measured else []:
            d = i["delegate"]
            if not d or not d["operations"]:
                continue
            left = i["seconds"] - sum(o["seconds"] + 0.5e-6 for o in d["operations"])
            calls.append((len(d["operations"]), d["border_bytes"], max(left, 1e-7)))
            rows += [(n["work"], n["macs"], n["bytes"], n["seconds"], n["predicted_seconds"])
                     for n in d["nodes"] if n["seconds"] >= LEAST]
    report(rows)
    c = fit([b for _, b, _ in calls], [t for _, _, t in calls])
    print(f"{len(calls)} calls: {c[0]:.3g} s, {c[1]:.3g} s per byte of the border")


# -- kernels outside -------------------------------------------------------------------------------

def shape(*dims):
    return f"f32[{','.join(map(str, dims))}]"


def programs():
    """Name, call, inputs, types of the results."""
    unary = [("gelu", ', approximate="none"'), ("erf", ""), ("exp", ""), ("tanh", ""), ("sigmoid", ""), ("silu", ""),
             ("sqrt", ""), ("rsqrt", ""), ("log", ""), ("sin", ""), ("cos", ""), ("elu", ", 1, 1, 1"), ("relu", ""), ("neg", ""),
             ("abs", ""), ("hardswish", ""), ("leaky_relu", ", 0.01"), ("hardtanh", ", -1.0, 1.0")]
    for n in (256, 4096, 16384):
        x, w = shape(1, n, 64), shape(64)
        for op, more in unary:
            yield f"{op}_{n}", f"aten.{op}.default(%x{more})", {"x": x}, [x]
        for op, more in (("add", ", alpha=1"), ("sub", ", alpha=1"), ("mul", ""), ("div", "")):
            yield f"{op}_{n}", f"aten.{op}.Tensor(%x, %y{more})", {"x": x, "y": x}, [x]
        yield f"row_{n}", "aten.add.Tensor(%x, %y, alpha=1)", {"x": x, "y": w}, [x]
        yield f"softmax_{n}", "aten._softmax.default(%x, -1, false)", {"x": x}, [x]
        yield f"permute_{n}", "aten.permute.default(%x, [0, 2, 1])", {"x": x}, [shape(1, 64, n)]
        yield f"cat_{n}", "aten.cat.default([%x, %y], 2)", {"x": x, "y": x}, [shape(1, n, 128)]
        yield f"slice_{n}", "aten.slice.Tensor(%x, 2, 0, 32, 1)", {"x": x}, [shape(1, n, 32)]
        yield f"expand_{n}", f"aten.expand.default(%x, [2, {n}, 64], false)", {"x": x}, [shape(2, n, 64)]
        yield f"mean_{n}", "aten.mean.dim(%x, [-1], true, none)", {"x": x}, [shape(1, n, 1)]
        yield f"sum_{n}", "aten.sum.dim_IntList(%x, [-1], true, none)", {"x": x}, [shape(1, n, 1)]
        yield (f"norm_{n}", "aten.native_layer_norm.default(%x, [64], %w, %b, 1e-05)", {"x": x, "w": w, "b": w},
               [x, shape(1, n, 1), shape(1, n, 1)])
    for m, k, n in ((64, 64, 64), (197, 192, 768), (128, 512, 512)):
        yield f"bmm_{m}", "aten.bmm.default(%x, %y)", {"x": shape(1, m, k), "y": shape(1, k, n)}, [shape(1, m, n)]
        yield f"mm_{m}", "aten.mm.default(%x, %y)", {"x": shape(m, k), "y": shape(k, n)}, [shape(m, n)]
    for c, h in ((16, 28), (32, 28), (64, 14)):
        x = shape(1, c, h, h)
        for name, group, size in (("one", c, 1), ("conv", c, 3), ("depth", 1, 3)):
            yield (f"{name}_{c}", f"aten.convolution.default(%x, %w, none, [1, 1], [{size // 2}, {size // 2}], [1, 1], false, "
                   f"[0, 0], {c // group})", {"x": x, "w": shape(c, group, size, size)}, [x])
        yield f"pool_{c}", "aten.max_pool2d.default(%x, [3, 3], [1, 1], [1, 1], [1, 1], false)", {"x": x}, [x]


def fast_run(method, inputs, seconds=0.2):
    """Returns the tenth fastest of a hundred runs: other processes make a run longer, never shorter."""
    took, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds or len(took) < 5:
        t = time.perf_counter()
        method.execute(inputs)
        took.append(time.perf_counter() - t)
    return float(np.quantile(took, 0.1))


def write_program(path, call, inputs, types):
    values = ", ".join(f"%{k}: {t}" for k, t in inputs.items())
    results = ", ".join(f"%r{k}" for k in range(len(types)))
    with open(path, "w", encoding="utf-8") as f:
        f.write(f'program "one" stage core\nmethod @forward({values}) {{\n'
                f"  {results} = {call} : {', '.join(types)}\n  return %r0\n}}\n")


def official(path, inputs):
    import torch
    from executorch.runtime import Runtime
    method = Runtime.get().load_program(path).load_method("forward")
    return fast_run(method, [torch.rand([int(d) for d in t[4:-1].split(",")]) + 0.1 for t in inputs.values()])


def work_of(measured):
    """Kind, multiply-adds, bytes and the estimate of kernels; a node may have been cut into several."""
    nodes = [n for i in measured["instructions"] for n in (i["delegate"]["nodes"] if i["delegate"] else [i])]
    mine = [n for n in nodes if n["op"] == nodes[0]["op"]]
    return (mine[0]["work"], *(sum(n[k] for n in mine) for k in ("macs", "bytes", "seconds_outside")))


def outside(etc_xnn, folder):
    logging.disable(logging.WARNING)
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch
    torch.set_num_threads(1)
    from executorch.extension.pybindings import portable_lib
    portable_lib._unsafe_reset_threadpool(1)
    os.makedirs(folder, exist_ok=True)
    tiny = {"x": shape(1)}
    rows, call = [], None
    for name, text, inputs, types in itertools.chain([("call", "aten.neg.default(%x)", tiny, [tiny["x"]])], programs()):
        path = os.path.join(folder, name)
        write_program(path + ".etir", text, inputs, types)
        subprocess.run([etc_xnn, "compile", path + ".etir", "-o", path + ".pte", "-q"], check=True)
        took = official(path + ".pte", inputs)
        call = call or took  # of Python and a node that does nothing
        if took > 2 * call:
            rows.append((*work_of(bench(etc_xnn, path + ".etir", "--backend", "xnnpack", "--delegate", "all",
                                        "--runs", "1")), took - call))
    rows = [(work, macs, size, took, estimate) for work, macs, size, estimate, took in rows]
    report(rows)
    calls = []
    for n in (1, 1 << 12, 1 << 16, 1 << 18, 1 << 20):
        path, x = os.path.join(folder, f"call_{n}"), shape(n)
        write_program(path + ".etir", "aten.neg.default(%x)", {"x": x}, [x])
        subprocess.run([etc_xnn, "compile", path + ".etir", "-o", path + ".pte", "-q", "--backend", "xnnpack",
                        "--delegate", "all"], check=True)
        node = bench(etc_xnn, path + ".pte")["instructions"][0]["delegate"]["operations"][0]
        calls.append((8 * n, max(official(path + ".pte", {"x": x}) - call - node["seconds"], 1e-7)))
    c = fit([b for b, _ in calls], [t for _, t in calls])
    print(f"a call: {c[0]:.3g} s, {c[1]:.3g} s per byte of the border")
    chains(etc_xnn, folder)


def chains(etc_xnn, folder):
    """Seconds that a small node adds to a program, in the official runtime's kernels and in XNNPACK."""
    small = [("arithmetic", ["aten.neg.default(@)", "aten.mul.Tensor(@, %y)"], [64]),
             ("function", ["aten.sigmoid.default(@)", 'aten.gelu.default(@, approximate="none")'], [64]),
             ("product", ["aten.bmm.default(@, %y)"], [1, 8, 8]),
             ("softmax", ["aten._softmax.default(@, -1, false)"], [8, 8])]
    for (work, calls, size), flags in itertools.product(small, ([], ["--backend", "xnnpack", "--delegate", "all"])):
        took = []
        for n in (2, 42):
            path, x = os.path.join(folder, f"{work}_{n}"), shape(*size)
            body = "".join(f"  %v{k + 1} = {calls[k % len(calls)].replace('@', f'%v{k}')} : {x}\n" for k in range(n))
            with open(path + ".etir", "w", encoding="utf-8") as f:
                f.write(f'program "chain" stage core\nmethod @forward(%v0: {x}, %y: {x}) {{\n{body}  return %v{n}\n}}\n')
            subprocess.run([etc_xnn, "compile", path + ".etir", "-o", path + ".pte", "-q", *flags], check=True)
            took.append(official(path + ".pte", {"x": x, "y": x}))
        print(f"{work:12} {(took[1] - took[0]) / 40:10.3g} s/node", "in XNNPACK" if flags else "outside")


if __name__ == "__main__":
    {"inside": inside, "outside": outside}[sys.argv[1]](*sys.argv[2:])
