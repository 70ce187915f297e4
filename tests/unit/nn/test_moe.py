"""Tests of mixtures of experts against Mixtral and a NumPy loop, and of blocks against groups."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from transformers import MixtralConfig
from transformers.models.mixtral import modeling_mixtral as mixtral

from ember_ml import autodiff, nn, ops, registry
from ember_ml.backend import available, use_backend
from ember_ml.configs import Config
from ember_ml.nn.auxiliary_losses import reported_losses
from ember_ml.nn.layers.channel_mixing.experts import balance_loss, z_loss
from ember_ml.nn.layers.channel_mixing.experts.dispatch import (
    _run_blocks,
    _run_groups,
    combine,
    group_by_expert,
)
from ember_ml.nn.layers.channel_mixing.experts.mixture import Mixture
from ember_ml.nn.layers.channel_mixing.moe import MoE, MoEMLP
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer
from tests.backends import has_dtype


def close(ours, theirs, tolerance: float = 2e-4) -> bool:
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    return ours.shape == theirs.shape and np.allclose(ours, theirs, tolerance, tolerance)


def spread(layer: nn.Module) -> nn.Module:
    """Set weights that are large enough for the experts to differ."""
    for at, (name, parameter) in enumerate(layer.named_parameters()):
        scale = 1.0 if "router" in name else 0.5
        parameter.assign(ops.random.normal(parameter.shape, 0.0, scale, seed=at))
    return layer


def tokens(*shape: int, seed: int = 100):
    return ops.random.normal(shape, seed=seed)


def values(layer: nn.Module) -> dict[str, np.ndarray]:
    return {name: x.numpy().astype(np.float64) for name, x in layer.named_parameters()}


def test_matches_mixtral(backend: str) -> None:
    layer = spread(MoE(6, num_experts=5, top_k=2, inner_features=7))
    config = MixtralConfig(
        hidden_size=6, intermediate_size=7, num_local_experts=5, num_experts_per_tok=2
    )
    config._experts_implementation = "eager"
    twin = mixtral.MixtralSparseMoeBlock(config)
    with torch.no_grad():
        twin.gate.weight.copy_(torch.tensor(layer.router.weight.numpy()))
        twin.experts.gate_up_proj.copy_(torch.tensor(layer.experts.expand.numpy()))
        twin.experts.down_proj.copy_(torch.tensor(layer.experts.reduce.numpy()))
    x, weights = tokens(3, 11, 6), tokens(3, 11, 6, seed=101)
    t = torch.tensor(x.numpy(), requires_grad=True)
    expected = twin(t)
    (expected * torch.tensor(weights.numpy())).sum().backward()
    assert close(layer(x).numpy(), expected.detach().numpy())
    _, grads = nn.value_and_grad(layer, lambda: (layer(x) * weights).sum())()
    assert close(grads["router.weight"].numpy(), twin.gate.weight.grad.numpy(), 1e-3)
    assert close(grads["experts.expand"].numpy(), twin.experts.gate_up_proj.grad.numpy(), 1e-3)
    assert close(grads["experts.reduce"].numpy(), twin.experts.down_proj.grad.numpy(), 1e-3)
    of_x = autodiff.grad(lambda x: (layer(x) * weights).sum())(x)
    assert close(of_x.numpy(), t.grad.numpy(), 1e-3)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def choices(router: str, logits: np.ndarray, k: int, p: float) -> list[list[tuple[int, float]]]:
    """Return the experts of each token and their weights, best first."""
    shares = 1 / (1 + np.exp(-logits)) if router == "sigmoid" else softmax(logits)
    chosen = []
    for row in shares:
        order = list(np.argsort(-row))
        if router == "top_p":
            taken = 1
            while sum(row[e] for e in order[:taken]) < p:
                taken += 1
            order = order[:taken]
        else:
            order = order[:k]
        total = sum(row[e] for e in order) if k > 1 else 1.0
        chosen.append([(e, row[e] / total) for e in order])
    return chosen


def expert_outputs(kind: str, p: dict[str, np.ndarray], expert: int, x: np.ndarray) -> np.ndarray:
    inner = torch.tensor(p["experts.expand"][expert] @ x)
    if kind == "mlp":
        inner = F.gelu(inner, approximate="tanh")
    else:
        gate, value = inner.chunk(2)
        phi = {"glu": torch.sigmoid, "swiglu": F.silu, "geglu": F.gelu, "reglu": F.relu}[kind]
        inner = phi(gate) * value
    return p["experts.reduce"][expert] @ inner.numpy()


def reference(
    layer: MoE, x: np.ndarray, *, capacity: int | None = None, pass_dropped: bool = False
) -> np.ndarray:
    """Compute the layer token by token, (tokens, choices, features)."""
    p, c = values(layer), layer.config
    chosen = choices(c.router, x @ p["router.weight"].T, c.top_k, c.top_p)
    out = np.zeros((len(x), layer.router.choices, c.features))
    used = dict.fromkeys(range(c.num_experts), 0)
    for place in range(layer.router.choices):
        for token, row in enumerate(chosen):
            if place >= len(row):
                continue
            expert, weight = row[place]
            used[expert] += 1
            if capacity is None or used[expert] <= capacity:
                out[token, place] = weight * expert_outputs(c.expert, p, expert, x[token])
            elif pass_dropped:
                out[token, place] = weight * x[token]
    return out


@pytest.mark.parametrize("kind", ["mlp", "glu", "swiglu", "geglu", "reglu"])
def test_experts(kind: str, backend: str) -> None:
    layer = spread(MoE(5, num_experts=3, expert=kind, inner_features=4))
    x = tokens(13, 5)
    assert close(layer(x).numpy(), reference(layer, x.numpy()).sum(1))


@pytest.mark.parametrize("top_k", [1, 2, 4])
@pytest.mark.parametrize("router", ["softmax", "sigmoid", "noisy", "top_p"])
def test_routers(router: str, top_k: int, backend: str) -> None:
    layer = spread(MoE(5, num_experts=4, top_k=top_k, router=router, inner_features=4)).eval()
    x = tokens(2, 9, 5)
    expected = reference(layer, x.numpy().reshape(18, 5)).sum(1)
    assert close(layer(x).numpy(), expected.reshape(2, 9, 5))


def test_expert_choice(backend: str) -> None:
    layer = spread(MoE(5, num_experts=4, router="expert_choice", inner_features=4))
    x = tokens(2, 9, 5)
    flat, p = x.numpy().reshape(18, 5), values(layer)
    shares = softmax(flat @ p["router.weight"].T)
    expected = np.zeros_like(flat)
    for expert in range(4):
        for token in np.argsort(-shares[:, expert])[: 2 * 18 // 4]:
            out = expert_outputs("swiglu", p, expert, flat[token])
            expected[token] += shares[token, expert] * out
    assert close(layer(x).numpy(), expected.reshape(2, 9, 5))
    assert close(layer.statistics(x).load.numpy(), [0.25] * 4)


@pytest.mark.parametrize("overflow", ["drop", "pass"])
@pytest.mark.parametrize("combiner", ["sum", "concat"])
def test_capacity(combiner: str, overflow: str, backend: str) -> None:
    options = {"capacity_factor": 0.6, "overflow": overflow, "combiner": combiner}
    layer = spread(MoE(5, num_experts=4, inner_features=4, **options))
    x = tokens(15, 5)
    capacity = 5  # 0.6 * 2 * 15 / 4, rounded up
    parts = reference(layer, x.numpy(), capacity=capacity, pass_dropped=overflow == "pass")
    lost = float(layer.statistics(x).lost)
    assert lost > 0
    if combiner == "sum":
        assert close(layer(x).numpy(), parts.sum(1))
    else:
        assert close(layer(x).numpy(), parts.reshape(15, -1) @ values(layer)["combiner.weight"].T)


@pytest.mark.parametrize("router", ["top_p", "expert_choice"])
def test_concat_with_varying_number_of_experts(router, backend: str) -> None:
    layer = spread(MoE(5, num_experts=3, router=router, combiner="concat", inner_features=4))
    total = spread(MoE(5, num_experts=3, router=router, inner_features=4))
    layer.combiner.weight.assign(ops.tile(ops.eye(5), (1, 3)))  # equivalent to the sum
    x = tokens(7, 5)
    assert close(layer(x).numpy(), total(x).numpy())


def test_moe_mlp_of_mad(backend: str) -> None:
    assert round(MoEMLP(128).num_parameters(), -3) == 165_000
    layer = spread(MoEMLP(6, num_experts=4, inner_features=3))
    x = tokens(11, 6)
    p = {name: torch.tensor(value) for name, value in values(layer).items()}
    t = torch.tensor(x.numpy().astype(np.float64))
    gate, value = F.linear(t, p["expand.weight"]).chunk(2, -1)
    z = torch.einsum("td,eod->teo", F.gelu(gate, approximate="tanh") * value, p["experts.weight"])
    logits = F.linear(t, p["router.weight"], p["router.bias"])
    least = logits.topk(2).values[:, -1:]
    shares = torch.where(logits < least, -torch.inf, logits).softmax(-1)
    assert close(layer(x).numpy(), (z * shares[..., None]).sum(1).numpy())


@pytest.mark.parametrize("capacity", [None, 3])
@pytest.mark.parametrize("count", [1, 2, 63, 200])
def test_blocks_equal_groups(count: int, capacity: int | None, backend: str) -> None:
    layer = spread(MoE(5, num_experts=4, top_k=3, router="top_p", inner_features=4))
    x, weights = tokens(count, 5), tokens(count, 5, seed=102)

    def run(way):
        def loss(x):
            routing = layer.router(x)
            groups = group_by_expert(routing, capacity)
            work = way(layer.experts, (x,), routing, groups)
            return (combine(x, routing, work)[:, 0] * weights).sum()

        return autodiff.value_and_grad(loss)(x)

    by_groups = run(_run_groups)
    by_blocks = run(lambda *args: _run_blocks(*args, capacity))
    for ours, theirs in zip(by_groups, by_blocks, strict=True):
        assert close(ours.numpy(), theirs.numpy(), 1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"router": "top_p", "combiner": "concat"},
        {"expert": "dense"},
        {"expert": "dense", "capacity_factor": 0.5, "overflow": "pass"},
        {"router": "expert_choice"},
    ],
)
def test_compiled_matches_eager(options, backend: str, trace) -> None:
    layer = spread(MoE(5, num_experts=4, **options)).eval()
    x = tokens(2, 9, 5)
    compiled = trace(lambda x: layer(x))
    assert close(compiled(x).numpy(), layer(x).numpy())


class Counted(nn.Module):
    """Expert that records the number of rows it processed."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def forward(self, x):
        self.calls.append(x.shape[0])
        return x * 2.0


def test_only_the_chosen_experts_run(backend: str) -> None:
    layer = MoE(4, num_experts=4, expert="dense")
    layer.experts.layers = [Counted() for _ in range(4)]
    layer.router.weight.assign(ops.zeros((4, 4)))
    layer.router.weight.assign(array([[0.0] * 4, [1.0] * 4, [0.0] * 4, [2.0] * 4]) - 1.0)
    x = ops.abs(tokens(6, 4))
    assert close(layer(x).numpy(), 2.0 * x.numpy())
    assert [expert.calls for expert in layer.experts.layers] == [[], [6], [], [6]]


def test_any_layer_can_be_an_expert(backend: str) -> None:
    layer = spread(MoE(5, num_experts=3, expert={"type": "mlp", "hidden_features": [7]}))
    assert layer.config.expert.in_features == 5
    twin = spread(MoE(5, num_experts=3, expert="layers/dense"))
    assert twin.config.expert.out_features == 5
    x = tokens(8, 5)
    for moe in (layer, twin):
        chosen = choices("softmax", x.numpy() @ moe.router.weight.numpy().T, 2, 0.0)
        expected = [
            sum(weight * moe.experts.layers[expert](row).numpy() for expert, weight in pairs)
            for row, pairs in zip(x, chosen, strict=True)
        ]
        assert close(moe(x).numpy(), expected)
        again = Config.from_yaml(moe.config.to_yaml())
        assert again == moe.config
        assert again.create().load_state_dict(moe.state_dict())(x).shape == (8, 5)


def test_experts_that_mix_positions_get_whole_sequences(backend: str) -> None:
    from ember_ml.nn.layers.sequence_mixing import attention  # noqa: F401

    layer = spread(MoE(4, num_experts=3, expert="attention"))
    assert layer.by_sequence
    x = tokens(5, 6, 4)
    mask = np.ones((5, 6), bool)
    mask[0, 4:] = False
    out = layer(x, array(mask)).numpy()
    alone = layer(x[:1, :4]).numpy()
    assert close(out[:1, :4], alone)
    logits = x[1].numpy().mean(0) @ layer.router.weight.numpy().T
    [pairs] = choices("softmax", logits[None], 2, 0.0)
    expected = sum(w * layer.experts.layers[expert](x[1:2]).numpy() for expert, w in pairs)
    assert close(out[1:2], expected)
    with pytest.raises(ValueError, match=r"MoE: the experts mix positions.*\(5, 4\)"):
        layer(x[:, 0])


def test_padding_uses_no_capacity(backend: str) -> None:
    layer = spread(MoE(5, num_experts=4, capacity_factor=0.6))
    x = tokens(2, 6, 5)
    mask = np.ones((2, 6), bool)
    mask[0, :] = False
    out = layer(x, array(mask)).numpy()
    assert (out[0] == 0).all()
    assert close(out[1], reference(layer, x[1].numpy(), capacity=4).sum(1))
    statistics = layer.statistics(x, array(mask))
    assert float(statistics.lost) < float(layer.statistics(x).lost)
    assert float(statistics.experts_per_item) == 2.0
    with pytest.raises(ValueError, match=r"MoE: expected a mask of shape \(2, 6\), got \(2, 5\)"):
        layer(x, array(mask[:, :5]))


def test_all_padding_returns_zeros(backend: str) -> None:
    layer = MoE(4, num_experts=3)
    assert (layer(tokens(2, 3, 4), array(np.zeros((2, 3), bool))).numpy() == 0).all()
    assert layer(ops.ones((0, 3, 4))).shape == (0, 3, 4)


def test_noise_only_in_training(backend: str) -> None:
    layer = spread(MoE(5, num_experts=4, router="noisy"))
    x = tokens(30, 5)
    first, second = layer(x).numpy(), layer(x).numpy()
    assert not close(first, second)
    layer.eval()
    assert np.array_equal(layer(x).numpy(), layer(x).numpy())


def test_auxiliary_losses(backend: str) -> None:
    layer = spread(MoE(5, num_experts=4))
    x = tokens(2, 9, 5)
    mask = np.ones((2, 9), bool)
    mask[1, 5:] = False
    logits = torch.tensor(x.numpy().reshape(18, 5)) @ torch.tensor(layer.router.weight.numpy()).T
    flat = ops.reshape(x, (18, 5))
    for given in (None, mask):
        real = None if given is None else array(given.reshape(18))
        routing = layer.router(flat, real)
        theirs = None if given is None else torch.tensor(given)
        expected = mixtral.load_balancing_loss_func((logits,), 4, 2, theirs) / 2
        assert close(balance_loss(routing, real).numpy(), expected.numpy())
        rows = logits if given is None else logits[torch.tensor(given.reshape(18))]
        assert close(z_loss(routing, real).numpy(), (rows.logsumexp(-1) ** 2).mean().numpy())


def test_losses_are_reported_only_in_training(backend: str) -> None:
    layer = spread(MoE(5, num_experts=4, balance_weight=0.5, z_weight=0.25))
    x = tokens(9, 5)
    with reported_losses() as losses:
        layer(x)
    routing = layer.router(x)
    expected = 0.5 * float(balance_loss(routing)), 0.25 * float(z_loss(routing))
    assert close([float(loss) for loss in losses], expected)
    with reported_losses() as outer:
        with reported_losses() as inner:
            layer(x)
        layer.eval()(x)
    assert (len(outer), len(inner)) == (0, 2)
    quiet = MoE(5, num_experts=4, router="expert_choice", z_weight=0.0)
    with reported_losses() as losses:
        quiet(x)
    assert losses == []


def test_losses_are_reported_while_compiling(backend: str, trace) -> None:
    layer = spread(MoE(5, num_experts=4))
    x = tokens(9, 5)

    def loss(x):
        with reported_losses() as losses:
            out = layer(x)
        return (out**2).mean() + losses[0] + losses[1]

    compiled = trace(loss)
    for seed in range(2):
        x = tokens(9, 5, seed=seed)
        assert close(compiled(x).numpy(), loss(x).numpy())


def train(weight: float) -> tuple[list[float], Mixture, float]:
    """Train a mixture whose router initially prefers one expert; return its first loss."""
    ops.random.set_seed(3)
    options = {"balance_weight": weight, "z_weight": 0.0, "capacity_factor": 1.5}
    model = MoE(4, num_experts=4, top_k=1, expert="mlp", inner_features=8, **options)
    model.router.weight.assign(ops.concat([ops.ones((1, 4)), model.router.weight[1:]]))
    x = np.abs(np.random.default_rng(0).standard_normal((32, 4))).astype(np.float32)
    batch = array(x), array(np.tanh(x[:, ::-1]).copy())
    aside = weight * float(balance_loss(model.router(batch[0])))
    first = float(((model(batch[0]) - batch[1]) ** 2).mean()) + aside
    trainer = Trainer(model, "mse", optimizer="adam", learning_rate=0.03, progress=False)
    losses = [trainer.train_step(batch)["loss"] for _ in range(25)]
    bare = float(((model(batch[0]) - batch[1]) ** 2).mean())
    assert abs(trainer.evaluate(batch)["loss"] - bare) < 1e-5
    return losses, model, first


def test_trainer_adds_auxiliary_losses() -> None:
    curves = []
    for backend in available():
        with use_backend(backend):
            x = array(np.abs(np.random.default_rng(0).standard_normal((32, 4))).astype(np.float32))
            losses, model, first = train(1.0)
            curves.append(losses)
            assert abs(losses[0] - first) < 1e-4
            assert losses[-1] < losses[0]
            if backend == "torch":  # the loss balances the experts
                _, idle, _ = train(0.0)
                assert model.statistics(x).load.numpy().max() < 0.6
                assert idle.statistics(x).load.numpy().max() > 0.9
    for curve in curves[1:]:
        assert close(curve[:5], curves[0][:5], 1e-3)


def test_bfloat16(backend: str) -> None:
    if not has_dtype(backend, "bfloat16"):
        pytest.skip("the backend has no bfloat16")
    layer = spread(MoE(8, num_experts=4))
    x = tokens(20, 8)
    expected = layer(x).numpy()
    out = layer.to(dtype="bfloat16")(x.astype("bfloat16"))
    assert out.dtype.name == "bfloat16"
    far = np.abs(out.astype("float32").numpy() - expected).max(1) > 0.1 * np.abs(expected).max()
    assert far.sum() <= 1  # a token near a decision boundary may change its expert


def test_names() -> None:
    assert type(registry.create("layers/moe-mlp", 8)) is MoEMLP
    assert type(registry.create("layers/mixture_of_experts", 8)) is MoE


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MoE(8, num_experts=4, top_k=5),
            "MoE: top_k \\(5\\) must not exceed num_experts \\(4\\)",
        ),
        (
            lambda: MoEMLP(8, num_experts=1),
            "MoEMLP: top_k \\(2\\) must not exceed num_experts \\(1\\)",
        ),
        (lambda: MoE(8, router="soft"), "MoE.*router"),
        (lambda: MoE(8, expert="dens"), "MoE.*expert.*did you mean 'dense'"),
        (lambda: MoE(8, expert={"type": "dense", "features": 3}), "MoE.*expert.*features"),
        (lambda: MoE(8, capacity_factor=0.0), "MoE.*capacity_factor"),
        (lambda: MoE(8, top_p=1.5), "MoE.*top_p"),
        (lambda: MoE(8)(ops.ones((2, 7))), r"MoE: expected 8 features.*\(2, 7\)"),
    ],
)
def test_errors_name_the_layer(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
