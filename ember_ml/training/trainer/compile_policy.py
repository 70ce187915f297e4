"""Policy that decides when to compile a training step."""

from __future__ import annotations

from collections import Counter

from ember_ml._core import tree
from ember_ml._core.tensor import EmberTensor

REPEATS = 50
"""Number of uncompiled batches of the same shapes before the first compiled one."""
REMAINING = 200
"""Number of steps that must be left, if the end is known, for compilation to pay off."""


class CompilePolicy:
    """Compiles a step only after batches of the same shapes have repeated, if enough steps remain.

    Compiling takes seconds to a minute, which does not pay off for short runs or changing shapes.

    Args:
        at_once: Whether to compile from the first batch on.
    """

    def __init__(self, at_once: bool) -> None:
        self._at_once = at_once
        self._seen: Counter[tuple[object, ...]] = Counter()
        self._compiled: set[tuple[object, ...]] = set()

    def compiles(self, batch: object, remaining: int | None) -> bool:
        """Return whether to compile the step of a batch.

        Args:
            batch: The batch.
            remaining: Number of steps that are left; None if it is unknown.
        """
        if self._at_once:
            return True
        shapes = tuple([_kind(leaf) for leaf in tree.leaves_of(batch)])
        if shapes in self._compiled:
            return True
        self._seen[shapes] += 1
        pays = self._seen[shapes] > REPEATS and (remaining is None or remaining >= REMAINING)
        if pays:
            self._compiled.add(shapes)
        return pays


def _kind(leaf: object) -> object:
    """Return what a compiled program depends on: shape and dtype of a tensor."""
    return (leaf.shape, leaf.dtype.name) if isinstance(leaf, EmberTensor) else type(leaf)
