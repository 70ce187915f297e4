"""Derivatives of derivatives of every op in the table: the frameworks against NumPy's VJP rules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ember_ml import ops, use_backend
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff import grad, jvp, vmap
from tests.backends import with_dtype
from tests.conformance import gradients
from tests.conformance.table import Case
from tests.conformance.test_gradients import SECOND
from tests.conformance.test_ops import CASES
from tests.robustness.scale import spread

REFERENCE = "numpy"
OTHERS = [name for name in with_dtype("float64") if name != REFERENCE]
Function = Callable[..., Any]


def scalar(case: Case, template: list[Any]) -> Function:
    """Return a scalar of the row's results with derivatives of every order."""

    def f(*variables: EmberTensor) -> EmberTensor:
        outs = gradients.compute(case, gradients.rebuilt(case, template, list(variables)))
        parts = [p for x in outs for p in ((x,) if x.dtype.kind == "float" else _split(x))]
        return functools.reduce(ops.add, [ops.sum(ops.sin(p) * _weights(p, 5)) for p in parts])

    return f


def _split(x: EmberTensor) -> tuple[EmberTensor, EmberTensor]:
    return ops.real(x), ops.imag(x)


def _weights(x: EmberTensor, salt: int) -> EmberTensor:
    values = np.random.default_rng([salt, x.size]).uniform(0.5, 1.5, x.shape)
    return convert_to_tensor(values, dtype=x.dtype, backend=x.backend)


def pushed(f: Function, salt: int) -> Function:
    """Return the derivative of f along a direction, in forward mode."""
    return lambda *xs: jvp(f, xs, tuple([_weights(x, salt) for x in xs]))[1]


def pulled(f: Function) -> Function:
    return lambda *xs: grad(f, argnums=tuple(range(len(xs))))(*xs)


def sloped(f: Function, salt: int) -> Function:
    """Return the derivative of f along a direction, in reverse mode."""

    def slope(*xs: EmberTensor) -> EmberTensor:
        parts = [ops.sum(g * _weights(g, salt)) for g in pulled(f)(*xs)]
        return functools.reduce(ops.add, parts)

    return slope


NESTINGS: dict[str, Callable[[Function], Function]] = {
    "jvp of jvp": lambda f: pushed(pushed(f, 1), 2),
    "grad of jvp": lambda f: pulled(pushed(f, 1)),
    "third derivative": lambda f: pulled(sloped(sloped(f, 1), 2)),
    "vmap of grad of jvp": lambda f: vmap(pulled(pushed(f, 1))),
    "grad of vmap": lambda f: pulled(lambda *xs: ops.sum(vmap(f)(*xs))),
}


def derivatives(case: Case, nesting: str, backend: str) -> list[Any] | None:
    """Return the derivatives of a row; None if no result is floating."""
    with use_backend(backend), np.errstate(all="ignore"):
        arrays = gradients.variables(case, gradients.values(case, "float64"))
        args = gradients.on_backend(case, backend, "float64", arrays)
        if not gradients.compute(case, args):
            return None
        if "vmap" in nesting:
            arrays = [np.stack([x, x * 1.001]) for x in arrays]
        sources = [convert_to_tensor(x, dtype="float64") for x in arrays]
        out = NESTINGS[nesting](scalar(case, args))(*sources)
        return [gradients.host(x) for x in (out if isinstance(out, tuple) else (out,))]


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore:vmap computes")  # slow batching only
@pytest.mark.parametrize("backend", OTHERS, indirect=True)
@pytest.mark.parametrize("key", spread(list(SECOND), 2))
def test_nested_derivatives(key: str, backend: str) -> None:
    case = CASES[SECOND[key][0]]
    for nesting in NESTINGS:
        want = derivatives(case, nesting, REFERENCE)
        for ours, reference in zip(
            derivatives(case, nesting, backend) or (), want or (), strict=True
        ):
            gradients.compare(ours, reference, "float64", 10 * case.rtol)
