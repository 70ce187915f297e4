"""Signals and transforms that worker processes import by name."""

from __future__ import annotations

import numpy as np
import pytest

WITH_LIBROSA = pytest.mark.filterwarnings("ignore:'(aifc|audioop|sunau)' is deprecated")
"""Mark of tests that make librosa import modules that are deprecated."""


def tone(frequency=440.0, samples=8000, rate=16000, amplitude=0.5):
    return (amplitude * np.sin(2 * np.pi * frequency * np.arange(samples) / rate)).astype("f4")


def noise(samples=8000, seed=0, channels=None):
    shape = samples if channels is None else (channels, samples)
    return (0.1 * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def chirp(samples=16000, rate=16000, low=50.0, high=7000.0, floor=1e-3):
    """A sweep over a floor of noise."""
    time = np.arange(samples) / rate
    duration = samples / rate
    phase = 2 * np.pi * (low * time + (high - low) * time**2 / (2 * duration))
    rng = np.random.default_rng(1)
    return (0.5 * np.sin(phase) + floor * rng.standard_normal(samples)).astype(np.float32)
