"""S4D."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn.initializers import Normal, Uniform
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, State, zeros_beside
from ember_ml.nn.layers.sequence_mixing.fft_conv import long_conv
from ember_ml.nn.layers.sequence_mixing.mamba import check_steps
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register

EvenSize = Annotated[int, Field(strict=True, ge=2, multiple_of=2)]


@register("layers/s4d")
class S4D(SequenceMixer):
    r"""A diagonal state space that does not depend on the data, computed as a convolution.

    .. math::
        h' = A h + u, \qquad y = W_o \, \mathrm{gelu}(2 \, \mathrm{Re}(C h) + D u)

    with A = -exp(a) + i b for each channel and state, held constant over steps of length dt. A is
    -1/2 + i pi n at first (S4D-Lin).

    Args:
        features: the number of features in and out, each with states of its own.
        d_state: real states of a channel: half as many complex ones.
        dt_min: the smallest step size at first.
        dt_max: the greatest step size at first.

    Shape: (batch, time, features) -> (batch, time, features).

    Example:
        >>> create("layers/s4d", features=4)(ops.ones((2, 5, 4))).shape
        (2, 5, 4)

    Reference: Gu et al., "On the Parameterization and Initialization of Diagonal State Space
    Models", 2022.
    """

    def __init__(
        self,
        features: Size,
        d_state: EvenSize = 32,
        dt_min: Positive = 0.001,
        dt_max: Positive = 0.1,
    ) -> None:
        check_steps("S4D", dt_min, dt_max)
        self.features = features
        self.d_state = d_state
        shape = (features, d_state // 2)
        steps = Uniform(math.log(dt_min), math.log(dt_max))((features, 1))
        turns = ops.arange(d_state // 2, dtype="float32") * math.pi
        self.log_dt = Parameter(steps, decay=False)
        self.log_rate = Parameter(ops.full(shape, math.log(0.5)), decay=False)
        self.turn = Parameter(ops.broadcast_to(turns, shape), decay=False)
        self.read = Parameter(Normal(0.0, 0.5**0.5)((2, *shape)), decay=False)  # C: real, imaginary
        self.skip = Parameter(Normal(0.0, 1.0)((features,)), decay=False)
        self.out_proj = Dense(features, features)

    @property
    def state_size(self) -> int:
        """The states."""
        return self.features * self.d_state

    def _discrete(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Log and phase of the factor of a step, and the real and imaginary parts of 2 C B."""
        wide = (self.log_dt, self.log_rate, self.turn, self.read)
        log_dt, log_rate, turn, read = (ops.cast(v, "float32") for v in wide)
        dt = ops.exp(log_dt)
        rate = -ops.exp(log_rate)
        log, phase = rate * dt, turn * dt
        # B = (exp(dt A) - 1) / A, the input held over a step
        size = ops.exp(log)
        over, across = size * ops.cos(phase) - 1.0, size * ops.sin(phase)
        norm = 2.0 / (ops.square(rate) + ops.square(turn))
        real = (over * rate + across * turn) * norm
        imag = (across * rate - over * turn) * norm
        return log, phase, read[0] * real - read[1] * imag, read[0] * imag + read[1] * real

    def kernel(self, length: int) -> Tensor:
        """The response to a single input, (features, length)."""
        log, phase, real, imag = (ops.expand_dims(v, -1) for v in self._discrete())
        time = ops.arange(length, dtype="float32")
        size, angle = ops.exp(log * time), phase * time
        return ops.sum(size * (real * ops.cos(angle) - imag * ops.sin(angle)), axis=1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mixed."""
        self.check_sequence(x, mask)
        if x.size == 0:
            return x
        if mask is not None:
            x = ops.where(ops.expand_dims(mask, -1), x, 0.0)
        kernel = ops.cast(self.kernel(x.shape[1]), x.dtype)
        y = long_conv(ops.swapaxes(x, 1, 2), kernel, self.skip)
        return self.out_proj(ops.gelu(ops.swapaxes(y, 1, 2)))

    def initial_state(self, batch: int) -> State:
        """Real and imaginary parts of states of zero."""
        zeros = zeros_beside(self.skip, (batch, self.features, self.d_state // 2), "float32")
        return zeros, zeros

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The output of one position, and the state after it."""
        log, phase, real, imag = self._discrete()
        over, across = ops.exp(log) * ops.cos(phase), ops.exp(log) * ops.sin(phase)
        h, g = state
        h, g = over * h - across * g + ops.expand_dims(x, -1), over * g + across * h
        y = ops.cast(ops.sum(real * h - imag * g, axis=-1), x.dtype) + self.skip * x
        return self.out_proj(ops.gelu(y)), (h, g)
