"""Losses between distributions."""

from __future__ import annotations

import math
from typing import Literal

from ember_ml import ops
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import Positive
from ember_ml.ops.nn.losses import reduce as reduced
from ember_ml.registry import register
from ember_ml.training.losses.base import REDUCTIONS, Loss, Reduction, pair, weighted


def kl_div(
    prediction: TensorLike,
    target: TensorLike,
    *,
    log_target: bool = False,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return the Kullback-Leibler divergence target (log(target) - prediction).

    Args:
        prediction: Log-probabilities.
        target: Probabilities, or log-probabilities if `log_target`.
        log_target: Whether the target is log-probabilities too.
        reduction: "mean" over all elements, "batchmean" (the sum divided by the batch size), "sum"
            or "none".
        sample_weight: Factor on the loss of each element, or a boolean mask.
    """
    x, y = pair("kl_div", prediction, target)

    def loss(how: str) -> Tensor:
        return ops.kl_div(x, y, log_target, how)

    allowed = (*REDUCTIONS, "batchmean")
    return weighted("kl_div", loss, reduction, sample_weight, allowed=allowed)


def poisson(
    prediction: TensorLike,
    target: TensorLike,
    *,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return rate - target log(rate): the negative log-likelihood of counts, up to log(target!).

    Args:
        prediction: Logarithm of the rate, or the rate.
        target: Counts.
        log_input: Whether the predictions are logarithms of the rate.
        full: Whether to add Stirling's approximation of log(target!) for targets above 1.
        eps: Added to the rate inside the logarithm, against log(0).
        reduction: "mean", "sum" or "none" (the loss of each element).
        sample_weight: Factor on the loss of each element, or a boolean mask.
    """
    x, y = pair("poisson", prediction, target)

    def loss(how: str) -> Tensor:
        losses = ops.exp(x) - y * x if log_input else x - y * ops.log(x + eps)
        return reduced("poisson", losses + _stirling(y) if full else losses, how)

    return weighted("poisson", loss, reduction, sample_weight)


def _stirling(count: Tensor) -> Tensor:
    some = ops.maximum(count, 1.0)
    value = some * ops.log(some) - some + 0.5 * ops.log(2.0 * math.pi * some)
    return ops.where(count > 1, value, 0.0)


@register("losses/kl_div", aliases=["kl_divergence"])
class KLDiv(Loss):
    """Kullback-Leibler divergence: target (log(target) - prediction) of log-probabilities.

    Args:
        log_target: Whether the target is log-probabilities too.
        reduction: "mean" over all elements, "batchmean" (the sum divided by the batch size), "sum"
            or "none".
    """

    function = staticmethod(kl_div)

    def __init__(
        self,
        log_target: bool = False,
        reduction: Literal["mean", "batchmean", "sum", "none"] = "mean",
    ) -> None:
        super().__init__()
        self.options |= {"log_target": log_target, "reduction": reduction}


@register("losses/poisson")
class Poisson(Loss):
    """Negative log-likelihood of counts under a Poisson distribution: rate - target log(rate).

    Args:
        log_input: Whether the predictions are logarithms of the rate.
        full: Whether to add Stirling's approximation of log(target!) for targets above 1.
        eps: Added to the rate inside the logarithm, against log(0).
        reduction: "mean", "sum" or "none" (the loss of each element).
    """

    function = staticmethod(poisson)

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        eps: Positive = 1e-8,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.options |= {"log_input": log_input, "full": full, "eps": eps}
