"""Feature extractors: modules that are fitted to data and transform it."""

from ember_ml.nn.features.base import FeatureExtractor, NotFittedError
from ember_ml.nn.features.decibels import db_to_power, power_to_db
from ember_ml.nn.features.encoding import OneHot, UnknownCategoryError
from ember_ml.nn.features.functions import (
    normalize_features,
    one_hot,
    pca,
    scatter,
    standardize_features,
)
from ember_ml.nn.features.mel import MelSpectrogram
from ember_ml.nn.features.mfcc import MFCC
from ember_ml.nn.features.normalization import Normalize
from ember_ml.nn.features.principal_components import PCA
from ember_ml.nn.features.scaling import Standardize
from ember_ml.nn.features.scattering import ScatterFeatures
from ember_ml.nn.features.spectral import STFT, Spectrogram
from ember_ml.nn.features.spikes import DeltaEncoder, LatencyEncoder, RateEncoder
from ember_ml.nn.features.timeseries import TimeSeriesFeatures

__all__ = [
    "MFCC",
    "PCA",
    "STFT",
    "DeltaEncoder",
    "FeatureExtractor",
    "LatencyEncoder",
    "MelSpectrogram",
    "Normalize",
    "NotFittedError",
    "OneHot",
    "RateEncoder",
    "ScatterFeatures",
    "Spectrogram",
    "Standardize",
    "TimeSeriesFeatures",
    "UnknownCategoryError",
    "db_to_power",
    "normalize_features",
    "one_hot",
    "pca",
    "power_to_db",
    "scatter",
    "standardize_features",
]
