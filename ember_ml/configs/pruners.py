"""Config classes of the pruners, derived from their signatures."""

from ember_ml.configs.derive import attach

__getattr__, __dir__ = attach(__name__)
