"""cycles.py LIMIT ARCHIVE...: prints the most files of these archives that form a cycle, and fails if they are
more than LIMIT.

Files form a cycle if each of them calls each other, directly or through others. The symbols of the object files
tell who calls whom, so calls through tables count too.
"""
import collections
import re
import subprocess
import sys

LINE = re.compile(r"([\w.-]+)\.o:\s*[0-9a-f]* ([A-Za-z]) (\S+)$", re.M)


def calls(archives):
    """The files that each file names a symbol of."""
    home, named = {}, collections.defaultdict(set)
    listed = subprocess.run(["nm", "-A", *archives], check=True, capture_output=True, text=True).stdout
    for file, kind, symbol in LINE.findall(listed):
        if kind == "U":
            named[file].add(symbol)
        elif kind in "TRDB":
            home[symbol] = file
    return {file: {home[s] for s in named[file] & home.keys()} - {file} for file in {*named, *home.values()}}


def largest_cycle(to):
    for middle in to:
        for file in to:
            if middle in to[file]:
                to[file] = to[file] | to[middle]
    return max(([other for other in to if other in to[file] and file in to[other]] for file in to), key=len)


def main():
    limit, archives = int(sys.argv[1]), sys.argv[2:]
    to = calls(archives)
    cycle = largest_cycle(to)
    print(f"{len(to)} files; the largest cycle has {len(cycle)}, at most {limit}: {' '.join(sorted(cycle))}")
    return 0 if to and len(cycle) <= limit else 1


if __name__ == "__main__":
    sys.exit(main())
