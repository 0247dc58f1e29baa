#!/usr/bin/env python3
"""Runs the examples of docs/nightly.md and action.yml for engines that drive etc, on models of tests/data.

    .venv/bin/python tests/engines.py ETC BAZEL RAY [--full] [--counts FILE]

The steps of the action and of GitLab's job run as those services run them: by bash, with the inputs filled in, and
with the variables and the folder that a service keeps between two nights. With --full the action builds etc from a
copy of this tree, and Bazel and Ray run: BAZEL is the program, RAY a virtual environment. If one of them is
missing, a skip is counted.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

import yaml

import tally
from tree import copy_tree

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/data"
LIST = "models: [keyword.pt2, {model: vision/detector.pt2, flags: {backend: xnnpack}}]\n"


def example(name):
    """The example of docs/nightly.md whose first line is a comment with this name."""
    page = (ROOT / "docs/nightly.md").read_text()
    return re.search(rf"^```\w+\n# {re.escape(name)}\n((?:.*\n)*?)```$", page, re.M)[1]


def run(command, expect=0, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != expect:
        raise AssertionError(f"{command}: exit {done.returncode}, expected {expect}\n{done.stdout[-4000:]}")
    return done.stdout


def copy(model, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((DATA / model / "model.pt2").read_bytes())


def path_with(etc, folder):
    """A PATH on which etc is installed."""
    folder.mkdir()
    (folder / "etc").symlink_to(etc)
    return f"{folder}:{os.environ['PATH']}"


def make_models(work):
    copy("mlp_digits", work / "keyword.pt2")
    copy("cnn_digits", work / "vision/detector.pt2")
    (work / "nightly.yaml").write_text(LIST)


def expect_compiled(etc, pte, *words):
    run([etc, "compile", *words, "-q", "-o", "wanted.pte"], cwd=pte.parent)
    wanted = pte.parent / "wanted.pte"
    assert pte.read_bytes() == wanted.read_bytes(), f"{pte} is not what etc compile {words} writes"
    wanted.unlink()


# -- services --------------------------------------------------------------------------------------------------------------------


def shell(line, work, expect=0, **env):
    script = work / "step.sh"
    script.write_text(line)
    return run(["bash", "--noprofile", "--norc", "-eo", "pipefail", script], expect, cwd=work, env={**os.environ, **env})


def action_tree(args, folder):
    """The tree of the action, as GitHub fetches it."""
    if args.full:
        copy_tree(folder)
    else:
        (folder / "build").mkdir(parents=True)
        (folder / "build/etc").symlink_to(args.etc)
    return folder


def action_step(step, inputs, tree, work, expect=0):
    """Runs one step of action.yml."""
    known = {"github.action_path": str(tree), **{f"inputs.{k}": v for k, v in inputs.items()}}

    def fill(text):
        return re.sub(r"\$\{\{ *([\w.]+) *\}\}", lambda m: known[m[1]], text)

    env = {k: fill(v) for k, v in step.get("env", {}).items()}
    return shell(fill(step["run"]), work, expect, GITHUB_STEP_SUMMARY=str(work / "summary.md"), GITHUB_ACTIONS="true", **env)


def github(args, work):
    make_models(work)
    job = yaml.safe_load(example(".github/workflows/nightly.yml"))["jobs"]["models"]
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    given = job["steps"][-1]["with"]
    assert set(given) <= set(action["inputs"]), given
    inputs = {name: given.get(name, about.get("default")) for name, about in action["inputs"].items()}
    assert None not in inputs.values(), inputs
    cached, build, batch = action["runs"]["steps"]
    assert cached["with"]["path"] == "${{ inputs.output }}", cached
    tree = action_tree(args, work / "action")
    if args.full:
        action_step(build, inputs, tree, work)
    out = action_step(batch, inputs, tree, work)
    assert out.count('"status": "written"') == 2, out
    expect_compiled(args.etc, work / inputs["output"] / "keyword.pte", work / "keyword.pt2")
    out = action_step(batch, inputs, tree, work)  # the next night
    assert out.count('"status": "unchanged"') == 2, out
    (work / "keyword.pt2").write_bytes(b"PK")
    out = action_step(batch, inputs, tree, work, expect=1)
    assert re.search("^::error .*keyword", out, re.M), out
    summary = (work / "summary.md").read_text()
    assert all(re.search(rf"^\|.*{name}.*\|$", summary, re.M) for name in ("keyword", "detector")), summary
    cases = list(xml.etree.ElementTree.parse(work / inputs["junit"]).getroot().iter("testcase"))
    assert [case.find("failure") is not None for case in cases] == [True, False], inputs["junit"]


def gitlab(args, work):
    make_models(work)
    job = yaml.safe_load(example(".gitlab-ci.yml"))["models"]
    path = path_with(args.etc, work / "bin")
    for _ in range(2):
        shell(job["script"], work, PATH=path)
    for path in job["cache"]["paths"] + job["artifacts"]["paths"] + [job["artifacts"]["reports"]["junit"]]:
        assert (work / path).exists(), path
    assert (work / "results.jsonl").read_text().count('"status": "unchanged"') == 2


def cache(args, work):
    make_models(work)
    copy("mlp_digits", work / "model.pt2")
    (work / "cache").mkdir()
    path = path_with(args.etc, work / "bin")
    for _ in range(2):
        shell(example("compile.sh"), work, PATH=path)
        expect_compiled(args.etc, work / "model.pte", work / "model.pt2", "--backend", "xnnpack")
    [kept] = (work / "cache").iterdir()
    kept.write_bytes(b"kept")
    shell(example("compile.sh"), work, PATH=path)
    assert (work / "model.pte").read_bytes() == b"kept", "the cache is not used"
    copy("add", work / "model.pt2")
    shell(example("compile.sh"), work, PATH=path)
    expect_compiled(args.etc, work / "model.pte", work / "model.pt2", "--backend", "xnnpack")


# -- engines ---------------------------------------------------------------------------------------------------------------------


def bazel(args, work):
    tree, root = work / "tree", work / "root"
    make_models(tree)
    samples = tree / "vision/samples"
    samples.mkdir()
    (samples / "a.npy").write_bytes((DATA / "quantized/cnn_digits_calibration.npy").read_bytes())
    for name in ("etc.bzl", "BUILD"):
        (tree / name).write_text(example(name))
    for name in ("WORKSPACE", "MODULE.bazel"):  # Bazel wants one of them, by its version
        (tree / name).write_text("")
    (tree / "tools").mkdir()
    (tree / "tools/BUILD").write_text(re.search(r'`(exports_files\(.*?\))`', (ROOT / "docs/nightly.md").read_text())[1])
    (tree / "tools/etc").symlink_to(args.etc)

    def build():
        words = [args.bazel, f"--output_user_root={root}", "build", "//:all", "--subcommands"]
        return re.findall(r"EtcCompile (\w+)\.pte", run(words, cwd=tree, env={**os.environ, "USER": "etc"}))

    try:
        assert sorted(build()) == ["detector", "keyword"]
        expect_compiled(args.etc, tree / "bazel-bin/keyword.pte", tree / "keyword.pt2")
        assert build() == [], "a second build compiles again"
        (samples / "b.npy").write_bytes((DATA / "cnn_digits/input_0.npy").read_bytes())
        assert build() == ["detector"], "other samples compile something else than the detector"
    finally:
        run([args.bazel, f"--output_user_root={root}", "shutdown"], cwd=tree)
        run(["chmod", "-R", "u+w", root])


# Goes on when two processes have called it: as a node runs one task at a time, both nodes then have one.
BOTH_NODES = """#!/bin/sh
: > seen/$PPID
for i in $(seq 600); do
    [ "$(ls seen | wc -l)" -gt 1 ] && break
    sleep 0.1
done
exec %s "$@"
"""


def ray(args, work):
    make_models(work)
    (work / "fleet.py").write_text(example("fleet.py"))
    (work / "bad.pt2").write_bytes(b"PK")
    for folder in ("cache", "bin", "seen"):
        (work / folder).mkdir()
    (work / "bin/etc").write_text(BOTH_NODES.replace("seen", str(work / "seen")) % args.etc)
    (work / "bin/etc").chmod(0o755)
    copy("add", work / "add.pt2")
    models = ["keyword.pt2", "vision/detector.pt2", "add.pt2"]

    def fleet(*names, expect=0):
        out = run([f"{args.ray}/bin/python", "fleet.py", "--local", "cache", *names], expect, cwd=work,
                  env={**os.environ, "PATH": f"{work}/bin:{os.environ['PATH']}", "RAY_USAGE_STATS_ENABLED": "0"})
        return re.findall(r"^(\w{8,}) (\S+\.pt2) (written|unchanged|failed) (.*)$", out, re.M)

    first = fleet(*models)
    assert [row[1] for row in first] == [str(work / model) for model in models], first
    assert len({row[0] for row in first}) == 2, f"not two nodes: {first}"
    assert all(row[2] == "written" for row in first), first
    expect_compiled(args.etc, Path(first[0][3]), work / models[0], "--backend", "xnnpack")
    again = fleet(*models, "bad.pt2", expect=1)
    assert [row[2] for row in again] == ["unchanged"] * len(models) + ["failed"], again
    assert '"kind": "error"' in again[-1][3], again


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("etc", type=os.path.abspath)
    parser.add_argument("bazel", type=os.path.abspath)
    parser.add_argument("ray", type=os.path.abspath)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--counts")
    args = parser.parse_args()
    rows = [(github, args.etc), (gitlab, args.etc), (cache, args.etc)]
    if args.full:
        rows += [(bazel, args.bazel), (ray, os.path.join(args.ray, "bin/ray"))]
    failed = skipped = 0
    for row, needs in rows:
        if not os.access(needs, os.X_OK):
            skipped += 1
            print(f"skip {row.__name__}: {needs} is not there")
            continue
        with tempfile.TemporaryDirectory(prefix="etc_engine_") as folder:
            try:
                row(args, Path(folder))
                print(f"ok   {row.__name__}", flush=True)
            except (AssertionError, OSError, KeyError) as e:
                failed += 1
                print(f"FAIL {row.__name__}: {type(e).__name__}: {e}", flush=True)
    passed = len(rows) - failed - skipped
    print(f"engines: {passed} passed, {failed} failed, {skipped} skipped")
    tally.append(args.counts, passed, failed, skipped)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
