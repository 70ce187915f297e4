"""Calls of Ember modules inside calls of torch: they go through the torch modules."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ember_ml._core import tree
from ember_ml._core.tensor import EmberTensor, wrap
from ember_ml.interop import _autocast
from ember_ml.nn import Module, _traversal

if TYPE_CHECKING:
    from ember_ml.interop.torch_modules import EmberModule

BACKEND = "torch"


class Active(threading.local):
    """Number of calls of torch modules that this thread is inside of, and the dtype of autocast."""

    depth = 0
    dtype: torch.dtype | None = None


active = Active()


@contextmanager
def outside_of_torch_modules() -> Iterator[None]:
    """Let the modules that are called within the block use their own values, as at depth 0."""
    depth, dtype = active.depth, active.dtype
    active.depth, active.dtype = 0, None
    try:
        yield
    finally:
        active.depth, active.dtype = depth, dtype


class Seat(NamedTuple):
    """Where the torch module of a submodule was registered."""

    owner: torch.nn.Module
    name: str
    module: EmberModule

    def current(self) -> torch.nn.Module:
        """Return the module that torch has there now."""
        current = self.owner._modules.get(self.name)
        return self.module if current is None else current

    def detour(self) -> Detour:
        """Return the detour of the submodule."""
        return self.module.ember._hooks.around  # type: ignore[union-attr, return-value]


class Detour:
    """Calls of an Ember module inside a call of torch go through its torch module."""

    def __init__(self, counterpart: EmberModule) -> None:
        self.counterpart = counterpart
        self.entry: Callable[..., Any] | None = None
        """What a call from outside of torch goes through, with (args, kwargs)."""
        self.around_copies: Callable[..., Any] | None = None
        """What calls of a copy of the Ember module go through, with (module, args, kwargs)."""
        self.seats: dict[tuple[int, str], Seat] = {}
        """Where modules that contain it have it, by the Ember module and the name."""

    def target(self) -> torch.nn.Module:
        """Return the torch module, or the module that torch has in its place, as an adapter."""
        for seat in self.seats.values():
            if (current := seat.current()) is not self.counterpart:
                return current
        return self.counterpart

    def _is_plain(self, target: torch.nn.Module) -> bool:
        """Return whether a call of the torch module does nothing but run the Ember module."""
        own = self.counterpart
        hooks = own._forward_hooks, own._forward_pre_hooks
        backward_hooks = own._backward_hooks, own._backward_pre_hooks
        is_hooked = any(map(len, (*hooks, *backward_hooks))) or "forward" in own.__dict__
        return target is own and not is_hooked

    def is_current(self) -> bool:
        """Return whether the Ember module still has the variables of the torch module."""
        variables = _traversal.named_variables(self.counterpart.ember)
        known = {id(place.variable) for place in self.counterpart.places}
        return {id(variable) for _, variable in variables} == known

    def __call__(self, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the output of the module."""
        if not active.depth:
            entry = self.entry or functools.partial(run_forward, module)
            return entry(args, kwargs)
        target = self.target()
        if torch.compiler.is_dynamo_compiling() and self._is_plain(target):
            return run_forward(module, args, kwargs)  # the compiler's recursion is limited
        inputs, options = tree.map_leaves(to_native, (args, dict(kwargs)))
        if target is self.counterpart or active.dtype is None:
            return tree.map_leaves(to_ember, target(*inputs, **options))
        with _autocast.resume(inputs, options, active.dtype):
            return tree.map_leaves(to_ember, target(*inputs, **options))

    def __deepcopy__(self, memo: dict[int, Any]) -> Callable[..., Any] | None:
        return self.around_copies  # a copy of the Ember module has no torch module


def detour_of(module: EmberModule) -> Detour:
    """Return what calls of the Ember module of a torch module go through."""
    hooks = module.ember._hooks
    assert hooks is not None, "a module with a torch module has hooks"
    assert isinstance(hooks.around, Detour), "a torch module is reached by a detour"
    return hooks.around


def run_forward(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the output of an Ember module, with the hooks of Ember."""
    hooks = module._hooks
    assert hooks is not None, "a module with a torch module has hooks"
    return hooks.run_inner(module, args, kwargs)


def to_ember(leaf: object) -> object:
    """Return an Ember tensor for a tensor of torch, and anything else as it is."""
    return wrap(leaf, BACKEND) if isinstance(leaf, torch.Tensor) else leaf


def to_native(leaf: object) -> object:
    """Return the tensor of torch of an Ember tensor, and anything else as it is."""
    return leaf.native if isinstance(leaf, EmberTensor) else leaf
