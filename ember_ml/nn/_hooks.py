"""Functions that are called before and after a module's forward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

if TYPE_CHECKING:
    from ember_ml.nn.module import Module


class Hooks:
    """The hooks of a module.

    Attributes:
        is_used: Whether a hook was ever added to any module.
        before: Hooks before the forward.
        after: Hooks after it.
        around: Function that a call of the module goes through, such as the module's counterpart
            in another framework. It calls `run_inner`.
        within: Function (module, args, kwargs, run) that runs the forward and its hooks inside
            `around`, such as with rematerialization. It calls `run(module, args, kwargs)`.
    """

    is_used: ClassVar[bool] = False

    def __init__(self) -> None:
        self.before: list[Handle] = []
        self.after: list[Handle] = []
        self.around: Callable[..., Any] | None = None
        self.within: Callable[..., Any] | None = None

    @property
    def has_any(self) -> bool:
        """Whether there are hooks before or after the forward."""
        return bool(self.before or self.after)

    def run(self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the output of the module, with all hooks applied."""
        if self.around is not None:
            return self.around(module, args, kwargs)
        return self.run_inner(module, args, kwargs)

    def run_inner(self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the output of `forward`, with all hooks but `around` applied."""
        if self.within is not None:
            return self.within(module, args, kwargs, self._run_forward)
        return self._run_forward(module, args, kwargs)

    def _run_forward(self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the output of `forward`, with the hooks before and after it applied."""
        for handle in tuple(self.before):
            replaced = handle.hook(module, args)
            if replaced is not None:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
        output = module.forward(*args, **kwargs)
        for handle in tuple(self.after):
            replaced = handle.hook(module, args, output)
            output = output if replaced is None else replaced
        return output


class Handle:
    """A registered hook; `remove` or the end of a `with` block removes it."""

    def __init__(
        self, module: Module, hook: Callable[..., object], place: Literal["before", "after"]
    ) -> None:
        self.hook = hook
        self._module = module
        self._place = place

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        hooks = self._module._hooks
        if hooks is None:
            return
        handles: list[Handle] = getattr(hooks, self._place)
        handles[:] = [handle for handle in handles if handle is not self]
        drop_unused(self._module)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def hooks_of(module: Module) -> Hooks:
    """Return the hooks of a module, which are created if there are none."""
    hooks = module._hooks
    if hooks is None:
        hooks = module.__dict__["_hooks"] = Hooks()
    return hooks


def is_hooked(module: Module) -> bool:
    """Return whether a module, or one inside it, has hooks before or after its forward pass."""
    if not Hooks.is_used:
        return False
    return any(each._hooks is not None and each._hooks.has_any for each in module.modules())


def drop_unused(module: Module) -> None:
    """Remove the hooks of a module that has none left, so that its calls cost nothing."""
    hooks = module._hooks
    if hooks is None or hooks.has_any:
        return
    if hooks.around is None and hooks.within is None:
        del module.__dict__["_hooks"]


def add_hook(
    module: Module, hook: Callable[..., object], place: Literal["before", "after"]
) -> Handle:
    """Register a hook before or after the module's forward, and return its handle."""
    Hooks.is_used = True
    hooks = hooks_of(module)
    handle = Handle(module, hook, place)
    (hooks.before if place == "before" else hooks.after).append(handle)
    return handle
