"""Configs of the metrics."""

from __future__ import annotations

from typing import ClassVar, Literal

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Flag, Real, Size


class AccuracyConfig(Config):
    """The share of right classes."""

    component: ClassVar[str] = "metrics/accuracy"
    average: Literal["micro", "macro"] = "micro"
    num_classes: Size | None = None
    ignore_index: int = -100
    threshold: Real = 0.0


class BinaryAccuracyConfig(Config):
    """The share of scores on the right side of a threshold."""

    component: ClassVar[str] = "metrics/binary_accuracy"
    threshold: Real = 0.0


class TopKAccuracyConfig(Config):
    """The share of targets among the k best classes."""

    component: ClassVar[str] = "metrics/top_k_accuracy"
    k: Size = 5
    ignore_index: int = -100


class _ClassScoreConfig(Config):
    average: Literal["micro", "macro", "weighted", "binary", "none"] = "macro"
    num_classes: Size | None = None
    ignore_index: int = -100
    threshold: Real = 0.0


class PrecisionConfig(_ClassScoreConfig):
    """The share of the predictions of a class that are right."""

    component: ClassVar[str] = "metrics/precision"


class RecallConfig(_ClassScoreConfig):
    """The share of the examples of a class that are found."""

    component: ClassVar[str] = "metrics/recall"


class F1Config(_ClassScoreConfig):
    """The harmonic mean of precision and recall."""

    component: ClassVar[str] = "metrics/f1"


class ConfusionMatrixConfig(Config):
    """How often each class is taken for each."""

    component: ClassVar[str] = "metrics/confusion_matrix"
    num_classes: Size | None = None
    ignore_index: int = -100
    threshold: Real = 0.0
    normalize: Literal["true", "predicted", "all"] | None = None


class AUROCConfig(Config):
    """The area under the receiver operating characteristic."""

    component: ClassVar[str] = "metrics/auroc"
    from_logits: Flag = True
    ignore_index: int = -100


class PerplexityConfig(Config):
    """exp of the mean cross entropy."""

    component: ClassVar[str] = "metrics/perplexity"
    ignore_index: int = -100


class MeanConfig(Config):
    """The weighted mean of values."""

    component: ClassVar[str] = "metrics/mean"


class MSEConfig(Config):
    """The mean squared error."""

    component: ClassVar[str] = "metrics/mse"


class RMSEConfig(Config):
    """The root of the mean squared error."""

    component: ClassVar[str] = "metrics/rmse"


class MAEConfig(Config):
    """The mean absolute error."""

    component: ClassVar[str] = "metrics/mae"


class CosineSimilarityConfig(Config):
    """The mean cosine of the angle."""

    component: ClassVar[str] = "metrics/cosine_similarity"
    axis: int = -1


class R2Config(Config):
    """The share of the variance that is explained."""

    component: ClassVar[str] = "metrics/r2"
    per_output: Flag = False


class PearsonConfig(Config):
    """The correlation."""

    component: ClassVar[str] = "metrics/pearson"
    per_output: Flag = False
