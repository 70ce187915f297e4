"""Import paths of the tape."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import ember_ml
from ember_ml import use_backend
from ember_ml.autodiff.causal import Event
from ember_ml.nn import tensor


def test_one_tape_under_its_names():
    from ember_ml.autodiff import GradientTape
    from ember_ml.training.optimizer import gradient_tape

    assert ember_ml.GradientTape is GradientTape is gradient_tape.GradientTape


def test_the_tape_of_mlx():
    from ember_ml.backend.mlx.gradient_tape import MLXGradientTape

    with use_backend("mlx"):
        x = tensor.array(3.0)
        with MLXGradientTape() as tape:
            tape.watch(x)
            y = x * x
        assert isinstance(tape, ember_ml.GradientTape)
        assert float(tape.gradient(y, x)) == 6.0
    with (
        use_backend("numpy"),
        MLXGradientTape() as tape,
        pytest.raises(TypeError, match="takes tensors of mlx, not of numpy"),
    ):
        tape.watch(tensor.array(1.0))
    with pytest.raises(AttributeError, match="TorchTape"):
        _ = importlib.import_module("ember_ml.backend.mlx.gradient_tape").TorchTape


def test_the_names_of_the_design_are_in_the_docs():
    """The guide lists each component of the design, and what does its work exists."""
    page = Path(__file__).parents[3] / "docs" / "gradients.md"
    table = page.read_text(encoding="utf-8").partition("### Names of the original design")[2]
    table = table.partition("\n## ")[0]
    for name in (
        "MLXGradientTape",
        "WatchedTensorTracker",
        "GradientComputer",
        "AsyncGraphManager",
    ):
        assert f"| `{name}` |" in table
    named = re.findall(r"`(ember_ml\.[\w.]+|GradientTape\.\w+|Event\.\w+)`", table)
    assert len(named) > 12
    for each in named:
        if each.startswith("GradientTape"):
            each = f"ember_ml.{each}"
        if each.startswith("Event"):
            assert each.partition(".")[2] in Event.__dataclass_fields__
        else:
            assert pkgutil.resolve_name(each) is not None
    methods = "start_recording stop_recording register_tensor register_operation reconstruct_graph"
    for method in methods.split():
        assert f"`{method}`" in table
        assert callable(getattr(ember_ml.autodiff.CausalContext, method))
