"""Process groups and collectives of `torch.distributed`."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.rendezvous import rendezvous

if TYPE_CHECKING:
    from ember_ml.backend.interface import Distributed
    from ember_ml.backend.torch import distributed

    _checked: Distributed = distributed

AXES = ("pp", "dp", "fsdp", "tp")
"""Mesh axes that the backend has, the slowest first: neighbors in rank share a `tp` group."""
COMBINES_AXES = True
MODULES: str | None = "ember_ml.interop.torch_parallel"
"""Module that wraps models for the axes that need it; None if gradients are averaged instead."""
LAUNCHER: str | None = "ember_ml.backend.torch.launcher"
"""Module that starts processes."""
_CONNECTION = ("gloo", "Connection closed by peer", "Connection reset by peer", "Socket Timeout")
"""Words in the errors of collectives, which gloo raises as a RuntimeError."""


class Group(NamedTuple):
    """Processes that communicate, and the place of this one among them."""

    handle: dist.ProcessGroup
    rank: int
    size: int


class Topology(NamedTuple):
    """The mesh of all processes, and the group of each axis that this process belongs to."""

    mesh: DeviceMesh
    groups: Mapping[str, Group]
    device: torch.device


def start(rank: int, size: int, local_rank: int, timeout: float) -> str:
    """Join the other processes, and return the device of this one.

    The address of the first process is in `MASTER_ADDR` and `MASTER_PORT`.

    Args:
        rank: Number of this process.
        size: Number of processes.
        local_rank: Number of this process on its machine.
        timeout: Seconds after which a collective fails.
    """
    device = "cpu"
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank % torch.cuda.device_count())
        device = f"cuda:{torch.cuda.current_device()}"
    if not dist.is_initialized():
        limit = datetime.timedelta(seconds=timeout)
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if device != "cpu" else "gloo",
            store=_new_store(rank, size, limit),
            rank=rank,
            world_size=size,
            timeout=limit,
        )
    return device


def _new_store(rank: int, size: int, timeout: datetime.timedelta) -> dist.Store:
    """Return a store without the keys of processes that an elastic agent has restarted.

    The agent keeps its store, with the addresses of processes that have ended.
    """
    shared, _, _ = next(rendezvous("env://", rank, size, timeout=timeout))
    shared.set_timeout(timeout)
    restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return dist.PrefixStore(f"ember/{restarts}/{size}", shared)


def stop() -> None:
    """Leave the other processes."""
    _meshes.clear()
    if dist.is_initialized():
        dist.destroy_process_group()


def store() -> dist.Store:
    """Return the key-value store of all processes."""
    return dist.distributed_c10d._get_default_store()


def is_connection_error(error: Exception) -> bool:
    """Return whether an error comes from the connection to other processes."""
    if isinstance(error, dist.DistError):
        return True
    return isinstance(error, RuntimeError) and any(word in str(error) for word in _CONNECTION)


def connect(sizes: Mapping[str, int], device: str, timeout: float) -> Topology:
    """Return the groups of a mesh, with the group "data" of the axes that share a batch.

    Args:
        sizes: Length of each axis of `AXES`; their product is the number of processes.
        device: Device of this process.
        timeout: Seconds after which a collective fails.
    """
    shape = tuple(sizes[axis] for axis in AXES)
    topology = _meshes.get((shape, device))
    if topology is None or topology.groups["world"].handle is not dist.group.WORLD:
        topology = _meshes[shape, device] = _new_mesh(shape, device)
    for group in topology.groups.values():  # new groups have a default, an earlier use its own
        dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=timeout), group.handle)
    return topology


_meshes: dict[tuple[tuple[int, ...], str], Topology] = {}
"""Meshes by shape and device. The threads of a group would run until the process ends."""


def _new_mesh(shape: tuple[int, ...], device: str) -> Topology:
    """Return a mesh with new groups."""
    sizes = dict(zip(AXES, shape, strict=True))
    mesh = init_device_mesh(torch.device(device).type, shape, mesh_dim_names=AXES)
    groups = {axis: _group(mesh.get_group(axis)) for axis in AXES}
    if sizes["dp"] == 1 or sizes["fsdp"] == 1:
        groups["data"] = groups["fsdp" if sizes["dp"] == 1 else "dp"]
    else:
        groups["data"] = _group(mesh["dp", "fsdp"]._flatten("data").get_group())
    groups["world"] = _group(dist.group.WORLD)
    return Topology(mesh, groups, torch.device(device))


def _group(handle: dist.ProcessGroup) -> Group:
    return Group(handle, dist.get_rank(handle), dist.get_world_size(handle))


def all_sum(x: torch.Tensor, group: Group) -> torch.Tensor:
    """Return the sum of the tensors of all processes; no gradient flows."""
    total = x.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=group.handle)
    return total


def all_gather(x: torch.Tensor, group: Group) -> list[torch.Tensor]:
    """Return the tensors of all processes, of one shape; no gradient flows."""
    x = x.detach().contiguous()
    parts = [torch.empty_like(x) for _ in range(group.size)]
    dist.all_gather(parts, x, group=group.handle)
    return parts


def broadcast(x: torch.Tensor, source: int, group: Group) -> torch.Tensor:
    """Return the tensor of one process of the group."""
    x = x.detach().clone(memory_format=torch.contiguous_format)
    dist.broadcast(x, group=group.handle, group_src=source)
    return x


def barrier(group: Group) -> None:
    """Wait for all processes of the group."""
    dist.barrier(group.handle)


def mean_gradients(gradients: Sequence[torch.Tensor], group: Group) -> list[torch.Tensor]:
    """Return the means of the gradients of all processes, in a few large messages."""
    flat = torch._utils._flatten_dense_tensors(list(gradients))
    dist.all_reduce(flat, group=group.handle)
    flat /= group.size
    return list(torch._utils._unflatten_dense_tensors(flat, list(gradients)))


class _Reduce(torch.autograd.Function):  # type: ignore[misc]
    """Sum over the group; the gradient of each part is that of the sum."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Group) -> torch.Tensor:
        return all_sum(x, group)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, None]:
        return g, None


class _Spread(torch.autograd.Function):  # type: ignore[misc]
    """The same value in each process; its gradient is the sum of the gradients of all."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Group) -> torch.Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, None]:
        return all_sum(g, ctx.group), None


class _Gather(torch.autograd.Function):  # type: ignore[misc]
    """The parts of all processes, joined; each part has its own slice of the gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Group, axis: int) -> torch.Tensor:
        ctx.group, ctx.axis, ctx.length = group, axis, x.shape[axis]
        return torch.cat(all_gather(x, group), dim=axis)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        part = g.narrow(ctx.axis, ctx.group.rank * ctx.length, ctx.length)
        return part.contiguous(), None, None


def reduce(x: torch.Tensor, group: Group) -> torch.Tensor:
    """Return the sum over the group; gradients pass unchanged."""
    return _Reduce.apply(x, group)


def spread(x: torch.Tensor, group: Group) -> torch.Tensor:
    """Return the value, which is the same in each process; gradients are summed."""
    return _Spread.apply(x, group)


def gather(x: torch.Tensor, group: Group, axis: int) -> torch.Tensor:
    """Return the parts of all processes, joined along an axis; gradients are sliced."""
    return _Gather.apply(x, group, axis)
