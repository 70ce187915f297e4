"""A function of arrays and a batch, compiled for each form of batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ember_ml._core import runtime, tree
from ember_ml._core.tensor import EmberTensor, Tensor, wrap

Function = Callable[[list[Tensor], Any], list[Tensor]]

_TENSOR: Any = object()  # stands for a tensor in a batch


class Variants:
    """function(tensors, batch) -> tensors, compiled by the backend's framework.

    What is no tensor in the batch, and all that the function reads from elsewhere, becomes part of
    the compiled code.
    """

    def __init__(self, function: Function, backend: str) -> None:
        self._function = function
        self._backend = backend
        self._compile: Any = runtime.load(backend).autodiff.compile
        self._made: dict[Any, Callable[..., Sequence[Any]]] = {}

    def __call__(self, arrays: list[Any], batch: Any, mode: Hashable = None) -> Sequence[Any]:
        """The native results for native arrays and a batch of tensors.

        Args:
            arrays: the first arguments.
            batch: a nest of tensors and other things.
            mode: what else the function depends on.
        """
        leaves, structure = tree.flatten(batch)
        tensors = [leaf for leaf in leaves if isinstance(leaf, EmberTensor)]
        static = [_TENSOR if isinstance(leaf, EmberTensor) else leaf for leaf in leaves]
        key = mode, len(arrays), structure, tuple(static), tuple((x._tag, x.shape) for x in tensors)
        run = self._made.get(key)
        if run is None:
            run = self._made[key] = self._variant(len(arrays), structure, static)
        return run(*arrays, *[x._data for x in tensors])

    def _variant(self, count: int, structure: tree.Structure, static: list[Any]) -> Any:
        def run(*arrays: Any) -> list[Any]:
            tensors = [wrap(data, self._backend) for data in arrays]
            given = iter(tensors[count:])
            batch = tree.unflatten(structure, [next(given) if x is _TENSOR else x for x in static])
            return [x._data for x in self._function(tensors[:count], batch)]

        return self._compile(run)
