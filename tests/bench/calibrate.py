#!/usr/bin/env python3
"""Compares time and memory of calibration with those of the PT2E flow, with the same model, images and
CPUs.

    calibrate.py --etc build/etc --model FOLDER [--images 300] [--cpu K] [--runs N] [--fast] [--no-official] [--work DIR]

FOLDER contains model.pt2 and input_0.npy, as export_zoo.py writes them. The images are synthetic: noise
of three grain sizes, in the range of the sample. Each flow runs in its own process on the same .npy,
pinned to CPU K (-1, the default: to none): `etc quantize --recipe int8` with one thread and with one per
core, and PT2E (XNNPACKQuantizer, prepare_pt2e, a call per image, convert_pt2e) with as many PyTorch
threads. Prints wall and CPU seconds and the peak of memory of each, and for PT2E also the time of the
calls alone and the memory of its process before them. `--fast` adds --fast-calibrate. Slow results do
not fail.
"""
import argparse
import os
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def make_images(like, n, path):
    """float32 [n, ...] for an input [1, ...]; integers are drawn from what the sample holds."""
    if os.path.exists(path) and np.load(path, mmap_mode="r").shape == (n, *like.shape[1:]):
        return
    rng = np.random.default_rng(0)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=like.dtype, shape=(n, *like.shape[1:]))
    for i in range(n):
        if like.dtype.kind != "f":
            out[i] = rng.choice(like.ravel(), like.shape[1:])
            continue
        x = np.zeros(like.shape[1:], np.float32)
        for grain in (1, 8, 32):
            small = [-(-s // grain) if k >= x.ndim - 2 else s for k, s in enumerate(x.shape)]
            z = rng.standard_normal(small).astype(np.float32)
            for axis in range(max(0, x.ndim - 2), x.ndim):
                z = z.repeat(grain, axis)
            x += z[tuple(slice(s) for s in x.shape)]
        out[i] = x * (like.std() / x.std()) + like.mean()
    out.flush()


def official(model, data):
    """Runs the PT2E flow as the documentation of executorch's XNNPACK backend describes it."""
    import resource
    import torch
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    images = np.load(data, mmap_mode="r")
    start = time.monotonic()
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    gm = prepare_pt2e(torch.export.load(model).module(), quantizer)
    before, at = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    with torch.no_grad():
        for i in range(len(images)):
            gm(torch.from_numpy(np.array(images[i:i + 1])))
    after, end = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    convert_pt2e(gm)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"    of which the calls {end - at:.2f} s, {cpu:.2f} s of CPU; model and observers before {at - start:.2f} s, {before.ru_maxrss / 1024:.0f} MB;"
          f" {torch.get_num_threads()} threads", file=sys.stderr)


def launch(args, name, command):
    """Returns the best of the runs, because other processes share the machine."""
    p = subprocess.run([os.path.join(args.work, "launch"), str(args.cpu), str(args.runs), *command], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, text=True, check=True)
    rows = [[float(v) for v in line.split()] for line in p.stdout.splitlines()]
    if any(r[0] for r in rows):
        sys.exit(f"calibrate.py: {name}: {' '.join(command)} failed")
    wall, cpu, peak = (min(r[k] for r in rows) for k in (1, 2, 3))
    print(f"{name:32} {wall:8.2f} s {cpu:8.2f} s of CPU {peak / 1024:8.0f} MB", flush=True)
    return wall, cpu


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--etc", default="build/etc")
    p.add_argument("--model", required=True)
    p.add_argument("--recipe", default="int8")
    p.add_argument("--images", type=int, default=300)
    p.add_argument("--cpu", type=int, default=-1)
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--cc", default="cc")
    p.add_argument("--work", default="build/bench")
    p.add_argument("--fast", action="store_true")
    p.add_argument("--no-official", action="store_true")
    args = p.parse_args()
    os.makedirs(args.work, exist_ok=True)
    subprocess.run([args.cc, "-O2", "-o", os.path.join(args.work, "launch"), os.path.join(HERE, "launch.c")], check=True)
    data = os.path.join(args.work, f"{os.path.basename(os.path.normpath(args.model))}-{args.images}.npy")
    make_images(np.load(os.path.join(args.model, "input_0.npy")), args.images, data)
    model = os.path.join(args.model, "model.pt2")
    etc = [args.etc, "quantize", model, "--recipe", args.recipe, "--calibrate", data, "-q", "--statistics",
           os.path.join(args.work, "statistics.txt")]
    ours = {"etc, 1 thread": launch(args, "etc, 1 thread", [*etc, "--threads", "1"]), "etc": launch(args, "etc", etc)}
    if args.fast:
        launch(args, "etc --fast-calibrate, 1 thread", [*etc, "--fast-calibrate", "--threads", "1"])
        launch(args, "etc --fast-calibrate", [*etc, "--fast-calibrate"])
    if args.no_official:
        return
    theirs = launch(args, "PT2E", [sys.executable, os.path.abspath(__file__), "--flow", model, data])
    for name, (wall, cpu) in ours.items():
        print(f"PT2E / {name}: wall {theirs[0] / wall:.1f}, CPU {theirs[1] / cpu:.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--flow"]:
        official(*sys.argv[2:])
    else:
        main()
