"""The base class of pipelines that extract features."""

from __future__ import annotations

from typing import Any, Self

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.configs.fields import ComponentLike
from ember_ml.configs.stages import StagesField
from ember_ml.nn.pipeline._finite import check_finite
from ember_ml.nn.pipeline.base import Pipeline
from ember_ml.registry import register


@register("pipelines/feature")
class FeaturePipeline(Pipeline):
    """Pipeline whose result is a tensor of features, without NaN and infinite values.

    Args:
        name: Name of the pipeline in error messages. Default: none.
        stages: The first stages, as in `Pipeline`.
        finite: Whether NaN and infinite values in the result are errors. Default: True.

    Example:
        >>> from ember_ml.nn import features
        >>> from ember_ml.nn.pipeline import FeaturePipeline
        >>> pipeline = FeaturePipeline("plane", [features.Standardize(), features.PCA(2)])
        >>> pipeline.fit([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [4.0, 1.0, 0.0]]).feature_names
        ('pca0', 'pca1')
        >>> pipeline.extract([[0.0, 1.0, 2.0]]).shape
        (1, 2)
    """

    def __init__(
        self, name: str | None = None, stages: StagesField = (), finite: bool = True
    ) -> None:
        super().__init__(name, stages)
        self.finite = finite

    def _fields(self) -> dict[str, Any]:
        """Return the fields of the config."""
        return {**super()._fields(), "finite": self.finite}

    def forward(self, data: Any) -> Any:
        """Return the features.

        Args:
            data: Input of the first stage, or a tuple (inputs, targets, ...).
        """
        result = super().forward(data)
        features = result[0] if isinstance(data, tuple) else result
        if not isinstance(features, EmberTensor):
            raise ArgumentTypeError(
                f"{self._title()}: the last stage must return a tensor of features, not a "
                f"{type(features).__name__}"
            )
        if self.finite:
            self._check_finite(features)
        return result

    def _check_finite(self, features: Tensor) -> None:
        try:
            names = self.feature_names
        except (ArgumentError, NotImplementedError):  # the last stage does not name them
            names = ()
        named = names if features.ndim and len(names) == features.shape[-1] else None
        hint = "remove them from the data, impute them in a stage, or pass finite=False"
        check_finite(self._title(), features, hint, named)

    def extract(self, data: Any) -> Any:
        """Return the features; the same as `run`.

        Args:
            data: Input of the first stage, or a tuple (inputs, targets, ...).
        """
        return self(data)

    def transform(self, data: Any) -> Any:
        """Return the features; the same as `run`.

        Args:
            data: Input of the first stage, or a tuple (inputs, targets, ...).
        """
        return self(data)


class FixedFeaturePipeline(FeaturePipeline):
    """Feature pipeline whose stages follow from its arguments."""

    _complete = False

    def _fields(self) -> dict[str, Any]:
        """Return the fields of the config."""
        return dict(self._arguments)

    def _set_stages(self, stages: dict[str, ComponentLike], arguments: dict[str, Any]) -> None:
        """Set the stages and the fields of the config; no stage can be added after that.

        Args:
            stages: Stages by name.
            arguments: Fields of the config.
        """
        for name, stage in stages.items():
            self.add_stage(stage, name)
        self._arguments = arguments
        self._complete = True

    def add_stage(self, stage: ComponentLike, name: str | None = None) -> Self:
        """Raise an error: the stages are fixed.

        Args:
            stage: The stage.
            name: Its name.
        """
        if self._complete:
            title = type(self).__name__
            raise ArgumentError(
                f"{title}.add_stage: the stages follow from the arguments; for others use "
                f"Pipeline(stages=[{title}(...), ...])"
            )
        return super().add_stage(stage, name)
