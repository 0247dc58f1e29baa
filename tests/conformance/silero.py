"""Runs Silero VAD with its real weights: it computes probabilities over minutes of audio, and the state after a
chunk is the input of the next call.

The network is the zoo's, which was rebuilt in torch from the package's TorchScript file and is compared with
that file here. `etc` reads what torch.export writes and, with --full, an ONNX file of the package. The model in
floats, and the model quantized with RECIPE, which was calibrated with other audio, each process the chunks of a
signal in

  q-kernels  the official runtime with its portable and quantized kernels
  q-xnnpack  the official runtime, --backend xnnpack
  q-lite     etc run
  q-c        emitted C, of the same bits

No probability may differ from torch's by more than ALLOWED. The recipe stores every trained weight as int8; the
basis of the Fourier transform at the input, which was not trained, becomes halves. XNNPACK takes these
convolutions only as floats, so they stay floats there.
"""
import glob
import os
import subprocess

import numpy as np

RATE, CHUNK, CONTEXT = 16000, 512, 64
CALIBRATION = (1, 60)  # seed of a signal, its seconds
HEARD = ((2, 10), (3, 10), (4, 10))
JUDGED = {"float": 1, "int8": 3}  # of those signals
ALLOWED = {"float": 1e-4, "int8": 0.02}
RECIPE = """rules:
  - activation: float32
    weight: {dtype: int8, granularity: group, group_size: 16, observer: mse}
    algorithms: [gptq]
  - scope: {FOURIER}
    weight: float16
  - scope: {FIRST}   # rows of 387
    weight: {dtype: int8, granularity: group, group_size: 9, observer: mse}
  - scope: {LAST}    # one row: it alone makes the answer
    weight: {dtype: int8, granularity: group, group_size: 2, observer: mse}
"""
ONNX = "silero_vad_op18_ifless.onnx"
SIZES = ["--dim", "input.0=1", "--dim", f"input.1={CONTEXT + CHUNK}", "--dim", "state.1=1", "--bind", f"sr={RATE}"]
# How the recipe names three layers, and flags, by model.
MODELS = {"silero_vad": ({"FOURIER": "module: stft_conv", "FIRST": "module: conv1", "LAST": "module: final_conv"}, []),
          "silero_vad of onnx": ({"FOURIER": "name: conv1d", "FIRST": "name: conv1d_1", "LAST": "name: conv1d_5"}, SIZES)}


# -- audio -------------------------------------------------------------------------------------


def vowel(rng, t):
    """Harmonics of a pitch that glides and trembles, as loud as three formants let them be."""
    pitch = rng.uniform(90, 240) * (1 + 0.1 * np.sin(2 * np.pi * rng.uniform(0.5, 5) * t + rng.uniform(0, 6)))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    formants = [rng.uniform(*r) for r in ((280, 850), (850, 2300), (2300, 3300))]
    x = np.zeros_like(t)
    for k in range(1, 40):
        loud = sum(g * np.exp(-((k * pitch - f) / w)**2) for f, g, w in zip(formants, (1, 0.5, 0.25), (110, 160, 240)))
        x += loud * (k * pitch < RATE / 2) * np.sin(k * phase)
    edge = np.minimum(1, np.minimum(np.arange(len(t)), np.arange(len(t))[::-1]) / 400)
    return x * edge * rng.uniform(0.05, 0.4)


def signal(seed, seconds):
    """Syllables with pauses between some of them, over noise that swells; at times noise or tones alone."""
    rng = np.random.default_rng(seed)
    n = seconds * RATE
    x = 0.003 * rng.standard_normal(n) * (1 + np.sin(2 * np.pi * 0.3 * np.arange(n) / RATE))
    at = 2 * CHUNK
    while at < n:
        length, kind = int(rng.uniform(0.08, 0.4) * RATE), rng.random()
        t = np.arange(min(length, n - at)) / RATE
        if kind < 0.6:
            x[at:at + len(t)] += vowel(rng, t)
        elif kind < 0.75:
            x[at:at + len(t)] += rng.uniform(0.01, 0.1) * rng.standard_normal(len(t))
        elif kind < 0.85:
            x[at:at + len(t)] += 0.1 * np.sin(2 * np.pi * rng.uniform(200, 4000) * t)
        at += int(length * rng.choice([1, 1, 1.5, 3]))
    return x.astype(np.float32)


def chunks(x):
    """Returns the inputs of the network: chunks of 512 samples, each with the 64 samples before it."""
    padded = np.concatenate([np.zeros(CONTEXT, np.float32), x])
    return [padded[None, i:i + CONTEXT + CHUNK] for i in range(0, len(x) - CHUNK + 1, CHUNK)]


def carried(step, parts):
    """Probabilities, and the state before each chunk."""
    state, p, states = np.zeros((2, 1, 128), np.float32), [], []
    for x in parts:
        states.append(state)
        y, state = step(x, state)
        p.append(float(y.reshape(())))
    return np.array(p), states


def all_of(step, signals):
    """Returns the probabilities of all signals, each started with an empty state."""
    return np.concatenate([carried(step, parts)[0] for parts in signals])


# -- torch -------------------------------------------------------------------------------------


def network():
    import export_zoo
    export_zoo.seed_all(0)
    return export_zoo.REGISTRY["silero_vad"][0]().module.eval()


def of_torch(module):
    import torch

    def step(x, state):
        with torch.no_grad():
            y, s = module(torch.from_numpy(x.copy()), torch.from_numpy(state))
        return y.numpy(), s.numpy()
    return step


def original(x):
    """The package's own network."""
    import export_zoo
    import torch
    module = torch.jit.load(export_zoo.pkg_file("silero", "silero_vad", "data", "silero_vad.jit")).eval()
    with torch.no_grad():
        return np.array([float(module(torch.from_numpy(x[i:i + CHUNK])[None], RATE))
                         for i in range(0, len(x) - CHUNK + 1, CHUNK)])


# -- the runs ----------------------------------------------------------------------------------


def command(*words):
    p = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if p.returncode:
        raise RuntimeError(f"{os.path.basename(words[0])} {words[1]}: exit {p.returncode}: {p.stderr.strip()}"[:300])


def of_official(path):
    import torch
    from executorch.kernels import quantized  # noqa: F401  registers quantized_decomposed
    from executorch.runtime import Runtime
    method = Runtime.get().load_program(path).load_method("forward")

    def step(x, state):
        y, s = method.execute([torch.from_numpy(x.copy()), torch.from_numpy(state.copy())])
        return y.numpy().copy(), s.numpy().copy()
    return step


def of_program(folder, *program):
    os.makedirs(folder)
    files = [os.path.join(folder, f) for f in ("x.npy", "state.npy", "output_0.npy", "output_1.npy")]

    def step(x, state):
        np.save(files[0], x)
        np.save(files[1], state)
        command(*program, "--input", files[0], "--input", files[1], "--output-dir", folder)
        return np.load(files[2]), np.load(files[3])
    return step


def build(etc, name, model, recipe, samples, where):
    layers, flags = MODELS[name]
    text = RECIPE
    for layer, scope in layers.items():
        text = text.replace(layer, scope)
    with open(where + ".yaml", "w", encoding="utf-8") as f:
        f.write(text)
    flags = flags + ([] if recipe == "float" else ["--recipe", where + ".yaml", "--calibrate", samples])
    command(etc, "compile", "-q", model, "-o", where + ".pte", *flags)
    command(etc, "compile", "-q", model, "-o", where + "_xnnpack.pte", "--backend", "xnnpack", *flags)
    command(etc, "emit-c", "-q", model, "-o", where + ".c", "--main", *flags)
    command("cc", "-O2", "-o", where, where + ".c", where + "_main.c", *glob.glob(where + "_weights.S"), "-lm")


def check_one(rows, etc, name, model, recipe, samples, parts, wanted, where):
    build(etc, name, model, recipe, samples, where)
    steps = {"q-kernels": of_official(where + ".pte"),
             "q-xnnpack": of_official(where + "_xnnpack.pte"),
             "q-lite": of_program(where + "_lite", etc, "run", where + ".pte", "-q"),
             "q-c": of_program(where + "_c", where)}
    got = {part: all_of(step, parts) for part, step in steps.items()}
    for part, p in got.items():
        off = np.abs(p - wanted).max()
        ok = off <= ALLOWED[recipe] and (part != "q-c" or np.array_equal(p, got["q-lite"]))
        rows.add("ok" if ok else "FAIL", part, f"{name} {recipe}",
                 f"{len(p)} probabilities, off by {off:.3g}, allowed {ALLOWED[recipe]:.3g}")


def prepare(work):
    """The exported model, calibration samples, chunks and torch's probabilities of them."""
    import torch
    os.makedirs(work)
    module = network()
    known, heard = chunks(signal(*CALIBRATION)), [signal(*s) for s in HEARD]
    _, states = carried(of_torch(module), known)
    samples = os.path.join(work, "calibration.npz")
    np.savez(samples, input_0=np.stack(known), input_1=np.stack(states))
    model, parts = os.path.join(work, "model.pt2"), [chunks(x) for x in heard]
    torch.export.save(torch.export.export(module, (torch.from_numpy(known[0].copy()), torch.from_numpy(states[0]))), model)
    wanted = all_of(of_torch(module), parts)
    return model, samples, parts, wanted, np.abs(wanted - np.concatenate([original(x) for x in heard])).max()


def check(rows, etc, work, text, is_full):
    """Adds the rows whose model or recipe contains the text."""
    import export_zoo
    runs = [(m, r) for m in MODELS for r in ALLOWED if text in f"{m} {r}" and (is_full or "onnx" not in m)]
    if not runs:
        return
    try:
        model, samples, parts, wanted, off = prepare(work)
        files = {"silero_vad": model, "silero_vad of onnx": export_zoo.pkg_file("silero", "silero_vad", "data", ONNX)}
    except (FileNotFoundError, ImportError) as e:
        rows.add("skip", "quantized", "silero_vad", f"the package silero-vad is not there: {e}")
        return
    is_varied = wanted.min() < 0.1 and wanted.max() > 0.9
    rows.add("ok" if off < 1e-4 and is_varied else "FAIL", "quantized", "silero_vad in torch",
             f"off by {off:.3g} from its TorchScript, probabilities {wanted.min():.3f} to {wanted.max():.3f}")
    for name, recipe in runs:
        try:
            judged = parts[:JUDGED[recipe]]
            check_one(rows, etc, name, files[name], recipe, samples, judged, wanted[:sum(map(len, judged))],
                      os.path.join(work, f"{name}_{recipe}".replace(" ", "_")))
        except (RuntimeError, OSError) as e:
            rows.add("FAIL", "quantized", f"{name} {recipe}", str(e))
