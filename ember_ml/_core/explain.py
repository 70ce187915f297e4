"""Translation of a framework's errors into those of Ember ML, the same on every backend."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ember_ml._core.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    EmberError,
    IndexOutOfRangeError,
    LinAlgError,
    ShapeError,
    UnsupportedDTypeError,
    UnsupportedOpError,
)
from ember_ml._core.tensor import EmberTensor

if TYPE_CHECKING:
    from ember_ml._core.op import Op

_DTYPE = re.compile(
    r"dtype|scalar type|not implemented for '|unsupported type|data ?type", re.IGNORECASE
)
_SHAPE = re.compile(r"shape|size|dimension|broadcast|axes|axis|mismatch|\d-?D\b", re.IGNORECASE)
# A TypeError is about shapes only if it says how they disagree: JAX raises it for bad shapes.
_DISAGREE = r"(?:incompatible|mismatch|broadcast|differ|same|equal|unchanged)"
_SHAPES_DISAGREE = re.compile(rf"{_DISAGREE}.*\bshapes?\b|\bshapes?\b.*{_DISAGREE}", re.IGNORECASE)


def _describe(value: Any) -> str:
    if isinstance(value, EmberTensor):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple)) and any(isinstance(part, EmberTensor) for part in value):
        return "[" + ", ".join(map(_describe, value)) + "]"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def call_text(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the call as text, with tensors as dtype and shape: add(float32[2, 3], float32[4])."""
    parts = [_describe(value) for value in args]
    parts += [f"{name}={_describe(value)}" for name, value in kwargs.items()]
    return f"{op.label}({', '.join(parts)})"


def _bad_axis(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return what is wrong with an axis argument; None if nothing is."""
    try:
        arguments = op.signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    tensor = next((value for value in args if isinstance(value, EmberTensor)), None)
    if args and isinstance(args[0], (list, tuple)) and args[0]:
        tensor = args[0][0]
    if not isinstance(tensor, EmberTensor):
        return None
    for name in ("axis", "axes", "dim", "axis1", "axis2", "source", "destination"):
        given = arguments.get(name)
        given = given if isinstance(given, (list, tuple)) else [given]
        for axis in given:
            if isinstance(axis, int) and not -tensor.ndim <= axis < tensor.ndim:
                return f"{name}={axis} is out of range for the shape {tensor.shape}"
        whole = [axis % tensor.ndim for axis in given if isinstance(axis, int) and tensor.ndim]
        if len(set(whole)) < len(whole):
            return f"{name}={tuple(given)} repeats an axis"
    return None


def _do_not_broadcast(args: tuple[Any, ...]) -> bool:
    shapes = [value.shape for value in args if isinstance(value, EmberTensor)]
    longest = max(map(len, shapes), default=0)
    for axis in range(1, longest + 1):
        lengths = {shape[-axis] for shape in shapes if len(shape) >= axis} - {1}
        if len(lengths) > 1:
            return True
    return False


def explain(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
    """Return the exception to raise for an error of a backend.

    Args:
        op: The op that was called.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        error: Exception that the backend raised.
    """
    if isinstance(error, (EmberError, OverflowError, MemoryError, ZeroDivisionError)):
        return error
    call = call_text(op, args, kwargs)
    bad_axis = _bad_axis(op, args, kwargs)
    text = str(error).strip().split("\n")[0]
    if bad_axis is not None:
        return AxisError(f"{call}: {bad_axis}")
    if op.kind == "binary" and not op.rule.contraction and _do_not_broadcast(args):
        return ShapeError(f"{call}: the shapes do not broadcast")
    if type(error).__name__.endswith("LinAlgError"):
        return LinAlgError(f"{call}: {text}")
    if isinstance(error, NotImplementedError) and not _DTYPE.search(text):
        return UnsupportedOpError(f"{call}: {text}")
    if isinstance(error, IndexError):
        return IndexOutOfRangeError(f"{call}: {text}")
    if isinstance(error, TypeError):
        kind = ShapeError if _SHAPES_DISAGREE.search(text) else ArgumentTypeError
        return kind(f"{call}: {text}")
    if isinstance(error, (RuntimeError, ValueError, AttributeError)):
        if _DTYPE.search(text):
            return UnsupportedDTypeError(f"{call}: {text}")
        if _SHAPE.search(text):
            return ShapeError(f"{call}: {text}")
        return ArgumentError(f"{call}: {text}")
    return error
