#!/usr/bin/env python3
"""Measures times, memory and sizes of etc and of the official flow and runtime in the same run.

    bench.py --etc build/etc [MODEL ...] [--json FILE] [--minutes M] [--runs N] [--seconds S] [--cpu K]

Prints a row per model as soon as it is measured.  The models share M minutes (6).  Every figure is
measured once, and a second time only if there is time left.  When the time is over, models are only
converted and not run, and the output says so.

Compiling compares whole processes (start-up, reading, writing and all), each pinned to one CPU, with N
runs of etc before and after each official one; the models that are run are also compiled with XNNPACK.
Running is one call of a loaded program; inputs are copied in if the interface does so. The runs are
those of the official runtime with portable kernels and with XNNPACK (one thread), of runtime-lite, and
of emitted C built with `cc -O3` for any CPU and with `-march=native` for this one. Outputs are
compared with torch's in the same run. Prints raw numbers and ratios (above 1: etc is better) and
writes them to FILE. Times vary with the machine, so slow results do not fail; wrong outputs and failed
commands do.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "conformance"))
from pte_arena import arena_bytes  # noqa: E402
from run import MODELS, export  # noqa: E402

OFFICIAL = [sys.executable, os.path.join(HERE, "official.py")]
WAYS = ["portable", "xnnpack", "lite", "c", "native"]


class Failed(Exception):
    """A command or a comparison went wrong; the text says which."""


def shell(command, **more):
    p = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **more)
    if p.returncode:
        last = (p.stderr.strip() or "no message").splitlines()[-1]
        raise Failed(f"{os.path.basename(command[0])} {command[1]}: exit {p.returncode}: {last}")
    return p.stdout


# -- compiling -------------------------------------------------------------------------------


def launch(args, n, command):
    """[(wall s, CPU s, peak MB)] of n runs."""
    out = subprocess.run([os.path.join(args.work, "launch"), str(args.cpu), str(n), *command],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    if any(r[0] != "0" for r in rows):
        raise Failed(f"{' '.join(command)}: exit {max(r[0] for r in rows)}")
    return [(float(w), float(c), int(k) / 1024) for _, w, c, k in rows]


def summary(rows, pte):
    return {"wall_s": statistics.median(r[0] for r in rows), "cpu_s": statistics.median(r[1] for r in rows),
            "peak_mb": max(r[2] for r in rows), "runs": len(rows), "pte": os.path.getsize(pte),
            "arena": arena_bytes(pte), "all": [r[:2] for r in rows]}


def compile_both(args, name, ours, theirs, backend=()):
    """One official conversion between runs of etc, as often as asked; files of these names."""
    source = os.path.join(args.zoo, name, "model.pt2")
    ours, theirs = args.out(name, ours), args.out(name, theirs)
    etc = [args.etc, "compile", source, "-o", ours, "-q", *[w for b in backend for w in ("--backend", b)]]
    launch(args, 1, etc)  # brings the model and both programs into the page cache
    etc_rows, official_rows = [], []
    for _ in range(args.official_runs):
        etc_rows += launch(args, args.runs // 2, etc)
        official_rows += launch(args, 1, [*OFFICIAL, "export", source, theirs, *backend])
        etc_rows += launch(args, args.runs - args.runs // 2, etc)
    return {"model_mb": os.path.getsize(source) / 1e6, "etc": summary(etc_rows, ours),
            "official": summary(official_rows, theirs)}


def compile_xnnpack(args, name):
    args.xnnpack[name] = compile_both(args, name, "etc_xnnpack.pte", "xnnpack.pte", ["xnnpack"])


# -- running ---------------------------------------------------------------------------------


def case_of(args, name):
    """Case 0: the manifest, input arrays, outputs expected with their tolerances."""
    folder = os.path.join(args.zoo, name)
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        man = json.load(f)
    case = man["cases"][0]
    files = [os.path.join(folder, i["file"]) for i in case["inputs"]]
    want = [(np.load(os.path.join(folder, o["file"])), o.get("atol", man["atol"])) for o in case["outputs"]]
    return man, files, want


def agree(name, way, got, want, rtol):
    for i, (g, (w, atol)) in enumerate(zip(got, want)):
        if g.shape != w.shape or not np.allclose(g, w, rtol=rtol, atol=atol, equal_nan=True):
            raise Failed(f"{name}, {way}: output {i} is not torch's")


def raw(args, name, files):
    """The inputs as files of bytes, for the C benches."""
    found = []
    for i, f in enumerate(files):
        a = np.ascontiguousarray(np.load(f))
        path = args.out(name, f"in_{i}.bin")
        a.tofile(path)
        found.append((path, a.shape))
    return found


def symbols(man, files):
    """Values that the model's symbolic sizes have in this case."""
    found = {}
    for text, f in zip(man.get("dynamic_inputs", []), files):
        dims = re.findall(r"[^\[\], ]+", text.split("[", 1)[1])
        for d, n in zip(dims, np.load(f, mmap_mode="r").shape):
            if d in man["dynamic"]:
                found[d] = n
    return found


def driver(header, man, files, want):
    """A C program that calls the emitted model as timing.h says."""
    text = open(header, encoding="utf-8").read()
    found = re.search(r"\bint\s+(\w+)_run\(([^)]*)\)", text)
    if not found:
        raise Failed(f"{header}: declares no _run function")
    arena = re.search(r"#define (\w+_ARENA_BYTES) ", text)
    if not arena:
        raise Failed(f"{header}: does not say how large its arena is")
    stem, names = found[1], [p.strip() for p in found[2].split(",")]
    dims = symbols(man, files)
    calls, n_in, n_out = [], 0, 0
    for p in names:
        word = re.findall(r"\w+", p)[-1]
        if word in ("arena", "state") and "void" in p:
            calls.append(f"r->{word}")
        elif "*" not in p and "[" not in p:
            calls.append(str(dims[word]) if word in dims else str(dims.popitem()[1]))
        elif n_in < len(files):
            calls.append(f"r->in[{n_in}]")
            n_in += 1
        else:
            calls.append(f"r->out[{n_out}]")
            n_out += 1
    sizes = ", ".join(str(w.nbytes) for w, _ in want)
    return f"""#define _POSIX_C_SOURCE 200809L
#include "{os.path.basename(header)}"
#include "tests/bench/timing.h"

typedef struct Run {{
    void *in[{len(files)}], *out[{len(want)}], *arena, *state;
}} Run;

static int call(void *ctx)
{{
    Run *r = ctx;
    (void)r;
    return {stem}_run({", ".join(calls)});
}}

int main(int argc, char **argv)
{{
    static const size_t size[] = {{{sizes}}};
    Run r = {{{{0}}, {{0}}, 0, 0}};
    size_t n;
    int i = 2;
    r.arena = bench_alloc({arena[1]});
    for (int k = 0; i < argc && strcmp(argv[i], "--") != 0; i++, k++)
        r.in[k] = bench_read(argv[i], &n);
    for (int k = 0; k < {len(want)}; k++)
        r.out[k] = bench_alloc(size[k]);
    if (bench_loop(strtod(argv[1], NULL), call, &r) != 0)
        return 1;
    for (int k = 0; ++i < argc; k++)
        bench_write(argv[i], r.out[k], size[k]);
    return 0;
}}
"""


def build_c(args, name, man, files, want):
    """Two programs, NAME/c for any CPU and NAME/native for this one."""
    c = args.out(name, "model.c")
    shell([args.etc, "emit-c", os.path.join(args.zoo, name, "model.pt2"), "-o", c, "-q"])
    main = args.out(name, "bench.c")
    with open(main, "w", encoding="utf-8") as f:
        f.write(driver(c[:-2] + ".h", man, files, want))
    weights = [p for p in (c[:-2] + "_weights.S",) if os.path.exists(p)]
    for way, flags in (("c", []), ("native", ["-march=native"])):
        shell([args.cc, "-O3", *flags, "-I", os.path.dirname(c), "-I", os.path.join(HERE, "..", ".."),
               "-o", args.out(name, way), main, c, *weights, "-lm"])


def in_c(args, name, way, command, inputs, want, rtol):
    outs = [args.out(name, f"{way}_{i}.bin") for i in range(len(want))]
    line = shell(["taskset", "-c", str(args.cpu), *command, *inputs, "--", *outs])
    agree(name, way, [np.fromfile(o, w.dtype).reshape(w.shape) if os.path.getsize(o) == w.nbytes else np.empty(0)
                      for o, (w, _) in zip(outs, want)], want, rtol)
    return [float(x) for x in line.split()]


def in_python(args, name, way, files, want, rtol):
    outs = [args.out(name, f"{way}_{i}.npy") for i in range(len(want))]
    line = shell(["taskset", "-c", str(args.cpu), *OFFICIAL, "time", args.out(name, way + ".pte"),
                  str(args.seconds), "1", *files, "--", *outs])
    agree(name, way, [np.load(o) for o in outs], want, rtol)
    return [float(x) for x in line.split()]


def ways_of(args, name):
    """A function per way that measures one round: [runs, median, fastest, slowest] in seconds."""
    man, files, want = case_of(args, name)
    inputs, rtol, seconds = raw(args, name, files), man["rtol"], str(args.seconds)
    sized = [f"{path}:{'x'.join(map(str, shape))}" if shape else path for path, shape in inputs]
    lite = [os.path.join(args.build, "tests/bench/bench_lite"), args.out(name, "lite.pte"), seconds]

    def official(way):
        return lambda: in_python(args, name, way, files, want, rtol)

    def emitted(way):
        return lambda: in_c(args, name, way, [args.out(name, way), seconds], [p for p, _ in inputs], want, rtol)

    prepare = {"xnnpack": lambda: compile_xnnpack(args, name), "c": lambda: build_c(args, name, man, files, want)}
    measure = {"portable": official("portable"), "lite": lambda: in_c(args, name, "lite", lite, sized, want, rtol),
               "xnnpack": official("xnnpack"),
               "c": emitted("c"), "native": emitted("native")}
    return prepare, measure


def run_all(args, name, failed, end):
    """The best round of each way; a way that fails is left out and told in `failed`.  Rounds go on
    while one more ends before `end`."""
    prepare, measure = ways_of(args, name)
    found, took = {}, 0
    for step in [prepare] + args.rounds * [measure]:
        start = time.monotonic()
        if step is measure and took and start + took > end:
            break
        for way, do in step.items():
            try:
                if f"{name}, {way}" not in failed:
                    found.setdefault(way, []).append(do())
            except Failed as e:
                failed[f"{name}, {way}"] = str(e)
        took = time.monotonic() - start if step is measure else 0
    best = {way: min((r for r in rounds if r), key=lambda r: r[1], default=None) for way, rounds in found.items()}
    return {way: r for way, r in best.items() if r and f"{name}, {way}" not in failed}


# -- report ----------------------------------------------------------------------------------


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def print_head():
    print("whole conversions: median seconds, ratio = official / etc, CPU seconds, peak MB, bytes of the .pte, of its arena")
    print("one call, one thread: microseconds; C: emitted, for any CPU and for this one")
    print(f"{'model':20} {'MB':>6} | {'official':>8} {'etc ms':>7} {'ratio':>6} | {'CPU':>6} {'etc ms':>7} | {'peak':>5} "
          f"{'etc':>6} | {'.pte':>9} {'etc':>9} | {'arena':>9} {'etc':>9} | {'portable':>11} {'xnnpack':>9} | {'lite':>9} "
          f"{'C':>9} {'C native':>9}", flush=True)


def print_row(name, row, run):
    o, e = row["official"], row["etc"]
    p, x, lite, c, native = (1e6 * run[w][1] if w in run else math.nan for w in WAYS)
    print(f"{name:20} {row['model_mb']:6.2f} | {o['wall_s']:8.3f} {1e3 * e['wall_s']:7.2f} {o['wall_s'] / e['wall_s']:6.0f} | "
          f"{o['cpu_s']:6.2f} {1e3 * e['cpu_s']:7.2f} | {o['peak_mb']:5.0f} {e['peak_mb']:6.1f} | {o['pte']:9} {e['pte']:9} | "
          f"{o['arena']:9} {e['arena']:9} | {p:11.1f} {x:9.1f} | {lite:9.1f} {c:9.1f} {native:9.1f}", flush=True)


def print_ratios(rows):
    pairs = [(a, b) for a in WAYS[:2] for b in WAYS[2:]]
    print("\nratios of one call, official / etc\n" + " " * 23 + " ".join(f"{a + '/' + b:>15}" for a, b in pairs))
    ratios = {p: [r[p[0]][1] / r[p[1]][1] for r in rows.values() if p[0] in r and p[1] in r] for p in pairs}
    for what, f in (("geometric mean", geomean), ("least", lambda x: min(x, default=math.nan))):
        print(f"{what:20} | " + " ".join(f"{f(ratios[p]):15.2f}" for p in pairs))


def print_xnnpack(rows):
    """Conversions by both flows with XNNPACK."""
    print("\nwhole conversions with XNNPACK: seconds, CPU seconds, peak MB, bytes of the .pte\n"
          f"{'model':20} | {'official':>8} {'etc ms':>7} {'ratio':>6} | {'CPU':>6} {'etc ms':>7} {'ratio':>6} | "
          f"{'peak':>5} {'etc':>6} | {'.pte':>9} {'etc':>9}")
    for name, row in rows.items():
        o, e = row["official"], row["etc"]
        print(f"{name:20} | {o['wall_s']:8.3f} {1e3 * e['wall_s']:7.2f} {o['wall_s'] / e['wall_s']:6.0f} | "
              f"{o['cpu_s']:6.2f} {1e3 * e['cpu_s']:7.2f} {o['cpu_s'] / max(e['cpu_s'], 1e-6):6.0f} | "
              f"{o['peak_mb']:5.0f} {e['peak_mb']:6.1f} | {o['pte']:9} {e['pte']:9}")


def print_conversion(rows, flow):
    """The closing lines."""
    for what, text in (("cpu_s", "CPU time"), ("wall_s", "time")):
        ratio = [r["official"][what] / max(r["etc"][what], 1e-6) for r in rows.values()]
        if ratio:
            print(f"{text} of conversion{flow}, official / etc, {len(ratio)} models: geometric mean {geomean(ratio):.0f}, "
                  f"mean {statistics.mean(ratio):.0f}, least {min(ratio):.0f}")


def start_up(args):
    rows = launch(args, 21, [args.etc, "--help"])
    return {"wall_s": statistics.median(r[0] for r in rows), "bytes": os.path.getsize(args.etc)}


def options():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("models", nargs="*", default=MODELS)
    ap.add_argument("--etc", required=True)
    ap.add_argument("--json")
    ap.add_argument("--runs", type=int, default=10, help="of etc beside each official run")
    ap.add_argument("--official-runs", type=int, default=1)
    ap.add_argument("--rounds", type=int, default=2, help="of the inference benches, at most; the best counts")
    ap.add_argument("--minutes", type=float, default=6, help="for all models")
    ap.add_argument("--seconds", type=float, default=0.5, help="of each inference bench")
    ap.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    ap.add_argument("--only", choices=["compile", "xnnpack"],
                    help="leave out running; xnnpack: conversions with XNNPACK alone")
    args = ap.parse_args()
    args.etc = os.path.abspath(args.etc)
    args.build = os.path.dirname(args.etc)
    args.zoo = os.path.join(args.build, "zoo")
    args.work = os.path.join(args.build, "bench")
    args.cc = os.environ.get("CC", "cc")
    os.makedirs(args.work, exist_ok=True)

    def out(name, file):
        os.makedirs(os.path.join(args.work, name), exist_ok=True)
        return os.path.join(args.work, name, file)

    args.out = out
    args.xnnpack = {}  # conversions by model
    return args


def main():
    args = options()
    export(args.zoo, args.models)
    shell([args.cc, "-O2", "-o", os.path.join(args.work, "launch"), os.path.join(HERE, "launch.c")])
    result = {"start_up": start_up(args), "compile": {}, "compile_xnnpack": args.xnnpack, "run": {}, "failed": {}, "not run": []}
    s = result["start_up"]
    print(f"etc: {s['bytes']} bytes, starts and prints its help in {1e3 * s['wall_s']:.2f} ms")
    if args.only != "xnnpack":
        print_head()
    last = time.monotonic() + 60 * args.minutes
    for i, name in enumerate(args.models):
        now = time.monotonic()
        try:
            if args.only == "xnnpack":
                compile_xnnpack(args, name)
                print(name, flush=True)
                continue
            row = result["compile"][name] = compile_both(args, name, "lite.pte", "portable.pte")
            run = {}
            if now > last:
                result["not run"].append(name)
            elif args.only != "compile":
                end = now + max(last - now, 0) / (len(args.models) - i)
                run = result["run"][name] = run_all(args, name, result["failed"], end)
            print_row(name, row, run)
        except Failed as e:
            result["failed"][name] = str(e)
            print(f"{name:20} failed: {e}", flush=True)
    if result["run"]:
        print_ratios(result["run"])
    if result["not run"]:
        print(f"converted but not run, as {args.minutes:g} minutes were over: {' '.join(result['not run'])}")
    theirs = tuple(", " + way for way in ("portable", "xnnpack"))
    for name, why in result["failed"].items():
        print(f"{'official flow fails' if name.endswith(theirs) else 'FAILED'}: {name}: {why}")
    if args.xnnpack:
        print_xnnpack(args.xnnpack)
        print_conversion(args.xnnpack, " with XNNPACK")
    print_conversion(result["compile"], "")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
    return 1 if any(not name.endswith(theirs) for name in result["failed"]) else 0


if __name__ == "__main__":
    sys.exit(main())
