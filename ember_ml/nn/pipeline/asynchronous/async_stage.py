"""Stages of asynchronous pipelines in configs."""

from __future__ import annotations

from typing import Any

from ember_ml.configs.fields import AnyComponent, Count, NonNegative, Positive, Size
from ember_ml.nn.pipeline.asynchronous.batch import Batch
from ember_ml.nn.pipeline.asynchronous.stage import OnError, Stage
from ember_ml.registry import build, get, register


@register("pipelines/async_stage")
class AsyncStage:
    """Module with the options of `AsyncPipeline.add_stage`, for configs.

    Args:
        stage: Module, or its registry name or config.
        timeout: Maximum duration of a call in seconds. Default: no limit.
        on_error: What happens to an item that fails: "raise", "yield" or "skip".
        max_failures: Maximum number of failures in one `map`. Default: no limit.
        batch_size: Maximum number of items in a batch. Default: the stage takes single items.
        max_wait: Seconds that the first item of a batch waits for others.
        pure: Whether a failed batch may be run again in halves.

    Example:
        >>> from ember_ml.nn.pipeline import AsyncPipeline, AsyncStage
        >>> stage = AsyncStage(nn.layers.Dense(3, 2), batch_size=8)
        >>> AsyncPipeline([stage], buffer=16).run([[1.0, 2.0, 3.0]])[0].shape
        (2,)
    """

    def __init__(
        self,
        stage: AnyComponent,
        timeout: Positive | None = None,
        on_error: OnError = "raise",
        max_failures: Count | None = None,
        batch_size: Size | None = None,
        max_wait: NonNegative = 0.005,
        pure: bool = False,
    ) -> None:
        self.stage = build("", stage)
        self.timeout = timeout
        self.on_error = on_error
        self.max_failures = max_failures
        self.batch = None if batch_size is None else Batch(batch_size, max_wait)
        self.pure = pure


def options_of(stage: AsyncStage | Stage) -> dict[str, Any]:
    """Return the keyword arguments of `AsyncPipeline.add_stage` for a stage.

    Args:
        stage: Stage of a config, or of another pipeline.
    """
    names = ["timeout", "on_error", "max_failures", "batch", "pure"]
    if isinstance(stage, Stage):
        names.append("concurrency")
    return {name: getattr(stage, name) for name in names}


def config_of(stage: Stage) -> Any:
    """Return the config of a stage; the stage itself if it has functions, which have no config.

    Args:
        stage: Stage of a pipeline.
    """
    config = getattr(stage.function, "config", None)
    batch = stage.batch
    if config is None or (batch is not None and (batch.key or batch.collate or batch.split)):
        return stage
    values: dict[str, Any] = {"timeout": stage.timeout, "on_error": stage.on_error}
    values |= {"max_failures": stage.max_failures, "pure": stage.pure}
    if batch is not None:
        values |= {"batch_size": batch.size, "max_wait": batch.max_wait}
    return get("pipelines/async_stage").config(stage=config, **values)
