"""What an initializer is."""

from __future__ import annotations

import math
from typing import Any

from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml.ops.random import Generator, default_generator
from ember_ml.registry import build

Shape = tuple[int, ...]


class Initializer:
    """Makes the first value of a parameter.

    Called with a shape, it draws from the generator that `ops.random.set_seed` seeds, on the host,
    so that one seed gives the same numbers on every backend. Weights are (out, in, ...).

    Subclasses write `draw`.
    """

    config: Any = None

    def __call__(
        self,
        shape: Shape,
        dtype: DTypeLike | None = None,
        *,
        seed: int | Generator | None = None,
    ) -> Tensor:
        """A tensor of that shape on the active backend."""
        rng = default_generator() if seed is None else seed
        rng = rng if isinstance(rng, Generator) else Generator(rng)
        return self.draw(tuple(shape), dtype or "float32", rng)

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """The tensor."""
        raise NotImplementedError

    def __repr__(self) -> str:
        given = self.config.to_dict() if self.config is not None else {}
        inside = ", ".join(f"{name}={value!r}" for name, value in given.items() if name != "type")
        return f"{type(self).__name__}({inside})"


def get(initializer: Any) -> Any:
    """The initializer that a name, a config or an initializer itself means.

    Example:
        >>> nn.initializers.get("zeros")((2,)).tolist()
        [0.0, 0.0]
    """
    return build("initializers", initializer)


def fans(shape: Shape) -> tuple[int, int]:
    """How many inputs a unit reads, and how many units read an input."""
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def as_matrix(name: str, shape: Shape) -> Shape:
    """Rows and columns of a weight: its outputs, and all the rest."""
    if len(shape) < 2:
        raise ShapeError(f"{name} needs a shape of two axes or more, not {shape}")
    return shape[0], math.prod(shape[1:])
