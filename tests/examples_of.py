"""Example of each registered component: the required fields of its config."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml import nn
from ember_ml.configs import Config
from ember_ml.nn.layers import Embedding, GroupNorm, ImageLayer
from ember_ml.registry import Entry

NEEDED: dict[str, Any] = {
    "command_neurons": 4,
    "extractor": "features/extractor",
    "factor": 2.0,
    "features": 32,
    "hidden_size": 32,
    "in_features": 4,
    "inter_fanout": 2,
    "inter_neurons": 6,
    "k": 3,
    "kernel_size": 3,
    "layer": {"type": "layers/swiglu", "features": 32},
    "layers": "attention swiglu",
    "mesh": {"tp": 1},
    "long_factors": [2.0, 3.0],
    "model": {"type": "layers/dense", "in_features": 4, "out_features": 2},
    "motor_fanin": 2,
    "motor_neurons": 3,
    "num_classes": 3,
    "num_embeddings": 8,
    "num_groups": 2,
    "num_hidden": 8,
    "num_inputs": 4,
    "num_outputs": 2,
    "original_length": 16,
    "out_features": 2,
    "output_size": 3,
    "parts": [["constant", 2], ["constant", 3]],
    "preprocess": "features/extractor",
    "recurrent_command_synapses": 3,
    "sample_rate": 16000,
    "sensory_fanout": 2,
    "short_factors": [1.0, 2.0],
    "stage": {"type": "layers/dense", "in_features": 4, "out_features": 2},
    "steps": 4,
    "threshold": 0.5,
    "total_steps": 10,
    "units": 12,
    "value": 0.0,
    "vocab_size": 11,
    "warmup_steps": 2,
}
ALSO: dict[str, dict[str, Any]] = {
    "blocks/block": {"hidden_size": 32, "layers": "attention swiglu"},
    "blocks/parallel_residual": {"hidden_size": 32, "layers": "attention swiglu"},
    "layers/alif": {"learn_decays": True, "learn_thresholds": True},
    "layers/leaky_integrator": {"learn_beta": True},
    "layers/lif": {"learn_beta": True, "learn_threshold": True, "refractory": 2},
    "layers/recurrent_lif": {"learn_beta": True},
    "layers/synaptic": {"learn_alpha": True, "reset": "hard"},
    "models/forecaster": {"features": 2},
    "models/sequence_classifier": {"vocab_size": 11},
    "models/sequence_regressor": {"in_features": 4},
    "schedules/step": {"step_size": 3},
}
"""Of components that need one of several fields, or whose defaults are too little to test."""


def config_of(entry: Entry) -> Config:
    """Return a config with only the required fields of the component."""
    required = [name for name, field in entry.config.model_fields.items() if field.is_required()]
    needed = {name: NEEDED[name] for name in required}
    return entry.config(**needed, **ALSO.get(entry.name, {}))


def inputs_of(layer: nn.Module) -> np.ndarray:
    """Return a valid input of the layer."""
    rng = np.random.default_rng(0)
    if isinstance(layer, Embedding):
        return rng.integers(0, NEEDED["num_embeddings"], (2, 5))
    if isinstance(layer, GroupNorm):
        return rng.standard_normal((2, NEEDED["features"], 5)).astype(np.float32)
    if isinstance(layer, ImageLayer):
        return rng.standard_normal((2, 7, 6, NEEDED["in_features"])).astype(np.float32)
    features = getattr(layer, "features", NEEDED["in_features"])
    return rng.standard_normal((2, 5, features)).astype(np.float32)
