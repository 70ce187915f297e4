"""The trainer: fits, evaluates, predicts, stops, resumes."""

from __future__ import annotations

import csv
import math
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import available, use_backend
from ember_ml.configs import ConfigError
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.nn import layers
from ember_ml.nn.tensor import array
from ember_ml.training import NonFiniteError, Trainer, TrainerConfig, TrainingInterrupted
from ember_ml.training.callbacks import (
    Callback,
    Checkpoint,
    CSVLogger,
    EarlyStopping,
    LRMonitor,
    TensorBoardLogger,
)
from tests.unit.training.classifiers import X, Y, mlp, trainer


def normalized() -> nn.Module:
    ops.random.set_seed(1)
    return nn.Sequential(
        layers.Dense(5, 8), layers.BatchNorm(8), layers.MLP(8, [8]), layers.LayerNorm(8),
        layers.Dense(8, 3),
    )  # fmt: skip


def test_a_step_equals_torch(backend: str) -> None:
    model = mlp()
    ours = trainer(model, optimizer={"type": "adamw", "weight_decay": 0.1}, clip_norm=0.5)
    twin = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    for mine, theirs in zip(model.layers, (twin[0], twin[2]), strict=True):
        theirs.weight.data = torch.tensor(mine.weight.numpy())
        theirs.bias.data = torch.tensor(mine.bias.numpy())
    decayed = [twin[0].weight, twin[2].weight]
    spared = [twin[0].bias, twin[2].bias]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": spared, "weight_decay": 0.0}], lr=0.02
    )
    for at in range(0, 48, 12):
        batch = array(X[at : at + 12]), array(Y[at : at + 12])
        record = ours.train_step(batch)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            twin(torch.tensor(X[at : at + 12])), torch.tensor(Y[at : at + 12])
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
        optimizer.step()
        assert abs(record["loss"] - loss.item()) < 1e-5
    for mine, theirs in zip(model.layers, (twin[0], twin[2]), strict=True):
        assert abs(mine.weight.numpy() - theirs.weight.detach().numpy()).max() < 1e-5


@pytest.mark.parametrize("make", [mlp, normalized])
def test_curves_agree_across_backends(make) -> None:
    curves = []
    for backend in available():
        with use_backend(backend):
            history = trainer(make()).fit((X, Y), steps=50, batch_size=16)
            curves.append(history.losses)
    assert len(curves[0]) == 50
    assert curves[0][-1] < 0.5 * curves[0][0]
    for curve in curves[1:]:
        assert np.abs(np.array(curve) - np.array(curves[0])).max() < 1e-4


def test_accumulated_batches_make_one_step(backend: str) -> None:
    loader = DataLoader(ArrayDataset(X, Y), 12)
    whole, parts = trainer(mlp()), trainer(mlp(), accumulate=2)
    whole.fit(DataLoader(ArrayDataset(X, Y), 24), epochs=2)
    parts.fit(loader, epochs=2)
    assert whole.step == parts.step == 4
    assert np.allclose(whole.history.losses, parts.history.losses, atol=1e-5)
    odd = trainer(mlp(), accumulate=3)
    odd.fit(loader, epochs=2)
    assert odd.step == 4  # the last step of an epoch has one batch


def test_evaluate_and_predict(backend: str) -> None:
    ours = trainer(normalized(), metrics=["accuracy", {"type": "f1", "average": "macro"}])
    ours.fit((X, Y), epochs=2, batch_size=16)
    found = ours.evaluate((X, Y), batch_size=20)
    outputs = ours.predict(array(X), batch_size=7)
    assert outputs.shape == (48, 3)
    loss = torch.nn.functional.cross_entropy(torch.tensor(outputs.numpy()), torch.tensor(Y))
    assert abs(found["loss"] - loss.item()) < 1e-5
    assert found["accuracy"] == pytest.approx((outputs.numpy().argmax(1) == Y).mean())
    assert set(found) == {"loss", "accuracy", "f1"}
    assert ours.model.training
    assert np.allclose(ours.predict((X, Y)).numpy(), outputs.numpy(), atol=1e-5)


def test_masks_and_dict_batches(backend: str) -> None:
    mask = (np.arange(48) < 24).astype("float32")
    half = trainer(mlp()).fit((X[:24], Y[:24]), steps=1, batch_size=24)
    with_mask = DataLoader(ArrayDataset({"inputs": X, "targets": Y, "mask": mask}), 48)
    assert trainer(mlp()).fit(with_mask, steps=1).losses[0] == pytest.approx(half.losses[0], 1e-5)
    with pytest.raises(ValueError, match=r"\['x', 'y'\] has no inputs and no targets"):
        trainer(mlp()).fit(DataLoader(ArrayDataset({"x": X, "y": Y}), 4))
    with pytest.raises(ValueError, match=r"a batch must be \(inputs, targets\)"):
        trainer(mlp()).fit(DataLoader(ArrayDataset(X), 4))


class Scaled(nn.Module):
    """Model with a second argument."""

    def __init__(self) -> None:
        self.inner = mlp()

    def forward(self, x, factor=1.0):
        return self.inner(x * factor)


def test_other_keys_of_a_dict_are_arguments_of_the_model(backend: str) -> None:
    factor = np.linspace(0.5, 2.0, 48, dtype="float32")[:, None]
    batches = {"inputs": X, "factor": factor, "targets": Y}
    ours, plain = trainer(Scaled(), metrics=["accuracy"]), trainer(mlp(), metrics=["accuracy"])
    losses = ours.fit(batches, steps=3).losses, plain.fit((X * factor, Y), steps=3).losses
    assert np.allclose(*losses, atol=1e-5)
    assert ours.evaluate(batches) == pytest.approx(plain.evaluate((X * factor, Y)), rel=1e-4)
    there = plain.predict(X * factor).numpy()
    assert np.allclose(ours.predict(batches).numpy(), there, atol=1e-4)
    with pytest.raises(ValueError, match="'facto', which Scaled does not take; did you mean 'fac"):
        ours.fit({"inputs": X, "facto": factor, "targets": Y}, steps=9)


class Scored(nn.Module):
    """Model that returns its loss."""

    def __init__(self) -> None:
        self.inner = mlp()

    def forward(self, x, y):
        return ops.cross_entropy(self.inner(x), y)


def test_a_model_may_give_the_loss(backend: str) -> None:
    ours = trainer(Scored(), loss=None)
    plain = trainer(mlp())
    assert np.allclose(
        ours.fit((X, Y), steps=3).losses, plain.fit((X, Y), steps=3).losses, atol=1e-5
    )


def test_schedule_moves_the_learning_rate(backend: str) -> None:
    ours = trainer(schedule={"type": "linear", "total_steps": 4}, callbacks=[LRMonitor()])
    ours.fit((X, Y), steps=4, batch_size=12)
    rates = [record["learning_rate"] for record in ours.history.steps]
    assert rates == pytest.approx([0.02, 0.015, 0.01, 0.005])
    assert ours.history.steps[2]["learning_rate/0"] == pytest.approx(0.01)


def test_ema_is_used_in_evaluation(backend: str) -> None:
    ours = trainer(ema=0.9)
    ours.fit((X, Y), steps=5, batch_size=12)
    with_ema = ours.evaluate((X, Y))["loss"]
    ours.ema = None
    assert with_ema != ours.evaluate((X, Y))["loss"]


def precisions() -> list[tuple[str, str]]:
    return [("torch", "bfloat16"), ("mlx", "bfloat16"), ("mlx", "float16"), ("numpy", "float16")]


@pytest.mark.parametrize(("name", "precision"), precisions())
def test_mixed_precision_learns_with_float32_weights(name: str, precision: str) -> None:
    with use_backend(name):
        ours = trainer(normalized(), precision=precision)
        history = ours.fit((X, Y), steps=40, batch_size=16)
        plain = trainer(normalized()).fit((X, Y), steps=40, batch_size=16)
    assert {p.dtype.name for p in ours.model.parameters()} == {"float32"}
    assert history.losses[-1] < 0.6 * history.losses[0]
    assert history.losses != plain.losses
    assert np.allclose(history.losses[:3], plain.losses[:3], atol=0.05)


@pytest.mark.parametrize(
    ("name", "precision"), [row for row in precisions() if row[0] != "mlx"]
)  # MLX takes a minute to build the kernels of a new dtype
def test_hyena_has_float32_buffers_in_mixed_precision(name: str, precision: str) -> None:
    x, y = np.ones((6, 5, 4), "float32"), np.zeros((6, 5, 4), "float32")
    with use_backend(name):
        losses = []
        for each in (precision, "float32"):
            ops.random.set_seed(1)
            ours = Trainer(
                layers.Hyena(4, max_length=8), "mse", precision=each, compile=False, progress=False
            )
            losses.append(ours.fit((x, y), steps=2, batch_size=6).losses)
    np.testing.assert_allclose(*losses, rtol=0.05)


def test_a_precision_that_a_backend_lacks_is_named() -> None:
    with use_backend("numpy"), pytest.raises(TypeError, match="bfloat16"):
        trainer(mlp(), precision="bfloat16").fit((X, Y), steps=1)


def test_the_error_for_a_nan_loss_names_the_parameter(backend: str) -> None:
    model = mlp()
    value = model.layers[1].weight.numpy().copy()
    value[0, 0] = math.nan
    model.layers[1].weight.assign(value)
    with pytest.raises(
        NonFiniteError, match=r"the loss is nan at step 1.*layers.1.weight"
    ) as caught:
        trainer(model).fit((X, Y), epochs=1)
    assert caught.value.parameters[0].startswith("layers")


class Recorder(Callback):
    def __init__(self) -> None:
        self.events: list[str] = []

    def on_fit_start(self, trainer) -> None:
        self.events.append("start")

    def on_step_end(self, trainer, record) -> None:
        self.events.append(f"step {trainer.step}")

    def on_epoch_end(self, trainer, record) -> None:
        self.events.append(f"epoch {trainer.epoch}")

    def on_fit_end(self, trainer) -> None:
        self.events.append("end")


def test_callbacks_are_called_in_order() -> None:
    recorder = Recorder()
    trainer(callbacks=[recorder]).fit((X, Y), epochs=2, batch_size=24)
    assert recorder.events == [
        "start", "step 1", "step 2", "epoch 1", "step 3", "step 4", "epoch 2", "end",
    ]  # fmt: skip


def test_early_stopping_gives_the_best_back(backend: str) -> None:
    class Worse(Callback):
        def on_epoch_end(self, trainer, record) -> None:
            record["score"] = [1.0, 3.0, 2.0, 2.5, 2.9][trainer.epoch - 1]
            states.append(trainer.model.state_dict())

    states: list = []
    stop = EarlyStopping("score", mode="max", patience=1, restore_best=True)
    ours = trainer(callbacks=[Worse(), stop])
    ours.fit((X, Y), epochs=5)
    assert ours.epoch == 4
    best, now = states[1], ours.model.state_dict()
    assert all((best[name] == now[name]).all() for name in best)
    with pytest.raises(ValueError, match="monitors 'val_los'"):
        trainer(callbacks=[EarlyStopping("val_los")]).fit((X, Y))


def test_logs_are_written(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    ours = trainer(callbacks=[CSVLogger(tmp_path / "log.csv"), TensorBoardLogger(tmp_path / "tb")])
    ours.fit((X, Y), (X, Y), epochs=3)
    with open(tmp_path / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["val_loss"]) for row in rows] == ours.history.column("val_loss")
    events = EventAccumulator(str(tmp_path / "tb"))
    events.Reload()
    written = [event.value for event in events.Scalars("train/loss")]
    assert np.allclose(written, ours.history.losses, atol=1e-6)
    assert [event.step for event in events.Scalars("epoch/val_loss")] == [2, 4, 6]


def test_curves_are_drawn(tmp_path: Path) -> None:
    ours = trainer(metrics=["accuracy"])
    ours.fit((X, Y), (X, Y), epochs=3)
    figure = ours.history.plot(tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"
    labels = [text.get_text() for axes in figure.axes for text in axes.get_legend().get_texts()]
    assert labels == ["step", "loss", "val_loss", "val_accuracy"]


def test_ctrl_c_saves_and_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Press(Callback):
        def on_step_end(self, trainer, record) -> None:
            if trainer.step == 5:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)

    handler = signal.getsignal(signal.SIGINT)
    first = trainer(callbacks=[Press(), Checkpoint(tmp_path)])
    with pytest.raises(TrainingInterrupted):
        first.fit((X, Y), epochs=9, batch_size=16)
    assert first.interrupted
    assert first.step == 5
    assert signal.getsignal(signal.SIGINT) is handler
    output = capsys.readouterr().out
    assert f"saved to {tmp_path}/last" in output.replace("\n", "")
    assert "trainer.resume(" in output
    again = trainer().resume(tmp_path / "last")
    history = again.fit((X, Y), epochs=9, batch_size=16)
    assert history.losses == trainer().fit((X, Y), epochs=9, batch_size=16).losses


def test_fit_runs_in_other_threads_too(backend: str) -> None:
    ours = trainer()

    def run() -> None:
        with use_backend(backend):
            ours.fit((X, Y), epochs=1)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ours.epoch == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Trainer(3), TypeError, "the model must be a Module"),
        (
            lambda: trainer(learning_rat=1),
            TypeError,
            "did you mean 'learning_rate'",
        ),
        (lambda: trainer().fit((X, Y), epoch=1), TypeError, "'epoch'; did you mean 'epochs'"),
        (lambda: trainer(optimizer="adamm"), ConfigError, "did you mean 'adam'"),
        (lambda: trainer(accumulate=0), ConfigError, "Trainer: accumulate"),
        (lambda: trainer(config=3), TypeError, "config must be a TrainerConfig"),
        (lambda: trainer().fit(3), TypeError, "data must be a DataLoader"),
        (
            lambda: trainer().fit((X, Y), epochs=-1),
            ValueError,
            "epochs must be an integer of at least 0",
        ),
        (lambda: trainer().fit((X[:0], Y[:0])), ValueError, "the data has no batches"),
        (lambda: trainer().predict(X[:0]), ValueError, "the data has no batches"),
        (lambda: trainer().resume("/nonexistent"), ValueError, "does not exist"),
        (lambda: Checkpoint("x", every_steps=0), ValueError, "every_steps must be at least 1"),
        (lambda: EarlyStopping(mode="up"), ValueError, "mode must be 'min' or 'max'"),
    ],
)
def test_errors(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_the_config_is_a_file_like_any_other(tmp_path: Path) -> None:
    config = TrainerConfig(
        optimizer={"type": "sgd", "learning_rate": 0.1}, schedule="constant", metrics=["accuracy"]
    )
    config.to_yaml(tmp_path / "t.yaml")
    assert TrainerConfig.from_yaml(tmp_path / "t.yaml") == config
    ours = Trainer(mlp(), "cross_entropy", config=config, clip_norm=1.0, progress=False)
    assert ours.config.clip_norm == 1.0
    assert ours.optimizer.learning_rate == 0.1


def test_a_plain_checkpoint_cannot_be_resumed(tmp_path: Path) -> None:
    model = mlp()
    ember_ml.save(model, tmp_path / "m")
    with pytest.raises(ValueError, match=r"has no training.json"):
        trainer(model).resume(tmp_path / "m")
