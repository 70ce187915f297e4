"""Ops: declared once, run by the backend that their operands live on.

A decorator turns a declaration (a typed, documented function) into a dispatcher and enters it in `OPS`.
Which parameters are tensors, and what comes back, is read from the annotations:

    TensorLike              an operand; all operands of a call are promoted to one dtype
    Sequence[TensorLike]    several operands in one argument
    IndexLike, MaskLike     a tensor with a dtype of its own
    ... | None              may be None
    -> Tensor, tuple[Tensor, ...], a NamedTuple of tensors, or anything else as the backend gives it

`op.kernels` maps native dtypes straight to native functions, so that the usual call costs a lookup and a wrapper.
Whatever is not usual (scalars, lists, promotion, two backends, an error) leaves the quick path for `_core.align`
and `_core.explain`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias, TypeVar, overload

from ember_ml._core import rules, runtime
from ember_ml._core.dtype import DEFAULT_FLOAT, EmberDType, promote_scalar
from ember_ml._core.rules import Rule
from ember_ml._core.tensor import EmberTensor, TensorLike, wrap

F = TypeVar("F", bound=Callable[..., Any])
IndexLike: TypeAlias = TensorLike
"""A tensor of integers, beside the operands."""
MaskLike: TypeAlias = TensorLike
"""A tensor of any dtype, beside the operands."""

_ROLES = {"TensorLike": "operand", "Sequence[TensorLike]": "sequence", "IndexLike": "index", "MaskLike": "mask"}
_new = object.__new__


class Op:
    """An entry in the table of ops."""

    __slots__ = (
        "body",
        "declared",
        "family",
        "function",
        "kernels",
        "kind",
        "left",
        "name",
        "natives",
        "operands",
        "output",
        "roles",
        "right",
        "rule",
        "signature",
    )

    def __init__(self, declared: Callable[..., Any], kind: str, rule: Rule, composite: bool) -> None:
        self.declared = declared
        self.name = declared.__name__
        self.family = declared.__module__.removeprefix("ember_ml.ops.")
        self.kind = kind
        self.rule = rule
        self.body = declared if composite else None
        self.kernels: dict[Any, Callable[..., Any]] = {}
        self.left = ScalarKernels()
        self.right = ScalarKernels()
        self.natives: dict[str, Callable[..., Any]] = {}
        self.signature = inspect.signature(declared)
        self.roles = _roles(self.signature)
        self.operands = tuple(i for i, role in enumerate(self.roles) if role in ("operand", "sequence"))
        self.output = _output(declared)
        self.function: Callable[..., Any] = declared

    @property
    def key(self) -> str:
        """The op's name with its family: "elementwise.add"."""
        return f"{self.family}.{self.name}"

    def __repr__(self) -> str:
        return f"<op {self.key}>"


class ScalarKernels:
    """Native functions for a tensor with a Python scalar on one side, by native dtype."""

    __slots__ = ("floats", "small", "wide")

    def __init__(self) -> None:
        self.floats: dict[Any, Callable[..., Any]] = {}
        self.small: dict[Any, Callable[..., Any]] = {}  # any integer dtype holds 0 to 127
        self.wide: dict[Any, Callable[..., Any]] = {}  # these hold any 32-bit integer

    def enter(self, backend: str, dtypes: list[EmberDType], native: Callable[..., Any] | None) -> None:
        """Add a backend's function; None if it takes no scalars there."""
        if native is None:
            return
        for dtype in dtypes:
            key = runtime.NATIVE[backend][dtype]
            if promote_scalar(dtype, float) is dtype:
                self.floats[key] = native
            if promote_scalar(dtype, int) is dtype:
                self.small[key] = native
                if dtype.kind != "uint" and (dtype.bits >= 32 or dtype.kind != "int"):
                    self.wide[key] = native


OPS: dict[str, Op] = {}
"""Every op by key. Tests, method tables and the gradient rules are derived from it."""


def _roles(signature: inspect.Signature) -> tuple[str, ...]:
    """The roles of the leading tensor parameters."""
    found = []
    for parameter in signature.parameters.values():
        annotation = str(parameter.annotation).removesuffix(" | None")
        if annotation not in _ROLES:
            break
        found.append(_ROLES[annotation])
    return tuple(found)


def _output(declared: Callable[..., Any]) -> Callable[[Any, str], Any] | None:
    """How a native result is wrapped, or None for a single tensor."""
    annotation = str(inspect.get_annotations(declared).get("return"))
    if annotation == "Tensor":
        return None
    if annotation in ("tuple[Tensor, ...]", "tuple[Tensor, Tensor]", "tuple[Tensor, Tensor, Tensor]"):
        return lambda out, backend: tuple([wrap(part, backend) for part in out])
    if annotation == "list[Tensor]":
        return lambda out, backend: [wrap(part, backend) for part in out]
    result = getattr(inspect.getmodule(declared), annotation, None)
    result = result or declared.__globals__.get(annotation)
    if inspect.isclass(result) and issubclass(result, tuple):
        return lambda out, backend: result(*[wrap(part, backend) for part in out])
    return lambda out, backend: out


def _bind(op: Op, name: str, module: ModuleType) -> None:
    """Enter a backend's function for an op."""
    family = importlib.import_module(f"ember_ml.backend.{name}.ops.{op.family}")
    native = getattr(family, op.name, None)
    if native is None:
        return
    op.natives[name] = native
    refused = getattr(family, "UNSUPPORTED_DTYPES", {}).get(op.name, ())
    takes = [dtype for dtype in runtime.NATIVE[name] if op.rule.takes(dtype) and dtype.name not in refused]
    for dtype in takes:
        op.kernels[runtime.NATIVE[name][dtype]] = native
    if op.kind == "binary":
        op.right.enter(name, takes, getattr(family, "RIGHT_SCALARS", {}).get(op.name))
        op.left.enter(name, takes, getattr(family, "LEFT_SCALARS", {}).get(op.name))


def _bind_backend(name: str, module: ModuleType) -> None:
    for op in OPS.values():
        _bind(op, name, module)


runtime.on_load.append(_bind_backend)


def _enter(declared: F, kind: str, rule: Rule, build: Callable[[Op], Callable[..., Any]], *, composite: bool = False) -> F:
    op = Op(declared, kind, rule, composite)
    if op.key in OPS:
        raise ValueError(f"the op {op.key} is declared twice")
    op.function = functools.wraps(declared)(build(op))
    op.function.op = op  # type: ignore[attr-defined]
    OPS[op.key] = op
    for name, module in runtime.LOADED.items():
        _bind(op, name, module)
    return op.function  # type: ignore[return-value]


def _recover(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception | None = None) -> Any:
    """Bring unusual operands into the usual form and call again; else explain the error."""
    from ember_ml._core import align, explain

    if error is None or not align.is_aligned(op, args, kwargs):
        args, kwargs = align.align(op, args, kwargs)
        return op.function(*args, **kwargs)
    raise explain.explain(op, args, kwargs, error) from error


def _build_unary(op: Op) -> Callable[..., Any]:
    kernels = op.kernels

    def unary(x: Any) -> EmberTensor:
        if type(x) is EmberTensor:
            data = x._data
            try:
                out = kernels[data.dtype](data)
            except Exception as error:
                return _recover(op, (x,), {}, error)
            tensor = _new(EmberTensor)
            tensor._data = out
            tensor._backend = x._backend
            return tensor
        return _recover(op, (x,), {})

    return unary


def _build_binary(op: Op) -> Callable[..., Any]:
    kernels = op.kernels
    right_float, right_small, right_wide = op.right.floats, op.right.small, op.right.wide
    left_float, left_small, left_wide = op.left.floats, op.left.small, op.left.wide

    def binary(x: Any, y: Any) -> EmberTensor:
        try:
            if type(x) is EmberTensor:
                backend = x._backend
                a = x._data
                dtype = a.dtype
                if type(y) is EmberTensor:
                    b = y._data
                    if backend is not y._backend or dtype != b.dtype:
                        return _recover(op, (x, y), {})
                    out = kernels[dtype](a, b)
                elif type(y) is float:
                    out = right_float[dtype](a, y)
                elif type(y) is int and -2147483648 <= y <= 2147483647:
                    out = (right_small if 0 <= y <= 127 else right_wide)[dtype](a, y)
                else:
                    return _recover(op, (x, y), {})
            elif type(y) is EmberTensor:
                backend = y._backend
                b = y._data
                if type(x) is float:
                    out = left_float[b.dtype](x, b)
                elif type(x) is int and -2147483648 <= x <= 2147483647:
                    out = (left_small if 0 <= x <= 127 else left_wide)[b.dtype](x, b)
                else:
                    return _recover(op, (x, y), {})
            else:
                return _recover(op, (x, y), {})
        except Exception as error:
            return _recover(op, (x, y), {}, error)
        tensor = _new(EmberTensor)
        tensor._data = out
        tensor._backend = backend
        return tensor

    return binary


def _build_general(op: Op) -> Callable[..., Any]:
    """For an op of one leading tensor and arguments that are passed on."""
    kernels, output, body = op.kernels, op.output, op.body
    dtype_at = list(op.signature.parameters).index("dtype") if "dtype" in op.signature.parameters else None

    def general(*args: Any, **kwargs: Any) -> Any:
        if not args or type(args[0]) is not EmberTensor:
            return _recover(op, args, kwargs)
        x = args[0]
        data = x._data
        backend = x._backend
        if body is not None and backend not in op.natives:
            return body(*args, **kwargs)
        try:
            if dtype_at is not None:
                args, kwargs = _native_dtype(args, kwargs, dtype_at, backend)
            out = kernels[data.dtype](data, *args[1:], **kwargs)
        except Exception as error:
            return _recover(op, (x, *args[1:]), kwargs, error)
        if output is not None:
            return output(out, backend)
        tensor = _new(EmberTensor)
        tensor._data = out
        tensor._backend = backend
        return tensor

    return general


def _native_dtype(
    args: tuple[Any, ...], kwargs: dict[str, Any], at: int, backend: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with a dtype of ours replaced by the backend's."""
    from ember_ml._core.convert import as_dtype

    if len(args) > at and args[at] is not None:
        native = runtime.native_dtype(backend, as_dtype(args[at]))
        return (*args[:at], native, *args[at + 1 :]), kwargs
    if kwargs.get("dtype") is not None:
        return args, {**kwargs, "dtype": runtime.native_dtype(backend, as_dtype(kwargs["dtype"]))}
    return args, kwargs


def _build_several(op: Op) -> Callable[..., Any]:
    """For an op of several leading tensors, some of which may be missing."""
    kernels, output, body = op.kernels, op.output, op.body
    count = len(op.roles)
    is_operand = tuple(role == "operand" for role in op.roles)
    names = frozenset(list(op.signature.parameters)[:count])

    def several(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not names.isdisjoint(kwargs):
            return _recover(op, args, kwargs)
        backend = dtype = None
        native = []
        for value, promoted in zip(args, is_operand):  # noqa: B905  (args may be longer: the rest is no tensor)
            if type(value) is EmberTensor:
                data = value._data
                if backend is None:
                    backend = value._backend
                elif value._backend is not backend:
                    return _recover(op, args, kwargs)
                if promoted:
                    if dtype is None:
                        dtype = data.dtype
                    elif data.dtype != dtype:
                        return _recover(op, args, kwargs)
                native.append(data)
            elif value is None:
                native.append(None)
            else:
                return _recover(op, args, kwargs)
        if backend is None:
            return _recover(op, args, kwargs)
        if body is not None and backend not in op.natives:
            return body(*args, **kwargs)
        try:
            out = kernels[dtype](*native, *args[count:], **kwargs)
        except Exception as error:
            return _recover(op, args, kwargs, error)
        if output is not None:
            return output(out, backend)
        tensor = _new(EmberTensor)
        tensor._data = out
        tensor._backend = backend
        return tensor

    return several


def _build_sequence(op: Op) -> Callable[..., Any]:
    """For an op whose first argument is a sequence of tensors."""
    kernels, output, body = op.kernels, op.output, op.body

    def sequence(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        backend = dtype = None
        native = []
        if isinstance(tensors, (list, tuple)):
            for value in tensors:
                if type(value) is not EmberTensor:
                    return _recover(op, (tensors, *args), kwargs)
                data = value._data
                if backend is None:
                    backend, dtype = value._backend, data.dtype
                elif value._backend is not backend or data.dtype != dtype:
                    return _recover(op, (tensors, *args), kwargs)
                native.append(data)
        if backend is None:
            return _recover(op, (tensors, *args), kwargs)
        if body is not None and backend not in op.natives:
            return body(tensors, *args, **kwargs)
        try:
            out = kernels[dtype](native, *args, **kwargs)
        except Exception as error:
            return _recover(op, (tensors, *args), kwargs, error)
        return wrap(out, backend) if output is None else output(out, backend)

    return sequence


def _build(op: Op) -> Callable[..., Any]:
    if op.roles == ("sequence",):
        return _build_sequence(op)
    if len(op.roles) == 1:
        return _build_general(op)
    return _build_several(op)


@overload
def unary(declared: F) -> F: ...
@overload
def unary(*, rule: Rule) -> Callable[[F], F]: ...
def unary(declared: Any = None, *, rule: Rule = rules.ANY) -> Any:
    """Declare an op of one tensor and nothing else."""
    if declared is None:
        return lambda function: _enter(function, "unary", rule, _build_unary)
    return _enter(declared, "unary", rule, _build_unary)


@overload
def binary(declared: F) -> F: ...
@overload
def binary(*, rule: Rule) -> Callable[[F], F]: ...
def binary(declared: Any = None, *, rule: Rule = rules.NUMERIC) -> Any:
    """Declare an op of two tensors and nothing else."""
    if declared is None:
        return lambda function: _enter(function, "binary", rule, _build_binary)
    return _enter(declared, "binary", rule, _build_binary)


@overload
def op(declared: F) -> F: ...
@overload
def op(*, rule: Rule) -> Callable[[F], F]: ...
def op(declared: Any = None, *, rule: Rule = rules.ANY) -> Any:
    """Declare an op of any other signature: tensors first, then plain arguments."""
    if declared is None:
        return lambda function: _enter(function, "general", rule, _build)
    return _enter(declared, "general", rule, _build)


@overload
def reduction(declared: F) -> F: ...
@overload
def reduction(*, rule: Rule) -> Callable[[F], F]: ...
def reduction(declared: Any = None, *, rule: Rule = rules.ANY) -> Any:
    """Declare an op that folds one or all axes of a tensor."""
    if declared is None:
        return lambda function: _enter(function, "reduction", rule, _build)
    return _enter(declared, "reduction", rule, _build)


@overload
def composite(declared: F) -> F: ...
@overload
def composite(*, rule: Rule) -> Callable[[F], F]: ...
def composite(declared: Any = None, *, rule: Rule = rules.ANY) -> Any:
    """Declare an op with a body of other ops; a backend's function of the same name replaces it."""
    if declared is None:
        return lambda function: _enter(function, "composite", rule, _build, composite=True)
    return _enter(declared, "composite", rule, _build, composite=True)


def _default_float(*args: Any, **kwargs: Any) -> EmberDType:
    return DEFAULT_FLOAT


@overload
def creation(declared: F) -> F: ...
@overload
def creation(*, dtype: Callable[..., EmberDType]) -> Callable[[F], F]: ...
def creation(declared: Any = None, *, dtype: Callable[..., EmberDType] = _default_float) -> Any:
    """Declare an op that makes a tensor on the active backend from plain arguments, `dtype` and `device`.

    `dtype` here is a function of the arguments that gives the dtype where the caller gives none.
    """

    def build(op: Op) -> Callable[..., Any]:
        from ember_ml._core.creation import build_creation

        return build_creation(op, dtype)

    def enter(function: F) -> F:
        return _enter(function, "creation", rules.ANY, build)

    return enter if declared is None else enter(declared)
