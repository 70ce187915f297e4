"""Gradients on every backend: the tape, and transforms of functions."""

from ember_ml.autodiff.tape import GradientTape as GradientTape
