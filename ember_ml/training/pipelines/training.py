"""Training pipelines: preprocessing, model, training and evaluation in one folder."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml.configs.fields import AnyComponent, Below1, Size, ValidatedAs
from ember_ml.configs.training import TrainerConfig
from ember_ml.data import Dataset, random_split
from ember_ml.nn import checkpoint
from ember_ml.nn.module import Module
from ember_ml.nn.pipeline import ClassLabels, InferencePipeline, Pipeline
from ember_ml.nn.pipeline.inference import OptionalComponent
from ember_ml.registry import build, register
from ember_ml.training.callbacks import Callback, Checkpoint, CSVLogger
from ember_ml.training.pipelines import preparation
from ember_ml.training.pipelines.fitted_parts import FittedParts
from ember_ml.training.pipelines.preparation import Prepare, Source
from ember_ml.training.pipelines.run_folder import LOG, RunFolder, config_conflict
from ember_ml.training.trainer import History, Trainer
from ember_ml.training.trainer.sources import DataLike


def _trainer_config(value: Any) -> TrainerConfig:
    return value if isinstance(value, TrainerConfig) else TrainerConfig.from_dict(value)


def _as_string(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


TrainerField = Annotated[
    TrainerConfig | Mapping[str, Any],
    PlainValidator(_trainer_config),
    WithJsonSchema({"type": "object"}),
]
PathField = Annotated[
    str | os.PathLike[str], ValidatedAs(Annotated[str, BeforeValidator(_as_string)])
]
DEFAULT_TRAINER = TrainerConfig()


@register("pipelines/training")
class TrainingPipeline:
    """Preprocessing, training and evaluation, whose result is a folder for `InferencePipeline`.

    `fit` fits the preprocessing to the training data only, trains the model on what it returns,
    evaluates it, and saves preprocessing, model and decoding together. The folder also has
    `results.json`, `log.csv` and the checkpoints from which `fit(resume=True)` continues.

    Args:
        preprocess: Pipeline or feature extractor that computes the inputs of the model. None: the
            model gets the data.
        model: The model, or its name or config. A config is created anew in each `fit`.
        target: What encodes the targets: `ClassLabels`, or a feature extractor with an inverse,
            such as `Standardize`. It is fitted to the training targets and decodes predictions.
            Default: `ClassLabels` if the targets are strings, otherwise none.
        trainer: Options of the trainer. Default loss with class labels: "cross_entropy". Default
            seed: 0.
        epochs: Number of epochs. Default: 1 if there are no steps either.
        steps: Number of steps. Default: no limit.
        batch_size: Number of examples of a batch.
        monitor: Value that selects the weights to keep, such as "val_loss". Default: those of the
            last step.
        mode: "min" if lower values of `monitor` are better, "max" if higher ones are.
        checkpoint_every: Steps between two checkpoints. Default: one after each epoch.
        folder: Folder of the run. Default: "run".

    Attributes:
        inference: The trained `InferencePipeline`; None before `fit`.
        history: History of the training; None before `fit`.
        results: Content of `results.json`.

    Example:
        >>> import tempfile
        >>> from ember_ml.nn.pipeline import InferencePipeline, TrainingPipeline
        >>> folder = tempfile.TemporaryDirectory()
        >>> pipeline = TrainingPipeline(
        ...     None, nn.layers.Dense(2, 2), trainer={"learning_rate": 0.1}, epochs=20,
        ...     folder=folder.name,
        ... )
        >>> data = ([[1.0, 0.0], [0.0, 1.0]], ["left", "right"])
        >>> pipeline = pipeline.fit(data, progress=False)
        >>> InferencePipeline.load(folder.name)([[2.0, 0.0]])
        ['left']
        >>> folder.cleanup()
    """

    config: Any = None
    """Config that the pipeline was created from."""

    def __init__(
        self,
        preprocess: OptionalComponent,
        model: AnyComponent,
        target: OptionalComponent = None,
        *,
        trainer: TrainerField = DEFAULT_TRAINER,
        epochs: Size | None = None,
        steps: Size | None = None,
        batch_size: Size = 32,
        monitor: str | None = None,
        mode: Literal["min", "max"] = "min",
        checkpoint_every: Size | None = None,
        folder: PathField = "run",
    ) -> None:
        self.preprocess = preprocess
        self.model = model
        self.target = target
        self.trainer_config = _trainer_config(trainer)
        self.epochs = 1 if epochs is None and steps is None else epochs
        self.steps = steps
        self.batch_size = batch_size
        self.monitor = monitor
        self.mode = mode
        self.checkpoint_every = checkpoint_every
        self.folder = Path(folder)
        self.inference: InferencePipeline | None = None
        self.history: History | None = None
        self.results: dict[str, Any] = {}

    @staticmethod
    def prepare_config(values: Any) -> Any:
        """Return the fields of a config; `preprocess` may be missing there.

        Args:
            values: The given fields.
        """
        return {"preprocess": None, **values} if isinstance(values, dict) else values

    def fit(
        self,
        train: DataLike,
        validation: DataLike | Below1 | None = None,
        *,
        test: DataLike | None = None,
        labels: Sequence[str] | None = None,
        resume: bool = False,
        overwrite: bool = False,
        callbacks: Sequence[Callback] = (),
        progress: bool = True,
    ) -> Self:
        """Fit the preprocessing, train and evaluate the model, write the folder; return self.

        Ctrl-C and SIGTERM save a checkpoint and raise `TrainingInterrupted` or
        `TrainingTerminated`, as in `Trainer.fit`.

        Args:
            train: Training data: a dataset, a `DataLoader`, or arrays (inputs, targets). Inputs and
                targets may be strings.
            validation: Data for the evaluation after each epoch, or the fraction of the training
                data to hold out. Default: none.
            test: Data that is evaluated once, at the end. Default: none.
            labels: Label of each class, such as `folder.classes`, if the targets are class ids. The
                predictions are then labels. Default: as `target` says.
            resume: Whether to continue the run in the folder, if there is one. The result equals
                that of a run without interruption.
            overwrite: Whether to replace the run in the folder.
            callbacks: Further callbacks of the trainer.
            progress: Whether to show a progress bar.

        Raises:
            ArgumentError: If the folder contains a run, or the data does not fit.
            CheckpointError: If a part of the pipeline cannot be saved, before anything is written.
        """
        run = RunFolder(self.folder)
        resumes = run.begin(resume=resume, overwrite=overwrite)
        train_source = preparation.source_of(train, self.batch_size)
        train_source, validation_source = self._split(train_source, validation)
        model = self._build_model()
        parts = self._fitted_parts(run, train_source, model, labels, resumes=resumes)
        prepare = parts.prepare(finite=self.trainer_config.on_nonfinite == "raise")
        prepared = preparation.prepared(train_source, prepare)
        held_out = _prepared(validation_source, prepare)
        trainer = self._trainer(model, parts, callbacks, progress)
        last = run.last() if resumes else None
        if last is not None:
            trainer.resume(last)
        _try_batch(trainer, prepared, self.batch_size)
        self._train(trainer, prepared, held_out)
        best = run.best() if self.monitor is not None else None
        if best is not None:
            checkpoint.load(best, into=model)
        tested = None if test is None else preparation.source_of(test, self.batch_size)
        evaluated = {"validation": held_out, "test": _prepared(tested, prepare)}
        self._finish(run, trainer, parts, evaluated)
        return self

    def _split(
        self, train: Source, validation: DataLike | float | None
    ) -> tuple[Source, Source | None]:
        """Return the training and the validation data."""
        if validation is None:
            return train, None
        if not isinstance(validation, (int, float)):
            return train, preparation.source_of(validation, self.batch_size)
        if not isinstance(train, Dataset):
            raise ArgumentError(
                "TrainingPipeline.fit: a fraction can be held out of a dataset or arrays, not of a "
                f"{type(train).__name__}; pass the validation data"
            )
        count = round(len(train) * validation) if math.isfinite(validation) else 0
        if not 0 < count < len(train):
            raise ArgumentError(
                f"TrainingPipeline.fit: validation={validation} of {len(train)} examples are "
                f"{count}; it must leave examples for both"
            )
        sizes = [len(train) - count, count]
        remaining, held_out = random_split(train, sizes, seed=self.trainer_config.seed or 0)
        return remaining, held_out

    def _build_model(self) -> Module:
        ops.random.set_seed(self.trainer_config.seed or 0)
        model = build("", self.model)
        if not isinstance(model, Module):
            raise ArgumentError(f"TrainingPipeline: the model must be a Module, not {model!r:.60}")
        return model

    def _fitted_parts(
        self,
        run: RunFolder,
        train: Source,
        model: Module,
        labels: Sequence[str] | None,
        *,
        resumes: bool,
    ) -> FittedParts:
        """Return preprocessing and target encoding, fitted to the training data or loaded."""
        saved = run.load_preprocess() if resumes else None
        if isinstance(saved, Pipeline):
            self._check_resumed(saved)
            return FittedParts(saved, labels)
        parts = FittedParts(Pipeline("preprocess"), labels)
        if self.preprocess is not None:
            parts.pipeline.add_stage(build("", self.preprocess), "inputs")
        target = self._target(train)
        if target is not None:
            parts.pipeline.add_stage(target, "targets")
        run.check(parts.inference(model))
        parts.fit(train)
        run.save_preprocess(parts.pipeline)
        return parts

    def _check_resumed(self, saved: Pipeline) -> None:
        """Raise an ArgumentError if the run to resume was fitted with another preprocessing."""
        requested = None if self.preprocess is None else build("", self.preprocess)
        fitted = saved.stages.get("inputs")
        problem = config_conflict(requested, fitted)
        if problem is not None:
            raise ArgumentError(
                f"TrainingPipeline.fit: the run in {self.folder} has another preprocessing: "
                f"{problem}; resume with the same, replace the run (overwrite=True), or choose "
                "another folder"
            )

    def _target(self, train: Source) -> Any:
        if self.target is not None:
            return build("", self.target)
        if _has_text_targets(train):
            return ClassLabels()
        return None

    def _trainer(
        self, model: Module, parts: FittedParts, callbacks: Sequence[Callback], progress: bool
    ) -> Trainer:
        config = self.trainer_config
        loss = config.loss if config.loss is not None else model.default_loss
        if loss is None and parts.labels is not None:
            loss = "cross_entropy"
        own = [
            CSVLogger(self.folder / LOG),
            Checkpoint(
                self.folder,
                every_steps=self.checkpoint_every,
                monitor=self.monitor,
                mode=self.mode,
            ),
        ]
        return Trainer(
            model,
            loss,
            seed=config.seed or 0,
            config=config,
            callbacks=[*callbacks, *own],
            progress=progress,
        )

    def _train(self, trainer: Trainer, train: Source, validation: Source | None) -> None:
        before = trainer.step
        trainer.fit(
            train,
            validation=validation,
            until_epoch=self.epochs,
            until_step=self.steps,
            batch_size=self.batch_size,
        )
        if trainer.step > before:
            trainer.save(self.folder / "last")

    def _finish(
        self,
        run: RunFolder,
        trainer: Trainer,
        parts: FittedParts,
        data: Mapping[str, Source | None],
    ) -> None:
        """Evaluate the model, and write the folder."""
        self.history = trainer.history
        self.results = {
            "step": trainer.step,
            "epoch": trainer.epoch,
            **{
                name: trainer.evaluate(source, batch_size=self.batch_size)
                for name, source in data.items()
                if source is not None
            },
            "labels": None if parts.labels is None else list(parts.labels),
            "backend": trainer.backend,
            "epochs": list(trainer.history.all_epochs()),
        }
        with trainer.evaluating():
            checkpoint.save(parts.inference(trainer.model), self.folder)
        run.write_results(self.results)
        self.inference = InferencePipeline.load(self.folder, backend=trainer.backend)


def _prepared(source: Source | None, prepare: Prepare) -> Source | None:
    return None if source is None else preparation.prepared(source, prepare)


def _has_text_targets(train: Source) -> bool:
    """Return whether the targets of the first examples are strings."""
    if isinstance(train, Dataset) and not len(train):
        raise ArgumentError("TrainingPipeline.fit: the training data is empty")
    batch: Any
    if isinstance(train, Dataset):
        batch = train.for_epoch(0).batch([0])
    else:
        batch = next(train.once(), None)
    targets = batch.get("targets") if isinstance(batch, Mapping) else batch
    if isinstance(batch, (tuple, list)):
        targets = batch[1] if len(batch) > 1 else None
    return isinstance(targets, (list, tuple)) and bool(targets) and isinstance(targets[0], str)


def _try_batch(trainer: Trainer, data: Source, batch_size: int) -> None:
    """Compute the loss of one batch, so that shapes that do not fit are reported at once."""
    state = ops.random.get_state()
    batch = preparation.first_batch(data, batch_size)
    try:
        with trainer.evaluating():
            trainer.compute(batch)
    except Exception as error:
        no_loss = trainer.loss is None
        shape = getattr(preparation.part_of(batch, 0), "shape", None)
        error.add_note(
            f"TrainingPipeline: the preprocessing returns inputs of shape {shape}; the model "
            f"({type(trainer.model).__name__}) and the loss must take them"
            + ("; the trainer has no loss: the model must return it" if no_loss else "")
        )
        raise
    finally:
        ops.random.set_state(state)
