"""The closed-form continuous-time cell."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ember_ml import ops
from ember_ml._core import deferred
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import ComponentLike
from ember_ml.nn import activations
from ember_ml.nn.containers import ModuleList
from ember_ml.nn.layers.channel_mixing import Dense, Dropout
from ember_ml.nn.layers.channel_mixing.dense import bias_of
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import (
    HoistedCell,
    Mask,
    Timespan,
    varying_timespans,
)
from ember_ml.nn.parameter import Buffer, Parameter

Mode: TypeAlias = Literal["default", "no_gate", "pure"]
MODES = ("default", "no_gate", "pure")
_TANH_SCALES: dict[Callable[..., Tensor], tuple[float, float]] = {
    activations.get("tanh"): (1.0, 1.0),
    activations.get("lecun_tanh"): (0.666, 1.7159),  # as in published CfCs, instead of 2 / 3
}
"""Activations of the form outer * tanh(inner * x): the factors inner and outer."""
Affine: TypeAlias = tuple[Tensor, Tensor]
"""Weight and bias."""


class CfCWeights(NamedTuple):
    """Weights of a CfC cell, as used within a sequence."""

    input: Tensor
    """Weight of x in the first layer: of the backbone, or of the heads without a backbone."""
    recurrent: Tensor
    """Weight of h in the first layer."""
    bias: Tensor
    """Bias of the first layer."""
    backbone: Sequence[Affine]
    """The other layers of the backbone."""
    heads: Affine | None
    """All heads in one matrix; None without a backbone."""
    decay: Tensor | None
    """|w_tau|, in the mode "pure"."""
    scale: Tensor | None
    """A, in the mode "pure"."""


class CfCCell(HoistedCell[CfCWeights, Tensor]):
    r"""Closed-form continuous-time cell.

    Let z be the output of the backbone for [x, h], or [x, h] itself, and s the time since the
    previous step:

    .. math::
        t = \sigma(s \, W_a z + W_b z), \quad
        h' = \tanh(W_1 z) \odot (1 - t) + t \odot \tanh(W_2 z)

    The mode "no_gate" omits the factor (1 - t). The mode "pure" is

    .. math:: h' = A - A \odot \exp(-s (|w_\tau| + |W_1 z|)) \odot W_1 z

    Args:
        in_features: Number of input features.
        hidden_size: Number of features of the hidden state h.
        mode: "default", "no_gate" or "pure". Default: "default".
        activation: Activation function of the backbone. Default: "lecun_tanh".
        backbone_units: Number of features of the backbone's layers. Default: 128.
        backbone_layers: Number of layers of the backbone, 0 or more. Default: 1.
        backbone_dropout: Probability of zeroing an output of any backbone layer but the first
            during training. Default: 0.
        mask: (hidden_size, in_features + hidden_size), zero where W_1 and W_2 have no weight.
            Default: none.

    Shape: (batch, in_features), h (batch, hidden_size) -> (batch, hidden_size), the new h.

    Reference: Hasani et al., "Closed-form continuous-time neural networks", 2022.

    Example:
        >>> y, h = nn.layers.CfCCell(3, 4)(ops.ones((2, 3)), timespan=0.5)
        >>> y.shape, h.shape
        ((2, 4), (2, 4))
    """

    def __init__(
        self,
        in_features: int,
        hidden_size: int,
        mode: Mode = "default",
        activation: ComponentLike = "lecun_tanh",
        backbone_units: int = 128,
        backbone_layers: int = 1,
        backbone_dropout: float = 0.0,
        mask: TensorLike | None = None,
    ) -> None:
        if mode not in MODES:
            raise ArgumentError(f"CfCCell: mode must be one of {', '.join(MODES)}, not {mode!r}")
        self.in_features = in_features
        self.out_features = hidden_size
        self.widths = hidden_size
        self.mode = mode
        self.activation = activations.get(activation)
        deferred.reserve(8 * backbone_layers, f"a backbone of {backbone_layers} layers")
        sizes = [in_features + hidden_size] + [backbone_units] * backbone_layers
        self.backbone = ModuleList(Dense(*pair) for pair in itertools.pairwise(sizes))
        self.dropout = Dropout(backbone_dropout) if backbone_dropout else None
        self.mask = None if mask is None else Buffer(mask, persistent=False)
        self.ff1 = Dense(sizes[-1], hidden_size)
        if mode == "pure":
            self.w_tau = Parameter(ops.zeros((hidden_size,)), decay=False)
            self.A = Parameter(ops.ones((hidden_size,)), decay=False)
        else:
            self.ff2 = Dense(sizes[-1], hidden_size)
            self.time_a = Dense(sizes[-1], hidden_size)
            self.time_b = Dense(sizes[-1], hidden_size)

    def gather(self, timespan: Timespan | None) -> CfCWeights:
        """Return the weights, with the heads joined and the time multiplied in if it is fixed."""
        heads = self._heads(timespan)
        layers = [
            (layer.weight, bias_of(layer)) for layer in self.backbone if isinstance(layer, Dense)
        ]
        weight, bias = layers[0] if layers else heads
        decay, scale = (self.w_tau.abs(), self.A) if self.mode == "pure" else (None, None)
        features = self.in_features
        return CfCWeights(
            weight[:, :features],
            weight[:, features:],
            bias,
            layers[1:],
            heads if layers else None,
            decay,
            scale,
        )

    def _heads(self, timespan: Timespan | None) -> Affine:
        """Return weight and bias of all heads, with the time multiplied in if it is fixed."""
        layers = [self.ff1] if self.mode == "pure" else [self.ff1, self.ff2]
        weights: list[Tensor] = [layer.weight for layer in layers]
        if self.mask is not None:
            weights = [weight * self.mask for weight in weights]
        biases: list[Tensor] = [bias_of(layer) for layer in layers]
        if self.mode != "pure":
            weight_a, weight_b = self.time_a.weight, self.time_b.weight
            bias_a, bias_b = bias_of(self.time_a), bias_of(self.time_b)
            if timespan is None:
                weights += [weight_a, weight_b]
                biases += [bias_a, bias_b]
            else:
                weights.append(weight_a * timespan + weight_b)
                biases.append(bias_a * timespan + bias_b)
        return ops.concat(weights, axis=0), ops.concat(biases, axis=0)

    def prepare(self, x: Tensor, weights: CfCWeights) -> Tensor:
        """Return the contribution of the input to the first layer."""
        return ops.linear(x, weights.input, weights.bias)

    def advance(
        self, entry: Tensor, state: Tensor, timespan: Timespan, weights: CfCWeights
    ) -> Tensor:
        """Return the next h."""
        z = entry + ops.linear(state, weights.recurrent)
        if weights.heads is not None:
            z = self._activate(z)
            for weight, bias in weights.backbone:
                z = self._activate(ops.linear(z, weight, bias))
                z = z if self.dropout is None else self.dropout(z)
            z = ops.linear(z, *weights.heads)
        return self._interpolate(z, timespan, weights)

    def _interpolate(self, z: Tensor, timespan: Timespan, weights: CfCWeights) -> Tensor:
        """Return the next h from the outputs of the heads."""
        if weights.decay is not None and weights.scale is not None:
            scale = weights.scale
            return scale - scale * ops.exp(-timespan * (weights.decay + ops.abs(z))) * z
        size = self.out_features
        f1, f2 = ops.split(ops.tanh(z[..., : 2 * size]), 2, axis=-1)
        gate = z[..., 2 * size : 3 * size]
        if z.shape[-1] > 3 * size:
            gate = gate * timespan + z[..., 3 * size :]
        t = ops.sigmoid(gate)
        return f1 + t * f2 if self.mode == "no_gate" else f1 + t * (f2 - f1)

    def sweep(
        self, x: Tensor, state: Tensor, timespans: Timespan, mask: Mask, weights: CfCWeights
    ) -> tuple[Tensor, Tensor]:
        """Compute all steps by one op if it supports the configuration."""
        spans = varying_timespans(timespans)
        scales = _TANH_SCALES.get(self.activation) if len(self.backbone) < 2 else None
        if mask is not None or scales is None or self.mode == "pure" or not x.shape[1]:
            return super().sweep(x, state, timespans, mask, weights)
        gated = self.mode == "default"
        if weights.heads is None:
            entries = self.prepare(x, weights)
            y = ops.closed_form(entries, state, weights.recurrent, timespans=spans, gated=gated)
        else:
            inner, outer = scales
            recurrent = weights.recurrent * inner
            entries = ops.linear(x, weights.input * inner, weights.bias * inner)
            weight, bias = weights.heads
            y = ops.closed_form(entries, state, recurrent, weight * outer, bias, spans, gated)
        return y, y[:, -1]

    def _activate(self, z: Tensor) -> Tensor:
        scales = _TANH_SCALES.get(self.activation)
        return self.activation(z) if scales is None else scales[1] * ops.tanh(scales[0] * z)

    def output(self, state: Tensor, weights: CfCWeights) -> Tensor:
        """Return the hidden state h."""
        return state
