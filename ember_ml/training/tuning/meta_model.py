"""The meta-model: an ensemble of small networks that predicts the scores of a new task."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ember_ml import nn, ops
from ember_ml._core.tensor import Tensor
from ember_ml.backend import use_backend
from ember_ml.training.trainer import Trainer
from ember_ml.training.tuning.scores import TaskScores, standardized
from ember_ml.training.tuning.space import SearchSpace

WEIGHT_LIMIT = 3
"""Largest number of times that a bootstrap sample has the same row."""


class Ensemble(nn.Module):
    """Small networks of the same shape, computed together: one batched matmul for each layer.

    Args:
        in_features: Number of inputs.
        members: Number of networks.
        hidden_features: Number of units of each of the two hidden layers.
    """

    def __init__(self, in_features: int, members: int = 5, hidden_features: int = 32) -> None:
        super().__init__()
        sizes = [in_features, hidden_features, hidden_features, 1]
        self.depth = len(sizes) - 1
        for at, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
            bound = fan_in**-0.5
            weight = ops.random.uniform((members, fan_in, fan_out), -bound, bound)
            bias = ops.random.uniform((members, 1, fan_out), -bound, bound)
            setattr(self, f"weight_{at}", nn.Parameter(weight))
            setattr(self, f"bias_{at}", nn.Parameter(bias))

    def forward(self, x: Tensor) -> Tensor:
        """Return the prediction of each member, of shape (batch, members)."""
        y = ops.expand_dims(x, 0)  # (1, batch, in_features)
        for at in range(self.depth):
            y = ops.matmul(y, getattr(self, f"weight_{at}")) + getattr(self, f"bias_{at}")
            y = ops.silu(y) if at < self.depth - 1 else y
        return ops.transpose(ops.squeeze(y, axis=-1))


class MetaModel:
    """Predicts the standardized score of hyperparameters on a task from its meta-features.

    The model is an ensemble of networks of Ember, each trained on a bootstrap sample of the tasks
    in the history. The mean of the members is the prediction, and their standard deviation its
    uncertainty. It runs on the NumPy backend and leaves the random state unchanged.

    Args:
        space: The search space.
        uses_meta: Whether the meta-features are inputs.
        members: Number of networks.
        steps: Number of training steps.
        seed: Seed of the initial weights, the bootstrap samples and the order of the rows.
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        uses_meta: bool = True,
        members: int = 5,
        steps: int = 400,
        seed: int = 0,
    ) -> None:
        self.space = space
        self.uses_meta = uses_meta
        self.members = members
        self.steps = steps
        self.seed = seed
        self._meta: dict[str, tuple[float, float]] = {}  # mean and standard deviation
        self._model: Ensemble | None = None

    def fit(self, tasks: Sequence[TaskScores]) -> MetaModel:
        """Train on the history, and return the model.

        Args:
            tasks: Standardized scores of other tasks.
        """
        self._meta = _moments(tasks) if self.uses_meta else {}
        rows = [self._row(t.params, t.meta) for task in tasks for t in task.trials]
        scores = [score for task in tasks for score in task.values]
        weights = _bootstrap(tasks, self.members, self.seed)
        with _isolated(self.seed):
            self._model = Ensemble(len(rows[0]), self.members)
            targets = [[score, *weight] for score, weight in zip(scores, weights, strict=True)]
            trainer = Trainer(
                self._model,
                _weighted_error,
                optimizer={"type": "adamw", "weight_decay": 0.03},
                learning_rate=1e-2,
                schedule="cosine",
                seed=self.seed,
                progress=False,
            )
            arrays = (ops.asarray(rows), ops.asarray(targets))
            trainer.fit(arrays, steps=self.steps, batch_size=min(64, len(rows)))
        return self

    def predict(
        self, params: Sequence[Mapping[str, Any]], meta: Mapping[str, float]
    ) -> tuple[list[float], list[float]]:
        """Return the expected standardized scores and their standard deviations.

        Args:
            params: Values by dotted key, for each prediction.
            meta: Meta-features of the task.
        """
        assert self._model is not None
        with _isolated(self.seed):
            self._model.eval()
            rows = ops.asarray([self._row(each, meta) for each in params])
            outputs = self._model(rows)
            return ops.mean(outputs, axis=1).tolist(), ops.std(outputs, axis=1).tolist()

    def _row(self, params: Mapping[str, Any], meta: Mapping[str, float]) -> list[float]:
        scaled = [
            (meta.get(name, mean) - mean) / std for name, (mean, std) in sorted(self._meta.items())
        ]
        return [2.0 * x - 1.0 for x in self.space.encode(params)] + scaled


def _moments(tasks: Sequence[TaskScores]) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of each meta-feature over the tasks."""
    moments = {}
    for name in sorted({name for task in tasks for name in task.trials[0].meta}):
        values = [task.trials[0].meta.get(name, 0.0) for task in tasks]
        std = standardized(values)[1]
        if std:
            moments[name] = (sum(values) / len(values), std)
    return moments


def _bootstrap(tasks: Sequence[TaskScores], members: int, seed: int) -> list[list[float]]:
    """Return how often the sample of each member has each row: tasks are drawn with replacement."""
    rng = random.Random(f"bootstrap/{seed}")
    counts = [[0] * len(tasks) for _ in range(members)]
    for member in counts:
        for _ in tasks:
            member[int(rng.random() * len(tasks))] += 1
    weights = []
    for at, task in enumerate(tasks):
        row = [float(min(member[at], WEIGHT_LIMIT)) for member in counts]
        weights += [row for _ in task.trials]
    return weights


def _weighted_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean squared error of all members, weighted by their bootstrap samples."""
    scores, weights = targets[:, :1], targets[:, 1:]
    return ops.mean(weights * (outputs - scores) ** 2)


@contextlib.contextmanager
def _isolated(seed: int) -> Iterator[None]:
    """Use the NumPy backend and a seed within the `with` block, and restore the random state."""
    state = ops.random.get_state()
    try:
        with use_backend("numpy"):
            ops.random.set_seed(seed)
            yield
    finally:
        ops.random.set_state(state)
