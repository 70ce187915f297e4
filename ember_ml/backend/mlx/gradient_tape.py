"""Gradient tape for MLX only; no other module of the backend imports it."""

from __future__ import annotations

from ember_ml.autodiff import GradientTape


class MLXGradientTape(GradientTape):
    """`ember_ml.GradientTape` that records tensors of the MLX backend only."""

    only_backend = "mlx"
