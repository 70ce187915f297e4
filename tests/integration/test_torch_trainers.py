"""Trainers of other libraries train Ember modules as a plain loop of torch does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch.nn import functional as F

from ember_ml import ops
from ember_ml.backend import use_backend
from ember_ml.interop import EmberModule, to_torch
from ember_ml.nn.models import LanguageModel

STEPS, BATCH, VOCABULARY, RATE = 6, 4, 7, 0.01
HALF = STEPS // 2
MIXED = 2 * STEPS * RATE
"""Bound of the difference in mixed precision: AdamW moves a parameter by about RATE per step."""


@pytest.fixture(autouse=True)
def on_torch():
    from accelerate.state import AcceleratorState

    libraries_set_variables = mock.patch.dict(os.environ)
    with use_backend("torch"), torch.random.fork_rng(), libraries_set_variables:
        yield
    AcceleratorState._reset_state(reset_partial_state=True)


def tokens() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, VOCABULARY, (HALF * BATCH, 6), generator=generator)


class NextToken(torch.nn.Module):
    """Ember language model with tied weights, in a module of torch that returns the loss."""

    def __init__(self) -> None:
        super().__init__()
        ops.random.set_seed(0)
        self.model = to_torch(LanguageModel("mamba swiglu", VOCABULARY, 8, tie_weights=True))

    def forward(self, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.model(input_ids)
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), input_ids[:, 1:].flatten())
        return {"loss": loss, "logits": logits}


def adamw(module: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(module.parameters(), lr=RATE, weight_decay=0.0)


@pytest.fixture(scope="module")
def expected() -> EmberModule:
    with use_backend("torch"):
        module = NextToken()
        optimizer = adamw(module)
        for _ in range(2):
            for batch in tokens().split(BATCH):
                optimizer.zero_grad()
                module(batch)["loss"].backward()
                optimizer.step()
    return module.model


def difference(actual: EmberModule, expected: EmberModule) -> float:
    """Return the largest difference, of torch's parameters and of Ember's."""
    names = [name for name, _ in expected.named_parameters()]
    assert names == [name for name, _ in actual.named_parameters()]
    ours = dict(actual.ember.named_parameters())
    pairs = [(expected.get_parameter(name), actual.get_parameter(name)) for name in names]
    assert all(torch.equal(ours[name].native, actual.get_parameter(name)) for name in names)
    return max(float((x.detach() - y.detach()).abs().max()) for x, y in pairs)


def train_with_transformers(
    folder: Path, resume: Path | None = None, **options: Any
) -> EmberModule:
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        str(folder),
        num_train_epochs=2,
        per_device_train_batch_size=BATCH,
        train_sampling_strategy="sequential",
        learning_rate=RATE,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        save_strategy="epoch",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        **options,
    )
    module = NextToken()
    data = [{"input_ids": row} for row in tokens()]
    trainer = Trainer(module, arguments, train_dataset=data)
    trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
    return module.model


def test_trainer_of_transformers(tmp_path: Path, expected: EmberModule) -> None:
    assert difference(train_with_transformers(tmp_path), expected) < 1e-6
    checkpoint = tmp_path / f"checkpoint-{HALF}"
    assert (checkpoint / "model.safetensors").exists()
    assert difference(train_with_transformers(tmp_path / "more", checkpoint), expected) < 1e-6
    mixed = train_with_transformers(tmp_path / "mixed", bf16=True)
    assert 0 < difference(mixed, expected) < MIXED


def train_with_lightning(
    path: Path | None = None, epochs: int = 2, **options: Any
) -> tuple[EmberModule, Any]:
    import pytorch_lightning as lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.inner = NextToken()

        def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
            return self.inner(batch)["loss"]

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return adamw(self)

    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    module = Module()
    trainer.fit(module, torch.utils.data.DataLoader(tokens(), BATCH), ckpt_path=path)
    return module.inner.model, trainer


@pytest.mark.filterwarnings("ignore")  # Lightning's own, about the machine and deprecated calls
def test_trainer_of_lightning(tmp_path: Path, expected: EmberModule) -> None:
    assert difference(train_with_lightning()[0], expected) < 1e-6
    train_with_lightning(epochs=1)[1].save_checkpoint(tmp_path / "half.ckpt")
    assert difference(train_with_lightning(tmp_path / "half.ckpt")[0], expected) < 1e-6
    mixed, _ = train_with_lightning(precision="bf16-mixed")
    assert 0 < difference(mixed, expected) < MIXED


def train_with_accelerate(
    epochs: int = 2, load: Path | None = None, save: Path | None = None, **options: Any
) -> EmberModule:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(cpu=True, **options)
    inner = NextToken()
    module, optimizer = accelerator.prepare(inner, adamw(inner))
    if load is not None:
        accelerator.load_state(str(load))
    for _ in range(epochs):
        for batch in tokens().split(BATCH):
            optimizer.zero_grad()
            accelerator.backward(module(batch)["loss"])
            optimizer.step()
    if save is not None:
        accelerator.save_state(str(save))
    return accelerator.unwrap_model(module).model


def test_accelerate(tmp_path: Path, expected: EmberModule) -> None:
    assert difference(train_with_accelerate(), expected) < 1e-6
    train_with_accelerate(epochs=1, save=tmp_path / "half")
    assert (tmp_path / "half" / "model.safetensors").exists()
    resumed = train_with_accelerate(epochs=1, load=tmp_path / "half")
    assert difference(resumed, expected) < 1e-6
    mixed = train_with_accelerate(mixed_precision="bf16")
    assert 0 < difference(mixed, expected) < MIXED
