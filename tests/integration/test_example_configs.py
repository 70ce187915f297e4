"""The configs in examples/configs: each builds a module that runs, and no component lacks one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import configs, nn, ops, registry
from ember_ml.configs import Config
from ember_ml.nn.tensor import array

FOLDER = Path(__file__).parents[2] / "examples" / "configs"
FILES = sorted(FOLDER.rglob("*.yaml"))
NAMES = {
    entry.name
    for kind in ("blocks", "models", "wirings")
    for entry in registry.available(kind)
    if issubclass(entry.target, nn.Module) and not hasattr(entry.target, "role")
}
"""A block with a role is a part of a wiring's example."""


def features_of(config: Any) -> int | None:
    """Return the number of input features; None for tokens."""
    if getattr(config, "vocab_size", None) is not None:
        return None
    for name in ("in_features", "features", "num_inputs", "hidden_size"):
        if getattr(config, name, None) is not None:
            return int(getattr(config, name))
    return features_of(next(iter(config.blocks.values())))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_it_builds_and_runs(path: Path, backend: str) -> None:
    assert path.read_text(encoding="utf-8").startswith("# ")
    config = configs.load(path)
    assert type(config).component == f"{path.parent.name}/{path.stem}"
    model = config.create().eval()
    width = features_of(config)
    tokens = array(np.arange(10).reshape(2, 5))
    out = model(tokens if width is None else ops.ones((2, 5, width)))
    assert out.shape[0] == 2
    assert np.isfinite(out.numpy()).all()
    assert repr(Config.from_yaml(model.config.to_yaml()).create()) == repr(model)


def test_each_component_has_an_example() -> None:
    assert {f"{path.parent.name}/{path.stem}" for path in FILES} == NAMES
