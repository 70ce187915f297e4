"""Batches with NaN: named, and never applied to the model."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml._core import runtime
from ember_ml.backend import use_backend
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.nn import layers
from ember_ml.nn.tensor import array
from ember_ml.training import NonFiniteError, NonFiniteWarning, TrainerConfig
from ember_ml.training.trainer import compiled_step
from tests.unit.training.classifiers import X, Y, trainer

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")  # NumPy's

BAD = X.copy()
BAD[30, 2] = np.nan


def normalized() -> nn.Module:
    ops.random.set_seed(1)
    return nn.Sequential(layers.Dense(5, 4), layers.BatchNorm(4), layers.Dense(4, 3))


def everything(ours: Any) -> dict[str, np.ndarray]:
    """Return all values that a step changes."""
    found = {f"model/{name}": x for name, x in ours.model.state_dict().items()}
    saved = ours.optimizer.state_dict()
    found |= {f"optimizer/{name}": x for name, x in saved["tensors"].items()}
    if ours.ema is not None:
        found |= {f"ema/{name}": x for name, x in ours.ema.state_dict()["tensors"].items()}
    numbers = {"count": np.array(saved["step"])}
    return {name: x.numpy().copy() for name, x in found.items()} | numbers


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(first[name], second[name]) for name in first)


def batch(x: np.ndarray) -> tuple[Any, Any]:
    return array(x[24:36]), array(Y[24:36])


@pytest.mark.parametrize("options", [{}, {"accumulate": 2}, {"compile": False}])
def test_a_batch_with_nan_changes_nothing(options: dict, backend: str) -> None:
    ours = trainer(normalized(), ema=0.9, **options)
    for _ in range(2):
        ours.train_step(batch(X))
    before = everything(ours)
    with pytest.raises(NonFiniteError, match=r"the loss is nan.*not finite in this batch: inputs"):
        ours.train_step(batch(BAD))
    assert same(before, everything(ours))
    for _ in range(2):
        ours.train_step(batch(X))
    assert not same(before, everything(ours))
    assert all(np.isfinite(x).all() for x in everything(ours).values())


@pytest.mark.parametrize("held", [0, compiled_step.HELD], ids=["selected", "held"])
def test_a_compiled_step_retains_the_old_values(
    held: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = runtime.load(backend).autodiff
    if not engine.COMPILES_QUICKLY:
        pytest.skip("compiling takes too long for a test, or is not available")
    monkeypatch.setattr(compiled_step, "HELD", held)
    ours = trainer(normalized(), ema=0.9, compile=True)
    for _ in range(3):
        ours.train_step(batch(X))
    before = everything(ours)
    with pytest.raises(NonFiniteError, match="not finite in this batch: inputs"):
        ours.train_step(batch(BAD))
    assert same(before, everything(ours))


@pytest.mark.parametrize("small", [0, 8, 2**16])
def test_the_norm_is_that_of_all_gradients(
    small: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = runtime.load(backend).optimization
    monkeypatch.setattr(kernels, "SMALL", small, raising=False)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in [(3, 4), (4,), (), (2, 8)]]
    with use_backend(backend):
        natives = [array(x).native for x in arrays]
        natives[0] = array(arrays[0].T.copy()).T.native  # not contiguous
        half = array(arrays[1], dtype="float16").native
    expected = np.linalg.norm(np.concatenate([x.ravel() for x in arrays]))
    with_half = np.hypot(expected, np.linalg.norm(arrays[1]))
    assert kernels.read_norm(kernels.norm_parts(natives)) == pytest.approx(expected, rel=1e-6)
    assert float(kernels.global_norm(natives)) == pytest.approx(expected, rel=1e-6)
    mixed = [*natives, half]
    assert kernels.read_norm(kernels.norm_parts(mixed)) == pytest.approx(with_half, rel=1e-3)
    for bad in (np.nan, np.inf):
        with use_backend(backend):
            wrong = [*natives, array(np.array([1.0, bad], np.float32)).native]
        assert not np.isfinite(kernels.read_norm(kernels.norm_parts(wrong)))


def test_the_error_names_the_batch_and_the_example(backend: str) -> None:
    ours = trainer(seed=3)
    with pytest.raises(NonFiniteError, match=r"batch \d of epoch 0 .*dataset index 30\)") as caught:
        ours.fit((BAD, Y), batch_size=12)
    assert caught.value.indices == [30]
    assert caught.value.parameters == []
    targets = np.array(X[:, :3])
    targets[7, 1] = np.inf
    with pytest.raises(NonFiniteError, match=r"this batch: targets \(dataset index 7\)"):
        trainer(loss="mse").fit(DataLoader(ArrayDataset(X, targets), 12))


class Root(nn.Module):
    """Model with a finite loss and an infinite gradient."""

    def __init__(self) -> None:
        self.inner = layers.Dense(5, 3)
        self.zero = nn.Parameter(ops.zeros((3,)))

    def forward(self, x):
        return self.inner(x) + ops.sqrt(self.zero)


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_a_gradient_that_is_not_finite_is_seen_before_the_update(
    compiled: bool, backend: str
) -> None:
    if compiled and not runtime.load(backend).autodiff.COMPILES_QUICKLY:
        pytest.skip("compiling takes too long for a test, or is not available")
    ours = trainer(Root(), compile=compiled)
    before = everything(ours)
    with pytest.raises(NonFiniteError, match=r"not finite: the gradients of zero\.") as caught:
        ours.fit((X, Y), steps=1)
    assert caught.value.parameters == ["zero"]
    assert same(before, everything(ours))


def test_a_skipped_batch_is_as_if_it_were_not_there(backend: str) -> None:
    rows = np.r_[0:24, 36:48]
    skips = trainer(normalized(), ema=0.9, on_nonfinite="skip")
    with pytest.warns(NonFiniteWarning, match="skipped: .*dataset index 30"):
        history = skips.fit(DataLoader(ArrayDataset(BAD, Y), 12), epochs=2)
    plain = trainer(normalized(), ema=0.9)
    plain.fit(DataLoader(ArrayDataset(X[rows], Y[rows]), 12), epochs=2)
    assert same(everything(skips), everything(plain))
    assert skips.skipped == 2
    assert [record["step"] for record in history.steps if "skipped" in record] == [3.0, 7.0]
    assert np.isfinite(history.column("loss")).all()


def test_a_skipped_batch_is_left_out_of_an_accumulated_step(backend: str) -> None:
    skips = trainer(accumulate=2, on_nonfinite="skip")
    with pytest.warns(NonFiniteWarning):
        skips.fit(DataLoader(ArrayDataset(BAD, Y), 12), epochs=1)
    plain = trainer()
    plain.train_step((array(X[:24]), array(Y[:24])))
    plain.train_step((array(X[36:]), array(Y[36:])))
    assert skips.step == 2
    for name, x in plain.model.state_dict().items():
        assert np.allclose(x.numpy(), skips.model.state_dict()[name].numpy(), atol=1e-6)


def test_an_epoch_without_a_finite_batch_is_an_error() -> None:
    with (
        use_backend("numpy"),
        pytest.warns(NonFiniteWarning),
        pytest.raises(NonFiniteError, match="no batch of epoch 0"),
    ):
        trainer(on_nonfinite="skip").fit((np.full_like(X, np.nan), Y), steps=9)


def test_a_rollback_returns_to_the_last_snapshot(backend: str, tmp_path: Path) -> None:
    ours = trainer(normalized(), ema=0.9, on_nonfinite="rollback")
    ours.fit(DataLoader(ArrayDataset(X, Y), 12), epochs=1)
    before = everything(ours)
    with pytest.warns(NonFiniteWarning, match="rolled back to step 4"):
        ours.fit(DataLoader(ArrayDataset(BAD, Y), 12), steps=3)
    assert ours.step == 7
    assert same(before, everything(ours))
    ours.train_step(batch(X))
    ours.optimizer.train()
    ours.save(tmp_path / "a")
    saved = everything(ours)
    ours.train_step(batch(X))
    with pytest.warns(NonFiniteWarning, match="rolled back to step 8"):
        ours.train_step(batch(BAD))
    assert same(saved, everything(ours))


def test_a_rollback_across_a_resume_is_the_same(tmp_path: Path) -> None:
    def run(*, stop: bool) -> dict[str, np.ndarray]:
        ours = trainer(normalized(), on_nonfinite="rollback")
        with use_backend("numpy"), warnings.catch_warnings():
            warnings.simplefilter("ignore", NonFiniteWarning)
            loader = DataLoader(ArrayDataset(BAD, Y), 12)
            ours.fit(loader, steps=1)
            ours.save(tmp_path / "a")
            if stop:
                ours = trainer(normalized(), on_nonfinite="rollback").resume(tmp_path / "a")
            ours.fit(DataLoader(ArrayDataset(BAD, Y), 12) if stop else loader, until_epoch=2)
        return everything(ours)

    with use_backend("numpy"):
        assert same(run(stop=False), run(stop=True))


def test_an_overflow_of_float16_is_not_an_error() -> None:
    with use_backend("numpy"):
        ours = trainer(normalized(), precision="float16")
        ours._runner.scale.value = 2.0**24
        losses = ours.fit((X, Y), epochs=2, batch_size=12).losses
        assert ours._runner.scale.value < 2.0**24
        assert np.isfinite(losses).all()
        with pytest.raises(NonFiniteError):
            ours.fit((BAD, Y), batch_size=12)


def test_the_option_is_part_of_the_config(tmp_path: Path) -> None:
    config = TrainerConfig(on_nonfinite="skip")
    config.to_yaml(tmp_path / "t.yaml")
    assert TrainerConfig.from_yaml(tmp_path / "t.yaml") == config
    with pytest.raises(ValueError, match="on_nonfinite"):
        TrainerConfig(on_nonfinite="ignore")
