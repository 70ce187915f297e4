"""Growth of the memory in a training step, as a function of the batch size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ember_ml.backend.interface import MemoryChange
from ember_ml.training.layer_marks import ENTER, EXIT


class LinearChange(NamedTuple):
    """Change of the memory in use that is a linear function of the batch size."""

    mark: str
    change: float
    change_slope: float
    peak: float
    peak_slope: float


class Growth:
    """Changes of the memory in use during a step, as linear functions of the batch size.

    A step of another batch size runs the same operations, whose arrays have sizes that are linear
    in the batch size. The peak is then the maximum over all moments of the step, which may be
    another moment than that of the recorded steps.

    Args:
        first: Changes of a step with a batch of `sizes[0]`.
        second: Changes of a step with a batch of `sizes[1]`.
        sizes: Batch sizes of the two recordings; equal if there is one only.
    """

    def __init__(
        self,
        first: Sequence[MemoryChange],
        second: Sequence[MemoryChange],
        sizes: tuple[int, int],
    ) -> None:
        if not are_aligned(first, second):
            first, second = between_marks(first), between_marks(second)
        if not are_aligned(first, second):
            first, second = merged(first), merged(second)
        start, width = sizes[0], max(1, sizes[1] - sizes[0])
        self._changes = []
        for one, other in zip(first, second, strict=True):
            slope = (other.change - one.change) / width
            peak_slope = (other.peak - one.peak) / width
            self._changes.append(
                LinearChange(
                    one.mark,
                    one.change - slope * start,
                    slope,
                    one.peak - peak_slope * start,
                    peak_slope,
                )
            )

    def peak(self, batch_size: int) -> int:
        """Return the largest growth during a step."""
        used = peak = 0.0
        for each in self._changes:
            peak = max(peak, used + each.peak + each.peak_slope * batch_size)
            used += each.change + each.change_slope * batch_size
        return round(peak)

    def kept_by_layer(self, batch_size: int) -> dict[str, int]:
        """Return the bytes that each layer keeps after its forward pass, in order."""
        used = 0.0
        entered: dict[str, float] = {}
        kept: dict[str, int] = {}
        for each in self._changes:
            used += each.change + each.change_slope * batch_size
            if each.mark.startswith(ENTER):
                entered[each.mark.removeprefix(ENTER)] = used
            elif each.mark.startswith(EXIT):
                name = each.mark.removeprefix(EXIT)
                kept.setdefault(name, max(0, round(used - entered[name])))
        return kept


def are_aligned(first: Sequence[MemoryChange], second: Sequence[MemoryChange]) -> bool:
    """Return whether two recordings have the same marks in the same places."""
    return [each.mark for each in first] == [each.mark for each in second]


def between_marks(changes: Sequence[MemoryChange]) -> list[MemoryChange]:
    """Return the changes with those between two marks merged."""
    result: list[MemoryChange] = []
    part: list[MemoryChange] = []
    for each in changes:
        part.append(each)
        if each.mark:
            result.append(_merge(part))
            part = []
    return [*result, _merge(part)]


def merged(changes: Sequence[MemoryChange]) -> list[MemoryChange]:
    """Return one change for all."""
    return [_merge(changes)]


def _merge(changes: Sequence[MemoryChange]) -> MemoryChange:
    used = peak = 0
    for each in changes:
        peak = max(peak, used + each.peak)
        used += each.change
    return MemoryChange(changes[-1].mark if changes else "", used, peak)


def scaled_to(total: int, shares: Mapping[str, int]) -> dict[str, int]:
    """Return a total divided in proportion to shares."""
    whole = sum(shares.values()) or 1
    return {name: total * share // whole for name, share in shares.items()}
