"""Causal convolutions with filters as long as the sequence, and Hyena's gated form."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import MaskLike, composite
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops.signal.filtering import causal_conv1d, fft_conv

__all__ = ["causal_toeplitz", "gated_conv_inputs", "gated_long_conv", "long_conv"]

DIRECT = 256
"""Longest sequence for which products with Toeplitz matrices are faster than the FFT."""


@composite(rule=rules.REAL_FLOAT)
def long_conv(x: TensorLike, kernel: TensorLike) -> Tensor:
    """Return each channel convolved with its own long causal filter.

    y[b, c, t] = sum_s kernel[c, s] x[b, c, t - s]

    Computed by `fft_conv`, or for many short sequences by products with Toeplitz matrices, which
    are faster there.

    Args:
        x: (batch, channels, length).
        kernel: (channels, taps).
    """
    if x.ndim != 3 or kernel.ndim != 2 or kernel.shape[0] != x.shape[1] or 0 in kernel.shape:
        raise ShapeError(
            f"long_conv: x has shape {x.shape} and kernel {kernel.shape}; "
            "expected (batch, channels, length) and (channels, taps)"
        )
    batch, _, length = x.shape
    if not is_direct(batch, length):
        return fft_conv(x, kernel)
    y = ops.matmul(ops.swapaxes(x, 0, 1), causal_toeplitz(kernel, length))
    return ops.swapaxes(y, 0, 1)


@composite(rule=rules.ANY)
def causal_toeplitz(kernel: TensorLike, length: int) -> Tensor:
    """Return Toeplitz matrices of causal filters: (channels, source position, target position).

    Args:
        kernel: Filters, (channels, taps); the first tap applies to the current position.
        length: Number of positions.

    Example:
        >>> causal_toeplitz([[1, 2]], 3).tolist()
        [[[1, 2, 0], [0, 1, 2], [0, 0, 1]]]
    """
    channels, taps = kernel.shape
    if length < 0:
        raise ArgumentError(f"causal_toeplitz: length must be at least 0; got {length}")
    kernel = kernel[:, :length]
    row = ops.pad_constant(kernel, [(0, 0), (0, 2 * length - min(taps, length))])
    rows = ops.broadcast_to(ops.expand_dims(row, 1), (channels, length, 2 * length))
    flat = ops.reshape(rows, (channels, -1))[:, : length * (2 * length - 1)]
    # each row starts one element earlier than the previous one, which shifts its taps by one
    return ops.reshape(flat, (channels, length, 2 * length - 1))[:, :, :length]


@composite(rule=rules.REAL_FLOAT)
def gated_long_conv(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike,
    kernel: TensorLike,
    mask: MaskLike | None = None,
) -> Tensor:
    r"""Return a long convolution between two gates, all three filtered from the same values.

    .. math:: y = q \odot (h * (k \odot v))

    q, k and v are thirds of causal_conv1d(x, weight, bias), where x is repeated to match the number
    of filters.

    Args:
        x: (batch, shared, length), where shared divides 3 * channels.
        weight: Short filters, (3 * channels, taps); the last tap applies to the current element.
        bias: (3 * channels,).
        kernel: Long filters h, (channels, taps).
        mask: (batch, length), False where k * v is set to zero. Default: none.

    Reference: Poli et al., "Hyena Hierarchy: Towards Larger Convolutional Language Models", 2023.
    """
    _check(x, weight, bias, kernel, mask)
    repeated = ops.tile(x, (1, weight.shape[0] // x.shape[1], 1))
    query, key, value = ops.split(causal_conv1d(repeated, weight, bias), 3, axis=1)
    return query * long_conv(joined_values(key, value, mask), kernel)


@composite(rule=rules.REAL_FLOAT)
def gated_conv_inputs(
    x: TensorLike, weight: TensorLike, bias: TensorLike, mask: MaskLike | None = None
) -> Tensor:
    """Return the inputs k * v of the long convolution of `gated_long_conv`.

    Args:
        x: (batch, shared, length), where shared divides 3 * channels.
        weight: Short filters, (3 * channels, taps); the last tap applies to the current element.
        bias: (3 * channels,).
        mask: (batch, length), False where k * v is set to zero. Default: none.

    Returns:
        (batch, channels, length).
    """
    channels = weight.shape[0] // 3
    _check(x, weight, bias, weight[:channels], mask)
    repeated = ops.tile(x, (1, 3 * channels // x.shape[1], 1))[:, channels:]
    filtered = causal_conv1d(repeated, weight[channels:], bias[channels:])
    key, value = ops.split(filtered, 2, axis=1)
    return joined_values(key, value, mask)


def is_direct(batch: int, length: int) -> bool:
    """Return whether products with Toeplitz matrices are faster than the FFT."""
    return length <= DIRECT and 2 * batch >= length


def joined_values(key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Return k * v, zero where the mask is False."""
    joined = key * value
    return joined if mask is None else ops.where(ops.expand_dims(mask, 1), joined, 0.0)


def _check(x: Tensor, weight: Tensor, bias: Tensor, kernel: Tensor, mask: Tensor | None) -> None:
    if x.ndim == 3 and weight.ndim == kernel.ndim == 2 and kernel.size and weight.size:
        shared, filters = x.shape[1], 3 * kernel.shape[0]
        right = (weight.shape[0],) == bias.shape == (filters,) and shared and not filters % shared
        if right and (mask is None or mask.shape == (x.shape[0], x.shape[2])):
            return
    shapes = ", ".join(str(a.shape) for a in (x, weight, bias, kernel, mask) if a is not None)
    raise ShapeError(
        f"gated_long_conv: got shapes {shapes}; expected x (batch, shared, length), where shared "
        "divides 3 * channels, weight (3 * channels, taps), bias (3 * channels,), kernel "
        "(channels, taps) and mask (batch, length)"
    )
