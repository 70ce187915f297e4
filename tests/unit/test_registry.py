"""The registry: names, aliases, errors, plugins."""

from __future__ import annotations

import builtins
import importlib
import os
import pickle
from importlib import metadata

import pytest

from ember_ml import registry
from ember_ml.registry import Entry, RegistrationError, Registry, UnknownComponentError, plugins
from ember_ml.registry.plugins import PluginError

ENTRIES = registry.available()


@pytest.fixture
def own() -> Registry:
    return Registry({"layers": [], "losses": []})


def test_a_class_is_found_by_its_name_and_its_aliases(own: Registry) -> None:
    @own.register("layers/scale", aliases=["stretch"])
    class Scale:
        """Scales.

        And more.
        """

        def __init__(self, factor: float = 2.0) -> None:
            self.factor = factor

    assert own.get("layers/scale").target is Scale
    assert own.get("stretch", "layers").name == "layers/scale"
    assert own.get("layers/scale").summary == "Scales."
    assert [entry.name for entry in own.available("layers")] == ["layers/scale"]
    assert Scale(3).config.factor == 3.0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("layers/densse", "did you mean 'dense'"),
        ("layer/dense", "did you mean 'layers'"),
        ("dense", "write 'kind/name'"),
        ("losses/qqqq", "there are "),
        (7, "must be a string"),
    ],
)
def test_an_unknown_name_gets_the_nearest(name: str, message: str) -> None:
    with pytest.raises(UnknownComponentError, match=message):
        registry.get(name)


def test_a_name_is_given_once(own: Registry) -> None:
    own.register("layers/a", aliases=["b"])(type("A", (), {}))
    for name in ("layers/a", "layers/b"):
        with pytest.raises(RegistrationError, match="belongs to"):
            own.register(name)(type("B", (), {}))


@pytest.mark.parametrize("name", ["scale", "layer/scale", "layers/"])
def test_a_name_without_a_known_kind_is_refused(own: Registry, name: str) -> None:
    with pytest.raises(RegistrationError, match="kind/name"):
        own.register(name)


def test_plugins_are_loaded_and_a_broken_one_is_named(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ember_plugin.py").write_text(
        "def setup():\n    import builtins\n    builtins.PLUGGED = 1\n"
    )
    info = tmp_path / "ember_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ember-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[ember_ml.test_plugins]\ngood = ember_plugin:setup\nbroken = ember_plugin:missing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert {p.name for p in metadata.entry_points(group="ember_ml.test_plugins")} == {
        "good",
        "broken",
    }
    own = Registry({"layers": []}, plugins="ember_ml.test_plugins")
    with pytest.warns(RuntimeWarning, match="'broken'"):
        own.available("layers")
    assert builtins.PLUGGED == 1
    del builtins.PLUGGED


def test_modules_and_files_named_in_the_environment_are_loaded(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "named_module.py").write_text("import builtins\nbuiltins.NAMED = ['module']\n")
    (tmp_path / "a file.py").write_text("import builtins\nbuiltins.NAMED.append(__file__)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    file = str(tmp_path / "a file.py")
    monkeypatch.setenv(plugins.VARIABLE, os.pathsep.join(["named_module", file]))
    monkeypatch.setattr(builtins, "NAMED", [], raising=False)
    for _ in range(2):  # once is enough
        Registry({"layers": []}, plugins="ember_ml.test_plugins").available("layers")
        assert ["module", file] == builtins.NAMED


@pytest.mark.parametrize(
    ("text", "message"),
    [("1 / 0", "division by zero"), (None, "No such file")],
    ids=["bad", "none"],
)
def test_a_named_file_that_cannot_be_imported_is_an_error(
    text: str | None, message: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    monkeypatch.setenv(plugins.VARIABLE, str(tmp_path / "mine.py"))
    own = Registry({"layers": []}, plugins="ember_ml.test_plugins")
    for _ in range(2):  # not only the first time
        with pytest.raises(PluginError, match=f"mine.py.*{message}"):
            own.available("layers")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_config_class_is_importable_and_documented(entry: Entry) -> None:
    assert entry.summary, f"{entry.name} has no docstring"
    module = importlib.import_module(entry.config.__module__)
    assert getattr(module, entry.config.__name__) is entry.config
    assert entry.config_name in dir(module)
    assert pickle.loads(pickle.dumps(entry.config)) is entry.config
    assert "component" not in entry.config.model_fields


def test_every_kind_has_a_member() -> None:
    assert {entry.kind for entry in ENTRIES} == set(registry.REGISTRY.kinds)
