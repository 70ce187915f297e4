"""Gradients by a reverse sweep over the program, with the rules of the ops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.errors import UnsupportedOpError
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.program import ProgramLog, Step, Values
from ember_ml.autodiff.rules import Vjps


class SweepLog(ProgramLog):
    """A program that is differentiated by the rules in `autodiff/rules`."""

    by_rules = True

    def gradient(
        self, targets: Values, sources: Values, cotangents: Values, retain: bool = False
    ) -> list[EmberTensor | None]:
        """The gradients of the sources; None where no path leads to a target."""
        needed, steps = self.depending(sources)
        grads: dict[int, EmberTensor] = {}
        for target, cotangent in zip(targets, cotangents, strict=True):
            if id(target._data) in needed and id(target._data) in self.values:
                _add(grads, target, cotangent)
        keep = {id(x._data) for x in sources}
        for _, step in reversed(steps):
            op, args, kwargs, inputs, outs, single = step
            vjps = op.vjps
            if not single or vjps is None or vjps.joint is not None or inputs[0][1] is not None:
                _pull_jointly(step, grads, needed, keep)
                continue
            out = outs[0]
            key = id(out._data)
            if key not in grads:
                continue
            g = grads[key] if key in keep else grads.pop(key)
            parts = vjps.parts
            count = -1 if kwargs else len(args)
            for position, _, x in inputs:
                key = id(x._data)
                vjp = parts[position]
                if vjp is None or key not in needed:
                    continue
                if count == 2:  # spelt out, for a call with * takes longer
                    part = vjp(g, out, args[0], args[1])
                elif count == 1:
                    part = vjp(g, out, args[0])
                else:
                    part = vjp(g, out, *args, **kwargs)
                if part is None:
                    continue
                fits = op.kind == "unary" or part._data.shape == x._data.shape
                if part._tag is not x._tag or not fits:
                    part = _fitted(part, x)
                grads[key] = ops.add(grads[key], part) if key in grads else part
        return [grads.get(id(x._data)) for x in sources]


def _pull_jointly(step: Step, grads: dict[int, Any], needed: set[int], keep: set[int]) -> None:
    """A step of several results, a sequence of operands, or a rule that serves all operands."""
    found = []
    for x in step.outs:
        key = id(getattr(x, "_data", x))
        found.append(grads.get(key) if key in keep else grads.pop(key, None))
    if all(one is None for one in found):
        return
    if step.op.vjps is None:
        raise UnsupportedOpError(f"{step.op.key} has no gradient on {step.outs[0].backend}")
    g = tuple(
        [
            ops.zeros_like(x) if one is None and isinstance(x, EmberTensor) else one
            for one, x in zip(found, step.outs, strict=True)
        ]
    )
    wanted = [entry for entry in step.inputs if id(entry[2]._data) in needed]
    at: Any = 0 if step.single else slice(None)
    for x, part in operand_gradients(
        step.op.vjps, g[at], step.outs[at], step.args, step.kwargs, wanted
    ):
        _add(grads, x, part)


def operand_gradients(
    vjps: Vjps,
    g: Any,
    out: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    inputs: Iterable[tuple[int, int | None, EmberTensor]],
) -> Iterator[tuple[EmberTensor, EmberTensor]]:
    """What a rule gives to each of the operands (position, place in a sequence or None, tensor)."""
    found: dict[int, Any] = {}
    if vjps.joint is not None:
        found.update(enumerate(vjps.joint(g, out, *args, **kwargs)))
    for position, place, x in inputs:
        if position not in found:
            vjp = vjps.parts[position]
            found[position] = None if vjp is None else vjp(g, out, *args, **kwargs)
        part = found[position]
        if place is not None and part is not None:
            part = part[place]
        if part is not None:
            yield x, _fitted(part, x)


def _add(grads: dict[int, Any], x: EmberTensor, g: EmberTensor) -> None:
    key = id(x._data)
    known = grads.get(key)
    grads[key] = g if known is None else ops.add(known, g)


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
    given = g.shape
    if given == shape:
        return g
    extra = len(given) - len(shape)
    if extra == 1 and given[1:] == shape:  # a bias
        return ops.sum(g, 0)
    if extra < 0:
        return ops.broadcast_to(g, shape)
    axes = tuple(range(extra)) + tuple(
        extra + at for at, length in enumerate(shape) if length == 1 and given[extra + at] != 1
    )
    g = ops.sum(g, axis=axes) if axes else g
    return ops.reshape(g, shape) if g.shape != shape else g


def log_for(backend: str) -> SweepLog:
    """A new log, the rules loaded."""
    from ember_ml.autodiff import rules

    rules.load()
    runtime.load(backend)
    return SweepLog(backend)
