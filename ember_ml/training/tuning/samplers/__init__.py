"""Samplers: components that propose the hyperparameters of the next trial."""

from ember_ml.training.tuning.samplers.auto import AutoSampler as AutoSampler
from ember_ml.training.tuning.samplers.base import Sampler as Sampler
from ember_ml.training.tuning.samplers.base import Search as Search
from ember_ml.training.tuning.samplers.random import RandomSampler as RandomSampler
from ember_ml.training.tuning.samplers.tpe import TPESampler as TPESampler
from ember_ml.training.tuning.samplers.warm import MeanScoreSampler as MeanScoreSampler
from ember_ml.training.tuning.samplers.warm import MetaModelSampler as MetaModelSampler
