"""What a trainer asks of the processes that train one model together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from ember_ml.data import DataLoader
from ember_ml.nn.module import Module
from ember_ml.training.metrics import Metric
from ember_ml.training.optimizer.groups import ParametersLike
from ember_ml.training.trainer.interrupt import Interrupt

if TYPE_CHECKING:
    from ember_ml.training.trainer.step import StepRunner
    from ember_ml.training.trainer.trainer import Trainer


class Parallel(Protocol):
    """Processes that train one model together; `ember_ml.distributed` has them.

    Attributes:
        is_main: Whether this process writes logs and files that all processes share.
        interrupt: Signals that this process has received.
        agreed_signal: Signal that any process had received before the last step.
    """

    is_main: bool
    interrupt: Interrupt | None
    agreed_signal: int | None

    @property
    def local_names(self) -> frozenset[str] | None:
        """Names of the variables that this process has; None for all."""

    def describe(self) -> str:
        """Return the number of processes and what they share, such as "2 processes, fsdp=2"."""

    def trained(self, model: Module) -> ParametersLike:
        """Return the parameters that the optimizer of this process updates."""

    def adopt(self, trainer: Trainer) -> None:
        """Prepare the optimizer and the average of a trainer for parts of parameters."""

    def runner(self, trainer: Trainer) -> StepRunner:
        """Return the step of a trainer."""

    def part_of(self, loader: DataLoader) -> DataLoader:
        """Return the loader of this process's part of each batch."""

    def part(self, batch: Any) -> tuple[Any, bool]:
        """Return this process's part of a batch, and whether it counts."""

    def merge(self, metrics: Sequence[Metric]) -> None:
        """Add the batches of the other processes to metrics."""

    def sums(self, values: Sequence[float]) -> list[float]:
        """Return the sums of numbers over the processes that share batches."""

    def choice(self, value: Any) -> Any:
        """Return the plain data of the main process."""

    def evaluated(self) -> AbstractContextManager[None]:
        """Return a context in which calls of the model use the current values of its parameters."""

    def save(self, trainer: Trainer, path: str | os.PathLike[str]) -> None:
        """Save a checkpoint, together with the other processes."""

    def resume(self, trainer: Trainer, path: str | os.PathLike[str]) -> None:
        """Load a checkpoint, together with the other processes."""
