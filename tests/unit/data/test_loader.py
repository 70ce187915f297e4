"""The loader: orders, backends, resuming, shards, streams, bad arguments."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as PeerLoader
from torch.utils.data import TensorDataset

from ember_ml import ops, use_backend
from ember_ml._core.errors import (
    ArgumentError,
    ArgumentTypeError,
    UnknownBackendError,
    UnsupportedDTypeError,
)
from ember_ml.backend import BACKENDS, available
from ember_ml.data import ArrayDataset, DataLoader, GeneratedDataset, IterableDataset

from .samples import Squares, Tensors, count_to_ten, listed, noise, summed

NUMBERS = ArrayDataset(np.arange(23))
WORKERS = [{}, {"num_workers": 1}, {"num_workers": 3, "prefetch": 1}]
ORDERS = [[9, 0, 3, 6, 2, 7, 4, 8, 5, 1], [9, 3, 2, 6, 1, 0, 7, 4, 5, 8]]


def numbers(loader: DataLoader) -> list[int]:
    return [number for batch in loader for number in batch.tolist()]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("length", [0, 1, 8, 23])
def test_batches_in_the_datasets_order_are_torchs(length: int, drop_last: bool) -> None:
    x, y = np.arange(2.0 * length).reshape(length, 2), np.arange(length)
    ours = DataLoader(ArrayDataset(x, y), 4, drop_last=drop_last, backend="numpy")
    tensors = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    theirs = PeerLoader(tensors, 4, drop_last=drop_last)
    assert len(ours) == len(theirs)
    assert listed(ours) == [[part.tolist() for part in batch] for batch in theirs]


def test_tensors_are_of_the_active_backend_or_the_one_named(backend: str) -> None:
    loader = DataLoader(ArrayDataset({"x": np.ones((3, 2), np.float32), "y": [1, 2, 3]}), 2)
    batch = next(iter(loader))
    assert {part.backend for part in batch.values()} == {backend}
    assert (batch["x"].dtype, batch["y"].dtype) == ("float32", "int64")
    assert batch["x"].shape == (2, 2)
    named = next(iter(DataLoader(NUMBERS, 2, backend="numpy")))
    assert named.backend == "numpy"


def test_every_dtype_of_a_backend_arrives_as_it_is(backend: str) -> None:
    for name in ("bool", "int8", "uint8", "int32", "float16", "float32", "complex64"):
        array = np.array([0, 1, 1], name)
        for batch in DataLoader(ArrayDataset(array), 2):
            assert batch.dtype == name


def test_no_dtype_is_changed_in_silence() -> None:
    if "mlx" not in available():
        pytest.skip("the mlx backend is not installed")
    with pytest.raises(UnsupportedDTypeError, match="mlx backend has no float64"):
        next(iter(DataLoader(ArrayDataset(np.ones(3)), backend="mlx")))


def test_the_order_of_an_epoch_never_changes() -> None:
    """Written down: an order that changes with a release would break every resumed training."""
    loader = DataLoader(ArrayDataset(np.arange(10)), 10, shuffle=True, seed=5, backend="numpy")
    assert [numbers(loader) for _ in range(2)] == ORDERS
    loader.epoch = 1
    assert numbers(loader) == ORDERS[1]


def test_orders_are_permutations_that_differ_by_epoch_and_seed() -> None:
    orders = []
    for seed in (0, 1, 2**40):
        loader = DataLoader(NUMBERS, 4, shuffle=True, seed=seed, backend="numpy")
        orders += [numbers(loader) for _ in range(4)]
        assert loader.epoch == 4
    assert all(sorted(order) == list(range(23)) for order in orders)
    assert len(set(map(tuple, orders))) == len(orders)


@pytest.mark.parametrize("workers", WORKERS)
def test_order_and_values_are_the_same_on_every_backend(backend: str, workers: dict) -> None:
    dataset = GeneratedDataset(noise, 23, seed=1)
    loader = DataLoader(dataset, 4, shuffle=True, seed=3, **workers)
    reference = DataLoader(dataset, 4, shuffle=True, seed=3, backend="numpy")
    for _ in range(2):
        assert listed(loader) == listed(reference)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("stream", [False, True])
def test_resume_at_each_point(workers: dict, stream: bool) -> None:
    dataset = IterableDataset(count_to_ten) if stream else ArrayDataset(np.arange(10))
    options = {"shuffle": not stream, "seed": 7, "backend": "numpy", **workers}
    if stream:
        options["num_workers"] = min(options.get("num_workers", 0), 1)
    epochs = [listed(loader) for loader in [DataLoader(dataset, 3, **options)] for _ in range(3)]
    for epoch, taken in itertools.product(range(2), range(5)):
        first = DataLoader(dataset, 3, **options)
        for _ in range(epoch):
            listed(first)
        running = iter(first)
        received = [batch.tolist() for batch in itertools.islice(running, taken)]
        state = json.loads(json.dumps(first.state_dict()))
        assert (state["epoch"], state["batches"]) == (epoch, taken)
        second = DataLoader(dataset, 3, **options)
        second.load_state_dict(state)
        assert received + listed(second) == epochs[epoch]
        assert listed(second) == epochs[epoch + 1]


def test_a_loop_that_is_left_counts_what_it_received() -> None:
    loader = DataLoader(NUMBERS, 4, shuffle=True, num_workers=2, backend="numpy")
    for count, _ in enumerate(loader, 1):
        assert loader.state_dict()["batches"] == count
        if count == 2:
            break
    assert (loader.epoch, loader.state_dict()["batches"]) == (0, 2)
    next(iter(loader))
    assert (loader.epoch, loader.state_dict()["batches"]) == (1, 1)


def test_a_loop_within_a_loop_has_its_own_epoch() -> None:
    loader = DataLoader(NUMBERS, 12, shuffle=True, backend="numpy")
    expected = [listed(DataLoader(NUMBERS, 12, shuffle=True, backend="numpy"))]
    outer = []
    for batch in loader:
        outer.append(batch.tolist())
        expected.append(listed(loader))
    assert outer == expected[0]
    assert len({json.dumps(epoch) for epoch in expected}) == 3


def test_a_state_after_the_end_begins_the_next_epoch() -> None:
    loader = DataLoader(NUMBERS, 4, backend="numpy")
    listed(loader)
    assert loader.state_dict()["epoch"] == 1
    assert loader.state_dict()["batches"] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "seed=0, but this one has seed=1"),
        ({"batch_size": 5}, "batch_size=4, but this one has batch_size=5"),
        ({"dataset": ArrayDataset(np.arange(24))}, "length=23, but this one has length=24"),
        ({"shuffle": True}, "shuffle=False, but this one has shuffle=True"),
        ({"drop_last": True}, "drop_last=False"),
        ({"shard": (0, 2)}, "batch_size=4, but this one has batch_size=8"),
    ],
)
def test_a_state_of_another_loader_is_refused(change: dict, message: str) -> None:
    state = DataLoader(NUMBERS, 4).state_dict()
    other = DataLoader(**{"dataset": NUMBERS, "batch_size": 4, **change})
    with pytest.raises(ArgumentError, match=message):
        other.load_state_dict(state)


def test_a_state_that_is_none_is_refused() -> None:
    loader = DataLoader(NUMBERS, 4)
    state = loader.state_dict()
    with pytest.raises(ArgumentError, match="not batches"):
        loader.load_state_dict({"batches": 1})
    with pytest.raises(ArgumentTypeError, match="must be a dict"):
        loader.load_state_dict([state])
    with pytest.raises(ArgumentError, match="7 batches, but an epoch has 6"):
        loader.load_state_dict(state | {"batches": 7})
    with pytest.raises(ArgumentTypeError, match="epoch must be an integer"):
        loader.load_state_dict(state | {"epoch": "first"})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("length", "count", "size"), [(24, 3, 4), (29, 3, 4), (10, 2, 4), (5, 4, 3)]
)
def test_shards_of_a_step_are_the_batch_of_one_machine(
    length: int, count: int, size: int, stream: bool
) -> None:
    numbers = range(length)
    dataset = IterableDataset(lambda: numbers) if stream else ArrayDataset(np.arange(length))
    options = {"shuffle": not stream, "backend": "numpy"}
    whole = listed(DataLoader(dataset, size * count, **options))
    shards = [
        listed(DataLoader(dataset, size, shard=(index, count), **options)) for index in range(count)
    ]
    assert [list(itertools.chain(*step)) for step in zip(*shards, strict=True)] == whole
    assert all(len(batch) <= size for shard in shards for batch in shard)


@pytest.mark.parametrize("stream", [False, True])
def test_a_last_step_with_fewer_examples_than_shards_repeats_some(stream: bool) -> None:
    dataset = IterableDataset(count_to_ten) if stream else ArrayDataset(np.arange(10))
    shards = [listed(DataLoader(dataset, 2, shard=(k, 4), backend="numpy")) for k in range(4)]
    assert [shard[0] for shard in shards] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    last = [shard[1] for shard in shards]
    assert [len(batch) for batch in last] == [1] * 4
    assert {number for batch in last for number in batch} == {8, 9}
    dropped = [DataLoader(dataset, 2, shard=(k, 4), drop_last=True) for k in range(4)]
    assert [len(listed(loader)) for loader in dropped] == [1] * 4


def test_shards_resume_from_one_state() -> None:
    def loader(index: int) -> DataLoader:
        return DataLoader(NUMBERS, 3, shuffle=True, shard=(index, 2), backend="numpy")

    first = loader(0)
    next(iter(first))
    state = first.state_dict()
    second = loader(1)
    second.load_state_dict(state)
    assert listed(second) == listed(loader(1))[1:]


def test_a_stream_has_no_length_and_no_shuffle() -> None:
    stream = IterableDataset(count_to_ten)
    with pytest.raises(ArgumentTypeError, match="no length"):
        len(DataLoader(stream))
    with pytest.raises(ArgumentError, match="cannot be shuffled"):
        DataLoader(stream, shuffle=True)
    with pytest.raises(ArgumentError, match="0 or 1, not 2"):
        DataLoader(stream, num_workers=2)
    batches = listed(DataLoader(stream, 4, drop_last=True, backend="numpy"))
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_collate_of_the_users_own(backend: str) -> None:
    batches = list(DataLoader(Squares(5), 2, collate=summed))
    assert [batch.item() for batch in batches] == [1, 5, 4]
    assert batches[0].backend == backend
    texts = DataLoader(
        Squares(3), 2, collate=lambda items: {"texts": ["a", None], "x": items[0][0]}
    )
    first = next(iter(texts))
    assert first["texts"] == ["a", None]
    assert first["x"].item() == 0


@pytest.mark.parametrize("workers", WORKERS)
def test_a_dataset_of_tensors_sees_the_active_backend(backend: str, workers: dict) -> None:
    for values, names in DataLoader(Tensors(5), 2, **workers):
        assert values.backend == backend
        assert set(names) == {backend}


def test_tensors_of_another_backend_are_moved(backend: str) -> None:
    for name in set(BACKENDS) & set(available()):
        with use_backend(name):
            made = ops.arange(4)
        batch = next(iter(DataLoader(Squares(4), 4, collate=lambda items, made=made: made)))
        assert (batch.backend, batch.tolist()) == (backend, [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"batch_size": 0}, ArgumentError, "batch_size must be at least 1, not 0"),
        ({"batch_size": 2.0}, ArgumentTypeError, "batch_size must be an integer, not 2.0"),
        ({"batch_size": True}, ArgumentTypeError, "batch_size must be an integer"),
        ({"seed": -1}, ArgumentError, "seed must be at least 0"),
        ({"num_workers": -1}, ArgumentError, "num_workers must be at least 0"),
        ({"worker_type": "fork"}, ArgumentError, "'thread' or 'process', not 'fork'"),
        ({"prefetch": 0}, ArgumentError, "prefetch must be at least 1"),
        ({"shard": 1}, ArgumentTypeError, r"shard must be \(index, count\), not 1"),
        ({"shard": (2, 2)}, ArgumentError, "less than its count 2, not 2"),
        ({"shard": (0, 0)}, ArgumentError, "count must be at least 1"),
        ({"collate": 3}, ArgumentTypeError, "collate must be callable"),
        ({"backend": "tensorflow"}, UnknownBackendError, "unknown backend 'tensorflow'"),
        ({"dataset": [1, 2]}, ArgumentTypeError, "expected a Dataset or an IterableDataset"),
    ],
)
def test_bad_arguments(options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        DataLoader(**{"dataset": NUMBERS, **options})


def test_an_error_in_the_loop_itself_keeps_its_type() -> None:
    loader = DataLoader(Squares(8, bad=5), 2, backend="numpy")
    with pytest.raises(ValueError, match="no number 5") as caught:
        listed(loader)
    assert caught.value.__notes__[0] == "in example 5 of Squares"
    assert loader.state_dict()["batches"] == 2


def test_a_run_continues_with_another_number_of_machines() -> None:
    whole = DataLoader(NUMBERS, 4, shuffle=True, seed=3, backend="numpy")
    expected = [batch.tolist() for batch in whole.once()]
    first = [DataLoader(NUMBERS, 1, shuffle=True, seed=3, shard=(k, 4)) for k in range(4)]
    next(iter(first[0]))
    parts = [whole.sharded(k, 2) for k in range(2)]
    for part in parts:
        part.load_state_dict(first[0].state_dict())
    rest = [list(itertools.chain(*step)) for step in zip(*map(listed, parts), strict=True)]
    assert rest == expected[1:]


def test_parts_of_a_loader_that_cannot_be_divided() -> None:
    with pytest.raises(ArgumentError, match=r"batch_size \(4\) must be divisible by 3"):
        DataLoader(NUMBERS, 4).sharded(0, 3)
    with pytest.raises(ArgumentError, match=r"shard=.0, 2. already"):
        DataLoader(NUMBERS, 4, shard=(0, 2)).sharded(1, 4)


def test_a_state_of_an_earlier_version_has_the_number_of_machines() -> None:
    loader = DataLoader(NUMBERS, 2, shard=(1, 2))
    state = {**loader.state_dict(), "batch_size": 2, "shards": 2, "epoch": 3}
    loader.load_state_dict(state)
    assert loader.epoch == 3
