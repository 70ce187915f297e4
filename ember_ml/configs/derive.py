"""Configs of components that were registered without one."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

from pydantic import create_model

from ember_ml.configs.base import Config


def derive(name: str, target: Callable[..., Any]) -> type[Config]:
    """A config class with the parameters of a class's `__init__`, or of a function, as fields."""
    source: Any = target
    if isinstance(target, type):
        source = inspect.unwrap(vars(target).get("__init__", target.__init__))  # type: ignore[misc]
    hints = _hints(source)
    fields: dict[str, Any] = {
        parameter.name: (
            hints.get(parameter.name, Any),
            ... if parameter.default is parameter.empty else parameter.default,
        )
        for parameter in inspect.signature(source).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and parameter.name != "self"
    }
    made: type[Config] = create_model(
        f"{target.__name__}Config", __base__=Config, __module__=target.__module__, **fields
    )
    made.component = name
    return made


def _hints(source: Callable[..., Any]) -> dict[str, Any]:
    """The annotations; none where one names something that does not exist at run time."""
    try:
        return typing.get_type_hints(source)
    except NameError:
        return {}
