#!/usr/bin/env python3
"""Measures many conversions with `etc batch`: the time of the first run, of a run that finds nothing to do, and of
one after a fresh checkout. Checks that the outputs have the same bytes with one process and with two, and in
another locale.

    batch.py --etc build/etc --zoo build/zoo [--count 500] [--jobs 2] [--work DIR]

The models of the zoo are repeated with other commands and flags until there are that many entries.  Needs only
Python.
"""
import argparse
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

WAYS = [
    ("portable", "compile", {}),
    ("xnnpack", "compile", {"backend": "xnnpack"}),
    ("c", "emit-c", {}),
    ("int8w", "compile", {"recipe": "int8-weight"}),
    ("all", "compile", {"backend": "xnnpack", "delegate": "all"}),
    ("fp16", "compile", {"recipe": "fp16"}),
    ("dynamic", "compile", {"backend": "xnnpack", "recipe": "int8-dynamic"}),
    ("avx2", "emit-c", {"target": "x86-64-v3", "main": "true"}),
    ("runtime", "compile", {"backend": "xnnpack", "target-runtime": "1.2"}),
    ("cint8w", "emit-c", {"recipe": "int8-weight"}),
    ("arrays", "emit-c", {"target": "armv8-a"}),
]


def compiles(etc, path):
    return os.path.exists(path) and not subprocess.run([etc, "check", "-q", path], check=False,
                                                       stderr=subprocess.DEVNULL).returncode


def write_list(path, etc, zoo, count):
    """Each model in one way, then each in the next; without those that want bounds of sizes."""
    models = sorted(m for m in os.listdir(zoo) if compiles(etc, os.path.join(zoo, m, "model.pt2")))
    pairs = itertools.islice(itertools.product(WAYS, models), count)
    with open(path, "w", encoding="utf-8") as f:
        f.write("models:\n")
        for (way, command, flags), model in pairs:
            entry = {"model": os.path.join(os.path.abspath(zoo), model, "model.pt2"), "command": command, "flags": flags}
            f.write(f"  {model}-{way}: {json.dumps(entry)}\n".replace('"true"', "true"))


def run(etc, path, out, jobs, locale="C"):
    start = time.monotonic()
    done = subprocess.run([etc, "batch", path, "-o", out, "-q", "-j", str(jobs)], stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.DEVNULL, env={**os.environ, "LC_ALL": locale})
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return time.monotonic() - start, lines[-1]["summary"], lines[:-1]


def digests(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if not name.startswith("."):
            with open(os.path.join(folder, name), "rb") as f:
                found[name] = hashlib.md5(f.read()).hexdigest()
    return found


def tell(what, seconds, summary):
    print(f"{what:36} {seconds:7.2f} s  written {summary['written']}, unchanged {summary['unchanged']}, "
          f"failed {summary['failed'] + summary['crashed']}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--etc", required=True)
    p.add_argument("--zoo", required=True)
    p.add_argument("--count", type=int, default=500)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--work")
    args = p.parse_args()
    work = tempfile.mkdtemp(dir=args.work)
    path, one, two = (os.path.join(work, n) for n in ("list.yaml", "one", "two"))
    write_list(path, args.etc, args.zoo, args.count)
    seconds, summary, lines = run(args.etc, path, two, args.jobs)
    tell(f"first run, -j{args.jobs}", seconds, summary)
    for cause in summary["causes"][:5]:
        print(f"    {cause['models']} models: {cause['cause']}")
    slow = sorted(lines, key=lambda e: -e["seconds"])[:5]
    print("    slowest: " + ", ".join(f"{e['name']} {e['seconds']:.2f} s" for e in slow))
    tell("second run", *run(args.etc, path, two, args.jobs)[:2])
    for name in os.listdir(two):
        os.utime(os.path.join(two, name))
    tell("after all outputs got other times", *run(args.etc, path, two, args.jobs)[:2])
    tell("elsewhere, -j1, de_DE", *run(args.etc, path, one, 1, "de_DE.UTF-8")[:2])
    same = digests(one) == digests(two)
    print(f"{len(digests(two))} files, {'the same' if same else 'NOT the same'} bytes")
    shutil.rmtree(work)
    sys.exit(not same)


if __name__ == "__main__":
    main()
