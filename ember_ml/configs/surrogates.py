"""Config classes of the surrogate gradients, derived from their signatures."""

from ember_ml.configs.derive import attach

__getattr__, __dir__ = attach(__name__)
