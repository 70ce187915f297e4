"""Feature extractors: modules that are fitted to data and transform it."""

from ember_ml.nn.features.base import FeatureExtractor, NotFittedError
from ember_ml.nn.features.decibels import db_to_power, power_to_db
from ember_ml.nn.features.mel import MelSpectrogram
from ember_ml.nn.features.mfcc import MFCC
from ember_ml.nn.features.normalization import Normalize
from ember_ml.nn.features.pca import PCA
from ember_ml.nn.features.scaling import Standardize
from ember_ml.nn.features.spectral import STFT, Spectrogram

__all__ = [
    "MFCC",
    "PCA",
    "STFT",
    "FeatureExtractor",
    "MelSpectrogram",
    "Normalize",
    "NotFittedError",
    "Spectrogram",
    "Standardize",
    "db_to_power",
    "power_to_db",
]
