"""Collectives at the borders of split layers."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.distributed.world import Group
from ember_ml.nn import Module
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import Region, TensorSplit


class GroupRegion(Region):
    """Part of a layer that the processes of a group compute together.

    Args:
        group: The processes.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.size = group.size

    def __deepcopy__(self, memo: dict[int, Any]) -> GroupRegion:
        return self  # a copy of a layer belongs to the same processes

    def enter(self, x: Tensor) -> Tensor:
        """Return a value that all processes have, for use in the region."""
        return self.group.spread(x) if x.dtype.is_floating else x

    def leave(self, x: Tensor) -> Tensor:
        """Return the sum of the processes' values, for use outside of the region."""
        return self.group.reduce(x)

    def join(self, x: Tensor) -> Tensor:
        """Return the processes' values, joined along the last axis, for use outside."""
        return self.group.gather(x, x.ndim - 1)

    def once(self, parameter: Tensor) -> Tensor:
        """Return a value whose sum over the processes is the parameter.

        The first process has the parameter, the others have zeros; each has the whole gradient.
        """
        factor = 0.0 if self.group.rank == 0 else -1.0  # the same program in each process
        return parameter + ops.stop_gradient(parameter) * factor

    def with_kept(self, parameter: Tensor, split: Split) -> Tensor:
        """Return a parameter whose kept blocks, which all processes have, enter the region."""
        blocks = enumerate(split.blocks_of(parameter, self.size))
        return ops.concat(
            [self.enter(block) if at in split.kept else block for at, block in blocks],
            axis=split.axis,
        )

    def whole(self, parameter: Tensor, split: Split) -> Tensor:
        """Return the whole parameter, gathered from the processes."""
        joined = self.group.gather(parameter, split.axis)
        return split.whole(ops.split(joined, self.size, axis=split.axis))


def add_borders(layer: Module, split: TensorSplit, region: GroupRegion) -> None:
    """Connect the parts of a layer: hooks of its modules call the region.

    Args:
        layer: The layer, which has its parts of the parameters.
        split: How it is split.
        region: The region.
    """
    named = dict(layer.named_modules())
    for name in split.enter:
        named[name].register_forward_pre_hook(_entering(region))
    for names, apply in (
        (split.leave, region.leave),
        (split.total, region.total),
        (split.join, region.join),
    ):
        for name in names:
            named[name].register_forward_hook(_leaving(apply))
    for name in split.regions:
        named[name].region = region


def _entering(region: GroupRegion) -> Any:
    def hook(module: Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if not args or not isinstance(args[0], EmberTensor):
            raise ArgumentError(
                f"{type(module).__name__}: pass the input of a split layer as the first positional "
                "argument"
            )
        return (region.enter(args[0]), *args[1:])

    return hook


def _leaving(apply: Any) -> Any:
    def hook(module: Module, args: tuple[Any, ...], output: Any) -> Any:
        if isinstance(output, tuple):
            return (apply(output[0]), *output[1:])
        return apply(output)

    return hook
