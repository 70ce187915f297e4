"""Checks of modules that other frameworks use."""

from __future__ import annotations

from ember_ml._core import runtime
from ember_ml._core.errors import ArgumentTypeError
from ember_ml.nn import Module, _traversal


def check_module(function: str, module: object, backend: str) -> None:
    """Raise an error unless an object is a module on a backend; load the backend.

    Args:
        function: Name of the function in errors.
        module: The object.
        backend: Name of the backend.
    """
    if not isinstance(module, Module):
        raise ArgumentTypeError(
            f"{function}: expected an Ember module, got {type(module).__name__}"
        )
    for name, variable in _traversal.named_variables(module):
        if variable.backend != backend:
            raise ArgumentTypeError(
                f"{function}: {name} of {type(module).__name__} is on {variable.backend}; call "
                f"to_backend({backend!r}) first"
            )
    runtime.load(backend)
