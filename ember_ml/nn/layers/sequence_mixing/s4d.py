"""S4D."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn._checks import require_at_most
from ember_ml.nn.initializers import Normal, Uniform
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing._chunked import zero_state
from ember_ml.nn.layers.sequence_mixing.base import (
    SequenceMixer,
    TensorPair,
    index_range,
    mask_padding,
    positions_after,
    real_lengths,
)
from ember_ml.nn.layers.sequence_mixing.fft_conv import long_conv
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register

EvenSize = Annotated[int, Field(strict=True, ge=2, multiple_of=2)]


@register("layers/s4d")
class S4D(SequenceMixer):
    r"""S4D: a diagonal, time-invariant state space layer, computed as a convolution.

    .. math::
        h' = A h + u, \qquad y = W_o \, \mathrm{gelu}(2 \, \mathrm{Re}(C h) + D u)

    with A = -exp(a) + i b for each channel and state, discretized by zero-order hold with step size
    dt. A is initialized to -1/2 + i pi n (S4D-Lin).

    Args:
        features: Number of input and output features, each with its own states.
        d_state: Number of real states per feature, even: half as many complex ones. Default: 32.
        dt_min: Smallest initial step size, at most `dt_max`. Default: 0.001.
        dt_max: Largest initial step size. Default: 0.1.

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
        require_at_most(self, dt_min=dt_min, dt_max=dt_max)
        self.features = features
        self.d_state = d_state
        shape = (features, d_state // 2)
        log_dt = Uniform(math.log(dt_min), math.log(dt_max))((features, 1))
        frequencies = ops.arange(d_state // 2, dtype="float32") * math.pi
        self.log_dt = Parameter(log_dt, decay=False)
        self.log_rate = Parameter(ops.full(shape, math.log(0.5)), decay=False)
        self.turn = Parameter(ops.broadcast_to(frequencies, shape), decay=False)
        self.read = Parameter(Normal(0.0, 0.5**0.5)((2, *shape)), decay=False)  # C: real, imaginary
        self.skip = Parameter(Normal(0.0, 1.0)((features,)), decay=False)
        self.out_proj = Dense(features, features)

    @property
    def state_size(self) -> int:
        """Number of real values in the state of one example."""
        return self.features * self.d_state

    def _discretize(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return log and phase of exp(dt A), and the real and imaginary parts of 2 C B."""
        parameters = (self.log_dt, self.log_rate, self.turn, self.read)
        log_dt, log_rate, turn, read = (upcast_half(v) for v in parameters)
        dt = ops.exp(log_dt)
        rate = -ops.exp(log_rate)
        log, phase = rate * dt, turn * dt
        # B = (exp(dt A) - 1) / A
        size = ops.exp(log)
        over, across = size * ops.cos(phase) - 1.0, size * ops.sin(phase)
        norm = 2.0 / (ops.square(rate) + ops.square(turn))
        real = (over * rate + across * turn) * norm
        imag = (across * rate - over * turn) * norm
        return log, phase, read[0] * real - read[1] * imag, read[0] * imag + read[1] * real

    def kernel(self, length: int) -> Tensor:
        """Return the impulse response, (features, length)."""
        log, phase, real, imag = (ops.expand_dims(v, -1) for v in self._discretize())
        time = ops.arange(length, dtype=log.dtype)
        size, angle = ops.exp(log * time), phase * time
        return ops.sum(size * (real * ops.cos(angle) - imag * ops.sin(angle)), axis=1)

    def mix(
        self, x: Tensor, mask: Tensor | None, state: TensorPair | None
    ) -> tuple[Tensor, TensorPair | None]:
        """Mix the sequence."""
        x = mask_padding(x, mask)
        kernel = ops.cast(self.kernel(x.shape[1]), x.dtype)
        y = long_conv(ops.swapaxes(x, 1, 2), kernel, self.skip)  # (batch, features, time)
        if state is None:
            return self.out_proj(ops.gelu(ops.swapaxes(y, 1, 2))), None
        response, after = self._continue(x, mask, state)
        y = y + ops.cast(response, x.dtype)
        return self.out_proj(ops.gelu(ops.swapaxes(y, 1, 2))), after

    def _continue(
        self, x: Tensor, mask: Tensor | None, state: TensorPair
    ) -> tuple[Tensor, TensorPair]:
        """Return the response to an earlier state, (batch, features, time), and the last state."""
        time, (real, imag) = x.shape[1], state
        log, phase, read_real, read_imag = self._discretize()
        elapsed = ops.astype(index_range(0, time + 1, log), log.dtype)
        size = ops.exp(ops.expand_dims(log, -1) * elapsed)  # (features, states, time + 1)
        angle = ops.expand_dims(phase, -1) * elapsed
        cosine, sine = size * ops.cos(angle), size * ops.sin(angle)
        weights = (read_real * real - read_imag * imag, -read_real * imag - read_imag * real)
        response = ops.einsum("bfn,fnt->bft", weights[0], cosine[..., 1:])
        response = response + ops.einsum("bfn,fnt->bft", weights[1], sine[..., 1:])
        lengths = None if mask is None else real_lengths(mask)
        if lengths is not None:  # the last real position comes last, so that all decay alike
            places = positions_after(lengths - time, time)
            x = ops.take_along_axis(x, ops.maximum(places, 0)[:, :, None], axis=1)
            x = mask_padding(x, places >= 0)
        x = upcast_half(ops.flip(x, axis=1))
        total = [ops.einsum("btf,fnt->bfn", x, wave[..., :time]) for wave in (cosine, sine)]
        if lengths is None:
            turn_real, turn_imag = cosine[..., time], sine[..., time]
        else:
            turn_real, turn_imag = (
                ops.transpose(ops.take(wave, lengths, axis=2), (2, 0, 1)) for wave in (cosine, sine)
            )
        return response, (
            turn_real * real - turn_imag * imag + total[0],
            turn_real * imag + turn_imag * real + total[1],
        )

    def initial_state(self, batch: int) -> TensorPair:
        """Return the real and imaginary parts of the state before the first position: zeros."""
        zeros = zero_state(self.skip, batch, self.features, self.d_state // 2)
        return zeros, zeros

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the output at one position and the next state."""
        self.check_step(x, state)
        log, phase, read_real, read_imag = self._discretize()
        cosine, sine = ops.exp(log) * ops.cos(phase), ops.exp(log) * ops.sin(phase)
        real, imag = state
        real, imag = (
            cosine * real - sine * imag + ops.expand_dims(x, -1),
            cosine * imag + sine * real,
        )
        y = ops.cast(ops.sum(read_real * real - read_imag * imag, axis=-1), x.dtype)
        return self.out_proj(ops.gelu(y + self.skip * x)), (real, imag)
