"""Random transforms: functions of (seed, epoch, index), with any workers and after resuming."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data import (
    ArrayDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    random_split,
    random_stream,
)
from ember_ml.data.text import pack

from .samples import add_noise, count_to_ten, double, listed, scale

X = np.linspace(1, 2, 22, dtype=np.float32).reshape(11, 2)
ORDER = {"shuffle": True, "seed": 3}
WORKERS = [
    {},
    {"num_workers": 1},
    {"num_workers": 3, "prefetch": 1},
    {"num_workers": 1, "worker_type": "process"},
    {"num_workers": 3, "worker_type": "process", "prefetch": 1},
]


def noisy() -> Dataset:
    return ArrayDataset(X).map(add_noise, seed=7).map(double).map(scale, seed=8)


def expected(index: int, epoch: int) -> np.ndarray:
    """Return an example of `noisy`, computed step by step."""
    row = 2 * add_noise(X[index], random_stream(7, index, epoch=epoch))
    return scale(row, random_stream(8, index, epoch=epoch))


def plain_loop(size: int, epochs: int) -> list[list]:
    """Return the batches of `noisy` in each epoch, without a loader of transformed examples."""
    orders = DataLoader(ArrayDataset(np.arange(len(X))), size, backend="numpy", **ORDER)
    return [
        [[expected(index, epoch).tolist() for index in batch] for batch in listed(orders)]
        for epoch in range(epochs)
    ]


@pytest.mark.parametrize("workers", WORKERS)
def test_epochs_are_those_of_a_plain_loop(workers: dict) -> None:
    loader = DataLoader(noisy(), 3, backend="numpy", **ORDER, **workers)
    epochs = plain_loop(3, 3)
    assert [listed(loader) for _ in range(3)] == epochs
    assert len({json.dumps(sorted(itertools.chain(*epoch))) for epoch in epochs}) == 3


@pytest.mark.parametrize(("before", "after"), [(0, 4), (3, 1), (4, 3)])
def test_resuming_with_another_number_of_workers_is_exact(before: int, after: int) -> None:
    epochs = plain_loop(3, 3)
    first = DataLoader(noisy(), 3, backend="numpy", **ORDER, **WORKERS[before])
    listed(first)
    assert [batch.tolist() for batch in itertools.islice(first, 2)] == epochs[1][:2]
    second = DataLoader(noisy(), 3, backend="numpy", **ORDER, **WORKERS[after])
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert listed(second) == epochs[1][2:]
    assert listed(second) == epochs[2]


def test_the_generator_never_changes() -> None:
    """Written down: other values in a release would change every resumed training."""
    assert random_stream(7, 3).integers(0, 1000, 4).tolist() == [377, 567, 130, 644]
    assert random_stream(7, 3, epoch=2).integers(0, 1000, 4).tolist() == [415, 868, 939, 529]


def test_generators_differ_by_seed_epoch_and_index() -> None:
    keys = list(itertools.product(range(3), repeat=3))
    draws = [random_stream(seed, index, epoch=epoch).random() for seed, epoch, index in keys]
    draws += [random_stream(seed, index).random() for seed in range(3) for index in range(3)]
    assert len(set(draws)) == 36


@pytest.mark.parametrize(
    "build",
    [
        lambda data: Subset(data, np.arange(11)[::-1]),
        lambda data: ConcatDataset([Subset(data, range(4)), ArrayDataset(X), data]),
        lambda data: random_split(data, [6, 5], seed=1)[0],
        lambda data: data.map(double, batched=True),
        lambda data: Subset(ConcatDataset([data, data]).map(double), [3, 20]).map(scale, seed=1),
    ],
)
def test_datasets_of_datasets_pass_the_epoch_on(build: Callable[[Dataset], Dataset]) -> None:
    """The transformed data of an epoch stands in for a dataset that knows its epoch."""
    for epoch in range(2):
        fixed = ArrayDataset(np.stack([expected(index, epoch) for index in range(11)]))
        whole, reference = build(noisy()).for_epoch(epoch), build(fixed).for_epoch(epoch)
        np.testing.assert_array_equal(list(whole), list(reference))
        indices = np.arange(len(whole))[::-2]
        np.testing.assert_array_equal(whole.batch(indices), reference.batch(indices))


def test_a_dataset_without_seeds_is_the_same_object_in_every_epoch() -> None:
    data = Subset(ConcatDataset([ArrayDataset(X).map(double), ArrayDataset(X)]), [1, 2])
    assert data.for_epoch(5) is data
    stream = IterableDataset(count_to_ten).map(double)
    assert stream.for_epoch(5) is stream


def test_an_index_from_the_end_has_the_same_generator() -> None:
    np.testing.assert_array_equal(noisy()[-1], expected(10, 0))


def test_a_collate_function_sees_the_transformed_examples() -> None:
    loader = DataLoader(noisy(), 11, collate=np.stack, backend="numpy")
    loader.epoch = 4
    np.testing.assert_array_equal(listed(loader)[0], [expected(i, 4) for i in range(11)])


def numbers() -> Iterator[np.ndarray]:
    return iter(X)


@pytest.mark.parametrize(
    ("workers", "shard"),
    [
        *itertools.product(WORKERS[:2], [(0, 1), (0, 2), (1, 2)]),
        (WORKERS[3], (1, 2)),  # starting processes is slow
    ],
)
def test_streams_are_those_of_a_plain_loop(workers: dict, shard: tuple[int, int]) -> None:
    stream = IterableDataset(numbers).map(add_noise, seed=7).map(double).map(scale, seed=8)
    options = {"backend": "numpy", "shard": shard, **workers}
    loader = DataLoader(stream, 2, **options)
    for epoch in range(2):
        rows = [expected(index, epoch).tolist() for index in range(11)]
        steps = [rows[start : start + 2 * shard[1]] for start in range(0, 11, 2 * shard[1])]
        ends = [(len(s) * shard[0] // shard[1], len(s) * (shard[0] + 1) // shard[1]) for s in steps]
        batches = [step[begin:end] for step, (begin, end) in zip(steps, ends, strict=True)]
        resumed = DataLoader(stream, 2, **options)
        resumed.load_state_dict(loader.state_dict() | {"batches": 2})
        assert listed(resumed) == batches[2:]
        assert listed(loader) == batches


def test_skipped_examples_of_a_stream_are_not_transformed() -> None:
    seen = []

    def record(x: int, rng: np.random.Generator) -> int:
        seen.append(x)
        return x

    loader = DataLoader(IterableDataset(count_to_ten).map(record, seed=0), 2, backend="numpy")
    loader.load_state_dict(loader.state_dict() | {"batches": 3})
    assert listed(loader) == [[6, 7], [8, 9]]
    assert seen == [6, 7, 8, 9]


def test_packed_rows_are_those_of_the_documents_of_the_epoch() -> None:
    def shuffle(document: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.permutation(document)

    documents = [np.arange(10 * n, 10 * n + 5) for n in range(7)]
    for source in (ArrayDataset(np.stack(documents)), IterableDataset(lambda: documents)):
        loader = DataLoader(pack(source.map(shuffle, seed=2), 4), 2, backend="numpy")
        for epoch in range(2):
            ids = [shuffle(d, random_stream(2, n, epoch=epoch)) for n, d in enumerate(documents)]
            rows = np.concatenate(ids)[:32].reshape(8, 4).tolist()
            assert list(itertools.chain(*listed(loader))) == rows
    plain = pack(documents, 4)
    assert plain.for_epoch(3) is plain


def test_bad_arguments() -> None:
    data, stream = ArrayDataset(X), IterableDataset(count_to_ten)
    with pytest.raises(ArgumentError, match="single examples; use batched=False"):
        data.map(scale, batched=True, seed=1)
    for source in (data, stream):
        with pytest.raises(ArgumentTypeError, match=r"seed must be an integer, not 1\.5"):
            source.map(scale, seed=1.5)
        with pytest.raises(ArgumentError, match="seed must be at least 0, not -1"):
            source.map(scale, seed=-1)
        with pytest.raises(ArgumentTypeError, match="must be callable, not 3"):
            source.map(3, seed=1)
