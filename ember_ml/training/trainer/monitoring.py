"""Check of the values that callbacks monitor, before the first step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ember_ml._core.errors import ArgumentError
from ember_ml.registry.base import close_matches
from ember_ml.training.callbacks import Callback, LRMonitor
from ember_ml.training.trainer.outputs import OutputLosses

if TYPE_CHECKING:
    from ember_ml.training.trainer.trainer import Trainer


def epoch_names(trainer: Trainer, has_validation: bool) -> list[str]:
    """Return the names of the values in the record of an epoch.

    Args:
        trainer: The trainer.
        has_validation: Whether there is data to evaluate.
    """
    names = ["epoch", "step", "loss", "seconds"]
    if trainer.train_metrics is not None:
        names += trainer.train_metrics.names()
    if has_validation:
        names += ["val_loss", *(f"val_{metric.name}" for metric in trainer.metrics)]
        if isinstance(trainer.loss, OutputLosses):
            names += [f"val_{output}_loss" for output in trainer.loss.losses]
    if any(isinstance(callback, LRMonitor) for callback in trainer.callbacks):
        names += [f"learning_rate/{at}" for at in range(len(trainer.optimizer.groups))]
    return names


def check_monitors(trainer: Trainer, has_validation: bool) -> None:
    """Raise an ArgumentError if a callback monitors a value that no epoch has.

    Callbacks and trainers of other classes may add values: what they monitor is checked at the end
    of the first epoch.

    Args:
        trainer: The trainer.
        has_validation: Whether there is data to evaluate.
    """
    monitors = {name for each in trainer.callbacks if (name := each.monitored()) is not None}
    if not monitors or _may_add_values(trainer):
        return
    names = epoch_names(trainer, has_validation)
    for name in sorted(monitors):
        if name in names:
            continue
        hint = close_matches(name, names)
        if name in epoch_names(trainer, has_validation=True):
            hint = "; pass validation data to fit"
        raise ArgumentError(
            f"fit: a callback monitors {name!r}, but an epoch has no such value{hint}; there are "
            f"{', '.join(sorted(names))}"
        )


def _may_add_values(trainer: Trainer) -> bool:
    """Return whether a subclass may add values to the record of an epoch."""
    if any(
        each.__module__.partition(".")[0] != __package__.partition(".")[0]
        for each in type(trainer).__mro__[:-1]
    ):
        return True
    for callback in trainer.callbacks:
        own = type(callback).__module__.startswith("ember_ml.training.callbacks.")
        if not own and type(callback).on_epoch_end is not Callback.on_epoch_end:
            return True
    return False
