"""Unusual models and misuse, for tests that run them in several processes."""

from __future__ import annotations

import contextlib
import copy
import os
import signal
from typing import Any

import numpy as np

from ember_ml import nn, ops
from ember_ml._core.errors import EmberError
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.distributed import DataParallelStrategy, Mesh, Strategy
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback, Checkpoint
from tests.distributed import tasks


class Network(nn.Module):
    """Two layers, the second with one row, and a buffer that training changes.

    Args:
        scale_shape: Shape of a parameter that scales the output.
        has_unused: Whether there is a layer that is not used.
    """

    def __init__(self, scale_shape: tuple[int, ...] = (1,), has_unused: bool = False) -> None:
        super().__init__()
        self.hidden = nn.layers.Dense(4, 6)
        self.output = nn.layers.Dense(6, 1)
        self.scale = nn.Parameter(ops.ones(scale_shape))
        self.mean = nn.Buffer(ops.zeros((6,)))
        self.unused = nn.layers.Dense(3, 3) if has_unused else None

    def forward(self, x: Any) -> Any:
        h = ops.tanh(self.hidden(x))
        if self.training:
            mean = ops.stop_gradient(ops.mean(h, axis=0))
            self.mean.assign(0.9 * self.mean.value() + 0.1 * mean)
        return self.output(h) * self.scale


class Penalized(Trainer):
    """Adds a penalty on a parameter to the loss."""

    def compute(self, batch: Any) -> Any:
        loss, outputs = super().compute(batch)
        return loss + 0.1 * ops.sum(self.model.hidden.weight**2), outputs


class Inner(Trainer):
    """Calls submodules instead of the model."""

    def compute(self, batch: Any) -> Any:
        output = self.model.output(self.model.hidden(batch[0]))
        return ops.mean((output - batch[1]) ** 2), output


TRAINERS = {"plain": Trainer, "penalized": Penalized, "inner": Inner}


def strategy_of(name: str | None) -> Strategy | None:
    """Return a strategy as an object."""
    if name is None:
        return None
    if name == "dp":
        return DataParallelStrategy(timeout=20)
    return Strategy(Mesh(**{name: 2}), timeout=20)


def build(strategy: str | None, trainer: str = "plain", model: Any = None, **options: Any) -> Any:
    """Return a trainer of a small network."""
    ops.random.set_seed(0)
    network = Network(**(model or {}))
    network.to(dtype="float64" if "precision" not in options else "float32")
    settings = {"optimizer": "adamw", "learning_rate": 0.05, "seed": 0} | options
    return TRAINERS[trainer](
        network, "mse", strategy=strategy_of(strategy), progress=False, **settings
    )


def data(bad_row: int | None = None) -> DataLoader:
    """Return batches of 8 of 16 examples, of which one may have a NaN."""
    x = ops.random.normal((16, 4), seed=1).numpy().copy()
    if bad_row is not None:
        x[bad_row] = np.nan
    return DataLoader(ArrayDataset(x, ops.random.normal((16, 1), seed=2).numpy()), 8)


def train(
    strategy: str | None, bad_row: int | None = None, folder: str | None = None, **options: Any
) -> dict[str, Any]:
    """Train for two epochs, save and resume, and return losses, values and an evaluation."""
    trainer = build(strategy, **options)
    trainer.fit(data(bad_row), epochs=2)
    if folder is not None:
        trainer.save(folder)
        trainer = build(strategy, **options)
        trainer.resume(folder)
    return {
        "losses": trainer.history.losses,
        "parameters": tasks.whole_parameters(trainer),
        "mean": trainer.model.mean.tolist(),
        "evaluation": trainer.evaluate(data()),
    }


def failure(strategy: str, action: str = "fit", **options: Any) -> str:
    """Return the error of a training, or of an action after it."""
    try:
        trainer = build(strategy, **options)
        trainer.fit(data(), epochs=1)
        if action == "copy":
            copy.deepcopy(trainer.model)(ops.ones((2, 4), dtype="float64"))
        if action == "second trainer":
            Trainer(trainer.model, "mse", strategy=strategy, progress=False)
    except EmberError as error:
        return str(error)
    return "no error"


def two_trainers(strategy: str | None) -> list[list[float]]:
    """Return the losses of two trainers of one model, which train in turn."""
    first = build(strategy)
    first.fit(data(), epochs=1)
    second = Trainer(first.model, "mse", strategy=strategy_of(strategy), progress=False, seed=0)
    second.fit(data(), epochs=1)
    first.fit(data(), epochs=1)
    return [first.history.losses, second.history.losses]


def shared_groups() -> list[bool]:
    """Return whether trainers share the groups of a mesh: of the same mesh, and of another."""
    first, second, other = (build(each).parallel.world.topology for each in ("dp", "dp", "fsdp"))
    return [first.groups["dp"] is each.groups["dp"] for each in (second, other)]


def generate(strategy: str) -> str:
    """Return the error of generation with a model of which this process has parts."""
    trainer = tasks.build(["swiglu", "swiglu"], strategy)
    try:
        trainer.model.generate(ops.ones((1, 2), dtype="int64"), 2)
    except EmberError as error:
        return str(error)
    return "no error"


def non_finite(strategy: str) -> str:
    """Return the error of a batch that is not finite in one process."""
    try:
        build(strategy).fit(data(bad_row=1), epochs=1)
    except EmberError as error:
        return str(error)
    return "no error"


class InterruptOnce(Callback):
    """Sends Ctrl-C to the first process after the first step."""

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        if trainer.step == 1 and trainer.is_main:
            os.kill(os.getpid(), signal.SIGINT)


def interrupted_fit(strategy: str, folder: str) -> list[int]:
    """Return the number of steps after an interrupted fit, and after another one."""
    trainer = build(strategy, callbacks=[Checkpoint(folder), InterruptOnce()])
    steps = []
    for _ in range(2):
        with contextlib.suppress(KeyboardInterrupt):
            trainer.fit(data(), until_step=6)
        steps.append(trainer.step)
    return steps
