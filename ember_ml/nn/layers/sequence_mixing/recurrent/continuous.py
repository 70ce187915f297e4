"""The recurrent layers in continuous time."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema

from ember_ml.configs.base import Config
from ember_ml.configs.fields import (
    ActivationField,
    Below1,
    Count,
    Positive,
    Size,
    WiringField,
    check_wiring,
)
from ember_ml.nn.layers.sequence_mixing.recurrent.base import Recurrent, stack
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import HoistedCell
from ember_ml.nn.layers.sequence_mixing.recurrent.closed_form import CfCCell
from ember_ml.nn.layers.sequence_mixing.recurrent.liquid import LTCCell
from ember_ml.nn.layers.sequence_mixing.recurrent.memory import MixedMemoryCell
from ember_ml.nn.layers.sequence_mixing.recurrent.wired import WiredCfCCell
from ember_ml.nn.wirings import AutoNCP, FullyConnected
from ember_ml.registry import register

Mode = Literal["default", "no_gate", "pure"]
Mapping = Literal["affine", "linear", "none"]


def _check_units(value: object) -> object:
    """Return a number of neurons, a wiring, or None."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None if value is None else check_wiring(value)
    if value < 1:
        raise ValueError(f"must be at least 1, not {value}")
    return value


UnitsField = Annotated[
    object,
    PlainValidator(_check_units),
    WithJsonSchema({"type": ["integer", "object", "null"], "description": "neurons or a wiring"}),
]


@register("layers/cfc")
class CfC(Recurrent):
    r"""Closed-form continuous-time units.

    With z the backbone's output for :math:`[x_t, h_{t-1}]`, and s the time since the position
    before:

    .. math::
        g = \sigma(s \, W_a z + W_b z), \quad
        h_t = \tanh(W_1 z) \odot (1 - g) + g \odot \tanh(W_2 z)

    The mode "no_gate" leaves out the factor (1 - g); "pure" is

    .. math:: h_t = A - A \odot \exp(-s (|w_\tau| + |W_1 z|)) \odot W_1 z

    Args:
        features: the features of x.
        units: the features of h; as x if not given.
        mode: "default", "no_gate" or "pure".
        activation: of the backbone.
        backbone_units: the features of the backbone's layers.
        backbone_layers: how many layers the backbone has; it may have none.
        backbone_dropout: the share that training drops after each layer of the backbone but the
            first.
        num_layers: how many layers stand on top of each other.
        bidirectional: whether others read the sequence from its end; the outputs stand side by
            side.
        mixed_memory: whether the state passes through a long short-term memory before each step.
        proj_size: the features of a linear map of the outputs; none if not given.
        return_sequences: whether all outputs come back, or only the last.

    Shape: (batch, time, features) -> (batch, time, units or proj_size). The state is (batch,
    units), with mixed memory a pair of it.

    Reference: Hasani et al., "Closed-form continuous-time neural networks", 2022.

    Example:
        >>> layer = nn.layers.CfC(3, 4)
        >>> layer(ops.ones((2, 5, 3)), timespans=[0.1, 0.2, 0.1, 0.4, 0.3]).shape
        (2, 5, 4)
    """

    def __init__(
        self,
        features: Size,
        units: Size | None = None,
        mode: Mode = "default",
        activation: ActivationField = "lecun_tanh",
        backbone_units: Size = 128,
        backbone_layers: Count = 1,
        backbone_dropout: Below1 = 0.0,
        num_layers: Size = 1,
        bidirectional: bool = False,
        mixed_memory: bool = False,
        proj_size: Size | None = None,
        return_sequences: bool = True,
    ) -> None:
        backbone = activation, backbone_units, backbone_layers, backbone_dropout

        def make(width: int) -> HoistedCell:
            return _mixed(CfCCell(width, units or features, mode, *backbone), mixed_memory)

        cells = stack(make, features, num_layers, bidirectional)
        super().__init__(*cells, return_sequences=return_sequences, proj_size=proj_size)


@register("layers/wired_cfc", aliases=["wiredcfc", "wired-cfc"])
class WiredCfC(Recurrent):
    """Closed-form continuous-time units without backbones, one group for each layer of a wiring.

    Each group reads the layer before it, through the synapses of the wiring, and its own state.

    Args:
        features: the features of x.
        wiring: the neurons and their synapses, as a wiring, its config or {"type": name, ...}; if
            not given, an `AutoNCP` with as many outputs as x has features. It is copied.
        mode: "default", "no_gate" or "pure", as in `CfC`.
        num_layers: how many layers stand on top of each other.
        bidirectional: whether others read the sequence from its end; the outputs stand side by
            side.
        mixed_memory: whether the state passes through a long short-term memory before each step.
        proj_size: the features of a linear map of the outputs; none if not given.
        return_sequences: whether all outputs come back, or only the last.

    Shape: (batch, time, features) -> (batch, time, output_dim or proj_size). The state is (batch,
    units), the wiring's first layer first; with mixed memory a pair of it.

    Reference: Hasani et al., "Closed-form continuous-time neural networks", 2022.

    Example:
        >>> nn.layers.WiredCfC(3, nn.wirings.AutoNCP(16, 4))(ops.ones((2, 5, 3))).shape
        (2, 5, 4)
    """

    def __init__(
        self,
        features: Size,
        wiring: WiringField | None = None,
        mode: Mode = "default",
        num_layers: Size = 1,
        bidirectional: bool = False,
        mixed_memory: bool = False,
        proj_size: Size | None = None,
        return_sequences: bool = True,
    ) -> None:
        made = _wiring(wiring, features)

        def make(width: int) -> HoistedCell:
            return _mixed(WiredCfCCell(width, made, mode), mixed_memory)

        cells = stack(make, features, num_layers, bidirectional)
        super().__init__(*cells, return_sequences=return_sequences, proj_size=proj_size)


@register("layers/ltc")
class LTC(Recurrent):
    r"""Liquid time-constant neurons, with leaks, and synapses that open with their source.

    The synapse e from i to j has the conductance :math:`s_e = w_e \sigma(\sigma_e (v_i - \mu_e))`
    and the reversal potential :math:`E_e`; inputs have synapses likewise. A step is computed in
    parts of the time d, each of which does

    .. math::
        v_j \leftarrow \frac{c_j v_j + d (g_j v^{leak}_j + \sum_e s_e E_e)}
        {c_j + d (g_j + \sum_e s_e + \epsilon)}

    Only neurons in loops of the wiring are computed step by step; the others are linear
    recurrences, given those they read.

    Args:
        features: the features of x.
        units: a wiring, its config or {"type": name, ...}; or a number of neurons, for all of which
            there are synapses to all. If not given, an `AutoNCP` with as many outputs as x has
            features. A wiring is copied.
        input_mapping: how x is mapped: "affine" (a gain and a shift a feature), "linear" or "none".
        output_mapping: how the outputs are mapped, likewise.
        ode_unfolds: in how many parts a step is computed.
        epsilon: keeps the denominator from zero.
        implicit_param_constraints: whether conductances and capacities are the softplus of their
            parameters; else the parameters themselves, where they are above zero.
        num_layers: how many layers stand on top of each other.
        bidirectional: whether others read the sequence from its end; the outputs stand side by
            side.
        mixed_memory: whether the state passes through a long short-term memory before each step.
        proj_size: the features of a linear map of the outputs; none if not given.
        return_sequences: whether all outputs come back, or only the last.

    Shape: (batch, time, features) -> (batch, time, output_dim or proj_size). The state, the
    potentials, is (batch, units); with mixed memory a pair of it.

    Reference: Hasani et al., "Liquid time-constant networks", 2021.

    Example:
        >>> layer = nn.layers.LTC(3, nn.wirings.AutoNCP(16, 4))
        >>> y, v = layer.run(ops.ones((2, 5, 3)))
        >>> y.shape, v.shape
        ((2, 5, 4), (2, 16))
    """

    def __init__(
        self,
        features: Size,
        units: UnitsField = None,
        input_mapping: Mapping = "affine",
        output_mapping: Mapping = "affine",
        ode_unfolds: Size = 6,
        epsilon: Positive = 1e-8,
        implicit_param_constraints: bool = True,
        num_layers: Size = 1,
        bidirectional: bool = False,
        mixed_memory: bool = False,
        proj_size: Size | None = None,
        return_sequences: bool = True,
    ) -> None:
        wiring = FullyConnected(units) if isinstance(units, int) else _wiring(units, features)
        ode = ode_unfolds, epsilon, implicit_param_constraints

        def make(width: int) -> HoistedCell:
            cell = LTCCell(width, wiring, input_mapping, output_mapping, *ode)
            return _mixed(cell, mixed_memory)

        cells = stack(make, features, num_layers, bidirectional)
        super().__init__(*cells, return_sequences=return_sequences, proj_size=proj_size)


def _wiring(given: Any, features: int) -> Any:
    """The wiring that is given, or one with as many outputs as there are features."""
    if given is None:
        return AutoNCP(2 * features + 4, features)
    return given.create() if isinstance(given, Config) else given


def _mixed(cell: HoistedCell, mixed_memory: bool) -> HoistedCell:
    return MixedMemoryCell(cell) if mixed_memory else cell
