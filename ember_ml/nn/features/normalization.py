"""Normalization of features to a range, to unit length, or by median and quartiles."""

from __future__ import annotations

from typing import Literal

from ember_ml import ops
from ember_ml._core.dtype import int64
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import NonNegative, Real, Size
from ember_ml.nn.features import _statistics as statistics
from ember_ml.nn.features._sampling import RowSample
from ember_ml.nn.features.fitted import FittedExtractor
from ember_ml.nn.parameter import Buffer
from ember_ml.registry import register

Mode = Literal["minmax", "l2", "robust"]
QUARTILES = (0.25, 0.5, 0.75)


@register("features/normalize")
class Normalize(FittedExtractor):
    r"""Normalizes features to a range, to unit length, or by median and quartiles.

    - "minmax" maps the least and the greatest value of each feature to the ends of `range`. Batches
      are merged exactly.
    - "l2" divides each row by its Euclidean norm. It needs no fit.
    - "robust" subtracts the median of each feature and divides by its interquartile range, so that
      outliers have little influence. Exact quantiles cannot be merged in constant memory: `fit`
      keeps up to `sample_size` rows. For more rows, the quantiles are those of `sample_size` rows
      that are spread over the data. The choice depends on the position of a row only, so that a
      streamed fit equals the fit to the whole data. The rows are not saved: after loading,
      `partial_fit` is an error.

    A constant feature is mapped to the lower end of `range`, or to 0 by "robust".

    Args:
        mode: "minmax", "l2" or "robust".
        range: Lower and upper end of the output of "minmax". Default: (0, 1).
        eps: Range up to which a feature counts as constant, and norm up to which a row is not
            divided. Default: 1e-8.
        nan: What to do with NaN. "raise": an error in `fit` and `extract`. "ignore": `fit` skips
            them, and they stay NaN. Infinite values are an error in `fit`, and with "raise" also in
            `extract`.
        sample_size: Number of rows that "robust" keeps.
        in_features: Number of features. Default: that of the first batch.

    Shape: (..., in_features) -> (..., in_features).

    Example:
        >>> x = ops.array([[0.0, 1.0], [4.0, 2.0], [8.0, 3.0]])
        >>> nn.features.Normalize("minmax").fit(x)(x).tolist()
        [[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]
        >>> nn.features.Normalize("l2")([[0.0, 2.0]]).tolist()
        [[0.0, 1.0]]
        >>> nn.features.Normalize("robust").fit(x)(x).tolist()
        [[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]]
    """

    def __init__(
        self,
        mode: Mode = "minmax",
        range: tuple[Real, Real] = (0.0, 1.0),  # noqa: A002
        eps: NonNegative = 1e-8,
        nan: Literal["raise", "ignore"] = "raise",
        sample_size: Size = 100_000,
        in_features: Size | None = None,
    ) -> None:
        if not range[0] < range[1]:
            raise ArgumentError(f"Normalize: range must be (lower, upper), got {range}")
        self.mode = mode
        self.range = range
        self.eps = eps
        self.nan = nan
        self.sample_size = sample_size
        self._sample: RowSample | None = None
        super().__init__(in_features)

    def build(self, features: int, like: Tensor) -> None:
        """Create the buffers."""
        zeros = ops.zeros(features, dtype=like.dtype, device=like.device)
        self.count = Buffer(ops.astype(zeros, int64))
        if self.mode == "l2":
            return
        self.low = Buffer(zeros + float("inf"))
        self.high = Buffer(zeros - float("inf"))
        self.center = Buffer(zeros)
        self.scale = Buffer(ops.ones_like(zeros))

    @property
    def needs_fit(self) -> bool:
        """Whether the extractor learns from data: not if the mode is "l2"."""
        return self.mode != "l2"

    @property
    def is_fitted(self) -> bool:
        """Whether the extractor has seen data, or needs none."""
        return not self.needs_fit or super().is_fitted

    def reset(self) -> None:
        """Forget what was fitted."""
        super().reset()
        self._sample = None

    def update(self, batch: Tensor) -> None:
        """Merge the extremes of a batch, or add its rows to the sample."""
        if self.mode == "robust" and self._sample is None and self.has_rows:
            raise ArgumentError(
                "Normalize: the rows from which 'robust' computes quantiles are not saved, so a "
                "loaded module cannot continue with partial_fit; call fit with all data"
            )
        x = self.prepare(batch)
        if not x.shape[0]:
            return
        low, high, count = self._extremes(x)
        if self.mode == "robust":
            self._sample = self._sample or RowSample(self.sample_size)
            self._sample.add(x)
        self.count.become(self.count + count)
        self.low.become(ops.minimum(self.low, low))
        self.high.become(ops.maximum(self.high, high))

    def _extremes(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the minimum and maximum of each column, and the number of its values."""
        low, high = ops.min(x, axis=0), ops.max(x, axis=0)
        if statistics.is_finite(low) and statistics.is_finite(high):
            return low, high, ops.full_like(low, x.shape[0], dtype=int64)
        statistics.refuse_nonfinite(self, x, nan=self.nan == "raise")
        missing = ops.isnan(x)
        low = ops.min(ops.where(missing, float("inf"), x), axis=0)
        high = ops.max(ops.where(missing, float("-inf"), x), axis=0)
        return low, high, ops.sum(ops.astype(~missing, int64), axis=0)

    def finish(self) -> None:
        """Compute center and scale."""
        self.require_rows(int(ops.max(self.count)))
        seen = self.count > 0
        if self._sample is None:
            center, width = self.low.value(), self.high - self.low
            unit = self.range[1] - self.range[0]
        else:
            low, center, high = self._sample.quantiles(QUARTILES)
            width, unit = high - low, 1.0
        width = ops.where(seen, width, 0.0)
        rounding = 10 * ops.finfo(width.dtype).eps * ops.abs(center)
        constant = ~(width > ops.maximum(rounding, self.eps))
        self.scale.become(ops.where(constant, 1.0, width) / unit)
        self.center.become(ops.where(seen, center, 0.0))

    def extract(self, x: TensorLike) -> Tensor:
        """Return the normalized features.

        Args:
            x: Input of shape (..., in_features).
        """
        x = self._rows(x) if self.mode == "l2" else self.check_input(x)
        if self.nan == "raise" and not statistics.is_finite(x):
            statistics.refuse_nonfinite(self, x)
        if self.mode == "l2":
            norm = ops.linearalg.vector_norm(x, axis=-1, keepdims=True)
            return x / ops.where(norm > self.eps, norm, 1.0)
        factor = 1.0 / self.scale
        return ops.multiply_add(x, factor, self._lower() - self.center * factor)

    def _lower(self) -> float:
        """Return the output for an input that equals the center."""
        return self.range[0] if self.mode == "minmax" else 0.0

    def _rows(self, x: TensorLike) -> Tensor:
        """Return the input of "l2", which may have any number of features."""
        x = ops.dtypes.floating(self.as_input(x))
        self.check_width(x, self.in_features or (x.shape[-1] if x.ndim else 1))
        return x

    def inverse(self, x: TensorLike) -> Tensor:
        """Return the input that has the given normalized features; "l2" has no inverse.

        Args:
            x: Features of shape (..., in_features).
        """
        if self.mode == "l2":
            raise NotImplementedError("Normalize: mode 'l2' has no inverse: it drops the norms")
        return (self.check_input(x) - self._lower()) * self.scale + self.center
