"""Scalings of rotary frequencies against those of transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ember_ml import registry
from ember_ml.nn import rope_scalings

CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "linear", "factor": 3.0}, {"rope_type": "linear", "factor": 3.0}),
    (
        {"type": "dynamic", "factor": 4.0, "original_length": 32},
        {"rope_type": "dynamic", "factor": 4.0},
    ),
    (
        {"type": "llama3", "factor": 8.0, "original_length": 512},
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 512,
        },
    ),
    (
        {"type": "yarn", "factor": 4.0, "original_length": 512},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512},
    ),
    (
        {
            "type": "yarn",
            "factor": 2.0,
            "original_length": 4096,
            "beta_fast": 16.0,
            "beta_slow": 2.0,
            "attention_factor": 1.5,
            "truncate": False,
        },
        {
            "rope_type": "yarn",
            "factor": 2.0,
            "original_max_position_embeddings": 4096,
            "beta_fast": 16.0,
            "beta_slow": 2.0,
            "attention_factor": 1.5,
            "truncate": False,
        },
    ),
    (
        {
            "type": "longrope",
            "short_factors": [1.0 + at / 8 for at in range(8)],
            "long_factors": [2.0 + at for at in range(8)],
            "original_length": 32,
            "factor": 4.0,
        },
        {
            "rope_type": "longrope",
            "short_factor": [1.0 + at / 8 for at in range(8)],
            "long_factor": [2.0 + at for at in range(8)],
            "original_max_position_embeddings": 32,
            "factor": 4.0,
        },
    ),
]


@pytest.mark.parametrize("length", [8, 32, 100])
@pytest.mark.parametrize(("ours", "theirs"), CASES)
def test_frequencies_and_factor_are_those_of_transformers(
    ours: dict[str, Any], theirs: dict[str, Any], length: int
) -> None:
    config = transformers.LlamaConfig(
        hidden_size=32,
        num_attention_heads=2,
        max_position_embeddings=32,
        rope_parameters={**theirs, "rope_theta": 5000.0},
    )
    expected, factor = ROPE_INIT_FUNCTIONS[theirs["rope_type"]](config, None, seq_len=length)
    scaling = rope_scalings.get(ours)
    assert scaling is not None
    np.testing.assert_allclose(scaling.scale(5000.0, 16, length), expected.numpy(), rtol=1e-5)
    assert scaling.attention_factor == pytest.approx(factor)
    plain = rope_scalings.frequencies(5000.0, 16)
    is_changed = not np.allclose(scaling.scale(5000.0, 16, 100), plain, rtol=1e-3)
    assert is_changed


def test_every_scaling_has_a_case() -> None:
    names = {entry.bare for entry in registry.available("rope_scalings")}
    assert names == {ours["type"] for ours, _ in CASES}


def test_wrong_factors_are_refused() -> None:
    scaling = rope_scalings.LongRoPE((1.0,), (1.0, 2.0), original_length=8)
    with pytest.raises(ValueError, match="short_factors has 1 factors; 4 rotated features need 2"):
        scaling.scale(100.0, 4, 3)
    with pytest.raises(ValueError, match=r"low_factor \(4.0\) must be less than high_factor"):
        rope_scalings.Llama3Scaling(2.0, 8, low_factor=4.0)
