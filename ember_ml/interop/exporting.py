"""Models as programs that run without Ember: torch.export and ONNX."""

from __future__ import annotations

import copy
import io
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, EmberError
from ember_ml._core.files import write_atomically
from ember_ml._core.requirements import import_optional
from ember_ml.interop._onnx_operators import replace_operators
from ember_ml.interop._torch_calls import BACKEND
from ember_ml.interop.torch_modules import EmberModule, to_torch
from ember_ml.nn import Module

BATCH, LENGTH = 3, 17
"""Sizes of the example input; they are neither equal nor powers of two, so that they stay apart."""
OTHER_SIZES = ((2, 12), (1, 33), (4, 5))
"""Batch sizes and lengths at which axes of variable size are checked."""
TOLERANCE = 1e-4


class ExportError(EmberError, RuntimeError):
    """Raised if a model cannot be exported, or if the program computes other numbers."""


class Export(NamedTuple):
    """A program that was written and checked."""

    path: Path
    format: str
    shape: tuple[int | str, ...]
    """Shape of the input; the name of an axis that may have any size."""
    error: float
    """Largest difference from the model, relative to its largest output."""


def export(
    module: Module,
    path: str | os.PathLike[str],
    format: str = "torch-export",  # noqa: A002
    inputs: torch.Tensor | None = None,
) -> Export:
    """Write a model as a program of another runtime, after comparing the numbers of both.

    The axes of the batch and of time may have any size in the program where the model allows it:
    an axis is fixed if the program does not compute the same numbers at other sizes.

    Args:
        module: The model, on any backend. It is exported in inference mode.
        path: File to write, such as "model.pt2" or "model.onnx".
        format: "torch-export", for `torch.export.load`, or "onnx".
        inputs: Example input, whose second axis is time. Default: one that fits `vocab_size` or
            `in_features` of the model.

    Raises:
        ExportError: If an op of the model has no counterpart, or the numbers differ.
    """
    if format not in FORMATS:
        raise ArgumentError(f"export: format must be one of {', '.join(FORMATS)}; got {format!r}")
    if not isinstance(module, Module):
        raise ArgumentTypeError(f"export: expected an Ember module, got {type(module).__name__}")
    if Path(path).is_dir():
        raise ArgumentError(f"export: {path} is a folder; write to a file, such as model.pt2")
    if inputs is not None and not isinstance(inputs, torch.Tensor):
        raise ArgumentTypeError(
            f"export: inputs must be a tensor of torch, not {type(inputs).__name__}"
        )
    if inputs is not None and not inputs.numel():
        raise ArgumentError(f"export: inputs of shape {tuple(inputs.shape)} have no elements")
    model = to_torch(copy.deepcopy(module).to_backend(BACKEND)).eval()
    model._apply(torch.clone)  # values that came from another backend may be views
    example = _example(module) if inputs is None else inputs
    with torch.no_grad():
        expected = model(example)  # an input that does not fit raises the model's own error
    if not isinstance(expected, torch.Tensor) or not bool(expected.isfinite().all()):
        raise ExportError(
            f"{type(module).__name__} cannot be exported: its output for an example must be a "
            "tensor of finite numbers, with which the program's output is compared"
        )
    reasons = []
    for axes in _variable_axes(example):
        try:
            content, run = FORMATS[format](model, example, axes)
            error = max(_difference(model, run, x) for x in _examples(example, axes))
        except ExportError as failure:
            reasons.append(str(failure))
            continue
        write_atomically(path, content)
        return Export(Path(path), format, _shape(example, axes), error)
    raise ExportError(f"{type(module).__name__} cannot be exported as {format}: {reasons[-1]}")


Run = Callable[[torch.Tensor], torch.Tensor]
"""Function that runs an exported program."""


def _export_torch(model: EmberModule, x: torch.Tensor, axes: Sequence[int]) -> tuple[bytes, Run]:
    """Return the file of a `torch.export` program, and a function that runs it."""
    with _failures("torch.export"):
        program = torch.export.export(model, (x,), dynamic_shapes=_dynamic(axes))
        buffer = io.BytesIO()
        torch.export.save(program, buffer)
        buffer.seek(0)
        run = torch.export.load(buffer).module()
    return buffer.getvalue(), run


def _export_onnx(model: EmberModule, x: torch.Tensor, axes: Sequence[int]) -> tuple[bytes, Run]:
    """Return the file of an ONNX program, and a function that runs it with ONNX Runtime."""
    runtime = import_optional("onnxruntime", "export to ONNX")
    import_optional("onnxscript", "export to ONNX")
    with _failures("torch.onnx"), _quiet():
        exported = torch.export.export(model, (x,), dynamic_shapes=_dynamic(axes))
        program = torch.onnx.export(replace_operators(exported), dynamo=True, verbose=False)
        content = program.model_proto.SerializeToString()
        options = runtime.SessionOptions()
        options.log_severity_level = 4  # a size at which the program fails is not the user's error
        session = runtime.InferenceSession(content, options)
    name = session.get_inputs()[0].name

    def run(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(session.run(None, {name: x.numpy()})[0])

    return content, run


FORMATS: dict[str, Callable[..., tuple[bytes, Run]]] = {
    "torch-export": _export_torch,
    "onnx": _export_onnx,
}
"""Exporters by the name of their format."""


@contextmanager
def _failures(name: str) -> Iterator[None]:
    """Raise an ExportError with the reason of another library's error."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:  # compilers raise many types
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        reason = next((line for line in str(cause).splitlines() if line.strip()), repr(cause))
        raise ExportError(f"{name}: {reason.strip()}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the warnings of ONNX's exporter about the opsets and operators it looks for."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _dynamic(axes: Sequence[int]) -> Any:
    sizes = dict.fromkeys(axes, torch.export.Dim.AUTO)
    return ((sizes,),) if axes else None


def _variable_axes(x: torch.Tensor) -> list[tuple[int, ...]]:
    """Return the sets of axes to try, the largest first."""
    return [(0, 1), (0,), ()] if x.ndim > 1 else [(0,), ()]


def _examples(x: torch.Tensor, axes: Sequence[int]) -> Iterator[torch.Tensor]:
    """Yield the example, and others at which the variable axes have other sizes."""
    yield x
    for sizes in OTHER_SIZES if axes else ():
        shape = [sizes[at] if at in axes else size for at, size in enumerate(x.shape)]
        repeats = [-(-size // old) for size, old in zip(shape, x.shape, strict=True)]
        yield x.repeat(repeats)[tuple(slice(size) for size in shape)].contiguous()


def _difference(model: EmberModule, run: Run, x: torch.Tensor) -> float:
    """Return the relative difference of a program's output; raise an error if it is large."""
    with _failures("the model"), torch.no_grad():
        expected = model(x)  # it may not accept this size
    with _failures("the program"), torch.no_grad():
        actual = run(x)
    if actual.shape != expected.shape:
        raise ExportError(
            f"at the input shape {tuple(x.shape)} the program returns the shape "
            f"{tuple(actual.shape)}, and the model {tuple(expected.shape)}"
        )
    scale = max(float(expected.abs().max()), 1e-6)
    error = float((actual - expected).abs().max()) / scale
    if not error <= TOLERANCE:
        raise ExportError(
            f"at the input shape {tuple(x.shape)} the program differs from the model by {error:.1e}"
        )
    return error


def _shape(x: torch.Tensor, axes: Sequence[int]) -> tuple[int | str, ...]:
    names = ("batch", "time")
    return tuple(names[at] if at in axes else size for at, size in enumerate(x.shape))


def _example(module: Module) -> torch.Tensor:
    """Return an input that fits a model."""
    config = {} if module.config is None else module.config.model_dump()
    generator = torch.Generator().manual_seed(0)
    if isinstance(vocab_size := config.get("vocab_size"), int):
        return torch.randint(0, vocab_size, (BATCH, LENGTH), generator=generator)
    for name in ("in_features", "features"):
        if isinstance(features := config.get(name), int):
            return torch.randn(BATCH, LENGTH, features, generator=generator)
    raise ArgumentError(
        f"export: {type(module).__name__} has no vocab_size, in_features or features; pass an "
        "example input"
    )
