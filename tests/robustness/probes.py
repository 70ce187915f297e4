"""Unusual and invalid calls of every op, derived from the conformance table and the declarations.

A probe changes one argument of a row of the table: another shape (0-d, empty, one axis more or
fewer, another length), another dtype, an axis that does not exist, a number of the wrong kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.op import OPS
from ember_ml._core.tensor import EmberTensor
from tests.conformance import cases as cases
from tests.conformance.table import Case, Sample, rows_by_op

Arguments = dict[str, Any]
ROW = "as in the table"
STORED = "stored as"


class Probe(NamedTuple):
    """A call, with host arrays for its tensors; `is_row` if it is a row of the table."""

    key: str
    label: str
    arguments: Arguments
    is_row: bool


def _first_rows(key: str, count: int) -> list[Case]:
    """Return the first rows of an op with different sets of arguments, those with values first."""
    rows: dict[Any, Case] = {}
    for row in rows_by_op()[key]:
        if "float32" in row.dtypes or "int32" in row.dtypes or "complex64" in row.dtypes:
            filled = all(0 not in part.shape for part in row.inputs if isinstance(part, Sample))
            rows.setdefault((not filled, len(row.inputs), tuple(row.kwargs)), row)
    return [rows[kind] for kind in sorted(rows)][:count]


def _dtype(row: Case) -> str:
    return next(name for name in ("float32", "int32", "complex64") if name in row.dtypes)


def _arguments(row: Case) -> Arguments:
    """Return the arguments of a row by name, with NumPy arrays as tensors."""
    rng, dtype = row.rng(), _dtype(row)

    def draw(part: Any) -> Any:
        if isinstance(part, list):
            return [draw(inner) for inner in part]
        return part.draw(rng, dtype) if isinstance(part, Sample) else part

    inputs = [draw(part) for part in row.inputs]
    bound = OPS[row.key].signature.bind(*inputs, **row.kwargs)
    return dict(bound.arguments)


def _shapes(array: Any) -> Iterator[tuple[str, Any]]:
    """Yield arrays of other shapes, by label."""
    yield "0-d", np.asarray(array.reshape(-1)[:1].sum(dtype=array.dtype))
    yield "empty vector", array.reshape(-1)[:0]
    yield "extra axis", array[None]
    if array.ndim:
        yield "fewer axes", np.zeros(array.shape[1:], array.dtype) if not len(array) else array[0]
        yield "longer", np.concatenate([array, array[:1]], axis=0)
        yield "first axis empty", array[:0]
    if array.ndim > 1:
        yield "longer last", np.concatenate([array, array[..., :1]], axis=-1)
        yield "last axis empty", array[..., :0]


def _dtypes(array: Any) -> Iterator[tuple[str, Any]]:
    for name in ("bool", "int32", "uint8", "float16", "float32", "complex64"):
        if array.dtype != name and not (array.dtype.kind == "c" and name != "bool"):
            with np.errstate(all="ignore"):
                cast = array.astype(name)
            yield name, cast


def _numbers(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield other values of a non-tensor parameter."""
    if name in ("axis", "axes", "axis1", "axis2", "source", "destination"):
        for other in (0, -1, 7, -7, (0, 0), (0, 7), 0.5, "a", None):
            yield repr(other), other
    elif type(value) is bool or value is None or name in ("dtype", "device", "seed"):
        return
    elif type(value) is int:
        for number in (-1, 0, 9, 1.5, "a", None):
            yield repr(number), number
    elif type(value) is float:
        for text in (-1.0, 0.0, float("nan"), "a", None, 1j):
            yield repr(text), text
    elif isinstance(value, str):
        yield "unknown", "nothing"
        yield "number", 3
    elif isinstance(value, (tuple, list)) and all(type(part) is int for part in value):
        for other in ((), (-1,), (*value, 2), (1.5,) * len(value), -3, "a"):
            yield repr(other), other


def _variants(key: str, arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    yield ROW, arguments
    parameters = OPS[key].signature.parameters
    for name in parameters:
        value = arguments.get(name, parameters[name].default)
        if isinstance(value, np.ndarray):
            for label, array in (*_shapes(value), *_dtypes(value)):
                yield f"{name}: {label}", {**arguments, name: array}
        elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            for label, array in (*_shapes(value[0]), *_dtypes(value[0])):
                yield f"{name}[0]: {label}", {**arguments, name: [array, *value[1:]]}
        else:
            for label, other in _numbers(name, value):
                yield f"{name}={label}", {**arguments, name: other}


def probes(key: str, rows: int = 2) -> list[Probe]:
    """Return the probes of an op.

    Args:
        key: Op, as in `OPS`.
        rows: Number of rows of the conformance table to start from.
    """
    out: dict[str, Probe] = {}
    for at, row in enumerate(_first_rows(key, rows)):
        for label, arguments in _variants(key, _arguments(row)):
            text = f"{row.label}, {label}"
            out.setdefault(f"{at} {label}", Probe(key, text, arguments, label == ROW))
    return list(out.values())


def _tensors(value: Any) -> Any:
    if isinstance(value, list):
        return [_tensors(part) for part in value]
    return convert_to_tensor(value) if isinstance(value, np.ndarray) else value


def _result(value: Any) -> Any:
    """Return the shapes and dtypes of the results, computed first: a lazy backend fails late."""
    if isinstance(value, (tuple, list)):
        return [_result(part) for part in value]
    if not isinstance(value, EmberTensor):
        return type(value).__name__
    stored = value.numpy().dtype.name
    text = f"{value.dtype}{list(value.shape)}"
    return text if stored == value.dtype else f"{text}, {STORED} {stored}"


def call(key: str, arguments: Arguments) -> Any:
    """Call an op with arguments by name, with tensors of the active backend for NumPy arrays."""
    op = OPS[key]
    names = list(op.signature.parameters)[: len(op.roles)]
    named = {name: _tensors(value) for name, value in arguments.items()}
    positional = []
    while names and names[0] in named:
        positional.append(named.pop(names.pop(0)))
    with np.errstate(all="ignore"):
        return op.function(*positional, **named)


def outcome(probe: Probe) -> Any:
    """Return the exception's type, or the shapes and dtypes of the results."""
    try:
        return _result(call(probe.key, probe.arguments))
    except Exception as error:
        return type(error).__name__
