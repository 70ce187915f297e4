"""Scaling of features to zero mean and unit variance."""

from __future__ import annotations

from typing import Literal

from ember_ml import ops
from ember_ml._core.dtype import int64
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import NonNegative, Size
from ember_ml.nn.features import _statistics as statistics
from ember_ml.nn.features._statistics import Moments
from ember_ml.nn.features.fitted import FittedExtractor
from ember_ml.nn.parameter import Buffer
from ember_ml.registry import register


@register("features/standardize")
class Standardize(FittedExtractor):
    r"""Scales each feature to mean 0 and variance 1.

    .. math:: y = (x - \mu) / \sigma

    Mean and variance are merged over batches in constant memory: a streamed fit equals the fit to
    the whole data. The variance is that of the population (divided by the number of rows). A
    constant feature becomes 0.

    Args:
        eps: Standard deviation up to which a feature counts as constant. Default: 1e-8.
        nan: What to do with NaN. "raise": an error in `fit` and `extract`. "ignore": `fit` skips
            them, and they stay NaN. "mean": `fit` skips them, and they become 0, the mean. Infinite
            values are an error in `fit`, and with "raise" also in `extract`.
        in_features: Number of features. Default: that of the first batch.

    Shape: (..., in_features) -> (..., in_features).

    Example:
        >>> x = ops.array([[1.0, 5.0], [3.0, 5.0]])
        >>> scaler = nn.features.Standardize().fit(x)
        >>> scaler(x).tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
        >>> scaler.inverse([[0.0, 0.0]]).tolist()
        [[2.0, 5.0]]
    """

    def __init__(
        self,
        eps: NonNegative = 1e-8,
        nan: Literal["raise", "ignore", "mean"] = "raise",
        in_features: Size | None = None,
    ) -> None:
        super().__init__(in_features)
        self.eps = eps
        self.nan = nan

    def build(self, features: int, like: Tensor) -> None:
        """Create the buffers."""
        zeros = ops.zeros(features, dtype=like.dtype, device=like.device)
        self.count = Buffer(ops.astype(zeros, int64))
        self.mean = Buffer(zeros)
        self.m2 = Buffer(zeros)
        self.scale = Buffer(ops.ones_like(zeros))

    def update(self, batch: Tensor) -> None:
        """Merge the moments of a batch into those of the earlier ones."""
        x = self.prepare(batch)
        if not x.shape[0]:
            return
        moments = statistics.merge(Moments(self.count, self.mean, self.m2), self._moments(x))
        self.count.become(moments.rows)
        self.mean.become(moments.mean)
        self.m2.become(moments.m2)

    def _moments(self, x: Tensor) -> Moments:
        if statistics.is_bounded(x):
            return statistics.column_moments(x)
        statistics.refuse_nonfinite(self, x, nan=self.nan == "raise")
        if not statistics.is_bounded(ops.where(ops.isnan(x), 0.0, x)):
            raise ArgumentError(f"Standardize: the squares of the values overflow {x.dtype}")
        return statistics.present_moments(x)

    def finish(self) -> None:
        """Compute the scale."""
        self.require_rows(int(ops.max(self.count)))
        std = ops.sqrt(self.var)
        rounding = 10 * ops.finfo(std.dtype).eps * ops.abs(self.mean)
        constant = std <= ops.maximum(rounding, self.eps)
        self.scale.become(ops.where(constant, 1.0, std))

    @property
    def var(self) -> Tensor:
        """Variance of each feature."""
        return self.m2 / ops.maximum(self.count, 1)

    def extract(self, x: TensorLike) -> Tensor:
        """Return the scaled features.

        Args:
            x: Input of shape (..., in_features).
        """
        x = self.check_input(x)
        if self.nan == "raise" and not statistics.is_finite(x):
            statistics.refuse_nonfinite(self, x)
        factor = 1.0 / self.scale
        y = ops.multiply_add(x, factor, -self.mean * factor)
        return ops.where(ops.isnan(y), 0.0, y) if self.nan == "mean" else y

    def inverse(self, x: TensorLike) -> Tensor:
        """Return the input that has the given scaled features.

        Args:
            x: Features of shape (..., in_features).
        """
        return self.check_input(x) * self.scale + self.mean
