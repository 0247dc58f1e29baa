#!/usr/bin/env python3
"""Measures how etc's time and memory grow with the size of the model, on models that synth.py writes.

    scale.py bench ETC WORK_FOLDER [GIB]          256 to 16,384 layers: time per stage and layer; shapes
                                                  that quadratic steps stumble over; anonymous memory
                                                  for a model of GIB (8) GiB, and for one of 0.6 billion
                                                  parameters with --recipe 8da4w
    scale.py test ETC WORK_FOLDER [CC [FLAG ...]] TAP: small ones compile, run, and agree with their
                                                  emitted C; weights are not copied

A long time does not fail; anonymous memory above the bound does.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import synth  # noqa: E402

SIZES = [256, 1024, 4096, 16384]
MOST_ANON_MB = 256
INT4 = ["--recipe", "8da4w", "--backend", "xnnpack"]
INT4_GIB, INT4_ANON_MB = 2.25, 1e9 / (1 << 20)  # 0.6 billion parameters
ROUNDS = 3


def command(*words):
    p = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert p.returncode == 0, f"{' '.join(words)}: exit {p.returncode}\n{p.stderr}"
    return p.stderr


def anonymous_mb(words):
    """Returns the command's largest resident anonymous memory; mapped files do not count."""
    most = 0
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as p:
        while p.poll() is None:
            try:
                with open(f"/proc/{p.pid}/status", encoding="ascii") as f:
                    found = re.search(r"RssAnon:\s*(\d+)", f.read())
                most = max(most, int(found[1]) if found else 0)
            except OSError:
                pass
            time.sleep(0.001)
        assert p.returncode == 0, f"{' '.join(words)}: exit {p.returncode}\n{p.stderr.read()}"
    assert most, "the command was too fast to be looked at"
    return most / 1024


def outputs_of(words, folder, model):
    end = ".pte" if words == "compile" else ".c"
    path = os.path.join(folder, model)
    return [words, path, "-o", os.path.splitext(path)[0] + end]


def remove(pattern):
    for path in glob.glob(pattern):
        os.remove(path)


# -- bench -----------------------------------------------------------------------------------


def stages(text):
    """Milliseconds of each stage that -v prints; repeated ones are added up."""
    found = {}
    for name, ms in re.findall(r"^  (\w+) +([\d.]+) ms$", text, re.M):
        found[name] = found.get(name, 0) + float(ms)
    return found


def measure(etc, words):
    best = None
    for _ in range(ROUNDS):
        start = time.monotonic()
        text = command(etc, *words, "-v")
        ms = 1e3 * (time.monotonic() - start)
        if best is None or ms < best[0]:
            best = ms, stages(text)
    return best


def grown(small, large, factor):
    """Stages that count and took more than three times what their share of nodes calls for; twice is
    what a cache that no longer holds everything does."""
    return [f"{name} {ms:.0f} ms, x{ms / small[name]:.0f}" for name, ms in large.items()
            if ms > 20 and small.get(name) and ms > 3 * factor * small[name]]


def bench_shapes(etc, folder):
    few, many = 2048, 16384
    print(f"{'shape':>8} {'':8} {few:>7} {many:>9} ms  stages that grew past three times linear")
    for kind in synth.SHAPES:
        for n in (few, many):
            synth.shape(kind, n, os.path.join(folder, f"n{n}.etir"))
        for words in ("compile", "emit-c"):
            (a, small), (b, large) = (measure(etc, outputs_of(words, folder, f"n{n}.etir")) for n in (few, many))
            print(f"{kind:>8} {words:8} {a:7.1f} {b:9.1f}     {'; '.join(grown(small, large, many / few)) or 'none'}",
                  flush=True)
        remove(os.path.join(folder, "n*"))


def bench_layers(etc, folder):
    print(f"{'layers':>8} {'':8} {'ms':>9} {'us/layer':>9}  longest stages")
    seen = {}
    for n in SIZES:
        synth.layers(n, os.path.join(folder, f"n{n}.pt2"))
        for words in ("compile", "emit-c"):
            ms, found = measure(etc, outputs_of(words, folder, f"n{n}.pt2"))
            top = sorted(found.items(), key=lambda x: -x[1])[:4]
            print(f"{n:8} {words:8} {ms:9.1f} {1e3 * ms / n:9.2f}  " +
                  ", ".join(f"{name} {t:.1f}" for name, t in top), flush=True)
            seen[words, n] = found
        remove(os.path.join(folder, f"n{n}*"))
    for words in ("compile", "emit-c"):
        slow = grown(seen[words, SIZES[-2]], seen[words, SIZES[-1]], SIZES[-1] / SIZES[-2])
        print(f"{words}: stages that grew past three times linear: {'; '.join(slow) or 'none'}")


def bound_memory(etc, folder, gib, words, flags, most):
    """Compiles big.pt2 and removes what it made; whether the bound held."""
    start = time.monotonic()
    mb = anonymous_mb([etc, *outputs_of(words, folder, "big.pt2"), *flags, "-q"])
    print(f"{gib:g} GiB of weights, {' '.join([words, *flags])}: {mb:.1f} MB of anonymous memory, at most {most:.0f}: "
          f"{'ok' if mb <= most else 'FAILED'}; {time.monotonic() - start:.1f} s", flush=True)
    for f in set(glob.glob(os.path.join(folder, "big*"))) - {os.path.join(folder, "big.pt2")}:
        os.remove(f)
    return mb <= most


def bench_memory(etc, folder, gib):
    free = shutil.disk_usage(folder).free / (1 << 30)
    fits = min(gib, (free - 4) / 2)
    if fits < gib:
        print(f"{free:.0f} GiB of disk are free: {fits:.2f} GiB instead of {gib:g}")
    synth.weights(fits, os.path.join(folder, "big.pt2"))
    ok = all([bound_memory(etc, folder, fits, words, [], MOST_ANON_MB) for words in ("compile", "emit-c")])
    fits = min(fits, INT4_GIB)
    synth.weights(fits, os.path.join(folder, "big.pt2"))
    ok = bound_memory(etc, folder, fits, "compile", INT4, INT4_ANON_MB) and ok
    remove(os.path.join(folder, "big*"))
    return ok


# -- tests -----------------------------------------------------------------------------------


def agree(etc, folder, n, cc):
    """A graph of n layers in runtime-lite and as emitted C gives the same bits, and some."""
    at = lambda name: os.path.join(folder, name)  # noqa: E731
    synth.layers(n, at("m.pt2"))
    np.save(at("x.npy"), np.linspace(-1, 1, synth.BATCH * synth.WIDTH, dtype=np.float32).reshape(synth.BATCH, -1))
    command(etc, "compile", at("m.pt2"), "-o", at("m.pte"), "-q", "--verify")
    command(etc, "emit-c", at("m.pt2"), "-o", at("m.c"), "--main", "-q", "--verify")
    plain = [word for word in cc if "sanitize" not in word]  # a thousand functions are slow enough
    command(*plain, "-O0", "-o", at("m"), *glob.glob(at("m*.c")), *glob.glob(at("m_weights.S")), "-lm")
    command(etc, "run", at("m.pte"), "--input", at("x.npy"), "--output-dir", at("lite"), "-q")
    command(at("m"), "--input", at("x.npy"), "--output-dir", at("c"))
    a, b = np.load(at("lite/output_0.npy")), np.load(at("c/output_0.npy"))
    assert a.tobytes() == b.tobytes(), f"runtime-lite and emitted C differ by {np.abs(a - b).max():.3g}"
    assert np.isfinite(a).all() and a.std() > 0, "the output says nothing"


def stays_mapped(etc, folder, make, name):
    """256 MiB of weights pass through less than 32 MB of anonymous memory, and arrive."""
    make(0.25, os.path.join(folder, name))
    for words in ("compile", "emit-c"):
        mb = anonymous_mb([etc, *outputs_of(words, folder, name), "-q"])
        assert mb < 32, f"{words}: {mb:.1f} MB of anonymous memory"
    assert os.path.getsize(os.path.join(folder, "big.pte")) > 1 << 28, "the weights are not in the file"
    remove(os.path.join(folder, "big*"))


def int4_is_packed_late(etc, folder):
    """Of each weight of 4 bits a byte is held, beside the scales of its group: pairs are made as they are written."""
    synth.weights(0.25, os.path.join(folder, "big.pt2"))
    mb = anonymous_mb([etc, *outputs_of("compile", folder, "big.pt2"), *INT4, "-q"])
    # 86 MB, and what huge pages are counted for beyond the memory that was asked for.
    assert mb < 112, f"{mb:.1f} MB of anonymous memory for 64 million weights"
    remove(os.path.join(folder, "big*"))


def test(etc, folder, cc):
    facts = [(f"{n} layers: runtime-lite and emitted C give the same bits", lambda n=n: agree(etc, folder, n, cc))
             for n in SIZES[:2]]
    if not any("sanitize" in word for word in cc):
        facts += [("weights stay mapped", lambda: stays_mapped(etc, folder, synth.weights, "big.pt2")),
                  ("external weights of ONNX stay mapped", lambda: stays_mapped(etc, folder, synth.external, "big.onnx")),
                  ("weights of 4 bits are packed as they are written", lambda: int4_is_packed_late(etc, folder))]
    print(f"1..{len(facts)}")
    failed = 0
    for name, fact in facts:
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        try:
            fact()
            print(f"ok - {name}", flush=True)
        except (AssertionError, OSError) as e:
            failed += 1
            print(f"not ok - {name}", flush=True)
            print("".join(f"# {line}\n" for line in str(e).splitlines()), end="", flush=True)
    return failed


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("bench", "test"):
        sys.exit(__doc__)
    etc, folder = map(os.path.abspath, sys.argv[2:4])
    os.makedirs(folder, exist_ok=True)
    if sys.argv[1] == "test":
        return 1 if test(etc, folder, sys.argv[4:] or ["cc"]) else 0
    bench_layers(etc, folder)
    bench_shapes(etc, folder)
    return 0 if bench_memory(etc, folder, float(sys.argv[4]) if sys.argv[4:] else 8) else 1


if __name__ == "__main__":
    sys.exit(main())
