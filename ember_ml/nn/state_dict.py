"""The values of a module, out and in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, EmberError
from ember_ml._core.tensor import Tensor
from ember_ml.nn import _traversal
from ember_ml.nn.parameter import Buffer, Variable

if TYPE_CHECKING:
    from ember_ml.nn.module import Module


class StateDictError(EmberError, ValueError):
    """Values that do not fit a module.

    Attributes:
        missing: names the module has and the values lack.
        unexpected: names the module does not have.
        misshaped: name -> (the module's shape, the value's shape).
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
            f"  misshaped: {name} is {mine}, the value {given}"
            for name, (mine, given) in misshaped.items()
        ]
        super().__init__(f"the values do not fit {owner}:\n" + "\n".join(lines))


def saved_variables(module: Module) -> dict[str, Variable]:
    """What is saved of a module: parameters and persistent buffers."""
    found: dict[str, Variable] = {}
    for name, variable in _traversal.named_variables(module):
        if name in found:
            raise ArgumentError(
                f"{type(module).__name__}: two variables are named {name!r}; keys of dicts with "
                "dots in them, or a number and its text, run together"
            )
        if not isinstance(variable, Buffer) or variable.persistent:
            found[name] = variable
    return found


def state_dict(module: Module) -> dict[str, Tensor]:
    """The values now, as tensors that later training leaves alone."""
    return {name: variable.value() for name, variable in saved_variables(module).items()}


def load_state_dict(module: Module, state: Mapping[str, Any], strict: bool) -> None:
    """Check all, then take over all."""
    mine = saved_variables(module)
    values = checked_state(
        type(module).__name__,
        {name: variable.shape for name, variable in mine.items()},
        state,
        lambda name, value: convert_to_tensor(
            value, dtype=mine[name].dtype, backend=mine[name].backend
        ),
        strict,
    )
    for name, value in values.items():
        mine[name].assign(value)


def checked_state(
    owner: str,
    shapes: Mapping[str, tuple[int, ...]],
    state: Mapping[str, Any],
    convert: Callable[[str, Any], Tensor],
    strict: bool = True,
) -> dict[str, Tensor]:
    """The values of a state, converted, if they fit these names and shapes; else an error.

    Args:
        owner: whose state it is to be.
        shapes: what it has.
        state: what is given.
        convert: (name, given value) -> tensor.
        strict: whether names that are missing or unexpected are an error.
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
