"""Counters of a metric: named tensors, their sums, and their conversion to plain data."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, TypeAlias

from ember_ml import ops
from ember_ml._core import runtime, tree
from ember_ml._core.convert import as_dtype, convert_to_tensor
from ember_ml._core.dtype import EmberDType, float32
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor

State: TypeAlias = dict[str, Tensor]
"""Counters by name."""

Values: TypeAlias = Mapping[str, Any]
"""Counters as Python numbers or nested lists; their depth depends on the metric."""

ERROR_SUFFIX = ".lost"
"""Suffix of the counter that holds the rounding error of a floating-point sum."""

FLUSH_EVERY = 16
"""Number of batches after which a lazy backend evaluates the counters."""


def add(first: State, second: State) -> State:
    """Return the sums of the counters of two states.

    Floating-point sums are compensated: some devices have float32 only, in which a plain sum
    over a million batches drifts.

    Args:
        first: Counters of the first set of examples.
        second: Counters of the second set.
    """
    out: State = {}
    for name in (name for name in second if not name.endswith(ERROR_SUFFIX)):
        x, y = first[name], second[name]
        total = out[name] = x + y
        if total.dtype.is_floating:
            added = total - x
            error = (x - (total - added)) + (y - added)
            out[name + ERROR_SUFFIX] = error + _error(first, name) + _error(second, name)
    return out


def _error(state: State, name: str) -> Tensor | float:
    return state.get(name + ERROR_SUFFIX, 0.0)


def moved(state: State, backend: str) -> State:
    """Return the state on a backend; float64 becomes float32 if the backend lacks it.

    Args:
        state: Counters.
        backend: Name of the backend.
    """
    return {name: x if x.backend == backend else _move(x, backend) for name, x in state.items()}


def _move(x: Tensor, backend: str) -> Tensor:
    return convert_to_tensor(x, dtype=_supported(x.dtype.name, backend)).to_backend(backend)


def _supported(dtype: str, backend: str) -> EmberDType:
    runtime.load(backend)
    wanted = as_dtype(dtype)
    return wanted if wanted.name in runtime.NATIVE[backend] else float32


def check_shapes(metric: str, first: State, second: State) -> None:
    """Raise a ShapeError if the counters of two states differ in shape.

    Args:
        metric: Name of the metric in the error.
        first: Counters so far.
        second: Counters of the next batch.
    """
    for name, x in first.items():
        if name in second and second[name].shape != x.shape:
            raise ShapeError(
                f"{metric}: the counters of this batch have shape {second[name].shape}, those "
                f"before {x.shape}; the number of classes or outputs must not change"
            )


def values(state: State) -> Values:
    """Return the counters as Python numbers or nested lists.

    Args:
        state: Counters.
    """
    plain = {name: x.tolist() for name, x in state.items()}
    for name in [name for name in plain if name.endswith(ERROR_SUFFIX)]:
        total = name.removesuffix(ERROR_SUFFIX)
        plain[total] = tree.map_leaves(operator.add, plain[total], plain.pop(name))
    return plain


def to_plain(state: State) -> dict[str, dict[str, object]]:
    """Return the dtype and the value of each counter, as plain data for JSON.

    Args:
        state: Counters.
    """
    return {name: {"dtype": x.dtype.name, "value": x.tolist()} for name, x in state.items()}


def from_plain(metric: str, plain: object) -> State:
    """Return the counters of a result of `to_plain`, on the active backend.

    Args:
        metric: Name of the metric in errors.
        plain: Result of `to_plain`.
    """
    backend = runtime.active()
    try:
        if not isinstance(plain, Mapping):
            raise TypeError
        return {
            name: convert_to_tensor(part["value"], dtype=_supported(part["dtype"], backend))
            for name, part in plain.items()
        }
    except (KeyError, TypeError, AttributeError):
        raise ArgumentError(
            f"{metric}.load_state_dict: expected the result of state_dict, not {plain!r:.60}"
        ) from None


def flush(state: State) -> None:
    """Evaluate the counters, so that a lazy backend releases the batches they depend on.

    Args:
        state: Counters.
    """
    ops.synchronize(*state.values())
