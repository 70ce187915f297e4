"""Arguments of the C kernels that split projections into heads, with rotary embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml._native.frame import Frame

Turns = tuple[Any, Any, int]
"""Cosines and sines of positions, (positions, pairs), with the same strides and contiguous pairs;
the first position of x."""


def split(frame: Frame, x: Any, turns: Turns, parts: Sequence[Any]) -> None:
    """Write queries, keys and values.

    Args:
        frame: Access to the arrays.
        x: (batch, time, features), not empty.
        turns: Cosines, sines and the first position.
        parts: Queries, keys and values, (batch, heads, time, head features). If their memory has
            time before the heads, as x has, so has the result of attention, and its heads are
            merged without a copy.
    """
    x, *strides = frame.rows(x)
    _call(frame, "ember_rotary_heads", x, strides, turns, parts)


def join(frame: Frame, turns: Turns, parts: Sequence[Any]) -> Any:
    """Return the gradient of x.

    Args:
        frame: Access to the arrays.
        turns: Cosines, sines and the first position.
        parts: Gradients of queries, keys and values, not empty.
    """
    batch, _, time, size = parts[0].shape
    features = size * sum([part.shape[1] for part in parts])
    x = frame.empty((batch, time, features))
    parts = [_with_rows(frame, part) for part in parts]
    _call(frame, "ember_rotary_heads_adjoint", x, (time * features, features), turns, parts)
    return x


def _with_rows(frame: Frame, part: Any) -> Any:
    """Return an array whose last axis is contiguous, copied if it has another layout."""
    return part if frame.strides(part)[3] == 1 else frame.copy(part, tuple(part.shape))


def _call(
    frame: Frame, name: str, x: Any, strides: Sequence[int], turns: Turns, parts: Sequence[Any]
) -> None:
    cos, sin, first = turns
    batch, _, time, size = parts[0].shape
    layouts, count = [], 0
    for part in parts:
        heads = part.shape[1]
        layouts += [heads, *frame.strides(part)[:3]]
        count += heads
    numbers = (batch, time, size // 2, *strides, first, frame.strides(cos)[0], *layouts)
    threads = frame.threads_for(batch * time * count * size)
    frame.call_arrays(name, (x, cos, sin, *parts), (*numbers, threads))
