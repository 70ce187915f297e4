"""Datasets: what an example is, whole batches, parts, joins, functions, bad arguments."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils import data as peer

from ember_ml import ops
from ember_ml._core.errors import (
    ArgumentError,
    ArgumentTypeError,
    IndexOutOfRangeError,
    ShapeError,
)
from ember_ml.data import (
    ArrayDataset,
    ConcatDataset,
    Dataset,
    GeneratedDataset,
    IterableDataset,
    MapDataset,
    Subset,
    random_split,
    random_stream,
)

from .samples import Squares, count_to_ten, double, noise

X = np.arange(20, dtype=np.float32).reshape(10, 2)
Y = np.arange(10) % 3
PICKED = np.array([7, 0, 7, 3])


def test_one_array_gives_rows_several_give_tuples_a_dict_gives_dicts() -> None:
    one, pair, named = ArrayDataset(X), ArrayDataset(X, Y), ArrayDataset({"b": X, "a": Y})
    assert len(one) == len(pair) == len(named) == 10
    np.testing.assert_array_equal(one[3], X[3])
    np.testing.assert_array_equal(pair[-1][0], X[9])
    assert pair[-1][1] == Y[9]
    assert list(named[2]) == ["b", "a"]
    np.testing.assert_array_equal(one.batch(PICKED), X[PICKED])
    np.testing.assert_array_equal(pair.batch(PICKED)[1], Y[PICKED])
    np.testing.assert_array_equal(named.batch(PICKED)["b"], X[PICKED])
    assert len(list(pair)) == 10


def test_a_batch_is_what_the_single_examples_make() -> None:
    dataset = ArrayDataset({"x": X, "y": Y})
    fast, slow = dataset.batch(PICKED), Dataset.batch(dataset, PICKED)
    for name in "xy":
        np.testing.assert_array_equal(fast[name], slow[name])
        assert fast[name].dtype == slow[name].dtype


@pytest.mark.parametrize("array", [X[::-1], np.asfortranarray(X), X[:, ::2], X.astype(">f4")])
def test_arrays_of_any_layout(array: np.ndarray) -> None:
    np.testing.assert_array_equal(ArrayDataset(array).batch(PICKED), array[PICKED])


def test_tensors_and_lists_as_arrays(backend: str) -> None:
    x, y, z = ArrayDataset(ops.array(X), [[1.0], [2.0]] * 5, list(range(10))).batch([4, 1])
    np.testing.assert_array_equal(x, X[[4, 1]])
    assert (y.dtype, z.dtype) == (np.float32, np.int64)
    assert y.tolist() == [[1.0], [2.0]]


def test_a_batch_shares_no_memory_with_the_data() -> None:
    data = X.copy()
    ArrayDataset(data).batch(np.arange(10))[:] = -1
    np.testing.assert_array_equal(data, X)


def test_arrays_of_two_lengths_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"array 'x' has 10 examples and array 'y' has 9"):
        ArrayDataset({"x": X, "y": Y[:9]})
    with pytest.raises(ShapeError, match="0-dimensional"):
        ArrayDataset(3.0)
    with pytest.raises(ArgumentError, match="at least one"):
        ArrayDataset()
    with pytest.raises(ArgumentTypeError, match="not str"):
        ArrayDataset("abc")


def test_indices_out_of_range_and_of_other_types_are_refused() -> None:
    for dataset in (
        ArrayDataset(X),
        Subset(ArrayDataset(X), range(10)),
        GeneratedDataset(noise, 10),
    ):
        with pytest.raises(IndexOutOfRangeError, match="index 10 is out of range for 10"):
            dataset[10]
        with pytest.raises(ArgumentTypeError, match="integer"):
            dataset[1.5]


def test_subset_and_concat_are_torchs() -> None:
    ours = Subset(ArrayDataset(X), [9, 4, -1])
    assert [row.tolist() for row in ours] == [X[9].tolist(), X[4].tolist(), X[9].tolist()]
    parts = [X[:4], X[4:4], X[4:9], X[9:]]
    both = ConcatDataset([ArrayDataset(part, part[:, 0]) for part in parts])
    theirs = peer.ConcatDataset([peer.TensorDataset(torch.from_numpy(part)) for part in parts])
    assert len(both) == len(theirs)
    for index in [*range(10), -1, -10]:
        assert both[index][0].tolist() == theirs[index][0].tolist()
    rows, firsts = both.batch([9, 0, 5, 4, 3, 9])
    assert rows.tolist() == [theirs[index][0].tolist() for index in (9, 0, 5, 4, 3, 9)]
    np.testing.assert_array_equal(rows[:, 0], firsts)


def test_concat_of_what_cannot_be_joined() -> None:
    with pytest.raises(ShapeError, match=r"\(3,\).*\(2,\)"):
        ConcatDataset([ArrayDataset(X), ArrayDataset(np.ones((4, 3), np.float32))]).batch([0, 11])
    texts = ConcatDataset([Squares(2).map(str), Squares(2).map(repr)])
    assert texts.batch([3, 0]) == [repr(Squares(2)[1]), str(Squares(2)[0])]


def test_subset_refuses_indices_that_are_not() -> None:
    with pytest.raises(ArgumentError, match="index 10 is out of range for 10"):
        Subset(ArrayDataset(X), [1, 10])
    with pytest.raises(ArgumentTypeError, match="sequence of integers"):
        Subset(ArrayDataset(X), [0.5])
    with pytest.raises(ArgumentTypeError, match="expected a Dataset"):
        Subset(X, [0])
    assert len(Subset(ArrayDataset(X), [])) == 0


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        ([7, 3], [7, 3]),
        ([0.7, 0.3], [7, 3]),
        ([0.5, 0.25, 0.25], [5, 3, 2]),
        ([1 / 3] * 3, [4, 3, 3]),
    ],
)
def test_random_split_is_a_partition(lengths: list, sizes: list) -> None:
    dataset = ArrayDataset(np.arange(10))
    parts = random_split(dataset, lengths, seed=3)
    assert [len(part) for part in parts] == sizes
    found = [int(number) for part in parts for number in part]
    assert sorted(found) == list(range(10))
    assert found != list(range(10))
    again = random_split(dataset, lengths, seed=3)
    assert [list(part) for part in again] == [list(part) for part in parts]
    other = random_split(dataset, lengths, seed=4)
    assert [list(part) for part in other] != [list(part) for part in parts]


def test_random_split_refuses_lengths_that_do_not_fit() -> None:
    dataset = ArrayDataset(X)
    with pytest.raises(ShapeError, match="sum to 9, but the dataset has 10"):
        random_split(dataset, [6, 3])
    with pytest.raises(ArgumentError, match="not to 1"):
        random_split(dataset, [0.5, 0.4])
    with pytest.raises(ArgumentTypeError, match="fractions"):
        random_split(dataset, [11, -1])


def test_map_by_example_and_by_batch() -> None:
    by_example = ArrayDataset(X).map(double)
    by_batch = ArrayDataset(X).map(double, batched=True)
    np.testing.assert_array_equal(by_example.batch(PICKED), 2 * X[PICKED])
    np.testing.assert_array_equal(by_batch.batch(PICKED), 2 * X[PICKED])
    np.testing.assert_array_equal(by_batch[-1], 2 * X[9])
    with pytest.raises(ArgumentTypeError, match="callable"):
        MapDataset(by_batch, 3)


def test_a_generated_example_depends_on_seed_and_index_alone() -> None:
    dataset = GeneratedDataset(noise, 100, seed=5)
    forward = [dataset[index]["noise"].tolist() for index in range(100)]
    backward = [dataset[index]["noise"].tolist() for index in reversed(range(100))]
    assert forward == backward[::-1]
    assert len({tuple(row) for row in forward}) == 100
    np.testing.assert_array_equal(dataset.batch([40, 2])["noise"], [forward[40], forward[2]])
    other = GeneratedDataset(noise, 100, seed=6)
    assert other[0]["noise"].tolist() != forward[0]
    assert forward[3] == noise(3, random_stream(5, 3))["noise"].tolist()


def test_streams_of_neighbouring_examples_are_independent() -> None:
    draws = np.stack([random_stream(0, index).standard_normal(50) for index in range(200)])
    correlation = np.corrcoef(draws) - np.eye(200)
    assert abs(correlation).max() < 0.8  # of 19,900 pairs of 50 draws; 0.8 is beyond 7 sigma
    assert abs(draws.mean()) < 0.05


def test_generated_whole_batches() -> None:
    dataset = GeneratedDataset(
        length=9, seed=2, batch_function=lambda i, seed: {"x": 10 * i + seed}
    )
    assert dataset.batch([8, 0])["x"].tolist() == [82, 2]
    assert dataset[-1]["x"] == 82
    with pytest.raises(ArgumentError, match="either function or batch_function"):
        GeneratedDataset(length=3)
    with pytest.raises(ArgumentError, match="length must be at least 0, not -1"):
        GeneratedDataset(noise, -1)
    with pytest.raises(ArgumentError, match="out of range"):
        dataset.batch([9])


def test_a_stream_begins_again() -> None:
    stream = IterableDataset(count_to_ten).map(double)
    assert list(stream) == list(stream) == list(range(0, 20, 2))
    with pytest.raises(ArgumentTypeError, match="function that returns a new iterator"):
        IterableDataset(iter(range(3)))
    with pytest.raises(ArgumentTypeError, match="must be callable"):
        stream.map(None)


def test_an_error_in_an_example_names_it() -> None:
    with pytest.raises(ValueError, match="no number 3") as caught:
        Squares(5, bad=3).batch([1, 3])
    assert caught.value.__notes__ == ["in example 3 of Squares"]
