"""What is declared and what the backends offer fit together: read off the table of ops."""

from __future__ import annotations

import inspect

import pytest

from ember_ml import ops  # noqa: F401  (declares every op)
from ember_ml._core import runtime
from ember_ml._core.op import OPS
from ember_ml.backend import BACKENDS

FILLED_IN = {"dtype", "device"}  # creation gives these to the backend always


def written_in_python(native: object) -> bool:
    """Whether the function is ours: a framework's own has parameter names of its own."""
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


@pytest.mark.parametrize("key", sorted(OPS))
def test_every_op_runs_on_every_backend(key: str) -> None:
    op = OPS[key]
    missing = [name for name in BACKENDS if runtime.load(name) and name not in op.natives]
    assert op.body is not None or not missing
