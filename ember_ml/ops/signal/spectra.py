"""Short-time spectra of signals."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.convert import as_backend
from ember_ml._core.dispatch import composite
from ember_ml._core.dtype import DEFAULT_FLOAT, real_part
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.runtime import native_dtype
from ember_ml._core.tensor import Tensor, TensorLike, wrap
from ember_ml.ops.fft import irfft, rfft
from ember_ml.ops.signal import windows
from ember_ml.ops.signal._geometry import narrow, widen
from ember_ml.ops.signal.framing import check_steps, frame, overlap_add

__all__ = ["istft", "spectrogram", "stft"]


def _window(op: str, window: TensorLike | str, length: int, like: Tensor) -> Tensor:
    """A window by name or as given, on the backend of `like` and of its precision."""
    dtype = real_part(like.dtype) if like.dtype.kind in ("float", "complex") else DEFAULT_FLOAT
    if not isinstance(window, str):
        window = as_backend(window, like.backend, dtype)
        if window.shape != (length,):
            raise ShapeError(
                f"{op}: window has the shape {window.shape}; a frame takes ({length},)"
            )
        return window
    made = getattr(windows, f"{window}_window", None)
    if made is None:
        names = ", ".join([name.removesuffix("_window") for name in windows.__all__])
        raise ArgumentError(f"{op}: window={window!r} is not known; there are {names}")
    native = made.op.natives[like.backend]
    values = native(length, dtype=native_dtype(like.backend, dtype), device=like.device)
    return wrap(values, like.backend)


def _hop(hop_length: int | None, frame_length: int) -> int:
    return max(frame_length // 4, 1) if hop_length is None else hop_length


def _surround(x: Tensor, margin: int, pad_mode: str) -> Tensor:
    """`margin` samples more on either side."""
    if pad_mode == "constant":
        return ops.pad_constant(x, [*[(0, 0)] * (x.ndim - 1), (margin, margin)])
    if pad_mode != "reflect":
        raise ArgumentError(f"stft: pad_mode={pad_mode!r}; there are 'reflect' and 'constant'")
    if x.shape[-1] <= margin:
        raise ShapeError(f"stft: {x.shape[-1]} samples cannot be reflected to {margin} more")
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
    """The spectra of frames: (..., samples) -> (..., frames, fft_length // 2 + 1), complex.

    Without `frame_length` the last axis is a frame, windowed already, and is transformed as it is.

    Args:
        x: the signal, or frames of it.
        frame_length: samples in a frame.
        hop_length: samples from one frame to the next; else a quarter of `frame_length`.
        fft_length: the length frames are filled up to with zeros; else their own.
        window: what frames are multiplied with: a name ("hann", "hamming" ...), a tensor, or None.
        center: whether frame t is centred at sample t * hop_length, with the signal continued by
            `pad_mode` ("reflect" or "constant") at both ends; else it starts there.
    """
    if frame_length is None:
        if hop_length is not None:
            raise ArgumentError(
                f"stft: hop_length={hop_length} has no meaning without frame_length"
            )
        return rfft(x, fft_length)
    check_steps("stft", frame_length=frame_length)
    if fft_length is not None and fft_length < frame_length:
        raise ArgumentError(
            f"stft: fft_length={fft_length} is less than frame_length={frame_length}"
        )
    x = widen(x)
    x = _surround(x, frame_length // 2, pad_mode) if center else x
    frames = frame(x, frame_length, _hop(hop_length, frame_length))
    if window is not None:
        frames = ops.multiply(frames, _window("stft", window, frame_length, x))
    return rfft(frames, fft_length)


def _fit(x: Tensor, start: int, stop: int) -> Tensor:
    """The samples from `start` to `stop`, with zeros for those after the last."""
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
    """The signal whose `stft` with the same arguments is nearest to x.

    Frames are windowed again, added, and divided by the sum of the squared windows; a sample that
    no window reaches is 0.

    Args:
        x: (..., frames, bins).
        frame_length: samples in a frame; else `fft_length`.
        fft_length: the length of the transform; else 2 (bins - 1).
        length: samples of the result; else as many as the frames reach.
    """
    if x.ndim < 2 or 0 in x.shape[-2:]:
        raise ShapeError(f"istft takes (..., frames, bins), not the shape {x.shape}")
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
    """|stft|^power: the energy in each frame and frequency, or with power=1 its magnitude."""
    spectrum = stft(x, frame_length, hop_length, fft_length, window, center, pad_mode)
    if power == 2.0:
        y = ops.add(ops.square(ops.real(spectrum)), ops.square(ops.imag(spectrum)))
    else:
        y = ops.pow(ops.abs(spectrum), power)
    return narrow(y, x.dtype)
