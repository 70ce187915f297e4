"""Configs of the recurrent layers."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import PlainValidator, WithJsonSchema

from ember_ml.configs.base import Config
from ember_ml.configs.fields import ActivationField, Below1, Count, Flag, Positive, Size

Mapping = Literal["affine", "linear", "none"]
Mode = Literal["default", "no_gate", "pure"]


def _wiring(value: Any) -> Any:
    """A wiring, its config, or what a config is read from."""
    if isinstance(value, dict):
        return Config.from_dict(value, kind="wirings")
    described = value if isinstance(value, Config) else getattr(value, "config", None)
    if isinstance(described, Config) and described.component.startswith("wirings/"):
        return value
    if hasattr(value, "adjacency"):
        return value
    raise ValueError(f"must be a wiring or its config, not {value!r:.60}")


def _units(value: Any) -> Any:
    """A number of neurons, or a wiring."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None if value is None else _wiring(value)
    if value < 1:
        raise ValueError(f"must be at least 1, not {value}")
    return value


WiringField = Annotated[
    Any, PlainValidator(_wiring), WithJsonSchema({"type": "object", "description": "a wiring"})
]
UnitsField = Annotated[
    Any,
    PlainValidator(_units),
    WithJsonSchema({"type": ["integer", "object", "null"], "description": "neurons or a wiring"}),
]


class _RecurrentConfig(Config):
    features: Size
    hidden_size: Size | None = None
    num_layers: Size = 1
    bidirectional: Flag = False
    bias: Flag = True
    dropout: Below1 = 0.0
    return_sequences: Flag = True


class RNNConfig(_RecurrentConfig):
    """The plain recurrent layer."""

    component: ClassVar[str] = "layers/rnn"
    activation: ActivationField = "tanh"


class LSTMConfig(_RecurrentConfig):
    """Long short-term memory."""

    component: ClassVar[str] = "layers/lstm"


class GRUConfig(_RecurrentConfig):
    """Gated recurrent units."""

    component: ClassVar[str] = "layers/gru"


class MinGRUConfig(_RecurrentConfig):
    """Minimal gated units."""

    component: ClassVar[str] = "layers/min_gru"


class _LiquidConfig(Config):
    num_layers: Size = 1
    bidirectional: Flag = False
    mixed_memory: Flag = False
    proj_size: Size | None = None
    return_sequences: Flag = True


class CfCConfig(_LiquidConfig):
    """Closed-form continuous-time units."""

    component: ClassVar[str] = "layers/cfc"
    features: Size
    units: Size | None = None
    mode: Mode = "default"
    activation: ActivationField = "lecun_tanh"
    backbone_units: Size = 128
    backbone_layers: Count = 1
    backbone_dropout: Below1 = 0.0


class WiredCfCConfig(_LiquidConfig):
    """Closed-form units, wired."""

    component: ClassVar[str] = "layers/wired_cfc"
    features: Size
    wiring: WiringField | None = None
    mode: Mode = "default"


class LTCConfig(_LiquidConfig):
    """Liquid time-constant neurons."""

    component: ClassVar[str] = "layers/ltc"
    features: Size
    units: UnitsField = None
    input_mapping: Mapping = "affine"
    output_mapping: Mapping = "affine"
    ode_unfolds: Size = 6
    epsilon: Positive = 1e-8
    implicit_param_constraints: Flag = True
