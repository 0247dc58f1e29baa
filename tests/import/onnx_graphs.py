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
# Sequences and optionals, which are known on import.
PLACES = [tensor(name, np.array(at)) for name, at in (("first", 0), ("last", -1), ("two", 2), ("sizes", [1, 2]))]
GROWS = graph([node("Cast", ["i"], ["f"], to=1), node("Add", ["x", "f"], ["p"]), node("SequenceInsert", ["v", "p"], ["q"]),
               node("Identity", ["go"], ["on"])], [value("i", [], INT64), value("go", [], BOOL), value("v", [])], ["on", "q"])
TAKES = graph([node("SequenceAt", ["l", "last"], ["a"]), node("SequenceAt", ["l", "first"], ["b"]), node("Sub", ["a", "b"], ["t"])],
              [], ["t"])
RIGHT |= {
    "constructed": (simple([node("Neg", ["x"], ["n"]), node("SequenceConstruct", ["x", "n", "w"], ["s"]),
                            node("SequenceErase", ["s", "first"], ["e"]), node("SequenceInsert", ["e", "x", "last"], ["f"]),
                            node("Identity", ["f"], ["g"]), node("SequenceAt", ["g", "last"], ["m"]), node("SequenceAt", ["g", "first"], ["o"]),
                            node("MatMul", ["o", "m"], ["y"])], constants=[*PLACES, tensor("w", W)]), X, lambda x: -x @ W, []),
    "split_and_joined": (simple([node("SplitToSequence", ["x", "sizes"], ["s"], axis=1), node("SequenceAt", ["s", "first"], ["a"]),
                                 node("SequenceInsert", ["s", "a"], ["t"]), node("ConcatFromSequence", ["t"], ["y"], axis=-1)],
                                constants=PLACES), X, lambda x: x[:, [0, 1, 2, 0]], []),
    "split_evenly": (simple([node("SplitToSequence", ["x", "two"], ["s"], axis=1), node("SequenceAt", ["s", "last"], ["y"])],
                            constants=PLACES), X, lambda x: x[:, 2:], []),
    "split_into_one": (simple([node("SplitToSequence", ["x", "huge"], ["s"], axis=1), node("SequenceAt", ["s", "last"], ["y"])],
                              constants=[*PLACES, tensor("huge", np.array(2**62))]), X, lambda x: x, []),
    "stacked": (simple([node("SplitToSequence", ["x"], ["s"], axis=1, keepdims=0), node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=1)]),
                X, lambda x: x.T, []),
    "number_of_items": (simple([node("SplitToSequence", ["x"], ["s"]), node("SequenceLength", ["s"], ["n"]), node("Cast", ["n"], ["f"], to=1),
                                node("Add", ["x", "f"], ["y"])]), X, lambda x: x + 2, []),
    "loop_of_items": (simple([node("SequenceEmpty", [], ["none"]), node("Loop", ["two", "", "none"], ["s"], body=GROWS),
                              node("ConcatFromSequence", ["s"], ["y"], axis=0)], constants=PLACES),
                      X, lambda x: np.concatenate([x, x + 1]), []),
    "branch_of_items": (simple([*POSITIVE, node("Neg", ["x"], ["n"]), node("SequenceConstruct", ["x", "n"], ["l"]),
                                node("If", ["c"], ["y"], then_branch=TAKES, else_branch=graph([node("Relu", ["x"], ["t"])], [], ["t"]))],
                               constants=[*PLACES, HALF]), np.abs(X), lambda x: -2 * x, []),
    "name_of_a_name": (simple([*POSITIVE, node("Neg", ["x"], ["a"]), node("Identity", ["a"], ["b"]),
                               node("If", ["c"], ["y"], then_branch=graph([node("Mul", ["a", "b"], ["t"])], [], ["t"]),
                                    else_branch=graph([node("Relu", ["b"], ["t"])], [], ["t"]))], constants=[HALF]),
                       np.abs(X), lambda x: x * x, []),
    "optional": (simple([node("Optional", ["x"], ["o"]), node("OptionalHasElement", ["o"], ["c"]), node("If", ["c"], ["y"],
                         then_branch=graph([node("OptionalGetElement", ["o"], ["t"])], [], ["t"]),
                         else_branch=graph([node("Neg", ["x"], ["t"])], [], ["t"]))]), X, lambda x: x, []),
    "empty_optional": (simple([node("Optional", [], ["o"]), node("OptionalHasElement", ["o"], ["c"]), node("If", ["c"], ["y"],
                               then_branch=graph([node("OptionalGetElement", ["o"], ["t"])], [], ["t"]),
                               else_branch=graph([node("Neg", ["x"], ["t"])], [], ["t"]))]), X, lambda x: -x, []),
}
CIRCLE = function("Leak", ["a"], ["c"], [node("Twice", ["a"], ["c"], "f")])
DOUBLES = b"".join(function(f"D{i}", ["a"], ["c"], [node(f"D{i + 1}", ["a"], ["b"], "f"), node(f"D{i + 1}", ["b"], ["c"], "f")])
                   for i in range(31)) + function("D31", ["a"], ["c"], [node("Neg", ["a"], ["c"])])
NEG = graph([node("Neg", ["x"], ["t"])], [], ["t"])
WRONG = {  # bytes, a part of the message, the exit code
    "circle": (calls([node("Twice", ["x"], ["y"], "f")], CIRCLE, TWICE), "call each other in a circle", 1),
    "doublings": (calls([node("D0", ["x"], ["y"], "f")], DOUBLES), "have 200,000 operands and more", 4),
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
    "sequence_as_output": (simple([node("SequenceConstruct", ["x"], ["y"])]), "the output 'y' is a sequence", 4),
    "sequence_as_tensor": (simple([node("SequenceConstruct", ["x"], ["s"]), node("Neg", ["s"], ["y"])]), "which is a sequence", 4),
    "tensor_as_sequence": (simple([node("SequenceAt", ["x", "first"], ["y"])], constants=PLACES), "expected a sequence", 1),
    "item_out_of_range": (simple([node("SequenceConstruct", ["x"], ["s"]), node("SequenceAt", ["s", "two"], ["y"])], constants=PLACES),
                          "place 2 is out of range for a sequence of 1 items", 1),
    "item_by_elements": (simple([node("SequenceConstruct", ["x"], ["s"]), node("ArgMax", ["x"], ["a"], keepdims=0), node("SequenceAt", ["s", "a"], ["y"])]),
                         "at a position that is known only at run time", 4),
    "open_number_of_items": (simple([node("SplitToSequence", ["x"], ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=0)], ("n", 3)),
                             "fix the sizes of the inputs with --dim", 4),
    "nothing_to_join": (simple([node("SequenceEmpty", [], ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=0)]), "without items", 4),
    "nothing_to_take": (simple([node("Optional", [], ["o"]), node("OptionalGetElement", ["o"], ["y"])]), "an empty optional", 1),
    "sequence_within": (simple([node("SequenceConstruct", ["x"], ["s"]), node("SequenceConstruct", ["s"], ["y"])]), "within a sequence", 4),
}
