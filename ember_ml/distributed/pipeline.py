"""Gradients of a model whose layers are distributed to several processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.namespaces import import_module
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.distributed.engines import Part, Sums, Totals, weight_unit
from ember_ml.distributed.errors import DistributedError
from ember_ml.distributed.stage_losses import Microbatch, StageLosses
from ember_ml.distributed.values import SharedValues, rows_of
from ember_ml.distributed.world import World
from ember_ml.nn import _traversal
from ember_ml.nn._hooks import hooks_of
from ember_ml.nn.module import Module, inference_mode
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.stages import stages_of
from ember_ml.training.trainer import batches
from ember_ml.training.trainer.gradients import SUM, Gradients, LossGradients

if TYPE_CHECKING:
    from ember_ml.distributed.strategy import Strategy
    from ember_ml.training.trainer import Trainer


class PipelineEngine:
    """Gradients of the layers of this process, which is one stage of a pipeline.

    Args:
        strategy: How the processes train.
        model: The model. The values of the layers of other processes are freed.
        world: All processes.
        values: What this process has of each parameter.
        precision: Dtype of the computation.
    """

    def __init__(
        self, strategy: Strategy, model: Module, world: World, values: SharedValues, precision: str
    ) -> None:
        self._group = world.group("pp")
        self._data = world.group("data")
        self._microbatches = strategy.microbatches or self._group.size
        self._schedule = strategy.schedule
        self._stage = stages_of(model, self._group.size)[self._group.rank]
        self._free(model, values)
        units = strategy.units_of(self._stage) if world.mesh.fsdp > 1 else None
        values.wrapped = world.modules.TorchParallel(self._stage, world.topology, units, precision)
        self._modules = values.wrapped
        self._refuse = world.modules.refuse
        pipelines: Any = import_module("ember_ml.interop.torch_pipeline")
        self._pipeline = pipelines.TorchPipeline(self._modules, world.topology)
        self._ends: dict[Any, Any] = {}
        self._unit: float | None = None
        self._route(model)

    def adopt(self, trainer: Trainer) -> None:
        """Use the loss of a trainer; raise an error if it has options that a pipeline lacks."""
        if trainer.loss is None or trainer.overrides_compute():
            raise ArgumentError(
                "Trainer: a pipeline needs a loss of the model's output and the targets; pass "
                "loss=..., and do not override compute"
            )
        if trainer.train_metrics is not None:
            raise ArgumentError("Trainer: train_metrics=True does not work with a pipeline")
        self._trainer = trainer

    def _free(self, model: Module, values: SharedValues) -> None:
        """Free the values of the variables that other stages have, and freeze them."""
        own = {id(x) for _, x in _traversal.named_variables(self._stage)}
        named = _traversal.named_variables(model)
        values.local = frozenset(name for name, x in named if id(x) in own)
        for _, variable in named:
            if id(variable) in own:
                continue
            variable.become(ops.broadcast_to(ops.zeros((), dtype=variable.dtype), variable.shape))
            if isinstance(variable, Parameter):
                variable.trainable = False

    def _route(self, model: Module) -> None:
        """Let calls of the model run through all stages, and refuse those of other stages."""
        own = {id(x) for _, x in _traversal.named_variables(self._stage)}
        for module in model.modules():
            if any(id(x) not in own for _, x in _traversal.parts(module)[0]):
                hooks_of(module).around = self._refuse
        hooks_of(model).around = self._predict

    def _predict(self, model: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tensor:
        """Return the output of the model in each process, without gradients."""
        x = args[0]
        mask = args[1] if len(args) > 1 else kwargs.get("mask")
        for source in range(self._group.size):
            y = self._stage(x, mask) if source == self._group.rank else x
            (shape, dtype) = self._group.exchange([list(y.shape), y.dtype.name])[source]
            if source != self._group.rank:
                y = ops.zeros(tuple(shape), dtype=dtype)
            x = self._group.broadcast(y, source)
        return x

    def add(
        self, gradients: LossGradients, batch: object, scale: float, sums: Sums | None, last: bool
    ) -> Part:
        """Add the gradients of this process's part of a batch."""
        batch = gradients.cast_batch(batch)
        inputs, options, targets = self._arguments(batch)
        count = _divisor(inputs.shape[0], self._microbatches)
        ends, output = self._shapes(inputs, options, count)
        schedule = self._schedule if count >= self._group.size else "gpipe"
        self._unit = self._unit or self._first_unit(batch)
        rows = [rows_of((batch, *targets), number, count)[0] for number in range(count)]
        assert self._trainer.loss is not None, "adopt has checked it"
        losses = StageLosses(
            self._trainer.loss,
            gradients,
            lambda weight: self._share(weight) * scale,
            [Microbatch(*row) for row in rows],
            output,
            self._group.rank == self._group.size - 1,
        )
        self._modules.take_values()
        self._pipeline.step(inputs, options, losses, count, schedule, ends, last)
        return self._whole(losses.totals(), losses.terms)

    def _arguments(self, batch: object) -> tuple[Tensor, dict[str, Tensor], Any]:
        parts = batches.split(batch, True, self._trainer.takes_mask)
        inputs, named = parts.inputs, parts.named
        others = [name for name, x in named.items() if x is not None and name != "mask"]
        if len(inputs) != 1 or others or not isinstance(inputs[0], EmberTensor):
            raise DistributedError(
                "a pipeline takes one input and a mask; the batch has "
                f"{len(inputs)} inputs{' and ' + ', '.join(others) if others else ''}"
            )
        options = {name: x for name, x in named.items() if x is not None}
        return inputs[0], options, (parts.targets, parts.options)

    def _first_unit(self, batch: object) -> float:
        """Return a power of 2 near the weight of a batch, the same in each process."""
        return weight_unit(float(convert_to_tensor(self._trainer.weigh(batch))), self._data)

    def _share(self, weight: float) -> float:
        assert self._unit is not None, "it is set before the first loss"
        return 1.0 if weight == SUM else weight / self._unit

    def _whole(self, totals: Totals, terms: Mapping[str, float]) -> Part:
        """Return the result of all microbatches from what each stage knows of it."""
        own = [*map(float, totals), float(bool(terms))]
        loss, weight, is_sum, has_terms = self._group.sums(own)
        count = 1.0 if is_sum else weight
        named: dict[str, float] = {}
        for each in self._group.exchange(dict(terms)) if has_terms else ():
            for name, value in each.items():
                named[name] = named.get(name, 0.0) + (value / count if count else 0.0)
        return Part(loss / count if count else 0.0, SUM if is_sum else weight, None, named)

    def _shapes(
        self, inputs: Tensor, options: Mapping[str, Tensor], count: int
    ) -> tuple[Any, tuple[Sequence[int], str]]:
        """Return shape and dtype of a microbatch before and after this stage, and of the output."""
        key = (inputs.shape, inputs.dtype.name, tuple(options), count)
        if key not in self._ends:
            x, mask = rows_of((inputs, options.get("mask")), 0, count)[0]
            described: list[Any] = [[list(x.shape), x.dtype.name]]
            for source in range(self._group.size):
                y = x
                if source == self._group.rank:
                    # no random numbers, and no change of buffers
                    with inference_mode(self._stage.modules()), self._modules.reduced_precision():
                        y = self._stage(x, mask)
                described.append(self._group.exchange([list(y.shape), y.dtype.name])[source])
                shape, dtype = described[-1]
                x = ops.zeros(tuple(shape), dtype=dtype)
            before, after = described[self._group.rank : self._group.rank + 2]
            self._ends[key] = ((tuple(before), tuple(after)), tuple(described[-1]))
        return self._ends[key]

    def take(self, parameters: Sequence[Parameter], totals: Totals) -> Gradients:
        """Return the gradients of the parts of parameters that this process has."""
        taken: Gradients = self._modules.take_gradients(parameters)
        factor = totals.factor(SUM if totals.is_sum else self._unit or 1.0, self._data.size)
        return [None if g is None else g * factor for g in taken]


def _divisor(length: int, most: int) -> int:
    """Return the largest divisor of a length that is not more than a number."""
    return next(each for each in range(min(length, most), 0, -1) if length % each == 0)
