"""Modules inside `torch.autocast`.

Autocast chooses the dtype of each op by its own rules. Ember's ops derive the dtype of a result
from the operands. A module therefore runs with autocast off, on parameters and inputs that are cast
to the dtype of autocast, as with `Trainer(precision=...)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import torch
from torch.amp import is_autocast_available as _is_available

from ember_ml._core import tree

T = TypeVar("T")


class Region(NamedTuple):
    """The active autocast of a type of device."""

    device_type: str
    dtype: torch.dtype

    def cast(self, leaf: T) -> T:
        """Return a leaf in the dtype of the region, if it is a tensor of float32."""
        return cast(leaf, self.dtype) if isinstance(leaf, torch.Tensor) else leaf


def find(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Region | None:
    """Return the active autocast of the device of the arguments; None if it is off."""
    device_type = _device_type(args, kwargs)
    if not _is_available(device_type) or not torch.is_autocast_enabled(device_type):
        return None
    return Region(device_type, torch.get_autocast_dtype(device_type))


def resume(args: tuple[Any, ...], kwargs: Mapping[str, Any], dtype: torch.dtype) -> torch.autocast:
    """Return the context in which autocast is on again, for modules of torch."""
    return torch.autocast(_device_type(args, kwargs), dtype)


def cast(value: Any, dtype: torch.dtype | None) -> Any:
    """Return a tensor in a dtype if it is float32, which is what autocast casts.

    Args:
        value: The tensor.
        dtype: The dtype. None: the tensor is returned as it is.
    """
    return value if dtype is None or value.dtype != torch.float32 else value.to(dtype)


def _device_type(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    if args and isinstance(args[0], torch.Tensor):  # the usual call
        return args[0].device.type
    for leaf in tree.leaves_of((args, dict(kwargs))):
        if isinstance(leaf, torch.Tensor):
            return leaf.device.type
    return "cpu"
