"""Streams: datasets without length and index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.data.conversion import Pytree


class IterableDataset:
    """Stream of examples that can be iterated repeatedly.

    Args:
        factory: Function without arguments that returns a new iterator, with the same examples
            each time.

    Example:
        >>> stream = IterableDataset(lambda: (n * n for n in range(4)))
        >>> list(stream), list(stream)
        ([0, 1, 4, 9], [0, 1, 4, 9])
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

    def map(self, function: Callable[[Pytree], Pytree]) -> IterableDataset:
        """Return the stream of `function(example)`.

        Args:
            function: Function from an example to an example.
        """
        if not callable(function):
            raise ArgumentTypeError(
                f"IterableDataset.map: function must be callable, not {function!r:.60}"
            )
        return IterableDataset(_Mapped(self, function))


class _Mapped:
    # A class, because a closure cannot be pickled.
    def __init__(self, stream: IterableDataset, function: Callable[[Pytree], Pytree]) -> None:
        self.stream = stream
        self.function = function

    def __call__(self) -> Iterator[Pytree]:
        return map(self.function, self.stream)
