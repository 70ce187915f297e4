"""Modules of torch as Ember modules."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml._core import runtime, tree
from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.tensor import wrap
from ember_ml.interop._naming import add_variable
from ember_ml.interop._torch_calls import (
    BACKEND,
    outside_of_torch_modules,
    to_ember,
    to_native,
)
from ember_ml.interop.torch_modules import EmberModule
from ember_ml.nn import Module, _traversal
from ember_ml.nn.parameter import Buffer, Parameter


def from_torch(module: torch.nn.Module) -> Module:
    """Return an Ember module that computes what a module of torch computes.

    It has the parameters and buffers of the torch module, with the same names and values. It is on
    the torch backend: `value_and_grad`, `Trainer` and tapes differentiate it, and it can be a part
    of other Ember modules. Training with Ember replaces the values of this module only: read the
    trained torch module from `.module`.

    Args:
        module: Module of torch, such as one of transformers or torchvision.

    Example:
        >>> import torch
        >>> from ember_ml.interop import from_torch
        >>> layer = from_torch(torch.nn.Linear(4, 2))
        >>> layer(np.ones((3, 4), "float32")).shape
        (3, 2)
        >>> [name for name, _ in layer.named_parameters()]
        ['weight', 'bias']
    """
    if not isinstance(module, torch.nn.Module):
        raise ArgumentTypeError(
            f"from_torch: expected a torch.nn.Module, got {type(module).__name__}"
        )
    if isinstance(module, EmberModule):
        return module.ember
    runtime.load(BACKEND)
    return TorchLayer(module)


class TorchLayer(Module):
    """Ember module of a torch module; create it with `from_torch`.

    Args:
        module: The torch module.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._torch = module
        self.training = module.training
        parameters = dict(module.named_parameters())
        saved = set(module.state_dict())
        for name, value in parameters.items():
            tensor = wrap(value.detach(), BACKEND)
            add_variable(self, name, Parameter(tensor, trainable=value.requires_grad, name=name))
        for name, value in module.named_buffers():
            add_variable(
                self, name, Buffer(wrap(value, BACKEND), persistent=name in saved, name=name)
            )

    @property
    def module(self) -> torch.nn.Module:
        """The torch module, with the current values of this module."""
        with torch.no_grad():
            for name, value in self._values().items():
                _parameter_or_buffer(self._torch, name).copy_(value)
        return self._torch

    def _values(self) -> dict[str, torch.Tensor]:
        """Return the tensors of torch by name; raise an error if they are on another backend."""
        variables = dict(_traversal.named_variables(self))
        for name, variable in variables.items():
            if variable.backend != BACKEND:
                raise ArgumentTypeError(
                    f"{type(self._torch).__name__} of from_torch runs on the torch backend only, "
                    f"and {name} is on {variable.backend}; call to_backend('torch')"
                )
        return {name: variable.native for name, variable in variables.items()}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the torch module, with Ember tensors in and out."""
        if self._torch.training != self.training:
            self._torch.train(self.training)
        values = self._values()
        if self.training:  # torch changes buffers in place
            values |= {name: values[name].clone() for name, _ in self.named_buffers()}
        inputs, options = tree.map_leaves(to_native, (args, kwargs))
        with outside_of_torch_modules():  # one inside has parameters that are bound here
            output = torch.func.functional_call(self._torch, values, inputs, options)
        if self.training:
            for name, buffer in self.named_buffers():
                buffer.become(wrap(values[name], BACKEND))
        return tree.map_leaves(to_ember, output)

    def extra_repr(self) -> str:
        """Return what the parentheses of the repr contain."""
        return type(self._torch).__name__


def _parameter_or_buffer(module: torch.nn.Module, name: str) -> torch.Tensor:
    """Return the tensor at a dotted name."""
    folder, _, last = name.rpartition(".")
    value: torch.Tensor = getattr(module.get_submodule(folder), last)
    return value
