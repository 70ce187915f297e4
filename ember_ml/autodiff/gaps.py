"""Ops that a framework cannot differentiate, given the rules in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.op import OPS, Op
from ember_ml._core.tensor import EmberTensor, wrap
from ember_ml.backend import selection
from ember_ml.backend.interface import ReplayAutodiff


def fill(backend: str, native: ReplayAutodiff) -> None:
    """Wrap the kernels that the backend lists in `WITHOUT_GRADIENT`."""
    for key in native.WITHOUT_GRADIENT:
        op = OPS[key]
        op.natives[backend] = _wrapped(op, op.natives[backend], backend, native)
        for tag, (kernel, result) in list(op.kernels.items()):
            if tag.startswith(f"{backend}:"):
                op.kernels[tag] = _wrapped(op, kernel, backend, native), result


def _wrapped(
    op: Op, kernel: Callable[..., Any], backend: str, native: ReplayAutodiff
) -> Callable[..., Any]:
    """A kernel whose gradient is the op's rule."""

    def call(*args: Any, **kwargs: Any) -> Any:
        places = [at for at in range(min(len(op.roles), len(args))) if args[at] is not None]

        def rebuilt(values: Sequence[Any]) -> list[Any]:
            full = list(args)
            for at, value in zip(places, values, strict=True):
                full[at] = value
            return full

        def forward(*data: Any) -> Any:
            return kernel(*rebuilt(data), **kwargs)

        def pull(primals: Sequence[Any], cotangents: Any, outputs: Any) -> list[Any]:
            tensors = [wrap(data, backend) for data in primals]
            return _gradients(
                op, tensors, places, rebuilt(tensors), kwargs, (cotangents, outputs), backend
            )

        return native.attach_vjp(forward, pull)(*[args[at] for at in places])

    return call


def _gradients(
    op: Op,
    tensors: list[EmberTensor],
    places: list[int],
    args: list[Any],
    kwargs: dict[str, Any],
    results: tuple[Any, Any],
    backend: str,
) -> list[Any]:
    """The rule's gradients of the operands as native arrays, zeros where it gives none."""
    from ember_ml.autodiff import rules
    from ember_ml.autodiff.sweep import operand_gradients

    rules.load()
    g, out = (
        tuple(wrap(part, backend) for part in side)
        if isinstance(side, (list, tuple))
        else wrap(side, backend)
        for side in results
    )
    inputs = [(at, None, x) for at, x in zip(places, tensors, strict=True)]
    found = {
        id(x): part for x, part in operand_gradients(op.vjps, g, out, tuple(args), kwargs, inputs)
    }
    return [(found[id(x)] if id(x) in found else ops.zeros_like(x))._data for x in tensors]


def _on_load(backend: str) -> None:
    native = selection.import_backend(backend).autodiff
    if native.WITHOUT_GRADIENT:
        fill(backend, cast(ReplayAutodiff, native))


runtime.on_load.append(_on_load)
