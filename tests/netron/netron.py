#!/usr/bin/env python3
"""Opens .pte files of etc with the reader of Netron, which draws models, and compares the results with `etc
inspect`.

    netron.py ETC FOLDER [--counts FILE]

FOLDER has Netron's JavaScript, which its Python package contains. Needs node. Inputs and outputs must have the
dtypes and sizes of the file, operators their numbers of calls, and graphs of XNNPACK their nodes. If node or
FOLDER is missing, one skip is counted.
"""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tally  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(HERE), "data")
MODELS = ["add", "linear", "softmax", "mlp_digits", "cnn_digits", "tiny_ad_autoencoder", "tiny_kws_dscnn",
          "tiny_vww_mobilenet"]
FLAGS = [[], ["--backend", "xnnpack"], ["--backend", "xnnpack", "--delegate", "all"], ["--recipe", "int8-weight"],
         ["--recipe", "int8-dynamic", "--backend", "xnnpack"], ["--recipe", "int4-group32", "--backend", "xnnpack"],
         ["--refittable"]]
SAMPLES = [("mlp_digits", []), ("cnn_digits", []), ("cnn_digits", ["--backend", "xnnpack"])]  # with static int8
DTYPES = {"f32": "float32", "f64": "float64", "f16": "float16", "i64": "int64", "i32": "int32", "i8": "int8",
          "u8": "uint8", "bool": "boolean"}


def compile_all(etc, work):
    """name: path; each model with each list of flags."""
    files = {}
    jobs = [(m, f) for m in MODELS for f in FLAGS]
    jobs += [(m, f + ["--recipe", "int8", "--calibrate", os.path.join(DATA, "quantized", m + "_calibration.npy")])
             for m, f in SAMPLES]
    for model, flags in jobs:
        name = " ".join([model] + [os.path.basename(f) for f in flags])
        files[name] = os.path.join(work, f"{len(files)}.pte")
        subprocess.run([etc, "compile", os.path.join(DATA, model, "model.pt2"), "-o", files[name], "-q", *flags],
                       check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return files


def inspect(etc, path):
    done = subprocess.run([etc, "inspect", path, "--json"], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["methods"][0]


def ends(list_of):
    return [f"{DTYPES[e['dtype']]}[{','.join(map(str, e['shape']))}]" for e in list_of]


def calls(method):
    """Returns the names that Netron gives the operators, and their numbers; it leaves out jumps."""
    n = collections.Counter(method["delegates"])
    for op in method["operators"]:
        n[op["name"].rpartition("::")[2].partition(".")[0]] += op["calls"]
    return dict(n)


def difference(found, method):
    if "error" in found:
        return found["error"]
    graph = found["graphs"][0]
    blobs = [sum(b["nodes"].values()) for b in method["blobs"]]
    for what, is_, was in (("inputs", graph["inputs"], ends(method["inputs"])),
                           ("outputs", graph["outputs"], ends(method["outputs"])),
                           ("operators", graph["nodes"], calls(method)),
                           ("nodes of delegates", [sum(g["nodes"].values()) for g in graph["inner"]], blobs)):
        if is_ != was:
            return f"{what}: {is_}, but etc tells {was}"
    return None


def check(etc, node, folder):
    with tempfile.TemporaryDirectory() as work:
        files = compile_all(etc, work)
        done = subprocess.run([node, os.path.join(HERE, "open.mjs"), folder, *files.values()], check=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        found = {line["file"]: line for line in map(json.loads, done.stdout.splitlines())}
        failed = 0
        for name, path in files.items():
            wrong = difference(found.get(path, {"error": "nothing is told of it"}), inspect(etc, path))
            failed += wrong is not None
            print(f"{'FAIL' if wrong else 'ok'}   {name}{': ' + wrong if wrong else ''}")
    return len(files) - failed, failed, 0


def main():
    etc, folder, node = sys.argv[1], sys.argv[2], shutil.which("node")
    why = "there is no node" if not node else "" if os.path.exists(os.path.join(folder, "view.js")) else f"there is no {folder}/view.js"
    if why:
        print(f"skip   Netron: {why}")
    n = (0, 0, 1) if why else check(os.path.abspath(etc), node, folder)
    print(f"netron: {n[0]} passed, {n[1]} failed, {n[2]} skipped")
    tally.append(sys.argv[4] if sys.argv[3:4] == ["--counts"] else None, *n)
    return 1 if n[1] else 0


if __name__ == "__main__":
    sys.exit(main())
