"""Checks of the arguments of a trainer, before the first step."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, EmberError
from ember_ml.training.callbacks import Callback
from ember_ml.training.optimizer import Optimizer
from ember_ml.training.schedules.base import ScheduleLike
from ember_ml.training.trainer import sources
from ember_ml.training.trainer.sources import DataLike
from ember_ml.training.trainer.train_metrics import RESERVED

if TYPE_CHECKING:
    from ember_ml.training.trainer.trainer import Trainer


def check_callbacks(callbacks: Sequence[Callback]) -> list[Callback]:
    """Return the callbacks as a list; raise an error if one is not an object of a callback class.

    Args:
        callbacks: Callbacks of a trainer.
    """
    expected = "Trainer: callbacks must be a list of Callback objects"
    try:
        given = list(callbacks)
    except TypeError:
        raise ArgumentTypeError(f"{expected}, not {callbacks!r:.60}") from None
    for callback in given:
        if isinstance(callback, type) and issubclass(callback, Callback):
            raise ArgumentTypeError(
                f"{expected}, not classes; create one with {callback.__name__}(...)"
            )
        if not isinstance(callback, Callback):
            raise ArgumentTypeError(f"{expected}, but one of them is {callback!r:.60}")
    return given


def new_terms(terms: Iterable[str], known: Sequence[str]) -> list[str]:
    """Return the names of losses that are not known yet; raise an error for a key of the records.

    Args:
        terms: Names of losses that modules reported.
        known: Names from earlier steps.
    """
    names = [name for name in terms if name not in known]
    for name in names:
        if name in RESERVED or name.startswith("val_"):
            raise ArgumentError(
                f"Trainer: a module reports a loss named {name!r}, which is a key of the records; "
                "pass another name to report_loss"
            )
    return names


def check_validation(trainer: Trainer, validation: DataLike, batch_size: int) -> None:
    """Raise an error if the validation data has no batches, or no targets.

    Args:
        trainer: The trainer.
        validation: The validation data.
        batch_size: Batch size of data that is not in batches.
    """
    try:
        loader = sources.loader(validation, batch_size, shuffle=False, seed=0)
    except EmberError as error:
        raise type(error)(f"fit: validation: {error}") from None
    if loader.num_batches == 0:
        raise ArgumentError("fit: validation: the data has no batches")
    needs_targets = trainer.loss is not None and not trainer.overrides_compute()
    if needs_targets and sources.is_array(validation):
        raise ArgumentError("fit: validation: the data has no targets; pass (inputs, targets)")


def check_parameters(trainer: Trainer) -> None:
    """Raise an error if parameters were added to the model after the trainer was created.

    Args:
        trainer: The trainer.
    """
    if isinstance(trainer.config.optimizer, Optimizer):
        return  # of parameters that the user chose
    members = [pair for group in trainer.optimizer.groups for pair in group.members()]
    known = {id(parameter) for _, parameter in members}
    trainable = trainer.model.named_parameters(trainable=True)
    added = [name for name, parameter in trainable if id(parameter) not in known]
    if added:
        raise ArgumentError(
            f"fit: the optimizer does not have the parameters {', '.join(added[:5])}, which "
            "were added to the model after the trainer was created; create a new trainer"
        )


def factor_of(schedule: ScheduleLike, step: int) -> float:
    """Return the factor of a schedule on the learning rate; raise an error if it is not valid.

    Args:
        schedule: The schedule.
        step: Number of steps done.
    """
    value = schedule(step)
    try:
        factor = float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"the schedule returned {value!r:.60} for step {step}; it must be a number"
        ) from None
    if not 0.0 <= factor < math.inf:
        raise ArgumentError(
            f"the schedule returned {factor} for step {step}; a factor on the learning rate must "
            "be finite and at least 0"
        )
    return factor


def warn_without_gradients(trainer: Trainer) -> None:
    """Warn if all gradients of the last epoch are zero: nothing was learned.

    Args:
        trainer: The trainer.
    """
    epoch = float(trainer.epoch - 1)
    records = itertools.takewhile(
        lambda x: x.get("epoch") == epoch, reversed(trainer.history.steps)
    )
    norms = [record.get("grad_norm", math.nan) for record in records]
    if norms and not any(norms):
        warnings.warn(
            f"fit: all gradients of epoch {trainer.epoch - 1} are zero, so nothing was learned; "
            "does the loss depend on the parameters, without NumPy or stop_gradient between them, "
            "and do the targets have weights other than 0?",
            stacklevel=6,
        )
