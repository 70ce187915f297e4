"""Adjoints of causal convolutions, for the VJP rules: one call each, so that a backend can fuse it.

The bodies are the references. Their gradients, which higher derivatives need, are those of the ops
in them.
"""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import MaskLike, composite
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops.fft import irfft, rfft
from ember_ml.ops.nn.adjoints import silu_adjoint
from ember_ml.ops.signal._geometry import CONVOLUTION
from ember_ml.ops.signal.filtering import causal_conv1d, fast_fft_length
from ember_ml.ops.signal.long_convolution import (
    causal_toeplitz,
    is_direct,
    joined_values,
    long_conv,
)

__all__: list[str] = []


@composite(rule=CONVOLUTION)
def causal_conv1d_adjoint(
    g: TensorLike, x: TensorLike, weight: TensorLike
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `causal_conv1d`: of x, weight and bias.

    Args:
        g: Gradient of the result.
        x: (batch, channels, length).
        weight: (channels, taps).
    """
    taps, length = weight.shape[1], x.shape[2]
    later = ops.pad_constant(g, [(0, 0), (0, 0), (0, taps - 1)])
    past = ops.conj(ops.pad_constant(x, [(0, 0), (0, 0), (taps - 1, 0)]))
    into, products = ops.zeros_like(x), []
    for tap in range(taps):
        back = taps - 1 - tap
        factor = ops.conj(ops.expand_dims(weight[:, tap], 1))
        into = into + factor * later[:, :, back : back + length]
        products.append(ops.sum(g * past[:, :, tap : tap + length], (0, 2)))
    return into, ops.stack(products, 1), ops.sum(g, (0, 2))


@composite(rule=rules.REAL_FLOAT)
def causal_conv1d_silu_adjoint(
    g: TensorLike, x: TensorLike, weight: TensorLike, bias: TensorLike | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `causal_conv1d_silu`: of x, weight and bias.

    Args:
        g: Gradient of the result.
        x: (batch, channels, length).
        weight: (channels, taps).
        bias: (channels,). Default: none.
    """
    of_filtered = silu_adjoint(g, causal_conv1d(x, weight, bias))
    return causal_conv1d_adjoint(of_filtered, x, weight)


@composite(rule=rules.REAL_FLOAT)
def long_conv_adjoint(g: TensorLike, x: TensorLike, kernel: TensorLike) -> tuple[Tensor, Tensor]:
    """Return the gradients of `long_conv`: of x and kernel.

    Args:
        g: Gradient of the result.
        x: (batch, channels, length).
        kernel: (channels, taps).
    """
    batch, channels, length = x.shape
    taps = min(kernel.shape[1], length)
    if is_direct(batch, length):
        g, x = ops.swapaxes(g, 0, 1), ops.swapaxes(x, 0, 1)
        into = ops.matmul(g, ops.matrix_transpose(causal_toeplitz(kernel, length)))
        products = ops.matmul(ops.matrix_transpose(x), g)  # (channels, source, target)
        wide = ops.pad_constant(products, [(0, 0), (0, 0), (0, length - 1)])
        flat = ops.reshape(wide, (channels, length * (2 * length - 1)))
        rows = ops.pad_constant(flat, [(0, 0), (0, length)])  # the diagonals become columns
        sums = ops.sum(ops.reshape(rows, (channels, length, 2 * length)), 1)
        into = ops.swapaxes(into, 0, 1)
    else:
        size = fast_fft_length(length + taps - 1)
        spectrum = rfft(g, size)
        into = irfft(spectrum * ops.conj(rfft(kernel[:, :taps], size)), size)[..., :length]
        sums = irfft(ops.sum(spectrum * ops.conj(rfft(x, size)), 0), size)
    return into, ops.pad_constant(sums[:, :taps], [(0, 0), (0, kernel.shape[1] - taps)])


@composite(rule=rules.REAL_FLOAT)
def gated_long_conv_adjoint(
    g: TensorLike,
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike,
    kernel: TensorLike,
    mask: MaskLike | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of `gated_long_conv`: of x, weight, bias and kernel.

    Args:
        g: Gradient of the result.
        x: (batch, shared, length).
        weight: Short filters, (3 * channels, taps).
        bias: (3 * channels,).
        kernel: Long filters, (channels, taps).
        mask: (batch, length), False where k * v is set to zero. Default: none.
    """
    batch, shared, length = x.shape
    groups = weight.shape[0] // shared
    repeated = ops.tile(x, (1, groups, 1))
    query, key, value = ops.split(causal_conv1d(repeated, weight, bias), 3, axis=1)
    joined = joined_values(key, value, mask)
    of_joined, of_kernel = long_conv_adjoint(g * query, joined, kernel)
    if mask is not None:
        of_joined = ops.where(ops.expand_dims(mask, 1), of_joined, 0.0)
    parts = [g * long_conv(joined, kernel), of_joined * value, of_joined * key]
    into, of_weight, of_bias = causal_conv1d_adjoint(ops.concat(parts, 1), repeated, weight)
    into = ops.sum(ops.reshape(into, (batch, groups, shared, length)), 1)
    return into, of_weight, of_bias, of_kernel
