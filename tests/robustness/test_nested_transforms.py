"""Random programs under random nestings of transforms, compared across backends and torch.func."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ember_ml import use_backend
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import UnsupportedOpError
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff import grad
from ember_ml.backend import available
from tests.backends import TRACING, has_dtype, is_lazy
from tests.robustness.programs import SHAPE, STEPS, Step, drawn, program
from tests.robustness.scale import amount

REFERENCE = "numpy"
PROGRAMS = amount(40, 1000)
LAZY_PROGRAMS = amount(20, 1000)  # a lazy backend compiles kernels for each program
PER_TEST = 10
COMPILED = amount(1, 60)
WHOLE = "fullgraph"  # tapes and lists of indices are not compiled whole
OTHERS = [name for name in available() if name != REFERENCE]

pytestmark = pytest.mark.filterwarnings("ignore")  # slow batching, persistent tapes


def x_of(seed: int, dtype: str) -> EmberTensor:
    values = np.random.default_rng(seed).uniform(0.3, 1.2, SHAPE)
    return convert_to_tensor(values, dtype=dtype)


def result(function: Step, seed: int, backend: str, dtype: str) -> Any:
    with use_backend(backend), np.errstate(all="ignore"):
        return function(x_of(seed, dtype)).numpy().astype(np.float64)


def failure(seed: int, backend: str, compiled: bool = False) -> str | None:
    """Return what is wrong with a program on a backend; an error that names the op is right."""
    name, build = drawn(seed, compiled)
    want = result(build({}), seed, REFERENCE, "float64")
    exact = has_dtype(backend, "float64")
    noise = 0.0 if exact else np.abs(result(build({}), seed, REFERENCE, "float32") - want)
    scale = max(1.0, float(np.abs(want).max()))
    try:
        options = {key: TRACING[backend][key] for key in TRACING.get(backend, {}) if key != WHOLE}
        got = result(build(options), seed, backend, "float64" if exact else "float32")
    except UnsupportedOpError:
        return None
    except Exception as error:
        return f"{seed}: {name}: {type(error).__name__}: {error}"[:600]
    tolerance = (1e-8 if exact else 2e-3) * scale + 20 * noise
    if got.shape != want.shape or not np.all(np.abs(got - want) <= tolerance):
        return f"{seed}: {name}: {got.ravel()[:4]}, expected {want.ravel()[:4]}"
    return None


CHUNKS = [
    (backend, start)
    for backend in OTHERS
    for start in range(0, LAZY_PROGRAMS if is_lazy(backend) else PROGRAMS, PER_TEST)
]


@pytest.mark.parametrize(("backend", "start"), CHUNKS, indirect=["backend"])
def test_random_nestings(backend: str, start: int) -> None:
    failures = [failure(seed, backend) for seed in range(start, start + PER_TEST)]
    assert not any(failures), "\n".join(filter(None, failures))


@pytest.mark.parametrize("backend", OTHERS, indirect=True)
@pytest.mark.parametrize("seed", range(1, 1 + COMPILED))
def test_random_compiled_nestings(seed: int, backend: str) -> None:
    wrong = failure(seed, backend, compiled=True)
    assert wrong is None, wrong


@pytest.mark.parametrize("name", STEPS)
def test_second_derivatives_of_every_step(name: str) -> None:
    """The reference is `torch.func.grad` of `torch.func.grad`, of the program's native arrays."""
    f = program([name, "gauss"])

    def native(x: torch.Tensor) -> torch.Tensor:
        return f(convert_to_tensor(x)).native

    with use_backend("torch"):
        x = x_of(3, "float64").native
        want = torch.func.grad(lambda x: torch.func.grad(native)(x).sum())(x).numpy()
    for backend in available():
        exact = has_dtype(backend, "float64")
        twice = grad(lambda x: grad(f)(x).sum())
        got = result(twice, 3, backend, "float64" if exact else "float32")
        tolerance = (1e-9 if exact else 2e-3) * max(1.0, np.abs(want).max())
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance, err_msg=backend)
