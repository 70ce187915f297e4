"""Early stopping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ember_ml._core.tensor import Tensor
from ember_ml.data.errors import check_integer
from ember_ml.training.callbacks.base import Best, Callback

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class EarlyStopping(Callback):
    """Stops training when a monitored value stops improving.

    It decides after each epoch and, with `fit(validate_every=n)` and a "val_..." value, also within
    epochs, after each evaluation.

    Args:
        monitor: Value to monitor.
        patience: Number of decisions without improvement after which training stops: epochs or,
            with `validate_every`, evaluations. An evaluation at the end of an epoch counts once.
        mode: "min" if lower is better, "max" if higher is better.
        min_delta: Minimum improvement.
        restore_best: Whether to restore the weights of the best decision at the end. They are
            stored in memory: weights from before a restart cannot be restored.
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
        self.best = Best(monitor, mode, min_delta)
        self.patience = check_integer("EarlyStopping", "patience", patience, least=0)
        self.restore_best = restore_best
        self.waited = 0
        self._decided = 0  # step of the last decision
        self._stopped = False
        self._resumed = False
        self._values: dict[str, Tensor] | None = None

    def monitored(self) -> str:
        """Return the name of the monitored value."""
        return self.best.monitor

    def on_fit_start(self, trainer: Trainer) -> None:
        """Stop at once if a resumed run had stopped; otherwise restart the count."""
        if self.waited > self.patience:
            if self._resumed:
                trainer.should_stop = True
            else:
                self.waited = 0
        if self._decided != trainer.step:  # of another run
            self._decided = 0
        self._stopped = self._resumed = False

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Decide if the step ended with an evaluation."""
        if self.best.is_validated(record):
            self._decide(trainer, record)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Decide, unless the last step did."""
        if self._decided != trainer.step:
            self._decide(trainer, record)

    def _decide(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Count the decisions without improvement."""
        self._decided = trainer.step
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
        """Restore the best weights if requested."""
        if self._values is not None and self._stopped:
            trainer.model.load_state_dict(self._values)
            if trainer.ema is not None:
                trainer.ema.reset()

    def state_dict(self) -> dict[str, Any]:
        """Return the best value, the number of decisions since, and the step of the last one."""
        return {"best": self.best.value, "waited": self.waited, "decided": self._decided}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        self.best.value, self.waited = state["best"], int(state["waited"])
        self._decided = int(state.get("decided", 0))
        self._resumed = True
