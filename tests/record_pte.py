#!/usr/bin/env python3
"""record_pte.py -- records the answers of the official ExecuTorch runtime to tests/import/pte.

Usage: record_pte.py > tests/import/pte/recorded.txt

Needs the packages torch and executorch.  Inputs are random but seeded.  Several calls run on one
loaded method, so states and dynamic sizes are covered.  Each line has one value, with its raw
bytes in hex:

    file off_add.pte
    call
    in tensor f32 2 2 3 <hex>        dtype, rank, sizes, data
    out int 3                        also: double <hex>, bool 0
    end
"""
import logging
import os
import struct
import sys

logging.disable(logging.CRITICAL)
import torch  # noqa: E402
from executorch.runtime import Runtime  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "import", "pte")
DTYPE = {torch.float32: "f32", torch.int32: "i32", torch.int64: "i64", torch.bool: "bool",
         torch.uint8: "u8"}


def f32(*sizes, shift=0.0):
    return torch.randn(*sizes) + shift


CALLS = {
    "mini_add.pte": lambda: [[f32(2, 3), f32(2, 3)]],
    "off_add.pte": lambda: [[f32(2, 3), f32(2, 3)]],
    "off_cnn.pte": lambda: [[f32(1, 3, 8, 8)]],
    "off_cond.pte": lambda: [[f32(2, shift=s), f32(3)] for s in (4.0, -4.0, 4.0)],
    "off_dyn.pte": lambda: [[f32(n, 4)] for n in (3, 16, 2)],
    "off_idx.pte": lambda: [[f32(4, 6), torch.tensor([3, 1])]],
    "off_map.pte": lambda: [[f32(3, 4), f32(4)] for _ in range(2)],
    "off_mut.pte": lambda: [[f32(4)] for _ in range(3)],
    "off_mutinit.pte": lambda: [[f32(4)] for _ in range(3)],
    "off_v.pte": lambda: [[f32(3, 4)]],
    "good_prim.pte": lambda: [[f32(3, 2)], [f32(1, 2)]],
    "good_state.pte": lambda: [[f32(2)] for _ in range(2)],
    "good_fixed_inputs.pte": lambda: [[3, 0.5, True, None]],
    "good_in_place.pte": lambda: [[f32(2, 3)] for _ in range(2)],
    "good_callers_input.pte": lambda: [[f32(2, 2)], [f32(1, 2)]],
}


def show(word, v):
    if isinstance(v, bool):
        return "%s bool %d" % (word, v)
    if isinstance(v, int):
        return "%s int %d" % (word, v)
    if isinstance(v, float):
        return "%s double %s" % (word, struct.pack("<d", v).hex())
    if v is None:
        return "%s none" % word
    data = v.contiguous().numpy().tobytes().hex() or "-"
    head = [DTYPE[v.dtype], str(v.dim())] + [str(n) for n in v.shape]
    return "%s tensor %s %s" % (word, " ".join(head), data)


def record(name, calls):
    method = Runtime.get().load_program(os.path.join(FOLDER, name)).load_method("forward")
    lines = ["file " + name]
    for inputs in calls:
        outputs = method.execute(inputs)
        lines.append("call")
        lines += [show("in", v) for v in inputs] + [show("out", v) for v in outputs] + ["end"]
    return lines


def main():
    torch.manual_seed(7)
    for name, calls in CALLS.items():
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            print("\n".join(record(name, calls())))


if __name__ == "__main__":
    main()
