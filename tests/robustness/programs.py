"""Random differentiable programs, and random nestings of transforms."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ember_ml import GradientTape, ops
from ember_ml._core.tensor import EmberTensor as Tensor
from ember_ml.autodiff import (
    checkpoint,
    compile,
    custom_gradient,
    grad,
    hessian,
    jacobian,
    jvp,
    vjp,
    vmap,
)

SHAPE = (3, 4)
Step: TypeAlias = Callable[[Tensor], Tensor]
Layer: TypeAlias = Callable[[Step], Step]


def constant(x: Tensor, salt: int, shape: Sequence[int] = SHAPE) -> Tensor:
    """Return fixed numbers between 0.3 and 1.2 in the dtype of x."""
    angles = ops.arange(1, math.prod(shape) + 1, dtype=x.dtype) * (salt + 1.7)
    return ops.reshape(0.75 + 0.45 * ops.sin(angles), tuple(shape))


def written(x: Tensor, key: object, value: Callable[[Tensor], Tensor]) -> Tensor:
    """Return a copy of x with `value(x)` at an index."""
    y = x * 1.0
    y[key] = value(x)
    return y


def matrix(x: Tensor) -> Tensor:
    """Return a well-conditioned symmetric matrix."""
    return ops.matmul(x, ops.matrix_transpose(x)) + 3.0 * ops.eye(3, dtype=x.dtype)


@custom_gradient
def clipped(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return sin(x), with a gradient of its own that depends on x."""
    return ops.sin(x), lambda g: g * ops.exp(-x * x)


def scanned(x: Tensor) -> Tensor:
    def step(h: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        h = ops.tanh(h * row + 0.1)
        return h, h * row

    return ops.scan(step, x[0], x)[1]


def convolved(x: Tensor, stride: int) -> Tensor:
    out = ops.conv1d(x[None], constant(x, 3, (3, 3, 2)), stride=stride, padding=1)[0]
    return x * ops.sum(ops.sin(out), axis=1, keepdims=True)


STEPS: dict[str, Step] = {
    "sin": lambda x: ops.sin(x) + 0.5,
    "gauss": lambda x: ops.exp(-x * x) + 0.2 * x,
    "divide": lambda x: x / (1.0 + x * x),
    "softmax": lambda x: ops.softmax(x, axis=-1) + x,
    "layer_norm": lambda x: ops.layer_norm(x, constant(x, 1, (4,)), eps=0.1),
    "where": lambda x: ops.where(x > 0.7, ops.sin(x), x * x + 0.3),
    "slice write": lambda x: written(x, slice(1, None), lambda x: ops.sin(x[:-1])),
    "row write": lambda x: written(x, 0, lambda x: x[1] * x[2]),
    "repeated write": lambda x: written(x, [0, 0, 2], ops.cos),
    "column write": lambda x: written(x, (slice(None), [1, 1]), lambda x: ops.sin(x[:, :2])),
    "places write": lambda x: written(x, ([0, 0, 1], [1, 1, 2]), lambda x: ops.sin(x[:, 0])),
    "index add": lambda x: ops.index_add(x, [0, 0, 2], ops.sin(x)),
    "update slice": lambda x: ops.dynamic_update_slice(x, ops.sin(x[:2, :2]), (1, 1)),
    "gather": lambda x: ops.take(x, [2, 0, 2], axis=0) * x,
    "two gathers": lambda x: x * x[[0, 1, 1], [3, 1, 1]][:, None],
    "sorted": lambda x: ops.take_along_axis(x, ops.argsort(x, axis=1), axis=1) * x,
    "put": lambda x: ops.put_along_axis(x, ops.argmax(x, axis=1, keepdims=True), 0.5 * x[:, :1], 1),
    "segment sum": lambda x: x + ops.take(ops.segment_sum(ops.sin(x), [0, 0, 1], 2), [1, 0, 1], 0),
    "conv": lambda x: convolved(x, 1),
    "strided conv": lambda x: convolved(x, 2),
    "scan": scanned,
    "recurrence": lambda x: ops.linear_recurrence(ops.sin(x), x, axis=0)[0],
    "cumsum": lambda x: ops.cumsum(x, axis=1) * 0.4,
    "cumprod": lambda x: ops.cumprod(x, axis=1) + x,
    "logcumsumexp": lambda x: ops.logcumsumexp(x, axis=0),
    "centered": lambda x: x - ops.mean(x, axis=0) + 0.5,
    "scaled": lambda x: x * ops.std(x, axis=1, keepdims=True),
    "logsumexp": lambda x: x * ops.logsumexp(x, axis=0),
    "prod": lambda x: x + ops.prod(x, axis=1, keepdims=True),
    "max": lambda x: x * ops.max(x, axis=0),
    "solve": lambda x: ops.linearalg.solve(matrix(x), x),
    "inv": lambda x: ops.matmul(ops.linearalg.inv(matrix(x)), x * x),
    "det": lambda x: x * (ops.linearalg.det(matrix(x)) / 50.0),
    "slogdet": lambda x: x * ops.linearalg.slogdet(matrix(x))[1] / 3.0,
    "cholesky": lambda x: ops.matmul(ops.linearalg.cholesky(matrix(x)), x) / 3.0,
    "fft": lambda x: ops.real(ops.fft.ifft(ops.fft.fft(x) * ops.fft.fft(ops.sin(x)))) / 3.0,
    "custom gradient": clipped,
    "checkpoint": checkpoint(lambda x: ops.tanh(ops.exp(-x) * x) + x),
}


def program(names: Sequence[str]) -> Step:
    """Return the steps one after the other, reduced to a scalar."""

    def run(x: Tensor) -> Tensor:
        for name in names:
            x = STEPS[name](x)
        return ops.sum(ops.sin(x) * constant(x, 9))

    return run


def _dot(x: Tensor, salt: int) -> Tensor:
    return ops.sum(x * constant(x, salt, x.shape))


def taped(f: Step) -> Step:
    """Return the gradient of f, by a tape."""

    def gradient(x: Tensor) -> Tensor:
        with GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x, unconnected_gradients="zero")

    return gradient


def _pulled(f: Step) -> Step:
    return lambda x: vjp(f, x)[1](constant(x, 6, ()))[0]


def _mapped(f: Step) -> Step:
    return lambda x: ops.sum(vmap(f)(ops.stack([x, 0.9 * x])))


LAYERS: dict[str, Layer] = {
    "grad": lambda f: lambda x: _dot(grad(f)(x), 1),
    "jvp": lambda f: lambda x: jvp(f, (x,), (constant(x, 2),))[1],
    "vjp": lambda f: lambda x: _dot(_pulled(f)(x), 3),
    "tape": lambda f: lambda x: _dot(taped(f)(x), 4),
    "jacobian": lambda f: lambda x: _dot(jacobian(f)(x), 5),
    "forward jacobian": lambda f: lambda x: _dot(jacobian(f, mode="forward")(x), 5),
    "checkpoint": checkpoint,
    "vmap": _mapped,
}
"""Transforms of a scalar function to another."""
LAST: dict[str, Layer] = {
    "grad": grad,
    "tape": taped,
    "vjp": _pulled,
    "hessian": hessian,
    "forward jacobian": lambda f: jacobian(f, mode="forward"),
    "vmap of grad": lambda f: lambda x: vmap(grad(f))(ops.stack([x, 0.9 * x])),
    "vmap of tape": lambda f: lambda x: vmap(taped(f))(ops.stack([x, 0.9 * x])),
}
"""Outermost transforms of a scalar function to its derivatives."""


def drawn(seed: int, compiled: bool) -> tuple[str, Callable[[dict[str, object]], Step]]:
    """Return the name of a random nested program, and the program for options of the compiler."""
    rng = random.Random(seed)
    steps = rng.choices(list(STEPS), k=rng.randint(1, 3))
    layers = rng.choices(list(LAYERS), k=rng.choice([0, 1, 1, 2]))
    last = rng.choice(list(LAST))
    name = f"{last} of {''.join(f'{layer} of ' for layer in reversed(layers))}({' '.join(steps)})"

    def build(options: dict[str, object]) -> Step:
        nested = functools.reduce(lambda f, layer: LAYERS[layer](f), layers, program(steps))
        whole = LAST[last](nested)
        return compile(whole, **options) if compiled else whole

    return f"compile of {name}" if compiled else name, build
