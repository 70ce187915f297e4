"""Paths of the modules that run while a causal context records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ember_ml._core.errors import ArgumentTypeError


class NamedModules(Protocol):
    """A module, as far as its paths need it."""

    def named_modules(self) -> Iterable[tuple[str, Any]]:
        """Return (dotted name, module) for this module and all inside it."""


class ModulePaths:
    """Path of the running module, kept up to date by hooks.

    Attributes:
        current: Path of the innermost registered module that runs; empty if none does.
    """

    def __init__(self) -> None:
        self.current = ""
        self._names: dict[int, str] = {}
        self._known: list[object] = []  # modules of `_names`, so that their ids stay theirs
        self._handles: list[Any] = []

    def register(self, module: NamedModules) -> None:
        """Add the hooks of a module and all modules inside it.

        Args:
            module: The module.
        """
        if not hasattr(module, "named_modules"):
            raise ArgumentTypeError(
                f"register_module: expected a module, not {type(module).__name__}"
            )
        for path, inner in module.named_modules():
            name = path or type(inner).__name__
            self._names[id(inner)] = name
            self._known.append(inner)
            before, after = self._hooks(name)
            self._handles.append(inner.register_forward_pre_hook(before))
            self._handles.append(inner.register_forward_hook(after))

    def release(self) -> None:
        """Remove all hooks; the names stay."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self.current = ""

    def name(self, module: object) -> str:
        """Return the path of a module; for an unknown one, its class with a number."""
        if id(module) not in self._names:
            kind = type(module).__name__
            taken = set(self._names.values())
            numbered = (f"{kind}_{at}" for at in range(1, len(taken) + 2))
            self._names[id(module)] = next(each for each in (kind, *numbered) if each not in taken)
            self._known.append(module)
        return self._names[id(module)]

    def _hooks(self, name: str) -> tuple[Callable[..., None], Callable[..., None]]:
        outer: list[str] = []

        def before(*_: object) -> None:
            outer.append(self.current)
            self.current = name

        def after(*_: object) -> None:
            self.current = outer.pop()

        return before, after
