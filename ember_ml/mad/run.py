"""One training run: a model, a task, and what came out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.configs.mad import RunConfig
from ember_ml.nn.layers.sequence_mixing.hyena import HyenaBase
from ember_ml.nn.models.base import Model
from ember_ml.registry import build, create
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback

LAST_RATE = 1e-6
"""Where the cosine of the learning rate ends."""


class Point(NamedTuple):
    """A look at a run."""

    step: int
    loss: float
    """The mean over the training steps since the look before."""
    accuracy: float
    """On the validation split, over all targets."""
    validation_loss: float


class Result(NamedTuple):
    """What came out of a run."""

    accuracy: float
    """On the test split, over all targets."""
    macro_accuracy: float
    """On the test split, the mean over the classes that are a target or predicted, as MAD-Lab
    measures it: one that is predicted but never a target counts 0."""
    loss: float
    """On the test split."""
    validation_accuracy: float
    """By which runs are chosen."""
    validation_loss: float
    """By which they are chosen where the accuracies are equal."""
    steps: int
    seconds: float
    seconds_per_step: float
    """Of training alone."""
    parameters: int
    state: int
    """As `state_of` counts it."""
    state_per_token: int
    """What is kept of each token besides."""
    curve: tuple[Point, ...]


def to_plain(result: Result) -> dict[str, Any]:
    """A result as plain data."""
    return {**result._asdict(), "curve": [tuple(point) for point in result.curve]}


def from_plain(data: Mapping[str, Any]) -> Result:
    """The result that `to_plain` made data of."""
    return Result(**{**data, "curve": tuple(Point(*point) for point in data["curve"])})


def make_model(run: RunConfig) -> Model:
    """The model of a run, with its first weights."""
    task = build("tasks", run.task)
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


def state_of(model: Model) -> int:
    """The size by which the fixed states of models are compared.

    It is what they keep of a sequence to go on with it, except that the long filters of a Hyena
    count as the recurrences of their order, and not as the window of inputs that they read.
    """
    long = [layer for layer in model.modules() if isinstance(layer, HyenaBase)]
    windows = sum(layer.state_size - layer.filter_state_size for layer in long)
    return model.state_size - windows


def execute(run: RunConfig, observe: Callable[[Point], Any] | None = None) -> Result:
    """Train and test.

    Args:
        run: what to do.
        observe: told each look at the run.
    """
    started = time.monotonic()
    task = build("tasks", run.task)
    model = make_model(run)
    trainer = make_trainer(run, model, task.vocab_size)
    watcher = _Watcher(run, task.validation, observe)
    trainer.callbacks.append(watcher)
    trainer.fit(task.train, steps=run.steps, batch_size=min(run.batch_size, len(task)))
    if not watcher.curve or watcher.curve[-1].step != trainer.step:
        watcher.look(trainer)
    trainer.metrics = [
        build("metrics", {"type": name, "num_classes": task.vocab_size})
        for name in ("accuracy", "recall")
    ]
    found = _tested(trainer, task)
    return Result(
        accuracy=found["micro"],
        macro_accuracy=found["macro"],
        loss=found["loss"],
        validation_accuracy=watcher.curve[-1].accuracy,
        validation_loss=watcher.curve[-1].validation_loss,
        steps=trainer.step,
        seconds=time.monotonic() - started,
        seconds_per_step=watcher.training / max(1, trainer.step),
        parameters=model.num_parameters(),
        state=state_of(model),
        state_per_token=model.state_per_token,
        curve=tuple(watcher.curve),
    )


def make_trainer(run: RunConfig, model: Model, classes: int) -> Trainer:
    """AdamW whose learning rate falls as a cosine; norms, biases and the like do not decay."""
    return Trainer(
        model,
        "cross_entropy",
        optimizer={"type": "adamw", "weight_decay": run.weight_decay},
        learning_rate=run.learning_rate,
        schedule={
            "type": "cosine",
            "total_steps": run.steps,
            "final_factor": min(1.0, LAST_RATE / run.learning_rate),
        },
        metrics=[{"type": "accuracy", "num_classes": classes}],
        progress=False,
        seed=run.seed,
    )


def _tested(trainer: Trainer, task: Any) -> dict[str, float]:
    micro, macro = trainer.metrics
    loss = trainer.evaluate(task.test, batch_size=256)["loss"]
    return {"micro": float(micro.compute()), "macro": float(macro.compute()), "loss": float(loss)}


class _Watcher(Callback):
    """Looks at the validation split now and then, and ends a run that has learned its task."""

    def __init__(self, run: RunConfig, data: Any, observe: Callable[[Point], Any] | None) -> None:
        self.run = run
        self.data = data
        self.observe = observe
        self.curve: list[Point] = []
        self.training = 0.0
        self._losses: list[float] = []
        self._began = time.monotonic()

    def on_fit_start(self, trainer: Trainer) -> None:
        """Start the clock."""
        self._began = time.monotonic()

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Look, if it is time to."""
        self._losses.append(record["loss"])
        if trainer.step % self.run.evaluate_every == 0 or trainer.step == self.run.steps:
            self.look(trainer)
            if self.curve[-1].accuracy >= self.run.stop_at:
                trainer.should_stop = True

    def look(self, trainer: Trainer) -> None:
        """Measure, and write the point down."""
        self.training += time.monotonic() - self._began
        found = trainer.evaluate(self.data, batch_size=256)
        mean = sum(self._losses) / max(1, len(self._losses))
        point = Point(trainer.step, mean, float(found["accuracy"]), float(found["loss"]))
        self.curve.append(point)
        self._losses.clear()
        if self.observe is not None:
            self.observe(point)
        self._began = time.monotonic()
