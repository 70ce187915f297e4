"""The examples in docstrings run, on every backend."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import ember_ml
from ember_ml import autodiff, configs, data, nn, ops, registry, training
from ember_ml.nn import tensor

PACKAGES = (*("ops", "autodiff", "registry", "configs", "nn", "data", "training", "mad", "cli"),)
SCOPE = {
    "ember_ml": ember_ml,
    "ops": ops,
    "tensor": tensor,
    **{name: getattr(autodiff, name) for name in autodiff.__all__},
    "nn": nn,
    "Parameter": nn.Parameter,
    "Buffer": nn.Buffer,
    "Config": configs.Config,
    "Trainer": training.Trainer,
    "create": registry.create,
    "register": registry.register,
    **{name: getattr(data, name) for name in dir(data) if name[0].isupper()},
}
OF_OPS = {name: getattr(ops, name) for name in dir(ops) if not name.startswith("_")}
"""In the docstrings of ops their names stand alone, in place of Python's `sum`, `round` ..."""


def modules() -> list[str]:
    packages = [f"ember_ml.{name}" for name in PACKAGES]
    found = []
    for name in packages:
        package = importlib.import_module(name)
        found += [
            module.name
            for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        ]
    return found


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder()
    return [
        test
        for name in modules()
        for test in finder.find(importlib.import_module(name), extraglobs=SCOPE)
        if test.examples
    ]


@pytest.mark.parametrize("test", examples(), ids=lambda test: test.name)
def test_docstring(test: doctest.DocTest, backend: str) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    bare = OF_OPS if test.name.startswith(("ember_ml.ops", "ember_ml.autodiff")) else {}
    test.globs = {**test.globs, **bare, **SCOPE}
    result = runner.run(test, clear_globs=False)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples of {test.name}"
