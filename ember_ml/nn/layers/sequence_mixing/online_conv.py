r"""Long causal convolutions of inputs that arrive one by one, or in parts.

.. math:: y_t = \sum_{s \le t} h_{t-s} u_s

The last inputs form a short block, which each new output reads directly. A full block is merged
with its neighbor of the same size, and so on, as the digits of a binary counter. Each merged block
adds its contribution to as many further outputs as it has inputs, by one FFT. A position then costs
O(log^2 n) operations per channel for n taps, on average.

Reference: van der Hoeven, "Relax, but don't be too lazy", 2002.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.sequence_mixing.base import index_range, new_zeros, real_lengths
from ember_ml.nn.states import Nothing, StateNode

LARGEST_BLOCK = 32
"""Largest number of inputs that an output reads directly."""


class _Fields(NamedTuple):
    recent: Tensor
    past: Tensor | Nothing
    blocks: tuple[Tensor | Nothing, ...]
    carried: tuple[Tensor | Nothing, ...]
    kernel: Tensor | Nothing


class ConvState(_Fields, StateNode):
    """State of an online convolution. Positions are counted from the start of a frame.

    Args:
        recent: The inputs that are in no block yet, (batch, inputs, channels). After a part of a
            sequence, these are all of its inputs.
        past: Contribution of the inputs before the frame to its outputs, (batch, outputs,
            channels). Absent if there were none.
        blocks: Inputs of the frame by size: block, twice the block, ... Absent where the number of
            full blocks has a 0 in binary.
        carried: Contribution of each block to the outputs after it.
        kernel: The filters, (channels, taps). Absent before the first position.
    """

    __slots__ = ()

    @classmethod
    def start(cls, batch: int, channels: int, like: Tensor) -> Self:
        """Return the state before the first position.

        Args:
            batch: Batch size.
            channels: Number of channels.
            like: Tensor whose backend, device and dtype the state has.
        """
        return cls(new_zeros(like, (batch, 0, channels)), (), (), (), ())

    @property
    def inputs(self) -> int:
        """Number of inputs of the frame."""
        return self.recent.shape[1] + sum(x.shape[1] for x in self.blocks if isinstance(x, Tensor))

    def extend(self, x: Tensor, kernel: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Self]:
        """Return the outputs of further positions, and the state after them.

        The inputs contribute to later outputs only when the first of them is computed.

        Args:
            x: Inputs, (batch, channels, time), zero at padding.
            kernel: Filters, (channels, taps): all, or as many as there are inputs in the frame.
            mask: Padding mask, (batch, time), with padding last. Default: no padding.

        Returns:
            The outputs, (batch, channels, time), and the state.
        """
        done, time = self.inputs, x.shape[2]
        frame = self._frame_with(x)
        y = ops.long_conv(frame, kernel)[:, :, done:]
        if isinstance(self.past, Tensor):
            now = ops.swapaxes(self.past[:, done : done + time], 1, 2)
            y = y + ops.pad_constant(now, [(0, 0), (0, 0), (0, time - now.shape[2])])
        return y, self._after(frame, time, kernel, mask)

    def after(self, x: Tensor, kernel: Tensor, mask: Tensor | None = None) -> Self:
        """Return the state that `extend` returns, without the outputs."""
        return self._after(self._frame_with(x), x.shape[2], kernel, mask)

    @property
    def is_start(self) -> bool:
        """Whether this is the state before the first position."""
        return not self.inputs and not isinstance(self.past, Tensor)

    def _frame_with(self, x: Tensor) -> Tensor:
        """Return the inputs of the frame with further ones, (batch, channels, inputs)."""
        return ops.concat([ops.swapaxes(self._frame(), 1, 2), x], axis=2) if self.inputs else x

    def _after(self, frame: Tensor, time: int, kernel: Tensor, mask: Tensor | None) -> Self:
        """Return the state after a frame whose last `time` inputs are new."""
        done = frame.shape[2] - time
        recent, past = ops.swapaxes(frame, 1, 2), self.past
        if mask is not None:  # the last real input comes last
            missing = time - real_lengths(mask)
            recent = _shifted(recent, missing)
            if isinstance(past, Tensor):
                past = _shifted(ops.pad_constant(past, [(0, 0), (0, time), (0, 0)]), missing)
        if kernel.shape[1] < done + time:  # later outputs depend on the last inputs only
            dropped = done + time - kernel.shape[1] + 1
            recent = recent[:, dropped:]
            past = past[:, dropped:] if isinstance(past, Tensor) else past
        return type(self)(recent, past, (), (), self.kernel)

    def step(self, x: Tensor, kernel: Tensor) -> tuple[Tensor, Self]:
        """Return the output at one position, (batch, channels), and the next state.

        Args:
            x: Input, (batch, channels).
            kernel: Filters, (channels, taps).
        """
        size, levels = _geometry(kernel.shape[1])
        if self.recent.shape[1] >= size:
            state = type(self)(self.recent[:, :0], self._pending(kernel), (), (), kernel)
            return state.step(x, kernel)
        recent = ops.concat([self.recent, x[:, None]], axis=1)
        count = recent.shape[1]
        taps = ops.swapaxes(ops.flip(kernel[:, :count], axis=1), 0, 1)  # the current input is last
        y = ops.sum(recent[:, -taps.shape[0] :] * taps, axis=1)
        at = self.inputs
        if isinstance(self.past, Tensor) and at < self.past.shape[1]:
            y = y + self.past[:, at]
        for carried in self.carried:
            if isinstance(carried, Tensor):
                y = y + carried[:, at % carried.shape[1]]
        state = type(self)(recent, self.past, self.blocks, self.carried, kernel)
        return y, state if count < size else state._carry(levels)

    def _carry(self, levels: int) -> Self:
        """Return the state with the recent inputs in a block, merged with those of its size."""
        assert isinstance(self.kernel, Tensor)
        block, level = self.recent, 0
        while level < len(self.blocks) and isinstance(self.blocks[level], Tensor):
            block = ops.concat([self.blocks[level], block], axis=1)
            level += 1
        empty = self.recent[:, :0]
        if level == levels:  # the block is the frame, and no output of the next frame needs more
            channels = ops.swapaxes(block, 1, 2)
            past = _future(channels, self.kernel, self.kernel.shape[1] - 1)
            return type(self)(empty, past, (), (), self.kernel)
        blocks, carried = (
            ((),) * level + (new,) + old[level + 1 :]
            for old, new in (
                (self.blocks, block),
                (self.carried, _future(ops.swapaxes(block, 1, 2), self.kernel, block.shape[1])),
            )
        )
        return type(self)(empty, self.past, blocks, carried, self.kernel)

    def _frame(self) -> Tensor:
        """Return all inputs of the frame, (batch, inputs, channels)."""
        full = [block for block in reversed(self.blocks) if isinstance(block, Tensor)]
        return ops.concat([*full, self.recent], axis=1) if full else self.recent

    def take_rows(self, indices: Tensor) -> Self:
        """Return the states of some examples."""
        indices = indices.to_backend(self.recent.backend)

        def take(x: Tensor | Nothing) -> Tensor | Nothing:
            return ops.take(x, indices, axis=0) if isinstance(x, Tensor) else ()

        recent = ops.take(self.recent, indices, axis=0)
        blocks, carried = (tuple(map(take, part)) for part in (self.blocks, self.carried))
        return type(self)(recent, take(self.past), blocks, carried, self.kernel)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Return the states of several batches as one, in a new frame."""
        kernel = next((p.kernel for p in parts if isinstance(p.kernel, Tensor)), None)
        if kernel is None:  # no output was computed alone: there are inputs only
            count = max(part.inputs for part in parts)
            pads = [[(0, 0), (count - part.inputs, 0), (0, 0)] for part in parts]
            aligned = [ops.pad_constant(p.recent, pad) for p, pad in zip(parts, pads, strict=True)]
            return cls(ops.concat(aligned, axis=0), (), (), (), ())
        recent = ops.concat([part.recent[:, :0] for part in parts], axis=0)
        past = ops.concat([part._pending(kernel) for part in parts], axis=0)
        return cls(recent, past, (), (), kernel)

    def _pending(self, kernel: Tensor) -> Tensor:
        """Return the contribution of all inputs to further outputs, (batch, taps - 1, channels)."""
        length = kernel.shape[1] - 1
        frame = self._frame()
        pending = _future(ops.swapaxes(frame, 1, 2), kernel, length) if frame.shape[1] else None
        if not isinstance(self.past, Tensor):
            zeros = new_zeros(kernel, (frame.shape[0], length, frame.shape[2]))
            return zeros if pending is None else pending
        past = self.past[:, frame.shape[1] :]
        past = ops.pad_constant(past, [(0, 0), (0, length - past.shape[1]), (0, 0)])
        return past if pending is None else past + pending


def _shifted(x: Tensor, count: Tensor) -> Tensor:
    """Return (batch, time, channels) moved toward the end by a number of positions, (batch,).

    Positions that come from outside are zero.
    """
    time = x.shape[1]
    places = index_range(0, time, x) - count[:, None]
    is_inside = ops.logical_and(places >= 0, places < time)[:, :, None]
    moved = ops.take_along_axis(x, ops.clip(places, 0, max(time - 1, 0))[:, :, None], axis=1)
    return ops.where(is_inside, moved, 0.0)


def _geometry(taps: int) -> tuple[int, int]:
    """Return the size of a block, and the number of doublings until it spans all taps."""
    levels = 0
    while taps > LARGEST_BLOCK << levels:
        levels += 1
    return -(-taps // (1 << levels)), levels


def _future(x: Tensor, kernel: Tensor, count: int) -> Tensor:
    """Return the contribution of inputs to the outputs after them, (batch, count, channels).

    Args:
        x: Inputs, (batch, channels, time).
        kernel: Filters, (channels, taps).
        count: Number of outputs.
    """
    time = x.shape[2]
    if kernel.shape[1] > 1:
        y = ops.fft_conv(x, kernel[:, : time + count], "full")[:, :, time : time + count]
    else:
        y = x[:, :, :0]
    y = ops.pad_constant(y, [(0, 0), (0, 0), (0, count - y.shape[2])])
    return ops.swapaxes(y, 1, 2)
