"""Functions over nests of tensors, seen as functions of a list of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml._core import runtime, tree
from ember_ml._core.convert import convert_to_tensor, native_backend
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, wrap
from ember_ml.autodiff.values import Values, is_differentiable
from ember_ml.backend.interface import Autodiff


def as_tensor(value: Any, backend: str | None = None, *, numbers: bool = True) -> Any:
    """A leaf as a tensor where it is an array, or a number and these count; else itself."""
    if numbers and isinstance(value, (float, complex)):
        return convert_to_tensor(value, backend=backend)
    if not isinstance(value, EmberTensor) and native_backend(value) is not None:
        return convert_to_tensor(value)
    return value


class Arguments:
    """The chosen arguments of a call, and among their leaves the tensors that matter.

    Args:
        name: the transform, for errors.
        args: the call's arguments.
        chosen: which of them.
        needed: whether there must be a differentiable tensor; Python floats then count as such.

    Attributes:
        tensors: the differentiable tensors of the chosen arguments, from left to right.
        backend: where they live.
    """

    def __init__(
        self, name: str, args: Sequence[Any], chosen: int | Sequence[int], needed: bool = True
    ) -> None:
        self.name = name
        self._args = tuple(args)
        self._one = isinstance(chosen, int)
        numbers = (chosen,) if isinstance(chosen, int) else tuple(chosen)
        for at in numbers:
            if not -len(args) <= at < len(args):
                raise ArgumentError(
                    f"{name}: argnums={chosen}, but the function was called with "
                    f"{len(args)} positional arguments"
                )
        self._numbers = [at % len(args) for at in numbers]
        leaves, self._structure = tree.flatten([self._args[at] for at in self._numbers])
        self._leaves = [as_tensor(leaf, numbers=needed) for leaf in leaves]
        self._places = [
            at
            for at, leaf in enumerate(self._leaves)
            if isinstance(leaf, EmberTensor) and is_differentiable(leaf)
        ]
        self.tensors: Values = [self._leaves[at] for at in self._places]
        if needed and not self.tensors:
            kinds = sorted({type(leaf).__name__ for leaf in leaves}) or ["nothing"]
            raise ArgumentTypeError(
                f"{name}: the arguments {numbers} hold no tensor of floats (they hold "
                f"{', '.join(kinds)}); gradients are taken for floating tensors"
            )
        self.backend = one_backend(name, self.tensors) if self.tensors else ""

    def call(self, function: Callable[..., Any], tensors: Values, kwargs: dict[str, Any]) -> Any:
        """The function's result with these tensors in place of its own."""
        leaves = list(self._leaves)
        for at, x in zip(self._places, tensors, strict=True):
            leaves[at] = x
        args = list(self._args)
        for at, value in zip(self._numbers, tree.unflatten(self._structure, leaves), strict=True):
            args[at] = value
        return function(*args, **kwargs)

    def agrees(self, other: Arguments) -> bool:
        """Whether another call has its tensors in the same places."""
        return self._structure == other._structure and self._places == other._places

    def nest(self, results: Sequence[Any]) -> Any:
        """Results for the tensors, in the structure of the chosen arguments; else None."""
        leaves: list[Any] = [None] * len(self._leaves)
        for at, result in zip(self._places, results, strict=True):
            leaves[at] = result
        parts = tree.unflatten(self._structure, leaves)
        return parts[0] if self._one else tuple(parts)


def one_backend(name: str, tensors: Values) -> str:
    """The backend of all tensors, or an error."""
    found = sorted({x._backend for x in tensors})
    if len(found) > 1:
        raise ArgumentTypeError(
            f"{name}: the arguments live on {' and '.join(found)}; move them to one backend"
        )
    return found[0]


class Results:
    """What a function gives, split into tensors through which gradients flow and the rest."""

    def __init__(self, result: Any) -> None:
        self._leaves, self._structure = tree.flatten(result)
        self._places = [
            at
            for at, leaf in enumerate(self._leaves)
            if isinstance(leaf, EmberTensor) and is_differentiable(leaf)
        ]
        self.tensors: Values = [self._leaves[at] for at in self._places]

    def nest(self, tensors: Sequence[Any]) -> Any:
        """The whole result, with other tensors in their places."""
        leaves = list(self._leaves)
        for at, x in zip(self._places, tensors, strict=True):
            leaves[at] = x
        return tree.unflatten(self._structure, leaves)

    def pick(self, name: str, like: Any) -> Values:
        """The leaves of a nest like the result that stand where its tensors are."""
        leaves, structure = tree.flatten(like)
        if structure != self._structure:
            raise ArgumentError(
                f"{name}: the cotangents must have the structure of the function's result"
            )
        found = []
        for at, x in zip(self._places, self.tensors, strict=True):
            g = convert_to_tensor(leaves[at], dtype=x.dtype, backend=x._backend)
            if g.shape != x.shape:
                raise ArgumentError(
                    f"{name}: a cotangent of the shape {g.shape} for a result of {x.shape}"
                )
            found.append(g)
        return found


def natives(tensors: Sequence[EmberTensor]) -> list[Any]:
    """The native arrays of tensors."""
    return [x._data for x in tensors]


def wrapped(arrays: Sequence[Any], backend: str) -> Values:
    """Tensors around native arrays."""
    return [wrap(data, backend) for data in arrays]


def engine(backend: str) -> Autodiff:
    """What the backend's framework offers for gradients, batching and compilation."""
    return runtime.load(backend).autodiff
