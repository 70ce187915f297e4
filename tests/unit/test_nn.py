"""Ops for neural networks: errors, silence, tracing, and what the conformance rows do not reach."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ember_ml import ops, use_backend
from ember_ml._core.tensor import wrap
from tests.backends import eager


def some(*shape, dtype="float32"):
    return ops.array(np.random.default_rng(0).standard_normal(shape), dtype=dtype)


SHAPE_ERRORS = [
    lambda: ops.layer_norm(some(2, 4), some(3)),
    lambda: ops.layer_norm(some(2, 4), some(1)),
    lambda: ops.rms_norm(some(2, 4), some(2, 4)),
    lambda: ops.group_norm(some(2, 4), num_groups=3),
    lambda: ops.group_norm(some(2, 4), some(3), num_groups=2),
    lambda: ops.batch_norm(some(2, 4), some(3), some(3)),
    lambda: ops.instance_norm(some(2, 4)),
    lambda: ops.glu(some(2, 3)),
    lambda: ops.swiglu(some(2, 3)),
    lambda: ops.prelu(some(2, 3), some(2)),
    lambda: ops.mse_loss(some(4), some(4, 1)),
    lambda: ops.huber_loss(some(4), some(1)),
    lambda: ops.binary_cross_entropy_with_logits(some(4), some(1)),
    lambda: ops.cross_entropy(some(4, 3), ops.array([0, 1])),
    lambda: ops.cross_entropy(some(4, 3), some(4, 2)),
    lambda: ops.nll_loss(some(4, 3), ops.array([0, 1, 2, 0]), some(2)),
    lambda: ops.rope(some(2, 3)),
    lambda: ops.rotary_heads(some(2, 12), 1),
    lambda: ops.rotary_heads(some(2, 3, 9), 1),
    lambda: ops.rotary_heads(some(2, 3, 12), 0),
    lambda: ops.rotary_heads(some(2, 3, 12), 4, 0),
    lambda: ops.linear(some(2, 3), some(4, 2)),
    lambda: ops.scaled_dot_product_attention(some(3, 4, 8), some(2, 4, 8), some(2, 4, 8)),
    lambda: ops.scaled_dot_product_attention(some(1, 2, 4, 8), some(2, 4, 8), some(2, 4, 8)),
    lambda: ops.scaled_dot_product_attention(some(2, 4, 8), some(2, 4, 6), some(2, 4, 6)),
    lambda: ops.scaled_dot_product_attention(some(2, 4, 8), some(2, 4, 8), some(2, 3, 8)),
]
VALUE_ERRORS = [
    lambda: ops.mse_loss(some(3), some(3), reduction="total"),
    lambda: ops.cross_entropy(some(2, 3), ops.array([0, 1]), reduction="total"),
    lambda: ops.cross_entropy(some(2, 3), ops.array([0, 1]), label_smoothing=1.5),
    lambda: ops.huber_loss(some(3), some(3), delta=0.0),
    lambda: ops.dropout(some(3), -0.1),
    lambda: ops.dropout(some(3), 1.1, training=False),
    lambda: ops.scaled_dot_product_attention(some(2, 4), some(2, 4), some(2, 4), window=0),
    lambda: ops.scaled_dot_product_attention(some(2, 4), some(2, 4), some(2, 4), dropout=2.0),
    lambda: ops.alibi_bias(0, 3),
    lambda: ops.rotary_heads(some(2, 3, 12), 2, base=0.0),
    lambda: ops.rotary_heads(some(2, 3, 12), 2, frequencies=(1.0, 2.0)),
]
AXIS_ERRORS = [
    lambda: ops.softmax(some(2, 3), axis=2),
    lambda: ops.softmax(some(), axis=-1),
    lambda: ops.log_softmax(some(2, 3), axis=-3),
    lambda: ops.layer_norm(some(2, 3), axis=2),
    lambda: ops.layer_norm(some(2, 3), axis=-3),
    lambda: ops.rms_norm(some()),
    lambda: ops.glu(some(2, 4), axis=2),
    lambda: ops.cross_entropy(some(2, 3), ops.array([0, 1]), axis=2),
    lambda: ops.normalize(some(2, 3), axis=2),
    lambda: ops.cosine_similarity(some(2, 3), some(2, 3), axis=2),
    lambda: ops.batch_norm(some(2, 3), some(3), some(3), axis=2),
    lambda: ops.one_hot(ops.array([1, 2]), 3, axis=2),
]
TYPE_ERRORS = [
    lambda: ops.embedding(some(3, 2), ops.array([0.5])),
    lambda: ops.embedding(some(3, 2), ops.array([True])),
    lambda: ops.one_hot(some(3), 4),
    lambda: ops.softmax(ops.array([1j, 2j])),
    lambda: ops.relu(ops.array([1j])),
    lambda: ops.linear(some(2, 3), some(4, 3, dtype="float16")),
    lambda: ops.scaled_dot_product_attention(
        some(2, 4), some(2, 4, dtype="float16"), some(2, 4, dtype="float16")
    ),
]


@pytest.mark.parametrize("call", SHAPE_ERRORS + VALUE_ERRORS)
def test_value_errors(backend, call):
    with pytest.raises(ValueError, match=r"\w"):
        call()


@pytest.mark.parametrize("call", AXIS_ERRORS)
def test_axis_errors(backend, call):
    with pytest.raises(IndexError, match=r"\w"):
        call()


@pytest.mark.parametrize("call", TYPE_ERRORS)
def test_type_errors(backend, call):
    with pytest.raises(TypeError, match=r"\w"):
        call()


@pytest.mark.parametrize("backend", eager(), indirect=True)
@pytest.mark.parametrize("index", [3, -1])
def test_embedding_checks_index_tensors(backend, index):
    table = some(3, 2)
    with pytest.raises(IndexError):
        ops.embedding(table, ops.array([0, index]))
    with pytest.raises(IndexError):
        ops.cross_entropy(table, ops.array([0, 5, 1]))


@pytest.mark.parametrize("index", [3, -1])
@pytest.mark.parametrize("of_host", [list, np.array])
def test_indices_from_the_host_are_checked_on_every_backend(backend, index, of_host):
    table, places = some(3, 3), of_host([0, index, 1])
    for call in (ops.embedding, ops.nll_loss, ops.cross_entropy):
        with pytest.raises(IndexError, match=str(index)):
            call(table, places)
        call(table, of_host([0, 2, 1]))
    with pytest.raises(IndexError, match=str(index)):
        ops.cross_entropy(some(2, 3, 4), targets=of_host([[index] * 4] * 2), axis=1)


@pytest.mark.parametrize("ignored", [-100, 7])
def test_classes_to_ignore_may_be_out_of_range(backend, ignored):
    scores = some(3, 4)
    for call in (ops.nll_loss, ops.cross_entropy):
        got = call(scores, [1, ignored, 3], ignore_index=ignored)
        want = call(scores[np.array([0, 2])], [1, 3])
        np.testing.assert_allclose(got.item(), want.item(), rtol=1e-6)


def test_targets_may_be_lists_of_probabilities(backend):
    assert ops.cross_entropy(some(2, 3), [[0.0, 9.0, 0.0], [1.0, 0.0, 0.0]]).shape == ()


EXTREMES = [-np.inf, -1e30, -1e4, -100.0, 0.0, 100.0, 1e4, 1e30]
POINTWISE = (
    *("celu", "elu", "gelu", "hard_sigmoid", "hard_swish", "leaky_relu", "mish", "relu", "relu6"),
    *("selu", "silu", "softsign", "tanhshrink", "hardtanh", "hard_shrink", "soft_shrink"),
)


@pytest.mark.parametrize("name", POINTWISE)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_activations_are_silent_and_stable(backend, name, dtype):
    x = ops.array(EXTREMES[1:], dtype="float32").astype("float32")
    limit = 6e4 if dtype == "float16" else 1e30
    x = ops.astype(ops.clip(x, -limit, limit), dtype)
    out = getattr(ops, name)(x)
    assert out.dtype == dtype
    assert bool(ops.all(ops.isfinite(out)))


def test_rows_without_a_finite_score_are_silent(backend):
    nothing = ops.array([[-np.inf, -np.inf], [0.0, -np.inf]])
    assert np.isnan(ops.softmax(nothing).numpy()[0]).all()
    np.testing.assert_array_equal(ops.softmax(nothing).numpy()[1], [1.0, 0.0])
    assert np.isnan(ops.log_softmax(nothing).numpy()[0]).all()
    query = some(2, 4)
    out = ops.scaled_dot_product_attention(query, query, query, nothing)
    np.testing.assert_array_equal(out.numpy()[0], np.zeros(4))
    ignored = ops.array([-100, -100])
    assert np.isnan(ops.cross_entropy(some(2, 3), ignored).item())
    assert ops.cross_entropy(some(2, 3), ignored, reduction="sum").item() == 0
    certain = ops.array([0.0, 1.0])
    assert ops.binary_cross_entropy(certain, 1 - certain).item() == 100
    assert np.isnan(ops.mse_loss(ops.zeros((0,)), ops.zeros((0,))).item())


def test_attention_takes_keywords_lists_and_scalars(backend):
    query = some(2, 3, 4)
    same = ops.scaled_dot_product_attention(
        query, key=query, value=query, mask=[[True], [True], [True]]
    )
    np.testing.assert_allclose(
        same.numpy(), ops.scaled_dot_product_attention(query, query, query).numpy(), rtol=1e-6
    )


def test_causal_attention_in_parts(backend):
    query, key, value = (some(1, 2, 300, 8) for _ in range(3))
    for options in ({"causal": True}, {"causal": True, "window": 17}):
        want = ops.scaled_dot_product_attention(query, key, value, **options).numpy()
        parts = [
            ops.scaled_dot_product_attention(
                query[:, :, start : start + 100],
                key[:, :, : start + 100],
                value[:, :, : start + 100],
                **options,
            ).numpy()
            for start in range(0, 300, 100)
        ]
        np.testing.assert_allclose(np.concatenate(parts, 2), want, atol=2e-6)


def test_numpy_attention_blocks_agree(monkeypatch):
    from ember_ml.backend.numpy.ops.nn import attention

    with use_backend("numpy"):
        query, key = some(2, 4, 50, 8), some(2, 2, 70, 8)
        options = {"causal": True, "window": 33}
        whole = ops.scaled_dot_product_attention(query, key, key, **options).numpy()
        monkeypatch.setattr(attention, "_SCORES", 1)
        blocks = ops.scaled_dot_product_attention(query, key, key, **options).numpy()
    np.testing.assert_allclose(blocks, whole, atol=1e-6)


def test_attention_dropout_is_the_same_on_every_backend(backend):
    with use_backend("numpy"):
        data = some(2, 3, 5, 8).numpy()
        want = ops.scaled_dot_product_attention(data, data, data, causal=True, dropout=0.3, seed=5)
    x = ops.array(data)
    got = ops.scaled_dot_product_attention(x, x, x, causal=True, dropout=0.3, seed=5)
    np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-5)
    assert ops.scaled_dot_product_attention(x, x, x, dropout=0.3).shape == x.shape


def test_alibi(backend):
    bias = ops.alibi_bias(4, 2, 3)
    slopes = np.array([2**-2, 2**-4, 2**-6, 2**-8])[:, None, None]
    np.testing.assert_allclose(bias.numpy(), -slopes * np.array([[1, 0, 1], [2, 1, 0]]))
    assert ops.alibi_bias(6, 3, dtype="float16").dtype == "float16"
    six = ops.alibi_bias(6, 2).numpy()[:, 1, 0]
    np.testing.assert_allclose(-six, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3], rtol=1e-6)


def test_relative_positions_are_all_that_rope_tells(backend):
    query, key = (
        some(1, 6),
        ops.array(np.random.default_rng(1).standard_normal((1, 6)), dtype="float32"),
    )

    def product(at, there):
        turned = ops.rope(query, offset=at), ops.rope(key, offset=there)
        return ops.sum(turned[0] * turned[1]).item()

    assert abs(product(3, 1) - product(40, 38)) < 1e-4
    assert abs(product(3, 1) - product(3, 2)) > 1e-3


def test_small_things(backend):
    x = some(3, 4)
    np.testing.assert_allclose(ops.l2_normalize(x).numpy(), ops.normalize(x).numpy())
    assert ops.dropout(x, 0.5, training=False) is x
    assert ops.dropout(x, 0.0) is x
    assert ops.swish is ops.silu
    assert ops.hard_silu is ops.hard_swish
    assert ops.mae_loss is ops.l1_loss
    tanh = ops.gelu(x, approximate="tanh").numpy()
    np.testing.assert_array_equal(tanh, ops.gelu(x, approximate=True).numpy())
    np.testing.assert_array_equal(ops.gelu(x, approximate="none").numpy(), ops.gelu(x).numpy())


def network(x, table, weight):
    """Much of what a small transformer does."""
    h = ops.embedding(table, ops.argmax(x, axis=-1)) + ops.dropout(x, 0.1)
    heads = ops.permute_dims(ops.reshape(ops.linear(h, weight), (2, 5, 2, 4)), (0, 2, 1, 3))
    heads = ops.rope(heads, offset=2)
    mixed = ops.scaled_dot_product_attention(heads, heads, heads, causal=True, window=3)
    flat = ops.reshape(ops.permute_dims(mixed, (0, 2, 1, 3)), (2, 5, 8))
    flat = ops.layer_norm(ops.swiglu(ops.concat([flat, flat], axis=-1)))
    loss = ops.cross_entropy(flat, ops.argmax(x, axis=-1), label_smoothing=0.1)
    return loss + ops.mse_loss(ops.mish(flat), ops.softmax(x)) + ops.huber_loss(flat, x)


INPUTS = [
    np.random.default_rng(i).standard_normal(s).astype(np.float32)
    for i, s in enumerate([(2, 5, 8), (8, 8), (8, 8)])
]


def test_torch_compiles_it_in_one_graph():
    def run(*arrays):
        return network(*(wrap(array, "torch") for array in arrays)).native

    with use_backend("torch"):
        ops.softmax(ops.array([1.0]))
        arrays = [torch.from_numpy(array) for array in INPUTS]
        torch.manual_seed(0)
        want = run(*arrays)
        torch.manual_seed(0)
        got = torch.compile(run, fullgraph=True, backend="eager")(*arrays)
    torch.testing.assert_close(got, want)


def test_mlx_compiles_it():
    def run(*arrays):
        return network(*(wrap(array, "mlx") for array in arrays)).native

    with use_backend("mlx"):
        ops.softmax(ops.array([1.0]))
        arrays = [mx.array(array) for array in INPUTS]
        compiled = mx.compile(run, inputs=mx.random.state, outputs=mx.random.state)
        mx.random.seed(0)
        want = run(*arrays).item()
        mx.random.seed(0)
        assert abs(compiled(*arrays).item() - want) < 1e-5
        assert compiled(*arrays).item() != want  # the next draw drops others


def test_gradients_of_half_precision_attention():
    with use_backend("torch"):
        leaf = torch.randn(1, 2, 4, 8, dtype=torch.bfloat16, requires_grad=True)
        x = wrap(leaf, "torch")
        blind = ops.array([[False] * 4] + [[True] * 4] * 3)
        out = ops.scaled_dot_product_attention(x, x, x, blind).native
        (gradient,) = torch.autograd.grad(out.float().sum(), leaf)
    assert bool(torch.isfinite(gradient).all())
    assert out.dtype is torch.bfloat16


def test_mlx_gradient_of_a_blind_query_is_zero():
    with use_backend("mlx"):
        x = mx.array(INPUTS[0][:, None])
        for mask in (
            ops.array([[False] * 5] + [[True] * 5] * 4),
            ops.array([[-np.inf] * 5] + [[0.0] * 5] * 4),
        ):

            def total(query, mask=mask):
                keys = wrap(x, "mlx")
                return ops.scaled_dot_product_attention(
                    wrap(query, "mlx"), keys, keys, mask
                ).native.sum()

            gradient = np.array(mx.grad(total)(x))
            np.testing.assert_array_equal(gradient[:, :, 0], 0)
            assert np.isfinite(gradient).all()


def test_grouped_attention_equals_torch(backend):
    query, key = torch.randn(2, 4, 6, 8), torch.randn(2, 2, 6, 8)
    want = F.scaled_dot_product_attention(query, key, key, is_causal=True, enable_gqa=True).numpy()
    keys = ops.array(key.numpy())
    got = ops.scaled_dot_product_attention(ops.array(query.numpy()), keys, keys, causal=True)
    np.testing.assert_allclose(got.numpy(), want, atol=2e-6)
