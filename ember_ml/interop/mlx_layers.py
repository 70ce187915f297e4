"""Modules of MLX as Ember modules."""

from __future__ import annotations

from typing import Any

import mlx.nn
from mlx.utils import tree_flatten, tree_unflatten

from ember_ml._core import runtime, tree
from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.tensor import wrap
from ember_ml.interop._naming import add_variable
from ember_ml.interop.mlx_modules import BACKEND, MLXModule, to_ember, to_native
from ember_ml.nn import Module, _traversal
from ember_ml.nn.parameter import Buffer, Parameter


def from_mlx(module: mlx.nn.Module) -> Module:
    """Return an Ember module that computes what a module of MLX computes.

    It has the parameters of the MLX module, with the same names, and is on the MLX backend:
    `value_and_grad`, `Trainer` and tapes differentiate it, and it can be a part of other Ember
    modules. Frozen parameters of MLX, such as running statistics, become buffers. Training with
    Ember replaces the values of this module only: read the trained MLX module from `.module`.

    Args:
        module: Module of MLX.

    Example:
        >>> import mlx.nn
        >>> from ember_ml.interop import from_mlx
        >>> layer = from_mlx(mlx.nn.Linear(4, 2))
        >>> layer(np.ones((3, 4), "float32")).shape
        (3, 2)
    """
    if not isinstance(module, mlx.nn.Module):
        raise ArgumentTypeError(f"from_mlx: expected an mlx.nn.Module, got {type(module).__name__}")
    if isinstance(module, MLXModule):
        return module.ember
    runtime.load(BACKEND)
    return MLXLayer(module)


class MLXLayer(Module):
    """Ember module of an MLX module; create it with `from_mlx`.

    Args:
        module: The MLX module.
    """

    def __init__(self, module: mlx.nn.Module) -> None:
        self._mlx = module
        self.training = module.training
        trainable = {name for name, _ in tree_flatten(module.trainable_parameters())}
        for name, value in tree_flatten(module.parameters()):
            kind = Parameter if name in trainable else Buffer
            add_variable(self, name, kind(wrap(value, BACKEND), name=name))

    @property
    def module(self) -> mlx.nn.Module:
        """The MLX module, with the current values of this module."""
        self._mlx.update(tree_unflatten(list(self._values().items())))
        return self._mlx

    def _values(self) -> dict[str, Any]:
        """Return the arrays of MLX by name; raise an error if they are on another backend."""
        variables = dict(_traversal.named_variables(self))
        for name, variable in variables.items():
            if variable.backend != BACKEND:
                raise ArgumentTypeError(
                    f"{type(self._mlx).__name__} of from_mlx runs on the MLX backend only, and "
                    f"{name} is on {variable.backend}; call to_backend('mlx')"
                )
        return {name: variable.native for name, variable in variables.items()}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the MLX module, with Ember tensors in and out."""
        if self._mlx.training != self.training:
            self._mlx.train(self.training)
        inputs, options = tree.map_leaves(to_native, (args, kwargs))
        before = self._mlx.parameters()
        values, variables = self._values(), dict(_traversal.named_variables(self))
        self._mlx.update(tree_unflatten(list(values.items())))
        try:
            output = self._mlx(*inputs, **options)
            for name, value in tree_flatten(self._mlx.parameters()):
                if value is not values[name]:  # such as running statistics
                    variables[name].become(wrap(value, BACKEND))
        finally:
            self._mlx.update(before)
        return tree.map_leaves(to_ember, output)

    def extra_repr(self) -> str:
        """Return what the parentheses of the repr contain."""
        return type(self._mlx).__name__
