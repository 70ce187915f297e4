"""Functions compiled by the framework."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ember_ml._core import recording, runtime, tree
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.procedure import Procedure
from ember_ml.autodiff.transforms._arguments import (
    Values,
    as_tensor,
    engine,
    natives,
    one_backend,
    wrapped,
)


def compile(fn: Callable[..., Any], **options: Any) -> Compiled:
    """fn, compiled by the framework of its arguments: `torch.compile`, `mx.compile`.

    The first call with arguments of a new structure compiles. Numbers and other arguments that are
    no tensors belong to the compiled code; tensors that fn reads from elsewhere do so too, at their
    values of the first call. On NumPy, which has no compiler, fn runs as it is, and `skipped` says
    why.

    Args:
        fn: a function of tensors and nests of them that gives the like.
        options: of the framework's compiler (torch: mode, backend, fullgraph ...).

    Example:
        >>> doubled = compile(lambda x: x * 2.0)
        >>> float(doubled(tensor.array(3.0)))
        6.0
    """
    return Compiled(fn, options)


class Compiled:
    """A function that runs compiled.

    Attributes:
        skipped: why the last call ran uncompiled; empty if it did not.
    """

    def __init__(self, fn: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._options = options
        self._made: dict[Any, _Variant] = {}
        self.skipped = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """fn(*args, **kwargs)."""
        leaves, structure = tree.flatten([list(args), kwargs])
        leaves = [as_tensor(leaf) for leaf in leaves]
        places = [at for at, leaf in enumerate(leaves) if isinstance(leaf, EmberTensor)]
        tensors = [leaves[at] for at in places]
        backend = one_backend("compile", tensors) if tensors else runtime.active()
        self.skipped = engine(backend).COMPILES
        if self.skipped:
            return self._fn(*args, **kwargs)
        static = tuple([None if at in places else leaf for at, leaf in enumerate(leaves)])
        key = backend, structure, tuple(places), static
        try:
            variant = self._made.get(key)
        except TypeError:
            raise ArgumentError(
                "compile: arguments that are no tensors become part of the compiled code and must "
                f"be hashable; got {[type(leaf).__name__ for leaf in static if leaf is not None]}"
            ) from None
        if variant is None:
            variant = self._made[key] = _Variant(self._fn, structure, static, places, backend)
            variant.compile(self._options)
        return variant(tensors)


class _Variant:
    """The function for arguments of one structure."""

    def __init__(
        self,
        fn: Callable[..., Any],
        structure: tree.Structure,
        static: tuple[Any, ...],
        places: list[int],
        backend: str,
    ) -> None:
        self._fn = fn
        self._structure = structure
        self._static = static
        self._places = places
        self._backend = backend
        self._result: tuple[tree.Structure, list[Any]] | None = None
        self._native: Any = None

    def compile(self, options: dict[str, Any]) -> None:
        self._native = engine(self._backend).compile(self._run, **options)

    def _run(self, *arrays: Any) -> list[Any]:
        leaves = list(self._static)
        for at, x in zip(self._places, wrapped(arrays, self._backend), strict=True):
            leaves[at] = x
        args, kwargs = tree.unflatten(self._structure, leaves)
        found, structure = tree.flatten(self._fn(*args, **kwargs))
        self._result = structure, [None if isinstance(x, EmberTensor) else x for x in found]
        return natives([x for x in found if isinstance(x, EmberTensor)])

    def _plain(self, tensors: Values) -> Values:
        with recording.only():
            return wrapped(self._native(*natives(tensors)), self._backend)

    def __call__(self, tensors: Values) -> Any:
        outputs = iter(Procedure(("compiled", self), self._backend, self._plain)(tensors))
        structure, leaves = self._result  # type: ignore[misc]
        return tree.unflatten(structure, [next(outputs) if x is None else x for x in leaves])
