"""Ember modules under the tools of torch that change, copy or call modules in their own way."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, load_model, save_file, save_model
from torch.nn.utils import parametrizations, parametrize
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint

from ember_ml import nn, ops
from ember_ml.backend import use_backend
from ember_ml.interop import EmberModule, from_torch, to_torch
from ember_ml.nn import layers
from ember_ml.nn.models import LanguageModel
from ember_ml.nn.tensor import array


@pytest.fixture(autouse=True)
def on_torch():
    with use_backend("torch"), torch.random.fork_rng():
        ops.random.set_seed(0)
        torch.manual_seed(0)
        yield


def model(layers: str = "mamba attention") -> EmberModule:
    return to_torch(LanguageModel(layers, 7, 8))


def tokens() -> torch.Tensor:
    return torch.arange(12).reshape(2, 6) % 7


class Adapter(torch.nn.Module):
    """Low-rank update of a dense layer."""

    def __init__(self, base: EmberModule) -> None:
        super().__init__()
        rows, columns = base.weight.shape
        self.base = base
        self.down = torch.nn.Linear(columns, 2, bias=False)
        self.up = torch.nn.Linear(2, rows, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.up(self.down(x))

    def merged(self) -> torch.Tensor:
        return self.base.weight + self.up.weight @ self.down.weight


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_an_adapter_replaces_a_submodule(dtype: torch.dtype | None) -> None:
    theirs = model("swiglu")
    theirs.requires_grad_(False)
    theirs.head = Adapter(theirs.head)
    with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
        y = theirs(tokens())
    y.float().square().sum().backward()
    trained = {name for name, each in theirs.named_parameters() if each.grad is not None}
    assert trained == {"head.down.weight", "head.up.weight"}
    merged = model("swiglu")
    merged.load_state_dict(theirs.state_dict(), strict=False)
    with torch.no_grad():
        merged.head.weight.copy_(theirs.head.merged())
    tolerance = 1e-5 if dtype is None else 0.05
    torch.testing.assert_close(y.float(), merged(tokens()), rtol=tolerance, atol=tolerance)


class Twice(nn.Module):
    def __init__(self) -> None:
        self.first = self.second = layers.Dense(4, 4)

    def forward(self, x):
        return self.second(self.first(x))


def test_a_module_that_occurs_twice_is_replaced_in_both_places() -> None:
    theirs = to_torch(Twice())
    theirs.second = torch.nn.Identity()
    assert torch.equal(theirs(torch.ones(2, 4)), torch.ones(2, 4))


def test_a_copy_has_what_torch_added() -> None:
    theirs, calls = model("swiglu"), []
    theirs.head = Adapter(theirs.head)
    theirs.embedding.register_forward_hook(lambda *_: calls.append(1))
    copied = copy.deepcopy(theirs)
    torch.testing.assert_close(copied(tokens()), theirs(tokens()))
    assert calls == [1, 1]
    assert list(copied.state_dict()) == list(theirs.state_dict())
    with torch.no_grad():
        copied.head.up.weight.zero_()
    y = copied.ember(array(tokens())).native
    torch.testing.assert_close(copied(tokens()).detach(), y)
    assert not torch.allclose(theirs(tokens()), copied(tokens()))


@pytest.mark.parametrize("order", [("head", "embedding"), ("embedding", "head")])
def test_a_copy_keeps_weights_that_torch_ties(order: tuple[str, str]) -> None:
    parts = {
        "head": torch.nn.Linear(8, 7, bias=False),
        "embedding": to_torch(layers.Embedding(7, 8)),
    }
    parts["head"].weight = parts["embedding"].weight
    copied = copy.deepcopy(torch.nn.ModuleDict({name: parts[name] for name in order}))
    assert copied["head"].weight is copied["embedding"].weight
    with torch.no_grad():
        copied["head"].weight.zero_()
    assert not copied["embedding"].ember.weight.numpy().any()
    assert parts["embedding"].weight.any()


def test_files_of_safetensors(tmp_path: Path) -> None:
    tied = to_torch(LanguageModel("mamba", 7, 8, tie_weights=True))
    save_file(tied.state_dict(), tmp_path / "tied.safetensors")
    assert "embedding.weight" in load_file(tmp_path / "tied.safetensors")
    twice = to_torch(Twice())
    with pytest.raises(RuntimeError, match="share memory"):
        save_file(twice.state_dict(), tmp_path / "twice.safetensors")
    save_model(twice, str(tmp_path / "twice.safetensors"))
    other = to_torch(Twice())
    load_model(other, tmp_path / "twice.safetensors")
    assert torch.equal(other(torch.ones(1, 4)), twice(torch.ones(1, 4)))


def test_weight_norm() -> None:
    theirs, x = to_torch(layers.Mamba(8)), torch.randn(2, 5, 8)
    before = theirs(x)
    parametrizations.weight_norm(theirs.out_proj, "weight")
    torch.testing.assert_close(theirs(x), before)
    theirs(x).sum().backward()
    torch.optim.SGD(theirs.parameters(), 0.1).step()
    y = theirs(x).detach()
    assert not torch.allclose(y, before)
    torch.testing.assert_close(theirs.ember(x).native, y)
    torch.testing.assert_close(copy.deepcopy(theirs)(x).detach(), y)
    parametrize.remove_parametrizations(theirs.out_proj, "weight")
    torch.testing.assert_close(theirs(x).detach(), y)
    torch.testing.assert_close(to_torch(theirs.ember).ember(x).native, y)


def test_parameters_that_torch_replaces_reach_ember() -> None:
    theirs = model()
    values = torch.nn.utils.parameters_to_vector(theirs.parameters())
    torch.nn.utils.vector_to_parameters(values * 0.5, theirs.parameters())
    theirs.head.weight = torch.nn.Parameter(torch.ones(7, 8))
    y = theirs(tokens()).detach()
    torch.testing.assert_close(theirs.ember(array(tokens())).native, y)
    assert (theirs.ember.head.weight.numpy() == 1.0).all()
    with torch.no_grad():
        theirs.head.weight.zero_()
    assert not theirs.ember.head.weight.numpy().any(), "memory is shared again"


def test_functional_call_and_per_sample_gradients() -> None:
    theirs = model("gru swiglu").eval()
    values = {name: each.detach() for name, each in theirs.named_parameters()}

    def loss(values: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(theirs, values, (x[None],)).square().mean()

    each = torch.func.vmap(torch.func.grad(loss), (None, 0))(values, tokens())
    theirs(tokens()).square().mean().backward()
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(each[name].mean(0), parameter.grad, rtol=1e-4, atol=1e-5)
    zeros = {name: torch.zeros_like(value) for name, value in values.items()}
    assert not torch.func.functional_call(theirs, zeros, (tokens(),)).any()
    assert theirs(tokens()).any()
    assert theirs.ember.head.weight.numpy().any(), "the values of the call are not kept"


def test_activation_checkpointing_of_torch() -> None:
    theirs = model()
    theirs(tokens()).square().sum().backward()
    expected = [parameter.grad for parameter in theirs.parameters()]
    theirs.zero_grad()
    checkpoint(theirs, tokens(), use_reentrant=False).square().sum().backward()
    for parameter, gradient in zip(theirs.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_moving_averages() -> None:
    theirs = model()
    averages = AveragedModel(theirs, multi_avg_fn=get_ema_multi_avg_fn(0.5))
    averages.update_parameters(theirs)
    before = theirs.head.weight.detach().clone()
    with torch.no_grad():
        theirs.head.weight.add_(1.0)
    averages.update_parameters(theirs)
    expected = before + 0.5
    torch.testing.assert_close(averages.module.head.weight.detach(), expected)
    torch.testing.assert_close(averages.module.ember.head.weight.native, expected)


def test_gradient_hooks() -> None:
    theirs, calls = model(), []
    theirs.head.weight.register_hook(lambda gradient: gradient * 0.0)
    theirs.head.register_full_backward_hook(lambda *_: calls.append("module"))
    theirs.embedding.weight.register_post_accumulate_grad_hook(lambda _: calls.append("parameter"))
    theirs(tokens()).sum().backward()
    assert calls == ["module", "parameter"]
    assert not theirs.head.weight.grad.any()
    assert theirs.embedding.weight.grad.any()


def test_an_ember_module_inside_a_torch_module_inside_an_ember_module() -> None:
    inner = torch.nn.Sequential(torch.nn.Linear(8, 8), to_torch(layers.Mamba(8)))
    theirs, x = to_torch(from_torch(inner)), torch.randn(2, 5, 8)
    y = theirs(x)
    y.sum().backward()
    inner(x).sum().backward()
    torch.testing.assert_close(y, inner(x))
    for name, parameter in inner.named_parameters():
        torch.testing.assert_close(theirs.get_parameter(name).grad, parameter.grad)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype: torch.dtype) -> None:
    theirs = model().eval()
    expected = theirs(tokens())
    y = theirs.to(dtype)(tokens())
    assert y.dtype == dtype
    torch.testing.assert_close(y.float(), expected, rtol=0.1, atol=0.1)


def test_meta_device() -> None:
    theirs = model().to("meta")
    assert theirs(tokens().to("meta")).shape == (2, 6, 7)
    theirs.to_empty(device="cpu")
    assert theirs.ember.head.weight.native.device.type == "cpu"


def test_batch_norm_and_buffers_inside_autocast() -> None:
    theirs = to_torch(nn.Sequential(layers.Dense(4, 8), layers.BatchNorm(8), layers.Dense(8, 2)))
    reference, x = copy.deepcopy(theirs), torch.randn(16, 4)
    reference(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        theirs(x)
        assert theirs.eval()(x).dtype == torch.bfloat16
    for mine, expected in zip(theirs.buffers(), reference.buffers(), strict=True):
        assert mine.dtype == torch.float32
        torch.testing.assert_close(mine, expected, rtol=0.02, atol=0.01)


def test_values_that_ember_replaces_are_used_inside_autocast() -> None:
    layer = layers.Dense(4, 4)
    theirs = to_torch(layer)
    layer.weight.become(ops.zeros((4, 4)))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not (theirs(torch.ones(2, 4)) - theirs.bias).any()


def test_a_dense_layer_does_not_follow_quantized_embeddings_inside_autocast() -> None:
    theirs = to_torch(nn.Sequential(layers.QuantizedEmbedding(7, 8), layers.Dense(8, 4)))
    with (
        torch.autocast("cpu", dtype=torch.bfloat16),
        pytest.raises(TypeError, match="does not mix"),
    ):
        theirs(tokens())


def test_autocast_does_not_change_the_dtypes_of_later_results() -> None:
    x = array(torch.ones(3, 3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ops.matmul(x, x)
    assert ops.matmul(x, x).dtype.name == "float32"


@pytest.mark.parametrize(
    "save", [pickle.dumps, lambda module: torch.save(module, io.BytesIO())], ids=["pickle", "torch"]
)
def test_modules_are_not_pickled(save) -> None:
    with pytest.raises(TypeError, match=r"LanguageModel of to_torch .* save its state_dict\(\)"):
        save(model())
