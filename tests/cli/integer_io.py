#!/usr/bin/env python3
"""Numbers of a model whose inputs and outputs --io made integers, by the scales that its header states.

    integer_io.py quantize HEADER DTYPE FLOATS.npy OUT.npy    the input of those floats
    integer_io.py compare HEADER OUTPUT.npy WANT.npy STEPS    an output within so many steps of floats
"""
import re
import sys

import numpy as np


def points(header, port):
    text = open(header, encoding="utf-8").read()
    return [float(re.search(rf"{port}_0_{what} \(?([-+.\de]+)", text).group(1)) for what in ("SCALE", "ZERO")]


def main():
    command, header, *rest = sys.argv[1:]
    if command == "quantize":
        dtype, floats, out = rest
        scale, zero = points(header, "INPUT")
        least = np.iinfo(dtype).min
        np.save(out, np.clip(np.rint(np.load(floats) / scale) + zero, least, least + 255).astype(dtype))
        return 0
    output, want, steps = rest
    scale, zero = points(header, "OUTPUT")
    off = np.abs((np.load(output).astype(float) - zero) - np.load(want) / scale).max()
    print(f"{off:.3g} steps of {scale:g} from torch")
    return int(off > float(steps))


if __name__ == "__main__":
    sys.exit(main())
