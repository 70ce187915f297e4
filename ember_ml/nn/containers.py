"""Containers of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, Self, TypeVar, overload

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.nn.module import Module

T = TypeVar("T")
M = TypeVar("M", bound=Module)


def _checked(owner: str, module: M) -> M:
    if not isinstance(module, Module):
        raise ArgumentTypeError(f"{owner}: expected a module, got {module!r:.60}")
    return module


class ModuleList(Module, Generic[M]):
    """List of modules.

    Args:
        modules: The modules.

    Example:
        >>> stack = nn.ModuleList([nn.Identity(), nn.Identity()])
        >>> len(stack), [name for name, _ in stack.named_children()]
        (2, ['0', '1'])
    """

    ITEMS = "_items"

    def __init__(self, modules: Iterable[M] = ()) -> None:
        self._items: list[M] = []
        self.extend(modules)

    def append(self, module: M) -> Self:
        """Append a module, and return the list."""
        self._items.append(_checked(type(self).__name__, module))
        return self

    def extend(self, modules: Iterable[M]) -> Self:
        """Append several modules, and return the list."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: M) -> None:
        """Insert a module before the one at an index."""
        self._items.insert(index, _checked(type(self).__name__, module))

    @overload
    def __getitem__(self, index: int) -> M: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> M | Self:
        selected = self._items[index]
        return type(self)(selected) if isinstance(selected, list) else selected

    def __setitem__(self, index: int, module: M) -> None:
        self._items[index] = _checked(type(self).__name__, module)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[M]:
        return iter(self._items)


class ModuleDict(Module, Generic[M]):
    """Dict of modules.

    Args:
        modules: Name -> module.

    Example:
        >>> parts = nn.ModuleDict({"body": nn.Identity()})
        >>> parts["body"](3)
        3
    """

    ITEMS = "_items"

    def __init__(self, modules: Mapping[str, M] | None = None) -> None:
        self._items: dict[str, M] = {}
        for name, module in (modules or {}).items():
            self[name] = module

    def __getitem__(self, name: str) -> M:
        return self._items[name]

    def __setitem__(self, name: str, module: M) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise ArgumentTypeError(
                f"ModuleDict: a name must be a non-empty string without dots, got {name!r}"
            )
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
        """Return the names."""
        return self._items.keys()

    def values(self) -> Iterable[M]:
        """Return the modules."""
        return self._items.values()

    def items(self) -> Iterable[tuple[str, M]]:
        """Return (name, module) pairs."""
        return self._items.items()


class Identity(Module):
    """Module that returns its input."""

    def forward(self, x: T) -> T:
        """Return the input."""
        return x
