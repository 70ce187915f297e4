"""Compilation with `torch.compile`."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable

import torch

from ember_ml.backend.torch.nesting import nesting, tracing

Function = Callable[..., list[torch.Tensor]]


def compile(function: Function, *, trusted: bool = False, **options: object) -> Function:
    """Return the function, compiled for fixed shapes by default.

    Shapes are fixed because the caller compiles once per shape, and because torch would otherwise
    trace later functions with symbolic sizes, which batched gradients of slices do not support.
    A trusted function depends on its arguments alone: torch then checks only these at each call.
    """
    options = {"dynamic": False, **options}
    if trusted:
        options["options"] = {"guard_filter_fn": torch.compiler.keep_tensor_guards_unsafe}
    if options.get("fullgraph"):
        return torch.compile(_copied(function), **options)
    whole = torch.compile(_copied(function), **{**options, "fullgraph": True})
    return _Attempts(function, whole, _in_parts(torch.compile(_copied(function), **options)))


def _copied(function: Function) -> Function:
    """Return the function with a new code object: torch limits how often one is recompiled."""
    return types.FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


def _in_parts(compiled: Function) -> Function:
    """Return the function, in which a transform is an error: parts of it would lose gradients."""

    def run(*args: torch.Tensor) -> list[torch.Tensor]:
        before, nesting.in_parts = nesting.in_parts, True
        try:
            return compiled(*args)
        finally:
            nesting.in_parts = before

    return run


class _Attempts:
    """Function compiled as a whole, else in parts, else not at all, with a warning."""

    def __init__(self, function: Function, *compiled: Function) -> None:
        self._function = function
        self._left = list(compiled)

    def __call__(self, *args: torch.Tensor) -> list[torch.Tensor]:
        """Return the outputs of the first attempt that the compiler does not refuse."""
        reason = ""
        while self._left:
            before = tracing.gradients
            try:
                return self._left[0](*args)
            except Exception as error:
                tracing.gradients = before
                reason = str(error).strip().partition("\n")[0]
                if len(self._left) == 1:
                    outputs = self._function(*args)  # raises the caller's own errors
                    self._left.clear()
                    break
                del self._left[0]
        else:
            return self._function(*args)
        warnings.warn(
            f"compile: torch cannot compile this function, which runs uncompiled: {reason}",
            RuntimeWarning,
            stacklevel=4,
        )
        return outputs
