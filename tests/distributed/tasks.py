"""Trainings that the tests run in several processes, and in one to compare with."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch

import ember_ml
from ember_ml import nn, ops
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.training import Trainer

VOCABULARY, LENGTH, EXAMPLES, BATCH = 11, 6, 40, 8


def data(kind: str = "loader") -> Any:
    """Return training data: a loader, a loader of weighted targets, or a list of batches."""
    x = ops.random.randint(0, VOCABULARY, (EXAMPLES, LENGTH), seed=1).numpy()
    y = ops.random.randint(0, VOCABULARY, (EXAMPLES, LENGTH), seed=2).numpy()
    if kind == "batches":  # of 8, 8, 8, 8, 5 and 3 examples
        ends = [0, 8, 16, 24, 32, 37, 40]
        return [(x[a:b], y[a:b]) for a, b in itertools.pairwise(ends)]
    dataset = ArrayDataset(x, y)
    if kind == "weighted":  # the second half of a batch has hardly any weight
        weights = np.where(np.arange(EXAMPLES) % 8 < 4, 1.0, 0.01)[:, None] * np.ones(LENGTH)
        weights[0] = 0.0
        dataset = ArrayDataset({"inputs": x, "targets": y, "sample_weight": weights})
    return DataLoader(dataset, BATCH, shuffle=kind == "loader", seed=0)


def build(pattern: str, strategy: Any = None, **options: Any) -> Trainer:
    """Return a trainer of a small language model."""
    ops.random.set_seed(0)
    model = nn.models.LanguageModel(pattern, VOCABULARY, options.pop("hidden_size", 16))
    model.to(dtype=options.pop("dtype", "float64"))  # rounding must not hide a difference
    settings = {"optimizer": {"type": "sgd", "momentum": 0.9}, "learning_rate": 0.1} | options
    loss = settings.pop("loss", "cross_entropy")
    return Trainer(model, loss, strategy=strategy, progress=False, seed=0, **settings)


def whole_parameters(trainer: Trainer) -> dict[str, Any]:
    """Return the whole parameters of a trainer's model, as lists."""
    parallel = trainer.parallel
    named = dict(trainer.model.named_parameters())
    if parallel is None:
        return {name: x.tolist() for name, x in named.items()}
    mine = {
        name: parallel.values.whole(name, x.value()).tolist()
        for name, x in named.items()
        if parallel.values.has(name)
    }
    return {
        key: x for each in parallel.world.group("world").exchange(mine) for key, x in each.items()
    }


def train(
    pattern: Any, strategy: Any = None, steps: int = 3, kind: str = "loader", **options: Any
) -> dict[str, Any]:
    """Train for some steps; return the losses, the local shapes and the whole parameters."""
    trainer = build(pattern, strategy, **options)
    trainer.fit(data(kind), steps=steps)
    return {
        "losses": trainer.history.losses,
        "norms": [record["grad_norm"] for record in trainer.history.steps],
        "shapes": {name: list(x.shape) for name, x in trainer.model.named_parameters()},
        "parameters": whole_parameters(trainer),
        "evaluation": trainer.evaluate(data(kind)),
        "terms": [[x[name] for name in sorted(trainer.loss_terms)] for x in trainer.history.steps],
    }


def gradient_exchanges(pattern: Any, strategy: Any, accumulate: int) -> list[int]:
    """Return the lengths of the long arrays that two steps sum over processes."""
    trainer = build(pattern, strategy, accumulate=accumulate)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as profile:
        trainer.fit(data(), steps=2)
    sums = [event.input_shapes for event in profile.events() if event.name == "gloo:all_reduce"]
    return [length for ((length, *_),) in sums if length > 100]


def alone(function: str, **arguments: Any) -> Any:
    """Return what a function returns in this process alone."""
    with ember_ml.use_backend(arguments.pop("backend", "torch")):
        return globals()[function](**arguments)


def train_and_save(
    pattern: str, folder: str, strategy: Any = None, steps: int = 2, **options: Any
) -> list[float]:
    """Train for some steps, save a checkpoint, and return the losses."""
    trainer = build(pattern, strategy, **options)
    trainer.fit(data(), steps=steps)
    trainer.save(folder)
    return trainer.history.losses


def resume(
    pattern: str, folder: str, strategy: Any = None, steps: int = 3, **options: Any
) -> dict[str, Any]:
    """Continue a saved run, and return its losses, norms and whole parameters."""
    trainer = build(pattern, strategy, **options)
    trainer.resume(folder)
    trainer.fit(data(), until_step=steps)
    return {
        "losses": trainer.history.losses,
        "norms": [record["grad_norm"] for record in trainer.history.steps],
        "parameters": whole_parameters(trainer),
        "evaluation": trainer.evaluate(data()),
    }
