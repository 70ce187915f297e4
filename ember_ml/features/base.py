"""Alias of `ember_ml.nn.features.base`."""

from ember_ml.nn.features.base import FeatureExtractor as FeatureExtractor
from ember_ml.nn.features.base import NotFittedError as NotFittedError
