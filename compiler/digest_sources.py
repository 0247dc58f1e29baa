"""Writes the digest of the sources that `etc` is made of, as a header, and the list of them for ninja.

Names and contents count, the order of a folder's listing and the place of the tree do not: two builds
of one source agree, and any change of code changes it.
"""
import hashlib
import os
import sys

FOLDERS = ("compiler", "emit", "ir", "partition", "passes", "quant", "runtime-lite")


def sources(root):
    found = []
    for folder in FOLDERS:
        for at, _, names in os.walk(os.path.join(root, folder)):
            found += [os.path.relpath(os.path.join(at, name), root) for name in names
                      if name.endswith((".c", ".h", ".def", ".txt", ".proto"))]
    return sorted(found)


def main(root, header, depfile):
    digest = hashlib.sha256()
    found = sources(root)
    for name in found:
        with open(os.path.join(root, name), "rb") as f:
            content = f.read()
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    with open(header, "w") as f:
        f.write(f'#define ETC_SOURCES "{digest.hexdigest()[:32]}"\n')
    with open(depfile, "w") as f:
        f.write(header.replace(" ", "\\ ") + ":")
        f.writelines(" \\\n " + os.path.join(root, name).replace(" ", "\\ ") for name in found)
        f.write("\n")


main(*sys.argv[1:])
