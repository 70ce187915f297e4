"""Reading and loading the values of a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, EmberError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.nn import _traversal
from ember_ml.nn.parameter import Buffer, Variable

if TYPE_CHECKING:
    from ember_ml.nn.module import Module

T = TypeVar("T")


class StateDictError(EmberError, ValueError):
    """Values that do not fit a module.

    Attributes:
        missing: Names of the module without a value.
        unexpected: Names of values that the module does not have.
        misshaped: Name -> (shape in the module, shape of the value).
    """

    def __init__(
        self,
        owner: str,
        missing: list[str],
        unexpected: list[str],
        misshaped: dict[str, tuple[tuple[int, ...], tuple[int, ...]]],
    ) -> None:
        self.missing, self.unexpected, self.misshaped = missing, unexpected, misshaped
        lines = [f"  missing: {name}" for name in missing]
        lines += [f"  unexpected: {name}" for name in unexpected]
        lines += [
            f"  misshaped: {name} has shape {own}, the value has shape {other}"
            for name, (own, other) in misshaped.items()
        ]
        super().__init__(f"the values do not fit {owner}:\n" + "\n".join(lines))


def saved_variables(module: Module) -> dict[str, Variable]:
    """Return what is saved of a module: parameters and persistent buffers by dotted name."""
    saved: dict[str, Variable] = {}
    for name, variable in _traversal.named_variables(module):
        if name in saved:
            raise ArgumentError(
                f"{type(module).__name__}: two variables are named {name!r}; a dict key contains a "
                "dot, or a number and a string have the same text"
            )
        if not isinstance(variable, Buffer) or variable.persistent:
            saved[name] = variable
    return saved


def state_dict(module: Module) -> dict[str, Tensor]:
    """Return the current values as tensors that later training does not change."""
    return {name: variable.value() for name, variable in saved_variables(module).items()}


def load_state_dict(module: Module, state: Mapping[str, TensorLike], strict: bool) -> None:
    """Check all values, then assign all of them."""
    variables = saved_variables(module)
    values = checked_state(
        type(module).__name__,
        {name: variable.shape for name, variable in variables.items()},
        state,
        lambda name, value: convert_to_tensor(
            value, dtype=variables[name].dtype, backend=variables[name].backend
        ),
        strict,
    )
    for name, value in values.items():
        variables[name].assign(value)


def checked_state(
    owner: str,
    shapes: Mapping[str, tuple[int, ...]],
    state: Mapping[str, T],
    convert: Callable[[str, T], Tensor],
    strict: bool = True,
) -> dict[str, Tensor]:
    """Return the converted values of a state if they have the expected names and shapes.

    Args:
        owner: What the state belongs to, for the error message.
        shapes: Expected names and shapes.
        state: Name -> value.
        convert: Called as `convert(name, value)`; returns a tensor.
        strict: Whether missing and unexpected names are errors.

    Raises:
        StateDictError: If names or shapes differ.
    """
    values = {name: convert(name, state[name]) for name in shapes if name in state}
    missing = [name for name in shapes if name not in state] if strict else []
    unexpected = [name for name in state if name not in shapes] if strict else []
    misshaped = {
        name: (shapes[name], value.shape)
        for name, value in values.items()
        if value.shape != shapes[name]
    }
    if missing or unexpected or misshaped:
        raise StateDictError(owner, missing, unexpected, misshaped)
    return values
