"""Random sequences of trainer operations, compared with a training loop in plain NumPy."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import ops
from ember_ml.backend import available, use_backend
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.nn import layers
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback, Checkpoint
from tests.robustness.reference_loop import Data, Loop, Options
from tests.robustness.scale import FULL, amount

if not os.environ.get("CI"):  # there a missing library is a failure
    pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

RNG = np.random.default_rng(0)
OPTIMIZERS: dict[str, Any] = {"sgd": {"type": "sgd", "momentum": 0.9}, "adam": {"type": "adam"}}


def _data(examples: int, batch_size: int, share: float) -> Data:
    x = RNG.standard_normal((examples, 3)).astype("float32")
    y = RNG.standard_normal((examples, 2)).astype("float32")
    mask = (RNG.random((examples, 2)) < share).astype("float32")
    return Data(x, y, mask, batch_size)


DATA = [_data(12, 4, 1.0), _data(10, 3, 0.6), _data(12, 4, 0.5)]
OPTIONS = st.builds(
    Options,
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    accumulate=st.sampled_from([1, 2, 3]),
    clip_norm=st.sampled_from([None, 0.5]),
    ema=st.sampled_from([None, 0.8]),
    schedule_steps=st.sampled_from([None, 20]),
    learning_rate=st.just(0.05),
)
BACKENDS = st.sampled_from(available())


class Kill(Callback):
    """Ends training at a step, as a crash would."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Raise an error at the step."""
        if trainer.step == self.step:
            raise KeyError("killed")


class TrainerStates(RuleBasedStateMachine):
    """Fits, saves, crashes, resumes, freezes, moves and changes data in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.saved: dict[str, Loop] = {}

    def teardown(self) -> None:
        """Remove the checkpoints."""
        shutil.rmtree(self.folder)

    @initialize(options=OPTIONS, backend=BACKENDS)
    def create(self, options: Options, backend: str) -> None:
        """Create the trainer and the reference."""
        self.options = options
        self.data = 0
        self.trainer = self._trainer(backend)
        model = self.trainer.model
        self.loop = Loop(
            options, model.weight.numpy().astype("float64"), model.bias.numpy().astype("float64")
        )

    def _trainer(self, backend: str) -> Trainer:
        options = self.options
        self.loaders = [self._loader(at) for at in range(len(DATA))]
        schedule = {"type": "linear", "total_steps": options.schedule_steps, "final_factor": 0.5}
        with use_backend(backend):
            ops.random.set_seed(1)
            return Trainer(
                layers.Dense(3, 2),
                "mse",
                optimizer=OPTIMIZERS[options.optimizer],
                learning_rate=options.learning_rate,
                accumulate=options.accumulate,
                clip_norm=options.clip_norm,
                ema=options.ema,
                schedule=None if options.schedule_steps is None else schedule,
                compile=None if FULL else False,
                progress=False,
            )

    def _loader(self, at: int) -> DataLoader:
        data = DATA[at]
        return DataLoader(ArrayDataset(*data[:3]), data.batch_size)

    def _fit(self, **limits: int) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "fit: the resumed run")
            self.trainer.fit(self.loaders[self.data], **limits)

    @rule(steps=st.integers(1, 5))
    def fit_steps(self, steps: int) -> None:
        """Train for some steps."""
        self._fit(steps=steps)
        self.loop.fit(self.data, DATA[self.data], steps=steps)

    @rule(epochs=st.integers(1, 2))
    def fit_epochs(self, epochs: int) -> None:
        """Train for some epochs."""
        self._fit(epochs=epochs)
        self.loop.fit(self.data, DATA[self.data], epochs=epochs)

    @rule(slot=st.sampled_from("ab"))
    def save(self, slot: str) -> None:
        """Save a checkpoint."""
        self.trainer.save(self.folder / slot)
        self.saved[slot] = copy.deepcopy(self.loop)

    @precondition(lambda self: self.saved)
    @rule(data=st.data(), backend=BACKENDS)
    def resume(self, data: st.DataObject, backend: str) -> None:
        """Start a new process from a checkpoint, on any backend."""
        slot = data.draw(st.sampled_from(sorted(self.saved)))
        self.loop = copy.deepcopy(self.saved[slot])
        self._start_again(self.folder / slot, backend)

    def _start_again(self, path: Path, backend: str) -> None:
        self.trainer = self._trainer(backend)
        self._apply_frozen()
        self.trainer.resume(path)
        self.loop.resumed = True
        self.data = self.data if self.loop.data is None else self.loop.data

    @precondition(lambda self: not self.loop.resumed)
    @rule(steps=st.integers(2, 6), data=st.data(), backend=BACKENDS)
    def kill(self, steps: int, data: st.DataObject, backend: str) -> None:
        """Crash within a fit, and start the same script again."""
        killed = self.trainer.step + data.draw(st.integers(2, steps))
        folder = self.folder / "auto"  # has the step before the crash: callbacks that save run last
        self.trainer.callbacks = [Kill(killed), Checkpoint(folder, every_steps=1)]
        with pytest.raises(KeyError, match="killed"):
            self._fit(steps=steps)
        self.loop.fit(self.data, DATA[self.data], steps=steps)
        self._start_again(folder / "last", backend)
        self._fit(steps=steps)
        self.loop.resumed = False

    @rule(name=st.sampled_from(["weight", "bias"]))
    def freeze_or_unfreeze(self, name: str) -> None:
        """Change whether a parameter is trained; one always is."""
        frozen = self.loop.frozen ^ {name}
        if len(frozen) < 2:
            self.loop.frozen = frozen
            self._apply_frozen()

    def _apply_frozen(self) -> None:
        for name, parameter in self.trainer.model.named_parameters():
            parameter.trainable = name not in self.loop.frozen

    @rule(backend=BACKENDS)
    def move(self, backend: str) -> None:
        """Move the model to a backend."""
        self.trainer.model.to_backend(backend)

    @rule(at=st.integers(0, len(DATA) - 1))
    def change_data(self, at: int) -> None:
        """Use other data from now on."""
        if not self.loop.resumed:
            self.data = at

    @invariant()
    def agrees(self) -> None:
        """Compare the trainer with the reference."""
        if not hasattr(self, "trainer"):
            return
        trainer, loop = self.trainer, self.loop
        assert (trainer.step, trainer.epoch) == (loop.step, loop.epoch)
        assert np.allclose(trainer.history.losses, loop.losses, rtol=1e-3, atol=1e-5)
        for name, parameter in trainer.model.named_parameters():
            assert np.allclose(parameter.numpy(), getattr(loop, name), rtol=1e-3, atol=1e-4)
        if trainer.ema is not None:
            averages = trainer.ema.state_dict()["tensors"]
            for name, average in averages.items():
                assert np.allclose(average.numpy(), loop.averages[name], rtol=1e-3, atol=1e-4)


TrainerStates.TestCase.settings = settings(
    max_examples=amount(30, 1000),
    stateful_step_count=amount(10, 25),
    derandomize=not FULL,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestTrainerStates = TrainerStates.TestCase
