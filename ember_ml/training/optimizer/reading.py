"""Gradients as people give them: by name, in a list, or with their parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.nn import Parameter
from ember_ml.registry.base import close_matches


def read_gradients(
    owner: str, grads: Any, names: Sequence[str], parameters: Sequence[Parameter]
) -> list[Any]:
    """The native arrays in the parameters' order, None where there is no gradient."""
    given = _listed(owner, grads, names)
    return [
        None if value is None else _array(owner, value, name, parameter)
        for value, name, parameter in zip(given, names, parameters, strict=True)
    ]


def _listed(owner: str, grads: Any, names: Sequence[str]) -> list[Any]:
    if isinstance(grads, Mapping):
        for name in grads:
            if name not in names:
                raise ArgumentError(
                    f"{owner}.step: there is no parameter {name!r}{close_matches(name, names)}"
                )
        return [grads.get(name) for name in names]
    if not isinstance(grads, Iterable):
        raise ArgumentTypeError(
            f"{owner}.step: gradients are a dict by name or a list, not {grads!r:.60}"
        )
    given = list(grads)
    if len(given) != len(names):
        raise ArgumentError(
            f"{owner}.step: there are {len(names)} parameters and {len(given)} gradients"
        )
    return given


def _array(owner: str, value: Any, name: str, parameter: Parameter) -> Any:
    made = convert_to_tensor(value, backend=parameter.backend)
    if made.shape != parameter.shape:
        raise ShapeError(
            f"{owner}.step: the parameter {name!r} has the shape {parameter.shape}, its gradient "
            f"{made.shape}"
        )
    return made._data


def by_parameter(
    owner: str, pairs: Iterable[tuple[Any, Parameter]], parameters: Sequence[Parameter]
) -> list[Any]:
    """The gradients in the parameters' order, of (gradient, parameter) pairs."""
    places = {id(parameter): at for at, parameter in enumerate(parameters)}
    grads: list[Any] = [None] * len(parameters)
    for grad, parameter in pairs:
        if id(parameter) not in places:
            raise ArgumentError(
                f"{owner}.apply_gradients: it does not train {parameter!r:.60}; give (gradient, "
                "parameter) pairs of its own parameters"
            )
        grads[places[id(parameter)]] = grad
    return grads
