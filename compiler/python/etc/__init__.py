"""etc compiles PyTorch models ahead of time: to .pte files for ExecuTorch, or to C that stands alone.

    import etc
    pte = etc.compile(torch.export.export(model, (x,)), backend="xnnpack")
    open("model.pte", "wb").write(pte)

A model is a torch.export.ExportedProgram, a path of what the command `etc` reads (.pt2, .onnx, .etir), or a module beside example
inputs.  The work is done by the program `etc` within this package, which needs no torch; torch is imported only where a model of
its own is handed over.  What stops a compile is raised as an Error, which holds all messages.
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


@dataclass(frozen=True)
class Dim:
    """A size between two bounds, both included.  Sizes of one name are equal."""
    name: str
    low: int
    high: int


Dims = Mapping[str, Union[Dim, "tuple[int, int]", int]]


@dataclass(frozen=True)
class Message:
    """What etc says of a model.  Fields that are not known are None."""
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

    backend: who is offered the model's parts, as "xnnpack"; recipe: how to quantize, a preset or a file (docs/quantization.md);
    samples: for recipes that calibrate, each an array, or a sequence or mapping of arrays, one for each input; or a path that
    `--calibrate` takes; dims: sizes that are open, by a dimension's name or by "INPUT.AXIS", as a Dim, a pair of bounds or a
    number; flags: of the command `compile`.
    """
    with _Job(model, example_inputs, dims) as job:
        out = job.folder / "out.pte"
        job.quantize(recipe, samples)
        job.option("--backend", backend)
        job.call("compile", "-o", out, *flags)
        return out.read_bytes()


def emit_c(model: Model, example_inputs: Sequence[Any] | None = None, *, name: str = "model", main: bool = False,
           target: str | None = None, recipe: str | os.PathLike[str] | None = None,
           samples: Iterable[Any] | str | os.PathLike[str] | None = None,
           dims: Dims | None = None, flags: Flags = ()) -> dict[str, bytes]:
    """Returns the C files of a model, by their names: NAME.c, NAME.h, with `main` NAME_main.c, and what else it needs.

    target: a CPU of `--target`; the rest is as for compile().
    """
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"name is {name!r}, expected an identifier of C")
    with _Job(model, example_inputs, dims) as job:
        out = job.folder / "out"
        out.mkdir()
        job.quantize(recipe, samples)
        job.option("--target", target)
        job.call("emit-c", "-o", out / f"{name}.c", *(["--main"] if main else []), *flags)
        return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def check(model: Model, example_inputs: Sequence[Any] | None = None, *, dims: Dims | None = None,
          flags: Flags = ()) -> list[Message]:
    """Returns what would stop a compile, and warnings; an empty list for a model without any."""
    with _Job(model, example_inputs, dims) as job:
        return job.messages("check", *flags)[1]


def run(model: Model | bytes, inputs: Sequence[Any], *, dims: Dims | None = None, flags: Flags = ()) -> list[numpy.ndarray]:
    """Returns the outputs of a .pte (a path, or what compile() returned), or of a model compiled on the fly.

    inputs: arrays or tensors, or numbers, in order; or one array or tensor.  A bfloat16 is an uint16 with its bits, and a float
    of 8 bits an uint8.
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
        job.call("run", "--output-dir", out, *flags)
        paths = sorted(out.glob("output_*.npy"), key=lambda path: int(path.stem.split("_")[1]))
        return [numpy.load(path) for path in paths]


# -- jobs --------------------------------------------------------------------------------------------------------------------


class _Job(contextlib.AbstractContextManager["_Job"]):
    """A model on disk, with the flags that belong to it, and a folder for what comes of it."""

    def __init__(self, model: Model | bytes, example_inputs: Sequence[Any] | None, dims: Dims | None):
        self._temporary = tempfile.TemporaryDirectory(prefix="etc-")
        self.folder = Path(self._temporary.name)
        self.arguments: list[Any] = []
        try:
            self.model = self._file(model, example_inputs, dims or {})
            for key, value in (dims or {}).items():
                self.arguments += ["--dim", f"{key}={_bounds(value)}"]
        except BaseException:
            self._temporary.cleanup()
            raise

    def __exit__(self, *_: Any) -> None:
        self._temporary.cleanup()

    def _file(self, model: Model | bytes, example_inputs: Sequence[Any] | None, dims: Dims) -> Path:
        if isinstance(model, (str, os.PathLike)):
            return Path(model)
        if isinstance(model, bytes):
            path = self.folder / "model.pte"
            path.write_bytes(model)
            return path
        import torch
        if isinstance(model, torch.nn.Module):
            if example_inputs is None:
                raise TypeError("a module needs example inputs beside it")
            model = _exported(model, tuple(_many(example_inputs)), dims)
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
            for i, sample in enumerate(samples):
                _save_sample(folder / f"{i:08}.npz", sample)
            self.arguments += ["--calibrate", folder]

    def messages(self, command: str, *flags: Any) -> tuple[int, list[Message]]:
        line = [BINARY, command, self.model, *self.arguments, *flags, "-q", "--error-format", "json"]
        done = subprocess.run(list(map(str, line)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return done.returncode, list(_messages(done.stderr))

    def call(self, command: str, *flags: Any) -> None:
        code, messages = self.messages(command, *flags)
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


def _bounds(value: Dim | tuple[int, int] | int) -> str:
    if isinstance(value, Dim):
        return f"{value.low}..{value.high}"
    return str(value) if isinstance(value, int) else f"{value[0]}..{value[1]}"


def _shapes(module: torch.nn.Module, inputs: Sequence[Any], dims: Dims) -> Any:
    """dims by "INPUT.AXIS", as torch.export wants them: for each argument of forward() the open axes, or None."""
    import inspect

    import torch
    named: dict[Dim, Any] = {}
    names = list(inspect.signature(module.forward).parameters)[:len(inputs)]
    shapes: list[Any] = [None] * len(inputs)
    for key, value in dims.items():
        argument, _, axis = key.rpartition(".")
        if argument not in names or not axis.isdigit():
            raise ValueError(f"dims names {key!r}, expected INPUT.AXIS with an input of {names}")
        if isinstance(value, int):
            continue
        dim = value if isinstance(value, Dim) else Dim(f"{argument}_{axis}", *value)
        if dim not in named:
            named[dim] = torch.export.Dim(dim.name, min=dim.low, max=dim.high)
        at = names.index(argument)
        shapes[at] = {**(shapes[at] or {}), int(axis): named[dim]}
    return tuple(shapes) if any(shapes) else None


def _exported(module: torch.nn.Module, inputs: tuple[Any, ...], dims: Dims) -> torch.export.ExportedProgram:
    """Exports a module as it infers; afterwards it trains again if it did."""
    import torch
    trains = [part for part in module.modules() if part.training]
    try:
        return torch.export.export(module.eval(), inputs, dynamic_shapes=_shapes(module, inputs, dims))
    finally:
        for part in trains:
            part.training = True


def _many(values: Any) -> Any:
    """The values, of which one array or tensor may stand alone."""
    return [values] if hasattr(values, "__array__") else values


def _array(value: Any) -> Any:
    if not hasattr(value, "detach"):
        return value
    import torch
    value = value.detach().cpu()
    if value.dtype.is_floating_point and value.dtype not in (torch.float16, torch.float32, torch.float64):
        value = value.view({1: torch.uint8, 2: torch.uint16}[value.element_size()])
    return value.numpy()


def _save_sample(path: Path, sample: Any) -> None:
    import numpy
    if isinstance(sample, Mapping):
        members = {name: _array(value) for name, value in sample.items()}
    else:
        many = sample if isinstance(sample, (tuple, list)) else [sample]
        members = {f"input_{i}": _array(value) for i, value in enumerate(many)}
    numpy.savez(path, **members)


def main() -> None:
    """The command `etc` of an environment that has this package."""
    os.execv(BINARY, ["etc", *sys.argv[1:]])
