"""Random numbers of many examples at once, each example's a function of its own index alone."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

IGNORED = -100
"""The target of a position that has none."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mixed(x: Array) -> Array:
    """SplitMix64's last step: neighbouring numbers become unrelated ones."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Draws:
    """A stream of numbers for each example, by counting: no example depends on another.

    Args:
        seed: of all examples.
        split: which set of examples; those of two splits have nothing in common.
        indices: which examples.
        attempt: other numbers for the same examples, where some are to be drawn anew.
    """

    def __init__(self, seed: int, split: int, indices: Array, attempt: int = 0) -> None:
        words = np.array([seed & 0xFFFFFFFFFFFFFFFF, split, attempt], np.uint64)
        key = np.zeros(1, np.uint64)
        with np.errstate(over="ignore"):
            for word in words:
                key = _mixed(key * _GOLDEN + word + np.uint64(1))
            self.keys = _mixed(key + (np.asarray(indices, np.uint64) + np.uint64(1)) * _GOLDEN)
        self.count = 0

    def __len__(self) -> int:
        return len(self.keys)

    def uniform(self, *shape: int) -> Array:
        """Numbers from 0 up to 1: (examples, *shape)."""
        size = int(np.prod(shape, dtype=np.int64))
        counter = np.arange(self.count, self.count + size, dtype=np.uint64)
        self.count += size
        with np.errstate(over="ignore"):
            bits = _mixed(self.keys[:, None] + (counter + np.uint64(1)) * _GOLDEN)
        return _unit(bits).reshape(len(self), *shape)

    def below(self, high: int | Array, *shape: int) -> Array:
        """Integers from 0 up to, but not including, high."""
        return np.minimum((self.uniform(*shape) * high).astype(np.int64), np.asarray(high) - 1)

    def of(self, numbers: Array, count: int) -> Array:
        """`count` numbers from 0 up to 1 for each of some numbers: the same number, the same ones.

        Of (examples, n) it gives (examples, n, count); they do not depend on what was drawn before.
        """
        with np.errstate(over="ignore"):
            own = _mixed(
                _mixed(~self.keys)[:, None] + (numbers.astype(np.uint64) + np.uint64(1)) * _GOLDEN
            )
            counter = np.arange(count, dtype=np.uint64)
            return _unit(_mixed(own[..., None] + (counter + np.uint64(1)) * _GOLDEN))


def _unit(bits: Array) -> Array:
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def seen_before(numbers: Array) -> Array:
    """Whether each of (examples, n) stands earlier in its row as well."""
    order = np.argsort(numbers, axis=1, kind="stable")
    ordered = np.take_along_axis(numbers, order, axis=1)
    again = np.zeros(numbers.shape, bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    found = np.empty_like(again)
    np.put_along_axis(found, order, again, axis=1)
    return found
