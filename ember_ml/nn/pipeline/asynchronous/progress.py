"""Delivered items of a source, for resuming."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from typing import Any, Self

from ember_ml._core.errors import ArgumentError


class Progress:
    """Set of the positions of delivered items, as ranges.

    The number of ranges is at most one more than the number of items in between, which the buffer
    bounds.
    """

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    @property
    def delivered(self) -> int:
        """Number of items at the start of the source that are all delivered."""
        return self._ranges[0][1] if self._ranges and self._ranges[0][0] == 0 else 0

    def __contains__(self, index: int) -> bool:
        at = bisect.bisect_right(self._ranges, (index, float("inf"))) - 1
        return at >= 0 and index < self._ranges[at][1]

    def add(self, index: int) -> None:
        """Add the position of a delivered item, which is not in the set."""
        at = bisect.bisect_right(self._ranges, (index, float("inf")))
        start, stop = index, index + 1
        if at < len(self._ranges) and self._ranges[at][0] == stop:
            stop = self._ranges.pop(at)[1]
        if at and self._ranges[at - 1][1] == start:
            at -= 1
            start = self._ranges.pop(at)[0]
        self._ranges.insert(at, (start, stop))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: the delivered prefix, and the ranges delivered beyond it."""
        beyond = [list(each) for each in self._ranges if each[0] > 0]
        return {"delivered": self.delivered, "beyond": beyond}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Return the progress that `to_dict` described.

        Args:
            state: Result of `to_dict`.
        """
        progress = cls()
        try:
            ranges = [(0, state["delivered"]), *map(tuple, state.get("beyond", ()))]
            flat = [edge for each in ranges for edge in each]
            valid = all(type(edge) is int for edge in flat) and flat == sorted(flat)
            valid = valid and all(len(each) == 2 for each in ranges)
        except (KeyError, TypeError):
            valid = False
        if not valid:
            raise ArgumentError(
                'load_state_dict: the state must be {"delivered": n, "beyond": [[start, stop], '
                f"...]}} with increasing numbers, not {state!r:.80}"
            )
        progress._ranges = [(start, stop) for start, stop in ranges if start < stop]
        return progress
