"""Functions with custom gradients on MLX, also under `mx.vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mlx.core as mx

Outputs = mx.array | tuple[mx.array, ...]
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
        if not isinstance(inputs, (list, tuple)):
            inputs, axes = [inputs], [axes]
        outputs = _batched(function, pullback, tuple(axes))(*inputs)
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

        grads = mx.vmap(example, (*axes, *[0] * (len(given) - count)), 0)(*given)
        return [
            g.sum(0) if axis is None else mx.moveaxis(g, 0, axis)
            for g, axis in zip(grads, axes, strict=True)
        ]

    return attach_vjp(mx.vmap(function, axes, 0), gradients)
