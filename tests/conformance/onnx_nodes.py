"""The cases that the onnx package has of each operator, through `etc run`.

Inputs that are sizes, axes or other parameters are constants here, as a compiler needs them.  A case
that etc takes has to give the expected outputs within the case's tolerances; one that it refuses has
to be refused with a reason.  AT_LEAST cases are taken.
"""
import collections
import os
import shutil
import subprocess
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

AT_LEAST = 1600
# Inputs that are parameters, by operator.
PARAMETERS = {
    "AffineGrid": [1], "BlackmanWindow": [0], "CenterCropPad": [1], "Clip": [1, 2], "Col2Im": [1, 2], "ConstantOfShape": [0], "Conv": [1, 2], "ConvTranspose": [1, 2],
    "CumProd": [1], "CumSum": [1], "DFT": [1, 2], "DequantizeLinear": [1, 2], "Dropout": [1, 2], "Expand": [1], "HammingWindow": [0], "HannWindow": [0],
    "Loop": [0, 1], "MaxUnpool": [2], "MelWeightMatrix": [0, 1, 2, 3, 4], "NonMaxSuppression": [2, 3, 4], "OneHot": [1], "Pad": [1, 2, 3],
    "QuantizeLinear": [1, 2], "Range": [0, 1, 2], "Reshape": [1], "Resize": [1, 2, 3], "STFT": [1, 3], "Slice": [1, 2, 3, 4],
    "Split": [1], "Squeeze": [1], "Tile": [1], "TopK": [1], "Trilu": [1], "Unsqueeze": [1], "Upsample": [1],
    **{f"Reduce{kind}": [1] for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")}}
# How far the reference of attention, which rounds to the narrow types at other places, may be away.
ROUNDS = {"bfloat16": 2**-6, "float16": 2**-9}


def array(v):
    if isinstance(v, np.ndarray):
        return v
    return numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else np.asarray(v)


def raw(a):
    """Types that .npy has not travel as their bits, integers of a few bits in a byte each."""
    if a.dtype.name in ("int4", "uint4", "int2", "uint2"):
        return a.astype(f"{a.dtype.name[:-1]}8")
    return a.view(f"u{a.dtype.itemsize}") if a.dtype.name.startswith(("bfloat", "float8")) else a


def parameters(model):
    return {n.input[k] for n in model.graph.node for k in PARAMETERS.get(n.op_type, []) if k < len(n.input)}


def frozen(model, values, more):
    """The model whose parameters are constants, and the inputs that are left."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    names = [i.name for i in m.graph.input]
    constant = (parameters(m) | more) & set(names)
    left = []
    for name, v in zip(names, values):
        if name in constant:
            m.graph.initializer.append(numpy_helper.from_array(array(v), name))
        else:
            left.append(array(v))
    keep = [i for i in m.graph.input if i.name not in constant]
    del m.graph.input[:]
    m.graph.input.extend(keep)
    return m, left


def is_close(case, y, want):
    kind = want.dtype.name
    if y.shape != want.shape:
        return False
    if "int" in kind:
        want = raw(want)
    elif raw(want) is not want:
        y = y.view(want.dtype).astype(np.float32)
        want = want.astype(np.float32)
    if want.dtype.kind != "f":
        return np.array_equal(y, want)
    rounds = ROUNDS.get(kind, 0) if "_attention_" in case.name else 0
    finite = np.abs(want[np.isfinite(want)].astype(np.float64))
    atol = max(case.atol, 1e-6 * finite.max(initial=0) + 1e-7, rounds * finite.max(initial=0))
    return np.allclose(y.astype(np.float64), want.astype(np.float64), rtol=max(case.rtol, 1e-3, rounds), atol=atol, equal_nan=True)


def verdict(etc, case, folder, more=frozenset()):
    inputs, outputs = case.data_sets[0]
    os.makedirs(folder)
    try:
        model, left = frozen(case.model, inputs, more)
        flags = []
        for k, v in enumerate(left):
            np.save(f"{folder}/{k}.npy", raw(v))
            flags += ["--input", f"{folder}/{k}.npy"]
    except (TypeError, ValueError):
        return "refused", "has an input that is no tensor"
    onnx.save(model, f"{folder}/model.onnx")
    p = subprocess.run([etc, "run", f"{folder}/model.onnx", *flags, "--output-dir", f"{folder}/out", "-q"],
                       capture_output=True, text=True, errors="replace", check=False)
    if p.returncode in (1, 4) and "error: " in p.stderr:
        return "refused", p.stderr
    if p.returncode:
        return "wrong", f"exit {p.returncode}: {p.stderr.strip()[:200]}"
    for k, want in enumerate(outputs):
        if not is_close(case, np.load(f"{folder}/out/output_{k}.npy"), array(want)):
            return "wrong", f"output {k} differs"
    return "right", ""


def check(rows, etc, work, text):
    if text and "onnx" not in text:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        cases = [c for c in collect_testcases(None) if c.model is not None and c.data_sets]
    # What is a parameter of an operator is one of the operators that it expands to.
    known = {f"{c.name}_expanded": parameters(c.model) for c in cases}
    count, taken, wrong = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    for c in cases:
        how, why = verdict(etc, c, f"{work}/{c.name}", known.get(c.name, frozenset()))
        shutil.rmtree(f"{work}/{c.name}", ignore_errors=True)
        op = c.model.graph.node[0].op_type if len(c.model.graph.node) else c.name
        count[how] += 1
        taken[op] += how == "right"
        if how == "wrong":
            wrong[op].append(f"{c.name}: {why}")
    for op in sorted(taken | wrong):
        if wrong[op]:
            rows.add("FAIL", "onnx", op, "; ".join(wrong[op]))
        elif taken[op]:
            rows.add("ok", "onnx", op, f"{taken[op]} cases")
    rows.add("ok" if count["right"] >= AT_LEAST else "FAIL", "onnx", "all",
             f"{count['right']} of {len(cases)} cases, at least {AT_LEAST}; {count['refused']} refused")
