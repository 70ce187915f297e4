"""Times, rates and sizes as text."""

from __future__ import annotations

_BYTES = ("B", "KB", "MB", "GB", "TB")
_FLOPS = ("", "k", "M", "G", "T", "P")


def show_seconds(seconds: float) -> str:
    """Return a duration as text, with three significant digits.

    Example:
        >>> from ember_ml.training.profiling.units import show_seconds
        >>> show_seconds(0.01234), show_seconds(2.5), show_seconds(3e-6)
        ('12.3 ms', '2.50 s', '3.00 us')
    """
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 0.9995:
            return f"{_digits(seconds * factor)} {unit}"
    return f"{_digits(seconds * 1e6)} us" if seconds else "0"


def show_flops(count: float, unit: str = "FLOP") -> str:
    """Return a number of operations as text, with three significant digits.

    Example:
        >>> from ember_ml.training.profiling.units import show_flops
        >>> show_flops(1.5e9), show_flops(2e10, "FLOP/s")
        ('1.50 GFLOP', '20.0 GFLOP/s')
    """
    return _scaled(count, _FLOPS, unit) if count else "0"


def show_bytes(count: float) -> str:
    """Return a number of bytes as text, with three significant digits."""
    return _scaled(count, _BYTES, "")


def show_share(share: float | None) -> str:
    """Return a share as a percentage; an empty string for None."""
    return "" if share is None else f"{100 * share:.1f} %"


def _scaled(count: float, prefixes: tuple[str, ...], unit: str) -> str:
    at = 0
    while abs(count) >= 999.5 and at < len(prefixes) - 1:
        count, at = count / 1000.0, at + 1
    return f"{_digits(count)} {prefixes[at]}{unit}"


def _digits(value: float) -> str:
    return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f}"
