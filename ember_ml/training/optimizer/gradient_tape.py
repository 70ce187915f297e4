"""The gradient tape, beside the optimizers that use it."""

from ember_ml.autodiff import GradientTape as GradientTape
