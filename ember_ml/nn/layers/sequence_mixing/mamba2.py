"""Mamba-2."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn.initializers import Uniform
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.norms import RMSNorm
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, State, zeros_beside
from ember_ml.nn.layers.sequence_mixing.mamba import check_steps, step_bias
from ember_ml.nn.layers.sequence_mixing.short_conv import Taps
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


def ssd(
    x: Tensor, dt: Tensor, a: Tensor, write: Tensor, read: Tensor, chunk_size: int = 32
) -> Tensor:
    r"""The scan of Mamba-2 by matrix products within chunks of time.

    .. math:: h_t = e^{\Delta_t A} h_{t-1} + \Delta_t x_t B_t^\top, \qquad y_t = h_t C_t

    Args:
        x: (batch, time, heads, head_dim).
        dt: the step sizes, (batch, time, heads).
        a: the decays, below zero, (heads,).
        write: B, (batch, time, groups, d_state); the heads of a group share it.
        read: C, (batch, time, groups, d_state).
        chunk_size: positions in a chunk.
    """
    batch, time, heads, size = x.shape
    groups = write.shape[2]
    chunk = min(chunk_size, time)
    x, dt, write, read = (_chunks(v, chunk) for v in (x, dt, write, read))
    count = x.shape[1]
    lead = (batch, count, chunk, groups)
    dt = ops.moveaxis(ops.reshape(dt, (*lead, -1)), 2, -1)  # (b, c, g, r, l)
    total = ops.cumsum(dt * ops.reshape(a, (groups, -1, 1)), axis=-1)
    x = ops.transpose(ops.reshape(x, (*lead, heads // groups, size)), (0, 1, 3, 4, 2, 5))
    write, read = (ops.swapaxes(v, 2, 3) for v in (write, read))  # (b, c, g, l, n)
    inside = ops.expand_dims(ops.matmul(read, ops.swapaxes(write, 3, 4)), 3)
    y = ops.matmul(inside * _fading(total) * ops.expand_dims(dt, 4), x)
    left = ops.exp(total[..., -1:] - total) * dt
    entry = ops.matmul(ops.swapaxes(x * ops.expand_dims(left, -1), 4, 5), _spread(write))
    final = ops.expand_dims(ops.exp(total[..., -1:]), -1)
    after, _ = ops.linear_recurrence(final, entry)
    before = ops.concat([ops.zeros_like(after[:, :1]), after[:, :-1]], axis=1)
    carried = ops.matmul(_spread(read), ops.swapaxes(before, 4, 5))
    y = y + carried * ops.expand_dims(ops.exp(total), -1)
    y = ops.reshape(ops.transpose(y, (0, 1, 4, 2, 3, 5)), (batch, count * chunk, heads, size))
    return y[:, :time]


def _chunks(x: Tensor, chunk: int) -> Tensor:
    """(batch, chunks, chunk, ...), filled with zeros, which neither write nor fade."""
    missing = -x.shape[1] % chunk
    if missing:
        x = ops.pad_constant(x, [(0, 0), (0, missing)] + [(0, 0)] * (x.ndim - 2))
    return ops.reshape(x, (x.shape[0], -1, chunk, *x.shape[2:]))


def _spread(x: Tensor) -> Tensor:
    """(b, c, g, l, n) for each head of a group."""
    return ops.expand_dims(x, 3)


def _fading(total: Tensor) -> Tensor:
    """What is left at each position (rows) of what came at each other; 0 of what comes later."""
    length = total.shape[-1]
    between = ops.expand_dims(total, -1) - ops.expand_dims(total, -2)
    past = ops.tril(ops.ones((length, length), dtype="bool"))
    return ops.exp(ops.where(past, between, -float("inf")))


@register("layers/mamba2", aliases=["mamba-2"])
class Mamba2(SequenceMixer):
    r"""A selective state space with one decay a head, computed by matrix products.

    .. math::
        z, x', B, C, \Delta &= W_{in} x, \quad
            (u, B, C) = \mathrm{silu}(\mathrm{conv}(x', B, C)) \\
        h_t &= e^{\Delta_t A} h_{t-1} + \Delta_t u_t B_t^\top \\
        y_t &= W_{out} \, \mathrm{RMSNorm} \big( (h_t C_t + D u_t) \odot \mathrm{silu}(z_t) \big)

    Args:
        features: the number of features in and out.
        d_state: the length of B and of C.
        head_dim: channels of a head.
        num_groups: how many groups of heads have a B and a C of their own.
        d_conv: taps of the short filter.
        expand: channels inside, as a multiple of the features.
        dt_min: the smallest step size at first.
        dt_max: the greatest step size at first.
        chunk_size: positions that one product of matrices takes.

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
    ) -> None:
        check_steps("Mamba2", dt_min, dt_max)
        self.features = features
        self.inner = features * expand
        if self.inner % (head_dim * num_groups):
            raise ArgumentError(
                f"Mamba2: the {self.inner} inner channels must be a multiple of "
                f"head_dim={head_dim} times num_groups={num_groups}"
            )
        self.d_state, self.head_dim, self.num_groups = d_state, head_dim, num_groups
        self.num_heads = self.inner // head_dim
        self.chunk_size = chunk_size
        self.shared = num_groups * d_state
        filtered = self.inner + 2 * self.shared
        self.in_proj = Dense(features, self.inner + filtered + self.num_heads, bias=False)
        self.conv = Taps(filtered, d_conv)
        self.dt_bias = Parameter(step_bias(self.num_heads, dt_min, dt_max), decay=False)
        self.A_log = Parameter(ops.log(Uniform(1.0, 16.0)((self.num_heads,))), decay=False)
        self.D = Parameter(ops.ones(self.num_heads), decay=False)
        self.norm = RMSNorm(self.inner, eps=1e-5)
        self.out_proj = Dense(self.inner, features, bias=False)

    @property
    def state_size(self) -> int:
        """The states, and the inputs of the short filter that a later position still sees."""
        return self.inner * self.d_state + self.conv.channels * (self.conv.kernel_size - 1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mixed."""
        self.check_sequence(x, mask)
        if x.size == 0:
            return x
        gate, u, dt = self._project(x)
        dt = ops.softplus(ops.cast(dt + self.dt_bias, "float32"))
        if mask is not None:
            padding = ops.expand_dims(mask, -1)
            u, dt = ops.where(padding, u, 0.0), ops.where(padding, dt, 0.0)
        u = ops.silu(ops.swapaxes(self.conv(ops.swapaxes(u, 1, 2)), 1, 2))
        value, write, read = (ops.cast(v, "float32") for v in self._heads(u))
        y = ssd(value, dt, -ops.exp(ops.cast(self.A_log, "float32")), write, read, self.chunk_size)
        return self._read_out(y + ops.expand_dims(self.D, -1) * value, gate)

    def _project(self, x: Tensor) -> list[Tensor]:
        """The gate, what the short filter takes, and the step sizes."""
        return ops.split(self.in_proj(x), [self.inner, self.inner + self.conv.channels], axis=-1)

    def _heads(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the states take, what writes it and what reads it, by heads and groups."""
        parts = [self.inner, self.inner + self.shared]
        value, write, read = ops.split(u, parts, axis=-1)
        groups = (*u.shape[:-1], self.num_groups, self.d_state)
        heads = (*u.shape[:-1], self.num_heads, self.head_dim)
        return ops.reshape(value, heads), ops.reshape(write, groups), ops.reshape(read, groups)

    def _read_out(self, y: Tensor, gate: Tensor) -> Tensor:
        y = ops.cast(ops.reshape(y, gate.shape), gate.dtype) * ops.silu(gate)
        return self.out_proj(self.norm(y))

    def initial_state(self, batch: int) -> State:
        """No inputs of the short filter yet, and states of zero."""
        shape = (batch, self.num_heads, self.head_dim, self.d_state)
        states = zeros_beside(self.D, shape, "float32")
        return self.conv.initial_state(batch), states

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The output of one position, and the state after it."""
        gate, u, dt = self._project(x)
        u, seen = self.conv.step(u, state[0])
        value, write, read = (ops.cast(v, "float32") for v in self._heads(ops.silu(u)))
        each = self.num_heads // self.num_groups
        write, read = (ops.expand_dims(ops.repeat(v, each, axis=1), 2) for v in (write, read))
        dt = ops.softplus(ops.cast(dt + self.dt_bias, "float32"))
        decay = ops.reshape(
            ops.exp(-dt * ops.exp(ops.cast(self.A_log, "float32"))), (*dt.shape, 1, 1)
        )
        entry = ops.expand_dims(ops.expand_dims(dt, -1) * value, -1) * write
        states = decay * state[1] + entry
        y = ops.sum(states * read, axis=-1) + ops.expand_dims(self.D, -1) * value
        return self._read_out(y, gate), (seen, states)
