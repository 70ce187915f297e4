"""Tests of activations against torch, as functions, modules, names and configs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ember_ml import GradientTape, nn, ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.configs import ConfigError
from ember_ml.nn import activations, tensor
from ember_ml.registry import available, create

TorchFunction = Callable[[torch.Tensor], torch.Tensor]

DEFAULTS: dict[str, TorchFunction] = {
    "celu": F.celu,
    "elu": F.elu,
    "gelu": F.gelu,
    "glu": F.glu,
    "hard_shrink": F.hardshrink,
    "hard_sigmoid": F.hardsigmoid,
    "hard_swish": F.hardswish,
    "hard_tanh": F.hardtanh,
    "identity": lambda x: x,
    "leaky_relu": F.leaky_relu,
    "lecun_tanh": lambda x: 1.7159 * torch.tanh(2 * x / 3),
    "log_sigmoid": F.logsigmoid,
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "mish": F.mish,
    "prelu": lambda x: F.prelu(x, torch.tensor([0.25])),
    "relu": F.relu,
    "relu6": F.relu6,
    "relu_squared": lambda x: F.relu(x) ** 2,
    "selu": F.selu,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "sine": torch.sin,
    "soft_shrink": F.softshrink,
    "softmax": lambda x: F.softmax(x, -1),
    "softmin": lambda x: F.softmin(x, -1),
    "softplus": F.softplus,
    "softsign": F.softsign,
    "tanh": torch.tanh,
    "tanh_shrink": F.tanhshrink,
}
OPTIONS: list[tuple[str, dict[str, float], TorchFunction]] = [
    ("celu", {"alpha": 0.5}, lambda x: F.celu(x, 0.5)),
    ("elu", {"alpha": 2.0}, lambda x: F.elu(x, 2.0)),
    ("gelu", {"approximate": True}, lambda x: F.gelu(x, approximate="tanh")),
    ("glu", {"axis": 0}, lambda x: F.glu(x, 0)),
    ("hard_shrink", {"threshold": 1.0}, lambda x: F.hardshrink(x, 1.0)),
    ("hard_tanh", {"min_value": -0.5, "max_value": 2.0}, lambda x: F.hardtanh(x, -0.5, 2.0)),
    ("leaky_relu", {"negative_slope": 0.3}, lambda x: F.leaky_relu(x, 0.3)),
    ("log_softmax", {"axis": 0}, lambda x: F.log_softmax(x, 0)),
    ("prelu", {"features": 6, "negative_slope": 0.1}, lambda x: F.leaky_relu(x, 0.1)),
    ("sine", {"frequency": 30.0}, lambda x: torch.sin(30.0 * x)),
    ("soft_shrink", {"threshold": 0.1}, lambda x: F.softshrink(x, 0.1)),
    ("softmax", {"axis": 0}, lambda x: F.softmax(x, 0)),
    ("softmin", {"axis": 0}, lambda x: F.softmin(x, 0)),
    ("softplus", {"beta": 3.0}, lambda x: F.softplus(x, 3.0)),
    ("threshold", {"threshold": 0.1, "value": -7.0}, lambda x: F.threshold(x, 0.1, -7.0)),
]
INPUT = np.random.default_rng(0).normal(0.0, 2.0, (4, 6)).astype(np.float32)
NAMES = [entry.name.partition("/")[2] for entry in available("activations")]
WITHOUT_TORCH = {"sparsemax"}
"""Activations with their own tests below."""


def test_every_activation_is_tested() -> None:
    assert set(NAMES) == {*DEFAULTS, *(name for name, _, _ in OPTIONS), *WITHOUT_TORCH}
    parametric = {
        e.name.partition("/")[2] for e in available("activations") if e.config.model_fields
    }
    assert parametric - {name for name, _, _ in OPTIONS} == WITHOUT_TORCH


def check(function: Callable[[tensor.Tensor], tensor.Tensor], reference: TorchFunction) -> None:
    """Return the values and the gradient of the sum of their sine."""
    expected_x = torch.tensor(INPUT, requires_grad=True)
    expected = reference(expected_x)
    torch.sin(expected).sum().backward()
    x = tensor.array(INPUT)
    with GradientTape() as tape:
        tape.watch(x)
        y = function(x)
        total = ops.sum(ops.sin(y))
    np.testing.assert_allclose(y.numpy(), expected.detach().numpy(), rtol=1e-5, atol=2e-6)
    assert expected_x.grad is not None
    gradient = tape.gradient(total, x).numpy()
    np.testing.assert_allclose(gradient, expected_x.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_defaults(name: str, backend: str) -> None:
    check(activations.get(name), DEFAULTS[name])
    module = create(f"activations/{name}")
    assert isinstance(module, nn.Module)
    np.testing.assert_array_equal(
        module(tensor.array(INPUT)).numpy(), activations.get(name)(tensor.array(INPUT)).numpy()
    )


@pytest.mark.parametrize(
    ("name", "options", "reference"),
    OPTIONS,
    ids=lambda part: None if callable(part) else str(part)[:30],
)
def test_options(
    name: str, options: dict[str, float], reference: TorchFunction, backend: str
) -> None:
    module = activations.get({"type": name, **options})
    assert module.config.to_dict() == {"type": f"activations/{name}", **module.config.model_dump()}
    assert all(getattr(module.config, key) == value for key, value in options.items())
    check(module, reference)


def test_sparsemax_definition(backend: str) -> None:
    """The projection is p = max(x - t, 0) with sum 1; bisection computes t."""
    low, high = INPUT.min(1, keepdims=True) - 1.0, INPUT.max(1, keepdims=True)
    for _ in range(60):
        middle = (low + high) / 2
        above = np.maximum(INPUT - middle, 0).sum(1, keepdims=True) > 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    expected = np.maximum(INPUT - low, 0)
    given = activations.get("sparsemax")(tensor.array(INPUT)).numpy()
    np.testing.assert_allclose(given, expected, atol=1e-5)
    along = activations.Sparsemax(axis=0)(tensor.array(INPUT.T.copy())).numpy()
    np.testing.assert_allclose(along, expected.T, atol=1e-5)


def test_prelu_is_a_module() -> None:
    assert isinstance(activations.get("prelu"), activations.PReLU)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("prelu", "threshold")])
def test_get_by_name_returns_function(name: str) -> None:
    given = activations.get(name)
    assert given is getattr(activations, name)
    assert activations.get(create(f"activations/{name}").config) is given
    assert activations.get({"type": f"activations/{name}"}) is given


def test_functions_are_ops() -> None:
    assert activations.get("relu") is ops.relu
    assert activations.get("swish") is ops.silu
    assert activations.get("linear")(3) == 3


def test_get_returns_callables_unchanged() -> None:
    module = activations.ReLU()
    assert activations.get(module) is module
    assert activations.get(math.sin) is math.sin


def test_module_path() -> None:
    from ember_ml.nn import modules
    from ember_ml.nn.modules.activations import ReLU

    assert ReLU is activations.ReLU
    assert modules.Module is nn.Module
    assert modules.Sequential is nn.Sequential


def test_prelu_gradient(backend: str) -> None:
    model = activations.PReLU(features=6)
    weight = torch.full((6,), 0.25, requires_grad=True)
    F.prelu(torch.tensor(INPUT), weight).sum().backward()
    _, gradients = nn.value_and_grad(model, lambda x: ops.sum(model(x)))(tensor.array(INPUT))
    assert weight.grad is not None
    np.testing.assert_allclose(gradients["weight"].numpy(), weight.grad.numpy(), rtol=1e-5)
    assert [parameter.decay for parameter in model.parameters()] == [False]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softplus", "sigmoid", "silu", "mish"])
def test_large_values_are_finite(name: str, backend: str) -> None:
    x = torch.tensor([[-1e4, -100.0, 0.0, 100.0, 1e4]])
    given = activations.get(name)(tensor.array(x.numpy())).numpy()
    np.testing.assert_allclose(given, DEFAULTS[name](x).numpy(), rtol=1e-5, atol=1e-30)


def test_repr() -> None:
    assert repr(activations.ReLU()) == "ReLU()"
    assert repr(activations.Softmax(axis=1)) == "Softmax(axis=1)"


def test_errors() -> None:
    with pytest.raises(KeyError, match="did you mean 'relu'"):
        activations.get("rellu")
    with pytest.raises(
        ArgumentTypeError,
        match="a config or an object of kind 'activations', not 3",
    ):
        activations.get(3)
    with pytest.raises(ArgumentTypeError, match="Threshold: missing a required argument"):
        activations.get("threshold")
    with pytest.raises(ArgumentTypeError, match="ReLU: got an unexpected keyword argument 'slope'"):
        activations.ReLU(slope=1)  # type: ignore[call-arg]
    with pytest.raises(ArgumentError, match=r"min_value \(1.0\) must not exceed max_value \(0.0\)"):
        activations.HardTanh(1.0, 0.0)
    with pytest.raises(ConfigError, match="beta"):
        activations.Softplus(beta=0.0)
