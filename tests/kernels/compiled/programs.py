"""Programs that do not compile, or need more registers than a GPU has."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def wrong(x_ptr, BLOCK: tl.constexpr):  # noqa: N803
    tl.store(x_ptr + tl.arange(0, BLOCK), tl.arange(0, 2 * BLOCK))


@triton.jit
def large(x_ptr, y_ptr, steps, BLOCK: tl.constexpr):  # noqa: N803
    lane = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lane)
    y = tl.load(y_ptr + lane)
    for _ in range(steps):
        x, y = tl.exp(x) + y, x * y
    tl.store(x_ptr + lane, x + y)
