"""The trainer."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import Tensor
from ember_ml.backend import use_backend
from ember_ml.configs.training import TrainerConfig
from ember_ml.data import DataLoader
from ember_ml.nn.auxiliary_losses import add_losses, reported_losses
from ember_ml.nn.module import Module
from ember_ml.registry import build
from ember_ml.training.callbacks import Callback, Checkpoint, Progress
from ember_ml.training.ema import EMA
from ember_ml.training.schedules import Schedule
from ember_ml.training.trainer import batches, evaluation, state
from ember_ml.training.trainer.history import History
from ember_ml.training.trainer.interrupt import Interrupt
from ember_ml.training.trainer.nonfinite import explain
from ember_ml.training.trainer.updates import Updates

INTERRUPTED = "ember-interrupted"


class Trainer:
    """Trains a model.

    Args:
        model: what to train, on its own backend.
        loss: a loss by name, config or as a function of (output, target); without one, the model's
            `default_loss`; if it has none, the model gives the loss itself.
        config: the options, as a `TrainerConfig`.
        callbacks: what happens around the steps.
        progress: whether to show a progress bar.
        options: fields of `TrainerConfig`, in place of `config` or over it.

    Attributes:
        step: how many steps were done.
        epoch: how many epochs were done.
        history: the losses, and the evaluation of each epoch.
        interrupted: whether the last `fit` ended by Ctrl-C.

    Example:
        >>> model = nn.layers.Dense(2, 1)
        >>> x = ops.random.normal((64, 2), seed=0)
        >>> trainer = Trainer(
        ...     model, "mse", optimizer="adam", learning_rate=0.1, seed=0, progress=False
        ... )
        >>> history = trainer.fit((x, x.sum(axis=1, keepdims=True)), epochs=30)
        >>> history.losses[-1] < 0.01
        True
    """

    def __init__(
        self,
        model: Module,
        loss: Any = None,
        *,
        config: TrainerConfig | None = None,
        callbacks: Sequence[Callback] = (),
        progress: bool = True,
        **options: Any,
    ) -> None:
        if not isinstance(model, Module):
            raise ArgumentTypeError(f"Trainer: the model must be a Module, not {model!r:.60}")
        given = options if loss is None else {"loss": loss, **options}
        self.config = state.configured(config, given)
        if self.config.loss is None and model.default_loss is not None:
            self.config = self.config.override(loss=model.default_loss)
        self.model = model
        if self.config.seed is not None:
            ops.random.set_seed(self.config.seed)
        self.optimizer = state.optimizer(self.config, model)
        self.loss = None if self.config.loss is None else build("losses", self.config.loss)
        self.metrics = [build("metrics", metric) for metric in self.config.metrics]
        self.schedule = (
            None if self.config.schedule is None else build("schedules", self.config.schedule)
        )
        self.ema = None if self.config.ema is None else EMA(model, self.config.ema)
        self.callbacks = [*callbacks, *([Progress()] if progress else [])]
        self.history = History()
        self.step = 0
        self.epoch = 0
        self.total_steps: int | None = None
        self.should_stop = False
        self.interrupted = False
        self.loader: DataLoader | None = None
        self.loader_state: dict[str, Any] | None = None
        self._updates = Updates(self)

    @property
    def backend(self) -> str:
        """Where the model is."""
        return str(self.optimizer.parameters[0].backend)

    def learning_rates(self) -> list[float]:
        """The learning rate of each parameter group now."""
        return [group.learning_rate * self.optimizer.factor for group in self.optimizer.groups]

    def compute(self, batch: Any) -> tuple[Tensor, Any]:
        """The loss of a batch and the model's outputs; override it to train in another way.

        What parts of the model report by `nn.auxiliary.report_loss` is part of the loss.
        """
        parts = batches.split(batch, self.loss is not None)
        with reported_losses() as reported:
            outputs = batches.apply(self.model, parts)
        if self.loss is None:
            return add_losses(outputs, reported), None
        return add_losses(self.loss(outputs, parts.targets, **parts.options), reported), outputs

    def fit(
        self,
        data: Any,
        validation: Any = None,
        *,
        epochs: int | None = None,
        steps: int | None = None,
        batch_size: int = 32,
    ) -> History:
        """Train.

        Args:
            data: a `DataLoader`, a dataset, or a tuple (inputs, targets) of arrays, or a dict of
                them, in which further names are those of the model's arguments; what is no loader
                is shuffled by the trainer's seed.
            validation: the like, evaluated after each epoch.
            epochs: until how many are done in all, those before a restart included; 1 if neither
                this nor `steps` is given.
            steps: until how many steps are done in all.
            batch_size: of data that is no loader.

        Ctrl-C lets the step end, saves the training and says how to go on.
        """
        loader = batches.loader(data, batch_size, shuffle=True, seed=self.config.seed or 0)
        limit = batches.limits(epochs, steps)
        self._go_on_with(loader)
        self.total_steps = limit.total(loader, self.config.accumulate)
        self.should_stop = self.interrupted = False
        self._updates.drop_remainder()
        self.model.train()
        self.optimizer.train()
        with use_backend(self.backend), contextlib.ExitStack() as ends:
            for callback in reversed(self.callbacks):  # each is told, also if another one fails
                ends.callback(callback.on_fit_end, self)
            ends.callback(self.optimizer.eval)
            self._tell("on_fit_start")
            with Interrupt() as interrupt:
                while not (self.should_stop or limit.reached(self.epoch, self.step)):
                    self._run_epoch(loader, validation, batch_size, limit, interrupt)
                    if interrupt.asked:
                        self.interrupted = self.should_stop = True
            if self.interrupted:
                self._save_interrupted()
        return self.history

    def _go_on_with(self, loader: DataLoader) -> None:
        """Begin where the saved training, or the last `fit` with such a loader, ended."""
        if self.loader_state is not None:
            try:
                loader.load_state_dict(self.loader_state)
            except ArgumentError as error:
                raise ArgumentError(
                    f"fit: {error}; to go on with other data set trainer.loader_state = None"
                ) from None
        elif self.loader is not None and loader.plan == self.loader.plan:
            loader.load_state_dict(self.loader.state_dict())
        self.loader, self.loader_state = loader, None

    def _run_epoch(
        self, loader: DataLoader, validation: Any, size: int, limit: batches.Limit, stop: Interrupt
    ) -> None:
        started, empty, first = time.monotonic(), True, self.step
        resumed = loader.state_dict()["batches"] > 0
        for batch in loader:
            empty = False
            record = self.train_step(batch)
            if record is None:
                continue
            self.history.steps.append(record)
            self._tell("on_step_end", record)
            if stop.asked or self.should_stop or limit.reached(self.epoch, self.step):
                return
        if self.step == first and not resumed:
            few = f"fewer batches than accumulate={self.config.accumulate}"
            raise ArgumentError(f"fit: the data has {'no batches' if empty else few}")
        self._updates.drop_remainder()
        self.epoch += 1
        self._end_epoch(started, self.history.losses_of(self.epoch - 1), validation, size)

    def _end_epoch(self, started: float, losses: list[float], validation: Any, size: int) -> None:
        record = {"epoch": float(self.epoch), "step": float(self.step)}
        if losses:
            record["loss"] = math.fsum(losses) / len(losses)
        if validation is not None:
            found = self.evaluate(validation, batch_size=size)
            numbers = {name: x for name, x in found.items() if isinstance(x, (int, float))}
            record |= {f"val_{name}": x for name, x in numbers.items()}
        record["seconds"] = time.monotonic() - started
        if isinstance(self.schedule, Schedule):
            self.schedule.observe(record.get("val_loss", record.get("loss", math.nan)))
        self.history.epochs.append(record)
        self._tell("on_epoch_end", record)

    def train_step(self, batch: Any) -> dict[str, float] | None:
        """Take a batch in; the record of the step, if the batch completed one."""
        if self.schedule is not None:
            self.optimizer.factor = self.schedule(self.step)
        found = self._updates(batch)
        if found is None:
            return None
        loss, gradients = found
        self.step += 1
        if not math.isfinite(loss):
            parameters = dict(self.model.named_parameters())
            raise explain(self.step, loss, parameters, gradients())
        if self.ema is not None:
            self.ema.update()
        rate = self.optimizer.learning_rate * self.optimizer.factor
        step, epoch = float(self.step), float(self.epoch)
        return {"step": step, "epoch": epoch, "loss": loss, "learning_rate": rate}

    def evaluate(self, data: Any, *, batch_size: int = 32) -> dict[str, Any]:
        """The mean loss and the metrics over data, with the running mean of the weights if any.

        Batches count in the mean by the sums of their masks, or their numbers of examples.
        """
        return evaluation.evaluate(self, data, batch_size)

    def measure(self, batch: Any, outputs: Any) -> float:
        """Update the metrics by a batch, and say how much it counts; override it with `compute`."""
        if self.loss is None:
            if self.metrics:
                raise ArgumentError(
                    "Trainer: metrics need the targets, and without a loss it is not known which "
                    "they are; override Trainer.measure"
                )
            return batches.weight_of(batch, None)
        parts = batches.split(batch, with_targets=True)
        mask = parts.options.get("sample_weight")
        for metric in self.metrics:
            metric.update(outputs, parts.targets, mask)
        return batches.weight_of(batch, mask)

    def predict(self, data: Any, *, batch_size: int = 32) -> Any:
        """The model's outputs for inputs (an array, a dataset or a loader of inputs), as one nest.

        Of batches that are tuples, the first part is the input, and of dicts what "inputs" names.
        """
        return evaluation.predict(self, data, batch_size)

    def evaluating(self) -> AbstractContextManager[bool]:
        """Within the block the model is as in use, with the weights to use: averages, if any.

        It gives whether these are others than those in training.
        """
        return evaluation.evaluating(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, with the weights to use, and all that is needed to go on to a folder."""
        state.save(self, path)

    def resume(self, path: str | os.PathLike[str]) -> Trainer:
        """Take over a training that was saved, on any backend; `fit` then goes on."""
        state.resume(self, path)
        return self

    def _save_interrupted(self) -> None:
        from rich.console import Console

        folders = [each.folder for each in self.callbacks if isinstance(each, Checkpoint)]
        path = folders[0] / "last" if folders else INTERRUPTED
        self.save(path)
        Console().print(
            f"Stopped at step {self.step} and saved to {path}. To go on: build the same trainer, "
            f"call trainer.resume({str(path)!r}), then fit(...) as before.",
            highlight=False,
            soft_wrap=True,
        )

    def _tell(self, event: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(self, *args)
