"""The names that transformers gives to activations."""

from __future__ import annotations

from typing import Any

from ember_ml.nn import activations
from ember_ml.nn.models.convert.settings import Settings

TANH_FORM = {"type": "gelu", "approximate": True}
KNOWN: dict[str, Any] = {
    "gelu": "gelu",
    "gelu_new": TANH_FORM,
    "gelu_pytorch_tanh": TANH_FORM,
    "gelu_fast": TANH_FORM,
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "mish": "mish",
}
"""Their names, and what they mean here."""


def read_activation(settings: Settings, field: str, default: str) -> Any:
    """The activation that a field names."""
    name = settings.get(field, default)
    if name in KNOWN:
        return KNOWN[name]
    settings.problems.append(f"{field}={name!r} is not supported, only {', '.join(KNOWN)}")
    return "identity"


def name_of(activation: Any) -> str | None:
    """Their name of an activation of a layer, if they have it."""
    for name, meant in KNOWN.items():
        made = activations.get(meant)
        own = getattr(made, "config", None)
        if made is activation or (own is not None and own == getattr(activation, "config", None)):
            return name
    return None
