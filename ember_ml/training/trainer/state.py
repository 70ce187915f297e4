"""Parts of a trainer, and its checkpoints."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.folders import open_folder
from ember_ml._core.tensor import Tensor
from ember_ml.configs.training import TrainerConfig
from ember_ml.nn import checkpoint
from ember_ml.nn.module import Module
from ember_ml.registry import build
from ember_ml.training.optimizer import Optimizer
from ember_ml.training.schedules import Schedule

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
    built = build("optimizers", config.optimizer, model)
    if not isinstance(built, Optimizer):
        raise ArgumentTypeError(f"Trainer: the optimizer must be an Optimizer, not {built!r:.60}")
    if config.learning_rate is not None:
        built.learning_rate = config.learning_rate
    return built


def save(trainer: Trainer, path: str | os.PathLike[str]) -> None:
    """Save the model with its weights for evaluation, and the training state."""
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
        "history": trainer.history.state_dict(),
        "callbacks": [
            [type(callback).__name__, callback.state_dict()] for callback in trainer.callbacks
        ],
        "scale": None if trainer._runner.scale is None else trainer._runner.scale.state_dict(),
    }
    if trainer.ema is not None:
        averaged = trainer.ema.state_dict()
        tensors |= _prefixed("ema", averaged.pop("tensors"))
        data["ema"] = averaged
    weights = {name: x.value() for name, x in trainer.model.named_parameters()}
    with trainer.evaluating() as others:
        if others:
            tensors |= _prefixed("weights", weights)
        checkpoint.save(trainer.model, path, training=(data, tensors))


def _schedule(trainer: Trainer) -> dict[str, Any] | None:
    """Return the schedule's state with its class, which must be the same to restore it."""
    if not isinstance(trainer.schedule, Schedule):
        return None
    return {"class": type(trainer.schedule).__name__, "state": trainer.schedule.state_dict()}


def resume(trainer: Trainer, path: str | os.PathLike[str]) -> None:
    """Restore what `save` wrote."""
    with open_folder(path) as folder:
        data = checkpoint.read_json(folder, "training.json")
        tensors = checkpoint.read_tensors(folder, "training.safetensors")
    checkpoint.load(path, into=trainer.model)
    trainer.optimizer.load_state_dict({**data["optimizer"], "tensors": _part("optimizer", tensors)})
    trainer.model.load_state_dict(_part("weights", tensors), strict=False)
    schedule, saved = trainer.schedule, data["schedule"] or {}
    if isinstance(schedule, Schedule) and saved.get("class") == type(schedule).__name__:
        schedule.load_state_dict(saved["state"])
    if trainer.ema is not None and "ema" in data:
        trainer.ema.load_state_dict({**data["ema"], "tensors": _part("ema", tensors)})
    elif trainer.ema is not None:
        trainer.ema.reset()
    if trainer._runner.scale is not None and data["scale"] is not None:
        trainer._runner.scale.load_state_dict(data["scale"])
    trainer.history.load_state_dict(data["history"])
    trainer.step, trainer.epoch = data["step"], data["epoch"]
    trainer.loader_state = data["loader"]
    _resume_callbacks(trainer, data["callbacks"])
    ops.random.set_state(data["random"])


def _resume_callbacks(trainer: Trainer, saved: list[Any]) -> None:
    """Give each callback the first remaining state of its class."""
    left = list(saved)
    for callback in trainer.callbacks:
        saved_state = next((part for part in left if part[0] == type(callback).__name__), None)
        if saved_state is not None:
            left.remove(saved_state)
            callback.load_state_dict(saved_state[1])


def _prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": x for name, x in tensors.items()}


def _part(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    head = f"{prefix}/"
    return {name.removeprefix(head): x for name, x in tensors.items() if name.startswith(head)}
