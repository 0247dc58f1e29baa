"""locals.py ROOT: fails if a printer of emit/ declares a variable by a name that a parameter may have.

A parameter is named like a value of the model, which may have any name.  So a printer takes the name of a
variable from the function (names_make), or the name is in a list that the function takes before its
parameters get names.  Only files that print functions of nodes are read.
"""
import glob
import os
import re
import sys

STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
LISTS = re.compile(r"\b(?:ours|c_own_names)\[\] = \{(.*?)\};", re.S)
TYPE = r"(?:static )?(?:const )?(?:float|double|int|size_t|void|u?int\d+_t|Etc\w+|%s) \*?(?:const )?"
NAME = r"([a-z_]\w*)(?:\[[^\]]*\])*"
FIRST = re.compile(r"(?:^|[({;] ?|\\n *|%\*s| {4})" + TYPE + NAME + r"(?= =|;|, \w+(?: =|;))")
NEXT = re.compile(r"[^,;({]*, " + NAME + r"(?= =|;)")
OTHER = {"c_build.c", "c_header.c", "c_kernels.c", "c_main.c", "c_names.c", "c_text.c"}


def texts(source):
    """The string literals of a file; those that stand side by side are one."""
    source = re.sub(r"/\*.*?\*/", " ", source, flags=re.S)
    return [text for text in STRING.findall(re.sub(r'"\s*"', "", source)) if "typedef" not in text]


def declared(text):
    """The names of the variables that a text declares."""
    for match in FIRST.finditer(text):
        yield match[1]
        while match := NEXT.match(text, match.end()):
            yield match[1]


def main():
    sources = {}
    for path in glob.glob(os.path.join(sys.argv[1], "emit", "c_*.c")):
        with open(path, encoding="utf-8") as file:
            sources[os.path.basename(path)] = file.read()
    kept = {word for s in sources.values() for items in LISTS.findall(s) for word in STRING.findall(items)}
    n, bad = 0, set()
    for name in sources.keys() - OTHER:
        for variable in (v for text in texts(sources[name]) for v in declared(text)):
            n += 1
            if variable not in kept:
                bad.add(f"{name}: no list has the variable '{variable}', and no function was asked for its name")
    print(*sorted(bad), f"{n} variables, {len(kept)} names in lists", sep="\n")
    return 0 if n > 20 and not bad else 1


if __name__ == "__main__":
    sys.exit(main())
