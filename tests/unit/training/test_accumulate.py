"""`accumulate=k` equals one batch that is k times as large."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.data import ArrayDataset, DataLoader, IterableDataset
from ember_ml.nn import layers
from ember_ml.nn.tensor import array
from ember_ml.training.callbacks import Checkpoint
from tests.unit.training.classifiers import X, Y, mlp, trainer

RNG = np.random.default_rng(5)
TOKENS = RNG.standard_normal((12, 4, 5)).astype("float32")
CLASSES = RNG.integers(0, 3, (12, 4))
MASK = RNG.random((12, 4)) < np.linspace(0.1, 0.9, 12)[:, None]
IGNORED = np.where(MASK, CLASSES, -100)


def dense() -> nn.Module:
    ops.random.set_seed(1)
    return layers.Dense(5, 3)


def mean_of_tokens(prediction: Any, target: Any) -> Any:
    return ops.cross_entropy(prediction, target)


CASES = {
    "mask": ("cross_entropy", (TOKENS, CLASSES, MASK)),
    "weights": ("cross_entropy", (TOKENS, CLASSES, RNG.random((12, 4)).astype("float32"))),
    "ignored": ("cross_entropy", (TOKENS, IGNORED)),
    "class_weight": (
        {"type": "cross_entropy", "class_weight": [0.1, 1.0, 5.0]},
        (TOKENS, CLASSES),
    ),
    "sum": ({"type": "cross_entropy", "reduction": "sum"}, (TOKENS, CLASSES, MASK)),
    "regression": ("huber", (TOKENS, TOKENS[..., :3])),
    "function": (mean_of_tokens, (TOKENS, CLASSES)),
}


class Shifted(nn.Module):
    """Model with parameters whose gradients are equal, and may share their memory."""

    def __init__(self) -> None:
        self.one = nn.Parameter(ops.zeros((5,)))
        self.two = nn.Parameter(ops.zeros((5,)))

    def forward(self, x):
        return x + (self.one + self.two)


def test_gradients_that_share_memory_are_accumulated_once(backend: str) -> None:
    data = TOKENS.reshape(-1, 5), RNG.standard_normal((48, 5)).astype("float32")
    options: dict[str, Any] = {"loss": "mse", "optimizer": "sgd", "learning_rate": 0.1}
    whole, parts = trainer(Shifted(), **options), trainer(Shifted(), accumulate=3, **options)
    whole.fit(DataLoader(ArrayDataset(*data), 48), epochs=2)
    parts.fit(DataLoader(ArrayDataset(*data), 16), epochs=2)
    for name, x in whole.model.state_dict().items():
        assert np.allclose(x.numpy(), parts.model.state_dict()[name].numpy(), atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_accumulated_batches_equal_a_large_one(case: str, backend: str) -> None:
    loss, data = CASES[case]
    options: dict[str, Any] = {"loss": loss, "optimizer": "sgd", "clip_norm": 0.05}
    whole, parts = trainer(dense(), **options), trainer(dense(), accumulate=3, **options)
    whole.fit(DataLoader(ArrayDataset(*data), 12), epochs=2)
    parts.fit(DataLoader(ArrayDataset(*data), 5), epochs=2)  # batches of 5, 5 and 2
    assert whole.step == parts.step == 2
    assert np.allclose(whole.history.losses, parts.history.losses, rtol=1e-4)
    for name, x in whole.model.state_dict().items():
        assert np.allclose(x.numpy(), parts.model.state_dict()[name].numpy(), atol=1e-6)


def test_sequences_of_several_lengths_count_by_their_tokens(backend: str) -> None:
    ours = trainer(dense(), accumulate=2, optimizer="sgd")
    for length in (4, 1):
        ours.train_step((array(TOKENS[:6, :length]), array(CLASSES[:6, :length])))
    whole = trainer(dense(), optimizer="sgd")
    tokens = np.concatenate([TOKENS[:6].reshape(-1, 5), TOKENS[:6, 0]])
    classes = np.concatenate([CLASSES[:6].ravel(), CLASSES[:6, 0]])
    whole.train_step((array(tokens), array(classes)))
    for name, x in whole.model.state_dict().items():
        assert np.allclose(x.numpy(), ours.model.state_dict()[name].numpy(), atol=1e-6)


def test_the_last_incomplete_group_of_an_epoch_is_a_step(backend: str) -> None:
    ours = trainer(accumulate=3)
    history = ours.fit(DataLoader(ArrayDataset(X, Y), 12), epochs=2)  # groups of 3 and 1
    assert ours.step == ours.total_steps == 4
    assert [record["epoch"] for record in history.steps] == [0, 0, 1, 1]
    large = trainer()
    for a, b in ((0, 36), (36, 48)):
        large.train_step((array(X[a:b]), array(Y[a:b])))
    assert np.allclose(large.model.layers[0].weight.numpy(), _after_an_epoch(), atol=1e-6)


def _after_an_epoch() -> np.ndarray:
    ours = trainer(accumulate=3)
    ours.fit(DataLoader(ArrayDataset(X, Y), 12), epochs=1)
    return ours.model.layers[0].weight.numpy()


@pytest.mark.parametrize("stop", [1, 2, 3, 4, 5])
def test_resuming_within_an_epoch_of_groups_is_exact(stop: int, tmp_path: Path) -> None:
    def loader() -> DataLoader:
        return DataLoader(ArrayDataset(X, Y), 10, shuffle=True)  # 5 batches: groups of 2, 2, 1

    with ember_ml.use_backend("numpy"):
        whole = trainer(accumulate=2)
        whole.fit(loader(), (X, Y), epochs=2)
        first = trainer(accumulate=2, callbacks=[Checkpoint(tmp_path, every_steps=stop)])
        first.fit(loader(), (X, Y), steps=stop)
        again = trainer(accumulate=2).resume(tmp_path / "last")
        again.fit(loader(), (X, Y), epochs=2)
    assert again.history.losses == whole.history.losses
    assert again.history.column("val_loss") == whole.history.column("val_loss")
    assert again.epoch == whole.epoch == 2


def test_a_checkpoint_in_the_middle_of_a_group_is_exact(backend: str, tmp_path: Path) -> None:
    def batch(at: int) -> tuple[Any, Any]:
        return array(X[at : at + 12]), array(Y[at : at + 12])

    whole = trainer(mlp(), accumulate=3)
    for at in (0, 12):
        assert whole.train_step(batch(at)) is None
    whole.save(tmp_path / "a")
    again = trainer(mlp(), accumulate=3).resume(tmp_path / "a")
    mine, theirs = whole.train_step(batch(24)), again.train_step(batch(24))
    assert mine.pop("grad_norm") == pytest.approx(theirs.pop("grad_norm"), rel=1e-6)
    assert mine == theirs
    for name, x in whole.model.state_dict().items():
        assert (x == again.model.state_dict()[name]).all()


def test_a_stream_has_a_last_group_too(tmp_path: Path) -> None:
    def stream() -> DataLoader:
        return DataLoader(IterableDataset(lambda: zip(X[:30], Y[:30], strict=True)), 10)

    with ember_ml.use_backend("numpy"):
        ours = trainer(accumulate=2, callbacks=[Checkpoint(tmp_path, every_steps=2)])
        ours.fit(stream(), epochs=2)
        assert ours.step == 4
        again = trainer(accumulate=2).resume(tmp_path / "last")
        again.fit(stream(), epochs=3)
        whole = trainer(accumulate=2)
        whole.fit(stream(), epochs=3)
    assert again.history.losses == whole.history.losses
