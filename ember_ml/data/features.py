"""Alias of `ember_ml.nn.features`."""

from ember_ml.nn.features import *  # noqa: F403
