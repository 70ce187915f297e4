"""`ember layers`, `ember models` ..., `ember backends`, `ember info`."""

from __future__ import annotations

import platform

import pytest

from ember_ml.backend import BACKENDS, available
from ember_ml.cli.components import KINDS
from ember_ml.cli.describe import docstring_sections, fields_of
from ember_ml.configs.derive import argument_docs
from ember_ml.registry import available as registered
from ember_ml.registry import get
from tests.unit.cli.commands import ember, ember_json

ENTRIES = [entry.name for kind in KINDS for entry in registered(kind)]


@pytest.mark.parametrize("kind", list(KINDS))
def test_all_of_a_kind(kind):
    text = ember(kind).stdout
    found = {each["name"]: each for each in ember_json(kind)}
    entries = registered(kind)
    assert [f"{kind}/{name}" for name in found] == [entry.name for entry in entries]
    for entry in entries:
        each = found[entry.name.partition("/")[2]]
        assert [f"{kind}/{alias}" for alias in each["aliases"]] == list(entry.aliases)
        assert each["summary"] == entry.summary
        assert entry.summary in text


@pytest.mark.parametrize("name", ENTRIES)
def test_one(name):
    kind, _, bare = name.partition("/")
    entry = get(name)
    found = ember_json(kind, bare)
    fields = {each["name"]: each for each in found["fields"]}
    assert list(fields) == list(entry.config.model_fields)
    assert ember(kind, bare).stdout.startswith(name)


@pytest.mark.parametrize("name", ["layers/dense", "layers/attention", "optimizers/adamw"])
def test_defaults_are_those_of_the_config(name):
    entry = get(name)
    required = {"in_features": 3, "out_features": 2, "features": 4}
    given = {key: required[key] for key in required if key in entry.config.model_fields}
    made = entry.config(**given).to_dict()
    for field in fields_of(entry):
        if not field.required:
            assert entry.config(**{**given, field.name: field.default}).to_dict() == made


def test_an_alias_is_the_same():
    assert ember("layers", "linear").stdout == ember("layers", "dense").stdout


def test_docstrings_in_parts():
    def example(x):
        """One line.

        More.

        Args:
            x: what it is, which takes
                two lines.
            y: another.

        Shape: (a,) -> (b,).

        Example:
            >>> 1
            1
        """

    assert docstring_sections(example) == {
        "": "One line.\n\nMore.",
        "Shape": "(a,) -> (b,).",
        "Example": ">>> 1\n1",
    }
    assert argument_docs(example) == {"x": "what it is, which takes two lines.", "y": "another."}


def test_backends():
    found = {each["name"]: each for each in ember_json("backends")["backends"]}
    assert list(found) == list(BACKENDS)
    assert [name for name in found if found[name]["installed"]] == available()
    assert sum(each["active"] for each in found.values()) == 1
    text = ember("backends", "--backend", "numpy").stdout
    assert "The active backend was selected by --backend." in text


def test_a_backend_that_is_not_installed_says_how_to(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ember_ml.backend.mlx", None)  # its import fails
    text = ember("backends", "--backend", "numpy").stdout
    assert "not installed" in text
    assert "pip install 'mlx" in text


def test_info():
    import numpy as np

    from ember_ml import _native

    found = ember_json("info")
    assert found["python"] == platform.python_version()
    assert found["dependencies"]["numpy"] == np.__version__
    assert found["kernels"] == _native.status()
    text = ember("info").stdout
    assert np.__version__ in text
    assert platform.platform() in text
