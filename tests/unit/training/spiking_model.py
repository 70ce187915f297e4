"""A small model of spiking neurons in space, its input and its targets."""

from __future__ import annotations

import numpy as np

from ember_ml import nn, ops
from ember_ml.nn import layers, tensor


def spiking_model(positions: int = 3) -> nn.Module:
    """Return dense and spiking layers; the first spiking layer has delays and positions.

    Args:
        positions: Number of dimensions; 0 for none.
    """
    ops.random.set_seed(1)
    rng = np.random.default_rng(0)
    model = nn.Sequential(
        layers.Dense(6, 12),
        layers.RecurrentLIF(12, max_delay=3),
        layers.Dense(12, 4),
        layers.LIF(4),
    )
    for layer in (model[0], model[2]):
        values = rng.normal(0.2, 0.4, layer.weight.shape).astype(np.float32)
        layer.weight.assign(tensor.array(values))
    if positions:
        places = rng.random((12, positions)).astype(np.float32)
        model[1].positions = nn.Buffer(tensor.array(places))
    return model


def spike_input(batch: int = 2, steps: int = 25) -> np.ndarray:
    """Return random input spikes, (batch, steps, 6)."""
    return (np.random.default_rng(2).random((batch, steps, 6)) < 0.25).astype(np.float32)


def targets(batch: int = 2, steps: int = 25) -> np.ndarray:
    """Return a class for each step, (batch, steps)."""
    return np.random.default_rng(3).integers(0, 4, (batch, steps))
