"""Properties of every registered block, on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops, registry
from ember_ml.backend import available, use_backend
from ember_ml.configs import Config
from ember_ml.nn.blocks import Block, ParallelBlock, ResidualBlock
from ember_ml.nn.sequence_module import SequenceModule
from ember_ml.nn.tensor import array
from ember_ml.registry import Entry
from tests.conformance.test_layers import close
from tests.examples_of import config_of
from tests.robustness.scale import compile_each

BLOCKS = [entry for entry in registry.available("blocks") if not hasattr(entry.target, "role")]
"""Blocks with a role are parts of a wiring of theirs, and are tested with it."""
WITH_DROPOUT = [entry for entry in BLOCKS if "dropout" in entry.config.model_fields]
WITH_PLACEMENT = [entry for entry in BLOCKS if "placement" in entry.config.model_fields]
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "blocks/block": [
        {"layers": "gru mlp", "placement": "post", "norm": "layer_norm"},
        {"layers": [{"type": "mamba", "expand": 1}, "blocks/mlp"]},
        {"layers": "lstm geglu", "residual": False},
        {"layers": "gru mlp", "placement": "sandwich"},
        {"layers": "attention mlp", "placement": "output", "norm": "layer_norm"},
    ],
    "blocks/hybrid": [{"mixers": "gru attention", "arrangement": "striped"}],
    "blocks/hyena": [{"num_heads": 4, "max_length": 64, "channel_mixer": "none"}],
    "blocks/liquid": [
        {"cell": "ltc", "units": 20, "channel_mixer": "swiglu"},
        {"cell": "wired_cfc"},
        {"cell": "ltc", "wiring": {"type": "auto_ncp", "units": 24, "output_size": 6}},
    ],
    "blocks/lstm": [{"inner_size": 12, "num_layers": 2, "channel_mixer": "none"}],
    "blocks/mamba": [{"version": 2, "channel_mixer": ["mlp", "swiglu"]}],
    "blocks/mlp": [{"gated": True, "activation": "silu", "norm": "none"}],
    "blocks/moe": [{"mixer": "none", "expert": "mlp", "top_k": 1, "router": "sigmoid"}],
    "blocks/parallel_residual": [{"layers": "gru mlp lstm", "norm": "none"}],
    "blocks/residual": [
        {"layer": {"type": "layers/attention", "features": 32}, "placement": "post"}
    ],
    "blocks/rwkv": [{"version": 5, "num_heads": 2}],
    "blocks/transformer": [
        {"placement": "post", "norm": "layer_norm", "positions": "alibi", "bias": False},
        {"num_heads": 4, "num_kv_heads": 2, "window": 3, "gated": True, "activation": "silu"},
        {"causal": False, "positions": "none"},
    ],
}
"""Options that build a block otherwise than its defaults do."""
CASES = [
    pytest.param(entry, options, id=f"{entry.name}-{at}")
    for entry in BLOCKS
    for at, options in enumerate([{}, *VARIANTS.get(entry.name, [])])
]

of_each_case = pytest.mark.parametrize(("entry", "options"), CASES)
of_each_block = pytest.mark.parametrize("entry", BLOCKS, ids=lambda entry: entry.name)
of_each_with_dropout = pytest.mark.parametrize("entry", WITH_DROPOUT, ids=lambda entry: entry.name)


def config(entry: Entry, **options: Any) -> Config:
    return entry.config(**{**dict(config_of(entry)), **options})


def make(entry: Entry, **options: Any) -> Any:
    """Return the same block on every backend, in inference mode."""
    ops.random.set_seed(7)
    block = config(entry, **options).create().eval()
    for at, parameter in enumerate(block.parameters()):  # zeros hide mistakes
        noise = ops.random.normal(parameter.shape, 0.0, 0.1, seed=at)
        parameter.assign(parameter + noise)
    return block


def sequence(block: Any, batch: int, length: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((batch, length, block.features)).astype(np.float32)


def residuals(block: nn.Module) -> int:
    """Return the number of residual connections in the block."""
    return sum(isinstance(module, ResidualBlock) for module in block.modules())


@of_each_case
def test_values_and_gradients_agree_across_backends(entry: Entry, options: dict) -> None:
    found = []
    for backend in available():
        with use_backend(backend):
            block = make(entry, **options)
            x = array(sequence(block, 2, 5))
            out = block(x)
            assert out.backend == backend
            weights = array(np.cos(np.arange(out.size, dtype=np.float32)).reshape(out.shape))
            _, grads = nn.value_and_grad(block, lambda: (block(x) * weights).sum())()  # noqa: B023
            found.append((out.numpy(), {name: g.numpy() for name, g in grads.items()}))
    (out, grads), *others = found
    assert out.shape == (2, 5, block.features)
    assert set(grads) == {name for name, _ in block.named_parameters()}
    for other_out, other_grads in others:
        assert close(out, other_out)
        for name, grad in grads.items():
            scale = max(1.0, float(np.abs(grad).max()))
            assert close(grad / scale, other_grads[name] / scale, 5e-4), name


@of_each_case
def test_config_and_state_make_the_same_block(entry: Entry, options: dict, backend: str) -> None:
    block = make(entry, **options)
    x = array(sequence(block, 2, 5))
    assert block.config == config(entry, **options)
    twin = Config.from_yaml(block.config.to_yaml()).create().eval()
    assert type(twin) is type(block)
    assert repr(twin) == repr(block)
    twin.load_state_dict({name: value.numpy() for name, value in block.state_dict().items()})
    assert close(block(x).numpy(), twin(x).numpy(), 1e-6)


@compile_each(BLOCKS)
def test_it_compiles(entry: Entry, backend: str, trace) -> None:
    block = make(entry)
    x = array(sequence(block, 2, 5))
    compiled = trace(lambda x: block(x))
    assert close(compiled(x).numpy(), block(x).numpy())


@of_each_case
def test_steps_equal_the_whole(entry: Entry, options: dict, backend: str) -> None:
    block = make(entry, **options)
    x = array(sequence(block, 2, 9))
    if not block.is_causal:
        with pytest.raises(NotImplementedError, match="has no step"):
            block.initial_state(2)
        return
    out, state = block.unroll(x[:, :5])
    rest, _ = block.unroll(x[:, 5:], state)  # a state can be handed on
    assert close(np.concatenate([out.numpy(), rest.numpy()], axis=1), block(x).numpy(), 2e-4)


@of_each_case
def test_parts_of_padded_sequences_equal_each_alone(
    entry: Entry, options: dict, backend: str
) -> None:
    block = make(entry, **options)
    if not block.is_causal:
        pytest.skip("needs the whole sequence")
    x, lengths = sequence(block, 2, 9), [9, 5]
    mask = np.arange(9) < np.array(lengths)[:, None]
    state, outputs = block.initial_state(2), []
    for start in range(0, 9, 4):
        part = slice(start, start + 4)
        y, state = block(array(x[:, part]), array(mask[:, part]), state=state)
        outputs.append(y.numpy())
    whole = np.concatenate(outputs, axis=1)
    after, _ = block.step(array(x[:, 0]), state)
    for at, n in enumerate(lengths):
        longer = array(np.concatenate([x[at : at + 1, :n], x[at : at + 1, :1]], axis=1))
        expected = block(longer).numpy()[0]
        assert close(whole[at, :n], expected[:n], 3e-4)
        assert close(after.numpy()[at], expected[n], 3e-4)


@of_each_case
def test_the_future_does_not_matter(entry: Entry, options: dict, backend: str) -> None:
    block = make(entry, **options)
    x = sequence(block, 2, 11)
    changed = x.copy()
    changed[:, 7:] += 1.0
    before, after = block(array(x)).numpy(), block(array(changed)).numpy()
    assert close(before[:, :7], after[:, :7], 1e-5) is block.is_causal
    assert np.abs(before[:, 7:] - after[:, 7:]).max() > 1e-4


@of_each_case
def test_padding_does_not_matter(entry: Entry, options: dict, backend: str) -> None:
    block = make(entry, **options)
    x = sequence(block, 2, 9)
    mask = np.ones((2, 9), bool)
    mask[0, 6:] = False
    x[0, 6:] = 3.0
    padded = block(array(x), mask=array(mask)).numpy()
    assert close(padded[:1, :6], block(array(x[:1, :6])).numpy(), 2e-4)


@of_each_block
@pytest.mark.parametrize(("batch", "length"), [(2, 1), (1, 7), (2, 0)])
def test_shapes(entry: Entry, batch: int, length: int, backend: str) -> None:
    block = make(entry)
    out = block(array(sequence(block, batch, length)))
    assert out.shape == (batch, length, block.features)
    assert np.isfinite(out.numpy()).all()


@of_each_block
def test_wrong_inputs_name_the_block(entry: Entry, backend: str) -> None:
    block = make(entry)
    for shape in [(2, 5, block.features + 1), (block.features,)]:
        with pytest.raises(ValueError, match=type(block).__name__):
            block(ops.ones(shape))
    with pytest.raises(ValueError, match=type(block).__name__):
        block(ops.ones((2, 5, block.features)), ops.ones((2, 4)) > 0)


@pytest.mark.parametrize("entry", WITH_PLACEMENT, ids=lambda entry: entry.name)
def test_a_norm_stands_before_or_after(entry: Entry, backend: str) -> None:
    for placement in ("pre", "post"):
        block = config(entry, norm="layer_norm", placement=placement).create().eval()
        x = array(3.0 * sequence(block, 2, 5) + 2.0)
        out = block(x).numpy()
        is_normal = close(out.mean(axis=-1), np.zeros((2, 5)), 1e-3) and close(
            out.std(axis=-1), np.ones((2, 5)), 1e-2
        )
        assert is_normal is (placement == "post")


@of_each_with_dropout
@pytest.mark.parametrize("kind", ["dropout", "stochastic_depth"])
def test_what_is_dropped(entry: Entry, kind: str, backend: str) -> None:
    plain, block = make(entry), make(entry, **{kind: 0.5})
    count = residuals(block)
    x = np.repeat(sequence(block, 1, 2), 256, axis=0)
    assert close(block(array(x)).numpy(), plain(array(x)).numpy(), 1e-6)
    if not count:
        assert not block.config.model_dump().get("residual", True)
        return
    block.train()
    past = block(array(x)).numpy() == x
    if kind == "stochastic_depth":  # a layer is there for all of an example, or for nothing
        past = past.all(axis=(1, 2))
    share = 0.5**count
    assert abs(past.mean() - share) < 5 * np.sqrt(share / past.size)


@of_each_with_dropout
def test_gradients_flow_past_what_is_dropped(entry: Entry, backend: str) -> None:
    block = make(entry, dropout=0.3, stochastic_depth=0.3).train()
    x = array(sequence(block, 8, 4))
    _, grads = nn.value_and_grad(block, lambda: (block(x) ** 2).sum())()
    assert all(np.isfinite(g.numpy()).all() for g in grads.values())
    assert np.mean([bool(np.any(g.numpy())) for g in grads.values()]) > 0.8


@pytest.mark.parametrize("kind", ["dropout", "stochastic_depth"])
def test_the_mean_of_many_draws_is_the_whole(kind: str, backend: str) -> None:
    ops.random.set_seed(3)
    block = ResidualBlock(nn.layers.Dense(4, 4), 4, **{kind: 0.4})
    x = np.repeat(sequence(block, 1, 2), 8000, axis=0)
    drawn = block(array(x)).numpy()
    whole = block.eval()(array(x)).numpy()
    spread = np.abs(whole - x).max() * np.sqrt(0.4 / 0.6 / len(x))
    assert np.abs(drawn.mean(axis=0) - whole[0]).max() < 5 * spread
    kept = drawn != x
    assert close(drawn[kept] - x[kept], ((whole - x) / 0.6)[kept], 1e-5)


def test_steps_drop_in_training_too(backend: str) -> None:
    block = make(registry.get("blocks/lstm"), dropout=0.2, stochastic_depth=0.2).train()
    y, _ = block.step(array(sequence(block, 64, 1)[:, 0]), block.initial_state(64))
    assert y.shape == (64, block.features)


@pytest.mark.parametrize("placement", ["pre", "post", "output", "sandwich"])
def test_where_norms_are_applied(placement: str, backend: str) -> None:
    block = make(registry.get("blocks/residual"), placement=placement, layer="layers/swiglu")
    x = array(sequence(block, 2, 5))
    norm, layer = block.norm, block.layer
    expected = {
        "pre": lambda: x + layer(norm(x)),
        "post": lambda: norm(x + layer(x)),
        "output": lambda: x + norm(layer(x)),
        "sandwich": lambda: x + block.output_norm(layer(norm(x))),
    }[placement]()
    assert (block.output_norm is not None) is (placement == "sandwich")
    assert close(block(x).numpy(), expected.numpy(), 1e-6)


def test_layers_in_parallel_share_one_residual_connection(backend: str) -> None:
    block = ParallelBlock("", 8, "gru").add_layer("swiglu")
    x = array(sequence(block, 2, 5))
    first, second = block.layers
    expected = x + first.layer(first.norm(x)) + second.layer(second.norm(x))
    assert close(block(x).numpy(), expected.numpy(), 1e-5)
    twin = Config.from_yaml(block.config.to_yaml()).create()
    assert type(twin) is ParallelBlock
    twin.load_state_dict(block.state_dict())
    assert close(twin(x).numpy(), expected.numpy(), 1e-5)
    with pytest.raises(ValueError, match=r"without a residual connection.* not a Block"):
        block.add_layer(Block("", 8, "gru"))
    assert len(block.layers) == 2


def test_a_block_grows(backend: str) -> None:
    block = Block("mixer", 8, "gru").add_layer("swiglu").add_layer(nn.layers.Attention(8))
    twin = Config.from_yaml(block.config.to_yaml()).create()
    assert [type(layer) for layer in twin.layers] == [ResidualBlock] * 3
    twin.load_state_dict(block.state_dict())
    x = array(sequence(block, 2, 5))
    assert close(twin(x).numpy(), block(x).numpy(), 1e-6)
    larger = nn.blocks.TransformerBlock(8, 2).add_layer(nn.blocks.MLPBlock(8))
    assert len(larger.config.create().layers) == 3
    with pytest.raises(ValueError, match="2 states for 3 layers"):
        block.step(x[:, 0], block.initial_state(2)[:2])


def test_timespans_reach_the_layers_that_mind_them(backend: str) -> None:
    block = make(registry.get("blocks/hybrid"), mixers="cfc attention")
    assert block.uses_timespans
    x = array(sequence(block, 2, 5))
    quick, slow = (block(x, timespans=ops.ones((2, 5)) * span).numpy() for span in (0.1, 5.0))
    assert np.abs(quick - slow).max() > 1e-3
    y, _ = block.step(x[:, 0], block.initial_state(2), ops.ones((2, 1)) * 5.0)
    assert close(y.numpy(), slow[:, 0])
    assert isinstance(block, SequenceModule)
