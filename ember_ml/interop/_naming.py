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
    for folder in folders:  # not by attributes: a property of the class may have the same name
        module = module.__dict__.setdefault(folder, Part())
    module.__dict__[last] = variable
