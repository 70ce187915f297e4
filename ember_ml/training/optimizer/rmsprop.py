"""RMSprop."""

from __future__ import annotations

from typing import Unpack

from ember_ml.backend.interface import Arrays, Optimization
from ember_ml.configs.fields import Below1, NonNegative, Unconfigured
from ember_ml.registry import register
from ember_ml.training.optimizer.base import Optimizer, StepValues
from ember_ml.training.optimizer.groups import MatchedGroups, Options, ParametersLike
from ember_ml.training.optimizer.plan import Shape, Slot, State
from ember_ml.training.optimizer.storage import StateOptions


@register("optimizers/rmsprop")
class RMSprop(Optimizer):
    r"""Gradients divided by the root of the moving average of their squares.

    .. math:: v \leftarrow \alpha v + (1 - \alpha) g^2, \quad
        p \leftarrow p - \gamma g / (\sqrt{v} + \epsilon)

    Args:
        params: A module, parameters, or groups.
        learning_rate: Step size.
        alpha: Decay rate of the moving average.
        eps: Added to the denominator for numerical stability.
        weight_decay: L2 penalty coefficient, added to the gradient.
        momentum: Decay rate of the momentum buffer. Default 0: no momentum.
        centered: Whether to divide by the standard deviation instead of the root mean square.
        groups: Options of parameters by name: {"match": patterns, option: value}.
        storage: `state_bits` and `state_device`, as in `Optimizer`.

    Reference: Graves, "Generating Sequences With Recurrent Neural Networks", 2013.
    """

    ELEMENTWISE = True

    def __init__(
        self,
        params: Unconfigured[ParametersLike],
        learning_rate: NonNegative = 1e-2,
        alpha: Below1 = 0.99,
        eps: NonNegative = 1e-8,
        weight_decay: NonNegative = 0.0,
        momentum: NonNegative = 0.0,
        centered: bool = False,
        groups: MatchedGroups = (),
        **storage: Unpack[StateOptions],
    ) -> None:
        super().__init__(
            params,
            groups,
            learning_rate=learning_rate,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
            **storage,
        )

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """Return the moving averages, and the momentum buffer if there is momentum."""
        centered = options["centered"]  # the variance is a difference, which needs exact values
        slots = {"square_avg": Slot(shape, is_positive=True, is_exact=centered)}
        if centered:
            slots["grad_avg"] = Slot(shape, is_exact=True)
        return slots | ({"momentum_buffer": Slot(shape)} if options["momentum"] > 0 else {})

    def update_step(
        self,
        k: Optimization,
        params: Arrays,
        grads: Arrays,
        state: State,
        options: Options,
        values: StepValues,
    ) -> tuple[Arrays, State]:
        """Return the updated parameters and moving averages."""
        weight = 1.0 - options["alpha"]
        if options["weight_decay"]:
            grads = k.add(grads, params, options["weight_decay"])
        squares = k.scale_(state["square_avg"], options["alpha"])
        squares = k.addcmul_(squares, grads, grads, weight)
        new: State = {"square_avg": squares}
        if options["centered"]:
            new["grad_avg"] = mean = k.lerp_(state["grad_avg"], grads, weight)
            squares = k.addcmul_(k.copy(squares), mean, mean, -1.0)
        denominator = k.shift_(k.sqrt(squares), options["eps"])
        if not options["momentum"]:
            return k.addcdiv_(params, grads, denominator, -values.learning_rate), new
        buffer = k.scale_(state["momentum_buffer"], options["momentum"])
        new["momentum_buffer"] = buffer = k.addcdiv_(buffer, grads, denominator, 1.0)
        return k.add_(params, buffer, -values.learning_rate), new
