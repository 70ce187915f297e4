"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ember_ml.configs.optimizers import AdamConfig, AdamWConfig
from ember_ml.registry import register
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.rules import Arrays, Options, Rule, Shape, Slot, State


def moments(
    k: Any, grads: Arrays, state: State, betas: tuple[float, float]
) -> tuple[Arrays, Arrays]:
    """The moving averages of the gradients and of their squares, with these gradients."""
    beta1, beta2 = betas
    first = k.lerp_(state["exp_avg"], grads, 1.0 - beta1)
    return first, second_moment(k, grads, state, beta2)


def second_moment(k: Any, grads: Arrays, state: State, beta2: float) -> Arrays:
    """The moving average of the squares, with these gradients."""
    averages: Arrays = k.scale_(state["exp_avg_sq"], beta2)
    return k.addcmul_(averages, grads, grads, 1.0 - beta2)


class AdamRule(Rule):
    """p - rate m / (sqrt(v) + eps), both averages corrected for their start at zero.

    Args:
        name: "adam", or "adamw" for weight decay apart from the gradient.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """The two averages, and for AMSGrad the greatest second one."""
        names = ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * options["amsgrad"]
        return dict.fromkeys(names, Slot(shape))

    def scalars(self, options: Options, rate: float, step: int) -> tuple[float, ...]:
        """What decay leaves, minus the corrected rate, the other correction; rate and step."""
        beta1, beta2 = options["betas"]
        size = rate / (1.0 - beta1**step)
        root = math.sqrt(1.0 - beta2**step)
        return 1.0 - rate * options["weight_decay"], -size, 1.0 / root, rate, float(step)

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
        kept, size, correction, *_ = scalars
        if options["weight_decay"]:
            if self.name == "adam":
                grads = k.add(grads, params, options["weight_decay"])
            else:
                params = k.scale_(params, kept)
        first, second = moments(k, grads, state, options["betas"])
        new = {"exp_avg": first, "exp_avg_sq": second}
        if options["amsgrad"]:
            new["max_exp_avg_sq"] = second = k.maximum_(state["max_exp_avg_sq"], second)
        bottom = k.shift_(k.scale_(k.sqrt(second), correction), options["eps"])
        return k.addcdiv_(params, first, bottom, size), new


ADAM_RULE = AdamRule("adam")
ADAMW_RULE = AdamRule("adamw")


@register("optimizers/adam", config=AdamConfig)
class Adam(Optimizer):
    r"""Adam: steps by the mean of the gradients over the root of their mean square.

    .. math::
        m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad
        v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad
        p \leftarrow p - \gamma \hat m / (\sqrt{\hat v} + \epsilon)

    Args:
        params: a module, parameters, or groups.
        betas: decay rates of the two averages.
        weight_decay: times the parameter is added to its gradient.
        amsgrad: divide by the greatest mean square so far.

    Reference: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015.
    """

    options_type: ClassVar[Any] = AdamConfig

    def __init__(
        self,
        params: Any,
        learning_rate: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(
            params,
            learning_rate=learning_rate,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
        )

    def rule(self, shape: Shape, options: Options) -> Rule:
        """The same for all."""
        return ADAM_RULE


@register("optimizers/adamw", config=AdamWConfig)
class AdamW(Optimizer):
    r"""Adam with weight decay apart from the gradient.

    .. math:: p \leftarrow (1 - \gamma \lambda) p - \gamma \hat m / (\sqrt{\hat v} + \epsilon)

    Args:
        params: a module, parameters, or groups.
        betas: decay rates of the two averages.
        weight_decay: what share of a parameter goes at each step, times the learning rate.
        amsgrad: divide by the greatest mean square so far.

    Reference: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019.
    """

    options_type: ClassVar[Any] = AdamWConfig

    def __init__(
        self,
        params: Any,
        learning_rate: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(
            params,
            learning_rate=learning_rate,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
        )

    def rule(self, shape: Shape, options: Options) -> Rule:
        """The same for all."""
        return ADAMW_RULE
