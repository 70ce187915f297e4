"""Modules that hold modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.nn.module import Module


def _checked(owner: str, module: Any) -> Module:
    if not isinstance(module, Module):
        raise ArgumentTypeError(f"{owner} holds modules, not {module!r:.60}")
    return module


class ModuleList(Module):
    """Modules in order; to be called one by one.

    Example:
        >>> stack = nn.ModuleList([nn.Identity(), nn.Identity()])
        >>> len(stack), [name for name, _ in stack.named_children()]
        (2, ['0', '1'])
    """

    ITEMS = "_items"

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._items: list[Module] = []
        self.extend(modules)

    def append(self, module: Module) -> ModuleList:
        """Put a module at the end."""
        self._items.append(_checked(type(self).__name__, module))
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Put several modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Put a module before another."""
        self._items.insert(index, _checked(type(self).__name__, module))

    def __getitem__(self, index: int | slice) -> Any:
        picked = self._items[index]
        return type(self)(picked) if isinstance(picked, list) else picked

    def __setitem__(self, index: int, module: Module) -> None:
        self._items[index] = _checked(type(self).__name__, module)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._items)


class ModuleDict(Module):
    """Modules by name.

    Example:
        >>> parts = nn.ModuleDict({"body": nn.Identity()})
        >>> parts["body"](3)
        3
    """

    ITEMS = "_items"

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        self._items: dict[str, Module] = {}
        for name, module in (modules or {}).items():
            self[name] = module

    def __getitem__(self, name: str) -> Module:
        return self._items[name]

    def __setitem__(self, name: str, module: Module) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise ArgumentTypeError(f"ModuleDict: a name is a string without dots, not {name!r}")
        self._items[name] = _checked("ModuleDict", module)

    def __delitem__(self, name: str) -> None:
        del self._items[name]

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._items.keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._items.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Names and modules."""
        return self._items.items()


class Identity(Module):
    """Gives what it is given."""

    def forward(self, x: Any) -> Any:
        """The input."""
        return x
