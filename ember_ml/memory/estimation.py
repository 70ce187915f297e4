"""Estimate and measurement of the memory of a training step."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import Any

from ember_ml._core import runtime, tree
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import EmberTensor
from ember_ml.memory.growth import Growth, are_aligned, scaled_to
from ember_ml.memory.op_outputs import output_bytes
from ember_ml.memory.recording import record_step
from ember_ml.memory.report import MemoryReport
from ember_ml.nn.module import Module
from ember_ml.training.trainer import Trainer
from ember_ml.training.tuning.preserved import preserved

MAX_BATCH = 2**24
"""Largest batch size that a search considers."""
REPRESENTATIVE = 128 * 10**6
"""Memory of a step, in bytes, from which its kernels are those of larger steps."""
_FEW = 2
"""Number of examples of the first step of an estimate."""


@dataclass(frozen=True)
class Estimate(MemoryReport):
    """Estimate of the memory of a training step, also for other batch sizes."""

    growth: Growth | None = field(default=None, repr=False)
    shares: dict[str, int] | None = field(default=None, repr=False)

    def for_batch(self, batch_size: int) -> Estimate:
        """Return the estimate for another batch size.

        Args:
            batch_size: Number of examples of a batch.
        """
        assert self.growth is not None
        fixed = self.parameters + self.optimizer_state
        peak = self.growth.peak(batch_size)
        activations = self.growth.kept_by_layer(batch_size)
        if self.shares is not None:
            activations = scaled_to(max(0, peak - self.gradients), self.shares)
        return Estimate(
            self.parameters,
            self.gradients,
            self.optimizer_state,
            activations,
            fixed + peak,
            batch_size,
            self.backend,
            growth=self.growth,
            shares=self.shares,
        )

    def largest_batch(self, limit: int) -> int:
        """Return the largest batch size whose peak is at most `limit` bytes; 0 if none fits.

        Args:
            limit: Number of bytes.
        """
        low, high = 0, 1
        while high <= MAX_BATCH and self.for_batch(high).peak <= limit:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.for_batch(middle).peak <= limit else (low, middle)
        return low


def estimate(model: Module | Trainer, batch: object, **options: Any) -> Estimate:
    """Return an estimate of the memory of a training step, from steps with small parts of a batch.

    Two steps with parts of the batch are recorded; the sizes of all arrays are linear functions of
    the batch size. A batch that needs little memory is run as a whole. The model and the trainer
    are unchanged afterwards.

    Args:
        model: The model, or a trainer.
        batch: A batch of the data, as `Trainer` takes it; its first axis is the example.
        options: Options of `Trainer`, such as `optimizer`, `loss`, `remat` and `precision`.

    Example:
        >>> model = nn.models.LanguageModel("attention swiglu", 8, 16)
        >>> tokens = ops.zeros((64, 32), dtype="int64")
        >>> report = ember_ml.memory.estimate(model, (tokens, tokens), optimizer="sgd")
        >>> report.parameters == report.gradients == model.num_bytes()
        True
        >>> report.for_batch(128).peak > report.peak
        True
    """
    trainer = _trainer("estimate", model, options)
    size = _batch_size("estimate", batch)
    meter = runtime.load(trainer.backend).memory
    gc.collect()
    with preserved(trainer):
        growth, part = _extrapolated(trainer, batch, size)
        shares = None if meter.SEES_MARKS else output_bytes(trainer, _rows(batch, part))
        return _report(trainer, size, growth, shares).for_batch(size)


def measure(model: Module | Trainer, batch: object, **options: Any) -> MemoryReport:
    """Return the memory of a training step, measured by the counts of the backend's allocator.

    The model and the trainer are unchanged afterwards.

    Args:
        model: The model, or a trainer.
        batch: A batch of the data.
        options: Options of `Trainer`.
    """
    trainer = _trainer("measure", model, options)
    size = _batch_size("measure", batch)
    meter = runtime.load(trainer.backend).memory
    gc.collect()
    with preserved(trainer):
        changes = record_step(trainer, batch)
        shares = None if meter.SEES_MARKS else output_bytes(trainer, batch)
        growth = Growth(changes, changes, (size, size))
        result = _report(trainer, size, growth, shares).for_batch(size)
    return MemoryReport(**{**_fields(result), "is_measured": True})


def _fields(report: MemoryReport) -> dict[str, Any]:
    return {name: getattr(report, name) for name in MemoryReport.__dataclass_fields__}


def _report(trainer: Trainer, size: int, growth: Growth, shares: dict[str, int] | None) -> Estimate:
    model = trainer.model
    copies = 1 if trainer.ema is None else 2
    trainable = [x for x in trainer.optimizer.parameters if x.trainable]
    return Estimate(
        parameters=copies * model.num_bytes(),
        gradients=sum(x.nbytes for x in trainable),
        optimizer_state=trainer.optimizer.state_bytes(),
        activations={},
        peak=0,
        batch_size=size,
        backend=trainer.backend,
        growth=growth,
        shares=shares,
    )


def _extrapolated(trainer: Trainer, batch: object, size: int) -> tuple[Growth, int]:
    """Return the growth during a step, from steps with parts of a batch, and the smallest part.

    Backends choose other kernels for small arrays. The parts are therefore as large as needs
    `REPRESENTATIVE` bytes. If the batch needs less, the larger part is the whole batch.
    """
    few = min(_FEW, size)
    first = record_step(trainer, _rows(batch, few))
    per_example = max(1, Growth(first, first, (few, few)).peak(few) // few)
    meter = runtime.load(trainer.backend).memory
    part, more = _parts(size, REPRESENTATIVE // per_example, meter.SEES_ALLOCATIONS)
    first = first if part == few else record_step(trainer, _rows(batch, part))
    second = record_step(trainer, _rows(batch, more))
    if part == more or not are_aligned(first, second):
        first, part = [each._replace(change=0, peak=0) for each in second], 0
    return Growth(first, second, (part, more)), max(1, part)


def _parts(size: int, enough: int, is_exact: bool) -> tuple[int, int]:
    """Return two numbers of examples to extrapolate from.

    Args:
        size: Number of examples of the batch.
        enough: Number of examples whose step is representative.
        is_exact: Whether recordings are exact. Otherwise the parts differ more, because the
            differences between two recordings are multiplied.
    """
    if size <= max(_FEW + 1, enough):
        return max(1, 2 * size // 3 if is_exact else size // 4), size
    part = min(max(_FEW, enough), size // 2 if is_exact else size // 4)
    return part, part + max(1, part // 2 if is_exact else 2 * part)


def _rows(batch: object, count: int) -> object:
    """Return the first examples of a batch."""
    return tree.map_leaves(
        lambda x: x[:count] if isinstance(x, EmberTensor) and x.ndim else x, batch
    )


def _trainer(owner: str, model: Module | Trainer, options: dict[str, Any]) -> Trainer:
    if isinstance(model, Trainer):
        if options:
            raise ArgumentError(
                f"{owner}: a trainer has its options already; pass its model with "
                f"{', '.join(options)} instead"
            )
        return model
    return Trainer(model, progress=False, **options)


def _batch_size(owner: str, batch: object) -> int:
    tensors = [x for x in tree.leaves_of(batch) if isinstance(x, EmberTensor) and x.ndim]
    if not tensors or not tensors[0].shape[0]:
        raise ArgumentError(
            f"{owner}: the batch must contain tensors with at least one example, such as (inputs, "
            "targets)"
        )
    return tensors[0].shape[0]
