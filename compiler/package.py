#!/usr/bin/env python3
"""Makes packages of an installed tree: a .tar.gz that runs where it is unpacked, a .deb and a Python wheel.

    package.py BUILD STATIC STAGE OUT VERSION

BUILD has the programs before they were installed, STATIC is etc-static, STAGE is what `meson install` filled with the prefix /usr.  Man pages and
completion are written from what `etc --help` says.  The archive holds etc-static in place of etc.  The same tree gives the
same bytes.
"""
import gzip
import hashlib
import base64
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", 0)) or 1704067200
# The libraries in packages, and the packages of Debian that their copyright files come from.
LINKED = {"libyaml": "libyaml-dev", "protobuf-c": "libprotobuf-c-dev", "xxhash": "libxxhash-dev", "yyjson": "libyyjson-dev",
          "zlib": "zlib1g-dev"}
STATIC = {"musl": "musl-dev"}
XNN = {"cpuinfo": "libcpuinfo0", "glibc": "libc6", "libgcc": "libgcc-s1", "pthreadpool": "libpthreadpool0",
       "xnnpack": "libxnnpack0.20241108"}
COMMON = ("GPL-3", "LGPL-2.1")  # texts that these files refer to
SUMMARY = "Ahead-of-time compiler of PyTorch models: ExecuTorch .pte files, or C that stands alone"


def output(*command):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True).stdout


# -- what the program says of itself -----------------------------------------------------------------------------------------


def commands(etc):
    return re.findall(r"^  ([a-z][a-z-]*) +\S", output(etc, "--help"), re.M)


def roff(text):
    lines = text.replace("\\", "\\e").splitlines()
    return "\n".join("\\&" + line if line[:1] in ".'" else line for line in lines) + "\n"


def man_page(title, summary, text):
    return (f".TH {title.upper()} 1 \"\" etc \"etc\"\n.SH NAME\n{title} \\- {roff(summary).strip()}\n.SH DESCRIPTION\n.nf\n"
            f"{roff(text)}.fi\n.SH SEE ALSO\n.BR etc (1)\n")


def write_manual(etc, folder):
    folder.mkdir(parents=True)
    pages = {"etc": (SUMMARY, output(etc, "--help"))}
    for command in commands(etc):
        text = output(etc, command, "--help")
        summary = re.search(rf"^  {command} +(.*)", output(etc, "--help"), re.M)[1]
        pages[f"etc-{command}"] = (summary, text)
    for title, (summary, text) in pages.items():
        page = gzip.compress(man_page(title, summary, text).encode(), mtime=EPOCH)
        (folder / f"{title}.1.gz").write_bytes(page)


def write_completion(etc, path):
    lines = ["# bash completion for etc", "_etc() {", "    local word=${COMP_WORDS[COMP_CWORD]} flags=",
             "    case ${COMP_WORDS[1]} in"]
    for command in commands(etc):
        flags = sorted(set(re.findall(r"(?<!\S)--[a-z][a-z0-9-]*", output(etc, command, "--help"))))
        lines.append(f"    {command}) flags='{' '.join(flags)}' ;;")
    lines += ["    esac", "    if [ \"$COMP_CWORD\" = 1 ]; then",
              f"        mapfile -t COMPREPLY < <(compgen -W '{' '.join(commands(etc))}' -- \"$word\")",
              "    elif [ \"${word#-}\" != \"$word\" ]; then",
              "        mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$word\")", "    fi", "}",
              "complete -o default -F _etc etc", ""]
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines))


# -- trees -------------------------------------------------------------------------------------------------------------------


def add_xnn(built, usr):
    """etc-xnn with all it loads, its C library too: libXNNPACK may want a newer one than the system has."""
    folder = usr / "lib/etc/xnn"
    folder.mkdir(parents=True)
    loader = Path(re.search(r"interpreter: (\S+)\]", output("readelf", "-l", built))[1])
    for path in [loader, *map(Path, re.findall(r"=> (/\S+)", output(loader, "--list", built)))]:
        shutil.copy(path, folder / path.name)
    shutil.copy(built, folder / "etc-xnn")
    script = usr / "bin/etc-xnn"
    script.write_text("#!/bin/sh\nat=$(dirname \"$(readlink -f \"$0\")\")/../lib/etc/xnn\n"
                      f"exec \"$at/{loader.name}\" --library-path \"$at\" \"$at/etc-xnn\" \"$@\"\n")
    script.chmod(0o755)


def licences(libraries, folders):
    """{file name: text} for each library, from the first of the folders that has it."""
    texts = {}
    for library, package in libraries.items():
        found = [path for folder in folders if (path := folder / "usr/share/doc" / package / "copyright").is_file()]
        if not found:
            sys.exit(f"package.py: there is no copyright file of {package} in {', '.join(map(str, folders))}")
        texts[f"{library}.txt"] = found[0].read_bytes()
    return texts


def write_licences(build, folder):
    system = [ROOT / "build/deps", Path("/")]
    texts = licences(LINKED, system) | licences(STATIC, system)
    if (build / "etc-xnn").exists():
        texts |= {f"etc-xnn/{name}": text for name, text in licences(XNN, [ROOT / "build/xnndeps", Path("/")]).items()}
    texts |= {f"{name}.txt": Path("/usr/share/common-licenses", name).read_bytes() for name in COMMON}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text)


def complete(build, stage):
    usr = stage / "usr"
    etc = usr / "bin/etc"
    if (build / "etc-xnn").exists():
        add_xnn(build / "etc-xnn", usr)
    write_manual(etc, usr / "share/man/man1")
    write_completion(etc, usr / "share/bash-completion/completions/etc")
    shutil.copytree(ROOT / "docs", usr / "share/doc/etc", dirs_exist_ok=True)
    for name in ("README.md", "LICENSE", "THIRD_PARTY.md"):
        shutil.copy(ROOT / name, usr / "share/doc/etc" / name)
    write_licences(build, usr / "share/doc/etc/licences")
    (usr / "share/doc/etc/LICENSE").rename(usr / "share/doc/etc/copyright")


def settle(folder):
    """Modes and times that do not depend on who builds."""
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
            os.utime(path, (EPOCH, EPOCH))


# -- packages ----------------------------------------------------------------------------------------------------------------


def same(info):
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mtime = EPOCH
    return info


def make_tar(static, stage, out, version, machine):
    static = {stage / "usr/bin/etc": static}
    name = f"etc-{version}-linux-{machine}"
    path = out / f"{name}.tar.gz"
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, EPOCH) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file in sorted((stage / "usr").rglob("*")):
            tar.add(static.get(file, file), f"{name}/{file.relative_to(stage / 'usr')}", recursive=False, filter=same)
    return path


def glibc(program):
    """The oldest version of the C library that has every function it uses."""
    return max(map(int, re.findall(r"GLIBC_2\.(\d+)", output("objdump", "-T", program))))


def make_deb(stage, out, version, machine, minor):
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    debian = stage / "DEBIAN"
    debian.mkdir()
    size = sum(file.stat().st_size for file in stage.rglob("*") if file.is_file()) // 1024
    (debian / "control").write_text(
        f"Package: etc\nVersion: {version}\nArchitecture: {arch}\nMaintainer: etc developers <etc@localhost>\n"
        f"Depends: libc6 (>= 2.{minor})\nSuggests: libopenblas0, gcc\nSection: devel\nPriority: optional\nInstalled-Size: {size}\n"
        f"Description: {SUMMARY}\n It reads what torch.export saved, or ONNX, and needs neither Python nor torch.\n")
    settle(debian)
    path = out / f"etc_{version}_{arch}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(stage), str(path)], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)})
    shutil.rmtree(debian)
    return path


def record(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def make_wheel(stage, out, version, machine, minor):
    usr, info = stage / "usr", f"etc-{version}.dist-info"
    tag = f"py3-none-manylinux_2_{minor}_{machine}"
    files = {f"etc/{path.name}": path.read_bytes() for path in sorted((ROOT / "compiler/python/etc").iterdir()) if path.is_file()}
    files["etc/bin/etc"] = (usr / "bin/etc").read_bytes()
    for path in sorted((usr / "share/etc").rglob("*")):
        if path.is_file():
            files[f"etc/share/etc/{path.relative_to(usr / 'share/etc')}"] = path.read_bytes()
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: etc\nVersion: {version}\nSummary: {SUMMARY}\nLicense: BSD-3-Clause\n"
        "Requires-Python: >=3.9\nRequires-Dist: numpy\n").encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: etc\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/entry_points.txt"] = b"[console_scripts]\netc = etc:main\n"
    for name in ("LICENSE", "THIRD_PARTY.md"):
        files[f"{info}/{name}"] = (ROOT / name).read_bytes()
    for library in LINKED:
        files[f"{info}/licences/{library}.txt"] = (usr / f"share/doc/etc/licences/{library}.txt").read_bytes()
    files[f"{info}/RECORD"] = ("".join(record(name, data) for name, data in files.items()) + f"{info}/RECORD,,\n").encode()
    path = out / f"etc-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, data in files.items():
            member = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (0o100755 if name == "etc/bin/etc" else 0o100644) << 16
            wheel.writestr(member, data)
    return path


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    build, static, stage, out, version = *map(Path, sys.argv[1:5]), sys.argv[5]
    machine = os.uname().machine
    out.mkdir(parents=True, exist_ok=True)
    complete(build, stage)
    settle(stage)
    minor = glibc(stage / "usr/bin/etc")
    for path in (make_tar(static, stage, out, version, machine), make_deb(stage, out, version, machine, minor),
                 make_wheel(stage, out, version, machine, minor)):
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
