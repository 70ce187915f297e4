"""Losses of distributions."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs import losses as configs
from ember_ml.ops.nn.losses import reduce as reduced
from ember_ml.registry import register
from ember_ml.training.losses.base import Loss
from ember_ml.training.losses.reduction import REDUCTIONS, pair, weighted


def kl_div(
    prediction: TensorLike,
    target: TensorLike,
    *,
    log_target: bool = False,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """target (log(target) - prediction): the divergence of log-probabilities from probabilities.

    Args:
        prediction: log-probabilities.
        target: probabilities, or log-probabilities with `log_target`.
        log_target: whether the target is in logarithms too.
        reduction: "mean" over all elements, "batchmean" (the sum over the length of the first
            axis, which is the divergence of each example), "sum" or "none".
        sample_weight: a factor of each loss, or booleans.
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
    """rate - target log(rate): minus the log-likelihood of counts, up to log(target!).

    Args:
        prediction: the logarithm of the rate, or the rate.
        target: counts.
        log_input: whether the predictions are logarithms.
        full: whether to add Stirling's approximation of log(target!) for targets above 1.
        eps: keeps the logarithm of a rate from -inf.
        reduction: "mean", "sum" or "none".
        sample_weight: a factor of each loss, or booleans.
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


@register("losses/kl_div", config=configs.KLDivConfig, aliases=["kl_divergence"])
class KLDiv(Loss):
    """target (log(target) - prediction): the divergence of log-probabilities from probabilities.

    Args:
        log_target: whether the target is in logarithms too.
        reduction: "mean" over all elements, "batchmean" (the sum over the length of the first
            axis, which is the divergence of each example), "sum" or "none".
    """

    function = staticmethod(kl_div)

    def __init__(self, log_target: bool = False, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.options["log_target"] = log_target


@register("losses/poisson", config=configs.PoissonConfig)
class Poisson(Loss):
    """rate - target log(rate): minus the log-likelihood of counts.

    Args:
        log_input: whether the predictions are logarithms of the rate.
        full: whether to add Stirling's approximation of log(target!) for targets above 1.
        eps: keeps the logarithm of a rate from -inf.
        reduction: "mean", "sum" or "none".
    """

    function = staticmethod(poisson)

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        eps: float = 1e-8,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.options |= {"log_input": log_input, "full": full, "eps": eps}
