"""Rows for `ember_ml.ops.signal.long_convolution`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.table import Sample, case, mask, real

KEY = "signal.long_convolution"
EXACT = ("float32", "float64")


def unit(*shape: int) -> Sample:
    return real(*shape, low=-1.0, high=1.0)


def convolved(x: Any, kernel: Any) -> Any:
    """Compute one lag at a time."""
    y = np.zeros_like(x)
    for lag in range(min(kernel.shape[1], x.shape[2])):
        y[..., lag:] += kernel[:, lag, None] * x[..., : x.shape[2] - lag]
    return y


def gated(x: Any, weight: Any, bias: Any, kernel: Any, mask: Any = None) -> Any:
    query, joined = gates(x, weight, bias, mask)
    return query * convolved(joined, kernel)


def gates(x: Any, weight: Any, bias: Any, mask: Any = None) -> tuple[Any, Any]:
    """Compute each channel separately."""
    filtered = [
        convolved(x[:, [at % x.shape[1]]], weight[[at], ::-1])[:, 0] + bias[at]
        for at in range(len(weight))
    ]
    query, key, value = np.split(np.stack(filtered, 1), 3, axis=1)
    return query, key * value if mask is None else np.where(mask[:, None], key * value, 0)


case(f"{KEY}.long_conv", unit(2, 3, 4), unit(3, 4), reference=convolved, rtol=4.0)
case(f"{KEY}.long_conv", unit(2, 3, 9), unit(3, 9), reference=convolved, rtol=4.0)
for batch, channels, length, taps in (
    (1, 1, 1, 1),
    (1, 2, 40, 7),
    (20, 2, 30, 50),
    (20, 1, 30, 5),
    (0, 2, 5, 3),
    (1, 1, 300, 300),
):
    case(
        f"{KEY}.long_conv",
        unit(batch, channels, length),
        unit(channels, taps),
        reference=convolved,
        dtypes=EXACT,
        rtol=10.0,
    )


def matrices(kernel: Any, length: int) -> Any:
    """Return the responses to single impulses."""
    impulses = np.eye(length, dtype=kernel.dtype)[:, None].repeat(
        len(kernel), 1
    )  # (source, channels, target)
    return convolved(impulses, kernel).swapaxes(0, 1)


for taps, length in ((3, 4), (4, 4), (5, 2), (1, 1), (2, 6)):
    case(f"{KEY}.causal_toeplitz", real(2, taps), length, reference=matrices, dtypes=EXACT)
case(f"{KEY}.causal_toeplitz", real(2, 3), 4, reference=matrices)


def row(batch: int, shared: int, channels: int, length: int, **options: Any) -> None:
    filters = unit(3 * channels, 3), unit(3 * channels), unit(channels, length)
    hidden = options.pop("hidden", False)
    extra = (mask(batch, length),) if hidden else ()
    x = unit(batch, shared, length)
    case(f"{KEY}.gated_long_conv", x, *filters, *extra, reference=gated, rtol=10.0, **options)
    case(
        f"{KEY}.gated_conv_inputs",
        *(x, *filters[:2], *extra),
        reference=lambda *given: gates(*given)[1],
        rtol=10.0,
        **options,
    )


row(2, 3, 4, 4)
row(2, 6, 2, 9, hidden=True)
row(1, 2, 2, 1, dtypes=EXACT)
row(0, 3, 2, 5, dtypes=EXACT)
row(9, 3, 1, 17, hidden=True, dtypes=EXACT)
