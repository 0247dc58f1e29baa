#!/usr/bin/env python3
"""Convert a zoo of exported models with one tool and run the results in one runtime, model by model.

    zoo_check.py --zoo DIR --out DIR [--tool official|PATH_TO_ETC] [--backend portable|xnnpack] [--flags "MORE OF etc"]
                 [--runner official|lite|c] [--models A B ...] [--list FILE] [--no-convert] [--json FILE]

Each model is converted and run in a forked child with a time limit, as many at once as there are cores. A model passes
when every case's outputs agree with torch's, recorded beside it, within the manifest's tolerances (times --slack). Prints
one row per model and a total.
Tools:    official = to_edge_transform_and_lower + to_executorch; PATH = `PATH compile MODEL -o OUT [--backend xnnpack]`.
Runners:  official = the executorch wheel's Runtime; lite = `PATH run OUT --input ... --output-dir ...` (needs --etc);
          c = `PATH emit-c MODEL -o OUT.c --main`, built with ${CC:-cc -O2}, run with the same arguments as `etc run`.
expected.txt beside this file names models that are to be refused (exit 4, the text in the message) or skipped.
"""
import argparse, json, os, resource, select, signal, subprocess, sys, tempfile, time, glob, traceback
# Commands are started by a small process forked before numpy and torch are imported: ru_maxrss starts at the parent's peak.
# There is one for each of the models that run at once.
def launcher():
    """Returns the descriptor that takes commands, and the file that gives their results."""
    cr, cw = os.pipe(); rr, rw = os.pipe()
    if os.fork():
        os.close(cr); os.close(rw); return cw, os.fdopen(rr)
    os.close(cw); os.close(rr); f = os.fdopen(cr)
    for line in f:
        e = tempfile.TemporaryFile(); t = time.time(); mark, cmd = json.loads(line)
        try:
            p = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=e)
            _, st, ru = os.wait4(p.pid, 0); p.returncode = 0; e.seek(0)
            r = [os.waitstatus_to_exitcode(st), e.read().decode(errors="replace"), time.time() - t, ru.ru_maxrss / 1024]
        except OSError as x: r = [127, str(x), 0.0, 0.0]
        try: os.write(rw, json.dumps([mark, r]).encode() + b"\n")
        except BrokenPipeError: break  # nobody waits any more
    os._exit(0)
N_JOBS = os.cpu_count() or 1
launchers = [launcher() for _ in range(N_JOBS)]
import numpy as np
from pte_arena import arena_bytes

ap = argparse.ArgumentParser()
ap.add_argument("--zoo", required=True); ap.add_argument("--out", required=True)
ap.add_argument("--tool", default="official"); ap.add_argument("--etc"); ap.add_argument("--backend", default="portable"); ap.add_argument("--flags", default="")
ap.add_argument("--runner", default="official"); ap.add_argument("--models", nargs="*"); ap.add_argument("--list")
ap.add_argument("--no-convert", action="store_true"); ap.add_argument("--json"); ap.add_argument("--slack", type=float, default=1.0)
ap.add_argument("--limit", type=int, default=180); ap.add_argument("--quiet", action="store_true")
A = ap.parse_args()
etc = A.etc or (A.tool if A.tool != "official" else None)
expected = {}
_e = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected.txt")
for l in open(_e) if os.path.exists(_e) else []:
    if l.strip() and l[0] != "#":
        m, where, what, *text = l.split(None, 3); expected[m, where] = (what, (text or [""])[0].strip())
os.makedirs(A.out, exist_ok=True)
os.environ["OMP_NUM_THREADS"] = "1"
need_torch = A.tool == "official" or A.runner == "official"
if need_torch:
    import torch, warnings; warnings.filterwarnings("ignore"); torch.set_num_threads(1)
    import logging; logging.disable(logging.WARNING)
if A.tool == "official" and not A.no_convert:
    from executorch.exir import to_edge_transform_and_lower
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
if A.runner == "official":
    from executorch.runtime import Runtime
    try:
        from executorch.kernels import quantized  # registers quantized_decomposed out variants
    except Exception: pass
    try: import executorch.extension.llm.custom_ops.custom_ops  # noqa
    except Exception: pass

def sub(cmd):
    """Runs a command; returns exit code, stderr, seconds, peak MB."""
    commands, answers = launchers[slot]; mark = time.time_ns(); os.write(commands, json.dumps([mark, cmd]).encode() + b"\n")
    while True:
        of, r = json.loads(answers.readline())
        if of == mark: return r  # others answer a child that was killed

def load_tensor(path, dtype):
    a = np.load(path)
    if not need_torch: return a
    if dtype == "bfloat16": return torch.from_numpy(a.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(a).clone(memory_format=torch.contiguous_format)  # numpy has strides of 0 where there is no element

def decoded(a, dtype):
    """Raw bits of bfloat16 as float32."""
    return (a.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" and a.dtype == np.uint16 else a

def case_inputs(d, c):
    r = []
    for i in c["inputs"]:
        if "file" in i: r.append(load_tensor(os.path.join(d, i["file"]), i["dtype"]))
        else: r.append(i.get("value"))
    return r

def compare(got, want, spec, man):
    if isinstance(got, np.ndarray): got = decoded(got, spec["dtype"])
    if isinstance(want, np.ndarray): want = decoded(want, spec["dtype"])
    def f(x):
        if need_torch and isinstance(x, torch.Tensor):
            x = x.detach(); x = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
            return x.numpy()
        return np.asarray(x)
    g, w = f(got), f(want)
    if g.shape != w.shape: return f"shape {g.shape} != {w.shape}", np.inf
    if g.size == 0: return None, 0.0
    if not np.issubdtype(w.dtype, np.floating):
        if np.iscomplexobj(w):
            e = np.abs(g - w).max(); return (None if e <= 1e-4 else f"complex err {e:.3g}"), float(e)
        return (None, 0.0) if np.array_equal(g, w) else (f"{(g != w).sum()} of {g.size} differ", float((g != w).mean()))
    g = g.astype(np.float64); w = w.astype(np.float64)
    nan = np.isnan(w)
    if not np.array_equal(np.isnan(g), nan): return "NaN places differ", np.inf
    inf = np.isinf(w)
    if not np.array_equal(g[inf], w[inf]): return "infinities differ", np.inf
    m = ~(nan | inf)
    if not m.any(): return None, 0.0
    e = np.abs(g[m] - w[m]); tol = (spec.get("atol", man["atol"]) + man["rtol"] * np.abs(w[m])) * A.slack
    return (None, float(e.max())) if (e <= tol).all() else (f"max err {e.max():.3g} (atol {spec.get('atol', man['atol']):.3g})", float(e.max()))

def dims(man):
    """--dim flags for symbols without an upper bound (no case is longer than 64)."""
    return [x for k, (lo, hi) in man["dynamic"].items() if hi is None and k.isalnum() for x in ("--dim", f"{k}={lo or 0}..64")]

def convert(name, d, pte, man):
    src = os.path.join(d, "model.pt2")
    if A.tool == "official":
        parts = [XnnpackPartitioner()] if A.backend == "xnnpack" else []
        p = to_edge_transform_and_lower(torch.export.load(src), partitioner=parts).to_executorch()
        open(pte, "wb").write(p.buffer)
        plan = p.executorch_program.execution_plan[0]
        return dict(arena=sum(plan.non_const_buffer_sizes), instr=sum(len(c.instructions) for c in plan.chains), delegates=len(plan.delegates))
    if A.runner == "c": cmd = [A.tool, "emit-c", src, "-o", pte + ".c", "--main"] + dims(man) + A.flags.split()
    else: cmd = [A.tool, "compile", src, "-o", pte] + dims(man) + (["--backend", "xnnpack"] if A.backend == "xnnpack" else []) + A.flags.split()
    rc, err, secs, mb = sub(cmd)
    if rc: raise RuntimeError(f"exit {rc}: " + " | ".join(err.strip().splitlines() or ["no message"])[:300])
    if A.runner == "c":
        crc, cerr, csecs, _ = sub(["sh", "-c", 'w="${1%.c}_weights.S"; [ -f "$w" ] || w=; exec ${CC:-cc -O2} -o "$2" "$1" "${1%.c}_main.c" $w -lm', "sh", pte + ".c", pte])
        if crc: raise RuntimeError("cc: " + (cerr.strip().splitlines() or [""])[0][:160])
    return dict(etc_s=round(secs, 4), etc_mb=round(mb, 1))

def lite_outputs(d, cases, pte, td):
    """One `etc run` for a list of consecutive calls; returns the outputs of each call."""
    cmd = [os.path.abspath(pte)] if A.runner == "c" else [etc, "run", pte]
    for k, c in enumerate(cases):
        if k: cmd.append("--next")
        for i in c["inputs"]: cmd += ["--input", os.path.join(d, i["file"]) if "file" in i else "value:" + json.dumps(i.get("value"))]
    rc, err, _, _ = sub(cmd + ["--output-dir", td])
    if rc: raise RuntimeError(f"run exit {rc}: " + (err.strip().splitlines() or [""])[0][:160])
    key = lambda f: int(f.rsplit("_", 1)[1][:-4])
    return [[np.load(f) for f in sorted(glob.glob(os.path.join(td, str(k) if len(cases) > 1 else "", "output_*.npy")), key=key)] for k in range(len(cases))]

def official_outputs(d, cases, pte):
    prog = Runtime.get().load_program(pte); names = prog.method_names
    meth = prog.load_method("forward" if "forward" in names else sorted(names)[0])
    def call(c):
        ins = case_inputs(d, c)
        try: return meth.execute(ins)
        except RuntimeError:  # a symbolic int or float input is a 0-d tensor in our programs
            if all(isinstance(i, torch.Tensor) for i in ins): raise
            return meth.execute([torch.tensor(i) if isinstance(i, (int, float)) and not isinstance(i, bool) else i for i in ins])
    return [[o.clone() if isinstance(o, torch.Tensor) else o for o in call(c)] for c in cases]

def run(name, d, man, pte):
    worst = 0.0; cases = man["cases"]; groups = [cases] if man.get("stateful") else [[c] for c in cases]; k = -1
    for g in groups:
        if A.runner == "official": all_outs = official_outputs(d, g, pte)
        else:
            with tempfile.TemporaryDirectory() as td: all_outs = lite_outputs(d, g, pte, td)
        for c, outs in zip(g, all_outs):
            k += 1; j = 0; outs = [o for o in outs if o is not None]
            if len(outs) < sum("file" in s for s in c["outputs"]): return f"case {k}: {len(outs)} outputs, expected {len(c['outputs'])}", np.inf
            extra = len(outs) - len(c["outputs"])  # official programs list mutated inputs first
            if extra > 0 and extra <= len(c.get("mutated_inputs", [])) and A.tool == "official": outs = outs[extra:]
            elif extra > 0: return f"case {k}: {len(outs)} outputs, expected {len(c['outputs'])}", np.inf
            for s in c["outputs"]:
                if "file" not in s:
                    j += s.get("value") is not None
                    continue
                msg, e = compare(outs[j], load_tensor(os.path.join(d, s["file"]), s["dtype"]), s, man); j += 1
                worst = max(worst, e)
                if msg: return f"case {k} {os.path.basename(s['file'])}: {msg}", worst
    return None, worst

def child(name, w):
    d = os.path.join(A.zoo, name); man = json.load(open(d + "/manifest.json")); pte = os.path.join(A.out, name + ".pte")
    r = dict(name=name, ok=False, stage="convert"); what, text = expected.get((name, "convert"), ("", ""))
    try:
        dn = os.open(os.devnull, os.O_WRONLY); os.dup2(dn, 1); os.dup2(dn, 2)
        t = time.time()
        if not A.no_convert: r.update(convert(name, d, pte, man))
        if what == "refused": raise AssertionError("converted, though it is to be refused")
        r["convert_s"] = r.get("etc_s", round(time.time() - t, 3)); r["pte"] = os.path.getsize(pte); r["stage"] = "run"
        if A.runner != "c": r["arena"] = arena_bytes(pte)
        msg, worst = run(name, d, man, pte)
        r["err"] = worst if np.isfinite(worst) else None
        if msg: r["why"] = msg
        else: r["ok"] = True
    except BaseException as e:
        s = str(e).strip().splitlines() or [""]
        r["why"] = f"{type(e).__name__}: " + (s[0] if len(s[0]) > 20 else " ".join(s)[:200])[:300]
        if what.startswith("refused") and "exit 4" in r["why"] and text in r["why"]: r["ok"] = True; r["note"] = "refused as expected"
    r["rss_mb"] = round(max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024)
    os.write(w, json.dumps(r).encode()); os._exit(0)

names = A.models or ([l.split()[0] for l in open(A.list) if l.strip() and l[0] != "#"] if A.list else sorted(os.path.basename(os.path.dirname(p)) for p in glob.glob(A.zoo + "/*/manifest.json")))
unknown = [n for n in names if not os.path.exists(os.path.join(A.zoo, n, "manifest.json"))]
if unknown: sys.exit("no such model in " + A.zoo + ": " + ", ".join(unknown))
if etc and os.sep not in etc: etc = os.path.abspath(etc)
if A.tool != "official": A.tool = os.path.abspath(A.tool)
res = []; skipped = 0

def start(name, slot_of_child):
    """Forks the child that converts and runs a model; returns what is known of it."""
    global slot
    rd, wr = os.pipe(); pid = os.fork()
    if not pid:
        os.close(rd); slot = slot_of_child; child(name, wr)
    os.close(wr); return dict(name=name, slot=slot_of_child, rd=rd, pid=pid, end=time.time() + A.limit, buf=b"", killed=False)

def result(c):
    os.close(c["rd"]); _, st = os.waitpid(c["pid"], 0)
    r = json.loads(c["buf"]) if c["buf"] else dict(name=c["name"], ok=False, stage="?", why="time limit" if c["killed"] else f"died with signal {st & 127}")
    if not A.quiet: print(("ok  " if r["ok"] else "FAIL"), f"{c['name']:26}", f"{r.get('convert_s', 0):9.4f} s {r.get('etc_mb', r.get('rss_mb', 0)):6} MB {r.get('pte', 0) / 1e6:8.2f} MB", f"arena {r.get('arena', 0)}", "" if r["ok"] else r["stage"] + ": " + r["why"], flush=True)
    return r

def wait(running):
    """Waits until one of the children ends, or one's time; returns it."""
    while True:
        for c in running:
            if c["end"] <= time.time(): os.kill(c["pid"], signal.SIGKILL); c["killed"] = True; return c
        ready = select.select([c["rd"] for c in running], [], [], max(0, min(c["end"] for c in running) - time.time()))[0]
        for c in running:
            if c["rd"] not in ready: continue
            b = os.read(c["rd"], 65536)
            if not b: return c
            c["buf"] += b

running = []; free = list(range(N_JOBS))
def end_one():
    c = wait(running); running.remove(c); free.append(c["slot"]); res.append(result(c))
for n in names:
    skip = [e[1] for e in (expected.get((n, w), ("",)) for w in (A.runner, f"{A.runner}-{A.backend}")) if e[0] == "skip"]
    if skip:
        skipped += 1; print(f"skip {n}: {skip[0]}"); continue
    if not free: end_one()
    running.append(start(n, free.pop()))
while running: end_one()
res.sort(key=lambda r: names.index(r["name"]))
if A.json: json.dump(res, open(A.json, "w"), indent=0)
print(f"{sum(r['ok'] for r in res)} of {len(res)} models pass" + (f", {skipped} skipped" if skipped else ""))
