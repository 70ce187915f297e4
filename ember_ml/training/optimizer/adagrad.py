"""Adagrad, and Adadelta, which came from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ember_ml.configs.optimizers import AdadeltaConfig, AdagradConfig
from ember_ml.registry import register
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.rules import Arrays, Options, Rule, Shape, Slot, State


class AdagradRule(Rule):
    """p - rate g / (sqrt(sum of squares) + eps)."""

    name = "adagrad"

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """The sum of the squares."""
        return {"sum": Slot(shape, options["initial_accumulator"])}

    def scalars(self, options: Options, rate: float, step: int) -> tuple[float, ...]:
        """Minus the rate."""
        return (-rate / (1.0 + (step - 1) * options["learning_rate_decay"]),)

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
        if options["weight_decay"]:
            grads = k.add(grads, params, options["weight_decay"])
        sums = k.addcmul_(state["sum"], grads, grads, 1.0)
        bottom = k.shift_(k.sqrt(sums), options["eps"])
        return k.addcdiv_(params, grads, bottom, rate), {"sum": sums}


class AdadeltaRule(Rule):
    """p - rate g sqrt(mean squared step + eps) / sqrt(mean squared gradient + eps)."""

    name = "adadelta"

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """The two means of squares."""
        return {"square_avg": Slot(shape), "acc_delta": Slot(shape)}

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
        rho, eps = options["rho"], options["eps"]
        if options["weight_decay"]:
            grads = k.add(grads, params, options["weight_decay"])
        squares = k.addcmul_(k.scale_(state["square_avg"], rho), grads, grads, 1.0 - rho)
        top = k.sqrt(k.shift_(k.copy(state["acc_delta"]), eps))
        bottom = k.sqrt(k.shift_(k.copy(squares), eps))
        change = k.multiply_(k.divide_(top, bottom), grads)
        steps = k.addcmul_(k.scale_(state["acc_delta"], rho), change, change, 1.0 - rho)
        return k.add_(params, change, rate), {"square_avg": squares, "acc_delta": steps}


ADAGRAD_RULE = AdagradRule()
ADADELTA_RULE = AdadeltaRule()


@register("optimizers/adagrad", config=AdagradConfig)
class Adagrad(Optimizer):
    r"""Gradients divided by the root of the sum of their squares so far.

    .. math:: s \leftarrow s + g^2, \quad p \leftarrow p - \gamma g / (\sqrt{s} + \epsilon)

    Args:
        params: a module, parameters, or groups.
        learning_rate_decay: the rate of step t is learning_rate / (1 + (t - 1) decay).
        weight_decay: times the parameter is added to its gradient.
        initial_accumulator: what the sum begins with.

    Reference: Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization", 2011.
    """

    options_type: ClassVar[Any] = AdagradConfig

    def __init__(
        self,
        params: Any,
        learning_rate: float = 1e-2,
        learning_rate_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        super().__init__(
            params,
            learning_rate=learning_rate,
            learning_rate_decay=learning_rate_decay,
            weight_decay=weight_decay,
            initial_accumulator=initial_accumulator,
            eps=eps,
        )

    def rule(self, shape: Shape, options: Options) -> Rule:
        """The same for all."""
        return ADAGRAD_RULE


@register("optimizers/adadelta", config=AdadeltaConfig)
class Adadelta(Optimizer):
    r"""Gradients scaled to the size of earlier steps.

    .. math::
        \Delta = g \sqrt{u + \epsilon} / \sqrt{v + \epsilon}, \quad
        p \leftarrow p - \gamma \Delta

    with v and u the moving averages of the squares of g and of the steps.

    Args:
        params: a module, parameters, or groups.
        rho: decay rate of the averages.
        weight_decay: times the parameter is added to its gradient.

    Reference: Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.
    """

    options_type: ClassVar[Any] = AdadeltaConfig

    def __init__(
        self,
        params: Any,
        learning_rate: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            params, learning_rate=learning_rate, rho=rho, eps=eps, weight_decay=weight_decay
        )

    def rule(self, shape: Shape, options: Options) -> Rule:
        """The same for all."""
        return ADADELTA_RULE
