"""Numbers of bytes as text."""

from __future__ import annotations

import re

from ember_ml._core.errors import ArgumentError

UNITS = ("B", "KB", "MB", "GB", "TB")
"""Decimal units: 1 GB is 10^9 bytes. Those of 1024, such as GiB, are read too."""


def format_bytes(count: float) -> str:
    """Return a number of bytes as text, with three significant digits.

    Args:
        count: Number of bytes.

    Example:
        >>> from ember_ml.memory import format_bytes
        >>> format_bytes(1_530_000_000)
        '1.53 GB'
    """
    size, unit = float(count), 0
    while abs(size) >= 999.5 and unit < len(UNITS) - 1:
        size, unit = size / 1000.0, unit + 1
    digits = 0 if unit == 0 or abs(size) >= 99.95 else 1 if abs(size) >= 9.995 else 2
    return f"{size:.{digits}f} {UNITS[unit]}"


def parse_bytes(text: str | int) -> int:
    """Return the number of bytes that a text such as "8GB", "512 MiB" or "1e9" describes.

    Args:
        text: A number with an optional unit.

    Example:
        >>> from ember_ml.memory import parse_bytes
        >>> parse_bytes("1.5GB"), parse_bytes("2 KiB")
        (1500000000, 2048)
    """
    match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([KMGT]?)(i?)B?\s*", str(text), re.IGNORECASE)
    try:
        if match is None:
            raise ValueError
        number = float(match[1])
    except ValueError:
        raise ArgumentError(
            f"{text!r} is not a number of bytes; write a number with a unit, such as 8GB or 512MiB"
        ) from None
    power = "KMGT".find(match[2].upper()) + 1 if match[2] else 0
    count = int(number * (1024 if match[3] else 1000) ** power)
    if count < 1:
        raise ArgumentError(f"{text!r} must be at least one byte")
    return count
