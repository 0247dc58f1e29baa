"""etc compiles PyTorch models ahead of time: to .pte files for ExecuTorch, or to C that stands alone.

    import etc
    pte = etc.compile(torch.export.export(model, (x,)), backend="xnnpack")
    open("model.pte", "wb").write(pte)

A model is a torch.export.ExportedProgram, the path of a file that the command `etc` reads (.pt2, .onnx, .etir), or a module with
example inputs.  The program `etc` in this package does the work and needs no torch; torch is imported only for models that are
objects of torch.  If a compile fails, an Error is raised, which holds all messages.
"""
from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Sequence, Union

if TYPE_CHECKING:
    import numpy
    import torch

__all__ = ["BINARY", "Dim", "Error", "Message", "check", "compile", "emit_c", "run"]

BINARY = Path(__file__).parent / "bin" / "etc"
if not BINARY.exists() and "ETC" in os.environ:
    BINARY = Path(os.environ["ETC"])

Model = Union[str, "os.PathLike[str]", "torch.export.ExportedProgram", "torch.nn.Module"]
Flags = Sequence[Union[str, "os.PathLike[str]"]]
Buffer = Union[bytes, bytearray, memoryview]


@dataclass(frozen=True)
class Dim:
    """A size between two bounds, both included.  Sizes of one name are equal."""
    name: str
    low: int
    high: int

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"the name of a Dim is {self.name!r}, expected an identifier of Python")
        if not 0 <= self.low <= self.high:
            raise ValueError(f"the bounds of Dim {self.name!r} are {self.low} and {self.high}, expected 0 <= low <= high")


Dims = Mapping[str, Union[Dim, "tuple[int, int]", int]]


@dataclass(frozen=True)
class Message:
    """A message about a model.  Fields that are not known are None."""
    kind: str  # "error", "warning", "note" about the message before it, "internal error"
    message: str
    fault: str | None = None  # of an error: "model", "io", "unsupported", "gate", "usage", "bug"
    file: str | None = None
    line: int | None = None
    column: int | None = None
    node: str | None = None
    op: str | None = None
    module: str | None = None
    source: str | None = None  # FILE:LINE of the model's Python

    def __str__(self) -> str:
        at = self.source or (self.file if self.fault == "io" else None)
        at = f"{at}: " if at else ""
        node = f"node '{self.node}' ({self.op}): " if self.node else ""
        return f"{at}{self.kind}: {node}{self.message}"


class Error(Exception):
    """A command that failed: its exit code (docs/cli.md), and all messages."""

    def __init__(self, code: int, messages: Sequence[Message]):
        super().__init__("\n".join(map(str, messages)) or f"etc ended with exit code {code}")
        self.code = code
        self.messages = list(messages)


def compile(model: Model, example_inputs: Sequence[Any] | None = None, *, backend: str | None = None,
            recipe: str | os.PathLike[str] | None = None,
            samples: Iterable[Any] | str | os.PathLike[str] | None = None,
            dims: Dims | None = None, flags: Flags = ()) -> bytes:
    """Returns the .pte file of a model.

    backend: the backends that are offered parts of the model, such as "xnnpack"
    recipe:  how to quantize: a preset or the path of a recipe (docs/quantization.md)
    samples: inputs for recipes that calibrate: a path as for `--calibrate`, one array, or several samples.  A sample is an array,
             or a sequence or mapping of arrays, one for each input
    dims:    the sizes that are open, by the name of a dimension or by "INPUT.AXIS": a Dim, a pair of bounds or a number
    flags:   further flags of the command `compile`
    """
    with _Job(model, example_inputs, dims) as job:
        out = job.folder / "out.pte"
        job.quantize(recipe, samples)
        job.option("--backend", backend)
        job.call("compile", flags, "-o", out)
        return out.read_bytes()


def emit_c(model: Model, example_inputs: Sequence[Any] | None = None, *, name: str = "model", main: bool = False,
           target: str | None = None, recipe: str | os.PathLike[str] | None = None,
           samples: Iterable[Any] | str | os.PathLike[str] | None = None,
           dims: Dims | None = None, flags: Flags = ()) -> dict[str, bytes]:
    """Returns the C files of a model, by their names: NAME.c, NAME.h, with `main` NAME_main.c, and whatever else it needs.

    target: a CPU that `--target` names; the other arguments are those of compile().
    """
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"name is {name!r}, expected an identifier of C")
    with _Job(model, example_inputs, dims) as job:
        out = job.folder / "out"
        out.mkdir()
        job.quantize(recipe, samples)
        job.option("--target", target)
        job.call("emit-c", flags, *(["--main"] if main else []), "-o", out / f"{name}.c")
        return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def check(model: Model, example_inputs: Sequence[Any] | None = None, *, dims: Dims | None = None,
          flags: Flags = ()) -> list[Message]:
    """Returns the errors that would stop a compile, and warnings; the list is empty if there are none."""
    with _Job(model, example_inputs, dims) as job:
        return job.messages("check", flags)[1]


def run(model: Model | Buffer, inputs: Sequence[Any], *, dims: Dims | None = None, flags: Flags = ()) -> list[numpy.ndarray]:
    """Returns the outputs of a .pte (a path, or the bytes that compile() returned), or of a model that is compiled first.

    inputs: arrays, tensors or numbers, in order; or one array or tensor.  An array of uint16 holds the bits of bfloat16, and one
    of uint8 those of floats of 8 bits, if the model has such inputs.
    """
    import numpy
    with _Job(model, inputs, dims) as job:
        for i, value in enumerate(_many(inputs)):
            path: Any = job.folder / f"input_{i}.npy"
            if value is None or isinstance(value, (bool, int, float, str)):
                path = f"value:{json.dumps(value)}"
            else:
                numpy.save(path, _array(value))
            job.arguments += ["--input", path]
        out = job.folder / "out"
        job.call("run", flags, "--output-dir", out)
        paths = sorted(out.glob("output_*.npy"), key=lambda path: int(path.stem.split("_")[1]))
        return [numpy.load(path) for path in paths]


# -- jobs --------------------------------------------------------------------------------------------------------------------


class _Job(contextlib.AbstractContextManager["_Job"]):
    """A model in a file, with its flags, and a temporary folder for the files of a command."""

    def __init__(self, model: Model | Buffer, example_inputs: Sequence[Any] | None, dims: Dims | None):
        sizes = {key: _size(key, value) for key, value in dict(dims or {}).items()}
        self._temporary = tempfile.TemporaryDirectory(prefix="etc-")
        self.folder = Path(self._temporary.name)
        self.arguments: list[Any] = []
        try:
            self.model = self._file(model, example_inputs, sizes)
            for key, size in sizes.items():
                self.arguments += ["--dim", f"{key}={size}" if isinstance(size, int) else f"{key}={size.low}..{size.high}"]
        except BaseException:
            self._temporary.cleanup()
            raise

    def __exit__(self, *_: Any) -> None:
        self._temporary.cleanup()

    def _file(self, model: Model | Buffer, example_inputs: Sequence[Any] | None, sizes: dict[str, Dim | int]) -> Path:
        if isinstance(model, (str, os.PathLike)):
            return Path(model)
        if isinstance(model, (bytes, bytearray, memoryview)):
            path = self.folder / "model.pte"
            path.write_bytes(model)
            return path
        import torch
        if isinstance(model, torch.nn.Module):
            if example_inputs is None or isinstance(example_inputs, (str, Mapping)):
                raise TypeError("a module needs example inputs: a sequence, in the order of the arguments of forward()")
            model = _exported(model, tuple(_many(example_inputs)), sizes)
            sizes.clear()  # the export knows them
        if not isinstance(model, torch.export.ExportedProgram):
            raise TypeError(f"a model is {type(model).__name__}, expected a path, an ExportedProgram or a module")
        path = self.folder / "model.pt2"
        torch.export.save(model, path)
        return path

    def option(self, flag: str, value: Any) -> None:
        if value is not None:
            self.arguments += [flag, value]

    def quantize(self, recipe: str | os.PathLike[str] | None, samples: Iterable[Any] | str | os.PathLike[str] | None) -> None:
        self.option("--recipe", recipe)
        if isinstance(samples, (str, os.PathLike)):
            self.arguments += ["--calibrate", samples]
        elif samples is not None:
            folder = self.folder / "samples"
            folder.mkdir()
            for i, sample in enumerate(_many(samples)):
                _save_sample(folder / f"{i:08}.npz", sample)
            self.arguments += ["--calibrate", folder]

    def messages(self, command: str, flags: Flags, *own: Any) -> tuple[int, list[Message]]:
        if isinstance(flags, str):
            raise TypeError(f"flags is {flags!r}, expected a list")
        line = [BINARY, command, *self.arguments, *flags, *own, "-q", "--error-format", "json", "--", self.model]
        done = subprocess.run(list(map(str, line)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return done.returncode, list(_messages(done.stderr))

    def call(self, command: str, flags: Flags, *own: Any) -> None:
        code, messages = self.messages(command, flags, *own)
        if code:
            raise Error(code, messages)


def _messages(text: bytes) -> Iterator[Message]:
    known = set(Message.__dataclass_fields__)
    for line in text.decode("utf-8", "replace").splitlines():
        try:
            fields = json.loads(line)
            yield Message(**{key: value for key, value in fields.items() if key in known})
        except (ValueError, TypeError, AttributeError):
            yield Message("error", line)


def _size(key: str, value: Any) -> Dim | int:
    """Returns the size of `dims` under this key.  A pair of bounds becomes a Dim that is named after the key."""
    if isinstance(value, (Dim, int)):
        return value
    if not isinstance(value, (tuple, list)) or [type(v) for v in value] != [int, int]:
        raise TypeError(f"dims[{key!r}] is {value!r}, expected an etc.Dim, a pair of bounds or a number")
    return Dim("".join(c if c.isalnum() else "_" for c in f"dim_{key}"), *value)


def _shapes(module: torch.nn.Module, inputs: Sequence[Any], sizes: dict[str, Dim | int]) -> Any:
    """Returns dynamic_shapes for torch.export: for each argument of forward() a map of its open axes, or None."""
    import inspect

    import torch
    named: dict[Dim, Any] = {}
    names = list(inspect.signature(module.forward).parameters)[:len(inputs)]
    shapes: list[Any] = [None] * len(inputs)
    for key, size in sizes.items():
        argument, _, axis = key.rpartition(".")
        if argument not in names or not (axis.isascii() and axis.isdigit()):
            raise ValueError(f"dims names {key!r}, expected INPUT.AXIS with an input of {names}")
        at = names.index(argument)
        example = getattr(inputs[at], "shape", ())
        if int(axis) >= len(example):
            raise ValueError(f"dims names {key!r}, but the example of {argument!r} has {len(example)} axes")
        if isinstance(size, int):
            if size != example[int(axis)]:
                raise ValueError(f"dims fixes {key!r} at {size}, but the size of the example is {example[int(axis)]}")
            continue
        if size not in named:
            named[size] = torch.export.Dim(size.name, min=size.low, max=size.high)
        shapes[at] = {**(shapes[at] or {}), int(axis): named[size]}
    return tuple(shapes) if any(shapes) else None


def _exported(module: torch.nn.Module, inputs: tuple[Any, ...], sizes: dict[str, Dim | int]) -> torch.export.ExportedProgram:
    """Exports a module in inference mode.  Afterwards its parts are in the modes in which they were."""
    import torch
    trains = [part for part in module.modules() if part.training]
    try:
        return torch.export.export(module.eval(), inputs, dynamic_shapes=_shapes(module, inputs, sizes))
    finally:
        for part in trains:
            part.training = True


def _many(values: Any) -> Any:
    """Returns the values as a sequence.  One array or tensor becomes a sequence of one."""
    return [values] if hasattr(values, "__array__") else values


def _array(value: Any) -> numpy.ndarray:
    """Returns an array or tensor as the command reads it: in C order, with the bytes in the order of this machine."""
    import numpy
    if not hasattr(value, "detach"):
        array = numpy.asarray(value, order="C")
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    import torch
    value = value.detach().cpu()
    if value.dtype.is_floating_point and value.dtype not in (torch.float16, torch.float32, torch.float64):
        value = value.view({1: torch.uint8, 2: torch.uint16}[value.element_size()])
    return value.contiguous().numpy()


def _save_sample(path: Path, sample: Any) -> None:
    import numpy
    if isinstance(sample, Mapping):
        members = {name: _array(value) for name, value in sample.items()}
    else:
        many = sample if isinstance(sample, (tuple, list)) else [sample]
        members = {f"input_{i}": _array(value) for i, value in enumerate(many)}
    numpy.savez(path, **members)


def main() -> None:
    """Runs the command `etc` of this package."""
    os.execv(BINARY, ["etc", *sys.argv[1:]])
