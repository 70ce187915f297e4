"""Weighting and reduction of the losses of elements."""

from __future__ import annotations

from collections.abc import Callable

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import float32
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops.nn.losses import same_shape
from ember_ml.training.losses.weights import report_weight

REDUCTIONS = ("mean", "sum", "none")


def wide(prediction: TensorLike) -> Tensor:
    """Return a tensor, converted to float32 if it is half precision or of integers."""
    x = convert_to_tensor(prediction)
    is_wide = x.dtype.is_complex or (x.dtype.is_floating and x.dtype.bits > 16)
    return x if is_wide else ops.astype(x, float32)


def pair(name: str, prediction: TensorLike, target: TensorLike) -> tuple[Tensor, Tensor]:
    """Return prediction and target, which must have one shape, in one dtype and backend."""
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
    """Return a reduced loss, weighted if there are weights.

    Args:
        name: Name of the loss, for errors.
        loss: Function from a reduction to the loss.
        reduction: One of `allowed`.
        sample_weight: Weights of the shape of the unreduced loss, or of its leading axes.
        allowed: Reductions that the loss supports.
        share: Function that returns a further weight of each element in a mean. Default: 1.
    """
    if reduction not in allowed:
        names = ", ".join(repr(each) for each in allowed)
        raise ArgumentError(f"{name}: reduction must be one of {names}, not {reduction!r}")
    if sample_weight is None:
        _report(reduction, loss, share)
        return loss(reduction)
    losses = loss("none")
    weight = spread(name, sample_weight, losses)
    losses = ops.where(weight != 0, losses * weight, 0.0)
    if share is not None and reduction == "mean":
        weight = weight * share()
    if reduction == "mean":
        report_weight(lambda: ops.sum(weight))
    else:
        _report(reduction, lambda _: losses, None)
    return reduce(losses, weight, reduction)


def _report(
    reduction: str, loss: Callable[[str], Tensor], share: Callable[[], Tensor] | None
) -> None:
    """Report the denominator of an unweighted loss."""
    if reduction == "sum":
        report_weight(None)
    elif reduction == "batchmean":
        report_weight(lambda: float((*loss("none").shape, 1)[0]))
    elif reduction == "mean":
        report_weight(lambda: float(loss("none").size) if share is None else ops.sum(share()))


def spread(name: str, sample_weight: TensorLike, losses: Tensor) -> Tensor:
    """Return the weights broadcast from the leading axes to the shape of the losses."""
    weight = convert_to_tensor(sample_weight, dtype=losses.dtype, backend=losses.backend)
    if weight.shape != losses.shape[: weight.ndim]:
        raise ShapeError(
            f"{name}: sample_weight must have the shape of the losses, {losses.shape}, or of "
            f"their leading axes, not {weight.shape}"
        )
    weight = ops.reshape(weight, weight.shape + (1,) * (losses.ndim - weight.ndim))
    return ops.broadcast_to(weight, losses.shape)


def reduce(losses: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Return weighted losses reduced; a mean of weights that sum to 0 is 0."""
    if reduction == "none":
        return losses
    total = ops.sum(losses)
    if reduction == "sum":
        return total
    if reduction == "batchmean":
        return total / (losses.shape[0] if losses.ndim else 1)
    weights = ops.sum(weight)
    return total / (weights + ops.astype(weights == 0, weights.dtype))
