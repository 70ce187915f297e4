"""Gated activations."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._arguments import normalize_axis
from ember_ml.ops._composite import along, in_float32
from ember_ml.ops.nn.activations import silu
from ember_ml.ops.nn.normalization import rms_norm

__all__ = ["gated_rms_norm", "glu", "prelu", "silu_gate", "swiglu"]


def _halves(op: str, x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    if x.shape[normalize_axis(op, axis, x.ndim)] % 2:
        raise ShapeError(f"{op}: axis {axis} of shape {x.shape} must have even length")
    first, second = ops.split(x, 2, axis=axis)
    return first, second


@composite(rule=rules.REAL_FLOAT)
@in_float32
def glu(x: TensorLike, axis: int = -1) -> Tensor:
    """Return first * sigmoid(second) for the two halves of an axis.

    Args:
        x: Input tensor.
        axis: Axis to halve, of even length.
    """
    first, second = _halves("glu", x, axis)
    return first * ops.sigmoid(second)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def swiglu(x: TensorLike, axis: int = -1) -> Tensor:
    """Return silu(first) * second for the two halves of an axis.

    Args:
        x: Input tensor.
        axis: Axis to halve, of even length.

    Reference: Shazeer, "GLU Variants Improve Transformer", 2020.
    """
    first, second = _halves("swiglu", x, axis)
    return silu(first) * second


@composite(rule=rules.REAL_FLOAT)
@in_float32
def silu_gate(x: TensorLike, gate: TensorLike) -> Tensor:
    """Return `x * silu(gate)`, in one kernel where a backend has it.

    Args:
        x: Input tensor.
        gate: Input of the gate; its shape broadcasts with that of x.
    """
    return x * silu(gate)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def prelu(x: TensorLike, weight: TensorLike, axis: int = 1) -> Tensor:
    """Return x where it is positive, else weight * x.

    Args:
        x: Input tensor.
        weight: One slope, or one for each position along `axis`.
        axis: Axis of the slopes.
    """
    if weight.size == 1:
        weight = ops.reshape(weight, ())
    else:
        weight = along("prelu", "weight", weight, x, normalize_axis("prelu", axis, x.ndim))
    return ops.where(x > 0, x, x * weight)


@composite(rule=rules.REAL_FLOAT)
def gated_rms_norm(
    x: TensorLike,
    gate: TensorLike,
    weight: TensorLike | None = None,
    eps: float = 1e-6,
    gate_first: bool = False,
) -> Tensor:
    """Return `rms_norm(x, weight, eps) * silu(gate)`, in one kernel where a backend has it.

    Args:
        x: Input, (..., features).
        gate: Input of the gate, in the shape of x.
        weight: Scale, (features,). Default: 1.
        eps: Added to the mean square for numerical stability.
        gate_first: Whether to return `rms_norm(x * silu(gate), weight, eps)` instead.
    """
    if x.shape != gate.shape:
        raise ShapeError(
            f"gated_rms_norm: x has shape {x.shape} and gate {gate.shape}; expected one shape"
        )
    if gate_first:
        return rms_norm(silu_gate(x, gate), weight, eps)
    return silu_gate(rms_norm(x, weight, eps), gate)
