"""Losses of binary classification."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import NonNegative, Real
from ember_ml.ops.nn.losses import reduce as reduced
from ember_ml.registry import register
from ember_ml.training.losses.base import Loss, Reduction, pair, weighted


def binary_cross_entropy(
    prediction: TensorLike,
    target: TensorLike,
    *,
    from_logits: bool = True,
    positive_weight: float = 1.0,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return -(target log(p) + (1 - target) log(1 - p)) where p = sigmoid(prediction).

    Args:
        prediction: Logits, or probabilities.
        target: Probabilities of the positive class, from 0 to 1.
        from_logits: Whether the predictions are logits rather than probabilities.
        positive_weight: Factor on the loss of positive targets.
        reduction: "mean", "sum" or "none" (the loss of each element).
        sample_weight: Factor on the loss of each element, or a boolean mask.
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
    """Return max(0, margin - prediction target) for targets of -1 and 1.

    Args:
        prediction: Scores.
        target: -1 or 1.
        margin: Score from which the loss is 0.
        reduction: "mean", "sum" or "none" (the loss of each element).
        sample_weight: Factor on the loss of each element, or a boolean mask.
    """
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
    """Return max(0, margin - prediction target)^2 for targets of -1 and 1.

    Args:
        prediction: Scores.
        target: -1 or 1.
        margin: Score from which the loss is 0.
        reduction: "mean", "sum" or "none" (the loss of each element).
        sample_weight: Factor on the loss of each element, or a boolean mask.
    """
    x, y = pair("squared_hinge", prediction, target)

    def loss(how: str) -> Tensor:
        return reduced("squared_hinge", ops.square(ops.hinge_loss(x, y, margin, "none")), how)

    return weighted("squared_hinge", loss, reduction, sample_weight)


@register("losses/binary_cross_entropy", aliases=["bce"])
class BinaryCrossEntropy(Loss):
    """Binary cross-entropy: -(target log(p) + (1 - target) log(1 - p)), p = sigmoid(prediction).

    Args:
        from_logits: Whether the predictions are logits rather than probabilities.
        positive_weight: Factor on the loss of positive targets.
        reduction: "mean", "sum" or "none" (the loss of each element).

    Example:
        >>> loss = ember_ml.training.losses.BinaryCrossEntropy()
        >>> round(loss([0.0], [1.0]).item(), 4)
        0.6931
    """

    function = staticmethod(binary_cross_entropy)

    def __init__(
        self,
        from_logits: bool = True,
        positive_weight: NonNegative = 1.0,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.options |= {"from_logits": from_logits, "positive_weight": positive_weight}


@register("losses/hinge")
class Hinge(Loss):
    """Hinge loss: max(0, margin - prediction target) for targets of -1 and 1.

    Args:
        margin: Score from which the loss is 0.
        reduction: "mean", "sum" or "none" (the loss of each element).
    """

    function = staticmethod(hinge)

    def __init__(self, margin: Real = 1.0, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.options["margin"] = margin


@register("losses/squared_hinge")
class SquaredHinge(Loss):
    """Squared hinge loss: max(0, margin - prediction target)^2 for targets of -1 and 1.

    Args:
        margin: Score from which the loss is 0.
        reduction: "mean", "sum" or "none" (the loss of each element).
    """

    function = staticmethod(squared_hinge)

    def __init__(self, margin: Real = 1.0, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.options["margin"] = margin
