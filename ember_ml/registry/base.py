"""The registry: a table from names to component classes."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ember_ml._core.errors import EmberError
from ember_ml._core.namespaces import import_module

if TYPE_CHECKING:
    from ember_ml.configs.base import Config

T = TypeVar("T", bound=Callable[..., Any])

_deriving = threading.RLock()
"""Held while a config class is derived: each component has exactly one."""


class UnknownComponentError(EmberError, KeyError):
    """Raised for a name under which nothing is registered."""

    def __str__(self) -> str:  # KeyError would quote the message
        return str(self.args[0])


class RegistrationError(EmberError, ValueError):
    """Raised for a name that cannot be registered."""


def close_matches(name: str, names: Iterable[str]) -> str:
    """Return "; did you mean ...?" with similar names, to end an error message, or ""."""
    import difflib

    matches = difflib.get_close_matches(name, list(names), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(map(repr, matches))}?" if matches else ""


@dataclass(frozen=True)
class Entry:
    """A registered component."""

    name: str
    """Kind and name, such as "layers/dense"."""
    target: Callable[..., Any]
    """The class, or a function that returns a component."""
    aliases: tuple[str, ...] = ()
    config_name: str = ""
    """The name of its config class."""

    @property
    def kind(self) -> str:
        """The kind of component, such as "layers"."""
        return self.name.partition("/")[0]

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return (inspect.getdoc(self.target) or "").partition("\n")[0]

    @property
    def bare(self) -> str:
        """The name without the kind."""
        return self.name.partition("/")[2]

    @functools.cached_property
    def config(self) -> type[Config]:
        """The config class, derived from the signature."""
        from ember_ml.configs.derive import derive

        with _deriving:
            own = self.__dict__.get("config")  # another thread may have derived it
            return derive(self) if own is None else own


class Registry:
    """Components by kind and name, safe to use from several threads.

    Importing a module registers its components. A thread that needs components which another one
    is importing waits for the import, through the locks of Python's import system.

    Args:
        kinds: For each kind, the modules that register its built-in components when imported.
        plugins: Entry point group from which components of other packages are loaded.
    """

    def __init__(self, kinds: Mapping[str, Iterable[str]], plugins: str | None = None) -> None:
        self.kinds: dict[str, tuple[str, ...]] = {kind: tuple(mods) for kind, mods in kinds.items()}
        self._plugins = plugins
        self._entries: dict[str, Entry] = {}
        self._names: dict[str, str] = {}
        self._loaded: set[str] = set()
        self._loading_plugins = threading.RLock()
        self._plugins_started = False

    def register(
        self,
        name: str,
        *,
        aliases: Iterable[str] = (),
        config_name: str | None = None,
    ) -> Callable[[T], T]:
        """Return a decorator that registers a class, or a function that returns a component.

        Args:
            name: "kind/name", such as "layers/dense".
            aliases: Other names of the component, without the kind.
            config_name: Name of the config class. Default: the target's name and "Config".
        """
        kind = self._kind(name)
        others = tuple(f"{kind}/{alias}" for alias in aliases)

        def decorate(target: T) -> T:
            from ember_ml.registry.configured import configured

            for key in (name, *others):
                self._refuse_taken(key, target)
            entry = Entry(name, target, others, config_name or f"{target.__name__}Config")
            if isinstance(target, type):
                configured(target, entry)
            self._entries[name] = entry  # from here on, other threads may use the class
            self._names.update(dict.fromkeys((name, *others), name))
            return target

        return decorate

    def _kind(self, name: str) -> str:
        kind, _, rest = name.partition("/")
        if kind not in self.kinds or not rest:
            raise RegistrationError(
                f"register({name!r}): the name must be 'kind/name', with one of the kinds "
                f"{', '.join(sorted(self.kinds))}{close_matches(kind, self.kinds)}"
            )
        return kind

    def _refuse_taken(self, key: str, target: Callable[..., Any]) -> None:
        if key not in self._names:
            return
        owner = self._entries[self._names[key]].target
        same = (owner.__module__, owner.__qualname__) == (target.__module__, target.__qualname__)
        if not same:  # a reloaded class replaces itself
            raise RegistrationError(
                f"register({key!r}): the name belongs to {owner.__module__}.{owner.__qualname__}"
            )

    def get(self, name: str, kind: str | None = None) -> Entry:
        """Return the entry registered under "kind/name", or under a bare name of the given kind.

        Args:
            name: The name, with or without the kind.
            kind: The kind that a bare name belongs to.

        Raises:
            UnknownComponentError: Nothing is registered under the name.
        """
        if not isinstance(name, str):
            raise UnknownComponentError(f"a component's name must be a string, not {name!r:.60}")
        full = name if kind is None or name.startswith(f"{kind}/") else f"{kind}/{name}"
        if full not in self._names:
            self._load(full.partition("/")[0])
        if full not in self._names:
            self._load_plugins()
        if full not in self._names:
            raise UnknownComponentError(self._unknown(full))
        entry = self._entries[self._names[full]]
        _await_import(entry.target.__module__)
        return entry

    def entry_of(self, target: object) -> Entry | None:
        """Return the entry of a class that is registered, or None."""
        entries = list(self._entries.values())  # other threads may register meanwhile
        return next((entry for entry in entries if entry.target is target), None)

    def _unknown(self, full: str) -> str:
        kind, _, name = full.partition("/")
        if not name:
            return f"{full!r} has no kind: write 'kind/name', such as 'layers/{full}'"
        if kind not in self.kinds:
            return f"there is no kind {kind!r}{close_matches(kind, self.kinds)}"
        names = [key.partition("/")[2] for key in list(self._names) if key.startswith(f"{kind}/")]
        own = [entry.bare for entry in self.available(kind)]
        hint = close_matches(name, names) or f"; there are {', '.join(own) or 'none'}"
        return f"no {kind} named {name!r}{hint}"

    def available(self, kind: str | None = None, *, plugins: bool = True) -> list[Entry]:
        """Return all entries, or those of one kind, sorted by name.

        Args:
            kind: The kind of components to list. Default: all kinds.
            plugins: Whether to load the plugins first.
        """
        if kind is not None and kind not in self.kinds:
            raise UnknownComponentError(
                f"there is no kind {kind!r}{close_matches(kind, self.kinds)}"
            )
        kinds = [kind] if kind is not None else list(self.kinds)
        for each in kinds:
            self._load(each)
        if plugins:
            self._load_plugins()
        return [
            self._entries[name] for name in sorted(self._entries) if name.split("/")[0] in kinds
        ]

    def _load(self, kind: str) -> None:
        """Import the modules that register the built-in components of a kind."""
        if kind in self._loaded or kind not in self.kinds:
            return
        for module in self.kinds[kind]:
            import_module(module)
        self._loaded.add(kind)

    def _load_plugins(self) -> None:
        """Import the plugins, once; built-in components never need them."""
        from ember_ml.registry import plugins

        if self._plugins is None or "" in self._loaded:
            return
        with self._loading_plugins:
            if self._plugins_started:  # by this thread, or finished by another one
                return
            self._plugins_started = True
            try:
                plugins.load_installed(self._plugins)
                for name in plugins.named():
                    plugins.load_named(name)
                self._loaded.add("")
            except EmberError:
                self._plugins_started = False  # raise again at the next call
                raise


def _await_import(module: str) -> None:
    """Wait until a module that another thread is importing is complete."""
    if module in sys.modules:
        importlib.import_module(module)
