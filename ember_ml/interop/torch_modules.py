"""Ember modules as `torch.nn.Module`s."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, Self

import torch
from torch.nn.utils import parametrize

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.tensor import rebind, wrap
from ember_ml.interop import _autocast
from ember_ml.interop._checks import check_module
from ember_ml.interop._torch_calls import (
    BACKEND,
    Detour,
    Seat,
    active,
    run_forward,
    to_ember,
    to_native,
)
from ember_ml.nn import Module, _traversal
from ember_ml.nn._hooks import hooks_of
from ember_ml.nn.functional import exclusive, substitute
from ember_ml.nn.parameter import Buffer, Parameter, Variable


def to_torch(module: Module) -> EmberModule:
    """Return a `torch.nn.Module` that computes what an Ember module computes.

    It has the submodules, parameters and buffers of the Ember module, with the same names, and
    shares their memory: an optimizer of torch trains both. `loss.backward()`, `torch.optim`,
    `torch.compile`, `torch.export`, DDP and FSDP2 work as with any module of torch. A second call
    returns the same module. Calls from several threads run one after the other.

    The next call of the torch module also has the values that Ember has replaced, as its `Trainer`
    and `load_state_dict` do, and the parameters that it has frozen. A program of `torch.compile`
    has them after the next call of `to_torch`. The same holds in the other direction for parameters
    that torch has replaced instead of changing them in place, as `vector_to_parameters` does. After
    a change of the submodules or variables of the Ember module, use the new module that `to_torch`
    returns. A submodule of the torch module may be replaced, such as by an adapter.

    Inside `torch.autocast`, the module computes in the dtype of autocast.

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

    def computed(self, dtype: torch.dtype | None) -> torch.Tensor:
        """Return the value that a call computes with.

        Args:
            dtype: Dtype of floating-point parameters. Default: autocast's, or their own.
        """
        value = self.value()
        if isinstance(self.variable, Buffer):
            return value
        if dtype is None or not value.is_floating_point():
            return _autocast.cast(value, active.dtype)
        return value.to(dtype)


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
        self.seats: list[Seat] = []
        """Where the torch modules of the submodules were registered."""
        self.places: list[_Place] = []
        """Places of the variables of this module and all modules inside it."""
        self.shared: dict[int, torch.Tensor] = {}
        """Value of each variable of this module alone that has the memory of torch's value."""
        self.trainable: dict[int, bool] = {}
        """Whether each parameter of this module alone was trainable."""
        self.takes_values = True
        """Whether a call first takes the values that Ember has replaced."""
        self.compute_dtype: torch.dtype | None = None
        """Dtype in which floating-point parameters are used. Default: their own."""
        self.register_load_state_dict_post_hook(_share_after_load)
        self.register_state_dict_pre_hook(_take_before_save)
        super().train(module.training)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the Ember module, with tensors of torch in and out."""
        if (region := _autocast.find(args, kwargs)) is not None:
            return self._forward_in(region, args, kwargs)
        return self._run(args, kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the output of the Ember module, outside of autocast."""
        inputs, options = tree.map_leaves(to_ember, (args, kwargs))
        active.depth += 1
        try:
            if active.depth > 1 and not self._forward_pre_hooks:  # the caller has the values
                output = run_forward(self.ember, inputs, options)
            else:
                output = self._compute(inputs, options)
        finally:
            active.depth -= 1
        return tree.map_leaves(to_native, output)

    def _forward_in(
        self, region: _autocast.Region, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the output in the dtype of autocast, computed with autocast off."""
        before = active.dtype
        if self.places:
            args, kwargs = tree.map_leaves(region.cast, (args, kwargs))
            active.dtype = region.dtype
        try:
            with torch.autocast(region.device_type, enabled=False):
                return self._run(args, kwargs)
        finally:
            active.dtype = before

    def _compute(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the output with the values that torch holds, and store changes of buffers."""
        variables = [place.variable for place in self.places]
        with exclusive(variables):
            if self.takes_values and active.depth == 1 and not torch.compiler.is_compiling():
                self.take_values_of_ember()
            dtype = None if active.dtype is not None else self.compute_dtype
            natives = [place.computed(dtype) for place in self.places]
            return self._substitute(variables, natives, args, kwargs)

    def _substitute(
        self,
        variables: list[Variable],
        natives: list[torch.Tensor],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        with substitute(variables, [wrap(x, BACKEND) for x in natives]):
            output = run_forward(self.ember, args, kwargs)
            for place, native in zip(self.places, natives, strict=True):
                variable = place.variable
                if isinstance(variable, Buffer) and variable.native is not native:
                    place.value().copy_(variable.native.detach())
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
                self.share_value(place, value)

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
                self._share_if_replaced(place)
                continue
            if variable.backend != BACKEND:
                raise ArgumentTypeError(
                    f"to_torch: {place.name} of {self._get_name()} is on {variable.backend} now; "
                    "call to_backend('torch') on the Ember module"
                )
            with torch.no_grad():
                value = local_part(place.value().detach())
                value.copy_(variable.native)
            self.share_value(place, value)

    def _share_if_replaced(self, place: _Place) -> None:
        """Let the Ember variable refer to a parameter that torch has replaced, not one it lends."""
        value = place.owner._parameters.get(place.name)
        if value is None and parametrize.is_parametrized(place.owner, place.name):
            value = place.value()
        elif type(value) is not torch.nn.Parameter:  # a value of functional_call, or a shard
            return
        if value.data_ptr() != self.shared[id(place.variable)].data_ptr():
            self.share_value(place, value.detach())

    def share_value(self, place: _Place, value: torch.Tensor) -> None:
        """Let a variable of the Ember module refer to a value of torch."""
        rebind([place.variable], [wrap(value, BACKEND)])
        self.shared[id(place.variable)] = value

    def __deepcopy__(self, memo: dict[int, Any]) -> EmberModule:
        self.take_values_of_ember()
        copied = self.__new__(type(self))
        memo[id(self)] = copied
        copied.__dict__ = copy.deepcopy(self.__dict__, memo)
        copied._connect()
        copied.share_memory_with_ember()
        return copied

    def _connect(self) -> None:
        """Connect the Ember module to this torch module, which has its variables in its places."""
        hooks_of(self.ember).around = Detour(self)
        for seat in self.seats:
            seat.detour().seats[id(self.ember), seat.name] = seat
        self.trainable = {
            id(place.variable): _is_trainable(place.variable) for place in self.own_places
        }
        self.shared = {id(place.variable): place.variable.native for place in self.own_places}

    def __copy__(self) -> EmberModule:
        copied = self.__new__(type(self))
        copied.__dict__ = self.__dict__.copy()
        return copied

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise ArgumentTypeError(
            f"{self._get_name()} of to_torch cannot be pickled; save its state_dict(), or save the "
            "Ember module with ember_ml.save"
        )

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
        if isinstance(known, Detour) and known.is_current():
            if not active.depth:
                known.counterpart.take_values_of_ember()
            return known.counterpart
        counterpart = EmberModule(module)
        variables, children = _traversal.parts(module)
        for name, variable in variables:
            counterpart.own_places.append(self._register(counterpart, name, variable))
        places = {id(place.variable): place for place in counterpart.own_places}
        for name, child in children:
            inner = self.build(child)
            owner, last = _container(counterpart, name)
            owner.add_module(last, inner)
            counterpart.seats.append(Seat(owner, last, inner))
            places |= {id(place.variable): place for place in inner.places}
        counterpart.places = list(places.values())
        counterpart._connect()
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


def local_part(value: torch.Tensor) -> torch.Tensor:
    """Return the part of a value that this process holds: all of it, unless it is a DTensor."""
    return value.to_local() if hasattr(value, "to_local") else value


def _is_trainable(variable: Variable) -> bool:
    return isinstance(variable, Parameter) and variable.trainable and variable.dtype.is_floating


def _take_before_save(module: EmberModule, prefix: object, keep_vars: object) -> None:
    """Let the state dict have the values that Ember has replaced."""
    module._take_own_values()


def _share_after_load(module: EmberModule, keys: object) -> None:
    """Let the Ember module have the values of a state dict, also if they replaced the tensors."""
    module.share_memory_with_ember()


def _container(root: torch.nn.Module, name: str) -> tuple[torch.nn.Module, str]:
    """Return the torch module that holds a dotted name, and the last part of the name."""
    *folders, last = name.split(".")
    for folder in folders:
        if folder not in root._modules:
            root.add_module(folder, torch.nn.Module())
        root = root._modules[folder]
    return root, last
