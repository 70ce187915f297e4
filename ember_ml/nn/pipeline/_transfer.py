"""Pipelines as plain data, to send them to the worker processes of a loader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ember_ml._core import runtime
from ember_ml._core.types import NativeArray
from ember_ml.configs.base import Config
from ember_ml.nn import _extra_files, checkpoint
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.nn.state_dict import saved_variables

if TYPE_CHECKING:
    from ember_ml.nn.pipeline.base import Pipeline


Values = dict[str, NativeArray]
Files = dict[str, dict[str, bytes]]


def pack(pipeline: Pipeline) -> tuple[dict[str, Any], Values, Files]:
    """Return config, values and extra files of a pipeline.

    Args:
        pipeline: The pipeline.
    """
    config = checkpoint.config_dict(pipeline)
    contents, owners = _extra_files.collect(pipeline, ())
    if config is None:
        raise CheckpointError(
            f"{pipeline._title()}: a stage is not registered, so that the pipeline cannot be sent "
            'to another process; register its class, or use worker_type="thread"'
        )
    files: dict[str, dict[str, bytes]] = {}
    for unique, (module, name) in owners.items():
        files.setdefault(module, {})[name] = contents[unique]
    values = {
        name: runtime.LOADED[x.backend].to_portable(x.native)
        for name, x in saved_variables(pipeline).items()
    }
    return config, values, files


def unpack(config: dict[str, Any], values: Values, files: Files) -> Any:
    """Return the pipeline that `pack` described, on the active backend.

    Args:
        config: Config as plain data.
        values: Name -> host array.
        files: Dotted name of a module -> its extra files.
    """
    pipeline = Config.from_dict(config).create()
    with _extra_files.loaded(pipeline, files):
        pipeline.load_state_dict(values)
    return pipeline
