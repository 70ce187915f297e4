"""Tests of attention against torch and transformers with the same weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ember_ml import nn, ops
from ember_ml._core import tree
from ember_ml.nn import states
from ember_ml.nn.layers.sequence_mixing.attention import (
    Attention,
    CausalAttention,
    CrossAttention,
    GroupedQueryAttention,
    MultiHeadAttention,
    MultiHeadSlidingWindowAttention,
    SelfAttention,
    SlidingWindowAttention,
)
from ember_ml.nn.tensor import array


def close(ours, theirs, tolerance: float = 2e-5) -> bool:
    return bool(np.abs(ours.numpy() - theirs.detach().numpy()).max() < tolerance)


def twins(layer: nn.Module) -> dict[str, torch.Tensor]:
    """Set random parameters and return them for torch."""
    for at, parameter in enumerate(layer.parameters()):
        parameter.assign(ops.random.normal(parameter.shape, 0.0, 0.3, seed=at))
    return {
        name: torch.tensor(parameter.numpy(), requires_grad=True)
        for name, parameter in layer.named_parameters()
    }


def turned(x: torch.Tensor, base: float = 1e4, factor: float = 1.0) -> torch.Tensor:
    """Apply rotary embeddings by complex numbers, pairing the two halves."""
    pairs = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * base ** (-torch.arange(pairs) / pairs) / factor
    z = torch.complex(x[..., :pairs], x[..., pairs:]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([z.real, z.imag], -1)


def normalized(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, weight.shape, weight, 1e-6)


def reference(layer: SelfAttention, p: dict[str, torch.Tensor], x: torch.Tensor, extra=None):
    """Compute self-attention with one mask."""
    size = layer.head_features
    sizes = [heads * size for heads in (layer.num_heads, *[layer.num_kv_heads] * 2)]
    q, k, v = F.linear(x, p["qkv.weight"], p.get("qkv.bias")).split(sizes, -1)
    if layer.qk_norm == "all":
        q, k = normalized(q, p["query_norm.weight"]), normalized(k, p["key_norm.weight"])
    q, k, v = (part.unflatten(-1, (-1, size)).transpose(1, 2) for part in (q, k, v))
    if layer.qk_norm == "head":
        q, k = normalized(q, p["query_norm.weight"]), normalized(k, p["key_norm.weight"])
    if layer.positions == "rope":
        turn = layer.rope_features
        factor = 1.0 if layer.rope_scaling is None else layer.rope_scaling.factor
        q, k = (
            torch.cat([turned(z[..., :turn], layer.rope_base, factor), z[..., turn:]], -1)
            for z in (q, k)
        )
    at = torch.arange(x.shape[1])
    back = at[:, None] - at
    seen = (back >= 0) | (not layer.is_causal)
    if layer.window is not None:
        seen = seen & (back.abs() <= layer.window)
    mask = torch.where(seen, 0.0, -math.inf)
    if layer.positions == "alibi":
        slopes = torch.tensor([2 ** (-8 * (h + 1) / layer.num_heads) for h in range(q.shape[1])])
        mask = mask - slopes[:, None, None] * back.abs()
    mask = mask if extra is None else mask + extra
    k, v = (z.repeat_interleave(layer.num_heads // layer.num_kv_heads, 1) for z in (k, v))
    scores = q @ k.transpose(-1, -2) * (size**-0.5 if layer.scale is None else layer.scale)
    if layer.softcap is not None:
        scores = layer.softcap * torch.tanh(scores / layer.softcap)
    y = torch.softmax(scores + mask, -1) @ v
    return F.linear(y.transpose(1, 2).flatten(2), p["out.weight"], p.get("out.bias"))


CASES = [
    lambda: SelfAttention(8),
    lambda: SelfAttention(8, 2, causal=False),
    lambda: SelfAttention(8, 2, causal=False, window=2),
    lambda: SelfAttention(8, 4, 2, bias=False, rope_base=50.0),
    lambda: SelfAttention(8, 4, positions="alibi"),
    lambda: SelfAttention(6, 2, positions="none"),
    lambda: MultiHeadAttention(32),
    lambda: CausalAttention(8, 2),
    lambda: GroupedQueryAttention(32, num_kv_heads=1),
    lambda: SlidingWindowAttention(8, 2, window=3),
    lambda: MultiHeadSlidingWindowAttention(32, window=1),
    lambda: SelfAttention(8, 4, 2, head_features=6, scale=0.3, out_bias=False),
    lambda: SelfAttention(8, 2, rope_features=2, softcap=0.5),
    lambda: SelfAttention(8, 4, 2, head_features=4, qk_norm="head", window=3),
    lambda: SelfAttention(8, 4, 2, qk_norm="all", rope_scaling={"type": "linear", "factor": 3.0}),
]


@pytest.mark.parametrize("make", CASES)
@pytest.mark.parametrize("length", [1, 9])
def test_values_and_gradients(make, length: int, backend: str) -> None:
    layer = make()
    p = twins(layer)
    x = ops.random.normal((2, length, layer.features), seed=5)
    out = layer(x)
    weights = ops.random.normal(out.shape, seed=6)
    expected = reference(layer, p, torch.tensor(x.numpy()))
    (expected * torch.tensor(weights.numpy())).sum().backward()
    assert close(out, expected)
    _, grads = nn.value_and_grad(layer, lambda: (layer(x) * weights).sum())()
    for name, grad in grads.items():
        assert close(grad, p[name].grad, 2e-4), name


@pytest.mark.parametrize("make", [CASES[0], CASES[4], *CASES[8:10], *CASES[11:]])
def test_steps_equal_the_whole(make, backend: str) -> None:
    layer = make()
    twins(layer)
    x = ops.random.normal((2, 9, layer.features), seed=5)
    y, state = layer.unroll(x)
    assert ops.allclose(y, layer(x), atol=1e-5)
    length = 9 if layer.window is None else layer.window
    assert state.keys.shape == (2, layer.num_kv_heads, length, layer.head_features)


def test_window_state_has_constant_size() -> None:
    layer = SlidingWindowAttention(8, 2, window=3)
    shapes = set()
    state = layer.initial_state(2)
    for _ in range(6):
        _, state = layer.step(ops.ones((2, 8)), state)
        shapes.add((state.keys.shape, state.values.shape))
    assert max(shapes) == ((2, 2, 3, 4), (2, 2, 3, 4))
    assert layer.state_size == 2 * 3 * 8


@pytest.mark.parametrize(
    ("layer", "pair_size"),
    [(GroupedQueryAttention(32, 16, 4), 2 * 8), (SelfAttention(32), 2 * 32)],
    ids=repr,
)
def test_state_without_window_grows_by_one_pair_per_position(
    layer: nn.Module, pair_size: int
) -> None:
    _, state = layer.unroll(ops.ones((3, 7, 32)))
    assert sum(part.size for part in state[:2]) == 3 * 7 * pair_size
    assert (layer.state_size, layer.state_per_token) == (0, pair_size)


@pytest.mark.parametrize("heads", [(4, 2), (4, 1), (4, 4)])
def test_llama(heads: tuple[int, int], backend: str) -> None:
    from transformers import LlamaConfig
    from transformers.models.llama import modeling_llama as llama

    config = LlamaConfig(
        hidden_size=32,
        num_attention_heads=heads[0],
        num_key_value_heads=heads[1],
        attn_implementation="sdpa",
    )
    theirs = llama.LlamaAttention(config, layer_idx=0)
    layer = GroupedQueryAttention(32, *heads, bias=False)
    names = (theirs.q_proj, theirs.k_proj, theirs.v_proj)
    layer.qkv.weight.assign(torch.cat([part.weight for part in names]).detach().numpy())
    layer.out.weight.assign(theirs.o_proj.weight.detach().numpy())
    x = ops.random.normal((2, 11, 32), seed=3)
    t = torch.tensor(x.numpy())
    turns = llama.LlamaRotaryEmbedding(config)(t, torch.arange(11)[None])
    assert close(layer(x), theirs(t, turns, None)[0])


@pytest.mark.parametrize("positions", ["rope", "alibi", "none"])
def test_masks(positions: str, backend: str) -> None:
    layer = SelfAttention(8, 2, positions=positions)
    p = twins(layer)
    x = ops.random.normal((3, 6, 8), seed=1)
    t = torch.tensor(x.numpy())
    rng = np.random.default_rng(0)
    padding = np.arange(6) < np.array([[6], [4], [1]])
    allowed = rng.random((3, 6, 6)) < 0.7
    allowed |= np.eye(6, dtype=bool)
    scores = rng.normal(size=(3, 2, 6, 6)).astype(np.float32)

    def numbers(mask: np.ndarray) -> torch.Tensor:
        return torch.where(torch.tensor(mask), 0.0, -math.inf)

    given = numbers(padding)[:, None, None]
    expected = reference(layer, p, t, given)
    real = padding[..., None]
    assert np.allclose(
        layer(x, array(padding)).numpy() * real, expected.detach().numpy() * real, atol=2e-5
    )
    expected = reference(layer, p, t, numbers(allowed)[:, None])
    assert close(layer(x, attention_mask=array(allowed)), expected)
    expected = reference(layer, p, t, torch.tensor(scores))
    assert close(layer(x, attention_mask=array(scores)), expected)
    expected = reference(layer, p, t, torch.tensor(scores) + given)
    both = layer(x, array(padding), array(scores)).numpy()
    assert np.allclose(both * real, expected.detach().numpy() * real, atol=2e-5)


def test_left_padding_does_not_change_outputs(backend: str) -> None:
    layer = MultiHeadAttention(32)
    x = ops.random.normal((1, 7, 32), seed=1)
    mask = array([[False, False, True, True, True, True, True]])
    padded = layer(x, mask)
    assert np.isfinite(padded.numpy()).all()
    assert ops.allclose(padded[:, 2:], layer(x[:, 2:]), atol=1e-5)


@pytest.mark.parametrize("context_features", [None, 6])
def test_cross_attention(context_features: int | None, backend: str) -> None:
    layer = CrossAttention(8, context_features, num_heads=2)
    p = twins(layer)
    width = context_features or 8
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True, kdim=width, vdim=width)
    weights = [p["query.weight"], *p["key_value.weight"].split(8)]
    state = {"in_proj_bias": torch.cat([p["query.bias"], p["key_value.bias"]])}
    if context_features:
        names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        state |= dict(zip(names, weights, strict=True))
    else:
        state["in_proj_weight"] = torch.cat(weights)
    state |= {"out_proj.weight": p["out.weight"], "out_proj.bias": p["out.bias"]}
    theirs.load_state_dict(state)
    x, context = ops.random.normal((2, 5, 8), seed=1), ops.random.normal((2, 7, width), seed=2)
    mask = np.arange(7) < np.array([[7], [4]])
    t, c = torch.tensor(x.numpy()), torch.tensor(context.numpy())
    assert close(layer(x, context=context), theirs(t, c, c)[0])
    expected = theirs(t, c, c, key_padding_mask=torch.tensor(~mask))[0]
    assert close(layer(x, array(mask), context), expected)
    memory = layer.read(context, array(mask))
    assert close(layer.look_up(x[:, 3:4], memory), expected[:, 3:4])


def test_cross_attention_without_context_is_self_attention(backend: str) -> None:
    layer = CrossAttention(8, num_heads=2)
    x = ops.random.normal((2, 5, 8), seed=1)
    assert ops.allclose(layer(x), layer(x, context=x))
    with pytest.raises(
        ValueError, match=r"CrossAttention: expected a context of shape \(batch, time, 8\)"
    ):
        layer(x, context=x[..., :4])
    with pytest.raises(ValueError, match=r"CrossAttention: expected a mask of shape \(2, 5\)"):
        layer(x, array(np.ones((2, 4), bool)))


def test_dropout_only_in_training(backend: str) -> None:
    layer = SelfAttention(8, 2, dropout=0.5)
    x = ops.random.normal((2, 9, 8), seed=1)
    plain = SelfAttention(8, 2)
    plain.load_state_dict(layer.state_dict())
    assert not ops.allclose(layer(x), plain(x), atol=1e-3)
    assert ops.allclose(layer.eval()(x), plain(x))


@pytest.mark.parametrize(
    "layer",
    [Attention, MultiHeadAttention, SlidingWindowAttention, MultiHeadSlidingWindowAttention],
)
def test_parameter_counts_of_mad(layer) -> None:
    assert layer(128).num_parameters() == 66_048


def test_defaults_of_mad() -> None:
    assert Attention is SelfAttention
    assert SlidingWindowAttention(128).window == 32
    assert MultiHeadSlidingWindowAttention(128).num_heads == 16
    assert GroupedQueryAttention(128).num_kv_heads == 4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SelfAttention(8, 3),
            r"SelfAttention: features \(8\) must be divisible by num_heads \(3\)",
        ),
        (lambda: MultiHeadAttention(8), r"MultiHeadAttention: features \(8\) must be divisible"),
        (
            lambda: GroupedQueryAttention(16, 4, 3),
            r"num_heads \(4\) must be divisible by num_kv_heads \(3\)",
        ),
        (lambda: SelfAttention(6, 2), r"features / num_heads = 6 / 2 = 3"),
        (lambda: SlidingWindowAttention(8, window=0), "window"),
        (lambda: SelfAttention(8, positions="learned"), "positions"),
        (
            lambda: CrossAttention(8, num_heads=3),
            r"CrossAttention: features \(8\) must be divisible",
        ),
        (lambda: SelfAttention(8, dropout=1.0), "dropout"),
        (lambda: SelfAttention(8, rope_features=10), "rope_features=10 of 8"),
        (lambda: SelfAttention(8, rope_scaling={"type": "spline"}), "spline"),
        (
            lambda: SelfAttention(
                8, window=2, rope_scaling={"type": "dynamic", "factor": 2.0, "original_length": 4}
            ),
            "depends on the length of the sequence, which attention with window=2",
        ),
        (
            lambda: SelfAttention(
                8,
                rope_scaling={
                    "type": "longrope",
                    "short_factors": [1.0] * 4,
                    "long_factors": [1.0],
                    "original_length": 4,
                },
            ),
            "LongRoPE: long_factors has 1 factors; 8 rotated features need 4",
        ),
    ],
)
def test_errors_name_layer_and_sizes(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_failed_extension_leaves_the_cache_valid(backend: str) -> None:
    layer, x = SelfAttention(8, 2), ops.random.normal((3, 6, 8), seed=0)
    _, state = layer(x[:, :4], state=layer.initial_state(3))
    state = states.reserve(state)
    extra = ops.ones((3, 2, 1, 4))
    with pytest.raises(Exception, match=r"."):  # whatever the framework raises
        state.append(extra, ops.ones((5, 7, 1, 4)))
    y, _ = layer(x[:, 4:], state=state)
    assert close(y, torch.tensor(layer(x)[:, 4:].numpy()))


def test_a_reserved_state_of_another_dtype(backend: str) -> None:
    layer, x = SelfAttention(8, 2), ops.random.normal((1, 6, 8), seed=0)
    _, state = layer(x[:, :4], state=layer.initial_state(1))
    half = tree.map_leaves(lambda part: part.astype("float16"), state)
    y, after = layer(x[:, 4:], state=states.reserve(half))
    assert y.dtype.name == after.keys.dtype.name == "float32"
    assert close(y, torch.tensor(layer(x)[:, 4:].numpy()), 1e-2)


def test_one_of_several_caches_extends_a_buffer(backend: str) -> None:
    layer, x = SelfAttention(8, 2), ops.random.normal((1, 6, 8), seed=0)
    _, state = layer(x[:, :4], state=layer.initial_state(1))
    state = states.reserve(state)
    assert not state.buffer.claim(state.values)
    assert state.buffer.claim(state.keys)  # as another thread that is about to write
    y, after = layer(x[:, 4:], state=state)
    assert after.buffer is not state.buffer
    assert close(y, torch.tensor(layer(x)[:, 4:].numpy()))


def test_non_causal_attention_has_no_step() -> None:
    with pytest.raises(NotImplementedError, match="SelfAttention with causal=False"):
        SelfAttention(8, causal=False).initial_state(1)


@pytest.mark.parametrize(
    "scaling",
    [
        {"type": "yarn", "factor": 4.0, "original_length": 4},
        {"type": "llama3", "factor": 4.0, "original_length": 64},
        {"type": "dynamic", "factor": 4.0, "original_length": 4},
    ],
)
def test_options_compile(scaling: dict[str, object], backend: str, trace) -> None:
    layer = SelfAttention(8, 2, rope_scaling=scaling, qk_norm="head", softcap=2.0, head_features=6)
    twins(layer)
    x = ops.random.normal((2, 9, 8), seed=5)
    assert ops.allclose(trace(lambda x: layer(x))(x), layer(x), atol=1e-5)
