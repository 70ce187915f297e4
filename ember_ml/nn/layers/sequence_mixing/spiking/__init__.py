"""Layers of spiking neurons."""

from ember_ml.nn.layers.sequence_mixing.spiking.base import SpikingLayer, SpikingRun, decay
from ember_ml.nn.layers.sequence_mixing.spiking.decoders import (
    LatencyDecoder,
    MaxDecoder,
    RateDecoder,
)
from ember_ml.nn.layers.sequence_mixing.spiking.integrator import LeakyIntegrator
from ember_ml.nn.layers.sequence_mixing.spiking.mixer import SpikingMixer
from ember_ml.nn.layers.sequence_mixing.spiking.neurons import ALIF, LIF, Synaptic
from ember_ml.nn.layers.sequence_mixing.spiking.recurrent import RecurrentLIF
from ember_ml.nn.layers.sequence_mixing.spiking.spatial import SpatialLIF
from ember_ml.nn.layers.sequence_mixing.spiking.wrapper import Spiking

__all__ = [
    "ALIF",
    "LIF",
    "LatencyDecoder",
    "LeakyIntegrator",
    "MaxDecoder",
    "RateDecoder",
    "RecurrentLIF",
    "SpatialLIF",
    "Spiking",
    "SpikingLayer",
    "SpikingMixer",
    "SpikingRun",
    "Synaptic",
    "decay",
]
