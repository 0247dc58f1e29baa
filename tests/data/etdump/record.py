#!/usr/bin/env python3
"""Makes the .etdp files beside it, by ExecuTorch's own serializer and flatc: record.py, with executorch 1.4.1."""
import os
import struct

from executorch.devtools.etdump.schema_flatcc import ETDumpFlatCC, Event, ProfileEvent, RunData
from executorch.devtools.etdump.serialize import serialize_to_etdump_flatcc

HERE = os.path.dirname(os.path.abspath(__file__))


def event(name, start, end, instruction=-1, number=-1, delegate=""):
    return Event(profile_event=ProfileEvent(
        name=name, chain_index=0, instruction_id=instruction, delegate_debug_id_int=number,
        delegate_debug_id_str=delegate, delegate_debug_metadata=b"", start_time=start, end_time=end),
        allocation_event=None, debug_event=None)


def run(*events):
    return RunData(name="Execute", bundled_input_index=-1, allocators=[], events=list(events))


def write(name, dump, is_sized=False):
    data = serialize_to_etdump_flatcc(dump)
    if is_sized: # what follows the size keeps its alignment from there
        root, = struct.unpack_from("<I", data)
        data = struct.pack("<II", len(data) + 4, root + 4) + data[4:8] + bytes(4) + data[8:]
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(data)


SMALL = ETDumpFlatCC(version=0, run_data=[
    run(event("native_call_add.out", 100, 110, 0), event("OPERATOR_CALL", 99, 111, 0),
        event("Method::execute", 90, 200)),
    run(event("native_call_add.out", 300, 320, 0), event("OPERATOR_CALL", 299, 321, 0),
        event("", 330, 340, 7, delegate="conv_0"), event("fused", 350, 345, 7, 3),
        event("Method::execute", 290, 400))])
ONE = ETDumpFlatCC(version=0, run_data=[run(event("DELEGATE_CALL", 5, 9, 0), event("part", 6, 8, 0, 0))])

if __name__ == "__main__":
    write("small.etdp", SMALL)
    write("small_sized.etdp", SMALL, is_sized=True)
    write("one.etdp", ONE)
