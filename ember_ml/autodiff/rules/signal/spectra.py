"""VJP rule of power spectra."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.ops._composite import widened
from ember_ml.ops.fft import irfft, rfft
from ember_ml.ops.signal.spectra import power_spectra


@vjp_rule(power_spectra)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    window: Tensor,
    hop_length: int,
    fft_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    length = window.shape[0]
    size = length if fft_length is None else fft_length
    frames, window, g = ops.frame(widened(x), length, hop_length), widened(window), widened(g)
    spectrum = rfft(frames * window, size)
    # `irfft` counts a frequency with a mirror twice: half of the slope, 2 g, for these
    middle = (size - 1) // 2
    mirrored = ops.concat(
        [2.0 * g[..., :1], g[..., 1 : middle + 1], 2.0 * g[..., middle + 1 :]], -1
    )
    slope = irfft(spectrum * mirrored, size, norm="forward")[..., :length]
    signal = ops.overlap_add(slope * window, hop_length)
    missing = x.shape[-1] - signal.shape[-1]
    signal = ops.pad_constant(signal, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    axes = tuple(range(frames.ndim - 1))
    return ops.astype(signal, x.dtype), ops.astype(ops.sum(slope * frames, axes), x.dtype)
