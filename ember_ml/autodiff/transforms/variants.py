"""A function compiled once for each form of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.transforms._arguments import engine, natives, wrapped

_TENSOR: Any = object()  # stands for a tensor among leaves


class Form(NamedTuple):
    """A nest without its tensors."""

    structure: tree.Structure
    leaves: list[Any]

    def filled(self, tensors: Sequence[Any]) -> Any:
        """The nest with these tensors."""
        given = iter(tensors)
        return tree.unflatten(
            self.structure, [next(given) if leaf is _TENSOR else leaf for leaf in self.leaves]
        )


def form_of(nest: Any) -> tuple[list[EmberTensor], Form]:
    """The tensors of a nest, and the rest of it."""
    leaves, structure = tree.flatten(nest)
    tensors = [leaf for leaf in leaves if isinstance(leaf, EmberTensor)]
    return tensors, Form(structure, [_TENSOR if isinstance(x, EmberTensor) else x for x in leaves])


class Variants:
    """function(tensors, nest) -> nest, compiled by the framework of the arguments.

    What is no tensor in the nest, and all that the function reads from elsewhere, becomes part of
    the compiled code.

    Args:
        function: what to compile.
        options: of the framework's compiler.
    """

    def __init__(
        self, function: Callable[[list[EmberTensor], Any], Any], options: dict[str, Any]
    ) -> None:
        self._function = function
        self._options = options
        self._made: dict[Any, tuple[Callable[..., Any], list[Any]]] = {}

    def __call__(
        self, backend: str, arrays: Sequence[Any], nest: Any, mode: Hashable = None
    ) -> tuple[Sequence[Any], Form]:
        """The native results, and the form of the nest they belong into.

        Args:
            backend: where all of it is.
            arrays: native arrays, as whose tensors the function gets them.
            nest: tensors of that backend and other things.
            mode: what else the function depends on.
        """
        tensors, form = form_of(nest)
        static = tuple([leaf if leaf is _TENSOR else (type(leaf), leaf) for leaf in form.leaves])
        shapes = tuple([(x._tag, x._data.shape) for x in tensors])
        key = backend, mode, len(arrays), form.structure, static, shapes
        try:
            made = self._made.get(key)
        except TypeError:
            others = [type(leaf).__name__ for leaf in form.leaves if leaf is not _TENSOR]
            raise ArgumentError(
                "compile: arguments that are no tensors become part of the compiled code and must "
                f"be hashable; got {others}"
            ) from None
        if made is None:
            made = self._made[key] = self._variant(backend, len(arrays), form)
        run, result = made
        return run(*arrays, *natives(tensors)), result[0]

    def _variant(self, backend: str, count: int, form: Form) -> Any:
        """The compiled function of arrays, and a place for the form of its results."""
        result: list[Any] = [None]

        def run(*arrays: Any) -> list[Any]:
            tensors = wrapped(arrays, backend)
            found = self._function(tensors[:count], form.filled(tensors[count:]))
            outputs, result[0] = form_of(found)
            return natives(outputs)

        compile_native = engine(backend).compile
        assert compile_native is not None
        return compile_native(run, **self._options), result
