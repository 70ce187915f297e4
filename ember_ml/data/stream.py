"""Examples that come one after the other, with no length and no index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.data.conversion import Nest


class IterableDataset:
    """A stream of examples that can be begun again.

    Args:
        factory: a function without arguments that begins the stream: it returns a new iterator,
            with the same examples each time.

    Example:
        >>> stream = IterableDataset(lambda: (n * n for n in range(4)))
        >>> list(stream), list(stream)
        ([0, 1, 4, 9], [0, 1, 4, 9])
    """

    def __init__(self, factory: Callable[[], Iterable[Nest]]) -> None:
        if not callable(factory):
            raise ArgumentTypeError(
                "IterableDataset: needs a function that begins the stream (such as lambda: "
                f"open(path)), so that it can be begun again, not {factory!r:.60}"
            )
        self.factory = factory

    def __iter__(self) -> Iterator[Nest]:
        return iter(self.factory())

    def map(self, function: Callable[[Nest], Nest]) -> IterableDataset:
        """The stream of `function(example)`."""
        if not callable(function):
            raise ArgumentTypeError(f"IterableDataset.map: {function!r:.60} is not callable")
        return IterableDataset(_Mapped(self, function))


class _Mapped:
    # A class, for a closure could not be sent to another process.
    def __init__(self, stream: IterableDataset, function: Callable[[Any], Any]) -> None:
        self.stream = stream
        self.function = function

    def __call__(self) -> Iterator[Nest]:
        return map(self.function, self.stream)
