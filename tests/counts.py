"""counts.py ROOT: counts things in the sources that may only become fewer, and assertions, which
must not. Also checks that each name of an argument occurs in a row of ops.def, that each
instruction set defines all names of isa.h, and that clang is told all macros.

Prints each count beside its limit. Fails if a count is past its limit or if a name is missing.
"""
import pathlib
import re
import sys

ROOMS = ("passes", "partition", "emit", "quant", "ir", "compiler")
# These know positions: the views, the importers, and what walks all arguments of any row.
KNOW = {"ir/views.c", "ir/graph.c", "ir/schema.c", "ir/verify.c", "ir/parse.c", "ir/print.c"}
READ = (r"\b(?:arg_(?:value|int|dim|number|bool|count|ints|dims|list_value|get)"
        r"|get_(?:tensor|optional|rank|int|ints|size|sizes|axis|axes)|is_size|node_set_arg|wrap_axes"
        r"|check_qparams|slice_sizes|number_type|operand|graph_arg|check_gates|window_of)")
NODE = r"\(\s*[\w.>\-]+(?:\([^()]*\)|\[[^\[\]]*\])?(?:->\w+)*,\s*"
POSITION = re.compile(READ + NODE + r"\d" + r"|\w->(?:in|arg)\[\d\]")
NAME = re.compile(r"\b(?:arg_\w+|get_\w+|is_size|dtype_of)" + NODE + r'"(\w+)"')

LIMIT = {"bare positions of arguments": 32, "OP_* in passes/": 220,
         "#if on an instruction set outside runtime-lite/kernels/{isa,mcu}*.h": 0}

IF = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(?:(?:\\\n|[^\n])*)", re.M)
# These macros say which instructions a compiler has, or are constants that follow from that choice.
ISA = re.compile(r"__(?:AVX|SSE|FMA|F16C|BMI|ARM_NEON|ARM_FEATURE|aarch64|x86_64|i386)\w*"
                 r"|ETC_(?:VEC|LANES|REGISTERS|FMA_BY_DOUBLE|PUT_VECTORS|PACKS_BYTES|TERMS|SIGNED_TERMS|NV|MR\d)\b")
PLATFORM = {"runtime-lite/kernels/cpu.h"}  # asks whether libc is one that tells what the CPU can do

ASSERTION = re.compile(r"(?<!define )\b(?:assert|UNREACHABLE)\(")
LEAST = 4  # assertions in 1,000 lines


def sources(root):
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.c")):
            yield str(path.relative_to(root)), path.read_text()


def assertions_in_1000_lines(root):
    text = "".join(path.read_text() for room in ROOMS for path in (root / room).rglob("*.[ch]"))
    return 1000 * len(ASSERTION.findall(text)) / text.count("\n")


def ifs_on_instruction_sets(root):
    return sum(bool(ISA.search(line)) for path in sorted((root / "runtime-lite").rglob("*.[ch]"))
               if not any(map(path.match, ("kernels/isa*.h", "kernels/mcu_*.h")))
               and str(path.relative_to(root)) not in PLATFORM
               for line in IF.findall(path.read_text()))


def lacking(root):
    """Pairs of a header that isa.h chooses and a name in its list that neither that nor a header it
    includes defines."""
    kernels = root / "runtime-lite/kernels"
    head, choice = (kernels / "isa.h").read_text().split("#ifndef", 1)
    listed = re.findall(r"\b(?:ETC|etc)_\w+", head)
    for name in re.findall(r"isa_\w+\.h", choice):
        text = (kernels / name).read_text()
        text += "".join((kernels / shared).read_text() for shared in re.findall(r"kernels/(isa_\w+\.h)", text))
        defined = set(re.findall(r"#define (\w+)|^ETC_(?:INLINE|OUTLINE) [^(]*\b(etc_\w+)\(", text, re.M))
        defined = {one or other for one, other in defined}
        yield from ((name, word) for word in listed if word not in defined)


def untold(root):
    """Pairs of a target and a macro that the header of its set asks for, that its features imply and that
    clang is not told."""
    rows = re.findall(r'\{\.name = "([^"]+)",(.*?)\.work_bytes', (root / "emit/target.c").read_text(), re.S)
    for name, row in rows:
        column = dict(re.findall(r'\.(\w+) = "(.*?)",\n', row))
        if "features" not in column or "isa" not in column:
            continue
        text = (root / f"runtime-lite/kernels/isa_{column['isa']}.h").read_text()
        features = column["features"].upper().split(",")
        asked = {f"__{feature}__" for feature in features} | {f"__ARM_FEATURE_{feature}" for feature in features}
        yield from ((name, macro) for macro in sorted(asked & set(re.findall(r"__\w+", text)))
                    if f"#define {macro} 1" not in column["macros"])


def names_of_rows(root):
    """All words of the schemas: too many rather than too few."""
    text = (root / "ir/ops.def").read_text() + (root / "passes/composites.txt").read_text()
    return set(re.findall(r"\w+", text))


def main():
    root = pathlib.Path(sys.argv[1])
    known = names_of_rows(root)
    count = dict.fromkeys(LIMIT, 0)
    ok = True
    for path, text in sources(root):
        if path not in KNOW and not path.startswith("compiler/import/"):
            count["bare positions of arguments"] += len(POSITION.findall(text))
        if path.startswith("passes/"):
            count["OP_* in passes/"] += len(re.findall(r"\bOP_(?!NONE\b)\w", text))
        for match in NAME.finditer(text):
            if match[1] not in known:
                line = text.count("\n", 0, match.start()) + 1
                print(f"{path}:{line}: no row has an argument '{match[1]}'")
                ok = False
    count["#if on an instruction set outside runtime-lite/kernels/{isa,mcu}*.h"] = ifs_on_instruction_sets(root)
    for header, word in lacking(root):
        print(f"runtime-lite/kernels/{header}: has no {word}, which isa.h lists")
        ok = False
    for target, macro in untold(root):
        print(f"emit/target.c: '{target}' tells clang nothing of {macro}")
        ok = False
    for what, limit in LIMIT.items():
        print(f"{count[what]:5} {what}, at most {limit}")
        ok = ok and count[what] <= limit
    held = assertions_in_1000_lines(root)
    print(f"{held:5.2f} assertions in 1,000 lines, at least {LEAST}")
    return 0 if ok and held >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
