"""Counters of a metric: named tensors, their sum, and conversion to plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.convert import as_dtype, convert_to_tensor
from ember_ml._core.dtype import EmberDType, float32
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor

State: TypeAlias = dict[str, Tensor]
LOST = ".lost"
"""Suffix for the name of the rounding error of a sum."""


FLUSH_EVERY = 16
"""Number of batches after which a lazy backend computes the counters."""


def add(first: State, second: State) -> State:
    """Return the sums of two states, with the rounding errors of floating-point sums.

    Some devices have float32 only, in which a sum over a million batches drifts.
    """
    out: State = {}
    for name in (name for name in second if not name.endswith(LOST)):
        x, y = first[name], second[name]
        total = out[name] = x + y
        if total.dtype.is_floating:
            added = total - x
            lost = (x - (total - added)) + (y - added)
            out[name + LOST] = lost + _lost(first, name) + _lost(second, name)
    return out


def _lost(state: State, name: str) -> Any:
    return state.get(name + LOST, 0.0)


def moved(state: State, backend: str) -> State:
    """Return the state on a backend; float64 becomes float32 on backends without float64."""
    return {name: x if x.backend == backend else _placed(x, backend) for name, x in state.items()}


def _placed(x: Tensor, backend: str) -> Tensor:
    return convert_to_tensor(x, dtype=_fitting(x.dtype.name, backend)).to_backend(backend)


def _fitting(dtype: str, backend: str) -> EmberDType:
    runtime.load(backend)
    wanted = as_dtype(dtype)
    return wanted if wanted in runtime.NATIVE[backend] else float32


def check_alike(metric: str, first: State, second: State) -> None:
    """Raise a ShapeError if two states differ in the number of classes or outputs."""
    for name, x in first.items():
        if name in second and second[name].shape != x.shape:
            raise ShapeError(
                f"{metric}: the counters of this batch have shape {second[name].shape}, those "
                f"before {x.shape}; the number of classes or outputs must not change"
            )


def values(state: State) -> dict[str, Any]:
    """Return the counters as Python numbers or nested lists."""
    plain = {name: x.tolist() for name, x in state.items()}
    lost = {name: plain.pop(name + LOST) for name in list(plain) if name + LOST in plain}
    return {name: _sum(x, lost[name]) if name in lost else x for name, x in plain.items()}


def _sum(x: Any, y: Any) -> Any:
    return [_sum(a, b) for a, b in zip(x, y, strict=True)] if isinstance(x, list) else x + y


def to_plain(state: State) -> dict[str, Any]:
    """Return the state as lists and strings, to be written to a file."""
    return {name: {"dtype": x.dtype.name, "value": x.tolist()} for name, x in state.items()}


def from_plain(metric: str, plain: Mapping[str, Any]) -> State:
    """Return the state from the result of `to_plain`, on the active backend."""
    backend = runtime.active()
    try:
        return {
            name: convert_to_tensor(part["value"], dtype=_fitting(part["dtype"], backend))
            for name, part in plain.items()
        }
    except (KeyError, TypeError, AttributeError):
        raise ArgumentError(
            f"{metric}.load_state_dict: expected the result of state_dict, not {plain!r:.60}"
        ) from None


def flush(state: State) -> None:
    """Compute the counters, so that a lazy backend releases the batches they depend on."""
    ops.synchronize(*state.values())
