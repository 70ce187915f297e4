"""Dispatch of ops that make tensors out of plain arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ember_ml._core import deferred, recording, runtime
from ember_ml._core.convert import as_dtype
from ember_ml._core.dtype import EmberDType
from ember_ml._core.errors import UnsupportedOpError
from ember_ml._core.tensor import EmberTensor, wrap
from ember_ml.backend import devices

if TYPE_CHECKING:
    from ember_ml._core.op import Op


def build_creation(op: Op, default: Callable[..., EmberDType]) -> Callable[..., Any]:
    """A dispatcher to the active backend, with the native dtype and the device filled in."""

    def create(
        *args: Any, dtype: Any = None, device: str | None = None, **kwargs: Any
    ) -> EmberTensor:
        backend = runtime.active()
        try:
            native = op.natives[backend]
        except KeyError:
            raise UnsupportedOpError(f"the {backend} backend has no {op.key}") from None
        target = default(*args, **kwargs) if dtype is None else as_dtype(dtype)
        place = devices.resolve(backend, device)
        if recording.OPEN and (deferral := deferred.current()) is not None:
            deferral.reserve_created(op.name, args, kwargs)
        try:
            out = native(*args, dtype=runtime.native_dtype(backend, target), device=place, **kwargs)
        except Exception as error:
            from ember_ml._core import explain

            raise explain.explain(op, args, kwargs, error) from error
        return wrap(out, backend)

    return create
