"""Search spaces: ranges, conditions, sampling, application to configs, and errors."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import stats

from ember_ml.configs import ConfigError
from ember_ml.training.tuning import Choice, Float, Integer, SearchSpace, TuningError

SPACE = SearchSpace(
    {
        "trainer.learning_rate": Float(1e-4, 1e-1, log=True),
        "model.layers.0.num_heads": Integer(1, 8),
        "trainer.optimizer.type": Choice(["adamw", "sgd"]),
        "trainer.optimizer.momentum": Float(0.0, 0.9, when={"trainer.optimizer.type": "sgd"}),
        "trainer.optimizer.nesterov": Choice(
            [True, False], when={"trainer.optimizer.type": ["sgd"]}
        ),
    }
)
BASE = {
    "model": {"type": "language_model", "layers": [{"type": "attention", "num_heads": 1}]},
    "trainer": {"optimizer": {"type": "adamw", "weight_decay": 0.1}},
}


@pytest.mark.parametrize(
    ("entry", "cdf"),
    [
        (Float(2.0, 4.0), stats.uniform(2.0, 2.0).cdf),
        (Float(1e-3, 10.0, log=True), stats.loguniform(1e-3, 10.0).cdf),
    ],
    ids=["uniform", "log"],
)
def test_real_numbers_have_the_distribution_of_scipy(entry, cdf):
    rng = random.Random(0)
    assert stats.kstest([entry.sample(rng) for _ in range(2000)], cdf).pvalue > 0.01


@pytest.mark.parametrize(
    ("entry", "values"),
    [
        (Integer(1, 4), [1, 2, 3, 4]),
        (Integer(-3, 4, step=3), [-3, 0, 3]),
        (Choice(["a", None, 2, [1, 2]]), ["a", None, 2, [1, 2]]),
    ],
    ids=["integers", "steps", "choices"],
)
def test_discrete_values_are_equally_frequent(entry, values):
    rng = np.random.default_rng(0)
    drawn = [values.index(entry.sample(rng)) for _ in range(2000)]
    assert stats.chisquare(np.bincount(drawn, minlength=len(values))).pvalue > 0.01
    assert all(entry.contains(value) for value in values)


def test_log_integers_cover_the_range_and_prefer_small_values():
    rng = random.Random(0)
    drawn = [Integer(1, 100, log=True).sample(rng) for _ in range(2000)]
    assert (min(drawn), max(drawn)) == (1, 100)
    assert 5 < np.median(drawn) < 12


def test_an_entry_is_active_only_under_its_condition():
    rng = random.Random(0)
    samples = [SPACE.sample(rng) for _ in range(50)]
    kinds = {params["trainer.optimizer.type"] for params in samples}
    assert kinds == {"adamw", "sgd"}
    for params in samples:
        active = params["trainer.optimizer.type"] == "sgd"
        assert ("trainer.optimizer.momentum" in params) is active
        assert SPACE.check(params) == params
        near = SPACE.near(params, rng)
        assert SPACE.check(near) == near


def test_apply_sets_the_values_in_a_copy():
    params = {
        "trainer.learning_rate": 0.01,
        "model.layers.0.num_heads": 4,
        "trainer.optimizer.type": "sgd",
        "trainer.optimizer.momentum": 0.5,
        "trainer.optimizer.nesterov": True,
    }
    config = SPACE.apply(BASE, params)
    assert config["trainer"] == {
        "optimizer": {"type": "sgd", "momentum": 0.5, "nesterov": True},
        "learning_rate": 0.01,
    }
    assert config["model"]["layers"][0]["num_heads"] == 4
    assert BASE["model"]["layers"][0]["num_heads"] == 1
    assert BASE["trainer"]["optimizer"]["weight_decay"] == 0.1


def test_apply_adds_mappings_that_the_config_leaves_at_their_defaults():
    space = SearchSpace({"trainer.optimizer.type": ["sgd"], "trainer.optimizer.momentum": [0.5]})
    base = {"model": {"type": "layers/dense"}, "trainer": {}}
    config = space.apply(base, space.sample(random.Random(0)))
    assert config["trainer"] == {"optimizer": {"type": "sgd", "momentum": 0.5}}
    assert base["trainer"] == {}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("trainer.learning_rat", "did you mean 'learning_rate'"),
        ("trainer.optimizer.weight_deca", "did you mean 'weight_decay'"),
        ("model.layers.0.num_head", "did you mean 'num_heads'"),
        ("modle.layers", "did you mean 'model'"),
        ("model.layers.3.num_heads", "index below 1"),
    ],
)
def test_apply_names_an_unknown_key_and_similar_ones(key, message):
    space = SearchSpace({key: Float(0.0, 1.0)})
    with pytest.raises(ConfigError, match=message) as error:
        space.apply(BASE, {key: 0.5})
    assert key.rpartition(".")[0] in str(error.value)


def test_check_refuses_values_that_are_not_of_the_space():
    space = SearchSpace({"rate": Float(0.0, 1.0), "kind": ["a", "b"]})
    for params, message in [
        ({"rat": 0.5, "kind": "a"}, "no key 'rat'; did you mean 'rate'"),
        ({"rate": 2.0, "kind": "a"}, r"2.0 is not in Float\(0.0, 1.0\)"),
        ({"rate": 0.5}, "kind has no value"),
    ]:
        with pytest.raises(TuningError, match=message):
            space.check(params)


def test_yaml_and_dict_describe_the_same_space(tmp_path):
    text = SPACE.to_yaml()
    (tmp_path / "space.yaml").write_text(text)
    for other in (
        SearchSpace.from_yaml(text),
        SearchSpace.from_yaml(tmp_path / "space.yaml"),
        SearchSpace.from_dict(SPACE.to_dict()),
    ):
        assert other == SPACE
        assert other.fingerprint() == SPACE.fingerprint()
        assert not SPACE.differences(other)
    assert SearchSpace.from_yaml("rate: {float: [1e-4, 1], log: true}\n")["rate"] == Float(
        1e-4, 1.0, log=True
    )


def test_differences_name_every_key():
    other = SearchSpace(
        {
            **{key: SPACE[key] for key in list(SPACE)[1:]},
            "model.layers.0.num_heads": Integer(1, 16),
            "epochs": Integer(1, 9),
        }
    )
    assert other.fingerprint() != SPACE.fingerprint()
    lines = SPACE.differences(other)
    assert len(lines) == 3
    for key in ("trainer.learning_rate", "model.layers.0.num_heads", "epochs"):
        assert any(line.startswith(key) for line in lines)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Float(1.0, 1.0), r"Float: low \(1.0\) must be less than high"),
        (lambda: Float(0.0, 1.0, log=True), "Float: low must be positive with log=True, not 0.0"),
        (lambda: Float(0.0, float("inf")), "Float: high must be a finite number, not inf"),
        (lambda: Integer(4, 2), r"Integer: low \(4\) must be less than high \(2\)"),
        (lambda: Integer(0, 8, log=True), "Integer: low must be positive"),
        (lambda: Integer(1, 8, log=True, step=2), "must have step=1, not 2"),
        (lambda: Integer(1, 3, step=5), r"step \(5\) is larger"),
        (lambda: Choice([]), "Choice: values must not be empty"),
        (lambda: Choice(["a", "a"]), "the values must differ"),
        (lambda: Choice("ab"), "values must be a list"),
        (lambda: Choice([object()]), "a value must be a finite number"),
        (lambda: SearchSpace({}), "at least one key"),
        (lambda: SearchSpace({"a..b": Float(0, 1)}), "must be dotted"),
        (lambda: SearchSpace({"a": {"floot": [0, 1]}}), "a: must be a Float"),
        (lambda: SearchSpace({"a": {"float": [0]}}), r"a: float must be \[low, high\]"),
        (lambda: SearchSpace({"a": {"float": [0, 1], "lag": True}}), "a: .*lag"),
        (lambda: SearchSpace({"a": Float(0, 1, when={"b": 1})}), "names 'b', which is not a key"),
        (
            lambda: SearchSpace({"a": [1, 2], "b": Float(0, 1, when={"a": 3})}),
            "condition can never hold",
        ),
        (
            lambda: SearchSpace({"a": Choice([1], when={"b": 1}), "b": Choice([1], when={"a": 1})}),
            "depend on each other: a -> b -> a",
        ),
    ],
)
def test_errors_of_declarations(make, message):
    with pytest.raises(TuningError, match=message):
        make()


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        ({"float": [0, 10**400]}, "high must be a finite number"),
        ({"float": [-1.7e308, 1.7e308]}, "overflows"),
        ({"integer": [0, 10**400]}, r"high must be at most 2\*\*53"),
        ({"choice": [1.0, float("nan")]}, "a value must be a finite number"),
        ({"float": [0, 1], "when": "x"}, "when must map keys to values"),
        ({"float": [0, 1], "when": ["x"]}, "when must map keys to values"),
    ],
)
def test_extreme_values_and_wrong_conditions_are_named(entry, match):
    with pytest.raises(TuningError, match=f"SearchSpace: a: .*{match}"):
        SearchSpace({"a": entry})
