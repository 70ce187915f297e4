"""Base class of the selection rules of self-training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.configs.base import Config


class SelectionRule:
    """Function from predicted probabilities to the examples whose predictions are trusted.

    Subclasses implement `select`. A rule that compares several augmented views of an example sets
    `views` and overrides `select_views`.

    Attributes:
        views: Number of augmented views of each example that the rule needs.
    """

    config: Config | None = None
    views: int = 1

    def __call__(self, probabilities: TensorLike) -> Tensor:
        """Return whether each example is selected, as a boolean tensor of shape (examples,).

        Args:
            probabilities: Probabilities of shape (examples, classes) or (views, examples, classes).
        """
        return self.select_views(self._checked(probabilities))

    def select_batch(self, probabilities: TensorLike) -> Tensor:
        """Return whether each example of a training batch is selected.

        Rules with moving averages update them here. Other rules treat a batch like a pool.

        Args:
            probabilities: Probabilities of shape (examples, classes) or (views, examples, classes).
        """
        return self(probabilities)

    def select_views(self, probabilities: Tensor) -> Tensor:
        """Return whether each example is selected. Default: by the mean over the views.

        Args:
            probabilities: Probabilities of shape (views, examples, classes).
        """
        return self.select(ops.mean(probabilities, axis=0))

    def select(self, probabilities: Tensor) -> Tensor:
        """Return whether each example is selected.

        Args:
            probabilities: Probabilities of shape (examples, classes).
        """
        raise NotImplementedError

    def check(self, pool: int, classes: int) -> None:
        """Raise an ArgumentError if the rule does not fit the data.

        Args:
            pool: Number of unlabeled examples.
            classes: Number of classes.
        """

    def state_dict(self) -> dict[str, Any]:
        """Return the state that `select_batch` updates, as plain data."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that `state_dict` returned.

        Args:
            state: The state.
        """

    def _checked(self, probabilities: TensorLike) -> Tensor:
        """Return probabilities of shape (views, examples, classes)."""
        given = isinstance(probabilities, EmberTensor)
        x: Tensor = probabilities if given else convert_to_tensor(probabilities)  # type: ignore[assignment]
        if x.ndim not in (2, 3):
            raise ShapeError(
                f"{type(self).__name__}: probabilities must have the shape (examples, classes) or "
                f"(views, examples, classes), not {x.shape}"
            )
        return ops.expand_dims(x, 0) if x.ndim == 2 else x

    def __repr__(self) -> str:
        names = () if self.config is None else type(self.config).model_fields
        shown = ", ".join(f"{name}={getattr(self.config, name)!r}" for name in names)
        return f"{type(self).__name__}({shown})"
