"""Reading and loading the values of a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from ember_ml._core import runtime
from ember_ml._core.convert import as_dtype, convert_to_tensor
from ember_ml._core.dtype import DTYPES, EmberDType
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, EmberError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike, rebind, wrap
from ember_ml.nn import _traversal
from ember_ml.nn.parameter import Buffer, Variable

if TYPE_CHECKING:
    from ember_ml._core.safetensors_files import TensorInfo
    from ember_ml.nn.module import Module

T = TypeVar("T")
Shape = tuple[int, ...]


class StateDictError(EmberError, ValueError):
    """Values that do not fit a module.

    Attributes:
        missing: Names of the module without a value.
        unexpected: Names of values that the module does not have.
        misshaped: Name -> (shape in the module, shape of the value).
        invalid: Name -> what else is wrong with the value.
    """

    def __init__(
        self,
        owner: str,
        missing: list[str],
        unexpected: list[str],
        misshaped: dict[str, tuple[Shape, Shape]],
        invalid: Mapping[str, str] | None = None,
    ) -> None:
        self.missing, self.unexpected, self.misshaped = missing, unexpected, misshaped
        self.invalid = dict(invalid or {})
        lines = [f"  missing: {name}" for name in missing]
        lines += [f"  unexpected: {name}" for name in unexpected]
        lines += [
            f"  misshaped: {name} has shape {own}, the value has shape {other}"
            for name, (own, other) in misshaped.items()
        ]
        lines += [f"  invalid: {name} {reason}" for name, reason in self.invalid.items()]
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
        lambda name, value: _converted(variables[name], value),
        strict,
    )
    replace_values(variables, values)


def _converted(variable: Variable, value: TensorLike) -> Tensor:
    """Return a value in the dtype and on the backend of a variable, as a new array."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None and not _fits(as_dtype(dtype), variable.dtype):
        raise ArgumentTypeError(f"has dtype {variable.dtype}, the value has {as_dtype(dtype)}")
    converted = convert_to_tensor(value, dtype=variable.dtype, backend=variable.backend)
    if isinstance(value, EmberTensor):  # tapes identify values by their array: use a new one
        module = runtime.LOADED[variable.backend]
        return wrap(module.adopt(converted.native), variable.backend)
    return converted


def _fits(dtype: EmberDType, target: EmberDType) -> bool:
    """Return whether a cast between two dtypes loses nothing but precision."""
    return _KINDS.index(_kind(dtype)) <= _KINDS.index(_kind(target))


def replace_values(variables: Mapping[str, Variable], values: Mapping[str, Tensor]) -> None:
    """Assign new values of the same shapes; variables take the dtype and backend of the values.

    Args:
        variables: Name -> variable.
        values: Name -> value, for some or all of the names.
    """
    rebind([variables[name] for name in values], values.values())


def check_file(
    owner: str,
    variables: Mapping[str, Variable],
    tensors: Mapping[str, TensorInfo],
    shapes: Mapping[str, Shape] | None = None,
) -> None:
    """Raise a StateDictError if the tensors of a file do not fit the variables of a module.

    Args:
        owner: Name of the module's class, for the error message.
        variables: Name -> variable.
        tensors: Name -> description of the tensor in the file.
        shapes: Expected names and shapes, if variables have parts of the tensors.
    """
    own = {name: variable.shape for name, variable in variables.items()}
    shapes = own if shapes is None else shapes
    invalid = {
        name: f"has dtype {variable.dtype}, the file has {tensors[name].dtype}"
        for name, variable in variables.items()
        if name in tensors and _kind(DTYPES[tensors[name].dtype]) != _kind(variable.dtype)
    }
    _check(owner, shapes, {name: info.shape for name, info in tensors.items()}, invalid)


def checked_state(
    owner: str,
    shapes: Mapping[str, Shape],
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
        StateDictError: If names or shapes differ, or a value cannot be converted.
    """
    if not isinstance(state, Mapping):
        raise ArgumentTypeError(
            f"{owner}.load_state_dict: state must map names to values, not {state!r:.60}"
        )
    values: dict[str, Tensor] = {}
    invalid: dict[str, str] = {}
    for name in shapes:
        if name in state:
            try:
                values[name] = convert(name, state[name])
            except (TypeError, ValueError, OverflowError) as error:
                invalid[name] = str(error)
    given = {name: values[name].shape if name in values else shapes.get(name) for name in state}
    _check(owner, shapes, given, invalid, strict)
    return values


def _check(
    owner: str,
    shapes: Mapping[str, Shape],
    given: Mapping[str, Shape | None],
    invalid: Mapping[str, str],
    strict: bool = True,
) -> None:
    """Raise a StateDictError that lists all differences."""
    missing = [name for name in shapes if name not in given] if strict else []
    unexpected = [str(name) for name in given if name not in shapes] if strict else []
    misshaped = {
        name: (own, other)
        for name, own in shapes.items()
        if (other := given.get(name)) is not None and other != own
    }
    if missing or unexpected or misshaped or invalid:
        raise StateDictError(owner, missing, unexpected, misshaped, invalid)


_KINDS = ("bool", "int", "float", "complex")


def _kind(dtype: EmberDType) -> str:
    return "int" if dtype.is_integer else dtype.kind
