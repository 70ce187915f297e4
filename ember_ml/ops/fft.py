"""Discrete Fourier transforms.

`norm` says where the factor 1/n goes: "backward" (on the inverse), "forward", or "ortho" (its root
on both). A transform is complex64 (complex128 of float64); half precision is computed in float32.
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
    r"""The transform along an axis: X_k = sum_j x_j exp(-2 pi i j k / n).

    Args:
        n: the length to cut the axis to, or to fill it to with zeros; else the axis' own.
    """


@op(rule=rules.FLOAT)
def ifft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The inverse of `fft`."""


@op(rule=rules.REAL_FLOAT)
def rfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The first n // 2 + 1 frequencies of the transform of real numbers; the others mirror them."""


@op(rule=rules.FLOAT)
def irfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The inverse of `rfft`.

    Args:
        n: the length of the result; else 2 (m - 1) for m frequencies. Give it if it is odd.
    """


@op(rule=rules.FLOAT)
def hfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The real transform of a signal with Hermitian symmetry, of which x is the first half.

    Args:
        n: the length of the result; else 2 (m - 1) for m values. Give it if it is odd.
    """


@op(rule=rules.REAL_FLOAT)
def ihfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The inverse of `hfft`."""


@op(rule=rules.FLOAT)
def fftn(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """The transform along several axes.

    Args:
        s: the length to bring each axis to; -1 leaves an axis as it is.
        axes: the axes; else all, or as many of the last as s has lengths.
    """


@op(rule=rules.FLOAT)
def ifftn(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """The inverse of `fftn`."""


@op(rule=rules.REAL_FLOAT)
def rfftn(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """The transform of real numbers along several axes: `rfft` along the last, then `fft`."""


@op(rule=rules.FLOAT)
def irfftn(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """The inverse of `rfftn`."""


@op(rule=rules.FLOAT)
def fft2(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """The transform along two axes."""


@op(rule=rules.FLOAT)
def ifft2(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """The inverse of `fft2`."""


@op(rule=rules.REAL_FLOAT)
def rfft2(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """The transform of real numbers along two axes."""


@op(rule=rules.FLOAT)
def irfft2(
    x: TensorLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """The inverse of `rfft2`."""


@op
def fftshift(x: TensorLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """The frequencies of a transform with zero in the middle of the axes, by default of all."""


@op
def ifftshift(x: TensorLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`."""


@creation
def fftfreq(
    n: int, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """The frequencies that `fft` of n samples at distance d gives: 0, 1, ..., -2, -1 over n d."""


@creation
def rfftfreq(
    n: int, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """The frequencies that `rfft` of n samples at distance d gives: 0, 1, ..., n // 2 over n d."""
