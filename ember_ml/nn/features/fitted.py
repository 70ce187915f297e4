"""The base class of extractors whose buffers have the size of the input."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.backend import use_backend
from ember_ml.nn.features import _statistics as statistics
from ember_ml.nn.features.base import FeatureExtractor
from ember_ml.nn.parameter import Buffer


class FittedExtractor(FeatureExtractor):
    """Feature extractor with statistics for each feature.

    A subclass creates its buffers in `build`, among them `count`, the number of rows.

    Args:
        in_features: Number of features. Default: that of the first batch.
    """

    count: Buffer

    def __init__(self, in_features: int | None = None) -> None:
        self.in_features = in_features
        self._seen = False
        if in_features is not None:
            self.build(in_features, ops.zeros(()))

    def build(self, features: int, like: Tensor) -> None:
        """Create the buffers.

        Args:
            features: Number of features.
            like: Tensor with the dtype of the buffers.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define build()")

    @property
    def needs_fit(self) -> bool:
        """Whether the extractor learns from data."""
        return True

    @property
    def has_rows(self) -> bool:
        """Whether the extractor has seen data; read from the device until it is True."""
        if not self._seen and self.in_features is not None:
            self._seen = bool(ops.any(self.count > 0))
        return self._seen

    @property
    def is_fitted(self) -> bool:
        """Whether the extractor can be used."""
        return self.has_rows

    def reset(self) -> None:
        """Forget what was fitted."""
        if self.has_rows:
            self.in_features = None
        self._seen = False

    def prepare(self, batch: Tensor) -> Tensor:
        """Return a batch as a matrix of rows; the first batch creates the buffers.

        Args:
            batch: Batch of shape (..., rows, features).
        """
        x = statistics.as_rows(self, batch)
        features = x.shape[1]
        if self.in_features is not None and features != self.in_features:
            raise ShapeError(
                f"{type(self).__name__}: expected batches with {self.in_features} features, got "
                f"shape {batch.shape}"
            )
        if not self.has_rows:
            with use_backend(x.backend):
                self.build(features, x)
            self.set_in_features(features)
        return x

    def require_rows(self, rows: int, least: int = 1) -> None:
        """Raise an ArgumentError unless enough rows were seen.

        Args:
            rows: Number of rows seen.
            least: Number of rows needed.
        """
        if rows < least:
            raise ArgumentError(
                f"{type(self).__name__}: the fit needs at least {least} row(s), got {rows}"
            )

    def check_input(self, x: TensorLike) -> Tensor:
        """Return an argument of `extract` as a floating-point tensor of the right width.

        Args:
            x: Input of shape (..., in_features).
        """
        self.check_fitted()
        x = ops.dtypes.floating(self.as_input(x))
        assert self.in_features is not None
        self.check_width(x, self.in_features)
        return x
