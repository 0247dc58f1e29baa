"""Operators of com.microsoft, and forms of recurrent ones that the standard's cases lack, against ONNX Runtime.

A small model of one node is made of each; what etc gives has to be what onnxruntime gives.
"""
import os
import subprocess

import numpy as np
import onnx
from onnx import helper, numpy_helper

R = np.random.default_rng(7)
MS = "com.microsoft"


def f(*shape):
    return R.standard_normal(shape).astype(np.float32)


def u8(*shape):
    return R.integers(0, 256, shape).astype(np.uint8)


def i8(*shape):
    return R.integers(-127, 128, shape).astype(np.int8)


def s(v):
    return np.array(v, np.float32)


def z(v, kind=np.uint8):
    return np.array(v, kind)


def case(op, inputs, constants=(), outputs=1, domain=MS, name="", wide=1e-4, **attributes):
    """inputs: arrays or None in order; those at `constants` are initializers, "" outputs are left out."""
    return dict(op=op, inputs=inputs, constants=constants, outputs=outputs, domain=domain, name=name or op, wide=wide,
                attributes=attributes)


def angles(n, half):
    at = np.arange(n)[:, None] / 10 ** (np.arange(half)[None] / half)
    return np.cos(at).astype(np.float32), np.sin(at).astype(np.float32)


def rnn(op, gates, extra=(), **attributes):
    dirs = 2 if attributes.get("direction") == "bidirectional" else 1
    first = [f(5, 3, 4), f(dirs, gates * 6, 4), f(dirs, gates * 6, 6), f(dirs, 2 * gates * 6)]
    return case(op, first + list(extra), (1, 2, 3, 7), 3 if op == "LSTM" else 2, "",
                f"{op} {' '.join(f'{k}={v}' for k, v in attributes.items())}", hidden_size=6, **attributes)


def bytes_lstm(kind, scales, dirs=1, extra=(), **attributes):
    """The transposes of rnn()'s matrices as integers, with `scales` to a direction."""
    weights = i8 if kind == np.int8 else u8
    quant = [0.01 + np.abs(0.01 * f(dirs, *scales)), np.full((dirs, *scales), 0 if kind == np.int8 else 130, kind)]
    first = [f(5, 1, 4), weights(dirs, 4, 24), weights(dirs, 6, 24), f(dirs, 48), None]
    states = list(extra) or [None, None, None]
    return case("DynamicQuantizeLSTM", [*first, *states, *quant, *quant], (1, 2, 3, 7, 8, 9, 10, 11), 3, hidden_size=6,
                name=f"DynamicQuantizeLSTM {np.dtype(kind)} {scales} {attributes}", **attributes)


def cases():
    quant = [s(0.02), z(120)]
    cosine, sine = angles(16, 4)
    wide = angles(16, 8)
    q, k, v = f(1, 3, 64), f(1, 3, 32), f(1, 3, 32)
    past = [f(1, 2, 5, 16), f(1, 2, 5, 16)]
    length, total = np.array([7], np.int32), np.array(8, np.int32)
    lens = np.array([5, 2, 3], np.int32)
    yield case("Gelu", [f(2, 9)])
    yield case("BiasGelu", [f(2, 9), f(9)], (1,))
    yield case("FastGelu", [f(2, 9)])
    yield case("FastGelu", [f(2, 9), f(9)], (1,), name="FastGelu with bias")
    yield case("QuickGelu", [f(2, 9)])
    yield case("QuickGelu", [f(2, 9)], alpha=1.0, name="QuickGelu as silu")
    yield case("SkipLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8), f(8), f(8)], (2, 3, 4), ["y", "", "", "sum"], epsilon=1e-5)
    yield case("SkipSimplifiedLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8), f(8)], (2, 3), ["y", "", "", "sum"], epsilon=1e-5)
    yield case("SimplifiedLayerNormalization", [f(2, 3, 8), f(8)], (1,), domain="", epsilon=1e-5)
    yield case("FusedConv", [f(1, 3, 6, 6), f(4, 3, 3, 3), f(4)], (1, 2), activation="Relu", pads=[1, 1, 1, 1])
    yield case("FusedConv", [f(1, 3, 6, 6), f(4, 3, 3, 3), f(4)], (1, 2), activation="Clip", activation_params=[-0.5, 1.5],
               name="FusedConv by clip")
    yield case("FusedConv", [f(1, 3, 6, 6), f(4, 3, 3, 3), f(4), f(1, 4, 4, 4)], (1, 2), activation="Relu", name="FusedConv with sum")
    yield case("FusedGemm", [f(3, 4), f(4, 5), f(5)], (1, 2), activation="LeakyRelu", activation_alpha=0.3)
    yield case("FusedMatMul", [f(2, 4, 3), f(2, 5, 4)], transA=1, transB=1, alpha=0.5)
    for bits, zero in ((4, None), (4, u8(6, 1)), (8, None), (4, f(6, 2))):
        yield case("MatMulNBits", [f(3, 64), u8(6, 2, 32 * bits // 8), np.abs(f(6 * 2)) + 0.1, zero], (1, 2, 3), K=64, N=6, bits=bits,
                   block_size=32, name=f"MatMulNBits {bits} {'' if zero is None else zero.dtype}", wide=3e-3)
    yield case("EmbedLayerNormalization", [R.integers(0, 9, (2, 4)).astype(np.int32), R.integers(0, 2, (2, 4)).astype(np.int32), f(9, 8),
                                           f(6, 8), f(2, 8), f(8), f(8), np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)],
               (2, 3, 4, 5, 6), 2, epsilon=1e-6)
    yield case("MultiHeadAttention", [f(2, 3, 16), f(2, 5, 16), f(2, 5, 16)], num_heads=2)
    yield case("MultiHeadAttention", [f(2, 3, 16), f(2, 5, 16), f(2, 5, 24), f(56), np.array([[1] * 5, [1, 1, 1, 0, 0]], np.int32),
                                      f(1, 2, 3, 5)], (3,), num_heads=2, name="MultiHeadAttention with masks")
    yield case("MultiHeadAttention", [f(1, 3, 32), f(1, 3, 32), f(1, 3, 32), None, None, None, *past], (), 3, num_heads=2,
               unidirectional=1, name="MultiHeadAttention with past")
    yield case("Attention", [f(2, 4, 8), f(8, 24), f(24)], (1, 2), num_heads=2, unidirectional=1)
    yield case("Attention", [f(2, 4, 8), f(8, 24), f(24), np.array([[1] * 4, [1, 1, 1, 0]], np.int32)], (1, 2), num_heads=2,
               name="Attention with a mask")
    yield case("Attention", [f(2, 4, 8), f(8, 24), f(24), np.array([4, 2], np.int32)], (1, 2), num_heads=2, name="Attention with lengths")
    yield case("RotaryEmbedding", [f(1, 2, 3, 8), np.array([[4, 5, 6]]), cosine, sine], (2, 3))
    yield case("RotaryEmbedding", [f(1, 3, 16), np.array([4]), cosine, sine], (2, 3), interleaved=1, num_heads=2,
               name="RotaryEmbedding from a place")
    yield case("GroupQueryAttention", [q, k, v, *past, length, total], (5, 6), 3, num_heads=4, kv_num_heads=2)
    yield case("GroupQueryAttention", [q, k, v, *past, length, total, *wide], (5, 6, 7, 8), 3, num_heads=4, kv_num_heads=2,
               do_rotary=1, local_window_size=4, name="GroupQueryAttention with rotations")
    yield case("GroupQueryAttention", [f(1, 3, 128), None, None, *past, length, total], (5, 6), 3, num_heads=4, kv_num_heads=2,
               softcap=2.0, name="GroupQueryAttention of packed inputs")
    for op in ("QLinearAdd", "QLinearMul"):
        yield case(op, [u8(3, 4), *quant, u8(3, 4), s(0.03), z(100), s(0.05), z(90)], (1, 2, 4, 5, 6, 7), wide=1)
    for op, more in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2}), ("QLinearSoftmax", {"axis": 1, "opset": 13})):
        yield case(op, [u8(3, 4), *quant, s(1 / 256), z(0)], (1, 2, 3, 4), wide=1, **more)
    yield case("QLinearGlobalAveragePool", [u8(1, 3, 4, 4), *quant, s(0.02), z(110)], (1, 2, 3, 4), wide=1)
    yield case("QLinearConcat", [s(0.03), z(100), u8(2, 3), *quant, u8(2, 3), s(0.04), z(90)], (0, 1, 3, 4, 6, 7), wide=1, axis=1)
    yield case("QGemm", [u8(3, 8), *quant, i8(8, 5), s(0.01), z(0, np.int8), R.integers(-900, 900, 5).astype(np.int32), s(0.05), z(128)],
               (1, 2, 3, 4, 5, 6, 7, 8), wide=1, alpha=1.0)
    yield case("DynamicQuantizeMatMul", [f(3, 8), i8(8, 5), np.abs(f(5)), z([0] * 5, np.int8), f(5)], (1, 2, 3, 4), wide=1e-3)
    yield case("MatMulIntegerToFloat", [u8(3, 8), i8(8, 5), s(0.02), np.abs(f(5)), z(120), z([0] * 5, np.int8), f(5)], (1, 2, 3, 4, 5, 6))
    yield bytes_lstm(np.int8, (24,))
    yield bytes_lstm(np.uint8, (), 2, direction="bidirectional")
    yield bytes_lstm(np.int8, (), 1, [f(1, 1, 6), f(1, 1, 6), f(1, 18)], direction="reverse")
    yield rnn("LSTM", 4, [None, f(1, 3, 6), f(1, 3, 6), f(1, 18)], clip=1.5)
    yield rnn("LSTM", 4, [lens], direction="bidirectional")
    yield rnn("LSTM", 4, [lens], direction="reverse", input_forget=1)
    yield rnn("GRU", 3, [lens], direction="bidirectional")
    yield rnn("GRU", 3, [lens], linear_before_reset=1, direction="reverse")
    yield rnn("GRU", 3, [None, f(1, 3, 6)], activations=["HardSigmoid", "Softsign"])
    yield rnn("RNN", 1, [lens], direction="bidirectional", activations=["Relu", "Tanh"])
    yield case("GridSample", [f(1, 2, 4, 5), R.uniform(-1.2, 1.2, (1, 3, 3, 2)).astype(np.float32)], domain="", mode="cubic",
               padding_mode="reflection", name="GridSample cubic")
    yield case("Einsum", [f(2, 3, 4), f(2, 5, 4)], domain="", equation="bij , bkj -> b k i")
    yield case("Resize", [f(1, 2, 7, 9), None, None, np.array([1, 2, 4, 5])], (3,), domain="", mode="cubic", antialias=1,
               exclude_outside=1, name="Resize smoothed")


def model_of(c):
    names = [f"i{k}" if a is not None else "" for k, a in enumerate(c["inputs"])]
    while not names[-1]:
        names.pop()
    outputs = c["outputs"] if isinstance(c["outputs"], list) else [f"o{k}" for k in range(c["outputs"])]
    node = helper.make_node(c["op"], names, outputs, domain=c["domain"], **c["attributes"])
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
              for k, (n, a) in enumerate(zip(names, c["inputs"])) if n and k not in c["constants"]]
    constants = [numpy_helper.from_array(np.asarray(a), n) for k, (n, a) in enumerate(zip(names, c["inputs"]))
                 if n and k in c["constants"]]
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=o) for o in outputs if o], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(MS, 1)], ir_version=10)


def difference(y, want, wide):
    if y.shape != want.shape or y.dtype != want.dtype:
        return f"{y.dtype}{list(y.shape)}, expected {want.dtype}{list(want.shape)}"
    if not want.size:
        return ""
    off = np.abs(y.astype(np.float64) - want.astype(np.float64)).max()
    most = wide if want.dtype.kind != "f" else wide * max(1, np.abs(want).max())
    return "" if off <= most else f"differs by {off:.3g}"


def verdict(etc, c, folder, session):
    os.makedirs(folder)
    model = model_of(c)
    onnx.save(model, f"{folder}/model.onnx")
    feeds, flags = {}, []
    for k, a in enumerate(c["inputs"]):
        if a is not None and k not in c["constants"]:
            feeds[f"i{k}"] = a
            np.save(f"{folder}/{k}.npy", a)
            flags += ["--input", f"{folder}/{k}.npy"]
    want = session(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    p = subprocess.run([etc, "run", f"{folder}/model.onnx", *flags, "--output-dir", f"{folder}/out", "-q"], capture_output=True,
                       text=True, errors="replace", check=False)
    if p.returncode:
        return p.stderr.strip()
    wrong = [difference(np.load(f"{folder}/out/output_{k}.npy"), w, c["wide"]) for k, w in enumerate(want)]
    return "; ".join(f"output {k} {w}" for k, w in enumerate(wrong) if w)


def check(rows, etc, work, text):
    if text and "onnx" not in text:
        return
    try:
        import onnxruntime as ort
    except ImportError:
        rows.add("skip", "onnx", "contrib", "onnxruntime is not installed")
        return
    ort.set_default_logger_severity(4)
    for k, c in enumerate(cases()):
        why = verdict(etc, c, f"{work}/{k}", ort.InferenceSession)
        rows.add("FAIL" if why else "ok", "onnx", c["name"], why)
