"""What all losses share: the base class, sample weights, reduction and its denominators."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import ClassVar, Literal, TypeAlias, cast

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import float32, int64
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.configs import Config
from ember_ml.configs.fields import ComponentLike
from ember_ml.ops.nn.losses import same_shape
from ember_ml.registry import build

LossLike: TypeAlias = Callable[..., Tensor]
"""(prediction, target) -> loss; with a keyword `sample_weight` if batches have masks."""
Reduction: TypeAlias = Literal["mean", "sum", "none"]
REDUCTIONS = ("mean", "sum", "none")


class Loss:
    """Base class of losses: `loss(prediction, target)` returns a scalar to minimize.

    Losses of half-precision predictions are computed and returned in float32.

    Subclasses set `function`, and put its keyword arguments into `options`.

    Args:
        reduction: "mean", "sum", or "none" for the loss of each element.
    """

    function: ClassVar[Callable[..., Tensor]]
    config: Config | None = None

    def __init__(self, reduction: Reduction = "mean") -> None:
        self.options: dict[str, object] = {"reduction": reduction}

    def __call__(
        self, prediction: TensorLike, target: TensorLike, sample_weight: TensorLike | None = None
    ) -> Tensor:
        """Return the loss.

        Args:
            prediction: Output of the model.
            target: Expected output.
            sample_weight: Factor on the loss of each element, or a boolean mask, of the shape of
                the losses or of their leading axes. The mean is a weighted mean; 0 if all weights
                are 0.
        """
        return self.function(prediction, target, sample_weight=sample_weight, **self.options)

    def calling_model(self) -> AbstractContextManager[None]:
        """Return the context in which a trainer calls the model; by default, it changes nothing."""
        return contextlib.nullcontext()

    def read_targets(self, target: Tensor) -> Tensor | None:
        """Return a mask of the targets that the loss reads; None if it may read all of them.

        A loss with the option `ignore_index` reads the other targets, unless each target has a loss
        of its own. Subclasses with their own `__call__` may read all targets.

        Args:
            target: Expected output.
        """
        options = self.options
        if "ignore_index" not in options or options["reduction"] == "none":
            return None
        if options.get("axis", -1) != -1 or type(self).__call__ is not Loss.__call__:
            return None
        whole = target.dtype.is_integer
        return (ops.astype(target, int64) if whole else target) != options["ignore_index"]

    def __repr__(self) -> str:
        fields = type(self.config).model_fields if self.config is not None else {}
        given = {name: getattr(self.config, name) for name in fields}
        inside = [f"{name}={x!r}" for name, x in given.items() if x != fields[name].default]
        return f"{type(self).__name__}({', '.join(inside)})"


def get(loss: ComponentLike) -> LossLike:
    """Return the loss described by a name, a config, {"type": ...} or a callable.

    Args:
        loss: Description of the loss; a callable is returned as it is.

    Example:
        >>> ember_ml.training.losses.get({"type": "huber", "delta": 2.0})
        Huber(delta=2.0)
    """
    return cast(LossLike, build("losses", loss))


def calling_model(loss: object) -> AbstractContextManager[None]:
    """Return the context in which the model is called for a loss.

    Args:
        loss: The loss; functions have no context of their own.
    """
    own: Callable[[], AbstractContextManager[None]] | None = getattr(loss, "calling_model", None)
    return contextlib.nullcontext() if own is None else own()


def wide(prediction: TensorLike) -> Tensor:
    """Return a tensor, converted to float32 if it is half precision or of integers."""
    x = prediction if isinstance(prediction, EmberTensor) else convert_to_tensor(prediction)
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


class _Thread(threading.local):
    """The innermost open collection of a thread."""

    def __init__(self) -> None:  # not a class attribute: torch's compiler guards on the dict
        self.weights: list[Tensor | float | None] | None = None


_thread = _Thread()


def report_weight(weight: Callable[[], Tensor | float] | None) -> None:
    """Add the denominator of a mean to the innermost `reported_weights` block.

    Args:
        weight: Function that returns the sum of the weights of all elements, called only inside
            a block; None for a sum, which is not divided.
    """
    if _thread.weights is not None:
        _thread.weights.append(None if weight is None else weight())


@contextlib.contextmanager
def reported_weights() -> Iterator[list[Tensor | float | None]]:
    """Collect the denominators of the losses that are computed within the block.

    Example:
        >>> from ember_ml.training import losses
        >>> from ember_ml.training.losses.base import reported_weights
        >>> with reported_weights() as weights:
        ...     loss = losses.get("mse")(ops.zeros((4, 2)), ops.ones((4, 2)))
        >>> weights
        [8.0]
    """
    outer = _thread.weights
    weights: list[Tensor | float | None] = []
    _thread.weights = weights
    try:
        yield weights
    finally:
        _thread.weights = outer
