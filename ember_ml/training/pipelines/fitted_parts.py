"""Parts of a training pipeline that are fitted to the training data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml.nn.module import Module
from ember_ml.nn.pipeline import ClassLabels, InferencePipeline, Inverse, Pipeline, _stages
from ember_ml.training.pipelines.preparation import Batches, Prepare, Source


class FittedParts:
    """Preprocessing and target encoding, which are fitted to the training data.

    Args:
        pipeline: Pipeline with the stages "inputs" and "targets", both optional. It is never run as
            a whole.
        labels: Label of each class, if the targets are class ids.
    """

    def __init__(self, pipeline: Pipeline, labels: Sequence[str] | None) -> None:
        self.pipeline = pipeline
        self.classes = None if labels is None else ClassLabels(tuple(labels))

    @property
    def inputs(self) -> Any:
        """Preprocessing of the inputs, or None."""
        return self.pipeline.stages.get("inputs")

    @property
    def target(self) -> Any:
        """Encoding of the targets, or None."""
        return self.pipeline.stages.get("targets")

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """Labels of the classes, if the targets are labels."""
        decoder = self.decode()
        return decoder.labels if isinstance(decoder, ClassLabels) else None

    def fit(self, train: Source, inputs: Source | None = None) -> None:
        """Fit preprocessing and target encoding.

        Args:
            train: The training data.
            inputs: Data that the preprocessing is fitted to. Default: the training data.
        """
        parts = (self.inputs, train if inputs is None else inputs), (self.target, train)
        for part, (stage, data) in enumerate(parts):
            if stage is not None and _stages.needs_fit(stage):
                _stages.fit(stage, Batches(data, part))

    def prepare(self, *, finite: bool) -> Prepare:
        """Return the function that prepares a batch.

        Args:
            finite: Whether NaN and infinite values of inputs are errors.
        """
        encode = self.target.encode if isinstance(self.target, ClassLabels) else self.target
        return Prepare(self.inputs, encode, finite=finite)

    def inference(self, model: Module) -> InferencePipeline:
        """Return the pipeline for inference.

        Args:
            model: The model.
        """
        return InferencePipeline(model, self.inputs, self.decode())

    def decode(self) -> Module | None:
        """Return the module that converts outputs of the model to predictions, or None."""
        if self.target is None:
            return self.classes
        return self.target if isinstance(self.target, ClassLabels) else Inverse(self.target)
