"""Decisions of the main process, before the processes train together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ember_ml.backend import get_backend
from ember_ml.distributed.environment import read_environment
from ember_ml.distributed.errors import DistributedError
from ember_ml.distributed.mesh import Mesh
from ember_ml.distributed.world import World

T = TypeVar("T")


def decided_by_main(decide: Callable[[], T]) -> T:
    """Run a function in the main process; return its plain result in all processes.

    If it raises an error, all processes do.

    Args:
        decide: The function, which may also prepare files that the others then use.
    """
    if read_environment().size == 1:
        return decide()
    world = World(Mesh(), get_backend())
    value, problem = None, None
    if world.environment.is_main:
        try:
            value = decide()
        except Exception as error:
            problem = error
    mine = {"value": value, "error": None if problem is None else str(problem)}
    answer = world.group("world").exchange(mine)[0]
    if problem is not None:
        raise problem
    if answer["error"] is not None:
        raise DistributedError(f"process 0 failed: {answer['error']}")
    result: T = answer["value"]
    return result
