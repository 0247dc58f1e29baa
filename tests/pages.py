#!/usr/bin/env python3
"""Follows a page of docs/ in an empty folder, with the official runtime of the virtual environment.

    .venv/bin/python tests/pages.py ETC PAGE [--counts FILE]

A fenced block with a name after its language is a file. A block of "sh" is run, with `etc`, `python` and
$ETC_TREE set.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tally

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    page = open(sys.argv[2], encoding="utf-8").read()
    name_of_page = os.path.basename(sys.argv[2])
    folder, failed, n = tempfile.mkdtemp(prefix="etc_page_"), 0, 0
    bins = os.path.join(folder, "bin")
    os.makedirs(bins)
    os.symlink(os.path.abspath(sys.argv[1]), os.path.join(bins, "etc"))
    os.symlink(os.path.abspath(sys.executable), os.path.join(bins, "python"))
    env = {**os.environ, "PATH": f"{os.path.dirname(os.path.abspath(sys.executable))}:{bins}:{os.environ['PATH']}",
           "ETC_TREE": ROOT}
    try:
        for fence, body in re.findall(r"^```(.+)\n((?:.*\n)*?)```$", page, re.M):
            kind, _, name = fence.partition(" ")
            if name:
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(body)
            if kind != "sh":
                continue
            n += 1
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", body], cwd=folder, env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            failed += done.returncode != 0
            print(f"{'FAIL' if done.returncode else 'ok'}   {name_of_page} {n}: {body.splitlines()[0]}")
            if done.returncode:
                print(done.stdout[-2000:])
    finally:
        shutil.rmtree(folder)
    print(f"{name_of_page}: {n - failed} passed, {failed} failed, 0 skipped")
    tally.append(sys.argv[4] if sys.argv[3:4] == ["--counts"] else None, n - failed, failed, 0)
    return failed != 0 or n == 0


if __name__ == "__main__":
    sys.exit(main())
