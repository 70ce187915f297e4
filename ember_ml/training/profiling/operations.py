"""Floating-point operations of native calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ember_ml._core import recording, runtime, tree
from ember_ml._core.op import Op
from ember_ml._core.tensor import wrap
from ember_ml.nn.flops import Counter, cost_of, has_own_cost

GROUPS = {
    "contraction": "matrix product",
    "nn.projection.linear": "matrix product",
    "nn.projection.embedding": "indexing and copies",
    "linearalg": "linear algebra",
    "signal": "convolution",
    "nn.attention": "attention",
    "fft": "FFT",
    "recurrence": "scan",
    "selective_scan": "scan",
    "linear_attention": "scan",
    "cumulative": "scan",
    "nn.recurrent": "scan",
    "nn.gated_cells": "scan",
    "nn.liquid_cells": "scan",
    "nn.spiking": "scan",
    "nn.normalization": "normalization",
    "nn.losses": "loss",
    "nn.classification": "loss",
    "nn.ctc": "loss",
    "reduction": "reduction",
    "random": "random numbers",
    "nn.regularization": "random numbers",
    "scatter": "indexing and copies",
    "indexing": "indexing and copies",
    "joining": "indexing and copies",
    "manipulation": "indexing and copies",
    "padding": "indexing and copies",
    "slicing": "indexing and copies",
    "sorting": "indexing and copies",
    "creation": "indexing and copies",
    "dtypes": "indexing and copies",
}
"""Key of an op, its family, or the first parts of it -> group in reports. Others: elementwise."""
ELEMENTWISE = "elementwise"


def group_of(key: str) -> str:
    """Return the group of an op in reports.

    Args:
        key: Key of the op, such as "nn.projection.linear".

    Example:
        >>> from ember_ml.training.profiling.operations import group_of
        >>> group_of("nn.projection.linear"), group_of("elementwise.add")
        ('matrix product', 'elementwise')
    """
    while key:
        if key in GROUPS:
            return GROUPS[key]
        key = key.rpartition(".")[0]
    return ELEMENTWISE


class Operations:
    """Counts the operations of native calls, once for each op and shapes.

    Args:
        backend: Backend of the arrays.
    """

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._known: dict[tuple[object, ...], float] = {}

    def count(self, op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> float:
        """Return the operations of a call, as `ember_ml.nn.flops` counts them.

        Args:
            op: The op.
            args: Arguments of its native function.
            kwargs: Keyword arguments of its native function.
            out: Result of its native function; None if it leaves the call to the op's body, whose
                ops are counted themselves.
        """
        if out is None:
            return 0.0
        signature = (op.key, _signature(args), _signature(tuple(kwargs.items())))
        known = self._known.get(signature)
        if known is None:
            known = self._known[signature] = self._count(op, args, dict(kwargs), out)
        return known

    def _count(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> float:
        given = tuple([self._wrapped(x) for x in args])
        named = {name: self._wrapped(x) for name, x in kwargs.items()}
        result = self._wrapped(out)
        draws = group_of(op.key) == "random numbers"  # a body would draw other numbers
        try:
            if has_own_cost(op) or draws:
                return cost_of(op, given, named, result)
            counter = Counter()
            with recording.only(counter):
                assert op.body is not None
                op.body(*given, **named)
            return float(counter.total)
        except Exception:  # native arguments that the op itself does not take
            return float(sum(x.size for x in tree.leaves_of(result) if hasattr(x, "size")))

    def _wrapped(self, value: Any) -> Any:
        """Return a value with its native arrays as tensors."""
        if isinstance(value, (list, tuple)):
            parts = [self._wrapped(part) for part in value]
            return parts if isinstance(value, list) else tuple(parts)
        return wrap(value, self._backend) if runtime.backend_of(value) is not None else value


def _signature(value: Any) -> object:
    """Return a key of all that determines the count: shapes, dtypes and other arguments."""
    if isinstance(value, (list, tuple)):
        return tuple([_signature(part) for part in value])
    if runtime.backend_of(value) is not None:
        return tuple(value.shape), str(value.dtype)
    return value if value.__hash__ is not None else repr(value)
