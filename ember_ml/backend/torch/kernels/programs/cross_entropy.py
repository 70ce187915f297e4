"""Programs of the cross-entropy of classes, without storing probabilities."""

from __future__ import annotations

import triton
import triton.language as tl

from ember_ml.backend.torch.kernels.programs.builds import Build


@triton.jit
def losses(
    x_ptr,
    target_ptr,
    loss_ptr,
    total_ptr,
    classes,
    ignored,
    smoothing,
    x_row,
    x_class,
    SMOOTHED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the loss of a row, and the logarithm of its sum of exponentials."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row
    wide = tl.full([], 0, tl.int64)
    lane = wide + tl.arange(0, BLOCK)
    highest = tl.full([], -float("inf"), tl.float32)
    total = tl.full([], 0.0, tl.float32)
    spread = tl.full([], 0.0, tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + at * x_class, at < classes, -float("inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(x, 0))
        shift = tl.where(higher == -float("inf"), 0.0, higher)  # -inf - -inf is NaN
        total = total * tl.exp(highest - shift) + tl.sum(tl.exp(x - shift), 0)
        highest = higher
        if SMOOTHED:
            spread += tl.sum(tl.where(at < classes, x, 0.0), 0)
    total = tl.log(total) + highest
    target = tl.load(target_ptr + row)
    known = (target >= 0) & (target < classes)
    own = tl.load(x_ptr + tl.where(known, target, 0) * x_class).to(tl.float32)
    loss = total - own
    if SMOOTHED:
        loss = (1.0 - smoothing) * loss + smoothing * (total - spread / classes)
    loss = tl.where(known, loss, float("nan"))
    tl.store(loss_ptr + row, tl.where(target == ignored, 0.0, loss))
    tl.store(total_ptr + row, total)


@triton.jit
def gradients(
    x_ptr,
    target_ptr,
    total_ptr,
    g_ptr,
    grad_ptr,
    classes,
    ignored,
    smoothing,
    x_row,
    x_class,
    BLOCK: tl.constexpr,
):
    """Write the gradient of a block of logits."""
    row = tl.program_id(0).to(tl.int64)
    wide = tl.full([], 0, tl.int64)
    at = wide + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < classes
    x = tl.load(x_ptr + row * x_row + at * x_class, inside, -float("inf")).to(tl.float32)
    target = tl.load(target_ptr + row)
    total = tl.load(total_ptr + row)
    g = tl.load(g_ptr + row).to(tl.float32)
    grad = tl.exp(x - total) - smoothing / classes
    grad -= tl.where(at == target, 1.0 - smoothing, 0.0)
    grad = tl.where(target == ignored, 0.0, g * grad)
    tl.store(grad_ptr + row * classes + at, grad, inside)


_TYPES = {"target_ptr": "*i64", "smoothing": "fp32", "ignored": "i64"}
_HALF = {**_TYPES, "x_ptr": "*bf16", "grad_ptr": "*bf16"}
BUILDS = [
    Build(losses, {"SMOOTHED": True, "BLOCK": 2048}, _TYPES),
    Build(losses, {"SMOOTHED": True, "BLOCK": 2048}, _HALF),
    Build(gradients, {"BLOCK": 2048}, _TYPES),
    Build(gradients, {"BLOCK": 2048}, _HALF),
]
