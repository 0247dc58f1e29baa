"""Runs models of the zoo that torch's own ONNX exporters wrote, and compares them with their torch.export.

Each model is exported to ONNX by the newer exporter, or by the older one (SCRIPT), and runs in the three ways
of onnx_runs.py.  No output may differ from torch's by more than the manifest's tolerances.  Operators that
exporters spell out must be recognized: with XNNPACK, the plan of the .onnx may have no more regions than that
of the .pt2, and no more than ROOM times its nodes, its arena and the multiply-adds that are left to kernels;
and neither the .pte nor the C may be forecast to take more than ROOM times as long.  Without --full, only SOME
of the models are used.  With --full, the plans of PLANS are compared too, and models of variants.py, SMALL, are
exported at several opsets each and run by `etc run` and as C.

With --export FOLDER NAMES, this program is the one that exports.
"""
import json
import os
import re
import subprocess
import sys

import numpy as np

ROOM = 1.03
HW = ["--dim", "h=4..256", "--dim", "w=4..256"]
# Flags for open sizes.
MODELS = {"bert_tiny": [], "convnext_tiny": [], "dlrm": [], "dyn_arith": ["--dim", "b=1..16", "--dim", "2*half_t=4..64", "--dim", "s=2..64"],
          "efficientnet_b0": [], "gemma_small": [], "gpt2_small": ["--dim", "seq=2..128"], "linear_8da4w_torchao": [], "mobilevit": [], "poolformer": [],
          "super_resolution": HW, "swin_tiny": [], "t5_encoder": [], "vae_decoder": [], "vit_tiny": [], "whisper_decoder": [],
          "cond": [], "dyn_derived": ["--dim", "2*n=4..200", "--dim", "n + 1=3..101", "--dim", "c.0=1..64"], "int_input": ["--dim", "n=1..10"],
          "item_slice": ["--dim", "n=1..10"], "llama_dyn": ["--dim", "seq=2..100"], "scan_op": [], "silero_vad": [], "while_loop": []}
SCRIPT = ["bert_tiny", "dlrm", "swin_tiny", "vae_decoder", "vit_tiny"]
# Only their plans are compared.
PLANS = ["conformer", "deeplabv3", "densenet_small", "efficientformerv2", "llama_bf16", "mixer", "mobilenetv3_small",
         "moe_dense", "qwen3_prefill", "repvgg_small", "resnet18", "roberta_tok", "tiny_kws_dscnn", "unet", "wav2letter",
         "whisper_encoder", "yolo_c2f", "mixer script", "mobilenetv3_small script", "unet script", "whisper_encoder script", "yolo_c2f script"]
SOME = {"bert_tiny", "dlrm", "linear_8da4w_torchao", "super_resolution", "vae_decoder", "vae_decoder script"}
SMALL = ["activations", "axes", "borders", "broadcasts", "crops", "elementary", "grids", "group_norms", "indexing", "lstm_cells", "pieces",
         "ranges", "reductions", "resized", "running_sums", "softmaxes", "statistics", "transposed_dilated", "windows"]
OPSETS = ["18", "23", "script 11", "script 13", "script 17"]
# Torch exports another model: these opsets have no sum at places that are named twice, and the older exporter cuts too much off a circle.
UNLIKE = {"running_sums script 11", "running_sums script 13", "borders script 11", "borders script 13", "borders script 17"}
# Their plans differ: a size of the .pt2 has no bound, an int is a tensor, loops have another form.
UNPLANNED = {"dyn_derived", "int_input", "scan_op", "while_loop"}
MORE_NODES = {"bert_tiny script", "dyn_arith", "gpt2_small"}  # exporters compute sizes and indices by nodes


# -- export ------------------------------------------------------------------------------------


def export_small(path, name, kind):
    """Exports a model of variants.py as one of OPSETS."""
    import torch
    import variants
    fn, inputs, *_ = variants.MODELS[name]
    torch.manual_seed(0)
    m = fn() if isinstance(fn, type) else variants.Fn(fn)
    with torch.no_grad():
        variants.settle(m.eval())
        torch._dynamo.reset()  # what it traced of bodies of other models
        torch.onnx.export(m, tuple(t.clone() for t in inputs), path, dynamo="script" not in kind, verbose=False,
                          opset_version=int(kind.split()[-1]))


def export(folder, names):
    """Exports NAME or "NAME script" to FOLDER/NAME.onnx."""
    import torch
    import export_zoo as zoo
    for name in names:
        base, _, kind = name.partition(" ")
        if base in SMALL:
            export_small(f"{folder}/{name}.onnx", base, kind)
            continue
        zoo.seed_all(0)
        spec = zoo.REGISTRY[base][0]()
        args = spec.cases[0]
        args, more = (args.args, args.kwargs) if isinstance(args, zoo.Case) else (tuple(args), {})
        shapes = {} if kind else {"dynamic_shapes": spec.dynamic, "dynamo": True}
        with torch.no_grad():
            torch.onnx.export(spec.module.eval(), args, f"{folder}/{name}.onnx", kwargs=more or None,
                              **(shapes or {"dynamo": False}), verbose=False)


# -- the checks --------------------------------------------------------------------------------


def values(folder, items):
    return [np.load(f"{folder}/{i['file']}") if "file" in i else np.array(i["value"]) for i in items if "file" in i or i.get("kind") == "int"]


def is_near(y, want, spec, manifest):
    if y.shape != want.shape or y.dtype != want.dtype:
        return False
    if want.dtype.kind != "f":
        return np.array_equal(y, want)
    return np.allclose(y, want, rtol=manifest["rtol"], atol=spec["atol"], equal_nan=True)


def judge(rows, part, run, etc, model, flags, zoo, out):
    """A row for all cases; the older exporter fixes the sizes of the first."""
    name = os.path.basename(model)[:-5]
    folder = f"{zoo}/{name.partition(' ')[0]}"
    with open(f"{folder}/manifest.json", encoding="utf-8") as f:
        manifest = json.load(f)
    for k, case in enumerate(manifest["cases"][:1 if " " in name else None]):
        how = run(etc, model, flags, values(folder, case["inputs"]), f"{out}/{k}")
        if how[0] != "right":
            rows.add("FAIL", part, name, f"case {k}: {how[0]}: {how[1].strip()[:300]}")
            return
        wants = [o for o in case["outputs"] if "file" in o]
        for i, (spec, want) in enumerate(zip(wants, values(folder, wants))):
            if not is_near(np.load(f"{out}/{k}/output_{i}.npy"), want, spec, manifest):
                rows.add("FAIL", part, name, f"case {k}: output {i} is not torch's")
                return
    rows.add("ok", part, name)


def plan(etc, model, flags, out):
    """Regions, nodes, arena, percent of multiply-adds left to kernels, and forecast for XNNPACK, forecast of C; or the message."""
    told = []
    for words in (["compile", "--backend", "xnnpack", "-o", out], ["emit-c", "--dry-run", "-o", "model.c"]):
        p = subprocess.run([etc, words[0], model, *flags, "--json", *words[1:]], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, check=False)
        if p.returncode:
            return p.stderr.strip()[:300]
        told.append((json.loads(p.stdout), p.stderr))
    (x, log), (c, _) = told
    found = re.search(r"(\d+) regions?, \d+ of (\d+) nodes", log)
    return (int(found[1]), int(found[2]), x["arena"], 100 - x["delegated_percent"], x["predicted_seconds"],
            c["predicted_seconds"]) if found else log.strip()[:300]


def compare(rows, etc, model, flags, zoo, out):
    name = os.path.basename(model)[:-5]
    ours, theirs = plan(etc, model, flags, f"{out}.pte"), plan(etc, f"{zoo}/{name.partition(' ')[0]}/model.pt2", [], f"{out}_pt2.pte")
    if isinstance(ours, str) or isinstance(theirs, str):
        rows.add("FAIL", "x-plan", name, f"{ours} / {theirs}")
        return
    free = {1} if name in MORE_NODES else set()
    ok = ours[0] <= theirs[0] and all(k in free or a <= ROOM * b for k, (a, b) in enumerate(zip(ours, theirs)))
    rows.add("ok" if ok else "FAIL", "x-plan", name, "regions, nodes, arena, % left, seconds, seconds of C: "
             + ", ".join(f"{a:.6g} ({b:.6g})" for a, b in zip(ours, theirs)))


def chosen(text, is_full):
    names = list(MODELS) + [f"{n} script" for n in SCRIPT]
    names += PLANS
    names += [f"{n} {kind}" for n in SMALL for kind in OPSETS if f"{n} {kind}" not in UNLIKE]
    return [n for n in names if (is_full or n in SOME) and (text in n or text in "onnx exports")]


def of_zoo(names):
    """The models of the zoo that these come from."""
    return sorted({n.partition(" ")[0] for n in names} - set(SMALL))


def check(rows, etc, zoo, small, work, names):
    try:
        import onnxscript  # noqa: F401
    except ImportError:
        for n in names:
            rows.add("skip", "x", n, "onnxscript is not installed")
        return
    from onnx_runs import RUNS
    os.makedirs(work)
    subprocess.run([sys.executable, os.path.abspath(__file__), "--export", work, *names], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for n in names:
        if n.partition(" ")[0] in SMALL:
            for part in ("lite", "c"):
                judge(rows, f"x-{part}", RUNS[part], etc, f"{work}/{n}.onnx", [], small, f"{work}/{n}/{part}")
            continue
        flags = [] if " " in n else MODELS.get(n, [])
        if n not in UNPLANNED:
            compare(rows, etc, f"{work}/{n}.onnx", flags, zoo, f"{work}/{n}")
        for part, run in () if n in PLANS else RUNS.items():
            judge(rows, f"x-{part}", run, etc, f"{work}/{n}.onnx", flags, zoo, f"{work}/{n}/{part}")


if __name__ == "__main__":
    export(sys.argv[2], sys.argv[3:])
