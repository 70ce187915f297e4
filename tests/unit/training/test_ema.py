"""Moving average of a model, compared with torch's and the formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn
from ember_ml._core.errors import ArgumentError
from ember_ml.nn import Parameter, StateDictError
from ember_ml.training.ema import EMA

torch = pytest.importorskip("torch")


class Model(nn.Module):
    def __init__(self, dtype: str = "float32") -> None:
        self.weight = Parameter([[1.0, 2.0], [3.0, 4.0]], dtype=dtype)
        self.scale = Parameter(1.0, dtype=dtype, trainable=False)

    def forward(self, x: Any) -> Any:
        return x @ self.weight * self.scale


def values() -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    return [np.asarray(rng.normal(size=(2, 2)), np.float32) for _ in range(12)]


def follow(model: Model, ema: EMA, given: list[np.ndarray]) -> None:
    for value in given:
        model.weight.assign(value)
        ema.update()


def average(model: Model, ema: EMA) -> np.ndarray:
    with ema.applied():
        return model.weight.numpy().copy()


def test_is_torchs(backend: str) -> None:
    model = Model()
    ema = EMA(model, decay=0.9, warmup=False)
    follow(model, ema, values())
    theirs = torch.nn.Linear(2, 2, bias=False)
    theirs.weight.data = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    averaged = torch.optim.swa_utils.AveragedModel(
        theirs, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )
    averaged.update_parameters(theirs)  # its first update copies
    for value in values():
        theirs.weight.data = torch.tensor(value)
        averaged.update_parameters(theirs)
    expected = averaged.module.weight.detach().numpy()
    np.testing.assert_allclose(average(model, ema), expected, rtol=1e-5, atol=1e-6)


def test_warmup(backend: str) -> None:
    model = Model()
    ema = EMA(model, decay=0.4)
    follow(model, ema, values())
    expected = np.array([[1.0, 2.0], [3.0, 4.0]])
    for count, value in enumerate(values(), 1):
        decay = min(0.4, (1 + count) / (10 + count))
        expected = decay * expected + (1 - decay) * value
    np.testing.assert_allclose(average(model, ema), expected, rtol=1e-5, atol=1e-6)


def test_applied_gives_back(backend: str) -> None:
    model = Model()
    ema = EMA(model, decay=0.9)
    follow(model, ema, values()[:1])
    mine = model.weight.numpy().copy()
    assert not np.array_equal(average(model, ema), mine)
    with pytest.raises(RuntimeError, match="inside"), ema.applied():
        raise RuntimeError("inside")
    assert np.array_equal(model.weight.numpy(), mine)
    with ema.applied():
        with pytest.raises(ArgumentError, match="applied"):
            ema.update()
        with pytest.raises(ArgumentError, match="already"), ema.applied():
            pass


def test_what_was_given_out_stays(backend: str) -> None:
    model = Model()
    ema = EMA(model, decay=0.9)
    follow(model, ema, values()[:1])
    with ema.applied():
        held = model.weight.value()
    state = ema.state_dict()
    before, saved = held.numpy().copy(), state["tensors"]["weight"].numpy().copy()
    follow(model, ema, values()[1:])
    assert np.array_equal(held.numpy(), before)
    assert np.array_equal(state["tensors"]["weight"].numpy(), saved)


def test_resumes(backend: str) -> None:
    whole_model, model = Model(), Model()
    whole, first = EMA(whole_model, decay=0.9), EMA(model, decay=0.9)
    follow(whole_model, whole, values())
    follow(model, first, values()[:5])
    second = EMA(model, decay=0.9).load_state_dict(first.state_dict())
    follow(model, second, values()[5:])
    assert np.array_equal(average(model, second), average(whole_model, whole))


def test_from_another_backend(backend: str) -> None:
    with ember_ml.use_backend("numpy"):
        source_model = Model()
        source = EMA(source_model, decay=0.9)
        follow(source_model, source, values()[:3])
    model = Model()
    ema = EMA(model, decay=0.9).load_state_dict(source.state_dict())
    assert ema.updates == 3
    assert np.array_equal(average(model, ema), average(source_model, source))


def test_follows_a_model_that_moves(backend: str) -> None:
    with ember_ml.use_backend("numpy"):
        model, still = Model(), Model()
        ema, other = EMA(model, decay=0.9), EMA(still, decay=0.9)
        follow(still, other, values())
        follow(model, ema, values()[:3])
    model.to_backend(backend)
    follow(model, ema, values()[3:])
    np.testing.assert_allclose(average(model, ema), average(still, other), rtol=1e-5, atol=1e-6)


def test_half_precision_is_averaged_in_float32(backend: str) -> None:
    model = Model("float16")
    ema = EMA(model, decay=0.9999, warmup=False)
    follow(model, ema, [np.full((2, 2), 2.0, np.float32)] * 10)
    kept = ema.state_dict()["tensors"]["weight"]
    assert str(kept.dtype) == "float32"
    expected = 2.0 - (2.0 - np.array([[1.0, 2.0], [3.0, 4.0]])) * 0.9999**10
    np.testing.assert_allclose(kept.numpy(), expected, rtol=1e-6)
    with ema.applied():
        assert str(model.weight.dtype) == "float16"


def test_bad_states(backend: str) -> None:
    ema = EMA(Model())
    state = ema.state_dict()
    with pytest.raises(StateDictError) as caught:
        ema.load_state_dict(
            {"updates": 1, "tensors": {"weight": state["tensors"]["scale"], "other": 1.0}}
        )
    assert caught.value.missing == ["scale"]
    assert caught.value.unexpected == ["other"]
    assert caught.value.misshaped == {"weight": ((2, 2), ())}
    with pytest.raises(ArgumentError, match=r"decay .* not 1\.0"):
        EMA(Model(), decay=1.0)
