"""Variables at dotted names of a module."""

from __future__ import annotations

from ember_ml.nn import Module
from ember_ml.nn.parameter import Variable


class Part(Module):
    """Variables of a part of a module of another framework."""


def add_variable(module: Module, name: str, variable: Variable) -> None:
    """Set a variable at a dotted name; missing parts are created.

    Args:
        module: Module that gets the variable.
        name: Dotted name.
        variable: The variable.
    """
    *folders, last = name.split(".")
    for folder in folders:
        if folder not in module.__dict__:
            setattr(module, folder, Part())
        module = module.__dict__[folder]
    setattr(module, last, variable)
