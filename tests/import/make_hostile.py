#!/usr/bin/env python3
"""make_hostile.py DIR -- writes archives and programs that an importer must refuse, or read without
harm.

DIR/list.txt lists them: the file, the exit code of the importer, and a part of its message or, if
the code is 0, of the program's text, separated by tabs. With --seeds DIR, small ones are written
as seeds of fuzzers: archives whose checksums are 0 to DIR/zip, their programs to DIR/json. All are
made from one small program, x + w, which is written here field by field, and a zip, which is
written byte by byte, so that each case breaks one thing.  The numbers in the names group them:
1-10 are archives, 11-15 JSON, 16-20 programs, 28 scales and zero points, whose types are checked
too, and 46 names that would be code in C.
"""
import copy
import json
import os
import struct
import sys
import zlib

OK, MODEL, IO, UNSUPPORTED = 0, 1, 3, 4
SEEDS = sys.argv[1:2] == ["--seeds"]
MAX_SEED = 8192


# -- zip ---------------------------------------------------------------------------------------

def checksum(data):
    return 0 if SEEDS else zlib.crc32(data)


class Member:
    """The fields of the two headers of a member; each may be set to a wrong value."""

    def __init__(self, name, data, **lies):
        self.name = name if isinstance(name, bytes) else name.encode()
        self.data = data if isinstance(data, bytes) else data.encode()
        self.method = self.flags = self.disk = 0
        self.crc = checksum(self.data)
        self.size = self.packed = len(self.data)
        self.extra = b""           # of the central entry
        self.local = {}            # name, size, packed, crc, method, flags where the local header differs
        self.offset = None         # of the local header, as the central entry claims
        self.omit = False          # no local header, no bytes
        self.wide = False          # sizes and offset in a zip64 extra field
        self.__dict__.update(lies)


def deflated(name, data, **lies):
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = pack.compress(data) + pack.flush()
    m = Member(name, packed, method=8, crc=checksum(data), size=len(data))
    m.__dict__.update(lies)
    return m


def archive(members, entries=None, cd_offset=None, cd_size=None, comment=b"", disk=0, zip64=None):
    out, central = bytearray(), bytearray()
    for m in members:
        at = len(out) if m.offset is None else m.offset
        if not m.omit:
            local = {"name": m.name, "crc": m.crc, "packed": m.packed, "size": m.size,
                     "method": m.method, "flags": m.flags, **m.local}
            head = 30 + len(local["name"]) + 4
            pad = -(len(out) + head) % 64      # torch aligns data with an extra field
            out += struct.pack("<4s5H3I2H", b"PK\3\4", 20, local["flags"], local["method"], 0, 0,
                               local["crc"] & 0xffffffff, min(local["packed"], 0xffffffff),
                               min(local["size"], 0xffffffff), len(local["name"]), 4 + pad)
            out += local["name"] + struct.pack("<2sH", b"FB", pad) + b"Z" * pad + m.data
        extra = struct.pack("<2H3Q", 1, 24, m.size, m.packed, at) if m.wide else m.extra
        limit = 0 if m.wide else 0xffffffff
        short = lambda v: v if v < limit else 0xffffffff
        central += struct.pack("<4s6H3I5H2I", b"PK\1\2", 0, 0, m.flags, m.method, 0, 0, m.crc,
                               short(m.packed), short(m.size), len(m.name), len(extra), 0, m.disk,
                               0, 0, short(at)) + m.name + extra
    start = len(out)
    out += central
    n = len(members) if entries is None else entries
    size = len(central) if cd_size is None else cd_size
    offset = start if cd_offset is None else cd_offset
    if zip64 is not None:
        end64 = {"n": n, "size": size, "offset": offset, "at": len(out), "disk": 0, **zip64}
        out += struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 0, 0, end64["disk"], 0, end64["n"], end64["n"],
                           end64["size"], end64["offset"])
        out += struct.pack("<4sIQI", b"PK\6\7", 0, end64["at"], 1)
        n, size, offset = 0xffff, 0xffffffff, 0xffffffff
    out += struct.pack("<4s4H2IH", b"PK\5\6", disk, disk, n & 0xffff, n & 0xffff, size, offset,
                       len(comment)) + comment
    return bytes(out)


# -- the program ---------------------------------------------------------------------------------

def meta(sizes, dtype=7, strides=None, offset=0):
    if strides is None:
        strides, n = [], 1
        for s in reversed(sizes):
            strides.insert(0, n)
            n *= s if isinstance(s, int) else 1
    size = lambda s: s if isinstance(s, dict) else {"as_int": s}
    return {"dtype": dtype, "sizes": [size(s) for s in sizes], "requires_grad": False,
            "device": {"type": "cpu", "index": None}, "strides": [size(s) for s in strides],
            "storage_offset": {"as_int": offset}, "layout": 7}


def tensor(name):
    return {"as_tensor": {"name": name}}


def node(name, target, *args, outputs=None):
    return {"target": target, "name": name, "is_hop_single_tensor_return": None,
            "inputs": [{"name": n, "arg": a, "kind": 1} for n, a in args],
            "outputs": [tensor(name)] if outputs is None else outputs,
            "metadata": {"stack_trace": 'File "/home/me/net.py", line 9, in forward\n    return x + w',
                         "nn_module_stack": "L__self__,,Net;L__self___a,a,Net"}}


def add(name, a, b):
    return node(name, "torch.ops.aten.add.Tensor", ("self", tensor(a)), ("other", tensor(b)))


def symbol(name):
    return {"as_expr": {"expr_str": "Symbol('%s', positive=True, integer=True)" % name, "hint": None}}


def expr(text):
    return {"as_expr": {"expr_str": text, "hint": None}}


def program():
    """f32[2,3] x + w"""
    return {
        "graph_module": {
            "graph": {
                "inputs": [tensor("p_w"), tensor("x")],
                "outputs": [tensor("add")],
                "nodes": [add("add", "x", "p_w")],
                "tensor_values": {"p_w": meta([2, 3]), "x": meta([2, 3]), "add": meta([2, 3])},
                "sym_int_values": {}, "sym_bool_values": {}, "sym_float_values": {},
                "custom_obj_values": {}, "is_single_tensor_return": False},
            "signature": {
                "input_specs": [{"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
                                {"user_input": {"arg": tensor("x")}}],
                "output_specs": [{"user_output": {"arg": tensor("add")}}]},
            "module_call_graph": [], "metadata": {}, "treespec_namedtuple_fields": {}},
        "opset_version": {"aten": 10}, "range_constraints": {},
        "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"],
        "torch_version": "2.13.0", "guards_code": []}


def config():
    return {"config": {"w": {"path_name": "weight_0", "is_param": True, "use_pickle": False,
                             "tensor_meta": meta([2, 3])}}}


CASES = []
PROGRAMS = []
WEIGHT = struct.pack("<6f", 1, 2, 3, 4, 5, 6)


def members(text=None, weights=None, data=WEIGHT, more=()):
    text = json.dumps(program()) if text is None else text
    if len(text) <= MAX_SEED:
        PROGRAMS.append(text if isinstance(text, bytes) else text.encode())
    return [Member("m/data/weights/weight_0", data),
            Member("m/data/weights/model_weights_config.json", json.dumps(weights or config())),
            Member("m/data/constants/model_constants_config.json", '{"config": {}}'),
            Member("m/models/model.json", text),
            Member("m/archive_format", "pt2"), Member("m/archive_version", "0"),
            Member("m/byteorder", "little"), *more]




def case(name, code, message, data):
    CASES.append((name, code, message, data))


def changed(name, code, message, change, data=WEIGHT):
    """A case whose program and config `change` edits in place."""
    p, c = program(), config()
    change(p, c)
    case(name, code, message, archive(members(json.dumps(p), c, data)))


def text(name, code, message, old, new):
    """A case whose model.json is edited as text."""
    t = json.dumps(program())
    assert old in t, old
    case(name, code, message, archive(members(t.replace(old, new, 1))))


# -- 1-10: archives --------------------------------------------------------------------------------

def archives():
    m = members()
    n = len(m)
    good = archive(m)
    case("00_good", OK, "", good)
    case("00_good_zip64", OK, "", archive(m, zip64={}))
    wide = members()
    for x in wide:
        x.wide = True
    case("00_good_zip64_extra", OK, "", archive(wide))
    case("00_good_without_root", OK, "", archive([Member(x.name[2:], x.data) for x in m]))
    case("00_good_deflated", OK, "", archive([deflated(x.name, x.data) for x in m]))
    case("01_empty", MODEL, "no zip end record", b"")
    case("01_three_bytes.pt2", MODEL, "no zip end record", b"PK\3")
    case("02_one_entry_more", MODEL, "central directory", archive(m, entries=n + 1))
    case("02_one_entry_less", MODEL, "more than the 6 entries", archive(m, entries=n - 1))
    case("02_directory_past_end", MODEL, "central directory", archive(m, cd_offset=len(good) + 9))
    case("02_directory_too_long", MODEL, "central directory", archive(m, cd_size=1 << 30))
    bomb = members(more=[Member("m/x%d" % i, b"", omit=True, offset=0, packed=24, size=24)
                         for i in range(9)])
    case("02_overlap", MODEL, "overlaps", archive(bomb))
    case("02_header_past_end", MODEL, "overlaps", archive(members(more=[
        Member("m/x", b"", omit=True, offset=0xfffffff0)])))

    def lie(i, **lies):
        x = members()
        x[i].__dict__.update(lies)
        return archive(x)
    case("02_quoted_overlap", MODEL, "overlaps", lie(0, size=600, packed=600))
    case("03_no_local_header", MODEL, "no local header",
         lie(3, offset=good.index(b"m/models/model.json") - 29))
    case("03_other_local_name", MODEL, "another name", lie(3, local={"name": b"m/models/moDel.json"}))
    case("03_other_local_size", MODEL, "local header", lie(3, local={"size": 7, "packed": 7}))
    case("03_other_local_method", MODEL, "local header", lie(0, local={"method": 8}))
    for i, name in enumerate([b"../../x", b"/etc/passwd", b"C:\\x", b"m/a\0b", b"m\\x", b"m/\xff\xfe",
                              b"m/../x", b"m//x", b"m/./x", b"m/" + b"n" * 65000, b""]):
        case("04_name_%d" % i, MODEL, "unsafe name", archive(members(more=[Member(name, b"x")])))
    case("05_twice", MODEL, "appears twice", archive(members(more=[Member("m/models/model.json", b"{}")])))
    case("06_bomb_claims", MODEL, "claims to inflate",
         archive([deflated(x.name, x.data, **({"size": 1 << 31} if i == 3 else {}))
                  for i, x in enumerate(m)]))
    case("06_bomb", MODEL, "claims to inflate", archive(m[:3] + [deflated(m[3].name, bytes(50 << 20))] + m[4:]))
    case("06_inflates_to_more", MODEL, "does not inflate", archive(
        m[:3] + [deflated(m[3].name, m[3].data, size=100)] + m[4:]))
    case("06_inflates_to_less", MODEL, "does not inflate", archive(
        m[:3] + [deflated(m[3].name, m[3].data, size=1 << 20)] + m[4:]))
    case("06_no_deflate_data", MODEL, "does not inflate", lie(0, method=8))
    case("06_longer_than_file", MODEL, "overlaps", lie(6, size=1 << 24, packed=1 << 24))
    case("06_two_sizes", MODEL, "sizes differ", lie(0, size=23))
    case("06_checksum_of_weight", MODEL, "'m/data/weights/weight_0' is damaged", lie(0, crc=1))
    case("06_checksum_of_json", MODEL, "'m/models/model.json' is damaged", lie(3, crc=1))
    huge = struct.pack("<2H2Q", 1, 16, 1 << 63, 1 << 63)
    case("07_size_2_63", MODEL, "overlaps", lie(0, size=0xffffffff, packed=0xffffffff, extra=huge))
    case("07_no_zip64_extra", MODEL, "zip64", lie(0, size=0xffffffff, packed=0xffffffff))
    case("07_short_zip64_extra", MODEL, "zip64", lie(0, size=0xffffffff, packed=0xffffffff,
                                                     extra=struct.pack("<2HQ", 1, 8, 24)))
    case("07_extra_past_entry", MODEL, "zip64", lie(0, size=0xffffffff, packed=0xffffffff,
                                                    extra=struct.pack("<2HQ", 9, 900, 24)))
    case("07_disk", MODEL, "several disks", archive(m, disk=1))
    case("07_member_disk", MODEL, "another disk", lie(0, disk=3))
    case("07_disk64", MODEL, "several disks", archive(m, zip64={"disk": 2}))
    case("07_locator", MODEL, "locator", archive(m, zip64={"at": 1 << 62}))
    case("07_entries_2_63", MODEL, "do not fit", archive(m, zip64={"n": 1 << 63}))
    case("07_directory_2_63", MODEL, "central directory", archive(m, zip64={"offset": 1 << 63}))
    case("07_encrypted", MODEL, "encrypted", lie(0, flags=1))
    case("07_strongly_encrypted", MODEL, "encrypted", lie(0, flags=1 << 6))
    case("07_encrypted_local", MODEL, "local header", lie(0, local={"flags": 1}))
    case("07_method", MODEL, "compression method", lie(0, method=12))
    many = [Member("m/%06x" % i, b"") for i in range(100000)]
    case("08_many_entries", OK, "", archive(members(more=many), zip64={}))
    case("08_comment_hides_end", MODEL, "comment", archive(m, comment=archive(m)[-22:]))
    case("08_second_end", MODEL, "central directory", good + archive([])[-22:])
    case("08_comment", MODEL, "no zip end record", archive(m, comment=b"hello" * 9))
    changed("09_pickle", UNSUPPORTED, "pickled", lambda p, c: c["config"]["w"].update(use_pickle=True))
    case("09_bytes_of_a_pickle", OK, "f32[2,3] in",
         archive(members(data=b"cos\nsystem\n(S'false'\ntR.")))
    case("09_pickle_alone", MODEL, "not an archive", b"\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\2M\xe9\3.")
    case("09_torchscript", MODEL, "never loaded", archive([Member("m/data.pkl", b"\x80\2}."),
                                                          Member("m/constants.pkl", b"\x80\2).")]))
    for i, new in ((4, "zip"), (5, "999"), (6, "big")):
        x = members()
        x[i] = Member(x[i].name, new)
        case("10_" + m[i].name.decode()[2:], UNSUPPORTED, "is '%s'" % new, archive(x))
    for i, code in ((4, MODEL), (5, MODEL), (6, OK)):
        name = m[i].name.decode()[2:]
        case("10_no_" + name, code, "contains no " + name if code else "", archive(m[:i] + m[i + 1:]))
    case("10_no_models", MODEL, "contains no models", archive(m[4:]))
    case("10_no_members", MODEL, "contains no archive_format", archive([]))
    case("10_no_config", MODEL, "has no member", archive(m[:1] + m[2:]))
    case("10_no_weight", MODEL, "has no member", archive(m[1:]))


# -- 09: pickles -----------------------------------------------------------------------------------

def string(s):
    s = s if isinstance(s, bytes) else s.encode()
    return b"X" + struct.pack("<I", len(s)) + s


def integer(i):
    return b"\x8a\x08" + struct.pack("<q", i)


def numbers(values):
    return b"(" + b"".join(integer(v) for v in values) + b"t"


def storage(kind=b"ctorch\nFloatStorage\n", key="0", n=6, word="storage"):
    return b"(" + string(word) + kind + string(key) + string("cpu") + integer(n) + b"tQ"


HOOKS = b"\x89ccollections\nOrderedDict\n)R"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"


def rebuilt(stored=None, offset=0, sizes=(2, 3), strides=(3, 1), hooks=HOOKS):
    return (REBUILD + b"(" + (storage() if stored is None else stored) + integer(offset) +
            numbers(sizes) + numbers(strides) + hooks + b"tR")


def state_dict(value=None, name="w"):
    return b"\x80\2}" + string(name) + (rebuilt() if value is None else value) + b"s."


def saved(pickle, order="little", pack=Member):
    """An archive as torch.save writes it."""
    return archive([pack("archive/data.pkl", pickle), Member("archive/byteorder", order),
                    Member("archive/data/0", WEIGHT)])


def torch27(inner, text=None):
    return archive([Member("serialized_exported_program.json", json.dumps(text or program())),
                    Member("serialized_state_dict.pt", inner), Member("version", "8.7")])


def torch28(inner, pack=Member):
    return archive([pack("m/data/weights/model.pt", inner), *members()[3:]])


def raw_pickle(name, code, message, pickle):
    case("09_" + name, code, message, torch28(saved(pickle)))


def pickled(name, code, message, value):
    raw_pickle(name, code, message, state_dict(value))


def good_pickles():
    read = 'param %p_w = "w" : f32[2,3] in "weights.model.0"+0'
    good = saved(state_dict())
    case("09_torch_27", OK, read, torch27(good))
    case("09_torch_28", OK, read, torch28(good))
    case("09_torch_28_deflated", OK, read, torch28(good, pack=deflated))
    case("09_torch_28_no_archive", MODEL, "no zip end record", torch28(b"PK"))
    case("09_torch_28_twice_deflated", MODEL, "an archive within an archive",
         torch28(saved(state_dict(), pack=deflated)))
    case("09_torch_28_big_endian", UNSUPPORTED, "byteorder is 'big'",
         torch28(saved(state_dict(), order="big")))
    case("09_torch_28_no_pickle", MODEL, "has no member 'archive/data.pkl'",
         torch28(archive([Member("archive/byteorder", "little")])))
    pickled("parameter", OK, read, b"ctorch._utils\n_rebuild_parameter\n" + rebuilt() + HOOKS + b"\x87R")
    pickled("window", OK, "strides [1,2]", rebuilt(strides=(1, 2)))
    raw_pickle("ordered", OK, read, b"\x80\2ccollections\nOrderedDict\nq\0)Rq\1(" + string("w") +
               rebuilt() + string("n") + b"M\1\2u}" + string("_metadata") + b"h\0)R" + string("") + b"}" +
               string("version") + b"K\1sssb.")
    raw_pickle("itself", OK, read, b"\x80\2}q\0" + string("a") + b"h\0s" + string("w") + rebuilt() + b"s.")


def torch25(size):
    """Sizes are printed, and numbers are Python's."""
    p = program()
    g = p["graph_module"]["graph"]
    g["tensor_values"].update({"x": meta([expr(size), 3]), "add": meta([expr(size), 3])})
    g["tensor_values"]["p_w"] = meta([1, 3])
    g["nodes"][0]["inputs"].append({"name": "alpha", "arg": {"as_float": float("-inf")}, "kind": 1})
    p.update(schema_version={"major": 7, "minor": 3},
             range_constraints={"s0": {"min_val": 1, "max_val": 9}})
    return torch27(saved(state_dict(rebuilt(sizes=(1, 3)))), p)


def older_programs():
    case("15_torch_25", OK, "(%x: f32[2*%s0+1,3])", torch25("2*s0 + 1"))
    for i, size in enumerate(("2*s0 +", "s1", "(" * 100000, "9223372036854775807*s0*9223372036854775807", "s0 // 0", "-s0 * 0.5")):
        case("15_torch_25_size_%d" % i, MODEL, "cannot be read", torch25(size))


def calling_pickles():
    pickled("calls", UNSUPPORTED, "'os.system' at byte 9", b"cos\nsystem\n(" + string("false") + b"tR")
    pickled("builtin", UNSUPPORTED, "'builtins.eval'", b"cbuiltins\neval\n")
    pickled("other_tensor", UNSUPPORTED, "'torch._utils._rebuild_qtensor'",
            b"ctorch._utils\n_rebuild_qtensor\n")
    pickled("complex", UNSUPPORTED, "'torch.ComplexHalfStorage'",
            rebuilt(storage(b"ctorch\nComplexHalfStorage\n")))
    for op, name in ((b"ios\nsystem\n", "0x69 INST"), (b"o", "0x6f OBJ"), (b"]", "0x5d EMPTY_LIST"),
                     (b"\x93", "0x93 STACK_GLOBAL"), (b"\x81", "0x81 NEWOBJ"),
                     (b"\xff", "0xff at byte 9"), (b"\0", "0x00 at byte 9")):
        pickled("opcode_%02x" % op[0], UNSUPPORTED, name, op)
    raw_pickle("calls_class", MODEL, "not a function", b"\x80\2ctorch\nFloatStorage\n)R")
    raw_pickle("calls_none", MODEL, "not a function", b"\x80\2N)R")
    raw_pickle("dict_arguments", MODEL, "from arguments", b"\x80\2ccollections\nOrderedDict\nN\x85R")


def broken_pickles():
    def raw(name, message, pickle):
        raw_pickle(name, MODEL, message, b"\x80\2" + pickle)
    raw_pickle("empty", MODEL, "without a STOP at byte 0", b"")
    raw_pickle("no_stop", MODEL, "without a STOP", state_dict()[:-1])
    raw_pickle("goes_on", MODEL, "does not end with one dict", state_dict() + b".")
    raw_pickle("protocol_4", MODEL, "not of protocol 2", b"\x80\4\x95\0\0\0\0\0\0\0\0}.")
    raw("tuple", "does not end with one dict", b").")
    raw("two_values", "does not end with one dict", b"}}.")
    raw("cut_name", "ends within the opcode", b"cos")
    raw("cut_number", "ends within the opcode", b"J\0")
    raw("cut_string", "ends within the opcode", b"X\xff\xff\xff\xffw")
    raw("string_not_utf8", "not UTF-8", string(b"\xc3("))
    raw("string_nul", "NUL", string("a\0b"))
    raw("long_integer", "over 64 bits", b"\x8a\x09" + bytes(9))
    raw("deep", "65536 values", b"N" * 1000000)
    raw("marks", "65536 values", b"(" * 1000000)
    raw("nested", "deeper than 3", b"N" + b"\x85" * 1000000 + b".")
    for i, ops in enumerate((b"\x85", b"(\x85", b"q\0", b"(q\0", b"R", b"(R", b"s", b"b", b"Q", b"(}b",
                             b"NNs", b"(u")):
        raw("empty_stack_%d" % i, "from an empty stack", ops)
    raw("no_mark", "mark that is not there", b"Nt")
    raw("items_of_none", "a value that is not a dict", b"NNNs")
    raw("odd_items", "a value that is not a dict", b"}(Nu")
    raw("attributes", "attributes of a value that is not a dict", b"N}b")
    raw("memo_ahead", "out of order", b"}q\7")
    raw("memo_far", "out of order", b"}r\xff\xff\xff\xff")
    raw("memo_absent", "not there at byte 2", b"h\0")
    raw("memo_absent_far", "not there", b"j\xff\xff\xff\xff")
    raw("no_names", "not names", b"}NNs.")
    raw("twice", "'w' twice", state_dict()[2:-1] + state_dict()[3:])
    raw("not_there", "'w' is not in data/weights/model.pt", b"}.")


def broken_tensors():
    def value(name, message, value):
        pickled(name, MODEL, message, value)
    value("no_arguments", "rebuilds a tensor", REBUILD + b")R")
    value("metadata", "rebuilds a tensor", rebuilt(hooks=HOOKS + b"}"))
    value("tensor_of_none", "rebuilds a tensor", rebuilt(stored=b"N"))
    value("parameter_of_none", "rebuilds a parameter",
          b"ctorch._utils\n_rebuild_parameter\nN" + HOOKS + b"\x87R")
    for name, stored in (("word", storage(word="module")), ("class", storage(HOOKS[1:-2])),
                         ("count", storage(n=-1)), ("none", b"NQ"), ("short", b")Q")):
        value("storage_" + name, "not a storage", rebuilt(stored))
    value("storage_key", "no plain file name", rebuilt(storage(key="../0")))
    value("storage_absent", "has no member 'archive/data/9'", rebuilt(storage(key="9")))
    value("storage_size", "has 7 elements, but 24 bytes", rebuilt(storage(n=7)))
    value("storage_huge", "elements, but 24 bytes", rebuilt(storage(n=1 << 62)))
    value("offset", "reaches beyond", rebuilt(offset=1))
    value("offset_negative", "reaches beyond", rebuilt(offset=-1))
    value("offset_wraps", "reaches beyond", rebuilt(offset=1 << 62))
    value("strides", "reaches beyond", rebuilt(strides=(4, 1)))
    value("strides_wrap", "reaches beyond", rebuilt(strides=((1 << 63) - 1, 1)))
    value("size_negative", "not a count", rebuilt(sizes=(-2, 3)))
    value("size_of_none", "not a count",
          REBUILD + b"(" + storage() + b"K\0(NNt" + numbers([3, 1]) + HOOKS + b"tR")
    value("sizes_wrap", "overflow", rebuilt(sizes=(1 << 40, 1 << 40)))
    value("sizes_other", "other sizes", rebuilt(sizes=(3, 2), strides=(2, 1)))
    value("sizes_more", "other sizes than strides", rebuilt(sizes=(2, 3, 1)))
    value("rank_17", "more than 16", rebuilt(sizes=[1] * 17, strides=[1] * 17))
    pickled("no_tensor", UNSUPPORTED, "never loaded", b"N")


# -- 11-15: JSON -----------------------------------------------------------------------------------

def jsons():
    good = json.dumps(program())

    def raw(name, code, message, data):
        case(name, code, message, archive(members(data)))
    raw("11_open_brackets", MODEL, "not JSON", "[" * 1000000)
    raw("11_deep", OK, "", good[:-1] + ', "deep": ' + "[" * 1000000 + "]" * 1000000 + "}")
    raw("11_array", MODEL, "not an object", "[1]")
    raw("11_empty", MODEL, "is empty", "")
    raw("12_long_string", OK, "", good[:-1] + ', "long": "' + "x" * 100000000 + '"}')
    raw("12_surrogate", MODEL, "not JSON", good[:-1] + ', "s": "\\ud800"}')
    raw("12_utf8", MODEL, "not JSON", good.encode()[:-1] + b', "s": "\xc3("}')
    raw("12_bom", MODEL, "not JSON", b"\xef\xbb\xbf" + good.encode())
    raw("12_nul", MODEL, "not JSON", good[:-1] + ', "s": "\0"}')
    text("12_nul_in_name", MODEL, "is not a name", '"p_w": {"dtype"', '"p\\u0000w": {"dtype"')
    raw("12_after_end", MODEL, "not JSON", good + "x")
    for name, value, message in (("13_1e999", "1e999", "not JSON"), ("13_nan", "NaN", "not JSON"),
                                 ("13_infinity", "Infinity", "not JSON"), ("13_2_63", "9223372036854775808", "size"),
                                 ("13_2_64", "18446744073709551616", "size"), ("13_fraction", "2.5", "size"),
                                 ("13_leading_zero", "02", "not JSON")):
        text(name, MODEL, message, '"as_int": 2}', '"as_int": %s}' % value)
    text("13_minus_zero", MODEL, "other sizes", '"as_int": 2}', '"as_int": -0}')
    text("13_dtype", MODEL, "is not a dtype", '"dtype": 7', '"dtype": 7.0')
    text("14_key_twice", MODEL, "twice", '"nodes": [', '"nodes": [], "nodes": [')
    many = ", ".join('"k%d": 0' % (i % 99) for i in range(100))
    raw("14_key_twice_of_many", MODEL, "'k0' twice", good[:-1] + ', "o": {' + many + "}}")
    text("14_unknown_tag", UNSUPPORTED, "argument 'self' is of the unknown kind 'as_thing'",
         '"arg": {"as_tensor": {"name": "x"}}', '"arg": {"as_thing": {"name": "x"}}')
    text("14_two_tags", MODEL, "argument 'self' is not an object with one key",
         '"arg": {"as_tensor": {"name": "x"}}', '"arg": {"as_tensor": {"name": "x"}, "as_int": 1}')
    text("14_no_tag", MODEL, "one key", '"arg": {"as_tensor": {"name": "x"}}', '"arg": {}')
    text("14_wrong_type", MODEL, "one key", '"arg": {"as_tensor": {"name": "x"}}', '"arg": [1]')
    text("14_custom_object", UNSUPPORTED, "unsupported kind 'as_custom_obj'",
         '"arg": {"as_tensor": {"name": "x"}}', '"arg": {"as_custom_obj": {"name": "x"}}')
    for name, code, message, part in [
            ("14_complex", OK, "aten.complex.default(", {"real": 0.5, "imag": "Infinity"}), ("14_complex_real", MODEL, "argument 'self' is not a complex number", {"real": 0.5}),
            ("14_complex_list", MODEL, "not a complex number", [0.5, 1.0])]:
        text(name, code, message, '"arg": {"as_tensor": {"name": "x"}}', '"arg": {"as_complex": %s}' % json.dumps(part))
    text("15_older", UNSUPPORTED, "expected 8: export the model with torch 2.5 or later", '"major": 8, "minor": 20', '"major": 7, "minor": 3')
    text("15_newer", UNSUPPORTED, "expected 8: export the model with torch 2.5 to 2.13", '"major": 8, "minor": 20', '"major": 9, "minor": 0')
    text("15_none", MODEL, "no schema_version", '"schema_version"', '"schema"')
    text("15_opset", OK, "", '"aten": 10', '"aten": 99, "other": 1')
    text("15_unknown_key", OK, "", '"opset_version"', '"new_in_9": [{}], "opset_version"')


# -- 16-20: programs ---------------------------------------------------------------------------------

def graphs():
    graph = lambda p: p["graph_module"]["graph"]
    sig = lambda p: p["graph_module"]["signature"]

    def nodes(*more):
        def change(p, c):
            for n, sizes in more:
                graph(p)["nodes"].append(n)
                if sizes is not None:
                    graph(p)["tensor_values"][n["name"]] = meta(sizes)
        return change
    changed("16_undefined", MODEL, "node 'z' (aten.add.Tensor): the value 'nobody' is nowhere",
            nodes((add("z", "x", "nobody"), [2, 3])))
    changed("16_twice", MODEL, "'add' is defined twice", nodes((add("add", "x", "p_w"), None)))
    changed("16_input_twice", MODEL, "'x' is defined twice", nodes((add("x", "x", "p_w"), None)))
    changed("16_early", MODEL, "'z' is used before", nodes((add("y", "x", "z"), [2, 3]), (add("z", "x", "x"), [2, 3])))
    changed("16_itself", MODEL, "'z' is used before", nodes((add("z", "x", "z"), [2, 3])))
    changed("16_signature", MODEL, "'gone' is nowhere",
            lambda p, c: sig(p)["output_specs"][0]["user_output"].update(arg=tensor("gone")))
    changed("16_signature_input", MODEL, "'gone' is nowhere",
            lambda p, c: sig(p)["input_specs"][0]["parameter"]["arg"].update(name="gone"))
    changed("16_signature_shorter", MODEL, "its signature 1", lambda p, c: sig(p)["input_specs"].pop())
    changed("16_outputs", MODEL, "0 outputs, its signature 1", lambda p, c: graph(p)["outputs"].clear())
    changed("16_no_meta", MODEL, "'z' is nowhere described", nodes((add("z", "x", "x"), None)))
    changed("16_name", MODEL, "is not a name", lambda p, c: graph(p)["tensor_values"].update({'a"*/': meta([1])}))
    changed("16_no_nodes", MODEL, "'nodes'", lambda p, c: graph(p).pop("nodes"))
    changed("16_missing_argument", MODEL, "argument 'other' is missing",
            lambda p, c: graph(p)["nodes"][0]["inputs"].pop())
    changed("16_argument_twice", MODEL, "argument 'self' is given twice",
            lambda p, c: graph(p)["nodes"][0]["inputs"][1].update(name="self"))
    changed("16_unknown_argument", UNSUPPORTED, "argument 'beta' is unknown",
            lambda p, c: graph(p)["nodes"][0]["inputs"][1].update(name="beta"))
    changed("16_kind_of_argument", MODEL, "argument 1 is not",
            lambda p, c: graph(p)["nodes"][0]["inputs"][1].update(arg={"as_string": "x"}))
    for tag, value, code, message in (
            ("as_int", 1, OK, "etc.constant(1) : int(1)"), ("as_bool", True, OK, "etc.constant(true) : bool"),
            ("as_float", 0.5, OK, "etc.constant(0.5) : float"), ("as_none", True, OK, "etc.constant(none) : none"),
            ("as_string", "s", UNSUPPORTED, "output 0 of the model is not a tensor but as_string"),
            ("as_sym_int", {"as_name": "x"}, UNSUPPORTED, "output 0 of the model is not a tensor but as_sym_int"),
            ("as_sym_float", {"as_name": "f"}, MODEL, "the value 'f' is nowhere"),
            ("as_int", "1", UNSUPPORTED, "output 0 of the model is not a tensor but as_int")):
        changed("16_output_%s_%s" % (tag, type(value).__name__), code, message, lambda p, c, tag=tag, value=value:
                sig(p)["output_specs"][0]["user_output"].update(arg={tag: value}))

    def fixed(name, code, message, value):
        def change(p, c):
            graph(p)["inputs"].append(value)
            sig(p)["input_specs"].append({"constant_input": {"name": "k", "value": value}})
        changed(name, code, message, change)
    fixed("16_input_int", OK, "%k: int(-3) = -3)", {"as_int": -3})
    fixed("16_input_least", OK, "%k: int(-9223372036854775808) = -9223372036854775808)", {"as_int": -(1 << 63)})
    fixed("16_input_string", OK, '%k: none = "a\\"b")', {"as_string": 'a"b'})
    fixed("16_input_none", OK, "%k: none = none)", {"as_none": True})
    fixed("16_input_other", UNSUPPORTED, "the input 'k' is neither a tensor nor a plain value", {"as_layout": 7})
    fixed("16_input_fraction", UNSUPPORTED, "the input 'k' is neither a tensor nor a plain value", {"as_int": 1.5})

    def symbolic_number(name, code, message, tag, arg):
        def change(p, c):
            p["range_constraints"] = {"s0": {"min_val": 1, "max_val": 9}}
            graph(p)["sym_int_values"]["n"] = symbol("s0")
            graph(p)["sym_float_values"]["f"] = expr("ToFloat(Symbol('zf0'))")
            graph(p)["inputs"].append({tag: arg})
            sig(p)["input_specs"].append({"user_input": {"arg": {tag: arg}}})
        changed(name, code, message, change)
    symbolic_number("16_input_sym_int", OK, "aten._local_scalar_dense.default(%n) : int(%s0)", "as_sym_int", {"as_name": "n"})
    symbolic_number("16_input_sym_float", OK, "%f: f64[]", "as_sym_float", {"as_name": "f"})
    symbolic_number("16_input_sym_unknown", MODEL, "'q' is nowhere", "as_sym_int", {"as_name": "q"})
    symbolic_number("16_input_sym_tensor", MODEL, "'x' is defined twice", "as_sym_int", {"as_name": "x"})
    def condition(name, code, message, text):
        def change(p, c):
            p["range_constraints"] = {"s0": {"min_val": 1, "max_val": 9}}
            graph(p)["sym_int_values"]["n"] = symbol("s0")
            graph(p)["sym_bool_values"]["b"] = expr(text)
            graph(p)["inputs"].append({"as_sym_int": {"as_name": "n"}})
            sig(p)["input_specs"].append({"user_input": {"arg": {"as_sym_int": {"as_name": "n"}}}})
            graph(p)["nodes"].append(node("z", "torch.ops.aten.logical_not.default", ("self", {"as_sym_bool": {"as_name": "b"}})))
            graph(p)["tensor_values"]["z"] = meta([], dtype=12)
        changed(name, code, message, change)
    less = "StrictLessThan(Symbol('s0', positive=True, integer=True), Integer(4))"
    condition("16_condition", OK, "aten.lt.Scalar", f"And({less}, Not({less}))")
    condition("16_condition_unknown", UNSUPPORTED, "the function 'Perhaps' in the condition", f"Perhaps({less})")
    condition("16_condition_half", MODEL, "cannot be read", "StrictLessThan(Integer(1))")
    condition("16_condition_more", MODEL, "cannot be read", less + ")")
    condition("16_condition_deep", MODEL, "is too deep", "Not(" * 5000 + less + ")" * 5000)
    condition("16_condition_wide", MODEL, "overflows", "Equality(Integer(-9223372036854775807), Integer(9223372036854775807))")
    changed("16_token", MODEL, "the value 'p_w' is used before it is defined",
            lambda p, c: sig(p)["input_specs"].__setitem__(0, {"token": {"arg": {"name": "p_w"}}}))
    effect = lambda op: node("z", "torch.ops.higher_order.with_effects", ("", tensor("x")), ("", {"as_operator": op}), ("", tensor("x")))
    changed("16_effect", UNSUPPORTED, "node 'z' (higher_order.with_effects): the operator is not supported",
            nodes((effect("torch.ops.aten._print.default"), [2, 3])))
    changed("16_effect_of_none", UNSUPPORTED, "node 'z' (higher_order.with_effects): the operator is not supported",
            nodes((effect(7), [2, 3])))
    changed("16_effect_alone", UNSUPPORTED, "node 'z' (higher_order.with_effects): the operator is not supported",
            nodes((node("z", "torch.ops.higher_order.with_effects", ("", tensor("x"))), [2, 3])))
    changed("16_effect_asserts", OK, "aten.add.Tensor",
            nodes((effect("torch.ops.aten._linalg_check_errors.default"), [2, 3])))
    written = lambda *outs, **more: node("z", "torch.ops.aten.add.out", ("self", tensor("x")), ("other", tensor("x")),
                                         *(("out%d" % i, out) for i, out in enumerate(outs)), **more)
    changed("16_out", OK, "aten.copy_.default(%x, %z.result, false)", nodes((written(tensor("x")), [2, 3])))
    changed("16_out_resized", UNSUPPORTED, "resizes the tensor of out=", nodes((written(tensor("x")), [3, 3])))
    changed("16_out_number", UNSUPPORTED, "a result that is not a tensor", nodes((written({"as_int": 1}), [2, 3])))
    changed("16_out_unknown", MODEL, "'nobody' is nowhere", nodes((written(tensor("nobody")), [2, 3])))
    changed("16_out_missing", UNSUPPORTED, "has 0 tensors for out=, and 1 results", nodes((written(), [2, 3])))
    changed("16_out_twice", UNSUPPORTED, "has 2 tensors for out=, and 1 results",
            nodes((written(tensor("x"), tensor("x")), [2, 3])))
    changed("16_out_two_results", MODEL, "is defined twice", nodes((written(tensor("x"), tensor("x"),
            outputs=[tensor("z"), tensor("z")]), [2, 3])))
    changed("16_unknown_operators", UNSUPPORTED, "only its overload 'aten.add.Scalar'",
            nodes((node("z", "torch.ops.aten.add.None"), [2, 3]), (node("q", "torch.ops.my.op"), [2, 3])))
    for op in "rand.default", "normal_.default", "bernoulli.p":
        changed("16_random_" + op, UNSUPPORTED, "draws random numbers: make them an input", nodes((node("z", "torch.ops.aten." + op), [2, 3])))
    truth = node("z", "torch.ops.aten.item.default", ("self", tensor("x")), outputs=[{"as_sym_bool": {"as_name": "told"}}])
    changed("16_check_of_tensor", OK, "", lambda p, c: graph(p)["nodes"].append(truth))
    changed("16_use_of_check", UNSUPPORTED, "argument 'keepdim' is a symbolic bool",
            nodes((truth, None), (node("z", "torch.ops.aten.any.dim", ("self", tensor("x")), ("dim", {"as_int": 0}),
                                       ("keepdim", {"as_sym_bool": {"as_name": "told"}})), [3])))

    def sizes(name, code, message, m, w=None, data=WEIGHT):
        def change(p, c):
            graph(p)["tensor_values"]["p_w"] = m
            c["config"]["w"]["tensor_meta"] = w or m
        changed(name, code, message, change, data)
    sizes("17_negative", MODEL, "negative size", meta([-2, -3]))
    sizes("17_zero", OK, "f32[0,3] in", meta([0, 3]), data=b"")
    sizes("17_huge", MODEL, "overflow", meta([1 << 40, 1 << 40]))
    sizes("17_rank", UNSUPPORTED, "10000 dimensions", meta([1] * 10000))
    sizes("17_stride", MODEL, "reaches beyond", meta([2, 3], strides=[1000, 1]))
    sizes("17_stride_overflow", MODEL, "reaches beyond", meta([2, 3], strides=[1 << 62, 1 << 62]))
    sizes("17_stride_negative", MODEL, "negative stride", meta([2, 3], strides=[-3, 1]))
    sizes("17_expanded", OK, "f32[2,3] strides [0,1] in", meta([2, 3], strides=[0, 1]), data=WEIGHT[:12])
    sizes("17_window", OK, '"w" : f32[2] strides [3] in "weight_0"+4', meta([2], strides=[3], offset=1))
    sizes("17_transposed", OK, "f32[3,2] strides [1,3] in", meta([3, 2], strides=[1, 3]))
    sizes("17_stride_of_one", OK, "f32[1,6] in", meta([1, 6], strides=[99, 1]))
    sizes("17_offset", MODEL, "reaches beyond", meta([2, 3], offset=1))
    sizes("17_offset_negative", MODEL, "reaches beyond", meta([2, 3], offset=-1))
    sizes("17_offset_huge", MODEL, "reaches beyond", meta([2, 3], offset=(1 << 63) - 1))
    sizes("17_file_short", MODEL, "reaches beyond", meta([2, 3]), data=WEIGHT[:23])
    sizes("17_dtype", MODEL, "dtype code 99", meta([2, 3], dtype=99))
    sizes("17_complex", UNSUPPORTED, "dtype complex32", meta([2, 3], dtype=9))
    sizes("17_lengths", MODEL, "2 sizes and 1 strides", meta([2, 3], strides=[1]))
    sizes("17_config_differs", MODEL, "in the config than in", meta([2, 3]), meta([3, 2]))
    sizes("17_config_symbolic", MODEL, "range_constraints", meta([2, 3]), meta([symbol("s9"), 3], strides=[3, 1]))
    sizes("17_bool", MODEL, "neither 0 nor 1", meta([2, 3], dtype=12), data=b"\0\1\0\1\0\2")
    changed("17_path", MODEL, "no plain file name",
            lambda p, c: c["config"]["w"].update(path_name="../../../etc/passwd"))
    changed("17_no_entry", MODEL, "'w' has no entry", lambda p, c: c["config"].clear())

    def symbolic(name, code, message, size, ranges=None):
        def change(p, c):
            p["range_constraints"] = ranges or {"s0": {"min_val": 2, "max_val": 64}}
            graph(p)["tensor_values"]["x"] = meta([size, 3], strides=[3, 1])
        changed(name, code, message, change)
    s0 = "Symbol('s0', positive=True, integer=True)"
    symbolic("18_good", OK, "%x: f32[%s0,3]", symbol("s0"))
    symbolic("18_unbounded", OK, "sym %s0 in -9223372036854775808..", symbol("s0"), {"s0": {"min_val": None, "max_val": None}})
    symbolic("18_empty_range", MODEL, "is empty", symbol("s0"), {"s0": {"min_val": 3, "max_val": 2}})
    symbolic("18_range_type", MODEL, "max_val", symbol("s0"), {"s0": {"min_val": 3, "max_val": "x"}})
    symbolic("18_no_range", MODEL, "'s1' has no range", symbol("s1"))
    symbolic("18_many_terms", MODEL, "too large", expr("Add(" + ", ".join([s0] * 100000) + ")"))
    symbolic("18_deep", MODEL, "too large", expr("Add(" * 100000 + s0 + ")" * 100000))
    symbolic("18_powers", MODEL, "overflows", expr("Mul(" + ", ".join([s0] * 100) + ")"))
    symbolic("18_by_zero", MODEL, "divides by zero", expr("FloorDiv(%s, Integer(0))" % s0))
    symbolic("18_mod_zero", MODEL, "divides by zero", expr("Mod(%s, Integer(0))" % s0))
    symbolic("18_zeroth", MODEL, "divides by zero", expr("Pow(Integer(0), Integer(-1))"))
    symbolic("18_overflow", MODEL, "overflows", expr("Mul(Integer(4611686018427387904), Integer(4), %s)" % s0))
    symbolic("18_big_integer", MODEL, "cannot be read", expr("Integer(9223372036854775808)"))
    symbolic("18_function", UNSUPPORTED, "function 'Where'", expr("Where(%s, %s, %s)" % (s0, s0, s0)))
    symbolic("18_garbage", MODEL, "cannot be read", expr("Add(%s, " % s0))
    symbolic("18_more", MODEL, "cannot be read", expr(s0 + ")"))
    symbolic("18_half", OK, "%x: f32[%s0,3]", expr("Mul(Rational(1, 2), Add(%s, %s))" % (s0, s0)))
    symbolic("18_ceiling", OK, "%x: f32[floordiv(%s0+3,4),3]", expr("CeilDiv(%s, Integer(4))" % s0))
    symbolic("18_floor_of_quotient", OK, "%x: f32[floordiv(%s0,2),3]",
             expr("FloorToInt(IntTrueDiv(%s, Integer(2)))" % s0))
    symbolic("18_float", OK, "%x: f32[floordiv(5*%s0,2),3]", expr(
        "TruncToInt(Mul(Float('2.5', precision=53), ToFloat(%s)))" % s0))
    symbolic("18_derived", OK, "%x: f32[2*%s0+1,3]", expr("Add(Mul(Integer(2), %s), Integer(1))" % s0),
             {"s0": {"min_val": 2, "max_val": 64}, "2*s0 + 1": {"min_val": 5, "max_val": 129}})
    symbolic("18_indexing", OK, "mod(floordiv(%s0,4),8)", expr("ModularIndexing(%s, Integer(4), Integer(8))" % s0))

    def guarded(name, message, *guards, key=None):
        def change(p, c):
            p["range_constraints"] = {"s0": {"min_val": 2, "max_val": 64}}
            if key:
                p["range_constraints"][key] = {"min_val": 4, "max_val": 32}
            p["guards_code"] = list(guards)
            graph(p)["tensor_values"]["x"] = meta([symbol("s0"), 3])
        changed("18_guard_" + name, OK, message, change)
    size = "L['x'].size()[0]"
    guarded("kept", 'guard mod(%s0,8) in 0..0 "(', "(%s %% 8) == 0" % size)
    guarded("of_and", 'guard %s0-9 in ..-1 "2 < ', "2 < %s < 9 and (%s > 4)" % (size, size))
    guarded("of_not_equal", "guard max(-%s0+5,%s0-5) in 1.. ", size + " != 5")
    guarded("implied", "", "%s >= 2" % size, "%s != 1" % size)
    guarded("of_range", 'guard 2*%s0 in 4..32 "2*s0 in 4..32"', key="2*s0")
    for name, text_ in (("garbage", "import os"), ("empty", ""), ("or", size + " > 3 or " + size + " < 2"),
                        ("deep", "(" * 100000 + size + ")" * 100000 + " == 2"),
                        ("minus", "-" * 100000 + "1 == " + size),
                        ("long", " + ".join([size] * 100000) + " == 2"),
                        ("by_zero", size + " // 0 == 1"), ("overflow", "9223372036854775807 * 4 * %s == 1" % size),
                        ("big", "9223372036854775808 == " + size), ("other", "L['y'].size()[0] == 1"),
                        ("axis", "L['x'].size()[2] == 1"), ("stride", "L['x'].stride()[0] == 3"),
                        ("power", size + " ** 99999999 == 1"), ("unknown", "s99 == 1"),
                        ("open", "L['x"), ("path", "L" + "['x']" * 100 + " == 1")):
        guarded(name, "not checked at run time", text_)
    guarded("key", "is not checked at run time", key="2*(")

    def at_least_one(p, c):
        p["range_constraints"] = {"s0": {"min_val": 0, "max_val": 64}}
        graph(p)["tensor_values"]["x"] = meta([3, symbol("s0")], strides=[
            expr("Max(Integer(1), %s)" % s0), 1])
    changed("18_strides_of_at_least_one", OK, "%x: f32[3,%s0])", at_least_one)

    def two(name, code, message, dtype, path, size):
        def change(p, c):
            graph(p)["tensor_values"].update(p_v=meta(size, dtype=dtype), z=meta([2, 3]))
            graph(p)["inputs"].insert(0, tensor("p_v"))
            sig(p)["input_specs"].insert(0, {"parameter": {"arg": {"name": "p_v"}, "parameter_name": "v"}})
            graph(p)["nodes"].append(add("z", "x", "p_v"))
            c["config"]["v"] = copy.deepcopy(c["config"]["w"])
            c["config"]["v"].update(tensor_meta=meta(size, dtype=dtype), path_name=path)
        changed(name, code, message, change)
    two("19_two_dtypes", MODEL, "share the file", 4, "weight_0", [2, 3])
    two("19_tied", OK, "", 7, "weight_0", [2, 3])
    two("19_tied_part", OK, '"v" : f32[3] in "weight_0"+0', 7, "weight_0", [3])

    def written(p, c):
        graph(p)["nodes"].insert(0, node("add_", "torch.ops.aten.add_.Tensor", ("self", tensor("p_w")),
                                         ("other", {"as_int": 1})))
        graph(p)["tensor_values"]["add_"] = meta([2, 3])
    changed("19_written", OK, "aten.add_.Tensor(%p_w, 1, 1)", written)
    changed("19_mutation_of_nothing", MODEL, "nothing that can be written is called 'b'",
            lambda p, c: sig(p)["output_specs"].__setitem__(
                0, {"buffer_mutation": {"arg": {"name": "add"}, "buffer_name": "b"}}))

    def branch(n_in=1, n_out=1, dtype=7, inner=None, shape=(2, 3)):
        values = {"t%d" % i: meta([2, 3]) for i in range(n_in)}
        values["r"] = meta(list(shape), dtype=dtype)
        body = [inner or node("r", "torch.ops.aten.relu.default", ("self", tensor("t0")))]
        return {"as_graph": {"name": "g", "graph": {
            "inputs": [tensor("t%d" % i) for i in range(n_in)], "outputs": [tensor("r")] * n_out,
            "nodes": body, "tensor_values": values, "sym_int_values": {}}}}

    def cond(name, code, message, a, b):
        def change(p, c):
            graph(p)["tensor_values"].update(flag=meta([], dtype=12), z=meta([2, 3]))
            graph(p)["inputs"].append(tensor("flag"))
            sig(p)["input_specs"].append({"user_input": {"arg": tensor("flag")}})
            graph(p)["nodes"].append(
                node("z", "torch.ops.higher_order.cond", ("", tensor("flag")), ("", a), ("", b),
                     ("", {"as_tensors": [{"name": "add"}]})))
        changed(name, code, message, change)
    cond("20_good", OK, "higher_order.cond(%flag, graph (%t0: f32[2,3])", branch(), branch())
    cond("20_inputs", MODEL, "2 inputs and 1 outputs, expected 1 and 1", branch(), branch(n_in=2))
    cond("20_outputs", MODEL, "1 inputs and 2 outputs, expected 1 and 1", branch(), branch(n_out=2))
    cond("20_dtype", MODEL, "output 0 of a graph", branch(), branch(dtype=4))
    deep = branch()
    for _ in range(100):
        inner = node("r", "torch.ops.higher_order.cond", ("", {"as_bool": True}), ("", deep),
                     ("", branch()), ("", {"as_tensors": [{"name": "t0"}]}))
        deep = branch(inner=inner)
    cond("20_deep", MODEL, "graphs inside each other", deep, branch())
    wrap = branch()
    wrap["as_graph"]["graph"]["nodes"][0]["inputs"][0]["arg"] = tensor("z")
    def cond_into(p, a, b):
        graph(p)["tensor_values"]["z"] = meta([2, 3])
        graph(p)["nodes"].append(node("z", "torch.ops.higher_order.cond", ("", {"as_bool": True}),
                                      ("", a), ("", b), ("", {"as_tensors": [{"name": "add"}]})))
    changed("20_reads_outside", MODEL, "'z' is nowhere", lambda p, c: cond_into(p, wrap, branch()))

    def loop(name, code, message, test, body, *more):
        changed(name, code, message, nodes((
            node("z", "torch.ops.higher_order.while_loop", ("", test), ("", body),
                 ("", {"as_tensors": [{"name": "add"}]}), ("", {"as_tensors": list(more)})), [2, 3])))
    test = branch(dtype=12, shape=[], inner=node("r", "torch.ops.aten.all.default", ("self", tensor("t0"))))
    loop("20_while", OK, "higher_order.while_loop(graph (%t0: f32[2,3])", test, branch())
    loop("20_while_dtype", MODEL, "output 0 of a graph", test, branch(dtype=4))
    loop("20_while_rank", MODEL, "output 0 of a graph of it has another dtype or rank", test, branch(shape=[6]))
    loop("20_while_inputs", MODEL, "1 inputs and 1 outputs, expected 2 and 1", test, branch(n_in=2), {"name": "x"})
    loop("20_while_outputs", MODEL, "1 inputs and 2 outputs, expected 1 and 1", test, branch(n_out=2))
    loop("20_while_captures", MODEL, "'z' is nowhere", test, wrap)
    loop("20_while_no_graph", MODEL, "cond_graph", {"as_none": True}, branch())

    def scan(name, code, message, body, *lists, n_out=1, target="scan"):
        def change(p, c):
            values = graph(p)["tensor_values"]
            values.update({"z%d" % i: meta([2, 3]) for i in range(n_out)}, flat=meta([]), long=meta([3, 3]))
            for extra in ("flat", "long"):
                graph(p)["inputs"].append(tensor(extra))
                sig(p)["input_specs"].append({"user_input": {"arg": tensor(extra)}})
            step = node("z", "torch.ops.higher_order." + target, ("", body),
                        *(("", {"as_tensors": [{"name": n} for n in names]}) for names in lists))
            step["outputs"] = [tensor("z%d" % i) for i in range(n_out)]
            graph(p)["nodes"].append(step)
        changed(name, code, message, change)
    row = branch()
    row["as_graph"]["graph"]["tensor_values"]["t0"] = meta([3])
    scan("20_scan", OK, ", %z0 = higher_order.while_loop", row, [], ["add"], [])
    scan("20_map", OK, ", %z0 = higher_order.while_loop", row, ["add"], [], target="map_impl")
    scan("20_scan_two_lengths", MODEL, "operand 1 has not as many parts as the first", row, [], ["add", "long"], [])
    scan("20_scan_of_a_number", MODEL, "operand 0 has not as many parts", row, [], ["flat"], [])
    scan("20_scan_of_nothing", UNSUPPORTED, "takes no tensor apart", row, ["add"], [], [])
    scan("20_scan_inputs", MODEL, "1 inputs and 1 outputs, expected 2 and 1", row, ["add"], ["add"], [])
    scan("20_scan_outputs", MODEL, "1 inputs and 1 outputs, expected 1 and 2", row, [], ["add"], [], n_out=2)
    scan("20_scan_carries_more", MODEL, "0 results, but it carries 1 tensors", row, ["add"], ["add"], [], n_out=0)
    scan("20_scan_no_graph", MODEL, "is not a graph with 3 lists of operands", {"as_none": True}, [], ["add"], [])
    scan("20_scan_lists", MODEL, "is not a graph with 3 lists of operands", row, [], ["add"])
    scan("20_map_lists", MODEL, "is not a graph with 2 lists of operands", row, ["add"], [], [], target="map_impl")

    def grad(p, c):
        graph(p)["tensor_values"]["z"] = meta([2, 3])
        graph(p)["nodes"].append(node("z", "torch.ops.higher_order.wrap_with_set_grad_enabled",
                                      ("", {"as_bool": False}), ("", branch()), ("", tensor("add"))))
        sig(p)["output_specs"][0]["user_output"]["arg"] = tensor("z")
    changed("20_inlined", OK, "%z.r = aten.relu.default(%add)", grad)

    def autocast(name, code, message, enabled):
        def change(p, c):
            graph(p)["tensor_values"].update(z=meta([2, 3]), y=meta([2, 3]))
            graph(p)["nodes"] += [
                node("z", "torch.ops.higher_order.wrap_with_autocast", ("", {"as_string": "cpu"}),
                     ("", {"as_scalar_type": 13}), ("", enabled), ("", {"as_none": True}),
                     ("", branch()), ("", tensor("add"))),
                add("y", "z", "z")]
        changed(name, code, message, change)
    autocast("20_autocast", OK, "%z.r = aten.relu.default(%add)", {"as_bool": True})
    autocast("20_autocast_perhaps", MODEL, "does not say whether it is enabled", {"as_int": 1})

    mark = "torch._functorch.predispatch."

    def vmap(axis=0, level=1, to=0, size=(2, 3), inner=()):
        def change(p, c):
            z = inner[-1]["outputs"][0]["as_tensor"]["name"] if inner else "z"
            graph(p)["tensor_values"].update(z=meta([3]), y=meta(list(size)), v=meta([3]), u=meta([]))
            graph(p)["nodes"] += [
                node("m", mark + "_vmap_increment_nesting", ("", {"as_int": 2}), outputs=[{"as_none": True}]),
                node("z", mark + "_add_batch_dim", ("", tensor("add")), ("", {"as_int": axis}), ("", {"as_int": 1})),
                *inner,
                node("y", mark + "_remove_batch_dim", ("", tensor(z)), ("", {"as_int": level}), ("", {"as_int": 2}),
                     ("", {"as_int": to}))]
        return change
    changed("20_vmap", OK, "aten.permute.default(%z.4, [0, 1]) : f32[2,3]", vmap())
    changed("20_vmap_of_no_axis", MODEL, "has no axis 2 for a level of its own", vmap(axis=2))
    changed("20_vmap_to_no_axis", MODEL, "has no axis 2", vmap(to=2))
    changed("20_vmap_sizes", MODEL, "has other sizes than torch.vmap gives it", vmap(size=(3, 3)))
    changed("20_vmap_other_level", OK, "%u.e1 = aten.sum.default(%u.8, none)",
            vmap(level=2, inner=[node("u", "torch.ops.aten.sum.default", ("self", tensor("z")))], size=(2,)))
    changed("20_vmap_write", UNSUPPORTED, "under torch.vmap, which is not batched yet: torch does that in",
            vmap(level=2, inner=[node("v", "torch.ops.aten.add_.Tensor", ("self", tensor("z")), ("other", tensor("z")))]))
    changed("20_vmap_twice", MODEL, "has no axis 0 for a level of its own",
            vmap(inner=[node("v", mark + "_add_batch_dim", ("", tensor("z")), ("", {"as_int": 0}), ("", {"as_int": 1}))]))
    changed("20_vmap_words", MODEL, "cannot be read", vmap(axis="one"))


# -- 28: scales and zero points ---------------------------------------------------------------------

def quantized():
    def result(p, *nodes):
        graph = p["graph_module"]["graph"]
        graph["nodes"] = list(nodes)
        graph["tensor_values"].update(q=meta([2, 3], dtype=2), y=meta([2, 3]))
        graph["outputs"] = [tensor("y")]
        p["graph_module"]["signature"]["output_specs"] = [{"user_output": {"arg": tensor("y")}}]

    def pair(form, *points):
        limits = [("quant_min", {"as_int": -128}), ("quant_max", {"as_int": 127}), ("dtype", {"as_scalar_type": 2})]
        op = "torch.ops.quantized_decomposed.%squantize_per_" + form + ".default"
        return [node("q", op % "", ("input", tensor("x")), *points, *limits),
                node("y", op % "de", ("input", tensor("q")), *points, *limits)]

    def per_tensor(name, code, message, scale, zero):
        changed(name, code, message, lambda p, c: result(p, *pair(
            "tensor", ("scale", {"as_float": scale}), ("zero_point", zero))))
    zero = {"as_int": 0}
    per_tensor("28_good", OK, "quantize_per_tensor.default(%q, 0.5, 0, -128, 127, i8", 0.5, zero)
    per_tensor("28_scale_0", MODEL, "node 'q' (quantized_decomposed.quantize_per_tensor.default): "
               "scale has the value 0, expected one above 0 and finite", 0.0, zero)
    per_tensor("28_scale_negative", MODEL, "scale has the value -0.5", -0.5, zero)
    per_tensor("28_scale_nan", MODEL, "scale has the value nan", "NaN", zero)
    per_tensor("28_scale_infinite", MODEL, "scale has the value inf", "Infinity", zero)
    per_tensor("28_scale_denormal", OK, "5e-324", 5e-324, zero)
    per_tensor("28_zero_point_too_large", MODEL, "zero_point has the value 128, which no i8 holds", 0.5, {"as_int": 128})
    per_tensor("28_zero_point_least", MODEL, "which no i8 holds", 0.5, {"as_int": -(1 << 63)})
    per_tensor("28_zero_point_fraction", MODEL, "is not 'int zero_point'", 0.5, {"as_float": 0.5})

    def per_channel(name, code, message, scales=(1, 2, 3), zeros=(0, 1, 2), axis=1, dtype=5):
        p, c = program(), config()
        graph, sig = p["graph_module"]["graph"], p["graph_module"]["signature"]
        graph["tensor_values"].update(p_w=meta([len(scales)]), p_z=meta([len(zeros)], dtype=dtype))
        graph["inputs"].insert(0, tensor("p_z"))
        sig["input_specs"].insert(0, {"parameter": {"arg": {"name": "p_z"}, "parameter_name": "z"}})
        c["config"]["z"] = copy.deepcopy(c["config"]["w"])
        c["config"]["z"].update(tensor_meta=meta([len(zeros)], dtype=dtype), path_name="weight_1")
        c["config"]["w"]["tensor_meta"] = meta([len(scales)])
        result(p, *pair("channel", ("scales", tensor("p_w")), ("zero_points", tensor("p_z")),
                        ("axis", {"as_int": axis})))
        kind = {5: "q", 7: "f"}[dtype]
        case(name, code, message, archive(members(
            json.dumps(p), c, struct.pack("<%df" % len(scales), *scales),
            [Member("m/data/weights/weight_1", struct.pack("<%d%s" % (len(zeros), kind), *zeros))])))
    per_channel("28_channels", OK, "dequantize_per_channel.default(%q, %p_w, %p_z, 1, -128, 127, i8")
    per_channel("28_channels_too_few", MODEL, "scales has 2 elements, expected 3", scales=(1, 2))
    per_channel("28_channels_zero_points", MODEL, "zero_points has 4 elements, expected 3", zeros=(0, 0, 0, 0))
    per_channel("28_channels_axis", MODEL, "axis -9 is out of range", axis=-9)
    per_channel("28_channels_scale_0", MODEL, "scales has the value 0", scales=(1, 0, 3))
    per_channel("28_channels_scale_nan", MODEL, "scales has the value nan", scales=(1, 2, float("nan")))
    per_channel("28_channels_zero_point", MODEL, "zero_points has the value -129, which no i8 holds", zeros=(0, -129, 0))
    per_channel("28_channels_dtype", MODEL, "zero_points has dtype f32", dtype=7)


# -- 46: names that would be code in C -----------------------------------------------------------------

def injected():
    include = '*/\n#include"injected"'
    m = members()
    m[3].name = b'm/models/f";system(".json'
    case("46_method", MODEL, "is not a name for a method", archive(m))
    changed("46_value", MODEL, "is not a name for a value",
            lambda p, c: p["graph_module"]["graph"]["tensor_values"].update({include: meta([1])}))

    def weight(p, c):
        c["config"][include] = c["config"].pop("w")
        p["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = include
    changed("46_weight", OK, r'%p_w = "*/\x0a#include\"injected\""', weight)
    changed("46_module", OK, r'from "*/\x0a#include.injected", ',
            lambda p, c: p["graph_module"]["graph"]["nodes"][0]["metadata"].update(
                nn_module_stack="L__self__,,Net;L__self___a,%s,Net" % include))
    changed("46_operator", UNSUPPORTED, r'(*/\x0a#include"injected")',
            lambda p, c: p["graph_module"]["graph"]["nodes"][0].update(target="torch.ops." + include))


def write(folder, name, data):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def make():
    archives()
    good_pickles()
    older_programs()
    calling_pickles()
    broken_pickles()
    broken_tensors()
    jsons()
    graphs()
    quantized()
    injected()


def main():
    make()
    folder = sys.argv[-1]
    listing = ""
    for name, code, message, data in CASES:
        if SEEDS and len(data) <= MAX_SEED:
            write(os.path.join(folder, "zip"), name, data)
        elif not SEEDS:
            name += "" if "." in name else ".pt2"
            write(folder, name, data)
            listing += "%s\t%d\t%s\n" % (name, code, message)
    if not SEEDS:
        write(folder, "list.txt", listing.encode())
    for i, text_ in enumerate(PROGRAMS if SEEDS else []):
        write(os.path.join(folder, "json"), "%03d.json" % i, text_.replace(b", ", b",").replace(b": ", b":"))


if __name__ == "__main__":
    main()
