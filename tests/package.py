#!/usr/bin/env python3
"""Installs what `./dev package` makes, each into a clean place, and has it do the demo's job.

    package.py PACKAGES [--torch PYTHON] [--counts FILE]

The archive is unpacked and moved, the .deb unpacked by dpkg, the wheel installed into a virtual environment by pip.  PYTHON has torch:
the wheel's functions are then called with modules and exported programs too, and their results compared with torch's.
"""
import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

import tally

ROOT = Path(__file__).resolve().parent.parent
DIGITS = ROOT / "tests/data/mlp_digits"

RUNS_FILE = r"""
#include <etc_rt.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    void *file = aligned_alloc(16, 1 << 20);
    size_t n = f && file ? fread(file, 1, 1 << 20, f) : 0;
    EtcProgram p;
    EtcError e = {0};
    EtcStatus s = etc_program_open(&p, file, n, &e);
    printf("%d\n", (int)s);
    return s != ETC_OK;
}
"""

CMAKE = """cmake_minimum_required(VERSION 3.13)
project(use C)
find_package(etc 0.1 REQUIRED)
etc_emit_c(digits %s)
add_executable(both main.c)
target_link_libraries(both digits etc::runtime)
"""

USES_BOTH = """#include "digits.h"
#include <etc_rt.h>
int main(void) { EtcProgram p; EtcError e = {0}; (void)digits_run; return etc_program_open(&p, "", 0, &e) == ETC_OK; }
"""

# Without torch: paths alone.
API = """
import sys
from pathlib import Path
import numpy, etc
digits = Path(sys.argv[1])
x, y = numpy.load(digits / "input_0.npy"), numpy.load(digits / "output_0.npy")
pte = etc.compile(digits / "model.pt2")
assert numpy.allclose(etc.run(pte, [x])[0], y, atol=1e-5)
assert etc.check(digits / "model.pt2") == []
files = etc.emit_c(digits / "model.pt2", name="digits", main=True)
assert {"digits.c", "digits.h", "digits_main.c"} <= set(files)
int8 = etc.compile(digits / "model.pt2", recipe="int8", samples=[x])
assert len(int8) < len(pte)
assert etc.compile(digits / "model.pt2", recipe="int8", samples=digits / "input_0.npy") == int8
assert numpy.array_equal(etc.run(pte, x)[0], etc.run(pte, [x])[0])
for other in (numpy.asfortranarray(x), x.astype(">f4")):  # the same numbers, in another order of elements or bytes
    assert numpy.array_equal(etc.run(bytearray(pte), [other])[0], etc.run(pte, [x])[0])
assert etc.compile(digits / "model.pt2", recipe="int8", samples=x) == int8
assert etc.compile(digits / "model.pt2", flags=["-o", "elsewhere.pte"]) == pte and not Path("elsewhere.pte").exists()
for wrong in ("1..16", 1.5, (1, 16, 3), (16, 1)):
    try:
        etc.compile(digits / "model.pt2", dims={"input.0": wrong})
    except (TypeError, ValueError) as e:
        assert "input.0" in str(e) or "input_0" in str(e), e
    else:
        raise AssertionError(wrong)
try:
    etc.compile(digits / "model.pt2", flags="--verify")
except TypeError as e:
    assert "expected a list" in str(e), e
else:
    raise AssertionError("flags was taken letter by letter")
for bad, kind in ((digits / "missing.pt2", "io"), (digits / "manifest.json", "model")):
    try:
        etc.compile(bad)
    except etc.Error as e:
        assert e.code in (1, 3) and e.messages and e.messages[0].fault == kind, (e.code, e.messages)
        assert kind != "io" or "missing.pt2" in str(e), e
    else:
        raise AssertionError(bad)
"""

API_TORCH = """
import numpy, torch, etc
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(8, 4)
    def forward(self, x, y):
        return torch.relu(self.layer(x)) + y
net, x, y = Net().eval(), torch.randn(3, 8), torch.randn(3, 4)
program = torch.export.export(net, (x, y))
wanted = net(x, y).detach().numpy()
assert numpy.allclose(etc.run(program, [x, y])[0], wanted, atol=1e-6)
batch = etc.Dim("batch", 1, 16)
pte = etc.compile(net, (x, y), dims={"x.0": batch, "y.0": batch})
for n in (1, 5, 16):
    a, b = torch.randn(n, 8), torch.randn(n, 4)
    assert numpy.allclose(etc.run(pte, [a, b])[0], net(a, b).detach().numpy(), atol=1e-6)
assert etc.compile(net, (x, y), dims={"x.0": 3}) == etc.compile(net, (x, y))
for dims, message in (({"x.2": batch}, "the example of 'x' has 2 axes"), ({"x.0": 5}, "the size of the example is 3"),
                      ({"z.0": batch}, "expected INPUT.AXIS")):
    try:
        etc.compile(net, (x, y), dims=dims)
    except ValueError as e:
        assert message in str(e), e
    else:
        raise AssertionError(dims)
int8 = etc.compile(net, (x, y), recipe="int8", samples=[(torch.randn(3, 8), torch.randn(3, 4)) for _ in range(8)])
assert numpy.abs(etc.run(int8, [x, y])[0] - wanted).max() < 0.1
net.train()
etc.check(net, (x, y))
assert net.training and net.layer.training
class Times(torch.nn.Module):
    def forward(self, x, k):
        return x * k
assert numpy.array_equal(etc.run(Times(), [x, 3])[0], (x * 3).numpy())
halves = torch.arange(8, dtype=torch.bfloat16)
doubled = torch.from_numpy(etc.run(Times(), [halves, 2])[0]).view(torch.bfloat16)
assert torch.equal(doubled, halves * 2)
class Random(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)
try:
    etc.compile(torch.export.export(Random(), (x,)))
except etc.Error as e:
    assert e.code == 4 and any(m.fault == "unsupported" and m.op and m.source for m in e.messages), e.messages
else:
    raise AssertionError("rand_like was taken")
assert [m.kind for m in etc.check(Random(), (x,))][0] == "error"
"""


def run(*command, expect=0, **more):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != expect:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def one(folder, pattern):
    found = sorted(folder.glob(pattern))
    assert len(found) == 1, f"{folder}: {len(found)} of {pattern}, expected 1"
    return found[0]


# -- what each package does --------------------------------------------------------------------------------------------------


def demo(prefix):
    out = run("sh", ROOT / "tests/demo/demo.sh", prefix / "bin")
    assert "FAILED" not in out, out
    shutil.rmtree(prefix / "bin/demo")


def prefix_works(prefix, work):
    """Programs, manual, completion, and both ways to build against the library."""
    etc = prefix / "bin/etc"
    pte = work / "digits.pte"
    run(etc, "compile", DIGITS / "model.pt2", "-o", pte, "-q")
    run(etc, "runtime", pte, "-o", work / "runtime", "-q")
    run("make", "-C", work / "runtime")
    for page in ("etc.1.gz", "etc-compile.1.gz", "etc-emit-c.1.gz"):
        assert (prefix / "share/man/man1" / page).exists(), page
    completed = run("bash", "-c", f". '{prefix}'/share/bash-completion/completions/etc; COMP_WORDS=(etc comp); COMP_CWORD=1; _etc; "
                    "echo \"${COMPREPLY[@]}\"")
    assert "compile" in completed.split(), completed
    (work / "main.c").write_text(RUNS_FILE)
    flags = run("pkg-config", "--cflags", "--libs", "etc",
                env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")})
    run(os.environ.get("CC", "cc"), work / "main.c", "-o", work / "main", *shlex.split(flags))
    assert run(work / "main", pte) == "0\n"


def cmake_works(prefix, work):
    use = work / "use"
    use.mkdir()
    (use / "CMakeLists.txt").write_text(CMAKE % (DIGITS / "model.pt2"))
    (use / "main.c").write_text(USES_BOTH)
    run("cmake", "-S", use, "-B", use / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", use / "build")
    run(use / "build/both")


def delegates_run(prefix, work):
    pte = work / "xnn.pte"
    run(prefix / "bin/etc", "compile", DIGITS / "model.pt2", "--backend", "xnnpack", "--delegate", "all", "-o", pte, "-q")
    run(prefix / "bin/etc-xnn", "run", pte, "--input", DIGITS / "input_0.npy", "--output-dir", work / "out", "-q")


def archive(packages, work):
    run("tar", "-xzf", one(packages, "*.tar.gz"), "-C", work)
    prefix = work / "moved to here"
    one(work, "etc-*").rename(prefix)
    demo(prefix)
    return prefix


# Compiled and run where there is nothing but the program and these files, as the demo does.
EMPTY_ROOT = """compile /m.pt2 -o /float.pte
run /float.pte --input /x.npy --output-dir /y
emit-c /m.pt2 -o /float.c --main
quantize /m.pt2 --recipe int8 --calibrate /samples.npy --statistics /s --report /r.html
compile /m.pt2 --recipe int8 --statistics /s -o /int8.pte
emit-c /m.pt2 --recipe int8 --statistics /s -o /int8.c --main
compile /m.pt2 --recipe int4-group32 -o /int4.pte
compile /m.pt2 --backend xnnpack --delegate all -o /xnn.pte
verify /int8.pte --model /m.pt2 --calibrate /samples.npy --max-drop cosine=0.01"""


def static(packages, prefix, work):
    etc, root = prefix / "bin/etc", work / "root"
    assert "INTERP" not in run("readelf", "--wide", "-l", etc), f"{etc} wants a dynamic linker"
    for path, most in ((etc, 3_000_000), (one(packages, "*.whl"), 4_000_000)):
        assert path.stat().st_size < most, f"{path}: {path.stat().st_size} bytes"
    root.mkdir()
    shutil.copy(etc, root / "etc")
    for file, name in ((DIGITS / "model.pt2", "m.pt2"), (DIGITS / "input_0.npy", "x.npy"),
                       (ROOT / "tests/data/quantized/mlp_digits_calibration.npy", "samples.npy")):
        shutil.copy(file, root / name)
    enter = ["chroot", root] if os.geteuid() == 0 else ["unshare", "-r", "chroot", root]
    for line in EMPTY_ROOT.splitlines():
        run(*enter, "/etc", *line.split(), "-q")
    y, wanted = numpy.load(root / "y/output_0.npy"), numpy.load(DIGITS / "output_0.npy")
    assert numpy.allclose(y, wanted, atol=1e-5)
    for name in ("float", "int8"):
        run(os.environ.get("CC", "cc"), "-O2", "-o", work / name, root / f"{name}.c", root / f"{name}_main.c", "-lm")
        run(work / name, "--input", root / "x.npy", "--output-dir", work / f"{name}_y")
        y = numpy.load(work / f"{name}_y/output_0.npy")
        assert (y.argmax(1) == wanted.argmax(1)).mean() > 0.99
    told = run(*enter, "/etc", *EMPTY_ROOT.splitlines()[3].split(), "--fast-calibrate", expect=1)
    assert "this etc is linked statically" in told, told


def wheel(packages, work):
    run(sys.executable, "-m", "venv", work / "venv")
    run(work / "venv/bin/pip", "install", "-q", one(packages, "*.whl"))
    (work / "paths.py").write_text(API)
    run(work / "venv/bin/python", work / "paths.py", DIGITS, cwd=work)
    assert "usage: etc" in run(work / "venv/bin/etc", "--help")


def wheel_with_torch(packages, work, python):
    run(python, "-m", "zipfile", "-e", one(packages, "*.whl"), work / "wheel")
    (work / "wheel/etc/bin/etc").chmod(0o755)
    (work / "api.py").write_text(API_TORCH)
    run(python, work / "api.py", cwd=work, env={**os.environ, "PYTHONPATH": str(work / "wheel")})


# Words that stand in the licence text of each library.
LICENCES = {"libyaml": "Kirill Simonov", "protobuf-c": "Dave Benson", "xxhash": "Yann Collet", "yyjson": "YaoYuan", "zlib": "Jean-loup Gailly"}


def licences(packages, prefix, work):
    run(sys.executable, "-m", "zipfile", "-e", one(packages, "*.whl"), work / "unzipped")
    for folder in (prefix / "share/doc/etc/licences", one(work / "unzipped", "*.dist-info") / "licences"):
        for library, words in LICENCES.items():
            assert words in (folder / f"{library}.txt").read_text(), f"{folder}/{library}.txt"
    assert "LESSER GENERAL PUBLIC LICENSE" in (prefix / "share/doc/etc/licences/LGPL-2.1.txt").read_text()
    if (prefix / "bin/etc-xnn").exists():
        assert {path.name for path in (prefix / "share/doc/etc/licences/etc-xnn").iterdir()} >= {"xnnpack.txt", "glibc.txt"}


def debian(packages, work):
    deb = one(packages, "*.deb")
    run("dpkg-deb", "-x", deb, work / "deb")
    assert run("dpkg-deb", "-f", deb, "Package", "Version").split()[1] == "etc"
    demo(work / "deb/usr")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path)
    parser.add_argument("--torch", type=os.path.abspath)
    parser.add_argument("--counts", type=Path)
    args = parser.parse_args()
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        prefix = work / "moved to here"
        rows = [("archive", lambda: archive(args.packages, work)), ("library", lambda: prefix_works(prefix, work)),
                ("cmake", lambda: cmake_works(prefix, work) if shutil.which("cmake") else "cmake is not installed"),
                ("delegates", lambda: delegates_run(prefix, work) if (prefix / "bin/etc-xnn").exists() else "built without XNNPACK"),
                ("static program", lambda: static(args.packages, prefix, work)),
                ("licences", lambda: licences(args.packages, prefix, work)),
                ("deb", lambda: debian(args.packages, work)), ("wheel", lambda: wheel(args.packages, work)),
                ("wheel with torch", lambda: wheel_with_torch(args.packages, work, args.torch) if args.torch else "no torch")]
        for name, row in rows:
            try:
                why = row()
            except (AssertionError, OSError) as e:
                failed += 1
                print(f"FAIL {name}: {e}")
                continue
            skipped += isinstance(why, str)
            passed += not isinstance(why, str)
            print(f"skip {name}: {why}" if isinstance(why, str) else f"ok   {name}", flush=True)
    print(f"packages: {passed} passed, {failed} failed, {skipped} skipped")
    tally.append(args.counts, passed, failed, skipped)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
