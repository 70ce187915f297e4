"""The tensor's operators and methods: each calls the op of its name."""

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
"""The versions of the array API standard that the namespace follows."""


def _sizes(sizes: tuple[Any, ...]) -> Any:
    """A shape or axes, given as one sequence or as several integers."""
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
        """Whether equality is for us to tell: not with None, strings and other objects."""
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
                f"api_version {api_version!r} is unknown; there are {', '.join(VERSIONS)}"
            )
        return ops

    def __getitem__(self, key: Any) -> EmberTensor:
        return ops.indexing.index(self, key)  # type: ignore[arg-type]

    def __setitem__(self, key: Any, value: TensorLike) -> None:
        self._data = ops.index_update(self, key, value)._data

    @property
    def mT(self) -> EmberTensor:  # noqa: N802
        """The tensor with its last two axes swapped."""
        return ops.matrix_transpose(self)

    @property
    def real(self) -> EmberTensor:
        """The real part of each element."""
        return ops.real(self)

    @property
    def imag(self) -> EmberTensor:
        """The imaginary part of each element."""
        return ops.imag(self)

    def abs(self) -> EmberTensor:
        """The absolute value of each element."""
        return ops.abs(self)

    def exp(self) -> EmberTensor:
        """e to the power of each element."""
        return ops.exp(self)

    def log(self) -> EmberTensor:
        """The natural logarithm of each element."""
        return ops.log(self)

    def sqrt(self) -> EmberTensor:
        """The square root of each element."""
        return ops.sqrt(self)

    def square(self) -> EmberTensor:
        """The square of each element."""
        return ops.square(self)

    def sin(self) -> EmberTensor:
        """The sine of each element."""
        return ops.sin(self)

    def cos(self) -> EmberTensor:
        """The cosine of each element."""
        return ops.cos(self)

    def tanh(self) -> EmberTensor:
        """The hyperbolic tangent of each element."""
        return ops.tanh(self)

    def sigmoid(self) -> EmberTensor:
        """1 / (1 + exp(-x)) of each element."""
        return ops.sigmoid(self)

    def round(self) -> EmberTensor:
        """Each element rounded, halves to even."""
        return ops.round(self)

    def conj(self) -> EmberTensor:
        """The complex conjugate of each element."""
        return ops.conj(self)

    def sum(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """The sum over axes."""
        return ops.sum(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """The mean over axes."""
        return ops.mean(self, axis=axis, keepdims=keepdims)

    def prod(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """The product over axes."""
        return ops.prod(self, axis=axis, keepdims=keepdims)

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """The greatest element over axes."""
        return ops.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """The least element over axes."""
        return ops.min(self, axis=axis, keepdims=keepdims)

    def any(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """Whether any element is true, over axes."""
        return ops.any(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Axis = None, *, keepdims: bool = False) -> EmberTensor:
        """Whether all elements are true, over axes."""
        return ops.all(self, axis=axis, keepdims=keepdims)

    def std(
        self, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
    ) -> EmberTensor:
        """The standard deviation over axes."""
        return ops.std(self, axis=axis, correction=correction, keepdims=keepdims)

    def var(
        self, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
    ) -> EmberTensor:
        """The variance over axes."""
        return ops.var(self, axis=axis, correction=correction, keepdims=keepdims)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> EmberTensor:
        """The index of the greatest element."""
        return ops.argmax(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> EmberTensor:
        """The index of the least element."""
        return ops.argmin(self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: int | None = None) -> EmberTensor:
        """Running sums along an axis."""
        return ops.cumsum(self, axis=axis)

    def cumprod(self, axis: int | None = None) -> EmberTensor:
        """Running products along an axis."""
        return ops.cumprod(self, axis=axis)

    def sort(self, axis: int = -1, *, descending: bool = False) -> EmberTensor:
        """The elements in order along an axis."""
        return ops.sort(self, axis=axis, descending=descending)

    def argsort(self, axis: int = -1, *, descending: bool = False) -> EmberTensor:
        """The indices that sort along an axis."""
        return ops.argsort(self, axis=axis, descending=descending)

    def softmax(self, axis: int = -1) -> EmberTensor:
        """exp(x) over its sum along an axis."""
        return ops.softmax(self, axis=axis)

    def clip(
        self,
        min: EmberTensor | float | Sequence[Any] | None = None,  # noqa: A002
        max: EmberTensor | float | Sequence[Any] | None = None,  # noqa: A002
    ) -> EmberTensor:
        """Each element, held between min and max."""
        return ops.clip(self, min, max)

    def dot(self, other: TensorLike) -> EmberTensor:
        """The product of two vectors, or of matrices."""
        return ops.dot(self, other)

    def matmul(self, other: TensorLike) -> EmberTensor:
        """The matrix product."""
        return ops.matmul(self, other)

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> EmberTensor:
        """The elements in another dtype."""
        return ops.astype(self, dtype, copy=copy)

    def reshape(self, *shape: int | Sequence[int]) -> EmberTensor:
        """The elements in another shape."""
        return ops.reshape(self, _sizes(shape))

    def transpose(self, *axes: int | Sequence[int]) -> EmberTensor:
        """The axes in another order; reversed if none is given."""
        return ops.transpose(self, _sizes(axes) if axes else None)

    def permute(self, *axes: int | Sequence[int]) -> EmberTensor:
        """The axes in another order."""
        return ops.permute(self, _sizes(axes))

    def flatten(self) -> EmberTensor:
        """All elements in one axis."""
        return ops.flatten(self)

    def ravel(self) -> EmberTensor:
        """All elements in one axis."""
        return ops.ravel(self)

    def squeeze(self, axis: Axis = None) -> EmberTensor:
        """Without axes of length one."""
        return ops.squeeze(self, axis=axis)

    def expand_dims(self, axis: int = 0) -> EmberTensor:
        """With a new axis of length one."""
        return ops.expand_dims(self, axis=axis)

    def swapaxes(self, axis1: int, axis2: int) -> EmberTensor:
        """With two axes swapped."""
        return ops.swapaxes(self, axis1, axis2)

    def moveaxis(
        self, source: int | Sequence[int], destination: int | Sequence[int]
    ) -> EmberTensor:
        """With axes moved to other places."""
        return ops.moveaxis(self, source, destination)

    def broadcast_to(self, shape: Sequence[int]) -> EmberTensor:
        """Repeated, without a copy, to a larger shape."""
        return ops.broadcast_to(self, shape)

    def flip(self, axis: Axis = None) -> EmberTensor:
        """In reverse order along axes."""
        return ops.flip(self, axis=axis)

    def roll(self, shift: int | Sequence[int], axis: Axis = None) -> EmberTensor:
        """Shifted along axes, what falls off coming back in front."""
        return ops.roll(self, shift, axis=axis)

    def repeat(self, repeats: int, axis: int | None = None) -> EmberTensor:
        """Each element repeated."""
        return ops.repeat(self, repeats, axis=axis)

    def tile(self, repetitions: Sequence[int]) -> EmberTensor:
        """The whole tensor repeated along each axis."""
        return ops.tile(self, repetitions)

    def split(self, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[EmberTensor]:
        """In parts along an axis."""
        return ops.split(self, indices_or_sections, axis=axis)

    def take(self, indices: TensorLike, axis: int | None = None) -> EmberTensor:
        """The elements at some indices of an axis."""
        return ops.take(self, indices, axis=axis)

    def nonzero(self) -> tuple[EmberTensor, ...]:
        """The indices of the elements that are not zero, by axis."""
        return ops.nonzero(self)

    def copy(self) -> EmberTensor:
        """A copy with memory of its own."""
        return ops.copy(self)
