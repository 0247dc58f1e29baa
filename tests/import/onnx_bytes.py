"""Messages of ONNX files, written byte by byte."""
import numpy as np

FLOAT, INT64 = 1, 7


def varint(v):
    v &= 2**64 - 1
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def number(field, v):
    return varint(field << 3) + varint(v)


def data(field, v):
    v = v.encode() if isinstance(v, str) else v
    return varint(field << 3 | 2) + varint(len(v)) + v


def tensor(name, array, raw=True, **more):
    kind = FLOAT if array.dtype == np.float32 else INT64
    out = b"".join(number(1, n) for n in array.shape) + number(2, kind)
    if raw:
        out += data(9, array.tobytes())
    elif kind == FLOAT:
        out += data(4, array.tobytes())
    else:
        out += data(7, b"".join(varint(int(v)) for v in array.ravel()))
    return out + data(8, name) + more.get("tail", b"")


def external(name, shape, location, **more):
    out = b"".join(number(1, n) for n in shape) + number(2, FLOAT) + data(8, name) + number(14, 1)
    for key, value in {"location": location, **more}.items():
        out += data(13, data(1, key) + data(2, value))
    return out


def attribute(name, v):
    if isinstance(v, int):
        return data(5, data(1, name) + number(3, v) + number(20, 2))
    if isinstance(v, list):
        return data(5, data(1, name) + b"".join(number(8, i) for i in v) + number(20, 7))
    if isinstance(v, str):
        return data(5, data(1, name) + data(4, v) + number(20, 3))
    return data(5, data(1, name) + data(6, v) + number(20, 5))


def node(op, inputs, outputs, domain="", **attributes):
    return (b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs) + data(4, op)
            + (data(7, domain) if domain else b"") + b"".join(attribute(k, v) for k, v in attributes.items()))


def value(name, shape, kind=FLOAT):
    dims = b"".join(data(1, number(1, n) if isinstance(n, int) else data(2, n)) for n in shape)
    return data(1, name) + data(2, data(1, number(1, kind) + data(2, dims)))


def graph(nodes, inputs, outputs, constants=()):
    return (b"".join(data(1, n) for n in nodes) + data(2, "g") + b"".join(data(5, c) for c in constants)
            + b"".join(data(11, i) for i in inputs) + b"".join(data(12, o if isinstance(o, bytes) else data(1, o)) for o in outputs))


def model(g, opset=17, tail=b"", ir=8):
    return number(1, ir) + data(7, g) + data(8, data(1, "") + number(2, opset)) + tail


def simple(nodes, shape=(2, 3), constants=(), opset=17, outputs=("y",), dtype=1):
    return model(graph(nodes, [value("x", shape, dtype)], outputs, constants), opset)
