"""NumPy has no autodiff: the VJP rules of the ops are used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

ENGINE: Final = "rules"
WITHOUT_GRADIENT: frozenset[str] = frozenset()
COMPILE_UNAVAILABLE = "NumPy has no compiler"
COMPILES_QUICKLY = False
CHECKPOINT_SEES_CLOSURES = False
value_and_grad = vjp = jvp = vmap = custom_vjp = checkpoint = compile = scan = None


def gradient_depth() -> int:
    """Return 0: no function is compiled."""
    return 0


def is_compiling() -> bool:
    """Return False: NumPy does not trace."""
    return False


def is_batching() -> bool:
    """Return False: NumPy has no vmap."""
    return False


def differentiates_by_rules() -> bool:
    """Return False: NumPy has no transforms, and the rules are used anyway."""
    return False


def is_tracing_error(error: BaseException) -> bool:
    """Return False: NumPy does not trace."""
    return False


def evaluate(arrays: Sequence[np.ndarray]) -> None:
    """Do nothing: NumPy computes eagerly."""
