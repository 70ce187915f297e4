"""Declarations of ops: they match the backends' functions, and are documented and typed."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re

import pytest

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.op import OPS
from ember_ml.backend import BACKENDS

FILLED_IN = {"dtype", "device"}  # creation always passes these to the backend


def public_functions() -> dict[str, object]:
    """Return every function that a module of `ops` exports, and every op, by qualified name."""
    functions = {key: op.function for key, op in OPS.items() if "._" not in key}
    for found in pkgutil.walk_packages(ops.__path__, "ember_ml.ops."):
        module = importlib.import_module(found.name)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            ours = inspect.isroutine(value) and value.__module__.startswith("ember_ml.ops")
            if ours and value not in functions.values():
                functions[f"{found.name.removeprefix('ember_ml.ops.')}.{name}"] = value
    return functions


PUBLIC = public_functions()


def written_in_python(native: object) -> bool:
    """Return whether the function is ours: a framework's own has its own parameter names."""
    return getattr(native, "__module__", "").startswith("ember_ml.")


@pytest.mark.parametrize("key", sorted(OPS))
def test_backends_take_what_is_declared(key: str) -> None:
    op = OPS[key]
    declared = op.signature.parameters
    for name in BACKENDS:
        runtime.load(name)
        native = op.natives.get(name)
        if native is None or not written_in_python(native):
            continue
        taken = inspect.signature(native).parameters
        if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in taken.values()):
            continue
        plain = list(declared)[len(op.roles) :]  # tensors are passed by position
        assert list(taken)[len(op.roles) :] == plain, f"{name}: {list(taken)}"
        for parameter in plain:
            if parameter not in FILLED_IN:
                assert taken[parameter].default == declared[parameter].default, (
                    f"{name}: {parameter}"
                )


@pytest.mark.parametrize("key", sorted(OPS))
def test_every_op_is_documented_and_typed(key: str) -> None:
    op = OPS[key]
    assert inspect.getdoc(op.function)
    assert op.signature.return_annotation is not inspect.Signature.empty
    for parameter in op.signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, parameter.name


@pytest.mark.parametrize("key", sorted(PUBLIC))
def test_every_parameter_is_documented(key: str) -> None:
    doc = inspect.getdoc(PUBLIC[key]) or ""
    section = doc.partition("\nArgs:\n")[2].partition("\n\n")[0]
    documented = re.findall(r"^    (\w+): ", section, re.MULTILINE)
    assert documented == list(inspect.signature(PUBLIC[key]).parameters)


@pytest.mark.parametrize("key", sorted(OPS))
def test_every_op_runs_on_every_backend(key: str) -> None:
    op = OPS[key]
    missing = [name for name in BACKENDS if runtime.load(name) and name not in op.natives]
    assert op.body is not None or not missing


@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_define_what_they_export(backend: str) -> None:
    """A function that is missing is not an error otherwise: the body of its op serves instead."""
    runtime.load(backend)
    folder = importlib.import_module(f"ember_ml.backend.{backend}.ops")
    for found in pkgutil.walk_packages(folder.__path__, f"{folder.__name__}."):
        module = importlib.import_module(found.name)
        missing = [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)]
        assert not missing, f"{found.name}: {missing}"
