"""clang.py BUILD: checks that clang gives no warning about any file that BUILD compiles.

Reads BUILD's compile_commands.json, lets clang check each file with the same flags without writing code,
and prints its messages.
"""
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys

OUTPUTS = ("-o", "-MF", "-MQ")
OF_GCC = ("-fno-split-loops", "-fno-version-loops-for-strides")  # clang has no such flags


def check(entry):
    """Returns the messages of clang about one file."""
    words = list(itertools.dropwhile(lambda w: not w.startswith("-"), shlex.split(entry["command"])))
    words = [w for before, w in zip([""] + words, words) if not {before, w} & {*OUTPUTS, "-MD"} and w not in OF_GCC]
    # gcc has warnings that clang does not know; names of them are no fault.
    clang = ["clang", "-fsyntax-only", "-Wno-unknown-warning-option", "-Wno-ignored-optimization-argument", *words]
    return subprocess.run(clang, cwd=entry["directory"], capture_output=True, text=True,
                          check=False).stderr


def main():
    if not shutil.which("clang"):
        print("there is no clang")
        return 77
    with open(os.path.join(sys.argv[1], "compile_commands.json"), encoding="utf-8") as f:
        said = [check(entry) for entry in json.load(f)]
    print("".join(said), f"{len(said)} files", sep="")
    return any(said) or not said


if __name__ == "__main__":
    sys.exit(main())
