"""Adam and AdamW."""

from __future__ import annotations

import math
from typing import NamedTuple, Unpack

from ember_ml.backend.interface import Arrays, Optimization
from ember_ml.configs.fields import Below1, NonNegative, Unconfigured
from ember_ml.registry import register
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.groups import MatchedGroups, Options, ParametersLike
from ember_ml.training.optimizer.plan import Shape, Slot, State
from ember_ml.training.optimizer.storage import StateOptions


class AdamValues(NamedTuple):
    """The numbers of a step of Adam."""

    learning_rate: float
    step: float
    decay: float
    """Factor of decoupled weight decay on the parameters, 1 - learning_rate weight_decay."""
    step_size: float
    """Learning rate with the bias correction of m, learning_rate / (1 - beta1^step)."""
    correction: float
    """Bias correction of sqrt(v), 1 / sqrt(1 - beta2^step)."""


def adam_values(options: Options, learning_rate: float, step: int) -> AdamValues:
    """Return the numbers of a step of Adam or AdamW."""
    beta1, beta2 = options["betas"]
    return AdamValues(
        learning_rate=learning_rate,
        step=float(step),
        decay=1.0 - learning_rate * options["weight_decay"],
        step_size=learning_rate / (1.0 - beta1**step),
        correction=1.0 / math.sqrt(1.0 - beta2**step),
    )


def moments(
    k: Optimization, grads: Arrays, state: State, betas: tuple[float, float]
) -> tuple[Arrays, Arrays]:
    """Return the updated moving averages of the gradients and of their squares."""
    first = k.lerp_(state["exp_avg"], grads, 1.0 - betas[0])
    return first, second_moment(k, grads, state, betas[1])


def second_moment(k: Optimization, grads: Arrays, state: State, beta2: float) -> Arrays:
    """Return the updated moving average of the squared gradients."""
    return k.addcmul_(k.scale_(state["exp_avg_sq"], beta2), grads, grads, 1.0 - beta2)


def adam_step(
    k: Optimization,
    params: Arrays,
    grads: Arrays,
    state: State,
    options: Options,
    values: AdamValues,
    decoupled: bool,
) -> tuple[Arrays, State]:
    """Return the parameters and the state after a step of Adam, or of AdamW if `decoupled`."""
    fused = k.fused("adamw" if decoupled else "adam", values)
    updated = None if fused is None else fused(params, grads, state, options, values)
    if updated is not None:
        return updated
    if options["weight_decay"] and decoupled:
        params = k.scale_(params, values.decay)
    elif options["weight_decay"]:
        grads = k.add(grads, params, options["weight_decay"])
    first, second = moments(k, grads, state, options["betas"])
    new: State = {"exp_avg": first, "exp_avg_sq": second}
    if options["amsgrad"]:
        new["max_exp_avg_sq"] = second = k.maximum_(state["max_exp_avg_sq"], second)
    denominator = k.shift_(k.scale_(k.sqrt(second), values.correction), options["eps"])
    return k.addcdiv_(params, first, denominator, -values.step_size), new


@register("optimizers/adam")
class Adam(Optimizer):
    r"""Adam: adaptive moment estimation.

    .. math::
        m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad
        v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad
        p \leftarrow p - \gamma \hat m / (\sqrt{\hat v} + \epsilon)

    Args:
        params: A module, parameters, or groups.
        learning_rate: Step size.
        betas: Decay rates of the moving averages of the gradient and of its square.
        eps: Added to the denominator for numerical stability.
        weight_decay: L2 penalty coefficient, added to the gradient.
        amsgrad: Whether to divide by the maximum of the second moments so far.
        groups: Options of parameters by name: {"match": patterns, option: value}.
        storage: `state_bits` and `state_device`, as in `Optimizer`.

    Reference: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015.
    """

    ELEMENTWISE = True

    _decoupled = False

    def __init__(
        self,
        params: Unconfigured[ParametersLike],
        learning_rate: NonNegative = 1e-3,
        betas: tuple[Below1, Below1] = (0.9, 0.999),
        eps: NonNegative = 1e-8,
        weight_decay: NonNegative = 0.0,
        amsgrad: bool = False,
        groups: MatchedGroups = (),
        **storage: Unpack[StateOptions],
    ) -> None:
        super().__init__(
            params,
            groups,
            learning_rate=learning_rate,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            **storage,
        )

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """Return the two moving averages, and for AMSGrad the maximum of the second."""
        squares = ["exp_avg_sq"] + ["max_exp_avg_sq"] * options["amsgrad"]
        return {"exp_avg": Slot(shape), **dict.fromkeys(squares, Slot(shape, is_positive=True))}

    def step_values(self, options: Options, learning_rate: float, step: int) -> AdamValues:
        """Return the numbers of a step."""
        return adam_values(options, learning_rate, step)

    def update_step(
        self,
        k: Optimization,
        params: Arrays,
        grads: Arrays,
        state: State,
        options: Options,
        values: AdamValues,
    ) -> tuple[Arrays, State]:
        """Return the updated parameters and moving averages."""
        return adam_step(k, params, grads, state, options, values, self._decoupled)


@register("optimizers/adamw")
class AdamW(Adam):
    r"""Adam with decoupled weight decay.

    .. math:: p \leftarrow (1 - \gamma \lambda) p - \gamma \hat m / (\sqrt{\hat v} + \epsilon)

    Args:
        params: A module, parameters, or groups.
        learning_rate: Step size.
        betas: Decay rates of the moving averages of the gradient and of its square.
        eps: Added to the denominator for numerical stability.
        weight_decay: Decoupled weight decay coefficient; multiplied by the learning rate.
        amsgrad: Whether to divide by the maximum of the second moments so far.
        groups: Options of parameters by name: {"match": patterns, option: value}.
        storage: `state_bits` and `state_device`, as in `Optimizer`.

    Reference: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019.
    """

    _decoupled = True

    def __init__(
        self,
        params: Unconfigured[ParametersLike],
        learning_rate: NonNegative = 1e-3,
        betas: tuple[Below1, Below1] = (0.9, 0.999),
        eps: NonNegative = 1e-8,
        weight_decay: NonNegative = 1e-2,
        amsgrad: bool = False,
        groups: MatchedGroups = (),
        **storage: Unpack[StateOptions],
    ) -> None:
        super().__init__(
            params, learning_rate, betas, eps, weight_decay, amsgrad, groups, **storage
        )
