#!/usr/bin/env python3
"""Records the types of PyTorch's results as textual IR, which tests/unit/test_infer.c reads.

    record_infer.py > tests/ops/infer.etir

Program 1 has calls with the types that torch gave their results, program 2 calls that torch
refuses. An input is named after its type. Everything runs on the CPU, because meta kernels
refuse less, and promote some dtypes that the CPU does not promote.
"""
import itertools
import torch

aten = torch.ops.aten
DTYPES = {
    "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "f32": torch.float32, "f64": torch.float64, "bool": torch.bool,
    "bf16": torch.bfloat16, "f8e5m2": torch.float8_e5m2, "f8e4m3fn": torch.float8_e4m3fn,
    "f8e5m2fnuz": torch.float8_e5m2fnuz, "f8e4m3fnuz": torch.float8_e4m3fnuz, "u16": torch.uint16,
    "u32": torch.uint32, "u64": torch.uint64,
}
NAMES = {v: k for k, v in DTYPES.items()}
PLAIN = ["u8", "i8", "i16", "i32", "i64", "f16", "f32", "f64", "bool", "bf16"]


def T(*dim, d="f32"):
    return torch.zeros(dim, dtype=DTYPES[d])


def type_text(t):
    return f"{NAMES[t.dtype]}[{','.join(map(str, t.shape))}]"


class Recorder:
    def __init__(self):
        self.inputs, self.lines, self.seen = {}, [], set()

    def item(self, v):
        if isinstance(v, torch.Tensor):
            name = "_".join([NAMES[v.dtype], *map(str, v.shape)])
            self.inputs[name] = type_text(v)
            return "%" + name
        if v is None:
            return "none"
        if isinstance(v, bool):
            return "true" if v else "false"
        if isinstance(v, torch.dtype):
            return NAMES[v]
        if isinstance(v, (list, tuple)):
            return "[" + ", ".join(map(self.item, v)) + "]"
        if isinstance(v, str):
            return f'"{v}"'
        if isinstance(v, float):
            text = repr(v)
            return text if any(c in text for c in ".en") else text + ".0"
        return str(v)

    def call(self, op, args, kwargs, types):
        """All arguments of the schema in order, defaults filled in."""
        text = []
        for i, a in enumerate(op._schema.arguments):
            value = args[i] if i < len(args) else kwargs.get(a.name, a.default_value)
            text.append(self.item(value))
        name = op.name().replace("::", ".")
        if "." not in name[5:]:
            name += ".default"
        key = f"{name}({', '.join(text)})"
        if key in self.seen:
            return
        self.seen.add(key)
        outs = [f"%r{len(self.lines)}_{i}" for i in range(len(types))]
        self.lines.append(f"  {', '.join(outs)} = {key} : {', '.join(types)}")

    def print(self, title):
        print(f'program "{title}" stage aten')
        ins = ", ".join(f"%{k}: {v}" for k, v in self.inputs.items())
        print(f"method @calls({ins}) {{")
        print("\n".join(self.lines))
        print("  return\n}")


good, bad = Recorder(), Recorder()


def record(op, *args, **kwargs):
    """Accepted or refused, as torch says."""
    try:
        r = op(*args, **kwargs)
    except (RuntimeError, IndexError, TypeError, ValueError) as e:
        if "not implemented for" in str(e):  # a gap of the CPU's kernels, not a rule
            return
        n = len(op._schema.returns)
        bad.call(op, args, kwargs, ["f32[]"] * n)
        return
    rs = r if isinstance(r, (tuple, list)) else [r]
    good.call(op, args, kwargs, [type_text(t) for t in rs])


def record_result_type(op, a, b):
    """For dtypes that few kernels take: what an operator without restrictions of its own gives."""
    try:
        dim = torch.broadcast_shapes(a.shape, getattr(b, "shape", ()))
        good.call(op, [a, b], {}, [type_text(T(*dim, d=NAMES[torch.result_type(a, b)]))])
    except RuntimeError:
        bad.call(op, [a, b], {}, ["f32[]"])


def promotion():
    for a, b in itertools.product(DTYPES, DTYPES):
        record_result_type(aten.add.Tensor, T(2, d=a), T(d=b))
        if a <= b:
            record_result_type(aten.add.Tensor, T(2, d=a), T(2, d=b))
            record_result_type(aten.mul.Tensor, T(d=a), T(d=b))
    for a, s in itertools.product(DTYPES, [2, 2.5, True]):
        record_result_type(aten.mul.Scalar, T(2, d=a), s)
        record_result_type(aten.mul.Scalar, T(d=a), s)
        record(aten.div.Scalar, T(2, d=a), s)
    for a in PLAIN:
        record(aten.div.Tensor, T(2, d=a), T(2, d="i32"))
        for op in [aten.exp, aten.sigmoid, aten.rsqrt, aten.reciprocal, aten.tanh, aten.relu]:
            record(op.default, T(2, d=a)) if a != "bool" or op is not aten.relu else None
        record(aten.clamp.default, T(2, d=a), 0, 6)
        record(aten.clamp.default, T(2, d=a), None, 0.5)
        record(aten.clamp_min.default, T(2, d=a), 0.5)
        record(aten.pow.Tensor_Scalar, T(2, d=a), 2)
        record(aten.pow.Tensor_Scalar, T(2, d=a), 0.5)
        record(aten.rsub.Scalar, T(2, d=a), 1.0) if a != "bool" else None
        record(aten.sum.dim_IntList, T(2, 3, d=a), [1])
        record(aten.sum.dim_IntList, T(2, 3, d=a), [1], dtype=torch.float64)
        record(aten.mean.dim, T(2, 3, d=a), [1])
        record(aten.mean.dim, T(2, 3, d=a), [1], dtype=torch.float32)
        record(aten.amax.default, T(2, 3, d=a), [0])
        record(aten.cat.default, [T(1, d=a), T(2, d="i16")])
        record(aten.cat.default, [T(1, d=a), T(2, d="f16")])
        record(aten._to_copy.default, T(2, d=a), dtype=torch.bfloat16)
        record(aten.full_like.default, T(2, d=a), 1.5)
    for v in [1, 1.5, True]:
        record(aten.full.default, [2, 3], v)
        record(aten.full.default, [], v, dtype=torch.int8)


SHAPES = [(), (1,), (3,), (0,), (2, 3), (1, 3), (2, 1), (4, 1, 3), (4, 2, 3), (5, 1, 1, 3), (2, 0)]


def shapes():
    for a, b in itertools.product(SHAPES, SHAPES):
        record(aten.add.Tensor, T(*a), T(*b))
        record(aten.copy_.default, T(*a), T(*b))
        record(aten.matmul.default, T(*a), T(*b))
    for a in [(), (3,), (2, 1), (4, 1, 3)]:
        for axis in [-4, -3, -2, -1, 0, 1, 2, 3]:
            record(aten.unsqueeze.default, T(*a), axis)
            record(aten.squeeze.dim, T(*a), axis)
            record(aten.select.int, T(*a), axis, 0)
            record(aten.select.int, T(*a), axis, -2)
            record(aten._softmax.default, T(*a), axis, False)
            record(aten.sum.dim_IntList, T(*a), [axis])
            record(aten.sum.dim_IntList, T(*a), [axis], True)
            for other in [-2, 0, 1]:
                record(aten.transpose.int, T(*a), axis, other)
                record(aten.flatten.using_ints, T(*a), other, axis)
                record(aten.mean.dim, T(*a), [axis, other])
                record(aten.squeeze.dims, T(*a), [axis, other])
    for a in SHAPES:
        record(aten.squeeze.default, T(*a))
        record(aten.t.default, T(*a))
        record(aten.mean.dim, T(*a), None)
        record(aten.mean.dim, T(*a), [], True)
        record(aten.mean.default, T(*a))
        record(aten.mm.default, T(*a), T(3, 5))
        record(aten.bmm.default, T(4, 5, 2), T(*a))
        for s in [[6], [-1], [3, -1], [-1, 2, -1], [0, -1], [], [1], [1, 1], [-2], [2, 3, 1]]:
            record(aten.view.default, T(*a), s)
            record(aten.reshape.default, T(*a), s)
        for s in [[-1], [3], [2, 3], [-1, 3], [4, 2, 3], [7, -1, 3], [-1, -1, -1], [0], [-1, 2, 3]]:
            record(aten.expand.default, T(*a), s)
    for p in [[0, 1, 2], [2, 0, 1], [-1, 0, 1], [0, 1], [0, 0, 1], [0, 1, 3]]:
        record(aten.permute.default, T(2, 3, 4), p)
    for start, end, step in itertools.product([None, 0, 2, -3, 9, -9], [None, 0, 4, -1, 99, -99,
                                              2**63 - 1], [1, 2, 3]):
        record(aten.slice.Tensor, T(2, 7), 1, start, end, step)
    record(aten.slice.Tensor, T(2, 7), 1, 0, 5, 0)
    record(aten.slice.Tensor, T(2, 7), 2, 0, 5, 1)
    record(aten.slice.Tensor, T(), 0, 0, 5, 1)
    for s in [[2, 3], [-1, 2], [6, 1], [4, -1], [5, 1], [-1, -1], []]:
        record(aten.unflatten.int, T(2, 6), 1, s)
    record(aten.unflatten.int, T(2, 6), 2, [6])
    for parts, axis in [([(2, 3), (4, 3)], 0), ([(2, 3), (2, 5)], 1), ([(2, 3), (2, 5)], -1),
                        ([(2, 3), (2, 5)], 0), ([(0,), (2, 3)], 1), ([(2, 3), (0,)], 0), ([(), ()], 0),
                        ([(2, 3)], 2), ([(2, 3), (3,)], 0), ([(0,), (0,)], 0)]:
        record(aten.cat.default, [T(*p) for p in parts], axis)
    for pad in [[1, 2], [1, 2, 3, 4], [-1, 0], [-5, 0], [-3, 0], [1], [1, 1, 1, 1, 1, 1], []]:
        record(aten.constant_pad_nd.default, T(2, 4), pad)
    record(aten.full.default, [2, -1], 0)


def networks():
    for x, w, b in [((2, 4), (3, 4), (3,)), ((4,), (3, 4), None), ((5, 2, 4), (3, 4), (3,)),
                    ((2, 4), (3, 5), None), ((2, 4), (3, 4), (4,))]:
        record(aten.linear.default, T(*x), T(*w), None if b is None else T(*b))
    for bias in [(5,), (1,), (2, 5), (2, 1), (), (3,), (1, 2, 5)]:
        record(aten.addmm.default, T(*bias), T(2, 3), T(3, 5))
    record(aten.mm.default, T(2, 3), T(4, 5))
    geometry = [([1, 1], [0, 0], [1, 1]), ([2, 2], [1, 1], [1, 1]), ([2, 1], [0, 2], [1, 2]),
                ([3], [1], [2]), ([0, 1], [0, 0], [1, 1]), ([1, 1], [-1, 0], [1, 1]),
                ([1, 1], [0, 0], [0, 1]), ([1, 1], [0, 0], [4, 4]), ([1, 1, 1], [0, 0], [1, 1])]
    for s, p, d in geometry:
        record(aten.conv2d.default, T(2, 4, 9, 8), T(6, 4, 3, 3), T(6), s, p, d, 1)
        record(aten.conv2d.default, T(4, 9, 8), T(6, 4, 3, 3), None, s, p, d, 1)
        record(aten.convolution.default, T(2, 4, 9, 8), T(6, 2, 3, 3), T(6), s, p, d, False, [0, 0], 2)
    for x, w, b, g in [((2, 4, 9, 8), (6, 4, 3, 3), (5,), 1), ((2, 4, 9, 8), (6, 3, 3, 3), None, 1),
                       ((2, 4, 9, 8), (4, 1, 3, 3), None, 4), ((2, 4, 9, 8), (6, 1, 3, 3), None, 4),
                       ((2, 4, 9, 8), (6, 4, 3), None, 1), ((9, 8), (6, 4, 3, 3), None, 1),
                       ((2, 4, 2, 8), (6, 4, 3, 3), None, 1), ((2, 4, 9, 8), (6, 4, 3, 3), None, 0),
                       ((0, 4, 9, 8), (6, 4, 3, 3), None, 1)]:
        record(aten.conv2d.default, T(*x), T(*w), None if b is None else T(*b), [1, 1], [0, 0], [1, 1], g)
    for s, p, d in [([1], [0], [1]), ([2], [1], [2]), ([0], [0], [1])]:
        record(aten.conv1d.default, T(2, 4, 9), T(6, 4, 3), None, s, p, d, 1)
    for s, p, d, o, g in [([1, 1], [0, 0], [1, 1], [0, 0], 1), ([2, 2], [1, 1], [1, 1], [1, 0], 1),
                          ([3, 2], [0, 1], [1, 2], [2, 1], 2), ([1, 1], [0, 0], [1, 1], [1, 1], 1)]:
        record(aten.convolution.default, T(2, 4, 5, 6), T(4, 3, 3, 2), None, s, p, d, True, o, g)
    for k, s, p, d in [([2, 2], [], [0, 0], [1, 1]), ([3, 3], [2, 2], [1, 1], [1, 1]), ([3], [2], [1], [1]),
                       ([3, 2], [2, 3], [1, 0], [1, 2]), ([3, 3], [2, 2], [2, 2], [1, 1]),
                       ([0, 2], [], [0, 0], [1, 1]), ([2, 2], [0, 1], [0, 0], [1, 1]),
                       ([12, 12], [], [0, 0], [1, 1]), ([2, 2], [5, 5], [1, 1], [1, 1])]:
        for ceil in [False, True]:
            record(aten.max_pool2d_with_indices.default, T(2, 4, 9, 8), k, s, p, d, ceil)
            record(aten.max_pool2d.default, T(2, 4, 9, 8), k, s, p, d, ceil)
            if d == [1, 1]:
                record(aten.avg_pool2d.default, T(2, 4, 9, 8), k, s, p, ceil)
    record(aten.avg_pool2d.default, T(2, 4, 9, 8), [2, 2], [], [0, 0], False, True, 0)
    record(aten.max_pool2d_with_indices.default, T(4, 9, 8), [2, 2], [], [0, 0], [1, 1], False)
    record(aten.max_pool2d_with_indices.default, T(9, 8), [2, 2], [], [0, 0], [1, 1], False)
    for x in [(2, 4, 9, 8), (4, 9, 8), (9, 8)]:
        record(aten._adaptive_avg_pool2d.default, T(*x), [1, 3])
    record(aten._native_batch_norm_legit_no_training.default, T(2, 4, 3), T(4), T(4), T(4), T(4), 0.1, 1e-5)
    for x, h, c, w, b in [((2, 3), (2, 4), (2, 4), (16, 3), (16,)), ((2, 3), (2, 4), (2, 4), (16, 3), None),
                          ((2, 3), (2, 4), (2, 4), (12, 3), None), ((2, 5), (2, 4), (2, 4), (16, 3), (16,)),
                          ((3, 3), (2, 4), (2, 4), (16, 3), (16,)), ((2, 3), (2, 4), (2, 5), (16, 3), (16,)),
                          ((2, 3), (2, 4), (2, 4), (16, 3), (4,)), ((3,), (4,), (4,), (16, 3), (16,))]:
        bias = None if b is None else T(*b)
        record(aten.lstm_cell.default, T(*x), [T(*h), T(*c)], T(*w), T(w[0], 4), bias, bias)
    record(aten.lstm_cell.default, T(2, 3), [T(2, 4)], T(16, 3), T(16, 4))
    record(aten.lstm_cell.default, T(2, 3), [T(2, 4), T(2, 4)], T(16, 3), T(16, 5))
    for op in [aten.softmax.int, aten.log_softmax.int]:
        record(op, T(2, 3), 1)
        record(op, T(2, 3, d="i32"), 1, torch.float32)
        record(op, T(2, 3), 2)


def transformers():
    for a, b in itertools.product(SHAPES, SHAPES):
        record(aten.eq.Tensor, T(*a), T(*b))
        record(aten.where.self, T(2, 3, d="bool"), T(*a), T(*b))
        record(aten.expand_as.default, T(*a), T(*b))
        record(aten.masked_fill.Scalar, T(*a), T(*b, d="bool"), 1.0)
    for a, b in itertools.product(PLAIN, PLAIN):
        record(aten.lt.Tensor, T(2, d=a), T(2, d=b))
        record(aten.bitwise_and.Tensor, T(2, d=a), T(d=b))
        record(aten.where.self, T(2, d="bool"), T(2, d=a), T(d=b))
        record(aten.type_as.default, T(2, d=a), T(3, d=b))
    for a in PLAIN:
        for v in [2, 0.5, True]:
            record(aten.ge.Scalar, T(2, d=a), v)
            record(aten.where.ScalarOther, T(2, d="bool"), T(2, d=a), v)
            record(aten.new_full.default, T(2, d=a), [3], v)
        for op in [aten.logical_not.default, aten.bitwise_not.default, aten.any.default,
                   aten.zeros_like.default, aten.tril.default]:
            record(op, T(2, 3, d=a))
        record(aten.any.dim, T(2, 3, d=a), 1, True)
        record(aten.any.dims, T(2, 3, d=a), [0, 1])
        record(aten.cumsum.default, T(2, 3, d=a), 1)
        record(aten.cumsum.default, T(2, 3, d=a), -1, dtype=torch.float64)
        record(aten.index.Tensor, T(4, d=a), [T(2, d="i64")])
        record(aten.embedding.default, T(4, 3), T(2, d=a)) if a in ["i64", "i32", "f32"] else None
        record(aten.gather.default, T(4, 3), 0, T(2, 3, d=a)) if a in ["i64", "f32"] else None
        record(aten.stack.default, [T(2, d=a), T(2, d="i16")])
    for end in [0, 5, 2.5, 4.0]:
        record(aten.arange.default, end)
        record(aten.arange.start, 1, end)
        for step in [1, 2, 0.5, -1, 0]:
            record(aten.arange.start_step, 0, end, step)
    record(aten.arange.start_step, 9, -2, -3, dtype=torch.int32)
    for axis in [-3, -2, -1, 0, 1, 2]:
        record(aten.stack.default, [T(2, 3), T(2, 3)], axis)
        record(aten.cumsum.default, T(2, 3), axis)
        record(aten.diff.default, T(2, 3), 1, axis)
        record(aten.gather.default, T(2, 3), axis, T(2, 2, d="i64"))
        record(aten.index_select.default, T(2, 3), axis, T(5, d="i64"))
        record(aten.repeat_interleave.self_int, T(2, 3), 2, axis)
        record(aten.any.dim, T(2, 3), axis)
    record(aten.stack.default, [T(2, 3), T(3, 2)])
    record(aten.repeat_interleave.self_int, T(2, 3), 2)
    record(aten.diff.default, T(2, 3), 2, 1, T(2, 4))
    for by in [[2], [2, 1], [1, 2, 3], [0, 1], []]:
        record(aten.repeat.default, T(2, 3), by)
    I = lambda *dim: T(*dim, d="i64")
    for picks in [[I(6)], [None, I(2, 3)], [I(2, 1), I(3)], [I(3), None, I(2, 1)], [None, I(4), I(3, 4)],
                  [I(2), I(2), I(2)], [None, None, I(3)], [I(2), I(3)], [I(), I()], [I(0)], []]:
        record(aten.index.Tensor, T(4, 5, 3), picks)
        record(aten.index_put.default, T(4, 5, 3), picks, T())
        record(aten.index_put.default, T(4, 5, 3), picks, T(2, 3))
    record(aten.index.Tensor, T(4), [I(1), I(1)])
    for q, k, v in [((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 6)), ((5, 8), (7, 8), (7, 6)),
                    ((2, 3, 5, 8), (2, 3, 7, 9), (2, 3, 7, 6)), ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 6, 6))]:
        record(aten.scaled_dot_product_attention.default, T(*q), T(*k), T(*v))
        record(aten.scaled_dot_product_attention.default, T(*q), T(*k), T(*v), T(5, 7, d="bool"))
        record(aten.scaled_dot_product_attention.default, T(*q), T(*k), T(*v), T(5, 7), 0.0, True)
    record(aten.scaled_dot_product_attention.default, T(2, 6, 5, 8), T(2, 2, 7, 8), T(2, 2, 7, 8),
           enable_gqa=True)
    for shape, w in [([4], (4,)), ([3, 4], (3, 4)), ([3], (3,)), ([4], (3,)), ([], ()), ([4], None)]:
        weight = None if w is None else T(*w)
        record(aten.layer_norm.default, T(2, 3, 4), shape, weight, weight)
        record(aten.native_layer_norm.default, T(2, 3, 4), shape, weight, None, 1e-5)
        record(aten.rms_norm.default, T(2, 3, 4), shape, weight)
    for s in [(2, 3, 5), (1, 3, 5), (5,), (2, 3, 4), (2, 2, 3, 5)]:
        record(aten.baddbmm.default, T(*s), T(2, 3, 4), T(2, 4, 5))
    record(aten.scalar_tensor.default, 2)
    record(aten.scalar_tensor.default, 2, dtype=torch.int64)
    record(aten.linalg_vector_norm.default, T(2, 3), 2, [1], True)
    record(aten.linalg_vector_norm.default, T(2, 3))


def corners():
    for a in PLAIN:
        record(aten.square.default, T(2, d=a))
    for i in [(), (1,), (2,), (1, 1)]:
        record(aten.index_select.default, T(), 0, T(*i, d="i64"))
    for d in ["u8", "f32", "i64"]:
        record(aten.gather.default, T(3), 0, T(2, 0, d=d))
    for dilation, padding in [(2, "same"), (3, "same"), (2, "valid"), (3, "valid")]:
        record(aten.conv1d.padding, T(2, 4, 6), T(6, 4, 3), T(6), [1], padding, [dilation], 1)
        record(aten.conv2d.padding, T(2, 4, 9, 5), T(6, 4, 2, 3), None, [1], padding, [dilation], 1)


def copies():
    I = lambda *dim: T(*dim, d="i64")
    calls = [(T(4, 5), 0, I(2), T(2, 5)), (T(4, 5), 0, I(2), T(3, 5)), (T(4, 5), 0, I(2), T(2, 4)),
             (T(4, 5), 0, I(2, 2), T(2, 5)), (T(4, 5), 0, T(2), T(2, 5)), (T(4, 5), 0, I(), T(1, 5)),
             (T(4, 5), 0, I(2), T(2, 5, d="f16")), (T(4, 5), 0, I(2), T(2)), (T(), 0, I(1), T()),
             (T(), 1, I(1), T()), (T(4, 5), 0, I(1), T()), (T(4), 0, I(1), T()), (T(4), 0, I(2), T()),
             (T(4, d="i8"), -1, I(0), T(0, d="i8"))]
    calls += [(T(4, 5), axis, I(2), T(4, 2)) for axis in [-3, -2, -1, 1, 2, 2**63 - 1, -2**63]]
    for call in calls:
        record(aten.index_copy.default, *call)
        record(aten.index_copy_.default, *call)


def rows():
    I = lambda *dim: T(*dim, d="i64")
    for x in [T(2, 3), T(2, 3, d="u8"), T(), T(2, 0), T(0, 2)]:
        for op in [aten.argmax.default, aten.argmin.default]:
            for args in [(), (None, True), (0,), (-1, True), (1,), (2,)]:
                record(op, x, *args)
        for op in [aten.max.dim, aten.min.dim, aten.prod.dim_int]:
            for args in [(0,), (-1, True), (1,), (2,)]:
                record(op, x, *args)
        for op in [aten.max.default, aten.min.default, aten.prod.default]:
            record(op, x)
        for axes in [[], [0], [0, 1], [-1], [0, 0], [2]]:
            record(aten.amin.default, x, axes, True)
        for k, axis in [(0, 0), (1, 0), (2, -1), (3, 1), (4, 1), (1, 2)]:
            record(aten.topk.default, x, k, axis)
        for axis in [0, -1, 1, 2]:
            record(aten.sort.stable, x, stable=True, dim=axis)
    scatters = [(T(2, 3), 0, I(2, 2), T(2, 2)), (T(2, 3), 1, I(2, 4), T(2, 4)), (T(2, 3), 0, I(2, 4), T(2, 4)), (T(2, 3), 0, I(1, 2), T(3, 3)),
                (T(2, 3), 0, I(3, 2), T(2, 2)), (T(2, 3), 0, I(2), T(2)), (T(2, 3), 2, I(2, 2), T(2, 2)), (T(2, 3), 0, I(2, 2), T(2, 2, d="f64")),
                (T(), 0, I(), T()), (T(), 0, I(1), T(1)), (T(2, 3), 0, I(0), T(2, 2)), (T(0, 3), 0, I(1, 3), T(1, 3)), (T(2, 3), 0, T(2, 2), T(2, 2))]
    for x, axis, index, src in scatters:
        record(aten.scatter.src, x, axis, index, src)
        record(aten.scatter_add.default, x, axis, index, src)
        record(aten.scatter.value, x, axis, index, 2.0)


promotion()
shapes()
networks()
transformers()
corners()
copies()
rows()
print(f"; infer.etir -- types of results, recorded by record_infer.py from torch {torch.__version__}.")
good.print("accepted")
bad.print("refused")
