"""Errors of serving."""

from __future__ import annotations

from ember_ml._core.errors import EmberError
from ember_ml.nn.pipeline.asynchronous.errors import DeadlineExceeded as DeadlineExceeded
from ember_ml.nn.pipeline.asynchronous.errors import Overloaded as Overloaded
from ember_ml.nn.pipeline.asynchronous.errors import PipelineClosed as PipelineClosed


class EngineError(EmberError, RuntimeError):
    """Sequence that failed because the computation of its batch raised an error."""
