"""Half precision in composite ops: compute in float32, round once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ember_ml import ops
from ember_ml._core.dtype import EmberDType, float32
from ember_ml._core.tensor import EmberTensor

__all__: list[str] = []

F = TypeVar("F", bound=Callable[..., Any])


def _cast(value: Any, dtype: EmberDType, target: EmberDType) -> Any:
    if isinstance(value, EmberTensor) and value.dtype is dtype:
        return ops.astype(value, target)
    return value


def in_float32(body: F) -> F:
    """Run a composite body in float32 if its first operand is float16 or bfloat16."""

    @functools.wraps(body)
    def wide(*args: Any, **kwargs: Any) -> Any:
        dtype = args[0].dtype
        if not dtype.is_floating or dtype.bits != 16:
            return body(*args, **kwargs)
        out = body(*[_cast(x, dtype, float32) for x in args], **kwargs)
        if type(out) is tuple:
            return tuple(_cast(part, float32, dtype) for part in out)
        return _cast(out, float32, dtype)

    return wide
