"""Runs an ONNX file in three ways: by `etc run`, as a .pte in the official runtime, and as C.

Each run takes the inputs as arrays, writes the outputs as OUT/output_0.npy and so on, and returns the
result: "right" (it ran), "refused" with etc's reason, "no kernel" if the official runtime lacks one that
the .pte needs, or "wrong".  Types that .npy lacks are stored as their bits.
"""
import glob
import os
import subprocess

import numpy as np

RAN = ("right", "")
# The official runtime says these if it lacks an operator, or a kernel for the types at hand.
LACKS = ("error: 0x14", "KernelCall failed", "Unhandled dtype", "promoteTypes not valid")


def exact_session(model, options=None):
    """A session of ONNX Runtime that adds products of bytes exactly. Otherwise, on CPUs with AVX2 and no VNNI, it clamps
    each sum of two products to 16 bits."""
    import onnxruntime as ort
    options = options or ort.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def raw(a):
    """Types that .npy has not as their bits, integers of a few bits in a byte each."""
    if a.dtype.name in ("int4", "uint4", "int2", "uint2"):
        return a.astype(f"{a.dtype.name[:-1]}8")
    return a.view(f"u{a.dtype.itemsize}") if a.dtype.name.startswith(("bfloat", "float8")) else a


def command(*words, may_refuse=True):
    p = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    if not p.returncode:
        return RAN
    if may_refuse and p.returncode in (1, 4) and "error: " in p.stderr:
        return "refused", p.stderr
    return "wrong", f"{os.path.basename(words[0])}: exit {p.returncode}: {p.stderr.strip()[:200]}"


def fed(inputs, out):
    """Flags that name the files of the inputs."""
    os.makedirs(out, exist_ok=True)
    flags = []
    for k, a in enumerate(inputs):
        np.save(f"{out}/input_{k}.npy", raw(a))
        flags += ["--input", f"{out}/input_{k}.npy"]
    return flags


def lite(etc, model, flags, inputs, out):
    return command(etc, "run", model, *flags, *fed(inputs, out), "--output-dir", out, "-q")


def c(etc, model, flags, inputs, out):
    given = fed(inputs, out)
    how = command(etc, "emit-c", model, *flags, "-o", f"{out}/model.c", "--main", "-q")
    if how == RAN:
        files = [f"{out}/model.c", f"{out}/model_main.c", *glob.glob(f"{out}/model_weights.S")]
        how = command("cc", "-O1", "-o", f"{out}/model", *files, "-lm", may_refuse=False)
    return how if how != RAN else command(f"{out}/model", *given, "--output-dir", out, may_refuse=False)


def tensor(torch, a):
    t = torch.from_numpy(raw(a).copy()).clone(memory_format=torch.contiguous_format)  # numpy's strides may be 0
    return t.view(getattr(torch, a.dtype.name)) if a.dtype.name.startswith(("bfloat", "float8")) else t


def execute(path, inputs, out):
    """Runs in a child process, because the official runtime may end the process."""
    import torch
    from executorch.runtime import Runtime
    torch.set_num_threads(1)
    given = [tensor(torch, a) for a in inputs]
    for k, y in enumerate(Runtime.get().load_program(path).load_method("forward").execute(given)):
        is_named = y.dtype != torch.bfloat16 and not str(y.dtype).startswith("torch.float8")
        np.save(f"{out}/output_{k}.npy", (y if is_named else y.view(getattr(torch, f"uint{8 * y.element_size()}"))).numpy())


def official(etc, model, flags, inputs, out):
    os.makedirs(out, exist_ok=True)
    how = command(etc, "compile", model, *flags, "-o", f"{out}/model.pte", "-q")
    if how != RAN:
        return how
    import executorch.kernels.quantized  # noqa: F401  here, so that no child does it anew
    import executorch.runtime  # noqa: F401
    pid = os.fork()
    if not pid:
        log = os.open(f"{out}/log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = 1
        try:
            execute(f"{out}/model.pte", inputs, out)
            code = 0
        except Exception as e:  # pylint: disable=broad-except
            os.write(2, str(e).encode())
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if not code:
        return RAN
    with open(f"{out}/log", encoding="utf-8", errors="replace") as f:
        log = " ".join(f.read().split())
    return ("no kernel" if any(s in log for s in LACKS) else "wrong"), f"exit {code}: {log[-500:]}"


RUNS = {"lite": lite, "official": official, "c": c}
