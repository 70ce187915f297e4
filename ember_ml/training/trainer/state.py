"""A trainer's parts, and its state in a folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.folders import find_folder
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
    """The config with the options in place of its own fields."""
    if config is None:
        return TrainerConfig.check(options, _trainer())
    if not isinstance(config, TrainerConfig):
        raise ArgumentTypeError(f"Trainer: config must be a TrainerConfig, not {config!r:.60}")
    own = {name: getattr(config, name) for name in TrainerConfig.model_fields}
    return TrainerConfig.check({**own, **options}, _trainer())


def _trainer() -> type:
    from ember_ml.training.trainer.trainer import Trainer

    return Trainer


def optimizer(config: TrainerConfig, model: Module) -> Any:
    """The optimizer of the model's parameters."""
    made = build("optimizers", config.optimizer, model)
    if not isinstance(made, Optimizer):
        raise ArgumentTypeError(f"Trainer: the optimizer must be an Optimizer, not {made!r:.60}")
    if config.learning_rate is not None:
        made.learning_rate = config.learning_rate
    return made


def save(trainer: Trainer, path: str | os.PathLike[str]) -> None:
    """Write the model with the weights to use, and all that is needed to go on."""
    own = trainer.optimizer.state_dict()
    tensors: dict[str, Tensor] = _prefixed("optimizer", own.pop("tensors"))
    data: dict[str, Any] = {
        "step": trainer.step,
        "epoch": trainer.epoch,
        "optimizer": own,
        "schedule": _schedule(trainer),
        "loader": None if trainer.loader is None else trainer.loader.state_dict(),
        "random": ops.random.get_state(),
        "history": trainer.history.state_dict(),
        "callbacks": [
            [type(callback).__name__, callback.state_dict()] for callback in trainer.callbacks
        ],
        "scale": None if trainer._updates.scale is None else trainer._updates.scale.state_dict(),
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
    """The schedule's state; one of another class cannot take it over."""
    if not isinstance(trainer.schedule, Schedule):
        return None
    return {"class": type(trainer.schedule).__name__, "state": trainer.schedule.state_dict()}


def resume(trainer: Trainer, path: str | os.PathLike[str]) -> None:
    """Take over what `save` wrote."""
    folder = find_folder(path)
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
    if trainer._updates.scale is not None and data["scale"] is not None:
        trainer._updates.scale.load_state_dict(data["scale"])
    trainer.history.load_state_dict(data["history"])
    trainer.step, trainer.epoch = data["step"], data["epoch"]
    trainer.loader_state = data["loader"]
    _resume_callbacks(trainer, data["callbacks"])
    ops.random.set_state(data["random"])


def _resume_callbacks(trainer: Trainer, saved: list[Any]) -> None:
    """Give each callback the state of the first one left that has its class."""
    left = list(saved)
    for callback in trainer.callbacks:
        found = next((part for part in left if part[0] == type(callback).__name__), None)
        if found is not None:
            left.remove(found)
            callback.load_state_dict(found[1])


def _prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": x for name, x in tensors.items()}


def _part(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    head = f"{prefix}/"
    return {name.removeprefix(head): x for name, x in tensors.items() if name.startswith(head)}
