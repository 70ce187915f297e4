"""Type aliases of the public signatures.

`TensorLike` stands next to the tensor (`ember_ml._core.tensor`), which it names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar, Union

from ember_ml._core.dtype import EmberDType

T = TypeVar("T")


class _ByItemsize(Protocol):
    @property
    def itemsize(self) -> int: ...


class _BySize(Protocol):
    @property
    def size(self) -> int: ...


NativeDType: TypeAlias = _ByItemsize | _BySize
"""Dtype object of a framework: `np.dtype` and `torch.dtype` (`itemsize`), `mx.Dtype` (`size`)."""


class NativeArray(Protocol):
    """Array of a framework: `np.ndarray`, `torch.Tensor`, `mx.array`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""

    @property
    def dtype(self) -> NativeDType:
        """Dtype object of the framework."""


DTypeLike: TypeAlias = EmberDType | str | type | NativeDType
"""Dtype, its name, a Python or NumPy scalar type, or a dtype object of a framework."""

Scalar: TypeAlias = complex
"""Python number; to a type checker `complex` includes bool, int and float."""

ShapeLike: TypeAlias = int | Sequence[int]
"""Shape; an int means one axis of that length."""

Axis: TypeAlias = int | Sequence[int] | None
"""One axis, several axes, or None for all of them."""

Tree: TypeAlias = Union[T, "Sequence[Tree[T]]", "Mapping[str, Tree[T]]"]
"""Pytree: leaves of type T in nested tuples, lists and dicts."""
