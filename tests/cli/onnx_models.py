#!/usr/bin/env python3
"""onnx_models.py DATA: writes ONNX files into the current folder, byte by byte.

linear.onnx and mlp.onnx are the models of DATA that torch exported, with the same weights.  about.onnx
has an example of everything that `etc inspect` shows.  The output of wrong.onnx and flat.onnx has
another shape than they declare.  newer.onnx has a newer IR version.  unknown.onnx has an unknown operator.
spelled.onnx expresses in ONNX's operators what torch has other operators for.
"""
import os
import pathlib
import sys
import zipfile

import numpy as np

sys.path.insert(0, f"{os.path.dirname(os.path.abspath(__file__))}/../import")
from onnx_bytes import data, external, graph, model, node, number, tensor, value  # noqa: E402


def layers(folder, shape, sizes):
    """Linear layers of these sizes with a relu between."""
    nodes, constants, x = [], [], "input"
    with zipfile.ZipFile(f"{folder}/model.pt2") as z:
        for i in range(len(sizes) - 1):
            for k, dims in enumerate(((sizes[i + 1], sizes[i]), (sizes[i + 1],))):
                raw = z.read(f"model/data/weights/weight_{2 * i + k}")
                constants.append(tensor(f"{'wb'[k]}{i}", np.frombuffer(raw, np.float32).reshape(dims)))
            is_last = i == len(sizes) - 2
            nodes.append(node("Gemm", [x, f"w{i}", f"b{i}"], ["y" if is_last else f"h{i}"], transB=1))
            x = f"r{i}"
            nodes += [] if is_last else [node("Relu", [f"h{i}"], [x])]
    return model(graph(nodes, [value("input", shape)], ["y"], constants))


def about(inputs):
    inner = graph([node("Relu", ["x"], ["t"]), node("Relu", ["t"], ["u"])], [], ["u"])
    nodes = [node("Twice", ["x"], ["d"], "own"), node("Add", ["d", "w"], ["a"]), node("Frobnicate", ["a"], ["b"], "ai.x"),
             node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)]
    told = (data(2, "by hand") + data(3, "1.0") + data(8, data(1, "ai.x") + number(2, 2))
            + data(25, data(1, "Twice") + data(4, "p") + data(5, "q") + data(7, node("Add", ["p", "p"], ["q"]))
                   + data(9, data(1, "") + number(2, 17)) + data(10, "own"))
            + data(14, data(1, "author") + data(2, "some\x1bone")))
    return model(graph(nodes, inputs, ["y"], [external("w", [3], "w.bin")]), tail=told)


def spelled():
    """(2 * x / 4 - [1]) @ w^T, where w is turned by a node; then its channels become pixels, with borders."""
    nodes = [node("Mul", ["two", "x"], ["a"]), node("Div", ["a", "four"], ["b"]), node("Sub", ["b", "one"], ["c"]),
             node("Transpose", ["w"], ["t"], perm=[1, 0]), node("MatMul", ["c", "t"], ["d"]),
             node("DepthToSpace", ["d"], ["e"], blocksize=2, mode="CRD"), node("Pad", ["e", "pads"], ["f"], mode="reflect"),
             node("Pad", ["f", "pads"], ["y"], mode="edge")]
    numbers = [tensor(n, np.array(v, np.float32)) for n, v in (("two", 2), ("four", 4), ("one", [1]))]
    return model(graph(nodes, [value("x", [1, 4, 2, 64])], ["y"], [*numbers, tensor("pads", np.array([0, 0, 1, 0, 0, 0, 0, 2])), tensor("w", np.eye(65, 64, dtype=np.float32))]))


def main():
    folder = sys.argv[1]
    pathlib.Path("linear.onnx").write_bytes(layers(f"{folder}/linear", [4, 16], [16, 8]))
    pathlib.Path("mlp.onnx").write_bytes(layers(f"{folder}/mlp_digits", ["batch", 64], [64, 64, 32, 10]))
    inputs = [value("x", ["batch", 3, ""]), value("c", [], 9), value("w", [3])]
    pathlib.Path("unknown.onnx").write_bytes(about(inputs))
    pathlib.Path("about.onnx").write_bytes(about([*inputs, value("t", [], 8)]))
    pathlib.Path("spelled.onnx").write_bytes(spelled())
    beside = graph([node("Add", ["x", "w"], ["y"])], [value("x", [3])], ["y"], [external("w", [3], "w.bin")])
    pathlib.Path("beside.onnx").write_bytes(model(beside))
    for name, sizes in (("right", ["n", 3, -1]), ("wrong", [2, 4, 5]), ("flat", [6])):
        declared = graph([node("Relu", ["x"], ["y"])], [value("x", [2, 3, 5])], [value("y", sizes)])
        pathlib.Path(f"{name}.onnx").write_bytes(model(declared))
    pathlib.Path("newer.onnx").write_bytes(model(declared, ir=15))
    pathlib.Path("w.bin").write_bytes(bytes(12))


main()
