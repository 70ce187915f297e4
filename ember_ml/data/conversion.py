"""Conversion between host arrays and tensors, in pytrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ember_ml._core import runtime, tree
from ember_ml._core.convert import (
    convert_floats,
    convert_to_tensor,
    is_framework_array,
    native_backend,
)
from ember_ml._core.dtype import PYTHON_TYPES, EmberDType
from ember_ml._core.tensor import EmberTensor, wrap
from ember_ml._core.types import NativeDType
from ember_ml.backend import devices
from ember_ml.data import host_arrays

Pytree: TypeAlias = Any
"""Arrays, tensors and other leaves in nested tuples, lists and dicts.

The structure is up to the dataset, so a type checker cannot know it.
"""

Indices: TypeAlias = np.ndarray | Sequence[int]
"""Indices of examples."""


def is_numeric(leaf: object) -> bool:
    """Return whether a leaf is an array of any framework, a tensor or a number.

    Args:
        leaf: Leaf of a pytree.
    """
    return type(leaf) in PYTHON_TYPES or isinstance(leaf, np.generic) or is_framework_array(leaf)


def to_host(data: object) -> np.ndarray:
    """Return a tensor, an array of any framework, nested lists or a number as a host array.

    Values in bfloat16, which NumPy does not have, become float32.

    Args:
        data: Numeric data in any of these forms.
    """
    if isinstance(data, EmberTensor):
        return runtime.LOADED[data.backend].to_portable(data.native)
    owner = None if isinstance(data, np.ndarray) else native_backend(data)
    return host_arrays.array_of(data if owner is None else runtime.LOADED[owner].to_portable(data))


def to_host_tree(pytree: Pytree) -> Pytree:
    """Return the pytree with numeric leaves as host arrays; other leaves are unchanged.

    Args:
        pytree: Arrays, tensors, numbers and other leaves.
    """

    def convert(leaf: object) -> object:
        return to_host(leaf) if not isinstance(leaf, np.ndarray) and is_numeric(leaf) else leaf

    return tree.map_leaves(convert, pytree)


class Placer:
    """Converts numeric leaves to tensors on the default device of a backend.

    The native dtype that `convert_to_tensor` selects for an array's dtype is cached.

    Args:
        backend: Name of the backend.
        dtype: Dtype of floating-point tensors. Default: that of the data.
    """

    def __init__(self, backend: str, dtype: EmberDType | None = None) -> None:
        self.backend = backend
        self.dtype = dtype
        self.module = runtime.load(backend)
        self.device = devices.default_device(backend)
        self._natives: dict[np.dtype, NativeDType] = {}

    def place(self, pytree: Pytree) -> Pytree:
        """Return the pytree with a tensor for each array and number.

        Args:
            pytree: Arrays, tensors, numbers and other leaves.
        """
        return tree.map_leaves(self._leaf, pytree)

    def _leaf(self, leaf: Pytree) -> Pytree:
        if not isinstance(leaf, np.ndarray):
            return self._tensor(leaf) if is_numeric(leaf) else leaf
        if self.dtype is not None and leaf.dtype.kind == "f" and leaf.dtype.name != self.dtype.name:
            return self._tensor(leaf)
        native = self._natives.get(leaf.dtype)
        if native is None:
            tensor = convert_to_tensor(leaf, backend=self.backend)
            if leaf.dtype.isnative:
                self._natives[leaf.dtype] = tensor.native.dtype
            return tensor
        if self.module.IS_HOST:
            return wrap(self.module.adopt(leaf), self.backend)
        return wrap(self.module.from_host(leaf, native, self.device, None), self.backend)

    def _tensor(self, leaf: Pytree) -> EmberTensor:
        if self.dtype is None:
            return convert_to_tensor(leaf, backend=self.backend)
        return convert_floats(leaf, self.dtype, self.backend)
