"""Protocol of a dtype."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class DTypeInterface(Protocol):
    """Object with the name and size of a dtype."""

    name: str
    kind: str
    bits: int

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
