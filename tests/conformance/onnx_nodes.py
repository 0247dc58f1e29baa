"""Runs the cases that the onnx package has for each operator, in the ways of onnx_runs.py.

Inputs that are sizes, axes or other parameters are constants here, because a compiler needs to know
them.  A case that etc takes must give the expected outputs within the case's tolerances; a case that it
refuses must be refused with a reason.  At least AT_LEAST cases must be taken.  `etc run` runs all cases;
the official runtime and C run, without --full, one of EACH.
"""
import collections
import multiprocessing
import os
import shutil
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

from onnx_runs import RUNS, raw

AT_LEAST = {"lite": 1735, "official": 1609, "c": 1734}
EACH = 40
# What the official kernels do otherwise.
APART = {
    **{f"test_top_k_same_values{kind}": "takes others of equal elements" for kind in ("", "_2d", "_largest")},
    **{f"test_dynamicquantizelinear{kind}": "a quotient half way between integers falls on the other side" for kind in ("", "_expanded")}}
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


def judge(case, folder):
    for k, want in enumerate(case.data_sets[0][1]):
        path = f"{folder}/output_{k}.npy"
        if not os.path.exists(path) or not is_close(case, np.load(path), array(want)):
            return "wrong", f"output {k} differs"
    return "right", ""


def verdicts(task):
    """Returns the result of each run of a case."""
    etc, case, folder, more, parts = task
    os.makedirs(folder)
    try:
        model, left = frozen(case.model, case.data_sets[0][0], more)
        onnx.save(model, f"{folder}/model.onnx")
        found = {}
        for part in parts:
            how = RUNS[part](etc, f"{folder}/model.onnx", [], left, f"{folder}/{part}")
            found[part] = judge(case, f"{folder}/{part}") if how[0] == "right" else how
        return found
    except (TypeError, ValueError):
        return {part: ("refused", "has an input that is not a tensor") for part in parts}
    finally:
        shutil.rmtree(folder)


def tell(rows, part, found, n_cases, at_least):
    """A row for each operator, and one of them all."""
    count, taken, wrong = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    for case, (how, why) in found:
        op = case.model.graph.node[0].op_type if len(case.model.graph.node) else case.name
        if part == "official" and case.name in APART:
            how, why = ("wrong", "stands in APART, yet is right") if how == "right" else ("apart", why)
        count[how] += 1
        taken[op] += how == "right"
        if how == "wrong":
            wrong[op].append(f"{case.name}: {why}")
    for op in sorted(taken | wrong):
        if wrong[op]:
            rows.add("FAIL", f"o-{part}", op, "; ".join(wrong[op]))
        elif taken[op]:
            rows.add("ok", f"o-{part}", op, f"{taken[op]} cases")
    rows.add("ok" if count["right"] >= at_least else "FAIL", f"o-{part}", "all",
             f"{count['right']} of {n_cases} cases, at least {at_least}; "
             f"{count['refused']} refused, {count['no kernel']} without a kernel, {count['apart']} apart")


def check(rows, etc, work, text, is_full):
    if text and "onnx" not in text:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        cases = [c for c in collect_testcases(None) if c.model is not None and c.data_sets]
    # What is a parameter of an operator is one of the operators that it expands to.
    known = {f"{c.name}_expanded": parameters(c.model) for c in cases}
    tasks = [(etc, c, f"{work}/{c.name}", known.get(c.name, frozenset()),
              list(RUNS) if is_full or i % EACH == 0 else ["lite"]) for i, c in enumerate(cases)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = list(zip(cases, pool.imap(verdicts, tasks)))
    for part in RUNS:
        some = [(c, how[part]) for c, how in found if part in how]
        tell(rows, part, some, len(some), AT_LEAST[part] if len(some) == len(cases) else 1)
