"""Base class of augmentations, and augmentations in a row."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

import numpy as np

from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml.configs.base import Config
from ember_ml.configs.fields import Component, ComponentLike, Probability, ValidatedAs
from ember_ml.data.conversion import Pytree, to_host
from ember_ml.registry import build, register

AugmentationField = Annotated[ComponentLike, Component("augmentations")]
OptionalAugmentation = Annotated[ComponentLike | None, Component("augmentations", optional=True)]
AugmentationsField = Annotated[Sequence[ComponentLike], ValidatedAs(tuple[AugmentationField, ...])]
Augment: TypeAlias = Callable[[Pytree, np.random.Generator], Pytree]
"""Function from the inputs of an example and a random generator to augmented inputs."""


class Augmentation(abc.ABC):
    """Random transform of the inputs of an example: `augment(inputs, rng)`.

    The shape stays the same. With a padding mask, `augment(inputs, rng, mask)` changes only values
    at positions of the sequence. Subclasses define `apply`.

    Args:
        probability: Probability of transforming an example. Default: 1.
    """

    config: Config | None = None
    axes: int = 0
    """Smallest number of axes of the inputs."""

    def __init__(self, probability: Probability = 1.0) -> None:
        self.probability = probability

    def __call__(
        self, inputs: Pytree, rng: np.random.Generator, mask: Pytree | None = None
    ) -> np.ndarray:
        """Return the transformed inputs.

        Args:
            inputs: Inputs of one example.
            rng: Source of all randomness.
            mask: Padding mask (time,) of a sequence (time, ...), True at its positions. Default:
                all positions.
        """
        name = type(self).__name__
        if not isinstance(rng, np.random.Generator):
            raise ArgumentTypeError(
                f"{name}: rng must be a numpy.random.Generator, not {rng!r:.60}; use "
                "dataset.map(augment, seed=...)"
            )
        x = inputs if isinstance(inputs, np.ndarray) else to_host(inputs)
        if x.ndim < self.axes:
            raise ShapeError(f"{name}: inputs must have at least {self.axes} axes, not {x.shape}")
        if self.probability < 1.0 and rng.random() >= self.probability:
            return x
        if mask is None:
            return self.apply(x, rng).astype(x.dtype, copy=False)
        return self._masked(x, rng, to_host(mask).astype(bool))

    def _masked(self, x: np.ndarray, rng: np.random.Generator, mask: np.ndarray) -> np.ndarray:
        """Transform the positions of a sequence, and leave the padding as it is."""
        if mask.shape != x.shape[:1]:
            raise ShapeError(
                f"{type(self).__name__}: the mask must have the shape {x.shape[:1]} of the "
                f"positions, not {mask.shape}"
            )
        result = x.copy()
        if mask.any():
            result[mask] = self.apply(x[mask], rng)
        return result

    @abc.abstractmethod
    def apply(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the transformed array of the same shape; the argument must not be changed.

        Args:
            x: Inputs of one example.
            rng: Source of all randomness.
        """

    def __repr__(self) -> str:
        names = () if self.config is None else type(self.config).model_fields
        shown = ", ".join(f"{name}={getattr(self.config, name)!r}" for name in names)
        return f"{type(self).__name__}({shown})"


@register("augmentations/compose")
class Compose(Augmentation):
    """Augmentations applied one after the other.

    Args:
        steps: Augmentations, or their names or configs, in order.
        probability: Probability of transforming an example. Default: 1.

    Example:
        >>> import numpy as np
        >>> from ember_ml.data import augmentation, random_stream
        >>> augment = augmentation.Compose([augmentation.Scale(), "jitter"])
        >>> augment(np.zeros((8, 3), np.float32), random_stream(7, 0)).shape
        (8, 3)
    """

    def __init__(self, steps: AugmentationsField = (), probability: Probability = 1.0) -> None:
        super().__init__(probability)
        self.steps: list[Augment] = [build("augmentations", step) for step in steps]

    def apply(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the inputs after all augmentations."""
        for step in self.steps:
            x = step(x, rng)
        return x
