"""Counter-based random numbers, and disjoint splits generated from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

IGNORED = -100
"""Target of a position that has none."""
CHUNK = 2048
"""Number of examples generated at once, which bounds the memory needed."""
ATTEMPTS = 100
"""How often an example that also occurs in another split is drawn again."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

Generate = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]
"""Returns the inputs and targets of the examples at some indices, for an attempt number."""


def _mix(x: np.ndarray) -> np.ndarray:
    """Apply the SplitMix64 finalizer, which decorrelates neighboring integers."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _to_unit(bits: np.ndarray) -> np.ndarray:
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


class Draws:
    """Independent streams of random numbers, one for each example of a batch.

    The numbers of an example depend only on the seed, the split and the example's index.

    Args:
        seed: Seed of the task.
        split: Number of the split; two splits share no numbers.
        indices: Indices of the examples.
        attempt: Selects other numbers for the same examples, to draw them again.
    """

    def __init__(
        self, seed: int, split: int, indices: np.ndarray | Sequence[int], attempt: int = 0
    ) -> None:
        words = np.array([seed & 0xFFFFFFFFFFFFFFFF, split, attempt], np.uint64)
        key = np.zeros(1, np.uint64)
        with np.errstate(over="ignore"):
            for word in words:
                key = _mix(key * _GOLDEN + word + np.uint64(1))
            self.keys = _mix(key + (np.asarray(indices, np.uint64) + np.uint64(1)) * _GOLDEN)
        self.count = 0

    def __len__(self) -> int:
        return len(self.keys)

    def uniform(self, *shape: int) -> np.ndarray:
        """Return numbers in [0, 1) of shape (examples, *shape)."""
        size = int(np.prod(shape, dtype=np.int64))
        counter = np.arange(self.count, self.count + size, dtype=np.uint64)
        self.count += size
        with np.errstate(over="ignore"):
            bits = _mix(self.keys[:, None] + (counter + np.uint64(1)) * _GOLDEN)
        return _to_unit(bits).reshape(len(self), *shape)

    def below(self, high: int | np.ndarray, *shape: int) -> np.ndarray:
        """Return integers in [0, high) of shape (examples, *shape)."""
        return np.minimum((self.uniform(*shape) * high).astype(np.int64), np.asarray(high) - 1)

    def hashed(self, values: np.ndarray, count: int) -> np.ndarray:
        """Return `count` numbers in [0, 1) for each value, as a hash of the value and the example.

        Args:
            values: Integers of shape (examples, n). Equal values of an example get equal numbers.
            count: How many numbers to return for each value.

        Returns:
            Numbers of shape (examples, n, count). They do not depend on earlier draws.
        """
        with np.errstate(over="ignore"):
            keys = _mix(
                _mix(~self.keys)[:, None] + (values.astype(np.uint64) + np.uint64(1)) * _GOLDEN
            )
            counter = np.arange(count, dtype=np.uint64)
            return _to_unit(_mix(keys[..., None] + (counter + np.uint64(1)) * _GOLDEN))


def seen_before(values: np.ndarray) -> np.ndarray:
    """Return whether each value of an (examples, n) array also occurs earlier in its row."""
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    repeated = np.zeros(values.shape, bool)
    repeated[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    result = np.empty_like(repeated)
    np.put_along_axis(result, order, repeated, axis=1)
    return result


def generate(function: Generate, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and targets of examples 0 to count - 1."""
    parts = [function(np.arange(at, min(at + CHUNK, count)), 0) for at in range(0, count, CHUNK)]
    inputs, targets = (np.concatenate(column) for column in zip(*parts, strict=True))
    return inputs, targets


def generate_disjoint(
    function: Generate, count: int, others: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return `count` examples whose inputs occur in none of the other arrays.

    Args:
        function: Generates examples.
        count: Number of examples.
        others: Inputs of the other splits.

    Returns:
        Inputs and targets, or None if that many different examples could not be drawn.
    """
    taken = {row for other in others for row in _row_bytes(other)}
    inputs, targets = generate(function, count)
    for attempt in range(1, ATTEMPTS + 1):
        again = np.array([at for at, row in enumerate(_row_bytes(inputs)) if row in taken], int)
        if not len(again):
            return inputs, targets
        inputs[again], targets[again] = function(again, attempt)
    return None


def _row_bytes(rows: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in np.ascontiguousarray(rows)]
