"""From batches to changed parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.tensor import Tensor
from ember_ml.training.clipping import clip_by_norm, clip_by_value
from ember_ml.training.trainer.compiled import CompiledStep
from ember_ml.training.trainer.gradients import Found, Gradients
from ember_ml.training.trainer.scaling import LossScale

if TYPE_CHECKING:
    from ember_ml.training.trainer.trainer import Trainer

Grads = list[Tensor | None]
Step = tuple[float, Callable[[], dict[str, Tensor]]]


class Updates:
    """Takes batches in, and changes the parameters after every `accumulate` of them."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._config = trainer.config
        self._optimizer = trainer.optimizer
        self._buffers = trainer.model.buffers()
        self.scale = LossScale() if self._config.precision == "float16" else None
        self._sum: Grads | None = None
        self._losses: list[Tensor] = []
        self._begin_on(self._trainer.backend)

    def _begin_on(self, backend: str) -> None:
        """Make ready for a backend, to which the model may have been moved."""
        trainer, config = self._trainer, self._config
        engine = runtime.load(backend).autodiff
        wanted = engine.COMPILES_QUICKLY if config.compile is None else config.compile
        compiles = wanted and not engine.COMPILE_UNAVAILABLE
        self._gradients = Gradients(
            lambda batch: trainer.compute(batch),
            self._optimizer.parameters,
            self._buffers,
            list(trainer.model.modules()),
            config.precision,
            compiles,
        )
        whole = compiles and config.accumulate == 1 and self.scale is None
        self._whole = (
            CompiledStep(self._gradients, self._optimizer, self._clipped) if whole else None
        )
        self._backend = backend
        self._evaluate = engine.evaluate
        variables = (*self._optimizer.parameters, *self._buffers)
        self._evaluate([x._data for x in variables])  # for any thread

    def __call__(self, batch: Any) -> Step | None:
        """The mean loss and a way to the gradients, if the batch completed a step."""
        if self._trainer.backend != self._backend:
            self._begin_on(self._trainer.backend)
        if self._whole is not None and self._whole.suits():
            loss = self._whole(batch)
            self._evaluate([x._data for x in (*self._optimizer.parameters, loss)])
            return float(loss), lambda: self._named(self._gradients(batch).gradients)
        found = self._gradients(batch, self.scale.value if self.scale else None)
        for buffer, value in zip(self._buffers, found.buffers, strict=True):
            buffer.become(value)
        self._add(found)
        if len(self._losses) < self._config.accumulate:
            return None
        return self._update(*self._taken())

    def _taken(self) -> tuple[Grads, list[Tensor]]:
        """The mean gradients of the batches, and their losses; begin anew."""
        grads, losses = self._sum or [], self._losses
        self.drop_remainder()
        factor = 1.0 / (len(losses) * (self.scale.value if self.scale else 1.0))
        if factor != 1.0:
            grads = [None if g is None else g * factor for g in grads]
        return grads, losses

    def _update(self, grads: Grads, losses: list[Tensor]) -> Step:
        if self._fits(grads):
            self._optimizer.step(self._clipped(grads))
        self._evaluate([x._data for x in (*self._optimizer.parameters, *losses)])
        mean = sum(float(loss) for loss in losses) / len(losses)
        return mean, lambda: self._named(grads)

    def _named(self, grads: Grads) -> dict[str, Tensor]:
        named = zip(self._optimizer.names, grads, strict=True)
        return {name: grad for name, grad in named if grad is not None}

    def _add(self, found: Found) -> None:
        if self._sum is None:
            self._sum = found.gradients
        else:
            pairs = zip(self._sum, found.gradients, strict=True)
            self._sum = [b if a is None else a if b is None else a + b for a, b in pairs]
        self._losses.append(found.loss)

    def _fits(self, grads: Grads) -> bool:
        """Whether the scaled gradients are finite; if not, the scale is lowered."""
        if self.scale is None:
            return True
        finite = all(bool(ops.isfinite(g).all()) for g in grads if g is not None)
        if finite:
            self.scale.grew()
        else:
            self.scale.overflowed()
        return finite

    def _clipped(self, grads: Grads) -> Grads:
        if self._config.clip_value is not None:
            grads = clip_by_value(grads, self._config.clip_value)
        if self._config.clip_norm is not None:
            grads = clip_by_norm(grads, self._config.clip_norm)
        return grads

    def drop_remainder(self) -> None:
        """Begin to accumulate anew."""
        self._sum, self._losses = None, []
