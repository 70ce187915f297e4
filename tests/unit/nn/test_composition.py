"""Blocks and models put together in ways that are easily got wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.configs import ConfigError
from ember_ml.nn import layers, models
from ember_ml.nn.blocks import Block, GRUBlock, ResidualBlock
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.nn.tensor import array
from ember_ml.nn.wirings import GraphWiring


def test_a_layer_that_changes_the_width_has_no_sum() -> None:
    with pytest.raises(ValueError, match=r"Dense maps \(1, 2, 8\) to \(1, 2, 1\)"):
        Block("b", 8, [layers.Dense(8, 1)])(ops.ones((1, 2, 8)))
    with pytest.raises(ValueError, match=r"hidden_size=16 differs from that of GRUBlock, 32"):
        Block("b", 16, [GRUBlock(32)])


def test_layers_added_within_are_known_outside() -> None:
    inner = nn.Sequential(layers.SwiGLU(8))
    outer = ResidualBlock(inner, 8)
    assert not outer.uses_timespans
    inner.append(layers.CfC(8))
    assert outer.uses_timespans
    within = Block("i", 8, "gru")
    around = Block("o", 8, [within])
    within.add_layer({"type": "attention", "causal": False})
    assert not around.is_causal


def test_a_block_in_a_pattern_takes_the_models_width() -> None:
    model = models.LanguageModel([{"type": "blocks/block", "layers": "gru swiglu"}], 8, 16)
    assert model(array([[1, 2, 3]])).shape == (1, 3, 8)


def test_streams_side_by_side_leave_the_mode_alone() -> None:
    model = models.LanguageModel("gru", 8, 16, dropout=0.5).train()
    first, second = model.stream([1, 2], 5), model.stream([2], 5)
    next(first), next(second)
    assert model.training
    first.close()
    rest = [int(token[0]) for token in second]
    assert model.training
    assert rest == model.generate([2], 5).tolist()[2:]


def test_a_forecast_has_no_dropout() -> None:
    model = models.Forecaster("gru swiglu", hidden_size=8, dropout=0.5).train()
    x = ops.random.normal((2, 6, 1), seed=0)
    assert model.forecast(x, 3).tolist() == model.forecast(x, 3).tolist()


def test_top_k_of_equal_logits_is_one_token() -> None:
    sampler = models.sampling.Sampler(1.0, top_k=1, seed=0)
    assert len({int(sampler(ops.zeros((1, 8)))[0]) for _ in range(20)}) == 1


def test_a_module_in_two_places_is_loaded_into_one(tmp_path: Path) -> None:
    shared = layers.Dense(8, 8)
    model = nn.Sequential(shared, shared)
    ember_ml.save(model, tmp_path / "model")
    with pytest.raises(CheckpointError, match="in two places"):
        ember_ml.load(tmp_path / "model")
    other = layers.Dense(8, 8)
    twin = ember_ml.load(tmp_path / "model", into=nn.Sequential(other, other))
    x = ops.ones((1, 8))
    assert twin(x).tolist() == model(x).tolist()


@pytest.mark.parametrize("pattern", ["gru[type=swiglu]", "gru[=3]", "gru*0 swiglu", "(gru)x0"])
def test_patterns_that_say_something_else(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"option|repeats zero times"):
        models.LanguageModel(pattern, 8, 16)


def test_tokens_looked_back_at(backend: str) -> None:
    graph = GraphWiring()
    graph.add_block(layers.Embedding(6, 4), "now").add_block(layers.Embedding(6, 4), "before")
    graph.add_block(layers.Dense(4, 3), "out")
    graph.connect("input", "now").connect("input", "before", delayed=True)
    graph.connect("now", "out").connect("before", "out")
    tokens = array([[1, 2, 3], [4, 5, 0]])
    whole = graph(tokens)
    state = graph.initial_state(2)
    for at in range(3):
        y, state = graph.step(tokens[:, at], state)
        assert float(ops.max(ops.abs(y - whole[:, at]))) < 1e-6


def test_a_row_of_padding_has_no_most() -> None:
    model = models.SequenceClassifier("gru", 3, in_features=2, hidden_size=8, pooling="max")
    out = model(ops.ones((2, 4, 2)), array([[True] * 4, [False] * 4]))
    assert bool(ops.all(ops.isfinite(out)))
