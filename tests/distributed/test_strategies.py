"""Strategies: several processes train as one, and each has the parts it should have."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import registry
from ember_ml.backend import available
from ember_ml.distributed import capabilities
from tests.distributed import tasks

MOE = ["swiglu", {"type": "moe", "num_experts": 4, "balance_weight": 0.0, "z_weight": 0.0}]
"""The balance of the experts is not a mean over examples, so each part of a batch has its own."""
ATTENTION = {"type": "attention", "num_heads": 4}
LAYERS = [
    [ATTENTION, "swiglu"],
    ["mamba"],
    ["hyena"],
    [{"type": "gla", "num_heads": 4}],
    ["rwkv"],
    ["lstm"],
    MOE,
]


def rows(length: int, rank: int, size: int) -> int:
    """Return the number of rows that FSDP2 gives to a process: all but the last have as many."""
    each = -(-length // size)
    return max(0, min(each, length - rank * each))


def assert_equal_training(results: list[dict], expected: dict, tolerance: float = 1e-8) -> None:
    """Compare losses, norms, evaluations and whole parameters with those of one process."""
    for result in results:
        np.testing.assert_allclose(result["losses"], expected["losses"], rtol=tolerance)
        np.testing.assert_allclose(result["norms"], expected["norms"], rtol=10 * tolerance)
        assert result["evaluation"].keys() == expected["evaluation"].keys()
        for name, value in expected["evaluation"].items():
            np.testing.assert_allclose(result["evaluation"][name], value, rtol=10 * tolerance)
        assert result["parameters"].keys() == expected["parameters"].keys()
        for name, value in expected["parameters"].items():
            np.testing.assert_allclose(
                result["parameters"][name], value, atol=tolerance, rtol=0, err_msg=name
            )


@pytest.mark.parametrize("pattern", LAYERS, ids=str)
@pytest.mark.parametrize("strategy", ["dp", "fsdp"])
def test_two_processes_train_as_one(pools, strategy: str, pattern) -> None:
    expected = tasks.alone("train", pattern=pattern)
    results = pools(2).run("tests.distributed.tasks:train", pattern=pattern, strategy=strategy)
    assert_equal_training(results, expected)
    for rank, result in enumerate(results):
        for name, shape in expected["shapes"].items():
            part = [rows(shape[0], rank, 2), *shape[1:]]
            assert result["shapes"][name] == (part if strategy == "fsdp" else shape), name


OPTIMIZERS = [entry.name for entry in registry.available("optimizers")]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers_update_shards_as_whole_parameters(pools, optimizer: str) -> None:
    options = {"pattern": "attention", "optimizer": optimizer, "learning_rate": 0.01}
    expected = tasks.alone("train", **options)
    results = pools(2).run("tests.distributed.tasks:train", strategy="fsdp", **options)
    assert_equal_training(results, expected)


OPTIONS = [
    {"accumulate": 3},  # 5 batches: the last step of an epoch has 2
    {"clip_norm": 0.1},
    {"clip_value": 0.01},
    {"ema": 0.5},
    {"metrics": ["accuracy"], "train_metrics": True},
    {"schedule": {"type": "cosine"}},
    {"precision": "bfloat16"},
]


@pytest.mark.parametrize("strategy", ["dp", "fsdp"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_of_the_trainer(pools, strategy: str, options: dict) -> None:
    expected = tasks.alone("train", pattern="attention", **options)
    results = pools(2).run(
        "tests.distributed.tasks:train", pattern="attention", strategy=strategy, **options
    )
    assert_equal_training(results, expected, 1e-8 if "precision" not in options else 0.03)


MEMORY = [{"remat": "blocks"}, {"loss": {"type": "chunked_cross_entropy", "chunk_size": 4}}]


@pytest.mark.parametrize("options", MEMORY, ids=str)
@pytest.mark.parametrize("strategy", ["dp", "fsdp", "tp", "pp"])
def test_options_that_save_memory(pools, strategy: str, options: dict) -> None:
    pattern = [ATTENTION, "swiglu"]
    expected = tasks.alone("train", pattern=pattern)
    results = pools(2).run(
        "tests.distributed.tasks:train", pattern=pattern, strategy=strategy, **options
    )
    assert_equal_training(results, expected)


@pytest.mark.parametrize("kind", ["weighted", "batches"])
@pytest.mark.parametrize("strategy", ["dp", "fsdp", "tp", "pp"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_parts_of_unequal_weight(pools, strategy: str, kind: str, accumulate: int) -> None:
    options = {"pattern": ["swiglu", "swiglu"], "kind": kind, "accumulate": accumulate}
    expected = tasks.alone("train", **options)
    results = pools(2).run("tests.distributed.tasks:train", strategy=strategy, **options)
    assert_equal_training(results, expected)


PIPELINED = ["attention swiglu", "mamba hyena", "gla rwkv lstm", ["attention", *MOE]]


@pytest.mark.parametrize("pattern", PIPELINED, ids=str)
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_pipelines_of_two_processes(pools, schedule: str, pattern) -> None:
    expected = tasks.alone("train", pattern=pattern)
    strategy = {"type": "pp", "schedule": schedule}
    results = pools(2).run("tests.distributed.tasks:train", pattern=pattern, strategy=strategy)
    assert_equal_training(results, expected)


@pytest.mark.parametrize("pattern", LAYERS, ids=str)
def test_sharded_layers_that_are_also_split(pools, pattern) -> None:
    pattern = [*pattern, "swiglu"]
    expected = tasks.alone("train", pattern=pattern)
    strategy = {"type": "mesh", "mesh": {"fsdp": 2, "tp": 2}}
    results = pools(4).run("tests.distributed.tasks:train", pattern=pattern, strategy=strategy)
    assert_equal_training(results, expected)
    expand = [name for name in expected["shapes"] if name.endswith("expand.weight")][-1]
    rows_of_expand, columns = expected["shapes"][expand]
    assert results[0]["shapes"][expand] == [rows_of_expand // 4, columns]


MESHES = [
    {"dp": 4},
    {"fsdp": 4},
    {"dp": 2, "fsdp": 2},
    {"dp": 2, "pp": 2},
    {"pp": 4},
    {"fsdp": 2, "pp": 2},
    {"tp": 4},
    {"dp": 2, "tp": 2},
    {"fsdp": 2, "tp": 2},
    {"tp": 2, "pp": 2},
]


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_four_processes_train_as_one(pools, mesh: dict) -> None:
    pattern = [ATTENTION, "swiglu", "mamba", "swiglu"]
    expected = tasks.alone("train", pattern=pattern)
    strategy = {"type": "mesh", "mesh": mesh}
    results = pools(4).run("tests.distributed.tasks:train", pattern=pattern, strategy=strategy)
    assert_equal_training(results, expected)
    for rank, result in enumerate(results):
        shards = mesh.get("fsdp", 1)
        for name, shape in result["shapes"].items():
            whole = expected["shapes"][name]
            if mesh.get("pp", 1) == mesh.get("tp", 1) == 1:
                assert shape == [rows(whole[0], rank % shards, shards), *whole[1:]], name


@pytest.mark.parametrize("optimizer", ["muon", "adafactor", "lamb", "schedule_free_adamw"])
def test_optimizers_of_whole_matrices_with_split_layers(pools, optimizer: str) -> None:
    options = {"pattern": [ATTENTION, "swiglu"], "optimizer": optimizer, "learning_rate": 0.01}
    expected = tasks.alone("train", **options)
    strategy = {"type": "mesh", "mesh": {"fsdp": 2, "tp": 2}}
    results = pools(4).run("tests.distributed.tasks:train", strategy=strategy, **options)
    assert_equal_training(results, expected)


def test_one_process_needs_no_launcher() -> None:
    expected = tasks.alone("train", pattern="attention")
    for strategy in ("dp", "fsdp", "tp", "pp"):
        assert_equal_training(
            [tasks.alone("train", pattern="attention", strategy=strategy)], expected
        )


OTHERS = [name for name in available() if capabilities(name) and name != "torch"]


@pytest.mark.parametrize("backend", OTHERS)
@pytest.mark.parametrize("strategy", ["dp", "tp"])
def test_other_backends(pools, backend: str, strategy: str) -> None:
    options = {"pattern": [ATTENTION, "swiglu"], "dtype": "float32", "clip_norm": 1.0}
    expected = tasks.alone("train", backend=backend, **options)
    results = pools(2, backend).run("tests.distributed.tasks:train", strategy=strategy, **options)
    assert_equal_training(results, expected, 1e-5)
