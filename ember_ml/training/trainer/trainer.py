"""The trainer."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal

from ember_ml import ops
from ember_ml._core.dtype import EmberDType
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ConcurrentUseError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import ComponentLike
from ember_ml.configs.training import TrainerConfig
from ember_ml.data import DataLoader
from ember_ml.data.errors import check_integer
from ember_ml.nn._hooks import is_hooked
from ember_ml.nn.auxiliary_losses import add_losses, reported_losses
from ember_ml.nn.models.deferred_logits import computed_logits
from ember_ml.nn.module import Module
from ember_ml.nn.remat import RematLike
from ember_ml.training.callbacks import Callback, Progress
from ember_ml.training.ema import EMA
from ember_ml.training.losses.base import calling_model
from ember_ml.training.metrics import Metric
from ember_ml.training.optimizer import Optimizer
from ember_ml.training.trainer import batches, building, checkpoints, evaluation, sources
from ember_ml.training.trainer.checks import check_callbacks, factor_of, new_terms
from ember_ml.training.trainer.fitting import Fit, single_fit
from ember_ml.training.trainer.history import History
from ember_ml.training.trainer.keywords import with_suggestions
from ember_ml.training.trainer.limits import Start, limit_of
from ember_ml.training.trainer.nonfinite import (
    BatchPlace,
    NonFiniteError,
    NonFiniteWarning,
    Snapshot,
)
from ember_ml.training.trainer.outputs import metrics_of
from ember_ml.training.trainer.read_positions import read_parts, takes_positions
from ember_ml.training.trainer.sources import DataLike
from ember_ml.training.trainer.step import StepResult, StepRunner
from ember_ml.training.trainer.train_metrics import TrainMetrics

if TYPE_CHECKING:
    from ember_ml.training.profiling.options import ProfileLike


class Trainer:
    """Trains a model.

    Args:
        model: The model; it is trained on its own backend.
        loss: A loss as a name, a config or a function of (output, target). Default: the model's
            `default_loss`; if that is None, the model returns the loss itself. For several
            outputs, a dict of losses by the keys of outputs and targets, or a list by position.
        optimizer: An optimizer as a name, a config or an object. Default: "adamw".
        learning_rate: Learning rate, instead of the optimizer's own.
        loss_weights: Factor on the loss of each output, by key or position ("0"). Default: 1.
        metrics: Metrics of the evaluation, as names, configs, objects or functions of (output,
            target) that return a value for each example, or the mean over a batch. For several
            outputs, a dict of lists; names then start with the output, as in `a_accuracy`.
        train_metrics: Whether to compute the metrics on the training batches too, from their
            outputs in training mode before the update. Records of steps have the values of the
            step's batches ("accuracy"), records of epochs those of the epoch. Default: False.
        schedule: Learning rate schedule as a name, a config or a function of the step. One that
            needs `total_steps` and does not have it spans each call of `fit`.
        precision: Dtype in which the model computes; the parameters stay float32. Default:
            "float32".
        accumulate: Number of batches of a step, which equals a step on one batch of all their
            examples. The last step of an epoch may have fewer. Default: 1.
        remat: Modules whose intermediate values the backward pass computes again instead of
            storing them: "blocks", "mixers" (the sequence mixers in the blocks), patterns of module
            names, or a function (name, module) -> bool. Default: none.
        clip_norm: Maximum norm of all gradients together.
        clip_value: Maximum absolute value of the elements of the gradients.
        ema: Decay of a moving average of the weights, which is used in evaluation.
        on_nonfinite: What to do with a batch whose loss or gradient is NaN or infinite, before
            anything changes: "raise" a `NonFiniteError` (default), "skip" the batch with a
            warning, or "rollback" to the last snapshot and continue with the next batch.
            Snapshots are taken at the start of `fit`, after each epoch and by `save`.
        compile: Whether to compile the step, from the first batch on. Default: only on backends
            that compile quickly, if `compute` is not overridden, after 50 batches of the same
            shapes, and if at least 200 steps remain.
        strategy: How several processes train together, as a name ("dp", "fsdp", "tp", "pp"), a
            config or an object of `ember_ml.distributed`. Each process runs the same script; batch
            sizes are those of all processes together. Default: this process trains alone.
        seed: Seed of the random numbers, set when the trainer is created.
        config: A `TrainerConfig`; arguments that are not None replace its fields.
        callbacks: Callbacks, called in this order.
        progress: Whether to show a progress bar.
        profile: Whether to profile some steps of the first `fit`, or the folder of the report, or
            `ProfileOptions`. The default folder is "profile"; see `ember_ml.training.profiling`.

    Attributes:
        step: Number of steps done.
        epoch: Number of epochs done.
        history: Losses of all steps and records of all epochs.
        train_metrics: Metrics of the training batches; None unless they are wanted.
        parallel: The processes that train together; None if this one trains alone.
        takes_mask: Whether the model's `forward` takes a padding mask.
        remat: Modules that are rematerialized in training steps.
        profiler: Measurement of the steps, whose `result` is the profile. None without `profile`.
        interrupted: Whether Ctrl-C or SIGTERM ended the last `fit`.
        skipped: Number of batches that were skipped because they are not finite.
        loss_terms: Names of losses that layers reported, such as "wiring_cost". They are parts of
            the loss, and records of steps and epochs have their values. With several processes,
            they are those of this process's examples.

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

    @with_suggestions("Trainer")
    def __init__(
        self,
        model: Module,
        loss: ComponentLike | Sequence[ComponentLike] | None = None,
        *,
        optimizer: ComponentLike | Optimizer | None = None,
        learning_rate: float | None = None,
        loss_weights: Mapping[str, float] | None = None,
        metrics: Sequence[ComponentLike | Metric]
        | Mapping[str, Sequence[ComponentLike | Metric]]
        | None = None,
        train_metrics: bool | None = None,
        schedule: ComponentLike | None = None,
        precision: Literal["float32", "bfloat16", "float16"] | None = None,
        accumulate: int | None = None,
        remat: RematLike | None = None,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        ema: float | None = None,
        on_nonfinite: Literal["raise", "skip", "rollback"] | None = None,
        compile: bool | None = None,  # noqa: A002
        strategy: ComponentLike | None = None,
        seed: int | None = None,
        config: TrainerConfig | None = None,
        callbacks: Sequence[Callback] = (),
        progress: bool = True,
        profile: ProfileLike = False,
    ) -> None:
        given = locals()  # the arguments; no other name is assigned yet
        if not isinstance(model, Module):
            raise ArgumentTypeError(f"Trainer: the model must be a Module, not {model!r:.60}")
        options = {name: given[name] for name in TrainerConfig.model_fields}
        self.config = building.config_of(config, options, Trainer)
        if self.config.loss is None and model.default_loss is not None:
            self.config = self.config.override(loss=model.default_loss)
        self.model = model
        if self.config.seed is not None:
            ops.random.set_seed(self.config.seed)
        self.parallel = building.parallel_of(self.config, model)
        trained = model if self.parallel is None else self.parallel.trained(model)
        self.optimizer = building.optimizer_of(self.config, trained)
        self.loss = building.loss_of(self.config)
        self.metrics = metrics_of(self.config.metrics)
        merge = None if self.parallel is None else self.parallel.merge
        measures = self.config.train_metrics
        self.train_metrics = TrainMetrics(self.metrics, merge) if measures else None
        self.schedule = building.schedule_of(self.config)
        names = None if self.parallel is None else self.parallel.local_names
        self.ema = None if self.config.ema is None else EMA(model, self.config.ema, names=names)
        own = [*check_callbacks(callbacks), *([Progress()] if progress else [])]
        self.callbacks = [each for each in own if self.is_main or not each.main_only]
        self.history = History()
        self.step = 0
        self.epoch = 0
        self.total_steps: int | None = None
        self.should_stop = False
        self.interrupted = False
        self.skipped = 0
        self.loss_terms: list[str] = []
        self.loader: DataLoader | None = None
        self.loader_state: dict[str, Any] | None = None
        self.start = Start(0, 0)
        self.resumed_start: Start | None = None
        self._source: list[object] = []
        self._snapshot: Snapshot | None = None
        self._is_fitting = False
        self.takes_mask = batches.takes_mask(model)
        self._takes_positions = takes_positions(model)
        self.remat = building.remat_of(self.config, model)
        if self.parallel is not None:
            self.parallel.adopt(self)
        self._runner = StepRunner(self) if self.parallel is None else self.parallel.runner(self)
        self.profiler = building.profiler_of(profile, self)

    @property
    def is_main(self) -> bool:
        """Whether this process writes logs and files that all processes share."""
        return self.parallel is None or self.parallel.is_main

    @property
    def dtype(self) -> EmberDType | None:
        """Dtype of the model's floating-point parameters, to which data is converted."""
        kinds = (each.dtype for each in self.optimizer.parameters if each.dtype.is_floating)
        return next(kinds, None)

    @property
    def backend(self) -> str:
        """Name of the backend that the model is on."""
        return str(self.optimizer.parameters[0].backend)

    def learning_rates(self) -> list[float]:
        """Return the current learning rate of each parameter group."""
        return [group.learning_rate * self.optimizer.factor for group in self.optimizer.groups]

    def compute(self, batch: object) -> tuple[Tensor, Any]:
        """Return the loss of a batch and the model's outputs. Override it for other batches.

        Losses that layers report with `report_loss` are added; named ones are also recorded.

        Args:
            batch: A batch of the data.
        """
        return self._compute(batches.split(batch, self.loss is not None, self.takes_mask))

    def compute_loss(self, batch: object) -> tuple[Tensor, Any]:
        """Return the loss of a batch, and outputs at the positions that it reads.

        This is `compute` for steps that need no other outputs. A language model computes its last
        layers and its head only where the loss does not ignore the target.

        Args:
            batch: A batch of the data.
        """
        if self.train_metrics is not None or self._needs_all_positions():
            return self.compute(batch)
        parts = batches.split(batch, True, self.takes_mask)
        return self._compute(read_parts(parts, self.loss))

    def _needs_all_positions(self) -> bool:
        """Return whether the model must compute its outputs at all positions."""
        if not self._takes_positions or self.loss is None:
            return True
        return self.overrides_compute() or is_hooked(self.model)

    def evaluate_batch(self, batch: object, counts: bool = True) -> tuple[Tensor, Any, float]:
        """Return the loss of a batch, outputs of the model and the weight; update the metrics.

        A language model computes outputs only at positions whose target the loss or a metric reads,
        unless `compute` or `measure` is overridden.

        Args:
            batch: A batch of the data.
            counts: Whether the batch is part of the evaluation; if not, its weight is 0.
        """
        needs_all = self._needs_all_positions() or type(self).measure is not Trainer.measure
        if not (needs_all or "measure" in vars(self)):
            parts = batches.split(batch, True, self.takes_mask)
            read = read_parts(parts, self.loss, self.metrics or None)
            if read is not parts:
                loss, outputs = self._compute(read)
                if counts:
                    self._update_metrics(read, outputs, rows=len(parts.targets))
                weight = batches.weight_of(batch, parts.options.get("sample_weight"))
                return loss, outputs, weight if counts else 0.0
        loss, outputs = self.compute(batch)
        return loss, outputs, self.measure(batch, outputs) if counts else 0.0

    def _compute(self, parts: batches.Parts) -> tuple[Tensor, Any]:
        """Return the loss and the outputs of the parts of a batch."""
        with reported_losses() as reported, calling_model(self.loss):
            outputs = batches.apply(self.model, parts)
        if self.loss is None:
            return add_losses(outputs, reported), None
        return add_losses(self.loss(outputs, parts.targets, **parts.options), reported), outputs

    def overrides_compute(self) -> bool:
        """Return whether `compute` is overridden."""
        return type(self).compute is not Trainer.compute or "compute" in vars(self)

    def weigh(self, batch: object) -> Tensor | float:
        """Return the weight of a batch in a step of several, if its loss does not report it.

        The losses of Ember report the number of targets, or the sum of their weights. Override it
        with `compute` for other losses and batches. It must not read values from the device.

        Args:
            batch: A batch of the data.
        """
        return batches.loss_weight(batch, self.loss is not None, self.takes_mask)

    @with_suggestions("fit")
    def fit(
        self,
        data: DataLike,
        targets: DataLike | None = None,
        validation: DataLike | None = None,
        *,
        epochs: int | None = None,
        steps: int | None = None,
        until_epoch: int | None = None,
        until_step: int | None = None,
        batch_size: int = 32,
        validate_every: int | None = None,
    ) -> History:
        """Train the model, and return the history.

        `epochs` and `steps` count from this call. After `resume` the first call continues the one
        that was saved: they count from where that one started, and a script that is started again
        ends where it would have ended without the interruption.

        A call with the same data as the last one continues where that one ended, also within an
        epoch.

        Ctrl-C and SIGTERM finish the step, save a checkpoint, print how to continue, and raise
        `TrainingInterrupted` (a KeyboardInterrupt) or `TrainingTerminated` (a SystemExit with code
        143), which end the script. A second one stops at once; the last checkpoint stays.

        Args:
            data: Inputs if `targets` are given. Otherwise arrays or batches with both. Arrays are a
                tuple (inputs, targets) or a dict with these keys, whose other keys are arguments of
                the model; both may be nested. Datasets and arrays are shuffled with the trainer's
                seed. Batches come from a `DataLoader`, a list, a loader of another library or a
                generator, which is read once and does not resume. Floating-point data is
                converted to the dtype of the parameters.
            targets: Array or nested arrays of targets. Without `validation`, a second positional
                argument that has targets itself is the validation data.
            validation: Data of the same kinds, evaluated after each epoch.
            epochs: Number of epochs. An epoch that an earlier call left unfinished is the first.
                Default: 1 if nothing else limits the training, otherwise no limit.
            steps: Number of steps. Default: no limit.
            until_epoch: Total number of epochs of all calls. Default: no limit.
            until_step: Total number of steps of all calls. Default: no limit.
            batch_size: Batch size of data other than a loader.
            validate_every: Number of steps from one evaluation to the next. Its "val_..." values
                are in the records of these steps, and callbacks that monitor one of them decide
                there too. Default: only after each epoch.
        """
        with single_fit(self):
            if targets is not None:
                has_loss = self.loss is not None
                data, validation = sources.with_targets(data, targets, validation, has_loss)
            if validate_every is not None:
                validate_every = check_integer("fit", "validate_every", validate_every, least=1)
                if validation is None:
                    raise ArgumentError(
                        f"fit: validate_every={validate_every} needs validation data"
                    )
            start = self.resumed_start or Start(self.epoch, self.step)
            limit = limit_of(start, epochs, steps, until_epoch, until_step)
            if epochs is None and steps is None and limit.reached(self.epoch, self.step):
                return self.history  # a later call may continue the saved one
            Fit(self, data, validation, start, limit, batch_size, validate_every).run()
            return self.history

    def train_step(self, batch: object) -> dict[str, float] | None:
        """Train on a batch, and return the record of the step if the batch completed one.

        Args:
            batch: A batch of the data.
        """
        if self.schedule is not None:
            self.optimizer.factor = factor_of(self.schedule, self.step)
        profiler = self.profiler
        run = self._runner if profiler is None or profiler.is_done else profiler.run
        return self._record(run(batch))

    def _complete_step(self) -> dict[str, float] | None:
        """Complete the last step of an epoch, and return its record."""
        profiler = self.profiler
        steps = self._runner if profiler is None or profiler.is_done else profiler
        return self._record(steps.complete())

    def _record(self, result: StepResult | None) -> dict[str, float] | None:
        """Count a step, and return its record."""
        if result is None:
            return None
        self.step += 1
        rate = self.optimizer.learning_rate * self.optimizer.factor
        step, epoch = float(self.step), float(self.epoch)
        record = {"step": step, "epoch": epoch, "loss": result.loss, "learning_rate": rate}
        if not result.updated:
            return {**record, "skipped": 1.0}
        if self.ema is not None:
            self.ema.update()
        if result.terms:
            self.loss_terms += new_terms(result.terms, self.loss_terms)
        measured = {} if self.train_metrics is None else self.train_metrics.end_step()
        return {**record, **result.terms, "grad_norm": result.norm, **measured}

    def batch_place(self) -> BatchPlace:
        """Return where the current batch comes from."""
        if self.loader is None:
            return BatchPlace(self.epoch, None, None)
        number = self.loader.state_dict()["batches"] - 1
        if number < 0:  # between two epochs
            return BatchPlace(self.epoch, None, None)
        return BatchPlace(self.loader.epoch, number, self.loader.last_indices())

    def refuse_batch(self, problem: NonFiniteError) -> None:
        """Handle a batch that is not finite as `on_nonfinite` says.

        Args:
            problem: What is not finite.
        """
        if self.config.on_nonfinite == "raise":
            raise problem
        self.skipped += 1
        action = "skipped"
        if self.config.on_nonfinite == "rollback" and self._snapshot is not None:
            self._snapshot.restore(self)
            if self._snapshot.step != self.step:  # they are gradients at other values
                self._runner.group.discard()
            action = f"skipped, and rolled back to step {self._snapshot.step}"
        warnings.warn(f"{action}: {problem}", NonFiniteWarning, stacklevel=2)

    def _take_snapshot(self) -> None:
        """Keep the state for a rollback, unless it is not finite."""
        if self.config.on_nonfinite != "rollback" or not self.optimizer.training:
            return
        snapshot = Snapshot(self)
        if self._snapshot is None or snapshot.is_finite():
            self._snapshot = snapshot

    def evaluate(
        self, data: DataLike, targets: DataLike | None = None, *, batch_size: int = 32
    ) -> dict[str, Any]:
        """Return the mean loss and the metrics on data, with averaged weights if there are any.

        Batches are weighted by the sum of their masks, or by their number of examples.

        Args:
            data: Data as in `fit`; inputs if `targets` are given.
            targets: Array or nested arrays of targets.
            batch_size: Batch size of data other than a loader.
        """
        pair: DataLike = data if targets is None else (data, targets)
        return evaluation.evaluate(self, pair, batch_size)

    def measure(self, batch: object, outputs: Any) -> float:
        """Update the metrics with a batch, and return its weight. Override it with `compute`.

        Args:
            batch: A batch of the data.
            outputs: Outputs that `compute` returned.
        """
        if self.loss is None:
            if self.metrics:
                raise ArgumentError(
                    "Trainer: metrics need targets, which batches do not have without a loss; "
                    "override Trainer.measure"
                )
            return batches.weight_of(batch, None)
        parts = batches.split(batch, True, self.takes_mask)
        self._update_metrics(parts, outputs)
        return batches.weight_of(batch, parts.options.get("sample_weight"))

    def _update_metrics(self, parts: batches.Parts, outputs: Any, rows: int | None = None) -> None:
        """Update the metrics with a batch.

        Args:
            parts: The parts of the batch.
            outputs: Outputs that `compute` returned.
            rows: Number of examples, if the positions of all of them are on one axis.
        """
        if not self.metrics:
            return
        given = [computed_logits(outputs), parts.targets, parts.options.get("sample_weight")]
        if rows is not None:
            given = [x if x is None else ops.reshape(x, (rows, -1, *x.shape[1:])) for x in given]
        for metric in self.metrics:
            metric.update(*given)

    def predict(self, data: DataLike, *, batch_size: int = 32) -> Any:
        """Return the model's outputs for all inputs, concatenated.

        Args:
            data: An array of inputs, a dataset or a loader. Of batches that are tuples, the first
                part is the input; of dicts, the value of "inputs".
            batch_size: Batch size of data other than a loader.
        """
        return evaluation.predict(self, data, batch_size)

    def evaluating(self) -> AbstractContextManager[bool]:
        """Return a context in which the model is in inference mode, with averaged weights if any.

        Its value is whether the weights differ from those in training.
        """
        return evaluation.evaluating(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save a checkpoint: the model with its weights for evaluation, and the training state.

        Args:
            path: The folder.
        """
        if self.parallel is None:
            checkpoints.save(self, path)
        else:
            self.parallel.save(self, path)
        self._take_snapshot()

    def resume(self, path: str | os.PathLike[str]) -> Trainer:
        """Load a checkpoint that `save` wrote, on any backend; `fit` then continues.

        If the checkpoint is damaged or does not fit, the trainer and its model stay as they are.

        Args:
            path: The folder.

        Raises:
            CheckpointError: If a file is missing or damaged, or lacks a key.
            StateDictError: If tensors do not fit the model or the optimizer.
        """
        if self._is_fitting:
            raise ConcurrentUseError("resume: the trainer is in fit; resume after it has ended")
        if self.parallel is None:
            checkpoints.resume(self, path)
        else:
            self.parallel.resume(self, path)
        self._snapshot = None
        return self
