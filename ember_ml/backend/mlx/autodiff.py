"""Gradients, batching and compilation as MLX offers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

ENGINE = "replay"
"""MLX differentiates functions: a recorded program is run again inside `mx.vjp`."""


def pull(
    function: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The outputs and the gradients of the primals."""
    return mx.vjp(function, list(primals), list(cotangents))


def jvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """The outputs and their change along the tangents."""
    return mx.jvp(function, list(primals), list(tangents))


def vmap(function: Callable[..., Any], in_axes: Any, out_axes: Any) -> Callable[..., Any]:
    """The function over a new axis of its arguments."""
    return mx.vmap(function, in_axes, out_axes)


def compile(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function compiled."""
    return mx.compile(function, **options)
