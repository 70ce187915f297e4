"""Adafactor."""

from __future__ import annotations

from typing import Annotated, NamedTuple, Unpack

from pydantic import Field

from ember_ml.backend.interface import Arrays, Optimization
from ember_ml.configs.fields import NonNegative, Positive, Unconfigured
from ember_ml.registry import register
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.groups import MatchedGroups, Options, ParametersLike
from ember_ml.training.optimizer.plan import Shape, Slot, State
from ember_ml.training.optimizer.storage import StateOptions


class AdafactorValues(NamedTuple):
    """The numbers of a step of Adafactor."""

    step_size: float
    """Step size relative to the parameter, min(learning_rate, 1 / sqrt(step))."""
    decay: float
    """Factor of decoupled weight decay on the parameters, 1 - learning_rate weight_decay."""
    square_weight: float
    """Weight of the new squares in their moving average, step^beta2_decay."""


@register("optimizers/adafactor")
class Adafactor(Optimizer):
    r"""Adam without momentum and with sublinear memory, as in torch.optim.Adafactor.

    The second moments of a matrix are stored as the means of its rows and columns.

    .. math::
        p \leftarrow p - \max(\epsilon_2, \mathrm{rms}(p)) \rho_t u / \max(1, \mathrm{rms}(u) / d)

    where :math:`u = g / \sqrt{v}` and :math:`\rho_t = \min(\gamma, 1 / \sqrt{t})`.

    Args:
        params: A module, parameters, or groups.
        learning_rate: Maximum step size relative to a parameter, :math:`\gamma`.
        beta2_decay: Exponent of the weight of new squares, which is :math:`t` to this power.
        eps: Minimum of the root mean squares (None: the dtype's machine epsilon), and minimum of
            the root mean square of a parameter.
        clip: Maximum root mean square of an update, d.
        weight_decay: Decoupled weight decay coefficient; multiplied by the learning rate.
        groups: Options of parameters by name: {"match": patterns, option: value}.
        storage: `state_bits` and `state_device`, as in `Optimizer`.

    Reference: Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost",
    2018.
    """

    def __init__(
        self,
        params: Unconfigured[ParametersLike],
        learning_rate: NonNegative = 1e-2,
        beta2_decay: Annotated[float, Field(le=0, allow_inf_nan=False)] = -0.8,
        eps: tuple[Positive | None, NonNegative] = (None, 1e-3),
        clip: Positive = 1.0,
        weight_decay: NonNegative = 0.0,
        groups: MatchedGroups = (),
        **storage: Unpack[StateOptions],
    ) -> None:
        super().__init__(
            params,
            groups,
            learning_rate=learning_rate,
            beta2_decay=beta2_decay,
            eps=eps,
            clip=clip,
            weight_decay=weight_decay,
            **storage,
        )

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """Return the second moments: rows and columns of the last two axes, or all."""
        if len(shape) < 2:
            return {"variance": Slot(shape, is_exact=True)}
        rows, columns = (*shape[:-1], 1), (*shape[:-2], 1, shape[-1])
        return {"row_var": Slot(rows, is_exact=True), "col_var": Slot(columns, is_exact=True)}

    def step_values(self, options: Options, learning_rate: float, step: int) -> AdafactorValues:
        """Return the numbers of a step."""
        return AdafactorValues(
            step_size=min(learning_rate, step**-0.5),
            decay=1.0 - learning_rate * options["weight_decay"],
            square_weight=step ** options["beta2_decay"],
        )

    def update_step(
        self,
        k: Optimization,
        params: Arrays,
        grads: Arrays,
        state: State,
        options: Options,
        values: AdafactorValues,
    ) -> tuple[Arrays, State]:
        """Return the updated parameters and second moments."""
        eps, least_size = options["eps"]
        eps = k.epsilon(params) if eps is None else eps
        size = k.clamp_(k.root_mean_square(params), low=least_size)
        if options["weight_decay"]:
            params = k.scale_(params, values.decay)
        squares, state = _second_moments(k, grads, state, values.square_weight, eps)
        change = k.divide(grads, k.sqrt(k.clamp_(squares, low=eps * eps)))
        excess = k.clamp_(k.scale(k.root_mean_square(change), 1.0 / options["clip"]), low=1.0)
        change = k.multiply_(change, k.divide_(size, excess))
        return k.add_(params, change, -values.step_size), state


def _second_moments(
    k: Optimization, grads: Arrays, state: State, weight: float, eps: float
) -> tuple[Arrays, State]:
    """Return the second moments and the state that stores them."""
    if "variance" in state:
        variance = k.lerp_(state["variance"], k.multiply_(k.copy(grads), grads), weight)
        return k.copy(variance), {"variance": variance}
    rows = k.lerp_(state["row_var"], k.mean_squares(grads, -1), weight)
    columns = k.lerp_(state["col_var"], k.mean_squares(grads, -2), weight)
    total = k.clamp_(k.means(rows, -2), low=eps)
    return k.divide_(k.matmul(rows, columns), total), {"row_var": rows, "col_var": columns}
