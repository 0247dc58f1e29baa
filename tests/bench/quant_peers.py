#!/usr/bin/env python3
"""Compares the accuracy and speed of static int8 with other flows.

    quant_peers.py --etc build/etc --zoo ZOO [--models NAME ...] [--samples N] [--held-out N] [--work DIR]
                   [--speed | --only-speed] [--threads 1,2] [--rounds N]

ZOO contains models with one image as input, as export_zoo.py writes them. All flows get the same samples for
calibration. Their outputs on other samples are compared with torch's floats: SQNR of all outputs together, in
dB.

  etc         --recipe int8 --backend xnnpack, in the official runtime
  c           emit-c --recipe int8 --target host, built with `cc -O3`
  pt2e        the official flow: XNNPACKQuantizer (symmetric, per channel), prepare_pt2e, convert_pt2e; in torch
  pt2e.pte    the same as a .pte with XNNPACK, in the official runtime
  nncf        nncf.quantize with its defaults on OpenVINO's model, in OpenVINO
  ort, ov     onnxruntime's quantize_static (QDQ, unsigned activations, signed weights per channel), in ONNX
              Runtime and in OpenVINO

--speed also times `c`, `etc`, `pt2e.pte`, `ort`, `ov`, and `etc` without --recipe, as peers.py does: each in its own
process, pinned, in turn; `c` has one thread. Needs torch, executorch, torchao and, for the last columns, nncf, openvino,
onnx, onnxscript and onnxruntime. A flow that is not installed is left out and named.
"""
import argparse
import math
import os
import statistics
import subprocess
import sys

import numpy as np
import peers

FLOWS = ["etc", "c", "pt2e", "pt2e.pte", "nncf", "ort", "ov"]
# --speed times these files: a name, the end of its file, and the engine of peers.py that runs it.
TIMED = [("official", ".official.pte", "official"), ("etc", ".etc.pte", "etc"), ("float", ".float.pte", "etc"),
         ("c", ".so", "c"), ("ort", ".qdq.onnx", "onnxruntime"), ("ov", ".qdq.onnx", "openvino")]
MODELS = ["mobilenetv2", "mobilenetv3_small", "resnet18", "vit_tiny"]


# -- samples -----------------------------------------------------------------------------------


def octave(rng, channels, cells, size):
    """Noise of so many cells across, smooth between them."""
    coarse = rng.standard_normal((channels, cells + 1, cells + 1))
    at = np.linspace(0, cells, size, endpoint=False)
    low, part = at.astype(int), at - at.astype(int)
    rows = coarse[:, low] * (1 - part)[None, :, None] + coarse[:, low + 1] * part[None, :, None]
    return rows[:, :, low] * (1 - part) + rows[:, :, low + 1] * part


def image(rng, channels, size):
    """Makes images like photographs: power falls with frequency, channels are similar, exposures differ."""
    grey = sum(octave(rng, 1, 2**k, size) / 2**k for k in range(1, 8))
    colour = sum(octave(rng, channels, 2**k, size) / 2**k for k in range(1, 5))
    x = grey + 0.4 * colour
    x = (x - x.mean()) / x.std()
    return np.clip(x * rng.uniform(0.4, 1.2) + rng.uniform(-0.8, 0.8), -2.1, 2.6).astype(np.float32)


def samples(shape, n, seed):
    rng = np.random.default_rng(seed)
    _, channels, rows, columns = shape
    images = [image(rng, channels, max(rows, columns))[None, :, :rows, :columns] for _ in range(n)]
    return np.ascontiguousarray(np.stack(images))


# -- flows: each makes its files and answers x ---------------------------------------------------


def official(path, x):
    import torch
    from executorch.kernels import quantized  # noqa: F401  registers quantized_decomposed
    from executorch.runtime import Runtime
    method = Runtime.get().load_program(path).load_method("forward")
    return np.concatenate([method.execute([torch.from_numpy(s)])[0].numpy().copy() for s in x])


def in_torch(module, x):
    import torch
    with torch.no_grad():
        return np.concatenate([module(torch.from_numpy(s)).numpy() for s in x])


def make_ours(a, source, stem):
    """Makes the files of etc from the calibration that lies beside them.  Returns whether there is C."""
    recipe = ["--recipe", a.recipe, "--calibrate", stem + "_calibration.npy"]
    for flags, end in ((recipe, ".etc.pte"), ([], ".float.pte")):
        subprocess.run([a.etc, "compile", "-q", source, "--backend", "xnnpack", *flags, "-o", stem + end], check=True)
    return peers.to_library(source, stem, a.etc, recipe)


def flow_etc(a, source, stem, calibration, x):
    np.save(stem + "_calibration.npy", calibration)
    has_c = make_ours(a, source, stem)
    found = {"etc": official(stem + ".etc.pte", x)}
    if not has_c:
        return found
    like = in_torch(module_of(source), x[:1])
    found["c"] = np.concatenate([peers.run_c(stem + ".so", [s], [like])()[0].copy() for s in x])
    return found


def module_of(source):
    import torch
    return torch.export.load(source).module()


def flow_qdq(a, source, stem, calibration, x):
    import onnxruntime as ort
    from onnxruntime import quantization as q

    class Reader(q.CalibrationDataReader):
        def __init__(self, name):
            self.feeds = iter([{name: s} for s in calibration])

        def get_next(self):
            return next(self.feeds, None)

    peers.to_onnx(os.path.dirname(source), stem + ".onnx")
    name = ort.InferenceSession(stem + ".onnx", providers=["CPUExecutionProvider"]).get_inputs()[0].name
    q.shape_inference.quant_pre_process(stem + ".onnx", stem + ".ready.onnx", skip_symbolic_shape=True)
    q.quantize_static(stem + ".ready.onnx", stem + ".qdq.onnx", Reader(name), quant_format=q.QuantFormat.QDQ,
                      per_channel=True, activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8)
    found = {}
    for flow, run in (("ort", peers.run_onnxruntime), ("ov", peers.run_openvino)):
        try:
            found[flow] = np.concatenate([run(stem + ".qdq.onnx", [s], 1)()[0].copy() for s in x])
        except ImportError:
            pass
    return found


def flow_pt2e(a, source, stem, calibration, x):
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (XNNPACKQuantizer,
                                                                         get_symmetric_quantization_config)
    from executorch.exir import to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    module = prepare_pt2e(torch.export.load(source).module(), quantizer)
    in_torch(module, calibration)
    module = convert_pt2e(module)
    program = torch.export.export(module, (torch.from_numpy(x[0]),))
    program = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]).to_executorch()
    with open(stem + ".official.pte", "wb") as f:
        program.write_to_file(f)
    return {"pt2e": in_torch(module, x), "pt2e.pte": official(stem + ".official.pte", x)}


def flow_nncf(a, source, stem, calibration, x):
    import nncf
    import openvino as ov
    import torch
    model = ov.convert_model(torch.export.load(source))
    model = nncf.quantize(model, nncf.Dataset(list(calibration)))
    run = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return {"nncf": np.concatenate([run(s)[0].copy() for s in x])}


# ----------------------------------------------------------------------------------------------


def sqnr(wanted, got):
    wanted, noise = wanted.astype(np.float64), got.astype(np.float64) - wanted
    return 10 * math.log10((wanted**2).sum() / (noise**2).sum())


def accuracy(name, a):
    """SQNR by flow, and why flows are missing."""
    import torch
    source, stem = os.path.join(a.zoo, name, "model.pt2"), os.path.join(a.work, name)
    shape = peers.case(os.path.join(a.zoo, name))[1][0].shape
    calibration, x = samples(shape, a.samples, 1), samples(shape, a.held_out, 2)
    wanted, got, missing = in_torch(module_of(source), x), {}, []
    for flow in (flow_etc, flow_pt2e, flow_nncf, flow_qdq):
        try:
            got.update(flow(a, source, stem, calibration, x))
        except ImportError as e:
            missing.append(f"{flow.__name__[5:]}: {e}")
    return {f: sqnr(wanted, y) for f, y in got.items()}, missing


def print_accuracy(a):
    print(f"{'SQNR in dB':18}", *(f"{f:>9}" for f in FLOWS))
    for name in a.models:
        found, missing = accuracy(name, a)
        print(f"{name:18}", *(f"{found[f]:9.2f}" if f in found else f"{'-':>9}" for f in FLOWS), *missing, flush=True)


def speed(name, threads, a):
    """The seconds of each round by flow."""
    times, stem = {}, os.path.join(a.work, name)
    for k in range(a.rounds):
        for flow, end, engine in peers.turns(TIMED, k):
            if not os.path.exists(stem + end) or (engine == "c" and threads > 1):
                continue
            r = peers.time_one(engine, stem + end, os.path.join(a.zoo, name), threads)
            if r:
                times.setdefault(flow, []).append(r["seconds"])
    return times


def mean(ratios):
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f} over {len(ratios)}" if ratios else "none"


def print_speed(a):
    for threads in map(int, a.threads.split(",")):
        ours, fastest = [], []
        for name in a.models:
            times = speed(name, threads, a)
            t = {flow: statistics.median(rounds) for flow, rounds in times.items()}
            if {"etc", "official"} <= t.keys():
                ours.append(t["etc"] / t["official"])
            others = [t[flow] for flow in t if flow not in ("c", "float")]
            if "c" in t and others:
                fastest.append(t["c"] / min(others))
            print(f"{threads} {name:18}", *(f"{flow} {t[flow] * 1e3:8.3f} ms ({min(r) * 1e3:.3f}..{max(r) * 1e3:.3f})"
                                            for flow, r in times.items()), flush=True)
        print(f"{threads} threads: etc/official {mean(ours)}; c/the fastest of all others {mean(fastest)}", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--etc", default="build/etc")
    ap.add_argument("--zoo", required=True)
    ap.add_argument("--models", nargs="+", default=MODELS)
    ap.add_argument("--recipe", default="int8")
    ap.add_argument("--samples", type=int, default=64)
    ap.add_argument("--held-out", type=int, default=32)
    ap.add_argument("--work", default="build/quant_peers")
    ap.add_argument("--speed", action="store_true")
    ap.add_argument("--only-speed", action="store_true", help="of the files of other flows that lie in WORK; those of etc are made again")
    ap.add_argument("--threads", default="1,2")
    ap.add_argument("--rounds", type=int, default=5)
    a = ap.parse_args()
    os.makedirs(a.work, exist_ok=True)
    if not a.only_speed:
        print_accuracy(a)
    for name in a.models if a.only_speed else []:
        make_ours(a, os.path.join(a.zoo, name, "model.pt2"), os.path.join(a.work, name))
    if a.speed or a.only_speed:
        print_speed(a)


if __name__ == "__main__":
    main()
