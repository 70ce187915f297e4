"""Parameters that a module reads through a function, such as one that gathers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ember_ml._core.tensor import Tensor
from ember_ml.nn import Module

View: TypeAlias = Callable[[Tensor], Tensor]
"""Function of a parameter whose result the module uses instead of it."""


def add_view(module: Module, name: str, view: View) -> None:
    """Let a module use a function of a parameter wherever it reads the parameter.

    The parameter stays what it is for optimizers, checkpoints and `named_parameters`. The module
    gets a class of its own, in which the attribute is a property. A further view applies to the
    result of the earlier ones.

    Args:
        module: Module whose attribute the parameter is, directly or in a list or dict.
        name: Name of the parameter in the module, such as "weight" or "weights.0".
        view: The function.
    """
    attribute, *place = name.split(".")
    kind = _own_class(module)
    earlier = vars(kind).get(attribute)

    def read(self: Module) -> Any:
        value = vars(self)[attribute] if earlier is None else earlier.fget(self)
        return _changed(value, place, view)

    def write(self: Module, value: Any) -> None:
        vars(self)[attribute] = value

    setattr(kind, attribute, property(read, write))


def _own_class(module: Module) -> type[Module]:
    """Return a subclass of the module's class that no other module has."""
    kind = type(module)
    if "_has_views" in vars(kind):
        return kind
    details = {"_has_views": True, "__module__": kind.__module__, "__doc__": kind.__doc__}
    own = type(kind.__name__, (kind,), {**details, "__qualname__": kind.__qualname__})
    module.__class__ = own
    return own


def _changed(value: Any, place: Sequence[str], view: View) -> Any:
    """Return a container with the view of one of its parameters; without a place, the view."""
    if not place:
        return None if value is None else view(value)
    first, *rest = place
    if isinstance(value, dict):
        return {**value, first: _changed(value[first], rest, view)}
    at = int(first)
    items = [_changed(x, rest, view) if i == at else x for i, x in enumerate(value)]
    return type(value)(items)
