"""One call of `Trainer.fit`."""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
import os
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ember_ml._core.errors import ArgumentError, ConcurrentUseError
from ember_ml.backend import use_backend
from ember_ml.data.errors import check_integer
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.training.callbacks import Checkpoint
from ember_ml.training.schedules import Schedule
from ember_ml.training.trainer import sources
from ember_ml.training.trainer.checks import (
    check_parameters,
    check_validation,
    warn_without_gradients,
)
from ember_ml.training.trainer.interrupt import Interrupt
from ember_ml.training.trainer.limits import Limit, Start
from ember_ml.training.trainer.monitoring import check_monitors
from ember_ml.training.trainer.nonfinite import NonFiniteError
from ember_ml.training.trainer.sources import DataLike

if TYPE_CHECKING:
    from ember_ml.training.trainer.trainer import Trainer

INTERRUPTED = "ember-interrupted"
"""Folder of the checkpoint after a signal, if no callback saves checkpoints."""


_START = threading.Lock()  # of all trainers, because one with a lock could not be copied


@contextlib.contextmanager
def single_fit(trainer: Trainer) -> Iterator[None]:
    """Mark a trainer as in `fit`; raise a ConcurrentUseError if it is already.

    Args:
        trainer: The trainer.
    """
    with _START:
        if trainer._is_fitting:
            raise ConcurrentUseError(
                "fit: the trainer is in fit already, in a callback or another thread; use another "
                "trainer, or call fit again after it has ended"
            )
        trainer._is_fitting = True
    try:
        yield
    finally:
        trainer._is_fitting = False


@dataclass(eq=False)
class Fit:
    """One call of `Trainer.fit`: the loop over its epochs, with evaluation and interruption.

    What callbacks and checkpoints use, such as the numbers of steps and epochs, is the trainer's.

    Args:
        trainer: The trainer.
        data: Training data.
        validation: Data of the evaluations; None for no evaluation.
        start: Where this call started; in a resumed run, where the saved call did.
        limit: Where it ends.
        batch_size: Batch size of data other than a loader.
        validate_every: Number of steps from one evaluation to the next; None: only after epochs.
    """

    trainer: Trainer
    data: DataLike
    validation: DataLike | None
    start: Start
    limit: Limit
    batch_size: int
    validate_every: int | None

    def __post_init__(self) -> None:
        trainer, data, validation, limit = self.trainer, self.data, self.validation, self.limit
        epochs = limit.epochs - trainer.epoch
        sources.check_generators(data, validation, epochs, limit.steps, self.validate_every)
        check_monitors(trainer, validation is not None)
        check_parameters(trainer)
        self.batch_size = check_integer("fit", "batch_size", self.batch_size, least=1)
        seed = trainer.config.seed or 0
        loader = sources.loader(data, self.batch_size, shuffle=True, seed=seed)
        parallel = trainer.parallel
        self._loader = loader if parallel is None else parallel.part_of(loader)
        if validation is not None:
            check_validation(trainer, validation, self.batch_size)

    def run(self) -> None:
        """Train until the limit is reached, a callback stops the training or a signal arrives."""
        trainer = self.trainer
        self._move_loader()
        self._begin()
        with use_backend(trainer.backend), contextlib.ExitStack() as ends:
            for callback in reversed(trainer.callbacks):  # each runs even if another one fails
                ends.callback(callback.on_fit_end, trainer)
            ends.callback(trainer.optimizer.eval)
            self._notify("on_fit_start")
            with Interrupt(bool(self._checkpoint_folders())) as self._interrupt:
                if trainer.parallel is not None:
                    trainer.parallel.interrupt = self._interrupt
                    trainer.parallel.agreed_signal = None
                while not self._is_over():
                    check_parameters(trainer)
                    self._run_epoch()
                if self._is_interrupted():
                    trainer.interrupted = trainer.should_stop = True
                    if trainer.profiler is None or not trainer.profiler.stops:
                        self._save_interrupted()
        if trainer.interrupted:
            raise self._interrupt.error()

    def _move_loader(self) -> None:
        """Continue where the saved run, or the last `fit` with the same data, ended."""
        trainer, loader = self.trainer, self._loader
        source, known = sources.source_of(self.data), trainer._source
        same = len(source) == len(known) and all(map(operator.is_, source, known))
        if trainer.loader_state is not None:
            if isinstance(loader, sources.BatchLoader) and loader.is_generator:
                warnings.warn(
                    "fit: a generator cannot be moved to the position of the saved run; it "
                    "continues with the generator's next batch",
                    stacklevel=4,
                )
            try:
                loader.load_state_dict(trainer.loader_state)
            except ArgumentError as error:
                raise ArgumentError(
                    f"fit: {error}; to continue with other data, set trainer.loader_state = None"
                ) from None
        elif trainer.loader is not None and same and loader.plan == trainer.loader.plan:
            loader.load_state_dict(trainer.loader.state_dict())
        else:
            loader.leave_epoch()
            trainer._runner.drop_remainder()
            if trainer.train_metrics is not None:
                trainer.train_metrics.end_epoch()
        trainer.loader, trainer.loader_state, trainer._source = loader, None, source

    def _begin(self) -> None:
        """Prepare the trainer for the first step."""
        trainer, start, limit = self.trainer, self.start, self.limit
        is_done = limit.reached(trainer.epoch, trainer.step)
        if is_done and trainer.resumed_start is not None and trainer.step > start.step:
            warnings.warn(
                f"fit: the resumed run is at epoch {trainer.epoch} and step {trainer.step} and has "
                "nothing left to do in this call; to train longer, pass a larger number, or "
                "until_epoch or until_step",
                stacklevel=4,
            )
        trainer.start, trainer.resumed_start = start, None
        trainer.total_steps = limit.total(
            self._loader, trainer.config.accumulate, trainer.epoch, trainer.step
        )
        if isinstance(trainer.schedule, Schedule):
            trainer.schedule.set_span(start.step, trainer.total_steps)
        trainer.should_stop = trainer.interrupted = False
        trainer.model.train()
        trainer.optimizer.train()
        trainer._take_snapshot()

    def _is_over(self) -> bool:
        trainer = self.trainer
        stopped = self._is_interrupted() or trainer.should_stop
        return stopped or self.limit.reached(trainer.epoch, trainer.step)

    def _is_interrupted(self) -> bool:
        """Return whether a signal ends the training; all processes stop after the same step."""
        parallel = self.trainer.parallel
        if parallel is None:
            return self._interrupt.requested
        if parallel.agreed_signal is not None:
            self._interrupt.signal = parallel.agreed_signal
        return parallel.agreed_signal is not None

    def _run_epoch(self) -> None:
        """Run the remaining batches of an epoch; return within it if training ends there."""
        trainer, loader, accumulate = self.trainer, self._loader, self.trainer.config.accumulate
        started, first, skipped = time.monotonic(), trainer.step, trainer.skipped
        position = loader.state_dict()
        resumed = position["batches"] > 0
        for batch in loader.batches(trainer.dtype):
            record = trainer.train_step(batch)
            position = loader.state_dict() if accumulate > 1 else position
            if record is not None and self._ends_at(record):
                return
        if trainer._runner.group.count:
            following = loader.epoch
            loader.load_state_dict(position)  # callbacks may save before the epoch ends
            record = trainer._complete_step()
            if record is not None and self._ends_at(record):
                return
            loader.epoch = following
        steps = trainer.step - first
        if not (steps or resumed):
            raise ArgumentError("fit: the data has no batches; a generator can be read once")
        if steps and not resumed and trainer.skipped - skipped >= steps * accumulate:
            raise NonFiniteError(
                f"no batch of epoch {trainer.epoch} has a finite loss and finite gradients; see "
                "the warnings for the reasons",
                trainer.step,
            )
        self._end_epoch(started)

    def _ends_at(self, record: dict[str, float]) -> bool:
        """Add the record of a step, and return whether training ends after it."""
        if self._validates_step():
            record |= self._evaluate()
        self.trainer.history.add_step(record)
        self._notify("on_step_end", record)
        return self._is_over()

    def _end_epoch(self, started: float) -> None:
        """Count an epoch, evaluate after it, and add its record."""
        trainer = self.trainer
        steps = trainer.history.steps_of(trainer.epoch)
        trainer.epoch += 1
        warn_without_gradients(trainer)
        record = {"epoch": float(trainer.epoch), "step": float(trainer.step)}
        for name in ("loss", *trainer.loss_terms):
            values = [each[name] for each in steps if name in each]
            finite = [value for value in values if math.isfinite(value)]  # others were skipped
            if finite:
                record[name] = math.fsum(finite) / len(finite)
        if trainer.train_metrics is not None:
            record |= trainer.train_metrics.end_epoch()
        if self.validation is not None:
            record |= self._last_evaluation() or self._evaluate()
        record["seconds"] = time.monotonic() - started
        if isinstance(trainer.schedule, Schedule):
            trainer.schedule.observe(record.get("val_loss", record.get("loss", math.nan)))
        trainer.history.add_epoch(record)
        trainer._take_snapshot()
        self._notify("on_epoch_end", record)

    def _validates_step(self) -> bool:
        """Return whether there is an evaluation after the last step."""
        return self.validate_every is not None and self.trainer.step % self.validate_every == 0

    def _last_evaluation(self) -> dict[str, float]:
        """Return the values of the evaluation after the last step, if there was one."""
        last = self.trainer.history.steps[-1] if self._validates_step() else {}
        return {name: x for name, x in last.items() if name.startswith("val_")}

    def _evaluate(self) -> dict[str, float]:
        """Return the numbers of an evaluation, as values of a record."""
        assert self.validation is not None
        results = self.trainer.evaluate(self.validation, batch_size=self.batch_size)
        return {f"val_{name}": x for name, x in results.items() if isinstance(x, (int, float))}

    def _notify(self, event: str, *args: dict[str, float]) -> None:
        for saves in (False, True):  # a checkpoint has the state of all callbacks
            for callback in self.trainer.callbacks:
                if callback.saves is saves:
                    getattr(callback, event)(self.trainer, *args)

    def _checkpoint_folders(self) -> list[Path]:
        return [each.folder for each in self.trainer.callbacks if isinstance(each, Checkpoint)]

    def _save_interrupted(self) -> None:
        from rich.console import Console

        step, folders = self.trainer.step, self._checkpoint_folders()
        path = folders[0] / "last" if folders else _unused_folder(INTERRUPTED)
        if self.trainer.parallel is not None:
            path = Path(self.trainer.parallel.choice(str(path)))
        try:
            self.trainer.save(path)
            text = (
                f"Stopped at step {step} and saved to {path}. Continue: build the same "
                f"trainer, call trainer.resume({str(path)!r}), then fit(...) as before."
            )
        except (OSError, CheckpointError) as error:
            text = f"Stopped at step {step}, but {path} could not be saved: {error}"
        if self.trainer.is_main:
            Console().print(text, highlight=False, soft_wrap=True)


def _unused_folder(name: str) -> Path:
    """Return a folder that does not exist: the name, or the name with a number."""
    names = itertools.chain([name], (f"{name}-{count}" for count in itertools.count(2)))
    return next(path for path in map(Path, names) if not os.path.lexists(path))
