"""Ember modules as `mlx.nn.Module`s."""

from __future__ import annotations

from typing import Any, NamedTuple

import mlx.core as mx
import mlx.nn

from ember_ml._core import tree
from ember_ml._core.tensor import EmberTensor, rebind, wrap
from ember_ml.interop._checks import check_module
from ember_ml.nn import Module, _traversal
from ember_ml.nn.functional import exclusive, substitute
from ember_ml.nn.parameter import Buffer, Variable

BACKEND = "mlx"


def to_mlx(module: Module) -> MLXModule:
    """Return an `mlx.nn.Module` that computes what an Ember module computes.

    It has the submodules and parameters of the Ember module, with the same names.
    `mlx.nn.value_and_grad`, `mlx.optimizers` and `mx.compile` work as with any module of MLX.
    Arrays of MLX are never changed in place, so training replaces those of this module only: read
    the trained Ember module from `.ember`.

    Args:
        module: Module on the MLX backend.

    Example:
        >>> import mlx.core as mx
        >>> from ember_ml.interop import to_mlx
        >>> model = to_mlx(nn.layers.Dense(4, 2).to_backend("mlx"))
        >>> model(mx.ones((3, 4))).shape
        (3, 2)
    """
    check_module("to_mlx", module, BACKEND)
    return MLXModule(module)


class _Place(NamedTuple):
    """Where MLX keeps the value of a variable."""

    variable: Variable
    owner: dict[str, Any]
    name: str


class MLXModule(mlx.nn.Module):  # type: ignore[misc]
    """`mlx.nn.Module` of an Ember module; create it with `to_mlx`.

    Args:
        module: The Ember module.
    """

    def __init__(self, module: Module) -> None:
        super().__init__()
        places: dict[int, _Place] = {}
        variables, children = _traversal.parts(module)
        frozen = []
        for name, variable in variables:
            owner, last = _container(self, name)
            owner[last] = variable.native
            places[id(variable)] = _Place(variable, owner, last)
            if owner is self and (isinstance(variable, Buffer) or not variable.trainable):
                frozen.append(last)
        for name, child in children:
            owner, last = _container(self, name)
            owner[last] = MLXModule(child)
            places |= {id(place.variable): place for place in owner[last].places}
        self._ember = module
        self._places = list(places.values())
        self.freeze(recurse=False, keys=frozen)
        self._training = module.training

    @property
    def places(self) -> list[_Place]:
        """Places of the variables of this module and all modules inside it."""
        return self._places

    @property
    def ember(self) -> Module:
        """The Ember module, with the current arrays of this module."""
        values = [wrap(place.owner[place.name], BACKEND) for place in self._places]
        rebind([place.variable for place in self._places], values)
        return self._ember

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the Ember module, with arrays of MLX in and out."""
        inputs, options = tree.map_leaves(to_ember, (args, kwargs))
        variables = [place.variable for place in self._places]
        natives = [place.owner[place.name] for place in self._places]
        with (
            exclusive(variables),
            substitute(variables, [wrap(x, BACKEND) for x in natives]),
        ):
            output = self._ember(*inputs, **options)
            for place, native in zip(self._places, natives, strict=True):
                if isinstance(place.variable, Buffer) and place.variable.native is not native:
                    place.owner[place.name] = place.variable.native
        return tree.map_leaves(to_native, output)

    def _set_training_mode(self, mode: bool) -> None:
        super()._set_training_mode(mode)
        self._ember.training = mode


def _container(root: dict[str, Any], name: str) -> tuple[dict[str, Any], str]:
    """Return the dict that holds a dotted name, and the last part of the name."""
    *folders, last = name.split(".")
    for folder in folders:
        root = root.setdefault(folder, {})
    return root, last


def to_ember(leaf: object) -> object:
    """Return an Ember tensor for an array of MLX, and anything else as it is."""
    return wrap(leaf, BACKEND) if isinstance(leaf, mx.array) else leaf


def to_native(leaf: object) -> object:
    """Return the array of MLX of an Ember tensor, and anything else as it is."""
    return leaf.native if isinstance(leaf, EmberTensor) else leaf
