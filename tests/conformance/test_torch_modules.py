"""Every registered layer, block and model as a `torch.nn.Module`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from ember_ml import nn, registry
from ember_ml.backend import use_backend
from ember_ml.interop import export, to_torch
from ember_ml.nn.tensor import array
from tests.conformance import test_layers, test_models
from tests.conformance.test_blocks import BLOCKS
from tests.conformance.test_layers import LAYERS
from tests.conformance.test_models import MODELS
from tests.examples_of import config_of, inputs_of
from tests.robustness.scale import FULL, spread


def of_block(entry: registry.Entry) -> tuple[nn.Module, np.ndarray]:
    block = config_of(entry).create().eval()
    return block, np.random.default_rng(0).standard_normal((2, 5, 32)).astype(np.float32)


def of_layer(entry: registry.Entry) -> tuple[nn.Module, np.ndarray]:
    layer = test_layers.make(entry)
    return layer, inputs_of(layer)


def of_model(entry: registry.Entry) -> tuple[nn.Module, np.ndarray]:
    model = test_models.make(entry)
    return model.eval(), test_models.data(model)[0]


KINDS: list[tuple[list[registry.Entry], Callable[..., Any]]] = [
    (LAYERS, of_layer),
    (BLOCKS, of_block),
    (MODELS, of_model),
]
CREATE = [
    pytest.param(lambda entry=entry, make=make: make(entry), id=entry.name)
    for entries, make in KINDS
    for entry in entries
]
of_each = pytest.mark.parametrize("create", CREATE)
of_some = pytest.mark.parametrize("create", spread(CREATE, 20))
"""Compilers take seconds for each; all rows run in the long version."""


@pytest.fixture(autouse=True)
def on_torch():
    with use_backend("torch"):
        yield


@of_each
def test_outputs_gradients_and_names(create: Callable[[], tuple[nn.Module, np.ndarray]]) -> None:
    module, x = create()
    module.eval()
    names = module.state_dict().keys()
    expected = module(array(x)).native
    trainable = [name for name, _ in module.named_parameters(trainable=True)]
    gradients: dict[str, Any] = {}
    if trainable:
        loss = nn.value_and_grad(module, lambda: (module(array(x)) ** 2).mean())
        gradients = loss()[1]
    theirs = to_torch(module)
    assert set(theirs.state_dict()) == set(names)
    y = theirs(torch.from_numpy(x))
    torch.testing.assert_close(y.detach(), expected, rtol=1e-4, atol=1e-5)
    if trainable:
        y.square().mean().backward()
    for name, parameter in theirs.named_parameters():
        gradient = gradients.get(name)
        if gradient is None:
            assert parameter.grad is None or not parameter.grad.any()
        else:
            assert parameter.grad is not None, name
            torch.testing.assert_close(parameter.grad, gradient.native, rtol=1e-3, atol=1e-5)
    assert not module(array(x)).native.requires_grad


@of_each
def test_an_optimizer_of_torch_trains_the_ember_module(create: Callable[..., Any]) -> None:
    module, x = create()
    theirs = to_torch(module)
    parameters = [each for each in theirs.parameters() if each.requires_grad]
    if not parameters:
        assert all(not parameter.trainable for parameter in module.parameters())
        return
    before = {name: value.numpy().copy() for name, value in module.state_dict().items()}
    y = theirs(torch.from_numpy(x))
    y.square().mean().backward()
    gradients = {name: each.grad for name, each in theirs.named_parameters() if each.requires_grad}
    torch.optim.SGD(parameters, lr=0.5).step()
    for name, parameter in module.named_parameters():
        if gradients.get(name) is not None:
            expected = before[name] - 0.5 * gradients[name].numpy()
            np.testing.assert_allclose(parameter.numpy(), expected, rtol=1e-6, atol=1e-7)
    theirs.load_state_dict({name: torch.from_numpy(value) for name, value in before.items()})
    for name, value in module.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])


@of_each
def test_it_runs_inside_autocast(create: Callable[..., Any]) -> None:
    module, x = create()
    theirs = to_torch(module.eval())
    expected = theirs(torch.from_numpy(x)).detach()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = theirs(torch.from_numpy(x))
    has_parameters = any(parameter.is_floating_point() for parameter in theirs.parameters())
    assert y.dtype == (torch.bfloat16 if has_parameters else torch.float32)
    error = (y.detach().float() - expected).abs().median()  # quotients of small sums differ by more
    assert error <= 0.02 * expected.abs().max()
    if y.requires_grad:
        y.float().square().mean().backward()
    for name, parameter in theirs.named_parameters():
        if parameter.grad is not None:
            assert parameter.grad.dtype == torch.float32, name
            assert parameter.grad.isfinite().all(), name


@of_some
def test_it_compiles_without_graph_breaks(create: Callable[..., Any]) -> None:
    module, x = create()
    theirs = to_torch(module.eval())
    try:
        compiled = torch.compile(theirs, fullgraph=True, backend="eager")
        y = compiled(torch.from_numpy(x))
    finally:
        torch.compiler.reset()
    torch.testing.assert_close(y, theirs(torch.from_numpy(x)), rtol=1e-4, atol=1e-5)


@of_some
def test_it_exports(create: Callable[..., Any]) -> None:
    module, x = create()
    theirs = to_torch(module.eval())
    inputs = (torch.from_numpy(x),)
    program = torch.export.export(theirs, inputs)
    torch.testing.assert_close(program.module()(*inputs), theirs(*inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("create", CREATE if FULL else CREATE[: len(LAYERS) : 32])
def test_it_runs_in_onnx_runtime(create: Callable[..., Any], tmp_path: Path) -> None:
    module, x = create()
    export(module, tmp_path / "module.onnx", "onnx", torch.from_numpy(x))
    session = onnxruntime.InferenceSession(tmp_path / "module.onnx")
    (y,) = session.run(None, {session.get_inputs()[0].name: x})
    np.testing.assert_allclose(y, module.eval()(array(x)).numpy(), rtol=1e-3, atol=1e-4)
