"""Lion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ember_ml.configs.optimizers import LionConfig
from ember_ml.registry import register
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.rules import Arrays, Options, Rule, Shape, Slot, State


class LionRule(Rule):
    """(1 - rate decay) p - rate sign(average of m and g)."""

    name = "lion"

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """The moving average of the gradients."""
        return {"exp_avg": Slot(shape)}

    def scalars(self, options: Options, rate: float, step: int) -> tuple[float, ...]:
        """What decay leaves, and minus the rate."""
        return 1.0 - rate * options["weight_decay"], -rate

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
        kept, rate = scalars
        beta1, beta2 = options["betas"]
        if options["weight_decay"]:
            params = k.scale_(params, kept)
        direction = k.sign_(k.lerp_(k.copy(state["exp_avg"]), grads, 1.0 - beta1))
        average = k.lerp_(state["exp_avg"], grads, 1.0 - beta2)
        return k.add_(params, direction, rate), {"exp_avg": average}


LION_RULE = LionRule()


@register("optimizers/lion", config=LionConfig)
class Lion(Optimizer):
    r"""Steps of one size for all, by the sign of a moving average.

    .. math::
        p \leftarrow p - \gamma (\mathrm{sign}(\beta_1 m + (1 - \beta_1) g) + \lambda p), \quad
        m \leftarrow \beta_2 m + (1 - \beta_2) g

    It wants about a tenth of AdamW's learning rate, and ten times its weight decay.

    Args:
        params: a module, parameters, or groups.
        betas: decay rates of the average for the step, and of the one that is kept.
        weight_decay: what share of a parameter goes at each step, times the learning rate.

    Reference: Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023.
    """

    options_type: ClassVar[Any] = LionConfig

    def __init__(
        self,
        params: Any,
        learning_rate: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 1e-3,
    ) -> None:
        super().__init__(
            params, learning_rate=learning_rate, betas=betas, weight_decay=weight_decay
        )

    def rule(self, shape: Shape, options: Options) -> Rule:
        """The same for all."""
        return LION_RULE
