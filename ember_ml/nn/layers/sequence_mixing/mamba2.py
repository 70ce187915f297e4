"""Mamba-2."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn._checks import require_at_most, require_divisible
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
from ember_ml.nn.layers.sequence_mixing.mamba import step_size_bias
from ember_ml.nn.layers.sequence_mixing.short_conv import Taps
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit, split_between
from ember_ml.registry import register


def ssd(
    x: Tensor,
    dt: Tensor,
    a: Tensor,
    write: Tensor,
    read: Tensor,
    chunk_size: int = 32,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Compute the scan of Mamba-2 by matrix products within chunks (state space duality).

    .. math:: h_t = e^{\Delta_t A} h_{t-1} + \Delta_t x_t B_t^\top, \qquad y_t = h_t C_t

    Args:
        x: Input, (batch, time, heads, head_dim).
        dt: Step sizes Delta, (batch, time, heads).
        a: Negative decay rates A, (heads,).
        write: B, (batch, time, groups, d_state); the heads of a group share it.
        read: C, (batch, time, groups, d_state).
        chunk_size: Number of positions per chunk. Default: 32.
        state: The state h before the first position, (batch, heads, head_dim, d_state). Default:
            zeros.

    Returns:
        The output y, (batch, time, heads, head_dim), and the state after the last position.
    """
    batch, time, heads, size = x.shape
    groups = write.shape[2]
    chunk = min(chunk_size, time)
    x, dt, write, read = (_split_chunks(v, chunk) for v in (x, dt, write, read))
    count = x.shape[1]
    lead = (batch, count, chunk, groups)
    dt = ops.moveaxis(ops.reshape(dt, (*lead, -1)), 2, -1)  # (b, c, g, r, l)
    total = ops.cumsum(dt * ops.reshape(a, (groups, -1, 1)), axis=-1)
    x = ops.transpose(ops.reshape(x, (*lead, heads // groups, size)), (0, 1, 3, 4, 2, 5))
    write, read = (ops.swapaxes(v, 2, 3) for v in (write, read))  # (b, c, g, l, n)
    scores = ops.expand_dims(ops.matmul(read, ops.swapaxes(write, 3, 4)), 3)
    y = ops.matmul(scores * _causal_decay(total) * ops.expand_dims(dt, 4), x)
    weights = ops.exp(total[..., -1:] - total) * dt
    weighted = ops.swapaxes(x * ops.expand_dims(weights, -1), 4, 5)
    update = ops.matmul(weighted, ops.expand_dims(write, 3))  # (b, c, g, r, p, n)
    chunk_decay = ops.expand_dims(ops.exp(total[..., -1:]), -1)
    first = None
    if state is not None:
        first = ops.reshape(state, (batch, groups, heads // groups, size, -1))
    after, last = ops.linear_recurrence(chunk_decay, update, first)
    start = ops.zeros_like(after[:, :1]) if first is None else ops.expand_dims(first, 1)
    before = ops.concat([start, after[:, :-1]], axis=1)
    carried = ops.matmul(ops.expand_dims(read, 3), ops.swapaxes(before, 4, 5))
    y = y + carried * ops.expand_dims(ops.exp(total), -1)
    y = ops.reshape(ops.transpose(y, (0, 1, 4, 2, 3, 5)), (batch, count * chunk, heads, size))
    return y[:, :time], ops.reshape(last, (batch, heads, size, -1))


def _split_chunks(x: Tensor, chunk: int) -> Tensor:
    """Reshape to (batch, chunks, chunk, ...), padded with zeros, which do not affect the state."""
    missing = -x.shape[1] % chunk
    if missing:
        x = ops.pad_constant(x, [(0, 0), (0, missing)] + [(0, 0)] * (x.ndim - 2))
    return ops.reshape(x, (x.shape[0], -1, chunk, *x.shape[2:]))


def _causal_decay(total: Tensor) -> Tensor:
    """Return the decay from each source (column) to each target (row), 0 for later sources."""
    length = total.shape[-1]
    exponent = ops.expand_dims(total, -1) - ops.expand_dims(total, -2)
    causal = ops.tril(ops.ones((length, length), dtype="bool"))
    return ops.exp(ops.where(causal, exponent, -float("inf")))


@register("layers/mamba2", aliases=["mamba-2"])
class Mamba2(SequenceMixer):
    r"""Mamba-2: a selective state space with one decay per head, computed by matrix products.

    .. math::
        z, x', B, C, \Delta &= W_{in} x, \quad
            (u, B, C) = \mathrm{silu}(\mathrm{conv}(x', B, C)) \\
        h_t &= e^{\Delta_t A} h_{t-1} + \Delta_t u_t B_t^\top \\
        y_t &= W_{out} \, \mathrm{RMSNorm} \big( (h_t C_t + D u_t) \odot \mathrm{silu}(z_t) \big)

    Args:
        features: Number of input and output features.
        d_state: Length of B and of C. Default: 16.
        head_dim: Number of channels per head. Default: 32.
        num_groups: Number of groups of heads with their own B and C. `features * expand` must be
            divisible by `head_dim * num_groups`. Default: 1.
        d_conv: Number of taps of the short convolution. Default: 4.
        expand: Number of inner channels per feature. Default: 2.
        dt_min: Smallest initial step size, at most `dt_max`. Default: 0.001.
        dt_max: Largest initial step size. Default: 0.1.
        chunk_size: Number of positions per chunk of the scan. Default: 32.
        bias: Whether the input and output projections have biases. Default: False.
        conv_bias: Whether the short convolution has a bias. Default: True.
        norm_eps: Epsilon of the RMS norm. Default: 1e-5.

    Shape: (batch, time, features) -> (batch, time, features).

    Example:
        >>> create("layers/mamba2", features=8, head_dim=4)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)

    Reference: Dao and Gu, "Transformers are SSMs", 2024.
    """

    def __init__(
        self,
        features: Size,
        d_state: Size = 16,
        head_dim: Size = 32,
        num_groups: Size = 1,
        d_conv: Size = 4,
        expand: Size = 2,
        dt_min: Positive = 0.001,
        dt_max: Positive = 0.1,
        chunk_size: Size = 32,
        bias: bool = False,
        conv_bias: bool = True,
        norm_eps: Positive = 1e-5,
    ) -> None:
        require_at_most(self, dt_min=dt_min, dt_max=dt_max)
        self.features = features
        self.inner = features * expand
        sizes = {"features * expand": self.inner, "head_dim * num_groups": head_dim * num_groups}
        require_divisible(self, **sizes)
        self.d_state, self.head_dim, self.num_groups = d_state, head_dim, num_groups
        self.num_heads = self.inner // head_dim
        self.chunk_size = chunk_size
        self.shared = num_groups * d_state
        filtered = self.inner + 2 * self.shared
        self.in_proj = Dense(features, self.inner + filtered + self.num_heads, bias=bias)
        self.conv = Taps(filtered, d_conv, conv_bias)
        self.dt_bias = Parameter(step_size_bias(self.num_heads, dt_min, dt_max), decay=False)
        self.A_log = Parameter(ops.log(Uniform(1.0, 16.0)((self.num_heads,))), decay=False)
        self.D = Parameter(ops.ones(self.num_heads), decay=False)
        self.norm = RMSNorm(self.inner, eps=norm_eps)
        self.out_proj = Dense(self.inner, features, bias=bias)

    def tensor_split(self) -> TensorSplit:
        """Return the split by heads; B and C of one group are computed by each process."""
        grouped = self.num_groups > 1
        filtered = (self.inner, self.shared, self.shared)
        inputs = (self.inner, *filtered, self.num_heads)
        own = ("dt_bias", "A_log", "D", "norm.weight")
        taps = Split(0, sizes=filtered, kept=() if grouped else (1, 2))
        return split_between(
            {"in_proj": Split(0, sizes=inputs, kept=() if grouped else (2, 3))},
            "out_proj",
            sizes=(
                *("num_heads", "inner", "norm.features"),
                *(("num_groups", "shared") if grouped else ()),
            ),
            splits={**dict.fromkeys(own, Split(0)), "conv.weight": taps, "conv.bias": taps},
            regions=("norm",),
        )

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example: states and inputs of the convolution."""
        return self.inner * self.d_state + self.conv.channels * (self.conv.kernel_size - 1)

    def mix(
        self, x: Tensor, mask: Tensor | None, state: TensorPair | None
    ) -> tuple[Tensor, TensorPair | None]:
        """Mix the sequence."""
        window, states = state or (None, None)
        gate, u, dt = self._project(x)
        dt = mask_padding(self._step_sizes(dt), mask)
        u, window = self.conv.run(mask_padding(u, mask), mask, window, silu=True)
        value, write, read = self._split_heads(u)
        rates = -ops.exp(upcast_half(self.A_log))
        y, states = ssd(value, dt, rates, write, read, self.chunk_size, states)
        y = self._read_out(y + ops.expand_dims(self.D, -1) * value, gate)
        return y, None if window is None else (window, states)

    def _project(self, x: Tensor) -> list[Tensor]:
        """Return the gate, the input of the convolution, and the raw step sizes."""
        return ops.split(self.in_proj(x), [self.inner, self.inner + self.conv.channels], axis=-1)

    def _step_sizes(self, dt: Tensor) -> Tensor:
        return ops.softplus(upcast_half(dt + self.dt_bias))

    def _split_heads(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return values by head, and B and C by group, at least in float32."""
        boundaries = [self.inner, self.inner + self.shared]
        value, write, read = ops.split(upcast_half(u), boundaries, axis=-1)
        groups = (*u.shape[:-1], self.num_groups, self.d_state)
        heads = (*u.shape[:-1], self.num_heads, self.head_dim)
        return ops.reshape(value, heads), ops.reshape(write, groups), ops.reshape(read, groups)

    def _read_out(self, y: Tensor, gate: Tensor) -> Tensor:
        y = ops.cast(ops.reshape(y, gate.shape), gate.dtype)
        return self.out_proj(self.norm(y, gate, gate_first=True))

    def initial_state(self, batch: int) -> TensorPair:
        """Return the inputs of the convolution and the states of the heads: zeros."""
        shape = (batch, self.num_heads, self.head_dim, self.d_state)
        return self.conv.initial_state(batch), zero_state(self.D, *shape)

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the output at one position and the next state."""
        self.check_step(x, state)
        gate, u, dt = self._project(x)
        u, window = self.conv.step(u, state[0])
        value, write, read = self._split_heads(ops.silu(u))
        heads_per_group = self.num_heads // self.num_groups
        write, read = (
            ops.expand_dims(ops.repeat(v, heads_per_group, axis=1), 2) for v in (write, read)
        )
        dt = self._step_sizes(dt)
        decay = ops.exp(-dt * ops.exp(upcast_half(self.A_log)))
        update = ops.expand_dims(ops.expand_dims(dt, -1) * value, -1) * write
        states = ops.reshape(decay, (*dt.shape, 1, 1)) * state[1] + update
        y = ops.sum(states * read, axis=-1) + ops.expand_dims(self.D, -1) * value
        return self._read_out(y, gate), (window, states)
