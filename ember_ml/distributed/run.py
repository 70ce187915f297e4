"""Processes that train one model together."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, native_arrays
from ember_ml.configs import Config
from ember_ml.data import DataLoader
from ember_ml.distributed import checkpoints, values
from ember_ml.distributed.engines import AveragingEngine, Engine, WrappingEngine, mean_buffers
from ember_ml.distributed.errors import DistributedError
from ember_ml.distributed.random_streams import start_random_stream
from ember_ml.distributed.split_report import SplitReport
from ember_ml.distributed.stepping import ParallelRunner
from ember_ml.distributed.tensor_parallel import split_model, take_values_of_first
from ember_ml.distributed.values import SharedValues
from ember_ml.distributed.world import World
from ember_ml.nn import _traversal
from ember_ml.nn.checkpoint import PARTIAL, config_dict
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Parameter
from ember_ml.training.metrics import Metric
from ember_ml.training.optimizer.groups import ParametersLike
from ember_ml.training.optimizer.plan import kernels
from ember_ml.training.trainer import sources
from ember_ml.training.trainer.gradients import Gradients
from ember_ml.training.trainer.interrupt import Interrupt

if TYPE_CHECKING:
    from ember_ml.distributed.strategy import Strategy
    from ember_ml.training.trainer import Trainer


_PARTIAL_REASON = (
    "save: several processes share the parameters of this model; call trainer.save in all of them"
)


class ParallelRun:
    """Processes that train one model together, as a trainer uses them.

    Args:
        strategy: How they train.
        model: The model. Its parameters become the parts that this process has.
        precision: Dtype of the computation.

    Attributes:
        world: All processes.
        model: The model.
        engine: Computes the gradients.
        report: What a `tp` group has split; None without one.
        values: What this process has of each parameter.
        is_main: Whether this process writes logs and files that all processes share.
        interrupt: Signals that this process has received.
        agreed_signal: Signal that any process had received before the last step.
    """

    def __init__(self, strategy: Strategy, model: Module, precision: str = "float32") -> None:
        parameters = model.parameters()
        if not parameters:
            raise ArgumentError(f"{type(model).__name__} has no parameters to train")
        if PARTIAL in vars(model):
            raise ArgumentError(
                f"{type(model).__name__}: another trainer has divided this model among processes; "
                "use that trainer, or create the model again"
            )
        self.model = model
        self.world = World(strategy.mesh, parameters[0].backend, strategy.timeout)
        self.is_main = self.world.environment.is_main
        self.interrupt: Interrupt | None = None
        self.agreed_signal: int | None = None
        self.report: SplitReport | None = None
        self._data = self.world.group("data")
        self._kept_buffers: list[Tensor] = []
        if self.world.watch is not None:
            self.world.watch.is_stopping = self._is_stopping
        self._place(strategy)
        self.values = SharedValues(model, self.world)
        self.engine = self._engine(strategy, precision)
        if self.values.is_partial:
            for module in model.modules():
                module.__dict__[PARTIAL] = _PARTIAL_REASON

    def _place(self, strategy: Strategy) -> None:
        """Give all processes the values and random streams of the first one."""
        world, model = self.world, self.model
        if world.environment.size == 1:
            return
        world.check_same("the strategy", strategy.describe())
        variables = _traversal.named_variables(model)
        shapes = {name: [list(x.shape), x.dtype.name] for name, x in variables}
        world.check_same("the model", {"config": config_dict(model), "variables": shapes})
        model.to(device=world.device)
        take_values_of_first(model, world.group("world"))
        start_random_stream(self.choice(ops.random.get_state()), self._data.rank)

    def _engine(self, strategy: Strategy, precision: str) -> Engine:
        world, mesh = self.world, self.world.mesh
        if mesh.tp > 1:
            report = split_model(self.model, world.group("tp"), strategy.layout)
            self.values.splits = {**report.splits, **report.buffers}
            self.report = report
        elif strategy.layout is not None:
            strategy.layout.splits(self.model.named_parameters())  # raises for a wrong pattern
        if mesh.pp > 1:
            from ember_ml.distributed.pipeline import PipelineEngine

            return PipelineEngine(strategy, self.model, world, self.values, precision)
        if mesh.data == 1 or world.modules is None:
            return AveragingEngine(self._data)
        units = strategy.units_of(self.model) if mesh.fsdp > 1 else None
        wrapped = world.modules.TorchParallel(
            self.model, world.topology, units, precision, strategy.find_unused
        )
        self.values.wrapped = wrapped
        return WrappingEngine(wrapped, self._data)

    @property
    def local_names(self) -> frozenset[str] | None:
        """Names of the variables that this process has; None for all."""
        return self.values.local

    def describe(self) -> str:
        """Return the number of processes and what they share, such as "2 processes, fsdp=2"."""
        axes = [f"{axis}={size}" for axis, size in self.world.mesh.sizes().items() if size > 1]
        size = self.world.environment.size
        return ", ".join([f"{size} process{'es' if size > 1 else ''}", *axes])

    def trained(self, model: Module) -> ParametersLike:
        """Return the parameters that the optimizer of this process updates."""
        return list(self.values.named_parameters())

    def adopt(self, trainer: Trainer) -> None:
        """Prepare the optimizer of a trainer for parts of parameters."""
        self.engine.adopt(trainer)
        optimizer = trainer.optimizer
        optimizer.in_place = self.values.wrapped is not None
        if self.values.is_partial and not optimizer.ELEMENTWISE:
            optimizer.sharing = values.OptimizerSharing(self.values)
        self.world.check_same("the config of the trainer", _plain(trainer.config))

    def runner(self, trainer: Trainer) -> ParallelRunner:
        """Return the step of a trainer."""
        return ParallelRunner(trainer, self)

    def part_of(self, loader: DataLoader) -> DataLoader:
        """Return the loader of this process's part of each batch."""
        if self._data.size == 1:
            return loader
        has_batches = isinstance(loader.dataset, sources.BatchList)
        if has_batches or isinstance(loader, sources.BatchLoader):
            return loader.selecting(self._checked_part)
        return loader.sharded(self._data.rank, self._data.size)

    def _checked_part(self, batch: Any) -> Any:
        part, counts = self.part(batch)
        if not self._data.sums([float(counts)])[0] == self._data.size:
            raise DistributedError(
                f"a batch has fewer examples than the {self._data.size} processes that share it"
            )
        return part

    def part(self, batch: Any) -> tuple[Any, bool]:
        """Return this process's part of a batch, and whether it counts.

        If a batch has fewer examples than there are processes, some of them compute with an example
        of another one, which does not count.

        Args:
            batch: A batch of all processes.
        """
        return values.rows_of(batch, self._data.rank, self._data.size)

    def merge(self, metrics: Sequence[Metric]) -> None:
        """Add the batches of the other processes to metrics."""
        if self._data.size == 1:
            return
        states = self._data.exchange([metric.state_dict() for metric in metrics])
        for at, metric in enumerate(metrics):
            counted = [state[at] for state in states if state[at]["counters"]]
            metric.reset()
            for state in counted:
                other = type(metric).__new__(type(metric))
                other.__dict__.update(metric.__dict__)
                other.load_state_dict(state)
                metric.merge(other)

    def sums(self, values: Sequence[float]) -> list[float]:
        """Return the sums of numbers over the processes that share batches."""
        everyone = self.world.group("world")
        copies = everyone.size / self._data.size
        return [total / copies for total in everyone.sums(values)]

    def choice(self, value: Any) -> Any:
        """Return the plain data of the main process."""
        return self.world.group("world").exchange(value)[0]

    def norm(self, parameters: list[Parameter], gradients: Gradients) -> float:
        """Return the norm of the gradients of all processes together."""
        present = [(p, g) for p, g in zip(parameters, gradients, strict=True) if g is not None]
        if not self.values.is_partial:
            return self._local_norm([g for _, g in present])
        counted: dict[int, list[Tensor]] = {}
        for parameter, gradient in present:
            copies = self.values.copies(parameter)
            counted.setdefault(copies, []).extend(self.values.distinct(parameter, gradient))
        total = sum(self._local_norm(alike) ** 2 / copies for copies, alike in counted.items())
        squares = self.world.group("world").sums([total])[0]
        return squares**0.5 if squares >= 0 else squares

    def _local_norm(self, gradients: list[Tensor]) -> float:
        if not gradients:
            return 0.0
        k = kernels(self.world.backend)
        parts = k.norm_parts(native_arrays(gradients))
        ops.synchronize(*gradients)
        return float(k.read_norm(parts))

    def during(self, what: str, step: int | None = None) -> AbstractContextManager[None]:
        """Return a context that explains which process hangs or has ended if a collective fails.

        Args:
            what: What the block does.
            step: Number of the step that it is a part of. Default: the current one.
        """
        watch = self.world.watch
        if watch is None:
            return contextlib.nullcontext()
        if step is not None:
            watch.start_step(step)
        return watch.during(what)

    def _is_stopping(self) -> bool:
        return self.interrupt is not None and self.interrupt.requested

    def average_buffers(self) -> None:
        """Average the buffers over the processes that share batches."""
        if self._data.size > 1 and self.values.buffers:
            mean_buffers(self.values.buffers, self._data)

    def keep_buffers(self) -> None:
        """Remember the values of the buffers before a step."""
        self._kept_buffers = [ops.copy(buffer.value()) for buffer in self.values.buffers]

    def restore_buffers(self) -> None:
        """Set the buffers to their values before the step."""
        for buffer, value in zip(self.values.buffers, self._kept_buffers, strict=True):
            buffer.assign(value)

    @contextlib.contextmanager
    def evaluated(self) -> Iterator[None]:
        """Return a context in which calls of the model use the current values of its parameters."""
        wrapped = self.values.wrapped
        current = contextlib.nullcontext() if wrapped is None else wrapped.evaluated()
        with self.during("evaluation"), current:
            yield

    def save(self, trainer: Trainer, path: str | os.PathLike[str]) -> None:
        """Save a checkpoint, together with the other processes."""
        with self.during("save", trainer.step):
            checkpoints.save(self, trainer, path)

    def resume(self, trainer: Trainer, path: str | os.PathLike[str]) -> None:
        """Load a checkpoint, together with the other processes."""
        with self.during("resume"):
            checkpoints.resume(self, trainer, path)


def _plain(config: Config) -> Any:
    """Return a config as JSON reads it back; objects without a config are their class names."""

    def describe(value: Any) -> Any:
        own = value if isinstance(value, Config) else getattr(value, "config", None)
        name = type(value).__name__
        return {"type": name, **dict(own)} if isinstance(own, Config) else name

    return json.loads(json.dumps(config, default=describe))
