"""Closed-form continuous-time cells."""

from __future__ import annotations

import itertools
from typing import Any

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.nn import activations
from ember_ml.nn.containers import ModuleList
from ember_ml.nn.layers.channel_mixing import Dense, Dropout
from ember_ml.nn.layers.sequence_mixing.base import State
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import HoistedCell, Timespan, is_scalar
from ember_ml.nn.parameter import Buffer, Parameter

MODES = ("default", "no_gate", "pure")
_SCALES = {
    activations.get("tanh"): (1.0, 1.0),
    activations.get("lecun_tanh"): (0.666, 1.7159),  # published CfCs have these digits, not 2 / 3
}
"""The activations that are a tanh: the factors inside and outside of it."""


class CfCCell(HoistedCell):
    r"""A closed-form continuous-time cell.

    With z the backbone's output for [x, h], or [x, h] itself, and s the time since the step before:

    .. math::
        t = \sigma(s \, W_a z + W_b z), \quad
        h' = \tanh(W_1 z) \odot (1 - t) + t \odot \tanh(W_2 z)

    The mode "no_gate" leaves out the factor (1 - t); "pure" is

    .. math:: h' = A - A \odot \exp(-s (|w_\tau| + |W_1 z|)) \odot W_1 z

    Args:
        in_features: the features of x.
        hidden_size: the features of h.
        mode: "default", "no_gate" or "pure".
        activation: of the backbone.
        backbone_units: the features of the backbone's layers.
        backbone_layers: how many layers the backbone has; it may have none.
        backbone_dropout: the share that training drops after each layer of the backbone but the
            first.
        mask: (in_features + hidden_size, hidden_size), zero where W_1 and W_2 have no weight.

    Shape: (batch, in_features), (batch, hidden_size) -> (batch, hidden_size), the same again.

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
        mode: str = "default",
        activation: Any = "lecun_tanh",
        backbone_units: int = 128,
        backbone_layers: int = 1,
        backbone_dropout: float = 0.0,
        mask: Any = None,
    ) -> None:
        if mode not in MODES:
            raise ArgumentError(f"CfCCell: mode={mode!r} must be one of {', '.join(MODES)}")
        self.in_features = in_features
        self.out_features = hidden_size
        self.widths = hidden_size
        self.mode = mode
        self.activation = activations.get(activation)
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

    def gather(self, timespan: Timespan) -> Any:
        """(weights of x, weights of h, bias) of what comes first, and those of the heads."""
        heads = self._heads(timespan)
        if not len(self.backbone):
            return (*_parted(heads, self.in_features), *self._constants())
        first = self.backbone[0].weight, self.backbone[0].bias
        rest = [(layer.weight, layer.bias) for layer in self.backbone[1:]]
        return *_parted(first, self.in_features), rest, heads, *self._constants()

    def _constants(self) -> list[Tensor]:
        return [self.w_tau.abs(), self.A] if self.mode == "pure" else []

    def _heads(self, timespan: Timespan) -> tuple[Tensor, Tensor]:
        """The weights and biases of all heads in one; the time's as well, if it is always one."""
        layers = [self.ff1] if self.mode == "pure" else [self.ff1, self.ff2]
        weights: list[Tensor] = [layer.weight for layer in layers]
        if self.mask is not None:
            weights = [weight * self.mask for weight in weights]
        biases: list[Any] = [layer.bias for layer in layers]
        if self.mode != "pure" and timespan is None:
            weights += [self.time_a.weight, self.time_b.weight]
            biases += [self.time_a.bias, self.time_b.bias]
        elif self.mode != "pure":
            weights.append(self.time_a.weight * timespan + self.time_b.weight)
            biases.append(self.time_a.bias * timespan + self.time_b.bias)
        return ops.concat(weights, axis=0), ops.concat(biases, axis=0)

    def prepare(self, x: Tensor, made: Any) -> Tensor:
        """The input's part of the first layer."""
        return ops.linear(x, made[0], made[2])

    def advance(self, entry: Any, state: State, timespan: Timespan, made: Any) -> State:
        """The next h."""
        z = entry + ops.linear(state, made[1])
        if len(self.backbone):
            z = self._behind(self._activated(z), made[3], made[4])
        return self._mixed(z, timespan, made)

    def _behind(self, z: Tensor, rest: Any, heads: Any) -> Tensor:
        """The other layers of the backbone, and the heads."""
        for weight, bias in rest:
            z = self._activated(ops.linear(z, weight, bias))
            z = z if self.dropout is None else self.dropout(z)
        return ops.linear(z, *heads)

    def _mixed(self, z: Tensor, timespan: Timespan, made: Any) -> Tensor:
        if self.mode == "pure":
            tau, scale = made[-2:]
            return scale - scale * ops.exp(-timespan * (tau + ops.abs(z))) * z
        size = self.out_features
        f1, f2 = ops.split(ops.tanh(z[..., : 2 * size]), 2, axis=-1)
        gate = z[..., 2 * size : 3 * size]
        if z.shape[-1] > 3 * size:
            gate = gate * timespan + z[..., 3 * size :]
        t = ops.sigmoid(gate)
        return f1 + t * f2 if self.mode == "no_gate" else f1 + t * (f2 - f1)

    def sweep(
        self, x: Tensor, state: State, timespans: Timespan, mask: Tensor | None, made: Any
    ) -> tuple[Tensor, State]:
        """All steps in one op, where there is one for them."""
        spans = None if is_scalar(timespans) else timespans
        scales = self._scales()
        if mask is not None or scales is None or self.mode == "pure" or not x.shape[1]:
            return super().sweep(x, state, timespans, mask, made)
        gated = self.mode == "default"
        if not len(self.backbone):
            entries = self.prepare(x, made)
            y = ops.closed_form(entries, state, made[1], timespans=spans, gated=gated)
        else:
            inside, outside = scales
            first, recurrent, shift = (part * inside for part in made[:3])
            weight, bias = made[4]
            entries = ops.linear(x, first, shift)
            y = ops.closed_form(entries, state, recurrent, weight * outside, bias, spans, gated)
        return y, y[:, -1]

    def _scales(self) -> tuple[float, float] | None:
        """What makes a tanh of the backbone's one activation; None if that cannot be."""
        return _SCALES.get(self.activation) if len(self.backbone) < 2 else None

    def _activated(self, z: Tensor) -> Tensor:
        scales = _SCALES.get(self.activation)
        return self.activation(z) if scales is None else scales[1] * ops.tanh(scales[0] * z)

    def output(self, state: State, made: Any) -> Tensor:
        """The state itself."""
        out: Tensor = state
        return out


def _parted(layer: tuple[Tensor, Tensor], features: int) -> tuple[Tensor, Tensor, Tensor]:
    """The weights of x, those of h, and the bias of a layer that reads [x, h]."""
    weight, bias = layer
    return weight[:, :features], weight[:, features:], bias
