"""Features of overlapping frames: padding, lengths and streaming."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from ember_ml import ops
from ember_ml._core.convert import as_backend
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.nn.features.base import FeatureExtractor
from ember_ml.nn.parameter import Buffer

PadMode: TypeAlias = Literal["constant", "reflect"]
WindowName: TypeAlias = Literal["hann", "hamming", "blackman", "bartlett"]


class StreamState(NamedTuple):
    """State of a stream between two chunks; its size does not grow with the stream."""

    buffer: Tensor | None = None
    """Samples that later frames need, (..., samples); None before the first chunk."""
    samples: int = 0
    """Number of samples so far."""
    frames: int = 0
    """Number of frames returned so far."""
    start: int = 0
    """Position of the buffer's first sample in the padded signal."""
    peak: float | None = None
    """Largest power of the signal, for scales that depend on it."""


class FrameFeatures(FeatureExtractor):
    """Base class of features of overlapping frames: (..., samples) -> (..., frames, features).

    With `center`, frame t is centered at sample t * hop: it covers `n_fft` samples from
    t * hop - n_fft // 2 on, of the signal padded with n_fft // 2 samples on both sides. Otherwise
    it starts at sample t * hop, and samples at the end that do not fill a frame are dropped.
    `num_frames(n)` is the number of frames, 1 + n // hop if centered and `n_fft` is even.

    Streams: `initial_state`, then `step` with chunks of any size, then `flush`. The concatenated
    results equal those of the whole signal. A step returns the frames that are complete.

    Subclasses define `spectra`.

    Args:
        n_fft: Number of samples of a frame.
        hop: Number of samples between two frames.
        win_length: Length of the window, centered in the frame.
        window: Name of the window.
        center: Whether frames are centered.
        pad_mode: Padding at both ends if `center`: "constant" (zeros) or "reflect".
    """

    drop_last: bool = False
    """Whether the last frame is dropped, as Whisper does."""

    def __init__(
        self, n_fft: int, hop: int, win_length: int, window: str, center: bool, pad_mode: PadMode
    ) -> None:
        if win_length > n_fft:
            raise ArgumentError(
                f"{type(self).__name__}: win_length ({win_length}) must be at most n_fft ({n_fft})"
            )
        self.n_fft = n_fft
        self.hop = hop
        self.win_length = win_length
        self.center = center
        self.pad_mode = pad_mode
        before = (n_fft - win_length) // 2
        values = getattr(ops, f"{window}_window")(win_length)
        values = ops.pad_constant(values, [(before, n_fft - win_length - before)])
        self.window = Buffer(values, persistent=False)

    @property
    def margin(self) -> int:
        """Number of samples of padding at each end."""
        return self.n_fft // 2 if self.center else 0

    def spectra(self, x: Tensor) -> Tensor:
        """Return the features of all frames of a signal that is already padded.

        Args:
            x: (..., samples), with at least `n_fft` samples.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define spectra()")

    def rescale(self, y: Tensor, peak: Tensor | None) -> Tensor:
        """Return the features on their final scale; by default they are unchanged.

        Args:
            y: Result of `spectra`.
            peak: Largest power of the signal, for features that depend on it.
        """
        return y

    def no_values(self) -> Tensor:
        """Return an empty tensor of the dtype of the features."""
        return self.window[:0]

    def find_peak(self, y: Tensor) -> Tensor | None:
        """Return the largest power of each signal; None if the features do not depend on it.

        Args:
            y: Result of `spectra`.
        """
        return None

    def extract(self, x: TensorLike, lengths: TensorLike | None = None) -> Tensor:
        """Return the features of a signal.

        Args:
            x: Signals, (..., samples).
            lengths: Number of samples of each signal of a padded batch, (batch,), for x of shape
                (batch, samples). The features of a signal are then those that it has by itself, and
                frames past `output_lengths(lengths)` are 0. Default: all samples are used.
        """
        x = self.as_input(x)
        if x.ndim == 0 or not x.shape[-1]:
            raise ShapeError(f"{type(self).__name__}: the signal of shape {x.shape} has no samples")
        frames = self.num_frames(x.shape[-1])
        if frames < 1 and lengths is None:
            raise self._too_short(x.shape[-1])
        if lengths is None:
            y = self._some_frames(self._padded(x), 0, frames)
            return self.rescale(y, self.find_peak(y))
        return self._extract_padded(x, lengths, frames)

    def _extract_padded(self, x: Tensor, lengths: TensorLike, frames: int) -> Tensor:
        sizes = as_backend(lengths, x.backend)
        if x.ndim != 2 or sizes.shape != x.shape[:1]:
            raise ShapeError(
                f"{type(self).__name__}: with lengths of shape {sizes.shape}, x must have shape "
                f"(batch, samples) with the same batch, not {x.shape}"
            )
        inside = ops.less(_range_like(sizes, x.shape[-1]), sizes[:, None])
        x = self._reflected(ops.where(inside, x, ops.zeros_like(x)), sizes)
        y = self._some_frames(x, 0, frames)
        valid = ops.less(_range_like(sizes, frames), self.output_lengths(sizes)[:, None])[..., None]
        zeros = ops.zeros_like(y)
        y = ops.where(valid, y, zeros)
        return ops.where(valid, self.rescale(y, self.find_peak(y)), zeros)

    def _reflected(self, x: Tensor, sizes: Tensor) -> Tensor:
        """Return a batch with each signal padded at its own ends."""
        if self.pad_mode == "constant" or not self.center:
            return ops.pad_constant(x, [(0, 0), (self.margin, self.margin)])
        at = ops.abs(_range_like(sizes, x.shape[-1] + 2 * self.margin) - self.margin)
        last = ops.maximum(sizes[:, None] - 1, 0)
        at = ops.remainder(at, ops.maximum(2 * last, 1))
        at = ops.where(ops.greater(at, last), 2 * last - at, at)
        return ops.take_along_axis(x, at, axis=-1)

    def _padded(self, x: Tensor) -> Tensor:
        """Return the signal padded at both ends."""
        if not self.center:
            return x
        if self.pad_mode == "reflect" and x.shape[-1] <= self.margin:
            raise self._too_short(x.shape[-1])
        sides = [*[(0, 0)] * (x.ndim - 1), (self.margin, self.margin)]
        if self.pad_mode == "constant":
            return ops.pad_constant(x, sides)
        return ops.pad(x, sides, mode="reflect")

    def _some_frames(self, x: Tensor, start: int, frames: int) -> Tensor:
        """Return the spectra of `frames` frames of a padded signal that begin at `start`."""
        if frames < 1:
            return ops.reshape(self.no_values(), (*x.shape[:-1], 0, len(self.feature_names)))
        return self.spectra(x[..., start : start + (frames - 1) * self.hop + self.n_fft])

    def _too_short(self, samples: int) -> ShapeError:
        least = self.n_fft
        if self.center:
            least = self.margin + 1 if self.pad_mode == "reflect" else 1
        if self.drop_last:
            least = max(least, self.hop)
        return ShapeError(
            f"{type(self).__name__}: a signal of {samples} samples is too short; with "
            f"n_fft={self.n_fft}, center={self.center} and pad_mode={self.pad_mode!r} it must have "
            f"at least {least}"
        )

    def num_frames(self, samples: int) -> int:
        """Return the number of frames of a signal.

        Args:
            samples: Number of samples of the signal.
        """
        frames = (samples + 2 * self.margin - self.n_fft) // self.hop + 1 - self.drop_last
        return max(frames, 0)

    def output_lengths(self, lengths: TensorLike) -> Tensor:
        """Return the number of frames of each signal of a padded batch.

        Args:
            lengths: Number of samples of each signal, (batch,).
        """
        padded = ops.add(lengths, 2 * self.margin - self.n_fft)
        return ops.maximum(ops.floor_divide(padded, self.hop) + (1 - self.drop_last), 0)

    def initial_state(self) -> StreamState:
        """Return the state before the first chunk of a stream."""
        return StreamState()

    def step(self, chunk: TensorLike, state: StreamState) -> tuple[Tensor, StreamState]:
        """Return the frames that the next samples of a stream complete, and the next state.

        Args:
            chunk: The next samples, (..., samples), any number of them.
            state: Result of `initial_state` or of the last step.
        """
        x = self.as_input(chunk)
        samples = state.samples + x.shape[-1]
        buffer, start = self._extended(x, state)
        done = self._complete(samples)
        new = max(done - state.frames, 0)
        y = self._some_frames(buffer, state.frames * self.hop - start, new)
        frames = state.frames + new
        keep = frames * self.hop
        if self.pad_mode == "reflect" and self.center:
            keep = min(keep, samples - 1)  # the end of the signal is reflected later
        cut = max(min(keep - start, buffer.shape[-1]), 0) if self._is_started(samples) else 0
        next_state = StreamState(buffer[..., cut:], samples, frames, start + cut, state.peak)
        return self._streamed(y, state), next_state

    def flush(self, state: StreamState) -> Tensor:
        """Return the remaining frames at the end of a stream.

        Args:
            state: State after the last step.
        """
        frames = self.num_frames(state.samples)
        if state.buffer is None or frames < 1 or not self._is_started(state.samples):
            raise self._too_short(state.samples)
        buffer = state.buffer
        if self.center and self.pad_mode == "reflect":
            end = buffer.shape[-1] - 1
            tail = ops.flip(buffer[..., end - self.margin : end], axis=-1)
            buffer = ops.concat([buffer, tail], axis=-1)
        elif self.center:
            sides = [*[(0, 0)] * (buffer.ndim - 1), (0, self.margin)]
            buffer = ops.pad_constant(buffer, sides)
        start = state.frames * self.hop - state.start
        y = self._some_frames(buffer, start, frames - state.frames)
        return self._streamed(y, state)

    def _streamed(self, y: Tensor, state: StreamState) -> Tensor:
        """Return the features of a stream on their final scale."""
        if not y.size:
            return y
        return self.rescale(y, None if state.peak is None else ops.full_like(y[:1], state.peak))

    def _is_started(self, samples: int) -> bool:
        """Return whether the padding before the signal is known."""
        return not self.center or samples > (self.margin if self.pad_mode == "reflect" else 0)

    def _complete(self, samples: int) -> int:
        """Return the number of frames that later samples cannot change."""
        if not self._is_started(samples):
            return 0
        frames = (samples + self.margin - self.n_fft) // self.hop + 1
        return min(frames, samples // self.hop) if self.drop_last else frames

    def _extended(self, x: Tensor, state: StreamState) -> tuple[Tensor, int]:
        """Return the buffer with the next samples, and its position in the padded signal."""
        buffer = x if state.buffer is None else ops.concat([state.buffer, x], axis=-1)
        start = state.start
        if self._is_started(state.samples) and (state.samples or not self.center):
            return buffer, start
        if self.center and self._is_started(state.samples + x.shape[-1]):
            if self.pad_mode == "reflect":
                head = ops.flip(buffer[..., 1 : self.margin + 1], axis=-1)
                return ops.concat([head, buffer], axis=-1), start
            sides = [*[(0, 0)] * (buffer.ndim - 1), (self.margin, 0)]
            return ops.pad_constant(buffer, sides), start
        return buffer, start


def _range_like(lengths: Tensor, count: int) -> Tensor:
    """Return [0, 1, ..., count - 1] as a row, on the backend and in the dtype of lengths."""
    ones = ops.broadcast_to(ops.ones_like(lengths[:1]), (count,))
    return (ops.cumsum(ones, axis=0) - 1)[None, :]
