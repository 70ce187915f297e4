"""Loss scale of float16."""

from __future__ import annotations

from collections.abc import Mapping

GROWTH_STEPS = 2000
"""Number of steps without overflow after which the loss scale doubles, as in PyTorch."""
MAX_SCALE = 2.0**24
"""Largest loss scale."""


class LossScale:
    """Loss scale for float16: halved when a gradient overflows, doubled after many good steps.

    Reference: Micikevicius et al., "Mixed Precision Training", 2018.

    Args:
        first: Initial scale.
    """

    def __init__(self, first: float = 2.0**15) -> None:
        self.value = first
        self._good = 0

    def can_shrink(self) -> bool:
        """Return whether an overflow may be due to the scale."""
        return self.value > 1.0

    def succeeded(self) -> None:
        """Count a step without overflow; double the scale after many."""
        self._good += 1
        if self._good >= GROWTH_STEPS:
            self.value = min(self.value * 2.0, MAX_SCALE)
            self._good = 0

    def overflowed(self) -> None:
        """Halve the scale after a step with gradients that are not finite."""
        self.value = max(self.value / 2.0, 1.0)
        self._good = 0

    def state_dict(self) -> dict[str, float]:
        """Return the scale and the number of steps since it changed."""
        return {"value": self.value, "good": self._good}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Restore a state that `state_dict` returned."""
        self.value, self._good = float(state["value"]), int(state["good"])
