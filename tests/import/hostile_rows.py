#!/usr/bin/env python3
"""hostile_rows.py ROOT -- checks that there are tests for every class of hostile input.  Prints TAP.

Reads tests/import/hostile*.tsv.  A row has a class, a description of the input, and its test as
FILE:NAME, separated by tabs.  NAME is that of a Test(suite, NAME) in C, of a function in a shell
script, and of a case in make_hostile.py.  The description may name cases of make_hostile.py and
files of tests/import/pte in brackets: (02_one_entry_*), (bad_rank_17).
"""
import fnmatch
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
import make_hostile

# 1 to 10 are of archives, 11 to 15 of JSON, 16 to 20 of programs, 28 of scales, 29 and 30 of samples,
# 31 and 32 of recipes, 33 of outputs, 34 to 43 of .pte files, 44 of results, 45 of calls, 46 of
# emitted C.  21 to 27 are of ONNX, which is not read.
CLASSES = {*range(1, 21), *range(28, 47)}


def content(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except OSError:
        return ""


def known_cases(root):
    make_hostile.make()
    files = glob.glob(os.path.join(root, "tests/import/pte/*.pte"))
    return [case[0] for case in make_hostile.CASES] + [
        os.path.basename(path)[:-len(".pte")] for path in files]


def has_test(root, test, cases):
    path, _, name = test.partition(":")
    if path == "tests/import/make_hostile.py":
        return name in cases
    form = {".c": r"^Test\(\w+, %s[,)]", ".sh": r"^%s\(\) \{"}.get(os.path.splitext(path)[1])
    text = content(os.path.join(root, path))
    return bool(form and name) and bool(re.search(form % re.escape(name), text, re.M))


def fault(root, row, seen, cases):
    """Returns what is wrong with a row, or None."""
    fields = row.split("\t")
    if len(fields) != 3 or not all(fields):
        return "not three columns"
    number, what, test = fields
    if not number.isdigit() or int(number) not in CLASSES:
        return "no class %s" % number
    if (int(number), what) in seen:
        return "stands here twice"
    seen.add((int(number), what))
    brackets = " ".join(re.findall(r"\(.*?\)", what))
    for case in re.findall(r"\b(?:\d\d|bad|good|limit)_[\w*]+", brackets):
        if not fnmatch.filter(cases, case):
            return "no case %s" % case
    return None if has_test(root, test, cases) else "no test %s" % test


def main():
    root, seen, results = sys.argv[1], set(), []
    cases = known_cases(root)
    files = sorted(glob.glob(os.path.join(root, "tests/import/hostile*.tsv")))
    for path in files:
        results += [(row, fault(root, row, seen, cases)) for row in content(path).splitlines()]
    for number in sorted(CLASSES):
        has_rows = any(known == number for known, _ in seen)
        results.append(("class %d" % number, None if has_rows else "has no row"))
    for n, (name, why) in enumerate(results, 1):
        name = name.replace("\t", " | ").replace("#", "")
        print("not ok" if why else "ok", n, "-", name, "# " + why if why else "")
    print("1..%d" % len(results))
    sys.exit(any(why for _, why in results))


if __name__ == "__main__":
    main()
