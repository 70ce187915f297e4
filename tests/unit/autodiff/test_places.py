"""Import paths of the tape."""

from __future__ import annotations

import importlib

import pytest

import ember_ml
from ember_ml import use_backend
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
