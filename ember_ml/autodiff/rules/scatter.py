"""Values gathered into slots by index, and the values of a slot combined."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand
from ember_ml.autodiff.rules._shared import conj


def _spread(x: Any, ids: Any) -> Any:
    """For each value, what x holds for its segment."""
    return ops.take(x, ids, axis=0)


def _of_mean(g: Any, out: Any, data: Any, ids: Any) -> Any:
    shape = (-1,) + (1,) * (data.ndim - 1)
    ones = ops.ones_like(ids, dtype=ops.real(data).dtype)
    counts = ops.segment_sum(ones, ids, out.shape[0])
    return _spread(g / ops.reshape(ops.maximum(counts, 1.0), shape), ids)


def _of_product(g: Any, out: Any, data: Any, ids: Any) -> Any:
    """The product of a segment's other values, found without a division by zero."""
    is_zero = data == 0.0
    regular = ops.where(is_zero, 1.0, data)
    zeros = ops.segment_sum(ops.astype(is_zero, data.dtype), ids, out.shape[0])
    rest = ops.segment_prod(regular, ids, out.shape[0])
    alone = ops.where(zeros == 1.0, rest, 0.0)
    others = ops.where(is_zero, _spread(alone, ids), _spread(out, ids) / regular)
    return _spread(g, ids) * conj(others)


def _of_extreme(g: Any, out: Any, data: Any, ids: Any) -> Any:
    """Values that are equally extreme share the gradient."""
    chosen = ops.astype(data == _spread(out, ids), data.dtype)
    counts = ops.maximum(ops.segment_sum(chosen, ids, out.shape[0]), 1.0)
    return _spread(g / counts, ids) * chosen


by_operand(
    ops.segment_sum,
    data=lambda g, out, data, segment_ids, num_segments=None: _spread(g, segment_ids),
)
by_operand(
    ops.segment_mean,
    data=lambda g, out, data, segment_ids, num_segments=None: _of_mean(g, out, data, segment_ids),
)
by_operand(
    ops.segment_prod,
    data=lambda g, out, data, segment_ids, num_segments=None: _of_product(
        g, out, data, segment_ids
    ),
)
by_operand(
    ops.segment_max,
    data=lambda g, out, data, segment_ids, num_segments=None: _of_extreme(
        g, out, data, segment_ids
    ),
)
by_operand(
    ops.segment_min,
    data=lambda g, out, data, segment_ids, num_segments=None: _of_extreme(
        g, out, data, segment_ids
    ),
)
