"""What a dtype has, as a protocol."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class DTypeInterface(Protocol):
    """Anything with a dtype's name and size."""

    name: str
    kind: str
    bits: int

    @property
    def itemsize(self) -> int:
        """Bytes an element takes."""
