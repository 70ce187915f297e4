"""Schedule-free AdamW: continuing is exact although evaluation uses other weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.nn import Parameter
from ember_ml.training.optimizer import ScheduleFreeAdamW
from tests.unit.training.classifiers import X, Y, trainer


def run(**options):
    return trainer(optimizer="schedule_free_adamw", learning_rate=0.05, **options)


def loader() -> DataLoader:
    return DataLoader(ArrayDataset(X, Y), 7, shuffle=True, seed=4)


@pytest.mark.parametrize("ema", [None, 0.9])
def test_a_resume_after_fit_is_exact(ema: float | None, backend: str, tmp_path: Path) -> None:
    whole = run(ema=ema)
    whole.fit(loader(), steps=16)
    for stop in (3, 7, 12):
        first = run(ema=ema)
        first.fit(loader(), steps=stop)
        first.save(tmp_path / "a")
        again = run(ema=ema).resume(tmp_path / "a")
        again.fit(loader(), steps=16)
        assert again.history.losses == whole.history.losses
        for name, x in whole.model.state_dict().items():
            assert (x == again.model.state_dict()[name]).all()


def test_a_second_fit_is_exact(backend: str) -> None:
    whole, parts = run(), run()
    whole.fit(loader(), steps=12)
    data = loader()
    for _ in range(4):
        parts.fit(data, steps=3)
        parts.evaluate((X, Y))
    assert parts.history.losses == whole.history.losses


def test_a_resumed_model_has_the_weights_that_were_saved(backend: str, tmp_path: Path) -> None:
    ours = run()
    ours.fit(loader(), steps=5)
    ours.save(tmp_path / "a")
    again = run().resume(tmp_path / "a")
    assert not again.optimizer.training
    for name, x in ours.model.state_dict().items():
        assert (x == again.model.state_dict()[name]).all()


def test_values_assigned_during_evaluation_are_used(backend: str) -> None:
    weight = Parameter(np.array([1.0, 2.0], "float32"), name="weight")
    optimizer = ScheduleFreeAdamW([weight], learning_rate=0.1)
    optimizer.step([np.ones(2, "float32")])
    optimizer.eval()
    weight.assign(np.array([5.0, 6.0], "float32"))
    optimizer.train()
    z = optimizer.state_dict()["tensors"]["z/weight"].numpy()
    assert np.allclose(weight.numpy(), 0.1 * z + 0.9 * np.array([5.0, 6.0]), atol=1e-6)
