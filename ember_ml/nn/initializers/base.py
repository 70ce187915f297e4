"""The base class of initializers and their lookup by name."""

from __future__ import annotations

import math
from typing import TypeAlias

from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml.configs.base import Config
from ember_ml.configs.fields import ComponentLike
from ember_ml.ops.random import Generator, default_generator
from ember_ml.registry import build

Shape: TypeAlias = tuple[int, ...]


class Initializer:
    """Function from a shape to the initial value of a parameter.

    Values are drawn on the host from the generator that `ops.random.set_seed` seeds. The same seed
    therefore produces the same values on every backend. Weights have the shape (out, in, ...).

    Subclasses implement `draw`.
    """

    config: Config | None = None

    def __call__(
        self, shape: Shape, dtype: DTypeLike | None = None, *, seed: int | Generator | None = None
    ) -> Tensor:
        """Return a tensor on the active backend.

        Args:
            shape: Shape of the tensor.
            dtype: Data type of the tensor. Default: float32.
            seed: Seed or generator. Default: the global generator.
        """
        rng = default_generator() if seed is None else seed
        rng = rng if isinstance(rng, Generator) else Generator(rng)
        return self.draw(tuple(shape), dtype or "float32", rng)

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Return a tensor of the given shape and dtype, drawn from `rng`."""
        raise NotImplementedError

    def __repr__(self) -> str:
        fields = self.config.to_dict() if self.config is not None else {}
        arguments = ", ".join(
            f"{name}={value!r}" for name, value in fields.items() if name != "type"
        )
        return f"{type(self).__name__}({arguments})"


def get(initializer: ComponentLike) -> Initializer:
    """Return an initializer.

    Args:
        initializer: A name, a config, a `{"type": ...}` mapping, or an initializer, which is
            returned as it is.

    Example:
        >>> nn.initializers.get("zeros")((2,)).tolist()
        [0.0, 0.0]
    """
    built: Initializer = build("initializers", initializer)
    return built


def fans(shape: Shape) -> tuple[int, int]:
    """Return fan-in and fan-out of a weight."""
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    receptive_field = math.prod(shape[2:])
    return shape[1] * receptive_field, shape[0] * receptive_field


def as_matrix(name: str, shape: Shape) -> Shape:
    """Return the shape of a weight flattened to a matrix (out, all other axes)."""
    if len(shape) < 2:
        raise ShapeError(f"{name}: shape must have at least two axes, got {shape}")
    return shape[0], math.prod(shape[1:])
