"""Runs the cases that the onnx package has for each operator, in the ways of onnx_runs.py.

Inputs that are sizes, axes or other parameters are constants here, because a compiler needs to know
them.  A case that etc takes must give the expected outputs within the case's tolerances; a case that it
refuses must be refused for one of the reasons of REFUSED, each of which stops as many cases as it says.
At least AT_LEAST cases must be taken.  `etc run` runs all cases; the official runtime and C run,
without --full, one of EACH.  --full also runs the files of an older set that Debian 13 packages, in C
one of EACH, and the package's models: layers that torch wrote, and nine networks whose weights have one value.
"""
import collections
import glob
import multiprocessing
import os
import shutil
import types
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

from onnx_runs import RUNS, raw

AT_LEAST = {"lite": 1738, "official": 1611, "c": 1737}
OLD_AT_LEAST = {"lite": 1171, "official": 1103}
EACH = 40
# A part of each message that refuses a case, and how many cases of the wheel and of Debian's files have it.
NO_TENSOR = "has an input that is not a tensor"
REFUSED = {
    "has strings": (26, 31), "texts are prepared before the model": (7, 7), "files are decoded before the model": (9, 9),
    "sequences, optionals and maps are not read": (14, 14), NO_TENSOR: (10, 10), "which is a sequence": (1, 1),
    "which is an empty optional": (1, 1), "export the model with tensors as outputs": (1, 1), "whose sizes are known only at run time": (2, 2),
    "has ONNX's element type": (14, 0), "casts to ONNX's element type": (4, 1), "which kernels only move and cast": (15, 3),
    "only integers of one width are read so": (6, 0), "export the model in eval mode": (6, 6), "give random numbers as an input": (6, 6),
    "training is not compiled": (7, 7), "it stands outside of networks": (2, 2), "(ai.onnx.preview::FlexAttention)": (11, 0),
    "(Scan): the operator of opset 8": (1, 1), "convert the model with onnx.version_converter": (3, 3)}
# The official kernels do these otherwise.
APART = {
    **{f"test_top_k_same_values{kind}": "takes others of equal elements" for kind in ("", "_2d", "_largest")},
    **{f"test_dynamicquantizelinear{kind}": "a quotient half way between integers falls on the other side" for kind in ("", "_expanded")}}
# Debian's files expect other numbers here than the same case of the wheel.
OLD_APART = {
    **{f"test_cast_{a}_to_{b}": "integers of 4 bits wrap instead of saturating" for a in ("FLOAT", "FLOAT16") for b in ("INT4", "UINT4")},
    **{f"test_cast{kind}": "bfloat16 is cut off instead of rounded"
       for kind in ("_FLOAT_to_BFLOAT16", "like_FLOAT_to_BFLOAT16", "like_FLOAT_to_BFLOAT16_expanded")},
    **{f"test_qlinearmatmul_{n}D_int8_{kind}": "int8 wraps instead of saturating" for n in (2, 3) for kind in ("float16", "float32")},
    "test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True": "elements beyond the padding do not count"}
# Inputs that are parameters, by operator.
PARAMETERS = {
    "AffineGrid": [1], "BlackmanWindow": [0], "CenterCropPad": [1], "Clip": [1, 2], "Col2Im": [1, 2], "ConstantOfShape": [0], "Conv": [1, 2], "ConvTranspose": [1, 2],
    "CumProd": [1], "CumSum": [1], "DFT": [1, 2], "DequantizeLinear": [1, 2], "Dropout": [1, 2], "Expand": [1], "HammingWindow": [0], "HannWindow": [0],
    "Loop": [0, 1], "MaxUnpool": [2], "MelWeightMatrix": [0, 1, 2, 3, 4], "NonMaxSuppression": [2, 3, 4], "OneHot": [1], "Pad": [1, 2, 3],
    "QuantizeLinear": [1, 2], "Range": [0, 1, 2], "Reshape": [1], "Resize": [1, 2, 3], "STFT": [1, 3], "Slice": [1, 2, 3, 4],
    "Split": [1], "Squeeze": [1], "Tile": [1], "TopK": [1], "Trilu": [1], "Unsqueeze": [1], "Upsample": [1],
    **{f"Reduce{kind}": [1] for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")}}
# The reference of attention rounds to the narrow types at other places; it may be this far away.
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
        return {part: ("refused", NO_TENSOR) for part in parts}
    finally:
        shutil.rmtree(folder)


def tell(rows, part, found, n_cases, at_least, apart):
    """A row for each operator, and one of them all."""
    count, taken, wrong = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    for case, (how, why) in found:
        op = case.model.graph.node[0].op_type if len(case.model.graph.node) else case.name
        if case.name in apart and how != "no kernel":
            how, why = ("wrong", "stands apart, yet is right") if how == "right" else ("apart", why)
        count[how] += 1
        taken[op] += how == "right"
        if how == "wrong":
            wrong[op].append(f"{case.name}: {why}")
    for op in sorted(taken | wrong):
        if wrong[op]:
            rows.add("FAIL", part, op, "; ".join(wrong[op]))
        elif taken[op]:
            rows.add("ok", part, op, f"{taken[op]} cases")
    rows.add("ok" if count["right"] >= at_least else "FAIL", part, "all",
             f"{count['right']} of {n_cases} cases, at least {at_least}; "
             f"{count['refused']} refused, {count['no kernel']} without a kernel, {count['apart']} apart")


def tell_refused(rows, part, found, at):
    """A row for the reasons: column `at` of REFUSED has the numbers."""
    count = collections.Counter()
    for case, (how, why) in found:
        if how == "refused":
            hits = [text for text in REFUSED if text in why]
            count[hits[0] if len(hits) == 1 else f"{case.name}: {why.strip()}"] += 1
    wrong = [f"{text}: {count[text]} cases" for text in count | REFUSED if count[text] != REFUSED.get(text, (0, 0))[at]]
    rows.add("FAIL" if wrong else "ok", part, "reasons", "; ".join(wrong) or f"{len(REFUSED)} reasons")


def stored(path, kind):
    """Returns the contents of a file of Debian's: a tensor, a list or an optional; bfloat16 lies there as uint16."""
    read = {"sequence_type": (onnx.SequenceProto, numpy_helper.to_list), "optional_type": (onnx.OptionalProto, numpy_helper.to_optional)}
    proto, give = read.get(kind.WhichOneof("value"), (onnx.TensorProto, lambda t: t))
    value = proto()
    with open(path, "rb") as f:
        value.ParseFromString(f.read())
    if kind.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 and value.data_type == onnx.TensorProto.UINT16:
        value = numpy_helper.from_array(numpy_helper.to_array(value).view("bfloat16"))
    return give(value)


def loaded(path):
    """The model, without the inputs that are constants: old files list those too."""
    model = onnx.load(path)
    left = [i for i in model.graph.input if i.name not in {c.name for c in model.graph.initializer}]
    del model.graph.input[:]
    model.graph.input.extend(left)
    return model


def stored_cases(folder):
    for name in sorted(os.listdir(folder)):
        graph = (model := loaded(f"{folder}/{name}/model.onnx")).graph
        values = [[stored(f"{folder}/{name}/test_data_set_0/{what}_{k}.pb", v.type) for k, v in enumerate(some)]
                  for what, some in (("input", graph.input), ("output", graph.output))]
        yield types.SimpleNamespace(name=name, model=model, data_sets=[values], rtol=1e-3, atol=1e-7)


def network_cases(folder):
    """Their input rises from 0 to 1."""
    for path in sorted(glob.glob(f"{folder}/*.onnx")):
        graph = (model := loaded(path)).graph
        shape = [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim]
        x = (np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)).astype(np.float32)
        want = stored(f"{path[:-5]}_output_0.pb", graph.output[0].type)
        yield types.SimpleNamespace(name=os.path.basename(path), model=model, data_sets=[([x], [want])], rtol=1e-3, atol=1e-7)


def run(etc, cases, work, parts_of):
    """(case, results) of each; parts_of gives the ways for the number of a case."""
    # The parameters of an operator are also parameters of the model that it expands to.
    known = {f"{c.name}_expanded": parameters(c.model) for c in cases}
    tasks = [(etc, c, f"{work}/{c.name}", known.get(c.name, frozenset()), parts_of(i)) for i, c in enumerate(cases)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return list(zip(cases, pool.imap(verdicts, tasks)))


def tell_all(rows, name, found, at_least, apart):
    for part in RUNS:
        some = [(c, how[part]) for c, how in found if part in how]
        if some:
            tell(rows, name + part, some, len(some), at_least.get(part, 1) if len(some) == len(found) else 1, apart.get(part, {}))


def tell_set(rows, name, found, at_least, apart, at):
    tell_all(rows, name, found, at_least, apart)
    tell_refused(rows, f"{name}lite", [(c, how["lite"]) for c, how in found], at)


def check(rows, etc, work, files, text, is_full):
    """`files`: where Debian's lie."""
    if text and "onnx" not in text:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        cases = [c for c in collect_testcases(None) if c.model is not None and c.data_sets]
    found = run(etc, cases, work, lambda i: list(RUNS) if is_full or i % EACH == 0 else ["lite"])
    tell_set(rows, "o-", found, AT_LEAST, {"official": APART}, 0)
    if not is_full:
        return
    data = f"{os.path.dirname(onnx.__file__)}/backend/test/data"
    for kind in ("pytorch-converted", "pytorch-operator"):
        cases = list(stored_cases(f"{data}/{kind}"))
        tell_all(rows, "torch-", run(etc, cases, f"{work}/{kind}", lambda i: list(RUNS)), dict.fromkeys(RUNS, len(cases)), {})
    cases = list(network_cases(f"{data}/light"))
    tell_all(rows, "net-", run(etc, cases, f"{work}/light", lambda i: ["lite", "c"]), dict.fromkeys(RUNS, len(cases)), {})
    folder = f"{files}/usr/share/libonnx-testdata/data/node"
    if not os.path.isdir(folder):
        rows.add("skip", "old-lite", "all", f"{folder} is not there")
        return
    old = run(etc, list(stored_cases(folder)), work, lambda i: list(RUNS) if i % EACH == 0 else ["lite", "official"])
    tell_set(rows, "old-", old, OLD_AT_LEAST, {"lite": OLD_APART, "official": APART | OLD_APART, "c": OLD_APART}, 1)
