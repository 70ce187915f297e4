"""Program of a long causal convolution in half precision, by a DFT as two matrix products.

The DFT of N = M * M elements in rows of M is F (x W) F after the products of both sides, where F is
the DFT of M elements and W = exp(-2 pi i n k / N) the twiddle factors. F is unitary, so that sums
do not overflow float16. Tensor cores compute the products, with sums in float32.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ember_ml.backend.torch.kernels.programs.builds import Build


@triton.jit
def _spectrum(x_ptr, n, length, cos, sin, real, imaginary, REVERSED: tl.constexpr):
    """Return the DFT of a sequence followed by zeros, as real and imaginary parts."""
    at = n
    if REVERSED:
        at = length - 1 - n
    x = tl.load(x_ptr + at, n < length, 0.0).to(cos.dtype)
    a, b = tl.dot(cos, x), -tl.dot(sin, x)
    c = (a * real - b * imaginary).to(cos.dtype)
    d = (a * imaginary + b * real).to(cos.dtype)
    return tl.dot(c, cos) + tl.dot(d, sin), tl.dot(d, cos) - tl.dot(c, sin)


@triton.jit
def convolve(
    x_ptr,
    h_ptr,
    cos_ptr,
    sin_ptr,
    real_ptr,
    imaginary_ptr,
    y_ptr,
    channels,
    length,
    taps,
    count,
    h_batch,
    scale,
    X_REVERSED: tl.constexpr,
    Y_REVERSED: tl.constexpr,
    M: tl.constexpr,
):
    """Write `count` elements of the convolution of one channel, from the last one if reversed."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * length
    h_ptr += row // channels * h_batch + row % channels * taps
    lane = tl.arange(0, M)
    n = lane[:, None] * M + lane[None, :]
    cos, sin = tl.load(cos_ptr + n), tl.load(sin_ptr + n)
    real, imaginary = tl.load(real_ptr + n), tl.load(imaginary_ptr + n)
    a, b = _spectrum(h_ptr, n, taps, cos, sin, real, imaginary, False)
    c, d = _spectrum(x_ptr, n, length, cos, sin, real, imaginary, X_REVERSED)
    p, q = (a * c - b * d).to(cos.dtype), (a * d + b * c).to(cos.dtype)
    a, b = tl.dot(p, cos) - tl.dot(q, sin), tl.dot(p, sin) + tl.dot(q, cos)
    p = (a * real + b * imaginary).to(cos.dtype)
    q = (b * real - a * imaginary).to(cos.dtype)
    y = scale * (tl.dot(cos, p) - tl.dot(sin, q))
    at = n
    if Y_REVERSED:
        at = length - 1 - n
    tl.store(y_ptr + row * count + at, y, (n < length) & (at >= 0) & (at < count))


BUILDS = [
    Build(
        convolve,
        {"X_REVERSED": False, "Y_REVERSED": False, "M": size},
        {"scale": "fp32", **{f"{name}_ptr": f"*{dtype}" for name in ("x", "h", "cos", "sin", "y")}},
        warps,
    )
    for dtype in ("bf16", "fp16")
    for size, warps in ((16, 1), (32, 4))
]
