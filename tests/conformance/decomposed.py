#!/usr/bin/env python3
"""Decomposes models of the zoo to core ATen, with their cases, in the zoo's format.

    decomposed.py ZOO OUTDIR NAME ...

Prints the names of those that torch cannot read back or decompose, each with torch's reason.
"""
import os
import shutil
import sys
import warnings

import torch
import torch.ao.quantization.fx._decomposed  # registers the operators

warnings.filterwarnings("ignore")
torch.set_num_threads(1)


def decompose(source, folder):
    program = torch.export.load(os.path.join(source, "model.pt2")).run_decompositions()
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("model", "model.pt2"))
    torch.export.save(program, os.path.join(folder, "model.pt2"))


if __name__ == "__main__":
    zoo, out, *names = sys.argv[1:]
    for name in names:
        try:
            decompose(os.path.join(zoo, name), os.path.join(out, name))
        except Exception as e:
            shutil.rmtree(os.path.join(out, name), ignore_errors=True)
            print(f"{name}: {type(e).__name__}: {e}".splitlines()[0])
