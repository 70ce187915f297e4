"""Samplers: components that propose the hyperparameters of the next trial."""

from ember_ml.training.tuning.samplers.base import Sampler as Sampler
from ember_ml.training.tuning.samplers.base import Search as Search
from ember_ml.training.tuning.samplers.random import RandomSampler as RandomSampler
