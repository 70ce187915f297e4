"""How rules are entered in the table of ops."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, TypeVar

from ember_ml._core.op import Op
from ember_ml.autodiff.rules._shared import conj

F = TypeVar("F", bound=Callable[..., Any])


class Vjps:
    """The rule of an op: a function for each operand, or one for all of them.

    Attributes:
        parts: the functions by the operand's position; None where no gradient flows.
        joint: one function in their place, which gives the gradients of all operands.
        arithmetic: `parts` in a form that takes native arrays of real numbers as well.
    """

    __slots__ = ("arithmetic", "joint", "parts")

    def __init__(
        self,
        parts: tuple[Callable[..., Any] | None, ...] = (),
        joint: Callable[..., Any] | None = None,
    ) -> None:
        self.parts = parts
        self.joint = joint
        self.arithmetic: tuple[Callable[..., Any], ...] | None = None


def by_operand(function: Callable[..., Any], **parts: Callable[..., Any]) -> None:
    """Enter the rule of an op: `by_operand(ops.multiply, x=lambda g, out, x, y: g * y, y=...)`.

    An operand that is not named gets no gradient. That of an operand which is a sequence of tensors
    is a list.
    """
    op: Op = function.op  # type: ignore[attr-defined]
    names = op.names[: len(op.roles)]
    unknown = set(parts) - set(names)
    if unknown or op.vjps is not None:
        raise ValueError(f"{op.key}: a second rule, or no operands named {unknown}")
    op.vjps = Vjps(tuple(parts.get(name) for name in names))


def arithmetic(function: Callable[..., Any], **parts: Callable[..., Any]) -> None:
    """Enter the rule of a complex-differentiable op that is written with Python's operators alone.

    It names all operands and is written as for real numbers. With complex ones it is given g
    conjugated, and its result is conjugated again. Where nobody records, it is called with native
    arrays.
    """
    by_operand(function, **{name: _conjugating(part) for name, part in parts.items()})
    op: Op = function.op  # type: ignore[attr-defined]
    op.vjps.arithmetic = tuple(parts[name] for name in op.names[: len(op.roles)])


def _conjugating(part: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(part)
    def vjp(g: Any, *given: Any) -> Any:
        return conj(part(conj(g), *given)) if "complex" in g._tag else part(g, *given)

    return vjp


def rule(function: Callable[..., Any]) -> Callable[[F], F]:
    """Enter a rule that gives the gradients of all operands: a tuple, or that of the only one."""

    def decorate(joint: F) -> F:
        op: Op = function.op  # type: ignore[attr-defined]
        if op.vjps is not None:
            raise ValueError(f"{op.key}: a second rule")
        if len(op.roles) == 1:
            op.vjps = Vjps((joint,))
        else:
            op.vjps = Vjps(joint=joint)
        return joint

    return decorate


@functools.cache
def load() -> None:
    """Enter all rules."""
    from ember_ml.autodiff import rules as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
