"""From batches to changed parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.tensor import Tensor
from ember_ml.training.clipping import clip_by_norm, clip_by_value
from ember_ml.training.trainer.gradients import Found, Gradients
from ember_ml.training.trainer.scaling import LossScale

if TYPE_CHECKING:
    from ember_ml.training.trainer.trainer import Trainer

Step = tuple[float, Callable[[], dict[str, Tensor]]]


class Updates:
    """Takes batches in, and changes the parameters after every `accumulate` of them."""

    def __init__(self, trainer: Trainer) -> None:
        config, optimizer = trainer.config, trainer.optimizer
        self._config = config
        self._optimizer = optimizer
        self._buffers = trainer.model.buffers()
        engine = runtime.load(optimizer.parameters[0].backend).autodiff
        wanted = engine.COMPILES_AT_ONCE if config.compile is None else config.compile
        self._gradients = Gradients(
            lambda batch: trainer.compute(batch),
            optimizer.parameters,
            self._buffers,
            config.precision,
            wanted and not engine.COMPILES,
        )
        self._settle = engine.settle
        self._settle([x._data for x in (*optimizer.parameters, *self._buffers)])  # for any thread
        self.scale = LossScale() if config.precision == "float16" else None
        self._sum: list[Tensor] | None = None
        self._losses: list[Tensor] = []

    def __call__(self, batch: Any) -> Step | None:
        """The mean loss and a way to the gradients, if the batch completed a step."""
        found = self._gradients(batch, self.scale.value if self.scale else None)
        for buffer, value in zip(self._buffers, found.buffers, strict=True):
            buffer.become(value)
        self._add(found)
        if len(self._losses) < self._config.accumulate:
            return None
        grads, losses = self._sum or [], self._losses
        factor = 1.0 / (len(losses) * (self.scale.value if self.scale else 1.0))
        self.drop_remainder()
        if factor != 1.0:
            grads = [g * factor for g in grads]
        if self._fits(grads):
            self._optimizer.step(self._clipped(grads))
        self._settle([x._data for x in (*self._optimizer.parameters, *losses)])
        loss = sum(float(loss) for loss in losses) / len(losses)
        return loss, lambda: dict(zip(self._optimizer.names, grads, strict=True))

    def _add(self, found: Found) -> None:
        self._sum = (
            found.gradients
            if self._sum is None
            else [a + b for a, b in zip(self._sum, found.gradients, strict=True)]
        )
        self._losses.append(found.loss)

    def _fits(self, grads: list[Tensor]) -> bool:
        """Whether the scaled gradients are finite; if not, the scale is lowered."""
        if self.scale is None:
            return True
        finite = all(bool(ops.isfinite(g).all()) for g in grads)
        if finite:
            self.scale.grew()
        else:
            self.scale.overflowed()
        return finite

    def _clipped(self, grads: list[Tensor]) -> list[Tensor]:
        if self._config.clip_value is not None:
            grads = clip_by_value(grads, self._config.clip_value)
        if self._config.clip_norm is not None:
            grads = clip_by_norm(grads, self._config.clip_norm)
        return grads

    def drop_remainder(self) -> None:
        """Begin to accumulate anew."""
        self._sum, self._losses = None, []
