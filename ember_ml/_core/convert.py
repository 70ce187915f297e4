"""Conversion of data to tensors, and of tensors to other backends."""

from __future__ import annotations

import warnings
from typing import Any

from ember_ml._core import recording, runtime
from ember_ml._core.dtype import (
    DTYPES,
    INTEGER_RANGES,
    PYTHON_TYPES,
    EmberDType,
)
from ember_ml._core.errors import ArgumentTypeError, BackendTransferWarning
from ember_ml._core.op import OPS
from ember_ml._core.tensor import DTypeLike, EmberTensor, TensorLike, wrap
from ember_ml._core.types import NativeArray
from ember_ml.backend import devices, selection


def as_dtype(value: DTypeLike) -> EmberDType:
    """Return the dtype for a name, a Python type or a framework's dtype.

    Args:
        value: Dtype, its name, a Python scalar type or a dtype object of a framework.
    """
    if type(value) is EmberDType:
        return value
    if isinstance(value, str):
        name = value.rpartition(".")[2]  # "torch.float32" and "mlx.core.float32" too
        if name in DTYPES:
            return DTYPES[name]
    elif isinstance(value, type) and value in PYTHON_TYPES:
        return PYTHON_TYPES[value]
    else:
        try:
            return runtime.DTYPE_OF[value]
        except (KeyError, TypeError):
            pass
        name = getattr(value, "__name__", None) or str(value)
        name = name.rpartition(".")[2].rstrip("_")
        if name in DTYPES:
            return DTYPES[name]
    raise ArgumentTypeError(f"{value!r} is not a dtype; known dtypes are {', '.join(DTYPES)}")


def check_number(value: float, dtype: EmberDType) -> None:
    """Raise an OverflowError if a number is NaN or out of range for an integer dtype.

    Args:
        value: Python number. The fractional part of a float is ignored.
        dtype: Dtype that the number is cast to.
    """
    if dtype in INTEGER_RANGES:
        low, high = INTEGER_RANGES[dtype]
        if not low - 1 < value < high + 1:
            raise OverflowError(f"{value} does not fit {dtype} ({low} to {high})")


def native_backend(data: Any) -> str | None:
    """Return the backend of a native array, loaded if need be; None for other data."""
    backend = runtime.backend_of(data)
    if backend is not None:
        return backend
    package = type(data).__module__.partition(".")[0]
    for name, entry in selection.BACKENDS.items():
        if name not in runtime.LOADED and package.startswith(entry.package):  # jaxlib is JAX's too
            runtime.load(name)
    return runtime.backend_of(data)


def is_framework_array(value: object) -> bool:
    """Return whether a value is a tensor or an array of a framework; scalars and lists are not."""
    return isinstance(value, EmberTensor) or native_backend(value) is not None


def first_element(value: object) -> object:
    """Return the first element of nested lists; other values and [] are returned unchanged."""
    while isinstance(value, list) and value:
        value = value[0]
    return value


def _from_host(
    data: Any, backend: str, dtype: EmberDType | None, device: str | None, copy: bool | None
) -> EmberTensor:
    array, inferred = runtime.host().parse(data, None if dtype is None else dtype.name)
    target = dtype or DTYPES[inferred]
    runtime.host().check_range(array, target)
    native = runtime.native_dtype(backend, target)
    return wrap(
        runtime.LOADED[backend].from_host(array, native, devices.resolve(backend, device), copy),
        backend,
    )


def _scalar(value: Any, backend: str, dtype: EmberDType, device: str | None) -> EmberTensor:
    if type(value) is int or type(value) is float:
        check_number(value, dtype)
    if type(value) is complex and not dtype.is_complex:
        raise ArgumentTypeError(f"the complex number {value} does not fit {dtype}")
    native = runtime.native_dtype(backend, dtype)
    return wrap(
        runtime.LOADED[backend].scalar(value, native, devices.resolve(backend, device)), backend
    )


def convert_to_tensor(
    data: TensorLike,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    *,
    backend: str | None = None,
    copy: bool | None = None,
) -> EmberTensor:
    """Return `data` as a tensor; a tensor is returned as it is.

    Args:
        data: A tensor, an array of a framework, nested lists or a number.
        dtype: Dtype of the result. Default: that of the data; float32 and int64 for Python numbers.
        device: Device of the result. Default: that of the data, or the default device.
        backend: Backend of the result. Default: that of the data, or the active backend.
        copy: True always copies, False never does and raises if it has to, None copies as needed.
    """
    target = None if dtype is None else as_dtype(dtype)
    if isinstance(data, EmberTensor):
        return _adjust(data, target, device, backend, copy)
    backend = backend or runtime.active()
    runtime.load(backend)
    if type(data) in PYTHON_TYPES:
        if copy is False:
            raise ValueError("copy=False: a Python scalar has no memory to share")
        return _scalar(data, backend, target or PYTHON_TYPES[type(data)], device)
    owner = native_backend(data)
    if owner is None and hasattr(data, "__dlpack__") and not hasattr(data, "__array__"):
        data, owner = runtime.LOADED[backend].from_dlpack(data, None), backend
    if owner is not None and (owner == backend or not runtime.LOADED[owner].IS_HOST):
        if target is not None and runtime.LOADED[owner].IS_HOST:
            runtime.host().check_range(data, target)
        return _adjust(wrap(_adopted(data, owner), owner), target, device, backend, copy)
    return _from_host(data, backend, target, device, copy)


def _adopted(data: Any, owner: str) -> NativeArray:
    """Return a native array as its backend keeps it; raise an error if no tensor has its dtype."""
    array = runtime.LOADED[owner].adopt(data)
    if array.dtype not in runtime.TAG_OF[owner]:
        raise ArgumentTypeError(f"a tensor takes numbers, not {array.dtype}: {data!r:.60}")
    return array


def convert_floats(data: Any, dtype: EmberDType, backend: str) -> EmberTensor:
    """Return data as a tensor of a backend, with the given dtype if it is floating-point.

    The dtype changes before the backend: data may have a dtype that the backend lacks.

    Args:
        data: A tensor, an array of a framework, nested lists or a number.
        dtype: Dtype of floating-point tensors.
        backend: Backend of the tensor.
    """
    owner = None if isinstance(data, EmberTensor) else native_backend(data)
    if owner is None:
        x = data if isinstance(data, EmberTensor) else convert_to_tensor(data, backend=backend)
    elif runtime.LOADED[owner].IS_HOST:
        floating = getattr(data.dtype, "kind", "f") == "f"
        return convert_to_tensor(data, dtype if floating else None, backend=backend)
    else:
        x = convert_to_tensor(data, backend=owner)
    if x.dtype.is_floating:
        x = convert_to_tensor(x, dtype)
    return convert_to_tensor(x, backend=backend)


def _adjust(
    x: EmberTensor,
    dtype: EmberDType | None,
    device: str | None,
    backend: str | None,
    copy: bool | None,
) -> EmberTensor:
    """Return the tensor with another dtype, device or backend, copied only if necessary."""
    start = x._data
    if backend is not None and backend != x._backend:
        x = move(x, backend)
    module = runtime.LOADED[x._backend]
    data = x._data
    if dtype is not None and dtype is not x.dtype:
        if recording.OPEN:
            x = OPS["dtypes.astype"].function(x, dtype)
        data = (
            x._data
            if x.dtype is dtype
            else module.cast(data, runtime.native_dtype(x._backend, dtype))
        )
    if device is not None and device != module.device_of(data):
        data = module.to_device(data, devices.resolve(x._backend, device))
    if copy is False and data is not start:
        raise ValueError("copy=False: the requested dtype, device or backend needs a copy")
    if copy and data is start:
        data = module.copy(data)
    return x if data is x._data else wrap(data, x._backend)


def move(x: EmberTensor, backend: str) -> EmberTensor:
    """Return the tensor on another backend with the same dtype, sharing memory where possible."""
    if backend == x._backend:
        return x
    target = runtime.load(backend)
    native = runtime.native_dtype(backend, x.dtype)
    place = devices.default_device(backend)
    data = target.from_backend(runtime.LOADED[x._backend], x._data, native, place)
    return wrap(data, backend)


def as_backend(value: TensorLike, backend: str, like: EmberDType | None = None) -> EmberTensor:
    """Return an operand as a tensor of `backend`, cast to the dtype `like` if given."""
    if isinstance(value, EmberTensor):
        moved = value if value._backend == backend else transfer(value, backend)
        return (
            moved if like is None or moved.dtype is like else _adjust(moved, like, None, None, None)
        )
    return convert_to_tensor(value, like, backend=backend)


def transfer(x: EmberTensor, backend: str) -> EmberTensor:
    """Move an operand to the backend of the call, with a warning."""
    warnings.warn(
        f"operands of several backends: a {x._backend} tensor was moved to {backend}; move it "
        "yourself with x.to_backend(...)",
        BackendTransferWarning,
        stacklevel=6,
    )
    return move(x, backend)
