"""Groups and collectives of `mx.distributed`.

Collectives are lazy: each process must evaluate them, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import mlx.core as mx
import mlx.nn

if TYPE_CHECKING:
    from ember_ml.backend.interface import Distributed
    from ember_ml.backend.mlx import distributed

    _checked: Distributed = distributed

AXES = ("dp", "tp")
"""Mesh axes that the backend has. The ring has no parts of groups, and no reduce-scatter."""
COMBINES_AXES = False
MODULES: str | None = None
"""Module that wraps models for the axes that need it; None if gradients are averaged instead."""
LAUNCHER: str | None = "ember_ml.backend.mlx.launcher"
"""Module that starts processes."""


class Group(NamedTuple):
    """Processes that communicate, and the place of this one among them."""

    handle: Any
    rank: int
    size: int


class Topology(NamedTuple):
    """The group of each axis that this process belongs to."""

    groups: Mapping[str, Group]


_ALONE = Group(None, 0, 1)


def start(rank: int, size: int, local_rank: int, timeout: float) -> str:
    """Join the other processes, and return the device of this one.

    Args:
        rank: Number of this process.
        size: Number of processes.
        local_rank: Number of this process on its machine.
        timeout: Seconds after which a collective fails; not used by MLX.
    """
    world = mx.distributed.init(strict=True)
    if (world.rank(), world.size()) != (rank, size):
        raise RuntimeError(
            f"mx.distributed is process {world.rank()} of {world.size()}, but the environment "
            f"says {rank} of {size}"
        )
    return "cpu" if mx.default_device().type == mx.DeviceType.cpu else "gpu"


def stop() -> None:
    """Do nothing: MLX closes its connections when the process ends."""


def store() -> None:
    """Return None: MLX has no key-value store."""
    return


def is_connection_error(error: Exception) -> bool:
    """Return whether an error comes from the connection to other processes."""
    return isinstance(error, RuntimeError) and "[ring]" in str(error)


def connect(sizes: Mapping[str, int], device: str, timeout: float) -> Topology:
    """Return the groups of a mesh, of which one axis at most is longer than 1.

    Args:
        sizes: Length of each axis.
        device: Device of this process.
        timeout: Seconds after which a collective fails; not used by MLX.
    """
    handle = mx.distributed.init(strict=True)
    world = Group(handle, handle.rank(), handle.size())
    groups = {axis: world if size > 1 else _ALONE for axis, size in sizes.items()}
    groups["data"] = groups["dp"]
    groups["world"] = world
    return Topology(groups)


def all_sum(x: mx.array, group: Group) -> mx.array:
    """Return the sum of the arrays of all processes; no gradient flows."""
    return x if group.size == 1 else mx.distributed.all_sum(mx.stop_gradient(x), group=group.handle)


def all_gather(x: mx.array, group: Group) -> list[mx.array]:
    """Return the arrays of all processes, of one shape; no gradient flows."""
    if group.size == 1:
        return [x]
    joined = mx.distributed.all_gather(mx.stop_gradient(x)[None], group=group.handle)
    return [joined[at] for at in range(group.size)]


def broadcast(x: mx.array, source: int, group: Group) -> mx.array:
    """Return the array of one process of the group."""
    return all_gather(x, group)[source]


def barrier(group: Group) -> None:
    """Wait for all processes of the group."""
    mx.eval(all_sum(mx.zeros(1), group))


def mean_gradients(gradients: Sequence[mx.array], group: Group) -> list[mx.array]:
    """Return the means of the gradients of all processes, in a few large messages."""
    averaged: list[mx.array] = mlx.nn.average_gradients(list(gradients), group=group.handle)
    return averaged


def reduce(x: mx.array, group: Group) -> mx.array:
    """Return the sum over the group; gradients pass unchanged."""
    if group.size == 1:
        return x
    return _differentiable(lambda x: all_sum(x, group), lambda g: g)(x)


def spread(x: mx.array, group: Group) -> mx.array:
    """Return the value, which is the same in each process; gradients are summed."""
    if group.size == 1:
        return x
    return _differentiable(lambda x: x, lambda g: all_sum(g, group))(x)


def gather(x: mx.array, group: Group, axis: int) -> mx.array:
    """Return the parts of all processes, joined along an axis; gradients are sliced."""
    if group.size == 1:
        return x
    return _differentiable(
        lambda x: mx.concatenate(all_gather(x, group), axis=axis),
        lambda g: mx.split(g, group.size, axis=axis)[group.rank],
    )(x)


def _differentiable(
    forward: Callable[[mx.array], mx.array], pullback: Callable[[mx.array], mx.array]
) -> Callable[[mx.array], mx.array]:
    """Return a function of one array with a gradient of its own."""
    function = mx.custom_function(forward)
    function.vjp(lambda primals, cotangent, output: pullback(cotangent))
    return function
