#!/usr/bin/env python3
"""Runs `meson test` in a build folder and counts the single cases instead of the programs.

    suite.py [--name TEXT] [--counts FILE] [--filter TEXT] [--jobs N] FOLDER

A case is a line of a program's TAP output, or the program itself if it prints none. A program that
crashes counts as one more failure. Prints every failure with its output, the skips by their
reason, and one summary line; appends "passed failed skipped" to FILE. Fails if no case ran, unless
a filter was given.
"""
import argparse
import collections
import glob
import json
import os
import re
import subprocess
import sys

import tally

CASE = re.compile(r"^(not ok|ok)\b(?: \d+)?(?: - )?([^#]*)(?:#\s*(SKIP|TODO)?\s*(.*))?$", re.I)
TIME = re.compile(r"\s*\(\d+\.\d+s\)\s*$")


def wanted(folder, text):
    """Returns the names of the tests that contain `text`; meson itself only takes whole names."""
    listed = subprocess.run(["meson", "introspect", "--tests", folder], check=True,
                            capture_output=True, text=True).stdout
    return sorted({t["name"] for t in json.loads(listed) if text in t["name"]})


def run_meson(folder, names, jobs):
    log = os.path.join(folder, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.remove(log)
    p = subprocess.run(["meson", "test", "-C", folder, "--num-processes", str(jobs), "--timeout-multiplier", "4",
                        *names], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, check=False)
    if not os.path.exists(log):
        sys.exit(f"{p.stdout}suite: meson test came to no result")
    with open(log, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def cases_of(test):
    """[(verdict, name, reason)] of one program, verdict "pass", "fail" or "skip"."""
    found = []
    for line in test["stdout"].splitlines():
        m = CASE.match(line)
        if not m:
            continue
        name = TIME.sub("", m[2]).strip()
        if (m[3] or "").upper() == "SKIP":
            found.append(("skip", name, m[4].strip()))
        else:
            found.append(("fail" if m[1].lower() == "not ok" else "pass", name, ""))
    result = test["result"]
    if not found:
        verdict = {"OK": "pass", "SKIP": "skip", "EXPECTEDFAIL": "pass"}.get(result, "fail")
        found.append((verdict, "", "exit status 77"))
    elif result not in ("OK", "SKIP") and not any(v == "fail" for v, _, _ in found):
        found.append(("fail", "", f"ended with {result}"))
    return found


def not_built(tests):
    """Unit tests that lie in the sources and are in no build file."""
    sources = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unit", "test_*.c")
    found = {os.path.basename(f)[len("test_"):-len(".c")] for f in glob.glob(sources)}
    return sorted(found - {t["name"].split(" / ")[-1].split(":")[-1] for t in tests})


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("folder")
    ap.add_argument("--name", default="tests")
    ap.add_argument("--counts")
    ap.add_argument("--filter")
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    a = ap.parse_args()
    names = wanted(a.folder, a.filter) if a.filter else []
    tests = run_meson(a.folder, names, a.jobs) if names or not a.filter else []
    count = collections.Counter()
    reasons = collections.Counter()
    for t in tests:
        found = cases_of(t)
        count.update(v for v, _, _ in found)
        reasons.update(f"{t['name']}: {why}" for v, _, why in found if v == "skip")
        bad = [f"{n or t['name']} {why}".strip() for v, n, why in found if v == "fail"]
        if bad:
            print(f"FAILED {t['name']}: {', '.join(bad)}")
            print("    " + " ".join(t["command"]))
            for line in (t["stdout"] + t.get("stderr", "")).splitlines():
                if not line.startswith("ok "):
                    print("    " + line)
    for reason, n in sorted(reasons.items()):
        print(f"skipped {n}: {reason}")
    if not count and not a.filter:
        count["fail"] = 1
        print("FAILED: no test ran")
    for name in not_built(tests) if not a.filter else []:
        count["fail"] += 1
        print(f"FAILED test_{name}.c: in no build file")
    line = [count[k] for k in ("pass", "fail", "skip")]
    print("{}: {} passed, {} failed, {} skipped, from {} programs".format(a.name, *line, len(tests)))
    tally.append(a.counts, *line)
    return 1 if count["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
