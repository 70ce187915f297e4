"""Configs and parameter names of models and blocks that earlier versions wrote still load."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ember_ml import registry
from ember_ml.backend import use_backend
from ember_ml.configs import Config

SAVED = json.loads(Path(__file__).with_name("saved_models.json").read_text())


def test_every_model_and_block_has_a_saved_config() -> None:
    saved = {name.partition("+")[0] for name in SAVED}
    entries = registry.available("models") + registry.available("blocks")
    assert saved >= {entry.name for entry in entries if entry.target.__module__[:9] == "ember_ml."}


@pytest.mark.parametrize("name", SAVED)
def test_saved_configs_create_the_same_parameters(name: str) -> None:
    saved = SAVED[name]
    with use_backend("numpy"):
        model = Config.from_dict(saved["config"]).create()
    shapes = {key: list(value.shape) for key, value in model.state_dict().items()}
    assert shapes == saved["parameters"]
    written = model.config.to_dict()
    assert {key: written[key] for key in saved["config"]} == saved["config"]
