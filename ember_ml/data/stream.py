"""Streams: datasets without length and index."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.data.conversion import Pytree
from ember_ml.data.random import ExampleMap, RandomTransform, Transform


class IterableDataset:
    """Stream of examples that can be iterated repeatedly.

    A subclass may override `__iter__`, and `iterate_from` if it can skip examples without reading
    them.

    Args:
        factory: Function without arguments that returns a new iterator, with the same examples
            each time.

    Example:
        >>> stream = IterableDataset(lambda: (n * n for n in range(4)))
        >>> list(stream), list(stream)
        ([0, 1, 4, 9], [0, 1, 4, 9])
        >>> list(stream.iterate_from(2))
        [4, 9]
    """

    def __init__(self, factory: Callable[[], Iterable[Pytree]]) -> None:
        if not callable(factory):
            raise ArgumentTypeError(
                "IterableDataset: factory must be a function that returns a new iterator (such as "
                f"lambda: open(path)), not {factory!r:.60}"
            )
        self.factory = factory

    def __iter__(self) -> Iterator[Pytree]:
        return iter(self.factory())

    def iterate_from(self, start: int) -> Iterator[Pytree]:
        """Return an iterator over the examples from a position on.

        Args:
            start: Number of examples to skip.
        """
        return itertools.islice(self, start, None)

    def for_epoch(self, epoch: int) -> IterableDataset:
        """Return the stream as it is in an epoch; the stream itself if epochs do not differ.

        A loader reads each epoch through this method.

        Args:
            epoch: Number of the epoch.
        """
        return self

    def map(
        self, function: Transform | RandomTransform, *, seed: int | None = None
    ) -> IterableDataset:
        """Return the stream of `function(example)`, or of `function(example, rng)` with a seed.

        Args:
            function: Function from an example to an example. With a seed it also takes a
                `numpy.random.Generator`.
            seed: Seed of a random transform. The generator depends only on (seed, epoch, position
                in the stream). Default: the function takes no generator.

        Example:
            >>> noisy = IterableDataset(lambda: range(3)).map(
            ...     lambda x, rng: x + rng.random(), seed=7
            ... )
            >>> list(noisy)[1:] == list(noisy.iterate_from(1))
            True
        """
        return MappedStream(self, ExampleMap("IterableDataset.map", function, seed))


class MappedStream(IterableDataset):
    """Stream with a function applied to each example; skipped examples are not transformed.

    Args:
        stream: The original stream.
        function: Function from an example and its position to an example.
    """

    def __init__(self, stream: IterableDataset, function: ExampleMap) -> None:
        self.stream = stream
        self.function = function

    def __iter__(self) -> Iterator[Pytree]:
        return self.iterate_from(0)

    def iterate_from(self, start: int) -> Iterator[Pytree]:
        """Return an iterator over the transformed examples from a position on.

        Args:
            start: Number of examples to skip.
        """
        return map(self.function, self.stream.iterate_from(start), itertools.count(start))

    def for_epoch(self, epoch: int) -> IterableDataset:
        """Return the stream with the random generators of an epoch.

        Args:
            epoch: Number of the epoch.
        """
        stream, function = self.stream.for_epoch(epoch), self.function.for_epoch(epoch)
        unchanged = stream is self.stream and function is self.function
        return self if unchanged else MappedStream(stream, function)
