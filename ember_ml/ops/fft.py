"""Discrete Fourier transforms.

`norm` places the factor 1/n: "backward" (on the inverse), "forward", or "ortho" (its square root
on both). A transform is complex64 (complex128 for float64); half precision is computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from ember_ml._core import rules
from ember_ml._core.dispatch import creation, op
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

Norm: TypeAlias = Literal["backward", "ortho", "forward"]


@op(rule=rules.FLOAT)
def fft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the Fourier transform along an axis: X_k = sum_j x_j exp(-2 pi i j k / n).

    Args:
        x: Input tensor.
        n: Length to truncate or zero-pad the axis to. Default: the length of the axis.
        axis: Axis to transform.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op(rule=rules.FLOAT)
def ifft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the inverse of `fft`.

    Args:
        x: Input tensor.
        n: Length to truncate or zero-pad the axis to. Default: the length of the axis.
        axis: Axis to transform.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op(rule=rules.REAL_FLOAT)
def rfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the first n // 2 + 1 frequencies of the Fourier transform of a real signal.

    Args:
        x: Real tensor.
        n: Length to truncate or zero-pad the axis to. Default: the length of the axis.
        axis: Axis to transform.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op(rule=rules.FLOAT)
def irfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the inverse of `rfft`.

    Args:
        x: Spectrum with m frequencies along the axis.
        n: Length of the result; required if it is odd. Default: 2 (m - 1).
        axis: Axis to transform.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op(rule=rules.FLOAT)
def hfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the real Fourier transform of a signal with Hermitian symmetry.

    Args:
        x: First half of the signal, with m values along the axis.
        n: Length of the result; required if it is odd. Default: 2 (m - 1).
        axis: Axis to transform.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op(rule=rules.REAL_FLOAT)
def ihfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the inverse of `hfft`.

    Args:
        x: Real tensor.
        n: Length to truncate or zero-pad the axis to. Default: the length of the axis.
        axis: Axis to transform.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op(rule=rules.FLOAT)
def fftn(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Return the Fourier transform along several axes.

    Args:
        x: Input tensor.
        s: Length to truncate or zero-pad each axis to; -1 keeps an axis. Default: the lengths of x.
        axes: Axes to transform. Default: all, or the last len(s) axes.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op(rule=rules.FLOAT)
def ifftn(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Return the inverse of `fftn`.

    Args:
        x: Input tensor.
        s: Length to truncate or zero-pad each axis to; -1 keeps an axis. Default: the lengths of x.
        axes: Axes to transform. Default: all, or the last len(s) axes.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op(rule=rules.REAL_FLOAT)
def rfftn(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Return the Fourier transform of a real signal; the last axis is halved as in `rfft`.

    Args:
        x: Real tensor.
        s: Length to truncate or zero-pad each axis to; -1 keeps an axis. Default: the lengths of x.
        axes: Axes to transform. Default: all, or the last len(s) axes.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op(rule=rules.FLOAT)
def irfftn(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Return the inverse of `rfftn`.

    Args:
        x: Input tensor.
        s: Length of the result along each axis; required if the last is odd. Default: 2 (m - 1) for
            the last.
        axes: Axes to transform. Default: all, or the last len(s) axes.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op(rule=rules.FLOAT)
def fft2(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """Return the Fourier transform along two axes.

    Args:
        x: Input tensor.
        s: Length to truncate or zero-pad each axis to; -1 keeps an axis. Default: the lengths of x.
        axes: Two axes to transform.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op(rule=rules.FLOAT)
def ifft2(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """Return the inverse of `fft2`.

    Args:
        x: Input tensor.
        s: Length to truncate or zero-pad each axis to; -1 keeps an axis. Default: the lengths of x.
        axes: Two axes to transform.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op(rule=rules.REAL_FLOAT)
def rfft2(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """Return the Fourier transform of a real signal along two axes.

    Args:
        x: Real tensor.
        s: Length to truncate or zero-pad each axis to; -1 keeps an axis. Default: the lengths of x.
        axes: Two axes to transform.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op(rule=rules.FLOAT)
def irfft2(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """Return the inverse of `rfft2`.

    Args:
        x: Input tensor.
        s: Length of the result along each axis; required if the last is odd. Default: 2 (m - 1) for
            the last.
        axes: Two axes to transform.
        norm: Placement of the factor 1/n: "backward", "ortho" or "forward".
    """


@op
def fftshift(x: TensorLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return x with the zero frequency moved to the center of the axes.

    Args:
        x: Input tensor.
        axes: Axis or axes to shift. Default: all axes.
    """


@op
def ifftshift(x: TensorLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return the inverse of `fftshift`.

    Args:
        x: Input tensor.
        axes: Axis or axes to shift. Default: all axes.
    """


@creation
def fftfreq(
    n: int, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return the frequencies of `fft`: [0, 1, ..., -2, -1] / (n d).

    Args:
        n: Number of samples.
        d: Distance between samples.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def rfftfreq(
    n: int, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return the frequencies of `rfft`: [0, 1, ..., n // 2] / (n d).

    Args:
        n: Number of samples.
        d: Distance between samples.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """
