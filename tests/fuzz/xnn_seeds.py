#!/usr/bin/env python3
"""The XNNPACK blobs of a folder's .pte files, their named data all called "w" as in fuzz_xnn.c.

    xnn_seeds.py FOLDER OUT
"""
import glob
import os
import re
import struct
import sys

KEY = re.compile(rb"[\x40\x46]\0\0\0(?:scale_)?[0-9a-f]{64}\0")


def main(folder, out):
    os.makedirs(out, exist_ok=True)
    n = 0
    for path in sorted(glob.glob(folder + "/*.pte")):
        with open(path, "rb") as f:
            data = f.read()
        for m in re.finditer(b"XH00", data):
            at, size = m.start() - 4, struct.unpack_from("<IQ", data, m.start() + 14)
            blob = KEY.sub(lambda k: b"\1\0\0\0w".ljust(len(k[0]), b"\0"), data[at:at + sum(size)])
            with open(f"{out}/{n}", "wb") as f:
                f.write(blob)
            n += 1
    assert n > 5, f"no blobs in {folder}"


main(*sys.argv[1:])
