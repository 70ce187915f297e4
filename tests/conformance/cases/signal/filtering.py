"""Rows for `ember_ml.ops.signal.filtering`."""

from __future__ import annotations

import numpy as np
import torch
from scipy.signal import fftconvolve
from torch.nn import functional as F

from tests.conformance.table import COMPLEXES, case, real

EXACT = ("float32", "float64")


def unit(*shape, **options):
    return real(*shape, low=-1.0, high=1.0, **options)


for name, reference in (("correlate", np.correlate), ("convolve", np.convolve)):
    key = f"signal.filtering.{name}"
    for mode in ("full", "same", "valid"):
        case(key, real(7), real(3), mode, reference=reference)
        for lengths in ((3, 7), (6, 4), (4, 6), (5, 5), (1, 1), (1, 4), (4, 1), (9, 2)):
            dtypes = ("int32", "float32", "complex64")
            case(
                key,
                real(lengths[0]),
                real(lengths[1]),
                mode,
                reference=reference,
                dtypes=dtypes,
            )
    case(key, real(6), real(3), reference=reference, dtypes=EXACT)
    case(
        key,
        real(20, low=-(2**27), high=2**27),
        real(3, high=2**30),
        "full",
        reference=reference,
        dtypes=("int64",),
    )


def causal(x, kernel, **_):
    """Compute the sum by its definition, in float64."""
    x, kernel = np.broadcast_arrays(x[..., None], kernel[..., None, :])[0][..., 0], kernel
    y = np.zeros(
        np.broadcast_shapes(x.shape, (*kernel.shape[:-1], x.shape[-1])), np.result_type(x, kernel)
    )
    for lag in range(min(kernel.shape[-1], x.shape[-1])):
        y[..., lag:] += kernel[..., lag, None] * x[..., : x.shape[-1] - lag]
    return y


case("signal.filtering.fft_conv", unit(2, 3, 10), unit(3, 10), reference=causal, rtol=4.0)
for length, taps in ((1, 1), (1, 5), (2, 2), (7, 3), (64, 64), (63, 100), (100, 1), (1000, 1000)):
    case(
        "signal.filtering.fft_conv",
        unit(2, length),
        unit(taps),
        reference=causal,
        dtypes=EXACT,
        rtol=10.0,
    )
    for mode in ("full", "same"):
        case(
            "signal.filtering.fft_conv",
            unit(length),
            unit(taps),
            mode,
            reference=lambda x, y, mode: fftconvolve(x, y, mode),
            dtypes=(*EXACT, *COMPLEXES),
            rtol=10.0,
        )
case("signal.filtering.fft_conv", unit(2, 1, 9), unit(4, 5), reference=causal, dtypes=EXACT)
case("signal.filtering.fft_conv", unit(0, 9), unit(5), reference=causal, dtypes=EXACT)
for axis, kernel in ((0, unit(3)), (1, unit(3)), (-2, unit(3, 4)), (1, unit(2, 3, 1))):
    case(
        "signal.filtering.fft_conv",
        unit(2, 5, 4),
        kernel,
        axis=axis,
        reference=lambda x, k, axis: np.moveaxis(
            causal(np.moveaxis(x, axis, -1), k if k.ndim == 1 else np.moveaxis(k, -2, -1)), -1, axis
        ),
        dtypes=EXACT,
    )


def depthwise(x, weight, bias=None):
    x, weight = torch.from_numpy(np.ascontiguousarray(x)), torch.from_numpy(weight)[:, None]
    x = F.pad(x, (weight.shape[-1] - 1, 0))
    return F.conv1d(
        x, weight, None if bias is None else torch.from_numpy(bias), groups=len(weight)
    ).numpy()


case("signal.filtering.causal_conv1d", unit(2, 3, 8), unit(3, 4), unit(3), reference=depthwise)
for batch, channels, length, taps in (
    (1, 1, 1, 1),
    (2, 3, 1, 4),
    (2, 4, 63, 3),
    (0, 2, 5, 2),
    (1, 2, 40, 33),
):
    case(
        "signal.filtering.causal_conv1d",
        unit(batch, channels, length),
        unit(channels, taps),
        reference=depthwise,
        dtypes=EXACT,
    )


def depthwise_silu(x, weight, bias=None):
    y = depthwise(x, weight, bias)
    return y / (1 + np.exp(-y))


SILU = "signal.filtering.causal_conv1d_silu"
case(SILU, unit(2, 3, 8), unit(3, 4), unit(3), reference=depthwise_silu)
case(SILU, unit(2, 3, 2), unit(3, 4), reference=depthwise_silu, dtypes=EXACT)
