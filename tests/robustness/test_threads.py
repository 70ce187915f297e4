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
from ember_ml._core.errors import ConcurrentUseError
from ember_ml.backend import use_backend
from ember_ml.nn.models import LanguageModel
from ember_ml.nn.module import inference_mode
from ember_ml.training import Trainer
from tests.backends import eager
from tests.robustness.scale import FULL, amount

THREADS = 8
PROCESSES = amount(1, 10)
"""Number of fresh processes."""
ENVIRONMENT = {} if FULL else {"EMBER_ML_BACKEND": "numpy"}
"""Torch takes 15 s to load in one of several threads that take turns this often."""
ROUNDS = amount(40, 2000)
"""Number of forward passes next to gradients."""

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
    environment = {**os.environ, **ENVIRONMENT}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=environment
    )
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


def network() -> nn.Module:
    ops.random.set_seed(0)
    return nn.Sequential(nn.layers.Dense(3, 8), nn.layers.BatchNorm(8), nn.layers.Dense(8, 1))


def in_gradient(model: nn.Module, x: Any, inside: Callable[[], object]) -> None:
    nn.value_and_grad(model, lambda: (ops.mean(model(x) ** 2), inside())[0])()


def in_functional_call(model: nn.Module, x: Any, inside: Callable[[], object]) -> None:
    model[0].register_forward_hook(lambda *_: inside() and None)
    zeros = {name: ops.zeros_like(value) for name, value in model.named_parameters()}
    nn.functional_call(model, zeros, x)


def in_training(model: nn.Module, x: Any, inside: Callable[[], object]) -> None:
    class Waiting(Trainer):
        def compute(self, batch: object) -> Any:
            inside()
            return super().compute(batch)

    trainer = Waiting(model, "mse", optimizer="sgd", progress=False)
    trainer.fit((x.numpy(), x.numpy()[:, :1]), steps=1)


def in_evaluation(model: nn.Module, x: Any, inside: Callable[[], object]) -> None:
    trainer = Trainer(model, "mse", ema=0.9, progress=False)
    with trainer.evaluating():
        for parameter in model.parameters():
            parameter.assign(ops.zeros_like(parameter))
        inside()


@pytest.mark.parametrize(
    "block",
    [in_gradient, in_functional_call, in_training, in_evaluation],
)
def test_other_threads_see_the_values_of_the_model(
    backend: str, block: Callable[[nn.Module, Any, Callable[[], object]], None]
) -> None:
    model = network()
    x = ops.random.normal((5, 3), seed=0)
    with inference_mode(model.modules()):
        expected = model(x).numpy()
    begun, seen = threading.Event(), threading.Event()

    here = threading.get_ident()

    def inside() -> None:
        if threading.get_ident() != here:
            begun.set()
            assert seen.wait(20)

    def run() -> None:
        with use_backend(backend):
            block(model, x, inside)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(run)
        try:
            assert begun.wait(20)
            with inference_mode(model.modules()):
                np.testing.assert_array_equal(model(x).numpy(), expected)
            with pytest.raises(ConcurrentUseError, match="cannot be changed while another thread"):
                model.parameters()[0].assign(ops.zeros((8, 3)))
            if block is not in_evaluation:  # which replaces no buffers
                with pytest.raises(ConcurrentUseError, match="inference mode"):
                    model(x)  # in training mode: it updates the running statistics
        finally:
            seen.set()
        other.result(60)
    assert all(
        type(each) in (nn.Parameter, nn.Buffer) for each in (*model.parameters(), *model.buffers())
    )
    model.parameters()[0].assign(ops.zeros((8, 3)))


def test_forward_passes_next_to_gradients(backend: str) -> None:
    model = nn.layers.MLP(3, [8], 1)
    x = ops.random.normal((5, 3), seed=0)
    expected = model(x).numpy()
    step = nn.value_and_grad(model, lambda: ops.mean(model(x) ** 2))
    wanted = [g.numpy() for g in step()[1].values()]

    def use(number: int) -> list[list[Any]]:
        with use_backend(backend):
            if number % 2:
                return [[model(x).numpy()] for _ in range(ROUNDS)]
            return [[g.numpy() for g in step()[1].values()] for _ in range(ROUNDS)]

    for number, results in enumerate(together(use, 4)):
        for result in results:
            for mine, other in zip(result, [expected] if number % 2 else wanted, strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-6)


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


READS: dict[str, Callable[[Any], object]] = {
    "numpy": lambda x: x.numpy(),
    "item": lambda x: x[0, 0].item(),
    "float": lambda x: float(x[0, 0]),
    "bool": lambda x: bool(x[0, 0]),
    "tolist": lambda x: x.tolist(),
    "text": repr,
    "fit": lambda x: Trainer(nn.layers.Dense(2, 2), "mse", progress=False).fit((x, x), steps=1),
}


@pytest.mark.parametrize("read", READS)
def test_a_lazy_result_of_another_thread_is_right_or_refused(read: str, backend: str) -> None:
    values = np.arange(6.0, dtype="float32").reshape(3, 2)

    def compute() -> Any:
        with use_backend(backend):
            return ops.asarray(values) * 2.0 + 1.0

    def refused_or_right(x: Any) -> None:
        with use_backend(backend):
            try:
                READS[read](x)
            except ConcurrentUseError as error:
                assert "another thread has not computed" in str(error)  # noqa: PT017
            else:
                np.testing.assert_array_equal(x.numpy(), values * 2.0 + 1.0)

    with ThreadPoolExecutor(1) as pool:
        refused_or_right(pool.submit(compute).result())
        pool.submit(refused_or_right, compute()).result()


def test_a_result_that_its_thread_has_computed_is_read_anywhere(backend: str) -> None:
    def compute() -> Any:
        with use_backend(backend):
            x = ops.asarray([1.0, 2.0]) * 2.0
            x.numpy()
            return x

    with ThreadPoolExecutor(1) as pool:
        x = pool.submit(compute).result()
    assert x.tolist() == [2.0, 4.0]
    assert (x + 1.0).tolist() == [3.0, 5.0]


def test_fits_of_one_trainer_do_not_mix() -> None:
    """Fits that start together run one after another, or all but one are refused."""
    x = np.random.default_rng(0).standard_normal((20, 2)).astype("float32")
    with use_backend("numpy"):
        for _ in range(amount(5, 100)):
            ours = Trainer(nn.layers.Dense(2, 2), "mse", progress=False)

            def fit(_: int, ours: Trainer = ours) -> bool:
                try:
                    with use_backend("numpy"):
                        ours.fit((x, x), steps=4, batch_size=5)
                except ConcurrentUseError:
                    return False
                return True

            ended = together(fit, 4)
            assert any(ended)
            assert ours.step == len(ours.history.losses) == 4 * sum(ended)
