"""Config of `ember tune`: a training run and the search for its hyperparameters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import PlainValidator, WithJsonSchema

from ember_ml.configs import files
from ember_ml.configs.base import Config
from ember_ml.configs.errors import ConfigError, Problem
from ember_ml.configs.fields import Seed, Size
from ember_ml.configs.pipeline_run import PipelineRunConfig
from ember_ml.configs.train_run import TrainRunConfig


def _space(value: object) -> dict[str, Any]:
    """Return the mapping of a space; its ranges are checked when the search is created."""
    if not isinstance(value, Mapping) or not value:
        problem = f"must map dotted keys to ranges, not {value!r:.60}"
        raise ConfigError("space", [Problem((), problem)])
    return {str(key): entry for key, entry in value.items()}


class TuneFields(Config):
    """Search space, metric and method of a search."""

    space: Annotated[dict[str, Any], PlainValidator(_space), WithJsonSchema({"type": "object"})]
    """Range of each dotted key: {float: [1e-4, 1e-1], log: true}, {integer: [1, 4]}, or a list of
    values."""
    metric: str = "val_loss"
    """Name of the score: "val_loss", or "val_" and the name of a metric of the trainer."""
    mode: Literal["min", "max"] = "min"
    """Whether the metric is to be minimized or maximized."""
    sampler: Any = "auto"
    """Sampler as a name or a config."""
    pruner: Any = None
    """Pruner as a name or a config, such as asha. Default: none."""
    objectives: dict[str, Literal["min", "max"]] | None = None
    """Mode of each objective, if there are several. The metric must be one of them; "parameters",
    "state_size" and "latency" are available too."""
    validate_every: Size | None = None
    """Steps from one evaluation to the next, which the pruner sees. Default: an epoch."""
    history: str | None = None
    """History file, which several searches may share. Default: history.jsonl in the folder."""
    task: str | None = None
    """Name of the task in the history. Default: the name of the YAML file."""
    seed: Seed = 0
    """Seed of the proposals."""


def _tune(value: Any) -> TuneFields:
    return value if isinstance(value, TuneFields) else TuneFields.from_dict(value)


TuneField = Annotated[TuneFields, PlainValidator(_tune), WithJsonSchema({"type": "object"})]


class TuneRunConfig(TrainRunConfig):
    """A training run as `ember train` takes it, and the search for its hyperparameters."""

    tune: TuneField

    def base(self) -> TrainRunConfig:
        """Return the training run without the search."""
        return TrainRunConfig.from_dict(_without_tune(self))


class TunePipelineConfig(PipelineRunConfig):
    """A pipeline as `ember pipeline run` takes it, and the search for its hyperparameters."""

    tune: TuneField

    def base(self) -> PipelineRunConfig:
        """Return the pipeline without the search."""
        return PipelineRunConfig.from_dict(_without_tune(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str], changes: Iterable[str] = ()) -> Self:
        """Return the config in a YAML file.

        Args:
            path: Path of the file.
            changes: Changes such as "pipeline.epochs=3".
        """
        config = super().load(path, changes)
        if getattr(config.pipeline, "component", "") != "pipelines/training":
            problem = (
                "must be a training pipeline ({type: training, ...}), not another or a saved one"
            )
            raise ConfigError(str(path), [Problem(("pipeline",), problem)])
        return config


def _without_tune(config: Config) -> dict[str, Any]:
    return {key: value for key, value in config.to_dict().items() if key != "tune"}


def load_tune_config(
    path: str | os.PathLike[str], changes: Iterable[str] = ()
) -> TuneRunConfig | TunePipelineConfig:
    """Return the config of a search: of a training run, or of a pipeline.

    Args:
        path: Path of the YAML file.
        changes: Changes such as "trainer.learning_rate=1e-3".
    """
    data = files.load_data(path)
    if "tune" not in data:
        problem = "is missing; add the search space: {tune: {space: {trainer.learning_rate: ...}}}"
        raise ConfigError(str(path), [Problem(("tune",), problem)])
    cls = TunePipelineConfig if "pipeline" in data else TuneRunConfig
    return cls.load(path, changes)
