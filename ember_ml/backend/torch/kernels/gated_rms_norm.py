"""RMS norm with a SiLU gate as Triton kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ember_ml.backend.torch.kernels.launching import (
    cdiv,
    fused,
    new_sums,
    next_power,
    on_device,
)

MAX_FEATURES = 8192
PARTS = 1024
"""Program instances of the backward pass, each of which sums the weight's gradient."""


def takes(x: Tensor, weight: Tensor | None) -> bool:
    """Return whether the kernels take these shapes: not empty, with rows that fit registers.

    Args:
        x: Input, (..., features).
        weight: Scale, (features,).
    """
    right = x.ndim > 0 and (weight is None or weight.shape == x.shape[-1:])
    return right and x.numel() > 0 and x.shape[-1] <= MAX_FEATURES


def warps(features: int) -> int:
    """Return the warps of a program instance.

    Args:
        features: Length of a row.
    """
    return max(1, min(16, next_power(features) // 512))


def reference(
    x: Tensor, gate: Tensor, weight: Tensor | None, eps: float, gate_first: bool
) -> Tensor:
    """Return the normalized and gated rows, in plain torch and at least in float32.

    Args:
        x: Input, (..., features).
        gate: Input of the gate, in the shape of x.
        weight: Scale, (features,). None: 1.
        eps: Added to the mean square.
        gate_first: Whether the gate is applied before the norm.
    """
    half = x.dtype in (torch.float16, torch.bfloat16)
    wide, opened = (v.float() if half else v for v in (x, gate))
    opened = F.silu(opened)
    wide = wide * opened if gate_first else wide
    y = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    y = y if weight is None else y * weight
    return (y if gate_first else y * opened).to(x.dtype)


def apply(x: Tensor, gate: Tensor, weight: Tensor | None, eps: float, gate_first: bool) -> Tensor:
    """Return the normalized and gated rows. The arguments are those of `reference`."""
    options: dict[str, Any] = {"eps": eps, "gate_first": gate_first}
    return fused(
        partial(forward, **options),
        partial(_run, **options),
        partial(pull, **options),
        partial(reference, **options),
        *(x, gate, weight),
    )


@torch.library.custom_op("ember_ml::triton_gated_rms_norm", mutates_args=())
def forward(x: Tensor, gate: Tensor, weight: Tensor | None, eps: float, gate_first: bool) -> Tensor:
    """Return the normalized and gated rows."""
    from ember_ml.backend.torch.kernels.programs import gated_rms_norm as programs

    y = x.new_empty(x.shape)
    features = x.shape[-1]
    with on_device(x):
        programs.normalize[(x.numel() // features,)](
            *(x.contiguous(), gate.contiguous(), _whole(weight), y, features, eps),
            HAS_WEIGHT=weight is not None,
            GATE_FIRST=gate_first,
            BLOCK=next_power(features),
            num_warps=warps(features),
        )
    return y


@torch.library.custom_op("ember_ml::triton_gated_rms_norm_backward", mutates_args=())
def backward(
    x: Tensor, gate: Tensor, weight: Tensor | None, g: Tensor, eps: float, gate_first: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, the gate and the weight.

    Args:
        x: Input, (..., features).
        gate: Input of the gate.
        weight: Scale, (features,). None: 1.
        g: Gradient of the output.
        eps: Added to the mean square.
        gate_first: Whether the gate is applied before the norm.
    """
    from ember_ml.backend.torch.kernels.programs import gated_rms_norm as programs

    features = x.shape[-1]
    rows = x.numel() // features
    count = cdiv(rows, PARTS)
    grad_x, grad_gate = x.new_empty(x.shape), gate.new_empty(gate.shape)
    parts = new_sums(x, cdiv(rows, count), features)
    with on_device(x):
        programs.gradients[(len(parts),)](
            *(x.contiguous(), gate.contiguous(), _whole(weight), g.contiguous()),
            *(grad_x, grad_gate, parts, rows, count, features, eps),
            HAS_WEIGHT=weight is not None,
            GATE_FIRST=gate_first,
            BLOCK=next_power(features),
            num_warps=warps(features),
        )
    return grad_x, grad_gate, parts.sum(0).to(x.dtype if weight is None else weight.dtype)


def _whole(weight: Tensor | None) -> Tensor | None:
    return None if weight is None else weight.contiguous()


def _run(x: Tensor, gate: Tensor, weight: Any, eps: float, gate_first: bool) -> Any:
    return forward(x, gate, weight, eps, gate_first), None


def pull(operands: Any, _: Any, g: Tensor, eps: float, gate_first: bool) -> list[Tensor | None]:
    """Return the gradients of x, the gate and the weight, which may be None."""
    *grads, of_weight = backward(*operands, g, eps, gate_first)
    return [*grads, None if operands[2] is None else of_weight]


@forward.register_fake
def _(x: Tensor, gate: Tensor, weight: Any, eps: float, gate_first: bool) -> Tensor:
    return x.new_empty(x.shape)


@backward.register_fake
def _(x: Tensor, gate: Tensor, weight: Any, g: Any, eps: float, gate_first: bool) -> Any:
    like = x if weight is None else weight
    return x.new_empty(x.shape), gate.new_empty(gate.shape), like.new_empty(x.shape[-1:])


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    *operands, ctx.eps, ctx.gate_first = inputs
    ctx.save_for_backward(*operands)


def _pull(ctx: Any, g: Tensor) -> Any:
    return *pull(ctx.saved_tensors, None, g, ctx.eps, ctx.gate_first), None, None


forward.register_autograd(_pull, setup_context=_save)
