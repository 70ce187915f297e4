"""Conversion between host arrays and tensors, in pytrees."""

from __future__ import annotations

from typing import Any, TypeAlias

from ember_ml._core import runtime, tree
from ember_ml._core.convert import convert_to_tensor, native_backend
from ember_ml._core.dtype import PYTHON_TYPES
from ember_ml._core.tensor import EmberTensor, wrap
from ember_ml.backend import devices
from ember_ml.data import host_arrays

Nest: TypeAlias = Any
"""Pytree: arrays or tensors in nested tuples, lists and dicts."""


def is_numeric(leaf: Any) -> bool:
    """Return whether a leaf is an array of any framework, a tensor or a number."""
    return (
        isinstance(leaf, EmberTensor)
        or type(leaf) in PYTHON_TYPES
        or host_arrays.is_array(leaf)
        or host_arrays.is_scalar(leaf)
        or native_backend(leaf) is not None
    )


def to_host(data: Any) -> Any:
    """Return a tensor, an array of any framework, nested lists or a number as a host array."""
    if isinstance(data, EmberTensor):
        return data.numpy()
    owner = None if host_arrays.is_array(data) else native_backend(data)
    return host_arrays.array_of(data if owner is None else runtime.LOADED[owner].to_host(data))


def host_nest(nest: Nest) -> Nest:
    """Return the pytree with numeric leaves as host arrays; other leaves are unchanged."""

    def place(leaf: Any) -> Any:
        return to_host(leaf) if not host_arrays.is_array(leaf) and is_numeric(leaf) else leaf

    return tree.map_leaves(place, nest)


class Placer:
    """Converts numeric leaves to tensors on the default device of a backend.

    The native dtype that `convert_to_tensor` selects for an array's dtype is cached.

    Args:
        backend: Name of the backend.
    """

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.module = runtime.load(backend)
        self.device = devices.default_device(backend)
        self._natives: dict[Any, Any] = {}

    def nest(self, nest: Nest) -> Nest:
        """Return the pytree with a tensor for each array and number."""
        return tree.map_leaves(self._leaf, nest)

    def _leaf(self, leaf: Any) -> Any:
        if not host_arrays.is_array(leaf):
            return convert_to_tensor(leaf, backend=self.backend) if is_numeric(leaf) else leaf
        native = self._natives.get(leaf.dtype)
        if native is None:
            return self._first(leaf)
        if self.module.IS_HOST:
            return wrap(self.module.adopt(leaf), self.backend)
        return wrap(self.module.from_host(leaf, native, self.device, None), self.backend)

    def _first(self, leaf: Any) -> Any:
        tensor = convert_to_tensor(leaf, backend=self.backend)
        if leaf.dtype.isnative:
            self._natives[leaf.dtype] = tensor._data.dtype
        return tensor
