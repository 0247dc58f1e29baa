"""quant_seeds.py -- writes seeds for fuzz_data, fuzz_lists, fuzz_ops, fuzz_recipe and fuzz_safetensors:
small .npy and .npz files, whose checksums are 0 because fuzz_data takes them to be 0, and the recipes of
the documentation.

    quant_seeds.py ROOT SEEDS
"""
import io
import json
import os
import re
import struct
import sys
import zipfile


def npy(descr, shape, values, version=1):
    dict_ = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(dict_))
    return b"\x93NUMPY" + bytes([version, 0]) + length + dict_ + values


def npz(members, method):
    zipfile.crc32 = lambda data, value=0: 0
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in members:
            z.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def recipes(text):
    """Blocks of the documentation that are indented and begin as a recipe does."""
    for block in re.findall(r"(?:^    .*\n)+", text, re.M):
        body = re.sub(r"^    ", "", block, flags=re.M)
        if re.match(r"#|rules:|budget:|preset:", body):
            yield body.encode()


def ops(root):
    """Files of operators: the documentation's, and some for the model of fuzz_ops."""
    with open(os.path.join(root, "docs", "custom_operators.md"), encoding="utf-8") as f:
        yield from (body.encode() for body in re.findall(r"^```yaml .+\n((?:.*\n)*?)```$", f.read(), re.M))
    with open(os.path.join(root, "tests", "golden", "custom", "own.yaml"), encoding="utf-8") as f:
        yield f.read().encode()
    head = ('operators:\n- schema: "my::%s -> Tensor"\n  results: [{dtype: dtype(x), sizes: sizes(x)}]\n')
    one, two = head % "f(Tensor x)", head.split("\n", 1)[1] % "g(Tensor x, Tensor i, int n=3, float a=1.0, int[] l=[])"
    for a, b in (("kernel: my::f.out\n  c: my_f", "kernel: my::g.out\n  c: my_g"),
                 ("composite: return softplus(x) + my.g(x, full([3], 1, dtype=i64))",
                  'composite: |\n    y = x\n    for k in 0..n {\n      y = y * a + l[k % len(l)]\n    }\n    return y\n')):
        yield f"{one}  {a}\n{two}  {b}\n".encode()


def safetensors():
    """For the weights of fuzz_safetensors.c: all, one for two, none, and with elements of a byte each, which do not fit."""
    rows = {"w": ("F32", [2, 3], 6), "v": ("F32", [2, 3], 6), "b": ("BOOL", [3], 3), "n": ("I64", [], 1), "h": ("F16", [0, 4], 0)}
    for left_out, sizes in (("", {"F32": 4, "I64": 8}), ("v", {"F32": 4, "I64": 8}), ("wvbnh", {}), ("", {})):
        head, at = {"__metadata__": {"format": "pt"}}, 0
        for name, (dtype, shape, n) in rows.items():
            if name not in left_out:
                to = at + n * sizes.get(dtype, 1)
                head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, to]}
                at = 0 if name == "w" else to  # v has the bytes of w
        text = json.dumps(head).encode()
        yield struct.pack("<Q", len(text)) + text + bytes(at)
    yield struct.pack("<Q", 2) + b"{}"


def lists(root):
    """Lists of etc batch, manifests and tolerances; the first byte says which."""
    with open(os.path.join(root, "docs", "nightly.md"), encoding="utf-8") as f:
        block = re.search(r"^```yaml\n(# nightly.*?)```$", f.read(), re.M | re.S)[1]
    yield b"\0" + re.sub("^extends.*\n", "", block, flags=re.M).encode()
    yield b"\0models:\n  a: {model: a.pt2}\n  b: {extends: a, command: emit-c, output: b/b.c, memory: 2G}\n"
    yield b"\1operators: [aten::add.out, 'aten::mul.out']\ndelegates: [XnnpackBackend]\n"
    yield b"\1include_all_operators: false\noperators:\n  aten::mean.out:\n    is_root_operator: true\n"
    yield b"\1aten::add.out\nXnnpackBackend # words\n"
    yield b"\2bytes: 1%\nforward.arena: 4096\nseconds: 20%\n"


def main(root, seeds):
    x = npy("<f4", (2, 3), struct.pack("<6f", 1, 2, 3, 4, 5, 6))
    m = npy("|b1", (2,), b"\0\1")
    files = {"data": [x, npy("<f4", (1, 3), struct.pack("<3f", 1, 2, 3), version=2)]}
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        files["data"] += [npz([("x.npy", x), ("m.npy", m)], method),
                          npz([("arr_0.npy", x), ("input_1.npy", m)], method)]
    with open(os.path.join(root, "docs", "quantization.md"), encoding="utf-8") as f:
        files["recipe"] = list(recipes(f.read()))
    files["ops"] = list(ops(root))
    files["safetensors"] = list(safetensors())
    files["lists"] = list(lists(root))
    lines = [b"range.minmax 2 -1.5 2.25 conv2d", b"range.minmax 2 0 1 relu", b"square 3 1 4 9e-3 x"]
    files["statistics"] = [b"\n".join([b"etc statistics 1", b"model 0123456789abcdef", *lines[:n],
                                       b"end %d" % n, b""]) for n in range(4)] + [b""]
    # An observer holds numbers from -1 to 2 in bins of 2^-10, the first of which holds -1.
    counts = [b"0"] * 4096
    counts[0] = counts[1025] = counts[3073] = b"5"
    for point in (b"2 -1 2", b"4100 -1 2 -10 -1025 " + b" ".join(counts)):
        files["statistics"].append(b"etc statistics 1\nmodel 0123456789abcdef\npart.point " + point +
                                   b" p\npart.ranges 1 7 5\nend 2\n")
    for target, data in files.items():
        os.makedirs(os.path.join(seeds, target), exist_ok=True)
        assert len(data) > 4, target
        for i, bytes_ in enumerate(data):
            with open(os.path.join(seeds, target, str(i)), "wb") as f:
                f.write(bytes_)


main(*sys.argv[1:])
