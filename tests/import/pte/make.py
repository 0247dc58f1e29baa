#!/usr/bin/env python3
"""make.py -- writes the hand-built .pte files of this folder; needs the package `flatbuffers`.

good_*.pte run; bad_*.pte are refused, by open, init or run, as tests/unit/test_runtime.c says;
limit_*.pte ask for more than a host may want to give.
Slots are those of program.fbs.  off_*.pte and mini_*.pte are from other writers and stay as they
are.
"""
import os
import struct

import flatbuffers

FLOAT, LONG, BOOL = 6, 4, 11
SIZE = {FLOAT: 4, LONG: 8, BOOL: 1}
VALUE = dict(Null=1, Int=2, Bool=3, Double=4, Tensor=5, String=6, IntList=7, TensorList=10,
             OptionalTensorList=11)
CALL = dict(Kernel=1, Delegate=2, Move=3, Jump=4, Free=5)
HERE = os.path.dirname(os.path.abspath(__file__))


class Pte:
    def __init__(self):
        self.b = flatbuffers.Builder(1024)
        self.values, self.instrs, self.ops, self.op_index = [], [], [], {}
        self.consts, self.initial, self.arena = [b""], [b""], 0

    def vec(self, fmt, items):
        size = struct.calcsize("<" + fmt)
        self.b.StartVector(size, len(items), size)
        put = dict(i=self.b.PrependInt32, q=self.b.PrependInt64, Q=self.b.PrependUint64,
                   B=self.b.PrependByte, o=self.b.PrependUOffsetTRelative)
        for v in reversed(items):
            put[fmt](v)
        return self.b.EndVector()

    def offsets(self, items):
        self.b.StartVector(4, len(items), 4)
        for v in reversed(items):
            self.b.PrependUOffsetTRelative(v)
        return self.b.EndVector()

    def table(self, n_slots, *fields):
        self.b.StartObject(n_slots)
        put = dict(B=self.b.PrependUint8Slot, i=self.b.PrependInt32Slot, I=self.b.PrependUint32Slot,
                   q=self.b.PrependInt64Slot, Q=self.b.PrependUint64Slot,
                   d=self.b.PrependFloat64Slot)
        for slot, code, v in fields:
            if code == "o":
                if v:
                    self.b.PrependUOffsetTRelativeSlot(slot, v, 0)
            else:
                put[code](slot, v, 0)
        return self.b.EndObject()

    # -- values

    def value(self, kind, table):
        self.values.append(self.table(2, (0, "B", VALUE[kind]), (1, "o", table)))
        return len(self.values) - 1

    def int(self, v):
        return self.value("Int", self.table(1, (0, "q", v)))

    def bool(self, v):
        return self.value("Bool", self.table(1, (0, "B", int(v))))

    def double(self, v):
        return self.value("Double", self.table(1, (0, "d", v)))

    def null(self):
        return self.value("Null", self.table(0))

    def ints(self, ids):
        return self.value("IntList", self.table(1, (0, "o", self.vec("q", ids))))

    def tensors(self, ids, kind="TensorList"):
        return self.value(kind, self.table(1, (0, "o", self.vec("i", ids))))

    def tensor(self, shape, dtype=FLOAT, const=None, initial=None, planned=True, dynamic=False, at=None):
        """`at` is the byte of the pool where it lies; without it, it lies after everything before it."""
        n = SIZE[dtype]
        for d in shape:
            n *= d
        alloc = data = 0
        if const is not None:
            self.consts.append(const)
            data = len(self.consts) - 1
        elif planned:
            at = self.arena if at is None else at
            alloc = self.table(3, (0, "I", 1), (1, "I", at))
            self.arena = max(self.arena, at + (n + 15) // 16 * 16)
        if initial is not None:
            self.initial.append(initial)
            data = len(self.initial) - 1
        sizes, order = self.vec("i", shape), self.vec("B", range(len(shape)))
        return self.value("Tensor", self.table(
            10, (0, "B", dtype), (2, "o", sizes), (3, "o", order), (5, "I", data), (6, "o", alloc),
            (8, "B", int(dynamic))))

    # -- instructions

    def instr(self, kind, table):
        self.instrs.append(self.table(2, (0, "B", CALL[kind]), (1, "o", table)))

    def kernel(self, name, overload, *args):
        if (name, overload) not in self.op_index:
            self.op_index[name, overload] = len(self.ops)
            n, o = self.b.CreateString(name), self.b.CreateString(overload)
            self.ops.append(self.table(2, (0, "o", n), (1, "o", o)))
        a = self.vec("i", args)
        self.instr("Kernel", self.table(2, (0, "i", self.op_index[name, overload]), (1, "o", a)))

    def prim(self, name, *args):
        self.kernel("executorch_prim::" + name.split(".")[0], name.split(".")[1], *args)

    def move(self, a, b):
        self.instr("Move", self.table(2, (0, "i", a), (1, "i", b)))

    def jump_false(self, cond, to):
        self.instr("Jump", self.table(2, (0, "i", cond), (1, "i", to)))

    def free(self, v):
        self.instr("Free", self.table(1, (0, "i", v)))

    # -- file

    def plan(self, name, inputs, outputs):
        inp, out = self.vec("i", inputs), self.vec("i", outputs)
        instrs = self.offsets(self.instrs)
        chains = self.offsets([self.table(4, (2, "o", instrs))])
        values, ops, delegates = self.offsets(self.values), self.offsets(self.ops), self.offsets([])
        pools, empty = self.vec("q", [0, self.arena]), self.b.CreateString("")
        name = self.b.CreateString(name) if name else 0
        meta = self.table(2, (0, "o", empty), (1, "o", empty))
        return self.table(10, (0, "o", name), (1, "o", meta), (2, "o", values), (3, "o", inp),
                          (4, "o", out), (5, "o", chains), (6, "o", ops), (7, "o", delegates),
                          (8, "o", pools))

    def finish(self, inputs, outputs, names=("forward",), version=0):
        segments, area = [], b""
        for parts in (self.consts, self.initial):
            data, offsets = b"", []
            for part in parts:
                data += b"\0" * (-len(data) % 16)
                offsets.append(len(data))
                data += part
            area += b"\0" * (-len(area) % 128)
            segments.append((len(area), len(data), offsets))
            area += data
        plans = self.offsets([self.plan(n, inputs, outputs) for n in names])
        rows = self.offsets([self.table(2, (0, "Q", o), (1, "Q", n)) for o, n, _ in segments])
        subs = [self.table(2, (0, "I", i), (1, "o", self.vec("Q", s[2])))
                for i, s in enumerate(segments)]
        mutable = self.offsets(subs[1:]) if len(self.initial) > 1 else 0
        root = self.table(8, (0, "I", version), (1, "o", plans), (4, "o", rows), (5, "o", subs[0]),
                          (6, "o", mutable))
        self.b.Finish(root, file_identifier=b"ET12")
        flat = bytes(self.b.Output())
        size = len(flat) + 32
        base = (size + 127) // 128 * 128
        head = struct.pack("<I", struct.unpack("<I", flat[:4])[0] + 32) + b"ET12eh00"
        head += struct.pack("<IQQQ", 32, size, base, len(area))
        return (head + flat[8:]).ljust(base, b"\0") + area

    def save(self, name, inputs, outputs, **kw):
        with open(os.path.join(HERE, name + ".pte"), "wb") as f:
            f.write(self.finish(inputs, outputs, **kw))


def good_prim():
    """Every scalar op; outputs are compared with what the official runtime gave."""
    p, out = Pte(), []
    x = p.tensor([3, 2], dynamic=True)
    ints = [p.int(v) for v in (7, -7, 2, -2, 0)]
    a, b, c, d, zero = ints
    e, f, g, h = p.double(2.5), p.double(-3.5), p.double(-2.0), p.double(7.25)
    t, n = p.bool(True), p.bool(False)

    def call(name, *args):
        out.append(p.int(0))
        p.prim(name, *args, out[-1])

    for name in ("add.Scalar", "sub.Scalar", "mul.Scalar", "floordiv.Scalar", "truediv.Scalar"):
        for pair in ((a, c), (b, c), (a, d), (e, c), (f, g), (h, f)):
            call(name, *pair)
    for name in ("mod.Scalar", "mod.int", "floordiv.int", "sym_max.Scalar", "sym_min.Scalar"):
        for pair in ((a, c), (b, c), (a, d), (b, d)):
            call(name, *pair)
    for name in ("eq.Scalar", "gt.Scalar", "lt.Scalar", "ge.Scalar", "le.Scalar"):
        for pair in ((a, c), (c, c), (e, c), (g, d), (f, h)):
            call(name, *pair)
    for name in ("ceil.Scalar", "round.Scalar", "trunc.Scalar"):
        for v in (e, f, g, h):
            call(name, v)
    for v in (a, f):
        call("neg.Scalar", v)
        call("sym_float.Scalar", v)
        call("sym_int.Scalar", v)
    call("sym_not.Scalar", t)
    call("sym_ite.Scalar", t, a, b)
    call("sym_ite.Scalar", n, a, b)
    for dim in (0, 1):
        out.append(p.int(9))
        p.kernel("aten::sym_size", "int", x, p.int(dim), out[-1])
    out.append(p.int(9))
    p.kernel("aten::sym_numel", "", x, out[-1])
    p.save("good_prim", [x], out)


def good_state():
    """A counter with an initial value, a view of it, a loop over it, a move and a free."""
    p = Pte()
    x = p.tensor([2])
    state = p.tensor([3, 2], initial=struct.pack("<6f", 1, 2, 3, 4, 5, 6), dynamic=True)
    sizes = p.ints([p.int(2), p.int(-1)])
    view = p.tensor([2, 3], planned=False, dynamic=True)
    i, one, three, done, no = p.int(0), p.int(1), p.int(3), p.bool(False), p.bool(False)
    moved = p.tensor([3, 2], planned=False)
    p.prim("et_copy_index.tensor", state, x, i)
    p.prim("add.Scalar", i, one, i)
    p.prim("eq.Scalar", i, three, done)
    p.jump_false(done, 0)
    p.prim("sub.Scalar", i, three, i)
    p.prim("et_view.default", state, sizes, view)
    p.move(view, moved)
    p.jump_false(no, 9)
    p.free(view)
    p.save("good_state", [x], [moved, i])


def good_fixed_inputs():
    """Inputs that are not tensors must equal the file."""
    p = Pte()
    i, d, b, n, out = p.int(3), p.double(0.5), p.bool(True), p.null(), p.int(0)
    p.prim("add.Scalar", i, i, out)
    p.save("good_fixed_inputs", [i, d, b, n], [out])


def good_in_place():
    """Results in the places of arguments, as their rows allow it, and a copy onto itself."""
    p = Pte()
    x, state = p.tensor([2, 3]), p.tensor([2, 3], initial=bytes(24))
    y, z = p.tensor([2, 3], at=0), p.tensor([2, 3], at=0)
    flat, wide = p.tensor([6], at=0), p.tensor([2, 3], dynamic=True)
    one, none, no = p.int(1), p.null(), p.bool(False)
    p.kernel("aten::exp", "out", x, y, y)
    p.kernel("aten::add", "out", y, state, one, z, z)
    p.kernel("aten::view_copy", "out", z, p.ints([p.int(6)]), flat, flat)
    p.kernel("aten::copy_", "", state, z, no, state)
    p.kernel("aten::copy_", "", state, state, no, state)
    p.kernel("aten::clone", "out", state, none, wide, wide)
    p.kernel("aten::neg", "out", wide, wide, wide)
    p.save("good_in_place", [x], [flat, wide])


def good_callers_input():
    """An input that the plan has no place for."""
    p = Pte()
    x, y = p.tensor([2, 2], planned=False, dynamic=True), p.tensor([2, 2], dynamic=True)
    p.kernel("aten::exp", "out", x, y, y)
    p.save("good_callers_input", [x], [y])


def limits():
    """Files that need more than a host has: memory, copies of a result, and time."""
    p = Pte()
    x, p.arena = p.tensor([4]), 1 << 50
    p.save("limit_pool", [], [x])
    p = Pte()
    x = p.tensor([1 << 18], at=0)
    p.save("limit_outputs", [], [x] * 400)
    p = Pte()
    a, b, y = (p.tensor([2, 3]), p.tensor([3, 5]), p.tensor([2, 5]))
    p.kernel("aten::mm", "out", a, b, y, y)
    p.jump_false(p.bool(False), 0)
    p.save("limit_work", [], [y])


def bad(name):
    def wrap(f):
        p = Pte()
        ends = f(p)
        p.save("bad_" + name, *ends)
        return f
    return wrap


def main():
    good_prim()
    good_state()
    good_fixed_inputs()
    good_in_place()
    good_callers_input()
    limits()

    @bad("const_out")
    def _(p):
        x, c = p.tensor([2]), p.tensor([1, 2], const=b"\0" * 8)
        p.prim("et_copy_index.tensor", c, x, p.int(0))
        return [x], [x]

    @bad("const_out_by_view")
    def _(p):
        x, c = p.tensor([2]), p.tensor([2], const=b"\0" * 8)
        v = p.tensor([1, 2], dynamic=True)
        p.prim("et_view.default", c, p.ints([p.int(1), p.int(2)]), v)
        p.prim("et_copy_index.tensor", v, x, p.int(0))
        return [x], [x]

    @bad("const_input")
    def _(p):
        c = p.tensor([2], const=b"\0" * 8)
        return [c], [c]

    @bad("no_memory")
    def _(p):
        v = p.tensor([2], planned=False)
        p.kernel("aten::_local_scalar_dense", "", v, p.int(0))
        return [], []

    @bad("output_without_memory")
    def _(p):
        v = p.tensor([2], planned=False)
        return [], [v]

    @bad("freed")
    def _(p):
        v = p.tensor([1])
        p.free(v)
        p.kernel("aten::_local_scalar_dense", "", v, p.int(0))
        return [], []

    @bad("endless")
    def _(p):
        p.jump_false(p.bool(False), 0)
        return [], []

    @bad("jump_on_int")
    def _(p):
        p.jump_false(p.int(0), 1)
        return [], []

    @bad("jump_on_floats")
    def _(p):
        p.jump_false(p.tensor([2]), 1)
        return [], []

    @bad("jump_past_end")
    def _(p):
        p.jump_false(p.bool(False), 99)
        return [], []

    @bad("move_onto_list_item")
    def _(p):
        t, i = p.tensor([2]), p.int(5)
        p.tensors([t])
        p.move(i, t)
        return [], []

    @bad("move_onto_input")
    def _(p):
        x, t = p.tensor([2]), p.tensor([2])
        p.move(t, x)
        return [x], [x]

    @bad("prim_onto_list_item")
    def _(p):
        t, i = p.tensor([2]), p.int(5)
        p.tensors([t])
        p.prim("add.Scalar", i, i, t)
        return [], []

    @bad("double_in_int_list")
    def _(p):
        x, i = p.tensor([2]), p.int(2)
        p.prim("truediv.Scalar", i, i, i)
        p.prim("et_view.default", x, p.ints([i]), p.tensor([2]))
        return [], []

    @bad("arity_less")
    def _(p):
        i = p.int(2)
        p.prim("add.Scalar", i, i)
        return [], []

    @bad("arity_more")
    def _(p):
        i = p.int(2)
        p.prim("add.Scalar", i, i, i, i)
        return [], []

    @bad("prim_of_tensor")
    def _(p):
        i = p.int(2)
        p.prim("add.Scalar", p.tensor([2]), i, i)
        return [], []

    @bad("divide_by_zero")
    def _(p):
        i, z = p.int(2), p.int(0)
        p.prim("floordiv.Scalar", i, z, i)
        return [], []

    @bad("copy_index_past_end")
    def _(p):
        to, x = p.tensor([3, 2], dynamic=True), p.tensor([2])
        p.prim("et_copy_index.tensor", to, x, p.int(3))
        return [x], [to]

    @bad("copy_index_huge")
    def _(p):
        to, x = p.tensor([3, 2], dynamic=True), p.tensor([2])
        p.prim("et_copy_index.tensor", to, x, p.int(1 << 62))
        return [x], [to]

    @bad("view_of_another_size")
    def _(p):
        x, v = p.tensor([4]), p.tensor([5], planned=False, dynamic=True)
        p.prim("et_view.default", x, p.ints([p.int(5)]), v)
        return [x], [v]

    @bad("view_product_wraps")
    def _(p):
        x, v = p.tensor([0]), p.tensor([1, 1, 1, 1, 1], planned=False, dynamic=True)
        big = p.int(1 << 16)
        p.prim("et_view.default", x, p.ints([big, big, big, big, p.int(-1)]), v)
        return [x], [v]

    @bad("sizes_wrap")
    def _(p):
        p.arena, keep = 0, p.arena
        t = p.tensor([1 << 30, 1 << 30, 16, 1])
        p.arena = 64
        return [t], [t]

    @bad("sizes_wrap_behind_zero")
    def _(p):
        t = p.tensor([1 << 30, 1 << 30, 1 << 30, 0])
        return [t], [t]

    @bad("rank_17")
    def _(p):
        t = p.tensor([1] * 17)
        return [t], [t]

    @bad("rank_255")
    def _(p):
        t = p.tensor([1] * 255)
        return [t], [t]

    @bad("list_before_tensor")
    def _(p):
        p.tensors([1])
        p.tensor([2])
        return [], []

    @bad("list_holds_itself")
    def _(p):
        p.tensors([0], "OptionalTensorList")
        return [], []

    @bad("unknown_operator")
    def _(p):
        p.kernel("aten::no_such_operator", "out", p.int(1))
        return [], []

    @bad("value_without_table")
    def _(p):
        return [], [p.value("Int", 0)]

    @bad("delegate_not_listed")
    def _(p):
        p.instr("Delegate", p.table(2, (0, "I", 3), (1, "o", p.vec("i", [p.int(0)]))))
        return [], []

    @bad("free_of_no_value")
    def _(p):
        p.free(9)
        return [], []

    @bad("free_of_a_number")
    def _(p):
        p.free(p.int(9))
        return [], []

    def topk(p, x, values, indices):
        p.kernel("aten::topk", "values", x, p.int(4), p.int(0), p.bool(True), p.bool(True), values, indices)
        return [x], [values, indices]

    @bad("results_overlap")
    def _(p):
        x, indices = p.tensor([8], LONG), p.tensor([4], LONG)
        return topk(p, x, p.tensor([4], LONG, at=p.arena - 24), indices)

    @bad("results_overlap_by_view")
    def _(p):
        x, y, four = p.tensor([8], LONG), p.tensor([4], LONG), p.ints([p.int(4)])
        values, indices = (p.tensor([4], LONG, planned=False, dynamic=True) for _ in range(2))
        p.prim("et_view.default", y, four, values)
        p.prim("et_view.default", y, four, indices)
        return topk(p, x, values, indices)

    @bad("results_overlap_in_a_list")
    def _(p):
        x, a = p.tensor([8]), p.tensor([4])
        parts = p.tensors([a, p.tensor([4], at=p.arena - 4)])
        p.kernel("aten::split_with_sizes_copy", "out", x, p.ints([p.int(4), p.int(4)]), p.int(0), parts, parts)
        return [x], [a]

    @bad("results_too_many")
    def _(p):
        x, sizes = p.tensor([17]), p.ints([p.int(1)] * 17)
        parts = [p.tensor([1]) for _ in range(17)]
        p.kernel("aten::split_with_sizes_copy", "out", x, sizes, p.int(0), p.tensors(parts), parts[0])
        return [x], [parts[0]]

    @bad("result_over_operand")
    def _(p):
        a, b = p.tensor([2, 2]), p.tensor([2, 2])
        y = p.tensor([2, 2], at=0)
        p.kernel("aten::mm", "out", a, b, y, y)
        return [a, b], [y]

    @bad("result_over_part_of_operand")
    def _(p):
        a = p.tensor([4])
        y = p.tensor([4], at=4)
        p.kernel("aten::exp", "out", a, y, y)
        return [a], [y]

    @bad("result_over_spread_operand")
    def _(p):
        a, b = p.tensor([1, 4]), p.tensor([4, 4])
        y = p.tensor([4, 4], at=0)
        p.kernel("aten::add", "out", a, b, p.int(1), y, y)
        return [a], [y]

    @bad("result_over_list_item")
    def _(p):
        a, b = p.tensor([4]), p.tensor([4])
        y = p.tensor([8], at=0)
        p.kernel("aten::cat", "out", p.tensors([a, b]), p.int(0), y, y)
        return [a, b], [y]

    @bad("result_over_operand_by_view")
    def _(p):
        a, b = p.tensor([2, 2]), p.tensor([2, 2])
        y = p.tensor([2, 2], planned=False, dynamic=True)
        p.prim("et_view.default", a, p.ints([p.int(2), p.int(2)]), y)
        p.kernel("aten::mm", "out", a, b, y, y)
        return [a, b], [y]

    @bad("input_written")
    def _(p):
        x = p.tensor([4], planned=False)
        p.kernel("aten::full", "out", p.ints([p.int(4)]), p.double(7.0), x, x)
        return [x], [x]

    p = Pte()
    p.save("bad_two_methods_of_one_name", [], [], names=["f", "f"])
    p = Pte()
    p.save("bad_no_method", [], [], names=[])
    p = Pte()
    p.save("bad_many_methods", [], [], names=["m%d" % i for i in range(1025)])
    p = Pte()
    p.save("bad_method_without_name", [], [], names=[None])
    p = Pte()
    p.save("bad_version", [], [], version=1)


if __name__ == "__main__":
    main()
