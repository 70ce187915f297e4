"""Kinds of data that a trainer takes, the masks in their batches, and their dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ember_ml import nn, ops
from ember_ml._core.tensor import Tensor
from ember_ml.data import ArrayDataset, DataLoader, Dataset, pad_collate
from ember_ml.training import Trainer
from ember_ml.training.trainer import sources
from tests.backends import has_dtype

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3)).astype("float32")
Y = X.sum(axis=1, keepdims=True)
SIZE = 8
BATCHES = [(X[at : at + SIZE], Y[at : at + SIZE]) for at in range(0, 24, SIZE)]


def trainer(**options: Any) -> Trainer:
    ops.random.set_seed(0)
    return Trainer(nn.layers.Dense(3, 1), "mse", optimizer="sgd", progress=False, **options)


def torch_loader() -> Any:
    tensors = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    return torch.utils.data.DataLoader(tensors, batch_size=SIZE)


KINDS: dict[str, Any] = {
    "list": lambda: BATCHES,
    "list of dicts": lambda: [{"inputs": x, "targets": y} for x, y in BATCHES],
    "list of lists": lambda: [[x, y] for x, y in BATCHES],
    "torch DataLoader": torch_loader,
    "generator": lambda: iter(BATCHES),
    "dataset": lambda: DataLoader(ArrayDataset(X, Y), SIZE),
}


@pytest.mark.parametrize("kind", KINDS)
def test_batches_of_any_kind_train_alike(kind: str, backend: str) -> None:
    reference, other = trainer(), trainer()
    reference.fit(DataLoader(ArrayDataset(X, Y), SIZE))
    other.fit(KINDS[kind](), validation=BATCHES)
    assert other.history.losses == reference.history.losses
    assert other.evaluate(KINDS[kind]()) == reference.evaluate((X, Y), batch_size=SIZE)
    assert other.evaluate(X, Y, batch_size=SIZE) == reference.evaluate((X, Y), batch_size=SIZE)
    predicted = other.predict(KINDS[kind]()).numpy()
    np.testing.assert_allclose(predicted, reference.predict(X, batch_size=SIZE).numpy(), rtol=1e-6)


def test_inputs_and_targets_as_two_arguments(backend: str) -> None:
    pair, two, keyword = trainer(), trainer(), trainer()
    pair.fit((X, Y), (X, Y), epochs=2)
    two.fit(X, Y, (X, Y), epochs=2)
    keyword.fit(X, targets=Y, validation=(X, Y), epochs=2)
    assert pair.history.losses == two.history.losses == keyword.history.losses
    assert "val_loss" in two.history.epochs[-1]
    assert "val_loss" in pair.history.epochs[-1]


def test_a_list_of_lists_of_scalars_is_inputs_and_targets() -> None:
    for kind in (float, np.float32, np.float64):
        assert not sources.is_list_of_batches([[kind(1), kind(2)], [kind(3), kind(4)]])
        assert len(ArrayDataset((kind(1), kind(2)))) == 2


def test_a_generator_is_read_once() -> None:
    with pytest.raises(ValueError, match="generator has no more batches"):
        trainer().fit(iter(BATCHES), steps=100)
    parts = trainer()
    batches = iter(BATCHES)
    parts.fit(batches, steps=1)
    parts.fit(batches, steps=2)
    whole = trainer()
    whole.fit(BATCHES)
    assert parts.history.losses == whole.history.losses


@pytest.mark.parametrize("kind", ["list", "torch DataLoader"])
def test_resume_within_an_epoch_is_exact(kind: str, tmp_path: Path) -> None:
    whole, part = trainer(), trainer()
    whole.fit(KINDS[kind](), steps=5)
    part.fit(KINDS[kind](), steps=2)
    part.save(tmp_path / "saved")
    resumed = trainer().resume(tmp_path / "saved")
    resumed.fit(KINDS[kind](), until_step=5)
    assert resumed.history.losses == whole.history.losses


def test_a_resumed_generator_continues_with_its_next_batch(tmp_path: Path) -> None:
    part = trainer()
    part.fit(iter(BATCHES), steps=1)
    part.save(tmp_path / "saved")
    resumed = trainer().resume(tmp_path / "saved")
    with pytest.warns(UserWarning, match="generator"):
        resumed.fit(iter(BATCHES[1:]), until_step=3)
    whole = trainer()
    whole.fit(BATCHES)
    assert resumed.history.losses == whole.history.losses


def test_the_length_of_a_foreign_loader_is_known() -> None:
    assert sources.loader(torch_loader(), 1, shuffle=False, seed=0).num_batches == len(BATCHES)
    assert sources.loader(iter(BATCHES), 1, shuffle=False, seed=0).num_batches is None


class Spans(nn.Module):
    """Sequence model with two inputs."""

    def __init__(self) -> None:
        self.dense = nn.layers.Dense(3, 1)

    def forward(self, x: Tensor, spans: Tensor) -> Tensor:
        return self.dense(x) * spans


def test_nested_arrays(backend: str) -> None:
    spans = RNG.uniform(size=(24, 1)).astype("float32")
    losses = []
    data = [((X, spans), Y), {"inputs": (X, spans), "targets": Y},
            {"inputs": X, "spans": spans, "targets": Y}]  # fmt: skip
    for each in data:
        ops.random.set_seed(0)
        model = Trainer(Spans(), "mse", optimizer="sgd", progress=False)
        losses.append(model.fit(each, epochs=2).losses)
    ops.random.set_seed(0)
    model = Trainer(Spans(), "mse", optimizer="sgd", progress=False)
    losses.append(model.fit((X, spans), Y, epochs=2).losses)
    assert losses[1:] == losses[:-1]


class Pooled(nn.Module):
    """Mean of the positions that are not padding."""

    def __init__(self, per_position: bool) -> None:
        self.dense = nn.layers.Dense(2, 1)
        self.per_position = per_position
        self.masks: list[Any] = []

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        self.masks.append(mask)
        y = self.dense(x)
        if self.per_position or mask is None:
            return y
        weight = ops.astype(mask, "float32")[:, :, None]
        return ops.sum(y * weight, axis=1) / ops.sum(weight, axis=1)


class Sequences(Dataset):
    """Sequences of unequal lengths."""

    def __init__(self, per_position: bool) -> None:
        rng = np.random.default_rng(1)
        self.inputs = [rng.normal(size=(n, 2)).astype("float32") for n in (3, 5, 2, 4)]
        self.targets = [x.sum(1, keepdims=True) if per_position else x.mean(0)[:1]
                        for x in self.inputs]  # fmt: skip

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> Any:
        return self.inputs[index], self.targets[index]


@pytest.mark.parametrize("per_position", [True, False])
@pytest.mark.parametrize("returns", ["mask", "lengths"])
def test_padded_batches_train_without_their_padding(
    returns: str, per_position: bool, backend: str
) -> None:
    data = Sequences(per_position)
    ops.random.set_seed(0)
    model = Pooled(per_position)
    trainer = Trainer(model, "mse", progress=False, compile=False)
    padded = DataLoader(data, len(data), collate=pad_collate(99.0, returns=returns))
    result = trainer.evaluate(padded)["loss"]
    assert model.masks[-1].tolist() == [[at < len(x) for at in range(5)] for x in data.inputs]
    errors = []
    for x, y in zip(data.inputs, data.targets, strict=True):
        output = model.dense(x).numpy()
        errors.append((output if per_position else output.mean(axis=0)) - y)
    expected = np.mean(np.concatenate([error.reshape(-1) for error in errors]) ** 2)
    assert result == pytest.approx(expected, rel=1e-5)
    first = trainer.fit(padded).losses[0]
    assert first == pytest.approx(expected, rel=1e-5)
    assert trainer.predict(padded).shape[0] == len(data)


def test_the_mask_of_a_dict_reaches_model_and_loss(backend: str) -> None:
    x = RNG.normal(size=(4, 5, 2)).astype("float32")
    mask = np.arange(5) < np.array([3, 5, 2, 4])[:, None]
    model = Pooled(per_position=True)
    trainer = Trainer(model, "mse", progress=False, compile=False)
    targets = np.where(mask[:, :, None], x[:, :, :1], 1e6).astype("float32")
    loss = trainer.evaluate({"inputs": x, "targets": targets, "mask": mask})["loss"]
    assert model.masks[-1].tolist() == mask.tolist()
    expected = np.mean((model.dense(x).numpy() - targets)[mask] ** 2)
    assert loss == pytest.approx(expected, rel=1e-5)
    weights = np.ones((4, 5), "float32")  # float: weights, not a padding mask
    trainer.evaluate({"inputs": x, "targets": targets, "mask": weights})
    assert model.masks[-1] is None
    trainer.evaluate((x, targets, mask))  # the third part of a tuple is for the loss
    assert model.masks[-1] is None


class Recorder(nn.Module):
    """Dense layer that notes the dtypes of its inputs."""

    def __init__(self) -> None:
        self.dense = nn.layers.Dense(3, 1)
        self.dtypes: list[str] = []

    def forward(self, x: Tensor) -> Tensor:
        self.dtypes.append(x.dtype.name)
        return self.dense(x)


def float64_data(backend: str) -> Iterator[Any]:
    wide = X.astype("float64"), Y.astype("float64")
    yield wide
    yield [wide]
    yield [tuple(map(torch.from_numpy, wide))]
    yield DataLoader(ArrayDataset(*wide), SIZE)
    if has_dtype(backend, "float64"):
        yield tuple(map(ops.asarray, wide))


def test_float64_data_stays_out_of_a_float32_model(backend: str) -> None:
    for data in float64_data(backend):
        model = Recorder()
        trainer = Trainer(model, "mse", optimizer="sgd", progress=False)
        trainer.fit(data, data)
        trainer.predict(data)
        assert set(model.dtypes) == {"float32"}
        assert {x.dtype.name for x in model.parameters()} == {"float32"}


def test_float32_data_in_a_float64_model(backend: str) -> None:
    if not has_dtype(backend, "float64"):
        with pytest.raises(TypeError, match="float64"):
            Recorder().to("float64")
        return
    model = Recorder()
    model.to("float64")
    Trainer(model, "mse", optimizer="sgd", progress=False).fit(X, Y)
    assert set(model.dtypes) == {"float64"}
