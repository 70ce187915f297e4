"""Features of time series."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from ember_ml import ops
from ember_ml._core.dtype import int64
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import NonNegative, Positive, Size
from ember_ml.nn.features import _statistics as statistics
from ember_ml.nn.features._series import Series, columns_of, names_of
from ember_ml.nn.features.base import FeatureExtractor, is_array
from ember_ml.registry import register

Feature = Literal[
    "mean",
    "std",
    "var",
    "min",
    "max",
    "median",
    "sum",
    "energy",
    "rms",
    "skew",
    "kurtosis",
    "mean_abs_change",
    "slope",
    "zero_crossings",
    "acf",
    "spectral",
    "spectral_centroid",
    "spectral_spread",
    "spectral_entropy",
    "spectral_peak",
]


@register("features/time_series")
class TimeSeriesFeatures(FeatureExtractor):
    """Statistics, autocorrelation and spectral features of time series.

    - Statistics: "mean", "std" and "var" (of the population), "min", "max", "median", "sum",
      "energy" (sum of squares), "rms", "skew" and "kurtosis" (unbiased, excess),
      "mean_abs_change", "slope" (of the line of least squares), "zero_crossings".
    - "acf": autocorrelations of lag 1 to `lags`, each divided by its own number of pairs.
    - "spectral": "spectral_centroid", "spectral_spread", "spectral_entropy" and "spectral_peak" of
      the magnitudes of the Fourier transform without the mean.

    With `window`, the features are those of each window. Series of unequal lengths are padded and
    passed with `lengths` or `mask`, or as a list of arrays: padding has no influence. NaN and
    infinite values are an error.

    Args:
        features: Names of the features.
        lengths: Whether the series have unequal lengths: `extract` then requires `lengths`, `mask`
            or a list. Default: they are optional.
        eps: Standard deviation up to which a series counts as constant; its skew, kurtosis,
            autocorrelations and spectral features are 0. Default: 1e-8.
        lags: Number of lags of "acf".
        window: Length of the windows. Default: the whole series.
        hop: Distance between the starts of windows. Default: `window`.
        sample_rate: Number of values per unit of time; the unit of frequencies and slopes.
        in_features: Number of channels. Default: the input has no axis of channels.

    Shape: (batch, time) or (batch, time, in_features) -> (batch, features), or with windows
        (batch, windows, features). Channels come one after the other.

    Example:
        >>> extractor = nn.features.TimeSeriesFeatures(["mean", "max", "acf"], lags=2)
        >>> extractor.names
        ('mean', 'max', 'acf_1', 'acf_2')
        >>> extractor([[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]]).tolist()
        [[0.5, 1.0, -1.0, 1.0]]
        >>> extractor([[1.0, 3.0, 0.0], [4.0, 0.0, 0.0]], lengths=[2, 1])[:, 0].tolist()
        [2.0, 4.0]
    """

    def __init__(
        self,
        features: tuple[Feature, ...] = ("mean", "std", "min", "max", "acf", "spectral"),
        lengths: bool = False,
        eps: NonNegative = 1e-8,
        lags: Size = 4,
        window: Size | None = None,
        hop: Size | None = None,
        sample_rate: Positive = 1.0,
        in_features: Size | None = None,
    ) -> None:
        if not features:
            raise ArgumentError("TimeSeriesFeatures: features must not be empty")
        if hop is not None and window is None:
            raise ArgumentError("TimeSeriesFeatures: hop needs a window")
        self.features = tuple(features)
        self.lengths = lengths
        self.eps = eps
        self.lags = lags
        self.window = window
        self.hop = hop or window
        self.sample_rate = sample_rate
        self.in_features = in_features

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each feature along the last axis of the output."""
        own = [name for feature in self.features for name in names_of(feature, self.lags)]
        if self.in_features is None:
            return tuple(own)
        return tuple(f"x{channel}.{name}" for channel in range(self.in_features) for name in own)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of each feature along the last axis of the output; the same as `names`."""
        return self.names

    def num_windows(self, length: int) -> int:
        """Return the number of windows of a series; 1 without windows.

        Args:
            length: Length of the series.
        """
        if self.window is None or self.hop is None:
            return 1
        return max(0, (length - self.window) // self.hop + 1)

    def extract(
        self, x: Any, lengths: TensorLike | None = None, mask: TensorLike | None = None
    ) -> Tensor:
        """Return the features of each series.

        Args:
            x: Series of shape (batch, time) or (batch, time, in_features), or a list of arrays of
                shape (time,) or (time, in_features).
            lengths: Length of each series, of shape (batch,). The rest is padding.
            mask: Alternatively a mask of shape (batch, time), True at the start of each row and
                False at its padding.

        If the numbers of windows differ, the features of missing windows are 0 (see `num_windows`).
        """
        if isinstance(x, (list, tuple)) and not is_array(x):
            series = [self._series(self.as_input(part)[None]) for part in x]
            return self._by_length(
                [part.shape[-1] for part in series],
                lambda indices, _: ops.concatenate([series[at] for at in indices], axis=0),
            )
        x = self._series(self.as_input(x))
        known = self._lengths(x, lengths, mask)
        if known is None:
            return self._dense(x)
        return self._by_length(
            known, lambda indices, length: ops.take(x, indices, axis=0)[:, :, :length]
        )

    def _series(self, x: Tensor) -> Tensor:
        """Return the input as (batch, channels, time) in floating point."""
        channels = self.in_features
        if x.ndim != (2 if channels is None else 3):
            want = "(batch, time)" if channels is None else f"(batch, time, {channels})"
            hint = "; pass in_features for an axis of channels" if channels is None else ""
            raise ShapeError(f"TimeSeriesFeatures: expected shape {want}, got {x.shape}{hint}")
        x = statistics.as_float(x)
        if channels is None:
            return ops.expand_dims(x, 1)
        self.check_width(x, channels)
        return ops.moveaxis(x, -1, 1)

    def _lengths(
        self, x: Tensor, lengths: TensorLike | None, mask: TensorLike | None
    ) -> list[int] | None:
        """Return the length of each series, or None if no lengths are given."""
        batch, time = x.shape[0], x.shape[-1]
        if mask is not None:
            if lengths is not None:
                raise ArgumentError("TimeSeriesFeatures: pass lengths or mask, not both")
            lengths = _prefix_lengths(self.as_input(mask), (batch, time))
        if lengths is None:
            if self.lengths:
                raise ArgumentError(
                    "TimeSeriesFeatures: lengths=True: pass lengths, mask or a list of arrays"
                )
            return None
        values: list[int] = self.as_input(lengths).tolist()
        if not isinstance(values, list) or len(values) != batch:
            raise ShapeError(f"TimeSeriesFeatures: expected {batch} lengths, got {values!r:.60}")
        for at, value in enumerate(values):
            if value != int(value) or not 1 <= value <= time:
                raise ArgumentError(
                    f"TimeSeriesFeatures: series {at} has length {value}; expected 1 to {time}"
                )
        return [int(value) for value in values]

    def _by_length(self, lengths: list[int], select: Callable[[list[int], int], Tensor]) -> Tensor:
        """Return the features of series of unequal lengths: those of equal length together.

        Args:
            lengths: Length of each series.
            select: Returns the series at some indices, all of the given length.
        """
        if not lengths:
            raise ArgumentError("TimeSeriesFeatures: the input has no series")
        groups: dict[int, list[int]] = {}
        for at, length in enumerate(lengths):
            groups.setdefault(length, []).append(at)
        most = max(self.num_windows(length) for length in groups)
        parts = []
        for length, indices in groups.items():
            part = self._dense(select(indices, length), indices)
            if self.window is not None:
                part = ops.pad(part, [(0, 0), (0, most - part.shape[1]), (0, 0)])
            parts.append(part)
        order = [at for indices in groups.values() for at in indices]
        back = sorted(range(len(order)), key=order.__getitem__)
        return ops.take(ops.concatenate(parts, axis=0), back, axis=0)

    def _dense(self, x: Tensor, indices: list[int] | None = None) -> Tensor:
        """Return the features of series of equal length, of shape (batch, channels, time)."""
        batch, channels, time = x.shape
        self._check_values(x, indices)
        if self.window is not None and self.hop is not None:
            x = ops.frame(x, self.window, self.hop)
        windows = self.num_windows(time)
        flat = Series(ops.reshape(x, (-1, x.shape[-1])), self.eps, self.lags, self.sample_rate)
        columns = [column for name in self.features for column in columns_of(name, flat)]
        table = ops.reshape(ops.stack(columns, axis=-1), (batch, channels, windows, len(columns)))
        table = ops.reshape(ops.transpose(table, (0, 2, 1, 3)), (batch, windows, -1))
        return table if self.window is not None else table[:, 0]

    def _check_values(self, x: Tensor, indices: list[int] | None) -> None:
        """Raise unless the series are long enough and finite."""
        if x.shape[-1] < (self.window or 1):
            at = indices[0] if indices else 0
            raise ArgumentError(
                f"TimeSeriesFeatures: series {at} has {x.shape[-1]} value(s); at least "
                f"{self.window or 1} are needed"
            )
        if not statistics.is_finite(x):
            bad = ops.any(ops.reshape(~ops.isfinite(x), (x.shape[0], -1)), axis=1)
            at = int(ops.argmax(ops.astype(bad, int64)))
            raise ArgumentError(
                f"TimeSeriesFeatures: series {indices[at] if indices else at} has NaN or infinite "
                "values; remove or interpolate them"
            )


def _prefix_lengths(mask: Tensor, shape: tuple[int, int]) -> Tensor:
    """Return the lengths that a mask expresses; refuse holes."""
    if mask.shape != shape:
        raise ShapeError(f"TimeSeriesFeatures: expected a mask of shape {shape}, got {mask.shape}")
    present = ops.astype(mask != 0, int64)
    lengths = ops.sum(present, axis=1)
    positions = ops.cumsum(ops.ones_like(present), axis=1)
    if not bool(ops.all((positions <= lengths[:, None]) == (present > 0))):
        raise ArgumentError("TimeSeriesFeatures: each row of mask must be True first, then False")
    return lengths
