"""Gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ember_ml.configs.optimizers import SGDConfig
from ember_ml.registry import register
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.rules import Arrays, Options, Rule, Shape, Slot, State


class SGDRule(Rule):
    """p - rate (g, or a sum of the gradients that fades by the momentum)."""

    name = "sgd"

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """The fading sum, if there is one."""
        return {"momentum_buffer": Slot(shape)} if options["momentum"] else {}

    def scalars(self, options: Options, rate: float, step: int) -> tuple[float, ...]:
        """Minus the rate, and the share of the gradient that enters the sum: at first all."""
        return -rate, 1.0 if step == 1 else 1.0 - options["dampening"]

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
        rate, share = scalars
        momentum = options["momentum"]
        if options["weight_decay"]:
            grads = k.add(grads, params, options["weight_decay"])
        if momentum:
            buffer = k.add_(k.scale_(state["momentum_buffer"], momentum), grads, share)
            state = {"momentum_buffer": buffer}
            grads = k.add(grads, buffer, momentum) if options["nesterov"] else buffer
        return k.add_(params, grads, rate), state


SGD_RULE = SGDRule()


@register("optimizers/sgd", config=SGDConfig)
class SGD(Optimizer):
    r"""Gradient descent, with momentum, as in torch.optim.SGD.

    .. math:: b \leftarrow \mu b + (1 - \tau) g, \quad p \leftarrow p - \gamma b

    Args:
        params: a module, parameters, or groups.
        momentum: how much of the sum of earlier gradients stays.
        dampening: how much of a gradient does not enter that sum.
        weight_decay: times the parameter is added to its gradient.
        nesterov: look ahead by one momentum.
    """

    options_type: ClassVar[Any] = SGDConfig

    def __init__(
        self,
        params: Any,
        learning_rate: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(
            params,
            learning_rate=learning_rate,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
        )

    def rule(self, shape: Shape, options: Options) -> Rule:
        """The same for all."""
        return SGD_RULE
