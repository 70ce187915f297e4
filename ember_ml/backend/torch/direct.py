"""Calls of autograd functions without checks for transforms, which take as long as a small op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor


def unchecked_apply(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """Return `function.apply` for callers that know that no transform is involved.

    Args:
        function: Function whose arguments are all given by position.
    """
    return super(torch.autograd.Function, function).apply


def direct_apply(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """Return `function.apply`, without the checks unless a compiler or a transform is involved.

    Args:
        function: Function whose arguments are all given by position.
    """
    unchecked = unchecked_apply(function)

    def apply(*args: Any) -> Any:
        if (
            torch.compiler.is_compiling()
            or torch._C._are_functorch_transforms_active()
            or any(isinstance(x, torch.Tensor) and _is_wrapped(x) for x in args)
        ):
            return function.apply(*args)
        return unchecked(*args)

    return apply
