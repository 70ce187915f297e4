"""Short-time Fourier transforms."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.convert import as_backend
from ember_ml._core.dispatch import composite
from ember_ml._core.dtype import DEFAULT_FLOAT, real_part
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.runtime import native_dtype
from ember_ml._core.tensor import Tensor, TensorLike, wrap
from ember_ml.ops._composite import narrowed, widened
from ember_ml.ops.fft import irfft, rfft
from ember_ml.ops.signal import windows
from ember_ml.ops.signal.framing import check_steps, frame, overlap_add

__all__ = ["istft", "power_spectra", "spectrogram", "stft"]


def _window(op: str, window: TensorLike | str, length: int, like: Tensor) -> Tensor:
    """Return a window, given by name or values, on the backend of `like` and in its precision."""
    dtype = real_part(like.dtype) if like.dtype.kind in ("float", "complex") else DEFAULT_FLOAT
    if not isinstance(window, str):
        window = as_backend(window, like.backend, dtype)
        if window.shape != (length,):
            raise ShapeError(f"{op}: window has shape {window.shape}; expected ({length},)")
        return window
    create = getattr(windows, f"{window}_window", None)
    if create is None:
        names = ", ".join([name.removesuffix("_window") for name in windows.__all__])
        raise ArgumentError(f"{op}: unknown window {window!r}; expected one of {names}")
    native = create.op.natives[like.backend]
    values = native(length, dtype=native_dtype(like.backend, dtype), device=like.device)
    return wrap(values, like.backend)


def _hop(hop_length: int | None, frame_length: int) -> int:
    return max(frame_length // 4, 1) if hop_length is None else hop_length


def _surround(x: Tensor, margin: int, pad_mode: str) -> Tensor:
    """Return x with `margin` samples added on each side."""
    if pad_mode == "constant":
        return ops.pad_constant(x, [*[(0, 0)] * (x.ndim - 1), (margin, margin)])
    if pad_mode != "reflect":
        raise ArgumentError(f"stft: pad_mode must be 'reflect' or 'constant'; got {pad_mode!r}")
    if x.shape[-1] <= margin:
        raise ShapeError(
            f"stft: cannot reflect {margin} of {x.shape[-1]} samples; use a longer signal"
        )
    before = ops.flip(x[..., 1 : margin + 1], axis=-1)
    after = ops.flip(x[..., x.shape[-1] - margin - 1 : -1], axis=-1)
    return ops.concat([before, x, after], axis=-1)


@composite(rule=rules.REAL_FLOAT)
def stft(
    x: TensorLike,
    frame_length: int | None = None,
    hop_length: int | None = None,
    fft_length: int | None = None,
    window: TensorLike | str | None = "hann",
    center: bool = False,
    pad_mode: str = "reflect",
) -> Tensor:
    """Return the spectra of frames: (..., samples) -> (..., frames, fft_length // 2 + 1), complex.

    Without `frame_length` the last axis is one frame, already windowed, and is only transformed.

    Args:
        x: Signal, (..., samples), or frames of it.
        frame_length: Number of samples in a frame. Default: x holds windowed frames in its last
            axis.
        hop_length: Number of samples between the starts of two frames. Default: frame_length // 4.
        fft_length: Length to zero-pad frames to. Default: `frame_length`.
        window: Window to multiply frames with: a name such as "hann" or "hamming", a tensor, or
            None.
        center: Whether frame t is centered at sample t * hop_length; else it starts there.
        pad_mode: Padding at both ends if `center`: "reflect" or "constant".
    """
    if frame_length is None:
        if hop_length is not None:
            raise ArgumentError(f"stft: hop_length={hop_length} requires frame_length")
        return rfft(x, fft_length)
    check_steps("stft", frame_length=frame_length)
    if fft_length is not None and fft_length < frame_length:
        raise ArgumentError(
            f"stft: fft_length ({fft_length}) must be at least frame_length ({frame_length})"
        )
    x = widened(x)
    x = _surround(x, frame_length // 2, pad_mode) if center else x
    frames = frame(x, frame_length, _hop(hop_length, frame_length))
    if window is not None:
        frames = ops.multiply(frames, _window("stft", window, frame_length, x))
    return rfft(frames, fft_length)


def _fit(x: Tensor, start: int, stop: int) -> Tensor:
    """Return the samples from `start` to `stop`, zero-padded at the end."""
    missing = max(stop - x.shape[-1], 0)
    x = ops.pad_constant(x, [*[(0, 0)] * (x.ndim - 1), (0, missing)]) if missing else x
    return x[..., start:stop]


@composite
def istft(
    x: TensorLike,
    frame_length: int | None = None,
    hop_length: int | None = None,
    fft_length: int | None = None,
    window: TensorLike | str | None = "hann",
    center: bool = False,
    length: int | None = None,
) -> Tensor:
    """Return the signal whose `stft` with the same arguments is closest to x.

    Frames are windowed again, added, and divided by the sum of the squared windows. A sample that
    no window covers is 0.

    Args:
        x: Spectra, (..., frames, bins).
        frame_length: Number of samples in a frame. Default: `fft_length`.
        hop_length: Number of samples between the starts of two frames. Default: frame_length // 4.
        fft_length: Length of the transform. Default: `frame_length`, or 2 (bins - 1).
        window: Window to multiply frames with: a name such as "hann" or "hamming", a tensor, or
            None.
        center: Whether frames were centered, as in `stft`.
        length: Number of samples of the result. Default: as many as the frames cover.
    """
    if x.ndim < 2 or 0 in x.shape[-2:]:
        raise ShapeError(f"istft: x has shape {x.shape}; expected (..., frames, bins)")
    count, bins = x.shape[-2:]
    size = fft_length or frame_length or 2 * (bins - 1)
    span = frame_length or size
    check_steps("istft", frame_length=span)
    hop = _hop(hop_length, span)
    if bins != size // 2 + 1 or span > size:
        raise ShapeError(f"istft: {bins} bins do not fit fft_length={size}, frame_length={span}")
    frames = irfft(x, size)[..., :span]
    if window is None:
        weight = overlap_add(ops.ones_like(frames), hop)
    else:
        taper = _window("istft", window, span, frames)
        weight = overlap_add(ops.broadcast_to(ops.square(taper), (count, span)), hop)
        frames = ops.multiply(frames, taper)
    reached = ops.where(ops.greater(weight, 1e-11), weight, ops.ones_like(weight))
    y = ops.divide(overlap_add(frames, hop), reached)
    start = span // 2 if center else 0
    return _fit(y, start, y.shape[-1] - start if length is None else start + length)


@composite(rule=rules.REAL_FLOAT)
def power_spectra(
    x: TensorLike, window: TensorLike, hop_length: int, fft_length: int | None = None
) -> Tensor:
    """Return |rfft|^2 of windowed frames: (..., samples) -> (..., frames, fft_length // 2 + 1).

    Args:
        x: Signal, (..., samples).
        window: Window, (frame_length,), to multiply frames with.
        hop_length: Number of samples between the starts of two frames.
        fft_length: Length to zero-pad frames to, at least that of the window. Default: that of the
            window.
    """
    if window.ndim != 1:
        raise ShapeError(f"power_spectra: window has shape {window.shape}; expected one axis")
    if fft_length is not None and fft_length < window.shape[0]:
        raise ArgumentError(
            f"power_spectra: fft_length ({fft_length}) must be at least {window.shape[0]}, the "
            "length of the window"
        )
    frames = frame(widened(x), window.shape[0], hop_length)
    spectrum = rfft(ops.multiply(frames, widened(window)), fft_length)
    y = ops.add(ops.square(ops.real(spectrum)), ops.square(ops.imag(spectrum)))
    return narrowed(y, x)


@composite(rule=rules.REAL_FLOAT)
def spectrogram(
    x: TensorLike,
    frame_length: int | None = None,
    hop_length: int | None = None,
    fft_length: int | None = None,
    window: TensorLike | str | None = "hann",
    center: bool = False,
    pad_mode: str = "reflect",
    power: float = 2.0,
) -> Tensor:
    """Return |stft|^power: energy (power=2) or magnitude (power=1) per frame and frequency.

    Args:
        x: Signal, (..., samples), or frames of it.
        frame_length: Number of samples in a frame. Default: x holds windowed frames in its last
            axis.
        hop_length: Number of samples between the starts of two frames. Default: frame_length // 4.
        fft_length: Length to zero-pad frames to. Default: `frame_length`.
        window: Window to multiply frames with: a name such as "hann" or "hamming", a tensor, or
            None.
        center: Whether frame t is centered at sample t * hop_length; else it starts there.
        pad_mode: Padding at both ends if `center`: "reflect" or "constant".
        power: Exponent of the magnitude.
    """
    if power == 2.0 and frame_length is not None and window is not None:
        check_steps("spectrogram", frame_length=frame_length)
        signal = _surround(x, frame_length // 2, pad_mode) if center else x
        taper = _window("spectrogram", window, frame_length, x)
        return power_spectra(signal, taper, _hop(hop_length, frame_length), fft_length)
    spectrum = stft(x, frame_length, hop_length, fft_length, window, center, pad_mode)
    if power == 2.0:
        y = ops.add(ops.square(ops.real(spectrum)), ops.square(ops.imag(spectrum)))
    else:
        y = ops.pow(ops.abs(spectrum), power)
    return narrowed(y, x)
