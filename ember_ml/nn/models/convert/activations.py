"""Names of activations in transformers."""

from __future__ import annotations

from ember_ml.nn import activations
from ember_ml.nn.models.convert.settings import Settings

TANH_FORM: dict[str, object] = {"type": "gelu", "approximate": True}
KNOWN: dict[str, str | dict[str, object]] = {
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
"""Name in transformers -> activation of Ember ML."""


def read_activation(settings: Settings, field: str, default: str) -> str | dict[str, object]:
    """Return the activation that a field names, and note a problem if it is unknown."""
    name = settings.get(field, default)
    if name in KNOWN:
        return KNOWN[name]
    settings.problems.append(f"{field}={name!r} is not supported, only {', '.join(KNOWN)}")
    return "identity"


def name_of(activation: object) -> str | None:
    """Return the name of an activation in transformers, or None."""
    for name, known in KNOWN.items():
        function = activations.get(known)
        own = getattr(function, "config", None)
        if function is activation or (
            own is not None and own == getattr(activation, "config", None)
        ):
            return name
    return None
