"""Functions whose results are constants of compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])


def constant_result(function: F) -> F:
    """Mark a function like `torch.compiler.assume_constant_result`, and return it.

    `assume_constant_result` itself loads torch's compiler, which takes as long as loading torch.

    Args:
        function: Function that the compiler calls while it traces.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function
