"""Configs: checks, round trips, files, overrides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ember_ml import configs, nn, ops, registry
from ember_ml.configs import Config, ConfigError
from ember_ml.configs.initializers import ConstantConfig
from ember_ml.configs.layers import DenseConfig, MLPConfig, SequentialConfig
from ember_ml.registry import Entry
from tests.examples_of import config_of


@pytest.mark.parametrize("entry", registry.available(), ids=lambda entry: entry.name)
def test_round_trips(entry: Entry, tmp_path: Path) -> None:
    config = config_of(entry)
    data = config.to_dict()
    assert data["type"] == entry.name
    assert Config.from_dict(json.loads(json.dumps(data))) == config
    assert entry.config.from_yaml(config.to_yaml()) == config
    config.to_json(tmp_path / "c.json")
    config.to_yaml(tmp_path / "c.yaml")
    assert Config.from_json(tmp_path / "c.json") == config == configs.load(tmp_path / "c.yaml")
    schema = entry.config.json_schema()
    assert set(schema["properties"]) == {"type", *entry.config.model_fields}


def test_create_builds_what_the_config_says(backend: str) -> None:
    config = DenseConfig(
        in_features=3, out_features=2, kernel_initializer={"type": "constant", "value": 2}
    )
    layer = config.create()
    assert layer.config == config
    assert layer(ops.ones((1, 3))).tolist() == [[6.0, 6.0]]
    assert nn.layers.Dense(config=config).config == config
    assert nn.layers.Dense(config=config, out_features=5).out_features == 5


def test_a_config_does_not_change() -> None:
    config = ConstantConfig(value=1.0)
    with pytest.raises(Exception, match="frozen"):
        config.value = 2.0


BAD = [
    (
        "type: layers/dense\nin_features: 4\nout_feature: 2\n",
        [
            "out_feature: there is no such key; did you mean 'out_features'",
            "line 3",
            "out_features: is missing",
        ],
    ),
    (
        "type: layers/dense\nin_features: four\nout_features: 2\n",
        ["in_features: should be a valid integer, not 'four' (line 2)"],
    ),
    (
        "type: layers/dense\nin_features: true\nout_features: 2\n",
        ["in_features: should be a valid integer, not True"],
    ),
    ("type: layers/dropout\nrate: 1.5\n", ["rate: should be less than 1, not 1.5 (line 2)"]),
    ("type: layers/dens\n", ["type: no layers named 'dens'; did you mean 'dense'?"]),
    ("in_features: 3\n", ["type: is missing"]),
    (
        "type: layers/sequential\nlayers:\n- layers/dropout\n"
        "- {type: layers/dense, in_features: 0, out_features: 1}\n",
        ["layers.1.in_features: should be greater than or equal to 1, not 0 (line 4)"],
    ),
    (
        "type: layers/dense\nin_features: 4\nout_features: 2\nactivation: rellu\n",
        ["activation: no activations named 'rellu'; did you mean 'relu'", "line 4"],
    ),
    (
        "type: layers/dense\nin_features: 4\nout_features: 2\nactivation: {type: layers/dense}\n",
        ["activation"],
    ),
    ("a: [1,\n", ["line 2, column 1", "not valid YAML"]),
    ("a: 1\na: 2\n", ["line 2", "the key 'a' is given twice"]),
    ("- 1\n", ["keys and values"]),
    ("!!python/object/apply:os.system ['true']\n", ["not valid YAML"]),
]


@pytest.mark.parametrize(("text", "messages"), BAD)
def test_a_bad_file_is_named_with_the_place(text: str, messages: list[str], tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        configs.load(path)
    for message in [str(path), *messages]:
        assert message in str(caught.value)


def test_arguments_of_a_class_are_checked_by_its_config() -> None:
    with pytest.raises(ConfigError, match=r"^Dense: out_features: should be a valid integer"):
        nn.layers.Dense(3, "4")
    with pytest.raises(TypeError, match="did you mean 'out_features'"):
        nn.layers.Dense(3, out_feature=4)
    with pytest.raises(TypeError, match="config must be a DenseConfig"):
        nn.layers.Dense(config=MLPConfig(in_features=3))


def test_a_missing_file_and_no_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        configs.load(tmp_path / "none.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        configs.load(tmp_path / "b.yaml")


def test_overrides_reach_into_lists_and_names() -> None:
    config = SequentialConfig(
        layers=[{"type": "layers/dense", "in_features": 4, "out_features": 2}, "layers/dropout"]
    )
    changed = config.override(
        "layers.0.out_features=8", "layers.1.rate=1e-1", "layers.0.kernel_initializer.gain=2"
    )
    assert changed.layers[0].out_features == 8
    assert changed.layers[1].rate == 0.1
    assert changed.layers[0].kernel_initializer.gain == 2.0
    assert config.layers[0].out_features == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("layers.3.rate=1", "layers.3: must be an index below 1"),
        ("layer.0.rate=1", "layer: there is no such key; did you mean 'layers'"),
        ("layers.0.rat=1", "layers.0.rat: there is no such key; did you mean 'rate'"),
        ("layers.0.rate.x=1", "layers.0.rate: 0.5 has no keys"),
        ("layers", "a change must be key=value"),
        ("layers.0.rate=[", "not valid YAML"),
    ],
)
def test_a_bad_override_names_the_path(change: str, message: str) -> None:
    config = SequentialConfig(layers=["layers/dropout"])
    with pytest.raises(ConfigError, match=message):
        config.override(change)


def test_files_extend_files(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("type: layers/dense\nin_features: 4\nout_features: 2\n")
    (tmp_path / "more.yaml").write_text("extends: base.yaml\nout_features: 3\n")
    assert configs.load(tmp_path / "more.yaml", ["bias=false"]) == DenseConfig(
        in_features=4, out_features=3, bias=False
    )
    (tmp_path / "base.yaml").write_text("extends: more.yaml\n")
    with pytest.raises(ConfigError, match="extends itself"):
        configs.load(tmp_path / "more.yaml")


def test_a_component_without_a_config_class_gets_one_from_its_signature() -> None:
    own = registry.Registry({"layers": []})

    @own.register("layers/mine")
    class Mine:
        """Mine."""

        def __init__(self, size: int, *, name: str = "a") -> None:
            self.size = size

    made = own.get("layers/mine").config(size=3)
    assert made.to_dict() == {"type": "layers/mine", "size": 3, "name": "a"}
    with pytest.raises(ConfigError, match="Mine: size"):
        Mine("x")


def test_an_object_without_a_config_cannot_be_written() -> None:
    config = DenseConfig(in_features=2, out_features=2, activation=lambda x: x)
    with pytest.raises(ConfigError, match=r"activation: .* has no config"):
        config.to_dict()


def test_yaml_merges_mappings() -> None:
    text = (
        "type: layers/sequential\nlayers:\n- &d {type: layers/dense, in_features: 3, "
        "out_features: 4}\n- <<: *d\n  in_features: 4\n"
    )
    made = Config.from_yaml(text)
    assert [layer.in_features for layer in made.layers] == [3, 4]
    with pytest.raises(ConfigError, match="the key 'a' is given twice"):
        Config.from_yaml("x: &d {a: 1}\ny:\n  <<: *d\n  a: 2\n  a: 3\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("type: layers/dense\n1: 2\nin_features: 3\nout_features: 2\n", r"1: there is no such key"),
        ("type: layers/dropout\nrate: .nan\n", r"rate: .* not nan \(line 2\)"),
        (
            f"type: layers/dense\nin_features: {10**30}\nout_features: 2\n",
            r"in_features: should be less than or equal to .* \(line 2\)",
        ),
    ],
)
def test_odd_keys_and_numbers_are_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Config.from_yaml(text)


def test_sizes_may_be_integers_of_numpy() -> None:
    import numpy as np

    assert nn.layers.Dense(np.int64(3), np.uint8(2)).config == DenseConfig(
        in_features=3, out_features=2
    )


def test_the_config_of_a_sequential_lists_its_layers() -> None:
    config = SequentialConfig(layers=[DenseConfig(in_features=2, out_features=2)])
    assert nn.Sequential(nn.layers.Dense(2, 2)).config == config == config.create().config
