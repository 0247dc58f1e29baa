#!/usr/bin/env python3
"""Writes synthetic exports as torch.export.save would, without torch: graphs of many layers, and
models of many bytes as sparse files.

    synth.py layers N OUT.pt2      N nodes: linears, residuals, branches, concats, slices, in-place ops
    synth.py weights GIB OUT.pt2   a chain of linears whose weights take GIB GiB of zeros
    synth.py external GIB OUT.onnx the same as ONNX, the weights in OUT.onnx.data
    synth.py SHAPE N OUT.etir      about N nodes in a shape that quadratic steps would stumble over:
                                   wide, fan, slices, writes, lattice, dense, open (sizes)

The same arguments give the same bytes.  Members are stored and aligned to 64 bytes with zip64 sizes
where needed, as the writer of torch 2.13 does.
"""
import json
import os
import random
import struct
import sys
import zlib
from array import array

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "import"))
import onnx_bytes as onnx  # noqa: E402

WIDTH, BATCH = 16, 4
BIG = 4096  # rows and columns of a weight of 64 MiB
BLOCKS_OF_A_SKIP = 16
F32 = 7  # torch.export's number for float32


# -- the archive -----------------------------------------------------------------------------


class Zip:
    """Stored members; what is not written of a member stays a hole of zeros."""

    def __init__(self, path):
        self.file, self.at, self.central = open(path, "wb"), 0, []

    def put(self, name, data, size=None, crc=None):
        """`data` begins a member of `size` bytes; the rest are zeros."""
        name, size = name.encode(), len(data) if size is None else size
        crc = zlib.crc32(data) if crc is None else crc
        pad = -(self.at + 30 + len(name) + 4) % 64
        extra = struct.pack("<2sH", b"FB", pad) + b"Z" * pad
        header = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 0, 0x0808, 0, 0, 0, 0, 0, 0, len(name), len(extra))
        self.file.seek(self.at)
        self.file.write(header + name + extra + data)
        self.central.append((name, self.at, size, crc))
        self.at += len(header) + len(name) + len(extra) + size
        self.file.seek(self.at)
        descriptor = struct.pack("<4sIQQ", b"PK\7\10", crc, size, size)
        self.file.write(descriptor)
        self.at += len(descriptor)

    def close(self):
        start, low = self.at, 0xFFFFFFFF
        for name, at, size, crc in self.central:
            wide = b"".join(struct.pack("<Q", v) for v in (size, size, at) if v >= low)
            extra = struct.pack("<HH", 1, len(wide)) + wide if wide else b""
            self.file.write(struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 0, 0, 0x0808, 0, 0, 0, crc, min(size, low),
                                        min(size, low), len(name), len(extra), 0, 0, 0, 0, min(at, low)) + name + extra)
        end = self.file.tell()
        n, size = len(self.central), end - start
        self.file.write(struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 0, 0, 0, 0, n, n, size, start))
        self.file.write(struct.pack("<4sIQI", b"PK\6\7", 0, end, 1))
        self.file.write(struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, min(n, 0xFFFF), min(n, 0xFFFF), min(size, low),
                                    min(start, low), 0))
        self.file.close()


# -- the program -----------------------------------------------------------------------------


def meta(sizes):
    strides, step = [], 1
    for n in reversed(sizes):
        strides.insert(0, step)
        step *= n
    return {"dtype": F32, "sizes": [{"as_int": n} for n in sizes], "requires_grad": False,
            "device": {"type": "cpu", "index": None}, "strides": [{"as_int": n} for n in strides],
            "storage_offset": {"as_int": 0}, "layout": 7}


def tensor(name):
    return {"as_tensor": {"name": name}}


class Model:
    """A graph with one input of [batch, width]; each call appends a node and returns its name."""

    def __init__(self, batch, width):
        self.nodes, self.values, self.parameters = [], {"x": meta([batch, width])}, []
        self.width = {"x": width}
        self.batch = batch

    def parameter(self, sizes):
        name = f"p_{len(self.parameters)}"
        self.parameters.append((name, sizes))
        self.values[name] = meta(sizes)
        return name

    def node(self, op, width, **inputs):
        name = f"{op.split('.')[0]}_{len(self.nodes)}"
        self.nodes.append({
            "target": f"torch.ops.aten.{op}", "name": name, "outputs": [tensor(name)],
            "inputs": [{"name": k.rstrip("_"), "arg": v, "kind": 1} for k, v in inputs.items()],
            "metadata": {"stack_trace": f'  File "synth.py", line {len(self.nodes) + 1}, in forward',
                         "nn_module_stack": f"L__self__,,Net;L__self__{name},layer.{name},Layer"},
            "is_hop_single_tensor_return": None})
        self.values[name] = meta([self.batch, width])
        self.width[name] = width
        return name

    def linear(self, x, width):
        weight, bias = self.parameter([width, self.width[x]]), self.parameter([width])
        return self.node("linear.default", width, input=tensor(x), weight=tensor(weight), bias=tensor(bias))

    def unary(self, op, x):
        return self.node(op, self.width[x], self_=tensor(x))

    def binary(self, op, x, other):
        other = {"as_float": other} if isinstance(other, float) else tensor(other)
        return self.node(op, self.width[x], self_=tensor(x), other=other)

    def cat(self, *x):
        return self.node("cat.default", sum(self.width[v] for v in x),
                         tensors={"as_tensors": [{"name": v} for v in x]}, dim={"as_int": 1})

    def slice(self, x, start, end):
        return self.node("slice.Tensor", end - start, self_=tensor(x), dim={"as_int": 1}, start={"as_int": start},
                         end={"as_int": end})

    def block(self, x):
        """18 nodes from a value of the model's width to another one, within [-1, 1]."""
        w = self.width[x]
        hidden = self.unary("relu_.default", self.linear(x, w))
        t = self.unary("tanh.default", self.binary("add.Tensor", x, self.linear(hidden, w)))
        left = self.unary("sigmoid.default", self.linear(t, w))
        right = self.unary("tanh.default", self.linear(t, w))
        y = self.binary("add.Tensor", self.binary("mul.Tensor", t, 0.5), self.linear(self.cat(left, right), w))
        a, b = self.slice(y, 0, w // 2), self.slice(y, w // 2, w)
        return self.unary("tanh.default", self.cat(self.binary("mul.Tensor", a, b), a))

    def program(self, output):
        names = [name for name, _ in self.parameters]
        specs = [{"parameter": {"arg": {"name": n}, "parameter_name": n[2:] + ".weight"}} for n in names]
        specs.append({"user_input": {"arg": tensor("x")}})
        graph = {"inputs": [tensor(n) for n in [*names, "x"]], "outputs": [tensor(output)], "nodes": self.nodes,
                 "tensor_values": self.values, "sym_int_values": {}, "sym_bool_values": {},
                 "is_single_tensor_return": False, "custom_obj_values": {}, "sym_float_values": {}}
        signature = {"input_specs": specs, "output_specs": [{"user_output": {"arg": tensor(output)}}]}
        return {"graph_module": {"graph": graph, "signature": signature, "module_call_graph": [], "metadata": {},
                                 "treespec_namedtuple_fields": {}},
                "opset_version": {"aten": 10}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 20},
                "verifiers": ["TRAINING"], "torch_version": "2.13.0", "guards_code": []}

    def config(self):
        return {"config": {name[2:] + ".weight": {"path_name": f"weight_{i}", "is_param": True, "use_pickle": False,
                                                  "tensor_meta": meta(sizes)}
                           for i, (name, sizes) in enumerate(self.parameters)}}


def finish(archive, model, output):
    archive.put("model/data/weights/model_weights_config.json", json.dumps(model.config()).encode())
    archive.put("model/data/constants/model_constants_config.json", b'{"config": {}}')
    archive.put("model/models/model.json", json.dumps(model.program(output)).encode())
    for name, text in (("archive_format", b"pt2"), ("archive_version", b"0"), (".data/version", b"6\n"),
                       ("byteorder", b"little")):
        archive.put("model/" + name, text)
    archive.close()


# -- the two kinds ---------------------------------------------------------------------------


def layers(n, path):
    model, rand = Model(BATCH, WIDTH), random.Random(1)
    x = skip = "x"
    blocks = 0
    while len(model.nodes) + 19 <= n:
        x = model.block(x)
        blocks += 1
        if blocks % BLOCKS_OF_A_SKIP == 0:  # a value that lives through many blocks
            x = skip = model.binary("add.Tensor", x, skip)
    while len(model.nodes) < n:
        x = model.unary("tanh.default", x)
    archive = Zip(path)
    for i, (_, sizes) in enumerate(model.parameters):
        count = sizes[0] * (sizes[1] if len(sizes) > 1 else 1)
        data = array("f", (rand.uniform(-0.4, 0.4) for _ in range(count)))
        archive.put(f"model/data/weights/weight_{i}", data.tobytes())
    finish(archive, model, x)


def number_crcs(size, bits):
    """CRCs of `size` bytes that begin with a little-endian number and are zero elsewhere: a CRC of
    equally long texts is linear, so those of zero and of single bits give all."""
    blank = bytes(size)
    zero = zlib.crc32(blank)
    bit = [zlib.crc32(memoryview(blank)[4:], zlib.crc32(struct.pack("<I", 1 << i))) ^ zero for i in range(bits)]

    def crc(number):
        found = zero
        for i in range(bits):
            found ^= bit[i] if number >> i & 1 else 0
        return found
    return crc


def weights(gib, path):
    """Each weight begins with its number (as a float, nearly 0), so that no two are equal."""
    size = 4 * BIG * BIG
    n = int(gib * (1 << 30)) // size
    model, archive, crc = Model(1, BIG), Zip(path), number_crcs(size, 12)
    x = "x"
    for _ in range(n):
        x = model.node("linear.default", BIG, input=tensor(x), weight=tensor(model.parameter([BIG, BIG])),
                       bias={"as_none": True})
        x = model.unary("relu.default", x)
    for i in range(n):
        archive.put(f"model/data/weights/weight_{i}", struct.pack("<I", i + 1), size, crc(i + 1))
    finish(archive, model, x)


def external(gib, path):
    size, side = 4 * BIG * BIG, os.path.basename(path) + ".data"
    n = int(gib * (1 << 30)) // size
    nodes, constants = [], []
    with open(path + ".data", "wb") as f:
        for i in range(n):
            nodes += [onnx.node("Gemm", [f"r{i}", f"w{i}"], [f"y{i}"], transB=1), onnx.node("Relu", [f"y{i}"], [f"r{i + 1}"])]
            constants.append(onnx.external(f"w{i}", [BIG, BIG], side, offset=str(i * size), length=str(size)))
            f.seek(i * size)
            f.write(struct.pack("<I", i + 1))
        f.truncate(n * size)
    with open(path, "wb") as f:
        f.write(onnx.model(onnx.graph(nodes, [onnx.value("r0", [1, BIG])], [f"r{n}"], constants)))


# -- shapes: textual IR ------------------------------------------------------------------------


T = "f32[4,16]"
ROW = "f32[1,16]"


def wide(n):
    """All products are live before the first sum."""
    yield from (f"%a{i} = aten.mul.Tensor(%x, {i}.5) : {T}" for i in range(n // 2))
    for i in range(1, n // 2):
        yield f"%s{i} = aten.add.Tensor(%{f's{i - 1}' if i > 1 else 'a0'}, %a{i}, 1) : {T}"
    yield f"return %s{n // 2 - 1}"


def fan(n):
    """One concat reads all."""
    yield from (f"%a{i} = aten.mul.Tensor(%x, {i}.5) : {T}" for i in range(n))
    yield f"%c = aten.cat.default([{', '.join(f'%a{i}' for i in range(n))}], 1) : f32[4,{16 * n}]"
    yield "return %c"


def slices(n):
    """A sum over slices of one value."""
    yield f"%b = aten.expand.default(%x, [{n // 2}, 4, 16], false) : f32[{n // 2},4,16]"
    yield f"%h = aten.tanh.default(%b) : f32[{n // 2},4,16]"
    for i in range(n // 2):
        yield f"%v{i} = aten.slice.Tensor(%h, 0, {i}, {i + 1}, 1) : f32[1,4,16]"
        yield f"%s{i} = aten.add.Tensor(%{f's{i - 1}' if i else 'x'}, %v{i}, 1) : f32[1,4,16]"
    yield f"return %s{n // 2 - 1}"


def writes(n):
    """Writes through views, each of which makes a new value of the whole."""
    yield f"%b = aten.mul.Tensor(%x, 2.0) : {T}"
    for i in range(n // 2):
        yield f"%v{i} = aten.slice.Tensor(%b, 0, {i % 4}, {i % 4 + 1}, 1) : {ROW}"
        yield f"%w{i} = aten.mul_.Tensor(%v{i}, 0.5) : {ROW}"
    yield "return %b"


def lattice(n):
    """64 chains that cross."""
    width = 64
    row = ["x"] * width
    for i in range(n // width):
        for j in range(width):
            yield f"%l{i}.{j} = aten.add.Tensor(%{row[j]}, %{row[(7 * j + i) % width]}, {(i + j) % 5 + 1}) : {T}"
        row = [f"l{i}.{j}" for j in range(width)]
    yield f"%c = aten.cat.default([{', '.join('%' + r for r in row)}], 1) : f32[4,{16 * width}]"
    yield "return %c"


def dense(n):
    """Every concat holds all before it."""
    for i in range(n // 2):
        x = f"c{i - 1}" if i else "x"
        yield f"%m{i} = aten.amax.default(%{x}, [1], true) : f32[4,1]"
        yield f"%c{i} = aten.cat.default([%{x}, %m{i}], 1) : f32[4,{17 + i}]"
    yield f"return %c{n // 2 - 1}"


def open_(n):
    """A chain whose batch is open."""
    for i in range(n // 3):
        yield f"%a{i} = aten.tanh.default(%{f'w{i - 1}' if i else 'x'}) : f32[%n,16]"
        yield f"%v{i} = aten.view.default(%a{i}, [%n, 4, 4]) : f32[%n,4,4]"
        yield f"%w{i} = aten.view.default(%v{i}, [%n, 16]) : f32[%n,16]"
    yield f"return %w{n // 3 - 1}"


SHAPES = {"wide": wide, "fan": fan, "slices": slices, "writes": writes, "lattice": lattice, "dense": dense,
          "open": open_}


def shape(kind, n, path):
    size = "%n" if kind == "open" else "4"
    with open(path, "w", encoding="ascii") as f:
        f.write(f'program "{kind}" stage aten\nsym %n in 1..64\nmethod @forward(%x: f32[{size},16]) {{\n')
        f.writelines(f"  {line}\n" for line in SHAPES[kind](n))
        f.write("}\n")


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in {"layers", "weights", "external", *SHAPES}:
        sys.exit(__doc__)
    kind, amount, path = sys.argv[1:]
    if kind == "layers":
        layers(int(amount), path)
    elif kind == "weights":
        weights(float(amount), path)
    elif kind == "external":
        external(float(amount), path)
    else:
        shape(kind, int(amount), path)


if __name__ == "__main__":
    main()
