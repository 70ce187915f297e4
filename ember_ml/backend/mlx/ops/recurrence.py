"""Linear recurrences in chunks, and chunks of chunks, so that the number of ops stays small."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx import kernels
from ember_ml.backend.recurrences import geometry

_HALVES = (mx.float16, mx.bfloat16)
_CHUNK = 16


def linear_recurrence(a, b, h0=None, axis=1, reverse=False):
    shape, state, axis = geometry(a.shape, b.shape, None if h0 is None else h0.shape, axis)
    dtype = b.dtype
    h0 = mx.zeros(state, dtype) if h0 is None else mx.broadcast_to(h0, state)
    a, b = mx.broadcast_to(a, shape), mx.broadcast_to(b, shape)
    if shape[axis] == 0:
        return mx.array(b), mx.array(h0)
    if dtype in _HALVES:
        a, b, h0 = a.astype(mx.float32), b.astype(mx.float32), h0.astype(mx.float32)
    h, final = _recurrence(axis, reverse)(a, b, h0)
    return h.astype(dtype), final.astype(dtype)


def _states(a: mx.array, b: mx.array, state: mx.array, axis: int, reverse: bool) -> mx.array:
    """Return the state after each step."""
    if b.dtype == mx.float32 and b.size and kernels.in_use():
        return kernels.linear_recurrence(a, b, state, axis, reverse)
    length = b.shape[axis]
    if length <= _CHUNK:
        return mx.stack(_walk(_steps(a, axis), _steps(b, axis), state, reverse), axis)
    missing = -length % _CHUNK
    if missing:
        a, b = _padded(a, axis, missing, 1), _padded(b, axis, missing, 0)
    shape = (*b.shape[:axis], b.shape[axis] // _CHUNK, _CHUNK, *b.shape[axis + 1 :])
    # the steps of all chunks in parallel, each contiguous in memory
    factors, entries = (_steps(x.reshape(shape), axis + 1) for x in (a, b))
    local = _walk(factors, entries, mx.zeros_like(entries[0]), reverse)[0 if reverse else -1]
    product = functools.reduce(mx.multiply, factors)
    leaving = _states(product, local, state, axis, reverse)
    entering = _previous(leaving, state, axis, reverse)
    out = mx.stack(_walk(factors, entries, entering, reverse), axis + 1).reshape(b.shape)
    return _part(out, axis, 0, length) if missing else out


def _steps(x: mx.array, axis: int) -> list[Any]:
    x = mx.contiguous(mx.moveaxis(x, axis, 0))
    return [x[at] for at in range(x.shape[0])]


def _walk(factors: list[Any], entries: list[Any], state: mx.array, reverse: bool) -> list[Any]:
    """Return the states in time order, for either direction."""
    outputs = []
    for a, b in list(zip(factors, entries, strict=True))[:: -1 if reverse else 1]:
        state = a * state + b
        outputs.append(state)
    return outputs[:: -1 if reverse else 1]


def _padded(x: mx.array, axis: int, count: int, value: int) -> mx.array:
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, count)
    return mx.pad(x, widths, constant_values=value)


def _part(x: mx.array, axis: int, start: int | None, stop: int | None) -> mx.array:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _at(x: mx.array, axis: int, place: int) -> mx.array:
    return x[(slice(None),) * axis + (place,)]


def _previous(h: mx.array, h0: Any, axis: int, reverse: bool) -> mx.array:
    """Return the state before each step."""
    before = mx.expand_dims(h0, axis)
    if reverse:
        return mx.concatenate([_part(h, axis, 1, None), before], axis)
    return mx.concatenate([before, _part(h, axis, 0, -1)], axis)


@functools.cache
def _recurrence(axis: int, reverse: bool) -> mx.array:
    """Return the recurrence as a function with derivatives that are recurrences too."""
    last, first = (0, -1) if reverse else (-1, 0)

    def forward(a: mx.array, b: mx.array, h0: Any) -> tuple[Any, Any]:
        h = _states(a, b, h0, axis, reverse)
        return h, _at(h, axis, last)

    def vjp(primals: Any, cotangents: Any, outputs: Any) -> tuple[mx.array, ...]:
        a, _, h0 = primals
        factors = mx.conjugate(a)
        one = mx.ones_like(h0)
        late = _previous(factors, one, axis, not reverse)
        into, start = _recurrence(axis, not reverse)(late, *cotangents)
        previous = mx.conjugate(_previous(outputs[0], h0, axis, reverse))
        return into * previous, into, start * _at(factors, axis, first)

    def jvp(primals: Any, tangents: Any) -> mx.array:
        a, b, h0 = primals
        da, db, dh0 = (
            mx.zeros_like(x) if dx is None else dx for x, dx in zip(primals, tangents, strict=True)
        )
        h, _ = recurrence(a, b, h0)
        return recurrence(a, db + da * _previous(h, h0, axis, reverse), dh0)

    def vmap(
        inputs: Sequence[mx.array], axes: Sequence[int | None]
    ) -> tuple[tuple[mx.array, ...], tuple[int, ...]]:
        size = next(x.shape[at] for x, at in zip(inputs, axes, strict=True) if at is not None)
        batched = (
            mx.broadcast_to(x, (size, *x.shape)) if at is None else mx.moveaxis(x, at, 0)
            for x, at in zip(inputs, axes, strict=True)
        )
        return _recurrence(axis + 1, reverse)(*batched), (0, 0)

    recurrence = mx.custom_function(forward)
    recurrence.vjp(vjp)
    recurrence.jvp(jvp)
    recurrence.vmap(vmap)
    return recurrence
