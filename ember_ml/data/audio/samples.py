"""Checks and conversions of samples."""

from __future__ import annotations

import numpy as np

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.data.conversion import to_host
from ember_ml.data.errors import check_integer


def check_rate(where: str, name: str, value: object) -> int:
    """Return a sample rate as an int.

    Args:
        where: Name of the class or function in the error.
        name: Name of the argument in the error.
        value: Sample rate in Hz to check.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return check_integer(where, name, value, 1)


def check_samples(where: str, samples: object) -> np.ndarray:
    """Return samples as floating-point numbers, (samples,) or (channels, samples).

    Args:
        where: Name of the class or function in the error.
        samples: Array or tensor; integers are divided by the largest value of their dtype.
    """
    array = to_host(samples)
    if array.dtype.kind == "i":
        return check_shape(where, array) / np.float32(-float(np.iinfo(array.dtype).min))
    if array.dtype.kind != "f":
        raise ArgumentTypeError(
            f"{where}: samples must be floating-point numbers or signed integers, not {array.dtype}"
        )
    array = check_shape(where, array)
    return array if array.dtype.itemsize >= 4 else array.astype(np.float32)


def check_shape(where: str, samples: np.ndarray) -> np.ndarray:
    """Return the samples; raise an error unless they are (samples,) or (channels, samples).

    Args:
        where: Name of the class or function in the error.
        samples: Array to check.
    """
    if samples.ndim in (1, 2):
        return samples
    raise ShapeError(
        f"{where}: samples must have shape (samples,) or (channels, samples), not {samples.shape}"
    )


def check_range(
    where: str, name: str, value: tuple[float, float] | float, least: float = -np.inf
) -> tuple[float, float]:
    """Return (low, high) of a range, which may be given as one number.

    Args:
        where: Name of the class or function in the error.
        name: Name of the argument in the error.
        value: (low, high), or one number for both.
        least: Smallest valid value.
    """
    try:
        low, high = value if isinstance(value, (tuple, list)) else (value, value)
        low, high = float(low), float(high)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{where}: {name} must be a number or (low, high), not {value!r:.60}"
        ) from None
    if not least <= low <= high < np.inf or low == -np.inf:
        bound = "" if least == -np.inf else f" of at least {least:g}"
        raise ArgumentError(
            f"{where}: {name} must be (low, high) with low <= high, finite{bound}; got {value!r}"
        )
    return low, high


def check_fraction(where: str, name: str, value: float) -> float:
    """Return a fraction or probability as a float.

    Args:
        where: Name of the class or function in the error.
        name: Name of the argument in the error.
        value: Number in [0, 1].
    """
    fraction, _ = check_range(where, name, value, 0.0)
    if fraction > 1:
        raise ArgumentError(f"{where}: {name} must be at most 1, not {value!r}")
    return fraction


def first_nonfinite(samples: np.ndarray) -> int | None:
    """Return the position along the last axis of the first NaN or infinite sample; None if none.

    Args:
        samples: (samples,) or (channels, samples).
    """
    finite = np.isfinite(samples)
    if finite.all():
        return None
    return int(np.argmin(finite.reshape(-1, samples.shape[-1]).all(axis=0)))
