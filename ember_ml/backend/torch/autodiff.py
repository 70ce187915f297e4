"""Gradients, batching and compilation with torch's autograd, `torch.func` and `torch.compile`."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, ParamSpec, TypeVar

import torch
from torch.utils.checkpoint import checkpoint as _checkpoint
from torch.utils.checkpoint import set_checkpoint_early_stop

from ember_ml._core.errors import UnsupportedOpError
from ember_ml._core.recording import NestedTransform
from ember_ml.backend.torch import custom
from ember_ml.backend.torch.compiling import compile as compile
from ember_ml.backend.torch.custom import Forward, Pullback
from ember_ml.backend.torch.nesting import (
    check_custom_gradient,
    check_transform,
    in_transform,
    leave_checkpoint,
    nesting,
    tracing,
)

ENGINE: Final = "graph"
WITHOUT_GRADIENT: frozenset[str] = frozenset()
COMPILE_UNAVAILABLE = ""
COMPILES_QUICKLY = False  # the first call may take a minute
CHECKPOINT_SEES_CLOSURES = True
scan = None  # eager steps cost little, and torch.compile unrolls loops
jvp = None
"""The VJP of a VJP is used: torch's forward-mode levels are global to the process, so that threads
take each other's tangents, and many of its forward formulas cannot be differentiated again."""

Function = Callable[..., list[torch.Tensor]]
P = ParamSpec("P")
R = TypeVar("R")
_NO_DERIVATIVE = re.compile(r"derivative for '?(\S+?)'? is not implemented")


def leaf(data: torch.Tensor) -> torch.Tensor:
    """Return the value as the root of a new graph, or as a new node of its graph."""
    return data.view_as(data) if data.requires_grad else data.detach().requires_grad_()


def is_nested() -> bool:
    """Return whether this thread runs a gradient or transform that owns the graph."""
    return nesting.gradients > 0 or in_transform()


def is_transforming() -> bool:
    """Return whether this thread runs a transform of `torch.func`, where tapes cannot use autograd.

    Autograd's own graph does not pass through `torch.func.vmap`, and `torch.func` forbids new roots
    of a graph.
    """
    return in_transform()


def gradient_depth() -> int:
    """Return how many nested `value_and_grad` calls this thread is in."""
    return nesting.gradients


def is_batching() -> bool:
    """Return False: torch's arrays know their batch axes."""
    return False


def differentiates_by_rules() -> bool:
    """Return False: torch's transforms can be nested."""
    return False


def detach(data: torch.Tensor) -> torch.Tensor:
    """Return the value without its graph."""
    return data.detach()


def has_graph(data: torch.Tensor) -> bool:
    """Return whether gradients flow through the array."""
    return data.requires_grad


def gradient(
    outputs: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor],
    retain: bool = False,
    create: bool = False,
    batched: bool = False,
) -> Sequence[torch.Tensor | None]:
    """Return the gradients of the inputs, None where there is no path.

    Args:
        outputs: Values to differentiate.
        inputs: Values to differentiate with respect to.
        cotangents: Gradients of the outputs.
        retain: Whether the graph is used again.
        create: Whether the gradients are differentiated again.
        batched: Whether the cotangents have a leading batch axis.
    """
    leave_checkpoint()
    grads = _autograd(
        outputs,
        inputs,
        cotangents,
        retain_graph=retain or create,
        create_graph=create,
        allow_unused=True,
        is_grads_batched=batched,
    )
    return [None if g is None else _materialized(g) for g in grads]


def _naming_ops(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function; an op without a derivative raises an error of Ember that names it."""
    if torch.compiler.is_compiling():
        return function

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RuntimeError as error:
            missing = _NO_DERIVATIVE.search(str(error))
            if missing is None:
                raise
            raise UnsupportedOpError(
                f"{missing[1]} has no derivative in torch; compute it with other ops"
            ) from error

    return call


_autograd = _naming_ops(torch.autograd.grad)


def _materialized(g: torch.Tensor) -> torch.Tensor:
    """Return a gradient with memory: autograd may return zero tensors, which few ops accept."""
    return g.clone() if g._is_zerotensor() else g


def value_and_grad(
    function: Callable[..., tuple[torch.Tensor, list[torch.Tensor]]],
    primals: Sequence[torch.Tensor],
) -> tuple[torch.Tensor, list[torch.Tensor], list[torch.Tensor]]:
    """Return value, aux and the gradients of `value, aux = function(*primals)`."""
    check_transform()
    if torch.compiler.is_compiling() or in_transform():
        argnums = tuple(range(len(primals)))
        tracing.gradients += torch.compiler.is_compiling()
        transformed = _naming_ops(torch.func.grad_and_value(function, argnums, has_aux=True))
        grads, (value, aux) = transformed(*primals)
        tracing.gradients -= torch.compiler.is_compiling()
        return value, aux, list(grads)
    nested = nesting.gradients > 0 or any(data.requires_grad for data in primals)
    leaves = [leaf(data) for data in primals]
    before = nesting.once
    nesting.gradients, nesting.once = nesting.gradients + 1, not nested
    try:
        with torch.enable_grad():
            value, aux = function(*leaves)
    finally:
        nesting.gradients, nesting.once = nesting.gradients - 1, before
    grads = [None] * len(leaves)
    if value.requires_grad:
        grads = _autograd(value, leaves, create_graph=nested, allow_unused=True)
    grads = [
        torch.zeros_like(x) if g is None else _materialized(g)
        for g, x in zip(grads, primals, strict=True)
    ]
    if not nested:
        value, aux = value.detach(), [data.detach() for data in aux]
    return value, aux, grads


def custom_vjp(
    forward: Forward, pullback: Pullback, primals: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor]:
    """Return `forward(*primals)` with the gradients `pullback(primals, cotangents, rerun)`.

    The compiler would differentiate `forward` instead, if it traced both.
    """
    check_custom_gradient()
    return custom.custom_vjp(forward, pullback, primals)


@contextlib.contextmanager
def _transforming() -> Iterator[None]:
    before = nesting.once
    nesting.transforms, nesting.once = nesting.transforms + 1, False
    try:
        yield
    finally:
        nesting.transforms, nesting.once = nesting.transforms - 1, before


def _marked(function: Function) -> Function:
    """Return the function; while it runs, `nesting` counts a torch.func transform."""
    if torch.compiler.is_compiling():
        return function

    def marked(*args: torch.Tensor) -> list[torch.Tensor]:
        with _transforming():
            return function(*args)

    return marked


def vjp(
    function: Function, primals: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], Callable[[list[torch.Tensor]], Sequence[torch.Tensor]]]:
    """Return the outputs and the pullback, from cotangents to gradients."""
    check_transform()
    if not torch.compiler.is_compiling():
        outputs, pullback = torch.func.vjp(_marked(function), *primals)
        return outputs, _naming_ops(pullback)
    tracing.gradients += 2
    outputs, pullback = torch.func.vjp(function, *primals)
    tracing.gradients -= 2
    return outputs, pullback


def vmap(
    function: Function, axes: Sequence[int | None], arrays: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Map the function over an axis of each array; return the outputs, batched along axis 0."""
    check_transform()
    return torch.func.vmap(_marked(function), tuple(axes), 0, randomness="different")(*arrays)


def is_compiling() -> bool:
    """Return whether `torch.compile` is tracing the caller."""
    return torch.compiler.is_compiling()


def is_tracing_error(error: BaseException) -> bool:
    """Return whether the error says that an op cannot run under `torch.func.vmap`."""
    if not isinstance(error, RuntimeError):
        return False
    text = str(error)
    return "vmap:" in text or "atching rule" in text or "doesn't have storage" in text


def checkpoint(function: Function, arrays: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the outputs; the backward pass computes the intermediate values again.

    A function that calls a transform is not checkpointed.
    """
    if torch.compiler.is_compiling() or in_transform():
        return function(*arrays)  # torch.func and torch.compile do not support checkpoints

    once = nesting.once

    def repeatable(*args: torch.Tensor) -> list[torch.Tensor]:
        """Run the function with the same saved tensors in both passes."""
        before, nesting.once = nesting.once, once
        nesting.checkpoints += 1
        try:
            return function(*args)
        finally:
            nesting.once = before
            nesting.checkpoints -= 1

    state = torch.get_rng_state()
    try:
        with set_checkpoint_early_stop(False):  # its exception would pass through Ember's ops
            return _checkpoint(repeatable, *arrays, use_reentrant=False)
    except NestedTransform:
        if nesting.checkpoints:
            raise
        torch.set_rng_state(state)
        return function(*arrays)


def keep_graph() -> None:
    """Note that a tape is open in this thread: the graph may be differentiated again."""
    nesting.once = False


def evaluate(arrays: Sequence[torch.Tensor]) -> None:
    """Do nothing: torch computes eagerly."""
