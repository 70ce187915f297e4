"""The parts of a trainer that its config describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.configs import Config
from ember_ml.configs.fields import ComponentLike
from ember_ml.configs.training import TrainerConfig
from ember_ml.nn.module import Module
from ember_ml.nn.remat import Remat, chosen_modules
from ember_ml.registry import build
from ember_ml.training.losses.base import LossLike
from ember_ml.training.optimizer import Optimizer
from ember_ml.training.optimizer.groups import ParametersLike
from ember_ml.training.schedules.base import ScheduleLike
from ember_ml.training.trainer.outputs import OutputLosses
from ember_ml.training.trainer.parallel import Parallel

if TYPE_CHECKING:
    from ember_ml.training.profiling.options import ProfileLike
    from ember_ml.training.trainer.profiling import StepProfiler
    from ember_ml.training.trainer.trainer import Trainer


def config_of(
    config: TrainerConfig | None, options: Mapping[str, Any], owner: type
) -> TrainerConfig:
    """Return the config with the options that are not None.

    Args:
        config: The config. Default: all defaults.
        options: Values of fields; None leaves a field unchanged.
        owner: Class that errors name.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if config is not None:
        if not isinstance(config, TrainerConfig):
            raise ArgumentTypeError(f"Trainer: config must be a TrainerConfig, not {config!r:.60}")
        given = {name: getattr(config, name) for name in TrainerConfig.model_fields} | given
    return TrainerConfig.check(given, owner)


def parallel_of(config: TrainerConfig, model: Module) -> Parallel | None:
    """Return the processes that train a model together; None without a strategy."""
    if config.strategy is None:
        return None
    strategy = build("strategies", config.strategy)
    if not hasattr(strategy, "setup"):
        raise ArgumentTypeError(
            f"Trainer: the strategy must be a name, a config or a Strategy, not {strategy!r:.60}"
        )
    return cast("Parallel", strategy.setup(model, precision=config.precision))


def optimizer_of(config: TrainerConfig, model: ParametersLike) -> Optimizer:
    """Return the optimizer of parameters."""
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


def loss_of(config: TrainerConfig) -> LossLike | None:
    """Return the loss, or the weighted sum of the losses of several outputs."""
    if isinstance(config.loss, Mapping):
        return OutputLosses(config.loss, config.loss_weights)
    if config.loss_weights:
        raise ArgumentError("Trainer: loss_weights needs a loss for each output")
    return cast("LossLike | None", _callable("losses", "loss", config.loss))


def remat_of(config: TrainerConfig, model: Module) -> Remat:
    """Return the modules to rematerialize in training steps, which may be none."""
    return Remat({} if config.remat is None else chosen_modules(model, config.remat))


def schedule_of(config: TrainerConfig) -> ScheduleLike | None:
    """Return the learning rate schedule."""
    return cast("ScheduleLike | None", _callable("schedules", "schedule", config.schedule))


def profiler_of(value: ProfileLike | None, trainer: Trainer) -> StepProfiler | None:
    """Return the profiler of a trainer, which is one of its callbacks; None for no profile.

    Args:
        value: Argument `profile` of the trainer.
        trainer: The trainer.
    """
    if value is None or value is False:
        return None
    from ember_ml.training.trainer.profiling import StepProfiler, options_for

    profiler = StepProfiler(trainer, options_for(trainer, value))
    trainer.callbacks.append(profiler)
    return profiler


def _callable(kind: str, name: str, value: ComponentLike | None) -> object:
    """Return a component that is called, or None; raise an error if it cannot be called."""
    built = None if value is None else build(kind, value)
    if not (built is None or callable(built)):
        raise ArgumentTypeError(
            f"Trainer: the {name} must be a name, a config or a function, not {built!r:.60}"
        )
    return built
