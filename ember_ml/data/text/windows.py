"""Windows of a sequence of tokens for language models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError
from ember_ml.data import host_arrays
from ember_ml.data.arrays import Columns
from ember_ml.data.conversion import Indices, Pytree
from ember_ml.data.errors import check_integer


class TokenWindows(Columns):
    """Consecutive windows of a sequence of tokens; the targets are the next tokens.

    An example is (inputs, targets), both int64 of shape (seq_len,).

    Args:
        ids: Token ids, a list or an array of one axis.
        seq_len: Number of tokens of a window.
        where: Name of the tokens in errors.

    Example:
        >>> from ember_ml.data.text import TokenWindows
        >>> inputs, targets = TokenWindows([5, 6, 7, 8, 9], 2).batch([0, 1])
        >>> inputs.tolist(), targets.tolist()
        ([[5, 6], [7, 8]], [[6, 7], [8, 9]])
    """

    def __init__(
        self, ids: Sequence[int] | np.ndarray, seq_len: int, where: str = "the text"
    ) -> None:
        self.seq_len = check_integer(type(self).__name__, "seq_len", seq_len, 1)
        tokens = ids if isinstance(ids, np.ndarray) else host_arrays.array_of(list(ids))
        count = (len(tokens) - 1) // self.seq_len
        if count < 1:
            raise ArgumentError(
                f"{where}: {len(tokens)} tokens are too few for a window of seq_len={seq_len} and "
                "its next token"
            )
        end = count * self.seq_len
        shape = count, self.seq_len
        self._set((tokens[:end].reshape(shape), tokens[1 : end + 1].reshape(shape)))

    def __getitem__(self, index: int) -> Pytree:
        return tree.map_leaves(_int64, super().__getitem__(index))

    def batch(self, indices: Indices) -> Pytree:
        """Return (inputs, targets) of the windows at the indices, each (batch, seq_len).

        Args:
            indices: Array or sequence of integers.
        """
        return tree.map_leaves(_int64, super().batch(indices))


def _int64(tokens: np.ndarray) -> np.ndarray:
    return tokens.astype(np.int64, copy=False)
