"""Conversion of a module's arguments: arrays of other frameworks to tensors of the module."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ember_ml._core.convert import (
    convert_floats,
    convert_to_tensor,
    first_element,
    native_backend,
)
from ember_ml._core.dtype import PYTHON_TYPES
from ember_ml._core.tensor import EmberTensor

if TYPE_CHECKING:
    from ember_ml.nn.module import Module
    from ember_ml.nn.parameter import Variable

_OTHERS = frozenset({*PYTHON_TYPES, str, tuple, dict, type(None)})
"""Types of arguments that are passed as they are, such as flags and states."""


def as_tensors(module: Module, values: Collection[Any]) -> tuple[Any, ...]:
    """Return arguments with a tensor for each array and each nested list of numbers.

    The tensors are on the module's backend and device, and have its dtype if they are
    floating-point. Arguments that are tensors are not changed: their dtypes follow the promotion
    rules of the ops.

    Args:
        module: The module that is called.
        values: The arguments.
    """
    arrays = list(map(_needs_conversion, values))
    if not any(arrays):
        return tuple(values)
    like = _first_variable(module)
    pairs = zip(values, arrays, strict=True)
    return tuple([_converted(value, like) if array else value for value, array in pairs])


def _needs_conversion(value: object) -> bool:
    if isinstance(value, EmberTensor) or type(value) in _OTHERS:
        return False
    if type(value) is list:
        return type(first_element(value)) in PYTHON_TYPES
    return native_backend(value) is not None


def _first_variable(module: Module) -> Variable | None:
    """Return the first floating-point variable of a module; one of another dtype if it has none."""
    from ember_ml.nn import _traversal

    other = None
    for _, inner in _traversal.named_modules(module):
        for _, variable in _traversal.parts(inner)[0]:
            if variable.dtype.kind == "float":
                return variable
            other = other or variable
    return other


def _converted(value: Any, like: Variable | None) -> EmberTensor:
    if like is None:
        return convert_to_tensor(value)
    if not like.dtype.is_floating:
        return convert_to_tensor(value, backend=like.backend)
    return convert_to_tensor(convert_floats(value, like.dtype, like.backend), device=like.device)
