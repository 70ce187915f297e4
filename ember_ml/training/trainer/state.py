"""Parts of a trainer, and its checkpoints."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.folders import Log
from ember_ml._core.tensor import Tensor
from ember_ml.configs import Config
from ember_ml.configs.fields import ComponentLike
from ember_ml.configs.training import TrainerConfig
from ember_ml.nn import checkpoint
from ember_ml.nn.module import Module
from ember_ml.registry import build
from ember_ml.training.losses.base import LossLike
from ember_ml.training.optimizer import Optimizer
from ember_ml.training.schedules import Schedule
from ember_ml.training.schedules.base import ScheduleLike
from ember_ml.training.trainer import history_log
from ember_ml.training.trainer.outputs import OutputLosses

if TYPE_CHECKING:
    from ember_ml.training.trainer.trainer import Trainer


def configured(config: TrainerConfig | None, options: dict[str, Any]) -> TrainerConfig:
    """Return the config with some fields replaced."""
    if config is None:
        return TrainerConfig.check(options, _trainer())
    if not isinstance(config, TrainerConfig):
        raise ArgumentTypeError(f"Trainer: config must be a TrainerConfig, not {config!r:.60}")
    own = {name: getattr(config, name) for name in TrainerConfig.model_fields}
    return TrainerConfig.check({**own, **options}, _trainer())


def _trainer() -> type:
    from ember_ml.training.trainer.trainer import Trainer

    return Trainer


def optimizer(config: TrainerConfig, model: Module) -> Optimizer:
    """Return the optimizer of the model's parameters."""
    chosen, rate = config.optimizer, config.learning_rate
    fields = type(chosen).model_fields if isinstance(chosen, Config) else {}
    if rate is not None and "learning_rate" in fields:  # groups may have their own
        chosen = chosen.override(learning_rate=rate)
        rate = None
    built = build("optimizers", chosen, model)
    if not isinstance(built, Optimizer):
        raise ArgumentTypeError(f"Trainer: the optimizer must be an Optimizer, not {built!r:.60}")
    if rate is not None:
        built.learning_rate = rate
    return built


def unused_folder(name: str) -> Path:
    """Return a folder that does not exist: the name, or the name with a number."""
    names = itertools.chain([name], (f"{name}-{count}" for count in itertools.count(2)))
    return next(path for path in map(Path, names) if not os.path.lexists(path))


def loss(config: TrainerConfig) -> LossLike | None:
    """Return the loss, or the weighted sum of the losses of several outputs."""
    if isinstance(config.loss, Mapping):
        return OutputLosses(config.loss, config.loss_weights)
    if config.loss_weights:
        raise ArgumentError("Trainer: loss_weights needs a loss for each output")
    return None if config.loss is None else cast("LossLike", _callable("loss", config.loss))


def schedule(config: TrainerConfig) -> ScheduleLike | None:
    """Return the learning rate schedule."""
    if config.schedule is None:
        return None
    return cast("ScheduleLike", _callable("schedule", config.schedule))


_KINDS = {"loss": "losses", "schedule": "schedules"}


def _callable(name: str, value: ComponentLike) -> object:
    """Return a component that is called; raise an error if it cannot be."""
    built = build(_KINDS[name], value)
    if not callable(built):
        raise ArgumentTypeError(
            f"Trainer: the {name} must be a name, a config or a function, not {built!r:.60}"
        )
    return built


def save(trainer: Trainer, path: str | os.PathLike[str]) -> None:
    """Save the model with its weights for evaluation, and the training state."""
    evaluation = not trainer.optimizer.training
    with trainer.optimizer.training_values():
        _save(trainer, path, evaluation)


def _save(trainer: Trainer, path: str | os.PathLike[str], evaluation: bool) -> None:
    saved = trainer.optimizer.state_dict()
    optimizer_state = {key: value for key, value in saved.items() if key != "tensors"}
    tensors = _prefixed("optimizer", saved["tensors"])
    data: dict[str, Any] = {
        "step": trainer.step,
        "epoch": trainer.epoch,
        "optimizer": optimizer_state,
        "schedule": _schedule(trainer),
        "loader": None if trainer.loader is None else trainer.loader.state_dict(),
        "random": ops.random.get_state(),
        "history": trainer.history.position(),
        "callbacks": [
            [type(callback).__name__, callback.state_dict()] for callback in trainer.callbacks
        ],
        "evaluation": evaluation,
        "skipped": trainer.skipped,
        "start": list(trainer.start),
        "metrics": None if trainer.train_metrics is None else trainer.train_metrics.state_dict(),
        "group": trainer._runner.group.state_dict(),
        "scale": None if trainer._runner.scale is None else trainer._runner.scale.state_dict(),
    }
    tensors |= _prefixed("group", trainer._runner.tensors())
    if trainer.ema is not None:
        averaged = trainer.ema.state_dict()
        tensors |= _prefixed("ema", averaged.pop("tensors"))
        data["ema"] = averaged
    weights = {name: x.value() for name, x in trainer.model.named_parameters()}
    with trainer.evaluating() as others:
        if others:
            tensors |= _prefixed("weights", weights)
        log = Log(history_log.NAME, trainer.history.log.write)
        checkpoint.save(trainer.model, path, training=(data, tensors), log=log)


def _schedule(trainer: Trainer) -> dict[str, Any] | None:
    """Return the schedule's state with its class, which must be the same to restore it."""
    if not isinstance(trainer.schedule, Schedule):
        return None
    return {"class": type(trainer.schedule).__name__, "state": trainer.schedule.state_dict()}


def _prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": x for name, x in tensors.items()}
