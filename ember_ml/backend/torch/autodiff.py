"""Gradients, batching and compilation as torch offers them."""

from __future__ import annotations

import contextlib
import functools
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import torch
from torch.utils.checkpoint import checkpoint as _checkpoint
from torch.utils.checkpoint import set_checkpoint_early_stop

from ember_ml.backend.torch.custom import custom as custom
from ember_ml.backend.torch.nesting import nesting, tracing

ENGINE: Final = "graph"
"""torch keeps the graph itself."""
WITHOUT_GRADIENT: frozenset[str] = frozenset()
COMPILES = ""
COMPILES_AT_ONCE = False  # the first call may take a minute
CHECKPOINT_SEES_CLOSURES = True
scan = None  # eager steps cost little, and torch.compile unrolls loops


def leaf(data: Any) -> Any:
    """The value at the root of a new graph, or as a node of the graph it is in."""
    return data.view_as(data) if data.requires_grad else data.detach().requires_grad_()


def is_nested() -> bool:
    """Whether this thread is inside of a gradient or a transform, to which the graph belongs."""
    return nesting.gradients > 0 or nesting.transforms > 0


def gradient_depth() -> int:
    """How many gradients this thread is inside of, by `value_and_grad`."""
    return nesting.gradients


def detach(data: Any) -> Any:
    """The value without its graph."""
    return data.detach()


def has_graph(data: Any) -> bool:
    """Whether a gradient can flow through the array."""
    return data.requires_grad


def gradient(
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    cotangents: Sequence[Any],
    retain: bool = False,
    create: bool = False,
    batched: bool = False,
) -> Sequence[Any]:
    """The gradients of the inputs, None where there is no path."""
    found = torch.autograd.grad(
        outputs,
        inputs,
        cotangents,
        retain_graph=retain or create,
        create_graph=create,
        allow_unused=True,
        is_grads_batched=batched,
    )
    return [_solid(g) for g in found]


def _solid(g: Any) -> Any:
    """A gradient with memory: torch may give zeros that have none, which few functions take."""
    return g.clone() if g is not None and g._is_zerotensor() else g


def value_and_grad(
    function: Callable[..., tuple[Any, list[Any]]], primals: Sequence[Any]
) -> tuple[Any, list[Any], list[Any]]:
    """The value, the other results, and the gradients of (value, others) = function(*primals)."""
    if torch.compiler.is_compiling() or nesting.transforms:
        every = tuple(range(len(primals)))
        tracing.gradients += torch.compiler.is_compiling()
        both = torch.func.grad_and_value(function, every, has_aux=True)
        grads, (value, others) = both(*primals)
        tracing.gradients -= torch.compiler.is_compiling()
        return value, others, list(grads)
    nested = nesting.gradients > 0 or any(data.requires_grad for data in primals)
    leaves = [leaf(data) for data in primals]
    before = nesting.once
    nesting.gradients, nesting.once = nesting.gradients + 1, not nested
    try:
        with torch.enable_grad():
            value, others = function(*leaves)
    finally:
        nesting.gradients, nesting.once = nesting.gradients - 1, before
    found: Sequence[Any] = [None] * len(leaves)
    if value.requires_grad:
        found = torch.autograd.grad(value, leaves, create_graph=nested, allow_unused=True)
    grads = [
        torch.zeros_like(x) if g is None else _solid(g) for g, x in zip(found, primals, strict=True)
    ]
    if not nested:
        value, others = value.detach(), [data.detach() for data in others]
    return value, others, grads


@contextlib.contextmanager
def _transforming() -> Iterator[None]:
    before = nesting.once
    nesting.transforms, nesting.once = nesting.transforms + 1, False
    try:
        yield
    finally:
        nesting.transforms, nesting.once = nesting.transforms - 1, before


def _inside(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which knows while it runs that it is being transformed."""
    if torch.compiler.is_compiling():
        return function

    def marked(*args: Any) -> Any:
        with _transforming():
            return function(*args)

    return marked


def vjp(
    function: Callable[..., list[Any]], primals: Sequence[Any]
) -> tuple[list[Any], Callable[[list[Any]], Sequence[Any]]]:
    """The outputs, and the function from their cotangents to the gradients."""
    return torch.func.vjp(_inside(function), *primals)


def jvp(
    function: Callable[..., list[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]] | None:
    """The outputs and their change along the tangents; None if an op has no forward derivative."""
    if not torch.compiler.is_compiling():
        _warm_up_jvp()
    try:
        return torch.func.jvp(_inside(function), tuple(primals), tuple(tangents))
    except (NotImplementedError, RuntimeError) as error:
        if "forward" not in str(error) and "jvp" not in str(error):
            raise
        return None


@functools.cache
def _warm_up_jvp() -> None:
    """torch's first forward derivative in a process warns of its own use of TorchScript."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        one = torch.ones(())
        torch.func.jvp(torch.tanh, (one,), (one,))


def vmap(
    function: Callable[..., list[Any]], axes: Sequence[int | None], arrays: Sequence[Any]
) -> list[Any] | None:
    """The function over an axis of each array, results along axis 0; None if an op cannot."""
    try:
        return torch.func.vmap(_inside(function), tuple(axes), 0, randomness="different")(*arrays)
    except Exception:  # if it is not for the batching, it comes again from a single example
        return None


def compile(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function compiled; in code of its own, for torch counts the variants of a code."""
    own = types.FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    return torch.compile(own, **options)


def checkpoint(function: Callable[..., list[Any]], arrays: Sequence[Any]) -> list[Any]:
    """The outputs; what is in between is computed again for the gradient."""
    if torch.compiler.is_compiling() or nesting.transforms:
        return function(*arrays)  # which have no place for it

    def alike(*given: Any) -> list[Any]:
        """The function, which leaves the same values both times."""
        before, nesting.once = nesting.once, False
        try:
            return function(*given)
        finally:
            nesting.once = before

    with set_checkpoint_early_stop(False):  # its exception would pass through our ops
        return _checkpoint(alike, *arrays, use_reentrant=False)


def keep_graph() -> None:
    """A tape is open within the gradient under way: its graph may be differentiated again."""
    nesting.once = False


def evaluate(arrays: Sequence[Any]) -> None:
    """Nothing waits to be computed."""
