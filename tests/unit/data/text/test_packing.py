"""Padding, packing and windows of tokens, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ember_ml._core.errors import ArgumentError, IndexOutOfRangeError
from ember_ml.data import DataLoader, IterableDataset, pad_collate
from ember_ml.data.text import PackedStream, TokenWindows, pack, pad

ids = st.lists(st.integers(2, 99), max_size=7)


@given(st.lists(ids, min_size=1, max_size=5), st.integers(1, 4), st.sampled_from(["right", "left"]))
def test_pad_is_a_plain_loop(rows: list[list[int]], unit: int, side: str) -> None:
    batch, mask = pad(rows, 1, multiple_of=unit, side=side)
    length = -(-max(map(len, rows)) // unit) * unit
    assert batch.shape == mask.shape == (len(rows), length)
    for row, padded, valid in zip(rows, batch.tolist(), mask.tolist(), strict=True):
        rest = [1] * (length - len(row))
        assert padded == ([*row, *rest] if side == "right" else [*rest, *row])
        assert [token for token, own in zip(padded, valid, strict=True) if own] == row


def test_pad_is_pad_collate() -> None:
    rows = [np.array([1, 2, 3]), np.array([4])]
    for own, other in zip(pad(rows, 9), pad_collate(9, returns="mask")(rows), strict=True):
        assert own.tolist() == other.tolist()
        assert own.dtype == other.dtype


def test_pad_to_a_length() -> None:
    assert pad([[1, 2, 3], []], 0, length=2, truncate=True).batch.tolist() == [[1, 2], [0, 0]]
    with pytest.raises(ArgumentError, match="sequence 0 has 3 tokens, more than length=2"):
        pad([[1, 2, 3]], 0, length=2)
    with pytest.raises(ArgumentError, match="at least one sequence"):
        pad([])
    with pytest.raises(ArgumentError, match="side must be"):
        pad([[1]], side="top")
    for bad in ([["a"]], [[1.5]], [[[1]]]):
        with pytest.raises(ArgumentError, match="integers along one axis"):
            pad(bad)


@given(st.lists(ids, max_size=6), st.integers(1, 6), st.booleans(), st.booleans())
def test_pack_is_a_plain_loop(
    documents: list[list[int]], length: int, eos: bool, padded: bool
) -> None:
    flat = []
    for number, document in enumerate(documents):
        flat += [(token, number) for token in [*document, *([1] if eos else [])]]
    if padded and len(flat) % length:
        flat += [(0, -1)] * (length - len(flat) % length)
    rows = [flat[start : start + length] for start in range(0, len(flat), length)]
    rows = [row for row in rows if len(row) == length]

    options = {"eos_id": 1 if eos else None, "pad_id": 0 if padded else None}
    assert [row.tolist() for row in pack(documents, length, **options)] == [
        [token for token, _ in row] for row in rows
    ]
    for found, row in zip(pack(documents, length, **options, segments=True), rows, strict=True):
        owners = [owner for _, owner in row]
        order = list(dict.fromkeys(owner for owner in owners if owner >= 0))
        assert found.segments.tolist() == [order.index(o) + 1 if o >= 0 else 0 for o in owners]
        assert found.positions.tolist() == [at - owners.index(o) for at, o in enumerate(owners)]


@pytest.mark.usefixtures("on_numpy")
def test_a_packed_stream_resumes_in_a_loader() -> None:
    documents = IterableDataset(lambda: ([n] * (n % 5 + 1) for n in range(40)))
    stream = pack(documents, 6, eos_id=0, segments=True)
    assert isinstance(stream, PackedStream)
    first, second = (DataLoader(stream, batch_size=3) for _ in range(2))
    whole = [batch.ids.tolist() for batch in DataLoader(stream, batch_size=3)]
    iterator = iter(first)
    parts = [next(iterator).ids.tolist() for _ in range(2)]
    second.load_state_dict(first.state_dict())
    assert [*parts, *(batch.ids.tolist() for batch in second)] == whole


@given(st.integers(1, 9), st.integers(2, 40), st.sampled_from([np.uint16, np.uint32, np.int64]))
def test_windows_are_slices(seq_len: int, length: int, dtype: type) -> None:
    tokens = np.arange(length).astype(dtype)
    if length <= seq_len:
        with pytest.raises(ArgumentError, match=f"corpus: {length} tokens are too few"):
            TokenWindows(tokens, seq_len, "corpus")
        return
    windows = TokenWindows(tokens, seq_len)
    assert len(windows) == (length - 1) // seq_len
    inputs, targets = windows.batch(range(len(windows)))
    assert inputs.dtype == targets.dtype == np.int64
    for at, (x, y) in enumerate(windows):
        assert x.tolist() == list(range(at * seq_len, (at + 1) * seq_len)) == inputs[at].tolist()
        assert y.tolist() == [token + 1 for token in x] == targets[at].tolist()
    with pytest.raises(IndexOutOfRangeError):
        windows[len(windows)]


def test_the_padding_id_is_an_integer() -> None:
    with pytest.raises(TypeError, match="pad: pad_id must be an integer, not None"):
        pad([[1], [1, 2]], None)  # type: ignore[arg-type]
    assert pad([[1], [1, 2]], -100).batch.tolist() == [[1, -100], [1, 2]]
