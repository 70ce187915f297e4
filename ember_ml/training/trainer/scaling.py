"""Loss scaling: float16 gradients that would vanish are made larger."""

from __future__ import annotations

from typing import Any

GROWTH_STEPS = 2000


class LossScale:
    """A factor on the loss that halves when a gradient overflows, and doubles when none does.

    Reference: Micikevicius et al., "Mixed Precision Training", 2018.
    """

    def __init__(self, first: float = 2.0**15) -> None:
        self.value = first
        self._good = 0

    def grew(self) -> None:
        """A step went well."""
        self._good += 1
        if self._good >= GROWTH_STEPS:
            self.value = min(self.value * 2.0, 2.0**24)
            self._good = 0

    def overflowed(self) -> None:
        """A gradient was not finite, and the step was left out."""
        self.value = max(self.value / 2.0, 1.0)
        self._good = 0

    def state_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"value": self.value, "good": self._good}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.value, self._good = float(state["value"]), int(state["good"])
