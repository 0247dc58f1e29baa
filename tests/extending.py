#!/usr/bin/env python3
"""Applies the changes of docs/extending.md to a copy of the tree, builds it and runs the page's commands.

    extending.py [--apply] [--counts FILE]

With --apply it only looks whether the changes fit the tree.

Blocks are marked by what follows the fence: "diff FILE" holds lines to be found (" "), removed ("-") and added ("+");
"sh-before" runs before the build, "sh" behind it, each with its own count.  Prints one row per block of commands.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tally
from tree import copy_tree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def blocks(path):
    """(kind, argument, lines) of each fenced block."""
    for fence, body in re.findall(r"^```(.+)\n((?:.*\n)*?)```$", open(path, encoding="utf-8").read(), re.M):
        kind, _, argument = fence.partition(" ")
        yield kind, argument, body.splitlines()


def apply(tree, name, lines):
    path = os.path.join(tree, name)
    old = "".join(line[1:] + "\n" for line in lines if line[:1] in " -")
    new = "".join(line[1:] + "\n" for line in lines if line[:1] in " +")
    text = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
    if not old:
        assert not text, f"{name} is there already"
        os.makedirs(os.path.dirname(path), exist_ok=True)
    elif old.count("\n") == 1 and old.strip().endswith(",") and old not in text:
        old, new = old.rstrip("\n"), new.rstrip("\n")  # the start of a line
    assert not old or text.count(old) == 1, f"{name} has these lines {text.count(old)} times:\n{old}"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace(old, new) if old else new)


def run(tree, lines):
    return subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(lines)], cwd=tree, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


def build(tree):
    deps = os.path.join(ROOT, "build", "deps")
    flags = [f"-Ddeps={deps}"] if os.path.exists(deps) else []
    return run(tree, [f"meson setup build {' '.join(flags)}", "ninja -C build etc"])


def prove(tree, found):
    """Builds the tree and runs each block of commands.  Returns how many there are, and how many failed."""
    before = [run(tree, lines) for kind, _, lines in found if kind == "sh-before"] + [build(tree)]
    all_lines = [lines for kind, _, lines in found if kind == "sh"]
    failed = 0
    for n, lines in enumerate(all_lines):
        done = next((r for r in before if r.returncode), None) or run(tree, lines)
        failed += done.returncode != 0
        print(f"{'FAIL' if done.returncode else 'ok'}   extending {n + 1}: {lines[-1]}")
        if done.returncode:
            print(done.stdout[-2000:])
    return len(all_lines), failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--apply", action="store_true")
    parser.add_argument("--counts")
    args = parser.parse_args()
    found = list(blocks(os.path.join(ROOT, "docs", "extending.md")))
    folder = tempfile.mkdtemp(prefix="etc_extending_")
    copy = os.path.join(folder, "copy")
    try:
        copy_tree(copy)
        changes = [b for b in found if b[0] == "diff"]
        for _, argument, lines in changes:
            apply(copy, argument, lines)
        n, failed = (1, 0) if args.apply else prove(copy, found)
    finally:
        shutil.rmtree(folder)
    print(f"extending: {len(changes)} changes fit; {n - failed} passed, {failed} failed, 0 skipped")
    tally.append(args.counts, n - failed, failed, 0)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
