"""From the losses of elements to one number."""

from __future__ import annotations

from collections.abc import Callable

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import float32
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops.nn.losses import same_shape

REDUCTIONS = ("mean", "sum", "none")


def wide(prediction: TensorLike) -> Tensor:
    """The tensor; in float32 if it holds integers, or halves, in which a sum soon overflows."""
    x = convert_to_tensor(prediction)
    is_wide = x.dtype.is_complex or (x.dtype.is_floating and x.dtype.bits > 16)
    return x if is_wide else ops.astype(x, float32)


def pair(name: str, prediction: TensorLike, target: TensorLike) -> tuple[Tensor, Tensor]:
    """Prediction and target in one shape, the target with the dtype and backend of the other."""
    x = wide(prediction)
    y = convert_to_tensor(target, dtype=x.dtype, backend=x.backend)
    same_shape(name, x, y)
    return x, y


def weighted(
    name: str,
    loss: Callable[[str], Tensor],
    reduction: str,
    sample_weight: TensorLike | None = None,
    *,
    allowed: tuple[str, ...] = REDUCTIONS,
    share: Callable[[], Tensor] | None = None,
) -> Tensor:
    """A loss reduced, with a weight of each element if there are weights.

    Args:
        name: of the loss, for errors.
        loss: the loss by a reduction.
        reduction: one of `allowed`.
        sample_weight: of the shape of the unreduced loss, or of its leading axes.
        allowed: the reductions that the loss has.
        share: what each element counts in a mean, times its weight; 1 if not given.
    """
    if reduction not in allowed:
        names = ", ".join(repr(each) for each in allowed)
        raise ArgumentError(f"{name}: reduction must be one of {names}, not {reduction!r}")
    if sample_weight is None:
        return loss(reduction)
    losses = loss("none")
    weight = spread(name, sample_weight, losses)
    losses = ops.where(weight != 0, losses * weight, 0.0)
    if share is not None and reduction == "mean":
        weight = weight * share()
    return reduce(losses, weight, reduction)


def spread(name: str, sample_weight: TensorLike, losses: Tensor) -> Tensor:
    """The weights as a tensor of the losses' shape; those of leading axes hold for the others."""
    weight = convert_to_tensor(sample_weight, dtype=losses.dtype, backend=losses.backend)
    if weight.shape != losses.shape[: weight.ndim]:
        raise ShapeError(
            f"{name}: sample_weight of the shape {weight.shape} for losses of {losses.shape}; "
            "it takes their shape or that of their leading axes"
        )
    weight = ops.reshape(weight, weight.shape + (1,) * (losses.ndim - weight.ndim))
    return ops.broadcast_to(weight, losses.shape)


def reduce(losses: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Losses, already times their weights, reduced; a mean over no weight at all is 0."""
    if reduction == "none":
        return losses
    total = ops.sum(losses)
    if reduction == "sum":
        return total
    if reduction == "batchmean":
        return total / (losses.shape[0] if losses.ndim else 1)
    weights = ops.sum(weight)
    return total / (weights + ops.astype(weights == 0, weights.dtype))
