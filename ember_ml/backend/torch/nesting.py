"""Counts of the running gradients and transforms, and checks of what may start inside them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch

from ember_ml._core.errors import UnsupportedOpError
from ember_ml._core.recording import NestedTransform

_functorch = torch._C._functorch


class Nesting(threading.local):
    """Per-thread counts of nested gradients and transforms.

    Attributes:
        gradients: Nested autograd calls.
        transforms: Nested `torch.func` transforms.
        checkpoints: Nested checkpointed functions.
        once: Whether the current graph is differentiated once and then dropped.
        in_parts: Whether a function runs that is compiled in parts.
    """

    gradients = 0
    transforms = 0
    checkpoints = 0
    once = False
    in_parts = False


nesting = Nesting()


class Tracing:
    """Count of nested gradients in the function that `torch.compile` traces.

    A VJP counts twice, because its pullback may be differentiated later.

    It is not thread-local, so that the compiler can trace it; one function is traced at a time.
    """

    def __init__(self) -> None:
        self.gradients = 0


tracing = Tracing()
_is_exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", lambda: False)


def needs_plain_ops() -> bool:
    """Return whether a compiler must see torch's own ops instead of a custom op.

    It cannot differentiate a custom op in its own trace, and an exported program cannot contain
    one, because it runs without Ember.
    """
    return tracing.gradients > 0 or _is_exporting()


def in_transform() -> bool:
    """Return whether this thread runs a transform of `torch.func`, ours or the user's."""
    return nesting.transforms > 0 or torch._C._are_functorch_transforms_active()


def check_transform() -> None:
    """Raise if no transform can start here: in a checkpoint, or in code compiled in parts."""
    leave_checkpoint()
    if torch.compiler.is_compiling():
        torch._dynamo.comptime.comptime(_check_parts)
    elif nesting.in_parts:
        _check_parts(None)


def leave_checkpoint() -> None:
    """Raise if a checkpointed function runs: its hooks would take a transform's own graph."""
    if nesting.checkpoints:
        raise NestedTransform


def _check_parts(_: object) -> None:
    if nesting.in_parts:
        raise UnsupportedOpError("torch compiles a function that calls a transform only whole")


def check_custom_gradient() -> None:
    """Raise in a gradient that is compiled: the compiler ignores custom gradients there."""
    if torch.compiler.is_compiling() and tracing.gradients:
        torch._dynamo.comptime.comptime(_refuse_custom)


def _refuse_custom(_: object) -> None:
    raise UnsupportedOpError("torch does not compile the gradient of a custom gradient")


def levels(*arrays: torch.Tensor | None) -> set[int]:
    """Return the levels of the gradients that track an array: 0 for autograd's own graph.

    Inside `torch.func.vmap`, `requires_grad` of an array does not show the gradients around it.
    """
    tracked = set()
    for x in arrays:
        while x is not None and _functorch.is_functorch_wrapped_tensor(x):
            if x.requires_grad:
                tracked.add(_functorch.maybe_get_level(x))
            x = _functorch.get_unwrapped(x)
        if x is not None and x.requires_grad:
            tracked.add(0)
    return tracked


def unwrapped(x: torch.Tensor) -> torch.Tensor:
    """Return the values of an array that transforms of `torch.func` wrap, with all batch axes."""
    while _functorch.is_functorch_wrapped_tensor(x):
        x = _functorch.get_unwrapped(x)
    return x


def is_tracked(*arrays: torch.Tensor | None) -> bool:
    """Return whether gradients flow through one of the arrays."""
    for x in arrays:
        if x is not None and x.requires_grad:
            return True
    if torch.compiler.is_compiling():
        return tracing.gradients > 0 and any(x is not None for x in arrays)
    return torch._C._are_functorch_transforms_active() and bool(levels(*arrays))
