"""Losses that measure how far a prediction is from its target."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs import losses as configs
from ember_ml.ops.nn.losses import reduce as reduced
from ember_ml.registry import register
from ember_ml.training.losses.base import Loss
from ember_ml.training.losses.reduction import pair, weighted

_FAR = 20.0  # where cosh(x) is exp(x) / 2 to the last bit, and its square is far from overflow


def mse(
    prediction: TensorLike,
    target: TensorLike,
    *,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """(prediction - target)^2."""
    x, y = pair("mse", prediction, target)
    return weighted("mse", lambda how: ops.mse_loss(x, y, how), reduction, sample_weight)


def mae(
    prediction: TensorLike,
    target: TensorLike,
    *,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """abs(prediction - target)."""
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
    """d^2 / 2 of the distance d up to delta, from there on delta (d - delta / 2)."""
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
    """d^2 / (2 beta) of the distance d up to beta, from there on d - beta / 2."""
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
    """log(cosh(prediction - target)), exact for small and large distances."""
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
    """1 - the cosine of the angle between prediction and target along an axis."""
    x, y = pair("cosine", prediction, target)

    def loss(how: str) -> Tensor:
        return reduced("cosine", 1.0 - ops.cosine_similarity(x, y, axis), how)

    return weighted("cosine", loss, reduction, sample_weight)


@register("losses/mse", config=configs.MSEConfig, aliases=["mean_squared_error", "l2"])
class MSE(Loss):
    """The squared distance (prediction - target)^2.

    Example:
        >>> ember_ml.training.losses.MSE()([1.0, 2.0], [1.0, 4.0]).item()
        2.0
    """

    function = staticmethod(mse)


@register("losses/mae", config=configs.MAEConfig, aliases=["mean_absolute_error", "l1"])
class MAE(Loss):
    """The distance abs(prediction - target)."""

    function = staticmethod(mae)


@register("losses/huber", config=configs.HuberConfig)
class Huber(Loss):
    """d^2 / 2 of the distance d up to delta, from there on delta (d - delta / 2).

    Reference: Huber, "Robust Estimation of a Location Parameter", 1964.
    """

    function = staticmethod(huber)

    def __init__(self, delta: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.options["delta"] = delta


@register("losses/smooth_l1", config=configs.SmoothL1Config)
class SmoothL1(Loss):
    """d^2 / (2 beta) of the distance d up to beta, from there on d - beta / 2."""

    function = staticmethod(smooth_l1)

    def __init__(self, beta: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.options["beta"] = beta


@register("losses/log_cosh", config=configs.LogCoshConfig)
class LogCosh(Loss):
    """log(cosh(prediction - target)): d^2 / 2 near the target, d - log(2) far from it."""

    function = staticmethod(log_cosh)


@register("losses/cosine", config=configs.CosineConfig, aliases=["cosine_similarity"])
class Cosine(Loss):
    """1 - the cosine of the angle between prediction and target.

    Args:
        axis: the axis of the vectors.
        reduction: "mean", "sum" or "none".
    """

    function = staticmethod(cosine)

    def __init__(self, axis: int = -1, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.options["axis"] = axis
