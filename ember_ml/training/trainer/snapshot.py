"""In-memory state to which a trainer can roll back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ember_ml.training.trainer.nonfinite import not_finite

if TYPE_CHECKING:
    from ember_ml.training.trainer.trainer import Trainer


class Snapshot:
    """Parameters, buffers, optimizer state and average of a trainer.

    Args:
        trainer: The trainer.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.step = trainer.step
        self._model = trainer.model.state_dict()
        self._optimizer = trainer.optimizer.state_dict()
        self._ema = None if trainer.ema is None else trainer.ema.state_dict()

    def is_finite(self) -> bool:
        """Return whether all floating-point values of the model are finite."""
        floats = {name: x for name, x in self._model.items() if x.dtype.is_floating}
        return not not_finite(floats)

    def restore(self, trainer: Trainer) -> None:
        """Restore the values; the numbers of steps and epochs and the data's position stay.

        Args:
            trainer: The trainer.
        """
        trainer.model.load_state_dict(self._model)
        trainer.optimizer.load_state_dict(self._optimizer)
        if trainer.ema is not None and self._ema is not None:
            trainer.ema.load_state_dict(self._ema)
