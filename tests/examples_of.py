"""An example of each registered component: what its config needs at the least."""

from __future__ import annotations

from typing import Any

from ember_ml.configs import Config
from ember_ml.registry import Entry

NEEDED: dict[str, Any] = {
    "features": 4,
    "in_features": 4,
    "num_embeddings": 8,
    "num_groups": 2,
    "out_features": 2,
    "parts": [["constant", 2], ["constant", 3]],
    "threshold": 0.5,
    "total_steps": 10,
    "value": 0.0,
    "warmup_steps": 2,
}
ALSO: dict[str, dict[str, Any]] = {"schedules/step": {"step_size": 3}}
"""Of components that need one of several fields."""


def config_of(entry: Entry) -> Config:
    """The smallest config that the component takes."""
    required = [name for name, field in entry.config.model_fields.items() if field.is_required()]
    needed = {name: NEEDED[name] for name in required}
    return entry.config(**needed, **ALSO.get(entry.name, {}))
