"""Helpers of the tape tests."""

from __future__ import annotations


def values(*tensors):
    """Return tensors as lists, for comparison with `==`."""
    return [None if x is None else x.tolist() for x in tensors]
