"""Config of `ember pipeline run`: a pipeline and its data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

from pydantic import PlainValidator, WithJsonSchema

from ember_ml.configs import files
from ember_ml.configs.base import Config
from ember_ml.configs.errors import ConfigError, Problem
from ember_ml.configs.fields import Below1, Size
from ember_ml.configs.train_run import TextData, data_of


def _pipeline(value: Any) -> Config | str:
    """Return the config of a pipeline, or the folder of a saved one."""
    if isinstance(value, (Config, str)):
        return value
    if not isinstance(value, Mapping):
        problem = f"must be a folder, or a mapping with a type, not {value!r:.60}"
        raise ConfigError("pipeline", [Problem((), problem)])
    return Config.from_dict(value, kind="pipelines")


def _files(value: object) -> Config:
    data = data_of(value)
    if data.component or isinstance(data, TextData):
        problem = "must be arrays, audio, images, table or series; text is a column of a table"
        raise ConfigError("data", [Problem((), problem)])
    return data


class PipelineRunConfig(Config):
    """A pipeline and the data to fit and run it on."""

    pipeline: Annotated[
        Config | str, PlainValidator(_pipeline), WithJsonSchema({"type": ["object", "string"]})
    ]
    """Pipeline ({type: training, ...} or another of `ember pipelines`), or the folder of a saved
    one."""
    data: Annotated[Config, PlainValidator(_files), WithJsonSchema({"type": "object"})]
    """Data in files, as in `ember train`: {arrays: {path: ...}}, audio, images, table or series."""
    validation: Below1 | str = 0.1
    """Of a pipeline that trains: fraction of the labeled data held out, or another file or
    folder."""
    unlabeled: str | None = None
    """Of a self-training pipeline: another file of inputs. Default: the examples of the data whose
    target is negative."""
    batch_size: Size = 256
    """Number of examples that are computed at once, outside training."""
    out: str = "runs/pipeline"
    """Folder of the pipeline, its results and its outputs."""

    @classmethod
    def load(cls, path: str | os.PathLike[str], changes: Iterable[str] = ()) -> Self:
        """Return the config in a YAML file.

        Args:
            path: Path of the file.
            changes: Changes such as "pipeline.epochs=3".
        """
        return files.load_as(cls, path, changes)
