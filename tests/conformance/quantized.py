"""Measures the accuracy of the digits models as integers on labelled images, in four runs, which must agree.

Each of the models of tests/data is compiled with each of RECIPES. Ranges come from images that it was trained
with (tests/data/quantized/*_calibration.npy). It classifies the 360 images of its test set in

  q-kernels  the official runtime with its portable and quantized kernels
  q-xnnpack  the official runtime, --backend xnnpack
  q-lite     etc run
  q-c        emitted C

Accuracy may be lower than that of the model in torch by no more than RECIPES says. q-lite and q-c are as near
to q-kernels as rounding allows. Sums of floats in another order, and the sums of integers in C, differ in their
last bits; if such a sum lies at the edge between two integers, a value changes by one step. Without integer
activations there are no such edges, and q-c has the bits of q-lite.
"""
import glob
import os
import subprocess

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")
MODELS = ["mlp_digits", "cnn_digits"]
RECIPES = {"int8": 0.3, "int8-reduced": 0.3, "int8-dynamic": 0.3, "int8-weight": 0.3, "int4-group32": 1.0,
           "fp16": 0.3}  # points that may be lost


class Model:
    """One folder of tests/data, its images as calls, and what torch makes of them."""

    def __init__(self, name, work):
        import torch
        self.name, self.work = name, work
        self.path = os.path.join(DATA, name, "model.pt2")
        self.labels = np.load(os.path.join(DATA, name, "extra_test_y.npy"))
        images = np.load(os.path.join(DATA, name, "extra_test_x.npy"))
        self.calls = [images[i:i + 1] for i in range(len(images))]
        module = torch.export.load(self.path).module()
        with torch.no_grad():
            self.floats = np.concatenate([module(torch.from_numpy(x)).numpy() for x in self.calls])
        os.makedirs(work)
        self.arguments = []
        for i, x in enumerate(self.calls):
            file = os.path.join(work, f"{i}.npy")
            np.save(file, x)
            self.arguments += ["--next"] * (i > 0) + ["--input", file]

    def right(self, answers):
        return int((answers.argmax(1) == self.labels).sum())


def command(*words):
    p = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if p.returncode:
        raise RuntimeError(f"{os.path.basename(words[0])} {words[1]}: exit {p.returncode}: {p.stderr.strip()}"[:300])


def build(etc, model, recipe, where):
    """WHERE.pte, WHERE_xnnpack.pte and the program WHERE."""
    flags = ["-q", "--recipe", recipe, "--calibrate", os.path.join(DATA, "quantized", model.name + "_calibration.npy")]
    command(etc, "compile", model.path, "-o", where + ".pte", *flags)
    command(etc, "compile", model.path, "-o", where + "_xnnpack.pte", "--backend", "xnnpack", *flags)
    command(etc, "emit-c", model.path, "-o", where + ".c", "--main", *flags)
    weights = glob.glob(where + "_weights.S")
    command("cc", "-O2", "-o", where, where + ".c", where + "_main.c", *weights, "-lm")


def official(path, calls):
    import torch
    from executorch.kernels import quantized  # noqa: F401  registers quantized_decomposed
    from executorch.runtime import Runtime
    method = Runtime.get().load_program(path).load_method("forward")
    return np.concatenate([method.execute([torch.from_numpy(x)])[0].numpy().copy() for x in calls])


def run(model, folder, *program):
    command(*program, *model.arguments, "--output-dir", folder)
    return np.concatenate([np.load(os.path.join(folder, str(i), "output_0.npy")) for i in range(len(model.calls))])


# -- tolerances ------------------------------------------------------------------------------


def is_static(recipe):
    return recipe in ("int8", "int8-reduced")


def step(recipe, floats, outputs):
    """Returns how much an output changes if its integer changes by one.  Static outputs stand for integers, so it is
    their least distance.  If ranges are found per call, it is a part in 255 of the span of the outputs."""
    return np.diff(np.unique(outputs)).min() if is_static(recipe) else np.ptp(floats) / 255


def rounding(outputs):
    return 2e-5 * np.abs(outputs).max()


def has_edges(recipe):
    return is_static(recipe) or recipe == "int8-dynamic"


def allowed(recipe, model, outputs):
    """Returns how far lite and C may be from the official kernels, which compute the same."""
    return rounding(outputs) + (step(recipe, model.floats, outputs) if has_edges(recipe) else 0)


def off_xnnpack(recipe, model, got, kernels):
    """How far XNNPACK's outputs are off, and how far they may be. With static ranges it computes in the same integers;
    else it quantizes what it has kernels for, activations too or not, and is to be as near to the floats as the
    kernels are, but for a step."""
    one = step(recipe, model.floats, kernels) + rounding(kernels)
    if is_static(recipe):
        return np.abs(got - kernels).max(), one
    return np.abs(got - model.floats).max(), np.abs(kernels - model.floats).max() + one


# --------------------------------------------------------------------------------------------


def judge(rows, part, model, recipe, answers, off, may_be_off):
    right, torchs = model.right(answers), model.right(model.floats)
    n = len(model.labels)
    ok = torchs - right <= RECIPES[recipe] * n / 100 and off <= may_be_off
    rows.add("ok" if ok else "FAIL", part, f"{model.name} {recipe}",
             f"{right} of {n} right, torch {torchs}; off by {off:.3g}, allowed {may_be_off:.3g}")


def check_one(rows, etc, model, recipe):
    where = os.path.join(model.work, recipe)
    build(etc, model, recipe, where)
    kernels = official(where + ".pte", model.calls)
    lite = run(model, where + ".lite", etc, "run", where + ".pte", "-q")
    c = run(model, where + ".c_out", where)
    judge(rows, "q-kernels", model, recipe, kernels, 0.0, 0.0)
    xnnpack = official(where + "_xnnpack.pte", model.calls)
    judge(rows, "q-xnnpack", model, recipe, xnnpack, *off_xnnpack(recipe, model, xnnpack, kernels))
    judge(rows, "q-lite", model, recipe, lite, np.abs(lite - kernels).max(), allowed(recipe, model, kernels))
    if has_edges(recipe):
        judge(rows, "q-c", model, recipe, c, np.abs(c - kernels).max(), allowed(recipe, model, kernels))
    else:
        judge(rows, "q-c", model, recipe, c, np.abs(c - lite).max(), 0.0)


# -- a text encoder with real weights ----------------------------------------------------------

# The least mean cosine of an embedding with torch's, over the sentences of sentences.py.
ENCODER = {"int8-weight": 0.999, "int8-dynamic": 0.995, "int8": 0.995, "int4-group32": 0.99, "int4-but-values": 0.99}

# Calibrated with sentences that share no clause with the judged, where int4-group32 keeps 0.9855: what attention sums up,
# and what becomes of it, 12 of 36 products and a sixth of their weights, stays int8.
APART = {"int4-but-values": """preset: int4-group32
rules:
  - scope: {module: "*.value"}
    weight: {dtype: int8, granularity: channel, observer: mse}
  - scope: {module: "*.attention.output.dense"}
    weight: {dtype: int8, granularity: channel, observer: mse}
"""}


def sentences(table):
    rows = [r[r > 0].astype(np.int64)[None] for r in table]
    return [(r, np.ones_like(r)) for r in rows]


def embeddings(path, calls):
    import torch
    from executorch.runtime import Runtime
    from executorch.kernels import quantized  # noqa: F401  tables of integers
    method = Runtime.get().load_program(path).load_method("forward")
    return np.concatenate([method.execute([torch.from_numpy(x) for x in c])[0].numpy().copy() for c in calls])


def check_encoder(rows, etc, zoo, work, text, full):
    """Runs MiniLM of the zoo, if it was exported, with XNNPACK in the official runtime."""
    recipes = [r for r in ENCODER if text in f"minilm_l6 {r}" and (full or not r.startswith("int4"))]
    model = os.path.join(zoo, "minilm_l6", "model.pt2")
    if not recipes or not os.path.exists(model):
        if recipes:
            rows.add("skip", "q-encoder", "minilm_l6", "not exported")
        return
    import torch
    table = np.load(os.path.join(DATA, "quantized", "minilm_sentences.npz"))
    calls = sentences(table["judged"])
    for known in ("calibration", "apart"):
        os.makedirs(os.path.join(work, known))
        for i, (x, mask) in enumerate(sentences(table[known])):
            np.savez(os.path.join(work, known, f"{i:03d}.npz"), input_0=x, input_1=mask)
    module = torch.export.load(model).module()
    with torch.no_grad():
        want = np.concatenate([module(*(torch.from_numpy(x) for x in c)).numpy() for c in calls])
    for recipe in recipes:
        path, rules = os.path.join(work, recipe + ".pte"), recipe
        if recipe in APART:
            rules = os.path.join(work, recipe + ".yaml")
            with open(rules, "w", encoding="utf-8") as f:
                f.write(APART[recipe])
        try:
            command(etc, "compile", "-q", model, "-o", path, "--backend", "xnnpack", "--recipe", rules,
                    "--calibrate", os.path.join(work, "apart" if recipe in APART else "calibration"))
        except RuntimeError as e:
            rows.add("FAIL", "q-encoder", f"minilm_l6 {recipe}", str(e))
            continue
        got = embeddings(path, calls)
        cosine = ((got * want).sum(1) / np.linalg.norm(got, axis=1) / np.linalg.norm(want, axis=1)).mean()
        rows.add("ok" if cosine >= ENCODER[recipe] else "FAIL", "q-encoder", f"minilm_l6 {recipe}",
                 f"mean cosine {cosine:.5f} over {len(calls)} sentences, at least {ENCODER[recipe]} wanted")


def check(rows, etc, work, text):
    """Adds the rows whose model or recipe contains the text."""
    for name in MODELS:
        recipes = [r for r in RECIPES if text in f"{name} {r}"]
        model = Model(name, os.path.join(work, name)) if recipes else None
        for recipe in recipes:
            try:
                check_one(rows, etc, model, recipe)
            except (RuntimeError, OSError) as e:
                rows.add("FAIL", "quantized", f"{name} {recipe}", str(e))
