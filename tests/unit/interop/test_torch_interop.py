"""Ember modules in programs of torch, and modules of torch in Ember."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest
import torch

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import use_backend
from ember_ml.interop import from_torch, to_torch
from ember_ml.nn import layers
from ember_ml.nn.models import LanguageModel
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer


@pytest.fixture(autouse=True)
def on_torch():
    with use_backend("torch"):
        ops.random.set_seed(0)
        yield


def tokens() -> torch.Tensor:
    return torch.arange(12).reshape(2, 6) % 7


def test_a_second_call_returns_the_same_module() -> None:
    model = LanguageModel("gru attention", 7, 8)
    theirs = to_torch(model)
    assert to_torch(model) is theirs
    assert to_torch(model.backbone) is theirs.backbone
    model.head.bias = nn.Parameter(ops.zeros((7,)))
    assert "head.bias" in to_torch(model).state_dict()


def test_tied_weights_are_one_parameter() -> None:
    model = LanguageModel("gru", 7, 8, tie_weights=True)
    theirs = to_torch(model)
    assert len(list(theirs.parameters())) == len(model.parameters())
    theirs(tokens()).sum().backward()
    expected = nn.value_and_grad(model, lambda: model(array(tokens())).sum())()[1]
    weight = theirs.embedding.weight
    torch.testing.assert_close(weight.grad, expected["embedding.weight"].native)


def test_moves_and_conversions_reach_the_ember_module() -> None:
    model = layers.Dense(3, 2)
    theirs = to_torch(model).double()
    assert model.weight.dtype.name == "float64"
    with torch.no_grad():
        theirs.weight.fill_(2.0)
    assert (model.weight == 2.0).all()


def test_a_broadcast_value_can_be_trained() -> None:
    layer = layers.Dense(3, 2)
    layer.weight.become(ops.broadcast_to(array([1.0, 2.0, 3.0]), (2, 3)))
    theirs = to_torch(layer)
    theirs(torch.ones(1, 3))[:, 0].sum().backward()
    torch.optim.SGD(theirs.parameters(), lr=1.0).step()
    assert layer.weight.tolist() == [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]


def test_modes_and_buffers() -> None:
    model = layers.BatchNorm(3)
    theirs = to_torch(model)
    reference = torch.nn.BatchNorm1d(3, momentum=0.1)
    x = torch.randn(16, 3) * 3.0 + 1.0
    for module in (theirs, reference):
        module.train()
        module(x)
        module.eval()
    assert not model.training
    expected = dict(reference.named_buffers())["running_mean"]
    means = [value for name, value in theirs.named_buffers() if "mean" in name]
    torch.testing.assert_close(means[0], expected)
    torch.testing.assert_close(theirs(x), reference(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(array(x)).native, reference(x), rtol=1e-4, atol=1e-5)


def test_hooks_of_both_frameworks_run() -> None:
    model = LanguageModel("gru swiglu", 7, 8)
    calls = []
    model.backbone.register_forward_hook(lambda module, args, out: calls.append("ember"))
    theirs = to_torch(model)
    theirs.backbone.register_forward_hook(lambda module, args, out: calls.append(type(out)))
    theirs(tokens())
    assert calls == ["ember", torch.Tensor]
    model(array(tokens()))  # not through torch
    assert calls == ["ember", torch.Tensor, "ember"]


def test_a_pre_hook_may_replace_the_parameters_as_fsdp_does() -> None:
    model = LanguageModel("gru swiglu", 7, 8)
    theirs = to_torch(model)
    gru = theirs.backbone.blocks.get_submodule("0")
    before = theirs(tokens())
    zeros = {name: torch.zeros_like(value) for name, value in gru.named_parameters()}

    def replace(module: torch.nn.Module, args: object) -> None:
        for name, value in zeros.items():
            owner, _, last = name.rpartition(".")
            module.get_submodule(owner)._parameters[last] = torch.nn.Parameter(value)

    gru.register_forward_pre_hook(replace)
    after = theirs(tokens())
    assert not torch.allclose(before, after)
    assert (model(array(tokens())).native - before).abs().max() < 1e-5


def test_a_copy_is_independent() -> None:
    theirs = to_torch(LanguageModel("gru", 7, 8))
    copied = copy.deepcopy(theirs)
    torch.testing.assert_close(copied(tokens()), theirs(tokens()))
    with torch.no_grad():
        copied.head.weight.zero_()
    assert theirs.head.weight.any()
    assert to_torch(copied.ember) is copied
    assert copy.deepcopy(theirs.ember)(array(tokens())).shape == (2, 6, 7)


def test_states_go_in_and_out() -> None:
    model = LanguageModel("gru attention", 7, 8).eval()
    theirs = to_torch(model)
    x = tokens()
    whole = theirs(x)
    first, state = theirs(x[:, :4], state=model.initial_state(2))
    rest, _ = theirs(x[:, 4:], state=state)
    torch.testing.assert_close(torch.cat([first, rest], 1), whole, rtol=1e-4, atol=1e-5)


def test_threads_use_one_module() -> None:
    theirs = to_torch(LanguageModel("gru swiglu", 7, 8).eval())
    expected, failed = theirs(tokens()).detach(), []

    def call() -> None:
        for _ in range(20):
            if not torch.allclose(theirs(tokens()), expected):
                failed.append(1)

    workers = [threading.Thread(target=call) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed


def test_errors() -> None:
    with use_backend("numpy"):
        model = layers.Dense(2, 2)
    with pytest.raises(TypeError, match=r"weight of Dense is on numpy; call to_backend\('torch'\)"):
        to_torch(model)
    with pytest.raises(TypeError, match="expected an Ember module, got Linear"):
        to_torch(torch.nn.Linear(2, 2))
    with pytest.raises(TypeError, match=r"expected a torch\.nn\.Module, got Dense"):
        from_torch(model)


def perceptron() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.GELU(), torch.nn.Linear(8, 3)
    )


def test_a_torch_module_trains_in_ember_as_in_torch() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((32, 4), np.float32), rng.integers(0, 3, 32)
    ours, theirs = from_torch(perceptron()), perceptron()
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    expected = []
    for _ in range(5):
        loss = torch.nn.functional.cross_entropy(theirs(torch.from_numpy(x)), torch.from_numpy(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    trainer = Trainer(ours, "cross_entropy", optimizer="sgd", learning_rate=0.1, progress=False)
    history = trainer.fit((x, y), steps=5, batch_size=32)
    np.testing.assert_allclose(history.losses, expected, rtol=1e-4)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(
            ours.state_dict()[name].numpy(), value.numpy(), rtol=1e-3, atol=1e-5
        )


def test_a_torch_module_is_a_part_of_an_ember_model() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.inner = from_torch(perceptron())
            self.head = layers.Dense(3, 2)

        def forward(self, x):
            return self.head(self.inner(x))

    model = Model().eval()
    theirs = to_torch(model)
    x = torch.randn(5, 4)
    theirs(x).sum().backward()
    assert all(parameter.grad is not None for parameter in theirs.parameters())
    torch.testing.assert_close(theirs(x), model(array(x)).native)
    assert from_torch(theirs) is model


def test_a_model_saved_from_torch_loads_in_ember(tmp_path) -> None:
    model = LanguageModel("gru swiglu", 7, 8)
    theirs = to_torch(model)
    optimizer = torch.optim.AdamW(theirs.parameters(), lr=0.1)
    theirs(tokens()).logsumexp(-1).sum().backward()
    optimizer.step()
    ember_ml.save(model, tmp_path / "model")
    with use_backend("numpy"):
        loaded = ember_ml.load(tmp_path / "model")
        expected = theirs(tokens()).detach().numpy()
        np.testing.assert_allclose(loaded(tokens().numpy()).numpy(), expected, rtol=1e-4, atol=1e-5)


def replace_by_training(layer: nn.Module) -> None:
    trainer = Trainer(layer, "mse", optimizer="sgd", learning_rate=0.5, progress=False)
    trainer.fit((np.ones((8, 4), "float32"), np.ones((8, 4), "float32")), epochs=1)


def replace_by_loading(layer: nn.Module) -> None:
    layer.load_state_dict(layers.Dense(4, 4).state_dict())


def replace_on_another_backend(layer: nn.Module) -> None:
    layer.to_backend("numpy")
    layer.weight.become(layer.weight * 2)
    layer.to_backend("torch")


@pytest.mark.parametrize(
    "replace", [replace_by_training, replace_by_loading, replace_on_another_backend]
)
def test_values_that_ember_replaces_reach_torch(replace) -> None:
    layer, x = layers.Dense(4, 4), torch.ones(2, 4)
    theirs = torch.nn.Sequential(to_torch(layer))
    before = theirs(x).detach()
    replace(layer)
    expected = layer(x).native.detach()
    assert not torch.equal(expected, before)
    torch.testing.assert_close(theirs(x).detach(), expected)
    assert layer.weight.native.data_ptr() == theirs[0].weight.data_ptr(), "memory is shared again"
    torch.optim.SGD(theirs.parameters(), 0.1).zero_grad()
    with torch.no_grad():
        theirs[0].weight.zero_()
    assert not layer.weight.numpy().any()


@pytest.mark.parametrize("use", ["state_dict", "double", "to_torch"])
def test_values_that_ember_replaces_are_not_lost(use) -> None:
    layer = layers.Dense(4, 4)
    theirs = to_torch(layer)
    layer.weight.assign(np.full((4, 4), 7.0, "float32"))
    uses = {
        "state_dict": lambda: theirs.state_dict()["weight"],
        "double": lambda: theirs.double().weight,
        "to_torch": lambda: to_torch(layer).weight,
    }
    assert (uses[use]() == 7.0).all()
    assert (layer.weight.numpy() == 7.0).all()


def test_freezing_after_the_conversion_reaches_torch() -> None:
    layer = layers.Dense(4, 4)
    theirs = to_torch(layer)
    theirs.bias.requires_grad_(False)
    layer.weight.trainable = False
    theirs(torch.ones(2, 4))
    assert (theirs.weight.requires_grad, theirs.bias.requires_grad) == (False, False)
    layer.weight.trainable = True
    assert to_torch(layer).weight.requires_grad
    assert not theirs.bias.requires_grad, "torch's own choice stays"


def test_a_module_that_left_torch_is_named() -> None:
    layer = layers.Dense(4, 4)
    theirs = to_torch(layer)
    layer.to_backend("numpy")
    with pytest.raises(TypeError, match="weight of Dense is on numpy now"):
        theirs(torch.ones(2, 4))


def test_a_state_dict_that_replaces_the_tensors_reaches_ember() -> None:
    layer = layers.Dense(4, 4)
    theirs = torch.nn.Sequential(to_torch(layer))
    theirs.load_state_dict(
        {name: torch.ones_like(x) for name, x in theirs.state_dict().items()}, assign=True
    )
    assert (layer.weight.numpy() == 1.0).all()
    assert torch.equal(theirs(torch.ones(2, 4)), layer(torch.ones(2, 4)).native)


class Wrapper(torch.nn.Module):
    """Module whose parts have the names of attributes of Ember modules."""

    def __init__(self) -> None:
        super().__init__()
        self.module = torch.nn.Linear(4, 4)
        self.config = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.config(self.module(x))


def test_names_of_a_torch_module_do_not_collide_with_those_of_ember() -> None:
    theirs = Wrapper()
    layer = from_torch(theirs)
    assert [name for name, _ in layer.named_parameters()] == list(theirs.state_dict())
    x = torch.ones(2, 4)
    assert torch.equal(layer(x).native, theirs(x))


def test_the_torch_module_gets_the_values_that_ember_trained() -> None:
    theirs = torch.nn.Linear(4, 4)
    layer = from_torch(theirs)
    replace_by_training(layer)
    assert layer.module is theirs
    assert torch.equal(theirs.weight, layer.weight.native)


def test_a_torch_module_does_not_run_on_another_backend() -> None:
    layer = from_torch(torch.nn.Linear(4, 4)).to_backend("numpy")
    with pytest.raises(TypeError, match="Linear of from_torch runs on the torch backend only"):
        layer(np.ones((2, 4), "float32"))
