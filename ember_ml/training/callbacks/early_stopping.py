"""The end of a training that gets no better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.training.callbacks.base import Best, Callback

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class EarlyStopping(Callback):
    """Ends a training whose evaluation has not improved for some epochs.

    Args:
        monitor: what is watched.
        patience: how many epochs without improvement are borne.
        mode: whether it improves downwards ("min") or upwards ("max").
        min_delta: by how much it must improve to count.
        restore_best: whether the model gets the values of its best epoch back at the end; they
            are kept in memory, so an epoch before a restart cannot be gone back to.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        *,
        patience: int = 5,
        mode: str = "min",
        min_delta: float = 0.0,
        restore_best: bool = False,
    ) -> None:
        if patience < 0:
            raise ArgumentError(f"EarlyStopping: patience must not be negative, but is {patience}")
        self.best = Best(monitor, mode, min_delta)
        self.patience = patience
        self.restore_best = restore_best
        self.waited = 0
        self._stopped = False
        self._values: dict[str, Tensor] | None = None

    def on_fit_start(self, trainer: Trainer) -> None:
        """Nothing was stopped yet."""
        self._stopped = False

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Count the epochs without improvement."""
        if self.best.improves(record):
            self.waited = 0
            if self.restore_best:
                with trainer.evaluating():
                    self._values = trainer.model.state_dict()
            return
        self.waited += 1
        if self.waited > self.patience:
            trainer.should_stop = self._stopped = True

    def on_fit_end(self, trainer: Trainer) -> None:
        """Give the model its best values back, if that is wanted."""
        if self._values is not None and self._stopped:
            trainer.model.load_state_dict(self._values)
            if trainer.ema is not None:
                trainer.ema.reset()

    def state_dict(self) -> dict[str, Any]:
        """The best value, and how long ago it was."""
        return {"best": self.best.value, "waited": self.waited}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.best.value, self.waited = state["best"], int(state["waited"])
