"""Window functions for frames of a signal."""

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
    """Return a triangular window from 0 to 1 and back.

    Args:
        window_length: Number of samples N.
        periodic: Whether the window is periodic (for spectra); else it is symmetric (for filters).
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return the Blackman window 0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N).

    Args:
        window_length: Number of samples N.
        periodic: Whether the window is periodic (for spectra); else it is symmetric (for filters).
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def gaussian_window(
    window_length: int,
    periodic: bool = True,
    std: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return the Gaussian window exp(-(n - N / 2)^2 / (2 std^2)).

    Args:
        window_length: Number of samples N.
        periodic: Whether the window is periodic (for spectra); else it is symmetric (for filters).
        std: Standard deviation in samples.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def hamming_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return the Hamming window 0.54 - 0.46 cos(2 pi n / N).

    Args:
        window_length: Number of samples N.
        periodic: Whether the window is periodic (for spectra); else it is symmetric (for filters).
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return the Hann window 0.5 - 0.5 cos(2 pi n / N).

    Args:
        window_length: Number of samples N.
        periodic: Whether the window is periodic (for spectra); else it is symmetric (for filters).
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return the Kaiser window I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta).

    Args:
        window_length: Number of samples N.
        periodic: Whether the window is periodic (for spectra); else it is symmetric (for filters).
        beta: Shape parameter; larger values give lower side lobes and a wider main lobe.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """
