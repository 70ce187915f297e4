"""Strategies: how several processes train a model together."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs import Config
from ember_ml.configs.fields import Positive, Size
from ember_ml.distributed.environment import Environment, read_environment
from ember_ml.distributed.layout import Layout
from ember_ml.distributed.mesh import Mesh, mesh_of
from ember_ml.distributed.run import ParallelRun
from ember_ml.distributed.world import TIMEOUT
from ember_ml.nn.blocks import Block
from ember_ml.nn.module import Module
from ember_ml.nn.sequential import Sequential
from ember_ml.nn.splitting import Split
from ember_ml.registry import register
from ember_ml.registry.base import close_matches

Schedule = Literal["gpipe", "1f1b"]
LayoutLike: TypeAlias = Layout | Mapping[str, int | Split]
"""A layout, or its patterns."""


class Strategy:
    """How several processes train a model together: base class of the strategies.

    Pass it to `Trainer(strategy=...)`. Each process runs the same script; a launcher such as
    `ember launch`, torchrun, SLURM or mlx.launch starts them.

    Args:
        mesh: The processes, arranged by what they share. Default: all replicate the model.
        layout: Parameters to split in a `tp` group in addition to those that the layers split:
            {pattern: axis}, or a `Layout`.
        units: Patterns of names of modules whose parameters are gathered together if `fsdp` shards
            them. Default: the layers of blocks.
        microbatches: Number of parts of a batch that go through a pipeline. Default: `pp`.
        schedule: Order of the parts in a pipeline: all forward passes first ("gpipe"), or backward
            passes as soon as possible, which needs less memory ("1f1b").
        find_unused: Whether a batch may leave parameters unused, which costs time in `dp`.
        timeout: Seconds after which a process that waits for another one fails.

    Example:
        >>> from ember_ml.distributed import Mesh, Strategy
        >>> Strategy(Mesh(fsdp=2, tp=2))
        Strategy(fsdp=2, tp=2)
    """

    config: Config | None = None
    """The config it was built from, if its class is registered."""

    def __init__(
        self,
        mesh: Mesh | Mapping[str, int] | None = None,
        layout: LayoutLike | None = None,
        units: Sequence[str] | None = None,
        microbatches: int | None = None,
        schedule: Schedule = "1f1b",
        find_unused: bool = False,
        timeout: float = TIMEOUT,
    ) -> None:
        if not timeout > 0:
            raise ArgumentError(
                f"{type(self).__name__}: timeout must be more than 0, not {timeout}"
            )
        self.mesh = mesh_of(mesh)
        self.layout = _layout(layout)
        self.units = None if units is None else tuple(units)
        self.microbatches = microbatches
        self.schedule = schedule
        self.find_unused = find_unused
        self.timeout = timeout

    def __repr__(self) -> str:
        axes = dataclasses.asdict(self.mesh).items()
        inside = ", ".join(f"{axis}={size}" for axis, size in axes if size not in (None, 1))
        return f"{type(self).__name__}({inside})"

    @property
    def environment(self) -> Environment:
        """Place of this process among those that a launcher started."""
        return read_environment()

    @property
    def num_devices(self) -> int:
        """Number of processes that share a batch."""
        return self.mesh.on(self.environment.size).data

    def distribute(self, batch: TensorLike) -> list[Tensor]:
        """Return the parts of a batch, one for each process that shares it.

        Args:
            batch: Tensor whose first axis is the example; its length must be divisible by
                `num_devices`.

        Example:
            >>> from ember_ml.distributed import DataParallelStrategy
            >>> [part.shape for part in DataParallelStrategy().distribute(ops.ones((4, 2)))]
            [(4, 2)]
        """
        return ops.split(convert_to_tensor(batch), self.num_devices)

    def setup(self, model: Module, precision: str = "float32") -> ParallelRun:
        """Join the other processes, and turn the model's parameters into the parts of this one.

        `Trainer` calls it.

        Args:
            model: The model.
            precision: Dtype of the computation.
        """
        return ParallelRun(self, model, precision)

    def describe(self) -> dict[str, Any]:
        """Return the settings as plain data, to compare them between processes."""
        layout = None if self.layout is None else repr(self.layout)
        mesh = dataclasses.asdict(self.mesh)
        settings = (self.units, self.microbatches, self.schedule, self.find_unused)
        return {"mesh": mesh, "layout": layout, "settings": [repr(x) for x in settings]}

    def units_of(self, model: Module) -> list[Module]:
        """Return the modules whose parameters are gathered together, the innermost first.

        Args:
            model: The model.
        """
        named = {name: module for name, module in model.named_modules() if module is not model}
        if self.units is None:
            layers = [layer for each in model.modules() for layer in _layers(each)]
            return [layer for layer in dict.fromkeys(layers) if layer.parameters()][::-1]
        for pattern in self.units:
            if not any(fnmatch.fnmatchcase(name, pattern) for name in named):
                raise ArgumentError(
                    f"{type(self).__name__}: no module matches the unit {pattern!r}"
                    f"{close_matches(pattern, named)}"
                )
        return [
            module
            for name, module in reversed(named.items())
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in self.units)
        ]


def _layers(module: Module) -> Sequence[Module]:
    """Return the layers of a block or of a sequence of modules."""
    if isinstance(module, Block):
        return module.layers
    return list(module.children()) if isinstance(module, Sequential) else ()


def _layout(layout: LayoutLike | None) -> Layout | None:
    """Return the layout of patterns; None for none."""
    if layout is None or isinstance(layout, Layout):
        return layout
    return Layout(layout)


@register("strategies/mesh", config_name="MeshStrategyConfig")
class MeshStrategy(Strategy):
    """Any combination of axes, such as `fsdp` x `tp` or `dp` x `pp`.

    Args:
        mesh: Length of each axis: {"fsdp": 2, "tp": 2}. `dp` is what they leave of the processes.
        layout: As in `Strategy`.
        units: As in `Strategy`.
        microbatches: As in `Strategy`.
        schedule: As in `Strategy`.
        find_unused: As in `Strategy`.
        timeout: As in `Strategy`.
    """

    def __init__(
        self,
        mesh: dict[str, Size],
        layout: dict[str, int] | None = None,
        units: tuple[str, ...] | None = None,
        microbatches: Size | None = None,
        schedule: Schedule = "1f1b",
        find_unused: bool = False,
        timeout: Positive = TIMEOUT,
    ) -> None:
        super().__init__(mesh, layout, units, microbatches, schedule, find_unused, timeout)


@register("strategies/dp", aliases=("ddp", "data_parallel"))
class DataParallelStrategy(Strategy):
    """Data parallel training: each process has the whole model and a part of each batch.

    On torch, DDP averages the gradients while they are computed.

    Args:
        find_unused: As in `Strategy`.
        timeout: As in `Strategy`.
    """

    def __init__(self, find_unused: bool = False, timeout: Positive = TIMEOUT) -> None:
        super().__init__(None, find_unused=find_unused, timeout=timeout)


@register("strategies/fsdp", config_name="FSDPStrategyConfig")
class FSDPStrategy(Strategy):
    """Fully sharded data parallel training: parameters, gradients and states are shared too.

    Each process has a part of each parameter. FSDP2 of torch gathers those of a unit before its
    forward and backward pass, and frees them afterwards.

    Args:
        dp: Number of replicas, each shared by the other processes. Default: 1.
        tp: Number of processes that split the layers in addition. Default: 1.
        layout: As in `Strategy`.
        units: As in `Strategy`.
        timeout: As in `Strategy`.
    """

    def __init__(
        self,
        dp: Size = 1,
        tp: Size = 1,
        layout: dict[str, int] | None = None,
        units: tuple[str, ...] | None = None,
        timeout: Positive = TIMEOUT,
    ) -> None:
        rest = max(1, read_environment().size // (dp * tp))
        super().__init__(Mesh(dp, fsdp=rest, tp=tp), layout, units, timeout=timeout)


@register("strategies/tp", aliases=("tensor_parallel",), config_name="TensorParallelStrategyConfig")
class TensorParallelStrategy(Strategy):
    """Tensor parallel training: the processes split the heads, channels and experts of layers.

    Each process has the whole batch.

    Args:
        dp: Number of replicas, each split by the other processes. Default: 1.
        layout: As in `Strategy`.
        timeout: As in `Strategy`.
    """

    def __init__(
        self,
        dp: Size = 1,
        layout: dict[str, int] | None = None,
        timeout: Positive = TIMEOUT,
    ) -> None:
        rest = max(1, read_environment().size // dp)
        super().__init__(Mesh(dp, tp=rest), layout, timeout=timeout)


@register("strategies/pp", aliases=("pipeline",), config_name="PipelineStrategyConfig")
class PipelineStrategy(Strategy):
    """Pipeline parallel training: each process has some of the layers, one after the other.

    Args:
        dp: Number of replicas, each a pipeline of the other processes. Default: 1.
        microbatches: As in `Strategy`.
        schedule: As in `Strategy`.
        timeout: As in `Strategy`.
    """

    def __init__(
        self,
        dp: Size = 1,
        microbatches: Size | None = None,
        schedule: Schedule = "1f1b",
        timeout: Positive = TIMEOUT,
    ) -> None:
        rest = max(1, read_environment().size // dp)
        mesh = Mesh(dp, pp=rest)
        super().__init__(mesh, microbatches=microbatches, schedule=schedule, timeout=timeout)
