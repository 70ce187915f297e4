"""Operations on the tensors between the blocks of a wiring."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike


def merged(parts: Sequence[Tensor], rule: str, gate: Tensor | None) -> Tensor:
    """Return the input of a block that reads several outputs."""
    if len(parts) == 1:
        return parts[0]
    if rule == "concat":
        return ops.concat(list(parts), axis=-1)
    if gate is not None:
        weights = ops.sigmoid(gate)
        parts = [weights[at] * part for at, part in enumerate(parts)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def delayed(x: Tensor, mask: Tensor | None, before: Tensor | None = None) -> Tensor:
    """Return a sequence shifted by one position, with zeros after padding.

    Args:
        x: Sequence, (batch, time, ...).
        mask: Padding mask of shape (batch, time), False at padding.
        before: Value before the first position, (batch, ...). Default: zeros.
    """
    if mask is not None:
        x = hidden(x, mask[:, :, None] if x.ndim == 3 else mask)
    start = ops.zeros_like(x[:, :1]) if before is None else before[:, None]
    return ops.concat([start, x[:, :-1]], axis=1)


def last(x: Tensor, before: Tensor, mask: Tensor | None) -> Tensor:
    """Return the value at the last real position, (batch, ...); `before` if there is none."""
    values = ops.concat([before[:, None], x], axis=1)
    if mask is None:
        return values[:, -1]
    place = ops.sum(ops.astype(mask, "int64"), axis=1)
    place = ops.reshape(place, (-1, *[1] * (values.ndim - 1)))
    return ops.take_along_axis(values, place, axis=1)[:, 0]


def hidden(x: Tensor, real: Tensor | None) -> Tensor:
    """Return a tensor with zeros at padding."""
    return x if real is None else ops.where(real, x, ops.zeros_like(x))


def zeros(shape: tuple[int, ...], like: Tensor | None) -> Tensor:
    """Return zeros with the backend, the device and the floating-point dtype of a tensor."""
    dtype = like.dtype if like is not None and like.dtype.is_floating else None
    if like is None or like.backend != runtime.active():
        result = ops.zeros(shape, dtype=dtype)
        return result if like is None else result.to_backend(like.backend)
    return ops.zeros(shape, dtype=dtype, device=like.device)


def spans_of(timespans: TensorLike | None, x: Tensor) -> Sequence[TensorLike | None]:
    """Return the time before each position: numbers, or tensors of shape (batch or 1, 1)."""
    length = x.shape[1]
    if timespans is None or isinstance(timespans, (int, float)):
        return [timespans] * length
    dtype = x.dtype if x.dtype.is_floating else None
    spans = convert_to_tensor(timespans, dtype=dtype, backend=x.backend)
    if spans.ndim == 0:
        return [spans] * length
    if spans.shape not in (x.shape[:2], x.shape[1:2], (1, length)):
        raise ShapeError(
            f"timespans must have shape (time,) = {x.shape[1:2]} or (batch, time) = {x.shape[:2]}, "
            f"not {spans.shape}"
        )
    return ops.unstack((spans[None] if spans.ndim == 1 else spans)[:, :, None], 1)
