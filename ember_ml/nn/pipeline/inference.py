"""Inference: preprocessing, model and decoding from one folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated, Any, Self

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.fields import AnyComponent, Component, ComponentLike
from ember_ml.nn import checkpoint
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.nn.module import Module, inference_mode
from ember_ml.nn.pipeline.base import Pipeline
from ember_ml.registry import build, register

OptionalComponent = Annotated[ComponentLike | None, Component(optional=True)]
PARTS = ("preprocess", "model", "decode")


@register("pipelines/inference")
class InferencePipeline(Pipeline):
    """Preprocessing, model and decoding, which are saved in one folder.

    `TrainingPipeline` writes such a folder. The model is in inference mode.

    Args:
        model: The model, or its name or config.
        preprocess: Fitted pipeline or feature extractor that computes the inputs of the model.
            Default: none.
        decode: Module that converts the outputs of the model to predictions, such as `ClassLabels`.
            Default: the predictions are the outputs.

    Example:
        >>> from ember_ml.nn.pipeline import ClassLabels, InferencePipeline
        >>> pipeline = InferencePipeline(nn.layers.Dense(4, 2), decode=ClassLabels(["no", "yes"]))
        >>> pipeline.scores(ops.ones((3, 4))).shape, len(pipeline(ops.ones((3, 4))))
        ((3, 2), 3)
    """

    def __init__(
        self,
        model: AnyComponent,
        preprocess: OptionalComponent = None,
        decode: OptionalComponent = None,
    ) -> None:
        super().__init__()
        for name, part in zip(PARTS, (preprocess, model, decode), strict=True):
            if part is not None:
                self.add_stage(build("", part), name)

    def _fields(self) -> dict[str, Any]:
        """Return the fields of the config."""
        return {name: getattr(x, "config", None) or x for name, x in self._stages.items()}

    def add_stage(self, stage: ComponentLike, name: str | None = None) -> Self:
        """Add a part; only "preprocess", "model" and "decode" are allowed.

        Args:
            stage: The part.
            name: Name of the part.
        """
        if name not in PARTS:
            raise ArgumentError(
                f"InferencePipeline.add_stage: the stages are {', '.join(PARTS)}, not {name!r}; "
                "use a Pipeline for others"
            )
        return super().add_stage(stage, name)

    @property
    def model(self) -> Module:
        """The model."""
        model = self._stages["model"]
        assert isinstance(model, Module)
        return model

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """Labels of the classes; None if the predictions are not labels."""
        return getattr(self._stages.get("decode"), "labels", None)

    def forward(self, data: Any) -> Any:
        """Return the predictions for a batch.

        Args:
            data: Inputs of the preprocessing, or a tuple (inputs, targets, ...).
        """
        with inference_mode(self.modules()):
            return super().forward(data)

    def scores(self, data: Any) -> Any:
        """Return the outputs of the model, without decoding.

        Args:
            data: Inputs of the preprocessing, or a tuple (inputs, targets, ...).
        """
        with inference_mode(self.modules()):
            return self[:-1].run(data) if "decode" in self else self.run(data)

    def predict(self, source: Any, batch_size: int = 64) -> list[Any]:
        """Return the predictions for all examples of a source, as a list.

        Args:
            source: An array, a dataset, or an iterable of examples.
            batch_size: Number of examples that are computed at once.
        """
        return [each for part in self._predictions(source, batch_size) for each in part]

    def _predictions(self, source: Any, batch_size: int) -> Iterator[Any]:
        for result in self.stream(source, batch_size):
            predictions = result[0] if isinstance(result, tuple) else result
            yield predictions if isinstance(predictions, list) else predictions.tolist()

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, backend: str | None = None) -> InferencePipeline:
        """Return the pipeline saved in a folder, by any backend.

        Args:
            path: Folder that `TrainingPipeline` or `ember_ml.save` wrote.
            backend: Backend to load it on. Default: the active backend.

        Raises:
            CheckpointError: If the folder has no pipeline, or one of another kind.
        """
        pipeline = checkpoint.load(path, backend=backend)
        if not isinstance(pipeline, InferencePipeline):
            raise CheckpointError(
                f"InferencePipeline.load: {path} holds a {type(pipeline).__name__}; load it with "
                "ember_ml.load"
            )
        return pipeline.eval()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the pipeline to a folder.

        Args:
            path: The folder.
        """
        checkpoint.save(self, path)
