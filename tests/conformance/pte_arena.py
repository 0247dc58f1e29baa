"""Reads the memory plan of a .pte from its FlatBuffer."""
import struct


def arena_bytes(path):
    """Sum of non_const_buffer_sizes of the first plan."""
    b = open(path, "rb").read()

    def u32(p):
        return struct.unpack_from("<I", b, p)[0]

    def field(table, n):
        v = table - struct.unpack_from("<i", b, table)[0]
        o = struct.unpack_from("<H", b, v + 4 + 2 * n)[0] if 4 + 2 * n < struct.unpack_from("<H", b, v)[0] else 0
        return table + o + u32(table + o) if o else None

    plan = field(u32(0), 1) + 4
    plan += u32(plan)
    sizes = field(plan, 8)
    return sum(struct.unpack_from(f"<{u32(sizes)}q", b, sizes + 4))
