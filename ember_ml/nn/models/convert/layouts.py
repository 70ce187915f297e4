"""Layouts: how the value of a variable is stored in the tensors of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.parameter import Variable

Shape = tuple[int, ...]


class Layout(Protocol):
    """Conversion between the tensors of a checkpoint and the value of a variable."""

    def shapes(self, shape: Shape) -> list[Shape]:
        """Return the shapes of the tensors for a value of a shape."""
        ...

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the value."""
        ...

    def write(self, value: Tensor) -> list[Tensor]:
        """Return the tensors."""
        ...


class Same:
    """One tensor, unchanged."""

    def shapes(self, shape: Shape) -> list[Shape]:
        """Return the shape of the value."""
        return [shape]

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the tensor."""
        return tensors[0]

    def write(self, value: Tensor) -> list[Tensor]:
        """Return the value."""
        return [value]


class Transposed:
    """Matrix of shape (in_features, out_features), as in GPT-2."""

    def shapes(self, shape: Shape) -> list[Shape]:
        """Return the reversed shape."""
        return [shape[::-1]]

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the transposed tensor."""
        return ops.swapaxes(tensors[0], 0, 1)

    def write(self, value: Tensor) -> list[Tensor]:
        """Return the transposed value."""
        return [ops.swapaxes(value, 0, 1)]


class Filters:
    """Filters of a depthwise convolution, with an axis for the input channel."""

    def shapes(self, shape: Shape) -> list[Shape]:
        """Return (channels, 1, kernel_size)."""
        return [(shape[0], 1, shape[1])]

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the filters of shape (channels, kernel_size)."""
        return tensors[0][:, 0]

    def write(self, value: Tensor) -> list[Tensor]:
        """Return the filters of shape (channels, 1, kernel_size)."""
        return [value[:, None]]


class Stacked:
    """Several tensors, stacked along the rows of the value.

    Args:
        rows: Number of rows of each tensor.
    """

    def __init__(self, *rows: int) -> None:
        self.rows = rows

    def shapes(self, shape: Shape) -> list[Shape]:
        """Return the shape of each tensor."""
        return [(count, *shape[1:]) for count in self.rows]

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the concatenated rows."""
        return ops.concat(list(tensors), axis=0)

    def write(self, value: Tensor) -> list[Tensor]:
        """Return the rows of each tensor."""
        ends = [sum(self.rows[: at + 1]) for at in range(len(self.rows))]
        return [value[end - count : end] for end, count in zip(ends, self.rows, strict=True)]


class Shifted:
    """One tensor, to which a number is added: norms of Gemma, which multiply by 1 + weight.

    Args:
        shift: The number.
    """

    def __init__(self, shift: float) -> None:
        self.shift = shift

    def shapes(self, shape: Shape) -> list[Shape]:
        """Return the shape of the value."""
        return [shape]

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the tensor plus the number."""
        return tensors[0] + self.shift

    def write(self, value: Tensor) -> list[Tensor]:
        """Return the value minus the number."""
        return [value - self.shift]


class ByHead:
    """Queries, keys and values of each head in turn, as in GPT-NeoX.

    Args:
        num_heads: Number of heads.
    """

    def __init__(self, num_heads: int) -> None:
        self.num_heads = num_heads

    def shapes(self, shape: Shape) -> list[Shape]:
        """Return the shape of the value."""
        return [shape]

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return all queries, then all keys, then all values."""
        return self._swapped(tensors[0], (self.num_heads, 3))

    def write(self, value: Tensor) -> list[Tensor]:
        """Return the rows of each head in turn."""
        return [self._swapped(value, (3, self.num_heads))]

    def _swapped(self, x: Tensor, parts: tuple[int, int]) -> Tensor:
        return ops.reshape(ops.swapaxes(ops.reshape(x, (*parts, -1, *x.shape[1:])), 0, 1), x.shape)


class ExpertMatrices:
    """One or several matrices of each expert, stacked along the rows and then by expert.

    Args:
        num_experts: Number of experts.
        parts: Number of matrices of an expert.
    """

    def __init__(self, num_experts: int, parts: int = 1) -> None:
        self.num_experts, self.parts = num_experts, parts

    def shapes(self, shape: Shape) -> list[Shape]:
        """Return the shapes of the matrices, expert by expert."""
        return [(shape[1] // self.parts, shape[2])] * (self.num_experts * self.parts)

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the stacked matrices, (experts, rows, columns)."""
        starts = range(0, len(tensors), self.parts)
        return ops.stack([ops.concat(list(tensors[at : at + self.parts]), axis=0) for at in starts])

    def write(self, value: Tensor) -> list[Tensor]:
        """Return the matrices, expert by expert."""
        return [x for expert in ops.unstack(value) for x in ops.split(expert, self.parts, axis=0)]


@dataclass(frozen=True)
class Piece:
    """Variable of a model, with the names and the layout of its tensors in a checkpoint."""

    variable: Variable
    names: tuple[str, ...]
    layout: Layout = field(default_factory=Same)

    def shapes(self) -> dict[str, Shape]:
        """Return the shape of each tensor by name."""
        return dict(zip(self.names, self.layout.shapes(self.variable.shape), strict=True))


def pieces_of(variable: Variable | None, *names: str, layout: Layout | None = None) -> list[Piece]:
    """Return the piece of a variable, as a list; an empty list for None."""
    return [] if variable is None else [Piece(variable, names, layout or Same())]
