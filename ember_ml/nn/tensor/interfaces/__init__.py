"""Protocol of a tensor, for type checks without the class."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ember_ml._core.dtype import EmberDType


@runtime_checkable
class TensorInterface(Protocol):
    """Object with the attributes and conversions of a tensor."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""

    @property
    def dtype(self) -> EmberDType:
        """Dtype of the elements."""

    @property
    def device(self) -> str:
        """Device of the elements."""

    @property
    def backend(self) -> str:
        """Name of the backend."""

    def numpy(self) -> object:
        """Return the elements as a NumPy array."""

    def item(self) -> bool | int | float | complex:
        """Return the only element."""

    def tolist(self) -> object:
        """Return the elements as nested lists."""
