"""Several threads: first use of the registry, inference and gradients on one model."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml.backend import use_backend
from ember_ml.nn.models import LanguageModel
from ember_ml.nn.module import inference_mode
from ember_ml.training import Trainer
from tests.backends import eager

THREADS = 8
PROCESSES = int(os.environ.get("EMBER_ROBUSTNESS_PROCESSES", "3"))
"""Number of fresh processes; `make robustness` starts more."""

T = TypeVar("T")


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    """Let threads take turns as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(function: Callable[[int], T], threads: int = THREADS) -> list[T]:
    """Return the results of a function called with 0, 1, ... in threads that start together."""
    barrier = threading.Barrier(threads)

    def call(number: int) -> T:
        barrier.wait()
        return function(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(call, range(threads)))


FIRST_USE = """
import random, sys, threading
sys.setswitchinterval(1e-6)
import ember_ml as ember
from ember_ml import configs, registry

USES = [
    lambda: registry.create("layers/dense", 4, 2),
    lambda: len(registry.available("layers")) > 30 or 1 / 0,
    lambda: len(registry.available()) > 100 or 1 / 0,
    lambda: configs.layers.DenseConfig is registry.get("dense", "layers").config or 1 / 0,
    lambda: configs.layers.sequence_mixing.GRUConfig(features=2),
    lambda: registry.get("models/language_model").config,
    lambda: registry.create({"type": "optimizers/adam"}, ember.nn.layers.Dense(2, 2)),
    lambda: ember.nn.layers.sequence_mixing.Mamba,
    lambda: ember.training.Trainer(ember.nn.layers.Dense(2, 2), "mse", progress=False),
    lambda: ember.mad.task("in-context-recall"),
    lambda: registry.get("activations/gelu").config,
]
errors, start = [], threading.Barrier(8)
order = random.Random(int(sys.argv[1])).sample(USES, 8)

def run(use):
    start.wait()
    try:
        use()
    except BaseException as error:
        errors.append(f"{use.__code__.co_firstlineno}: {type(error).__name__}: {error}")

threads = [threading.Thread(target=run, args=(use,)) for use in order]
for thread in threads: thread.start()
for thread in threads: thread.join(120)
errors += [f"{thread} hangs" for thread in threads if thread.is_alive()]
print(*errors, sep="\\n")
"""


@pytest.mark.parametrize("seed", range(PROCESSES))
def test_the_registry_is_first_used_by_several_threads(seed: int) -> None:
    command = [sys.executable, "-c", FIRST_USE, str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_inference_mode_is_one_threads_own(backend: str) -> None:
    layer = nn.layers.Dropout(0.5)
    inside, seen = threading.Event(), threading.Event()

    def infer() -> bool:
        with inference_mode(layer.modules()):
            inside.set()
            assert seen.wait(60)
            return layer.training

    with ThreadPoolExecutor(1) as pool:
        inference = pool.submit(infer)
        assert inside.wait(60)
        assert layer.training  # this thread trains on
        with inference_mode([layer]):
            assert not layer.training
            seen.set()
            assert not inference.result()
            assert not layer.training
    assert layer.training


def test_threads_generate_with_a_model_in_training_mode(backend: str) -> None:
    model = LanguageModel("gru", vocab_size=8, hidden_size=8, dropout=0.5)
    prompts = [[[number, 1, 2]] for number in range(4)]
    expected = [model.generate(prompt, 6, temperature=0.0).tolist() for prompt in prompts]
    for _ in range(3):
        results = together(
            lambda at: model.generate(prompts[at], 6, temperature=0.0).tolist(), len(prompts)
        )
        assert results == expected
    assert all(module.training for module in model.modules())


def test_threads_predict_with_averaged_weights(backend: str) -> None:
    x = np.random.default_rng(0).normal(size=(64, 3)).astype("float32")
    trainer = Trainer(
        nn.Sequential(nn.layers.Dense(3, 8), nn.layers.Dropout(0.5), nn.layers.Dense(8, 1)),
        "mse", optimizer="schedule_free_adamw", ema=0.9, seed=0, progress=False,
    )  # fmt: skip
    trainer.fit((x, x[:, :1]), steps=4)
    before = {name: value.numpy() for name, value in trainer.model.state_dict().items()}
    expected = trainer.predict(x).numpy()
    for result in together(lambda _: trainer.predict(x).numpy()):
        np.testing.assert_array_equal(result, expected)
    for name, value in trainer.model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])


def test_threads_compute_gradients_of_one_model(backend: str) -> None:
    model = nn.Sequential(nn.layers.Dense(3, 8, activation="tanh"), nn.layers.Dense(8, 1))
    inputs = [ops.random.normal((5, 3), seed=number) for number in range(THREADS)]
    before = {name: value.numpy() for name, value in model.state_dict().items()}
    step = nn.value_and_grad(model, lambda x: ops.mean(model(x) ** 2))

    def gradients(number: int) -> list[Any]:
        with use_backend(backend):
            return [g.numpy() for g in step(inputs[number])[1].values()]

    expected = [gradients(number) for number in range(THREADS)]
    for result, wanted in zip(together(gradients), expected, strict=True):
        for mine, other in zip(result, wanted, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-6)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])


@pytest.mark.parametrize("backend", eager())  # a lazy array belongs to the thread that made it
def test_batches_of_all_threads_enter_the_running_statistics(backend: str) -> None:
    with use_backend(backend):
        _track()


def _track() -> None:
    layer = nn.layers.BatchNorm(2, momentum=0.05)
    x = ops.random.normal((6, 2), seed=0)
    rounds = 5
    together(lambda _: [layer(x) for _ in range(rounds)], 4)
    remaining = 0.95 ** (4 * rounds)  # each batch reduces the distance to its mean by 5 %
    mean = x.numpy().mean(axis=0)
    np.testing.assert_allclose(
        layer.running_mean.numpy(), mean * (1 - remaining), rtol=1e-5, atol=1e-6
    )
