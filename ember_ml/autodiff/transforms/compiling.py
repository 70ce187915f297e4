"""Functions compiled by the framework."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ember_ml._core import recording, runtime, tree
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.transforms._arguments import (
    as_tensor,
    engine,
    natives,
    one_backend,
    wrapped,
)


def compile(fn: Callable[..., Any], **options: Any) -> Compiled:
    """fn, compiled by the framework of its arguments: `torch.compile`, `mx.compile`.

    The first call with arguments of new shapes and dtypes compiles. What is no tensor belongs to
    the compiled code, and so may tensors that fn reads from elsewhere: pass as an argument what
    changes. Where it cannot run compiled (on NumPy; on a tape, which records the ops; where its
    gradient is differentiated again) fn runs as it is, and `skipped` says why.

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
        self._made: dict[Any, Callable[[list[Any]], Any]] = {}
        self.skipped = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """fn(*args, **kwargs)."""
        leaves, structure = tree.flatten([list(args), kwargs])
        leaves = [as_tensor(leaf, numbers=False) for leaf in leaves]
        tensors = [leaf for leaf in leaves if isinstance(leaf, EmberTensor)]
        backend = one_backend("compile", tensors) if tensors else runtime.active()
        self.skipped = _obstacle(backend)
        if self.skipped:
            return self._fn(*args, **kwargs)
        static = [
            _TENSOR if isinstance(leaf, EmberTensor) else (type(leaf), leaf) for leaf in leaves
        ]
        shapes = [(x._tag, x.shape) for x in tensors]
        key = backend, structure, tuple(static), tuple(shapes)
        try:
            variant = self._made.get(key)
        except TypeError:
            raise ArgumentError(
                "compile: arguments that are no tensors become part of the compiled code and must "
                f"be hashable; got {[kind.__name__ for kind, _ in filter(None, static)]}"
            ) from None
        if variant is None:
            variant = self._made[key] = _variant(
                self._fn, structure, leaves, backend, self._options
            )
        return variant(natives(tensors))


_TENSOR = ()  # stands for a tensor among the leaves


def _obstacle(backend: str) -> str:
    """Why a function cannot run compiled here; empty if it can."""
    native = engine(backend)
    if native.COMPILES:
        return native.COMPILES
    if recording.tapes():
        return "a tape records the ops one by one"
    if native.gradient_depth() > 1:
        return "a compiled gradient cannot be differentiated again"
    return ""


def _variant(
    fn: Callable[..., Any],
    structure: tree.Structure,
    leaves: list[Any],
    backend: str,
    options: dict[str, Any],
) -> Callable[[list[Any]], Any]:
    """The function compiled for arguments of one structure, shapes and dtypes."""
    static = [_TENSOR if isinstance(leaf, EmberTensor) else leaf for leaf in leaves]
    result: Any = None

    def run(*arrays: Any) -> list[Any]:
        nonlocal result
        given = iter(wrapped(arrays, backend))
        args, kwargs = tree.unflatten(
            structure, [next(given) if leaf is _TENSOR else leaf for leaf in static]
        )
        found, nest = tree.flatten(fn(*args, **kwargs))
        result = nest, [_TENSOR if isinstance(x, EmberTensor) else x for x in found]
        return natives([x for x in found if isinstance(x, EmberTensor)])

    compiled = engine(backend).compile(run, **options)

    def call(arrays: list[Any]) -> Any:
        outputs = iter(wrapped(compiled(*arrays), backend))
        nest, found = result
        return tree.unflatten(nest, [next(outputs) if x is _TENSOR else x for x in found])

    return call
