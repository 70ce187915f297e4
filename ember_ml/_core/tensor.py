"""The tensor: an array of a framework and the name of its backend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, NoReturn, TypeAlias, Union

from ember_ml._core import recording, runtime
from ember_ml._core.dtype import EmberDType
from ember_ml._core.errors import ArgumentTypeError, ShapeError, UnsupportedDTypeError
from ember_ml._core.methods import TensorMethods
from ember_ml._core.types import DTypeLike as DTypeLike
from ember_ml._core.types import NativeArray, Scalar


class EmberTensor(TensorMethods):
    """N-dimensional array on one of the backends.

    Create one with `tensor.array`, `tensor.convert_to_tensor` or an op such as `ops.zeros`. An op
    runs on the backend of its operands; the active backend only decides where new tensors are
    created. Tensors have value semantics: `x[i] = v` and `x += v` change this tensor and no other.

    Args:
        data: A tensor, an array of a framework, nested lists or a number.
        dtype: Dtype. Default: that of the data; float32 and int64 for Python numbers.
        device: Device. Default: that of the data, or the default device.
    """

    __slots__ = ("__weakref__", "_backend", "_data", "_tag")

    # NumPy's operators defer to ours; np.asarray(x) and NumPy's functions still accept a tensor.
    __array_priority__ = 1000

    trainable = False
    """Whether tapes watch it by default, as they do for parameters."""

    def __init__(
        self,
        data: TensorLike,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
    ) -> None:
        from ember_ml._core.convert import convert_to_tensor

        tensor = convert_to_tensor(data, dtype=dtype, device=device)
        self._data = tensor._data
        if isinstance(data, EmberTensor):  # a new handle: tapes identify a value by it
            self._data = runtime.LOADED[tensor._backend].adopt(tensor._data)
        self._backend = tensor._backend
        self._tag = tensor._tag

    @staticmethod
    def from_native(data: NativeArray, backend: str | None = None) -> EmberTensor:
        """Return a tensor around an array of a framework, without a copy.

        It is the counterpart of `native`: the tensor lives on the backend of the array's framework,
        whichever backend is active. `convert_to_tensor` also takes lists and numbers, and moves
        NumPy arrays to the active backend.

        Args:
            data: A NumPy, torch or MLX array. The tensor shares its memory.
            backend: Name of the backend that the array belongs to. Default: detected from its type.

        Example:
            >>> import numpy as np
            >>> Tensor.from_native(np.zeros((2, 3))).shape
            (2, 3)
        """
        if backend is None:
            from ember_ml._core.convert import native_backend

            backend = native_backend(data)
            if backend is None:
                raise ArgumentTypeError(
                    f"Tensor.from_native: {type(data).__qualname__} is not an array of a backend; "
                    "use convert_to_tensor for lists and numbers"
                )
        try:
            return wrap(data, backend)
        except KeyError:
            if backend not in runtime.LOADED:
                runtime.load(backend)
                return EmberTensor.from_native(data, backend)
            raise UnsupportedDTypeError(
                f"Tensor.from_native: the {backend} backend has no dtype {data.dtype}"
            ) from None

    @property
    def native(self) -> Any:
        """Array of the framework that holds the elements, not a copy."""
        return self._data

    @property
    def backend(self) -> str:
        """Name of the backend."""
        return self._backend

    @property
    def dtype(self) -> EmberDType:
        """Type of the elements."""
        return runtime.DTYPE_OF_TAG[self._tag]

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return tuple(self._data.shape)

    @property
    def device(self) -> str:
        """Device of the elements: "cpu", "cuda:0", "gpu" ..."""
        return runtime.LOADED[self._backend].device_of(self._data)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._data.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for length in self._data.shape:
            size *= length
        return size

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def T(self) -> EmberTensor:  # noqa: N802
        """Transpose of a matrix."""
        if self.ndim != 2:
            raise ShapeError(
                f"T needs a matrix; the shape is {self.shape} (mT swaps the last two axes)"
            )
        return self.mT

    def numpy(self) -> Any:
        """Return the elements as a NumPy array that shares the memory where possible."""
        return runtime.LOADED[self._backend].to_host(self._data)

    def item(self) -> Any:
        """Return the only element as a Python number."""
        if self.size != 1:
            raise ShapeError(f"item() needs a tensor of one element; the shape is {self.shape}")
        return runtime.LOADED[self._backend].item(self._data)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        return runtime.LOADED[self._backend].tolist(self._data)

    def to_backend(self, backend: str) -> EmberTensor:
        """Return the tensor on another backend.

        Args:
            backend: Name of the backend.
        """
        from ember_ml._core.convert import move

        return move(self, backend)

    def to_device(self, device: str, /, *, stream: None = None) -> EmberTensor:
        """Return the tensor on another device of its backend.

        Args:
            device: Name of the device.
            stream: Must be None; the parameter belongs to the array API standard.
        """
        if stream is not None:
            raise ArgumentTypeError(
                "to_device: stream must be None; backends schedule their own work"
            )
        return wrap(runtime.LOADED[self._backend].to_device(self._data, device), self._backend)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return runtime.host().as_array(self.numpy(), dtype, copy)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return runtime.LOADED[self._backend].to_dlpack(
            self._data, stream, max_version, dl_device, copy
        )

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._data.__dlpack_device__()

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if not self.dtype.is_integer or self.ndim != 0:
            raise ArgumentTypeError(
                f"only a 0-d integer tensor is an index; got {self.dtype} of shape {self.shape}"
            )
        return int(self.item())

    def _scalar(self, target: str) -> Any:
        if self.size != 1:
            raise ShapeError(f"{target}() needs a tensor of one element; the shape is {self.shape}")
        return self.item()

    def __getitem__(self, key: Any) -> EmberTensor:
        kind = type(key)
        if not _open_tapes and (kind in _PLAIN or (kind is tuple and _is_plain(key))):
            try:
                out = _readers[self._backend](self._data, key)
            except Exception:
                return super().__getitem__(key)  # raises, or reads what the framework cannot
            tensor = _new(EmberTensor)
            tensor._data = out
            tensor._backend = self._backend
            tensor._tag = self._tag
            return tensor
        return super().__getitem__(key)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise ArgumentTypeError("len() of a 0-d tensor")
        return int(self._data.shape[0])

    def __iter__(self) -> Iterator[EmberTensor]:
        if self.ndim == 0:
            raise ArgumentTypeError("iteration over a 0-d tensor")
        return (self[index] for index in range(len(self)))

    def __contains__(self, value: object) -> bool:
        matches = self == value
        return isinstance(matches, EmberTensor) and bool(matches.any())

    def __copy__(self) -> EmberTensor:
        return wrap(self._data, self._backend)

    def __deepcopy__(self, memo: dict[int, Any]) -> EmberTensor:
        return wrap(runtime.LOADED[self._backend].copy(self._data), self._backend)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise ArgumentTypeError(
            "tensors cannot be pickled; save them with safetensors, or send x.numpy()"
        )

    def __repr__(self) -> str:
        values = runtime.host().format_array(runtime.LOADED[self._backend].to_portable(self._data))
        return (
            f"tensor({values}, shape={self.shape}, dtype={self.dtype}, "
            f"device={self.device!r}, backend={self._backend!r})"
        )

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else repr(self)


Tensor = EmberTensor
_new = object.__new__
_open_tapes = recording.OPEN
_readers = runtime.READERS
_PLAIN = (int, slice, type(Ellipsis), type(None))
"""Types in a key that every framework reads in the same way."""


def _is_plain(key: tuple[Any, ...]) -> bool:
    ellipses = 0
    for part in key:
        if part is Ellipsis:
            ellipses += 1
        elif type(part) not in _PLAIN:
            return False
    return ellipses <= 1


def native_arrays(tensors: Iterable[EmberTensor]) -> list[NativeArray]:
    """Return the native array of each tensor."""
    return [x._data for x in tensors]


def placements(tensors: Iterable[EmberTensor]) -> list[str]:
    """Return "backend:dtype" of each tensor."""
    return [x._tag for x in tensors]


def one_backend(name: str, tensors: Iterable[EmberTensor]) -> str:
    """Return the backend of tensors; raise an error that names the caller if there are several."""
    backends = sorted({x._backend for x in tensors})
    if len(backends) != 1:
        raise ArgumentTypeError(
            f"{name}: the arguments are on {' and '.join(backends)}; move them to one backend"
        )
    return backends[0]


def wrap(data: Any, backend: str) -> EmberTensor:
    """Return a tensor around a native array of a loaded backend."""
    tensor = _new(EmberTensor)
    tensor._data = data
    tensor._backend = backend
    tensor._tag = runtime.TAG_OF[backend][data.dtype]
    return tensor


def wrap_all(arrays: Iterable[Any], backend: str) -> list[EmberTensor]:
    """Return tensors around native arrays of a loaded backend."""
    return [wrap(data, backend) for data in arrays]


def snapshots(tensors: Iterable[EmberTensor]) -> list[EmberTensor]:
    """Return plain tensors with the current arrays of tensors, which later changes leave alone."""
    copies = []
    for tensor in tensors:
        copy = _new(EmberTensor)
        copy._data, copy._backend, copy._tag = tensor._data, tensor._backend, tensor._tag
        copies.append(copy)
    return copies


def rebind(tensors: Iterable[EmberTensor], values: Iterable[EmberTensor]) -> None:
    """Make each tensor refer to the array of another, with its backend and dtype."""
    for tensor, value in zip(tensors, values, strict=True):
        tensor._data, tensor._backend, tensor._tag = value._data, value._backend, value._tag


def set_natives(tensors: Sequence[EmberTensor], arrays: Sequence[Any]) -> None:
    """Replace the native array of each tensor by another of its dtype and backend."""
    for tensor, data in zip(tensors, arrays, strict=True):
        tensor._data = data


TensorLike: TypeAlias = Union[EmberTensor, NativeArray, Scalar, "Sequence[TensorLike]"]
"""Operand of an op: a tensor, a Parameter, an array of a framework, nested lists or a number.

All operands of a call are promoted to one dtype.
"""
TensorsLike: TypeAlias = Annotated[Sequence[TensorLike], "sequence"]
"""Sequence of operands in one argument."""
IndexLike: TypeAlias = Annotated[TensorLike, "index"]
"""Integers with a dtype of their own."""
MaskLike: TypeAlias = Annotated[TensorLike, "mask"]
"""Values of any dtype that is not promoted with the operands."""
