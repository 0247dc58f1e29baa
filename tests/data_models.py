#!/usr/bin/env python3
"""Compiles the models of tests/data, runs them in runtime-lite and as emitted C, and compares with torch's outputs.

    data_models.py ETC WORK_FOLDER [CC [FLAG ...]]

TAP on stdout, five facts per model:

  lite      compiled to .pte with --verify, run by `etc run`: torch's outputs within the manifest's
            tolerances, case by case
  c         the same of emitted C, built with CC under strict warnings
  bits      both gave the same bits
  again     compiling once more, from the unpacked folder, gives the same bytes
  check     `etc check` agrees for both tails

No torch needed: the outputs were recorded.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import zipfile

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
STRICT = ("-std=c99 -O2 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual "
          "-Wstrict-prototypes -Wmissing-prototypes -Werror").split()


class Model:
    """One folder of tests/data and where its products go."""

    def __init__(self, folder, etc, work, cc):
        self.folder, self.etc, self.cc = folder, etc, cc
        self.work = os.path.join(work, os.path.basename(folder))
        with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
            self.man = json.load(f)
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)

    def path(self, name):
        return os.path.join(self.work, name)

    def command(self, *words):
        p = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert p.returncode == 0, f"{' '.join(words)}: exit {p.returncode}\n{p.stderr}"
        return p.stdout

    def first_inputs(self):
        return self.inputs(self.man["cases"][0])

    def inputs(self, case):
        return [w for i in case["inputs"] for w in
                ("--input", os.path.join(self.folder, i["file"]) if "file" in i else "value:" + json.dumps(i["value"]))]

    def run_cases(self, where, *program):
        """Runs every case, then compares with what torch recorded."""
        for k, case in enumerate(self.man["cases"]):
            out = self.path(f"{where}_{k}")
            self.command(*program, *self.inputs(case), "--output-dir", out)
            for i, o in enumerate(o for o in case["outputs"] if "file" in o):
                self.compare(np.load(os.path.join(out, f"output_{i}.npy")), o, f"case {k}, output {i}")

    def compare(self, got, spec, name):
        want = np.load(os.path.join(self.folder, spec["file"]))
        assert got.shape == want.shape and got.dtype == want.dtype, f"{name}: {got.dtype}{got.shape}"
        atol, rtol = spec.get("atol", self.man["atol"]), self.man["rtol"]
        assert np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True), \
            f"{name}: off by {np.abs(got - want).max():.3g}, allowed {atol:.3g}"

    def lite(self):
        self.command(self.etc, "compile", self.path_of_model(), "-o", self.path("m.pte"), "--verify", "-q",
                     *self.first_inputs())
        self.run_cases("lite", self.etc, "run", self.path("m.pte"))

    def c(self):
        c = self.path("m.c")
        self.command(self.etc, "emit-c", self.path_of_model(), "-o", c, "--main", "--verify", "-q", *self.first_inputs())
        weights = glob.glob(self.path("m_weights.S"))
        self.command(*self.cc, *STRICT, "-c", c, "-o", self.path("m.o"))
        self.command(*self.cc, "-O2", "-o", self.path("m"), self.path("m.o"), self.path("m_main.c"), *weights, "-lm")
        self.run_cases("c", "env", f"ASAN_OPTIONS={os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0", self.path("m"))  # its main leaves memory to the end

    def bits(self):
        found = sorted(glob.glob(self.path("lite_*/*.npy")))
        assert len(found) == sum(len(c["outputs"]) for c in self.man["cases"]), f"{len(found)} outputs"
        for f in found:
            a, b = np.load(f), np.load(f.replace("/lite_", "/c_"))
            assert a.tobytes() == b.tobytes(), f"{os.path.relpath(f, self.work)}: {np.abs(a - b).max():.3g}"

    def again(self):
        with zipfile.ZipFile(self.path_of_model()) as z:
            z.extractall(self.path("unpacked"))
        root = os.listdir(self.path("unpacked"))[0]
        self.command(self.etc, "compile", self.path(f"unpacked/{root}"), "-o", self.path("again.pte"), "-q")
        with open(self.path("m.pte"), "rb") as a, open(self.path("again.pte"), "rb") as b:
            assert a.read() == b.read(), "another .pte"

    def check(self):
        for tail in ("pte", "c"):
            self.command(self.etc, "check", self.path_of_model(), "--tail", tail)

    def path_of_model(self):
        return os.path.join(self.folder, "model.pt2")


def main():
    etc, work, cc = sys.argv[1], sys.argv[2], sys.argv[3:] or ["cc"]
    folders = sorted(os.path.dirname(f) for f in glob.glob(DATA + "/*/manifest.json"))
    assert len(folders) >= 5, f"{DATA} holds only {len(folders)} models"
    facts = ["lite", "c", "bits", "again", "check"]
    print(f"1..{len(folders) * len(facts)}")
    failed = 0
    for folder in folders:
        model = Model(folder, os.path.abspath(etc), os.path.abspath(work), cc)
        for fact in facts:
            name = f"{os.path.basename(folder)}: {fact}"
            try:
                getattr(model, fact)()
                print(f"ok - {name}", flush=True)
            except (AssertionError, OSError) as e:
                failed += 1
                print(f"not ok - {name}", flush=True)
                print("".join(f"# {line}\n" for line in str(e).splitlines()), end="", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
