"""The recurrent layers in continuous time: CfC, wired CfC and LTC."""

from __future__ import annotations

from typing import Annotated, TypeVar, cast

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
from ember_ml.nn.layers.sequence_mixing.recurrent.base import Recurrent, stack_cells
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import HoistedCell, RecurrentCell
from ember_ml.nn.layers.sequence_mixing.recurrent.closed_form import CfCCell, Mode
from ember_ml.nn.layers.sequence_mixing.recurrent.liquid import LTCCell, Mapping
from ember_ml.nn.layers.sequence_mixing.recurrent.memory import MixedMemoryCell
from ember_ml.nn.layers.sequence_mixing.recurrent.wired import WiredCfCCell
from ember_ml.nn.wirings import AutoNCP, FullyConnected
from ember_ml.nn.wirings.base import NeuronWiring
from ember_ml.registry import register

Weights = TypeVar("Weights")
Entry = TypeVar("Entry")


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
    r"""Closed-form continuous-time layer.

    Let z be the output of the backbone for :math:`[x_t, h_{t-1}]`, and s the time since the
    previous position:

    .. math::
        g = \sigma(s \, W_a z + W_b z), \quad
        h_t = \tanh(W_1 z) \odot (1 - g) + g \odot \tanh(W_2 z)

    The mode "no_gate" omits the factor (1 - g). The mode "pure" is

    .. math:: h_t = A - A \odot \exp(-s (|w_\tau| + |W_1 z|)) \odot W_1 z

    Args:
        features: Number of input features.
        units: Number of features of the hidden state h. Default: `features`.
        mode: "default", "no_gate" or "pure". Default: "default".
        activation: Activation function of the backbone. Default: "lecun_tanh".
        backbone_units: Number of features of the backbone's layers. Default: 128.
        backbone_layers: Number of layers of the backbone, 0 or more. Default: 1.
        backbone_dropout: Probability of zeroing an output of any backbone layer but the first
            during training. Default: 0.
        num_layers: Number of stacked layers. Default: 1.
        bidirectional: Whether to also read the sequence backward and concatenate the outputs.
            Default: False.
        mixed_memory: Whether the state passes through an LSTM cell before each step.
            Default: False.
        proj_size: Number of features of a linear projection of the outputs. Default: none.
        return_sequences: Whether to return all outputs or only the last. Default: True.

    Shape: (batch, time, features) -> (batch, time, units or proj_size). The state is (batch,
    units), or a pair with mixed memory.

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

        def create(width: int) -> RecurrentCell:
            return _with_memory(CfCCell(width, units or features, mode, *backbone), mixed_memory)

        cells = stack_cells(create, features, num_layers, bidirectional)
        super().__init__(*cells, return_sequences=return_sequences, proj_size=proj_size)


@register("layers/wired_cfc", aliases=["wiredcfc", "wired-cfc"])
class WiredCfC(Recurrent):
    """CfC layer with a wiring: one CfC cell without a backbone for each layer of the wiring.

    Each cell reads the previous layer, through the synapses of the wiring, and its own state.

    Args:
        features: Number of input features.
        wiring: Neurons and synapses: a wiring, its config or {"type": name, ...}. It is copied.
            Default: an `AutoNCP` with `features` outputs.
        mode: "default", "no_gate" or "pure", as in `CfC`. Default: "default".
        num_layers: Number of stacked layers. Default: 1.
        bidirectional: Whether to also read the sequence backward and concatenate the outputs.
            Default: False.
        mixed_memory: Whether the state passes through an LSTM cell before each step.
            Default: False.
        proj_size: Number of features of a linear projection of the outputs. Default: none.
        return_sequences: Whether to return all outputs or only the last. Default: True.

    Shape: (batch, time, features) -> (batch, time, output_dim or proj_size). The state is (batch,
    units), first layer first, or a pair with mixed memory.

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
        neurons = _wiring(wiring, features)

        def create(width: int) -> RecurrentCell:
            return _with_memory(WiredCfCCell(width, neurons, mode), mixed_memory)

        cells = stack_cells(create, features, num_layers, bidirectional)
        super().__init__(*cells, return_sequences=return_sequences, proj_size=proj_size)


@register("layers/ltc")
class LTC(Recurrent):
    r"""Liquid time-constant layer: leaky neurons, and synapses that open with their source.

    The synapse e from i to j has the conductance :math:`s_e = w_e \sigma(\sigma_e (v_i - \mu_e))`
    and the reversal potential :math:`E_e`. Inputs have synapses of the same kind. A step has
    `ode_unfolds` substeps of time d. Each substep computes

    .. math::
        v_j \leftarrow \frac{c_j v_j + d (g_j v^{leak}_j + \sum_e s_e E_e)}
        {c_j + d (g_j + \sum_e s_e + \epsilon)}

    Only neurons in loops of the wiring are computed step by step. The others are linear
    recurrences, given the neurons that they read.

    Args:
        features: Number of input features.
        units: A wiring, its config or {"type": name, ...}; or a number of fully connected neurons.
            A wiring is copied. Default: an `AutoNCP` with `features` outputs.
        input_mapping: Map of the inputs: "affine" (scale and shift per feature), "linear" (scale)
            or "none". Default: "affine".
        output_mapping: Map of the outputs: "affine", "linear" or "none". Default: "affine".
        ode_unfolds: Number of substeps per step. Default: 6.
        epsilon: Value added to the denominator. Default: 1e-8.
        implicit_param_constraints: Whether conductances and capacities are the softplus of their
            parameters. Otherwise they are the parameters, clipped at 0. Default: True.
        num_layers: Number of stacked layers. Default: 1.
        bidirectional: Whether to also read the sequence backward and concatenate the outputs.
            Default: False.
        mixed_memory: Whether the state passes through an LSTM cell before each step.
            Default: False.
        proj_size: Number of features of a linear projection of the outputs. Default: none.
        return_sequences: Whether to return all outputs or only the last. Default: True.

    Shape: (batch, time, features) -> (batch, time, output_dim or proj_size). The state, the
    potentials, is (batch, units), or a pair with mixed memory.

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

        def create(width: int) -> RecurrentCell:
            cell = LTCCell(width, wiring, input_mapping, output_mapping, *ode)
            return _with_memory(cell, mixed_memory)

        cells = stack_cells(create, features, num_layers, bidirectional)
        super().__init__(*cells, return_sequences=return_sequences, proj_size=proj_size)


def _wiring(wiring: object, features: int) -> NeuronWiring:
    """Return the given wiring, or the default one with as many outputs as features."""
    if wiring is None:
        return AutoNCP(2 * features + 4, features)
    return cast(NeuronWiring, wiring.create() if isinstance(wiring, Config) else wiring)


def _with_memory(cell: HoistedCell[Weights, Entry], mixed_memory: bool) -> RecurrentCell:
    return MixedMemoryCell(cell) if mixed_memory else cell
