"""Random generators of examples and of random transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.data import host_arrays
from ember_ml.data.conversion import Pytree
from ember_ml.data.errors import check_integer

Transform: TypeAlias = Callable[[Pytree], Pytree]
"""Function from an example to an example."""

RandomTransform: TypeAlias = Callable[[Pytree, np.random.Generator], Pytree]
"""Function from an example and a random generator to an example."""


def random_stream(seed: int, index: int, *, epoch: int | None = None) -> np.random.Generator:
    """Return the random generator of one example, which depends only on the arguments.

    Args:
        seed: Seed of the dataset or transform.
        index: Index of the example.
        epoch: Number of the epoch. Default: the generator is the same in every epoch.

    Example:
        >>> random_stream(7, 3).random() == random_stream(7, 3).random()
        True
        >>> random_stream(7, 3, epoch=0).random() == random_stream(7, 3, epoch=1).random()
        False
    """
    if epoch is None:
        return host_arrays.generator(seed, host_arrays.EXAMPLE, index)
    return host_arrays.generator(seed, host_arrays.TRANSFORM, epoch, index)


class ExampleMap:
    """Function applied to the examples of an epoch, with a random generator if it has a seed.

    Args:
        where: Name of the class in errors.
        function: `function(example)`, or `function(example, rng)` with a seed.
        seed: Seed of the random generators. None: the function has no random argument.
        epoch: Number of the epoch.
    """

    def __init__(
        self, where: str, function: Transform | RandomTransform, seed: int | None, epoch: int = 0
    ) -> None:
        if not callable(function):
            raise ArgumentTypeError(f"{where}: function must be callable, not {function!r:.60}")
        self.where = where
        self.function: Callable[..., Pytree] = function
        self.seed = None if seed is None else check_integer(where, "seed", seed, 0)
        self.epoch = epoch

    def __call__(self, example: Pytree, index: int) -> Pytree:
        """Return the transformed example.

        Args:
            example: Example to transform.
            index: Index of the example, or its position in a stream.
        """
        if self.seed is None:
            return self.function(example)
        return self.function(example, random_stream(self.seed, index, epoch=self.epoch))

    def for_epoch(self, epoch: int) -> ExampleMap:
        """Return the function with the random generators of an epoch.

        Args:
            epoch: Number of the epoch.
        """
        if self.seed is None or epoch == self.epoch:
            return self
        return ExampleMap(self.where, self.function, self.seed, epoch)
