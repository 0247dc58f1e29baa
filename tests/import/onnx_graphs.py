"""ONNX files of graphs within graphs: functions, branches and loops, right and wrong."""
import numpy as np

from onnx_bytes import data, graph, model, node, number, simple, tensor, value

BOOL, INT64 = 9, 7
X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
W = (np.eye(3) * 0.75).astype(np.float32)


def function(name, inputs, outputs, nodes, attributes=(), opset=17, domain="f"):
    return data(25, data(1, name) + b"".join(data(4, i) for i in inputs) + b"".join(data(5, o) for o in outputs)
                + b"".join(data(6, a) for a in attributes) + b"".join(data(7, n) for n in nodes)
                + data(9, data(1, "") + number(2, opset)) + data(10, domain))


def refers(op, inputs, outputs, **attributes):
    """A node whose attributes are those of the function around it."""
    return node(op, inputs, outputs) + b"".join(
        data(5, data(1, k) + data(21, v) + number(20, 1)) for k, v in attributes.items())


def calls(nodes, *functions):
    return model(graph(nodes, [value("x", [2, 3])], ["y"]), tail=b"".join(functions))


def looped(inputs, body, constants=(), extra=()):
    return model(graph([*extra, node("Loop", inputs, ["y"], body=body)], [value("x", [2, 3])], ["y"],
                       [tensor("w", W), tensor("n", np.array(7)), *constants]))


def turns(count):
    x = X
    for i in range(count):
        x = x @ W + np.float32(i)
    return x


def until_small():
    x = X
    while np.abs(x).max() > 0.5:
        x = x @ W
    return x


LEAKY = function("Leak", ["a", "b"], ["c"], [refers("LeakyRelu", ["a"], ["l"], alpha="slope"), node("Clip", ["l", "b"], ["c"])],
                 ["slope"])
TWICE = function("Twice", ["a"], ["c"], [refers("Leak", ["a"], ["b"]) + data(7, "f"), refers("Leak", ["b"], ["c"]) + data(7, "f")])
TURN = graph([node("MatMul", ["v", "w"], ["p"]), node("Cast", ["i"], ["f"], to=1), node("Add", ["p", "f"], ["q"]),
              node("Identity", ["go"], ["on"])], [value("i", [], INT64), value("go", [], BOOL), value("v", [2, 3])], ["on", "q"])
SHRINK = graph([node("MatMul", ["v", "w"], ["q"]), node("Abs", ["q"], ["m"]), node("ReduceMax", ["m"], ["s"], keepdims=0),
                node("Greater", ["s", "half"], ["on"])],
               [value("i", [], INT64), value("go", [], BOOL), value("v", [2, 3])], ["on", "q"])
HALF = tensor("half", np.array(0.5, np.float32))
POSITIVE = [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Greater", ["s", "half"], ["c"])]


def branch(then, otherwise):
    return simple([*POSITIVE, node("Relu", ["x"], ["r"]), node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)],
                  constants=[HALF, tensor("w", W)])


BRANCHES = branch(graph([node("MatMul", ["x", "w"], ["t"])], [], ["t"]),
                  graph([node("MatMul", ["r", "w"], ["p"]), node("Sub", ["p", "x"], ["t"])], [], ["t"]))
RIGHT = {  # bytes, the input, what y is of it, flags
    "function": (calls([node("Leak", ["x"], ["y"], "f")], LEAKY), X, lambda x: np.where(x < 0, 0.01 * x, x), []),
    "function_in_function": (calls([node("Twice", ["x"], ["y"], "f")], LEAKY, TWICE), X, lambda x: np.where(x < 0, 1e-4 * x, x), []),
    "loop": (looped(["n", "", "x"], TURN), X, lambda x: turns(7), []),
    "long_loop": (looped(["many", "", "x"], TURN, [tensor("many", np.array(300))]), X, lambda x: turns(300), []),
    "loop_by_elements": (looped(["many", "go", "x"], SHRINK, [HALF, tensor("many", np.array(1000))],
                                [node("Constant", [], ["one"], value_int=1), node("Cast", ["one"], ["go"], to=9)]),
                         X, lambda x: until_small(), []),
    "branch_by_elements": (BRANCHES, np.abs(X), lambda x: x @ W, []),
    "other_branch": (BRANCHES, -np.abs(X), lambda x: -x, []),
    "scan": (simple([node("Scan", ["x"], ["y"], num_scan_inputs=1, body=graph([node("Neg", ["a"], ["b"])], [value("a", [3])], ["b"]))]),
             X, lambda x: -x, []),
}
CIRCLE = function("Leak", ["a"], ["c"], [node("Twice", ["a"], ["c"], "f")])
DOUBLES = b"".join(function(f"D{i}", ["a"], ["c"], [node(f"D{i + 1}", ["a"], ["b"], "f"), node(f"D{i + 1}", ["b"], ["c"], "f")])
                   for i in range(31)) + function("D31", ["a"], ["c"], [node("Neg", ["a"], ["c"])])
NEG = graph([node("Neg", ["x"], ["t"])], [], ["t"])
WRONG = {  # bytes, a part of the message, the exit code
    "circle": (calls([node("Twice", ["x"], ["y"], "f")], CIRCLE, TWICE), "call each other in a circle", 1),
    "doublings": (calls([node("D0", ["x"], ["y"], "f")], DOUBLES), "have 300,000 operands and more", 4),
    "two_of_a_name": (calls([node("Leak", ["x"], ["y"], "f")], LEAKY, LEAKY), "two functions of one name", 1),
    "function_output": (calls([node("F", ["x"], ["y"], "f")], function("F", ["a"], ["c"], [node("Neg", ["a"], ["b"])])),
                        "whose output 'c' no node defines", 1),
    "function_gives_absent": (calls([node("F", ["x"], ["y"], "f")], function("F", ["a", "b"], ["b"], [])),
                              "whose output 'b' no node defines", 1),
    "function_operator": (calls([node("F", ["x"], ["y"], "f")], function("F", ["a"], ["c"], [node("Zap", ["a"], ["c"])])),
                          "(Zap): the operator of opset 17 is not supported, in 1 node", 4),
    "function_sees_nothing": (calls([node("F", ["x"], ["y"], "f")], function("F", ["a"], ["c"], [node("Add", ["a", "x"], ["c"])])),
                              "reads 'x', which no node before it defines", 1),
    "function_inputs": (calls([node("F", ["x", "x"], ["y"], "f")], function("F", ["a"], ["c"], [node("Neg", ["a"], ["c"])])),
                        "more inputs or outputs than the function", 1),
    "function_opset": (calls([node("F", ["x"], ["y"], "f")], function("F", ["a"], ["c"], [node("Neg", ["a"], ["c"])], opset=99)),
                       "opset 99 is not read", 4),
    "refers_to_nothing": (simple([refers("LeakyRelu", ["x"], ["y"], alpha="slope")]), "refers to an attribute of a function", 1),
    "branches_differ": (branch(NEG, graph([node("ReduceSum", ["x"], ["t"], keepdims=0)], [], ["t"])), "differs in type or shape", 4),
    "branch_outputs": (branch(NEG, graph([node("Neg", ["x"], ["t"])], [], ["t", "t"])), "another number of outputs", 1),
    "loop_body": (looped(["n", "", "x"], graph([RELU := node("Relu", ["v"], ["q"])], [value("v", [2, 3])], ["q"])),
                  "another number of inputs or outputs than its body", 1),
    "loop_that_grows": (looped(["many", "", "x"], graph([node("Concat", ["v", "v"], ["q"], axis=0), node("Identity", ["go"], ["on"])],
                                                        [value("i", [], INT64), value("go", [], BOOL), value("v", [2, 3])], ["on", "q"]),
                               [tensor("many", np.array(40))]), "does not fit 31 bits", 4),
    "scan_axes": (simple([node("Scan", ["x"], ["y"], num_scan_inputs=9, body=graph([RELU], [value("v", [3])], ["q"]))]),
                  "another number of inputs than its body", 1),
}
