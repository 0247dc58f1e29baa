#!/usr/bin/env python3
"""Runs the official flow for bench.py; each call is a process of its own.

    official.py export MODEL.pt2 OUT.pte [xnnpack]
    official.py time MODEL.pte SECONDS THREADS INPUT.npy ... -- OUTPUT.npy ...

`time` prints what timing.h prints: number of runs, median, fastest, slowest.
"""
import logging
import os
import sys
import time

logging.disable(logging.WARNING)


def export(source, target, *partitioner):
    import torch
    from executorch.exir import to_edge_transform_and_lower
    parts = []
    if partitioner:
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
        parts = [XnnpackPartitioner()]
    program = to_edge_transform_and_lower(torch.export.load(source), partitioner=parts).to_executorch()
    with open(target, "wb") as f:
        f.write(program.buffer)


def measure(path, seconds, threads, *files):
    import numpy as np
    import torch
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime
    torch.set_num_threads(int(threads))
    portable_lib._unsafe_reset_threadpool(int(threads))
    cut = files.index("--")
    inputs = [torch.from_numpy(np.load(f)) for f in files[:cut]]
    method = Runtime.get().load_program(path).load_method("forward")
    outputs = method.execute(inputs)
    took, start = [], time.perf_counter()
    t = start
    seconds = float(seconds)
    while t - start < seconds or (len(took) < 5 and t - start < 10 * seconds):  # some calls take long
        outputs = method.execute(inputs)
        end = time.perf_counter()
        took.append(end - t)
        t = end
    for f, o in zip(files[cut + 1:], outputs):
        np.save(f, o.numpy())
    took.sort()
    return f"{len(took)} {took[len(took) // 2]:.9f} {took[0]:.9f} {took[-1]:.9f}"


if __name__ == "__main__":
    kept = os.dup(1)  # what the runtime's libraries print is none of the answer
    os.dup2(2, 1)
    if sys.argv[1] == "export":
        export(*sys.argv[2:])
    else:
        os.write(kept, (measure(*sys.argv[2:]) + "\n").encode())
