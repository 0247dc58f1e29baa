#!/usr/bin/env python3
"""Planned programs written by hand, emitted, run in the official runtime and compared with torch.

    test_emit_pte.py --etc build/etc [--filter TEXT]

One fact of the emitter per case, TAP on stdout. No pass runs: the text is what the planner would
leave. The runtime verifies each file fully (Verification.InternalConsistency, its default).
"""
import argparse
import os
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from executorch.runtime import Runtime

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = os.path.join(HERE, "..", "data", "official_pte")
torch.manual_seed(0)

CASES = []


def case(f):
    CASES.append(f)
    return f


class Text:
    """A program's text and the side file its states point into."""

    def __init__(self, symbols=""):
        self.states, self.data, self.body, self.symbols = "", b"", "", symbols

    def state(self, kind, name, array, place="", fqn=None):
        self.data += b"\0" * (-len(self.data) % 16)
        dtype = {"float32": "f32", "int64": "i64", "uint8": "u8", "bool": "bool"}[str(array.dtype)]
        dims = ",".join(str(d) for d in array.shape)
        at = f" at {place}" if place else ""
        self.states += f'{kind} %{name} = "{fqn or name}" : {dtype}[{dims}]{at} in "-"+{len(self.data)}\n'
        self.data += array.tobytes()
        return self

    def method(self, text, name="forward"):
        self.body += f"method @{name}{text}\n"
        return self

    def emit(self, etc, folder, stage="planned", flags=()):
        source, data, out = (os.path.join(folder, n) for n in ("a.etir", "a.bin", "a.pte"))
        with open(source, "w", encoding="utf-8") as f:
            f.write(f'program "test" stage {stage}\n{self.symbols}{self.states}{self.body}')
        with open(data, "wb") as f:
            f.write(self.data)
        p = subprocess.run([etc, "compile", source, "--data", data, "-o", out, *flags], capture_output=True, text=True,
                           stdin=subprocess.DEVNULL, check=False)
        if p.returncode:
            raise AssertionError(f"exit {p.returncode}: {p.stderr.strip()}")
        return out


class Loaded:
    """An emitted file in the official runtime."""

    def __init__(self, text, method="forward"):
        with tempfile.TemporaryDirectory() as folder:
            with open(text.emit(Text.etc, folder), "rb") as f:
                self.bytes = f.read()
        self.program = Runtime.get().load_program(self.bytes)
        self.method = self.program.load_method(method)

    def __call__(self, *inputs):
        return [v.clone() if isinstance(v, torch.Tensor) else v for v in self.method.execute(list(inputs))]


def expect(got, want, tolerance=0.0):
    if isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)
    else:
        assert got == want, f"{got}, expected {want}"


# -- calls -------------------------------------------------------------------------------------


@case
def add():
    m = Loaded(Text().method("""(%x: f32[2,3] at 1:0, %y: f32[2,3] at 1:32) pools [96] {
  %o = aten.add.Tensor(%x, %y, 1) : f32[2,3] at 1:64
  return %o
}"""))
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    expect(m(x, y)[0], x + y)


@case
def linear_relu_in_place():
    w, b = torch.randn(4, 8), torch.randn(4)
    t = Text().state("param", "w", w.numpy()).state("param", "b", b.numpy())
    m = Loaded(t.method("""(%x: f32[3,8] at 1:0) pools [144] {
  %h = aten.linear.default(%x, %w, %b) : f32[3,4] at 1:96
  %o = aten.relu.default(%h) : f32[3,4] at 1:96
  return %o
}"""))
    x = torch.randn(3, 8)
    expect(m(x)[0], F.relu(F.linear(x, w, b)), 1e-5)


@case
def constants_are_aligned_and_equal_ones_shared():
    a, b, w = torch.randn(5), torch.randn(1000), torch.randn(7)
    t = Text()
    for name, v in (("a", a), ("b", b), ("a2", a), ("w", w)):
        t.state("param", name, v.numpy())
    m = Loaded(t.method("""(%x: f32[5] at 1:0) pools [64] {
  %y = aten.add.Tensor(%x, %a, 1) : f32[5] at 1:32
  %z = aten.add.Tensor(%y, %a2, 1) : f32[5] at 1:32
  return %z, %b, %w
}"""))
    x = torch.randn(5)
    got = m(x)
    for g, want in zip(got, (x + a + a, b, w)):
        expect(g, want)
    base, size = struct.unpack_from("<QQ", m.bytes, 24)
    assert base % 128 == 0 and size == 32 + 4000 + 28, (base, size)
    assert m.bytes.count(a.numpy().tobytes()) == 1


@case
def several_outs_end_in_a_list():
    m = Loaded(Text().method("""(%x: f32[1,2,6,6] at 1:0) pools [608] {
  %p, %i = aten.max_pool2d_with_indices.default(%x, [2, 2], [2, 2], [0, 0], [1, 1], false) : f32[1,2,3,3] at 1:288, i64[1,2,3,3] at 1:368
  return %p, %i
}"""))
    x = torch.randn(1, 2, 6, 6)
    for g, want in zip(m(x), F.max_pool2d(x, 2, return_indices=True)):
        expect(g, want)


@case
def arguments_have_the_schemas_kinds():
    m = Loaded(Text().method("""(%x: f32[2,6] at 1:0) pools [1024] {
  %a = aten.gelu.default(%x, approximate="tanh") : f32[2,6] at 1:48
  %b = aten.clamp.default(%x, none, 0.5) : f32[2,6] at 1:96
  %c = aten.hardtanh.default(%x, -1, 1.5) : f32[2,6] at 1:144
  %d = aten.sum.dim_IntList(%x, [1], true, dtype=f32) : f32[2,1] at 1:192
  %e = aten._softmax.default(%x, 1, false) : f32[2,6] at 1:208
  %f = aten.full.default([2, 2], 7, dtype=f32, layout="strided", device=none, pin_memory=none) : f32[2,2] at 1:256
  %g = aten.cat.default([%x, %e], 1) : f32[2,12] at 1:272
  %h = aten.constant_pad_nd.default(%x, [1, 2], 0) : f32[2,9] at 1:368
  %i = aten.elu.default(%x, 1.5, 1, 1) : f32[2,6] at 1:448
  %j = aten.mean.dim(%x, none, false, dtype=none) : f32[] at 1:496
  %k = aten.leaky_relu.default(%x, 0.25) : f32[2,6] at 1:512
  %l = aten.amax.default(%x, [-1, 0], false) : f32[] at 1:560
  return %a, %b, %c, %d, %e, %f, %g, %h, %i, %j, %k, %l
}"""))
    x = torch.randn(2, 6)
    e = x.softmax(1)
    want = [F.gelu(x, approximate="tanh"), x.clamp(max=0.5), F.hardtanh(x, -1, 1.5), x.sum([1], True), e,
            torch.full((2, 2), 7.0), torch.cat([x, e], 1), F.pad(x, [1, 2]), F.elu(x, 1.5), x.mean(),
            F.leaky_relu(x, 0.25), x.amax([-1, 0])]
    got = m(x)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        expect(g, w, 1e-5)


@case
def absent_optional_tensors_are_null():
    w, mean, var = torch.randn(4, 2, 3, 3), torch.randn(4), torch.rand(4) + 0.5
    t = Text().state("param", "w", w.numpy()).state("buffer", "mean", mean.numpy()).state("buffer", "var", var.numpy())
    m = Loaded(t.method("""(%x: f32[1,2,5,5] at 1:0) pools [1024] {
  %c = aten.convolution.default(%x, %w, none, [2, 1], [1, 1], [1, 1], false, [0, 0], 1) : f32[1,4,3,5] at 1:208
  %n, %u, %v = aten._native_batch_norm_legit_no_training.default(%c, none, none, %mean, %var, 0.1, 1e-05) : f32[1,4,3,5] at 1:448, f32[0] at 1:0, f32[0] at 1:0
  return %n
}"""))
    x = torch.randn(1, 2, 5, 5)
    expect(m(x)[0], F.batch_norm(F.conv2d(x, w, None, (2, 1), 1), mean, var), 1e-5)


@case
def quantize_and_dequantize():
    import executorch.kernels.quantized  # registers the operators
    m = Loaded(Text().method("""(%x: f32[2,5] at 1:0) pools [128] {
  %q = quantized_decomposed.quantize_per_tensor.default(%x, 0.25, -1, -128, 127, i8) : i8[2,5] at 1:48
  %o = quantized_decomposed.dequantize_per_tensor.default(%q, 2, -1, -128, 127, i8, out_dtype=none) : f32[2,5] at 1:64
  return %o, %q
}"""))
    x = torch.randn(2, 5)
    q = torch.clamp(torch.round(x / 0.25) - 1, -128, 127)
    got = m(x)
    expect(got[1], q.to(torch.int8))
    expect(got[0], (q + 1) * 2)


@case
def rank_0_and_empty_tensors():
    t = Text().state("const", "one", np.array(1.5, np.float32)).state("const", "none", np.zeros((0, 3), np.float32))
    m = Loaded(t.method("""(%x: f32[] at 1:0, %y: f32[2,3] at 1:16) pools [96] {
  %o = aten.add.Tensor(%x, %one, 2) : f32[] at 1:80
  %c = aten.cat.default([%none, %y], 0) : f32[2,3] at 1:48
  return %o, %c
}"""))
    x, y = torch.tensor(2.0), torch.randn(2, 3)
    got = m(x, y)
    expect(got[0], x + 3.0)
    expect(got[1], y)


@case
def methods_stand_by_name_and_share_constants():
    w = torch.randn(3)
    t = Text().state("param", "w", w.numpy())
    for name, op in (("twice", "mul"), ("forward", "add")):
        t.method(f"""(%x: f32[3] at 1:0) pools [32] {{
  %o = aten.{op}.Tensor(%x, %w{", 1" if op == "add" else ""}) : f32[3] at 1:16
  return %o
}}""", name)
    x = torch.randn(3)
    m = Loaded(t)
    expect(m(x)[0], x + w)
    expect(Loaded(t, "twice")(x)[0], x * w)
    assert m.bytes.count(w.numpy().tobytes()) == 1
    assert set(m.program.method_names) == {"forward", "twice"}
    assert m.bytes.index(b"forward\0") > m.bytes.index(b"twice\0")  # built back to front


@case
def an_input_may_be_an_output():
    m = Loaded(Text().method("""(%x: f32[3] at 1:0) pools [32] {
  %o = aten.neg.default(%x) : f32[3] at 1:16
  return %x, %o, %o
}"""))
    x = torch.randn(3)
    for g, w in zip(m(x), (x, -x, -x)):
        expect(g, w)


@case
def inputs_and_outputs_may_be_the_callers():
    m = Loaded(Text().method("""(%x: f32[3] at in:0) pools [16] {
  %h = aten.neg.default(%x) : f32[3] at 1:0
  %o = aten.abs.default(%h) : f32[3] at out:0
  return %o
}"""))
    x = torch.randn(3)
    expect(m(x)[0], x.abs())


# -- views -------------------------------------------------------------------------------------


def calls_of(m, operators):
    """Returns those of the operator names that the file holds."""
    return [o for o in operators if o.encode() + b"\0" in m.bytes]


@case
def views_at_their_inputs_place_cost_nothing():
    m = Loaded(Text().method("""(%x: f32[2,6] at 1:0) pools [112] {
  %r = aten.neg.default(%x) : f32[2,6] at 1:48
  %v = aten.view.default(%r, [3, 4]) : f32[3,4] at 1:48
  %u = aten.view.default(%v, [1, 3, 4]) : f32[1,3,4] at 1:48
  %s = aten.slice.Tensor(%v, 0, 1, 2, 1) : f32[1,4] at 1:64
  %o = aten.add.Tensor(%s, %s, 1) : f32[1,4] at 1:96
  return %u, %o
}"""))
    x = torch.randn(2, 6)
    v = (-x).view(3, 4)
    got = m(x)
    expect(got[0], v.unsqueeze(0))
    expect(got[1], 2 * v[1:2])
    assert calls_of(m, ["aten::neg", "aten::add", "aten::view_copy", "aten::slice_copy"]) == ["aten::neg", "aten::add"]


@case
def a_view_elsewhere_is_a_copy():
    m = Loaded(Text().method("""(%x: f32[2,6] at 1:0) pools [96] {
  %v = aten.view.default(%x, [3, 4]) : f32[3,4] at 1:48
  %t = aten.permute.default(%x, [1, 0]) : f32[6,2] at 1:48
  return %t
}"""))
    x = torch.randn(2, 6)
    expect(m(x)[0], x.t())
    assert calls_of(m, ["aten::view_copy", "aten::permute_copy"]) == ["aten::view_copy", "aten::permute_copy"]


@case
def views_of_constants_share_their_bytes():
    w = torch.randn(2, 6)
    m = Loaded(Text().state("param", "w", w.numpy()).method("""(%x: f32[3,4] at 1:0) pools [96] {
  %v = aten.view.default(%w, [3, 4]) : f32[3,4] at state:0
  %o = aten.add.Tensor(%x, %v, 1) : f32[3,4] at 1:48
  %y = aten.add.Tensor(%w, %w, 1) : f32[2,6] at 1:0
  return %o, %v, %y
}"""))
    x = torch.randn(3, 4)
    for g, want in zip(m(x), (x + w.view(3, 4), w.view(3, 4), w + w)):
        expect(g, want)
    assert m.bytes.count(w.numpy().tobytes()) == 1 and not calls_of(m, ["aten::view_copy"])


# -- sizes known at run time -------------------------------------------------------------------


@case
def dynamic_batch():
    w, b = torch.randn(3, 8), torch.randn(3)
    t = Text("sym %s0 in 1..5\n").state("param", "w", w.numpy()).state("param", "b", b.numpy())
    m = Loaded(t.method("""(%x: f32[%s0,2,4] at 1:0) pools [224] {
  %n = aten.sym_size.int(%x, 0) : int
  %v = executorch_prim.et_view.default(%x, [%n, 8]) : f32[%s0,8] at 1:0
  %o = aten.linear.default(%v, %w, %b) : f32[%s0,3] at 1:160
  return %o, %n
}"""))
    for n in (5, 1, 3):
        x = torch.randn(n, 2, 4)
        got = m(x)
        expect(got[0], F.linear(x.view(n, 8), w, b), 1e-5)
        expect(got[1], n)


@case
def two_sizes_are_two_numbers():
    m = Loaded(Text("sym %s0 in 1..5\nsym %s1 in 1..5\n").method("""(%x: f32[%s0,%s1] at 1:0) pools [112] {
  %a = aten.sym_size.int(%x, 0) : int
  %b = aten.sym_size.int(%x, 1) : int
  %f = aten.full.default([%b, %a, 0], 1.0, dtype=f32, layout=none, device=none, pin_memory=none) : f32[%s1,%s0,0] at 1:0
  %v = executorch_prim.et_view.default(%x, [%b, %a]) : f32[%s1,%s0] at 1:0
  return %v, %a, %b, %f
}"""))
    x = torch.randn(2, 5)
    got = m(x)
    expect(got[0], x.view(5, 2))
    expect(got[1:3], [2, 5])
    expect(tuple(got[3].shape), (5, 2, 0))


# -- states ------------------------------------------------------------------------------------


@case
def a_counter_keeps_its_value():
    t = Text().state("mutable", "n", np.array(41, np.int64), "1:0").state("const", "one", np.array(1, np.int64))
    m = Loaded(t.method("""(%x: f32[2] at 1:16) pools [64] {
  %a = aten.add.Tensor(%n, %one, 1) : i64[] at 1:0
  %o = aten.neg.default(%x) : f32[2] at 1:32
  %c = aten.clone.default(%a, none) : i64[] at 1:48
  update %n = %a
  return %o, %c
}"""))
    x = torch.randn(2)
    for i in (42, 43, 44):
        got = m(x)
        expect(got[0], -x)
        expect(got[1], torch.tensor(i))
    assert not calls_of(m, ["aten::copy_"])


@case
def an_update_elsewhere_is_copied_back():
    start = torch.randn(3)
    t = Text().state("mutable", "s", start.numpy(), "1:0").state("mutable", "z", np.zeros(3, np.float32), "1:48")
    m = Loaded(t.method("""(%x: f32[3] at 1:16) pools [96] {
  %a = aten.add.Tensor(%s, %x, 1) : f32[3] at 1:32
  %b = aten.add.Tensor(%z, %x, 1) : f32[3] at 1:64
  %o = aten.mul.Tensor(%a, %b) : f32[3] at 1:80
  update %s = %a
  update %z = %b
  return %o
}"""))
    s, z = start, torch.zeros(3)
    for _ in range(3):
        x = torch.randn(3)
        s, z = s + x, z + x
        expect(m(x)[0], s * z)
    assert m.bytes.count(start.numpy().tobytes()) == 1


@case
def a_delay_line_reads_before_it_writes():
    t = Text()
    for name, place in (("a", "1:0"), ("b", "1:16"), ("c", "1:32")):
        t.state("mutable", name, np.zeros(4, np.float32), place)
    m = Loaded(t.method("""(%x: f32[4] at 1:48) pools [80] {
  %o = aten.add.Tensor(%c, %c, 1) : f32[4] at 1:64
  update %a = %x
  update %b = %a
  update %c = %b
  return %o
}"""))
    seen = [torch.zeros(4)] * 3
    for _ in range(5):
        x = torch.randn(4)
        expect(m(x)[0], 2 * seen[-3])
        seen.append(x)


# -- branches ----------------------------------------------------------------------------------

TRUE, FALSE = torch.tensor(True), torch.tensor(False)


@case
def cond_computes_in_the_results_memory():
    m = Loaded(Text().method("""(%x: f32[4] at 1:0, %p: bool[] at 1:16) pools [64] {
  %o = higher_order.cond(%p, graph (%t: f32[4] at 1:0) {
    %a = aten.sigmoid.default(%t) : f32[4] at 1:32
    %b = aten.neg.default(%a) : f32[4] at 1:48
    return %b
  }, graph (%t: f32[4] at 1:0) {
    %b = aten.relu.default(%t) : f32[4] at 1:48
    return %b
  }, [%x]) : f32[4] at 1:48
  return %o
}"""))
    for p in (TRUE, FALSE, TRUE):
        x = torch.randn(4)
        expect(m(x, p)[0], -torch.sigmoid(x) if p else x.relu())
    assert not calls_of(m, ["aten::clone"])


@case
def cond_may_pass_its_operands_through():
    w = torch.randn(4)
    m = Loaded(Text().state("param", "w", w.numpy()).method("""(%x: f32[4] at 1:0, %p: bool[] at 1:16) pools [64] {
  %o = higher_order.cond(%p, graph (%t: f32[4] at 1:0, %v: f32[4] at state:0) {
    return %t
  }, graph (%t: f32[4] at 1:0, %v: f32[4] at state:0) {
    %b = aten.add.Tensor(%t, %v, 1) : f32[4] at 1:48
    return %b
  }, [%x, %w]) : f32[4] at 1:48
  %y = aten.neg.default(%x) : f32[4] at 1:32
  return %o, %y
}"""))
    for p in (TRUE, FALSE, TRUE, FALSE):
        x = torch.randn(4)
        got = m(x, p)
        expect(got[0], x if p else x + w)
        expect(got[1], -x)


@case
def cond_with_a_dynamic_size():
    m = Loaded(Text("sym %s0 in 1..6\n").method("""(%x: f32[%s0,2] at 1:0, %p: bool[] at 1:48) pools [160] {
  %o = higher_order.cond(%p, graph (%t: f32[%s0,2] at 1:0) {
    return %t
  }, graph (%t: f32[%s0,2] at 1:0) {
    %r = aten.relu.default(%t) : f32[%s0,2] at 1:112
    %n = aten.sym_size.int(%r, 0) : int
    %b = executorch_prim.et_view.default(%r, [%n, 2]) : f32[%s0,2] at 1:112
    return %b
  }, [%x]) : f32[%s0,2] at 1:112
  return %o
}"""))
    for n, p in ((6, TRUE), (2, FALSE), (5, TRUE), (1, TRUE), (3, FALSE)):
        x = torch.randn(n, 2)
        expect(m(x, p)[0], x if p else x.relu())


@case
def cond_in_a_cond_with_numbers():
    m = Loaded(Text("sym %s0 in 1..6\n").method("""(%x: f32[%s0] at 1:0, %p: bool[] at 1:32, %q: bool[] at 1:48) pools [96] {
  %o, %k = higher_order.cond(%p, graph (%t: f32[%s0] at 1:0, %q: bool[] at 1:48) {
    %i = higher_order.cond(%q, graph (%t: f32[%s0] at 1:0) {
      %a = aten.neg.default(%t) : f32[%s0] at 1:64
      return %a
    }, graph (%t: f32[%s0] at 1:0) {
      %a = aten.abs.default(%t) : f32[%s0] at 1:64
      return %a
    }, [%t]) : f32[%s0] at 1:64
    %n = aten.sym_size.int(%t, 0) : int
    return %i, %n
  }, graph (%t: f32[%s0] at 1:0, %q: bool[] at 1:48) {
    %a = aten.relu.default(%t) : f32[%s0] at 1:64
    %m = aten.sym_size.int(%a, 0) : int
    return %a, %m
  }, [%x, %q]) : f32[%s0] at 1:64, int
  return %o, %k
}"""))
    for n, p, q in ((6, TRUE, TRUE), (2, TRUE, FALSE), (4, FALSE, TRUE), (6, TRUE, TRUE)):
        x = torch.randn(n)
        got = m(x, p, q)
        expect(got[0], x.relu() if not p else -x if q else x.abs())
        expect(got[1], n)


@case
def cond_updates_a_state_in_one_branch():
    t = Text().state("mutable", "s", np.zeros(3, np.float32), "1:0")
    m = Loaded(t.method("""(%x: f32[3] at 1:16, %p: bool[] at 1:32) pools [96] {
  %o = higher_order.cond(%p, graph (%t: f32[3] at 1:16) {
    %a = aten.add.Tensor(%s, %t, 1) : f32[3] at 1:48
    update %s = %a
    return %a
  }, graph (%t: f32[3] at 1:16) {
    %b = aten.neg.default(%s) : f32[3] at 1:64
    return %b
  }, [%x]) : f32[3] at 1:64
  return %o
}"""))
    s = torch.zeros(3)
    for p in (TRUE, FALSE, TRUE, TRUE, FALSE):
        x = torch.randn(3)
        s = s + x if p else s
        expect(m(x, p)[0], s if p else -s)


# -- delegates ---------------------------------------------------------------------------------


@case
def a_delegate_is_called_with_its_blob():
    with open(os.path.join(SAMPLES, "mini_linear_xnn.pte"), "rb") as f:
        sample = f.read()
    base, size = struct.unpack_from("<QQ", sample, 24)
    blob = np.frombuffer(sample[base:base + size], np.uint8)
    t = Text().state("param", "c", np.ones(4, np.float32)).state("mutable", "n", np.ones(4, np.float32), "1:208")
    t.state("blob", "b", blob, fqn="XnnpackBackend")
    m = Loaded(t.method("""(%x: f32[3,8] at 1:0) pools [240] {
  %y = etc.delegate(%b, [%x], body=none) : f32[3,4] at 1:96
  %z = etc.delegate(%b, [%x], body=none) : f32[3,4] at 1:144
  %d = aten.add.Tensor(%y, %c, 1) : f32[3,4] at 1:96
  %e = aten.sub.Tensor(%d, %z, alpha=1) : f32[3,4] at 1:96
  %k = aten.add.Tensor(%n, %c, 1) : f32[4] at 1:208
  %l = aten.clone.default(%k, none) : f32[4] at 1:224
  update %n = %k
  return %z, %e, %l
}"""))
    x = torch.randn(3, 8)
    want = Runtime.get().load_program(sample).load_method("forward").execute([x])[0].clone()
    got = m(x)
    expect(got[0], want)
    expect(got[1], torch.ones(3, 4), 1e-5)
    expect(got[2], torch.full((4,), 2.0))
    assert m.bytes.count(blob.tobytes()) == 1


def lite(etc, pte, method, x, folder):
    """The first output of `etc-xnn run`; None where that program was not built."""
    if not os.path.exists(etc + "-xnn"):
        return None
    file = os.path.join(folder, "x.npy")
    np.save(file, x.numpy())
    subprocess.run([etc + "-xnn", "run", pte, "--method", method, "--input", file, "--output-dir", folder],
                   check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return torch.from_numpy(np.load(os.path.join(folder, "output_0.npy")))


@case
def two_methods_share_named_data():
    """Convolution filters are permuted for each method: equal bytes in two places are one segment, one key."""
    w, b, k = torch.randn(64, 48), torch.randn(64), torch.randn(16, 64, 3)
    t = Text()
    for name, v in (("w", w), ("b", b), ("k", k)):
        t.state("param", name, v.numpy())
    for name, n in (("prefill", 24), ("decode", 3)):
        t.method(f"""(%x: f32[1,{n},48]) {{
  %h = aten.linear.default(%x, %w, %b) : f32[1,{n},64]
  %p = aten.permute.default(%h, [0, 2, 1]) : f32[1,64,{n}]
  %q = aten.view.default(%p, [1, 64, {n}, 1]) : f32[1,64,{n},1]
  %l = aten.view.default(%k, [16, 64, 3, 1]) : f32[16,64,3,1]
  %c = aten.convolution.default(%q, %l, none, [1, 1], [1, 0], [1, 1], false, [0, 0], 1) : f32[1,16,{n},1]
  %o = aten.relu.default(%c) : f32[1,16,{n},1]
  return %o
}}""", name)
    with tempfile.TemporaryDirectory() as folder:
        pte = t.emit(Text.etc, folder, "core", ("--backend", "xnnpack", "--delegate", "all"))
        data = open(pte, "rb").read()
        program = Runtime.get().load_program(data)
        for name, n in (("prefill", 24), ("decode", 3), ("prefill", 24)):
            x = torch.randn(1, n, 48)
            want = F.conv1d(F.linear(x, w, b).transpose(1, 2), k, padding=1).relu().unsqueeze(-1)
            expect(program.load_method(name).execute([x])[0].clone(), want, 1e-4)
            ours = lite(Text.etc, pte, name, x, folder)
            expect(want if ours is None else ours, want, 1e-4)
    assert data.count(b"XH00") == 2, "one delegate per method"
    for v in (w, b, k.permute(0, 2, 1)):
        assert data.count(v.contiguous().numpy().tobytes()) == 1
    # a key stands in the program's list and in the blob of each method, however often
    assert len(set(re.findall(rb"\x00([wbk]\w*#\d+)\x00", data))) == 3


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--etc", required=True)
    ap.add_argument("--filter", default="")
    args = ap.parse_args()
    Text.etc = os.path.abspath(args.etc)
    failed = 0
    chosen = [c for c in CASES if args.filter in c.__name__]
    print(f"1..{len(chosen)}")
    for i, c in enumerate(chosen):
        try:
            c()
            print(f"ok {i + 1} - {c.__name__}", flush=True)
        except Exception as e:  # any failure is this case's alone
            failed += 1
            print(f"not ok {i + 1} - {c.__name__}", flush=True)
            print("\n".join("# " + line for line in f"{type(e).__name__}: {e}".splitlines()), flush=True)
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
