"""LAMB."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ember_ml.configs.optimizers import LAMBConfig
from ember_ml.registry import register
from ember_ml.training.optimizer.adam import moments
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.rules import Arrays, Options, Rule, Shape, Slot, State


class LAMBRule(Rule):
    """p - rate (|p| / |u|) u, with u the step of AdamW."""

    name = "lamb"

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """The moving averages of the gradients and their squares."""
        return {"exp_avg": Slot(shape), "exp_avg_sq": Slot(shape)}

    def scalars(self, options: Options, rate: float, step: int) -> tuple[float, ...]:
        """Minus the rate, and the corrections of the two averages."""
        beta1, beta2 = options["betas"]
        return -rate, 1.0 / (1.0 - beta1**step), 1.0 / math.sqrt(1.0 - beta2**step)

    def advance(
        self,
        k: Any,
        params: Arrays,
        grads: Arrays,
        state: State,
        options: Options,
        scalars: Sequence[Any],
    ) -> tuple[Arrays, State]:
        """A step."""
        rate, correction1, correction2 = scalars
        first, second = moments(k, grads, state, options["betas"])
        bottom = k.shift_(k.scale_(k.sqrt(second), correction2), options["eps"])
        change = k.divide_(k.scale(first, correction1), bottom)
        if options["weight_decay"]:
            change = k.add_(change, params, options["weight_decay"])
        ratios = k.trust_ratios(k.norms(params), k.norms(change))
        change = k.multiply_(change, ratios)
        return k.add_(params, change, rate), {"exp_avg": first, "exp_avg_sq": second}


LAMB_RULE = LAMBRule()


@register("optimizers/lamb", config=LAMBConfig)
class LAMB(Optimizer):
    r"""Adam whose step for each parameter is in proportion to the parameter, for large batches.

    .. math:: u = \hat m / (\sqrt{\hat v} + \epsilon) + \lambda p, \quad
        p \leftarrow p - \gamma \frac{\|p\|}{\|u\|} u

    Args:
        params: a module, parameters, or groups.
        betas: decay rates of the two averages.
        weight_decay: times the parameter is added to its step.

    Reference: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76
    minutes", 2020.
    """

    options_type: ClassVar[Any] = LAMBConfig

    def __init__(
        self,
        params: Any,
        learning_rate: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            params, learning_rate=learning_rate, betas=betas, eps=eps, weight_decay=weight_decay
        )

    def rule(self, shape: Shape, options: Options) -> Rule:
        """The same for all."""
        return LAMB_RULE
