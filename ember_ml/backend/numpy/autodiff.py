"""NumPy has no gradients of its own: the ops' rules serve it."""

from __future__ import annotations

ENGINE = "rules"
WITHOUT_GRADIENT: frozenset[str] = frozenset()
COMPILES = "NumPy computes each op as it is called; there is no compiler"
value_and_grad = vjp = jvp = vmap = custom = checkpoint = compile = None
