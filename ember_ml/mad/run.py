"""One training run: train a model on a task and evaluate it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

from ember_ml import ops
from ember_ml._core.errors import EmberError
from ember_ml._core.folders import holds
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.evaluation import EVALUATION_BATCH, Evaluator, ExampleCounts
from ember_ml.mad.evaluation import Point as Point
from ember_ml.mad.tasks import Task
from ember_ml.nn.layers.sequence_mixing.hyena import HyenaBase
from ember_ml.nn.models.base import Model
from ember_ml.registry import build, create
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback

PROBE_STEPS = 3
"""Number of training steps that measure the time of a step before the runs begin."""
FINAL_RATE = 1e-6
"""Learning rate at the end of the cosine schedule."""


class Result(NamedTuple):
    """Result of a run."""

    accuracy: float
    """Test accuracy over all targets."""
    macro_accuracy: float
    """Test accuracy averaged over classes, as in MAD-Lab. The classes are those that are a target
    or predicted; a class that is predicted but never a target counts 0."""
    loss: float
    """Test loss."""
    validation_accuracy: float
    """Selects the hyperparameters."""
    validation_loss: float
    """Selects the hyperparameters if the accuracies are equal."""
    steps: int
    seconds: float
    seconds_per_step: float
    """Training time only."""
    parameters: int
    state: int
    """Size of the fixed state; see `state_of`."""
    state_per_token: int
    """Size of the state that grows with each token, such as a KV cache."""
    curve: tuple[Point, ...]
    correct: tuple[int, ...] = ()
    """Number of correct targets of each test example, to compare architectures in pairs."""
    targets: tuple[int, ...] = ()
    """Number of targets of each test example."""


def make_model(run: RunConfig) -> Model:
    """Return the model of a run with its initial weights."""
    task = _task(run)
    options = {"head_bias": True} if task.model == "models/language_model" else {}
    ops.random.set_seed(run.seed)
    model: Model = create(
        task.model,
        run.layers,
        task.vocab_size,
        run.hidden_size,
        run.norm,
        max_length=task.length,
        **options,
    )
    return model


def _task(run: RunConfig) -> Task:
    task: Task = build("tasks", run.task)
    return task


def state_of(model: Model) -> int:
    """Return the size of a model's fixed state, as MAD compares it.

    This is the number of values a model keeps to continue a sequence. The long filters of a Hyena
    layer count as recurrences of their order, not as the window of inputs they read.
    """
    hyenas = [layer for layer in model.modules() if isinstance(layer, HyenaBase)]
    windows = sum(layer.state_size - layer.filter_state_size for layer in hyenas)
    return model.state_size - windows


def execute(
    run: RunConfig,
    observe: Callable[[Point], object] | None = None,
    checkpoint: Path | None = None,
) -> Result:
    """Train and evaluate a model.

    Args:
        run: Config of the run.
        observe: Called with each evaluation during training.
        checkpoint: Folder of the run's checkpoint. An interrupted run continues from it, with the
            same result as an uninterrupted one. Default: the run starts from its first step.
    """
    started = time.monotonic()
    task = _task(run)
    evaluator = Evaluator(run, task.validation, observe, checkpoint)
    trainer = _start(run, task, evaluator)
    model = cast("Model", trainer.model)
    trainer.fit(task.train, until_step=run.steps, batch_size=min(run.batch_size, len(task)))
    if not evaluator.curve or evaluator.curve[-1].step != trainer.step:
        evaluator.evaluate(trainer)
    trainer.metrics = [
        build("metrics", {"type": name, "num_classes": task.vocab_size})
        for name in ("accuracy", "recall")
    ]
    examples = ExampleCounts()
    trainer.metrics.append(examples)
    metrics = trainer.evaluate(task.test, batch_size=EVALUATION_BATCH)
    return Result(
        accuracy=float(metrics["accuracy"]),
        macro_accuracy=float(metrics["recall"]),
        loss=float(metrics["loss"]),
        validation_accuracy=evaluator.curve[-1].accuracy,
        validation_loss=evaluator.curve[-1].validation_loss,
        steps=trainer.step,
        seconds=time.monotonic() - started,
        seconds_per_step=evaluator.training_seconds / max(1, trainer.step),
        parameters=model.num_parameters(),
        state=state_of(model),
        state_per_token=model.state_per_token,
        curve=tuple(evaluator.curve),
        correct=tuple(examples.correct),
        targets=tuple(examples.targets),
    )


def _start(run: RunConfig, task: Task, evaluator: Evaluator) -> Trainer:
    """Return the trainer of a run, resumed from its checkpoint if there is a usable one."""
    trainer = make_trainer(run, make_model(run), task.vocab_size)
    trainer.callbacks.append(evaluator)
    checkpoint = evaluator.checkpoint
    if checkpoint is None or not holds(checkpoint, "training.json"):
        return trainer
    try:
        trainer.resume(checkpoint)
    except (EmberError, OSError, KeyError, ValueError):  # damaged, or of another version
        return trainer  # which `resume` has not changed
    if evaluator.observe is not None and evaluator.curve:
        evaluator.observe(evaluator.curve[-1])
    return trainer


def probe(run: RunConfig) -> float:
    """Return the seconds of a training step of a run, with a step's share of the evaluations.

    A few steps and the evaluation of a batch are measured.

    Args:
        run: Config of the run.
    """
    sizes = {name: getattr(run.task, name, 0) for name in ("num_validation", "num_test")}
    count = max(1, min(EVALUATION_BATCH, sizes["num_validation"]))
    few = {"num_train": PROBE_STEPS * run.batch_size, "num_validation": count, "num_test": 1}
    names = type(run.task).model_fields
    task: Task = build("tasks", run.task.override(**{k: v for k, v in few.items() if k in names}))
    trainer = make_trainer(run, make_model(run), task.vocab_size, compile=False)
    clock = _StepClock()
    trainer.callbacks.append(clock)
    trainer.fit(task.train, steps=PROBE_STEPS, batch_size=min(run.batch_size, len(task)))
    started = time.monotonic()
    trainer.evaluate(task.validation, batch_size=EVALUATION_BATCH)
    per_example = (time.monotonic() - started) / len(task.validation)
    evaluated = sizes["num_validation"] * (run.steps // run.evaluate_every) + sizes["num_test"]
    return min(clock.seconds) + per_example * evaluated / run.steps


class _StepClock(Callback):
    """Measures the time of each step but the first."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._last: float | None = None

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Record the time since the previous step."""
        now = time.monotonic()
        if self._last is not None:
            self.seconds.append(now - self._last)
        self._last = now


def make_trainer(
    run: RunConfig,
    model: Model,
    num_classes: int,
    *,
    compile: bool | None = None,  # noqa: A002
) -> Trainer:
    """Return a trainer with AdamW and a cosine schedule.

    Weight decay does not apply to parameters that set a scale, such as norms and biases.

    Args:
        run: Config of the run.
        model: Model to train.
        num_classes: Number of classes of the accuracy metric.
        compile: Whether to compile the step. Default: as the trainer decides.
    """
    return Trainer(
        model,
        "cross_entropy",
        optimizer={"type": "adamw", "weight_decay": run.weight_decay},
        learning_rate=run.learning_rate,
        schedule={
            "type": "cosine",
            "total_steps": run.steps,
            "final_factor": min(1.0, FINAL_RATE / run.learning_rate),
        },
        metrics=[{"type": "accuracy", "num_classes": num_classes}],
        progress=False,
        seed=run.seed,
        compile=compile,
    )
