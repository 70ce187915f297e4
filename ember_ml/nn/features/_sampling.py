"""A sample of the rows of a stream, from which quantiles are computed."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml import ops
from ember_ml._core.dtype import int64
from ember_ml._core.tensor import Tensor

_MULTIPLIER = 2654435769
"""2**32 divided by the golden ratio: multiples of it, modulo 2**32, are spread evenly."""


class RowSample:
    """The rows of a stream with the smallest keys; all rows as long as there is space.

    The key of a row depends on its position in the stream only, not on how the stream is divided
    into batches.

    Args:
        size: Number of rows to keep.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._count = 0
        self._rows: list[Tensor] = []
        self._keys: list[Tensor] = []

    def add(self, x: Tensor) -> None:
        """Add the rows of a matrix.

        Args:
            x: Matrix.
        """
        start = self._count % 2**31  # the products fit into int64
        self._count += x.shape[0]
        positions = ops.cumsum(ops.ones_like(x[:, 0], dtype=int64), axis=0) + (start - 1)
        self._rows.append(x)
        self._keys.append(positions * _MULTIPLIER % 2**32)
        if sum(len(keys) for keys in self._keys) > 2 * self.size:
            self._cut()

    def _cut(self) -> None:
        """Keep the rows with the smallest keys."""
        keys = ops.concatenate(self._keys, axis=0)
        rows = ops.concatenate(self._rows, axis=0)
        if len(keys) > self.size:
            order = ops.argsort(keys)[: self.size]
            keys, rows = keys[order], rows[order]
        self._keys, self._rows = [keys], [rows]

    def quantiles(self, shares: Sequence[float]) -> list[Tensor]:
        """Return quantiles of each column, linearly interpolated, without its NaN.

        Args:
            shares: Numbers from 0 to 1.
        """
        self._cut()
        rows = self._rows[0]
        missing = ops.isnan(rows)
        values = ops.where(missing, float("inf"), rows) if bool(ops.any(missing)) else rows
        ordered = ops.sort(values, axis=0, stable=False)
        last = ops.sum(ops.astype(~missing, int64), axis=0) - 1
        return [_at(ordered, ops.astype(ops.maximum(last, 0), rows.dtype) * q) for q in shares]


def _at(ordered: Tensor, position: Tensor) -> Tensor:
    """Return the value of each sorted column at a fractional position."""
    below = ops.floor(position)
    fraction = position - below
    low = _row(ordered, below)
    high = _row(ordered, ops.ceil(position))
    return ops.where(fraction > 0, low + (high - low) * fraction, low)


def _row(ordered: Tensor, position: Tensor) -> Tensor:
    index = ops.expand_dims(ops.astype(position, int64), 0)
    row = ops.take_along_axis(ordered, index, axis=0)[0]
    return ops.where(ops.isinf(row), 0.0, row)  # a column without values
