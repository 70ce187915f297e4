"""The objective that trains a config."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ember_ml import ops, registry
from ember_ml.configs.training import TrainerConfig
from ember_ml.nn.module import Module
from ember_ml.training.trainer import Trainer
from ember_ml.training.trainer.sources import DataLike
from ember_ml.training.tuning.errors import TuningError
from ember_ml.training.tuning.prune_trial import PruneTrial
from ember_ml.training.tuning.space import SearchSpace
from ember_ml.training.tuning.trial import Trial

RUN_KEYS = ("epochs", "steps", "batch_size", "validate_every")
"""Keys of a config that are arguments of `Trainer.fit`."""


def model_of(config: Mapping[str, Any]) -> Module:
    """Return the model of a config with its initial weights.

    Args:
        config: Config with the key "model".
    """
    fields = config.get("model")
    if not isinstance(fields, Mapping) or "type" not in fields:
        raise TuningError(f"fit: the base config must have a model with a type, not {fields!r:.60}")
    name = str(fields["type"])
    model = registry.build("" if "/" in name else "models", dict(fields))
    assert isinstance(model, Module)
    return model


def _parameters(model: Module) -> float:
    return float(model.num_parameters())


def _state_size(model: Module) -> float:
    size = getattr(model, "state_size", None)
    if size is None:
        raise TuningError("fit: the objective 'state_size' needs a model with a state")
    return float(size)


MEASURES: dict[str, Callable[[Module], float]] = {
    "parameters": _parameters,
    "state_size": _state_size,
}
"""Objectives that depend on the model only."""


@dataclass
class TrainObjective:
    """Objective that trains the config of a trial and returns its validation scores.

    Args:
        space: The search space.
        base: Config with "model" (a registered model), "trainer" (fields of `TrainerConfig`), and
            epochs, steps, batch_size and validate_every of `fit`.
        train: Training data.
        validation: Validation data.
        objectives: Names of the objectives: "val_..." values of the last evaluation, "parameters",
            "state_size", or "latency" (seconds of an evaluation). The pruner sees the first one.
    """

    space: SearchSpace
    base: Mapping[str, Any]
    train: DataLike
    validation: DataLike
    objectives: tuple[str, ...] = ("val_accuracy",)

    def __call__(self, trial: Trial) -> dict[str, float]:
        """Return the value of each objective.

        Args:
            trial: The trial.
        """
        return self.run(self.space.apply(self.base, trial.params), trial)

    def run(self, config: Mapping[str, Any], trial: Trial) -> dict[str, float]:
        """Train a config, and return the value of each objective.

        Args:
            config: Config with the values of the trial.
            trial: The trial, which gets the reports.
        """
        options = dict(config.get("trainer") or {})
        if options.get("seed") is None:
            options["seed"] = trial.seed
        ops.random.set_seed(options["seed"])
        model = model_of(config)
        trainer = Trainer(
            model,
            config=TrainerConfig.from_dict({k: v for k, v in options.items() if v is not None}),
            callbacks=[PruneTrial(trial, self.objectives[0])],
            progress=False,
        )
        limits = {name: config[name] for name in RUN_KEYS if config.get(name) is not None}
        trainer.fit(self.train, validation=self.validation, **limits)
        return {name: self._value(name, trainer) for name in self.objectives}

    def _value(self, name: str, trainer: Trainer) -> float:
        if name == "latency":
            return latency(trainer, self.validation)
        if name in MEASURES:
            return MEASURES[name](trainer.model)
        record = self._last_evaluation(name, trainer)
        if name not in record:
            raise TuningError(
                f"fit: the evaluation has no {name!r}; it has {', '.join(sorted(record))}; add "
                "the metric to trainer.metrics of the base config"
            )
        return float(record[name])

    def _last_evaluation(self, name: str, trainer: Trainer) -> Mapping[str, Any]:
        """Return the values of the evaluation after the last step, which may still be missing."""
        for records in (trainer.history.epochs, trainer.history.steps):
            if records and records[-1]["step"] == trainer.step and name in records[-1]:
                return records[-1]
        results = trainer.evaluate(self.validation)
        return {f"val_{key}": value for key, value in results.items()}


def latency(trainer: Trainer, data: DataLike, repeats: int = 5) -> float:
    """Return the median time in seconds of the evaluation of data.

    Args:
        trainer: Trainer of the model.
        data: Data as in `Trainer.evaluate`.
        repeats: Number of measurements, after one that is not counted.
    """
    seconds = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        trainer.evaluate(data)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])
