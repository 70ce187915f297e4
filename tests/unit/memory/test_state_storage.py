"""Optimizer state in 8 bits and on another device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.errors import DeviceError
from ember_ml.backend import use_backend
from ember_ml.configs import ConfigError
from ember_ml.memory.growth import merged
from ember_ml.nn import Parameter, StateDictError
from ember_ml.nn.models import LanguageModel
from ember_ml.nn.tensor import array
from ember_ml.registry import available, create
from ember_ml.training import Trainer
from tests.backends import other_than

NAMES = [entry.bare for entry in available("optimizers")]
EXACT = {"adafactor": 1.0, "schedule_free_adamw": 0.64}
"""State in 8 bits relative to 32 bits, of optimizers that need exact values."""
RNG = np.random.default_rng(0)
START = RNG.standard_normal((64, 100)).astype(np.float32)
SCALES = np.exp(RNG.standard_normal(START.shape))
GRADIENTS = [(RNG.standard_normal(START.shape) * SCALES).astype(np.float32) for _ in range(12)]


def build(name: str, value: np.ndarray = START, **options: Any) -> Any:
    options |= {"momentum": 0.9} if name == "sgd" else {}
    small = Parameter(value[0], name="small")
    parameters = [Parameter(value, name="large"), small]
    return create(f"optimizers/{name}", parameters, learning_rate=1e-2, **options)


def steps(optimizer: Any, gradients: list[np.ndarray]) -> np.ndarray:
    for gradient in gradients:
        optimizer.step({"large": array(gradient), "small": array(gradient[0])})
    return optimizer.parameters[0].numpy()


@pytest.mark.parametrize("name", NAMES)
def test_steps_are_close_to_those_of_32_bits(name: str, backend: str) -> None:
    whole, packed = build(name), build(name, state_bits=8)
    want, got = steps(whole, GRADIENTS) - START, steps(packed, GRADIENTS) - START
    assert np.linalg.norm(got - want) < 0.08 * np.linalg.norm(want)
    ratio = packed.state_bytes() / whole.state_bytes()
    assert ratio == pytest.approx(EXACT.get(name, 0.27), abs=0.01)
    small = [key for key in packed.state_dict()["tensors"] if key.endswith("/small")]
    assert all(packed.state_dict()["tensors"][key].dtype.name == "float32" for key in small)


@pytest.mark.parametrize("name", ["adamw", "lion", "muon"])
def test_resumes_to_the_bit_and_moves_between_backends(name: str, backend: str) -> None:
    optimizer = build(name, state_bits=8)
    steps(optimizer, GRADIENTS[:6])
    state, values = optimizer.state_dict(), optimizer.parameters[0].numpy()
    codes = {key: x.numpy() for key, x in state["tensors"].items()}
    again = build(name, values, state_bits=8).load_state_dict(state)
    with use_backend(other_than(backend)):
        moved = build(name, values, state_bits=8).load_state_dict(state)
        for key, x in moved.state_dict()["tensors"].items():
            np.testing.assert_array_equal(x.numpy(), codes[key])
    np.testing.assert_array_equal(steps(optimizer, GRADIENTS[6:]), steps(again, GRADIENTS[6:]))


def test_loads_the_state_of_other_bits(backend: str) -> None:
    whole, packed = build("adamw"), build("adamw", state_bits=8)
    steps(whole, GRADIENTS[:3])
    packed.load_state_dict(whole.state_dict())
    assert packed.state_dict()["tensors"]["exp_avg.codes/large"].dtype.name == "int8"
    back = build("adamw").load_state_dict(packed.state_dict())
    want = whole.state_dict()["tensors"]["exp_avg/large"].numpy()
    got = back.state_dict()["tensors"]["exp_avg/large"].numpy()
    assert np.linalg.norm(got - want) < 0.02 * np.linalg.norm(want)
    assert back.state_bytes() == whole.state_bytes()


@pytest.mark.parametrize("shape", [(4096,), (65, 64), (1, 5000)])
def test_codes(shape: tuple[int, ...], backend: str) -> None:
    """Compare the codes with the formulas in the interface, element by element."""
    k = runtime.load(backend).optimization
    x = (RNG.standard_normal(shape) * 10.0 ** RNG.uniform(-8, 0, shape)).astype(np.float32)
    x.flat[:300] = 0.0
    for values, dtype in ((x, "int8"), (x * x, "uint8")):
        native = array(values).native
        like = k.full(native, (), 0.0, dtype)
        codes, scales = k.encode_state([native], [like])
        (back,) = (array(y).numpy() for y in k.decode_state(codes, scales, [shape]))
        rows = np.pad(values.ravel(), (0, -values.size % 256)).reshape(-1, 256).astype(np.float64)
        largest = np.abs(rows).max(axis=1, keepdims=True)
        share = np.abs(rows) / np.where(largest == 0, 1, largest)
        if dtype == "int8":
            want = np.sign(rows) * (np.rint(127 * share**0.5) / 127) ** 2 * largest
        else:
            code = np.maximum(np.rint(255 * share**0.25), rows > 0)
            want = (code / 255) ** 4 * largest
            assert np.all((back > 0) == (values > 0))  # second moments are divided by
        want = want.ravel()[: values.size].reshape(shape)
        step = np.where(np.abs(want) > 0, np.abs(want), 1.0)
        assert np.mean(np.abs(back - want) / step > 1e-5) < 1e-3  # halves may round either way
        assert array(codes[0]).dtype.name == dtype


def test_training_is_as_good(backend: str) -> None:
    tokens = array(np.tile(np.arange(8), (16, 2)))
    finals = []
    for bits in (32, 8):
        ops.random.set_seed(0)
        model = LanguageModel("gru swiglu", 64, 64)
        optimizer = {"type": "adamw", "learning_rate": 3e-3, "state_bits": bits}
        trainer = Trainer(model, optimizer=optimizer, seed=0, progress=False)
        finals.append(trainer.fit((tokens, tokens), steps=25, batch_size=16).losses)
    assert finals[0][-1] < 0.1 * finals[0][0]
    assert finals[1][-1] < 1.1 * finals[0][-1] + 0.01


def test_a_trainer_resumes(backend: str, tmp_path: Any) -> None:
    tokens = array(np.tile(np.arange(8), (16, 2)))

    def trainer() -> Trainer:
        ops.random.set_seed(0)
        model = LanguageModel("swiglu", 64, 64)
        return Trainer(model, optimizer={"type": "adam", "state_bits": 8}, seed=0, progress=False)

    straight = trainer().fit((tokens, tokens), steps=4, batch_size=4).losses
    first = trainer()
    first.fit((tokens, tokens), steps=2, batch_size=4)
    first.save(tmp_path / "saved")
    second = trainer().resume(tmp_path / "saved")
    assert second.fit((tokens, tokens), steps=4, batch_size=4).losses == straight


def test_the_update_unpacks_a_part_at_a_time(backend: str) -> None:
    count, size = 6, 2**20
    parameters = [Parameter(np.ones(size, np.float32), name=str(at)) for at in range(count)]
    gradients = [ops.ones((size,)) for _ in parameters]
    optimizer = create("optimizers/adam", parameters, state_bits=8)
    evaluate = runtime.load(backend).autodiff.evaluate
    evaluate([x.native for x in (*parameters, *gradients)])
    with runtime.load(backend).memory.record() as recorder:
        for _ in range(2):  # the first step replaces what was allocated before
            recorder.restart()
            optimizer.step(gradients)
            evaluate([x.native for x in parameters])
    state = 2 * 4 * count * size
    assert merged(recorder.changes)[0].peak < state


def test_device(backend: str) -> None:
    device = runtime.load(backend).devices()[-1]
    own, moved = build("adamw"), build("adamw", state_device=device)
    np.testing.assert_array_equal(steps(own, GRADIENTS), steps(moved, GRADIENTS))
    places = [x.device for x in moved.state_dict()["tensors"].values()]
    assert places == [device] * len(places)
    with pytest.raises(DeviceError, match=f"'tpu'; it has .*{device}"):
        steps(build("adamw", state_device="tpu"), GRADIENTS)


def test_errors() -> None:
    with pytest.raises(ConfigError, match="state_bits"):
        create("optimizers/adam", [Parameter(START)], state_bits=4)
    with pytest.raises(ConfigError, match="state_bits"):
        create("optimizers/adam", [Parameter(START)], groups=[{"match": "*", "state_bits": 8}])
    packed = build("adamw", state_bits=8)
    state = packed.state_dict()
    state["tensors"]["exp_avg.codes/large"] = ops.zeros((3, 256), dtype="int8")
    for optimizer in (packed, build("adamw")):
        with pytest.raises(StateDictError, match="exp_avg"):
            optimizer.load_state_dict(state)
