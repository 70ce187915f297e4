"""Adagrad and Adadelta."""

from __future__ import annotations

from typing import Unpack

from ember_ml.backend.interface import Arrays, Optimization
from ember_ml.configs.fields import Below1, NonNegative, Unconfigured
from ember_ml.registry import register
from ember_ml.training.optimizer.base import Optimizer, StepValues
from ember_ml.training.optimizer.groups import MatchedGroups, Options, ParametersLike
from ember_ml.training.optimizer.plan import Shape, Slot, State
from ember_ml.training.optimizer.storage import StateOptions


@register("optimizers/adagrad")
class Adagrad(Optimizer):
    r"""Gradients divided by the root of the sum of their squares so far.

    .. math:: s \leftarrow s + g^2, \quad p \leftarrow p - \gamma g / (\sqrt{s} + \epsilon)

    Args:
        params: A module, parameters, or groups.
        learning_rate: Step size.
        learning_rate_decay: Decay d of the learning rate, which is
            :math:`\gamma / (1 + (t - 1) d)` in step t.
        weight_decay: L2 penalty coefficient, added to the gradient.
        initial_accumulator: Initial value of the sum of squares.
        eps: Added to the denominator for numerical stability.
        groups: Options of parameters by name: {"match": patterns, option: value}.
        storage: `state_bits` and `state_device`, as in `Optimizer`.

    Reference: Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization", 2011.
    """

    ELEMENTWISE = True

    def __init__(
        self,
        params: Unconfigured[ParametersLike],
        learning_rate: NonNegative = 1e-2,
        learning_rate_decay: NonNegative = 0.0,
        weight_decay: NonNegative = 0.0,
        initial_accumulator: NonNegative = 0.0,
        eps: NonNegative = 1e-10,
        groups: MatchedGroups = (),
        **storage: Unpack[StateOptions],
    ) -> None:
        super().__init__(
            params,
            groups,
            learning_rate=learning_rate,
            learning_rate_decay=learning_rate_decay,
            weight_decay=weight_decay,
            initial_accumulator=initial_accumulator,
            eps=eps,
            **storage,
        )

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """Return the sum of the squares."""
        return {"sum": Slot(shape, options["initial_accumulator"], is_positive=True)}

    def step_values(self, options: Options, learning_rate: float, step: int) -> StepValues:
        """Return the decayed learning rate."""
        return StepValues(learning_rate / (1.0 + (step - 1) * options["learning_rate_decay"]))

    def update_step(
        self,
        k: Optimization,
        params: Arrays,
        grads: Arrays,
        state: State,
        options: Options,
        values: StepValues,
    ) -> tuple[Arrays, State]:
        """Return the updated parameters and sum of squares."""
        fused = k.fused("adagrad", values)
        if fused is not None:
            return fused(params, grads, state, options, values)
        if options["weight_decay"]:
            grads = k.add(grads, params, options["weight_decay"])
        sums = k.addcmul_(state["sum"], grads, grads, 1.0)
        denominator = k.shift_(k.sqrt(sums), options["eps"])
        return k.addcdiv_(params, grads, denominator, -values.learning_rate), {"sum": sums}


@register("optimizers/adadelta")
class Adadelta(Optimizer):
    r"""Gradients scaled to the size of earlier steps.

    .. math::
        \Delta = g \sqrt{u + \epsilon} / \sqrt{v + \epsilon}, \quad
        p \leftarrow p - \gamma \Delta

    where v and u are moving averages of the squares of the gradients and of the steps.

    Args:
        params: A module, parameters, or groups.
        learning_rate: Factor on the steps.
        rho: Decay rate of the moving averages.
        eps: Added to the moving averages for numerical stability.
        weight_decay: L2 penalty coefficient, added to the gradient.
        groups: Options of parameters by name: {"match": patterns, option: value}.
        storage: `state_bits` and `state_device`, as in `Optimizer`.

    Reference: Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.
    """

    ELEMENTWISE = True

    def __init__(
        self,
        params: Unconfigured[ParametersLike],
        learning_rate: NonNegative = 1.0,
        rho: Below1 = 0.9,
        eps: NonNegative = 1e-6,
        weight_decay: NonNegative = 0.0,
        groups: MatchedGroups = (),
        **storage: Unpack[StateOptions],
    ) -> None:
        super().__init__(
            params,
            groups,
            learning_rate=learning_rate,
            rho=rho,
            eps=eps,
            weight_decay=weight_decay,
            **storage,
        )

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """Return the moving averages of the squared gradients and of the squared steps."""
        return dict.fromkeys(["square_avg", "acc_delta"], Slot(shape, is_positive=True))

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
        rho, eps = options["rho"], options["eps"]
        if options["weight_decay"]:
            grads = k.add(grads, params, options["weight_decay"])
        squares = k.addcmul_(k.scale_(state["square_avg"], rho), grads, grads, 1.0 - rho)
        numerator = k.sqrt(k.shift_(k.copy(state["acc_delta"]), eps))
        denominator = k.sqrt(k.shift_(k.copy(squares), eps))
        change = k.multiply_(k.divide_(numerator, denominator), grads)
        steps = k.addcmul_(k.scale_(state["acc_delta"], rho), change, change, 1.0 - rho)
        new: State = {"square_avg": squares, "acc_delta": steps}
        return k.add_(params, change, -values.learning_rate), new
