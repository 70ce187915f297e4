"""Modules: what they hold, their state, hooks, text, and functions of their parameters."""

from __future__ import annotations

import copy

import pytest
import torch

from ember_ml import nn, ops
from ember_ml.nn import layers
from ember_ml.nn.tensor import array
from tests.backends import other_than


class Net(nn.Module):
    def __init__(self) -> None:
        self.first = layers.Dense(3, 4)
        self.rest = [layers.Dense(4, 4), {"a": layers.Dense(4, 2)}]
        self.norm = layers.BatchNorm(4)
        self.scale = nn.Parameter([1.0])
        self.table = nn.Buffer([1.0, 2.0], persistent=False)

    def forward(self, x):
        x = self.norm(self.first(x))
        return self.rest[1]["a"](ops.tanh(self.rest[0](x))) * self.scale


NAMES = [
    "scale", "first.weight", "first.bias", "rest.0.weight", "rest.0.bias", "rest.1.a.weight",
    "rest.1.a.bias", "norm.weight", "norm.bias",
]  # fmt: skip


def test_attributes_lists_and_dicts_are_found(backend: str) -> None:
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [name for name, _ in net.named_buffers()] == [
        "table", "norm.running_mean", "norm.running_variance",
    ]  # fmt: skip
    assert [name for name, _ in net.named_children()] == ["first", "rest.0", "rest.1.a", "norm"]
    assert net.num_parameters() == 1 + 16 + 20 + 10 + 8
    assert net.first.weight.name == "weight"
    assert sorted(net.state_dict()) == sorted(
        [*NAMES, "norm.running_mean", "norm.running_variance"]
    )


def test_a_shared_parameter_comes_once() -> None:
    net = nn.Sequential(layers.Dense(3, 3), layers.Dense(3, 3))
    net[1].weight = net[0].weight
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    twice = nn.Sequential(net[0], net[0])
    assert len(twice.parameters()) == 2


def test_freezing(backend: str) -> None:
    net = Net()
    net.first.freeze()
    assert net.num_parameters() - net.num_parameters(trainable=True) == 16
    _, grads = nn.value_and_grad(net, lambda x: net(x).sum())(ops.ones((2, 3)))
    assert "first.weight" not in grads
    assert "norm.weight" in grads
    net.freeze()
    with pytest.raises(ValueError, match="Net has no trainable parameters"):
        nn.value_and_grad(net, lambda x: net(x).sum())(ops.ones((2, 3)))
    net.unfreeze()
    assert len(net.parameters(trainable=True)) == len(NAMES)


def test_state_moves_and_bad_state_changes_nothing(backend: str) -> None:
    net, other = Net(), Net()
    state = {name: x.numpy() for name, x in net.state_dict().items()}
    other.load_state_dict(state)
    x = ops.random.normal((5, 3), seed=1)
    assert ops.allclose(net(x), other(x))
    before = other.first.weight.tolist()
    bad = {**state, "first.weight": ops.zeros((4, 5)), "extra": ops.zeros(1)}
    del bad["scale"]
    with pytest.raises(nn.StateDictError) as caught:
        other.load_state_dict(bad)
    assert caught.value.missing == ["scale"]
    assert caught.value.unexpected == ["extra"]
    assert caught.value.misshaped == {"first.weight": ((4, 3), (4, 5))}
    for part in ("missing: scale", "unexpected: extra", "first.weight has shape (4, 3)"):
        assert part in str(caught.value)
    assert other.first.weight.tolist() == before
    other.load_state_dict({"scale": [5.0]}, strict=False)
    assert other.scale.tolist() == [5.0]


def test_state_is_a_snapshot(backend: str) -> None:
    layer = layers.Dense(2, 2)
    state = layer.state_dict()
    before = state["weight"].tolist()
    layer.weight.assign(ops.zeros((2, 2)))
    assert state["weight"].tolist() == before


def test_attributes_that_hold_variables() -> None:
    layer = layers.Dense(2, 2)
    with pytest.raises(TypeError, match=r"Dense.weight is a Parameter: .*weight.assign"):
        layer.weight = ops.zeros((2, 2))
    norm = layers.BatchNorm(2)
    buffer = norm.running_mean
    norm.running_mean = ops.ones(2)
    assert norm.running_mean is buffer
    assert buffer.tolist() == [1.0, 1.0]
    layer.bias = None
    assert [name for name, _ in layer.named_parameters()] == ["weight"]


def test_train_and_eval_reach_all() -> None:
    net = Net().eval()
    assert not any(module.training for module in net.modules())
    assert net.train().rest[1]["a"].training


def test_to_dtype_device_and_backend(backend: str) -> None:
    net = Net().to(dtype="float16")
    assert {x.dtype.name for x in net.parameters()} == {"float16"}
    net.to(device="cpu", dtype="float32")
    other = other_than(backend)
    x = ops.random.normal((2, 3), seed=0)
    here = net.eval()(x).numpy()
    net.to_backend(other)
    assert {v.backend for v in (*net.parameters(), *net.buffers())} == {other}
    assert abs(net(x.to_backend(other)).numpy() - here).max() < 1e-5


def test_apply_visits_inner_modules_first() -> None:
    seen: list[str] = []
    nn.Sequential(layers.Dense(2, 2)).apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Dense", "Sequential"]


def test_hooks_see_and_change(backend: str) -> None:
    layer = layers.Dense(2, 2, bias=False, kernel_initializer="identity")
    x = ops.ones((1, 2))
    with layer.register_forward_pre_hook(lambda module, args: args[0] * 2.0):
        handle = layer.register_forward_hook(lambda module, args, output: output + args[0])
        assert layer(x).tolist() == [[4.0, 4.0]]
    assert layer(x).tolist() == [[2.0, 2.0]]
    handle.remove()
    handle.remove()
    assert layer(x).tolist() == [[1.0, 1.0]]
    assert "_hooks" not in vars(layer)


def test_repr_and_summary(backend: str) -> None:
    model = nn.Sequential(layers.Dense(4, 8, activation="relu"), layers.Dropout(0.1))
    assert repr(model) == (
        "Sequential(\n  (0): Dense(in_features=4, out_features=8, activation='relu')\n"
        "  (1): Dropout(rate=0.1)\n)"
    )
    model[0].freeze()
    text = str(model.summary((2, 4)))
    for part in ("Dense", "(2, 8)", "40", "40 parameters, 40 of them frozen"):
        assert part in text
    assert model.training
    assert [row.parameters for row in model.summary().rows] == [40, 40, 0]


def test_containers() -> None:
    stack = nn.ModuleList([nn.Identity()]).append(layers.Dropout(0.1))
    stack.insert(0, layers.Dropout(0.2))
    assert [type(module).__name__ for module in stack] == ["Dropout", "Identity", "Dropout"]
    assert len(stack[1:]) == 2
    stack[0] = nn.Identity()
    with pytest.raises(TypeError, match="ModuleList: expected a module, got"):
        stack.append(3)
    parts = nn.ModuleDict({"a": nn.Identity()})
    parts["b"] = layers.Dense(2, 2)
    assert [name for name, _ in parts.named_parameters()] == ["b.weight", "b.bias"]
    del parts["a"]
    assert list(parts) == ["b"]
    with pytest.raises(TypeError, match="without dots"):
        parts["a.b"] = nn.Identity()


def test_functional_call_leaves_the_module_alone(backend: str) -> None:
    net = Net()
    x = ops.random.normal((4, 3), seed=0)
    mean = net.norm.running_mean.tolist()
    out = nn.functional_call(net, {"scale": array([0.0])}, (x,))
    assert float(abs(out).max()) == 0.0
    assert net.scale.tolist() == [1.0]
    assert net.norm.running_mean.tolist() == mean
    with pytest.raises(ValueError, match="Net has no 'scal'; did you mean 'scale'"):
        nn.functional_call(net, {"scal": array([0.0])}, (x,))
    with pytest.raises(ValueError, match=r"'scale' has shape \(1,\)"):
        nn.functional_call(net, {"scale": ops.zeros(2)}, (x,))
    grad = ops.asarray(0.0)
    from ember_ml import autodiff

    grad = autodiff.grad(lambda scale: nn.functional_call(net, {"scale": scale}, (x,)).sum())(
        array([1.0])
    )
    assert abs(float(grad[0]) - float(nn.functional_call(net, {}, (x,)).sum())) < 1e-4


def test_value_and_grad_equals_torch(backend: str) -> None:
    net = Net()
    twin = torch.nn.ModuleDict(
        {
            "first": torch.nn.Linear(3, 4),
            "norm": torch.nn.BatchNorm1d(4),
            "second": torch.nn.Linear(4, 4),
            "third": torch.nn.Linear(4, 2),
        }
    )
    pairs = {"first": net.first, "norm": net.norm, "second": net.rest[0], "third": net.rest[1]["a"]}
    with torch.no_grad():
        for name, module in pairs.items():
            twin[name].weight.copy_(torch.tensor(module.weight.numpy()))
            twin[name].bias.copy_(torch.tensor(module.bias.numpy()))
    x = ops.random.normal((6, 3), seed=3)
    t = torch.tensor(x.numpy())
    loss = (twin["third"](torch.tanh(twin["second"](twin["norm"](twin["first"](t))))) ** 2).sum()
    loss.backward()
    (value, aux), grads = nn.value_and_grad(
        net, lambda x: ((net(x) ** 2).sum(), {"batch": x}), has_aux=True
    )(x)
    assert abs(float(value) - loss.item()) < 1e-4
    assert aux["batch"].shape == (6, 3)
    for name, path in (("first", "first"), ("norm", "norm"), ("third", "rest.1.a")):
        expected = twin[name].weight.grad.numpy()
        assert abs(grads[f"{path}.weight"].numpy() - expected).max() < 2e-4
    running = twin["norm"].running_var.numpy()
    assert abs(net.norm.running_variance.numpy() - running).max() < 1e-5


def test_inference_builds_no_graph() -> None:
    net = Net().to_backend("torch")
    out = net(ops.ones((2, 3)).to_backend("torch"))
    assert not out.native.requires_grad
    assert not any(p.native.requires_grad for p in net.parameters())


def test_deepcopy_is_independent(backend: str) -> None:
    net = Net()
    other = copy.deepcopy(net)
    other.scale.assign([7.0])
    assert net.scale.tolist() == [1.0]
    assert isinstance(other.norm.running_mean, nn.Buffer)
    assert [n for n, _ in other.named_parameters()] == NAMES


def test_a_hook_that_is_set_twice_is_taken_away_once() -> None:
    module, seen = nn.Identity(), []
    first = module.register_forward_hook(lambda *_: seen.append(1) and None)
    second = module.register_forward_hook(first.hook)
    first.remove()
    module(1)
    assert seen == [1]
    second.remove()
    module(1)
    assert seen == [1]


def test_names_that_run_together_are_refused() -> None:
    module = nn.Module()
    module.parts = {"a.b": nn.Parameter([1.0]), "a": {"b": nn.Parameter([2.0])}}
    with pytest.raises(ValueError, match=r"two variables are named 'parts.a.b'"):
        module.state_dict()


def test_a_buffer_stays_one_whatever_it_is_set_to(backend: str) -> None:
    module = nn.Module()
    module.count = nn.Buffer([0.0, 0.0])
    module.count = [1.0, 2.0]
    assert module.state_dict()["count"].tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="the buffer 'count' has shape"):
        module.count = 3.0
