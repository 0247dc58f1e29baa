#!/usr/bin/env python3
"""onnx_files.py ROOT BUILD: ONNX files written byte by byte, read by etc; prints TAP.

Right ones are run and compared with numpy; wrong ones are refused with a reason, within a second and
100 MB, and without a crash; `etc inspect` tells of them, or refuses them too.  With --seeds DIR
instead, the right ones become seeds of a fuzzer.
"""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import numpy as np

import onnx_graphs
from onnx_bytes import data, external, graph, model, node, number, simple, tensor, value, varint


def f32(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


X, W, B = f32(2, 3), f32(3, 4), f32(4)
FLAT = simple([node("Shape", ["x"], ["s"]), node("Constant", [], ["at"], value_int=0), node("Gather", ["s", "at"], ["n"]),
               node("Unsqueeze", ["n", "axes"], ["n1"]), node("Concat", ["n1", "rest"], ["to"], axis=0),
               node("Reshape", ["x", "to"], ["y"])],
              ("batch", 3, 2), [tensor("axes", np.array([0])), tensor("rest", np.array([-1]), raw=False)])


def traced(op, trace, **attributes):
    """A node with what an exporter notes of its origin."""
    return node(op, ["x"], ["y"], **attributes) + data(9, data(1, "namespace") + data(2, ": Net/act: ReLU")) + data(9, trace)


TRACE = data(1, "pkg.torch.onnx.stack_trace")
FRAMES = 'File "/home/net.py", line 7, in forward\n    a\n  File "/home/act.py", line 12, in forward\n    return b\n'
RIGHT = {  # bytes, x, what y is of x or a part of the message that refuses x, flags
    "gemm": (simple([node("Gemm", ["x", "w", "b"], ["y"])], constants=[tensor("w", W), tensor("b", B, raw=False)]),
             X, lambda x: x @ W + B, []),
    **{f"trace_{k}": (simple([traced("Relu", trace)]), X, lambda x: np.maximum(x, 0), []) for k, trace in enumerate(
        (b"", TRACE, TRACE + b"\x12", TRACE + b"\x12" + b"\xff" * 20, TRACE + data(2, ""), TRACE + data(2, "\0" * 2000),
         TRACE + data(2, 'File "'), TRACE + data(2, 'File "", line '), TRACE + data(2, "File" * 999)))},
    "unaligned": (simple([node("MatMul", ["x", "w"], ["y"])], constants=[tensor("w!", f32(5)), tensor("w", W)]),
                  X, lambda x: x @ W, []),
    "unsorted": (simple([node("Neg", ["r"], ["n"]), node("Add", ["n", "x"], ["y"]), node("Relu", ["x"], ["r"])]), X,
                 lambda x: x - np.maximum(x, 0), []),
    "open": (FLAT, f32(4, 3, 2), lambda x: x.reshape(4, -1), ["--dim", "batch=1..8"]),
    "fixed": (FLAT, f32(4, 3, 2), lambda x: x.reshape(4, -1), ["--dim", "x.0=4"]),
    "overridden": (simple([node("Relu", ["x"], ["y"])]), f32(5, 3), lambda x: np.maximum(x, 0), ["--dim", "x.0=5"]),
    "bound": (model(graph([node("Mul", ["x", "k"], ["y"])], [value("x", [2, 3]), value("k", [])], ["y"])), X,
              lambda x: x * np.float32(2.5), ["--bind", "k=2.5"]),
    "branch": (simple([node("Constant", [], ["c"], value_int=1), node("Cast", ["c"], ["b"], to=9),
                       node("If", ["b"], ["y"], then_branch=graph([node("Relu", ["x"], ["t"])], [], ["t"]),
                            else_branch=graph([node("Neg", ["x"], ["e"])], [], ["e"]))]), X,
               lambda x: np.maximum(x, 0), []),
    "nothing": (simple([node("Concat", ["x", "c"], ["y"], axis=1)], constants=[tensor("c", np.zeros((2, 0), np.float32))]),
                X, lambda x: x, []),
    "reversed": (simple([node("Slice", ["x", "a", "e", "d", "s"], ["y"])],
                        constants=[tensor(n, np.array([v])) for n, v in (("a", -1), ("e", -99), ("d", 1), ("s", -1))]),
                 X, lambda x: x[:, ::-1], []),
    "alike": (simple([node("Sub", ["x", "x"], ["z"]), node("TopK", ["z", "k"], ["v", "i"]), node("Cast", ["i"], ["y"], to=1)],
                     constants=[tensor("k", np.array([2]))]),
              X, lambda x: np.broadcast_to(np.arange(2), (*x.shape[:-1], 2)), []),
    "names": (simple([node("Relu", ["x"], ["a/b:0"]), node("Relu", ["a/b:0"], ["a.b_0"]), node("Neg", ["a.b_0"], ["y"])]),
              X, lambda x: -np.maximum(x, 0), []),
}


def spread(x, w):
    """The transposed convolution of one image of one channel over three axes."""
    y = np.zeros((1, w.shape[1], *(a + b - 1 for a, b in zip(x.shape[2:], w.shape[2:]))), np.float32)
    for a, b, c in np.ndindex(*x.shape[2:]):
        y[0, :, a:a + w.shape[2], b:b + w.shape[3], c:c + w.shape[4]] += x[0, 0, a, b, c] * w[0]
    return y


CUBE, OF_CUBES = (1, 1, 3, 3, 3), f32(1, 2, 2, 2, 2)
RIGHT |= {
    "conv3": (simple([node("Conv", ["x", "w"], ["y"])], CUBE, [tensor("w", OF_CUBES.reshape(2, 1, 2, 2, 2))]), f32(*CUBE),
              lambda x: np.stack([[[[(x[0, 0, a:a + 2, b:b + 2, c:c + 2] * w).sum() for c in (0, 1)] for b in (0, 1)] for a in (0, 1)]
                                  for w in OF_CUBES[0]])[None].astype(np.float32), []),
    "conv3_transposed": (simple([node("ConvTranspose", ["x", "w"], ["y"])], CUBE, [tensor("w", OF_CUBES)]), f32(*CUBE),
                         lambda x: spread(x, OF_CUBES), []),
    "padded_by_calls": (simple([node("Shape", ["x"], ["s"]), node("Slice", ["s", "zero", "one"], ["n"]),
                                node("Concat", ["zero", "one", "n", "zero"], ["p"], axis=0), node("Pad", ["x", "p"], ["y"])],
                               ("batch", 3), [tensor("zero", np.array([0])), tensor("one", np.array([1]))]), X,
                        lambda x: np.pad(x, ((0, len(x)), (1, 0))), ["--dim", "batch=1..8"]),
}
AT = [tensor(name, np.array(v)) for name, v in (("end", [-1]), ("far", [-2**63]), ("zero", [0]), ("minus", -1), ("parts", [0, 0, -1, 2]))]
IMAGE, HW = f32(1, 1, 4, 6), ["--dim", "h=2..8", "--dim", "w=2..8"]
RIGHT |= {
    "reversed_openly": (simple([node("Slice", ["x", "end", "far", "zero", "end"], ["y"])], ("h", 3), AT), X, lambda x: x[::-1],
                        ["--dim", "h=1..8"]),
    "rolled_openly": (simple([node("Shape", ["x"], ["s"], start=0, end=1), node("Mod", ["end", "s"], ["m"]), node("Slice", ["x", "zero", "m"], ["a"]),
                              node("Slice", ["x", "m", "s"], ["b"]), node("Concat", ["b", "a"], ["y"], axis=0)], ("h", 3), AT), X,
                      lambda x: np.roll(x, 1, 0), ["--dim", "h=2..8"]),
    "edge_and_cut": (simple([node("Pad", ["x", "cuts"], ["y"], mode="edge")], constants=[tensor("cuts", np.array([1, -1, 0, 2]))]), X,
                     lambda x: np.pad(x[:, 1:], ((1, 0), (0, 2)), mode="edge"), []),
    "mean_of_integers": (simple([node("Cast", ["x"], ["i"], to=7), node("ReduceMean", ["i"], ["m"], axes=[1]), node("Cast", ["m"], ["y"], to=1)]), 9 * X,
                         lambda x: np.trunc(x.astype(np.int64).sum(1, keepdims=True) / 3), []),
    "axis_of_a_number": (simple([node("ReduceMax", ["x"], ["y"], axes=[-1])], ()), np.float32(2.5), lambda x: x, []),
    "norm_beyond_halves": (simple([node("Cast", ["x"], ["h"], to=10), node("ReduceL2", ["h"], ["n"], axes=[1]), node("Cast", ["n"], ["y"], to=1)]),
                           300 * X, lambda x: np.float16(np.sqrt((x.astype(np.float16).astype(np.float64) ** 2).sum(1, keepdims=True))), []),
    "left_over": (simple([node("Reshape", ["x", "parts"], ["r"]), node("Transpose", ["r"], ["y"], perm=[3, 0, 1, 2])], ("n", 2, 6), AT),
                  f32(3, 2, 6), lambda x: x.reshape(-1, 2, 3, 2).transpose(3, 0, 1, 2), ["--dim", "n=1..8"]),
    "resized_of_a_batch": (simple([node("Shape", ["x"], ["n"], start=0, end=2), node("Concat", ["n", "to"], ["s"], axis=0),
                                   node("Resize", ["x", "", "", "s"], ["y"], mode="nearest", coordinate_transformation_mode="asymmetric",
                                        nearest_mode="floor")], ("n", 1, 2, 2), [tensor("to", np.array([4, 6]))], 18), f32(2, 1, 2, 2),
                           lambda x: x.repeat(2, 2).repeat(3, 3), ["--dim", "n=1..4"]),
    "resized_openly": (simple([node("Resize", ["x", "", "by"], ["y"], mode="nearest", coordinate_transformation_mode="asymmetric",
                                    nearest_mode="floor")], (1, 1, "h", "w"), [tensor("by", np.array([1, 1, 2, 1.5], np.float32))]), IMAGE,
                       lambda x: x.repeat(2, 2)[..., [0, 0, 1, 2, 2, 3, 4, 4, 5]], HW),
    "resized_to_open_sizes": (simple([node("Shape", ["x"], ["s"]), node("Mul", ["s", "by"], ["t"]), node("Resize", ["x", "", "", "t"], ["y"], mode="linear",
                                      coordinate_transformation_mode="align_corners")], (1, 1, "h", "w"), [tensor("by", np.array([1, 1, 2, 1]))]),
                              IMAGE[:, :, :2], lambda x: x[:, :, :1] + np.arange(4).reshape(4, 1) / 3 * (x[:, :, 1:] - x[:, :, :1]), HW),
}
RIGHT["sizes_scattered"] = (simple([node("Shape", ["x"], ["s"]), node("ScatterElements", ["s", "last", "five"], ["t"]),
                                    node("Slice", ["x", "one", "two", "one"], ["a"]), node("Expand", ["a", "t"], ["y"])],
                                   constants=[tensor(n, np.array([v])) for n, v in (("last", -1), ("five", 5), ("one", 1), ("two", 2))]),
                            X, lambda x: np.repeat(x[:, 1:2], 5, 1), [])
INT32, INT64 = 6, 7
COUNTED = simple([node("Range", ["zero", "x", "one"], ["r"]), node("Neg", ["r"], ["y"])], (),
                 [tensor("zero", np.array(0)), tensor("one", np.array(1))], dtype=INT64)
RIGHT |= {  # --dim gives the range of a value
    "element": (COUNTED, np.array(5), lambda x: -np.arange(x), ["--dim", "x=1..8"]),
    "element_out_of_range": (COUNTED, np.array(9), "the element of 'x' (x_2) must be 1 to 8, not 9", ["--dim", "x=1..8"]),
    "element_of_a_list": (simple([node("Cast", ["x"], ["e"], to=INT64), node("Slice", ["w", "zero", "e"], ["y"])], (1,),
                                 [tensor("w", W), tensor("zero", np.array([0]))], dtype=INT32),
                          np.array([2], np.int32), lambda x: W[:2], ["--dim", "x=0..3"]),
    "element_of_a_node": (simple([node("ReduceMax", ["x"], ["m"], keepdims=0), node("Cast", ["m"], ["most"], to=INT64), node("Add", ["most", "one"], ["n"]),
                                  node("Unsqueeze", ["n", "zero"], ["s"]), node("Expand", ["half", "s"], ["y"])],
                                 constants=[tensor("one", np.array(1)), tensor("zero", np.array([0])), tensor("half", np.array(0.5, np.float32))]),
                          7 * np.abs(X), lambda x: np.full(int(x.max()) + 1, 0.5), ["--dim", "most=0..30"]),
}
NUMBERS = [tensor(n, np.array(v, np.float32)) for n, v in (("two", 2), ("three", [3]), ("wide", [[0.5]]))]
RIGHT |= {
    "numbers": (simple([node("Sub", ["two", "x"], ["a"]), node("Mul", ["a", "three"], ["b"]), node("Div", ["two", "b"], ["c"]),
                        node("Div", ["c", "two"], ["d"]), node("Sub", ["d", "three"], ["e"]), node("Add", ["wide", "e"], ["y"])],
                       constants=NUMBERS), X, lambda x: 2 / ((2 - x) * 3) / 2 - 3 + 0.5, []),
    "turned": (simple([node("Transpose", ["w"], ["t"], perm=[1, 0]), node("MatMul", ["x", "t"], ["y"])],
                      constants=[tensor("w", f32(4, 3))]), X, lambda x: x @ f32(4, 3).T, []),
    "pixels": (simple([node("DepthToSpace", ["x"], ["y"], blocksize=2, mode="CRD")], (1, 8, 2, 3)), f32(1, 8, 2, 3),
               lambda x: x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6), []),
    "quick_gelu": (simple([node("QuickGelu", ["x"], ["y"], "com.microsoft")]), X, lambda x: x / (1 + np.exp(-1.702 * x)), []),
    "einsum": (simple([node("Einsum", ["x", "w"], ["y"], equation="ab , bc")], constants=[tensor("w", W)]), X, lambda x: x @ W, []),
    "swish": (simple([node("Swish", ["x"], ["y"])], opset=24), X, lambda x: x / (1 + np.exp(-x)), []),
    "slopes_of_channels": (simple([node("PRelu", ["x", "w"], ["y"])], (1, 3, 3), [tensor("w", f32(3))], opset=6), f32(1, 3, 3),
                           lambda x: np.where(x < 0, x * f32(3)[:, None], x), []),
    "slopes_of_columns": (simple([node("PRelu", ["x", "w"], ["y"])], (1, 3, 3), [tensor("w", f32(3))], opset=7), f32(1, 3, 3),
                          lambda x: np.where(x < 0, x * f32(3), x), []),
    "pooled": (simple([node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2, 2])], (1, 1, 3, 3, 3)), f32(1, 1, 3, 3, 3),
               lambda x: np.max([x[:, :, a:a + 2, b:b + 2, c:c + 2] for a in (0, 1) for b in (0, 1) for c in (0, 1)], axis=0), []),
    "parts": (simple([node("Shape", ["x"], ["s"]), node("Split", ["s"], ["a", "b"], num_outputs=2), node("Concat", ["b", "a"], ["t"], axis=0),
                      node("Reshape", ["x", "t"], ["y"])], opset=18), X, lambda x: x.reshape(3, 2), []),
}
DEEP = b""
for _ in range(3000):
    DEEP = graph([node("If", ["c"], ["y"], then_branch=DEEP)], [], ["y"])
RELU = node("Relu", ["x"], ["y"])
BIG = np.zeros(32, np.float32)
WRONG = {  # bytes, a part of the message, the exit code
    "deep": (model(DEEP), "nest deeper than 100", 1),
    "many_messages": (model(data(5, b"") * 5_000_000), "more than 300,000 messages", 1),
    "cut": (simple([RELU])[:-4], "is not an ONNX model", 1),
    "length": (data(7, b"")[:1] + varint(2**31) + b"x", "reaches past the end", 1),
    "group": (bytes([6 << 3 | 3]), "no known wire type", 1),
    "empty": (b"", "is not an ONNX model: it has no graph", 1),
    "no_graph": (b"\x08\x08", "is not an ONNX model: it has no graph", 1),
    "opset": (simple([RELU], opset=3), "opset 3 is not read", 4),
    "unknown": (simple([node("Frobnicate", ["x"], ["a"]), node("Frobnicate", ["a"], ["b"]), node("Zap", ["b"], ["y"], "ai.x")]),
                "(Frobnicate): the operator of opset 17 is not supported, in 2 nodes", 4),
    "unknown_too": (simple([node("Frobnicate", ["x"], ["a"]), node("Zap", ["a"], ["y"], "ai.x")]), "(ai.x::Zap): the operator of another domain is not supported, in 1 node", 4),
    "factor": (simple([node("LayerNormalization", ["x", "w"], ["y"])], constants=[tensor("w", f32(2, 3))]),
               "has factors of more axes than are normalized", 4),
    "factor_length": (simple([node("LayerNormalization", ["x", "w"], ["y"], axis=0)], constants=[tensor("w", f32(4))]),
                      "cannot expand size 4", 1),
    "no_operator": (simple([data(1, "x") + data(2, "y")]), "a node names no operator", 1),
    "one_cpu": (simple([node("Conv", ["x", "x"], ["y"], "com.microsoft.nchwc")]), "save the model with ORT_ENABLE_EXTENDED", 4),
    "left_of_nothing": (simple([node("Shape", ["x"], ["s"]), node("Sub", ["s", "one"], ["t"]), node("Concat", ["t", "rest"], ["u"], axis=0),
                                node("Reshape", ["x", "u"], ["y"])], ("n", "m"), [tensor("one", np.array([1])), tensor("rest", np.array([-1]))]),
                        "cannot tell the size of axis 2", 4),
    "resized_by_cubes": (simple([node("Resize", ["x", "", "by"], ["y"], mode="cubic")], ("n", 2, "h"),
                                [tensor("by", np.array([1, 1, 2], np.float32))]), "in a way that torch does not: fix them with --dim\n"
                         "  note: sizes are dynamic; fixing them may help: --dim n=N --dim h=N\n", 4),
    "element": (COUNTED, "note: if the values of inputs decide sizes, give their ranges: --dim x=LO..HI", 4),
    "einsum": (simple([node("Einsum", ["x"], ["y"], equation="ij,jk->ik")]), "not as many terms as operands", 1),
    "einsum_axes": (simple([node("Einsum", ["x"], ["y"], equation="i,jk->ik")]), "not as many letters", 1),
    "einsum_letters": (simple([node("Einsum", ["x"], ["y"], equation="i#j")]), "expected letters", 1),
    "attention": (simple([node("Attention", ["x", "x", "x"], ["y"])], opset=24), "expected 3 or 4", 1),
    "heads": (simple([node("Attention", ["x", "x", "x"], ["y"], q_num_heads=0, kv_num_heads=-2)], (2, 3, 4), opset=24),
              "as many heads as an attribute says", 1),
    "nbits": (simple([node("MatMulNBits", ["x", "w", "w"], ["y"], "com.microsoft", K=-3, N=4, block_size=32)],
                     constants=[tensor("w", W)]), "out of range", 1),
    "circle": (simple([node("Add", ["x", "b"], ["a"]), node("Neg", ["a"], ["b"]), node("Relu", ["b"], ["y"])]),
               "reads 'a', which no node before it defines", 1),
    "undefined": (simple([node("Relu", ["z"], ["y"])]), "reads 'z', which no node before it defines", 1),
    "twice": (simple([node("Relu", ["x"], ["x"])]), "defines 'x' a second time", 1),
    "no_output": (simple([node("Relu", ["x"], ["z"])]), "the output 'y' is defined by no node", 1),
    "nul": (simple([node("Relu", ["x"], ["y\0z"])]), "has a NUL", 1),
    "few_bytes": (simple([node("Add", ["x", "w"], ["y"])], constants=[tensor("w", W)[:4] + tensor("w", B)[2:]]),
                  "expected", 1),
    "few_numbers": (simple([node("Add", ["x", "w"], ["y"])], constants=[number(1, 3) + number(2, 1) + data(8, "w")]),
                    "has 0 numbers, expected 3", 1),
    "huge": (simple([node("Add", ["x", "w"], ["y"])], constants=[number(1, 2**40) * 2 + number(2, 1) + data(8, "w")]),
             "overflow", 1),
    "negative": (simple([node("Add", ["x", "w"], ["y"])], constants=[number(1, -1) + number(2, 1) + data(8, "w")]),
                 "negative size", 1),
    "forged": (simple([node("Add", ["x", "w"], ["y"])], constants=[number(1, 32) + number(2, 1) + data(8, "w")
                       + varint(100 << 3 | 1) + bytes(8) + varint(101 << 3 | 1) + (128).to_bytes(8, "little")]),
               "has 0 numbers, expected 32", 1),
    "upwards": (simple([node("Add", ["x", "w"], ["y"])], constants=[external("w", [3], "a/../../etc/passwd")]),
                "expected a path beneath the model's folder", 1),
    "absolute": (simple([node("Add", ["x", "w"], ["y"])], constants=[external("w", [3], "/etc/passwd")]),
                 "expected a path beneath the model's folder", 1),
    "inner": (simple([node("Add", ["x", "w"], ["y"])], constants=[external("w", [3], "a/./w.bin")]), "expected a path beneath the model's folder", 1),
    "no_name": (simple([node("Add", ["x", "w"], ["y"])], constants=[external("w", [3], "a//w.bin")]), "expected a path beneath the model's folder", 1),
    "two_fields": (simple([node("Add", ["x", "w"], ["y"])], constants=[tensor("w", B[:3]) + data(4, bytes(12))]), "has both bytes and numbers", 1),
    "wide_half": (simple([node("Cast", ["w"], ["y"], to=1)], constants=[number(1, 1) + number(2, 10) + number(5, 2**16) + data(8, "w")]),
                  "has numbers that do not fit into 16 bits", 1),
    "wide_byte": (simple([node("Cast", ["w"], ["y"], to=1)], constants=[number(1, 1) + number(2, 3) + number(5, -129) + data(8, "w")]),
                  "has numbers that do not fit into 8 bits", 1),
    "wide_u32": (simple([node("Cast", ["w"], ["y"], to=1)], constants=[number(1, 1) + number(2, 12) + number(11, 2**32) + data(8, "w")]),
                 "has numbers that do not fit into 32 bits", 1),
    "link": (simple([node("Add", ["x", "w"], ["y"])], constants=[external("w", [3], "link.bin")]), "symbolic link", 3),
    "beyond": (simple([node("Add", ["x", "w"], ["y"])], constants=[external("w", [3], "w.bin", offset="4")]),
               "are not in 'w.bin'", 1),
    "no_number": (simple([node("Add", ["x", "w"], ["y"])], constants=[external("w", [3], "w.bin", offset="-4")]),
                  "is not a number", 1),
    "string": (simple([node("Add", ["x", "w"], ["y"])], constants=[number(1, 1) + number(2, 8) + data(8, "w")]),
               "element type 8", 4),
    "axis": (simple([node("Softmax", ["x"], ["y"], axis=5)]), "axis 5 is out of range", 1),
    "traced": (simple([traced("Softmax", TRACE + data(2, FRAMES), axis=5)]), "act.py:12", 1),
    "long_trace": (simple([traced("Softmax", TRACE + data(2, 99 * FRAMES), axis=5)]), "act.py:12", 1),
    "random": (simple([node("Dropout", ["x", "", "t"], ["y"])], constants=[number(2, 9) + data(9, b"\1") + data(8, "t")]),
               "export the model in eval mode", 4),
    "window": (simple([node("MaxPool", ["x"], ["y"], kernel_shape=[2**40, 2])], (1, 1, 8, 8)), "out of range", 1),
    "no_outputs": (simple([node("Constant", [], [], value_int=1), RELU]), "has no output", 1),
    "no_inputs": (simple([node("Add", ["x"], ["y"])]), "lacks an input", 1),
    "bool": (simple([node("Where", ["w", "x", "x"], ["y"])], constants=[number(1, 3) + number(2, 9) + data(9, bytes(2) + b"\2")
             + data(8, "w")]), "neither 0 nor 1", 1),
    "too_many": (simple([node("TopK", ["x", "k"], ["y", "i"])], constants=[tensor("k", np.array([99]))]), "wants 99 of", 1),
    "too_few": (simple([node("TopK", ["x", "k"], ["y", "i"])], constants=[tensor("k", np.array([-1]))]), "wants -1 of", 1),
    "block": (simple([node("DepthToSpace", ["x"], ["y"], blocksize=2**40)], (1, 4, 2, 2)), "expects [n, c, h, w]", 1),
}
for name, place in (("external", "w.bin"), ("here", "./w.bin")):
    RIGHT[name] = (simple([node("Add", ["x", "w"], ["y"])], constants=[external("w", [3], place, length="12")]), X,
                   lambda x: x + f32(3), [])


def files(folder):
    with open(f"{folder}/w.bin", "wb") as f:
        f.write(f32(3).tobytes())
    os.symlink(f"{folder}/w.bin", f"{folder}/link.bin")


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def runs(etc, folder, name, row):
    content, x, want, flags = row
    path = f"{folder}/{name}.onnx"
    pathlib.Path(path).write_bytes(content)
    np.save(f"{folder}/x.npy", x)
    p = subprocess.run([etc, "run", path, "--input", f"{folder}/x.npy", "--output-dir", f"{folder}/{name}", "-q", *flags],
                       capture_output=True, text=True)
    if isinstance(want, str):
        return "" if p.returncode == 1 and want in p.stderr else f"exit {p.returncode}, expected 1 and '{want}': {p.stderr.strip()}"
    if p.returncode:
        return p.stderr.strip()
    y, w = np.load(f"{folder}/{name}/output_0.npy"), want(x)
    return "" if y.shape == w.shape and np.allclose(y, w, atol=1e-5) else f"gives {y}, expected {w}"


def is_refused(etc, folder, name, row):
    content, part, code = row
    path = f"{folder}/{name}.onnx"
    pathlib.Path(path).write_bytes(content)
    p = subprocess.run([etc, "compile", path, "-o", f"{folder}/{name}.pte"], capture_output=True, text=True,
                       errors="replace", preexec_fn=None if "asan" in etc else limited)
    if p.returncode != code or part not in p.stderr:
        return f"exit {p.returncode}, expected {code} and '{part}': {p.stderr.strip()[:300]}"
    if os.path.exists(f"{folder}/{name}.pte"):
        return "wrote a file"
    p = subprocess.run([etc, "inspect", path, "--json"], capture_output=True, text=True, errors="replace",
                       preexec_fn=None if "asan" in etc else limited)
    if p.returncode == 0:
        return "" if json.loads(p.stdout)["kind"] == "onnx" else "inspect tells of no .onnx"
    return "" if p.returncode == 1 and "error: " in p.stderr else f"inspect: exit {p.returncode}: {p.stderr.strip()[:300]}"


def is_mapped(etc, folder, name, content):
    """The debug map has the source line of the one node, and no module."""
    path, to = f"{folder}/{name}.onnx", f"{folder}/{name}.json"
    pathlib.Path(path).write_bytes(content)
    p = subprocess.run([etc, "compile", path, "-o", f"{folder}/{name}.pte", "--debug-map", to], capture_output=True, text=True)
    if p.returncode:
        return p.stderr.strip()
    instructions = json.loads(pathlib.Path(to).read_text())["methods"][0]["instructions"]
    origins = [(i["module"], i["source"]) for i in instructions]
    return "" if origins == [(None, "act.py:12")] else f"the debug map has {origins}"


def main():
    right, wrong = RIGHT | onnx_graphs.RIGHT, WRONG | onnx_graphs.WRONG
    if sys.argv[1] == "--seeds":
        os.makedirs(f"{sys.argv[2]}/onnx", exist_ok=True)
        for name, row in right.items():
            pathlib.Path(f"{sys.argv[2]}/onnx/{name}").write_bytes(row[0])
        return
    etc = f"{sys.argv[2]}/etc"
    with tempfile.TemporaryDirectory() as folder:
        files(folder)
        rows = [(n, runs, r) for n, r in right.items()] + [(n, is_refused, r) for n, r in wrong.items()]
        rows += [("debug_map", is_mapped, simple([traced("Softmax", TRACE + data(2, FRAMES), axis=1)]))]
        print(f"1..{len(rows)}")
        for i, (name, check, row) in enumerate(rows, 1):
            why = check(etc, folder, name, row)
            print(f"{'not ok' if why else 'ok'} {i} - {name}" + "".join(f"\n# {line}" for line in why.splitlines()))


main()
