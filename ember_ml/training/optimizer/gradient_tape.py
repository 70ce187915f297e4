"""The gradient tape, importable next to the optimizers that use it."""

from ember_ml.autodiff import GradientTape as GradientTape
