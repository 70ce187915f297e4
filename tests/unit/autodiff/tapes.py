"""What the tests of tapes share."""

from __future__ import annotations


def values(*tensors):
    """The tensors as lists, to be compared with `==`."""
    return [None if x is None else x.tolist() for x in tensors]
