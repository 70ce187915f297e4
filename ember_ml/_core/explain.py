"""Translation of a framework's errors into those of Ember ML, the same on every backend."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
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
_MEMORY = re.compile(
    r"not enough memory|can't allocate|unable to allocate|array is too big|maximum allowed size"
    r"|maximum allowed dimension|storage size calculation overflowed with sizes=\[[\d, ]*\]",
    re.IGNORECASE,
)
# A TypeError is about shapes only if it says how they disagree: JAX raises it for bad shapes.
_DISAGREE = r"(?:incompatible|mismatch|broadcast|differ|same|equal|unchanged)"
_SHAPES_DISAGREE = re.compile(rf"{_DISAGREE}.*\bshapes?\b|\bshapes?\b.*{_DISAGREE}", re.IGNORECASE)

_OF_FRAMEWORKS = (
    *(ArithmeticError, AttributeError, IndexError, NotImplementedError),
    *(RuntimeError, TypeError, ValueError),
)
"""Exceptions of frameworks that are translated; others are raised unchanged."""
_AXES = ("axis", "axes", "dim", "axis1", "axis2", "source", "destination")
_ABOUT_SHAPES = frozenset({*_AXES, "shape", "dtype", "device", "subscripts"})


def lacks_memory(error: Exception) -> bool:
    """Return whether a backend could not allocate an array; each has its own exception."""
    if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
        return True
    return _MEMORY.search(str(error)) is not None


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


def _is_integer(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _are_integers(value: Any) -> bool:
    return _is_sequence(value) and all(map(_is_integer, value))


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") or _is_integer(value)


def _are_two_sequences(value: Any) -> bool:
    is_pair = _is_sequence(value) and len(value) == 2
    return is_pair and all(_is_integer(part) or _are_integers(part) for part in value)


_CHECKS = {
    "int": ("an integer", _is_integer),
    "float": ("a number", _is_number),
    "str": ("a string", lambda value: isinstance(value, str)),
    "Sequence[int]": ("integers", _are_integers),
    "tuple[int, ...]": ("integers", _are_integers),
    "bool | int | float | complex": (
        "a number",
        lambda value: hasattr(value, "__complex__") or _is_number(value),
    ),
    "int | tuple[Sequence[int], Sequence[int]]": (
        "an integer or two sequences of integers",
        lambda value: _is_integer(value) or _are_two_sequences(value),
    ),
    "int | Sequence[int]": ("integers", lambda value: _is_integer(value) or _are_integers(value)),
}
"""Declared type -> (its description, check of a value). Other types are not checked."""
_ALIASES = {
    "Axis": "int | Sequence[int] | None",
    "Lengths": "int | Sequence[int]",
    "ShapeLike": "int | Sequence[int]",
    "Norm": "str",
}


def _bad_type(op: Op, arguments: dict[str, Any]) -> str | None:
    """Describe an argument that does not have its declared type; None if all have it."""
    parameters = op.signature.parameters
    for name, value in arguments.items():
        annotation = str(parameters[name].annotation)
        declared = _ALIASES.get(annotation, annotation)
        text, check = _CHECKS.get(declared.removesuffix(" | None"), ("", None))
        if value is None and declared.endswith("None"):
            continue
        if check is not None and not check(value):
            return f"{name}={value!r} must be {text}"
    return None


def _bad_axis(arguments: dict[str, Any]) -> str | None:
    """Describe an invalid axis argument; None if all are valid."""
    tensor = next(iter(arguments.values()), None)
    if isinstance(tensor, (list, tuple)) and tensor:
        tensor = tensor[0]
    if not isinstance(tensor, EmberTensor):
        values = arguments.values()
        tensor = next((value for value in values if isinstance(value, EmberTensor)), None)
    if tensor is None:
        return None
    for name in _AXES:
        given = arguments.get(name)
        given = given if isinstance(given, (list, tuple)) else [given]
        for axis in given:
            if isinstance(axis, int) and not -tensor.ndim <= axis < tensor.ndim:
                return f"{name}={axis} is out of range for the shape {tensor.shape}"
        axes = [axis % tensor.ndim for axis in given if isinstance(axis, int) and tensor.ndim]
        if len(set(axes)) < len(axes):
            return f"{name}={tuple(given)} repeats an axis"
    return None


def _has_settings(op: Op, arguments: dict[str, Any]) -> bool:
    """Return whether the call sets a parameter other than tensors, flags and shapes."""
    names = set(arguments) - set(op.names[: len(op.roles)]) - _ABOUT_SHAPES
    return any(type(arguments[name]) is not bool for name in names)


def _takes_indices(op: Op) -> bool:
    return "index" in op.roles or not {"key", "indices", "multi_index"}.isdisjoint(op.names)


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

    Its type follows from the call, which is the same on every backend: frameworks raise different
    types for the same mistake.

    Args:
        op: The op that was called.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        error: Exception that the backend raised.
    """
    if isinstance(error, (EmberError, OverflowError)):
        return error
    call = call_text(op, args, kwargs)
    text = str(error).strip().split("\n")[0]
    if lacks_memory(error):
        return error if "OutOfMemory" in type(error).__name__ else MemoryError(f"{call}: {text}")
    try:
        arguments = dict(op.signature.bind(*args, **kwargs).arguments)
    except TypeError as wrong:
        return ArgumentTypeError(f"{call}: {wrong}")
    bad_type, bad_axis = _bad_type(op, arguments), _bad_axis(arguments)
    if bad_type is not None:
        return ArgumentTypeError(f"{call}: {bad_type}")
    if bad_axis is not None:
        return AxisError(f"{call}: {bad_axis}")
    if op.kind == "binary" and not op.rule.contraction and _do_not_broadcast(args):
        return ShapeError(f"{call}: the shapes do not broadcast")
    if type(error).__name__.endswith("LinAlgError"):
        return LinAlgError(f"{call}: {text}")
    if isinstance(error, NotImplementedError) and not _DTYPE.search(text):
        return UnsupportedOpError(f"{call}: {text}")
    if isinstance(error, IndexError) and _takes_indices(op):
        return IndexOutOfRangeError(f"{call}: {text}")
    if isinstance(error, TypeError) and not _SHAPES_DISAGREE.search(text):
        return ArgumentTypeError(f"{call}: {text}")
    if isinstance(error, _OF_FRAMEWORKS):
        if _DTYPE.search(text):
            return UnsupportedDTypeError(f"{call}: {text}")
        kind = ArgumentError if _has_settings(op, arguments) else ShapeError
        return kind(f"{call}: {text}")
    return error
