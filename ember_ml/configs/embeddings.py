"""Config classes of spatial embeddings, derived from their signatures."""

from ember_ml.configs.derive import attach

__getattr__, __dir__ = attach(__name__)
