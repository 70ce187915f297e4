"""Gradients by a reverse sweep over the program, with the rules of the ops."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.errors import UnsupportedOpError
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.program import ProgramLog, Step


class SweepLog(ProgramLog):
    """A program that is differentiated by the rules in `autodiff/rules`."""

    by_rules = True

    def gradient(
        self,
        targets: list[EmberTensor],
        sources: list[EmberTensor],
        cotangents: list[EmberTensor],
        options: Any = None,
    ) -> list[EmberTensor | None]:
        """The gradients of the sources; None where no path leads to a target."""
        needed, steps = self.depending(sources)
        grads: dict[int, EmberTensor] = {}
        for target, cotangent in zip(targets, cotangents, strict=True):
            if id(target._data) in needed and id(target._data) in self.values:
                _add(grads, target, cotangent)
        keep = {id(x._data) for x in sources}
        for step in reversed(steps):
            _pull(step, grads, needed, keep)
        return [grads.get(id(x._data)) for x in sources]


def _pull(step: Step, grads: dict[int, Any], needed: set[int], keep: set[int]) -> None:
    """Hand the gradients of a step's results to its operands."""
    found = []
    for x in step.outs:
        key = id(getattr(x, "_data", x))
        found.append(grads.get(key) if key in keep else grads.pop(key, None))
    if all(g is None for g in found):
        return
    vjps = step.op.vjps
    if vjps is None:
        raise UnsupportedOpError(f"{step.op.key} has no gradient on {step.outs[0].backend}")
    if step.single:
        g, out = found[0], step.outs[0]
    else:
        out = step.outs
        g = tuple(
            ops.zeros_like(x) if one is None and isinstance(x, EmberTensor) else one
            for one, x in zip(found, out, strict=True)
        )
    joint = None if vjps.joint is None else vjps.joint(g, out, *step.args, **step.kwargs)
    shared: dict[int, Any] = {}
    for position, place, x in step.inputs:
        if id(x._data) not in needed:
            continue
        if joint is not None:
            part = joint[position]
        elif place is not None and position in shared:
            part = shared[position]
        else:
            vjp = vjps.parts[position]
            part = None if vjp is None else vjp(g, out, *step.args, **step.kwargs)
            shared[position] = part
        if place is not None and part is not None:
            part = part[place]
        if part is not None:
            _add(grads, x, _fitted(part, x))


def _add(grads: dict[int, Any], x: EmberTensor, g: EmberTensor) -> None:
    key = id(x._data)
    known = grads.get(key)
    grads[key] = g if known is None else known + g


def _fitted(g: EmberTensor, x: EmberTensor) -> EmberTensor:
    """A gradient in the shape and dtype of its operand."""
    if g._tag is not x._tag:
        if g.dtype.kind == "complex" and x.dtype.kind != "complex":
            g = ops.real(g)
        if g._tag is not x._tag:
            g = ops.astype(g, x.dtype)
    shape = x._data.shape
    return g if g._data.shape == shape else unbroadcast(g, tuple(shape))


def unbroadcast(g: EmberTensor, shape: tuple[int, ...]) -> EmberTensor:
    """A gradient summed over the axes along which an operand of that shape was repeated."""
    if g.shape == shape:
        return g
    extra = g.ndim - len(shape)
    if extra < 0:
        return ops.broadcast_to(g, shape)
    axes = tuple(range(extra)) + tuple(
        extra + at for at, length in enumerate(shape) if length == 1 and g.shape[extra + at] != 1
    )
    g = ops.sum(g, axis=axes) if axes else g
    return ops.reshape(g, shape) if g.shape != shape else g


def log_for(backend: str) -> SweepLog:
    """A new log, the rules loaded."""
    from ember_ml.autodiff import rules

    rules.load()
    runtime.load(backend)
    return SweepLog(backend)
