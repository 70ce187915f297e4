"""Random numbers of processes that train together."""

from __future__ import annotations

import json
import zlib
from typing import Any

from ember_ml import ops


def start_random_stream(state: Any, rank: int) -> None:
    """Set the random state of a process: a stream of its own for each part of a batch.

    Args:
        state: Random state of the first process.
        rank: Number of this process among those that share batches. The first one continues with
            the state.
    """
    if rank:
        ops.random.set_seed(zlib.crc32(json.dumps(state).encode()) + rank)
    else:
        ops.random.set_state(state)
