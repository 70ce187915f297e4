"""NumPy has no gradients of its own: the ops' rules serve it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

ENGINE: Final = "rules"
WITHOUT_GRADIENT: frozenset[str] = frozenset()
COMPILES = "NumPy computes each op as it is called; there is no compiler"
COMPILES_AT_ONCE = False
CHECKPOINT_SEES_CLOSURES = False
value_and_grad = vjp = jvp = vmap = custom = checkpoint = compile = scan = None


def gradient_depth() -> int:
    """Return 0: no function is compiled."""
    return 0


def evaluate(arrays: Sequence[Any]) -> None:
    """Nothing waits to be computed."""
