"""NumPy has no gradients of its own: the ops' rules serve it."""

from __future__ import annotations

ENGINE = "rules"
