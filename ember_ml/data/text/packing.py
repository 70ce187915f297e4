"""Sequences of tokens padded or packed to one length."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from ember_ml._core.errors import ArgumentError
from ember_ml.data.collate import PaddedMask
from ember_ml.data.conversion import Pytree
from ember_ml.data.dataset import Dataset
from ember_ml.data.errors import check_integer
from ember_ml.data.stream import IterableDataset

Ids: TypeAlias = Sequence[int] | np.ndarray
"""Token ids of one document."""


def pad(
    sequences: Sequence[Ids],
    pad_id: int = 0,
    *,
    length: int | None = None,
    multiple_of: int = 1,
    truncate: bool = False,
    side: str = "right",
) -> PaddedMask:
    """Return sequences of tokens as one int64 array (batch, time), and its padding mask.

    Args:
        sequences: Token ids of each sequence.
        pad_id: Token id at padding.
        length: Number of positions. Default: that of the longest sequence.
        multiple_of: Round the length up to a multiple of this number.
        truncate: Whether to cut sequences that are longer than `length` at the end. By default
            they raise an error.
        side: Side of the padding, "right" or "left".

    Returns:
        (batch, mask); the mask is False at padding.

    Example:
        >>> from ember_ml.data.text import pad
        >>> batch, mask = pad([[5, 6, 7], [8]], pad_id=0)
        >>> batch.tolist(), mask.tolist()
        ([[5, 6, 7], [8, 0, 0]], [[True, True, True], [True, False, False]])
    """
    if side not in ("right", "left"):
        raise ArgumentError(f"pad: side must be 'right' or 'left', not {side!r}")
    if not len(sequences):
        raise ArgumentError("pad: pass at least one sequence")
    rows = [_ids("pad", row) for row in sequences]
    time = max(map(len, rows)) if length is None else check_integer("pad", "length", length, 1)
    unit = check_integer("pad", "multiple_of", multiple_of, 1)
    time = -(-time // unit) * unit
    for at, row in enumerate(rows):
        if len(row) > time and not truncate:
            raise ArgumentError(
                f"pad: sequence {at} has {len(row)} tokens, more than length={time}; pass "
                "truncate=True to cut it"
            )
    rows = [row[:time] for row in rows]
    lengths = np.array([len(row) for row in rows])[:, None]
    at_time = np.arange(time)
    mask = at_time < lengths if side == "right" else at_time >= time - lengths
    batch = np.full(mask.shape, check_integer("pad", "pad_id", pad_id, -(2**63)), np.int64)
    batch[mask] = np.concatenate(rows)
    return PaddedMask(batch, mask)


class PackedRow(NamedTuple):
    """Row of packed documents."""

    ids: np.ndarray
    """Token ids."""
    segments: np.ndarray
    """Number of the document in the row, from 1 on; 0 at padding."""
    positions: np.ndarray
    """Position within the part of the document that is in the row, from 0 on."""


class PackedStream(IterableDataset):
    """Stream of rows of one length that documents fill without gaps; see `pack`.

    Args:
        documents: Token ids of each document. Must be iterable repeatedly to be read in several
            epochs.
        length: Number of tokens of a row.
        eos_id: Token id that ends each document. None: documents follow each other directly.
        pad_id: Token id that fills the last row. None: an incomplete last row is dropped.
        segments: Whether a row is a `PackedRow` instead of an array of ids.
    """

    def __init__(
        self,
        documents: Iterable[Ids],
        length: int,
        eos_id: int | None = None,
        *,
        pad_id: int | None = None,
        segments: bool = False,
    ) -> None:
        self.documents = documents
        self.length = check_integer("pack", "length", length, 1)
        self.eos_id = eos_id
        self.pad_id = pad_id
        self.segments = segments

    def for_epoch(self, epoch: int) -> IterableDataset:
        """Return the rows of the documents of an epoch.

        Args:
            epoch: Number of the epoch.
        """
        if not isinstance(self.documents, (Dataset, IterableDataset)):
            return self
        documents = self.documents.for_epoch(epoch)
        if documents is self.documents:
            return self
        other = copy.copy(self)
        other.documents = documents
        return other

    def __iter__(self) -> Iterator[Pytree]:
        parts: list[np.ndarray] = []
        filled = 0
        for document in map(self._ended, self.documents):
            start = 0
            while len(document) - start >= (left := self.length - filled):
                parts.append(document[start : start + left])
                yield self._row(parts)
                parts, filled, start = [], 0, start + left
            if start < len(document):
                parts.append(document[start:])
                filled += len(document) - start
        if filled and self.pad_id is not None:
            yield self._row(parts, np.full(self.length - filled, self.pad_id, np.int64))

    def _ended(self, document: Ids) -> np.ndarray:
        ids = _ids("pack", document)
        return ids if self.eos_id is None else np.append(ids, np.int64(self.eos_id))

    def _row(self, parts: list[np.ndarray], padding: np.ndarray | None = None) -> Pytree:
        every = parts if padding is None else [*parts, padding]
        ids = np.concatenate(every)
        if not self.segments:
            return ids
        numbers = [*range(1, len(parts) + 1), *([] if padding is None else [0])]
        lengths = [len(part) for part in every]
        positions = itertools.chain.from_iterable(map(range, lengths))
        return PackedRow(
            ids, np.repeat(np.int64(numbers), lengths), np.fromiter(positions, np.int64)
        )


def pack(
    documents: Iterable[Ids],
    length: int,
    eos_id: int | None = None,
    *,
    pad_id: int | None = None,
    segments: bool = False,
) -> PackedStream:
    """Pack documents into rows of one length, with EOS between them; return the stream of rows.

    A document that does not fit in a row continues in the next one.

    Args:
        documents: Token ids of each document, such as `lines.map(tokenizer.encode)`.
        length: Number of tokens of a row.
        eos_id: Token id that ends each document. Default: documents follow each other directly.
        pad_id: Token id that fills the last row. Default: an incomplete last row is dropped.
        segments: Whether a row is a `PackedRow` with the number of the document and the position in
            it for each token, for attention masks and position embeddings.

    Example:
        >>> from ember_ml.data.text import pack
        >>> [row.tolist() for row in pack([[5, 6], [7], [8, 9]], 4, eos_id=1)]
        [[5, 6, 1, 7], [1, 8, 9, 1]]
        >>> row, *_ = pack([[5, 6], [7]], 6, eos_id=1, pad_id=0, segments=True)
        >>> row.segments.tolist(), row.positions.tolist()
        ([1, 1, 1, 2, 2, 0], [0, 1, 2, 0, 1, 0])
    """
    return PackedStream(documents, length, eos_id, pad_id=pad_id, segments=segments)


def _ids(where: str, sequence: Ids) -> np.ndarray:
    """Return token ids as an int64 array of one axis."""
    array = np.asarray(sequence)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ArgumentError(
            f"{where}: a sequence must be integers along one axis, not {array.dtype} of shape "
            f"{array.shape}"
        )
    return array.astype(np.int64, copy=False)
