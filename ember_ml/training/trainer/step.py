"""The step of a trainer: from a batch to updated parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml._core import runtime
from ember_ml._core.tensor import Tensor, native_arrays
from ember_ml.nn.functional import OWNERS
from ember_ml.training.callbacks import Callback
from ember_ml.training.clipping import clip_by_norm, clip_by_value
from ember_ml.training.optimizer.plan import kernels
from ember_ml.training.trainer.accumulation import Accumulation
from ember_ml.training.trainer.compiled_step import (
    REMAINING,
    REPEATS,
    CompiledStep,
    CompilePolicy,
)
from ember_ml.training.trainer.gradients import (
    BatchResult,
    Gradients,
    LossGradients,
    LossScale,
    numbers,
)
from ember_ml.training.trainer.nonfinite import NonFiniteError, explain

if TYPE_CHECKING:
    from ember_ml.training.trainer.trainer import Trainer


class StepResult(NamedTuple):
    """Result of a step."""

    loss: float
    norm: float
    """Norm of the gradients before clipping."""
    updated: bool
    """Whether the parameters were updated; False if all batches were left out."""
    terms: Mapping[str, float] = MappingProxyType({})
    """Named losses that modules reported, which are parts of the loss."""


class StepRunner:
    """Runs the batches of a trainer; updates the parameters after every `accumulate` batches.

    The loss and the norm of the gradients of each batch are checked before anything changes.

    Attributes:
        eager: Whether batches run uncompiled, such as those that are profiled.
        compiled: Whether the last batch ran compiled.
    """

    eager = False
    compiled = False

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._config = trainer.config
        self._optimizer = trainer.optimizer
        self._buffers = trainer.model.buffers()
        self.scale = LossScale() if self._config.precision == "float16" else None
        self.group = Accumulation()
        self._prepare_for(self._trainer.backend)

    def _prepare_for(self, backend: str) -> None:
        """Prepare for the backend of the model, which may have moved."""
        trainer, config = self._trainer, self._config
        module = runtime.load(backend)
        engine = module.autodiff
        module.memory.keep_freed()  # for the arrays of the next step
        default = engine.COMPILES_QUICKLY and not trainer.overrides_compute()
        wanted = default if config.compile is None else config.compile
        compiles = wanted and not engine.COMPILE_UNAVAILABLE
        self._gradients = LossGradients(
            lambda batch: trainer.compute_loss(batch),
            self._optimizer.parameters,
            self._buffers,
            list(trainer.model.modules()),
            config.precision,
            compiles,
            trainer.weigh if self._weighs() else None,
            keep_outputs=trainer.train_metrics is not None,
        )
        self._policy = CompilePolicy(at_once=config.compile is True) if compiles else None
        self._whole: CompiledStep | None = None
        if compiles and config.accumulate == 1 and self.scale is None:
            clips_norm = config.clip_norm is not None
            self._whole = CompiledStep(self._gradients, self._optimizer, self._clipped, clips_norm)
        self._backend = backend
        self._parameters = self._optimizer.parameters
        self._kernels = kernels(backend)
        self._is_lazy = module.IS_LAZY
        self._evaluate = engine.evaluate
        variables = (*self._parameters, *self._buffers)
        self._variables = frozenset(map(id, variables))
        self._evaluate(native_arrays(variables))  # for any thread

    def _weighs(self) -> bool:
        """Return whether the weight of each batch is needed."""
        return self._config.accumulate > 1

    def __call__(self, batch: object) -> StepResult | None:
        """Return the result of the step, if the batch completed one."""
        acquired = OWNERS.acquire(self._variables)
        try:
            if not self._trainer.remat.modules:
                return self._run(batch)
            with self._trainer.remat:
                return self._run(batch)
        finally:
            OWNERS.release(acquired)

    def _run(self, batch: object) -> StepResult | None:
        self._optimizer.add_unfrozen()
        moved = self._trainer.backend != self._backend
        if moved or self._optimizer.parameters is not self._parameters:
            self._prepare_for(self._trainer.backend)
        whole, compiled = self._whole, self._compiles(batch)
        self.compiled = compiled
        if compiled and whole is not None and whole.is_applicable() and not self._observers():
            return self._run_whole(whole, batch)
        scale = self.scale.value if self.scale else None
        result = self._gradients(batch, scale, compiled)
        loss, norm = self._read(result)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return self._leave_out(batch, loss, result.gradients)
        for buffer, value in zip(self._buffers, result.buffers, strict=True):
            buffer.become(value)
        self._measure(batch, result.outputs)
        if self.scale is not None and scale is not None:
            self.scale.succeeded()
            grads = [None if g is None else g / scale for g in result.gradients]
            result, norm = result._replace(gradients=grads), norm / scale
        terms = numbers(result.terms)
        if self._config.accumulate == 1:
            return self._update(loss, result.gradients, norm, terms)
        assert result.weight is not None
        self.group.add(loss, result.gradients, float(result.weight), terms)
        self._evaluate(self.group.arrays())
        return self.complete() if self.group.count >= self._config.accumulate else None

    @property
    def compiles_later(self) -> bool:
        """Whether the policy compiles later steps, if their batches have the same shapes."""
        if self._policy is None or self.compiled:
            return False
        total = self._trainer.total_steps
        return total is None or total - self._trainer.step >= REPEATS + REMAINING

    def _compiles(self, batch: object) -> bool:
        """Return whether to compile the step of a batch."""
        if self._policy is None or self.eager:
            return False
        total = self._trainer.total_steps
        return self._policy.compiles(batch, None if total is None else total - self._trainer.step)

    def _read(self, result: BatchResult) -> tuple[float, float]:
        """Return the loss and the norm of the gradients, after evaluating them together."""
        gradients = result.arrays()
        parts = self._kernels.norm_parts(gradients)
        if self._is_lazy:
            weight = [] if result.weight is None else [result.weight]
            others = native_arrays((result.loss, *weight, *result.buffers, *result.terms.values()))
            self._evaluate([*others, *parts, *gradients])
        return float(result.loss), self._kernels.read_norm(parts)

    def _run_whole(self, step: CompiledStep, batch: object) -> StepResult:
        loss, norm, outputs, terms = step(batch)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self._trainer.refuse_batch(self._problem(batch, loss, None))
            return StepResult(loss, norm, updated=False)
        self._measure(batch, outputs)
        return StepResult(loss, norm, updated=True, terms=numbers(terms))

    def _measure(self, batch: object, outputs: object) -> None:
        """Add a batch to the training metrics, if they are enabled."""
        metrics = self._trainer.train_metrics
        if metrics is not None:
            metrics.add(self._trainer, batch, outputs)

    def _leave_out(self, batch: object, loss: float, grads: Gradients) -> StepResult | None:
        """Handle a batch that is not finite."""
        if self.scale is not None and math.isfinite(loss) and self.scale.can_shrink():
            self.scale.overflowed()
        else:
            self._trainer.refuse_batch(self._problem(batch, loss, grads))
        self.group.leave_out(loss)
        return self.complete() if self.group.count >= self._config.accumulate else None

    def _problem(
        self, batch: object, loss: float, grads: Gradients | None, is_elsewhere: bool = False
    ) -> NonFiniteError:
        """Return the error that names the non-finite values."""
        trainer = self._trainer
        parameters = {name: x.value() for name, x in trainer.model.named_parameters()}

        def gradients() -> dict[str, Tensor]:
            return self._named(self._gradients(batch).gradients if grads is None else grads)

        step, place = trainer.step + 1, trainer.batch_place()
        return explain(step, loss, batch, place, parameters, gradients, is_elsewhere)

    def complete(self) -> StepResult | None:
        """Update with the batches so far, and return the result; None if there are none."""
        group = self.group
        if not group.count:
            return None
        self.drop_remainder()
        if not group.used:
            return StepResult(group.left_out_loss, math.nan, updated=False)
        parts = self._kernels.norm_parts(group.arrays())
        self._evaluate(parts)
        norm = self._kernels.read_norm(parts)
        return self._update(group.loss, group.gradients, norm, group.terms)

    def _update(
        self, loss: float, grads: Gradients, norm: float, terms: Mapping[str, float]
    ) -> StepResult:
        """Update the parameters; `norm` is that of all gradients together."""
        observers = self._observers()
        if observers:
            named = self._named(grads)
            for callback in observers:
                callback.on_gradients(self._trainer, named)
        self._optimizer.step(self._clipped(grads, norm))
        if self._is_lazy:
            self._evaluate(native_arrays(self._parameters))
        return StepResult(loss, norm, updated=True, terms=terms)

    def _observers(self) -> list[Callback]:
        """Return the callbacks that define `on_gradients`."""
        return [
            callback
            for callback in self._trainer.callbacks
            if type(callback).on_gradients is not Callback.on_gradients
        ]

    def _named(self, grads: Gradients) -> dict[str, Tensor]:
        named = zip(self._optimizer.names, grads, strict=True)
        return {name: grad for name, grad in named if grad is not None}

    def _clipped(self, grads: Gradients, norm: Tensor | float | None) -> Gradients:
        if self._config.clip_value is not None:
            grads, norm = clip_by_value(grads, self._config.clip_value), None
        if self._config.clip_norm is not None:
            grads = clip_by_norm(grads, self._config.clip_norm, norm)
        return grads

    def drop_remainder(self) -> None:
        """Discard accumulated gradients."""
        self.group = Accumulation()

    def tensors(self) -> dict[str, Tensor]:
        """Return the accumulated gradients by name."""
        return self._named(self.group.gradients) if self.group.gradients else {}

    def load_group(self, state: Mapping[str, Any] | None, tensors: Mapping[str, Tensor]) -> None:
        """Restore accumulated gradients.

        Args:
            state: Result of `group.state_dict`; None if there are no gradients.
            tensors: Result of `tensors`.
        """
        self.drop_remainder()
        if state is None:
            return
        optimizer = self._optimizer
        named = dict(zip(optimizer.names, optimizer.parameters, strict=True))
        self.group.load_state_dict(state, tensors, named)
