"""Compares operators of com.microsoft and ai.onnx.ml, and forms that the standard's cases lack, with ONNX Runtime.

A small model is made of each: one node, or a node with a graph of its own. The outputs of etc must be those of
onnxruntime.
"""
import itertools
import json
import os
import subprocess

import numpy as np
import onnx
from onnx import helper, numpy_helper

from onnx_runs import RAN, RUNS, exact_session

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


def case(op, inputs, constants=(), outputs=1, domain=MS, name="", wide=1e-4, version=20, flags=(), **attributes):
    """inputs: arrays or None in order; those at `constants` are initializers, "" outputs are left out."""
    return dict(op=op, inputs=inputs, constants=constants, outputs=outputs, domain=domain, name=name or op, wide=wide,
                version=version, flags=list(flags), attributes=attributes)


def plain(op, inputs, constants=(), outputs=1, name="", **more):
    """An operator of ONNX itself; `name` says which form."""
    return case(op, inputs, constants, outputs, domain="", name=f"{op} {name}", **more)


def ml(op, inputs, outputs=1, name="", **more):
    return case(op, inputs, (), outputs, domain="ai.onnx.ml", name=f"{op} {name}".strip(), **more)


def ints(*v):
    return np.array(v, np.int64)


OPEN = ["--dim", "i0.0=1..9"]  # the number of steps


def body(nodes, inputs, outputs):
    """A graph of a loop; values are named by "name type shape", f for floats, i for integers, b for bools."""
    kinds = {"f": onnx.TensorProto.FLOAT, "i": onnx.TensorProto.INT64, "b": onnx.TensorProto.BOOL}

    def value(text):
        name, kind, *shape = text.split()
        return helper.make_tensor_value_info(name, kinds[kind], [int(d) for d in shape])
    made = [helper.make_node(op, i.split(), o.split()) for op, i, o in nodes]
    return helper.make_graph(made, "body", [value(i) for i in inputs], [value(o) for o in outputs])


def loops():
    """Loops that collect rows, of few turns, of many, and of as many as an input has elements."""
    sums = body([("Identity", "c", "go"), ("Add", "v i2", "sum"), ("Tanh", "sum", "row")], ["i i", "c b", "v f 2"],
                ["go b", "sum f 2", "row f 2"])  # i2, what the loop begins with, is also read from outside
    for turns in (5, 300):
        yield plain("Loop", [np.array(turns), np.array(True), f(2)], (0, 1), 2, f"of {turns} turns", body=sums)
    scan = body([("Add", "s x", "next"), ("Tanh", "next", "row")], ["s f 2", "x f 2"], ["next f 2", "row f 2"])
    yield plain("Scan", [f(2), f(300, 2)], (), 2, "of 300 turns", body=scan, num_scan_inputs=1)
    yield plain("Scan", [f(2), f(5, 2)], (), 2, "open", body=scan, num_scan_inputs=1, flags=["--dim", "i1.0=1..9"])
    yield plain("Scan", [f(2), f(2, 5)], (), 2, "open from the end", body=scan, num_scan_inputs=1, scan_input_axes=[1],
                scan_output_axes=[1], scan_input_directions=[1], scan_output_directions=[1], flags=["--dim", "i1.1=1..9"])


def tree(kinds, mode="BRANCH_LEQ", depth=3, tracks=0):
    """Nodes of two full trees over three columns, as attributes; `kinds` weights to a leaf."""
    count = 2 ** (depth + 1) - 1
    first_leaf = 2**depth - 1
    nodes = [(t, k) for t in range(2) for k in range(count)]
    leaves = [(t, k, i) for t, k in nodes if k >= first_leaf for i in kinds]
    table = {"treeids": [t for t, _ in nodes], "nodeids": [k for _, k in nodes], "featureids": [k % 3 for _, k in nodes],
             "values": [float(v) for v in f(len(nodes))], "modes": ["LEAF" if k >= first_leaf else mode for _, k in nodes],
             "truenodeids": [0 if k >= first_leaf else 2 * k + 1 for _, k in nodes],
             "falsenodeids": [0 if k >= first_leaf else 2 * k + 2 for _, k in nodes],
             "missing_value_tracks_true": [tracks * (k % 2) for _, k in nodes]}
    weights = {"treeids": [t for t, _, _ in leaves], "nodeids": [k for _, k, _ in leaves], "ids": [i for _, _, i in leaves],
               "weights": [float(v) for v in f(len(leaves))]}
    return {f"nodes_{k}": v for k, v in table.items()}, weights


def trees():
    for name, kinds, mode, tracks, more in (
            ("", [0], "BRANCH_LEQ", 0, {}), ("of two results", [0, 1], "BRANCH_LT", 0, {"base_values": [0.5, -1.0]}),
            ("averaged", [0], "BRANCH_GT", 0, {"aggregate_function": "AVERAGE"}), ("that track NaN", [0], "BRANCH_LEQ", 1, {})):
        nodes, weights = tree(kinds, mode, tracks=tracks)
        x = f(6, 3)
        x[0, 1] = np.nan
        yield ml("TreeEnsembleRegressor", [x], 1, name, n_targets=len(kinds), **nodes,
                 **{f"target_{k}": v for k, v in weights.items()}, **more)
    for name, labels, kinds, more in (("", [1, 4, 7], [0, 1, 2], {}), ("by softmax", [1, 4, 7], [0, 1, 2], {"post_transform": "SOFTMAX"}),
                                      ("of two by logits", [1, 4], [0], {"post_transform": "LOGISTIC"})):
        nodes, weights = tree(kinds)
        yield ml("TreeEnsembleClassifier", [f(6, 3)], 2, name, classlabels_int64s=labels, **nodes,
                 **{f"class_{k}": v for k, v in weights.items()}, **more)


def learned():
    """Operators that scikit-learn's models have around a network."""
    yield ml("Scaler", [f(4, 3)], offset=[0.1, 0.2, 0.3], scale=[1.0, 2.0, 3.0])
    yield ml("Scaler", [R.integers(0, 9, (4, 3))], name="of integers", offset=[0.1], scale=[2.0])
    for norm in ("MAX", "L1", "L2"):
        yield ml("Normalizer", [f(4, 3)], name=norm, norm=norm)
    yield ml("LinearRegressor", [f(4, 3)], coefficients=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], intercepts=[0.1, 0.2], targets=2)
    for how in ("NONE", "SOFTMAX", "LOGISTIC"):
        yield ml("LinearClassifier", [f(4, 3)], 2, how, coefficients=[float(v) for v in f(9)], intercepts=[0.1, 0.2, 0.3],
                 classlabels_ints=[0, 1, 5], post_transform=how, multi_class=1)
    yield ml("Binarizer", [f(4, 3)], threshold=0.2)
    yield ml("Imputer", [np.array([[1, np.nan, 2], [np.nan, 3, 4]], np.float32)], imputed_value_floats=[1.0, 2.0, 3.0],
             replaced_value_float=float("nan"))
    yield ml("FeatureVectorizer", [f(4, 2), f(4, 3)], inputdimensions=[2, 3])
    yield ml("ArrayFeatureExtractor", [f(4, 3), ints(2, 0)])
    yield ml("OneHotEncoder", [ints(1, 5, 7)], cats_int64s=[1, 3, 5], zeros=1)
    yield ml("LabelEncoder", [ints(1, 5, 7)], keys_int64s=[1, 3, 5], values_floats=[0.1, 0.2, 0.3], default_float=-1.0)
    yield ml("LabelEncoder", [ints(1, 5, 7)], name="of integers", keys_int64s=[1, 3, 5], values_int64s=[7, 8, 9])


def older():
    """Forms of older opsets, and those that exporters write of newer ones."""
    x = f(1, 2, 5, 7)
    for mode, scale in (("nearest", [1, 1, 2, 3]), ("nearest", [1, 1, 0.5, 0.6]), ("linear", [1, 1, 2, 2])):
        yield plain("Resize", [x, s(scale)], (1,), name=f"of opset 10, {mode} {scale}", version=10, mode=mode)
    for how in ("half_pixel", "asymmetric", "pytorch_half_pixel"):
        for scale in ([1, 1, 0.6, 0.7], [1, 1, 1.5, 2.3]):
            yield plain("Resize", [x, None, s(scale)], (2,), name=f"{how} {scale}", version=13, mode="nearest",
                        coordinate_transformation_mode=how)
    yield plain("TopK", [f(3, 7)], (), 2, "of opset 9", version=9, k=3, axis=1)
    yield plain("LayerNormalization", [f(2, 3, 8), f(8), f(8)], (1, 2), name="of opset 11", version=11)
    yield plain("LayerNormalization", [f(2, 3, 8), f(1, 8), f(1)], (1, 2), name="of factors that spread", axis=1)
    yield plain("GroupNormalization", [f(2, 6, 4), f(3), f(3)], (1, 2), name="of opset 18", version=18, num_groups=3)
    same = {"auto_pad": "SAME_UPPER", "strides": [2, 2], "flags": ["--dim", "i0.2=4..9", "--dim", "i0.3=4..9"]}
    for size in (7, 8):
        yield plain("Conv", [f(1, 3, size, 6), f(4, 3, 3, 3)], (1,), name=f"of open sizes, SAME, {size}", **same)
    yield plain("MaxPool", [f(1, 3, 7, 8)], name="of open sizes, SAME", kernel_shape=[3, 3], **same)
    yield plain("GRU", [f(600, 1, 4), f(1, 18, 4), f(1, 18, 6), f(1, 36)], (1, 2, 3), 2, "of 600 steps", hidden_size=6)
    yield plain("GRU", [f(5, 1, 4), f(2, 18, 4), f(2, 18, 6), f(2, 36)], (1, 2, 3), 2, "of open steps", hidden_size=6,
                direction="bidirectional", flags=OPEN)
    yield plain("LSTM", [f(5, 2, 4), f(1, 24, 4), f(1, 24, 6), f(1, 48), np.array([5, 3], np.int32)], (1, 2, 3), 3,
                "of open steps with lengths", hidden_size=6, direction="reverse", flags=OPEN)
    for k, (names, alpha, beta) in enumerate(((["HardSigmoid", "Tanh"], [0.1667], [0.5]), (["Sigmoid", "LeakyRelu"], [0.1], []),
                                              (["Sigmoid", "ScaledTanh"], [1.7], [0.6]), (["HardSigmoid", "Affine"], [0.3, 0.9], [0.4, 0.1]))):
        yield plain("GRU", [f(5, 3, 4), f(1, 18, 4), f(1, 18, 6)], (1, 2), 2, f"of {names}", hidden_size=6, activations=names,
                    activation_alpha=alpha, **({"activation_beta": beta} if beta else {}))
    for name, alpha in (("Elu", [0.5]), ("ThresholdedRelu", [0.1]), ("Softplus", None)):
        yield plain("RNN", [f(5, 3, 4), f(1, 6, 4), f(1, 6, 6)], (1, 2), 2, f"of {name}", hidden_size=6, activations=[name],
                    **({"activation_alpha": alpha} if alpha else {}))


def bytes_of_networks():
    """Operators on bytes that an optimizer makes of QDQ. The weights of the convolution have 7 bits, as exact_session has no
    effect on it."""
    quant = [s(0.02), z(120)]
    conv = [i8(4, 3, 3, 3) // 2, s(0.01), z(0, np.int8), s(0.05), z(100), R.integers(-900, 900, 4).astype(np.int32)]
    yield case("QLinearConv", [u8(1, 6, 6, 3), *quant, *conv], (1, 2, 3, 4, 5, 6, 7, 8), wide=1, pads=[1, 1, 1, 1], channels_last=1,
               name="QLinearConv with channels last")
    yield case("NhwcMaxPool", [u8(1, 6, 6, 3)], kernel_shape=[2, 2], strides=[2, 2])
    pool = [u8(1, 5, 5, 3), *quant, s(0.02), z(110)]
    yield case("QLinearAveragePool", pool, (1, 2, 3, 4), wide=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    yield case("QLinearAveragePool", pool, (1, 2, 3, 4), wide=1, kernel_shape=[3, 3], channels_last=1,
               name="QLinearAveragePool with channels last")
    yield case("QLinearGlobalAveragePool", pool, (1, 2, 3, 4), wide=1, channels_last=1,
               name="QLinearGlobalAveragePool with channels last")
    yield case("QLinearWhere", [R.random((3, 4)) < 0.5, u8(3, 4), *quant, u8(3, 4), s(0.03), z(100), s(0.05), z(90)], (2, 3, 5, 6, 7, 8),
               wide=1)
    words = R.integers(-300, 300, (3, 4)).astype(np.int16), R.integers(-300, 300, (4, 5)).astype(np.int16)
    yield case("MatMulInteger16", list(words))
    packed = [u8(2, 4, 8), i8(8, 24), f(24), s(0.02), s(0.01)]
    for name, mask in (("", None), ("with lengths", np.array([4, 2], np.int32)), ("with a mask", np.array([[1] * 4, [1, 1, 1, 0]], np.int32))):
        yield case("QAttention", [*packed, mask, z(120), z(0, np.int8)], (1, 2, 3, 4, 6, 7), wide=1e-3, num_heads=2,
                   name=f"QAttention {name}")
    yield case("Attention", [f(2, 4, 8), f(8, 24), f(24), R.integers(0, 2, (2, 4, 4)).astype(np.int32)], (1, 2), num_heads=2,
               name="Attention with a mask of queries")
    for zero in (None, u8(6, 2)):
        yield case("GatherBlockQuantized", [u8(6, 32), R.integers(0, 6, (2, 3)), np.abs(f(6, 4)), zero], (0, 2, 3) if zero is not None else
                   (0, 2), version=21, block_size=16, gather_axis=0, quantize_axis=1, bits=4,
                   name=f"GatherBlockQuantized {'' if zero is None else 'with zero points'}")
    yield case("MatMulNBits", [f(2, 48), u8(6, 2, 16), np.abs(f(12)) + 0.1], (1, 2), wide=3e-3, K=48, N=6, bits=4, block_size=32,
               name="MatMulNBits with a shorter last block")
    yield case("FusedMatMul", [f(3, 2, 4), f(2, 4, 5)], transBatchA=1, name="FusedMatMul of moved batches")
    yield case("TransposeMatMul", [f(2, 4, 3), f(2, 4, 5)], transA=1)
    yield case("CDist", [f(3, 4), f(5, 4)], metric="euclidean")
    yield case("UnfoldTensor", [f(2, 8)], dim=1, size=3, step=2)
    yield case("ExpandDims", [f(2, 3), np.array([-1], np.int32)], (1,))
    yield case("Trilu", [f(4, 5)], upper=0, name="Trilu of com.microsoft")
    yield case("Range", [np.array(2), np.array(11), np.array(3)], (0, 1, 2), name="Range of com.microsoft")
    yield case("Pad", [f(3, 4), ints(0, 1, 0, 2)], (1,), name="Pad of com.microsoft")
    yield case("GatherND", [f(2, 3), ints(0, 1, 1, 2).reshape(2, 2)], name="GatherND of com.microsoft")
    yield bytes_lstm(np.int8, (), 2, direction="bidirectional", flags=OPEN)


def angles(n, half):
    at = np.arange(n)[:, None] / 10 ** (np.arange(half)[None] / half)
    return np.cos(at).astype(np.float32), np.sin(at).astype(np.float32)


def rnn(op, gates, extra=(), **attributes):
    dirs = 2 if attributes.get("direction") == "bidirectional" else 1
    first = [f(5, 3, 4), f(dirs, gates * 6, 4), f(dirs, gates * 6, 6), f(dirs, 2 * gates * 6)]
    return case(op, first + list(extra), (1, 2, 3, 7), 3 if op == "LSTM" else 2, "",
                f"{op} {' '.join(f'{k}={v}' for k, v in attributes.items())}", hidden_size=6, **attributes)


def bytes_lstm(kind, scales, dirs=1, extra=(), flags=(), **attributes):
    """The transposes of rnn()'s matrices as integers, with `scales` to a direction."""
    weights = i8 if kind == np.int8 else u8
    quant = [0.01 + np.abs(0.01 * f(dirs, *scales)), np.full((dirs, *scales), 0 if kind == np.int8 else 130, kind)]
    first = [f(5, 1, 4), weights(dirs, 4, 24), weights(dirs, 6, 24), f(dirs, 48), None]
    states = list(extra) or [None, None, None]
    return case("DynamicQuantizeLSTM", [*first, *states, *quant, *quant], (1, 2, 3, 7, 8, 9, 10, 11), 3, hidden_size=6,
                name=f"DynamicQuantizeLSTM {np.dtype(kind)} {scales} {attributes} {' '.join(flags)}", flags=flags, **attributes)


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
    opsets = {"": c["version"], MS: 1, "ai.onnx.ml": 3}
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets.items()], ir_version=10)


def difference(y, want, wide):
    if y.shape != want.shape or y.dtype != want.dtype:
        return f"{y.dtype}{list(y.shape)}, expected {want.dtype}{list(want.shape)}"
    if not want.size:
        return ""
    off = np.abs(y.astype(np.float64) - want.astype(np.float64)).max()
    most = wide if want.dtype.kind != "f" else wide * max(1, np.abs(want).max())
    return "" if off <= most else f"differs by {off:.3g}"


def verdict(etc, c, folder):
    os.makedirs(folder)
    model = model_of(c)
    onnx.save(model, f"{folder}/model.onnx")
    feeds, flags = {}, list(c["flags"])
    for k, a in enumerate(c["inputs"]):
        if a is not None and k not in c["constants"]:
            feeds[f"i{k}"] = a
            np.save(f"{folder}/{k}.npy", a)
            flags += ["--input", f"{folder}/{k}.npy"]
    want = exact_session(model.SerializeToString()).run(None, feeds)
    p = subprocess.run([etc, "run", f"{folder}/model.onnx", *flags, "--output-dir", f"{folder}/out", "-q"], capture_output=True,
                       text=True, errors="replace", check=False)
    if p.returncode:
        return p.stderr.strip()
    wrong = [difference(np.load(f"{folder}/out/output_{k}.npy"), w, c["wide"]) for k, w in enumerate(want)]
    return "; ".join(f"output {k} {w}" for k, w in enumerate(wrong) if w)


def check_16_bits(rows, etc, work):
    """Activations of 16 bits without a sign have to run in the official runtime, which has no casts of them."""
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    x = f(3, 4)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, x.shape)], [onnx.ValueInfoProto(name="y")],
                              [numpy_helper.from_array(s(0.001), "s"), numpy_helper.from_array(z(30000, np.uint16), "z")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    os.makedirs(work)
    onnx.save(model, f"{work}/model.onnx")
    want, = exact_session(model.SerializeToString()).run(None, {"x": x})
    for part, run in RUNS.items():
        how = run(etc, f"{work}/model.onnx", [], [x], f"{work}/{part}")
        why = difference(np.load(f"{work}/{part}/output_0.npy"), want, 1e-6) if how == RAN else ": ".join(how)
        rows.add("FAIL" if why else "ok", "onnx", f"activations of 16 bits, {part}", why)


# -- what quantize_dynamic writes --------------------------------------------------------------


def layer():
    """A layer of a transformer behind a convolution."""
    nodes, constants = [], []

    def const(name, a):
        constants.append(numpy_helper.from_array(a, name))
        return name

    def node(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def linear(x, name, rows, columns):
        y = node("MatMul", [x, const(f"{name}_w", f(rows, columns) / 4)], f"{name}_m")
        return node("Add", [y, const(f"{name}_b", f(columns))], name)

    x = node("Conv", ["x", const("conv_w", f(16, 3, 3)), const("conv_b", f(16))], "c", pads=[1, 1])
    x = node("Conv", [x, const("each_w", f(16, 1, 3))], "e", pads=[1, 1], group=16)
    x = node("Transpose", [x], "t", perm=[0, 2, 1])
    q, k, v = (linear(x, name, 16, 16) for name in "qkv")
    scores = node("MatMul", [q, node("Transpose", [k], "kt", perm=[0, 2, 1])], "s")
    x = node("Add", [x, linear(node("MatMul", [node("Softmax", [scores], "p"), v], "a"), "o", 16, 16)], "r")
    x = node("LayerNormalization", [x, const("g", f(16)), const("b", f(16))], "n")
    y = linear(node("Relu", [linear(x, "f", 16, 32)], "h"), "d", 32, 16)
    node("Add", [x, y], "y")
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [2, 3, 10])], [onnx.ValueInfoProto(name="y")],
                              constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def late():
    """A loop that scales a product in the iteration after the one that computes it. Its weights have 7 bits, as exact_session
    has no effect within loops."""
    steps = [("Identity", "c", "go"), ("DynamicQuantizeLinear", "v", "q s z"), ("MatMulInteger", "q w z", "p"), ("Mul", "s ws", "by"),
             ("Mul", "old by", "y"), ("Add", "y v", "sum")]
    loop = body(steps, ["i i", "c b", "v f 2 4", "old f 2 4"], ["go b", "sum f 2 4", "f f 2 4"])
    loop.node.append(helper.make_node("Cast", ["p"], ["f"], to=1))
    constants = {"n": np.array(4), "t": np.array(True), "w": i8(4, 4) // 2, "ws": s(0.01), "o": f(2, 4)}
    graph = helper.make_graph([helper.make_node("Loop", ["n", "t", "x", "o"], ["y", "last"], body=loop)], "g",
                              [helper.make_tensor_value_info("x", 1, [2, 4])], [onnx.ValueInfoProto(name="y")],
                              [numpy_helper.from_array(a, name) for name, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def integer_products(etc, path):
    """The numbers of FORMS."""
    p = subprocess.run([etc, "emit-c", path, "-o", f"{path}.c", "--dump-ir=after:group"], capture_output=True, text=True, check=True)
    q = subprocess.run([etc, "compile", path, "-o", f"{path}.pte", "--backend", "xnnpack", "--json"], capture_output=True, text=True,
                       check=True)
    return (sum(p.stdout.count(f" = {op}(") for op in ("etc.integer_linear", "etc.integer_convolution")),
            sum(p.stdout.count(f" = {op}(") for op in ("aten.linear.default", "etc.packed_linear", "aten.convolution.default")),
            round(json.loads(q.stdout)["delegated_percent"]))


# Arguments; products of integers and of floats in the C, and percent of multiply-adds for XNNPACK.  With zero points beyond i8, a
# product also needs the sums of its rows or windows, and a convolution with groups stays one of floats.
FORMS = {"i8": ({}, (8, 0, 93)), "channels": ({"per_channel": True}, (8, 0, 93)),
         "7 bits": ({"weight_type": "QUInt8", "reduce_range": True}, (8, 0, 93)), "u8": ({"weight_type": "QUInt8"}, (14, 1, 93)),
         "fused": ({}, (8, 0, 93))}


def check_dynamic(rows, etc, work, ort):
    """Products with a scale found at run time are products of integers, with the results of ONNX Runtime."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    os.makedirs(work)
    onnx.save(layer(), f"{work}/layer.onnx")
    onnx.save(late(), f"{work}/late.onnx")
    x = f(2, 4)
    want, = exact_session(f"{work}/late.onnx").run(None, {"x": x})
    how = RUNS["lite"](etc, f"{work}/late.onnx", [], [x], f"{work}/late")
    why = difference(np.load(f"{work}/late/output_0.npy"), want, 1e-4) if how == RAN else ": ".join(how)
    rows.add("FAIL" if why else "ok", "onnx", "a product that is scaled in the next iteration", why)
    x = f(2, 3, 10)
    for name, (flags, products) in FORMS.items():
        path = f"{work}/{name}.onnx"
        flags = {k: QuantType[v] if k == "weight_type" else v for k, v in flags.items()}
        quantize_dynamic(f"{work}/layer.onnx", path, **flags)
        options = ort.SessionOptions()
        if name == "fused":
            options.optimized_model_filepath = path
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        want, = exact_session(path, options).run(None, {"x": x})
        for part, run in RUNS.items():
            how = run(etc, path, [], [x], f"{work}/{name}/{part}")
            why = difference(np.load(f"{work}/{name}/{part}/output_0.npy"), want, 1e-4) if how == RAN else ": ".join(how)
            rows.add("FAIL" if why else "ok", "onnx", f"layer quantized at run time, {name}, {part}", why)
        found = integer_products(etc, path)
        rows.add("ok" if found == products else "FAIL", "onnx", f"products of integers at run time, {name}", str(found))


def check(rows, etc, work, text):
    if text and "onnx" not in text:
        return
    try:
        import onnxruntime as ort
    except ImportError:
        rows.add("skip", "onnx", "contrib", "onnxruntime is not installed")
        return
    ort.set_default_logger_severity(4)
    check_16_bits(rows, etc, f"{work}/16_bits")
    check_dynamic(rows, etc, f"{work}/dynamic", ort)
    for k, c in enumerate(itertools.chain(cases(), older(), loops(), bytes_of_networks(), learned(), trees())):
        why = verdict(etc, c, f"{work}/{k}")
        rows.add("FAIL" if why else "ok", "onnx", c["name"], why)
