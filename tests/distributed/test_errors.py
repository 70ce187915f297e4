"""Errors of processes that cannot train together, and the interface of strategies."""

from __future__ import annotations

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml._core.errors import ArgumentError
from ember_ml.backend import available
from ember_ml.configs import ConfigError
from ember_ml.distributed import (
    DataParallelStrategy,
    DistributedError,
    Environment,
    Mesh,
    Strategy,
    capabilities,
    strategy,
)
from ember_ml.distributed.mesh import AXES
from ember_ml.distributed.world import World
from ember_ml.nn import tensor
from ember_ml.training import Trainer
from tests.distributed import tasks

TASKS = "tests.distributed.test_errors:"


def failure(pattern, strategy, different: str = "", **options) -> str:
    """Return the error of a trainer; some options differ between the processes."""
    from ember_ml.distributed import read_environment

    rank = read_environment().rank
    if different == "model":
        pattern = ["attention", "swiglu"][rank]
    if different == "config":
        options["clip_norm"] = 1.0 + rank
    if different == "strategy":
        strategy = ["dp", {"type": "dp", "find_unused": True}][rank]
    try:
        tasks.build(pattern, strategy, **options)
    except (DistributedError, ArgumentError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


WRONG = [
    ({"strategy": {"type": "mesh", "mesh": {"tp": 2, "dp": 2}}}, "has 4 processes, but 2 were"),
    ({"strategy": "tp"}, "num_heads (1) must be divisible by tp (2)"),
    ({"strategy": {"type": "tp", "layout": {"*.wight": 0}}, "pattern": "swiglu"},
     "no parameter matches '*.wight'"),
    ({"strategy": {"type": "fsdp", "units": ["*.layers.*"]}}, "no module matches the unit"),
    ({"strategy": "pp"}, "1 layers cannot be divided into 2 stages"),
    ({"strategy": "pp", "pattern": ["swiglu", "swiglu"], "train_metrics": True,
      "metrics": ["accuracy"]}, "train_metrics=True does not work with a pipeline"),
    ({"strategy": "dp", "compile": True}, "compile=True does not work with a strategy"),
    ({"strategy": "dp", "different": "model"}, "the model differs between processes"),
    ({"strategy": "dp", "different": "config"}, "clip_norm is 1.0 and 2.0 (process 0 and"),
    ({"strategy": "dp", "different": "strategy"}, "the strategy differs between processes"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), WRONG, ids=lambda x: str(x)[:40])
def test_errors_are_the_same_in_each_process(pools, options: dict, message: str) -> None:
    arguments = {"pattern": "attention", **options}
    for text in pools(2).run(f"{TASKS}failure", **arguments):
        assert message in text


def unequal_batches() -> str:
    """Return the error of a list of batches that cannot be shared."""
    trainer = tasks.build("attention", "dp")
    tokens = ops.ones((1, 4), dtype="int64")
    try:
        trainer.fit([(tokens, tokens)], epochs=1)
    except DistributedError as error:
        return str(error)
    return "no error"


def test_a_batch_with_too_few_examples(pools) -> None:
    for text in pools(2).run(f"{TASKS}unequal_batches"):
        assert "fewer examples than the 2 processes" in text


def saved_alone(folder: str) -> str:
    """Return the error of saving a model of which this process has parts."""
    trainer = tasks.build("attention", "fsdp")
    try:
        ember_ml.save(trainer.model.backbone, folder)
    except ember_ml.nn.checkpoint.CheckpointError as error:
        return str(error)
    return "no error"


def test_parts_of_a_model_are_not_saved_as_a_model(pools, tmp_path) -> None:
    for text in pools(2).run(f"{TASKS}saved_alone", folder=str(tmp_path / "model")):
        assert "trainer.save" in text
    assert not (tmp_path / "model").exists()


LACKING = [(name, axis) for name in available() for axis in AXES if axis not in capabilities(name)]


@pytest.mark.parametrize(("backend", "axis"), LACKING)
def test_a_backend_without_an_axis_says_what_it_has(backend: str, axis: str) -> None:
    mesh = Mesh(**{"dp": 1, axis: 2})
    with pytest.raises(DistributedError, match=f"has no mesh axis '{axis}'; its axes are"):
        World(mesh, backend, environment=Environment(0, 2, 0, "test"))


def test_a_backend_with_one_axis_at_a_time() -> None:
    with pytest.raises(DistributedError, match="one mesh axis at a time, not dp x tp"):
        World(Mesh(dp=2, tp=2), "mlx", environment=Environment(0, 4, 0, "test"))


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2"])
def test_lengths_of_axes(value: object) -> None:
    with pytest.raises(ArgumentError, match="tp must be an integer of at least 1"):
        Mesh(tp=value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mesh": {"xp": 2}}, "a mesh has no axis 'xp'; its axes are pp, dp, fsdp, tp"),
        ({"mesh": 5}, "mesh must be a Mesh or a mapping"),
        ({"timeout": -1}, "timeout must be more than 0, not -1"),
        ({"timeout": float("nan")}, "timeout must be more than 0, not nan"),
    ],
)
def test_wrong_arguments_of_strategies(options: dict, message: str) -> None:
    with pytest.raises((ArgumentError, TypeError), match=message):
        Strategy(**options)


def test_the_default_of_dp_is_what_is_left() -> None:
    assert Mesh(tp=2).on(8) == Mesh(dp=4, tp=2)
    with pytest.raises(DistributedError, match=r"the mesh \(dp=2 x tp=3\) has 6 processes, but 8"):
        Mesh(tp=3).on(8)


def test_an_unknown_strategy_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="fsdp"):
        Trainer(nn.layers.Dense(2, 1), "mse", strategy="fsdpp", progress=False)


def test_data_parallel_strategy_of_the_requirements() -> None:
    class OwnStrategy(strategy.Strategy):
        def distribute(self, batch):
            batch = tensor.convert_to_tensor(batch)
            return ops.split(batch, self.num_devices)

    x = ops.reshape(ops.arange(12.0), (4, 3))
    for each in (OwnStrategy(), DataParallelStrategy(), Strategy(Mesh(dp=1))):
        assert [part.tolist() for part in each.distribute(x)] == [x.tolist()]


def distributed_parts() -> list:
    """Return the parts of a batch of two processes."""
    x = ops.reshape(ops.arange(8.0), (4, 2))
    return [part.tolist() for part in DataParallelStrategy().distribute(x)]


def test_a_batch_is_distributed_to_two_processes(pools) -> None:
    for parts in pools(2).run(f"{TASKS}distributed_parts"):
        assert parts == [[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]]]
