"""Functions with custom gradients on MLX, also under `mx.vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import mlx.core as mx

Outputs: TypeAlias = "mx.array | tuple[mx.array, ...]"
Pullback = Callable[..., Sequence[mx.array]]


def attach_vjp(function: Callable[..., Outputs], pullback: Pullback) -> Callable[..., Outputs]:
    """Return the function with the gradients `pullback(primals, cotangents, outputs)`.

    MLX treats the arrays that the two functions close over as constants, and under `mx.vmap` as
    arrays that are not batched: pass all arrays as arguments.
    """
    wrapped = mx.custom_function(function)

    def vjp(
        primals: mx.array | Sequence[mx.array], cotangents: Outputs, outputs: Outputs
    ) -> Outputs:
        single = not isinstance(primals, (list, tuple))
        grads = pullback([primals] if single else primals, cotangents, outputs)
        return grads[0] if single else tuple(grads)

    def jvp(primals: Sequence[mx.array], tangents: Sequence[mx.array]) -> None:
        raise ValueError("a function with a custom VJP has no jvp")

    def vmap(
        inputs: mx.array | Sequence[mx.array], axes: int | Sequence[int | None]
    ) -> tuple[Outputs, int | tuple[int, ...]]:
        given = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        places = (axes,) if isinstance(axes, int) else tuple(axes)
        outputs = _batched(function, pullback, places)(*given)
        return outputs, (0,) * len(outputs) if isinstance(outputs, tuple) else 0

    wrapped.vjp(vjp)
    wrapped.jvp(jvp)
    wrapped.vmap(vmap)  # MLX would batch the function without its gradient
    return wrapped


def _batched(
    function: Callable[..., Outputs], pullback: Pullback, axes: tuple[int | None, ...]
) -> Callable[..., Outputs]:
    """Return the function with a batch axis, whose gradients are those of each example."""

    def gradients(
        primals: Sequence[mx.array], cotangents: Outputs, outputs: Outputs
    ) -> list[mx.array]:
        many = isinstance(outputs, tuple)
        given = [
            *primals,
            *(cotangents if many else [cotangents]),
            *(outputs if many else [outputs]),
        ]
        count = len(primals)

        def example(*arrays: mx.array) -> tuple[mx.array, ...]:
            rest = arrays[count:]
            half = len(rest) // 2
            ends = (rest[:half], rest[half:]) if many else (rest[0], rest[1])
            return tuple(pullback(list(arrays[:count]), *ends))

        grads = _mapped(example, (*axes, *[0] * (len(given) - count)))(*given)
        return [
            g.sum(0) if axis is None else mx.moveaxis(g, 0, axis)
            for g, axis in zip(grads, axes, strict=True)
        ]

    return attach_vjp(_mapped(function, axes), gradients)


def _mapped(
    function: Callable[..., Outputs], axes: tuple[int | None, ...]
) -> Callable[..., Outputs]:
    """Return the function mapped over the axes, example by example if MLX cannot batch it."""

    def mapped(*arrays: mx.array) -> Outputs:
        try:
            return mx.vmap(function, axes, 0)(*arrays)
        except ValueError as error:
            if "vmap" not in str(error):
                raise
        size = next(x.shape[at] for x, at in zip(arrays, axes, strict=True) if at is not None)
        rows = [
            function(
                *[
                    x if at is None else mx.take(x, row, at)
                    for x, at in zip(arrays, axes, strict=True)
                ]
            )
            for row in range(size)
        ]
        if isinstance(rows[0], mx.array):
            return mx.stack(rows)
        return tuple(mx.stack(column) for column in zip(*rows, strict=True))

    return mapped
