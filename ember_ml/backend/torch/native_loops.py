"""Recurrent cells by the C kernels: functions `run` and `pull` for `fusion.fused`.

`run(*operands)` returns the results and the arrays that `pull` needs. If the kernels are switched
off between the two passes, `pull` still uses them: the library stays loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ember_ml._native.frame import Frame
from ember_ml.backend import native_cells, native_liquid

Pair = tuple[Callable[..., Any], Callable[..., Any]]


def _without_autocast(pull: Callable[..., Any]) -> Callable[..., Any]:
    """Run a backward pass in full precision, also where `torch.autocast` is active."""

    def run(*args: Any) -> Any:
        if not torch.is_autocast_enabled("cpu"):
            return pull(*args)
        with torch.autocast("cpu", enabled=False):
            return pull(*args)

    return run


def _separate(y: Tensor) -> Tensor:
    """Return the sequence in other memory than the states, which the backward pass reads."""
    return y.clone(memory_format=torch.contiguous_format)


def lstm(frame: Frame) -> Pair:
    """Return the passes of `lstm`.

    Args:
        frame: Access to the tensors.
    """

    def run(x: Tensor, h0: Tensor, c0: Tensor, weight_ih: Any, weight_hh: Any, *biases: Any) -> Any:
        given = [bias for bias in biases if bias is not None]
        bias = sum(given[1:], given[0]) if given else None
        (y, h, c), saved = native_cells.lstm(frame, x, h0, c0, weight_ih, weight_hh, bias)
        return (y, h.clone(), c.clone()), saved

    def pull(operands: Sequence[Any], saved: Any, *cotangents: Tensor) -> list[Any]:
        x, _, _, weight_ih, weight_hh, *biases = operands
        *grads, bias = native_cells.lstm_adjoint(
            frame, x, weight_ih, weight_hh, saved, cotangents, x.requires_grad
        )
        return [*grads, *[None if each is None else bias for each in biases]]

    return run, _without_autocast(pull)


def gru(frame: Frame) -> Pair:
    """Return the passes of `gru`.

    Args:
        frame: Access to the tensors.
    """

    def run(*operands: Any) -> Any:
        (y, h), saved = native_cells.gru(frame, *operands)
        return (_separate(y), h.clone()), saved

    def pull(operands: Sequence[Any], saved: Any, *cotangents: Tensor) -> list[Any]:
        x, _, weight_ih, weight_hh, *biases = operands
        *grads, bias_ih, bias_hh = native_cells.gru_adjoint(
            frame, x, weight_ih, weight_hh, saved, cotangents, x.requires_grad
        )
        pairs = zip(biases, (bias_ih, bias_hh), strict=True)
        return [*grads, *[None if bias is None else g for bias, g in pairs]]

    return run, _without_autocast(pull)


def closed_form(frame: Frame, gated: bool) -> Pair:
    """Return the passes of `closed_form` (CfC cells).

    Args:
        frame: Access to the tensors.
        gated: Whether the two heads are mixed by the gate instead of added.
    """

    def run(*operands: Any) -> Any:
        y, saved = native_liquid.closed_form(frame, operands, gated)
        return _separate(y), saved

    return (
        run,
        _without_autocast(
            lambda operands, saved, g: native_liquid.closed_form_adjoint(
                frame, operands, gated, saved, g
            )
        ),
    )


def liquid(frame: Frame) -> Pair:
    """Return the passes of `liquid` (LTC cells).

    Args:
        frame: Access to the tensors.
    """

    def run(*operands: Tensor) -> Any:
        y, saved = native_liquid.liquid(frame, *operands)
        return _separate(y), saved

    return (
        run,
        _without_autocast(
            lambda operands, saved, g: native_liquid.liquid_adjoint(frame, operands, saved, g)
        ),
    )
