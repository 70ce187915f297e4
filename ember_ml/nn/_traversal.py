"""Traversal of a module: its parameters, buffers and submodules, with their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ember_ml.nn.parameter import Variable

if TYPE_CHECKING:
    from ember_ml.nn.module import Module

_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})
"""Types of attributes that cannot hold variables or modules, skipped for speed."""


def parts(module: Module) -> tuple[list[tuple[str, Variable]], list[tuple[str, Module]]]:
    """Return the variables and the modules that a module's attributes hold, with their names."""
    from ember_ml.nn.module import Module

    variables: list[tuple[str, Variable]] = []
    children: list[tuple[str, Module]] = []

    def visit(value: object, name: str) -> None:
        if isinstance(value, Variable):
            variables.append((name, value))
        elif isinstance(value, Module):
            children.append((name, value))
        elif isinstance(value, (list, tuple)):
            for at, part in enumerate(value):
                visit(part, f"{name}.{at}")
        elif isinstance(value, dict):
            for key, part in value.items():
                visit(part, f"{name}.{key}")

    for name, value in vars(module).items():
        if type(value) not in _PLAIN:
            visit(value, name)
    if module.ITEMS:
        items = f"{module.ITEMS}."
        children = [(name.removeprefix(items), child) for name, child in children]
    return variables, children


def named_modules(
    module: Module, prefix: str = "", seen: set[int] | None = None
) -> Iterator[tuple[str, Module]]:
    """Return (dotted name, module) for a module and all inside it, each once."""
    seen = set() if seen is None else seen
    if id(module) in seen:
        return
    seen.add(id(module))
    yield prefix, module
    for name, child in parts(module)[1]:
        yield from named_modules(child, f"{prefix}.{name}" if prefix else name, seen)


def named_variables(module: Module, prefix: str = "") -> list[tuple[str, Variable]]:
    """Return (dotted name, variable) for a module and all inside it, each once."""
    named: list[tuple[str, Variable]] = []
    _collect(module, f"{prefix}." if prefix else "", set(), named)
    return named


def _collect(
    module: Module, prefix: str, seen: set[int], named: list[tuple[str, Variable]]
) -> None:
    seen.add(id(module))
    variables, children = parts(module)
    for name, variable in variables:
        if id(variable) not in seen:
            seen.add(id(variable))
            named.append((prefix + name, variable))
    for name, child in children:
        if id(child) not in seen:
            _collect(child, f"{prefix}{name}.", seen, named)
