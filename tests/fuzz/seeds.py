#!/usr/bin/env python3
"""Writes seeds for fuzz_kernel, fuzz_full and fuzz_pte, made from files of the tests.

    seeds.py ROOT SEEDS               kernel and full
    seeds.py ROOT SEEDS ETC BUILD     pte: exported models, those of BUILD/variants too where there are any

kernel  each kernel's first recorded calls as they are, and with bytes that change them
full    every program of the goldens and of tests/data, in each way that it may be compiled
pte     every exported model by every recipe, with and without XNNPACK
"""
import glob
import os
import random
import re
import subprocess
import sys

RECIPES = ["int8", "int8-dynamic", "int8-weight", "int4-group32", "8da4w", "fp16", "int8-reduced"]
CALIBRATED = {"int8", "int8-reduced"}
WAYS = ["c", "pte", "pte xnnpack all check"]
KERNELS, CALLS, LARGEST, LONGEST = 256, 6, 200_000, 6000
PROGRAM = re.compile(r'^program "(?:.|\n)*?(?=^;|^program "|\Z)', re.M)


def write(folder, name, data):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, str(name)), "wb") as f:
        f.write(data)


def kernels(folder):
    """As fuzz_kernel.c reads them: kernel, call and instruction set, then changes."""
    rng = random.Random(1)
    for k in range(KERNELS):
        for call in range(CALLS):
            start = bytes([k, 0, call * 41 % 256, 0, call % 3])
            write(folder, f"{k}_{call}", start)
            write(folder, f"{k}_{call}_changed", start + rng.randbytes(60))


def programs(root):
    for path in sorted(glob.glob(os.path.join(root, "tests/**/*.etir"), recursive=True)):
        with open(path, encoding="latin1") as f:
            for m in PROGRAM.finditer(f.read()):
                if len(m[0]) < LONGEST:
                    yield m[0].rstrip() + "\n"


def full(root, folder):
    n = 0
    for i, text in enumerate(programs(root)):
        for k in (i, i + 1 + i // 3):
            recipe = " recipe=" + RECIPES[i // 6 % 6] if k % 2 else ""
            write(folder, n, f"; full {WAYS[k % 3]}{recipe}\n{text}".encode("latin1"))
            n += 1
    assert n > 900, f"{n} programs in {root}/tests"


def models(root, build):
    """A model, samples of its inputs or none, and the recipes to compile it by."""
    for path in sorted(glob.glob(os.path.join(root, "tests/data/*/model.pt2"))):
        name = os.path.basename(os.path.dirname(path))
        samples = os.path.join(root, "tests/data/quantized", name + "_calibration.npy")
        has_samples = os.path.exists(samples)
        yield path, samples, [None] + [r for r in RECIPES if has_samples or r not in CALIBRATED]
    for i, path in enumerate(sorted(glob.glob(os.path.join(build, "variants/*/model.pt2")))):
        yield path, None, [None, RECIPES[1 + i % 5]][:1 + i % 2]


def compiled(etc, model, path, samples, recipe, backend):
    """Returns whether it could be written; a seed that is too large is left out."""
    options = ["--recipe", recipe] if recipe else []
    options += ["--calibrate", samples] if recipe in CALIBRATED else []
    options += ["--backend", "xnnpack", "--delegate", "all"] if backend else []
    p = subprocess.run([etc, "compile", model, "-q", "-o", path, *options], stdin=subprocess.DEVNULL,
                       capture_output=True, check=False,
                       env={**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"})
    assert p.returncode in (0, 1, 4), (model, options, p.stderr.decode())
    if p.returncode == 0 and os.path.getsize(path) > LARGEST:
        os.remove(path)
    return p.returncode == 0


def pte(root, folder, etc, build):
    os.makedirs(folder, exist_ok=True)
    n = 0
    for model, samples, recipes in models(root, build):
        for recipe in recipes:
            for backend in (False, True):
                path = os.path.join(folder, f"model{n}.pte")
                n += compiled(etc, model, path, samples, recipe, backend)
    assert n > 40, f"{n} files made of {root}/tests/data"


def main(root, seeds, *more):
    if more:
        pte(root, os.path.join(seeds, "pte"), *more)
    else:
        kernels(os.path.join(seeds, "kernel"))
        full(root, os.path.join(seeds, "full"))


main(*sys.argv[1:])
