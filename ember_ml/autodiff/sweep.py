"""Gradients by a reverse sweep over the recorded program, with the VJP rules of the ops."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, cast

from ember_ml import ops
from ember_ml._core import recording, runtime
from ember_ml._core.dtype import float32, float64
from ember_ml._core.errors import UnsupportedOpError
from ember_ml._core.tensor import EmberTensor, Tensor, wrap
from ember_ml._core.types import NativeArray
from ember_ml.autodiff.log import KwArgs
from ember_ml.autodiff.program import ProgramLog, Step
from ember_ml.autodiff.rules import VJPRule
from ember_ml.autodiff.rules.helpers import unbroadcast
from ember_ml.autodiff.values import Values, like


class SweepLog(ProgramLog):
    """Program that is differentiated by the rules in `autodiff/rules`."""

    by_rules = True

    def gradient(self, targets: Values, sources: Values, cotangents: Values) -> list[Tensor | None]:
        """Return the gradients of the sources, None where no path leads to a target.

        Gradients are accumulated as native arrays. When no tape records, the rules of arithmetic
        also receive native arrays.
        """
        needed, numbers = self.dependents(sources)
        keep = {id(x._data) for x in sources}
        grads: dict[int, NativeArray] = {}
        for target, cotangent in zip(targets, cotangents, strict=True):
            if id(target._data) in needed and id(target._data) in self.values:
                _add(grads, target, cotangent)
        steps, late = self.steps, any(self.since.values())
        native: Container[str] = () if recording.tapes() else _native_tags(self.backend)
        for number in reversed(numbers):
            step = steps[number]
            if isinstance(step, Step):
                known = self._without_late_inputs(step, number) if late else step
                _backward(known, grads, needed, keep)
                continue
            op, args, positions, out, tag = step
            parts = op.vjps.arithmetic
            if parts is None or tag not in native:
                _backward(self.step(number), grads, needed, keep)
                continue
            key = id(out)
            g = grads.get(key) if key in keep else grads.pop(key, None)
            if g is None:
                continue
            if len(args) == 1:  # both arities are written out: a call with * takes longer
                (x,) = args
                key = id(x)
                if key in needed:
                    part = parts[0](g, out, x)
                    grads[key] = grads[key] + part if key in grads else part
                continue
            x, y = args
            for at in positions:
                operand: Any = args[at]
                key = id(operand)
                if key in needed:
                    part = parts[at](g, out, x, y)
                    if part.shape != operand.shape:
                        part = unbroadcast(wrap(part, self.backend), operand.shape)._data
                    grads[key] = grads[key] + part if key in grads else part
        return [like(grads[key], x) if (key := id(x._data)) in grads else None for x in sources]

    def _without_late_inputs(self, step: Step, number: int) -> Step:
        """Return a step without the inputs that this tape watched only after the step."""
        since = self.since
        known = [entry for entry in step.inputs if since.get(id(entry[2]._data), 0) <= number]
        return step._replace(inputs=known)


@functools.cache
def _native_tags(backend: str) -> frozenset[str]:
    """Return the tags of the dtypes whose native operators have Ember's semantics."""
    return frozenset([runtime.tag(backend, dtype) for dtype in (float32, float64)])


def _backward(
    step: Step, grads: dict[int, NativeArray], needed: Container[int], keep: set[int]
) -> None:
    """Propagate a step's gradient from its result to its operands, by the op's rule."""
    op, args, kwargs, inputs, outs, single = step
    rule = op.vjps
    if not single or rule is None or rule.joint is not None or inputs[0][1] is not None:
        _backward_joint(step, grads, needed, keep)
        return
    out = outs[0]
    key = id(out._data)
    data = grads.get(key) if key in keep else grads.pop(key, None)
    if data is None:
        return
    g = like(data, out)
    for position, _, x in inputs:
        vjp = rule.parts[position]
        if vjp is None or id(x._data) not in needed:
            continue
        part = vjp(g, out, *args, **kwargs) if kwargs else vjp(g, out, *args)
        if part is not None:
            part = cast(Tensor, part)
            fits = part._tag is x._tag and part._data.shape == x._data.shape
            _add(grads, x, part if fits else _fitted(part, x))


def _backward_joint(
    step: Step, grads: dict[int, NativeArray], needed: Container[int], keep: set[int]
) -> None:
    """Propagate gradients if there are several results, a sequence operand or a joint rule."""
    known: list[Tensor | None] = []
    for x in step.outs:
        key = id(getattr(x, "_data", x))
        data = grads.get(key) if key in keep else grads.pop(key, None)
        known.append(None if data is None else like(data, x))
    if all(g is None for g in known):
        return
    if step.op.vjps is None:
        raise UnsupportedOpError(f"{step.op.key} has no gradient on {step.outs[0].backend}")
    g = tuple(
        [
            ops.zeros_like(x) if one is None and isinstance(x, EmberTensor) else one
            for one, x in zip(known, step.outs, strict=True)
        ]
    )
    inputs = [entry for entry in step.inputs if id(entry[2]._data) in needed]
    for x, part in operand_gradients(
        step.op.vjps,
        g[0] if step.single else g,
        step.outs[0] if step.single else step.outs,
        step.args,
        step.kwargs,
        inputs,
    ):
        _add(grads, x, part)


def operand_gradients(
    rule: VJPRule,
    g: Tensor | Sequence[Tensor | None] | None,
    out: Tensor | Sequence[Tensor],
    args: Sequence[object],
    kwargs: KwArgs,
    inputs: Iterable[tuple[int, int | None, Tensor]],
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each operand with its gradient.

    Args:
        rule: VJP rule of the op.
        g: Gradient of the result.
        out: Result of the op.
        args: Arguments of the call.
        kwargs: Keyword arguments of the call.
        inputs: (position, index within a sequence or None, operand) of the operands.
    """
    parts = dict(enumerate(rule.joint(g, out, *args, **kwargs))) if rule.joint is not None else {}
    for position, index, x in inputs:
        if position not in parts:
            vjp = rule.parts[position]
            parts[position] = None if vjp is None else vjp(g, out, *args, **kwargs)
        part = parts[position]
        if index is not None and part is not None:
            part = part[index]
        if part is not None:
            yield x, _fitted(cast(Tensor, part), x)


def _add(grads: dict[int, NativeArray], x: Tensor, g: Tensor) -> None:
    key = id(x._data)
    known = grads.get(key)
    grads[key] = g._data if known is None else ops.add(like(known, x), g)._data


def _fitted(g: Tensor, x: Tensor) -> Tensor:
    """Return a gradient in the shape and dtype of its operand."""
    if g._tag is not x._tag:
        if g.dtype.kind == "complex" and x.dtype.kind != "complex":
            g = ops.real(g)
        if g._tag is not x._tag:
            g = ops.astype(g, x.dtype)
    shape = x._data.shape
    return g if g._data.shape == shape else unbroadcast(g, tuple(shape))
