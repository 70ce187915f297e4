"""The estimate of a training step against what the allocator counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import memory, nn, ops
from ember_ml._core.errors import ArgumentError
from ember_ml.memory.growth import Growth
from ember_ml.memory.manager import checkpoint_function
from ember_ml.nn.models import LanguageModel
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer
from tests.backends import is_lazy

FAMILIES = {
    "attention": "attention swiglu",
    "mamba": "mamba swiglu",
    "hyena": "hyena swiglu",
    "gla": "gated_linear_attention swiglu",
    "rwkv": "rwkv swiglu",
    "lstm": "lstm swiglu",
    "gru": "gru swiglu",
    "moe": "attention moe",
    "ltc": "ltc",
    "cfc": "cfc swiglu",
}
OPTIONS: list[dict[str, Any]] = [
    {"remat": "blocks", "loss": {"type": "chunked_cross_entropy", "chunk_size": 16}},
    {"optimizer": {"type": "adamw", "state_bits": 8}, "ema": 0.9},
    {"accumulate": 2, "optimizer": "sgd"},
]


def model_and_batch(layers: str = "attention swiglu") -> tuple[LanguageModel, Any]:
    ops.random.set_seed(0)
    tokens = array(np.random.default_rng(0).integers(0, 50, (16, 16)))
    return LanguageModel(layers, 50, 16, max_length=16), (tokens, tokens)


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family: str) -> None:
    pytest.importorskip("torch")
    from ember_ml.backend import use_backend

    with use_backend("torch"):
        model, batch = model_and_batch(FAMILIES[family])
        estimate, measured = memory.estimate(model, batch), memory.measure(model, batch)
        assert estimate.peak == pytest.approx(measured.peak, rel=0.15)
        assert estimate.total_activations == pytest.approx(measured.total_activations, rel=0.15)


@pytest.mark.parametrize("family", ["attention", "lstm", "moe", "cfc"])
def test_extrapolation(family: str) -> None:
    model, (tokens, _) = model_and_batch(FAMILIES[family])
    few = tokens[:8]  # recurrent cells use other kernels for smaller batches
    estimate = memory.estimate(model, (few, few)).for_batch(16)
    measured = memory.measure(model, (tokens, tokens))
    assert estimate.peak == pytest.approx(measured.peak, rel=0.15)
    assert estimate.total_activations == pytest.approx(measured.total_activations, rel=0.15)


def test_on_every_backend(backend: str) -> None:
    model, batch = model_and_batch()
    before = model.state_dict()
    random = ops.random.get_state()
    trainer = Trainer(model, progress=False)
    estimate, measured = memory.estimate(trainer, batch), memory.measure(trainer, batch)
    assert estimate.peak == pytest.approx(measured.peak, rel=0.3 if is_lazy(backend) else 0.15)
    assert measured.is_measured
    assert not estimate.is_measured
    assert estimate.parameters == estimate.gradients == model.num_bytes()
    assert estimate.optimizer_state == 2 * model.num_bytes()
    fixed = estimate.parameters + estimate.optimizer_state
    assert fixed < estimate.peak < estimate.for_batch(64).peak
    layers = ["embedding", "backbone.blocks.0", "backbone.blocks.1", "backbone.norm", "head"]
    assert list(estimate.activations)[:5] == layers
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name].numpy())
    assert ops.random.get_state() == random
    assert trainer.step == trainer.optimizer.step_count == 0
    assert all(module._hooks is None for module in model.modules())


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
def test_options(options: dict[str, Any]) -> None:
    model, batch = model_and_batch()
    estimate = memory.estimate(model, batch, **options)
    assert estimate.peak == pytest.approx(memory.measure(model, batch, **options).peak, rel=0.15)


def test_largest_batch() -> None:
    model, batch = model_and_batch()
    estimate = memory.estimate(model, batch)
    assert estimate.largest_batch(estimate.for_batch(37).peak) == 37
    assert estimate.largest_batch(1000) == 0


def test_large_steps_are_run_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from ember_ml.memory import estimation

    sizes: list[int] = []
    record = estimation.record_step

    def counted(trainer: Trainer, batch: Any) -> Any:
        sizes.append(batch[0].shape[0])
        return record(trainer, batch)

    monkeypatch.setattr(estimation, "record_step", counted)
    monkeypatch.setattr(estimation, "REPRESENTATIVE", 1)
    model, batch = model_and_batch()
    estimate = memory.estimate(model, batch)
    assert sizes == [2, 3]
    assert estimate.peak == pytest.approx(memory.measure(model, batch).peak, rel=0.15)


def test_growth_is_the_maximum_of_all_moments() -> None:
    """A constant part dominates small batches, a growing part large ones."""
    from ember_ml.backend.interface import MemoryChange

    def step(n: int) -> list[MemoryChange]:
        sizes = [10 * n, -10 * n, 100, -100]
        return [MemoryChange("", size, max(0, size)) for size in sizes]

    growth = Growth(step(2), step(3), (2, 3))
    assert [growth.peak(n) for n in (1, 10, 50)] == [100, 100, 500]


def test_table() -> None:
    model, batch = model_and_batch()
    text = str(memory.estimate(model, batch))
    for part in ("estimate", "batch size 16", "optimizer state", "backbone.blocks.1", "peak"):
        assert part in text


@pytest.mark.parametrize(
    ("text", "count"), [("8GB", 8 * 10**9), ("512 MiB", 2**29), ("1e3", 1000), (17, 17)]
)
def test_sizes(text: Any, count: int) -> None:
    assert memory.parse_bytes(text) == count
    assert memory.parse_bytes(memory.format_bytes(count)) == pytest.approx(count, rel=0.005)


@pytest.mark.parametrize("text", ["8XB", "GB", "-1", "1.2.3MB", "0"])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(ArgumentError, match="byte"):
        memory.parse_bytes(text)


def test_errors() -> None:
    model, batch = model_and_batch()
    with pytest.raises(ArgumentError, match="at least one example"):
        memory.estimate(model, ())
    with pytest.raises(ArgumentError, match="remat"):
        memory.estimate(Trainer(model, progress=False), batch, remat="blocks")


def test_checkpointing_of_functions(backend: str) -> None:
    from ember_ml.autodiff import grad

    weight = nn.tensor.array([2.0, 3.0])

    def block(x: Any) -> Any:
        return ops.tanh(x * weight) * ops.exp(x)

    x = nn.tensor.array([0.5, -0.3])
    checkpointed = memory.GradientCheckpointing()
    np.testing.assert_array_equal(
        checkpointed.checkpoint(block, [0.5, -0.3]).numpy(), block(x).numpy()
    )
    want = grad(lambda x: block(x).sum())(x).numpy()
    got = grad(lambda x: checkpoint_function(block, x).sum())(x).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-6)
