"""Time to generate the examples of the MAD tasks, compared with one example at a time in Python.

The peer builds the same sequences token by token with `random`, as MAD-Lab does it. The fuzzy task
is also timed at 128 tokens, where MAD-Lab lists all motifs first and takes hours.

    python benchmarks/mad_data.py
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from ember_ml import mad

COUNT = 12_800


def recall(rng: random.Random, size: int = 16, length: int = 128) -> list[int]:
    """Return a sequence of in-context recall."""
    half, bound, tokens = size // 2, {}, []
    for _ in range(length // 2 - 1):
        key = rng.randrange(half)
        tokens += [key, bound.setdefault(key, rng.randrange(half, size))]
    key = rng.choice(list(bound))
    return [*tokens, key, bound[key]]


def fuzzy(rng: random.Random, size: int = 16, length: int = 128) -> list[int]:
    """Return a sequence of fuzzy in-context recall."""
    keys, values, bound, tokens = range((size - 1) // 2), range((size - 1) // 2, size - 1), {}, []
    while len(tokens) < length - 12:
        key = tuple(rng.sample(keys, rng.randint(1, 3)))
        value = bound.setdefault(key, tuple(rng.sample(values, rng.randint(1, 3))))
        tokens += [*key, *value]
    key = rng.choice(list(bound))
    return [*tokens, *key, *bound[key]]


def memorized(rng: random.Random) -> list[int]:
    """Return a sequence of memorization."""
    return [token for _ in range(16) for token in (rng.randrange(127), 255)]


def compressed(rng: random.Random) -> list[int]:
    """Return a sequence of compression."""
    return [*(rng.randrange(15) for _ in range(31)), 15]


def copied(rng: random.Random) -> list[int]:
    """Return a sequence of selective copying."""
    tokens = [rng.randrange(14) for _ in range(16)]
    for _ in range(256 - 33):
        tokens.insert(rng.randrange(len(tokens)), 14)
    return [*tokens, 15, *([14] * 16)]


def seconds(call: Callable[[], Any]) -> float:
    """Return the best CPU time of three calls."""
    times = []
    for _ in range(3):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print a line for each task."""
    peers: dict[str, tuple[Callable[[random.Random], list[int]], dict[str, int]]] = {
        "in-context-recall": (recall, {}),
        "fuzzy-in-context-recall": (fuzzy, {}),
        "fuzzy-in-context-recall, 128 tokens": (lambda rng: fuzzy(rng, 128), {"vocab_size": 128}),
        "memorization": (memorized, {}),
        "compression": (compressed, {}),
        "selective-copying": (copied, {}),
    }
    print(f"{COUNT} examples, seconds".ljust(38), "ember  python")
    for name, (peer, sizes) in peers.items():
        task = name.partition(",")[0]
        ours = seconds(lambda: mad.task(task, num_train=COUNT, **sizes).arrays("train"))  # noqa: B023
        rng = random.Random(0)
        theirs = seconds(lambda: [peer(rng) for _ in range(COUNT)])  # noqa: B023
        print(f"{name:38} {ours:5.2f}  {theirs:5.2f}  {theirs / ours:5.1f}x faster")


if __name__ == "__main__":
    main()
