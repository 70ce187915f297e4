"""Decorators that declare ops: typed, documented functions that run on the operands' backend.

A decorator turns a declaration into a dispatcher and adds it to the table of ops. The annotated
types say which parameters are tensors, and what is returned:

    TensorLike              an operand; all operands of a call are promoted to one dtype
    TensorsLike             several operands in one argument
    IndexLike, MaskLike     a tensor with a dtype of its own
    ... | None              may be None
    -> Tensor, tuple[Tensor, ...], list[Tensor], or a NamedTuple of tensors; any other result is
       returned as the backend returns it
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, overload

from ember_ml._core import calls, recording, rules
from ember_ml._core.dtype import DEFAULT_FLOAT, EmberDType
from ember_ml._core.op import OPS as OPS
from ember_ml._core.op import Op as Op
from ember_ml._core.op import enter
from ember_ml._core.rules import DTypeRule
from ember_ml._core.tensor import IndexLike as IndexLike
from ember_ml._core.tensor import MaskLike as MaskLike

F = TypeVar("F", bound=Callable[..., Any])

Build: TypeAlias = Callable[[Op, calls.Tapes], Callable[..., Any]]


def _declare(declared: F, kind: str, rule: DTypeRule, build: Build) -> F:
    entry = Op(declared, kind, rule)
    entry.plain = build(entry, ())
    entry.function = functools.wraps(declared)(build(entry, recording.OPEN))
    entry.function.op = entry  # type: ignore[attr-defined]
    enter(entry)
    return entry.function  # type: ignore[return-value]


def _decorator(declared: F | None, kind: str, rule: DTypeRule, build: Build) -> Any:
    if declared is None:
        return lambda function: _declare(function, kind, rule, build)
    return _declare(declared, kind, rule, build)


@overload
def unary(declared: F) -> F: ...
@overload
def unary(*, rule: DTypeRule) -> Callable[[F], F]: ...
def unary(declared: Any = None, *, rule: DTypeRule = rules.ANY) -> Any:
    """Declare an op of one tensor without other parameters."""
    return _decorator(declared, "unary", rule, calls.unary)


@overload
def binary(declared: F) -> F: ...
@overload
def binary(*, rule: DTypeRule) -> Callable[[F], F]: ...
def binary(declared: Any = None, *, rule: DTypeRule = rules.NUMERIC) -> Any:
    """Declare an op of two tensors without other parameters."""
    return _decorator(declared, "binary", rule, calls.binary)


@overload
def op(declared: F) -> F: ...
@overload
def op(*, rule: DTypeRule) -> Callable[[F], F]: ...
def op(declared: Any = None, *, rule: DTypeRule = rules.ANY) -> Any:
    """Declare an op of any other signature: tensors first, then other arguments."""
    return _decorator(declared, "general", rule, calls.by_roles)


@overload
def reduction(declared: F) -> F: ...
@overload
def reduction(*, rule: DTypeRule) -> Callable[[F], F]: ...
def reduction(declared: Any = None, *, rule: DTypeRule = rules.ANY) -> Any:
    """Declare an op that reduces some or all axes of a tensor."""
    return _decorator(declared, "reduction", rule, calls.by_roles)


@overload
def composite(declared: F) -> F: ...
@overload
def composite(*, rule: DTypeRule) -> Callable[[F], F]: ...
def composite(declared: Any = None, *, rule: DTypeRule = rules.ANY) -> Any:
    """Declare an op with a body of other ops; a native function of the same name replaces it."""
    return _decorator(declared, "composite", rule, calls.by_roles)


def _default_float(*args: Any, **kwargs: Any) -> EmberDType:
    return DEFAULT_FLOAT


@overload
def creation(declared: F) -> F: ...
@overload
def creation(*, dtype: Callable[..., EmberDType]) -> Callable[[F], F]: ...
def creation(declared: Any = None, *, dtype: Callable[..., EmberDType] = _default_float) -> Any:
    """Declare an op that creates a tensor on the active backend.

    The op has the keyword arguments `dtype` and `device`; its other arguments are not tensors.

    Args:
        declared: The declaration.
        dtype: Function of the arguments that returns the default dtype. Default: float32.
    """

    def build(op: Op, tapes: calls.Tapes) -> Callable[..., Any]:
        from ember_ml._core.creation import build_creation

        return build_creation(op, dtype)

    return _decorator(declared, "creation", rules.ANY, build)


def around(build: Callable[[Op], Callable[..., Any]]) -> Callable[[F], F]:
    """Wrap an op's dispatcher.

    Args:
        build: Function of the op that returns the wrapper of `op.function`.
    """

    def decorate(function: F) -> F:
        op: Op = function.op  # type: ignore[attr-defined]
        op.function = functools.wraps(function)(build(op))
        return op.function  # type: ignore[return-value]

    return decorate


def host_checked(check: Callable[[str, dict[str, Any]], None]) -> Callable[[F], F]:
    """Check the host data among an op's arguments before it is converted to tensors.

    Args:
        check: Called with the op's name and its arguments by name.
    """

    def decorate(function: F) -> F:
        function.op.host_check = check  # type: ignore[attr-defined]
        return function

    return decorate
