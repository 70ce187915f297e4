"""Replacement of submodules, and its record in checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ember_ml.nn import _traversal

if TYPE_CHECKING:
    from ember_ml.nn.module import Module


def replacements(model: Module) -> dict[str, Module]:
    """Return the submodules that replaced those of the model's config, by dotted name.

    Args:
        model: The model.
    """
    return {name: inner for name, inner in model.named_modules() if name and inner.is_replacement}


def replace(model: Module, replacements: Mapping[str, Module]) -> None:
    """Replace submodules in all attributes, lists, tuples and dicts that hold them.

    Args:
        model: The model, which is changed.
        replacements: Dotted name of a submodule -> the module to put in its place.

    Raises:
        KeyError: If the model has no submodule of a name; nothing is changed.
    """
    named = dict(_traversal.named_modules(model))
    swaps = {id(named[name]): module for name, module in replacements.items()}
    for owner in list(named.values()):
        for attribute, value in vars(owner).items():
            swapped = _swapped(value, swaps)
            if swapped is not value:
                vars(owner)[attribute] = swapped
    for module in replacements.values():
        module.is_replacement = True


def _swapped(value: Any, swaps: Mapping[int, Module]) -> Any:
    """Return a value with replaced modules; the value itself if it holds none of them."""
    if id(value) in swaps:
        return swaps[id(value)]
    if type(value) in (list, tuple):
        parts = [_swapped(part, swaps) for part in value]
        changed = any(new is not old for new, old in zip(parts, value, strict=True))
        return type(value)(parts) if changed else value
    if type(value) is dict:
        items = {key: _swapped(part, swaps) for key, part in value.items()}
        return items if any(items[key] is not value[key] for key in items) else value
    return value
