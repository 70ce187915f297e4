"""Training steps that leave no trace."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator

from ember_ml import ops
from ember_ml.backend import use_backend
from ember_ml.training.trainer import Trainer
from ember_ml.training.trainer.accumulation import Accumulation
from ember_ml.training.trainer.fitting import single_fit
from ember_ml.training.trainer.nonfinite import NonFiniteError, Snapshot


@contextlib.contextmanager
def preserved(trainer: Trainer) -> Iterator[None]:
    """Prepare a trainer for steps within the `with` block, and restore it afterwards.

    What is restored: parameters, buffers, optimizer state, loss scale, accumulated gradients, the
    random state, and the modes of the modules. Steps must be run with `try_step`, which calls no
    callbacks and updates no averages, schedules, metrics or histories.

    Args:
        trainer: The trainer, which must not be in `fit`.
    """
    model, optimizer, runner = trainer.model, trainer.optimizer, trainer._runner
    with single_fit(trainer), use_backend(trainer.backend):
        random = ops.random.get_state()
        modes = [(module, module.training) for module in model.modules()]
        values, was_training = model.state_dict(), optimizer.training
        attributes = {name: getattr(trainer, name) for name in ("callbacks", "train_metrics")}
        group, scale, factor = runner.group, copy.copy(runner.scale), optimizer.factor
        optimizer.train()
        snapshot = Snapshot(trainer)
        trainer.callbacks, trainer.train_metrics = [], None
        runner.group = Accumulation()
        trainer.refuse_batch = _refuse  # type: ignore[method-assign]
        try:
            model.train()
            yield
        finally:
            del trainer.refuse_batch
            snapshot.restore(trainer)
            if not was_training:
                optimizer.eval()
            model.load_state_dict(values)  # switching between modes may round
            optimizer.factor = factor
            runner.group, runner.scale = group, scale
            for name, value in attributes.items():
                setattr(trainer, name, value)
            for module, training in modes:
                module.training = training
            ops.random.set_state(random)


def try_step(trainer: Trainer, batch: object) -> float | None:
    """Train on a batch, and return its loss; None if it completes no step.

    Args:
        trainer: Trainer within `preserved`.
        batch: A batch of the data.

    Raises:
        NonFiniteError: If the loss or a gradient is not finite.
    """
    result = trainer._runner(batch)
    return None if result is None else result.loss


def _refuse(problem: NonFiniteError) -> None:
    raise problem
