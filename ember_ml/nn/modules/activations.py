"""Alias of `ember_ml.nn.activations`."""

from ember_ml.nn.activations import *  # noqa: F403
