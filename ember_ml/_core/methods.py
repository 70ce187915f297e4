"""Operators and methods of the tensor; each calls the op of its name."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import ember_ml.ops as ops  # circular: the ops are complete when a method is called
from ember_ml._core.dtype import PYTHON_TYPES, EmberDType
from ember_ml._core.errors import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
    from ember_ml._core.tensor import EmberTensor, TensorLike
    from ember_ml._core.types import Axis, DTypeLike

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""Supported versions of the array API standard."""


def _sizes(sizes: tuple[Any, ...]) -> Any:
    """Return a shape or axes, given as one sequence or as several integers."""
    return sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes


class TensorMethods:
    """Operators and methods of a tensor."""

    __slots__ = ()

    _data: Any  # the native array
    _backend: str
    _tag: str  # backend and dtype in one interned string: what dispatch looks at

    if TYPE_CHECKING:  # EmberTensor has them

        @property
        def dtype(self) -> EmberDType: ...
        @property
        def shape(self) -> tuple[int, ...]: ...

    def _update(self, name: str, out: EmberTensor) -> EmberTensor:
        """Set a new value of the same dtype and shape, and return this tensor."""
        out = out.to_backend(self._backend)
        if out.dtype is not self.dtype:
            raise DTypeError(f"{name} would change the dtype from {self.dtype} to {out.dtype}")
        if out.shape != self.shape:
            raise ShapeError(f"{name} would change the shape from {self.shape} to {out.shape}")
        self._data = out._data
        return cast("EmberTensor", self)

    def _comparable(self, other: object) -> TypeGuard[TensorLike]:
        """Return whether `==` compares elements: not with None, strings and other objects."""
        if isinstance(other, TensorMethods) or type(other) in PYTHON_TYPES:
            return True
        return isinstance(other, (list, tuple)) or hasattr(other, "__array__")

    def __eq__(self, other: object, /) -> EmberTensor:  # type: ignore[override]
        return ops.equal(self, other) if self._comparable(other) else NotImplemented

    def __ne__(self, other: object, /) -> EmberTensor:  # type: ignore[override]
        return ops.not_equal(self, other) if self._comparable(other) else NotImplemented

    def __hash__(self) -> int:
        return id(self)

    def __lt__(self, other: TensorLike, /) -> EmberTensor:
        return ops.less(self, other)

    def __le__(self, other: TensorLike, /) -> EmberTensor:
        return ops.less_equal(self, other)

    def __gt__(self, other: TensorLike, /) -> EmberTensor:
        return ops.greater(self, other)

    def __ge__(self, other: TensorLike, /) -> EmberTensor:
        return ops.greater_equal(self, other)

    def __neg__(self) -> EmberTensor:
        return ops.negative(self)

    def __pos__(self) -> EmberTensor:
        return ops.positive(self)

    def __abs__(self) -> EmberTensor:
        return ops.abs(self)

    def __invert__(self) -> EmberTensor:
        return ops.bitwise_invert(self)

    def __add__(self, other: TensorLike, /) -> EmberTensor:
        return ops.add(self, other)

    def __radd__(self, other: TensorLike, /) -> EmberTensor:
        return ops.add(other, self)

    def __iadd__(self, other: TensorLike, /) -> EmberTensor:
        return self._update("__iadd__", ops.add(self, other))

    def __sub__(self, other: TensorLike, /) -> EmberTensor:
        return ops.subtract(self, other)

    def __rsub__(self, other: TensorLike, /) -> EmberTensor:
        return ops.subtract(other, self)

    def __isub__(self, other: TensorLike, /) -> EmberTensor:
        return self._update("__isub__", ops.subtract(self, other))

    def __mul__(self, other: TensorLike, /) -> EmberTensor:
        return ops.multiply(self, other)

    def __rmul__(self, other: TensorLike, /) -> EmberTensor:
        return ops.multiply(other, self)

    def __imul__(self, other: TensorLike, /) -> EmberTensor:
        return self._update("__imul__", ops.multiply(self, other))

    def __truediv__(self, other: TensorLike, /) -> EmberTensor:
        return ops.divide(self, other)

    def __rtruediv__(self, other: TensorLike, /) -> EmberTensor:
        return ops.divide(other, self)

    def __itruediv__(self, other: TensorLike, /) -> EmberTensor:
        return self._update("__itruediv__", ops.divide(self, other))

    def __floordiv__(self, other: TensorLike, /) -> EmberTensor:
        return ops.floor_divide(self, other)

    def __rfloordiv__(self, other: TensorLike, /) -> EmberTensor:
        return ops.floor_divide(other, self)

    def __ifloordiv__(self, other: TensorLike, /) -> EmberTensor:
        return self._update("__ifloordiv__", ops.floor_divide(self, other))

    def __mod__(self, other: TensorLike, /) -> EmberTensor:
        return ops.remainder(self, other)

    def __rmod__(self, other: TensorLike, /) -> EmberTensor:
        return ops.remainder(other, self)

    def __imod__(self, other: TensorLike, /) -> EmberTensor:
        return self._update("__imod__", ops.remainder(self, other))

    def __pow__(self, other: TensorLike, /) -> EmberTensor:
        return ops.pow(self, other)

    def __rpow__(self, other: TensorLike, /) -> EmberTensor:
        return ops.pow(other, self)

    def __ipow__(self, other: TensorLike, /) -> EmberTensor:
        return self._update("__ipow__", ops.pow(self, other))

    def __matmul__(self, other: TensorLike, /) -> EmberTensor:
        return ops.matmul(self, other)

    def __rmatmul__(self, other: TensorLike, /) -> EmberTensor:
        return ops.matmul(other, self)

    def __imatmul__(self, other: TensorLike, /) -> EmberTensor:
        return self._update("__imatmul__", ops.matmul(self, other))

    def __and__(self, other: TensorLike, /) -> EmberTensor:
        return ops.bitwise_and(self, other)

    def __rand__(self, other: TensorLike, /) -> EmberTensor:
        return ops.bitwise_and(other, self)

    def __iand__(self, other: TensorLike, /) -> EmberTensor:
        return self._update("__iand__", ops.bitwise_and(self, other))

    def __or__(self, other: TensorLike, /) -> EmberTensor:
        return ops.bitwise_or(self, other)

    def __ror__(self, other: TensorLike, /) -> EmberTensor:
        return ops.bitwise_or(other, self)

    def __ior__(self, other: TensorLike, /) -> EmberTensor:
        return self._update("__ior__", ops.bitwise_or(self, other))

    def __xor__(self, other: TensorLike, /) -> EmberTensor:
        return ops.bitwise_xor(self, other)

    def __rxor__(self, other: TensorLike, /) -> EmberTensor:
        return ops.bitwise_xor(other, self)

    def __ixor__(self, other: TensorLike, /) -> EmberTensor:
        return self._update("__ixor__", ops.bitwise_xor(self, other))

    def __lshift__(self, other: TensorLike, /) -> EmberTensor:
        return ops.bitwise_left_shift(self, other)

    def __rlshift__(self, other: TensorLike, /) -> EmberTensor:
        return ops.bitwise_left_shift(other, self)

    def __ilshift__(self, other: TensorLike, /) -> EmberTensor:
        return self._update("__ilshift__", ops.bitwise_left_shift(self, other))

    def __rshift__(self, other: TensorLike, /) -> EmberTensor:
        return ops.bitwise_right_shift(self, other)

    def __rrshift__(self, other: TensorLike, /) -> EmberTensor:
        return ops.bitwise_right_shift(other, self)

    def __irshift__(self, other: TensorLike, /) -> EmberTensor:
        return self._update("__irshift__", ops.bitwise_right_shift(self, other))

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        if api_version not in (None, *VERSIONS):
            raise ArgumentError(
                f"api_version {api_version!r} is unknown; supported are {', '.join(VERSIONS)}"
            )
        return ops

    def __getitem__(self, key: Any) -> EmberTensor:
        return ops.indexing.index(self, key)  # type: ignore[arg-type]

    def __setitem__(self, key: Any, value: TensorLike) -> None:
        self._data = ops.index_update(self, key, value)._data

    @property
    def mT(self) -> EmberTensor:  # noqa: N802
        """Tensor with its last two axes swapped."""
        return ops.matrix_transpose(self)

    @property
    def real(self) -> EmberTensor:
        """Real part of each element."""
        return ops.real(self)

    @property
    def imag(self) -> EmberTensor:
        """Imaginary part of each element."""
        return ops.imag(self)

    def abs(self) -> EmberTensor:
        """Return the absolute values."""
        return ops.abs(self)

    def exp(self) -> EmberTensor:
        """Return e to the power of each element."""
        return ops.exp(self)

    def log(self) -> EmberTensor:
        """Return the natural logarithms."""
        return ops.log(self)

    def sqrt(self) -> EmberTensor:
        """Return the square roots."""
        return ops.sqrt(self)

    def square(self) -> EmberTensor:
        """Return the squares."""
        return ops.square(self)

    def sin(self) -> EmberTensor:
        """Return the sines."""
        return ops.sin(self)

    def cos(self) -> EmberTensor:
        """Return the cosines."""
        return ops.cos(self)

    def tanh(self) -> EmberTensor:
        """Return the hyperbolic tangents."""
        return ops.tanh(self)

    def sigmoid(self) -> EmberTensor:
        """Return 1 / (1 + exp(-x))."""
        return ops.sigmoid(self)

    def round(self) -> EmberTensor:
        """Return the elements rounded to integers, halves to even."""
        return ops.round(self)

    def conj(self) -> EmberTensor:
        """Return the complex conjugates."""
        return ops.conj(self)

    def sum(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """Return the sum over axes; see `ops.sum`."""
        return ops.sum(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """Return the mean over axes; see `ops.mean`."""
        return ops.mean(self, axis=axis, keepdims=keepdims)

    def prod(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """Return the product over axes; see `ops.prod`."""
        return ops.prod(self, axis=axis, keepdims=keepdims)

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """Return the maximum over axes; see `ops.max`."""
        return ops.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """Return the minimum over axes; see `ops.min`."""
        return ops.min(self, axis=axis, keepdims=keepdims)

    def any(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """Return whether any element over axes is true; see `ops.any`."""
        return ops.any(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """Return whether all elements over axes are true; see `ops.all`."""
        return ops.all(self, axis=axis, keepdims=keepdims)

    def std(
        self, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
    ) -> EmberTensor:
        """Return the standard deviation over axes; see `ops.std`."""
        return ops.std(self, axis=axis, correction=correction, keepdims=keepdims)

    def var(
        self, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
    ) -> EmberTensor:
        """Return the variance over axes; see `ops.var`."""
        return ops.var(self, axis=axis, correction=correction, keepdims=keepdims)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> EmberTensor:
        """Return the index of the maximum; see `ops.argmax`."""
        return ops.argmax(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> EmberTensor:
        """Return the index of the minimum; see `ops.argmin`."""
        return ops.argmin(self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: int | None = None) -> EmberTensor:
        """Return the cumulative sums along an axis; see `ops.cumsum`."""
        return ops.cumsum(self, axis=axis)

    def cumprod(self, axis: int | None = None) -> EmberTensor:
        """Return the cumulative products along an axis; see `ops.cumprod`."""
        return ops.cumprod(self, axis=axis)

    def sort(self, axis: int = -1, *, descending: bool = False) -> EmberTensor:
        """Return the elements sorted along an axis; see `ops.sort`."""
        return ops.sort(self, axis=axis, descending=descending)

    def argsort(self, axis: int = -1, *, descending: bool = False) -> EmberTensor:
        """Return the indices that sort along an axis; see `ops.argsort`."""
        return ops.argsort(self, axis=axis, descending=descending)

    def softmax(self, axis: int = -1) -> EmberTensor:
        """Return exp(x) divided by its sum along an axis; see `ops.softmax`."""
        return ops.softmax(self, axis=axis)

    def clip(
        self,
        min: EmberTensor | float | Sequence[Any] | None = None,  # noqa: A002
        max: EmberTensor | float | Sequence[Any] | None = None,  # noqa: A002
    ) -> EmberTensor:
        """Return the elements limited to [min, max]; see `ops.clip`."""
        return ops.clip(self, min, max)

    def dot(self, other: TensorLike) -> EmberTensor:
        """Return the dot product; see `ops.dot`."""
        return ops.dot(self, other)

    def matmul(self, other: TensorLike) -> EmberTensor:
        """Return the matrix product; see `ops.matmul`."""
        return ops.matmul(self, other)

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> EmberTensor:
        """Return the tensor in another dtype; see `ops.astype`."""
        return ops.astype(self, dtype, copy=copy)

    def reshape(self, *shape: int | Sequence[int]) -> EmberTensor:
        """Return the elements in another shape, given as integers or one sequence."""
        return ops.reshape(self, _sizes(shape))

    def transpose(self, *axes: int | Sequence[int]) -> EmberTensor:
        """Return the tensor with its axes permuted; reversed by default."""
        return ops.transpose(self, _sizes(axes) if axes else None)

    def permute(self, *axes: int | Sequence[int]) -> EmberTensor:
        """Return the tensor with its axes permuted."""
        return ops.permute(self, _sizes(axes))

    def flatten(self) -> EmberTensor:
        """Return the elements in one axis."""
        return ops.flatten(self)

    def ravel(self) -> EmberTensor:
        """Return the elements in one axis."""
        return ops.ravel(self)

    def squeeze(self, axis: Axis = None) -> EmberTensor:
        """Return the tensor without axes of length 1; see `ops.squeeze`."""
        return ops.squeeze(self, axis=axis)

    def expand_dims(self, axis: int = 0) -> EmberTensor:
        """Return the tensor with a new axis of length 1; see `ops.expand_dims`."""
        return ops.expand_dims(self, axis=axis)

    def swapaxes(self, axis1: int, axis2: int) -> EmberTensor:
        """Return the tensor with two axes swapped; see `ops.swapaxes`."""
        return ops.swapaxes(self, axis1, axis2)

    def moveaxis(
        self, source: int | Sequence[int], destination: int | Sequence[int]
    ) -> EmberTensor:
        """Return the tensor with axes moved; see `ops.moveaxis`."""
        return ops.moveaxis(self, source, destination)

    def broadcast_to(self, shape: Sequence[int]) -> EmberTensor:
        """Return the tensor broadcast to a shape, without a copy; see `ops.broadcast_to`."""
        return ops.broadcast_to(self, shape)

    def flip(self, axis: Axis = None) -> EmberTensor:
        """Return the tensor reversed along axes; see `ops.flip`."""
        return ops.flip(self, axis=axis)

    def roll(self, shift: int | Sequence[int], axis: Axis = None) -> EmberTensor:
        """Return the tensor shifted cyclically along axes; see `ops.roll`."""
        return ops.roll(self, shift, axis=axis)

    def repeat(self, repeats: int, axis: int | None = None) -> EmberTensor:
        """Return the tensor with each element repeated; see `ops.repeat`."""
        return ops.repeat(self, repeats, axis=axis)

    def tile(self, repetitions: Sequence[int]) -> EmberTensor:
        """Return the tensor repeated along each axis; see `ops.tile`."""
        return ops.tile(self, repetitions)

    def split(self, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[EmberTensor]:
        """Return the parts along an axis; see `ops.split`."""
        return ops.split(self, indices_or_sections, axis=axis)

    def take(self, indices: TensorLike, axis: int | None = None) -> EmberTensor:
        """Return the elements at indices of an axis; see `ops.take`."""
        return ops.take(self, indices, axis=axis)

    def nonzero(self) -> tuple[EmberTensor, ...]:
        """Return the indices of the nonzero elements, one tensor for each axis."""
        return ops.nonzero(self)

    def copy(self) -> EmberTensor:
        """Return a copy that shares no memory."""
        return ops.copy(self)
