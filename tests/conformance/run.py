#!/usr/bin/env python3
"""Conformance: trained and random models through etc, in three runtimes, beside the official flow.

    run.py --etc build/etc [--models NAME ...] [--filter TEXT] [--full] [--counts FILE] [--work build]

Needs torch and executorch (`./dev conformance` brings them). Eighteen parts, one row per check:

  official, lite, c   `etc compile` or `etc emit-c`, run in the official runtime, by `etc run` and as
                      a program of its own; outputs against torch's, within the manifest's tolerances
  size                the arena is not larger than the official exporter's, nor the .pte but for the code of tiles
  core, core-plan     decomposed.py: models of the zoo decomposed to core ATen, by `etc run`, and that their arenas are
                      not larger; without --full some of them
  xnnpack             models compiled with --backend xnnpack, in the official runtime; without --full
                      some of them
  runtime             runtimes.py: what --target-runtime 1.0 makes of each asks for what ExecuTorch 1.0 has; with
                      --full of all models of the zoo
  variants            small models of variants.py, in the three runtimes, and with --backend xnnpack
                      --delegate all in the official one and, where it was built, by etc-xnn; there
                      without --full those of DELEGATED; by etc run with --borrow-inputs
                      and --target-runtime lite
  dags                random models of dags.py, in the three runtimes, and with --backend xnnpack --delegate all in the
                      official one, there with --borrow-inputs too; the same ones each time, with --full more
  samples             official .pte files run by `etc run`, outputs against the official runtime's
  quantized           quantized.py: accuracy of the digits models as integers, in four runs; silero.py: the
                      same of probabilities of speech
  refit, r-official   refit.py: `etc refit` of models of the zoo against `etc compile` of the new model; --full has more
  bundle              bundle.py: files of --bundle in the official runtime's verifier
  etdump              etdumps.py: profiles of `etc run --etdump` in ExecuTorch's Inspector
  emit                test_emit_pte.py: planned programs written by hand, in the official runtime
  o-, old-, torch- and net-, each lite, official and c
                      onnx_nodes.py: the cases of ONNX's own operators, one row for each operator; without
                      --full some of them in the official runtime and as C, and none of Debian's older files
                      and of the package's models
  onnx                onnx_contrib.py: operators of com.microsoft and ai.onnx.ml, and forms that exporters write, against
                      ONNX Runtime, where it is installed
  x-lite, x-official, x-c, x-plan
                      onnx_exports.py: models of the zoo through torch's ONNX exporters, in the three runtimes and
                      beside the plan of the .pt2, and models of variants.py at several opsets; without --full some
  m-lite, m-official, m-c
                      with --full, onnx_models.py: trained models of PyPI's packages beside ONNX Runtime

Models are exported once into WORK/zoo, official .pte files made once in WORK/zoo_official.
--full builds emitted C with further compilers. Appends "passed failed skipped" to FILE.
"""
import argparse
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import bundle
import etdumps
import onnx_contrib
import onnx_exports
import onnx_models
import onnx_nodes
import quantized
import refit
import runtimes
import silero

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tally  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = os.path.join(os.path.dirname(HERE), "data", "official_pte")
MODELS = ["add", "linear", "softmax", "mlp_digits", "cnn_digits", "tiny_ad_autoencoder",
          "tiny_kws_dscnn", "tiny_vww_mobilenet", "resnet18", "mobilenetv2"]
# Run like those; compared with the official exporter's sizes with --full only, since it takes minutes.
WIDE = ["bert_core", "bert_tiny", "cond", "conformer", "convnext_tiny", "counter", "deeplabv3", "densenet_small",
        "dyn_arith", "dyn_derived", "efficientformerv2", "efficientnet_b0", "gemma_small", "gpt2_small", "llama_dyn",
        "llama_kv", "llama_prefill", "minilm_l6", "mixer", "mnasnet", "mobilenetv2_dyn", "mobilenetv3_small",
        "mobilevit", "nbeats", "poolformer", "qwen3_prefill", "repvgg_small", "roberta_tok", "squeezenet",
        "super_resolution", "swin_tiny", "t5_encoder", "unet", "vae_decoder", "vit_tiny", "wav2letter",
        "whisper_decoder", "whisper_encoder", "yolo_c2f"]
CORE = ["bert_tiny", "cond", "gpt2_small", "llama_kv", "mobilenetv3_small", "vit_tiny"]
LARGER = ["swin_tiny"]  # its layers are of rows of which more than one axis was put together
XNNPACK = ["mlp_digits", "cnn_digits", "tiny_kws_dscnn", "tiny_vww_mobilenet", "resnet18"]
DELEGATED = ["activations", "arithmetic", "attention", "axes", "broadcasts", "half", "index_writes", "open_views", "packed", "product_of_none",
             "products", "quant", "reductions", "region_outputs", "resized", "softmaxes", "transposes",
             "windows"]  # beginnings of names
OLD = ["complex_arithmetic", "elementary", "map_of_loops", "pools", "sampled_by_grids"]
DAGS = range(100, 130), range(400)  # seeds, and those of --full
NAN = dict.fromkeys(["specials", "running_open_sizes"], "XNNPACK's exp makes a number of NaN")
TILES = 32 << 10  # bytes of instructions that cutting into tiles may add, where it lowers the arena
# Of the C of larger and of small models: what compiles in the least time.
CC, CC_SMALL = "cc -O1 -march=native", "cc -O0"
COMPILERS = ["cc -O2", "clang -O2", "g++ -O2 -x c++"]  # of --full, beside them
# Floats are computed in 80 bits, and sizes have 32.  The kernel's headers are those of x86-64.
X87_MODELS = ["cnn_digits", "gpt2_small", "llama_kv"]  # all with --full
X87 = "gcc -O2 -m32 -Wno-psabi -idirafter /usr/include/x86_64-linux-gnu"
DELEGATE = b"XnnpackBackend"


class Rows:
    """Prints rows as they come and counts them."""

    def __init__(self):
        self.n = {"ok": 0, "FAIL": 0, "skip": 0}

    def add(self, verdict, part, name, text=""):
        self.n[verdict] += 1
        print(f"{verdict:4} {part:9} {name:24} {text}".rstrip(), flush=True)


def export(zoo, names):
    """Exports what is not there yet."""
    missing = [n for n in names if not os.path.exists(os.path.join(zoo, n, "manifest.json"))]
    if missing:
        print("exporting " + " ".join(missing), flush=True)
    jobs = os.cpu_count() or 1
    started = [subprocess.Popen([sys.executable, os.path.join(HERE, "export_zoo.py"), zoo, "--only", *missing[k::jobs]],
                                stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for k in range(min(jobs, len(missing)))]
    if any([p.wait() for p in started]):
        sys.exit("export_zoo.py failed")


def check(args, zoo, out, tool, runner, names, more=(), env=None, etc=None):
    """zoo_check.py's results, a dictionary by model; `etc` runs what runs in runtime-lite."""
    os.makedirs(out, exist_ok=True)
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        p = subprocess.run([sys.executable, os.path.join(HERE, "zoo_check.py"), "--zoo", zoo, "--out", out,
                            "--tool", tool, "--etc", etc or args.etc, "--runner", runner, "--quiet", "--json", f.name,
                            "--models", *names, *more], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           env={**os.environ, **(env or {})}, check=False)
        text = open(f.name, encoding="utf-8").read()
    if p.returncode or not text:
        sys.exit(f"zoo_check.py failed:\n{p.stdout}{p.stderr}")
    return {r["name"]: r for r in json.loads(text)}


def official(args, zoo, out, names):
    """Makes the official exporter's file of each model, once per model."""
    kept = os.path.join(out, "results.json")
    known = json.load(open(kept, encoding="utf-8")) if os.path.exists(kept) else {}
    missing = [n for n in names if not known.get(n, {}).get("ok")]
    if missing:
        print("exporting officially " + " ".join(missing), flush=True)
        known.update(check(args, zoo, out, "official", "official", missing))
        with open(kept, "w", encoding="utf-8") as f:
            json.dump(known, f, indent=1)
    return known


def models(rows, part, names, results):
    for n in names:
        r = results.get(n)
        if not r:
            rows.add("skip", part, n, "not run by zoo_check.py")
        elif r["ok"]:
            rows.add("ok", part, n, f"max error {r['err']:.3g}")
        else:
            rows.add("FAIL", part, n, f"{r['stage']}: {r['why']}")


def is_unbounded(zoo, name):
    with open(os.path.join(zoo, name, "manifest.json"), encoding="utf-8") as f:
        return any(hi is None for _, hi in json.load(f)["dynamic"].values())


def sizes(rows, zoo, names, ours, theirs):
    for n in names:
        a, b = ours.get(n, {}), theirs.get(n, {})
        why = "" if n in MODELS or b.get("ok") else "the official exporter makes no .pte of it"
        if is_unbounded(zoo, n):
            why = "the official exporter plans sizes without a bound at those of its example"
        if why:
            rows.add("skip", "size", n, why)
            continue
        for what, more in (("pte", TILES), ("arena", 0)):
            if what not in a or what not in b:
                rows.add("FAIL", "size", f"{n} {what}", "no file to compare")
            else:
                rows.add("ok" if a[what] <= b[what] + more else "FAIL", "size", f"{n} {what}",
                         f"{a[what]} bytes, official {b[what]}")


def decomposed(rows, args, zoo, out, names, ours):
    """Models as `ExportedProgram.run_decompositions` leaves them."""
    shutil.rmtree(out + "/core_zoo", ignore_errors=True)
    p = subprocess.run([sys.executable, os.path.join(HERE, "decomposed.py"), zoo, out + "/core_zoo", *names], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    why = dict(line.split(": ", 1) for line in p.stdout.splitlines())
    for n in why:
        rows.add("skip", "core", n, f"torch does not decompose it: {why[n]}")
    names = [n for n in names if n not in why]
    results = names and check(args, out + "/core_zoo", out + "/core", args.etc, "lite", names)
    models(rows, "core", names, results)
    for n in names:
        if n not in LARGER and results.get(n, {}).get("ok"):
            a, b = results[n]["arena"], ours[n]["arena"]
            rows.add("ok" if a <= b else "FAIL", "core-plan", n, f"{a} bytes, {b} without decompositions")


def variants(rows, args, zoo, out, text):
    """The models of variants.py, exported anew each time: it takes seconds and they change."""
    shutil.rmtree(zoo, ignore_errors=True)
    jobs = os.cpu_count() or 1
    started = [subprocess.Popen([sys.executable, os.path.join(HERE, "variants.py"), zoo, "--part", str(k), str(jobs)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for k in range(jobs)]
    if any([p.wait() for p in started]):
        sys.exit("variants.py failed")
    names = sorted(n for n in os.listdir(zoo) if text in n)
    runtimes.check(rows, args.etc, zoo, names, os.path.join(out, "runtime"))
    old = [n for n in names if n in OLD]
    if old: # in the runtime that there is
        models(rows, "v-old", old, check(args, zoo, os.path.join(out, "v-old"), args.etc, "official", old,
                                         ["--backend", "xnnpack", "--flags", "--delegate all --target-runtime 1.0"]))
    for runner in ("official", "lite", "c") if names else ():
        models(rows, "v-" + runner, names, check(args, zoo, os.path.join(out, "v-" + runner), args.etc, runner, names, env={"CC": CC_SMALL}))
    if names:
        models(rows, "v-own", names, check(args, zoo, os.path.join(out, "v-own"), args.etc, "lite", names,
                                              ["--flags=--borrow-inputs --target-runtime lite"]))
    names = [n for n in names if args.full or n.startswith(tuple(DELEGATED))]
    for n in set(names) & NAN.keys():
        rows.add("skip", "v-xnnpack", n, NAN[n])
    names = [n for n in names if n not in NAN]
    with_xnn, flags = args.etc + "-xnn", ["--backend", "xnnpack", "--flags", "--delegate all"]
    if names:
        models(rows, "v-xnnpack", names, check(args, zoo, os.path.join(out, "v-xnnpack"), args.etc, "official", names, flags))
    if names and os.path.exists(with_xnn):
        models(rows, "v-xnn-lite", names, check(args, zoo, os.path.join(out, "v-xnn-lite"), args.etc, "lite", names, flags, etc=with_xnn))


def dags(rows, args, zoo, out, text):
    """The models of dags.py, exported anew each time."""
    names = [f"dag_{k}" for k in DAGS[args.full] if text in f"dag_{k}"]
    shutil.rmtree(zoo, ignore_errors=True)
    if names:
        subprocess.run([sys.executable, os.path.join(HERE, "dags.py"), zoo, *(n[4:] for n in names)], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        names = [n for n in names if os.path.exists(os.path.join(zoo, n))] # others have no output to compare
    for runner in ("official", "lite", "c") if names else ():
        models(rows, "d-" + runner, names, check(args, zoo, os.path.join(out, "d-" + runner), args.etc, runner, names, env={"CC": CC_SMALL}))
    if names:
        models(rows, "d-borrow", names, check(args, zoo, os.path.join(out, "d-borrow"), args.etc, "official", names,
                                              ["--flags=--borrow-inputs"]))
        models(rows, "d-xnnpack", names, check(args, zoo, os.path.join(out, "d-xnnpack"), args.etc, "official", names,
                                               ["--backend", "xnnpack", "--flags", "--delegate all"]))


# -- official samples ------------------------------------------------------------------------

N_CALLS = 2  # on one loaded program, so that state is seen


def random_inputs(meta, rng):
    import numpy as np
    kinds = {0: np.uint8, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.int64, 6: np.float32, 7: np.float64,
             11: np.bool_}
    found = []
    for i in range(meta.num_inputs()):
        m = meta.input_tensor_meta(i)
        kind = kinds[m.dtype()]
        a = rng.standard_normal(m.sizes()) if kind in (np.float32, np.float64) else rng.integers(0, 2, m.sizes())
        found.append(a.astype(kind))
    return found


@contextlib.contextmanager
def quiet():
    """Without what the official runtime says on stderr."""
    sys.stderr.flush()
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def official_calls(path, rng):
    """[(inputs, outputs)] of N_CALLS calls, as numpy arrays."""
    import numpy as np
    with quiet():
        import torch
        from executorch.runtime import Runtime
        program = Runtime.get().load_program(path)
        method = program.load_method("forward")
        calls = []
        for _ in range(N_CALLS):
            x = random_inputs(method.metadata, rng)
            y = method.execute([torch.from_numpy(a.copy()) for a in x])
            calls.append((x, [t.clone().numpy() if isinstance(t, torch.Tensor) else np.array(t) for t in y]))
    return calls


def lite_calls(etc, path, calls, folder):
    """Exit code, stderr and the outputs of the same calls by `etc run`."""
    import numpy as np
    command = [etc, "run", path]
    for k, (x, _) in enumerate(calls):
        command += ["--next"] if k else []
        for i, a in enumerate(x):
            file = os.path.join(folder, f"in_{k}_{i}.npy")
            np.save(file, a)
            command += ["--input", file]
    p = subprocess.run(command + ["--output-dir", folder], stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, check=False)
    if p.returncode:
        return p.returncode, p.stderr.strip(), []
    return 0, "", [[np.load(os.path.join(folder, str(k), f"output_{i}.npy")) for i in range(len(y))]
                   for k, (_, y) in enumerate(calls)]


def difference(got, want):
    """None, or what is wrong; float outputs within 1e-4 of the value and 2e-5 of the largest."""
    import numpy as np
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
    if not np.issubdtype(want.dtype, np.floating):
        return None if np.array_equal(got, want) else "values differ"
    scale = np.abs(want[np.isfinite(want)]).max(initial=0.0)
    if np.allclose(got, want, rtol=1e-4, atol=max(1e-7, 2e-5 * scale), equal_nan=True):
        return None
    return f"max error {np.abs(got - want).max():.3g}"


def sample(rows, etc, path):
    import numpy as np
    name = os.path.basename(path)
    delegated = DELEGATE in open(path, "rb").read()
    with_xnn = etc + "-xnn"
    if delegated and os.path.exists(with_xnn):
        etc = with_xnn
    try:
        calls = official_calls(path, np.random.default_rng(0))
    except RuntimeError as e:
        rows.add("skip", "samples", name, f"nothing to compare with: the official runtime fails ({e})")
        return
    with tempfile.TemporaryDirectory() as folder:
        code, text, outputs = lite_calls(etc, path, calls, folder)
    first = text.splitlines()[0].rsplit("error: ", 1)[-1] if text else "no message"
    if code == 4 and DELEGATE.decode() in text:
        rows.add("ok", "samples", name, "refused: " + first)
    elif code == 4:
        rows.add("skip", "samples", name, first)
    elif delegated and etc != with_xnn:
        rows.add("FAIL", "samples", name, f"has delegates, yet exit {code}: {first}")
    elif code == 1 and "of another dim_order" in first:
        rows.add("skip", "samples", name, "etc run brings inputs in the plain order alone: " + first)
    elif code:
        rows.add("FAIL", "samples", name, f"exit {code}: {first}")
    else:
        wrong = [f"call {k} output {i}: {d}" for k, (_, y) in enumerate(calls)
                 for i, d in enumerate(difference(g, w) for g, w in zip(outputs[k], y)) if d]
        rows.add("FAIL" if wrong else "ok", "samples", name, "; ".join(wrong))


# -- the emitter's own cases -----------------------------------------------------------------


def emitter(rows, etc, text):
    """The cases of test_emit_pte.py, which prints TAP."""
    p = subprocess.run([sys.executable, os.path.join(HERE, "test_emit_pte.py"), "--etc", etc, "--filter", text],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    lines = p.stdout.splitlines()
    n_failed = rows.n["FAIL"]
    for i, line in enumerate(lines):
        m = re.match(r"(not ok|ok) \d+ - (\S+)", line)
        if m:
            why = " ".join(x[2:] for x in lines[i + 1:i + 3] if x.startswith("# "))
            rows.add("ok" if m[1] == "ok" else "FAIL", "emit", m[2], why)
    if p.returncode and rows.n["FAIL"] == n_failed and not text:
        rows.add("FAIL", "emit", "", (p.stderr.strip().splitlines() or ["failed without a word"])[-1])


# --------------------------------------------------------------------------------------------


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--etc", required=True)
    ap.add_argument("--models", nargs="+", default=MODELS + WIDE)
    ap.add_argument("--filter", default="")
    ap.add_argument("--full", action="store_true")
    ap.add_argument("--counts")
    ap.add_argument("--work", default="build")
    args = ap.parse_args()
    args.etc = os.path.abspath(args.etc)
    names = [n for n in args.models if args.filter in n]
    zoo, theirs = os.path.join(args.work, "zoo"), os.path.join(args.work, "zoo_official")
    out = os.path.join(args.work, "conformance")
    shutil.rmtree(out, ignore_errors=True)
    rows = Rows()
    everything = args.models == MODELS + WIDE
    if names:
        export(zoo, names)
        measured = [n for n in names if args.full or n not in WIDE]
        reference = official(args, zoo, theirs, measured)
        ours = check(args, zoo, out + "/pte", args.etc, "official", names)
        models(rows, "official", names, ours)
        models(rows, "lite", names, check(args, zoo, out + "/lite", args.etc, "lite", names))
        for cc in [CC] + (COMPILERS if args.full else []):
            models(rows, "c" if cc == CC else cc, names,
                   check(args, zoo, out + "/c", args.etc, "c", names, env={"CC": cc}))
        some = [n for n in names if os.uname().machine == "x86_64" and (args.full or n in X87_MODELS)]
        models(rows, "c-x87", some, some and check(args, zoo, out + "/c", args.etc, "c", some, env={"CC": X87}))
        models(rows, "c-host", names if args.full else [],
               args.full and check(args, zoo, out + "/c-host", args.etc, "c", names, ["--flags", "--target host"]))
        sizes(rows, zoo, measured, ours, reference)
        whole = runtimes.others(names) if args.full and everything and not args.filter else []
        export(zoo, whole)
        runtimes.check(rows, args.etc, zoo, names + whole, out + "/runtime")
        some = [n for n in names if args.full or not everything or n in CORE]
        if some:
            decomposed(rows, args, zoo, out, some, ours)
        some = [n for n in names if args.full or not everything or n in XNNPACK]
        models(rows, "xnnpack", some, some and check(args, zoo, out + "/xnnpack", args.etc, "official", some, ["--backend", "xnnpack"]))
    for path in sorted(glob.glob(os.path.join(SAMPLES, "*.pte"))):
        if args.filter in os.path.basename(path) and everything:
            sample(rows, args.etc, path)
    if everything:
        variants(rows, args, os.path.join(args.work, "variants"), out, args.filter)
        dags(rows, args, os.path.join(args.work, "dags"), out, args.filter)
        with quiet():
            quantized.check(rows, args.etc, os.path.join(out, "quantized"), args.filter)
            silero.check(rows, args.etc, os.path.join(out, "silero"), args.filter, args.full)
            quantized.check_encoder(rows, args.etc, zoo, os.path.join(out, "encoder"), args.filter, args.full)
            names = refit.chosen(args.filter, args.full)
            export(zoo, names)
            export(zoo, [n for n in bundle.MODELS if args.filter in n])
            bundle.check(rows, args.etc, zoo, os.path.join(out, "bundle"), args.filter)
            refit.check(rows, args.etc, zoo, os.path.join(out, "refit"), args.filter, args.full)
        emitter(rows, args.etc, args.filter)
        with quiet():
            etdumps.check(rows, args.etc, os.path.join(out, "etdump"), args.filter)
        with quiet():
            onnx_nodes.check(rows, args.etc, os.path.join(out, "onnx"), os.path.join(args.work, "onnx_cases"), args.filter, args.full)
            onnx_contrib.check(rows, args.etc, os.path.join(out, "onnx_contrib"), args.filter)
            names = onnx_exports.chosen(args.filter, args.full)
            export(zoo, onnx_exports.of_zoo(names))
            onnx_exports.check(rows, args.etc, zoo, os.path.join(args.work, "variants"), os.path.join(out, "onnx_exports"), names)
            if args.full:
                onnx_models.check(rows, args.etc, os.path.join(args.work, "onnx_models"), os.path.join(out, "onnx_models"), args.filter)
    n = rows.n
    if not sum(n.values()) and not args.filter:
        rows.add("FAIL", "all", "", "nothing ran")
    print(f"conformance: {n['ok']} passed, {n['FAIL']} failed, {n['skip']} skipped")
    tally.append(args.counts, n["ok"], n["FAIL"], n["skip"])
    return 1 if n["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
