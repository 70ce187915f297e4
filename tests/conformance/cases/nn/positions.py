"""Rows for `ember_ml.ops.nn.positions`."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import FLOATS, case, integers, real


def rope(x, positions=None, base=10000.0, offset=0, interleaved=False, frequencies=None):
    """Compute the rotation as a product of complex numbers."""
    pairs = x.shape[-1] // 2
    places = np.arange(x.shape[-2]) if positions is None else positions
    speeds = base ** (-np.arange(pairs) / max(pairs, 1)) if frequencies is None else frequencies
    turn = np.exp(1j * (places + offset)[..., None] * np.asarray(speeds))
    first, second = (
        (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :pairs], x[..., pairs:])
    )
    turned = (first + 1j * second) * turn
    parts = [turned.real, turned.imag]
    return np.stack(parts, -1).reshape(x.shape) if interleaved else np.concatenate(parts, -1)


for interleaved in (False, True):
    for shape in ((5, 4), (2, 3, 7, 6), (2, 5, 2), (0, 4), (2, 2, 3, 5, 8)):
        case("nn.positions.rope", real(*shape), reference=rope, interleaved=interleaved)
    case(
        "nn.positions.rope",
        real(2, 3, 5, 4),
        integers(2, 1, 5, high=50),
        dtypes=FLOATS,
        reference=rope,
        offset=3,
        base=100.0,
        interleaved=interleaved,
    )
    case("nn.positions.rope", real(1, 2, 3, 4), reference=rope, offset=100, interleaved=interleaved)
    speeds = {"frequencies": (1.0, 0.3, 0.0), "interleaved": interleaved}
    case("nn.positions.rope", real(2, 5, 6), reference=rope, offset=3, **speeds)
    case(
        "nn.positions.rope",
        real(2, 5, 6),
        integers(2, 5, high=50),
        dtypes=FLOATS,
        reference=rope,
        **speeds,
    )
case("nn.positions.rope", real(3, 4), real(3, dtype="float32"), dtypes=FLOATS, reference=rope)


def rotary_heads(x, num_heads, num_kv_heads=None, **rotation):
    """Slice the features of each head, and rotate those of queries and keys."""
    num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    sizes = num_heads, num_kv_heads, num_kv_heads
    heads = np.stack(np.split(x, sum(sizes), -1), 1)
    query, key, value = np.split(heads, np.cumsum(sizes)[:2], 1)
    return rope(query, **rotation), rope(key, **rotation), value


for shape, heads in (
    ((2, 5, 12), (2,)),
    ((2, 7, 48), (4, 2)),
    ((1, 1, 10), (3, 1)),
    ((3, 9, 24), (1, None)),
    ((2, 0, 12), (2,)),
    ((0, 3, 12), (2,)),
):
    case(
        "nn.positions.rotary_heads",
        *(real(*shape), *heads),
        reference=rotary_heads,
        result=("same",) * 3,
    )
for options in ({"offset": 3, "base": 100.0}, {"offset": 2, "frequencies": (1.0, 0.3, 0.0)}):
    case(
        "nn.positions.rotary_heads",
        *(real(2, 5, 24, transposed=True), 2, 1),
        reference=rotary_heads,
        result=("same",) * 3,
        **options,
    )
