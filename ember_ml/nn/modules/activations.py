"""The activations, under the path `ember_ml.nn.modules.activations`."""

from ember_ml.nn.activations import *  # noqa: F403
