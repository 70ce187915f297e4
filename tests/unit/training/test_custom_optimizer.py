"""A new optimizer is one class: `docs/training.md` shows how to write it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from ember_ml import ops
from ember_ml.configs import ConfigError
from ember_ml.configs.fields import Below1, NonNegative, Unconfigured
from ember_ml.nn import Parameter, layers, tensor
from ember_ml.registry import REGISTRY, create, register
from ember_ml.training import Trainer
from ember_ml.training.optimizer import Optimizer, Slot

torch = pytest.importorskip("torch")

SHAPES = [(), (5,), (4, 3)]


class AdamaxValues(NamedTuple):
    step_size: float


class Adamax(Optimizer):
    def __init__(
        self,
        params: Unconfigured[Any],
        learning_rate: NonNegative = 2e-3,
        betas: tuple[Below1, Below1] = (0.9, 0.999),
        eps: NonNegative = 1e-8,
    ) -> None:
        super().__init__(params, learning_rate=learning_rate, betas=betas, eps=eps)

    def slots(self, shape: Any, options: Any) -> dict[str, Slot]:
        return {"exp_avg": Slot(shape), "exp_inf": Slot(shape)}

    def step_values(self, options: Any, learning_rate: float, step: int) -> AdamaxValues:
        return AdamaxValues(learning_rate / (1.0 - options["betas"][0] ** step))

    def update_step(self, k, params, grads, state, options, values):
        beta1, beta2 = options["betas"]
        average = k.lerp_(state["exp_avg"], grads, 1.0 - beta1)
        magnitude = k.sqrt(k.multiply_(k.copy(grads), grads))
        norm = k.maximum_(k.scale_(state["exp_inf"], beta2), k.shift_(magnitude, options["eps"]))
        params = k.addcdiv_(params, average, norm, -values.step_size)
        return params, {"exp_avg": average, "exp_inf": norm}


def values(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.normal(size=shape), np.float32) for shape in SHAPES]


def test_equals_torch(backend: str) -> None:
    mine = [Parameter(value, name=f"p{at}") for at, value in enumerate(values(0))]
    theirs = [torch.nn.Parameter(torch.tensor(value)) for value in values(0)]
    optimizer, reference = Adamax(mine, learning_rate=0.1), torch.optim.Adamax(theirs, lr=0.1)
    for step in range(1, 6):
        grads = values(step)
        optimizer.step([tensor.array(grad) for grad in grads])
        for param, grad in zip(theirs, grads, strict=True):
            param.grad = torch.tensor(grad)
        reference.step()
    for param, expected in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(param.numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_trains_and_resumes(backend: str) -> None:
    """The compiled step and the saved state need nothing further."""
    x = tensor.array(np.random.default_rng(0).normal(size=(32, 3)).astype(np.float32))
    ops.random.set_seed(0)
    model = layers.Dense(3, 1)
    trainer = Trainer(model, "mse", optimizer=Adamax(model, learning_rate=0.1), progress=False)
    losses = trainer.fit((x, x[:, :1]), epochs=60).losses
    assert losses[-1] < 0.05 * losses[0]
    state = trainer.optimizer.state_dict()
    assert sorted(state["tensors"]) == [
        "exp_avg/bias",
        "exp_avg/weight",
        "exp_inf/bias",
        "exp_inf/weight",
    ]
    assert Adamax(model).load_state_dict(state).step_count == 60


def test_registered_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(REGISTRY, "_entries", dict(REGISTRY._entries))
    monkeypatch.setattr(REGISTRY, "_names", dict(REGISTRY._names))
    registered = register("optimizers/test_adamax")(type("Registered", (Adamax,), {}))
    optimizer = create("optimizers/test_adamax", [Parameter([1.0])], learning_rate=0.5)
    assert type(optimizer) is registered
    assert optimizer.config.to_dict()["learning_rate"] == 0.5
    with pytest.raises(ConfigError, match="betas"):
        registered([{"params": [Parameter([1.0])], "betas": (1.5, 0.9)}])
