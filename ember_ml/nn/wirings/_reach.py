"""What leads where in a graph of neurons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

Edges = Iterable[tuple[int, int, int]]


def closure(start: set[int], edges: Edges) -> set[int]:
    """All that the start leads to, and the start."""
    after = defaultdict(list)
    for src, dest, _ in edges:
        after[src].append(dest)
    seen, waiting = set(start), list(start)
    while waiting:
        for dest in after[waiting.pop()]:
            if dest not in seen:
                seen.add(dest)
                waiting.append(dest)
    return seen
