"""Splits of parameters among processes, without processes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ember_ml._core.errors import ArgumentError
from ember_ml.nn import tensor
from ember_ml.nn.splitting import Split


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, Split, int]:
    """An array, a split with blocks of equal or different lengths, and a number of processes."""
    size = draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    ndim = draw(st.integers(1, 3))
    axis = draw(st.integers(0, ndim - 1))
    kept: tuple[int, ...] = ()
    if draw(st.booleans()):  # blocks of different lengths, of which each process keeps some
        kept = tuple(at for at in range(len(lengths)) if draw(st.booleans()))
        sizes = tuple(n if at in kept else n * size for at, n in enumerate(lengths))
        split = Split(axis, sizes=sizes, kept=kept)
    else:
        sizes = (lengths[0] * size,) * len(lengths)
        split = Split(axis, blocks=len(lengths))
    shape = [2] * ndim
    shape[axis] = sum(sizes)
    return np.arange(np.prod(shape), dtype="float32").reshape(shape), split, size


def reference_parts(whole: np.ndarray, split: Split, size: int) -> list[np.ndarray]:
    """Return the parts by indexing with NumPy."""
    length = whole.shape[split.axis]
    sizes = split.sizes or (length // split.blocks,) * split.blocks
    blocks = np.split(whole, np.cumsum(sizes)[:-1], axis=split.axis)
    rows = []
    for rank in range(size):
        own = [
            block if at in split.kept else np.split(block, size, axis=split.axis)[rank]
            for at, block in enumerate(blocks)
        ]
        rows.append(np.concatenate(own, axis=split.axis))
    return rows


@settings(max_examples=60, deadline=None)
@given(cases())
def test_parts_are_slices_and_join_to_the_whole(case: tuple[np.ndarray, Split, int]) -> None:
    whole, split, size = case
    expected = reference_parts(whole, split, size)
    parts = [split.local(tensor.array(whole), rank, size) for rank in range(size)]
    for part, reference in zip(parts, expected, strict=True):
        np.testing.assert_array_equal(part.numpy(), reference)
        assert split.local_shape(whole.shape, size) == reference.shape
    np.testing.assert_array_equal(split.whole(parts).numpy(), whole)


@settings(max_examples=40, deadline=None)
@given(cases())
def test_distinct_elements_are_those_of_the_whole(case: tuple[np.ndarray, Split, int]) -> None:
    whole, split, size = case
    elements: list[float] = []
    for rank, part in enumerate(reference_parts(whole, split, size)):
        for own in split.distinct(tensor.array(part), rank, size):
            elements += own.numpy().ravel().tolist()
    assert sorted(elements) == whole.ravel().tolist()


def test_gates_are_split_each() -> None:
    rows = tensor.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]])
    assert Split(0, blocks=3).local(rows, 1, 2).tolist() == [[2.0], [4.0], [6.0]]


@pytest.mark.parametrize(
    ("split", "shape", "message"),
    [
        (Split(2), (4, 4), "it has no axis 2"),
        (Split(0), (6, 4), r"the length of axis 0 \(6\) is not divisible by 4"),
        (Split(1, blocks=2), (4, 12), r"\(12\), in blocks of 6, is not divisible by 4"),
        (Split(0, blocks=3), (16, 4), "is not divisible by 3 blocks"),
        (Split(0, sizes=(8, 4)), (16, 4), r"is not the sum of \(8, 4\)"),
    ],
)
def test_indivisible_parameters(split: Split, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        split.local_shape(shape, 4)
    with pytest.raises(ArgumentError, match="among 4 processes"):
        split.local(tensor.array(np.zeros(shape, dtype="float32")), 0, 4)


@pytest.mark.parametrize(
    "arguments",
    [
        {"axis": -1},
        {"axis": 0, "blocks": 0},
        {"axis": 0, "blocks": 2, "sizes": (4, 4)},
        {"axis": 0, "sizes": (4, 0)},
        {"axis": 0, "sizes": (4, 4), "kept": (2,)},
        {"axis": 0, "kept": (0,)},
    ],
)
def test_invalid_splits(arguments: dict) -> None:
    with pytest.raises(ArgumentError, match="Split: "):
        Split(**arguments)
