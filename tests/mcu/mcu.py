#!/usr/bin/env python3
"""mcu.py ROOT BUILD [--table] [MODEL ...]: runs the C of tiny models on other processors.  Prints TAP.

Each model is compiled for each core of limits.txt with gcc -O2 and run by QEMU. Its outputs must have the bits
of the file of the first core, or with EMITTED_FULL=1 of the same file, compiled for this machine (for aarch64,
whose files compile for no other machine: of the file for any CPU) and of the other cores with the same arithmetic.
Its instructions, code, arena and stack must be at most those in limits.txt.
For Cortex-M, the stack that the header states must be enough for the compiler's frames along its call graph and
for the painted stack, and at most half as much more. The code that it states must be near that of the object file,
and the constants must be those of the image.
The contents of a bank must fit into it.
If torch's floats are recorded, the first output must reach the SQNR in dB that limits.txt gives.
If those of torch in float64 are recorded, as many outputs must be near them; NaN and infinities must be the same.
The forecast of `etc bench --target` for the MLPerf networks and `excited` on Cortex-M, to which its table was not fitted,
must be at most an eighth off the instructions, and its constants, memory and stack must be those of the header.
These numbers are those of gcc 12.  Of the C that another compiler compiles, only the outputs are compared.
A model's name may be followed by the value of --io: MODEL:int8.  No code of such a model adds or multiplies
floats.  MODEL:f32 is not quantized.  Neither is MODEL:free, which is written for --freestanding and linked with
no library but the compiler's.
--table prints the measurements instead.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np

ARM, RISCV, LINUX = "arm-none-eabi-", "riscv64-unknown-elf-", "aarch64-linux-gnu-"
LINK = ["-nostartfiles", "--specs=nano.specs", "-Wl,--gc-sections,--defsym=constants_at=0x80000", "-T", "link.ld"]
LINK_SMALL = [option.replace("0x80000", "0x11000000") for option in LINK]
BARE = ["-nostdlib", "-Wl,--gc-sections"]
ALONE = ["-nostdlib", "-ffreestanding", "-DNO_LIBRARY"]  # start.c has the functions that the header names


def board(name):
    return ["qemu-system-arm", "-M", name, "-nographic", "-monitor", "none", "-serial", "null",
            "-semihosting-config", "enable=on,target=native", "-kernel"]


# The tools that compile for a core, their flags, those of the linker, what runs it, and whether products of integers
# end in fixed point.
CORES = {
    "cortex-m0plus": (ARM, "-mthumb -mcpu=cortex-m0plus", LINK, board("mps2-an385"), True),
    "cortex-m3": (ARM, "-mthumb -mcpu=cortex-m3", LINK, board("mps2-an385"), True),
    "cortex-m4": (ARM, "-mthumb -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16", LINK, board("mps2-an386"), True),
    "cortex-m7": (ARM, "-mthumb -mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16", LINK, board("mps2-an500"), True),
    "cortex-m33": (ARM, "-mthumb -mcpu=cortex-m33 -mfloat-abi=hard -mfpu=fpv5-sp-d16", LINK_SMALL, board("mps3-an547"), True),
    "cortex-m55": (ARM, "-mthumb -mcpu=cortex-m55 -mfloat-abi=hard", LINK_SMALL, board("mps3-an547"), True),
    "rv32imc": (RISCV, "-ffreestanding -march=rv32imc -mabi=ilp32", BARE, ["qemu-riscv32"], True),
    "rv64gc": (RISCV, "-ffreestanding -march=rv64gc -mabi=lp64d", BARE, ["qemu-riscv64"], True),
    "armv8-a": (LINUX, "", ["-static"], ["qemu-aarch64"], False),
    "armv8.2-a": (LINUX, "", ["-static"], ["qemu-aarch64"], False),
}
FORECAST_OFF = 0.125
CODE_LEAST, CODE_MOST = 0.9, 1.5  # the stated code, in relation to the compiler's
MOST_ULPS = 4  # between a float and that of float64
LONG_DIVISION = ("__aeabi_ldivmod", "__aeabi_uldivmod", "__divdi3", "__udivdi3", "__moddi3", "__umoddi3")
SOFT_FLOAT = re.compile(r"__aeabi_([fd]|u?i2[fd]|[u]?l2[fd])|__(add|sub|mul|div|neg|fix|float|extend|trunc|eq|ne|lt|le|gt|ge|unord)\w*[sd]f")
CALL = "INPUT,OUTPUT,arena"
BANKS = ["--bank", "dtcm=9K", "--bank", "sram=9K", "--bank", "flash=8K:const", "--bank", "ext=24K:const,section=.ext_flash"]
MODELS = {  # multiply-adds, options, arguments; the folder, if it is called otherwise
    "tiny_kws_dscnn": (2656768, [], CALL),
    "kws_in_banks": (2656768, BANKS, "INPUT,OUTPUT,dtcm,sram", "tiny_kws_dscnn"),
    "tiny_ic_resnet8": (12501632, [], CALL),
    "tiny_vww_mobilenet": (7489664, [], CALL),
    "odd_shapes": (10000, [], CALL),  # strides, taps and channels that fill no block; not its true multiply-adds
    "gates": (10000, [], "INPUT,OUTPUT,OUTPUT+5,arena"),  # products of images, functions of bytes, softmax and sigmoid; as above
    "sums": (10000, [], CALL),  # of record.py, as above
    "taps": (10000, [], CALL),
    "cuts": (10000, [], CALL),
    "ends": (10000, [], CALL),
    "curves": (10000, [], CALL),
    "steps": (10000, [], CALL),
    "encoder": (111520, [], CALL),
    "planes": (100000, [], CALL),
    "camera": (100000, [], CALL),
    "words": (442860, [], CALL),
    "few_words": (245240, [], CALL),
    "narrow": (259980, [], CALL),
    "excited": (255092, [], CALL),
    "rows": (5928, [], CALL),
    "few": (13856, [], CALL),
    "edges": (10000, [], CALL),  # functions of floats, as above
    "pools": (10000, [], "INPUT,OUTPUT,OUTPUT+48,arena"),  # as above
    "tiny_ad_autoencoder": (264192, ["--dim", "x.0=1..1"], "INPUT,OUTPUT,OUTPUT+640,arena"),
}
FRAMES = ["-fstack-usage", "-fcallgraph-info=su"]
UNOPTIMIZED = ("tiny_kws_dscnn", "encoder:free")  # must also compile with -O0, as IDEs do for debugging
WARN = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror"]


def call(*args):
    r = subprocess.run([str(a) for a in args], capture_output=True, text=True,
                       env={**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"})
    if r.returncode:
        raise RuntimeError(f"{' '.join(map(str, args))}\n{r.stdout[-2000:]}{r.stderr[-3000:]}")
    return r.stdout


def tools(core):
    prefix, _, _, run, _ = CORES[core]
    return "cc", prefix + "gcc", prefix + "nm", prefix + "objdump", run[0]


def is_measured(core):
    """Whether the compiler is the one that limits.txt, stated stacks and forecasts are for."""
    return call(tools(core)[1], "-dumpversion").strip().split(".")[0] == "12"


def parts(model):
    """Returns the name, the dtype of --io or "", and whether the model is quantized."""
    name, _, how = model.partition(":")
    is_float = how in ("f32", "free")
    return name, "" if is_float else how, not is_float


def call_of(model):
    name, io, _ = parts(model)
    return re.sub(r"OUTPUT\+\d+", r"(void *)((%s *)\g<0>)" % (io + "_t" if io else "float"), MODELS[name][2])


class Rig:
    def __init__(self, root, build):
        self.root, self.etc = root, os.path.join(build, "etc")
        self.here = os.path.join(root, "tests", "mcu")
        self.dir = os.path.join(build, "tests", "mcu")
        os.makedirs(self.dir, exist_ok=True)
        self.hosted = {}  # outputs on this machine by model and whether they end in fixed point
        self.plugin = os.path.join(self.dir, "count.so")
        made = f"{self.plugin}.{os.getpid()}"  # another run may load the plugin now
        call("cc", "-shared", "-fPIC", "-O2", "-o", made, os.path.join(self.here, "count.c"))
        os.rename(made, self.plugin)

    def model_of(self, name):
        folder = (MODELS[name] + (name,))[3]
        here = os.path.join(self.here, folder, "model.pt2")
        return here if os.path.exists(here) else os.path.join(self.root, "tests", "data", folder, "model.pt2")

    def emit(self, model, core):
        """Writes the model's C for a target; returns the folder."""
        name, io, quantized = parts(model)
        data = os.path.dirname(self.model_of(name))
        to = os.path.join(self.dir, model.replace(":", "-"), core)
        shutil.rmtree(to, ignore_errors=True)
        os.makedirs(os.path.join(to, "calibrate"))
        shutil.copy(os.path.join(data, "input_0.npy"), os.path.join(to, "calibrate"))
        recipe = ["--recipe", "int8", "--calibrate", os.path.join(to, "calibrate")] if quantized else []
        call(self.etc, "emit-c", os.path.join(data, "model.pt2"), *recipe, "--target", core, "--main", "-q",
             "-o", os.path.join(to, "model.c"), *MODELS[name][1], *(["--io", io] if io else ["--verify"]),
             *(["--freestanding"] if model.endswith(":free") else []))
        x = np.load(os.path.join(data, "input_0.npy"))[:1]
        self.takes_bytes = x.dtype == np.uint8
        if io and not self.takes_bytes:
            scale, zero = self.points(to, "INPUT")
            least = np.iinfo(io).min
            x = np.clip(np.rint(x / scale) + zero, least, least + 255).astype(io)
        np.save(os.path.join(to, "input.npy"), x)
        with open(os.path.join(to, "input.h"), "w") as f:
            f.write("#define INPUT_BYTES " + ",".join(map(str, np.ascontiguousarray(x).tobytes())) + "\n")
        return to

    def wanted(self, model, core, to):
        """The outputs on this machine: of the file of a core or, where the end is in floats, of the file for any CPU."""
        is_fixed = CORES[core][-1]
        if is_fixed and os.environ.get("EMITTED_FULL"):
            return self.host(to)
        if (model, is_fixed) not in self.hosted:
            self.hosted[model, is_fixed] = self.host(to if is_fixed else self.emit(model, "generic"))
        return self.hosted[model, is_fixed]

    def host(self, to):
        call("cc", *WARN, "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover", "-o", os.path.join(to, "host"),
             *self.sources(to), os.path.join(to, "model_main.c"), "-lm")
        call(os.path.join(to, "host"), "--input", os.path.join(to, "input.npy"), "--output-dir", os.path.join(to, "out"))
        outputs = [os.path.join(to, "out", f"output_{i}.npy") for i in range(9)]
        return b"".join(np.load(p).tobytes() for p in outputs if os.path.exists(p))

    def sources(self, to):
        weights = os.path.join(to, "model_weights.S")
        return [os.path.join(to, "model.c")] + ([weights] if os.path.exists(weights) else [])

    def device(self, to, model, core, n_out, arena, marks=()):
        prefix, flags, link, run, _ = CORES[core]
        link = [*link, *(ALONE if model.endswith(":free") else [])]
        elf = os.path.join(to, "model.elf")
        common = [prefix + "gcc", "-O2", *flags.split(), "-ffunction-sections", "-fdata-sections"]
        objects = []
        for source in self.sources(to):
            objects.append(source + ".o")
            call(*common, *(WARN + FRAMES if source.endswith(".c") else []), "-c", source, "-o", objects[-1])
        call(*common, "-std=gnu11", "-I", to, '-DHEADER="model.h"', '-DINPUT_H="input.h"', "-DRUN=model_run", "-DCALL=" + call_of(model),
             f"-DOUTPUT_BYTES={n_out}", f"-DARENA_BYTES={arena}", "-L", self.here, *link,
             os.path.join(self.here, "start.c"), *objects, *([] if "-nostdlib" in link else ["-lm"]), "-lgcc", "-o", elf)
        at = {s[2]: int(s[0], 16) for s in map(str.split, call(prefix + "nm", elf).splitlines()) if len(s) == 3}
        count = os.path.join(to, "count.txt")
        plugin = f"{self.plugin},start={at['count_start'] & ~1:#x},stop={at['count_stop'] & ~1:#x},to={count}"
        plugin += "".join(f",mark={at[name] & ~1:#x}" for name in marks)
        counting = ["-plugin", plugin] if is_measured(core) else []
        told = subprocess.run(["timeout", "300", run[0], *counting, *run[1:], elf], capture_output=True, text=True)
        lines = (told.stdout + told.stderr).split()
        if len(lines) != 2:
            raise RuntimeError(f"QEMU said {lines}")
        status, stack = np.frombuffer(bytes.fromhex(lines[0]), "<u4")
        if status:
            raise RuntimeError(f"model_run returned {status}")
        instructions = int(open(count).readline()) if counting else 0
        return bytes.fromhex(lines[1]), instructions, int(stack), self.code(prefix, elf if prefix == ARM else objects[0])

    def decibels(self, to, model, got):
        """Returns the SQNR in dB of the first output against torch's floats; 0: these are not recorded."""
        name, io, _ = parts(model)
        path = os.path.join(self.here, name, "output_0.npy")
        if not os.path.exists(path):
            return 0
        want = np.load(path).ravel()
        y = np.frombuffer(got, io or "float32")[:want.size].astype("float64")
        if io:
            scale, zero = self.points(to, "OUTPUT")
            y = (y - zero) * scale
        return 10 * np.log10((want ** 2).sum() / ((want - y) ** 2).sum())

    def strays(self, model, got):
        """Returns the first number that is not near that of torch in float64, as a list of faults."""
        path = os.path.join(self.here, parts(model)[0], "float64_0.npy")
        if not os.path.exists(path):
            return []
        want = np.load(path)
        y = np.frombuffer(got, "float32")[:want.size].reshape(want.shape)
        with np.errstate(invalid="ignore"):
            near = abs(ordinal(y) - ordinal(want)) <= MOST_ULPS
        near = np.where(np.isfinite(want), near, (y == want) | (np.isnan(y) & np.isnan(want)))
        return [f"row {r}, column {c}: {y[r, c]}, in float64 {want[r, c]}" for r, c in np.argwhere(~near)[:1]]

    def points(self, to, which):
        words = open(os.path.join(to, "model.h")).read().split()
        return (float(words[words.index(f"MODEL_{which}_0_{what}") + 1].strip("()f")) for what in ("SCALE", "ZERO"))

    def library(self, prefix, to):
        """Functions of the C library that divide numbers of 64 bits, and those that compute with floats where all inputs
        and outputs are integers."""
        names = [w for w in open(os.path.join(to, "model.h")).read().split() if w.startswith(("MODEL_INPUT", "MODEL_OUTPUT"))]
        has_floats = sum(n.endswith("_BYTES") for n in names) > sum(n.endswith("_SCALE") for n in names) + self.takes_bytes
        there = call(prefix + "nm", os.path.join(to, "model.elf")).split()
        return [n for n in there if n.startswith(LONG_DIVISION) or (not has_floats and SOFT_FLOAT.match(n))]

    def code(self, prefix, file):
        """Bytes of instructions, and what the compiler put between them: no constants."""
        rows = [line.split() for line in call(prefix + "objdump", "-h", file).splitlines()]
        return sum(int(r[2], 16) for r in rows if len(r) > 2 and (r[1] + ".").startswith(".text."))

    def code_with_tables(self, prefix, file):
        """The same and bytes of tables, without the arrays of weights."""
        rows = [line.split() for line in call(prefix + "objdump", "-h", file).splitlines()]
        return self.code(prefix, file) + sum(int(r[2], 16) for r in rows if len(r) > 2 and r[1].startswith(".rodata")
                                             and not r[1].startswith(".rodata.w_"))

    def deepest(self, to):
        """Bytes of the frames of model_run and of what it calls, by the compiler's call graph; the C library's are not in it."""
        frame, calls = {}, collections.defaultdict(set)
        for line in open(os.path.join(to, "model.c.ci")):
            words = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
            if line.startswith("node:"):
                bytes_ = re.search(r"(\d+) bytes \((\w+)\)", words[1])
                if bytes_ and bytes_[2] != "static" or words[0] == "__indirect_call":
                    raise RuntimeError(f"a frame of no fixed size: {words}")
                frame[words[0]] = int(bytes_[1]) if bytes_ else 0
            elif line.startswith("edge:"):
                calls[words[0]].add(words[1])

        folded = max((n for f, n in frame.items() if ":node_" in f), default=0)  # one that equals another has no node here

        def below(f):
            return frame.get(f, folded) + max(map(below, calls[f]), default=0)
        return below("model_run")

    def sizes(self, to, model, stack):
        """Returns the numbers of stack and code in the header that are wrong. There are none for models of floats."""
        text = open(os.path.join(to, "model.h")).read()
        stated, about = re.search(r"_STACK_BYTES (\d+)", text), re.search(r"code +about (\d+) bytes", text)
        if not parts(model)[2]:
            return ["sizes are stated that were fitted to quantized models"] if stated or about else []
        if not stated or not about:
            return ["no stack or no code is stated: a kernel has no row in emit/c_sizes.def"]
        stated, need = int(stated[1]), max(stack, self.deepest(to))
        faults = [] if need <= stated <= 1.5 * need else [f"a stack of {stated} bytes is stated, and {need} are used"]
        about, code = int(about[1]), self.code_with_tables(ARM, os.path.join(to, "model.c.o"))
        faults += [] if code * CODE_LEAST <= about <= code * CODE_MOST else [f"about {about} bytes of code are stated, and {code} are there"]
        return faults

    def memory(self, to):
        """Returns the numbers of constants in the header that are wrong."""
        text, faults = open(os.path.join(to, "model.h")).read(), []
        lines = call("arm-none-eabi-nm", "-S", os.path.join(to, "model.elf")).splitlines()
        symbols = [w for w in map(str.split, lines) if len(w) == 4 and w[2] in "rR" and w[3].startswith("w_")]
        constants = re.search(r"constants +(\d+) bytes", text)
        blob = [os.path.getsize(s + ".bin") for s in self.sources(to) if s.endswith(".S")]  # of arrays at multiples of 64
        there = sum(int(w[1], 16) for w in symbols) + sum(blob)
        least = int(constants[1]) - 64  # the compiler computes with what small arrays hold
        if not least <= there <= least + 64 + len(blob) * 64 * open(os.path.join(to, "model.c")).read().count("*const w_"):
            faults.append(f"{constants[1]} bytes of constants are stated, and {there} are there")
        sizes = {w[1]: int(w[2], 16) for w in map(str.split, call("arm-none-eabi-objdump", "-h", os.path.join(to, "model.elf")).splitlines())
                 if len(w) > 2 and w[0].isdigit()}
        others = sizes[".rodata"] - sum(int(w[1], 16) for w in symbols) - sum(blob) - os.path.getsize(os.path.join(to, "input.npy"))
        if others > 1024 + 96 * open(os.path.join(to, "model.c")).read().count("\nstatic void node_"):  # sizes of each
            faults.append(f"{others} bytes of .rodata are neither constants nor the input")
        if ".ext_flash" in sizes or "ext_flash" in text:
            told = int(re.search(r"ext +(\d+) of", text)[1])
            faults += [] if sizes[".ext_flash"] == told else [f"{sizes['.ext_flash']} bytes in .ext_flash, {told} are stated"]
        return faults

    def forecast(self, to, model, core, instructions):
        """Returns the numbers of the forecast that are wrong."""
        name, io, _ = parts(model)
        header = open(os.path.join(to, "model.h")).read()
        stated = [int(re.search(p, header)[1]) for p in (r"constants +(\d+) bytes", r"_ARENA_BYTES (\d+)", r"_STACK_BYTES (\d+)")]
        told = json.loads(call(self.etc, "bench", self.model_of(name), "--recipe", "int8", "--calibrate", os.path.join(to, "calibrate"),
                               "--target", core, "--json", *MODELS[name][1], *(["--io", io] if io else [])))
        faults = [f"{told['without_forecast']} layers have no forecast"] if told["without_forecast"] else []
        off = told["instructions"] / instructions - 1
        faults += [f"the forecast is off by {off:.1%}"] if abs(off) > FORECAST_OFF else []
        # Kernels work in gaps between the values, so the arena may have a little more than is live at once.
        if told["flash"] != stated[0] or not 0.8 * stated[1] <= told["ram"] <= stated[1] or told["stack"] != stated[2]:
            faults.append(f"the forecast has {told['flash']}, {told['ram']} and {told['stack']} bytes, the header {stated}")
        return faults

    def measure(self, model, core):
        to = self.emit(model, core)
        if model.startswith(UNOPTIMIZED) and CORES[core][0] == ARM:
            call(ARM + "gcc", "-O0", *CORES[core][1].split(), *WARN, "-c", os.path.join(to, "model.c"), "-o", os.devnull)
        header = open(os.path.join(to, "model.h")).read()
        arena = sum(int(n) for n in re.findall(r"define MODEL_(?:ARENA|BANK_\w+)_BYTES (\d+)", header))
        want = plain(model, self.wanted(model, core, to))
        n_out = len(want)
        got, instructions, stack, code = self.device(to, model, core, n_out, arena)
        got = plain(model, got)
        faults = ([] if want == got else ["outputs differ"]) + self.strays(model, got)
        if CORES[core][-1]:
            faults += self.library(CORES[core][0], to)
        if CORES[core][0] == ARM and is_measured(core):
            faults += self.sizes(to, model, stack)
        if CORES[core][0] == ARM and parts(model)[2] and is_measured(core):
            faults += self.memory(to)
        if CORES[core][0] == ARM and parts(model)[2] and is_measured(core) and not faults:
            faults += self.forecast(to, model, core, instructions) if model.startswith(("tiny_", "excited")) else []
        return got, faults, self.decibels(to, model, got), instructions / MODELS[parts(model)[0]][0], code, arena, stack


def ordinal(x):
    """Numbers floats in their order: neighbours differ by one."""
    i = x.view(np.int32).astype(np.int64)
    return np.where(i < 0, -(i & 0x7fffffff), i)


def plain(model, data):
    """Replaces NaNs by one of them: the sign and the payload of a NaN are not defined."""
    if parts(model)[2]:
        return data
    y = np.frombuffer(data, "float32").copy()
    y[np.isnan(y)] = np.nan
    return y.tobytes()


def read_limits(path):
    rows = {}
    for line in open(path):
        words = line.split("#")[0].split()
        if words:
            rows[words[0], words[1]] = tuple(map(float, words[2:]))
    return rows


def main():
    args = sys.argv[1:]
    table = "--table" in args
    args = [a for a in args if a != "--table"]
    rig_at, models = args[:2], args[2:]
    limits = {row: most for row, most in read_limits(os.path.join(rig_at[0], "tests", "mcu", "limits.txt")).items()
              if not models or any(m in " ".join(row) for m in models)}
    missing = sorted({tool for _, core in limits for tool in tools(core) if not shutil.which(tool)})
    if missing:
        print(f"1..0 # SKIP no {', '.join(missing)} here")
        return 0
    rig = Rig(*rig_at)
    n, failed, outputs = 0, False, {}
    for (model, core), most in limits.items():
        n += 1
        try:
            got, faults, near, *numbers = rig.measure(model, core)
        except RuntimeError as e:
            print(f"not ok {n} - {model} {core}\n# " + str(e).replace("\n", "\n# "))
            failed = True
            continue
        if outputs.setdefault((model, CORES[core][-1]), got) != got:
            faults.append("another core has other outputs")
        if table:
            print(f"{model:20} {core:14} {numbers[0]:7.3f} {numbers[1]:7d} {numbers[2]:7d} {numbers[3]:6d} {near:5.1f}"
                  + "".join("  # " + f for f in faults), flush=True)
            continue
        faults += [f"{what}: {got:g}, at most {may:g}" for what, got, may in
                   zip(("instructions per MAC", "code", "arena", "stack"), numbers, most)
                   if got > may * 1.002 and is_measured(core)]
        if len(most) > 4 and near < most[4]:
            faults.append(f"{near:.1f} dB of torch's floats, at least {most[4]:g}")
        failed = failed or bool(faults)
        print(f"{'not ok' if faults else 'ok'} {n} - {model} {core}: {', '.join(faults)}", flush=True)
    print(f"1..{n}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
