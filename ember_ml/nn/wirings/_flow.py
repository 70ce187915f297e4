"""Operations on the tensors between the blocks of a wiring."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml import ops
from ember_ml._core import runtime, tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.nn.sequence_module import State
from ember_ml.nn.wirings.base import WiringError


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


def delayed(x: Tensor, mask: Tensor | None) -> Tensor:
    """Return a sequence shifted by one position, with zeros at the start and after padding."""
    if mask is not None:
        x = hidden(x, mask[:, :, None])
    return ops.concat([ops.zeros_like(x[:, :1]), x[:, :-1]], axis=1)


def hidden(x: Tensor, real: Tensor | None) -> Tensor:
    """Return a tensor with zeros at padding."""
    return x if real is None else ops.where(real, x, ops.zeros_like(x))


def held(name: str, real: Tensor | None, new: State, old: State) -> State:
    """Return the new state of a block, and the old one for examples at padding."""
    if real is None:
        return new

    def hold(after: Tensor, before: Tensor) -> Tensor:
        if after.shape != before.shape:
            raise WiringError(
                f"{name!r} is in a loop, and its state grows from {before.shape} to {after.shape}; "
                "a mask is not supported then"
            )
        own = ops.reshape(real, (-1, *[1] * (after.ndim - 1)))
        return ops.where(own, after, before)

    return tree.map_leaves(hold, new, old)


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
