"""Models in folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import safetensors.numpy

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import available, use_backend
from ember_ml.nn import layers
from ember_ml.nn.checkpoint import CheckpointError
from tests.backends import with_dtype


def model() -> nn.Module:
    return nn.Sequential(layers.Dense(3, 4, activation="tanh"), layers.BatchNorm(4), layers.MLP(4))


def test_a_model_moves_between_all_backends(backend: str, tmp_path: Path) -> None:
    made = model()
    made(ops.random.normal((5, 3), seed=1))  # the running statistics change
    x = ops.random.normal((2, 3), seed=2)
    expected = made.eval()(x).numpy()
    ember_ml.save(made, tmp_path / "m")
    for other in available():
        with use_backend(other):
            loaded = ember_ml.load(tmp_path / "m").eval()
        found = loaded(x.to_backend(other))
        assert found.backend == other
        assert abs(found.numpy() - expected).max() < 1e-5
        assert loaded.config.to_dict() == made.config.to_dict()
    assert ember_ml.load(tmp_path / "m", backend="numpy").parameters()[0].backend == "numpy"


def test_the_files_are_safetensors_and_json(tmp_path: Path, backend: str) -> None:
    made = model()
    ember_ml.save(made, tmp_path / "m")
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == [
        "checksums.json",
        "config.json",
        "model.safetensors",
    ]
    arrays = safetensors.numpy.load_file(tmp_path / "m" / "model.safetensors")
    state = made.state_dict()
    assert set(arrays) == set(state)
    assert all((arrays[name] == state[name].numpy()).all() for name in arrays)
    assert json.loads((tmp_path / "m" / "config.json").read_text())["format"] == 1


@pytest.mark.parametrize("backend_name", with_dtype("bfloat16"))
def test_bfloat16_is_kept_to_the_bit(backend_name: str, tmp_path: Path) -> None:
    with use_backend(backend_name):
        made = layers.Dense(3, 4).to(dtype="bfloat16")
        ember_ml.save(made, tmp_path / "m")
        loaded = ember_ml.load(tmp_path / "m")
    assert loaded.weight.dtype.name == "bfloat16"
    assert (loaded.weight == made.weight).all()
    with use_backend("numpy"):  # which has none
        wide = ember_ml.load(tmp_path / "m")
    assert wide.weight.dtype.name == "float32"
    assert (wide.weight.numpy() == made.weight.astype("float32").numpy()).all()


class Plain(nn.Model):
    def __init__(self) -> None:
        self.inner = layers.Dense(2, 2)

    def forward(self, x):
        return self.inner(x)


def test_an_unregistered_class_is_loaded_into_one(tmp_path: Path) -> None:
    made, other = Plain(), Plain()
    made.save(tmp_path / "m")
    with pytest.raises(
        CheckpointError, match=r"Plain was saved without a config.*create the model and pass"
    ):
        Plain.load(tmp_path / "m")
    assert ember_ml.load(tmp_path / "m", into=other) is other
    assert (other.inner.weight == made.inner.weight).all()


def test_a_model_of_another_class_is_refused(tmp_path: Path) -> None:
    ember_ml.save(model(), tmp_path / "m")
    with pytest.raises(CheckpointError, match="holds a Sequential, not a Plain"):
        Plain.load(tmp_path / "m")


def test_paths_that_are_not_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="does not exist"):
        ember_ml.load(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"has no config.json"):
        ember_ml.load(tmp_path / "empty")
    ember_ml.save(layers.Dense(2, 2), tmp_path / "m")
    weights = tmp_path / "m" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-3])
    with pytest.raises(CheckpointError, match=r"damaged: it has \d+ bytes, but \d+ were saved"):
        ember_ml.load(tmp_path / "m")
    (tmp_path / "m" / "checksums.json").unlink()
    with pytest.raises(CheckpointError, match="is not a safetensors file"):
        ember_ml.load(tmp_path / "m")
    weights.unlink()
    with pytest.raises(CheckpointError, match=r"has no model.safetensors"):
        ember_ml.load(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text('{"format": 99}')
    with pytest.raises(CheckpointError, match="format 99"):
        ember_ml.load(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match="cannot be read"):
        ember_ml.load(tmp_path / "m")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="is a file"):
        ember_ml.save(layers.Dense(2, 2), tmp_path / "file")


def test_a_failed_save_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = layers.Dense(2, 2), layers.Dense(2, 2)
    ember_ml.save(first, tmp_path / "m")
    from ember_ml._core import folders

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folders, "write_synced", full)
    with pytest.raises(OSError, match="No space left"):
        ember_ml.save(second, tmp_path / "m")
    assert (ember_ml.load(tmp_path / "m").weight == first.weight).all()
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_model_with_unnamed_parts_is_loaded_into_one(tmp_path: Path, backend: str) -> None:
    class Double(nn.Module):
        def forward(self, x):
            return 2.0 * x

    for made in (nn.Sequential(layers.Dense(2, 2), Double()), layers.Dense(2, 2, activation=abs)):
        ember_ml.save(made, tmp_path / "m")
        with pytest.raises(CheckpointError, match=r"not registered, holds an unregistered class"):
            ember_ml.load(tmp_path / "m")
        x = ops.ones((1, 2))
        before = made(x).tolist()
        for parameter in made.parameters():
            parameter.assign(ops.zeros(parameter.shape))
        assert ember_ml.load(tmp_path / "m", into=made)(x).tolist() == before
