"""Products with quantized weights."""

from __future__ import annotations

import mlx.core as mx

from ember_ml._core.errors import ShapeError
from ember_ml._core.packing import row_width

_GROUP_SIZES = (32, 64, 128)
"""Group sizes of the fused kernel."""


def quantized_linear(
    x: mx.array,
    packed: mx.array,
    scale: mx.array,
    shift: mx.array | None = None,
    bias: mx.array | None = None,
    group_size: int = 64,
) -> mx.array:
    if x.ndim == 0:
        raise ShapeError("quantized_linear: x must have at least one axis, the features")
    features = _width("quantized_linear", packed, scale, shift, group_size, x.shape[-1])
    if group_size in _GROUP_SIZES and features % group_size == 0 and scale.size and x.size:
        out = _fused(x, packed, scale, shift, group_size)
        return out if bias is None else out + bias
    weight = dequantize(packed, scale, shift, group_size, features)
    return mx.matmul(x, weight.T) if bias is None else mx.addmm(bias, x, weight.T)


def _fused(
    x: mx.array, packed: mx.array, scale: mx.array, shift: mx.array | None, group_size: int
) -> mx.array:
    """Return x @ weight^T without a copy of the weight in floating point.

    The kernel takes unsigned integers in words of 32 bits, in the order of ours. It adds in the
    dtype of x, so half precision is computed in float32.
    """
    words, bits = packed.view(mx.uint32), 4
    step = scale.astype(mx.float32)
    zero = mx.zeros_like(step) if shift is None else shift.astype(mx.float32)
    if packed.dtype == mx.int8:  # q + 128, with the weight of the integer 0 adapted
        words, bits = mx.bitwise_xor(words, mx.array(0x80808080, mx.uint32)), 8
        zero = zero - 128.0 * step
    out = mx.quantized_matmul(x.astype(mx.float32), words, step, zero, True, group_size, bits)
    return out.astype(x.dtype)


def dequantize(
    packed: mx.array,
    scale: mx.array,
    shift: mx.array | None = None,
    group_size: int = 64,
    features: int | None = None,
) -> mx.array:
    width = _width("dequantize", packed, scale, shift, group_size, features)
    if packed.dtype == mx.uint8:
        pairs = mx.stack([packed & 15, packed >> 4], axis=-1)
        packed = pairs.reshape(*packed.shape[:-1], 2 * packed.shape[-1])[..., :width]
    q, groups = packed.astype(scale.dtype), scale.shape[-1]
    if groups > 1 and groups * group_size != width:
        scale = mx.repeat(scale, group_size, axis=-1)[..., :width]
        shift = None if shift is None else mx.repeat(shift, group_size, axis=-1)[..., :width]
        return q * scale if shift is None else q * scale + shift
    q = q.reshape(*scale.shape, width // max(1, groups)) * scale[..., None]
    q = q if shift is None else q + shift[..., None]
    return q.reshape(*scale.shape[:-1], width)


def _width(
    op: str,
    packed: mx.array,
    scale: mx.array,
    shift: mx.array | None,
    group_size: int,
    features: int | None,
) -> int:
    dtype = str(packed.dtype).rpartition(".")[2]
    shifts = None if shift is None else shift.shape
    return row_width(op, dtype, packed.shape, scale.shape, shifts, group_size, features)
