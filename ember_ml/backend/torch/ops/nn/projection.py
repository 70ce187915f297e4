"""Linear projection, embedding, one-hot encoding."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.backend import native_softplus_linear as native
from ember_ml.backend.torch.fusion import fused
from ember_ml.backend.torch.native import accepted_frame
from ember_ml.backend.torch.ops._kernel_calls import gradients, is_autocast, is_served
from ember_ml.backend.torch.ops.special import softplus
from ember_ml.backend.torch.products import linear as linear

_SMALL = 1 << 14
"""Number of elements of the result from which the kernel of `softplus_linear` is faster."""


def softplus_linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor | None:
    """Return None for operands that the kernel does not take.

    `torch.autocast` would change the precision of the product.
    """
    if is_autocast(x) or not is_served(x, weight, bias, least=1):
        return None
    if not native.fits(x, weight, bias, _SMALL):
        return None
    return fused(_run, _pull, _plain, x, weight, bias)


def _plain(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return softplus(linear(x, weight, bias))


def _run(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    out = native.forward(accepted_frame(x, weight, bias), x, weight, bias)
    return out, out


def _pull(operands: Sequence[Any], out: torch.Tensor, g: torch.Tensor) -> Sequence[Any]:
    if not is_served(g, *operands, least=1):  # a mode since the forward pass, or switched off
        return gradients(_plain, operands, g)
    x, weight, bias = operands
    access = accepted_frame(g, out, x, weight)
    of_x, of_weight, of_bias = native.adjoint(access, g, out, x, weight)
    return of_x, of_weight, None if bias is None else of_bias


def embedding(weight: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    if indices.dtype not in (torch.int64, torch.int32):
        if indices.is_floating_point() or indices.is_complex() or indices.dtype is torch.bool:
            raise ArgumentTypeError(f"embedding: indices must be integers, not {indices.dtype}")
        indices = indices.long()
    if weight.ndim == 2 and not weight.is_complex():
        return F.embedding(indices, weight)
    return weight.index_select(0, indices.flatten()).reshape(*indices.shape, *weight.shape[1:])


def one_hot(
    x: torch.Tensor, num_classes: int, axis: int = -1, dtype: torch.dtype | None = None
) -> torch.Tensor:
    dtype = torch.float32 if dtype is None else dtype
    classes = torch.arange(operator.index(num_classes), device=x.device)
    return (x.unsqueeze(-1) == classes).to(dtype).movedim(-1, axis)
