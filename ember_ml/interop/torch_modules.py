"""Ember modules as `torch.nn.Module`s."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import torch

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, rebind, wrap
from ember_ml.interop._checks import check_module
from ember_ml.nn import Module, _traversal
from ember_ml.nn._hooks import hooks_of
from ember_ml.nn.functional import exclusive, substitute
from ember_ml.nn.parameter import Buffer, Parameter, Variable

BACKEND = "torch"


def to_torch(module: Module) -> EmberModule:
    """Return a `torch.nn.Module` that computes what an Ember module computes.

    It has the submodules, parameters and buffers of the Ember module, with the same names, and
    shares their memory: an optimizer of torch trains both. `loss.backward()`, `torch.optim`,
    `torch.compile`, `torch.export`, DDP and FSDP2 work as with any module of torch. A second call
    returns the same module. Calls from several threads run one after the other.

    The next call of the torch module also has the values that Ember has replaced, as its `Trainer`
    and `load_state_dict` do, and the parameters that it has frozen. A program of `torch.compile`
    has them after the next call of `to_torch`. After a change of the submodules or variables of the
    Ember module, use the new module that `to_torch` returns.

    Args:
        module: Module on the torch backend.

    Example:
        >>> import torch
        >>> from ember_ml.interop import to_torch
        >>> model = to_torch(nn.layers.Dense(4, 2).to_backend("torch"))
        >>> model(torch.ones(3, 4)).sum().backward()
        >>> model.bias.grad.tolist()
        [3.0, 3.0]
    """
    check_module("to_torch", module, BACKEND)
    return _Builder().build(module)


class _Place(NamedTuple):
    """Where torch keeps the value of a variable."""

    variable: Variable
    owner: torch.nn.Module
    name: str

    def value(self) -> torch.Tensor:
        return getattr(self.owner, self.name)


class _Active(threading.local):
    """Number of calls of torch modules that this thread is inside of."""

    depth = 0


_active = _Active()


class EmberModule(torch.nn.Module):  # type: ignore[misc]
    """`torch.nn.Module` of an Ember module; create it with `to_torch`.

    The Ember module computes with the parameters that torch holds at the time of the call, also if
    a wrapper such as FSDP has replaced them. Calls of its submodules go through their torch
    modules, so that hooks of torch run.

    Args:
        module: The Ember module.
    """

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.ember = module
        self.own_places: list[_Place] = []
        """Places of the variables of this module alone."""
        self.places: list[_Place] = []
        """Places of the variables of this module and all modules inside it."""
        self.shared: dict[int, torch.Tensor] = {}
        """Value of each variable of this module alone that has the memory of torch's value."""
        self.trainable: dict[int, bool] = {}
        """Whether each parameter of this module alone was trainable."""
        self.register_load_state_dict_post_hook(_share_after_load)
        self.register_state_dict_pre_hook(_take_before_save)
        super().train(module.training)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the Ember module, with tensors of torch in and out."""
        inputs, options = tree.map_leaves(to_ember, (args, kwargs))
        _active.depth += 1
        try:
            if _active.depth > 1 and not self._forward_pre_hooks:  # the caller has the values
                output = _forward(self.ember, inputs, options)
            else:
                output = self._compute(inputs, options)
        finally:
            _active.depth -= 1
        return tree.map_leaves(to_native, output)

    def _compute(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the output with the values that torch holds, and store changes of buffers."""
        variables = [place.variable for place in self.places]
        natives = [place.value() for place in self.places]
        with exclusive(variables):
            if _active.depth == 1 and not torch.compiler.is_compiling():
                self.take_values_of_ember()
            return self._substitute(variables, natives, args, kwargs)

    def _substitute(
        self,
        variables: list[Variable],
        natives: list[torch.Tensor],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        with substitute(variables, [wrap(x, BACKEND) for x in natives]):
            output = _forward(self.ember, args, kwargs)
            for variable, native in zip(variables, natives, strict=True):
                if isinstance(variable, Buffer) and variable.native is not native:
                    native.copy_(variable.native.detach())
        return output

    def train(self, mode: bool = True) -> Self:
        """Switch the module and its Ember module to training or inference mode."""
        super().train(mode)
        self.ember.training = mode
        return self

    def _apply(self, fn: Callable[..., torch.Tensor], recurse: bool = True) -> Self:
        """Move or convert the parameters of both modules."""
        self._take_own_values()
        super()._apply(fn, recurse)
        self.share_memory_with_ember()
        return self

    def share_memory_with_ember(self) -> None:
        """Let the variables of the Ember module refer to torch's values, such as after a move."""
        for place in self.own_places:
            value = place.value().detach()
            if type(value) is torch.Tensor:  # not a shard of it
                rebind([place.variable], [wrap(value, BACKEND)])
                self.shared[id(place.variable)] = value

    def take_values_of_ember(self) -> None:
        """Copy the values to torch that Ember has replaced since the memory was shared."""
        for module in self.modules():
            if isinstance(module, EmberModule):
                module._take_own_values()

    def _take_own_values(self) -> None:
        for place in self.own_places:
            variable = place.variable
            trainable = _is_trainable(variable)
            if trainable != self.trainable[id(variable)]:
                place.value().requires_grad_(trainable)
                self.trainable[id(variable)] = trainable
            if variable.native is self.shared[id(variable)]:
                continue
            if variable.backend != BACKEND:
                raise ArgumentTypeError(
                    f"to_torch: {place.name} of {self._get_name()} is on {variable.backend} now; "
                    "call to_backend('torch') on the Ember module"
                )
            with torch.no_grad():
                place.value().copy_(variable.native)
            value = place.value().detach()
            rebind([variable], [wrap(value, BACKEND)])
            self.shared[id(variable)] = value

    def __deepcopy__(self, memo: dict[int, Any]) -> EmberModule:
        copied = to_torch(copy.deepcopy(self.ember, memo))
        for mine, other in zip(self.parameters(), copied.parameters(), strict=True):
            other.requires_grad_(mine.requires_grad)
        memo[id(self)] = copied
        return copied

    def _get_name(self) -> str:
        return type(self.ember).__name__

    def extra_repr(self) -> str:
        """Return what the parentheses of the repr contain."""
        return "" if self._modules else self.ember.extra_repr()


class _Builder:
    """Creation of torch modules; a module or variable that occurs twice has one counterpart."""

    def __init__(self) -> None:
        self._values: dict[int, torch.Tensor] = {}

    def build(self, module: Module) -> EmberModule:
        """Return the torch module of a module, which may exist."""
        hooks = module._hooks
        known = hooks.around if hooks is not None else None
        if isinstance(known, _Detour) and known.is_current():
            if not _active.depth:
                known.counterpart.take_values_of_ember()
            return known.counterpart
        counterpart = EmberModule(module)
        hooks_of(module).around = _Detour(counterpart)
        variables, children = _traversal.parts(module)
        for name, variable in variables:
            counterpart.own_places.append(self._register(counterpart, name, variable))
        places = {id(place.variable): place for place in counterpart.own_places}
        for name, child in children:
            inner = self.build(child)
            owner, last = _container(counterpart, name)
            owner.add_module(last, inner)
            places |= {id(place.variable): place for place in inner.places}
        counterpart.places = list(places.values())
        counterpart.shared = {
            id(place.variable): place.variable.native for place in counterpart.own_places
        }
        counterpart.trainable = {
            id(place.variable): _is_trainable(place.variable) for place in counterpart.own_places
        }
        return counterpart

    def _register(self, root: torch.nn.Module, name: str, variable: Variable) -> _Place:
        owner, last = _container(root, name)
        if id(variable) not in self._values:
            native = variable.native.detach()
            if not native.is_contiguous():  # torch's optimizers cannot write to a broadcast value
                native = native.contiguous()
                rebind([variable], [wrap(native, BACKEND)])
            if isinstance(variable, Parameter):
                native = torch.nn.Parameter(native, requires_grad=_is_trainable(variable))
            self._values[id(variable)] = native
        value = self._values[id(variable)]
        if isinstance(variable, Buffer):
            owner.register_buffer(last, value, persistent=variable.persistent)
        else:
            owner.register_parameter(last, value)
        return _Place(variable, owner, last)


class _Detour:
    """Calls of an Ember module inside a call of torch go through its torch module."""

    def __init__(self, counterpart: EmberModule) -> None:
        self.counterpart = counterpart

    def is_current(self) -> bool:
        """Return whether the Ember module still has the variables of the torch module."""
        variables = _traversal.named_variables(self.counterpart.ember)
        known = {id(place.variable) for place in self.counterpart.places}
        return {id(variable) for _, variable in variables} == known

    def __call__(self, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the output of the module."""
        if not _active.depth:
            return _forward(module, args, kwargs)
        inputs, options = tree.map_leaves(to_native, (args, dict(kwargs)))
        return tree.map_leaves(to_ember, self.counterpart(*inputs, **options))

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        return None  # a copy of the Ember module has no torch module


def _is_trainable(variable: Variable) -> bool:
    return isinstance(variable, Parameter) and variable.trainable and variable.dtype.is_floating


def _take_before_save(module: EmberModule, prefix: object, keep_vars: object) -> None:
    """Let the state dict have the values that Ember has replaced."""
    module._take_own_values()


def _share_after_load(module: EmberModule, keys: object) -> None:
    """Let the Ember module have the values of a state dict, also if they replaced the tensors."""
    module.share_memory_with_ember()


def _forward(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the output of an Ember module, with the hooks of Ember."""
    hooks = module._hooks
    assert hooks is not None, "a module with a torch module has hooks"
    return hooks.run_inner(module, args, kwargs)


def _container(root: torch.nn.Module, name: str) -> tuple[torch.nn.Module, str]:
    """Return the torch module that holds a dotted name, and the last part of the name."""
    *folders, last = name.split(".")
    for folder in folders:
        if folder not in root._modules:
            root.add_module(folder, torch.nn.Module())
        root = root._modules[folder]
    return root, last


def to_ember(leaf: object) -> object:
    """Return an Ember tensor for a tensor of torch, and anything else as it is."""
    return wrap(leaf, BACKEND) if isinstance(leaf, torch.Tensor) else leaf


def to_native(leaf: object) -> object:
    """Return the tensor of torch of an Ember tensor, and anything else as it is."""
    return leaf.native if isinstance(leaf, EmberTensor) else leaf
