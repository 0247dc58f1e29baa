"""Checks that the files of `etc compile --target-runtime 1.0` need nothing that ExecuTorch 1.0 lacks.

The kernels of 1.0.1 are read from compiler/runtime_kernels.def, as a text; the nodes that its XNNPACK lacks are
those by which its runtime_schema.fbs differs from that of 1.4.
"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NO_PTE = {"odd_custom_op"}  # what etc compiles for no runtime
NO_NODES = {"sin", "copy", "cos"}
SETTINGS = {"": [], " xnnpack": ["--backend", "xnnpack", "--delegate", "all"]}


def kernels():
    """Those of 1.0.1, and those that some version has."""
    with open(os.path.join(ROOT, "compiler", "runtime_kernels.def"), encoding="utf-8") as f:
        found = re.findall(r'^KERNEL\("([^"]+)", (\d), (\d), (\d)\)$', f.read(), re.M)
    assert len(found) > 200
    return {k for k, *since in found if since == ["1", "0", "1"]}, {k for k, *_ in found}


def others(names):
    """The models of the zoo beside these."""
    rows = run(sys.executable, os.path.join(HERE, "export_zoo.py"), "--list").stdout.splitlines()
    found = [row.split()[0] for row in rows]
    assert len(found) > 100 and NO_PTE <= set(found)
    return [n for n in found if n not in names]


def run(*words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def asked(etc, path):
    """Names of the kernels and nodes of XNNPACK in a file."""
    methods = json.loads(run(etc, "inspect", "--json", path).stdout)["methods"]
    return ({o["name"] for m in methods for o in m["operators"]},
            {k for m in methods for b in m["blobs"] for k in b.get("nodes", {})})


def dims(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        return [w for name, (lo, hi) in json.load(f)["dynamic"].items() if hi is None and name.isalnum()
                for w in ("--dim", f"{name}={lo or 0}..64")]


def verdict(etc, folder, path, flags, old, known):
    p = run(etc, "compile", os.path.join(folder, "model.pt2"), "-o", path, "-q", "--target-runtime", "1.0", *flags,
            *dims(folder))
    if os.path.basename(folder) in NO_PTE:
        return p.returncode == 4, f"refused, exit {p.returncode}"
    if p.returncode == 4: # what no version has, all of it told
        names = re.findall(r"error: (\S+::\S+): not among the kernels", p.stderr)
        ok = names and not set(names) & known and p.stderr.count("error:") == len(names)
        return ok, "refused: " + " ".join(names) if ok else p.stderr
    if p.returncode:
        return False, p.stderr
    ops, nodes = asked(etc, path)
    late = {o for o in ops if o not in old} | nodes & NO_NODES
    return not late, " ".join(sorted(late)) or f"{len(ops)} kernels, {len(nodes)} kinds of nodes"


def check(rows, etc, zoo, names, out):
    os.makedirs(out, exist_ok=True)
    old, known = kernels()
    for n in names:
        for what, flags in SETTINGS.items():
            ok, why = verdict(etc, os.path.join(zoo, n), os.path.join(out, "old.pte"), flags, old, known)
            rows.add("ok" if ok else "FAIL", "runtime", n + what, why)
