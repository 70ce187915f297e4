"""Recurrent cells by the C kernels, in the form of the loops in `loops`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from ember_ml._native.frame import Frame
from ember_ml.backend import native_cells, native_liquid


class LSTM:
    """Forward and backward pass of `lstm`.

    Args:
        frame: Access to the tensors.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def forward(self, x: Tensor, h0: Tensor, c0: Tensor, *weights: Any) -> tuple[Tensor, ...]:
        """Return the hidden states, and the last h and c."""
        weight_ih, weight_hh, *biases = weights
        given = [bias for bias in biases if bias is not None]
        bias = sum(given[1:], given[0]) if given else None
        outs, self.saved = native_cells.lstm(self.frame, x, h0, c0, weight_ih, weight_hh, bias)
        return outs[0], outs[1].clone(), outs[2].clone()

    def backward(self, arrays: Sequence[Any], *cotangents: Tensor) -> list[Tensor | None]:
        """Return the gradients of all arrays; None for arrays that are None."""
        x, _, _, weight_ih, weight_hh, *biases = arrays
        *grads, bias = native_cells.lstm_adjoint(
            self.frame, x, weight_ih, weight_hh, self.saved, cotangents
        )
        return [*grads, *[None if each is None else bias for each in biases]]


class GRU:
    """Forward and backward pass of `gru`.

    Args:
        frame: Access to the tensors.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def forward(self, x: Tensor, h0: Tensor, *weights: Any) -> tuple[Tensor, ...]:
        """Return the hidden states, and the last one."""
        outs, self.saved = native_cells.gru(self.frame, x, h0, *weights)
        return outs[0], outs[1].clone()

    def backward(self, arrays: Sequence[Any], *cotangents: Tensor) -> list[Tensor | None]:
        """Return the gradients of all arrays; None for arrays that are None."""
        x, _, weight_ih, weight_hh, *biases = arrays
        *grads, bias_ih, bias_hh = native_cells.gru_adjoint(
            self.frame, x, weight_ih, weight_hh, self.saved, cotangents
        )
        pairs = zip(biases, (bias_ih, bias_hh), strict=True)
        return [*grads, *[None if bias is None else g for bias, g in pairs]]


class ClosedForm:
    """Forward and backward pass of `closed_form` (CfC cells).

    Args:
        frame: Access to the tensors.
        gated: Whether the two heads are mixed by the gate instead of added.
    """

    def __init__(self, frame: Frame, gated: bool) -> None:
        self.frame = frame
        self.gated = gated

    def forward(self, *arrays: Any) -> Tensor:
        """Return the states, (batch, time, hidden)."""
        out, self.saved = native_liquid.closed_form(self.frame, *arrays, self.gated)
        return out

    def backward(self, arrays: Sequence[Any], g: Tensor) -> list[Tensor | None]:
        """Return the gradients of all arrays; None for arrays that are None."""
        return native_liquid.closed_form_adjoint(self.frame, arrays, self.gated, self.saved, g)


class Liquid:
    """Forward and backward pass of `liquid` (LTC cells).

    Args:
        frame: Access to the tensors.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def forward(self, *arrays: Any) -> Tensor:
        """Return the potentials, (batch, time, neurons)."""
        out, self.saved = native_liquid.liquid(self.frame, *arrays)
        return out

    def backward(self, arrays: Sequence[Any], g: Tensor) -> list[Tensor | None]:
        """Return the gradients of all arrays."""
        return native_liquid.liquid_adjoint(self.frame, arrays, self.saved, g)
