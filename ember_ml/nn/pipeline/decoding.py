"""Decoders: modules that convert the outputs of a model to predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

from pydantic import StrictBool, StrictInt, StrictStr

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor, is_framework_array
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.configs.fields import AnyComponent
from ember_ml.nn.features.base import NotFittedError
from ember_ml.nn.module import Module
from ember_ml.nn.pipeline._batches import batches
from ember_ml.registry import build, register

Label = StrictBool | StrictInt | StrictStr


@register("pipelines/class_labels")
class ClassLabels(Module):
    """Labels of classes: converts labels to class ids, and scores to labels.

    Args:
        labels: Label of each class. Default: none; `fit` collects and sorts them.

    Example:
        >>> from ember_ml.nn.pipeline import ClassLabels
        >>> labels = ClassLabels().fit(["dog", "cat", "dog"])
        >>> labels.encode(["cat", "dog"]).tolist()
        [0, 1]
        >>> labels([[0.1, 0.9], [2.0, -1.0]])
        ['dog', 'cat']
    """

    def __init__(self, labels: tuple[Label, ...] = ()) -> None:
        self._set(labels)

    def _set(self, labels: tuple[Label, ...]) -> None:
        self.labels = tuple(labels)
        self._ids = {label: at for at, label in enumerate(self.labels)}
        if len(self._ids) != len(self.labels):
            raise ArgumentError(f"ClassLabels: the labels must be unique, not {labels!r:.200}")

    def fit(self, data: Any) -> Self:
        """Collect the labels of data, and return the module.

        Args:
            data: List or array of labels, or an iterable of such batches.
        """
        seen: set[Any] = set()
        for batch in batches("ClassLabels.fit", data, None):
            seen |= set(_flat(_plain(batch)))
        if not seen:
            raise ArgumentError("ClassLabels.fit: the data has no labels")
        kinds = sorted({type(label).__name__ for label in seen})
        if len(kinds) > 1 or kinds[0] not in ("bool", "int", "str"):
            raise ArgumentError(
                f"ClassLabels.fit: labels must be all strings or all integers, not "
                f"{' and '.join(kinds)}"
            )
        self._set(tuple(sorted(seen)))
        if self.config is not None:
            self.config = type(self.config)(labels=self.labels)
        return self

    @property
    def is_fitted(self) -> bool:
        """Whether the labels are known."""
        return bool(self.labels)

    @property
    def needs_fit(self) -> bool:
        """Whether the labels must be collected: not if they were given."""
        return not self.labels

    def encode(self, labels: Any) -> Tensor:
        """Return the class id of each label.

        Args:
            labels: List or array of labels.

        Raises:
            ArgumentError: If a label is not among those of the classes.
        """
        self._check()
        return convert_to_tensor(self._encoded(_plain(labels)), "int64")

    def _encoded(self, labels: Any) -> Any:
        if isinstance(labels, list):
            return [self._encoded(label) for label in labels]
        if labels not in self._ids:
            known = ", ".join(map(repr, self.labels[:20]))
            more = ", ..." if len(self.labels) > 20 else ""
            raise ArgumentError(
                f"ClassLabels: {labels!r:.60} is not among the {len(self.labels)} labels of the "
                f"training data: {known}{more}"
            )
        return self._ids[labels]

    def forward(self, scores: TensorLike) -> list[Any]:
        """Return the label with the highest score; nested lists if there are several axes.

        Args:
            scores: Scores of shape (..., classes).
        """
        self._check()
        scores = scores if isinstance(scores, EmberTensor) else convert_to_tensor(scores)
        if scores.ndim == 0 or scores.shape[-1] != len(self.labels):
            raise ShapeError(
                f"ClassLabels: expected {len(self.labels)} scores along the last axis, one for "
                f"each label, got shape {scores.shape}"
            )
        decoded: list[Any] = self._decoded(ops.argmax(scores, axis=-1).tolist())
        return decoded

    def _decoded(self, ids: Any) -> Any:
        if isinstance(ids, list):
            return [self._decoded(each) for each in ids]
        return self.labels[ids]

    def _check(self) -> None:
        if not self.labels:
            raise NotFittedError("ClassLabels has no labels: pass them, or call fit(labels) first")


@register("pipelines/inverse")
class Inverse(Module):
    """Inverse of a feature extractor, for targets that were transformed for training.

    Args:
        extractor: Feature extractor or pipeline with an `inverse`, or its name or config.
    """

    def __init__(self, extractor: AnyComponent) -> None:
        self.extractor: Any = build("", extractor)

    @property
    def config(self) -> Any:
        """Config with the fitted extractor."""
        from ember_ml.registry import get

        return get("pipelines/inverse").config(extractor=self.extractor.config or self.extractor)

    @config.setter
    def config(self, config: object) -> None:
        """Ignore the original config, which does not know what was fitted later."""

    @property
    def is_fitted(self) -> bool:
        """Whether the extractor is fitted."""
        return bool(self.extractor.is_fitted)

    def forward(self, x: TensorLike) -> Any:
        """Return the inverse of the extractor.

        Args:
            x: Outputs of a model that was trained on the extractor's features.
        """
        return self.extractor.inverse(x)


def _plain(labels: Any) -> Any:
    """Return labels as nested lists of Python values."""
    if is_framework_array(labels) or hasattr(labels, "tolist"):
        return labels.tolist()
    return list(map(_plain, labels)) if isinstance(labels, (list, tuple)) else labels


def _flat(labels: Any) -> Iterator[Any]:
    if isinstance(labels, Iterable) and not isinstance(labels, str):
        for label in labels:
            yield from _flat(label)
    else:
        yield labels
