#!/usr/bin/env python3
"""Runs XNNPACK blobs in runtime-lite.  Prints TAP.

    xnn_models.py ETC ETC_XNN WORK_FOLDER      the test
    xnn_models.py --record                     what the official runtime answers (torch, executorch)

ours      the models of tests/data, compiled with --backend xnnpack and run twice by etc-xnn, with one
          thread and with two, give torch's recorded outputs within the manifest's tolerances
methods   two methods of one model do the same, and their weights are stored once
official  the exporter's small files in tests/data/official_pte give the outputs of the official runtime
          for the same inputs, which are recorded beside them as NAME.npz
profile   `etc-xnn bench` finds the model's node for each operation that a delegate reports;
          two threads pack as many bytes as one
verified  `etc verify` continues as etc-xnn if a file needs XNNPACK
without   etc itself refuses those files with exit code 4, and names the program that runs them
"""
import glob
import json
import os
import shutil
import subprocess
import sys

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
SAMPLES = os.path.join(DATA, "official_pte")
CALLS = 2


def record():
    import torch
    from executorch.runtime import Runtime
    sys.path.insert(0, os.path.join(os.path.dirname(DATA), "conformance"))
    import run
    rng = np.random.default_rng(0)
    for path in sorted(glob.glob(SAMPLES + "/*.pte")):
        if b"XnnpackBackend" not in open(path, "rb").read():
            continue
        method = Runtime.get().load_program(path).load_method("forward")
        kept = {}
        for call in range(CALLS):
            x = run.random_inputs(method.metadata, rng)
            y = method.execute([torch.from_numpy(a.copy()) for a in x])
            kept.update({f"{call}_in_{i}": a for i, a in enumerate(x)})
            kept.update({f"{call}_out_{i}": t.clone().numpy() for i, t in enumerate(y)})
        np.savez(path[:-4] + ".npz", **kept)


def run_calls(program, model, calls, out, *flags):
    """calls: lists of inputs, as words of --input.  Exit code and stderr."""
    words = [program, "run", model, "--output-dir", out, *flags]
    for k, inputs in enumerate(calls):
        words += ["--next"] if k else []
        words += [w for i in inputs for w in ("--input", i)]
    p = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return p.returncode, p.stderr


def compare(got, want, atol, rtol, name):
    assert got.shape == want.shape and got.dtype == want.dtype, f"{name}: {got.dtype}{got.shape}"
    if np.issubdtype(want.dtype, np.floating):
        assert np.allclose(got, want, atol=atol, rtol=rtol, equal_nan=True), \
            f"{name}: differs by {np.abs(got - want).max():.3g}"
    else:
        assert np.array_equal(got, want), f"{name}: differs"


def compiled(etc, out, *words):
    p = subprocess.run([etc, "compile", *words, "-o", out, "--backend", "xnnpack"],
                       capture_output=True, text=True, check=False)
    assert p.returncode == 0, p.stderr
    return os.path.getsize(out)


def recorded(etc_xnn, pte, folder, out, *flags):
    """CALLS calls of each recorded case give torch's outputs."""
    with open(folder + "/manifest.json", encoding="utf-8") as f:
        man = json.load(f)
    for k, case in enumerate(man["cases"]):
        inputs = [os.path.join(folder, i["file"]) if "file" in i else "value:" + json.dumps(i["value"])
                  for i in case["inputs"]]
        code, text = run_calls(etc_xnn, pte, [inputs] * CALLS, f"{out}_{k}", *flags)
        assert code == 0, text
        for call in range(CALLS):
            for i, o in enumerate(case["outputs"]):
                compare(np.load(f"{out}_{k}/{call}/output_{i}.npy"), np.load(os.path.join(folder, o["file"])),
                        o.get("atol", man["atol"]), o.get("rtol", man["rtol"]), f"case {k} call {call} output {i}")


def ours(etc, etc_xnn, folder, work, threads):
    out = os.path.join(work, os.path.basename(folder))
    compiled(etc, out + ".pte", folder + "/model.pt2")
    recorded(etc_xnn, out + ".pte", folder, out, "--threads", str(threads))


def methods(etc, etc_xnn, folder, work):
    """Two methods of one model: its weights are in the file once."""
    out, model = os.path.join(work, os.path.basename(folder) + "_methods"), folder + "/model.pt2"
    alone = compiled(etc, out + ".pte", model)
    both = compiled(etc, out + ".pte", "--method", "a=" + model, "--method", "b=" + model)
    assert both < 1.2 * alone, f"{both} bytes, {alone} of one method"
    for name in ("a", "b"):
        recorded(etc_xnn, out + ".pte", folder, f"{out}_{name}", "--method", name)


def official(etc_xnn, path, work):
    kept = np.load(path[:-4] + ".npz")
    calls = []
    for call in range(CALLS):
        names = sorted(n for n in kept.files if n.startswith(f"{call}_in_"))
        calls.append([])
        for n in names:
            calls[-1].append(os.path.join(work, os.path.basename(path) + n + ".npy"))
            np.save(calls[-1][-1], kept[n])
    out = os.path.join(work, os.path.basename(path) + "_out")
    code, text = run_calls(etc_xnn, path, calls, out)
    for skip in ("no such kernel in this build", "input of another dim_order"):
        if code and skip in text:
            return text.strip().splitlines()[0].rsplit("error: ", 1)[-1]
    assert code == 0, text
    for n in (n for n in kept.files if "_out_" in n):
        call, i = n.split("_out_")
        want = kept[n]
        scale = np.abs(want).max(initial=0.0)
        compare(np.load(f"{out}/{call}/output_{i}.npy"), want, max(1e-7, 2e-5 * scale), 1e-4, n)
    return None


def packed_by_two(etc_xnn, folder):
    p = subprocess.run([etc_xnn, "bench", folder + "/model.pt2", "--backend", "xnnpack", "--delegate", "all",
                        "--runs", "1", "--threads", "2", "--json"], capture_output=True, text=True, check=False)
    assert p.returncode == 0, p.stderr
    return sum(r["delegate"]["packed_bytes"] for r in json.loads(p.stdout)["instructions"] if r["delegate"])


def profile(etc_xnn, folder, work):
    trace = os.path.join(work, "trace.json")
    p = subprocess.run([etc_xnn, "bench", folder + "/model.pt2", "--backend", "xnnpack", "--delegate", "all",
                        "--runs", "3", "--trace", trace, "--json"], capture_output=True, text=True, check=False)
    assert p.returncode == 0, p.stderr
    rows = json.loads(p.stdout)["instructions"]
    delegates = [r["delegate"] for r in rows if r["delegate"]]
    assert delegates, "nothing is delegated"
    packed = sum(d["packed_bytes"] for d in delegates)
    assert packed > 0
    assert packed == packed_by_two(etc_xnn, folder), "two threads pack something twice"
    for d in delegates:
        assert d["operations"] and d["nodes"] and d["border_bytes"] > 0
        for o in d["operations"]:
            assert o["node"] and o["op"], f"{o['name']} is of no node"
            assert (o["op"] in ("aten.convolution.default", "aten.linear.default")) == \
                o["name"].startswith(("Convolution", "Fully Connected")) or o["name"].startswith(("Transpose", "Copy")), o
        for n in d["nodes"]:
            assert n["predicted_seconds"] > 0 and n["bytes"] > 0 and n["seconds"] >= 0, n
    with open(trace, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    assert len(events) == 1 + len(rows) + sum(len(d["operations"]) for d in delegates)


def without(etc, path, work):
    code, text = run_calls(etc, path, [[]], os.path.join(work, "none"))
    assert code == 4, f"exit {code}: {text}"
    assert "no such kernel" in text or ("XnnpackBackend" in text and "etc-xnn" in text), text


def verified(etc, folder, work):
    """etc finds etc-xnn beside itself or in PATH; alone it says which program it lacks."""
    pte, alone = os.path.join(work, "verified.pte"), os.path.join(work, "alone")
    os.makedirs(alone, exist_ok=True)
    compiled(etc, pte, folder + "/model.pt2")
    words = ["verify", pte, "--model", folder + "/model.pt2", "--json"]
    p = subprocess.run([etc, *words], capture_output=True, text=True, check=False)
    assert p.returncode == 0, p.stderr
    told = json.loads(p.stdout)
    assert told["same"] and told["outputs"][0]["sqnr_db"] > 100, told
    shutil.copy(etc, alone)
    nowhere = dict(os.environ, PATH="/nonexistent")
    p = subprocess.run([alone + "/etc", *words], env=nowhere, capture_output=True, text=True, check=False)
    assert p.returncode == 4 and "etc-xnn" in p.stderr and not p.stdout, p.stderr
    by_path = dict(os.environ, PATH=os.path.dirname(etc))
    p = subprocess.run([alone + "/etc", *words], env=by_path, capture_output=True, text=True, check=False)
    assert p.returncode == 0, p.stderr
    p = subprocess.run([etc, "diff", folder + "/model.pt2", pte, "--json"], capture_output=True, text=True, check=False)
    assert p.returncode == 0 and json.loads(p.stdout)["same"], p.stderr


def main(etc, etc_xnn, work):
    os.makedirs(work, exist_ok=True)
    tests = []
    for folder in sorted(os.path.dirname(p) for p in glob.glob(DATA + "/*/model.pt2")):
        for threads in (1, 2):
            tests.append((f"ours {os.path.basename(folder)} {threads}",
                          lambda folder=folder, threads=threads: ours(etc, etc_xnn, folder, work, threads)))
    for name in ("cnn_digits", "mlp_digits"):
        tests.append(("methods " + name, lambda name=name: methods(etc, etc_xnn, os.path.join(DATA, name), work)))
        tests.append(("verified " + name, lambda name=name: verified(etc, os.path.join(DATA, name), work)))
        tests.append(("profile " + name, lambda name=name: profile(etc_xnn, os.path.join(DATA, name), work)))
    for path in sorted(glob.glob(SAMPLES + "/*.npz")):
        path = path[:-4] + ".pte"
        tests.append(("official " + os.path.basename(path), lambda path=path: official(etc_xnn, path, work)))
        tests.append(("without " + os.path.basename(path), lambda path=path: without(etc, path, work)))
    assert len(tests) > 20, "tests/data was not found"
    print(f"1..{len(tests)}")
    for k, (name, test) in enumerate(tests, 1):
        try:
            skip = test()
            print(f"ok {k} - {name}" + (f" # SKIP {skip}" if skip else ""))
        except AssertionError as e:
            print(f"not ok {k} - {name}")
            for line in str(e).splitlines():
                print("# " + line)


if sys.argv[1:] == ["--record"]:
    record()
else:
    main(*sys.argv[1:])
