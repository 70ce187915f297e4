"""Feature extractors: modules that are fitted to data and transform it."""

from ember_ml.nn.features.base import FeatureExtractor, NotFittedError

__all__ = [
    "FeatureExtractor",
    "NotFittedError",
]
