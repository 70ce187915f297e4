"""Lion."""

from __future__ import annotations

from typing import NamedTuple, Unpack

from ember_ml.backend.interface import Arrays, Optimization
from ember_ml.configs.fields import Below1, NonNegative, Unconfigured
from ember_ml.registry import register
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.groups import MatchedGroups, Options, ParametersLike
from ember_ml.training.optimizer.plan import Shape, Slot, State
from ember_ml.training.optimizer.storage import StateOptions


class DecayedValues(NamedTuple):
    """The numbers of a step with decoupled weight decay."""

    learning_rate: float
    decay: float
    """Factor on the parameters, 1 - learning_rate weight_decay."""


@register("optimizers/lion")
class Lion(Optimizer):
    r"""Lion: sign of a moving average of the gradients, a step of equal size for all elements.

    .. math::
        p \leftarrow p - \gamma (\mathrm{sign}(\beta_1 m + (1 - \beta_1) g) + \lambda p), \quad
        m \leftarrow \beta_2 m + (1 - \beta_2) g

    Use about a tenth of AdamW's learning rate and ten times its weight decay.

    Args:
        params: A module, parameters, or groups.
        learning_rate: Step size.
        betas: Decay rates of the average for the step and of the stored average.
        weight_decay: Decoupled weight decay coefficient; multiplied by the learning rate.
        groups: Options of parameters by name: {"match": patterns, option: value}.
        storage: `state_bits` and `state_device`, as in `Optimizer`.

    Reference: Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023.
    """

    ELEMENTWISE = True

    def __init__(
        self,
        params: Unconfigured[ParametersLike],
        learning_rate: NonNegative = 1e-4,
        betas: tuple[Below1, Below1] = (0.9, 0.99),
        weight_decay: NonNegative = 1e-3,
        groups: MatchedGroups = (),
        **storage: Unpack[StateOptions],
    ) -> None:
        super().__init__(
            params,
            groups,
            learning_rate=learning_rate,
            betas=betas,
            weight_decay=weight_decay,
            **storage,
        )

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """Return the moving average of the gradients."""
        return {"exp_avg": Slot(shape)}

    def step_values(self, options: Options, learning_rate: float, step: int) -> DecayedValues:
        """Return the numbers of a step."""
        return DecayedValues(learning_rate, 1.0 - learning_rate * options["weight_decay"])

    def update_step(
        self,
        k: Optimization,
        params: Arrays,
        grads: Arrays,
        state: State,
        options: Options,
        values: DecayedValues,
    ) -> tuple[Arrays, State]:
        """Return the updated parameters and moving average."""
        beta1, beta2 = options["betas"]
        if options["weight_decay"]:
            params = k.scale_(params, values.decay)
        direction = k.sign_(k.lerp_(k.copy(state["exp_avg"]), grads, 1.0 - beta1))
        average = k.lerp_(state["exp_avg"], grads, 1.0 - beta2)
        return k.add_(params, direction, -values.learning_rate), {"exp_avg": average}
