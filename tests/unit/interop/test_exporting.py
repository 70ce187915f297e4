"""Models as programs of other runtimes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import use_backend
from ember_ml.interop import ExportError, export, exporting
from ember_ml.interop._onnx_operators import DECOMPOSITIONS
from ember_ml.nn.models import LanguageModel
from tests.unit.cli.commands import ember

TOKENS = np.arange(10).reshape(2, 5) % 7


def model(layers: str = "attention swiglu") -> LanguageModel:
    ops.random.set_seed(0)
    return LanguageModel(layers, 7, 16)


def test_a_program_of_torch_runs_without_ember(tmp_path: Path, on_numpy: None) -> None:
    ours = model("mamba attention")
    written = export(ours, tmp_path / "model.pt2")
    assert written.shape[0] == "batch"
    np.save(tmp_path / "tokens.npy", tokens := np.arange(2 * 17).reshape(2, 17) % 7)
    script = """
import sys, numpy as np, torch
program = torch.export.load("model.pt2").module()
np.save("out.npy", program(torch.from_numpy(np.load("tokens.npy"))).detach().numpy())
assert "ember_ml" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    expected = ours.eval()(tokens).numpy()
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, rtol=1e-3, atol=1e-4)


def test_an_onnx_program_has_variable_axes(tmp_path: Path, on_numpy: None) -> None:
    ours = model()
    written = export(ours, tmp_path / "model.onnx", "onnx")
    assert written.shape == ("batch", "time")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (y,) = session.run(None, {session.get_inputs()[0].name: TOKENS})
    np.testing.assert_allclose(y, ours.eval()(TOKENS).numpy(), rtol=1e-3, atol=1e-4)


def test_operators_that_the_onnx_exporter_lacks(tmp_path: Path) -> None:
    with use_backend("torch"):
        ours = model("moe_mlp lru")
        written = export(ours, tmp_path / "model.onnx", "onnx", torch.from_numpy(TOKENS))
    assert written.shape[0] == "batch"
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (y,) = session.run(None, {session.get_inputs()[0].name: TOKENS})
    np.testing.assert_allclose(y, ours.eval()(TOKENS).numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("unitriangular", [True, False])
@pytest.mark.parametrize("upper", [True, False])
def test_triangular_systems_of_onnx(
    size: int, left: bool, unitriangular: bool, upper: bool
) -> None:
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(3, size, size, generator=generator) + 4.0 * torch.eye(size)
    b = torch.randn(3, *((size, 4) if left else (4, size)), generator=generator)
    options = {"upper": upper, "left": left, "unitriangular": unitriangular}
    solve = DECOMPOSITIONS[torch.ops.aten.linalg_solve_triangular.default]
    expected = torch.linalg.solve_triangular(a, b, **options)
    torch.testing.assert_close(solve(a, b, **options), expected, rtol=1e-4, atol=1e-4)


def test_a_length_that_the_program_depends_on_is_fixed(tmp_path: Path) -> None:
    with use_backend("torch"):
        written = export(model("gru"), tmp_path / "model.pt2")
    assert written.shape == ("batch", exporting.LENGTH)


def test_a_program_that_differs_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = exporting.FORMATS["torch-export"]

    def wrong(*given):
        content, run = original(*given)
        return content, lambda x: run(x) * 1.01

    monkeypatch.setitem(exporting.FORMATS, "torch-export", wrong)
    (tmp_path / "model.pt2").write_text("mine")
    with pytest.raises(ExportError, match=r"differs from the model by 1\.0e-02"):
        export(model(), tmp_path / "model.pt2")
    assert (tmp_path / "model.pt2").read_text() == "mine"


class SingularValues(nn.Module):
    def forward(self, x):
        return ops.linalg.svdvals(x)


def test_an_error_of_the_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"SingularValues cannot be exported as onnx: .*svd"):
        export(SingularValues(), tmp_path / "model.onnx", "onnx", torch.eye(3))
    with pytest.raises(ValueError, match="format must be one of torch-export, onnx; got 'tflite'"):
        export(model(), tmp_path / "model", "tflite")
    with pytest.raises(ValueError, match="LeakyReLU has no vocab_size"):
        export(nn.activations.LeakyReLU(), tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"module": "model"}, "expected an Ember module, got str"),
        ({"inputs": np.ones((2, 4), "float32")}, "inputs must be a tensor of torch, not ndarray"),
        ({"inputs": torch.ones(0, 4)}, r"inputs of shape \(0, 4\) have no elements"),
        ({"inputs": torch.ones(2, 5)}, "expected 4 features"),
        ({"inputs": torch.tensor(1.0)}, "expected 4 features"),
        ({"inputs": torch.full((2, 4), torch.nan)}, "a tensor of finite numbers"),
        ({"path": "."}, "is a folder"),
    ],
)
def test_errors_before_the_export(tmp_path: Path, given: dict[str, Any], match: str) -> None:
    arguments = {"module": nn.layers.Dense(4, 2), "path": "model.pt2", **given}
    with pytest.raises((TypeError, ValueError, ExportError), match=match):
        export(**{**arguments, "path": tmp_path / arguments["path"]})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("shape", "expected"), [((2, 4), ("batch", 4)), ((4,), (4,))])
def test_an_axis_at_which_the_model_allows_one_size_is_fixed(
    tmp_path: Path, shape: tuple[int, ...], expected: tuple[int | str, ...]
) -> None:
    written = export(nn.layers.Dense(4, 2), tmp_path / "model.pt2", inputs=torch.ones(shape))
    assert written.shape == expected


def test_the_module_stays_as_it_was(tmp_path: Path, on_numpy: None) -> None:
    ours = model().train()
    export(ours, tmp_path / "model.pt2")
    assert ours.training
    assert ours.head.weight.backend == "numpy"


def test_the_command(tmp_path: Path) -> None:
    ember_ml.save(model(), tmp_path / "model")
    out = tmp_path / "model.pt2"
    result = ember("export", tmp_path / "model", out)
    assert "input (batch, time)" in result.stdout
    assert torch.export.load(out).module()(torch.from_numpy(TOKENS)).shape == (2, 5, 7)
    again = ember("export", tmp_path / "model", out, code=2)
    assert "exists; choose another name, or pass --overwrite" in again.stderr
