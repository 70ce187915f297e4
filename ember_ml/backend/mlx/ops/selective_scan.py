"""Selective scan: a Metal kernel, or a linear recurrence of all states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx import kernels
from ember_ml.backend.mlx.ops.recurrence import linear_recurrence
from ember_ml.backend.selective_scan import check

_HALVES = (mx.float16, mx.bfloat16)


def selective_scan(u, dt, a, b, c, d=None):
    check(u, dt, a, b, c, d)
    wide = [x.astype(mx.float32) if x.dtype in _HALVES else x for x in (u, dt, a, b, c)]
    skip = mx.zeros(u.shape[-1:], mx.float32) if d is None else d.astype(mx.float32)
    fits = u.size and 0 < a.shape[1] <= kernels.MAX_STATES
    scan: Callable[..., mx.array] = _scan if fits and kernels.in_use() else _plain
    return scan(*wide, skip).astype(u.dtype)


def _plain(u: mx.array, dt: mx.array, a: mx.array, b: mx.array, c: mx.array, d: Any) -> mx.array:
    decays = mx.exp(mx.expand_dims(dt, 2) * a.T)  # (batch, time, states, channels)
    update = mx.expand_dims(dt * u, 2) * mx.expand_dims(b, 3)
    states, _ = linear_recurrence(decays, update)
    return mx.sum(states * mx.expand_dims(c, 3), axis=2) + d * u


_scan = mx.custom_function(kernels.selective_scan)


@_scan.vjp
def _(primals, cotangent, output):
    return tuple(mx.vjp(_plain, list(primals), [cotangent])[1])


@_scan.jvp
def _(primals, tangents):
    given = [
        mx.zeros_like(x) if dx is None else dx for x, dx in zip(primals, tangents, strict=True)
    ]
    return mx.jvp(_plain, list(primals), given)[1][0]


@_scan.vmap
def _(inputs, axes):
    return mx.vmap(_plain, tuple(axes), 0)(*inputs), 0
