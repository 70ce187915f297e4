"""Declaration of VJP rules: each is stored with its op."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar, cast

from ember_ml._core.op import Op
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules.helpers import conj

OperandVJP: TypeAlias = Callable[..., Tensor | Sequence[Tensor | None] | None]
"""(g, out, *args, **kwargs) -> the gradient of one operand, a list for a sequence of tensors."""
JointVJP: TypeAlias = Callable[..., Sequence[Tensor | Sequence[Tensor | None] | None]]
"""(g, out, *args, **kwargs) -> the gradients of all operands."""

F = TypeVar("F", bound=Callable[..., object])


class VJPRule:
    """VJP rule of an op: one function per operand, or one for all operands.

    Attributes:
        parts: One function per operand; None for an operand without a gradient.
        joint: Function that returns the gradients of all operands, instead of `parts`.
        arithmetic: Variants of `parts` that also accept real native arrays.
        native_only: Whether a composite is recorded through its body on the backends without a
            native function, instead of as one step with this rule.
    """

    __slots__ = ("arithmetic", "joint", "native_only", "parts")

    def __init__(
        self,
        parts: tuple[OperandVJP | None, ...] = (),
        joint: JointVJP | None = None,
        native_only: bool = False,
    ) -> None:
        self.parts = parts
        self.joint = joint
        self.native_only = native_only
        self.arithmetic: tuple[Callable[..., Tensor], ...] | None = None


def vjps(function: Callable[..., object], **parts: OperandVJP) -> None:
    """Declare one VJP per operand: `vjps(ops.multiply, x=lambda g, out, x, y: g * y, y=...)`.

    An operand that is not named has no gradient. The gradient of an operand that is a sequence of
    tensors is a list.
    """
    op = _op_of(function)
    operands = op.names[: len(op.roles)]
    unknown = set(parts) - set(operands)
    if unknown:
        raise ValueError(f"{op.key}: its operands are {operands}, not {sorted(unknown)}")
    _store(op, VJPRule(tuple(parts.get(name) for name in operands)))


def arithmetic_vjps(function: Callable[..., object], **parts: Callable[..., Tensor]) -> None:
    """Declare the VJPs of a holomorphic op with Python's operators only.

    Every operand must be named. Write the rules as for real numbers: complex gradients are
    conjugated before and after the call. When no tape records, the rules receive native arrays.
    """
    vjps(function, **{name: _conjugating(part) for name, part in parts.items()})
    op = _op_of(function)
    op.vjps.arithmetic = tuple(parts[name] for name in op.names[: len(op.roles)])


def _conjugating(part: Callable[..., Tensor]) -> OperandVJP:
    @functools.wraps(part)
    def vjp(g: Tensor, *operands: object) -> Tensor:
        return conj(part(conj(g), *operands)) if "complex" in g._tag else part(g, *operands)

    return vjp


def vjp_rule(function: Callable[..., object], native_only: bool = False) -> Callable[[F], F]:
    """Declare, as a decorator, one function that returns the gradients of all operands.

    It returns a tuple with a gradient per operand, or the gradient of an only operand.

    Args:
        function: The op.
        native_only: Whether backends without a native function of the op use its body instead.
    """

    def decorate(joint: F) -> F:
        op = _op_of(function)
        if len(op.roles) == 1:
            _store(op, VJPRule((cast(OperandVJP, joint),), native_only=native_only))
        else:
            _store(op, VJPRule(joint=cast(JointVJP, joint), native_only=native_only))
        return joint

    return decorate


def _op_of(function: Callable[..., object]) -> Op:
    return function.op  # type: ignore[attr-defined]


def _store(op: Op, rule: VJPRule) -> None:
    if op.vjps is not None:
        raise ValueError(f"{op.key} has a VJP rule already")
    op.vjps = rule


@functools.cache
def load() -> None:
    """Import all modules of rules, so that every op has its rule."""
    from ember_ml.autodiff import rules as package

    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
