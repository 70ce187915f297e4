"""How a parameter divides among processes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor


@dataclass(frozen=True)
class Split:
    """How a parameter divides among processes: along one axis, block by block.

    The axis consists of stacked blocks, such as the queries, keys and values of one matrix. Each
    process has an equal part of each block.

    Args:
        axis: The axis.
        blocks: Number of blocks of equal length. Default: 1.
        sizes: Lengths of the blocks, if they differ. Default: `blocks` equal ones.
        kept: Indices of blocks that each process has whole, such as a key head that all query
            heads share; only with `sizes`. Default: none.

    Example:
        >>> from ember_ml.nn.splitting import Split
        >>> gate_and_value = tensor.array([1.0, 2.0, 3.0, 4.0])
        >>> Split(0, blocks=2).local(gate_and_value, rank=0, size=2).tolist()
        [1.0, 3.0]
    """

    axis: int
    blocks: int = 1
    sizes: tuple[int, ...] | None = None
    kept: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.axis < 0 or self.blocks < 1:
            raise ArgumentError(
                f"Split: axis must be at least 0 and blocks at least 1, not {self.axis} and "
                f"{self.blocks}"
            )
        if self.sizes is not None and (self.blocks != 1 or min(self.sizes, default=0) < 1):
            raise ArgumentError(
                f"Split: sizes must be positive lengths, without blocks, not {self.sizes} with "
                f"blocks={self.blocks}"
            )
        count = len(self.sizes or ())
        if any(not 0 <= at < count for at in self.kept):
            raise ArgumentError(f"Split: kept must be indices of sizes, not {self.kept}")

    def problem(self, shape: Sequence[int], size: int) -> str | None:
        """Return why a parameter cannot be split among processes; None if it can.

        Args:
            shape: Shape of the whole parameter.
            size: Number of processes.
        """
        if self.axis >= len(shape):
            return f"it has no axis {self.axis}"
        length = shape[self.axis]
        axis = f"the length of axis {self.axis} ({length})"
        if self.sizes is not None and sum(self.sizes) != length:
            return f"{axis} is not the sum of {self.sizes}"
        if length % self.blocks:
            return f"{axis} is not divisible by {self.blocks} blocks"
        for at, block in enumerate(self._lengths(length)):
            if at not in self.kept and block % size:
                stacked = "" if block == length else f", in blocks of {block},"
                return f"{axis}{stacked} is not divisible by {size}"
        return None

    def local_shape(self, shape: Sequence[int], size: int) -> tuple[int, ...]:
        """Return the shape of each process's part of a parameter.

        Args:
            shape: Shape of the whole parameter.
            size: Number of processes.
        """
        self._check(shape, size)
        length = sum(self._part_lengths(shape[self.axis], size))
        return (*shape[: self.axis], length, *shape[self.axis + 1 :])

    def local(self, whole: Tensor, rank: int, size: int) -> Tensor:
        """Return the part of one process.

        Args:
            whole: The whole parameter.
            rank: Number of the process.
            size: Number of processes.
        """
        self._check(whole.shape, size)
        parts = []
        for at, block in enumerate(self._cut(whole, self._lengths(whole.shape[self.axis]))):
            length = block.shape[self.axis] // size
            is_kept = at in self.kept
            parts.append(block if is_kept else self._slice(block, rank * length, length))
        return self._join(parts)

    def whole(self, parts: Sequence[Tensor]) -> Tensor:
        """Return the whole parameter.

        Args:
            parts: The part of each process.
        """
        blocks = zip(*[self.blocks_of(part, len(parts)) for part in parts], strict=True)
        return self._join(
            [x for at, each in enumerate(blocks) for x in (each[:1] if at in self.kept else each)]
        )

    def blocks_of(self, local: Tensor, size: int) -> list[Tensor]:
        """Return the parts of the blocks that a process has.

        Args:
            local: The part of the process.
            size: Number of processes.
        """
        length = local.shape[self.axis] * size if self.sizes is None else sum(self.sizes)
        return self._cut(local, self._part_lengths(length, size))

    def distinct(self, local: Tensor, rank: int, size: int) -> list[Tensor]:
        """Return what a process has that none of a lower rank has.

        A sum over all processes, such as the norm of a gradient, then counts each element once.

        Args:
            local: The part of the process.
            rank: Number of the process.
            size: Number of processes.
        """
        if rank == 0 or not self.kept:
            return [local]
        blocks = enumerate(self.blocks_of(local, size))
        return [block for at, block in blocks if at not in self.kept]

    def _check(self, shape: Sequence[int], size: int) -> None:
        problem = self.problem(shape, size)
        if problem is not None:
            raise ArgumentError(
                f"Split: a parameter of shape {tuple(shape)} cannot be split among {size} "
                f"processes: {problem}"
            )

    def _lengths(self, length: int) -> list[int]:
        """Return the lengths of the blocks of the whole parameter."""
        return list(self.sizes or [length // self.blocks] * self.blocks)

    def _part_lengths(self, length: int, size: int) -> list[int]:
        """Return the lengths of the parts of the blocks that each process has."""
        blocks = enumerate(self._lengths(length))
        return [block if at in self.kept else block // size for at, block in blocks]

    def _cut(self, x: Tensor, lengths: Sequence[int]) -> list[Tensor]:
        starts = itertools.accumulate(lengths, initial=0)
        return [self._slice(x, start, n) for start, n in zip(starts, lengths, strict=False)]

    def _slice(self, x: Tensor, start: int, length: int) -> Tensor:
        return x[(slice(None),) * self.axis + (slice(start, start + length),)]

    def _join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0] if len(parts) == 1 else ops.concat(parts, axis=self.axis)
