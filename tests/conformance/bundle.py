"""Gives files of --bundle to the official runtime's verifier.

Samples are random, and the expected outputs are torch's, in one folder per call. Each of FLAGS makes a file of
each of MODELS. The official reader must find all data. The runtime must judge each output as right, and as
wrong if one element was changed.
"""
import os
import subprocess

import numpy as np

MODELS = ["mlp_digits", "cnn_digits", "linear", "counter", "tiny_kws_dscnn"]
FLAGS = [[], ["--backend", "xnnpack"]]
CALLS = 3


def make_calls(name, zoo, work):
    """Inputs and torch's outputs, state going on from call to call; the number of outputs."""
    import torch
    program = torch.export.load(os.path.join(zoo, name, "model.pt2"))
    module, random = program.module(), np.random.default_rng(5)
    given = np.load(os.path.join(zoo, name, "input_0.npy"))
    names = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    os.makedirs(os.path.join(work, "in"))
    outputs = 0
    for k in range(CALLS):
        x = random.standard_normal(given.shape).astype(given.dtype)
        np.savez(os.path.join(work, "in", f"{k}.npz"), **{names[0]: x})
        with torch.no_grad():
            out = module(torch.from_numpy(x))
        out = out if isinstance(out, (tuple, list)) else (out,)
        outputs = len(out)
        os.makedirs(os.path.join(work, "out", str(k)))
        for i, t in enumerate(out):
            np.save(os.path.join(work, "out", str(k), f"output_{i}.npy"), t.numpy())
    return outputs


def spoil(work):
    """The last call should give something else."""
    path = os.path.join(work, "out", str(CALLS - 1), "output_0.npy")
    right = np.load(path)
    wrong = right.copy()
    wrong.reshape(-1)[-1] += 1
    np.save(path, wrong)
    return lambda: np.save(path, right)


def compile(etc, model, path, bundle, flags):
    p = subprocess.run([etc, "compile", model, "-o", path, "-q", "--bundle", bundle, *flags], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, check=False)
    if p.returncode:
        raise RuntimeError(p.stderr.strip()[-200:])
    with open(path, "rb") as f:
        return f.read()


def read(data, outputs, pte):
    from executorch.devtools.bundled_program.serialize import deserialize_from_flatbuffer_to_bundled_program
    bundle = deserialize_from_flatbuffer_to_bundled_program(data)
    cases = bundle.method_test_suites[0].test_cases
    ok = bundle.program == pte and bundle.method_test_suites[0].method_name == "forward" and len(cases) == CALLS and \
        all(len(c.inputs) == 1 and len(c.expected_outputs) == outputs for c in cases)
    return None if ok else "the official reader finds something else"


def verify(data):
    """Returns the calls that the verifier finds wrong."""
    from executorch.extension.pybindings import _portable_lib
    module, wrong = _portable_lib._load_bundled_program_from_buffer(data), []
    for k in range(CALLS):
        try:
            module.verify_result_with_bundled_expected_output("forward", k, 1e-3, 1e-4)
        except RuntimeError:
            wrong.append(k)
    return wrong


def check_one(etc, model, work, outputs, flags):
    path, both = os.path.join(work, "m.bpte"), os.path.join(work, "in") + "," + os.path.join(work, "out")
    subprocess.run([etc, "compile", model, "-o", path + ".pte", "-q", *flags], check=True, stdin=subprocess.DEVNULL)
    with open(path + ".pte", "rb") as f:
        pte = f.read()
    data = compile(etc, model, path, both, flags)
    failed = read(data, outputs, pte)
    if failed:
        return failed
    for bundle in (data, compile(etc, model, path, os.path.join(work, "in"), flags)):
        if wrong := verify(bundle):
            return f"calls {wrong} are told to be wrong"
    mend = spoil(work)
    wrong = verify(compile(etc, model, path, both, flags))
    mend()
    return None if wrong == [CALLS - 1] else f"of a wrong output, calls {wrong} are told to be wrong"


def check(rows, etc, zoo, work, text):
    for name in (n for n in MODELS if text in n):
        folder = os.path.join(work, name)
        outputs = make_calls(name, zoo, folder)
        for flags in FLAGS:
            try:
                failed = check_one(etc, os.path.join(zoo, name, "model.pt2"), folder, outputs, flags)
            except RuntimeError as e:
                failed = str(e)
            rows.add("FAIL" if failed else "ok", "bundle", " ".join([name, *flags[1:]]), failed or f"{CALLS} calls")
