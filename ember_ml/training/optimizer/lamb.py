"""LAMB."""

from __future__ import annotations

import math
from typing import NamedTuple, Unpack

from ember_ml.backend.interface import Arrays, Optimization
from ember_ml.configs.fields import Below1, NonNegative, Unconfigured
from ember_ml.registry import register
from ember_ml.training.optimizer.adam import moments
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.groups import MatchedGroups, Options, ParametersLike
from ember_ml.training.optimizer.plan import Shape, Slot, State
from ember_ml.training.optimizer.storage import StateOptions


class LAMBValues(NamedTuple):
    """The numbers of a step of LAMB."""

    learning_rate: float
    correction1: float
    """Bias correction of m, 1 / (1 - beta1^step)."""
    correction2: float
    """Bias correction of sqrt(v), 1 / sqrt(1 - beta2^step)."""


@register("optimizers/lamb")
class LAMB(Optimizer):
    r"""Adam with layerwise adaptive learning rates, for large batches.

    .. math:: u = \hat m / (\sqrt{\hat v} + \epsilon) + \lambda p, \quad
        p \leftarrow p - \gamma \frac{\|p\|}{\|u\|} u

    Args:
        params: A module, parameters, or groups.
        learning_rate: Step size relative to the norm of a parameter.
        betas: Decay rates of the moving averages of the gradient and of its square.
        eps: Added to the denominator for numerical stability.
        weight_decay: Weight decay coefficient, :math:`\lambda`.
        groups: Options of parameters by name: {"match": patterns, option: value}.
        storage: `state_bits` and `state_device`, as in `Optimizer`.

    Reference: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76
    minutes", 2020.
    """

    def __init__(
        self,
        params: Unconfigured[ParametersLike],
        learning_rate: NonNegative = 1e-3,
        betas: tuple[Below1, Below1] = (0.9, 0.999),
        eps: NonNegative = 1e-6,
        weight_decay: NonNegative = 0.0,
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
            **storage,
        )

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """Return the moving averages of the gradients and of their squares."""
        return {"exp_avg": Slot(shape), "exp_avg_sq": Slot(shape, is_positive=True)}

    def step_values(self, options: Options, learning_rate: float, step: int) -> LAMBValues:
        """Return the numbers of a step."""
        beta1, beta2 = options["betas"]
        root = math.sqrt(1.0 - beta2**step)
        return LAMBValues(learning_rate, 1.0 / (1.0 - beta1**step), 1.0 / root)

    def update_step(
        self,
        k: Optimization,
        params: Arrays,
        grads: Arrays,
        state: State,
        options: Options,
        values: LAMBValues,
    ) -> tuple[Arrays, State]:
        """Return the updated parameters and moving averages."""
        first, second = moments(k, grads, state, options["betas"])
        denominator = k.shift_(k.scale_(k.sqrt(second), values.correction2), options["eps"])
        change = k.divide_(k.scale(first, values.correction1), denominator)
        if options["weight_decay"]:
            change = k.add_(change, params, options["weight_decay"])
        change = k.multiply_(change, k.trust_ratios(k.norms(params), k.norms(change)))
        new: State = {"exp_avg": first, "exp_avg_sq": second}
        return k.add_(params, change, -values.learning_rate), new
