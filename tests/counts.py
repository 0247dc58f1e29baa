"""counts.py ROOT: numbers of the sources that may only fall, how many assertions they hold at least,
and names of arguments that must be some row's.

Prints each count beside its limit; fails where one is past it, or where a name is no row's.
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

LIMIT = {"bare positions of arguments": 32, "OP_* in passes/": 220}

ASSERTION = re.compile(r"(?<!define )\b(?:assert|UNREACHABLE)\(")
LEAST = 4  # assertions in 1,000 lines


def sources(root):
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.c")):
            yield str(path.relative_to(root)), path.read_text()


def assertions_in_1000_lines(root):
    text = "".join(path.read_text() for room in ROOMS for path in (root / room).rglob("*.[ch]"))
    return 1000 * len(ASSERTION.findall(text)) / text.count("\n")


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
            count["OP_* in passes/"] += len(re.findall(r"\bOP_[A-Z]", text))
        for match in NAME.finditer(text):
            if match[1] not in known:
                line = text.count("\n", 0, match.start()) + 1
                print(f"{path}:{line}: no row has an argument '{match[1]}'")
                ok = False
    for what, limit in LIMIT.items():
        print(f"{count[what]:5} {what}, at most {limit}")
        ok = ok and count[what] <= limit
    held = assertions_in_1000_lines(root)
    print(f"{held:5.1f} assertions in 1,000 lines, at least {LEAST}")
    return 0 if ok and held >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
