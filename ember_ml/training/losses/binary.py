"""Losses of a score against one of two sides."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs import losses as configs
from ember_ml.ops.nn.losses import reduce as reduced
from ember_ml.registry import register
from ember_ml.training.losses.base import Loss
from ember_ml.training.losses.reduction import pair, weighted


def binary_cross_entropy(
    prediction: TensorLike,
    target: TensorLike,
    *,
    from_logits: bool = True,
    positive_weight: float = 1.0,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """-(target log(p) + (1 - target) log(1 - p)) with p = sigmoid(prediction).

    Args:
        prediction: logits, or probabilities.
        target: from 0 to 1.
        from_logits: whether the predictions are logits; if not, they are p itself.
        positive_weight: a factor of the first term.
        reduction: "mean", "sum" or "none".
        sample_weight: a factor of each loss, or booleans.
    """
    x, y = pair("binary_cross_entropy", prediction, target)

    def loss(how: str) -> Tensor:
        if from_logits:
            factor = None if positive_weight == 1.0 else ops.full_like(x, positive_weight)
            return ops.binary_cross_entropy_with_logits(x, y, None, factor, how)
        factor = None if positive_weight == 1.0 else 1.0 + (positive_weight - 1.0) * y
        return ops.binary_cross_entropy(x, y, factor, how)

    return weighted("binary_cross_entropy", loss, reduction, sample_weight)


def hinge(
    prediction: TensorLike,
    target: TensorLike,
    *,
    margin: float = 1.0,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """max(0, margin - prediction target) for targets of -1 and 1."""
    x, y = pair("hinge", prediction, target)
    return weighted(
        "hinge", lambda how: ops.hinge_loss(x, y, margin, how), reduction, sample_weight
    )


def squared_hinge(
    prediction: TensorLike,
    target: TensorLike,
    *,
    margin: float = 1.0,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """max(0, margin - prediction target)^2 for targets of -1 and 1."""
    x, y = pair("squared_hinge", prediction, target)

    def loss(how: str) -> Tensor:
        return reduced("squared_hinge", ops.square(ops.hinge_loss(x, y, margin, "none")), how)

    return weighted("squared_hinge", loss, reduction, sample_weight)


@register("losses/binary_cross_entropy", config=configs.BinaryCrossEntropyConfig, aliases=["bce"])
class BinaryCrossEntropy(Loss):
    """-(target log(p) + (1 - target) log(1 - p)) with p = sigmoid(prediction), without overflow.

    Args:
        from_logits: whether the predictions are logits; if not, they are p itself.
        positive_weight: a factor of the first term.
        reduction: "mean", "sum" or "none".

    Example:
        >>> loss = ember_ml.training.losses.BinaryCrossEntropy()
        >>> round(loss([0.0], [1.0]).item(), 4)
        0.6931
    """

    function = staticmethod(binary_cross_entropy)

    def __init__(
        self, from_logits: bool = True, positive_weight: float = 1.0, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.options |= {"from_logits": from_logits, "positive_weight": positive_weight}


@register("losses/hinge", config=configs.HingeConfig)
class Hinge(Loss):
    """max(0, margin - prediction target) for targets of -1 and 1."""

    function = staticmethod(hinge)

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.options["margin"] = margin


@register("losses/squared_hinge", config=configs.SquaredHingeConfig)
class SquaredHinge(Loss):
    """max(0, margin - prediction target)^2 for targets of -1 and 1."""

    function = staticmethod(squared_hinge)

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.options["margin"] = margin
