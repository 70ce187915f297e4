"""Functions of trees of tensors as functions of a list of tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ember_ml._core import runtime, tree
from ember_ml._core.convert import convert_to_tensor, native_backend
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, UnsupportedOpError
from ember_ml._core.tensor import EmberTensor, one_backend
from ember_ml.autodiff.values import Values, is_differentiable

if TYPE_CHECKING:
    from ember_ml.backend.interface import Autodiff

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def named_in_errors(transform: str) -> Callable[[F], F]:
    """Return a decorator that adds the transform to errors about ops without a derivative.

    The error of a nested transform names all of them, the outermost first.

    Args:
        transform: Name of the transform.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            try:
                return function(*args, **kwargs)
            except UnsupportedOpError as error:
                error.args = (f"{transform}: {error}",)
                raise

        return cast(F, call)

    return decorate


def as_tensor(value: Any, backend: str | None = None, *, numbers: bool = True) -> Any:
    """Return a leaf as a tensor if it is an array, or a float or complex and `numbers` is true."""
    if numbers and isinstance(value, (float, complex)):
        return convert_to_tensor(value, backend=backend)
    if not isinstance(value, EmberTensor) and native_backend(value) is not None:
        return convert_to_tensor(value)
    return value


def _differentiable(leaves: Sequence[object]) -> list[int]:
    """Return the indices of the leaves that are differentiable tensors."""
    return [
        index
        for index, leaf in enumerate(leaves)
        if isinstance(leaf, EmberTensor) and is_differentiable(leaf)
    ]


class Arguments:
    """The selected arguments of a call, and the differentiable tensors among their leaves.

    Args:
        name: Name of the transform, for errors.
        args: Positional arguments of the call.
        selected: Position of the selected argument, or several positions.
        needed: Whether there must be a differentiable tensor. Python floats are then converted.

    Attributes:
        tensors: The differentiable tensors, from left to right.
        backend: Their backend; empty if there are none.
    """

    def __init__(
        self, name: str, args: Sequence[object], selected: int | Sequence[int], needed: bool = True
    ) -> None:
        self._args = tuple(args)
        self._single = isinstance(selected, int)
        positions = (selected,) if isinstance(selected, int) else tuple(selected)
        for position in positions:
            if not -len(args) <= position < len(args):
                raise ArgumentError(
                    f"{name}: argnums={selected} is out of range: the function was called with "
                    f"{len(args)} positional arguments"
                )
        self._positions = [position % len(args) for position in positions]
        leaves, self._structure = tree.flatten([self._args[at] for at in self._positions])
        self._leaves = [as_tensor(leaf, numbers=needed) for leaf in leaves]
        self._indices = _differentiable(self._leaves)
        self.tensors: Values = [self._leaves[index] for index in self._indices]
        if needed and not self.tensors:
            kinds = sorted({type(leaf).__name__ for leaf in leaves}) or ["nothing"]
            raise ArgumentTypeError(
                f"{name}: the arguments {positions} must contain a floating-point tensor; they "
                f"contain {', '.join(kinds)}"
            )
        self.backend = one_backend(name, self.tensors) if self.tensors else ""

    def call(self, fn: Callable[..., T], tensors: Values, kwargs: dict[str, object]) -> T:
        """Return the function's result with other tensors in place of `tensors`."""
        leaves = list(self._leaves)
        for index, x in zip(self._indices, tensors, strict=True):
            leaves[index] = x
        args = list(self._args)
        values = tree.unflatten(self._structure, leaves)
        for position, value in zip(self._positions, values, strict=True):
            args[position] = value
        return fn(*args, **kwargs)

    def matches(self, other: Arguments) -> bool:
        """Return whether another call has the same structure and tensors in the same places."""
        return self._structure == other._structure and self._indices == other._indices

    def unflatten(self, results: Sequence[object]) -> Any:
        """Return results for the tensors in the structure of the selected arguments.

        Leaves that are not differentiable tensors become None.
        """
        leaves: list[object] = [None] * len(self._leaves)
        for index, result in zip(self._indices, results, strict=True):
            leaves[index] = result
        parts = tree.unflatten(self._structure, leaves)
        return parts[0] if self._single else tuple(parts)


class Results:
    """The result of a function, and the differentiable tensors among its leaves.

    Attributes:
        tensors: The differentiable tensors, from left to right.
    """

    def __init__(self, result: object) -> None:
        self._leaves, self._structure = tree.flatten(result)
        self._indices = _differentiable(self._leaves)
        self.tensors: Values = [self._leaves[index] for index in self._indices]

    def unflatten(self, tensors: Sequence[object]) -> Any:
        """Return the whole result with other values in place of `tensors`."""
        leaves = list(self._leaves)
        for index, x in zip(self._indices, tensors, strict=True):
            leaves[index] = x
        return tree.unflatten(self._structure, leaves)

    def flatten_cotangents(self, name: str, cotangents: object) -> Values:
        """Return the cotangents of `tensors` from a tree in the structure of the result."""
        leaves, structure = tree.flatten(cotangents)
        if structure != self._structure:
            raise ArgumentError(
                f"{name}: the cotangents must have the structure of the function's result"
            )
        tensors = []
        for index, x in zip(self._indices, self.tensors, strict=True):
            g = convert_to_tensor(leaves[index], dtype=x.dtype, backend=x._backend)
            if g.shape != x.shape:
                raise ArgumentError(
                    f"{name}: a cotangent has the shape {g.shape}, but the result has {x.shape}"
                )
            tensors.append(g)
        return tensors


def engine(backend: str) -> Autodiff:
    """Return the autodiff module of a backend."""
    return runtime.load(backend).autodiff
