"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

from ember_ml.backend.interface import Arrays, Optimization
from ember_ml.configs.fields import NonNegative, Unconfigured
from ember_ml.registry import register
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.groups import MatchedGroups, Options, ParametersLike
from ember_ml.training.optimizer.plan import Shape, Slot, State
from ember_ml.training.optimizer.storage import StateOptions


class SGDValues(NamedTuple):
    """The numbers of a step of SGD."""

    learning_rate: float
    gradient_weight: float
    """Factor on a gradient as it enters the momentum buffer, 1 - dampening; 1 at first."""


@register("optimizers/sgd")
class SGD(Optimizer):
    r"""Stochastic gradient descent with momentum, as in torch.optim.SGD.

    .. math:: b \leftarrow \mu b + (1 - \tau) g, \quad p \leftarrow p - \gamma b

    Args:
        params: A module, parameters, or groups.
        learning_rate: Step size.
        momentum: Decay rate of the momentum buffer. Default 0: no momentum.
        dampening: Dampening of the momentum, :math:`\tau`.
        weight_decay: L2 penalty coefficient, added to the gradient.
        nesterov: Whether to use Nesterov momentum.
        groups: Options of parameters by name: {"match": patterns, option: value}.
        storage: `state_bits` and `state_device`, as in `Optimizer`.
    """

    ELEMENTWISE = True

    def __init__(
        self,
        params: Unconfigured[ParametersLike],
        learning_rate: NonNegative = 1e-3,
        momentum: NonNegative = 0.0,
        dampening: NonNegative = 0.0,
        weight_decay: NonNegative = 0.0,
        nesterov: bool = False,
        groups: MatchedGroups = (),
        **storage: Unpack[StateOptions],
    ) -> None:
        super().__init__(
            params,
            groups,
            learning_rate=learning_rate,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            **storage,
        )

    @staticmethod
    def check_config(config: Any) -> None:
        """Raise an error for Nesterov momentum without momentum or with dampening."""
        Optimizer.check_config(config)
        if config.nesterov and (config.momentum == 0.0 or config.dampening != 0.0):
            raise ValueError("nesterov requires momentum > 0 and dampening = 0")

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """Return the momentum buffer, if there is momentum."""
        return {"momentum_buffer": Slot(shape)} if options["momentum"] else {}

    def step_values(self, options: Options, learning_rate: float, step: int) -> SGDValues:
        """Return the numbers of a step."""
        return SGDValues(learning_rate, 1.0 if step == 1 else 1.0 - options["dampening"])

    def update_step(
        self,
        k: Optimization,
        params: Arrays,
        grads: Arrays,
        state: State,
        options: Options,
        values: SGDValues,
    ) -> tuple[Arrays, State]:
        """Return the updated parameters and momentum."""
        fused = k.fused("sgd", values)
        if fused is not None:
            return fused(params, grads, state, options, values)
        momentum = options["momentum"]
        if options["weight_decay"]:
            grads = k.add(grads, params, options["weight_decay"])
        if momentum:
            buffer = k.scale_(state["momentum_buffer"], momentum)
            buffer = k.add_(buffer, grads, values.gradient_weight)
            state = {"momentum_buffer": buffer}
            grads = k.add(grads, buffer, momentum) if options["nesterov"] else buffer
        return k.add_(params, grads, -values.learning_rate), state
