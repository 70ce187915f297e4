"""Learning rate range test and batch size search: results, and an unchanged trainer."""

from __future__ import annotations

import math

import pytest

from ember_ml import nn, ops
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback
from ember_ml.training.tuning import LRRangeTest, TuningError, find_batch_size, lr_range_test
from ember_ml.training.tuning.peak_memory import PeakMemory


class Bounded(nn.Module):
    """Classifier that runs out of memory above a batch size."""

    def __init__(self, largest: int, error: Exception) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.layers.Dense(4, 8), nn.layers.BatchNorm(8), nn.layers.Dropout(0.2)
        )
        self.largest, self.error = largest, error

    def forward(self, x):
        if len(x) > self.largest:
            raise self.error
        return self.net(x)


class Forbidden(Callback):
    """Fails if it is called."""

    def on_step_end(self, trainer, record):
        raise AssertionError("a callback was called")


def data(count=100):
    x = ops.random.normal((count, 4), seed=1)
    return x, ops.cast(x[:, 0] > 0, "int64")


def trained(model, optimizer="adamw", **options):
    """Return a trainer after a few steps, with state of all kinds."""
    trainer = Trainer(
        model,
        "cross_entropy",
        optimizer=optimizer,
        ema=0.9,
        metrics=["accuracy"],
        train_metrics=True,
        compile=False,
        schedule="cosine",
        seed=0,
        progress=False,
        **options,
    )
    trainer.fit(data(), steps=4, batch_size=10)
    trainer.callbacks.append(Forbidden())
    return trainer


def state(trainer):
    optimizer = dict(trainer.optimizer.state_dict())
    tensors = {
        **trainer.model.state_dict(),
        **optimizer.pop("tensors"),
        **{f"ema {name}": x for name, x in trainer.ema.state_dict()["tensors"].items()},
    }
    values = {name: x.tolist() for name, x in tensors.items()}
    modes = [module.training for module in trainer.model.modules()]
    rest = (trainer.step, trainer.epoch, trainer.skipped, len(trainer.history.steps))
    random = str(ops.random.get_state())
    metrics = str(trainer.train_metrics.state_dict())
    names = [type(each).__name__ for each in trainer.callbacks]
    training = trainer.optimizer.training
    return values, str(optimizer), modes, rest, random, metrics, names, training


def test_nothing_changes(backend):
    trainer = trained(Bounded(32, MemoryError()), "schedule_free_adamw", accumulate=2)
    before = state(trainer)
    loader = DataLoader(ArrayDataset(*data()), 10, shuffle=True, seed=3)
    position = loader.state_dict()
    lr_range_test(trainer, loader, low=1e-3, steps=40)
    assert state(trainer) == before
    assert loader.state_dict() == position
    assert find_batch_size(trainer, data()) == 32
    assert state(trainer) == before
    assert "refuse_batch" not in vars(trainer)


@pytest.mark.parametrize(
    ("error", "largest"),
    [
        (MemoryError(), 1),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), 37),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate"), 99),
        (RuntimeError("[malloc] Unable to allocate 1024 bytes."), 100),
        (MemoryError(), 1000),
    ],
    ids=["numpy", "cuda", "torch", "mlx", "none"],
)
def test_the_largest_size_is_found(on_numpy, error, largest):
    trainer = trained(Bounded(1000, error))
    trainer.model.largest = largest
    assert find_batch_size(trainer, data()) == min(largest, 100)
    assert find_batch_size(trainer, data(), high=50) == min(largest, 50)


def test_errors_of_the_batch_size(on_numpy):
    trainer = trained(Bounded(1000, ValueError("a bug")))
    trainer.model.largest = 5
    with pytest.raises(ValueError, match="a bug"):
        find_batch_size(trainer, data())
    trainer.model.error = MemoryError()
    with pytest.raises(TuningError, match="a batch of 8 does not fit in memory"):
        find_batch_size(trainer, data(), low=8)
    with pytest.raises(TuningError, match="needs arrays or a dataset"):
        find_batch_size(trainer, DataLoader(ArrayDataset(*data()), 10))
    with pytest.raises(TuningError, match=r"low \(200\) is more than the 100 examples"):
        find_batch_size(trainer, data(), low=200)


def test_a_memory_limit_bounds_the_size(on_numpy):
    """The hidden layer of 4096 units needs 16 kB for each example, several times over."""
    model = nn.Sequential(nn.layers.Dense(4, 4096), nn.layers.Dense(4096, 2))
    trainer = Trainer(model, "cross_entropy", seed=0, progress=False)
    small = find_batch_size(trainer, data(1000), memory_limit=8_000_000)
    large = find_batch_size(trainer, data(1000), memory_limit=16_000_000)
    assert 10 < small < 8_000_000 / 16_384
    assert 1.5 * small < large < 4 * small


def test_peak_memory_counts_arrays(on_numpy):
    with PeakMemory("numpy") as peak:
        x = ops.ones((1000, 1000))
        del x
    assert 4_000_000 <= peak.bytes < 8_000_000


def test_the_suggestion_trains_well(backend):
    """It is within the rates that reduce the loss, and the loss diverges at the end."""
    model = nn.layers.Dense(4, 2)
    trainer = Trainer(model, "cross_entropy", optimizer="sgd", seed=0, progress=False)
    result = lr_range_test(trainer, data(), low=1e-4, high=1e3, steps=80)
    assert len(result.losses) == len(result.learning_rates) == len(result.smoothed)
    assert result.learning_rates[0] == 1e-4
    losses = {}
    for rate in (1e-4, result.suggestion):
        ops.random.set_seed(0)
        fresh = Trainer(
            nn.layers.Dense(4, 2),
            "cross_entropy",
            optimizer="sgd",
            learning_rate=rate,
            seed=0,
            progress=False,
        )
        losses[rate] = fresh.fit(data(), steps=30).losses[-1]
    assert losses[result.suggestion] < 0.7 * losses[1e-4]


def test_the_suggestion_is_where_the_loss_falls_fastest(tmp_path):
    result = LRRangeTest()
    rates = [10 ** (at / 20 - 4) for at in range(100)]
    for rate in rates:
        loss = 1 / (1 + math.exp(4 * (math.log10(rate) + 2))) + 0.1 + (rate > 1) * rate
        result.add(rate, loss)
    result.suggestion = result.suggest()
    assert 0.01 <= result.suggestion <= 0.06  # the average lags behind
    result.plot(tmp_path / "lr.png")
    assert (tmp_path / "lr.png").stat().st_size > 5000


def test_divergence_ends_the_range_test(on_numpy):
    trainer = Trainer(
        nn.layers.Dense(4, 1), "mse", optimizer="sgd", on_nonfinite="skip", seed=0, progress=False
    )
    x = ops.random.normal((64, 4), seed=0)
    result = lr_range_test(trainer, (x, x[:, :1]), low=1e-3, high=1e6, steps=100)
    assert len(result.losses) < 100
    assert trainer.skipped == 0


def test_errors_of_the_range_test(on_numpy):
    trainer = trained(Bounded(1000, MemoryError()))
    with pytest.raises(ValueError, match=r"needs 0 < low < high; got low=1, high=0\.5"):
        lr_range_test(trainer, data(), low=1, high=0.5)
    with pytest.raises(TuningError, match="the loss does not fall"):
        lr_range_test(trainer, data(), low=1e5, high=1e6, steps=10)
