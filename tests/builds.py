#!/usr/bin/env python3
"""Checks that every build of etc writes the same bytes: with other compilers, optimization levels and
sanitizers.

    builds.py ETC OTHER ... [--counts FILE]

Each program compiles the models of tests/data in many ways with `etc batch`: the first program in one
process, the others in two processes at once. A program that was not built counts as a skip.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import tally

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/data"
sys.path.insert(0, str(ROOT / "tests/bench"))
import batch  # noqa: E402

SAMPLES = [
    ("int8", "compile", {"recipe": "int8"}),
    ("int8-xnnpack", "compile", {"recipe": "int8", "backend": "xnnpack"}),
    ("int8-c", "emit-c", {"recipe": "int8", "main": True}),
    ("int8-report", "compile", {"recipe": "int8", "report": "NAME.html"}),
]


def entries():
    for model in sorted(path.parent.name for path in DATA.glob("*/model.pt2")):
        samples = DATA / "quantized" / f"{model}_calibration.npy"
        for way, command, flags in batch.WAYS + (SAMPLES if samples.exists() else []):
            name = f"{model}-{way}"
            flags = {key: {"true": True, "NAME.html": f"{name}.html"}.get(value, value) for key, value in flags.items()}
            if flags.get("recipe") == "int8":
                flags["calibrate"] = str(samples)
            yield name, {"model": str(DATA / model / "model.pt2"), "command": command, "flags": flags}


def outputs(etc, folder, jobs):
    """Returns the digest of each file that a build writes."""
    folder.mkdir()
    (folder / "list.yaml").write_text(json.dumps({"models": dict(entries())}))
    done = subprocess.run([etc, "batch", "list.yaml", "-o", "out", "-q", "-j", str(jobs)], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, env={**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    failed = [line["name"] for line in lines[:-1] if line["status"] != "written"]
    return batch.digests(str(folder / "out")), failed


def compare(args, work):
    passed = failed = skipped = 0
    wanted, bad = outputs(args.etc, work / "first", 1)
    if bad or len(wanted) < 100:
        print(f"FAIL {args.etc}: {len(wanted)} files; failed: {bad}")
        return 0, 1, 0
    for i, etc in enumerate(args.other):
        if not os.access(etc, os.X_OK):
            print(f"skip {etc}: not built")
            skipped += 1
            continue
        got, _ = outputs(etc, work / str(i), 2)
        differ = sorted(name for name in wanted.keys() | got.keys() if wanted.get(name) != got.get(name))
        print(f"{'FAIL' if differ else 'ok  '} {etc}: {len(got)} files, {len(differ)} differ from those of {args.etc}: {differ[:5]}")
        failed += bool(differ)
        passed += not differ
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("etc", type=os.path.abspath)
    parser.add_argument("other", type=os.path.abspath, nargs="+")
    parser.add_argument("--counts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="etc_builds_") as folder:
        passed, failed, skipped = compare(args, Path(folder))
    print(f"builds: {passed} passed, {failed} failed, {skipped} skipped")
    tally.append(args.counts, passed, failed, skipped)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
