"""Meshes of processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.distributed.errors import DistributedError

AXES = ("pp", "dp", "fsdp", "tp")
"""All axes of a mesh, the slowest first: neighbors in rank share a `tp` group."""


@dataclasses.dataclass(frozen=True)
class Mesh:
    """Processes, arranged by what they share.

    Args:
        dp: Number of replicas of the model, which share a batch. Default: what the other axes
            leave of the processes.
        fsdp: Number of processes that share a batch, the parameters, their gradients and the
            state of the optimizer.
        tp: Number of processes that split the layers.
        pp: Number of processes that the layers are distributed to, one stage each.

    Example:
        >>> from ember_ml.distributed import Mesh
        >>> Mesh(fsdp=2, tp=2).size
        4
    """

    dp: int | None = None
    fsdp: int = 1
    tp: int = 1
    pp: int = 1

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if name == "dp" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ArgumentError(
                    f"Mesh: {name} must be an integer of at least 1, not {value!r:.60}"
                )

    @property
    def size(self) -> int:
        """Number of processes; without `dp`, that of one replica."""
        return (self.dp or 1) * self.fsdp * self.tp * self.pp

    @property
    def data(self) -> int:
        """Number of processes that share a batch."""
        return (self.dp or 1) * self.fsdp

    def sizes(self) -> dict[str, int]:
        """Return the length of each axis."""
        return {axis: getattr(self, axis) or 1 for axis in AXES}

    def on(self, processes: int) -> Mesh:
        """Return the mesh with all axes known; raise an error if it does not fit.

        Args:
            processes: Number of processes.
        """
        mesh = self
        if self.dp is None:
            mesh = dataclasses.replace(self, dp=max(1, processes // self.size))
        if mesh.size != processes:
            axes = " x ".join(f"{axis}={size}" for axis, size in mesh.sizes().items() if size > 1)
            raise DistributedError(
                f"the mesh ({axes or 'dp=1'}) has {mesh.size} processes, but {processes} were "
                f"started; start {mesh.size}, such as with `ember launch --nproc {mesh.size}`, or "
                "change the mesh"
            )
        return mesh


def mesh_of(value: object) -> Mesh:
    """Return a mesh for a mesh, a mapping of axes to lengths, or None.

    Args:
        value: The mesh in any of these forms.
    """
    if isinstance(value, Mesh):
        return value
    if value is None:
        return Mesh()
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(
            f"mesh must be a Mesh or a mapping such as {{'fsdp': 2, 'tp': 2}}, not {value!r:.60}"
        )
    unknown = [name for name in value if name not in AXES]
    if unknown:
        raise ArgumentError(
            f"a mesh has no axis {unknown[0]!r:.60}; its axes are {', '.join(AXES)}"
        )
    return Mesh(**value)
