"""Functions called around a module's forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from ember_ml.nn.module import Module


class Hooks:
    """The hooks of a module."""

    def __init__(self) -> None:
        self.before: list[Handle] = []
        self.after: list[Handle] = []

    def run(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The forward, with the hooks before and after it."""
        for handle in tuple(self.before):
            changed = handle.hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        output = module.forward(*args, **kwargs)
        for handle in tuple(self.after):
            changed = handle.hook(module, args, output)
            output = output if changed is None else changed
        return output


class Handle:
    """A hook that was set; `remove` takes it away, and so does the end of a `with` block."""

    def __init__(self, module: Module, hook: Callable[..., Any], place: str) -> None:
        self.hook = hook
        self._module = module
        self._place = place

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        hooks: Any = self._module._hooks
        if hooks is None:
            return
        there: list[Handle] = getattr(hooks, self._place)
        there[:] = [handle for handle in there if handle is not self]
        if not hooks.before and not hooks.after:
            del self._module.__dict__["_hooks"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def add(module: Module, hook: Callable[..., Any], place: str) -> Handle:
    """Set a hook "before" or "after" the module's forward."""
    if module._hooks is None:
        module.__dict__["_hooks"] = Hooks()
    handle = Handle(module, hook, place)
    getattr(module._hooks, place).append(handle)
    return handle
