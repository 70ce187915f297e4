"""Walks through a module: what its attributes hold, and the modules inside of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ember_ml.nn.parameter import Variable

if TYPE_CHECKING:
    from ember_ml.nn.module import Module


def _parts(value: Any, name: str, kind: type) -> Iterator[tuple[str, Any]]:
    """What of a kind an attribute holds, in lists, tuples and dicts too."""
    if isinstance(value, kind):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for at, part in enumerate(value):
            yield from _parts(part, f"{name}.{at}", kind)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _parts(part, f"{name}.{key}", kind)


def _attributes(module: Module, kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        yield from _parts(value, name, kind)


def named_children(module: Module) -> Iterator[tuple[str, Module]]:
    """The modules directly inside, by the names of their places."""
    from ember_ml.nn.module import Module

    return _attributes(module, Module)


def named_modules(
    module: Module, prefix: str = "", seen: set[int] | None = None
) -> Iterator[tuple[str, Module]]:
    """The module and all inside of it, each once."""
    seen = set() if seen is None else seen
    if id(module) in seen:
        return
    seen.add(id(module))
    yield prefix, module
    for name, child in module.named_children():
        yield from named_modules(child, f"{prefix}.{name}" if prefix else name, seen)


def named_variables(module: Module, prefix: str = "") -> Iterator[tuple[str, Variable]]:
    """The parameters and buffers of the module and all inside of it, each once."""
    seen: set[int] = set()
    for path, inner in named_modules(module, prefix):
        for name, variable in _attributes(inner, Variable):
            if id(variable) not in seen:
                seen.add(id(variable))
                yield (f"{path}.{name}" if path else name), variable
