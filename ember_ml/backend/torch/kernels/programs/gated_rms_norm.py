"""Programs of the RMS norm with a SiLU gate, over rows of features."""

from __future__ import annotations

import triton
import triton.language as tl

from ember_ml.backend.torch.kernels.programs.builds import Build


@triton.jit
def _row(x_ptr, gate_ptr, at, inside, eps, features, GATE_FIRST: tl.constexpr):
    """Return x, the gate's input and sigmoid, the normalized values and the inverse norm."""
    x = tl.load(x_ptr + at, inside, 0.0).to(tl.float32)
    gate = tl.load(gate_ptr + at, inside, 0.0).to(tl.float32)
    s = tl.sigmoid(gate)
    values = x
    if GATE_FIRST:
        values = x * gate * s
    inverse = 1.0 / tl.sqrt(tl.sum(values * values, 0) / features + eps)
    return x, gate, s, values * inverse, inverse


@triton.jit
def normalize(
    x_ptr,
    gate_ptr,
    weight_ptr,
    y_ptr,
    features,
    eps,
    HAS_WEIGHT: tl.constexpr,
    GATE_FIRST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the output of a row."""
    lane = tl.arange(0, BLOCK)
    inside = lane < features
    at = tl.program_id(0).to(tl.int64) * features + lane
    _, gate, s, y, _ = _row(x_ptr, gate_ptr, at, inside, eps, features, GATE_FIRST)
    if HAS_WEIGHT:
        y *= tl.load(weight_ptr + lane, inside, 0.0).to(tl.float32)
    if not GATE_FIRST:
        y *= gate * s
    tl.store(y_ptr + at, y, inside)


@triton.jit
def gradients(
    x_ptr,
    gate_ptr,
    weight_ptr,
    g_ptr,
    grad_x_ptr,
    grad_gate_ptr,
    grad_weight_ptr,
    rows,
    count,
    features,
    eps,
    HAS_WEIGHT: tl.constexpr,
    GATE_FIRST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the gradients of `count` rows, and their part of the gradient of the weight."""
    lane = tl.arange(0, BLOCK)
    inside = lane < features
    weight = tl.full([BLOCK], 1.0, tl.float32)
    if HAS_WEIGHT:
        weight = tl.load(weight_ptr + lane, inside, 0.0).to(tl.float32)
    grad_weight = tl.zeros([BLOCK], tl.float32)
    first = tl.program_id(0).to(tl.int64) * count
    for step in range(tl.minimum(count, rows - first)):
        at = (first + step) * features + lane
        x, gate, s, unit, inverse = _row(x_ptr, gate_ptr, at, inside, eps, features, GATE_FIRST)
        g = tl.load(g_ptr + at, inside, 0.0).to(tl.float32)
        slope = s * (1.0 + gate * (1.0 - s))  # of SiLU
        into = g
        if not GATE_FIRST:
            into = g * gate * s
        grad_weight += into * unit
        into *= weight
        of_values = inverse * (into - unit * tl.sum(into * unit, 0) / features)
        if GATE_FIRST:
            tl.store(grad_x_ptr + at, of_values * gate * s, inside)
            tl.store(grad_gate_ptr + at, of_values * x * slope, inside)
        else:
            tl.store(grad_x_ptr + at, of_values, inside)
            tl.store(grad_gate_ptr + at, g * unit * weight * slope, inside)
    tl.store(grad_weight_ptr + tl.program_id(0) * features + lane, grad_weight, inside)


_FLAGS = {"HAS_WEIGHT": True, "GATE_FIRST": False}
_HALF = {
    f"{name}_ptr": "*bf16" for name in ("x", "gate", "weight", "y", "g", "grad_x", "grad_gate")
}
BUILDS = [
    Build(program, {**_FLAGS, "BLOCK": block}, {"eps": "fp32", **types}, warps)
    for block, warps in ((128, 1), (4096, 8))
    for types in ({}, _HALF)
    for program in (normalize, gradients)
]
