"""Overlapping frames of signals, and overlap-add."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = ["frame", "overlap_add"]


def check_steps(op: str, **steps: int) -> None:
    """Check that lengths in samples are positive integers."""
    for name, value in steps.items():
        if not isinstance(value, int):
            raise ArgumentTypeError(f"{op}: {name} must be an integer; got {value!r}")
        if value < 1:
            raise ArgumentError(f"{op}: {name} must be at least 1; got {value}")


@composite
def frame(
    x: TensorLike, frame_length: int, hop_length: int, axis: int = -1, pad_end: bool = False
) -> Tensor:
    """Return overlapping frames of a signal: (..., samples) -> (..., frames, frame_length).

    Args:
        x: Signal.
        frame_length: Number of samples in a frame.
        hop_length: Number of samples between the starts of two frames.
        axis: Axis of the samples; the frame axis replaces it, followed by the samples of a frame.
        pad_end: Whether to pad with zeros so that a frame starts at every hop; else samples at the
            end that do not fill a frame are dropped.
    """
    check_steps("frame", frame_length=frame_length, hop_length=hop_length)
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"frame: axis={axis} is out of range for shape {x.shape}")
    axis %= x.ndim
    samples = x.shape[axis]
    if pad_end and samples:
        missing = (-(-samples // hop_length) - 1) * hop_length + frame_length - samples
        x = ops.pad_constant(x, [(0, max(missing, 0) if at == axis else 0) for at in range(x.ndim)])
    elif samples < frame_length:
        raise ShapeError(
            f"frame: frame_length={frame_length} exceeds the {samples} samples of axis {axis}; "
            "pad_end=True pads with zeros"
        )
    return ops.moveaxis(ops.unfold(x, axis, frame_length, hop_length), -1, axis + 1)


@composite
def overlap_add(x: TensorLike, hop_length: int) -> Tensor:
    """Return the sum of frames shifted by `hop_length` each: the transpose of `frame`.

    (..., frames, frame_length) -> (..., (frames - 1) hop_length + frame_length)

    Args:
        x: Frames, (..., frames, frame_length).
        hop_length: Number of samples between the starts of two frames.
    """
    check_steps("overlap_add", hop_length=hop_length)
    if x.ndim < 2 or 0 in x.shape[-2:]:
        raise ShapeError(
            f"overlap_add: x has shape {x.shape}; expected (..., frames, frame_length)"
        )
    *batch, frames, length = x.shape
    parts = -(-length // hop_length)
    blocks = frames + parts
    keep = [(0, 0)] * len(batch)
    x = ops.pad_constant(x, [*keep, (0, 0), (0, parts * hop_length - length)])
    x = ops.reshape(x, (*batch, frames, parts, hop_length))
    x = ops.pad_constant(ops.swapaxes(x, -3, -2), [*keep, (0, 0), (0, parts), (0, 0)])
    # read rows of frames + parts blocks as rows of one block less: each row shifts by one block
    x = ops.reshape(x, (*batch, parts * blocks, hop_length))[..., : parts * (blocks - 1), :]
    x = ops.sum(ops.reshape(x, (*batch, parts, (blocks - 1) * hop_length)), axis=-2, dtype=x.dtype)
    return x[..., : (frames - 1) * hop_length + length]
