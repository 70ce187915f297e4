"""Rematerialization: the same losses, gradients, buffers and random numbers, with less memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml._core import runtime
from ember_ml._core.errors import ArgumentError
from ember_ml.configs import ConfigError
from ember_ml.configs.training import TrainerConfig
from ember_ml.memory import remat
from ember_ml.memory.growth import merged
from ember_ml.nn.auxiliary_losses import add_losses, reported_losses
from ember_ml.nn.models import LanguageModel
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer
from tests.conformance.test_blocks import CASES, config

LAYERS = "attention moe gru swiglu"


class Wrapped(nn.Module):
    """Module around another, so that a policy can choose it."""

    def __init__(self, inner: nn.Module) -> None:
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x)


def everything(model: nn.Module, x: Any) -> tuple[Any, ...]:
    """Return loss, gradients, new buffers and the next random numbers; buffers are restored."""
    before = [buffer.value() for buffer in model.buffers()]
    ops.random.set_seed(5)

    def loss() -> Any:
        with reported_losses() as reported:
            y = model(x)
        return add_losses((y * y).sum(), reported)

    value, grads = nn.value_and_grad(model, loss)()
    after = [np.array(buffer.numpy()) for buffer in model.buffers()]
    for buffer, old in zip(model.buffers(), before, strict=True):
        buffer.become(old)
    drawn = ops.random.normal((4,)).numpy()
    return float(value), {name: g.numpy() for name, g in grads.items()}, after, drawn


def assert_same(model: nn.Module, x: Any, policy: Any) -> None:
    loss, grads, buffers, drawn = everything(model, x)
    with remat(model, policy):
        other_loss, other_grads, other_buffers, other_drawn = everything(model, x)
    assert other_loss == loss
    for name, g in grads.items():
        np.testing.assert_array_equal(other_grads[name], g, err_msg=name)
    for one, other in zip(buffers, other_buffers, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(drawn, other_drawn)


@pytest.mark.parametrize(("entry", "options"), CASES)
def test_blocks_compute_the_same(entry: Any, options: dict[str, Any], backend: str) -> None:
    ops.random.set_seed(3)
    if "dropout" in entry.config.model_fields:
        options = {**options, "dropout": 0.2}
    block = config(entry, **options).create()
    x = np.random.default_rng(0).standard_normal((2, 5, block.features)).astype(np.float32)
    assert_same(Wrapped(block), array(x), "inner")


def test_normalization_statistics_change_once(backend: str) -> None:
    model = Wrapped(nn.layers.BatchNorm(3))
    x = array(np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32))
    before = [buffer.numpy() for buffer in model.buffers()]
    _, _, after, _ = everything(model, x)
    assert any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert_same(model, x, ["inner"])


@pytest.mark.parametrize("policy", ["blocks", "mixers", ["*.1", "*.2.layer"]], ids=str)
def test_training_is_the_same(policy: Any, backend: str) -> None:
    tokens = array(np.random.default_rng(0).integers(0, 11, (16, 6)))
    losses = []
    for choice in (None, policy):
        ops.random.set_seed(0)
        model = LanguageModel(LAYERS, 11, 16, dropout=0.1)
        trainer = Trainer(model, seed=0, progress=False, remat=choice)
        losses.append(trainer.fit((tokens, tokens), steps=3, batch_size=8).losses)
        assert all(module._hooks is None for module in model.modules())
    assert losses[0] == losses[1]


def peak(trainer: Trainer, batch: Any) -> int:
    with runtime.load(trainer.backend).memory.record() as recorder:
        trainer.train_step(batch)
    return merged(recorder.changes)[0].peak


def test_memory_is_smaller(backend: str) -> None:
    tokens = ops.zeros((8, 64), dtype="int64")
    peaks = []
    for policy in (None, "blocks"):
        model = LanguageModel("(attention swiglu)x4", 11, 32)
        trainer = Trainer(model, progress=False, remat=policy)
        trainer.train_step((tokens, tokens))
        peaks.append(min(peak(trainer, (tokens, tokens)) for _ in range(3)))
    assert peaks[1] < 0.75 * peaks[0], peaks


def test_names() -> None:
    model = LanguageModel("attention swiglu blocks/transformer", 11, 16)
    blocks = remat(model, "blocks")
    assert blocks.names == [f"backbone.blocks.{at}" for at in range(3)]
    blocks.remove()
    blocks.remove()
    with remat(model, "mixers") as mixers:
        assert mixers.names[0] == "backbone.blocks.0.layer"
        assert all(isinstance(x, nn.layers.Attention) for x in mixers.modules.values())
        assert len(mixers.names) == 2
    with remat(model, lambda name, module: isinstance(module, nn.layers.SwiGLU)) as chosen:
        assert chosen.names == ["backbone.blocks.1.layer"]
    assert all(module._hooks is None for module in model.modules())


def test_a_trainer_leaves_other_rematerialization() -> None:
    model = LanguageModel("swiglu", 11, 16)
    tokens = ops.zeros((2, 4), dtype="int64")
    with remat(model, "blocks") as kept:
        Trainer(model, progress=False, remat="blocks").train_step((tokens, tokens))
        (block,) = kept.modules.values()
        assert block._hooks is not None
        assert block._hooks.within is not None


def test_config() -> None:
    read = TrainerConfig.from_yaml("remat: ['*.0', '*.1']")
    assert read.remat == ("*.0", "*.1")
    assert TrainerConfig.from_yaml(read.to_yaml()) == read
    with pytest.raises(ConfigError, match="remat"):
        TrainerConfig.from_yaml("remat: 3")


def test_errors_list_the_modules() -> None:
    model = LanguageModel("swiglu", 11, 16)
    with pytest.raises(ArgumentError, match=r"no module matches 'x\*'; there are embedding"):
        Trainer(model, remat=["*.0", "x*"], progress=False)
    with pytest.raises(ArgumentError, match="'mixers' chooses no module of LanguageModel"):
        remat(model, "mixers")


def test_torch_modules_compute_again_once() -> None:
    torch = pytest.importorskip("torch")
    from ember_ml.interop import to_torch

    with ember_ml.use_backend("torch"):
        ops.random.set_seed(0)
        model = LanguageModel("attention gru swiglu", 11, 16)
        calls: list[str] = []
        for at, block in enumerate(model.backbone.blocks.layers):
            block.register_forward_hook(lambda *_, at=at: calls.append(str(at)))
        native = to_torch(model)
        tokens = torch.randint(0, 11, (2, 5))
        native(tokens).square().sum().backward()
        want = [parameter.grad.clone() for parameter in native.parameters()]
        assert "".join(calls) == "012"
        native.zero_grad()
        calls.clear()
        with remat(model, "blocks"):
            native(tokens).square().sum().backward()
        assert "".join(calls) == "012210"
        for parameter, grad in zip(native.parameters(), want, strict=True):
            torch.testing.assert_close(parameter.grad, grad, rtol=0, atol=0)
