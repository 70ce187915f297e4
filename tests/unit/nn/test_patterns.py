"""Patterns of layers: their expansion, and the errors of invalid ones."""

from __future__ import annotations

from typing import Any

import pytest

from ember_ml import nn
from ember_ml.configs import Config, ConfigError
from ember_ml.configs.blocks import BlockConfig
from ember_ml.configs.models import LanguageModelConfig
from ember_ml.configs.patterns import entry_of, expand, items_of, sized, width_of


@pytest.mark.parametrize(
    ("pattern", "layers"),
    [
        ("mamba", ["mamba"]),
        ("mamba swiglu", ["mamba", "swiglu"]),
        ("mamba+swiglu, gru", ["mamba", "swiglu", "gru"]),
        ("mamba*3", ["mamba"] * 3),
        ("(mamba swiglu)x2 gru", ["mamba", "swiglu"] * 2 + ["gru"]),
        ("(mamba)*2(gru)x2", ["mamba"] * 2 + ["gru"] * 2),
        ("((a b)x2 c) x 2", ["a", "b", "a", "b", "c"] * 2),
        ("(a (b)x2)", ["a", "b", "b"]),
        ("  layers/mamba\n blocks/mh-attention ", ["layers/mamba", "blocks/mh-attention"]),
        ("a[n=4]", [{"type": "a", "n": 4}]),
        ("a[n=4, s=rope,f=0.5,t=true, none=null]*2 b[]",
         [{"type": "a", "n": 4, "s": "rope", "f": 0.5, "t": True, "none": None}] * 2
         + [{"type": "b"}]),
    ],
)  # fmt: skip
def test_a_pattern_is_a_list(pattern: str, layers: list) -> None:
    assert expand(pattern) == layers


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "pattern is empty"),
        ("  ", "pattern is empty"),
        ("(mamba)x0", "repeats zero times"),
        ("()", "the group at 0 is empty"),
        ("gru (  )x2", "the group at 4 is empty"),
        ("attention+", r"'\+' at 9 must stand between two layers"),
        ("+attention", r"'\+' at 0 must stand"),
        ("attention ++ swiglu", r"'\+' at 10 must stand"),
        ("(attention+)x2", r"'\+' at 10 must stand"),
        ("(,attention)x2", "',' at 1 must stand"),
        ("attention, , swiglu", "',' at 9 must stand"),
        ("+", r"'\+' at 0 must stand"),
        ("(mamba", r"a \( has no matching"),
        ("(mamba (gru)x2", r"a \( has no matching"),
        ("mamba)", r"the \) at 5 has no matching"),
        ("mamba 3x", "'3x' at 6 is not the name of a layer"),
        ("mamba[n=4", "is not the name of a layer"),
        ("mamba *2", r"'\*2' at 6 is not the name"),
        ("mamba[4]", "an option must be key=value, not '4'"),
        ("mamba[n=[}]", "n"),
    ],
)
def test_invalid_patterns(pattern: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        expand(pattern)
    assert len(str(error.value)) < 300


def test_lists_hold_patterns_and_all_else() -> None:
    layer = nn.layers.Dense(4, 4)
    assert items_of(["(gru mlp)x2", {"type": "a"}, layer]) == ["gru", "mlp"] * 2 + [
        {"type": "a"},
        layer,
    ]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gru", "layers/gru"),  # a layer before a block
        ("blocks/gru", "blocks/gru"),
        ("transformer", "blocks/transformer"),
        ("mh-attention", "layers/mh_attention"),
    ],
)
def test_names(name: str, found: str) -> None:
    assert entry_of(name).name == found


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mambba", "no layer or block named 'mambba'; did you mean 'mamba'"),
        ("layers/mambba", "did you mean 'mamba'"),
        ("transfromer", "did you mean 'transformer'"),
        ("qqqqqq", "there are .*attention.*, .*transformer"),
        ("qqqqqq", r"hybrid, hyena, hyena_experts, input"),  # a layer and a block, named once
        (None, "no layer or block named None"),
        (3, "no layer or block named 3"),
    ],
)
def test_unknown_names_get_the_nearest(name: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        entry_of(name)


def test_layers_take_the_width_that_they_need() -> None:
    assert sized("gru", 24).create().out_features == 24
    assert sized({"type": "attention", "num_heads": 4}, 24).features == 24
    assert sized({"type": "swiglu", "features": 8}, 24).features == 8
    assert sized("dense", 24) == Config.from_dict(
        {"type": "layers/dense", "in_features": 24, "out_features": 24}
    )
    assert sized("blocks/gru", 24).hidden_size == 24
    assert sized("hyena", 24, max_length=64).max_length == 64
    assert sized({"type": "hyena", "max_length": 32}, 24, max_length=64).max_length == 32
    assert "max_length" not in type(sized("attention", 24, max_length=64)).model_fields
    layer, config = nn.layers.Dense(4, 4), sized("mamba", 4)
    assert sized(layer, 24) is layer
    assert sized(config, 24) is config
    assert [width_of(sized(name, 24)) for name in ("gru", "mamba", "blocks/mlp", "dense")] == [
        24
    ] * 4


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ("gru mambba", r"layers\.1: no layer or block named 'mambba'; did you mean 'mamba'"),
        (["gru", 3], r"layers\.1: must be a layer or the name of one, not 3"),
        ([{"num_heads": 2}], r"layers\.0: no layer or block named None"),
        ("(gru", r"layers: a \( has no matching"),
        ("", "layers: the pattern is empty"),
        ("gru attention[heads=2]", r"layers\.1\.heads: there is no such key"),
        ([{"type": "attention", "num_heads": 0}], r"layers\.0\.num_heads"),
    ],
)
@pytest.mark.parametrize("cls", [BlockConfig, LanguageModelConfig])
def test_configs_say_where_a_layer_is_wrong(cls: Any, layers: Any, message: str) -> None:
    more = {"vocab_size": 8} if cls is LanguageModelConfig else {}
    with pytest.raises(ConfigError, match=message):
        cls(layers=layers, hidden_size=16, **more)


def test_a_pattern_and_its_list_make_the_same_model() -> None:
    options = {"vocab_size": 8, "hidden_size": 16}
    pattern = "(gru swiglu)x2 attention[num_heads=2]"
    one = nn.models.LanguageModel(pattern, **options)
    two = nn.models.LanguageModel(expand(pattern), **options)
    assert [name for name, _ in one.named_parameters()] == [
        name for name, _ in two.named_parameters()
    ]
    assert one.config.layers == pattern  # written as it was given
    single = nn.models.LanguageModel({"type": "gru"}, **options)
    assert len(single.backbone.blocks.layers) == 1
