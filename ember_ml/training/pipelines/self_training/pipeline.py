"""Self-training pipelines: a model that learns from few labels and many unlabeled examples."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml.backend import use_backend
from ember_ml.configs.fields import (
    AnyComponent,
    Below1,
    Component,
    ComponentLike,
    NonNegative,
    Size,
)
from ember_ml.data import Dataset, Subset, random_split
from ember_ml.data.augmentation.base import Augmentation, OptionalAugmentation
from ember_ml.nn import checkpoint
from ember_ml.nn.module import Module
from ember_ml.nn.pipeline import ClassLabels, InferencePipeline, Pipeline
from ember_ml.nn.pipeline.inference import OptionalComponent
from ember_ml.registry import build, register
from ember_ml.training.callbacks import Callback
from ember_ml.training.pipelines.fitted_parts import FittedParts
from ember_ml.training.pipelines.preparation import Prepare
from ember_ml.training.pipelines.run_folder import plain_config
from ember_ml.training.pipelines.self_training import checks
from ember_ml.training.pipelines.self_training.data import all_inputs, run_data, targets_are_text
from ember_ml.training.pipelines.self_training.examples import WHERE, Inputs, dataset_of
from ember_ml.training.pipelines.self_training.folder import SelfTrainingFolder
from ember_ml.training.pipelines.self_training.history import SelfTrainingHistory
from ember_ml.training.pipelines.self_training.predictions import predict
from ember_ml.training.pipelines.self_training.pseudo_labels import Labeling
from ember_ml.training.pipelines.self_training.run import RoundOptions, SelfTrainingRun
from ember_ml.training.pipelines.self_training.training import TrainingPlan
from ember_ml.training.pipelines.training import (
    DEFAULT_TRAINER,
    PathField,
    TrainerField,
    _trainer_config,
)
from ember_ml.training.selection import SelectionRule
from ember_ml.training.trainer.sources import DataLike

SelectionField = Annotated[ComponentLike, Component("selections")]


@register("pipelines/self-training")
class SelfTrainingPipeline:
    """Training on few labels and many unlabeled examples.

    Round 0 trains the supervised model. In mode "rounds", each further round predicts the unlabeled
    data, selects predictions by a rule, and trains on labels and selected pseudo-labels. In mode
    "consistency" (FixMatch), the prediction for a weakly augmented view of an unlabeled example is
    the target of a strongly augmented one, in each step. With `trainer={"ema": ...}`, averaged
    weights predict the pseudo-labels (mean teacher).

    The result is a folder for `InferencePipeline`, with `history.json` and what
    `fit(resume=True)` needs to continue after an interruption at any moment.

    Args:
        model: The model, which returns logits (examples, classes), or its name or config. A config
            is created anew in each `fit`.
        preprocess: Pipeline or feature extractor that computes the inputs of the model. It is
            fitted to labeled and unlabeled inputs. Default: none.
        select: Selection rule, or its name or config. Default: `Threshold(0.9)`.
        augment: Augmentation `augment(inputs, rng)` of one example, before the preprocessing, or
            its name or config: of training inputs, of weak views, and of the views that
            `Agreement` compares. Default: none.
        strong: Augmentation of the strong views of mode "consistency". Default: `augment`.
        mode: "rounds" or "consistency". Default: "rounds".
        rounds: Number of rounds after the supervised model. Default: 3.
        pseudo_labels: "hard" (the best class) or "soft" (probabilities). Default: "hard".
        weight: Weight of a pseudo-label in the loss; that of a label is 1. Default: 1.
        weighting: "uniform", or "confidence" to multiply the weight by the largest probability.
            Default: "uniform".
        ratio: Unlabeled examples for each labeled one of a batch, in mode "consistency".
            Default: 4.
        cumulative: Whether pseudo-labels stay for later rounds, as in scikit-learn. Default: False,
            each round selects from all unlabeled data.
        warm_start: Whether a round starts from the weights of the best model so far. Default:
            False, from the initial weights; rounds of mode "consistency" after the first always
            continue.
        calibrate: Whether to divide logits by a temperature that is fitted to the validation data
            before a rule sees their probabilities. Default: False.
        rollback: Whether to discard a round whose accuracy on the validation data is not higher
            than that of the best model so far (or equal, with a lower cross-entropy), and to end
            there. The result is never worse there than the supervised model. Default: False.
        trainer: Options of the trainer. Default loss: cross-entropy. Default seed: 0.
        epochs: Number of epochs of each round. Default: 1 if there are no steps either.
        steps: Number of steps of each round. Default: no limit.
        batch_size: Number of examples of a batch; in mode "consistency", of labeled ones.
        checkpoint_every: Steps between two checkpoints. Default: one after each epoch.
        folder: Folder of the run. Default: "run".

    Attributes:
        inference: The trained `InferencePipeline`; None before `fit`.
        history: `SelfTrainingHistory` with a record for each round; None before `fit`.
        results: Content of `results.json`.

    Example:
        >>> import tempfile
        >>> from ember_ml.nn.pipeline import SelfTrainingPipeline
        >>> from ember_ml.training.selection import Threshold
        >>> folder = tempfile.TemporaryDirectory()
        >>> model = {"type": "layers/dense", "in_features": 2, "out_features": 2}
        >>> pipeline = SelfTrainingPipeline(
        ...     model, select=Threshold(0.8), rounds=1, epochs=40,
        ...     trainer={"learning_rate": 0.3}, folder=folder.name,
        ... )
        >>> labeled = ([[1.0, 0.0], [0.0, 1.0]], ["left", "right"])
        >>> unlabeled = [[3.0, 0.5], [0.2, 2.0], [0.0, 0.0]]
        >>> history = pipeline.fit(labeled, unlabeled, progress=False).history
        >>> [(record["round"], record["accepted"]) for record in history]
        [(0, True), (1, True)]
        >>> pipeline.inference([[2.0, 0.0]])
        ['left']
        >>> folder.cleanup()
    """

    config: Any = None
    """Config that the pipeline was created from."""

    def __init__(
        self,
        model: AnyComponent,
        preprocess: OptionalComponent = None,
        *,
        select: SelectionField = "threshold",
        augment: OptionalAugmentation = None,
        strong: OptionalAugmentation = None,
        mode: Literal["rounds", "consistency"] = "rounds",
        rounds: Size = 3,
        pseudo_labels: Literal["hard", "soft"] = "hard",
        weight: NonNegative = 1.0,
        weighting: Literal["uniform", "confidence"] = "uniform",
        ratio: Size = 4,
        cumulative: bool = False,
        warm_start: bool = False,
        calibrate: bool = False,
        rollback: bool = False,
        trainer: TrainerField = DEFAULT_TRAINER,
        epochs: Size | None = None,
        steps: Size | None = None,
        batch_size: Size = 32,
        checkpoint_every: Size | None = None,
        folder: PathField = "run",
    ) -> None:
        self.model = model
        self.preprocess = preprocess
        self.select: SelectionRule = build("selections", select)
        self.augment = None if augment is None else build("augmentations", augment)
        self.strong = None if strong is None else build("augmentations", strong)
        self.trainer_config = _trainer_config(trainer)
        self.epochs = 1 if epochs is None and steps is None else epochs
        self.steps = steps
        self.batch_size = batch_size
        self.ratio = ratio
        self.checkpoint_every = checkpoint_every
        self.options = RoundOptions(
            rounds, mode == "consistency", warm_start, cumulative, calibrate, rollback
        )
        self.soft = pseudo_labels == "soft"
        self.weight = weight
        self.by_confidence = weighting == "confidence"
        self.folder = Path(folder)
        self.inference: InferencePipeline | None = None
        self.history: SelfTrainingHistory | None = None
        self.results: dict[str, Any] = {}
        self._check_augmentations()

    def _check_augmentations(self) -> None:
        if not isinstance(self.select, SelectionRule):
            raise ArgumentError(
                f"SelfTrainingPipeline: select must be a SelectionRule, not {self.select!r:.60}"
            )
        if self.options.consistency and self.augment is None and self.strong is None:
            raise ArgumentError(
                'SelfTrainingPipeline: mode="consistency" needs an augmentation: pass strong, or '
                "augment"
            )
        if self.select.views > 1 and self.augment is None:
            raise ArgumentError(
                f"SelfTrainingPipeline: {type(self.select).__name__} compares augmented views; "
                "pass augment"
            )

    def fit(
        self,
        labeled: DataLike,
        unlabeled: DataLike,
        validation: DataLike | Below1 | None = None,
        *,
        test: DataLike | None = None,
        labels: Sequence[str] | None = None,
        resume: bool = False,
        overwrite: bool = False,
        callbacks: Sequence[Callback] = (),
        progress: bool = True,
    ) -> Self:
        """Run all rounds, write the folder, and return self.

        Data is a dataset, arrays as a tuple (inputs, targets), or a dict of arrays with "inputs",
        "targets" and, for padded sequences, a "mask" (examples, time). Targets are class indices or
        strings.

        Args:
            labeled: Data with at least one example of each class.
            unlabeled: Inputs. Targets, if there are any, are true labels for the history, where -1
                or "" stands for unknown; they are not used in training.
            validation: Data for calibration and rollback, or the fraction of the labeled data to
                hold out. Default: none.
            test: Data whose accuracy is in the history, without any effect. Default: none.
            labels: Label of each class, if the targets are class indices. Predictions are then
                labels. Default: the targets, if they are strings.
            resume: Whether to continue the run in the folder, if there is one. The result equals
                that of a run without interruption.
            overwrite: Whether to replace the run in the folder.
            callbacks: Further callbacks, copied for the trainer of each round.
            progress: Whether to show a progress bar for each round.

        Raises:
            ArgumentError: If the folder contains a run, or data is empty, not finite, lacks a
                class, or is missing where an option needs it.
            ShapeError: If inputs differ in shape.
        """
        run = SelfTrainingFolder(self.folder)
        resumes = run.begin(resume=resume, overwrite=overwrite)
        data = self._datasets(labeled, unlabeled, validation, test)
        self.select.check(len(data["unlabeled"]), 0)  # type: ignore[arg-type]
        model = self._build_model()
        run.check_run(self._identity(data, model))
        parts = self._fitted_parts(run, data, model, labels, resumes=resumes)
        prepare = Prepare(parts.inputs, None, finite=self._finite)
        plan = self._plan(callbacks, progress)
        run.keep_initial(model)
        with use_backend(model.parameters()[0].backend):
            classes = self._num_classes(plan, run, model, data["labeled"], prepare)
            checked = run_data(parts, data, classes)
            rounds = SelfTrainingRun(plan, self.options, checked, prepare, run, model)
            rounds.run()
            self._finish(run, parts, model, rounds.history)
        return self

    @property
    def _finite(self) -> bool:
        return self.trainer_config.on_nonfinite == "raise"

    def _datasets(
        self,
        labeled: DataLike,
        unlabeled: DataLike,
        validation: DataLike | float | None,
        test: DataLike | None,
    ) -> dict[str, Dataset | None]:
        """Return the data by the name of the argument, checked."""
        needs = [name for name in ("calibrate", "rollback") if getattr(self.options, name)]
        if needs and validation is None:
            raise ArgumentError(
                f"{WHERE}: {' and '.join(f'{name}=True' for name in needs)} need validation data: "
                "pass labeled data that is not in the training data, or a fraction to hold out"
            )
        train, held_out = dataset_of("labeled", labeled), validation
        if isinstance(validation, (int, float)) and not isinstance(validation, bool):
            train, held_out = self._held_out(train, validation)
        data: dict[str, Dataset | None] = {
            "labeled": train,
            "unlabeled": dataset_of("unlabeled", unlabeled),
            "validation": None if held_out is None else dataset_of("validation", held_out),
            "test": None if test is None else dataset_of("test", test),
        }
        given = {name: part for name, part in data.items() if part is not None}
        checks.check_inputs(given, finite=self._finite and self.preprocess is None)
        return data

    def _held_out(self, labeled: Dataset, fraction: float) -> tuple[Dataset, Dataset]:
        count = round(len(labeled) * fraction) if math.isfinite(fraction) else 0
        if not 0 < count < len(labeled):
            raise ArgumentError(
                f"{WHERE}: validation={fraction} of {len(labeled)} labeled examples are {count}; "
                "it must leave examples for both"
            )
        sizes = [len(labeled) - count, count]
        train, held_out = random_split(labeled, sizes, seed=self.trainer_config.seed or 0)
        return train, held_out

    def _identity(self, data: Mapping[str, Dataset | None], model: Module) -> dict[str, Any]:
        """Return what a resumed run must have in common, as plain data."""
        return {
            "model": plain_config(model),
            "augment": [_described(each) for each in (self.augment, self.strong)],
            "sizes": {name: None if part is None else len(part) for name, part in data.items()},
            "mode": "consistency" if self.options.consistency else "rounds",
            "select": repr(self.select),
            "pseudo_labels": "soft" if self.soft else "hard",
            "weight": [self.weight, self.by_confidence],
            "warm_start": self.options.warm_start,
            "cumulative": self.options.cumulative,
            "calibrate": self.options.calibrate,
            "rollback": self.options.rollback,
            "limits": [self.epochs, self.steps, self.batch_size, self.ratio],
            "seed": self.trainer_config.seed or 0,
        }

    def _build_model(self) -> Module:
        ops.random.set_seed(self.trainer_config.seed or 0)
        model = build("", self.model)
        if not isinstance(model, Module):
            raise ArgumentError(
                f"SelfTrainingPipeline: the model must be a Module, not {model!r:.60}"
            )
        return model

    def _fitted_parts(
        self,
        run: SelfTrainingFolder,
        data: Mapping[str, Dataset | None],
        model: Module,
        labels: Sequence[str] | None,
        *,
        resumes: bool,
    ) -> FittedParts:
        """Return preprocessing and target encoding, fitted or loaded."""
        saved = run.load_preprocess() if resumes else None
        if isinstance(saved, Pipeline):
            return FittedParts(saved, labels)
        labeled, unlabeled = data["labeled"], data["unlabeled"]
        assert labeled is not None
        assert unlabeled is not None
        parts = FittedParts(Pipeline("preprocess"), labels)
        if self.preprocess is not None:
            parts.pipeline.add_stage(build("", self.preprocess), "inputs")
        if targets_are_text(labeled):
            parts.pipeline.add_stage(ClassLabels(), "targets")
        run.check(parts.inference(model))
        parts.fit(labeled, all_inputs(labeled, unlabeled))
        run.save_preprocess(parts.pipeline)
        return parts

    def _plan(self, callbacks: Sequence[Callback], progress: bool) -> TrainingPlan:
        rule = copy.deepcopy(self.select)  # its moving averages are those of this run
        return TrainingPlan(
            self.trainer_config,
            self.epochs,
            self.steps,
            self.batch_size,
            self.ratio,
            self.checkpoint_every,
            self.augment,
            self.strong,
            Labeling(rule, self.soft, self.weight, self.by_confidence),
            callbacks,
            progress,
        )

    def _num_classes(
        self,
        plan: TrainingPlan,
        run: SelfTrainingFolder,
        model: Module,
        labeled: Dataset | None,
        prepare: Prepare,
    ) -> int:
        """Return the number of outputs of the model for an example."""
        assert labeled is not None
        one = Subset(Inputs(labeled), [0]).map(prepare, batched=True)
        return int(predict(plan.trainer(model, run, 0), one, 1).shape[-1])

    def _finish(
        self,
        run: SelfTrainingFolder,
        parts: FittedParts,
        model: Module,
        history: SelfTrainingHistory,
    ) -> None:
        """Write the inference pipeline and the results."""
        backend = str(model.parameters()[0].backend)
        self.history = history
        self.results = {
            "best_round": history.best["round"],
            "labels": None if parts.labels is None else list(parts.labels),
            "backend": backend,
            "rounds": [dict(record) for record in history],
        }
        checkpoint.save(parts.inference(model), self.folder)
        run.write_results(self.results)
        self.inference = InferencePipeline.load(self.folder, backend=backend)


def _described(augmentation: Callable[..., Any] | None) -> str | None:
    """Return the text of an augmentation; of a function, its name."""
    if augmentation is None or isinstance(augmentation, Augmentation):
        return None if augmentation is None else repr(augmentation)
    return getattr(augmentation, "__qualname__", type(augmentation).__qualname__)
