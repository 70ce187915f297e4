"""A new backend is one folder and one row: here NumPy under another name, in a temporary folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import ember_ml.backend

ROOT = Path(__file__).parents[2]

SCAN = '''
def scan(step, carry, xs, length, reverse):
    """Run the loop of `ops.scan`."""
    import numpy as np

    places = range(length)[::-1] if reverse else range(length)
    ys = [None] * length
    for at in places:
        carry, ys[at] = step(carry, [x[at] for x in xs])
    scan.calls += 1
    return carry, [np.stack(column) for column in zip(*ys)]


scan.calls = 0
'''

REGISTER = """
import ember_ml.backend
from ember_ml.backend.selection import BACKENDS, BackendEntry

ember_ml.backend.__path__.append({folder!r})
BACKENDS["twin"] = BackendEntry("numpy", "ember-ml")
ember_ml.set_backend("twin")
"""

USE = """
import numpy as np

from ember_ml import autodiff, nn, ops, training
from ember_ml._core import runtime
from ember_ml.nn import tensor
from tests.conformance.runner import run
from tests.conformance.test_ops import CASES

# Values, dtypes and shapes: some cases of every op, in one dtype each.
cases = {}
for case in CASES:
    cases.setdefault(case.key, []).append(case)
count = 0
for rows in cases.values():
    for case in rows[:: max(1, len(rows) // 2)]:
        dtype = "float32" if "float32" in case.dtypes else case.dtypes[0]
        if dtype in runtime.load("twin").DTYPES:
            run(case, "twin", dtype)
            count += 1
assert count > 500, count

# A gradient, by the transform and by the tape.
x = tensor.array([1.0, 2.0, 3.0])
assert x.backend == "twin"
np.testing.assert_allclose(autodiff.grad(lambda x: ops.sum(x**3))(x).numpy(), [3.0, 12.0, 27.0])
with autodiff.GradientTape() as tape:
    tape.watch(x)
    y = ops.sum(ops.sin(x))
np.testing.assert_allclose(tape.gradient(y, x).numpy(), np.cos(x.numpy()), rtol=1e-6)

# The framework's loop runs ops.scan, but where a tape records.
native = runtime.LOADED["twin"].autodiff.scan
total, sums = ops.scan(lambda c, x: (c + x, {"sum": c + x}), tensor.array(0.0), x, reverse=True)
assert (total.item(), sums["sum"].tolist(), native.calls) == (6.0, [6.0, 5.0, 3.0], 1)
autodiff.grad(lambda x: ops.scan(lambda c, x: (c * x, None), tensor.array(1.0), x)[0])(x)
assert native.calls == 1

# Training steps.
model = nn.layers.Dense(3, 1)
optimizer = training.optimizer.Adam(model.parameters(), learning_rate=0.1)
inputs = ops.random.normal((16, 3), seed=0)
targets = ops.sum(inputs, axis=1, keepdims=True)
step = nn.value_and_grad(model, lambda x, y: ops.mean((model(x) - y) ** 2))
losses = []
for _ in range(50):
    loss, gradients = step(inputs, targets)
    optimizer.step(gradients)
    losses.append(loss.item())
assert losses[-1] < 0.1 * losses[0], losses
assert model.weight.backend == "twin"

# Tensors move to other backends and back.
assert x.to_backend("numpy").to_backend("twin").tolist() == [1.0, 2.0, 3.0]
"""


def test_a_new_backend_is_one_folder_and_one_row(tmp_path: Path) -> None:
    folder = tmp_path / "twin"
    shutil.copytree(
        Path(ember_ml.backend.__path__[0]) / "numpy",
        folder,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for file in folder.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        text = text.replace("ember_ml.backend.numpy", "ember_ml.backend.twin")
        file.write_text(text, encoding="utf-8")
    autodiff = folder / "autodiff.py"
    text = autodiff.read_text(encoding="utf-8").replace(" = scan = None", " = None")
    autodiff.write_text(text + SCAN, encoding="utf-8")
    script = REGISTER.format(folder=str(tmp_path)) + USE
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]
