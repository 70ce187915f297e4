"""How the values of a variable lie in the tensors of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.parameter import Variable

Shape = tuple[int, ...]


class Layout(Protocol):
    """How tensors become a value, and back."""

    def shapes(self, shape: Shape) -> list[Shape]:
        """The shapes of the tensors of a value of a shape."""
        ...

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """The value."""
        ...

    def write(self, value: Tensor) -> list[Tensor]:
        """The tensors."""
        ...


class Same:
    """One tensor, as it is."""

    def shapes(self, shape: Shape) -> list[Shape]:
        """The value's."""
        return [shape]

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """The tensor."""
        return tensors[0]

    def write(self, value: Tensor) -> list[Tensor]:
        """The value."""
        return [value]


class Transposed:
    """A matrix of (in features, out features), as GPT-2 has them."""

    def shapes(self, shape: Shape) -> list[Shape]:
        """The other way round."""
        return [shape[::-1]]

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """The tensor, turned."""
        return ops.swapaxes(tensors[0], 0, 1)

    def write(self, value: Tensor) -> list[Tensor]:
        """The value, turned."""
        return [ops.swapaxes(value, 0, 1)]


class Filters:
    """The filters of a convolution of single channels, with an axis for the one channel in."""

    def shapes(self, shape: Shape) -> list[Shape]:
        """(channels, 1, taps)."""
        return [(shape[0], 1, shape[1])]

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """(channels, taps)."""
        return tensors[0][:, 0]

    def write(self, value: Tensor) -> list[Tensor]:
        """(channels, 1, taps)."""
        return [value[:, None]]


class Stacked:
    """Several tensors, of which the value has the rows one after the other.

    Args:
        rows: how many each has.
    """

    def __init__(self, *rows: int) -> None:
        self.rows = rows

    def shapes(self, shape: Shape) -> list[Shape]:
        """As the value's, with the rows of each."""
        return [(count, *shape[1:]) for count in self.rows]

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """All rows."""
        return ops.concat(list(tensors), axis=0)

    def write(self, value: Tensor) -> list[Tensor]:
        """The rows of each."""
        ends = [sum(self.rows[: at + 1]) for at in range(len(self.rows))]
        return [value[end - count : end] for end, count in zip(ends, self.rows, strict=True)]


@dataclass(frozen=True)
class Piece:
    """A variable of a model, and the names of its tensors in a checkpoint."""

    variable: Variable
    names: tuple[str, ...]
    layout: Layout = field(default_factory=Same)

    def shapes(self) -> dict[str, Shape]:
        """The shape of each tensor."""
        return dict(zip(self.names, self.layout.shapes(self.variable.shape), strict=True))


def pieces_of(variable: Variable | None, *names: str, layout: Layout | None = None) -> list[Piece]:
    """The piece of a variable, if it is there."""
    return [] if variable is None else [Piece(variable, names, layout or Same())]
