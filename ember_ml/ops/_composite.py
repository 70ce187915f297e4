"""Helpers of composite ops: precision, roots and shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import DEFAULT_FLOAT, EmberDType, float32
from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor

__all__: list[str] = []

F = TypeVar("F", bound=Callable[..., Any])


def is_half(dtype: EmberDType) -> bool:
    """Return whether a dtype is float16 or bfloat16."""
    return dtype.kind == "float" and dtype.bits == 16


def in_float32(body: F) -> F:
    """Run a composite body in float32 if its first operand is float16 or bfloat16."""

    @functools.wraps(body)
    def wide(*args: Any, **kwargs: Any) -> Any:
        dtype = args[0].dtype
        if not is_half(dtype):
            return body(*args, **kwargs)
        out = body(*[_cast(x, dtype, float32) for x in args], **kwargs)
        if type(out) is tuple:
            return tuple(_cast(part, float32, dtype) for part in out)
        return _cast(out, float32, dtype)

    return wide


def _cast(value: object, dtype: EmberDType, target: EmberDType) -> object:
    if isinstance(value, EmberTensor) and value.dtype is dtype:
        return ops.astype(value, target)
    return value


def widened(x: Tensor) -> Tensor:
    """Return the tensor with integers and half precision as float32."""
    is_wide = x.dtype.kind in ("float", "complex") and x.dtype.bits > 16
    return x if is_wide else ops.astype(x, float32)


def narrowed(out: Tensor, x: Tensor) -> Tensor:
    """Return a result in the dtype of x if that is half precision."""
    return ops.astype(out, x.dtype) if is_half(x.dtype) else out


def default_rtol(x: Tensor) -> Tensor:
    """Return the relative threshold for singular values: max(m, n) * eps of x's dtype."""
    dtype = x.dtype if x.dtype.kind in ("float", "complex") else DEFAULT_FLOAT
    tolerance = max(x.shape[-2:]) * ops.finfo(dtype).eps
    return convert_to_tensor(tolerance, float32, backend=x.backend)


def root(x: Tensor, p: float = 2.0) -> Tensor:
    """Return the p-th root of nonnegative numbers; at zero the gradient is zero."""
    above = ops.greater(x, 0)
    safe = ops.where(above, x, 1)
    return ops.where(
        above, ops.sqrt(safe) if p == 2 else ops.pow(safe, 1.0 / p), ops.stop_gradient(x)
    )


def check_real(op: str, **numbers: object) -> None:
    """Raise if an argument is None or complex instead of a real number."""
    for name, value in numbers.items():
        if value is None or isinstance(value, complex):
            raise ArgumentTypeError(f"{op}: {name}={value!r} must be a real number")


def along(op: str, name: str, vector: Tensor, x: Tensor, axis: int) -> Tensor:
    """Return a vector reshaped to broadcast along an axis of x."""
    length = x.shape[axis]
    if vector.shape != (length,):
        raise ShapeError(
            f"{op}: {name} has shape {vector.shape}; expected ({length},), "
            f"the length of axis {axis} of shape {x.shape}"
        )
    return ops.reshape(vector, (length, *(1,) * (x.ndim - 1 - axis)))
