"""Gradients by a reverse sweep over the program, with the rules of the ops."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core import recording, runtime
from ember_ml._core.dtype import float32, float64
from ember_ml._core.errors import UnsupportedOpError
from ember_ml._core.tensor import EmberTensor, wrap
from ember_ml.autodiff.program import ProgramLog, Step
from ember_ml.autodiff.rules import VJPRule
from ember_ml.autodiff.rules.helpers import unbroadcast
from ember_ml.autodiff.values import Values, like


class SweepLog(ProgramLog):
    """A program that is differentiated by the rules in `autodiff/rules`."""

    by_rules = True

    def gradient(
        self, targets: Values, sources: Values, cotangents: Values
    ) -> list[EmberTensor | None]:
        """The gradients of the sources; None where no path leads to a target.

        On the way they are native arrays. Where nobody records, the rules of arithmetic are called
        with native arrays as well.
        """
        needed, numbers = self.depending(sources)
        keep = {id(x._data) for x in sources}
        grads: dict[int, Any] = {}
        for target, cotangent in zip(targets, cotangents, strict=True):
            if id(target._data) in needed and id(target._data) in self.values:
                _add(grads, target, cotangent)
        steps, late = self.steps, any(self.since.values())
        native: Container[str] = () if recording.tapes() else _wide(self.backend)
        for number in reversed(numbers):
            step = steps[number]
            if type(step) is Step:
                known = self._without_late(step, number) if late else step
                _pull(known, grads, needed, keep)
                continue
            op, args, positions, out, tag = step
            parts = op.vjps.arithmetic
            if parts is None or tag not in native:
                _pull(self.step(number), grads, needed, keep)
                continue
            key = id(out)
            g = grads.get(key) if key in keep else grads.pop(key, None)
            if g is None:
                continue
            if len(args) == 1:  # each form spelt out, for a call with * takes longer
                (x,) = args
                key = id(x)
                if key in needed:
                    part = parts[0](g, out, x)
                    grads[key] = grads[key] + part if key in grads else part
                continue
            x, y = args
            for at in positions:
                key = id(args[at])
                if key in needed:
                    part = parts[at](g, out, x, y)
                    if part.shape != args[at].shape:
                        part = unbroadcast(wrap(part, self.backend), args[at].shape)._data
                    grads[key] = grads[key] + part if key in grads else part
        return [like(grads[key], x) if (key := id(x._data)) in grads else None for x in sources]

    def _without_late(self, step: Step, number: int) -> Step:
        """A step without the inputs that another tape tracked then, and this one only later."""
        since = self.since
        known = [entry for entry in step.inputs if since.get(id(entry[2]._data), 0) <= number]
        return step._replace(inputs=known)


@functools.cache
def _wide(backend: str) -> frozenset[str]:
    """The tags of the real dtypes in which arrays compute as they are."""
    return frozenset([runtime.tag(backend, one) for one in (float32, float64)])


def _pull(step: Step, grads: dict[int, Any], needed: Container[int], keep: set[int]) -> None:
    """What a step hands back from its result to its operands, by a rule written in ops."""
    op, args, kwargs, inputs, outs, single = step
    vjps = op.vjps
    if not single or vjps is None or vjps.joint is not None or inputs[0][1] is not None:
        _pull_jointly(step, grads, needed, keep)
        return
    out = outs[0]
    key = id(out._data)
    data = grads.get(key) if key in keep else grads.pop(key, None)
    if data is None:
        return
    g = like(data, out)
    for position, _, x in inputs:
        vjp = vjps.parts[position]
        if vjp is None or id(x._data) not in needed:
            continue
        part = vjp(g, out, *args, **kwargs) if kwargs else vjp(g, out, *args)
        if part is not None:
            fits = part._tag is x._tag and part._data.shape == x._data.shape
            _add(grads, x, part if fits else _fitted(part, x))


def _pull_jointly(
    step: Step, grads: dict[int, Any], needed: Container[int], keep: set[int]
) -> None:
    """A step of several results, a sequence of operands, or a rule that serves all operands."""
    found = []
    for x in step.outs:
        key = id(getattr(x, "_data", x))
        g = grads.get(key) if key in keep else grads.pop(key, None)
        found.append(None if g is None else like(g, x))
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
    vjps: VJPRule,
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
    grads[key] = g._data if known is None else ops.add(like(known, x), g)._data


def _fitted(g: EmberTensor, x: EmberTensor) -> EmberTensor:
    """A gradient in the shape and dtype of its operand."""
    if g._tag is not x._tag:
        if g.dtype.kind == "complex" and x.dtype.kind != "complex":
            g = ops.real(g)
        if g._tag is not x._tag:
            g = ops.astype(g, x.dtype)
    shape = x._data.shape
    return g if g._data.shape == shape else unbroadcast(g, tuple(shape))
