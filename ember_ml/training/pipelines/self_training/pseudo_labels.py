"""Pseudo-labels: selected examples with their targets and weights."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from ember_ml import ops
from ember_ml._core import array_files
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.files import write_atomically
from ember_ml._core.tensor import Tensor
from ember_ml.data.conversion import to_host
from ember_ml.training.selection import SelectionRule


class PseudoLabels(NamedTuple):
    """Pseudo-labels of some unlabeled examples, on the host."""

    indices: Tensor
    """Indices of the examples in the unlabeled data, sorted."""
    targets: Tensor
    """Probabilities, or one-hot vectors, of shape (examples, classes)."""
    weights: Tensor
    """Weights in the loss."""

    def __len__(self) -> int:
        return int(self.indices.shape[0])

    def labels(self) -> list[int]:
        """Return the class index of each example."""
        labels: list[int] = ops.argmax(self.targets, axis=-1).tolist()
        return labels

    def joined(self, other: PseudoLabels) -> PseudoLabels:
        """Return these pseudo-labels and those of other examples, sorted by index.

        Args:
            other: Pseudo-labels of other examples.
        """
        parts = [ops.concat(list(pair), axis=0) for pair in zip(self, other, strict=True)]
        order = ops.argsort(parts[0])
        return PseudoLabels(*[ops.take(part, order, axis=0) for part in parts])

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file atomically.

        Args:
            path: The file.
        """
        dtypes = ("int64", "float64", "float64")
        arrays = zip(self._fields, self, dtypes, strict=True)
        content = {name: (to_host(x), dtype) for name, x, dtype in arrays}
        write_atomically(path, array_files.serialize(content, {"kind": "pseudo-labels"}))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the pseudo-labels in a file.

        Args:
            path: The file.
        """
        arrays = array_files.deserialize(path)
        return cls(
            *[
                convert_to_tensor(arrays[name][0], arrays[name][1], backend="numpy")
                for name in cls._fields
            ]
        )


@dataclass(frozen=True)
class Labeling:
    """How predictions become pseudo-labels.

    Args:
        select: Selection rule.
        soft: Whether targets are probabilities; otherwise one-hot vectors of the best class.
        weight: Weight of a pseudo-label; that of a label is 1.
        by_confidence: Whether weights are multiplied by the largest probability.
    """

    select: SelectionRule
    soft: bool
    weight: float
    by_confidence: bool

    def targets(self, probabilities: Tensor) -> tuple[Tensor, Tensor]:
        """Return targets and weights of predictions.

        Args:
            probabilities: Probabilities of shape (examples, classes).
        """
        best = ops.argmax(probabilities, axis=-1)
        hard = ops.one_hot(best, probabilities.shape[-1], dtype=probabilities.dtype)
        confidence = ops.max(probabilities, axis=-1)
        factor = confidence if self.by_confidence else ops.ones_like(confidence)
        return (probabilities if self.soft else hard), self.weight * factor

    def __call__(self, probabilities: Tensor, remaining: Tensor) -> PseudoLabels:
        """Return the pseudo-labels of the selected examples of a pool.

        Args:
            probabilities: Probabilities of shape (views, examples, classes).
            remaining: Indices of the examples that may be selected.
        """
        open_views = ops.take(probabilities, remaining, axis=1)
        chosen = ops.flatnonzero(self.select(open_views))
        targets, weights = self.targets(ops.mean(open_views, axis=0))
        parts = (remaining, targets, weights)
        return PseudoLabels(*[ops.take(part, chosen, axis=0) for part in parts])
