"""Parameters that are frozen and unfrozen before and during training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ember_ml import nn
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.nn import layers
from ember_ml.nn.tensor import array
from ember_ml.training.callbacks import Callback
from ember_ml.training.optimizer import Adam
from tests.unit.training.classifiers import X, Y, mlp, trainer


def loader() -> DataLoader:
    return DataLoader(ArrayDataset(X, Y), 12)


def frozen_first() -> nn.Module:
    model = mlp()
    model.layers[0].freeze()
    return model


class Unfreeze(Callback):
    """Unfreezes the first layer after a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, trainer, record) -> None:
        if trainer.step == self.step:
            trainer.model.layers[0].unfreeze()


def torch_twin(steps: int, start: int) -> tuple[list[float], torch.nn.Sequential]:
    """Train torch's own layers, whose first one has no gradient before a step."""
    model = mlp()
    twin = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    for mine, theirs in zip(model.layers, (twin[0], twin[2]), strict=True):
        theirs.weight.data = torch.tensor(mine.weight.numpy())
        theirs.bias.data = torch.tensor(mine.bias.numpy())
    optimizer = torch.optim.Adam(twin.parameters(), lr=0.02)
    losses = []
    for step in range(steps):
        twin[0].requires_grad_(step >= start)
        at = step * 12 % 48
        x, y = torch.tensor(X[at : at + 12]), torch.tensor(Y[at : at + 12])
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(twin(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, twin


@pytest.mark.parametrize("accumulate", [1, 2])
def test_parameters_unfrozen_later_train(accumulate: int, backend: str) -> None:
    ours = trainer(frozen_first(), accumulate=accumulate)
    ours.fit(loader(), epochs=1)
    before = ours.model.layers[0].weight.numpy().copy()
    ours.model.layers[0].unfreeze()
    ours.fit(loader(), epochs=1)
    assert (ours.model.layers[0].weight.numpy() != before).any()


def test_unfreezing_during_fit_equals_torch(backend: str) -> None:
    ours = trainer(frozen_first(), callbacks=[Unfreeze(3)])
    losses = ours.fit(loader(), steps=8).losses
    wanted, twin = torch_twin(8, 3)
    assert np.allclose(losses, wanted, atol=1e-5)
    first = ours.model.layers[0].weight.numpy()
    assert np.allclose(first, twin[0].weight.detach().numpy(), atol=1e-5)


def test_frozen_parameters_have_no_state() -> None:
    optimizer = Adam(frozen_first())
    assert sorted(optimizer.state_dict()["tensors"]) == [
        f"{slot}/layers.1.{name}"
        for slot in ("exp_avg", "exp_avg_sq")
        for name in ("bias", "weight")
    ]


def test_an_optimizer_alone_adds_unfrozen_parameters_in_their_groups(backend: str) -> None:
    model = frozen_first()
    first, last = model.layers
    groups = [
        {"params": first.named_parameters(), "learning_rate": 0.5},
        {"params": [(f"last.{name}", x) for name, x in last.named_parameters()]},
    ]
    optimizer = Adam(groups, learning_rate=0.01)
    step = nn.value_and_grad(model, lambda: model(array(X)).sum())
    optimizer.step(list(step()[1].values()))
    before = first.weight.numpy().copy()
    first.unfreeze()
    optimizer.step(list(step()[1].values()))
    assert optimizer.names == ["weight", "bias", "last.weight", "last.bias"]
    change = np.abs(first.weight.numpy() - before)
    assert np.allclose(change[change > 0], 0.5, atol=1e-3)  # the first step of Adam


def test_freezing_in_between_keeps_the_state(backend: str) -> None:
    ours = trainer()
    ours.fit(loader(), steps=2)
    before = ours.optimizer.state_dict()["tensors"]["exp_avg/layers.0.weight"].numpy()
    ours.model.layers[0].freeze()
    ours.fit(loader(), steps=2)
    after = ours.optimizer.state_dict()["tensors"]["exp_avg/layers.0.weight"].numpy()
    assert np.array_equal(before, after)
    ours.model.layers[0].unfreeze()
    ours.fit(loader(), steps=2)


def test_a_resume_knows_what_was_unfrozen(backend: str, tmp_path: Path) -> None:
    whole = trainer(frozen_first(), callbacks=[Unfreeze(3)])
    whole.fit(loader(), steps=8)
    first = trainer(frozen_first(), callbacks=[Unfreeze(3)])
    first.fit(loader(), steps=5)
    first.save(tmp_path / "a")
    again = trainer(frozen_first()).resume(tmp_path / "a")
    again.model.layers[0].unfreeze()
    again.fit(loader(), steps=8)
    assert again.history.losses == whole.history.losses


def test_parameters_added_to_the_model_are_refused() -> None:
    ours = trainer()
    ours.model.layers[1] = layers.Dense(8, 3)
    with pytest.raises(ValueError, match=r"does not have the parameters layers.1.weight"):
        ours.fit((X, Y))


def test_a_model_that_is_frozen_entirely_is_refused() -> None:
    ours = trainer()
    ours.model.freeze()
    with pytest.raises(ValueError, match="all parameters are frozen"):
        ours.fit((X, Y))


def test_partitions_of_frozen_parameters_are_not_confused(backend: str) -> None:
    ours = trainer()
    plain = trainer(compile=False)
    for each in (ours, plain):
        first, last = each.model.layers
        for part in (first, last):
            each.fit(loader(), steps=2)
            part.freeze()
            each.fit(loader(), steps=1)
            part.unfreeze()
        each.fit(loader(), steps=2)
    assert np.allclose(ours.history.losses, plain.history.losses, atol=1e-5)
