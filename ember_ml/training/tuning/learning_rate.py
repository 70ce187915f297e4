"""Learning rate range test."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from ember_ml._core.errors import ArgumentError
from ember_ml.data import DataLoader
from ember_ml.data.errors import check_integer
from ember_ml.training.trainer import Trainer, sources
from ember_ml.training.trainer.nonfinite import NonFiniteError
from ember_ml.training.trainer.sources import DataLike
from ember_ml.training.tuning.errors import TuningError
from ember_ml.training.tuning.preserved import preserved, try_step

SMOOTHING = 0.9
"""Decay of the moving average of the losses."""
DIVERGED = 4.0
"""Factor on the smallest loss above which the test ends."""


@dataclass
class LRRangeTest:
    """Result of a learning rate range test.

    Attributes:
        learning_rates: Learning rate of each step.
        losses: Loss of each step.
        smoothed: Moving average of the losses.
        suggestion: Learning rate at which the loss falls fastest.
    """

    learning_rates: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    smoothed: list[float] = field(default_factory=list)
    suggestion: float = math.nan

    def add(self, rate: float, loss: float) -> bool:
        """Add a step, and return whether the loss has not diverged yet.

        Args:
            rate: Learning rate of the step.
            loss: Loss of the step.
        """
        average = sum(
            SMOOTHING**age * (1.0 - SMOOTHING) * each
            for age, each in enumerate(reversed([*self.losses, loss]))
        )
        self.learning_rates.append(rate)
        self.losses.append(loss)
        self.smoothed.append(average / (1.0 - SMOOTHING ** len(self.losses)))
        first, low = self.smoothed[0], min(self.smoothed)
        return self.smoothed[-1] <= low + (DIVERGED - 1.0) * max(abs(low), 0.1 * abs(first))

    def suggest(self) -> float:
        """Return the learning rate at which the smoothed loss falls fastest.

        Only the steps before the smallest smoothed loss count.
        """
        lowest = self.smoothed.index(min(self.smoothed))
        reach = max(1, len(self.smoothed) // 20)
        ends = range(reach, lowest + 1 - reach)
        if not ends:
            raise TuningError(
                "lr_range_test: the loss does not fall from the first learning rate "
                f"({self.learning_rates[0]:.3g}) on; use a lower low, or more steps"
            )
        slopes = {at: self.smoothed[at + reach] - self.smoothed[at - reach] for at in ends}
        return self.learning_rates[min(slopes, key=slopes.__getitem__)]

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the loss against the learning rate, with the suggestion.

        Args:
            path: File of the picture.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = figure.subplots()
        axes.plot(self.learning_rates, self.losses, color="0.8", label="loss")
        axes.plot(self.learning_rates, self.smoothed, label="smoothed")
        axes.axvline(self.suggestion, color="C1", linestyle="--", label=f"{self.suggestion:.2g}")
        axes.set_xscale("log")
        axes.set_xlabel("learning rate")
        axes.set_ylabel("loss")
        axes.legend()
        figure.savefig(path, dpi=120)


def lr_range_test(
    trainer: Trainer,
    data: DataLike,
    *,
    low: float = 1e-6,
    high: float = 10.0,
    steps: int = 100,
    batch_size: int = 32,
) -> LRRangeTest:
    """Train with a learning rate that grows exponentially, and return the losses and a suggestion.

    The test ends early if the loss diverges. The model and the trainer are unchanged afterwards,
    and so is the position of a loader. Callbacks are not called, and the schedule is not used.

    Args:
        trainer: The trainer.
        data: Training data, as in `Trainer.fit`.
        low: Learning rate of the first step.
        high: Learning rate of the last step.
        steps: Number of steps.
        batch_size: Batch size of data other than a loader.

    Reference: Smith, "Cyclical Learning Rates for Training Neural Networks", 2017.

    Example:
        >>> from ember_ml import nn, training
        >>> from ember_ml.training.tuning import lr_range_test
        >>> model = nn.layers.Dense(2, 1)
        >>> x = ops.random.normal((64, 2), seed=0)
        >>> trainer = training.Trainer(model, "mse", seed=0, progress=False)
        >>> result = lr_range_test(trainer, (x, x.sum(axis=1, keepdims=True)), low=1e-4)
        >>> 1e-4 < result.suggestion < 10.0
        True
    """
    if not 0.0 < low < high < math.inf:
        raise ArgumentError(f"lr_range_test: needs 0 < low < high; got low={low}, high={high}")
    steps = check_integer("lr_range_test", "steps", steps, least=10)
    result = LRRangeTest()
    loader = sources.loader(data, batch_size, shuffle=True, seed=trainer.config.seed or 0)
    position = loader.state_dict()
    rates = (low * (high / low) ** (at / (steps - 1)) for at in range(steps))
    try:
        with preserved(trainer):
            _run(trainer, _forever(loader, trainer), rates, result)
    finally:
        loader.load_state_dict(position)
    result.suggestion = result.suggest()
    return result


def _run(
    trainer: Trainer, batches: Iterator[object], rates: Iterator[float], result: LRRangeTest
) -> None:
    """Run a step for each learning rate until the loss diverges."""
    base = trainer.optimizer.learning_rate
    if not base:
        raise ArgumentError("lr_range_test: the learning rate of the optimizer must not be 0")
    for rate in rates:
        trainer.optimizer.factor = rate / base
        try:
            losses = (try_step(trainer, batch) for batch in batches)
            loss = next(each for each in losses if each is not None)  # after accumulation
        except NonFiniteError:
            return
        if not result.add(rate, loss):
            return


def _forever(loader: DataLoader, trainer: Trainer) -> Iterator[object]:
    """Iterate over the batches of a loader again and again."""
    for _ in itertools.count():
        count = 0
        for batch in loader.batches(trainer.dtype):
            count += 1
            yield batch
        if not count:
            raise ArgumentError("lr_range_test: the data has no batches, or can be read once only")
