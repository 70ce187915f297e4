"""Half precision in composite ops: computed in float32, rounded once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ember_ml import ops
from ember_ml._core.dtype import EmberDType, float32
from ember_ml._core.tensor import EmberTensor

__all__: list[str] = []

F = TypeVar("F", bound=Callable[..., Any])


def _cast(value: Any, dtype: EmberDType) -> Any:
    return ops.astype(value, dtype) if isinstance(value, EmberTensor) else value


def in_float32(body: F) -> F:
    """Let a composite body run in float32 where its operands are float16, bfloat16 or no floats."""
    parameters = inspect.signature(body).parameters.values()
    is_operand = [str(parameter.annotation).startswith("TensorLike") for parameter in parameters]

    @functools.wraps(body)
    def wide(*args: Any, **kwargs: Any) -> Any:
        dtype = args[0].dtype
        if dtype.is_complex or (dtype.is_floating and dtype.bits != 16):
            return body(*args, **kwargs)
        operands = zip(args, is_operand, strict=False)
        out = body(*[_cast(x, float32) if lift else x for x, lift in operands], **kwargs)
        if not dtype.is_floating:
            return out
        return tuple(_cast(x, dtype) for x in out) if type(out) is tuple else _cast(out, dtype)

    return wide  # type: ignore[return-value]
