"""Linear maps on processors whose AVX-512 units torch's products do not use.

torch computes float32 products with MKL, which uses AVX-512 on Intel's processors only. On AMD's
with full AVX-512 units (Zen 5 and later), oneDNN, which torch contains as well, is twice as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch.nn import functional as F

from ember_ml import _native
from ember_ml.backend.native_products import MOST_WEIGHTS, weight_gradient
from ember_ml.backend.torch.fusion import fused, is_eager
from ember_ml.backend.torch.fusion import linear as fused_linear
from ember_ml.backend.torch.native import accepted_frame
from ember_ml.backend.torch.ops._kernel_calls import gradients, is_autocast, is_served

_ZEN_5 = 26
_LEAST = 1 << 22
"""Number of multiplications below which the overhead in Python is larger than the saved time."""


def onednn_is_faster() -> bool:
    """Return whether oneDNN computes products faster than torch does on this processor."""
    library = _native.library
    return (
        library is not None
        and library.ember_amd_family() >= _ZEN_5
        and library.ember_processor_level() == 2
        and torch.backends.mkl.is_available()
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def onednn_linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Return `torch.nn.functional.linear`, computed by oneDNN if the product is large."""
    if not is_eager() or weight.ndim != 2 or x.ndim < 2 or not _fits(x, weight, bias):
        return F.linear(x, weight, bias)
    if weight.requires_grad or (bias is not None and bias.requires_grad):
        return fused(_run, _pull, F.linear, x, weight, bias)
    # With frozen weights, the backward pass does not need x.
    return fused_linear(lambda x: _run(x, weight, bias)[0], partial(_frozen_pull, weight), x)


def _frozen_pull(weight: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor]:
    return (onednn_linear(g, weight.t()),)


def _fits(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """Return whether oneDNN takes the operands of a linear map, and is faster.

    `torch.autocast` would change the precision of the product.
    """
    width, depth = weight.shape
    return (
        x.numel() * width >= _LEAST
        and x.dtype is torch.float32
        and x.shape[-1] == depth
        and (bias is None or bias.shape == (width,))
        and torch.backends.mkldnn.enabled
        and not is_autocast(x)
        and is_served(x, weight, bias, least=1)
    )


def _run(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> tuple[torch.Tensor, None]:
    if bias is None and _has_columns(x):
        return _product(weight, x).t(), None
    return _product(x, weight, bias), None


def _pull(operands: Sequence[Any], _: None, g: torch.Tensor) -> Sequence[torch.Tensor | None]:
    if not is_served(g, *operands, least=1):  # a mode since the forward pass, or switched off
        return gradients(F.linear, operands, g)
    x, weight, bias = operands
    rows, entries = g.reshape(-1, len(weight)), x.reshape(-1, weight.shape[1])
    of_x = _input_gradient(x, weight, g) if x.requires_grad else None
    of_weight = _weight_gradient(rows, entries) if weight.requires_grad else None
    learns = bias is not None and bias.requires_grad
    return of_x, of_weight, rows.sum(0) if learns else None


def _input_gradient(x: torch.Tensor, weight: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    if _has_columns(x):  # in the layout of x
        return _product(weight.t().contiguous(), g).t()
    return _product(g, weight.t())


def _weight_gradient(rows: torch.Tensor, entries: torch.Tensor) -> torch.Tensor:
    if _has_columns(entries) or rows.shape[1] * entries.shape[1] > MOST_WEIGHTS:
        return _product(rows.t(), entries.t())
    return cast("torch.Tensor", weight_gradient(accepted_frame(rows), rows, entries))


def _has_columns(x: torch.Tensor) -> bool:
    """Return whether a matrix has contiguous columns instead of rows."""
    return x.ndim == 2 and x.stride(0) == 1 and x.stride(1) > 1


def _product(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    if not (weight.is_contiguous() or weight.t().is_contiguous()):
        weight = weight.contiguous()  # oneDNN refuses rows that overlap
    product = torch.ops.mkldnn._linear_pointwise
    return cast("torch.Tensor", product(x, weight, bias, "none", [], ""))


linear: Callable[..., torch.Tensor] = onednn_linear if onednn_is_faster() else F.linear
