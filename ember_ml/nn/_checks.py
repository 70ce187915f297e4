"""Checks of arguments that depend on each other."""

from __future__ import annotations

from ember_ml._core.errors import ArgumentError


def require_divisible(owner: object, **sizes: int) -> None:
    """Raise an ArgumentError unless the first size is divisible by the second.

    Args:
        owner: The object whose class the error names.
        sizes: Two sizes by argument name, such as `features=8, num_heads=2`.
    """
    (name, size), (divisor_name, divisor) = sizes.items()
    if size % divisor:
        raise ArgumentError(
            f"{type(owner).__name__}: {name} ({size}) must be divisible by "
            f"{divisor_name} ({divisor})"
        )


def require_at_most(owner: object, **values: float) -> None:
    """Raise an ArgumentError if the first value exceeds the second.

    Args:
        owner: The object whose class the error names.
        values: Two values by argument name, such as `low=0.0, high=1.0`.
    """
    (name, value), (bound_name, bound) = values.items()
    if value > bound:
        raise ArgumentError(
            f"{type(owner).__name__}: {name} ({value}) must not exceed {bound_name} ({bound})"
        )
