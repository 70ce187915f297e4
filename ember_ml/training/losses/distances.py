"""Losses of regression."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import NonNegative, Positive
from ember_ml.ops.nn.losses import reduce as reduced
from ember_ml.registry import register
from ember_ml.training.losses.base import Loss, Reduction, pair, weighted

_FAR = 20.0  # where cosh(x) is exp(x) / 2 to the last bit, and its square is far from overflow


def mse(
    prediction: TensorLike,
    target: TensorLike,
    *,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return (prediction - target)^2.

    Args:
        prediction: Predicted values.
        target: Expected values.
        reduction: "mean", "sum" or "none" (the loss of each element).
        sample_weight: Factor on the loss of each element, or a boolean mask.
    """
    x, y = pair("mse", prediction, target)
    return weighted("mse", lambda how: ops.mse_loss(x, y, how), reduction, sample_weight)


def mae(
    prediction: TensorLike,
    target: TensorLike,
    *,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return abs(prediction - target).

    Args:
        prediction: Predicted values.
        target: Expected values.
        reduction: "mean", "sum" or "none" (the loss of each element).
        sample_weight: Factor on the loss of each element, or a boolean mask.
    """
    x, y = pair("mae", prediction, target)
    return weighted("mae", lambda how: ops.l1_loss(x, y, how), reduction, sample_weight)


def huber(
    prediction: TensorLike,
    target: TensorLike,
    *,
    delta: float = 1.0,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return d^2 / 2 of a distance d up to delta, and delta (d - delta / 2) above.

    Args:
        prediction: Predicted values.
        target: Expected values.
        delta: Distance from which the loss is linear.
        reduction: "mean", "sum" or "none" (the loss of each element).
        sample_weight: Factor on the loss of each element, or a boolean mask.
    """
    x, y = pair("huber", prediction, target)
    return weighted("huber", lambda how: ops.huber_loss(x, y, delta, how), reduction, sample_weight)


def smooth_l1(
    prediction: TensorLike,
    target: TensorLike,
    *,
    beta: float = 1.0,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return d^2 / (2 beta) of a distance d up to beta, and d - beta / 2 above.

    Args:
        prediction: Predicted values.
        target: Expected values.
        beta: Distance from which the loss is linear.
        reduction: "mean", "sum" or "none" (the loss of each element).
        sample_weight: Factor on the loss of each element, or a boolean mask.
    """
    x, y = pair("smooth_l1", prediction, target)
    return weighted(
        "smooth_l1", lambda how: ops.smooth_l1_loss(x, y, beta, how), reduction, sample_weight
    )


def log_cosh(
    prediction: TensorLike,
    target: TensorLike,
    *,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return log(cosh(prediction - target)), exact for small and large distances.

    Args:
        prediction: Predicted values.
        target: Expected values.
        reduction: "mean", "sum" or "none" (the loss of each element).
        sample_weight: Factor on the loss of each element, or a boolean mask.
    """
    x, y = pair("log_cosh", prediction, target)

    def loss(how: str) -> Tensor:
        distance = ops.abs(x - y)
        near = ops.minimum(distance, _FAR)
        curve = ops.log1p(2.0 * ops.square(ops.sinh(near * 0.5)))
        return reduced("log_cosh", curve + (distance - near), how)

    return weighted("log_cosh", loss, reduction, sample_weight)


def cosine(
    prediction: TensorLike,
    target: TensorLike,
    *,
    axis: int = -1,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return 1 - the cosine similarity of prediction and target along an axis.

    Args:
        prediction: Predicted values.
        target: Expected values.
        axis: Axis of the vectors.
        reduction: "mean", "sum" or "none" (the loss of each element).
        sample_weight: Factor on the loss of each element, or a boolean mask.
    """
    x, y = pair("cosine", prediction, target)

    def loss(how: str) -> Tensor:
        return reduced("cosine", 1.0 - ops.cosine_similarity(x, y, axis), how)

    return weighted("cosine", loss, reduction, sample_weight)


@register("losses/mse", aliases=["mean_squared_error", "l2"])
class MSE(Loss):
    """Squared error: (prediction - target)^2.

    Args:
        reduction: "mean", "sum" or "none" (the loss of each element).

    Example:
        >>> ember_ml.training.losses.MSE()([1.0, 2.0], [1.0, 4.0]).item()
        2.0
    """

    function = staticmethod(mse)


@register("losses/mae", aliases=["mean_absolute_error", "l1"])
class MAE(Loss):
    """Absolute error: abs(prediction - target).

    Args:
        reduction: "mean", "sum" or "none" (the loss of each element).
    """

    function = staticmethod(mae)


@register("losses/huber")
class Huber(Loss):
    """Huber loss: d^2 / 2 of a distance d up to delta, and delta (d - delta / 2) above.

    Args:
        delta: Distance from which the loss is linear.
        reduction: "mean", "sum" or "none" (the loss of each element).

    Reference: Huber, "Robust Estimation of a Location Parameter", 1964.
    """

    function = staticmethod(huber)

    def __init__(self, delta: Positive = 1.0, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.options["delta"] = delta


@register("losses/smooth_l1")
class SmoothL1(Loss):
    """Smooth L1 loss: d^2 / (2 beta) of a distance d up to beta, and d - beta / 2 above.

    Args:
        beta: Distance from which the loss is linear.
        reduction: "mean", "sum" or "none" (the loss of each element).
    """

    function = staticmethod(smooth_l1)

    def __init__(self, beta: NonNegative = 1.0, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.options["beta"] = beta


@register("losses/log_cosh")
class LogCosh(Loss):
    """Log-cosh loss: about d^2 / 2 for small distances d, and d - log(2) for large ones.

    Args:
        reduction: "mean", "sum" or "none" (the loss of each element).
    """

    function = staticmethod(log_cosh)


@register("losses/cosine", aliases=["cosine_similarity"])
class Cosine(Loss):
    """Cosine distance: 1 - the cosine similarity of prediction and target.

    Args:
        axis: Axis of the vectors.
        reduction: "mean", "sum" or "none" (the loss of each element).
    """

    function = staticmethod(cosine)

    def __init__(self, axis: int = -1, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.options["axis"] = axis
