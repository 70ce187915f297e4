"""Schedule-free AdamW."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.optimizers import ScheduleFreeAdamWConfig
from ember_ml.registry import register
from ember_ml.training.optimizer.adam import second_moment
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.plan import Piece
from ember_ml.training.optimizer.rules import Arrays, Options, Rule, Shape, Slot, State


class ScheduleFreeRule(Rule):
    """Steps of z, whose average is x; the parameters are between the two."""

    name = "schedule_free_adamw"

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """Where the steps lead, z, and the moving average of the squares."""
        return {"z": Slot(shape, None), "exp_avg_sq": Slot(shape)}

    def scalars(self, options: Options, rate: float, step: int) -> tuple[float, ...]:
        """Minus the rate, and the correction of the average; the optimizer adds two more."""
        return -rate, 1.0 / math.sqrt(1.0 - options["betas"][1] ** step)

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
        rate, correction, share, rest = scalars
        squares = second_moment(k, grads, state, options["betas"][1])
        bottom = k.shift_(k.scale_(k.sqrt(squares), correction), options["eps"])
        change = k.divide(grads, bottom)
        if options["weight_decay"]:
            change = k.add_(change, params, options["weight_decay"])
        params = k.add_(k.lerp_(params, state["z"], share), change, rest)
        return params, {"z": k.add_(state["z"], change, rate), "exp_avg_sq": squares}


SCHEDULE_FREE_RULE = ScheduleFreeRule()


@register("optimizers/schedule_free_adamw", config=ScheduleFreeAdamWConfig)
class ScheduleFreeAdamW(Optimizer):
    r"""AdamW that needs no decreasing learning rate: it averages where its steps lead.

    .. math::
        z \leftarrow z - \gamma (g(y) / (\sqrt{\hat v} + \epsilon) + \lambda y), \quad
        x \leftarrow (1 - c) x + c z, \quad y = (1 - \beta_1) z + \beta_1 x

    The parameters are y while training; `eval` makes them x, which is what to measure and to keep,
    and `train` makes them y again. A warm-up is a schedule's factor.

    Args:
        params: a module, parameters, or groups.
        betas: how near y is to x, and the decay rate of the squares' average.
        weight_decay: times the parameter is added to its step.
        weight_power: a step counts in the average as its greatest learning rate so far to this
            power.

    Reference: Defazio et al., "The Road Less Scheduled", 2024.
    """

    options_type: ClassVar[Any] = ScheduleFreeAdamWConfig

    def __init__(
        self,
        params: Any,
        learning_rate: float = 2.5e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        weight_power: float = 2.0,
    ) -> None:
        super().__init__(
            params,
            learning_rate=learning_rate,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            weight_power=weight_power,
        )
        self._greatest = [0.0] * len(self.groups)
        self._weights = [0.0] * len(self.groups)

    def rule(self, shape: Shape, options: Options) -> Rule:
        """The same for all."""
        return SCHEDULE_FREE_RULE

    def step(self, grads: Any) -> None:
        """Change the parameters, which must be those to train with."""
        self._refuse_unless_training()
        super().step(grads)

    def scalars(self) -> list[float]:
        """The numbers of the next step, whose parameters must be those to train with."""
        self._refuse_unless_training()
        return super().scalars()

    def _refuse_unless_training(self) -> None:
        if not self.training:
            raise ArgumentError(
                "ScheduleFreeAdamW: the parameters are those to use; call train() before a step"
            )

    def train(self) -> Self:
        """Make the parameters y, those to train with."""
        if not self.training:
            self._blend(lambda beta: 1.0 - beta)
            self.training = True
        return self

    def eval(self) -> Self:
        """Make the parameters x, those to use."""
        if self.training:
            self._blend(lambda beta: 1.0 - 1.0 / beta)
            self.training = False
        return self

    def _blend(self, weight: Any) -> None:
        """Move the parameters between x, y and z."""
        self._prepare()
        k = self._planner.kernels
        for piece in self._pieces(()):
            first = self.parameters[piece.indices[0]]
            params = [self.parameters[at]._data for at in piece.indices]
            mixed = k.lerp_(
                k.cast(k.copy(params), "float64" if first.dtype.name == "float64" else "float32"),
                [self._state[at] for at in piece.slots["z"]],
                weight(piece.options["betas"][0]),
            )
            for at, value in zip(piece.indices, k.cast(mixed, first.dtype.name), strict=True):
                self.parameters[at]._data = value

    def _weighed(self, at: int) -> tuple[float, float]:
        """A group's greatest rate and the sum of its weights, with the next step."""
        group = self.groups[at]
        greatest = max(self._greatest[at], group.learning_rate * self.factor)
        return greatest, self._weights[at] + greatest ** group.options["weight_power"]

    def _scalars_of(self, piece: Piece) -> tuple[float, ...]:
        rate, correction = super()._scalars_of(piece)
        greatest, total = self._weighed(self.groups.index(piece.group))
        share = greatest ** piece.options["weight_power"] / total if total else 0.0
        rest = rate * (1.0 - piece.options["betas"][0] * (1.0 - share))
        return rate, correction, share, rest

    def _count(self, absent: tuple[int, ...]) -> None:
        for at in range(len(self.groups)):
            self._greatest[at], self._weights[at] = self._weighed(at)
        super()._count(absent)

    def _extra(self) -> dict[str, Any]:
        own = {"training": self.training, "greatest": self._greatest, "weights": self._weights}
        return {**super()._extra(), **{name: _copied(value) for name, value in own.items()}}

    def _load_extra(self, extra: Mapping[str, Any]) -> None:
        super()._load_extra(extra)
        self.training = bool(extra["training"])
        self._greatest, self._weights = list(extra["greatest"]), list(extra["weights"])


def _copied(value: Any) -> Any:
    return list(value) if isinstance(value, list) else value
