"""Shared by bf16.py and fast.py: runs nets as emitted C by `etc run`, writes them as files, and counts."""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tally  # noqa: E402


def answer(etc, math, model, inputs, folder, cflags="-O3"):
    """Returns the first output of the C that `emit-c --math` writes for this machine."""
    flags = [word for path in inputs for word in ("--input", path)]
    subprocess.run([etc, "run", "-q", model, "--target", "host", "--math", math, *flags, "--output-dir", folder], check=True,
                   env=dict(os.environ, CFLAGS=cflags))
    return np.load(os.path.join(folder, "output_0.npy"))


def export(name, module, x, folder):
    """Saves a net and its input.  Returns their paths."""
    stem = os.path.join(folder, name)
    torch.export.save(torch.export.export(module.eval(), (x,)), stem + ".pt2")
    np.save(stem + ".npy", x.numpy())
    return stem + ".pt2", stem + ".npy"


def main(doc, math, judge, nets, measure):
    """Judges each net or, if models are named, measures those.  Both take `etc` and a folder last."""
    ap = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--etc", default="build/etc")
    ap.add_argument("--counts")
    ap.add_argument("models", nargs="*")
    a = ap.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix=f"etc_{math}_") as folder:
        for path, inputs in zip(a.models[::2], a.models[1::2]):
            measure(path, inputs.split(","), a.etc, folder)
        passed = [] if a.models else [judge(name, net, a.etc, folder) for name, net in nets().items()]
    if a.models:
        return 0
    failed = len(passed) - sum(passed)
    print(f"{math}: {sum(passed)} passed, {failed} failed, 0 skipped")
    tally.append(a.counts, sum(passed), failed, 0)
    return failed != 0
