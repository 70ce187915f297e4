"""Mamba."""

from __future__ import annotations

import math
from typing import Literal

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn._checks import require_at_most
from ember_ml.nn.initializers import Uniform
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.norms import RMSNorm
from ember_ml.nn.layers.sequence_mixing._chunked import zero_state
from ember_ml.nn.layers.sequence_mixing.base import (
    SequenceMixer,
    TensorPair,
    mask_padding,
)
from ember_ml.nn.layers.sequence_mixing.short_conv import Taps
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.sequence_module import Positions, take_positions
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit, split_between
from ember_ml.registry import register

MIN_STEP_SIZE = 1e-4


def step_size_bias(count: int, dt_min: float, dt_max: float) -> Tensor:
    """Return biases whose softplus is log-uniform between dt_min and dt_max."""
    dt = ops.exp(Uniform(math.log(dt_min), math.log(dt_max))((count,)))
    dt = ops.maximum(dt, MIN_STEP_SIZE)
    return dt + ops.log(-ops.expm1(-dt))


@register("layers/mamba")
class Mamba(SequenceMixer):
    r"""Mamba: a selective state space layer.

    .. math::
        x', z &= W_{in} x, \quad u = \mathrm{silu}(\mathrm{conv}(x')) \\
        h_t &= e^{\Delta_t A} h_{t-1} + \Delta_t B_t u_t \\
        y_t &= W_{out} \big( (C_t h_t + D u_t) \odot \mathrm{silu}(z_t) \big)

    The step size Delta, B and C are projections of u.

    Args:
        features: Number of input and output features.
        d_state: Number of states per channel. Default: 4.
        d_conv: Number of taps of the short convolution. Default: 4.
        expand: Number of inner channels per feature. Default: 2.
        dt_rank: Rank of the projection to the step sizes. Default: features / 16, rounded up.
        dt_min: Smallest initial step size, at most `dt_max`. Default: 0.001.
        dt_max: Largest initial step size. Default: 0.1.
        bias: Whether the input and output projections have biases. Default: False.
        conv_bias: Whether the short convolution has a bias. Default: True.
        select_norm: RMS norms of B, C and the low-rank features of Delta: "none", "fixed" without
            weights, or "learned". Default: "none".
        select_norm_eps: Epsilon of these norms. Default: 1e-6.

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
        conv_bias: bool = True,
        select_norm: Literal["none", "fixed", "learned"] = "none",
        select_norm_eps: Positive = 1e-6,
    ) -> None:
        require_at_most(self, dt_min=dt_min, dt_max=dt_max)
        self.features = features
        self.d_state = d_state
        self.inner = features * expand
        self.dt_rank = dt_rank or math.ceil(features / 16)
        self.in_proj = Dense(features, 2 * self.inner, bias=bias)
        self.conv = Taps(self.inner, d_conv, conv_bias)
        self.x_proj = Dense(self.inner, self.dt_rank + 2 * d_state, bias=False)
        uniform = Uniform(-(self.dt_rank**-0.5), self.dt_rank**-0.5)
        self.dt_weight = Parameter(uniform((self.inner, self.dt_rank)))
        self.dt_bias = Parameter(step_size_bias(self.inner, dt_min, dt_max), decay=False)
        rates = ops.log(ops.arange(1, d_state + 1, dtype="float32"))
        self.A_log = Parameter(ops.tile(rates, (self.inner, 1)), decay=False)
        self.D = Parameter(ops.ones(self.inner), decay=False)
        self.out_proj = Dense(self.inner, features, bias=bias)
        self.select_norm = select_norm
        if select_norm != "none":
            affine = select_norm == "learned"
            self.dt_norm, self.write_norm, self.read_norm = (
                RMSNorm(size, select_norm_eps, affine) for size in (self.dt_rank, d_state, d_state)
            )

    def tensor_split(self) -> TensorSplit:
        """Return the split by inner channels; B, C and low-rank step sizes are summed."""
        own = ("conv.weight", "conv.bias", "dt_weight", "dt_bias", "A_log", "D")
        norms = () if self.select_norm == "none" else ("dt_norm", "write_norm", "read_norm")
        return split_between(
            {"in_proj": Split(0, blocks=2)},
            "out_proj",
            sizes=("inner",),
            splits={**dict.fromkeys(own, Split(0)), "x_proj.weight": Split(1)},
            total=("x_proj",),
            shared=norms,
        )

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example: states and inputs of the convolution."""
        return self.inner * (self.d_state + self.conv.kernel_size - 1)

    def mix(
        self, x: Tensor, mask: Tensor | None, state: TensorPair | None
    ) -> tuple[Tensor, TensorPair | None]:
        """Mix the sequence."""
        operands, gate, window = self._operands(x, mask, None if state is None else state[0])
        if state is None or window is None:
            return self.out_proj(ops.silu_gate(ops.selective_scan(*operands), gate)), None
        y, states = ops.selective_scan_with_state(*operands, state[1])
        return self.out_proj(ops.silu_gate(ops.cast(y, x.dtype), gate)), (window, states)

    def forward_at(self, x: Tensor, at: Positions, mask: Tensor | None = None) -> Tensor:
        """Return the outputs of some positions; others are not gated and projected."""
        self.check_sequence(x, mask)
        operands, gate, _ = self._operands(x, mask, None)
        y = take_positions(ops.selective_scan(*operands), at)
        return self.out_proj(ops.silu_gate(y, take_positions(gate, at)))

    def _operands(
        self, x: Tensor, mask: Tensor | None, window: Tensor | None
    ) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor, Tensor | None]:
        """Return the operands of the scan, the gate, and the next inputs of the convolution."""
        u, gate = ops.split(self.in_proj(x), 2, axis=-1)
        u, window = self.conv.run(mask_padding(u, mask), mask, window, silu=True)
        dt, write, read = self._select(u)
        dt = mask_padding(dt, mask)  # a step of size 0 leaves the state unchanged
        return (u, dt, self._rates(), write, read, self.D), gate, window

    def _rates(self) -> Tensor:
        """Return A."""
        return -ops.exp(self.A_log)

    def _select(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the step sizes, B and C."""
        boundaries = [self.dt_rank, self.dt_rank + self.d_state]
        low_rank, write, read = ops.split(self.x_proj(u), boundaries, axis=-1)
        if self.select_norm != "none":
            low_rank, write = self.dt_norm(low_rank), self.write_norm(write)
            read = self.read_norm(read)
        return ops.softplus_linear(low_rank, self.dt_weight, self.dt_bias), write, read

    def initial_state(self, batch: int) -> TensorPair:
        """Return the inputs of the convolution and the states, (batch, inner, d_state): zeros."""
        states = zero_state(self.D, batch, self.inner, self.d_state)
        return self.conv.initial_state(batch), states

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the output at one position and the next state."""
        self.check_step(x, state)
        u, gate = ops.split(self.in_proj(x), 2, axis=-1)
        u, window = self.conv.step(u, state[0])
        u = ops.silu(u)
        dt, write, read = self._select(u)
        dt = ops.expand_dims(upcast_half(dt), -1)
        update = dt * ops.expand_dims(u, -1) * ops.expand_dims(write, 1)
        states = ops.exp(dt * self._rates()) * state[1] + update
        y = ops.cast(ops.sum(states * ops.expand_dims(read, 1), axis=-1), x.dtype) + self.D * u
        return self.out_proj(ops.silu_gate(y, gate)), (window, states)
