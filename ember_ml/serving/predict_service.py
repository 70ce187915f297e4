"""Predictions of models and inference pipelines, in batches."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

from ember_ml._core import tree
from ember_ml._core.errors import EmberError
from ember_ml._core.tensor import EmberTensor
from ember_ml.nn.module import Module, inference_mode
from ember_ml.nn.pipeline import Pipeline
from ember_ml.nn.pipeline.asynchronous import AsyncPipeline, Batch, PipelineError
from ember_ml.nn.pipeline.asynchronous.handover import evaluate_module
from ember_ml.serving.api_errors import ApiError, invalid, of_exception
from ember_ml.serving.limits import Limits

MAX_WAIT = 0.002
"""Seconds that the first request of a batch waits for others."""


class PredictService:
    """Predictions of one model for JSON arrays.

    Requests that arrive together and whose examples have the same shape are computed together.

    Args:
        model: Model or pipeline.
        name: Name of the model in responses.
        limits: `max_batch` requests are computed at once, and `queue` more wait.
    """

    def __init__(self, model: Module, name: str, limits: Limits) -> None:
        self.model = model
        self.name = name
        self.limits = limits
        self._parts = list(model.modules())
        self.pipeline = AsyncPipeline(buffer=limits.places, overload="reject")
        batch = Batch(limits.max_batch, MAX_WAIT, key=_key)
        self.pipeline.add_stage(self._run, "predict", batch=batch, pure=True)

    async def start(self) -> None:
        """Start the thread of the model."""
        evaluate_module(self.model)
        await self.pipeline.start()

    async def predict(self, inputs: list[Any]) -> list[Any]:
        """Return the prediction of each example.

        Args:
            inputs: Examples.
        """
        try:
            return await self.pipeline.submit(inputs, timeout=self.limits.timeout)
        except PipelineError as error:
            raise of_exception(error) from error
        except (EmberError, ValueError, TypeError, IndexError) as error:
            raise invalid(f"inputs: {error}", "inputs") from error
        except Exception as error:
            message = f"the computation failed: {type(error).__name__}: {error}"
            raise ApiError(500, message, "model_error") from error

    def _run(self, requests: list[list[Any]]) -> list[list[Any]]:
        """Return the predictions of several requests, in the thread of the model."""
        rows = [row for request in requests for row in request]
        with inference_mode(self._parts):
            outputs = self._outputs(rows)
        predictions = _rows(outputs, len(rows))
        result, at = [], 0
        for request in requests:
            result.append(predictions[at : at + len(request)])
            at += len(request)
        return result

    def _outputs(self, rows: list[Any]) -> Any:
        if isinstance(self.model, Pipeline):
            return self.model.run(rows if isinstance(rows[0], str) else _tensor(self.model, rows))
        return self.model(_tensor(self.model, rows))


def _tensor(model: Module, rows: list[Any]) -> EmberTensor:
    """Return examples as a tensor on the backend of the model."""
    from ember_ml._core.convert import convert_to_tensor

    parameters = model.parameters()
    backend = parameters[0].backend if parameters else None
    device = parameters[0].device if parameters else None
    x = convert_to_tensor(rows, backend=backend, device=device)
    if x.dtype.kind == "float" and parameters and parameters[0].dtype.kind == "float":
        return x.astype(parameters[0].dtype)
    return x


def _key(request: list[Any]) -> Hashable:
    """Return the shape and kind of the first example, so that a batch can be stacked."""
    shape, first = [], request[0]
    while isinstance(first, list):
        shape.append(len(first))
        first = first[0] if first else None
    return (*shape, type(first) if isinstance(first, str) else None)


def _rows(outputs: Any, count: int) -> list[Any]:
    """Return the outputs of a batch as plain values, one for each example."""
    plain = tree.map_leaves(lambda x: x.tolist() if isinstance(x, EmberTensor) else x, outputs)
    if isinstance(plain, tuple):
        return [list(parts) for parts in zip(*plain, strict=True)]
    if isinstance(plain, dict):
        return [dict(zip(plain, parts, strict=True)) for parts in zip(*plain.values(), strict=True)]
    if not isinstance(plain, list) or len(plain) != count:
        raise EmberError(f"the model returned no prediction for each of {count} examples")
    return plain


def to_json(predictions: list[Any]) -> bytes:
    """Return predictions as JSON.

    Args:
        predictions: Predictions, as nested lists.

    Raises:
        ApiError: They contain NaN or infinite values.
    """
    try:
        return json.dumps(predictions, allow_nan=False).encode()
    except ValueError:
        message = "the predictions contain NaN or infinite values; check the model and the inputs"
        raise ApiError(500, message, "non_finite") from None
