"""Window functions: tapers that frames of a signal are multiplied with."""

from __future__ import annotations

from ember_ml._core.dispatch import creation
from ember_ml._core.tensor import DTypeLike, Tensor

__all__ = [
    "bartlett_window",
    "blackman_window",
    "gaussian_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
]


@creation
def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """The triangle from 0 to 1 and back.

    Args:
        window_length: how many samples.
        periodic: one period, for spectra (the first of the missing samples would repeat the first
            one); else symmetric, for filters. The same holds for every window.
    """


@creation
def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""


@creation
def gaussian_window(
    window_length: int,
    periodic: bool = True,
    std: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """exp(-(n - N / 2)^2 / (2 std^2)), with `std` in samples."""


@creation
def hamming_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """0.54 - 0.46 cos(2 pi n / N)."""


@creation
def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """0.5 - 0.5 cos(2 pi n / N)."""


@creation
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta), with the Bessel function I0."""
