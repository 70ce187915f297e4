"""A training loop in plain NumPy: a linear model, its loss, gradients and optimizers."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np


class Data(NamedTuple):
    """Arrays of a linear regression."""

    x: np.ndarray
    y: np.ndarray
    mask: np.ndarray
    """Weight of each element of y."""
    batch_size: int

    def batches(self) -> int:
        """Return the number of batches of an epoch."""
        return -(-len(self.x) // self.batch_size)


class Options(NamedTuple):
    """Options of a training."""

    optimizer: str
    accumulate: int
    clip_norm: float | None
    ema: float | None
    schedule_steps: int | None
    """Steps in which the learning rate decays linearly to a half."""
    learning_rate: float = 0.05


@dataclasses.dataclass
class Loop:
    """State of the loop: y = x @ weight.T + bias, trained on the weighted mean squared error."""

    options: Options
    weight: np.ndarray
    bias: np.ndarray
    frozen: set[str] = dataclasses.field(default_factory=set)
    step: int = 0
    epoch: int = 0
    position: int = 0
    data: int | None = None
    losses: list[float] = dataclasses.field(default_factory=list)
    moments: dict[str, tuple[np.ndarray, np.ndarray, int]] = dataclasses.field(default_factory=dict)
    averages: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    updates: int = 0
    start: tuple[int, int] = (0, 0)
    resumed: bool = False

    def __post_init__(self) -> None:
        self.averages = self.averages or {"weight": self.weight.copy(), "bias": self.bias.copy()}

    def fit(self, number: int, data: Data, epochs: float = np.inf, steps: float = np.inf) -> None:
        """Train as `Trainer.fit(data, epochs=..., steps=...)`."""
        if not self.resumed:
            self.start = self.epoch, self.step
        self.resumed = False
        if self.data != number:
            self.data, self.position = number, 0
        last_epoch, last_step = self.start[0] + epochs, self.start[1] + steps
        while self.epoch < last_epoch and self.step < last_step:
            if self.position >= data.batches():
                self.epoch, self.position = self.epoch + 1, 0
                continue
            end = min(self.position + self.options.accumulate, data.batches())
            self._step(data, self.position * data.batch_size, end * data.batch_size)
            self.position = end
            # An epoch ends with its last step, unless the number of steps ends the call first.
            if self.position >= data.batches() and self.step < last_step:
                self.epoch, self.position = self.epoch + 1, 0

    def _step(self, data: Data, begin: int, end: int) -> None:
        x, y, mask = (part[begin:end].astype("float64") for part in data[:3])
        error = x @ self.weight.T + self.bias - y
        total = mask.sum() or 1.0
        self.losses.append(float((mask * error**2).sum() / total))
        slope = 2.0 * mask * error / total
        grads = {"weight": slope.T @ x, "bias": slope.sum(axis=0)}
        grads = {name: grad for name, grad in grads.items() if name not in self.frozen}
        norm = np.sqrt(sum((grad**2).sum() for grad in grads.values()))
        if self.options.clip_norm is not None:
            scale = min(1.0, self.options.clip_norm / (norm + 1e-6))
            grads = {name: grad * scale for name, grad in grads.items()}
        for name, grad in grads.items():
            self._update(name, grad)
        self.step += 1
        self.updates += 1
        if self.options.ema is not None:
            decay = min(self.options.ema, (1 + self.updates) / (10 + self.updates))
            for name in self.averages:
                self.averages[name] += (1.0 - decay) * (getattr(self, name) - self.averages[name])

    def _update(self, name: str, grad: np.ndarray) -> None:
        rate = self.options.learning_rate
        if self.options.schedule_steps is not None:
            rate *= 1.0 - 0.5 * min(self.step / self.options.schedule_steps, 1.0)
        first, second, count = self.moments.get(name, (0.0 * grad, 0.0 * grad, 0))
        count += 1
        if self.options.optimizer == "sgd":
            first = 0.9 * first + grad
            change = rate * first
        else:
            first = 0.9 * first + 0.1 * grad
            second = 0.999 * second + 0.001 * grad**2
            change = rate * first / (1 - 0.9**count)
            change = change / (np.sqrt(second / (1 - 0.999**count)) + 1e-8)
        self.moments[name] = first, second, count
        setattr(self, name, getattr(self, name) - change)
