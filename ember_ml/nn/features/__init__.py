"""Feature extractors: modules that are fitted to data and transform it."""

from ember_ml.nn.features.base import FeatureExtractor, NotFittedError
from ember_ml.nn.features.normalization import Normalize
from ember_ml.nn.features.pca import PCA
from ember_ml.nn.features.scaling import Standardize

__all__ = [
    "PCA",
    "FeatureExtractor",
    "Normalize",
    "NotFittedError",
    "Standardize",
]
