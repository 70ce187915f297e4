"""What a tensor has, as a protocol for type checks that should not name the class."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from ember_ml._core.dtype import EmberDType


@runtime_checkable
class TensorInterface(Protocol):
    """Anything with a tensor's attributes and conversions."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""

    @property
    def dtype(self) -> EmberDType:
        """The type of the elements."""

    @property
    def device(self) -> str:
        """Where the elements are."""

    @property
    def backend(self) -> str:
        """The name of the backend."""

    def numpy(self) -> Any:
        """The elements as a NumPy array."""

    def item(self) -> bool | int | float | complex:
        """The only element."""

    def tolist(self) -> Any:
        """The elements as nested lists."""
