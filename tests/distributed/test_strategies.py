"""Strategies: several processes train as one, and each has the parts it should have."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import nn, ops, registry
from ember_ml.backend import available, use_backend
from ember_ml.distributed import capabilities
from ember_ml.training import Trainer
from tests.distributed import tasks
from tests.robustness.scale import FULL

MOE = ["swiglu", {"type": "moe", "num_experts": 4, "balance_weight": 0.0, "z_weight": 0.0}]
"""The balance of the experts is not a mean over examples, so each part of a batch has its own."""
ATTENTION = {"type": "attention", "num_heads": 4}
GLA = {"type": "gla", "num_heads": 4}
LAYERS = [ATTENTION, "mamba", "hyena", GLA, "rwkv", "lstm", *MOE]
"""One model of all kinds of layers: if one of them computes something else, the model does."""


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


TWO = ["dp", "fsdp", "tp", {"type": "pp", "schedule": "gpipe"}, {"type": "pp", "schedule": "1f1b"}]
FOUR = [{"pp": 4}, {"fsdp": 2, "tp": 2}, {"dp": 2, "pp": 2}]
if FULL:
    FOUR += [{"dp": 4}, {"fsdp": 4}, {"dp": 2, "fsdp": 2}, {"dp": 2, "tp": 2}]
    FOUR += [{"tp": 4}, {"fsdp": 2, "pp": 2}, {"tp": 2, "pp": 2}]
MESHES = [(2, each) for each in TWO] + [(4, {"type": "mesh", "mesh": each}) for each in FOUR]


@pytest.fixture(scope="module")
def whole() -> dict:
    """Return the training of one process."""
    return tasks.alone("train", pattern=LAYERS)


@pytest.mark.parametrize(("number", "strategy"), MESHES, ids=str)
def test_processes_train_as_one(pools, whole: dict, number: int, strategy) -> None:
    results = pools(number).run("tests.distributed.tasks:train", pattern=LAYERS, strategy=strategy)
    assert_equal_training(results, whole)
    named = {"type": strategy} if isinstance(strategy, str) else strategy
    mesh = named.get("mesh", {named["type"]: number})
    tp, fsdp = mesh.get("tp", 1), mesh.get("fsdp", 1)
    # test_tensor_parallel.py has the parts of all layers
    ends = ("",) if tp == 1 else (".layer.expand.weight", ".layer.qkv.weight")
    for rank, result in enumerate(results):
        for name in (name for name in whole["shapes"] if name.endswith(ends)):
            first, *others = whole["shapes"][name]
            part = [rows(first // tp, rank // tp % fsdp, fsdp), *others]
            # in a pipeline, a process has the parameters of some layers only
            possible = [part, [first, *others]] if "pp" in mesh else [part]
            assert result["shapes"][name] in possible, name


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
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_of_the_trainer(pools, options: dict) -> None:
    expected = tasks.alone("train", pattern="attention", **options)
    results = pools(2).run(
        "tests.distributed.tasks:train", pattern="attention", strategy="fsdp", **options
    )
    assert_equal_training(results, expected)


PRECISIONS = [(2, each, "bfloat16") for each in ("dp", "fsdp", "tp", "pp")]
PRECISIONS += [(2, "pp", "float16")]
PRECISIONS += [(4, {"type": "mesh", "mesh": {"fsdp": 2, "pp": 2}}, "bfloat16")]


@pytest.mark.parametrize(("number", "strategy", "precision"), PRECISIONS, ids=str)
def test_mixed_precision(pools, number: int, strategy, precision: str) -> None:
    options = {"pattern": [ATTENTION, "swiglu"], "accumulate": 2}
    exact = tasks.alone("train", **options)
    options["precision"] = precision
    expected = tasks.alone("train", **options)
    results = pools(number).run("tests.distributed.tasks:train", strategy=strategy, **options)
    assert_equal_training(results, expected, 0.03)
    assert abs(results[0]["losses"][0] - exact["losses"][0]) > 1e-6, "it computed in float64"


EXCHANGES = [(2, {"dp": 2}), (2, {"fsdp": 2}), (4, {"dp": 2, "pp": 2}), (4, {"fsdp": 2, "pp": 2})]


@pytest.mark.parametrize(("number", "mesh"), EXCHANGES, ids=str)
def test_accumulated_gradients_are_exchanged_once(pools, number: int, mesh: dict) -> None:
    task = {"pattern": ["swiglu", "swiglu"], "strategy": {"type": "mesh", "mesh": mesh}}
    function = "tests.distributed.tasks:gradient_exchanges"
    once, accumulated = (pools(number).run(function, accumulate=n, **task) for n in (1, 2))
    assert once == accumulated
    assert all(once)


SUMMED = {"type": "cross_entropy", "reduction": "sum"}
REPORTING = [
    # a mean over tokens, so equal microbatches have the loss of the whole batch
    ("pp", {"balance_weight": 0.0, "z_weight": 0.5}),
    ({"type": "pp", "microbatches": 1}, {"balance_weight": 0.5, "z_weight": 0.5}),
]


@pytest.mark.parametrize(("strategy", "weights"), REPORTING, ids=str)
@pytest.mark.parametrize("others", [{}, {"remat": "blocks"}, {"loss": SUMMED}], ids=str)
def test_layers_of_each_stage_report_losses(pools, strategy, weights: dict, others: dict) -> None:
    experts = {"type": "moe", "num_experts": 4, **weights}
    options = {"pattern": ["swiglu", experts, "swiglu", experts], "learning_rate": 1e-3, **others}
    expected = tasks.alone("train", **options)
    results = pools(2).run("tests.distributed.tasks:train", strategy=strategy, **options)
    assert_equal_training(results, expected)
    assert len(expected["terms"][0]) == sum(weight > 0 for weight in weights.values())
    for result in results:
        np.testing.assert_allclose(result["terms"], expected["terms"], rtol=1e-8)


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


@pytest.mark.parametrize(("kind", "accumulate"), [("weighted", 1), ("batches", 2)])
@pytest.mark.parametrize("strategy", ["dp", "fsdp", "tp", "pp"])
def test_parts_of_unequal_weight(pools, strategy: str, kind: str, accumulate: int) -> None:
    options = {"pattern": ["swiglu", "swiglu"], "kind": kind, "accumulate": accumulate}
    expected = tasks.alone("train", **options)
    results = pools(2).run("tests.distributed.tasks:train", strategy=strategy, **options)
    assert_equal_training(results, expected)


@pytest.mark.parametrize("optimizer", ["muon", "adafactor"])
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


@pytest.mark.parametrize("accumulate", [1, 2])
def test_named_losses_of_layers_are_in_the_records(accumulate: int) -> None:
    x, y = np.random.default_rng(0).random((16, 9, 4)).astype(np.float32), np.arange(16) % 3
    costs = []
    with use_backend("torch"):
        for strategy in (None, "dp", "fsdp"):
            ops.random.set_seed(0)
            model = nn.models.SeRNN(4, 3, 10)
            options = {"optimizer": "sgd", "strategy": strategy, "accumulate": accumulate}
            trainer = Trainer(model, learning_rate=0.01, seed=0, progress=False, **options)
            costs.append(trainer.fit((x, y), epochs=2, batch_size=8).column("wiring_cost"))
    assert len(costs[0]) == 2
    for other in costs[1:]:
        np.testing.assert_allclose(other, costs[0], rtol=1e-6)


OTHERS = [name for name in available() if capabilities(name) and name != "torch"]


@pytest.mark.parametrize("backend", OTHERS)
@pytest.mark.parametrize("strategy", ["dp", "tp"])
def test_other_backends(pools, backend: str, strategy: str) -> None:
    options = {"pattern": [ATTENTION, "swiglu"], "dtype": "float32", "clip_norm": 1.0}
    expected = tasks.alone("train", backend=backend, **options)
    results = pools(2, backend).run("tests.distributed.tasks:train", strategy=strategy, **options)
    assert_equal_training(results, expected, 1e-5)
