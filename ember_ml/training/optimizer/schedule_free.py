"""Schedule-free AdamW."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, Self, Unpack

from pydantic import Field

from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import native_arrays, set_natives
from ember_ml.backend.interface import Array, Arrays, Optimization
from ember_ml.configs.fields import Below1, NonNegative, Unconfigured
from ember_ml.registry import register
from ember_ml.training.optimizer.adam import second_moment
from ember_ml.training.optimizer.base import Optimizer
from ember_ml.training.optimizer.groups import MatchedGroups, Options, ParametersLike
from ember_ml.training.optimizer.plan import Batch, Shape, Slot, State, state_dtype
from ember_ml.training.optimizer.storage import StateOptions


class ScheduleFreeValues(NamedTuple):
    """The numbers of a step of schedule-free AdamW."""

    learning_rate: float
    correction: float
    """Bias correction of sqrt(v), 1 / sqrt(1 - beta2^step)."""
    weight: float
    """Weight c of z in its average x."""
    step_size: float
    """Step size of the parameters y, learning_rate (1 - beta1 (1 - c))."""


@register("optimizers/schedule_free_adamw")
class ScheduleFreeAdamW(Optimizer):
    r"""AdamW that averages its iterates instead of decreasing the learning rate.

    .. math::
        z \leftarrow z - \gamma (g(y) / (\sqrt{\hat v} + \epsilon) + \lambda y), \quad
        x \leftarrow (1 - c) x + c z, \quad y = (1 - \beta_1) z + \beta_1 x

    The parameters are y during training. `eval` sets them to x, the values to evaluate and to save;
    `train` sets them to y again. For a warmup, use a schedule.

    Args:
        params: A module, parameters, or groups.
        learning_rate: Step size.
        betas: Weight of x in y, and decay rate of the moving average of the squared gradients.
        eps: Added to the denominator for numerical stability.
        weight_decay: Weight decay coefficient, :math:`\lambda`.
        weight_power: Exponent p of a step's weight in the average: the maximum learning rate so
            far to the power of p.
        groups: Options of parameters by name: {"match": patterns, option: value}.
        storage: `state_bits` and `state_device`, as in `Optimizer`.

    Reference: Defazio et al., "The Road Less Scheduled", 2024.
    """

    ELEMENTWISE = True

    def __init__(
        self,
        params: Unconfigured[ParametersLike],
        learning_rate: NonNegative = 2.5e-3,
        betas: tuple[Annotated[float, Field(gt=0, lt=1)], Below1] = (0.9, 0.999),
        eps: NonNegative = 1e-8,
        weight_decay: NonNegative = 0.0,
        weight_power: NonNegative = 2.0,
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
            weight_power=weight_power,
            **storage,
        )
        self._stash: tuple[list[Array], list[Array]] | None = None
        self._max_rates = [0.0] * len(self.groups)
        self._weight_sums = [0.0] * len(self.groups)

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """Return the iterate z and the moving average of the squared gradients."""
        return {"z": Slot(shape, None), "exp_avg_sq": Slot(shape, is_positive=True)}

    def _values(self, batch: Batch) -> ScheduleFreeValues:
        beta1, beta2 = batch.options["betas"]
        step = self.step_count + 1 - batch.lag
        learning_rate = batch.group.learning_rate * self.factor
        max_rate, weight_sum = self._next_weights(self.groups.index(batch.group))
        power = batch.options["weight_power"]
        weight = max_rate**power / weight_sum if weight_sum else 0.0
        return ScheduleFreeValues(
            learning_rate=learning_rate,
            correction=1.0 / math.sqrt(1.0 - beta2**step),
            weight=weight,
            step_size=learning_rate * (1.0 - beta1 * (1.0 - weight)),
        )

    def update_step(
        self,
        k: Optimization,
        params: Arrays,
        grads: Arrays,
        state: State,
        options: Options,
        values: ScheduleFreeValues,
    ) -> tuple[Arrays, State]:
        """Return the updated parameters y, iterates z and squared gradients."""
        squares = second_moment(k, grads, state, options["betas"][1])
        denominator = k.shift_(k.scale_(k.sqrt(squares), values.correction), options["eps"])
        change = k.divide(grads, denominator)
        if options["weight_decay"]:
            change = k.add_(change, params, options["weight_decay"])
        params = k.add_(k.lerp_(params, state["z"], values.weight), change, -values.step_size)
        z = k.add_(state["z"], change, -values.learning_rate)
        return params, {"z": z, "exp_avg_sq": squares}

    def _before_step(self) -> None:
        """Raise an error unless the parameters have their training values."""
        if not self.training:
            raise ArgumentError(
                "ScheduleFreeAdamW: the parameters have their evaluation values; call train() "
                "before a step"
            )

    def train(self) -> Self:
        """Set the parameters to y, their training values: bit-exactly, unless they were changed."""
        if self.training:
            return self
        if self._stash is not None and all(map(operator.is_, self._arrays(), self._stash[0])):
            set_natives(self.parameters, self._stash[1])
        else:
            self._interpolate(lambda beta: 1.0 - beta)
        self._stash = None
        self.training = True
        return self

    def eval(self) -> Self:
        """Set the parameters to x, their values for evaluation. y is kept in memory."""
        if self.training:
            trained = self._arrays()
            self._interpolate(lambda beta: 1.0 - 1.0 / beta)
            self._stash = self._arrays(), trained
            self.training = False
        return self

    @contextlib.contextmanager
    def training_values(self) -> Iterator[None]:
        """Give the parameters their training values within the block."""
        before, stash, training = self._arrays(), self._stash, self.training
        self.train()
        try:
            yield
        finally:
            if not training:
                set_natives(self.parameters, before)
                self._stash, self.training = stash, training

    def _arrays(self) -> list[Array]:
        return native_arrays(self.parameters)

    def _interpolate(self, weight: Callable[[float], float]) -> None:
        """Move the parameters on the line through x, y and z by a weight that depends on beta1."""
        plan = self._current_plan()
        k = plan.kernels
        for batch in self._batches(plan, ()):
            first = batch.parameters[0]
            params = k.copy(native_arrays(batch.parameters))
            params = k.cast(params, state_dtype(first))
            beta1 = batch.options["betas"][0]
            params = k.lerp_(params, batch.read(plan.state)["z"], weight(beta1))
            set_natives(batch.parameters, k.cast(params, first.dtype.name))

    def _next_weights(self, at: int) -> tuple[float, float]:
        """Return a group's maximum learning rate and sum of weights after the next step."""
        group = self.groups[at]
        max_rate = max(self._max_rates[at], group.learning_rate * self.factor)
        return max_rate, self._weight_sums[at] + max_rate ** group.options["weight_power"]

    def _count(self, absent: tuple[int, ...]) -> None:
        for at in range(len(self.groups)):
            self._max_rates[at], self._weight_sums[at] = self._next_weights(at)
        super()._count(absent)

    def _extra(self) -> dict[str, Any]:
        own = {"greatest": list(self._max_rates), "weights": list(self._weight_sums)}
        return {**super()._extra(), "training": self.training, **own}

    def _load_extra(self, extra: Mapping[str, Any]) -> None:
        super()._load_extra(extra)
        self._stash = None
        self.training = bool(extra["training"])
        self._max_rates, self._weight_sums = list(extra["greatest"]), list(extra["weights"])
