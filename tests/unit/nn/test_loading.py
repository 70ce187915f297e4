"""Loading: without initial values, in memory of its own, and all or nothing."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml._core.deferred import SizeLimitError, deferred
from ember_ml._core.errors import EmberError
from ember_ml.backend import available, use_backend
from ember_ml.nn import layers
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.registry import components, register
from tests.backends import other_than, with_dtype
from tests.examples_of import config_of

MODULES = [
    entry
    for kind in ("layers", "blocks", "models")
    for entry in components.available(kind)
    if isinstance(entry.target, type)
]


def values(module: nn.Module) -> dict[str, np.ndarray]:
    """Return all parameters and buffers, also those that are not saved."""
    both = [*module.named_parameters(), *module.named_buffers()]
    return {name: np.array(variable.numpy()) for name, variable in both}


def same(module: nn.Module, other: nn.Module) -> bool:
    """Return whether two modules have the same values, bit for bit."""
    a, b = values(module), values(other)
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype and a[name].tobytes() == b[name].tobytes() for name in a
    )


@pytest.mark.parametrize("entry", MODULES, ids=lambda entry: entry.name)
def test_every_component_loads_equal(entry: Any, backend: str, tmp_path: Path) -> None:
    module = config_of(entry).create()
    ember_ml.save(module, tmp_path)
    loaded = ember_ml.load(tmp_path)
    assert same(module, loaded)
    assert loaded.config == module.config


@pytest.mark.parametrize("entry", MODULES, ids=lambda entry: entry.name)
def test_no_parameter_is_drawn(entry: Any, backend: str) -> None:
    eager = config_of(entry).create()
    before = ops.random.default_generator().state
    with deferred(1 << 24) as deferral:
        module = config_of(entry).create()
    assert ops.random.default_generator().state == before
    assert {n: x.shape for n, x in module.named_parameters()} == {
        n: x.shape for n, x in eager.named_parameters()
    }
    for (name, variable), (_, expected) in zip(
        module.named_buffers(), eager.named_buffers(), strict=True
    ):
        assert not deferral.is_placeholder(variable), name
        np.testing.assert_array_equal(variable.numpy(), expected.numpy())


def test_loading_does_not_advance_the_random_state(backend: str, tmp_path: Path) -> None:
    ember_ml.save(layers.MLP(8), tmp_path)
    ops.random.set_seed(3)
    ember_ml.load(tmp_path)
    drawn = ops.random.normal((3,)).tolist(), layers.Dense(2, 2).weight.tolist()
    ops.random.set_seed(3)
    assert drawn == (ops.random.normal((3,)).tolist(), layers.Dense(2, 2).weight.tolist())


def test_values_that_are_not_saved_are_drawn(
    backend: str, tmp_path: Path, scratch_registry: None
) -> None:
    @register("layers/random_projection")
    class RandomProjection(nn.Module):
        def __init__(self, features: int) -> None:
            self.weight = nn.Parameter(ops.random.normal((features, features)))
            noise = ops.random.normal((features, 200))
            self.noise = nn.Buffer(ops.tanh(noise), persistent=False)

    made = RandomProjection(100)
    ember_ml.save(made, tmp_path)
    loaded = ember_ml.load(tmp_path)
    assert loaded.weight.tolist() == made.weight.tolist()
    assert len(np.unique(loaded.noise.numpy())) > 10_000


def test_loaded_values_do_not_depend_on_the_file(backend: str, tmp_path: Path) -> None:
    made = layers.Dense(200, 300)
    ember_ml.save(made, tmp_path)
    loaded = ember_ml.load(tmp_path)
    with open(tmp_path / "model.safetensors", "r+b") as file:
        file.write(bytes(100_000))
        file.truncate(10)
    assert same(made, loaded)
    loaded.weight.assign(loaded.weight * 2.0)
    assert (loaded.weight == made.weight * 2.0).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_dtypes_are_kept_on_backends_that_have_them(dtype: str, tmp_path: Path) -> None:
    for source in with_dtype(dtype):
        with use_backend(source):
            made = layers.Dense(3, 5).to(dtype=dtype)
            ember_ml.save(made, tmp_path)
        expected = made.weight.astype("float32").numpy()
        for name in available():
            with use_backend(name):
                loaded = ember_ml.load(tmp_path)
            has = name in with_dtype(dtype)
            assert loaded.weight.dtype.name == (dtype if has else "float32")
            np.testing.assert_array_equal(loaded.weight.astype("float32").numpy(), expected)


class Empty(nn.Module):
    """Module with a parameter without values."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(ops.zeros((0, 3)))


def test_empty_parameters_load(backend: str, tmp_path: Path) -> None:
    with use_backend(backend):
        ember_ml.save(Empty(), tmp_path)
        assert ember_ml.load(tmp_path, into=Empty()).weight.shape == (0, 3)


def edit_config(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change config.json as an editor would, without checksums."""
    (folder / "checksums.json").unlink(missing_ok=True)
    data = json.loads((folder / "config.json").read_text())
    change(data)
    (folder / "config.json").write_text(json.dumps(data))


def edit_header(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the header of model.safetensors."""
    (folder / "checksums.json").unlink(missing_ok=True)
    content = (folder / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    text = json.dumps(change(header) or header).encode()
    whole = struct.pack("<Q", len(text)) + text + content[8 + length :]
    (folder / "model.safetensors").write_bytes(whole)


HUGE: dict[str, dict[str, Any]] = {
    "dense": {"type": "layers/dense", "in_features": 10**5, "out_features": 10**5},
    "largest": {"type": "layers/dense", "in_features": 2**62, "out_features": 2**62},
    "mamba": {"type": "layers/mamba", "features": 10**5},
    "experts": {"type": "layers/moe_mlp", "features": 16, "num_experts": 10**8},
    "s4d": {"type": "layers/s4d", "features": 10**5, "d_state": 10**6},
    "lru": {"type": "layers/lru", "features": 4, "d_state": 10**12},
    "wiring": {
        "type": "layers/cfc",
        "in_features": 4,
        "wiring": {"type": "wirings/fully_connected", "units": 10**5},
    },
    "cells": {"type": "layers/ltc", "features": 16, "num_layers": 30_000},
    "pattern": {
        "type": "models/language_model",
        "layers": "(attention swiglu)x4000",
        "vocab_size": 10,
        "hidden_size": 512,
    },
    "filled": {"type": "layers/s4d", "features": 30_000, "d_state": 100_000},
    "positions": {
        "type": "models/transformer",
        "vocab_size": 10,
        "hidden_size": 16,
        "max_length": 10**10,
        "positions": "sinusoidal",
    },
}


@pytest.mark.parametrize("name", HUGE)
def test_a_config_cannot_claim_more_than_the_file_holds(
    name: str, backend: str, tmp_path: Path
) -> None:
    import resource

    ember_ml.save(layers.Dense(2, 2), tmp_path)
    edit_config(tmp_path, lambda data: data.update(config=HUGE[name]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EmberError) as caught:
        ember_ml.load(tmp_path)
    assert isinstance(caught.value, (CheckpointError, ValueError))
    assert str(tmp_path / "config.json") in str(caught.value)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 400_000, f"{grown} kB"


def test_the_limit_counts_small_values_too() -> None:
    with use_backend("numpy"), deferred(1 << 16), pytest.raises(SizeLimitError):
        nn.Sequential(*[layers.Dense(2, 2) for _ in range(1000)])


HEADERS: dict[str, Callable[[dict[str, Any]], object]] = {
    "missing": lambda h: h.pop("bias"),
    "dtype": lambda h: h["weight"].update(dtype="I32"),
    "unknown dtype": lambda h: h["weight"].update(dtype="F31"),
    "shape": lambda h: h["weight"].update(shape=[3, 2]),
    "huge shape": lambda h: h["weight"].update(shape=[2**62, 2**62]),
    "negative": lambda h: h["weight"].update(shape=[-2, -3]),
    "text": lambda h: h["weight"].update(shape="23"),
    "offsets": lambda h: h["weight"].update(data_offsets=[0, 10**9]),
    "number": lambda h: h.update(weight=3),
    "list": lambda h: [h],
    "extra": lambda h: h.update(other={"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_refused_load_changes_nothing(name: str, backend: str, tmp_path: Path) -> None:
    ember_ml.save(layers.Dense(3, 2), tmp_path)
    edit_header(tmp_path, lambda header: _edited(header, HEADERS[name]))
    target = layers.Dense(3, 2)
    before = values(target)
    for load in (lambda: ember_ml.load(tmp_path), lambda: ember_ml.load(tmp_path, into=target)):
        with pytest.raises((CheckpointError, nn.StateDictError)):
            load()
    after = values(target)
    assert all(before[key].tobytes() == after[key].tobytes() for key in before)


def _edited(header: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> Any:
    result = change(header)
    return result if isinstance(result, list) else header


def test_a_name_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    ember_ml.save(layers.Dense(3, 2), tmp_path)
    (tmp_path / "checksums.json").unlink()
    content = (tmp_path / "model.safetensors").read_bytes()
    content = content.replace(b'"weight"', b'"bias"  ')
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"'bias' occurs twice"):
        ember_ml.load(tmp_path)


def test_flipped_bits_are_detected(backend: str, tmp_path: Path) -> None:
    ember_ml.save(layers.Dense(30, 20), tmp_path)
    path = tmp_path / "model.safetensors"
    content = bytearray(path.read_bytes())
    target = layers.Dense(30, 20)
    before = values(target)
    for position in range(len(content) - 2400, len(content), 97):
        path.write_bytes(
            content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        )
        with pytest.raises(CheckpointError, match="checksum is wrong"):
            ember_ml.load(tmp_path, into=target)
    assert all(before[key].tobytes() == value.tobytes() for key, value in values(target).items())


CONFIGS: dict[str, Callable[[dict[str, Any]], object]] = {
    "no config": lambda d: d.update(config=None),
    "a list": lambda d: d.update(config=[1]),
    "a number": lambda d: d.update(config=3),
    "no type": lambda d: d["config"].pop("type"),
    "an unknown type": lambda d: d["config"].update(type="layers/none"),
    "a list as type": lambda d: d["config"].update(type=["layers/dense"]),
    "a dict as type": lambda d: d["config"].update(type={"a": 1}),
    "a text": lambda d: d["config"].update(in_features="many"),
    "NaN": lambda d: d["config"].update(in_features=float("nan")),
    "a huge number": lambda d: d["config"].update(in_features=10**400),
    "a huge float": lambda d: d["config"].update(in_features=1e308),
    "another kind": lambda d: d.update(config={"type": "initializers/zeros"}),
    "a task": lambda d: d.update(config={"type": "optimizers/adamw"}),
    "a deep nest": lambda d: d["config"].update(activation=_nest(500)),
    "no format": lambda d: d.pop("format"),
    "a list as format": lambda d: d.update(format=[1]),
}


def _nest(depth: int) -> dict[str, Any]:
    nest: dict[str, Any] = {"type": "gelu"}
    for _ in range(depth):
        nest = {"type": "gelu", "approximate": nest}
    return nest


@pytest.mark.parametrize("name", CONFIGS)
def test_an_invalid_config_is_explained(name: str, tmp_path: Path) -> None:
    ember_ml.save(layers.Dense(3, 2), tmp_path)
    edit_config(tmp_path, CONFIGS[name])
    with pytest.raises(EmberError, match=r"config\.json"):
        ember_ml.load(tmp_path)


STATES: dict[str, Any] = {
    "text": "weights",
    "none": None,
    "object": object(),
    "complex": np.ones((2, 3), np.complex64),
    "ragged": [[1.0], [1.0, 2.0]],
    "wrong shape": np.ones((3, 2)),
}


@pytest.mark.parametrize("name", STATES)
def test_a_value_that_does_not_fit_is_a_state_dict_error(name: str, backend: str) -> None:
    model = layers.Dense(3, 2)
    before = values(model)
    with pytest.raises(nn.StateDictError, match="weight"):
        model.load_state_dict({"bias": np.zeros(2), "weight": STATES[name]})
    assert all(before[key].tobytes() == value.tobytes() for key, value in values(model).items())


def test_floats_do_not_fit_integers(backend: str) -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            self.count = nn.Buffer([1, 2])

    model = Counter()
    with use_backend(other_than(backend)), pytest.raises(nn.StateDictError, match="dtype int64"):
        model.load_state_dict({"count": ops.ones(2)})
    assert model.load_state_dict({"count": np.array([3, 4], np.int32)}).count.tolist() == [3, 4]
