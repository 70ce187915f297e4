"""RMSprop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ember_ml.configs.optimizers import RMSpropConfig
from ember_ml.registry import register
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.rules import Arrays, Options, Rule, Shape, Slot, State


class RMSpropRule(Rule):
    """p - rate g / (sqrt(mean square) + eps)."""

    name = "rmsprop"

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """The mean of the squares; the mean and the sum of steps where they are asked for."""
        names = ["square_avg"]
        names += ["grad_avg"] * options["centered"]
        names += ["momentum_buffer"] * (options["momentum"] > 0)
        return dict.fromkeys(names, Slot(shape))

    def scalars(self, options: Options, rate: float, step: int) -> tuple[float, ...]:
        """Minus the rate."""
        return (-rate,)

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
        (rate,) = scalars
        fresh = 1.0 - options["alpha"]
        if options["weight_decay"]:
            grads = k.add(grads, params, options["weight_decay"])
        squares = k.addcmul_(k.scale_(state["square_avg"], options["alpha"]), grads, grads, fresh)
        new = {"square_avg": squares}
        if options["centered"]:
            new["grad_avg"] = mean = k.lerp_(state["grad_avg"], grads, fresh)
            squares = k.addcmul_(k.copy(squares), mean, mean, -1.0)
        bottom = k.shift_(k.sqrt(squares), options["eps"])
        if not options["momentum"]:
            return k.addcdiv_(params, grads, bottom, rate), new
        buffer = k.scale_(state["momentum_buffer"], options["momentum"])
        new["momentum_buffer"] = buffer = k.addcdiv_(buffer, grads, bottom, 1.0)
        return k.add_(params, buffer, rate), new


RMSPROP_RULE = RMSpropRule()


@register("optimizers/rmsprop", config=RMSpropConfig)
class RMSprop(Optimizer):
    r"""Gradients divided by the root of the moving average of their squares.

    .. math:: v \leftarrow \alpha v + (1 - \alpha) g^2, \quad
        p \leftarrow p - \gamma g / (\sqrt{v} + \epsilon)

    Args:
        params: a module, parameters, or groups.
        alpha: decay rate of the average.
        weight_decay: times the parameter is added to its gradient.
        momentum: how much of the sum of earlier steps stays.
        centered: divide by the deviation from the mean gradient.

    Reference: Graves, "Generating Sequences With Recurrent Neural Networks", 2013.
    """

    options_type: ClassVar[Any] = RMSpropConfig

    def __init__(
        self,
        params: Any,
        learning_rate: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
    ) -> None:
        super().__init__(
            params,
            learning_rate=learning_rate,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
        )

    def rule(self, shape: Shape, options: Options) -> Rule:
        """The same for all."""
        return RMSPROP_RULE
