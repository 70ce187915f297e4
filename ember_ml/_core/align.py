"""Slow path of a call: find the backend, convert and promote the operands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ember_ml._core import runtime
from ember_ml._core.convert import (
    as_backend,
    check_number,
    convert_to_tensor,
    native_backend,
    transfer,
)
from ember_ml._core.dtype import PYTHON_TYPES, EmberDType, bool_, promote, promote_scalar
from ember_ml._core.errors import (
    ArgumentTypeError,
    UnsupportedDTypeError,
    UnsupportedOpError,
    named,
)
from ember_ml._core.tensor import EmberTensor, wrap

if TYPE_CHECKING:
    from ember_ml._core.op import Op


def _positional(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the call with its tensors as positional arguments."""
    names = op.names[: len(op.roles)]
    if kwargs and any(name in kwargs for name in names):
        bound = op.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        positional = tuple(bound.arguments[name] for name in names)
        rest = {name: value for name, value in kwargs.items() if name not in names}
        return positional + args[len(names) :], rest
    if len(args) < sum(
        p.default is p.empty for p in list(op.signature.parameters.values())[: len(names)]
    ):
        op.signature.bind(*args, **kwargs)  # raises, naming what is missing
    return args, kwargs


def _tensors(op: Op, args: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """Yield (role, value) of every tensor argument, and of every element of a sequence."""
    for role, value in zip(op.roles, args, strict=False):
        if role == "sequence":
            yield from (("operand", part) for part in value)
        elif value is not None:
            yield role, value


def is_aligned(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether the backend got aligned operands, so that its error is final."""
    names = op.names[: len(op.roles)]
    if any(name in kwargs for name in names) or len(args) == 0:
        return False
    backends, dtypes = set(), set()
    for role, value in _tensors(op, args):
        if type(value) is not EmberTensor:
            return False
        backends.add(value._backend)
        if role == "operand":
            dtypes.add(value.dtype)
        elif role == "index" and value._tag not in runtime.INTEGER_TAGS:
            return False
    if len(backends) != 1 or len(dtypes) > 1:
        return False
    backend = backends.pop()
    return all(runtime.tag(backend, dtype) in op.kernels for dtype in dtypes)


def _backend(values: list[Any]) -> str:
    """Return the backend of the operands; the active one if they differ or have none."""
    backends = {value._backend for value in values if isinstance(value, EmberTensor)}
    if not backends:
        owners = [native_backend(value) for value in values]
        backends = {
            name for name in owners if name is not None and not runtime.LOADED[name].IS_HOST
        }
    return backends.pop() if len(backends) == 1 else runtime.active()


def _plain_number(value: Any) -> Any:
    """Return a number of a derived class (np.float64, an IntEnum) as a plain Python number."""
    kinds: tuple[Any, ...] = (int, float, complex)
    for kind in kinds:
        if isinstance(value, kind) and type(value) not in PYTHON_TYPES:
            return kind(value)
    return value


def _on_backend(op: Op, value: Any, backend: str) -> EmberTensor:
    """Return a tensor argument as a tensor of the backend, with its own dtype."""
    if isinstance(value, EmberTensor):
        if value._backend != backend:
            return transfer(value, backend)
        return value if type(value) is EmberTensor else wrap(value._data, value._backend)
    try:
        return convert_to_tensor(value, backend=backend)
    except (ValueError, TypeError) as error:
        raise named(op.label, error) from error


def _common_dtype(op: Op, operands: list[Any]) -> EmberDType:
    """Return the dtype that all operands are promoted to; of Python scalars the kind counts."""
    strong = [value.dtype for value in operands if isinstance(value, EmberTensor)]
    weak = [type(value) for value in operands if type(value) in PYTHON_TYPES]
    dtype = strong[0] if strong else PYTHON_TYPES[weak[0]]
    try:
        for other in strong[1:]:
            op.rule.check_pair(op.label, dtype, other)
            dtype = promote(dtype, other)
    except TypeError as error:
        raise named(op.label, error) from None
    for scalar in weak:
        dtype = promote_scalar(dtype, scalar)
    return op.rule.resolve(op.label, dtype)


def _cast(value: Any, dtype: EmberDType, backend: str) -> EmberTensor:
    if type(value) is int:
        check_number(value, dtype)
    return as_backend(value, backend, dtype)


def _check_index(op: Op, value: EmberTensor) -> EmberTensor:
    if not value.dtype.is_integer and value.size:
        raise ArgumentTypeError(f"{op.label}: indices must be integers, not {value.dtype}")
    return value if value.dtype.is_integer else as_backend(value, value._backend, PYTHON_TYPES[int])


def align(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the call with all tensor arguments on one backend and all operands in one dtype."""
    if op.host_check is not None:
        given = op.signature.bind(*args, **kwargs)
        given.apply_defaults()
        op.host_check(op.name, given.arguments)
    args, kwargs = _positional(op, args, kwargs)
    for role, optional, value in zip(op.roles, op.optional, args, strict=False):
        if role == "sequence" and not isinstance(value, (list, tuple)):
            if not isinstance(value, EmberTensor):
                raise ArgumentTypeError(
                    f"{op.label} takes a list or tuple of tensors, not {value!r}"
                )
            args = (list(value), *args[1:])
        if role == "sequence" and len(args[0]) == 0:
            raise ValueError(f"{op.label} needs at least one tensor")
        if value is None and not optional:
            raise ArgumentTypeError(f"{op.label}: None is not a tensor")
    values = [value for _, value in _tensors(op, args)]
    backend = _backend(values)
    if backend not in op.natives and op.body is None:
        raise UnsupportedOpError(f"the {backend} backend has no {op.key}")

    def convert(value: Any) -> Any:
        value = _plain_number(value)
        return value if type(value) in PYTHON_TYPES else _on_backend(op, value, backend)

    prepared: list[Any] = [
        [convert(part) for part in value]
        if role == "sequence"
        else (None if value is None else convert(value))
        for role, value in zip(op.roles, args, strict=False)
    ]
    operands = [value for role, value in _tensors(op, tuple(prepared)) if role == "operand"]
    dtype = _common_dtype(op, operands) if operands else bool_
    runtime.native_dtype(backend, dtype)  # raises, naming the dtypes that the backend has
    if backend in op.natives and operands and runtime.tag(backend, dtype) not in op.kernels:
        raise UnsupportedDTypeError(f"{op.label} on the {backend} backend does not take {dtype}")
    for position, role in enumerate(op.roles[: len(prepared)]):
        value = prepared[position]
        if role == "sequence":
            prepared[position] = [_cast(part, dtype, backend) for part in value]
        elif value is None:
            continue
        elif role == "operand":
            prepared[position] = _cast(value, dtype, backend)
        else:
            value = _on_backend(op, value, backend)
            prepared[position] = _check_index(op, value) if role == "index" else value
    return (*prepared, *args[len(op.roles) :]), kwargs
