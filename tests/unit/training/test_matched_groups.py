"""Parameter groups selected by name, in code and in configs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ember_ml.backend import use_backend
from ember_ml.configs import ConfigError
from ember_ml.registry import available, build
from ember_ml.training import Trainer, TrainerConfig
from ember_ml.training.optimizer import AdamW
from tests.unit.training.classifiers import X, Y, mlp, trainer

GROUPS = [
    {"match": "*.bias", "weight_decay": 0.0},
    {"match": ["layers.1.*", "nothing"], "learning_rate": 0.5},
]


def config(**options) -> TrainerConfig:
    return TrainerConfig(optimizer={"type": "adamw", "groups": GROUPS}, **options)


def test_groups_of_a_config_equal_groups_of_parameters(backend: str) -> None:
    ours = Trainer(mlp(), "cross_entropy", config=config(learning_rate=0.02), progress=False)
    model = mlp()
    named = dict(model.named_parameters())
    by_hand = [
        {"params": [("layers.0.weight", named["layers.0.weight"])]},
        {
            "params": [(name, named[name]) for name in named if name.endswith("bias")],
            "weight_decay": 0.0,
        },
        {"params": [("layers.1.weight", named["layers.1.weight"])], "learning_rate": 0.5},
    ]
    plain = trainer(model, optimizer=AdamW(by_hand, learning_rate=0.02), learning_rate=None)
    assert [group.plain() for group in ours.optimizer.groups] == [
        group.plain() for group in plain.optimizer.groups
    ]
    assert np.allclose(
        ours.fit((X, Y), epochs=2).losses, plain.fit((X, Y), epochs=2).losses, atol=1e-6
    )


def test_groups_are_written_to_yaml(tmp_path: Path) -> None:
    config().to_yaml(tmp_path / "t.yaml")
    read = TrainerConfig.from_yaml(tmp_path / "t.yaml")
    assert read == config()
    with use_backend("numpy"):
        ours = Trainer(mlp(), "cross_entropy", config=read, progress=False)
        assert [len(group.names) for group in ours.optimizer.groups] == [1, 2, 1]
        assert ours.learning_rates()[2] == 0.5


def test_groups_survive_a_resume(tmp_path: Path) -> None:
    def run() -> Trainer:
        return Trainer(mlp(), "cross_entropy", config=config(seed=0), progress=False)

    with use_backend("numpy"):
        whole, first = run(), run()
        whole.fit((X, Y), epochs=3)
        first.fit((X, Y), epochs=1)
        first.save(tmp_path / "a")
        again = run().resume(tmp_path / "a")
        assert again.fit((X, Y), epochs=3).losses == whole.history.losses


@pytest.mark.parametrize("entry", available("optimizers"), ids=lambda entry: entry.name)
def test_every_optimizer_takes_groups(entry) -> None:
    with use_backend("numpy"):
        fields = {"type": entry.name, "groups": [{"match": "*.bias", "learning_rate": 0.25}]}
        optimizer = build("optimizers", fields, mlp())
        assert [group.learning_rate for group in optimizer.groups][1] == 0.25
        assert optimizer.config.to_dict()["groups"] == fields["groups"]


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ([{"match": "*.bia"}], ValueError, "no parameter matches '\\*.bia'.*there are layers.0.w"),
        ([{"match": "*.bias", "weight_decy": 0}], ConfigError, "did you mean 'weight_decay'"),
        ([{"weight_decay": 0}], ConfigError, "must be a mapping with 'match'"),
        ([{"match": 3}], ConfigError, "match must be a pattern"),
        ([{"match": "*.bias", "weight_decay": -1.0}], ValueError, "weight_decay"),
    ],
)
def test_errors(groups: list, error: type, message: str) -> None:
    with use_backend("numpy"), pytest.raises(error, match=message):
        trainer(optimizer={"type": "adamw", "groups": groups})
