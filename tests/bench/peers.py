#!/usr/bin/env python3
"""Compares the speed of inference with other engines: our XNNPACK .pte and the official one in the official runtime,
C that etc emits for this CPU, built with `cc -O3`, ONNX Runtime and OpenVINO at f32. The engines "fast" and "bf16"
are C of --math fast and --math bf16; they run only if they are named.

    peers.py --etc build/etc --zoo ZOO --official DIR [--models NAME ...] [--threads 1,2] [--rounds N] [--work DIR]
             [--engines official,etc,c,fast,bf16,onnxruntime,openvino] [--cold ETC_XNN]

ZOO contains models as export_zoo.py writes them, DIR their official XNNPACK files NAME.pte. Every contender runs
alone in its own process, pinned to as many cores as it has threads. The contenders take turns, and each round
begins with another one. The time of a round is the median of a second of calls; the table has the median of the
rounds. Outputs are checked against torch's. Needs torch, executorch, onnx, onnxscript, onnxruntime and openvino. A
contender that is not installed, or cannot take a model, is left out of the row and named.

--cold times loading and the first run instead, with the files in memory: our file in runtime-lite (ETC_XNN), our
file in the official runtime, and the official file there.  Each time is that of a new process; the process of the
official runtime is forked after its imports.  The table has the median of all rounds.
"""
import argparse
import ctypes
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

ENGINES = ["official", "etc", "c", "onnxruntime", "openvino"]
PEERS = {"onnxruntime", "openvino"}
IN_C = {"c": (), "fast": ("--math", "fast"), "bf16": ("--math", "bf16")}  # with the flags of emit-c
SECONDS = 1.0


def case(folder):
    import numpy as np
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        m = json.load(f)
    c = m["cases"][0]
    load = lambda rows: [np.load(os.path.join(folder, r["file"])) for r in rows if "file" in r]
    return m, load(c["inputs"]), load(c["outputs"])


# -- a contender, in a process of its own ------------------------------------------------------


def run_executorch(path, inputs, threads):
    import torch
    from executorch.extension.pybindings import portable_lib as lib
    from executorch.runtime import Runtime
    lib._unsafe_reset_threadpool(threads)
    method = Runtime.get().load_program(path).load_method("forward")
    x = [torch.from_numpy(v) for v in inputs]
    return lambda: [t.numpy() if hasattr(t, "numpy") else t for t in method.execute(x)]


def run_onnxruntime(path, inputs, threads):
    import onnxruntime as ort
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.inter_op_num_threads = threads, 1
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    s = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
    feed = dict(zip([i.name for i in s.get_inputs()], inputs))
    return lambda: s.run(None, feed)


def run_openvino(path, inputs, threads):
    import openvino as ov
    c = ov.Core()
    m = c.compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32",
                                      "PERFORMANCE_HINT": "LATENCY"})
    request = m.create_infer_request()
    feed = {i: v for i, v in enumerate(inputs)}
    def call():
        r = request.infer(feed, share_inputs=True)
        return [r[o] for o in m.outputs]
    return call


def run_c(path, inputs, outputs):
    """path is a shared library; its header lies beside it."""
    import numpy as np
    with open(path[:-3] + ".h", encoding="utf-8") as f:
        header = f.read()
    arena = int(re.search(r"_ARENA_BYTES\s+(\d+)", header).group(1))
    name, parameters = re.search(r"int (\w+_run)\(([^;]*)\);", header).groups()
    function = getattr(ctypes.CDLL(path), name)
    sizes = {}  # of the axes that the header leaves open
    for x, dims in zip(inputs, re.findall(r"\* +input +\w+ +\w+\[(.*?)\]", header)):
        sizes.update(zip(dims.split(","), x.shape))
    open_sizes = [ctypes.c_int64(sizes[s]) for s in re.findall(r"int64_t (\w+)(?:,|$)", parameters)]
    outs = [np.zeros(w.shape, w.dtype) for w in outputs]
    memory = np.zeros(arena + 64, np.uint8)
    memory = memory[-memory.ctypes.data % 64:]
    pointer = lambda arrays: [ctypes.c_void_p(a.ctypes.data) for a in arrays]
    arguments = [*pointer([*inputs, *outs]), *open_sizes, *pointer([memory])]
    def call(kept=(inputs, memory)):
        if function(*arguments):
            raise RuntimeError("emitted C refused its arguments")
        return outs
    return call


def is_close(engine, got, wanted, manifest):
    """Compares an output with torch's. It is speed that is judged here: floats get ten times the tolerances that
    zoo_check.py allows; for bfloat16, the error may have 15 % of the output's size."""
    import numpy as np
    if engine == "bf16":
        return bool(np.linalg.norm(got - wanted) <= 0.15 * np.linalg.norm(wanted))
    return np.allclose(got, wanted, rtol=10 * manifest.get("rtol", 1e-3), atol=10 * max(manifest.get("atol", 0), 1e-4))


def child(engine, path, folder, threads):
    import numpy as np
    manifest, inputs, wanted = case(folder)
    inputs = [np.ascontiguousarray(x) for x in inputs]
    call = run_c(path, inputs, wanted) if engine in IN_C else {
        "official": run_executorch, "etc": run_executorch, "onnxruntime": run_onnxruntime,
        "openvino": run_openvino}[engine](path, inputs, threads)
    got = call()
    close = len(got) >= len(wanted) and all(is_close(engine, a, b, manifest) for a, b in zip(got, wanted))
    call()
    times, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    print(json.dumps({"seconds": statistics.median(times), "close": bool(close)}))


# -- all of them -------------------------------------------------------------------------------


def to_onnx(folder, path):
    import torch
    ep = torch.export.load(os.path.join(folder, "model.pt2"))
    torch.onnx.export(ep, dynamo=True, optimize=True, external_data=False).save(path)


def to_library(model, stem, etc, flags=()):
    emit = [etc, "emit-c", "-q", model, "-o", stem + ".c", "--target", "host", "--weights-as", "incbin", *flags]
    build = ["cc", "-O3", "-march=native", "-shared", "-fPIC", "-w", stem + ".c", stem + "_weights.S", "-o", stem + ".so", "-lm"]
    return all(subprocess.run(words, check=False).returncode == 0 for words in (emit, build))


def files_of(name, a):
    """Makes the files that each engine runs; a file that cannot be made is left out."""
    folder, found = os.path.join(a.zoo, name), {}
    ours, onnx = os.path.join(a.work, name + ".pte"), os.path.join(a.work, name + ".onnx")
    if subprocess.run([a.etc, "compile", "-q", "--backend", "xnnpack", os.path.join(folder, "model.pt2"), "-o", ours],
                      check=False).returncode == 0:
        found["etc"] = ours
    for engine in IN_C.keys() & set(a.engines):
        stem = os.path.join(a.work, f"{name}_{engine}")
        if to_library(os.path.join(folder, "model.pt2"), stem, a.etc, IN_C[engine]):
            found[engine] = stem + ".so"
    official = os.path.join(a.official, name + ".pte")
    if os.path.exists(official):
        found["official"] = official
    if not os.path.exists(onnx) and set(a.engines) & PEERS:
        subprocess.run([sys.executable, __file__, "--to-onnx", folder, onnx], check=False, capture_output=True)
    if os.path.exists(onnx):
        found["onnxruntime"] = found["openvino"] = onnx
    return found


def pinned(threads, command):
    return ["taskset", "-c", "1" if threads == 1 else f"0-{threads - 1}", *command]


def time_one(engine, path, folder, threads):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    p = subprocess.run(pinned(threads, [sys.executable, __file__, "--child", engine, path, folder, str(threads)]), env=env, capture_output=True, text=True, check=False)
    try:
        return json.loads(p.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return None


def turns(contenders, k):
    """Each round begins with another."""
    k %= len(contenders)
    return contenders[k:] + contenders[:k]


def row_of(name, threads, a):
    folder, found, times, wrong = os.path.join(a.zoo, name), files_of(name, a), {}, set()
    for k in range(a.rounds):
        for engine in turns(a.engines, k):
            r = time_one(engine, found[engine], folder, threads) if engine in found else None
            if r:
                times.setdefault(engine, []).append(r["seconds"])
                if not r["close"]:
                    wrong.add(engine)
    return {e: statistics.median(t) for e, t in times.items() if e not in wrong}, wrong


def ratio(rows, against, of="etc"):
    logs = [math.log(r[of] / against(r)) for r in rows if of in r and against(r)]
    return f"{math.exp(sum(logs) / len(logs)):.3f} over {len(logs)}" if logs else "none"


# -- loading and the first run -----------------------------------------------------------------


def cold_official(path, folder, threads):
    import torch
    from executorch.extension.pybindings import portable_lib as lib
    from executorch.runtime import Runtime
    x = [torch.from_numpy(v) for v in case(folder)[1]]
    lib._unsafe_reset_threadpool(threads)
    start = time.perf_counter()
    Runtime.get().load_program(path).load_method("forward").execute(x)
    return time.perf_counter() - start


def serve_cold(threads):
    """A line of JSON names a file and a model's folder; the answer is what a fork of this process took."""
    import torch  # what children need is here before they are
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime
    for line in sys.stdin:
        out, into = os.pipe()
        pid = os.fork()
        if not pid:
            os.write(into, str(cold_official(*json.loads(line), threads)).encode())
            os._exit(0)
        os.close(into)
        os.waitpid(pid, 0)
        print(os.read(out, 64).decode() or "null", flush=True)
        os.close(out)


def cold_lite(path, folder, threads, a):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        rows = json.load(f)["cases"][0]["inputs"]
    inputs = [w for r in rows if "file" in r for w in ("--input", os.path.join(folder, r["file"]))]
    p = subprocess.run(pinned(threads, [a.cold, "bench", path, "--json", "--runs", "1", "--warmup", "0", "--threads",
                                        str(threads), *inputs]), capture_output=True, text=True, check=False)
    if p.returncode:
        return None
    r = json.loads(p.stdout)
    return r["load_seconds"] + r["first_run_seconds"]


def cold_row(name, threads, server, a):
    folder, ours = os.path.join(a.zoo, name), os.path.join(a.work, name + ".pte")
    subprocess.run([a.etc, "compile", "-q", "--backend", "xnnpack", os.path.join(folder, "model.pt2"), "-o", ours],
                   check=True)
    path = {"etc-xnn": ours, "same": ours, "official": os.path.join(a.official, name + ".pte")}
    times = {engine: [] for engine in path}
    for k in range(a.rounds):
        for engine in turns(list(path), k):
            if engine == "etc-xnn":
                times[engine].append(cold_lite(ours, folder, threads, a))
                continue
            print(json.dumps([path[engine], folder]), file=server.stdin, flush=True)
            times[engine].append(json.loads(server.stdout.readline()))
    return {e: statistics.median(t) for e, t in times.items() if None not in t}


def measure_cold(names, threads, a):
    server = subprocess.Popen(pinned(threads, [sys.executable, __file__, "--serve-cold", str(threads)]), text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    rows = []
    for name in names:
        r = cold_row(name, threads, server, a)
        rows.append(r)
        print(f"{threads} {name:22}", *(f"{e} {t * 1e3:9.3f}" for e, t in r.items()),
              *(f"of {e} {r['etc-xnn'] / r[e]:.3f}" for e in ("same", "official") if "etc-xnn" in r and e in r),
              flush=True)
    server.stdin.close()
    server.wait()
    print(f"{threads} threads: of the same", ratio(rows, lambda r: r.get("same"), "etc-xnn"), "; of the official",
          ratio(rows, lambda r: r.get("official"), "etc-xnn"))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--etc", default="build/etc")
    ap.add_argument("--zoo", required=True)
    ap.add_argument("--official", required=True)
    ap.add_argument("--models", nargs="+")
    ap.add_argument("--threads", default="1,2")
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--work", default="build/peers")
    ap.add_argument("--engines", default=",".join(ENGINES))
    ap.add_argument("--cold", metavar="ETC_XNN")
    a = ap.parse_args()
    a.engines = a.engines.split(",")
    os.makedirs(a.work, exist_ok=True)
    names = a.models or sorted(f[:-4] for f in os.listdir(a.official) if f.endswith(".pte"))
    for threads in map(int, a.threads.split(",")):
        if a.cold:
            measure_cold(names, threads, a)
            continue
        rows = []
        for name in names:
            r, wrong = row_of(name, threads, a)
            rows.append(r)
            print(f"{threads} {name:22}", *(f"{e} {r[e] * 1e3:9.3f}" if e in r else f"{e} {'wrong' if e in wrong else '-':>9}"
                                            for e in a.engines),
                  f"etc/official {r['etc'] / r['official']:.3f}" if "etc" in r and "official" in r else "", flush=True)
        print(f"{threads} threads: etc/official {ratio(rows, lambda r: r.get('official'))}; etc/the faster of the others",
              ratio(rows, lambda r: min((r[e] for e in PEERS if e in r), default=None)), "; C/the fastest of all others:",
              *(f"{c} " + ratio(rows, lambda r: min((t for e, t in r.items() if e not in IN_C), default=None), c)
                for c in IN_C))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    elif sys.argv[1:2] == ["--serve-cold"]:
        serve_cold(int(sys.argv[2]))
    elif sys.argv[1:2] == ["--to-onnx"]:
        to_onnx(sys.argv[2], sys.argv[3])
    else:
        main()
