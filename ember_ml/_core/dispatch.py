"""Declaring ops: once, as typed and documented functions that run on the backend of their operands.

A decorator turns a declaration into a dispatcher and enters it in the table of ops. Which
parameters are tensors, and what comes back, is read from the annotations:

    TensorLike              an operand; all operands of a call are promoted to one dtype
    TensorsLike             several operands in one argument
    IndexLike, MaskLike     a tensor with a dtype of its own
    ... | None              may be None
    -> Tensor, tuple[Tensor, ...], list[Tensor], a NamedTuple of tensors, or anything else as the
       backend gives it
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
from ember_ml._core.rules import Rule
from ember_ml._core.tensor import EmberTensor
from ember_ml._core.tensor import IndexLike as IndexLike
from ember_ml._core.tensor import MaskLike as MaskLike

F = TypeVar("F", bound=Callable[..., Any])

Build: TypeAlias = Callable[[Op, calls.Tapes], Callable[..., Any]]


def _declare(declared: F, kind: str, rule: Rule, build: Build) -> F:
    entry = Op(declared, kind, rule)
    entry.plain = build(entry, ())
    entry.function = functools.wraps(declared)(build(entry, recording.OPEN))
    entry.function.op = entry  # type: ignore[attr-defined]
    enter(entry)
    return entry.function  # type: ignore[return-value]


def _decorator(declared: F | None, kind: str, rule: Rule, build: Build) -> Any:
    if declared is None:
        return lambda function: _declare(function, kind, rule, build)
    return _declare(declared, kind, rule, build)


@overload
def unary(declared: F) -> F: ...
@overload
def unary(*, rule: Rule) -> Callable[[F], F]: ...
def unary(declared: Any = None, *, rule: Rule = rules.ANY) -> Any:
    """Declare an op of one tensor and nothing else."""
    return _decorator(declared, "unary", rule, calls.unary)


@overload
def binary(declared: F) -> F: ...
@overload
def binary(*, rule: Rule) -> Callable[[F], F]: ...
def binary(declared: Any = None, *, rule: Rule = rules.NUMERIC) -> Any:
    """Declare an op of two tensors and nothing else."""
    return _decorator(declared, "binary", rule, calls.binary)


@overload
def op(declared: F) -> F: ...
@overload
def op(*, rule: Rule) -> Callable[[F], F]: ...
def op(declared: Any = None, *, rule: Rule = rules.ANY) -> Any:
    """Declare an op of any other signature: tensors first, then plain arguments."""
    return _decorator(declared, "general", rule, calls.by_roles)


@overload
def reduction(declared: F) -> F: ...
@overload
def reduction(*, rule: Rule) -> Callable[[F], F]: ...
def reduction(declared: Any = None, *, rule: Rule = rules.ANY) -> Any:
    """Declare an op that folds one or all axes of a tensor."""
    return _decorator(declared, "reduction", rule, calls.by_roles)


@overload
def composite(declared: F) -> F: ...
@overload
def composite(*, rule: Rule) -> Callable[[F], F]: ...
def composite(declared: Any = None, *, rule: Rule = rules.ANY) -> Any:
    """Declare an op with a body of other ops; a backend's function of the same name replaces it."""
    return _decorator(declared, "composite", rule, calls.by_roles)


def _default_float(*args: Any, **kwargs: Any) -> EmberDType:
    return DEFAULT_FLOAT


@overload
def creation(declared: F) -> F: ...
@overload
def creation(*, dtype: Callable[..., EmberDType]) -> Callable[[F], F]: ...
def creation(declared: Any = None, *, dtype: Callable[..., EmberDType] = _default_float) -> Any:
    """Declare an op that makes a tensor on the active backend: plain arguments, `dtype`, `device`.

    `dtype` here is a function of the arguments that gives the dtype where the caller gives none.
    """

    def build(op: Op, tapes: calls.Tapes) -> Callable[..., Any]:
        from ember_ml._core.creation import build_creation

        return build_creation(op, dtype)

    return _decorator(declared, "creation", rules.ANY, build)


def around(build: Callable[[Op], Callable[..., Any]]) -> Callable[[F], F]:
    """Put a function before an op's dispatch: `build(op)` makes it, to call `op.function`."""

    def decorate(function: F) -> F:
        op: Op = function.op  # type: ignore[attr-defined]
        op.function = functools.wraps(function)(build(op))
        return op.function  # type: ignore[return-value]

    return decorate


def host_checked(
    check: Callable[[str, dict[str, Any]], None], position: int = 1
) -> Callable[[F], F]:
    """Have `check(name, arguments)` look at a call whose argument at `position` is no tensor."""

    def build(op: Op) -> Callable[..., Any]:
        name, dispatch = op.name, op.function

        def call(*args: Any, **kwargs: Any) -> Any:
            if len(args) <= position or type(args[position]) is not EmberTensor:
                given = op.signature.bind(*args, **kwargs)
                given.apply_defaults()
                check(name, given.arguments)
            return dispatch(*args, **kwargs)

        return call

    return around(build)
