"""Training runs that move between backends, are interrupted or killed, and resume."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import use_backend
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.nn import layers
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Checkpoint

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 4)).astype("float32")
Y = (X.sum(axis=1) > 0).astype("int64")


def model(dropout: float = 0.0) -> nn.Module:
    ops.random.set_seed(3)
    return nn.Sequential(
        layers.MLP(4, [8], 8, dropout=dropout), layers.BatchNorm(8), layers.Dense(8, 2)
    )


def trainer(net: nn.Module, **options) -> Trainer:
    return Trainer(
        net,
        "cross_entropy",
        optimizer={"type": "adamw", "learning_rate": 0.02},
        schedule={"type": "cosine", "total_steps": 60},
        ema=0.9,
        seed=5,
        progress=False,
        **options,
    )


def loader() -> DataLoader:
    return DataLoader(ArrayDataset(X, Y), 7, shuffle=True, seed=2)


def test_a_training_goes_from_torch_to_mlx_to_numpy(tmp_path: Path) -> None:
    with use_backend("numpy"):
        straight = trainer(model())
        straight.fit(loader(), epochs=4)
    with use_backend("torch"):
        first = trainer(model())
        first.fit(loader(), epochs=2)
        first.save(tmp_path / "a")
    with use_backend("mlx"):
        second = trainer(model()).resume(tmp_path / "a")
        second.fit(loader(), epochs=4)
        second.save(tmp_path / "b")
        predicted = second.predict(X).numpy()
    assert len(second.history.losses) == len(straight.history.losses) == 24
    difference = np.array(second.history.losses) - np.array(straight.history.losses)
    assert np.abs(difference).max() < 1e-4
    with use_backend("numpy"):
        third = trainer(model()).resume(tmp_path / "b")
        assert np.abs(third.predict(X).numpy() - predicted).max() < 1e-5
        loaded = ember_ml.load(tmp_path / "b").eval()
        assert loaded(ops.asarray(X)).shape == (40, 2)


@pytest.mark.parametrize("stop", [1, 4, 6, 9, 11])
def test_resuming_anywhere_gives_the_same_curve_to_the_bit(
    stop: int, backend: str, tmp_path: Path
) -> None:
    whole = trainer(model(dropout=0.2))
    whole.fit(loader(), (X, Y), epochs=2)
    first = trainer(model(dropout=0.2), callbacks=[Checkpoint(tmp_path, every_steps=stop)])
    first.fit(loader(), (X, Y), steps=stop)
    ops.random.set_seed(99)  # what happens in between does not matter
    again = trainer(model(dropout=0.2)).resume(tmp_path / "last")
    again.fit(loader(), (X, Y), epochs=2)
    assert again.history.losses == whole.history.losses
    assert again.history.column("val_loss") == whole.history.column("val_loss")
    assert again.history.column("loss") == whole.history.column("loss")
    mine, theirs = again.model.state_dict(), whole.model.state_dict()
    assert all((mine[name] == theirs[name]).all() for name in mine)


SAVE_FOR_EVER = """
    import os, sys
    import ember_ml
    from ember_ml import nn, ops
    from ember_ml.nn import layers

    ember_ml.set_backend("numpy")
    model = nn.Sequential(*[layers.Dense(64, 64) for _ in range(4)])


    def save_for_ever():
        count = 0
        while True:
            for parameter in model.parameters():
                parameter.assign(ops.full(parameter.shape, float(count)))
            ember_ml.save(model, sys.argv[1])
            count += 1
            os.write(1, b"%d\\n" % count)  # at once, or not at all


    for _ in sys.stdin:  # each line asks for a process that saves until it is killed
        child = os.fork()
        if not child:
            save_for_ever()
        print("process", child, flush=True)
        os.waitpid(child, 0)
        print("killed", flush=True)
"""


def test_a_killed_save_leaves_a_checkpoint_that_loads(tmp_path: Path) -> None:
    script = tmp_path / "save.py"
    script.write_text(textwrap.dedent(SAVE_FOR_EVER))
    folder = tmp_path / "model"
    rng = random.Random(0)
    words = [sys.executable, str(script), str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as saver:
        for _ in range(50):
            saved = _saved_until_killed(saver, rng)
            with use_backend("numpy"):
                state = ember_ml.load(folder).state_dict()
            values = {float(x.numpy().flat[0]) for x in state.values()}
            assert len(values) == 1
            assert values.pop() in (saved - 1.0, float(saved))
        saver.stdin.close()
    left = [path.name for path in tmp_path.iterdir()]
    ember_ml.save(layers.Dense(2, 2), folder)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "save.py"], left


def _saved_until_killed(saver: subprocess.Popen[str], rng: random.Random) -> int:
    """Let a process save repeatedly, kill it, and return the number of saves that it reported."""
    saver.stdin.write("\n")
    saver.stdin.flush()
    child, saved = 0, 0
    while not (child and saved):  # at least one save is complete
        word, *rest = saver.stdout.readline().split()
        child, saved = (int(rest[0]), saved) if rest else (child, int(word))
    time.sleep(rng.uniform(0.0, 0.02))
    os.kill(child, signal.SIGKILL)
    while (line := saver.stdout.readline().strip()) != "killed":
        saved = int(line)
    return saved


def test_digits(backend: str, tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    try:
        import digits
    finally:
        sys.path.pop(0)
    assert digits.train(backend, 30, tmp_path, progress=False) >= 0.97
    assert (tmp_path / f"{backend}.png").exists()
