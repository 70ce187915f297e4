"""The examples of CONTRIBUTING.md work as written, in the stated number of files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ember_ml import mad, nn, ops, registry
from ember_ml.configs import Config
from ember_ml.registry import plugins
from ember_ml.training import Trainer

ROOT = Path(__file__).parents[2]
SECTIONS = re.split(r"^## ", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
IMPORTS = """
from typing import ClassVar

import numpy as np

from ember_ml import nn, ops
from ember_ml.configs.fields import NonNegative, Seed, Size, Unconfigured
from ember_ml.mad import Draws, Task
from ember_ml.nn.tensor import Tensor
from ember_ml.registry import register
from ember_ml.training.optimizer import Optimizer
from ember_ml.training.optimizer.groups import ParametersLike

"""


def blocks(title: str) -> list[str]:
    """Return the code blocks of a section."""
    (section,) = (each for each in SECTIONS if each.startswith(f"{title}\n"))
    return BLOCK.findall(section)


@pytest.fixture
def plug_in(scratch_registry: None, tmp_path: Path):
    """Return a function that loads a section's code from one file of its own."""

    def load(title: str) -> None:
        path = tmp_path / "component.py"
        path.write_text(IMPORTS + "\n".join(blocks(title)))
        plugins.use(str(path))

    return load


def test_a_layer_is_one_file(plug_in, backend: str) -> None:
    plug_in("A layer")
    layer = registry.create("layers/scaled_residual", features=4)
    x = np.linspace(-1.0, 1.0, 24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_allclose(layer(ops.asarray(x)).numpy(), x + 0.1 * np.tanh(x), rtol=1e-5)
    assert Config.from_yaml(layer.config.to_yaml()).create().features == 4
    with pytest.raises(ValueError, match="features"):
        registry.create("layers/scaled_residual", features=0)
    model = nn.models.LanguageModel("scaled_residual swiglu", vocab_size=8, hidden_size=16)
    assert model(ops.asarray([[1, 2, 3]])).shape == (1, 3, 8)


def test_an_optimizer_is_one_file(plug_in, backend: str) -> None:
    plug_in("An optimizer")
    model = nn.layers.Dense(2, 1)
    before = model.weight.numpy().copy()
    x = ops.asarray([[1.0, 2.0], [3.0, 4.0]])
    optimizer = {"type": "sign_sgd", "learning_rate": 0.5}
    Trainer(model, "mse", optimizer=optimizer, progress=False).fit((x, x[:, :1]), steps=1)
    np.testing.assert_allclose(np.abs(model.weight.numpy() - before), 0.5, rtol=1e-5)


def test_a_task_is_one_file(plug_in) -> None:
    plug_in("A MAD task")
    inputs, targets = mad.task("running_maximum", num_train=8).train.batch([0, 1])
    assert (np.maximum.accumulate(inputs, axis=1) == targets).all()


CHECK_OP = """
import numpy as np

from ember_ml import autodiff, ops, use_backend
from ember_ml.backend import available
from tests.conformance.runner import run
from tests.conformance.test_ops import CASES

(case,) = [case for case in CASES if case.key == "nn.activations.squareplus"]
for name in available():
    with use_backend(name):
        run(case, name, "float32")
        slope = autodiff.grad(ops.squareplus)(2.0)
        assert abs(slope.item() - (1 + 2 / 8**0.5) / 2) < 1e-5, slope
"""


def test_an_op_is_two_files(tmp_path: Path) -> None:
    for name in ("ember_ml", "tests"):
        ignore = shutil.ignore_patterns("*.pyc.*")  # bytecode that another process writes
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    declaration, row = blocks("An op")
    family = tmp_path / "ember_ml" / "ops" / "nn" / "activations.py"
    text = family.read_text().replace("__all__ = [", '__all__ = [\n    "squareplus",', 1)
    family.write_text(f"{text}\n\n{declaration}")
    rows = tmp_path / "tests" / "conformance" / "cases" / "nn" / "activations.py"
    with rows.open("a") as cases:
        cases.write(f"\n{row}")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", CHECK_OP]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_contributing_is_short() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 120
