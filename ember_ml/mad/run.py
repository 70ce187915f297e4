"""One training run: train a model on a task and evaluate it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from ember_ml import ops
from ember_ml.configs.mad import RunConfig
from ember_ml.data import Dataset
from ember_ml.mad.tasks import Task
from ember_ml.nn.layers.sequence_mixing.hyena import HyenaBase
from ember_ml.nn.models.base import Model
from ember_ml.registry import build, create
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback

FINAL_RATE = 1e-6
"""Learning rate at the end of the cosine schedule."""
EVALUATION_BATCH = 256


class Point(NamedTuple):
    """An evaluation during training."""

    step: int
    loss: float
    """Mean training loss since the previous evaluation."""
    accuracy: float
    """Accuracy on the validation split, over all targets."""
    validation_loss: float


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


def execute(run: RunConfig, observe: Callable[[Point], object] | None = None) -> Result:
    """Train and evaluate a model.

    Args:
        run: Config of the run.
        observe: Called with each evaluation during training.
    """
    started = time.monotonic()
    task = _task(run)
    model = make_model(run)
    trainer = make_trainer(run, model, task.vocab_size)
    evaluator = _Evaluator(run, task.validation, observe)
    trainer.callbacks.append(evaluator)
    trainer.fit(task.train, steps=run.steps, batch_size=min(run.batch_size, len(task)))
    if not evaluator.curve or evaluator.curve[-1].step != trainer.step:
        evaluator.evaluate(trainer)
    trainer.metrics = [
        build("metrics", {"type": name, "num_classes": task.vocab_size})
        for name in ("accuracy", "recall")
    ]
    loss = trainer.evaluate(task.test, batch_size=EVALUATION_BATCH)["loss"]
    micro, macro = (float(metric.compute()) for metric in trainer.metrics)
    return Result(
        accuracy=micro,
        macro_accuracy=macro,
        loss=float(loss),
        validation_accuracy=evaluator.curve[-1].accuracy,
        validation_loss=evaluator.curve[-1].validation_loss,
        steps=trainer.step,
        seconds=time.monotonic() - started,
        seconds_per_step=evaluator.training_seconds / max(1, trainer.step),
        parameters=model.num_parameters(),
        state=state_of(model),
        state_per_token=model.state_per_token,
        curve=tuple(evaluator.curve),
    )


def make_trainer(run: RunConfig, model: Model, num_classes: int) -> Trainer:
    """Return a trainer with AdamW and a cosine schedule.

    Weight decay does not apply to parameters that set a scale, such as norms and biases.

    Args:
        run: Config of the run.
        model: Model to train.
        num_classes: Number of classes of the accuracy metric.
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
    )


class _Evaluator(Callback):
    """Evaluates on the validation split at intervals, and stops once the task is learned."""

    def __init__(
        self, run: RunConfig, data: Dataset, observe: Callable[[Point], object] | None
    ) -> None:
        self.run = run
        self.data = data
        self.observe = observe
        self.curve: list[Point] = []
        self.training_seconds = 0.0
        self._losses: list[float] = []
        self._resumed = time.monotonic()

    def on_fit_start(self, trainer: Trainer) -> None:
        """Start the clock."""
        self._resumed = time.monotonic()

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Evaluate after every `evaluate_every` steps."""
        self._losses.append(record["loss"])
        if trainer.step % self.run.evaluate_every == 0 or trainer.step == self.run.steps:
            self.evaluate(trainer)
            if self.curve[-1].accuracy >= self.run.stop_at:
                trainer.should_stop = True

    def evaluate(self, trainer: Trainer) -> None:
        """Append an evaluation to the curve."""
        self.training_seconds += time.monotonic() - self._resumed
        metrics = trainer.evaluate(self.data, batch_size=EVALUATION_BATCH)
        mean_loss = sum(self._losses) / max(1, len(self._losses))
        point = Point(trainer.step, mean_loss, float(metrics["accuracy"]), float(metrics["loss"]))
        self.curve.append(point)
        self._losses.clear()
        if self.observe is not None:
            self.observe(point)
        self._resumed = time.monotonic()
