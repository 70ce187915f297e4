"""Mamba."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn.initializers import Uniform
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, State, zeros_beside
from ember_ml.nn.layers.sequence_mixing.short_conv import Taps
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register

FLOOR = 1e-4


def check_steps(name: str, dt_min: float, dt_max: float) -> None:
    """Raise an error if the range of the first step sizes is empty."""
    if dt_min > dt_max:
        raise ArgumentError(f"{name}: dt_min={dt_min} must not be above dt_max={dt_max}")


def step_bias(count: int, dt_min: float, dt_max: float) -> Tensor:
    """Biases whose softplus is log-uniform from dt_min to dt_max."""
    dt = ops.exp(Uniform(math.log(dt_min), math.log(dt_max))((count,)))
    dt = ops.maximum(dt, FLOOR)
    return dt + ops.log(-ops.expm1(-dt))


@register("layers/mamba")
class Mamba(SequenceMixer):
    r"""A state space whose step, input and output depend on the data.

    .. math::
        x', z &= W_{in} x, \quad u = \mathrm{silu}(\mathrm{conv}(x')) \\
        h_t &= e^{\Delta_t A} h_{t-1} + \Delta_t B_t u_t \\
        y_t &= W_{out} \big( (C_t h_t + D u_t) \odot \mathrm{silu}(z_t) \big)

    Args:
        features: the number of features in and out.
        d_state: states of a channel.
        d_conv: taps of the short filter.
        expand: channels inside, as a multiple of the features.
        dt_rank: the rank of the projection to the step sizes; a sixteenth of the features if not
            given.
        dt_min: the smallest step size at first.
        dt_max: the greatest step size at first.
        bias: whether the first and the last projection have biases.

    Shape: (batch, time, features) -> (batch, time, features).

    Example:
        >>> create("layers/mamba", features=8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)

    Reference: Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023.
    """

    def __init__(
        self,
        features: Size,
        d_state: Size = 4,
        d_conv: Size = 4,
        expand: Size = 2,
        dt_rank: Size | None = None,
        dt_min: Positive = 0.001,
        dt_max: Positive = 0.1,
        bias: bool = False,
    ) -> None:
        check_steps("Mamba", dt_min, dt_max)
        self.features = features
        self.d_state = d_state
        self.inner = features * expand
        self.dt_rank = dt_rank or math.ceil(features / 16)
        self.in_proj = Dense(features, 2 * self.inner, bias=bias)
        self.conv = Taps(self.inner, d_conv)
        self.x_proj = Dense(self.inner, self.dt_rank + 2 * d_state, bias=False)
        spread = Uniform(-(self.dt_rank**-0.5), self.dt_rank**-0.5)
        self.dt_weight = Parameter(spread((self.inner, self.dt_rank)))
        self.dt_bias = Parameter(step_bias(self.inner, dt_min, dt_max), decay=False)
        rates = ops.log(ops.arange(1, d_state + 1, dtype="float32"))
        self.A_log = Parameter(ops.tile(rates, (self.inner, 1)), decay=False)
        self.D = Parameter(ops.ones(self.inner), decay=False)
        self.out_proj = Dense(self.inner, features, bias=bias)

    @property
    def state_size(self) -> int:
        """The states, and the inputs of the short filter that a later position still sees."""
        return self.inner * (self.d_state + self.conv.kernel_size - 1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mixed."""
        self.check_sequence(x, mask)
        if x.size == 0:
            return x
        u, gate = ops.split(self.in_proj(x), 2, axis=-1)
        padding = None if mask is None else ops.expand_dims(mask, -1)
        if padding is not None:
            u = ops.where(padding, u, 0.0)
        u = ops.silu(ops.swapaxes(self.conv(ops.swapaxes(u, 1, 2)), 1, 2))
        dt, write, read = self._select(u)
        if padding is not None:
            dt = ops.where(padding, dt, 0.0)  # a step of no length leaves the states alone
        y = ops.selective_scan(u, dt, self._rates(), write, read, self.D)
        return self.out_proj(y * ops.silu(gate))

    def _rates(self) -> Tensor:
        return -ops.exp(self.A_log)

    def _select(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The step sizes, what writes to the states and what reads them."""
        parts = [self.dt_rank, self.dt_rank + self.d_state]
        low, write, read = ops.split(self.x_proj(u), parts, axis=-1)
        return ops.softplus(ops.linear(low, self.dt_weight, self.dt_bias)), write, read

    def initial_state(self, batch: int) -> State:
        """No inputs of the short filter yet, and states of zero, (batch, inner, d_state)."""
        states = zeros_beside(self.D, (batch, self.inner, self.d_state), "float32")
        return self.conv.initial_state(batch), states

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The output of one position, and the state after it."""
        u, gate = ops.split(self.in_proj(x), 2, axis=-1)
        u, seen = self.conv.step(u, state[0])
        u = ops.silu(u)
        dt, write, read = self._select(u)
        dt = ops.expand_dims(ops.cast(dt, "float32"), -1)
        entry = dt * ops.expand_dims(u, -1) * ops.expand_dims(write, 1)
        states = ops.exp(dt * self._rates()) * state[1] + entry
        y = ops.cast(ops.sum(states * ops.expand_dims(read, 1), axis=-1), x.dtype) + self.D * u
        return self.out_proj(y * ops.silu(gate)), (seen, states)
