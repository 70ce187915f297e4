"""Adafactor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ember_ml.configs.optimizers import AdafactorConfig
from ember_ml.registry import register
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.rules import Arrays, Options, Rule, Shape, Slot, State


class AdafactorRule(Rule):
    """Steps by the gradient over the root of its mean square, clipped, relative to the parameter.

    Args:
        factored: whether the mean squares are kept as a row and a column.
    """

    def __init__(self, factored: bool) -> None:
        self.factored = factored

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """A row and a column of the last two axes, or all the mean squares."""
        if not self.factored:
            return {"variance": Slot(shape)}
        return {
            "row_var": Slot((*shape[:-1], 1)),
            "col_var": Slot((*shape[:-2], 1, shape[-1])),
        }

    def scalars(self, options: Options, rate: float, step: int) -> tuple[float, ...]:
        """What decay leaves, minus the relative rate, and how much a new square counts."""
        relative = min(rate, step**-0.5)
        return 1.0 - rate * options["weight_decay"], -relative, step ** options["beta2_decay"]

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
        kept, rate, weight = scalars
        tiny, least = options["eps"]
        tiny = k.epsilon(params) if tiny is None else tiny
        size = k.clamp_(k.root_mean_square(params), low=least)
        if options["weight_decay"]:
            params = k.scale_(params, kept)
        squares, state = self._squares(k, grads, state, weight, tiny)
        change = k.divide(grads, k.sqrt(k.clamp_(squares, low=tiny * tiny)))
        excess = k.clamp_(k.scale(k.root_mean_square(change), 1.0 / options["clip"]), low=1.0)
        change = k.multiply_(change, k.divide_(size, excess))
        return k.add_(params, change, rate), state

    def _squares(
        self, k: Any, grads: Arrays, state: State, weight: Any, tiny: float
    ) -> tuple[Arrays, State]:
        """The mean squares, and the state they are made of."""
        if not self.factored:
            fresh = k.multiply_(k.copy(grads), grads)
            variance = k.lerp_(state["variance"], fresh, weight)
            return k.copy(variance), {"variance": variance}
        rows = k.lerp_(state["row_var"], k.mean_squares(grads, -1), weight)
        columns = k.lerp_(state["col_var"], k.mean_squares(grads, -2), weight)
        total = k.clamp_(k.means(rows, -2), low=tiny)
        return k.divide_(k.matmul(rows, columns), total), {"row_var": rows, "col_var": columns}


FACTORED_RULE = AdafactorRule(factored=True)
FULL_RULE = AdafactorRule(factored=False)


@register("optimizers/adafactor", config=AdafactorConfig)
class Adafactor(Optimizer):
    r"""Adam without momentum, with as little memory as SGD, as in torch.optim.Adafactor.

    The mean squares of a matrix are kept as its rows' and columns' means.

    .. math::
        p \leftarrow p - \max(\epsilon_2, \mathrm{rms}(p)) \rho_t u / \max(1, \mathrm{rms}(u) / d)

    with :math:`u = g / \sqrt{v}` and :math:`\rho_t = \min(\gamma, 1 / \sqrt{t})`.

    Args:
        params: a module, parameters, or groups.
        beta2_decay: a new square counts as much as t to this power at step t.
        eps: the least root of a mean square (None: the dtype's epsilon), and the least size that a
            parameter is taken for.
        clip: the greatest root mean square of a step, d.
        weight_decay: what share of a parameter goes at each step, times the learning rate.

    Reference: Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost",
    2018.
    """

    options_type: ClassVar[Any] = AdafactorConfig

    def __init__(
        self,
        params: Any,
        learning_rate: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        clip: float = 1.0,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            params,
            learning_rate=learning_rate,
            beta2_decay=beta2_decay,
            eps=eps,
            clip=clip,
            weight_decay=weight_decay,
        )

    def rule(self, shape: Shape, options: Options) -> Rule:
        """Factored from two axes on."""
        return FACTORED_RULE if len(shape) > 1 else FULL_RULE
