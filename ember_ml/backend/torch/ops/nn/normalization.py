"""Normalization."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from ember_ml._core.errors import AxisError
from ember_ml._native.calls import Kernel
from ember_ml.backend.torch.custom import fused_once
from ember_ml.backend.torch.nesting import is_tracked, nesting
from ember_ml.backend.torch.ops._kernel_calls import call, is_served, threads, with_adjoint

_HALVES = (torch.float16, torch.bfloat16)
_RMS_NORM, _RMS_ADJOINT = Kernel("rms_norm", "ppppiiri"), Kernel("rms_norm_adjoint", "ppppppiiri")


def _trailing(x: torch.Tensor, axis: int) -> torch.Tensor:
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"axis={axis} is out of range for the shape {tuple(x.shape)}")
    return x.shape[axis:]


def layer_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    axis: int = -1,
) -> torch.Tensor:
    shape = _trailing(x, axis)
    if nesting.once or not is_tracked(x, weight, bias):
        return torch.layer_norm(x, shape, weight, bias, eps)

    def fused(x: Any, weight: Any, bias: Any) -> torch.Tensor:
        return torch.layer_norm(x, shape, weight, bias, eps)

    def plain(x: Any, weight: Any, bias: Any) -> torch.Tensor:
        return _normalized(x, weight, bias, range(-len(shape), 0), eps)

    return fused_once(fused, plain, (x, weight, bias), order=1)


def _normalized(x: Any, weight: Any, bias: Any, axes: Sequence[int], eps: float) -> torch.Tensor:
    """Return the affine normalization over axes, which torch differentiates any number of times."""
    wide = x.float() if x.dtype in _HALVES else x
    variance, mean = torch.var_mean(wide, tuple(axes), correction=0, keepdim=True)
    out = (wide - mean) * torch.rsqrt(variance + eps)
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).to(x.dtype)


def rms_norm(
    x: torch.Tensor, weight: torch.Tensor | None = None, eps: float = 1e-6, axis: int = -1
) -> torch.Tensor:
    if eps is None:
        raise TypeError("eps must be a number")  # torch would use its own default
    shape = _trailing(x, axis)
    fits = isinstance(eps, (int, float)) and (
        len(shape) == 1 if weight is None else weight.shape == shape
    )
    if not fits or not is_served(x, weight, least=1):
        return torch.rms_norm(x, shape, weight, eps)
    plain = functools.partial(torch.rms_norm, normalized_shape=shape, eps=eps)
    return with_adjoint(
        functools.partial(_rms_norm, eps),
        functools.partial(_pull_rms_norm, eps),
        lambda x, weight: plain(x, weight=weight),
        *(x, weight),
    )


def _rms_norm(eps: float, x: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    """Return the norm over the axes of the weight, or without one over the last axis."""
    x, weight = x.contiguous(), None if weight is None else weight.contiguous()
    out, columns = torch.empty_like(x), x.shape[-1] if weight is None else weight.numel()
    tensors = (x, weight, None, out)
    call(_RMS_NORM, tensors, x.numel() // columns, columns, float(eps), threads(x.numel()))
    return out


def _pull_rms_norm(
    eps: float, g: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None
) -> list[torch.Tensor | None]:
    g, x, weight = g.contiguous(), x.contiguous(), None if weight is None else weight.contiguous()
    out, columns = torch.empty_like(x), x.shape[-1] if weight is None else weight.numel()
    parts = threads(x.numel())
    sums = x.new_empty(parts, columns)
    tensors = (g, x, weight, out, sums, None)
    call(_RMS_ADJOINT, tensors, x.numel() // columns, columns, float(eps), parts)
    sums = sums if parts == 1 else sums.sum(0)
    return [out, None if weight is None else sums.reshape(weight.shape)]


def group_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    num_groups: int = 1,
    eps: float = 1e-5,
) -> torch.Tensor:
    return torch.group_norm(x, num_groups, weight, bias, eps)


def batch_norm(
    x: torch.Tensor,
    mean: torch.Tensor,
    variance: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    axis: int = 1,
) -> torch.Tensor:
    # Not torch.batch_norm, which has no gradient for the statistics.
    if isinstance(eps, complex):
        raise TypeError("eps must be a real number")
    wide = torch.float32 if x.dtype in _HALVES else x.dtype
    _trailing(x, axis)
    for vector in (mean, variance, weight, bias):
        if vector is not None and vector.shape != (x.shape[axis],):
            raise ValueError(
                f"expected a vector of {x.shape[axis]} channels, not shape {tuple(vector.shape)}"
            )
    along = (-1, *(1,) * (x.ndim - 1 - axis % x.ndim))
    scale = torch.rsqrt(variance.to(wide) + eps)
    scale = (scale if weight is None else scale * weight).view(along)
    centred = x.to(wide) - mean.view(along)
    out = (
        centred * scale
        if bias is None
        else torch.addcmul(bias.to(wide).view(along), centred, scale)
    )
    return out.to(x.dtype)


def batch_norm_train(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    axis: int = 1,
) -> tuple[Any, Any, Any]:
    if x.ndim < 2:
        raise ValueError(f"the shape {tuple(x.shape)} needs an axis other than the channels")
    channels = x.movedim(axis, 1)
    along = (-1, *(1,) * (x.ndim - 2))

    def fused(channels: Any, weight: Any, bias: Any) -> torch.Tensor:
        return torch.batch_norm(
            channels, weight, bias, None, None, True, 0.0, eps, torch.backends.cudnn.enabled
        )

    def plain(channels: Any, weight: Any, bias: Any) -> torch.Tensor:
        weight = None if weight is None else weight.view(along)
        bias = None if bias is None else bias.view(along)
        return _normalized(channels, weight, bias, [0, *range(2, x.ndim)], eps)

    out = fused_once(fused, plain, (channels, weight, bias), order=1)
    axes = [other for other in range(x.ndim) if other != axis % x.ndim]
    variance, mean = torch.var_mean(x, axes, correction=0)
    return out.movedim(1, axis), mean, variance
