"""NumPy has no gradients of its own: the ops' rules serve it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ENGINE = "rules"
WITHOUT_GRADIENT: frozenset[str] = frozenset()
COMPILES = "NumPy computes each op as it is called; there is no compiler"
COMPILES_AT_ONCE = False
value_and_grad = vjp = jvp = vmap = custom = checkpoint = compile = None


def settle(arrays: Sequence[Any]) -> None:
    """Nothing waits to be computed."""
