"""Puts new weights into a .pte, and compares its bytes with those of a compile of the new model.

Each of MODELS gets other weights in torch and is saved as a .pt2 and as a .safetensors, in which weights that
share their bytes occur once, as safetensors' own writer saves them. It is compiled with each of FLAGS and
--refittable. Then

  refit      `etc refit` of the old file, from either, gives the bytes of `etc compile` of the new model
  r-official the refitted file runs in the official runtime, outputs against those of the new model in torch
"""
import json
import os
import shutil
import struct
import subprocess

import numpy as np

MODELS = ["mlp_digits", "cnn_digits", "tiny_kws_dscnn", "tiny_vww_mobilenet", "bert_tiny", "counter", "llama_kv",
          "mobilenetv2_dyn", "t5_encoder", "conformer"]
MORE = ["resnet18", "minilm_l6", "swin_tiny", "whisper_decoder", "gpt2_small", "efficientnet_b0", "vit_tiny"]  # of --full
FLAGS = [[], ["--backend", "xnnpack"], ["--recipe", "int8-weight"], ["--recipe", "8da4w", "--backend", "xnnpack"],
         ["--recipe", "int8-dynamic"], ["--recipe", "int4-group32"], ["--recipe", "fp16", "--backend", "xnnpack"]]
NAMES = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
         "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL"}


def write_tensors(path, state):
    """The format by hand: its package is not a dependency."""
    import torch
    same, parts, at, seen = {}, [], 0, {}
    head = {"__metadata__": same}
    for name, v in state.items():
        key = (v.untyped_storage().data_ptr(), v.storage_offset(), v.shape)
        if v.numel() and key in seen:
            same[name] = seen[key]  # as safetensors.torch.save_model tells it
            continue
        seen[key] = name
        part = v.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if v.numel() else b""
        head[name] = {"dtype": NAMES[str(v.dtype).removeprefix("torch.")], "shape": list(v.shape),
                      "data_offsets": [at, at + len(part)]}
        parts.append(part)
        at += len(part)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def change(source, to):
    """Saves the model with other weights; returns it."""
    import torch
    program, random = torch.export.load(source), torch.Generator().manual_seed(7)
    for v in program.state_dict.values():
        if v.dtype.is_floating_point:
            v.data.mul_(1 + 0.1 * torch.rand(v.shape, generator=random).to(v.dtype))
    torch.export.save(program, to + ".pt2")
    write_tensors(to + ".safetensors", program.state_dict)
    return program


def command(*words):
    p = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return p.stderr.strip()[-200:] if p.returncode else None


def content(path):
    with open(path, "rb") as f:
        return f.read()


def check_one(rows, etc, old, new, flags, work):
    at = lambda name: os.path.join(work, name)  # noqa: E731
    what = f"{os.path.basename(new)} {' '.join(f for f in flags if not f.startswith('--'))}".rstrip()
    failed = command(etc, "compile", old, "-o", at("old.pte"), "--refittable", "-q", *flags) or \
        command(etc, "compile", new + ".pt2", "-o", at("want.pte"), "--refittable", "-q", *flags)
    for kind in (".pt2", ".safetensors"):
        failed = failed or command(etc, "refit", at("old.pte"), "--weights", new + kind, "-o", at("new.pte"), "-q")
        if not failed and content(at("new.pte")) != content(at("want.pte")):
            failed = f"{kind}: other bytes than those of a compile"
        if not failed and os.path.getsize(new + ".safetensors") > 1000 and content(at("old.pte")) == content(at("new.pte")):
            failed = "the weights are the old ones"
    rows.add("FAIL" if failed else "ok", "refit", what, failed or f"{os.path.getsize(at('new.pte'))} bytes")


def check_official(rows, etc, name, zoo, program, new, work):
    import torch
    from executorch.runtime import Runtime
    pte, inputs = os.path.join(work, "official.pte"), []
    while os.path.exists(path := os.path.join(zoo, name, f"input_{len(inputs)}.npy")):
        inputs.append(torch.from_numpy(np.load(path)))
    failed = command(etc, "compile", os.path.join(zoo, name, "model.pt2"), "-o", pte + ".old", "--refittable", "-q") or \
        command(etc, "refit", pte + ".old", "--weights", new + ".safetensors", "-o", pte, "-q")
    if failed:
        rows.add("FAIL", "r-official", name, failed)
        return
    got = Runtime.get().load_program(pte).load_method("forward").execute(inputs)[0].numpy()
    with torch.no_grad():
        want = program.module()(*inputs)
    want = (want[0] if isinstance(want, (tuple, list)) else want).numpy()
    error, most = np.abs(got - want).max(), 1e-4 + 1e-3 * np.abs(want).max()
    rows.add("ok" if error <= most else "FAIL", "r-official", name, f"max error {error:.3g}")


def check(rows, etc, zoo, work, text, full):
    for name in chosen(text, full):
        folder = os.path.join(work, name)
        os.makedirs(folder)
        new, old = os.path.join(folder, name), os.path.join(zoo, name, "model.pt2")
        program = change(old, new)
        for flags in FLAGS:
            check_one(rows, etc, old, new, flags, folder)
        if name.endswith("_digits"):
            check_official(rows, etc, name, zoo, program, new, folder)
        shutil.rmtree(folder)


def chosen(text, full):
    return [n for n in MODELS + (MORE if full else []) if text in n]
