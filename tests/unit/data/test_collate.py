"""Single examples put together."""

from __future__ import annotations

import collections

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import default_collate as peer_collate

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.data import DataLoader, GeneratedDataset, default_collate, pad_collate

Pair = collections.namedtuple("Pair", "x y")
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.mark.parametrize(
    "items",
    [
        [1, 2, 3],
        [True, False],
        list(ROWS),
        list(ROWS.astype(np.int16)[:, 0]),
        [(row, 1) for row in ROWS],
        [Pair(row, {"a": row[0], "b": [row, row]}) for row in ROWS],
    ],
)
def test_structure_values_and_dtypes_are_torchs(items: list) -> None:
    def compare(ours, theirs) -> None:
        if isinstance(theirs, dict):
            assert list(ours) == list(theirs)
            for key in theirs:
                compare(ours[key], theirs[key])
        elif isinstance(theirs, (tuple, list)):
            assert len(ours) == len(theirs)
            assert getattr(ours, "_fields", None) == getattr(theirs, "_fields", None)
            for one, other in zip(ours, theirs, strict=True):
                compare(one, other)
        else:
            np.testing.assert_array_equal(ours, theirs.numpy())
            assert ours.dtype == theirs.numpy().dtype

    compare(default_collate(items), peer_collate(items))


def test_pythons_numbers_get_the_dtypes_of_tensors() -> None:
    assert default_collate([1.0, 2.5]).dtype == np.float32
    assert default_collate([1, 2.5]).dtype == np.float32
    assert default_collate([[1, 2], [0.5, 1.0]]).dtype == np.float32
    assert default_collate([[[1], [2]], [[3], [4]]]).shape == (2, 2, 1)
    assert default_collate([np.float64(1), np.float64(2)]).dtype == np.float64


def test_tensors_and_texts(backend: str) -> None:
    batch = default_collate([(ops.array(row), "text") for row in ROWS])
    np.testing.assert_array_equal(batch[0], ROWS)
    assert batch[1] == ["text"] * 3


def test_ragged_shapes_name_both_and_the_item() -> None:
    items = [{"x": np.zeros(3)}, {"x": np.zeros(3)}, {"x": np.zeros(4)}]
    with pytest.raises(ShapeError, match=r"example 2 .* \(4,\), example 0 has \(3,\) at \['x'\]"):
        default_collate(items)


@pytest.mark.parametrize(
    "items", [[(1, 2), (1, 2, 3)], [{"a": 1}, {"b": 1}], [1, "one"], [(1,), [1]], [1, None]]
)
def test_structures_that_differ_are_refused(items: list) -> None:
    with pytest.raises(ArgumentTypeError, match="example 1 of the batch"):
        default_collate(items)


def test_no_examples_make_no_batch() -> None:
    for collate in (default_collate, pad_collate()):
        with pytest.raises(ArgumentError, match="at least one example"):
            collate([])


@pytest.mark.parametrize("value", [0, -1.5])
def test_padding_is_torchs(value: float) -> None:
    rng = np.random.default_rng(0)
    items = [rng.standard_normal((length, 2)).astype(np.float32) for length in (3, 1, 0, 5)]
    padded, lengths = pad_collate(value)(items)
    theirs = pad_sequence([torch.from_numpy(item) for item in items], True, value)
    np.testing.assert_array_equal(padded, theirs.numpy())
    assert padded.dtype == np.float32
    assert lengths.tolist() == [3, 1, 0, 5]
    again, mask = pad_collate(value, returns="mask")(items)
    np.testing.assert_array_equal(mask, [[k < n for k in range(5)] for n in (3, 1, 0, 5)])
    np.testing.assert_array_equal(again, padded)


def test_padding_along_another_axis_and_in_nests() -> None:
    items = [
        {"tokens": list(range(length)), "other": np.ones(length), "label": length, "name": "n"}
        for length in (1, 3)
    ]
    batch, lengths = pad_collate({"tokens": -100, "other": 0, "label": 0, "name": 0})(items)
    assert batch["tokens"].tolist() == [[0, -100, -100], [0, 1, 2]]
    assert batch["other"].tolist() == [[1, 0, 0], [1, 1, 1]]
    assert (batch["label"].tolist(), batch["name"]) == ([1, 3], ["n", "n"])
    assert lengths.pop("tokens").tolist() == lengths.pop("other").tolist() == [1, 3]
    assert lengths == {"label": None, "name": None}
    images, widths = pad_collate(9, axis=1)([np.ones((2, width)) for width in (1, 3)])
    assert images[0].tolist() == [[1, 9, 9], [1, 9, 9]]
    assert widths.tolist() == [1, 3]


def test_padding_that_cannot_be() -> None:
    with pytest.raises(
        ShapeError, match=r"example 1 .* \(2, 4\), example 0 has \(3, 3\); only axis 0"
    ):
        pad_collate()([np.zeros((3, 3)), np.zeros((2, 4))])
    with pytest.raises(ArgumentError, match="-100 does not fit uint8"):
        pad_collate(-100)([np.zeros(1, np.uint8), np.zeros(2, np.uint8)])
    with pytest.raises(ArgumentError, match=r"an entry for \['x'\]"):
        pad_collate({"y": 0})([{"x": np.zeros(1)}])
    with pytest.raises(ArgumentError, match="axis must be at least 0"):
        pad_collate(axis=-1)
    with pytest.raises(ArgumentError, match="'lengths' or 'mask'"):
        pad_collate(returns="both")


def test_padded_batches_from_a_loader(backend: str) -> None:
    dataset = GeneratedDataset(lambda index, rng: rng.integers(1, 9, index + 1), 4)
    (first, lengths), (second, _) = DataLoader(dataset, 2, collate=pad_collate(0))
    assert (first.shape, second.shape) == ((2, 2), (2, 4))
    assert lengths.tolist() == [1, 2]
    assert (first.backend, lengths.backend) == (backend, backend)
    assert first.tolist() == [[dataset[0].item(), 0], dataset[1].tolist()]
