"""Features of audio."""

from __future__ import annotations

from typing import Any, Literal

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import ComponentLike, Size
from ember_ml.nn.features import MFCC, FeatureExtractor, MelSpectrogram, Standardize
from ember_ml.nn.pipeline.feature.base import FixedFeaturePipeline
from ember_ml.registry import register


@register("pipelines/frame_statistics")
class FrameStatistics(FeatureExtractor):
    """Mean and standard deviation of each feature over the frames of a signal.

    Args:
        in_features: Number of features of a frame. Default: any number.

    Shape: (..., frames, features) -> (..., 2 * features).
    """

    def __init__(self, in_features: Size | None = None) -> None:
        self.in_features = in_features

    def extract(self, x: TensorLike) -> Tensor:
        """Return the statistics: first the means, then the standard deviations.

        Args:
            x: Features of frames.
        """
        x = self.as_input(x)
        if x.ndim < 2 or not x.shape[-2]:
            raise ShapeError(
                f"FrameStatistics: expected features of shape (..., frames, features) with at "
                f"least one frame, got {x.shape}"
            )
        return ops.concat([ops.mean(x, axis=-2), ops.std(x, axis=-2)], axis=-1)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Statistic and feature of each output."""
        return _statistic_names(super().feature_names)


def _statistic_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return (*(f"mean_{name}" for name in names), *(f"std_{name}" for name in names))


@register("pipelines/audio")
class AudioFeaturePipeline(FixedFeaturePipeline):
    """Features of audio samples: mel spectrogram or MFCC, optionally pooled and standardized.

    Args:
        sample_rate: Number of samples per second.
        kind: "log_mel" (mel spectrogram in decibels) or "mfcc". Default: "log_mel".
        n_features: Number of mel bands or coefficients. Default: 80, and 20 for "mfcc".
        n_fft: Number of samples of a frame. Default: 400.
        hop: Number of samples between two frames. Default: 160.
        convention: "librosa" or "htk", as in `MelSpectrogram`. Default: "librosa".
        pool: "none" for features of each frame, "statistics" for their mean and standard deviation
            over the frames. Default: "none".
        standardize: Whether to scale each feature to mean 0 and variance 1, which needs `fit`.
            Default: True.

    Shape: (batch, samples) -> (batch, frames, n_features), or (batch, 2 * n_features) if pooled.

    Example:
        >>> from ember_ml.nn.pipeline import AudioFeaturePipeline
        >>> pipeline = AudioFeaturePipeline(8000, "mfcc", 13, pool="statistics")
        >>> waves = ops.random.normal((4, 8000), seed=0)
        >>> pipeline.fit(waves).run(waves).shape
        (4, 26)
    """

    def __init__(
        self,
        sample_rate: Size,
        kind: Literal["log_mel", "mfcc"] = "log_mel",
        n_features: Size | None = None,
        n_fft: Size = 400,
        hop: Size = 160,
        convention: Literal["librosa", "htk"] = "librosa",
        pool: Literal["none", "statistics"] = "none",
        standardize: bool = True,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name in _ARGUMENTS}
        super().__init__("audio")
        size = n_features or (20 if kind == "mfcc" else 80)
        stages: dict[str, ComponentLike] = {}
        if kind == "mfcc":
            bands = max(size, 40)
            stages["mfcc"] = MFCC(sample_rate, size, bands, n_fft, hop, convention)
        else:
            stages["log_mel"] = MelSpectrogram(
                sample_rate, size, n_fft, hop, convention, scale="db"
            )
        if pool == "statistics":
            stages["pool"] = FrameStatistics(size)
            size *= 2
        if standardize:
            stages["standardize"] = Standardize(in_features=size)
        self._set_stages(stages, arguments)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of each feature."""
        first: Any = self[0]
        names: tuple[str, ...] = first.feature_names
        return _statistic_names(names) if "pool" in self else names


_ARGUMENTS = (
    *("sample_rate", "kind", "n_features", "n_fft", "hop", "convention", "pool", "standardize"),
)
