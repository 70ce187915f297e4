"""VJP rules for the kernels that a framework cannot differentiate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.op import OPS, Op
from ember_ml._core.tensor import Tensor, wrap
from ember_ml._core.types import NativeArray
from ember_ml.autodiff.log import KwArgs
from ember_ml.backend import selection

if TYPE_CHECKING:
    from ember_ml.backend.interface import ReplayAutodiff

Arrays = NativeArray | Sequence[NativeArray]
Kernel = Callable[..., object]


def attach_rules(backend: str, native: ReplayAutodiff) -> None:
    """Wrap the kernels that the backend lists in `WITHOUT_GRADIENT`."""
    for key in native.WITHOUT_GRADIENT:
        op = OPS[key]
        op.natives[backend] = _wrapped(op, op.natives[backend], backend, native)
        for tag, (kernel, result) in list(op.kernels.items()):
            if tag.startswith(f"{backend}:"):
                op.kernels[tag] = _wrapped(op, kernel, backend, native), result


def _wrapped(op: Op, kernel: Kernel, backend: str, native: ReplayAutodiff) -> Kernel:
    """Return a kernel that is differentiated by the op's rule."""

    def call(*args: object, **kwargs: object) -> object:
        positions = [at for at in range(min(len(op.roles), len(args))) if args[at] is not None]

        def with_operands(values: Sequence[object]) -> list[object]:
            full = list(args)
            for at, value in zip(positions, values, strict=True):
                full[at] = value
            return full

        def forward(*data: NativeArray) -> object:
            return kernel(*with_operands(data), **kwargs)

        def pullback(
            primals: Sequence[NativeArray], cotangents: Arrays, outputs: Arrays
        ) -> list[NativeArray]:
            tensors = [wrap(data, backend) for data in primals]
            g, out = _tensors(cotangents, backend), _tensors(outputs, backend)
            return _gradients(op, tensors, positions, with_operands(tensors), kwargs, g, out)

        return native.attach_vjp(forward, pullback)(*[args[at] for at in positions])

    return call


def _tensors(arrays: Arrays, backend: str) -> Tensor | tuple[Tensor, ...]:
    if isinstance(arrays, (list, tuple)):
        return tuple(wrap(part, backend) for part in arrays)
    return wrap(arrays, backend)


def _gradients(
    op: Op,
    tensors: list[Tensor],
    positions: list[int],
    args: list[object],
    kwargs: KwArgs,
    g: Tensor | tuple[Tensor, ...],
    out: Tensor | tuple[Tensor, ...],
) -> list[NativeArray]:
    """Return the gradients of the operands as native arrays, zeros where the rule has none."""
    from ember_ml.autodiff import rules
    from ember_ml.autodiff.sweep import operand_gradients

    rules.load()
    inputs = [(at, None, x) for at, x in zip(positions, tensors, strict=True)]
    grads = {id(x): part for x, part in operand_gradients(op.vjps, g, out, args, kwargs, inputs)}
    return [(grads[id(x)] if id(x) in grads else ops.zeros_like(x))._data for x in tensors]


def _on_load(backend: str) -> None:
    native = selection.import_backend(backend).autodiff
    if native.WITHOUT_GRADIENT:
        attach_rules(backend, cast("ReplayAutodiff", native))


runtime.on_load.append(_on_load)
